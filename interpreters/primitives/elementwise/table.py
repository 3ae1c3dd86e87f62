"""The table of elementwise primitives. Each names only its partial derivatives."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Unpack

import numpy as np

from func.backends.array_helpers import arrays
from func.backends.array_helpers.arrays import broadcast_shape
from func.backends.array_helpers.arrays import make_complex as make_complex_into
from func.backends.array_helpers.strides import iterated_order
from func.interpreters.core import (
    PYTHON_SCALARS,
    Array,
    Aval,
    Facts,
    Linear,
    Shaped,
    aval_of,
    dtype_of,
    linear,
    shape_of,
)
from func.interpreters.primitives.elementwise.builder import SHARES, Elementwise, elementwise
from func.interpreters.primitives.elementwise.builder import add as add
from func.interpreters.primitives.elementwise.builder import conjugate as conjugate
from func.interpreters.primitives.elementwise.builder import multiply as multiply
from func.interpreters.primitives.elementwise.builder import nan_safe_multiply as nan_safe_multiply
from func.interpreters.primitives.elementwise.builder import negative as negative
from func.interpreters.primitives.elementwise.builder import not_equal as not_equal
from func.interpreters.primitives.elementwise.conventions import by_convention, on_arrays
from func.interpreters.primitives.elementwise.partials import Rule, is_followed
from func.interpreters.primitives.elementwise.pointwise import elementwise_constant
from func.interpreters.primitives.structural.shapes import (
    align_ranks,
    broadcast,
    convert,
    fit_cotangent,
    full_like,
    where,
)


def formula(
    name: str,
    expression: Callable[..., Array],
    *partials: Rule,
    impl: Callable[..., Any] | None = None,
    **facts: Unpack[Facts],
) -> Elementwise:
    """An elementwise primitive that is an expression of others, but has separate partials: those of the expression
    would lose digits. Compiled code sees the expression; `impl` computes the same with fewer calls.
    """

    def whole(*operands: Array) -> Array:
        out = expression(*operands)
        shape = broadcast_shape([shape_of(x) for x in operands])
        if aval_of(out).weak:
            out = convert(out, dtype=dtype_of(out))
        return out if shape_of(out) == shape else broadcast(out, shape=shape)

    facts["body"] = lambda params: lambda *operands: (whole(*operands),)
    return elementwise(name, *partials, impl=impl or (lambda xp, *args: whole(*args)), **facts)


equal = elementwise_constant("equal", 2, commutative=True)
less = elementwise_constant("less", 2)
less_equal = elementwise_constant("less_equal", 2)
greater = elementwise_constant("greater", 2)
greater_equal = elementwise_constant("greater_equal", 2)
logical_and = elementwise_constant("logical_and", 2, commutative=True)
logical_or = elementwise_constant("logical_or", 2, commutative=True)
logical_xor = elementwise_constant("logical_xor", 2, commutative=True)
logical_not = elementwise_constant("logical_not", 1)
bitwise_and = elementwise_constant("bitwise_and", 2, weak=True, commutative=True)
bitwise_or = elementwise_constant("bitwise_or", 2, weak=True, commutative=True)
bitwise_xor = elementwise_constant("bitwise_xor", 2, weak=True, commutative=True)
invert = elementwise_constant("invert", 1, weak=True)
left_shift = elementwise_constant("left_shift", 2, weak=True)
right_shift = elementwise_constant("right_shift", 2, weak=True)
isfinite = elementwise_constant("isfinite", 1)
isinf = elementwise_constant("isinf", 1)
isnan = elementwise_constant("isnan", 1)
signbit = elementwise_constant("signbit", 1)
sign = elementwise_constant("sign", 1)
floor = elementwise_constant("floor", 1)
ceil = elementwise_constant("ceil", 1)
trunc = elementwise_constant("trunc", 1)
rint = elementwise_constant("rint", 1)
floor_divide = elementwise_constant("floor_divide", 2, weak=True, cost=4)
bitwise_count = elementwise_constant("bitwise_count", 1)
gcd = elementwise_constant("gcd", 2)
lcm = elementwise_constant("lcm", 2)
heaviside = elementwise_constant("heaviside", 2)
nextafter = elementwise("nextafter", 1, None)
spacing = elementwise_constant("spacing", 1)
exponent = elementwise_constant("exponent", 1, impl=lambda xp, x: xp.frexp(x)[1])


@on_arrays(np.sign)
def slope_of_modulus(x: Array) -> Array:
    """The sign of x, zero at zero by convention."""
    return by_convention(sign(x), lambda: equal(x, 0), x)


subtract: Elementwise = elementwise("subtract", 1, -1, weak=True)
divide: Elementwise = elementwise(
    "divide",
    lambda y: reciprocal_of(y),
    ("out", lambda direction, y: divide(direction, negative(y))),
    weak=True,
    cost=4,
)
reciprocal: Elementwise = elementwise("reciprocal", ("out", lambda out: negative(out)), cost=4)
positive: Elementwise = elementwise("positive", 1, weak=True, cost=0)
absolute: Elementwise = elementwise("absolute", slope_of_modulus, weak=True)
square: Elementwise = elementwise("square", lambda x: multiply(x, 2))


def reciprocal_of(y: Array) -> Array:
    """1 / y, also for integers and Python scalars."""
    return divide(1, y)


def power_partial_x(x: Array, y: Array, out: Array) -> Array:
    """y x^(y-1), where out is x^y. A number as exponent from which one is subtracted exactly keeps it a power."""
    if type(y) not in PYTHON_SCALARS or (y - 1) + 1 != y:
        slope = power_slope(x, y, out)
        return by_convention(slope, lambda: logical_and(equal(x, 0), less_equal(y, 1)), y)
    return multiply(full_like(x, 0), 1) if y == 0 else multiply(y, power(x, y - 1))


def _times_power_below(factor: Array, x: Array, y: Array, out: Array) -> Array:
    """factor x^(y-1), by out / x where y - 1 is rounded, else by a power: out may leave the range of numbers first."""
    below = multiply(factor, power(x, subtract(y, full_like(y, 1, ()))))
    quotient = divide(multiply(factor, out), x)
    return where(logical_or(_subtracts_one(y), logical_not(isfinite(quotient))), below, quotient)


def _subtracts_one(y: Array) -> Array:
    """Whether y - 1 is exact for all real numbers around y."""
    y = real(y) if dtype_of(y).kind == "c" else y
    return logical_and(greater_equal(y, 1), less_equal(y, 2.0**53))


def _power_slope(x: Array, y: Array, out: Array) -> Array:
    """y x^(y-1), which is zero for y = 0 also where 1/x is infinite."""
    nothing = logical_and(equal(y, 0), logical_not(isfinite(reciprocal_of(x))))
    return where(nothing, full_like(x, 0, ()), _times_power_below(y, x, where(nothing, full_like(y, 1, ()), y), out))


def _power_slope_by_x(x: Array, y: Array, out: Array) -> Array:
    """y (y-1) x^(y-2), where out is y x^(y-1); zero for y = 0 also where 1/x is infinite."""
    nothing = logical_and(equal(y, 0), logical_not(isfinite(reciprocal_of(x))))
    y = by_convention(where(nothing, full_like(y, 1, ()), y), lambda: nothing, y)  # 1 gives zero, too
    less_one = subtract(y, full_like(y, 1, ()))
    by_power = multiply(y, power_slope(x, less_one, power(x, less_one)))
    quotient = divide(multiply(less_one, out), x)
    return where(logical_or(_subtracts_one(y), logical_not(isfinite(quotient))), by_power, quotient)


def _power_slope_by_y(x: Array, y: Array, out: Array) -> Array:
    """x^(y-1) (1 + y log x), where out is x^y."""
    below = _times_power_below(full_like(y, 1, ()), x, y, out)
    slope = add(below, power_partial_y(x, subtract(y, full_like(y, 1, ())), multiply(y, below)))
    return multiply(slope, where(_has_no_slope(x, y), full_like(slope, math.nan, ()), full_like(slope, 1, ())))


power_slope: Elementwise = formula(
    "power_slope",
    _power_slope,
    lambda x, y, out: _power_slope_by_x(x, y, out),
    lambda x, y, z: _power_slope_by_y(x, y, z),
    None,
    cost=20,
)
"""y x^(y-1), where z is x^y."""


def power_partial_y(x: Array, y: Array, out: Array) -> Array:
    """x^y log x, with the limit zero at x = 0; by convention for y ≤ 1, where its slope by x is infinite."""
    nothing = equal(x, 0)
    limit = vanishing_power(x, y) if is_followed(x) else full_like(out, 0, ())
    return where(nothing, limit, multiply(out, log(where(nothing, full_like(out, 1, ()), x))))


def _has_no_slope(x: Array, y: Array) -> Array:
    """The places where x^y has an infinite derivative by x, or none, even if its derivative by y is zero."""
    return logical_and(equal(x, 0), less_equal(y, 1))


def _slope_of_vanishing(x: Array, y: Array) -> Array:
    """That of x^y log x at x = 0 by x, which is a power with an exponent that is less by one."""
    slope = vanishing_power(x, subtract(y, full_like(y, 1, ())))
    return add(slope, where(_has_no_slope(x, y), full_like(slope, math.nan, ()), full_like(slope, 0, ())))


def _zero_of_both(x: Array, y: Array) -> tuple[Array]:
    """Zero, with the shape and dtype of a sum."""
    zero = full_like(add(x, y), 0)
    return (multiply(zero, zero),)


vanishing_power: Elementwise = elementwise(
    "vanishing_power",
    _slope_of_vanishing,
    lambda x, y: vanishing_power(x, y),
    selects=(True, False),
    impl=lambda xp, x, y: xp.zeros_like(xp.maximum(x, y))[()],
    body=lambda params: _zero_of_both,
    cost=0,
)
"""Zero, what x^y log x is at x = 0, with the derivatives that it has there, of every order by y."""


power: Elementwise = elementwise("power", power_partial_x, power_partial_y, weak=True, cost=20)
float_power: Elementwise = elementwise("float_power", power_partial_x, power_partial_y, cost=20)


def minus_whole(x: Array, y: Array, out: Array) -> Array:
    """-(x - out) / y, the whole number of times that y was taken from x: a quotient x / y would round up to it."""
    return negative(rint(divide(subtract(x, out), y)))


remainder: Elementwise = elementwise("remainder", 1, minus_whole, weak=True, cost=4)
fmod: Elementwise = elementwise("fmod", 1, minus_whole, cost=4)


def share(x: Array, y: Array, out: Array, wins: Array) -> Array:
    """1 where x wins, 1/2 at ties by convention, 0 elsewhere."""
    dtype = dtype_of(out)
    ties = equal(x, y)
    value = add(convert(wins, dtype=dtype), multiply(convert(ties, dtype=dtype), 0.5))
    return by_convention(value, lambda: ties, x, y)


def share_by(comparison: Any, is_first: bool) -> Callable[..., Array]:
    """The share of one of two operands, which wins by a comparison."""

    def code(x: Any, y: Any, out: Any) -> Any:
        wins = comparison.numpy(*((x, y) if is_first else (y, x))).astype(out.dtype)
        ties = np.equal(x, y)
        return wins + np.multiply(ties, 0.5, dtype=out.dtype) if ties.any() else wins

    @on_arrays(code)
    def share_of_operand(x: Array, y: Array, out: Array) -> Array:
        return share(x, y, out, comparison(x, y) if is_first else comparison(y, x))

    return share_of_operand


maximum: Elementwise = elementwise("maximum", share_by(greater, True), share_by(greater, False), selects=SHARES)
minimum: Elementwise = elementwise("minimum", share_by(less, True), share_by(less, False), selects=SHARES)
fmax: Elementwise = elementwise(
    "fmax",
    lambda x, y, out: share(x, y, out, logical_or(greater(x, y), isnan(y))),
    lambda x, y, out: share(x, y, out, logical_or(greater(y, x), isnan(x))),
    selects=SHARES,
)
fmin: Elementwise = elementwise(
    "fmin",
    lambda x, y, out: share(x, y, out, logical_or(less(x, y), isnan(y))),
    lambda x, y, out: share(x, y, out, logical_or(less(y, x), isnan(x))),
    selects=SHARES,
)
at_least = elementwise_constant("at_least", 2, ufunc="maximum", weak=True)
at_most = elementwise_constant("at_most", 2, ufunc="minimum", weak=True)
"""The larger and the smaller one of two Python integers, which stays one."""
copysign: Elementwise = elementwise("copysign", lambda x, out: where(equal(signbit(x), signbit(out)), 1.0, -1.0), None)

sqrt: Elementwise = elementwise("sqrt", lambda out: divide(0.5, out), cost=4)
cbrt: Elementwise = elementwise("cbrt", lambda out: divide(1, multiply(3, square(out))), cost=10)
exp: Elementwise = elementwise("exp", "out", cost=10)
exp2: Elementwise = elementwise("exp2", lambda out: multiply(out, math.log(2)), cost=10)
expm1: Elementwise = elementwise("expm1", lambda x: exp(x), cost=10)
log: Elementwise = elementwise("log", lambda x: reciprocal_of(x), cost=10)
log2: Elementwise = elementwise("log2", lambda x: divide(1 / math.log(2), x), cost=10)
log10: Elementwise = elementwise("log10", lambda x: divide(1 / math.log(10), x), cost=10)
log1p: Elementwise = elementwise("log1p", lambda x: divide(1, add(x, 1)), cost=10)


def _part_of_two(x: Array, y: Array, power: Callable[[Array], Array], rate: float) -> Array:
    """1 / (1 + b^(y - x)) of a base b and its logarithm `rate`; equal operands have a half each, also infinite ones.

    It corrects the rounding error of y - x, which the power would magnify. Source: D. E. Knuth, The Art of Computer
    Programming 2 (1997), section 4.2.2, theorem B.
    """
    apart = where(equal(x, y), full_like(x, 0, ()), subtract(y, x))
    taken = add(apart, x)
    lost = subtract(subtract(y, taken), subtract(subtract(apart, taken), negative(x)))
    ratio = power(apart)
    inverse = reciprocal_of(add(ratio, 1))
    correction = multiply(multiply(ratio, inverse), lost)
    return multiply(inverse, subtract(1, where(isfinite(correction), multiply(correction, rate), full_like(x, 0, ()))))


log_part: Elementwise = formula(
    "log_part",
    lambda x, y: _part_of_two(x, y, exp, 1.0),
    lambda x, y, out: multiply(out, log_part(y, x)),
    lambda x, y, out: negative(multiply(out, log_part(y, x))),
    cost=15,
)
"""The part of exp(x) in exp(x) + exp(y)."""
log2_part: Elementwise = formula(
    "log2_part",
    lambda x, y: _part_of_two(x, y, exp2, math.log(2)),
    lambda x, y, out: multiply(multiply(out, math.log(2)), log2_part(y, x)),
    lambda x, y, out: multiply(multiply(out, -math.log(2)), log2_part(y, x)),
    cost=15,
)
"""The part of 2^x in 2^x + 2^y."""
logaddexp: Elementwise = elementwise("logaddexp", lambda x, y: log_part(x, y), lambda x, y: log_part(y, x), cost=15)
logaddexp2: Elementwise = elementwise("logaddexp2", lambda x, y: log2_part(x, y), lambda x, y: log2_part(y, x), cost=15)

sin: Elementwise = elementwise("sin", lambda x: cos(x), cost=15)
cos: Elementwise = elementwise("cos", lambda x: negative(sin(x)), cost=15)


def _secant_square(x: Array) -> Array:
    """1 / cos² x, zero where the cosine is beyond all numbers."""
    cosine = cos(x)
    is_huge = logical_not(isfinite(cosine))
    inverse = where(is_huge, full_like(x, 0, ()), reciprocal_of(cosine))
    return multiply(inverse, inverse)


secant_square: Elementwise = formula(
    "secant_square", _secant_square, lambda x, out: multiply(multiply(out, 2), tan(x)), cost=20
)
"""1 / cos² x of complex x: 1 + tan² x loses its digits far from the real axis."""
tan: Elementwise = elementwise(
    "tan", lambda x, out: secant_square(x) if dtype_of(x).kind == "c" else add(square(out), 1), cost=20
)


def plus_one(x: Array) -> Array:
    """x + 1, which keeps the sign of an imaginary part of zero: it tells the side of a branch cut."""
    return add(x, 1) if dtype_of(x).kind != "c" else negative(subtract(negative(x), 1))


one_minus_square: Elementwise = formula(
    "one_minus_square", lambda x: multiply(subtract(1, x), add(x, 1)), lambda x: multiply(x, -2)
)
"""1 - x², exact to the last digits also near 1 and -1."""


sine_of_arccos: Elementwise = formula(
    "sine_of_arccos",
    lambda x: multiply(sqrt(negative(subtract(x, 1))), sqrt(plus_one(x))),
    lambda x, out: negative(divide(x, out)),
)
"""√(1 - x²) of complex x, on the side of its branch cut on which x lies."""
sinh_of_arccosh: Elementwise = formula(
    "sinh_of_arccosh", lambda x: multiply(sqrt(subtract(x, 1)), sqrt(plus_one(x))), lambda x, out: divide(x, out)
)
"""√(x - 1) √(x + 1)."""


def sine_of_angle(x: Array) -> Array:
    """√(1 - x²), the sine of arccos x; for complex x on the side of its branch cut on which x lies."""
    return sine_of_arccos(x) if dtype_of(x).kind == "c" else sqrt(one_minus_square(x))


def _one_plus_and_minus_ix(x: Array) -> tuple[Array, Array]:
    """1 + i x and 1 - i x of complex x, exact near i and -i, with the signs of zeros, which tell sides of cuts."""
    return make_complex(subtract(1, imag(x)), real(x)), make_complex(add(imag(x), 1), negative(real(x)))


def _inverse_one_plus_square(x: Array) -> Array:
    if dtype_of(x).kind != "c":
        return reciprocal_of(add(square(x), 1))
    plus, minus = _one_plus_and_minus_ix(x)
    return multiply(reciprocal_of(plus), reciprocal_of(minus))


arctan_slope: Elementwise = formula(
    "arctan_slope", _inverse_one_plus_square, lambda x, out: multiply(multiply(x, out), multiply(out, -2)), cost=4
)
"""1 / (1 + x²)."""


def _arcsinh_partial(x: Array) -> Array:
    """1 / √(1 + x²)."""
    return arcsinh_slope(x) if dtype_of(x).kind == "c" else reciprocal_of(hypot(x, 1.0))


def _inverse_root_of_one_plus_square(x: Array) -> Array:
    plus, minus = _one_plus_and_minus_ix(x)
    return multiply(reciprocal_of(sqrt(plus)), reciprocal_of(sqrt(minus)))


def _arccosh_partial(x: Array) -> Array:
    """1 / (√(x - 1) √(x + 1))."""
    root = sinh_of_arccosh(x) if dtype_of(x).kind == "c" else multiply(sqrt(subtract(x, 1)), sqrt(add(x, 1)))
    return divide(1, root)


arcsinh_slope: Elementwise = formula(
    "arcsinh_slope",
    _inverse_root_of_one_plus_square,
    lambda x, out: multiply(multiply(negative(x), out), multiply(out, out)),
)
"""1 / √(1 + x²) of complex x, on the side of its branch cut on which x lies."""


def _inverse_one_minus_square(x: Array) -> Array:
    if dtype_of(x).kind != "c":
        return reciprocal_of(multiply(subtract(1, x), add(x, 1)))
    return multiply(reciprocal_of(subtract(1, x)), reciprocal_of(add(x, 1)))


arctanh_slope: Elementwise = formula(
    "arctanh_slope", _inverse_one_minus_square, lambda x, out: multiply(multiply(x, out), multiply(out, 2)), cost=4
)
"""1 / (1 - x²)."""

arcsin: Elementwise = elementwise("arcsin", lambda x: divide(1, sine_of_angle(x)), cost=20)
arccos: Elementwise = elementwise("arccos", lambda x: divide(-1, sine_of_angle(x)), cost=20)
arctan: Elementwise = elementwise("arctan", lambda x: arctan_slope(x), cost=20)
sinh: Elementwise = elementwise("sinh", lambda x: cosh(x), cost=15)
cosh: Elementwise = elementwise("cosh", lambda x: sinh(x), cost=15)
tanh: Elementwise = elementwise("tanh", lambda x: sech_squared(x), cost=20)
sech_squared: Elementwise = elementwise(
    "sech_squared", lambda x, out: multiply(multiply(tanh(x), out), -2), impl=arrays.sech_squared, cost=20
)
"""1 / cosh²; 1 - tanh² has lost its digits where tanh is almost one."""
arcsinh: Elementwise = elementwise("arcsinh", lambda x: _arcsinh_partial(x), cost=20)
arccosh: Elementwise = elementwise("arccosh", lambda x: _arccosh_partial(x), cost=20)
arctanh: Elementwise = elementwise("arctanh", lambda x: arctanh_slope(x), cost=20)
deg2rad: Elementwise = elementwise("deg2rad", lambda out: full_like(out, math.pi / 180, ()))
rad2deg: Elementwise = elementwise("rad2deg", lambda out: full_like(out, 180 / math.pi, ()))


def over(numerator: Array, denominator: Array) -> Array:
    """A quotient that is zero by convention where the denominator is."""
    nothing = equal(denominator, 0)
    quotient = where(
        nothing,
        full_like(denominator, 0, ()),
        divide(numerator, where(nothing, full_like(denominator, 1, ()), denominator)),
    )
    return by_convention(quotient, lambda: nothing, denominator)


@on_arrays(lambda out: np.divide(0.5, out) if np.all(out) else None)
def slope_of_root(out: Array) -> Array:
    """0.5 / out, zero at zero by convention."""
    return over(0.5, out)


root: Elementwise = elementwise("root", slope_of_root, ufunc="sqrt", cost=4)
"""The square root of a sum of squares: its derivative at zero is zero, as that of a norm."""


def _cosine(x: Array, y: Array, z: Array) -> Array:
    """x / z, zero at zero; the sign of x where it alone is infinite."""
    return where(greater(isinf(x), isinf(y)), copysign(1.0, x), over(x, z))


cosine: Elementwise = formula(
    "cosine",
    _cosine,
    lambda y, z: multiply(divide(y, z), divide(divide(y, z), z)),
    lambda x, y, z: negative(multiply(divide(x, z), divide(divide(y, z), z))),
    None,
    cost=4,
)
"""x / z for z = √(x² + y²), zero at zero."""


def _ratio(x: Any, y: Any, out: Any) -> Any:
    """x / out, or None where it is NaN."""
    ratio = np.divide(x, out)
    return None if np.isnan(ratio).any() else ratio


@on_arrays(_ratio)
def slope_of_hypot(x: Array, y: Array, out: Array) -> Array:
    """x / out, zero at zero by convention."""
    return cosine(x, y, out)


@on_arrays(lambda x, y, out: _ratio(y, x, out))
def other_slope_of_hypot(x: Array, y: Array, out: Array) -> Array:
    """The same by y."""
    return cosine(y, x, out)


hypot: Elementwise = elementwise("hypot", slope_of_hypot, other_slope_of_hypot, cost=4)


def _over_square_sum(x: Array, y: Array) -> Array:
    distance = hypot(x, y)
    return over(over(x, distance), distance)


def _over_square_sum_partial_x(x: Array, y: Array) -> Array:
    """(y - x) (y + x) / (x² + y²)²."""
    distance = hypot(x, y)
    return multiply(divide(divide(subtract(y, x), distance), distance), divide(divide(add(y, x), distance), distance))


over_square_sum: Elementwise = formula(
    "over_square_sum",
    _over_square_sum,
    _over_square_sum_partial_x,
    lambda x, y, out: multiply(multiply(out, -2), over_square_sum(y, x)),
    cost=10,
)
"""x / (x² + y²), zero at zero."""
root_power: Elementwise = elementwise(
    "root_power", lambda x, y, out: over(multiply(y, out), x), power_partial_y, ufunc="power", cost=20
)
"""x^y of x ≥ 0, whose derivative at zero is zero for every y, as that of a norm."""


def _modulus_power(x: Array, y: Array) -> Array:
    return power(absolute(x), y)


def _signed_power(x: Array, y: Array) -> Array:
    return where(equal(x, 0), full_like(x, 0, ()), multiply(sign(x), power(absolute(x), y)))


def _slope_of_signed_power(x: Array, y: Array) -> Array:
    """y |x|^(y-1), which is undetermined where a sign jumps, and has no slope at zero for y ≤ 2 but 1."""
    slope = multiply(y, modulus_power(x, subtract(y, 1)))
    is_zero = equal(x, 0)
    slope = by_convention(slope, lambda: logical_and(is_zero, logical_and(less_equal(y, 2), not_equal(y, 1))), x)
    return where(logical_and(is_zero, less_equal(y, 0)), full_like(x, math.nan, ()), slope)


modulus_power: Elementwise = formula(
    "modulus_power",
    _modulus_power,
    lambda x, y: multiply(y, signed_power(x, subtract(y, 1))),
    lambda x, y, out: power_partial_y(absolute(x), y, out),
    impl=lambda xp, x, y: xp.power(xp.absolute(x), y),
    cost=20,
)
"""|x|^y of real x, with every derivative that it has at zero."""
signed_power: Elementwise = formula(
    "signed_power",
    _signed_power,
    _slope_of_signed_power,
    lambda x, y, out: power_partial_y(absolute(x), y, out),
    impl=lambda xp, x, y: xp.where(xp.equal(x, 0), xp.zeros_like(x), xp.sign(x) * xp.power(xp.absolute(x), y)),
    cost=20,
)
"""The sign of x times |x|^y; zero where x is."""
arctan2: Elementwise = elementwise(
    "arctan2", lambda x, y: over_square_sum(y, x), lambda x, y: negative(over_square_sum(x, y)), cost=20
)
ldexp: Elementwise = elementwise("ldexp", lambda y, out: exp2(convert(y, dtype=dtype_of(out))), None)


def _real_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.real(np.empty(0, dtype)).dtype


def _complex_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.result_type(dtype, np.complex64)


real: Linear = linear(
    "real",
    lambda xp, x: xp.real(x),
    aval=lambda x: Aval(x.shape, _real_dtype(x.dtype)),
    transpose=lambda ct, x: (fit_cotangent(ct, x),),
    batch=lambda x: real(x),
    cost=0,
    mask="elementwise",
    covers=True,
    view=True,
)


def _imag_transpose(ct: Array, x: Shaped) -> tuple[Array]:
    if x.dtype.kind != "c":
        return (full_like(ct, 0),)
    return (fit_cotangent(multiply(ct, 1j), x),)


imag: Linear = linear(
    "imag",
    lambda xp, x: xp.imag(x),
    aval=lambda x: Aval(x.shape, _real_dtype(x.dtype)),
    transpose=_imag_transpose,
    batch=lambda x: imag(x),
    cost=0,
    mask="elementwise",
    covers=True,
    view=lambda ins: ins[0].dtype.kind == "c",
    layout=lambda x: x.imag if x.dtype.kind == "c" else iterated_order(x),
)


def _complex_impl(xp: Any, re: Array, im: Array) -> Array:
    dtype = _complex_dtype(np.result_type(dtype_of(re), dtype_of(im)))
    shape = np.broadcast_shapes(shape_of(re), shape_of(im))
    out = xp.empty_like(re, dtype=dtype) if shape and shape_of(re) == shape else xp.empty(shape, dtype)
    return make_complex_into(re, im, out)[()]


def _complex_aval(re: Aval, im: Aval) -> Aval:
    return Aval(np.broadcast_shapes(re.shape, im.shape), _complex_dtype(np.result_type(re.dtype, im.dtype)))


def _complex_transpose(ct: Array, re: Any, im: Any) -> tuple[Array, Array]:
    return fit_cotangent(real(ct), re), fit_cotangent(imag(ct), im)


make_complex: Linear = linear(
    "complex",
    _complex_impl,
    aval=_complex_aval,
    transpose=_complex_transpose,
    batch=lambda size, batched, args, params: make_complex(*align_ranks(size, batched, args)),
    positions=(),
    cost=1,
    mask="elementwise",
    covers=True,
    layout=iterated_order,
)
"""A complex array of its real and imaginary parts."""
