"""Eigenvalues as functions of C, by QL steps; singular values and least squares, by Jacobi's rotations; solves for
matrices of known structure with their condition numbers.

The texts have the places of `factorizations`. Sources: G. Golub, C. Van Loan, Matrix Computations, 4th edition, 8.3 and
8.6.3; N. Higham, ACM TOMS 14 (1988), algorithm 4.1 (the estimate of a norm).
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

TURN = """\
/* (c x - conj(s) y, s x + c y) in place of (x, y). */
static void func_turn_TYPE(ptrdiff_t n, REAL c, TYPE s, TYPE *restrict x, ptrdiff_t x_step, TYPE *restrict y,
                           ptrdiff_t y_step) {
    const TYPE back = CONJ(s);
    for (ptrdiff_t i = 0; i < n; ++i) {
        const TYPE left = x[i * x_step], right = y[i * y_step];
        x[i * x_step] = c * left - back * right;
        y[i * y_step] = s * left + c * right;
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
        const TYPE alpha = v[0];
        d[k] = RE(v[-1]);
        if (func_norm_TYPE(m - 1, v + 1, 1) == 0 && alpha == CONJ(alpha)) {
            tau[k] = 0;
            e[k] = RE(alpha);
            continue;
        }
        const REAL beta = -COPYSIGN(func_norm_TYPE(m, v, 1), RE(alpha));
        const TYPE scale = alpha - beta, factor = (beta - alpha) / beta;
        for (ptrdiff_t i = 1; i < m; ++i) {
            v[i] /= scale;
        }
        v[0] = 1;
        tau[k] = factor;
        e[k] = beta;
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
        const ptrdiff_t m = n - k - 1;
        for (ptrdiff_t j = k + 1; tau[k] != 0 && j < n; ++j) {
            TYPE *row = v + j * stride + k + 1;
            func_take_TYPE(m, tau[k] * func_inner_TYPE(m, reflector, 1, COMPLEX, row, 1), reflector, 1, row, 1);
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
                    func_turn_TYPE(n, c, s, v + i * stride, 1, v + (i + 1) * stride, 1);
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

SINGULAR = """\
/* The columns of U diag(s) in place of those of A = U diag(s) V*, m >= n of them; the columns of V in `v` (of n rows)
   unless that is NULL; the singular values, descending, in `s`. Columns of a singular value 0 are 0. True where an
   element is not finite, or rotations do not end. */
static bool func_singular_TYPE(ptrdiff_t m, ptrdiff_t n, TYPE *a, TYPE *v, REAL *s) {
    const REAL scale = func_scale_TYPE(m * n, a);
    if (scale != scale) {
        return true;
    }
    for (ptrdiff_t i = 0; i < m * n; ++i) {
        a[i] *= scale;
    }
    for (ptrdiff_t i = 0; v != NULL && i < n * n; ++i) {
        v[i] = i % (n + 1) == 0;
    }
    bool done = false;
    const REAL least = EPSILON * 2 * SQRT((REAL)m);
    for (int sweep = 0; sweep < 60 && !done; ++sweep) {
        done = true;
        for (ptrdiff_t p = 0; p < n; ++p) {
            for (ptrdiff_t q = p + 1; q < n; ++q) {
                TYPE *x = a + p * m, *y = a + q * m;
                const REAL x_size = func_norm_TYPE(m, x, 1), y_size = func_norm_TYPE(m, y, 1);
                const TYPE off = func_inner_TYPE(m, x, 1, COMPLEX, y, 1);
                const REAL size = ABS(off);
                if (x_size < LEAST_COLUMN || y_size < LEAST_COLUMN || !(size > least * x_size * y_size)) {
                    continue;
                }
                done = false;
                const REAL t = (y_size - x_size) * ((y_size + x_size) / (2 * size));
                const REAL turn = (t < 0 ? -1 : 1) / (REALABS(t) + SQRT(1 + t * t));
                const REAL c = 1 / SQRT(1 + turn * turn);
                const TYPE sine = turn * c * (off / size);
                func_turn_TYPE(m, c, sine, x, 1, y, 1);
                if (v != NULL) {
                    func_turn_TYPE(n, c, sine, v + p * n, 1, v + q * n, 1);
                }
            }
        }
    }
    for (ptrdiff_t j = 0; j < n; ++j) {
        const REAL size = func_norm_TYPE(m, a + j * m, 1);
        s[j] = size < LEAST_COLUMN ? 0 : size;
    }
    for (ptrdiff_t j = 0; j < n; ++j) {
        ptrdiff_t largest = j;
        for (ptrdiff_t i = j + 1; i < n; ++i) {
            largest = s[i] > s[largest] ? i : largest;
        }
        if (largest != j) {
            const REAL kept = s[j];
            s[j] = s[largest];
            s[largest] = kept;
            func_turn_TYPE(m, 0, 1, a + j * m, 1, a + largest * m, 1);
            if (v != NULL) {
                func_turn_TYPE(n, 0, 1, v + j * n, 1, v + largest * n, 1);
            }
        }
        for (ptrdiff_t i = 0; i < m; ++i) {
            a[j * m + i] = s[j] == 0 ? 0 : a[j * m + i] / scale;
        }
        s[j] /= scale;
    }
    return !done;
}"""

COMPLETE = """\
/* Columns of length 1 by the columns of `a` and their norms; where that is 0, and behind the first `known` columns,
   others that are orthogonal to them. */
static void func_complete_TYPE(ptrdiff_t m, ptrdiff_t known, ptrdiff_t columns, TYPE *a, const REAL *s) {
    ptrdiff_t good = 0;
    while (good < known && s[good] != 0) {
        TYPE *column = a + good * m;
        const REAL size = func_norm_TYPE(m, column, 1);
        for (ptrdiff_t i = 0; i < m; ++i) {
            column[i] /= size;
        }
        ++good;
    }
    for (; good < columns; ++good) {
        ptrdiff_t place = 0;
        REAL best = -1;
        for (ptrdiff_t i = 0; i < m; ++i) { /* the unit vector that the columns so far reach least */
            const REAL reached = func_norm_TYPE(good, a + i, m), rest = 1 - reached * reached;
            place = rest > best ? i : place;
            best = rest > best ? rest : best;
        }
        TYPE *column = a + good * m;
        for (ptrdiff_t i = 0; i < m; ++i) {
            column[i] = i == place;
        }
        for (int turn = 0; turn < 2; ++turn) {
            for (ptrdiff_t j = 0; j < good; ++j) {
                func_take_TYPE(m, func_inner_TYPE(m, a + j * m, 1, COMPLEX, column, 1), a + j * m, 1, column, 1);
            }
            const REAL size = func_norm_TYPE(m, column, 1);
            for (ptrdiff_t i = 0; i < m; ++i) {
                column[i] /= size;
            }
        }
    }
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
/* The solution x (of n rows and k columns) of least squares, of those the shortest, by what func_singular left: of A
   where it has more rows than columns (`tall`), or of its adjoint. Singular values up to `limit` times the largest
   count as zero; `rest` has the sums of squared residuals. */
static void func_least_squares_TYPE(ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, const TYPE *a, ptrdiff_t stride,
                                    const TYPE *b, ptrdiff_t b_stride, const TYPE *us, const TYPE *v, const REAL *s,
                                    REAL limit, TYPE *x, ptrdiff_t x_stride, REAL *rest) {
    const bool tall = m >= n;
    const ptrdiff_t count = tall ? n : m;
    for (ptrdiff_t i = 0; i < n; ++i) {
        for (ptrdiff_t c = 0; c < k; ++c) {
            x[i * x_stride + c] = 0;
        }
    }
    for (ptrdiff_t j = 0; j < count && s[j] > limit * s[0] && s[j] > 0; ++j) {
        const TYPE *left = tall ? us + j * m : v + j * m, *right = tall ? v + j * n : us + j * n;
        for (ptrdiff_t c = 0; c < k; ++c) {
            const TYPE part = func_inner_TYPE(m, left, 1, COMPLEX, b + c, b_stride) / s[j] / s[j];
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
