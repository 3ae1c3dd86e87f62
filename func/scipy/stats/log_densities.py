"""Logarithms of densities and of tails in forms whose derivatives keep their digits, by the name of SciPy's class.

SciPy's formulas are differences of large numbers for large parameters, overflow in powers that cancel, or are
logarithms of numbers that are zero in tails. Values are theirs wherever they have digits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sc

from func.interpreters.core import Array
from func.interpreters.primitives.special.gamma import gammaln_gap, stirling
from func.interpreters.primitives.special.incomplete import log_gammainc, log_gammaincc
from func.interpreters.primitives.special.logistic import exp_rest, log1prel, log_cosh

LARGE = 20
"""From this parameter on the gamma functions are Stirling's, whose leading terms are in the rest."""
NORMAL = 0.5 * np.log(2 * np.pi)


def log1p_rest(u: Array) -> Array:
    """log(1 + u) - u."""
    small = np.abs(u) < 1
    inner, outer = np.where(small, u, 0.0), np.where(small, 1.0, u)
    near = -inner * inner * (log1prel(inner, order=1) + 1 / (1 + inner))  # by the derivative of log(1 + u)/u
    return np.where(small, near, np.log1p(outer) - outer)


def log1p_square(x: Array) -> Array:
    """log(1 + x²), also where the square is beyond all numbers."""
    return 2 * np.log(np.hypot(1.0, x))


def log1p_power(log_x: Array, c: Array) -> Array:
    """log(1 + x^c) of log x."""
    return np.logaddexp(0.0, c * log_x)


def from_zero(power: Array, rest: Callable[[Any], Any]) -> Callable[[Any], Array]:
    """(power log x) + rest(x) for x >= 0, where rest(0) is 0."""

    def at(x: Array) -> Array:
        is_zero = x == 0
        return sc.xlogy(power, x) + np.where(is_zero, 0.0, rest(np.where(is_zero, 1.0, x)))

    return at


def distance(x: Array, m: Array) -> Array:
    """(x - m)² / x; far from m by its terms, of which the largest does not hide the others' derivatives."""
    near = np.abs(x - m) < 0.5 * m
    return np.where(near, (x - m) * ((x - m) / x), x - 2 * m + m * (m / x))


def gamma_of(log_x: Array, x: Array, a: Array) -> Array:
    """The gamma density times x; for a large shape by the distance to it, so that no large terms cancel."""
    log_x, x, a = np.broadcast_arrays(log_x, 1.0 * x, 1.0 * a)
    large = (a > LARGE) & (np.abs(x - a) < 0.5 * a)
    y, b = np.where(large, x, float(LARGE)), np.where(large, a, float(LARGE))
    near = b * log1p_rest((y - b) / b) + 0.5 * np.log(b) - NORMAL - stirling(b, order=0)
    return np.where(large, near, a * log_x - x - sc.gammaln(a))


def gamma(x: Array, a: Array) -> Array:
    is_zero = x == 0
    y = np.where(is_zero, 1.0, x)
    log_y = np.log(y)
    return np.where(is_zero, sc.xlogy(a - 1, x) - sc.gammaln(a), gamma_of(log_y, y, a) - log_y)


def _chi(x: Array, df: Array) -> Array:
    is_zero = x == 0
    y = np.where(is_zero, 1.0, x)
    log_y = np.log(y)
    at_zero = sc.xlogy(df - 1.0, x) - (df / 2 - 1) * np.log(2.0) - sc.gammaln(df / 2)
    inside = gamma_of(2 * log_y - np.log(2.0), y * y / 2, df / 2) + np.log(2.0) - log_y
    return np.where(is_zero, at_zero, inside)


def _nakagami(x: Array, nu: Array) -> Array:
    is_zero = x == 0
    y = np.where(is_zero, 1.0, x)
    log_y = np.log(y)
    at_zero = np.log(2.0) + sc.xlogy(2 * nu - 1, x) + nu * np.log(nu) - sc.gammaln(nu)
    inside = gamma_of(2 * log_y + np.log(nu), nu * y * y, nu) + np.log(2.0) - log_y
    return np.where(is_zero, at_zero, inside)


def _invgamma(x: Array, a: Array) -> Array:
    is_zero = x == 0
    y = np.where(is_zero, 1.0, x)
    return np.where(is_zero, -np.inf, gamma_of(-np.log(y), 1 / y, a) - np.log(y))


def _loggamma(x: Array, c: Array) -> Array:
    """The gamma distribution's of eˣ, times eˣ."""
    large = (c > LARGE) & (np.abs(x - np.log(c)) < 0.4)
    y, b = np.where(large, x, np.log(LARGE)), np.where(large, c, float(LARGE))
    near = -b * exp_rest(y - np.log(b)) + 0.5 * np.log(b) - NORMAL - stirling(b, order=0)
    return np.where(large, near, c * x - np.exp(x) - sc.gammaln(c))


def beta_of(log_x: Array, log_rest: Array, gap: Array, a: Array, b: Array) -> Array:
    """Of log x, log(1 - x) and x b - (1 - x) a, the density times x (1 - x); for large shapes by the gap."""
    log_x, log_rest, gap, a, b = np.broadcast_arrays(log_x, log_rest, gap, 1.0 * a, 1.0 * b)
    large = (a > LARGE) & (b > LARGE) & (np.abs(gap) < 0.5 * np.minimum(a, b))
    c, d = [np.where(large, s, float(LARGE)) for s in (a, b)]
    whole, e = c + d, np.where(large, gap, 0.0)
    deviance = c * log1p_rest(e / c) + d * log1p_rest(-e / d)
    rest = stirling(whole, order=0) - stirling(c, order=0) - stirling(d, order=0)
    near = deviance + rest + 0.5 * np.log(c / whole * d) - NORMAL
    return np.where(large, near, a * log_x + b * log_rest - sc.betaln(a, b))


def beta(x: Array, a: Array, b: Array) -> Array:
    inside = (x > 0) & (x < 1)
    y = np.where(inside, x, 0.5)
    log_y, log_rest = np.log(y), np.log1p(-y)
    density = beta_of(log_y, log_rest, y * b - (1 - y) * a, a, b) - log_y - log_rest
    return np.where(inside, density, sc.xlog1py(b - 1.0, -x) + sc.xlogy(a - 1.0, x) - sc.betaln(a, b))


def _of_ratio(ratio: Array, a: Array, b: Array) -> Array:
    """The beta density of r / (1 + r) times dx/dlog r."""
    below = ratio < 1
    r, inverse = np.where(below, ratio, 1.0), 1 / np.where(below, 1.0, ratio)
    log_x = np.where(below, np.log(r) - np.log1p(r), -np.log1p(inverse))
    log_rest = np.where(below, -np.log1p(r), np.log(inverse) - np.log1p(inverse))
    gap = np.where(below, (r * b - a) / (1 + r), (b - inverse * a) / (1 + inverse))
    return beta_of(log_x, log_rest, gap, a, b)


def _betaprime(x: Array, a: Array, b: Array) -> Array:
    is_zero = x == 0
    y = np.where(is_zero, 1.0, x)
    return np.where(is_zero, sc.xlogy(a - 1.0, x) - sc.betaln(a, b), _of_ratio(y, a, b) - np.log(y))


def _f(x: Array, dfn: Array, dfd: Array) -> Array:
    is_zero = x == 0
    y, a, b = np.where(is_zero, 1.0, x), dfn / 2, dfd / 2
    at_zero = sc.xlogy(a - 1.0, x) + a * np.log(dfn / dfd) - sc.betaln(a, b)
    return np.where(is_zero, at_zero, _of_ratio(dfn / dfd * y, a, b) - np.log(y))


def student(x: Array, df: Array) -> Array:
    normal, large = np.isinf(df), df > LARGE
    df = np.where(normal, 1.0, df)
    half = np.where(large, df, float(LARGE)) / 2
    steps = stirling(half + 0.5, order=0) - stirling(half, order=0)
    constant = (log1prel(0.5 / half, order=0) - 1) / 2 + steps - NORMAL
    plain = gammaln_gap(df / 2, np.asarray(0.5)) - 0.5 * np.log(np.pi * df)
    near = x * x < df
    inner, outer = np.where(near, x, 0.0), np.where(near, 1.0, x)
    power = 0.5 * inner * inner * (1 + 1 / df) * log1prel(inner * inner / df, order=0)
    far = (df + 1) * np.log(np.hypot(1.0, outer / np.sqrt(df)))
    density = np.where(large, constant, plain) - np.where(near, power, far)
    return np.where(normal, -x * x / 2 - NORMAL, density)


def _jf_skew_t(x: Array, a: Array, b: Array) -> Array:
    """1 ± x/h with h² = a + b + x²; the smaller one is (a + b) / (h (h + |x|))."""
    whole, right = a + b, x > 0
    size = np.abs(x)
    h = np.hypot(np.sqrt(whole), x)
    more, less = np.log1p(size / h), np.log(whole) - np.log(h) - np.log(h + size)
    plus, minus = np.where(right, more, less), np.where(right, less, more)
    constant = (whole - 1) * np.log(2.0) + sc.betaln(a, b) + 0.5 * np.log(whole)
    return (a + 0.5) * plus + (b + 0.5) * minus - constant


def _foldcauchy(x: Array, c: Array) -> Array:
    """(1 + (x - c)²) (1 + (x + c)²) = s² - 4 c² x² with s = 1 + c² + x²."""
    h = np.hypot(np.hypot(1.0, c), x)
    share = 2 * (c / h) * (x / h)
    return np.log(2 / np.pi) - 2 * np.log(h) - np.log1p(-share * share)


def _invgauss(x: Array, mu: Array) -> Array:
    is_zero = x == 0
    y = np.where(is_zero, 1.0, x)
    return np.where(is_zero, -np.inf, -NORMAL - 1.5 * np.log(y) - distance(y, mu) / (2 * mu) / mu)


def _recipinvgauss(x: Array, mu: Array) -> Array:
    is_zero = x == 0
    y = np.where(is_zero, 1.0, x)
    return np.where(is_zero, -np.inf, -NORMAL - 0.5 * np.log(y) - distance(y, 1 / mu) / 2)


def _fatiguelife(x: Array, c: Array) -> Array:
    is_zero = x == 0
    y = np.where(is_zero, 1.0, x)
    constant = np.log(2 * c) + NORMAL
    value = np.log1p(y) - distance(y, np.asarray(1.0)) / (2 * c) / c - constant - 1.5 * np.log(y)
    return np.where(is_zero, -np.inf, value)


def _exponweib(x: Array, a: Array, c: Array) -> Array:
    """With u = x^c, log(1 - e^(-u)) is c log x + log((1 - e^(-u))/u) for small u."""

    def rest(x: Array) -> Array:
        u = x**c
        small = u < 1
        inner, outer = np.where(small, u, 1.0), np.where(small, 1.0, u)
        far = (a - 1) * (np.log1p(-np.exp(-outer)) - c * np.log(x))
        return np.where(small, (a - 1) * np.log(sc.exprel(-inner)), far) - u

    return np.log(a) + np.log(c) + from_zero(a * c - 1, rest)(x)


def _exponnorm(x: Array, k: Array) -> Array:
    """Left of 1/K by erfcx, which does not hold the square that cancels."""
    z = x - 1 / k
    left = z < 0
    inner, outer = np.where(left, z, -1.0), np.where(left, 1.0, z)
    near = np.log(0.5 * sc.erfcx(-inner / np.sqrt(2.0))) - x * x / 2
    far = sc.log_ndtr(outer) + (0.5 / k - x) / k
    return np.where(left, near, far) - np.log(k)


def _johnsonsb(x: Array, a: Array, b: Array) -> Array:
    inside = (x > 0) & (x < 1)
    y = np.where(inside, x, 0.5)
    z = a + b * sc.logit(y)
    return np.where(inside, np.log(b) - np.log(y) - np.log1p(-y) - z * z / 2 - NORMAL, -np.inf)


def _johnsonsu(x: Array, a: Array, b: Array) -> Array:
    z = a + b * np.arcsinh(x)
    return np.log(b) - log1p_square(x) / 2 - z * z / 2 - NORMAL


def _norminvgauss(x: Array, a: Array, b: Array) -> Array:
    h = np.hypot(1.0, x)
    constant = np.log(a / np.pi) + np.sqrt((a - b) * (a + b))
    return constant + np.log(sc.k1e(a * h)) + b * x - a * h - np.log(h)


def _rice(x: Array, b: Array) -> Array:
    return from_zero(np.asarray(1.0), lambda x: np.log(sc.i0e(x * b)))(x) - (x - b) * (x - b) / 2


def _levy(x: Array) -> Array:
    is_zero = x == 0
    y = np.where(is_zero, 1.0, x)
    return np.where(is_zero, -np.inf, -NORMAL - 1.5 * np.log(y) - 0.5 / y)


def _invweibull(x: Array, c: Array) -> Array:
    is_zero = x == 0
    y = np.where(is_zero, 1.0, x)
    return np.where(is_zero, -np.inf, np.log(c) - (c + 1) * np.log(y) - y**-c)


def _burr(x: Array, c: Array, d: Array) -> Array:
    return np.log(c) + np.log(d) + from_zero(c * d - 1, lambda x: -(d + 1) * log1p_power(np.log(x), c))(x)


def _burr12(x: Array, c: Array, d: Array) -> Array:
    return np.log(c) + np.log(d) + from_zero(c - 1, lambda x: -(d + 1) * log1p_power(np.log(x), c))(x)


def _mielke(x: Array, k: Array, s: Array) -> Array:
    return np.log(k) + from_zero(k - 1, lambda x: -(1 + k / s) * log1p_power(np.log(x), s))(x)


def _kappa3(x: Array, a: Array) -> Array:
    """a (a + x^a)^(-1 - 1/a)."""

    def rest(x: Array) -> Array:
        return -(1 + 1 / a) * log1p_power(np.log(x) - np.log(a) / a, a)

    return from_zero(np.asarray(0.0), rest)(x) - np.log(a) / a


def _loglaplace(x: Array, c: Array) -> Array:
    power = np.where(x < 1, c - 1, -c - 1)
    return np.log(c / 2) + sc.xlogy(power, x)


LOG_DENSITIES: dict[str, dict[str, Callable[..., Any]]] = {
    name: {"logpdf": logpdf}
    for name, logpdf in {
        "beta": beta,
        "betaprime": _betaprime,
        "bradford": lambda x, c: -np.log(log1prel(c, order=0)) - np.log1p(c * x),
        "burr": _burr,
        "burr12": _burr12,
        "cauchy": lambda x: -np.log(np.pi) - log1p_square(x),
        "chi": _chi,
        "chi2": lambda x, df: gamma(x / 2, df / 2) - np.log(2.0),
        "exponnorm": _exponnorm,
        "exponweib": _exponweib,
        "f": _f,
        "fatiguelife": _fatiguelife,
        "fisk": lambda x, c: _burr(x, c, np.asarray(1.0)),
        "foldcauchy": _foldcauchy,
        "foldnorm": lambda x, c: np.log(2.0) - NORMAL - (x * x + c * c) / 2 + log_cosh(c * x),
        "gamma": gamma,
        "gumbel_l": lambda x: -1.0 - exp_rest(x),
        "gumbel_r": lambda x: -1.0 - exp_rest(-x),
        "halfcauchy": lambda x: np.log(2 / np.pi) - log1p_square(x),
        "halflogistic": lambda x: -np.log(2.0) - 2 * log_cosh(x / 2),
        "hypsecant": lambda x: -np.log(np.pi) - log_cosh(x),
        "invgamma": _invgamma,
        "invgauss": _invgauss,
        "invweibull": _invweibull,
        "jf_skew_t": _jf_skew_t,
        "johnsonsb": _johnsonsb,
        "johnsonsu": _johnsonsu,
        "kappa3": _kappa3,
        "laplace": lambda x: -np.log(2.0) - np.abs(x),
        "levy": _levy,
        "levy_l": lambda x: _levy(-x),
        "loggamma": _loggamma,
        "logistic": lambda x: -np.log(4.0) - 2 * log_cosh(x / 2),
        "loglaplace": _loglaplace,
        "mielke": _mielke,
        "moyal": lambda x: -NORMAL - 0.5 - exp_rest(-x) / 2,
        "nakagami": _nakagami,
        "norminvgauss": _norminvgauss,
        "pareto": lambda x, b: np.log(b) - (b + 1) * np.log(x),
        "recipinvgauss": _recipinvgauss,
        "rice": _rice,
        "skewcauchy": lambda x, a: -np.log(np.pi) - log1p_square(x / (1 + a * np.sign(x))),
        "t": student,
    }.items()
}


def _of_gamma(place: Callable[..., Any], decreasing: bool = False) -> dict[str, Callable[..., Any]]:
    """The logarithms of P and Q at place(x, *shapes), which gives their arguments."""

    def lower(*args: Any) -> Array:
        return log_gammainc(*place(*args))

    def upper(*args: Any) -> Array:
        return log_gammaincc(*place(*args))

    return {"logcdf": upper, "logsf": lower} if decreasing else {"logcdf": lower, "logsf": upper}


def _laplace_tail(x: Array) -> Array:
    """The logarithm of the distribution function."""
    left = x < 0
    inner, outer = np.where(left, x, -1.0), np.where(left, 1.0, x)
    return np.where(left, inner - np.log(2.0), np.log1p(-0.5 * np.exp(-outer)))


_GAMMA = _of_gamma(lambda x, a: (a, x))
LOG_TAILS: dict[str, dict[str, Callable[..., Any]]] = {
    "chi": _of_gamma(lambda x, df: (df / 2, x * x / 2)),
    "chi2": _of_gamma(lambda x, df: (df / 2, x / 2)),
    "erlang": _GAMMA,
    "gamma": _GAMMA,
    "halfnorm": _of_gamma(lambda x: (0.5, x * x / 2)),
    "invgamma": _of_gamma(lambda x, a: (a, 1 / x), decreasing=True),
    "laplace": {"logcdf": _laplace_tail, "logsf": lambda x: _laplace_tail(-x)},
    "levy": _of_gamma(lambda x: (0.5, 0.5 / x), decreasing=True),
    "levy_l": _of_gamma(lambda x: (0.5, -0.5 / x)),
    "maxwell": _of_gamma(lambda x: (1.5, x * x / 2)),
    "nakagami": _of_gamma(lambda x, nu: (nu, nu * x * x)),
}
