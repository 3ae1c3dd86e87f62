"""Special functions that are short formulas."""

from __future__ import annotations

import math

import numpy as np

from func.backends.array_helpers.arrays import scipy_of
from func.backends.loops.values import ArrayValue
from func.backends.scalars.operations import HALF
from func.interpreters.compile.native.elementwise import BOOL, by_scipy
from func.interpreters.compile.native.not_native import NotNative
from func.interpreters.compile.native.rules import TranslationContext, native


@native("sinc")
def _sinc(context: TranslationContext) -> ArrayValue:
    """A derivative of sin(πx) / (πx), as func computes it: far from zero by a recurrence, else by a series."""
    order, dtype = context.params["order"], context.out.dtype
    if dtype.kind != "f" or (order and dtype == HALF):
        raise NotNative(f"sinc of {dtype}")

    def number(value: float) -> ArrayValue:
        return context.number(value, dtype)

    y = context.map("multiply", context.convert(context.args[0], dtype), number(math.pi))
    if order == 0:
        is_nonzero = context.map("not_equal", y, number(0), dtype=BOOL)
        y = context.map("select", is_nonzero, y, number(float(np.finfo(dtype).eps)))
        return context.map("divide", context.map("sin", y), y)
    is_small = context.map("less", context.map("absolute", y), number(3), dtype=BOOL)
    far = context.map("select", is_small, number(1), y)
    waves = [context.map("sin", far), context.map("cos", far)]
    value = context.map("divide", waves[0], far)
    for n in range(1, order + 1):
        wave = context.map("negative", waves[n % 2]) if n % 4 > 1 else waves[n % 2]
        value = context.map("divide", context.map("subtract", wave, context.map("multiply", value, number(n))), far)
    near = _sinc_series(context, context.map("select", is_small, y, number(0)), order)
    return context.map("multiply", context.map("select", is_small, near, value), number(math.pi**order))


def _sinc_series(context: TranslationContext, y: ArrayValue, order: int) -> ArrayValue:
    """The derivative of Σ (-1)^k y^2k / (2k+1)! of an order."""
    first = (order + 1) // 2
    square = context.map("multiply", y, y)
    total: ArrayValue = context.number(0, y.dtype)
    for k in range(first + 15, first - 1, -1):
        coefficient = (-1) ** k / (2 * k + 1) * (1.0 / math.factorial(2 * k - order))
        total = context.map("add", context.map("multiply", square, total), context.number(coefficient, y.dtype))
    return total if 2 * first == order else context.map("multiply", total, y)


@native("ellipk", "ellipkm1", "ellipe", "exprel")
def _of_order_zero(context: TranslationContext) -> ArrayValue:
    """SciPy's function; its derivatives are func's own."""
    name = context.equation.primitive.name
    if context.params["order"] or not context.translator.calls_scipy:
        raise NotNative(f"derivatives of {name}, or {name} without SciPy")
    return by_scipy(context, getattr(scipy_of(np, "special"), name))
