"""Sine, cosine, tangent, and their inverses."""

from __future__ import annotations

import math

from func.backends.scalars.math.vector_arithmetic import Coefficients, Emitter, Mask, Real

# (sin(r) - r) / r³ in r², |r| ≤ π/2. Minimax.
SIN = Coefficients(
    double=(
        -0.16666666666666666, 0.008333333333333193, -0.0001984126984120848, 2.7557319211007e-06,
        -2.505210686057097e-08, 1.6058939076608475e-10, -7.642974754689167e-13, 2.720995158250885e-15,
    ),
    single=(-0.1666666, 0.008333065, -0.00019809476, 2.6054825e-06),
)  # fmt: skip

# (cos(r) - 1 + r²/2) / r⁴ in r², |r| ≤ π/4. Minimax.
COS = Coefficients(
    double=(
        0.04166666666666659, -0.00138888888888726, 2.4801587288492626e-05, -2.755731405670929e-07,
        2.0875681895291668e-09, -1.1357449377738248e-11,
    ),
    single=(0.041666646, -0.0013887306, 2.4431205e-05),
)  # fmt: skip

# (arctan(t) - t) / t³ in t², |t| ≤ tan(π/8). Minimax.
ARCTAN = Coefficients(
    double=(
        -0.333333333333332, 0.1999999999995325, -0.1428571428015989, 0.11111110781501969, -0.09090897697934346,
        0.07692059090014668, -0.06663090570555828, 0.05847786235859959, -0.05038818148758848, 0.03805165022221873,
        -0.017892488244436445,
    ),
    single=(-0.33333316, 0.19998479, -0.14243631, 0.10594289, -0.06078888),
)  # fmt: skip

# (arcsin(t) - t) / t³ in t², |t| ≤ ½. Minimax.
ARCSIN = Coefficients(
    double=(
        0.1666666666666537, 0.07500000000346586, 0.04464285682044412, 0.030381959460623824, 0.022371750334267613,
        0.017359820393196133, 0.013884100710224372, 0.012176614985579013, 0.006496149999351822, 0.01961486757230495,
        -0.016359440072849864, 0.03200449069751907,
    ),
    single=(0.16666754, 0.07495224, 0.045479566, 0.024134489, 0.042242322),
)  # fmt: skip

# π/2 in parts, for hosts with fused multiply-add (each part as long as a number) and without (n times each but the
# last is exact). Behind it the largest argument whose reduction keeps full relative accuracy.
HALF_PI = {
    (64, True): ("0x1.921fb54442d18p+0 0x1.1a62633145c07p-54 -0x1.f1976b7ed8fbcp-110", 2.0**28),
    (64, False): ("0x1.921fb544p+0 0x1.0b4611a6p-34 0x1.3198a2ep-69 0x1.b839a252049c1p-104", 2.0**19),
    (32, True): ("0x1.921fb6p+0 -0x1.777a5cp-25 -0x1.ee59d9cceba40p-50", 2.0**13),
    (32, False): ("0x1.92p+0 0x1.fb4p-12 0x1.444p-24 0x1.68cp-39 0x1.1a62633145c07p-54", 2.0**12),
}


def reduced(emit: Emitter, x: Real, n: Real) -> Real:
    """x - n π/2. Source: Cody and Waite (1980), chapter 8."""
    parts, _ = HALF_PI[emit.width, emit.fused]
    for part in parts.split():
        x = emit.fma(n, -float.fromhex(part), x)
    return x


def largest(emit: Emitter) -> float:
    """The largest argument that `reduced` takes."""
    return HALF_PI[emit.width, emit.fused][1]


def sin_reduced(emit: Emitter, r: Real) -> Real:
    """sin(r) of |r| ≤ π/2."""
    z = r * r
    return emit.fma(r * z, emit.polynomial(z, emit.coefficients(SIN)), r).at_most(1.0).at_least(-1.0)


def cos_reduced(emit: Emitter, r: Real) -> Real:
    """cos(r) of |r| ≤ π/4. Source: FreeBSD msun, k_cos.c, for the rounding error of 1 - r²/2."""
    z = r * r
    half = z * 0.5
    near = 1.0 - half
    return near + emit.fma(z * z, emit.polynomial(z, emit.coefficients(COS)), (1.0 - near) - half)


def sin(emit: Emitter, x: Real) -> Real:
    """The sine: with n half turns subtracted, it changes its sign n times."""
    n = emit.nearest(x, 1 / math.pi)
    sign = emit.low_bits(n) << (emit.width - 1)
    usual = sin_reduced(emit, reduced(emit, x, n + n)).flipped(sign)
    return emit.unless_rare(abs(x) > largest(emit), x.equals(0.0).select(x, usual), "sin", x)


def cos(emit: Emitter, x: Real) -> Real:
    """The cosine: with n + ½ half turns subtracted, a sine that changes its sign n + 1 times."""
    n = emit.nearest(emit.fma(x, 1 / math.pi, -0.5))
    sign = (emit.low_bits(n) + 1) << (emit.width - 1)
    usual = sin_reduced(emit, reduced(emit, x, n + n + 1.0)).flipped(sign)
    return emit.unless_rare(abs(x) > largest(emit), usual, "cos", x)


def tan(emit: Emitter, x: Real) -> Real:
    """The tangent: sine by cosine, or minus cosine by sine after an odd number of quarter turns."""
    n = emit.nearest(x, 2 / math.pi)
    r = reduced(emit, x, n)
    is_odd = (emit.low_bits(n) & 1).equals(1)
    sine, cosine = sin_reduced(emit, r), cos_reduced(emit, r)
    usual = is_odd.select(-cosine, sine) / is_odd.select(sine, cosine)
    return emit.unless_rare(abs(x) > largest(emit), x.equals(0.0).select(x, usual), "tan", x)


def arctan_quotient(emit: Emitter, y: Real, x: Real) -> tuple[Real, Real]:
    """arctan(y / x) of numbers ≥ 0 as the sum of a multiple of π/4 and a rest.

    With a the lesser and b the greater, arctan(a / b) = π/4 + arctan((a - b) / (a + b)), for a quotient above tan(π/8).
    Source: S. Moshier, Cephes, atan.c.
    """
    swapped = y > x
    a, b = swapped.select(x, y), swapped.select(y, x)
    middle = a > b * math.tan(math.pi / 8)
    t = middle.select(a - b, a) / middle.select(a + b, b)
    z = t * t
    rest = emit.fma(t * z, emit.polynomial(z, emit.coefficients(ARCTAN)), t)
    base = middle.select(math.pi / 4, swapped.select(math.pi / 2, 0.0))
    return base, swapped.select(-rest, rest)


# π/2 minus its nearest number, by width.
HALF_PI_REST = {64: 6.123233995736766e-17, 32: -4.371139000186243e-08}


def with_rest(emit: Emitter, base: Real, rest: Real) -> Real:
    """The sum of a multiple of π/4, rounded, and a rest, with the multiple's rounding error."""
    return base + emit.fma(base, HALF_PI_REST[emit.width] / (math.pi / 2), rest)


def arctan(emit: Emitter, x: Real) -> Real:
    """The inverse tangent."""
    base, rest = arctan_quotient(emit, abs(x).at_most(emit.pick(1e300, 1e37)), emit.number(1.0))
    return with_rest(emit, base, rest).with_sign(x)


def arctan2(emit: Emitter, y: Real, x: Real) -> Real:
    """The angle of the point (x, y)."""
    a, b = abs(y), abs(x)
    a_infinite, b_infinite = a.equals(math.inf), b.equals(math.inf)
    infinite = a_infinite | b_infinite
    greater = a.at_least(b)
    large, small = greater > emit.largest / 4, greater < emit.tiny * 2.0**emit.digits
    scale = large.select(0.25, small.select(2.0**emit.digits, 1.0))
    a = infinite.select(a_infinite.select(1.0, 0.0), a * scale)
    b = infinite.select(b_infinite.select(1.0, 0.0), b * scale)
    nowhere = a.equals(0.0) & b.equals(0.0)
    base, rest = arctan_quotient(emit, a, nowhere.select(1.0, b))
    left = negative(emit, x)
    base, rest = left.select(math.pi - base, base), left.select(-rest, rest)
    angle = with_rest(emit, base, rest).with_sign(y)
    return (x.is_nan() | y.is_nan()).select(x + y, angle)


def negative(emit: Emitter, x: Real) -> Mask:
    """The mask of the sign bit, set also for -0."""
    return emit.number(1.0).with_sign(x) < 0.0


def arcsin_half(emit: Emitter, x: Real) -> tuple[Mask, Real, Real]:
    """The mask of |x| > ½; then √((1 - |x|) / 2), else |x|, and the inverse sine of that."""
    size = abs(x)
    outer = size > 0.5
    z = outer.select((1.0 - size) * 0.5, x * x)
    t = outer.select(emit.sqrt(z), size)
    return outer, t, emit.fma(t * z, emit.polynomial(z, emit.coefficients(ARCSIN)), t)


def arcsin(emit: Emitter, x: Real) -> Real:
    """The inverse sine; beyond ½, arcsin(x) = π/2 - 2 arcsin(√((1 - x) / 2))."""
    outer, _, part = arcsin_half(emit, x)
    far = math.pi / 2 - (part * 2.0 - HALF_PI_REST[emit.width])
    return outer.select(far, part).with_sign(x)


def arccos(emit: Emitter, x: Real) -> Real:
    """The inverse cosine, by the inverse sine of x or of √((1 - |x|) / 2)."""
    outer, _, part = arcsin_half(emit, x)
    rest = HALF_PI_REST[emit.width]
    near = math.pi / 2 - (part.with_sign(x) - rest)
    far = (x < 0.0).select(math.pi - (part * 2.0 - 2 * rest), part * 2.0)
    return outer.select(far, near)
