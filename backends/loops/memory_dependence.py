"""Whether loops touch the same memory at different indices."""

from __future__ import annotations

from collections.abc import Sequence

from func.backends.loops.kernels import Shape, StridedRef

MOST_TRIES = 200
"""Differences of indices that are looked at before the answer is that they may meet."""


def same_place(domain: Shape, one: StridedRef, other: StridedRef, group: Sequence[int]) -> bool:
    """Whether two spots of one buffer, with a stride for every dimension of a domain, may be the same element at
    indices that differ along some dimension of `group`.

    >>> import numpy as np
    >>> from func.backends.loops.kernels import Buffer
    >>> buffer = Buffer(10, np.dtype(float))
    >>> same_place((5,), Spot(buffer, 0, (2,)), Spot(buffer, 1, (2,)), [0])
    False
    >>> same_place((5,), Spot(buffer, 0, (1,)), Spot(buffer, 1, (1,)), [0])
    True
    """
    if one.strides != other.strides:
        low, high = extent(domain, one)
        first, last = extent(domain, other)
        return low <= last and first <= high
    moving = sorted([axis for axis, step in enumerate(one.strides) if step], key=lambda axis: -abs(one.strides[axis]))
    free = any([domain[axis] > 1 and not one.strides[axis] for axis in group])
    return _meets(domain, one.strides, moving, other.offset - one.offset, set() if free else set(group), [MOST_TRIES])


def extent(domain: Shape, ref: StridedRef) -> tuple[int, int]:
    """The first and the last element of a spot."""
    ends = [step * (length - 1) for step, length in zip(ref.strides, domain, strict=True)]
    return ref.offset + sum([min(end, 0) for end in ends]), ref.offset + sum([max(end, 0) for end in ends])


def _meets(
    domain: Shape, strides: Sequence[int], moving: Sequence[int], gap: int, group: set[int], tries: list[int]
) -> bool:
    """Whether differences of indices, not all of those along `group` zero, make up a gap."""
    if not moving:
        return False if gap else not group
    axis, *rest = moving
    step = abs(strides[axis])
    reach = sum([abs(strides[other]) * (domain[other] - 1) for other in rest])
    first, last = -(-(gap - reach) // step), (gap + reach) // step
    for difference in range(max(first, 1 - domain[axis]), min(last, domain[axis] - 1) + 1):
        tries[0] -= 1
        if tries[0] < 0:
            return True
        left = set() if difference and axis in group else group
        if _meets(domain, strides, rest, gap - step * difference, left, tries):
            return True
    return False
