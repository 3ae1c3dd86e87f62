"""Values of a body in LLVM: scalars, vectors, and for complex numbers pairs of those."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from func.backends import ir
from func.backends.loops.kernels import DType

LANE = ir.IntType(32)
BIT = ir.IntType(1)
BYTE = ir.IntType(8)
_FLOATS = {2: ir.HalfType(), 4: ir.FloatType(), 8: ir.DoubleType()}


class Pair:
    """The real and the imaginary parts of complex numbers."""

    __slots__ = ("im", "re")

    def __init__(self, re: Any, im: Any) -> None:
        self.re = re
        self.im = im


Value: TypeAlias = Any
"""An ir.Value or a Pair of them."""


def part_of(dtype: DType) -> DType:
    """The dtype of the parts of complex numbers; any other dtype is its own."""
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def alignment(dtype: DType) -> int:
    """The alignment of elements in memory, in bytes."""
    return part_of(dtype).itemsize


def element(dtype: DType) -> ir.Type:
    """The type of a value of the body; of its parts for complex numbers. bfloat16 is its bits, as an integer."""
    if dtype.kind == "b":
        return BIT
    if dtype.kind in "fc":
        return _FLOATS[part_of(dtype).itemsize]
    return ir.IntType(8 * dtype.itemsize)


def stored(dtype: DType) -> ir.Type:
    """The type of an element in memory."""
    if dtype.kind == "c":
        return ir.ArrayType(element(dtype), 2)
    return BYTE if dtype.kind == "b" else element(dtype)


def widened(kind: ir.Type, width: int) -> ir.Type:
    """A vector of a type; the type itself for one lane."""
    return kind if width == 1 else ir.VectorType(kind, width)


def width_of(value: Value) -> int:
    """The number of lanes."""
    kind = value.re.type if isinstance(value, Pair) else value.type
    return kind.count if isinstance(kind, ir.VectorType) else 1


def constant(dtype: DType, value: Any, width: int = 1) -> Value:
    """A number in every lane."""
    if dtype.kind == "c":
        number, part = complex(np.asarray(value).astype(dtype)), part_of(dtype)
        return Pair(constant(part, number.real, width), constant(part, number.imag, width))
    kind = element(dtype)
    plain: Any
    if dtype.kind == "V":
        plain = int(np.asarray(value).astype(dtype).view(np.uint16))
    elif dtype.kind == "f":
        plain = float(np.asarray(value).astype(dtype))
    elif dtype.kind == "b":
        plain = int(bool(value))
    else:
        plain = int(np.asarray(value).astype(dtype))
    return ir.Constant(kind, plain) if width == 1 else ir.Constant(ir.VectorType(kind, width), [plain] * width)


def each(emit: Callable[..., Any], *values: Value) -> Value:
    """emit on values, part by part where some are pairs; a value that is not a pair goes to both parts."""
    if not any([isinstance(x, Pair) for x in values]):
        return emit(*values)
    re = emit(*[x.re if isinstance(x, Pair) else x for x in values])
    return Pair(re, emit(*[x.im if isinstance(x, Pair) else x for x in values]))


def splat(b: ir.IRBuilder, value: Value, width: int) -> Value:
    """A scalar in every lane."""
    if width == 1 or width_of(value) == width:
        return value

    def splat_part(x: ir.Value) -> ir.Value:
        kind = ir.VectorType(x.type, width)
        first = b.insert_element(ir.Constant(kind, ir.Undefined), x, ir.Constant(LANE, 0))
        return b.shuffle_vector(
            first, ir.Constant(kind, ir.Undefined), ir.Constant(ir.VectorType(LANE, width), [0] * width)
        )

    return each(splat_part, value)


def lane(b: ir.IRBuilder, value: Value, place: int) -> Value:
    """One lane of a vector; a scalar is its only lane."""
    if width_of(value) == 1 and not isinstance((value.re if isinstance(value, Pair) else value).type, ir.VectorType):
        return value
    return each(lambda x: b.extract_element(x, ir.Constant(LANE, place)), value)


def gathered(b: ir.IRBuilder, lanes: Sequence[Value]) -> Value:
    """Scalars as the lanes of a vector."""
    if len(lanes) == 1:
        return lanes[0]
    if isinstance(lanes[0], Pair):
        return Pair(gathered(b, [x.re for x in lanes]), gathered(b, [x.im for x in lanes]))
    vector: Any = ir.Constant(ir.VectorType(lanes[0].type, len(lanes)), ir.Undefined)
    for place, x in enumerate(lanes):
        vector = b.insert_element(vector, x, ir.Constant(LANE, place))
    return vector


def shuffled(b: ir.IRBuilder, x: Value, y: Value, order: Sequence[int]) -> Value:
    """Lanes of two concatenated vectors, in an order."""
    mask = ir.Constant(ir.VectorType(LANE, len(order)), list(order))
    return each(lambda p, q: b.shuffle_vector(p, q, mask), x, y)


def chosen(b: ir.IRBuilder, condition: ir.Value, x: Value, y: Value) -> Value:
    """x where a condition holds, else y."""
    return each(lambda p, q: b.select(condition, p, q), x, y)


def as_bits(b: ir.IRBuilder, value: ir.Value, dtype: DType) -> ir.Value:
    """Elements loaded from memory as values: booleans are bytes in memory."""
    if dtype.kind != "b":
        return value
    width = width_of(value)
    return b.icmp_unsigned("!=", value, ir.Constant(value.type, 0 if width == 1 else [0] * width))


def as_bytes(b: ir.IRBuilder, value: Value, dtype: DType) -> Value:
    """Values as they are stored in memory."""
    return b.zext(value, widened(BYTE, width_of(value))) if dtype.kind == "b" else value


def read(b: ir.IRBuilder, pointer: ir.Value, dtype: DType, width: int = 1) -> Value:
    """Load `width` adjacent elements."""
    if dtype.kind != "c":
        return as_bits(b, b.load(pointer, align=alignment(dtype), typ=widened(stored(dtype), width)), dtype)
    both = b.load(pointer, align=alignment(dtype), typ=ir.VectorType(element(dtype), 2 * width))
    if width == 1:
        return Pair(lane(b, both, 0), lane(b, both, 1))
    even = list(range(0, 2 * width, 2))
    return Pair(shuffled(b, both, both, even), shuffled(b, both, both, [place + 1 for place in even]))


def write(b: ir.IRBuilder, pointer: ir.Value, dtype: DType, value: Value) -> None:
    """Store adjacent elements."""
    if dtype.kind != "c":
        b.store(as_bytes(b, value, dtype), pointer, align=alignment(dtype))
        return
    width = width_of(value)
    if width == 1:
        both = gathered(b, [value.re, value.im])
    else:
        both = shuffled(b, value.re, value.im, [half * width + place for place in range(width) for half in (0, 1)])
    b.store(both, pointer, align=alignment(dtype))


class Variable:
    """Stack memory of the function for one value of a body."""

    def __init__(self, b: ir.IRBuilder, dtype: DType, width: int) -> None:
        self.builder = b
        self.kind = widened(element(dtype), width)
        with b.goto_entry_block():
            self.parts = [b.alloca(self.kind) for _ in range(2 if dtype.kind == "c" else 1)]

    def get(self) -> Value:
        """The current value."""
        parts = [self.builder.load(address, typ=self.kind) for address in self.parts]
        return Pair(*parts) if len(parts) == 2 else parts[0]

    def set(self, value: Value) -> None:
        """Replace the value."""
        parts = [value.re, value.im] if isinstance(value, Pair) else [value]
        for address, part in zip(self.parts, parts, strict=True):
            self.builder.store(part, address)
