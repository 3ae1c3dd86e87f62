"""Special functions and random numbers in C: equal to SciPy's and to those of `func.random`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import func
from func import random, special
from func.backends.routines import special_tables
from func.backends.routines.special_families import ARITY
from func.interpreters.compile.native.printed import WITH_SLOPES
from func.interpreters.core.errors import NoSourceError
from func.interpreters.core.wiring import primitive_named
from tests.support import special_expansions
from tests.support.c_programs import STRICT, loaded, needs_compiler

pytestmark = [needs_compiler, pytest.mark.filterwarnings("ignore")]

KEY = random.key(123)
EDGES = np.array([0.0, 1e-10, 1e-3, 0.1, 0.5, 0.9, 1.0, 1.2, 1.5, 2.0, 2.5, 4.9, 5.5, 7.99, 8.01, 10.0, 17.3, 33.0])
LARGE = np.array([50.5, 100.0, 171.5, 200.3, 700.0, 1e3, np.inf, np.nan])
RNG = np.random.default_rng(8)
LINE = np.concatenate([EDGES, -EDGES, LARGE, -LARGE, RNG.uniform(0, 1, 100), RNG.uniform(-20, 60, 200)])
ORDERS = np.concatenate([RNG.choice(EDGES, 200), RNG.uniform(0, 5, 100), RNG.uniform(0, 200, 200)])
BESIDE = np.concatenate([RNG.choice(EDGES, 200), RNG.uniform(0, 5, 100), RNG.uniform(0, 200, 200)])
SHARES = np.concatenate([RNG.choice(EDGES[:7], 200), RNG.uniform(0, 1, 300)])
WHOLE = np.floor(ORDERS) % 20
SIGNED = RNG.integers(-12, 60, 500)
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "gammaincinv": (ORDERS + 1e-2, SHARES),
    "gammainccinv": (ORDERS + 1e-2, SHARES),
    "binom": (ORDERS + 0.05, BESIDE),
    "polygamma": (WHOLE.astype(int), BESIDE),
    "polygamma_gap": (np.resize([0, 1, 2], 500), ORDERS + 0.05, BESIDE + 0.3),
    "gammaln_gap": (ORDERS + 0.05, BESIDE + 30.0),
    "pdtr": (WHOLE, BESIDE),
    "pdtrc": (WHOLE, BESIDE),
    "betainc": (ORDERS + 1e-3, BESIDE + 1e-3, SHARES),
    "betaincc": (ORDERS + 1e-3, BESIDE + 1e-3, SHARES),
    "bdtr": (WHOLE, np.floor(BESIDE).astype(int), SHARES),
    "bdtrc": (WHOLE, np.floor(BESIDE).astype(int), SHARES),
    "fdtr": (ORDERS + 1e-3, BESIDE + 1e-3, ORDERS[::-1]),
    "fdtrc": (ORDERS + 1e-3, BESIDE + 1e-3, ORDERS[::-1]),
    "pseudo_huber": (ORDERS, BESIDE - 2),
    "stdtr": (ORDERS, BESIDE + 0.01),
    "powm1": (ORDERS, BESIDE - 2),
    "zetac": (LINE[~(LINE > 120)],),
    "cotdg": (LINE[np.abs(LINE) > 1e-2],),
    **{name: (SIGNED, np.where(SHARES < 0.5, BESIDE, -ORDERS)) for name in ("jv", "jve", "iv", "ive")},
    **{name: (SIGNED, BESIDE) for name in ("yv", "kv", "kve")},
    "yve": (SIGNED, BESIDE + 0.1),
    **{name: (WHOLE.astype(int), BESIDE) for name in ("yn", "kn", "expn")},
    "ellipkinc": (LINE, np.resize(1.0 - BESIDE, LINE.shape)),
    "ellipeinc": (LINE, np.resize(1.0 - BESIDE, LINE.shape)),
    "ellipkinc_dm": (ORDERS - 100, SHARES * 0.98 - 0.1),
    "ellipeinc_dm": (ORDERS - 100, SHARES * 0.98 - 0.1),
    "betaincinv": (ORDERS + 1e-2, BESIDE + 1e-2, SHARES),
    "betainccinv": (ORDERS + 1e-2, BESIDE + 1e-2, SHARES),
    "betainc_da": (ORDERS + 0.1, BESIDE + 0.1, SHARES),
    "betainc_db": (ORDERS + 0.1, BESIDE + 0.1, SHARES),
    "chdtri": (ORDERS + 0.1, SHARES),
    "gdtrix": (ORDERS + 0.1, BESIDE + 0.1, SHARES),
    "pdtri": (WHOLE.astype(int), SHARES),
    "fdtri": (ORDERS + 0.1, BESIDE + 0.1, SHARES),
    "stdtrit": (ORDERS + 0.1, np.clip(SHARES, 1e-3, 1)),
    "bdtri": (WHOLE, np.floor(BESIDE).astype(int), np.clip(SHARES, 1e-3, 1)),
    **{name: (WHOLE.astype(int), np.floor(BESIDE).astype(int) + 1, SHARES) for name in ("nbdtr", "nbdtrc", "nbdtri")},
    "cosm1": (LINE[np.abs(LINE) < 5],),
}
ABSOLUTE = {"j0": 1e-14, "j1": 1e-14, "y0": 1e-14, "y1": 1e-14, "expi": 1e-14, "digamma": 1e-14, "riemann_zeta": 1e-14}
"""Limits near zeros, which SciPy's functions have as they are."""


def arguments(name: str) -> tuple[Any, ...]:
    """Where a function is compared."""
    usual = (LINE,), (ORDERS, BESIDE), (ORDERS, BESIDE, SHARES), (ORDERS, BESIDE, SHARES, BESIDE[::-1] + 1e-3)
    return ARGUMENTS.get(name) or usual[ARITY[name] - 1]


def all_of(names: Sequence[str]) -> Callable[..., Any]:
    """The values of primitives, one after another, of arguments one after another."""

    def values(*args: Any) -> Any:
        rest = list(args)
        params = {name: {"order": 0} if name in WITH_SLOPES else {} for name in names}
        return [primitive_named(name)(*[rest.pop(0) for _ in range(ARITY[name])], **params[name]) for name in names]

    return values


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_special_functions_are_those_of_scipy(dtype: Any, tmp_path: Path) -> None:
    names = list(ARITY)[:: 1 if dtype == np.float64 else 4]
    if dtype == np.float32:  # whose quantiles SciPy finds in single precision
        names = [name for name in names if name not in ("betaincinv", "betainccinv", "fdtri")]
    args = [x.astype(dtype) if x.dtype.kind == "f" else x for name in names for x in arguments(name)]
    f = all_of(names)
    (run,) = loaded([func.to_c(f, name="f")(*args)], tmp_path, (*STRICT, "-O1"))
    for name, got, wanted in zip(names, run(*args), f(*args), strict=True):
        assert got.dtype == wanted.dtype, name
        single = dtype == np.float32
        tiny = np.finfo(dtype).tiny / np.finfo(dtype).eps
        limits = (5e-5, 1e-6) if single else (2e-12, max(tiny, ABSOLUTE.get(name, 0)))
        np.testing.assert_allclose(got, wanted, *limits, err_msg=name)


def summed(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: np.sum(f(*args))


SOME = np.linspace(0.2, 6.0, 30)
DERIVATIVES: dict[str, Callable[..., Any]] = {
    "gammainc": func.grad(summed(special.gammainc), (0, 1)),
    "chdtri": func.grad(summed(lambda v, y: special.chdtri(v, y / 7)), (0, 1)),
    "betainc": func.grad(summed(lambda a, b: special.betainc(a, b, b / 7)), (0, 1)),
    "betaincinv": func.grad(summed(lambda a, b: special.betaincinv(a, b, b / 7)), (0, 1)),
    "stdtrit": func.grad(summed(lambda v, y: special.stdtrit(v, y / 7)), (0, 1)),
    "ellipk": func.grad(summed(lambda m, x: special.ellipk(m / 7) * special.ellipe(x / 7)), (0, 1)),
    "ellipkm1": func.grad(summed(lambda m, x: special.ellipkm1(m) * x), (0, 1)),
    "ellipkinc": func.grad(
        summed(lambda phi, m: special.ellipkinc(phi, m / 7) * special.ellipeinc(m, phi / 7)), (0, 1)
    ),
    "elliprj": func.grad(summed(lambda x, y: special.elliprj(x, y + 1, 3.0, y + 7.1)), (0, 1)),
    "j1": func.grad(summed(func.grad(summed(lambda x, y: special.j1(x) * special.i1(y) * special.i1e(x + y))))),
    "yn": func.grad(summed(lambda x, y: special.yn(4, x) * special.kn(3, y) * special.jn(np.arange(30), x)), (0, 1)),
    "expn": func.grad(summed(lambda x, y: special.expn(3, x) * y)),
    "gamma variates": func.grad(summed(lambda a, y: random.gamma(KEY, a) * y), (0, 1)),
    "twice": func.hessian(summed(lambda a, y: random.loggamma(KEY, a[:4]) * y[:4])),
}
"""Functions of two vectors, of derivatives by parameters and of what derivatives of other functions need."""


def test_derivatives_by_parameters(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    args = SOME, SOME[::-1].copy()
    modules = [func.to_c(f, name=f"f{place}")(*args) for place, f in enumerate(DERIVATIVES.values())]
    runs = loaded(modules, tmp_path, (*STRICT, "-O0", "-fsanitize=undefined"))
    for (name, f), run in zip(DERIVATIVES.items(), runs, strict=True):
        got = run(*args)
        for a, b in zip(got if isinstance(got, tuple) else (got,), func.tree.leaves(f(*args)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12, err_msg=name)
    assert "runtime error" not in capfd.readouterr().err


def test_orders_that_may_be_no_whole_numbers_are_refused() -> None:
    for f in (special.jv, special.kv, special.iv):
        with pytest.raises(NoSourceError, match="whole number"):
            func.to_c(f)(SOME, SOME)
        for order in (0.5, np.array([1.0, 2.5])):
            with pytest.raises(NoSourceError, match="whole number"):
                func.to_c(lambda x, f=f, order=order: f(order, x))(SOME[:2])


def test_expansions_are_what_they_are_said_to_be() -> None:
    assert set(special_tables.EXPANSIONS) == set(special_expansions.EXPANSIONS)
    for name in list(special_expansions.EXPANSIONS)[::3]:
        low, high, have = special_tables.EXPANSIONS[name]
        assert (low, high) == special_expansions.EXPANSIONS[name][:2]
        np.testing.assert_allclose(have, special_expansions.coefficients(name), rtol=1e-15)


EXACT: dict[str, Callable[[Any], Any]] = {
    **{f"bits of {dtype}": lambda k, dtype=dtype: random.bits(k, (3, 5), dtype) for dtype in (np.uint8, np.uint16)},
    **{f"bits of {dtype}": lambda k, dtype=dtype: random.bits(k, (7,), dtype) for dtype in (np.uint32, np.uint64)},
    "one word": lambda k: random.bits(k),
    "no words": lambda k: random.bits(k, (0, 3)),
    "split": lambda k: random.split(k, 3),
    "fold_in": lambda k: random.fold_in(k, -5),
    "a key of a number": lambda k: random.key(k[1]),
    "uniform": lambda k: random.uniform(k, (50,)),
    "uniform of float32": lambda k: random.uniform(k, (51,), dtype=np.float32),
    "randint": lambda k: random.randint(k, (60,), -5, np.arange(1, 61)),
    "permutation": lambda k: random.permutation(k, 20),
    "choice": lambda k: random.choice(k, 10, (5,)),
    "poisson": lambda k: random.poisson(k, np.linspace(0.1, 200, 200)),
    "binomial": lambda k: random.binomial(k, 100.0, np.linspace(0, 1, 100)),
    "keys": lambda k: func.vmap(lambda key: random.bits(random.fold_in(key, 2), (4,)))(random.split(k, 6)),
    "a scan": lambda k: func.scan(lambda key, _: (random.split(key)[0], random.bits(key)), k, None, length=5),
}
NEARLY: dict[str, Callable[[Any], Any]] = {
    "normal": lambda k: random.normal(k, (500,)),
    "normal of float32": lambda k: random.normal(k, (50,), dtype=np.float32),
    "normals of keys": lambda k: func.vmap(lambda key: random.normal(key, (4,)))(random.split(k, 6)),
    "gamma": lambda k: random.gamma(k, np.linspace(0.05, 30, 200)),
    "beta": lambda k: random.beta(k, 2.0, 3.0, (20,)),
    "dirichlet": lambda k: random.dirichlet(k, np.ones(4)),
    "wald": lambda k: random.wald(k, 2.0, shape=(30,)),
    "exponential": lambda k: random.exponential(k, (6,)),
}


def test_random_numbers_are_those_of_python(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Words and integers to the last bit, numbers but for the rounding of functions."""
    tried = EXACT | NEARLY
    modules = [func.to_c(f, name=f"f{place}")(KEY) for place, f in enumerate(tried.values())]
    for (name, f), run in zip(
        tried.items(), loaded(modules, tmp_path, (*STRICT, "-O1", "-fsanitize=undefined")), strict=True
    ):
        for key in (KEY, random.key(2**63 + 5)):
            got = run(key)
            for a, b in zip(got if isinstance(got, tuple) else (got,), func.tree.leaves(f(key)), strict=True):
                assert (a.dtype, a.shape) == (b.dtype, b.shape), name
                if name in EXACT:
                    np.testing.assert_array_equal(a, b, err_msg=name)
                else:
                    np.testing.assert_allclose(a, b, rtol=1e-12 if a.dtype == np.float64 else 1e-6, err_msg=name)
    assert "runtime error" not in capfd.readouterr().err
