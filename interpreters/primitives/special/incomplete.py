"""The incomplete gamma and beta functions, with their derivatives by the parameters."""

from __future__ import annotations

import math
from collections.abc import Callable

from func.backends.array_helpers import special
from func.interpreters.core import Array
from func.interpreters.primitives import costs
from func.interpreters.primitives.elementwise.builder import Elementwise, add, elementwise, multiply, negative
from func.interpreters.primitives.elementwise.partials import Rule
from func.interpreters.primitives.elementwise.table import (
    divide,
    exp,
    floor,
    greater,
    greater_equal,
    isnan,
    less,
    log,
    logical_and,
    sign,
    square,
    subtract,
    trunc,
)
from func.interpreters.primitives.random.variates import slope as gamma_slope
from func.interpreters.primitives.scipy_functions import reporting_missing
from func.interpreters.primitives.special.builders import missing, publish, special_primitive, unless_zero
from func.interpreters.primitives.special.gamma import betaln, digamma, gammaln, polygamma
from func.interpreters.primitives.special.logistic import xlog1py, xlogy
from func.interpreters.primitives.structural.shapes import full_like, where


def gamma_density(a: Array, x: Array) -> Array:
    """x^(a - 1) e^(-x) / Γ(a), the derivative of P(a, x) by x. DLMF 8.8.13."""
    return exp(subtract(subtract(xlogy(subtract(a, 1), x), x), gammaln(a)))


def gammainc_da(a: Array, x: Array) -> Array:
    """∂P(a, x)/∂a: minus the slope of the quantile times the density, both in log x."""

    def inside(x: Array) -> Array:
        y = log(x)
        return negative(multiply(gamma_slope(a, y, order=0), exp(subtract(subtract(multiply(a, y), x), gammaln(a)))))

    return unless_zero(x, full_like(x, 0, ()), inside)


gammainc: Elementwise = special_primitive("gammainc", lambda x, y: gammainc_da(x, y), lambda x, y: gamma_density(x, y))
publish(
    gammainc,
    "a x",
    """The regularised lower incomplete gamma function P(a, x), a > 0, x >= 0. DLMF 8.2.4.

    >>> import func
    >>> round(float(func.grad(func.special.gammainc)(2.0, 1.5)), 12)
    -0.313488637825
    """,
)
gammaincc: Elementwise = special_primitive(
    "gammaincc", lambda x, y: negative(gammainc_da(x, y)), lambda x, y: negative(gamma_density(x, y))
)
publish(gammaincc, "a x", "The regularised upper incomplete gamma function Q = 1 - P. DLMF 8.2.4.")


def _gamma_hazard(a: Array, x: Array, out: Array) -> Array:
    """The density of log x, x^a e^(-x) / Γ(a), over a probability with the logarithm `out`."""
    return exp(subtract(subtract(subtract(multiply(a, log(x)), x), gammaln(a)), out))


def _upper_hazard(a: Array, x: Array, out: Array) -> Array:
    """The density of log x over Q(a, x), far out by the expansion of the quotient, in which no exponents cancel.

    Source: DLMF 8.11.2.
    """
    far = logical_and(greater(x, 100), greater(x, multiply(a, 100)))
    inner, outer = where(far, full_like(x, 1, ()), x), where(far, x, full_like(x, 1000, ()))
    shape = where(far, a, full_like(a, 1, ()))
    total: Array = full_like(x, 1, ())
    for k in range(12, 0, -1):
        total = add(1, divide(multiply(subtract(shape, k), total), outer))
    return where(far, divide(outer, total), _gamma_hazard(a, inner, where(far, full_like(out, 0, ()), out)))


def _gamma_log_partials(sign: float) -> tuple[Rule, Rule]:
    """The partials of log P(a, x), and with the sign -1 of log Q(a, x)."""
    hazard = _gamma_hazard if sign > 0 else _upper_hazard

    def by_shape(x: Array, y: Array, out: Array) -> Array:
        plain = multiply(multiply(hazard(x, y, out), gamma_slope(x, log(y), order=0)), -sign)
        if sign > 0:
            return plain
        return where(logical_and(greater(y, 1e30), greater(y, multiply(x, 1e30))), subtract(log(y), digamma(x)), plain)

    return (
        by_shape,
        lambda x, y, out: multiply(divide(hazard(x, y, out), y), sign),
    )


log_gammainc: Elementwise = special_primitive(
    "log_gammainc", *_gamma_log_partials(1.0), impl=reporting_missing(special.log_gammainc, "special")
)
log_gammaincc: Elementwise = special_primitive(
    "log_gammaincc", *_gamma_log_partials(-1.0), impl=reporting_missing(special.log_gammaincc, "special")
)
"""The logarithms of P and Q in tails, where these are below all numbers."""


def gamma_quantile_da(a: Array, x: Array) -> Array:
    """∂x/∂a at fixed P(a, x): x times the slope of log x."""
    return unless_zero(x, full_like(x, 0, ()), lambda x: multiply(x, gamma_slope(a, log(x), order=0)))


gammaincinv: Elementwise = special_primitive(
    "gammaincinv",
    lambda x, out: gamma_quantile_da(x, out),
    lambda x, out: divide(1, gamma_density(x, out)),
)
publish(gammaincinv, "a y", "The x with P(a, x) = y.")
gammainccinv: Elementwise = special_primitive(
    "gammainccinv",
    lambda x, out: gamma_quantile_da(x, out),
    lambda x, out: divide(-1, gamma_density(x, out)),
)
publish(gammainccinv, "a y", "The x with Q(a, x) = y.")


def beta_density(a: Array, b: Array, x: Array) -> Array:
    """x^(a - 1) (1 - x)^(b - 1) / B(a, b), the derivative of I_x(a, b) by x. DLMF 8.17.1."""
    powers = add(xlogy(subtract(a, 1), x), xlog1py(subtract(b, 1), negative(x)))
    return exp(subtract(powers, betaln(a, b)))


def _beta_score(a: Array, b: Array, x: Array) -> Array:
    """The derivative by x of ∂I/∂a: the density times log x + ψ(a + b) - ψ(a)."""

    def inside(x: Array) -> Array:
        return multiply(beta_density(a, b, x), add(log(x), subtract(digamma(add(a, b)), digamma(a))))

    return unless_zero(x, full_like(x, 0, ()), inside)


betainc_da: Elementwise = elementwise(
    "betainc_da",
    lambda x, y, z: betainc_daa(x, y, z),
    lambda x, y, z: betainc_dab(x, y, z),
    lambda x, y, z: _beta_score(x, y, z),
    impl=reporting_missing(special.betainc_da, "special"),
    cost=costs.SPECIAL,
)
betainc_db: Elementwise = elementwise(
    "betainc_db",
    lambda x, y, z: betainc_dab(x, y, z),
    lambda x, y, z: betainc_dbb(x, y, z),
    lambda x, y, z: _beta_score(y, x, subtract(1, z)),
    impl=reporting_missing(special.betainc_db, "special"),
    cost=costs.SPECIAL,
)


def _beta_bend(a: Array, b: Array, x: Array, mixed: bool) -> Array:
    """The derivative by x of ∂²I/∂a², or of ∂²I/∂a∂b."""
    whole = polygamma(1, add(a, b))

    def inside(x: Array) -> Array:
        first = add(log(x), subtract(digamma(add(a, b)), digamma(a)))
        if not mixed:
            return multiply(beta_density(a, b, x), add(square(first), subtract(whole, polygamma(1, a))))
        second = add(xlog1py(1, negative(x)), subtract(digamma(add(a, b)), digamma(b)))
        return multiply(beta_density(a, b, x), add(multiply(first, second), whole))

    return unless_zero(x, full_like(x, 0, ()), inside)


def _bend(name: str, impl: Callable[..., Array], slope: Rule) -> Elementwise:
    """A second derivative of betainc by its parameters, whose own are not defined."""
    what = f"the second derivative {name} of betainc"
    missing_partials = missing(what, "a"), missing(what, "b")
    return elementwise(name, *missing_partials, slope, impl=reporting_missing(impl, "special"), cost=costs.SPECIAL)


betainc_daa: Elementwise = _bend("betainc_daa", special.betainc_daa, lambda x, y, z: _beta_bend(x, y, z, False))
betainc_dab: Elementwise = _bend("betainc_dab", special.betainc_dab, lambda x, y, z: _beta_bend(x, y, z, True))
betainc_dbb: Elementwise = _bend(
    "betainc_dbb", special.betainc_dbb, lambda x, y, z: _beta_bend(y, x, subtract(1, z), False)
)

betainc: Elementwise = special_primitive(
    "betainc",
    lambda x, y, z: betainc_da(x, y, z),
    lambda x, y, z: betainc_db(x, y, z),
    lambda x, y, z: beta_density(x, y, z),
)
publish(betainc, "a b x", "The regularised incomplete beta function, a, b > 0, 0 <= x <= 1. DLMF 8.17.2.")
betaincc: Elementwise = special_primitive(
    "betaincc",
    lambda x, y, z: negative(betainc_da(x, y, z)),
    lambda x, y, z: negative(betainc_db(x, y, z)),
    lambda x, y, z: negative(beta_density(x, y, z)),
)
publish(betaincc, "a b x", "1 - I_x(a, b).")
betaincinv: Elementwise = special_primitive(
    "betaincinv",
    lambda x, y, out: negative(divide(betainc_da(x, y, out), beta_density(x, y, out))),
    lambda x, y, out: negative(divide(betainc_db(x, y, out), beta_density(x, y, out))),
    lambda x, y, out: divide(1, beta_density(x, y, out)),
)
publish(betaincinv, "a b y", "The x with I_x(a, b) = y.")
betainccinv: Elementwise = special_primitive(
    "betainccinv",
    lambda x, y, out: negative(divide(betainc_da(x, y, out), beta_density(x, y, out))),
    lambda x, y, out: negative(divide(betainc_db(x, y, out), beta_density(x, y, out))),
    lambda x, y, out: divide(-1, beta_density(x, y, out)),
)
publish(betainccinv, "a b y", "The x with 1 - I_x(a, b) = y.")


def student_density(df: Array, t: Array) -> Array:
    """The density of Student's distribution, (1 + t²/ν)^(-(ν + 1)/2) / (√ν B(1/2, ν/2))."""
    half = multiply(df, 0.5)
    power = multiply(xlog1py(add(df, 1), divide(square(t), df)), -0.5)
    return exp(subtract(subtract(power, betaln(half, 0.5)), multiply(log(df), 0.5)))


def f_density(m: Array, n: Array, x: Array) -> Array:
    """The derivative by x of I_w(m/2, n/2) with w = m x / (n + m x)."""
    denominator = add(n, multiply(m, x))
    w = divide(multiply(m, x), denominator)
    return multiply(beta_density(multiply(m, 0.5), multiply(n, 0.5), w), divide(multiply(m, n), square(denominator)))


def student_slope(df: Array, t: Array) -> Array:
    """The derivative by ν of 1 - I_w(ν/2, 1/2) / 2 with w = ν / (ν + t²), for t < 0 of its reflection.

    Near t = 0, where 1 - w loses its digits, by the series of the integral of the density.
    """
    squared = square(t)
    near = logical_and(less(squared, multiply(df, 0.01)), less(squared, 0.01))
    inside = where(near, t, full_like(t, 0, ()))
    far = where(near, full_like(squared, 1, ()), squared)
    half, whole = multiply(df, 0.5), add(df, far)
    w = divide(df, whole)
    by_a = multiply(betainc_da(half, full_like(df, 0.5, ()), w), 0.5)
    by_w = multiply(beta_density(half, full_like(df, 0.5, ()), w), divide(far, square(whole)))
    return where(near, _student_series(df, inside), multiply(multiply(add(by_a, by_w), -0.5), sign(t)))


def _student_series(df: Array, t: Array) -> Array:
    """g t Σ cₖ (g′/g + Σⱼ 1/(ν + 1 + 2j) - k/ν), j < k, of the terms cₖ = ((ν + 1)/2)ₖ (-t²/ν)ᵏ / (k! (2k + 1)).

    g is the density at zero.
    """
    half = multiply(df, 0.5)
    ratio = negative(divide(square(t), df))
    power, slope = full_like(ratio, 1), _student_peak_slope(df)
    total = slope
    for k in range(1, 9):
        place = add(df, 2 * k - 1)
        power = multiply(multiply(power, ratio), multiply(place, 0.5 / k))
        slope = add(slope, subtract(divide(1, place), divide(1, df)))
        total = add(total, multiply(multiply(power, slope), 1 / (2 * k + 1)))
    peak = exp(subtract(gammaln(add(half, 0.5)), add(gammaln(half), multiply(log(multiply(df, math.pi)), 0.5))))
    return multiply(multiply(peak, t), total)


def _student_peak_slope(df: Array) -> Array:
    """(ψ(a + 1/2) - ψ(a) - 1/(2a)) / 2 for a = ν/2, by DLMF 5.11.2 where that is a difference of nothing."""
    a = multiply(df, 0.5)
    large = greater(a, 100)
    small, huge = where(large, full_like(a, 1, ()), a), where(large, a, full_like(a, 100, ()))
    plain = subtract(subtract(digamma(add(small, 0.5)), digamma(small)), divide(0.5, small))
    inverse = divide(1, square(huge))
    series = multiply(inverse, add(0.125, multiply(inverse, add(-1 / 64, multiply(inverse, 1 / 128)))))
    return multiply(where(large, series, plain), 0.5)


def _f_parts(m: Array, n: Array, x: Array) -> tuple[Array, Array, Array, Array]:
    denominator = add(n, multiply(m, x))
    w = divide(multiply(m, x), denominator)
    a, b = multiply(m, 0.5), multiply(n, 0.5)
    return a, b, w, divide(multiply(beta_density(a, b, w), x), square(denominator))


def f_slope_dfn(m: Array, n: Array, x: Array) -> Array:
    """The derivative by m of I_w(m/2, n/2) with w = m x / (n + m x)."""
    a, b, w, density = _f_parts(m, n, x)
    return add(multiply(betainc_da(a, b, w), 0.5), multiply(density, n))


def f_slope_dfd(m: Array, n: Array, x: Array) -> Array:
    """The derivative by n of I_w(m/2, n/2) with w = m x / (n + m x)."""
    a, b, w, density = _f_parts(m, n, x)
    return subtract(multiply(betainc_db(a, b, w), 0.5), multiply(density, m))


def _binomial_density(k: Array, n: Array, p: Array, out: Array) -> Array:
    """The derivative by p of I_p(k + 1, n - k), of which SciPy rounds k down and n to zero.

    It is zero where the function is 0 or 1 for all p, and NaN where the function is.
    """
    k, n = floor(k), trunc(n)
    inside = logical_and(greater_equal(k, 0), less(k, n))
    k, n = [where(inside, x, full_like(x, other, ())) for x, other in ((k, 0), (n, 1))]
    slope = where(inside, beta_density(add(k, 1), subtract(n, k), p), full_like(p, 0, ()))
    return where(isnan(out), full_like(p, float("nan"), ()), slope)


stdtr: Elementwise = special_primitive("stdtr", lambda x, y: student_slope(x, y), lambda x, y: student_density(x, y))
publish(stdtr, "df t", "Student's distribution function; its third derivative by df is not defined.")
chdtr: Elementwise = special_primitive(
    "chdtr",
    lambda x, y: multiply(gammainc_da(multiply(x, 0.5), multiply(y, 0.5)), 0.5),
    lambda x, y: multiply(gamma_density(multiply(x, 0.5), multiply(y, 0.5)), 0.5),
)
publish(chdtr, "v x", "The χ² distribution function of v degrees of freedom, P(v / 2, x / 2).")
chdtrc: Elementwise = special_primitive(
    "chdtrc",
    lambda x, y: multiply(gammainc_da(multiply(x, 0.5), multiply(y, 0.5)), -0.5),
    lambda x, y: multiply(gamma_density(multiply(x, 0.5), multiply(y, 0.5)), -0.5),
)
publish(chdtrc, "v x", "1 - chdtr(v, x).")
gdtr: Elementwise = special_primitive(
    "gdtr",
    lambda x, y, z: multiply(z, gamma_density(y, multiply(x, z))),
    lambda x, y, z: gammainc_da(y, multiply(x, z)),
    lambda x, y, z: multiply(x, gamma_density(y, multiply(x, z))),
)
publish(gdtr, "a b x", "The gamma distribution function of rate a and shape b, P(b, a x).")
gdtrc: Elementwise = special_primitive(
    "gdtrc",
    lambda x, y, z: negative(multiply(z, gamma_density(y, multiply(x, z)))),
    lambda x, y, z: negative(gammainc_da(y, multiply(x, z))),
    lambda x, y, z: negative(multiply(x, gamma_density(y, multiply(x, z)))),
)
publish(gdtrc, "a b x", "1 - gdtr(a, b, x).")
fdtr: Elementwise = special_primitive(
    "fdtr",
    lambda x, y, z: f_slope_dfn(x, y, z),
    lambda x, y, z: f_slope_dfd(x, y, z),
    lambda x, y, z: f_density(x, y, z),
)
publish(
    fdtr, "dfn dfd x", "The F distribution function; its third derivatives by the degrees of freedom are not defined."
)
fdtrc: Elementwise = special_primitive(
    "fdtrc",
    lambda x, y, z: negative(f_slope_dfn(x, y, z)),
    lambda x, y, z: negative(f_slope_dfd(x, y, z)),
    lambda x, y, z: negative(f_density(x, y, z)),
)
publish(fdtrc, "dfn dfd x", "1 - fdtr(dfn, dfd, x).")
bdtr: Elementwise = special_primitive(
    "bdtr", missing("bdtr", "k"), missing("bdtr", "n"), lambda x, y, z, out: negative(_binomial_density(x, y, z, out))
)
publish(bdtr, "k n p", "The binomial distribution function; it has a derivative by p alone.")
bdtrc: Elementwise = special_primitive(
    "bdtrc", missing("bdtrc", "k"), missing("bdtrc", "n"), lambda x, y, z, out: _binomial_density(x, y, z, out)
)
publish(bdtrc, "k n p", "1 - bdtr(k, n, p).")
pdtr: Elementwise = special_primitive(
    "pdtr", missing("pdtr", "k"), lambda x, y: negative(gamma_density(add(floor(x), 1), y))
)
publish(pdtr, "k m", "The Poisson distribution function; it has a derivative by the mean m alone.")
pdtrc: Elementwise = special_primitive("pdtrc", missing("pdtrc", "k"), lambda x, y: gamma_density(add(floor(x), 1), y))
publish(pdtrc, "k m", "1 - pdtr(k, m).")
