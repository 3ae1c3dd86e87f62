"""Norms and condition numbers. The derivative of a norm at zero is zero."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from func.backends.quiet import quietly
from func.interpreters.core import Array, dtype_of, operand, shape_of
from func.interpreters.primitives.elementwise import table as ops
from func.interpreters.primitives.elementwise.conventions import revalued
from func.interpreters.primitives.linalg import singular, solving
from func.interpreters.primitives.structural import shapes
from func.interpreters.primitives.structural.contraction import contract, spec
from func.numpy.argument_checks import normalize_axis, rank_of, scalar_of
from func.numpy.facts import root
from func.numpy.linalg.checks import LinAlgError, matrices
from func.numpy.protocol import implements
from func.numpy.reductions import any, max, min, sum
from func.numpy.shaping import expand_dims, moveaxis, ravel, reshape
from func.numpy.ufuncs import absolute


def _squared(x: Array) -> Array:
    """|x|², rounded as in NumPy."""
    if dtype_of(x).kind != "c":
        return ops.multiply(x, x)
    return ops.real(ops.multiply(ops.conjugate(x), x))


def _euclidean(x: Array) -> Array:
    """The square root of the sum of all squares, by inner products."""
    flat = ravel(x)
    dot = spec((0,), (0,), ())
    if dtype_of(x).kind != "c":
        return root(contract(flat, flat, spec=dot))
    real, imag = ops.real(flat), ops.imag(flat)
    return root(ops.add(contract(real, real, spec=dot), contract(imag, imag, spec=dot)))


def _vector_norm(x: Array, ord: Any, axis: int, keepdims: bool) -> Array:
    if isinstance(ord, str):
        raise ValueError(f"Invalid norm order '{ord}' for vectors")
    if ord is None or ord == 2:
        return root(sum(_squared(x), axis, keepdims=keepdims))
    size = absolute(x)
    if ord == np.inf:
        return max(size, axis, keepdims=keepdims, initial=0)
    if ord == -np.inf:
        return min(size, axis, keepdims=keepdims)
    if ord == 0:
        counted = shapes.convert(ops.not_equal(x, 0), dtype=dtype_of(size))
        return sum(counted, axis, keepdims=keepdims)
    if ord == 1:
        return sum(size, axis, keepdims=keepdims)
    if ord > 2 and ord % 2 == 0 and dtype_of(x).kind in "fc":  # without |x|, which has fewer derivatives at zero
        powers = ops.power(x, ord) if dtype_of(x).kind == "f" else ops.power(_squared(x), ord / 2)
    else:
        powers = ops.modulus_power(x if dtype_of(x).kind == "f" else size, ord)
        powers = revalued(ops.reciprocal(size), powers) if ord == -1 else powers  # rounded as in NumPy
    total = sum(powers, axis, keepdims=keepdims)
    exponent = dtype_of(total).type(1) / dtype_of(total).type(ord)
    return scalar_of(ops.reciprocal(total) if exponent == -1 else ops.root_power(total, exponent))


def _matrix_norm(x: Array, ord: Any, axes: tuple[int, int], keepdims: bool) -> Array:
    if ord is None or ord in ("fro", "f"):
        return root(sum(_squared(x), axes, keepdims=keepdims))
    if ord in (2, -2, "nuc"):
        s = singular.svdvals(matrices(moveaxis(x, axes, (-2, -1)), square=False))
        result = max(s, -1, initial=0) if ord == 2 else min(s, -1) if ord == -2 else sum(s, -1)
    elif ord in (1, -1, np.inf, -np.inf):
        first, second = axes if abs(ord) == 1 else axes[::-1]
        sums = sum(absolute(x), first)
        second -= second > first
        result = max(sums, second, initial=0) if ord > 0 else min(sums, second)
    else:
        raise ValueError("Invalid norm order for matrices.")
    return expand_dims(result, axes) if keepdims else result


@implements(np.linalg.norm)
def norm(x: Array, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Array:
    """A vector or matrix norm, as numpy.linalg.norm; its derivative at zero is zero."""
    x = operand(x)
    rank = rank_of(x)
    if dtype_of(x).kind not in "fc":
        x = shapes.convert(x, dtype=np.dtype(np.float64))
    if axis is None:
        if ord is None or (rank == 2 and ord in ("f", "fro")) or (rank == 1 and ord == 2):
            result = _euclidean(x)
            return reshape(result, (1,) * rank) if keepdims else result
        axis = tuple(range(rank))
    elif not isinstance(axis, tuple):
        try:
            axis = (int(axis),)
        except Exception as error:
            raise TypeError("'axis' must be None, an integer or a tuple of integers") from error
    places = [normalize_axis(k, rank) for k in axis]
    if len(places) == 1:
        return _vector_norm(x, ord, places[0], keepdims)
    if len(places) != 2:
        raise ValueError("Improper number of dimensions to norm.")
    if places[0] == places[1]:
        raise ValueError("Duplicate axes given.")
    return _matrix_norm(x, ord, (places[0], places[1]), keepdims)


@implements(np.linalg.vector_norm)
def vector_norm(x: Array, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Array:
    """The norm of vectors along axes (all by default), as numpy.linalg.vector_norm; its derivative at zero is zero."""
    x = operand(x)
    shape = shape_of(x)
    if axis is None:
        flat, places = ravel(x), list(range(len(shape)))
    elif isinstance(axis, tuple):
        places = [normalize_axis(k, len(shape)) for k in axis]
        if len(set(places)) != len(places):
            raise ValueError("repeated axis")
        rest = [n for i, n in enumerate(shape) if i not in places]
        in_front = moveaxis(x, places, list(range(len(places))))
        flat = reshape(in_front, (math.prod([shape[i] for i in places]), *rest))
    else:
        places = [normalize_axis(axis, len(shape))]
        flat = x
    result = norm(flat, ord, places[0] if flat is x else 0)
    return reshape(result, tuple([1 if i in places else n for i, n in enumerate(shape)])) if keepdims else result


@implements(np.linalg.matrix_norm)
def matrix_norm(x: Array, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """The norm of matrices in the last two axes, as numpy.linalg.matrix_norm; its derivative at zero is zero."""
    return norm(x, ord, (-2, -1), keepdims)


@implements(np.linalg.cond)
def cond(x: Array, p: Any = None) -> Array:
    """The condition number in a norm, as numpy.linalg.cond; infinite for singular matrices."""
    x = operand(x)
    if math.prod(shape_of(x)) == 0 and 0 in shape_of(x)[-2:]:
        raise LinAlgError("cond is not defined on empty arrays")
    x = matrices(x, square=not (p is None or p in (2, -2)))
    if p is None or p in (2, -2):
        s = singular.svdvals(x)
        first, last = s[..., 0], s[..., -1]
        ratio = quietly(ops.divide, last, first) if p == -2 else quietly(ops.divide, first, last)
    else:
        inverse = quietly(functools.partial(solving.inv, strict=False), x)
        ratio = quietly(ops.multiply, norm(x, p, (-2, -1)), quietly(norm, inverse, p, (-2, -1)))
    failed = ops.logical_and(ops.isnan(ratio), ops.logical_not(any(ops.isnan(x), (-2, -1))))
    return scalar_of(shapes.where(failed, shapes.full_like(ratio, np.inf, ()), ratio))
