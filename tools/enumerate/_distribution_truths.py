"""The methods of scipy.stats' distributions in mpmath: SciPy's own formulas, run on numbers of any precision.

The Python code of a private method (`_logpdf`, `_cdf`, ...) runs with `np` and `sc` replaced by mpmath, so its
cancellations do not matter. This file writes out SciPy's compiled code.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.stats
from mpmath import mp
from scipy.stats import _continuous_distns, _discrete_distns, _distn_infrastructure

from tools.enumerate import _special_truths as special
from tools.enumerate._special_truths import TRUTHS, NoTruth, solve
from tools.enumerate.exact_partials import Orders, difference, settled

Truth = Callable[..., Any]
GENERIC = (_distn_infrastructure.rv_generic, _distn_infrastructure.rv_continuous, _distn_infrastructure.rv_discrete)


def _select(condition: Any, *values: Any, **options: Any) -> Any:
    """`apply_where`: one of two functions of the arguments."""
    args, one, other = (*values, options.get("f2"))[:3]
    args = args if isinstance(args, tuple) else (args,)
    if condition:
        return one(*args)
    return other(*args) if callable(other) else options.get("fill_value", other)


def _lazywhere(holds: Any, operands: Any, f: Any, fillvalue: Any = None, f2: Any = None) -> Any:
    """The name in older versions of SciPy."""
    return _select(holds, operands, f, f2, fill_value=fillvalue)


def _lazyselect(conditions: Any, functions: Any, args: Any, default: Any = 0) -> Any:
    return next((f(*args) for c, f in zip(conditions, functions, strict=True) if c), mp.mpf(default))


def _same(x: Any, *rest: Any, **options: Any) -> Any:
    return x


def _power(x: Any, y: Any) -> Any:
    return mp.mpf(x) ** y


def _exp(x: Any) -> Any:
    """The exponential function, without those whose computation takes too long."""
    if x > 1e20:
        raise OverflowError
    return mp.exp(x) if x > -1e20 or mp.mag(x) < 1500 else mp.mpf(0)


def _expm1(x: Any) -> Any:
    return mp.expm1(x) if abs(x) < 1 else _exp(x) - 1


NUMPY: dict[str, Any] = {
    "exp": _exp, "expm1": _expm1,
    **{name: getattr(mp, name) for name in (
        "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "log1p", "floor", "ceil", "sign",
        "isnan", "isinf", "isfinite", "hypot",
    )},
    **{name: getattr(mp, "a" + name.removeprefix("arc")) for name in (
        "arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh", "arctan2",
    )},
    "abs": abs, "absolute": abs, "power": _power, "square": lambda x: x * x, "where": lambda c, a, b: a if c else b,
    "asarray": _same, "array": _same, "atleast_1d": _same, "float64": _same, "maximum": max, "minimum": min,
    "any": bool, "all": bool, "errstate": np.errstate, "inf": mp.inf, "nan": mp.nan, "finfo": np.finfo,
    "broadcast_arrays": lambda *xs: xs, "log10": mp.log10, "reciprocal": lambda x: 1 / x,
    "logaddexp": lambda a, b: mp.log(mp.exp(a) + mp.exp(b)), "isscalar": lambda x: True,
    "clip": lambda x, a, b: min(max(x, a), b), "trunc": lambda x: mp.sign(x) * mp.floor(abs(x)),
    "logical_and": lambda a, b: a and b, "logical_or": lambda a, b: a or b,
    "ones_like": lambda x: mp.mpf(1), "zeros_like": lambda x: mp.mpf(0), "full_like": lambda x, y: mp.mpf(y),
    "select": lambda cs, vs, default=0: next((v for c, v in zip(cs, vs, strict=True) if c), default),
    "divide": lambda a, b: a / b, "multiply": lambda a, b: a * b, "log2": lambda x: mp.log(x, 2),
    "copysign": lambda a, b: abs(a) * (1 if b >= 0 else -1),
}  # fmt: skip


class _Module:
    """A module whose names are mpmath's."""

    def __init__(self, names: dict[str, Any]) -> None:
        self._names = names

    def __getattr__(self, name: str) -> Any:
        if name == "pi":
            return +mp.pi
        if name == "e":
            return +mp.e
        if name == "euler_gamma":
            return +mp.euler
        if name not in self._names or self._names[name] is None:
            raise NoTruth(name)
        return self._names[name]


SPECIAL = {**TRUTHS, "comb": special.binom, "kv": mp.besselk, "euler": None, "i0e": TRUTHS["i0e"]}
CONSTANTS: dict[str, Callable[[], Any]] = {
    "_EULER": lambda: +mp.euler, "_ZETA3": lambda: mp.zeta(3), "_SQRT_PI": lambda: mp.sqrt(mp.pi),
    "_SQRT_2_OVER_PI": lambda: mp.sqrt(2 / mp.pi), "_LOG_PI": lambda: mp.log(mp.pi),
    "_LOG_SQRT_2_OVER_PI": lambda: mp.log(2 / mp.pi) / 2, "_norm_pdf_C": lambda: mp.sqrt(2 * mp.pi),
    "_norm_pdf_logC": lambda: mp.log(2 * mp.pi) / 2,
}  # fmt: skip
FUNCTIONS: dict[str, Truth] = {
    "_norm_pdf": special.normal, "_norm_logpdf": lambda x: -x * x / 2 - mp.log(2 * mp.pi) / 2,
    "_norm_cdf": special.ndtr, "_norm_logcdf": special.log_ndtr, "_norm_sf": lambda x: special.ndtr(-x),
    "_norm_logsf": lambda x: special.log_ndtr(-x), "_norm_ppf": special.ndtri, "_norm_isf": lambda q: -special.ndtri(q),
    "_lazyselect": _lazyselect, "_lazywhere": _lazywhere,
    "log": mp.log, "exp": _exp, "floor": mp.floor, "sqrt": mp.sqrt, "ceil": mp.ceil,
    "expm1": _expm1, "log1p": mp.log1p, "tanh": mp.tanh, "cosh": mp.cosh, "betaln": special.betaln,
    "gamln": special.gammaln, "_log1mexp": lambda x: mp.log(-mp.expm1(x)), "xlogy": special.xlogy,
    "xlog1py": lambda x, y: x * mp.log1p(y),
}  # fmt: skip


def _globals(module: types.ModuleType) -> dict[str, Any]:
    """The names of SciPy's module with mpmath in their places, at the working precision."""
    names = dict(vars(module))
    names |= {"np": _Module(NUMPY), "sc": _Module(SPECIAL), "special": _Module(SPECIAL), "scu": _Module({})}
    names |= {"xpx": types.SimpleNamespace(apply_where=_select)}
    names |= {name: constant() for name, constant in CONSTANTS.items() if name in names}
    for name, value in list(names.items()):
        if isinstance(value, types.FunctionType) and value.__module__ == module.__name__:
            names[name] = _with(value, names)
        elif isinstance(value, _distn_infrastructure.rv_generic):
            names[name] = Exact(value.name)
    names.update({name: function for name, function in FUNCTIONS.items() if name in names})
    return names


def _with(function: types.FunctionType, names: dict[str, Any]) -> types.FunctionType:
    """A function whose global names are others."""
    return types.FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)


@functools.lru_cache(maxsize=64)
def _names(module: str, precision: int) -> dict[str, Any]:
    return _globals({m.__name__: m for m in (_continuous_distns, _discrete_distns, _distn_infrastructure)}[module])


def _rebound(function: types.FunctionType) -> types.FunctionType:
    return _with(function, _names(function.__module__, mp.prec))


class Exact:
    """A distribution whose private methods take and give mpmath numbers."""

    def __init__(self, name: str) -> None:
        self._dist = getattr(scipy.stats, name)
        self._own = OWN.get(name, {})

    def __getattr__(self, name: str) -> Any:
        own = self._own.get(name.removeprefix("_"))
        if own is not None:
            return own
        if any(one in self._own and name in others for one, others in FOLLOW.items()):
            return functools.partial(DEFAULTS[name], self)
        for kind in type(self._dist).__mro__:
            if name in vars(kind):
                found = vars(kind)[name]
                if kind in GENERIC and name in DEFAULTS:
                    return functools.partial(DEFAULTS[name], self)
                if isinstance(found, types.FunctionType):
                    if kind in GENERIC:
                        raise NoTruth(name)
                    return types.MethodType(_rebound(found), self)
                return found
        if name in DEFAULTS:
            return functools.partial(DEFAULTS[name], self)
        raise NoTruth(name)

    def has(self, name: str) -> bool:
        """Whether the distribution has its own version of a method."""
        if name.removeprefix("_") in self._own:
            return True
        return any(name in vars(kind) for kind in type(self._dist).__mro__ if kind not in (*GENERIC, object))


def _pdf(self: Exact, x: Any, *shapes: Any) -> Any:
    if self.has("_logpdf"):
        return _exp(self._logpdf(x, *shapes))
    if not self.has("_cdf"):
        raise NoTruth
    h = (abs(x) or mp.mpf(1)) * mp.mpf(10) ** (-mp.dps // 3)
    return (self._cdf(x + h, *shapes) - self._cdf(x - h, *shapes)) / (2 * h)


def _cdf(self: Exact, x: Any, *shapes: Any) -> Any:
    if self.has("_sf"):
        return 1 - self._sf(x, *shapes)
    if self.has("_logcdf"):
        return _exp(self._logcdf(x, *shapes))
    raise NoTruth


def _sf(self: Exact, x: Any, *shapes: Any) -> Any:
    if not self.has("_cdf") and self.has("_logsf"):
        return _exp(self._logsf(x, *shapes))
    return 1 - self._cdf(x, *shapes)


def _ppf(self: Exact, q: Any, *shapes: Any) -> Any:
    start = float(self._dist.ppf(float(q), *[float(s) for s in shapes]))
    return solve(lambda x: self._cdf(x, *shapes) - q, lambda x: self._pdf(x, *shapes), start)


def _pmf(self: Exact, k: Any, *shapes: Any) -> Any:
    if self.has("_logpmf"):
        return _exp(self._logpmf(k, *shapes))
    return self._cdf(k, *shapes) - self._cdf(k - 1, *shapes)


FOLLOW = {
    "cdf": ("_sf", "_logcdf", "_logsf", "_ppf"), "sf": ("_cdf", "_logcdf", "_logsf"), "logpdf": ("_pdf",),
    "pdf": ("_logpdf",), "pmf": ("_logpmf",),
}  # fmt: skip
"""Methods that follow from one of `OWN`."""
DEFAULTS: dict[str, Truth] = {
    "_pdf": _pdf, "_cdf": _cdf, "_sf": _sf, "_ppf": _ppf, "_pmf": _pmf,
    "_logpdf": lambda self, x, *shapes: mp.log(self._pdf(x, *shapes)),
    "_logpmf": lambda self, k, *shapes: mp.log(self._pmf(k, *shapes)),
    "_logcdf": lambda self, x, *shapes: mp.log(self._cdf(x, *shapes)),
    "_logsf": lambda self, x, *shapes: mp.log(self._sf(x, *shapes)),
}  # fmt: skip


def _log_bessel(v: Any, z: Any) -> Any:
    return _known_log_bessel(v, z, mp.prec)


@functools.lru_cache(maxsize=2000)
def _known_log_bessel(v: Any, z: Any, bits: int) -> Any:
    return mp.log(mp.besselk(v, z))


def _mass(a: Any, b: Any) -> Any:
    """Φ(b) - Φ(a)."""
    return special.ndtr(b) - special.ndtr(a) if a < 0 else special.ndtr(-a) - special.ndtr(-b)


def _log_breadth(c: Any, x: Any) -> Any:
    """log(1 - c x) / c."""
    return mp.log1p(-c * x) / c if c else -x


def _double_pareto(x: Any, u: Any, s: Any, a: Any, b: Any) -> Any:
    """Source: D. Reed, M. Jorgensen (2004), The double Pareto-lognormal distribution, equation 8."""
    z = (mp.log(x) - u) / s
    mills = special.ndtr(z - a * s) / special.normal(z - a * s) + special.ndtr(-z - b * s) / special.normal(z + b * s)
    return a * b / (a + b) / x * special.normal(z) * mills


@functools.lru_cache(maxsize=100)
def _gausshyper_constant(a: Any, b: Any, c: Any, z: Any, bits: int) -> Any:
    return mp.beta(a, b) * mp.hyp2f1(c, a, a + b, -z)


def _nct(x: Any, df: Any, nc: Any) -> Any:
    """Source: N. Johnson, S. Kotz, N. Balakrishnan (1995), Continuous Univariate Distributions, chapter 31."""
    whole = df + x * x
    z = nc * nc * x * x / (2 * whole)
    constant = mp.gamma(df + 1) * mp.exp(df / 2 * mp.log(df) - nc * nc / 2 - df * mp.log(2) - df / 2 * mp.log(whole))
    odd = mp.sqrt(2) * nc * x / whole * mp.hyp1f1(df / 2 + 1, 1.5, z) / mp.gamma((df + 1) / 2)
    even = mp.hyp1f1((df + 1) / 2, 0.5, z) / mp.sqrt(whole) / mp.gamma(df / 2 + 1)
    return constant / mp.gamma(df / 2) * (odd + even)


def _poisson_mixture(f: Truth) -> Truth:
    """Σ f(x, j, m, n) nc^j e^(-nc) / j! of half the non-centrality."""

    def mixture(x: Any, m: Any, n: Any, nc: Any) -> Any:
        total, weight, j = mp.mpf(0), mp.exp(-nc / 2), 0
        while True:
            term = weight * f(x, j, m, n)
            total += term
            j += 1
            weight *= nc / 2 / j
            if j > nc and abs(term) <= mp.eps * abs(total):
                return total

    return mixture


def _ncf_term(x: Any, j: Any, m: Any, n: Any) -> Any:
    a, b, ratio = m / 2 + j, n / 2, m * x / n
    return mp.exp(a * mp.log(ratio) - (a + b) * mp.log1p(ratio) - special.betaln(a, b)) / x


def _landau(weight: Truth) -> Truth:
    """∫ e^(-t log t - y t) sin(π t) weight(t) dt / π. Source: K. Kölbig, B. Schorr (1984)."""

    def integral(x: Any) -> Any:
        y = mp.pi / 2 * x + mp.log(mp.pi / 2)
        end = max(mp.mpf(1), mp.exp(-y)) * 3
        while end * mp.log(end) + y * end < 2 * mp.prec:
            end *= 1.5
        places = [mp.mpf(0), *[end * j / 40 for j in range(1, 41)]]
        found = mp.quad(lambda t: mp.exp(-t * mp.log(t) - y * t) * mp.sinpi(t) * weight(t) if t else mp.mpf(0), places)
        return found / mp.pi

    return integral


def _kolmogorov_slope(x: Any) -> Any:
    h = x * mp.mpf(10) ** (-mp.dps // 3)
    with mp.extradps(mp.dps // 2):
        return (special.kolmogorov(x - h) - special.kolmogorov(x + h)) / (2 * h)


def _pearson3_cdf(x: Any, skew: Any) -> Any:
    beta = 2 / skew
    z = beta * (x + beta)
    return special.gamma_tail(beta * beta, z) if skew > 0 else special.gamma_rest(beta * beta, z)


def _kappa4_logcdf(x: Any, h: Any, k: Any) -> Any:
    return _log_breadth(h, _exp(_log_breadth(k, x)))


def _von_mises(x: Any, k: Any) -> Any:
    """Of an angle in (-π, π), by the series of Bessel functions."""
    total, j, scale = mp.mpf(0), 1, mp.besseli(0, k)
    while True:
        share = mp.besseli(j, k) / scale / j
        total += share * mp.sin(j * x)
        j += 1
        if j > k and share < mp.eps:
            return mp.mpf(1) / 2 + x / (2 * mp.pi) + total / mp.pi


def _by_sums(pmf: Truth) -> dict[str, Truth]:
    """The distribution function of outcomes from zero."""
    return {"cdf": lambda k, *shapes: mp.fsum(pmf(mp.mpf(j), *shapes) for j in range(int(k) + 1))}


def _binom_pmf(k: Any, n: Any, p: Any) -> Any:
    return special.binom(n, k) * p**k * (1 - p) ** (n - k)


def _betabinom_pmf(k: Any, n: Any, a: Any, b: Any) -> Any:
    return special.binom(n, k) * mp.exp(special.betaln(k + a, n - k + b) - special.betaln(a, b))


def _invgauss(x: Any, mu: Any) -> Any:
    root = mp.sqrt(1 / x)
    return special.ndtr(root * (x / mu - 1)) + mp.exp(2 / mu) * special.ndtr(-root * (x / mu + 1))


def _betanbinom_pmf(k: Any, n: Any, a: Any, b: Any) -> Any:
    ways = mp.loggamma(n + k) - mp.loggamma(n) - mp.loggamma(k + 1)
    return mp.exp(ways + special.betaln(a + n, b + k) - special.betaln(a, b))


def _fisher_pmf(k: Any, total: Any, n: Any, draws: Any, odds: Any) -> Any:
    def weight(j: Any) -> Any:
        return mp.binomial(n, j) * mp.binomial(total - n, draws - j) * odds**j

    first, last = max(0, int(draws - (total - n))), min(int(draws), int(n))
    return weight(k) / mp.fsum(weight(mp.mpf(j)) for j in range(first, last + 1))


def _trials_pmf(k: Any, *trials: Any) -> Any:
    found = [mp.mpf(1)]
    for p in trials:
        found = [a * (1 - p) + b * p for a, b in zip([*found, mp.mpf(0)], [mp.mpf(0), *found], strict=True)]
    return found[int(k)]


def _zipfian(k: Any, a: Any, n: Any) -> Any:
    return (mp.zeta(a) - mp.zeta(a, k + 1)) / (mp.zeta(a) - mp.zeta(a, n + 1))


OWN: dict[str, dict[str, Truth]] = {
    "betanbinom": {"pmf": _betanbinom_pmf, **_by_sums(_betanbinom_pmf)},
    "nchypergeom_fisher": {"pmf": _fisher_pmf, **_by_sums(_fisher_pmf)},
    "poisson_binom": {"pmf": _trials_pmf, **_by_sums(_trials_pmf)},
    "randint": {"pmf": lambda k, low, high: 1 / (high - low), "cdf": lambda k, low, high: (k + 1 - low) / (high - low)},
    "zipfian": {"pmf": lambda k, a, n: k**-a / (mp.zeta(a) - mp.zeta(a, n + 1)), "cdf": _zipfian},
    "beta": {
        "logpdf": lambda x, a, b: (a - 1) * mp.log(x) + (b - 1) * mp.log1p(-x) - special.betaln(a, b),
        "cdf": lambda x, a, b: special.beta_tail(a, b, x),
        "sf": lambda x, a, b: special.beta_tail(b, a, 1 - x),
    },
    "dpareto_lognorm": {"logpdf": lambda *args: mp.log(_double_pareto(*args))},
    "dweibull": {"cdf": lambda x, c: _exp(-((-x) ** c)) / 2 if x < 0 else 1 - _exp(-(x**c)) / 2},
    "gausshyper": {
        "logpdf": lambda x, a, b, c, z: (a - 1) * mp.log(x) + (b - 1) * mp.log1p(-x) - c * mp.log1p(z * x)
        - mp.log(_gausshyper_constant(a, b, c, z, mp.prec))
    },
    "genextreme": {
        "logpdf": lambda x, c: (1 - c) * _log_breadth(c, x) - _exp(_log_breadth(c, x)),
        "cdf": lambda x, c: _exp(-_exp(_log_breadth(c, x))),
    },
    "kappa3": {"cdf": lambda x, a: x * (a + x**a) ** (-1 / a)},
    "kappa4": {
        "logpdf": lambda x, h, k: (1 - k) * _log_breadth(k, x) + (1 - h) * _kappa4_logcdf(x, h, k),
        "cdf": lambda x, h, k: _exp(_kappa4_logcdf(x, h, k)),
    },
    "kstwobign": {"pdf": _kolmogorov_slope, "cdf": lambda x: 1 - special.kolmogorov(x), "sf": special.kolmogorov},
    "landau": {"pdf": _landau(lambda t: mp.pi / 2), "sf": _landau(lambda t: 1 / t)},
    "ncf": {
        "pdf": _poisson_mixture(_ncf_term),
        "cdf": _poisson_mixture(
            lambda x, j, m, n: special.beta_tail(m / 2 + j, n / 2, m * x / (n + m * x))
        ),
    },
    "nct": {"pdf": _nct},
    "norminvgauss": {
        "logpdf": lambda x, a, b: mp.log(a / mp.pi) + mp.sqrt(a * a - b * b) + _log_bessel(1, a * mp.sqrt(1 + x * x))
        + b * x - mp.log(1 + x * x) / 2
    },
    "truncnorm": {
        "logpdf": lambda x, a, b: -x * x / 2 - mp.log(2 * mp.pi) / 2 - mp.log(_mass(a, b)),
        "cdf": lambda x, a, b: _mass(a, x) / _mass(a, b),
        "sf": lambda x, a, b: _mass(x, b) / _mass(a, b),
    },
    "truncpareto": {
        "logpdf": lambda x, b, c: mp.log(b) - (b + 1) * mp.log(x) - mp.log1p(-(c**-b)),
        "cdf": lambda x, b, c: (1 - x**-b) / (1 - c**-b),
    },
    "betaprime": {"cdf": lambda x, a, b: special.beta_tail(a, b, x / (1 + x))},
    "binom": {"pmf": _binom_pmf, **_by_sums(_binom_pmf)},
    "betabinom": {"pmf": _betabinom_pmf, **_by_sums(_betabinom_pmf)},
    "nbinom": {
        "pmf": lambda k, n, p: mp.exp(mp.loggamma(n + k) - mp.loggamma(k + 1) - mp.loggamma(n)) * p**n * (1 - p) ** k,
        "cdf": lambda k, n, p: special.beta_tail(n, k + 1, p),
    },
    "bernoulli": {"pmf": lambda k, p: p if k else 1 - p},
    "burr": {"logpdf": lambda x, c, d: mp.log(c * d) + (c * d - 1) * mp.log(x) - (d + 1) * mp.log1p(x**c)},
    "fisk": {"logpdf": lambda x, c: mp.log(c) + (c - 1) * mp.log(x) - 2 * mp.log1p(x**c)},
    "cauchy": {"cdf": lambda x: mp.atan2(1, -x) / mp.pi, "ppf": lambda q: mp.tan(mp.pi * q - mp.pi / 2)},
    "cosine": {"cdf": lambda x: (mp.pi + x + mp.sin(x)) / (2 * mp.pi)},
    "invgauss": {"cdf": _invgauss},
    "pearson3": {
        "logpdf": lambda x, s: mp.log(2 / abs(s)) + (4 / s**2 - 1) * mp.log(2 / s * (x + 2 / s)) - 2 / s * (x + 2 / s)
        - mp.loggamma(4 / s**2),
        "cdf": _pearson3_cdf,
    },
    "skewnorm": {"logpdf": lambda x, a: mp.log(2 * special.normal(x) * special.ndtr(a * x))},
    "skellam": {
        "pmf": lambda k, m, n: mp.exp(-m - n) * (m / n) ** (k / 2) * mp.besseli(abs(k), 2 * mp.sqrt(m * n))
    },
    "t": {
        "logpdf": lambda x, df: mp.loggamma((df + 1) / 2) - mp.loggamma(df / 2) - mp.log(df * mp.pi) / 2
        - (df + 1) / 2 * mp.log1p(x * x / df),
        "cdf": lambda x, df: special.student(df, x),
    },
    "f": {"cdf": lambda x, m, n: special.fdtr(m, n, x)},
    "rdist": {"cdf": lambda x, c: special.beta_tail(c / 2, c / 2, (x + 1) / 2)},
    "semicircular": {"cdf": lambda x: mp.mpf(1) / 2 + (x * mp.sqrt(1 - x * x) + mp.asin(x)) / mp.pi},
    "rice": {"logpdf": lambda x, b: mp.log(x) - (x - b) ** 2 / 2 + mp.log(mp.besseli(0, x * b) * mp.exp(-x * b))},
    **{
        name: {"logpdf": lambda x, k: k * mp.cos(x) - mp.log(2 * mp.pi * mp.besseli(0, k)), "cdf": _von_mises}
        for name in ("vonmises", "vonmises_line")
    },
    "zipf": {"pmf": lambda k, a: k**-a / mp.zeta(a)},
    "yulesimon": {"pmf": lambda k, a: a * mp.exp(special.betaln(k, a + 1))},
    "geninvgauss": {
        "logpdf": lambda x, p, b: (p - 1) * mp.log(x) - b * (x + 1 / x) / 2 - mp.log(2) - _log_bessel(p, b)
    },
    "genhyperbolic": {
        "logpdf": lambda x, p, a, b: p * mp.log(mp.sqrt(a * a - b * b)) - mp.log(2 * mp.pi) / 2 - (p - 0.5) * mp.log(a)
        - _log_bessel(p, mp.sqrt(a * a - b * b)) + b * x + (p - 0.5) * mp.log(1 + x * x) / 2
        + _log_bessel(p - 0.5, a * mp.sqrt(1 + x * x)),
    },
    "ncx2": {
        "logpdf": lambda x, df, nc: -mp.log(2) - (x + nc) / 2 + (df / 4 - 0.5) * mp.log(x / nc)
        + mp.log(mp.besseli(df / 2 - 1, mp.sqrt(nc * x))),
        "cdf": special.chndtr,
    },
}  # fmt: skip
"""Where SciPy's code is compiled, asks for values, or has no NumPy code."""


def method(dist: str, name: str) -> Truth:
    """A public method of (x, *shapes) of location 0 and scale 1."""
    exact = Exact(dist)

    def of_numbers(*args: Any) -> Any:
        return _real(getattr(exact, f"_{name}")(*args))

    return of_numbers


def _real(x: Any) -> Any:
    """A number that may be a complex one without an imaginary part."""
    if isinstance(x, mp.mpc):
        if x.imag != 0:
            raise NoTruth
        x = x.real
    return mp.mpf(x)


DIGITS = 50
"""Of integrals; their differences by shapes have a third of them."""


@functools.cache
def _nodes(level: int) -> list[tuple[Any, Any, Any, Any]]:
    """Nodes and weights of (0, 1) and of (0, inf) of the step 1 / 2^level; those of lower levels are left out.

    Source: H. Takahasi, M. Mori (1974), Double exponential formulas for numerical integration.
    """
    with mp.workdps(DIGITS + 10):
        step = mp.mpf(1) / 2**level
        rows = []
        for j in range(-6 * 2**level, 6 * 2**level + 1):
            if level > LEAST_LEVEL and j % 2 == 0:
                continue
            bent, slope = mp.pi / 2 * mp.sinh(j * step), mp.pi / 2 * mp.cosh(j * step)
            unit = 1 / (1 + mp.exp(-2 * bent))
            rows.append((unit, slope * 2 * unit / (1 + mp.exp(2 * bent)), mp.exp(bent), slope * mp.exp(bent)))
        return rows


LEAST_LEVEL, MOST_LEVEL = 3, 7


def _integral(f: Truth, start: Any, end: Any, width: Any) -> Any:
    """The integral between a number and an end of the support, which may be infinite, as a positive measure."""
    bounded, sign = mp.isfinite(end), 1 if end > start else -1
    total, before = mp.mpf(0), None
    for level in range(LEAST_LEVEL, MOST_LEVEL + 1):
        for unit, unit_weight, half, half_weight in _nodes(level):
            t = end + (start - end) * unit if bounded else start + sign * width * half
            weight = abs(start - end) * unit_weight if bounded else width * half_weight
            if t != end and t != start:
                total += weight * f(t)
        value = total / 2**level
        if before is not None and abs(value - before) <= mp.mpf(10) ** -20 * abs(value):
            return value
        before = value
    raise NoTruth


INTEGRATED = frozenset(
    ["gausshyper", "genhyperbolic", "geninvgauss", "nct", "norminvgauss", "rel_breitwigner", "skewnorm", "rice",
     "dpareto_lognorm"]
)  # fmt: skip
"""Continuous distributions whose distribution function is the integral of the density here."""


ERRORS = (NoTruth, ZeroDivisionError, ValueError, OverflowError, mp.NoConvergence)
BITS, STEP_BITS = 520, 110
"""Of quick differences, whose errors are far below the bounds unless terms cancel; those are computed again."""


class Place:
    """A continuous distribution at a point: density, probabilities of both sides, and their partials.

    A careful one computes at rising precision until nothing changes, a quick one at one precision.
    """

    def __init__(self, dist: str, x: Any, shapes: tuple[float, ...], careful: bool) -> None:
        self._exact, self._dist = Exact(dist), getattr(scipy.stats, dist)
        self._numbers = [mp.mpf(x), *map(mp.mpf, shapes)]
        self._integrated, self._careful = dist in INTEGRATED, careful
        self._values: dict[tuple[str, Orders], Any] = {}
        self._points: dict[tuple[str, tuple[int, ...]], Any] = {}
        self.zero: Orders = tuple([0] * len(self._numbers))
        self._bits = BITS + 2 * max([abs(mp.mag(n)) for n in self._numbers if n], default=0)

    def __call__(self, name: str, orders: Orders) -> Any:
        """A partial of logpdf, pdf, cdf or sf; the value itself for zeros."""
        key = name, orders
        if key not in self._values:
            try:
                self._values[key] = self._found(name, orders)
            except ERRORS:
                self._values[key] = None
        if self._values[key] is None:
            raise NoTruth
        return self._values[key]

    def units(self, orders: Orders) -> list[Orders]:
        """The first partials that a partial consists of."""
        size = len(orders)
        return [tuple([int(i == place) for i in range(size)]) for place in range(size) for _ in range(orders[place])]

    def _found(self, name: str, orders: Orders) -> Any:
        if name == "pdf":
            if not any(orders):
                if not self._careful:
                    return _exp(self("logpdf", orders))
                return settled(lambda: _exp(_real(self._exact._logpdf(*self._numbers))))
            first = [self("logpdf", unit) for unit in self.units(orders)]
            return self("pdf", self.zero) * (first[0] if len(first) == 1 else self("logpdf", orders) + mp.fprod(first))
        if name != "logpdf" and orders[0]:
            density = self("pdf", (orders[0] - 1, *orders[1:]))
            return density if name == "cdf" else -density
        if name != "logpdf" and self._integrated:
            return self._by_integral(name, orders)
        exact = getattr(self._exact, f"_{name}")
        if not self._careful:
            return self._quick(name, orders)
        if not any(orders):
            return settled(lambda: _real(exact(*self._numbers)))
        return settled(lambda: difference(lambda *args: _real(exact(*args)), self._numbers, orders))

    def _quick(self, name: str, orders: Orders) -> Any:
        with mp.workprec(self._bits):
            units = self.units(orders)
            if not units:
                return self._at(name, self.zero)
            steps = [mp.ldexp(abs(x) or 1, -STEP_BITS) for x in self._numbers]
            size = mp.fprod(step**order for step, order in zip(steps, orders, strict=True))
            if len(units) == 1:
                return (self._at(name, units[0]) - self._at(name, tuple([-i for i in units[0]]))) / (2 * size)
            one, other = units
            if one == other:
                minus = tuple([-i for i in one])
                return (self._at(name, one) - 2 * self._at(name, self.zero) + self._at(name, minus)) / size
            corners = [(a, b) for a in (1, -1) for b in (1, -1)]
            total = mp.fsum(
                a * b * self._at(name, tuple([a * i + b * j for i, j in zip(one, other, strict=True)]))
                for a, b in corners
            )
            return total / (4 * size)

    def _at(self, name: str, offsets: tuple[int, ...]) -> Any:
        """A method at a neighbour, in steps."""
        key = name, offsets
        if key not in self._points:
            steps = [mp.ldexp(abs(x) or 1, -STEP_BITS) for x in self._numbers]
            moved = [x + step * k for x, step, k in zip(self._numbers, steps, offsets, strict=True)]
            self._points[key] = _real(getattr(self._exact, f"_{name}")(*moved))
        return self._points[key]

    def _by_integral(self, name: str, orders: Orders) -> Any:
        x, *shapes = self._numbers
        floats = [float(n) for n in self._numbers]
        below = float(self._dist.cdf(*floats)) < 0.5
        side = "cdf" if below else "sf"
        if name != side:
            return (0 if any(orders) else 1) - self(side, orders)
        if sum(orders) > 1:
            raise NoTruth
        with mp.workdps(DIGITS):
            places = [i for i, order in enumerate(orders[1:]) if order]
            h: Any = (abs(shapes[places[0]]) or 1) * mp.mpf(10) ** (-DIGITS // 3) if places else 0

            def integrand(t: Any) -> Any:
                if not places:
                    return _real(self._exact._pdf(t, *shapes))
                moved = [list(shapes), list(shapes)]
                moved[0][places[0]] += h
                moved[1][places[0]] -= h
                up, down = [_real(self._exact._pdf(t, *m)) for m in moved]
                return (up - down) / (2 * h)

            quartiles = self._dist.ppf([0.25, 0.75], *floats[1:])
            width = mp.mpf(float(quartiles[1] - quartiles[0]))
            slope = abs(self("logpdf", (1, *self.zero[1:])))
            if slope * width > 1:
                width = 1 / slope
            return _integral(integrand, x, mp.mpf(float(self._dist.support(*floats[1:])[0 if below else 1])), width)


@functools.lru_cache(maxsize=4000)
def place(dist: str, x: Any, shapes: tuple[float, ...], careful: bool) -> Place:
    """The place of a distribution, which remembers what it has computed."""
    return Place(dist, x, shapes, careful)


def partial(dist: str, name: str, orders: Orders, point: tuple[float, ...], careful: bool) -> Any:
    """A partial of a density, a cumulative function or its logarithm up to the second order, or None."""
    with mp.workprec(BITS):
        return _partial(place(dist, point[0], point[1:], careful), name, orders)


def _partial(at: Place, name: str, orders: Orders) -> Any:
    side = name.removeprefix("log")
    try:
        if side == name or name == "logpdf":
            return at(name, orders)
        value = at(side, at.zero)
        logarithmic = at(side, orders) / value
        first = [at(side, unit) / value for unit in at.units(orders)]
        return logarithmic - mp.fprod(first) if len(first) == 2 else logarithmic
    except ERRORS:
        return None


def quantile(dist: str, name: str, orders: Orders, point: tuple[float, ...], careful: bool, value: float) -> list[Any]:
    """A partial of ppf or isf by the implicit function: at a value, and where the value is exactly the quantile."""
    q, *shapes = point
    sign, side = (1, "cdf") if name == "ppf" else (-1, "sf")
    with mp.workprec(BITS):
        places = [place(dist, value, tuple(shapes), careful)]
        try:
            gap = (places[0](side, places[0].zero) - mp.mpf(q)) / (sign * places[0]("pdf", places[0].zero))
            if gap and abs(gap) < 1e-6 * abs(value):
                places.append(place(dist, value - gap, tuple(shapes), careful))
        except ERRORS:
            pass
        return [x for x in [_of_quantile(at, orders, sign) for at in places] if x is not None]


def _of_quantile(at: Place, orders: Orders, sign: int) -> Any:
    by_x, units = (1, *at.zero[1:]), at.units(orders)
    try:
        f = at("pdf", at.zero)
        slopes = [sign / f if unit == by_x else -at("cdf", unit) / f for unit in units]
        if len(units) == 1:
            return slopes[0]
        if units[0] != by_x:
            return None
        own = 0 if units[1] == by_x else at("pdf", units[1])
        return -slopes[0] * (own + at("pdf", by_x) * slopes[1]) / f
    except ERRORS:
        return None
