"""Rules for elementwise rows: neutral elements, signs, factors.

They keep every result to the last bit, but for the sign of a zero: where an array of zeros is added, which is left out,
and in products with cotangents. Adding the scalar 0.0, with which people turn −0.0 into 0.0, stays.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from func.interpreters.compile.passes.rewriting.rewriter import LARGE, Rewriter, Rule
from func.interpreters.core import Primitive
from func.interpreters.primitives.elementwise.builder import add, conjugate, multiply, nan_safe_multiply, negative
from func.interpreters.primitives.elementwise.table import (
    absolute,
    divide,
    equal,
    logical_not,
    make_complex,
    not_equal,
    positive,
    power,
    real,
    reciprocal,
    square,
    subtract,
)
from func.interpreters.primitives.structural.shapes import convert, where
from func.interpreters.program.program import Var

_BINADES = 100
"""Scalings by powers of two up to this one are taken to be exact."""


# --- neutral elements -------------------------------------------------------------------------------------------


def times_one(rw: Rewriter, out: Var, x: Any, y: Any) -> Any:
    """x · 1 = x, x · (−1) = −x."""
    for one, other in ((x, y), (y, x)):
        factor = rw.scalar(other)
        if factor == 1:
            return rw.fitted(one, out)
        if factor == -1 and out.dtype.kind in "fi":
            return rw.fitted(rw.emit(negative, one), out)
    return None


def over_one(rw: Rewriter, out: Var, x: Any, y: Any) -> Any:
    """x / 1 = x; a division by a power of two is a multiplication, which is faster."""
    divisor = rw.scalar(y)
    if divisor == 1:
        return rw.fitted(x, out)
    if is_power_of_two(divisor) and out.dtype in _WIDE:
        return rw.emit(multiply, x, 1 / divisor)
    return None


def plus_zero(rw: Rewriter, out: Var, x: Any, y: Any) -> Any:
    """x + (−0.0) = x, and x + 0 = x for integers; for floating point arrays of zeros see above."""
    for one, other in ((x, y), (y, x)):
        zero = rw.scalar(other)
        if zero == 0 and (out.dtype.kind in "iu" or (type(other) is Var and other.shape) or _is_negative_zero(zero)):
            return rw.fitted(one, out)
    return None


def minus_zero(rw: Rewriter, out: Var, x: Any, y: Any) -> Any:
    """x − 0.0 = x; an array of zeros minus x is −x."""
    right, left = rw.scalar(y), rw.scalar(x)
    if is_positive_zero(right):
        return rw.fitted(x, out)
    if left == 0 and type(x) is Var and x.shape and out.dtype.kind in "fc":
        return rw.fitted(rw.emit(negative, y), out)
    return None


def guarded_by_constant(rw: Rewriter, out: Var, x: Any, y: Any) -> Any:
    """nan_safe_multiply is a product where the first factor is known to be finite, or the second not to be zero."""
    factor = rw.scalar(y)
    if factor == 0:
        return filled(rw, out, 0)
    if factor is not None or _is_finite(rw, x):
        return rw.emit(multiply, x, y)
    return None


def _is_finite(rw: Rewriter, x: Any) -> bool:
    value = rw.value(x)
    return value is not None and getattr(value, "size", 1) <= LARGE and bool(np.isfinite(value).all())


def filled(rw: Rewriter, out: Var, fill: Any) -> Any:
    """A constant view in which one element stands for all."""
    return rw.constant(np.broadcast_to(np.asarray(fill, out.dtype), out.shape))


def small_power(rw: Rewriter, out: Var, x: Any, y: Any) -> Any:
    """x¹ = x; x² and 1/x are computed as such, which NumPy's power does too, after a look at the exponent."""
    exponent = rw.scalar(y)
    if exponent == 1:
        return rw.fitted(x, out)
    if exponent not in (2, -1) or out.dtype not in _WIDE or type(x) is not Var or x.dtype != out.dtype:
        return None
    return rw.fitted(rw.emit(square if exponent == 2 else reciprocal, x), out)


def scalar_for_array(primitive: Primitive) -> Rule:
    """A constant whose elements are all equal is written as a Python scalar where that changes no dtype."""

    def rule(rw: Rewriter, out: Var, *inputs: Any) -> Any:
        for place, x in enumerate(inputs):
            if type(x) is Var and rw.scalar(x) is not None:
                rest = [other for i, other in enumerate(inputs) if i != place]
                if any([type(other) is Var and other.shape == out.shape for other in rest]):
                    return rw.emit(primitive, *inputs[:place], rw.scalar(x), *inputs[place + 1 :])
        return None

    return rule


# --- signs and factors ------------------------------------------------------------------------------------------


def double_negative(rw: Rewriter, out: Var, x: Any) -> Any:
    """−(−x) = x, −(c x) = (−c) x, −(−a · b) = a · b."""
    inner = rw.inside(x, negative)
    if inner is not None:
        return inner
    product = rw.maker(x, multiply)
    if product is None or out.dtype.kind != "f":
        return None
    for factor, other in (product.inputs, product.inputs[::-1]):
        if rw.inside(factor, negative) is not None:
            return rw.emit(multiply, rw.inside(factor, negative), other)
        if type(factor) is float and rw.used_once(x):
            return rw.emit(multiply, other, -factor)
    return None


def plus_negative(rw: Rewriter, out: Var, x: Any, y: Any) -> Any:
    """x + (−y) = x − y, in either order."""
    if rw.inside(y, negative) is not None and out.dtype.kind in "fc":
        return rw.emit(subtract, x, rw.inside(y, negative))
    if rw.inside(x, negative) is not None and out.dtype.kind in "fc":
        return rw.emit(subtract, y, rw.inside(x, negative))
    return None


def minus_negative(rw: Rewriter, out: Var, x: Any, y: Any) -> Any:
    """x − (−y) = x + y."""
    inner = rw.inside(y, negative)
    return None if inner is None or out.dtype.kind not in "fc" else rw.emit(add, x, inner)


def signs_of_factors(rw: Rewriter, out: Var, x: Any, y: Any) -> Any:
    """(−x)(−y) = x y, (−x) c = x (−c)."""
    minus_x, minus_y = rw.inside(x, negative), rw.inside(y, negative)
    if minus_x is not None and minus_y is not None and out.dtype.kind == "f":
        return rw.emit(multiply, minus_x, minus_y)
    if minus_x is not None and type(y) is float:
        return rw.emit(multiply, minus_x, -y)
    return rw.emit(multiply, minus_y, -x) if minus_y is not None and type(x) is float else None


def product_of_scalars(rw: Rewriter, out: Var, x: Any, y: Any) -> Any:
    """(x a) b = x (a b) where that rounds no differently: one of them is a power of two, neither makes smaller."""
    x, b = (x, y) if type(x) is Var else (y, x)
    inner = rw.maker(x, multiply)
    if inner is None or type(b) not in (int, float) or out.dtype not in _WIDE:
        return None
    x, a = inner.inputs if type(inner.inputs[0]) is Var else inner.inputs[::-1]
    if type(x) is not Var or type(a) not in (int, float) or x.dtype != out.dtype or min(abs(a), abs(b)) < 1:
        return None
    if not (is_power_of_two(a) or is_power_of_two(b)):
        return None
    product = float(a) * float(b)
    return rw.emit(multiply, x, product) if math.isfinite(product) and _fits(product, out) else None


def scalar_to_smaller(rw: Rewriter, out: Var, x: Any, y: Any) -> Any:
    """(X c) y = X (c y) for a power of two c ≥ 1 and an array y smaller than X."""
    for large, small in ((x, y), (y, x)):
        product = rw.maker(large, multiply)
        if product is None or type(small) is not Var or 2 * small.size > large.size or not rw.used_once(large):
            continue
        for factor, rest in (product.inputs, product.inputs[::-1]):
            if is_power_of_two(factor) and abs(factor) >= 1 and small.dtype == out.dtype and out.dtype in _WIDE:
                return rw.emit(multiply, rest, rw.emit(multiply, small, factor))
    return None


def ignoring_sign(primitive: Primitive) -> Rule:
    """f(−x) = f(x)."""

    def rule(rw: Rewriter, out: Var, x: Any) -> Any:
        inner = rw.inside(x, negative)
        return None if inner is None or out.dtype.kind != "f" else rw.emit(primitive, inner)

    return rule


def unequal(rw: Rewriter, out: Var, x: Any) -> Any:
    """not (x = y) is x ≠ y; not (x ≠ y) is x = y."""
    for primitive, opposite in ((equal, not_equal), (not_equal, equal)):
        equation = rw.maker(x, primitive)
        if equation is not None:
            return rw.emit(opposite, *equation.inputs)
    return None


# --- dtypes, choices --------------------------------------------------------------------------------------------


def converted_twice(rw: Rewriter, out: Var, x: Any, *, dtype: Any) -> Any:
    """A conversion to the same dtype is nothing; one on the way to another dtype is left out if it was exact."""
    if type(x) is not Var:
        return None
    inner = rw.inside(x, convert)
    if type(inner) is Var and inner.dtype != x.dtype and _holds_exactly(x.dtype, inner.dtype):
        return rw.emit(convert, inner, dtype=dtype)
    return x


def same(rw: Rewriter, out: Var, x: Any) -> Any:
    """The identity on what is real already."""
    return x if type(x) is Var and x.dtype.kind != "c" else None


def itself(rw: Rewriter, out: Var, x: Any, **params: Any) -> Any:
    """The identity."""
    return x


def real_of_complex(rw: Rewriter, out: Var, x: Any) -> Any:
    """The real part of what was made of parts."""
    equation = rw.maker(x, make_complex)
    return None if equation is None else rw.fitted(equation.inputs[0], out)


def known_choice(rw: Rewriter, out: Var, condition: Any, x: Any, y: Any) -> Any:
    """A condition that is the same everywhere, or a choice between the same."""
    if x is y and type(x) is Var:
        return rw.fitted(x, out)
    known = rw.scalar(condition)
    return None if known is None else rw.fitted(x if known else y, out)


def choice_again(rw: Rewriter, out: Var, condition: Any, x: Any, y: Any) -> Any:
    """A choice inside a choice by the same condition, or by its opposite."""
    opposite = rw.inside(condition, logical_not)
    if type(opposite) is Var and opposite.dtype == np.bool_:
        return rw.emit(where, opposite, y, x)
    first, second = rw.maker(x, where), rw.maker(y, where)
    if first is not None and first.inputs[0] is condition and type(condition) is Var:
        return rw.emit(where, condition, first.inputs[1], y)
    if second is not None and second.inputs[0] is condition and type(condition) is Var:
        return rw.emit(where, condition, x, second.inputs[2])
    return None


# --- helpers ----------------------------------------------------------------------------------------------------

_WIDE = frozenset({np.dtype(np.float32), np.dtype(np.float64)})


def is_power_of_two(value: Any) -> bool:
    """True for numbers by which floating point numbers of moderate size are scaled exactly."""
    if type(value) not in (int, float) or value == 0 or not math.isfinite(value):
        return False
    mantissa, exponent = math.frexp(value)
    return abs(mantissa) == 0.5 and abs(exponent) <= _BINADES


def _fits(value: float, out: Var) -> bool:
    return abs(value) <= float(np.finfo(out.dtype).max)


def is_positive_zero(value: Any) -> bool:
    """True for 0, 0.0 and 0j, not for −0.0."""
    parts = (value.real, value.imag) if type(value) is complex else (value,)
    return value is not None and all([part == 0 and math.copysign(1, part) > 0 for part in parts])


def _is_negative_zero(zero: Any) -> bool:
    parts = (zero.real, zero.imag) if type(zero) is complex else (zero,)
    return all([math.copysign(1, part) < 0 for part in parts])


def _holds_exactly(wide: np.dtype[Any], narrow: np.dtype[Any]) -> bool:
    """True where every value of a dtype is also one of the wider."""
    if not np.can_cast(narrow, wide, "safe") or "V" in (narrow.kind, wide.kind):
        return False
    return not (narrow.kind in "iu" and narrow.itemsize == 8 and wide.kind in "fc")


_SCALARS: tuple[Primitive, ...] = (add, subtract, multiply, divide, power)

TABLE: dict[Primitive, tuple[Rule, ...]] = {
    add: (plus_zero, plus_negative, scalar_for_array(add)),
    subtract: (minus_zero, minus_negative, scalar_for_array(subtract)),
    multiply: (times_one, signs_of_factors, product_of_scalars, scalar_to_smaller, scalar_for_array(multiply)),
    divide: (over_one, scalar_for_array(divide)),
    nan_safe_multiply: (guarded_by_constant,),
    power: (small_power,),
    negative: (double_negative,),
    positive: (lambda rw, out, x: x if out.dtype.kind in "fc" else None,),
    square: (ignoring_sign(square),),
    absolute: (ignoring_sign(absolute),),
    logical_not: (unequal,),
    conjugate: (same, lambda rw, out, x: rw.inside(x, conjugate)),
    real: (same, real_of_complex),
    convert: (converted_twice,),
    where: (known_choice, choice_again, scalar_for_array(where)),
}
