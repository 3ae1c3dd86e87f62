"""Distribution functions in closed form by the logarithm of their cumulative hazard, by the name of SciPy's class.

With log S = -eᵘ (or log F = -eᵘ), all of F, S and their logarithms follow from u, and keep their digits in both tails.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sc

from func.interpreters.core import Array
from func.interpreters.primitives.special.incomplete import log_gammaincc
from func.interpreters.primitives.special.logistic import log1prel

Function = Callable[..., Any]
MOST = 6.7
"""The argument from which on exp(-e^u) is zero."""


def split(condition: Array, x: Array, near: Function, at: float, far: Function, elsewhere: float) -> Array:
    """near(x) where a condition holds, else far(x); each is computed at a safe number where the other one applies."""
    return np.where(condition, near(np.where(condition, x, at)), far(np.where(condition, elsewhere, x)))


def log_of_rest(u: Array) -> Array:
    """log(1 - exp(-eᵘ))."""

    def far(u: Array) -> Array:
        return np.log1p(-np.exp(-np.exp(np.minimum(u, MOST))))

    return split(u < -0.37, u, lambda u: u + np.log(sc.exprel(-np.exp(u))), -1.0, far, 0.0)


def log1mexp(x: Array) -> Array:
    """log(1 - eˣ) for x < 0."""
    return split(x > -0.69, x, lambda x: np.log(-np.expm1(x)), -0.5, lambda x: np.log1p(-np.exp(x)), -1.0)


def log_minus_log_of_rest(u: Array) -> Array:
    """log(-log(1 - exp(-eᵘ)))."""
    far = u > MOST - 0.2
    return np.where(far, -np.exp(u), np.log(-log_of_rest(np.where(far, 0.0, u))))


def log_softplus(y: Array) -> Array:
    """log log(1 + eʸ)."""
    left, right = y < -37, y > 37
    middle = np.where(left | right, 0.0, y)
    return np.where(left, y, np.where(right, np.log(np.where(right, y, 1.0)), np.log(np.log1p(np.exp(middle)))))


def log_expm1(y: Array) -> Array:
    """log(eʸ - 1) for y > 0."""
    return split(y < 1, y, lambda y: np.log(y) + np.log(sc.exprel(y)), 0.5, lambda y: y + np.log1p(-np.exp(-y)), 1.0)


def _by_hazard(u: Function, survival: bool = True) -> dict[str, Function]:
    """All four functions by u."""

    def probability(*args: Array) -> Array:
        return np.exp(-np.exp(np.minimum(u(*args), MOST)))

    def rest(*args: Array) -> Array:
        return -np.expm1(-np.exp(np.minimum(u(*args), MOST)))

    one, other = ("sf", "cdf") if survival else ("cdf", "sf")
    return {
        one: probability,
        other: rest,
        f"log{one}": lambda *args: -np.exp(u(*args)),
        f"log{other}": lambda *args: log_of_rest(u(*args)),
    }


def _normal(z: Function) -> dict[str, Function]:
    """Of a normal variable z(x)."""
    return {
        "cdf": lambda *args: sc.ndtr(z(*args)),
        "sf": lambda *args: sc.ndtr(-z(*args)),
        "logcdf": lambda *args: sc.log_ndtr(z(*args)),
        "logsf": lambda *args: sc.log_ndtr(-z(*args)),
    }


def _two_sided(left: Function, right: Function, middle: float = 0.0) -> dict[str, Function]:
    """By the logarithms of the lower tail below a point and of the upper tail above it."""

    def tails(x: Array, *shapes: Array) -> tuple[Array, Array]:
        below = x < middle
        one = left(np.where(below, x, middle - 0.5), *shapes)
        other = right(np.where(below, middle + 0.5, x), *shapes)
        return np.where(below, one, np.log1p(-np.exp(other))), np.where(below, np.log1p(-np.exp(one)), other)

    return {
        "cdf": lambda *args: np.exp(tails(*args)[0]),
        "sf": lambda *args: np.exp(tails(*args)[1]),
        "logcdf": lambda *args: tails(*args)[0],
        "logsf": lambda *args: tails(*args)[1],
    }


def _half_logistic(x: Array) -> Array:
    """The logarithm of log((1 + e^x) / 2)."""
    small = x < 1
    inner, outer = np.where(small, x, 0.5), np.where(small, 1.0, x)
    near = np.log(np.log1p(np.expm1(inner) / 2))
    return np.where(small, near, np.log(outer + np.log1p(np.exp(-outer)) - np.log(2.0)))


def _hypsecant_tail(x: Array) -> Array:
    """log(2/π arctan(e^x)) for x <= 0."""
    t = np.exp(np.maximum(x, -18.0))
    return np.log(2 / np.pi) + np.minimum(x + 18.0, 0.0) + np.log(np.arctan(t))


def _asymmetric(sign: float) -> Function:
    """The logarithm of a tail of the asymmetric Laplace distribution."""

    def tail(x: Array, kappa: Array) -> Array:
        k = kappa**-sign
        return sign * -x / k + np.log(k) - np.log(kappa + 1 / kappa)

    return tail


def _symmetric(tail: Function) -> dict[str, Function]:
    """The logarithms of both sides by the logarithm of Q(|x|), of which each side has half."""

    def half(x: Array, *shapes: Array) -> Array:
        return tail(np.abs(x), *shapes) - np.log(2.0)

    sides = _two_sided(half, half)
    return {name: sides[name] for name in ("logcdf", "logsf")}


def _gompertz(x: Array, c: Array) -> Array:
    return np.log(c) + log_expm1(x)


def _mielke(x: Array, k: Array, s: Array) -> Array:
    """log(1 + x^-s) / s is -log x + log(1 + x^s) / s below 1."""
    small, log_x = x < 1, np.log(x)
    inner, outer = np.where(small, log_x, -1.0), np.where(small, 1.0, log_x)
    near = np.log(np.logaddexp(0.0, s * inner) / s - inner)
    return np.log(k) + np.where(small, near, log_softplus(-s * outer) - np.log(s))


CLOSED_TAILS: dict[str, dict[str, Function]] = {
    "burr": _by_hazard(lambda x, c, d: np.log(d) + log_softplus(-c * np.log(x)), survival=False),
    "burr12": _by_hazard(lambda x, c, d: np.log(d) + log_softplus(c * np.log(x))),
    "dgamma": _symmetric(lambda x, a: log_gammaincc(a, x)),
    "dweibull": _symmetric(lambda x, c: -(x**c)),
    "exponpow": _by_hazard(lambda x, b: log_expm1(np.exp(b * np.log(x)))),
    "exponweib": _by_hazard(lambda x, a, c: np.log(a) + log_minus_log_of_rest(c * np.log(x)), survival=False),
    "fatiguelife": _normal(lambda x, c: (np.sqrt(x) - 1 / np.sqrt(x)) / c),
    "fisk": _by_hazard(lambda x, c: log_softplus(-c * np.log(x)), survival=False),
    "genlogistic": _by_hazard(lambda x, c: np.log(c) + log_softplus(-x), survival=False),
    "gompertz": _by_hazard(_gompertz),
    "gumbel_l": _by_hazard(lambda x: x),
    "gumbel_r": _by_hazard(lambda x: -x, survival=False),
    "halflogistic": {**_by_hazard(_half_logistic), "cdf": lambda x: np.tanh(x / 2)},
    "hypsecant": _two_sided(_hypsecant_tail, lambda x: _hypsecant_tail(-x)),
    "laplace_asymmetric": _two_sided(_asymmetric(-1.0), _asymmetric(1.0)),
    "loglaplace": _two_sided(
        lambda x, c: c * np.log(x) - np.log(2.0), lambda x, c: -c * np.log(x) - np.log(2.0), middle=1.0
    ),
    "invweibull": _by_hazard(lambda x, c: -c * np.log(x), survival=False),
    "johnsonsb": _normal(lambda x, a, b: a + b * sc.logit(x)),
    "johnsonsu": _normal(lambda x, a, b: a + b * np.arcsinh(x)),
    "kappa3": _by_hazard(lambda x, a: log_softplus(np.log(a) - a * np.log(x)) - np.log(a), survival=False),
    "lomax": _by_hazard(lambda x, c: np.log(c) + np.log(x * log1prel(x, order=0))),
    "mielke": _by_hazard(_mielke, survival=False),
    "pareto": _by_hazard(lambda x, b: np.log(b) + np.log(np.log(x))),
    "powerlaw": _by_hazard(lambda x, a: np.log(a) + np.log(-np.log(x)), survival=False),
    "reciprocal": {"cdf": lambda x, a, b: np.log1p((x - a) / a) / np.log(b / a)},
    "weibull_max": _by_hazard(lambda x, c: c * np.log(-x), survival=False),
    "weibull_min": _by_hazard(lambda x, c: c * np.log(x)),
}
