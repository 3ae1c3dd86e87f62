"""Factors of matrices, solves and determinants as functions of C.

A matrix is the address of its first element and two strides, between rows (`down`) and between columns (`across`), so
one function serves a matrix and its transpose. The texts have places for the types: TYPE is the type of elements, REAL
that of their moduli, and CONJ, SIZE (the modulus by which LAPACK chooses pivots) and ABS (the modulus) are functions.
Inner loops run over rows or columns, through `TAKE` and `INNER`, so that compilers make vector code of them. Large
matrices go to LAPACK and CBLAS where the code is compiled with FUNC_LAPACK and FUNC_CBLAS.
"""

TAKE = """\
/* y - factor x in place of y. */
static void func_take_TYPE(ptrdiff_t n, TYPE factor, const TYPE *restrict x, ptrdiff_t x_step, TYPE *restrict y,
                           ptrdiff_t y_step) {
    if (x_step == 1 && y_step == 1) {
        for (ptrdiff_t i = 0; i < n; ++i) {
            y[i] = PLUS(-factor, x[i], y[i]);
        }
        return;
    }
    for (ptrdiff_t i = 0; i < n; ++i) {
        y[i * y_step] = PLUS(-factor, x[i * x_step], y[i * y_step]);
    }
}"""

INNER = """\
/* The sum of the products of two vectors, the first one's elements conjugated or not. */
static TYPE func_inner_TYPE(ptrdiff_t n, const TYPE *x, ptrdiff_t x_step, bool conjugate, const TYPE *y,
                            ptrdiff_t y_step) {
    enum { LANES = 8 };
    TYPE sum = 0;
    ptrdiff_t i = 0;
    if (n >= LANES && x_step == 1 && y_step == 1 && !conjugate) {
        TYPE sums[LANES] = {0};
        for (; i + LANES <= n; i += LANES) {
            for (ptrdiff_t lane = 0; lane < LANES; ++lane) {
                sums[lane] = PLUS(x[i + lane], y[i + lane], sums[lane]);
            }
        }
        sum = ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
    }
    for (; i < n; ++i) {
        sum += (conjugate ? CONJ(x[i * x_step]) : x[i * x_step]) * y[i * y_step];
    }
    return sum;
}"""

NORM = """\
/* The Euclidean norm of a vector, also where its square is too large or too small for a number. */
static REAL func_norm_TYPE(ptrdiff_t n, const TYPE *x, ptrdiff_t step) {
    const REAL plain = RE(func_inner_TYPE(n, x, step, COMPLEX, x, step));
    if ((plain > LEAST && plain < MOST) || plain != plain) {
        return SQRT(plain);
    }
    REAL largest = 0, sum = 0;
    for (ptrdiff_t i = 0; i < n; ++i) {
        const REAL size = ABS(x[i * step]);
        largest = size > largest ? size : largest;
    }
    if (largest == 0 || largest == INFINITY) {
        return largest;
    }
    for (ptrdiff_t i = 0; i < n; ++i) {
        const REAL part = ABS(x[i * step]) / largest;
        sum += part * part;
    }
    return largest * SQRT(sum);
}"""

EXCHANGE = """\
static void func_exchange_TYPE(ptrdiff_t n, TYPE *x, TYPE *y, ptrdiff_t step) {
    for (ptrdiff_t i = 0; i < n; ++i) {
        const TYPE kept = x[i * step];
        x[i * step] = y[i * step];
        y[i * step] = kept;
    }
}"""

MINUS = """\
/* out - x y in place of out, whichever way its rows lie in memory. */
static void func_minus_TYPE(ptrdiff_t m, ptrdiff_t k, ptrdiff_t n, TYPE *out, ptrdiff_t out0, ptrdiff_t out1,
                            const TYPE *x, ptrdiff_t x0, ptrdiff_t x1, const TYPE *y, ptrdiff_t y0, ptrdiff_t y1) {
    if (out1 == 1) {
        func_minus_product_TYPE(m, k, n, out, out0, out1, x, x0, x1, y, y0, y1);
    } else {
        func_minus_product_TYPE(n, k, m, out, out1, out0, y, y1, y0, x, x1, x0);
    }
}"""

PANEL = """\
/* The factors of a few columns in place of them. */
static bool func_lu_panel_TYPE(ptrdiff_t m, ptrdiff_t n, TYPE *a, ptrdiff_t down, ptrdiff_t across, int32_t *pivots) {
    bool singular = false;
    for (ptrdiff_t k = 0; k < m && k < n; ++k) {
        TYPE *row = a + k * down, *column = a + k * across;
        ptrdiff_t pivot = k;
        REAL largest = SIZE(column[k * down]);
        for (ptrdiff_t i = k + 1; i < m; ++i) {
            const REAL size = SIZE(column[i * down]);
            pivot = size > largest ? i : pivot;
            largest = size > largest ? size : largest;
        }
        pivots[k] = (int32_t)pivot;
        for (ptrdiff_t j = 0; pivot != k && j < n; ++j) {
            const TYPE kept = row[j * across];
            row[j * across] = a[pivot * down + j * across];
            a[pivot * down + j * across] = kept;
        }
        const TYPE top = row[k * across];
        if (top == 0) {
            singular = true;
            continue;
        }
        if (SIZE(top) < TINY) { /* the inverse may be infinite */
            for (ptrdiff_t i = k + 1; i < m; ++i) {
                column[i * down] /= top;
            }
        } else {
            const TYPE scale = 1 / top;
            for (ptrdiff_t i = k + 1; i < m; ++i) {
                column[i * down] *= scale;
            }
        }
        const ptrdiff_t right = n - k - 1, below = m - k - 1;
        for (ptrdiff_t i = k + 1; across == 1 && i < m; ++i) {
            func_take_TYPE(right, column[i * down], row + k + 1, 1, a + i * down + k + 1, 1);
        }
        for (ptrdiff_t j = k + 1; across != 1 && j < n; ++j) {
            TYPE *behind = a + (k + 1) * down + j * across;
            func_take_TYPE(below, row[j * across], column + (k + 1) * down, down, behind, down);
        }
    }
    return singular;
}"""

LU = """\
/* The factors P A = L U in place of A, and the exchanges of rows from 0; true where U has a zero on its diagonal. */
static bool func_lu_TYPE(ptrdiff_t m, ptrdiff_t n, TYPE *a, ptrdiff_t down, ptrdiff_t across, int32_t *pivots) {
LAPACK    if (m > 64 && n > 64 && sizeof(lapack_int) == sizeof(int32_t)) {
LAPACK        const ptrdiff_t count = m < n ? m : n;
LAPACK        const int layout = down == 1 ? LAPACK_COL_MAJOR : LAPACK_ROW_MAJOR;
LAPACK        const lapack_int stride = (lapack_int)(down == 1 ? across : down);
LAPACK        const lapack_int info = LAPACKE_LETTERgetrf(layout, (lapack_int)m, (lapack_int)n, a, stride, pivots);
LAPACK        for (ptrdiff_t i = 0; i < count; ++i) {
LAPACK            --pivots[i];
LAPACK        }
LAPACK        return info != 0;
LAPACK    }
REALS    bool singular = false;
REALS    enum { BLOCK = 32 };
REALS    for (ptrdiff_t k = 0; m > 2 * BLOCK && n > 2 * BLOCK && k < m && k < n; k += BLOCK) {
REALS        const ptrdiff_t both = m < n ? m : n, width = both - k < BLOCK ? both - k : BLOCK;
REALS        TYPE *const corner = a + k * (down + across), *const right = corner + width * across;
REALS        const ptrdiff_t behind = n - k - width, below = m - k - width, next = (k + width) * across;
REALS        singular = func_lu_panel_TYPE(m - k, width, corner, down, across, pivots + k) || singular;
REALS        for (ptrdiff_t i = k; i < k + width; ++i) {
REALS            const ptrdiff_t pivot = pivots[i] + k;
REALS            pivots[i] = (int32_t)pivot;
REALS            TYPE *const row = a + i * down, *const other = a + pivot * down;
REALS            func_exchange_TYPE(pivot == i ? 0 : k, row, other, across);
REALS            func_exchange_TYPE(pivot == i ? 0 : behind, row + next, other + next, across);
REALS        }
REALS        func_triangular_TYPE(width, behind, corner, down, across, true, true, false, right, down, across);
REALS        TYPE *const left = corner + width * down;
REALS        func_minus_TYPE(below, width, behind, right + width * down, down, across, left, down, across, right, down,
REALS                        across);
REALS    }
REALS    if (m > 2 * BLOCK && n > 2 * BLOCK) {
REALS        return singular;
REALS    }
    return func_lu_panel_TYPE(m, n, a, down, across, pivots);
}"""

SMALL_LU = """\
/* The factors P A = L U of a small matrix, by columns, and the exchanges of rows from 0; true where U has a zero on its
   diagonal. Rows are vectors, which are taken as a whole. */
static bool func_lu_of_WIDE_TYPE(ptrdiff_t n, const TYPE *a, ptrdiff_t down, ptrdiff_t across, TYPE *lu,
                                 ptrdiff_t lu_down, ptrdiff_t lu_across, int32_t *pivots) {
    enum { WIDTH = WIDE };
    TYPE rows[WIDTH][WIDTH] = {{0}};
    bool singular = false;
    for (ptrdiff_t i = 0; i < n; ++i) {
        for (ptrdiff_t j = 0; j < n; ++j) {
            rows[i][j] = a[i * down + j * across];
        }
    }
    for (ptrdiff_t k = 0; k < n; ++k) {
        ptrdiff_t pivot = k;
        uintBITS_t largest = func_bitsBITS(SIZE(rows[k][k])); /* positive numbers have the order of their bits */
        for (ptrdiff_t i = k + 1; i < n; ++i) {
            const uintBITS_t size = func_bitsBITS(SIZE(rows[i][k]));
            pivot = size > largest ? i : pivot;
            largest = size > largest ? size : largest;
        }
        pivots[k] = (int32_t)pivot;
        const TYPE on = rows[pivot][k], inverse = 1 / on;
        TYPE top[WIDTH];
        for (ptrdiff_t c = 0; c < WIDTH; ++c) {
            top[c] = rows[pivot][c];
            rows[pivot][c] = rows[k][c];
            rows[k][c] = top[c];
        }
        const bool is_tiny = SIZE(on) < TINY; /* the inverse may be infinite */
        singular = on == 0 || singular;
        for (ptrdiff_t i = k + 1; i < n && on != 0; ++i) {
            const TYPE factor = is_tiny ? rows[i][k] / on : rows[i][k] * inverse;
            for (ptrdiff_t c = 0; c < WIDTH; ++c) {
                const TYPE rest = PLUS(-factor, top[c], rows[i][c]), kept = c == k ? factor : rows[i][c];
                rows[i][c] = c > k ? rest : kept;
            }
        }
    }
    for (ptrdiff_t i = 0; i < n; ++i) {
        for (ptrdiff_t j = 0; j < n; ++j) {
            lu[i * lu_down + j * lu_across] = rows[i][j];
        }
    }
    return singular;
}"""

EXCHANGES = """\
/* Rows of a matrix exchanged as LU factors have it, or back. */
static void func_exchanges_TYPE(ptrdiff_t n, ptrdiff_t k, const int32_t *pivots, bool back, TYPE *b, ptrdiff_t stride) {
    for (ptrdiff_t step = 0; step < n; ++step) {
        const ptrdiff_t i = back ? n - 1 - step : step, pivot = pivots[i];
        for (ptrdiff_t c = 0; c < k; ++c) {
            const TYPE kept = b[i * stride + c];
            b[i * stride + c] = b[pivot * stride + c];
            b[pivot * stride + c] = kept;
        }
    }
}"""

TRIANGULAR = """\
/* The solution of A X = B in place of B, of n rows and k columns, for one triangle of A (of its conjugate). */
static void func_triangular_TYPE(ptrdiff_t n, ptrdiff_t k, const TYPE *a, ptrdiff_t down, ptrdiff_t across, bool lower,
                                 bool unit, bool conjugate, TYPE *b, ptrdiff_t b_down, ptrdiff_t b_across) {
BLAS    if (n > 64 && k > 1 && !conjugate && (down == 1 || across == 1) && (b_down == 1 || b_across == 1)) {
BLAS        const bool turned = across != 1, left = b_across == 1;
BLAS        cblas_LETTERtrsm(CblasRowMajor, left ? CblasLeft : CblasRight, lower != turned ? CblasLower : CblasUpper,
BLAS                    turned == left ? CblasTrans : CblasNoTrans, unit ? CblasUnit : CblasNonUnit,
BLAS                    (int)(left ? n : k), (int)(left ? k : n), 1, a, (int)(turned ? across : down), b,
BLAS                    (int)(left ? b_down : b_across));
BLAS        return;
BLAS    }
REALS    enum { BLOCK = 32 };
REALS    for (ptrdiff_t start = 0; n > 2 * BLOCK && k >= 8 && start < n; start += BLOCK) {
REALS        const ptrdiff_t width = n - start < BLOCK ? n - start : BLOCK, rest = n - start - width;
REALS        const ptrdiff_t first = lower ? start : rest, after = lower ? start + width : 0;
REALS        TYPE *const rows = b + first * b_down;
REALS        func_triangular_TYPE(width, k, a + first * (down + across), down, across, lower, unit, false, rows, b_down,
REALS                             b_across);
REALS        const TYPE *const beside = a + after * down + first * across;
REALS        func_minus_TYPE(rest, width, k, b + after * b_down, b_down, b_across, beside, down, across, rows, b_down,
REALS                        b_across);
REALS    }
REALS    if (n > 2 * BLOCK && k >= 8) {
REALS        return;
REALS    }
    const bool by_rows = k > 1 && b_across == 1;
    for (ptrdiff_t c = 0; c < (by_rows ? 1 : k); ++c) {
        TYPE *x = b + c * b_across;
        const ptrdiff_t columns = by_rows ? k : 1;
        for (ptrdiff_t step = 0; step < n; ++step) {
            const ptrdiff_t i = lower ? step : n - 1 - step, first = lower ? 0 : i + 1, after = lower ? i + 1 : 0;
            const TYPE *row = a + i * down, *column = a + i * across;
            if (by_rows) {
                for (ptrdiff_t j = first; j < (lower ? i : n); ++j) {
                    const TYPE factor = conjugate ? CONJ(row[j * across]) : row[j * across];
                    func_take_TYPE(k, factor, x + j * b_down, 1, x + i * b_down, 1);
                }
            } else if (down != 1 || conjugate) {
                const ptrdiff_t count = lower ? i : n - 1 - i;
                const TYPE *known = x + first * b_down;
                x[i * b_down] -= func_inner_TYPE(count, row + first * across, across, conjugate, known, b_down);
            }
            const TYPE on = conjugate ? CONJ(row[i * across]) : row[i * across];
            for (ptrdiff_t j = 0; !unit && j < columns; ++j) {
                x[i * b_down + j * b_across] /= on;
            }
            if (!by_rows && down == 1 && !conjugate) {
                const ptrdiff_t count = lower ? n - 1 - i : i;
                func_take_TYPE(count, x[i * b_down], column + after, 1, x + after * b_down, b_down);
            }
        }
    }
}"""

LU_SOLVE = """\
/* The solution of A X = B (of the transpose or adjoint of A) in place of B, by the factors of A. */
static void func_lu_solve_TYPE(ptrdiff_t n, ptrdiff_t k, const TYPE *lu, ptrdiff_t down, ptrdiff_t across,
                               const int32_t *pivots, bool transposed, bool conjugate, TYPE *b, ptrdiff_t b_down,
                               ptrdiff_t b_across) {
    if (transposed) {
        func_triangular_TYPE(n, k, lu, across, down, true, false, conjugate, b, b_down, b_across);
        func_triangular_TYPE(n, k, lu, across, down, false, true, conjugate, b, b_down, b_across);
    }
    for (ptrdiff_t step = 0; step < n; ++step) {
        const ptrdiff_t i = transposed ? n - 1 - step : step, pivot = pivots[i];
        for (ptrdiff_t c = 0; pivot != i && c < k; ++c) {
            const TYPE kept = b[i * b_down + c * b_across];
            b[i * b_down + c * b_across] = b[pivot * b_down + c * b_across];
            b[pivot * b_down + c * b_across] = kept;
        }
    }
    if (!transposed) {
        func_triangular_TYPE(n, k, lu, down, across, true, true, conjugate, b, b_down, b_across);
        func_triangular_TYPE(n, k, lu, down, across, false, false, conjugate, b, b_down, b_across);
    }
}"""

COPY = """\
static void func_copy_TYPE(ptrdiff_t m, ptrdiff_t n, const TYPE *from, ptrdiff_t from_down, ptrdiff_t from_across,
                           TYPE *to, ptrdiff_t to_down, ptrdiff_t to_across) {
    if (from_across == 1 && to_across == 1) {
        for (ptrdiff_t i = 0; i < m; ++i) {
            for (ptrdiff_t j = 0; j < n; ++j) {
                to[i * to_down + j] = from[i * from_down + j];
            }
        }
        return;
    }
    enum { TILE = 8 };
    for (ptrdiff_t top = 0; top < m; top += TILE) {
        for (ptrdiff_t j = 0; j < n; ++j) {
            for (ptrdiff_t i = top; i < m && i < top + TILE; ++i) {
                to[i * to_down + j * to_across] = from[i * from_down + j * from_across];
            }
        }
    }
}"""

DIAGONAL = """\
/* A matrix with one number on its diagonal and another beside it. */
static void func_diagonal_TYPE(ptrdiff_t n, TYPE *a, ptrdiff_t down, ptrdiff_t across, TYPE on, TYPE beside) {
    for (ptrdiff_t i = 0; i < n; ++i) {
        for (ptrdiff_t j = 0; j < n; ++j) {
            a[i * down + j * across] = i == j ? on : beside;
        }
    }
}"""

FIRST_ZERO = """\
static bool func_has_zero_TYPE(ptrdiff_t n, const TYPE *a, ptrdiff_t step) {
    for (ptrdiff_t i = 0; i < n; ++i) {
        if (a[i * step] == 0) {
            return true;
        }
    }
    return false;
}"""

SOLVE = """\
static bool func_solve_TYPE(ptrdiff_t n, ptrdiff_t k, const TYPE *a, ptrdiff_t stride, const TYPE *b,
                            ptrdiff_t b_stride, TYPE *x, ptrdiff_t x_stride, TYPE *matrix, int32_t *pivots) {
    func_copy_TYPE(n, n, a, stride, 1, matrix, n, 1);
    const bool singular = func_lu_TYPE(n, n, matrix, n, 1, pivots);
    func_copy_TYPE(n, k, b, b_stride, 1, x, x_stride, 1);
    func_lu_solve_TYPE(n, k, matrix, n, 1, pivots, false, false, x, x_stride, 1);
    return singular;
}"""

INVERSE = """\
static bool func_inverse_TYPE(ptrdiff_t n, const TYPE *a, ptrdiff_t stride, TYPE *out, ptrdiff_t out_stride,
                              TYPE *matrix, int32_t *pivots) {
    func_copy_TYPE(n, n, a, stride, 1, matrix, n, 1);
    const bool singular = func_lu_TYPE(n, n, matrix, n, 1, pivots);
    func_diagonal_TYPE(n, out, out_stride, 1, 1, 0);
    func_lu_solve_TYPE(n, n, matrix, n, 1, pivots, false, false, out, out_stride, 1);
    return singular;
}"""

DETERMINANT = """\
/* The sign of a determinant and the logarithm of its modulus, by LU factors; 0 and -INFINITY for a singular matrix. */
static void func_determinant_TYPE(ptrdiff_t n, const TYPE *lu, ptrdiff_t step, const int32_t *pivots, TYPE *sign,
                                  REAL *logarithm) {
    TYPE unit = 1;
    REAL total = 0;
    for (ptrdiff_t i = 0; i < n; ++i) {
        const TYPE value = lu[i * step];
        if (value == 0) {
            *sign = 0;
            *logarithm = -INFINITY;
            return;
        }
        const REAL size = ABS(value);
        unit = UNIT;
        unit = pivots[i] == i ? unit : -unit;
        total += LOG(size);
    }
    *sign = unit;
    *logarithm = total;
}"""

ORDER = """\
/* The order of m rows after their exchanges; true where one is with no row. */
static bool func_order(ptrdiff_t m, ptrdiff_t count, const int32_t *pivots, int64_t *order) {
    bool failed = false;
    for (ptrdiff_t i = 0; i < m; ++i) {
        order[i] = i;
    }
    for (ptrdiff_t i = 0; i < count; ++i) {
        const bool is_row = pivots[i] >= 0 && pivots[i] < m;
        const ptrdiff_t pivot = is_row ? pivots[i] : i;
        const int64_t kept = order[i];
        order[i] = order[pivot];
        order[pivot] = kept;
        failed = failed || !is_row;
    }
    return failed;
}"""

CHOLESKY_TILE = """\
/* Of up to 6 rows of the upper Cholesky factor, from row i on, the 8 columns from j on as they are before the rows are
   taken from each other; `a` has the rows above. */
static void func_cholesky_tile_TYPE(ptrdiff_t i, ptrdiff_t count, ptrdiff_t j, const TYPE *a, ptrdiff_t stride,
                                    TYPE (*tile)[8]) {
    enum { WIDTH = 8 };
    TYPE s0[WIDTH] = {0}, s1[WIDTH] = {0}, s2[WIDTH] = {0}, s3[WIDTH] = {0}, s4[WIDTH] = {0}, s5[WIDTH] = {0};
    const ptrdiff_t last = count - 1; /* rows behind the last are the last one again */
    const ptrdiff_t r1 = last < 1 ? last : 1, r2 = last < 2 ? last : 2, r3 = last < 3 ? last : 3;
    const ptrdiff_t r4 = last < 4 ? last : 4, r5 = last < 5 ? last : 5;
    for (ptrdiff_t l = 0; l < i; ++l) {
        const TYPE *const left = a + l * stride + i, *const right = a + l * stride + j;
        const TYPE f0 = CONJ(left[0]), f1 = CONJ(left[r1]), f2 = CONJ(left[r2]), f3 = CONJ(left[r3]);
        const TYPE f4 = CONJ(left[r4]), f5 = CONJ(left[r5]);
        for (ptrdiff_t c = 0; c < WIDTH; ++c) {
            s0[c] = PLUS(f0, right[c], s0[c]);
            s1[c] = PLUS(f1, right[c], s1[c]);
            s2[c] = PLUS(f2, right[c], s2[c]);
            s3[c] = PLUS(f3, right[c], s3[c]);
            s4[c] = PLUS(f4, right[c], s4[c]);
            s5[c] = PLUS(f5, right[c], s5[c]);
        }
    }
    const TYPE *const own = a + i * stride + j;
    for (ptrdiff_t c = 0; c < WIDTH; ++c) {
        tile[0][c] = own[c] - s0[c];
        tile[1][c] = own[r1 * stride + c] - s1[c];
        tile[2][c] = own[r2 * stride + c] - s2[c];
        tile[3][c] = own[r3 * stride + c] - s3[c];
        tile[4][c] = own[r4 * stride + c] - s4[c];
        tile[5][c] = own[r5 * stride + c] - s5[c];
    }
}"""

CHOLESKY_ROWS = """\
/* The first rows of the upper factor in place of a matrix of n rows, by its upper triangle; elements below it may be
   overwritten. True where there is no factor. */
static bool func_cholesky_rows_TYPE(ptrdiff_t rows, ptrdiff_t n, TYPE *a, ptrdiff_t stride) {
    enum { ROWS = 6, WIDTH = 8 };
    if (n < WIDTH) {
        for (ptrdiff_t k = 0; k < rows; ++k) {
            TYPE *row = a + k * stride;
            const REAL top = RE(row[k]);
            if (top <= 0) { /* NaN passes on, as LAPACK's results have it */
                return true;
            }
            const REAL root = SQRT(top);
            row[k] = root;
            for (ptrdiff_t j = k + 1; j < n; ++j) {
                row[j] /= root;
            }
            for (ptrdiff_t i = k + 1; i < n; ++i) {
                func_take_TYPE(n - i, CONJ(row[i]), row + i, 1, a + i * stride + i, 1);
            }
        }
        return false;
    }
    for (ptrdiff_t i = 0; i < rows; i += ROWS) {
        const ptrdiff_t count = rows - i < ROWS ? rows - i : ROWS, start = i + WIDTH <= n ? i : n - WIDTH;
        TYPE tile[ROWS][WIDTH], factors[ROWS][ROWS];
        REAL roots[ROWS] = {0}, inverses[ROWS] = {0};
        func_cholesky_tile_TYPE(i, count, start, a, stride, tile);
        for (ptrdiff_t r = 0; r < count; ++r) {
            TYPE *const row = tile[r] + i - start;
            const REAL top = RE(row[r]);
            if (top <= 0) {
                return true;
            }
            roots[r] = SQRT(top);
            inverses[r] = 1 / roots[r];
            for (ptrdiff_t s = r + 1; s < count; ++s) {
                row[s] *= inverses[r];
                factors[r][s] = CONJ(row[s]);
            }
            for (ptrdiff_t s = r + 1; s < count; ++s) {
                for (ptrdiff_t t = s; t < count; ++t) {
                    tile[s][i - start + t] -= factors[r][s] * row[t];
                }
            }
        }
        for (ptrdiff_t j = i - i % WIDTH; j < n; j += WIDTH) {
            const ptrdiff_t first = j + WIDTH <= n ? j : n - WIDTH; /* the last tile begins before its first column */
            func_cholesky_tile_TYPE(i, count, first, a, stride, tile);
            for (ptrdiff_t r = 0; r < count; ++r) {
                for (ptrdiff_t c = 0; c < WIDTH; ++c) {
                    tile[r][c] *= inverses[r];
                }
                for (ptrdiff_t s = r + 1; s < count; ++s) {
                    for (ptrdiff_t c = 0; c < WIDTH; ++c) {
                        tile[s][c] = PLUS(-factors[r][s], tile[r][c], tile[s][c]);
                    }
                }
                TYPE *const row = a + (i + r) * stride + first;
                for (ptrdiff_t c = j - first; c < WIDTH; ++c) {
                    row[c] = tile[r][c];
                }
            }
        }
        for (ptrdiff_t r = 0; r < count; ++r) {
            a[(i + r) * (stride + 1)] = roots[r];
        }
    }
    return false;
}"""

CHOLESKY = """\
/* The Cholesky factor in place of a matrix, by its lower (or upper) triangle; true where there is none. */
static bool func_cholesky_TYPE(ptrdiff_t n, TYPE *a, ptrdiff_t stride, bool lower) {
LAPACK    if (n > 64) {
LAPACK        const char part = lower ? 'L' : 'U';
LAPACK        const bool none = LAPACKE_LETTERpotrf(LAPACK_ROW_MAJOR, part, (lapack_int)n, a, (lapack_int)stride) != 0;
LAPACK        for (ptrdiff_t i = 0; i < n; ++i) {
LAPACK            for (ptrdiff_t j = i + 1; j < n; ++j) {
LAPACK                a[lower ? i * stride + j : j * stride + i] = 0;
LAPACK            }
LAPACK        }
LAPACK        return none;
LAPACK    }
    enum { TILE = 8 };
    for (ptrdiff_t top = 0; lower && top < n; top += TILE) { /* rows of the upper factor lie in memory */
        for (ptrdiff_t j = 0; j < top + TILE && j < n; ++j) {
            for (ptrdiff_t i = j + 1 > top ? j + 1 : top; i < top + TILE && i < n; ++i) {
                a[j * stride + i] = CONJ(a[i * stride + j]);
            }
        }
    }
    bool failed = false;
REALS    enum { BLOCK = 96 };
REALS    for (ptrdiff_t start = 0; n > 2 * BLOCK && start < n && !failed; start += BLOCK) {
REALS        const ptrdiff_t width = n - start < BLOCK ? n - start : BLOCK, after = start + width;
REALS        failed = func_cholesky_rows_TYPE(width, n - start, a + start * (stride + 1), stride);
REALS        for (ptrdiff_t i = after; i < n; i += BLOCK) {
REALS            const TYPE *const above = a + start * stride + i;
REALS            func_minus_TYPE(n - i < BLOCK ? n - i : BLOCK, width, n - i, a + i * (stride + 1), stride, 1, above, 1,
REALS                            stride, above, stride, 1);
REALS        }
REALS    }
REALS    failed = n > 2 * BLOCK ? failed : func_cholesky_rows_TYPE(n, n, a, stride);
COMPLEXES    failed = func_cholesky_rows_TYPE(n, n, a, stride);
    for (ptrdiff_t top = 0; top < n; top += TILE) {
        for (ptrdiff_t j = 0; j < top + TILE && j < n; ++j) {
            for (ptrdiff_t i = j + 1 > top ? j + 1 : top; i < top + TILE && i < n; ++i) {
                a[i * stride + j] = lower ? CONJ(a[j * stride + i]) : 0;
                a[j * stride + i] = lower ? 0 : a[j * stride + i];
            }
        }
    }
    return failed;
}"""

CHOLESKY_INVERSE = """\
/* The inverse of a matrix in place of its lower Cholesky factor; true where a number on the diagonal is zero. */
static bool func_cholesky_inverse_TYPE(ptrdiff_t n, TYPE *a, ptrdiff_t stride) {
    if (func_has_zero_TYPE(n, a, stride + 1)) {
        return true;
    }
    for (ptrdiff_t i = 0; i < n; ++i) { /* the inverse of the factor */
        TYPE *row = a + i * stride;
        const TYPE on = 1 / row[i];
        for (ptrdiff_t k = 0; k < i; ++k) { /* rows above are inverted; row[k] is not needed after its own turn */
            const TYPE factor = row[k];
            row[k] = 0;
            func_take_TYPE(k + 1, factor, a + k * stride, 1, row, 1);
        }
        for (ptrdiff_t k = 0; k < i; ++k) {
            row[k] *= on;
        }
        row[i] = on;
    }
    for (ptrdiff_t k = 0; k < n; ++k) { /* its product with its adjoint: rows above take part of row k in */
        TYPE *row = a + k * stride;
        const TYPE on = row[k];
        for (ptrdiff_t i = 0; i < k; ++i) {
            func_take_TYPE(i + 1, -CONJ(row[i]), row, 1, a + i * stride, 1);
        }
        for (ptrdiff_t j = 0; j <= k; ++j) {
            row[j] *= CONJ(on);
        }
    }
    for (ptrdiff_t i = 0; i < n; ++i) {
        for (ptrdiff_t j = i + 1; j < n; ++j) {
            a[i * stride + j] = CONJ(a[j * stride + i]);
        }
    }
    return false;
}"""

REFLECTOR = """\
/* v, whose first element is 1, in place of x: (1 - tau v v*)* x has one element that is not 0, the first, which is
   returned and real. */
static REAL func_reflector_TYPE(ptrdiff_t n, TYPE *x, TYPE *tau) {
    const TYPE alpha = x[0];
    const REAL rest = func_norm_TYPE(n - 1, x + 1, 1);
    x[0] = 1;
    if (rest == 0 && alpha == CONJ(alpha)) {
        *tau = 0;
        return RE(alpha);
    }
    const REAL beta = -COPYSIGN(HYPOT(ABS(alpha), rest), RE(alpha));
    const TYPE scale = alpha - beta;
    for (ptrdiff_t i = 1; i < n; ++i) {
        x[i] /= scale;
    }
    *tau = (beta - alpha) / beta;
    return beta;
}"""

INNER_OF_FOUR = """\
/* The sums of the products of v, or of its conjugate, with four rows. */
static void func_inner_of_four_TYPE(ptrdiff_t n, const TYPE *v, bool conjugate, const TYPE *x0, ptrdiff_t stride,
                                    TYPE *sums) {
    enum { LANES = 64 / sizeof(TYPE) };
    const TYPE *const x1 = x0 + stride, *const x2 = x1 + stride, *const x3 = x2 + stride;
    TYPE s0[LANES] = {0}, s1[LANES] = {0}, s2[LANES] = {0}, s3[LANES] = {0};
    ptrdiff_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        for (ptrdiff_t lane = 0; lane < LANES; ++lane) {
            const TYPE factor = conjugate ? CONJ(v[i + lane]) : v[i + lane];
            s0[lane] = PLUS(factor, x0[i + lane], s0[lane]);
            s1[lane] = PLUS(factor, x1[i + lane], s1[lane]);
            s2[lane] = PLUS(factor, x2[i + lane], s2[lane]);
            s3[lane] = PLUS(factor, x3[i + lane], s3[lane]);
        }
    }
    for (ptrdiff_t half = LANES / 2; half > 0; half /= 2) {
        for (ptrdiff_t lane = 0; lane < half; ++lane) {
            s0[lane] += s0[lane + half];
            s1[lane] += s1[lane + half];
            s2[lane] += s2[lane + half];
            s3[lane] += s3[lane + half];
        }
    }
    for (; i < n; ++i) {
        const TYPE factor = conjugate ? CONJ(v[i]) : v[i];
        s0[0] += factor * x0[i];
        s1[0] += factor * x1[i];
        s2[0] += factor * x2[i];
        s3[0] += factor * x3[i];
    }
    sums[0] = s0[0];
    sums[1] = s1[0];
    sums[2] = s2[0];
    sums[3] = s3[0];
}"""

TAKE_FROM_FOUR = """\
/* Of four rows x, x - factor v in place of them, for a factor each. */
static void func_take_from_four_TYPE(ptrdiff_t n, const TYPE *restrict factors, const TYPE *restrict v,
                                     TYPE *restrict x0, TYPE *restrict x1, TYPE *restrict x2, TYPE *restrict x3) {
    const TYPE f0 = -factors[0], f1 = -factors[1], f2 = -factors[2], f3 = -factors[3];
    for (ptrdiff_t i = 0; i < n; ++i) {
        x0[i] = PLUS(f0, v[i], x0[i]);
        x1[i] = PLUS(f1, v[i], x1[i]);
        x2[i] = PLUS(f2, v[i], x2[i]);
        x3[i] = PLUS(f3, v[i], x3[i]);
    }
}"""

REFLECT = """\
/* Of some rows x, `stride` apart, x - tau (v* x) v in place of them. */
static void func_reflect_TYPE(ptrdiff_t count, ptrdiff_t n, TYPE tau, const TYPE *v, TYPE *x, ptrdiff_t stride) {
    ptrdiff_t i = 0;
    for (; i + 4 <= count; i += 4) {
        TYPE *const row = x + i * stride;
        TYPE parts[4];
        func_inner_of_four_TYPE(n, v, COMPLEX, row, stride, parts);
        for (int r = 0; r < 4; ++r) {
            parts[r] *= tau;
        }
        func_take_from_four_TYPE(n, parts, v, row, row + stride, row + 2 * stride, row + 3 * stride);
    }
    for (; i < count; ++i) {
        func_take_TYPE(n, tau * func_inner_TYPE(n, v, 1, COMPLEX, x + i * stride, 1), v, 1, x + i * stride, 1);
    }
}"""

QR = """\
/* R and the reflectors 1 - tau v v* of A = Q R in place of A, with LAPACK's signs; columns of A lie in memory. */
static void func_qr_TYPE(ptrdiff_t m, ptrdiff_t n, TYPE *a, TYPE *tau) {
    for (ptrdiff_t k = 0; k < m && k < n; ++k) {
        TYPE *v = a + k * (m + 1);
        const REAL beta = func_reflector_TYPE(m - k, v, tau + k);
        if (tau[k] != 0) {
            func_reflect_TYPE(n - k - 1, m - k, CONJ(tau[k]), v, v + m, m);
        }
        v[0] = beta;
    }
}"""

QR_BASIS = """\
/* The first columns of Q from its reflectors, which lie in rows, in place of these, each in a row; a reflector that is
   needed no longer makes room for its column of Q. */
static void func_qr_basis_TYPE(ptrdiff_t m, ptrdiff_t count, ptrdiff_t columns, TYPE *a, ptrdiff_t stride,
                               const TYPE *tau) {
    for (ptrdiff_t j = count; j < columns; ++j) {
        for (ptrdiff_t i = 0; i < m; ++i) {
            a[j * stride + i] = i == j;
        }
    }
    for (ptrdiff_t k = count - 1; k >= 0; --k) {
        TYPE *v = a + k * (stride + 1);
        v[0] = 1;
        func_reflect_TYPE(columns - k - 1, m - k, tau[k], v, v + stride, stride);
        v[0] = 1 - tau[k];
        for (ptrdiff_t i = 1; i < m - k; ++i) {
            v[i] *= -tau[k];
        }
        for (ptrdiff_t i = 1; i <= k; ++i) {
            v[-i] = 0;
        }
    }
}"""

UPPER = """\
static void func_upper_TYPE(ptrdiff_t m, ptrdiff_t n, const TYPE *a, ptrdiff_t down, ptrdiff_t across, TYPE *r,
                            ptrdiff_t r_down, ptrdiff_t r_across) {
    for (ptrdiff_t i = 0; i < m; ++i) {
        for (ptrdiff_t j = 0; j < n; ++j) {
            r[i * r_down + j * r_across] = i <= j ? a[i * down + j * across] : 0;
        }
    }
}"""
