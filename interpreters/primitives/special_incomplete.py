"""Rows of the incomplete gamma and beta functions, with their derivatives by the parameters."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from func.interpreters.core import PYTHON_SCALARS, Array, dtype_of, shape_of
from func.interpreters.primitives.elementwise import add, divide, exp, floor, log, multiply, negative, square, subtract
from func.interpreters.primitives.pointwise import Elementwise, elementwise
from func.interpreters.primitives.random_gamma import slope as gamma_slope
from func.interpreters.primitives.special_entropy import xlog1py, xlogy
from func.interpreters.primitives.special_gamma import betaln, digamma, gammaln
from func.interpreters.primitives.special_lookup import missing, result_of, special, special_row, unless_zero
from func.interpreters.primitives.structural import full_like

# --- incomplete gamma functions ----------------------------------------------------------------------------------


def gamma_density(a: Array, x: Array) -> Array:
    """x^(a - 1) e^(-x) / Γ(a), the derivative of P(a, x) by x. DLMF 8.8.13."""
    return exp(subtract(subtract(xlogy(subtract(a, 1), x), x), gammaln(a)))


def gammainc_da(a: Array, x: Array) -> Array:
    """∂P(a, x)/∂a: a quantile stays put, so this is minus its slope times the density, both in log x."""

    def inside(x: Array) -> Array:
        y = log(x)
        return negative(multiply(gamma_slope(a, y, order=0), exp(subtract(subtract(multiply(a, y), x), gammaln(a)))))

    return unless_zero(x, full_like(x, 0, ()), inside)


gammainc: Elementwise = special_row("gammainc", lambda x, y: gammainc_da(x, y), lambda x, y: gamma_density(x, y))
gammaincc: Elementwise = special_row(
    "gammaincc", lambda x, y: negative(gammainc_da(x, y)), lambda x, y: negative(gamma_density(x, y))
)


def _gamma_quantile_da(a: Array, x: Array) -> Array:
    """∂x/∂a at fixed P(a, x): x times the slope of log x."""
    return unless_zero(x, full_like(x, 0, ()), lambda x: multiply(x, gamma_slope(a, log(x), order=0)))


gammaincinv: Elementwise = special_row(
    "gammaincinv",
    lambda x, out: _gamma_quantile_da(x, out),
    lambda x, out: divide(1, gamma_density(x, out)),
)
gammainccinv: Elementwise = special_row(
    "gammainccinv",
    lambda x, out: _gamma_quantile_da(x, out),
    lambda x, out: divide(-1, gamma_density(x, out)),
)

# --- the derivative of the incomplete beta function by a parameter -----------------------------------------------

_RULES = ((1 / 16, 3.4), (1 / 40, 5.2))
"""Step and reach of the double exponential formula, far from and close to a singular point."""
_CLOSE = 0.02
_DECAY = 45.0
"""Integrals stop where their integrand has fallen by exp(-45)."""
_BLOCK = 1 << 12


@functools.cache
def _double_exponential(step: float, reach: float) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Nodes in (0, 1), exact near 0, and weights.

    Source: H. Takahasi, M. Mori (1974), Double exponential formulas for numerical integration.
    """
    u = np.arange(-reach, reach + step / 2, step)
    bent = np.pi * np.sinh(u)
    nodes = 1 / (1 + np.exp(-bent))
    return nodes, step * np.pi * np.cosh(u) * nodes / (1 + np.exp(bent))


def _digamma_gap(xp: Any, a: Array, b: Array) -> Array:
    """ψ(a + b) - ψ(a), without cancellation for large a. DLMF 5.11.2."""
    big = a > 10
    far = xp.where(big, a, 11.0)
    whole = far + b
    out = xp.log1p(b / far) + 0.5 * b / (far * whole)
    for k, number in enumerate((1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6), start=1):
        out = out + number / (2 * k) * (far ** (-2 * k) - whole ** (-2 * k))
    psi = special(xp, "digamma")
    return xp.where(big, out, psi(a + b) - psi(a))


Rule: TypeAlias = tuple[float, float]
Weight: TypeAlias = Callable[[Array, Array], Array]


def _tail_integral(xp: Any, a: Array, b: Array, t: Array, rest: Array, rule: Rule, weight: Weight) -> Array:
    """∫₀ᵗ u^(a - 1) (1 - u)^(b - 1) weight du / B(a, b), by u = t e^(-s), for t left of the mode; rest = 1 - t.

    weight(s, t - u) must not change its sign, so that nothing cancels.
    """
    log_rest = xp.where(rest < 0.5, xp.log(rest), xp.log1p(-t))
    log_t = xp.where(t < 0.5, xp.log(t), xp.log1p(-rest))
    stop = (_DECAY + xp.maximum(b - 1, 0.0) * -log_rest) / a
    for _ in range(12):  # Newton's method on a concave function, from the right
        u = t * xp.exp(-stop)
        value = -a * stop + (b - 1) * (xp.log1p(-u) - log_rest) + _DECAY
        grade = -a + (b - 1) * u / (1 - u)
        stop = xp.where((b > 1) & (grade < 0), stop - value / grade, stop)
    nodes, weights = [xp.asarray(each) for each in _double_exponential(*rule)]
    s = stop[:, None] * nodes
    shift = -t[:, None] * xp.expm1(-s)
    growth = xp.log1p(shift / rest[:, None])
    terms = xp.exp(-a[:, None] * s + (b[:, None] - 1) * growth) * weight(s, shift)
    integral = xp.sum(terms * weights, -1) * stop
    return integral * xp.exp(a * log_t + (b - 1) * log_rest - special(xp, "betaln")(a, b))


def _below(xp: Any, a: Array, b: Array, x: Array, rest: Array, rule: Rule) -> Array:
    """∂I/∂a = ∫₀ˣ (log t + ψ(a + b) - ψ(a)) dI, for x where the bracket is negative throughout. DLMF 8.17.1."""
    bracket = xp.where(x < 0.5, xp.log(x), xp.log1p(-rest)) + _digamma_gap(xp, a, b)
    return _tail_integral(xp, a, b, x, rest, rule, lambda s, shift: bracket[:, None] - s)


def _above(xp: Any, a: Array, b: Array, x: Array, rest: Array, rule: Rule) -> Array:
    """The same from above: -∫ₓ¹ (log t + ψ(a + b) - ψ(a)) dI, with a positive bracket."""
    gap = _digamma_gap(xp, a, b)[:, None]
    x_, rest_ = x[:, None], rest[:, None]

    def bracket(s: Array, shift: Array) -> Array:
        lost = rest_ * xp.exp(-s)
        return xp.where(lost < 0.5, xp.log1p(-xp.minimum(lost, 0.5)), xp.log(x_ + shift)) + gap

    return -_tail_integral(xp, b, a, rest, x, rule, bracket)


def _betainc_da(xp: Any, a: Array, b: Array, x: Array, rest: Array) -> Array:
    """∂I_x(a, b)/∂a of vectors, where rest = 1 - x to full relative precision."""
    out = xp.full(a.shape, np.nan)
    proper = (a > 0) & (b > 0) & xp.isfinite(a) & xp.isfinite(b)
    out[proper & ((x == 0) | (rest == 0))] = 0.0
    proper = proper & (x > 0) & (rest > 0)
    safe_a, safe_b, safe_x = [xp.where(proper, v, 1.0) for v in (a, b, x)]
    low = xp.log(safe_x) < -_digamma_gap(xp, safe_a, safe_b)
    for integrate, part, gap in ((_below, proper & low, rest), (_above, proper & ~low, x)):
        for rule, chosen in zip(_RULES, (gap >= _CLOSE, gap < _CLOSE), strict=True):
            places = xp.flatnonzero(part & chosen)
            for start in range(0, places.shape[0], _BLOCK):
                here = places[start : start + _BLOCK]
                out[here] = integrate(xp, a[here], b[here], x[here], rest[here], rule)
    return out


def _parameter_impl(by_b: bool) -> Callable[..., Array]:
    """∂I/∂a as it is; ∂I/∂b by I_x(a, b) = 1 - I_(1-x)(b, a). DLMF 8.17.4."""

    def impl(xp: Any, a: Array, b: Array, x: Array) -> Array:
        shape = np.broadcast_shapes(shape_of(a), shape_of(b), shape_of(x))
        dtype = result_of(np.result_type(*[v if type(v) in PYTHON_SCALARS else dtype_of(v) for v in (a, b, x)]))
        a, b, x = [xp.reshape(xp.broadcast_to(xp.asarray(v), shape), (-1,)).astype(np.float64) for v in (a, b, x)]
        with np.errstate(all="ignore"):
            out = -_betainc_da(xp, b, a, 1 - x, x) if by_b else _betainc_da(xp, a, b, x, 1 - x)
        return xp.reshape(out.astype(dtype), shape)[()]

    return impl


# --- incomplete beta functions -----------------------------------------------------------------------------------


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
    missing("the derivative of betainc by a", "a"),
    missing("the derivative of betainc by a", "b"),
    lambda x, y, z: _beta_score(x, y, z),
    impl=_parameter_impl(by_b=False),
    guarded=True,
)
betainc_db: Elementwise = elementwise(
    "betainc_db",
    missing("the derivative of betainc by b", "a"),
    missing("the derivative of betainc by b", "b"),
    lambda x, y, z: _beta_score(y, x, subtract(1, z)),
    impl=_parameter_impl(by_b=True),
    guarded=True,
)

betainc: Elementwise = special_row(
    "betainc",
    lambda x, y, z: betainc_da(x, y, z),
    lambda x, y, z: betainc_db(x, y, z),
    lambda x, y, z: beta_density(x, y, z),
)
betaincc: Elementwise = special_row(
    "betaincc",
    lambda x, y, z: negative(betainc_da(x, y, z)),
    lambda x, y, z: negative(betainc_db(x, y, z)),
    lambda x, y, z: negative(beta_density(x, y, z)),
)
betaincinv: Elementwise = special_row(
    "betaincinv",
    lambda x, y, out: negative(divide(betainc_da(x, y, out), beta_density(x, y, out))),
    lambda x, y, out: negative(divide(betainc_db(x, y, out), beta_density(x, y, out))),
    lambda x, y, out: divide(1, beta_density(x, y, out)),
)
betainccinv: Elementwise = special_row(
    "betainccinv",
    lambda x, y, out: negative(divide(betainc_da(x, y, out), beta_density(x, y, out))),
    lambda x, y, out: negative(divide(betainc_db(x, y, out), beta_density(x, y, out))),
    lambda x, y, out: divide(-1, beta_density(x, y, out)),
)

# --- distribution functions made of them -------------------------------------------------------------------------


def _student_density(df: Array, t: Array) -> Array:
    """The density of Student's distribution, (1 + t²/ν)^(-(ν + 1)/2) / (√ν B(1/2, ν/2))."""
    half = multiply(df, 0.5)
    power = multiply(xlog1py(add(df, 1), divide(square(t), df)), -0.5)
    return exp(subtract(subtract(power, betaln(half, 0.5)), multiply(log(df), 0.5)))


def _f_density(m: Array, n: Array, x: Array) -> Array:
    """The derivative by x of I_w(m/2, n/2) with w = m x / (n + m x)."""
    whole = add(n, multiply(m, x))
    w = divide(multiply(m, x), whole)
    return multiply(beta_density(multiply(m, 0.5), multiply(n, 0.5), w), divide(multiply(m, n), square(whole)))


def _binomial_density(k: Array, n: Array, p: Array) -> Array:
    """The derivative by p of I_p(k + 1, n - k)."""
    return beta_density(add(k, 1), subtract(n, k), p)


stdtr: Elementwise = special_row("stdtr", missing("stdtr", "df"), lambda x, y: _student_density(x, y))
chdtr: Elementwise = special_row(
    "chdtr",
    lambda x, y: multiply(gammainc_da(multiply(x, 0.5), multiply(y, 0.5)), 0.5),
    lambda x, y: multiply(gamma_density(multiply(x, 0.5), multiply(y, 0.5)), 0.5),
)
chdtrc: Elementwise = special_row(
    "chdtrc",
    lambda x, y: multiply(gammainc_da(multiply(x, 0.5), multiply(y, 0.5)), -0.5),
    lambda x, y: multiply(gamma_density(multiply(x, 0.5), multiply(y, 0.5)), -0.5),
)
gdtr: Elementwise = special_row(
    "gdtr",
    lambda x, y, z: multiply(z, gamma_density(y, multiply(x, z))),
    lambda x, y, z: gammainc_da(y, multiply(x, z)),
    lambda x, y, z: multiply(x, gamma_density(y, multiply(x, z))),
)
gdtrc: Elementwise = special_row(
    "gdtrc",
    lambda x, y, z: negative(multiply(z, gamma_density(y, multiply(x, z)))),
    lambda x, y, z: negative(gammainc_da(y, multiply(x, z))),
    lambda x, y, z: negative(multiply(x, gamma_density(y, multiply(x, z)))),
)
fdtr: Elementwise = special_row(
    "fdtr", missing("fdtr", "dfn"), missing("fdtr", "dfd"), lambda x, y, z: _f_density(x, y, z)
)
fdtrc: Elementwise = special_row(
    "fdtrc", missing("fdtrc", "dfn"), missing("fdtrc", "dfd"), lambda x, y, z: negative(_f_density(x, y, z))
)
bdtr: Elementwise = special_row(
    "bdtr", missing("bdtr", "k"), missing("bdtr", "n"), lambda x, y, z: negative(_binomial_density(floor(x), y, z))
)
bdtrc: Elementwise = special_row(
    "bdtrc", missing("bdtrc", "k"), missing("bdtrc", "n"), lambda x, y, z: _binomial_density(floor(x), y, z)
)
pdtr: Elementwise = special_row("pdtr", missing("pdtr", "k"), lambda x, y: negative(gamma_density(add(floor(x), 1), y)))
pdtrc: Elementwise = special_row("pdtrc", missing("pdtrc", "k"), lambda x, y: gamma_density(add(floor(x), 1), y))
