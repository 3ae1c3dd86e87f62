"""Diagonal terms: arrays that are mostly zero as sums of dense values along affine positions.

A term has a value v with one axis for each label l₀, l₁, …, and for each axis of the array an affine map:

    x[p₀(l), p₁(l), …] = v[l],    pₐ(l) = offsetₐ + Σₖ stepsₐ[k] · lₖ,    x = 0 elsewhere.

The identity matrix has one label, v = 1 and p₀ = p₁ = l₀. The identity seeds of a matrix of shape (a, b), an array of
shape (ab, a, b), have two labels, v = 1 and the positions (b · l₀ + l₁, l₀, l₁).
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
    """A rule does not know the structure of its result; its operands are written as dense arrays."""


class Axis(NamedTuple):
    """The positions of a term along one axis: offset + Σₖ steps[k] · lₖ."""

    offset: int
    steps: tuple[int, ...]

    def uses(self, sizes: Shape) -> list[int]:
        """The labels on which the position depends."""
        return [label for label, step in enumerate(self.steps) if step and sizes[label] > 1]

    def span(self, sizes: Shape) -> tuple[int, int]:
        """The least and greatest position."""
        moves = [step * (size - 1) for step, size in zip(self.steps, sizes, strict=True)]
        return self.offset + sum([m for m in moves if m < 0]), self.offset + sum([m for m in moves if m > 0])


class Term(NamedTuple):
    """A value and its positions.

    The value is a Python scalar, a variable without axes, or a variable with one axis per label. The axis has length
    one where the value does not depend on the label.
    """

    value: Any
    sizes: Shape
    axes: tuple[Axis, ...]

    @property
    def size(self) -> int:
        return math.prod(self.sizes)

    def placement(self, shape: Shape) -> Placement:
        """The flat positions of the term in an array of a shape."""
        return placement_of(self.sizes, self.axes, shape)


@functools.lru_cache(4096)
def placement_of(sizes: Shape, axes: tuple[Axis, ...], shape: Shape) -> Placement:
    """The flat positions of a term in an array of a shape, as offset, sizes and strides."""
    steps = strides_of(shape)
    offset = sum([axis.offset * step for axis, step in zip(axes, steps, strict=True)])
    strides = [
        sum([axis.steps[label] * step for axis, step in zip(axes, steps, strict=True)]) for label in range(len(sizes))
    ]
    return offset, sizes, tuple(strides)


@functools.lru_cache(4096)
def whole_order(sizes: Shape, axes: tuple[Axis, ...], shape: Shape) -> tuple[int, ...] | None:
    """The order of labels in which a term's value in C order is the whole array; None where it is not."""
    offset, _, strides = placement_of(sizes, axes, shape)
    order = sorted(range(len(sizes)), key=lambda label: (-strides[label], sizes[label] > 1))
    expected = strides_of(tuple([sizes[label] for label in order]))
    fits = [sizes[k] == 1 or strides[k] == step for k, step in zip(order, expected, strict=True)]
    return tuple(order) if offset == 0 and all(fits) and math.prod(sizes) == math.prod(shape) else None


def unit_axes(shape: Shape, labels: int = 0) -> tuple[Axis, ...]:
    """The positions of a dense array, with one label for each axis, after `labels` others."""
    rank = len(shape)
    return tuple([Axis(0, (*[0] * labels, *[int(i == axis) for i in range(rank)])) for axis in range(rank)])


def renumber_labels(term: Term, first: Sequence[int]) -> Term:
    """A term whose value has no axes, with the labels `first` in front."""
    order = [*first, *[label for label in range(len(term.sizes)) if label not in first]]
    axes = tuple([Axis(axis.offset, tuple([axis.steps[label] for label in order])) for axis in term.axes])
    return Term(term.value, tuple([term.sizes[label] for label in order]), axes)


@functools.lru_cache(4096)
def is_injective(sizes: Shape, axes: tuple[Axis, ...]) -> bool:
    """True where all elements are known to have distinct positions.

    An axis fixes labels whose steps exceed the span of the labels with smaller steps, like digits of a number.
    """
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


class Cut(NamedTuple):
    """The restriction of a term by a slice of one axis: the label (−1 for none), its slice, and the new axis."""

    label: int
    start: int
    step: int
    length: int
    axis: Axis


def cut_axis(axis: Axis, sizes: Shape, start: int, step: int, count: int) -> Cut | None:
    """The elements of a term at positions start + step · m, 0 ≤ m < count, along an axis; None where there are none."""
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
    """Solve offset + c l = start + step m for integers l and m.

    With g = gcd(c, step) the solutions are l = first + (|step| / g) l' and m = m₀ + (c / g) sign(step) l'; none exists
    where g does not divide start − offset.
    """
    c, size = axis.steps[label], sizes[label]
    divisor = math.gcd(c, step)
    if (start - axis.offset) % divisor:
        return None
    stride = abs(step) // divisor
    first = ((start - axis.offset) // divisor * pow(c // divisor, -1, stride)) % stride if stride > 1 else 0
    m, slope = (axis.offset + c * first - start) // step, c * stride // step
    ends = [(-m) / slope, (count - 1 - m) / slope]
    low = max(0, math.ceil(min(ends)))
    high = min((size - 1 - first) // stride, math.floor(max(ends)))
    if high < low:
        return None
    steps = tuple([slope if k == label else s for k, s in enumerate(axis.steps)])
    return Cut(label, first + stride * low, stride, high - low + 1, Axis(m + slope * low, steps))


def cut_other_axis(axis: Axis, cut: Cut) -> Axis:
    """Another axis of the term after a cut of one."""
    if cut.label < 0:
        return axis
    along = axis.steps[cut.label]
    steps = tuple([s * cut.step if k == cut.label else s for k, s in enumerate(axis.steps)])
    return Axis(axis.offset + along * cut.start, steps)


class SplitLabel(Exception):
    """A label must be split in two, the inner one of the given size, before an axis can be divided."""

    def __init__(self, label: int, inner: int) -> None:
        super().__init__(label, inner)
        self.label = label
        self.inner = inner


def reshape_axes(axes: Sequence[Axis], sizes: Shape, old: Shape, new: Shape) -> tuple[Axis, ...]:
    """The axes after a reshape in C order. Raises SplitLabel where a label must be split first."""
    fixed = Axis(0, (0,) * len(sizes))
    result = [fixed] * len(new)
    for sources, targets in _groups(old, new):
        joined = fixed
        for axis in sources:
            scale = old[axis]
            steps = zip(joined.steps, axes[axis].steps, strict=True)
            joined = Axis(joined.offset * scale + axes[axis].offset, tuple([a * scale + b for a, b in steps]))
        for axis in reversed(targets[1:]):
            joined, result[axis] = _divide_axis(joined, sizes, new[axis])
        result[targets[0]] = joined
    return tuple(result)


def _groups(old: Shape, new: Shape) -> list[tuple[list[int], list[int]]]:
    """Runs of old and new axes with equal products of lengths, without axes of length one."""
    left = [axis for axis, length in enumerate(old) if length != 1]
    right = [axis for axis, length in enumerate(new) if length != 1]
    groups = []
    while left:
        sources, targets = [left.pop(0)], [right.pop(0)]
        old_size, new_size = old[sources[0]], new[targets[0]]
        while old_size != new_size:
            if old_size < new_size:
                sources.append(left.pop(0))
                old_size *= old[sources[-1]]
            else:
                targets.append(right.pop(0))
                new_size *= new[targets[-1]]
        groups.append((sources, targets))
    return groups


def _divide_axis(axis: Axis, sizes: Shape, length: int) -> tuple[Axis, Axis]:
    """The quotient and the remainder of the positions by the length of the inner axis."""
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
    """The axis with two labels in place of one."""
    step = axis.steps[label]
    return Axis(axis.offset, (*axis.steps[:label], step * inner, step, *axis.steps[label + 1 :]))


ArrayTerms: TypeAlias = list[tuple[Any, Shape, tuple[Axis, ...]]]
"""Values, sizes and axes of terms whose values are host arrays."""
_MAX_DIAGONALS = 4
_SAMPLE = 64
"""An array without a zero among its first elements counts as dense."""


def terms_of(array: np.ndarray[Any, Any]) -> ArrayTerms | None:
    """The terms of an array; None where its zeros are too few or irregular."""
    if array.ndim < 2 or array.size < 4 or array.dtype.kind not in "fc":
        return None
    if array.flags.c_contiguous and np.all(array.reshape(-1)[:_SAMPLE]):
        return None
    count = int(np.count_nonzero(array))
    least = min([length for length in array.shape if length > 1])
    if count == 0 or 2 * count > array.size or count > max(array.size // least, _MAX_DIAGONALS * max(array.shape)):
        return None
    terms = _single_diagonal(array, count)
    if terms is not None:
        return terms
    places = np.nonzero(array)
    terms = _affine_term(array, places, count)
    return _matrix_diagonals(array, places) if terms is None and array.ndim == 2 else terms


def _single_diagonal(array: Any, count: int) -> ArrayTerms | None:
    """The common cases, without a list of all positions: complete identity seeds, and one diagonal of a matrix."""
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


def _affine_term(array: Any, places: Sequence[Any], count: int) -> ArrayTerms | None:
    """One term: positions along one axis are an affine function of those along the others, which fill a box."""
    for dependent in range(array.ndim):
        others = [axis for axis in range(array.ndim) if axis != dependent]
        starts, steps, sizes = [], [], []
        for axis in others:
            distinct = np.unique(places[axis])
            step = int(distinct[1] - distinct[0]) if distinct.size > 1 else 1
            if distinct.size > 1 and int(distinct[-1] - distinct[0]) != step * (distinct.size - 1):
                break
            starts.append(int(distinct[0]))
            steps.append(step)
            sizes.append(int(distinct.size))
        if len(sizes) < len(others) or math.prod(sizes) != count:
            continue
        labels = [(places[axis] - start) // step for axis, start, step in zip(others, starts, steps, strict=True)]
        flat = np.ravel_multi_index(labels, sizes)
        positions = np.full(count, -1, np.int64)
        positions[flat] = places[dependent]
        positions = positions.reshape(sizes)
        origin = int(positions[(0,) * len(sizes)])
        slopes = [
            int(positions[tuple([int(k == label) for k in range(len(sizes))])]) - origin if size > 1 else 0
            for label, size in enumerate(sizes)
        ]
        lines = [slope * np.arange(size) for slope, size in zip(slopes, sizes, strict=True)]
        if not np.array_equal(positions, origin + sum(np.ix_(*lines))):
            continue
        axes = []
        for axis in range(array.ndim):
            if axis == dependent:
                axes.append(Axis(origin, tuple(slopes)))
            else:
                label = others.index(axis)
                axes.append(Axis(starts[label], tuple([steps[label] if k == label else 0 for k in range(len(sizes))])))
        values = np.empty(count, array.dtype)
        values[flat] = array[tuple(places)]
        return [(values.reshape(sizes), tuple(sizes), tuple(axes))]
    return None


def _matrix_diagonals(array: Any, places: Sequence[Any]) -> ArrayTerms | None:
    """The terms of a matrix of few diagonals, each from its first to its last element other than zero."""
    distance = places[1] - places[0]
    offsets = np.unique(distance)
    if offsets.size > _MAX_DIAGONALS:
        return None
    terms: ArrayTerms = []
    for offset in offsets:
        rows = places[0][distance == offset]
        first, size = int(rows[0]), int(rows[-1] - rows[0]) + 1
        values = array[np.arange(first, first + size), np.arange(first, first + size) + offset]
        terms.append((values, (size,), (Axis(first, (1,)), Axis(first + int(offset), (1,)))))
    return None if 2 * sum([sizes[0] for _, sizes, _ in terms]) > array.size else terms
