"""Distribution functions and their inverses in each argument, by the implicit function theorem.

With F(x, θ) = p, the inverse has ∂x/∂p = 1/F_x and ∂x/∂θ = -F_θ/F_x. Derivatives by a parameter of F that has none
here (degrees of freedom of non-central distributions) raise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from func.backends.array_helpers import characteristic_values
from func.backends.array_helpers import special as helpers
from func.interpreters.core import Array, Primitive, Tracer
from func.interpreters.primitives.elementwise.table import (
    absolute,
    equal,
    exp,
    floor,
    greater,
    greater_equal,
    less_equal,
    log,
    logical_and,
    logical_or,
    minimum,
    sign,
    sqrt,
    trunc,
)
from func.interpreters.primitives.special.builders import by_name, near_zero
from func.interpreters.primitives.special.error_functions import ndtri
from func.interpreters.primitives.special.gamma import betaln, gammaln
from func.interpreters.primitives.special.incomplete import (
    beta_density,
    betainc,
    betainc_da,
    betainc_db,
    f_density,
    f_slope_dfd,
    f_slope_dfn,
    gamma_density,
    gamma_quantile_da,
    gammainc,
    gammainc_da,
    gammaincc,
    student_density,
    student_slope,
)
from func.interpreters.primitives.special.integrals import hyp0f1, hyp1f1
from func.interpreters.primitives.structural.identity import stop_gradient
from func.interpreters.primitives.structural.shapes import full_like, where

Slope = Callable[..., Array]
VALUE = "value"
MISS = 1e-4
"""How far the distribution function of an inverse may be from its value: in all, and as a part of the tail there."""
BOUND = 1e10
"""Where SciPy's search for degrees of freedom ends; other searches end at larger numbers."""
TINY = 1e-35
"""Below this, a result is the lower end of SciPy's search, which is 0 or a small number."""


def inverse(name: str, arguments: str, solved: str, given: str, slopes: dict[str, Slope]) -> Primitive:
    """The inverse of a distribution function in the argument `solved`, where its value is the argument `given`.

    The slopes are functions of the arguments of the distribution function, in the order of their names; `VALUE` names
    the distribution function itself.
    """
    names = arguments.split()
    order = [argument for argument in slopes if argument != VALUE]

    def slope(argument: str, values: tuple[Array, ...]) -> Array:
        known = dict(zip(names, values[:-1], strict=True)) | {solved: values[-1]}
        return slopes[argument](**{key: known[key] for key in order if key in known})

    def solved_only(quotient: Slope) -> Slope:
        """The slope where the equation holds. Where SciPy's search ends at a bound, its result does not move. The slope
        and its own slopes are NaN where the equation has no solution, or the search misses it, as for tiny
        probabilities.
        """

        def where_solved(*values: Array) -> Array:
            fixed = tuple([stop_gradient(x) if type(x) is Tracer else x for x in values])
            p = fixed[names.index(given)]
            miss = absolute(slope(VALUE, fixed) - p)
            size = absolute(fixed[-1])
            at_end = logical_or(greater(TINY, size), greater_equal(size, BOUND))
            is_bound = logical_or(logical_and(greater(miss, MISS), at_end), equal(size, BOUND))
            is_solved = less_equal(miss, MISS * minimum(p, 1 - p))
            result = where(is_solved, quotient(*values), values[-1] * math.nan)
            return where(is_bound, values[-1] * 0.0, result)

        return where_solved

    def partial(argument: str) -> Slope:
        if argument == given:
            return solved_only(lambda *values: 1 / slope(solved, values))
        return solved_only(lambda *values: -slope(argument, values) / slope(solved, values))

    available = [name for name in names if name == given or slopes.get(name) is not _UNKNOWN]
    if slopes[solved] is _UNKNOWN:
        available = []
    partials: dict[str, Any] = {argument: partial(argument) for argument in available}
    return by_name(name, arguments, **partials)


def _UNKNOWN(**values: Array) -> Array:
    """A slope that is not known."""
    raise NotImplementedError


BINOMIAL: dict[str, Slope] = {
    "k": lambda k, n, p: betainc_db(k + 1, n - k, p) - betainc_da(k + 1, n - k, p),
    "n": lambda k, n, p: -betainc_db(k + 1, n - k, p),
    "p": lambda k, n, p: -beta_density(k + 1, n - k, p),
    VALUE: lambda k, n, p: 1 - betainc(k + 1, n - k, p),
}
"""Those of 1 - I_p(k + 1, n - k). DLMF 8.17.5."""
bdtri: Primitive = by_name(
    "bdtri", "k n y", y=lambda k, n, y, p: -1 / beta_density(floor(k) + 1, trunc(n) - floor(k), p)
)
bdtrik: Primitive = inverse("bdtrik", "y n p", "k", "y", BINOMIAL)
bdtrin: Primitive = inverse("bdtrin", "k y p", "n", "y", BINOMIAL)

NEGATIVE_BINOMIAL: dict[str, Slope] = {
    "k": lambda k, n, p: betainc_db(n, k + 1, p),
    "n": lambda k, n, p: betainc_da(n, k + 1, p),
    "p": lambda k, n, p: beta_density(n, k + 1, p),
    VALUE: lambda k, n, p: betainc(n, k + 1, p),
}
"""Those of I_p(n, k + 1)."""
nbdtr: Primitive = by_name("nbdtr", "k n p", p=lambda k, n, p, out: beta_density(trunc(n), trunc(k) + 1, p))
nbdtrc: Primitive = by_name("nbdtrc", "k n p", p=lambda k, n, p, out: -beta_density(trunc(n), trunc(k) + 1, p))
nbdtri: Primitive = by_name("nbdtri", "k n y", y=lambda k, n, y, p: 1 / beta_density(trunc(n), trunc(k) + 1, p))
nbdtrik: Primitive = inverse("nbdtrik", "y n p", "k", "y", NEGATIVE_BINOMIAL)
nbdtrin: Primitive = inverse("nbdtrin", "k y p", "n", "y", NEGATIVE_BINOMIAL)

BETA: dict[str, Slope] = {
    "a": lambda a, b, x: betainc_da(a, b, x),
    "b": lambda a, b, x: betainc_db(a, b, x),
    "x": lambda a, b, x: beta_density(a, b, x),
    VALUE: lambda a, b, x: betainc(a, b, x),
}
btdtria: Primitive = inverse("btdtria", "p b x", "a", "p", BETA)
btdtrib: Primitive = inverse("btdtrib", "a p x", "b", "p", BETA)

CHI_SQUARE: dict[str, Slope] = {
    "v": lambda v, x: gammainc_da(v / 2, x / 2) / 2,
    "x": lambda v, x: gamma_density(v / 2, x / 2) / 2,
    VALUE: lambda v, x: gammainc(v / 2, x / 2),
}
chdtri: Primitive = by_name(
    "chdtri",
    "v y",
    v=lambda v, y, x: gamma_quantile_da(v / 2, x / 2),
    y=lambda v, y, x: -2 / gamma_density(v / 2, x / 2),
)
chdtriv: Primitive = inverse("chdtriv", "p x", "v", "p", CHI_SQUARE)

GAMMA: dict[str, Slope] = {
    "a": lambda a, b, x: x * gamma_density(b, a * x),
    "b": lambda a, b, x: gammainc_da(b, a * x),
    "x": lambda a, b, x: a * gamma_density(b, a * x),
    VALUE: lambda a, b, x: gammainc(b, a * x),
}
gdtria: Primitive = inverse("gdtria", "p b x", "a", "p", GAMMA)
gdtrib: Primitive = inverse("gdtrib", "a p x", "b", "p", GAMMA)
gdtrix: Primitive = inverse("gdtrix", "a b p", "x", "p", GAMMA)

F: dict[str, Slope] = {
    "dfn": lambda dfn, dfd, x: f_slope_dfn(dfn, dfd, x),
    "dfd": lambda dfn, dfd, x: f_slope_dfd(dfn, dfd, x),
    "x": lambda dfn, dfd, x: f_density(dfn, dfd, x),
    VALUE: lambda dfn, dfd, x: betainc(dfn / 2, dfd / 2, dfn * x / (dfd + dfn * x)),
}
fdtri: Primitive = inverse("fdtri", "dfn dfd p", "x", "p", F)
fdtridfd: Primitive = inverse("fdtridfd", "dfn p x", "dfd", "p", F)

STUDENT: dict[str, Slope] = {
    "df": lambda df, t: student_slope(df, t),
    "t": lambda df, t: student_density(df, t),
    VALUE: lambda df, t: (1 + sign(t) * (1 - betainc(df / 2, 0.5, df / (df + t * t)))) / 2,
}
stdtrit: Primitive = inverse("stdtrit", "df p", "t", "p", STUDENT)
stdtridf: Primitive = inverse("stdtridf", "p t", "df", "p", STUDENT)

POISSON: dict[str, Slope] = {
    "k": lambda k, m: -gammainc_da(k + 1, m),
    "m": lambda k, m: -gamma_density(k + 1, m),
    VALUE: lambda k, m: gammaincc(k + 1, m),
}
"""Those of Q(k + 1, m). DLMF 8.8.13."""
pdtri: Primitive = by_name("pdtri", "k y", y=lambda k, y, m: -1 / gamma_density(trunc(k) + 1, m))
pdtrik: Primitive = inverse("pdtrik", "p m", "k", "p", POISSON)


def _normal_density(z: Array) -> Array:
    return exp(z * z / -2) / math.sqrt(2 * math.pi)


nrdtrimn: Primitive = by_name(
    "nrdtrimn",
    "p std x",
    p=lambda p, std, x, out: -std / _normal_density((x - out) / std),
    std=lambda p, std, x, out: (out - x) / std,
    x=lambda p, std, x, out: full_like(out, 1, ()),
)
nrdtrisd: Primitive = by_name(
    "nrdtrisd",
    "mn p x",
    mn=lambda mn, p, x, out: -1 / ndtri(p),
    p=lambda mn, p, x, out: -out / (ndtri(p) * _normal_density(ndtri(p))),
    x=lambda mn, p, x, out: 1 / ndtri(p),
)


def chi_square_density(x: Array, df: Array, nc: Array) -> Array:
    """(x/2)^(ν/2 - 1) e^(-(x + λ)/2) ₀F₁(; ν/2; λ x/4) / (2 Γ(ν/2)), which has no derivative by ν."""
    power = (df / 2 - 1) * log(x / 2) - (x + nc) / 2 - gammaln(df / 2)
    return exp(power) * hyp0f1(df / 2, nc * x / 4) / 2


CHI_SQUARE_OFF_CENTRE: dict[str, Slope] = {
    "x": lambda x, df, nc: chi_square_density(x, df, nc),
    "df": _UNKNOWN,
    "nc": lambda x, df, nc: -chi_square_density(x, df + 2, nc),
    VALUE: lambda x, df, nc: chndtr(x, df, nc),
}
chndtr: Primitive = by_name(
    "chndtr",
    "x df nc",
    x=lambda x, df, nc, out: chi_square_density(x, df, nc),
    nc=lambda x, df, nc, out: -chi_square_density(x, df + 2, nc),
)
chndtrix: Primitive = inverse("chndtrix", "p df nc", "x", "p", CHI_SQUARE_OFF_CENTRE)
chndtridf: Primitive = inverse("chndtridf", "x p nc", "df", "p", CHI_SQUARE_OFF_CENTRE)
chndtrinc: Primitive = inverse("chndtrinc", "x df p", "nc", "p", CHI_SQUARE_OFF_CENTRE)


def _kummer(a: Array, b: Array, z: Array) -> Array:
    """₁F₁(a; b; z), infinite from where SciPy's series would not end."""
    is_huge = greater(z, 1e4)
    return where(is_huge, full_like(z, math.inf, ()), hyp1f1(a, b, where(is_huge, full_like(z, 0, ()), z)))


def _f_parts(dfn: Array, dfd: Array, nc: Array, f: Array) -> tuple[Array, ...]:
    a, b = dfn / 2, dfd / 2
    w = dfn * f / (dfd + dfn * f)
    return a, b, w, exp(a * log(w) + b * log(1 - w) - betaln(a, b) - nc / 2)


def _f_off_centre_density(dfn: Array, dfd: Array, nc: Array, f: Array) -> Array:
    """The mixture of beta densities, e^(-λ/2) w^(a - 1) (1 - w)^(b - 1) ₁F₁(a + b; a; λ w/2) / B(a, b), times dw/df."""
    a, b, w, power = _f_parts(dfn, dfd, nc, f)
    return power * _kummer(a + b, a, nc * w / 2) / f


def _f_off_centre_slope(dfn: Array, dfd: Array, nc: Array, f: Array) -> Array:
    """By λ: -e^(-λ/2) w^a (1 - w)^b ₁F₁(a + b; a + 1; λ w/2) / (2 a B(a, b))."""
    a, b, w, power = _f_parts(dfn, dfd, nc, f)
    return power * _kummer(a + b, a + 1, nc * w / 2) / (-2 * a)


F_OFF_CENTRE: dict[str, Slope] = {
    "dfn": _UNKNOWN,
    "dfd": _UNKNOWN,
    "nc": _f_off_centre_slope,
    "f": _f_off_centre_density,
    VALUE: lambda dfn, dfd, nc, f: ncfdtr(dfn, dfd, nc, f),
}
ncfdtr: Primitive = by_name(
    "ncfdtr",
    "dfn dfd nc f",
    nc=lambda dfn, dfd, nc, f, out: _f_off_centre_slope(dfn, dfd, nc, f),
    f=lambda dfn, dfd, nc, f, out: _f_off_centre_density(dfn, dfd, nc, f),
)
ncfdtri: Primitive = inverse("ncfdtri", "dfn dfd nc p", "f", "p", F_OFF_CENTRE)
ncfdtridfd: Primitive = inverse("ncfdtridfd", "dfn p nc f", "dfd", "p", F_OFF_CENTRE)
ncfdtridfn: Primitive = inverse("ncfdtridfn", "p dfd nc f", "dfn", "p", F_OFF_CENTRE)
ncfdtrinc: Primitive = inverse("ncfdtrinc", "dfn dfd p f", "nc", "p", F_OFF_CENTRE)


def _student_sum(k: Array, df: Array, nc: Array, t: Array) -> Array:
    """Σ_j y^j Γ((k + j)/2) / j! with y = μ t √2 / √(ν + t²), divided by Γ(ν/2) (1 + t²/ν)^(k/2) e^(μ²/2)."""
    y = nc * t * math.sqrt(2) / sqrt(df + t * t)
    even = exp(gammaln(k / 2) - gammaln(df / 2)) * _kummer(k / 2, 0.5, y * y / 4)
    odd = exp(gammaln((k + 1) / 2) - gammaln(df / 2)) * _kummer((k + 1) / 2, 1.5, y * y / 4)
    return (even + y * odd) * exp(-k / 2 * log(1 + t * t / df) - nc * nc / 2)


STUDENT_OFF_CENTRE: dict[str, Slope] = {
    "df": _UNKNOWN,
    "nc": lambda df, nc, t: _student_sum(df, df, nc, t) / -math.sqrt(2 * math.pi),
    "t": lambda df, nc, t: _student_sum(df + 1, df, nc, t) / sqrt(math.pi * df),
    VALUE: lambda df, nc, t: nctdtr(df, nc, t),
}
"""From the mean of φ(t s - μ) and of s φ(t s - μ), s² = χ²/ν, term by term."""
nctdtr: Primitive = by_name(
    "nctdtr",
    "df nc t",
    nc=lambda df, nc, t, out: STUDENT_OFF_CENTRE["nc"](df, nc, t),
    t=lambda df, nc, t, out: STUDENT_OFF_CENTRE["t"](df, nc, t),
)
nctdtrit: Primitive = inverse("nctdtrit", "df nc p", "t", "p", STUDENT_OFF_CENTRE)
nctdtridf: Primitive = inverse("nctdtridf", "p nc t", "df", "p", STUDENT_OFF_CENTRE)
nctdtrinc: Primitive = inverse("nctdtrinc", "df p t", "nc", "p", STUDENT_OFF_CENTRE)


kolmogorov_bend: Primitive = by_name("kolmogorov_bend", "y", impl=lambda xp, y: helpers.kolmogorov_slope(xp, y, 2))
kolmogorov_slope: Primitive = by_name(
    "kolmogorov_slope", "y", impl=lambda xp, y: helpers.kolmogorov_slope(xp, y, 1), y=lambda y, out: kolmogorov_bend(y)
)
kolmogorov: Primitive = by_name("kolmogorov", "y", y=lambda y, out: kolmogorov_slope(y))
kolmogi: Primitive = by_name("kolmogi", "p", p=lambda p, out: 1 / kolmogorov_slope(out))


smirnov_bend: Primitive = by_name("smirnov_bend", "n d", impl=characteristic_values.smirnov_bend)
smirnov_slope: Primitive = by_name(
    "smirnov_slope", "n d", impl=characteristic_values.smirnov_slope, d=lambda n, d, out: smirnov_bend(n, d)
)
smirnov: Primitive = by_name("smirnov", "n d", d=lambda n, d, out: smirnov_slope(n, d))
smirnovi: Primitive = by_name("smirnovi", "n p", p=lambda n, p, out: 1 / smirnov_slope(n, out))


def _tukey_density(lam: Array, p: Array) -> Array:
    """1 / (p^(λ - 1) + (1 - p)^(λ - 1)), the density where the distribution function is p; outside it is zero."""
    inside = logical_and(greater(p, 0), greater(1 - p, 0))
    p = where(inside, p, full_like(p, 0.5, ()))
    density = 1 / (exp((lam - 1) * log(p)) + exp((lam - 1) * log(1 - p)))
    return where(inside, density, density * 0.0)


def _tukey_bend(log_p: Array, lam: Array) -> Array:
    """The derivative of (p^λ - 1) / λ by λ: log² p Σ uᵏ (k + 1) / (k + 2)! with u = λ log p."""
    exponent = lam * log_p
    terms = [(k + 1) / math.factorial(k + 2) for k in range(24)]
    return log_p * log_p * near_zero(exponent, terms, lambda u: ((u - 1) * exp(u) + 1) / (u * u))


def _tukey_slope(x: Array, lam: Array, p: Array) -> Array:
    """Minus the density times the slope of the quantile (p^λ - (1 - p)^λ) / λ by λ."""
    inside = logical_and(greater(p, 0), greater(1 - p, 0))
    safe = where(inside, p, full_like(p, 0.5, ()))
    return _tukey_density(lam, p) * (_tukey_bend(log(1 - safe), lam) - _tukey_bend(log(safe), lam))


tklmbda: Primitive = by_name(
    "tklmbda", "x lmbda", x=lambda x, lmbda, out: _tukey_density(lmbda, out), lmbda=_tukey_slope
)
