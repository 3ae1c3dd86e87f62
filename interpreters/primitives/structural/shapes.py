"""Linear primitives that convert, shape, choose and sum elements; `fit_cotangent` undoes broadcasting in a pullback."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from func.backends import HOST_TYPES, blocks
from func.backends.array_helpers.arrays import plain_where
from func.backends.array_helpers.strides import axes_by_stride, iterated_order, reduced_order, without_copy
from func.interpreters import core
from func.interpreters.core import PYTHON_SCALARS, ZERO, Array, Aval, Linear, Params, Shape, Shaped, Tracer
from func.interpreters.core.parameters import AXES, DTYPE, OPTIONAL_DTYPE, SHAPE
from func.interpreters.primitives import costs
from func.interpreters.primitives.structural.filling import full_like as full_like


def align_ranks(size: int, batched: Sequence[bool], args: Sequence[Array]) -> list[Array]:
    """Batch axes in front, then axes of length one, so that NumPy's broadcasting lines the rest up."""
    rank = max([len(core.shape_of(arg)) - is_batched for arg, is_batched in zip(args, batched, strict=True)])
    aligned = []
    for arg, is_batched in zip(args, batched, strict=True):
        if is_batched and len(core.shape_of(arg)) - 1 < rank:
            shape = core.shape_of(arg)
            arg = reshape(arg, shape=(size, *[1] * (rank + 1 - len(shape)), *shape[1:]))
        aligned.append(arg)
    return aligned


@functools.cache
def zero_of(dtype: np.dtype[Any]) -> Array:
    """A zero that np.where need not convert."""
    return np.zeros((), dtype)


class Where(Linear):
    """`where`, whose pullback keeps the condition alone."""

    __slots__ = ()

    def tangent_of(self, primals: tuple[Array, ...], out: Any, tangents: tuple[Any, ...], params: Params) -> Any:
        """In the dtype of the output, also where a number of Python, whose tangent is precise, was chosen."""
        tangent = super().tangent_of(primals, out, tangents, params)
        if tangent is ZERO or core.dtype_of(tangent) == core.dtype_of(out):
            return tangent
        return convert(tangent, dtype=core.dtype_of(out))

    def record(self, values: tuple[Array, ...], parents: Sequence[Shaped | None], params: Any) -> Any:
        condition, x, y = values
        plain = type(condition) is ndarray and type(x) in HOST_TYPES and type(y) in HOST_TYPES
        out = plain_where(condition, x, y) if plain else core.bind(self, values, params)
        return out, self, core.defensive_copy(condition)

    def pull(self, ct: Any, parents: Sequence[Any], saved: Any, params: Any) -> Sequence[Any]:
        _, px, py = parents
        if type(ct) is ndarray and type(saved) is ndarray:
            zero, choose = zero_of(ct.dtype), plain_where
        else:
            zero, choose = 0, where
        return (
            ZERO,
            ZERO if px is None else fit_cotangent(choose(saved, ct, zero), px),
            ZERO if py is None else fit_cotangent(choose(saved, zero, ct), py),
        )

    def pull_linear(self, ct: Any, parents: Sequence[Any], known: Sequence[Any], params: Any) -> Sequence[Any]:
        return self.pull(ct, parents, known[0], params)


def _where_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
    return where(*align_ranks(size, batched, args))


where = Where(
    "where",
    lambda xp, condition, x, y: xp.where(condition, x, y),
    aval=lambda c, x, y: Aval(np.broadcast_shapes(c.shape, x.shape, y.shape), result_dtype(x, y)),
    batch=_where_batch,
    cost=1,
    layout=iterated_order,
)
where.positions = frozenset({1, 2})
"""A choice, element by element; the side that was not chosen gets a cotangent of exact zero."""


def result_dtype(*avals: Any) -> np.dtype[Any]:
    """NumPy's promotion, with weak avals standing for Python scalars."""
    return np.result_type(
        *[{"f": 1.0, "c": 1j, "i": 1, "b": True}[a.dtype.kind] if getattr(a, "weak", False) else a.dtype for a in avals]
    )


# By their own names: `numpy` has a `__getattr__`, so that Python finds np.empty the long way.
_add, _empty, _nditer = np.add, np.empty, np.nditer
_SINGLE = np.dtype(np.float32)


def _convert_impl(xp: Any, x: Array, *, dtype: Any) -> Array:
    if dtype.kind not in "cb" and core.dtype_of(x).kind == "c":
        x = x.real
    is_number = type(x) is int and dtype.kind in "iu"  # which must fit, as in code
    array = xp.asarray(x, dtype) if is_number else xp.asarray(x).astype(dtype)
    return array if core.shape_of(x) or type(x) is ndarray else array[()]


def _convert_transpose(ct: Array, x: Shaped, *, dtype: Any) -> tuple[Array]:
    return (convert(ct, dtype=x.dtype),)


convert: Linear = core.linear(
    "convert",
    _convert_impl,
    aval=lambda x, *, dtype: Aval(x.shape, dtype),
    parameters={"dtype": DTYPE},
    transpose=_convert_transpose,
    batch=lambda x, *, dtype: convert(x, dtype=dtype),
    cost=0,
    layout=lambda x, *, dtype: axes_by_stride(x.strides),
    recompute=True,
    mask="elementwise",
    covers=True,
)
"""To another dtype. Complex to real keeps the real part, which is also the transpose of real to complex."""


def same_dtype(x: Array, like: Shaped | Tracer | Array) -> Array:
    """x converted to the dtype of another value where it differs."""
    dtype = core.dtype_of(like)
    return x if core.dtype_of(x) == dtype else convert(x, dtype=dtype)


SMALL = 1024
"""Up to this number of elements a filled array is faster to compute with than a view."""


def _broadcast_impl(xp: Any, x: Array, *, shape: Shape) -> Array:
    if xp is not np or not shape:
        return xp.broadcast_to(x, shape)
    if math.prod(shape) <= SMALL and (len(core.shape_of(x)) < 2 or x.flags.c_contiguous):
        out = _empty(shape, core.dtype_of(x))
        out[...] = x
        return out
    view: Array = _nditer((x,), _VIEW, _READ, itershape=shape, order="C").itviews[0]  # as broadcast_to, without Python
    return view


_VIEW: Any = ("multi_index", "refs_ok", "zerosize_ok")
_READ: Any = ("readonly",)


def _broadcast_transpose(ct: Array, x: Shaped, *, shape: Shape) -> tuple[Array]:
    return (unbroadcast(ct, x.shape),)


def _broadcast_batch(x: Array, *, shape: Shape) -> Array:
    size, *rest = core.shape_of(x)
    aligned = reshape(x, shape=(size, *[1] * (len(shape) - len(rest)), *rest))
    return broadcast(aligned, shape=(size, *shape))


broadcast: Linear = core.linear(
    "broadcast",
    _broadcast_impl,
    aval=lambda x, *, shape: Aval(shape, x.dtype),
    parameters={"shape": SHAPE},
    fits=lambda x, *, shape: np.broadcast_shapes(x.shape, shape) == tuple(shape),
    transpose=_broadcast_transpose,
    batch=_broadcast_batch,
    cost=0,
    layout=lambda x, *, shape: np.broadcast_to(x, shape),
    view=True,
    recompute=True,
    mask="covered",
    covers=True,
)
"""NumPy's broadcast_to."""


def _reshape_layout(x: Any, *, shape: Shape) -> Any:
    view = without_copy(x, shape)
    return tuple(range(len(shape))) if view is None else view


reshape: Linear = core.linear(
    "reshape",
    lambda xp, x, *, shape: x.reshape(shape) if type(x) is ndarray else xp.reshape(x, shape),
    aval=lambda x, *, shape: Aval(shape, x.dtype),
    parameters={"shape": SHAPE},
    fits=lambda x, *, shape: math.prod(x.shape) == math.prod(shape),
    transpose=lambda ct, x, *, shape: (reshape(ct, shape=x.shape),),
    batch=lambda x, *, shape: reshape(x, shape=(x.shape[0], *shape)),
    cost=0,
    layout=_reshape_layout,
    view=True,
    recompute=True,
    mask="covered",
    covers=True,
)
"""To a fully known shape, in C order."""


def inverse_permutation(order: Sequence[int]) -> tuple[int, ...]:
    """The permutation that undoes `order`."""
    inverse = [0] * len(order)
    for position, axis in enumerate(order):
        inverse[axis] = position
    return tuple(inverse)


permute: Linear = core.linear(
    "permute",
    lambda xp, x, *, order: xp.transpose(x, order),
    aval=lambda x, *, order: Aval(tuple([x.shape[axis] for axis in order]), x.dtype),
    parameters={"order": AXES},
    fits=lambda x, *, order: len(order) == len(x.shape),
    transpose=lambda ct, x, *, order: (permute(ct, order=inverse_permutation(order)),),
    batch=lambda x, *, order: permute(x, order=(0, *[axis + 1 for axis in order])),
    cost=0,
    layout=lambda x, *, order: x.transpose(order),
    view=True,
    recompute=True,
    mask="covered",
    covers=True,
)
"""Axes in another order."""


def move_axis(x: Array, source: int, destination: int) -> Array:
    """One axis moved, the others in order."""
    order = [axis for axis in range(len(core.shape_of(x))) if axis != source]
    order.insert(destination, source)
    return x if source == destination else permute(x, order=tuple(order))


def expand(x: Array, axes: Sequence[int]) -> Array:
    """New axes of length one at these positions of the result."""
    shape = list(core.shape_of(x))
    for axis in sorted(axes):
        shape.insert(axis, 1)
    return reshape(x, shape=tuple(shape))


def drop_axes(shape: Shape, axes: Sequence[int]) -> Shape:
    """A shape without these axes."""
    return tuple([length for axis, length in enumerate(shape) if axis not in axes])


def ones_at(shape: Shape, axes: Sequence[int]) -> Shape:
    """A shape with these axes of length one."""
    return tuple([1 if axis in axes else length for axis, length in enumerate(shape)])


def _sum_aval(x: Aval, *, axes: tuple[int, ...], dtype: Any = None) -> Aval:
    return Aval(drop_axes(x.shape, axes), dtype or np.add.reduce(np.zeros(1, x.dtype)).dtype)


def _sum_transpose(ct: Array, x: Shaped, *, axes: tuple[int, ...], dtype: Any = None) -> tuple[Array]:
    if len(axes) < len(x.shape):
        ct = reshape(ct, shape=ones_at(x.shape, axes))
    return (broadcast(ct if dtype is None else same_dtype(ct, x), shape=x.shape),)


def _sum_batch(x: Array, *, axes: tuple[int, ...], dtype: Any = None) -> Array:
    return reduce_sum(x, axes=tuple([axis + 1 for axis in axes]), dtype=dtype)


def reduce_by(ufunc: Any, x: Array, axes: tuple[int, ...], dtype: Any = None) -> Array:
    """ufunc.reduce on the host, by several threads where the array is large."""
    if type(x) is ndarray and x.size >= blocks.LARGE:
        return blocks.reduce(ufunc, x, axes, dtype)
    return ufunc.reduce(x, axes, dtype)


def _sum_impl(xp: Any, x: Array, *, axes: tuple[int, ...], dtype: Any = None) -> Array:
    if type(x) not in PYTHON_SCALARS and x.dtype.kind == "V" and dtype in (None, x.dtype):
        return xp.sum(x, axes, _SINGLE).astype(x.dtype)  # NumPy would round after every addition
    return reduce_by(_add, x, axes, dtype) if xp is np else xp.sum(x, axes, dtype)


reduce_sum: Linear = core.linear(
    "sum",
    _sum_impl,
    aval=_sum_aval,
    parameters={"axes": AXES, "dtype": OPTIONAL_DTYPE.or_absent()},
    transpose=_sum_transpose,
    batch=_sum_batch,
    cost=costs.per_input(1),
    reduces="add",
    layout=reduced_order,
    mask="covered",
    covers=True,
)
"""The sum over axes (non-negative, sorted), which disappear; `dtype` is that of the accumulation."""


def unbroadcast(ct: Array, shape: Shape) -> Array:
    """Sum a cotangent over the axes that broadcasting added or stretched."""
    have = core.shape_of(ct)
    if have == shape:
        return ct
    is_plain = type(ct) is ndarray and ct.dtype.kind != "V"
    if shape == () and is_plain:
        return _add.reduce(ct, None)
    if len(have) < len(shape):
        return broadcast(ct, shape=shape)
    axes = _stretched(have, shape)
    if axes:
        ct = reduce_by(_add, ct, axes) if is_plain else reduce_sum(ct, axes=axes)
    return ct if core.shape_of(ct) == shape else broadcast(reshape_to_ones(ct, shape), shape=shape)


@functools.lru_cache(4096)
def _stretched(have: Shape, shape: Shape) -> tuple[int, ...]:
    """The axes of `have` that are not in `shape`, or are of length one there."""
    extra = len(have) - len(shape)
    ones = [extra + axis for axis, length in enumerate(shape) if length == 1 and have[extra + axis] != 1]
    return (*range(extra), *ones)


def reshape_to_ones(ct: Array, shape: Shape) -> Array:
    """Put back the axes of length one that a sum removed (a cotangent may also be narrower than its primal)."""
    if math.prod(core.shape_of(ct)) == math.prod(shape):
        return reshape(ct, shape=shape)
    return ct


def fit_cotangent(ct: Array, target: Shaped) -> Array:
    """A cotangent with exactly the shape and dtype of its primal: broadcasting and promotion undone."""
    if core.shape_of(ct) != target.shape:
        ct = unbroadcast(ct, target.shape)
    if core.dtype_of(ct) != target.dtype:
        ct = convert(ct, dtype=target.dtype)
    return ct
