"""The exponent and the last bit of floating point numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from func.backends.loops.kernels import DType
from func.backends.number_types import is_bfloat16
from func.backends.scalars.ir_values import Value, constant, element, widened, width_of
from func.backends.scalars.operation_table import emits

if TYPE_CHECKING:
    from func.backends.scalars.operations import Scalars

FRACTION = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}
"""Bits of the fraction of numbers."""


def _integer(d: DType) -> DType:
    return np.dtype(f"i{d.itemsize}")


def bits_of(s: Scalars, d: DType, x: Value) -> Value:
    """The bits of floats as integers of the same size."""
    return x if is_bfloat16(d) else s.builder.bitcast(x, widened(element(_integer(d)), width_of(x)))


def from_bits(s: Scalars, d: DType, x: Value) -> Value:
    """The floats with these bits."""
    return x if is_bfloat16(d) else s.builder.bitcast(x, widened(element(d), width_of(x)))


def _patterns(d: DType) -> tuple[int, int]:
    """The bits of infinity, and all bits but the sign."""
    return int(np.asarray(np.inf, d).view(_integer(d))), 2 ** (8 * d.itemsize - 1) - 1


@emits("nextafter", "f")
def _nextafter(s: Scalars, d: DType, a: list[Value]) -> Value:
    """x one step towards y; the bits of floats of one sign are ordered as integers."""
    (x, y), b, width, whole = a, s.builder, width_of(a[0]), _integer(d)
    infinity, rest = _patterns(d)
    zero, one = constant(whole, 0, width), constant(whole, 1, width)
    p, q = bits_of(s, d, x), bits_of(s, d, y)
    size, other_size = [b.and_(bits, constant(whole, rest, width)) for bits in (p, q)]
    sign = b.and_(q, constant(whole, -rest - 1, width))
    nan = [b.icmp_signed(">", bits, constant(whole, infinity, width)) for bits in (size, other_size)]
    shrinks = b.or_(b.icmp_signed("<", b.xor(p, q), zero), b.icmp_signed(">", size, other_size))
    stepped = b.select(shrinks, b.sub(p, one), b.add(p, one))
    stepped = b.select(b.icmp_signed("==", size, zero), b.or_(sign, one), stepped)
    same = b.or_(b.icmp_signed("==", p, q), b.icmp_signed("==", b.or_(size, other_size), zero))
    stepped = b.select(same, p if d == np.float16 else q, stepped)  # zeros of half precision keep their sign
    stepped = b.select(nan[0], p, b.select(nan[1], q, stepped))
    return from_bits(s, d, stepped)


@emits("spacing", "f")
def _spacing(s: Scalars, d: DType, a: list[Value]) -> Value:
    """The distance to the next number away from zero, with the sign of x; positive for zeros."""
    (x,), b, width, whole = a, s.builder, width_of(a[0]), _integer(d)
    infinity, rest = _patterns(d)
    fraction = FRACTION[d.name]
    p = bits_of(s, d, x)
    size = b.and_(p, constant(whole, rest, width))
    exponent = b.lshr(size, constant(whole, fraction, width))
    normal = b.shl(b.sub(exponent, constant(whole, fraction, width)), constant(whole, fraction, width))
    shift = b.sub(exponent, constant(whole, 1, width))
    inside = b.icmp_signed(">", shift, constant(whole, 0, width))
    tiny = b.shl(constant(whole, 1, width), b.select(inside, shift, constant(whole, 0, width)))
    distance = b.select(b.icmp_signed(">", exponent, constant(whole, fraction, width)), normal, tiny)
    last = b.icmp_signed("==", size, constant(whole, infinity - 1, width))
    sign = b.and_(p, constant(whole, -rest - 1, width))
    sign = b.select(b.icmp_signed("==", size, constant(whole, 0, width)), size, sign)
    distance = b.or_(b.select(last, constant(whole, infinity, width), distance), sign)
    quiet = constant(whole, infinity | 1 << (fraction - 1), width)
    return from_bits(s, d, b.select(b.icmp_signed(">=", size, constant(whole, infinity, width)), quiet, distance))


@emits("exponent", "f")
def _exponent(s: Scalars, d: DType, a: list[Value]) -> Value:
    """The exponent of frexp as a 32-bit integer; 0 for zero, infinities and NaN."""
    (x,), b, width, whole = a, s.builder, width_of(a[0]), _integer(d)
    infinity, rest = _patterns(d)
    fraction = FRACTION[d.name]
    scale = fraction + 2
    tiny = b.fcmp_ordered("<", s.intrinsic("fabs", x), constant(d, np.finfo(d).smallest_normal, width))
    scaled = b.select(tiny, b.fmul(x, constant(d, 2.0**scale, width)), x)
    size = b.and_(bits_of(s, d, scaled), constant(whole, rest, width))
    raised = b.lshr(size, constant(whole, fraction, width))
    bias = (infinity >> fraction >> 1) - 1
    number = b.sub(raised, constant(whole, bias, width))
    number = b.select(tiny, b.sub(number, constant(whole, scale, width)), number)
    endless = b.icmp_signed(">=", size, constant(whole, infinity, width))
    has_no_exponent = b.or_(b.icmp_signed("==", size, constant(whole, 0, width)), endless)
    return s.convert(b.select(has_no_exponent, constant(whole, 0, width), number), whole, np.dtype(np.int32))
