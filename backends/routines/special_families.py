"""More special functions by formulas alone: elliptic integrals, Bessel functions of whole orders, inverse
distributions, and derivatives of incomplete functions by their parameters.

Sources: NIST Digital Library of Mathematical Functions, 10.6, 10.29 and 10.74 (recurrences of Bessel functions), 19.8
(the arithmetic-geometric mean), 19.25 and 19.36 (Carlson's integrals, by duplication), 8.17 (the incomplete beta
function). The derivatives by parameters are the integrals of `backends/array_helpers/gamma.py` and `special.py`.
"""

from __future__ import annotations

import math
from types import FunctionType

import numpy as np

from func.backends.routines import special_functions

# fmt: off
from func.backends.routines.language import (
    Floats, cbrt, copysign, cos, cosh, exp, expm1, fabs, floor, fmax, fmin, fmod, hypot, lgamma, log, log1p, pow,
    rint, sin, sinh, sqrt, tgamma, trunc, zeros,
)
from func.backends.routines.special_functions import (
    _beta_density, _beta_part, _times_exp, betaln, digamma, gammainccinv, gammaincinv, i0e, i1e, j0, j1, k0e, k1e,
    ndtri, polygamma, y0, y1,
)
# fmt: on

MOST_ORDERS = 6
"""The highest order of a derivative of gamma variates."""
MOMENTS = 8
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)
NODES, WEIGHTS = tuple([float(x) for x in (_NODES + 1) / 2]), tuple([float(x) for x in _WEIGHTS / 2])
GAP_TERMS = (
    1 / 12,
    -1 / 720,
    1 / 30240,
    -1 / 1209600,
    1 / 47900160,
    -691 / 1307674368000.0,
    1 / 74724249600.0,
    -3617 / 10670622842880000.0,
)
GAMMALN_TERMS = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)


def elliprf(x: float, y: float, z: float) -> float:
    if not (x >= 0 and y >= 0 and z >= 0):
        return math.nan
    if (x == 0) + (y == 0) + (z == 0) > 1:
        return math.inf
    if x == math.inf or y == math.inf or z == math.inf:
        return 0
    a = (x + y + z) / 3
    for _ in range(600):
        if not (fabs(a - x) > 0.005 * a or fabs(a - y) > 0.005 * a or fabs(a - z) > 0.005 * a):
            break
        root, other, third = sqrt(x), sqrt(y), sqrt(z)
        step = root * (other + third) + other * third
        x = (x + step) / 4
        y = (y + step) / 4
        z = (z + step) / 4
        a = (a + step) / 4
    u, v = (a - x) / a, (a - y) / a
    w = -u - v
    e2, e3 = u * v - w * w, u * v * w
    part = e2 * (-1.0 / 10 + e2 * (1.0 / 24 - e2 * (5.0 / 208)))
    return (1 + (part + e3 * (1.0 / 14 + e3 * (3.0 / 104) + e2 * (e2 / 16 - 3.0 / 44)))) / sqrt(a)


def elliprc(x: float, y: float) -> float:
    if not x >= 0 or y != y:
        return math.nan
    if y == 0:
        return math.nan
    if x == math.inf or fabs(y) == math.inf:
        return 0
    return sqrt(x / (x - y)) * elliprc(x - y, -y) if y < 0 else elliprf(x, y, y)


def _carlson_series(u: float, v: float, w: float, p: float, e2: float) -> float:
    """The series of the integrals of the third kind at the mean of five numbers, near it, less a, which is large."""
    e3, e5 = u * v * w + 2 * e2 * p + 4 * p * p * p, u * v * w * p * p
    e4 = (2 * u * v * w + e2 * p + 3 * p * p * p) * p
    return (
        1
        - e2 * (3.0 / 14)
        + e3 / 6
        + e2 * e2 * (9.0 / 88)
        - e4 * (3.0 / 22)
        - e2 * e3 * (9.0 / 52)
        + e5 * (3.0 / 26)
        - e2 * e2 * e2 / 16
        + e3 * e3 * (3.0 / 40)
        + e2 * e4 * (3.0 / 20)
        + e2 * e2 * e3 * (45.0 / 272)
        - (e3 * e4 + e2 * e5) * (9.0 / 68)
    )


def elliprd(x: float, y: float, z: float) -> float:
    if not (x >= 0 and y >= 0 and z >= 0):
        return math.nan
    if z == 0 or (x == 0 and y == 0):
        return math.inf
    if x == math.inf or y == math.inf or z == math.inf:
        return 0
    a, total, factor = (x + y + 3 * z) / 5, 0.0, 1.0
    for _ in range(600):
        if not (fabs(a - x) > 0.003 * a or fabs(a - y) > 0.003 * a or fabs(a - z) > 0.003 * a):
            break
        root, other, third = sqrt(x), sqrt(y), sqrt(z)
        step = root * (other + third) + other * third
        total += factor / (third * (z + step))
        factor /= 4
        x = (x + step) / 4
        y = (y + step) / 4
        z = (z + step) / 4
        a = (a + step) / 4
    u, v = (a - x) / a, (a - y) / a
    p = -(u + v) / 3
    return 3 * total + factor * _carlson_series(u, v, p, p, u * v - 6 * p * p) / (a * sqrt(a))


def elliprg(x: float, y: float, z: float) -> float:
    low, high = fmin(x, fmin(y, z)), fmax(x, fmax(y, z))
    if not low >= 0 or x != x or y != y or z != z:
        return math.nan
    if high == math.inf:
        return math.inf
    middle = fmin(y, z) if x == low else fmin(x, z) if y == low else fmin(x, y)
    if middle == 0:
        return sqrt(high) / 2
    rest = (low - middle) * (high - middle) / 3
    part = 0 if rest == 0 else rest * elliprd(low, high, middle)
    return (middle * elliprf(x, y, z) - part + sqrt(low / middle) * sqrt(high)) / 2


def elliprj(x: float, y: float, z: float, p: float) -> float:
    if not (x >= 0 and y >= 0 and z >= 0) or p != p:
        return math.nan
    if p == 0 or (x == 0) + (y == 0) + (z == 0) > 1:
        return math.inf
    if x == math.inf or y == math.inf or z == math.inf or fabs(p) == math.inf:
        return 0
    if p < 0:
        # the principal value
        low, high, q = fmin(x, fmin(y, z)), fmax(x, fmax(y, z)), -p
        middle = fmin(y, z) if x == low else fmin(x, z) if y == low else fmin(x, y)
        other, across = (high * (low + middle + q) - low * middle) / (high + q), low * middle
        root = sqrt(across * high / (across + other * q)) * elliprc(across + other * q, other * q)
        return ((other - high) * elliprj(x, y, z, other) - 3 * elliprf(x, y, z) + 3 * root) / (q + high)
    a, total, factor = (x + y + z + 2 * p) / 5, 0.0, 1.0
    gaps = (p - x) * (p - y) * (p - z)
    for _ in range(600):
        if not (
            fabs(a - x) > 0.003 * a or fabs(a - y) > 0.003 * a or fabs(a - z) > 0.003 * a or fabs(a - p) > 0.003 * a
        ):
            break
        root, other, third = sqrt(x), sqrt(y), sqrt(z)
        step = root * (other + third) + other * third
        end = sqrt(p)
        whole = (end + root) * (end + other) * (end + third)
        total += factor / whole * elliprc(1, 1 + factor * factor * factor * gaps / (whole * whole))
        factor /= 4
        x = (x + step) / 4
        y = (y + step) / 4
        z = (z + step) / 4
        p = (p + step) / 4
        a = (a + step) / 4
    u, v, w = (a - x) / a, (a - y) / a, (a - z) / a
    off = -(u + v + w) / 2
    part = _carlson_series(u, v, w, off, u * v + u * w + v * w - 3 * off * off)
    return 6 * total + factor * part / (a * sqrt(a))


def agm(a: float, b: float) -> float:
    if a != a or b != b or (a < 0 and b > 0) or (a > 0 and b < 0):
        return math.nan
    if a == 0 or b == 0:
        return math.nan if a - a != 0 or b - b != 0 else 0
    if a - a != 0 or b - b != 0:
        return copysign(math.inf, a)
    x, y = fabs(a), fabs(b)
    for _ in range(60):
        if not (fabs(x - y) > 4e-16 * x):
            break
        mean = x / 2 + y / 2
        y = sqrt(x) * sqrt(y)
        x = mean
    return copysign(x, a)


def ellipkm1(p: float) -> float:
    if not p > 0:
        return math.inf if p == 0 else math.nan
    return 0 if p == math.inf else math.pi / 2 / agm(1, sqrt(p))


def ellipk(m: float) -> float:
    return ellipkm1(1 - m)


def ellipe(m: float) -> float:
    return math.nan if m > 1 or m != m else math.inf if m == -math.inf else 2 * elliprg(0, 1 - m, 1)


def _ellipk_slope(m: float) -> float:
    return elliprd(0, 1, 1 - m) / 6


def _ellipkm1_slope(p: float) -> float:
    return elliprd(0, 1, p) / -6


def _ellipe_slope(m: float) -> float:
    return elliprd(0, 1 - m, 1) / -6


def ellipkinc(phi: float, m: float) -> float:
    """The incomplete integrals: `multiple` is the nearest multiple of pi, `sine` and `cosine` are those of the rest."""
    if phi != phi or not m <= 1:
        return math.nan
    if phi - phi != 0 or m == -math.inf:
        return (math.nan if m == -math.inf else phi) if phi - phi != 0 else 0
    if m == 1 and fabs(phi) >= math.pi / 2:
        return math.inf
    multiple = rint(phi / math.pi)
    sine, cosine = sin(phi - multiple * math.pi), cos(phi - multiple * math.pi)
    part = sine * elliprf(cosine * cosine, 1 - m * sine * sine, 1)
    return part if multiple == 0 else part + 2 * multiple * ellipk(m)


def ellipeinc(phi: float, m: float) -> float:
    if phi != phi or not m <= 1:
        return math.nan
    if phi - phi != 0 or m == -math.inf:
        return phi if phi - phi != 0 else phi if phi == 0 else -m
    multiple = rint(phi / math.pi)
    sine, cosine = sin(phi - multiple * math.pi), cos(phi - multiple * math.pi)
    square = sine * sine
    rest, third = 1 - m * square, (0 if m == 0 else m * square * sine / 3)
    first = sine * elliprf(cosine * cosine, rest, 1)
    part = first if third == 0 else first - third * elliprd(cosine * cosine, rest, 1)
    return part if multiple == 0 else part + 2 * multiple * ellipe(m)


def ellipkinc_dm(phi: float, m: float) -> float:
    multiple = rint(phi / math.pi)
    sine, cosine = sin(phi - multiple * math.pi), cos(phi - multiple * math.pi)
    part = sine * sine * sine * elliprd(cosine * cosine, 1, 1 - m * sine * sine) / 6
    return part if multiple == 0 else part + multiple * elliprd(0, 1, 1 - m) / 3


def ellipeinc_dm(phi: float, m: float) -> float:
    multiple = rint(phi / math.pi)
    sine, cosine = sin(phi - multiple * math.pi), cos(phi - multiple * math.pi)
    part = sine * sine * sine * elliprd(cosine * cosine, 1 - m * sine * sine, 1) / -6
    return part if multiple == 0 else part + multiple * elliprd(0, 1 - m, 1) / -3


def _alternating(n: float) -> float:
    """Minus one to the power of a whole number."""
    return 1 if fmod(n, 2.0) == 0 else -1


def _jn_above(n: float, x: float) -> float:
    """J_n(x) of a whole n >= 0 and x >= 0: upwards to the order x, behind it by ratios from above."""
    if n == 0 or n == 1:
        return j0(x) if n == 0 else j1(x)
    if x == 0 or x == math.inf:
        return 0
    turn = n if n < x else floor(x)
    low = j0(x)
    high = j1(x) if turn > 0 else low
    k = 1.0
    while k < turn:
        following = 2 * k / x * high - low
        low = high
        high = following
        k += 1
    ratio, product = 0.0, high
    k = n + 30 + floor(10 * cbrt(n))
    while k > turn and turn < n:
        ratio = 1 / (2 * k / x - ratio)
        product *= ratio if k <= n else 1
        k -= 1
    return product


def jv(v: float, x: float) -> float:
    if v != v or x != x:
        return math.nan
    value = _jn_above(fabs(v), fabs(x))
    return _alternating(v) * value if (v < 0) != (x < 0) else value


def jve(v: float, x: float) -> float:
    return jv(v, x)


def yv(v: float, x: float) -> float:
    n, sign = fabs(v), (_alternating(v) if v < 0 else 1)
    if v != v or not x > 0:
        return sign * -math.inf if x == 0 and v == v else math.nan
    if n == 0 or x == math.inf:
        return y0(x) if n == 0 else 0
    low, high = y0(x), y1(x)
    k = 1.0
    while k < n and high > -math.inf:
        following = 2 * k / x * high - low
        low = high
        high = following
        k += 1
    return sign * high


def yve(v: float, x: float) -> float:
    return math.nan if x == 0 else yv(v, x)


def yn(n: float, x: float) -> float:
    return yv(n, x)


def ive(v: float, x: float) -> float:
    n, size = fabs(v), fabs(x)
    if n != n or size != size:
        return math.nan
    value, ratio = (i1e(size) if n == 1 else i0e(size)), 0.0
    if n > 1 and (size == 0 or size > 1e10):
        value = 0 if size == 0 else value * exp(-n / 2 * (n / size))
    elif n > 1:
        k = floor(sqrt(n * n + 40 * size)) + 30
        while k > 0:
            ratio = size / (2 * k + size * ratio)
            value *= ratio if k <= n else 1
            k -= 1
    return _alternating(v) * value if x < 0 else value


def iv(v: float, x: float) -> float:
    return _times_exp(x, ive(v, x))


def kve(v: float, x: float) -> float:
    n = fabs(v)
    if n != n or not x > 0:
        return math.inf if x == 0 and n == n else math.nan
    low = k0e(x)
    high = low if n == 0 else k1e(x)
    k = 1.0
    while k < n and high < math.inf:
        following = 2 * k / x * high + low
        low = high
        high = following
        k += 1
    return high


def kv(v: float, x: float) -> float:
    part = exp(-x / 2)
    return part * kve(v, x) * part if x > 0 else kve(v, x)


def kn(n: float, x: float) -> float:
    return kv(n, x)


def _beta_root(a: float, b: float, p: float, upper: bool) -> float:
    """The x below 1/2 where the incomplete beta function, or its complement, is p: Newton's steps of its logarithm by
    ln x, bisection where they leave the bracket.
    """
    first = ((log1p(-p) if upper else log(p)) + log(a) + betaln(a, b)) / a
    if first < -700 or (first < -36 and fabs(b) * exp(first) < 1e-16):
        # the first term of the series
        return exp(first)
    low, high = -745.0, -0.69314718055994530942
    place = first if first < high else high - 0.1
    for _ in range(200):
        x = exp(place)
        part = _beta_part(a, b, x, 1 - x, upper)
        step = part * log(part / p) * (1 - x) / _beta_density(a, b, x, 1 - x) * (-1 if upper else 1)
        if step == 0:
            break
        low = place if step < 0 or (part == 0 and not upper) else low
        high = place if step > 0 or (part == 0 and upper) else high
        following = place - step if step == step and place - step >= low and place - step <= high else (low + high) / 2
        change = fabs(following - place)
        place = following
        if change <= 2e-16 * fabs(place):
            break
    return exp(place)


def _beta_quantile(a: float, b: float, p: float, upper: bool) -> float:
    if not (a > 0 and b > 0 and p >= 0 and p <= 1) or a == math.inf or b == math.inf:
        return math.nan
    if p == 0 or p == 1:
        return 1 if (p == 0) == upper else 0
    is_left = (_beta_part(a, b, 0.5, 0.5, upper) > p) != upper
    return _beta_root(a, b, p, upper) if is_left else 1 - _beta_root(b, a, p, not upper)


def betaincinv(a: float, b: float, p: float) -> float:
    return _beta_quantile(a, b, p, False)


def betainccinv(a: float, b: float, p: float) -> float:
    return _beta_quantile(a, b, p, True)


def chdtri(v: float, p: float) -> float:
    return 2 * gammainccinv(v / 2, p)


def gdtrix(a: float, b: float, p: float) -> float:
    return gammaincinv(b, p) / a


def pdtri(k: float, p: float) -> float:
    return math.nan if k < 0 or p < 0 or p >= 1 else gammainccinv(trunc(k) + 1, p)


def fdtri(a: float, b: float, p: float) -> float:
    low, high = _beta_quantile(a / 2, b / 2, p, False), _beta_quantile(b / 2, a / 2, p, True)
    return b * low / (a * high)


def stdtrit(v: float, p: float) -> float:
    if not (v > 0 and p >= 0 and p <= 1):
        return math.nan
    if v == math.inf or p == 0 or p == 1:
        return (-math.inf if p == 0 else math.inf) if p == 0 or p == 1 else ndtri(p)
    tail = 2 * p if p < 0.5 else 2 * (1 - p)
    near = _beta_quantile(v / 2, 0.5, tail, False)
    size = sqrt(v) * sqrt(_beta_quantile(0.5, v / 2, tail, True) / near)
    return -size if p < 0.5 else size


def bdtri(k: float, n: float, p: float) -> float:
    whole = floor(k)
    rest = n - whole
    if not (p >= 0 and p <= 1) or whole < 0 or not rest > 0:
        return math.nan
    return _beta_quantile(whole + 1, rest, p, True)


def nbdtr(k: float, n: float, p: float) -> float:
    return _beta_part(trunc(n), trunc(k) + 1, p, 1 - p, False) if p >= 0 and p <= 1 and k >= 0 else math.nan


def nbdtrc(k: float, n: float, p: float) -> float:
    return _beta_part(trunc(n), trunc(k) + 1, p, 1 - p, True) if p >= 0 and p <= 1 and k >= 0 else math.nan


def nbdtri(k: float, n: float, p: float) -> float:
    return _beta_quantile(trunc(n), trunc(k) + 1, p, False) if k >= 0 else math.nan


def expn(n: float, x: float) -> float:
    """By the continued fraction for x > 1, else by the series with its logarithm."""
    if not (n >= 0 and x >= 0):
        return math.nan
    if x == 0 or x == math.inf or n == 0:
        return 0 if x == math.inf else exp(-x) / x if x > 0 else math.inf if n < 2 else 1 / (n - 1)
    if x > 1:
        b, c = x + n, 1e300
        d = 1 / b
        product = d
        for i in range(1, 100000):
            over = -i * (n - 1 + i)
            b += 2
            d = 1 / (over * d + b)
            c = b + over / c
            product *= c * d
            if fabs(c * d - 1) < 2.3e-16:
                break
        return product * exp(-x)
    factor, total = 1.0, (digamma(1) - log(x) if n == 1 else 1 / (n - 1))
    for i in range(1, 1000):
        factor *= -x / i
        term = factor * (digamma(n) - log(x)) if i == n - 1 else -factor / (i - (n - 1))
        total += term
        if fabs(term) <= 1.1e-16 * fabs(total):
            break
    return total


def _gamma_slope(k: float, a: float, y: float) -> float:
    """Derivatives of order k + 1 of the logarithm y of a gamma variate by its parameter a, at one quantile."""
    if not a > 0 or y - y != 0:
        return math.nan
    order = int(k)
    x, decay = exp(y), 45.0
    below = y <= log1p(a)
    rest = a + 1 - x if below else x - a
    lead = 2 * rest - decay
    root = sqrt(lead * lead + 8 * decay * (a + 1))
    moments: Floats = zeros(MOMENTS)
    logs: Floats = zeros(MOMENTS)
    stop = 0.0
    if below:
        stop = 4 * decay / (lead + root) if lead > 0 else (root - lead) / (2 * (a + 1))
    else:
        stop = fmin(2 * decay / (rest + sqrt(rest * rest + 2 * x * decay)), log1p(decay / rest))
    for i in range(64):
        s = stop * NODES[i]
        bent = s + expm1(-s) if below else expm1(s) - s
        term = exp(-rest * s - x * bent) * (stop * WEIGHTS[i])
        for j in range(order + 1 + 1):
            moments[j] += term
            term *= s
    for j in range(order + 1):
        logs[j] = (y if j == 0 else 0) - polygamma(j, a + 1 if below else a)
    total, outer, power = (0 if below else moments[order + 1]), 1.0, 1 / a
    for j in range(order + 1):
        # `outer` is a binomial coefficient, times -1^j j! / a^(j + 1) with `power`
        if not below:
            total += outer * logs[j] * moments[order - j]
        else:
            degree = order - j
            sign = 1 if degree % 2 == 0 else -1
            bracket, inner = -sign * x * moments[degree + 1], 1.0
            for i in range(degree + 1):
                left = degree - i
                bracket += inner * logs[i] * ((x if left % 2 == 0 else -x) * moments[left] + (1 if left == 0 else 0))
                inner = inner * left / (i + 1)
            total -= outer * power * bracket
        outer = outer * (order - j) / (j + 1)
        power *= -(j + 1) / a
    return total


def _power_gap(a: float, d: float, n: float) -> float:
    """(a + d)^-n - a^-n."""
    return -d / (a * (a + d)) if n == 1 else pow(a, -n) * expm1(-n * log1p(d / a))


def _polygamma_gap_far(n: float, a: float, d: float) -> float:
    """The gap of the function below for large a and a + d, by its asymptotic series."""
    end, factor = a + d, tgamma(n + 1)
    low, high, step = 1 / (a * a), 1 / (end * end), -d / a * (1 + a / end) / (a * end)
    out = -log1p(d / a) if n == 0 else factor / n * _power_gap(a, d, n)
    gap, power = (step if n == 0 else _power_gap(a, d, n + 2)), (low if n == 0 else pow(a, -(n + 2)))
    rising = factor * (n + 1)
    out += 0.5 * factor * _power_gap(a, d, n + 1)
    for k in range(8):
        out += GAP_TERMS[k] * rising * gap
        rising *= (n + 2 * k + 2) * (n + 2 * k + 3)
        gap = gap * high + power * step
        power *= low
    return -out if fmod(n, 2.0) == 0 else out


def polygamma_gap(n: float, a: float, d: float) -> float:
    """The derivative of order n of psi at a + d less that at a."""
    if a >= 16 and a + d >= 16:
        return _polygamma_gap_far(n, a, d)
    if not (a > 0 and fabs(d) < 0.01 * a):
        return polygamma(n, a + d) - polygamma(n, a)
    total = 0.0
    for k in range(16):
        total += _power_gap(a + k, d, n + 1)
    return (-total if fmod(n, 2.0) == 0 else total) * tgamma(n + 1) + _polygamma_gap_far(n, a + 16, d)


def pseudo_huber_ddelta(delta: float, r: float) -> float:
    u = r / delta
    h = hypot(1, u)
    rise = u * (u / (h + 1))
    return delta * (rise * (rise / h))


def pseudo_huber_dr(delta: float, r: float) -> float:
    return 0 if delta == 0 else r / hypot(1, r / delta)


def gammaln_gap(a: float, d: float) -> float:
    if not (a >= 16 and a + d >= 16):
        return lgamma(a + d) - lgamma(a)
    total = (a - 0.5) * log1p(d / a) + d * (log(a + d) - 1)
    for k in range(8):
        total += GAMMALN_TERMS[k] * _power_gap(a, d, 2 * k + 1)
    return total


def _beta_tail(a: float, b: float, t: float, rest: float, gap: float, turned: bool) -> float:
    """The integral of u^(a - 1) (1 - u)^(b - 1) |ln u + gap| / B(a, b) from 0 to t (of ln(1 - u) if `turned`). The
    logarithm and gap must not change their sign. By u = t e^-s and double exponential nodes; rest = 1 - t."""
    log_rest, log_t = (log(rest) if rest < 0.5 else log1p(-t)), (log(t) if t < 0.5 else log1p(-rest))
    step, reach = (1.0 / 16 if rest >= 0.02 else 1.0 / 40), (3.4 if rest >= 0.02 else 5.2)
    stop, total = ((45 + (b - 1 if b > 1 else 0) * -log_rest) / a), 0.0
    for _ in range(12):
        if not (b > 1):
            break
        # Newton's method on a concave function, from the right
        u = t * exp(-stop)
        grade = -a + (b - 1) * u / (1 - u)
        value = -a * stop + (b - 1) * (log1p(-u) - log_rest) + 45
        stop = stop - value / grade if grade < 0 else stop
    place = -reach
    while place < reach + step / 2:
        bent = math.pi * sinh(place)
        node = 1 / (1 + exp(-bent))
        s = stop * node
        weight, shift = step * math.pi * cosh(place) * node / (1 + exp(bent)), -t * expm1(-s)
        lost, growth = t * exp(-s), log1p(shift / rest)
        bracket = log_t + gap - s if not turned else gap + (log1p(-lost) if lost < 0.5 else log(rest + shift))
        total += exp(-a * s + (b - 1) * growth) * bracket * weight
        place += step
    return total * stop * exp(a * log_t + (b - 1) * log_rest - betaln(a, b))


def _beta_slope(a: float, b: float, x: float, y: float) -> float:
    """The derivative of the incomplete beta function by a, where y is 1 - x."""
    if not (a > 0 and b > 0 and x >= 0 and y >= 0) or a == math.inf or b == math.inf:
        return math.nan
    if x == 0 or y == 0:
        return 0
    gap = polygamma_gap(0, a, b)
    return _beta_tail(a, b, x, y, gap, False) if log(x) < -gap else -_beta_tail(b, a, y, x, gap, True)


def betainc_da(a: float, b: float, x: float) -> float:
    return _beta_slope(a, b, x, 1 - x)


def betainc_db(a: float, b: float, x: float) -> float:
    return -_beta_slope(b, a, 1 - x, x)


ROUTINES = {
    name.lstrip("_"): routine
    for names in (vars(special_functions), globals())
    for name, routine in names.items()
    if isinstance(routine, FunctionType) and routine.__module__ == names["__name__"]
}
"""The functions by name, without the underscore of those that no primitive has."""
ARITY = {name: routine.__code__.co_argcount for name, routine in ROUTINES.items() if routine.__name__ == name}
"""The numbers of arguments of the primitives."""
