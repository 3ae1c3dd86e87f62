"""Running sums, products and extrema. Products and extrema differentiate by associative scans that double their steps,
exact also at zeros and ties."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func.backends.array_helpers.arrays import running_extremum
from func.backends.array_helpers.strides import iterated_order
from func.interpreters.core import Array, Aval, Linear, Primitive, dtype_of, general, linear, shape_of
from func.interpreters.core.parameters import AXIS, FLAG
from func.interpreters.primitives import costs
from func.interpreters.primitives.elementwise.builder import add, multiply
from func.interpreters.primitives.elementwise.conventions import by_convention
from func.interpreters.primitives.elementwise.table import (
    divide,
    greater,
    greater_equal,
    isnan,
    less_equal,
    logical_or,
    maximum,
    minimum,
)
from func.interpreters.primitives.structural.shapes import (
    convert,
    full_like,
    inverse_permutation,
    permute,
    reshape,
    where,
)
from func.interpreters.primitives.structural.slicing import concatenate, getitem


def _cumsum_impl(xp: Any, x: Array, *, axis: int, reverse: bool) -> Array:
    if not reverse:
        return xp.cumsum(x, axis)
    backwards = (slice(None),) * axis + (slice(None, None, -1),)
    return xp.cumsum(x[backwards], axis)[backwards]


cumsum: Linear = linear(
    "cumsum",
    _cumsum_impl,
    aval=lambda x, *, axis, reverse: Aval(x.shape, np.add.reduce(np.zeros(1, x.dtype)).dtype),
    parameters={"axis": AXIS, "reverse": FLAG},
    transpose=lambda ct, x, *, axis, reverse: (cumsum(ct, axis=axis, reverse=not reverse),),
    batch=lambda x, *, axis, reverse: cumsum(x, axis=axis + 1, reverse=reverse),
    cost=costs.per_input(1),
    reduces="add",
    layout=iterated_order,
    mask="covered",
    covers=True,
)


def _along(x: Array, axis: int, start: int, stop: int, step: int = 1) -> Array:
    shape = shape_of(x)
    return getitem(x, index=tuple([(start, stop, step) if i == axis else (0, n, 1) for i, n in enumerate(shape)]))


def _scan(parts: Sequence[Array], axis: int, combine: Callable[..., Sequence[Array]]) -> Sequence[Array]:
    """Inclusive associative scan of tuples of arrays under an associative `combine(early, late)`, by doubling."""
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
    """The product rule as a scan over pairs (product, tangent)."""
    (x,), (dx,) = primals, tangents
    out = cumprod(x, axis=axis)
    pairs = convert(x, dtype=dtype_of(out)), convert(dx, dtype=dtype_of(out))
    return out, _scan(pairs, axis, _combine_products)[1]


cumprod: Primitive = general(
    "cumprod",
    lambda xp, x, *, axis: xp.cumprod(x, axis),
    aval=lambda x, *, axis: Aval(x.shape, np.multiply.reduce(np.ones(1, x.dtype)).dtype),
    parameters={"axis": AXIS},
    batch=lambda size, batched, args, params: cumprod(args[0], axis=params["axis"] + 1),
    jvp=_cumprod_jvp,
    cost=costs.per_input(1),
    layout=iterated_order,
    reduces="multiply",
)


def _before(p: Array) -> Array:
    """Along the first axis the product of all elements before each."""
    n, *rest = shape_of(p)
    return concatenate(full_like(p, 1, (1, *rest)), cumprod(_along(p, 0, 0, n - 1), axis=0), axis=0)


def products_of_others(x: Array, axes: tuple[int, ...]) -> Array:
    """For each element the product over the axes of all others: the derivative of the product."""
    shape = shape_of(x)
    order = (*axes, *[axis for axis in range(len(shape)) if axis not in axes])
    count = math.prod([shape[axis] for axis in axes])
    if count < 2:
        return full_like(x, 1)
    axes_first = permute(x, order=order)
    flat = reshape(axes_first, shape=(count, *shape_of(axes_first)[len(axes) :]))
    behind = _along(_before(_along(flat, 0, count - 1, -1, -1)), 0, count - 1, -1, -1)
    out = multiply(_before(flat), behind)
    return permute(reshape(out, shape=shape_of(axes_first)), order=inverse_permutation(order))


def _running_extremum(name: str, ufunc: str, step: Callable[..., Array], wins: Callable[..., Array]) -> Primitive:
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
        out = primitive(x, axis=axis)
        return out, divide(total, by_convention(number, lambda: greater(number, 1), out))

    def impl(xp: Any, x: Array, *, axis: int) -> Array:
        return running_extremum(xp, x, ufunc=ufunc, axis=axis)

    primitive = general(
        name,
        impl,
        aval=lambda x, *, axis: x,
        parameters={"axis": AXIS},
        batch=lambda size, batched, args, params: primitive(args[0], axis=params["axis"] + 1),
        jvp=jvp,
        cost=costs.per_input(1),
        layout=iterated_order,
        reduces=ufunc,
    )
    return primitive


cummax = _running_extremum("cummax", "maximum", maximum, greater_equal)
cummin = _running_extremum("cummin", "minimum", minimum, less_equal)
