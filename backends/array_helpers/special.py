"""Special functions that generated source calls by name."""

from __future__ import annotations

import math
from typing import Any

import numpy

from func.backends.array_helpers.arrays import scipy_of


def result_of(dtype: Any) -> Any:
    """The dtype that a function of scipy.special gives for an argument of a dtype."""
    if dtype.kind not in "fc":
        return numpy.dtype(numpy.float64)
    return numpy.dtype(numpy.float32) if dtype == numpy.float16 else dtype


def of_order(xp: Any, function: Any, x: Any, order: int) -> Any:
    """The derivative of an order of a function of one argument, in the dtype of the argument."""
    x = xp.asarray(x)
    dtype = result_of(x.dtype)
    return function(xp, x.astype(dtype), order).astype(dtype)[()]


def sinc_series(y: Any, order: int) -> Any:
    """The derivative of Σ (-1)^k y^2k / (2k+1)! of an order, for small y."""
    total = 0.0 * y
    first = (order + 1) // 2
    for k in range(first + 15, first - 1, -1):
        coefficient = (-1) ** k / (2 * k + 1) * (1.0 / math.factorial(2 * k - order))
        total = total * (y * y) + coefficient
    return total if 2 * first == order else total * y


def sinc(xp: Any, x: Any, *, order: int) -> Any:
    """The derivative of an order of sin(πx) / (πx); of order zero as NumPy computes it."""
    y = math.pi * xp.asarray(x)
    if order == 0:
        tiny = xp.finfo(y.dtype).eps if y.dtype.kind == "f" else 1e-20
        y = xp.where(y, y, xp.asarray(tiny, y.dtype))
        return (xp.sin(y) / y)[()]
    small = xp.abs(y) < 3.0
    far = xp.where(small, xp.asarray(1, y.dtype), y)
    waves = (xp.sin(far), xp.cos(far))
    value = waves[0] / far
    for n in range(1, order + 1):  # y s⁽ⁿ⁾ + n s⁽ⁿ⁻¹⁾ = sin⁽ⁿ⁾ y, from y s = sin y
        wave = waves[n % 2] * (-1 if n % 4 > 1 else 1)
        value = (wave - n * value) / far
    near = sinc_series(xp.where(small, y, xp.asarray(0, y.dtype)), order)
    return (math.pi**order * xp.where(small, near, value))[()]


def i0(xp: Any, x: Any, *, order: int) -> Any:
    """A derivative of the modified Bessel function; of order zero as NumPy computes it."""
    if order == 0:
        return xp.i0(x)[()]
    special = scipy_of(xp, "special")
    x = xp.asarray(x)
    x = x if x.dtype.kind == "f" else x.astype(float)
    value = special.i1(x) if order == 1 else special.iv(order, x)
    return value.astype(x.dtype)[()]


def exprel(xp: Any, x: Any, order: int) -> Any:
    """(eˣ - 1) / x = ∫₀¹ e^(x t) dt, so its derivatives are ∫ tⁿ e^(x t) dt = M(n + 1, n + 2, x) / (n + 1).

    Source: DLMF 13.4.1.
    """
    special = scipy_of(xp, "special")
    if order == 0:
        return special.exprel(x)
    moderate = xp.abs(x) < 800  # SciPy's series does not end far outside
    near = special.hyp1f1(order + 1.0, order + 2.0, xp.where(moderate, x, xp.zeros_like(x))) / (order + 1)
    below = xp.where(moderate, xp.full_like(x, -1), x)
    far = xp.where(x > 0, xp.full_like(x, xp.inf), math.factorial(order) * (-below) ** -(order + 1.0))
    return xp.where(moderate, near, far)


def log1prel(xp: Any, x: Any, order: int) -> Any:
    """log(1 + x) / x = ∫₀¹ dt / (1 + x t); its derivatives are Gauss' hypergeometric functions. DLMF 15.6.1.

    For large x they follow from those of log(1 + x), by Leibniz' rule.
    """
    special = scipy_of(xp, "special")
    if order == 0:
        nothing = x == 0
        safe = xp.where(nothing, xp.ones_like(x), x)
        return xp.where(nothing, xp.ones_like(x), special.log1p(safe) / safe)
    n = float(order)
    scale = (-1) ** order * math.factorial(order) / (n + 1)
    large = x > 4
    near = scale * special.hyp2f1(n + 1, n + 1, n + 2, -xp.where(large, xp.ones_like(x), x))
    high = xp.where(large, x, xp.full_like(x, 4))
    value = special.log1p(high) / high
    for k in range(1, order + 1):
        value = (-((-1) ** k) * math.factorial(k - 1) * (1 + high) ** -float(k) - k * value) / high
    return xp.where(large, value, near)


def hypergeometric_slope(xp: Any, a: float, b: float, c: float, order: int, x: Any) -> Any:
    """The derivative of an order of Gauss' function; far to the left by Pfaff's transformation. DLMF 15.5.2, 15.8.1."""
    scale = 1.0
    for k in range(order):
        scale *= (a + k) * (b + k) / (c + k)
    a, b, c = a + order, b + order, c + order
    hyp2f1 = scipy_of(xp, "special").hyp2f1
    left = x < -1
    far, near = xp.where(left, x, -1.0), xp.where(left, 0.0, x)
    return scale * xp.where(left, (1 - far) ** -b * hyp2f1(c - a, b, c, far / (far - 1)), hyp2f1(a, b, c, near))


def ellipk(xp: Any, m: Any, order: int) -> Any:
    """K = π/2 F(1/2, 1/2; 1; m), and its derivatives; the first one is R_D(0, 1, 1 - m)/6. DLMF 19.5.1, 19.25.1."""
    special = scipy_of(xp, "special")
    if order < 2:
        return special.elliprd(0.0, 1.0, 1 - m) / 6 if order else special.ellipk(m)
    return math.pi / 2 * hypergeometric_slope(xp, 0.5, 0.5, 1.0, order, m)


def ellipkm1(xp: Any, p: Any, order: int) -> Any:
    """K of 1 - p; its derivatives by Euler's transformation, so that small p stays exact. DLMF 15.8.1."""
    special = scipy_of(xp, "special")
    if order == 0:
        return special.ellipkm1(p)
    scale = (-1) ** order * math.pi / 2
    for k in range(order):
        scale *= (0.5 + k) ** 2 / (1 + k)
    return scale * p**-order * special.hyp2f1(0.5, 0.5, 1.0 + order, 1 - p)


def ellipe(xp: Any, m: Any, order: int) -> Any:
    """E = π/2 F(-1/2, 1/2; 1; m); its first derivative is -R_D(0, 1 - m, 1)/6. DLMF 19.5.2 and 19.4.2."""
    special = scipy_of(xp, "special")
    if order < 2:
        return special.elliprd(0.0, 1 - m, 1.0) / -6 if order else special.ellipe(m)
    return math.pi / 2 * hypergeometric_slope(xp, -0.5, 0.5, 1.0, order, m)


def reduced_angle(xp: Any, phi: Any) -> tuple[Any, Any]:
    """(n, r) with phi = n π + r and |r| <= π/2."""
    n = xp.round(phi / math.pi)
    return n, phi - n * math.pi


def ellipkinc_dm(xp: Any, phi: Any, m: Any) -> Any:
    """∂F(φ|m)/∂m = sin³r R_D(cos²r, 1, 1 - m sin²r) / 6 + 2 n K'. DLMF 19.25.5 and 19.18.4."""
    elliprd = scipy_of(xp, "special").elliprd
    n, r = reduced_angle(xp, xp.asarray(phi))
    sine = xp.sin(r)
    complete = elliprd(0.0, 1.0, 1 - m) / 3
    part = sine**3 * elliprd(xp.cos(r) ** 2, 1.0, 1 - m * sine**2) / 6
    return (part + xp.where(n == 0, xp.zeros_like(n), n * complete))[()]


def ellipeinc_dm(xp: Any, phi: Any, m: Any) -> Any:
    """∂E(φ|m)/∂m = -sin³r R_D(cos²r, 1 - m sin²r, 1) / 6 + 2 n E'. DLMF 19.25.9 and 19.4.6."""
    elliprd = scipy_of(xp, "special").elliprd
    n, r = reduced_angle(xp, xp.asarray(phi))
    sine = xp.sin(r)
    complete = elliprd(0.0, 1 - m, 1.0) / -3
    part = sine**3 * elliprd(xp.cos(r) ** 2, 1 - m * sine**2, 1.0) / -6
    return (part + n * complete)[()]


def complex_zeta(xp: Any, s: Any, z: Any) -> Any:
    """Hurwitz' ζ(s, z) for complex z by the Euler-Maclaurin formula, after the recurrence has moved z to the right.

    It is NaN where that would take more than 10,000 steps, each of which is an addition of arrays.
    Source: DLMF 25.11.5 and 2.10.1.
    """
    most_steps = 10_000
    bernoulli = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
    is_far = ~(z.real > 18.0 - most_steps) | ~xp.isfinite(z)
    z = xp.where(is_far, xp.nan, z)
    steps = math.ceil(max(0.0, 18.0 - xp.min(xp.where(is_far, 18.0, z.real)).item())) if z.size else 0
    out = 0.0 * z
    for _ in range(steps):
        out = out + z**-s
        z = z + 1
    out = out + z ** (1 - s) / (s - 1) + 0.5 * z**-s
    rising, power = s, z ** (-s - 1)
    for k, number in enumerate(bernoulli, start=1):
        out = out + number / math.factorial(2 * k) * rising * power
        rising, power = rising * (s + 2 * k - 1) * (s + 2 * k), power / (z * z)
    return out


def polygamma(xp: Any, n: Any, x: Any) -> Any:
    """SciPy's, in the dtype of x; for complex x, which SciPy rejects, by the series of ζ."""
    special = scipy_of(xp, "special")
    x = xp.asarray(x)
    dtype = result_of(x.dtype)
    if dtype.kind != "c":
        return special.polygamma(n, x).astype(dtype)[()]
    n, x = xp.asarray(n), x.astype(numpy.complex128)
    order = xp.where(n == 0, 1, n)
    factor = (-1.0) ** (order + 1) * special.gamma(order + 1.0)
    return xp.where(n == 0, special.digamma(x), factor * complex_zeta(xp, order + 1, x)).astype(dtype)[()]


def double_exponential(step: float, reach: float) -> Any:
    """Nodes in (0, 1), exact near 0, and weights, computed once.

    Source: H. Takahasi, M. Mori (1974), Double exponential formulas for numerical integration.
    """
    cache = vars(double_exponential)
    key = f"{step}, {reach}"
    if key not in cache:
        u = numpy.arange(-reach, reach + step / 2, step)
        bent = numpy.pi * numpy.sinh(u)
        nodes = 1 / (1 + numpy.exp(-bent))
        cache[key] = nodes, step * numpy.pi * numpy.cosh(u) * nodes / (1 + numpy.exp(bent))
    return cache[key]


def bernoulli_terms() -> list[tuple[int, float]]:
    """(1, B₂), (2, B₄), ... (8, B₁₆), for the asymptotic series of the gamma function's relatives, from 16 on."""
    return list(enumerate((1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510), start=1))


def power_gap(xp: Any, a: Any, d: Any, n: int) -> Any:
    """(a + d)⁻ⁿ - a⁻ⁿ, accurate for d much smaller than a."""
    return -d / (a * (a + d)) if n == 1 else a ** -float(n) * xp.expm1(-n * xp.log1p(d / a))


def polygamma_gap_far(xp: Any, n: int, a: Any, d: Any) -> Any:
    """ψ⁽ⁿ⁾(a + d) - ψ⁽ⁿ⁾(a) for large a and a + d, each term of the asymptotic series for itself. DLMF 5.15.8."""
    end = a + d
    lead = power_gap(xp, a, d, n) * math.factorial(n - 1) if n else -xp.log1p(d / a)
    out = lead + 0.5 * math.factorial(n) * power_gap(xp, a, d, n + 1)
    low, high = 1 / (a * a), 1 / (end * end)
    step = -d / a * (1 + a / end) / (a * end)  # the gap of the inverse squares
    gap, power = (step, low) if n == 0 else (power_gap(xp, a, d, n + 2), a ** -(n + 2.0))
    for k, number in bernoulli_terms():
        out = out + number / math.factorial(2 * k) * math.factorial(n + 2 * k - 1) * gap
        gap, power = gap * high + power * step, power * low
    return out if n % 2 else -out


def polygamma_gap_near(xp: Any, n: int, a: Any, d: Any) -> Any:
    """ψ⁽ⁿ⁾(a + d) - ψ⁽ⁿ⁾(a) for small d, by the recurrence up to where the series holds. DLMF 5.15.5."""
    out = 0.0 * d
    for k in range(16):
        out = out + power_gap(xp, a + k, d, n + 1)
    out = math.factorial(n) * (out if n % 2 else -out)
    return out + polygamma_gap_far(xp, n, a + 16, d)


def polygamma_gap(xp: Any, n: Any, a: Any, d: Any) -> Any:
    """ψ⁽ⁿ⁾(a + d) - ψ⁽ⁿ⁾(a), which keeps its digits for large a and for small d."""
    kinds = [v if type(v) in (bool, int, float) else v.dtype for v in (a, d)]
    n, a, d = xp.broadcast_arrays(xp.asarray(n), *[xp.asarray(v).astype(numpy.float64) for v in (a, d)])
    out = xp.zeros(n.shape)
    for order in xp.unique(n):
        out = xp.where(n == order, polygamma_gap_of(xp, int(order), a, d), out)
    return out.astype(result_of(numpy.result_type(*kinds)))[()]


def polygamma_gap_of(xp: Any, n: int, a: Any, d: Any) -> Any:
    """The same of one order, in double precision."""
    special = scipy_of(xp, "special")
    with numpy.errstate(all="ignore"):
        end = a + d
        out = special.polygamma(n, end) - special.polygamma(n, a) if n else special.digamma(end) - special.digamma(a)
        is_far = (a >= 16) & (end >= 16)
        is_near = ~is_far & (a > 0) & (abs(d) < 0.01 * a)
        for part, gap in ((is_far, polygamma_gap_far), (is_near, polygamma_gap_near)):
            if xp.any(part):
                out = xp.where(part, gap(xp, n, xp.where(part, a, 16.0), xp.where(part, d, 0.0)), out)
    return out


def digamma_gap(xp: Any, a: Any, b: Any) -> Any:
    """ψ(a + b) - ψ(a) of vectors."""
    return polygamma_gap_of(xp, 0, a, b)


def gammaln_gap(xp: Any, a: Any, d: Any) -> Any:
    """log Γ(a + d) - log Γ(a), which keeps its digits for large a. DLMF 5.11.1."""
    kinds = [v if type(v) in (bool, int, float) else v.dtype for v in (a, d)]
    a, d = [xp.asarray(v).astype(numpy.float64) for v in (a, d)]
    with numpy.errstate(all="ignore"):
        end = a + d
        far = (a >= 16) & (end >= 16) & xp.isfinite(end)
        low, step = xp.where(far, a, 16.0), xp.where(far, d, 0.0)
        series = (low - 0.5) * xp.log1p(step / low) + step * (xp.log(low + step) - 1)
        for k, number in bernoulli_terms():
            series = series + number / (2 * k * (2 * k - 1)) * power_gap(xp, low, step, 2 * k - 1)
        gammaln = scipy_of(xp, "special").gammaln
        out = xp.where(far, series, gammaln(end) - gammaln(a))
    return out.astype(result_of(numpy.result_type(*kinds)))[()]


def stirling(xp: Any, x: Any, order: int) -> Any:
    """The rest of log Γ(x) after Stirling's (x - 1/2) log x - x + log(2π)/2, or a derivative of it. DLMF 5.11.1."""
    special = scipy_of(xp, "special")
    far = x >= 16
    large, small = xp.where(far, x, 16.0), xp.where(far, 1.0, x)
    series = 0.0 * large
    for k, number in reversed(bernoulli_terms()):
        factor = (-1) ** order * math.factorial(2 * k - 2 + order) / math.factorial(2 * k)
        series = series / (large * large) + number * factor
    series = series * large ** -(order + 1.0)
    log = xp.log(small)
    if order == 0:
        plain = special.gammaln(small) - (small - 0.5) * log + small - 0.5 * math.log(2 * math.pi)
    elif order == 1:
        plain = special.digamma(small) - log + 0.5 / small
    else:
        tail = math.factorial(order - 2) * small ** (1.0 - order)
        tail = tail + 0.5 * math.factorial(order - 1) * small ** -float(order)
        plain = special.polygamma(order - 1, small) - (-1) ** order * tail
    return xp.where(far, series, plain)


def exp_rest(xp: Any, x: Any) -> Any:
    """e^x - 1 - x."""
    near = abs(x) < 0.5
    small, large = xp.where(near, x, 0.0), xp.where(near, 0.5, x)
    series = 0.0 * small
    for k in range(17, 1, -1):
        series = series * small + 1 / math.factorial(k)
    return xp.where(near, series * small * small, xp.expm1(large) - large)[()]


def log_cosh(xp: Any, x: Any) -> Any:
    """log cosh x."""
    size = abs(1.0 * x)
    near = size < 1
    sine = xp.sinh(xp.where(near, size, 0.0) / 2)
    return xp.where(near, xp.log1p(2 * sine * sine), size + xp.log1p(xp.exp(-2 * size)) - math.log(2.0))[()]


def pseudo_huber_ddelta(xp: Any, delta: Any, r: Any) -> Any:
    """delta (h - 1)² / h with h = √(1 + u²), u = r / delta, where h - 1 is u² / (1 + h)."""
    u = r / delta
    h = xp.hypot(1.0, u)
    rise = u * (u / (h + 1))
    return delta * (rise * (rise / h))


def pseudo_huber_dr(xp: Any, delta: Any, r: Any) -> Any:
    """r / h, and zero for delta = 0."""
    zero = delta == 0
    return xp.where(zero, 0.0 * r, r / xp.hypot(1.0, r / xp.where(zero, 1.0, delta)))[()]


def log_gammainc(xp: Any, a: Any, x: Any) -> Any:
    """log P(a, x), also where P is below all numbers. DLMF 8.5.1."""
    special = scipy_of(xp, "special")

    def tail(a: Any, x: Any) -> Any:
        return a * xp.log(x) - x - special.gammaln(a + 1) + xp.log(special.hyp1f1(1.0, a + 1, x))

    return _log_of_share(xp, special.gammainc(a, x), special.gammaincc(a, x), tail, (a, x), lambda a: 0.5)


def log_gammaincc(xp: Any, a: Any, x: Any) -> Any:
    """log Q(a, x), also where Q is below all numbers, by a continued fraction. DLMF 8.9.2."""
    special = scipy_of(xp, "special")

    def tail(a: Any, x: Any) -> Any:
        fraction = x + (161 - a)
        for k in range(80, 0, -1):
            fraction = x + (2 * k - 1 - a) + k * (a - k) / fraction
        return a * xp.log(x) - x - special.gammaln(a) - xp.log(fraction)

    return _log_of_share(xp, special.gammaincc(a, x), special.gammainc(a, x), tail, (a, x), lambda a: 2 * a + 100)


def _log_of_share(xp: Any, p: Any, q: Any, tail: Any, args: Any, elsewhere: Any) -> Any:
    """log p, where p + q = 1; where p is below all numbers tail(a, x), which has x = elsewhere(a) at other places."""
    a, x = [xp.asarray(v).astype(p.dtype) for v in args]
    with numpy.errstate(all="ignore"):
        tiny = p < 1e-290
        whole = xp.where(q < 0.5, xp.log1p(-q), xp.log(xp.where(tiny, 0.5, p)))
        return xp.where(tiny, tail(a, xp.where(tiny, x, elsewhere(a))), whole).astype(p.dtype)[()]


def tail_integral(xp: Any, a: Any, b: Any, t: Any, rest: Any, rule: Any, weight: Any) -> Any:
    """∫₀ᵗ u^(a - 1) (1 - u)^(b - 1) weight du / B(a, b), by u = t e^(-s), for t left of the mode; rest = 1 - t.

    weight(s, t - u) must not change its sign, so that nothing cancels. The integral stops where the integrand has
    fallen by exp(-45).
    """
    decay = 45.0
    log_rest = xp.where(rest < 0.5, xp.log(rest), xp.log1p(-t))
    log_t = xp.where(t < 0.5, xp.log(t), xp.log1p(-rest))
    stop = (decay + xp.maximum(b - 1, 0.0) * -log_rest) / a
    for _ in range(12):  # Newton's method on a concave function, from the right
        u = t * xp.exp(-stop)
        value = -a * stop + (b - 1) * (xp.log1p(-u) - log_rest) + decay
        grade = -a + (b - 1) * u / (1 - u)
        stop = xp.where((b > 1) & (grade < 0), stop - value / grade, stop)
    nodes, weights = [xp.asarray(each) for each in double_exponential(*rule)]
    s = stop[:, None] * nodes
    shift = -t[:, None] * xp.expm1(-s)
    growth = xp.log1p(shift / rest[:, None])
    terms = xp.exp(-a[:, None] * s + (b[:, None] - 1) * growth) * weight(s, shift)
    integral = xp.sum(terms * weights, -1) * stop
    return integral * xp.exp(a * log_t + (b - 1) * log_rest - scipy_of(xp, "special").betaln(a, b))


def beta_slope_below(xp: Any, a: Any, b: Any, x: Any, rest: Any, rule: Any) -> Any:
    """∂I/∂a = ∫₀ˣ (log t + ψ(a + b) - ψ(a)) dI, for x where the bracket is negative throughout. DLMF 8.17.1."""
    bracket = xp.where(x < 0.5, xp.log(x), xp.log1p(-rest)) + digamma_gap(xp, a, b)
    return tail_integral(xp, a, b, x, rest, rule, lambda s, shift: bracket[:, None] - s)


def beta_slope_above(xp: Any, a: Any, b: Any, x: Any, rest: Any, rule: Any) -> Any:
    """The same from above: -∫ₓ¹ (log t + ψ(a + b) - ψ(a)) dI, with a positive bracket."""
    gap = digamma_gap(xp, a, b)[:, None]
    x_, rest_ = x[:, None], rest[:, None]

    def bracket(s: Any, shift: Any) -> Any:
        lost = rest_ * xp.exp(-s)
        return xp.where(lost < 0.5, xp.log1p(-xp.minimum(lost, 0.5)), xp.log(x_ + shift)) + gap

    return -tail_integral(xp, b, a, rest, x, rule, bracket)


def beta_slope(xp: Any, a: Any, b: Any, x: Any, rest: Any) -> Any:
    """∂I_x(a, b)/∂a of vectors, where rest = 1 - x to full relative precision."""
    return by_sides(xp, a, b, x, rest, beta_slope_below, beta_slope_above)


def betainc_parameters(xp: Any, a: Any, b: Any, x: Any) -> tuple[Any, Any, list[Any]]:
    """The shape and dtype of a result, and the arguments as vectors in double precision."""
    kinds = [v if type(v) in (bool, int, float) else v.dtype for v in (a, b, x)]
    a, b, x = [xp.asarray(v) for v in (a, b, x)]
    shape = numpy.broadcast_shapes(a.shape, b.shape, x.shape)
    flat = [xp.reshape(xp.broadcast_to(v, shape), (-1,)).astype(numpy.float64) for v in (a, b, x)]
    return shape, result_of(numpy.result_type(*kinds)), flat


def betainc_da(xp: Any, a: Any, b: Any, x: Any) -> Any:
    """∂I_x(a, b)/∂a."""
    shape, dtype, (a, b, x) = betainc_parameters(xp, a, b, x)
    with numpy.errstate(all="ignore"):
        out = beta_slope(xp, a, b, x, 1 - x)
    return xp.reshape(out.astype(dtype), shape)[()]


def betainc_db(xp: Any, a: Any, b: Any, x: Any) -> Any:
    """∂I_x(a, b)/∂b, by I_x(a, b) = 1 - I_(1-x)(b, a). DLMF 8.17.4."""
    shape, dtype, (a, b, x) = betainc_parameters(xp, a, b, x)
    with numpy.errstate(all="ignore"):
        out = -beta_slope(xp, b, a, 1 - x, x)
    return xp.reshape(out.astype(dtype), shape)[()]


def trigamma(xp: Any, x: Any) -> Any:
    """ψ'(x) = ζ(2, x). DLMF 5.15.1."""
    return scipy_of(xp, "special").zeta(2.0, x)


def beta_bend(xp: Any, a: Any, b: Any, t: Any, rest: Any, rule: Any, mixed: bool) -> Any:
    """∂²I/∂a² or ∂²I/∂a∂b at t left of the mode, by the scores of the beta density and their mean squares.

    ∫₀ᵗ (s_a² + ψ'(a + b) - ψ'(a)) dI and ∫₀ᵗ (s_a s_b + ψ'(a + b)) dI, with s_a = log u + ψ(a + b) - ψ(a).
    """
    first, second = digamma_gap(xp, a, b)[:, None], digamma_gap(xp, b, a)[:, None]
    log_t = xp.where(t < 0.5, xp.log(t), xp.log1p(-rest))[:, None]
    constant = (trigamma(xp, a + b) - (0.0 if mixed else trigamma(xp, a)))[:, None]
    t_, rest_ = t[:, None], rest[:, None]

    def weight(s: Any, shift: Any) -> Any:
        by_a = log_t - s + first
        if not mixed:
            return by_a * by_a + constant
        left = t_ * xp.exp(-s)
        log_rest = xp.where(left < 0.5, xp.log1p(-xp.minimum(left, 0.5)), xp.log(rest_ + shift))
        return by_a * (log_rest + second) + constant

    return tail_integral(xp, a, b, t, rest, rule, weight)


def beta_bend_above(xp: Any, a: Any, b: Any, x: Any, rest: Any, rule: Any) -> Any:
    """-∫ₓ¹ (s_a² + ψ'(a + b) - ψ'(a)) dI, by u = 1 - t."""
    gap, x_, rest_ = digamma_gap(xp, a, b)[:, None], x[:, None], rest[:, None]
    constant = (trigamma(xp, a + b) - trigamma(xp, a))[:, None]

    def weight(s: Any, shift: Any) -> Any:
        lost = rest_ * xp.exp(-s)
        score = xp.where(lost < 0.5, xp.log1p(-xp.minimum(lost, 0.5)), xp.log(x_ + shift)) + gap
        return score * score + constant

    return -tail_integral(xp, b, a, rest, x, rule, weight)


def by_sides(xp: Any, a: Any, b: Any, x: Any, rest: Any, below: Any, above: Any) -> Any:
    """The integral of vectors from the side of the mean of log t on which x is; rest = 1 - x.

    The rules are the step and reach of the double exponential formula, far from and close to a singular point.
    """
    block = 1 << 12
    out = xp.full(a.shape, numpy.nan)
    proper = (a > 0) & (b > 0) & xp.isfinite(a) & xp.isfinite(b)
    out[proper & ((x == 0) | (rest == 0))] = 0.0
    proper = proper & (x > 0) & (rest > 0)
    safe_a, safe_b, safe_x = [xp.where(proper, v, 1.0) for v in (a, b, x)]
    low = xp.log(safe_x) < -digamma_gap(xp, safe_a, safe_b)
    for integrate, part, gap in ((below, proper & low, rest), (above, proper & ~low, x)):
        for rule, chosen in (((1 / 16, 3.4), gap >= 0.02), ((1 / 40, 5.2), gap < 0.02)):
            places = xp.flatnonzero(part & chosen)
            for start in range(0, places.shape[0], block):
                here = places[start : start + block]
                out[here] = integrate(xp, a[here], b[here], x[here], rest[here], rule)
    return out


def betainc_bend(xp: Any, a: Any, b: Any, x: Any, *, kind: str) -> Any:
    """∂²I_x(a, b) by a twice, b twice, or each once: kinds "aa", "bb", "ab"."""
    shape, dtype, (a, b, x) = betainc_parameters(xp, a, b, x)
    rest = 1 - x

    def below(xp: Any, a: Any, b: Any, x: Any, rest: Any, rule: Any) -> Any:
        return beta_bend(xp, a, b, x, rest, rule, kind == "ab")

    def above(xp: Any, a: Any, b: Any, x: Any, rest: Any, rule: Any) -> Any:
        return -beta_bend(xp, b, a, rest, x, rule, True)

    with numpy.errstate(all="ignore"):
        if kind == "bb":
            out = -by_sides(xp, b, a, rest, x, below, beta_bend_above)
        else:
            out = by_sides(xp, a, b, x, rest, below, above if kind == "ab" else beta_bend_above)
    return xp.reshape(out.astype(dtype), shape)[()]


def betainc_daa(xp: Any, a: Any, b: Any, x: Any) -> Any:
    """∂²I_x(a, b)/∂a²."""
    return betainc_bend(xp, a, b, x, kind="aa")


def betainc_dab(xp: Any, a: Any, b: Any, x: Any) -> Any:
    """∂²I_x(a, b)/∂a∂b."""
    return betainc_bend(xp, a, b, x, kind="ab")


def betainc_dbb(xp: Any, a: Any, b: Any, x: Any) -> Any:
    """∂²I_x(a, b)/∂b²."""
    return betainc_bend(xp, a, b, x, kind="bb")


def elliptic_bend(xp: Any, phi: Any, m: Any, power: int, factor: float) -> Any:
    """∫ of sin⁴θ (1 - m sin²θ)^(-power/2) from 0 to φ, times a factor: a second derivative by m. DLMF 19.4."""
    kinds = [v if type(v) in (bool, int, float) else v.dtype for v in (phi, m)]
    phi, m = xp.broadcast_arrays(xp.asarray(phi, dtype=numpy.float64), xp.asarray(m, dtype=numpy.float64))
    nodes, weights = [xp.asarray(each) for each in double_exponential(1 / 40, 5.2)]

    def integral(end: Any) -> Any:
        theta = end[..., None] * (1 - nodes)
        square = xp.sin(theta) ** 2
        rest = xp.cos(theta) ** 2 + (1 - m[..., None]) * square
        return xp.sum(square * square * rest ** (-power / 2) * weights, -1) * end

    n, r = reduced_angle(xp, phi)
    with numpy.errstate(all="ignore"):
        out = integral(r)
        if xp.any(n != 0):
            out = out + xp.where(n == 0, 0.0, 2 * n * integral(xp.full_like(phi, math.pi / 2)))
    return (factor * out).astype(result_of(numpy.result_type(*kinds)))[()]


def ellipkinc_dmm(xp: Any, phi: Any, m: Any) -> Any:
    """∂²F(φ|m)/∂m²."""
    return elliptic_bend(xp, phi, m, 5, 0.75)


def ellipeinc_dmm(xp: Any, phi: Any, m: Any) -> Any:
    """∂²E(φ|m)/∂m²."""
    return elliptic_bend(xp, phi, m, 3, -0.25)


def kolmogorov_slope(xp: Any, y: Any, order: int) -> Any:
    """The first or second derivative of 2 Σ (-1)^(k - 1) e^(-2 k² y²) = 1 - √(2π)/y Σ e^(-c/y²), c = (2k - 1)² π²/8.

    The second series, for small y, is that of Jacobi's transformation. DLMF 20.7.32.
    """
    low = y < 0.7
    small, large = xp.where(low & (y > 0.01), y, 0.7), xp.where(low, 1.0, y)
    near, far = 0.0 * small, 0.0 * large
    for k in range(1, 16):
        c = ((2 * k - 1) * math.pi) ** 2 / 8
        u = c / (small * small)
        factor = (1 - 2 * u) / small**2 if order == 1 else (10 * u - 4 * u * u - 2) / small**3
        near = near + math.sqrt(2 * math.pi) * factor * xp.exp(-u)
        s = 2.0 * k * large
        hermite = s if order == 1 else s * s - 1
        far = far + (2.0 if k % 2 else -2.0) * (-2.0 * k) ** order * hermite * xp.exp(s * s / -2)
    return xp.where(low, xp.where(y > 0.01, near, 0.0), far)
