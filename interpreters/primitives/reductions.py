"""Reductions over axes: max, min, prod, any, all, argmax; and running products and extrema."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func.interpreters.core import Array, Aval, Params, Shaped, bind, dtype_of, shape_of
from func.interpreters.errors import NotDifferentiableError
from func.interpreters.primitives.elementwise import (
    add,
    divide,
    equal,
    exp,
    greater_equal,
    isfinite,
    isnan,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    multiply,
    subtract,
)
from func.interpreters.primitives.kinds import NonDifferentiable, Row, general, materialize, nondifferentiable
from func.interpreters.primitives.structural import (
    concatenate,
    convert,
    drop_axes,
    full_like,
    getitem,
    move_axis,
    ones_at,
    reduce_sum,
    reshape,
    where,
)

Axes = tuple[int, ...]


def keep_axes(reduced: Array, shape: tuple[int, ...], axes: Axes) -> Array:
    """A reduced array with its axes back, at length one."""
    return reshape(reduced, shape=ones_at(shape, axes))


def _shift(axes: Axes) -> Axes:
    return tuple([axis + 1 for axis in axes])


def _batch_axes(row_name: str) -> Any:
    def batch_reduction(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
        return _ROWS[row_name](args[0], axes=_shift(params["axes"]))

    return batch_reduction


# --- extrema ----------------------------------------------------------------------------------------------------


class Extremum(Row):
    """max or min. Ties split evenly; where the result is NaN, the derivative is the NaN elements' share."""

    __slots__ = ()

    def weights(self, x: Array, out: Array, axes: Axes) -> Array:
        """The derivative of the result by each element: one over the number of elements that attain it."""
        shape = shape_of(x)
        hit = equal(x, keep_axes(out, shape, axes))
        if dtype_of(x).kind in "fc":
            hit = logical_or(hit, isnan(x))
        hits = convert(hit, dtype=dtype_of(x))
        return divide(hits, keep_axes(reduce_sum(hits, axes=axes), shape, axes))

    def forward(self, primals: tuple[Array, ...], tangents: tuple[Any, ...], params: Params) -> Any:
        out = bind(self, primals, params)
        axes = params["axes"]
        return out, reduce_sum(multiply(self.weights(primals[0], out, axes), tangents[0]), axes=axes)

    def record(self, values: tuple[Array, ...], parents: Sequence[Shaped | None], params: Params) -> Any:
        out = bind(self, values, params)
        return out, self, (values[0], out)

    def pull(self, ct: Any, parents: Sequence[Any], saved: Any, params: Params) -> Sequence[Any]:
        x, out = saved
        axes = params["axes"]
        return (multiply(self.weights(x, out, axes), keep_axes(ct, shape_of(x), axes)),)

    def pull_linear(self, ct: Any, parents: Sequence[Any], known: Sequence[Any], params: Params) -> Sequence[Any]:
        raise NotDifferentiableError(f"{self.name} is not linear and cannot be transposed")


def _extremum(name: str) -> Extremum:
    def impl(xp: Any, x: Array, *, axes: Axes) -> Array:
        return getattr(xp, name)(x, axes)

    def aval(x: Aval, *, axes: Axes) -> Aval:
        return Aval(drop_axes(x.shape, axes), x.dtype)

    return Extremum(name, impl, aval=aval, batch=_batch_axes(name))


reduce_max = _extremum("max")
reduce_min = _extremum("min")


# --- products ---------------------------------------------------------------------------------------------------


def _along(x: Array, axis: int, start: int, stop: int) -> Array:
    shape = shape_of(x)
    return getitem(x, index=tuple([(start, stop, 1) if i == axis else (0, n, 1) for i, n in enumerate(shape)]))


def _prod_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, axes: Axes) -> tuple[Array, Array]:
    """The product rule on pairs (p, t), halving the axis each time: exact also where elements are zero."""
    (x,), (dx,) = primals, tangents
    out = reduce_prod(x, axes=axes)
    shape = shape_of(x)
    kept = drop_axes(shape, axes)
    for value_axis in range(len(axes)):
        x = move_axis(x, axes[value_axis], value_axis)
        dx = move_axis(dx, axes[value_axis], value_axis)
    count = math.prod([shape[axis] for axis in axes])
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


# --- sums and products with where= and initial= -----------------------------------------------------------------


def _optioned(name: str, ufunc: str, neutral: int, grow: Callable[..., Array]) -> Row:
    """A reduction with a mask of the elements that count (or True) and a first value: NumPy adds such elements up
    in another order, so that the value comes from its ufunc. The derivative is that of the plain reduction."""

    def impl(xp: Any, x: Array, mask: Array, *, axes: Axes, dtype: Any, initial: Any) -> Array:
        options = {} if initial is None else {"initial": initial}
        if xp is np:
            return getattr(np, ufunc).reduce(x, axes, dtype, where=mask, **options)
        out = getattr(xp, name)(xp.where(mask, x, xp.asarray(neutral, dtype_of(x))), axes, dtype)
        return out if initial is None else getattr(xp, ufunc)(out, initial)

    def aval(x: Aval, mask: Aval, *, axes: Axes, dtype: Any, initial: Any) -> Aval:
        return Aval(drop_axes(x.shape, axes), dtype or getattr(np, ufunc).reduce(np.ones(1, x.dtype)).dtype)

    def jvp(
        primals: Sequence[Array], tangents: Sequence[Any], *, axes: Axes, dtype: Any, initial: Any
    ) -> tuple[Array, Any]:
        (x, mask), (dx, _) = primals, tangents
        out = row(x, mask, axes=axes, dtype=dtype, initial=initial)
        dx = where(mask, dx, full_like(dx, 0, ()))
        return out, grow(where(mask, x, full_like(x, neutral, ())), dx, axes, dtype_of(out), initial)

    def batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
        x, mask = materialize(size, batched, args) if shape_of(args[1]) else args
        return row(x, mask, **{**params, "axes": _shift(params["axes"])})

    row = general(f"{name}_with", impl, aval=aval, batch=batch, jvp=jvp)
    return row


def _grow_sum(x: Array, dx: Array, axes: Axes, dtype: Any, initial: Any) -> Array:
    return reduce_sum(dx, axes=axes, dtype=dtype)


def _grow_prod(x: Array, dx: Array, axes: Axes, dtype: Any, initial: Any) -> Array:
    both = convert(x, dtype=dtype), convert(dx, dtype=dtype)
    grown = _prod_jvp(both[:1], both[1:], axes=axes)[1]
    return grown if initial is None else multiply(grown, convert(initial, dtype=dtype))


sum_with = _optioned("sum", "add", 0, _grow_sum)
prod_with = _optioned("prod", "multiply", 1, _grow_prod)


# --- log-sum-exp ------------------------------------------------------------------------------------------------


def _logaddexp_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, axis: int) -> tuple[Array, Array]:
    """Weights exp(x - out), which are shared evenly between terms that are infinite or all zero."""
    (x,), (dx,) = primals, tangents
    out = reduce_logaddexp(x, axis=axis)
    kept = keep_axes(out, shape_of(x), (axis,))
    stuck = logical_and(equal(x, kept), logical_not(isfinite(x)))
    stuck_any = logical_not(isfinite(kept))
    hits = convert(stuck, dtype=dtype_of(x))
    number = maximum(keep_axes(reduce_sum(hits, axes=(axis,)), shape_of(x), (axis,)), 1)
    zero = full_like(x, 0, ())
    plain = exp(where(stuck_any, zero, subtract(x, where(stuck_any, zero, kept))))
    weight = where(stuck_any, divide(hits, number), plain)
    return out, reduce_sum(multiply(weight, dx), axes=(axis,))


def _logaddexp_impl(xp: Any, x: Array, *, axis: int) -> Array:
    if xp is np:
        return np.logaddexp.reduce(x, axis)
    top = xp.max(x, axis, keepdims=True)
    top = xp.where(xp.isfinite(top), top, 0)
    return xp.log(xp.sum(xp.exp(x - top), axis)) + xp.squeeze(top, axis)


reduce_logaddexp: Row = general(
    "logaddexp_reduce",
    _logaddexp_impl,
    aval=lambda x, *, axis: Aval(drop_axes(x.shape, (axis,)), x.dtype),
    batch=lambda size, batched, args, params: reduce_logaddexp(args[0], axis=params["axis"] + 1),
    jvp=_logaddexp_jvp,
)


# --- running products and extrema: prefix scans by doubling -----------------------------------------------------


def _scan(parts: Sequence[Array], axis: int, combine: Callable[..., Sequence[Array]]) -> Sequence[Array]:
    """Inclusive prefix scan of tuples of arrays under an associative `combine(early, late)`, by doubling."""
    length = shape_of(parts[0])[axis]
    step = 1
    while step < length:
        early = [_along(part, axis, 0, length - step) for part in parts]
        late = [_along(part, axis, step, length) for part in parts]
        heads = [_along(part, axis, 0, step) for part in parts]
        joined = combine(early, late)
        parts = [concatenate(head, new, axis=axis) for head, new in zip(heads, joined, strict=True)]
        step *= 2
    return parts


def _combine_products(early: Sequence[Array], late: Sequence[Array]) -> Sequence[Array]:
    (p1, t1), (p2, t2) = early, late
    return multiply(p1, p2), add(multiply(t1, p2), multiply(p1, t2))


def _cumprod_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, axis: int) -> tuple[Array, Array]:
    """The product rule as a scan over pairs (product, tangent): exact also at zeros."""
    (x,), (dx,) = primals, tangents
    out = cumprod(x, axis=axis)
    both = convert(x, dtype=dtype_of(out)), convert(dx, dtype=dtype_of(out))
    return out, _scan(both, axis, _combine_products)[1]


cumprod: Row = general(
    "cumprod",
    lambda xp, x, *, axis: xp.cumprod(x, axis),
    aval=lambda x, *, axis: Aval(x.shape, np.multiply.reduce(np.ones(1, x.dtype)).dtype),
    batch=lambda size, batched, args, params: cumprod(args[0], axis=params["axis"] + 1),
    jvp=_cumprod_jvp,
)


def _running_extremum(name: str, ufunc: str, step: Callable[..., Array], wins: Callable[..., Array]) -> Row:
    """maximum.accumulate or minimum.accumulate; equal elements so far share the derivative evenly."""

    def combine(early: Sequence[Array], late: Sequence[Array]) -> Sequence[Array]:
        (m1, t1, n1), (m2, t2, n2) = early, late
        first, second = logical_or(wins(m1, m2), isnan(m1)), logical_or(wins(m2, m1), isnan(m2))
        zero = full_like(t1, 0, ())
        t = add(where(first, t1, zero), where(second, t2, zero))
        return step(m1, m2), t, add(where(first, n1, zero), where(second, n2, zero))

    def jvp(primals: Sequence[Array], tangents: Sequence[Any], *, axis: int) -> tuple[Array, Array]:
        (x,), (dx,) = primals, tangents
        _, total, number = _scan((x, dx, full_like(x, 1)), axis, combine)
        return row(x, axis=axis), divide(total, number)

    def impl(xp: Any, x: Array, *, axis: int) -> Array:
        return getattr(xp, ufunc).accumulate(x, axis)

    row = general(
        name,
        impl,
        aval=lambda x, *, axis: x,
        batch=lambda size, batched, args, params: row(args[0], axis=params["axis"] + 1),
        jvp=jvp,
    )
    return row


cummax = _running_extremum("cummax", "maximum", maximum, greater_equal)
cummin = _running_extremum("cummin", "minimum", minimum, less_equal)


# --- without a derivative ---------------------------------------------------------------------------------------


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
