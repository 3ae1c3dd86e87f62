"""Arrays that are mostly zero, as sums of terms: a dense value and, for every axis, where its elements lie.

A term has labels, which count the axes of its value. Along an axis of the array its element l lies at
offset + Σ steps[k] · l[k]. The identity is one label of n, the value 1, and twice the axis 0 + 1 · l; the seeds of a
matrix of shape (a, b), of shape (ab, a, b), have two labels and the axes b · l₀ + l₁, l₀ and l₁.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from func.interpreters.core import Shape
from func.interpreters.primitives.structural.diagonals import Placement, strides_of


class GiveUp(Exception):
    """A rule does not know the structure of its result: operands are written out."""


class Axis(NamedTuple):
    """Where the elements of a term lie along one axis: offset + Σ steps · label."""

    offset: int
    steps: tuple[int, ...]

    def uses(self, sizes: Shape) -> list[int]:
        """The labels that move along this axis."""
        return [label for label, step in enumerate(self.steps) if step and sizes[label] > 1]

    def span(self, sizes: Shape) -> tuple[int, int]:
        """The least and greatest position."""
        moves = [step * (size - 1) for step, size in zip(self.steps, sizes, strict=True)]
        return self.offset + sum([m for m in moves if m < 0]), self.offset + sum([m for m in moves if m > 0])


class Term(NamedTuple):
    """A value at regular places: a Python scalar, a 0-d variable, or a variable with one axis per label, which is of
    length one where the value does not depend on that label."""

    value: Any
    sizes: Shape
    axes: tuple[Axis, ...]

    @property
    def size(self) -> int:
        return math.prod(self.sizes)

    def placement(self, shape: Shape) -> Placement:
        """Where the term lies in an array of a shape."""
        return placement_of(self.sizes, self.axes, shape)


@functools.lru_cache(4096)
def placement_of(sizes: Shape, axes: tuple[Axis, ...], shape: Shape) -> Placement:
    """Where elements at these axes lie in an array of a shape."""
    steps = strides_of(shape)
    offset = sum([axis.offset * step for axis, step in zip(axes, steps, strict=True)])
    strides = [
        sum([axis.steps[label] * step for axis, step in zip(axes, steps, strict=True)]) for label in range(len(sizes))
    ]
    return offset, sizes, tuple(strides)


@functools.lru_cache(4096)
def whole_order(sizes: Shape, axes: tuple[Axis, ...], shape: Shape) -> tuple[int, ...] | None:
    """The order of labels in which a term's value, read in C order, is the whole array; None where it is not."""
    offset, _, strides = placement_of(sizes, axes, shape)
    order = sorted(range(len(sizes)), key=lambda label: (-strides[label], sizes[label] > 1))
    expected = strides_of(tuple([sizes[label] for label in order]))
    fits = [sizes[k] == 1 or strides[k] == step for k, step in zip(order, expected, strict=True)]
    return tuple(order) if offset == 0 and all(fits) and math.prod(sizes) == math.prod(shape) else None


def unit_axes(shape: Shape, labels: int = 0) -> tuple[Axis, ...]:
    """The axes of an array that is dense: one label for each, after `labels` others."""
    rank = len(shape)
    return tuple([Axis(0, (*[0] * labels, *[int(i == axis) for i in range(rank)])) for axis in range(rank)])


def renumbered(term: Term, first: Sequence[int]) -> Term:
    """A term whose value has no axes, with these labels first."""
    order = [*first, *[label for label in range(len(term.sizes)) if label not in first]]
    axes = tuple([Axis(axis.offset, tuple([axis.steps[label] for label in order])) for axis in term.axes])
    return Term(term.value, tuple([term.sizes[label] for label in order]), axes)


@functools.lru_cache(4096)
def injective(sizes: Shape, axes: tuple[Axis, ...]) -> bool:
    """True where the positions of all elements are known to be distinct."""
    unknown = {label for label, size in enumerate(sizes) if size > 1}
    progress = True
    while unknown and progress:
        progress = False
        for axis in axes:
            labels = sorted([label for label in axis.uses(sizes) if label in unknown], key=lambda k: abs(axis.steps[k]))
            span = 0
            for label in labels:
                if abs(axis.steps[label]) <= span:
                    break
                span += abs(axis.steps[label]) * (sizes[label] - 1)
            else:
                progress = progress or bool(labels)
                unknown.difference_update(labels)
    return not unknown


# --- slices -----------------------------------------------------------------------------------------------------


class Cut(NamedTuple):
    """A term restricted along one axis: the label that loses elements, which of them stay, and the new axis."""

    label: int
    start: int
    step: int
    length: int
    axis: Axis


def cut_axis(axis: Axis, sizes: Shape, start: int, step: int, count: int) -> Cut | None:
    """The elements of a term at start + step · m (m < count) along an axis; None where there are none."""
    labels = axis.uses(sizes)
    if len(labels) == 1:
        return _cut_label(axis, sizes, labels[0], start, step, count)
    ends = sorted([(bound - start) // step for bound in axis.span(sizes)])
    if not labels:
        inside = (axis.offset - start) % step == 0 and 0 <= ends[0] < count
        return Cut(-1, 0, 1, 0, Axis(ends[0], axis.steps)) if inside else None
    if ends[1] < 0 or ends[0] >= count:
        return None
    if abs(step) != 1 or ends[0] < 0 or ends[1] >= count:
        raise GiveUp
    return Cut(-1, 0, 1, 0, Axis((axis.offset - start) * step, tuple([s * step for s in axis.steps])))


def _cut_label(axis: Axis, sizes: Shape, label: int, start: int, step: int, count: int) -> Cut | None:
    """Solve offset + c l = start + step m: l = first + stride · l', m = m₀ + slope · l'."""
    c, size = axis.steps[label], sizes[label]
    common = math.gcd(c, step)
    if (start - axis.offset) % common:
        return None
    stride = abs(step) // common
    first = ((start - axis.offset) // common * pow(c // common, -1, stride)) % stride if stride > 1 else 0
    m, slope = (axis.offset + c * first - start) // step, c * stride // step
    ends = [(-m) / slope, (count - 1 - m) / slope]
    low = max(0, math.ceil(min(ends)))
    high = min((size - 1 - first) // stride, math.floor(max(ends)))
    if high < low:
        return None
    steps = tuple([slope if k == label else s for k, s in enumerate(axis.steps)])
    return Cut(label, first + stride * low, stride, high - low + 1, Axis(m + slope * low, steps))


def shifted(axis: Axis, cut: Cut) -> Axis:
    """Another axis after the elements of a label were cut."""
    if cut.label < 0:
        return axis
    along = axis.steps[cut.label]
    steps = tuple([s * cut.step if k == cut.label else s for k, s in enumerate(axis.steps)])
    return Axis(axis.offset + along * cut.start, steps)


# --- shapes -----------------------------------------------------------------------------------------------------


class SplitLabel(Exception):
    """A label must be split in two, the inner one of a size, before an axis can be."""

    def __init__(self, label: int, inner: int) -> None:
        super().__init__(label, inner)
        self.label = label
        self.inner = inner


def reshaped_axes(axes: Sequence[Axis], sizes: Shape, old: Shape, new: Shape) -> tuple[Axis, ...]:
    """The axes after a reshape in C order. Raises SplitLabel where a label has to be split first."""
    nothing = Axis(0, (0,) * len(sizes))
    result = [nothing] * len(new)
    for sources, targets in _groups(old, new):
        joined = nothing
        for axis in sources:
            scale = old[axis]
            steps = zip(joined.steps, axes[axis].steps, strict=True)
            joined = Axis(joined.offset * scale + axes[axis].offset, tuple([a * scale + b for a, b in steps]))
        for axis in reversed(targets[1:]):
            joined, result[axis] = _divided(joined, sizes, new[axis])
        result[targets[0]] = joined
    return tuple(result)


def _groups(old: Shape, new: Shape) -> list[tuple[list[int], list[int]]]:
    """Runs of axes of equal product, those of length one left out."""
    left = [axis for axis, length in enumerate(old) if length != 1]
    right = [axis for axis, length in enumerate(new) if length != 1]
    groups = []
    while left:
        sources, targets = [left.pop(0)], [right.pop(0)]
        have, want = old[sources[0]], new[targets[0]]
        while have != want:
            if have < want:
                sources.append(left.pop(0))
                have *= old[sources[-1]]
            else:
                targets.append(right.pop(0))
                want *= new[targets[-1]]
        groups.append((sources, targets))
    return groups


def _divided(axis: Axis, sizes: Shape, length: int) -> tuple[Axis, Axis]:
    """Quotient and remainder of positions by the length of the inner axis."""
    rest = []
    for step, size in zip(axis.steps, sizes, strict=True):
        r = step % length if size > 1 else 0
        rest.append(r - length if r > length // 2 else r)
    inner = Axis(axis.offset % length, tuple(rest))
    low, high = inner.span(sizes)
    if low < 0 or high >= length:
        for label, (step, size) in enumerate(zip(axis.steps, sizes, strict=True)):
            if step > 0 and length % step == 0 and 1 < length // step < size and size % (length // step) == 0:
                raise SplitLabel(label, length // step)
        raise GiveUp
    steps = [(step - r) // length if size > 1 else 0 for step, r, size in zip(axis.steps, rest, sizes, strict=True)]
    return Axis(axis.offset // length, tuple(steps)), inner


def split_axis(axis: Axis, label: int, inner: int) -> Axis:
    """The axis in terms of two labels that replace one."""
    step = axis.steps[label]
    return Axis(axis.offset, (*axis.steps[:label], step * inner, step, *axis.steps[label + 1 :]))


# --- recognition ------------------------------------------------------------------------------------------------

Found: TypeAlias = list[tuple[Any, Shape, tuple[Axis, ...]]]
"""Terms whose values are arrays."""
_DIAGONALS = 4
_SAMPLE = 64


def terms_of(array: np.ndarray[Any, Any]) -> Found | None:
    """The structure of an array as (values, sizes, axes), or None where its zeros are too few or irregular."""
    if array.ndim < 2 or array.size < 4 or array.dtype.kind not in "fc":
        return None
    if array.flags.c_contiguous and np.all(array.reshape(-1)[:_SAMPLE]):
        return None
    count = int(np.count_nonzero(array))
    least = min([length for length in array.shape if length > 1])
    if count == 0 or 2 * count > array.size or count > max(array.size // least, _DIAGONALS * max(array.shape)):
        return None
    quick = _one_diagonal(array, count)
    if quick is not None:
        return quick
    places = np.nonzero(array)
    found = _seeds(array, places, count)
    if found is None and array.ndim == 2:
        found = _diagonals(array, places)
    return found


def _one_diagonal(array: Any, count: int) -> Found | None:
    """The common cases without a list of all places: seeds that are complete, and one diagonal of a matrix."""
    rest = array.shape[1:]
    if array.flags.c_contiguous and count == array.shape[0] == math.prod(rest):
        values = array.reshape(count, count).diagonal()
        if np.all(values):
            return [(values.reshape(rest), rest, (Axis(0, strides_of(rest)), *unit_axes(rest)))]
    if array.ndim == 2:
        across, down = np.flatnonzero(array[0]), np.flatnonzero(array[:, 0])
        offset = int(across[0]) if across.size else -int(down[0]) if down.size else 0
        values = array.diagonal(offset)
        if np.count_nonzero(values) == count:
            first, last = np.flatnonzero(values)[[0, -1]].tolist()
            axes = (Axis(first + max(0, -offset), (1,)), Axis(first + max(0, offset), (1,)))
            values = values[first : last + 1]
            return [(values, values.shape, axes)]
    return None


def _seeds(array: Any, places: Sequence[Any], count: int) -> Found | None:
    """One axis is an affine function of the others, whose positions fill a box."""
    for moving in range(array.ndim):
        others = [axis for axis in range(array.ndim) if axis != moving]
        starts, steps, sizes = [], [], []
        for axis in others:
            seen = np.unique(places[axis])
            step = int(seen[1] - seen[0]) if seen.size > 1 else 1
            if seen.size > 1 and int(seen[-1] - seen[0]) != step * (seen.size - 1):
                break
            starts.append(int(seen[0]))
            steps.append(step)
            sizes.append(int(seen.size))
        if len(sizes) < len(others) or math.prod(sizes) != count:
            continue
        labels = [(places[axis] - start) // step for axis, start, step in zip(others, starts, steps, strict=True)]
        flat = np.ravel_multi_index(labels, sizes)
        position = np.full(count, -1, np.int64)
        position[flat] = places[moving]
        board = position.reshape(sizes)
        origin = int(board[(0,) * len(sizes)])
        slopes = [
            int(board[tuple([int(k == label) for k in range(len(sizes))])]) - origin if size > 1 else 0
            for label, size in enumerate(sizes)
        ]
        lines = [slope * np.arange(size) for slope, size in zip(slopes, sizes, strict=True)]
        if not np.array_equal(board, origin + sum(np.ix_(*lines))):
            continue
        axes = []
        for axis in range(array.ndim):
            if axis == moving:
                axes.append(Axis(origin, tuple(slopes)))
            else:
                at = others.index(axis)
                axes.append(Axis(starts[at], tuple([steps[at] if k == at else 0 for k in range(len(sizes))])))
        values = np.empty(count, array.dtype)
        values[flat] = array[tuple(places)]
        return [(values.reshape(sizes), tuple(sizes), tuple(axes))]
    return None


def _diagonals(array: Any, places: Sequence[Any]) -> Found | None:
    """A matrix of few diagonals, each from its first to its last element that is not zero."""
    distance = places[1] - places[0]
    offsets = np.unique(distance)
    if offsets.size > _DIAGONALS:
        return None
    found: Found = []
    for offset in offsets:
        rows = places[0][distance == offset]
        first, size = int(rows[0]), int(rows[-1] - rows[0]) + 1
        values = array[np.arange(first, first + size), np.arange(first, first + size) + offset]
        found.append((values, (size,), (Axis(first, (1,)), Axis(first + int(offset), (1,)))))
    return None if 2 * sum([sizes[0] for _, sizes, _ in found]) > array.size else found
