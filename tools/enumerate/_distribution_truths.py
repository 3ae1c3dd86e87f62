"""The methods of scipy.stats' distributions in mpmath: SciPy's own formulas, run on numbers of any precision.

The Python code of a private method (`_logpdf`, `_cdf`, ...) runs with `np` and `sc` replaced by mpmath, so its
cancellations do not matter. What SciPy computes in compiled code is written here.
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
    """What older versions of SciPy call for it."""
    return _select(holds, operands, f, f2, fill_value=fillvalue)


def _lazyselect(conditions: Any, functions: Any, args: Any, default: Any = 0) -> Any:
    return next((f(*args) for c, f in zip(conditions, functions, strict=True) if c), mp.mpf(default))


def _same(x: Any, *rest: Any, **options: Any) -> Any:
    return x


def _power(x: Any, y: Any) -> Any:
    return mp.mpf(x) ** y


NUMPY: dict[str, Any] = {
    **{name: getattr(mp, name) for name in (
        "log", "exp", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "log1p", "expm1", "floor", "ceil", "sign",
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
    "log": mp.log, "exp": mp.exp, "floor": mp.floor, "sqrt": mp.sqrt, "ceil": mp.ceil,
    "expm1": mp.expm1, "log1p": mp.log1p, "tanh": mp.tanh, "cosh": mp.cosh, "betaln": special.betaln,
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
        return mp.exp(self._logpdf(x, *shapes))
    if not self.has("_cdf"):
        raise NoTruth
    h = (abs(x) or mp.mpf(1)) * mp.mpf(10) ** (-mp.dps // 3)
    return (self._cdf(x + h, *shapes) - self._cdf(x - h, *shapes)) / (2 * h)


def _cdf(self: Exact, x: Any, *shapes: Any) -> Any:
    if self.has("_sf"):
        return 1 - self._sf(x, *shapes)
    if self.has("_logcdf"):
        return mp.exp(self._logcdf(x, *shapes))
    raise NoTruth


def _sf(self: Exact, x: Any, *shapes: Any) -> Any:
    return 1 - self._cdf(x, *shapes)


def _ppf(self: Exact, q: Any, *shapes: Any) -> Any:
    start = float(self._dist.ppf(float(q), *[float(s) for s in shapes]))
    return solve(lambda x: self._cdf(x, *shapes) - q, lambda x: self._pdf(x, *shapes), start)


def _pmf(self: Exact, k: Any, *shapes: Any) -> Any:
    if self.has("_logpmf"):
        return mp.exp(self._logpmf(k, *shapes))
    return self._cdf(k, *shapes) - self._cdf(k - 1, *shapes)


FOLLOW = {"cdf": ("_sf", "_logcdf", "_logsf", "_ppf"), "logpdf": ("_pdf",), "pmf": ("_logpmf",)}
"""Methods that follow from one of `OWN`."""
DEFAULTS: dict[str, Truth] = {
    "_pdf": _pdf, "_cdf": _cdf, "_sf": _sf, "_ppf": _ppf, "_pmf": _pmf,
    "_logpdf": lambda self, x, *shapes: mp.log(self._pdf(x, *shapes)),
    "_logpmf": lambda self, k, *shapes: mp.log(self._pmf(k, *shapes)),
    "_logcdf": lambda self, x, *shapes: mp.log(self._cdf(x, *shapes)),
    "_logsf": lambda self, x, *shapes: mp.log(self._sf(x, *shapes)),
}  # fmt: skip


def _log_bessel(v: Any, z: Any) -> Any:
    return mp.log(mp.besselk(v, z))


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


OWN: dict[str, dict[str, Truth]] = {
    "beta": {
        "logpdf": lambda x, a, b: (a - 1) * mp.log(x) + (b - 1) * mp.log1p(-x) - special.betaln(a, b),
        "cdf": special.beta_tail,
        "sf": lambda x, a, b: special.beta_tail(b, a, 1 - x),
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
    "vonmises": {"logpdf": lambda x, k: k * mp.cos(x) - mp.log(2 * mp.pi * mp.besseli(0, k))},
    "vonmises_line": {"logpdf": lambda x, k: k * mp.cos(x) - mp.log(2 * mp.pi * mp.besseli(0, k))},
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
        out = getattr(exact, f"_{name}")(*args)
        if isinstance(out, mp.mpc):
            if out.imag != 0:
                raise NoTruth
            out = out.real
        return mp.mpf(out)

    return of_numbers
