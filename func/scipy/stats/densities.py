"""Densities, and which methods of which distributions SciPy itself computes, by the name of SciPy's class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.special as sc
import scipy.stats

import func
from func.interpreters.core import Array
from func.interpreters.primitives.special import incomplete
from func.interpreters.primitives.special.gamma import gammaln_gap
from func.interpreters.primitives.special.logistic import exp_rest, log1prel
from func.scipy.stats import closed_tails, counting, double_exponential, log_densities, studentized_ranges
from func.scipy.stats.host_values import along, from_host

HOST: dict[str, str] = {
    "beta": "cdf sf ppf isf entropy",
    "betaprime": "cdf sf ppf isf",
    "burr": "stats",
    "burr12": "stats",
    "cauchy": "ppf isf",
    "chi2": "isf",
    "cosine": "cdf sf ppf isf",
    "crystalball": "munp",
    "f": "cdf sf ppf isf",
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
    "kstwobign": "cdf sf ppf isf",
    "landau": "cdf sf ppf isf",
    "levy_stable": "pdf cdf sf ppf isf stats",
    "ncf": "cdf sf ppf isf stats",
    "nct": "cdf sf ppf isf stats",
    "ncx2": "cdf sf ppf isf",
    "norminvgauss": "cdf sf isf",
    "pearson3": "cdf sf ppf isf",
    "rdist": "cdf sf ppf isf",
    "rice": "cdf sf ppf isf",
    "semicircular": "ppf isf",
    "skewnorm": "cdf sf ppf isf",
    "studentized_range": "cdf sf munp",
    "t": "cdf sf ppf isf entropy",
    "truncexpon": "munp",
    "truncnorm": "ppf isf munp stats",
    "tukeylambda": "cdf entropy stats",
    "vonmises": "cdf",
    "wald": "ppf isf entropy",
}
"""Methods whose values are SciPy's own, with derivatives that follow from the density."""


def _exp(logpdf: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """A logarithmic density and the density."""
    return {"logpdf": logpdf, "pdf": lambda *args: np.exp(logpdf(*args))}


def _log(pdf: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """A density and its logarithm."""
    return {"pdf": pdf, "logpdf": lambda *args: np.log(pdf(*args))}


def _with_powers(rest: Array, *powers: tuple[Array, Array]) -> Array:
    """e^rest Π base^exponent for bases >= 0, which differentiates where a base is 0 and its logarithm does not.

    There the power itself is taken, if its exponent is positive.
    """
    edges: Any = 1.0
    for base, exponent in powers:
        at_end = (base == 0) & (exponent > 0)
        rest = rest + sc.xlogy(exponent, np.where(at_end, 1.0, base))
        edges = edges * np.power(np.where(at_end, base, 1.0), np.where(at_end, exponent, 1.0))
        rest = np.where(at_end, np.minimum(rest, 700.0), rest)  # infinity times the zero of the power is NaN
    return np.exp(rest) * edges


def _log_sum(exponents: Array, weight: Array) -> Array:
    """The logarithm of weight Σ e^exponent over the last axis."""
    top = func.stop_gradient(np.max(exponents, axis=-1, keepdims=True))
    top = np.where(np.isfinite(top), top, 0.0)
    return np.log(np.sum(np.exp(exponents - top), axis=-1) * weight) + top[..., 0]


def log_kv(v: Array, z: Array) -> Array:
    """The logarithm of the modified Bessel function K_v(z), z > 0, differentiable by its order.

    The trapezoidal rule for ∫₀^∞ exp(-z cosh t) cosh(v t) dt, DLMF 10.32.9, between points where nothing is left.
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
    return _log_sum(exponents + ends, step) - z


def _geninvgauss(x: Array, p: Array, b: Array) -> Array:
    return (p - 1) * np.log(x) - b * (x + 1 / x) / 2 - np.log(2.0) - log_kv(p, b)


def _genhyperbolic(x: Array, p: Array, a: Array, b: Array) -> Array:
    gamma = np.sqrt((a - b) * (a + b))
    root = np.hypot(1.0, x)
    constant = p * np.log(gamma) - 0.5 * np.log(2 * np.pi) - (p - 0.5) * np.log(a) - log_kv(p, gamma)
    return constant + b * x + (p - 0.5) * np.log(root) + log_kv(p - 0.5, a * root)


def _mixture(exponent: Callable[[Any], Any], centre: Array) -> Array:
    """The logarithm of a sum of e^exponent(j) over j = 0, 1, ..., whose largest terms are near a centre.

    The terms are as wide as those of a Poisson distribution; beyond 200 of them, every h-th is taken h times: a smooth
    sum of many terms is its integral, and a trapezoidal rule gives that as well.
    """
    centre = func.stop_gradient(centre)
    deviation = np.sqrt(centre + 1)
    step = np.maximum(1.0, np.ceil(deviation * 18 / 200))
    low = np.maximum(0.0, np.floor(centre - 100 * step))
    j = low[..., None] + step[..., None] * np.arange(200.0)
    return _log_sum(exponent(j), step)


def _positive_root(b: Array, c: Array) -> Array:
    """The positive root of y² + b y = c, c >= 0."""
    return np.maximum(0.0, (-b + np.sqrt(b * b + 4 * np.maximum(c, 0.0))) / 2)


def _poisson(j: Array, mean: Array) -> Array:
    return sc.xlogy(j, mean) - mean - sc.gammaln(j + 1)


def _ncx2(x: Array, df: Array, nc: Array) -> Array:
    x, df, nc = np.broadcast_arrays(x, df, nc)
    at, of, by = [func.stop_gradient(s) for s in (x, df, nc)]
    centre = _positive_root(of / 2 + 1, by * at / 4 - of / 2)
    x, half, nc = x[..., None], df[..., None] / 2, nc[..., None]

    def exponent(j: Array) -> Array:
        gamma = sc.xlogy(half + j - 1, x / 2) - x / 2 - sc.gammaln(half + j) - np.log(2.0)
        return _poisson(j, nc / 2) + gamma

    return _mixture(exponent, centre)


def _ncf(x: Array, dfn: Array, dfd: Array, nc: Array) -> Array:
    x, dfn, dfd, nc = np.broadcast_arrays(x, dfn, dfd, nc)
    at, m, n, by = [func.stop_gradient(s) for s in (x, dfn, dfd, nc)]
    share = by / 2 * m * at / (n + m * at)
    centre = _positive_root(m / 2 + 1 - share, share * (m + n) / 2 - m / 2)
    x, a, b, nc = x[..., None], dfn[..., None] / 2, dfd[..., None] / 2, nc[..., None]
    ratio = a / b

    def exponent(j: Array) -> Array:
        powers = (a + j) * np.log(ratio) + sc.xlogy(a + j - 1, x) - (a + b + j) * np.log1p(ratio * x)
        return _poisson(j, nc / 2) + powers - sc.betaln(a + j, b)

    return _mixture(exponent, centre)


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
    return _log_sum(exponents, step) + constant[..., 0]


def _gausshyper(x: Array, a: Array, b: Array, c: Array, z: Array) -> Array:
    log_u, log_rest, log_weights = double_exponential.unit_logarithms()
    a1, b1, c1, z1 = [np.expand_dims(s, -1) for s in (a, b, c, z)]
    exponents = (a1 - 1) * log_u + (b1 - 1) * log_rest - c1 * np.log1p(z1 * np.exp(log_u)) + log_weights
    powers = sc.xlogy(a - 1, x) + sc.xlog1py(b - 1, -x) - c * np.log1p(z * x)
    return powers - _log_sum(exponents, np.asarray(1.0))


def _beta_pdf(x: Array, a: Array, b: Array) -> Array:
    at_end = x == 1
    near = sc.xlog1py(b - 1.0, -np.where(at_end, 0.0, x))
    return _with_powers(near - sc.betaln(a, b), (x, a - 1.0), (np.where(at_end, 1 - x, 1.0), b - 1.0))


def _gamma_pdf(x: Array, a: Array) -> Array:
    return _with_powers(-x - sc.gammaln(a), (x, a - 1.0))


def _chi2_pdf(x: Array, df: Array) -> Array:
    return _with_powers(-x / 2.0 - sc.gammaln(df / 2.0) - (np.log(2) * df) / 2.0, (x, df / 2.0 - 1))


def _chi_pdf(x: Array, df: Array) -> Array:
    return _with_powers(np.log(2) - 0.5 * np.log(2) * df - sc.gammaln(0.5 * df) - 0.5 * x**2, (x, df - 1.0))


def _f_pdf(x: Array, dfn: Array, dfd: Array) -> Array:
    n, m = 1.0 * dfn, 1.0 * dfd
    constant = m / 2 * np.log(m) + n / 2 * np.log(n) - sc.betaln(n / 2, m / 2)
    return _with_powers(constant - (n + m) / 2 * np.log(m + n * x), (x, n / 2 - 1))


def _nakagami_pdf(x: Array, nu: Array) -> Array:
    return _with_powers(np.log(2) + sc.xlogy(nu, nu) - sc.gammaln(nu) - nu * x**2, (x, 2 * nu - 1))


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


def _randint(k: Array, low: Array, high: Array) -> Array:
    """Of every outcome; between integers the bounds are not valid, and this is the smooth function through them."""
    return np.ones_like(k) / (high - low)


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


def _binom_slope(k: Array, shapes: Sequence[Array], dots: Sequence[Any]) -> Array:
    """Along tangents of the trials and of their probability, by the incomplete beta function. DLMF 8.17.5."""
    n, p = [s + 0.0 for s in shapes]
    k = np.floor(func.stop_gradient(k))
    return along(lambda n, p: -sc.betainc(k + 1, n - k, p), [n, p], dots)


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


def _pearson3_near_normal(x: Array, skew: Array) -> Array:
    """The logarithm of the density without the terms of size 4 / skew² that cancel, by Stirling's series.

    With u = x skew / 2 it is -log(2π) / 2 - r - log(1 + u) - x² (1/(1 + u) + d/du (log(1 + u) / u)), where r is what
    log Γ(4 / skew²) has beside Stirling's leading terms. DLMF 5.11.1.
    """
    u = x * skew / 2
    u = np.where((u > -1) & (np.abs(skew) < 0.05), u, 0.0)
    rest = skew**2 / 48 - skew**6 / 23040
    return -0.5 * np.log(2 * np.pi) - rest - np.log1p(u) - x * x * (1 / (1 + u) + log1prel(u, order=1))


def _pearson3(name: str) -> Callable[..., Any]:
    """SciPy's choice: a normal distribution for small skewness, else a gamma distribution, mirrored for a negative.

    In place of the step between them, the derivatives at small skewness are those of the gamma distribution's series.
    """

    def method(x: Array, skew: Array) -> Array:
        normal = np.abs(skew) < 0.000016
        beta = 2 / np.where(normal, 1.0, skew)
        alpha = beta * beta
        if name == "ppf":
            q = np.where(beta < 0, 1 - x, x)
            z = sc.ndtri(x)
            gaussian = z + _without_value(skew * (z * z - 1) / 6)
            return np.where(normal, gaussian, sc.gammaincinv(alpha, q) / beta - beta)
        z = beta * (x + beta)
        inside = z > 0
        z = np.where(inside, z, 1.0)
        gaussian = -(x * x) / 2 - 0.5 * np.log(2 * np.pi)
        if name == "logpdf":
            near = _pearson3_near_normal(x, skew)
            gamma = np.log(np.abs(beta)) + sc.xlogy(alpha - 1, z) - z - sc.gammaln(alpha)
            gamma = np.where((np.abs(skew) < 0.05) & inside, near, np.where(inside, gamma, -np.inf))
            return np.where(normal, gaussian + _without_value(near), gamma)
        if name == "pdf":
            return np.exp(PEARSON3["logpdf"](x, skew))
        upward = (beta > 0) == (name == "cdf")
        value = np.where(upward, sc.gammainc(alpha, z), sc.gammaincc(alpha, z))
        value = np.where(inside, value, np.where(upward, 0.0, 1.0))
        sign = 1.0 if name == "cdf" else -1.0
        series = sign * skew * (1 - x * x) / 6 * np.exp(gaussian)
        return np.where(normal, sc.ndtr(sign * x) + _without_value(series), value)

    return method


def _edgeworth_rows(count: int) -> list[list[float]]:
    """The polynomials G_k of ∂F/∂skew = f Σ_k skew^k G_k(x), the lowest degrees first.

    ∂f/∂skew = ∂(f Σ skew^k G_k)/∂x, and by u = x skew / 2 the series of the logarithm of the density, see
    `_pearson3_near_normal`, are those of log(1 + u) and of Σ (-u)^m / (m + 2). So G_k' - x G_k is known from G_k-1.
    """

    def slope(k: int) -> list[Fraction]:
        """The polynomial beside skew^k in the logarithm's derivative by the skewness."""
        m = k + 1
        power = [Fraction(0)] * m + [Fraction(-1, 2) ** m, Fraction(0), -m * Fraction(-1, 2) ** m / (m + 2)]
        if k in _STIRLING:
            power[0] -= _STIRLING[k]
        return power

    rows: list[list[Fraction]] = []
    for k in range(count):
        right = [*slope(k), Fraction(0)]
        if k:
            for j, c in enumerate(slope(k - 1)):
                right[j + 1] += c / 2
            for j, c in enumerate(rows[-1]):
                right[j] += c * (1 - j) / 2
        row = [Fraction(0)] * (k + 5)
        for j in range(k + 3, 0, -1):
            row[j - 1] = (j + 1) * row[j + 1] - right[j]
        rows.append(row[: k + 3])
    return [[float(c) for c in row] for row in rows]


_STIRLING = {1: Fraction(1, 24), 5: Fraction(-1, 3840), 9: Fraction(1, 129024)}
"""The derivative of skew² / 48 - skew⁶ / 23040 + skew¹⁰ / 1290240, by powers. DLMF 5.11.1."""


def _pearson3_slope(x: Array, shapes: Sequence[Array], dots: Sequence[Any]) -> Array:
    """∂F/∂skew, for small skewness by its series: the terms of the gamma distribution grow as 1 / skew³ there."""
    (skew,), (dot,) = shapes, dots
    near = np.abs(skew) < 0.05
    small, large = np.where(near, skew, 0.0), np.where(near, 1.0, skew)
    series: Any = 0.0
    for row in reversed(_edgeworth_rows(14)):
        polynomial: Any = 0.0
        for c in reversed(row):
            polynomial = polynomial * x + c
        series = series * small + polynomial
    far = along(lambda skew: PEARSON3["cdf"](x, skew), [large], [dot * np.ones(np.shape(large))])
    return np.where(near, PEARSON3["pdf"](x, small) * series * dot, far)


def _skewnorm(x: Array, a: Array) -> Array:
    """Without SciPy's branch for a = 0, whose value does not depend on a."""
    return np.log(2.0) - x * x / 2 - 0.5 * np.log(2 * np.pi) + sc.log_ndtr(a * x)


def _without_value(x: Array) -> Array:
    """Zero, with the derivatives of x."""
    return x - func.stop_gradient(x)


PEARSON3: dict[str, Callable[..., Any]] = {name: _pearson3(name) for name in ("logpdf", "pdf", "cdf")}


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
    """At the upper end, for a negative c, the power that it is near there."""
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


def log1mexp(x: Array) -> Array:
    """log(1 - eˣ) for x < 0."""
    near = x > -0.69
    return np.where(near, np.log(-np.expm1(np.where(near, x, -0.5))), np.log1p(-np.exp(np.where(near, -1.0, x))))


def _kstwobign(x: Array) -> Array:
    """The logarithm of Kolmogorov's density by the series that converges fast, its first term apart.

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
    """∂F/∂κ by the trapezoidal rule's relative of Gauss: the angle is taken to (-π, π)."""
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
    above, whole = z > 0, z < -20  # where nothing is left of the probability on the other side
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


def _mass(logpmf: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """The logarithm of a probability and the probability."""
    return {"logpmf": logpmf, "pmf": lambda *args: np.exp(logpmf(*args))}


def _of_trials(k: Array, trials: Sequence[Array], choose: Callable[..., Any]) -> Array:
    """The probability of the numbers j of successes with choose(j, k), for trials of different probabilities."""
    k, *trials = np.broadcast_arrays(k, *trials)
    j = np.arange(len(trials) + 1.0)
    found: Any = np.where(j == 0, 1.0, np.zeros((*np.shape(k), 1)))
    for p in trials:
        p = p[..., None]
        one_more = np.concatenate([np.zeros((*np.shape(k), 1)), found[..., :-1]], axis=-1)
        found = (1 - p) * found + p * one_more
    return np.sum(np.where(choose(j, np.floor(k)[..., None]), found, 0.0), axis=-1)


POISSON_BINOM: dict[str, Callable[..., Any]] = {
    "pmf": lambda k, *trials: _of_trials(k, trials, np.equal),
    "logpmf": lambda k, *trials: np.log(_of_trials(k, trials, np.equal)),
    "cdf": lambda k, *trials: _of_trials(k, trials, np.less_equal),
    "sf": lambda k, *trials: _of_trials(k, trials, np.greater),
}


def _betabinom(k: Array, n: Array, a: Array, b: Array) -> Array:
    return _log_ways(n, k) + gammaln_gap(a, k) + gammaln_gap(b, n - k) - gammaln_gap(a + b, n)


def _betanbinom(k: Array, n: Array, a: Array, b: Array) -> Array:
    ways = gammaln_gap(n, k) - sc.gammaln(k + 1)
    return ways + gammaln_gap(a, n) + gammaln_gap(b, k) - gammaln_gap(a + b, n + k)


def _nbinom(k: Array, n: Array, p: Array) -> Array:
    return gammaln_gap(n, k) - sc.gammaln(k + 1) + n * np.log(p) + sc.xlog1py(k, -p)


def _skellam(k: Array, mu1: Array, mu2: Array) -> Array:
    """The difference of two Poisson numbers, by the smaller one."""
    k, mu1, mu2 = np.broadcast_arrays(k, mu1, mu2)
    first, second = np.maximum(k, 0.0), np.maximum(-k, 0.0)
    centre = _positive_root(np.abs(k) + 1, func.stop_gradient(mu1 * mu2) - np.abs(k))
    first, second, mu1, mu2 = [x[..., None] for x in (first, second, mu1, mu2)]
    return _mixture(lambda j: _poisson(j + first, mu1) + _poisson(j + second, mu2), centre)


def _harmonic(n: Array, a: Array) -> Array:
    """Σ j^-a for j = 1 ... n, which may be infinite for a > 1: 64 terms, and the rest by the Euler-Maclaurin formula.

    For few terms it is that of n + 64 without the last 64, so that it is smooth in n. Source: DLMF 2.10.1.
    """
    n, a = np.broadcast_arrays(n, a)
    j = np.arange(1.0, 65.0)
    few, endless = n <= 64, np.isinf(n)

    def powers(start: Any) -> Array:
        return np.sum((start[..., None] + j) ** -a[..., None], axis=-1)

    def corrected(x: Any) -> Array:
        return a * x ** (-a - 1) / 24 - 7 * a * (a + 1) * (a + 2) * x ** (-a - 3) / 5760

    low, high = 64.5, np.where(endless, 65.0, np.where(few, n + 64, n)) + 0.5
    finite = sc.boxcox(high, 1 - a) - sc.boxcox(low, 1 - a) + corrected(high) - corrected(low)
    infinite = low ** (1 - a) / np.where(endless, a - 1, 1.0) - corrected(low)
    beyond = np.where(few, powers(np.where(few, n, 0.0)), 0.0)
    return powers(np.zeros(np.shape(n))) + np.where(endless, infinite, finite) - beyond


def _zeta(a: Array) -> Array:
    return _harmonic(np.asarray(np.inf), a)


def _zipf_moment(order: int, a: Array) -> Array:
    finite = a > order + 1
    return np.where(finite, _zeta(np.where(finite, a, order + 2.0) - order) / _zeta(a), np.inf)


def _log_ways(n: Array, k: Array) -> Array:
    return gammaln_gap(n - k + 1.0, 1.0 * k) - sc.gammaln(k + 1)


def _fisher(k: Array, total: Array, n: Array, draws: Array, odds: Array) -> Array:
    """Fisher's noncentral hypergeometric distribution, summed from its mode. Source: A. Fog (2008)."""
    k, total, n, draws, odds = np.broadcast_arrays(k, total, n, draws, odds)
    fixed = func.stop_gradient(odds)
    low, high = np.maximum(0.0, draws - (total - n)), np.minimum(draws, n)
    a, b, c = fixed - 1, (n + draws) * fixed + total - n - draws + fixed * 0, n * draws * fixed
    mode = np.round(np.clip(2 * c / (b + np.sqrt(np.maximum(b * b - 4 * a * c, 0.0))), low, high))

    def exponent(j: Array, *of: Array) -> Array:
        total, n, draws, odds = of
        return _log_ways(n, j) + _log_ways(total - n, draws - j) + j * np.log(odds)

    shapes = (total, n, draws, odds)
    top = func.stop_gradient(exponent(mode, *shapes))
    wide = [s[..., None] for s in shapes]
    weight = counting.everywhere(lambda j: np.exp(exponent(j, *wide) - top[..., None]), mode, low, high)
    return exponent(k, *shapes) - top - np.log(weight)


def _wallenius(k: Array, total: Array, n: Array, draws: Array, odds: Array) -> Array:
    """Wallenius' noncentral hypergeometric distribution by its integral. Source: A. Fog (2008), equation 19."""
    k, total, n, draws, odds = np.broadcast_arrays(k, total, n, draws, odds)
    exponent = odds * (n - k) + (total - n) - (draws - k)
    ways = _log_ways(n, k) + _log_ways(total - n, draws - k)
    log_t, _, log_weights = double_exponential.unit_logarithms()
    k, draws, odds, exponent = [x[..., None] for x in (k, draws, odds, exponent)]
    last = exponent <= 0  # everything is drawn
    scaled = log_t / np.where(last, 1.0, exponent)
    powers = k * log1mexp(odds * scaled) + (draws - k) * log1mexp(scaled)
    return np.where(last[..., 0], 0.0, ways + _log_sum(powers + log_weights, np.asarray(1.0)))


def _zipfian(k: Array, a: Array, n: Array) -> Array:
    return -a * np.log(k) - np.log(_harmonic(n, a))


def _yulesimon(k: Array, alpha: Array) -> Array:
    return np.log(alpha) + sc.betaln(k, alpha + 1)


def _zipf(k: Array, a: Array) -> Array:
    return -a * np.log(k) - np.log(_zeta(a))


DISCRETE: dict[str, dict[str, Callable[..., Any]]] = {
    "betabinom": _mass(_betabinom),
    "betanbinom": _mass(_betanbinom),
    "bernoulli": _mass(lambda k, p: sc.xlogy(k, p) + sc.xlog1py(1 - k, -p)),
    "binom": _mass(log_densities.binom),
    "nbinom": _mass(_nbinom),
    "poisson": {
        "logcdf": lambda k, mu: incomplete.log_gammaincc(np.floor(k) + 1, mu),
        "logsf": lambda k, mu: incomplete.log_gammainc(np.floor(k) + 1, mu),
    },
    "poisson_binom": POISSON_BINOM,
    "randint": {"pmf": _randint, "logpmf": lambda *args: np.log(_randint(*args))},
    "skellam": _mass(_skellam),
    "yulesimon": _mass(_yulesimon),
    "nchypergeom_fisher": _mass(_fisher),
    "nchypergeom_wallenius": _mass(_wallenius),
    "zipf": {**_mass(_zipf), "munp": _zipf_moment},
    "zipfian": _mass(_zipfian),
}
HOST.update(
    betabinom="cdf sf entropy",
    betanbinom="cdf sf stats entropy",
    bernoulli="cdf sf ppf isf",
    binom="cdf sf ppf isf entropy",
    hypergeom="pmf cdf sf logsf logcdf entropy stats",
    logser="cdf sf",
    nbinom="cdf logcdf sf stats",
    nchypergeom_fisher="cdf sf stats entropy",
    nchypergeom_wallenius="cdf sf stats entropy",
    nhypergeom="pmf cdf sf",
    skellam="cdf sf",
    zipfian="cdf sf stats",
)

ARGUMENTS: dict[str, Callable[..., Any]] = {"erlang": lambda a: a > 0}
"""Which shapes are valid, where SciPy warns of others."""


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
    "chi": {"pdf": _chi_pdf},
    "chi2": {"pdf": _chi2_pdf},
    "dpareto_lognorm": _exp(_dpareto_lognorm),
    "f": {"pdf": _f_pdf},
    "fisk": {"pdf": lambda x, c: _burr_pdf(x, c, np.asarray(1.0))},
    "gamma": {"pdf": _gamma_pdf},
    "gausshyper": _exp(_gausshyper),
    "genhyperbolic": _exp(_genhyperbolic),
    "geninvgauss": _exp(_geninvgauss),
    "gennorm": GENNORM,
    "gengamma": {"pdf": _gengamma_pdf},
    "kstwobign": _exp(_kstwobign),
    "landau": _log(_landau),
    "nakagami": {"pdf": _nakagami_pdf},
    "ncf": _exp(_ncf),
    "nct": _exp(_nct),
    "ncx2": _exp(_ncx2),
    "genextreme": GENEXTREME,
    "genpareto": GENPARETO,
    "kappa4": KAPPA4,
    "pareto": {"stats": _pareto_stats},
    "pearson3": {name: PEARSON3[name] for name in ("logpdf", "pdf")},
    "skewnorm": _exp(_skewnorm),
    "studentized_range": _log(studentized_ranges.density),
    "t": {"pdf": lambda *args: np.exp(log_densities.student(*args))},
    "truncnorm": TRUNCNORM,
    "tukeylambda": _log(_tukeylambda),
}
OWN.update(DISCRETE)
for _methods in (log_densities.LOG_DENSITIES, log_densities.LOG_TAILS, closed_tails.CLOSED_TAILS):
    OWN.update({_name: {**OWN.get(_name, {}), **_own} for _name, _own in _methods.items()})
"""Methods that are written here, where SciPy's code is compiled or asks for the values."""

LOGARITHMS_OF_DENSITIES = frozenset(["studentized_range", "tukeylambda"])
"""Distributions whose logarithmic density is the logarithm of the density."""

BY_FORMULA = frozenset(["rice"])
"""Densities that are near a line through zero, whose second derivatives by the logarithm would cancel."""

BY_DENSITY = frozenset(
    ["alpha", "argus", "betaprime", "dpareto_lognorm", "exponnorm", "foldcauchy", "foldnorm", "gausshyper", "gengamma",
     "genexpon", "genhyperbolic", "geninvgauss", "halfgennorm", "invgauss",
     "jf_skew_t", "loggamma", "moyal", "ncf", "nct", "ncx2", "norminvgauss",
     "recipinvgauss", "rel_breitwigner", "rice", "skewnorm"]
)  # fmt: skip
"""Distributions whose distribution functions and quantiles are differentiated by the density, without a closed form."""

SLOPES: dict[str, Callable[..., Any]] = {
    "beta": _beta_slope,
    "binom": _binom_slope,
    "pearson3": _pearson3_slope,
    "rdist": _rdist_slope,
    "studentized_range": studentized_ranges.slope,
    "t": _student_slope,
    "f": _f_slope,
    "tukeylambda": _tukeylambda_slope,
    "vonmises": _vonmises_slope,
}
"""Derivatives of distribution functions by the shapes, where a general quadrature would lose digits."""

LAST_OUTCOMES = {"betabinom": 0, "zipfian": 1}
"""The place of the shape that is the last outcome, of discrete distributions with a finite one."""

PERIODIC = frozenset(["vonmises"])
"""Densities that do not vanish at infinity."""

MIDDLES: dict[str, Callable[..., Any]] = {
    "crystalball": lambda beta, m: -beta,
    "skewcauchy": lambda a: 0.0 * a,
}
"""Where a density is not smooth."""
