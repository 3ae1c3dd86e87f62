"""Sums, products, extrema, any, all and argmax, with NumPy's keywords."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from func.interpreters.core import Array, Tracer, dtype_of, known_value, operand, shape_of
from func.interpreters.primitives.elementwise import table as ops
from func.interpreters.primitives.structural import reductions as reduction_primitives
from func.interpreters.primitives.structural import shapes
from func.numpy.argument_checks import (
    NO_VALUE,
    arrayed,
    count,
    normalize_axes,
    normalize_axis,
    scalar_of,
    to_dtype,
    weak_kind,
)
from func.numpy.inplace import with_out, write_into
from func.numpy.protocol import F, implements, member
from func.numpy.solvers import seen_in_solvers


def is_given(value: Any) -> bool:
    """Whether a call has an optional keyword."""
    return value is not NO_VALUE and value is not None


def reduction_axes(axis: Any, rank: int) -> tuple[int, ...]:
    """The axes of a reduction; as in NumPy, a scalar accepts axis 0 and -1."""
    if rank == 0 and type(axis) is int and axis in (0, -1):
        return ()
    if isinstance(axis, list):
        raise TypeError("'list' object cannot be interpreted as an integer")
    return normalize_axes(axis, rank)


def finish(x: Array, shape: tuple[int, ...], axes: tuple[int, ...], keepdims: Any, out: Any) -> Array:
    """The result with keepdims applied, written to `out` if there is one."""
    if keepdims is not NO_VALUE and keepdims:
        x = shapes.reshape(arrayed(x), shape=shapes.ones_at(shape, axes))
    return x if out is None else deliver(x, out)


def _over_axes(reduce: Callable[..., Array], a: Any, axis: Any, keepdims: Any, out: Any, *options: Any) -> Array:
    """A reduction over normalised axes, called with NumPy's arguments."""
    a = operand(a)
    shape = shape_of(a)
    axes = reduction_axes(axis, len(shape))
    return finish(reduce(a, axes, *options), shape, axes, keepdims, out)


def deliver(x: Array, out: Any) -> Array:
    """A result written to `out`, converted to its dtype."""
    if not hasattr(out, "dtype"):
        raise TypeError("return arrays must be of ArrayType")
    if shape_of(x) != shape_of(out):
        raise ValueError(f"output parameter has the wrong shape: {shape_of(out)} given, {shape_of(x)} expected")
    return write_into(out, to_dtype(x, dtype_of(out)))


def deliver_exactly(x: Array, out: Any) -> Array:
    """A result written to `out` of its shape and of a dtype that casts to its own, as argmax demands."""
    if not hasattr(out, "dtype"):
        raise TypeError(f"output must be an array, got {type(out).__name__}")
    if shape_of(x) != shape_of(out):
        raise ValueError("output array does not match result")
    if not np.can_cast(dtype_of(out), dtype_of(x), "safe"):
        raise TypeError(
            f"Cannot cast array data from {dtype_of(out)!r} to {dtype_of(x)!r} according to the rule 'safe'"
        )
    return deliver(x, out)


_TAKE_CASTS = np.lib.NumpyVersion(np.__version__) >= "2.5.0"


def deliver_taken(x: Array, out: Any) -> Array:
    """Elements written to `out`; its dtype may be any from NumPy 2.5 on, and is that of `deliver_exactly` before."""
    return deliver(x, out) if _TAKE_CASTS and hasattr(out, "dtype") else deliver_exactly(x, out)


def mask_for(a: Array, where: Any) -> Array | None:
    """The `where` keyword as a boolean array of the shape of `a`; None where every element counts."""
    if where is NO_VALUE or where is True:
        return None
    mask = operand(where)
    if dtype_of(mask).kind != "b":
        if shape_of(mask) or type(mask) is not int:
            raise TypeError(
                f"where: cannot cast array data from {dtype_of(mask)!r} to dtype('bool') according to the rule 'safe'"
            )
        mask = bool(mask)
    return shapes.broadcast(mask, shape=shape_of(a)) if shape_of(mask) != shape_of(a) else mask


def loop_dtype(ufunc: Any, a: Array, dtype: Any, out: Any) -> np.dtype[Any] | None:
    """The dtype of NumPy's loop if `dtype` or `out` determine it; otherwise None."""
    if dtype is None and out is None:
        return None
    options = {} if dtype is None else {"signature": (np.dtype(dtype), None, None)}
    operands = (None if out is None else dtype_of(out), dtype_of(a), None)
    loop: np.dtype[Any] = ufunc.resolve_dtypes(operands, reduction=True, casting="unsafe", **options)[0]
    return loop


def start_of(initial: Any, dtype: np.dtype[Any], out: Any = None) -> Any:
    """`initial` in the dtype of the loop; None if there is none. NumPy starts in `out`, in the dtype of that."""
    if not is_given(initial):
        return None
    if shape_of(initial):
        raise ValueError("Input object to FillWithScalar is not a scalar")
    if type(initial) is Tracer:
        if dtype_of(initial).kind == "c" and dtype.kind != "c":
            raise TypeError(f"initial is complex, but the reduction is of dtype {dtype}; take its real part")
        if dtype.kind in "iu" and weak_kind(initial) is float:
            known = known_value(initial)
            if known is not None and not np.isfinite(known).all():
                kind = ValueError if np.isnan(known).any() else OverflowError  # as NumPy
                raise kind(f"an initial value that is infinite or NaN has no place among numbers of {dtype}")
        first = to_dtype(initial, dtype)
    else:
        first = np.add.reduce(np.empty(0, dtype), dtype=dtype, initial=initial)  # NumPy's rule for scalars
    return first if out is None else through(out, first)


def through(out: Any, first: Array) -> Array:
    """The start of a reduction, read from `out`, where NumPy writes it first."""
    return to_dtype(to_dtype(first, dtype_of(out)), dtype_of(first))


def _accumulation(ufunc: Any, simple: Any, optioned: Any, combine: Any) -> Callable[..., Array]:
    def reduce(
        a: Array,
        axes: tuple[int, ...],
        dtype: Any = None,
        initial: Any = NO_VALUE,
        where: Any = NO_VALUE,
        out: Any = None,
    ) -> Array:
        mask = mask_for(a, where)
        if mask is None and not is_given(initial):
            return simple(a, axes, dtype)
        loop = ufunc.resolve_dtypes((None, dtype_of(a), None), reduction=True)[0] if dtype is None else dtype
        first = start_of(initial, loop, out)
        traced = type(first) is Tracer
        start = None if traced else first
        total = optioned(a, True if mask is None else mask, axes=axes, dtype=dtype, initial=start)
        return combine(total, first) if traced else total

    return reduce


def _plain_sum(a: Array, axes: tuple[int, ...], dtype: Any) -> Array:
    return shapes.reduce_sum(a, axes=axes) if dtype is None else shapes.reduce_sum(a, axes=axes, dtype=dtype)


def _plain_prod(a: Array, axes: tuple[int, ...], dtype: Any) -> Array:
    return to_dtype(reduction_primitives.reduce_prod(to_dtype(a, dtype), axes=axes), dtype)


total_of = _accumulation(np.add, _plain_sum, reduction_primitives.sum_with, ops.add)
"""The sum over normalised axes, with arguments (a, axes, dtype, initial, where, out)."""
product_of = _accumulation(np.multiply, _plain_prod, reduction_primitives.prod_with, ops.multiply)


def _accumulated(original: F, ufunc: Any, primitive: Any, total_of: Callable[..., Array], doc: str) -> F:
    @member(original, doc)
    def accumulated(
        a: Array,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = NO_VALUE,
        initial: Any = NO_VALUE,
        where: Any = NO_VALUE,
    ) -> Array:
        a = operand(a)
        shape = shape_of(a)
        axes = reduction_axes(axis, len(shape))
        if dtype is None and out is None and initial is NO_VALUE and where is NO_VALUE:
            return finish(primitive(a, axes=axes), shape, axes, keepdims, None)
        total = total_of(a, axes, loop_dtype(ufunc, a, dtype, out), initial, where, out)
        return finish(total, shape, axes, keepdims, out)

    return accumulated


sum = _accumulated(np.sum, np.add, shapes.reduce_sum, total_of, "The sum over axes, as numpy.sum.")
prod = _accumulated(
    np.prod,
    np.multiply,
    reduction_primitives.reduce_prod,
    product_of,
    "The product over axes, as numpy.prod; its derivative is exact also where elements are zero.",
)


def _worst(dtype: np.dtype[Any], sign: int) -> Any:
    """The neutral element of maximum (sign -1) or minimum (+1): ∓∞, or the end of the integers' range."""
    if dtype.kind == "c":
        return dtype.type(complex(sign * np.inf, sign * np.inf))
    if dtype.kind == "b":
        return np.bool_(sign > 0)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return dtype.type(info.max if sign > 0 else info.min)
    return dtype.type(sign * np.inf)


_EXTREMA = {
    "maximum": (reduction_primitives.reduce_max, ops.maximum, -1),
    "minimum": (reduction_primitives.reduce_min, ops.minimum, 1),
}


def extremum(
    a: Array, axes: tuple[int, ...], name: str, initial: Any = NO_VALUE, where: Any = NO_VALUE, out: Any = None
) -> Array:
    """The maximum or minimum over normalised axes."""
    primitive, select, sign = _EXTREMA[name]
    shape = shape_of(a)
    if initial is NO_VALUE and where is NO_VALUE and count(shape):
        return primitive(a, axes=axes)
    mask, dtype = mask_for(a, where), dtype_of(a)
    if mask is not None:
        if not is_given(initial):
            raise ValueError(
                f"reduction operation '{name}' does not have an identity, so to use a where mask one has to "
                "specify 'initial'"
            )
        a = shapes.where(mask, a, shapes.full_like(a, _worst(dtype, sign), ()))
    if not is_given(initial):
        empty = count(shape) == 0 and count([n for i, n in enumerate(shape) if i not in axes])
        if empty:
            raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
        return primitive(a, axes=axes)
    first = start_of(initial, dtype, out)
    if count([shape[i] for i in axes]) == 0:
        remaining = tuple([n for i, n in enumerate(shape) if i not in axes])
        return shapes.broadcast(first, shape=remaining) if remaining else scalar_of(first)
    return select(primitive(a, axes=axes), first)


def _extreme(original: F, ufunc: Any, doc: str) -> F:
    @member(original, doc)
    def extreme(
        a: Array,
        axis: Any = None,
        out: Any = None,
        keepdims: Any = NO_VALUE,
        initial: Any = NO_VALUE,
        where: Any = NO_VALUE,
    ) -> Array:
        a = operand(a)
        a = a if out is None else to_dtype(a, loop_dtype(ufunc, a, None, out))  # in which NumPy reduces it into `out`
        return _over_axes(extremum, a, axis, keepdims, out, ufunc.__name__, initial, where, out)

    return extreme


max = _extreme(np.max, np.maximum, "The maximum over axes, as numpy.max; ties share the derivative evenly.")
min = _extreme(np.min, np.minimum, "The minimum over axes, as numpy.min; ties share the derivative evenly.")
amax = implements(np.amax)(max)
amin = implements(np.amin)(min)


@implements(np.ptp)
def ptp(a: Array, axis: Any = None, out: Any = None, keepdims: Any = NO_VALUE) -> Array:
    """The largest minus the smallest element, as numpy.ptp."""
    a = operand(a)
    top = max(a, axis, keepdims=keepdims)
    top = top if out is None else to_dtype(top, dtype_of(out))  # NumPy writes it there first
    spread = ops.subtract(top, min(a, axis, keepdims=keepdims))
    if out is not None and shape_of(out) != shape_of(spread):
        raise ValueError(f"output parameter has the wrong shape: {shape_of(out)} given, {shape_of(spread)} expected")
    return with_out(spread, out)


def truth_of(a: Array, axes: tuple[int, ...], primitive: Any, where: Any = NO_VALUE) -> Array:
    """The primitive reduce_any or reduce_all over normalised axes."""
    mask = mask_for(a, where)
    if mask is not None:
        neutral = primitive is reduction_primitives.reduce_all
        a = shapes.where(mask, ops.not_equal(a, 0), neutral)
    return primitive(a, axes=axes)


@implements(np.any)
def any(a: Array, axis: Any = None, out: Any = None, keepdims: Any = NO_VALUE, *, where: Any = NO_VALUE) -> Array:
    """Whether any element along axes is not zero, as numpy.any."""
    return _over_axes(truth_of, a, axis, keepdims, out, reduction_primitives.reduce_any, where)


@implements(np.all)
def all(a: Array, axis: Any = None, out: Any = None, keepdims: Any = NO_VALUE, *, where: Any = NO_VALUE) -> Array:
    """Whether all elements along axes are not zero, as numpy.all."""
    return _over_axes(truth_of, a, axis, keepdims, out, reduction_primitives.reduce_all, where)


@implements(np.count_nonzero)
def count_nonzero(a: Array, axis: Any = None, *, keepdims: bool = False) -> Array:
    """The number of elements that are not zero, as numpy.count_nonzero."""
    return _over_axes(total_of, ops.not_equal(operand(a), 0), axis, keepdims, None, np.dtype(np.intp))


def _position(original: F, primitive: Any, doc: str) -> F:
    @member(original, doc)
    def position(a: Array, axis: int | None = None, out: Any = None, *, keepdims: Any = NO_VALUE) -> Array:
        a = operand(a)
        shape = shape_of(a)
        if axis is None or not shape:
            place, axes = 0, tuple(range(len(shape)))
            if shape or axis is not None:
                normalize_axis(0 if axis is None else axis, len(shape) or 1)
            a = shapes.reshape(arrayed(a), shape=(count(shape),))
        else:
            place = normalize_axis(axis, len(shape))
            axes = (place,)
        if shape_of(a)[place] == 0:
            raise ValueError(f"attempt to get {primitive.name} of an empty sequence")
        result = finish(primitive(a, axis=place), shape, axes, keepdims, None)
        return result if out is None else deliver_exactly(result, out)

    return position


argmax = _position(
    np.argmax,
    reduction_primitives.argmax,
    "The index of the largest element, the first of equal ones, as numpy.argmax.",
)
argmin = _position(
    np.argmin,
    reduction_primitives.argmin,
    "The index of the smallest element, the first of equal ones, as numpy.argmin.",
)


any_method, all_method = seen_in_solvers(any), seen_in_solvers(all)
"""x.any and x.all."""
