"""More special functions as functions of C, by formulas alone: elliptic integrals, Bessel functions of whole orders,
inverse distributions, and derivatives of incomplete functions by their parameters.

Sources: NIST Digital Library of Mathematical Functions, 10.6, 10.29 and 10.74 (recurrences of Bessel functions), 19.8
(the arithmetic-geometric mean), 19.25 and 19.36 (Carlson's integrals, by duplication), 8.17 (the incomplete beta
function). The derivatives by parameters are the integrals of `backends/support/gamma.py` and `special.py`.
"""

from __future__ import annotations

import numpy as np


def _listed(numbers: np.ndarray) -> str:
    """Numbers of a table."""
    texts = [repr(float(x)) for x in numbers]
    return ",\n        ".join([", ".join(texts[i : i + 4]) for i in range(0, len(texts), 4)])


NODES, WEIGHTS = np.polynomial.legendre.leggauss(64)
PLACES = {"LEGENDRE_NODES": _listed((NODES + 1) / 2), "LEGENDRE_WEIGHTS": _listed(WEIGHTS / 2)}
"""What stands for places of the texts."""
MOST = 6
"""The highest order of a derivative of gamma variates."""

SOURCE = """\
double elliprf(double x, double y, double z) {
    if (!(x >= 0 && y >= 0 && z >= 0)) {
        return NAN;
    }
    if ((x == 0) + (y == 0) + (z == 0) > 1) {
        return INFINITY;
    }
    if (x == INFINITY || y == INFINITY || z == INFINITY) {
        return 0;
    }
    double a = (x + y + z) / 3;
    for (int i = 0; i < 600 && (fabs(a - x) > 0.005 * a || fabs(a - y) > 0.005 * a || fabs(a - z) > 0.005 * a); ++i) {
        const double root = sqrt(x), other = sqrt(y), third = sqrt(z), step = root * (other + third) + other * third;
        x = (x + step) / 4;
        y = (y + step) / 4;
        z = (z + step) / 4;
        a = (a + step) / 4;
    }
    const double u = (a - x) / a, v = (a - y) / a, w = -u - v, e2 = u * v - w * w, e3 = u * v * w;
    const double part = e2 * (-1.0 / 10 + e2 * (1.0 / 24 - e2 * (5.0 / 208)));
    return (1 + (part + e3 * (1.0 / 14 + e3 * (3.0 / 104) + e2 * (e2 / 16 - 3.0 / 44)))) / sqrt(a);
}

double elliprc(double x, double y) {
    if (!(x >= 0) || y != y) {
        return NAN;
    }
    if (y == 0) {
        return NAN;
    }
    if (x == INFINITY || fabs(y) == INFINITY) {
        return 0;
    }
    return y < 0 ? sqrt(x / (x - y)) * elliprc(x - y, -y) : elliprf(x, y, y);
}

/* The series of the integrals of the third kind at the mean of five numbers, near it, less a, which is large. */
static double carlson_series(double u, double v, double w, double p, double e2) {
    const double e3 = u * v * w + 2 * e2 * p + 4 * p * p * p, e5 = u * v * w * p * p;
    const double e4 = (2 * u * v * w + e2 * p + 3 * p * p * p) * p;
    return 1 - e2 * (3.0 / 14) + e3 / 6 + e2 * e2 * (9.0 / 88) - e4 * (3.0 / 22) - e2 * e3 * (9.0 / 52)
           + e5 * (3.0 / 26) - e2 * e2 * e2 / 16 + e3 * e3 * (3.0 / 40) + e2 * e4 * (3.0 / 20)
           + e2 * e2 * e3 * (45.0 / 272) - (e3 * e4 + e2 * e5) * (9.0 / 68);
}

double elliprd(double x, double y, double z) {
    if (!(x >= 0 && y >= 0 && z >= 0)) {
        return NAN;
    }
    if (z == 0 || (x == 0 && y == 0)) {
        return INFINITY;
    }
    if (x == INFINITY || y == INFINITY || z == INFINITY) {
        return 0;
    }
    double a = (x + y + 3 * z) / 5, sum = 0, factor = 1;
    for (int i = 0; i < 600 && (fabs(a - x) > 0.003 * a || fabs(a - y) > 0.003 * a || fabs(a - z) > 0.003 * a); ++i) {
        const double root = sqrt(x), other = sqrt(y), third = sqrt(z), step = root * (other + third) + other * third;
        sum += factor / (third * (z + step));
        factor /= 4;
        x = (x + step) / 4;
        y = (y + step) / 4;
        z = (z + step) / 4;
        a = (a + step) / 4;
    }
    const double u = (a - x) / a, v = (a - y) / a, p = -(u + v) / 3;
    return 3 * sum + factor * carlson_series(u, v, p, p, u * v - 6 * p * p) / (a * sqrt(a));
}

double elliprg(double x, double y, double z) {
    const double low = fmin(x, fmin(y, z)), high = fmax(x, fmax(y, z));
    if (!(low >= 0) || x != x || y != y || z != z) {
        return NAN;
    }
    if (high == INFINITY) {
        return INFINITY;
    }
    const double middle = x == low ? fmin(y, z) : y == low ? fmin(x, z) : fmin(x, y);
    if (middle == 0) {
        return sqrt(high) / 2;
    }
    const double rest = (low - middle) * (high - middle) / 3;
    const double part = rest == 0 ? 0 : rest * elliprd(low, high, middle);
    return (middle * elliprf(x, y, z) - part + sqrt(low / middle) * sqrt(high)) / 2;
}

double elliprj(double x, double y, double z, double p) {
    if (!(x >= 0 && y >= 0 && z >= 0) || p != p) {
        return NAN;
    }
    if (p == 0 || (x == 0) + (y == 0) + (z == 0) > 1) {
        return INFINITY;
    }
    if (x == INFINITY || y == INFINITY || z == INFINITY || fabs(p) == INFINITY) {
        return 0;
    }
    if (p < 0) { /* the principal value */
        const double low = fmin(x, fmin(y, z)), high = fmax(x, fmax(y, z)), q = -p;
        const double middle = x == low ? fmin(y, z) : y == low ? fmin(x, z) : fmin(x, y);
        const double other = (high * (low + middle + q) - low * middle) / (high + q), across = low * middle;
        const double root = sqrt(across * high / (across + other * q)) * elliprc(across + other * q, other * q);
        return ((other - high) * elliprj(x, y, z, other) - 3 * elliprf(x, y, z) + 3 * root) / (q + high);
    }
    double a = (x + y + z + 2 * p) / 5, sum = 0, factor = 1;
    const double gaps = (p - x) * (p - y) * (p - z);
    for (int i = 0; i < 600 && (fabs(a - x) > 0.003 * a || fabs(a - y) > 0.003 * a || fabs(a - z) > 0.003 * a
                                || fabs(a - p) > 0.003 * a); ++i) {
        const double root = sqrt(x), other = sqrt(y), third = sqrt(z), step = root * (other + third) + other * third;
        const double end = sqrt(p), all = (end + root) * (end + other) * (end + third);
        sum += factor / all * elliprc(1, 1 + factor * factor * factor * gaps / (all * all));
        factor /= 4;
        x = (x + step) / 4;
        y = (y + step) / 4;
        z = (z + step) / 4;
        p = (p + step) / 4;
        a = (a + step) / 4;
    }
    const double u = (a - x) / a, v = (a - y) / a, w = (a - z) / a, off = -(u + v + w) / 2;
    const double part = carlson_series(u, v, w, off, u * v + u * w + v * w - 3 * off * off);
    return 6 * sum + factor * part / (a * sqrt(a));
}

double agm(double a, double b) {
    if (a != a || b != b || (a < 0 && b > 0) || (a > 0 && b < 0)) {
        return NAN;
    }
    if (a == 0 || b == 0) {
        return a - a != 0 || b - b != 0 ? NAN : 0;
    }
    if (a - a != 0 || b - b != 0) {
        return copysign(INFINITY, a);
    }
    double x = fabs(a), y = fabs(b);
    for (int i = 0; i < 60 && fabs(x - y) > 4e-16 * x; ++i) {
        const double mean = x / 2 + y / 2;
        y = sqrt(x) * sqrt(y);
        x = mean;
    }
    return copysign(x, a);
}

double ellipkm1(double p) {
    if (!(p > 0)) {
        return p == 0 ? INFINITY : NAN;
    }
    return p == INFINITY ? 0 : PI / 2 / agm(1, sqrt(p));
}

double ellipk(double m) {
    return ellipkm1(1 - m);
}

double ellipe(double m) {
    return m > 1 || m != m ? NAN : m == -INFINITY ? INFINITY : 2 * elliprg(0, 1 - m, 1);
}

static double ellipk_slope(double m) {
    return elliprd(0, 1, 1 - m) / 6;
}

static double ellipkm1_slope(double p) {
    return elliprd(0, 1, p) / -6;
}

static double ellipe_slope(double m) {
    return elliprd(0, 1 - m, 1) / -6;
}

/* The incomplete integrals: `multiple` is the nearest multiple of pi, `sine` and `cosine` are those of the rest. */
double ellipkinc(double phi, double m) {
    if (phi != phi || !(m <= 1)) {
        return NAN;
    }
    if (phi - phi != 0 || m == -INFINITY) {
        return phi - phi != 0 ? (m == -INFINITY ? NAN : phi) : 0;
    }
    if (m == 1 && fabs(phi) >= PI / 2) {
        return INFINITY;
    }
    const double multiple = rint(phi / PI), sine = sin(phi - multiple * PI), cosine = cos(phi - multiple * PI);
    const double part = sine * elliprf(cosine * cosine, 1 - m * sine * sine, 1);
    return multiple == 0 ? part : part + 2 * multiple * ellipk(m);
}

double ellipeinc(double phi, double m) {
    if (phi != phi || !(m <= 1)) {
        return NAN;
    }
    if (phi - phi != 0 || m == -INFINITY) {
        return phi - phi != 0 ? phi : phi == 0 ? phi : -m;
    }
    const double multiple = rint(phi / PI), sine = sin(phi - multiple * PI), cosine = cos(phi - multiple * PI);
    const double square = sine * sine, rest = 1 - m * square, third = m == 0 ? 0 : m * square * sine / 3;
    const double first = sine * elliprf(cosine * cosine, rest, 1);
    const double part = third == 0 ? first : first - third * elliprd(cosine * cosine, rest, 1);
    return multiple == 0 ? part : part + 2 * multiple * ellipe(m);
}

double ellipkinc_dm(double phi, double m) {
    const double multiple = rint(phi / PI), sine = sin(phi - multiple * PI), cosine = cos(phi - multiple * PI);
    const double part = sine * sine * sine * elliprd(cosine * cosine, 1, 1 - m * sine * sine) / 6;
    return multiple == 0 ? part : part + multiple * elliprd(0, 1, 1 - m) / 3;
}

double ellipeinc_dm(double phi, double m) {
    const double multiple = rint(phi / PI), sine = sin(phi - multiple * PI), cosine = cos(phi - multiple * PI);
    const double part = sine * sine * sine * elliprd(cosine * cosine, 1 - m * sine * sine, 1) / -6;
    return multiple == 0 ? part : part + multiple * elliprd(0, 1 - m, 1) / -3;
}

/* Minus one to the power of a whole number. */
static double alternating(double n) {
    return fmod(n, 2.0) == 0 ? 1 : -1;
}

/* J_n(x) of a whole n >= 0 and x >= 0: upwards to the order x, behind it by ratios from above. */
static double jn_above(double n, double x) {
    if (n == 0 || n == 1) {
        return n == 0 ? j0(x) : j1(x);
    }
    if (x == 0 || x == INFINITY) {
        return 0;
    }
    const double turn = n < x ? n : floor(x);
    double low = j0(x), high = turn > 0 ? j1(x) : low;
    for (double k = 1; k < turn; ++k) {
        const double next = 2 * k / x * high - low;
        low = high;
        high = next;
    }
    double ratio = 0, product = high;
    for (double k = n + 30 + floor(10 * cbrt(n)); k > turn && turn < n; --k) {
        ratio = 1 / (2 * k / x - ratio);
        product *= k <= n ? ratio : 1;
    }
    return product;
}

double jv(double v, double x) {
    if (v != v || x != x) {
        return NAN;
    }
    const double value = jn_above(fabs(v), fabs(x));
    return (v < 0) != (x < 0) ? alternating(v) * value : value;
}

double jve(double v, double x) {
    return jv(v, x);
}

double yv(double v, double x) {
    const double n = fabs(v), sign = v < 0 ? alternating(v) : 1;
    if (v != v || !(x > 0)) {
        return x == 0 && v == v ? sign * -INFINITY : NAN;
    }
    if (n == 0 || x == INFINITY) {
        return n == 0 ? y0(x) : 0;
    }
    double low = y0(x), high = y1(x);
    for (double k = 1; k < n && high > -INFINITY; ++k) {
        const double next = 2 * k / x * high - low;
        low = high;
        high = next;
    }
    return sign * high;
}

double yve(double v, double x) {
    return x == 0 ? NAN : yv(v, x);
}

double yn(double n, double x) {
    return yv(n, x);
}

double ive(double v, double x) {
    const double n = fabs(v), size = fabs(x);
    if (n != n || size != size) {
        return NAN;
    }
    double value = n == 1 ? i1e(size) : i0e(size), ratio = 0;
    if (n > 1 && (size == 0 || size > 1e10)) {
        value = size == 0 ? 0 : value * exp(-n / 2 * (n / size));
    } else if (n > 1) {
        for (double k = floor(sqrt(n * n + 40 * size)) + 30; k > 0; --k) {
            ratio = size / (2 * k + size * ratio);
            value *= k <= n ? ratio : 1;
        }
    }
    return x < 0 ? alternating(v) * value : value;
}

double iv(double v, double x) {
    return times_exp(x, ive(v, x));
}

double kve(double v, double x) {
    const double n = fabs(v);
    if (n != n || !(x > 0)) {
        return x == 0 && n == n ? INFINITY : NAN;
    }
    double low = k0e(x), high = n == 0 ? low : k1e(x);
    for (double k = 1; k < n && high < INFINITY; ++k) {
        const double next = 2 * k / x * high + low;
        low = high;
        high = next;
    }
    return high;
}

double kv(double v, double x) {
    const double part = exp(-x / 2);
    return x > 0 ? part * kve(v, x) * part : kve(v, x);
}

double kn(double n, double x) {
    return kv(n, x);
}

/* The x below 1/2 where the incomplete beta function, or what it lacks of 1, is p: Newton's steps of its logarithm by
   ln x, bisection where they leave what is known. */
static double beta_root(double a, double b, double p, bool upper) {
    const double first = ((upper ? log1p(-p) : log(p)) + log(a) + betaln(a, b)) / a;
    if (first < -700 || (first < -36 && fabs(b) * exp(first) < 1e-16)) { /* the first term of the series */
        return exp(first);
    }
    double low = -745, high = -0.69314718055994530942;
    double l = first < high ? first : high - 0.1;
    for (int i = 0; i < 200; ++i) {
        const double x = exp(l), part = beta_part(a, b, x, 1 - x, upper);
        const double step = part * log(part / p) * (1 - x) / beta_density(a, b, x, 1 - x) * (upper ? -1 : 1);
        if (step == 0) {
            break;
        }
        low = step < 0 || (part == 0 && !upper) ? l : low;
        high = step > 0 || (part == 0 && upper) ? l : high;
        const double next = step == step && l - step >= low && l - step <= high ? l - step : (low + high) / 2;
        const double moved = fabs(next - l);
        l = next;
        if (moved <= 2e-16 * fabs(l)) {
            break;
        }
    }
    return exp(l);
}

static double beta_quantile(double a, double b, double p, bool upper) {
    if (!(a > 0 && b > 0 && p >= 0 && p <= 1) || a == INFINITY || b == INFINITY) {
        return NAN;
    }
    if (p == 0 || p == 1) {
        return (p == 0) == upper ? 1 : 0;
    }
    const bool is_left = (beta_part(a, b, 0.5, 0.5, upper) > p) != upper;
    return is_left ? beta_root(a, b, p, upper) : 1 - beta_root(b, a, p, !upper);
}

double betaincinv(double a, double b, double p) {
    return beta_quantile(a, b, p, false);
}

double betainccinv(double a, double b, double p) {
    return beta_quantile(a, b, p, true);
}

double chdtri(double v, double p) {
    return 2 * gammainccinv(v / 2, p);
}

double gdtrix(double a, double b, double p) {
    return gammaincinv(b, p) / a;
}

double pdtri(double k, double p) {
    return k < 0 || p < 0 || p >= 1 ? NAN : gammainccinv(trunc(k) + 1, p);
}

double fdtri(double a, double b, double p) {
    const double low = beta_quantile(a / 2, b / 2, p, false), high = beta_quantile(b / 2, a / 2, p, true);
    return b * low / (a * high);
}

double stdtrit(double v, double p) {
    if (!(v > 0 && p >= 0 && p <= 1)) {
        return NAN;
    }
    if (v == INFINITY || p == 0 || p == 1) {
        return p == 0 || p == 1 ? (p == 0 ? -INFINITY : INFINITY) : ndtri(p);
    }
    const double tail = p < 0.5 ? 2 * p : 2 * (1 - p), near = beta_quantile(v / 2, 0.5, tail, false);
    const double size = sqrt(v) * sqrt(beta_quantile(0.5, v / 2, tail, true) / near);
    return p < 0.5 ? -size : size;
}

double bdtri(double k, double n, double p) {
    const double whole = floor(k), rest = n - whole;
    if (!(p >= 0 && p <= 1) || whole < 0 || !(rest > 0)) {
        return NAN;
    }
    return beta_quantile(whole + 1, rest, p, true);
}

double nbdtr(double k, double n, double p) {
    return p >= 0 && p <= 1 && k >= 0 ? beta_part(trunc(n), trunc(k) + 1, p, 1 - p, false) : NAN;
}

double nbdtrc(double k, double n, double p) {
    return p >= 0 && p <= 1 && k >= 0 ? beta_part(trunc(n), trunc(k) + 1, p, 1 - p, true) : NAN;
}

double nbdtri(double k, double n, double p) {
    return k >= 0 ? beta_quantile(trunc(n), trunc(k) + 1, p, false) : NAN;
}

/* By the continued fraction for x > 1, else by the series with its logarithm. */
double expn(double n, double x) {
    if (!(n >= 0 && x >= 0)) {
        return NAN;
    }
    if (x == 0 || x == INFINITY || n == 0) {
        return x == INFINITY ? 0 : x > 0 ? exp(-x) / x : n < 2 ? INFINITY : 1 / (n - 1);
    }
    if (x > 1) {
        double b = x + n, c = 1e300, d = 1 / b, product = d;
        for (int i = 1; i < 100000; ++i) {
            const double over = -i * (n - 1 + i);
            b += 2;
            d = 1 / (over * d + b);
            c = b + over / c;
            product *= c * d;
            if (fabs(c * d - 1) < 2.3e-16) {
                break;
            }
        }
        return product * exp(-x);
    }
    double factor = 1, sum = n == 1 ? digamma(1) - log(x) : 1 / (n - 1);
    for (int i = 1; i < 1000; ++i) {
        factor *= -x / i;
        const double term = i == n - 1 ? factor * (digamma(n) - log(x)) : -factor / (i - (n - 1));
        sum += term;
        if (fabs(term) <= 1.1e-16 * fabs(sum)) {
            break;
        }
    }
    return sum;
}

/* Derivatives of order k + 1 of the logarithm y of a gamma variate by its parameter a, at one quantile. */
static double gamma_slope(double k, double a, double y) {
    static const double nodes[64] = {
        LEGENDRE_NODES};
    static const double weights[64] = {
        LEGENDRE_WEIGHTS};
    if (!(a > 0) || y - y != 0) {
        return NAN;
    }
    enum { MOST = 8 };
    const int order = (int)k;
    const double x = exp(y), decay = 45;
    const bool below = y <= log1p(a);
    const double rest = below ? a + 1 - x : x - a, lead = 2 * rest - decay;
    const double root = sqrt(lead * lead + 8 * decay * (a + 1));
    double stop = 0, moments[MOST] = {0}, logs[MOST] = {0};
    if (below) {
        stop = lead > 0 ? 4 * decay / (lead + root) : (root - lead) / (2 * (a + 1));
    } else {
        stop = fmin(2 * decay / (rest + sqrt(rest * rest + 2 * x * decay)), log1p(decay / rest));
    }
    for (int i = 0; i < 64; ++i) {
        const double s = stop * nodes[i], bent = below ? s + expm1(-s) : expm1(s) - s;
        double term = exp(-rest * s - x * bent) * (stop * weights[i]);
        for (int j = 0; j <= order + 1; ++j) {
            moments[j] += term;
            term *= s;
        }
    }
    for (int j = 0; j <= order; ++j) {
        logs[j] = (j == 0 ? y : 0) - polygamma(j, below ? a + 1 : a);
    }
    double total = below ? 0 : moments[order + 1], outer = 1, power = 1 / a;
    for (int j = 0; j <= order; ++j) { /* `outer` is a binomial coefficient, times -1^j j! / a^(j + 1) with `power` */
        if (!below) {
            total += outer * logs[j] * moments[order - j];
        } else {
            const int degree = order - j;
            const double sign = degree % 2 == 0 ? 1 : -1;
            double bracket = -sign * x * moments[degree + 1], inner = 1;
            for (int i = 0; i <= degree; ++i) {
                const int left = degree - i;
                bracket += inner * logs[i] * ((left % 2 == 0 ? x : -x) * moments[left] + (left == 0 ? 1 : 0));
                inner = inner * left / (i + 1);
            }
            total -= outer * power * bracket;
        }
        outer = outer * (order - j) / (j + 1);
        power *= -(j + 1) / a;
    }
    return total;
}

/* (a + d)^-n - a^-n. */
static double power_gap(double a, double d, double n) {
    return n == 1 ? -d / (a * (a + d)) : pow(a, -n) * expm1(-n * log1p(d / a));
}

/* The gap of the function below for large a and a + d, by its asymptotic series. */
static double polygamma_gap_far(double n, double a, double d) {
    static const double terms[8] = {1.0 / 12, -1.0 / 720, 1.0 / 30240, -1.0 / 1209600, 1.0 / 47900160,
        -691.0 / 1307674368000.0, 1.0 / 74724249600.0, -3617.0 / 10670622842880000.0};
    const double end = a + d, factor = tgamma(n + 1);
    const double low = 1 / (a * a), high = 1 / (end * end), step = -d / a * (1 + a / end) / (a * end);
    double out = n == 0 ? -log1p(d / a) : factor / n * power_gap(a, d, n);
    double gap = n == 0 ? step : power_gap(a, d, n + 2), power = n == 0 ? low : pow(a, -(n + 2));
    double rising = factor * (n + 1);
    out += 0.5 * factor * power_gap(a, d, n + 1);
    for (int k = 0; k < 8; ++k) {
        out += terms[k] * rising * gap;
        rising *= (n + 2 * k + 2) * (n + 2 * k + 3);
        gap = gap * high + power * step;
        power *= low;
    }
    return fmod(n, 2.0) == 0 ? -out : out;
}

/* The derivative of order n of psi at a + d less that at a. */
double polygamma_gap(double n, double a, double d) {
    if (a >= 16 && a + d >= 16) {
        return polygamma_gap_far(n, a, d);
    }
    if (!(a > 0 && fabs(d) < 0.01 * a)) {
        return polygamma(n, a + d) - polygamma(n, a);
    }
    double sum = 0;
    for (int k = 0; k < 16; ++k) {
        sum += power_gap(a + k, d, n + 1);
    }
    return (fmod(n, 2.0) == 0 ? -sum : sum) * tgamma(n + 1) + polygamma_gap_far(n, a + 16, d);
}

double pseudo_huber_ddelta(double delta, double r) {
    const double u = r / delta, h = hypot(1, u), rise = u * (u / (h + 1));
    return delta * (rise * (rise / h));
}

double pseudo_huber_dr(double delta, double r) {
    return delta == 0 ? 0 : r / hypot(1, r / delta);
}

double gammaln_gap(double a, double d) {
    static const double terms[8] = {1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188, -691.0 / 360360,
        1.0 / 156, -3617.0 / 122400};
    if (!(a >= 16 && a + d >= 16)) {
        return lgamma(a + d) - lgamma(a);
    }
    double sum = (a - 0.5) * log1p(d / a) + d * (log(a + d) - 1);
    for (int k = 0; k < 8; ++k) {
        sum += terms[k] * power_gap(a, d, 2 * k + 1);
    }
    return sum;
}

/* The integral of u^(a - 1) (1 - u)^(b - 1) |ln u + gap| / B(a, b) from 0 to t (of ln(1 - u) if `turned`), where the
   logarithm and gap do not change their sign, by u = t e^-s and double exponential nodes; rest = 1 - t. */
static double beta_tail(double a, double b, double t, double rest, double gap, bool turned) {
    const double log_rest = rest < 0.5 ? log(rest) : log1p(-t), log_t = t < 0.5 ? log(t) : log1p(-rest);
    const double step = rest >= 0.02 ? 1.0 / 16 : 1.0 / 40, reach = rest >= 0.02 ? 3.4 : 5.2;
    double stop = (45 + (b > 1 ? b - 1 : 0) * -log_rest) / a, sum = 0;
    for (int i = 0; b > 1 && i < 12; ++i) { /* Newton's method on a concave function, from the right */
        const double u = t * exp(-stop), grade = -a + (b - 1) * u / (1 - u);
        const double value = -a * stop + (b - 1) * (log1p(-u) - log_rest) + 45;
        stop = grade < 0 ? stop - value / grade : stop;
    }
    for (double place = -reach; place < reach + step / 2; place += step) {
        const double bent = PI * sinh(place), node = 1 / (1 + exp(-bent)), s = stop * node;
        const double weight = step * PI * cosh(place) * node / (1 + exp(bent)), shift = -t * expm1(-s);
        const double lost = t * exp(-s), growth = log1p(shift / rest);
        const double bracket = !turned ? log_t + gap - s
                               : gap + (lost < 0.5 ? log1p(-lost) : log(rest + shift));
        sum += exp(-a * s + (b - 1) * growth) * bracket * weight;
    }
    return sum * stop * exp(a * log_t + (b - 1) * log_rest - betaln(a, b));
}

/* The derivative of the incomplete beta function by a, where y is 1 - x. */
static double beta_slope(double a, double b, double x, double y) {
    if (!(a > 0 && b > 0 && x >= 0 && y >= 0) || a == INFINITY || b == INFINITY) {
        return NAN;
    }
    if (x == 0 || y == 0) {
        return 0;
    }
    const double gap = polygamma_gap(0, a, b);
    return log(x) < -gap ? beta_tail(a, b, x, y, gap, false) : -beta_tail(b, a, y, x, gap, true);
}

double betainc_da(double a, double b, double x) {
    return beta_slope(a, b, x, 1 - x);
}

double betainc_db(double a, double b, double x) {
    return -beta_slope(b, a, 1 - x, x);
}
"""
