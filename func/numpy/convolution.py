"""Sliding windows and convolutions: NumPy's of vectors, and the general one of neural networks."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from func.interpreters.core import Array, operand, shape_of
from func.interpreters.core.errors import UnsupportedFunctionError
from func.interpreters.host.source import at_line
from func.interpreters.primitives.structural.contraction import contract, spec
from func.interpreters.primitives.structural.convolution import correlate as correlate_primitive
from func.interpreters.primitives.structural.convolution import windows
from func.interpreters.primitives.structural.shapes import reshape
from func.numpy.argument_checks import arrayed, as_shape, common, normalize_axis, rank_of
from func.numpy.inplace import view_windows
from func.numpy.padding import framed
from func.numpy.protocol import implements
from func.numpy.shaping import flip
from func.numpy.ufuncs import conjugated


@implements(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(
    x: Array, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Array:
    """All windows along axes, as trailing axes, as numpy.lib.stride_tricks.sliding_window_view; read-only."""
    x = operand(x)
    if writeable:
        raise UnsupportedFunctionError(
            f"np.lib.stride_tricks.sliding_window_view of a traced array cannot be writeable{at_line()}\n"
            "Its windows overlap: add to the array itself, x[i : i + n] += v."
        )
    sizes = as_shape(window_shape)
    axes = tuple(range(rank_of(x))) if axis is None else tuple([normalize_axis(k, rank_of(x)) for k in as_shape(axis)])
    if any([size < 0 for size in sizes]):
        raise ValueError("`window_shape` cannot contain negative values")
    if len(sizes) != len(axes):
        raise ValueError(f"Must provide matching length window_shape and axis; got {len(sizes)} and {len(axes)}")
    left = list(shape_of(x))
    for size, place in zip(sizes, axes, strict=True):
        if left[place] < size:
            raise ValueError("window shape cannot be larger than input array shape")
        left[place] -= size - 1
    return view_windows(x, sizes, axes)


def _vector(a: Any, name: str) -> Array:
    a = operand(a)
    a = arrayed(a)
    if rank_of(a) == 0:
        a = reshape(a, shape=(1,))
    if rank_of(a) != 1:
        raise ValueError(f"object too deep for desired array: {name} has {rank_of(a)} dimensions, not one")
    return a


def _mode(mode: str) -> str:
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"mode must be one of 'valid', 'same', or 'full' (got {mode!r})")
    return mode


@implements(np.convolve)
def convolve(a: Array, v: Array, mode: str = "full") -> Array:
    """The discrete convolution of two vectors, as numpy.convolve."""
    x, y = _vector(a, "a"), _vector(v, "v")
    for name, vector in (("a", x), ("v", y)):
        if shape_of(vector)[0] == 0:
            raise ValueError(f"{name} cannot be empty")
    x, y = common([x, y])
    if shape_of(y)[0] > shape_of(x)[0]:
        x, y = y, x
    return correlate_primitive(x, flip(y), mode=_mode(mode))


@implements(np.correlate)
def correlate(a: Array, v: Array, mode: str = "valid") -> Array:
    """The discrete correlation of two vectors, the second one conjugated, as numpy.correlate."""
    x, y = _vector(a, "a"), _vector(v, "v")
    if 0 in (shape_of(x)[0], shape_of(y)[0]):
        raise ValueError("array of length zero given to correlate")
    return correlate_primitive(x, conjugated(y), mode=_mode(mode))


def conv_general(
    x: Array,
    kernel: Array,
    *,
    stride: int | Sequence[int] = 1,
    padding: int | str | Sequence[int] | Sequence[tuple[int, int]] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Array:
    """The convolution of neural networks (a correlation: the kernel is not reversed), in any number of dimensions.

    Args:
        x: (N, C, *spatial): samples, channels, spatial axes.
        kernel: (O, C / groups, *window): output channels, input channels of one group, window.
        stride: Distance between windows, one for all axes or one for each.
        padding: Zeros around each spatial axis: a number, one for each axis, or a pair (before, after) for each axis.
            With "valid" there are none; with "same" the output is as long as the input divided by the stride, rounded
            up.
        dilation: Distance between the elements of a window.
        groups: The number of groups of channels to convolve separately; C and O are multiples of it.

    Returns:
        (N, O, *spatial of the output).

    Example:
        >>> import numpy as np, func
        >>> x, k = np.ones((1, 2, 5, 5)), np.ones((3, 2, 3, 3))
        >>> func.numpy.conv_general(x, k, padding="same").shape
        (1, 3, 5, 5)
    """
    x, kernel = operand(x), operand(kernel)
    rank = rank_of(x) - 2
    if rank < 1 or rank_of(kernel) != rank + 2:
        raise ValueError(
            f"conv_general: x must be (N, C, *spatial) and kernel (O, C / groups, *window) with as many spatial axes, "
            f"not {shape_of(x)} and {shape_of(kernel)}"
        )
    groups = _groups(shape_of(x), shape_of(kernel), groups)
    sizes = shape_of(kernel)[2:]
    steps, gaps = _each("stride", stride, rank), _each("dilation", dilation, rank)
    spans = tuple([(size - 1) * gap + 1 for size, gap in zip(sizes, gaps, strict=True)])
    pads = _pads(padding, shape_of(x)[2:], spans, steps)
    x = framed(x, [(0, 0), (0, 0), *pads]) if any([side for pair in pads for side in pair]) else x
    if any([span > n for span, n in zip(spans, shape_of(x)[2:], strict=True)]):
        raise ValueError(f"conv_general: a window that spans {spans} does not fit the padded input {shape_of(x)[2:]}")
    is_dense = all([k == 1 for k in (*steps, *gaps)])
    view = windows(
        x, sizes=sizes, axes=tuple(range(2, rank + 2)), steps=() if is_dense else steps, gaps=() if is_dense else gaps
    )
    return _contracted(view, kernel, rank, groups)


def _contracted(view: Array, kernel: Array, rank: int, groups: int) -> Array:
    """The sum over channels and windows of one group; view is (N, C, *out, *window)."""
    n, c, *rest = shape_of(view)
    o = shape_of(kernel)[0]
    places, inside = tuple(range(4, 4 + rank)), tuple(range(4 + rank, 4 + 2 * rank))
    if groups == 1:
        return contract(view, kernel, spec=spec((0, 1, *places, *inside), (2, 1, *inside), (0, 2, *places)))
    view = reshape(view, shape=(n, groups, c // groups, *rest))
    kernel = reshape(kernel, shape=(groups, o // groups, *shape_of(kernel)[1:]))
    labels = spec((0, 3, 1, *places, *inside), (3, 2, 1, *inside), (0, 3, 2, *places))
    return reshape(contract(view, kernel, spec=labels), shape=(n, o, *rest[:rank]))


def _groups(x: tuple[int, ...], kernel: tuple[int, ...], groups: int) -> int:
    groups = operator.index(groups)
    if groups < 1 or x[1] % groups or kernel[0] % groups or kernel[1] * groups != x[1]:
        raise ValueError(
            f"conv_general: with groups={groups} x of shape {x} needs a kernel (O, {x[1]} / {groups}, *window) with O "
            f"a multiple of {groups}, not {kernel}"
        )
    return groups


def _each(name: str, value: Any, rank: int) -> tuple[int, ...]:
    """One positive number for each spatial axis."""
    numbers = as_shape(value) * (rank if np.ndim(value) == 0 else 1)
    if len(numbers) != rank or any([number < 1 for number in numbers]):
        raise ValueError(f"conv_general: {name} must be one positive integer or {rank} of them, not {value!r}")
    return numbers


def _pads(padding: Any, shape: Sequence[int], spans: Sequence[int], steps: Sequence[int]) -> list[tuple[int, int]]:
    """(before, after) for each spatial axis."""
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise ValueError(f"conv_general: padding must be 'same', 'valid' or numbers, not {padding!r}")
        if padding == "valid":
            return [(0, 0)] * len(shape)
        totals = [
            max((-(-n // step) - 1) * step + span - n, 0) for n, span, step in zip(shape, spans, steps, strict=True)
        ]
        return [(total // 2, total - total // 2) for total in totals]
    entries = [padding] * len(shape) if np.ndim(padding) == 0 else list(padding)
    pairs = [(operator.index(p), operator.index(p)) if np.ndim(p) == 0 else (int(p[0]), int(p[1])) for p in entries]
    if len(pairs) != len(shape) or any([side < 0 for pair in pairs for side in pair]):
        raise ValueError(
            f"conv_general: padding must be a number, {len(shape)} numbers or {len(shape)} pairs, none of them "
            f"negative, not {padding!r}"
        )
    return pairs
