"""NumPy's ufuncs on traced arrays: most are one primitive; the others are written here."""

from __future__ import annotations

import numpy as np

from func.interpreters.core import Array, Primitive, dtype_of, is_inexact, operand
from func.interpreters.primitives.elementwise import table as ops
from func.interpreters.primitives.structural.shapes import convert, full_like, where
from func.numpy.protocol import DIRECT, implements_ufunc


@implements_ufunc(np.absolute)
def absolute(x: Array) -> Array:
    """|x|; for complex x the modulus, whose derivative at zero is zero."""
    x = operand(x)
    if dtype_of(x).kind == "c":
        return ops.hypot(ops.real(x), ops.imag(x))
    return ops.absolute(x)


@implements_ufunc(np.fabs)
def fabs(x: Array) -> Array:
    """|x| of real x, as floating point."""
    x = operand(x)
    if dtype_of(x).kind == "c":
        raise TypeError("ufunc 'fabs' not supported for complex input; use np.abs")
    return ops.absolute(_real_floating(x, np.fabs))


@implements_ufunc(np.sign)
def sign(x: Array) -> Array:
    """-1, 0 or 1; for complex x the unit x / |x|, zero at zero."""
    x = operand(x)
    if dtype_of(x).kind != "c":
        return ops.sign(x)
    size = absolute(x)
    nothing = ops.equal(size, 0)
    return where(nothing, full_like(x, 0, ()), ops.divide(x, where(nothing, full_like(size, 1, ()), size)))


@implements_ufunc(np.divmod)
def divmod(x: Array, y: Array) -> tuple[Array, Array]:
    """(x // y, x % y)."""
    x, y = operand(x), operand(y)
    return ops.floor_divide(x, y), ops.remainder(x, y)


@implements_ufunc(np.modf)
def modf(x: Array) -> tuple[Array, Array]:
    """(fractional, integral) parts; the fractional part has derivative one."""
    x = operand(x)
    if dtype_of(x).kind == "c":
        raise TypeError("ufunc 'modf' not supported for complex input")
    x = _real_floating(x, np.modf)
    whole = ops.trunc(x)
    rest = where(ops.isinf(x), full_like(x, 0, ()), ops.subtract(x, whole))
    return ops.copysign(ops.absolute(rest), x), whole


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
    power = ops.exponent(x)
    return ops.ldexp(x, ops.negative(power)), power


# Every primitive that is a ufunc is public under NumPy's names for it.
add = ops.add
subtract = ops.subtract
multiply = ops.multiply
divide = ops.divide
power = ops.power
float_power = ops.float_power
remainder = ops.remainder
fmod = ops.fmod
floor_divide = ops.floor_divide
negative = ops.negative
positive = ops.positive
reciprocal = ops.reciprocal
square = ops.square
maximum = ops.maximum
minimum = ops.minimum
fmax = ops.fmax
fmin = ops.fmin
copysign = ops.copysign
heaviside = ops.heaviside
nextafter = ops.nextafter
spacing = ops.spacing
sqrt = ops.sqrt
cbrt = ops.cbrt
exp = ops.exp
exp2 = ops.exp2
expm1 = ops.expm1
log = ops.log
log2 = ops.log2
log10 = ops.log10
log1p = ops.log1p
logaddexp = ops.logaddexp
logaddexp2 = ops.logaddexp2
sin = ops.sin
cos = ops.cos
tan = ops.tan
arcsin = ops.arcsin
arccos = ops.arccos
arctan = ops.arctan
sinh = ops.sinh
cosh = ops.cosh
tanh = ops.tanh
arcsinh = ops.arcsinh
arccosh = ops.arccosh
arctanh = ops.arctanh
hypot = ops.hypot
arctan2 = ops.arctan2
deg2rad = ops.deg2rad
rad2deg = ops.rad2deg
equal = ops.equal
not_equal = ops.not_equal
less = ops.less
less_equal = ops.less_equal
greater = ops.greater
greater_equal = ops.greater_equal
logical_and = ops.logical_and
logical_or = ops.logical_or
logical_xor = ops.logical_xor
logical_not = ops.logical_not
bitwise_and = ops.bitwise_and
bitwise_or = ops.bitwise_or
bitwise_xor = ops.bitwise_xor
invert = ops.invert
left_shift = ops.left_shift
right_shift = ops.right_shift
isfinite = ops.isfinite
isinf = ops.isinf
isnan = ops.isnan
signbit = ops.signbit
floor = ops.floor
ceil = ops.ceil
trunc = ops.trunc
rint = ops.rint
gcd = ops.gcd
lcm = ops.lcm
ldexp = ops.ldexp
conjugate = ops.conjugate
degrees = ops.rad2deg
radians = ops.deg2rad
abs = absolute
true_divide = ops.divide
mod = ops.remainder
conj = ops.conjugate
bitwise_not = ops.invert
bitwise_invert = ops.invert
bitwise_left_shift = ops.left_shift
bitwise_right_shift = ops.right_shift
pow = ops.power
acos = ops.arccos
asin = ops.arcsin
atan = ops.arctan
acosh = ops.arccosh
asinh = ops.arcsinh
atanh = ops.arctanh
atan2 = ops.arctan2

DIRECT.update(
    {
        getattr(np, name): value
        for name, value in globals().items()
        if isinstance(value, Primitive) and isinstance(getattr(np, name, None), np.ufunc)
    }
)
