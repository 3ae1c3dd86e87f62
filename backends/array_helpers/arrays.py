"""Plain functions of arrays, loops and branches that generated source calls by name.

Each is self-contained: it uses `numpy`, `math` and functions of this folder only; an exported module can include
its source. `xp` is the array namespace; `numpy` is the host's, even if `xp` is another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy


def scipy_of(xp: Any, module: str) -> Any:
    """The module with the names of scipy.linalg or scipy.special that goes with a namespace."""
    if xp is numpy:
        import scipy

        return getattr(scipy, module)
    scipy_module = getattr(xp, f"scipy_{module}", None)
    return __import__(f"cupyx.scipy.{module}", fromlist=[module]) if scipy_module is None else scipy_module


def on_host(xp: Any, path: str, function: Any, *args: Any, **params: Any) -> Any:
    """function(numpy, *args, **params) for arrays of a device that has nothing of the kind: between two copies."""
    if xp is numpy:
        return function(numpy, *args, **params)
    if hasattr(xp, "on_host"):  # which warns
        return xp.on_host(function, path)(numpy, *args, **params)
    return xp.asarray(function(numpy, *[x.get() if hasattr(x, "get") else x for x in args], **params))


def broadcast_shape(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape to which shapes broadcast. Most are equal or empty, for which NumPy's own function is slow.

    Raises: ValueError where they do not fit together.

    >>> broadcast_shape([(2, 3), (), (2, 3)]), broadcast_shape([(3, 1), (4,)])
    ((2, 3), (3, 4))
    """
    distinct = {shape for shape in shapes if shape}
    if len(distinct) > 1:
        return numpy.broadcast_shapes(*shapes)
    return distinct.pop() if distinct else ()


plain_vdot: Any = getattr(numpy.vdot, "_implementation", numpy.vdot)
plain_where: Any = getattr(numpy.where, "_implementation", numpy.where)
"""NumPy's functions for plain arrays, which ask no other library."""


def nan_safe_multiply(xp: Any, x: Any, y: Any) -> Any:
    """x · y, exactly zero wherever y is, also where x is infinite or NaN."""
    out = xp.multiply(x, y)
    if xp is numpy and type(out) is numpy.ndarray and out.ndim == 1:
        check = numpy.vdot(out, out)  # NaN exactly where some element is: one pass instead of three
        if check == check:
            return out
    elif type(out) is numpy.float64 and out == out:
        return out
    return xp.where(xp.equal(y, 0), xp.zeros((), out.dtype), out)


def nan_safe_multiply_into(xp: Any, x: Any, y: Any, out: Any) -> Any:
    """`nan_safe_multiply`, written into an array."""
    xp.multiply(x, y, out)
    if xp is numpy and out.ndim == 1:
        check = numpy.vdot(out, out)
        if check == check:
            return out
    xp.copyto(out, False, where=xp.equal(y, 0))  # a zero of every dtype, of bool too
    return out


def sech_squared(xp: Any, x: Any) -> Any:
    """1 / cosh². Real parts of complex numbers are those up to which cosh is finite: infinite ones become NaN."""
    dtype = getattr(x, "dtype", None)
    if dtype is not None and dtype.itemsize == 2:
        out = sech_squared(xp, x.astype(xp.float32))
        return xp.where(out < xp.finfo(xp.float32).tiny, out.dtype.type(0), out).astype(dtype)
    if dtype is not None and dtype.kind == "c":
        bound = 700.0 if x.dtype.itemsize > 8 else 88.0
        x = xp.clip(x.real, -bound, bound) + x.imag * x.dtype.type(1j)
    inverse = xp.reciprocal(xp.cosh(x))
    return inverse * inverse


def select_into(xp: Any, condition: Any, x: Any, y: Any, out: Any) -> Any:
    """where(condition, x, y), written into an array."""
    xp.copyto(out, y)
    xp.copyto(out, x, where=condition)
    return out


def make_complex(re: Any, im: Any, out: Any) -> Any:
    """re + i im, written into an array."""
    out.real = re
    out.imag = im
    return out


def place(out: Any, index: Any, value: Any) -> Any:
    """An array after a write of a value."""
    out[index] = value
    return out


def place_into(out: Any, x: Any, index: Any, value: Any) -> Any:
    """x with a value written at an index, in an array that may be x itself."""
    if out is not x:
        out[...] = x
    out[index] = value
    return out


def call_reshaped(function: Any, operands: Any, shape: Any, out: Any) -> Any:
    """function(*operands), of the given shape, written into an array of another shape."""
    function(*operands, out=out.reshape(shape))
    return out


def scatter_add(xp: Any, out: Any, index: Any, value: Any) -> Any:
    """Add a value at an index of an array; repeated indices add up."""
    if xp is numpy and len(index) == 1 and value.ndim > 1 and value.size:
        rows = numpy.asarray(index[0], numpy.intp)  # a narrow type may not hold the number of rows
        rows = numpy.where(rows < 0, rows + out.shape[0], rows)
        if numpy.unique(rows).size == rows.size:  # without repeated rows one buffered addition does it
            out[rows] += value
            return out
    if xp is numpy:
        numpy.add.at(out, index, value)
    elif out.dtype.kind == "c":  # no device adds complex numbers at once
        xp.add.at(out.real, index, value.real)
        xp.add.at(out.imag, index, value.imag)
    elif out.dtype.kind in "biu" and out.dtype.itemsize < 4:
        wide = out.astype(numpy.int64)
        xp.add.at(wide, index, value.astype(numpy.int64))
        out[...] = wide.astype(out.dtype)
    else:
        xp.add.at(out, index, value)
    return out


def scatter_add_into(xp: Any, out: Any, x: Any, index: Any, value: Any) -> Any:
    """x with a value added at an index, in an array that may be x itself."""
    if out is not x:
        out[...] = x
    return scatter_add(xp, out, index, value)


def logaddexp_reduce(xp: Any, x: Any, *, axes: tuple[int, ...]) -> Any:
    """The logarithm of a sum of exponentials over axes."""
    if xp is numpy:
        return numpy.logaddexp.reduce(x, axes)
    top = xp.max(x, axes, keepdims=True)
    top = xp.where(xp.isfinite(top), top, 0)
    return xp.log(xp.sum(xp.exp(x - top), axes)) + xp.squeeze(top, axes)


def segment_sum(xp: Any, x: Any, *, starts: tuple[int, ...], axis: int) -> Any:
    """Sums over segments of an axis; a start that is not below the next one selects its own element."""
    if xp is numpy:
        return numpy.add.reduceat(x, starts, axis)
    stops = [*starts[1:], x.shape[axis]]
    bounds = [(start, stop if stop > start else start + 1) for start, stop in zip(starts, stops, strict=True)]
    return xp.stack([xp.sum(xp.take(x, xp.arange(*ends), axis), axis) for ends in bounds], axis)


def partition_order(xp: Any, x: Any, *, kth: tuple[int, ...], axis: int, kind: Any) -> Any:
    """The order that partition gives, by matching the sorted elements of both."""
    if xp is not numpy:
        return xp.argsort(x, axis)
    ranks = numpy.argsort(numpy.partition(x, kth, axis, kind), axis, kind="stable")
    order = numpy.empty_like(ranks)
    numpy.put_along_axis(order, ranks, numpy.argsort(x, axis, kind="stable"), axis)
    return order


def inverse_order(xp: Any, order: Any, *, axis: int) -> Any:
    """The inverses of permutations along an axis: where each place goes."""
    if xp is not numpy:
        return xp.argsort(order, axis)
    inverse = numpy.zeros(order.shape, numpy.intp)
    places = numpy.arange(order.shape[axis]).reshape([-1 if i == axis else 1 for i in range(order.ndim)])
    numpy.put_along_axis(inverse, order, places, axis)
    return inverse


def lexsort(xp: Any, *keys: Any, axis: int) -> Any:
    """The order by several keys, of which the last counts first."""
    if xp is numpy:
        return numpy.lexsort(keys, axis)
    order = xp.argsort(keys[0], axis)  # stable on devices
    for key in keys[1:]:
        order = xp.take_along_axis(order, xp.argsort(xp.take_along_axis(key, order, axis), axis), axis)
    return order


def running_extremum(xp: Any, x: Any, *, ufunc: str, axis: int) -> Any:
    """maximum.accumulate or minimum.accumulate; a device takes log₂ n steps over the whole array."""
    function = getattr(xp, ufunc)
    if xp is numpy:
        return function.accumulate(x, axis)
    out = xp.swapaxes(x, axis, 0).copy()
    step = 1
    while step < out.shape[0]:
        out[step:] = function(out[step:], out[:-step])
        step *= 2
    return xp.swapaxes(out, axis, 0)


def search(xp: Any, sorted_values: Any, values: Any, *, side: Any, batch_rank: int) -> Any:
    """searchsorted, where the first `batch_rank` axes of both arrays are a batch."""
    if batch_rank == 0:
        return xp.searchsorted(sorted_values, values, side)
    shape = values.shape
    count = numpy.prod(shape[:batch_rank], dtype=int).item()
    tables = xp.reshape(sorted_values, (count, sorted_values.shape[-1]))
    sought = xp.reshape(values, (count, *shape[batch_rank:]))
    places = [xp.asarray(xp.searchsorted(table, row, side)) for table, row in zip(tables, sought, strict=True)]
    return xp.reshape(xp.stack(places), shape) if places else xp.zeros(shape, numpy.intp)


def run_scan(
    xp: Any, body: Callable[..., Any], args: Sequence[Any], sizes: Sequence[int], reverse: bool, kinds: Sequence[Any]
) -> list[Any]:
    """body(*consts, *carry, *row of xs) → (*carry, *row of ys) for every row; the last carry and the stacked ys.

    sizes: the numbers of consts and carries, and the length; kinds: the shape and dtype of every stacked y.
    """
    consts, count, length = sizes
    fixed, carry, xs = args[:consts], args[consts : consts + count], args[consts + count :]
    ys = [xp.empty(shape, dtype) for shape, dtype in kinds]
    for i in range(length - 1, -1, -1) if reverse else range(length):
        outs = body(*fixed, *carry, *[x[i] for x in xs])
        carry = outs[:count]
        for y, row in zip(ys, outs[count:], strict=True):
            y[i] = row
    return [*carry, *ys]


def run_while(
    test: Callable[..., Any], body: Callable[..., Any], args: Sequence[Any], sizes: Sequence[int]
) -> Sequence[Any]:
    """The carry when test(*its consts, *carry) no longer holds; body(*its consts, *carry) is the next one.

    sizes: the numbers of consts of the test and of the body, which lead the arguments in this order.
    """
    first, second = sizes
    tested, fixed, carry = args[:first], args[first : first + second], args[first + second :]
    while test(*tested, *carry)[0]:
        carry = body(*fixed, *carry)
    return carry


def run_branch(branches: Sequence[Callable[..., Any]], index: Any, args: Sequence[Any]) -> Any:
    """branches[index](*args), with the index clipped to the range of branches."""
    return branches[min(max(int(index), 0), len(branches) - 1)](*args)
