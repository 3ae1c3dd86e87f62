"""Elementwise rows that are short formulas, or operations with operands of several kinds."""

from __future__ import annotations

import math

import numpy as np

from func.backends.llvm.scalars.operations import HALF
from func.backends.loops.values import Val
from func.interpreters.compile.native.elementwise import BOOL, by_loop, elementwise, has_operation, loop_of
from func.interpreters.compile.native.rules import NotNative, Site, native

SINGLE, INDEX, INT = np.dtype(np.float32), np.dtype(np.int64), np.dtype(np.int32)
FARTHEST = 5000
"""An exponent of two that takes any number to zero or to infinity."""


@native("ldexp")
def _ldexp(site: Site) -> Val:
    x, n = site.args
    dtype = loop_of(site, np.ldexp)[0]
    wide = SINGLE if dtype == HALF else dtype
    n = site.convert(n, INDEX)
    n = site.map("minimum", site.map("maximum", n, site.number(-FARTHEST, INDEX)), site.number(FARTHEST, INDEX))
    made = site.map("ldexp", n, site.convert(site.convert(x, dtype), wide))
    return site.convert(site.convert(made, dtype), site.out.dtype)


@native("exponent")
def _exponent(site: Site) -> Val:
    dtype = loop_of(site, np.frexp)[0]
    return site.convert(site.map("exponent", site.convert(site.args[0], dtype), dtype=INT), site.out.dtype)


@native("float_power")
def _float_power(site: Site) -> Val:
    return by_loop(site, np.float_power, "power")


# --- powers -------------------------------------------------------------------------------------------------------


@native("power")
def _power(site: Site) -> Val:
    """Small whole powers are products: as exact as the function, and far faster."""
    x, y = site.args
    n = y.literal if y.root is None else None
    dtype = site.out.dtype
    if dtype.kind in "iub" and isinstance(n, (int, np.integer)) and n >= 0:
        return product(site, broadcast(site, x), int(n))
    if dtype.kind == "i":
        raise NotNative("powers of whole numbers, which may be negative")
    if dtype.kind not in "fc" or n not in (0, 1, 2, 3, 4, -1) or not has_operation("multiply", dtype):
        return elementwise(site)
    if n == -1:
        return site.map("reciprocal", broadcast(site, x))
    return product(site, broadcast(site, x), int(n.real))


def broadcast(site: Site, x: Val) -> Val:
    """An operand with the shape and dtype of the output."""
    return site.fuser.broadcast(site.convert(x, site.out.dtype), site.out.shape)


def product(site: Site, x: Val, n: int) -> Val:
    """x multiplied with itself, by squares."""
    found: Val | None = None
    while n:
        if n & 1:
            found = x if found is None else site.map("multiply", x, found)
        n >>= 1
        if n:
            x = site.map("multiply", x, x)
    return broadcast(site, site.number(1, x.dtype)) if found is None else found


# --- sin(πx) / (πx) -----------------------------------------------------------------------------------------------


@native("sinc")
def _sinc(site: Site) -> Val:
    """As func's own function: far from zero by a recurrence, else by a series."""
    order, dtype = site.params["order"], site.out.dtype
    if dtype.kind != "f" or (order and dtype == HALF):
        raise NotNative(f"sinc of {dtype}")

    def number(value: float) -> Val:
        return site.number(value, dtype)

    y = site.map("multiply", site.convert(site.args[0], dtype), number(math.pi))
    if order == 0:
        y = site.map("select", site.map("not_equal", y, number(0), dtype=BOOL), y, number(float(np.finfo(dtype).eps)))
        return site.map("divide", site.map("sin", y), y)
    small = site.map("less", site.map("absolute", y), number(3), dtype=BOOL)
    far = site.map("select", small, number(1), y)
    waves = [site.map("sin", far), site.map("cos", far)]
    value = site.map("divide", waves[0], far)
    for n in range(1, order + 1):
        wave = site.map("negative", waves[n % 2]) if n % 4 > 1 else waves[n % 2]
        value = site.map("divide", site.map("subtract", wave, site.map("multiply", value, number(n))), far)
    near = _sinc_series(site, site.map("select", small, y, number(0)), order)
    return site.map("multiply", site.map("select", small, near, value), number(math.pi**order))


def _sinc_series(site: Site, y: Val, order: int) -> Val:
    """The derivative of Σ (-1)^k y^2k / (2k+1)! of an order."""
    first = (order + 1) // 2
    square = site.map("multiply", y, y)
    total: Val = site.number(0, y.dtype)
    for k in range(first + 15, first - 1, -1):
        coefficient = (-1) ** k / (2 * k + 1) * (1.0 / math.factorial(2 * k - order))
        total = site.map("add", site.map("multiply", square, total), site.number(coefficient, y.dtype))
    return total if 2 * first == order else site.map("multiply", total, y)
