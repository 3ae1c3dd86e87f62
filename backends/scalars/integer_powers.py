"""Powers of two, integer powers, greatest common divisors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from func.backends import ir
from func.backends.loops.kernels import DType
from func.backends.scalars.floats import FRACTION, from_bits
from func.backends.scalars.ir_values import Value, constant, width_of
from func.backends.scalars.operation_table import emits

if TYPE_CHECKING:
    from func.backends.scalars.operations import Scalars

INDEX = np.dtype(np.int64)


@emits("ldexp", "f")
def _ldexp(s: Scalars, d: DType, a: list[Value]) -> Value:
    """a[1] · 2^a[0], rounded once: intermediate values stay normal until the last product."""
    (n, x), b, width, whole = a, s.builder, width_of(a[1]), np.dtype(f"i{d.itemsize}")
    top = int(np.finfo(d).maxexp) - 1
    least, fraction = 1 - top, FRACTION[d.name]
    n = s.convert(n, INDEX, whole)

    def shifted(outside: Value, step: int) -> None:
        nonlocal n, x
        x = b.select(outside, b.fmul(x, constant(d, 2.0**step, width)), x)
        n = b.select(outside, b.sub(n, constant(whole, step, width)), n)

    for step in (top, top, least + fraction + 1, least + fraction + 1):
        edge = constant(whole, top if step > 0 else least, width)
        shifted(b.icmp_signed(">" if step > 0 else "<", n, edge), step)
    for sign, end in ((">", top), ("<", least)):
        edge = constant(whole, end, width)
        n = b.select(b.icmp_signed(sign, n, edge), edge, n)
    power = b.shl(b.add(n, constant(whole, top, width)), constant(whole, fraction, width))
    return b.fmul(x, from_bits(s, d, power))


def _divisor(s: Scalars, d: DType, a: list[Value]) -> Value:
    """Euclid's algorithm."""
    sizes = [s.apply("absolute", d, [x], d) for x in a]
    return s.repeated("gcd", d, lambda b, x, y, one: (y, b.urem(x, y), one), 0, sizes)


@emits("gcd", "iu")
def _gcd(s: Scalars, d: DType, a: list[Value]) -> Value:
    return _divisor(s, d, a)


@emits("lcm", "iu")
def _lcm(s: Scalars, d: DType, a: list[Value]) -> Value:
    b, width = s.builder, width_of(a[0])
    zero, one = constant(d, 0, width), constant(d, 1, width)
    divisor = _divisor(s, d, a)
    nothing = b.icmp_signed("==", divisor, zero)
    x, y = [s.apply("absolute", d, [value], d) for value in a]
    return b.mul(b.udiv(x, b.select(nothing, one, divisor)), y)


@emits("power", "u")
def _power(s: Scalars, d: DType, a: list[Value]) -> Value:
    """By squares, one for every bit of the exponent."""

    def step(b: Any, x: Any, y: Any, total: Any) -> tuple[Any, Any, Any]:
        one = ir.Constant(x.type, 1)
        is_odd = b.icmp_unsigned("!=", b.and_(y, one), ir.Constant(x.type, 0))
        return b.mul(x, x), b.lshr(y, one), b.select(is_odd, b.mul(total, x), total)

    return s.repeated("power", d, step, 2, a)
