"""Photovoltaics and solar geometry as packages write them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.support.natural_code import Row

SAPM = {"a": -3.56, "b": -0.075, "deltaT": 3.0}
SPECTRAL = {"monosi": (0.86, -0.02, -0.008), "cdte": (0.87, 0.04, -0.01)}


def declination(dayofyear: Any) -> Any:
    angle = (2.0 * np.pi / 365.0) * (dayofyear + 284)
    return np.deg2rad(23.45) * np.sin(angle)


def zenith(latitude: Any, dayofyear: Any, hour: Any) -> Any:
    dec, lat = declination(dayofyear), math.radians(latitude)
    h = math.pi / 12 * (hour - 12)
    return np.rad2deg(np.arccos(math.sin(lat) * np.sin(dec) + math.cos(lat) * np.cos(dec) * np.cos(h)))


def relative_airmass(zen: Any, model: str = "kastenyoung1989") -> Any:
    z = np.where(zen > 90, np.nan, zen)
    zr = np.radians(z)
    model = model.lower()
    if model == "kastenyoung1989":
        am = 1.0 / (np.cos(zr) + 0.50572 * ((6.07995 + (90 - z)) ** -1.6364))
    elif model == "simple":
        am = 1.0 / np.cos(zr)
    else:
        raise ValueError(f"{model} is not a valid model")
    return am


def incidence_cosine(tilt: Any, azimuth: Any, zen: Any, sun_azimuth: Any) -> Any:
    tilt, azimuth, zen, sun_azimuth = map(np.radians, (tilt, azimuth, zen, sun_azimuth))
    projection = np.cos(tilt) * np.cos(zen) + np.sin(tilt) * np.sin(zen) * np.cos(sun_azimuth - azimuth)
    return np.clip(projection, -1, 1)


def beam_on_plane(dni: Any, cosine: Any) -> Any:
    poa = dni * cosine
    return np.maximum(poa, 0)


def erbs_diffuse(ghi: Any, zen: Any, extra: float = 1367.0) -> dict[str, Any]:
    cos_zen = np.maximum(np.cos(np.radians(zen)), 0.065)
    kt = np.clip(ghi / (extra * cos_zen), 0, 1)
    df = 1 - 0.09 * kt
    df = np.where((kt > 0.22) & (kt <= 0.8), 0.9511 - 0.1604 * kt + 4.388 * kt**2 - 16.638 * kt**3 + 12.336 * kt**4, df)
    df = np.where(kt > 0.8, 0.165, df)
    dhi = df * ghi
    return {"dhi": dhi, "dni": (ghi - dhi) / cos_zen, "kt": kt}


def cell_temperature(poa: Any, air: Any, wind: Any, **params: Any) -> Any:
    p = {**SAPM, **params}
    module = poa * np.exp(p["a"] + p["b"] * wind) + air
    return module + poa / 1000.0 * p["deltaT"]


def single_diode_current(v: Any, il: Any, i0: Any, rs: Any, rsh: Any, nvth: Any) -> Any:
    current = il
    for _ in range(50):
        vd = v + current * rs
        f = il - i0 * np.expm1(vd / nvth) - vd / rsh - current
        df = -i0 * np.exp(vd / nvth) * rs / nvth - rs / rsh - 1
        step = f / df
        current = current - step
        if np.max(np.abs(step)) < 1e-13:
            break
    return current


def max_power(il: Any, i0: Any, nvth: Any, tol: float = 1e-11) -> tuple[Any, Any, Any]:
    lo, hi = 0.0, nvth * np.log(il / i0 + 1)
    golden = (math.sqrt(5) - 1) / 2

    def power(v: Any) -> Any:
        return v * (il - i0 * np.expm1(v / nvth))

    v = hi * golden
    for _ in range(60):
        e = np.exp(v / nvth)
        slope = il - i0 * (e - 1) - v * i0 * e / nvth
        curve = -i0 * e / nvth * (2 + v / nvth)
        v, last = v - slope / curve, v
        if abs(v - last) < tol:
            break
    if not lo < v < hi:
        raise RuntimeError(f"no maximum in [{lo}, {hi:.3f}]")
    return v, power(v) / v, power(v)


def iam_ashrae(aoi: Any, b: float = 0.05) -> Any:
    scalar = np.isscalar(aoi)
    aoi = np.atleast_1d(aoi)
    with np.errstate(divide="ignore", invalid="ignore"):
        iam = 1 - b * (1 / np.cos(np.radians(aoi)) - 1)
    iam[np.abs(aoi) >= 90] = 0.0
    iam = np.maximum(0, iam)
    return iam[0] if scalar else iam


def spectral_factor(airmass: Any, water: Any, kind: str = "cdte") -> Any:
    try:
        c = SPECTRAL[kind]
    except KeyError:
        raise ValueError(f"unknown module {kind!r}; choose one of {sorted(SPECTRAL)}") from None
    water = np.where(water < 0.1, 0.1, water)
    return c[0] + c[1] * np.log(airmass) + c[2] * np.sqrt(water)


@dataclass
class Inverter:
    """Efficiency of an inverter as a polynomial of the load."""

    pac0: float = 250.0
    coefficients: tuple[float, ...] = (-0.0162, -0.0059, 0.9858)
    losses: dict[str, float] = field(default_factory=lambda: {"soiling": 0.02, "wiring": 0.01})

    def derate(self) -> float:
        return math.prod(1 - loss for loss in self.losses.values())

    def ac(self, pdc: Any) -> Any:
        zeta = pdc / self.pac0 * self.derate()
        a, b, c = self.coefficients
        eta = a * zeta + b / zeta + c
        return np.minimum(eta * pdc, self.pac0)


def inverter_ac(pdc: Any) -> Any:
    return Inverter().ac(pdc)


def linke_table_airmass(am: Any, months: Any) -> Any:
    table = np.array([2.1, 2.3, 2.8, 3.4, 3.9, 4.1])
    tl = np.interp(months, np.arange(6.0), table)
    out = np.zeros_like(am)
    low = am <= 20
    out[low] = np.exp(-0.09 * am[low] * (tl[low] - 1))
    return out


def horizon_shaded(elevation: Any, dni: Any) -> Any:
    horizon = np.array([3.0, 8.0, 15.0, 6.0])
    shaded = dni.copy()
    for i, limit in enumerate(horizon):
        if elevation[i] < limit:
            shaded[i] = 0
        elif elevation[i] < 2 * limit:
            shaded[i] *= (elevation[i] - limit) / limit
    return shaded


def daily_energy(power: Any, hours: Any) -> Any:
    if power.shape != hours.shape:
        raise ValueError(f"shapes {power.shape} and {hours.shape} differ")
    energy = np.trapezoid(np.where(np.isnan(power), 0, power), hours)
    return energy / 1000


def degradation_series(rate: Any, years: int = 5) -> Any:
    yields = np.empty(years)
    yields[0] = 1.0
    for year in range(1, years):
        yields[year] = yields[year - 1] * (1 - rate)
    return yields


G = np.array([420.0, 760.0, 910.0, 300.0])
ZEN = np.array([62.0, 41.0, 28.0, 70.0])
ROWS = [
    Row(declination, np.array([40.0, 120.0, 200.0])),
    Row(zenith, 47.3, 150.0, 9.5),
    Row(relative_airmass, ZEN),
    Row(incidence_cosine, 30.0, 175.0, ZEN, np.array([120.0, 150.0, 190.0, 240.0])),
    Row(beam_on_plane, G, np.array([0.3, 0.8, -0.1, 0.6])),
    Row(erbs_diffuse, G, ZEN),
    Row(cell_temperature, G / 100, 21.0, np.array([1.0, 2.0, 3.0, 4.0])),
    Row(single_diode_current, np.array([0.2, 0.4, 0.55]), 8.0, 1e-7, 0.01, 30.0, 0.035),
    Row(max_power, 8.0, 1e-5, 0.04),
    Row(iam_ashrae, np.array([10.0, 45.0, 70.0])),
    Row(iam_ashrae, 50.0),
    Row(spectral_factor, 1.4, np.array([0.5, 1.5, 2.5])),
    Row(inverter_ac, np.array([50.0, 120.0, 200.0])),
    Row(linke_table_airmass, np.array([1.2, 2.5, 4.0]), np.array([0.5, 2.3, 4.1])),
    Row(horizon_shaded, np.array([2.0, 12.0, 40.0, 9.0]), G / 100),
    Row(daily_energy, G, np.array([8.0, 10.0, 12.5, 16.0])),
    Row(degradation_series, 0.007, intercept=True),
]
