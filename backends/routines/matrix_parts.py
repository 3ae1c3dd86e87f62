"""Copies of matrices and of their triangles, properties of diagonals, and orders of rows."""

from __future__ import annotations

import math

# fmt: off
from func.backends.routines.language import (
    IS_COMPLEX, Int32, Int32s, Longs, Matrix, Number, Numbers, Real, Reals, Rows, Vector, conj, is_rows, log,
    modulus, real_part,
)
# fmt: on

SQUARE, TILE = 16, 8


def exchange(n: int, x: Vector, y: Vector) -> None:
    """Exchange two vectors."""
    for i in range(n):
        x[i], y[i] = y[i], x[i]


def copy(m: int, n: int, source: Matrix, target: Matrix) -> None:
    """Copy a matrix."""
    if is_rows(source) and is_rows(target):
        for i in range(m):
            for j in range(n):
                target[i, j] = source[i, j]
        return
    for top in range(0, m, TILE):
        end = top + TILE if top + TILE < m else m
        for j in range(n):
            for i in range(top, end):
                target[i, j] = source[i, j]


def adjoint(m: int, n: int, source: Matrix, target: Matrix) -> None:
    """Copy the adjoint of a matrix."""
    for i in range(m):
        for j in range(n):
            target[j, i] = conj(source[i, j])


def upper(m: int, n: int, a: Matrix, r: Matrix) -> None:
    """Copy the upper triangle of a matrix, with zeros below it."""
    for i in range(m):
        diagonal = i if i < n else n
        for j in range(diagonal):
            r[i, j] = 0
        for j in range(diagonal, n):
            r[i, j] = a[i, j]


def clear(n: int, a: Rows, lower: bool) -> None:
    """Write zeros below the diagonal, or above it."""
    for i in range(n):
        for j in range(0 if lower else i + 1, i if lower else n):
            a[i, j] = 0


def mirror_triangle(n: int, a: Rows, lower: bool) -> None:
    """Write a triangle, conjugated, over the other one, by blocks, so that their cache lines stay near."""
    for top in range(0, n, SQUARE):
        end = top + SQUARE if top + SQUARE < n else n
        for left in range(0, end, SQUARE):
            for i in range(top, end):
                for j in range(left, left + SQUARE if left + SQUARE < i else i):
                    if lower:
                        a[j, i] = conj(a[i, j])
                    else:
                        a[i, j] = conj(a[j, i])


def diagonal(n: int, a: Matrix, on: Number, off: Number) -> None:
    """A matrix with one number on its diagonal and another everywhere else."""
    for i in range(n):
        for j in range(n):
            a[i, j] = on if i == j else off


def first_zero(n: int, a: Vector) -> Int32:
    """The place of the first zero, counted from 1; 0 where there is none."""
    for i in range(n):
        if a[i] == 0:
            return i + 1
    return 0


def determinant(n: int, lu: Vector, first: int, pivots: Int32s, sign: Numbers, logarithm: Reals) -> None:
    """The sign of a determinant and the logarithm of its modulus, by the diagonal of LU factors and exchanges. These
    count rows from `first`. The results are 0 and -inf for a singular matrix."""
    unit: Number = 1
    total: Real = 0
    for i in range(n):
        value = lu[i]
        if value == 0:
            sign[0] = 0
            logarithm[0] = -math.inf
            return
        size = modulus(value)
        if IS_COMPLEX:
            unit = unit * (value / size)
        else:
            unit = -unit if real_part(value) < 0 else unit
        unit = unit if pivots[i] == i + first else -unit
        total += log(size)
    sign[0] = unit
    logarithm[0] = total


def order_of(m: int, count: int, pivots: Int32s, order: Longs) -> bool:
    """The order of m rows after their exchanges; true if one is with no row."""
    failed = False
    for i in range(m):
        order[i] = i
    for i in range(count):
        is_row = 0 <= pivots[i] < m
        pivot = pivots[i] if is_row else i
        order[i], order[pivot] = order[pivot], order[i]
        failed = failed or not is_row
    return failed


def inverse_order(n: int, order: Longs, inverse: Longs) -> Int32:
    """The inverse of a permutation; not 0 if a number is not one of its places."""
    failed: Int32 = 0
    for i in range(n):
        inverse[i] = 0
    for i in range(n):
        if 0 <= order[i] < n:
            inverse[order[i]] = i
        else:
            failed = 1
    return failed
