"""Arithmetic on vectors of IR: the language of the elementary functions.

A function body is ordinary Python on `Real`, `Bits` and `Mask`, one instruction per operator. An `Emitter` knows the
vector type, the builder and whether the host has fused multiply-add. Python numbers become splatted constants.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

from func.backends import ir

Choice = TypeVar("Choice")
Number: TypeAlias = "Real | float"
Integer: TypeAlias = "Bits | int"


class Coefficients(NamedTuple):
    """Coefficients of one function, lowest order first, for each precision."""

    double: tuple[float, ...]
    single: tuple[float, ...]


def vector_of(scalar: ir.Type, count: int) -> ir.Type:
    """The vector type of `count` lanes."""
    return ir.VectorType(scalar, count)


@functools.cache
def splatted(kind: Any, number: float | int, negative: bool) -> Any:
    """A constant vector of one number, `negative` if its sign bit is set; memoized together with its text."""
    lane = ir.Constant(kind.element, number)
    return ir.Constant(kind, [lane] * kind.count)


class Emitter:
    """Builds instructions on vectors of one type: `count` lanes of `width` bits.

    `call(name, *values)` emits another elementary function on the same type, `scalar(name, *values)` libm's function
    lane by lane.
    """

    def __init__(
        self,
        builder: ir.IRBuilder,
        count: int,
        width: int,
        fused: bool,
        call: Callable[..., Any],
        scalar: Callable[..., Any],
        register_bits: int = 0,
    ) -> None:
        self.builder = builder
        self.count = count
        self.width = width
        self.fused = fused
        self.call_values = call
        self.scalar_values = scalar
        self.double = width == 64
        self.digits = 52 if self.double else 23
        self.bias = 1023 if self.double else 127
        self.tiny = 2.0 ** (1 - self.bias)
        self.largest = float((2 - 2.0**-self.digits) * 2.0**self.bias)
        self.real = vector_of(ir.DoubleType() if self.double else ir.FloatType(), count)
        self.integer = vector_of(ir.IntType(width), count)
        self.mask = vector_of(ir.IntType(1), count)
        self.fills_avx512 = count * width == register_bits == 512

    def pick(self, double: Choice, single: Choice) -> Choice:
        """The first in double precision, the second in single."""
        return double if self.double else single

    def coefficients(self, table: Coefficients) -> tuple[float, ...]:
        """The coefficients in this precision."""
        return table.double if self.double else table.single

    def number(self, x: Number) -> Real:
        """A vector: a Python number in all lanes."""
        return x if isinstance(x, Real) else Real(self, splatted(self.real, float(x), math.copysign(1.0, x) < 0))

    def bits(self, x: Integer) -> Bits:
        """A vector of integers."""
        return x if isinstance(x, Bits) else Bits(self, splatted(self.integer, x, x < 0))

    def pattern(self, x: float) -> int:
        """The bits of a number as an integer."""
        return int.from_bytes(struct.pack("<d" if self.double else "<f", x), "little")

    def values(self, xs: Sequence[Number]) -> list[Any]:
        """The IR values of some vectors."""
        return [self.number(x).value for x in xs]

    def reals(self, values: Sequence[Any]) -> list[Real]:
        """IR values as vectors."""
        return [Real(self, value) for value in values]

    def widened(self, x: Real) -> Real:
        """The numbers in double precision."""
        wide = Emitter(self.builder, self.count, 64, self.fused, self.call_values, self.scalar_values)
        return Real(wide, self.builder.fpext(x.value, wide.real))

    def narrowed(self, x: Real) -> Real:
        """Numbers of double precision rounded to this one."""
        return Real(self, self.builder.fptrunc(x.value, self.real))

    def call(self, name: str, *xs: Number) -> Real:
        """Another elementary function of the same lanes."""
        return Real(self, self.call_values(self.builder, name, *self.values(xs)))

    def scalar(self, name: str, *xs: Number) -> Real:
        """libm's function, lane by lane."""
        return Real(self, self.scalar_values(self.builder, name, *self.values(xs)))

    def intrinsic(self, name: str, *xs: Number) -> Real:
        """An LLVM intrinsic of reals."""
        values = self.values(xs)
        kind = ir.FunctionType(self.real, [self.real] * len(values))
        suffix = f"v{self.count}f{self.width}"
        return Real(self, self.builder.call(self.declared(f"llvm.{name}.{suffix}", kind), values))

    def declared(self, name: str, kind: ir.FunctionType) -> Any:
        """A function of the module by name, declared at its first use."""
        module = self.builder.module
        return module.globals[name] if name in module.globals else ir.Function(module, kind, name)

    def fma(self, a: Number, b: Number, c: Number) -> Real:
        """a·b + c, with one rounding where the host has the instruction and two elsewhere."""
        if self.fused:
            return self.intrinsic("fma", a, b, c)
        return self.number(a) * b + c

    def sqrt(self, x: Number) -> Real:
        """The square root, correctly rounded."""
        return self.intrinsic("sqrt", x)

    def polynomial(self, x: Real, coefficients: Sequence[float]) -> Real:
        """A polynomial, lowest order first, by Estrin's scheme: pairs, then pairs of pairs, in few dependent steps."""
        terms: list[Number] = list(coefficients)
        power = x
        while len(terms) > 1:
            pairs = [self.fma(terms[i + 1], power, terms[i]) for i in range(0, len(terms) - 1, 2)]
            terms = [*pairs, *terms[2 * len(pairs) :]]
            if len(terms) > 1:
                power = power * power
        return self.number(terms[0])

    def two_sum(self, a: Real, b: Number) -> tuple[Real, Real]:
        """a + b without error as a rounded sum and its remainder, where |a| ≥ |b| or a = 0. Source: Dekker (1971)."""
        total = a + b
        return total, b - (total - a)

    def two_product(self, a: Real, b: Number) -> tuple[Real, Real]:
        """a·b without error as a rounded product and its remainder. Source: Dekker (1971), Veltkamp's splitting."""
        b = self.number(b)
        product = a * b
        if self.fused:
            return product, self.fma(a, b, -product)
        a1, a2 = self.halves(a)
        b1, b2 = self.halves(b)
        return product, ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2

    def halves(self, x: Real) -> tuple[Real, Real]:
        """x as a sum of two numbers of half the digits; a mask of bits gives the upper half."""
        cleared = (self.digits + 2) // 2
        upper = (x.bits() & (-1 << cleared)).real()
        return upper, x - upper

    def nearest(self, x: Number, scale: Number = 1.0) -> Real:
        """The integer nearest to x·scale, as a real; |x·scale| < 2**50 (2**21).

        Adding a number whose last place counts ones rounds to an integer.
        """
        shift = 1.5 * 2.0**self.digits
        return self.fma(x, scale, shift) - shift

    def low_bits(self, n: Real) -> Bits:
        """The last bits of a number that is an integer."""
        return (n + 1.5 * 2.0**self.digits).bits()

    def power_of_two(self, n: Real) -> Real:
        """2**n of an n that is an integer, 1 - bias ≤ n ≤ bias."""
        return ((n + (1.5 * 2.0**self.digits + self.bias)).bits() << self.digits).real()

    def scaled(self, x: Real, n: Real) -> Real:
        """x·2**n of an n that is an integer, |n| < 2·bias, in two steps: the first has a normal result.

        AVX-512 has an instruction for it.
        """
        if self.fills_avx512:
            letters, byte = ("pd", ir.IntType(8)) if self.double else ("ps", ir.IntType(16))
            number, current = ir.IntType(32), 4
            kind = ir.FunctionType(self.real, [self.real, self.real, self.real, byte, number])
            scale = self.declared(f"llvm.x86.avx512.mask.scalef.{letters}.512", kind)
            values = [x.value, n.value, x.value, byte(-1), number(current)]
            return Real(self, self.builder.call(scale, values))
        half = self.nearest(n, 0.5)
        return x * self.power_of_two(half) * self.power_of_two(n - half)

    def mantissa_exponent(self, x: Real, subnormal: bool = True) -> tuple[Real, Real]:
        """m in [√½, √2) and the integer e with x = m·2**e, for positive finite x; subnormal x only if `subnormal`."""
        whole = 2.0**self.digits
        offset: Number = whole + self.bias
        if subnormal:
            small = x < self.tiny
            step = self.digits + 2
            x = small.select(x * 2.0**step, x)
            offset = small.select(whole + self.bias + step, offset)
        above = x.bits() - self.pattern(math.sqrt(0.5))
        mantissa = (x.bits() - (above & (-1 << self.digits))).real()
        biased = (above + (self.bias << self.digits)) >> self.digits
        return mantissa, (biased | self.pattern(whole)).real() - offset

    def unless_rare(self, rare: Mask, usual: Real, name: str, *xs: Number) -> Real:
        """libm's function where `rare` is true, `usual` elsewhere, by a branch if a lane is rare."""
        builder = self.builder
        every = ir.IntType(self.count)
        some = builder.icmp_unsigned("!=", builder.bitcast(rare.value, every), ir.Constant(every, 0))
        before = builder.block
        with builder.if_then(some, likely=False):
            exact = rare.select(self.scalar(name, *xs), usual)
            inside = builder.block
        joined = builder.phi(self.real)
        joined.add_incoming(usual.value, before)
        joined.add_incoming(exact.value, inside)
        return Real(self, joined)


class _Vector:
    """An IR value and the emitter of instructions on it."""

    __slots__ = ("emit", "value")

    def __init__(self, emit: Emitter, value: Any) -> None:
        self.emit = emit
        self.value = value


class Real(_Vector):
    """A vector of float64 or float32."""

    __slots__ = ()

    def apply(self, name: str, left: Number, right: Number) -> Real:
        build = getattr(self.emit.builder, name)
        return Real(self.emit, build(self.emit.number(left).value, self.emit.number(right).value))

    def __add__(self, other: Number) -> Real:
        return self.apply("fadd", self, other)

    def __radd__(self, other: float) -> Real:
        return self.apply("fadd", other, self)

    def __sub__(self, other: Number) -> Real:
        return self.apply("fsub", self, other)

    def __rsub__(self, other: float) -> Real:
        return self.apply("fsub", other, self)

    def __mul__(self, other: Number) -> Real:
        return self.apply("fmul", self, other)

    def __rmul__(self, other: float) -> Real:
        return self.apply("fmul", other, self)

    def __truediv__(self, other: Number) -> Real:
        return self.apply("fdiv", self, other)

    def __rtruediv__(self, other: float) -> Real:
        return self.apply("fdiv", other, self)

    def __neg__(self) -> Real:
        return Real(self.emit, self.emit.builder.fneg(self.value))

    def __abs__(self) -> Real:
        return self.emit.intrinsic("fabs", self)

    def compared(self, sign: str, other: Number) -> Mask:
        return Mask(self.emit, self.emit.builder.fcmp_ordered(sign, self.value, self.emit.number(other).value))

    def __lt__(self, other: Number) -> Mask:
        return self.compared("<", other)

    def __le__(self, other: Number) -> Mask:
        return self.compared("<=", other)

    def __gt__(self, other: Number) -> Mask:
        return self.compared(">", other)

    def __ge__(self, other: Number) -> Mask:
        return self.compared(">=", other)

    def equals(self, other: Number) -> Mask:
        """The mask of equal elements."""
        return self.compared("==", other)

    def is_nan(self) -> Mask:
        """The mask of NaN."""
        return Mask(self.emit, self.emit.builder.fcmp_unordered("uno", self.value, self.value))

    def at_most(self, limit: Number) -> Real:
        """The lesser of both; NaN stays."""
        return (self > limit).select(limit, self)

    def at_least(self, limit: Number) -> Real:
        """The greater of both; NaN stays."""
        return (self < limit).select(limit, self)

    def with_sign(self, signed: Real) -> Real:
        """The absolute value with the sign of another number."""
        return self.emit.intrinsic("copysign", self, signed)

    def sign_bit(self) -> Bits:
        """The bit of the sign."""
        return self.bits() & (1 << (self.emit.width - 1))

    def flipped(self, sign: Bits) -> Real:
        """The sign changed where the bit is set."""
        return (self.bits() ^ sign).real()

    def bits(self) -> Bits:
        """The same bits as integers."""
        return Bits(self.emit, self.emit.builder.bitcast(self.value, self.emit.integer))


class Bits(_Vector):
    """A vector of integers as wide as the reals."""

    __slots__ = ()

    def apply(self, name: str, other: Integer) -> Bits:
        return Bits(self.emit, getattr(self.emit.builder, name)(self.value, self.emit.bits(other).value))

    def __add__(self, other: Integer) -> Bits:
        return self.apply("add", other)

    def __sub__(self, other: Integer) -> Bits:
        return self.apply("sub", other)

    def __and__(self, other: Integer) -> Bits:
        return self.apply("and_", other)

    def __or__(self, other: Integer) -> Bits:
        return self.apply("or_", other)

    def __xor__(self, other: Integer) -> Bits:
        return self.apply("xor", other)

    def __lshift__(self, other: Integer) -> Bits:
        return self.apply("shl", other)

    def __rshift__(self, other: Integer) -> Bits:
        return self.apply("lshr", other)

    def equals(self, other: Integer) -> Mask:
        """The mask of equal elements."""
        return Mask(self.emit, self.emit.builder.icmp_signed("==", self.value, self.emit.bits(other).value))

    def real(self) -> Real:
        """The same bits as reals."""
        return Real(self.emit, self.emit.builder.bitcast(self.value, self.emit.real))


class Mask(_Vector):
    """A vector of truth values."""

    __slots__ = ()

    def __and__(self, other: Mask) -> Mask:
        return Mask(self.emit, self.emit.builder.and_(self.value, other.value))

    def __or__(self, other: Mask) -> Mask:
        return Mask(self.emit, self.emit.builder.or_(self.value, other.value))

    def __invert__(self) -> Mask:
        return Mask(self.emit, self.emit.builder.not_(self.value))

    def bits_where(self, bits: Bits) -> Bits:
        """The bits where it holds, 0 elsewhere."""
        emit = self.emit
        return Bits(emit, emit.builder.select(self.value, bits.value, emit.bits(0).value))

    def select(self, yes: Number, no: Number) -> Real:
        """`yes` where it holds, `no` elsewhere."""
        emit = self.emit
        return Real(emit, emit.builder.select(self.value, emit.number(yes).value, emit.number(no).value))


# A function of an emitter and its arguments.
FunctionBody: TypeAlias = Callable[..., Real]
