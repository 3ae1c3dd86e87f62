"""Elementwise rows that are short formulas, or operations with operands of several kinds."""

from __future__ import annotations

import math

import numpy as np

from func.backends.llvm.scalars.operations import HALF
from func.backends.loops.values import Val
from func.interpreters.compile.native.elementwise import BOOL, by_loop, elementwise, has_operation, loop_of
from func.interpreters.compile.native.rules import NotNative, TranslationContext, native

SINGLE, INDEX, INT = np.dtype(np.float32), np.dtype(np.int64), np.dtype(np.int32)
FARTHEST = 5000
"""An exponent of two that takes any number to zero or to infinity."""


@native("ldexp")
def _ldexp(context: TranslationContext) -> Val:
    x, n = context.args
    dtype = loop_of(context, np.ldexp)[0]
    wide = SINGLE if dtype == HALF else dtype
    n = context.convert(n, INDEX)
    n = context.map(
        "minimum", context.map("maximum", n, context.number(-FARTHEST, INDEX)), context.number(FARTHEST, INDEX)
    )
    made = context.map("ldexp", n, context.convert(context.convert(x, dtype), wide))
    return context.convert(context.convert(made, dtype), context.out.dtype)


@native("exponent")
def _exponent(context: TranslationContext) -> Val:
    dtype = loop_of(context, np.frexp)[0]
    return context.convert(
        context.map("exponent", context.convert(context.args[0], dtype), dtype=INT), context.out.dtype
    )


@native("float_power")
def _float_power(context: TranslationContext) -> Val:
    return by_loop(context, np.float_power, "power")


# --- powers -------------------------------------------------------------------------------------------------------


@native("power")
def _power(context: TranslationContext) -> Val:
    """Small whole powers are products: as exact as the function, and far faster."""
    x, y = context.args
    n = y.literal if y.root is None else None
    dtype = context.out.dtype
    if dtype.kind in "iub" and isinstance(n, (int, np.integer)) and n >= 0:
        return product(context, broadcast(context, x), int(n))
    if dtype.kind == "i":
        raise NotNative("powers of whole numbers, which may be negative")
    if dtype.kind not in "fc" or n not in (0, 1, 2, 3, 4, -1) or not has_operation("multiply", dtype):
        return elementwise(context)
    if n == -1:
        return context.map("reciprocal", broadcast(context, x))
    return product(context, broadcast(context, x), int(n.real))


def broadcast(context: TranslationContext, x: Val) -> Val:
    """An operand with the shape and dtype of the output."""
    return context.fuser.broadcast(context.convert(x, context.out.dtype), context.out.shape)


def product(context: TranslationContext, x: Val, n: int) -> Val:
    """x multiplied with itself, by squares."""
    found: Val | None = None
    while n:
        if n & 1:
            found = x if found is None else context.map("multiply", x, found)
        n >>= 1
        if n:
            x = context.map("multiply", x, x)
    return broadcast(context, context.number(1, x.dtype)) if found is None else found


# --- sin(πx) / (πx) -----------------------------------------------------------------------------------------------


@native("sinc")
def _sinc(context: TranslationContext) -> Val:
    """As func's own function: far from zero by a recurrence, else by a series."""
    order, dtype = context.params["order"], context.out.dtype
    if dtype.kind != "f" or (order and dtype == HALF):
        raise NotNative(f"sinc of {dtype}")

    def number(value: float) -> Val:
        return context.number(value, dtype)

    y = context.map("multiply", context.convert(context.args[0], dtype), number(math.pi))
    if order == 0:
        y = context.map(
            "select", context.map("not_equal", y, number(0), dtype=BOOL), y, number(float(np.finfo(dtype).eps))
        )
        return context.map("divide", context.map("sin", y), y)
    small = context.map("less", context.map("absolute", y), number(3), dtype=BOOL)
    far = context.map("select", small, number(1), y)
    waves = [context.map("sin", far), context.map("cos", far)]
    value = context.map("divide", waves[0], far)
    for n in range(1, order + 1):
        wave = context.map("negative", waves[n % 2]) if n % 4 > 1 else waves[n % 2]
        value = context.map("divide", context.map("subtract", wave, context.map("multiply", value, number(n))), far)
    near = _sinc_series(context, context.map("select", small, y, number(0)), order)
    return context.map("multiply", context.map("select", small, near, value), number(math.pi**order))


def _sinc_series(context: TranslationContext, y: Val, order: int) -> Val:
    """The derivative of Σ (-1)^k y^2k / (2k+1)! of an order."""
    first = (order + 1) // 2
    square = context.map("multiply", y, y)
    total: Val = context.number(0, y.dtype)
    for k in range(first + 15, first - 1, -1):
        coefficient = (-1) ** k / (2 * k + 1) * (1.0 / math.factorial(2 * k - order))
        total = context.map("add", context.map("multiply", square, total), context.number(coefficient, y.dtype))
    return total if 2 * first == order else context.map("multiply", total, y)
