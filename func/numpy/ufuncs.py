"""NumPy's ufuncs on traced arrays: most are one row; the rest are written here."""

from __future__ import annotations

from typing import Any

import numpy as np

from func.interpreters.core import Array, Primitive, dtype_of, operand
from func.interpreters.primitives import elementwise as rows
from func.interpreters.primitives.structural import full_like, where
from func.numpy.protocol import DIRECT, implements_ufunc

# fmt: off
_ROWS = [
    "add", "subtract", "multiply", "divide", "power", "float_power", "remainder", "fmod", "floor_divide",
    "negative", "positive", "reciprocal", "square", "maximum", "minimum", "fmax", "fmin", "copysign", "heaviside",
    "nextafter", "spacing", "sqrt", "cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "logaddexp",
    "logaddexp2", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh", "arccosh",
    "arctanh", "hypot", "arctan2", "deg2rad", "rad2deg", "equal", "not_equal", "less", "less_equal", "greater",
    "greater_equal", "logical_and", "logical_or", "logical_xor", "logical_not", "bitwise_and", "bitwise_or",
    "bitwise_xor", "invert", "left_shift", "right_shift", "isfinite", "isinf", "isnan", "signbit", "floor", "ceil",
    "trunc", "rint", "gcd", "lcm", "ldexp", "conjugate",
]
# fmt: on


for _name in _ROWS:
    DIRECT[getattr(np, _name)] = getattr(rows, _name)
DIRECT[np.degrees] = rows.rad2deg
DIRECT[np.radians] = rows.deg2rad


def row_of(ufunc: Any) -> Primitive | None:
    """The row that is a ufunc, if there is one."""
    return DIRECT.get(ufunc)


@implements_ufunc(np.absolute)
def absolute(x: Array) -> Array:
    """|x|; for complex x the modulus, whose derivative at zero is zero."""
    x = operand(x)
    if dtype_of(x).kind == "c":
        return rows.hypot(rows.real(x), rows.imag(x))
    return rows.absolute(x)


@implements_ufunc(np.fabs)
def fabs(x: Array) -> Array:
    """|x| of real x, as floating point."""
    x = operand(x)
    if dtype_of(x).kind == "c":
        raise TypeError("ufunc 'fabs' not supported for complex input; use np.abs")
    return rows.absolute(x) if dtype_of(x).kind == "f" else rows.absolute(rows.multiply(x, 1.0))


@implements_ufunc(np.sign)
def sign(x: Array) -> Array:
    """-1, 0 or 1; for complex x the unit x / |x|, zero at zero."""
    x = operand(x)
    if dtype_of(x).kind != "c":
        return rows.sign(x)
    size = absolute(x)
    nothing = rows.equal(size, 0)
    return where(nothing, full_like(x, 0, ()), rows.divide(x, where(nothing, full_like(size, 1, ()), size)))


@implements_ufunc(np.divmod)
def divmod(x: Array, y: Array) -> tuple[Array, Array]:
    """(x // y, x % y)."""
    x, y = operand(x), operand(y)
    return rows.floor_divide(x, y), rows.remainder(x, y)


@implements_ufunc(np.modf)
def modf(x: Array) -> tuple[Array, Array]:
    """(fractional, integral) parts; the fractional part has derivative one."""
    x = operand(x)
    whole = rows.trunc(x)
    return rows.copysign(rows.absolute(rows.subtract(x, whole)), x), whole


@implements_ufunc(np.frexp)
def frexp(x: Array) -> tuple[Array, Array]:
    """(mantissa, exponent) with x = mantissa 2^exponent; the exponent is piecewise constant."""
    x = operand(x)
    power = rows.exponent(x)
    return rows.ldexp(x, rows.negative(power)), power


@implements_ufunc(np.matmul)
def _matmul(x: Array, y: Array, **kwargs: Any) -> Array:
    from func.numpy.products import matmul

    return matmul(x, y, **kwargs)


def public_ufuncs() -> dict[str, Any]:
    """The ufuncs by NumPy's names, for `func.numpy.sin` and the like."""
    table: dict[str, Any] = {name: getattr(rows, name) for name in _ROWS}
    table |= {"degrees": rows.rad2deg, "radians": rows.deg2rad}
    table |= {"absolute": absolute, "abs": absolute, "fabs": fabs, "sign": sign, "divmod": divmod, "modf": modf}
    table |= {"frexp": frexp, "true_divide": rows.divide, "mod": rows.remainder, "conj": rows.conjugate}
    table |= {"bitwise_not": rows.invert, "pow": rows.power}
    arcs = {"acos": "arccos", "asin": "arcsin", "atan": "arctan", "acosh": "arccosh", "asinh": "arcsinh"}
    table |= {short: getattr(rows, long) for short, long in arcs.items()}
    return table | {"atanh": rows.arctanh, "atan2": rows.arctan2}
