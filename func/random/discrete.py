"""Discrete distributions, choices and permutations; the samples have no derivative in the parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from func.interpreters.core import Array, Tracer, dtype_of, operand, shape_of
from func.interpreters.host.public_functions import without_engine_frames
from func.interpreters.host.source import at_line
from func.interpreters.primitives.elementwise import table as e
from func.interpreters.primitives.random import bits as ops
from func.interpreters.primitives.random.variates import random_binomial, random_poisson
from func.interpreters.primitives.structural.cumulative import cumsum
from func.interpreters.primitives.structural.reductions import argmax, argsort
from func.interpreters.primitives.structural.shapes import convert, move_axis
from func.interpreters.primitives.structural.slicing import getitem
from func.interpreters.primitives.structural.sorting import search
from func.numpy.argument_checks import count, normalize_axis
from func.numpy.joining import stack
from func.numpy.selection import take, take_along_axis
from func.numpy.shaping import reshape
from func.random import keys
from func.random.continuous import gumbel, signs

_DOUBLE = np.dtype(np.float64)
_WORD = np.dtype(np.uint64)


def _probability(function: str, p: Any, dtype: Any = _DOUBLE) -> Array:
    p = keys.parameter(function, "p", p, dtype)
    keys.require(function, lambda v: (v < 0) | (v > 1), "p must lie between 0 and 1", p)
    return p


def _bound(name: str, value: Any, dtype: np.dtype[Any], shift: int) -> Array:
    """An integer bound plus `shift`, checked against the dtype of the samples."""
    if type(value) is not Tracer and isinstance(value, (bool, np.bool_)):
        value = int(value)
    if type(value) is not Tracer and isinstance(value, (int, np.integer)):
        number, limits = int(value) + shift, np.iinfo(dtype)
        if not limits.min <= number <= limits.max and not (shift and number == limits.min - 1):
            raise ValueError(f"func.random.randint: {name}={value} is out of bounds for {dtype}{at_line()}")
        return np.asarray(number, np.uint64 if number > np.iinfo(np.int64).max else np.int64)
    value = operand(value)
    if dtype_of(value).kind not in "iub":
        raise TypeError(f"func.random.randint: {name} must be integers, not {dtype_of(value)}{at_line()}")
    value = value if dtype_of(value) == _WORD else convert(value, dtype=np.dtype(np.int64))
    return e.add(value, shift) if shift else value


@without_engine_frames
def randint(key: Any, shape: Any, minval: Any, maxval: Any, dtype: Any = np.int64) -> Array:
    """Integers from minval to maxval - 1, exactly uniform.

    Args:
        key: A key, (2,) of uint32.
        shape: The full shape; None for that of the bounds.
        minval, maxval: Integer bounds that broadcast to the shape.
        dtype: An integer dtype.

    Raises:
        ValueError: minval >= maxval in at least one place, or a bound does not fit the dtype.

    Example:
        >>> import func
        >>> dice = func.random.randint(func.random.key(0), (4,), 1, 7)
        >>> dice.min() >= 1 and dice.max() <= 6
        np.True_
    """
    kind = keys.integer_dtype("randint", dtype)
    low, last = _bound("minval", minval, kind, 0), _bound("maxval", maxval, kind, -1)
    keys.require("randint", lambda a, b: a > b, "minval must be below maxval", low, last)
    full = keys.full_shape("randint", shape, shape_of(low), shape_of(last))
    low, last = keys.broadcast_parameter(low, full), keys.broadcast_parameter(last, full)
    return ops.random_integers(keys.check_key(key, "randint"), low, last, dtype=kind)


@without_engine_frames
def bernoulli(key: Any, p: Any = 0.5, shape: Any = None) -> Array:
    """Booleans that are True with probability p."""
    p = _probability("bernoulli", p)
    full = keys.full_shape("bernoulli", shape, shape_of(p))
    return e.less(ops.random_unit(keys.check_key(key, "bernoulli"), shape=full, dtype=_DOUBLE, inside=False), p)


@without_engine_frames
def rademacher(key: Any, shape: Any = (), dtype: Any = np.int64) -> Array:
    """Samples -1 and 1 with equal probability."""
    return signs(keys.check_key(key, "rademacher"), keys.sample_shape("rademacher", shape), dtype)


@without_engine_frames
def poisson(key: Any, lam: Any, shape: Any = None, dtype: Any = np.int64) -> Array:
    """Poisson samples with mean lam.

    Source: W. Hörmann (1993), The transformed rejection method for generating Poisson random variables.
    """
    kind = keys.integer_dtype("poisson", dtype)
    lam = keys.parameter("poisson", "lam", lam, _DOUBLE)
    keys.require("poisson", lambda v: v < 0, "lam must not be negative", lam)
    keys.require("poisson", lambda v: ~(v < 9.2e18), "lam is too large or NaN", lam)
    full = keys.full_shape("poisson", shape, shape_of(lam))
    return random_poisson(keys.check_key(key, "poisson"), keys.broadcast_parameter(lam, full), dtype=kind)


@without_engine_frames
def binomial(key: Any, n: Any, p: Any, shape: Any = None, dtype: Any = np.int64) -> Array:
    """Binomial samples: the number of successes in n trials of probability p.

    Source: W. Hörmann (1993), The generation of binomial random variates.
    """
    kind = np.dtype(dtype)
    n, p = keys.parameter("binomial", "n", n, _DOUBLE), _probability("binomial", p)
    keys.require("binomial", lambda v: v < 0, "n must not be negative", n)
    keys.require("binomial", np.isnan, "p must not be NaN", p)
    full = keys.full_shape("binomial", shape, shape_of(n), shape_of(p))
    n = e.floor(keys.broadcast_parameter(n, full))
    return random_binomial(keys.check_key(key, "binomial"), n, keys.broadcast_parameter(p, full), dtype=kind)


@without_engine_frames
def geometric(key: Any, p: Any, shape: Any = None, dtype: Any = np.int64) -> Array:
    """Geometric samples 1, 2, ...: the number of trials of probability p up to the first success."""
    kind = keys.integer_dtype("geometric", dtype)
    p = _probability("geometric", p)
    keys.require("geometric", lambda v: v <= 0, "p must be positive", p)
    full = keys.full_shape("geometric", shape, shape_of(p))
    unit = ops.random_unit(keys.check_key(key, "geometric"), shape=full, dtype=_DOUBLE, inside=True)
    is_certain = e.greater_equal(p, 1.0)
    safe = e.subtract(p, e.multiply(convert(is_certain, dtype=_DOUBLE), 0.5))
    trials = e.add(e.floor(e.divide(e.log(unit), e.log1p(e.negative(safe)))), 1.0)
    trials = e.maximum(e.multiply(trials, convert(e.logical_not(is_certain), dtype=_DOUBLE)), 1.0)
    return convert(e.minimum(trials, float(np.iinfo(kind).max) * (1 - 2.0**-52)), dtype=kind)


@without_engine_frames
def multinomial(key: Any, n: Any, p: Any, shape: Any = None, dtype: Any = np.int64) -> Array:
    """Multinomial samples: the counts of k outcomes in n trials.

    Args:
        key: A key, (2,) of uint32.
        n: Numbers of trials (…).
        p: Probabilities (…, k) with sum one over the last axis; the last one is one minus the sum of the others.
        shape: The full shape (…, k); by default that of the parameters.
        dtype: The dtype of the counts.
    """
    kind = np.dtype(dtype)
    n, p = keys.parameter("multinomial", "n", n, _DOUBLE), _probability("multinomial", p)
    if not shape_of(p):
        raise ValueError("func.random.multinomial: p must have at least one axis")
    k = shape_of(p)[-1]
    keys.require("multinomial", lambda v: v[..., :-1].sum(-1) > 1 + 1e-12, "probabilities add up to more than one", p)
    full = keys.full_shape("multinomial", shape, (*shape_of(n), k), shape_of(p))
    batch = full[:-1]
    trials_left, probability_left = keys.broadcast_parameter(e.floor(n), batch), None
    counts = []
    for i, outcome_key in enumerate(keys.keys_of(keys.check_key(key, "multinomial"), max(k - 1, 0))):
        outcome_p = getitem(p, index=(*[(0, m, 1) for m in shape_of(p)[:-1]], i))
        if probability_left is None:
            conditional_p, probability_left = outcome_p, e.subtract(1.0, outcome_p)
        else:
            conditional_p = e.divide(outcome_p, e.maximum(probability_left, 1e-300))
            probability_left = e.subtract(probability_left, outcome_p)
        conditional_p, probability_left = e.minimum(conditional_p, 1.0), e.maximum(probability_left, 0.0)
        counts.append(
            random_binomial(outcome_key, trials_left, keys.broadcast_parameter(conditional_p, batch), dtype=_DOUBLE)
        )
        trials_left = e.subtract(trials_left, counts[-1])
    return convert(stack([*counts, trials_left], axis=-1), dtype=kind)


@without_engine_frames
def categorical(key: Any, logits: Any, axis: int = -1, shape: Any = None) -> Array:
    """Indices of categories along an axis, drawn with probabilities softmax(logits).

    Args:
        key: A key, (2,) of uint32.
        logits: Unnormalised log-probabilities; -inf for a category without samples.
        axis: The axis of the categories.
        shape: The full shape of the result; it ends in the shape of logits without `axis`, which is the default.
    """
    logits = operand(logits)
    if dtype_of(logits).kind not in "f":
        logits = keys.parameter("categorical", "logits", logits, _DOUBLE)
    rank = len(shape_of(logits))
    logits = move_axis(logits, normalize_axis(axis, rank), rank - 1)
    full = keys.full_shape("categorical", shape, shape_of(logits)[:-1])
    noise = gumbel(
        keys.check_key(key, "categorical"), (*full, shape_of(logits)[-1]), keys.float_dtype("categorical", logits.dtype)
    )
    return argmax(e.add(noise, logits), axis=len(full))


def _order(key: Array, shape: tuple[int, ...], axis: int) -> Array:
    """Random permutations along an axis: the orders of independent 64-bit words."""
    return argsort(ops.random_bits(key, shape=shape, dtype=_WORD), axis=axis, kind="stable")


@without_engine_frames
def permutation(key: Any, x: Any, axis: int = 0, independent: bool = False) -> Array:
    """The elements of x along an axis in random order, or 0, ..., x - 1 for an integer.

    Args:
        key: A key, (2,) of uint32.
        x: An array, in which the result is differentiable, or an int.
        axis: The axis to permute.
        independent: Permute every vector along the axis independently, instead of all in the same way.
    """
    key = keys.check_key(key, "permutation")
    x = operand(x)
    if shape_of(x) == ():
        if dtype_of(x).kind not in "iu":
            raise TypeError("func.random.permutation takes an array or an integer")
        return _order(key, (int(x),), 0)
    axis = normalize_axis(axis, len(shape_of(x)))
    if independent:
        return take_along_axis(x, _order(key, shape_of(x), axis), axis)
    return take(x, _order(key, (shape_of(x)[axis],), 0), axis)


@without_engine_frames
def choice(key: Any, a: Any, shape: Any = (), replace: bool = True, p: Any = None, axis: int = 0) -> Array:
    """Elements of an array along an axis, or of 0, ..., a - 1 for an integer, drawn at random.

    Args:
        key: A key, (2,) of uint32.
        a: An array, in which the result is differentiable, or an int.
        shape: The shape of the sample; it replaces `axis` in the result.
        replace: Whether an element can be drawn more than once.
        p: Probabilities (n,); by default uniform.
        axis: The axis of the elements.

    Source: P. Efraimidis, P. Spirakis (2006), Weighted random sampling with a reservoir (without replacement).
    """
    key = keys.check_key(key, "choice")
    a = operand(a)
    is_integer = shape_of(a) == ()
    if is_integer and dtype_of(a).kind not in "iu":
        raise TypeError("func.random.choice takes an array or an integer")
    axis = 0 if is_integer else normalize_axis(axis, len(shape_of(a)))
    total = int(a) if is_integer else shape_of(a)[axis]
    sample = keys.sample_shape("choice", shape)
    size = count(sample)
    if total <= 0 and size:
        raise ValueError("func.random.choice: a must not be empty unless nothing is drawn")
    if not replace and size > total:
        raise ValueError(f"func.random.choice: cannot draw {size} of {total} elements without replacement")
    if p is None:
        places = (
            randint(key, sample, 0, total) if replace and size else reshape(_order(key, (total,), 0)[:size], sample)
        )
    else:
        p = _probability("choice", p)
        if shape_of(p) != (total,):
            raise ValueError(f"func.random.choice: p must have shape ({total},), one number per element of a")
        keys.require("choice", lambda v: abs(v.sum(-1) - 1) > 1e-6, "probabilities do not add up to one", p)
        if not replace:
            keys.require("choice", lambda v: (v > 0).sum(-1) < size, "fewer elements have p > 0 than are drawn", p)
        places = _weighted(key, p, sample, replace)
    return places if is_integer else take(a, places, axis)


def _weighted(key: Array, p: Array, shape: tuple[int, ...], replace: bool) -> Array:
    """Indices drawn with probabilities p: by inversion of the cumulative sums, or by sorting exponential samples."""
    if replace:
        sums = cumsum(p, axis=0, reverse=False)
        last = shape_of(p)[0] - 1
        unit = ops.random_unit(key, shape=shape, dtype=_DOUBLE, inside=False)
        places = search(sums, e.multiply(unit, getitem(sums, index=(last,))), side="right", batch_rank=0)
        return e.minimum(places, last)
    unit = ops.random_unit(key, shape=shape_of(p), dtype=_DOUBLE, inside=True)
    is_never = e.less_equal(p, 0.0)
    waiting = e.divide(e.negative(e.log(unit)), e.add(p, convert(is_never, dtype=_DOUBLE)))
    waiting = e.add(waiting, e.multiply(convert(is_never, dtype=_DOUBLE), 1e300))
    return reshape(argsort(waiting, axis=0, kind="stable")[: count(shape)], shape)
