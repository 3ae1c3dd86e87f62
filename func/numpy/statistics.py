"""Means, variances, standard deviations, covariances and correlations."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from func.interpreters.core import REAL_DTYPES, Array, Tracer, dtype_of, known_value, operand, shape_of
from func.interpreters.primitives.elementwise import table as ops
from func.interpreters.primitives.elementwise.conventions import revalued
from func.interpreters.primitives.structural import shapes
from func.interpreters.primitives.structural.reductions import counts_exactly, reduce_mean, reduce_var
from func.numpy.argument_checks import NO_VALUE, arrayed, count, normalize_axes, normalize_axis, rank_of, to_dtype
from func.numpy.facts import power_by, remembering
from func.numpy.protocol import F, implements, member
from func.numpy.reductions import finish, is_given, loop_dtype, mask_for, total_of
from func.numpy.shaping import squeeze
from func.numpy.ufuncs import conjugated

_INTP = np.dtype(np.intp)


def divided(total: Array, number: Any) -> Array:
    """total / number in the dtype of the total, rounded as in NumPy."""
    dtype = dtype_of(total)
    if counts_exactly(dtype, number):
        return ops.divide(total, number)
    divisor = number if hasattr(number, "dtype") else np.intp(number) if type(number) is int else np.float64(number)
    return to_dtype(ops.divide(total, divisor), dtype)


def total_into(out: Any, a: Array, axes: tuple[int, ...], dtype: Any, where: Any) -> Array:
    """The sum before NumPy's division: with `out` that array, possibly of another dtype."""
    total = total_of(a, axes, loop_dtype(np.add, a, dtype, out), NO_VALUE, where)
    return total if out is None else to_dtype(total, dtype_of(out))


def number_of(a: Array, axes: tuple[int, ...], where: Any) -> Any:
    """The number of reduced elements: an int, or an array if `where` selects them."""
    mask = mask_for(a, where)
    if mask is None:
        return count([shape_of(a)[axis] for axis in axes])
    return shapes.reduce_sum(mask, axes=axes, dtype=_INTP)


def warn_where(condition: Any, message: str) -> None:
    """Warn, as NumPy, if a condition is known to be true anywhere."""
    known = known_value(condition)
    if known is not None and np.any(known):
        warnings.warn(message, RuntimeWarning, stacklevel=4)


def _mean_dtype(a: Array, dtype: Any) -> np.dtype[Any] | None:
    """The dtype in which the mean accumulates: float64 for integers, float32 for float16."""
    if dtype is not None:
        requested: np.dtype[Any] = np.dtype(dtype)
        return requested
    present = dtype_of(a)
    if present.kind in "iub":
        return np.dtype(np.float64)
    return np.dtype(np.float32) if present.type is np.float16 else None


@implements(np.mean)
def mean(
    a: Array,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = NO_VALUE,
    *,
    where: Any = NO_VALUE,
) -> Array:
    """The arithmetic mean over axes, as numpy.mean."""
    a = operand(a)
    shape = shape_of(a)
    axes = mean_axes(axis, len(shape))
    if dtype is None and out is None and where is NO_VALUE and dtype_of(a) in REAL_DTYPES and 0 not in shape:
        return finish(reduce_mean(a, axes=axes, dtype=None), shape, axes, keepdims, None)
    number = number_of(a, axes, where)
    accumulate = _mean_dtype(a, dtype)
    if out is None and type(number) is int and number and (accumulate or dtype_of(a)).kind in "fc":
        result = reduce_mean(a, axes=axes, dtype=accumulate)
    else:
        if type(number) is not int or number == 0:
            warn_where(ops.equal(number, 0), "Mean of empty slice.")
        result = divided(total_into(out, a, axes, accumulate, where), number)
    if dtype is None and dtype_of(a) == np.float16 and out is None:
        result = to_dtype(result, np.float16)
    return finish(result, shape, axes, keepdims, out)


def mean_axes(axis: Any, rank: int) -> tuple[int, ...]:
    """The axes of a mean; unlike for a sum, a scalar has none."""
    if isinstance(axis, list):
        raise TypeError("'list' object cannot be interpreted as an integer")
    return normalize_axes(axis, rank)


def _deviations(a: Array, axes: tuple[int, ...], dtype: Any, where: Any, number: Any, center: Any) -> Array:
    """Squared distances from the mean."""
    shape = shape_of(a)
    if not is_given(center):
        total = divided(total_of(a, axes, dtype, NO_VALUE, where), number)
        center = shapes.reshape(total, shape=shapes.ones_at(shape, axes))
    gap = ops.subtract(arrayed(a), operand(center))
    if dtype_of(gap).kind == "c":
        return ops.add(ops.square(ops.real(gap)), ops.square(ops.imag(gap)))
    return ops.square(gap)


def variance(a: Array, axes: tuple[int, ...], dtype: Any, ddof: Any, where: Any, center: Any, out: Any = None) -> Array:
    """The variance over normalised axes, in the dtype of `out` if there is one."""
    if dtype is None and dtype_of(a).kind in "iub":
        dtype = np.dtype(np.float64)
    dtype = None if dtype is None else np.dtype(dtype)
    number = number_of(a, axes, where)
    is_simple = dtype is None and out is None and center is NO_VALUE and dtype_of(a).kind in "fc"
    if is_simple and type(number) is int and number > ddof:
        return reduce_var(a, axes=axes, ddof=ddof)
    if type(number) is not int or number <= ddof:
        warn_where(ops.less_equal(number, ddof), "Degrees of freedom <= 0 for slice")
    squares = _deviations(a, axes, dtype, where, number, center)
    total = total_into(out, squares, axes, dtype, where)
    if type(number) is int:
        return divided(total, max(number - ddof, 0))
    return divided(total, ops.maximum(ops.subtract(number, ddof), 0))


def freedom(ddof: Any, correction: Any) -> Any:
    """ddof, passed under either of its names."""
    if correction is NO_VALUE:
        return ddof
    if ddof != 0:
        raise ValueError("ddof and correction can't be provided simultaneously.")
    return correction


def _spread(original: F, is_root: bool, doc: str) -> F:
    @member(original, doc)
    def spread(
        a: Array,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        ddof: float = 0,
        keepdims: Any = NO_VALUE,
        *,
        where: Any = NO_VALUE,
        mean: Any = NO_VALUE,
        correction: Any = NO_VALUE,
    ) -> Array:
        a = operand(a)
        axes = mean_axes(axis, rank_of(a))
        squared = variance(a, axes, dtype, freedom(ddof, correction), where, mean, out)
        is_own_mean = where is NO_VALUE and mean is NO_VALUE and dtype in (None, dtype_of(a))
        is_constant = is_own_mean and number_of(a, axes, where) == 1
        root = squared if is_constant or not is_root else root_of(squared)  # of one element: 0, smooth, or NaN
        return finish(root, shape_of(a), axes, keepdims, out)

    return spread


var = _spread(np.var, False, "The variance over axes, with count - ddof in the denominator, as numpy.var.")
std = _spread(
    np.std,
    True,
    "The standard deviation over axes, as numpy.std; its derivative is zero where all elements are equal.",
)


def root_of(squared: Array) -> Array:
    """The square root in the dtype of the variance: NumPy takes it in place."""
    root, dtype = ops.root(squared), dtype_of(squared)
    if dtype_of(root) == dtype:
        return remembering(root, power_by(lambda: squared))
    if shape_of(root):
        raise TypeError(f"Cannot cast the square root from {dtype_of(root)!r} to {dtype!r} by the rule 'same_kind'")
    return to_dtype(root, dtype)


def fit_weights(weights: Any, a: Array, axis: Any) -> Array:
    """Weights reshaped to broadcast with the array, after NumPy's checks."""
    weights = operand(weights)
    shape = shape_of(a)
    if shape_of(weights) == shape:
        return weights
    if axis is None:
        raise TypeError("Axis must be specified when shapes of a and weights differ.")
    axes = [normalize_axis(i, len(shape)) for i in (axis if isinstance(axis, tuple) else (axis,))]
    if shape_of(weights) != tuple([shape[i] for i in axes]):
        raise ValueError("Shape of weights must be consistent with shape of a along specified axis.")
    if len(axes) > 1:
        weights = shapes.permute(weights, order=tuple(np.argsort(axes).tolist()))
    return shapes.reshape(weights, shape=tuple([n if i in axes else 1 for i, n in enumerate(shape)]))


@implements(np.average)
def average(
    a: Array, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = NO_VALUE
) -> Any:
    """The weighted mean over axes, as numpy.average; differentiable in the array and the weights."""
    a = operand(a)
    shape = shape_of(a)
    axes = mean_axes(axis, len(shape))
    if weights is None:
        result = mean(a, axis, keepdims=keepdims)
        if count(shape_of(result)) == 0:
            raise ZeroDivisionError("division by zero")
        scale = shapes.full_like(result, count(shape) / count(shape_of(result)))[()]
    else:
        weights = fit_weights(weights, a, axis)
        kinds = [dtype_of(a), dtype_of(weights)] + ([np.dtype(np.float64)] if dtype_of(a).kind in "iub" else [])
        dtype = np.result_type(*kinds)
        scale = finish(total_of(weights, axes, dtype), shape_of(weights), axes, keepdims, None)
        known = known_value(scale)
        if known is not None and np.any(known == 0):
            raise ZeroDivisionError("Weights sum to zero, can't be normalized")
        product = ops.multiply(to_dtype(a, dtype), to_dtype(weights, dtype))
        result = ops.divide(finish(total_of(product, axes), shape, axes, keepdims, None), scale)
    if not returned:
        return result
    return result, scale if shape_of(scale) == shape_of(result) else shapes.broadcast(scale, shape=shape_of(result))


def _variables(m: Any, dtype: Any, rowvar: bool, name: str) -> Array:
    """Variables as rows."""
    if rank_of(m) > 2:
        raise ValueError(f"{name} has more than 2 dimensions")
    x = to_dtype(arrayed(m), dtype)
    if rank_of(x) < 2:
        x = shapes.reshape(x, shape=(1, count(shape_of(x))))
    in_columns = not rowvar and (rank_of(m) != 1 if name == "m" else shape_of(x)[0] != 1)
    return shapes.permute(x, order=(1, 0)) if in_columns else x


def _frequency(weights: Any, name: str, observations: int) -> Array | None:
    if weights is None:
        return None
    weights = to_dtype(operand(weights), float)
    known = known_value(weights)
    if name == "fweights" and known is not None and not np.all(known == np.around(known)):
        raise TypeError("fweights must be integer")
    if rank_of(weights) > 1:
        raise RuntimeError(f"cannot handle multidimensional {name}")
    if shape_of(weights)[0] != observations:
        raise RuntimeError(f"incompatible numbers of samples and {name}")
    if known is not None and np.any(known < 0):
        raise ValueError(f"{name} cannot be negative")
    return weights


@implements(np.cov)
def cov(
    m: Array,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Array:
    """The covariance matrix of variables in rows (rowvar) or columns, as numpy.cov."""
    from func.numpy.joining import concatenate  # start-up time
    from func.numpy.products import dot

    if ddof is not None and ddof != int(ddof):
        raise ValueError("ddof must be integer")
    m = operand(m)
    samples = [m] if y is None else [m, operand(y)]
    dtype = np.result_type(*[dtype_of(v) for v in samples], np.float64) if dtype is None else np.dtype(dtype)
    x = _variables(m, dtype, rowvar, "m")
    if shape_of(x)[0] == 0:
        return np.array([]).reshape(0, 0)
    if y is not None:
        x = concatenate([x, _variables(samples[1], dtype, rowvar, "y")], 0)
    ddof = (0 if bias else 1) if ddof is None else ddof
    f = _frequency(fweights, "fweights", shape_of(x)[1])
    w = _frequency(aweights, "aweights", shape_of(x)[1])
    both = w if f is None else f if w is None else ops.multiply(f, w)
    center, total = average(x, axis=1, weights=both, returned=True)
    x = ops.subtract(x, shapes.reshape(center, shape=(shape_of(x)[0], 1)))
    weighted = x if both is None else ops.multiply(x, both)
    transposed = shapes.permute(weighted, order=(1, 0))
    c = dot(x, conjugated(transposed))
    scaled = ops.multiply(c, ops.divide(1, _normalization(shape_of(x)[1], total, ddof, both, w)))
    return squeeze(to_dtype(scaled, dtype_of(c)))


def _normalization(observations: int, total: Array, ddof: Any, both: Any, aweights: Any) -> Any:
    """The divisor of the sum of products, positive or zero."""
    if both is None:
        fact: Any = observations - ddof
    else:
        fact = total[0] if shape_of(total) else total
        if ddof and aweights is None:
            fact = ops.subtract(fact, ddof)
        elif ddof:
            squared = shapes.reduce_sum(ops.multiply(both, aweights), axes=(0,))
            fact = ops.subtract(fact, ops.divide(ops.multiply(ddof, squared), fact))
    known = known_value(fact)
    if known is not None and np.any(known <= 0):
        warn_where(np.True_, "Degrees of freedom <= 0 for slice")
        return np.float64(0.0) if type(fact) is not Tracer else ops.maximum(fact, 0.0)
    return fact


@implements(np.corrcoef)
def corrcoef(x: Array, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Array:
    """The correlation coefficients of variables in rows (rowvar) or columns, as numpy.corrcoef."""
    from func.numpy.grids import diag  # start-up time

    c = cov(x, y, rowvar, dtype=dtype)
    if rank_of(c) == 0:
        return ops.divide(c, c)
    spread = ops.sqrt(ops.real(diag(c)))
    n = shape_of(spread)[0]
    c = ops.divide(c, shapes.reshape(spread, shape=(n, 1)))
    c = ops.divide(c, shapes.reshape(spread, shape=(1, n)))
    if dtype_of(c).kind == "c":
        return ops.make_complex(_unit(ops.real(c)), _unit(ops.imag(c)))
    return _unit(c)


def _unit(c: Array) -> Array:
    """Values clipped to [-1, 1], for rounding errors alone: the derivatives are those of c."""
    return revalued(ops.minimum(ops.maximum(c, -1.0), 1.0), c)
