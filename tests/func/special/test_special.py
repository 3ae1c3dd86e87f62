"""The functions of func.special: SciPy's values to the bit, derivatives as precise as mpmath says they are."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special
from mpmath import mp

import func
import func.special
from func.backends.quiet import quietly
from func.errors import NotDifferentiableError, UnsupportedFunctionError
from func.interpreters.core import PRIMITIVES, Aval
from func.interpreters.primitives.elementwise.pointwise import Pointwise
from func.numpy.protocol import DIRECT, UFUNCS
from func.special.protocol import register_late
from tests.support import device_double, samples_special
from tests.support import numpy_properties as check
from tests.support.special_arguments import BY_EQUATIONS

Function = Callable[..., Any]
RNG = np.random.default_rng(3)
U = RNG.uniform(0.2, 0.8, (2, 3))
P = U + 1.3
N = np.array([1, 2, 0])


def public(names: Sequence[str]) -> list[str]:
    """The public names of the primitives that are a function of SciPy with one result."""
    own = [PRIMITIVES[name] for name in names]
    return [primitive.scipy for primitive in own if primitive.scipy is not None and not primitive.multiple]


# fmt: off
UNARY = [
    *public(samples_special.UNARY),
    "psi", "exprel", "ellipk", "ellipkm1", "ellipe", "sinc", "softplus", "lambertw",
]
COMPLEX = [*public(samples_special.HOLOMORPHIC), "lambertw"]
SEVERAL = ["fresnel", "airy", "sici", "shichi"]
# The arguments, and the places at which derivatives of every order are defined.
MANY: dict[str, tuple[tuple[Any, ...], tuple[int, ...]]] = {
    **{name: ((P, U), (0, 1)) for name in [*public(samples_special.BINARY), "huber"]},
    **{name: ((P, U), (1,)) for name in (
        "jv", "jn", "jve", "yv", "yve", "hankel1", "hankel1e", "hankel2", "hankel2e", "iv", "ive", "kv", "kve",
        "struve", "modstruve", "stdtr", "hyp0f1", "zeta",
    )},
    **{name: ((N, U), (1,)) for name in ("yn", "kn", "expn", "pdtr", "pdtrc")},
    **{name: ((N, P), (1,)) for name in ("spherical_jn", "spherical_yn", "spherical_in", "spherical_kn")},
    **{name: ((U, U), (0,)) for name in ("ellipkinc", "ellipeinc")},
    **{name: ((P, 1.5 * P, U), (2,)) for name in (
        "betainc", "betaincc", "betaincinv", "betainccinv", "fdtr", "fdtrc", "hyp1f1", "hyperu",
    )},
    **{name: ((P, 1.5 * P, U), (0, 1, 2)) for name in ("gdtr", "gdtrc")},
    **{name: ((np.array([1.0, 2.0, 0.0]), np.array(3), U), (2,)) for name in ("bdtr", "bdtrc")},
    "hyp2f1": ((P, U, 1.5 * P, U / 2), (3,)),
    "sph_harm_y": ((np.array([2, 3, 1]), np.array([1, -3, 0]), U, P), (2, 3)),
    "polygamma": ((N, P), (1,)),
    "ndtri_exp": ((-U,), (0,)),
}
PYTHON_ONLY = [
    "polygamma", "sph_harm_y", "softplus", "sinc", "spherical_jn", "spherical_yn", "spherical_in", "spherical_kn",
]
"""Functions that SciPy writes in Python and that refuse traced arrays, or are NumPy's."""
# fmt: on


def scipys(name: str) -> Function:
    """SciPy's function where it takes traced arrays, else that of func.special."""
    if name in PYTHON_ONLY:
        return getattr(func.special, name)  # type: ignore[no-any-return]
    return getattr(scipy.special, name)  # type: ignore[no-any-return]


def of_place(function: Function, args: tuple[Any, ...], place: int) -> check.Case:
    """A function of one of its arguments, the others fixed."""
    return (lambda x: function(*args[:place], x, *args[place + 1 :])), args[place]


def item_of(function: Function, i: int) -> Function:
    """One of the outputs of a function."""
    return lambda x: function(x)[i]


SMOOTH: dict[str, check.Case] = {
    **{name: (scipys(name), U if name != "cotdg" else 40 * U) for name in UNARY},
    **{f"{name} complex": (scipys(name), U + 0.3j) for name in COMPLEX},
    **{f"{name} {place}": of_place(scipys(name), args, place) for name, (args, own) in MANY.items() for place in own},
    **{f"{name} {i}": (item_of(scipys(name), i), U) for name in SEVERAL for i in range(2)},
    **{f"{name} complex": (item_of(scipys(name), 1), U + 0.2j) for name in SEVERAL},
    **{
        f"{name} complex": of_place(scipys(name), (P, U + 0.3j), 1)
        for name in ("jv", "yv", "hankel1", "hankel1e", "hankel2", "hankel2e", "iv", "kv", "kve", "hyp0f1", "xlogy")
    },
    "spherical_jn complex": of_place(scipys("spherical_jn"), (N, U + 0.3j), 1),
    "polygamma complex": (lambda x: func.special.polygamma(2, x), U + 0.3j),
    "airy second": (lambda x: scipy.special.airy(x)[2], U),
    "gamma left": (scipys("gamma"), -U),
    "rgamma left": (scipys("rgamma"), -P),
    "struve integer": (lambda x: scipy.special.struve(1, x), U),
    "softmax": (func.special.softmax, U),
    "softmax axis": (lambda x: func.special.softmax(x, axis=1), U),
    "log_softmax": (func.special.log_softmax, U),
    "log_softmax axis": (lambda x: func.special.log_softmax(x, axis=0), U),
    "logsumexp": (lambda x: func.special.logsumexp(x), U),
    "logsumexp axis": (lambda x: func.special.logsumexp(x, axis=(1,), keepdims=True), U),
    "logsumexp b": (lambda x: func.special.logsumexp(x, axis=1, b=P), U),
    "logsumexp larger b": (lambda x: func.special.logsumexp(x, axis=1, b=U**2 + 0.5), P[:1]),
    "logsumexp of b": (lambda b: func.special.logsumexp(U, b=b), P),
    "logsumexp sign": (lambda x: func.special.logsumexp(x, axis=1, b=np.array([1, -2, 3.0]), return_sign=True)[0], U),
    "logsumexp complex": (lambda x: func.special.logsumexp(x, axis=1), U + 0.4j),
    "logsumexp complex sign": (lambda x: func.special.logsumexp(x, axis=1, return_sign=True)[1], U + 0.4j),
    "multigammaln": (lambda x: func.special.multigammaln(x, 3), P),
    "factorial": (func.special.factorial, P),
    "comb": (lambda n: func.special.comb(n, 1.2), P),
    "comb k": (lambda k: func.special.comb(3.0, k), P),
    "comb repetition": (lambda n: func.special.comb(n, 2, repetition=True), P),
    "perm": (lambda n: func.special.perm(n, 1.2), P),
    "spherical_jn derivative": (lambda z: func.special.spherical_jn(2, z, derivative=True), U),
    "spherical_kn derivative": (lambda z: func.special.spherical_kn(2, z, derivative=True), P),
}
ONCE = {
    f"{name} {place}": of_place(scipys(name), args, place)
    for name, args in {
        **{name: (P, 1.5 * P, U) for name in ("betainc", "betaincc", "betaincinv", "betainccinv")},
        **{name: (U, U) for name in ("ellipkinc", "ellipeinc")},
    }.items()
    for place in ((0, 1) if len(args) == 3 else (1,))
}
"""Where the first derivative is defined and the second is not."""


@pytest.mark.parametrize("name", SMOOTH)
def test_values_are_scipys_to_the_bit(name: str) -> None:
    check.check_value(SMOOTH[name])


@pytest.mark.parametrize("name", [*SMOOTH, *ONCE])
def test_both_modes_agree_with_differences(name: str) -> None:
    check.check_modes({**SMOOTH, **ONCE}[name])


@pytest.mark.parametrize("name", SMOOTH)
def test_second_order(name: str) -> None:
    check.check_second_order(SMOOTH[name])


@pytest.mark.parametrize("name", SMOOTH)
def test_mapped_is_the_stack_of_singles(name: str) -> None:
    if name not in ("multigammaln",):  # half of its argument is outside the domain
        check.check_mapped(SMOOTH[name])


ARGUMENTS: dict[str, tuple[Any, ...]] = {
    **{name: (U,) for name in [*UNARY, *SEVERAL]},
    **{name: args for name, (args, _) in MANY.items()},
    "gammasgn": (U - 0.5,),
    "zetac": (P,),
    "softmax": (U,),
    "log_softmax": (U,),
    "logsumexp": (U,),
    "multigammaln": (P, 2),
    "factorial": (P,),
    "comb": (P, U),
    "perm": (P, U),
    "bernoulli": (4,),
}


def test_every_public_function_is_in_a_table() -> None:
    assert set(ARGUMENTS) | BY_EQUATIONS == set(func.special.__all__)
    assert all(getattr(func.special, name).__doc__ for name in func.special.__all__)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_plain_arrays_give_scipys_values(name: str) -> None:
    ours, theirs = getattr(func.special, name), getattr(scipy.special, name)
    check.assert_same(ours(*ARGUMENTS[name]), theirs(*ARGUMENTS[name]))


def in_single_precision(name: str) -> list[Any]:
    """The arguments of a function with float32 in the place of float64."""
    return [a.astype("f4") if isinstance(a, np.ndarray) and a.dtype == "f8" else a for a in ARGUMENTS[name]]


DOUBLE_BY_INTEGERS = {"yn", "kn", "expn", "pdtr", "pdtrc", "bdtr", "bdtrc", "bernoulli"}
"""Functions for which SciPy chooses float64 because of an integer argument."""
DOUBLE_IN_PYTHON = {"polygamma", "multigammaln", "factorial"}
"""Functions that SciPy computes in Python code, which gives float64."""


@pytest.mark.parametrize("name", sorted(ARGUMENTS.keys() - DOUBLE_BY_INTEGERS - DOUBLE_IN_PYTHON))
def test_single_precision(name: str) -> None:
    args = in_single_precision(name)
    check.assert_same(getattr(func.special, name)(*args), getattr(scipy.special, name)(*args))


@pytest.mark.parametrize("name", sorted(DOUBLE_IN_PYTHON))
def test_single_precision_stays_single(name: str) -> None:
    assert np.asarray(getattr(func.special, name)(*in_single_precision(name))).dtype == np.float32


@pytest.mark.filterwarnings("ignore:non-integer arg:DeprecationWarning")
def test_dtypes_are_those_that_scipy_computes() -> None:
    """Most are stated, so that a trace needs no SciPy; a comparison with SciPy checks the statements."""
    stated = 0
    for primitive in PRIMITIVES.values():
        if primitive.scipy is not None and isinstance(primitive, Pointwise):
            for dtype in map(np.dtype, ("float32", "float64")):
                stated += ((dtype, False),) * primitive.arity in primitive._dtypes
                ones = [dtype.type(1)] * primitive.arity
                computed = np.asarray(quietly(primitive.impl, np, *ones)).dtype
                assert primitive._result_dtype([Aval((), dtype)] * primitive.arity) == computed, primitive.name
    assert stated >= 200


SCIPY_AFTERWARDS = """
import sys
import numpy as np, func
x = np.linspace(0.1, 0.9, 7)
func.make_program(func.grad(lambda x: np.sum(func.special.erf(x) * x)))(x)
print("scipy.special" in sys.modules)
import scipy.special
print(func.grad(lambda x: scipy.special.erf(x) + scipy.special.radian(x, 1.0, 2.0))(0.5) > 0.8)
print(func.grad(lambda x: np.sum(scipy.special.jv.outer(0.0, np.stack([x, x]))))(0.5) < 0)
"""


def test_scipy_may_be_imported_after_its_functions_are_traced() -> None:
    done = subprocess.run([sys.executable, "-c", SCIPY_AFTERWARDS], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["False", "True", "True"], done.stderr


def test_every_ufunc_is_registered() -> None:
    register_late()
    ufuncs = [getattr(scipy.special, name) for name in func.special.__all__]
    missing = [u for u in ufuncs if isinstance(u, np.ufunc) and u not in DIRECT and u not in UFUNCS]
    assert missing == []


REFERENCES: dict[str, Function] = {
    "gamma": mp.gamma,
    "gammaln": mp.loggamma,
    "loggamma": mp.loggamma,
    "rgamma": mp.rgamma,
    "digamma": mp.digamma,
    "erf": mp.erf,
    "erfc": mp.erfc,
    "erfi": mp.erfi,
    "erfinv": mp.erfinv,
    "erfcinv": lambda y: mp.erfinv(1 - y),
    "erfcx": lambda x: mp.exp(x * x) * mp.erfc(x),
    "dawsn": lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x),
    "ndtr": mp.ncdf,
    "log_ndtr": lambda x: mp.log(mp.ncdf(x)),
    "ndtri": lambda p: mp.sqrt(2) * mp.erfinv(2 * p - 1),
    "j0": lambda x: mp.besselj(0, x),
    "j1": lambda x: mp.besselj(1, x),
    "y0": lambda x: mp.bessely(0, x),
    "y1": lambda x: mp.bessely(1, x),
    "i0": lambda x: mp.besseli(0, x),
    "i1": lambda x: mp.besseli(1, x),
    "k0": lambda x: mp.besselk(0, x),
    "k1": lambda x: mp.besselk(1, x),
    "i0e": lambda x: mp.besseli(0, x) * mp.exp(-x),
    "i1e": lambda x: mp.besseli(1, x) * mp.exp(-x),
    "k0e": lambda x: mp.besselk(0, x) * mp.exp(x),
    "k1e": lambda x: mp.besselk(1, x) * mp.exp(x),
    "entr": lambda x: -x * mp.log(x),
    "expit": lambda x: 1 / (1 + mp.exp(-x)),
    "logit": lambda x: mp.log(x / (1 - x)),
    "log_expit": lambda x: -mp.log1p(mp.exp(-x)),
    "exprel": lambda x: mp.expm1(x) / x,
    "exp1": mp.e1,
    "expi": mp.ei,
    "spence": lambda x: mp.polylog(2, 1 - x),
    "ellipk": mp.ellipk,
    "ellipe": mp.ellipe,
    "ellipkm1": lambda p: mp.ellipk(1 - p),
    "sindg": lambda x: mp.sin(x * mp.pi / 180),
    "cosm1": mp.cos,
    "wrightomega": lambda x: mp.lambertw(mp.exp(x)),
    "beta": mp.beta,
    "betaln": lambda a, b: mp.log(mp.beta(a, b)),
    "poch": mp.rf,
    "binom": mp.binomial,
    "gammainc": lambda a, x: mp.gammainc(a, 0, x, regularized=True),
    "gammaincc": lambda a, x: mp.gammainc(a, x, mp.inf, regularized=True),
    "xlogy": lambda x, y: x * mp.log(y),
    "xlog1py": lambda x, y: x * mp.log1p(y),
    "kl_div": lambda x, y: x * mp.log(x / y) - x + y,
    "rel_entr": lambda x, y: x * mp.log(x / y),
    "boxcox": lambda x, y: (x**y - 1) / y,
    "boxcox1p": lambda x, y: ((1 + x) ** y - 1) / y,
    "inv_boxcox": lambda x, y: (1 + x * y) ** (1 / y),
    "powm1": lambda x, y: x**y - 1,
    "pseudo_huber": lambda d, r: d * d * (mp.sqrt(1 + (r / d) ** 2) - 1),
    "agm": mp.agm,
    "jv": mp.besselj,
    "yv": mp.bessely,
    "iv": mp.besseli,
    "kv": mp.besselk,
    "struve": mp.struveh,
    "modstruve": mp.struvel,
    "zeta": mp.zeta,
    "hyp0f1": mp.hyp0f1,
    "ellipkinc": mp.ellipf,
    "ellipeinc": mp.ellipe,
    "hyp1f1": mp.hyp1f1,
    "hyperu": mp.hyperu,
    "hyp2f1": mp.hyp2f1,
    "ive": lambda v, x: mp.besseli(v, x) * mp.exp(-x),
    "kve": lambda v, x: mp.besselk(v, x) * mp.exp(x),
    "betainc": lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True),
    "betaincc": lambda a, b, x: mp.betainc(a, b, x, 1, regularized=True),
    "gdtr": lambda a, b, x: mp.gammainc(b, 0, a * x, regularized=True),
    "chdtr": lambda v, x: mp.gammainc(v / 2, 0, x / 2, regularized=True),
    "fdtr": lambda m, n, x: mp.betainc(m / 2, n / 2, 0, m * x / (n + m * x), regularized=True),
}
SPREAD = (0.013, 0.21, 0.5, 0.87, 0.98)
FAR = (1.7, 6.3, 23.0)
WITHIN_ONE = (
    "erfinv",
    "erfcinv",
    "ndtri",
    "logit",
    "ellipk",
    "ellipe",
    "fdtr",
    "hyp2f1",
    "betainc",
    "betaincc",
    "hyperu",
)


def points(name: str) -> list[tuple[float, ...]]:
    """Where the derivatives of a function are compared."""
    last = [*SPREAD, *(() if name in WITHIN_ONE else FAR[:2] if name == "hyperu" else FAR)]
    count = len(MANY[name][0]) if name in MANY else 1
    first = {1: [()], 2: [(0.6,), (1.9,), (7.3,)], 3: [(0.4, 0.7), (2.3, 1.1), (9.0, 31.0)], 4: [(0.4, 1.7, 2.6)]}
    return [(*front, x) for front in first[count] for x in last if name not in ("ellipkinc", "ellipeinc") or x < 0.9]


@pytest.mark.parametrize("name", REFERENCES)
def test_derivatives_agree_with_mpmath(name: str) -> None:
    function = getattr(func.special, name)
    places = {"betainc": (0, 1, 2), "betaincc": (0, 1, 2), "ellipkinc": (0, 1), "ellipeinc": (0, 1)}.get(
        name, MANY[name][1] if name in MANY else (0,)
    )
    for point in points(name):
        for place in places:
            got = func.jvp(*of_jvp(function, point, place))[1]
            with mpmath.workdps(70 if name.startswith("beta") else 40):
                exact = mpmath.diff(of_place(REFERENCES[name], tuple(map(mp.mpf, point)), place)[0], point[place])
                expected = float(mpmath.re(exact))
            if name in ("powm1", "cosm1") or abs(expected) > 1e-280:
                np.testing.assert_allclose(got, expected, rtol=1e-9, err_msg=f"{point} {place}")


def of_jvp(function: Function, point: tuple[float, ...], place: int) -> Any:
    """Arguments of func.jvp for a unit tangent at one place."""
    f, x = of_place(function, point, place)
    return f, (x,), (1.0,)


def parameters(count: int) -> list[tuple[float, float, float]]:
    """Parameters from small to large, with x all over the bulk and the tails."""
    rng = np.random.default_rng(5)
    out = []
    for i in range(count):
        a, b = np.exp(rng.uniform(-5, 7, 2))
        mean = a / (a + b)
        x = mean + np.sqrt(mean * (1 - mean) / (a + b + 1)) * rng.normal() * 2.5 if i % 2 else rng.uniform()
        out.append((float(a), float(b), float(np.clip(x, 1e-9, 1 - 1e-9))))
    return out


def test_incomplete_beta_by_its_parameters() -> None:
    for a, b, x in parameters(60):
        args = (a, b, x)
        with mpmath.workdps(130):
            exact = [
                mpmath.diff(of_place(REFERENCES["betainc"], tuple(map(mp.mpf, args)), i)[0], args[i]) for i in (0, 1)
            ]
        by_a, by_b = map(float, exact)
        got = func.grad(func.special.betainc, argnums=(0, 1))(a, b, x)
        if min(abs(by_a), abs(by_b)) > 1e-90:
            np.testing.assert_allclose(got, (by_a, by_b), rtol=1e-9, err_msg=f"{(a, b, x)}")


def test_incomplete_gamma_by_its_parameter() -> None:
    for a, b, x in parameters(60):
        z = b if x < 0.5 else abs(a + np.sqrt(a) * 3 * (x - 0.7))
        with mpmath.workdps(40):
            expected = float(mpmath.diff(lambda t: mpmath.gammainc(t, 0, z, regularized=True), a))  # noqa: B023
        if abs(expected) > 1e-250:
            np.testing.assert_allclose(func.grad(func.special.gammainc)(a, z), expected, rtol=1e-9)


@pytest.mark.parametrize("order", [2, 3])
def test_incomplete_gamma_by_its_parameter_to_higher_order(order: int) -> None:
    f: Function = lambda a: func.special.gammainc(a, 2.5)  # noqa: E731
    for _ in range(order):
        f = func.grad(f)
    with mpmath.workdps(40):
        expected = float(mpmath.diff(lambda t: mpmath.gammainc(t, 0, 2.5, regularized=True), 1.7, order))
    np.testing.assert_allclose(f(1.7), expected, rtol=1e-9)


FAR_OUT = [(name, x) for name in ("erfcx", "dawsn", "log_ndtr") for x in (50.0, 1e3, 1e6, -60.0)]
FAR_OUT.remove(("erfcx", -60.0))  # overflows


@pytest.mark.parametrize(("name", "x"), FAR_OUT)
def test_derivatives_keep_their_precision_far_out(name: str, x: float) -> None:
    with mpmath.workdps(60):
        y = mp.mpf(x)
        expected = {
            "erfcx": lambda: (
                2 * y * mp.exp(y * y) * mp.erfc(y) - 2 / mp.sqrt(mp.pi)
                if y < 2e3
                else -1 / (mp.sqrt(mp.pi) * y * y) * (1 - 3 / (2 * y * y))
            ),
            "dawsn": lambda: (
                1 - y * mp.sqrt(mp.pi) * mp.exp(-y * y) * mp.erfi(y)
                if y < 2e3
                else -1 / (2 * y * y) * (1 + 3 / (2 * y * y))
            ),
            "log_ndtr": lambda: mp.npdf(y) / mp.ncdf(y),
        }[name]()
    np.testing.assert_allclose(func.grad(getattr(func.special, name))(x), float(expected), rtol=1e-9, atol=1e-300)


ZERO_ORDERS = {
    "exprel": lambda x: mp.expm1(x) / x if x else mp.mpf(1),
    "spence": lambda x: mp.polylog(2, 1 - x),
    "ellipk": mp.ellipk,
    "ellipe": mp.ellipe,
    "rgamma": mp.rgamma,
    "expit": lambda x: 1 / (1 + mp.exp(-x)),
}


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("name", ZERO_ORDERS)
def test_removable_singularities_have_exact_derivatives_of_every_order(name: str, order: int) -> None:
    f: Function = getattr(func.special, name)
    for _ in range(order):
        f = func.grad(f)
    x = 1.0 if name == "spence" else 0.0
    with mpmath.workdps(40):
        expected = float(mpmath.re(mpmath.diff(ZERO_ORDERS[name], mp.mpf(x) + mp.mpf("1e-25"), order)))
    np.testing.assert_allclose(f(x), expected, rtol=1e-10, atol=1e-12)


MASKED: dict[str, float] = {
    "gammaln": -1.0,
    "digamma": 0.0,
    "logit": 1.0,
    "erfinv": 1.0,
    "ndtri": 0.0,
    "entr": 0.0,
    "log1p": -1.0,
    "y0": 0.0,
    "k0": 0.0,
    "exp1": 0.0,
    "ellipk": 1.0,
    "cbrt": 0.0,
    "gamma": 0.0,
    "k1e": 0.0,
    "expi": 0.0,
}


@pytest.mark.parametrize("name", MASKED)
def test_nan_safe_pullback_where_the_function_is_not_chosen(name: str) -> None:
    bad = MASKED[name]

    def f(x: Any) -> Any:
        with np.errstate(all="ignore"):
            return np.sum(np.where(x == bad, 0.0, getattr(func.special, name)(x)))

    x = np.array([bad, 0.4])
    got = func.grad(f)(x)
    assert got[0] == 0 and np.isfinite(got[1])
    np.testing.assert_array_equal(func.jvp(f, (x,), (np.array([1.0, 0.0]),))[1], 0.0)


def test_entropies_at_zero() -> None:
    both = (0, 1)
    assert func.grad(func.special.rel_entr, argnums=both)(0.0, 0.0) == (0.0, 0.0)
    assert func.grad(func.special.kl_div, argnums=both)(0.0, 0.0) == (-1.0, 1.0)
    assert func.grad(func.special.rel_entr, argnums=1)(0.0, 2.0) == 0
    assert func.grad(func.special.xlogy, argnums=1)(0.0, 0.0) == 0
    assert func.grad(lambda x: func.special.kl_div(x, x) + func.special.rel_entr(x, x))(0.0) == 0


def test_infinite_terms_of_a_sum_of_exponentials() -> None:
    grad = func.grad(lambda x: func.special.logsumexp(x))
    np.testing.assert_array_equal(grad(np.array([-np.inf, 0.0])), [0.0, 1.0])
    np.testing.assert_array_equal(grad(np.array([-np.inf, -np.inf])), [0.5, 0.5])
    np.testing.assert_allclose(grad(np.array([1e4, 1e4])), [0.5, 0.5])
    np.testing.assert_allclose(func.grad(lambda x: func.special.softmax(x)[0])(np.array([-np.inf, 0.0])), [0, 0])


def test_edges_of_the_incomplete_functions() -> None:
    for x in (0.0, 1.0):
        assert func.grad(func.special.betainc, argnums=(0, 1))(2.0, 3.0, x) == (0.0, 0.0)
    assert func.grad(func.special.gammainc)(2.0, 0.0) == 0
    assert np.isnan(func.grad(func.special.betainc)(-2.0, 3.0, 0.5))


UNDEFINED: dict[str, tuple[Function, str]] = {
    "jv": (lambda v: func.special.jv(v, 2.0), "jv with respect to its order v"),
    "kv": (lambda v: scipy.special.kv(v, 2.0), "kv with respect to its order v"),
    "zeta": (lambda s: func.special.zeta(s, 2.0), "zeta with respect to its first argument"),
    "riemann": (lambda s: func.special.zeta(s), "zeta with respect to its first argument"),
    "zetac": (lambda s: func.special.zetac(s), "zetac with respect to its argument"),
    "hyp1f1": (lambda a: func.special.hyp1f1(a, 2.0, 0.5), "hyp1f1 with respect to its parameter a"),
    "hyp2f1": (lambda c: func.special.hyp2f1(1.0, 2.0, c, 0.5), "hyp2f1 with respect to its parameter c"),
    "betainc of order 3": (
        func.grad(func.grad(lambda a: func.special.betainc(a, 2.0, 0.3))),
        "second derivative betainc_daa of betainc with",
    ),
    "polygamma": (lambda n: func.special.polygamma(n + 0.5, 0.4), "polygamma with respect to its order n"),
}


@pytest.mark.parametrize("name", UNDEFINED)
def test_undefined_derivatives_are_refused_when_wanted(name: str) -> None:
    f, words = UNDEFINED[name]
    with pytest.raises(NotDifferentiableError, match=words):
        func.grad(f)(1.5)
    with pytest.raises(NotDifferentiableError, match=words):
        func.jvp(f, (1.5,), (1.0,))


def test_undefined_derivatives_that_nobody_wants_are_no_error() -> None:
    assert np.isfinite(func.grad(lambda x: func.special.jv(1.5, x))(2.0))
    assert np.isfinite(func.vmap(lambda v: func.special.jv(v, 2.0))(P)).all()
    assert func.grad(lambda v: v * 2.0 + func.stop_gradient(func.special.jv(v, 2.0)))(1.5) == 2.0


def test_scaled_functions_check_real_derivatives() -> None:
    with pytest.raises(NotDifferentiableError, match="not holomorphic"):
        func.jvp(lambda z: func.special.jve(1.0, z), (1j,), (1.0 + 0j,))


def test_arguments_are_checked() -> None:
    with pytest.raises(ValueError, match="not met"):
        func.grad(lambda a: func.special.multigammaln(a, 4))(1.2)
    with pytest.raises(UnsupportedFunctionError, match="exact=True"):
        func.grad(lambda n: func.special.comb(n, 2, exact=True))(3.0)
    assert func.special.comb(5, 2, exact=True) == 10 and func.special.factorial(5, exact=True) == 120


def test_ufunc_keywords_reach_traced_functions() -> None:
    def f(x: Any) -> Any:
        out = np.zeros_like(x)
        scipy.special.erf(x, out=out)
        return np.sum(out)

    np.testing.assert_allclose(func.grad(f)(U), 2 / np.sqrt(np.pi) * np.exp(-U * U))


def test_python_functions_of_scipy_on_traced_arrays() -> None:
    for f in (
        lambda x: scipy.special.zeta(2.5, x),
        lambda x: scipy.special.lambertw(x).real,
    ):
        check.check_modes((f, U))


@pytest.mark.filterwarnings("ignore::func.errors.HostComputationWarning")
def test_device_arrays() -> None:
    x = device_double.to_device(U)
    for name in ("gammaln", "erf", "jv", "gammainc", "betainc", "logsumexp", "polygamma", "ellipk"):
        args = {"jv": (1.5, x), "gammainc": (x, 0.4), "betainc": (x, 1.2, 0.4), "polygamma": (2, x)}.get(name, (x,))
        f, _ = of_place(getattr(func.special, name), args, next(i for i, a in enumerate(args) if a is x))
        gradient = func.grad(lambda y, f=f: np.sum(f(y)))
        np.testing.assert_allclose(gradient(x).get(), gradient(U), rtol=1e-13)


def test_functions_that_a_device_lacks_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Few:
        __name__ = "cupyx.scipy.special"

    monkeypatch.setattr(device_double.namespace, "scipy_special", Few())
    with pytest.raises(UnsupportedFunctionError, match=r"cupyx.scipy.special has no function erf"):
        func.special.erf(device_double.to_device(U))


def test_importing_func_special_changes_no_primitive() -> None:
    code = (
        "import func; from func.interpreters.core import PRIMITIVES, primitive_named; primitive_named('erf')\n"
        "before = {name: primitive.numpy for name, primitive in PRIMITIVES.items()}\n"
        "import func.special; assert all(PRIMITIVES[name].numpy is numpy for name, numpy in before.items())\n"
        "assert PRIMITIVES['erf'].ufunc is __import__('scipy.special').special.erf"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_scipy_special_is_imported_on_first_use_only() -> None:
    code = "import sys, func; assert 'scipy.special' not in sys.modules, 'imported'"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("name", "args", "places"),
    [
        ("bdtrik", (0.1, 2.0, 0.239), (0, 1, 2)),  # below the probability of nothing
        ("pdtrik", (0.5, 0.337), (0, 1)),
        ("stdtridf", (0.9, 0.2), (0, 1)),  # no degrees of freedom are enough
        ("chndtrinc", (8.0, 13.0, 0.9), (0,)),
    ],
)
def test_inverses_at_the_bound_of_their_search_do_not_move(name, args, places):
    """The equation has no solution there, and SciPy's result is the bound for all arguments nearby."""
    for place in places:
        near = [
            getattr(scipy.special, name)(*[x + s * (i == place) for i, x in enumerate(args)]) for s in (-1e-6, 1e-6)
        ]
        assert near[0] == near[1]
        assert func.grad(getattr(func.special, name), argnums=place)(*args) == 0.0


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("bdtrik", (0.24, 2.0, 1.0)),
        ("bdtrin", (2.0, 0.24, 1.0)),
        ("bdtrik", (0.5, 7.5, 1.0)),
        ("gdtrib", (2.0, 0.4, 0.0)),
    ],
)
def test_inverses_of_degenerate_distributions_have_no_finite_slope(name, args):
    """The equation has no solution; SciPy's search ends at another argument, and moves with it, or at the jump."""
    for place in range(3):
        assert not np.isfinite(func.grad(getattr(func.special, name), argnums=place)(*args))


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("bdtr", (1.0, 3.7, 0.3)),
        ("bdtrc", (1.0, 3.7, 0.3)),
        ("bdtri", (1.9, 3.7, 0.3)),
        ("bdtri", (0.5, 1.31, 0.6)),
        ("nbdtr", (1.7, 2.6, 0.3)),
        ("nbdtri", (1.7, 2.6, 0.3)),
        ("pdtr", (1.7, 2.3)),
        ("pdtri", (1.7, 0.3)),
    ],
)
@pytest.mark.filterwarnings("ignore:non-integer arg:DeprecationWarning", "ignore:floating point number:RuntimeWarning")
def test_counts_are_cut_as_scipy_cuts_them(name, args):
    *counts, p = args
    function = getattr(scipy.special, name)
    difference = (function(*counts, p + 1e-6) - function(*counts, p - 1e-6)) / 2e-6
    slope = func.grad(getattr(func.special, name), argnums=len(counts))(*args)
    np.testing.assert_allclose(slope, difference, rtol=1e-7)


def test_smirnov_of_very_many_samples_has_no_derivative() -> None:
    """Its sum has as many terms."""
    value, slope = func.jvp(lambda d: func.special.smirnov(1e9, d), (0.5,), (1.0,))
    assert value == 0 and np.isnan(slope)


@pytest.mark.parametrize("gamma", [0.0, 0.7, np.int8(15)])
def test_voigt_profile_without_a_normal_part(gamma):
    x = np.array([-1.3, 0.4, 2.0])
    sigma = np.array([0, 1, 0], np.uint32)
    expected = scipy.special.voigt_profile(x, sigma, gamma)
    got, slope = func.jvp(lambda x: func.special.voigt_profile(x, sigma, gamma), (x,), (np.ones(3),))
    np.testing.assert_allclose(got, expected, rtol=1e-12)
    near = [scipy.special.voigt_profile(x + step, sigma, gamma) for step in (-1e-6, 1e-6)]
    np.testing.assert_allclose(slope, (near[1] - near[0]) / 2e-6, rtol=1e-6, atol=1e-9)


def test_voigt_profile_of_numbers_is_a_number():
    value, _ = func.vjp(lambda sigma: func.special.voigt_profile(np.array(20), sigma, np.array(1.5)), np.array(0.0))
    assert type(value) is np.float64


@pytest.mark.parametrize("name", ["pro_cv", "obl_cv", "pro_ang1", "obl_ang1", "pro_rad1", "obl_rad1"])
def test_spheroids_of_negative_parameter(name):
    """SciPy's values below c = 0 are those of c = 0, or solve no equation: then the second derivative is NaN."""
    if name.endswith("_cv"):
        assert func.grad(lambda c: getattr(func.special, name)(0, 2, c))(-0.5) == 0.0
        return
    got = func.grad(lambda x: getattr(func.special, name)(0, 2, -0.5, x)[1])(0.3)
    if name.endswith("rad1"):
        assert np.isnan(got)
    else:
        np.testing.assert_allclose(got, 3.0)  # of the polynomial (3 x² - 1) / 2


def test_slopes_of_unsigned_parameters():
    slope = func.grad(func.special.tklmbda)(0.67, np.uint32(0))
    np.testing.assert_allclose(slope, func.grad(func.special.tklmbda)(0.67, 0.0))


@pytest.mark.parametrize(
    "name",
    ["eval_legendre", "eval_sh_legendre", "eval_chebyt", "eval_chebyu", "eval_chebyc", "eval_chebys", "eval_sh_chebyu"],
)
def test_polynomials_of_negative_degree(name):
    """SciPy reflects them; the derivative is that of what it computes."""
    degrees, x, step = np.arange(-4, 4), 0.37, 1e-6
    plain = getattr(scipy.special, name)
    expected = (plain(degrees, x + step) - plain(degrees, x - step)) / (2 * step)
    slopes = func.jvp(lambda x: getattr(func.special, name)(degrees, x), (x,), (1.0,))[1]
    np.testing.assert_allclose(slopes, expected, rtol=1e-6, atol=1e-8)


def test_complex_polygamma_of_numbers_far_to_the_left_or_not_finite():
    """They take no steps of the recurrence, and leave the other elements as they are."""
    x = np.array([np.nan, -1e300 + 1j, np.inf, -3.5 + 1j, 2.0])
    slope = func.jvp(func.special.digamma, (x,), (np.ones(5, complex),))[1]
    assert np.isnan(slope[:3]).all()
    near = [func.special.digamma(x[3:] + step) for step in (-1e-6, 1e-6)]
    np.testing.assert_allclose(slope[3:], (near[1] - near[0]) / 2e-6, rtol=1e-8)


def test_legendre_functions_beyond_one():
    """For an integer degree they are polynomials; for others SciPy's values belong to no function."""
    slope = func.grad(lambda x, v: func.special.lpmv(0, v, x))
    np.testing.assert_allclose(slope(1.5, 2.0), 4.5)
    assert np.isnan(slope(14.0, 0.5))


def test_single_precision_is_traced_without_a_call():
    """SciPy's function of ones in single precision does not end."""
    out = func.eval_shape(func.special.obl_rad1, *[np.zeros(3, np.float32)] * 4)
    assert [part.dtype for part in out] == [np.float32] * 2


@pytest.mark.parametrize("p", [0.0, 1e-10])
def test_inverses_whose_search_ends_beside_the_solution(p):
    assert np.isnan(func.grad(lambda t: func.special.nctdtrinc(1.0, p, t))(-2.09))


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("bdtrik", (0.24, 5.0, 1.0)),
        ("bdtrin", (2.0, 0.24, 1.0)),
        ("gdtrib", (2.0, 0.4, 0.0)),
    ],
)
def test_inverses_of_equations_without_a_solution(name, args):
    """At the end of an argument's range: neither a result that stays nor one that jumps, to second order too."""
    f = getattr(scipy.special, name)
    places = tuple(range(len(args)))
    with np.errstate(all="ignore"):
        slopes = func.grad(f, places)(*args)
        bends = func.jacfwd(func.grad(f, places), places)(*args)
    assert np.isnan(slopes).all()
    assert np.isnan(bends).all()
