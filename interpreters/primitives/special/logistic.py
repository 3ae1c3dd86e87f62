"""Logistic functions, entropies, robust losses and power transforms."""

from __future__ import annotations

from func.backends.array_helpers import special
from func.interpreters.core import Array, Primitive
from func.interpreters.primitives.elementwise.builder import Elementwise, add, multiply, negative
from func.interpreters.primitives.elementwise.table import (
    absolute,
    divide,
    equal,
    exp,
    expm1,
    greater,
    hypot,
    less_equal,
    log,
    log1p,
    logical_and,
    maximum,
    minimum,
    over,
    power,
    power_partial_x,
    power_partial_y,
    square,
    subtract,
    tanh,
)
from func.interpreters.primitives.special.builders import ordered, publish, special_primitive, times
from func.interpreters.primitives.structural.shapes import full_like, where


def _over_first(x: Array, y: Array) -> Array:
    """x / y, which is zero where both are zero."""
    nothing = logical_and(equal(x, 0), equal(y, 0))
    return where(nothing, full_like(x, 0, ()), divide(x, where(nothing, full_like(y, 1, ()), y)))


xlogy: Elementwise = special_primitive("xlogy", lambda y: log(y), lambda x, y: _over_first(x, y))
publish(xlogy, "x y", "x log(y), which is zero where x is.")
xlog1py: Elementwise = special_primitive("xlog1py", lambda y: log1p(y), lambda x, y: _over_first(x, add(y, 1)))
publish(xlog1py, "x y", "x log(1 + y), which is zero where x is.")
entr: Elementwise = special_primitive("entr", lambda x: subtract(-1, log(x)))
publish(entr, "x", "The entropy -x log(x), zero at 0 and -∞ for negative x.")


def _log_ratio(x: Array, y: Array, at_zero: float) -> Array:
    """log(x / y), and the given number where both vanish."""
    nothing = logical_and(equal(x, 0), equal(y, 0))
    unit = full_like(x, 1, ())
    x, y = where(nothing, unit, x), where(nothing, unit, y)
    near = logical_and(less_equal(absolute(subtract(x, y)), absolute(multiply(y, 0.5))), greater(absolute(y), 0))
    alike = log(divide(where(near, x, unit), where(near, y, unit)))
    ratio = where(near, alike, subtract(log(where(near, unit, x)), log(where(near, unit, y))))
    return where(nothing, full_like(ratio, at_zero, ()), ratio)


rel_entr: Elementwise = special_primitive(
    "rel_entr", lambda x, y: add(_log_ratio(x, y, -1.0), 1), lambda x, y: negative(_over_first(x, y))
)
publish(rel_entr, "x y", "x log(x / y), zero where x is; its derivatives at (0, 0) are zero.")
kl_div: Elementwise = special_primitive(
    "kl_div", lambda x, y: _log_ratio(x, y, -1.0), lambda x, y: subtract(1, _over_first(x, y))
)
publish(kl_div, "x y", "x log(x / y) - x + y; its derivatives at (0, 0) are -1 and 1.")

expit: Elementwise = special_primitive("expit", lambda x, out: multiply(out, expit(negative(x))), cost=15)
publish(
    expit,
    "x",
    """The logistic function 1 / (1 + exp(-x)); its derivative is accurate in both tails.

    >>> import func
    >>> float(func.grad(func.special.expit)(0.0))
    0.25
    """,
)
logit: Elementwise = special_primitive("logit", lambda x: divide(1, multiply(x, subtract(1, x))))
publish(logit, "p", "log(p / (1 - p)), 0 < p < 1.")
log_expit: Elementwise = special_primitive("log_expit", lambda x: expit(negative(x)))
publish(log_expit, "x", "log expit(x).")

huber: Elementwise = special_primitive(
    "huber",
    lambda x, y: maximum(subtract(absolute(y), x), 0),
    lambda x, y: where(less_equal(absolute(y), x), y, minimum(maximum(y, negative(x)), x)),
)
publish(huber, "delta r", "Huber's loss: r² / 2 where |r| <= delta, else delta (|r| - delta / 2).")


def _ratio_and_root(x: Array, y: Array) -> tuple[Array, Array]:
    """u = r / delta and h = √(1 + u²)."""
    ratio = over(y, x)
    return ratio, hypot(1.0, ratio)


def _pseudo_huber_mixed(x: Array, y: Array) -> Array:
    """u³ / h³."""
    ratio, root = _ratio_and_root(x, y)
    sine = divide(ratio, root)
    return times(sine, sine, sine)


def _pseudo_huber_bend(x: Array, y: Array) -> Array:
    """-(h - 1)² (2h + 1) / h³."""
    ratio, root = _ratio_and_root(x, y)
    rise = multiply(divide(ratio, root), divide(ratio, add(root, 1)))
    return negative(times(rise, rise, add(divide(1, root), 2)))


pseudo_huber: Elementwise = special_primitive(
    "pseudo_huber", lambda x, y: pseudo_huber_ddelta(x, y), lambda x, y: pseudo_huber_dr(x, y)
)
publish(pseudo_huber, "delta r", "The smooth loss delta² (√(1 + (r / delta)²) - 1).")
pseudo_huber_ddelta: Elementwise = special_primitive(
    "pseudo_huber_ddelta", _pseudo_huber_bend, _pseudo_huber_mixed, impl=special.pseudo_huber_ddelta
)
pseudo_huber_dr: Elementwise = special_primitive(
    "pseudo_huber_dr",
    _pseudo_huber_mixed,
    lambda x, y: divide(divide(divide(1, (root := _ratio_and_root(x, y)[1])), root), root),
    impl=special.pseudo_huber_dr,
)
"""Its derivatives, as the terms of the next derivatives cancel."""

exprel: Primitive = ordered("exprel", special.exprel)
publish(exprel, "x", "(exp(x) - 1) / x, which is 1 at 0; its derivatives hold there too. DLMF 13.4.1.")


log1prel: Primitive = ordered("log1prel", special.log1prel)
"""log(1 + x) / x, which is 1 at 0."""
exp_rest: Elementwise = special_primitive("exp_rest", lambda x: expm1(x), impl=special.exp_rest)
"""e^x - 1 - x, whose derivative keeps its digits near zero."""
log_cosh: Elementwise = special_primitive("log_cosh", lambda x: tanh(x), impl=special.log_cosh)


def _boxcox_partial_lambda(base: Array, lmbda: Array) -> Array:
    """The derivative of (e^(λ L) - 1) / λ by λ, where L is the logarithm of the base."""
    return multiply(square(base), exprel(multiply(lmbda, base), order=1))


boxcox: Elementwise = special_primitive(
    "boxcox", lambda x, y: power(x, subtract(y, 1)), lambda x, y: _boxcox_partial_lambda(log(x), y)
)
publish(boxcox, "x lmbda", "(x^λ - 1) / λ, log(x) for λ = 0; its derivative by λ holds there too.")
boxcox1p: Elementwise = special_primitive(
    "boxcox1p",
    lambda x, y: exp(multiply(subtract(y, 1), log1p(x))),
    lambda x, y: _boxcox_partial_lambda(log1p(x), y),
)
publish(boxcox1p, "x lmbda", "boxcox(1 + x, lmbda).")


def _inverse_partial_lambda(y: Array, lmbda: Array, out: Array) -> Array:
    """The derivative of exp(log(1 + λ y) / λ) by λ, where out is that number."""
    return times(out, square(y), log1prel(multiply(lmbda, y), order=1))


inv_boxcox: Elementwise = special_primitive(
    "inv_boxcox",
    lambda x, y, out: divide(out, add(multiply(x, y), 1)),
    lambda x, y, out: _inverse_partial_lambda(x, y, out),
)
publish(inv_boxcox, "y lmbda", "The x with boxcox(x, lmbda) = y.")
inv_boxcox1p: Elementwise = special_primitive(
    "inv_boxcox1p",
    lambda x, y, out: divide(add(out, 1), add(multiply(x, y), 1)),
    lambda x, y, out: _inverse_partial_lambda(x, y, add(out, 1)),
)
publish(inv_boxcox1p, "y lmbda", "The x with boxcox1p(x, lmbda) = y.")
powm1: Elementwise = special_primitive(
    "powm1", lambda x, y: power_partial_x(x, y, power(x, y)), lambda x, y: power_partial_y(x, y, power(x, y))
)
publish(powm1, "x y", "x^y - 1 without cancellation.")
