"""The gamma family and its relatives, and the inverse Gaussian. Samples differentiate in their shape parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from func.interpreters.core import Array, dtype_of, operand, shape_of
from func.interpreters.primitives.elementwise import table as e
from func.interpreters.primitives.random import bits as ops
from func.interpreters.primitives.random.normal import wald as wald_primitive
from func.interpreters.primitives.random.variates import loggamma as loggamma_primitive
from func.interpreters.primitives.structural.reductions import reduce_max
from func.interpreters.primitives.structural.shapes import convert, expand, reduce_sum
from func.random.keys import check_key, float_dtype, full_shape, keys_of, parameter, require, stretched


def positive(function: str, name: str, value: Any, dtype: Any) -> Array:
    """A parameter that must be positive."""
    value = parameter(function, name, value, dtype)
    require(function, lambda v: v <= 0, f"{name} must be positive", value)
    return value


def _loggamma(key: Array, a: Array, shape: tuple[int, ...]) -> Array:
    return loggamma_primitive(key, stretched(a, shape))


def _halved(x: Array) -> Array:
    return e.multiply(x, 0.5)


def gamma(key: Any, a: Any, shape: Any = None, dtype: Any = np.float64, *, scale: Any = 1.0) -> Array:
    """Gamma numbers of density x^(a - 1) exp(-x) / Γ(a), times `scale`.

    A sample is the quantile of a uniform number, so it is a smooth function of `a` for a given key, and its derivative
    is d sample / d a = -(∂F/∂a) / pdf (implicit reparameterisation), exact to about 1e-12.

    Args:
        key: A key, (2,) of uint32.
        a: Shape parameters, positive; broadcast to `shape`.
        shape: The full shape; by default that of the parameters.
        dtype: float64, float32 or float16.
        scale: Factors that broadcast to the shape.

    Source: M. Figurnov, S. Mohamed, A. Mnih (2018), Implicit reparameterization gradients.

    Example:
        >>> import func
        >>> key = func.random.key(0)
        >>> func.grad(lambda a: func.random.gamma(key, a))(2.0) > 0
        np.True_
    """
    full = full_shape("gamma", shape, shape_of(operand(a)), shape_of(operand(scale)))
    out = e.exp(loggamma(key, a, full, dtype))
    if type(scale) is float and scale == 1.0:
        return out
    scale = parameter("gamma", "scale", scale, dtype_of(out))
    require("gamma", lambda s: s < 0, "scale must not be negative", scale)
    return e.multiply(out, scale)


def loggamma(key: Any, a: Any, shape: Any = None, dtype: Any = np.float64) -> Array:
    """Logarithms of gamma numbers, which stay finite where the numbers themselves underflow (small a)."""
    dtype = float_dtype("loggamma", dtype)
    a = positive("gamma", "a", a, dtype)
    return _loggamma(check_key(key, "gamma"), a, full_shape("gamma", shape, shape_of(a)))


def beta(key: Any, a: Any, b: Any, shape: Any = None, dtype: Any = np.float64) -> Array:
    """Beta numbers of density ∝ x^(a - 1) (1 - x)^(b - 1) on (0, 1)."""
    dtype = float_dtype("beta", dtype)
    a, b = positive("beta", "a", a, dtype), positive("beta", "b", b, dtype)
    full = full_shape("beta", shape, shape_of(a), shape_of(b))
    first, second = keys_of(check_key(key, "beta"), 2)
    x, y = _loggamma(first, a, full), _loggamma(second, b, full)
    return e.exp(e.subtract(x, e.logaddexp(x, y)))


def dirichlet(key: Any, alpha: Any, shape: Any = None, dtype: Any = np.float64) -> Array:
    """Points of the simplex, of density ∝ ∏ x_i^(alpha_i - 1).

    Args:
        key: A key, (2,) of uint32.
        alpha: Concentrations (…, n), positive.
        shape: The batch shape of the result, without its last axis of length n; by default that of alpha.
        dtype: float64, float32 or float16.
    """
    dtype = float_dtype("dirichlet", dtype)
    alpha = positive("dirichlet", "alpha", alpha, dtype)
    if not shape_of(alpha):
        raise ValueError("func.random.dirichlet: alpha must have at least one axis")
    full = (*full_shape("dirichlet", shape, shape_of(alpha)[:-1]), shape_of(alpha)[-1])
    y = _loggamma(check_key(key, "dirichlet"), alpha, full)
    last = len(full) - 1
    weights = e.exp(e.subtract(y, expand(reduce_max(y, axes=(last,)), (last,))))
    return e.divide(weights, expand(reduce_sum(weights, axes=(last,)), (last,)))


def chisquare(key: Any, df: Any, shape: Any = None, dtype: Any = np.float64) -> Array:
    """Chi-square numbers of `df` degrees of freedom."""
    dtype = float_dtype("chisquare", dtype)
    df = positive("chisquare", "df", df, dtype)
    full = full_shape("chisquare", shape, shape_of(df))
    return e.multiply(e.exp(_loggamma(check_key(key, "chisquare"), _halved(df), full)), 2.0)


def f(key: Any, dfnum: Any, dfden: Any, shape: Any = None, dtype: Any = np.float64) -> Array:
    """Numbers of the F distribution: the quotient of two chi-square numbers over their degrees of freedom."""
    dtype = float_dtype("f", dtype)
    dfnum, dfden = positive("f", "dfnum", dfnum, dtype), positive("f", "dfden", dfden, dtype)
    full = full_shape("f", shape, shape_of(dfnum), shape_of(dfden))
    first, second = keys_of(check_key(key, "f"), 2)
    x, y = _loggamma(first, _halved(dfnum), full), _loggamma(second, _halved(dfden), full)
    return e.multiply(e.exp(e.subtract(x, y)), e.divide(dfden, dfnum))


def t(key: Any, df: Any, shape: Any = None, dtype: Any = np.float64) -> Array:
    """Numbers of Student's t distribution of `df` degrees of freedom: a normal number over √(chi-square / df)."""
    dtype = float_dtype("t", dtype)
    df = positive("t", "df", df, dtype)
    full = full_shape("t", shape, shape_of(df))
    first, second = keys_of(check_key(key, "t"), 2)
    z = ops.random_normal(first, shape=full, dtype=dtype)
    half = _halved(df)
    return e.multiply(z, e.exp(_halved(e.subtract(e.log(half), _loggamma(second, half, full)))))


def wald(key: Any, mean: Any, shape: Any = None, dtype: Any = np.float64) -> Array:
    """Wald (inverse Gaussian) numbers of this mean and of scale one; differentiable in the mean."""
    dtype = float_dtype("wald", dtype)
    mean = positive("wald", "mean", mean, dtype)
    return wald_primitive(check_key(key, "wald"), stretched(mean, full_shape("wald", shape, shape_of(mean))))


def maxwell(key: Any, shape: Any = (), dtype: Any = np.float64) -> Array:
    """Maxwell numbers: the lengths of three normal numbers."""
    dtype = float_dtype("maxwell", dtype)
    full = full_shape("maxwell", shape)
    z = ops.random_normal(check_key(key, "maxwell"), shape=(*full, 3), dtype=dtype)
    return e.sqrt(reduce_sum(e.multiply(z, z), axes=(len(full),)))


def signs(key: Array, shape: tuple[int, ...], dtype: Any) -> Array:
    """Numbers -1 and 1, equally likely."""
    heads = e.bitwise_and(ops.random_bits(key, shape=shape, dtype=np.dtype(np.uint32)), 1)
    return convert(e.subtract(e.multiply(convert(heads, dtype=np.dtype(np.int8)), 2), 1), dtype=np.dtype(dtype))


def double_sided_maxwell(key: Any, loc: Any, scale: Any, shape: Any = None, dtype: Any = np.float64) -> Array:
    """loc + scale · s · m, for a sign s and a Maxwell number m."""
    dtype = float_dtype("double_sided_maxwell", dtype)
    loc = parameter("double_sided_maxwell", "loc", loc, dtype)
    scale = parameter("double_sided_maxwell", "scale", scale, dtype)
    require("double_sided_maxwell", lambda s: s < 0, "scale must not be negative", scale)
    full = full_shape("double_sided_maxwell", shape, shape_of(loc), shape_of(scale))
    first, second = keys_of(check_key(key, "double_sided_maxwell"), 2)
    return e.add(loc, e.multiply(scale, e.multiply(signs(first, full, dtype), maxwell(second, full, dtype))))


def generalized_normal(key: Any, p: Any, shape: Any = None, dtype: Any = np.float64) -> Array:
    """Numbers of density ∝ exp(-|x|^p)."""
    dtype = float_dtype("generalized_normal", dtype)
    p = positive("generalized_normal", "p", p, dtype)
    full = full_shape("generalized_normal", shape, shape_of(p))
    first, second = keys_of(check_key(key, "generalized_normal"), 2)
    inverse = e.divide(1.0, p)
    size = e.exp(e.multiply(_loggamma(first, inverse, full), inverse))
    return e.multiply(size, signs(second, full, dtype))
