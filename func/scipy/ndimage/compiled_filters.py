"""The compiled functions behind SciPy's filters, on traced values: they write into the array from SciPy's code.

Everything else is SciPy's Python code. The compiled functions gather elements, extended at the borders, and sum them
with weights or choose among them, in double precision. The derivative of a choice goes to the chosen element. Equal
maxima and minima share it, as in np.max. Among equal elements of a rank, the one that a stable sort puts there gets all
of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from func import numpy as fnp
from func import special
from func.host.intercepted_arrays import resolved
from func.interpreters.core import Array, Tracer, operand
from func.interpreters.core.errors import UnsupportedFunctionError
from func.interpreters.host.source import at_line
from func.interpreters.primitives.elementwise.conventions import orders_followed, revalued
from func.interpreters.primitives.structural.filters import correlate_windows
from func.numpy.facts import fact_of, remembering
from func.scipy.ndimage.borders import array_of, extended, extended_axes, in_double, plain_of, write

EXTENSIONS = ("nearest", "wrap", "reflect", "mirror", "constant", "wrap", "constant")
"""By SciPy's number of a mode: the extension that filters use for it."""
_windows = fnp.sliding_window_view
_CONSTANT, _SEVERAL = -1, -2
"""Places without an element of the input: beyond a border, or with several equal elements."""


def _widths(sizes: Sequence[int], origins: Sequence[int]) -> list[tuple[int, int]]:
    """The number of elements that windows reach before and after a place."""
    return [(size // 2 + start, size - 1 - size // 2 - start) for size, start in zip(sizes, origins, strict=True)]


def _line(input: Any, weights: Any, axis: int, mode: int, cval: Any, origin: int) -> Array:
    x, ((before, after),) = in_double(array_of(input)), _widths([len(weights)], [origin])
    wide = extended(x, axis, before, after, EXTENSIONS[mode], cval)
    return wide if 0 in x.shape else correlate_windows(operand(wide), operand(weights), axes=(axis,), stack=0)


def _nd_image_correlate1d(input: Any, weights: Any, axis: int, output: Any, mode: int, cval: Any, origin: int) -> None:
    write(output, _line(input, plain_of(weights), axis, mode, cval, origin))


def _nd_image_uniform_filter1d(
    input: Any, size: int, axis: int, output: Any, mode: int, cval: Any, origin: int
) -> None:
    write(output, _line(input, np.full(size, 1.0), axis, mode, cval, origin) / size)


def _nd_image_correlate(input: Any, weights: Any, output: Any, mode: int, cval: Any, origins: Sequence[int]) -> None:
    x, w = in_double(array_of(input)), plain_of(weights)
    wide = extended_axes(x, _widths(w.shape, origins), EXTENSIONS[mode], cval)
    axes = tuple(range(x.ndim))
    write(output, wide if 0 in x.shape else correlate_windows(operand(wide), operand(w), axes=axes, stack=0))


def _filters__complex_via_real_components(
    function: Callable[..., Any], input: Any, weights: Any, output: Any, cval: Any, **options: Any
) -> Any:
    """A filter of complex numbers: the sum of those of real and imaginary parts."""
    x, w = plain_of(input), plain_of(weights)
    if x.dtype.kind != "c" and np.iscomplexobj(cval):
        raise ValueError("Cannot provide a complex-valued cval when the input is real.")
    total: Any = 0
    for part, value, unit in parts(x, cval):
        for weight, _, other in parts(w, 0.0):
            total = total + unit * other * function(part, weight, output=np.dtype(float), cval=value, **options)
    write(output, total)
    return output


def parts(x: Array, cval: Any) -> list[tuple[Array, Any, complex]]:
    """The real and imaginary parts of an array and of the value beyond its borders, with their factors."""
    if x.dtype.kind != "c":
        return [(x, cval, 1)]
    return [(x.real, np.real(cval), 1), (x.imag, np.imag(cval), 1j)]


class Choice(NamedTuple):
    """An array, and the places in it of chosen elements."""

    source: Array
    places: Array


def _choice_of(x: Array) -> Choice:
    """The array from which the elements of x were chosen: x itself if nothing else is known."""
    fact = fact_of(x)
    return fact if type(fact) is Choice else Choice(x, np.arange(math.prod(x.shape)).reshape(x.shape))


def _is_staged_slope(value: Array) -> bool:
    """Whether one derivative of the value is traced: compiled gradients would pay for places that few of them need."""
    orders = 0
    while type(value) is Tracer and value._value is not None:
        orders += value._interpreter.differentiates
        value = value._value
    return type(value) is Tracer and orders == 1


def _write_chosen(output: Any, x: Array, elements: Array, chosen: Array, windows: Callable[[Array], Array]) -> None:
    """Write chosen elements; an element that occurs several times does not tie with itself.

    Only second derivatives show this: at ties they are undetermined. The output stores the places for the next filter.
    """
    if orders_followed(chosen) < 2 or _is_staged_slope(chosen) or 0 in x.shape:
        write(output, chosen)
        return
    source, places = _choice_of(x)
    around = windows(places)
    hit = elements == fnp.expand_dims(chosen, -1)
    first = fnp.min(fnp.where(hit, around, source.size), axis=-1)
    last = fnp.max(fnp.where(hit, around, _SEVERAL), axis=-1)
    one = first == last
    is_element = one & (first >= 0)
    alone = fnp.take(fnp.reshape(source, (-1,)), fnp.where(is_element, first, 0))
    chosen = revalued(chosen, fnp.where(is_element, fnp.astype(alone, chosen.dtype), chosen))
    write(output, chosen)
    remembering(resolved(output), Choice(source, fnp.where(one, first, _SEVERAL)))


def _nd_image_min_or_max_filter1d(
    input: Any, size: int, axis: int, output: Any, mode: int, cval: Any, origin: int, minimum: int
) -> None:
    x, ((before, after),) = array_of(input), _widths([size], [origin])

    def windows(x: Array, cval: Any = _CONSTANT) -> Array:
        return _windows(extended(x, axis, before, after, EXTENSIONS[mode], cval), size, axis)

    if 0 in x.shape:
        return
    elements = windows(in_double(x), cval)
    _write_chosen(output, x, elements, (fnp.min if minimum else fnp.max)(elements, axis=-1), windows)


def _chosen_windows(x: Array, footprint: Any, origins: Sequence[int], mode: int, cval: Any) -> Array:
    """The elements under the footprint at each place, along a last axis, in the order of the footprint."""
    if 0 in x.shape:
        return fnp.zeros((*x.shape, max(int(footprint.sum()), 1)), x.dtype)
    wide = extended_axes(x, _widths(footprint.shape, origins), EXTENSIONS[mode], cval)
    flat = fnp.reshape(_windows(wide, footprint.shape), (*x.shape, footprint.size))
    return flat if footprint.all() else fnp.take(flat, np.flatnonzero(footprint), axis=-1)


def _nd_image_min_or_max_filter(
    input: Any, footprint: Any, structure: Any, output: Any, mode: int, cval: Any, origins: Sequence[int], minimum: int
) -> None:
    x, footprint = array_of(input), np.array(footprint)
    best = fnp.min if minimum else fnp.max
    if x.dtype.kind in "biu":
        cval = fnp.astype(fnp.asarray(cval), x.dtype)

    def windows(x: Array, cval: Any = _CONSTANT) -> Array:
        return _chosen_windows(x, footprint, origins, mode, cval)

    elements = windows(in_double(x), cval)
    if structure is None:
        _write_chosen(output, x, elements, best(elements, axis=-1), windows)
        return
    heights = fnp.reshape(fnp.broadcast_to(plain_of(structure), footprint.shape), (-1,))[np.flatnonzero(footprint)]
    write(output, best(elements - heights if minimum else elements + heights, axis=-1))


def _nd_image_rank_filter(
    input: Any, rank: Any, footprint: Any, output: Any, mode: int, cval: Any, origins: Sequence[int]
) -> None:
    x, footprint = array_of(input), np.array(footprint)

    def windows(x: Array, cval: Any = _CONSTANT) -> Array:
        return _chosen_windows(x, footprint, origins, mode, cval)

    elements = windows(x, cval)
    _write_chosen(output, x, elements, fnp.sort(elements, axis=-1)[..., int(rank)], windows)


def _rank_filter_1d_rank_filter(
    input: Any, rank: Any, size: int, output: Any, mode: int, cval: Any, origin: int
) -> None:
    _nd_image_rank_filter(input, rank, np.ones(size, bool), output, mode, cval, [origin])


def check_callback(function: Any, name: str) -> None:
    """Raise an error for a function that is not written in Python."""
    if not callable(function):
        raise UnsupportedFunctionError(
            f"scipy.ndimage.{name} with a low-level callback has no derivative{at_line()}\n"
            "Pass a Python function, which func can trace."
        )


def _nd_image_generic_filter1d(
    input: Any,
    function: Any,
    size: int,
    axis: int,
    output: Any,
    mode: int,
    cval: Any,
    origin: int,
    args: Any,
    named: Any,
) -> None:
    check_callback(function, "generic_filter1d")
    x, ((before, after),) = array_of(input), _widths([size], [origin])
    lines = fnp.moveaxis(extended(in_double(x), axis, before, after, EXTENSIONS[mode], cval), axis, -1)
    results = []
    for index in np.ndindex(*lines.shape[:-1]):
        line = fnp.zeros_like(lines[index][: x.shape[axis]])
        function(lines[index], line, *args, **named)
        results.append(line)
    if results:
        stacked = fnp.reshape(fnp.stack(results), (*lines.shape[:-1], x.shape[axis]))
        write(output, fnp.moveaxis(stacked, -1, axis))


def _nd_image_generic_filter(
    input: Any, function: Any, footprint: Any, output: Any, mode: int, cval: Any, origins: Any, args: Any, named: Any
) -> None:
    check_callback(function, "generic_filter")
    x = array_of(input)
    elements = _chosen_windows(in_double(x), np.array(footprint), origins, mode, cval)
    results = [function(elements[index], *args, **named) for index in np.ndindex(*x.shape)]
    if results:
        write(output, fnp.reshape(fnp.stack([fnp.asarray(r, dtype=float) for r in results]), x.shape))


def _frequencies(x: Array, n: int, axis: int) -> list[tuple[Any, int]]:
    """For each axis the integer frequencies, in a shape that broadcasts, and the length of the signal."""
    out = []
    for k, length in enumerate(x.shape):
        if k == axis and n >= 0:
            frequencies, signal = np.arange(length), n
        else:
            frequencies, signal = np.arange(length) - length * (np.arange(length) >= (length + 1) // 2), length
        out.append((frequencies.reshape((length,) + (1,) * (x.ndim - 1 - k)).astype(float), signal))
    return out


def _nd_image_fourier_filter(input: Any, sizes: Any, n: int, axis: int, output: Any, kind: int) -> None:
    """The product with the transform of a Gaussian, a box or an ellipsoid."""
    x, response = array_of(input), 1.0 + np.zeros(1)
    widths = [plain_of(sizes)[k] for k in range(x.ndim)]
    entries = list(zip(_frequencies(x, n, axis), widths, strict=True))
    if kind == 2:
        response = _ellipsoid([k * (np.pi * width / length) for (k, length), width in entries])
    for (k, length), width in entries:
        if kind == 0 and k.size > 1:
            exponent = -2.0 * (width * np.pi / length) ** 2 * k**2
            small = fnp.abs(exponent) > 50.0
            response = response * fnp.where(small, 0.0, fnp.exp(fnp.where(small, 0.0, exponent)))
        elif kind == 1 and k.size > 1:
            ratio = fnp.where(width > 0, fnp.sinc(k * (width / length)), 0.0)
            response = response * fnp.where(k == 0, 1.0, ratio)
    write(output, in_double(x) * response)


def _ellipsoid(arguments: Sequence[Array]) -> Array:
    """The transform of an interval, a unit disc or a ball."""
    if len(arguments) == 1:
        return fnp.sinc(arguments[0] / np.pi)
    square = sum([a * a for a in arguments[1:]], arguments[0] * arguments[0])
    is_zero = square == 0
    r = fnp.sqrt(fnp.where(is_zero, 1.0, square))
    is_disc = len(arguments) == 2
    value = 2.0 * special.j1(r) / r if is_disc else 3.0 * (fnp.sin(r) - r * fnp.cos(r)) / (r * r * r)
    return fnp.where(is_zero, 1.0 - (0.125 if is_disc else 0.1) * square, value)


def _nd_image_fourier_shift(input: Any, shifts: Any, n: int, axis: int, output: Any) -> None:
    x, phase = array_of(input), np.zeros(1)
    for k, (frequencies, length) in enumerate(_frequencies(x, n, axis)):
        if frequencies.size > 1:
            phase = phase + (-2.0 * np.pi * plain_of(shifts)[k] / length) * frequencies
    write(output, in_double(x) * fnp.exp(1j * phase))
