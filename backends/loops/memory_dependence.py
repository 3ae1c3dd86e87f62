"""Memory dependence: whether loops touch the same element at different indices."""

from __future__ import annotations

from collections.abc import Sequence

from func.backends.loops.kernels import Shape, StridedRef

MOST_TRIES = 200
"""Differences of indices that are tried before the answer is that the references may overlap."""


def may_alias(domain: Shape, x: StridedRef, y: StridedRef, group: Sequence[int]) -> bool:
    """Whether two references to one buffer may be the same element at indices that differ along a dimension of `group`.
    They have a stride for every dimension of a domain.

    >>> import numpy as np
    >>> from func.backends.loops.kernels import Buffer
    >>> buffer = Buffer(10, np.dtype(float))
    >>> may_alias((5,), StridedRef(buffer, 0, (2,)), StridedRef(buffer, 1, (2,)), [0])
    False
    >>> may_alias((5,), StridedRef(buffer, 0, (1,)), StridedRef(buffer, 1, (1,)), [0])
    True
    """
    if x.strides != y.strides:
        low, high = extent(domain, x)
        first, last = extent(domain, y)
        return low <= last and first <= high
    axes = sorted([axis for axis, step in enumerate(x.strides) if step], key=lambda axis: -abs(x.strides[axis]))
    is_free = any([domain[axis] > 1 and not x.strides[axis] for axis in group])
    return _Search(domain, x.strides).has_solution(axes, y.offset - x.offset, set() if is_free else set(group))


def extent(domain: Shape, ref: StridedRef) -> tuple[int, int]:
    """The first and the last element that a reference reaches."""
    ends = [step * (length - 1) for step, length in zip(ref.strides, domain, strict=True)]
    return ref.offset + sum([min(end, 0) for end in ends]), ref.offset + sum([max(end, 0) for end in ends])


class _Search:
    """Looks for differences of indices d with Σ |strides[a]| * d[a] = distance, in a limited number of tries."""

    def __init__(self, domain: Shape, strides: Sequence[int]) -> None:
        self.domain = domain
        self.strides = strides
        self.tries = MOST_TRIES

    def has_solution(self, axes: Sequence[int], distance: int, group: set[int]) -> bool:
        """Whether there are such differences along `axes`, not all of those along `group` zero."""
        if not axes:
            return False if distance else not group
        axis, *rest = axes
        step = abs(self.strides[axis])
        reach = sum([abs(self.strides[other]) * (self.domain[other] - 1) for other in rest])
        first, last = -(-(distance - reach) // step), (distance + reach) // step
        for difference in range(max(first, 1 - self.domain[axis]), min(last, self.domain[axis] - 1) + 1):
            self.tries -= 1
            if self.tries < 0:
                return True
            left = set() if difference and axis in group else group
            if self.has_solution(rest, distance - step * difference, left):
                return True
        return False
