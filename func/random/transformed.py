"""Draws that are one function of a uniform or normal number, and differentiate in their parameters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from func.interpreters.core import Array, operand, shape_of
from func.interpreters.primitives.elementwise import table as e
from func.interpreters.primitives.random import bits as ops
from func.interpreters.primitives.random.normal import ndtr, ndtri
from func.interpreters.primitives.structural.shapes import where
from func.numpy.arguments import to_dtype
from func.random.keys import check_key, float_dtype, full_shape, parameter, require


def _unit(key: Any, function: str, shape: tuple[int, ...], dtype: Any) -> Array:
    """Numbers in (0, 1), neither end included."""
    return ops.random_unit(check_key(key, function), shape=shape, dtype=dtype, inside=True)


def _is(value: Any, number: float) -> bool:
    return type(value) in (int, float) and value == number


def _scaled(function: str, sample: Any, shape: Any, dtype: Any, loc: Any, scale: Any) -> Array:
    """loc + scale · sample(shape, dtype): the location-scale family of a standard draw."""
    dtype = float_dtype(function, dtype)
    full = full_shape(function, shape, shape_of(operand(loc)), shape_of(operand(scale)))
    out = to_dtype(sample(full, dtype), dtype)  # bfloat16 times a Python number is single
    if not _is(scale, 1.0):
        scale = parameter(function, "scale", scale, dtype)
        require(function, lambda s: s < 0, "scale must not be negative", scale)
        out = e.multiply(out, scale)
    return out if _is(loc, 0.0) else e.add(parameter(function, "loc", loc, dtype), out)


def uniform(key: Any, shape: Any = None, dtype: Any = np.float64, minval: Any = 0.0, maxval: Any = 1.0) -> Array:
    """Uniform numbers in [minval, maxval), with the resolution of the dtype.

    Args:
        key: A key, (2,) of uint32.
        shape: The full shape; by default that of the bounds.
        dtype: float64, float32 or float16.
        minval, maxval: Bounds that broadcast to the shape; the sample differentiates in them.

    Raises:
        ValueError: minval >= maxval somewhere.

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


def normal(key: Any, shape: Any = None, dtype: Any = np.float64, *, loc: Any = 0.0, scale: Any = 1.0) -> Array:
    """Normal numbers loc + scale · z, with z from the standard normal distribution.

    z is the inverse distribution function of a uniform number, so it is a smooth function of that number.

    Example:
        >>> import numpy as np, func
        >>> key = func.random.key(0)
        >>> z = func.random.normal(key, (3,))
        >>> np.allclose(func.jacobian(lambda s: func.random.normal(key, (3,), scale=s))(2.0), z)
        True
    """
    key = check_key(key, "normal")
    return _scaled("normal", lambda s, d: ops.random_normal(key, shape=s, dtype=d), shape, dtype, loc, scale)


def exponential(key: Any, shape: Any = None, dtype: Any = np.float64, *, scale: Any = 1.0) -> Array:
    """Exponential numbers of density exp(-x / scale) / scale."""

    def sample(full: tuple[int, ...], kind: Any) -> Array:
        return e.negative(e.log1p(e.negative(_unit(key, "exponential", full, kind))))

    return _scaled("exponential", sample, shape, dtype, 0.0, scale)


def laplace(key: Any, shape: Any = None, dtype: Any = np.float64, *, loc: Any = 0.0, scale: Any = 1.0) -> Array:
    """Laplace numbers of density exp(-|x - loc| / scale) / (2 scale)."""

    def sample(full: tuple[int, ...], kind: Any) -> Array:
        u = _unit(key, "laplace", full, kind)
        low = e.less(u, 0.5)
        tail = e.log(e.multiply(2.0, where(low, u, e.subtract(1.0, u))))
        return where(low, tail, e.negative(tail))

    return _scaled("laplace", sample, shape, dtype, loc, scale)


def logistic(key: Any, shape: Any = None, dtype: Any = np.float64, *, loc: Any = 0.0, scale: Any = 1.0) -> Array:
    """Logistic numbers, of distribution function 1 / (1 + exp(-(x - loc) / scale))."""

    def sample(full: tuple[int, ...], kind: Any) -> Array:
        u = _unit(key, "logistic", full, kind)
        return e.subtract(e.log(u), e.log1p(e.negative(u)))

    return _scaled("logistic", sample, shape, dtype, loc, scale)


def gumbel(key: Any, shape: Any = None, dtype: Any = np.float64, *, loc: Any = 0.0, scale: Any = 1.0) -> Array:
    """Gumbel numbers (of maxima), of distribution function exp(-exp(-(x - loc) / scale))."""

    def sample(full: tuple[int, ...], kind: Any) -> Array:
        return e.negative(e.log(e.negative(e.log(_unit(key, "gumbel", full, kind)))))

    return _scaled("gumbel", sample, shape, dtype, loc, scale)


def cauchy(key: Any, shape: Any = None, dtype: Any = np.float64, *, loc: Any = 0.0, scale: Any = 1.0) -> Array:
    """Cauchy numbers of density 1 / (π scale (1 + ((x - loc) / scale)²))."""

    def sample(full: tuple[int, ...], kind: Any) -> Array:
        return e.tan(e.multiply(math.pi, e.subtract(_unit(key, "cauchy", full, kind), 0.5)))

    return _scaled("cauchy", sample, shape, dtype, loc, scale)


def lognormal(key: Any, sigma: Any = 1.0, shape: Any = None, dtype: Any = np.float64) -> Array:
    """exp(sigma · z) for z from the standard normal distribution."""
    key = check_key(key, "lognormal")
    draw = _scaled("lognormal", lambda s, d: ops.random_normal(key, shape=s, dtype=d), shape, dtype, 0.0, sigma)
    return e.exp(draw)


def rayleigh(key: Any, scale: Any = 1.0, shape: Any = None, dtype: Any = np.float64) -> Array:
    """Rayleigh numbers of density x exp(-x² / (2 scale²)) / scale²."""

    def sample(full: tuple[int, ...], kind: Any) -> Array:
        return e.sqrt(e.multiply(-2.0, e.log(_unit(key, "rayleigh", full, kind))))

    return _scaled("rayleigh", sample, shape, dtype, 0.0, scale)


def weibull_min(
    key: Any, scale: Any = 1.0, concentration: Any = 1.0, shape: Any = None, dtype: Any = np.float64
) -> Array:
    """Weibull numbers scale · E^(1 / concentration), for E from the exponential distribution."""
    dtype = float_dtype("weibull_min", dtype)
    full = full_shape("weibull_min", shape, shape_of(operand(scale)), shape_of(operand(concentration)))
    c = parameter("weibull_min", "concentration", concentration, dtype)
    require("weibull_min", lambda v: v <= 0, "concentration must be positive", c)

    def sample(_: tuple[int, ...], kind: Any) -> Array:
        return e.power(e.negative(e.log(_unit(key, "weibull_min", full, kind))), e.divide(1.0, c))

    return _scaled("weibull_min", sample, full, dtype, 0.0, scale)


def pareto(key: Any, b: Any, shape: Any = None, dtype: Any = np.float64) -> Array:
    """Pareto numbers from 1 on, of density b x^(-b - 1)."""
    dtype = float_dtype("pareto", dtype)
    b = parameter("pareto", "b", b, dtype)
    require("pareto", lambda v: v <= 0, "b must be positive", b)
    full = full_shape("pareto", shape, shape_of(b))
    return e.exp(e.divide(e.negative(e.log(_unit(key, "pareto", full, dtype))), b))


def triangular(key: Any, left: Any, mode: Any, right: Any, shape: Any = None, dtype: Any = np.float64) -> Array:
    """Numbers of the triangular density that is zero at left and right and highest at mode.

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
    up = e.add(a, e.sqrt(e.multiply(u, e.multiply(width, rise))))
    down = e.subtract(b, e.sqrt(e.multiply(e.subtract(1.0, u), e.multiply(width, fall))))
    return where(low, up, down)


def truncated_normal(key: Any, lower: Any, upper: Any, shape: Any = None, dtype: Any = np.float64) -> Array:
    """Standard normal numbers between two bounds, which may be infinite; the sample differentiates in both.

    The bounds are reflected into the lower tail, where the distribution function keeps its relative accuracy.

    Raises:
        ValueError: lower >= upper somewhere.

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
    flipped = e.greater(low, e.negative(high))
    start = ndtr(where(flipped, e.negative(high), low))
    stop = ndtr(where(flipped, e.negative(low), high))
    out = ndtri(e.add(start, e.multiply(u, e.subtract(stop, start))))
    out = where(flipped, e.negative(out), out)
    return e.minimum(e.maximum(out, low), high)
