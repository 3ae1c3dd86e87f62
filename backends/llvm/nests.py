"""Loop nests as LLVM IR: the loops over rows, and the stages inside them."""

from __future__ import annotations

from typing import Any

import numpy as np

from func.backends.division import collapse, strides_of
from func.backends.kernels import Buffer, Instruction, Literal, Nest, Spot, Stage, Store
from func.backends.llvm import text as ir
from func.backends.llvm.bodies import Body, Context
from func.backends.llvm.loops import INDEX, POINTER, Memory, loop, neutral, number
from func.backends.llvm.scalars import Scalars
from func.backends.llvm.stages import StageLoops


class NestPrinter:
    """Emits one nest after the other with a builder."""

    def __init__(self, builder: ir.IRBuilder, scalars: Scalars, memory: Memory, bits: int) -> None:
        self.context = Context(builder, scalars, memory, bits)

    def emit(self, nest: Nest) -> None:
        """All loops of a nest."""
        for buffer, value in nest.starts:
            self.fill(buffer, value)
        if 0 in nest.domain:
            return
        strides = [one for stage in nest.stages for one in strides_of(stage.code, len(nest.domain))]
        self._rows(nest, collapse(nest.domain, strides, 0, nest.outer or 0), [])

    def fill(self, buffer: Buffer, value: Any) -> None:
        """Set all elements of a buffer."""
        if not buffer.size:
            return
        whole = Nest((buffer.size,) if buffer.size > 1 else ())
        code: list[Instruction] = [
            Store(Spot(buffer, 0, (1,) if buffer.size > 1 else ()), Literal(value, buffer.dtype))
        ]
        whole.stages.append(Stage(True, code))
        self.emit(whole)

    def _rows(self, nest: Nest, groups: list[list[int]], at: list[ir.Value]) -> None:
        depth = len(at)
        if depth < len(groups):
            length = int(np.prod([nest.domain[axis] for axis in groups[depth]]))
            loop(self.context.builder, length, 1, lambda i: self._rows(nest, groups, [*at, i]))
            return
        dims = [group[-1] for group in groups]
        rows: dict[int, Any] = {}
        for stage in nest.stages:
            if stage.inner:
                StageLoops(self.context, nest, stage, dims, at, rows).emit()
            else:
                self._row_code(stage, dims, at, rows)

    def _row_code(self, stage: Stage, dims: list[int], at: list[ir.Value], rows: dict[int, Any]) -> None:
        for one in stage.code:
            Body(self.context, dims, at, 1, rows, rows).emit(one)


__all__ = ["INDEX", "POINTER", "Memory", "NestPrinter", "collapse", "loop", "neutral", "number"]
