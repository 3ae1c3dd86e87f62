"""Orbits, time scales and geodesy as packages write them."""

from __future__ import annotations

import datetime
import math
from collections import namedtuple
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from tests.support.natural_code import COMPILED, Row

MU = 398600.4418
Ellipsoid = namedtuple("Ellipsoid", "a f")
WGS84 = Ellipsoid(6378.137, 1 / 298.257223563)


class ConvergenceError(RuntimeError):
    pass


def eccentric_anomaly(m: Any, e: Any, tol: float = 1e-13, max_iter: int = 30) -> Any:
    if not 0 <= e < 1:
        raise ValueError(f"eccentricity {e} is not elliptic")
    ea = m if e < 0.8 else math.pi
    for _ in range(max_iter):
        delta = (ea - e * math.sin(ea) - m) / (1 - e * math.cos(ea))
        ea = ea - delta
        if abs(delta) <= tol:
            return ea
    raise ConvergenceError(f"no convergence for M={m:.6f}")


def kepler_vectorised(m: Any, e: Any) -> Any:
    m = np.asarray(m)
    ea = m + e * np.sin(m)
    todo = np.ones(m.shape, dtype=bool)
    while np.any(todo):
        step = (ea - e * np.sin(ea) - m) / (1 - e * np.cos(ea))
        ea = np.where(todo, ea - step, ea)
        todo = np.abs(step) > 1e-12
    return ea


def true_anomaly(ea: Any, e: Any) -> Any:
    return 2 * np.arctan2(np.sqrt(1 + e) * np.sin(ea / 2), np.sqrt(1 - e) * np.cos(ea / 2))


def elements_to_state(a: Any, e: Any, inc: Any, raan: Any, argp: Any, nu: Any) -> Any:
    p = a * (1 - e**2)
    r = p / (1 + e * np.cos(nu))
    r_pqw = np.array([r * np.cos(nu), r * np.sin(nu), 0])
    v_pqw = np.sqrt(MU / p) * np.array([-np.sin(nu), e + np.cos(nu), 0])
    co, so, ci, si, cw, sw = np.cos(raan), np.sin(raan), np.cos(inc), np.sin(inc), np.cos(argp), np.sin(argp)
    rot = np.array(
        [
            [co * cw - so * sw * ci, -co * sw - so * cw * ci, so * si],
            [so * cw + co * sw * ci, -so * sw + co * cw * ci, -co * si],
            [sw * si, cw * si, ci],
        ]
    )
    return rot @ r_pqw, rot @ v_pqw


def state_to_elements(r: Any, v: Any, tol: float = 1e-8) -> dict[str, Any]:
    h = np.cross(r, v)
    n = np.cross([0, 0, 1], h)
    e_vec = ((v @ v - MU / np.linalg.norm(r)) * r - (r @ v) * v) / MU
    ecc = np.linalg.norm(e_vec)
    p = h @ h / MU
    inc = np.arccos(h[2] / np.linalg.norm(h))
    circular, equatorial = ecc < tol, abs(inc) < tol
    if circular or equatorial:
        raise NotImplementedError("degenerate orbits")
    raan = np.arctan2(n[1], n[0]) % (2 * np.pi)
    return {"p": p, "ecc": ecc, "inc": inc, "raan": raan}


def stumpff(psi: Any) -> tuple[Any, Any]:
    if psi > 1e-3:
        s = np.sqrt(psi)
        return (1 - np.cos(s)) / psi, (s - np.sin(s)) / s**3
    if psi < -1e-3:
        s = np.sqrt(-psi)
        return (1 - np.cosh(s)) / psi, (np.sinh(s) - s) / s**3
    return 1 / 2 - psi / 24 + psi**2 / 720, 1 / 6 - psi / 120 + psi**2 / 5040


def universal_kepler(r0: Any, v0: Any, dt: Any) -> Any:
    norm_r = np.sqrt(r0 @ r0)
    rv = r0 @ v0 / math.sqrt(MU)
    alpha = 2 / norm_r - v0 @ v0 / MU
    xi = math.sqrt(MU) * dt * alpha
    for _ in range(50):
        psi = xi**2 * alpha
        c2, c3 = stumpff(psi)
        r = xi**2 * c2 + rv * xi * (1 - psi * c3) + norm_r * (1 - psi * c2)
        step = (math.sqrt(MU) * dt - xi**3 * c3 - rv * xi**2 * c2 - norm_r * xi * (1 - psi * c3)) / r
        xi = xi + step
        if abs(step) < 1e-10:
            break
    else:
        raise ConvergenceError
    f = 1 - xi**2 / norm_r * stumpff(xi**2 * alpha)[0]
    g = dt - xi**3 / math.sqrt(MU) * stumpff(xi**2 * alpha)[1]
    return f * r0 + g * v0


def j2_rates(a: Any, ecc: Any, inc: Any, j2: float = 1.08263e-3, radius: float = 6378.137) -> Any:
    n = np.sqrt(MU / a**3)
    factor = 1.5 * n * j2 * (radius / (a * (1 - ecc**2))) ** 2
    return np.degrees(-factor * np.cos(inc)) * 86400, np.degrees(factor * (2 - 2.5 * np.sin(inc) ** 2)) * 86400


def hohmann(r1: Any, r2: Any) -> Any:
    at = (r1 + r2) / 2
    dv1 = np.sqrt(MU / r1) * (np.sqrt(r2 / at) - 1)
    dv2 = np.sqrt(MU / r2) * (1 - np.sqrt(r1 / at))
    return sum(abs(dv) for dv in (dv1, dv2))


def geodetic_to_ecef(lat: Any, lon: Any, alt: Any, ell: Ellipsoid = WGS84, deg: bool = True) -> Any:
    if deg:
        lat, lon = np.radians(lat), np.radians(lon)
    e2 = ell.f * (2 - ell.f)
    n = ell.a / np.sqrt(1 - e2 * np.sin(lat) ** 2)
    return np.stack(
        (
            (n + alt) * np.cos(lat) * np.cos(lon),
            (n + alt) * np.cos(lat) * np.sin(lon),
            (n * (1 - e2) + alt) * np.sin(lat),
        ),
        axis=-1,
    )


def ecef_to_geodetic(x: Any, y: Any, z: Any, ell: Ellipsoid = WGS84) -> Any:
    e2 = ell.f * (2 - ell.f)
    p = math.hypot(x, y)
    lat = math.atan2(z, p * (1 - e2))
    prev, n = float("inf"), ell.a
    while abs(lat - prev) > 1e-14:
        n = ell.a / math.sqrt(1 - e2 * math.sin(lat) ** 2)
        prev, lat = lat, math.atan2(z + e2 * n * math.sin(lat), p)
    return math.degrees(lat), math.degrees(math.atan2(y, x)), p / math.cos(lat) - n


def haversine(lat1: Any, lon1: Any, lat2: Any, lon2: Any, radius: float = 6371.0) -> Any:
    lat1, lon1, lat2, lon2 = (np.radians(v) for v in (lat1, lon1, lat2, lon2))
    h = np.sin((lat2 - lat1) / 2) ** 2 + np.cos(lat1) * np.cos(lat2) * np.sin((lon2 - lon1) / 2) ** 2
    return 2 * radius * np.arcsin(np.sqrt(h))


def vincenty(lat1: Any, lon1: Any, lat2: Any, lon2: Any) -> Any:
    a, f = WGS84
    b = (1 - f) * a
    u1, u2 = np.arctan((1 - f) * np.tan(np.radians(lat1))), np.arctan((1 - f) * np.tan(np.radians(lat2)))
    lon = np.radians(lon2 - lon1)
    lam, limit = lon, 100
    while True:
        sl, cl = np.sin(lam), np.cos(lam)
        ss = np.hypot(np.cos(u2) * sl, np.cos(u1) * np.sin(u2) - np.sin(u1) * np.cos(u2) * cl)
        if ss == 0:
            return 0.0
        cs = np.sin(u1) * np.sin(u2) + np.cos(u1) * np.cos(u2) * cl
        sigma = np.arctan2(ss, cs)
        sa = np.cos(u1) * np.cos(u2) * sl / ss
        ca2 = 1 - sa**2
        c2m = cs - 2 * np.sin(u1) * np.sin(u2) / ca2 if ca2 != 0 else 0
        c = f / 16 * ca2 * (4 + f * (4 - 3 * ca2))
        last, lam = lam, lon + (1 - c) * f * sa * (sigma + c * ss * (c2m + c * cs * (2 * c2m**2 - 1)))
        limit -= 1
        if abs(lam - last) < 1e-13 or not limit:
            break
    u = ca2 * (a**2 - b**2) / b**2
    big_a = 1 + u / 16384 * (4096 + u * (-768 + u * (320 - 175 * u)))
    return b * big_a * sigma


def j2_orbit(x0: Any, hours: float = 0.02) -> Any:
    def rhs(t: Any, y: Any) -> Any:
        r = np.linalg.norm(y[:3])
        return np.concatenate([y[3:], -MU * y[:3] / r**3])

    sol = solve_ivp(rhs, (0, hours * 3600), x0, rtol=1e-9, atol=1e-9)
    if not sol.success:
        raise RuntimeError(sol.message)
    return sol.y[:3, -1]


def sidereal_time(hours: Any, longitude: Any, date: datetime.date = datetime.date(2020, 3, 1)) -> Any:
    days = (date - datetime.date(2000, 1, 1)).days - 0.5 + hours / 24
    gmst = 280.46061837 + 360.98564736629 * days
    return (gmst + longitude) % 360


def legendre_geoid(lat: Any, coefficients: Any) -> Any:
    x = np.sin(lat)
    p = [1.0, x]
    for n in range(1, len(coefficients) - 1):
        p.append(((2 * n + 1) * x * p[n] - n * p[n - 1]) / (n + 1))
    return sum(c * pn for c, pn in zip(coefficients, p, strict=False))


def spherical_triangle_area(points: Any) -> Any:
    def angle(a: Any, b: Any, c: Any) -> Any:
        u, v = np.cross(a, b), np.cross(a, c)
        return np.arccos(u @ v / (np.linalg.norm(u) * np.linalg.norm(v)))

    unit = [p / np.linalg.norm(p) for p in points]
    return sum(angle(unit[i], unit[i - 1], unit[i - 2]) for i in range(3)) - math.pi


R0, V0 = np.array([7000.0, 1200.0, 500.0]), np.array([-1.0, 7.0, 1.5])
ROWS = [
    Row(eccentric_anomaly, 1.2, 0.3),
    Row(kepler_vectorised, np.array([0.3, 1.2, 2.5]), 0.4),
    Row(true_anomaly, 1.2, 0.3),
    Row(elements_to_state, 8000.0, 0.1, 0.5, 1.0, 0.3, 2.0),
    Row(state_to_elements, R0, V0),
    Row(stumpff, 0.7),
    Row(stumpff, -0.7),
    Row(universal_kepler, R0, V0, 600.0),
    Row(j2_rates, 7200.0, 0.02, 1.7),
    Row(hohmann, 7000.0, 42000.0),
    Row(geodetic_to_ecef, np.array([47.0, -12.0]), np.array([8.0, 120.0]), np.array([0.4, 1.1])),
    Row(ecef_to_geodetic, 4300.0, 700.0, 4650.0),
    Row(haversine, 47.0, 8.0, 52.0, 13.0),
    Row(vincenty, 47.0, 8.0, 52.0, 13.0),
    Row(j2_orbit, np.concatenate([R0, V0]), refused=COMPILED, word="Pass the times that you need"),
    Row(sidereal_time, 7.3, 11.5),
    Row(legendre_geoid, 0.6, np.array([1.0, 0.3, -0.2, 0.05])),
    Row(spherical_triangle_area, np.array([[1.0, 0.1, 0.2], [0.0, 1.1, 0.3], [0.2, 0.1, 0.9]])),
]
