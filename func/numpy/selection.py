"""Selection of elements (where, take, choose, diagonals) and writes into an argument (put, place, copyto)."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy import ndarray

from func.host.patching import holds_tracer
from func.interpreters.core import PYTHON_SCALARS, Array, Tracer, dtype_of, innermost, known_value, operand, shape_of
from func.interpreters.core.errors import ArgumentError, TracerConversionError
from func.interpreters.host.source import at_line
from func.interpreters.primitives.elementwise import table as ops
from func.interpreters.primitives.structural.indexing import gather
from func.interpreters.primitives.structural.shapes import where as where_primitive
from func.numpy.argument_checks import (
    arrayed,
    as_array,
    common,
    count,
    normalize_axis,
    rank_of,
    scalar_of,
    to_dtype,
    weak_kind,
)
from func.numpy.creation import sequence, zeros_like
from func.numpy.cumulative import cumsum
from func.numpy.flat import at
from func.numpy.indexing import fit_value, read, write
from func.numpy.inplace import WRITE_HINT, rebind, setitem, view_diagonal
from func.numpy.joining import resize, stack
from func.numpy.memory import copied, fresh, in_order, is_scalar, with_memory
from func.numpy.protocol import F, implements
from func.numpy.reductions import deliver, deliver_taken
from func.numpy.shaping import broadcast_arrays, ravel, reshape
from func.numpy.sizes import as_bool, flatnonzero, nonzero

_MISSING = object()


def writes(function: F) -> F:
    """A function that writes its first argument; NumPy writes a plain array if nothing is traced."""
    original = getattr(np, function.__name__)

    @functools.wraps(function)
    def call(a: Any, *args: Any, **kwargs: Any) -> None:
        if type(a) is Tracer:
            function(a, *args, **kwargs)
        elif any([holds_tracer(x) for x in (*args, *kwargs.values())]):
            raise TracerConversionError(
                f"np.{function.__name__} cannot write traced values into a plain array{at_line()}\n{WRITE_HINT}"
            )
        else:
            original(a, *args, **kwargs)

    return cast(F, implements(original)(call))


@implements(np.where)
def where(
    condition: Array, x: Any = _MISSING, y: Any = _MISSING, /, *, size: int | None = None, fill_value: Any = None
) -> Any:
    """x where the condition holds, y elsewhere, as numpy.where; without x and y, `nonzero(condition)`."""
    if x is _MISSING and y is _MISSING:
        return nonzero(condition, size=size, fill_value=fill_value)
    if x is _MISSING or y is _MISSING:
        raise ValueError("either both or neither of x and y should be given")
    if size is not None or fill_value is not None:
        raise ArgumentError("func.numpy.where: size and fill_value go with the condition alone")
    condition = as_bool(condition)
    chosen = where_primitive(condition, operand(x), operand(y))
    has_axes = type(condition) is ndarray and condition.shape
    return chosen if has_axes else with_memory(chosen)


@implements(np.take)
def take(a: Array, indices: Any, axis: int | None = None, out: Any = None, mode: str = "raise") -> Array:
    """Elements at indices along an axis (of the flattened array by default), as numpy.take."""
    a, indices = operand(a), _as_places(indices)
    if axis is None:
        a, axis = ravel(a), 0
    a = arrayed(a)
    place = normalize_axis(axis, rank_of(a) or 1)
    if rank_of(a) == 0:
        a = reshape(a, (1,))
    length = shape_of(a)[place]
    if length == 0 and count(shape_of(indices)):
        raise IndexError("cannot do a non-empty take from an empty axes.")
    indices = _in_mode(indices, length, mode)
    index = (slice(None),) * place + (as_array(indices),)
    result = in_order(read(a, index)[0], "C")
    return result if out is None else deliver_taken(result, out)


def _as_places(indices: Any) -> Array:
    """Indices as integers: booleans count as 0 and 1, an empty list is an integer array."""
    if isinstance(indices, (list, tuple)) and not len(indices):
        return np.zeros(0, np.intp)
    indices = operand(indices)
    if not np.can_cast(dtype_of(indices), np.intp, "same_kind"):
        raise TypeError(
            f"Cannot cast array data from {dtype_of(indices)!r} to dtype('int64') according to the rule 'safe'"
        )
    return to_dtype(arrayed(indices), np.intp)


def _in_mode(indices: Array, length: int, mode: str) -> Array:
    """Indices in bounds by NumPy's modes "wrap" and "clip"; unchanged for "raise"."""
    if mode == "wrap":
        return ops.remainder(indices, length)
    if mode == "clip":
        return ops.minimum(ops.maximum(indices, 0), length - 1)
    if mode != "raise":
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got '{mode}')")
    return indices


def _grid_indices(arr: Array, indices: Array, axis: int) -> tuple[Array, ...]:
    """One index array per axis: `indices` along `axis`, the positions along the others."""
    shape = list(shape_of(indices))
    grids = [
        np.arange(n).reshape([-1 if i == k else 1 for i in range(len(shape))]) for k, n in enumerate(shape_of(arr))
    ]
    full = [indices if k == axis else grids[k] for k in range(len(shape))]
    return broadcast_arrays(*full)


@implements(np.take_along_axis)
def take_along_axis(arr: Array, indices: Array, axis: int | None = -1) -> Array:
    """Elements at indices along an axis, one index for each element of the result, as numpy.take_along_axis."""
    arr, indices = operand(arr), operand(indices)
    if dtype_of(indices).kind not in "iu":
        raise IndexError("`indices` must be an integer array")
    if axis is None:
        arr, axis = ravel(arr), 0
    if rank_of(arr) != rank_of(indices):
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    return gather(arr, *_grid_indices(arr, indices, normalize_axis(axis, rank_of(arr))), axis=0)


@writes
def put_along_axis(arr: Array, indices: Array, values: Any, axis: int | None) -> None:
    """Write values at indices along an axis, one index for each value, as numpy.put_along_axis."""
    flat = axis is None
    target = ravel(arr) if flat else arr
    place = 0 if axis is None else normalize_axis(axis, rank_of(arr))
    indices = operand(indices)
    if dtype_of(indices).kind not in "iu":
        raise IndexError("`indices` must be an integer array")
    if rank_of(target) != rank_of(indices):
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    new = write(target, _grid_indices(target, indices, place), values)
    rebind(arr, reshape(new, shape_of(arr)))


@implements(np.choose)
def choose(a: Array, choices: Any, out: Any = None, mode: str = "raise") -> Array:
    """Elements from several arrays, as numpy.choose; a holds the number of the array for each."""
    parts = broadcast_arrays(_as_places(a), *common(sequence(choices)))
    count = len(parts) - 1
    index = _in_mode(parts[0], count, mode)
    known = known_value(index)
    if known is not None and count and bool(((known < 0) | (known >= count)).any()):
        raise ValueError("invalid entry in choice array")
    stacked = stack(parts[1:], 0)
    selected = take_along_axis(stacked, reshape(index, (1, *shape_of(index))), 0)
    result = reshape(selected, shape_of(index))
    if out is not None and shape_of(out) != shape_of(result):
        raise TypeError("choose: invalid shape for output array.")
    return scalar_of(result) if out is None else deliver(result, out)


@implements(np.select)
def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Array:
    """Elements of the first array whose condition holds, as numpy.select."""
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    if not condlist:
        raise ValueError("select with an empty condition list is not possible")
    *choices, result = common([*choicelist, default])
    for choice in choicelist:
        source = np.dtype(weak_kind(choice) or dtype_of(operand(choice)))
        if not np.can_cast(source, dtype_of(result), "same_kind"):
            raise TypeError(
                f"Cannot cast array data from {source!r} to {dtype_of(result)!r} according to the rule 'same_kind'"
            )
    for condition, choice in zip(reversed(condlist), reversed(choices), strict=True):
        condition = operand(condition)
        if dtype_of(condition).kind != "b":
            raise TypeError("invalid entry in condlist: should be boolean ndarray")
        result = where_primitive(condition, choice, result)
    return with_memory(in_order(result, "C"))


@implements(np.piecewise)
def piecewise(x: Array, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Array:
    """A piecewise function, as numpy.piecewise; of several conditions that hold the last one counts."""
    x = operand(x)
    conditions = condlist if isinstance(condlist, (list, tuple)) else [condlist]
    if len(conditions) and rank_of(operand(conditions[0])) == 0 and rank_of(x):
        conditions = [condlist]
    conditions = [as_bool(c) for c in conditions]
    result = zeros_like(x)
    functions = list(funclist)
    if len(functions) == len(conditions) + 1:
        rest = conditions[0]
        for condition in conditions[1:]:
            rest = ops.logical_or(rest, condition)
        conditions.append(ops.logical_not(rest))
    elif len(functions) != len(conditions):
        raise ValueError(
            f"with {len(conditions)} condition(s), either {len(conditions)} or {len(conditions) + 1} functions "
            "are expected"
        )
    for condition, piece in zip(conditions, functions, strict=True):
        if not callable(piece):
            result = at(result)[...].set(where(condition, piece, result))
        elif rank_of(x) == 0:
            if condition:
                result = at(result)[...].set(piece(x, *args, **kw))
        elif len((places := nonzero(condition))[0]):
            result = at(result)[places].set(piece(x[places], *args, **kw))
    return result


@implements(np.extract)
def extract(condition: Array, arr: Array) -> Array:
    """The elements for which a condition holds, as numpy.extract."""
    return take(ravel(operand(arr)), flatnonzero(condition), axis=0)


@implements(np.compress)
def compress(condition: Array, a: Array, axis: int | None = None, out: Any = None) -> Array:
    """The subarrays along an axis for which a condition holds, as numpy.compress."""
    return take(a, flatnonzero(condition), axis=axis, out=out)


@implements(np.diagonal)
def diagonal(a: Array, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The diagonals of the planes of two axes, as the last axis, as numpy.diagonal."""
    a = operand(a)
    if rank_of(a) < 2:
        raise ValueError("diag requires an array of at least two dimensions")
    first, second = normalize_axis(axis1, rank_of(a), "axis1"), normalize_axis(axis2, rank_of(a), "axis2")
    if first == second:
        raise ValueError("axis1 and axis2 cannot be the same")
    return view_diagonal(a, operator.index(offset), first, second)


@implements(np.ix_)
def ix_(*args: Any) -> tuple[Array, ...]:
    """An open grid from index vectors, as numpy.ix_."""
    out = []
    for k, vector in enumerate(args):
        index = operand(vector)
        if rank_of(index) != 1:
            raise ValueError("Cross index must be 1 dimensional")
        if dtype_of(index).kind == "b":
            index = flatnonzero(index)
        out.append(reshape(index, tuple([-1 if i == k else 1 for i in range(len(args))])))
    return tuple(out)


@writes
def put(a: Array, ind: Any, v: Any, mode: str = "raise") -> None:
    """Write values at indices of the flattened array, as numpy.put."""
    places = ravel(_as_places(ind))
    if count(shape_of(a)) == 0 and count(shape_of(places)):
        raise IndexError("cannot replace elements of an empty array")
    places = _in_mode(places, count(shape_of(a)), mode)
    if type(a) is Tracer and is_scalar(a):
        a = copied(ravel(a))  # as in NumPy, which writes into a copy of a scalar
    _write_flat(a, places, operand(v))


def _write_flat(a: Array, places: Array, values: Array) -> None:
    """Write values, repeated as often as needed, at places of the flattened array."""
    if count(shape_of(values)) == 0:
        return
    fitted = resize(values, shape_of(places)) if shape_of(values) else values
    rebind(a, reshape(write(ravel(fresh(a)), places, fitted), shape_of(a)))


def _safely_cast(values: Any, a: Array) -> Array:
    """Values to write, in the dtype of the target, by the rule 'safe'; numbers and lists adapt."""
    is_list = isinstance(values, (list, tuple))
    values = operand(values)
    if is_list:
        return fit_value(values, shape_of(values), a)
    if type(values) in PYTHON_SCALARS or (type(values) is not Tracer and isinstance(values, np.generic)):
        written = np.empty(1, dtype_of(a))
        np.putmask(written, True, values)
        return written[0]
    if type(values) is Tracer and (weak_kind(values) or isinstance(innermost(values), np.generic)):
        is_real_part = dtype_of(values).kind == "c" and dtype_of(a).kind in "fiu"
        if is_real_part and weak_kind(values):
            raise TypeError(f"cannot write a complex number into an array of dtype {dtype_of(a)}")
        return to_dtype(ops.real(values) if is_real_part else values, dtype_of(a))
    if not np.can_cast(dtype_of(values), dtype_of(a), "safe"):
        raise TypeError(
            f"Cannot cast array data from {dtype_of(values)!r} to {dtype_of(a)!r} according to the rule 'safe'"
        )
    return to_dtype(values, dtype_of(a))


@writes
def place(arr: Array, mask: Array, vals: Any) -> None:
    """Write values, in order, where a mask holds, as numpy.place."""
    values, mask = _safely_cast(vals, arr), as_bool(arrayed(operand(mask)))
    if count(shape_of(mask)) != count(shape_of(arr)):
        raise ValueError("place: mask and data must be the same size")
    if count(shape_of(values)) == 0:
        if count(shape_of(mask)) and len(flatnonzero(mask)):
            raise ValueError("Cannot insert from an empty array!")
        return
    mask = reshape(mask, shape_of(arr))
    turn = ops.remainder(cumsum(ravel(mask)) - 1, count(shape_of(values)))
    rebind(arr, where_primitive(mask, reshape(gather(ravel(values), turn, axis=0), shape_of(arr)), fresh(arr)))


@writes
def putmask(a: Array, mask: Array, values: Any) -> None:
    """Write values, repeated to a's shape, where a mask holds, as numpy.putmask."""
    values, mask = _safely_cast(values, a), as_bool(arrayed(operand(mask)))
    if count(shape_of(mask)) != count(shape_of(a)):
        raise ValueError("putmask: mask and data must be the same size")
    if count(shape_of(values)) == 0:
        return
    if shape_of(values) != shape_of(a):
        values = resize(values, shape_of(a))
    copyto(a, values, "unsafe", reshape(mask, shape_of(a)))


@writes
def copyto(dst: Array, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    """Write an array into another, as numpy.copyto."""
    src = operand(src)
    if type(src) in PYTHON_SCALARS or weak_kind(src):
        number = src if type(src) in PYTHON_SCALARS else weak_kind(src)(1)
        np.copyto(np.empty((), dst.dtype), number, casting)  # raises as NumPy does
    elif not np.can_cast(dtype_of(src), dst.dtype, casting):
        raise TypeError(
            f"Cannot cast array data from {dtype_of(src)!r} to {dst.dtype!r} according to the rule '{casting}'"
        )
    if where is not True:
        src = where_primitive(as_bool(where), to_dtype(src, dst.dtype), fresh(dst))
    elif casting == "unsafe":
        src = to_dtype(src, dst.dtype)
    setitem(dst, Ellipsis, src)


@writes
def fill_diagonal(a: Array, val: Any, wrap: bool = False) -> None:
    """Write the diagonal, as numpy.fill_diagonal; with `wrap` it starts again below the square of a tall matrix."""
    shape = shape_of(a)
    if len(shape) < 2:
        raise ValueError("array must be at least 2-d")
    if len(shape) == 2:
        step, end = shape[1] + 1, None if wrap else shape[1] * shape[1]
    elif len(set(shape)) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    else:
        step, end = 1 + int(np.cumprod(shape[:-1]).sum()), None
    places, values = np.arange(count(shape))[:end:step], operand(val)
    if len(places) and count(shape_of(values)) == 0:
        raise ValueError("fill_diagonal: there are no values to write")
    setitem(a, np.unravel_index(places, shape), resize(values, (len(places),)) if shape_of(values) else values)


def put_method(self: Tracer, indices: Any, values: Any, mode: str = "raise") -> None:
    """x.put."""
    put(self, indices, values, mode)


def compress_method(self: Tracer, condition: Any, axis: int | None = None, out: Any = None) -> Array:
    """x.compress."""
    return compress(condition, self, axis, out)
