"""Values of fused code: where they are made, where they lie, and the views of them."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

from func.backends.loops.kernels import DType, Reg, Shape, StridedRef


@dataclass(eq=False, slots=True)
class Root:
    """A value over a domain (a shape without axes of length one): where it is made, and where it lies."""

    domain: Shape
    dtype: DType
    reg: Reg | None = None
    nest: int = -1
    stage: int = -1
    is_row: bool = False
    """A scalar of the rows: made by a reduction of `stage`, or in a stage that is not inner."""
    ref: StridedRef | None = None
    ready: int = -1
    """The item after which `ref` may be read."""


Axis: TypeAlias = tuple[int, int, int | None]


@dataclass(eq=False, slots=True)
class Val:
    """An array: element i is that of the root at index start + step * i[dim] for each (start, step, dim) of `index`.
    A number has no root."""

    shape: Shape
    dtype: DType
    root: Root | None = None
    index: tuple[Axis, ...] = ()
    literal: Any = None


@functools.lru_cache(4096)
def domain_of(shape: Shape) -> tuple[Shape, tuple[int, ...]]:
    """A shape without axes of length one, and which axes are left."""
    kept = [i for i, length in enumerate(shape) if length != 1]
    return tuple([shape[i] for i in kept]), tuple(kept)


@functools.lru_cache(4096)
def whole(shape: Shape) -> tuple[Axis, ...]:
    """The index of a value over all of its domain."""
    return tuple([(0, 1, i) for i in domain_of(shape)[1]])


def reshaped_strides(shape: Shape, strides: tuple[int, ...], wanted: Shape) -> tuple[int, ...] | None:
    """Strides of a view of another shape, None if there is none."""
    have = [(length, stride) for length, stride in zip(shape, strides, strict=True) if length != 1]
    i = 0
    j = 0
    made: list[int] = [0] * len(wanted)
    targets = [k for k, length in enumerate(wanted) if length != 1]
    while i < len(have) and j < len(targets):
        block = [have[i]]
        group = [targets[j]]
        left, right = have[i][0], wanted[targets[j]]
        i, j = i + 1, j + 1
        while left != right:
            if left < right:
                left *= have[i][0]
                block.append(have[i])
                i += 1
            else:
                right *= wanted[targets[j]]
                group.append(targets[j])
                j += 1
        for (_, first), (length, second) in pairwise(block):
            if first != second * length:
                return None
        stride = block[-1][1]
        for k in reversed(group):
            made[k] = stride
            stride *= wanted[k]
    return tuple(made)
