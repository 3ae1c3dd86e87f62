"""Elementwise functions that are not ufuncs: complex parts, rounding, replacement, comparison."""

from __future__ import annotations

from typing import Any

import numpy as np

from func.backends.array_helpers.strides import memory_order_of
from func.backends.quiet import quietly
from func.interpreters.core import PYTHON_SCALARS, Array, Tracer, dtype_of, operand, shape_of
from func.interpreters.primitives.elementwise import table as ops
from func.interpreters.primitives.structural import shapes
from func.numpy.argument_checks import NO_VALUE, arrayed, as_array, count, scalar_of, to_dtype, weak_kind
from func.numpy.inplace import setitem, view_imag, view_real, with_out, write_into
from func.numpy.memory import copied, in_order_of, is_plain, with_order_of
from func.numpy.protocol import DIRECT, UFUNCS, call_ufunc, implements, implements_ufunc, loop_dtypes
from func.numpy.reductions import all


@implements(np.real)
def real(val: Array) -> Array:
    """The real part, a view of a complex array, as numpy.real."""
    return val.real if type(val) in PYTHON_SCALARS else view_real(operand(val))


@implements(np.imag)
def imag(val: Array) -> Array:
    """The imaginary part, a view of a complex array, as numpy.imag."""
    return val.imag if type(val) in PYTHON_SCALARS else view_imag(arrayed(operand(val)))


@implements(np.angle)
def angle(z: Array, deg: bool = False) -> Array:
    """The argument of complex numbers, in radians or degrees, as numpy.angle."""
    z = operand(z)
    is_complex = dtype_of(z).kind == "c"
    phase = ops.arctan2(ops.imag(z) if is_complex else 0, ops.real(z) if is_complex else z)
    return ops.multiply(phase, 180 / np.pi) if deg else phase


@implements(np.iscomplexobj)
def iscomplexobj(x: Any) -> bool:
    """Whether the dtype is complex, as numpy.iscomplexobj."""
    return dtype_of(operand(x)).kind == "c"


@implements(np.isrealobj)
def isrealobj(x: Any) -> bool:
    """Whether the dtype is not complex, as numpy.isrealobj."""
    return not iscomplexobj(x)


@implements(np.isreal)
def isreal(x: Array) -> Array:
    """Whether the imaginary parts vanish, as numpy.isreal."""
    return ops.equal(ops.imag(operand(x)), 0)


@implements(np.iscomplex)
def iscomplex(x: Array) -> Array:
    """Whether the imaginary parts do not vanish, as numpy.iscomplex."""
    return ops.not_equal(ops.imag(operand(x)), 0)


@implements(np.real_if_close)
def real_if_close(a: Array, tol: float = 100) -> Array:
    """The real part if all imaginary parts are nearly zero, else the array, as numpy.real_if_close."""
    a = as_array(operand(a))
    if dtype_of(a).kind != "c":
        return a
    limit = np.finfo(dtype_of(a)).eps * tol if tol > 1 else tol
    return real(a) if bool(all(ops.less(ops.absolute(ops.imag(a)), limit))) else a


def _bounds(a_min: Any, a_max: Any, min: Any, max: Any) -> tuple[Any, Any]:
    """The bounds of clip, under either of their names."""
    if a_min is NO_VALUE and a_max is NO_VALUE:
        return None if min is NO_VALUE else min, None if max is NO_VALUE else max
    for name, value in (("a_min", a_min), ("a_max", a_max)):
        if value is NO_VALUE:
            raise TypeError(f"clip() missing 1 required positional argument: '{name}'")
    if min is not NO_VALUE or max is not NO_VALUE:
        raise ValueError("Passing `min` or `max` keyword argument when `a_min` and `a_max` are provided is forbidden.")
    return a_min, a_max


@implements(np.clip)
def clip(
    a: Array,
    a_min: Any = NO_VALUE,
    a_max: Any = NO_VALUE,
    out: Any = None,
    *,
    min: Any = NO_VALUE,
    max: Any = NO_VALUE,
    dtype: Any = None,
    **options: Any,
) -> Array:
    """Values clipped to an interval, as numpy.clip; at a bound, value and bound have derivative ½ each."""
    a = arrayed(operand(a))
    low, high = _bounds(a_min, a_max, min, max)
    if dtype_of(a).kind in "iu":
        info = np.iinfo(dtype_of(a))
        low = None if type(low) is int and low <= info.min else _within(low, ops.at_least, info.min)
        high = None if type(high) is int and high >= info.max else _within(high, ops.at_most, info.max)
    ufunc, bounds = _CLIPS[low is None, high is None], [operand(bound) for bound in (low, high) if bound is not None]
    if out is not None or dtype is not None or options:
        return call_ufunc(ufunc, None, (a, *bounds), {"out": out, "dtype": dtype, **options})
    return UFUNCS.get(ufunc, DIRECT.get(ufunc))(a, *bounds)  # type: ignore[misc]


def _within(bound: Any, clamp: Any, limit: int) -> Any:
    """A bound that is a traced Python integer, which may exceed the range of the array's dtype on its own side."""
    is_traced = type(bound) is Tracer and weak_kind(bound) is int
    return clamp(bound, limit) if is_traced and -(2**63) < limit < 2**63 - 1 else bound


_CLIP: Any = np._core.umath.clip  # type: ignore[attr-defined]
_CLIPS = {(True, True): np.positive, (True, False): np.minimum, (False, True): np.maximum, (False, False): _CLIP}
"""The ufunc that NumPy calls: (without a lower bound, without an upper bound)."""


@implements_ufunc(_CLIP)
def _between(a: Array, low: Array, high: Array) -> Array:
    if not dtype_of(a) == dtype_of(low) == dtype_of(high):
        loop = loop_dtypes(_CLIP, [a, low, high], [None], {})
        a, low, high = [to_dtype(x, dtype) for x, dtype in zip((a, low, high), loop, strict=False)]
    return ops.minimum(ops.maximum(a, low), high)


def _rounded(a: Array, decimals: int, out: Any = None) -> Array:
    """NumPy's rounding: scale by a power of ten, round half to even, scale back; `out` stores intermediate values."""
    dtype = dtype_of(a)
    if dtype.kind == "c":
        return ops.make_complex(_rounded(ops.real(a), decimals), _rounded(ops.imag(a), decimals))
    if dtype.kind in "iu" and decimals >= 0:
        return ops.positive(a)
    if decimals == 0:
        return ops.rint(a)
    if dtype.kind == "b" and out is None:
        raise TypeError(f"cannot round booleans to {decimals} decimals")
    scale = 10.0 ** abs(decimals)
    first, second = (ops.multiply, ops.divide) if decimals > 0 else (ops.divide, ops.multiply)
    scaled = first(a, scale)
    if out is not None and np.can_cast(dtype_of(scaled), dtype_of(out), "same_kind"):
        return second(ops.rint(to_dtype(scaled, dtype_of(out))), scale)
    result = second(ops.rint(scaled), scale)
    return to_dtype(result, dtype) if dtype.kind in "iu" else result


@implements(np.round)
def round(a: Array, decimals: int = 0, out: Any = None) -> Array:
    """Values rounded to a number of decimals, as numpy.round; the derivative is zero."""
    a = operand(a)
    if out is not None and count(shape_of(out)) != count(shape_of(a)):
        raise ValueError("invalid output shape")
    if out is not None and decimals < 0 and dtype_of(a).kind in "iu" and dtype_of(out).kind not in "fc":
        raise TypeError(f"integers are divided to round them to {decimals} decimals: out must be of a float dtype")
    result = _rounded(a, decimals, out)
    is_scaled = decimals != 0 if dtype_of(a).kind == "f" else decimals < 0 and dtype_of(a).kind in "iu"
    if is_scaled and not is_plain(a):
        result = with_order_of(result, lambda a: memory_order_of(lambda ones: np.round(ones, 1), a), [a])
    return with_out(result, out)


around = implements(np.around)(round)


@implements(np.fix)
def fix(x: Array, out: Any = None) -> Array:
    """Values rounded towards zero, as numpy.fix; the derivative is zero."""
    result = ops.trunc(operand(x))
    return with_out(result, out)


@implements(np.sinc)
def sinc(x: Array) -> Array:
    """sin(πx) / (πx), which is 1 at 0, as numpy.sinc; derivatives of every order are exact there too."""
    from func.interpreters.primitives.special import derivative_families  # start-up time

    return derivative_families.sinc(operand(x), order=0)


@implements(np.i0)
def i0(x: Array) -> Array:
    """The modified Bessel function of the first kind and order 0, as numpy.i0."""
    from func.interpreters.primitives.special import derivative_families  # start-up time

    x = operand(x)
    if dtype_of(x).kind == "c":
        raise TypeError("i0 not supported for complex values")
    return as_array(derivative_families.i0(x, order=0))


def _infinite(x: Array, negative: bool, out: Any) -> Array:
    x = operand(x)
    if dtype_of(x).kind == "c":
        raise TypeError(f"This operation is not supported for {dtype_of(x)} values because it would be ambiguous.")
    sign = ops.signbit(x)
    result = ops.logical_and(ops.isinf(x), sign if negative else ops.logical_not(sign))
    return with_out(result, out)


@implements(np.isposinf)
def isposinf(x: Array, out: Any = None) -> Array:
    """Whether elements are +∞, as numpy.isposinf."""
    return _infinite(x, False, out)


@implements(np.isneginf)
def isneginf(x: Array, out: Any = None) -> Array:
    """Whether elements are -∞, as numpy.isneginf."""
    return _infinite(x, True, out)


def _numbers(x: Array, nan: Any, posinf: Any, neginf: Any) -> Array:
    """A real array with NaN and infinities replaced."""
    dtype = dtype_of(x)
    info = np.finfo(dtype)
    for where, value in (
        (ops.isnan(x), nan),
        (isposinf(x), info.max if posinf is None else posinf),
        (isneginf(x), info.min if neginf is None else neginf),
    ):
        x = shapes.where(where, shapes.convert(operand(value), dtype=dtype), x)
    return x


@implements(np.nan_to_num)
def nan_to_num(x: Array, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Array:
    """x with NaN and infinities replaced by numbers, as numpy.nan_to_num; the derivative there is zero."""
    target = x
    x = operand(x)
    if not copy and (isinstance(target, (list, tuple, np.generic)) or weak_kind(target)):
        raise ValueError("Unable to avoid copy while creating an array as requested.")
    if dtype_of(x).kind == "c":
        parts = [_numbers(part, nan, posinf, neginf) for part in (ops.real(x), ops.imag(x))]
        result = ops.make_complex(*parts)
    elif dtype_of(x).kind == "f":
        result = _numbers(x, nan, posinf, neginf)
    else:
        result = ops.positive(x) if dtype_of(x).kind != "b" else copied(x)
    return scalar_of(in_order_of(result, x) if copy else write_into(target, result))


def _size(x: Array) -> Array:
    return ops.hypot(ops.real(x), ops.imag(x)) if dtype_of(x).kind == "c" else ops.absolute(x)


def _difference(a: Array, b: Array) -> Array:
    return _size(ops.subtract(a, b))


@implements(np.isclose)
def isclose(a: Array, b: Array, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Array:
    """Whether elements are equal within atol + rtol |b|, as numpy.isclose."""
    a, b = [operand(x) if weak_kind(x) else arrayed(operand(x)) for x in (a, b)]
    rtol, atol = operand(rtol), operand(atol)
    if not weak_kind(b) and dtype_of(b).kind not in "fc":
        b = to_dtype(b, np.result_type(dtype_of(b), 1.0))
    elif weak_kind(b) is int:
        b = ops.multiply(b, 1.0)
    near = ops.less_equal(quietly(_difference, a, b), ops.add(atol, ops.multiply(rtol, _size(b))))
    result = ops.logical_or(ops.logical_and(near, ops.isfinite(b)), ops.equal(a, b))
    if equal_nan:
        result = ops.logical_or(result, ops.logical_and(ops.isnan(a), ops.isnan(b)))
    return result


@implements(np.allclose)
def allclose(a: Array, b: Array, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> bool:
    """Whether all elements are equal within tolerances, as numpy.allclose."""
    return bool(all(isclose(a, b, rtol, atol, equal_nan)))


@implements(np.array_equal)
def array_equal(a1: Array, a2: Array, equal_nan: bool = False) -> bool:
    """Whether two arrays have the same shape and elements, as numpy.array_equal."""
    a1, a2 = operand(a1), operand(a2)
    if shape_of(a1) != shape_of(a2):
        return False
    same = ops.equal(a1, a2)
    if equal_nan:
        same = ops.logical_or(same, ops.logical_and(ops.isnan(a1), ops.isnan(a2)))
    return bool(all(same))


@implements(np.array_equiv)
def array_equiv(a1: Array, a2: Array) -> bool:
    """Whether two arrays are equal after broadcasting, as numpy.array_equiv."""
    a1, a2 = operand(a1), operand(a2)
    try:
        np.broadcast_shapes(shape_of(a1), shape_of(a2))
    except ValueError:
        return False
    return bool(all(ops.equal(a1, a2)))


def _set_real(self: Tracer, value: Any) -> None:
    setitem(real(self), Ellipsis, arrayed(operand(value)))  # NumPy makes an array of a number, too


def _set_imag(self: Tracer, value: Any) -> None:
    if self.dtype.kind != "c":
        raise TypeError("array does not have imaginary part to set")
    setitem(imag(self), Ellipsis, arrayed(operand(value)))


def clip_method(self: Tracer, min: Any = None, max: Any = None, out: Any = None, **options: Any) -> Array:
    """x.clip."""
    return clip(self, min, max, out)


real_part, imaginary_part = property(real, _set_real), property(imag, _set_imag)
"""x.real and x.imag."""
