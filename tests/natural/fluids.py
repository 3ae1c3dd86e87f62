"""Fluids, heat and thermodynamics as packages write them: correlations with branches, iterations, property tables."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import brentq

from tests.support.natural_code import Row

R = 8.314462618
ANTOINE = {"water": (8.07131, 1730.63, 233.426), "ethanol": (8.20417, 1642.89, 230.3)}
STEAM_T = np.array([20.0, 40.0, 60.0, 80.0, 100.0])
STEAM_P = np.array([2.339, 7.385, 19.95, 47.41, 101.4])


def reynolds(v: Any, d: Any, rho: Any = None, mu: Any = None, nu: Any = None) -> Any:
    if rho is not None and mu is not None:
        nu = mu / rho
    elif nu is None:
        raise ValueError("either density and viscosity, or the kinematic viscosity is needed")
    return v * d / nu


def friction_factor(re: Any, rough: Any = 0.0) -> Any:
    if re < 2040:
        return 64.0 / re
    return (-1.8 * math.log10((rough / 3.7) ** 1.11 + 6.9 / re)) ** -2


def colebrook(re: Any, rough: Any, tol: float = 1e-13) -> Any:
    x, err, it = 8.0, 1.0, 0
    while err > tol:
        f = x + 2 * math.log10(rough / 3.7 + 2.51 * x / re)
        df = 1 + 2 * 2.51 / re / (math.log(10) * (rough / 3.7 + 2.51 * x / re))
        dx = f / df
        x -= dx
        err = abs(dx)
        it += 1
        if it > 50:
            raise RuntimeError(f"colebrook: {it} steps, error {err:g}")
    return 1 / x**2


def nusselt(re: Any, pr: Any, heating: bool = True) -> Any:
    n = 0.4 if heating else 0.3
    nu = 0.023 * re**0.8 * pr**n
    return nu if re >= 1e4 else max(nu, 3.66)


def fin_efficiency(h: Any, k: Any, t: Any, length: Any) -> Any:
    m = np.sqrt(2 * h / (k * t))
    lc = length + t / 2
    return np.tanh(m * lc) / (m * lc)


def lmtd(th_in: Any, th_out: Any, tc_in: Any, tc_out: Any, counterflow: bool = True) -> Any:
    dt1, dt2 = (th_in - tc_out, th_out - tc_in) if counterflow else (th_in - tc_in, th_out - tc_out)
    assert dt1 > 0 and dt2 > 0, "temperatures cross"
    if math.isclose(dt1, dt2, rel_tol=1e-9):
        return dt1
    return (dt1 - dt2) / math.log(dt1 / dt2)


def saturation_pressure(t: Any, fluid: str = "water") -> Any:
    a, b, c = ANTOINE[fluid]
    return 10 ** (a - b / (c + t)) * 133.322


def boiling_point(p: Any, fluid: str = "water") -> Any:
    return brentq(lambda t: saturation_pressure(t, fluid) - p, 1.0, 150.0, xtol=1e-13)


def steam_lookup(t: Any) -> Any:
    if np.any(t < STEAM_T[0]) or np.any(t > STEAM_T[-1]):
        raise ValueError("temperature outside of the table")
    i = np.searchsorted(STEAM_T, t) - 1
    w = (t - STEAM_T[i]) / (STEAM_T[i + 1] - STEAM_T[i])
    return STEAM_P[i] * (1 - w) + STEAM_P[i + 1] * w


def cubic_root(a: Any, b: Any, pressure: Any = 2e5, temperature: Any = 350.0, phase: str = "gas") -> Any:
    aa = a * pressure / (R * temperature) ** 2
    bb = b * pressure / (R * temperature)
    roots = np.roots([1.0, -(1 + bb), aa, -aa * bb])
    real = roots[np.abs(np.imag(roots)) < 1e-10].real
    return real.max() if phase == "gas" else real.min()


def peng_robinson_z(t: Any, p: Any, tc: float = 425.1, pc: float = 3.796e6, omega: float = 0.2) -> Any:
    kappa = 0.37464 + 1.54226 * omega - 0.26992 * omega**2
    alpha = (1 + kappa * (1 - math.sqrt(t / tc))) ** 2
    a = 0.45724 * (R * tc) ** 2 / pc * alpha * p / (R * t) ** 2
    b = 0.07780 * R * tc / pc * p / (R * t)
    z = 1.0
    for _ in range(100):
        f = z**3 - (1 - b) * z**2 + (a - 3 * b**2 - 2 * b) * z - (a * b - b**2 - b**3)
        df = 3 * z**2 - 2 * (1 - b) * z + (a - 3 * b**2 - 2 * b)
        znew = z - f / df
        if abs(znew - z) < 1e-14:
            break
        z = znew
    return z


def mixture_viscosity(mu: Any, w: Any) -> Any:
    n = len(mu)
    phi = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            phi[i, j] = (1 + (mu[i] / mu[j]) ** 0.5 * (w[j] / w[i]) ** 0.25) ** 2 / math.sqrt(8 * (1 + w[i] / w[j]))
    y = np.ones(n) / n
    return sum(y[i] * mu[i] / sum(y[j] * phi[i, j] for j in range(n)) for i in range(n))


def rachford_rice(z: Any, k: Any) -> Any:
    lo, hi = 1 / (1 - np.max(k)), 1 / (1 - np.min(k))
    v = 0.5 * (max(lo, 0) + min(hi, 1))
    for _ in range(40):
        d = 1 + v * (k - 1)
        g = np.sum(z * (k - 1) / d)
        dg = -np.sum(z * ((k - 1) / d) ** 2)
        new = v - g / dg
        if not lo < new < hi:
            new = 0.5 * (v + (lo if new <= lo else hi))
        if abs(new - v) < 1e-14:
            break
        v = new
    return v, z / (1 + v * (k - 1))


def heat_equation(u0: Any, alpha: Any, steps: int = 4) -> Any:
    u = u0.copy()
    for _ in range(steps):
        lap = np.zeros_like(u)
        lap[1:-1] = u[2:] - 2 * u[1:-1] + u[:-2]
        u += alpha * lap
        u[0], u[-1] = u[1], u[-2]
    return u


def thomas(lower: Any, diag: Any, upper: Any, rhs: Any) -> Any:
    n = len(diag)
    c, d, x = np.zeros(n - 1), np.zeros(n), np.zeros(n)
    c[0] = upper[0] / diag[0]
    d[0] = rhs[0] / diag[0]
    for i in range(1, n):
        m = diag[i] - lower[i - 1] * c[i - 1]
        if i < n - 1:
            c[i] = upper[i] / m
        d[i] = (rhs[i] - lower[i - 1] * d[i - 1]) / m
    x[-1] = d[-1]
    for i in reversed(range(n - 1)):
        x[i] = d[i] - c[i] * x[i + 1]
    return x


def compressible_flow(mach: Any, gamma: float = 1.4) -> dict[str, Any]:
    mach = np.asarray(mach)
    t = 1 / (1 + (gamma - 1) / 2 * mach**2)
    p = t ** (gamma / (gamma - 1))
    area = 1 / mach * ((2 / (gamma + 1)) / t) ** ((gamma + 1) / (2 * (gamma - 1)))
    result = {"T": t, "p": p, "A": area}
    supersonic = mach > 1
    if supersonic.any():
        m = mach[supersonic]
        result["shock"] = np.sqrt((1 + (gamma - 1) / 2 * m**2) / (gamma * m**2 - (gamma - 1) / 2))
    return result


def settling(d: Any, drag: Callable[[Any], Any] | None = None) -> Any:
    drag = drag or (lambda re: 24 / re * (1 + 0.15 * re**0.687) if re < 1000 else 0.44)
    v = 1e-2
    for _ in range(60):
        cd = drag(1000 * v * d / 1e-3)
        v, old = math.sqrt(4 * 9.81 * d * 1.65 / (3 * cd)), v
        if abs(v - old) < 1e-13 * v:
            break
    return v


def psychrometric(t: Any, rh: Any) -> Any:
    if not 0 <= rh <= 1:
        raise ValueError(f"relative humidity {rh:.2%} is not between 0 and 1")
    ps = saturation_pressure(t)
    w = 0.62198 * rh * ps / (101325.0 - rh * ps)
    return w, 1.006 * t + w * (2501 + 1.86 * t)


MU, MW = np.array([1.8e-5, 1.1e-5, 1.5e-5]), np.array([28.0, 44.0, 16.0])
ROWS = [
    Row(lambda v, d: reynolds(v, d, nu=1e-6), 1.2, 0.05),
    Row(friction_factor, 1500.0),
    Row(friction_factor, 5e4, 0.001),
    Row(colebrook, 5e4, 0.001),
    Row(nusselt, 2e4, 4.0),
    Row(fin_efficiency, 25.0, 200.0, 0.002, 0.05),
    Row(lmtd, 90.0, 60.0, 20.0, 45.0),
    Row(boiling_point, 9e4),
    Row(steam_lookup, np.array([35.0, 71.0])),
    Row(cubic_root, 1.2, 8e-5),
    Row(peng_robinson_z, 380.0, 8e5),
    Row(mixture_viscosity, MU, MW, intercept=True),
    Row(rachford_rice, np.array([0.4, 0.35, 0.25]), np.array([3.2, 1.1, 0.3])),
    Row(heat_equation, np.array([1.0, 3.0, 2.0, 5.0]), 0.2),
    Row(
        thomas,
        np.array([-1.0, -0.5]),
        np.array([4.0, 5.0, 3.0]),
        np.array([-1.0, 0.3]),
        np.array([1.0, 2.0, 3.0]),
        intercept=True,
    ),
    Row(compressible_flow, np.array([0.5, 1.7, 2.4])),
    Row(settling, 1e-4),
    Row(psychrometric, 25.0, 0.4),
]
