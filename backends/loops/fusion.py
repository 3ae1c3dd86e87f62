"""Fusion: array operations in program order become loop nests with as few passes over memory as the data flow allows.

An operation goes into the first nest with its domain that runs late enough (`schedule.py`). A value used only inside
its nest never reaches memory; one for another nest is recomputed there, or stored (`value_storage.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from func.backends.array_helpers.arrays import broadcast_shape
from func.backends.loops import kernels
from func.backends.loops.kernels import Accumulate, Apply, Buffer, DType, DynamicIndex, Instruction, LoadAt, Operand
from func.backends.loops.schedule import Schedule
from func.backends.loops.value_storage import ValueStorage
from func.backends.loops.values import ArrayValue, Axis, Root, domain_of, reshaped_strides, uniform, whole

BasicIndex: TypeAlias = Sequence[tuple[int, int, int] | int | None]
"""An entry for every axis, (start, step, length) or a position; None makes a new axis."""


class Fuser:
    """Turns array operations into instructions of one body: of nests in its schedule, on values in its storage."""

    def __init__(self) -> None:
        self.schedule = Schedule()
        self.storage = ValueStorage(self.schedule)

    def broadcast(self, x: ArrayValue, shape: kernels.Shape) -> ArrayValue:
        """x repeated to a shape."""
        if x.root is None:
            return uniform(x.number, x.dtype, shape)
        lead = len(shape) - len(x.shape)
        index: list[Axis] = []
        for start, step, dim in x.index:
            if dim is None or x.shape[dim] == 1 != shape[dim + lead]:
                index.append((start, 0, None))
            else:
                index.append((start, step, dim + lead))
        return ArrayValue(shape, x.dtype, x.root, tuple(index))

    def late(self, x: ArrayValue) -> ArrayValue:
        """The same array in memory, which nothing before the last item so far may read."""
        if x.root is None:
            return x
        ref = self.storage.stored(x.root)
        ready = max(x.root.ready, len(self.schedule.items) - 2)
        return x.with_fields(root=Root(x.root.domain, x.root.dtype, ref=ref, ready=ready))

    def permute(self, x: ArrayValue, order: Sequence[int]) -> ArrayValue:
        """Axis i of the result is axis order[i] of x."""
        place = {axis: i for i, axis in enumerate(order)}
        index = tuple([(start, step, None if dim is None else place[dim]) for start, step, dim in x.index])
        return ArrayValue(tuple([x.shape[axis] for axis in order]), x.dtype, x.root, index, x.number)

    def slices(self, x: ArrayValue, entries: BasicIndex) -> ArrayValue:
        """Basic indexing."""
        shape: list[int] = []
        new_axes: dict[int, Axis] = {}
        axis = 0
        for entry in entries:
            if entry is None:
                shape.append(1)
                continue
            if isinstance(entry, tuple):
                new_axes[axis] = (entry[0], entry[1], len(shape))
                shape.append(entry[2])
            else:
                new_axes[axis] = (entry, 0, None)
            axis += 1
        index: list[Axis] = []
        for start, step, dim in x.index:
            if dim is None:
                index.append((start, 0, None))
            else:
                first, stride, new_dim = new_axes[dim]
                index.append((start + step * first, step * stride, new_dim))
        return ArrayValue(tuple(shape), x.dtype, x.root, tuple(index), x.number)

    def reshape(self, x: ArrayValue, shape: kernels.Shape) -> ArrayValue:
        """The same elements in row-major order; copied if no view has them so."""
        if x.root is None:
            return uniform(x.number, x.dtype, shape)
        if x.shape == shape:
            return x
        lengths, axes = domain_of(x.shape)
        new_lengths, new_axes = domain_of(shape)
        if lengths == new_lengths:
            place: dict[int | None, int | None] = dict(zip(axes, new_axes, strict=True))
            index = tuple([(start, step, place.get(dim)) for start, step, dim in x.index])
            return ArrayValue(shape, x.dtype, x.root, index)
        ref = self.storage.ref(x)
        strides = reshaped_strides(x.shape, ref.strides, shape)
        if strides is None:
            ref = self.storage.ref(self.storage.copied(x))
            strides = kernels.row_major(shape)
        return self.storage.located(ref.buffer, shape, strides, ref.offset, self.storage.last_change(x, ref))

    def strided(self, x: ArrayValue, shape: kernels.Shape, strides: tuple[int, ...], offset: int) -> ArrayValue:
        """A view of the memory of an array by other strides, whose elements may overlap."""
        ref = self.storage.ref(x)
        return self.storage.located(ref.buffer, shape, strides, offset, self.storage.last_change(x, ref))

    def map(self, op: str, args: Sequence[ArrayValue], dtype: DType) -> ArrayValue:
        """op element by element, on arrays that broadcast."""
        shape = broadcast_shape([x.shape for x in args])
        nest = self.schedule.find_nest(shape, args)
        return self._emit(nest, shape, args, dtype, lambda out, operands: Apply(out, op, operands))

    def position(self, shape: kernels.Shape, axis: int) -> ArrayValue:
        """The index along an axis of a shape, at every element."""
        dtype = np.dtype(np.int64)
        if shape[axis] == 1:
            return uniform(0, dtype, shape)
        place = domain_of(shape)[1].index(axis)
        nest = self.schedule.find_nest(shape, [])
        return self._emit(nest, shape, [], dtype, lambda out, operands: kernels.Position(out, place))

    def _emit(
        self,
        nest: int,
        shape: kernels.Shape,
        args: Sequence[ArrayValue],
        dtype: DType,
        instruction: Callable[[kernels.Register, tuple[Operand, ...]], Instruction],
    ) -> ArrayValue:
        """The values of an instruction at every index of a shape."""
        domain, _ = domain_of(shape)
        is_row = domain != self.schedule.nest(nest).domain
        stage = self.schedule.stage_for(nest, shape, args)
        operands = tuple([self.storage.operand(nest, stage, x, shape) for x in args])
        out = self.schedule.new_register(dtype)
        self.schedule.emit(nest, stage, instruction(out, operands), out)
        root = self.schedule.roots[id(out)] = Root(domain, dtype, out, nest, stage, is_row)
        return ArrayValue(shape, dtype, root, whole(shape))

    def take(
        self, x: ArrayValue, indices: Sequence[tuple[ArrayValue, int, int]], shape: kernels.Shape, rest: tuple[int, ...]
    ) -> ArrayValue:
        """x at dynamic indices: (index, axis length, stride) each; `rest` are the strides of x by the axes of
        `shape`."""
        ref = self.storage.ref(x)
        positions = [position for position, _, _ in indices]
        nest = self.schedule.find_nest(shape, positions, after=self.storage.last_change(x, ref))
        by_domain = _by_domain(ref, shape, rest)
        return self._emit(
            nest, shape, positions, x.dtype, lambda out, operands: LoadAt(out, by_domain, _dynamic(operands, indices))
        )

    def put(
        self,
        target: ArrayValue,
        indices: Sequence[tuple[ArrayValue, int, int]],
        rest: tuple[int, ...],
        x: ArrayValue,
        adds: bool,
    ) -> ArrayValue:
        """Write x (or add it) into the memory of `target` at dynamic indices; `rest`: strides by the axes of x."""
        ref = self.storage.ref(target)
        args = [*[position for position, _, _ in indices], x]
        nest = self.schedule.find_nest(x.shape, args, after=self.storage.last_change(target, ref), new=True)
        stage = self.schedule.stage_from(nest, 0, True)
        *positions, value = [self.storage.operand(nest, stage, arg, x.shape) for arg in args]
        store = kernels.StoreAt(_by_domain(ref, x.shape, rest), _dynamic(positions, indices), value, adds)
        self.schedule.emit(nest, stage, store)
        self.schedule.note_write(ref.buffer, nest)
        return self.storage.located(ref.buffer, target.shape, ref.strides, ref.offset, nest)

    def embedded(self, x: ArrayValue, shape: kernels.Shape, entries: BasicIndex, fill: Any) -> ArrayValue:
        """An array full of one number, with x in a view of it."""
        array = self.storage.located(Buffer(math.prod(shape), x.dtype), shape)
        assert array.root is not None and array.root.ref is not None
        nest = array.root.ready = self.storage.write(self.slices(array, entries), x)
        self.schedule.nest(nest).fills.append((array.root.ref.buffer, fill))
        return array

    def overwritten(self, array: ArrayValue, entries: BasicIndex, x: ArrayValue) -> ArrayValue:
        """The memory of an array with x written over a view of it."""
        ref = self.storage.ref(array)
        nest = self.storage.write(self.slices(array, entries), x)
        return self.storage.located(ref.buffer, array.shape, ref.strides, ref.offset, nest)

    def joined(self, parts: Sequence[ArrayValue], axis: int, shape: kernels.Shape) -> ArrayValue:
        """Arrays one after the other along an axis."""
        array = self.storage.located(Buffer(math.prod(shape), parts[0].dtype), shape)
        assert array.root is not None
        start = 0
        ready = -1
        for part in parts:
            entries: list[Any] = [(0, 1, length) for length in shape]
            entries[axis] = (start, 1, part.shape[axis])
            ready = max(ready, self.storage.write(self.slices(array, entries), part, is_apart=True))
            start += part.shape[axis]
        array.root.ready = ready
        return array

    def reduce(self, op: str, x: ArrayValue, axes: Sequence[int], start: Any) -> ArrayValue:
        """op over axes of x; `start` is its neutral element."""
        domain, domain_axes = domain_of(x.shape)
        out_shape = tuple([length for axis, length in enumerate(x.shape) if axis not in axes])
        reduced = [dim for dim, axis in enumerate(domain_axes) if axis in axes]
        left = [dim for dim in range(len(domain)) if dim not in reduced]
        if not reduced:
            return self.reshape(x, out_shape)
        if 0 in domain:
            return uniform(start, x.dtype, out_shape)
        is_trailing = reduced == list(range(len(left), len(domain)))
        outer = len(left) if is_trailing and x.root is not None and x.root.register is None else None
        number = self.schedule.find_nest(x.shape, [x], outer=outer, rows=False)
        nest = self.schedule.nest(number)
        stage = self.schedule.inner_stage_for(number, [x])
        value = self.storage.operand(number, stage, x, x.shape)
        row = tuple([domain[dim] for dim in left])
        if is_trailing and nest.outer in (None, len(left)):
            if nest.outer is None:
                nest.outer = len(left)
                self.schedule.open_rows(number, row)
            out = self.schedule.new_register(x.dtype)
            self.schedule.emit(number, stage, kernels.Reduce(out, op, value), out)
            root = self.schedule.roots[id(out)] = Root(row, x.dtype, out, number, stage, True)
        else:
            buffer = Buffer(math.prod(row), x.dtype)
            strides = [0] * len(domain)
            for dim, stride in zip(left, kernels.row_major(row), strict=True):
                strides[dim] = stride
            nest.fills.append((buffer, start))
            self.schedule.emit(number, stage, Accumulate(kernels.StridedRef(buffer, 0, tuple(strides)), op, value))
            self.schedule.note_write(buffer, number)
            root = Root(row, x.dtype, ref=kernels.StridedRef(buffer, 0, kernels.row_major(row)), ready=number)
        return ArrayValue(out_shape, x.dtype, root, whole(out_shape))


def _by_domain(ref: kernels.StridedRef, shape: kernels.Shape, strides: Sequence[int]) -> kernels.StridedRef:
    """The place of a reference with strides by the axes of a shape, by loops over its domain."""
    return kernels.StridedRef(ref.buffer, ref.offset, tuple([strides[axis] for axis in domain_of(shape)[1]]))


def _dynamic(positions: Sequence[Operand], indices: Sequence[tuple[ArrayValue, int, int]]) -> tuple[DynamicIndex, ...]:
    return tuple(
        [
            DynamicIndex(position, length, stride)
            for position, (_, length, stride) in zip(positions, indices, strict=True)
        ]
    )
