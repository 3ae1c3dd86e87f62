"""Continuous distributions with samples that are differentiable in the parameters.

A sample of a location-scale family is an explicit function of a uniform or standard normal sample. Samples of the gamma
family and of the inverse Gaussian distribution have an implicit derivative, through the distribution function.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from func.interpreters.core import Array, dtype_of, operand, shape_of
from func.interpreters.host.public_functions import without_engine_frames
from func.interpreters.primitives.elementwise import table as e
from func.interpreters.primitives.random import bits as ops
from func.interpreters.primitives.random import normal as normal_primitives
from func.interpreters.primitives.random.variates import loggamma as loggamma_primitive
from func.interpreters.primitives.structural.reductions import reduce_max
from func.interpreters.primitives.structural.shapes import convert, expand, reduce_sum, where
from func.numpy.argument_checks import to_dtype
from func.random.keys import broadcast_parameter, check_key, float_dtype, full_shape, keys_of, parameter, require


def positive(function: str, name: str, value: Any, dtype: Any) -> Array:
    """A parameter in the dtype of the samples, which must be positive."""
    value = parameter(function, name, value, dtype)
    require(function, lambda v: v <= 0, f"{name} must be positive", value)
    return value


def _unit(key: Any, function: str, shape: tuple[int, ...], dtype: Any) -> Array:
    """Uniform samples in the open interval (0, 1)."""
    return ops.random_unit(check_key(key, function), shape=shape, dtype=dtype, inside=True)


def _is(value: Any, number: float) -> bool:
    return type(value) in (int, float) and value == number


def _scaled(function: str, sample: Any, shape: Any, dtype: Any, loc: Any, scale: Any) -> Array:
    """loc + scale · sample(shape, dtype): the location-scale family of a standard distribution."""
    dtype = float_dtype(function, dtype)
    full = full_shape(function, shape, shape_of(operand(loc)), shape_of(operand(scale)))
    out = to_dtype(sample(full, dtype), dtype)  # a product of bfloat16 and a Python number is float32
    if not _is(scale, 1.0):
        scale = parameter(function, "scale", scale, dtype)
        require(function, lambda s: s < 0, "scale must not be negative", scale)
        out = e.multiply(out, scale)
    return out if _is(loc, 0.0) else e.add(parameter(function, "loc", loc, dtype), out)


@without_engine_frames
def uniform(key: Any, shape: Any = None, dtype: Any = np.float64, minval: Any = 0.0, maxval: Any = 1.0) -> Array:
    """Uniform samples in [minval, maxval), with the resolution of the dtype.

    Args:
        key: A key, (2,) of uint32.
        shape: The full shape; by default that of the bounds.
        dtype: float64, float32 or float16.
        minval, maxval: Bounds that broadcast to the shape; the sample is differentiable in them.

    Raises:
        ValueError: minval >= maxval in at least one place.

    Example:
        >>> import func
        >>> key = func.random.key(0)
        >>> func.grad(lambda high: func.random.uniform(key, (), maxval=high))(2.0) < 1
        np.True_
    """
    dtype = float_dtype("uniform", dtype)
    full = full_shape("uniform", shape, shape_of(operand(minval)), shape_of(operand(maxval)))
    unit = ops.random_unit(check_key(key, "uniform"), shape=full, dtype=dtype, inside=False)
    if _is(minval, 0.0) and _is(maxval, 1.0):
        return unit
    low, high = parameter("uniform", "minval", minval, dtype), parameter("uniform", "maxval", maxval, dtype)
    require("uniform", lambda a, b: a >= b, "minval must be below maxval", low, high)
    return e.add(low, e.multiply(unit, e.subtract(high, low)))


@without_engine_frames
def normal(key: Any, shape: Any = None, dtype: Any = np.float64, *, loc: Any = 0.0, scale: Any = 1.0) -> Array:
    """Normal samples loc + scale · z, with z from the standard normal distribution.

    z is the inverse normal distribution function of a uniform sample.

    Example:
        >>> import numpy as np, func
        >>> key = func.random.key(0)
        >>> z = func.random.normal(key, (3,))
        >>> np.allclose(func.jacobian(lambda s: func.random.normal(key, (3,), scale=s))(2.0), z)
        True
    """
    key = check_key(key, "normal")
    return _scaled("normal", lambda s, d: ops.random_normal(key, shape=s, dtype=d), shape, dtype, loc, scale)


@without_engine_frames
def exponential(key: Any, shape: Any = None, dtype: Any = np.float64, *, scale: Any = 1.0) -> Array:
    """Exponential samples of density exp(-x / scale) / scale."""

    def sample(full: tuple[int, ...], kind: Any) -> Array:
        return e.negative(e.log1p(e.negative(_unit(key, "exponential", full, kind))))

    return _scaled("exponential", sample, shape, dtype, 0.0, scale)


@without_engine_frames
def laplace(key: Any, shape: Any = None, dtype: Any = np.float64, *, loc: Any = 0.0, scale: Any = 1.0) -> Array:
    """Laplace samples of density exp(-|x - loc| / scale) / (2 scale)."""

    def sample(full: tuple[int, ...], kind: Any) -> Array:
        u = _unit(key, "laplace", full, kind)
        low = e.less(u, 0.5)
        tail = e.log(e.multiply(2.0, where(low, u, e.subtract(1.0, u))))
        return where(low, tail, e.negative(tail))

    return _scaled("laplace", sample, shape, dtype, loc, scale)


@without_engine_frames
def logistic(key: Any, shape: Any = None, dtype: Any = np.float64, *, loc: Any = 0.0, scale: Any = 1.0) -> Array:
    """Logistic samples with the distribution function 1 / (1 + exp(-(x - loc) / scale))."""

    def sample(full: tuple[int, ...], kind: Any) -> Array:
        u = _unit(key, "logistic", full, kind)
        return e.subtract(e.log(u), e.log1p(e.negative(u)))

    return _scaled("logistic", sample, shape, dtype, loc, scale)


@without_engine_frames
def gumbel(key: Any, shape: Any = None, dtype: Any = np.float64, *, loc: Any = 0.0, scale: Any = 1.0) -> Array:
    """Gumbel samples (of maxima) with the distribution function exp(-exp(-(x - loc) / scale))."""

    def sample(full: tuple[int, ...], kind: Any) -> Array:
        return e.negative(e.log(e.negative(e.log(_unit(key, "gumbel", full, kind)))))

    return _scaled("gumbel", sample, shape, dtype, loc, scale)


@without_engine_frames
def cauchy(key: Any, shape: Any = None, dtype: Any = np.float64, *, loc: Any = 0.0, scale: Any = 1.0) -> Array:
    """Cauchy samples of density 1 / (π scale (1 + ((x - loc) / scale)²))."""

    def sample(full: tuple[int, ...], kind: Any) -> Array:
        return e.tan(e.multiply(math.pi, e.subtract(_unit(key, "cauchy", full, kind), 0.5)))

    return _scaled("cauchy", sample, shape, dtype, loc, scale)


@without_engine_frames
def lognormal(key: Any, sigma: Any = 1.0, shape: Any = None, dtype: Any = np.float64) -> Array:
    """Log-normal samples exp(sigma · z), with z from the standard normal distribution."""
    key = check_key(key, "lognormal")
    draw = _scaled("lognormal", lambda s, d: ops.random_normal(key, shape=s, dtype=d), shape, dtype, 0.0, sigma)
    return e.exp(draw)


@without_engine_frames
def rayleigh(key: Any, scale: Any = 1.0, shape: Any = None, dtype: Any = np.float64) -> Array:
    """Rayleigh samples of density x exp(-x² / (2 scale²)) / scale²."""

    def sample(full: tuple[int, ...], kind: Any) -> Array:
        return e.sqrt(e.multiply(-2.0, e.log(_unit(key, "rayleigh", full, kind))))

    return _scaled("rayleigh", sample, shape, dtype, 0.0, scale)


@without_engine_frames
def weibull_min(
    key: Any, scale: Any = 1.0, concentration: Any = 1.0, shape: Any = None, dtype: Any = np.float64
) -> Array:
    """Weibull samples scale · E^(1 / concentration), with E from the exponential distribution."""
    dtype = float_dtype("weibull_min", dtype)
    full = full_shape("weibull_min", shape, shape_of(operand(scale)), shape_of(operand(concentration)))
    c = parameter("weibull_min", "concentration", concentration, dtype)
    require("weibull_min", lambda v: v <= 0, "concentration must be positive", c)

    def sample(_: tuple[int, ...], kind: Any) -> Array:
        return e.power(e.negative(e.log(_unit(key, "weibull_min", full, kind))), e.divide(1.0, c))

    return _scaled("weibull_min", sample, full, dtype, 0.0, scale)


@without_engine_frames
def pareto(key: Any, b: Any, shape: Any = None, dtype: Any = np.float64) -> Array:
    """Pareto samples of density b x^(-b - 1) on [1, ∞)."""
    dtype = float_dtype("pareto", dtype)
    b = parameter("pareto", "b", b, dtype)
    require("pareto", lambda v: v <= 0, "b must be positive", b)
    full = full_shape("pareto", shape, shape_of(b))
    return e.exp(e.divide(e.negative(e.log(_unit(key, "pareto", full, dtype))), b))


@without_engine_frames
def triangular(key: Any, left: Any, mode: Any, right: Any, shape: Any = None, dtype: Any = np.float64) -> Array:
    """Samples of the triangular density, which is zero at left and right and highest at mode.

    Raises:
        ValueError: Not left <= mode <= right, or left == right.
    """
    dtype = float_dtype("triangular", dtype)
    names = (("left", left), ("mode", mode), ("right", right))
    a, c, b = [parameter("triangular", name, value, dtype) for name, value in names]
    require("triangular", lambda x, y: x > y, "left must not exceed mode", a, c)
    require("triangular", lambda x, y: x > y, "mode must not exceed right", c, b)
    require("triangular", lambda x, y: x == y, "left must be below right", a, b)
    u = _unit(key, "triangular", full_shape("triangular", shape, shape_of(a), shape_of(c), shape_of(b)), dtype)
    width, rise, fall = e.subtract(b, a), e.subtract(c, a), e.subtract(b, c)
    low = e.less(u, e.divide(rise, width))
    rising = e.add(a, e.sqrt(e.multiply(u, e.multiply(width, rise))))
    falling = e.subtract(b, e.sqrt(e.multiply(e.subtract(1.0, u), e.multiply(width, fall))))
    return where(low, rising, falling)


@without_engine_frames
def truncated_normal(key: Any, lower: Any, upper: Any, shape: Any = None, dtype: Any = np.float64) -> Array:
    """Standard normal samples between two bounds, which may be infinite; the sample is differentiable in both.

    Bounds in the upper tail are reflected into the lower one, where the distribution function is relatively accurate.

    Raises:
        ValueError: lower >= upper in at least one place.

    Example:
        >>> import func
        >>> key = func.random.key(0)
        >>> 8.0 < func.random.truncated_normal(key, 8.0, 9.0) < 9.0
        np.True_
    """
    dtype = float_dtype("truncated_normal", dtype)
    low = parameter("truncated_normal", "lower", lower, dtype)
    high = parameter("truncated_normal", "upper", upper, dtype)
    require("truncated_normal", lambda a, b: a >= b, "lower must be below upper", low, high)
    full = full_shape("truncated_normal", shape, shape_of(low), shape_of(high))
    u = _unit(key, "truncated_normal", full, dtype)
    is_reflected = e.greater(low, e.negative(high))
    start = normal_primitives.ndtr(where(is_reflected, e.negative(high), low))
    stop = normal_primitives.ndtr(where(is_reflected, e.negative(low), high))
    out = normal_primitives.ndtri(e.add(start, e.multiply(u, e.subtract(stop, start))))
    out = where(is_reflected, e.negative(out), out)
    return e.minimum(e.maximum(out, low), high)


def _loggamma(key: Array, a: Array, shape: tuple[int, ...]) -> Array:
    return loggamma_primitive(key, broadcast_parameter(a, shape))


def _halved(x: Array) -> Array:
    return e.multiply(x, 0.5)


@without_engine_frames
def gamma(key: Any, a: Any, shape: Any = None, dtype: Any = np.float64, *, scale: Any = 1.0) -> Array:
    """Gamma samples of density x^(a - 1) exp(-x) / Γ(a), times `scale`.

    For a given key a sample is a smooth function of `a`: the quantile of a uniform sample. Implicit reparameterisation
    gives its derivative d sample / d a = -(∂F/∂a) / pdf, accurate to about 1e-12.

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


@without_engine_frames
def loggamma(key: Any, a: Any, shape: Any = None, dtype: Any = np.float64) -> Array:
    """Logarithms of gamma samples, which stay finite where the samples underflow (small a)."""
    dtype = float_dtype("loggamma", dtype)
    a = positive("gamma", "a", a, dtype)
    return _loggamma(check_key(key, "gamma"), a, full_shape("gamma", shape, shape_of(a)))


@without_engine_frames
def beta(key: Any, a: Any, b: Any, shape: Any = None, dtype: Any = np.float64) -> Array:
    """Beta samples of density ∝ x^(a - 1) (1 - x)^(b - 1) on (0, 1)."""
    dtype = float_dtype("beta", dtype)
    a, b = positive("beta", "a", a, dtype), positive("beta", "b", b, dtype)
    full = full_shape("beta", shape, shape_of(a), shape_of(b))
    first, second = keys_of(check_key(key, "beta"), 2)
    x, y = _loggamma(first, a, full), _loggamma(second, b, full)
    return e.exp(e.subtract(x, e.logaddexp(x, y)))


@without_engine_frames
def dirichlet(key: Any, alpha: Any, shape: Any = None, dtype: Any = np.float64) -> Array:
    """Dirichlet samples: points of the simplex, of density ∝ ∏ x_i^(alpha_i - 1).

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


@without_engine_frames
def chisquare(key: Any, df: Any, shape: Any = None, dtype: Any = np.float64) -> Array:
    """Chi-square samples with `df` degrees of freedom."""
    dtype = float_dtype("chisquare", dtype)
    df = positive("chisquare", "df", df, dtype)
    full = full_shape("chisquare", shape, shape_of(df))
    return e.multiply(e.exp(_loggamma(check_key(key, "chisquare"), _halved(df), full)), 2.0)


@without_engine_frames
def f(key: Any, dfnum: Any, dfden: Any, shape: Any = None, dtype: Any = np.float64) -> Array:
    """Samples of the F distribution: the ratio of two chi-square samples, each divided by its degrees of freedom."""
    dtype = float_dtype("f", dtype)
    dfnum, dfden = positive("f", "dfnum", dfnum, dtype), positive("f", "dfden", dfden, dtype)
    full = full_shape("f", shape, shape_of(dfnum), shape_of(dfden))
    first, second = keys_of(check_key(key, "f"), 2)
    x, y = _loggamma(first, _halved(dfnum), full), _loggamma(second, _halved(dfden), full)
    return e.multiply(e.exp(e.subtract(x, y)), e.divide(dfden, dfnum))


@without_engine_frames
def t(key: Any, df: Any, shape: Any = None, dtype: Any = np.float64) -> Array:
    """Samples of Student's t distribution with `df` degrees of freedom: z / √(chi-square / df) for a normal z."""
    dtype = float_dtype("t", dtype)
    df = positive("t", "df", df, dtype)
    full = full_shape("t", shape, shape_of(df))
    first, second = keys_of(check_key(key, "t"), 2)
    z = ops.random_normal(first, shape=full, dtype=dtype)
    half = _halved(df)
    return e.multiply(z, e.exp(_halved(e.subtract(e.log(half), _loggamma(second, half, full)))))


@without_engine_frames
def wald(key: Any, mean: Any, shape: Any = None, dtype: Any = np.float64) -> Array:
    """Wald (inverse Gaussian) samples with a given mean and scale one; differentiable in the mean."""
    dtype = float_dtype("wald", dtype)
    mean = positive("wald", "mean", mean, dtype)
    return normal_primitives.wald(
        check_key(key, "wald"), broadcast_parameter(mean, full_shape("wald", shape, shape_of(mean)))
    )


@without_engine_frames
def maxwell(key: Any, shape: Any = (), dtype: Any = np.float64) -> Array:
    """Maxwell samples: the Euclidean norms of three standard normal samples."""
    dtype = float_dtype("maxwell", dtype)
    full = full_shape("maxwell", shape)
    z = ops.random_normal(check_key(key, "maxwell"), shape=(*full, 3), dtype=dtype)
    return e.sqrt(reduce_sum(e.multiply(z, z), axes=(len(full),)))


def signs(key: Array, shape: tuple[int, ...], dtype: Any) -> Array:
    """Samples -1 and 1 with equal probability."""
    coins = e.bitwise_and(ops.random_bits(key, shape=shape, dtype=np.dtype(np.uint32)), 1)
    return convert(e.subtract(e.multiply(convert(coins, dtype=np.dtype(np.int8)), 2), 1), dtype=np.dtype(dtype))


@without_engine_frames
def double_sided_maxwell(key: Any, loc: Any, scale: Any, shape: Any = None, dtype: Any = np.float64) -> Array:
    """loc + scale · s · m, with a random sign s and a Maxwell sample m."""
    dtype = float_dtype("double_sided_maxwell", dtype)
    loc = parameter("double_sided_maxwell", "loc", loc, dtype)
    scale = parameter("double_sided_maxwell", "scale", scale, dtype)
    require("double_sided_maxwell", lambda s: s < 0, "scale must not be negative", scale)
    full = full_shape("double_sided_maxwell", shape, shape_of(loc), shape_of(scale))
    first, second = keys_of(check_key(key, "double_sided_maxwell"), 2)
    return e.add(loc, e.multiply(scale, e.multiply(signs(first, full, dtype), maxwell(second, full, dtype))))


@without_engine_frames
def generalized_normal(key: Any, p: Any, shape: Any = None, dtype: Any = np.float64) -> Array:
    """Samples of density ∝ exp(-|x|^p)."""
    dtype = float_dtype("generalized_normal", dtype)
    p = positive("generalized_normal", "p", p, dtype)
    full = full_shape("generalized_normal", shape, shape_of(p))
    first, second = keys_of(check_key(key, "generalized_normal"), 2)
    inverse = e.divide(1.0, p)
    magnitude = e.exp(e.multiply(_loggamma(first, inverse, full), inverse))
    return e.multiply(magnitude, signs(second, full, dtype))
