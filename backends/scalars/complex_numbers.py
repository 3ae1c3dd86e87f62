"""Operations on the parts of complex numbers.

Quotients use Smith's algorithm, as in NumPy (R. L. Smith, Algorithm 116, Communications of the ACM 5, 1962). Functions
beyond arithmetic call the C library lane by lane.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from func.backends.loops.kernels import DType
from func.backends.scalars.ir_values import Pair, Value, chosen, constant, each, part_of, width_of
from func.backends.scalars.operation_table import TABLE, emits

if TYPE_CHECKING:
    from func.backends.scalars.operations import Scalars

DOUBLE, COMPLEX = np.dtype(np.float64), np.dtype(np.complex128)
BOOL = np.dtype(bool)


def _part_by_part(name: str, method: str) -> None:
    TABLE[name, "c"] = lambda s, d, a: each(getattr(s.builder, method), *a)


_part_by_part("add", "fadd")
_part_by_part("subtract", "fsub")
_part_by_part("negative", "fneg")


@emits("positive", "c")
def _positive(s: Scalars, d: DType, a: list[Value]) -> Value:
    return a[0]


@emits("select", "c")
def _select(s: Scalars, d: DType, a: list[Value]) -> Value:
    return chosen(s.builder, *a)


@emits("conjugate", "c")
def _conjugate(s: Scalars, d: DType, a: list[Value]) -> Value:
    return Pair(a[0].re, s.builder.fneg(a[0].im))


@emits("real", "c")
def _real(s: Scalars, d: DType, a: list[Value]) -> Value:
    return a[0].re


@emits("imag", "c")
def _imag(s: Scalars, d: DType, a: list[Value]) -> Value:
    return a[0].im


@emits("complex", "f")
def _complex(s: Scalars, d: DType, a: list[Value]) -> Value:
    return Pair(*a)


@emits("multiply", "c")
def _multiply(s: Scalars, d: DType, a: list[Value]) -> Value:
    (x, y), b = a, s.builder
    re = b.fsub(b.fmul(x.re, y.re), b.fmul(x.im, y.im))
    return Pair(re, b.fadd(b.fmul(x.re, y.im), b.fmul(x.im, y.re)))


@emits("square", "c")
def _square(s: Scalars, d: DType, a: list[Value]) -> Value:
    return _multiply(s, d, [a[0], a[0]])


def _magnitudes(s: Scalars, y: Value) -> tuple[Value, Value]:
    return s.intrinsic("fabs", y.re), s.intrinsic("fabs", y.im)


@emits("divide", "c")
def _divide(s: Scalars, d: DType, a: list[Value]) -> Value:
    (x, y), b, part = a, s.builder, part_of(d)
    width = width_of(x)
    zero, one = constant(part, 0, width), constant(part, 1, width)
    re, im = _magnitudes(s, y)
    is_real = b.fcmp_ordered(">=", re, im)
    large, small = b.select(is_real, y.re, y.im), b.select(is_real, y.im, y.re)
    ratio = b.fdiv(small, large)
    scale = b.fdiv(one, b.fadd(large, b.fmul(small, ratio)))
    first, second = b.select(is_real, x.re, x.im), b.select(is_real, x.im, x.re)
    turned = b.fmul(first, ratio)
    real = b.fmul(b.fadd(first, b.fmul(second, ratio)), scale)
    imag = b.fmul(b.fsub(b.select(is_real, second, turned), b.select(is_real, turned, second)), scale)
    is_zero = b.and_(b.fcmp_ordered("==", re, zero), b.fcmp_ordered("==", im, zero))
    by_zero = Pair(b.fdiv(x.re, re), b.fdiv(x.im, re))
    return chosen(b, is_zero, by_zero, Pair(real, imag))


@emits("reciprocal", "c")
def _reciprocal(s: Scalars, d: DType, a: list[Value]) -> Value:
    (x,), b = a, s.builder
    one = constant(part_of(d), 1, width_of(x))
    re, im = _magnitudes(s, x)
    is_real = b.fcmp_ordered("<=", im, re)
    large, small = b.select(is_real, x.re, x.im), b.select(is_real, x.im, x.re)
    ratio = b.fdiv(small, large)
    total = b.fadd(large, b.fmul(small, ratio))
    whole, rest = b.fdiv(one, total), b.fdiv(ratio, total)
    return Pair(b.select(is_real, whole, rest), b.select(is_real, b.fdiv(b.fneg(ratio), total), b.fneg(whole)))


@emits("absolute", "c")
def _absolute(s: Scalars, d: DType, a: list[Value]) -> Value:
    return s.elementary.call(s.builder, "hypot", a[0].re, a[0].im)


@emits("sign", "c")
def _sign(s: Scalars, d: DType, a: list[Value]) -> Value:
    """x / |x|; a single infinite part sets the direction, two give NaN."""
    (x,), b, part = a, s.builder, part_of(d)
    width = width_of(x)
    zero, infinity = constant(part, 0, width), constant(part, np.inf, width)
    size = _absolute(s, d, a)
    infinite = [b.fcmp_ordered("==", modulus, infinity) for modulus in _magnitudes(s, x)]
    both = b.and_(*infinite)

    def direction(of: Value, is_infinite: Value, other_is_infinite: Value) -> Value:
        sign = s.intrinsic("copysign", constant(part, 1, width), of)
        quotient = b.select(is_infinite, sign, b.select(other_is_infinite, zero, b.fdiv(of, size)))
        return b.select(b.or_(both, b.fcmp_unordered("uno", size, size)), constant(part, np.nan, width), quotient)

    unit = Pair(direction(x.re, *infinite), direction(x.im, *reversed(infinite)))
    return chosen(b, b.fcmp_ordered("==", size, zero), constant(d, 0, width), unit)


@emits("nan_safe_multiply", "c")
def _nan_safe_multiply(s: Scalars, d: DType, a: list[Value]) -> Value:
    zero = s.builder.not_(s.nonzero(a[1], d))
    return chosen(s.builder, zero, constant(d, 0, width_of(a[0])), _multiply(s, d, a))


@emits("equal", "c")
def _equal(s: Scalars, d: DType, a: list[Value]) -> Value:
    parts = each(lambda p, q: s.builder.fcmp_ordered("==", p, q), *a)
    return s.builder.and_(parts.re, parts.im)


@emits("not_equal", "c")
def _not_equal(s: Scalars, d: DType, a: list[Value]) -> Value:
    return s.builder.not_(_equal(s, d, a))


def _compared(s: Scalars, sign: str, x: Value, y: Value) -> Value:
    """The order by real parts, then by imaginary ones; no order where an imaginary part is NaN."""
    b = s.builder
    numbers = b.fcmp_ordered("ord", x.im, y.im)
    apart = b.and_(b.fcmp_ordered(sign[0], x.re, y.re), numbers)
    return b.or_(apart, b.and_(b.fcmp_ordered("==", x.re, y.re), b.fcmp_ordered(sign, x.im, y.im)))


def _comparison(name: str, sign: str) -> None:
    TABLE[name, "c"] = lambda s, d, a: _compared(s, sign, *a)


_comparison("less", "<")
_comparison("less_equal", "<=")
_comparison("greater", ">")
_comparison("greater_equal", ">=")


def _logical(name: str, method: str) -> None:
    TABLE[name, "c"] = lambda s, d, a: getattr(s.builder, method)(s.nonzero(a[0], d), s.nonzero(a[1], d))


_logical("logical_and", "and_")
_logical("logical_or", "or_")
_logical("logical_xor", "xor")


@emits("logical_not", "c")
def _logical_not(s: Scalars, d: DType, a: list[Value]) -> Value:
    return s.builder.not_(s.nonzero(a[0], d))


def _isnan_pair(s: Scalars, x: Value) -> Value:
    return s.builder.fcmp_unordered("uno", x.re, x.im)


@emits("isnan", "c")
def _isnan(s: Scalars, d: DType, a: list[Value]) -> Value:
    return _isnan_pair(s, a[0])


def _tested_parts(name: str, method: str) -> None:
    def emit(s: Scalars, d: DType, a: list[Value]) -> Value:
        parts = [s.apply(name, part_of(d), [part], BOOL) for part in (a[0].re, a[0].im)]
        return getattr(s.builder, method)(*parts)

    TABLE[name, "c"] = emit


_tested_parts("isinf", "or_")
_tested_parts("isfinite", "and_")


def _extremum(name: str, sign: str, ignores_nan: bool) -> None:
    def emit(s: Scalars, d: DType, a: list[Value]) -> Value:
        is_nan = _isnan_pair(s, a[1] if ignores_nan else a[0])
        return chosen(s.builder, s.builder.or_(_compared(s, sign, *a), is_nan), *a)

    TABLE[name, "c"] = emit


_extremum("maximum", ">=", False)
_extremum("minimum", "<=", False)
_extremum("fmax", ">=", True)
_extremum("fmin", "<=", True)


LIBRARY = {
    **{name: f"c{name}" for name in ("exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{f"arc{name}": f"ca{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
}
"""The C library's names."""


def _by_library(s: Scalars, name: str, d: DType, *args: Value) -> Value:
    """A function of complex doubles."""
    return s.convert(s.complex_library(name, [s.convert(x, d, COMPLEX) for x in args]), COMPLEX, d)


@functools.cache
def _zero_has_real_powers_only() -> bool:
    with np.errstate(all="ignore"):
        return bool(np.isnan(np.power(np.zeros(1, complex), 1 + 1j))[0])


@emits("power", "c")
def _power(s: Scalars, d: DType, a: list[Value]) -> Value:
    """Powers of zero are one, zero or NaN by the exponent: 0, positive in its real part, any other.

    NumPy before about 2.3 required real positive exponents; a call of the installed NumPy tells which rule holds.
    """
    (x, y), b = a, s.builder
    width, zero = width_of(x), constant(part_of(d), 0, width_of(x))
    positive = b.fcmp_ordered(">", y.re, zero)
    if _zero_has_real_powers_only():
        positive = b.and_(positive, b.fcmp_ordered("==", y.im, zero))
    of_zero = chosen(b, positive, constant(d, 0, width), constant(d, complex(np.nan, np.nan), width))
    power = chosen(b, s.nonzero(x, d), _by_library(s, "cpow", d, x, y), of_zero)
    return chosen(b, s.nonzero(y, d), power, constant(d, 1, width))


def _function(name: str, routine: str) -> None:
    TABLE[name, "c"] = lambda s, d, a: _by_library(s, routine, d, a[0])


for _own, _routine in LIBRARY.items():
    _function(_own, _routine)


@emits("sech_squared", "c")
def _sech_squared(s: Scalars, d: DType, a: list[Value]) -> Value:
    """1 / cosh², with real parts up to which cosh is finite."""
    (x,), b, part = a, s.builder, part_of(d)
    width, size = width_of(x), s.intrinsic("fabs", x.re)
    bound = constant(part, 700, width)
    re = b.select(b.fcmp_ordered(">", size, bound), s.intrinsic("copysign", bound, x.re), x.re)
    inverse = _reciprocal(s, COMPLEX, [s.complex_library("ccosh", [s.convert(Pair(re, x.im), d, COMPLEX)])])
    return s.convert(_multiply(s, COMPLEX, [inverse, inverse]), COMPLEX, d)


def _scaled_logarithm(name: str, base: float) -> None:
    def emit(s: Scalars, d: DType, a: list[Value]) -> Value:
        logarithm = _by_library(s, "clog", d, a[0])
        factor = constant(part_of(d), 1 / np.log(base), width_of(logarithm))
        return each(lambda part: s.builder.fmul(part, factor), logarithm)

    TABLE[name, "c"] = emit


_scaled_logarithm("log2", 2)
_scaled_logarithm("log10", 10)


@emits("exp2", "c")
def _exp2(s: Scalars, d: DType, a: list[Value]) -> Value:
    factor = constant(part_of(d), np.log(2), width_of(a[0]))
    return _by_library(s, "cexp", d, each(lambda part: s.builder.fmul(part, factor), a[0]))


def _real_function(s: Scalars, name: str, d: DType, *args: Value) -> Value:
    return s.apply(name, part_of(d), list(args), part_of(d))


@emits("expm1", "c")
def _expm1(s: Scalars, d: DType, a: list[Value]) -> Value:
    """(expm1(x) cos(y) - 2 sin(y/2)², exp(x) sin(y))."""
    (x,), b, part = a, s.builder, part_of(d)
    width = width_of(x)
    half = _real_function(s, "sin", d, b.fmul(x.im, constant(part, 0.5, width)))
    bend = b.fmul(constant(part, 2, width), b.fmul(half, half))
    re = b.fsub(b.fmul(_real_function(s, "expm1", d, x.re), _real_function(s, "cos", d, x.im)), bend)
    return Pair(re, b.fmul(_real_function(s, "exp", d, x.re), _real_function(s, "sin", d, x.im)))


@emits("log1p", "c")
def _log1p(s: Scalars, d: DType, a: list[Value]) -> Value:
    (x,), b = a, s.builder
    above = b.fadd(x.re, constant(part_of(d), 1, width_of(x)))
    size = _real_function(s, "hypot", d, above, x.im)
    return Pair(_real_function(s, "log", d, size), _real_function(s, "arctan2", d, x.im, above))
