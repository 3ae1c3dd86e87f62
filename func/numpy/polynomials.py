"""Polynomials as arrays of coefficients, the highest power first; a poly1d counts as its coefficients."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from func.interpreters.core import Array, Tracer, dtype_of, known_value, operand, shape_of
from func.interpreters.primitives.elementwise import table as ops
from func.interpreters.primitives.elementwise.conventions import revalued
from func.interpreters.primitives.linalg.matrices import constant_mask
from func.interpreters.primitives.structural import shapes, slicing
from func.interpreters.primitives.structural.identity import stop_gradient
from func.interpreters.primitives.structural.reductions import reduce_max
from func.numpy import linalg
from func.numpy.argument_checks import arrayed, count, rank_of, to_dtype, to_host
from func.numpy.convolution import convolve
from func.numpy.indexing import cut, entry
from func.numpy.joining import joined
from func.numpy.linalg.decompositions import real_eigvals
from func.numpy.memory import copied, in_order_of
from func.numpy.products import dot, outer
from func.numpy.protocol import implements
from func.numpy.reductions import all as all_of
from func.numpy.reductions import argmin
from func.numpy.selection import take
from func.numpy.shaping import flip
from func.numpy.sizes import zeros_at_end
from func.numpy.sorting import sort

_FLOAT = np.dtype(np.float64)


def _coefficients(p: Any) -> Array:
    """Coefficients as an array of at least one axis."""
    p = arrayed(operand(np.asarray(p.coeffs) if isinstance(p, np.poly1d) else p))
    return shapes.reshape(p, shape=(1,)) if rank_of(p) == 0 else p


def _in_front(zeros: int, p: Array) -> Array:
    """A polynomial with leading zeros."""
    return slicing.concatenate(shapes.full_like(p, 0, (zeros,)), p, axis=0) if zeros else p


_COMPANION = (
    "Zeros at the ends are dropped: write np.linalg.eigvals of the companion matrix, whose first row is -p[1:] / p[0] "
    "and which has ones below its diagonal."
)


def zeros_at_end_of(p: Array, front: bool, function: str, instead: str) -> int:
    """The number of zero coefficients at an end, in all batch elements, which the result drops."""
    if shape_of(p)[0] == 0:
        return 0
    known = known_value(p)
    if known is None:
        return zeros_at_end(p, front, f"what np.{function} returns", instead)
    zero = (to_host(known).reshape(-1, shape_of(p)[0]) == 0).all(axis=0)
    zero = zero if front else zero[::-1]
    return len(zero) if zero.all() else int(np.argmin(zero))


@implements(np.polyval)
def polyval(p: Any, x: Any) -> Array:
    """The values of a polynomial at x, by Horner's rule, as numpy.polyval; differentiable in p and x."""
    p = operand(np.asarray(p.coeffs) if isinstance(p, np.poly1d) else p)
    if rank_of(p) == 0:
        raise TypeError("iteration over a 0-d array")
    if isinstance(x, np.poly1d):
        raise TypeError("np.polyval of a traced polynomial at a poly1d has no traced version; compose the functions")
    x = arrayed(operand(x))
    value: Array = shapes.full_like(x, 0)
    for place in range(shape_of(p)[0]):
        value = ops.add(ops.multiply(value, x), entry(p, place))
    return in_order_of(value, x)


def _aligned(a1: Any, a2: Any) -> tuple[Array, Array]:
    p, q = _coefficients(a1), _coefficients(a2)
    longer = shape_of(q)[0] - shape_of(p)[0]
    return _in_front(max(longer, 0), p), _in_front(max(-longer, 0), q)


@implements(np.polyadd)
def polyadd(a1: Any, a2: Any) -> Array:
    """The sum of two polynomials, as numpy.polyadd."""
    return ops.add(*_aligned(a1, a2))


@implements(np.polysub)
def polysub(a1: Any, a2: Any) -> Array:
    """The difference of two polynomials, as numpy.polysub."""
    return ops.subtract(*_aligned(a1, a2))


@implements(np.polymul)
def polymul(a1: Any, a2: Any) -> Array:
    """The product of two polynomials, as numpy.polymul; leading zeros of traced factors stay: they have derivatives."""
    factors: list[Any] = []
    for given in (a1, a2):
        p = _coefficients(given)
        p = p if type(p) is Tracer else np.trim_zeros(p, "f")
        if rank_of(p) > 1:
            raise ValueError("Polynomial must be 1d only.")
        factors.append(p if shape_of(p)[0] else shapes.full_like(p, 0, (1,)))
    return convolve(*factors)


@implements(np.polydiv)
def polydiv(u: Any, v: Any) -> tuple[Array, Array]:
    """The quotient and the remainder, as numpy.polydiv; leading zeros of the remainder have derivatives and stay."""
    u, v = ops.add(_coefficients(u), 0.0), ops.add(_coefficients(v), 0.0)
    dtype = np.result_type(dtype_of(u), dtype_of(v))
    m, n = shape_of(u)[0] - 1, shape_of(v)[0] - 1
    scale = ops.divide(1.0, entry(v, 0))
    rest = to_dtype(u, dtype)
    quotient = []
    for k in range(m - n + 1):
        factor = ops.multiply(scale, entry(rest, k))
        quotient.append(to_dtype(shapes.reshape(arrayed(factor), shape=(1,)), dtype))
        part = ops.subtract(cut(rest, 0, k, k + n + 1), ops.multiply(factor, v))
        rest = slicing.update(rest, to_dtype(part, dtype), index=((k, k + n + 1, 1),))
    rest = cut(rest, 0, min(max(m - n + 1, 0), shape_of(rest)[0] - 1))  # further zeros have derivatives
    return (slicing.concatenate(*quotient, axis=0) if quotient else shapes.full_like(rest, 0, (1,))), rest


@implements(np.polyder)
def polyder(p: Any, m: int = 1) -> Array:
    """The m-th derivative of a polynomial, as numpy.polyder."""
    m = int(m)
    if m < 0:
        raise ValueError("Order of derivative must be positive (see polyint)")
    p = operand(np.asarray(p.coeffs) if isinstance(p, np.poly1d) else p)
    for _ in range(m):
        n = shape_of(p)[0] - 1
        p = ops.multiply(cut(p, 0, 0, -1), np.arange(n, 0, -1))
    return p


@implements(np.polyint)
def polyint(p: Any, m: int = 1, k: Any = None) -> Array:
    """The m-th antiderivative of a polynomial, with integration constants k, as numpy.polyint."""
    m = int(m)
    if m < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    k = _coefficients(np.zeros(m) if k is None else k)
    if shape_of(k)[0] == 1 and m > 1:
        k = ops.multiply(entry(k, 0), np.ones(m))
    if shape_of(k)[0] < m:
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or >m.")
    p = operand(np.asarray(p.coeffs) if isinstance(p, np.poly1d) else p)
    for place in range(m):
        divided = ops.divide(p, np.arange(shape_of(p)[0], 0, -1))
        constant = shapes.reshape(entry(k, place), shape=(1,))
        p = joined([divided, constant], 0)
    return p


@implements(np.roots)
def roots(p: Any) -> Array:
    """The roots of a polynomial, as numpy.roots; simple roots are differentiable."""
    p = _coefficients(p)
    if rank_of(p) != 1:
        raise ValueError("Input must be a rank-1 array.")
    leading = zeros_at_end_of(p, True, "roots", _COMPANION)
    if leading == shape_of(p)[0]:
        return np.array([])
    trailing = zeros_at_end_of(p, False, "roots", _COMPANION)
    if dtype_of(p).kind not in "fc":
        p = to_dtype(p, _FLOAT)
    whole, p = p, cut(p, 0, leading, shape_of(p)[0] - trailing)
    found = real_eigvals(_companion(p)) if shape_of(p)[0] > 1 else np.zeros(0)
    if trailing:
        found = joined([found, shapes.full_like(found, 0, (trailing,))], 0)
    if (leading or trailing) and type(whole) is Tracer and shape_of(found)[0]:
        return _with_all_slopes(found, whole, leading)
    return copied(found)


def _companion(p: Array) -> Array:
    n = shape_of(p)[0]
    first = ops.divide(ops.negative(cut(p, 0, 1)), entry(p, 0))  # its zeros keep their signs, on which LAPACK depends
    below = constant_mask(shapes.full_like(p, 0, (n - 1, n - 1)), lambda i, j: ops.equal(i, ops.add(j, 1)))
    return slicing.update(to_dtype(below, dtype_of(p)), first, index=(0, (0, n - 1, 1)))


def _with_all_slopes(found: Array, p: Array, leading: int) -> Array:
    """Roots with their derivatives by all coefficients, also by those that are zero at the ends.

    They are those of the eigenvalues of the companion matrix of p; with leading zeros, of the polynomial of
    y = 1 / (x - h), where h is larger than all roots.
    """
    if not leading:
        every = linalg.eigvals(_companion(p))
    else:
        n = shape_of(p)[0]
        size = ops.absolute(p)
        h = stop_gradient(ops.add(1.0, ops.divide(reduce_max(size, axes=(0,)), entry(size, leading))))
        shifted = p
        for end in range(1, n):  # Horner's scheme, once for each power
            for k in range(1, n + 1 - end):
                moved = ops.add(entry(shifted, k), ops.multiply(h, entry(shifted, k - 1)))
                shifted = slicing.update(shifted, shapes.reshape(moved, shape=(1,)), index=((k, k + 1, 1),))
        y = linalg.eigvals(_companion(flip(shifted, 0)))
        every = ops.add(h, ops.divide(1.0, shapes.where(ops.equal(y, 0), 1.0, y)))  # none of the roots at infinity
    gaps = ops.absolute(
        ops.subtract(shapes.expand(stop_gradient(found), (1,)), shapes.expand(stop_gradient(every), (0,)))
    )
    nearest = take(every, argmin(gaps, axis=1), 0)
    return revalued(found, nearest if dtype_of(found).kind == "c" else ops.real(nearest))


@implements(np.poly)
def poly(seq_of_zeros: Any) -> Array:
    """The polynomial with these roots, or the characteristic polynomial of a matrix, as numpy.poly."""
    zeros = _coefficients(seq_of_zeros)
    shape = shape_of(zeros)
    # The eigenvalues of a real matrix come in pairs, under jit too, where they are unknown.
    is_real = len(shape) == 2 and dtype_of(zeros).kind != "c"
    if len(shape) == 2 and shape[0] == shape[1] and shape[0] != 0:
        zeros = linalg.eigvals(zeros)
    elif len(shape) != 1:
        raise ValueError("input must be 1d or non-empty square 2d array.")
    else:
        zeros = to_dtype(
            zeros, np.promote_types(dtype_of(zeros), np.float32 if dtype_of(zeros).char in "fF" else float)
        )
    n = shape_of(zeros)[0]
    if n == 0:
        return 1.0
    dtype = dtype_of(zeros)
    p = shapes.full_like(zeros, 1, (1,))
    for place in range(n):
        scaled = ops.multiply(p, ops.negative(entry(zeros, place)))
        ends = shapes.full_like(zeros, 0, (1,))
        p = ops.add(slicing.concatenate(p, ends, axis=0), slicing.concatenate(ends, scaled, axis=0))
    if dtype.kind != "c":
        return p
    if is_real:
        return ops.real(p)
    pairs = ops.equal(sort(zeros), sort(ops.conjugate(zeros)))
    return ops.real(p) if bool(all_of(pairs)) else p


def _column(x: Array) -> Array:
    return shapes.reshape(x, shape=(*shape_of(x), 1))


def _powers(x: Array, order: int) -> Array:
    """The columns x^(order-1), ..., x, 1, by repeated multiplication as in np.vander."""
    column = shapes.full_like(x, 1)
    columns = [_column(column)]
    for _ in range(order - 1):
        column = ops.multiply(column, x)
        columns.insert(0, _column(column))
    return slicing.concatenate(*columns, axis=1)


def _checked_samples(x: Array, y: Array, w: Any, deg: int) -> Any:
    """NumPy's checks of the arguments of polyfit; returns the weights."""
    if deg < 0:
        raise ValueError("expected deg >= 0")
    if rank_of(x) != 1:
        raise TypeError("expected 1D vector for x")
    if count(shape_of(x)) == 0:
        raise TypeError("expected non-empty vector for x")
    if rank_of(y) not in (1, 2):
        raise TypeError("expected 1D or 2D array for y")
    if shape_of(x)[0] != shape_of(y)[0]:
        raise TypeError("expected x and y to have same length")
    if w is None:
        return None
    w = ops.add(operand(w), 0.0)
    if rank_of(w) != 1:
        raise TypeError("expected a 1-d array for weights")
    if shape_of(w)[0] != shape_of(y)[0]:
        raise TypeError("expected w and y to have the same length")
    return w


def _fit_covariance(lhs: Array, scale: Array, order: int, residuals: Array, y: Array, kind: Any) -> Array:
    base = ops.divide(linalg.inv(dot(shapes.permute(lhs, order=(1, 0)), lhs)), outer(scale, scale))
    if kind == "unscaled":
        factor: Any = 1
    else:
        observations = shape_of(lhs)[0]
        if observations <= order:
            raise ValueError("the number of data points must exceed order to scale the covariance matrix")
        factor = ops.divide(residuals, observations - order)
    return ops.multiply(base if rank_of(y) == 1 else _column(base), factor)


@implements(np.polyfit)
def polyfit(
    x: Any, y: Any, deg: int, rcond: float | None = None, full: bool = False, w: Any = None, cov: Any = False
) -> Any:
    """The least-squares polynomial for samples, as numpy.polyfit; differentiable in x, y and the weights."""
    order = int(deg) + 1
    x, y = ops.add(arrayed(operand(x)), 0.0), ops.add(arrayed(operand(y)), 0.0)
    w = _checked_samples(x, y, w, deg)
    rcond = shape_of(x)[0] * np.finfo(dtype_of(x)).eps if rcond is None else rcond
    lhs, rhs = _powers(to_dtype(x, np.promote_types(dtype_of(x), int)), order), y  # the dtype of np.vander
    if w is not None:
        lhs = to_dtype(ops.multiply(lhs, _column(w)), dtype_of(lhs))
        rhs = to_dtype(ops.multiply(rhs, _column(w) if rank_of(y) == 2 else w), dtype_of(rhs))
    scale = ops.sqrt(shapes.reduce_sum(ops.multiply(lhs, lhs), axes=(0,)))
    lhs = ops.divide(lhs, scale)
    fitted, residuals, rank, s = linalg.lstsq(lhs, rhs, rcond)
    fitted = ops.divide(fitted, scale if rank_of(fitted) == 1 else _column(scale))
    known = known_value(rank)
    if known is not None and not full and np.any(known != order):
        warnings.warn("Polyfit may be poorly conditioned", np.exceptions.RankWarning, stacklevel=2)
    if full:
        return fitted, residuals, rank, s, rcond
    return (fitted, _fit_covariance(lhs, scale, order, residuals, y, cov)) if cov else fitted
