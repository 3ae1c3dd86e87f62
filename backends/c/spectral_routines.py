"""Eigenvalues as functions of C, by QL steps; singular values and least squares, by QR steps; solves for matrices of
known structure with their condition numbers.

The texts have the places of `factorizations`. Sources: G. Golub, C. Van Loan, Matrix Computations, 4th edition, 8.3 and
8.6; N. Higham, ACM TOMS 14 (1988), algorithm 4.1 (the estimate of a norm).
"""

SCALE = """\
/* The power of two by which the largest of some numbers becomes about 1; NaN where one is NaN or infinite. */
static REAL func_scale_TYPE(ptrdiff_t n, const TYPE *a) {
    REAL largest = 0;
    for (ptrdiff_t i = 0; i < n; ++i) {
        const REAL size = SIZE(a[i]);
        largest = size > largest ? size : largest;
        if (!(size < INFINITY)) {
            return NAN;
        }
    }
    int exponent;
    FREXP(largest, &exponent);
    const int most = sizeof(REAL) == 8 ? 1000 : 120;
    return LDEXP(1, largest == 0 ? 0 : -exponent > most ? most : -exponent < -most ? -most : -exponent);
}"""

MIRROR = """\
/* A Hermitian, or symmetric, matrix in `out`, row after row, by one triangle. */
static void func_mirror_TYPE(ptrdiff_t n, const TYPE *a, ptrdiff_t stride, bool lower, bool hermitian,
                             TYPE *out) {
    for (ptrdiff_t i = 0; i < n; ++i) {
        for (ptrdiff_t j = 0; j <= i; ++j) {
            const TYPE value = lower ? a[i * stride + j] : a[j * stride + i], other = hermitian ? CONJ(value) : value;
            out[i * n + j] = lower ? value : other;
            out[j * n + i] = lower ? other : value;
        }
        if (hermitian) {
            out[i * n + i] = RE(out[i * n + i]);
        }
    }
}"""

ROTATE = """\
/* (c x + s y, c y - s x) in place of (x, y). */
static void func_rotate_TYPE(ptrdiff_t n, REAL c, REAL s, TYPE *restrict x, TYPE *restrict y) {
    for (ptrdiff_t i = 0; i < n; ++i) {
        const TYPE left = x[i], right = y[i];
        x[i] = c * left + s * right;
        y[i] = c * right - s * left;
    }
}"""

TRIDIAGONAL = """\
/* The diagonal d and the real numbers e beside it of T in A = Q T Q*, for a Hermitian matrix, which is overwritten: row
   k has the reflector 1 - tau v v* that is the factor k of Q, behind its diagonal. `work` has room for 3 n numbers. */
static void func_tridiagonal_TYPE(ptrdiff_t n, TYPE *a, REAL *d, REAL *e, TYPE *tau, TYPE *work) {
    for (ptrdiff_t k = 0; k < n - 1; ++k) {
        TYPE *v = a + k * n + k + 1, *block = a + (k + 1) * (n + 1);
        TYPE *w = work, *w_back = work + n, *v_back = work + 2 * n;
        const ptrdiff_t m = n - k - 1;
        for (ptrdiff_t i = 0; i < m; ++i) {
            v[i] = CONJ(v[i]);
        }
        d[k] = RE(v[-1]);
        e[k] = func_reflector_TYPE(m, v, tau + k);
        const TYPE factor = tau[k];
        if (factor == 0) {
            continue;
        }
        for (ptrdiff_t i = 0; i < m; ++i) {
            w[i] = factor * func_inner_TYPE(m, block + i * n, 1, false, v, 1);
        }
        func_take_TYPE(m, factor * func_inner_TYPE(m, w, 1, COMPLEX, v, 1) / 2, v, 1, w, 1);
        for (ptrdiff_t i = 0; i < m; ++i) {
            w_back[i] = CONJ(w[i]);
            v_back[i] = CONJ(v[i]);
        }
        for (ptrdiff_t i = 0; i < m; ++i) {
            func_take_TYPE(m, v[i], w_back, 1, block + i * n, 1);
            func_take_TYPE(m, w[i], v_back, 1, block + i * n, 1);
        }
    }
    d[n - 1] = RE(a[n * n - 1]);
    e[n - 1] = 0;
}"""

EIGH = """\
/* Eigenvalues, ascending, and eigenvectors (the columns of v) of a Hermitian matrix, which is overwritten, by implicit
   shifts of its tridiagonal form. True where an element is not finite, or the shifts do not end. */
static bool func_eigh_TYPE(ptrdiff_t n, TYPE *a, REAL *w, TYPE *v, ptrdiff_t stride, REAL *e, TYPE *tau, TYPE *work) {
    const REAL scale = func_scale_TYPE(n * n, a);
    if (scale != scale) {
        return true;
    }
    for (ptrdiff_t i = 0; i < n * n; ++i) {
        a[i] *= scale;
    }
    const REAL least = EPSILON / 16 * func_norm_TYPE(n * n, a, 1);
    func_tridiagonal_TYPE(n, a, w, e, tau, work);
    for (ptrdiff_t j = 0; v != NULL && j < n; ++j) { /* until the end, the vectors are rows */
        for (ptrdiff_t i = 0; i < n; ++i) {
            v[j * stride + i] = i == j;
        }
    }
    for (ptrdiff_t k = n - 2; v != NULL && k >= 0; --k) {
        const TYPE *reflector = a + k * n + k + 1;
        if (tau[k] != 0) {
            func_reflect_TYPE(n - k - 1, n - k - 1, tau[k], reflector, v + (k + 1) * (stride + 1), stride);
        }
    }
    for (ptrdiff_t l = 0; l < n; ++l) {
        for (int step = 0;; ++step) {
            ptrdiff_t m = l;
            for (; m < n - 1 && REALABS(e[m]) > least; ++m) {
                if (REALABS(e[m]) <= EPSILON * (REALABS(w[m]) + REALABS(w[m + 1]))) {
                    break;
                }
            }
            if (m == l) {
                break;
            }
            if (step == 100) {
                return true;
            }
            const REAL half = (w[l + 1] - w[l]) / (2 * e[l]);
            REAL g = w[m] - w[l] + e[l] / (half + COPYSIGN(HYPOT(half, 1), half)), s = 1, c = 1, shift = 0;
            ptrdiff_t i = m - 1;
            for (; i >= l; --i) {
                const REAL f = s * e[i], beside = c * e[i], r = HYPOT(f, g);
                e[i + 1] = r;
                if (r == 0) {
                    w[i + 1] -= shift;
                    break;
                }
                s = f / r;
                c = g / r;
                g = w[i + 1] - shift;
                const REAL turn = (w[i] - g) * s + 2 * c * beside;
                shift = s * turn;
                w[i + 1] = g + shift;
                g = c * turn - beside;
                if (v != NULL) {
                    func_rotate_TYPE(n, c, -s, v + i * stride, v + (i + 1) * stride);
                }
            }
            e[m] = 0;
            if (i < l) {
                w[l] -= shift;
                e[l] = g;
            }
        }
    }
    for (ptrdiff_t i = 0; i < n; ++i) {
        ptrdiff_t place = i;
        for (ptrdiff_t j = i + 1; j < n; ++j) {
            place = w[j] < w[place] ? j : place;
        }
        const REAL kept = w[i];
        w[i] = w[place] / scale;
        if (place != i) {
            w[place] = kept;
            for (ptrdiff_t k = 0; v != NULL && k < n; ++k) {
                const TYPE element = v[i * stride + k];
                v[i * stride + k] = v[place * stride + k];
                v[place * stride + k] = element;
            }
        }
    }
    for (ptrdiff_t i = 0; v != NULL && i < n; ++i) {
        for (ptrdiff_t j = 0; j < i; ++j) {
            const TYPE element = v[i * stride + j];
            v[i * stride + j] = v[j * stride + i];
            v[j * stride + i] = element;
        }
    }
    return false;
}"""

RENEW_FOUR = """\
/* Of four rows x, x - p y - q z in place of them; the sum of their products with t is added to `sum`. The numbers of
   the rows are next to each other. */
static void func_renew_four_TYPE(ptrdiff_t n, TYPE *restrict x0, TYPE *restrict x1, TYPE *restrict x2,
                                 TYPE *restrict x3, const TYPE *restrict p, const TYPE *restrict y,
                                 const TYPE *restrict q, const TYPE *restrict z, const TYPE *restrict t,
                                 TYPE *restrict sum) {
    const TYPE p0 = -p[0], p1 = -p[1], p2 = -p[2], p3 = -p[3], q0 = -q[0], q1 = -q[1], q2 = -q[2], q3 = -q[3];
    const TYPE t0 = CONJ(t[0]), t1 = CONJ(t[1]), t2 = CONJ(t[2]), t3 = CONJ(t[3]);
    for (ptrdiff_t i = 0; i < n; ++i) {
        const TYPE r0 = PLUS(q0, z[i], PLUS(p0, y[i], x0[i])), r1 = PLUS(q1, z[i], PLUS(p1, y[i], x1[i]));
        const TYPE r2 = PLUS(q2, z[i], PLUS(p2, y[i], x2[i])), r3 = PLUS(q3, z[i], PLUS(p3, y[i], x3[i]));
        x0[i] = r0;
        x1[i] = r1;
        x2[i] = r2;
        x3[i] = r3;
        sum[i] = PLUS(t0, r0, sum[i]) + PLUS(t1, r1, PLUS(t2, r2, t3 * r3));
    }
}"""

RENEW = """\
/* The same for one row. */
static void func_renew_TYPE(ptrdiff_t n, TYPE *restrict x, TYPE p, const TYPE *restrict y, TYPE q,
                            const TYPE *restrict z, TYPE t, TYPE *restrict sum) {
    for (ptrdiff_t i = 0; i < n; ++i) {
        x[i] = PLUS(-q, z[i], PLUS(-p, y[i], x[i]));
        sum[i] = PLUS(CONJ(t), x[i], sum[i]);
    }
}"""

BIDIAGONAL = """\
/* The diagonal d of an upper bidiagonal matrix B and the numbers e beside it, all real, for a matrix A = Q B P*, of
   m >= n rows, which is overwritten. Where they are not NULL, row k of `left` has the reflector that is factor k of Q,
   and row k + 1 of `right` that of P. One pass over the rows takes off what the last reflectors of both sides change,
   and sums up what the next one from the left needs; another one sums up for that from the right. `tau` has room for
   2 n numbers, `work` for 3 m + 4 n. Source: G. Howell et al., ACM TOMS 34 (2008). */
static void func_bidiagonal_TYPE(ptrdiff_t m, ptrdiff_t n, TYPE *a, REAL *d, REAL *e, TYPE *left, TYPE *right,
                                 TYPE *tau, TYPE *work) {
    TYPE *y = work, *next = work + n, *const back = work + 2 * n, *const own = work + 3 * n, *const z = work + 4 * n;
    const TYPE *before = z;
    for (ptrdiff_t i = 0; i < m + 4 * n; ++i) {
        work[i] = 0;
    }
    for (ptrdiff_t k = 0; k < n; ++k) {
        const ptrdiff_t behind = k + 1, count = n - behind;
        TYPE *const v = left != NULL ? left + k * m : z + m + (k % 2) * m;
        TYPE *const u = right != NULL && count > 0 ? right + behind * n : own;
        TYPE *const row = a + k * n;
        for (ptrdiff_t i = k; i < m; ++i) {
            v[i] = a[i * n + k] - before[i] * y[k] - z[i] * back[k];
        }
        d[k] = func_reflector_TYPE(m - k, v + k, tau + k);
        if (count == 0) {
            break;
        }
        for (ptrdiff_t j = behind; j < n; ++j) {
            next[j] = 0;
        }
        ptrdiff_t i = k;
        for (; i + 4 <= m; i += 4) {
            TYPE *const x = a + i * n + behind;
            func_renew_four_TYPE(count, x, x + n, x + 2 * n, x + 3 * n, before + i, y + behind, z + i, back + behind,
                                 v + i, next + behind);
        }
        for (; i < m; ++i) {
            func_renew_TYPE(count, a + i * n + behind, before[i], y + behind, z[i], back + behind, v[i], next + behind);
        }
        for (ptrdiff_t j = behind; j < n; ++j) {
            next[j] *= CONJ(tau[k]);
            u[j] = CONJ(row[j] - next[j]);
        }
        e[k] = func_reflector_TYPE(count, u + behind, tau + n + k);
        const TYPE factor = tau[n + k], across = func_inner_TYPE(count, next + behind, 1, false, u + behind, 1);
        for (ptrdiff_t j = behind; j < n; ++j) {
            back[j] = CONJ(u[j]);
        }
        for (i = behind; i + 4 <= m; i += 4) {
            func_inner_of_four_TYPE(count, u + behind, false, a + i * n + behind, n, z + i);
        }
        for (; i < m; ++i) {
            z[i] = func_inner_TYPE(count, a + i * n + behind, 1, false, u + behind, 1);
        }
        for (i = behind; i < m; ++i) {
            z[i] = factor * (z[i] - v[i] * across);
        }
        TYPE *const kept = y;
        y = next;
        next = kept;
        before = v;
    }
}"""

ROTATION = """\
/* The length of (f, g), and the rotation that turns it to the first axis. */
static REAL func_rotation_TYPE(REAL f, REAL g, REAL *c, REAL *s) {
    const REAL square = f * f + g * g;
    const REAL length = square > LEAST && square < MOST ? SQRT(square) : HYPOT(f, g);
    if (length == 0) {
        *c = 1;
        *s = 0;
        return 0;
    }
    *c = f / length;
    *s = g / length;
    return length;
}"""

SMALLER = """\
/* The smaller singular value of a triangle (f, g; 0, h). Source: LAPACK's dlas2. */
static REAL func_smaller_TYPE(REAL f, REAL g, REAL h) {
    const REAL first = REALABS(f), second = REALABS(h), beside = REALABS(g);
    const REAL low = first < second ? first : second, high = first < second ? second : first;
    if (low == 0) {
        return 0;
    }
    if (beside < high) {
        const REAL sum = 1 + low / high, rest = (high - low) / high, square = (beside / high) * (beside / high);
        return low * (2 / (SQRT(sum * sum + square) + SQRT(rest * rest + square)));
    }
    const REAL share = high / beside;
    if (share == 0) {
        return low * high / beside;
    }
    const REAL sum = (1 + low / high) * share, rest = (high - low) / high * share;
    return 2 * (low * (1 / (SQRT(1 + sum * sum) + SQRT(1 + rest * rest)))) * share;
}"""

DIAGONALIZE = """\
/* The singular values of an upper bidiagonal matrix, of which d is the diagonal and e is beside it, in place of d, in
   no order and of any sign; the n rows of `left` and `right`, of m and n numbers, are the columns of Q and P, and
   become the singular vectors. The shift is zero where another one would spoil small values. Steps go from the larger
   end to the smaller one; upwards they work on the transpose in reverse order. True where steps do not end. 
   J. Demmel, W. Kahan, SIAM J. Sci. Stat. Comput. 11 (1990). */
static bool func_diagonalize_TYPE(ptrdiff_t n, REAL *d, REAL *e, TYPE *left, ptrdiff_t m, TYPE *right) {
    const REAL tolerance = 4 * EPSILON;
    REAL bound = REALABS(d[0]), smallest = bound;
    for (ptrdiff_t k = 1; k < n && bound > 0; ++k) {
        bound = REALABS(d[k]) * (bound / (bound + REALABS(e[k - 1])));
        smallest = bound < smallest ? bound : smallest;
    }
    const REAL relative = tolerance * (smallest / SQRT((REAL)n)), absolute = 6 * (REAL)n * (REAL)n * TINY;
    const REAL least = relative > absolute ? relative : absolute;
    ptrdiff_t last = n - 1, old_first = n, old_last = -1, work = 12 * n * n + 100;
    bool down = true;
    while (last > 0) {
        ptrdiff_t first = last;
        REAL largest = REALABS(d[last]);
        for (; first > 0 && REALABS(e[first - 1]) > least; --first) {
            const REAL one = REALABS(d[first - 1]), other = REALABS(e[first - 1]);
            largest = one > largest ? one : largest;
            largest = other > largest ? other : largest;
        }
        if (first > 0) {
            e[first - 1] = 0;
        }
        if (first == last) {
            --last;
            continue;
        }
        if (first > old_last || last < old_first) {
            down = REALABS(d[first]) >= REALABS(d[last]);
        }
        old_first = first;
        old_last = last;
        const ptrdiff_t count = last - first, step = down ? 1 : -1;
        REAL *const on = down ? d + first : d + last, *const beside = down ? e + first : e + last - 1;
        REAL *const end = on + step * count, *const end_beside = beside + step * (count - 1);
        if (REALABS(*end_beside) <= tolerance * REALABS(*end)) {
            *end_beside = 0;
            continue;
        }
        bound = REALABS(*on);
        smallest = bound;
        bool splits = false;
        for (ptrdiff_t k = 0; k < count && !splits; ++k) {
            const REAL size = REALABS(beside[k * step]);
            if (size <= tolerance * bound) {
                beside[k * step] = 0;
                splits = true;
            }
            bound = REALABS(on[(k + 1) * step]) * (bound / (bound + size));
            smallest = bound < smallest ? bound : smallest;
        }
        if (splits) {
            continue;
        }
        work -= count;
        if (work < 0) {
            return true;
        }
        REAL shift = 0;
        if ((REAL)n * tolerance * (smallest / largest) > EPSILON) {
            shift = func_smaller_TYPE(*(end - step), *end_beside, *end);
            const REAL share = shift / REALABS(*on);
            shift = share * share < EPSILON ? 0 : shift;
        }
        TYPE *near = down ? right : left, *far = down ? left : right;
        const ptrdiff_t place = down ? first : last, near_length = down ? n : m, far_length = down ? m : n;
        REAL c = 1, s = 0, far_c = 1, far_s = 0;
        REAL f = shift == 0 ? 0 : (REALABS(*on) - shift) * (COPYSIGN(1, *on) + shift / *on), g = *beside;
        for (ptrdiff_t k = 0; k < count; ++k) {
            REAL *const here = on + k * step, *const there = here + step, *const edge = beside + k * step;
            if (shift == 0) {
                const REAL length = func_rotation_TYPE(*here * c, *edge, &c, &s);
                if (k > 0) {
                    edge[-step] = far_s * length;
                }
                *here = func_rotation_TYPE(far_c * length, *there * s, &far_c, &far_s);
            } else {
                const REAL length = func_rotation_TYPE(f, g, &c, &s);
                if (k > 0) {
                    edge[-step] = length;
                }
                f = c * *here + s * *edge;
                *edge = c * *edge - s * *here;
                g = s * *there;
                *there *= c;
                *here = func_rotation_TYPE(f, g, &far_c, &far_s);
                f = far_c * *edge + far_s * *there;
                *there = far_c * *there - far_s * *edge;
                if (k < count - 1) {
                    g = far_s * edge[step];
                    edge[step] *= far_c;
                }
            }
            if (near != NULL) {
                const ptrdiff_t row = place + k * step;
                func_rotate_TYPE(near_length, c, s, near + row * near_length, near + (row + step) * near_length);
                func_rotate_TYPE(far_length, far_c, far_s, far + row * far_length, far + (row + step) * far_length);
            }
        }
        if (shift == 0) {
            const REAL rest = *end * c;
            *end = rest * far_c;
            *end_beside = rest * far_s;
        } else {
            *end_beside = f;
        }
    }
    return false;
}"""

SINGULAR = """\
/* The singular values, descending, in `s`, of a matrix of m >= n rows, which is overwritten. Where they are not NULL,
   the rows of `left` (`columns` of them, n or m) and `right` (n) are the left and right singular vectors. `work` has
   room for 3 m + 7 n numbers. True where an element is not finite, or steps do not end. */
static bool func_singular_TYPE(ptrdiff_t m, ptrdiff_t n, TYPE *a, ptrdiff_t columns, TYPE *left, TYPE *right, REAL *s,
                               TYPE *work) {
    const REAL scale = func_scale_TYPE(m * n, a);
    if (scale != scale) {
        return true;
    }
    for (ptrdiff_t i = 0; i < m * n; ++i) {
        a[i] *= scale;
    }
    REAL *const e = (REAL *)(void *)work;
    TYPE *const tau = work + n, *const space = tau + 2 * n;
    func_bidiagonal_TYPE(m, n, a, s, e, left, right, tau, space);
    if (left != NULL) {
        func_qr_basis_TYPE(m, n, columns, left, m, tau);
        for (ptrdiff_t i = 0; i < n; ++i) {
            right[i] = i == 0;
            right[i * n] = i == 0;
        }
        func_qr_basis_TYPE(n - 1, n - 1, n - 1, right + n + 1, n, tau + n);
    }
    const bool failed = func_diagonalize_TYPE(n, s, e, left, m, right);
    for (ptrdiff_t j = 0; j < n; ++j) {
        for (ptrdiff_t i = 0; s[j] < 0 && right != NULL && i < n; ++i) {
            right[j * n + i] = -right[j * n + i];
        }
        s[j] = REALABS(s[j]);
    }
    for (ptrdiff_t j = 0; j < n; ++j) {
        ptrdiff_t place = j;
        for (ptrdiff_t i = j + 1; i < n; ++i) {
            place = s[i] > s[place] ? i : place;
        }
        const REAL largest = s[place];
        s[place] = s[j];
        s[j] = largest / scale;
        if (place != j && left != NULL) {
            func_exchange_TYPE(m, left + j * m, left + place * m, 1);
            func_exchange_TYPE(n, right + j * n, right + place * n, 1);
        }
    }
    return failed;
}"""

ADJOINT = """\
static void func_adjoint_TYPE(ptrdiff_t m, ptrdiff_t n, const TYPE *from, ptrdiff_t down, ptrdiff_t across, TYPE *to,
                              ptrdiff_t to_down, ptrdiff_t to_across) {
    for (ptrdiff_t i = 0; i < m; ++i) {
        for (ptrdiff_t j = 0; j < n; ++j) {
            to[j * to_down + i * to_across] = CONJ(from[i * down + j * across]);
        }
    }
}"""

LEAST_SQUARES = """\
/* The solution x (of n rows and k columns) of least squares, of those the shortest, by the singular vectors of A where
   it has at least as many rows as columns (`tall`), or of its adjoint. Singular values up to `limit` times the largest
   count as zero; `rest` has the sums of squared residuals. */
static void func_least_squares_TYPE(ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, const TYPE *a, ptrdiff_t stride,
                                    const TYPE *b, ptrdiff_t b_stride, const TYPE *u, const TYPE *v, const REAL *s,
                                    REAL limit, TYPE *x, ptrdiff_t x_stride, REAL *rest) {
    const bool tall = m >= n;
    const ptrdiff_t count = tall ? n : m;
    for (ptrdiff_t i = 0; i < n; ++i) {
        for (ptrdiff_t c = 0; c < k; ++c) {
            x[i * x_stride + c] = 0;
        }
    }
    for (ptrdiff_t j = 0; j < count && s[j] > limit * s[0] && s[j] > 0; ++j) {
        const TYPE *left = tall ? u + j * m : v + j * m, *right = tall ? v + j * n : u + j * n;
        for (ptrdiff_t c = 0; c < k; ++c) {
            const TYPE part = func_inner_TYPE(m, left, 1, COMPLEX, b + c, b_stride) / s[j];
            func_take_TYPE(n, -part, right, 1, x + c, x_stride);
        }
    }
    for (ptrdiff_t c = 0; c < k; ++c) {
        rest[c] = 0;
    }
    for (ptrdiff_t i = 0; i < m; ++i) {
        for (ptrdiff_t c = 0; c < k; ++c) {
            const REAL size = ABS(b[i * b_stride + c] - func_inner_TYPE(n, a + i * stride, 1, false, x + c, x_stride));
            rest[c] += size * size;
        }
    }
}"""

FACTORED_SOLVE = """\
/* The solution of A X = B, or of its adjoint, in place of B by what func_solve_known has of A: LU factors (kind 0), the
   lower Cholesky factor (1), or a triangle (2 an upper, 3 a lower one). */
static void func_factored_solve_TYPE(ptrdiff_t n, ptrdiff_t k, int kind, bool adjoint, const TYPE *a,
                                     const int32_t *pivots, TYPE *b, ptrdiff_t stride) {
    const bool conjugate = adjoint && COMPLEX;
    if (kind == 0) {
        func_lu_solve_TYPE(n, k, a, n, 1, pivots, adjoint, conjugate, b, stride, 1);
    } else if (kind == 1) {
        func_triangular_TYPE(n, k, a, n, 1, true, false, false, b, stride, 1);
        func_triangular_TYPE(n, k, a, 1, n, false, false, COMPLEX, b, stride, 1);
    } else if (adjoint) {
        func_triangular_TYPE(n, k, a, 1, n, kind == 2, false, conjugate, b, stride, 1);
    } else {
        func_triangular_TYPE(n, k, a, n, 1, kind == 3, false, false, b, stride, 1);
    }
}"""

INVERSE_NORM = """\
/* An estimate of the largest sum of moduli along a column of the inverse. */
static REAL func_inverse_norm_TYPE(ptrdiff_t n, int kind, const TYPE *a, const int32_t *pivots, TYPE *x, TYPE *y) {
    REAL best = 0;
    ptrdiff_t place = -1;
    for (int step = 0; step < 5; ++step) {
        for (ptrdiff_t i = 0; i < n; ++i) {
            x[i] = place < 0 ? 1 / (REAL)n : (REAL)(i == place);
        }
        func_factored_solve_TYPE(n, 1, kind, false, a, pivots, x, 1);
        REAL sum = 0;
        for (ptrdiff_t i = 0; i < n; ++i) {
            const REAL size = ABS(x[i]);
            sum += size;
            y[i] = size > 0 ? x[i] / size : 1;
        }
        if (sum != sum || sum == INFINITY) {
            return sum;
        }
        if (step > 0 && !(sum > best)) {
            break;
        }
        best = sum;
        func_factored_solve_TYPE(n, 1, kind, true, a, pivots, y, 1);
        ptrdiff_t next = 0;
        for (ptrdiff_t i = 1; i < n; ++i) {
            next = ABS(y[i]) > ABS(y[next]) ? i : next;
        }
        if (next == place || n == 1) {
            break;
        }
        place = next;
    }
    for (ptrdiff_t i = 0; i < n; ++i) { /* a vector that no cancellation in A has in mind */
        x[i] = (i % 2 == 0 ? 1 : -1) * (1 + (REAL)i / (REAL)(n > 1 ? n - 1 : 1));
    }
    func_factored_solve_TYPE(n, 1, kind, false, a, pivots, x, 1);
    REAL sum = 0;
    for (ptrdiff_t i = 0; i < n; ++i) {
        sum += ABS(x[i]);
    }
    sum = 2 * sum / (3 * (REAL)n);
    return sum > best || sum != sum ? sum : best;
}"""

COLUMN_NORM = """\
/* The largest sum of moduli along a column. */
static REAL func_column_norm_TYPE(ptrdiff_t n, const TYPE *a) {
    REAL largest = 0;
    for (ptrdiff_t j = 0; j < n; ++j) {
        REAL sum = 0;
        for (ptrdiff_t i = 0; i < n; ++i) {
            sum += ABS(a[i * n + j]);
        }
        largest = sum > largest || sum != sum ? sum : largest;
    }
    return largest;
}"""

SOLVE_KNOWN = """\
/* The solution X of A X = B; `a` is a copy of A, of all its elements, and is overwritten. True where A is singular,
   has no Cholesky factor (kind 1), or is singular to working precision. */
static bool func_solve_known_TYPE(ptrdiff_t n, ptrdiff_t k, int kind, TYPE *a, const TYPE *b, ptrdiff_t b_stride,
                                  TYPE *x, ptrdiff_t x_stride, int32_t *pivots, TYPE *space) {
    const REAL norm = func_column_norm_TYPE(n, a);
    const bool failed = kind == 0 ? func_lu_TYPE(n, n, a, n, 1, pivots)
                        : kind == 1 ? func_cholesky_TYPE(n, a, n, true) : func_has_zero_TYPE(n, a, n + 1);
    if (failed) {
        return true;
    }
    const REAL inverse = func_inverse_norm_TYPE(n, kind, a, pivots, space, space + n);
    func_copy_TYPE(n, k, b, b_stride, 1, x, x_stride, 1);
    func_factored_solve_TYPE(n, k, kind, false, a, pivots, x, x_stride);
    return !(1 / inverse / norm >= 2 * EPSILON);
}"""
