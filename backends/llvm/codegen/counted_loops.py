"""Counted loops as LLVM IR, and the addresses of the memory that they use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from func.backends import ir
from func.backends.loops.kernels import Buffer, DType
from func.backends.number_types import kind_of

INDEX = ir.IntType(64)
POINTER = ir.PointerType()


def number(value: int) -> ir.Constant:
    """An index."""
    return ir.Constant(INDEX, value)


class BufferPointers:
    """The pointers to the buffers of a function."""

    def __init__(self) -> None:
        self.pointers: dict[int, ir.Value] = {}
        self.status: Any = None
        """The address of the function's status, whose bits tell errors."""

    def pointer(self, buffer: Buffer) -> ir.Value:
        """The first byte of a buffer."""
        return self.pointers[id(buffer)]


class LoopChunk(NamedTuple):
    """One chunk of the loop whose last dimension is `axis`."""

    axis: int
    chunk: ir.Value
    chunks: int

    def bounds(self, builder: ir.IRBuilder, length: int, step: int) -> tuple[ir.Value, ir.Value]:
        """The bounds of the chunk; the numbers of steps of chunks differ by at most one."""
        return self._edge(builder, self.chunk, length // step, step), self._edge(
            builder, builder.add(self.chunk, number(1)), length // step, step
        )

    def _edge(self, builder: ir.IRBuilder, chunk: ir.Value, steps: int, step: int) -> ir.Value:
        edge = builder.udiv(builder.mul(chunk, number(steps)), number(self.chunks))
        return edge if step == 1 else builder.mul(edge, number(step))

    def is_last(self, builder: ir.IRBuilder) -> ir.Value:
        """Whether the chunk ends where the loop does."""
        return builder.icmp_unsigned("==", self.chunk, number(self.chunks - 1))


def loop(builder: ir.IRBuilder, length: int, step: int, body: Callable[[ir.Value], None]) -> None:
    """body(i) for i = 0, step, … below length, which is a multiple of step; no loop for one pass."""
    if length == 0:
        return
    if length == step:
        body(number(0))
        return
    span(builder, number(0), number(length), step, body)


def span(builder: ir.IRBuilder, start: ir.Value, stop: ir.Value, step: int, body: Callable[[ir.Value], None]) -> None:
    """body(i) for i = start, start + step, … below stop, and for start in any case."""
    before = builder.block
    head = builder.append_basic_block()
    builder.branch(head)
    builder.position_at_end(head)
    i = builder.phi(INDEX)
    i.add_incoming(start, before)
    body(i)
    after = builder.add(i, number(step), flags=("nuw", "nsw"))
    i.add_incoming(after, builder.block)
    done = builder.append_basic_block()
    builder.cbranch(builder.icmp_unsigned("<", after, stop), head, done)
    builder.position_at_end(done)


def blocks(
    builder: ir.IRBuilder,
    start: ir.Value,
    stop: ir.Value,
    steps: tuple[int, int],
    body: Callable[[ir.Value], None],
    after: Callable[[], None],
) -> None:
    """`span` with step steps[0], and after() after every steps[1] of its steps and at the end."""
    step, count = steps

    def block(i: ir.Value) -> None:
        end = builder.add(i, number(step * count))
        end = builder.select(builder.icmp_unsigned("<", end, stop), end, stop)
        span(builder, i, end, step, body)
        after()

    span(builder, start, stop, step * count, block)


def neutral(op: str, dtype: DType) -> Any:
    """The start value of a reduction."""
    if op == "add":
        return 0
    if op == "multiply":
        return 1
    if op in ("logical_or", "bitwise_or"):
        return 0
    if op in ("logical_and", "bitwise_and"):
        return True if dtype.kind == "b" else -1
    if dtype.kind == "b":
        return op == "minimum"
    if kind_of(dtype) in "fc":
        end = -np.inf if op == "maximum" else np.inf
        return complex(end, end) if dtype.kind == "c" else end
    info = np.iinfo(dtype)
    return info.min if op == "maximum" else info.max
