"""Bodies of loop nests as LLVM IR: instructions at one index, on one element or on several adjacent ones."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from func.backends import ir
from func.backends.llvm.codegen.counted_loops import INDEX, BufferPointers, number
from func.backends.loops import kernels
from func.backends.scalars.ir_values import Value, constant, gathered, lane, read, shuffled, splat, stored, write
from func.backends.scalars.operations import Scalars


class CodeContext(NamedTuple):
    """A function that code is emitted to."""

    builder: ir.IRBuilder
    scalars: Scalars
    memory: BufferPointers
    bits: int
    """The size of vector registers."""


class BodyEmitter:
    """Emits instructions at one index: `at` holds the positions along the axes `dims`."""

    def __init__(
        self,
        context: CodeContext,
        dims: list[int],
        at: list[ir.Value],
        width: int,
        rows: dict[int, ir.Value],
        regs: dict[int, ir.Value],
        bases: dict[Any, ir.Value] | None = None,
    ) -> None:
        self.context = context
        self.dims = dims
        self.at = at
        self.width = width
        self.rows = rows
        self.regs = regs
        self.bases: dict[Any, ir.Value] = {} if bases is None else bases
        self.repeated: Any = None
        """A mask of lanes computed before, which reductions skip."""

    def value(self, x: kernels.Operand) -> Value:
        """An operand, in every lane."""
        if isinstance(x, kernels.Literal):
            return constant(x.dtype, x.value, self.width)
        value = self.regs.get(id(x))
        return self.splat(self.rows[id(x)] if value is None else value)

    def splat(self, value: Value) -> Value:
        """A scalar in every lane."""
        return splat(self.context.builder, value, self.width)

    def base(self, ref: kernels.StridedRef, dims: list[int], at: list[ir.Value]) -> ir.Value:
        """The address at positions of some axes."""
        b = self.context.builder
        key = (id(ref.buffer), ref.offset, tuple([ref.strides[axis] for axis in dims]), len(at))
        address = self.bases.get(key)
        if address is None:
            total: Any = number(ref.offset)
            for axis, i in zip(dims, at, strict=True):
                stride = ref.strides[axis]
                if stride:
                    total = b.add(total, i if stride == 1 else b.mul(i, number(stride)))
            start = self.context.memory.pointer(ref.buffer)
            address = b.gep(start, [total], source_etype=stored(ref.buffer.dtype))
            self.bases[key] = address
        return address

    def last_stride(self, ref: kernels.StridedRef) -> int:
        """The stride along the vector."""
        return ref.strides[self.dims[-1]] if self.width > 1 else 0

    def address(self, ref: kernels.StridedRef, stride: int) -> ir.Value:
        """The address of the first lane."""
        if not self.dims:
            return self.base(ref, [], [])
        start = self.base(ref, self.dims[:-1], self.at[:-1])
        stride = ref.strides[self.dims[-1]]
        if not stride:
            return start
        b = self.context.builder
        i = self.at[-1]
        return b.gep(start, [i if stride == 1 else b.mul(i, number(stride))], source_etype=stored(ref.buffer.dtype))

    def load(self, ref: kernels.StridedRef) -> Value:
        """The elements at the current index."""
        stride = self.last_stride(ref)
        return self.load_from(self.address(ref, stride), ref.buffer.dtype, stride)

    def load_from(self, pointer: ir.Value, dtype: kernels.DType, stride: int) -> Value:
        """Elements at an address, `stride` apart."""
        b, width, kind = self.context.builder, self.width, stored(dtype)
        if width == 1 or stride == 0:
            return self.splat(read(b, pointer, dtype))
        if stride == 1:
            return read(b, pointer, dtype, width)
        if stride == -1:
            value = read(b, b.gep(pointer, [number(1 - width)], source_etype=kind), dtype, width)
            return shuffled(b, value, value, list(reversed(range(width))))
        lanes = [b.gep(pointer, [number(place * stride)], source_etype=kind) for place in range(width)]
        return gathered(b, [read(b, pointer, dtype) for pointer in lanes])

    def store(self, ref: kernels.StridedRef, value: ir.Value) -> None:
        """Write the elements at the current index."""
        stride = self.last_stride(ref)
        self.store_to(self.address(ref, stride), ref.buffer.dtype, stride, value)

    def store_to(self, pointer: ir.Value, dtype: kernels.DType, stride: int, value: Value) -> None:
        """Write elements at an address, `stride` apart; the last lane wins for stride 0."""
        b, width, kind = self.context.builder, self.width, stored(dtype)
        if width == 1 or stride == 1:
            write(b, pointer, dtype, value)
            return
        for place in range(width) if stride else (width - 1,):
            write(b, b.gep(pointer, [number(place * stride)], source_etype=kind), dtype, lane(b, value, place))

    def emit(self, instruction: kernels.Instruction) -> None:
        """Any instruction but a Reduce."""
        if isinstance(instruction, kernels.Load):
            self.regs[id(instruction.out)] = self.load(instruction.ref)
        elif isinstance(instruction, kernels.Apply):
            self.regs[id(instruction.out)] = self.apply(instruction)
        elif isinstance(instruction, kernels.Store):
            self.store(instruction.ref, self.value(instruction.value))
        elif isinstance(instruction, kernels.Position):
            self.regs[id(instruction.out)] = self.place(instruction.axis)
        elif isinstance(instruction, kernels.LoadAt):
            self.regs[id(instruction.out)] = self.load_at(instruction)
        elif isinstance(instruction, kernels.StoreAt):
            self.store_at(instruction)
        elif isinstance(instruction, kernels.Accumulate):
            dtype = instruction.ref.buffer.dtype
            have = self.load(instruction.ref)
            self.store(
                instruction.ref,
                self.context.scalars.apply(instruction.op, dtype, [have, self.value(instruction.value)], dtype),
            )

    def apply(self, instruction: kernels.Apply) -> Value:
        """An operation on the current elements."""
        dtype = instruction.args[-1].dtype
        return self.context.scalars.apply(
            instruction.op, dtype, [self.value(x) for x in instruction.args], instruction.out.dtype
        )

    def place(self, axis: int) -> ir.Value:
        """The current index along a dimension."""
        b, width = self.context.builder, self.width
        i = self.at[self.dims.index(axis)]
        if width == 1:
            return i
        lanes = list(range(width)) if axis == self.dims[-1] else [0] * width
        return b.add(self.splat(i), ir.Constant(ir.VectorType(INDEX, width), lanes))

    def load_at(self, instruction: kernels.LoadAt) -> Value:
        """Elements at dynamic positions, lane by lane."""
        b, dtype = self.context.builder, instruction.ref.buffer.dtype
        return gathered(
            b, [read(b, pointer, dtype) for pointer in self.lane_addresses(instruction.ref, instruction.indices)]
        )

    def store_at(self, instruction: kernels.StoreAt) -> None:
        """Write or add at dynamic positions, one lane after the other."""
        b, dtype, value = self.context.builder, instruction.ref.buffer.dtype, self.value(instruction.value)
        for place, pointer in enumerate(self.lane_addresses(instruction.ref, instruction.indices)):
            element = lane(b, value, place)
            if instruction.adds:
                element = self.context.scalars.apply("add", dtype, [read(b, pointer, dtype), element], dtype)
            write(b, pointer, dtype, element)

    def lane_addresses(self, ref: kernels.StridedRef, indices: tuple[kernels.DynamicIndex, ...]) -> list[ir.Value]:
        """The address of every lane at its dynamic positions; positions out of range set the error bit and become 0."""
        b, width = self.context.builder, self.width
        stride = self.last_stride(ref)
        start = self.address(ref, stride)
        total: Any = None
        for index in indices:
            position = self.position(index)
            term = b.mul(position, self.constant_index(index.stride))
            total = term if total is None else b.add(total, term)
        kind = stored(ref.buffer.dtype)
        if width == 1:
            return [b.gep(start, [total], source_etype=kind)]
        addresses = []
        for place in range(width):
            at = b.add(lane(b, total, place), number(place * stride))
            addresses.append(b.gep(start, [at], source_etype=kind))
        return addresses

    def constant_index(self, value: int) -> ir.Constant:
        """An index in every lane."""
        if self.width == 1:
            return number(value)
        return ir.Constant(ir.VectorType(INDEX, self.width), [value] * self.width)

    def position(self, index: kernels.DynamicIndex) -> ir.Value:
        """A position from the start, 0 for one that is out of range."""
        b = self.context.builder
        wide = self.context.scalars.convert(self.value(index.value), index.value.dtype, np.dtype(np.int64))
        length, zero = self.constant_index(index.length), self.constant_index(0)
        if index.value.dtype.kind == "i":
            wide = b.select(b.icmp_signed("<", wide, zero), b.add(wide, length), wide)
        outside = b.icmp_unsigned(">=", wide, length)
        is_outside: Any = outside
        if self.width > 1:
            mask = ir.IntType(self.width)
            is_outside = b.icmp_unsigned("!=", b.bitcast(outside, mask), ir.Constant(mask, 0))
        status, word = self.context.memory.status, ir.IntType(32)
        b.store(b.or_(b.load(status, typ=word), b.shl(b.zext(is_outside, word), ir.Constant(word, 1))), status)
        return b.select(outside, zero, wide)
