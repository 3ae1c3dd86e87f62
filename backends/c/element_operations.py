"""Operations on elements in C: the LLVM backend's tables, run on a builder of expressions.

Elementary functions are the C library's. Those that it lacks have the bodies of the LLVM backend, as functions of C.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func.backends import ir
from func.backends.c.declarations import BIT, COMPLEX, DOUBLE, FLOAT, c_type, stored_literal, stored_type
from func.backends.c.expressions import ATOM, CBuilder, Expression
from func.backends.c.routine_text import fma_text, name_of, texts_of
from func.backends.loops.kernels import DType
from func.backends.scalars.ir_values import Pair, Value, element, part_of
from func.backends.scalars.math.registry import FUNCTIONS, body_of
from func.backends.scalars.math.vector_arithmetic import Bits, Emitter, Integer, Mask, Number, Real
from func.backends.scalars.operations import EXTREMA, Scalars, Step


class CDefinitions:
    """Functions of C that the code of a program calls, and constant arrays that it reads, by name."""

    def __init__(self, prefix: str = "func") -> None:
        self.texts: dict[str, str] = {}
        self._prefix = prefix
        self._constants: dict[tuple[DType, bytes], str] = {}

    def constant(self, array: Any) -> str:
        """The name of a constant array; equal arrays have one name."""
        flat = np.ascontiguousarray(array).reshape(-1)
        key = flat.dtype, flat.tobytes()
        if key not in self._constants:
            name = f"func_{self._prefix}_c{len(self._constants)}"
            self._constants[key] = name
            self.texts[name] = constant_text(name, flat)
        return self._constants[key]

    def pairwise(self, word: str) -> None:
        """The stack of sums of blocks for a type: adds two sums of equally many blocks at once, as binary digits carry
        over.
        """
        self.texts.setdefault(f"func_push_{word}", PUSH.replace("TYPE", word))
        self.texts.setdefault(f"func_total_{word}", TOTAL.replace("TYPE", word))

    def fma(self, word: str) -> None:
        """The function x y + z of a type, which is rounded once where the processor does so."""
        self.texts.setdefault(f"func_fma_{word}", fma_text(word))

    def routine(self, routine: Callable[..., Any], dtype: DType | None = None, fixed: int | None = None) -> str:
        """The name of a routine, for a type of numbers and a value of its `Fixed` parameter."""
        self.texts.update(texts_of(routine, dtype, fixed))
        return name_of(routine, dtype, fixed)

    def used_by(self, text: str) -> list[str]:
        """The definitions that a text needs, each after those that it calls."""
        return list(self._called(text, lambda part: part).values())

    def printed_for(self, text: str) -> list[str]:
        """The same as texts of a file; parts that only replaceable bodies call have the condition of these."""
        definitions = self._called(text, lambda part: part)
        always = self._called(text, lambda part: OWN_BODY.sub("", part))
        return [
            part if name in always or part.startswith("#ifdef FUNC_LIBM") else f"#ifndef FUNC_LIBM\n{part}\n#endif"
            for name, part in definitions.items()
        ]

    def _called(self, text: str, reading: Callable[[str], str]) -> dict[str, str]:
        """The definitions that a text needs, by their names, where `reading` gives the part of a text that counts."""
        known = HELPERS | self.texts
        definitions: dict[str, str] = {}
        entered: set[str] = set()

        def visit(part: str) -> None:
            for name in dict.fromkeys(CALLED.findall(reading(part))):
                if name in known and name not in entered:
                    entered.add(name)
                    visit(known[name])
                    definitions[name] = known[name]

        visit(text)
        return definitions


WIDE = 100
"""Columns of the text of a constant array."""


def constant_text(name: str, array: Any) -> str:
    """A constant array."""
    flat = array
    part = part_of(flat.dtype)
    if flat.dtype.kind == "c":
        flat = flat.view(part)
    lines, line = [], "   "
    is_zero = flat.view(np.uint8).reshape(flat.size, part.itemsize).max(axis=1, initial=0) == 0
    is_sparse = bool(np.count_nonzero(is_zero) > 3 * flat.size / 4) and not is_zero.all()
    for place, value in enumerate(flat):
        if is_sparse and is_zero[place]:
            continue  # as elements without an initializer are
        text = f" {f'[{place}] = ' if is_sparse else ''}{stored_literal(value, part)},"
        if len(line) + len(text) > WIDE:
            lines.append(line)
            line = "   "
        line += text
    return "\n".join([f"static const {stored_type(part)} {name}[{max(1, flat.size)}] = {{", *lines, line, "};"])


PUSH = """\
static void func_push_TYPE(TYPE *stack, size_t *count, TYPE sum) {
    for (size_t blocks = (*count)++; (blocks & 1u) != 0; blocks >>= 1) {
        sum = *stack++ + sum;
    }
    *stack = sum;
}"""
TOTAL = """\
static TYPE func_total_TYPE(const TYPE *stack, size_t count) {
    TYPE total = 0;
    for (; count != 0; count >>= 1, ++stack) {
        total = (count & 1u) != 0 ? *stack + total : total;
    }
    return total;
}"""
CALLED = re.compile(r"\bfunc_\w+")
OWN_BODY = re.compile(r"(?s)(?<=#ifdef FUNC_LIBM\n).*?(?=#endif)")
"""Functions that are the C library's with FUNC_LIBM."""


class SingleEmitter(Emitter):
    """Writes the bodies of elementary functions for one number."""

    def __init__(self, builder: CBuilder, width: int, operations: CScalars) -> None:
        self.builder: Any = builder
        self.count = 1
        self.width = width
        self.fused = operations.fused
        self.operations = operations
        self.double = width == 64
        self.digits = 52 if self.double else 23
        self.bias = 1023 if self.double else 127
        self.tiny = 2.0 ** (1 - self.bias)
        self.largest = float((2 - 2.0**-self.digits) * 2.0**self.bias)
        self.real: Any = DOUBLE if self.double else FLOAT
        self.integer: Any = ir.IntType(width)
        self.mask: Any = BIT
        self.fills_avx512 = False

    def number(self, x: Number) -> Real:
        """A value: a Python number as a constant."""
        return x if isinstance(x, Real) else Real(self, ir.Constant(self.real, float(x)))

    def bits(self, x: Integer) -> Bits:
        """An integer."""
        return x if isinstance(x, Bits) else Bits(self, ir.Constant(self.integer, x))

    def widened(self, x: Real) -> Real:
        """The number in double precision."""
        wide = SingleEmitter(self.builder, 64, self.operations)
        return Real(wide, self.builder.fpext(x.value, DOUBLE))

    def fma(self, a: Number, b: Number, c: Number) -> Real:
        """a·b + c: the functions' own choice where the machine may have the instruction, as products of matrices."""
        if self.fused:
            return super().fma(a, b, c)
        word = c_type(self.real)
        self.operations.definitions.fma(word)
        return Real(self, self.builder.call_text(f"func_fma_{word}", self.real, *self.values((a, b, c))))

    def call(self, name: str, *xs: Number) -> Real:
        """Another elementary function."""
        return Real(self, self.operations.elementary_call(self.builder, name, *self.values(xs)))

    def scalar(self, name: str, *xs: Number) -> Real:
        """A function of the C library."""
        return self.intrinsic(name, *xs)

    def intrinsic(self, name: str, *xs: Number) -> Real:
        """A function of the C library."""
        return Real(self, self.builder.call_text(name if self.double else f"{name}f", self.real, *self.values(xs)))

    def unless_rare(self, rare: Mask, usual: Real, name: str, *xs: Number) -> Real:
        """The C library's function where `rare` holds, `usual` elsewhere."""
        exact = self.scalar(name, *xs)
        pieces = ["(", rare.value, " ? ", exact.value, " : ", self.builder.fix(usual.value), ")"]
        return Real(self, self.builder.expression(self.real, pieces, level=ATOM))


INLINED = frozenset(
    {
        *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sinh", "cosh", "tanh", "arcsinh", "arccosh"),
        *("arctanh", "arcsin", "arccos", "arctan", "arctan2", "erf", "erfc", "cbrt", "hypot", "power"),
    }
)
"""Functions of the C library with their bodies written out in loops, so that compilers vectorize them."""


class CScalars(Scalars):
    """Writes operations with a builder; `definitions` has the functions that they call."""

    fused = False
    """Whether bodies of elementary functions may use fused multiply-add, which C computes slowly without hardware."""

    def __init__(self, builder: CBuilder, definitions: CDefinitions) -> None:
        self.builder: Any = builder
        self.flags = ()
        self.definitions = definitions
        self.elementary: Any = self
        self.in_loop = False
        """Whether the code is for a loop over many elements."""

    def call(self, builder: CBuilder, name: str, *args: ir.Value) -> ir.Value:
        """An elementary function."""
        return self.elementary_call(builder, name, *args)

    def elementary_call(self, builder: CBuilder, name: str, *args: ir.Value) -> ir.Value:
        """An elementary function by NumPy's name: the C library's, or one that is defined here."""
        kind = args[0].type
        suffix = "" if kind is DOUBLE else "f"
        if name not in FUNCTIONS:
            return self._special(builder, name, *args)
        function = FUNCTIONS[name]
        library = function.libmvec or function.intrinsic
        if library is not None and not (self.in_loop and name in INLINED):
            return builder.call_text(f"{library}{suffix}", kind, *args)
        full = f"func_{name}{suffix}"
        if full not in self.definitions.texts:
            inside = CBuilder()
            names = ("x", "y")[: function.arity]
            emit = SingleEmitter(inside, 64 if kind is DOUBLE else 32, self)
            value = body_of(name)(emit, *[Real(emit, inside.named(kind, each)) for each in names])
            inside.line("return ", value.value, ";")
            listed = ", ".join([f"{c_type(kind)} {each}" for each in names])
            text = f"static inline {c_type(kind)} {full}({listed}) {{\n{inside.text(1)}\n}}"
            if library is not None:
                text = f"#ifdef FUNC_LIBM\n#define {full} {library}{suffix}\n#else\n{text}\n#endif"
            self.definitions.texts[full] = text
        return builder.call_text(full, kind, *args)

    def _special(self, builder: CBuilder, name: str, *args: ir.Value) -> ir.Value:
        """A special function of doubles."""
        from func.backends.routines.special_families import ROUTINES  # for programs that have some

        return builder.call_text(self.definitions.routine(ROUTINES[name]), DOUBLE, *args)

    def reduced(self, op: str, dtype: DType, x: Value, y: Value) -> Value:
        """One step of a reduction; that of maxima of floats is a function."""
        if op not in EXTREMA or dtype.kind != "f" or dtype.itemsize < 4:
            return self.apply(op, dtype, [x, y], dtype)
        kind = element(dtype)
        word = c_type(kind)
        full = f"func_{op}_{word}"
        if full not in self.definitions.texts:
            inside = CBuilder()
            names = [inside.named(kind, each) for each in ("x", "y")]
            inside.line("return ", CScalars(inside, self.definitions).apply(op, dtype, names, dtype), ";")
            self.definitions.texts[full] = f"static inline {word} {full}({word} x, {word} y) {{\n{inside.text(1)}\n}}"
        return self.builder.call_text(full, kind, x, y)

    def intrinsic(self, name: str, *args: ir.Value) -> ir.Value:
        """A function of the C library by LLVM's name."""
        kind = args[0].type
        if name == "ctpop":
            wide = self.builder.zext(args[0], ir.IntType(64))
            count: ir.Value = self.builder.trunc(self.builder.call_text("func_bit_count", ir.IntType(64), wide), kind)
            return count
        value: ir.Value = self.builder.call_text(name if kind is DOUBLE else f"{name}f", kind, *args)
        return value

    def from_bfloat16(self, x: ir.Value) -> ir.Value:
        """A number of bfloat16, as its bits, in single precision."""
        value: ir.Value = self.builder.call_text("func_float_of_bfloat16", FLOAT, x)
        return value

    def to_bfloat16(self, x: ir.Value, dtype: DType) -> ir.Value:
        """A number of single precision as bits of bfloat16."""
        value: ir.Value = self.builder.call_text("func_bfloat16_of_float", element(dtype), x)
        return value

    def library(self, name: str, dtype: DType, args: Sequence[ir.Value]) -> Value:
        """A function of the C library, by its name for doubles."""
        return self.builder.call_text(name if dtype.itemsize == 8 else f"{name}f", element(dtype), *args)

    def repeated(self, name: str, dtype: DType, step: Step, result: int, args: Sequence[ir.Value]) -> Value:
        """The function `name` of unsigned numbers x and y: (x, y, 1) becomes `step` of them until y is zero."""
        kind = element(dtype)
        full = f"func_{name}_{c_type(kind)}"
        if full not in self.definitions.texts:
            inside, names = CBuilder(), ("x", "y", "z")
            with inside.braces("while (y != 0) {"):
                after = step(inside, *[inside.named(kind, each) for each in names])
                for value in after:
                    inside.fix(value)
                for each, value in zip(names, after, strict=True):
                    if not isinstance(value, Expression) or value.text != each:
                        inside.line(f"{each} = ", value, ";")
            inside.line(f"return {names[result]};")
            word, text = c_type(kind), inside.text(1)
            third = f"    {word} z = 1;\n" if "z" in re.findall(r"\w+", text) else ""
            self.definitions.texts[full] = f"static {word} {full}({word} x, {word} y) {{\n{third}{text}\n}}"
        return self.builder.call_text(full, kind, *args)

    def complex_library(self, name: str, args: Sequence[Value]) -> Value:
        """A function of the C library of complex doubles."""
        b = self.builder
        operands = [b.call_text("func_complex", COMPLEX, x.re, x.im) for x in args]
        both = b.fix(b.call_text(name, COMPLEX, *operands))
        return Pair(b.call_text("creal", DOUBLE, both), b.call_text("cimag", DOUBLE, both))


HELPERS = {
    "func_bits64": """\
static uint64_t func_bits64(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}""",
    "func_real64": """\
static double func_real64(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}""",
    "func_bits32": """\
static uint32_t func_bits32(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}""",
    "func_real32": """\
static float func_real32(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}""",
    "func_float_of_half": """\
/* Half precision: one bit of sign, five of exponent, ten of fraction. */
static float func_float_of_half(uint16_t half) {
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16, rest = half & 0x7fffu;
    if (rest >= 0x7c00u) {
        return func_real32(sign | 0x7f800000u | (rest & 0x3ffu) << 13 | (rest > 0x7c00u ? 0x400000u : 0u));
    }
    if (rest < 0x400u) {
        const float size = (float)rest * 0x1p-24f;
        return sign != 0u ? -size : size;
    }
    return func_real32(sign | ((rest << 13) + 0x38000000u));
}""",
    "func_half_of_float": """\
static uint16_t func_half_of_float(float x) {
    const uint32_t bits = func_bits32(x), size = bits & 0x7fffffffu;
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000u);
    if (size > 0x7f800000u) {
        return (uint16_t)(sign | 0x7e00u | (size >> 13 & 0x3ffu));
    }
    if (size >= 0x477ff000u) {
        return (uint16_t)(sign | 0x7c00u);
    }
    if (size < 0x38800000u) { /* a subnormal number: its last place is 2^-24 */
        return (uint16_t)(sign | (uint16_t)rintf(func_real32(size) * 0x1p24f));
    }
    return (uint16_t)(sign | (uint16_t)((size - 0x38000000u + 0xfffu + (size >> 13 & 1u)) >> 13));
}""",
    "func_float_of_bfloat16": """\
/* bfloat16: the upper half of a number of single precision. */
static float func_float_of_bfloat16(uint16_t x) {
    return func_real32((uint32_t)x << 16);
}""",
    "func_bfloat16_of_float": """\
static uint16_t func_bfloat16_of_float(float x) {
    const uint32_t bits = func_bits32(x);
    const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
    return (uint16_t)((is_nan ? bits | 0x400000u : bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}""",
    "func_bit_count": """\
static uint64_t func_bit_count(uint64_t x) {
    uint64_t count = 0;
    for (; x != 0; x &= x - 1) {
        ++count;
    }
    return count;
}""",
    "func_complex": """\
static double complex func_complex(double re, double im) {
    const double parts[2] = {re, im};
    double complex z;
    memcpy(&z, parts, sizeof z);
    return z;
}""",
}
"""Functions that printed code calls."""
