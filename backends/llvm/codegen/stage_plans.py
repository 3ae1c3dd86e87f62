"""Plans for the loops of a stage: the depth of each instruction, the vector width, blocks and tiles."""

from __future__ import annotations

import math
from typing import NamedTuple

from func.backends.llvm.codegen.counted_loops import LoopChunk
from func.backends.llvm.codegen.pairwise_sums import BLOCK, LONG
from func.backends.loops import kernels
from func.backends.loops.chunking import length_of, stage_groups
from func.backends.loops.memory_dependence import may_alias
from func.backends.loops.traversal import refs_of
from func.backends.scalars.ir_values import part_of

LIGHT, MIDDLE = 32, 200
"""Instructions of the longest bodies that take four, and two, registers at a time in long loops."""
LONG_LOOP = 512
"""Elements from which a loop is long."""
SHORT = 12, 40
"""LIGHT and MIDDLE for other loops."""
TWICE = 40
"""Instructions of the longest body that is emitted twice."""
LINE = 64
"""Bytes of a cache line."""
REACH = 1 << 22
"""Span in bytes of distant elements from which a tile takes several cache lines, so that pages stay in the TLB."""
FAR = 16
"""Steps from which a loop is worth tiling."""
MOST_LINES = 8
"""Lines of one array that stay in the cache at any distance."""


class LoopBlocks(NamedTuple):
    """The loop that is cut into blocks, the steps of a block, and the largest number of blocks."""

    depth: int
    steps: int
    most: int


class Tile(NamedTuple):
    """A loop that runs `steps` steps at a time inside the innermost one. Elements that are distant along the innermost
    dimension are adjacent along this loop's, so the code uses each loaded cache line completely.
    """

    depth: int
    steps: int


def accumulated(instruction: kernels.Reduce | kernels.Running | kernels.Accumulate) -> kernels.DType:
    """The dtype of an accumulator."""
    return instruction.ref.buffer.dtype if isinstance(instruction, kernels.Accumulate) else instruction.out.dtype


def is_sum(instruction: kernels.Instruction) -> bool:
    """Whether an instruction sums values with rounding."""
    return (
        isinstance(instruction, (kernels.Reduce, kernels.Accumulate))
        and instruction.op == "add"
        and accumulated(instruction).kind in "fc"
    )


class StagePlan:
    """The loops of a stage, outermost first: the last dimension of each (`dims`), and the number of its runs
    (`lengths`). `levels` has the instructions by the number of loops around them."""

    def __init__(
        self, nest: kernels.LoopNest, stage: kernels.NestStage, loop_chunk: LoopChunk | None, bits: int
    ) -> None:
        groups = stage_groups(nest, stage)
        self.loop_chunk = loop_chunk
        self.bits = bits
        self.dims = [group[-1] for group in groups]
        self.lengths = [length_of(nest, group) for group in groups]
        self.tile = self._tile(nest, stage)
        self.levels = self._levels(stage)
        self.width = self._width()
        self.block = self._block()

    def _tile(self, nest: kernels.LoopNest, stage: kernels.NestStage) -> Tile | None:
        """The loop to run inside the innermost one; None if tiling is useless or not allowed."""
        if len(self.dims) < 2 or self.lengths[-1] < FAR:
            return None
        tile = next(filter(None, map(self._nearest, refs_of(stage.code))), None)
        if tile is None or not all([self._in_any_order(nest, stage, instruction, tile) for instruction in stage.code]):
            return None
        return tile

    def _nearest(self, ref: kernels.StridedRef) -> Tile | None:
        """The loop along which elements of a reference are adjacent, if they are far apart along the innermost one."""
        size = ref.buffer.dtype.itemsize
        far = abs(ref.strides[self.dims[-1]]) * size
        if far < LINE:
            return None
        together = LINE if far * self.lengths[-1] < REACH else 4 * LINE
        for depth in reversed(range(len(self.dims) - 1)):
            step = abs(ref.strides[self.dims[depth]]) * size
            if 0 < step < LINE and self.lengths[depth] >= FAR:
                return Tile(depth, together // step)
        return None

    def _in_any_order(
        self, nest: kernels.LoopNest, stage: kernels.NestStage, instruction: kernels.Instruction, tile: Tile
    ) -> bool:
        """Whether an instruction may run in the order of the tile."""
        if isinstance(instruction, (kernels.StoreAt, kernels.Running)) or (
            is_sum(instruction) and not self.moves(instruction)
        ):
            return False
        if isinstance(instruction, kernels.Accumulate):
            return self.moves(instruction) or not instruction.ref.strides[self.dims[tile.depth]]
        if isinstance(instruction, kernels.Store):
            uses = [ref for ref in refs_of(stage.code) if ref.buffer.storage is instruction.ref.buffer.storage]
            inner = range(nest.outer or 0, len(nest.domain))
            return len(uses) == 1 and not may_alias(nest.domain, instruction.ref, instruction.ref, inner)
        return True

    def _levels(self, stage: kernels.NestStage) -> list[list[kernels.Instruction]]:
        """The instructions by the number of loops that they depend on."""
        depth: dict[int, int] = {}
        levels: list[list[kernels.Instruction]] = [[] for _ in range(len(self.dims) + 1)]

        def of(x: kernels.Operand) -> int:
            return 0 if isinstance(x, kernels.Literal) else depth.get(id(x), 0)

        def of_ref(ref: kernels.StridedRef) -> int:
            varying = [i + 1 for i, axis in enumerate(self.dims) if ref.strides[axis]]
            return max(varying, default=0)

        written = {
            id(instruction.ref.buffer)
            for instruction in stage.code
            if isinstance(instruction, (kernels.Store, kernels.StoreAt, kernels.Accumulate))
        }
        for instruction in stage.code:
            if isinstance(instruction, kernels.Load):
                level = len(self.dims) if id(instruction.ref.buffer) in written else of_ref(instruction.ref)
            elif isinstance(instruction, kernels.Position):
                level = self.dims.index(instruction.axis) + 1 if instruction.axis in self.dims else 0
            elif isinstance(instruction, kernels.Apply):
                level = max([of(x) for x in instruction.args], default=0)
            elif isinstance(instruction, kernels.LoadAt):
                level = max(of_ref(instruction.ref), *[of(index.value) for index in instruction.indices])
            else:
                level = len(self.dims)
            if self.tile is not None and level > self.tile.depth:
                level = len(self.dims)
            if isinstance(
                instruction, (kernels.Load, kernels.Position, kernels.Apply, kernels.LoadAt, kernels.Running)
            ):
                depth[id(instruction.out)] = level
            levels[level].append(instruction)
        return levels

    def _width(self) -> int:
        """The number of elements per vector."""
        if not self.dims:
            return 1
        code = self.levels[-1]
        sizes = [
            part_of(instruction.out.dtype).itemsize
            for instruction in code
            if isinstance(instruction, (kernels.Load, kernels.Apply, kernels.LoadAt, kernels.Position))
        ]
        sizes += [
            part_of(instruction.ref.buffer.dtype).itemsize
            for instruction in code
            if isinstance(instruction, (kernels.Store, kernels.Accumulate))
        ]
        if any([isinstance(instruction, (kernels.StoreAt, kernels.Running)) for instruction in code]):
            return 1
        native = self.bits // (8 * max(sizes, default=8))
        if self.tile is not None:
            return min(native, MOST_LINES)
        light, middle = (LIGHT, MIDDLE) if math.prod(self.lengths) >= LONG_LOOP else SHORT
        times = 4 if len(code) <= light else 2 if len(code) <= middle else 1
        width = native * times
        length = self.lengths[-1]
        if self.loop_chunk is not None and self.loop_chunk.axis == self.dims[-1]:
            length //= 2 * self.loop_chunk.chunks
        while width > native and width > length:
            width //= 2
        return max(1, min(width, length))

    def _block(self) -> LoopBlocks | None:
        """The loop to cut into blocks for accurate sums; None without long sums."""
        if not self.dims or not any(
            [is_sum(instruction) and not self.moves(instruction) for instruction in self.levels[-1]]
        ):
            return None
        counts = [*self.lengths[:-1], -(-self.lengths[-1] // self.width)]
        if self.loop_chunk is not None and self.loop_chunk.axis in self.dims:
            depth = self.dims.index(self.loop_chunk.axis)
            counts[depth] = -(-counts[depth] // self.loop_chunk.chunks)
        for depth in reversed(range(len(counts))):
            inside = math.prod(counts[depth + 1 :])
            if counts[depth] * inside >= LONG:
                count = max(1, BLOCK // inside)
                return LoopBlocks(depth, count, math.prod(counts[:depth]) * (counts[depth] // count + 2))
        return None

    def moves(self, instruction: kernels.Instruction) -> bool:
        """Whether an instruction accumulates in another element at every step of the innermost loop."""
        return isinstance(instruction, kernels.Accumulate) and instruction.ref.strides[self.dims[-1]] != 0
