"""Chemistry and materials as packages write them: dictionaries of species, activity models, rate equations."""

from __future__ import annotations

import math
import re
from collections import OrderedDict, defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.integrate import odeint
from scipy.optimize import fsolve
from scipy.special import erfc, expi

from tests.support.natural_code import Row

R, F = 8.314462618, 96485.33212
MASSES = {"H": 1.008, "C": 12.011, "N": 14.007, "O": 15.999}


def molar_mass(formula: str) -> float:
    return sum(MASSES[symbol] * int(count or 1) for symbol, count in re.findall(r"([A-Z][a-z]?)(\d*)", formula))


def mass_fractions(moles: Any) -> Any:
    species = ("H2O", "CO2", "N2")
    mass = OrderedDict((name, n * molar_mass(name)) for name, n in zip(species, moles, strict=True))
    total = sum(mass.values())
    return {name: m / total for name, m in mass.items()}


def arrhenius(a: Any, ea: Any, t: Any, t_ref: Any = None, n: float = 0.0) -> Any:
    if t_ref is None:
        return a * t**n * np.exp(-ea / (R * t))
    return a * (t / t_ref) ** n * np.exp(-ea / R * (1 / t - 1 / t_ref))


def nernst(e0: Any, ox: Any, red: Any, z: int = 1, t: Any = 298.15) -> Any:
    if red == 0 or ox == 0:
        return math.copysign(math.inf, ox - red)
    return e0 + R * t / (z * F) * math.log(ox / red)


def ionic_strength(concentrations: dict[str, Any], charges: dict[str, int]) -> Any:
    return 0.5 * sum(c * charges[name] ** 2 for name, c in concentrations.items())


def debye_hueckel(na: Any, ca: Any, cl: Any) -> Any:
    strength = ionic_strength({"Na": na, "Ca": ca, "Cl": cl}, {"Na": 1, "Ca": 2, "Cl": -1})
    root = np.sqrt(strength)
    return np.array([-0.509 * z**2 * (root / (1 + root) - 0.3 * strength) for z in (1, 2, -1)])


def ph_weak_acid(c: Any, ka: Any, kw: Any = 1e-14) -> Any:
    h = math.sqrt(ka * c)
    for _ in range(100):
        f = h**3 + ka * h**2 - (ka * c + kw) * h - ka * kw
        df = 3 * h**2 + 2 * ka * h - (ka * c + kw)
        h, old = h - f / df, h
        if math.isclose(h, old, rel_tol=1e-15):
            break
    return -math.log10(h)


def margules(x1: Any, a12: Any, a21: Any) -> Any:
    x2 = 1 - x1
    ln1 = x2**2 * (a12 + 2 * (a21 - a12) * x1)
    ln2 = x1**2 * (a21 + 2 * (a12 - a21) * x2)
    return np.exp([ln1, ln2])


def wilson(x: Any, lam: Any) -> Any:
    n = x.shape[0]
    gamma = np.ones(n)
    for i in range(n):
        s1 = sum(x[j] * lam[i, j] for j in range(n))
        s2 = sum(x[k] * lam[k, i] / sum(x[j] * lam[k, j] for j in range(n)) for k in range(n))
        gamma[i] = np.exp(1 - np.log(s1) - s2)
    return gamma


class Reaction:
    """A reversible reaction; concentrations are in a dictionary."""

    def __init__(self, text: str, forward: Any, backward: Any = 0.0) -> None:
        left, _, right = text.partition("->")
        self.left, self.right = self._side(left), self._side(right)
        self.forward, self.backward = forward, backward

    @staticmethod
    def _side(text: str) -> dict[str, int]:
        side: defaultdict[str, int] = defaultdict(int)
        for term in text.split("+"):
            match = re.fullmatch(r"\s*(\d*)\s*(\w+)\s*", term)
            if match is None:
                raise ValueError(f"cannot read {term!r}")
            side[match[2]] += int(match[1] or 1)
        return dict(side)

    def rate(self, c: dict[str, Any]) -> Any:
        forward, backward = self.forward, self.backward
        for name, order in self.left.items():
            forward = forward * c[name] ** order
        for name, order in self.right.items():
            backward = backward * c[name] ** order
        return forward - backward


def network_rates(c: Any, k: Any) -> Any:
    names = ["A", "B", "C"]
    reactions = [Reaction("A -> B", k[0], 0.1), Reaction("A + B -> C", k[1]), Reaction("2 B -> C", k[2], 0.05)]
    conc = dict(zip(names, c, strict=True))
    out = dict.fromkeys(names, 0.0)
    for reaction in reactions:
        r = reaction.rate(conc)
        for name, nu in reaction.left.items():
            out[name] -= nu * r
        for name, nu in reaction.right.items():
            out[name] += nu * r
    return np.array([out[name] for name in names])


def kinetics(k: Any, c0: Any) -> Any:
    def rhs(c: Any, t: Any) -> list[Any]:
        return [-k[0] * c[0], k[0] * c[0] - k[1] * c[1]]

    return odeint(rhs, c0, np.array([0.0, 0.5, 1.0]), rtol=1e-10, atol=1e-10)[-1]


def equilibrium(k: Any, total: Any) -> Any:
    def residual(u: Any) -> list[Any]:
        a, b = u
        return [a + 2 * b - total, b - k * a**2]

    return fsolve(residual, [0.5, 0.2], xtol=1e-13)


def langmuir_fit_residual(params: Any, p: Any, q: Any) -> Any:
    qm, b = params
    model = qm * b * p / (1 + b * p)
    return (model - q) / np.where(q > 0, q, 1.0)


def shomate(t: Any, high: tuple[float, ...] = (30.1, 6.8, 6.8, -2.5, 0.08)) -> Any:
    if isinstance(t, (int, float)) and t <= 0:
        raise ValueError("temperature must be positive")
    x = t / 1000.0
    a, b, c, d, e = high
    cp = a + b * x + c * x**2 + d * x**3 + e / x**2
    h = a * x + b * x**2 / 2 + c * x**3 / 3 + d * x**4 / 4 - e / x
    return cp, h


def well_drawdown(q: Any, s: Any, r: Any, t: Any, transmissivity: Any = 0.01) -> Any:
    u = r**2 * s / (4 * transmissivity * t)
    return -q / (4 * math.pi * transmissivity) * expi(-u)


def diffusion_profile(x: Any, d: Any, t: Any, c0: Any = 1.0) -> Any:
    return c0 * erfc(x / (2 * np.sqrt(d * t)))


def lennard_jones(positions: Any, eps: Any = 1.0, sigma: Any = 1.0, cutoff: float = 2.5) -> Any:
    energy = 0.0
    n = len(positions)
    for i in range(n):
        for j in range(i + 1, n):
            r2 = np.sum((positions[i] - positions[j]) ** 2)
            if r2 > cutoff**2:
                continue
            s6 = (sigma**2 / r2) ** 3
            energy += 4 * eps * (s6**2 - s6)
    return energy


def coordination(positions: Any, r0: Any = 1.2) -> Any:
    def pairs() -> Iterator[Any]:
        for i, a in enumerate(positions):
            for b in positions[i + 1 :]:
                yield np.linalg.norm(a - b) / r0

    return sum((1 - x**6) / (1 - x**12) for x in pairs())


def huckel_energies(beta: Any) -> Any:
    n = len(beta) + 1
    h = np.zeros((n, n))
    for i, b in enumerate(beta):
        h[i, i + 1] = h[i + 1, i] = b
    return np.linalg.eigvalsh(h)


POINTS = np.array([[0.0, 0.1, 0.0], [1.1, 0.0, 0.2], [0.3, 1.2, 0.1]])
ROWS = [
    Row(mass_fractions, np.array([1.0, 2.0, 0.5])),
    Row(arrhenius, 1e3, 3e4, 400.0),
    Row(lambda a, t: arrhenius(a, 3e4, t, t_ref=350.0, n=0.5), 1e3, 400.0),
    Row(nernst, 0.77, 0.01, 0.03),
    Row(debye_hueckel, 0.1, 0.02, 0.14),
    Row(ph_weak_acid, 0.1, 1.8e-5),
    Row(margules, 0.3, 1.2, 0.8),
    Row(wilson, np.array([0.3, 0.7]), np.array([[1.0, 0.6], [0.8, 1.0]]), intercept=True),
    Row(network_rates, np.array([1.0, 0.5, 0.2]), np.array([0.3, 0.7, 0.2])),
    Row(kinetics, np.array([1.0, 0.4]), np.array([1.0, 0.1])),
    Row(equilibrium, 0.8, 1.5),
    Row(langmuir_fit_residual, np.array([2.0, 0.5]), np.array([0.5, 1.0, 2.0]), np.array([0.4, 0.7, 1.1])),
    Row(shomate, 600.0),
    Row(well_drawdown, 0.02, 1e-4, 50.0, 3600.0),
    Row(diffusion_profile, np.array([0.1, 0.3]), 0.02, 1.5),
    Row(lennard_jones, POINTS),
    Row(coordination, POINTS),
    Row(huckel_energies, np.array([-1.0, -0.8, -1.1]), intercept=True),
]
