"""Optics, acoustics and antennas as packages write them: complex arithmetic, layers, recursion, operators."""

from __future__ import annotations

import cmath
import math
import warnings
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
from scipy.special import j1, jv

from tests.support.natural_code import Row


def sellmeier(wavelength: Any, b: Any, c: Any) -> Any:
    wl2 = np.asarray(wavelength, dtype=float) ** 2
    n2: Any = 1 + sum(bi * wl2 / (wl2 - ci) for bi, ci in zip(b, c, strict=True))
    if np.any(n2 < 1):
        warnings.warn(f"index below one, {n2.min()}", stacklevel=2)
    return np.sqrt(n2)


def snell(theta: Any, n1: Any, n2: Any) -> Any:
    s = n1 * np.sin(theta) / n2
    if np.any(np.abs(s) > 1):
        raise ValueError("total reflection")
    return np.arcsin(s)


def fresnel(theta: Any, n1: Any, n2: Any) -> dict[str, Any]:
    ci = np.cos(theta)
    ct = np.sqrt(1 - (n1 / n2 * np.sin(theta)) ** 2)
    rs = (n1 * ci - n2 * ct) / (n1 * ci + n2 * ct)
    rp = (n2 * ci - n1 * ct) / (n2 * ci + n1 * ct)
    return {"Rs": np.abs(rs) ** 2, "Rp": np.abs(rp) ** 2, "R": (np.abs(rs) ** 2 + np.abs(rp) ** 2) / 2}


def thin_film(n: Any, d: Any, wavelength: Any, substrate: Any = 1.52) -> Any:
    m = np.eye(2, dtype=complex)
    for ni, di in zip(n, d, strict=True):
        delta = 2 * np.pi * ni * di / wavelength
        layer = np.array(
            [[np.cos(delta), 1j * np.sin(delta) / ni], [1j * ni * np.sin(delta), np.cos(delta)]], dtype=complex
        )
        m = np.dot(m, layer)
    b, c = m @ np.array([1, substrate])
    r = (b - c) / (b + c)
    return np.real(r * np.conj(r))


def absorbing_interface(n: Any, k: Any) -> Any:
    index = n + 1j * k
    r = (1 - index) / (1 + index)
    return np.abs(r) ** 2, np.angle(r)


def evanescent(theta: Any, n1: Any = 1.5) -> Any:
    kz = np.emath.sqrt(1 - (n1 * np.sin(theta)) ** 2)
    r = (n1 * np.cos(theta) - kz) / (n1 * np.cos(theta) + kz)
    return np.angle(r)


def cmath_reflection(z: Any, k: Any) -> Any:
    gamma = cmath.sqrt(-(k**2) + 0.1)
    return abs(cmath.exp(-gamma * z))


class ABCD:
    """A ray-transfer matrix; `@` puts elements in order."""

    def __init__(self, a: Any, b: Any, c: Any, d: Any) -> None:
        self.matrix = np.array([[a, b], [c, d]])

    def __matmul__(self, other: ABCD) -> ABCD:
        out = ABCD.__new__(ABCD)
        out.matrix = other.matrix @ self.matrix
        return out

    def propagate(self, q: Any) -> Any:
        (a, b), (c, d) = self.matrix
        return (a * q + b) / (c * q + d)


def beam_waist(f: Any, d1: Any, d2: Any, zr: Any) -> Any:
    system = reduce(lambda s, e: s @ e, [ABCD(1, d1, 0, 1), ABCD(1, 0, -1 / f, 1), ABCD(1, d2, 0, 1)])
    q = system.propagate(1j * zr)
    return 1 / np.imag(-1 / q), np.real(q)


def airy(theta: Any, aperture: Any, wavelength: float = 0.5) -> Any:
    x = np.pi * aperture * np.sin(theta) / wavelength
    out = np.ones_like(x)
    nonzero = x != 0
    out[nonzero] = (2 * j1(x[nonzero]) / x[nonzero]) ** 2
    return out


def zernike(n: int, m: int, rho: Any, phi: Any) -> Any:
    radial = sum(
        (-1) ** k
        * math.factorial(n - k)
        / (math.factorial(k) * math.factorial((n + m) // 2 - k) * math.factorial((n - m) // 2 - k))
        * rho ** (n - 2 * k)
        for k in range((n - m) // 2 + 1)
    )
    return radial * np.cos(m * phi)


def wavefront(coefficients: Any) -> Any:
    rho, phi = np.meshgrid(np.linspace(0.1, 1, 3), np.linspace(0, 5, 4))
    modes = [(2, 0), (2, 2), (3, 1)]
    w = np.zeros(rho.shape)
    for c, (n, m) in zip(coefficients, modes, strict=True):
        w += c * zernike(n, m, rho, phi)
    return np.std(w), np.exp(-((2 * np.pi * np.std(w)) ** 2))


def array_factor(theta: Any, weights: Any, spacing: float = 0.5) -> Any:
    n = np.arange(len(weights))
    psi = 2 * np.pi * spacing * np.cos(theta)
    af = np.array([np.sum(weights * np.exp(1j * n * p)) for p in psi])
    with np.errstate(divide="ignore"):
        return 20 * np.log10(np.abs(af) / np.sum(np.abs(weights)))


def fm_sideband(beta: Any, order: int = 2) -> Any:
    return jv(order, beta) ** 2


def octave_recursion(levels: Sequence[Any]) -> Any:
    if len(levels) == 1:
        return levels[0]
    middle = len(levels) // 2
    a, b = octave_recursion(levels[:middle]), octave_recursion(levels[middle:])
    return 10 * math.log10(10 ** (a / 10) + 10 ** (b / 10))


def sabine(volume: Any, areas: Any, alphas: Any, air: float = 0.0) -> Any:
    absorption = np.inner(areas, alphas) + 4 * air * volume
    mean = absorption / np.sum(areas)
    if mean > 0.2:
        return 0.161 * volume / (-np.sum(areas) * np.log(1 - mean))
    return 0.161 * volume / absorption


def a_weighting(f: Any) -> Any:
    f2 = np.float_power(f, 2)
    num = 12194**2 * f2**2
    den = (f2 + 20.6**2) * np.sqrt((f2 + 107.7**2) * (f2 + 737.9**2)) * (f2 + 12194**2)
    return 2.0 + 20 * np.log10(num / den)


def mueller_chain(angles: Any, s: Any) -> Any:
    def polariser(t: Any) -> Any:
        c, s_ = np.cos(2 * t), np.sin(2 * t)
        return 0.5 * np.array([[1, c, s_, 0], [c, c * c, c * s_, 0], [s_, c * s_, s_ * s_, 0], [0, 0, 0, 0]])

    for t in angles:
        s = polariser(t) @ s
    return s[:3]


def fabry_perot(finesse: Any, phase: Any) -> Any:
    vec = np.vectorize(lambda p: 1 / (1 + (2 * finesse / math.pi) ** 2 * math.sin(p / 2) ** 2))
    return vec(phase)


ROWS = [
    Row(sellmeier, np.array([0.5, 0.8]), np.array([1.04, 0.23]), np.array([0.006, 0.02])),
    Row(snell, np.array([0.2, 0.5]), 1.0, 1.5),
    Row(fresnel, np.array([0.2, 0.9]), 1.0, 1.5),
    Row(thin_film, np.array([1.38, 2.1]), np.array([0.1, 0.06]), 0.55),
    Row(absorbing_interface, 0.2, 3.1),
    Row(evanescent, np.array([0.9, 1.2])),
    Row(cmath_reflection, 0.4, 1.3),
    Row(beam_waist, 0.2, 0.3, 0.25, 0.15),
    Row(airy, np.array([0.1, 0.2, 0.5]), 1.2),
    Row(wavefront, np.array([0.05, -0.02, 0.03]), intercept=True),
    Row(array_factor, np.array([0.6, 1.3]), np.array([1.0, 1.5, 0.9])),
    Row(fm_sideband, 1.4),
    Row(octave_recursion, np.array([60.0, 63.0, 58.0, 65.0])),
    Row(sabine, 200.0, np.array([60.0, 80.0, 40.0]), np.array([0.1, 0.2, 0.5])),
    Row(a_weighting, np.array([125.0, 1000.0])),
    Row(mueller_chain, np.array([0.2, 0.7]), np.array([1.0, 0.3, 0.2, 0.1])),
    Row(fabry_perot, 12.0, np.array([0.3, 1.1])),
]
