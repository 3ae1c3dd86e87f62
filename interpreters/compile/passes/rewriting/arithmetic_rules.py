"""Rules for elementwise primitives: neutral elements, signs, factors, choices.

Results are equal to the last bit, except for the signs of zeros in sums with arrays of zeros and in products with
cotangents. An addition of the scalar 0.0 stays: it is the idiom that turns −0.0 into 0.0.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from func.interpreters.compile.passes.rewriting.rewriter import MAX_SCANNED, Rewriter, Rule
from func.interpreters.core import Primitive
from func.interpreters.primitives.elementwise import table as ops
from func.interpreters.primitives.elementwise.builder import add, conjugate, multiply, nan_safe_multiply, negative
from func.interpreters.primitives.structural.filling import absent
from func.interpreters.primitives.structural.shapes import convert, where
from func.interpreters.program.program import Var

_BINADES = 100
"""Scaling by a power of two with an exponent up to this magnitude counts as exact."""


def times_one(rw: Rewriter, out: Var, x: Any, y: Any) -> Any:
    """x · 1 = x, x · (−1) = −x."""
    for value, other in ((x, y), (y, x)):
        factor = rw.scalar(other)
        if factor == 1:
            return rw.broadcast_like(value, out)
        if factor == -1 and out.dtype.kind in "fi":
            return _negated(rw, out, value)
    return None


def over_one(rw: Rewriter, out: Var, x: Any, y: Any) -> Any:
    """x / 1 = x; x / 2ᵏ = x · 2⁻ᵏ, which is faster."""
    divisor = rw.scalar(y)
    if divisor == 1:
        return rw.broadcast_like(x, out)
    if is_power_of_two(divisor) and out.dtype in _WIDE:
        return rw.emit(multiply, x, 1 / divisor)
    return None


def plus_zero(rw: Rewriter, out: Var, x: Any, y: Any) -> Any:
    """x + (−0.0) = x, x + 0 = x for integers, x + zeros = x for arrays of zeros."""
    for value, other in ((x, y), (y, x)):
        zero = rw.scalar(other)
        if zero == 0 and (out.dtype.kind in "iu" or (type(other) is Var and other.shape) or _is_negative_zero(zero)):
            return rw.broadcast_like(value, out)
    return None


def minus_zero(rw: Rewriter, out: Var, x: Any, y: Any) -> Any:
    """x − 0.0 = x, zeros − x = −x for an array of zeros."""
    right, left = rw.scalar(y), rw.scalar(x)
    if is_positive_zero(right):
        return rw.broadcast_like(x, out)
    if left == 0 and type(x) is Var and x.shape and out.dtype.kind in "fc":
        return _negated(rw, out, y)
    return None


def _negated(rw: Rewriter, out: Var, x: Any) -> Any:
    """-x, where x has the dtype of the output: there is no -x of booleans."""
    return rw.broadcast_like(rw.emit(negative, x), out) if type(x) is Var and x.dtype == out.dtype else None


def nan_safe_by_constant(rw: Rewriter, out: Var, x: Any, y: Any) -> Any:
    """nan_safe_multiply(x, y) = x y where x is known to be finite, or y a constant other than zero."""
    factor = rw.scalar(y)
    if factor == 0:
        return filled(rw, out, 0)
    if factor is not None or _is_finite(rw, x):
        return rw.emit(multiply, x, y)
    return None


def _is_finite(rw: Rewriter, x: Any) -> bool:
    value = rw.constant_value(x)
    return value is not None and getattr(value, "size", 1) <= MAX_SCANNED and bool(np.isfinite(value).all())


def filled(rw: Rewriter, out: Var, fill: Any) -> Any:
    """A constant of one repeated element, stored as a broadcast view."""
    return rw.constant(np.broadcast_to(np.asarray(fill, out.dtype), out.shape))


def small_power(rw: Rewriter, out: Var, x: Any, y: Any) -> Any:
    """x ** 1 = x, x ** 2 = square(x), x ** −1 = reciprocal(x), as NumPy computes them."""
    exponent = rw.scalar(y)
    if exponent == 1:
        return rw.broadcast_like(x, out)
    if exponent not in (2, -1) or out.dtype not in _WIDE or type(x) is not Var or x.dtype != out.dtype:
        return None
    return rw.broadcast_like(rw.emit(ops.square if exponent == 2 else ops.reciprocal, x), out)


def scalar_for_array(primitive: Primitive) -> Rule:
    """A constant whose elements are all equal becomes a Python scalar where that keeps dtype and shape."""

    def rule(rw: Rewriter, out: Var, *inputs: Any) -> Any:
        for place, x in enumerate(inputs):
            if type(x) is Var and rw.scalar(x) is not None:
                rest = [other for i, other in enumerate(inputs) if i != place]
                if any([type(other) is Var and other.shape == out.shape for other in rest]):
                    return rw.emit(primitive, *inputs[:place], rw.scalar(x), *inputs[place + 1 :])
        return None

    return rule


def double_negative(rw: Rewriter, out: Var, x: Any) -> Any:
    """−(−x) = x, −(c x) = (−c) x, −(−a · b) = a · b."""
    inner = rw.operand(x, negative)
    if inner is not None:
        return inner
    product = rw.definition(x, multiply)
    if product is None or out.dtype.kind != "f":
        return None
    for factor, other in (product.inputs, product.inputs[::-1]):
        if rw.negated(factor) is not None:
            return rw.emit(multiply, rw.negated(factor), other)
        if type(factor) is float and rw.used_once(x):
            return rw.emit(multiply, other, -factor)
    return None


def plus_negative(rw: Rewriter, out: Var, x: Any, y: Any) -> Any:
    """x + (−y) = x − y, in either order."""
    for value, other in ((x, y), (y, x)):
        if rw.negated(other) is not None:
            return rw.emit(ops.subtract, value, rw.negated(other))
    return None


def minus_negative(rw: Rewriter, out: Var, x: Any, y: Any) -> Any:
    """x − (−y) = x + y."""
    inner = rw.negated(y)
    return None if inner is None else rw.emit(add, x, inner)


def signs_of_factors(rw: Rewriter, out: Var, x: Any, y: Any) -> Any:
    """(−x)(−y) = x y, (−x) c = x (−c)."""
    minus_x, minus_y = rw.negated(x), rw.negated(y)
    if minus_x is not None and minus_y is not None and out.dtype.kind == "f":
        return rw.emit(multiply, minus_x, minus_y)
    if minus_x is not None and type(y) is float:
        return rw.emit(multiply, minus_x, -y)
    return rw.emit(multiply, minus_y, -x) if minus_y is not None and type(x) is float else None


def combine_scalar_factors(rw: Rewriter, out: Var, x: Any, y: Any) -> Any:
    """(x a) b = x (a b) where the rounding is the same: a or b is a power of two, and |a|, |b| ≥ 1."""
    x, b = (x, y) if type(x) is Var else (y, x)
    inner = rw.definition(x, multiply)
    if inner is None or type(b) not in (int, float) or out.dtype not in _WIDE:
        return None
    x, a = inner.inputs if type(inner.inputs[0]) is Var else inner.inputs[::-1]
    if type(x) is not Var or type(a) not in (int, float) or x.dtype != out.dtype or min(abs(a), abs(b)) < 1:
        return None
    if not (is_power_of_two(a) or is_power_of_two(b)):
        return None
    product = float(a) * float(b)
    return rw.emit(multiply, x, product) if math.isfinite(product) and _fits(product, out) else None


def scale_smaller_operand(rw: Rewriter, out: Var, x: Any, y: Any) -> Any:
    """(X c) y = X (c y) for a power of two c ≥ 1 and an array y smaller than X."""
    for large, small in ((x, y), (y, x)):
        product = rw.definition(large, multiply)
        if product is None or type(small) is not Var or 2 * small.size > large.size or not rw.used_once(large):
            continue
        for factor, rest in (product.inputs, product.inputs[::-1]):
            if is_power_of_two(factor) and abs(factor) >= 1 and small.dtype == out.dtype and out.dtype in _WIDE:
                return rw.emit(multiply, rest, rw.emit(multiply, small, factor))
    return None


def even_function(primitive: Primitive) -> Rule:
    """f(−x) = f(x)."""

    def rule(rw: Rewriter, out: Var, x: Any) -> Any:
        inner = rw.operand(x, negative)
        return None if inner is None or out.dtype.kind != "f" else rw.emit(primitive, inner)

    return rule


def negated_comparison(rw: Rewriter, out: Var, x: Any) -> Any:
    """not (x = y) is x ≠ y, not (x ≠ y) is x = y."""
    for primitive, opposite in ((ops.equal, ops.not_equal), (ops.not_equal, ops.equal)):
        equation = rw.definition(x, primitive)
        if equation is not None:
            return rw.emit(opposite, *equation.inputs)
    return None


def conversion_of_conversion(rw: Rewriter, out: Var, x: Any, *, dtype: Any) -> Any:
    """A conversion to the same dtype is the identity; an exact intermediate conversion is dropped."""
    if type(x) is not Var:
        return None
    inner = rw.operand(x, convert)
    if type(inner) is Var and inner.dtype != x.dtype and _holds_exactly(x.dtype, inner.dtype):
        return rw.emit(convert, inner, dtype=dtype)
    return x


def identity_on_reals(rw: Rewriter, out: Var, x: Any) -> Any:
    """f(x) = x for real x."""
    return x if type(x) is Var and x.dtype.kind != "c" else None


def real_of_complex(rw: Rewriter, out: Var, x: Any) -> Any:
    """real(make_complex(x, y)) = x."""
    equation = rw.definition(x, ops.make_complex)
    return None if equation is None else rw.broadcast_like(equation.inputs[0], out)


def constant_choice(rw: Rewriter, out: Var, condition: Any, x: Any, y: Any) -> Any:
    """where(c, x, x) = x; where(True, x, y) = x, where(False, x, y) = y."""
    if x is y and type(x) is Var:
        return rw.broadcast_like(x, out)
    constant = rw.scalar(condition)
    return None if constant is None else rw.broadcast_like(x if constant else y, out)


def choice_of_choice(rw: Rewriter, out: Var, condition: Any, x: Any, y: Any) -> Any:
    """where(¬c, x, y) = where(c, y, x), where(c, where(c, x, _), y) = where(c, x, y) = where(c, x, where(c, _, y))."""
    opposite = rw.operand(condition, ops.logical_not)
    if type(opposite) is Var and opposite.dtype == np.bool_:
        return rw.emit(where, opposite, y, x)
    first, second = rw.definition(x, where), rw.definition(y, where)
    if first is not None and first.inputs[0] is condition and type(condition) is Var:
        return rw.emit(where, condition, first.inputs[1], y)
    if second is not None and second.inputs[0] is condition and type(condition) is Var:
        return rw.emit(where, condition, x, second.inputs[2])
    return None


_WIDE = frozenset({np.dtype(np.float32), np.dtype(np.float64)})


def is_power_of_two(value: Any) -> bool:
    """True for ±2ᵏ with |k| up to _BINADES: scaling by it is exact for numbers of moderate size."""
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
    """True where the wide dtype represents every value of the narrow one."""
    if not np.can_cast(narrow, wide, "safe") or "V" in (narrow.kind, wide.kind):
        return False
    return not (narrow.kind in "iu" and narrow.itemsize == 8 and wide.kind in "fc")


_SCALARS: tuple[Primitive, ...] = (add, ops.subtract, multiply, ops.divide, ops.power)

TABLE: dict[Primitive, tuple[Rule, ...]] = {
    add: (plus_zero, plus_negative, scalar_for_array(add)),
    ops.subtract: (minus_zero, minus_negative, scalar_for_array(ops.subtract)),
    multiply: (times_one, signs_of_factors, combine_scalar_factors, scale_smaller_operand, scalar_for_array(multiply)),
    ops.divide: (over_one, scalar_for_array(ops.divide)),
    nan_safe_multiply: (nan_safe_by_constant,),
    absent: (lambda rw, out, x, shape, dtype: filled(rw, out, 0),),
    ops.power: (small_power,),
    negative: (double_negative,),
    ops.positive: (lambda rw, out, x: x if out.dtype.kind in "fc" else None,),
    ops.square: (even_function(ops.square),),
    ops.absolute: (even_function(ops.absolute),),
    ops.logical_not: (negated_comparison,),
    conjugate: (identity_on_reals, lambda rw, out, x: rw.operand(x, conjugate)),
    ops.real: (identity_on_reals, real_of_complex),
    convert: (conversion_of_conversion,),
    where: (constant_choice, choice_of_choice, scalar_for_array(where)),
}
