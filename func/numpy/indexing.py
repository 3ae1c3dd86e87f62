"""Indexing: every NumPy index is a basic slice followed by one gather; a write is a scatter."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from func.backends import namespace_of
from func.host.patching import holds_tracer
from func.interpreters.core import Array, Tracer, concrete, dtype_of, known_value, operand, shape_of
from func.interpreters.core.errors import StagingError, UnsupportedFunctionError
from func.interpreters.core.wiring import WIRING
from func.interpreters.host.source import at_line
from func.interpreters.primitives.elementwise.builder import add
from func.interpreters.primitives.structural import shapes, slicing
from func.interpreters.primitives.structural.indexing import gather, scatter, scatter_add
from func.numpy.argument_checks import as_array, normalize_axis
from func.numpy.memory import is_scalar, with_memory


class Advanced(NamedTuple):
    """A normalised index: a basic part, then integer arrays on some axes of its result."""

    basic: tuple[Any, ...]
    axes: tuple[int, ...]
    indices: tuple[Array, ...]
    adjacent: bool


_SEQUENCES = frozenset({list, tuple, range})


def _is_array_index(entry: Any) -> bool:
    if type(entry) is Tracer or isinstance(entry, (np.ndarray, list, tuple, range)):
        return True
    return hasattr(entry, "dtype") and hasattr(entry, "shape") and not isinstance(entry, np.generic)


def normalize(index: Any, shape: tuple[int, ...]) -> Advanced:
    """An index with one entry per axis, in bounds; masks become integer arrays. Raises NumPy's IndexErrors."""
    entries = list(index) if type(index) is tuple else [index]
    expanded: list[Any] = []
    for entry in entries:
        if type(entry) is not Tracer and isinstance(entry, (bool, np.bool_)):
            entry = np.asarray(entry)
        if isinstance(entry, (list, tuple, range)):
            entry = list(entry) if len(entry) else np.zeros(0, np.intp)
        if _is_array_index(entry):
            array = operand(entry)
            kind = dtype_of(array).kind
            if kind == "b":
                known_places = _asked_places(array)
                if known_places is None:
                    array = values_for_shape(
                        array,
                        "x[mask]",
                        "Write np.where(mask, x, 0) and keep the shape, or x[func.numpy.nonzero(mask, size=n)].",
                    )
                expanded.append(_Mask(array, known_places))
                continue
            if kind not in "iu":
                raise IndexError("arrays used as indices must be of integer (or boolean) type")
            is_number = shape_of(array) == () and type(array) is not Tracer
            entry = int(array) if is_number else array  # pyright: ignore[reportArgumentType]
        expanded.append(entry)
    used = sum([e.mask.ndim if isinstance(e, _Mask) else e is not None and e is not Ellipsis for e in expanded])
    if sum([e is Ellipsis for e in expanded]) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if used > len(shape):
        raise IndexError(f"too many indices for array: array is {len(shape)}-dimensional, but {used} were indexed")
    if not any([e is Ellipsis for e in expanded]):
        expanded.append(Ellipsis)
    basic: list[Any] = []
    places: list[int] = []
    arrays: list[Array] = []
    bounded: list[tuple[Array, int]] = []
    result_axis = 0
    axis = 0
    for entry in expanded:
        if entry is Ellipsis:
            for _ in range(len(shape) - used):
                basic.append((0, shape[axis], 1))
                axis += 1
                result_axis += 1
        elif entry is None:
            basic.append(None)
            result_axis += 1
        elif isinstance(entry, slice):
            basic.append(_bounded(entry, shape[axis]))
            axis += 1
            result_axis += 1
        elif isinstance(entry, _Mask) and entry.mask.ndim == 0:
            basic.append(None)  # a mask of no axes selects all or nothing of a new axis
            arrays.append(np.zeros(int(bool(entry.mask)), np.intp))
            places.append(result_axis)
            result_axis += 1
        elif isinstance(entry, _Mask):
            for positions in entry.positions(shape[axis : axis + entry.mask.ndim]):
                basic.append((0, shape[axis], 1))
                arrays.append(positions)
                places.append(result_axis)
                axis += 1
                result_axis += 1
        elif _is_array_index(entry):
            if type(entry) is not Tracer:
                bounded.append((entry, axis))
            basic.append((0, shape[axis], 1))
            arrays.append(entry)
            places.append(result_axis)
            axis += 1
            result_axis += 1
        else:
            try:
                number = operator.index(entry)
            except TypeError:
                is_label = isinstance(entry, str)
                raise IndexError(
                    "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean "
                    "arrays are valid indices"
                    + ("; pandas and xarray objects are passed as arrays, without their labels" if is_label else "")
                ) from None
            if not -shape[axis] <= number < shape[axis]:
                raise IndexError(f"index {number} is out of bounds for axis {axis} with size {shape[axis]}")
            number += shape[axis] if number < 0 else 0
            if any([_is_array_index(e) or isinstance(e, _Mask) for e in expanded]):
                basic.append((0, shape[axis], 1))  # next to arrays an integer is an array index
                arrays.append(np.asarray(number))
                places.append(result_axis)
                result_axis += 1
            else:
                basic.append(number)
            axis += 1
    adjacent = all([b - a == 1 for a, b in itertools.pairwise(places)]) and _together(expanded)
    if arrays:
        try:
            common = np.broadcast_shapes(*[shape_of(a) for a in arrays])
        except ValueError:
            shapes_of_arrays = " ".join([str(shape_of(a)) for a in arrays])
            raise IndexError(
                f"shape mismatch: indexing arrays could not be broadcast together with shapes {shapes_of_arrays}"
            ) from None
        if 0 not in common:  # NumPy looks up nothing where the arrays select nothing
            for entry, axis in bounded:
                _check_bounds(entry, axis, shape[axis])
        arrays = [a if shape_of(a) == common else shapes.broadcast(a, shape=common) for a in arrays]
    return Advanced(tuple(basic), tuple(places), tuple(arrays), adjacent)


def _together(expanded: Sequence[Any]) -> bool:
    """Whether no slice, ellipsis or newaxis separates the arrays: only then NumPy keeps their axes in place."""
    flags = [not (e is None or e is Ellipsis or isinstance(e, slice)) for e in expanded]
    first = flags.index(True) if any(flags) else 0
    last = len(flags) - flags[::-1].index(True) if any(flags) else 0
    return all(flags[first:last])


def values_for_shape(x: Array, what: str, instead: str) -> Any:
    """The values that determine a shape; raises StagingError with `instead` if they are unknown."""
    try:
        return concrete(x)
    except StagingError:
        raise StagingError(
            f"the shape of {what} depends on values, which are not known while the code is staged{at_line()}\n"
            f"{WIRING.traced_hint(instead)}"
        ) from None


def _asked_places(mask: Array) -> Sequence[Array] | None:
    """The indices where a traced mask holds, if the trace asks for their number."""
    if known_value(mask) is not None:
        return None
    from func.numpy.masks import asked_places  # start-up time

    return asked_places(mask)


class _Mask:
    """A boolean array in an index."""

    def __init__(self, mask: Any, places: Sequence[Array] | None = None) -> None:
        self.mask = np.asarray(mask) if shape_of(mask) == () else mask
        self._places = places

    def positions(self, shape: tuple[int, ...]) -> Sequence[Array]:
        if self.mask.shape != tuple(shape):
            raise IndexError(
                f"boolean index did not match indexed array: the array has shape {tuple(shape)} there, "
                f"but the mask has shape {self.mask.shape}"
            )
        if self._places is not None:
            return self._places
        return namespace_of((self.mask,)).nonzero(self.mask)  # type: ignore[no-any-return]


def _bounded(entry: slice, length: int) -> tuple[int, int, int]:
    parts = [None if part is None else operator.index(part) for part in (entry.start, entry.stop, entry.step)]
    return slice(*parts).indices(length)


def _check_bounds(index: Array, axis: int, length: int) -> None:
    if index.size and (int(index.min()) < -length or int(index.max()) >= length):
        worst = int(index.min()) if int(index.min()) < -length else int(index.max())
        raise IndexError(f"index {worst} is out of bounds for axis {axis} with size {length}")


def take_basic(x: Array, basic: tuple[Any, ...]) -> Array:
    """The basic part of an index."""
    return x if _is_whole(basic, shape_of(x)) else slicing.getitem(x, index=basic)


def read(x: Array, index: Any) -> tuple[Array, tuple[Any, ...] | None]:
    """x[index], and the basic index if the result is a view of x."""
    basic = _fast_basic(index, shape_of(x))
    if basic is None:
        plan = normalize(index, shape_of(x))
        if plan.axes:
            part = take_basic(x, plan.basic)
            first, permuted = _to_front(part, plan)
            return gather(permuted, *_checked(plan.indices, shape_of(permuted), first), axis=first), None
        basic = plan.basic
    out = slicing.getitem(x, index=basic)
    return (out, basic) if _keeps_axes(basic) else _element(x, out, basic, index)


def elements_at(x: Array, places: Any, axis: int) -> Array:
    """The elements at concrete places along an axis."""
    leading = (slice(None),) * normalize_axis(axis, len(shape_of(x)))
    return read(x, (*leading, places))[0]


def cut(x: Array, axis: int, start: int, stop: int | None = None) -> Array:
    """x[start:stop] along an axis; a negative stop counts from the end."""
    shape = shape_of(x)
    n = shape[axis]
    bounds = slice(start, stop).indices(n)
    bounds = (bounds[0], max(bounds[0], bounds[1]), 1)
    return slicing.getitem(x, index=tuple([bounds if i == axis else (0, m, 1) for i, m in enumerate(shape)]))


def entry(x: Array, place: int) -> Array:
    """x[place] along the first axis."""
    first, *rest = shape_of(x)
    return slicing.getitem(x, index=(place % first, *[(0, n, 1) for n in rest]))


def _keeps_axes(basic: tuple[Any, ...]) -> bool:
    for entry in basic:  # noqa: SIM110 (a generator takes four times as long)
        if type(entry) is tuple:
            return True
    return False


def _element(x: Array, out: Array, basic: tuple[Any, ...], index: Any) -> tuple[Array, tuple[Any, ...] | None]:
    """The result of `read` for one element: a view with an ellipsis or new axes, else a scalar, as in NumPy.

    A new array for a scalar x, which has no memory.
    """
    has_ellipsis = index is Ellipsis or (type(index) is tuple and any([entry is Ellipsis for entry in index]))
    if has_ellipsis and None not in basic:
        out = as_array(out)
    elif None not in basic:
        return out, None
    if type(x) is Tracer and is_scalar(x):
        return with_memory(out), None
    return out, basic


def _fast_basic(index: Any, shape: tuple[int, ...]) -> tuple[Any, ...] | None:
    """The normalised form of an index of integers, slices, newaxis and ellipsis; None for any other index."""
    if type(index) is slice and shape:
        try:
            bounds = index.indices(shape[0])
        except TypeError:
            return None
        return (bounds,) if len(shape) == 1 else (bounds, *[(0, n, 1) for n in shape[1:]])
    entries = index if type(index) is tuple else (index,)
    plan: list[Any] = []
    axis = 0
    rank = len(shape)
    for place, entry in enumerate(entries):
        kind = type(entry)
        if type(entry) is int:
            if axis >= rank or not -shape[axis] <= entry < shape[axis]:
                return None
            plan.append(entry + shape[axis] if entry < 0 else entry)
            axis += 1
        elif kind is slice:
            if axis >= rank:
                return None
            try:
                plan.append(entry.indices(shape[axis]))
            except TypeError:
                return None
            axis += 1
        elif entry is None:
            plan.append(None)
        elif entry is Ellipsis:
            rest = entries[place + 1 :]
            skipped = rank - axis - sum([e is not None for e in rest])
            if skipped < 0 or any([e is Ellipsis for e in rest if type(e) in (int, slice, type(None), type(...))]):
                return None
            plan.extend([(0, n, 1) for n in shape[axis : axis + skipped]])
            axis += skipped
        else:
            return None
    plan.extend([(0, n, 1) for n in shape[axis:]])
    return tuple(plan)


def _checked(indices: Sequence[Array], shape: tuple[int, ...], first: int) -> Sequence[Array]:
    """The indices, after bound checks of known values."""
    for k, index in enumerate(indices):
        bottom = known_value(index)
        if type(index) is Tracer and bottom is not None:
            _check_bounds(bottom, first + k, shape[first + k])
    return indices


def _to_front(part: Array, plan: Advanced) -> tuple[int, Array]:
    """The array with its indexed axes adjacent: in place if NumPy keeps them there, else in front."""
    rank = len(shape_of(part))
    first = plan.axes[0] if plan.adjacent else 0
    rest = [axis for axis in range(rank) if axis not in plan.axes]
    order = (*rest[:first], *plan.axes, *rest[first:])
    return first, part if order == tuple(range(rank)) else shapes.permute(part, order=order)


def assigned(x: Tracer, index: Any, value: Any) -> Any:
    """The value of `x[index] = value`, after NumPy's checks of its nesting.

    A list may nest no deeper than the axes of the part of x, even with lengths of one. An element takes no array with
    axes, and a mask of all of x at most a list of numbers.
    """
    is_sequence = type(value) in _SEQUENCES
    if not is_sequence and (type(index) is slice or not shape_of(value)):
        entries = index if type(index) is tuple else (index,)
        is_number = isinstance(value, np.generic) and all([_is_basic(e) for e in entries])
        return _in_integers(value, x.dtype) if is_number else value
    entries = index if type(index) is tuple else (index,)
    rank, axes = len(x.shape), 0
    for entry in entries:
        if is_integer(entry):
            axes -= 1
        elif entry is None:
            axes += 1
        elif entry is not Ellipsis and type(entry) is not slice:
            depth = len(shape_of(operand(value)))
            if depth > 1 and len(entries) == 1 and _is_mask(entry, rank):
                raise TypeError(
                    "NumPy boolean array indexing assignment requires a 0 or 1-dimensional input, input has "
                    f"{depth} dimensions; write x[mask] = np.ravel(value), or np.where(mask, value, x)"
                )
            return _in_integers(value, x.dtype) if is_sequence else value
    if len(entries) == rank == -axes:
        normalize(index, x.shape)  # like NumPy, report a missing place first
        return element_value(value, x.dtype)
    if is_sequence and (depth := len(shape_of(operand(value)))) > rank + axes:
        normalize(index, x.shape)
        raise ValueError(
            f"setting an array element with a sequence: a {type(value).__name__} nested {depth} deep is written into "
            f"{rank + axes} axes of x; write x[index] = np.array(value), whose axes of length one do not count"
        )
    return _in_integers(value, x.dtype) if is_sequence else value


def _is_basic(entry: Any) -> bool:
    return entry is None or entry is Ellipsis or type(entry) is slice or is_integer(entry)


def _in_integers(value: Any, dtype: np.dtype[Any]) -> Any:
    """A number or list to write into integers: NumPy raises OverflowError if it does not fit."""
    if type(value) is Tracer or dtype.kind not in "iu" or dtype_of(operand(value)).kind == "c":
        return value
    if holds_tracer(value):
        for entry in value:
            _in_integers(entry, dtype)
        return value
    written = np.empty(np.shape(value), dtype)
    written[...] = value
    return written


def element_value(value: Any, dtype: np.dtype[Any]) -> Any:
    """A value to write into an element: no sequence, and no array with axes from NumPy 2.4 on."""
    is_sequence = type(value) in _SEQUENCES
    if is_sequence and dtype.kind == "b":
        return bool(value)
    if not is_sequence and not shape_of(value):
        return value
    try:
        np.zeros(1, dtype)[0] = [0] if is_sequence else np.zeros(shape_of(value), dtype_of(value))
    except (TypeError, ValueError) as error:
        got = f"a {type(value).__name__}" if is_sequence else f"an array of shape {shape_of(value)}"
        raise type(error)(
            f"setting an array element with a sequence: one number of dtype {dtype} is written, got {got}; take the "
            "number out of it, value[0], or write to a slice, x[i : i + 1] = value"
        ) from None
    return value


def is_integer(entry: Any) -> bool:
    """Whether an entry of an index is one integer, traced or not."""
    if isinstance(entry, (int, np.integer)):
        return type(entry) is not bool
    return isinstance(entry, (Tracer, np.ndarray)) and entry.shape == () and entry.dtype.kind in "iu"


def _is_mask(entry: Any, rank: int) -> bool:
    if isinstance(entry, (bool, np.bool_)):
        return rank == 0
    return _is_array_index(entry) and dtype_of(mask := operand(entry)).kind == "b" and len(shape_of(mask)) == rank


def write(x: Array, index: Any, value: Array, accumulate: bool = False) -> Array:
    """A copy of x with value at an index."""
    return plan_write(x, index, value, accumulate)(x)


def plan_write(x: Array, index: Any, value: Any, accumulate: bool = False) -> Callable[[Array], Array]:
    """A function that writes a value at an index of an array like x; checks index and value."""
    masked = None if accumulate else _masked(x, index, value)
    if masked is not None:
        mask, fitted = masked
        return lambda x: shapes.where(mask, fitted, x)
    basic = _fast_basic(index, shape_of(x))
    if basic is None:
        value = operand(value)
        entries = index if type(index) is tuple else (index,)
        if not shape_of(value) and all([_is_array_index(entry) for entry in entries]):
            value = fit_value(value, (), x)  # like NumPy, report a number that does not fit before a missing place
        plan = normalize(index, shape_of(x))
        if plan.axes:
            return _plan_scatter(x, plan, value, scatter_add if accumulate else scatter)
        basic = plan.basic
    fitted = fit_value(value, slicing.sliced_shape(basic), x)
    if accumulate:
        return lambda x: slicing.update(x, add(slicing.getitem(x, index=basic), fitted), index=basic)
    return lambda x: slicing.update(x, fitted, index=basic)


def _masked(x: Array, index: Any, value: Any) -> tuple[Array, Array] | None:
    """A mask and a value that broadcasts to x: np.where writes it without counting the places."""
    if type(index) is not Tracer or index.dtype.kind != "b":
        return None
    value = operand(value)
    rank = len(index.shape)
    rest = shape_of(x)[rank:]
    if index.shape != shape_of(x)[:rank] or len(shape_of(value)) > len(rest):
        return None
    fitted = shapes.broadcast(fit_value(value, rest, x), shape=shape_of(x)) if rest else fit_value(value, (), x)
    return shapes.reshape(index, shape=(*index.shape, *[1] * len(rest))), fitted


def _plan_scatter(x: Array, plan: Advanced, value: Any, primitive: Any) -> Callable[[Array], Array]:
    whole = _is_whole(plan.basic, shape_of(x))
    part_shape = slicing.sliced_shape(plan.basic)
    rank = len(part_shape)
    first = plan.axes[0] if plan.adjacent else 0
    rest = [axis for axis in range(rank) if axis not in plan.axes]
    order = (*rest[:first], *plan.axes, *rest[first:])
    permuted_shape = tuple([part_shape[axis] for axis in order])
    indices = _checked(plan.indices, permuted_shape, first)
    fitted = fit_value(
        value, (*permuted_shape[:first], *shape_of(indices[0]), *permuted_shape[first + len(indices) :]), x
    )
    straight = order == tuple(range(rank))

    def scatter_into(x: Array) -> Array:
        part = x if whole else slicing.getitem(x, index=plan.basic)
        out = primitive(part if straight else shapes.permute(part, order=order), fitted, *indices, axis=first)
        out = out if straight else shapes.permute(out, order=shapes.inverse_permutation(order))
        return out if whole else slicing.update(x, out, index=plan.basic)

    return scatter_into


def _is_whole(basic: tuple[Any, ...], shape: tuple[int, ...]) -> bool:
    return basic == tuple([(0, n, 1) for n in shape])


def _is_not_finite(value: Any) -> bool:
    return isinstance(value, (float, np.floating)) and not np.isfinite(value)


def fit_value(value: Any, region: tuple[int, ...], x: Array) -> Array:
    """A value to write, converted to x's dtype by the rules of assignment and broadcast to the region."""
    value = operand(value)
    dtype = dtype_of(x)
    shape = shape_of(value)
    if len(shape) > len(region):
        extra = len(shape) - len(region)
        if shape[:extra] == (1,) * extra:
            value = shapes.reshape(value, shape=shape[extra:])
            shape = shape[extra:]
    if shape != region and shape:
        try:
            fits = np.broadcast_shapes(shape, region) == region
        except ValueError:
            fits = False
        if not fits:
            raise ValueError(f"could not broadcast input array from shape {shape} into shape {region}")
    if dtype_of(value) != dtype or type(value) in (int, float, bool, complex):
        if dtype_of(value).kind == "c" and dtype.kind not in "cb":
            problem = f"cannot write a complex value into an array of dtype {dtype}; take its real part"
            raise TypeError(problem) if type(value) is complex else UnsupportedFunctionError(f"{problem}{at_line()}")
        if type(value) is Tracer:
            value = shapes.convert(value, dtype=dtype)
        else:
            if dtype.kind in "iu" and type(value) in (int, float):
                np.asarray(value, dtype)  # raises where it does not fit
            elif dtype.kind in "iu" and _is_not_finite(value):
                dtype.type(value)
            value = namespace_of((value,)).asarray(value).astype(dtype)
    return value if shape == region else shapes.broadcast(value, shape=region)
