"""Reductions over axes: max, min, prod, any, all, argmax, and cumulative products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from func.interpreters.core import Array, Aval, Params, dtype_of, shape_of
from func.interpreters.primitives.elementwise import add, divide, equal, isnan, logical_or, multiply
from func.interpreters.primitives.kinds import NonDifferentiable, Row, general, nondifferentiable
from func.interpreters.primitives.structural import (
    broadcast,
    concatenate,
    convert,
    drop_axes,
    full_like,
    getitem,
    move_axis,
    ones_at,
    reduce_sum,
    reshape,
)

Axes = tuple[int, ...]


def keep_axes(reduced: Array, shape: tuple[int, ...], axes: Axes) -> Array:
    """A reduced array with its axes back, at length one."""
    return reshape(reduced, shape=ones_at(shape, axes))


def _shift(axes: Axes) -> Axes:
    return tuple([axis + 1 for axis in axes])


def _extremum_jvp(row_name: str) -> Any:
    def extremum_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, axes: Axes) -> tuple[Array, Array]:
        """Ties split evenly; where the result is NaN, so is the derivative's share of the NaN elements."""
        (x,), (dx,) = primals, tangents
        out = _ROWS[row_name](x, axes=axes)
        shape = shape_of(x)
        hit = equal(x, keep_axes(out, shape, axes))
        if dtype_of(x).kind in "fc":
            hit = logical_or(hit, isnan(x))
        hits = convert(hit, dtype=dtype_of(x))
        weight = divide(hits, keep_axes(reduce_sum(hits, axes=axes), shape, axes))
        return out, reduce_sum(multiply(weight, dx), axes=axes)

    return extremum_jvp


def _reduction_aval(x: Aval, *, axes: Axes) -> Aval:
    return Aval(drop_axes(x.shape, axes), x.dtype)


def _batch_axes(row_name: str) -> Any:
    def batch_reduction(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
        return _ROWS[row_name](args[0], axes=_shift(params["axes"]))

    return batch_reduction


reduce_max: Row = general(
    "max",
    lambda xp, x, *, axes: xp.max(x, axes),
    aval=_reduction_aval,
    batch=_batch_axes("max"),
    jvp=_extremum_jvp("max"),
)

reduce_min: Row = general(
    "min",
    lambda xp, x, *, axes: xp.min(x, axes),
    aval=_reduction_aval,
    batch=_batch_axes("min"),
    jvp=_extremum_jvp("min"),
)


def _along(x: Array, axis: int, start: int, stop: int) -> Array:
    shape = shape_of(x)
    return getitem(
        x, index=tuple([(start, stop, 1) if i == axis else (0, n, 1) for i, n in enumerate(shape)])
    )


def _prod_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, axes: Axes) -> tuple[Array, Array]:
    """The product rule on pairs (p, t), halving the axis each time: exact also where elements are zero."""
    (x,), (dx,) = primals, tangents
    out = reduce_prod(x, axes=axes)
    shape = shape_of(x)
    kept = drop_axes(shape, axes)
    for value_axis in range(len(axes)):
        x = move_axis(x, axes[value_axis], value_axis)
        dx = move_axis(dx, axes[value_axis], value_axis)
    count = int(np.prod([shape[axis] for axis in axes], dtype=np.int64))
    if count == 0:
        return out, full_like(out, 0)
    p = reshape(convert(x, dtype=dtype_of(out)), shape=(count, *kept))
    t = reshape(convert(dx, dtype=dtype_of(out)), shape=(count, *kept))
    while count > 1:
        half = count // 2
        p1, p2 = _along(p, 0, 0, half), _along(p, 0, half, 2 * half)
        t1, t2 = _along(t, 0, 0, half), _along(t, 0, half, 2 * half)
        paired, grown = multiply(p1, p2), add(multiply(t1, p2), multiply(p1, t2))
        if count % 2:
            paired = concatenate(paired, _along(p, 0, count - 1, count), axis=0)
            grown = concatenate(grown, _along(t, 0, count - 1, count), axis=0)
        p, t = paired, grown
        count = half + count % 2
    return out, reshape(t, shape=kept)


reduce_prod: Row = general(
    "prod",
    lambda xp, x, *, axes: xp.prod(x, axes),
    aval=lambda x, *, axes: Aval(drop_axes(x.shape, axes), np.multiply.reduce(np.ones(1, x.dtype)).dtype),
    batch=_batch_axes("prod"),
    jvp=_prod_jvp,
)


def _cumprod_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, axis: int) -> tuple[Array, Array]:
    """The product rule as a prefix scan over pairs (p, t) by doubling: exact also at zeros."""
    (x,), (dx,) = primals, tangents
    out = cumprod(x, axis=axis)
    p, t = convert(x, dtype=dtype_of(out)), convert(dx, dtype=dtype_of(out))
    length = shape_of(x)[axis]
    step = 1
    while step < length:
        early_p, early_t = _along(p, axis, 0, length - step), _along(t, axis, 0, length - step)
        late_p, late_t = _along(p, axis, step, length), _along(t, axis, step, length)
        head_p, head_t = _along(p, axis, 0, step), _along(t, axis, 0, step)
        t = concatenate(head_t, add(multiply(early_t, late_p), multiply(early_p, late_t)), axis=axis)
        p = concatenate(head_p, multiply(early_p, late_p), axis=axis)
        step *= 2
    return out, t


cumprod: Row = general(
    "cumprod",
    lambda xp, x, *, axis: xp.cumprod(x, axis),
    aval=lambda x, *, axis: Aval(x.shape, np.multiply.reduce(np.ones(1, x.dtype)).dtype),
    batch=lambda size, batched, args, params: cumprod(args[0], axis=params["axis"] + 1),
    jvp=_cumprod_jvp,
)


def _constant_reduction(name: str, dtype: Any) -> Any:
    return nondifferentiable(
        name,
        lambda xp, x, *, axes: getattr(xp, name)(x, axes),
        aval=lambda x, *, axes: Aval(drop_axes(x.shape, axes), dtype),
        batch=_batch_axes(name),
    )


reduce_any = _constant_reduction("any", np.bool_)
reduce_all = _constant_reduction("all", np.bool_)


def _index_reduction(name: str) -> Any:
    def batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
        return row(args[0], axis=params["axis"] + 1)

    row = nondifferentiable(
        name,
        lambda xp, x, *, axis: getattr(xp, name)(x, axis),
        aval=lambda x, *, axis: Aval(drop_axes(x.shape, (axis,)), np.intp),
        batch=batch,
    )
    return row


argmax = _index_reduction("argmax")
argmin = _index_reduction("argmin")


def _argsort_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
    return argsort(args[0], axis=params["axis"] + 1, kind=params["kind"])


argsort: NonDifferentiable = nondifferentiable(
    "argsort",
    lambda xp, x, *, axis, kind: xp.argsort(x, axis, kind=kind),
    aval=lambda x, *, axis, kind: Aval(x.shape, np.intp),
    batch=_argsort_batch,
)

_ROWS = {"max": reduce_max, "min": reduce_min, "prod": reduce_prod, "any": reduce_any, "all": reduce_all}
_ = broadcast
