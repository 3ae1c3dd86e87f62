"""LU factors of matrices of some dozen rows: LAPACK's calls for panels cost more than their arithmetic.

Matrices are column-major. It factors panels of `WIDTH` columns from left to right, each with exchanges of whole rows,
and then subtracts them from the columns behind. The first panel has the remainder of the columns, so that the rows
below a panel are whole vectors. Pivots and factors are those of LAPACK's getrf up to rounding.
"""

from __future__ import annotations

from func.backends.routines.language import TINY, Fixed, Int32s, Numbers, fma, lanes, modulus, unrolled, zeros

WIDTH = 8
"""The columns of a panel, and the rows of a vector."""
SQUARE = WIDTH * WIDTH
LEAST_ROWS = 24
"""Smaller matrices gain less than it takes to compile this."""
MOST_ROWS = 192
"""Larger matrices leave the inner caches, and LAPACK's blocks are faster."""


def small_lu(n: Fixed, a: Numbers, pivots: Int32s) -> None:
    """The factors P A = L U in place of a square matrix, and the exchanges of rows from 0."""
    _getf2(n, 0, n % WIDTH, a, pivots)
    for first in range(n % WIDTH, n, WIDTH):
        _getf2(n, first, WIDTH, a, pivots)


def _getf2(n: Fixed, first: int, width: Fixed, a: Numbers, pivots: Int32s) -> None:
    """Factor some columns, and take them from the columns behind, two at once."""
    for c in range(first, first + width):
        _column(n, c, first + width, a, pivots)
    for j in range(first + width, n, 2):
        x, y = a[j * n :], a[(j + 1) * n :]
        x_tops: Numbers = zeros(WIDTH)
        y_tops: Numbers = zeros(WIDTH)
        x_wide: Numbers = zeros(SQUARE)
        y_wide: Numbers = zeros(SQUARE)
        for t in unrolled(width):
            x_top, y_top = x[first + t], y[first + t]
            for s in unrolled(t):
                part = a[(first + s) * n + first + t]
                x_top, y_top = fma(-part, x_tops[s], x_top), fma(-part, y_tops[s], y_top)
            x[first + t] = x_tops[t] = x_top
            y[first + t] = y_tops[t] = y_top
            for k in lanes(WIDTH):
                x_wide[WIDTH * t + k] = x_top
                y_wide[WIDTH * t + k] = y_top
        for i in range(first + width, n, WIDTH):
            left: Numbers = zeros(WIDTH)
            right: Numbers = zeros(WIDTH)
            for k in lanes(WIDTH):
                left[k] = x[i + k]
                right[k] = y[i + k]
            for t in unrolled(width):
                for k in lanes(WIDTH):
                    part = a[(first + t) * n + i + k]
                    left[k] = fma(-part, x_wide[WIDTH * t + k], left[k])
                    right[k] = fma(-part, y_wide[WIDTH * t + k], right[k])
            for k in lanes(WIDTH):
                x[i + k] = left[k]
                y[i + k] = right[k]


def _column(n: Fixed, c: int, below: int, a: Numbers, pivots: Int32s) -> None:
    """Bring the largest element of a column to its diagonal, divide by it, and take the column from those of the panel
    behind it."""
    column = a[c * n :]
    best, pivot = modulus(column[c]), c
    for i in range(c + 1, n):
        size = modulus(column[i])
        pivot = i if size > best else pivot
        best = size if size > best else best
    pivots[c] = pivot
    if pivot != c:
        for j in range(n):
            a[j * n + pivot], a[j * n + c] = a[j * n + c], a[j * n + pivot]
    on = 1 if column[c] == 0 else column[c]
    is_tiny = modulus(on) < TINY  # the inverse may be infinite
    if is_tiny:
        for i in range(c + 1, n):
            column[i] /= on
    factor = 1 if is_tiny else 1 / on
    for i in range(c + 1, below):
        column[i] *= factor
    for i in range(below, n, WIDTH):
        for k in lanes(WIDTH):
            column[i + k] *= factor
    for j in range(c + 1, below):
        top = a[j * n + c]
        for i in range(c + 1, below):
            a[j * n + i] = fma(-column[i], top, a[j * n + i])
        for i in range(below, n, WIDTH):
            for k in lanes(WIDTH):
                a[j * n + i + k] = fma(-column[i + k], top, a[j * n + i + k])
