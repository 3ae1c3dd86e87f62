"""Densities, and the methods of distributions that SciPy itself computes, by the name of SciPy's class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.special as sc
import scipy.stats

import func
from func.interpreters.core import Array
from func.interpreters.primitives.special import incomplete
from func.interpreters.primitives.special.logistic import exp_rest, log1prel
from func.scipy.stats import (
    closed_tails,
    counting,
    double_exponential,
    log_densities,
    masses,
    skewed_gamma,
    studentized_ranges,
)
from func.scipy.stats.closed_tails import log1mexp
from func.scipy.stats.host_values import along, from_host

HOST: dict[str, str] = {
    "betaprime": "cdf sf ppf isf",
    "cosine": "cdf sf ppf isf",
    "f": "cdf sf ppf isf",
    "kstwobign": "cdf sf ppf isf",
    "landau": "cdf sf ppf isf",
    "ncx2": "cdf sf ppf isf",
    "pearson3": "cdf sf ppf isf",
    "rdist": "cdf sf ppf isf",
    "rice": "cdf sf ppf isf",
    "skewnorm": "cdf sf ppf isf",
    "beta": "cdf sf ppf isf entropy",
    "burr": "stats",
    "burr12": "stats",
    "cauchy": "ppf isf",
    "chi2": "isf",
    "crystalball": "munp",
    "genhyperbolic": "cdf sf stats",
    "gausshyper": "munp",
    "geninvgauss": "cdf munp",
    "gompertz": "entropy",
    "invgauss": "ppf isf entropy",
    "irwinhall": "pdf cdf sf ppf isf stats",
    "jf_skew_t": "cdf sf ppf isf munp",
    "kappa4": "stats entropy",
    "kappa3": "sf stats",
    "ksone": "pdf cdf sf ppf isf",
    "kstwo": "pdf cdf sf ppf isf",
    "levy_stable": "pdf cdf sf ppf isf stats",
    "ncf": "cdf sf ppf isf stats",
    "nct": "cdf sf ppf isf stats",
    "norminvgauss": "cdf sf isf",
    "semicircular": "ppf isf",
    "studentized_range": "cdf sf munp",
    "t": "cdf sf ppf isf entropy",
    "truncexpon": "munp",
    "truncnorm": "ppf isf munp stats",
    "tukeylambda": "cdf entropy stats",
    "vonmises": "cdf",
    "wald": "ppf isf entropy",
}
HOST.update(masses.HOST)
"""Methods whose values are SciPy's own, with derivatives that follow from the density."""


def _exp(logpdf: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """A logarithmic density and the density."""
    return {"logpdf": logpdf, "pdf": lambda *args: np.exp(logpdf(*args))}


def _log(pdf: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """A density and its logarithm."""
    return {"pdf": pdf, "logpdf": lambda *args: np.log(pdf(*args))}


def _with_powers(rest: Array, *powers: tuple[Array, Array]) -> Array:
    """e^rest Π base^exponent for bases >= 0; it differentiates where a base is 0, unlike its logarithm.

    There it uses the power itself, if its exponent is positive.
    """
    edges: Any = 1.0
    for base, exponent in powers:
        at_end = (base == 0) & (exponent > 0)
        rest = rest + sc.xlogy(exponent, np.where(at_end, 1.0, base))
        edges = edges * np.power(np.where(at_end, base, 1.0), np.where(at_end, exponent, 1.0))
        rest = np.where(at_end, np.minimum(rest, 700.0), rest)  # infinity times the zero of the power is NaN
    return np.exp(rest) * edges


def log_kv(v: Array, z: Array) -> Array:
    """The logarithm of the modified Bessel function K_v(z), z > 0, differentiable by its order.

    The trapezoidal rule for ∫₀^∞ exp(-z cosh t) cosh(v t) dt, DLMF 10.32.9, on an interval with all of the integral.
    """
    v, z = np.broadcast_arrays(v, z)
    order, at = np.abs(func.stop_gradient(v)), func.stop_gradient(z)
    reach = np.arccosh(1 + 45 / at)
    for _ in range(4):
        reach = np.arccosh(1 + (45 + order * reach) / at)
    peak, size = np.arcsinh(order / at), np.hypot(order, at)
    low = np.maximum(0.0, peak - np.sqrt(90 / size) - 60 / size)
    count = 128
    step = (reach - low) / count
    t = low[..., None] + step[..., None] * np.arange(count + 1.0)
    even = np.logaddexp(v[..., None] * t, -v[..., None] * t) - np.log(2.0)
    exponents = even - 2 * z[..., None] * np.sinh(t / 2) ** 2
    ends = np.log(np.where(np.arange(count + 1) == 0, 0.5, 1.0))
    return counting.log_sum(exponents + ends, step) - z


def _geninvgauss(x: Array, p: Array, b: Array) -> Array:
    return (p - 1) * np.log(x) - b * (x + 1 / x) / 2 - np.log(2.0) - log_kv(p, b)


def _genhyperbolic(x: Array, p: Array, a: Array, b: Array) -> Array:
    gamma = np.sqrt((a - b) * (a + b))
    root = np.hypot(1.0, x)
    constant = p * np.log(gamma) - 0.5 * np.log(2 * np.pi) - (p - 0.5) * np.log(a) - log_kv(p, gamma)
    return constant + b * x + (p - 0.5) * np.log(root) + log_kv(p - 0.5, a * root)


def _ncx2(x: Array, df: Array, nc: Array) -> Array:
    x, df, nc = np.broadcast_arrays(x, df, nc)
    at, of, by = [func.stop_gradient(s) for s in (x, df, nc)]
    centre = counting.positive_root(of / 2 + 1, by * at / 4 - of / 2)
    x, half, nc = x[..., None], df[..., None] / 2, nc[..., None]

    def exponent(j: Array) -> Array:
        gamma = sc.xlogy(half + j - 1, x / 2) - x / 2 - sc.gammaln(half + j) - np.log(2.0)
        return counting.log_poisson(j, nc / 2) + gamma

    return counting.mixture(exponent, centre)


def _ncf(x: Array, dfn: Array, dfd: Array, nc: Array) -> Array:
    x, dfn, dfd, nc = np.broadcast_arrays(x, dfn, dfd, nc)
    at, m, n, by = [func.stop_gradient(s) for s in (x, dfn, dfd, nc)]
    share = by / 2 * m * at / (n + m * at)
    centre = counting.positive_root(m / 2 + 1 - share, share * (m + n) / 2 - m / 2)
    x, a, b, nc = x[..., None], dfn[..., None] / 2, dfd[..., None] / 2, nc[..., None]
    ratio = a / b

    def exponent(j: Array) -> Array:
        powers = (a + j) * np.log(ratio) + sc.xlogy(a + j - 1, x) - (a + b + j) * np.log1p(ratio * x)
        return counting.log_poisson(j, nc / 2) + powers - sc.betaln(a + j, b)

    return counting.mixture(exponent, centre)


def _nct(x: Array, df: Array, nc: Array) -> Array:
    """The logarithm of ∫ y φ(x y - nc) g(y) dy with g the density of √(χ²/df), by trapezoids in log y."""
    x, df, nc = np.broadcast_arrays(x, df, nc)
    at, of, by = [func.stop_gradient(s) for s in (x, df, nc)]
    square = at * at + of
    peak = (by * at + np.sqrt((by * at) ** 2 + 4 * square * (of + 1))) / (2 * square)
    width = 1 / np.sqrt(2 * square * peak * peak - by * at * peak)
    left, right = np.maximum(9 * width, 45 / (of + 1)), 9 * width
    count = 160
    step = (left + right) / count
    u = (np.log(peak) - left)[..., None] + step[..., None] * np.arange(count + 1.0)
    y = np.exp(u)
    x, df, nc = x[..., None], df[..., None], nc[..., None]
    exponents = (df + 1) * u - (x * y - nc) ** 2 / 2 - df * y * y / 2
    constant = np.log(2.0) + df / 2 * np.log(df / 2) - sc.gammaln(df / 2) - 0.5 * np.log(2 * np.pi)
    return counting.log_sum(exponents, step) + constant[..., 0]


def _gausshyper(x: Array, a: Array, b: Array, c: Array, z: Array) -> Array:
    log_u, log_rest, log_weights = double_exponential.unit_logarithms()
    a1, b1, c1, z1 = [np.expand_dims(s, -1) for s in (a, b, c, z)]
    exponents = (a1 - 1) * log_u + (b1 - 1) * log_rest - c1 * np.log1p(z1 * np.exp(log_u)) + log_weights
    powers = sc.xlogy(a - 1, x) + sc.xlog1py(b - 1, -x) - c * np.log1p(z * x)
    return powers - counting.log_sum(exponents, np.asarray(1.0))


def _beta_pdf(x: Array, a: Array, b: Array) -> Array:
    at_end = x == 1
    near = sc.xlog1py(b - 1.0, -np.where(at_end, 0.0, x))
    return _with_powers(near - sc.betaln(a, b), (x, a - 1.0), (np.where(at_end, 1 - x, 1.0), b - 1.0))


def _f_pdf(x: Array, dfn: Array, dfd: Array) -> Array:
    n, m = 1.0 * dfn, 1.0 * dfd
    constant = m / 2 * np.log(m) + n / 2 * np.log(n) - sc.betaln(n / 2, m / 2)
    return _with_powers(constant - (n + m) / 2 * np.log(m + n * x), (x, n / 2 - 1))


def _gengamma_pdf(x: Array, a: Array, c: Array) -> Array:
    is_end = (x == 0) & (c < 0)
    x = np.where(is_end, 1.0, x)
    density = _with_powers(np.log(np.abs(c)) - x**c - sc.gammaln(a), (x, c * a - 1))
    return np.where(is_end, 0.0, density)


def _argus_pdf(x: Array, chi: Array) -> Array:
    y = 1 - x * x
    mass = sc.gammainc(1.5, chi**2 / 2) / 2
    constant = 3 * np.log(chi) - np.log(2 * np.pi) / 2 - np.log(mass)
    return _with_powers(constant - chi**2 * y / 2, (x, np.asarray(1.0)), (y, np.asarray(0.5)))


def _burr_pdf(x: Array, c: Array, d: Array) -> Array:
    """SciPy's formula; at zero the one that is finite there."""
    is_zero = x == 0
    y, zero = np.where(is_zero, 1.0, x), np.where(is_zero, x, 0.0)
    inner = c * d * y ** (-c - 1.0) / (1 + y ** (-c)) ** (d + 1.0)
    power = np.where(is_zero, c, 1.0)
    at_zero = c * d * zero ** np.where(is_zero, c * d - 1, 1.0) / (1 + zero**power) ** (d + 1.0)
    return np.where(is_zero, at_zero, inner)


def _beta_slope(x: Array, shapes: Sequence[Array], dots: Sequence[Any]) -> Array:
    """∂I_x(a, b) along tangents of a and b: an integral with the distances to both ends exact."""
    a, b = np.broadcast_arrays(*shapes)
    lower = func.stop_gradient(x) < func.stop_gradient(a / (a + b))
    near = np.where(lower, x, 1 - x)[..., None]
    log_u, _, log_weights = double_exponential.unit_logarithms()
    log_near = np.log(near) + log_u
    log_far = np.log1p(-np.exp(log_near))
    side = lower[..., None]
    log_t, log_rest = np.where(side, log_near, log_far), np.where(side, log_far, log_near)

    def tail(a: Array, b: Array) -> Array:
        a, b = np.broadcast_arrays(a, b)
        a, b = a[..., None], b[..., None]
        exponents = (a - 1) * log_t + (b - 1) * log_rest - sc.betaln(a, b) + log_weights + np.log(near)
        return np.sum(np.exp(exponents), axis=-1)

    slope = along(tail, [a, b], [None if d is None else np.broadcast_to(d, np.shape(a)) for d in dots])
    return np.where(lower, slope, -slope)


def _student_slope(x: Array, shapes: Sequence[Array], dots: Sequence[Any]) -> Array:
    """∂F/∂df by the incomplete beta function."""
    return incomplete.student_slope(shapes[0] + 0.0, x) * dots[0]


def _f_slope(x: Array, shapes: Sequence[Array], dots: Sequence[Any]) -> Array:
    """∂F along tangents of both degrees of freedom, by the incomplete beta function."""
    dfn, dfd = [s + 0.0 for s in shapes]
    slopes = (incomplete.f_slope_dfn, incomplete.f_slope_dfd)
    by_dfn, by_dfd = [0.0 if dot is None else slope(dfn, dfd, x) * dot for slope, dot in zip(slopes, dots, strict=True)]
    return np.add(by_dfn, by_dfd)


def _rdist_slope(x: Array, shapes: Sequence[Array], dots: Sequence[Any]) -> Array:
    """∂F/∂c: a beta distribution on (-1, 1) with both shapes c / 2."""
    half = [shapes[0] / 2] * 2
    return _beta_slope((x + 1) / 2, half, [None if dots[0] is None else dots[0] / 2] * 2)


def _skewnorm(x: Array, a: Array) -> Array:
    """Without SciPy's branch for a = 0, whose value does not depend on a."""
    return np.log(2.0) - x * x / 2 - 0.5 * np.log(2 * np.pi) + sc.log_ndtr(a * x)


def _log1p_over(c: Array, x: Array) -> Array:
    """log(1 + c x) / c, which is x at c = 0."""
    return x * log1prel(c * x, order=0)


def _genextreme(x: Array, c: Array) -> Array:
    """log(-log F)."""
    return -_log1p_over(-c, x)


def _genextreme_logpdf(x: Array, c: Array) -> Array:
    y = _genextreme(x, c)
    at_end = np.isinf(y)
    inner = np.where(at_end, 0.0, y)
    ends = np.where((y > 0) | (c < 1), -np.inf, np.where(c > 1, np.inf, 0.0))
    return np.where(at_end, ends, -1.0 - exp_rest(inner) - c * inner)


GENEXTREME: dict[str, Callable[..., Any]] = {
    **_exp(_genextreme_logpdf),
    "logcdf": lambda x, c: -np.exp(_genextreme(x, c)),
    "cdf": lambda x, c: np.exp(-np.exp(_genextreme(x, c))),
    "sf": lambda x, c: -np.expm1(-np.exp(_genextreme(x, c))),
    "ppf": lambda q, c: -sc.boxcox(-np.log(q), c),
    "isf": lambda q, c: -sc.boxcox(-np.log1p(-q), c),
}


def _genpareto_pdf(x: Array, c: Array) -> Array:
    """At the upper end, for negative c, the power that approximates it there."""
    at_end = (c < 0) & (1 + c * x == 0)
    power = np.where(at_end, -1 / np.where(at_end, c, -1.0) - 1, 1.0)
    near = np.where(at_end, 1 + np.where(at_end, c, 0.0) * x, 1.0)
    return np.exp(-(1 + c) * _log1p_over(c, np.where(at_end, 0.0, x))) * near**power


GENPARETO: dict[str, Callable[..., Any]] = {
    "logpdf": lambda x, c: -(1 + c) * _log1p_over(c, x),
    "pdf": lambda x, c: _genpareto_pdf(x, c),
    "logsf": lambda x, c: -_log1p_over(c, x),
    "sf": lambda x, c: np.exp(-_log1p_over(c, x)),
    "cdf": lambda x, c: -np.expm1(-_log1p_over(c, x)),
    "ppf": lambda q, c: -sc.boxcox1p(-q, -c),
    "isf": lambda q, c: -sc.boxcox(q, -c),
    "entropy": lambda c: 1.0 + c,
}


def _kappa4_logcdf(x: Array, h: Array, k: Array) -> Array:
    """log F = log(1 - h w) / h with w = (1 - k x)^(1/k)."""
    return -_log1p_over(-h, np.exp(-_log1p_over(-k, x)))


def _kappa4_logpdf(x: Array, h: Array, k: Array) -> Array:
    return -(1 - k) * _log1p_over(-k, x) + (1 - h) * _kappa4_logcdf(x, h, k)


KAPPA4: dict[str, Callable[..., Any]] = {
    **_exp(_kappa4_logpdf),
    "logcdf": _kappa4_logcdf,
    "cdf": lambda x, h, k: np.exp(_kappa4_logcdf(x, h, k)),
    "ppf": lambda q, h, k: -sc.boxcox(-sc.boxcox(q, h), k),
}


def _log_normal_mass(a: Array, b: Array) -> Array:
    """log(Φ(b) - Φ(a)) for a < b, from the side where the terms are small."""
    a, b = [np.where(np.isinf(x), func.stop_gradient(x), x) for x in (a, b)]
    left, right = b <= 0, a > 0
    aside = left | right
    high, low = np.where(right, -a, b), np.where(right, -b, a)
    log_high, log_low = sc.log_ndtr(np.where(aside, high, 0.0)), sc.log_ndtr(np.where(aside, low, -1.0))
    a, b = np.where(aside, -1.0, a), np.where(aside, 1.0, b)
    return np.where(aside, log_high + log1mexp(log_low - log_high), np.log1p(-sc.ndtr(a) - sc.ndtr(-b)))


def _truncnorm_log(name: str) -> Callable[..., Any]:
    def method(x: Array, a: Array, b: Array) -> Array:
        whole, below, above = _log_normal_mass(a, b), _log_normal_mass(a, x), _log_normal_mass(x, b)
        one, other = (below - whole, above - whole) if name == "logcdf" else (above - whole, below - whole)
        near = one > -0.1
        return np.where(near, np.log1p(-np.exp(np.where(near, other, -1.0))), one)

    return method


TRUNCNORM: dict[str, Callable[..., Any]] = {
    **_exp(lambda x, a, b: -(x * x) / 2 - 0.5 * np.log(2 * np.pi) - _log_normal_mass(a, b)),
    "logcdf": _truncnorm_log("logcdf"),
    "logsf": _truncnorm_log("logsf"),
    "cdf": lambda *args: np.exp(TRUNCNORM["logcdf"](*args)),
    "sf": lambda *args: np.exp(TRUNCNORM["logsf"](*args)),
}


def _kstwobign(x: Array) -> Array:
    """The logarithm of Kolmogorov's density by the series that converges fast, with its first term separate.

    Source: W. Feller (1948); DLMF 20.7.32 turns one series into the other.
    """
    large, outside = x > 0.82, x <= 0
    k = np.arange(2.0, 9.0)
    far = np.where(large, x, 1.0)
    near = np.where(large | outside, 0.5, x)
    terms = (-1) ** (k - 1) * k * k * np.exp(-2 * (k * k - 1) * far[..., None] ** 2)
    right = np.log(8 * far) - 2 * far * far + np.log1p(np.sum(terms, axis=-1))
    first, c = np.pi**2 / 8, ((2 * k - 1) * np.pi) ** 2 / 8
    square = near * near
    terms = np.exp(-(c - first) / square[..., None]) * (2 * c - square[..., None])
    factor = 2 * first - square + np.sum(terms, axis=-1)
    left = np.log(2 * np.pi) / 2 - first / square - 4 * np.log(near) + np.log(factor)
    return np.where(large, right, np.where(outside, -np.inf, left))


def _landau(x: Array) -> Array:
    """Landau's density ∫₀^∞ e^(-t ln t - y t) sin(π t) dt / π, on the left along the imaginary axis.

    SciPy's has the unit scale of stable distributions: y = π x / 2 + ln(π / 2).
    Source: K. Kölbig, B. Schorr (1984), A program package for the Landau distribution.
    """
    y = np.pi / 2 * x + np.log(np.pi / 2)
    right = y > 0.5
    t, weight = double_exponential.half_line(1 / 64)
    far, near = np.where(right, y, 1.0)[..., None], np.where(right, 0.0, y)[..., None]
    bounded = np.minimum(t, 60.0)
    real = np.exp(-sc.xlogy(bounded, bounded) - far * bounded) * np.sin(np.pi * bounded)
    imaginary = np.exp(-np.pi / 2 * bounded) * np.cos(near * bounded + sc.xlogy(bounded, bounded))
    weight = np.where(t < 60.0, weight, 0.0)
    return np.sum(weight * np.where(right[..., None], real, imaginary), axis=-1) / 2


def _tukeylambda(x: Array, lam: Array) -> Array:
    """1 / Q'(F) with F the distribution function, which has the quantiles Q(q) = (q^λ - (1 - q)^λ) / λ."""
    p = from_host(scipy.stats.tukeylambda, "cdf")(x, lam)
    return 1 / (p ** (lam - 1) + (1 - p) ** (lam - 1))


def _tukeylambda_slope(x: Array, shapes: Sequence[Array], dots: Sequence[Any]) -> Array:
    """∂F/∂λ = -f ∂Q/∂λ."""
    (lam,) = shapes
    p = from_host(scipy.stats.tukeylambda, "cdf")(x, lam)
    quantile = along(lambda lam: sc.boxcox(p, lam) - sc.boxcox1p(-p, lam), [lam], dots)
    return -_tukeylambda(x, lam) * quantile


def _vonmises_slope(x: Array, shapes: Sequence[Array], dots: Sequence[Any]) -> Array:
    """∂F/∂κ by the Gauss counterpart of the trapezoidal rule; the angle is reduced to (-π, π)."""
    (kappa,) = shapes
    x = x - 2 * np.pi * np.round(func.stop_gradient(x) / (2 * np.pi))
    node, weight = double_exponential.legendre(96)

    def half(kappa: Array) -> Array:
        angle = np.expand_dims(x, -1) * node
        k = np.expand_dims(kappa, -1)
        density = np.exp(k * sc.cosm1(angle)) / (2 * np.pi * sc.i0e(k))
        return x * np.sum(weight * density, axis=-1)

    return along(half, [kappa], dots)


def _log_mills(z: Array) -> Array:
    """The logarithm of Mills' ratio."""
    above, whole = z > 0, z < -20  # where the probability on the other side vanishes
    right, middle = np.where(above, z, 1.0), np.where(above | whole, -1.0, z)
    far = np.log(sc.erfcx(right / np.sqrt(2.0))) + 0.5 * np.log(np.pi / 2)
    left = np.where(whole, 0.0, sc.log_ndtr(-middle)) + z * z / 2 + 0.5 * np.log(2 * np.pi)
    return np.where(above, far, left)


def _dpareto_lognorm(x: Array, u: Array, s: Array, a: Array, b: Array) -> Array:
    """Source: D. Reed, M. Jorgensen (2004), The double Pareto-lognormal distribution, equation 1."""
    at_end = x == 0
    log_x = np.log(np.where(at_end, 1.0, x))
    z = (log_x - u) / s
    constant = np.log(a) + np.log(b) - np.log(a + b) - log_x - z * z / 2 - 0.5 * np.log(2 * np.pi)
    return np.where(at_end, -np.inf, constant + np.logaddexp(_log_mills(a * s - z), _log_mills(b * s + z)))


def _gennorm_cdf(x: Array, beta: Array) -> Array:
    near = np.abs(x) < 1e-20
    safe = np.where(near, 1.0, x)
    half = 0.5 * np.sign(safe)
    away = (0.5 + half) - half * sc.gammaincc(1 / beta, np.abs(safe) ** beta)
    return np.where(near, 0.5 + x * beta / (2 * sc.gamma(1 / beta)), away)


def _gennorm_logcdf(x: Array, beta: Array) -> Array:
    far = x < -1
    inner, outer = np.where(far, -0.5, x), np.where(far, -x, 1.0)
    tail = incomplete.log_gammaincc(1 / beta, outer**beta) - np.log(2.0)
    return np.where(far, tail, np.log(_gennorm_cdf(inner, beta)))


def _gennorm_ppf(q: Array, beta: Array) -> Array:
    near = q == 0.5
    safe = np.where(near, 0.25, q)
    sign = np.sign(safe - 0.5)
    away = sign * sc.gammainccinv(1 / beta, (1.0 + sign) - 2.0 * sign * safe) ** (1 / beta)
    return np.where(near, (q - 0.5) * 2 * sc.gamma(1 / beta) / beta, away)


GENNORM: dict[str, Callable[..., Any]] = {
    "cdf": _gennorm_cdf,
    "sf": lambda x, beta: _gennorm_cdf(-x, beta),
    "logcdf": _gennorm_logcdf,
    "logsf": lambda x, beta: _gennorm_logcdf(-x, beta),
    "ppf": _gennorm_ppf,
    "isf": lambda q, beta: -_gennorm_ppf(q, beta),
    "stats": lambda beta: _gennorm_stats(beta),
}


def _gennorm_stats(beta: Array) -> tuple[Any, ...]:
    c1, c3, c5 = [sc.gammaln(n / beta) for n in (1.0, 3.0, 5.0)]
    return 0.0, np.exp(c3 - c1), 0.0, np.exp(c5 + c1 - 2 * c3) - 3.0


ARGUMENTS: dict[str, Callable[..., Any]] = {"erlang": lambda a: a > 0}
"""Conditions for valid shapes, where SciPy warns of others."""


def _pareto_stats(b: Array) -> tuple[Any, ...]:
    def above(least: float, f: Callable[[Any], Any], otherwise: float) -> Array:
        enough = b > least
        return np.where(enough, f(np.where(enough, b, least + 1)), otherwise)

    mean = above(1.0, lambda b: b / (b - 1), np.inf)
    variance = above(2.0, lambda b: b / (b - 2) / (b - 1) ** 2, np.inf)
    skewness = above(3.0, lambda b: 2 * (b + 1) * np.sqrt(b - 2) / ((b - 3) * np.sqrt(b)), np.nan)
    kurtosis = above(4.0, lambda b: 6 * (b**3 + b**2 - 6 * b - 2) / (b * (b - 3) * (b - 4)), np.nan)
    return mean, variance, skewness, kurtosis


OWN: dict[str, dict[str, Callable[..., Any]]] = {
    "argus": {"pdf": _argus_pdf},
    "beta": {"pdf": _beta_pdf},
    "burr": {"pdf": _burr_pdf},
    "chi": {
        "pdf": lambda x, df: _with_powers((1 - 0.5 * df) * np.log(2) - sc.gammaln(0.5 * df) - 0.5 * x**2, (x, df - 1.0))
    },
    "chi2": {"pdf": lambda x, df: _with_powers(-x / 2 - sc.gammaln(df / 2) - np.log(2) * df / 2, (x, df / 2 - 1))},
    "dpareto_lognorm": _exp(_dpareto_lognorm),
    "f": {"pdf": _f_pdf},
    "fisk": {"pdf": lambda x, c: _burr_pdf(x, c, np.asarray(1.0))},
    "gamma": {"pdf": lambda x, a: _with_powers(-x - sc.gammaln(a), (x, a - 1.0))},
    "gausshyper": _exp(_gausshyper),
    "genhyperbolic": _exp(_genhyperbolic),
    "geninvgauss": _exp(_geninvgauss),
    "gennorm": GENNORM,
    "gengamma": {"pdf": _gengamma_pdf},
    "kstwobign": _exp(_kstwobign),
    "landau": _log(_landau),
    "nakagami": {
        "pdf": lambda x, nu: _with_powers(np.log(2) + sc.xlogy(nu, nu) - sc.gammaln(nu) - nu * x**2, (x, 2 * nu - 1))
    },
    "ncf": _exp(_ncf),
    "nct": _exp(_nct),
    "ncx2": _exp(_ncx2),
    "genextreme": GENEXTREME,
    "genpareto": GENPARETO,
    "kappa4": KAPPA4,
    "pareto": {"stats": _pareto_stats},
    "pearson3": skewed_gamma.DENSITIES,
    "skewnorm": _exp(_skewnorm),
    "studentized_range": _log(studentized_ranges.density),
    "t": {"pdf": lambda *args: np.exp(log_densities.student(*args))},
    "truncnorm": TRUNCNORM,
    "tukeylambda": _log(_tukeylambda),
}
OWN.update(masses.DISCRETE)
for _methods in (log_densities.LOG_DENSITIES, log_densities.LOG_TAILS, closed_tails.CLOSED_TAILS):
    OWN.update({_name: {**OWN.get(_name, {}), **_own} for _name, _own in _methods.items()})
"""Methods with func's own code, where SciPy's code is compiled or asks for values."""

LOGARITHMS_OF_DENSITIES = frozenset(["studentized_range", "tukeylambda"])
"""Distributions whose method for the logarithm of the density is the logarithm of the density."""

BY_FORMULA = frozenset(["rice"])
"""Densities that are near a line through zero, whose second derivatives by the logarithm would cancel."""

BY_DENSITY = frozenset(
    ["alpha", "argus", "betaprime", "dpareto_lognorm", "exponnorm", "foldcauchy", "foldnorm", "gausshyper", "gengamma",
     "genexpon", "genhyperbolic", "geninvgauss", "halfgennorm", "invgauss",
     "jf_skew_t", "loggamma", "moyal", "ncf", "nct", "ncx2", "norminvgauss",
     "recipinvgauss", "rel_breitwigner", "rice", "skewnorm"]
)  # fmt: skip
"""Distributions whose distribution functions and quantiles differentiate by the density, without a closed form."""

SLOPES: dict[str, Callable[..., Any]] = {
    "beta": _beta_slope,
    "binom": masses.binom_slope,
    "pearson3": skewed_gamma.slope,
    "rdist": _rdist_slope,
    "studentized_range": studentized_ranges.slope,
    "t": _student_slope,
    "f": _f_slope,
    "tukeylambda": _tukeylambda_slope,
    "vonmises": _vonmises_slope,
}
"""Derivatives of distribution functions by the shapes, where a general quadrature would lose digits."""


PERIODIC = frozenset(["vonmises"])
"""Densities that do not vanish at infinity."""

MIDDLES: dict[str, Callable[..., Any]] = {
    "crystalball": lambda beta, m: -beta,
    "skewcauchy": lambda a: 0.0 * a,
}
"""The places where a density is not smooth."""
