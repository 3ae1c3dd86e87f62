"""Special functions of SciPy, of real numbers in double precision.

A function whose name has no underscore in front is a primitive's. Factors without a short formula are Chebyshev
expansions, with coefficients in `special_tables.py`. Singular points and arguments out of range have SciPy's values;
`special_families.py` has functions composed of others.

Sources: NIST Digital Library of Mathematical Functions, 5.11 (gamma, digamma), 6.12 (exponential integrals), 8.7-8.9
and 8.17 (incomplete gamma and beta functions), 10.17 and 10.40 (Bessel functions), 25.2 and 25.11 (zeta functions),
25.12 (dilogarithm); W. Gautschi, ACM TOMS 5 (1979) (the ranges of the incomplete gamma functions).
"""

from __future__ import annotations

import math
from fractions import Fraction

# fmt: off
from func.backends.routines.chebyshev import expansion
from func.backends.routines.language import (
    cbrt, copysign, cos, erfc, exp, exp2, expm1, fabs, floor, fmod, horner, lgamma, log, log1p, pow,
    rint, sin, sqrt, tan, tgamma,
)
# fmt: on


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


BERNOULLI = _bernoulli(26)
STIRLING = tuple([float(BERNOULLI[2 * k] / (2 * k * (2 * k - 1))) for k in range(1, 9)])
DIGAMMA = tuple([float(BERNOULLI[2 * k] / (2 * k)) for k in range(1, 9)])
ZETA = tuple([float(BERNOULLI[2 * k] / math.factorial(2 * k)) for k in range(1, 13)])
ROOT_HALF = math.sqrt(0.5)


def _stirling(x: float) -> float:
    """ln Gamma(x) - (x - 1/2) ln x + x - ln sqrt(2 pi), for x of 10 or more."""
    z = 1 / (x * x)
    return horner(STIRLING, z) / x


def digamma(x: float) -> float:
    if x == 0:
        return copysign(math.inf, -x)
    if x == -math.inf:
        return math.nan
    total = 0.0
    if x < 0:
        part = fmod(x, 1.0)
        if part == 0:
            return math.nan
        total = -math.pi / tan(math.pi * part)
        x = 1 - x
    while x < 10:
        total -= 1 / x
        x += 1
    z = 1 / (x * x)
    return total + (log(x) - 0.5 / x - z * horner(DIGAMMA, z))


def hurwitz_zeta(x: float, q: float) -> float:
    """The sum of (k + q)^-x over k from 0 on, by the formula of Euler and Maclaurin."""
    if x == 1:
        return math.inf
    if x < 1 or x != x or q != q:
        return math.nan
    if q <= 0:
        if q == floor(q):
            return math.inf
        if x != floor(x):
            return math.nan
    if q > 1e8:
        return (1 / (x - 1) + 1 / (2 * q)) * pow(q, 1 - x)
    term = pow(q, -x)
    total, a = term, q
    count = 0
    while count < 9 or a <= 9:
        count += 1
        a += 1
        term = pow(a, -x)
        total += term
        if fabs(term) < 1.1e-16 * fabs(total):
            return total
    total += term * a / (x - 1) - 0.5 * term
    factor = x
    term /= a
    for k in range(12):
        part = factor * term * ZETA[k]
        total += part
        if fabs(part) < 1.1e-16 * fabs(total):
            break
        factor *= (x + 2 * k + 1) * (x + 2 * k + 2)
        term /= a * a
    return total


def polygamma(n: float, x: float) -> float:
    if n == 0:
        return digamma(x)
    return (-1.0 if fmod(n, 2.0) == 0 else 1.0) * tgamma(n + 1) * hurwitz_zeta(n + 1, x)


def riemann_zeta(x: float) -> float:
    if x != x or x == 1 or x == -math.inf:
        return math.inf if x == 1 else math.nan
    if x > 2.5:
        return 1 if x > 60 else hurwitz_zeta(x, 1)
    if x >= -1:
        return expansion("zeta_near", x) / (x - 1)
    if fmod(x, 2.0) == 0:
        return 0
    y = 1 - x
    rest = 2 * sin(math.pi / 2 * fmod(x, 4.0)) * riemann_zeta(y)
    if x > -9:
        return rest * pow(2 * math.pi, -y) * tgamma(y)
    part = exp(0.5 * (y * (log(y / (2 * math.pi)) - 1) - 0.5 * log(y / (2 * math.pi)) + _stirling(y)))
    return copysign(part, rest) if part == math.inf else rest * part * part


def zetac(x: float) -> float:
    return (0 if x == math.inf else hurwitz_zeta(x, 2)) if x > 2.5 else riemann_zeta(x) - 1


def gammasgn(x: float) -> float:
    if x > 0 or x != x:
        return 1 if x > 0 else x
    if x == 0:
        return copysign(1, x)
    if x == -math.inf or x == floor(x):
        return math.nan
    return 1 if fmod(floor(x), 2.0) == 0 else -1


def rgamma(x: float) -> float:
    if x <= 0 and x == floor(x):
        return 0
    if x > 34:
        return exp(-lgamma(x)) if x > 171 else 1 / tgamma(x)
    if x < -34:
        # the reflection, in two parts that are not too large
        sine = sin(math.pi * fmod(x, 2.0)) / math.pi
        return sine * tgamma(1 - x) if x > -169 else copysign(exp(lgamma(1 - x) + log(fabs(sine))), sine)
    return 1 / tgamma(x)


def loggamma(x: float) -> float:
    return math.nan if x < 0 else lgamma(x)


def betaln(a: float, b: float) -> float:
    low, high = (a if a < b else b), (b if a < b else a)
    total = low + high
    if total - total != 0 and low != 0:
        return -math.inf if total == math.inf and low > 0 else math.nan
    if low >= 10:
        return (
            -0.5 * log(high)
            + 0.91893853320467274178
            + (_stirling(low) + _stirling(high) - _stirling(total))
            + (low - 0.5) * log(low / total)
            + high * log1p(-low / total)
        )
    if high >= 10 and low > 0:
        return (
            lgamma(low)
            + (_stirling(high) - _stirling(total))
            + low
            - low * log(total)
            + (high - 0.5) * log1p(-low / total)
        )
    if low <= 0 and low == floor(low):
        return betaln(1 - low - high, high) if high == floor(high) and 1 - low - high > 0 else math.inf
    return lgamma(low) + lgamma(high) - lgamma(total)


def beta(a: float, b: float) -> float:
    low, high = (a if a < b else b), (b if a < b else a)
    if low <= 0 and low == floor(low):
        if high == floor(high) and 1 - low - high > 0:
            return (1 if fmod(high, 2.0) == 0 else -1) * beta(1 - low - high, high)
        return math.inf
    if fabs(low) < 20 and fabs(high) < 20:
        return tgamma(low) * tgamma(high) * rgamma(low + high)
    if low > 0:
        return exp(betaln(low, high))
    return gammasgn(low) * gammasgn(high) * gammasgn(low + high) * exp(betaln(low, high))


def binom(n: float, k: float) -> float:
    if (n < 0 and n == floor(n)) or n - n != 0 or k - k != 0:
        return math.nan
    few = floor(k)
    if k == few:
        few = n - few if n == floor(n) and few > n / 2 and n > 0 else few
        if few >= 0 and few < 20:
            over, under = 1.0, 1.0
            for i in range(1, int(few) + 1):
                over *= n - (few - i)
                under *= i
                if fabs(over) > 1e50:
                    over /= under
                    under = 1
            return over / under
    if n >= 1e10 * k and k > 0:
        return exp(-betaln(1 + n - k, 1 + k) - log(n + 1))
    return 1 / ((n + 1) * beta(1 + n - k, 1 + k))


def poch(a: float, m: float) -> float:
    product = 1.0
    while m >= 1 and a + m != 1 and product != 0 and product - product == 0:
        m -= 1
        product *= a + m
    while m <= -1 and a + m != 0 and product != 0 and product - product == 0:
        product /= a + m
        m += 1
    if m == 0:
        return product
    over, under = a + m <= 0 and a + m == floor(a + m), a <= 0 and a == floor(a)
    if over != under:
        return math.inf if over else 0
    return product * exp(lgamma(a + m) - lgamma(a)) * gammasgn(a + m) * gammasgn(a)


def _log1pmx(x: float, y: float) -> float:
    """ln(1 + x) - x, for 1 + x = y."""
    if fabs(x) > 0.5:
        return log(y) - x
    r = x / (2 + x)
    square = r * r
    # ln(1 + x) = 2 artanh r, and 2 r - x = -r x
    total = 0.0
    for k in range(29, 3 - 1, -2):
        total = total * square + 1.0 / k
    return r * (2 * square * total - x)


def _lgamma1p(a: float) -> float:
    """ln Gamma(1 + a)."""
    if fabs(a) > 0.25:
        return lgamma(1 + a)
    total = 0.0
    for k in range(26, 2 - 1, -1):
        total = -a * (total + hurwitz_zeta(k, 1) / k)
    return -a * (0.57721566490153286061 + total)


def _gamma_density(a: float, x: float) -> float:
    """x^a e^-x / Gamma(a)."""
    if a < 10:
        return exp(a * log(x) - x - _lgamma1p(a)) * a
    return sqrt(a / (2 * math.pi)) * exp(a * _log1pmx((x - a) / a, x / a) - _stirling(a))


def _gammainc_series(a: float, x: float) -> float:
    """P(a, x) by its series."""
    term, total = 1.0, 1.0
    k = a + 1
    while term > 1.1e-16 * total:
        term *= x / k
        total += term
        k += 1
    return _gamma_density(a, x) / a * total


def _gammaincc_fraction(a: float, x: float) -> float:
    """Q(a, x) by its continued fraction, in the form of Lentz."""
    b, c = x + 1 - a, 1e300
    d = 1 / b
    product = d
    for i in range(1, 1000000):
        over = i * (a - i)
        b += 2
        d = over * d + b
        d = 1 / (1e-300 if fabs(d) < 1e-300 else d)
        c = b + over / c
        c = 1e-300 if fabs(c) < 1e-300 else c
        product *= c * d
        if fabs(c * d - 1) < 2.3e-16:
            break
    return _gamma_density(a, x) * product


def _gammaincc_small(a: float, x: float) -> float:
    """Q(a, x) for small x."""
    factor, total = 1.0, 0.0
    for n in range(1, 2000):
        factor *= -x / n
        term = factor / (a + n)
        total += term
        if fabs(term) <= 1.1e-16 * fabs(total):
            break
    power = a * log(x)
    return -expm1(power - _lgamma1p(a)) - exp(power - _lgamma1p(a)) * a * total


def gammaincc(a: float, x: float) -> float:
    if not a >= 0 or not x >= 0:
        return math.nan
    if a == 0 or x == math.inf:
        return math.nan if x == 0 or a == math.inf else 0
    if x == 0 or a == math.inf:
        return 1
    if x > 1.1:
        return 1 - _gammainc_series(a, x) if x < a else _gammaincc_fraction(a, x)
    is_near = -0.4 / log(x) < a if x <= 0.5 else 1.1 * x < a
    return 1 - _gammainc_series(a, x) if is_near else _gammaincc_small(a, x)


def gammainc(a: float, x: float) -> float:
    if not a >= 0 or not x >= 0:
        return math.nan
    if a == 0 or x == math.inf:
        return math.nan if x == 0 or a == math.inf else 1
    if x == 0 or a == math.inf:
        return 0
    return 1 - gammaincc(a, x) if x > 1 and x > a else _gammainc_series(a, x)


def _gamma_quantile(a: float, p: float, upper: bool) -> float:
    """The x of P(a, x) = p, or of Q(a, x) = p: Newton's steps of ln P by ln x, else bisection."""
    if not a >= 0 or not (p >= 0 and p <= 1):
        return math.nan
    if p == 0 or p == 1:
        return math.inf if (p == 0) == upper else 0
    if a == 0 or a == math.inf:
        return math.nan
    z = -ndtri(p) if upper else ndtri(p)
    w = 1 - 1 / (9 * a) + z / (3 * sqrt(a))
    first = ((log1p(-p) if upper else log(p)) + _lgamma1p(a)) / a
    if first < -36:
        # the first term of the series
        return exp(first)
    low, high = -40.0, log(a + 1000 + 60 * sqrt(a))
    place = log(a) + 3 * log(w) if w > 0.2 and a > 0.5 else first if first < high else high
    for _ in range(200):
        x = exp(place)
        part = gammaincc(a, x) if upper else gammainc(a, x)
        step = part * log(part / p) / _gamma_density(a, x) * (-1 if upper else 1)
        if step == 0:
            break
        low = place if step < 0 or (part == 0 and not upper) else low
        high = place if step > 0 or (part == 0 and upper) else high
        following = place - step if step == step and place - step >= low and place - step <= high else (low + high) / 2
        change = fabs(following - place)
        place = following
        if change <= 4e-16 * fabs(place):
            break
    return exp(place)


def gammaincinv(a: float, p: float) -> float:
    return _gamma_quantile(a, p, False)


def gammainccinv(a: float, p: float) -> float:
    return _gamma_quantile(a, p, True)


def _beta_fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function, in the form of Lentz."""
    c, d = 1.0, 1 - (a + b) * x / (a + 1)
    d = 1 / (1e-300 if fabs(d) < 1e-300 else d)
    product = d
    for m in range(1, 1000000):
        for odd in range(2):
            over = (
                -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
                if odd
                else m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
            )
            d = 1 + over * d
            d = 1 / (1e-300 if fabs(d) < 1e-300 else d)
            c = 1 + over / c
            c = 1e-300 if fabs(c) < 1e-300 else c
            product *= c * d
        if fabs(c * d - 1) < 2.3e-16:
            break
    return product


def _beta_density(a: float, b: float, x: float, y: float) -> float:
    """x^a y^b / B(a, b), where y is 1 - x."""
    if a < 10 or b < 10:
        return exp(a * (log1p(-y) if x > 0.5 else log(x)) + b * (log1p(-x) if y > 0.5 else log(y)) - betaln(a, b))
    whole, off = a + b, x * b - y * a
    part = a * _log1pmx(off / a, x * whole / a) + b * _log1pmx(-off / b, y * whole / b)
    return sqrt(a * b / (2 * math.pi * whole)) * exp(part - (_stirling(a) + _stirling(b) - _stirling(whole)))


def _beta_part(a: float, b: float, x: float, y: float, upper: bool) -> float:
    """The incomplete beta function of x, or what it lacks of 1, where y is 1 - x."""
    if not (a >= 0 and b >= 0 and x >= 0 and y >= 0) or (a == 0 and b == 0) or a + b == math.inf:
        return math.nan
    if a == 0 or b == 0:
        return 1 if (b == 0) == upper else 0
    if x == 0 or y == 0:
        return 1 if (x == 0) == upper else 0
    turned = x > (a + 1) / (a + b + 2)
    size = _beta_density(a, b, x, y)
    part = size * _beta_fraction(b, a, y) / b if turned else size * _beta_fraction(a, b, x) / a
    return part if turned == upper else 0 if part > 1 else 1 - part


def betainc(a: float, b: float, x: float) -> float:
    return _beta_part(a, b, x, 1 - x, False)


def betaincc(a: float, b: float, x: float) -> float:
    return _beta_part(a, b, x, 1 - x, True)


def _quantile_near(y: float) -> float:
    """The quantile of 1/2 + y, for y between -0.425 and 0.425."""
    return y * expansion("ndtri_middle", y * y)


def ndtri(p: float) -> float:
    if not (p >= 0 and p <= 1):
        return math.nan
    if fabs(p - 0.5) <= 0.425:
        return _quantile_near(p - 0.5)
    tail = p if p < 0.5 else 1 - p
    r = sqrt(-log(tail))
    size = (
        math.inf
        if tail == 0
        else r
        * (expansion("ndtri_low", r) if r < 3 else expansion("ndtri_tail", r) if r < 7 else expansion("ndtri_far", r))
    )
    return -size if p < 0.5 else size


def erfinv(y: float) -> float:
    size = fabs(y)
    return _quantile_near(y / 2) * ROOT_HALF if size <= 0.85 else copysign(-ndtri((1 - size) / 2) * ROOT_HALF, y)


def erfcinv(z: float) -> float:
    return -ndtri(z / 2) * ROOT_HALF if z < 0.5 else erfinv(1 - z)


def dawsn(x: float) -> float:
    size, square = fabs(x), x * x
    if size < 2:
        return x * expansion("dawsn_low", square)
    return copysign(expansion("dawsn_middle", size), x) if size < 5 else expansion("dawsn_high", 1 / square) / x


def erfcx(x: float) -> float:
    if x < 0:
        return math.inf if x < -26.7 else 2 * exp(x * x) - erfcx(-x)
    return expansion("erfcx_low", x) if x < 2 else expansion("erfcx_high", 1 / x) / x


def erfi(x: float) -> float:
    part = exp(x * x / 2)
    return copysign(part, x) if part == math.inf else 1.12837916709551257390 * (part * dawsn(x)) * part


def i0e(x: float) -> float:
    size = fabs(x)
    return expansion("i0e_low", size) if size < 8 else expansion("i0e_high", 8 / size) / sqrt(size)


def i1e(x: float) -> float:
    size = fabs(x)
    return x * expansion("i1e_low", size) if size < 8 else copysign(expansion("i1e_high", 8 / size) / sqrt(size), x)


def _times_exp(x: float, y: float) -> float:
    """e^|x| y, which overflows only if it is too large."""
    part = exp(fabs(x) / 2)
    return part * y * part


def bessel_i0(x: float) -> float:
    return _times_exp(x, i0e(x))


def i1(x: float) -> float:
    return _times_exp(x, i1e(x))


def _k0_small(x: float) -> float:
    return expansion("k0_low", x * x) - log(x / 2) * bessel_i0(x) if x > 0 else math.inf if x == 0 else math.nan


def k0e(x: float) -> float:
    return expansion("k0e_high", 2 / x) / sqrt(x) if x > 2 else exp(x) * _k0_small(x)


def k0(x: float) -> float:
    return exp(-x) * k0e(x) if x > 2 else _k0_small(x)


def _k1_small(x: float) -> float:
    return expansion("k1_low", x * x) / x + log(x / 2) * i1(x) if x > 0 else math.inf if x == 0 else math.nan


def k1e(x: float) -> float:
    return expansion("k1e_high", 2 / x) / sqrt(x) if x > 2 else exp(x) * _k1_small(x)


def k1(x: float) -> float:
    return exp(-x) * k1e(x) if x > 2 else _k1_small(x)


def _wave(x: float, a: float, p: float, q: float, is_second: bool) -> float:
    """sqrt(2 / (pi x)) (p cos(x - a) - q sin(x - a)), or with a sine and a plus."""
    c, s = cos(x - a), sin(x - a)
    return (p * s + q * c if is_second else p * c - q * s) * sqrt(2 / (math.pi * x))


def j0(x: float) -> float:
    size = fabs(x)
    u = 8 / size
    return (
        expansion("j0_low", x * x)
        if size < 8
        else _wave(size, math.pi / 4, expansion("j0_cosine", u * u), u * expansion("j0_sine", u * u), False)
    )


def y0(x: float) -> float:
    if not x > 0:
        return -math.inf if x == 0 else math.nan
    u = 8 / x
    return (
        expansion("y0_low", x * x) + 2 / math.pi * log(x) * j0(x)
        if x < 8
        else _wave(x, math.pi / 4, expansion("j0_cosine", u * u), u * expansion("j0_sine", u * u), True)
    )


def j1(x: float) -> float:
    size = fabs(x)
    u = 8 / size
    if size < 8:
        return x * expansion("j1_low", x * x)
    value = _wave(size, 3 * math.pi / 4, expansion("j1_cosine", u * u), u * expansion("j1_sine", u * u), False)
    return -value if x < 0 else value


def y1(x: float) -> float:
    if not x > 0:
        return -math.inf if x == 0 else math.nan
    u = 8 / x
    return (
        x * expansion("y1_low", x * x) + 2 / math.pi * (log(x) * j1(x) - 1 / x)
        if x < 8
        else _wave(x, 3 * math.pi / 4, expansion("j1_cosine", u * u), u * expansion("j1_sine", u * u), True)
    )


def exp1(x: float) -> float:
    if not x > 0:
        return math.inf if x == 0 else math.nan
    return expansion("exp1_low", x) - log(x) if x < 2 else exp(-x) * expansion("exp1_high", 1 / x) / x


def expi(x: float) -> float:
    if not x > 0:
        return -exp1(-x) if x < 0 else -math.inf if x == 0 else x
    if x < 6 or x == math.inf:
        return log(x) + expansion("expi_low", x) if x < 6 else x
    u = 1 / x
    return _times_exp(
        x,
        (expansion("expi_middle", u) if x < 12 else expansion("expi_high", u) if x < 24 else expansion("expi_far", u))
        * u,
    )


def spence(x: float) -> float:
    """The dilogarithm of 1 - x."""
    if not (x > 0 and x < math.inf):
        return math.pi * math.pi / 6 if x == 0 else math.nan
    if x < 0.5:
        return math.pi * math.pi / 6 - log(x) * log1p(-x) - spence(1 - x)
    if x <= 1.5:
        return (1 - x) * expansion("spence_near", x)
    part = log(x)
    return -0.5 * part * part - spence(1 / x)


def entr(x: float) -> float:
    return -x * log(x) if x > 0 else 0 if x == 0 else -math.inf if x < 0 else x


def rel_entr(x: float, y: float) -> float:
    if x != x or y != y:
        return math.nan
    return x * log(x / y) if x > 0 and y > 0 else 0 if x == 0 and y >= 0 else math.inf


def kl_div(x: float, y: float) -> float:
    if x != x or y != y:
        return math.nan
    return x * log(x / y) - x + y if x > 0 and y > 0 else y if x == 0 and y >= 0 else math.inf


def huber(delta: float, r: float) -> float:
    if delta < 0:
        return math.inf
    return 0.5 * r * r if fabs(r) <= delta else delta * (fabs(r) - 0.5 * delta)


def pseudo_huber(delta: float, r: float) -> float:
    if delta < 0 or delta == 0 or r == 0:
        return math.inf if delta < 0 else 0
    v = fabs(r / delta)
    return delta * delta * (v - 1 if v > 1e8 else v * v / (1 + sqrt(1 + v * v)))


def _as_tracers(part: float, power: float) -> float:
    """(e^part)^power, less 1, over the power."""
    if power * part < 709.78:
        return expm1(power * part) / power
    return copysign(exp(power * part - log(fabs(power))), power) - 1 / power


def boxcox(x: float, power: float) -> float:
    return log(x) if fabs(power) < 1e-19 else _as_tracers(log(x), power)


def boxcox1p(x: float, power: float) -> float:
    part = log1p(x)
    return part if fabs(power) < 1e-19 or (fabs(part) < 1e-289 and fabs(power) < 1e273) else _as_tracers(part, power)


def inv_boxcox(x: float, power: float) -> float:
    return exp(x) if power == 0 else exp(log1p(power * x) / power)


def inv_boxcox1p(x: float, power: float) -> float:
    return expm1(x) if power == 0 else x if fabs(power * x) < 1e-154 else expm1(log1p(power * x) / power)


def powm1(x: float, y: float) -> float:
    size = fabs(x)
    part = y * log(size) if size > 0 else math.inf
    if fabs(part) < 0.5 and (x > 0 or fmod(y, 2.0) == 0):
        return expm1(part)
    return pow(x, y) - 1


def exp10(x: float) -> float:
    return pow(10, x)


def cosm1(x: float) -> float:
    s = sin(x / 2)
    return -2 * s * s


def _sine_of_degrees(x: float, k: int) -> float:
    """The sine of x + 90 k degrees."""
    rest = fmod(x, 360.0)
    turns = rint(rest / 90)
    angle = (rest - 90 * turns) * (math.pi / 180)
    if not fabs(x) < 1e14:
        # so large a number has no digits behind the point
        return x if x != x else 0
    quarter = (int(turns) + k + 8) % 4
    value = sin(angle) if quarter % 2 == 0 else cos(angle)
    return value if quarter < 2 else -value


def sindg(x: float) -> float:
    return _sine_of_degrees(x, 0)


def cosdg(x: float) -> float:
    return _sine_of_degrees(x, 1)


def tandg(x: float) -> float:
    rest = fmod(x, 180.0)
    s, c = _sine_of_degrees(rest, 0), _sine_of_degrees(rest, 1)
    if fabs(rest) == 90 or not fabs(x) < 1e14:
        return math.inf if fabs(rest) == 90 else x if x != x else 0
    return (1 if s * c > 0 else -1) if fabs(rest) == 45 or fabs(rest) == 135 else s / c


def cotdg(x: float) -> float:
    rest = fmod(x, 180.0)
    s, c = _sine_of_degrees(rest, 0), _sine_of_degrees(rest, 1)
    if rest == 0 or fabs(rest) == 90 or not fabs(x) < 1e14:
        return x if x != x else math.inf if rest == 0 and fabs(x) < 1e14 else 0
    return (1 if s * c > 0 else -1) if fabs(rest) == 45 or fabs(rest) == 135 else c / s


def special_cbrt(x: float) -> float:
    return cbrt(x)


def special_exp2(x: float) -> float:
    return exp2(x)


def special_expm1(x: float) -> float:
    return expm1(x)


def special_log1p(x: float) -> float:
    return log1p(x)


def chdtr(v: float, x: float) -> float:
    return gammainc(v / 2, x / 2)


def chdtrc(v: float, x: float) -> float:
    return gammaincc(v / 2, x / 2)


def pdtr(k: float, m: float) -> float:
    return math.nan if k < 0 or m < 0 else 1 if m == 0 else gammaincc(floor(k) + 1, m)


def pdtrc(k: float, m: float) -> float:
    return math.nan if k < 0 or m < 0 else 0 if m == 0 else gammainc(floor(k) + 1, m)


def gdtr(a: float, b: float, x: float) -> float:
    return math.nan if x < 0 else gammainc(b, a * x)


def gdtrc(a: float, b: float, x: float) -> float:
    return math.nan if x < 0 else gammaincc(b, a * x)


def bdtr(k: float, n: float, p: float) -> float:
    whole = floor(k)
    rest = n - whole
    if not (p >= 0 and p <= 1) or whole < 0 or n < whole:
        return math.nan
    return 1 if whole == n else pow(1 - p, rest) if whole == 0 else _beta_part(rest, whole + 1, 1 - p, p, False)


def bdtrc(k: float, n: float, p: float) -> float:
    whole = floor(k)
    rest = n - whole
    if not (p >= 0 and p <= 1) or n < whole:
        return math.nan
    if whole < 0 or whole == n:
        return 1 if whole < 0 else 0
    return -expm1(rest * log1p(-p)) if whole == 0 else _beta_part(whole + 1, rest, p, 1 - p, False)


def fdtr(a: float, b: float, x: float) -> float:
    size = a * x
    x_part = 1 if size == math.inf else size / (b + size)
    return math.nan if a <= 0 or b <= 0 or x < 0 else _beta_part(a / 2, b / 2, x_part, b / (b + size), False)


def fdtrc(a: float, b: float, x: float) -> float:
    size = a * x
    x_part = 1 if size == math.inf else size / (b + size)
    return math.nan if a <= 0 or b <= 0 or x < 0 else _beta_part(a / 2, b / 2, x_part, b / (b + size), True)


def stdtr(v: float, t: float) -> float:
    if not v > 0 or t != t:
        return math.nan
    if v == math.inf or t - t != 0:
        return 0.5 * erfc(-t * ROOT_HALF)
    square = t * t
    whole = v + square
    tail = 0.5 * _beta_part(v / 2, 0.5, v / whole, square / whole, False)
    return tail if t < 0 else 1 - tail


def random_mills(z: float) -> float:
    return sqrt(math.pi / 2) * erfcx(z * ROOT_HALF)


def random_ndtri(p: float) -> float:
    return ndtri(p)
