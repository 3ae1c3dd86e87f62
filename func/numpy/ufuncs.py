"""NumPy's ufuncs on traced arrays: most are one row; the rest are written here."""

from __future__ import annotations

from typing import Any

import numpy as np

from func.interpreters.core import Array, Primitive, dtype_of, is_inexact, operand
from func.interpreters.primitives.elementwise import table as rows
from func.interpreters.primitives.structural.shapes import convert, full_like, where
from func.numpy.protocol import DIRECT, implements_ufunc

# fmt: off
_ROWS = [
    "add", "subtract", "multiply", "divide", "power", "float_power", "remainder", "fmod", "floor_divide",
    "negative", "positive", "reciprocal", "square", "maximum", "minimum", "fmax", "fmin", "copysign", "heaviside",
    "nextafter", "spacing", "sqrt", "cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "logaddexp",
    "logaddexp2", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh", "arccosh",
    "arctanh", "hypot", "arctan2", "deg2rad", "rad2deg", "equal", "not_equal", "less", "less_equal", "greater",
    "greater_equal", "logical_and", "logical_or", "logical_xor", "logical_not", "bitwise_and", "bitwise_or",
    "bitwise_xor", "invert", "left_shift", "right_shift", "isfinite", "isinf", "isnan", "signbit", "floor", "ceil",
    "trunc", "rint", "gcd", "lcm", "ldexp", "conjugate",
]
# fmt: on


for _name in _ROWS:
    DIRECT[getattr(np, _name)] = getattr(rows, _name)
DIRECT[np.degrees] = rows.rad2deg
DIRECT[np.radians] = rows.deg2rad


def row_of(ufunc: Any) -> Primitive | None:
    """The row that is a ufunc, if there is one."""
    return DIRECT.get(ufunc)


@implements_ufunc(np.absolute)
def absolute(x: Array) -> Array:
    """|x|; for complex x the modulus, whose derivative at zero is zero."""
    x = operand(x)
    if dtype_of(x).kind == "c":
        return rows.hypot(rows.real(x), rows.imag(x))
    return rows.absolute(x)


@implements_ufunc(np.fabs)
def fabs(x: Array) -> Array:
    """|x| of real x, as floating point."""
    x = operand(x)
    if dtype_of(x).kind == "c":
        raise TypeError("ufunc 'fabs' not supported for complex input; use np.abs")
    return rows.absolute(_real_floating(x, np.fabs))


@implements_ufunc(np.sign)
def sign(x: Array) -> Array:
    """-1, 0 or 1; for complex x the unit x / |x|, zero at zero."""
    x = operand(x)
    if dtype_of(x).kind != "c":
        return rows.sign(x)
    size = absolute(x)
    nothing = rows.equal(size, 0)
    return where(nothing, full_like(x, 0, ()), rows.divide(x, where(nothing, full_like(size, 1, ()), size)))


@implements_ufunc(np.divmod)
def divmod(x: Array, y: Array) -> tuple[Array, Array]:
    """(x // y, x % y)."""
    x, y = operand(x), operand(y)
    return rows.floor_divide(x, y), rows.remainder(x, y)


@implements_ufunc(np.modf)
def modf(x: Array) -> tuple[Array, Array]:
    """(fractional, integral) parts; the fractional part has derivative one."""
    x = operand(x)
    if dtype_of(x).kind == "c":
        raise TypeError("ufunc 'modf' not supported for complex input")
    x = _real_floating(x, np.modf)
    whole = rows.trunc(x)
    rest = where(rows.isinf(x), full_like(x, 0, ()), rows.subtract(x, whole))
    return rows.copysign(rows.absolute(rest), x), whole


def _real_floating(x: Array, ufunc: np.ufunc) -> Array:
    """A real operand in the floating point dtype that NumPy's loop for it has."""
    dtype = dtype_of(x)
    if is_inexact(dtype):
        return x
    return convert(x, dtype=ufunc.resolve_dtypes((dtype, *[None] * ufunc.nout))[0])


@implements_ufunc(np.frexp)
def frexp(x: Array) -> tuple[Array, Array]:
    """(mantissa, exponent) with x = mantissa 2^exponent; the exponent is piecewise constant."""
    x = operand(x)
    power = rows.exponent(x)
    return rows.ldexp(x, rows.negative(power)), power


# Every row is public under its NumPy name, and under NumPy's other names for it.
add = rows.add
subtract = rows.subtract
multiply = rows.multiply
divide = rows.divide
power = rows.power
float_power = rows.float_power
remainder = rows.remainder
fmod = rows.fmod
floor_divide = rows.floor_divide
negative = rows.negative
positive = rows.positive
reciprocal = rows.reciprocal
square = rows.square
maximum = rows.maximum
minimum = rows.minimum
fmax = rows.fmax
fmin = rows.fmin
copysign = rows.copysign
heaviside = rows.heaviside
nextafter = rows.nextafter
spacing = rows.spacing
sqrt = rows.sqrt
cbrt = rows.cbrt
exp = rows.exp
exp2 = rows.exp2
expm1 = rows.expm1
log = rows.log
log2 = rows.log2
log10 = rows.log10
log1p = rows.log1p
logaddexp = rows.logaddexp
logaddexp2 = rows.logaddexp2
sin = rows.sin
cos = rows.cos
tan = rows.tan
arcsin = rows.arcsin
arccos = rows.arccos
arctan = rows.arctan
sinh = rows.sinh
cosh = rows.cosh
tanh = rows.tanh
arcsinh = rows.arcsinh
arccosh = rows.arccosh
arctanh = rows.arctanh
hypot = rows.hypot
arctan2 = rows.arctan2
deg2rad = rows.deg2rad
rad2deg = rows.rad2deg
equal = rows.equal
not_equal = rows.not_equal
less = rows.less
less_equal = rows.less_equal
greater = rows.greater
greater_equal = rows.greater_equal
logical_and = rows.logical_and
logical_or = rows.logical_or
logical_xor = rows.logical_xor
logical_not = rows.logical_not
bitwise_and = rows.bitwise_and
bitwise_or = rows.bitwise_or
bitwise_xor = rows.bitwise_xor
invert = rows.invert
left_shift = rows.left_shift
right_shift = rows.right_shift
isfinite = rows.isfinite
isinf = rows.isinf
isnan = rows.isnan
signbit = rows.signbit
floor = rows.floor
ceil = rows.ceil
trunc = rows.trunc
rint = rows.rint
gcd = rows.gcd
lcm = rows.lcm
ldexp = rows.ldexp
conjugate = rows.conjugate
degrees = rows.rad2deg
radians = rows.deg2rad
abs = absolute
true_divide = rows.divide
mod = rows.remainder
conj = rows.conjugate
bitwise_not = rows.invert
bitwise_invert = rows.invert
bitwise_left_shift = rows.left_shift
bitwise_right_shift = rows.right_shift
pow = rows.power
acos = rows.arccos
asin = rows.arcsin
atan = rows.arctan
acosh = rows.arccosh
asinh = rows.arcsinh
atanh = rows.arctanh
atan2 = rows.arctan2
