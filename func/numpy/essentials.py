"""The functions that nearly every program uses, over primitives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from func import conversion
from func.interpreters.core import (
    EVALUATE,
    Array,
    Tracer,
    dtype_of,
    innermost,
    operand,
    set_sequence_converter,
    shape_of,
)
from func.interpreters.primitives import elementwise as rows
from func.interpreters.primitives import reductions as reduce_rows
from func.interpreters.primitives.structural import broadcast, concatenate as concatenate_row, convert, cumsum as cumsum_row
from func.interpreters.primitives.structural import full_like as full_like_row
from func.interpreters.primitives.structural import reduce_sum, reshape as reshape_row
from func.interpreters.primitives.structural import where as where_row
from func.numpy.inplace import view_permute, view_reshape, write_into
from func.numpy.protocol import implements


def normalize_axes(axis: Any, rank: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(rank))
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    out = []
    for a in axes:
        if not -rank <= a < rank:
            raise np.exceptions.AxisError(a, rank)
        out.append(a % rank)
    if len(set(out)) != len(out):
        raise ValueError("duplicate value in 'axis'")
    return tuple(sorted(out))


# creation


def array_from(name: str, value: Any, dtype: Any = None, *args: Any, copy: Any = True, **kwargs: Any) -> Array:
    out = stack_nested(value)
    if dtype is not None and dtype_of(out) != np.dtype(dtype):
        out = convert(out, dtype=np.dtype(dtype))
    elif out is value and name == "array" and copy is not False:
        out = Tracer(value.interpreter, value.value, value.attached)
    return out


def stack_nested(value: Any) -> Array:
    if type(value) is Tracer:
        return value
    if isinstance(value, (list, tuple)) and conversion.holds_tracer(value):
        return stack([stack_nested(v) for v in value])
    return np.asarray(value)


set_sequence_converter(stack_nested)
conversion.set_converter(array_from)


@implements(np.stack)
def stack(arrays: Sequence[Any], axis: int = 0, out: Any = None) -> Array:
    arrays = [operand(a) for a in arrays]
    shapes = {shape_of(a) for a in arrays}
    if len(shapes) != 1:
        raise ValueError("all input arrays must have the same shape")
    rank = len(shapes.pop()) + 1
    (axis,) = normalize_axes(axis, rank)
    return concatenate([expand_dims(a, axis) for a in arrays], axis)


@implements(np.concatenate)
def concatenate(arrays: Sequence[Any], axis: int | None = 0, out: Any = None, **kwargs: Any) -> Array:
    arrays = [operand(a) for a in arrays]
    if axis is None:
        arrays = [ravel(a) for a in arrays]
        axis = 0
    (axis,) = normalize_axes(axis, len(shape_of(arrays[0])))
    dtype = np.result_type(*[dtype_of(a) for a in arrays])
    arrays = [a if dtype_of(a) == dtype else convert(a, dtype=dtype) for a in arrays]
    arrays = [np.asarray(a) if type(a) in (int, float, complex, bool) else a for a in arrays]
    return concatenate_row(*arrays, axis=axis)


def _box(value: Any) -> Tracer:
    return Tracer(EVALUATE, value, None)


@implements(np.zeros_like)
def zeros_like(a: Array, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None) -> Array:
    return full_like(a, 0, dtype, order, subok, shape)


@implements(np.empty_like)
def empty_like(a: Array, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None) -> Array:
    return full_like(a, 0, dtype, order, subok, shape)


@implements(np.ones_like)
def ones_like(a: Array, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None) -> Array:
    return full_like(a, 1, dtype, order, subok, shape)


@implements(np.full_like)
def full_like(
    a: Array, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None
) -> Array:
    shape = shape_of(a) if shape is None else (shape,) if isinstance(shape, int) else tuple(shape)
    dtype = dtype_of(a) if dtype is None else np.dtype(dtype)
    if type(fill_value) is Tracer:
        return broadcast(convert(fill_value, dtype=dtype), shape=shape)
    return _box(full_like_row(innermost(a) if innermost(a) is not None else 0.0, fill_value, shape, dtype))


def astype(x: Array, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True) -> Array:
    return convert(operand(x), dtype=np.dtype(dtype))


@implements(np.copy)
def copy(a: Array, order: str = "K", subok: bool = False) -> Array:
    a = operand(a)
    return Tracer(a.interpreter, a.value, a.attached) if type(a) is Tracer else a.copy()


# shaping


@implements(np.reshape)
def reshape(a: Array, /, shape: Any = None, order: str = "C", *, copy: Any = None) -> Array:
    a = operand(a)
    new = [shape] if isinstance(shape, (int, np.integer)) else list(shape)
    size = int(np.prod(shape_of(a), dtype=np.int64))
    if -1 in new:
        i = new.index(-1)
        rest = int(np.prod([n for n in new if n != -1], dtype=np.int64))
        new[i] = size // rest if rest else 0
    if int(np.prod(new, dtype=np.int64)) != size:
        raise ValueError(f"cannot reshape array of size {size} into shape {tuple(shape) if not isinstance(shape, int) else (shape,)}")
    return view_reshape(a, tuple(int(n) for n in new))


@implements(np.ravel)
def ravel(a: Array, order: str = "C") -> Array:
    return reshape(a, (-1,))


@implements(np.transpose)
def transpose(a: Array, axes: Any = None) -> Array:
    a = operand(a)
    rank = len(shape_of(a))
    order = tuple(reversed(range(rank))) if axes is None else tuple(x % rank for x in axes)
    return view_permute(a, order)


@implements(np.swapaxes)
def swapaxes(a: Array, axis1: int, axis2: int) -> Array:
    order = list(range(len(shape_of(a))))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return view_permute(operand(a), tuple(order))


@implements(np.moveaxis)
def moveaxis(a: Array, source: Any, destination: Any) -> Array:
    rank = len(shape_of(a))
    sources = [s % rank for s in (source if isinstance(source, (tuple, list)) else [source])]
    targets = [d % rank for d in (destination if isinstance(destination, (tuple, list)) else [destination])]
    order = [n for n in range(rank) if n not in sources]
    for d, s in sorted(zip(targets, sources, strict=True)):
        order.insert(d, s)
    return view_permute(operand(a), tuple(order))


@implements(np.expand_dims)
def expand_dims(a: Array, axis: Any) -> Array:
    a = operand(a)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = normalize_axes(tuple(axes), len(shape_of(a)) + len(axes))
    shape = list(shape_of(a))
    for x in axes:
        shape.insert(x, 1)
    return view_reshape(a, tuple(shape))


@implements(np.squeeze)
def squeeze(a: Array, axis: Any = None) -> Array:
    a = operand(a)
    shape = shape_of(a)
    axes = [i for i, n in enumerate(shape) if n == 1] if axis is None else normalize_axes(axis, len(shape))
    return view_reshape(a, tuple(n for i, n in enumerate(shape) if i not in axes))


@implements(np.broadcast_to)
def broadcast_to(array: Array, shape: Any, subok: bool = False) -> Array:
    return broadcast(operand(array), shape=(shape,) if isinstance(shape, int) else tuple(shape))


@implements(np.where)
def where(condition: Array, x: Any = None, y: Any = None, /) -> Any:
    condition, x, y = operand(condition), operand(x), operand(y)
    if dtype_of(condition).kind != "b":
        condition = rows.not_equal(condition, 0)
    return where_row(condition, x, y)


# reductions


def _finish(x: Array, shape: tuple[int, ...], axes: tuple[int, ...], keepdims: Any, out: Any) -> Array:
    if keepdims is not np._NoValue and keepdims:
        x = reshape_row(x, shape=tuple(1 if i in axes else n for i, n in enumerate(shape)))
    return x if out is None else write_into(out, x)


@implements(np.sum)
def sum(a: Array, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = np._NoValue, initial: Any = np._NoValue, where: Any = np._NoValue) -> Array:
    a = operand(a)
    if dtype is not None:
        a = convert(a, dtype=np.dtype(dtype))
    shape = shape_of(a)
    axes = normalize_axes(axis, len(shape))
    return _finish(reduce_sum(a, axes=axes), shape, axes, keepdims, out)


@implements(np.mean)
def mean(a: Array, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = np._NoValue, *, where: Any = np._NoValue) -> Array:
    a = operand(a)
    shape = shape_of(a)
    axes = normalize_axes(axis, len(shape))
    count = int(np.prod([shape[i] for i in axes], dtype=np.int64))
    return _finish(rows.divide(reduce_sum(a, axes=axes), count), shape, axes, keepdims, out)


def _extremum(row: Any) -> Any:
    def reduce(a: Array, axis: Any = None, out: Any = None, keepdims: Any = np._NoValue, initial: Any = np._NoValue, where: Any = np._NoValue) -> Array:
        a = operand(a)
        shape = shape_of(a)
        axes = normalize_axes(axis, len(shape))
        return _finish(row(a, axes=axes), shape, axes, keepdims, out)

    return reduce


max = implements(np.max, np.amax)(_extremum(reduce_rows.reduce_max))
min = implements(np.min, np.amin)(_extremum(reduce_rows.reduce_min))


@implements(np.any)
def any(a: Array, axis: Any = None, out: Any = None, keepdims: Any = np._NoValue, *, where: Any = np._NoValue) -> Array:
    a = operand(a)
    axes = normalize_axes(axis, len(shape_of(a)))
    return _finish(reduce_rows.reduce_any(a, axes=axes), shape_of(a), axes, keepdims, out)


@implements(np.all)
def all(a: Array, axis: Any = None, out: Any = None, keepdims: Any = np._NoValue, *, where: Any = np._NoValue) -> Array:
    a = operand(a)
    axes = normalize_axes(axis, len(shape_of(a)))
    return _finish(reduce_rows.reduce_all(a, axes=axes), shape_of(a), axes, keepdims, out)


@implements(np.argmax)
def argmax(a: Array, axis: int | None = None, out: Any = None, *, keepdims: Any = np._NoValue) -> Array:
    a = operand(a)
    if axis is None:
        return reduce_rows.argmax(ravel(a), axis=0)
    (axis,) = normalize_axes(axis, len(shape_of(a)))
    return reduce_rows.argmax(a, axis=axis)


@implements(np.cumsum)
def cumsum(a: Array, axis: int | None = None, dtype: Any = None, out: Any = None) -> Array:
    a = operand(a)
    if axis is None:
        a, axis = ravel(a), 0
    (axis,) = normalize_axes(axis, len(shape_of(a)))
    return cumsum_row(a, axis=axis, reverse=False)


@implements(np.pad)
def pad(array: Array, pad_width: Any, mode: str = "constant", **kwargs: Any) -> Array:
    from func.interpreters.primitives.structural import embed

    array = operand(array)
    widths = np.broadcast_to(np.asarray(pad_width), (len(shape_of(array)), 2)).tolist()
    index = tuple([(low, low + n, 1) for (low, _), n in zip(widths, shape_of(array), strict=True)])
    shape = tuple([low + n + high for (low, high), n in zip(widths, shape_of(array), strict=True)])
    return embed(array, index=index, shape=shape)
