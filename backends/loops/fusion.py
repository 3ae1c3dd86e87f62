"""Fusion: array operations in program order become loop nests with as few passes over memory as the data flow allows.

A `Val` is a view of a `Root`. A root is a value of the present body (a register, somewhere in a stage of a nest), or
lies in memory, or both. Each operation goes into the first nest with its domain that runs late enough; a register that
is needed in another nest is stored there and then. So what is used only inside its loop never reaches memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from func.backends.loops.kernels import (
    Accumulate,
    Apply,
    Buffer,
    DType,
    DynamicIndex,
    Instruction,
    LoadAt,
    Operand,
    Position,
    Reduce,
    Reg,
    Shape,
    StoreAt,
    StridedRef,
    row_major,
)
from func.backends.loops.value_storage import Placement
from func.backends.loops.values import Axis, Root, Val, domain_of, reshaped_strides
from func.backends.shapes import broadcast_shape


class Fuser(Placement):
    """Builds the items of one body."""

    # --- views --------------------------------------------------------------------------------------------------

    def broadcast(self, x: Val, shape: Shape) -> Val:
        """x repeated to a shape that its own ends."""
        if x.root is None:
            return Val(shape, x.dtype, None, (), x.literal)
        lead = len(shape) - len(x.shape)
        index: list[Axis] = []
        for start, step, dim in x.index:
            fixed = dim is None or x.shape[dim] == 1 != shape[dim + lead]
            index.append((start, 0, None) if fixed else (start, step, dim + lead))  # type: ignore[operator]
        return Val(shape, x.dtype, x.root, tuple(index))

    def permute(self, x: Val, order: Sequence[int]) -> Val:
        """Axis i of the result is axis order[i] of x."""
        place = {axis: i for i, axis in enumerate(order)}
        index = tuple([(start, step, None if dim is None else place[dim]) for start, step, dim in x.index])
        return Val(tuple([x.shape[axis] for axis in order]), x.dtype, x.root, index, x.literal)

    def slices(self, x: Val, entries: Sequence[tuple[int, int, int] | int | None]) -> Val:
        """Basic indexing. An entry for every axis, (start, step, length) or a position; None makes a new axis."""
        shape: list[int] = []
        moved: dict[int, tuple[int, int, int | None]] = {}
        axis = 0
        for entry in entries:
            if entry is None:
                shape.append(1)
                continue
            if isinstance(entry, tuple):
                moved[axis] = (entry[0], entry[1], len(shape))
                shape.append(entry[2])
            else:
                moved[axis] = (entry, 0, None)
            axis += 1
        index: list[Axis] = []
        for start, step, dim in x.index:
            if dim is None:
                index.append((start, 0, None))
                continue
            first, stride, to = moved[dim]
            index.append((start + step * first, step * stride, to))
        return Val(tuple(shape), x.dtype, x.root, tuple(index), x.literal)

    def reshape(self, x: Val, shape: Shape) -> Val:
        """The same elements in row-major order; what lies scattered is copied."""
        if x.root is None:
            return Val(shape, x.dtype, None, (), x.literal)
        if x.shape == shape:
            return x
        squeezed = [i for i, length in enumerate(x.shape) if length != 1]
        wanted = [i for i, length in enumerate(shape) if length != 1]
        if [x.shape[i] for i in squeezed] == [shape[i] for i in wanted]:
            place: dict[int | None, int | None] = dict(zip(squeezed, wanted, strict=True))
            index = tuple([(a, b if place.get(d) is not None else 0, place.get(d)) for a, b, d in x.index])
            return Val(shape, x.dtype, x.root, index)
        ref = self.ref(x)
        strides = reshaped_strides(x.shape, ref.strides, shape)
        if strides is None:
            ref = self.ref(self.copied(x))
            strides = row_major(shape)
        found = self.located(ref.buffer, shape, strides, ref.offset)
        found.root.ready = self._ready_of(x, ref)  # type: ignore[union-attr]
        return found

    def seen(self, x: Val, shape: Shape, strides: tuple[int, ...], offset: int) -> Val:
        """The memory of an array as another one, whose elements may coincide."""
        ref = self.ref(x)
        found = self.located(ref.buffer, shape, strides, offset)
        found.root.ready = self._ready_of(x, ref)  # type: ignore[union-attr]
        return found

    # --- operations ---------------------------------------------------------------------------------------------

    def map(self, op: str, args: Sequence[Val], dtype: DType) -> Val:
        """op element by element, on arrays that broadcast."""
        shape = broadcast_shape([x.shape for x in args])
        place = self._place(shape, args)
        return self._mapped(place, shape, args, dtype, lambda out, regs: Apply(out, op, regs))

    def position(self, shape: Shape, axis: int) -> Val:
        """The index along an axis of a shape, at every element."""
        dtype = np.dtype(np.int64)
        if shape[axis] == 1:
            return Val(shape, dtype, None, (), 0)
        _, kept = domain_of(shape)
        place = self._place(shape, [])
        return self._mapped(place, shape, [], dtype, lambda out, regs: Position(out, kept.index(axis)))

    def take(self, x: Val, picks: Sequence[tuple[Val, int, int]], shape: Shape, rest: tuple[int, ...]) -> Val:
        """x at dynamic indices: (index, axis length, stride) each; `rest` are the strides of x by the axes of
        `shape`."""
        ref = self.ref(x)
        indices = [index for index, _, _ in picks]
        place = self._place(shape, indices, after=self._ready_of(x, ref))
        _, kept = domain_of(shape)
        here = StridedRef(ref.buffer, ref.offset, tuple([rest[i] for i in kept]))

        def made(out: Reg, regs: tuple[Operand, ...]) -> Instruction:
            found = [DynamicIndex(reg, length, stride) for reg, (_, length, stride) in zip(regs, picks, strict=True)]
            return LoadAt(out, here, tuple(found))

        return self._mapped(place, shape, indices, x.dtype, made)

    def put(self, target: Val, picks: Sequence[tuple[Val, int, int]], rest: tuple[int, ...], x: Val, adds: bool) -> Val:
        """Write x (or add it) into the memory of `target` at dynamic indices; `rest`: strides by the axes of x."""
        ref = self.ref(target)
        indices = [index for index, _, _ in picks]
        args = [*indices, x]
        place = self._place(x.shape, args, after=self._ready_of(target, ref), alone=True)
        stage = self._inner_stage(place, 0)
        regs = [self._operand(place, stage, arg, x.shape) for arg in args]
        found = [DynamicIndex(reg, length, stride) for reg, (_, length, stride) in zip(regs, picks, strict=False)]
        _, kept = domain_of(x.shape)
        here = StridedRef(ref.buffer, ref.offset, tuple([rest[i] for i in kept]))
        self._emit(place, stage, StoreAt(here, tuple(found), regs[-1], adds))
        self.written(ref.buffer, place)
        written = self.located(ref.buffer, target.shape, ref.strides, ref.offset)
        written.root.ready = place  # type: ignore[union-attr]
        return written

    def embedded(self, x: Val, shape: Shape, entries: Sequence[tuple[int, int, int] | int | None], fill: Any) -> Val:
        """An array full of one number, but for a view in which x stands."""
        buffer = Buffer(math.prod(shape), x.dtype)
        whole = self.located(buffer, shape)
        place = self.write(self.slices(whole, entries), x)
        self._nest(place).starts.append((buffer, fill))
        whole.root.ready = place  # type: ignore[union-attr]
        return whole

    def overwritten(self, whole: Val, entries: Sequence[tuple[int, int, int] | int | None], x: Val) -> Val:
        """The memory of an array with x written over a view of it."""
        assert whole.root is not None
        ref = self.ref(whole)
        place = self.write(self.slices(whole, entries), x)
        made = self.located(ref.buffer, whole.shape, ref.strides, ref.offset)
        made.root.ready = place  # type: ignore[union-attr]
        return made

    def joined(self, parts: Sequence[Val], axis: int, shape: Shape) -> Val:
        """Arrays behind one another along an axis."""
        whole = self.located(Buffer(math.prod(shape), parts[0].dtype), shape)
        start = 0
        ready = -1
        for part in parts:
            length = part.shape[axis]
            entries: list[Any] = [(0, 1, one) for one in shape]
            entries[axis] = (start, 1, length)
            ready = max(ready, self.write(self.slices(whole, entries), part))
            start += length
        whole.root.ready = ready  # type: ignore[union-attr]
        return whole

    def reduce(self, op: str, x: Val, axes: Sequence[int], start: Any) -> Val:
        """op over axes of x; `start` is its neutral element."""
        domain, kept = domain_of(x.shape)
        out_shape = tuple([length for i, length in enumerate(x.shape) if i not in axes])
        summed = [place for place, axis in enumerate(kept) if axis in axes]
        left = [place for place in range(len(domain)) if place not in summed]
        if not summed:
            return self.reshape(x, out_shape)
        if 0 in domain:
            return Val(out_shape, x.dtype, None, (), start)
        trailing = summed == list(range(len(left), len(domain)))
        wished = len(left) if trailing and x.root is not None and x.root.reg is None else None
        place = self._place(x.shape, [x], outer=wished, rows=False)
        nest = self._nest(place)
        stage = self._inner_stage(place, self._bound(place, [x]))
        value = self._operand(place, stage, x, x.shape)
        row = tuple([domain[i] for i in left])
        if trailing and nest.outer in (None, len(left)):
            if nest.outer is None:
                nest.outer = len(left)
                self._known_at(row, place)
            reg = self._reg(x.dtype)
            self._emit(place, stage, Reduce(reg, op, value), reg)
            root = self._roots[id(reg)] = Root(row, x.dtype, reg, place, stage, True)
        else:
            buffer = Buffer(math.prod(row), x.dtype)
            strides = [0] * len(domain)
            for axis, stride in zip(left, row_major(row), strict=True):
                strides[axis] = stride
            nest.starts.append((buffer, start))
            self._emit(place, stage, Accumulate(StridedRef(buffer, 0, tuple(strides)), op, value))
            root = Root(row, x.dtype, ref=StridedRef(buffer, 0, row_major(row)), ready=place)
            self.written(buffer, place)
        places = [i for i, length in enumerate(out_shape) if length != 1]
        return Val(out_shape, x.dtype, root, tuple([(0, 1, i) for i in places]))
