"""Arithmetic on elements: the operations of NumPy's ufuncs of the same names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from func.backends.loops.kernels import DType
from func.backends.scalars.ir_values import Value, constant, width_of
from func.backends.scalars.operation_table import TABLE, emits

if TYPE_CHECKING:
    from func.backends.scalars.operations import Scalars


def _binary(name: str, kinds: str, method: str) -> None:
    if kinds == "f":
        TABLE[name, "f"] = lambda s, d, a: getattr(s.builder, method)(a[0], a[1], "", s.flags)
        return
    TABLE.update({(name, kind): lambda s, d, a: getattr(s.builder, method)(a[0], a[1]) for kind in kinds})


for _name, _integer, _float in (("add", "add", "fadd"), ("subtract", "sub", "fsub"), ("multiply", "mul", "fmul")):
    _binary(_name, "iu", _integer)
    _binary(_name, "f", _float)
_binary("add", "b", "or_")
_binary("multiply", "b", "and_")
_binary("divide", "f", "fdiv")
for _name, _method in (("bitwise_and", "and_"), ("bitwise_or", "or_"), ("bitwise_xor", "xor")):
    _binary(_name, "biu", _method)
_binary("maximum", "b", "or_")
_binary("minimum", "b", "and_")
_binary("fmax", "b", "or_")
_binary("fmin", "b", "and_")


@emits("positive", "*")
def _positive(s: Scalars, d: DType, a: list[Value]) -> Value:
    return a[0]


@emits("negative", "iuf")
def _negative(s: Scalars, d: DType, a: list[Value]) -> Value:
    return s.builder.fneg(a[0]) if d.kind == "f" else s.builder.neg(a[0])


@emits("absolute", "iubf")
def _absolute(s: Scalars, d: DType, a: list[Value]) -> Value:
    (x,) = a
    if d.kind == "f":
        return s.intrinsic("fabs", x)
    if d.kind != "i":
        return x
    below = s.builder.icmp_signed("<", x, constant(d, 0, width_of(x)))
    return s.builder.select(below, s.builder.neg(x), x)


@emits("square", "iuf")
def _square(s: Scalars, d: DType, a: list[Value]) -> Value:
    return s.builder.fmul(a[0], a[0]) if d.kind == "f" else s.builder.mul(a[0], a[0])


@emits("reciprocal", "f")
def _reciprocal(s: Scalars, d: DType, a: list[Value]) -> Value:
    return s.builder.fdiv(constant(d, 1, width_of(a[0])), a[0])


@emits("sign", "iuf")
def _sign(s: Scalars, d: DType, a: list[Value]) -> Value:
    (x,), b, width = a, s.builder, width_of(a[0])
    zero, one = constant(d, 0, width), constant(d, 1, width)
    if d.kind == "u":
        return b.select(b.icmp_unsigned(">", x, zero), one, zero)
    minus = constant(d, -1, width)
    if d.kind == "i":
        return b.select(b.icmp_signed(">", x, zero), one, b.select(b.icmp_signed("<", x, zero), minus, zero))
    below = b.select(b.fcmp_ordered("<", x, zero), minus, b.select(b.fcmp_ordered("==", x, zero), zero, x))
    return b.select(b.fcmp_ordered(">", x, zero), one, below)


def _extremum(name: str, sign: str, ignores_nan: bool) -> None:
    def emit(s: Scalars, d: DType, a: list[Value]) -> Value:
        x, y = a
        b = s.builder
        if d.kind != "f":
            compare = b.icmp_signed if d.kind == "i" else b.icmp_unsigned
            return b.select(compare(sign, x, y), x, y)
        tested = y if ignores_nan else x
        larger = b.select(b.fcmp_ordered(sign, x, y), x, y)  # the second of two zeros, as NumPy's vector loops
        return b.select(b.fcmp_unordered("uno", tested, tested), x, larger)

    for kind in "iuf":
        TABLE[name, kind] = emit


_extremum("maximum", ">", False)
_extremum("minimum", "<", False)
_extremum("fmax", ">", True)
_extremum("fmin", "<", True)


@emits("nan_safe_multiply", "f")
def _nan_safe_multiply(s: Scalars, d: DType, a: list[Value]) -> Value:
    """x · y, zero wherever y is."""
    b = s.builder
    zero = constant(d, 0, width_of(a[0]))
    return b.select(b.fcmp_ordered("==", a[1], zero), zero, b.fmul(a[0], a[1]))


@emits("nan_safe_multiply", "iu")
def _nan_safe_multiply_integer(s: Scalars, d: DType, a: list[Value]) -> Value:
    return s.builder.mul(a[0], a[1])


def _scaled(name: str, factor: float) -> None:
    def emit(s: Scalars, d: DType, a: list[Value]) -> Value:
        return s.builder.fmul(a[0], constant(d, factor, width_of(a[0])))

    TABLE[name, "f"] = emit


_scaled("deg2rad", np.pi / 180)
_scaled("rad2deg", 180 / np.pi)


@emits("sqrt", "f")
def _sqrt(s: Scalars, d: DType, a: list[Value]) -> Value:
    return s.intrinsic("sqrt", a[0])


for _name in ("floor", "ceil", "trunc", "rint", "copysign"):
    TABLE[_name, "f"] = lambda s, d, a, name=_name: s.intrinsic(name, *a)  # type: ignore[misc]
for _name in ("floor", "ceil", "trunc", "rint"):
    for _kind in "iub":
        TABLE[_name, _kind] = _positive


@emits("heaviside", "f")
def _heaviside(s: Scalars, d: DType, a: list[Value]) -> Value:
    (x, y), b, width = a, s.builder, width_of(a[0])
    zero, one = constant(d, 0, width), constant(d, 1, width)
    below = b.select(b.fcmp_ordered("<", x, zero), zero, x)
    return b.select(b.fcmp_ordered("==", x, zero), y, b.select(b.fcmp_ordered(">", x, zero), one, below))


@emits("fmod", "f")
def _fmod(s: Scalars, d: DType, a: list[Value]) -> Value:
    return s.library("fmod", d, a)
