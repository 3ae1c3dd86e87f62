"""The table of elementwise primitives. Each names only its partial derivatives."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from func.backends.support.arrays import make_complex as make_complex_into
from func.interpreters.core import PYTHON_SCALARS, Array, Aval, Linear, Shaped, dtype_of, linear, shape_of
from func.interpreters.core.modes import are_zeros_structural
from func.interpreters.core.strides import iterated_order
from func.interpreters.primitives.elementwise.builder import (
    SHARES,
    Elementwise,
    elementwise,
    elementwise_constant,
    is_checked_for_nan,
)
from func.interpreters.primitives.elementwise.builder import add as add
from func.interpreters.primitives.elementwise.builder import conjugate as conjugate
from func.interpreters.primitives.elementwise.builder import multiply as multiply
from func.interpreters.primitives.elementwise.builder import nan_safe_multiply as nan_safe_multiply
from func.interpreters.primitives.elementwise.builder import negative as negative
from func.interpreters.primitives.elementwise.builder import not_equal as not_equal
from func.interpreters.primitives.elementwise.conventions import by_convention, on_arrays
from func.interpreters.primitives.structural.shapes import align_ranks, convert, fit_cotangent, full_like, where

equal = elementwise_constant("equal", 2, commutative=True)
less = elementwise_constant("less", 2)
less_equal = elementwise_constant("less_equal", 2)
greater = elementwise_constant("greater", 2)
greater_equal = elementwise_constant("greater_equal", 2)
logical_and = elementwise_constant("logical_and", 2, commutative=True)
logical_or = elementwise_constant("logical_or", 2, commutative=True)
logical_xor = elementwise_constant("logical_xor", 2, commutative=True)
logical_not = elementwise_constant("logical_not", 1)
bitwise_and = elementwise_constant("bitwise_and", 2, weak=True, commutative=True)
bitwise_or = elementwise_constant("bitwise_or", 2, weak=True, commutative=True)
bitwise_xor = elementwise_constant("bitwise_xor", 2, weak=True, commutative=True)
invert = elementwise_constant("invert", 1, weak=True)
left_shift = elementwise_constant("left_shift", 2, weak=True)
right_shift = elementwise_constant("right_shift", 2, weak=True)
isfinite = elementwise_constant("isfinite", 1)
isinf = elementwise_constant("isinf", 1)
isnan = elementwise_constant("isnan", 1)
signbit = elementwise_constant("signbit", 1)
sign = elementwise_constant("sign", 1)
floor = elementwise_constant("floor", 1)
ceil = elementwise_constant("ceil", 1)
trunc = elementwise_constant("trunc", 1)
rint = elementwise_constant("rint", 1)
floor_divide = elementwise_constant("floor_divide", 2, weak=True, cost=4)
bitwise_count = elementwise_constant("bitwise_count", 1)
gcd = elementwise_constant("gcd", 2)
lcm = elementwise_constant("lcm", 2)
heaviside = elementwise_constant("heaviside", 2)
nextafter = elementwise("nextafter", 1, None)
spacing = elementwise_constant("spacing", 1)
exponent = elementwise_constant("exponent", 1, impl=lambda xp, x: xp.frexp(x)[1])


@on_arrays(np.sign)
def slope_of_modulus(x: Array) -> Array:
    """The sign of x, zero at zero by convention."""
    return by_convention(sign(x), lambda: equal(x, 0), x)


subtract: Elementwise = elementwise("subtract", 1, -1, weak=True)
divide: Elementwise = elementwise(
    "divide", lambda y: reciprocal_of(y), lambda y, out: negative(divide(out, y)), weak=True, cost=4
)
reciprocal: Elementwise = elementwise("reciprocal", lambda out: negative(multiply(out, out)), cost=4)
positive: Elementwise = elementwise("positive", 1, weak=True, cost=0)
absolute: Elementwise = elementwise("absolute", slope_of_modulus, weak=True)
square: Elementwise = elementwise("square", lambda x: multiply(x, 2))


def reciprocal_of(y: Array) -> Array:
    """1 / y, also for integers and Python scalars."""
    return divide(1, y)


def power_partial_x(x: Array, y: Array) -> Array:
    """y x^(y-1), which is zero for y = 0 also where 1/x is infinite; elsewhere it depends on y there too."""
    if type(y) in PYTHON_SCALARS:
        return multiply(full_like(x, 0), 1) if y == 0 else multiply(y, power(x, y - 1))
    nothing = logical_and(equal(y, 0), logical_not(isfinite(reciprocal_of(x))))
    one = full_like(y, 1, ())
    slope = where(nothing, full_like(x, 0, ()), multiply(y, power(x, where(nothing, one, subtract(y, one)))))
    return by_convention(slope, lambda: logical_and(equal(x, 0), less_equal(y, 1)), y)


def power_partial_y(x: Array, y: Array, out: Array) -> Array:
    """x^y log x, with the limit zero at x = 0; by convention for y ≤ 1, where its slope by x is infinite."""
    nothing = equal(x, 0)
    value = where(nothing, full_like(out, 0, ()), multiply(out, log(where(nothing, full_like(out, 1, ()), x))))
    return by_convention(value, lambda: logical_and(nothing, less_equal(y, 1)), x)


power: Elementwise = elementwise("power", power_partial_x, power_partial_y, weak=True, cost=20)
float_power: Elementwise = elementwise("float_power", power_partial_x, power_partial_y, cost=20)


def remainder_partial_y(x: Array, y: Array) -> Array:
    """-floor(x / y)."""
    return negative(floor(divide(x, y)))


remainder: Elementwise = elementwise("remainder", 1, remainder_partial_y, weak=True, cost=4)
fmod: Elementwise = elementwise("fmod", 1, lambda x, y: negative(trunc(divide(x, y))), cost=4)


def share(x: Array, y: Array, out: Array, wins: Array) -> Array:
    """1 where x wins, 1/2 at ties by convention, 0 elsewhere."""
    dtype = dtype_of(out)
    ties = equal(x, y)
    value = add(convert(wins, dtype=dtype), multiply(convert(ties, dtype=dtype), 0.5))
    return by_convention(value, lambda: ties, x, y)


def share_by(comparison: Any, is_first: bool) -> Callable[..., Array]:
    """The share of one of two operands, which wins by a comparison."""

    def code(x: Any, y: Any, out: Any) -> Any:
        wins = comparison.numpy(*((x, y) if is_first else (y, x))).astype(out.dtype)
        ties = np.equal(x, y)
        return wins + np.multiply(ties, 0.5, dtype=out.dtype) if ties.any() else wins

    @on_arrays(code)
    def share_of_operand(x: Array, y: Array, out: Array) -> Array:
        return share(x, y, out, comparison(x, y) if is_first else comparison(y, x))

    return share_of_operand


maximum: Elementwise = elementwise("maximum", share_by(greater, True), share_by(greater, False), selects=SHARES)
minimum: Elementwise = elementwise("minimum", share_by(less, True), share_by(less, False), selects=SHARES)
fmax: Elementwise = elementwise(
    "fmax",
    lambda x, y, out: share(x, y, out, logical_or(greater(x, y), isnan(y))),
    lambda x, y, out: share(x, y, out, logical_or(greater(y, x), isnan(x))),
    selects=SHARES,
)
fmin: Elementwise = elementwise(
    "fmin",
    lambda x, y, out: share(x, y, out, logical_or(less(x, y), isnan(y))),
    lambda x, y, out: share(x, y, out, logical_or(less(y, x), isnan(x))),
    selects=SHARES,
)
copysign: Elementwise = elementwise("copysign", lambda x, out: where(equal(signbit(x), signbit(out)), 1.0, -1.0), None)

sqrt: Elementwise = elementwise("sqrt", lambda out: divide(0.5, out), cost=4)
cbrt: Elementwise = elementwise("cbrt", lambda out: divide(1, multiply(3, square(out))), cost=10)
exp: Elementwise = elementwise("exp", "out", cost=10)
exp2: Elementwise = elementwise("exp2", lambda out: multiply(out, math.log(2)), cost=10)
expm1: Elementwise = elementwise("expm1", lambda out: add(out, 1), cost=10)
log: Elementwise = elementwise("log", lambda x: reciprocal_of(x), cost=10)
log2: Elementwise = elementwise("log2", lambda x: divide(1 / math.log(2), x), cost=10)
log10: Elementwise = elementwise("log10", lambda x: divide(1 / math.log(10), x), cost=10)
log1p: Elementwise = elementwise("log1p", lambda x: divide(1, add(x, 1)), cost=10)


def log_share(x: Array, out: Array) -> Array:
    """exp(x - out), 1/2 where both terms vanish or are both infinite."""
    same = equal(x, out)
    stuck = logical_and(same, logical_not(isfinite(x)))
    return where(stuck, full_like(out, 0.5, ()), exp(where(stuck, full_like(out, 0, ()), subtract(x, out))))


def log2_share(x: Array, out: Array) -> Array:
    """2^(x - out), 1/2 where both terms vanish or are both infinite."""
    stuck = logical_and(equal(x, out), logical_not(isfinite(x)))
    return where(stuck, full_like(out, 0.5, ()), exp2(where(stuck, full_like(out, 0, ()), subtract(x, out))))


logaddexp: Elementwise = elementwise(
    "logaddexp", lambda x, out: log_share(x, out), lambda y, out: log_share(y, out), cost=15
)
logaddexp2: Elementwise = elementwise(
    "logaddexp2", lambda x, out: log2_share(x, out), lambda y, out: log2_share(y, out), cost=15
)

sin: Elementwise = elementwise("sin", lambda x: cos(x), cost=15)
cos: Elementwise = elementwise("cos", lambda x: negative(sin(x)), cost=15)
tan: Elementwise = elementwise("tan", lambda out: add(square(out), 1), cost=20)


def plus_one(x: Array) -> Array:
    """x + 1, which keeps the sign of an imaginary part of zero: it tells the side of a branch cut."""
    return add(x, 1) if dtype_of(x).kind != "c" else negative(subtract(negative(x), 1))


def sine_of_angle(x: Array) -> Array:
    """√(1 - x²), the sine of arccos x; for complex x on the side of its branch cut on which x lies."""
    if dtype_of(x).kind != "c":
        return sqrt(subtract(1, square(x)))
    return multiply(sqrt(negative(subtract(x, 1))), sqrt(plus_one(x)))


arcsin: Elementwise = elementwise("arcsin", lambda x: divide(1, sine_of_angle(x)), cost=20)
arccos: Elementwise = elementwise("arccos", lambda x: divide(-1, sine_of_angle(x)), cost=20)
arctan: Elementwise = elementwise("arctan", lambda x: divide(1, add(square(x), 1)), cost=20)
sinh: Elementwise = elementwise("sinh", lambda x: cosh(x), cost=15)
cosh: Elementwise = elementwise("cosh", lambda x: sinh(x), cost=15)
tanh: Elementwise = elementwise("tanh", lambda out: subtract(1, square(out)), cost=20)
arcsinh: Elementwise = elementwise("arcsinh", lambda x: divide(1, sqrt(plus_one(square(x)))), cost=20)
arccosh: Elementwise = elementwise(
    "arccosh", lambda x: divide(1, multiply(sqrt(subtract(x, 1)), sqrt(plus_one(x)))), cost=20
)
arctanh: Elementwise = elementwise("arctanh", lambda x: divide(1, subtract(1, square(x))), cost=20)
deg2rad: Elementwise = elementwise("deg2rad", lambda out: full_like(out, math.pi / 180, ()))
rad2deg: Elementwise = elementwise("rad2deg", lambda out: full_like(out, 180 / math.pi, ()))


def over(numerator: Array, denominator: Array) -> Array:
    """A quotient that is zero by convention where the denominator is."""
    nothing = equal(denominator, 0)
    quotient = where(
        nothing,
        full_like(denominator, 0, ()),
        divide(numerator, where(nothing, full_like(denominator, 1, ()), denominator)),
    )
    return by_convention(quotient, lambda: nothing, denominator)


@on_arrays(lambda out: np.divide(0.5, out) if np.all(out) else None)
def slope_of_root(out: Array) -> Array:
    """0.5 / out, zero at zero by convention."""
    return over(0.5, out)


root: Elementwise = elementwise("root", slope_of_root, ufunc="sqrt", cost=4)
"""The square root of a sum of squares: its derivative at zero is zero, as that of a norm."""
root_power: Elementwise = elementwise(
    "root_power", lambda x, y, out: over(multiply(y, out), x), power_partial_y, ufunc="power", cost=20
)
"""x^y of x ≥ 0, whose derivative at zero is zero for every y, as that of a norm."""


def _modulus_power(x: Array, y: Array) -> Array:
    return power(absolute(x), y)


def _signed_power(x: Array, y: Array) -> Array:
    return where(equal(x, 0), full_like(x, 0, ()), multiply(sign(x), power(absolute(x), y)))


def _slope_of_signed_power(x: Array, y: Array) -> Array:
    """y |x|^(y-1), which is undetermined where a sign jumps, and has no slope at zero for y ≤ 2 but 1."""
    slope = multiply(y, modulus_power(x, subtract(y, 1)))
    is_zero = equal(x, 0)
    slope = by_convention(slope, lambda: logical_and(is_zero, logical_and(less_equal(y, 2), not_equal(y, 1))), x)
    return where(logical_and(is_zero, less_equal(y, 0)), full_like(x, math.nan, ()), slope)


modulus_power: Elementwise = elementwise(
    "modulus_power",
    lambda x, y: multiply(y, signed_power(x, subtract(y, 1))),
    lambda x, y, out: power_partial_y(absolute(x), y, out),
    impl=lambda xp, x, y: xp.power(xp.absolute(x), y),
    body=lambda params: lambda x, y: (_modulus_power(x, y),),
    cost=20,
)
"""|x|^y of real x, with every derivative that it has at zero."""
signed_power: Elementwise = elementwise(
    "signed_power",
    _slope_of_signed_power,
    lambda x, y, out: power_partial_y(absolute(x), y, out),
    impl=lambda xp, x, y: xp.where(xp.equal(x, 0), xp.zeros_like(x), xp.sign(x) * xp.power(xp.absolute(x), y)),
    body=lambda params: lambda x, y: (_signed_power(x, y),),
    cost=20,
)
"""The sign of x times |x|^y; zero where x is."""


def _ratio(x: Any, y: Any, out: Any) -> Any:
    """x / out, or None where it is NaN."""
    ratio = np.divide(x, out)
    return None if np.isnan(ratio).any() else ratio


@on_arrays(_ratio)
def slope_of_hypot(x: Array, y: Array, out: Array) -> Array:
    """x / out, zero at zero by convention; the sign of x where it alone is infinite.

    That is left out where a NaN-safe variant is traced besides, which runs where the quotient is NaN.
    """
    ratio = over(x, out)
    if is_checked_for_nan(out) and not are_zeros_structural():
        return ratio
    return where(greater(isinf(x), isinf(y)), copysign(1.0, x), ratio)


@on_arrays(lambda x, y, out: _ratio(y, x, out))
def other_slope_of_hypot(x: Array, y: Array, out: Array) -> Array:
    """The same by y."""
    return slope_of_hypot(y, x, out)


hypot: Elementwise = elementwise("hypot", slope_of_hypot, other_slope_of_hypot, cost=4)
arctan2: Elementwise = elementwise(
    "arctan2",
    lambda x, y: over(y, add(square(x), square(y))),
    lambda x, y: negative(over(x, add(square(x), square(y)))),
    cost=20,
)
ldexp: Elementwise = elementwise("ldexp", lambda y, out: exp2(convert(y, dtype=dtype_of(out))), None)


def _real_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.real(np.empty(0, dtype)).dtype


def _complex_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.result_type(dtype, np.complex64)


real: Linear = linear(
    "real",
    lambda xp, x: xp.real(x),
    aval=lambda x: Aval(x.shape, _real_dtype(x.dtype)),
    transpose=lambda ct, x: (fit_cotangent(ct, x),),
    batch=lambda x: real(x),
    cost=0,
    mask="elementwise",
    covers=True,
    view=True,
    layout=lambda x: x.real,
)


def _imag_transpose(ct: Array, x: Shaped) -> tuple[Array]:
    if x.dtype.kind != "c":
        return (full_like(ct, 0),)
    return (fit_cotangent(multiply(ct, 1j), x),)


imag: Linear = linear(
    "imag",
    lambda xp, x: xp.imag(x),
    aval=lambda x: Aval(x.shape, _real_dtype(x.dtype)),
    transpose=_imag_transpose,
    batch=lambda x: imag(x),
    cost=0,
    mask="elementwise",
    covers=True,
    view=lambda ins: ins[0].dtype.kind == "c",
    layout=lambda x: x.imag if x.dtype.kind == "c" else iterated_order(x),
)


def _complex_impl(xp: Any, re: Array, im: Array) -> Array:
    dtype = _complex_dtype(np.result_type(dtype_of(re), dtype_of(im)))
    shape = np.broadcast_shapes(shape_of(re), shape_of(im))
    out = xp.empty_like(re, dtype=dtype) if shape and shape_of(re) == shape else xp.empty(shape, dtype)
    return make_complex_into(re, im, out)[()]


def _complex_aval(re: Aval, im: Aval) -> Aval:
    return Aval(np.broadcast_shapes(re.shape, im.shape), _complex_dtype(np.result_type(re.dtype, im.dtype)))


def _complex_transpose(ct: Array, re: Any, im: Any) -> tuple[Array, Array]:
    return fit_cotangent(real(ct), re), fit_cotangent(imag(ct), im)


make_complex: Linear = linear(
    "complex",
    _complex_impl,
    aval=_complex_aval,
    transpose=_complex_transpose,
    batch=lambda size, batched, args, params: make_complex(*align_ranks(size, batched, args)),
    positions=(),
    cost=1,
    mask="elementwise",
    covers=True,
    layout=iterated_order,
)
"""A complex array of its real and imaginary parts."""
