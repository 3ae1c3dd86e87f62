"""Gamma, beta and zeta functions, binomial coefficients and factorials."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from func.backends.array_helpers.arrays import scipy_of
from func.interpreters.core import Array, Tracer, known_value, operand
from func.interpreters.core.errors import UnsupportedFunctionError
from func.interpreters.host.source import at_line
from func.interpreters.primitives.elementwise.builder import add
from func.interpreters.primitives.elementwise.table import equal, greater_equal, less, less_equal, logical_and, subtract
from func.interpreters.primitives.special import gamma as ops
from func.interpreters.primitives.structural.shapes import full_like, where
from func.numpy.argument_checks import as_array, floating, scalar_of
from func.numpy.joining import stack
from func.numpy.reductions import any, sum
from func.special.protocol import implements_scipy

# fmt: off
__all__ = [
    "bernoulli", "comb", "factorial", "multigammaln", "perm", "polygamma", "zeta",
]
# fmt: on


def polygamma(n: Array, x: Array) -> Array:
    """The n-th derivative of ψ at x, which may be complex here; no derivative by n. DLMF 5.15.1."""
    return as_array(ops.polygamma(operand(n), operand(x)))


@implements_scipy("_zeta", "_riemann_zeta")
def zeta(x: Array, q: Any = None) -> Array:
    """Hurwitz' ζ(x, q), or Riemann's ζ(x) without q; no derivative by x. DLMF 25.11.1."""
    return ops.riemann_zeta(operand(x)) if q is None else ops.zeta(operand(x), operand(q))


def multigammaln(a: Array, d: int) -> Array:
    """The logarithm of the gamma function of d × d matrices, a > (d - 1) / 2.

    Source: R. Muirhead (1982), Aspects of multivariate statistical theory, theorem 2.1.12.
    """
    a = floating(a)
    size = operator.index(d)
    if size < 1:
        raise ValueError("d should be a positive integer (dimension)")
    is_outside = known_value(any(less_equal(a, 0.5 * (size - 1))))
    if is_outside is not None and np.any(is_outside):
        raise ValueError(f"condition a > 0.5 * (d-1) ({0.5 * (size - 1)}) not met")
    terms = [ops.loggamma(subtract(a, (j - 1.0) / 2)) for j in range(1, size + 1)]
    return add(sum(stack(terms), axis=0), size * (size - 1) * 0.25 * math.log(math.pi))


def factorial(n: Array, exact: bool = False) -> Any:
    """n! = Γ(n + 1), zero for negative n; with `exact` SciPy computes integers."""
    n = operand(n)
    if exact:
        return scipy_of(np, "special").factorial(_plain("factorial", n), exact=True)
    n = floating(n)
    is_negative = less(n, 0)  # NaN stays NaN
    safe = where(is_negative, full_like(n, 0, ()), n)
    return where(is_negative, full_like(n, 0, ()), ops.gamma(add(safe, 1)))


def _plain(function: str, value: Any) -> Any:
    """An untraced value, since integer arithmetic has no derivative."""
    if type(value) is Tracer:
        raise UnsupportedFunctionError(f"{function}(exact=True) of a traced array has no traced version{at_line()}")
    return value


def comb(N: Array, k: Array, *, exact: bool = False, repetition: bool = False) -> Any:
    """The number of combinations of k out of N, zero outside 0 <= k <= N; with `exact` SciPy computes integers."""
    if exact:
        plain_values = [_plain("comb", value) for value in (N, k)]
        return scipy_of(np, "special").comb(*plain_values, exact=True, repetition=repetition)
    N, k = floating(N), floating(k)
    if repetition:
        is_empty_choice = logical_and(equal(k, 0), greater_equal(N, 0))
        value = ops.binom(subtract(add(N, k), 1), k)
        return scalar_of(where(is_empty_choice, full_like(value, 1, ()), value))
    return _zero_outside(N, k, ops.binom(N, k))


def _zero_outside(N: Array, k: Array, value: Array) -> Array:
    """A value where 0 <= k <= N, and zero elsewhere."""
    is_valid = logical_and(logical_and(less_equal(k, N), greater_equal(N, 0)), greater_equal(k, 0))
    return scalar_of(where(is_valid, value, full_like(value, 0, ())))


def perm(N: Array, k: Array, exact: bool = False) -> Any:
    """The number of permutations of k out of N, zero outside 0 <= k <= N; with `exact` SciPy computes integers."""
    if exact:
        plain = [_plain("perm", value) for value in (N, k)]
        return scipy_of(np, "special").perm(*plain, exact=True)
    N, k = floating(N), floating(k)
    return _zero_outside(N, k, ops.poch(add(subtract(N, k), 1), k))


def bernoulli(n: int) -> Any:
    """The Bernoulli numbers B₀ ... Bₙ (constants)."""
    return scipy_of(np, "special").bernoulli(n)
