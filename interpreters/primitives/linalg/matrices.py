"""The common operations of linear algebra: transposes, products, masks, diagonals of stacks of matrices.

Convention: leading axes are a batch, H is the conjugate transpose.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from func.backends.array_helpers.linalg import float_dtype, real_dtype
from func.interpreters import core
from func.interpreters.core import ZERO, Array, Aval, Params, Primitive, Shaped
from func.interpreters.primitives.elementwise.builder import add, conjugate, multiply, nan_safe_multiply
from func.interpreters.primitives.elementwise.partials import is_followed
from func.interpreters.primitives.elementwise.table import (
    absolute,
    divide,
    equal,
    greater,
    imag,
    less_equal,
    real,
    subtract,
)
from func.interpreters.primitives.structural.contraction import Spec, contract, matmul_spec, spec
from func.interpreters.primitives.structural.filling import iota
from func.interpreters.primitives.structural.identity import stop_gradient
from func.interpreters.primitives.structural.reductions import reduce_max
from func.interpreters.primitives.structural.shapes import (
    broadcast,
    convert,
    expand,
    full_like,
    inverse_permutation,
    permute,
    reduce_sum,
    reshape,
    where,
)
from func.interpreters.primitives.structural.slicing import getitem


def mT(x: Array) -> Array:
    """The transpose of the last two axes."""
    rank = len(core.shape_of(x))
    return permute(x, order=(*range(rank - 2), rank - 1, rank - 2))


def mH(x: Array) -> Array:
    """The conjugate transpose of the last two axes."""
    return mT(conjugate(x) if core.dtype_of(x).kind == "c" else x)


def mm(x: Array, y: Array) -> Array:
    """Matrix product over equal batch axes."""
    rank = len(core.shape_of(x)) - 2
    return contract(x, y, spec=matmul_spec(2, 2, rank, rank))


def trace_product_spec(rank: int) -> Spec:
    """tr(x y) of matrices with `rank` batch axes."""
    batch = tuple(range(2, 2 + rank))
    return spec((*batch, 0, 1), (*batch, 1, 0), batch)


def trace_product(x: Array, y: Array) -> Array:
    """tr(x y)."""
    return contract(x, y, spec=trace_product_spec(len(core.shape_of(x)) - 2))


def constant_mask(x: Array, test: Callable[[Array, Array], Array]) -> Array:
    """A boolean (n, m) matrix on x's backend: test(row, column)."""
    n, m = core.shape_of(x)[-2:]
    return test(reshape(iota(n, x), shape=(n, 1)), reshape(iota(m, x), shape=(1, m)))


def keep_where(x: Array, test: Callable[[Array, Array], Array]) -> Array:
    """x where test(row, column) holds, zero elsewhere."""
    return where(constant_mask(x, test), x, full_like(x, 0, ()))


def lower_half(x: Array) -> Array:
    """Φ: the lower triangle with the diagonal halved."""
    return add(
        keep_where(x, lambda i, j: j < i),
        keep_where(multiply(x, 0.5), lambda i, j: j == i),
    )


def hermitian_part(x: Array) -> Array:
    """(x + xᴴ) / 2."""
    return multiply(add(x, mH(x)), 0.5)


def from_triangle(x: Array, lower: bool, hermitian: bool = True) -> Array:
    """The Hermitian (or symmetric) matrix of which a routine reads one triangle; the other triangle has no effect.

    Directions go through it as matrices do: it is linear over the reals.
    """
    transposed = mH(x) if hermitian else mT(x)
    whole = where(constant_mask(x, (lambda i, j: j <= i) if lower else (lambda i, j: j >= i)), x, transposed)
    if not hermitian or core.dtype_of(x).kind != "c":
        return whole
    return where(constant_mask(x, lambda i, j: i == j), convert(real(x), dtype=core.dtype_of(x)), whole)


def onto_triangle(x: Array, lower: bool) -> Array:
    """The gradient with respect to one triangle, where x is that with respect to the whole Hermitian matrix.

    Elements off the diagonal are in two places of the matrix, and count twice.
    """
    inside = keep_where(add(x, x), (lambda i, j: j < i) if lower else (lambda i, j: j > i))
    diagonal = convert(real(x), dtype=core.dtype_of(x)) if core.dtype_of(x).kind == "c" else x
    return where(constant_mask(x, lambda i, j: i == j), diagonal, inside)


def block(x: Array, rows: tuple[int, int], columns: tuple[int, int]) -> Array:
    """The rows and columns in two ranges (start, stop)."""
    shape = core.shape_of(x)
    if rows == (0, shape[-2]) and columns == (0, shape[-1]):
        return x
    return getitem(x, index=(*[(0, length, 1) for length in shape[:-2]], (*rows, 1), (*columns, 1)))


def diagonal_of(x: Array) -> Array:
    """The diagonal (…, min(n, m)) of (…, n, m)."""
    n, m = core.shape_of(x)[-2:]
    k = min(n, m)
    square = block(x, (0, k), (0, k))
    return reduce_sum(keep_where(square, lambda i, j: i == j), axes=(len(core.shape_of(x)) - 1,))


def along_columns(s: Array) -> Array:
    """s_j as (…, 1, n), to scale columns."""
    return expand(s, (len(core.shape_of(s)) - 1,))


def along_rows(s: Array) -> Array:
    """s_i as (…, n, 1), to scale rows."""
    return expand(s, (len(core.shape_of(s)),))


def scale_columns(x: Array, s: Array) -> Array:
    """x diag(s)."""
    return multiply(x, along_columns(s))


def identity_like(x: Array, n: int) -> Array:
    """The (n, n) identity of x's dtype, on x's backend."""
    same = equal(reshape(iota(n, x), shape=(n, 1)), reshape(iota(n, x), shape=(1, n)))
    return convert(same, dtype=core.dtype_of(x))


def over_matrices(test: Array) -> Array:
    """A choice per matrix (…) as (…, 1, 1)."""
    return reshape(test, shape=(*core.shape_of(test), 1, 1))


def are_square(*matrices: Aval, **params: Any) -> bool:
    """Whether all operands are stacks of square matrices of one shape."""
    return all([len(a.shape) >= 2 and a.shape[-1] == a.shape[-2] and a.shape == matrices[0].shape for a in matrices])


def are_matrices(*matrices: Aval, **params: Any) -> bool:
    """Whether all operands are stacks of matrices."""
    return all([len(a.shape) >= 2 for a in matrices])


def has_sides(a: Aval, b: Aval, **params: Any) -> bool:
    """Whether A is a stack of square matrices and B a stack of their right-hand sides."""
    return are_square(a) and are_matrices(b) and a.shape[:-1] == b.shape[:-1]


def same_aval(x: Aval, **params: Any) -> Aval:
    """Shape as the matrix, in floating point."""
    return Aval(x.shape, float_dtype(x.dtype))


def real_part(x: Array) -> Array:
    """The real part of complex arrays; real ones unchanged."""
    return real(x) if core.dtype_of(x).kind == "c" else x


def imaginary_part(x: Array) -> Array:
    """i Im x of complex x."""
    return multiply(imag(x), 1j)


def largest(values: Array) -> Array:
    """The largest modulus along the last axis, as (…, 1, 1), without a derivative."""
    size = core.shape_of(values)[-1]
    if size == 0:
        return full_like(values, 1, (*core.shape_of(values)[:-1], 1, 1), real_dtype(core.dtype_of(values)))
    fixed = stop_gradient(values)
    moduli = absolute(fixed)
    return over_matrices(reduce_max(moduli, axes=(len(core.shape_of(values)) - 1,)))


def safe_reciprocal(gap: Array, scale: Array) -> Array:
    """1 / gap, and zero where rounding of an n by n problem hides the gap: it drops undetermined parts."""
    tiny = multiply(scale, float(np.finfo(core.dtype_of(scale)).eps) * 4 * max(core.shape_of(gap)[-1], 1))
    degenerate = less_equal(absolute(stop_gradient(gap)), tiny)
    unit = full_like(gap, 1, ())
    return where(degenerate, full_like(gap, 0, ()), divide(unit, where(degenerate, unit, gap)))


def are_equal(w: Array, others: Array) -> Array:
    """(…, m, n): whether other_i and w_j differ by no more than the rounding of the problem."""
    held, others = stop_gradient(w), stop_gradient(others)
    tiny = multiply(largest(others), float(np.finfo(core.dtype_of(w)).eps) * 4 * core.shape_of(others)[-1])
    return less_equal(absolute(subtract(along_columns(held), along_rows(others))), tiny)


class Cusps(NamedTuple):
    """Eigenvalues or singular values, some of which may be equal, with their source and the whole spectrum."""

    values: Array
    everyone: Array
    mover: Array


def cusps(w: Array, everyone: Array | None = None, source: Array | None = None) -> Cusps | None:
    """Values whose tangents, `with_cusps`, have no further derivative where two are equal.

    A first derivative that drops the undetermined part of equal eigenvalues is right for many functions, its own
    derivative is not. None where none is taken, and where no eigenvalues are equal. Where w is a part of the spectrum,
    `everyone` is the whole. Singular values of exactly zero do not move: with the matrix as `source` the derivative is
    by that one.
    """
    if not is_followed(w) or 0 in core.shape_of(w):
        return None
    whole = w if everyone is None else everyone
    known = core.known_value(w)
    if known is not None and not np.any(_have_equals(known, core.known_value(whole))):
        return None
    mover = w
    if source is not None:
        rank = len(core.shape_of(source))
        mover = expand(reduce_sum(real_part(source), axes=(rank - 2, rank - 1)), (rank - 2,))
        mover = broadcast(mover, shape=core.shape_of(w))
    return Cusps(stop_gradient(w), stop_gradient(whole), mover)


def part_of_cusps(cusp: Cusps | None, first: int, last: int | None) -> Cusps | None:
    """Those of the eigenvalues from `first` up to `last`."""
    if cusp is None:
        return None
    return Cusps(part_of(cusp.values, first, last), cusp.everyone, part_of(cusp.mover, first, last))


def _have_equals(w: Array, whole: Array) -> Array:
    """Whether more than one value of the whole spectrum equals each."""
    near = are_equal(w, whole)
    return greater(reduce_sum(convert(near, dtype=np.dtype(int)), axes=(len(core.shape_of(near)) - 2,)), 1)


def _cusped_jvp(primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[Array, Any]:
    """The tangent of x, and x times NaN where values are equal that move."""
    (x, w, everyone, mover), (dx, _, _, moved) = primals, tangents
    out = cusped(x, w, everyone, mover)
    change = dx if dx is ZERO else cusped(dx, w, everyone, mover)
    if moved is ZERO:
        return out, change
    places = _have_equals(w, everyone)
    known = core.known_value(places)
    if known is None or np.any(known):
        slope = where(places, full_like(w, math.nan, ()), full_like(w, 0, ()))
        moved = nan_safe_multiply(moved, slope)
        change = core.add_tangents(change, multiply(x, along_values(moved, x)))
    return out, change


def along_values(values: Array, x: Array) -> Array:
    """A number for each value, or for each column."""
    return values if len(core.shape_of(values)) == len(core.shape_of(x)) else along_columns(values)


def _cusped_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
    """Values of one matrix stay those of one: they broadcast."""
    (x,) = core.materialize(size, batched[:1], args[:1])
    values = [y if is_batched else expand(y, (0,)) for y, is_batched in zip(args[1:], batched[1:], strict=True)]
    return cusped(x, *values)


def _cusped_transpose(ct: Array, x: Shaped, w: Array, everyone: Array, mover: Array) -> tuple[Any, ...]:
    return cusped(ct, w, everyone, mover), ZERO, ZERO, ZERO


cusped: Primitive = core.general(
    "cusped",
    lambda xp, x, w, everyone, mover: x,
    aval=lambda x, w, everyone, mover: x,
    batch=_cusped_batch,
    jvp=_cusped_jvp,
    transpose=_cusped_transpose,
    body=lambda params: lambda x, *rest: (x,),
    mask="elementwise",
    cost=0,
    view=True,
)
"""x, tangents of the values w or of their vectors in columns; its derivative by `mover` is NaN where w_i equals
another one of everyone."""


def with_cusps(tangent: Array, cusp: Cusps | None) -> Array:
    """A tangent of eigenvalues, or of vectors in columns, whose own derivative is none at equal eigenvalues."""
    return tangent if cusp is None else cusped(tangent, *cusp)


def differences(w: Array, cusp: Cusps | None, first: int = 0, last: int | None = None) -> Array:
    """F_ij = 1 / (w_j - w_i), zero for equal eigenvalues, with the columns from `first` up to `last`; with cusps."""
    marked = with_cusps(w, cusp)
    return safe_reciprocal(subtract(along_columns(part_of(marked, first, last)), along_rows(marked)), largest(w))


def part_of(w: Array, first: int, last: int | None) -> Array:
    """The eigenvalues from `first` up to `last`."""
    n = core.shape_of(w)[-1]
    if first == 0 and last in (None, n):
        return w
    whole = [(0, length, 1) for length in core.shape_of(w)[:-1]]
    return getitem(w, index=(*whole, (first, last, 1)))


def row_of(x: Array, row: int) -> Array:
    """One row (…, m) of (…, n, m)."""
    shape = core.shape_of(x)
    row %= shape[-2]
    return reshape(block(x, (row, row + 1), (0, shape[-1])), shape=(*shape[:-2], shape[-1]))


def turn_to_real(numbers: Array, tangent: Array) -> Array:
    """i c, where turning by the phase c keeps complex numbers real that LAPACK makes real; zero where one is zero.

    The phases of eigenvectors and singular vectors follow from LAPACK's reduction to a tridiagonal or bidiagonal
    matrix. A Householder matrix that begins (or ends) with a unit vector leaves one row of the vectors real.
    Source: E. Anderson et al. (1999), LAPACK Users' Guide, sections 2.4.4 and 2.4.6.
    """
    scale = reshape(largest(numbers), shape=(*core.shape_of(numbers)[:-1], 1))
    return multiply(multiply(imag(tangent), safe_reciprocal(real(numbers), scale)), -1j)


def solve_batch(primitive: Callable[..., Array]) -> Callable[..., Any]:
    """Batch rule of A⁻¹ B: right-hand sides of one matrix go into its columns, so that it is factored once."""

    def batch_solve(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
        a, b = args
        if batched[0]:
            return primitive(*core.materialize(size, batched, args), **params)
        rank = len(core.shape_of(b))
        order = (*range(1, rank - 1), 0, rank - 1)
        columns_last = permute(b, order=order)
        shape = core.shape_of(columns_last)
        wide = primitive(a, reshape(columns_last, shape=(*shape[:-2], math.prod(shape[-2:]))), **params)
        return permute(reshape(wide, shape=shape), order=inverse_permutation(order))

    return batch_solve
