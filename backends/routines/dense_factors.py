"""Factors of matrices, solves and determinants.

Inner loops run over rows or columns, through `axpy` and `dot`, so that compilers make vector code of them. Large
matrices go to LAPACK and CBLAS where the code is compiled with them.
"""

from __future__ import annotations

import math

# fmt: off
from func.backends.routines.language import (
    HAS_CBLAS, HAS_LAPACK, IS_COMPLEX, LEAST, MOST, SHORT_INTEGERS, SIZE, TINY, Fixed, Int32s, Matrix, Number,
    Numbers, Real, Reals, Rows, Vector, apart, bits, conj, copysign, external, fma, hypot, is_columns, is_dense,
    is_rows, modulus, pivot_size, real_part, sqrt, zeros,
)
# fmt: on
from func.backends.routines.matrix_parts import copy, diagonal, exchange

BLOCK, LARGE_BLOCK, TILE, LANES, ROWS, WIDTH = 32, 96, 8, 8, 6, 8


@external
def gemm_minus_rows(m: int, k: int, n: int, out: Matrix, x: Matrix, y: Matrix) -> None:
    """out - x y in place of out, which is row-major."""
    out[:m, :n] -= x[:m, :k] @ y[:k, :n]


@external
def getrf(m: int, n: int, a: Matrix, pivots: Int32s) -> bool:
    """LAPACK's LU factors."""
    raise NotImplementedError


@external
def potrf(n: int, a: Rows, lower: bool) -> bool:
    """LAPACK's Cholesky factor."""
    raise NotImplementedError


@external
def trsm(n: int, k: int, a: Matrix, lower: bool, unit: bool, b: Matrix) -> None:
    """The solution with a triangle by BLAS."""
    raise NotImplementedError


@apart
def axpy(n: int, factor: Number, x: Vector, y: Vector) -> None:
    """y - factor x in place of y."""
    if is_dense(x) and is_dense(y):
        dense_axpy(n, factor, x, y)
        return
    for i in range(n):
        y[i] = fma(-factor, x[i], y[i])


@apart
def dense_axpy(n: int, factor: Number, x: Numbers, y: Numbers) -> None:
    """The same for contiguous numbers."""
    for i in range(n):
        y[i] = fma(-factor, x[i], y[i])


def dot(n: int, x: Vector, conjugate: bool, y: Vector) -> Number:
    """The sum of the products of two vectors, the first one's elements conjugated or not."""
    total: Number = 0
    first = 0
    if n >= LANES and is_dense(x) and is_dense(y) and not conjugate:
        first = n - n % LANES
        total = dense_dot(first, x, y)
    for i in range(first, n):
        total += (conj(x[i]) if conjugate else x[i]) * y[i]
    return total


def dense_dot(n: int, x: Numbers, y: Numbers) -> Number:
    """The dot product of numbers that are contiguous; their count is a multiple of the lanes."""
    sums: Numbers = zeros(LANES)
    for i in range(0, n, LANES):
        for lane in range(LANES):
            sums[lane] = fma(x[i + lane], y[i + lane], sums[lane])
    return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]))


def norm(n: int, x: Vector) -> Real:
    """The Euclidean norm of a vector, also where its square is too large or too small for a number."""
    plain = real_part(dot(n, x, IS_COMPLEX, x))
    if (LEAST < plain < MOST) or plain != plain:
        return sqrt(plain)
    largest: Real = 0
    total: Real = 0
    for i in range(n):
        size = modulus(x[i])
        largest = size if size > largest else largest
    if largest == 0 or largest == math.inf:
        return largest
    for i in range(n):
        part = modulus(x[i]) / largest
        total += part * part
    return largest * sqrt(total)


def gemm_minus(m: int, k: int, n: int, out: Matrix, x: Matrix, y: Matrix) -> None:
    """out - x y in place of out, row-major or column-major."""
    if is_rows(out):
        gemm_minus_rows(m, k, n, out, x, y)
    else:
        gemm_minus_rows(n, k, m, out.T, y.T, x.T)


def getf2(m: int, n: int, a: Matrix, pivots: Int32s) -> bool:
    """The factors of a few columns in place of them."""
    singular = False
    for k in range(m if m < n else n):
        pivot, largest = k, pivot_size(a[k, k])
        for i in range(k + 1, m):
            size = pivot_size(a[i, k])
            pivot = i if size > largest else pivot
            largest = size if size > largest else largest
        pivots[k] = pivot
        if pivot != k:
            exchange(n, a[k], a[pivot])
        top = a[k, k]
        if top == 0:
            singular = True
            continue
        if pivot_size(top) < TINY:  # the inverse may be infinite
            for i in range(k + 1, m):
                a[i, k] /= top
        else:
            scale = 1 / top
            for i in range(k + 1, m):
                a[i, k] *= scale
        if is_rows(a):
            row: Numbers = a[k, k + 1 :]
            for i in range(k + 1, m):
                other: Numbers = a[i, k + 1 :]
                axpy(n - k - 1, a[i, k], row, other)
        else:
            for j in range(k + 1, n):
                axpy(m - k - 1, a[k, j], a[k + 1 :, k], a[k + 1 :, j])
    return singular


def lu(m: int, n: int, a: Matrix, pivots: Int32s) -> bool:
    """The factors P A = L U in place of A, and the exchanges of rows from 0; true where U has a zero on its
    diagonal."""
    if HAS_LAPACK and SHORT_INTEGERS and m > 64 and n > 64:
        return getrf(m, n, a, pivots)
    if not IS_COMPLEX:
        if m > 2 * BLOCK and n > 2 * BLOCK:
            singular = False
            both = m if m < n else n
            for k in range(0, both, BLOCK):
                width = both - k if both - k < BLOCK else BLOCK
                after = k + width
                singular = getf2(m - k, width, a[k:, k:], pivots[k:]) or singular
                for i in range(k, after):
                    pivot = k + pivots[i]
                    pivots[i] = pivot
                    if pivot != i:
                        exchange(k, a[i], a[pivot])
                        exchange(n - after, a[i, after:], a[pivot, after:])
                triangular(width, n - after, a[k:, k:], True, True, False, a[k:, after:])
                gemm_minus(m - after, width, n - after, a[after:, after:], a[after:, k:], a[k:, after:])
            return singular
    return getf2(m, n, a, pivots)


def lu_of(wide: Fixed, n: int, a: Matrix, lu: Matrix, pivots: Int32s) -> bool:
    """The factors P A = L U of a small matrix, and the exchanges of rows from 0; true where U has a zero on its
    diagonal. Rows are whole vectors.
    """
    rows: Rows = zeros(wide, wide)
    top: Numbers = zeros(wide)
    singular = False
    for i in range(n):
        for j in range(n):
            rows[i, j] = a[i, j]
    for k in range(n):
        pivot, largest = k, bits(pivot_size(rows[k, k]))  # positive numbers have the order of their bits
        for i in range(k + 1, n):
            size = bits(pivot_size(rows[i, k]))
            pivot = i if size > largest else pivot
            largest = size if size > largest else largest
        pivots[k] = pivot
        on = rows[pivot, k]
        inverse = 1 / on
        for c in range(wide):
            top[c] = rows[pivot, c]
            rows[pivot, c] = rows[k, c]
            rows[k, c] = top[c]
        is_tiny = pivot_size(on) < TINY  # the inverse may be infinite
        singular = on == 0 or singular
        if on != 0:
            for i in range(k + 1, n):
                factor = rows[i, k] / on if is_tiny else rows[i, k] * inverse
                for c in range(wide):
                    rest = fma(-factor, top[c], rows[i, c])
                    value = factor if c == k else rows[i, c]
                    rows[i, c] = rest if c > k else value
    for i in range(n):
        for j in range(n):
            lu[i, j] = rows[i, j]
    return singular


def exchanges(n: int, k: int, pivots: Int32s, back: bool, b: Matrix) -> None:
    """Rows of a matrix exchanged as LU factors have it, or back."""
    for step in range(n):
        i = n - 1 - step if back else step
        if pivots[i] != i:
            exchange(k, b[i], b[pivots[i]])


def triangular(n: int, k: int, a: Matrix, lower: bool, unit: bool, conjugate: bool, b: Matrix) -> None:
    """The solution of A X = B in place of B, of n rows and k columns, for one triangle of A (of its conjugate)."""
    if not IS_COMPLEX:
        if HAS_CBLAS and n > 64 and k > 1 and (is_columns(a) or is_rows(a)) and (is_columns(b) or is_rows(b)):
            trsm(n, k, a, lower, unit, b)
            return
        if n > 2 * BLOCK and k >= 8:
            for start in range(0, n, BLOCK):
                width = n - start if n - start < BLOCK else BLOCK
                rest = n - start - width
                first, after = (start if lower else rest), (start + width if lower else 0)
                triangular(width, k, a[first:, first:], lower, unit, False, b[first:])
                gemm_minus(rest, width, k, b[after:], a[after:, first:], b[first:])
            return
    by_rows = k > 1 and is_rows(b)
    for c in range(1 if by_rows else k):
        for step in range(n):
            i = step if lower else n - 1 - step
            first, after = (0 if lower else i + 1), (i + 1 if lower else 0)
            if by_rows:
                row: Numbers = b[i]
                for j in range(first, i if lower else n):
                    known: Numbers = b[j]
                    axpy(k, conj(a[i, j]) if conjugate else a[i, j], known, row)
            elif not is_columns(a) or conjugate:
                b[i, c] -= dot(i if lower else n - 1 - i, a[i, first:], conjugate, b[first:, c])
            if not unit:
                on = conj(a[i, i]) if conjugate else a[i, i]
                for j in range(c, k if by_rows else c + 1):
                    b[i, j] /= on
            if not by_rows and is_columns(a) and not conjugate:
                column: Numbers = a[after:, i]
                axpy(n - 1 - i if lower else i, b[i, c], column, b[after:, c])


def lu_solve(n: int, k: int, lu: Matrix, pivots: Int32s, transposed: bool, conjugate: bool, b: Matrix) -> None:
    """The solution of A X = B (of the transpose or adjoint of A) in place of B, by the factors of A."""
    if transposed:
        triangular(n, k, lu.T, True, False, conjugate, b)
        triangular(n, k, lu.T, False, True, conjugate, b)
    exchanges(n, k, pivots, transposed, b)
    if not transposed:
        triangular(n, k, lu, True, True, conjugate, b)
        triangular(n, k, lu, False, False, conjugate, b)


def solve(n: int, k: int, a: Rows, b: Rows, x: Rows, matrix: Rows, pivots: Int32s) -> bool:
    """The solution of A X = B; true where A is singular."""
    copy(n, n, a, matrix)
    singular = lu(n, n, matrix, pivots)
    copy(n, k, b, x)
    lu_solve(n, k, matrix, pivots, False, False, x)
    return singular


def inverse(n: int, a: Rows, out: Rows, matrix: Rows, pivots: Int32s) -> bool:
    """The inverse; true where A is singular."""
    copy(n, n, a, matrix)
    singular = lu(n, n, matrix, pivots)
    diagonal(n, out, 1, 0)
    lu_solve(n, n, matrix, pivots, False, False, out)
    return singular


def cholesky_tile(i: int, count: int, j: int, a: Rows, tile: Rows) -> None:
    """The 8 columns from j on of up to 6 rows of the upper Cholesky factor, from row i on. The rows are not yet
    subtracted from each other; `a` has the rows above.
    """
    s0: Numbers = zeros(WIDTH)
    s1: Numbers = zeros(WIDTH)
    s2: Numbers = zeros(WIDTH)
    s3: Numbers = zeros(WIDTH)
    s4: Numbers = zeros(WIDTH)
    s5: Numbers = zeros(WIDTH)
    last = count - 1  # rows behind the last are the last one again
    r1, r2, r3 = (last if last < 1 else 1), (last if last < 2 else 2), (last if last < 3 else 3)
    r4, r5 = (last if last < 4 else 4), (last if last < 5 else 5)
    for row in range(i):
        left, right = a[row, i:], a[row, j:]
        f0, f1, f2, f3 = conj(left[0]), conj(left[r1]), conj(left[r2]), conj(left[r3])
        f4, f5 = conj(left[r4]), conj(left[r5])
        for c in range(WIDTH):
            s0[c] = fma(f0, right[c], s0[c])
            s1[c] = fma(f1, right[c], s1[c])
            s2[c] = fma(f2, right[c], s2[c])
            s3[c] = fma(f3, right[c], s3[c])
            s4[c] = fma(f4, right[c], s4[c])
            s5[c] = fma(f5, right[c], s5[c])
    for c in range(WIDTH):
        tile[0, c] = a[i, j + c] - s0[c]
        tile[1, c] = a[i + r1, j + c] - s1[c]
        tile[2, c] = a[i + r2, j + c] - s2[c]
        tile[3, c] = a[i + r3, j + c] - s3[c]
        tile[4, c] = a[i + r4, j + c] - s4[c]
        tile[5, c] = a[i + r5, j + c] - s5[c]


def cholesky_rows(rows: int, n: int, a: Rows) -> bool:
    """The first rows of the upper factor in place of a matrix of n rows, by its upper triangle; elements below it may
    be overwritten. True where there is no factor."""
    if n < WIDTH:
        for k in range(rows):
            corner = real_part(a[k, k])
            if corner <= 0:  # NaN passes on, as LAPACK's results have it
                return True
            root = sqrt(corner)
            a[k, k] = root
            for j in range(k + 1, n):
                a[k, j] /= root
            for i in range(k + 1, n):
                axpy(n - i, conj(a[k, i]), a[k, i:], a[i, i:])
        return False
    for i in range(0, rows, ROWS):
        count, start = (rows - i if rows - i < ROWS else ROWS), (i if i + WIDTH <= n else n - WIDTH)
        off = i - start
        tile: Rows = zeros(ROWS, WIDTH)
        factors: Rows = zeros(ROWS, ROWS)
        roots: Reals = zeros(ROWS)
        inverses: Reals = zeros(ROWS)
        cholesky_tile(i, count, start, a, tile)
        for r in range(count):
            top = real_part(tile[r, off + r])
            if top <= 0:
                return True
            roots[r] = sqrt(top)
            inverses[r] = 1 / roots[r]
            for s in range(r + 1, count):
                tile[r, off + s] *= inverses[r]
                factors[r, s] = conj(tile[r, off + s])
            for s in range(r + 1, count):
                for t in range(s, count):
                    tile[s, off + t] -= factors[r, s] * tile[r, off + t]
        for j in range(i - i % WIDTH, n, WIDTH):
            first = j if j + WIDTH <= n else n - WIDTH  # the last tile begins before its first column
            cholesky_tile(i, count, first, a, tile)
            for r in range(count):
                for c in range(WIDTH):
                    tile[r, c] *= inverses[r]
                for s in range(r + 1, count):
                    for c in range(WIDTH):
                        tile[s, c] = fma(-factors[r, s], tile[r, c], tile[s, c])
                for c in range(j - first, WIDTH):
                    a[i + r, first + c] = tile[r, c]
        for r in range(count):
            a[i + r, i + r] = roots[r]
    return False


def cholesky(n: int, a: Rows, lower: bool) -> bool:
    """The Cholesky factor in place of a matrix, by its lower (or upper) triangle; true where there is none."""
    if HAS_LAPACK and n > 64:
        return potrf(n, a, lower)
    if lower:
        for top in range(0, n, TILE):  # rows of the upper factor lie in memory
            end = top + TILE if top + TILE < n else n
            for j in range(end):
                for i in range(j + 1 if j + 1 > top else top, end):
                    a[j, i] = conj(a[i, j])
    failed = False
    if IS_COMPLEX or n <= 2 * LARGE_BLOCK:
        failed = cholesky_rows(n, n, a)
    else:
        for start in range(0, n, LARGE_BLOCK):
            width = n - start if n - start < LARGE_BLOCK else LARGE_BLOCK
            failed = cholesky_rows(width, n - start, a[start:, start:])
            if failed:
                break
            for i in range(start + width, n, LARGE_BLOCK):
                above = a[start:, i:]
                gemm_minus(n - i if n - i < LARGE_BLOCK else LARGE_BLOCK, width, n - i, a[i:, i:], above.T, above)
    for top in range(0, n, TILE):
        end = top + TILE if top + TILE < n else n
        for j in range(end):
            for i in range(j + 1 if j + 1 > top else top, end):
                a[i, j] = conj(a[j, i]) if lower else 0
                a[j, i] = 0 if lower else a[j, i]
    return failed


def cholesky_inverse(n: int, a: Rows) -> bool:
    """The inverse of a matrix in place of its lower Cholesky factor; true where a number on the diagonal is zero."""
    for i in range(n):
        if a[i, i] == 0:
            return True
    for i in range(n):  # the inverse of the factor
        on = 1 / a[i, i]
        for k in range(i):  # rows above are inverted; a[i, k] is not needed after its own turn
            factor = a[i, k]
            a[i, k] = 0
            axpy(k + 1, factor, a[k], a[i])
        for k in range(i):
            a[i, k] *= on
        a[i, i] = on
    for k in range(n):  # its product with its adjoint: rows above take part of row k in
        corner = conj(a[k, k])
        for i in range(k):
            axpy(i + 1, -conj(a[k, i]), a[k], a[i])
        for j in range(k + 1):
            a[k, j] *= corner
    for i in range(n):
        for j in range(i + 1, n):
            a[i, j] = conj(a[j, i])
    return False


def reflector(n: int, x: Numbers, tau: Numbers) -> Real:
    """v, whose first element is 1, in place of x: (1 - tau v v*)* x has one element that is not 0, the first, which is
    returned and real."""
    alpha, rest = x[0], norm(n - 1, x[1:])
    x[0] = 1
    if rest == 0 and alpha == conj(alpha):
        tau[0] = 0
        return real_part(alpha)
    beta = -copysign(hypot(modulus(alpha), rest), real_part(alpha))
    scale = alpha - beta
    for i in range(1, n):
        x[i] /= scale
    tau[0] = (beta - alpha) / beta
    return beta


def dots_of_four(n: int, v: Numbers, conjugate: bool, x: Rows, sums: Numbers) -> None:
    """The sums of the products of v, or of its conjugate, with four rows."""
    s0: Numbers = zeros(64 // SIZE)
    s1: Numbers = zeros(64 // SIZE)
    s2: Numbers = zeros(64 // SIZE)
    s3: Numbers = zeros(64 // SIZE)
    whole = n - n % (64 // SIZE)
    for i in range(0, whole, 64 // SIZE):
        for lane in range(64 // SIZE):
            factor = conj(v[i + lane]) if conjugate else v[i + lane]
            s0[lane] = fma(factor, x[0, i + lane], s0[lane])
            s1[lane] = fma(factor, x[1, i + lane], s1[lane])
            s2[lane] = fma(factor, x[2, i + lane], s2[lane])
            s3[lane] = fma(factor, x[3, i + lane], s3[lane])
    half = 32 // SIZE
    while half > 0:
        for lane in range(half):
            s0[lane] += s0[lane + half]
            s1[lane] += s1[lane + half]
            s2[lane] += s2[lane + half]
            s3[lane] += s3[lane + half]
        half //= 2
    for i in range(whole, n):
        factor = conj(v[i]) if conjugate else v[i]
        s0[0] += factor * x[0, i]
        s1[0] += factor * x[1, i]
        s2[0] += factor * x[2, i]
        s3[0] += factor * x[3, i]
    sums[0], sums[1], sums[2], sums[3] = s0[0], s1[0], s2[0], s3[0]


@apart
def axpy_of_four(n: int, factors: Numbers, v: Numbers, x0: Numbers, x1: Numbers, x2: Numbers, x3: Numbers) -> None:
    """x - factor v in place of four rows x, with a factor for each."""
    f0, f1, f2, f3 = -factors[0], -factors[1], -factors[2], -factors[3]
    for i in range(n):
        x0[i] = fma(f0, v[i], x0[i])
        x1[i] = fma(f1, v[i], x1[i])
        x2[i] = fma(f2, v[i], x2[i])
        x3[i] = fma(f3, v[i], x3[i])


def reflect(count: int, n: int, tau: Number, v: Numbers, x: Rows) -> None:
    """x - tau (v* x) v in place of some rows x."""
    whole = count - count % 4
    for i in range(0, whole, 4):
        parts: Numbers = zeros(4)
        dots_of_four(n, v, IS_COMPLEX, x[i:], parts)
        for r in range(4):
            parts[r] *= tau
        axpy_of_four(n, parts, v, x[i], x[i + 1], x[i + 2], x[i + 3])
    for i in range(whole, count):
        axpy(n, tau * dot(n, v, IS_COMPLEX, x[i]), v, x[i])


def qr(m: int, n: int, a: Rows, tau: Numbers) -> None:
    """R and the reflectors 1 - tau v v* of A = Q R in place of A, with LAPACK's signs; rows of `a` are columns of A."""
    for k in range(m if m < n else n):
        beta = reflector(m - k, a[k, k:], tau[k:])
        if tau[k] != 0:
            reflect(n - k - 1, m - k, conj(tau[k]), a[k, k:], a[k + 1 :, k:])
        a[k, k] = beta


def qr_basis(m: int, count: int, columns: int, a: Rows, tau: Numbers) -> None:
    """The first columns of Q from its reflectors, each in a row, in place of these. A column of Q replaces a
    reflector after the reflector's last use.
    """
    for j in range(count, columns):
        for i in range(m):
            a[j, i] = i == j
    for k in range(count - 1, -1, -1):
        a[k, k] = 1
        reflect(columns - k - 1, m - k, tau[k], a[k, k:], a[k + 1 :, k:])
        a[k, k] = 1 - tau[k]
        for i in range(k + 1, m):
            a[k, i] *= -tau[k]
        for i in range(k):
            a[k, i] = 0
