"""Sines and cosines of straight-line code in batches, for exported code.

A compiler vectorizes a loop of sines, but calls a library for each single one. Code with arguments independent of other
sines becomes three parts. One stores the arguments, a routine takes all sines and cosines, and the code itself loads
them. In a loop over steps, the first part is a loop, too: it runs the carried values for the arguments ahead, on
copies.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from func.backends.loops import kernels
from func.backends.loops.kernels import Apply, Buffer, Copy, CountedLoop, Instruction, Item, LibraryCall, Literal, Load
from func.backends.loops.traversal import bodies_of

LANES = 8
"""Arguments from which a batch is worth its memory, and a multiple of which it has."""
SINES = ("sin", "cos")
DOUBLE = np.dtype(np.float64)


def batch_sines(items: list[Item]) -> None:
    """Take the sines of straight-line code, and of loops of such code, in batches."""
    place = 0
    while place < len(items):
        item = items[place]
        parts: list[Item] | None = None
        if isinstance(item, CountedLoop) and len(item.body) == 1 and not item.ahead:
            (body,) = item.body
            parts = _Batch(body, item).parts() if isinstance(body, kernels.LoopNest) else None
        elif isinstance(item, kernels.LoopNest):
            parts = _Batch(item, None).parts()
        if parts is None:
            for inner in bodies_of(item):
                batch_sines(inner)
            parts = [item]
        items[place : place + 1] = parts
        place += len(parts)


class _Batch:
    """The sines of one nest, in a loop or not."""

    def __init__(self, nest: kernels.LoopNest, loop: CountedLoop | None) -> None:
        self.nest, self.loop = nest, loop
        self.code = nest.code
        self.length = 1 if loop is None else loop.length
        self.slices: set[int] = set() if loop is None else {id(view) for view in loop.slices}

    def parts(self) -> list[Item] | None:
        """The three parts, and copies of the carry; None without a batch."""
        if self.nest.domain != () or self.nest.fills or len(self.nest.stages) != 1:
            return None
        if not all([isinstance(instruction, (Load, Apply, kernels.Store)) for instruction in self.code]):
            return None
        self.makers: dict[int, Load | Apply] = {
            id(instruction.out): instruction for instruction in self.code if isinstance(instruction, (Load, Apply))
        }
        self.stores = [instruction for instruction in self.code if isinstance(instruction, kernels.Store)]
        places = {id(instruction): place for place, instruction in enumerate(self.code)}
        self.places = places
        arguments: dict[int, kernels.Register] = {}
        needed: dict[int, Instruction] = {}
        for instruction in self.code:
            if isinstance(instruction, Apply) and instruction.op in SINES and instruction.out.dtype == DOUBLE:
                (x,) = instruction.args
                if isinstance(x, kernels.Register) and id(x) not in arguments:
                    instructions = self._needed(x)
                    if instructions is not None:
                        arguments[id(x)] = x
                        needed |= instructions
        if len(arguments) * self.length < LANES:
            return None
        ahead = sorted(needed.values(), key=lambda instruction: places[id(instruction)])
        return self._split(arguments, ahead)

    def _needed(self, x: kernels.Register) -> dict[int, Instruction] | None:
        """The instructions that compute a value in all steps; None if another sine is among them, or memory that may
        have changed.
        """
        needed_instructions: dict[int, Instruction] = {}
        waiting: list[kernels.Operand] = [x]
        while waiting:
            value = waiting.pop()
            if isinstance(value, Literal):
                continue
            maker = self.makers[id(value)]
            if id(maker) in needed_instructions:
                continue
            needed_instructions[id(maker)] = maker
            if isinstance(maker, Apply):
                if maker.op in SINES:
                    return None
                waiting += maker.args
                continue
            for store in self._stores_to(maker.ref):
                is_carried = (
                    self.loop is not None
                    and store.ref.buffer is maker.ref.buffer
                    and id(maker.ref.buffer) not in self.slices
                    and self.places[id(store)] > self.places[id(maker)]
                )
                if not is_carried:
                    return None
                if store.ref.offset == maker.ref.offset:
                    needed_instructions[id(store)] = store
                    waiting.append(store.value)
        return needed_instructions

    def _stores_to(self, ref: kernels.StridedRef) -> list[kernels.Store]:
        return [store for store in self.stores if store.ref.buffer.storage is ref.buffer.storage]

    def _split(self, arguments: dict[int, kernels.Register], ahead: Sequence[Instruction]) -> list[Item]:
        count = len(arguments)
        size = count * self.length if self.loop is not None else -(-count // LANES) * LANES
        angles, sines, cosines = [Buffer(size, DOUBLE) for _ in range(3)]
        numbers = {name: place for place, name in enumerate(arguments)}
        views = [buffer if self.loop is None else Buffer(count, DOUBLE, "slice", -1, buffer, 0, count)
                 for buffer in (angles, sines, cosines)]  # fmt: skip
        copies = {id(item.ref.buffer): item.ref.buffer for item in ahead if isinstance(item, kernels.Store)}
        own = {name: Buffer(buffer.size, buffer.dtype) for name, buffer in copies.items()}
        first: list[Instruction] = []
        for item in ahead:
            if isinstance(item, Apply) or id(item.ref.buffer) not in own:  # type: ignore[union-attr]
                first.append(item)
            elif isinstance(item, Load):
                first.append(Load(item.out, kernels.StridedRef(own[id(item.ref.buffer)], item.ref.offset, ())))
            elif isinstance(item, kernels.Store):
                first.append(
                    kernels.Store(kernels.StridedRef(own[id(item.ref.buffer)], item.ref.offset, ()), item.value)
                )
        stored: list[kernels.Operand] = [
            *arguments.values(),
            *[Literal(0.0, DOUBLE)] * (size - count if not self.loop else 0),
        ]
        first += [kernels.Store(kernels.StridedRef(views[0], place, ()), value) for place, value in enumerate(stored)]
        rest: list[Instruction] = []
        for item in self.code:
            if isinstance(item, Apply) and item.op in SINES and id(item.args[0]) in numbers:
                view = views[1 + SINES.index(item.op)]
                rest.append(Load(item.out, kernels.StridedRef(view, numbers[id(item.args[0])], ())))
            else:
                rest.append(item)
        refs = [kernels.StridedRef(buffer, 0, (1,)) for buffer in (sines, cosines, angles)]
        call = LibraryCall("sines", tuple(refs[:2]), (refs[2],), {"batch": (), "n": size})
        opening = kernels.LoopNest((), self.nest.outer, [kernels.NestStage(self.nest.stages[0].inner, first)])
        self.nest.stages = [kernels.NestStage(self.nest.stages[0].inner, rest)]
        if self.loop is None:
            return [opening, call, self.nest]
        used = {id(item.ref.buffer) for item in first if isinstance(item, (Load, kernels.Store))}
        slices = [view for view in [*self.loop.slices, views[0]] if id(view) in used]
        loop = CountedLoop(self.loop.length, self.loop.reverse, [opening], slices)
        self.loop.slices = [*self.loop.slices, *views[1:]]
        return [*[Copy(own[name], copies[name]) for name in own], loop, call, self.loop]
