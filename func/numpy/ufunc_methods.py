"""Ufunc methods on traced arrays: reduce, accumulate, outer, at."""

from __future__ import annotations

from typing import Any

import numpy as np

from func.interpreters.core import Array, Tracer, operand, shape_of
from func.interpreters.errors import TracerConversionError, UnsupportedFunctionError
from func.interpreters.source import at_line
from func.numpy import cumulative, reductions
from func.numpy.arguments import one_axis, rank_of
from func.numpy.indexing import write
from func.numpy.inplace import rebind, setitem
from func.numpy.protocol import DIRECT, METHODS, UFUNCS
from func.numpy.shaping import reshape

_REDUCTIONS: dict[Any, Any] = {
    np.add: reductions.sum,
    np.multiply: reductions.prod,
    np.maximum: reductions.max,
    np.minimum: reductions.min,
    np.logical_and: reductions.all,
    np.logical_or: reductions.any,
}
_RUNNING = {np.add: cumulative.cumsum, np.multiply: cumulative.cumprod}


def _plain(ufunc: Any) -> Any:
    return DIRECT.get(ufunc) or UFUNCS.get(ufunc)


def _refuse(ufunc: Any, method: str) -> Any:
    raise UnsupportedFunctionError(f"np.{ufunc.__name__}.{method} has no traced version{at_line()}")


def reduce(ufunc: Any, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, **options: Any) -> Array:
    """ufunc.reduce: by the reduction of that name, or by folding the axis."""
    out = out[0] if isinstance(out, tuple) else out
    known = _REDUCTIONS.get(ufunc)
    if known is not None:
        keywords = dict(options) if dtype is None else {"dtype": dtype, **options}
        return known(array, axis=axis, out=out, **keywords)
    if ufunc.nin != 2 or _plain(ufunc) is None or options.get("keepdims") or out is not None:
        _refuse(ufunc, "reduce")
    from func.numpy.shaping import moveaxis

    moved = moveaxis(operand(array), one_axis(axis, rank_of(operand(array))), 0)
    total = moved[0]
    for i in range(1, shape_of(moved)[0]):
        total = _plain(ufunc)(total, moved[i])
    return total


def accumulate(ufunc: Any, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Array:
    """ufunc.accumulate: running sums and products, or any binary ufunc folded along the axis."""
    out = out[0] if isinstance(out, tuple) else out
    if ufunc in _RUNNING:
        return _RUNNING[ufunc](array, axis, dtype, out)
    if ufunc.nin != 2 or _plain(ufunc) is None or out is not None:
        _refuse(ufunc, "accumulate")
    from func.numpy.joining import stack
    from func.numpy.shaping import moveaxis

    moved = moveaxis(operand(array), axis, 0)
    parts = [moved[0]]
    for i in range(1, shape_of(moved)[0]):
        parts.append(_plain(ufunc)(parts[-1], moved[i]))
    return moveaxis(stack(parts, 0), 0, axis)


def outer(ufunc: Any, A: Any, B: Any, **options: Any) -> Array:
    """ufunc.outer: the ufunc of all pairs."""
    if ufunc.nin != 2 or _plain(ufunc) is None or options:
        _refuse(ufunc, "outer")
    a, b = operand(A), operand(B)
    return _plain(ufunc)(reshape(a, (*shape_of(a), *[1] * rank_of(b))), b)


def at(ufunc: Any, a: Any, indices: Any, b: Any = None) -> None:
    """ufunc.at: unbuffered writing, where repeated indices count each time (add and subtract)."""
    if type(a) is not Tracer:
        raise TracerConversionError(
            f"np.{ufunc.__name__}.at cannot write traced values into a plain array{at_line()}\n"
            "Make the array with np.zeros_like(x, shape=...) of a traced x."
        )
    fresh = Tracer(a.interpreter, a.value, a.attached)
    if ufunc is np.add:
        rebind(a, write(fresh, indices, b, accumulate=True))
    elif ufunc is np.subtract:
        rebind(a, write(fresh, indices, DIRECT[np.negative](operand(b)), accumulate=True))
    elif ufunc.nin == 1 and _plain(ufunc) is not None:
        setitem(a, indices, _plain(ufunc)(fresh[indices]))  # type: ignore[index]
    else:
        _refuse(ufunc, "at")


METHODS.update({"reduce": reduce, "accumulate": accumulate, "outer": outer, "at": at})
