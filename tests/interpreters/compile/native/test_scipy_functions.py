"""SciPy's special functions in native code: the bits of its ufuncs, for special values too, and what is reported."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.special

pytest.importorskip("llvmlite")

import func
import func.special
from func.backends.llvm import symbols
from func.backends.scalars import scipy_exports
from func.backends.scalars.math.registry import FUNCTIONS
from func.interpreters.compile.native.not_native import NotNative
from func.interpreters.compile.native.translate import translate
from func.interpreters.core import PRIMITIVES, Primitive
from tests.support.samples_special import SAMPLES

ROOT = Path(__file__).parents[4]
NUMBERS = np.array([
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -7.0, 10.0, 0.1, 0.9, 1 - 2e-16, 1.5, -1.5, 2.5, 7.25, 33.3, -33.3,
    45.0, 170.0, 172.0, -700.0, 700.0, 1e5, -1e5, 1e-5, 1e16, -1e16, 1e-16, -1e-16, 1e300, -1e300, 1e-300, 5e-324,
    np.inf, -np.inf, np.nan,
])  # fmt: skip
"""Numbers at which functions have poles, change their formulas, overflow or are not defined."""
OF_USUAL = {"hyp1f1", "hyperu", "lpmv", "mathieu_a", "mathieu_b", "nctdtrinc", "obl_cv", "pro_cv"}
"""SciPy does not return, or crashes, for some numbers that are huge, negative or not defined: these get others."""
NEVER = {
    "not exported": "hurwitz_zeta lambertw riemann_zeta sph_harm_y",
    "complex": "hankel1 hankel1e hankel2 hankel2e wofz",
    "prints errors": "hyp0f1",
}
"""Functions of SciPy with one result that native code does not call, by reason."""
OF_INTEGERS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(["expn", "kn", "pdtri", "smirnov", "smirnovi", "yn", "eval_hermite", "eval_hermitenorm"], (0,)),
    **dict.fromkeys(["bdtr", "bdtrc", "bdtri"], (1,)),
    **dict.fromkeys(["nbdtr", "nbdtrc", "nbdtri"], (0, 1)),
}
"""Functions that warn of fractions in some places, or refuse them, and are native where these hold integers."""
SCIPYS = sorted(
    {p.scipy: p for p in PRIMITIVES.values() if p.scipy and not p.multiple and p.name not in FUNCTIONS}.values(),
    key=str,
)
OF_NUMBERS = [p for p in SCIPYS if p.name not in {*" ".join(NEVER.values()).split(), *OF_INTEGERS}]


def program(primitive: Primitive, args: Any) -> Any:
    return func.make_program(lambda *args: primitive(*args))(*args)


def is_native(primitive: Primitive, args: Any) -> bool:
    try:
        translate(program(primitive, args))
    except NotNative:
        return False
    return True


def grid(primitive: Primitive, count: int, dtype: str) -> list[Any]:
    """Columns of numbers: all pairs of special ones or samples of longer tuples, and others at random."""
    rng = np.random.default_rng(count)
    is_usual = primitive.name in OF_USUAL or primitive.name.startswith(("nc", "chn"))
    numbers = NUMBERS[(NUMBERS > 0.05) & (NUMBERS < 50)] if is_usual else NUMBERS
    special = np.array(list(itertools.product(numbers[:: 1 + 3 * (count > 3)], repeat=count)))
    special = special[:: max(1, len(special) // 1500)]
    others = rng.choice([0.0, 1.0, 3.0, 20.0], (400, 1)) * rng.uniform(0 if is_usual else -0.3, 1, (400, count))
    others += rng.uniform(0.1, 1, (400, 1))
    columns = np.concatenate([special, others]).T
    if primitive.name in ("obl_cv", "pro_cv"):
        columns[0], columns[1] = np.floor(columns[0]) % 4, np.floor(columns[0]) % 4 + np.floor(columns[1]) % 5
    with np.errstate(over="ignore"):
        return [column.astype(dtype) for column in columns]


def arity(primitive: Primitive) -> int:
    return primitive.ufunc.nin  # type: ignore[union-attr]


def same_bits(got: Any, want: Any) -> bool:
    """Whether arrays are equal to the bit, where they are numbers."""
    word = f"i{want.itemsize}"
    return bool(
        got.dtype == want.dtype
        and np.array_equal(np.isnan(got), np.isnan(want))
        and np.array_equal(got[~np.isnan(got)].view(word), want[~np.isnan(want)].view(word))
    )


def check(primitive: Primitive, columns: list[Any]) -> None:
    """Compiled code is native as a whole, warns of nothing, and has the bits of the ufunc."""
    assert is_native(primitive, columns)
    compiled = func.jit(lambda *args: primitive(*args), compiler="llvm")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = compiled(*columns)
    with np.errstate(all="ignore"):
        want = primitive.ufunc(*columns)  # type: ignore[misc]
    assert same_bits(got, want)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("primitive", OF_NUMBERS, ids=str)
def test_native_code_has_the_bits_of_scipys_ufunc(primitive: Primitive, dtype: str) -> None:
    columns = grid(primitive, arity(primitive), dtype)
    if dtype == "float32" and primitive.name in scipy_exports.IN_SINGLE:
        assert not is_native(primitive, columns)
    else:
        check(primitive, columns)


@pytest.mark.parametrize("name", OF_INTEGERS)
def test_functions_of_integers(name: str) -> None:
    primitive = PRIMITIVES[name]
    columns = grid(primitive, arity(primitive), "float64")
    whole = [
        np.clip(np.nan_to_num(x), -300, 300).astype(int) if i in OF_INTEGERS[name] else x for i, x in enumerate(columns)
    ]
    check(primitive, whole)
    if not name.startswith("eval"):
        assert not is_native(primitive, columns)


@pytest.mark.parametrize("name", " ".join(NEVER.values()).split())
def test_other_functions_cut_programs(name: str) -> None:
    sample = SAMPLES[name][0]
    assert not is_native(PRIMITIVES[name], sample.args)
    if name == "hyp0f1":
        assert scipy_exports.address_of("func_special_dd_d_hyp0f1") is None


X = np.linspace(0.3, 9.0, 2000)
PROGRAMS = {
    "value": lambda x: np.sum(func.special.jv(1.5, x) * np.exp(-x)),
    "gradient": func.grad(lambda x: np.sum(func.special.kve(0.5, x) * func.special.stdtr(3.0, x))),
    "mapped": func.vmap(lambda x: func.special.ellipkinc(x / 10, 0.3) + func.special.psi(x)),
    "order zero": lambda x: func.special.exprel(x) + func.special.ellipk(x / 10) + func.special.ellipe(1 / x),
    "numbers": lambda x: func.special.struve(2, x) + func.special.kn(3, x) + func.special.jv(0, 2.5),
    "integers": lambda x: func.special.gammainc(np.floor(x).astype(int), x) + func.special.eval_legendre(3, x / 10),
    "loop": lambda x: func.scan(lambda c, _: (c + func.special.i1e(c), None), x, None, length=3)[0],
    "branch": lambda x: func.cond(x[0] > 1, func.special.k1, func.special.y1, x),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_not_cut(name: str) -> None:
    function = PROGRAMS[name]
    compiled = func.jit(function, compiler="llvm")
    assert compiled(X).shape == np.shape(function(X))
    np.testing.assert_allclose(compiled(X), function(X), rtol=1e-13)
    assert "part 1" not in str(compiled.lower(X))


@pytest.mark.parametrize("order", [X.astype("f2"), 0.1, np.float32(0.1), np.arange(2000, dtype="i2") % 5])
def test_operands_have_the_dtypes_of_scipys_loop(order: Any) -> None:
    """Numbers of Python and small integers are rounded to single precision first."""
    x = X.astype("f4")
    got = func.jit(lambda x: func.special.jv(order, x), compiler="llvm")(x)
    assert same_bits(got, scipy.special.jv(order, x))


def test_what_scipy_shall_report_is_reported() -> None:
    """A program that is compiled, and runs silently, raises where `errstate` asks for it, and is silent again then."""
    for name in ("erfinv", "gammaincinv", "elliprf"):
        args = [np.array([-2.0, 0.1])] * arity(PRIMITIVES[name])
        compiled = func.jit(getattr(func.special, name), compiler="llvm")
        assert np.isnan(compiled(*args)[0])
        with scipy.special.errstate(all="raise"), pytest.raises(scipy.special.SpecialFunctionError):
            compiled(*args)
        with scipy.special.errstate(all="warn"), pytest.warns(scipy.special.SpecialFunctionWarning):
            compiled(*args)
        assert np.isnan(compiled(*args)[0])


def test_without_exports_programs_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scipy_exports, "_addresses", dict)
    symbols.find.cache_clear()
    try:
        assert not is_native(PRIMITIVES["jv"], (1.5, X))
        compiled = func.jit(lambda x: np.exp(func.special.jv(1.25, x)) * x, compiler="llvm")
        assert "part 1" in str(compiled.lower(X))
        np.testing.assert_allclose(compiled(X), np.exp(scipy.special.jv(1.25, X)) * X, rtol=1e-14)
    finally:
        symbols.find.cache_clear()


STORED = """
import sys
import numpy as np, func
x = np.linspace(0.3, 9.0, 300)
print(func.jit(lambda x: np.sum(func.special.jv(1.5, x)) + x, compiler="llvm")(x).tobytes().hex())
print("func.interpreters.compile.native.translate" in sys.modules)
"""


def test_another_process_finds_the_functions_for_code_from_the_disk(tmp_path: Path) -> None:
    environment = os.environ | {"FUNC_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    lines = [
        subprocess.run([sys.executable, "-c", STORED], env=environment, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    (first, compiled), (second, stored) = [done.stdout.split() for done in lines]
    assert first == second and (compiled, stored) == ("True", "False")
