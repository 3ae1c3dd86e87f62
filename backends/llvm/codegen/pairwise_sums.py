"""Pairwise summation of blocks, for accurate long sums.

A loop adds up a block of `BLOCK` vectors sequentially and pushes its sum on a stack. Two sums of equally many blocks on
the stack are added at once, as the digits of a binary number carry over. So an element takes part in about
BLOCK + log2(blocks) additions, not in as many as there are elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from func.backends import ir
from func.backends.llvm.codegen.bodies import CodeContext
from func.backends.llvm.codegen.counted_loops import INDEX, neutral, number
from func.backends.loops.kernels import DType
from func.backends.scalars.ir_values import Pair, Value, Variable, constant, lane, shuffled, width_of

ANY, ALL = frozenset({"logical_or", "maximum", "bitwise_or"}), frozenset({"logical_and", "minimum", "bitwise_and"})
"""Reductions of bits that test whether any bit is set, and whether all are."""

BLOCK, LONG = 16, 64
"""Sequential additions of a block, and of a sum that is worth cutting into blocks."""


class PairwiseSums:
    """Variables, each with its dtype and lanes, that sum in at most `most` blocks."""

    def __init__(self, context: CodeContext, variables: Sequence[tuple[Variable, DType, int]], most: int) -> None:
        self.context = context
        self.sums: list[tuple[Variable, DType, int, list[ir.Value]]] = []
        b, levels = context.builder, most.bit_length() + 1
        with b.goto_entry_block():
            self.count, self.bits, self.level = [b.alloca(INDEX) for _ in range(3)]
            for variable, dtype, lanes in variables:
                stack = [b.alloca(variable.kind, size=levels) for _ in variable.parts]
                self.sums.append((variable, dtype, lanes, stack))
        b.store(number(0), self.count)

    def push(self) -> None:
        """Push the sums of a complete block."""
        b = self.context.builder
        count = b.load(self.count, typ=INDEX)
        b.store(b.add(count, number(1)), self.count)
        self._walk(count, self._has_low_bit, self._carry)
        level = b.load(self.level, typ=INDEX)
        for variable, dtype, lanes, stack in self.sums:
            for part, value in zip(stack, _parts(variable.get()), strict=True):
                b.store(value, b.gep(part, [level], source_etype=variable.kind))
            variable.set(constant(dtype, neutral("add", dtype), lanes))

    def total(self) -> None:
        """Add all blocks to the variables."""
        b = self.context.builder

        def add(bits: ir.Value) -> None:
            with b.if_then(self._has_low_bit(bits)):
                self._carry(bits)

        self._walk(b.load(self.count, typ=INDEX), lambda bits: b.icmp_unsigned("!=", bits, number(0)), add)

    def _has_low_bit(self, bits: ir.Value) -> ir.Value:
        b = self.context.builder
        return b.icmp_unsigned("!=", b.and_(bits, number(1)), number(0))

    def _walk(self, bits: ir.Value, goes_on: Callable[[Any], Any], step: Callable[[Any], None]) -> None:
        """step(bits shifted to the level) at level 0, 1, … while `goes_on` is true."""
        b = self.context.builder
        b.store(bits, self.bits)
        b.store(number(0), self.level)
        head, inside, done = [b.append_basic_block() for _ in range(3)]
        b.branch(head)
        b.position_at_end(head)
        here = b.load(self.bits, typ=INDEX)
        b.cbranch(goes_on(here), inside, done)
        b.position_at_end(inside)
        step(here)
        b.store(b.lshr(here, number(1)), self.bits)
        b.store(b.add(b.load(self.level, typ=INDEX), number(1)), self.level)
        b.branch(head)
        b.position_at_end(done)

    def _carry(self, bits: ir.Value) -> None:
        b = self.context.builder
        level = b.load(self.level, typ=INDEX)
        for variable, dtype, _, stack in self.sums:
            parts = [b.load(b.gep(part, [level], source_etype=variable.kind), typ=variable.kind) for part in stack]
            before = Pair(*parts) if len(parts) == 2 else parts[0]
            variable.set(self.context.scalars.apply("add", dtype, [before, variable.get()], dtype))


def _parts(value: Value) -> list[Any]:
    return [value.re, value.im] if isinstance(value, Pair) else [value]


def folded(context: CodeContext, op: str, dtype: DType, value: Value) -> Value:
    """The reduction of a vector's lanes: combines halves until one lane is left; compares bits at once."""
    b = context.builder
    width = width_of(value)
    if dtype.kind == "b" and width > 1 and op in ANY | ALL:
        bits = ir.IntType(width)
        whole, reference = b.bitcast(value, bits), ir.Constant(bits, 0 if op in ANY else -1)
        return b.icmp_unsigned("!=" if op in ANY else "==", whole, reference)
    while width > 2:
        half = (width + 1) // 2
        low = shuffled(b, value, value, range(half))
        if width % 2:
            upper = [place if place < width else width for place in range(half, 2 * half)]
            high = shuffled(b, value, constant(dtype, neutral(op, dtype), width), upper)
        else:
            high = shuffled(b, value, value, range(half, width))
        value = context.scalars.apply(op, dtype, [low, high], dtype)
        width = half
    if width == 1:
        return value
    return context.scalars.apply(op, dtype, [lane(b, value, 0), lane(b, value, 1)], dtype)
