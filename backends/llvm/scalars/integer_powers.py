"""Powers of two, integer powers, greatest common divisors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from func.backends.llvm import ir
from func.backends.llvm.scalars.floats import FRACTION, from_bits
from func.backends.llvm.scalars.ir_values import Value, constant, element, width_of
from func.backends.llvm.scalars.operation_table import emits
from func.backends.loops.kernels import DType

if TYPE_CHECKING:
    from func.backends.llvm.scalars.operations import Scalars

INDEX = np.dtype(np.int64)


@emits("ldexp", "f")
def _ldexp(s: Scalars, d: DType, a: list[Value]) -> Value:
    """a[1] · 2^a[0], rounded once: intermediate values stay normal until the last product."""
    (n, x), b, width, whole = a, s.builder, width_of(a[1]), np.dtype(f"i{d.itemsize}")
    top = int(np.finfo(d).maxexp) - 1
    least, fraction = 1 - top, FRACTION[d.itemsize]
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


def _loop_function(
    s: Scalars, name: str, d: DType, step: Callable[[Any, Any, Any, Any], tuple[Any, Any, Any]]
) -> ir.Function:
    """A function (x, y) of unsigned numbers that steps (x, y, 1) until y is zero and returns the third number."""
    kind = element(d)
    full = f"func_{name}_{kind}"
    function: Any = s.module.globals.get(full)
    if function is not None:
        return function  # type: ignore[no-any-return]
    function = ir.Function(s.module, ir.FunctionType(kind, [kind, kind]), full)
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
    b.ret(states[0] if name == "gcd" else states[2])
    return function  # type: ignore[no-any-return]


def _divisor(s: Scalars, d: DType, a: list[Value]) -> Value:
    """Euclid's algorithm."""
    function = _loop_function(s, "gcd", d, lambda b, x, y, one: (y, b.urem(x, y), one))
    return s.per_lane(function, [s.apply("absolute", d, [x], d) for x in a])


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

    return s.per_lane(_loop_function(s, "power", d, step), a)
