"""Sorting and Fourier transforms as functions of C; TYPE is the type of elements, or of parts of complex numbers."""

ARGSORT = """\
static bool func_is_before_TYPE(const TYPE *x, const TYPE *y) {
    return ORDER;
}

/* The stable order of n numbers, NaN last: sorted runs of twice the length each time. It begins with the order that is
   there, if it `goes_on`. */
static void func_argsort_TYPE(ptrdiff_t n, const TYPE *x, int64_t *order, int64_t *space, bool goes_on) {
    for (ptrdiff_t i = 0; i < n && !goes_on; ++i) {
        order[i] = i;
    }
    for (ptrdiff_t run = 1; run < n; run *= 2) {
        for (ptrdiff_t start = 0; start < n; start += 2 * run) {
            const ptrdiff_t middle = n - start < run ? n : start + run, end = n - start < 2 * run ? n : start + 2 * run;
            ptrdiff_t left = start, right = middle;
            for (ptrdiff_t i = start; i < end; ++i) {
                const bool is_last = left == middle || right == end;
                const bool takes_right = is_last ? left == middle
                    : func_is_before_TYPE(x + PARTS * order[right], x + PARTS * order[left]);
                space[i] = order[takes_right ? right : left];
                left += takes_right ? 0 : 1;
                right += takes_right ? 1 : 0;
            }
        }
        for (ptrdiff_t i = 0; i < n; ++i) {
            order[i] = space[i];
        }
    }
}"""

COMPLEX_ORDER = """\
x[0] == y[0] || (x[0] != x[0] && y[0] != y[0]) ? x[1] < y[1] || (y[1] != y[1] && x[1] == x[1])
           : x[0] < y[0] ? x[1] == x[1] || y[1] != y[1]
           : x[0] > y[0] ? y[1] != y[1] && x[1] == x[1] : y[0] != y[0]"""
"""By real parts, then by imaginary parts; numbers with NaN in one part, then in the other, then in both are last."""

ROOTS = """\
/* The n roots exp(sign 2 pi i k / n). */
static void func_roots_TYPE(ptrdiff_t n, TYPE sign, TYPE *roots) {
    for (ptrdiff_t k = 0; k < n; ++k) {
        const double angle = 6.283185307179586476925 * (double)k / (double)n;
        roots[2 * k] = (TYPE)cos(angle);
        roots[2 * k + 1] = sign * (TYPE)sin(angle);
    }
}"""

FOURIER = """\
/* The transform of n complex numbers, `step` apart, by those of its parts: n is divided by its smallest prime factor.
   `roots` are those of `all`, a multiple of n; a part of length 1 is itself. */
static void func_fft_TYPE(ptrdiff_t n, ptrdiff_t step, const TYPE *x, TYPE *out, const TYPE *roots, ptrdiff_t all,
                          TYPE *space) {
    if (n == 1) {
        out[0] = x[0];
        out[1] = x[1];
        return;
    }
    ptrdiff_t factor = 2;
    while (n % factor != 0) {
        factor = factor * factor > n ? n : factor + 1;
    }
    const ptrdiff_t part = n / factor, jump = all / n;
    for (ptrdiff_t r = 0; r < factor; ++r) {
        func_fft_TYPE(part, step * factor, x + 2 * r * step, out + 2 * r * part, roots, all, space);
    }
    if (factor == 2) {
        TYPE *const high = out + 2 * part;
        for (ptrdiff_t k = 0; k < part; ++k) {
            const TYPE c = roots[2 * k * jump], s = roots[2 * k * jump + 1];
            const TYPE re = high[2 * k] * c - high[2 * k + 1] * s, im = high[2 * k] * s + high[2 * k + 1] * c;
            high[2 * k] = out[2 * k] - re;
            high[2 * k + 1] = out[2 * k + 1] - im;
            out[2 * k] += re;
            out[2 * k + 1] += im;
        }
        return;
    }
    for (ptrdiff_t k = 0; k < part; ++k) {
        for (ptrdiff_t r = 0; r < factor; ++r) {
            const TYPE c = roots[2 * r * k * jump], s = roots[2 * r * k * jump + 1];
            const TYPE re = out[2 * (r * part + k)], im = out[2 * (r * part + k) + 1];
            space[2 * r] = re * c - im * s;
            space[2 * r + 1] = re * s + im * c;
        }
        for (ptrdiff_t q = 0; q < factor; ++q) {
            TYPE re = space[0], im = space[1];
            for (ptrdiff_t r = 1; r < factor; ++r) {
                const ptrdiff_t place = r * q % factor * part * jump;
                const TYPE c = roots[2 * place], s = roots[2 * place + 1];
                re += space[2 * r] * c - space[2 * r + 1] * s;
                im += space[2 * r] * s + space[2 * r + 1] * c;
            }
            out[2 * (q * part + k)] = re;
            out[2 * (q * part + k) + 1] = im;
        }
    }
}

/* A scaled transform: of complex numbers (kind 0), of real ones to the frequencies from zero on (1), and back (2). */
static void func_transform_TYPE(ptrdiff_t n, int kind, TYPE scale, const TYPE *x, const TYPE *roots, TYPE *out,
                                TYPE *space) {
    TYPE *const in = space, *const spectrum = space + 2 * n;
    for (ptrdiff_t k = 0; k < n; ++k) {
        const bool is_mirrored = kind == 2 && 2 * k > n;
        const ptrdiff_t place = is_mirrored ? n - k : k;
        const bool is_real = kind == 1 || (kind == 2 && (k == 0 || 2 * k == n));
        in[2 * k] = x[kind == 1 ? k : 2 * place];
        in[2 * k + 1] = is_real ? 0 : is_mirrored ? -x[2 * place + 1] : x[2 * place + 1];
    }
    func_fft_TYPE(n, 1, in, spectrum, roots, n, space + 4 * n);
    for (ptrdiff_t k = 0; k < (kind == 1 ? n / 2 + 1 : n); ++k) {
        out[kind == 2 ? k : 2 * k] = scale * spectrum[2 * k];
        if (kind != 2) {
            out[2 * k + 1] = scale * spectrum[2 * k + 1];
        }
    }
}"""
