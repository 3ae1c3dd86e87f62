"""Logarithms of densities and of tails in forms whose derivatives keep their digits, by the name of SciPy's class.

SciPy's formulas are differences of large numbers for large parameters, overflow in powers that cancel, or are
logarithms of numbers that are zero in tails. Values are theirs wherever they have digits.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sc

import func
from func.interpreters.core import Array
from func.interpreters.primitives.special.gamma import gammaln_gap, stirling
from func.interpreters.primitives.special.incomplete import log_gammainc, log_gammaincc
from func.interpreters.primitives.special.logistic import exp_rest, log1prel, log_cosh
from func.scipy.stats.closed_tails import split

LARGE = 20
"""The parameter from which on the gamma functions are Stirling's, with the leading terms in the rest."""
NORMAL = 0.5 * np.log(2 * np.pi)


def log1p_rest(u: Array) -> Array:
    """log(1 + u) - u, for small u by the derivative of log(1 + u)/u."""

    def near(u: Array) -> Array:
        return -u * u * (log1prel(u, order=1) + 1 / (1 + u))

    return split(np.abs(u) < 1, u, near, 0.0, lambda u: np.log1p(u) - u, 1.0)


def log1p_square(x: Array, scale: Any = 1.0) -> Array:
    """log(1 + (x/scale)²), for large x by the logarithms of both, whose derivatives are those of powers."""
    near = np.abs(x) < scale
    inner, outer = np.where(near, x, 0.0), np.where(near, scale, np.abs(x))
    ratio, inverse = inner / scale, scale / outer
    return np.where(near, np.log1p(ratio * ratio), 2 * (np.log(outer) - np.log(scale)) + np.log1p(inverse * inverse))


def log1p_power(log_x: Array, c: Array) -> Array:
    """log(1 + x^c) of log x."""
    return np.logaddexp(0.0, c * log_x)


def from_zero(power: Array, rest: Callable[[Any], Any]) -> Callable[[Any], Array]:
    """(power log x) + rest(x) for x >= 0, where rest(0) is 0."""

    def at(x: Array) -> Array:
        is_zero = x == 0
        return sc.xlogy(power, x) + np.where(is_zero, 0.0, rest(np.where(is_zero, 1.0, x)))

    return at


def beside_zero(at_zero: Callable[..., Any]) -> Callable[[Callable[..., Array]], Callable[..., Array]]:
    """A decorator of a function of (x, *shapes) for x > 0, with another function at 0."""

    def decorate(inside: Callable[..., Array]) -> Callable[..., Array]:
        @functools.wraps(inside)
        def at(x: Array, *shapes: Array) -> Array:
            is_zero = x == 0
            return np.where(is_zero, at_zero(x, *shapes), inside(np.where(is_zero, 1.0, x), *shapes))

        return at

    return decorate


def nowhere(*args: Array) -> float:
    """The logarithm of a density of zero."""
    return -np.inf


def near_or_far(x: Array, m: Array, near: Callable[..., Array], far: Callable[..., Array]) -> Array:
    """A function of the distance to m: by its square near m, by its terms far from it, none of which hides another."""
    x, m = np.broadcast_arrays(1.0 * x, 1.0 * m)
    is_near = np.abs(x - m) < 0.5 * m
    return np.where(is_near, near(np.where(is_near, x, m)), far(np.where(is_near, 2 * m, x)))


def log1p_of_square(x: Array) -> Array:
    """log(1 - x²) for |x| < 1."""
    return split(np.abs(x) < 0.5, x, lambda x: np.log1p(-x * x), 0.0, lambda x: np.log1p(-x) + np.log1p(x), 0.5)


def product_error(a: Array, b: Array) -> Array:
    """The rounding error of the product a b, as a constant. Source: T. Dekker (1971), A floating-point technique."""
    a, b = func.stop_gradient(a), func.stop_gradient(b)

    def halves(x: Array) -> tuple[Array, Array]:
        top = x * 134217729.0 - (x * 134217729.0 - x)
        return top, x - top

    (a_top, a_rest), (b_top, b_rest) = halves(a), halves(b)
    error = a_rest * b_rest - (((a * b - a_top * b_top) - a_rest * b_top) - a_top * b_rest)
    return np.where(np.isfinite(error), error, 0.0)


def gamma_of(log_x: Array, x: Array, a: Array) -> Array:
    """The gamma density times x; for a large shape by the distance to it, so that no large terms cancel."""
    log_x, x, a = np.broadcast_arrays(log_x, 1.0 * x, 1.0 * a)
    large = (a > LARGE) & (np.abs(x - a) < 0.5 * a)
    y, b = np.where(large, x, float(LARGE)), np.where(large, a, float(LARGE))
    near = b * log1p_rest((y - b) / b) + 0.5 * np.log(b) - NORMAL - stirling(b, order=0)
    return np.where(large, near, a * log_x - x - sc.gammaln(a))


@beside_zero(lambda x, a: sc.xlogy(a - 1, x) - sc.gammaln(a))
def gamma(x: Array, a: Array) -> Array:
    log_x = np.log(x)
    return gamma_of(log_x, x, a) - log_x


@beside_zero(lambda x, df: sc.xlogy(df - 1.0, x) - (df / 2 - 1) * np.log(2.0) - sc.gammaln(df / 2))
def _chi(x: Array, df: Array) -> Array:
    log_x = np.log(x)
    return gamma_of(2 * log_x - np.log(2.0), x * x / 2, df / 2) + np.log(2.0) - log_x


@beside_zero(lambda x, nu: np.log(2.0) + sc.xlogy(2 * nu - 1, x) + nu * np.log(nu) - sc.gammaln(nu))
def _nakagami(x: Array, nu: Array) -> Array:
    log_x = np.log(x)
    return gamma_of(2 * log_x + np.log(nu), nu * x * x, nu) + np.log(2.0) - log_x


@beside_zero(nowhere)
def _invgamma(x: Array, a: Array) -> Array:
    return gamma_of(-np.log(x), 1 / x, a) - np.log(x)


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


def binom(k: Array, n: Array, p: Array) -> Array:
    """For many trials by the distance to the mean. Source: C. Loader (2000), Fast and accurate binomials."""
    k, n, p = np.broadcast_arrays(1.0 * k, 1.0 * n, p)
    rest, gap = n - k, n * p - k + product_error(n, p)
    large = (n > LARGE) & (np.abs(gap) < 0.5 * np.minimum(k, rest))
    wins, trials = np.where(large, k, 1.0), np.where(large, n, 2.0)
    losses, e = trials - wins, np.where(large, gap, 0.0)
    deviance = wins * log1p_rest(e / wins) + losses * log1p_rest(-e / losses)
    terms = stirling(trials, order=0) - stirling(wins, order=0) - stirling(losses, order=0)
    near = deviance + terms - 0.5 * (np.log1p(-wins / trials) + np.log(wins)) - NORMAL
    ways = gammaln_gap(rest + 1, k) - sc.gammaln(k + 1)
    return np.where(large, near, ways + sc.xlogy(k, p) + sc.xlog1py(rest, -p))


def beta(x: Array, a: Array, b: Array) -> Array:
    inside = (x > 0) & (x < 1)
    y = np.where(inside, x, 0.5)
    log_y, log_rest = np.log(y), np.log1p(-y)
    density = beta_of(log_y, log_rest, y * b - (1 - y) * a, a, b) - log_y - log_rest
    return np.where(inside, density, sc.xlog1py(b - 1.0, -x) + sc.xlogy(a - 1.0, x) - sc.betaln(a, b))


def _of_ratio(ratio: Array, log_ratio: Array, a: Array, b: Array) -> Array:
    """The beta density of r / (1 + r) times dx/dlog r."""
    below = ratio < 1
    r, inverse = np.where(below, ratio, 1.0), 1 / np.where(below, 1.0, ratio)
    log_x = np.where(below, log_ratio - np.log1p(r), -np.log1p(inverse))
    log_rest = np.where(below, -np.log1p(r), -log_ratio - np.log1p(inverse))
    gap = np.where(below, (r * b - a) / (1 + r), (b - inverse * a) / (1 + inverse))
    return beta_of(log_x, log_rest, gap, a, b)


@beside_zero(lambda x, a, b: sc.xlogy(a - 1.0, x) - sc.betaln(a, b))
def _betaprime(x: Array, a: Array, b: Array) -> Array:
    return _of_ratio(x, np.log(x), a, b) - np.log(x)


def _log_shares(dfn: Array, dfd: Array) -> Array:
    return np.log(dfn) - np.log(dfd)


@beside_zero(lambda x, n, m: sc.xlogy(n / 2 - 1.0, x) + n / 2 * _log_shares(n, m) - sc.betaln(n / 2, m / 2))
def _f(x: Array, dfn: Array, dfd: Array) -> Array:
    log_x = np.log(x)
    return _of_ratio(dfn / dfd * x, log_x + _log_shares(dfn, dfd), dfn / 2, dfd / 2) - log_x


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
    """1 ± x/h with h² = a + b + x²; the smaller one is s = (a + b) / (h (h + |x|)), and the larger one 2 - s."""
    whole, right = a + b, x > 0
    root, size = np.sqrt(whole), np.abs(x)
    h = np.hypot(root, x)
    far = size > root
    more = np.where(far, np.log(2.0) + np.log1p(-root / h * (root / (h + size)) / 2), np.log1p(size / h))
    less = np.log(whole) - np.log(h) - np.log(h + size)
    plus, minus = np.where(right, more, less), np.where(right, less, more)
    constant = (whole - 1) * np.log(2.0) + sc.betaln(a, b) + 0.5 * np.log(whole)
    return (a + 0.5) * plus + (b + 0.5) * minus - constant


def _foldcauchy(x: Array, c: Array) -> Array:
    """(1 + (x - c)²) (1 + (x + c)²) = s² - 4 c² x² with s = 1 + c² + x²."""
    h = np.hypot(np.hypot(1.0, c), x)
    share = 2 * (c / h) * (x / h)
    return np.log(2 / np.pi) - 2 * np.log(h) - np.log1p(-share * share)


@beside_zero(nowhere)
def _invgauss(x: Array, mu: Array) -> Array:
    square = near_or_far(
        x, mu, lambda y: ((y - mu) / mu) ** 2 / (2 * y), lambda y: y / (2 * mu) / mu - 1 / mu + 0.5 / y
    )
    return -NORMAL - 1.5 * np.log(x) - square


@beside_zero(nowhere)
def _recipinvgauss(x: Array, mu: Array) -> Array:
    square = near_or_far(
        x, 1 / mu, lambda y: ((1 - mu * y) / mu) ** 2 / (2 * y), lambda y: y / 2 - 1 / mu + 0.5 / mu / mu / y
    )
    return -NORMAL - 0.5 * np.log(x) - square


@beside_zero(nowhere)
def _fatiguelife(x: Array, c: Array) -> Array:
    square = near_or_far(x, np.ones_like(x), lambda y: (y - 1) ** 2 / y, lambda y: y - 2 + 1 / y)
    return np.log1p(x) - square / (2 * c) / c - np.log(2 * c) - NORMAL - 1.5 * np.log(x)


def _exponweib(x: Array, a: Array, c: Array) -> Array:
    """With u = x^c, log(1 - e^(-u)) is c log x + log((1 - e^(-u))/u) for small u."""
    u = x**c
    small = u < 1
    inner, outer, place = np.where(small, u, 1.0), np.where(small, 1.0, u), np.where(small, 1.0, x)
    near = sc.xlogy(a * c - 1, np.where(small, x, 1.0)) + (a - 1) * np.log(sc.exprel(-inner)) - inner
    far = (c - 1) * np.log(place) + (a - 1) * np.log1p(-np.exp(-outer)) - outer
    return np.log(a) + np.log(c) + np.where(small, near, far)


def _exponnorm(x: Array, k: Array) -> Array:
    """Left of 1/K by erfcx, without the square that cancels."""
    z = x - 1 / k

    def left(z: Array) -> Array:
        return np.log(0.5 * sc.erfcx(-z / np.sqrt(2.0))) - x * x / 2

    return split(z < 0, z, left, -1.0, lambda z: sc.log_ndtr(z) + (0.5 / k - x) / k, 1.0) - np.log(k)


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
    """The scaled function for large arguments, whose scale cancels the square of the difference."""
    z = x * b
    near, far = (x * x + b * b) / 2, (x - b) * (x - b) / 2
    return sc.xlogy(1.0, x) + split(
        z < 1, z, lambda z: np.log(sc.i0(z)) - near, 0.0, lambda z: np.log(sc.i0e(z)) - far, 1.0
    )


@beside_zero(nowhere)
def _levy(x: Array) -> Array:
    return -NORMAL - 1.5 * np.log(x) - 0.5 / x


@beside_zero(nowhere)
def _invweibull(x: Array, c: Array) -> Array:
    return np.log(c) - (c + 1) * np.log(x) - x**-c


def _burr(x: Array, c: Array, d: Array) -> Array:
    large = x > 1
    log_x = np.log(np.where(large, x, 1.0))
    far = -(c + 1) * log_x - (d + 1) * log1p_power(log_x, -c)
    near = from_zero(c * d - 1, lambda x: -(d + 1) * log1p_power(np.log(x), c))(np.where(large, 1.0, x))
    return np.log(c) + np.log(d) + np.where(large, far, near)


def _burr12(x: Array, c: Array, d: Array) -> Array:
    return np.log(c) + np.log(d) + from_zero(c - 1, lambda x: -(d + 1) * log1p_power(np.log(x), c))(x)


def _mielke(x: Array, k: Array, s: Array) -> Array:
    """For large x by (1 + x^(-s))^(-k/s), which is x^k / (1 + x^s)^(k/s)."""
    large = x > 1
    log_x = np.log(np.where(large, x, 1.0))
    far = -k / s * log1p_power(log_x, -s) - log_x - log1p_power(log_x, s)
    near = from_zero(k - 1, lambda x: -(1 + k / s) * log1p_power(np.log(x), s))(np.where(large, 1.0, x))
    return np.log(k) + np.where(large, far, near)


def _kappa3(x: Array, a: Array) -> Array:
    """a (a + x^a)^(-1 - 1/a)."""

    def rest(x: Array) -> Array:
        return -(1 + 1 / a) * log1p_power(np.log(x) - np.log(a) / a, a)

    return from_zero(np.asarray(0.0), rest)(x) - np.log(a) / a


def _rel_breitwigner(x: Array, rho: Array) -> Array:
    root = np.hypot(1.0, 1 / rho)
    constant = 0.5 * np.log(2.0) + np.log(root) - 0.5 * np.log1p(root) + np.log(2 / np.pi)
    u = near_or_far(x, rho, lambda x: (x - rho) * ((x + rho) / rho), lambda x: x * (x / rho) - rho)
    large = (x > 2 * rho) & (u > 1)
    far, inverse = np.where(large, x, 2 * rho), 1 / np.where(large, u, 1.0)
    logarithm = np.log(far - rho) + np.log(far + rho) - np.log(rho)
    tail = 2 * logarithm + np.log1p(inverse * inverse)
    return constant - np.where(large, tail, log1p_square(np.where(large, 0.0, u)))


def _loglaplace(x: Array, c: Array) -> Array:
    power = np.where(x < 1, c - 1, -c - 1)
    return np.log(c / 2) + sc.xlogy(power, x)


def _trapezoid(x: Array, c: Array, d: Array) -> Array:
    """The height 2 / (1 + d - c), below c times x / c, above d times (1 - x) / (1 - d)."""
    left, right = x < c, x > d
    rise = np.log(np.where(left, x, 1.0)) - np.log(np.where(left, c, 1.0))
    fall = np.log(np.where(right, 1 - x, 1.0)) - np.log(np.where(right, 1 - d, 1.0))
    return np.log(2.0) - np.log1p(d - c) + np.where(left, rise, np.where(right, fall, 0.0))


_LOGPDF: dict[str, Callable[..., Any]] = {
    "beta": beta,
    "betaprime": _betaprime,
    "bradford": lambda x, c: -np.log(log1prel(c, order=0)) - np.log1p(c * x),
    "burr": _burr,
    "burr12": _burr12,
    "cauchy": lambda x: -np.log(np.pi) - log1p_square(x),
    "chi": _chi,
    "chi2": lambda x, df: gamma(x / 2, df / 2) - np.log(2.0),
    "cosine": lambda x: 2 * np.log(np.cos(x / 2)) - np.log(np.pi),
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
    "rdist": lambda x, c: (c / 2 - 1) * log1p_of_square(x) - sc.betaln(c / 2, 0.5),
    "recipinvgauss": _recipinvgauss,
    "rel_breitwigner": _rel_breitwigner,
    "rice": _rice,
    "trapezoid": _trapezoid,
    "semicircular": lambda x: np.log(2 / np.pi) + 0.5 * log1p_of_square(x),
    "skewcauchy": lambda x, a: -np.log(np.pi) - log1p_square(x, 1 + a * np.sign(x)),
    "t": student,
}
LOG_DENSITIES = {name: {"logpdf": logpdf} for name, logpdf in _LOGPDF.items()}


def _of_gamma(place: Callable[..., Any], decreasing: bool = False) -> dict[str, Callable[..., Any]]:
    """The logarithms of P and Q at place(x, *shapes), which gives their arguments."""

    def lower(*args: Any) -> Array:
        return log_gammainc(*place(*args))

    def upper(*args: Any) -> Array:
        return log_gammaincc(*place(*args))

    return {"logcdf": upper, "logsf": lower} if decreasing else {"logcdf": lower, "logsf": upper}


def _laplace_tail(x: Array) -> Array:
    """The logarithm of the distribution function."""
    return split(x < 0, x, lambda x: x - np.log(2.0), -1.0, lambda x: np.log1p(-0.5 * np.exp(-x)), 1.0)


def _halfnorm(x: Array) -> Array:
    """The logarithm of the distribution function."""
    half = np.sqrt(0.5)
    return split(x < 1, x, lambda x: np.log(sc.erf(x * half)), 1.0, lambda x: np.log1p(-sc.erfc(x * half)), 1.0)


_GAMMA = _of_gamma(lambda x, a: (a, x))
LOG_TAILS: dict[str, dict[str, Callable[..., Any]]] = {
    "chi": _of_gamma(lambda x, df: (df / 2, x * x / 2)),
    "chi2": _of_gamma(lambda x, df: (df / 2, x / 2)),
    "erlang": _GAMMA,
    "gamma": _GAMMA,
    "gibrat": {"logcdf": lambda x: sc.log_ndtr(np.log(x)), "logsf": lambda x: sc.log_ndtr(-np.log(x))},
    "halfnorm": {"logcdf": _halfnorm, "logsf": lambda x: np.log(2.0) + sc.log_ndtr(-x)},
    "invgamma": _of_gamma(lambda x, a: (a, 1 / x), decreasing=True),
    "laplace": {"logcdf": _laplace_tail, "logsf": lambda x: _laplace_tail(-x)},
    "levy": _of_gamma(lambda x: (0.5, 0.5 / x), decreasing=True),
    "levy_l": _of_gamma(lambda x: (0.5, -0.5 / x)),
    "maxwell": _of_gamma(lambda x: (1.5, x * x / 2)),
    "nakagami": _of_gamma(lambda x, nu: (nu, nu * x * x)),
}
