"""The Chebyshev expansions of `backends/routines/special_tables.py`, by mpmath.

`python -m tests.support.special_expansions` prints that module again.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any, NamedTuple

import mpmath
from mpmath import mp, mpf

DIGITS, NODES = 40, 72
INDENTED = textwrap.TextWrapper(112, initial_indent=" " * 8, subsequent_indent=" " * 8)
CUT = mpf(2) ** -56
"""The share of the largest coefficient below which coefficients at the end are left out."""


class Expansion(NamedTuple):
    """A smooth function between two bounds."""

    low: float
    high: float
    value: Callable[[Any], Any]


def _phase(order: int, is_second: bool) -> Callable[[Any], Any]:
    """The factor of the cosine (or that of the sine, times x / 8) in sqrt(pi x / 2) J(x), by u = (8 / x)²."""

    def value(u: Any) -> Any:
        x = 8 / mp.sqrt(u)
        j, y, angle = mp.besselj(order, x), mp.bessely(order, x), x - (mpf(1) / 4 + mpf(order) / 2) * mp.pi
        c, s = mp.cos(angle), mp.sin(angle)
        return mp.sqrt(mp.pi * x / 2) * ((y * c - j * s) * x / 8 if is_second else j * c + y * s)

    return value


def _by_square(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda u: function(mp.sqrt(u))


def _dawson(x: Any) -> Any:
    return mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x)


def _scaled(function: Callable[[Any], Any], numerator: float) -> Callable[[Any], Any]:
    """sqrt(x) function(x) by u = numerator / x."""
    return lambda u: mp.sqrt(numerator / u) * function(numerator / u)


def _quantile(r: Any) -> Any:
    """-ndtri(exp(-r²)) / r, by Newton's steps for log Φ."""
    p, x = -r * r, r * mp.sqrt(2)
    x = mp.sqrt(2 * (r * r - mp.log(x * mp.sqrt(2 * mp.pi)))) if r > 2 else mpf(1)
    for _ in range(40):
        tail = mp.erfc(x / mp.sqrt(2)) / 2
        step = (mp.log(tail) - p) * tail * mp.sqrt(2 * mp.pi) * mp.exp(x * x / 2)
        x += step
        if abs(step) < mpf(10) ** -36 * x:
            break
    return x / r


def _logarithm(x: Any) -> Any:
    return mp.log(x / 2)


EXPANSIONS: dict[str, Expansion] = {
    "i0e_low": Expansion(0, 8, lambda x: mp.exp(-x) * mp.besseli(0, x)),
    "i0e_high": Expansion(0, 1, _scaled(lambda x: mp.exp(-x) * mp.besseli(0, x), 8)),
    "i1e_low": Expansion(0, 8, lambda x: mp.exp(-x) * mp.besseli(1, x) / x),
    "i1e_high": Expansion(0, 1, _scaled(lambda x: mp.exp(-x) * mp.besseli(1, x), 8)),
    "k0_low": Expansion(0, 4, _by_square(lambda x: mp.besselk(0, x) + _logarithm(x) * mp.besseli(0, x))),
    "k0e_high": Expansion(0, 1, _scaled(lambda x: mp.exp(x) * mp.besselk(0, x), 2)),
    "k1_low": Expansion(0, 4, _by_square(lambda x: x * (mp.besselk(1, x) - _logarithm(x) * mp.besseli(1, x)))),
    "k1e_high": Expansion(0, 1, _scaled(lambda x: mp.exp(x) * mp.besselk(1, x), 2)),
    "j0_low": Expansion(0, 64, _by_square(lambda x: mp.besselj(0, x))),
    "j1_low": Expansion(0, 64, _by_square(lambda x: mp.besselj(1, x) / x)),
    "y0_low": Expansion(0, 64, _by_square(lambda x: mp.bessely(0, x) - 2 / mp.pi * mp.log(x) * mp.besselj(0, x))),
    "y1_low": Expansion(
        0, 64, _by_square(lambda x: (mp.bessely(1, x) - 2 / mp.pi * (mp.log(x) * mp.besselj(1, x) - 1 / x)) / x)
    ),
    "j0_cosine": Expansion(0, 1, _phase(0, False)),
    "j0_sine": Expansion(0, 1, _phase(0, True)),
    "j1_cosine": Expansion(0, 1, _phase(1, False)),
    "j1_sine": Expansion(0, 1, _phase(1, True)),
    "dawsn_low": Expansion(0, 4, _by_square(lambda x: _dawson(x) / x)),
    "dawsn_middle": Expansion(2, 5, _dawson),
    "dawsn_high": Expansion(0, 0.04, lambda u: _dawson(1 / mp.sqrt(u)) / mp.sqrt(u)),
    "erfcx_low": Expansion(0, 2, lambda x: mp.exp(x * x) * mp.erfc(x)),
    "erfcx_high": Expansion(0, 0.5, lambda u: mp.exp(1 / u**2) * mp.erfc(1 / u) / u),
    "exp1_low": Expansion(0, 2, lambda x: mp.e1(x) + mp.log(x)),
    "exp1_high": Expansion(0, 0.5, lambda u: mp.exp(1 / u) * mp.e1(1 / u) / u),
    "expi_low": Expansion(0, 6, lambda x: mp.ei(x) - mp.log(x)),
    "expi_middle": Expansion(1 / 12, 1 / 6, lambda u: mp.exp(-1 / u) * mp.ei(1 / u) / u),
    "expi_high": Expansion(1 / 24, 1 / 12, lambda u: mp.exp(-1 / u) * mp.ei(1 / u) / u),
    "expi_far": Expansion(0, 1 / 24, lambda u: mp.exp(-1 / u) * mp.ei(1 / u) / u),
    "ndtri_middle": Expansion(0, 0.18062, _by_square(lambda y: mp.sqrt(2) * mp.erfinv(2 * y) / y)),
    "ndtri_low": Expansion(1.6, 3, _quantile),
    "ndtri_tail": Expansion(3, 7, _quantile),
    "ndtri_far": Expansion(7, 28, _quantile),
    "spence_near": Expansion(0.5, 1.5, lambda x: mp.polylog(2, 1 - x) / (1 - x)),
    "zeta_near": Expansion(-1, 2.5, lambda x: (x - 1) * mp.zeta(x)),
}


def coefficients(name: str) -> list[float]:
    """The coefficients of an expansion, the first of them halved, as numbers of double precision."""
    low, high, value = EXPANSIONS[name]
    with mpmath.workdps(DIGITS):
        middle, half = (mpf(high) + mpf(low)) / 2, (mpf(high) - mpf(low)) / 2
        angles = [mp.pi * (mpf(j) + mpf(1) / 2) / NODES for j in range(NODES)]
        values = [value(middle + half * mp.cos(angle)) for angle in angles]
        sums = [
            2 * mp.fsum([v * mp.cos(k * angle) for v, angle in zip(values, angles, strict=True)]) / NODES
            for k in range(NODES - 4)
        ]
        sums[0] /= 2
        largest = max(map(abs, sums))
        count = max([k for k, c in enumerate(sums) if abs(c) > CUT * largest]) + 1
        if count > NODES - 12:
            raise ValueError(f"{name} takes more than {NODES} nodes")
        return [float(c) for c in sums[:count]]


def module_text() -> str:
    """The text of the module of tables."""
    lines = [
        '"""Chebyshev coefficients of factors of special functions: for each name the bounds and the coefficients.',
        "",
        "Written by `python -m tests.support.special_expansions`, where the functions are defined.",
        '"""',
        "",
        "# fmt: off",
        "EXPANSIONS: dict[str, tuple[float, float, tuple[float, ...]]] = {",
    ]
    for name, (low, high, _) in EXPANSIONS.items():
        numbers = ", ".join(map(repr, coefficients(name)))
        lines += [f'    "{name}": ({low!r}, {high!r}, (', *INDENTED.wrap(numbers), "    )),"]
    return "\n".join([*lines, "}", "# fmt: on", ""])


if __name__ == "__main__":
    print(module_text(), end="")
