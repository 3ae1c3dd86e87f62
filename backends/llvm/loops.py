"""What loops as LLVM IR are made of: indices, memory, counting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir

from func.backends.kernels import Buffer, DType

INDEX = ir.IntType(64)
POINTER = ir.PointerType()


def number(value: int) -> ir.Constant:
    """An index."""
    return ir.Constant(INDEX, value)


class Memory:
    """Where the buffers of a function lie: a pointer for every buffer."""

    def __init__(self) -> None:
        self.pointers: dict[int, ir.Value] = {}
        self.bad: Any = None
        """Memory for the number of an error."""

    def pointer(self, buffer: Buffer) -> ir.Value:
        """The first byte of a buffer."""
        return self.pointers[id(buffer)]


def loop(builder: ir.IRBuilder, length: int, step: int, body: Callable[[ir.Value], None]) -> None:
    """body(i) for i = 0, step, … below length, which is a multiple of step; no loop for one pass."""
    if length == 0:
        return
    if length == step:
        body(number(0))
        return
    before = builder.block
    head = builder.append_basic_block()
    builder.branch(head)
    builder.position_at_end(head)
    i = builder.phi(INDEX)
    i.add_incoming(number(0), before)
    body(i)
    after = builder.add(i, number(step), flags=("nuw", "nsw"))
    i.add_incoming(after, builder.block)
    done = builder.append_basic_block()
    builder.cbranch(builder.icmp_unsigned("<", after, number(length)), head, done)
    builder.position_at_end(done)


def neutral(op: str, dtype: DType) -> Any:
    """What a reduction starts with."""
    if op == "add":
        return {"f": -0.0, "c": complex(-0.0, -0.0)}.get(dtype.kind, 0)
    if op == "multiply":
        return 1
    if op in ("logical_or", "bitwise_or"):
        return 0
    if op in ("logical_and", "bitwise_and"):
        return True if dtype.kind == "b" else -1
    if dtype.kind == "b":
        return op == "minimum"
    if dtype.kind in "fc":
        end = -np.inf if op == "maximum" else np.inf
        return end if dtype.kind == "f" else complex(end, end)
    info = np.iinfo(dtype)
    return info.min if op == "maximum" else info.max
