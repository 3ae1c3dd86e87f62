"""Random words and variates as functions of C: the same numbers as `backends/array_helpers/random.py` and `gamma.py`.

Each fills the draws of one key. Trial r of element i encrypts the counter (stride · r + j, i).
"""

THREEFRY = """\
/* Threefry-2x32 with 20 rounds. Source: J. Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (2011), 4.2. */
static void func_threefry(const uint32_t *key, uint32_t *x) {
    static const int rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
    const uint32_t keys[3] = {key[0], key[1], key[0] ^ key[1] ^ UINT32_C(0x1BD11BDA)};
    uint32_t x0 = x[0] + keys[0], x1 = x[1] + keys[1];
    for (int group = 0; group < 5; ++group) {
        for (int round = 0; round < 4; ++round) {
            const int by = rotations[group % 2][round];
            x0 += x1;
            x1 = (x1 << by | x1 >> (32 - by)) ^ x0;
        }
        x0 += keys[(group + 1) % 3];
        x1 += keys[(group + 2) % 3] + (uint32_t)(group + 1);
    }
    x[0] = x0;
    x[1] = x1;
}"""

NARROW = """\
static void func_words32(const uint32_t *key, ptrdiff_t n, uint32_t use, uint32_t *out) {
    for (ptrdiff_t i = 0; i < n; i += 2) {
        const uint64_t counter = (uint64_t)i / 2;
        uint32_t x[2] = {(uint32_t)(counter >> 32) | use, (uint32_t)counter};
        func_threefry(key, x);
        out[i] = x[0];
        if (i + 1 < n) {
            out[i + 1] = x[1];
        }
    }
}"""

DRAW = """\
/* 64 bits, different for each number of a draw and of an element. */
static uint64_t func_draw(const uint32_t *key, uint32_t draw, uint32_t number) {
    uint32_t x[2] = {draw, number};
    func_threefry(key, x);
    return (uint64_t)x[0] << 32 | x[1];
}"""

WIDE = """\
static void func_words64(const uint32_t *key, ptrdiff_t n, uint64_t *out) {
    for (ptrdiff_t i = 0; i < n; ++i) {
        out[i] = func_draw(key, (uint32_t)((uint64_t)i >> 32), (uint32_t)i);
    }
}"""

FOLD = """\
static void func_fold(const uint32_t *key, uint64_t number, uint32_t *out) {
    const uint32_t fold = UINT32_C(1) << 30;
    out[0] = ((uint32_t)(number >> 32) & (fold - 1)) | fold;
    out[1] = (uint32_t)number;
    func_threefry(key, out);
}"""

INTEGERS = """\
/* Numbers from `low` to `low + gap`: words below the largest multiple of their count, reduced by it. */
static void func_integers(const uint32_t *key, ptrdiff_t n, const uint64_t *low, const uint64_t *gap, uint64_t *out) {
    for (ptrdiff_t i = 0; i < n; ++i) {
        const uint64_t span = gap[i] + 1, surplus = span == 0 ? 0 : (~span + 1) % span;
        uint64_t word = func_draw(key, 0, (uint32_t)i);
        for (uint32_t trial = 1; word < surplus; ++trial) {
            word = func_draw(key, trial, (uint32_t)i);
        }
        out[i] = low[i] + (span == 0 ? word : word % span);
    }
}"""

UNIT = """\
/* A number in (0, 1). */
static double func_unit(const uint32_t *key, uint32_t draw, ptrdiff_t number) {
    return ((double)(func_draw(key, draw, (uint32_t)number) >> 12) + 0.5) * 0x1p-52;
}"""

POISSON = """\
/* By inversion below a mean of 10, else by transformed rejection. Source: W. Hoermann (1993), PTRS. */
static void func_poisson(const uint32_t *key, ptrdiff_t n, const double *mean, double *out) {
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double m = mean[i];
        out[i] = 0;
        if (m < 10) {
            const double unit = func_unit(key, 0, i);
            double chance = exp(-m), total = chance;
            for (int k = 1; k < 400 && unit >= total; ++k) {
                chance *= m / k;
                total += chance;
                out[i] = chance > 0 ? k : out[i];
            }
            continue;
        }
        const double b = 0.931 + 2.53 * sqrt(m), a = -0.059 + 0.02483 * b;
        for (uint32_t trial = 0; m >= 10; ++trial) {
            const double u = func_unit(key, 2 * trial, i) - 0.5, v = func_unit(key, 2 * trial + 1, i);
            const double edge = 0.5 - fabs(u), k = floor((2 * a / edge + b) * u + m + 0.43), safe = k > 0 ? k : 0;
            const double scale = log(v * (1.1239 + 1.1328 / (b - 3.4)) / (a / (edge * edge) + b));
            const bool exact = scale <= safe * log(m) - m - lgamma(safe + 1);
            out[i] = k;
            if ((edge >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2)) || (exact && k >= 0 && (edge >= 0.013 || v <= edge))) {
                break;
            }
        }
    }
}"""

BINOMIAL = """\
/* By the rarer of success and failure. Source: W. Hoermann (1993), BTRS. */
static void func_binomial(const uint32_t *key, ptrdiff_t n, const double *trials, const double *chances, double *out) {
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double count = trials[i], q = chances[i] < 1 - chances[i] ? chances[i] : 1 - chances[i];
        double value = 0;
        if (count * q < 10) {
            const double unit = func_unit(key, 0, i), odds = q / (1 - q);
            double chance = exp(count * log1p(-q)), total = chance;
            for (int k = 1; k < 400 && unit >= total; ++k) {
                const double rest = count - k + 1;
                chance *= (rest > 0 ? rest : 0) / k * odds;
                total += chance;
                value = chance > 0 ? k : value;
            }
        }
        const double deviation = sqrt(count * q * (1 - q)), b = 1.15 + 2.53 * deviation;
        const double a = -0.0873 + 0.0248 * b + 0.01 * q, mode = floor((count + 1) * q);
        for (uint32_t trial = 0; count * q >= 10; ++trial) {
            const double u = func_unit(key, 2 * trial, i) - 0.5, v = func_unit(key, 2 * trial + 1, i);
            const double edge = 0.5 - fabs(u), k = floor((2 * a / edge + b) * u + count * q + 0.5);
            const double above = k > 0 ? k : 0, safe = above < count ? above : count;
            double bound = lgamma(mode + 1) + lgamma(count - mode + 1) - lgamma(safe + 1) - lgamma(count - safe + 1);
            bound += (safe - mode) * log(q / (1 - q));
            const double scale = log(v * (2.83 + 5.1 / b) * deviation / (a / (edge * edge) + b));
            value = k;
            if (k >= 0 && k <= count && ((edge >= 0.07 && v <= 0.92 - 4.2 / b) || scale <= bound)) {
                break;
            }
        }
        out[i] = chances[i] > 0.5 ? count - value : value;
    }
}"""

LOGGAMMA = """\
/* The logarithm of the quantile of a uniform number, from the nearer tail. */
static void func_loggamma_variates(const uint32_t *key, ptrdiff_t n, const double *shape, double *out) {
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double a = shape[i], unit = func_unit(key, 0, i);
        if (!(a > 0)) {
            out[i] = NAN;
            continue;
        }
        const double first = (log(unit) + lgamma(a + 1)) / a;
        out[i] = first <= -36 ? first
                 : log(unit <= 0.5 ? func_gammaincinv(a, unit) : func_gammainccinv(a, 1 - unit));
    }
}"""

WALD = """\
/* Inverse Gaussian variates of unit scale. Source: J. Michael, W. Schucany, R. Haas (1976). */
static void func_wald(const uint32_t *key, ptrdiff_t n, const double *mean, double *out) {
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double m = mean[i], z = func_ndtri(func_unit(key, 0, i)), w = m * z * z;
        const double small = 2 * m / (2 + w + sqrt(w * (4 + w)));
        out[i] = func_unit(key, 1, i) * (m + small) <= m ? small : m * m / small;
    }
}"""

TEXTS = {
    "func_threefry": THREEFRY,
    "func_words32": NARROW,
    "func_draw": DRAW,
    "func_words64": WIDE,
    "func_fold": FOLD,
    "func_integers": INTEGERS,
    "func_unit": UNIT,
    "func_poisson": POISSON,
    "func_binomial": BINOMIAL,
    "func_loggamma_variates": LOGGAMMA,
    "func_wald": WALD,
}
