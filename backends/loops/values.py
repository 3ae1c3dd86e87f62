"""Arrays of fused code: views of roots, which are registers of a nest, elements in memory, or both."""

from __future__ import annotations

import functools
from itertools import pairwise
from typing import Any, TypeAlias

from func.backends.loops.kernels import DType, Register, Shape, StridedRef
from func.backends.records import Record


class Root(Record):
    """The result of an operation over a domain, a shape without axes of length one.

    It is in a register of a stage of a nest, in memory at `ref`, or both.
    """

    domain: Shape
    dtype: DType
    register: Register | None = None
    nest: int = -1
    stage: int = -1
    is_row: bool = False
    """Whether the register belongs to the rows: by a reduction of `stage`, or in a stage that is not inner."""
    ref: StridedRef | None = None
    ready: int = -1
    """The item after which reads of `ref` are valid."""


Axis: TypeAlias = tuple[int, int, int | None]


class ArrayValue(Record):
    """An array. Element i is that of the root at index start + step * i[dim] for each (start, step, dim) of `index`, at
    start if dim is None. A uniform array has a number and no root.
    """

    shape: Shape
    dtype: DType
    root: Root | None = None
    index: tuple[Axis, ...] = ()
    number: Any = None


def uniform(number: Any, dtype: DType, shape: Shape = ()) -> ArrayValue:
    """An array whose elements are all one number."""
    return ArrayValue(shape, dtype, None, (), number)


@functools.lru_cache(4096)
def domain_of(shape: Shape) -> tuple[Shape, tuple[int, ...]]:
    """A shape without its axes of length one, and the axes that remain."""
    axes = [axis for axis, length in enumerate(shape) if length != 1]
    return tuple([shape[axis] for axis in axes]), tuple(axes)


@functools.lru_cache(4096)
def whole(shape: Shape) -> tuple[Axis, ...]:
    """The index of a value over all of its domain."""
    return tuple([(0, 1, axis) for axis in domain_of(shape)[1]])


def reshaped_strides(shape: Shape, strides: tuple[int, ...], new_shape: Shape) -> tuple[int, ...] | None:
    """The strides of a view with another shape, None if there is none."""
    sources = [(length, stride) for length, stride in zip(shape, strides, strict=True) if length != 1]
    targets = [axis for axis, length in enumerate(new_shape) if length != 1]
    new_strides: list[int] = [0] * len(new_shape)
    i = 0
    j = 0
    while i < len(sources) and j < len(targets):
        block = [sources[i]]
        group = [targets[j]]
        left, right = sources[i][0], new_shape[targets[j]]
        i, j = i + 1, j + 1
        while left != right:
            if left < right:
                left *= sources[i][0]
                block.append(sources[i])
                i += 1
            else:
                right *= new_shape[targets[j]]
                group.append(targets[j])
                j += 1
        for (_, outer), (length, inner) in pairwise(block):
            if outer != inner * length:
                return None
        stride = block[-1][1]
        for axis in reversed(group):
            new_strides[axis] = stride
            stride *= new_shape[axis]
    return tuple(new_strides)
