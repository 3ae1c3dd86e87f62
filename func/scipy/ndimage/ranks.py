"""Filters that choose: maximum, minimum, ranks, and grey morphology; and filters by a function of the caller.

The derivative goes to the element that was chosen. Equal maxima and minima share it, as in np.max; among equal elements
of a rank the one that a stable sort puts there has it all.
"""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.ndimage as _scipy

from func import numpy as fnp
from func.interpreters.core import Array, Tracer
from func.interpreters.core.errors import UnsupportedFunctionError
from func.interpreters.host.source import at_line
from func.interpreters.primitives.elementwise.conventions import orders_followed, revalued
from func.numpy.facts import fact_of, remembering
from func.scipy.ndimage.borders import (
    array_of,
    axes_of,
    delivered,
    extended,
    extended_axes,
    extension_of,
    in_double,
    normalized_axis,
    output_dtype,
    refuse_complex,
    sequence_of,
    version_of,
    version_with_callback,
)

_windows = fnp.sliding_window_view
_CONSTANT, _SEVERAL = -1, -2
"""Places of what is no element of the input: beyond a border, and equal ones of several places."""


class Choice(NamedTuple):
    """An array, and the places in it of what was chosen from it."""

    source: Array
    places: Array


def _choice_of(x: Array) -> Choice:
    """Of which array the elements of x were chosen: of x itself where nothing else is known."""
    fact = fact_of(x)
    return fact if type(fact) is Choice else Choice(x, np.arange(math.prod(x.shape)).reshape(x.shape))


def _is_staged_slope(value: Array) -> bool:
    """Whether one derivative of the value is staged: compiled gradients would pay for places that few of them need."""
    orders = 0
    while type(value) is Tracer and value._value is not None:
        orders += value._interpreter.differentiates
        value = value._value
    return type(value) is Tracer and orders == 1


def _chosen_of(
    x: Array, elements: Array, chosen: Array, windows: Callable[[Array], Array], output: Any = None
) -> Array:
    """What was chosen of the elements, delivered; an element that occurs several times there has no ties with itself.

    Only second derivatives tell: at ties they are undetermined. The result remembers the places for the next filter.
    """
    if orders_followed(chosen) < 2 or _is_staged_slope(chosen) or 0 in x.shape:
        return delivered(chosen, output, x)
    source, places = _choice_of(x)
    around = windows(places)
    hit = elements == fnp.expand_dims(chosen, -1)
    first = fnp.min(fnp.where(hit, around, source.size), axis=-1)
    last = fnp.max(fnp.where(hit, around, _SEVERAL), axis=-1)
    one = first == last
    is_element = one & (first >= 0)
    alone = fnp.take(fnp.reshape(source, (-1,)), fnp.where(is_element, first, 0))
    chosen = revalued(chosen, fnp.where(is_element, fnp.astype(alone, chosen.dtype), chosen))
    out = delivered(chosen, output, x)
    return remembering(out, Choice(source, fnp.where(one, first, _SEVERAL)))


def _sizes_warning(size: Any, footprint: Any) -> None:
    if size is not None and footprint is not None:
        warnings.warn("ignoring size because footprint is set", UserWarning, stacklevel=4)


def _best_of_line(
    input: Any, size: int, axis: int, output: Any, mode: str, cval: Any, origin: int, best: Callable[..., Any]
) -> Array:
    """The best of the elements in a window along an axis."""
    x = array_of(input)
    refuse_complex(x)
    axis = normalized_axis(axis, x.ndim)
    if size < 1:
        raise RuntimeError("incorrect filter size")
    before = size // 2 + origin
    if not 0 <= before < size:
        raise ValueError("invalid origin")

    def windows(x: Array, cval: Any = _CONSTANT) -> Array:
        return _windows(extended(x, axis, before, size - 1 - before, extension_of(mode), cval), size, axis)

    if 0 in x.shape:
        return delivered(x, output, x)
    elements = windows(in_double(x), cval)
    return _chosen_of(x, elements, best(elements, axis=-1), windows, output)


@version_of(_scipy.maximum_filter1d)
def maximum_filter1d(
    input: Array,
    size: int,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
) -> Array:
    """The maximum in a window along an axis, as scipy.ndimage.maximum_filter1d."""
    return _best_of_line(input, size, axis, output, mode, cval, origin, fnp.max)


@version_of(_scipy.minimum_filter1d)
def minimum_filter1d(
    input: Array,
    size: int,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
) -> Array:
    """The minimum in a window along an axis, as scipy.ndimage.minimum_filter1d."""
    return _best_of_line(input, size, axis, output, mode, cval, origin, fnp.min)


def _whole_footprint(footprint: Any, rank: int, axes: tuple[int, ...]) -> Any:
    """A footprint with an axis for each of the input's."""
    if len(axes) < rank:
        if footprint.ndim != len(axes):
            raise RuntimeError(f"footprint.ndim ({footprint.ndim}) must match len(axes) ({len(axes)})")
        footprint = np.expand_dims(footprint, tuple([axis for axis in range(rank) if axis not in axes]))
    if len([n for n in footprint.shape if n > 0]) != rank:
        raise RuntimeError(f"footprint.ndim ({footprint.ndim}) must match len(axes) ({len(axes)})")
    return footprint


def _whole_origins(origin: Any, rank: int, axes: tuple[int, ...]) -> list[int]:
    origins = [0] * rank
    for axis, value in zip(axes, sequence_of(origin, len(axes)), strict=True):
        origins[axis] = value
    return origins if len(axes) < rank else sequence_of(origin, rank)


def _chosen_windows(x: Array, footprint: Any, origins: Sequence[int], modes: Sequence[str], cval: Any) -> Array:
    """The elements under the footprint at each place, along a last axis, in the order of the footprint."""
    for origin, size in zip(origins, footprint.shape, strict=True):
        if not 0 <= size // 2 + origin < size:
            raise ValueError("invalid origin")
    widths = [
        (size // 2 + origin, size - 1 - size // 2 - origin)
        for origin, size in zip(origins, footprint.shape, strict=True)
    ]
    wide = extended_axes(x, widths, modes, cval)
    if 0 in x.shape:
        return fnp.zeros((*x.shape, max(int(footprint.sum()), 1)), x.dtype)
    windows = _windows(wide, footprint.shape)
    flat = fnp.reshape(windows, (*x.shape, footprint.size))
    return flat if footprint.all() else fnp.take(flat, np.flatnonzero(footprint), axis=-1)


def _best(
    input: Any,
    size: Any,
    footprint: Any,
    structure: Any,
    output: Any,
    mode: Any,
    cval: Any,
    origin: Any,
    axes: Any,
    smallest: bool,
) -> Array:
    """The maximum or minimum over a footprint, of the elements plus or minus a structure."""
    _sizes_warning(size, footprint)
    x = array_of(input)
    refuse_complex(x)
    chosen = axes_of(axes, x.ndim)
    best: Callable[..., Any] = fnp.min if smallest else fnp.max
    if footprint is not None:
        footprint = np.asarray(footprint, bool)
    if structure is None:
        if footprint is None and size is None:
            raise RuntimeError("no footprint provided")
        if footprint is not None and not footprint.any():
            raise ValueError("All-zero footprint is not supported.")
        if footprint is None or footprint.all():
            rank = len(chosen)
            sizes = sequence_of(size if footprint is None else footprint.shape, rank)
            out = x
            dtype = output if isinstance(output, (type, np.dtype, str)) else None
            entries = zip(chosen, sizes, sequence_of(origin, rank), sequence_of(mode, rank), strict=True)
            for axis, length, start, border in entries:
                if length > 1:
                    out = _best_of_line(out, int(length), axis, dtype, border, cval, start, best)
            return delivered(out, output, x)
    else:
        structure = in_double(fnp.asarray(structure))
        if structure.ndim != len(chosen):
            raise RuntimeError("structure array has incorrect shape")
        if footprint is None:
            footprint = np.ones(structure.shape, bool)
    shape = footprint.shape
    footprint = _whole_footprint(footprint, x.ndim, chosen)
    origins = _whole_origins(origin, x.ndim, chosen)
    if not isinstance(mode, str):
        raise RuntimeError("A sequence of modes is not supported for non-separable footprints")
    if x.dtype.kind in "biu":
        cval = fnp.astype(fnp.asarray(cval), x.dtype)

    def windows(x: Array, cval: Any = _CONSTANT) -> Array:
        return _chosen_windows(x, footprint, origins, [mode] * x.ndim, cval)

    elements = windows(in_double(x), cval)
    if structure is not None:
        heights = fnp.reshape(fnp.broadcast_to(structure, shape), (-1,))[np.flatnonzero(footprint)]
        elements = elements - heights if smallest else elements + heights
        return delivered(best(elements, axis=-1), output, x)
    return _chosen_of(x, elements, best(elements, axis=-1), windows, output)


@version_of(_scipy.maximum_filter)
def maximum_filter(
    input: Array,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Array:
    """The maximum in a window, as scipy.ndimage.maximum_filter.

    >>> import numpy as np, func
    >>> func.grad(lambda x: np.sum(func.scipy.ndimage.maximum_filter(x, 3)))(np.array([1.0, 3.0, 2.0, 0.0]))
    array([0., 3., 1., 0.])
    """
    return _best(input, size, footprint, None, output, mode, cval, origin, axes, False)


@version_of(_scipy.minimum_filter)
def minimum_filter(
    input: Array,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Array:
    """The minimum in a window, as scipy.ndimage.minimum_filter."""
    return _best(input, size, footprint, None, output, mode, cval, origin, axes, True)


@version_of(_scipy.grey_erosion)
def grey_erosion(
    input: Array,
    size: Any = None,
    footprint: Any = None,
    structure: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Array:
    """The minimum of the elements minus the structure, as scipy.ndimage.grey_erosion."""
    if size is None and footprint is None and structure is None:
        raise ValueError("size, footprint, or structure must be specified")
    return _best(input, size, footprint, structure, output, mode, cval, origin, axes, True)


@version_of(_scipy.grey_dilation)
def grey_dilation(
    input: Array,
    size: Any = None,
    footprint: Any = None,
    structure: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Array:
    """The maximum of the elements plus the mirrored structure, as scipy.ndimage.grey_dilation."""
    if size is None and footprint is None and structure is None:
        raise ValueError("size, footprint, or structure must be specified")
    if structure is not None:
        structure = fnp.flip(fnp.asarray(structure))
    if footprint is not None:
        footprint = np.flip(np.asarray(footprint))
    rank = len(axes_of(axes, np.ndim(input)))
    if footprint is not None:
        sizes: Sequence[int] = footprint.shape
    else:
        sizes = structure.shape if structure is not None else sequence_of(size, rank)
    origins = [-o - (1 if n % 2 == 0 else 0) for o, n in zip(sequence_of(origin, rank), sizes, strict=False)]
    return _best(input, size, footprint, structure, output, mode, cval, origins, axes, False)


def _ranked(
    input: Any, rank_of: Callable[[int], int], size: Any, footprint: Any, output: Any, mode: Any, cval: Any,
    origin: Any, axes: Any,
) -> Array:  # fmt: skip
    """The element of a rank in a window."""
    _sizes_warning(size, footprint)
    x = array_of(input)
    refuse_complex(x)
    chosen = axes_of(axes, x.ndim)
    if footprint is None:
        if size is None:
            raise RuntimeError("no footprint or filter size provided")
        footprint = np.ones(sequence_of(size, len(chosen)), bool)
    footprint = _whole_footprint(np.asarray(footprint, bool), x.ndim, chosen)
    origins = _whole_origins(origin, x.ndim, chosen)
    if not isinstance(mode, str):
        modes = dict(zip(chosen, sequence_of(mode, len(chosen)), strict=True))
        mode = [modes.get(axis, "constant") for axis in range(x.ndim)]
    for start, length in zip(origins, footprint.shape, strict=True):
        if not 0 <= length // 2 + start < length:
            raise ValueError("invalid origin")
    count = int(footprint.sum())
    rank = rank_of(count)
    if rank < 0:
        rank += count
    if not 0 <= rank < count:
        raise RuntimeError("rank not within filter footprint size")
    if rank in (0, count - 1):
        return _best(x, None, footprint, None, output, mode, cval, origins, None, rank == 0)
    if not isinstance(mode, str):
        raise RuntimeError("A sequence of modes is not supported by non-separable rank filters")

    def windows(x: Array, cval: Any = _CONSTANT) -> Array:
        return _chosen_windows(x, footprint, origins, [mode] * x.ndim, cval)

    elements = windows(x, cval)
    return _chosen_of(x, elements, fnp.sort(elements, axis=-1)[..., rank], windows, output)


@version_of(_scipy.rank_filter)
def rank_filter(
    input: Array,
    rank: int,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Array:
    """The element of a rank in a window, as scipy.ndimage.rank_filter."""
    rank = operator.index(rank)
    return _ranked(input, lambda count: rank, size, footprint, output, mode, cval, origin, axes)


@version_of(_scipy.median_filter)
def median_filter(
    input: Array,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Array:
    """The median in a window, the upper one of an even number, as scipy.ndimage.median_filter."""
    return _ranked(input, lambda count: count // 2, size, footprint, output, mode, cval, origin, axes)


@version_of(_scipy.percentile_filter)
def percentile_filter(
    input: Array,
    percentile: float,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Array:
    """The element at a percentile of a window, as scipy.ndimage.percentile_filter: a rank, nothing interpolated."""
    share = percentile + 100.0 if percentile < 0 else percentile
    if not 0 <= share <= 100:
        raise RuntimeError("invalid percentile")

    def rank_of(count: int) -> int:
        return count - 1 if share == 100.0 else int(float(count) * share / 100.0)

    return _ranked(input, rank_of, size, footprint, output, mode, cval, origin, axes)


def _callback(function: Any, name: str) -> Any:
    if not callable(function):
        raise UnsupportedFunctionError(
            f"scipy.ndimage.{name} with a low-level callback has no derivative{at_line()}\n"
            "Give it a function of Python, which func can trace."
        )
    return function


def _needs_scipy(function: Any, *values: Any) -> bool:
    """Whether only SciPy can call the function: a low-level one, on plain arrays."""
    from func.host.scipy_hooks import holds_traced

    return not callable(function) and not holds_traced(values)


@version_with_callback(_scipy.generic_filter1d)
def generic_filter1d(
    input: Array,
    function: Any,
    filter_size: int,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
    extra_arguments: tuple[Any, ...] = (),
    extra_keywords: dict[str, Any] | None = None,
) -> Array:
    """A function of each line, as scipy.ndimage.generic_filter1d: called with the extended line and the output's."""
    if _needs_scipy(function, input):
        return _original("generic_filter1d")(
            input, function, filter_size, axis, output, mode, cval, origin, extra_arguments, extra_keywords
        )
    function = _callback(function, "generic_filter1d")
    x = array_of(input)
    refuse_complex(x)
    if filter_size < 1:
        raise RuntimeError("invalid filter size")
    axis = normalized_axis(axis, x.ndim)
    before = filter_size // 2 + origin
    if not 0 <= before < filter_size:
        raise ValueError("invalid origin")
    wide = extended(in_double(x), axis, before, filter_size - 1 - before, extension_of(mode), cval)
    if 0 in x.shape:
        return delivered(wide, output, x)
    lines = fnp.moveaxis(wide, axis, -1)
    n, results = x.shape[axis], []
    for index in np.ndindex(*lines.shape[:-1]):
        line = fnp.zeros_like(lines[index][:n])
        function(lines[index], line, *extra_arguments, **(extra_keywords or {}))
        results.append(line)
    stacked = fnp.reshape(fnp.stack(results), (*lines.shape[:-1], n))
    return delivered(fnp.moveaxis(stacked, -1, axis), output, x)


@version_with_callback(_scipy.generic_filter)
def generic_filter(
    input: Array,
    function: Any,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    extra_arguments: tuple[Any, ...] = (),
    extra_keywords: dict[str, Any] | None = None,
    *,
    axes: Any = None,
) -> Array:
    """A function of the elements in each window, as scipy.ndimage.generic_filter; it is called once for each element.

    `vectorized_filter`, which calls its function once for all windows, is faster.
    """
    if _needs_scipy(function, input):
        return _original("generic_filter")(
            input, function, size, footprint, output, mode, cval, origin, extra_arguments, extra_keywords, axes=axes
        )
    function = _callback(function, "generic_filter")
    _sizes_warning(size, footprint)
    x = array_of(input)
    refuse_complex(x)
    chosen = axes_of(axes, x.ndim)
    if footprint is None:
        if size is None:
            raise RuntimeError("no footprint or filter size provided")
        footprint = np.ones(sequence_of(size, len(chosen)), bool)
    footprint = _whole_footprint(np.asarray(footprint, bool), x.ndim, chosen)
    if not isinstance(mode, str):
        raise RuntimeError("boundary mode not supported")
    origins = _whole_origins(origin, x.ndim, chosen)
    elements = _chosen_windows(in_double(x), footprint, origins, [mode] * x.ndim, cval)
    if 0 in x.shape:
        return delivered(fnp.zeros(x.shape), output, x)
    results = [function(elements[index], *extra_arguments, **(extra_keywords or {})) for index in np.ndindex(*x.shape)]
    out = fnp.reshape(fnp.stack([fnp.asarray(r, dtype=float) for r in results]), x.shape)
    return delivered(out, output, x)


def _original(name: str) -> Callable[..., Any]:
    from func.host.scipy_hooks import original

    return original(getattr(_scipy, name))


@version_with_callback(_scipy.generic_laplace)
def generic_laplace(
    input: Array,
    derivative2: Any,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    extra_arguments: tuple[Any, ...] = (),
    extra_keywords: dict[str, Any] | None = None,
    *,
    axes: Any = None,
) -> Array:
    """The sum of second derivatives by a function of the caller, as scipy.ndimage.generic_laplace."""
    x = fnp.asarray(input)
    terms = _by_axis(x, derivative2, output, mode, cval, extra_arguments, extra_keywords, axes)
    return delivered(sum(terms[1:], terms[0]) if terms else x, output, x)


@version_with_callback(_scipy.generic_gradient_magnitude)
def generic_gradient_magnitude(
    input: Array,
    derivative: Any,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    extra_arguments: tuple[Any, ...] = (),
    extra_keywords: dict[str, Any] | None = None,
    *,
    axes: Any = None,
) -> Array:
    """The length of the gradient by a function of the caller, as scipy.ndimage.generic_gradient_magnitude.

    Where the gradient is zero, the derivative of its length is taken as zero.
    """
    x = fnp.asarray(input)
    terms = _by_axis(x, derivative, output, mode, cval, extra_arguments, extra_keywords, axes)
    if not terms:
        return delivered(x, output, x)
    square: Any = sum([t * t for t in terms[1:]], terms[0] * terms[0])
    is_zero = square == 0
    length = fnp.where(is_zero, 0.0, fnp.sqrt(fnp.where(is_zero, 1.0, square)))
    return delivered(fnp.astype(length, square.dtype), output, x)


def _by_axis(
    x: Array, function: Any, output: Any, mode: Any, cval: Any, arguments: Any, keywords: Any, axes: Any
) -> list[Any]:
    """What a function of the caller gives for each axis, in an output of its own."""
    chosen = axes_of(axes, x.ndim)
    modes = sequence_of(mode, len(chosen))
    dtype = output_dtype(output, x)
    return [
        function(x, axis, dtype, border, cval, *arguments, **(keywords or {}))
        for axis, border in zip(chosen, modes, strict=True)
    ]
