"""Circuits, filters and signals as packages write them."""

from __future__ import annotations

import cmath
import math
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.support.natural_code import Row


def parallel(*impedances: Any) -> Any:
    if not impedances:
        raise TypeError("parallel() needs at least one impedance")
    total = 0
    for z in impedances:
        total = total + 1 / z
    return 1 / total


def rc_lowpass(f: Any, r: Any, c: Any) -> tuple[Any, Any]:
    w = 2 * np.pi * f
    h = 1 / (1 + 1j * w * r * c)
    return np.abs(h), np.angle(h, deg=True)


def reflection(zl: Any, z0: Any = 50.0) -> Any:
    gamma = (zl - z0) / (zl + z0)
    vswr = (1 + np.abs(gamma)) / (1 - np.abs(gamma))
    return gamma, vswr


def s_to_z(s: Any, z0: float = 50.0) -> Any:
    n = s.shape[-1]
    eye = np.eye(n)
    return z0 * np.linalg.inv(eye - s) @ (eye + s)


def cascade(r: Any, x: Any) -> Any:
    chain = np.eye(2, dtype=complex)
    for ri, xi in zip(r, x, strict=True):
        series = np.array([[1, ri + 1j * xi], [0, 1]], dtype=complex)
        chain = chain @ series
        chain = chain @ np.array([[1, 0], [1 / (ri + 10), 1]])
    return chain[0, 0], chain[0, 1]


def node_voltages(g: Any, i: Any) -> Any:
    n = len(i)
    y = np.zeros((n, n))
    for k in range(n):
        y[k, k] += g[k]
        if k + 1 < n:
            y[k, k] += g[k] / 2
            y[k + 1, k + 1] += g[k] / 2
            y[k, k + 1] -= g[k] / 2
            y[k + 1, k] -= g[k] / 2
    return np.linalg.solve(y, i)


def diode_bias(vs: Any, r: Any, i_sat: Any = 1e-9, vt: float = 0.02585) -> Any:
    v = 0.6
    err = 1.0
    steps = 0
    while err > 1e-12:
        f = (vs - v) / r - i_sat * (math.exp(v / vt) - 1)
        df = -1 / r - i_sat / vt * math.exp(v / vt)
        dv = f / df
        v = v - dv
        err = abs(dv)
        steps += 1
        if steps > 100:
            raise RuntimeError(f"no convergence, v={v:.4f}")
    return v


def db(x: Any, power: bool = False, floor: float = -300.0) -> Any:
    scale = 10 if power else 20
    mag = np.abs(np.asarray(x))
    with np.errstate(divide="ignore"):
        out = scale * np.log10(mag)
    return np.where(mag > 0, out, floor)


def biquad(x: Any, b: Any, a: Any) -> Any:
    y = np.zeros(len(x))
    d1 = d2 = 0.0
    for n in range(len(x)):
        y[n] = b[0] * x[n] + d1
        d1 = b[1] * x[n] - a[1] * y[n] + d2
        d2 = b[2] * x[n] - a[2] * y[n]
    return y


def goertzel(x: Any, k: float = 1.0) -> Any:
    n = len(x)
    coeff = 2 * math.cos(2 * math.pi * k / n)
    s0 = s1 = s2 = 0.0
    for sample in x:
        s0 = sample + coeff * s1 - s2
        s2, s1 = s1, s0
    return s1**2 + s2**2 - coeff * s1 * s2


def spectral_centroid(x: Any, rate: float = 8.0) -> Any:
    window = np.hanning(len(x))
    spectrum = np.abs(np.fft.rfft(x * window)) ** 2
    freqs = np.fft.rfftfreq(len(x), d=1 / rate)
    total = spectrum.sum()
    if total == 0:
        return 0.0
    return np.sum(freqs * spectrum) / total


def envelope_follower(x: Any, attack: Any = 0.6, release: Any = 0.2) -> Any:
    out, state = [], 0.0
    for v in np.abs(x):
        c = attack if v > state else release
        state = state + c * (v - state)
        out.append(state)
    return np.stack(out)


class Component:
    """A part with an impedance; parts compose by + and |."""

    def impedance(self, f: Any) -> Any:
        raise NotImplementedError

    def __add__(self, other: Component) -> Component:
        return Composite(lambda f: self.impedance(f) + other.impedance(f))

    def __or__(self, other: Component) -> Component:
        return Composite(lambda f: parallel(self.impedance(f), other.impedance(f)))


class Composite(Component):
    def __init__(self, rule: Callable[[Any], Any]) -> None:
        self.rule = rule

    def impedance(self, f: Any) -> Any:
        return self.rule(f)


class Resistor(Component):
    def __init__(self, r: Any) -> None:
        if isinstance(r, numbers.Real) and r <= 0:
            raise ValueError("resistance must be positive")
        self.r = r

    def impedance(self, f: Any) -> Any:
        return self.r + 0 * f


class Capacitor(Component):
    def __init__(self, c: Any) -> None:
        self.c = c

    def impedance(self, f: Any) -> Any:
        return 1 / (2j * np.pi * f * self.c)


def randles_cell(f: Any, rs: Any, rct: Any, c: Any) -> Any:
    circuit = Resistor(rs) + (Resistor(rct) | Capacitor(c))
    z = circuit.impedance(f)
    return np.stack([z.real, -z.imag])


def tline_input(zl: Any, length: Any, z0: float = 50.0, wavelength: float = 1.0) -> Any:
    t = np.tan(2 * math.pi * length / wavelength)
    z = z0 * (zl + 1j * z0 * t) / (z0 + 1j * zl * t)
    return np.abs(z), np.angle(z)


def coupled_resonators(k: Any) -> Any:
    n = len(k) + 1
    m = np.diag(k, 1) + np.diag(k, -1)
    w = np.linalg.eigvalsh(m)
    return w[n // 2 :]


def phasor_sum(amplitudes: Any, phases: Any) -> Any:
    z = sum(a * np.exp(1j * p) for a, p in zip(amplitudes, phases, strict=True))
    return np.abs(z), cmath.pi - np.angle(z)


F = np.array([10.0, 120.0, 900.0])
T = np.array([0.3, -0.8, 0.9, 0.4, -0.5, 0.7])
ROWS = [
    Row(parallel, np.array([50.0, 75.0]), 100.0, 220.0),
    Row(rc_lowpass, F, 1.2, 0.001),
    Row(reflection, np.array([30.0, 80.0, 120.0])),
    Row(s_to_z, np.array([[0.1, 0.5], [0.4, 0.2]])),
    Row(cascade, np.array([1.0, 2.0]), np.array([0.5, -0.3])),
    Row(node_voltages, np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.0, 1.0]), intercept=True),
    Row(diode_bias, 5.0, 1000.0),
    Row(db, np.array([0.5, 2.0, -3.0])),
    Row(biquad, T, np.array([0.2, 0.4, 0.2]), np.array([1.0, -0.5, 0.25]), intercept=True),
    Row(goertzel, T),
    Row(spectral_centroid, T),
    Row(envelope_follower, T),
    Row(randles_cell, F, 10.0, 100.0, 1e-4),
    Row(tline_input, 75.0, 0.13),
    Row(coupled_resonators, np.array([0.5, 0.8, 0.6])),
    Row(phasor_sum, np.array([1.0, 0.5, 0.2]), np.array([0.1, 1.2, 2.0])),
]
