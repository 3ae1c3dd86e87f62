"""Measurements that choose an element of each labelled region: minimum, maximum, median, and their positions.

Sums, means and variances run SciPy's own code; the functions here sort. Labels and indices are plain integers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.ndimage as _scipy

from func import numpy as fnp
from func.host.scipy_hooks import original
from func.interpreters.calls.callback import pure_callback
from func.interpreters.core import Array, Aval, Tracer, is_plain_array
from func.interpreters.core.errors import UnsupportedFunctionError
from func.interpreters.host.source import at_line
from func.scipy.kinds.versions import version_of


def _regions(x: Array, labels: Any, index: Any, name: str) -> tuple[Array, list[Any], bool]:
    """The elements in a row, the places of each region's elements among them, and whether it is one region alone."""
    if type(labels) is Tracer or type(index) is Tracer:
        raise UnsupportedFunctionError(
            f"the labels of scipy.ndimage.{name} are traced{at_line()}\n"
            "They decide the sizes of the regions: pass a plain array."
        )
    if labels is None:
        return fnp.reshape(x, (-1,)), [np.arange(x.size)], True
    labels = np.asarray(labels)
    shape = np.broadcast_shapes(x.shape, labels.shape)
    row, flat = fnp.reshape(fnp.broadcast_to(x, shape), (-1,)), np.broadcast_to(labels, shape).ravel()
    if index is None:
        return row, [np.flatnonzero(flat > 0)], True
    if np.isscalar(index):
        return row, [np.flatnonzero(flat == index)], True
    wanted = np.asarray(index)
    order = np.argsort(flat, kind="stable")
    first, last = [np.searchsorted(flat[order], wanted.ravel(), side=side) for side in ("left", "right")]
    return row, [order[a:b] for a, b in zip(first, last, strict=True)], False


def _of_regions(
    name: str, choose: Callable[[Array], Any], missing: Callable[[Array], Any], input: Any, labels: Any, index: Any
) -> Any:
    """The results of `choose` for the elements of each region, in the shape of the index."""
    x = fnp.asarray(input)
    row, regions, is_single = _regions(x, labels, index, name)
    if is_single:
        return choose(fnp.take(row, regions[0]))
    results = [choose(fnp.take(row, places)) if places.size else missing(row) for places in regions]
    if not results:
        return fnp.zeros(np.shape(index), row.dtype)
    return fnp.reshape(fnp.stack(results), np.shape(index))


def _zero(row: Array) -> Any:
    return fnp.zeros((), row.dtype)


@version_of(_scipy.minimum)
def minimum(input: Array, labels: Any = None, index: Any = None) -> Any:
    """The minimum of each region, as scipy.ndimage.minimum."""
    return _of_regions("minimum", fnp.min, _zero, input, labels, index)


@version_of(_scipy.maximum)
def maximum(input: Array, labels: Any = None, index: Any = None) -> Any:
    """The maximum of each region, as scipy.ndimage.maximum."""
    return _of_regions("maximum", fnp.max, _zero, input, labels, index)


@version_of(_scipy.median)
def median(input: Array, labels: Any = None, index: Any = None) -> Any:
    """The median of each region, as scipy.ndimage.median; SciPy's value for labels that do not occur has no meaning."""

    def smallest(row: Array) -> Any:
        flat = np.broadcast_to(labels, np.broadcast_shapes(np.shape(input), np.shape(labels))).ravel()
        return 1.0 * fnp.min(fnp.take(row, np.flatnonzero(flat == flat.min())))

    return _of_regions("median", fnp.median, smallest, input, labels, index)


def _positions(name: str, choose: Callable[[Array], Any], input: Any, labels: Any, index: Any) -> Any:
    """The position of the chosen element of each region."""
    x = fnp.asarray(input)
    row, regions, is_single = _regions(x, labels, index, name)
    shape = x.shape if labels is None else np.broadcast_shapes(x.shape, np.shape(labels))
    found = [
        tuple(fnp.unravel_index(fnp.take(places, choose(fnp.take(row, places))), shape))
        if places.size or is_single
        else tuple(np.unravel_index(0, shape))
        for places in regions
    ]
    return found[0] if is_single else found


@version_of(_scipy.minimum_position)
def minimum_position(input: Array, labels: Any = None, index: Any = None) -> Any:
    """The position of the minimum of each region, as scipy.ndimage.minimum_position: integers, without a derivative."""
    return _positions("minimum_position", fnp.argmin, input, labels, index)


@version_of(_scipy.maximum_position)
def maximum_position(input: Array, labels: Any = None, index: Any = None) -> Any:
    """The position of the maximum of each region, as scipy.ndimage.maximum_position: integers, without a derivative."""
    return _positions("maximum_position", fnp.argmax, input, labels, index)


@version_of(_scipy.label)
def label(input: Array, structure: Any = None, output: Any = None) -> tuple[Any, Any]:
    """(connected regions that are not zero, by number; their number), as scipy.ndimage.label: integers."""
    x = fnp.asarray(input)
    if isinstance(output, (np.ndarray, Tracer)) or type(structure) is Tracer:
        raise UnsupportedFunctionError(
            f"scipy.ndimage.label of traced values takes a plain structure, and returns new arrays{at_line()}\n"
            "Pass a dtype as its output."
        )
    example, _ = original(_scipy.label)(np.zeros(x.shape, x.dtype), structure, output)

    def labelled(x: Any) -> Any:
        return original(_scipy.label)(x, structure, output)

    outs = (Aval(example.shape, example.dtype), Aval((), np.dtype(np.int64)))
    labels, count = pure_callback(x, function=labelled, outs=outs, vmap_method="sequential")
    return labels, int(count) if is_plain_array(count) else count


@version_of(_scipy.extrema)
def extrema(input: Array, labels: Any = None, index: Any = None) -> tuple[Any, Any, Any, Any]:
    """The minima, the maxima and their positions, as scipy.ndimage.extrema."""
    return (
        minimum(input, labels, index),
        maximum(input, labels, index),
        minimum_position(input, labels, index),
        maximum_position(input, labels, index),
    )
