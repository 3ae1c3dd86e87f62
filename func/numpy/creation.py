"""Making arrays: from nested sequences, like others, and grids."""

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
from func.interpreters.primitives.structural import broadcast
from func.interpreters.primitives.structural import full_like as constant_like
from func.numpy.arguments import as_shape, rank_of, refuse, to_dtype
from func.numpy.inplace import getitem
from func.numpy.protocol import implements

__all__ = [
    "arange",
    "array",
    "asanyarray",
    "asarray",
    "ascontiguousarray",
    "asfortranarray",
    "astype",
    "copy",
    "diag",
    "diagflat",
    "empty",
    "empty_like",
    "eye",
    "full",
    "full_like",
    "geomspace",
    "identity",
    "linspace",
    "logspace",
    "meshgrid",
    "ones",
    "ones_like",
    "tri",
    "tril",
    "triu",
    "vander",
    "zeros",
    "zeros_like",
]

arange = np.arange
empty = np.empty
eye = np.eye
identity = np.identity
ones = np.ones
tri = np.tri
zeros = np.zeros


def stack_nested(value: Any) -> Array:
    """A nested list or tuple that may hold traced values, as one array."""
    if type(value) is Tracer:
        return value
    if isinstance(value, (list, tuple)) and conversion.holds_tracer(value):
        from func.numpy.joining import stack

        return stack([stack_nested(item) for item in value])
    return np.asarray(value)


def array(
    object: Any,
    dtype: Any = None,
    *,
    copy: bool | None = True,
    order: str | None = "K",
    subok: bool = False,
    ndmin: int = 0,
    like: Any = None,
) -> Array:
    """An array of a nested sequence; traced values inside stay traced. An array is copied."""
    out = stack_nested(object)
    if type(out) is Tracer and out is object and copy:
        out = Tracer(out.interpreter, out.value, out.attached)
    elif out is object and copy:
        out = np.array(out)
    out = to_dtype(out, dtype)
    while rank_of(out) < ndmin:
        out = out[None]
    return out


def asarray(a: Any, dtype: Any = None, order: str | None = None, **kwargs: Any) -> Array:
    """An array of a nested sequence; an array as it is."""
    return array(a, dtype, copy=False)


asanyarray = asarray
ascontiguousarray = asarray
asfortranarray = asarray


def _converted(name: str, *args: Any, **kwargs: Any) -> Array:
    """What np.array and its kin do with traced values inside."""
    if name == "array":
        return array(*args, **kwargs)
    return asarray(*args, **kwargs)


set_sequence_converter(stack_nested)
conversion.set_converter(_converted)


@implements(np.full_like)
def full_like(
    a: Array, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, **device: Any
) -> Array:
    """A constant array of a's shape and dtype, which can be written with traced values where a is traced."""
    a = operand(a)
    wanted = shape_of(a) if shape is None else as_shape(shape)
    dtype = dtype_of(a) if dtype is None else np.dtype(dtype)
    fill_value = operand(fill_value)
    if type(fill_value) is Tracer:
        return broadcast(to_dtype(fill_value, dtype), shape=wanted)
    bottom = innermost(a)
    like = 0.0 if bottom is None else bottom
    if shape_of(fill_value) == ():
        made = constant_like(like, fill_value, wanted, dtype)
    else:
        made = np.full(wanted, fill_value, dtype)
    return Tracer(EVALUATE, made, None) if type(a) is Tracer else made


@implements(np.zeros_like)
def zeros_like(
    a: Array, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, **device: Any
) -> Array:
    """Zeros of a's shape and dtype, which can be written with traced values where a is traced."""
    return full_like(a, 0, dtype, order, subok, shape)


@implements(np.ones_like)
def ones_like(
    a: Array, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, **device: Any
) -> Array:
    """Ones of a's shape and dtype, which can be written with traced values where a is traced."""
    return full_like(a, 1, dtype, order, subok, shape)


@implements(np.empty_like)
def empty_like(
    prototype: Array, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, **device: Any
) -> Array:
    """Zeros of a's shape and dtype, which can be written with traced values where a is traced."""
    return full_like(prototype, 0, dtype, order, subok, shape)


def full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", **kwargs: Any) -> Array:
    """A constant array; the constant may be traced."""
    fill_value = operand(fill_value)
    if type(fill_value) is not Tracer:
        return np.full(shape, fill_value, dtype)
    return broadcast(to_dtype(fill_value, dtype), shape=as_shape(shape))


def astype(
    x: Array,
    dtype: Any,
    order: str = "K",
    casting: str = "unsafe",
    subok: bool = True,
    copy: bool = True,
    **device: Any,
) -> Array:
    """x in another dtype; complex to real keeps the real part."""
    refuse("astype", casting=(casting, "unsafe"))
    x = operand(x)
    if dtype_of(x) == np.dtype(dtype):
        return Tracer(x.interpreter, x.value, x.attached) if type(x) is Tracer else x.copy() if copy else x
    return to_dtype(x, dtype)


@implements(np.copy)
def copy(a: Array, order: str = "K", subok: bool = False) -> Array:
    """A copy: writing it leaves the original alone."""
    a = operand(a)
    return Tracer(a.interpreter, a.value, a.attached) if type(a) is Tracer else np.copy(a)


@implements(np.linspace)
def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    **device: Any,
) -> Any:
    """Evenly spaced numbers between two ends, which may be traced arrays."""
    from func.numpy.shaping import moveaxis

    start, stop = operand(start) * 1.0, operand(stop) * 1.0
    gaps = num - 1 if endpoint else num
    delta = stop - start
    step = delta / gaps if gaps > 0 else delta * np.nan
    ticks = np.arange(num).reshape(-1, *[1] * rank_of(delta))
    out = ticks * step + start if gaps > 0 else ticks * delta + start
    if endpoint and num > 1:
        last = (ticks == num - 1) & np.ones(shape_of(delta), bool)
        from func.numpy.selection import where

        out = where(last, stop, out)
    out = to_dtype(out, dtype)
    out = out if axis == 0 else moveaxis(out, 0, axis)
    return (out, step) if retstep else out


@implements(np.logspace)
def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Array:
    """base to the powers between two ends."""
    powers = linspace(start, stop, num, endpoint, axis=axis)
    return to_dtype(operand(base) ** powers, dtype)


@implements(np.geomspace)
def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Array:
    """Numbers between two ends with equal quotients."""
    from func.interpreters.primitives.elementwise import exp, log

    start, stop = operand(start) * 1.0, operand(stop) * 1.0
    return to_dtype(start * exp(linspace(0.0 * start, log(stop / start), num, endpoint, axis=axis)), dtype)


@implements(np.meshgrid)
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[Array, ...]:
    """Coordinate grids of coordinate vectors."""
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    from func.numpy.shaping import broadcast_arrays, reshape

    rank = len(xi)
    grids = []
    for i, x in enumerate(xi):
        place = 1 - i if indexing == "xy" and rank > 1 and i < 2 else i
        grids.append(reshape(x, tuple([-1 if axis == place else 1 for axis in range(rank)])))
    return tuple(grids) if sparse else tuple(broadcast_arrays(*grids))


def _band(m: Array, test: Any) -> Array:
    from func.numpy.selection import where

    m = operand(m)
    if rank_of(m) < 2:
        m = broadcast(m, shape=(*shape_of(m), *shape_of(m)))
    rows, columns = shape_of(m)[-2:]
    mask = test(np.arange(rows)[:, None], np.arange(columns)[None, :])
    return where(mask, m, np.zeros((), dtype_of(m)))


@implements(np.tril)
def tril(m: Array, k: int = 0) -> Array:
    """The lower triangle, zero above diagonal k."""
    return _band(m, lambda i, j: j - i <= k)


@implements(np.triu)
def triu(m: Array, k: int = 0) -> Array:
    """The upper triangle, zero below diagonal k."""
    return _band(m, lambda i, j: j - i >= k)


@implements(np.diag)
def diag(v: Array, k: int = 0) -> Array:
    """The diagonal of a matrix, or a matrix with a diagonal."""
    v = operand(v)
    if rank_of(v) == 2:
        from func.numpy.selection import diagonal

        return diagonal(v, k)
    if rank_of(v) != 1:
        raise ValueError("Input must be 1- or 2-d.")
    from func.interpreters.primitives.indexing import scatter

    (n,) = shape_of(v)
    i = np.arange(n)
    board = constant_like(v, 0, (n + abs(k), n + abs(k)))
    return scatter(board, v, i + max(-k, 0), i + max(k, 0), axis=0)


@implements(np.diagflat)
def diagflat(v: Any, k: int = 0) -> Array:
    """A matrix with the flattened input as its diagonal."""
    from func.numpy.shaping import ravel

    return diag(ravel(operand(v)), k)


@implements(np.vander)
def vander(x: Array, N: int | None = None, increasing: bool = False) -> Array:
    """The powers of x as columns."""
    from func.numpy.joining import stack

    x = operand(x)
    if rank_of(x) != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    columns: list[Array] = [ones_like(x)]
    for _ in range((shape_of(x)[0] if N is None else N) - 1):
        columns.append(columns[-1] * x)
    columns = columns[: shape_of(x)[0] if N is None else N]
    return stack(columns if increasing else columns[::-1], axis=1)


def sequence(values: Any) -> Sequence[Any]:
    """The members of a sequence argument, a traced array being split along its first axis."""
    if type(values) is not Tracer:
        return values  # type: ignore[no-any-return]
    return [getitem(values, i) for i in range(shape_of(values)[0])]
