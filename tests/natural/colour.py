"""Colour science and images as packages write them: transfer functions with branches, matrices, tables, masks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tests.support.natural_code import Row

M_RGB_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = np.array([0.95047, 1.0, 1.08883])
DEFAULT_FLOAT = np.float64


def as_float_array(a: Any, dtype: Any = None) -> Any:
    return np.asarray(a, dtype=dtype or DEFAULT_FLOAT)


def as_float(a: Any) -> Any:
    return np.float64(a)


def eotf_srgb(v: Any) -> Any:
    v = as_float_array(v)
    return as_float(np.where(v <= 0.04045, v / 12.92, np.power((v + 0.055) / 1.055, 2.4)))


def oetf_by_mask(linear: Any) -> Any:
    out = np.copy(linear)
    low = linear < 0.0031308
    out[low] *= 12.92
    out[~low] = 1.055 * np.power(out[~low], 1 / 2.4) - 0.055
    return out


def rgb_to_xyz(rgb: Any) -> Any:
    rgb = as_float_array(rgb)
    if rgb.shape[-1] != 3:
        raise ValueError(f"last axis must be 3, not {rgb.shape[-1]}")
    return np.einsum("ij,...j->...i", M_RGB_XYZ, eotf_srgb(rgb))


def xyz_to_lab(xyz: Any, illuminant: Any = WHITE) -> Any:
    x, y, z = np.moveaxis(xyz / illuminant, -1, 0)

    def f(t: Any) -> Any:
        return np.where(t > (24 / 116) ** 3, np.cbrt(t), (841 / 108) * t + 16 / 116)

    fx, fy, fz = f(x), f(y), f(z)
    return np.stack([116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)], axis=-1)


def lab_to_lch(lab: Any) -> Any:
    lightness, a, b = (lab[..., i] for i in range(3))
    h = np.degrees(np.arctan2(b, a)) % 360
    return np.array([lightness, np.hypot(a, b), h])


def delta_e94(lab1: Any, lab2: Any, textiles: bool = False) -> Any:
    k1, k2, kl = (0.048, 0.014, 2) if textiles else (0.045, 0.015, 1)
    dl = lab1[0] - lab2[0]
    c1, c2 = np.hypot(*lab1[1:]), np.hypot(*lab2[1:])
    dc = c1 - c2
    dh2 = (lab1[1] - lab2[1]) ** 2 + (lab1[2] - lab2[2]) ** 2 - dc**2
    return np.sqrt((dl / kl) ** 2 + (dc / (1 + k1 * c1)) ** 2 + dh2 / (1 + k2 * c1) ** 2)


def rgb_to_hsv(rgb: Any) -> Any:
    maximum, minimum = np.amax(rgb, -1), np.amin(rgb, -1)
    delta = maximum - minimum
    s = np.where(maximum == 0, 0, delta / maximum)
    r, g, b = rgb
    if maximum == r:
        h = (g - b) / delta % 6
    elif maximum == g:
        h = (b - r) / delta + 2
    else:
        h = (r - g) / delta + 4
    return h * 60, s, maximum


class CCT(NamedTuple):
    kelvin: Any
    duv: Any


def mccamy_cct(xy: Any) -> CCT:
    x, y = xy
    n = (x - 0.3320) / (y - 0.1858)
    kelvin = np.polyval([-449.0, 3525.0, -6823.3, 5520.33], n)
    return CCT(kelvin, y - 0.0)


def planckian(wavelength: Any, temperature: Any) -> Any:
    wl, t = as_float_array(wavelength), as_float_array(temperature)
    c1, c2 = 3.741771e-16, 1.4388e-2
    p = c1 * wl**-5 / np.expm1(c2 / (wl * t))
    return as_float(p) * 1e-13


def tone_map(image: Any, key: Any = 0.18) -> Any:
    eps = 1e-4
    luminance = np.dot(image, [0.2126, 0.7152, 0.0722])
    log_average = np.exp(np.mean(np.log(eps + luminance)))
    scaled = key * luminance / log_average
    mapped = scaled * (1 + scaled / luminance.max() ** 2) / (1 + scaled)
    return image * (mapped / luminance)[..., np.newaxis]


def bilinear(image: Any, row: Any, col: Any) -> Any:
    r0, c0 = int(np.floor(row)), int(np.floor(col))
    r1, c1 = min(r0 + 1, image.shape[0] - 1), min(c0 + 1, image.shape[1] - 1)
    dr, dc = row - r0, col - c0
    top = (1 - dc) * image[r0, c0] + dc * image[r0, c1]
    bottom = (1 - dc) * image[r1, c0] + dc * image[r1, c1]
    return (1 - dr) * top + dr * bottom


def unsharp(image: Any, amount: Any = 0.5) -> Any:
    padded = np.pad(image, 1, mode="edge")
    blurred = np.zeros_like(image)
    for di in (-1, 0, 1):
        for dj in (-1, 0, 1):
            blurred += padded[1 + di : padded.shape[0] - 1 + di, 1 + dj : padded.shape[1] - 1 + dj]
    blurred /= 9
    return image + amount * (image - blurred)


def histogram_stretch(image: Any, low: float = 5, high: float = 95) -> Any:
    lo, hi = np.percentile(image, (low, high))
    if hi <= lo:
        return image
    stretched = (image - lo) / (hi - lo)
    return np.clip(stretched, 0, 1)


def lut_apply(values: Any) -> Any:
    lut = np.array([0.0, 0.2, 0.55, 0.8, 1.0])
    position = values * (len(lut) - 1)
    i = np.clip(np.floor(position).astype(int), 0, len(lut) - 2)
    t = position - i
    return np.take(lut, i) * (1 - t) + np.take(lut, i + 1) * t


def alpha_over(top: Any, bottom: Any) -> Any:
    result = np.empty_like(top)
    alpha = top[..., 3:]
    result[..., :3] = top[..., :3] * alpha + bottom[..., :3] * (1 - alpha)
    result[..., 3] = alpha[..., 0] + bottom[..., 3] * (1 - alpha[..., 0])
    return result


def metamerism(spd: Any) -> Any:
    wl = np.linspace(400, 700, len(spd))
    cmfs = np.stack([np.exp(-0.5 * ((wl - m) / w) ** 2) for m, w in ((600, 40), (555, 45), (450, 25))])
    k = 100 / np.sum(cmfs[1])
    xyz = k * (cmfs @ spd)
    return xyz[:2] / xyz.sum()


RGB = np.array([[0.2, 0.5, 0.71], [0.01, 0.33, 0.9]])
IMAGE = np.array([[0.1, 0.5, 0.3], [0.8, 0.25, 0.6], [0.45, 0.9, 0.2]])
ROWS = [
    Row(eotf_srgb, np.array([0.02, 0.3, 0.8])),
    Row(oetf_by_mask, np.array([0.002, 0.3, 0.8])),
    Row(rgb_to_xyz, RGB),
    Row(xyz_to_lab, RGB + 0.1),
    Row(lab_to_lch, np.array([[50.0, 20.0, 30.0], [70.0, -10.0, 15.0]])),
    Row(delta_e94, np.array([50.0, 20.0, 30.0]), np.array([52.0, 18.0, 25.0])),
    Row(rgb_to_hsv, np.array([0.2, 0.7, 0.4])),
    Row(mccamy_cct, np.array([0.31, 0.33])),
    Row(planckian, np.array([4.5e-7, 5.5e-7]) * 1e0, 5500.0),
    Row(tone_map, RGB[None] + 0.05),
    Row(bilinear, IMAGE, 0.4, 1.3),
    Row(unsharp, IMAGE),
    Row(histogram_stretch, IMAGE),
    Row(lut_apply, np.array([0.1, 0.45, 0.83])),
    Row(alpha_over, np.array([[0.2, 0.4, 0.6, 0.5]]), np.array([[0.9, 0.1, 0.3, 0.8]])),
    Row(metamerism, np.array([0.3, 0.8, 1.0, 0.7, 0.4])),
]
