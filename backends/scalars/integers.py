"""Division with the sign of the divisor, shifts, bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from func.backends.loops.kernels import DType
from func.backends.scalars.ir_values import Value, constant, width_of
from func.backends.scalars.operation_table import emits

if TYPE_CHECKING:
    from func.backends.scalars.operations import Scalars


def _divmod_float(s: Scalars, d: DType, a: list[Value]) -> tuple[Value, Value]:
    """(floor of the quotient, remainder), by the steps of CPython's float_divmod, as NumPy does."""
    (x, y), b, width = a, s.builder, width_of(a[0])
    zero = constant(d, 0, width)
    rest = s.library("fmod", d, a)
    quotient = b.fdiv(b.fsub(x, rest), y)
    exact = b.fcmp_ordered("==", rest, zero)
    signs_differ = b.xor(b.fcmp_ordered("<", y, zero), b.fcmp_ordered("<", rest, zero))
    moves = b.and_(b.not_(exact), signs_differ)
    rest = b.select(moves, b.fadd(rest, y), b.select(exact, s.intrinsic("copysign", zero, y), rest))
    quotient = b.select(moves, b.fsub(quotient, constant(d, 1, width)), quotient)
    floored = s.intrinsic("floor", quotient)
    far = b.fcmp_ordered(">", b.fsub(quotient, floored), constant(d, 0.5, width))
    floored = b.select(far, b.fadd(floored, constant(d, 1, width)), floored)
    whole = b.select(b.fcmp_unordered("!=", quotient, zero), floored, s.intrinsic("copysign", zero, b.fdiv(x, y)))
    by_zero = b.fcmp_ordered("==", y, zero)
    return b.select(by_zero, b.fdiv(x, y), whole), b.select(by_zero, s.library("fmod", d, a), rest)


@emits("floor_divide", "f")
def _floor_divide(s: Scalars, d: DType, a: list[Value]) -> Value:
    return _divmod_float(s, d, a)[0]


@emits("remainder", "f")
def _remainder(s: Scalars, d: DType, a: list[Value]) -> Value:
    return _divmod_float(s, d, a)[1]


def _divmod_integer(s: Scalars, d: DType, a: list[Value]) -> tuple[Value, Value]:
    (x, y), b, width = a, s.builder, width_of(a[0])
    zero, one = constant(d, 0, width), constant(d, 1, width)
    by_zero = b.icmp_signed("==", y, zero)
    safe = b.select(by_zero, one, y)
    if d.kind == "u":
        return b.select(by_zero, zero, b.udiv(x, safe)), b.select(by_zero, zero, b.urem(x, safe))
    minus = b.icmp_signed("==", y, constant(d, -1, width))  # the smallest number over -1 is itself
    safe = b.select(minus, one, safe)
    quotient, rest = b.sdiv(x, safe), b.srem(x, safe)
    moves = b.and_(b.icmp_signed("!=", rest, zero), b.icmp_signed("<", b.xor(x, y), zero))
    quotient = b.select(moves, b.sub(quotient, one), quotient)
    rest = b.select(moves, b.add(rest, y), rest)
    quotient = b.select(minus, b.neg(x), quotient)
    rest = b.select(minus, zero, rest)
    return b.select(by_zero, zero, quotient), b.select(by_zero, zero, rest)


@emits("floor_divide", "iu")
def _floor_divide_integer(s: Scalars, d: DType, a: list[Value]) -> Value:
    return _divmod_integer(s, d, a)[0]


@emits("remainder", "iu")
def _remainder_integer(s: Scalars, d: DType, a: list[Value]) -> Value:
    return _divmod_integer(s, d, a)[1]


@emits("left_shift", "iu")
def _left_shift(s: Scalars, d: DType, a: list[Value]) -> Value:
    (x, y), b, width = a, s.builder, width_of(a[0])
    inside = b.icmp_unsigned("<", y, constant(d, 8 * d.itemsize, width))
    zero = constant(d, 0, width)
    return b.select(inside, b.shl(x, b.select(inside, y, zero)), zero)


@emits("right_shift", "iu")
def _right_shift(s: Scalars, d: DType, a: list[Value]) -> Value:
    (x, y), b, width = a, s.builder, width_of(a[0])
    top = 8 * d.itemsize
    inside = b.icmp_unsigned("<", y, constant(d, top, width))
    last = constant(d, top - 1, width)
    shift = b.select(inside, y, last)
    if d.kind == "i":
        return b.ashr(x, shift)
    return b.select(inside, b.lshr(x, shift), constant(d, 0, width))


@emits("bitwise_count", "iu")
def _bitwise_count(s: Scalars, d: DType, a: list[Value]) -> Value:
    x = s.apply("absolute", d, a, d)
    count = s.intrinsic("ctpop", x)
    return s.convert(count, d, np.dtype(np.uint8))
