"""First and second partials of special functions and of distributions, against mpmath, over their whole domains."""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import mpmath
import numpy as np
import scipy.stats

import func
from tools.enumerate import _distribution_truths, scope
from tools.enumerate._special_truths import TRUTHS, NoTruth
from tools.enumerate.exact_partials import MODES, Bound, Domain, Points, Row, fault, truth

FIRST, SECOND = Bound(ulps=2**10, relative=1e-10), Bound(ulps=2**13, relative=1e-8)
"""The bounds of rows without an exception; the ulp are those of float32, of which formulas lose some."""

FEW_POINTS = 4
"""Points of one program: their truths take longer than the call of func."""
POSITIVE = (
    1.0, 0.4, 2.5, 0.1, 8.0, 1e-3, 20.0, 40.0, 1e-6, 1e3, 1e-17, 1e5, 1e-40, 1e8, 1e-150, 1e10, 1e-300, 1e15, 1e30,
    1e100, 1e300,
)  # fmt: skip
REAL = (0.0, *[sign * x for x in POSITIVE for sign in (1, -1)])
NEGATIVE = tuple([-x for x in POSITIVE])
UNIT = (
    0.5, 0.3, 0.7, 0.1, 0.9, 1e-3, 0.999, 1e-6, 1 - 2.0**-20, 1e-12, 1 - 2.0**-40, 1e-17, 1 - 2.0**-53, 1e-50, 1e-150,
    1e-300,
)  # fmt: skip
CENTRED = (0.0, *[sign * x for x in UNIT for sign in (1, -1)])
SHAPES = (1.0, 0.5, 2.5, 0.1, 10.0, 1e-3, 60.0, 1e3, 1e-8, 1e6, 1e10, 1e15, 1e-100, 1e100)
FEW = (0.5, 2.5, 1.0, 20.0, 0.03, 300.0, 1e6)
MILD = (0.5, 2.5, 1.0, 12.0, 0.03)
DEGREES = (0.0, 1.0, 2.0, 5.0, 20.0)
ORDERS = (0.0, 1.0, 0.5, 3.0, 10.3, 50.0)


def up_to(size: float, numbers: Sequence[float]) -> tuple[float, ...]:
    """Those whose size is at most this."""
    return tuple([x for x in numbers if abs(x) <= size])


def between(low: float, high: float, numbers: Sequence[float]) -> tuple[float, ...]:
    """Those of a closed interval."""
    return tuple([x for x in numbers if low <= x <= high])


Grids = tuple[Sequence[float], ...]


def _exact(name: str, out: int | None) -> Callable[..., Any]:
    """The truth of a function, of one of its outputs, where it is a real number."""
    truth = TRUTHS[name]

    def exact(*numbers: Any) -> Any:
        value = truth(*numbers)
        value = value if out is None else value[out]
        if isinstance(value, mpmath.mpc):
            if value.imag != 0:
                raise NoTruth
            value = value.real
        return value

    return exact


def _function(name: str, out: int | None) -> Callable[..., Any]:
    function = getattr(func.special, name)
    return function if out is None else lambda *args: function(*args)[out]


class Limit(NamedTuple):
    """The relative error that a row may have, where it is compared, and why."""

    first: float
    second: float
    reason: str
    where: Callable[..., bool] = lambda *point: True


SCIPY = "the value of SciPy has no more digits"
LIMITS: dict[str, Limit] = {
    "beta": Limit(1e-8, 1e-6, f"{SCIPY}; the mixed partial is a difference of equal terms for small shapes",
                  lambda a, b: min(a, b) >= 1e-3),
    "binom": Limit(1e-8, 1e-7, SCIPY),
    "kappa4.logpdf": Limit(1e-6, 1e-2, "terms of second order in h and k cancel",
                          lambda x, *shapes: 1e-2 < abs(x) < 1e50),
    "kappa4.pdf": Limit(1e-6, 1e-2, "terms of second order in h and k cancel",
                          lambda x, *shapes: 1e-2 < abs(x) < 1e50),
    "exponnorm.logcdf": Limit(1e-6, 1e-5, "the sum has few nodes where the normal part is a step", lambda x, k: k < 40),
    "boltzmann.logsf": Limit(1e-10, 1e-5, SCIPY),
    "boltzmann.pmf": Limit(1e-10, 1e-7, SCIPY),
    "ellipk": Limit(1e-10, 1e-8, "Gauss' function far to the left", lambda m: m > -1e9),
    "ellipe": Limit(1e-10, 1e-8, "Gauss' function far to the left", lambda m: m > -1e9),
    "expit": Limit(1e-10, 1e-8, "the value near 1/2 does not know a tiny argument", lambda x: x == 0 or abs(x) > 1e-8),
    "chi.logcdf": Limit(1e-10, 1e-8, "the square of the argument is too small", lambda x, df: x > 1e-50),
    "maxwell.logcdf": Limit(1e-10, 1e-8, "the square of the argument is too small", lambda x: x > 1e-50),
    "genexpon.logpdf": Limit(1e-10, 1e-2, "terms of second order in c cancel", lambda x, *shapes: x > 1e-11),
    "genhalflogistic.logpdf": Limit(1e-10, 1e-7, "terms of second order in c cancel", lambda x, c: x > 0.01),
    "geom.cdf": Limit(1e-7, 1e-7, SCIPY),
    "planck.cdf": Limit(1e-6, 1e-6, SCIPY),
    "poch": Limit(1e-10, 1e-7, "the value is beyond all numbers", lambda z, m: z < 1e50),
    "tukeylambda.pdf": Limit(1e-6, 1e-4, SCIPY, lambda x, lam: abs(x) < 1e4),
    "tukeylambda.logpdf": Limit(1e-6, 1e-4, SCIPY, lambda x, lam: abs(x) < 1e4),
    "semicircular.logcdf": Limit(1e-8, 1e-7, "the logarithm of a value next to one"),
    "anglit.logsf": Limit(1e-6, 1e-5, "the value next to an end is rounded"),
    "semicircular.sf": Limit(1e-8, 1e-7, "the value next to an end is rounded"),
    "semicircular.cdf": Limit(1e-8, 1e-7, "the value next to an end is rounded"),
    "loguniform.logcdf": Limit(1e-10, 1e-6, "the value next to the left end is rounded"),
    "truncexpon.logsf": Limit(1e-10, 1e-6, "the value next to the right end is rounded"),
    "tukeylambda.logcdf": Limit(1e-6, 1e-4, SCIPY, lambda x, lam: 1e-10 < abs(x) < 1e4),
    "f.logcdf": Limit(1e-10, 1e-4, "powers of the argument are below all numbers", lambda x, *shapes: x > 1e-50),
    "anglit.logcdf": Limit(1e-10, 1e-5, "the value next to the left end is rounded", lambda x: x > -0.785398),
    "halfgennorm.logcdf": Limit(1e-10, 1e-8, "powers of the argument are below all numbers", lambda x, b: x > 1e-50),
    "vonmises.logcdf": Limit(1e-8, 1e-6, "from 50 on SciPy's value is that of a normal law", lambda x, k: k < 50),
    "levy_l.logsf": Limit(1e-10, 1e-8, "powers of the argument are below all numbers", lambda x: x < -1e-50),
    "mielke.isf": Limit(1e-7, 1e-6, SCIPY),
    "kappa4.isf": Limit(1e-3, 1e-2, "terms of second order in h and k cancel"),
    "f.logpdf": Limit(1e-10, 1e-4, "one degree of freedom is small and the other one large"),
}  # fmt: skip
"""The rows that are compared within other bounds, or not everywhere."""
DEFAULT = Limit(FIRST.relative, SECOND.relative, "")
GRIDS: dict[Row, Grids] = {}
POINTS: dict[Row, Callable[[], Iterable[tuple[float, ...]]]] = {}


def _row(
    name: str,
    *grids: Sequence[float],
    by: tuple[int, ...] | None = None,
    out: int | None = None,
    where: Callable[..., bool] = lambda *point: True,
    dtypes: tuple[str, ...] = ("float64", "float32"),
    second: bool = True,
) -> Row:
    """A row over the product of its grids, small ones if there are several."""
    title = name if out is None else f"{name}[{out}]"
    limit = LIMITS.get(title, DEFAULT)
    row = Row(
        title, _function(name, out), _exact(name, out), domains=tuple([Domain()] * len(grids)),
        bounds=(Bound(FIRST.ulps, limit.first), Bound(SECOND.ulps, limit.second)),
        by=by, where=lambda *point: where(*point) and limit.where(*point), dtypes=dtypes, second=second,
    )  # fmt: skip
    GRIDS[row] = grids
    return row


def _unary() -> list[Row]:
    nearby = {
        "gamma": (*up_to(150, REAL), 1.4616, -0.5, -1.5, -2.2, -20.3, 170.0),
        "gammaln": (*[x for x in REAL if x > 0 or x % 1], -0.5, -1.5, -20.3), "loggamma": POSITIVE,
        "rgamma": (*up_to(150, REAL), -0.5, -2.2, -20.3),
        "digamma": (*REAL, 1.46, -0.5, -1.5, -20.3),
        "erf": (*REAL, 6.0, 26.0), "erfc": (*REAL, 6.0, 26.0, -6.0), "erfcx": (*REAL, 6.0, 39.9, 40.1, -5.0, 50.0),
        "erfi": (*REAL, 6.0, 26.0), "erfinv": CENTRED, "erfcinv": (*UNIT, 1.3, 1.9, 1.999, 2 - 2.0**-40),
        "dawsn": (*REAL, 6.0, 39.9, 40.1, -40.1, 50.0), "ndtr": (*REAL, 8.4, 8.6, -37.0),
        "log_ndtr": (*REAL, 8.4, 8.6, -37.0, 5.0, 20.0, 37.0), "ndtri": UNIT,
        "ndtri_exp": (*up_to(1e10, NEGATIVE), -0.7, -1.3),
        "j0": up_to(1e6, REAL), "j1": up_to(1e6, REAL), "y0": up_to(1e6, POSITIVE), "y1": up_to(1e6, POSITIVE),
        "i0": (*up_to(1e3, REAL), 700.0), "i1": (*[x for x in up_to(1e3, REAL) if abs(x) > 1e-200], 700.0),
        "i0e": up_to(1e15, REAL), "i1e": up_to(1e15, REAL), "k0": between(0.1, 50, POSITIVE),
        "k1": between(0.1, 50, POSITIVE),
        "k0e": up_to(1e15, POSITIVE), "k1e": up_to(1e15, POSITIVE),
        "entr": POSITIVE, "expit": (*REAL, -700.0, 700.0, 36.0), "logit": UNIT,
        "log_expit": (*REAL, -700.0, 700.0, 36.0), "softplus": (*REAL, -700.0, 700.0, 36.0),
        "cbrt": REAL, "exp2": (*REAL, 1023.0, -1000.0), "exp10": (*REAL, 300.0, -300.0),
        "expm1": (*REAL, 700.0, -700.0), "log1p": (*POSITIVE, *CENTRED[1:]), "cosm1": REAL,
        "sindg": up_to(1e8, REAL), "cosdg": up_to(1e8, REAL), "tandg": up_to(1e8, REAL), "cotdg": up_to(1e8, REAL),
        "exp1": (*POSITIVE, 700.0), "expi": (*REAL[1:], 700.0, -700.0, 0.37250741),
        "spence": (*POSITIVE, *UNIT, 1.5, 2.0, 3.0), "wrightomega": up_to(1e5, REAL),
        "lambertw": (*POSITIVE, *[-x for x in UNIT if x < 0.367], -0.36787),
        "exprel": (*REAL, 700.0, -700.0), "sinc": up_to(1e3, REAL),
        "ellipk": (*UNIT, *NEGATIVE), "ellipe": (*UNIT, *NEGATIVE), "ellipkm1": (*UNIT, 1.5, 20.0, 1e6),
        "kolmogorov": (0.5, 0.2, 0.06, 0.1, 0.09, 0.11, 0.49, 0.51, 0.9, 2.0, 5.0, 12.0, 19.0),
    }  # fmt: skip
    waves = ("ber", "bei", "ker", "kei", "berp", "beip", "kerp", "keip")
    rows = [_row(name, grid) for name, grid in nearby.items()]
    rows += [_row(name, between(1e-6, 40.0, POSITIVE), second=not name.endswith("p")) for name in waves]
    outs = {
        "airy": (4, (*up_to(100, REAL), -300.0)), "airye": (4, up_to(1e8, POSITIVE)),
        "fresnel": (2, [x for x in up_to(100, REAL) if abs(x) != 1]),
        "sici": (2, POSITIVE), "shichi": (2, (*up_to(1e3, POSITIVE), 700.0)),
    }  # fmt: skip
    return [*rows, *[_row(name, grid, out=i) for name, (count, grid) in outs.items() for i in range(count)]]


def _bessel() -> list[Row]:
    numbers = between(1e-6, 1e5, POSITIVE)
    halves = (0.5, 3.5, 10.3)
    rows = [_row(name, ORDERS, numbers, by=(1,)) for name in ("jv", "ive", "jve")]
    rows += [_row(name, halves, numbers, by=(1,)) for name in ("yv", "kve", "yve")]
    rows += [_row(name, halves, between(1e-6, 600.0, POSITIVE), by=(1,)) for name in ("iv", "kv")]
    rows += [
        _row(f"spherical_{kind}n", DEGREES, between(1e-6, 600.0, POSITIVE), by=(1,)) for kind in ("j", "y", "i", "k")
    ]
    return [*rows, *[_row(name, ORDERS[:4], between(1e-3, 100, POSITIVE), by=(1,)) for name in ("struve", "modstruve")]]


def _gammas() -> list[Row]:
    mild = between(1e-6, 1e3, SHAPES)
    return [
        _row("beta", SHAPES, SHAPES, where=lambda a, b: min(a, b) > 1e-150),
        _row("betaln", SHAPES, (*SHAPES, 1.5, 2.0)),
        _row("poch", (*SHAPES, 1e5), (2.0, 0.5, 1.0, 3.7, 10.0, 1e-3, 1e-8, -0.3)),
        _row("binom", (*SHAPES, 1e12), (2.0, 0.5, 1.0, 3.7, 1e-3), where=lambda n, k: n - k > -0.9 and n > -0.9),
        _row("polygamma", (1.0, 2.0, 5.0), (*POSITIVE, -0.5, -1.5), by=(1,)),
        _row("zeta", (1.5, 2.0, 5.0, 1.01, 20.0), (*POSITIVE,), by=(1,)),
        *[
            _row(name, between(1e-3, 1e3, SHAPES), between(1e-40, 1e3, (*POSITIVE, 60.0, 1050.0)))
            for name in ("gammainc", "gammaincc")
        ],
        *[_row(name, mild, mild[:5], between(1e-40, 1.0, UNIT)[::2]) for name in ("betainc", "betaincc")],
        *[_row(name, between(1e-3, 1e3, SHAPES), between(1e-6, 1e3, POSITIVE)) for name in ("chdtr", "chdtrc")],
        _row("stdtr", (*SHAPES[:8], 1e6), (*up_to(1e5, REAL), 1.5)),
        *[_row(name, DEGREES[1:], (30.0,), UNIT[:10], by=(2,)) for name in ("bdtr", "bdtrc")],
        *[_row(name, DEGREES[1:], (4.0,), UNIT[:10], by=(2,)) for name in ("nbdtr", "nbdtrc")],
        *[_row(name, DEGREES, between(1e-6, 100, POSITIVE), by=(1,)) for name in ("pdtr", "pdtrc")],
        _row("chndtr", (0.1, 2.0, 20.0), (1.0, 5.0), (0.3, 4.0, 20.0), by=(0, 2)),
    ]


def _inverses() -> list[Row]:
    p, few = (0.5, 0.1, 0.9, 1e-3, 0.999), (0.5, 2.5, 12.0)
    wide, mild = ("float64",), between(1e-6, 1e3, SHAPES)
    return [
        *[_row(name, mild, between(1e-40, 1.0, UNIT)) for name in ("gammaincinv", "gammainccinv")],
        *[_row(name, mild[:5], mild[:4], between(1e-12, 1.0, UNIT)[::2]) for name in ("betaincinv", "betainccinv")],
        *[_row(name, MILD, MILD, between(1e-6, 100, POSITIVE)) for name in ("gdtr", "gdtrc", "fdtr", "fdtrc")],
        *[_row("chdtri", few, p, dtypes=wide), _row("chdtriv", p, few, dtypes=wide)],
        _row("gdtria", p, few, few, dtypes=wide), _row("gdtrib", few, p, few, dtypes=wide),
        _row("gdtrix", few, few, p, dtypes=wide), _row("fdtri", few, few, p, dtypes=wide),
        _row("fdtridfd", few, p[:3], (0.5, 2.0), dtypes=wide),
        _row("stdtrit", few, p, dtypes=wide, where=lambda df, p: p != 0.5),
        _row("stdtridf", (0.7, 0.9), (0.8, 2.0), dtypes=wide),
        _row("btdtria", p[:3], few, (0.3, 0.8), dtypes=wide), _row("btdtrib", few, p[:3], (0.3, 0.8), dtypes=wide),
        _row("bdtri", (1.0, 5.0), (30.0,), p, by=(2,), dtypes=wide), _row("bdtrik", p, (30.0,), (0.3,), dtypes=wide),
        _row("bdtrin", (5.0,), p, (0.3,), dtypes=wide), _row("nbdtri", (1.0, 5.0), (4.0,), p, by=(2,), dtypes=wide),
        _row("nbdtrik", p, (30.0,), (0.3,), dtypes=wide), _row("nbdtrin", (5.0,), p, (0.3,), dtypes=wide),
        _row("pdtri", (1.0, 5.0), p, by=(1,), dtypes=wide), _row("pdtrik", p, (5.0, 30.0), dtypes=wide),
        _row("nrdtrimn", p, few, REAL[:9], dtypes=wide),
        _row("nrdtrisd", REAL[:5], (0.3, 0.9, 1e-3), (2.0, 7.0), dtypes=wide),
        _row("tklmbda", (0.3, -0.4, 0.01, 0.9), (0.4, 1.0, 2.5, -0.3, -2.0), dtypes=wide),
    ]  # fmt: skip


def _others() -> list[Row]:
    few, degrees = FEW, (0.0, 1.0, 2.0, 7.0)
    inside = (0.3, -0.7, 1e-6, 0.99, -0.9999)
    rows = [
        _row("xlogy", few, POSITIVE), _row("xlog1py", few, (*POSITIVE, *[-x for x in UNIT])),
        _row("rel_entr", few, POSITIVE), _row("kl_div", few, POSITIVE),
        _row("pseudo_huber", few, REAL), _row("huber", few, REAL, where=lambda d, r: abs(r) != d, second=False),
        _row("boxcox", POSITIVE[:12], (0.0, 1e-10, 0.5, 2.0, -1.0, 1e-3, -3.0)),
        _row("boxcox1p", (*POSITIVE[:12], *[-x for x in UNIT[:7]]), (0.0, 1e-10, 0.5, 2.0, -1.0, 1e-3, -3.0)),
        _row("inv_boxcox", (0.5, -0.3, 1e-6, 0.9, 3.0), (0.0, 1e-10, 0.5, 1.2, -0.2, 1e-3)),
        _row("inv_boxcox1p", (0.5, -0.3, 1e-6, 0.9, 3.0), (0.0, 1e-10, 0.5, 1.2, -0.2, 1e-3)),
        _row("powm1", POSITIVE[:12], (0.5, 2.0, -1.0, 1e-6, -3.3, 10.0)),
        _row("agm", (1.0, 0.5, 20.0, 1e-6, 1e10), (1.0, 0.7, 5.0, 1e-3, 1e10), where=lambda a, b: a != b),
        _row("expn", (0.0, 1.0, 2.0, 5.0), between(1e-6, 700, POSITIVE), by=(1,)),
        _row("ellipkinc", (0.5, -1.2, 1e-3, 1.5, 1.57, 5.0), (0.5, -3.0, 1e-6, 0.99, -1e3, 1 - 1e-9)),
        _row("ellipeinc", (0.5, -1.2, 1e-3, 1.5, 1.57, 5.0), (0.5, -3.0, 1e-6, 0.99, -1e3, 1 - 1e-9)),
        _row("hyp0f1", (0.5, 2.0, 10.0), (*up_to(1e3, REAL),), by=(1,)),
        _row("hyp1f1", (0.5, 2.0), (1.5, 4.0), up_to(40.0, REAL), by=(2,)),
        _row("hyperu", (0.5, 2.0), (1.5, 4.0), between(1e-3, 40.0, POSITIVE), by=(2,)),
        _row("hyp2f1", (0.5, 2.0), (1.5,), (3.2,), (*UNIT[:7], -0.5, -3.0, -40.0), by=(3,)),
        _row("elliprc", MILD, MILD), _row("elliprf", MILD, MILD, MILD), _row("elliprd", MILD, MILD, MILD),
        _row("elliprg", MILD, MILD, MILD), _row("elliprj", MILD[:3], MILD[:3], MILD[:3], (0.7, 3.0)),
        _row("radian", (1.0, -20.0), (2.0, 30.0), (3.0, 1e6)),
        _row("voigt_profile", (0.3, -2.0, 40.0, 1e4), (0.5, 2.0, 1e-3), (0.5, 2.0, 1e-3)),
        _row("wright_bessel", (0.5, 1.5), (1.2, 3.0), (0.7, 5.0, 1e-3), by=(2,)),
        _row("log_wright_bessel", (0.5, 1.5), (1.2, 3.0), (0.7, 5.0, 1e-3), by=(2,)),
        _row("besselpoly", (0.7, 2.5), (1.5,), (1.2, 3.0), by=(0,)),
        _row("pbdv", (0.0, 1.3, 4.0), (0.3, 2.0, -1.5, 8.0), by=(1,), out=0),
        *[_row("ellipj", (0.5, -1.2, 3.0, 1e-3), (0.4, 0.01, 0.99), out=i) for i in range(3)],
        _row("eval_jacobi", degrees, (0.5,), (1.3,), inside, by=(3,)),
        _row("eval_sh_jacobi", degrees, (2.5,), (1.3,), (0.3, 0.99, 1e-6), by=(3,)),
        _row("eval_gegenbauer", degrees, (1.3,), inside, by=(2,)),
        _row("eval_genlaguerre", degrees, (1.3,), (0.3, 5.0, 40.0), by=(2,)),
        _row("eval_laguerre", degrees, (0.3, 5.0, 40.0), by=(1,)),
        _row("lpmv", (0.0, 1.0, 2.0), (2.0, 5.0), inside, by=(2,)),
    ]  # fmt: skip
    names = ("legendre", "chebyt", "chebyu", "chebyc", "chebys", "hermite", "hermitenorm")
    rows += [_row(f"eval_{name}", degrees, inside, by=(1,)) for name in names]
    return [
        *rows,
        *[_row(f"eval_sh_{name}", degrees, (0.3, 0.99, 1e-6), by=(1,)) for name in ("legendre", "chebyt", "chebyu")],
    ]


@functools.lru_cache(maxsize=1000)
def _points(row: Row, dtype: str) -> tuple[tuple[float, ...], ...]:
    """The product of the grids of a row in a dtype, the points with derivatives."""
    info = np.finfo(dtype)
    if row in POINTS:
        return tuple([point for point in POINTS[row]() if row.where(*point)])
    with np.errstate(over="ignore"):
        grids = [np.array(grid, dtype) for grid in GRIDS[row]]
    fitting = [[float(x) for x in grid if np.isfinite(x) and (x == 0 or abs(x) >= info.tiny)] for grid in grids]
    return tuple([point for point in itertools.product(*fitting) if row.where(*point)])


def _check(program: Points) -> str | None:
    """The first point at which the partial differs; a logarithm that SciPy has as -inf has one all the same."""
    row, dtype = program.row, program.dtype
    bound = row.bounds[sum(program.orders) - 1]
    for point, value, found in zip(program.points, *program.found(), strict=True):
        for careful in (False, True):
            truths = right(row, program.orders, point, float(value), careful)
            words = [fault(float(found), true, dtype, bound) for true in truths]
            if not words or None in words:
                break
        else:
            number = mpmath.nstr(truths[0], 17)
            return f"{row.name} {program.orders} {dtype}: {words[0]}\nat {point}: {found!r}, right {number}"
    return None


def right(row: Row, orders: tuple[int, ...], point: tuple[float, ...], value: float, careful: bool = True) -> list[Any]:
    """The partials that are right where func has this value; none where they are not known."""
    if np.isnan(value) or value == np.inf:
        return []
    found = OF_VALUES[row](orders, point, careful, value) if row in OF_VALUES else [truth(row, orders, point)]
    return [x for x in found if x is not None and mpmath.isfinite(x)]


def compare(name: str, orders: tuple[int, ...], point: tuple[float, ...], mode: str = "forward") -> str | None:
    """The differences at one point of the row of a name."""
    return _check(Points(rows()[name], "float64", orders, mode, (point,)))


def _part(name: str, rows: Sequence[Row]) -> scope.Part:
    """The part over the points of the rows' grids."""

    def build(choices: scope.Choices) -> Points:
        row = choices.pick(rows)
        dtype = choices.pick(row.dtypes)
        orders = choices.pick(row.orders())
        points = _points(row, dtype)
        block = choices.pick([points[i : i + FEW_POINTS] for i in range(0, len(points), FEW_POINTS)])
        return Points(row, dtype, orders, choices.pick(MODES), block)

    return scope.Part(name, build, _check)


CONTINUOUS: dict[str, tuple[tuple[float, ...], ...]] = {
    "alpha": ((3.57,), (0.5,)), "anglit": ((),), "arcsine": ((),), "argus": ((1.0,), (5.0,), (0.05,)),
    "beta": ((2.31, 0.63), (0.1, 40.0), (1e10, 1e10), (1e5, 3.0)),
    "betaprime": ((5.0, 6.0), (0.5, 0.3), (1e4, 1e4)), "bradford": ((0.3,), (1e-5,), (1e3,)),
    "burr": ((10.5, 4.3), (0.5, 0.7)), "burr12": ((10.0, 4.0), (0.5, 0.7)), "cauchy": ((),),
    "chi": ((6.0,), (0.5,), (1e6,)), "chi2": ((5.5,), (0.1,), (1e6,)), "cosine": ((),),
    "crystalball": ((2.0, 3.0), (0.5, 1.2)), "dgamma": ((1.1,), (5.0,)),
    "dpareto_lognorm": ((0.3, 0.6, 2.5, 2.0),), "dweibull": ((2.07,), (0.6,)), "expon": ((),),
    "exponnorm": ((1.5,), (0.01,), (50.0,)), "exponpow": ((2.7,), (0.5,)),
    "exponweib": ((2.9, 1.95), (0.5, 2.0), (0.3, 0.7)), "f": ((9.0, 8.0), (1.0, 1e5), (0.5, 0.3)),
    "fatiguelife": ((0.9,), (10.0,), (0.01,)), "fisk": ((3.09,), (0.4,)), "foldcauchy": ((4.7,), (0.3,)),
    "foldnorm": ((1.95,), (0.01,), (30.0,)), "gamma": ((1.99,), (0.05,), (200.0,), (1e8,)),
    "genexpon": ((9.1, 16.2, 3.28), (0.1, 0.2, 0.01)), "genextreme": ((-0.1,), (0.3,), (1e-9,)),
    "gengamma": ((4.42, 3.12), (0.3, -1.2)), "genhalflogistic": ((0.77,), (0.01,)),
    "genhyperbolic": ((0.5, 1.5, -0.5),), "geninvgauss": ((2.3, 1.5), (0.2, 0.01)), "genlogistic": ((0.41,), (10.0,)),
    "gennorm": ((1.3,), (0.5,), (8.0,)), "genpareto": ((0.1,), (-0.5,), (0.0,), (1e-9,)), "gibrat": ((),),
    "gompertz": ((0.95,), (1e-3,)), "gumbel_l": ((),), "gumbel_r": ((),), "halfcauchy": ((),),
    "halfgennorm": ((0.67,), (4.0,)), "halflogistic": ((),), "halfnorm": ((),), "hypsecant": ((),),
    "invgamma": ((4.07,), (0.3,), (1e6,)), "invgauss": ((0.15,), (2.0,), (50.0,)), "invweibull": ((10.58,), (0.5,)),
    "jf_skew_t": ((8.0, 4.0), (0.5, 2.0)), "johnsonsb": ((4.32, 3.18), (-0.5, 0.3)),
    "johnsonsu": ((2.55, 2.25), (-0.5, 0.3)), "kappa3": ((1.5,), (0.2,)), "kappa4": ((0.1, 0.2), (-0.3, 1e-9)),
    "laplace": ((),), "laplace_asymmetric": ((2.0,), (0.1,)), "levy": ((),), "levy_l": ((),),
    "loggamma": ((0.41,), (50.0,)), "logistic": ((),), "loglaplace": ((3.25,), (0.5,)),
    "lognorm": ((0.95,), (0.01,), (10.0,)), "loguniform": ((0.1, 1.25), (1e-8, 1e8)), "lomax": ((1.88,), (0.1,)),
    "maxwell": ((),), "mielke": ((10.4, 4.6), (0.5, 0.7)), "moyal": ((),), "nakagami": ((4.97,), (0.6,), (1e6,)),
    "ncx2": ((21.0, 1.06), (0.5, 30.0)), "norm": ((),), "norminvgauss": ((1.25, 0.5), (20.0, -15.0)),
    "pareto": ((4.62,), (0.2,)), "pearson3": ((0.6,), (-2.5,), (0.01,)), "powerlaw": ((1.66,), (0.3,)),
    "powerlognorm": ((2.14, 0.45),), "powernorm": ((4.45,), (0.3,)), "rayleigh": ((),), "rdist": ((1.6,), (30.0,)),
    "recipinvgauss": ((0.63,), (5.0,)), "rel_breitwigner": ((3.6,), (36.5,)), "rice": ((0.775,), (30.0,)),
    "semicircular": ((),), "skewcauchy": ((0.5,), (-0.99,)), "skewnorm": ((2.0,), (-10.0,), (0.01,)),
    "t": ((2.74,), (0.3,), (4.0,), (1e5,), (1e10,)), "trapezoid": ((0.2, 0.8),), "triang": ((0.158,),),
    "truncexpon": ((4.69,), (0.01,), (700.0,)), "truncnorm": ((-1.1, 2.74), (5.0, 8.0), (-40.0, -38.0)),
    "truncpareto": ((2.0, 5.3),), "truncweibull_min": ((2.5, 0.25, 1.75),), "tukeylambda": ((0.3,), (-0.4,)),
    "gausshyper": ((13.8, 3.12, 2.51, 5.18),), "kstwobign": ((),), "landau": ((),), "ncf": ((27.0, 27.0, 0.416),),
    "nct": ((14.0, 0.24),), "vonmises_line": ((3.99,),),
    "uniform": ((),), "vonmises": ((3.99,), (100.0,)), "wald": ((),), "weibull_max": ((2.87,), (0.6,)),
    "weibull_min": ((1.79,), (0.4,)), "wrapcauchy": ((0.03,), (0.9,)),
}  # fmt: skip
"""The shapes at which each continuous distribution is compared."""
DISCRETE: dict[str, tuple[tuple[int, ...], tuple[tuple[float, ...], ...], tuple[float, ...]]] = {
    "bernoulli": ((0,), ((0.3,), (1e-9,)), (0.0, 1.0)),
    "betabinom": ((1, 2), ((9.0, 2.3, 0.63), (20.0, 1e10, 2e10)), (0.0, 3.0, 9.0)),
    "binom": ((0, 1), ((9.0, 0.4), (1e5, 1e-4)), (0.0, 3.0, 8.0)),
    "boltzmann": ((0,), ((1.4, 19.0), (1e-3, 19.0)), (0.0, 3.0, 18.0)),
    "dlaplace": ((0,), ((0.8,), (1e-3,)), (0.0, -3.0, 10.0)),
    "geom": ((0,), ((0.4,), (1e-9,)), (1.0, 3.0, 40.0)),
    "logser": ((0,), ((0.6,), (1e-3,), (0.9999,)), (1.0, 3.0, 40.0)),
    "nbinom": ((0, 1), ((5.3, 0.5), (1e10, 0.9999), (1e-3, 0.1)), (0.0, 3.0, 40.0)),
    "planck": ((0,), ((0.51,), (1e-3,)), (0.0, 3.0, 40.0)),
    "poisson": ((0,), ((3.6,), (1e-3,), (1e3,)), (0.0, 3.0, 40.0)),
    "skellam": ((0, 1), ((5.0, 3.2),), (0.0, -3.0, 10.0)),
    "yulesimon": ((0,), ((11.0,), (1e4,), (0.3,)), (1.0, 3.0, 40.0)),
    "zipf": ((0,), ((6.6,), (1.5,)), (1.0, 3.0, 40.0)),
    "betanbinom": ((1, 2), ((5.0, 9.3, 1.0), (3.0, 1e4, 2.0)), (0.0, 3.0, 10.0)),
    "nchypergeom_fisher": ((3,), ((140.0, 80.0, 60.0, 0.5), (20.0, 7.0, 12.0, 3.0)), (3.0, 5.0)),
    "poisson_binom": ((0, 1, 2), ((0.1, 0.6, 0.7),), (0.0, 1.0, 2.0)),
    "randint": ((0, 1), ((7.0, 31.0),), (7.0, 20.0)),
    "zipfian": ((0, 1), ((1.5, 19.0), (1.1, 200.0)), (1.0, 3.0, 15.0)),
}  # fmt: skip
"""Discrete distributions: the places of the shapes by which they are derived, shapes, and outcomes."""
TAILS = (1e-12, 1e-3, 0.1, 0.37, 0.45, 0.8, 0.99, 1 - 1e-6)
WIDE = (1e-3, 1e-10, 1e-100, 30.0, 800.0, 1e6, 1e100)


def _arguments(name: str, shapes: tuple[float, ...]) -> tuple[float, ...]:
    """Quantiles, and numbers of all sizes inside of the support."""
    dist = getattr(scipy.stats, name)
    low, high = dist.support(*shapes)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            quantiles = [float(x) for x in dist.ppf(TAILS, *shapes)]
        except ValueError:  # SciPy's search for the root fails
            quantiles = [0.3, 2.5]
    signed = [sign * x for x in WIDE for sign in (1, -1)]
    beside = [low + x for x in WIDE] if np.isfinite(low) and low != 0 else []
    values = [x for x in [*quantiles, *signed, *beside] if np.isfinite(x) and low < x < high]
    return tuple(dict.fromkeys(values))


def _distribution(name: str, method: str, by: tuple[int, ...], arity: int, points: Callable[[], Any]) -> Row:
    """A row of a method at points (x, *shapes), which are made when they are needed."""
    title = f"{name}.{method}"
    limit = LIMITS.get(title, DEFAULT)
    row = Row(
        title, lambda x, *shapes: getattr(getattr(scipy.stats, name), method)(x, *shapes),
        _distribution_truths.method(name, method), domains=tuple([Domain()] * arity),
        bounds=(Bound(FIRST.ulps, limit.first), Bound(SECOND.ulps, limit.second)), by=by, dtypes=("float64",),
        where=limit.where,
    )  # fmt: skip
    POINTS[row] = points
    return row


def _of_continuous(name: str, method: str) -> Row:
    """A row of a continuous distribution."""

    def points() -> Iterable[tuple[float, ...]]:
        for shapes in CONTINUOUS[name]:
            if method not in ("logpdf", "pdf") and max(shapes, default=0) > 300:
                continue  # the truths take seconds
            for x in TAILS if method in QUANTILES else _arguments(name, shapes):
                yield (x, *shapes)

    arity = 1 + len(CONTINUOUS[name][0])
    row = _distribution(name, method, tuple(range(arity)), arity, points)
    if method in QUANTILES:
        OF_VALUES[row] = functools.partial(_distribution_truths.quantile, name, method)
    else:
        OF_VALUES[row] = lambda *args: [_distribution_truths.partial(name, method, *args[:-1])]
    return row


def _discrete(methods: Sequence[str]) -> list[Row]:
    rows = []
    for name, (places, table, outcomes) in DISCRETE.items():
        points = [(k, *shapes) for shapes in table for k in outcomes]
        by = tuple([place + 1 for place in places])
        for method in methods:
            rows.append(_distribution(name, method, by, len(points[0]), functools.partial(iter, points)))
    return rows


CUMULATIVE, QUANTILES = ("cdf", "sf", "logcdf", "logsf"), ("ppf", "isf")
OF_VALUES: dict[Row, Callable[[tuple[int, ...], tuple[float, ...], bool, float], list[Any]]] = {}
"""Rows whose partials follow from density and distribution function: the right ones at a point, at func's own value."""


def _continuous(*methods: str) -> list[Row]:
    return [_of_continuous(name, method) for name in CONTINUOUS for method in methods]


GROUPS = {
    "unary": _unary(), "bessel": _bessel(), "gammas": _gammas(), "inverses": _inverses(), "others": _others(),
    "densities": _continuous("logpdf", "pdf"), "cumulative": _continuous(*CUMULATIVE),
    "quantiles": _continuous(*QUANTILES), "discrete": _discrete(("logpmf", "pmf", *CUMULATIVE)),
}  # fmt: skip
PARTS = tuple([_part(name, rows) for name, rows in GROUPS.items()])
QUICK = 2


def rows() -> dict[str, Row]:
    """All rows by their names."""
    return {row.name: row for group in GROUPS.values() for row in group}
