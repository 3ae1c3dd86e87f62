"""Eigenvalues, by QL steps; singular values and least squares, by QR steps; solves for matrices of known structure with
their condition numbers.

Sources: G. Golub, C. Van Loan, Matrix Computations, 4th edition, 8.3 and 8.6; N. Higham, ACM TOMS 14 (1988), algorithm
4.1 (the estimate of a norm).
"""

from __future__ import annotations

import math

# fmt: off
from func.backends.routines.dense_factors import (
    cholesky, dot, dots_of_four, lu, lu_solve, norm, qr_basis, reflect, reflector, axpy, triangular,
)
from func.backends.routines.language import (
    EPSILON, IS_COMPLEX, LEAST, MOST, TINY, Int32s, Number, Numbers, Real, Reals, Rows, apart, conj, copysign, fma,
    hypot, ilogb, ldexp, modulus, pivot_size, real_part, reals_of, rows_of, sqrt, zeros,
)
# fmt: on
from func.backends.routines.matrix_parts import copy, exchange


def scale_of(n: int, a: Numbers) -> Real:
    """The power of two by which the largest of some numbers becomes about 1; NaN where one is NaN or infinite."""
    largest: Real = 0
    for i in range(n):
        size = pivot_size(a[i])
        largest = size if size > largest else largest
        if not size < math.inf:
            return math.nan
    most = 120 if EPSILON > 1e-12 else 1000
    exponent = 0 if largest == 0 else -1 - ilogb(largest)
    return ldexp(1, most if exponent > most else -most if exponent < -most else exponent)


def mirror(n: int, a: Rows, lower: bool, hermitian: bool, out: Rows) -> None:
    """A Hermitian, or symmetric, matrix by one triangle."""
    for i in range(n):
        for j in range(i + 1):
            value = a[i, j] if lower else a[j, i]
            other = conj(value) if hermitian else value
            out[i, j] = value if lower else other
            out[j, i] = other if lower else value
        if hermitian:
            out[i, i] = real_part(out[i, i])


@apart
def rotate(n: int, c: Real, s: Real, x: Numbers, y: Numbers) -> None:
    """(c x + s y, c y - s x) in place of (x, y)."""
    for i in range(n):
        left, right = x[i], y[i]
        x[i] = c * left + s * right
        y[i] = c * right - s * left


def tridiagonal(n: int, a: Rows, d: Reals, e: Reals, tau: Numbers, work: Numbers) -> None:
    """T in A = Q T Q*, for a Hermitian matrix, which it overwrites: the diagonal d and the real off-diagonal e.

    Row k has the reflector 1 - tau v v* that is the factor k of Q, behind its diagonal. `work` has room for 3 n
    numbers.
    """
    for k in range(n - 1):
        v, block, m = a[k, k + 1 :], a[k + 1 :, k + 1 :], n - k - 1
        w, w_back, v_back = work, work[n:], work[2 * n :]
        for i in range(m):
            v[i] = conj(v[i])
        d[k] = real_part(a[k, k])
        e[k] = reflector(m, v, tau[k:])
        factor = tau[k]
        if factor == 0:
            continue
        for i in range(m):
            w[i] = factor * dot(m, block[i], False, v)
        axpy(m, factor * dot(m, w, IS_COMPLEX, v) / 2, v, w)
        for i in range(m):
            w_back[i], v_back[i] = conj(w[i]), conj(v[i])
        for i in range(m):
            axpy(m, v[i], w_back, block[i])
            axpy(m, w[i], v_back, block[i])
    d[n - 1] = real_part(a[n - 1, n - 1])
    e[n - 1] = 0


def eigh(n: int, flat: Numbers, w: Reals, v: Rows | None, e: Reals, tau: Numbers, work: Numbers) -> bool:
    """Eigenvalues, ascending, and eigenvectors (the columns of v) of a Hermitian matrix, which is overwritten, by
    implicit shifts of its tridiagonal form. True where an element is not finite, or the shifts do not end."""
    scale, a = scale_of(n * n, flat), rows_of(flat, n)
    if scale != scale:
        return True
    for i in range(n * n):
        flat[i] *= scale
    least = EPSILON / 16 * norm(n * n, flat)
    tridiagonal(n, a, w, e, tau, work)
    if v is not None:
        for j in range(n):  # until the end, the vectors are rows
            for i in range(n):
                v[j, i] = i == j
        for k in range(n - 2, -1, -1):
            if tau[k] != 0:
                reflect(n - k - 1, n - k - 1, tau[k], a[k, k + 1 :], v[k + 1 :, k + 1 :])
    for place in range(n):
        count = 0
        while True:
            m = place
            while m < n - 1 and abs(e[m]) > least and abs(e[m]) > EPSILON * (abs(w[m]) + abs(w[m + 1])):
                m += 1
            if m == place:
                break
            if count == 100:
                return True
            count += 1
            half = (w[place + 1] - w[place]) / (2 * e[place])
            g = w[m] - w[place] + e[place] / (half + copysign(hypot(half, 1), half))
            s: Real = 1
            c: Real = 1
            shift: Real = 0
            i = m - 1
            while i >= place:
                f, off = s * e[i], c * e[i]
                r = hypot(f, g)
                e[i + 1] = r
                if r == 0:
                    w[i + 1] -= shift
                    break
                s, c = f / r, g / r
                g = w[i + 1] - shift
                turn = (w[i] - g) * s + 2 * c * off
                shift = s * turn
                w[i + 1] = g + shift
                g = c * turn - off
                if v is not None:
                    rotate(n, c, -s, v[i], v[i + 1])
                i -= 1
            e[m] = 0
            if i < place:
                w[place] -= shift
                e[place] = g
    for i in range(n):
        least_place = i
        for j in range(i + 1, n):
            least_place = j if w[j] < w[least_place] else least_place
        swapped = w[i]
        w[i] = w[least_place] / scale
        if least_place != i:
            w[least_place] = swapped
            if v is not None:
                exchange(n, v[i], v[least_place])
    if v is not None:
        for i in range(n):
            for j in range(i):
                v[i, j], v[j, i] = v[j, i], v[i, j]
    return False


@apart
def renew_four(
    n: int, x0: Numbers, x1: Numbers, x2: Numbers, x3: Numbers, p: Numbers, y: Numbers, q: Numbers, z: Numbers,
    t: Numbers, total: Numbers,
) -> None:  # fmt: skip
    """Subtract p y + q z from four rows x, and add the sum of their products with t to `total`."""
    p0, p1, p2, p3, q0, q1, q2, q3 = -p[0], -p[1], -p[2], -p[3], -q[0], -q[1], -q[2], -q[3]
    t0, t1, t2, t3 = conj(t[0]), conj(t[1]), conj(t[2]), conj(t[3])
    for i in range(n):
        r0, r1 = fma(q0, z[i], fma(p0, y[i], x0[i])), fma(q1, z[i], fma(p1, y[i], x1[i]))
        r2, r3 = fma(q2, z[i], fma(p2, y[i], x2[i])), fma(q3, z[i], fma(p3, y[i], x3[i]))
        x0[i] = r0
        x1[i] = r1
        x2[i] = r2
        x3[i] = r3
        total[i] = fma(t0, r0, total[i]) + fma(t1, r1, fma(t2, r2, t3 * r3))


@apart
def renew(n: int, x: Numbers, p: Number, y: Numbers, q: Number, z: Numbers, t: Number, total: Numbers) -> None:
    """The same for one row."""
    for i in range(n):
        x[i] = fma(-q, z[i], fma(-p, y[i], x[i]))
        total[i] = fma(conj(t), x[i], total[i])


def bidiagonal(
    m: int, n: int, a: Rows, d: Reals, e: Reals, left: Rows | None, right: Rows | None, tau: Numbers, work: Numbers
) -> None:
    """The diagonal d of an upper bidiagonal matrix B and the superdiagonal e, both real, for a matrix A = Q B P*, of m
    >= n rows, which is overwritten. If they are not None, row k of `left` has the reflector that is factor k of Q, and
    row k + 1 of `right` that of P*. One pass over the rows subtracts the changes by the last reflectors of both sides,
    and sums up the terms of the left's next one. Another pass sums up for that from the right. `tau` has room for 2 n
    numbers, `work` for 3 m + 4 n. Source: G. Howell et al., ACM TOMS 34 (2008)."""
    y, following, back, own, z = work, work[n:], work[2 * n :], work[3 * n :], work[4 * n :]
    before = z
    for i in range(m + 4 * n):
        work[i] = 0
    for k in range(n):
        behind, count = k + 1, n - k - 1
        v = left[k] if left is not None else z[m + k % 2 * m :]
        u = right[behind] if right is not None and count > 0 else own
        for i in range(k, m):
            v[i] = a[i, k] - before[i] * y[k] - z[i] * back[k]
        d[k] = reflector(m - k, v[k:], tau[k:])
        if count == 0:
            break
        for j in range(behind, n):
            following[j] = 0
        for i in range(k, m - 3, 4):
            renew_four(
                count, a[i, behind:], a[i + 1, behind:], a[i + 2, behind:], a[i + 3, behind:], before[i:], y[behind:],
                z[i:], back[behind:], v[i:], following[behind:],
            )  # fmt: skip
        for i in range(k + (m - k) // 4 * 4, m):
            renew(count, a[i, behind:], before[i], y[behind:], z[i], back[behind:], v[i], following[behind:])
        for j in range(behind, n):
            following[j] *= conj(tau[k])
            u[j] = conj(a[k, j] - following[j])
        e[k] = reflector(count, u[behind:], tau[n + k :])
        factor, across = tau[n + k], dot(count, following[behind:], False, u[behind:])
        for j in range(behind, n):
            back[j] = conj(u[j])
        for i in range(behind, m - 3, 4):
            dots_of_four(count, u[behind:], False, a[i:, behind:], z[i:])
        for i in range(behind + (m - behind) // 4 * 4, m):
            z[i] = dot(count, a[i, behind:], False, u[behind:])
        for i in range(behind, m):
            z[i] = factor * (z[i] - v[i] * across)
        y, following = following, y
        before = v


def rotation(f: Real, g: Real, turn: Reals) -> Real:
    """The length of (f, g), and the cosine and sine of the rotation that turns it to the first axis."""
    square = f * f + g * g
    length = sqrt(square) if LEAST < square < MOST else hypot(f, g)
    turn[0], turn[1] = (1 if length == 0 else f / length), (0 if length == 0 else g / length)
    return length


def smaller(f: Real, g: Real, h: Real) -> Real:
    """The smaller singular value of a triangle (f, g; 0, h). Source: LAPACK's dlas2."""
    first, second, off = abs(f), abs(h), abs(g)
    low, high = (first if first < second else second), (second if first < second else first)
    if low == 0:
        return 0
    if off < high:
        total, rest, square = 1 + low / high, (high - low) / high, off / high * (off / high)
        return low * (2 / (sqrt(total * total + square) + sqrt(rest * rest + square)))
    share = high / off
    if share == 0:
        return low * high / off
    part, gap = (1 + low / high) * share, (high - low) / high * share
    return 2 * (low * (1 / (sqrt(1 + part * part) + sqrt(1 + gap * gap)))) * share


def diagonalize(n: int, d: Reals, e: Reals, left: Rows | None, m: int, right: Rows | None) -> bool:
    """The singular values of an upper bidiagonal matrix with the diagonal d and the superdiagonal e, in place of d, in
    no order and of any sign. The n rows of `left` and `right`, of m and n numbers, are the columns of Q and P, and
    become the singular vectors. The shift is zero where another one would spoil small values. Steps go from the larger
    end to the smaller one; upwards they work on the transpose in reverse order. True where steps do not end.
    J. Demmel, W. Kahan, SIAM J. Sci. Stat. Comput. 11 (1990)."""
    tolerance = 4 * EPSILON
    bound = abs(d[0])
    smallest = bound
    for k in range(1, n):
        if bound > 0:
            bound = abs(d[k]) * (bound / (bound + abs(e[k - 1])))
            smallest = bound if bound < smallest else smallest
    relative, absolute = tolerance * (smallest / sqrt(Real(n))), 6 * Real(n) * Real(n) * TINY
    least = relative if relative > absolute else absolute
    last, old_first, old_last, work = n - 1, n, -1, 12 * n * n + 100
    down = True
    near: Reals = zeros(2)
    far: Reals = zeros(2)
    while last > 0:
        first, largest = last, abs(d[last])
        while first > 0 and abs(e[first - 1]) > least:
            size, other = abs(d[first - 1]), abs(e[first - 1])
            largest = size if size > largest else largest
            largest = other if other > largest else largest
            first -= 1
        if first > 0:
            e[first - 1] = 0
        if first == last:
            last -= 1
            continue
        if first > old_last or last < old_first:
            down = abs(d[first]) >= abs(d[last])
        old_first, old_last = first, last
        count, step = last - first, (1 if down else -1)
        start, edge = (first if down else last), (first if down else last - 1)
        end, end_edge = start + step * count, edge + step * (count - 1)
        if abs(e[end_edge]) <= tolerance * abs(d[end]):
            e[end_edge] = 0
            continue
        bound = abs(d[start])
        smallest = bound
        splits = False
        for k in range(count):
            size = abs(e[edge + k * step])
            if size <= tolerance * bound:
                e[edge + k * step] = 0
                splits = True
                break
            bound = abs(d[start + (k + 1) * step]) * (bound / (bound + size))
            smallest = bound if bound < smallest else smallest
        if splits:
            continue
        work -= count
        if work < 0:
            return True
        shift: Real = 0
        if Real(n) * tolerance * (smallest / largest) > EPSILON:
            shift = smaller(d[end - step], e[end_edge], d[end])
            share = shift / abs(d[start])
            shift = 0 if share * share < EPSILON else shift
        near[0], near[1], far[0], far[1] = 1, 0, 1, 0
        f = 0 if shift == 0 else (abs(d[start]) - shift) * (copysign(1, d[start]) + shift / d[start])
        g = e[edge]
        for k in range(count):
            here, there, off = start + k * step, start + k * step + step, edge + k * step
            length = rotation(d[here] * near[0], e[off], near) if shift == 0 else rotation(f, g, near)
            if k > 0:
                e[off - step] = far[1] * length if shift == 0 else length
            if shift == 0:
                d[here] = rotation(far[0] * length, d[there] * near[1], far)
            else:
                f = near[0] * d[here] + near[1] * e[off]
                e[off] = near[0] * e[off] - near[1] * d[here]
                g = near[1] * d[there]
                d[there] *= near[0]
                d[here] = rotation(f, g, far)
                f = far[0] * e[off] + far[1] * d[there]
                d[there] = far[0] * d[there] - far[1] * e[off]
                if k < count - 1:
                    g = far[1] * e[off + step]
                    e[off + step] *= far[0]
            if left is not None and right is not None:
                c, s = (near[0] if down else far[0]), (near[1] if down else far[1])
                rotate(n, c, s, right[here], right[there])
                c, s = (far[0] if down else near[0]), (far[1] if down else near[1])
                rotate(m, c, s, left[here], left[there])
        if shift == 0:
            rest = d[end] * near[0]
            d[end] = rest * far[0]
            e[end_edge] = rest * far[1]
        else:
            e[end_edge] = f
    return False


def singular(
    m: int, n: int, flat: Numbers, columns: int, left: Rows | None, right: Rows | None, s: Reals, work: Numbers
) -> bool:
    """The singular values, descending, in `s`, of a matrix of m >= n rows, which it overwrites. Where they are not
    None, the rows of `left` (`columns` of them, n or m) and `right` (n) are the left and right singular vectors. `work`
    has room for 3 m + 7 n numbers. True where an element is not finite, or steps do not end.
    """
    scale = scale_of(m * n, flat)
    if scale != scale:
        return True
    for i in range(m * n):
        flat[i] *= scale
    e, tau = reals_of(work), work[n:]
    bidiagonal(m, n, rows_of(flat, n), s, e, left, right, tau, tau[2 * n :])
    if left is not None and right is not None:
        qr_basis(m, n, columns, left, tau)
        for i in range(n):
            right[0, i] = i == 0
            right[i, 0] = i == 0
        qr_basis(n - 1, n - 1, n - 1, right[1:, 1:], tau[n:])
    failed = diagonalize(n, s, e, left, m, right)
    for j in range(n):
        if s[j] < 0 and right is not None:
            for i in range(n):
                right[j, i] = -right[j, i]
        s[j] = abs(s[j])
    for j in range(n):
        place = j
        for i in range(j + 1, n):
            place = i if s[i] > s[place] else place
        largest = s[place]
        s[place] = s[j]
        s[j] = largest / scale
        if place != j and left is not None and right is not None:
            exchange(m, left[j], left[place])
            exchange(n, right[j], right[place])
    return failed


def least_squares(
    m: int, n: int, k: int, a: Rows, b: Rows, u: Rows, v: Rows, s: Reals, limit: Real, x: Rows, rest: Reals
) -> None:
    """The shortest least-squares solution x (of n rows and k columns), by A's singular vectors, or those of its adjoint
    if A has fewer rows than columns. Singular values up to `limit` times the largest count as zero; `rest` has the sums
    of squared residuals.
    """
    is_tall = m >= n
    for i in range(n):
        for c in range(k):
            x[i, c] = 0
    for j in range(n if is_tall else m):
        if not (s[j] > limit * s[0] and s[j] > 0):
            break
        left, right = (u[j] if is_tall else v[j]), (v[j] if is_tall else u[j])
        for c in range(k):
            part = dot(m, left, IS_COMPLEX, b[0:, c]) / s[j]
            axpy(n, -part, right, x[0:, c])
    for c in range(k):
        rest[c] = 0
    for i in range(m):
        for c in range(k):
            size = modulus(b[i, c] - dot(n, a[i], False, x[0:, c]))
            rest[c] += size * size


def factored_solve(n: int, k: int, kind: int, adjoint: bool, a: Rows, pivots: Int32s, b: Rows) -> None:
    """The solution of A X = B, or of its adjoint, in place of B, from the factors of A by `solve_known`. They are LU
    factors (kind 0), the lower Cholesky factor (1), or a triangle (2 an upper, 3 a lower one)."""
    conjugate = adjoint and IS_COMPLEX
    if kind == 0:
        lu_solve(n, k, a, pivots, adjoint, conjugate, b)
    elif kind == 1:
        triangular(n, k, a, True, False, False, b)
        triangular(n, k, a.T, False, False, IS_COMPLEX, b)
    elif adjoint:
        triangular(n, k, a.T, kind == 2, False, conjugate, b)
    else:
        triangular(n, k, a, kind == 3, False, False, b)


def inverse_norm(n: int, kind: int, a: Rows, pivots: Int32s, x: Numbers, y: Numbers) -> Real:
    """An estimate of the largest sum of moduli along a column of the inverse."""
    best: Real = 0
    place = -1
    for step in range(5):
        for i in range(n):
            x[i] = 1 / Real(n) if place < 0 else Real(i == place)
        factored_solve(n, 1, kind, False, a, pivots, rows_of(x, 1))
        total: Real = 0
        for i in range(n):
            size = modulus(x[i])
            total += size
            y[i] = x[i] / size if size > 0 else 1
        if total != total or total == math.inf:
            return total
        if step > 0 and not total > best:
            break
        best = total
        factored_solve(n, 1, kind, True, a, pivots, rows_of(y, 1))
        following = 0
        for i in range(1, n):
            following = i if modulus(y[i]) > modulus(y[following]) else following
        if following == place or n == 1:
            break
        place = following
    for i in range(n):  # an arbitrary vector, for which no cancellation in A is likely
        x[i] = (1 if i % 2 == 0 else -1) * (1 + Real(i) / Real(n - 1 if n > 1 else 1))
    factored_solve(n, 1, kind, False, a, pivots, rows_of(x, 1))
    whole: Real = 0
    for i in range(n):
        whole += modulus(x[i])
    whole = 2 * whole / (3 * Real(n))
    return whole if whole > best or whole != whole else best


def column_norm(n: int, a: Rows) -> Real:
    """The largest sum of moduli along a column."""
    largest: Real = 0
    for j in range(n):
        total: Real = 0
        for i in range(n):
            total += modulus(a[i, j])
        largest = total if total > largest or total != total else largest
    return largest


def solve_known(n: int, k: int, kind: int, a: Rows, b: Rows, x: Rows, pivots: Int32s, space: Numbers) -> bool:
    """The solution X of A X = B; `a` is a copy of A, of all its elements, and is overwritten. True where A is singular,
    has no Cholesky factor (kind 1), or is singular to working precision."""
    size = column_norm(n, a)
    failed = False
    if kind == 0:
        failed = lu(n, n, a, pivots)
    elif kind == 1:
        failed = cholesky(n, a, True)
    else:
        for i in range(n):
            failed = failed or a[i, i] == 0
    if failed:
        return True
    inverse = inverse_norm(n, kind, a, pivots, space, space[n:])
    copy(n, k, b, x)
    factored_solve(n, k, kind, False, a, pivots, x)
    return not 1 / inverse / size >= 2 * EPSILON
