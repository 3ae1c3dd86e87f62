"""Comparisons, logic, and tests of one number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from func.backends.loops.kernels import DType
from func.backends.scalars.ir_values import Value, constant, element, widened, width_of
from func.backends.scalars.operation_table import TABLE, emits

if TYPE_CHECKING:
    from func.backends.scalars.operations import Scalars


def _comparison(name: str, sign: str) -> None:
    def emit(s: Scalars, d: DType, a: list[Value]) -> Value:
        if d.kind == "f":
            return (s.builder.fcmp_unordered if sign == "!=" else s.builder.fcmp_ordered)(sign, a[0], a[1])
        return (s.builder.icmp_signed if d.kind == "i" else s.builder.icmp_unsigned)(sign, a[0], a[1])

    TABLE[name, "*"] = emit


for _name, _sign in (
    ("equal", "=="),
    ("not_equal", "!="),
    ("less", "<"),
    ("less_equal", "<="),
    ("greater", ">"),
    ("greater_equal", ">="),
):
    _comparison(_name, _sign)


def _logical(name: str, method: str) -> None:
    def emit(s: Scalars, d: DType, a: list[Value]) -> Value:
        return getattr(s.builder, method)(s.nonzero(a[0], d), s.nonzero(a[1], d))

    TABLE[name, "*"] = emit


for _name, _method in (("logical_and", "and_"), ("logical_or", "or_"), ("logical_xor", "xor")):
    _logical(_name, _method)


@emits("logical_not", "*")
def _logical_not(s: Scalars, d: DType, a: list[Value]) -> Value:
    return s.builder.not_(s.nonzero(a[0], d))


@emits("invert", "biu")
def _invert(s: Scalars, d: DType, a: list[Value]) -> Value:
    return s.builder.not_(a[0])


@emits("select", "*")
def _select(s: Scalars, d: DType, a: list[Value]) -> Value:
    return s.builder.select(a[0], a[1], a[2])


@emits("isnan", "f")
def _isnan(s: Scalars, d: DType, a: list[Value]) -> Value:
    return s.builder.fcmp_unordered("uno", a[0], a[0])


@emits("isinf", "f")
def _isinf(s: Scalars, d: DType, a: list[Value]) -> Value:
    size = s.intrinsic("fabs", a[0])
    return s.builder.fcmp_ordered("==", size, constant(d, np.inf, width_of(a[0])))


@emits("isfinite", "f")
def _isfinite(s: Scalars, d: DType, a: list[Value]) -> Value:
    size = s.intrinsic("fabs", a[0])
    return s.builder.fcmp_ordered("<", size, constant(d, np.inf, width_of(a[0])))


@emits("signbit", "f")
def _signbit(s: Scalars, d: DType, a: list[Value]) -> Value:
    bits = np.dtype(f"i{d.itemsize}")
    width = width_of(a[0])
    return s.builder.icmp_signed("<", s.builder.bitcast(a[0], widened(element(bits), width)), constant(bits, 0, width))


@emits("isnan", "iub")
@emits("isinf", "iub")
def _never(s: Scalars, d: DType, a: list[Value]) -> Value:
    return constant(np.dtype(bool), False, width_of(a[0]))


@emits("isfinite", "iub")
def _always(s: Scalars, d: DType, a: list[Value]) -> Value:
    return constant(np.dtype(bool), True, width_of(a[0]))
