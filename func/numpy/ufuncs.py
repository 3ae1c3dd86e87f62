"""NumPy's ufuncs on traced arrays: most are one primitive, others a composition."""

from __future__ import annotations

from typing import Any

import numpy as np

from func.interpreters.core import Array, Primitive, Tracer, dtype_of, is_inexact, operand
from func.interpreters.primitives.elementwise import table as ops
from func.interpreters.primitives.elementwise.conventions import isolated_by_convention
from func.interpreters.primitives.structural.shapes import convert, full_like, where
from func.numpy.argument_checks import arrayed, scalar_of
from func.numpy.facts import power_by, power_of_root, remembering, unaliased
from func.numpy.protocol import DIRECT, UFUNCS, ufunc_function


@ufunc_function(np.absolute)
def absolute(x: Array) -> Array:
    """|x|, as numpy.absolute; for complex x the modulus, whose derivative at zero is zero."""
    x = operand(x)
    if dtype_of(x).kind == "c":
        return hypot(ops.real(x), ops.imag(x))
    return _modulus(x)


def _modulus(x: Array) -> Array:
    """|x| of real x, whose even powers are those of x."""
    out = ops.absolute(x)
    if type(out) is Tracer and type(x) is Tracer:
        x = unaliased(x)
        remembering(out, lambda _, n: _even_power(x, n))
    return out


def _even_power(x: Array, n: Any) -> Array:
    return ops.square(x) if n == 2 else ops.power(x, n)


@ufunc_function(np.hypot)
def hypot(x: Array, y: Array) -> Array:
    """The square root of x² + y², as numpy.hypot; its derivative at zero is zero."""
    x, y = operand(x), operand(y)
    out = ops.hypot(x, y)
    if type(out) is not Tracer:
        return out
    x, y = unaliased(x), unaliased(y)
    return remembering(out, power_by(lambda: ops.add(ops.square(x), ops.square(y))))


@ufunc_function(np.square)
def square(x: Array) -> Array:
    """x², as numpy.square; that of a norm or a modulus has its derivatives at zero."""
    known = power_of_root(x, 2)
    return ops.square(operand(x)) if known is None else known


def _power(ufunc: np.ufunc, primitive: Primitive) -> Any:
    """The traced version of a ufunc of powers."""

    def power(x: Array, y: Array) -> Array:
        known = power_of_root(x, y)
        return primitive(x, y) if known is None else known

    power.__name__ = power.__qualname__ = ufunc.__name__
    power.__doc__ = f"x to the power y, as numpy.{ufunc.__name__}; even ones of norms have their derivatives at zero."
    return ufunc_function(ufunc)(power)


power = _power(np.power, ops.power)
float_power = _power(np.float_power, ops.float_power)


@ufunc_function(np.conjugate)
def conjugate(x: Array) -> Array:
    """The complex conjugate, as numpy.conjugate, which has no loop for booleans: they become int8."""
    x = operand(x)
    return scalar_of(convert(x, dtype=np.dtype(np.int8))) if dtype_of(x).kind == "b" else ops.conjugate(x)


def conjugated(x: Array) -> Array:
    """The conjugate of a complex array; any other array itself."""
    return ops.conjugate(x) if dtype_of(x).kind == "c" else x


@ufunc_function(np.fabs)
def fabs(x: Array) -> Array:
    """|x| of real x as floating point, as numpy.fabs; the derivative at zero is zero."""
    x = operand(x)
    if dtype_of(x).kind == "c":
        raise TypeError("ufunc 'fabs' not supported for complex input; use np.abs")
    return _modulus(_real_floating(x, np.fabs))


@ufunc_function(np.sign)
def sign(x: Array) -> Array:
    """The sign -1, 0 or 1, with derivative zero, as numpy.sign; for complex x, x / |x| and zero at zero."""
    x = operand(x)
    if dtype_of(x).kind != "c":
        return isolated_by_convention(ops.sign(x), lambda: ops.equal(x, 0), x)
    real, imag = ops.real(x), ops.imag(x)
    modulus = ops.hypot(real, imag)
    return scalar_of(ops.make_complex(ops.cosine(real, imag, modulus), ops.cosine(imag, real, modulus)))


@ufunc_function(np.divmod)
def divmod(x: Array, y: Array) -> tuple[Array, Array]:
    """(x // y, x % y), as numpy.divmod."""
    x, y = operand(x), operand(y)
    return ops.floor_divide(x, y), ops.remainder(x, y)


@ufunc_function(np.heaviside)
def heaviside(x1: Array, x2: Array) -> Array:
    """The step function, which is x2 where x1 is zero and has its derivative there, as numpy.heaviside."""
    x1, x2 = operand(x1), operand(x2)
    step = ops.heaviside(x1, x2)
    step = isolated_by_convention(step, lambda: ops.equal(x1, 0), x1)
    if type(x2) is not Tracer or not is_inexact(dtype_of(x2)):
        return step
    return scalar_of(where(ops.equal(x1, 0), convert(x2, dtype=dtype_of(step)), step))


@ufunc_function(np.modf)
def modf(x: Array) -> tuple[Array, Array]:
    """(fractional, integral) parts, as numpy.modf; the fractional part has derivative one."""
    x = operand(x)
    if dtype_of(x).kind == "c":
        raise TypeError("ufunc 'modf' not supported for complex input")
    x = _real_floating(x, np.modf)
    whole = ops.trunc(x)
    rest = where(ops.isinf(x), ops.copysign(full_like(x, 0, ()), x), ops.fmod(x, 1))
    return scalar_of(rest), whole


def _real_floating(x: Array, ufunc: np.ufunc) -> Array:
    """A real operand in the floating-point dtype of its NumPy loop."""
    dtype = dtype_of(x)
    if is_inexact(dtype):
        return x
    return convert(x, dtype=ufunc.resolve_dtypes((dtype, *[None] * ufunc.nout))[0])


@ufunc_function(np.frexp)
def frexp(x: Array) -> tuple[Array, Array]:
    """(mantissa, exponent) with x = mantissa 2^exponent, as numpy.frexp; the exponent is piecewise constant."""
    x = arrayed(operand(x))
    power = ops.exponent(x)
    return ops.ldexp(x, ops.negative(power)), power


@ufunc_function(np.bitwise_count)
def bitwise_count(x: Array) -> Array:
    """The number of ones in the bits of |x|, as numpy.bitwise_count."""
    return ops.bitwise_count(operand(x))


DIRECT.update(
    {
        ufunc: primitive
        for name, primitive in vars(ops).items()
        if isinstance(primitive, Primitive)
        and isinstance(ufunc := getattr(np, name, None), np.ufunc)
        and ufunc not in UFUNCS
    }
)
DIRECT.update({np.degrees: ops.rad2deg, np.radians: ops.deg2rad})
