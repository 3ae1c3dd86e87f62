"""Special functions of SciPy as functions of C, for real numbers in double precision.

`TEXTS` has each by its name, and `ARITY` the primitives among them, which are not `static`; `special_families.py` has
those that are made of others. Factors without a short formula are Chebyshev expansions, whose coefficients
`special_tables.py` has. Singular points and arguments out of range have SciPy's values.

Sources: NIST Digital Library of Mathematical Functions, 5.11 (gamma, digamma), 6.12 (exponential integrals), 8.7-8.9
and 8.17 (incomplete gamma and beta functions), 10.17 and 10.40 (Bessel functions), 25.2 and 25.11 (zeta functions),
25.12 (dilogarithm); W. Gautschi, ACM TOMS 5 (1979) (the ranges of the incomplete gamma functions).
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Sequence
from fractions import Fraction

from func.backends.c import special_families
from func.backends.c.special_tables import EXPANSIONS

CHEBYSHEV = """\
/* A sum of Chebyshev polynomials at t. */
static double func_chebyshev(ptrdiff_t n, const double *c, double t) {
    double b0 = 0, b1 = 0;
    for (ptrdiff_t i = n - 1; i > 0; --i) {
        const double b2 = b1;
        b1 = b0;
        b0 = 2 * t * b1 - b2 + c[i];
    }
    return t * b0 - b1 + c[0];
}"""


def _bernoulli(count: int) -> list[Fraction]:
    """The Bernoulli numbers B0, B1 and so on, by the algorithm of Akiyama and Tanigawa."""
    numbers = []
    row: list[Fraction] = []
    for m in range(count):
        row.append(Fraction(1, m + 1))
        for j in range(m, 0, -1):
            row[j - 1] = j * (row[j - 1] - row[j])
        numbers.append(row[0])
    return numbers


def _factorial(n: int) -> Fraction:
    return Fraction(math.factorial(n))


def _polynomial(coefficients: Sequence[Fraction], variable: str) -> str:
    """A polynomial by Horner's rule, the constant term first."""
    text = repr(float(coefficients[-1]))
    for c in reversed(coefficients[:-1]):
        text = f"({text} * {variable} + {float(c)!r})"
    return text


BERNOULLI = _bernoulli(26)
PLACES = {
    "STIRLING_TERMS": _polynomial([BERNOULLI[2 * k] / (2 * k * (2 * k - 1)) for k in range(1, 9)], "z"),
    "DIGAMMA_TERMS": _polynomial([BERNOULLI[2 * k] / (2 * k) for k in range(1, 9)], "z"),
    "ZETA_TERMS": ", ".join([repr(float(BERNOULLI[2 * k] / _factorial(2 * k))) for k in range(1, 13)]),
    "PI": "3.14159265358979323846",
    "ROOT_HALF": "0.70710678118654752440",
    **special_families.PLACES,
}
"""What stands for places of the texts."""

SOURCE = """\
/* ln Gamma(x) - (x - 1/2) ln x + x - ln sqrt(2 pi), for x of 10 or more. */
static double stirling(double x) {
    const double z = 1 / (x * x);
    return STIRLING_TERMS / x;
}

double digamma(double x) {
    if (x == 0) {
        return copysign(INFINITY, -x);
    }
    if (x == -INFINITY) {
        return NAN;
    }
    double sum = 0;
    if (x < 0) {
        const double part = fmod(x, 1.0);
        if (part == 0) {
            return NAN;
        }
        sum = -PI / tan(PI * part);
        x = 1 - x;
    }
    for (; x < 10; ++x) {
        sum -= 1 / x;
    }
    const double z = 1 / (x * x);
    return sum + (log(x) - 0.5 / x - z * DIGAMMA_TERMS);
}

/* The sum of (k + q)^-x over k from 0 on, by the formula of Euler and Maclaurin. */
double hurwitz_zeta(double x, double q) {
    static const double terms[12] = {ZETA_TERMS};
    if (x == 1) {
        return INFINITY;
    }
    if (x < 1 || x != x || q != q) {
        return NAN;
    }
    if (q <= 0) {
        if (q == floor(q)) {
            return INFINITY;
        }
        if (x != floor(x)) {
            return NAN;
        }
    }
    if (q > 1e8) {
        return (1 / (x - 1) + 1 / (2 * q)) * pow(q, 1 - x);
    }
    double term = pow(q, -x), sum = term, a = q;
    for (int i = 0; i < 9 || a <= 9; ++i) {
        a += 1;
        term = pow(a, -x);
        sum += term;
        if (fabs(term) < 1.1e-16 * fabs(sum)) {
            return sum;
        }
    }
    sum += term * a / (x - 1) - 0.5 * term;
    double factor = x;
    term /= a;
    for (int k = 0; k < 12; ++k) {
        const double part = factor * term * terms[k];
        sum += part;
        if (fabs(part) < 1.1e-16 * fabs(sum)) {
            break;
        }
        factor *= (x + 2 * k + 1) * (x + 2 * k + 2);
        term /= a * a;
    }
    return sum;
}

double polygamma(double n, double x) {
    if (n == 0) {
        return digamma(x);
    }
    return (fmod(n, 2.0) == 0 ? -1.0 : 1.0) * tgamma(n + 1) * hurwitz_zeta(n + 1, x);
}

double riemann_zeta(double x) {
    if (x != x || x == 1 || x == -INFINITY) {
        return x == 1 ? INFINITY : NAN;
    }
    if (x > 2.5) {
        return x > 60 ? 1 : hurwitz_zeta(x, 1);
    }
    if (x >= -1) {
        return zeta_near(x) / (x - 1);
    }
    if (fmod(x, 2.0) == 0) {
        return 0;
    }
    const double y = 1 - x, rest = 2 * sin(PI / 2 * fmod(x, 4.0)) * riemann_zeta(y);
    if (x > -9) {
        return rest * pow(2 * PI, -y) * tgamma(y);
    }
    const double part = exp(0.5 * (y * (log(y / (2 * PI)) - 1) - 0.5 * log(y / (2 * PI)) + stirling(y)));
    return part == INFINITY ? copysign(part, rest) : rest * part * part;
}

double zetac(double x) {
    return x > 2.5 ? (x == INFINITY ? 0 : hurwitz_zeta(x, 2)) : riemann_zeta(x) - 1;
}

double gammasgn(double x) {
    if (x > 0 || x != x) {
        return x > 0 ? 1 : x;
    }
    if (x == 0) {
        return copysign(1, x);
    }
    if (x == -INFINITY || x == floor(x)) {
        return NAN;
    }
    return fmod(floor(x), 2.0) == 0 ? 1 : -1;
}

double rgamma(double x) {
    if (x <= 0 && x == floor(x)) {
        return 0;
    }
    if (x > 34) {
        return x > 171 ? exp(-lgamma(x)) : 1 / tgamma(x);
    }
    if (x < -34) { /* the reflection, in two parts that are not too large */
        const double sine = sin(PI * fmod(x, 2.0)) / PI;
        return x > -169 ? sine * tgamma(1 - x) : copysign(exp(lgamma(1 - x) + log(fabs(sine))), sine);
    }
    return 1 / tgamma(x);
}

double loggamma(double x) {
    return x < 0 ? NAN : lgamma(x);
}

double betaln(double a, double b) {
    const double low = a < b ? a : b, high = a < b ? b : a, total = low + high;
    if (total - total != 0 && low != 0) {
        return total == INFINITY && low > 0 ? -INFINITY : NAN;
    }
    if (low >= 10) {
        return -0.5 * log(high) + 0.91893853320467274178 + (stirling(low) + stirling(high) - stirling(total))
               + (low - 0.5) * log(low / total) + high * log1p(-low / total);
    }
    if (high >= 10 && low > 0) {
        return lgamma(low) + (stirling(high) - stirling(total)) + low - low * log(total)
               + (high - 0.5) * log1p(-low / total);
    }
    if (low <= 0 && low == floor(low)) {
        return high == floor(high) && 1 - low - high > 0 ? betaln(1 - low - high, high) : INFINITY;
    }
    return lgamma(low) + lgamma(high) - lgamma(total);
}

double beta(double a, double b) {
    const double low = a < b ? a : b, high = a < b ? b : a;
    if (low <= 0 && low == floor(low)) {
        if (high == floor(high) && 1 - low - high > 0) {
            return (fmod(high, 2.0) == 0 ? 1 : -1) * beta(1 - low - high, high);
        }
        return INFINITY;
    }
    if (fabs(low) < 20 && fabs(high) < 20) {
        return tgamma(low) * tgamma(high) * rgamma(low + high);
    }
    if (low > 0) {
        return exp(betaln(low, high));
    }
    return gammasgn(low) * gammasgn(high) * gammasgn(low + high) * exp(betaln(low, high));
}

double binom(double n, double k) {
    if ((n < 0 && n == floor(n)) || n - n != 0 || k - k != 0) {
        return NAN;
    }
    double few = floor(k);
    if (k == few) {
        few = n == floor(n) && few > n / 2 && n > 0 ? n - few : few;
        if (few >= 0 && few < 20) {
            double over = 1, under = 1;
            for (int i = 1; i <= (int)few; ++i) {
                over *= n - (few - i);
                under *= i;
                if (fabs(over) > 1e50) {
                    over /= under;
                    under = 1;
                }
            }
            return over / under;
        }
    }
    if (n >= 1e10 * k && k > 0) {
        return exp(-betaln(1 + n - k, 1 + k) - log(n + 1));
    }
    return 1 / ((n + 1) * beta(1 + n - k, 1 + k));
}

double poch(double a, double m) {
    double product = 1;
    while (m >= 1 && a + m != 1 && product != 0 && product - product == 0) {
        m -= 1;
        product *= a + m;
    }
    while (m <= -1 && a + m != 0 && product != 0 && product - product == 0) {
        product /= a + m;
        m += 1;
    }
    if (m == 0) {
        return product;
    }
    const bool over = a + m <= 0 && a + m == floor(a + m), under = a <= 0 && a == floor(a);
    if (over != under) {
        return over ? INFINITY : 0;
    }
    return product * exp(lgamma(a + m) - lgamma(a)) * gammasgn(a + m) * gammasgn(a);
}

/* ln(1 + x) - x, for 1 + x = y. */
static double log1pmx(double x, double y) {
    if (fabs(x) > 0.5) {
        return log(y) - x;
    }
    const double r = x / (2 + x), square = r * r; /* ln(1 + x) = 2 artanh r, and 2 r - x = -r x */
    double sum = 0;
    for (int k = 29; k >= 3; k -= 2) {
        sum = sum * square + 1.0 / k;
    }
    return r * (2 * square * sum - x);
}

/* ln Gamma(1 + a). */
static double lgamma1p(double a) {
    if (fabs(a) > 0.25) {
        return lgamma(1 + a);
    }
    double sum = 0;
    for (int k = 26; k >= 2; --k) {
        sum = -a * (sum + hurwitz_zeta(k, 1) / k);
    }
    return -a * (0.57721566490153286061 + sum);
}

/* x^a e^-x / Gamma(a). */
static double gamma_density(double a, double x) {
    if (a < 10) {
        return exp(a * log(x) - x - lgamma1p(a)) * a;
    }
    return sqrt(a / (2 * PI)) * exp(a * log1pmx((x - a) / a, x / a) - stirling(a));
}

/* P(a, x) by its series. */
static double gammainc_series(double a, double x) {
    double term = 1, sum = 1;
    for (double k = a + 1; term > 1.1e-16 * sum; ++k) {
        term *= x / k;
        sum += term;
    }
    return gamma_density(a, x) / a * sum;
}

/* Q(a, x) by its continued fraction, in the form of Lentz. */
static double gammaincc_fraction(double a, double x) {
    double b = x + 1 - a, c = 1e300, d = 1 / b, product = d;
    for (int i = 1; i < 1000000; ++i) {
        const double over = i * (a - i);
        b += 2;
        d = over * d + b;
        d = 1 / (fabs(d) < 1e-300 ? 1e-300 : d);
        c = b + over / c;
        c = fabs(c) < 1e-300 ? 1e-300 : c;
        product *= c * d;
        if (fabs(c * d - 1) < 2.3e-16) {
            break;
        }
    }
    return gamma_density(a, x) * product;
}

/* Q(a, x) for small x. */
static double gammaincc_small(double a, double x) {
    double factor = 1, sum = 0;
    for (int n = 1; n < 2000; ++n) {
        factor *= -x / n;
        const double term = factor / (a + n);
        sum += term;
        if (fabs(term) <= 1.1e-16 * fabs(sum)) {
            break;
        }
    }
    const double power = a * log(x);
    return -expm1(power - lgamma1p(a)) - exp(power - lgamma1p(a)) * a * sum;
}

double gammaincc(double a, double x) {
    if (!(a >= 0) || !(x >= 0)) {
        return NAN;
    }
    if (a == 0 || x == INFINITY) {
        return x == 0 || a == INFINITY ? NAN : 0;
    }
    if (x == 0 || a == INFINITY) {
        return 1;
    }
    if (x > 1.1) {
        return x < a ? 1 - gammainc_series(a, x) : gammaincc_fraction(a, x);
    }
    const bool is_near = x <= 0.5 ? -0.4 / log(x) < a : 1.1 * x < a;
    return is_near ? 1 - gammainc_series(a, x) : gammaincc_small(a, x);
}

double gammainc(double a, double x) {
    if (!(a >= 0) || !(x >= 0)) {
        return NAN;
    }
    if (a == 0 || x == INFINITY) {
        return x == 0 || a == INFINITY ? NAN : 1;
    }
    if (x == 0 || a == INFINITY) {
        return 0;
    }
    return x > 1 && x > a ? 1 - gammaincc(a, x) : gammainc_series(a, x);
}

/* The x of P(a, x) = p, or of Q(a, x) = p: Newton's steps of ln P by ln x, bisection where they leave what is known. */
static double gamma_quantile(double a, double p, bool upper) {
    if (!(a >= 0) || !(p >= 0 && p <= 1)) {
        return NAN;
    }
    if (p == 0 || p == 1) {
        return (p == 0) == upper ? INFINITY : 0;
    }
    if (a == 0 || a == INFINITY) {
        return NAN;
    }
    const double z = upper ? -ndtri(p) : ndtri(p), w = 1 - 1 / (9 * a) + z / (3 * sqrt(a));
    const double first = ((upper ? log1p(-p) : log(p)) + lgamma1p(a)) / a;
    if (first < -36) { /* the first term of the series */
        return exp(first);
    }
    double low = -40, high = log(a + 1000 + 60 * sqrt(a));
    double l = w > 0.2 && a > 0.5 ? log(a) + 3 * log(w) : first < high ? first : high;
    for (int i = 0; i < 200; ++i) {
        const double x = exp(l), part = upper ? gammaincc(a, x) : gammainc(a, x);
        const double step = part * log(part / p) / gamma_density(a, x) * (upper ? -1 : 1);
        if (step == 0) {
            break;
        }
        low = step < 0 || (part == 0 && !upper) ? l : low;
        high = step > 0 || (part == 0 && upper) ? l : high;
        const double next = step == step && l - step >= low && l - step <= high ? l - step : (low + high) / 2;
        const double moved = fabs(next - l);
        l = next;
        if (moved <= 4e-16 * fabs(l)) {
            break;
        }
    }
    return exp(l);
}

double gammaincinv(double a, double p) {
    return gamma_quantile(a, p, false);
}

double gammainccinv(double a, double p) {
    return gamma_quantile(a, p, true);
}

/* The continued fraction of the incomplete beta function, in the form of Lentz. */
static double beta_fraction(double a, double b, double x) {
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < 1e-300 ? 1e-300 : d);
    double product = d;
    for (int m = 1; m < 1000000; ++m) {
        for (int odd = 0; odd < 2; ++odd) {
            const double over = odd ? -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
                                    : m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
            d = 1 + over * d;
            d = 1 / (fabs(d) < 1e-300 ? 1e-300 : d);
            c = 1 + over / c;
            c = fabs(c) < 1e-300 ? 1e-300 : c;
            product *= c * d;
        }
        if (fabs(c * d - 1) < 2.3e-16) {
            break;
        }
    }
    return product;
}

/* x^a y^b / B(a, b), where y is 1 - x. */
static double beta_density(double a, double b, double x, double y) {
    if (a < 10 || b < 10) {
        return exp(a * (x > 0.5 ? log1p(-y) : log(x)) + b * (y > 0.5 ? log1p(-x) : log(y)) - betaln(a, b));
    }
    const double all = a + b, off = x * b - y * a;
    const double part = a * log1pmx(off / a, x * all / a) + b * log1pmx(-off / b, y * all / b);
    return sqrt(a * b / (2 * PI * all)) * exp(part - (stirling(a) + stirling(b) - stirling(all)));
}

/* The incomplete beta function of x, or what it lacks of 1, where y is 1 - x. */
static double beta_part(double a, double b, double x, double y, bool upper) {
    if (!(a >= 0 && b >= 0 && x >= 0 && y >= 0) || (a == 0 && b == 0) || a + b == INFINITY) {
        return NAN;
    }
    if (a == 0 || b == 0) {
        return (b == 0) == upper ? 1 : 0;
    }
    if (x == 0 || y == 0) {
        return (x == 0) == upper ? 1 : 0;
    }
    const bool turned = x > (a + 1) / (a + b + 2);
    const double size = beta_density(a, b, x, y);
    const double part = turned ? size * beta_fraction(b, a, y) / b : size * beta_fraction(a, b, x) / a;
    return turned == upper ? part : part > 1 ? 0 : 1 - part;
}

double betainc(double a, double b, double x) {
    return beta_part(a, b, x, 1 - x, false);
}

double betaincc(double a, double b, double x) {
    return beta_part(a, b, x, 1 - x, true);
}

/* The quantile of 1/2 + y, for y between -0.425 and 0.425. */
static double quantile_near(double y) {
    return y * ndtri_middle(y * y);
}

double ndtri(double p) {
    if (!(p >= 0 && p <= 1)) {
        return NAN;
    }
    if (fabs(p - 0.5) <= 0.425) {
        return quantile_near(p - 0.5);
    }
    const double tail = p < 0.5 ? p : 1 - p, r = sqrt(-log(tail));
    const double size = tail == 0 ? INFINITY : r * (r < 3 ? ndtri_low(r) : r < 7 ? ndtri_tail(r) : ndtri_far(r));
    return p < 0.5 ? -size : size;
}

double erfinv(double y) {
    const double size = fabs(y);
    return size <= 0.85 ? quantile_near(y / 2) * ROOT_HALF : copysign(-ndtri((1 - size) / 2) * ROOT_HALF, y);
}

double erfcinv(double z) {
    return z < 0.5 ? -ndtri(z / 2) * ROOT_HALF : erfinv(1 - z);
}

double dawsn(double x) {
    const double size = fabs(x), square = x * x;
    if (size < 2) {
        return x * dawsn_low(square);
    }
    return size < 5 ? copysign(dawsn_middle(size), x) : dawsn_high(1 / square) / x;
}

double erfcx(double x) {
    if (x < 0) {
        return x < -26.7 ? INFINITY : 2 * exp(x * x) - erfcx(-x);
    }
    return x < 2 ? erfcx_low(x) : erfcx_high(1 / x) / x;
}

double erfi(double x) {
    const double part = exp(x * x / 2);
    return part == INFINITY ? copysign(part, x) : 1.12837916709551257390 * (part * dawsn(x)) * part;
}

double i0e(double x) {
    const double size = fabs(x);
    return size < 8 ? i0e_low(size) : i0e_high(8 / size) / sqrt(size);
}

double i1e(double x) {
    const double size = fabs(x);
    return size < 8 ? x * i1e_low(size) : copysign(i1e_high(8 / size) / sqrt(size), x);
}

/* e^|x| y, which overflows only if it is too large. */
static double times_exp(double x, double y) {
    const double part = exp(fabs(x) / 2);
    return part * y * part;
}

double bessel_i0(double x) {
    return times_exp(x, i0e(x));
}

double i1(double x) {
    return times_exp(x, i1e(x));
}

static double k0_small(double x) {
    return x > 0 ? k0_low(x * x) - log(x / 2) * bessel_i0(x) : x == 0 ? INFINITY : NAN;
}

double k0e(double x) {
    return x > 2 ? k0e_high(2 / x) / sqrt(x) : exp(x) * k0_small(x);
}

double k0(double x) {
    return x > 2 ? exp(-x) * k0e(x) : k0_small(x);
}

static double k1_small(double x) {
    return x > 0 ? k1_low(x * x) / x + log(x / 2) * i1(x) : x == 0 ? INFINITY : NAN;
}

double k1e(double x) {
    return x > 2 ? k1e_high(2 / x) / sqrt(x) : exp(x) * k1_small(x);
}

double k1(double x) {
    return x > 2 ? exp(-x) * k1e(x) : k1_small(x);
}

/* sqrt(2 / (pi x)) (p cos(x - a) - q sin(x - a)), or with a sine and a plus. */
static double wave(double x, double a, double p, double q, bool is_second) {
    const double c = cos(x - a), s = sin(x - a);
    return (is_second ? p * s + q * c : p * c - q * s) * sqrt(2 / (PI * x));
}

double j0(double x) {
    const double size = fabs(x), u = 8 / size;
    return size < 8 ? j0_low(x * x) : wave(size, PI / 4, j0_cosine(u * u), u * j0_sine(u * u), false);
}

double y0(double x) {
    if (!(x > 0)) {
        return x == 0 ? -INFINITY : NAN;
    }
    const double u = 8 / x;
    return x < 8 ? y0_low(x * x) + 2 / PI * log(x) * j0(x)
                 : wave(x, PI / 4, j0_cosine(u * u), u * j0_sine(u * u), true);
}

double j1(double x) {
    const double size = fabs(x), u = 8 / size;
    if (size < 8) {
        return x * j1_low(x * x);
    }
    const double value = wave(size, 3 * PI / 4, j1_cosine(u * u), u * j1_sine(u * u), false);
    return x < 0 ? -value : value;
}

double y1(double x) {
    if (!(x > 0)) {
        return x == 0 ? -INFINITY : NAN;
    }
    const double u = 8 / x;
    return x < 8 ? x * y1_low(x * x) + 2 / PI * (log(x) * j1(x) - 1 / x)
                 : wave(x, 3 * PI / 4, j1_cosine(u * u), u * j1_sine(u * u), true);
}

double exp1(double x) {
    if (!(x > 0)) {
        return x == 0 ? INFINITY : NAN;
    }
    return x < 2 ? exp1_low(x) - log(x) : exp(-x) * exp1_high(1 / x) / x;
}

double expi(double x) {
    if (!(x > 0)) {
        return x < 0 ? -exp1(-x) : x == 0 ? -INFINITY : x;
    }
    if (x < 6 || x == INFINITY) {
        return x < 6 ? log(x) + expi_low(x) : x;
    }
    const double u = 1 / x;
    return times_exp(x, (x < 12 ? expi_middle(u) : x < 24 ? expi_high(u) : expi_far(u)) * u);
}

/* The dilogarithm of 1 - x. */
double spence(double x) {
    if (!(x > 0 && x < INFINITY)) {
        return x == 0 ? PI * PI / 6 : NAN;
    }
    if (x < 0.5) {
        return PI * PI / 6 - log(x) * log1p(-x) - spence(1 - x);
    }
    if (x <= 1.5) {
        return (1 - x) * spence_near(x);
    }
    const double part = log(x);
    return -0.5 * part * part - spence(1 / x);
}

double entr(double x) {
    return x > 0 ? -x * log(x) : x == 0 ? 0 : x < 0 ? -INFINITY : x;
}

double rel_entr(double x, double y) {
    if (x != x || y != y) {
        return NAN;
    }
    return x > 0 && y > 0 ? x * log(x / y) : x == 0 && y >= 0 ? 0 : INFINITY;
}

double kl_div(double x, double y) {
    if (x != x || y != y) {
        return NAN;
    }
    return x > 0 && y > 0 ? x * log(x / y) - x + y : x == 0 && y >= 0 ? y : INFINITY;
}

double huber(double delta, double r) {
    if (delta < 0) {
        return INFINITY;
    }
    return fabs(r) <= delta ? 0.5 * r * r : delta * (fabs(r) - 0.5 * delta);
}

double pseudo_huber(double delta, double r) {
    if (delta < 0 || delta == 0 || r == 0) {
        return delta < 0 ? INFINITY : 0;
    }
    const double v = fabs(r / delta);
    return delta * delta * (v > 1e8 ? v - 1 : v * v / (1 + sqrt(1 + v * v)));
}

/* (e^part)^power, less 1, over the power. */
static double boxed(double part, double power) {
    if (power * part < 709.78) {
        return expm1(power * part) / power;
    }
    return copysign(exp(power * part - log(fabs(power))), power) - 1 / power;
}

double boxcox(double x, double power) {
    return fabs(power) < 1e-19 ? log(x) : boxed(log(x), power);
}

double boxcox1p(double x, double power) {
    const double part = log1p(x);
    return fabs(power) < 1e-19 || (fabs(part) < 1e-289 && fabs(power) < 1e273) ? part : boxed(part, power);
}

double inv_boxcox(double x, double power) {
    return power == 0 ? exp(x) : exp(log1p(power * x) / power);
}

double inv_boxcox1p(double x, double power) {
    return power == 0 ? expm1(x) : fabs(power * x) < 1e-154 ? x : expm1(log1p(power * x) / power);
}

double powm1(double x, double y) {
    const double size = fabs(x), part = size > 0 ? y * log(size) : INFINITY;
    if (fabs(part) < 0.5 && (x > 0 || fmod(y, 2.0) == 0)) {
        return expm1(part);
    }
    return pow(x, y) - 1;
}

double exp10(double x) {
    return pow(10, x);
}

double cosm1(double x) {
    const double s = sin(x / 2);
    return -2 * s * s;
}

/* The sine of x + 90 k degrees. */
static double sine_of_degrees(double x, int k) {
    const double rest = fmod(x, 360.0), turns = rint(rest / 90), angle = (rest - 90 * turns) * (PI / 180);
    if (!(fabs(x) < 1e14)) { /* so large a number has no digits behind the point */
        return x != x ? x : 0;
    }
    const int quarter = ((int)turns + k + 8) % 4;
    const double value = quarter % 2 == 0 ? sin(angle) : cos(angle);
    return quarter < 2 ? value : -value;
}

double sindg(double x) {
    return sine_of_degrees(x, 0);
}

double cosdg(double x) {
    return sine_of_degrees(x, 1);
}

double tandg(double x) {
    const double rest = fmod(x, 180.0), s = sine_of_degrees(rest, 0), c = sine_of_degrees(rest, 1);
    if (fabs(rest) == 90 || !(fabs(x) < 1e14)) {
        return fabs(rest) == 90 ? INFINITY : x != x ? x : 0;
    }
    return fabs(rest) == 45 || fabs(rest) == 135 ? (s * c > 0 ? 1 : -1) : s / c;
}

double cotdg(double x) {
    const double rest = fmod(x, 180.0), s = sine_of_degrees(rest, 0), c = sine_of_degrees(rest, 1);
    if (rest == 0 || fabs(rest) == 90 || !(fabs(x) < 1e14)) {
        return x != x ? x : rest == 0 && fabs(x) < 1e14 ? INFINITY : 0;
    }
    return fabs(rest) == 45 || fabs(rest) == 135 ? (s * c > 0 ? 1 : -1) : c / s;
}

double special_cbrt(double x) {
    return cbrt(x);
}

double special_exp2(double x) {
    return exp2(x);
}

double special_expm1(double x) {
    return expm1(x);
}

double special_log1p(double x) {
    return log1p(x);
}

double chdtr(double v, double x) {
    return gammainc(v / 2, x / 2);
}

double chdtrc(double v, double x) {
    return gammaincc(v / 2, x / 2);
}

double pdtr(double k, double m) {
    return k < 0 || m < 0 ? NAN : m == 0 ? 1 : gammaincc(floor(k) + 1, m);
}

double pdtrc(double k, double m) {
    return k < 0 || m < 0 ? NAN : m == 0 ? 0 : gammainc(floor(k) + 1, m);
}

double gdtr(double a, double b, double x) {
    return x < 0 ? NAN : gammainc(b, a * x);
}

double gdtrc(double a, double b, double x) {
    return x < 0 ? NAN : gammaincc(b, a * x);
}

double bdtr(double k, double n, double p) {
    const double whole = floor(k), rest = n - whole;
    if (!(p >= 0 && p <= 1) || whole < 0 || n < whole) {
        return NAN;
    }
    return whole == n ? 1 : whole == 0 ? pow(1 - p, rest) : beta_part(rest, whole + 1, 1 - p, p, false);
}

double bdtrc(double k, double n, double p) {
    const double whole = floor(k), rest = n - whole;
    if (!(p >= 0 && p <= 1) || n < whole) {
        return NAN;
    }
    if (whole < 0 || whole == n) {
        return whole < 0 ? 1 : 0;
    }
    return whole == 0 ? -expm1(rest * log1p(-p)) : beta_part(whole + 1, rest, p, 1 - p, false);
}

double fdtr(double a, double b, double x) {
    const double size = a * x;
    const double x_part = size == INFINITY ? 1 : size / (b + size);
    return a <= 0 || b <= 0 || x < 0 ? NAN : beta_part(a / 2, b / 2, x_part, b / (b + size), false);
}

double fdtrc(double a, double b, double x) {
    const double size = a * x;
    const double x_part = size == INFINITY ? 1 : size / (b + size);
    return a <= 0 || b <= 0 || x < 0 ? NAN : beta_part(a / 2, b / 2, x_part, b / (b + size), true);
}

double stdtr(double v, double t) {
    if (!(v > 0) || t != t) {
        return NAN;
    }
    if (v == INFINITY || t - t != 0) {
        return 0.5 * erfc(-t * ROOT_HALF);
    }
    const double square = t * t, all = v + square;
    const double tail = 0.5 * beta_part(v / 2, 0.5, v / all, square / all, false);
    return t < 0 ? tail : 1 - tail;
}

double random_mills(double z) {
    return sqrt(PI / 2) * erfcx(z * ROOT_HALF);
}

double random_ndtri(double p) {
    return ndtri(p);
}
"""


def _named(text: str, names: Iterable[str]) -> str:
    """A text whose functions have the prefix of all that exported code defines."""
    for place, value in PLACES.items():
        text = re.sub(rf"\b{place}\b", value, text)
    return re.sub(rf"\b({'|'.join(names)})\(", r"func_\1(", text)


def _expansion(name: str) -> str:
    """The function of an expansion."""
    low, high, coefficients = EXPANSIONS[name]
    lines = textwrap.wrap(
        ", ".join([repr(c) for c in coefficients]), 110, initial_indent=" " * 8, subsequent_indent=" " * 8
    )
    values = "\n".join(lines)
    return (
        f"static double func_{name}(double u) {{\n"
        f"    static const double c[{len(coefficients)}] = {{\n{values}\n    }};\n"
        f"    return func_chebyshev({len(coefficients)}, c, (u - {(low + high) / 2!r}) * {2 / (high - low)!r});\n}}"
    )


HEAD = re.compile(r"(?m)^(static )?double (\w+)\(([^)]*)\) {")


def _texts() -> tuple[dict[str, str], dict[str, int]]:
    """The function of C of each name, and the numbers of arguments of the primitives."""
    parts = f"{SOURCE}\n{special_families.SOURCE}".rstrip("\n").split("\n\n")
    heads = [HEAD.search(part) for part in parts]
    names = [head[2] for head in heads if head is not None]
    assert len(names) == len(parts)
    known = [*names, *EXPANSIONS]
    texts = {f"func_{name}": _expansion(name) for name in EXPANSIONS} | {"func_chebyshev": CHEBYSHEV}
    arity = {}
    for part, head in zip(parts, heads, strict=True):
        assert head is not None
        if head[1] is None:
            arity[head[2]] = head[3].count(",") + 1
            part = HEAD.sub(lambda match: f"static {match[0]}", part)
        texts[f"func_{head[2]}"] = _named(part, known)
    return texts, arity


TEXTS, ARITY = _texts()
