"""Set operations: distinct elements, unions, intersections and differences.

The shape of the result depends on values: vmap splits the batch where it differs, and jit traces once for each number
of elements. The derivative goes to the first of equal elements.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from func.interpreters.core import Array, dtype_of, operand, shape_of
from func.interpreters.core.errors import ArgumentError
from func.interpreters.primitives.elementwise import table as ops
from func.interpreters.primitives.structural.indexing import gather
from func.interpreters.primitives.structural.shapes import full_like
from func.interpreters.primitives.structural.sorting import search
from func.numpy.argument_checks import arrayed, as_array, flattened, normalize_axis, rank_of, to_host
from func.numpy.indexing import values_for_shape
from func.numpy.joining import concatenate, joined
from func.numpy.protocol import F, implements, member
from func.numpy.shaping import moveaxis, reshape
from func.numpy.sizes import asked_unique, flatnonzero, sized_unique
from func.numpy.sorting import argsort, sort

_UNSORTED = {"sorted": False} if np.lib.NumpyVersion(np.__version__) >= "2.3.0" else {}


def _host(x: Array) -> Any:
    """The values, the same for all batch elements, as a NumPy array."""
    known = values_for_shape(
        x,
        "what np.unique and the set functions return",
        "Write func.numpy.unique(x, size=n), or sort and keep the shape.",
    )
    return to_host(known)


@implements(np.unique)
def unique(
    ar: Array,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """The distinct elements or subarrays, optionally with indices, inverse indices and counts, as numpy.unique.

    With `size` the result has this length: it drops the largest elements and fills missing ones with `fill_value`
    (default: the smallest element).
    """
    ar = arrayed(operand(ar))
    flags = (return_index, return_inverse, return_counts)
    if size is not None:
        if axis is not None:
            raise ArgumentError("func.numpy.unique: size goes with the flattened array, without axis")
        values, *extras = sized_unique(flattened(ar), size, fill_value, equal_nan)
        extras[1] = reshape(extras[1], shape_of(ar))
        picked = [values, *[extra for extra, is_returned in zip(extras, flags, strict=True) if is_returned]]
        return picked[0] if len(picked) == 1 else tuple(picked)
    if axis is not None:
        axis = normalize_axis(axis, rank_of(ar))
    along = flattened(ar) if axis is None else moveaxis(ar, axis, 0)
    asked = asked_unique(along, equal_nan)
    if asked is not None:
        first, back, counts = asked
        elements = gather(along, first, axis=0)
        elements = elements if axis is None else moveaxis(elements, 0, axis)
        stand_in = np.unique(np.zeros(shape_of(ar)), return_inverse=True, axis=axis)[1]
        parts = [elements, first, reshape(back, stand_in.shape), counts]
        picked = [part for part, is_in in zip(parts, (True, *flags), strict=True) if is_in]
        return picked[0] if len(picked) == 1 else tuple(picked)
    known = _host(ar)
    distinct: Any = np.unique
    values, first, *rest = distinct(known, True, return_inverse, return_counts, axis, equal_nan=equal_nan)
    if not (sorted or return_index or return_inverse or return_counts) and axis is None:
        first = first[np.searchsorted(values, distinct(known, equal_nan=equal_nan, **_UNSORTED))]
    elements = gather(flattened(ar), first, axis=0) if axis is None else gather(ar, first, axis=axis)
    out = [elements, *([first] if return_index else []), *rest]
    return out[0] if len(out) == 1 else tuple(out)


def _unique_results(original: F, doc: str, **returns: bool) -> F:
    result: Any = type(original(np.zeros(1)))

    @member(original, doc)
    def results(x: Array) -> Any:
        return result(*unique(x, equal_nan=False, **returns))

    return results


unique_all = _unique_results(
    np.unique_all,
    "The distinct elements with first indices, inverse indices and counts, as numpy.unique_all.",
    return_index=True,
    return_inverse=True,
    return_counts=True,
)
unique_counts = _unique_results(
    np.unique_counts, "The distinct elements and their counts, as numpy.unique_counts.", return_counts=True
)
unique_inverse = _unique_results(
    np.unique_inverse, "The distinct elements and the inverse indices, as numpy.unique_inverse.", return_inverse=True
)


@implements(np.unique_values)
def unique_values(x: Array) -> Array:
    """The distinct elements, in NumPy's order, as numpy.unique_values."""
    return unique(x, equal_nan=False, sorted=False)


@implements(np.union1d)
def union1d(ar1: Array, ar2: Array) -> Array:
    """The distinct elements of two arrays, as numpy.union1d."""
    return unique(concatenate([ar1, ar2], None))


@implements(np.intersect1d)
def intersect1d(ar1: Array, ar2: Array, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """The elements that occur in both arrays, as numpy.intersect1d; the derivative goes to the first array."""
    first, second = flattened(operand(ar1)), flattened(operand(ar2))
    places = []
    if not assume_unique:
        first, places1 = unique(first, return_index=True)
        second, places2 = unique(second, return_index=True)
        places = [places1, places2]
    both = joined([first, second], 0)
    order = argsort(both, kind="stable")
    ordered = gather(both, order, axis=0)
    is_common = flatnonzero(ops.equal(ordered[1:], ordered[:-1]))
    values = gather(ordered, is_common, axis=0)
    if not return_indices:
        return values
    indices = [
        gather(order[:-1], is_common, axis=0),
        ops.subtract(gather(order[1:], is_common, axis=0), shape_of(first)[0]),
    ]
    return values, *([gather(p, i, axis=0) for p, i in zip(places, indices, strict=True)] if places else indices)


@implements(np.setxor1d)
def setxor1d(ar1: Array, ar2: Array, assume_unique: bool = False) -> Array:
    """The elements that occur in exactly one of two arrays, as numpy.setxor1d."""
    sets = [flattened(operand(ar)) for ar in (ar1, ar2)]
    both = joined(sets if assume_unique else [unique(x) for x in sets], 0)
    if shape_of(both)[0] == 0:
        return both
    both = sort(both)
    changes = concatenate([[True], ops.not_equal(both[1:], both[:-1]), [True]])
    return gather(both, flatnonzero(ops.logical_and(changes[1:], changes[:-1])), axis=0)


@implements(np.setdiff1d)
def setdiff1d(ar1: Array, ar2: Array, assume_unique: bool = False) -> Array:
    """The elements of the first array that do not occur in the second, as numpy.setdiff1d."""
    first, second = flattened(operand(ar1)), flattened(operand(ar2))
    first = first if assume_unique else unique(first)
    return gather(first, flatnonzero(isin(first, second, invert=True)), axis=0)


@implements(np.isin)
def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: str | None = None
) -> Array:
    """Whether each element occurs among the test elements, as numpy.isin."""
    element, tested = arrayed(operand(element)), flattened(operand(test_elements))
    if kind not in {None, "sort", "table"}:
        raise ValueError(f"Invalid kind: '{kind}'. Please use None, 'sort' or 'table'.")
    if kind == "table" and "f" in dtype_of(element).kind + dtype_of(tested).kind:
        raise ValueError(
            "The 'table' method is only supported for boolean or integer arrays. Please select 'sort' or None for kind."
        )
    n = shape_of(tested)[0]
    if n == 0:
        return full_like(element, int(invert), None, np.bool_)
    ordered = sort(tested)
    place = ops.minimum(search(ordered, element, side="left", batch_rank=0), n - 1)
    neighbours = gather(ordered, arrayed(place), axis=0)
    return as_array((ops.not_equal if invert else ops.equal)(neighbours, element))
