"""Orthogonal polynomials and associated Legendre functions, with derivatives by the argument. DLMF 18.9 and 14.10.

The degree may be real where SciPy's is. No derivative by the degree or a parameter is defined.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from func.interpreters.core import Array, Primitive, dtype_of
from func.interpreters.primitives.elementwise.table import absolute, equal, less, less_equal, logical_or, rint
from func.interpreters.primitives.special.builders import by_name
from func.interpreters.primitives.structural.shapes import full_like, where


def _from_below(n: Array, slope: Callable[[Array], Array]) -> Array:
    """A slope given by the degree below, and zero for degree zero, which has none."""
    constant = equal(n, 0)
    value = slope(where(constant, full_like(n, 1, ()), n) - 1)
    return where(constant, value * 0.0, value)


def _reflected(n: Array, middle: int, slope: Callable[[Array], Array], sign: int = 1) -> Array:
    """A slope by the degree below, where SciPy reflects negative integer degrees: p₋ₙ₋ₘ = ± pₙ with this m."""
    if dtype_of(n).kind not in "iu":
        return _from_below(n, slope)
    is_reflected = less(n, 1 - middle)
    value = _from_below(where(is_reflected, -middle - n, n), slope)
    return value if sign == 1 else where(is_reflected, -value, value)


eval_jacobi: Primitive = by_name(
    "eval_jacobi",
    "n alpha beta x",
    x=lambda n, a, b, x, out: _from_below(n, lambda k: 0.5 * (n + a + b + 1) * eval_jacobi(k, a + 1, b + 1, x)),
)
"""DLMF 18.9.15."""
eval_sh_jacobi: Primitive = by_name(
    "eval_sh_jacobi",
    "n p q x",
    x=lambda n, p, q, x, out: _from_below(n, lambda k: n * eval_sh_jacobi(k, p + 2, q + 1, x)),
)
eval_gegenbauer: Primitive = by_name(
    "eval_gegenbauer",
    "n alpha x",
    x=lambda n, a, x, out: _from_below(n, lambda k: 2 * a * eval_gegenbauer(k, a + 1, x)),
)
"""DLMF 18.9.19."""
eval_genlaguerre: Primitive = by_name(
    "eval_genlaguerre",
    "n alpha x",
    x=lambda n, a, x, out: _from_below(n, lambda k: -eval_genlaguerre(k, a + 1, x)),
)
"""DLMF 18.9.23."""
eval_laguerre: Primitive = by_name(
    "eval_laguerre", "n x", x=lambda n, x, out: _from_below(n, lambda k: -eval_genlaguerre(k, 1.0, x))
)
eval_legendre: Primitive = by_name(
    "eval_legendre", "n x", x=lambda n, x, out: _reflected(n, 1, lambda k: eval_gegenbauer(k, 1.5, x))
)
eval_sh_legendre: Primitive = by_name(
    "eval_sh_legendre", "n x", x=lambda n, x, out: _reflected(n, 1, lambda k: 2 * eval_gegenbauer(k, 1.5, 2 * x - 1))
)
eval_chebyt: Primitive = by_name(
    "eval_chebyt", "n x", x=lambda n, x, out: _from_below(n, lambda k: n * eval_chebyu(k, x))
)
"""DLMF 18.9.21."""
eval_chebyu: Primitive = by_name(
    "eval_chebyu", "n x", x=lambda n, x, out: _reflected(n, 2, lambda k: 2 * eval_gegenbauer(k, 2.0, x), -1)
)
eval_chebyc: Primitive = by_name(
    "eval_chebyc", "n x", x=lambda n, x, out: _from_below(n, lambda k: n * eval_chebyu(k, x / 2))
)
eval_chebys: Primitive = by_name(
    "eval_chebys", "n x", x=lambda n, x, out: _reflected(n, 2, lambda k: eval_gegenbauer(k, 2.0, x / 2), -1)
)
eval_sh_chebyt: Primitive = by_name(
    "eval_sh_chebyt", "n x", x=lambda n, x, out: _from_below(n, lambda k: 2 * n * eval_chebyu(k, 2 * x - 1))
)
eval_sh_chebyu: Primitive = by_name(
    "eval_sh_chebyu", "n x", x=lambda n, x, out: _reflected(n, 2, lambda k: 4 * eval_gegenbauer(k, 2.0, 2 * x - 1), -1)
)
eval_hermite: Primitive = by_name(
    "eval_hermite", "n x", x=lambda n, x, out: _from_below(n, lambda k: 2 * n * eval_hermite(k, x))
)
"""DLMF 18.9.25."""
eval_hermitenorm: Primitive = by_name(
    "eval_hermitenorm", "n x", x=lambda n, x, out: _from_below(n, lambda k: n * eval_hermitenorm(k, x))
)


def _lpmv_slope(m: Array, v: Array, x: Array, out: Array) -> Array:
    """NaN for |x| > 1 and a degree that is not an integer, where SciPy's values are those of no function."""
    slope = ((m - v - 1) * lpmv(m, v + 1, x) + (v + 1) * x * out) / (1 - x * x)
    has_value = logical_or(less_equal(absolute(x), 1), equal(v, rint(v)))
    return where(has_value, slope, full_like(slope, math.nan, ()))


lpmv: Primitive = by_name("lpmv", "m v x", x=_lpmv_slope)
"""DLMF 14.10.5."""
