"""Operations of NumPy on elements as LLVM IR, on scalars and on vectors alike.

Semantics are NumPy's: max and min propagate NaN, remainders have the divisor's sign, integers wrap around. Division of
integers by zero gives zero, a shift by too many bits shifts all bits out. Floats out of an integer's range become its
smallest value (as on x86). Half precision and bfloat16 compute in single precision, rounded after every operation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from func.backends import ir
from func.backends.loops.kernels import CALLED, DType
from func.backends.number_types import is_bfloat16, is_narrow
from func.backends.scalars import arithmetic, complex_numbers, floats, integer_powers, integers, logic, scipy_exports
from func.backends.scalars.ir_values import (
    Pair,
    Value,
    constant,
    each,
    element,
    gathered,
    lane,
    part_of,
    widened,
    width_of,
)
from func.backends.scalars.operation_table import operation

TABLES = (arithmetic, complex_numbers, floats, integers, logic, integer_powers)
"""The modules that fill the table of operations."""
HALF, SINGLE, DOUBLE = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)
WORD = np.dtype(np.uint32)
UNWIDENED = frozenset({"select", "positive", "nextafter", "spacing"})
"""Operations that narrow types do not convert to single precision."""
Step: TypeAlias = Callable[[Any, Any, Any, Any], tuple[Any, Any, Any]]
"""A step of a loop: a builder and three numbers to three numbers."""
EXTREMA = frozenset({"maximum", "minimum", "fmax", "fmin"})


class Scalars:
    """Emits operations with a builder."""

    def __init__(self, module: ir.Module, elementary: Any) -> None:
        self.module = module
        self.elementary = elementary
        self.builder: ir.IRBuilder
        self.flags: tuple[str, ...] = ()
        """LLVM's fast-math flags of float arithmetic."""
        self._intrinsics: dict[tuple[str, str], ir.Function] = {}

    def apply(self, op: str, dtype: DType, args: list[Value], out: DType) -> Value:
        """op on values of `dtype`: for "select" all but the first, for shifts as NumPy has resolved them.

        `out` is the dtype of the result."""
        if op == "convert":
            return self.convert(args[0], dtype, out)
        if op.startswith(CALLED):
            return self.scipy_function(op.removeprefix(CALLED), args, out)
        if is_narrow(dtype) and op not in UNWIDENED:
            args = args[::-1] if op in EXTREMA and dtype == HALF else args  # the first of two zeros
            singles = [self.convert(x, dtype, SINGLE) for x in args]
            value = self.apply(op, SINGLE, singles, SINGLE if out == dtype else out)
            return self.convert(value, SINGLE, out) if out == dtype else value
        emit = operation(op, dtype)
        return self.elementary.call(self.builder, op, *args) if emit is None else emit(self, dtype, args)

    def intrinsic(self, name: str, *args: ir.Value) -> ir.Value:
        """llvm.name on values of one type."""
        kind = args[0].type
        key = name, str(kind)
        function = self._intrinsics.get(key)
        if function is None:
            width = width_of(args[0])
            scalar = kind.element if width > 1 else kind
            word = {"float": "f32", "double": "f64", "half": "f16"}.get(str(scalar), str(scalar))
            full = f"llvm.{name}.{f'v{width}' if width > 1 else ''}{word}"
            function = self.module.globals.get(full) or ir.Function(
                self.module, ir.FunctionType(kind, [kind] * len(args)), full
            )
            self._intrinsics[key] = function
        return self.builder.call(function, args)

    def convert(self, x: Value, source: DType, result: DType) -> Value:
        """A cast as by `astype`; complex to real keeps the real part, and a truth value tests both."""
        if source == result:
            return x
        if source.kind == "c" and result.kind == "c":
            return each(lambda part: self.convert(part, part_of(source), part_of(result)), x)
        if result.kind == "b":
            return self.nonzero(x, source)
        if source.kind == "c":
            return self.convert(x.re, part_of(source), result)
        if result.kind == "c":
            return Pair(self.convert(x, source, part_of(result)), constant(part_of(result), 0, width_of(x)))
        if is_bfloat16(source):
            return self.convert(self.from_bfloat16(x), SINGLE, result)
        if is_bfloat16(result):
            return self.to_bfloat16(self.convert(x, source, SINGLE), result)
        if source == HALF:
            return self.convert(self.builder.fpext(x, self._type(SINGLE, x)), SINGLE, result)
        if result == HALF:
            single = self._round_to_odd(x) if source == DOUBLE else self.convert(x, source, SINGLE)
            return self.builder.fptrunc(single, self._type(HALF, x))
        if source.kind == "f":
            return self._from_float(x, source, result)
        return self._from_integer(x, source, result)

    def from_bfloat16(self, x: ir.Value) -> ir.Value:
        """Numbers of bfloat16, as their bits, in single precision."""
        b = self.builder
        bits = b.shl(b.zext(x, self._type(WORD, x)), constant(WORD, 16, width_of(x)))
        return b.bitcast(bits, self._type(SINGLE, x))

    def to_bfloat16(self, x: ir.Value, dtype: DType) -> ir.Value:
        """Numbers of single precision as bits of bfloat16, rounded to even; NaN becomes quiet."""
        b, width = self.builder, width_of(x)
        bits, half = b.bitcast(x, self._type(WORD, x)), constant(WORD, 16, width)
        last = b.and_(b.lshr(bits, half), constant(WORD, 1, width))
        rounded = b.add(b.add(bits, constant(WORD, 0x7FFF, width)), last)
        quiet = b.or_(bits, constant(WORD, 0x400000, width))
        chosen = b.select(b.fcmp_unordered("uno", x, x), quiet, rounded)
        return b.trunc(b.lshr(chosen, half), self._type(dtype, x))

    def _type(self, dtype: DType, like: ir.Value) -> ir.Type:
        return widened(element(dtype), width_of(like))

    def _from_float(self, x: ir.Value, source: DType, result: DType) -> ir.Value:
        b = self.builder
        if result.kind != "f":
            return self._to_integer(x, source, result)
        target = self._type(result, x)
        return b.fpext(x, target) if result.itemsize > source.itemsize else b.fptrunc(x, target)

    def _from_integer(self, x: ir.Value, source: DType, result: DType) -> ir.Value:
        b, target = self.builder, self._type(result, x)
        if result.kind == "f":
            return b.sitofp(x, target) if source.kind == "i" else b.uitofp(x, target)
        if result.itemsize < source.itemsize:
            return b.trunc(x, target)
        if source.kind != "b" and result.itemsize == source.itemsize:
            return x
        return b.sext(x, target) if source.kind == "i" else b.zext(x, target)

    def _round_to_odd(self, x: ir.Value) -> ir.Value:
        """A double rounded to odd in single precision, so that half precision needs only one more rounding."""
        b, width = self.builder, width_of(x)
        bits = np.dtype(np.int32)
        near = b.fptrunc(x, self._type(SINGLE, x))
        back = b.fpext(near, x.type)
        number = b.bitcast(near, self._type(bits, x))
        above = b.fcmp_ordered(">", self.intrinsic("fabs", back), self.intrinsic("fabs", x))
        cut = b.sub(number, b.zext(above, number.type))
        rounded = b.select(b.fcmp_ordered("!=", back, x), b.or_(cut, constant(bits, 1, width)), number)
        return b.bitcast(rounded, near.type)

    def _to_integer(self, x: ir.Value, source: DType, result: DType) -> ir.Value:
        b, width = self.builder, width_of(x)
        target = widened(element(result), width)
        if result.itemsize < 4:
            return b.trunc(self._to_integer(x, source, np.dtype(np.int32)), target)
        if result == np.uint32:
            return b.trunc(self._to_integer(x, source, np.dtype(np.int64)), target)
        bits = 8 * result.itemsize
        top = 2.0 ** (bits - 1)
        if result.kind == "u":  # the upper half of the range by an offset, as compilers do
            signed = np.dtype(np.int64)
            low = self._to_integer(x, source, signed)
            shifted = self._to_integer(b.fsub(x, constant(source, top, width)), source, signed)
            high = b.xor(shifted, constant(signed, -(2**63), width))
            return b.select(b.fcmp_ordered("<", x, constant(source, top, width)), low, high)
        below = b.fcmp_ordered("<", x, constant(source, top, width))
        inside = b.and_(below, b.fcmp_ordered(">", x, constant(source, -top - 1.0, width)))
        if source.itemsize * 8 <= bits:  # -top - 1 is -top then, which is inside
            edge = b.fcmp_ordered("==", x, constant(source, -top, width))
            inside = b.or_(inside, edge)
        safe = b.select(inside, x, constant(source, 0.0, width))
        return b.select(inside, b.fptosi(safe, target), constant(result, -(2 ** (bits - 1)), width))

    def nonzero(self, x: Value, dtype: DType) -> Value:
        """The mask of nonzero elements (NaN is not zero)."""
        if isinstance(x, Pair):
            part = part_of(dtype)
            return self.builder.or_(self.nonzero(x.re, part), self.nonzero(x.im, part))
        if is_narrow(dtype):
            return self.nonzero(self.convert(x, dtype, SINGLE), SINGLE)
        zero = constant(dtype, 0, width_of(x))
        if dtype.kind == "b":
            return x
        compare = self.builder.fcmp_unordered if dtype.kind == "f" else self.builder.icmp_signed
        return compare("!=", x, zero)

    def per_lane(self, function: ir.Function, args: Sequence[ir.Value], *others: ir.Value) -> Value:
        """A scalar function lane by lane; it gets the other arguments unchanged."""
        b = self.builder
        lanes = range(width_of(args[0]))
        return gathered(b, [b.call(function, [*[lane(b, x, place) for x in args], *others]) for place in lanes])

    def repeated(self, name: str, dtype: DType, step: Step, result: int, args: Sequence[ir.Value]) -> Value:
        """The function `name` of unsigned numbers x and y, lane by lane. From (x, y, 1) on, `step` runs until y is
        zero. The function returns the number at the place `result`."""
        kind = element(dtype)
        full = f"func_{name}_{kind}"
        function: Any = self.module.globals.get(full)
        if function is None:
            function = ir.Function(self.module, ir.FunctionType(kind, [kind, kind]), full)
            function.linkage = "internal"
            start, head, body, done = [function.append_basic_block(word) for word in ("start", "head", "body", "done")]
            b: Any = ir.IRBuilder(start)
            b.branch(head)
            b.position_at_end(head)
            states = [b.phi(kind) for _ in range(3)]
            for state, value in zip(states, (*function.args, ir.Constant(kind, 1)), strict=True):
                state.add_incoming(value, start)
            b.cbranch(b.icmp_unsigned("!=", states[1], ir.Constant(kind, 0)), body, done)
            b.position_at_end(body)
            for state, value in zip(states, step(b, *states), strict=True):
                state.add_incoming(value, body)
            b.branch(head)
            b.position_at_end(done)
            b.ret(states[result])
        return self.per_lane(function, args)

    def complex_library(self, name: str, args: Sequence[Value]) -> Value:
        """A function of the C library of complex doubles, lane by lane: they are passed and returned as two doubles
        each."""
        b: Any = self.builder
        function = self.module.globals.get(name)
        if function is None:
            double = ir.DoubleType()
            both = ir.LiteralStructType([double, double])
            function = ir.Function(self.module, ir.FunctionType(both, [double, double] * len(args)), name)
        results = []
        for place in range(width_of(args[0])):
            parts = [part for x in args for part in (lane(b, x.re, place), lane(b, x.im, place))]
            pair = b.call(function, parts)
            results.append(Pair(b.extract_value(pair, 0), b.extract_value(pair, 1)))
        return gathered(b, results)

    def scipy_function(self, name: str, args: Sequence[ir.Value], out: DType) -> Value:
        """A special function of SciPy, lane by lane. The last argument is Cython's own."""
        kinds, result = [lane(self.builder, x, 0).type for x in args], element(out)
        symbol = scipy_exports.symbol(name, [_letter(kind) for kind in kinds], _letter(result))
        function = self.module.globals.get(symbol)
        if function is None:
            function = ir.Function(self.module, ir.FunctionType(result, [*kinds, ir.IntType(32)]), symbol)
            function.attributes.add("nounwind")
        return self.per_lane(function, args, ir.Constant(ir.IntType(32), 0))

    def library(self, name: str, dtype: DType, args: Sequence[ir.Value]) -> Value:
        """A function of the C library, by its name for doubles, lane by lane."""
        full = name if dtype.itemsize == 8 else f"{name}f"
        function = self.module.globals.get(full)
        if function is None:
            kind = element(dtype)
            function = ir.Function(self.module, ir.FunctionType(kind, [kind] * len(args)), full)
        return self.per_lane(function, args)


def _letter(kind: ir.Type) -> str:
    """The letter of a type in the names of SciPy's functions."""
    return "d" if isinstance(kind, ir.DoubleType) else "f" if isinstance(kind, ir.FloatType) else "l"
