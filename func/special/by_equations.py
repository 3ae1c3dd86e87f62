"""Orthogonal polynomials, elliptic integrals, inverse distributions, and functions of differential equations.

Each is SciPy's ufunc, with derivatives by the arguments that have a formula; the others raise, by name. Several
outputs are a tuple.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from func.backends.support.arrays import scipy_of
from func.interpreters.core import Array, Primitive, Tracer, dtype_of, operand
from func.interpreters.primitives.elementwise.table import (
    absolute,
    cos,
    equal,
    isnan,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    real,
    rint,
    sin,
)
from func.interpreters.primitives.special import elliptic, inverse_distributions, orthogonal, waves
from func.interpreters.primitives.special.error_functions import wofz
from func.interpreters.primitives.structural.shapes import convert, full_like, where
from func.numpy.argument_checks import scalar_of
from func.special.protocol import implements_scipy

# fmt: off
__all__ = [
    "airye", "bdtri", "bdtrik", "bdtrin", "bei", "beip", "ber", "berp", "besselpoly", "btdtria", "btdtrib",
    "chdtri", "chdtriv", "chndtr", "chndtridf", "chndtrinc", "chndtrix", "diric", "ellipj", "elliprc", "elliprd",
    "elliprf", "elliprg", "elliprj", "eval_chebyc", "eval_chebys", "eval_chebyt", "eval_chebyu", "eval_gegenbauer",
    "eval_genlaguerre", "eval_hermite", "eval_hermitenorm", "eval_jacobi", "eval_laguerre", "eval_legendre",
    "eval_sh_chebyt", "eval_sh_chebyu", "eval_sh_jacobi", "eval_sh_legendre", "fdtri", "fdtridfd", "gdtria",
    "gdtrib", "gdtrix", "it2i0k0", "it2j0y0", "it2struve0", "itairy", "iti0k0", "itj0y0", "itmodstruve0",
    "kei", "keip", "kelvin", "ker", "kerp", "kolmogi", "kolmogorov", "log_wright_bessel", "lpmv",
    "mathieu_a", "mathieu_b", "mathieu_cem", "mathieu_modcem1", "mathieu_modcem2", "mathieu_modsem1",
    "mathieu_modsem2", "mathieu_sem", "modfresnelm", "modfresnelp", "nbdtr", "nbdtrc", "nbdtri", "nbdtrik",
    "nbdtrin", "ncfdtr", "ncfdtri", "ncfdtridfd", "ncfdtridfn", "ncfdtrinc", "nctdtr", "nctdtridf", "nctdtrinc",
    "nctdtrit", "nrdtrimn", "nrdtrisd", "obl_ang1", "obl_ang1_cv", "obl_cv", "obl_rad1", "obl_rad1_cv", "obl_rad2",
    "obl_rad2_cv", "pbdv", "pbvv", "pbwa", "pdtri", "pdtrik", "pro_ang1", "pro_ang1_cv", "pro_cv", "pro_rad1",
    "pro_rad1_cv", "pro_rad2", "pro_rad2_cv", "radian", "smirnov", "smirnovi", "stdtridf", "stdtrit", "tklmbda",
    "voigt_profile", "wright_bessel",
]
# fmt: on


def _public(name: str) -> Callable[..., Any]:
    """The function of a primitive, registered for SciPy's ufunc of the same name."""
    modules: tuple[Any, ...] = (elliptic, orthogonal, inverse_distributions, waves)
    primitive: Primitive = next(getattr(module, name) for module in modules if hasattr(module, name))

    def function(*args: Array) -> Any:
        out = primitive(*[operand(x) for x in args])
        return tuple(out) if primitive.multiple else out

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"scipy.special.{name} of traced and plain arrays."
    return implements_scipy(name)(function)


# fmt: off
airye = _public("airye")
bdtri = _public("bdtri")
bdtrik = _public("bdtrik")
bdtrin = _public("bdtrin")
bei = _public("bei")
beip = _public("beip")
ber = _public("ber")
berp = _public("berp")
besselpoly = _public("besselpoly")
btdtria = _public("btdtria")
btdtrib = _public("btdtrib")
chdtri = _public("chdtri")
chdtriv = _public("chdtriv")
chndtr = _public("chndtr")
chndtridf = _public("chndtridf")
chndtrinc = _public("chndtrinc")
chndtrix = _public("chndtrix")
ellipj = _public("ellipj")
elliprc = _public("elliprc")
elliprd = _public("elliprd")
elliprf = _public("elliprf")
elliprg = _public("elliprg")
elliprj = _public("elliprj")
eval_chebyc = _public("eval_chebyc")
eval_chebys = _public("eval_chebys")
eval_chebyt = _public("eval_chebyt")
eval_chebyu = _public("eval_chebyu")
eval_gegenbauer = _public("eval_gegenbauer")
eval_genlaguerre = _public("eval_genlaguerre")
eval_hermite = _public("eval_hermite")
eval_hermitenorm = _public("eval_hermitenorm")
eval_jacobi = _public("eval_jacobi")
eval_laguerre = _public("eval_laguerre")
eval_legendre = _public("eval_legendre")
eval_sh_chebyt = _public("eval_sh_chebyt")
eval_sh_chebyu = _public("eval_sh_chebyu")
eval_sh_jacobi = _public("eval_sh_jacobi")
eval_sh_legendre = _public("eval_sh_legendre")
fdtri = _public("fdtri")
fdtridfd = _public("fdtridfd")
gdtria = _public("gdtria")
gdtrib = _public("gdtrib")
gdtrix = _public("gdtrix")
it2i0k0 = _public("it2i0k0")
it2j0y0 = _public("it2j0y0")
it2struve0 = _public("it2struve0")
itairy = _public("itairy")
iti0k0 = _public("iti0k0")
itj0y0 = _public("itj0y0")
itmodstruve0 = _public("itmodstruve0")
kei = _public("kei")
keip = _public("keip")
kelvin = _public("kelvin")
ker = _public("ker")
kerp = _public("kerp")
kolmogi = _public("kolmogi")
kolmogorov = _public("kolmogorov")
log_wright_bessel = _public("log_wright_bessel")
lpmv = _public("lpmv")
mathieu_a = _public("mathieu_a")
mathieu_b = _public("mathieu_b")
mathieu_cem = _public("mathieu_cem")
mathieu_modcem1 = _public("mathieu_modcem1")
mathieu_modcem2 = _public("mathieu_modcem2")
mathieu_modsem1 = _public("mathieu_modsem1")
mathieu_modsem2 = _public("mathieu_modsem2")
mathieu_sem = _public("mathieu_sem")
modfresnelm = _public("modfresnelm")
modfresnelp = _public("modfresnelp")
nbdtr = _public("nbdtr")
nbdtrc = _public("nbdtrc")
nbdtri = _public("nbdtri")
nbdtrik = _public("nbdtrik")
nbdtrin = _public("nbdtrin")
ncfdtr = _public("ncfdtr")
ncfdtri = _public("ncfdtri")
ncfdtridfd = _public("ncfdtridfd")
ncfdtridfn = _public("ncfdtridfn")
ncfdtrinc = _public("ncfdtrinc")
nctdtr = _public("nctdtr")
nctdtridf = _public("nctdtridf")
nctdtrinc = _public("nctdtrinc")
nctdtrit = _public("nctdtrit")
nrdtrimn = _public("nrdtrimn")
nrdtrisd = _public("nrdtrisd")
obl_ang1 = _public("obl_ang1")
obl_ang1_cv = _public("obl_ang1_cv")
obl_cv = _public("obl_cv")
obl_rad1 = _public("obl_rad1")
obl_rad1_cv = _public("obl_rad1_cv")
obl_rad2 = _public("obl_rad2")
obl_rad2_cv = _public("obl_rad2_cv")
pbdv = _public("pbdv")
pbvv = _public("pbvv")
pbwa = _public("pbwa")
pdtri = _public("pdtri")
pdtrik = _public("pdtrik")
pro_ang1 = _public("pro_ang1")
pro_ang1_cv = _public("pro_ang1_cv")
pro_cv = _public("pro_cv")
pro_rad1 = _public("pro_rad1")
pro_rad1_cv = _public("pro_rad1_cv")
pro_rad2 = _public("pro_rad2")
pro_rad2_cv = _public("pro_rad2_cv")
smirnov = _public("smirnov")
smirnovi = _public("smirnovi")
stdtridf = _public("stdtridf")
stdtrit = _public("stdtrit")
tklmbda = _public("tklmbda")
wright_bessel = _public("wright_bessel")
# fmt: on


def _in_loop(name: str, *values: Any) -> list[Array]:
    """Operands in the dtypes of the loop that SciPy's ufunc of this name has for them."""
    operands = [operand(value) for value in values]
    kinds = [float if type(x) in (int, float) else dtype_of(x) for x in operands]
    loop = getattr(scipy_of(np, "special"), name).resolve_dtypes((*kinds, None))
    return [convert(x, dtype=dtype) for x, dtype in zip(operands, loop, strict=False)]


@implements_scipy("radian")
def radian(d: Array, m: Array, s: Array) -> Array:
    """An angle of degrees, minutes and seconds in radians."""
    d, m, s = _in_loop("radian", d, m, s)
    return ((d * 60.0 + m) * 60.0 + s) * 4.84813681109535993589914e-6


@implements_scipy("voigt_profile")
def voigt_profile(x: Array, sigma: Array, gamma: Array) -> Array:
    """The density of the sum of a normal and a Cauchy variable, by the Faddeeva function. DLMF 7.19.1.

    Where σ is zero it is the Cauchy density, and where γ is zero too, zero beside x = 0, as in SciPy. For infinite
    γ it is NaN where there is no density: σ or γ is negative, or σ is infinite too.
    """
    x, sigma, gamma = operand(x), operand(sigma), operand(gamma)
    if not any([type(value) is Tracer for value in (x, sigma, gamma)]):
        return scipy_of(np, "special").voigt_profile(x, sigma, gamma)
    x, sigma, gamma = _in_loop("voigt_profile", x, sigma, gamma)
    narrow = equal(sigma, 0)
    width = where(narrow, full_like(sigma, 1, ()), sigma)
    z = (x + 1j * gamma) / (width * math.sqrt(2))
    normal = real(wofz(z)) / (width * math.sqrt(2 * math.pi))
    is_far = logical_or(equal(absolute(x), math.inf), equal(absolute(gamma), math.inf))
    normal = where(is_far, full_like(normal, 0, ()), normal)
    is_density = logical_and(less(sigma, math.inf), logical_and(less_equal(0, sigma), less_equal(0, gamma)))
    is_open = logical_and(equal(absolute(gamma), math.inf), logical_not(is_density))
    for value in (absolute(x) / absolute(width), gamma):
        is_open = logical_or(is_open, isnan(value))
    normal = where(is_open, full_like(normal, math.nan, ()), normal)
    peak = where(narrow, x * x + gamma * gamma, full_like(normal, 1, ()))
    is_point = equal(peak, 0)
    cauchy = gamma / (math.pi * where(is_point, full_like(peak, 1, ()), peak))
    cauchy = where(is_point, full_like(cauchy, math.inf, ()), cauchy)
    return scalar_of(where(narrow, cauchy, normal))


def diric(x: Array, n: Any) -> Array:
    """The periodic sinc function sin(n x / 2) / (n sin(x / 2)) of an integer n ≥ 1, regular at multiples of 2π.

    >>> import numpy as np, func
    >>> round(float(func.hessian(lambda x: func.special.diric(x, 3))(0.0)), 12)
    -0.666666666667
    """
    x, n = operand(x), np.asarray(n)
    x = x if dtype_of(x).kind == "f" else convert(x, dtype=np.dtype(np.float64))
    valid = (n > 0) & (n == np.floor(n))
    n = np.where(valid, n, 1).astype(dtype_of(x))
    near = 2.0**-18 if dtype_of(x) == np.float32 else 2.0**-37
    sine = sin(x / 2)
    is_pole = less(absolute(sine), near)
    turns = rint(x / (2 * math.pi))
    gap = x - turns * (2 * math.pi)
    series = cos(math.pi * turns * (n - 1)) * (1 - (n * n - 1) / 24 * gap * gap)
    value = where(is_pole, series, sin(n * x / 2) / (n * where(is_pole, full_like(x, 1, ()), sine)))
    return convert(where(valid, value, full_like(value, math.nan, ())), dtype=dtype_of(x))
