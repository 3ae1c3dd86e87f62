"""Every primitive with a native rule, compiled alone, against its implementation: samples, dtypes, memory layouts."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("llvmlite")

import func
from func.backends.llvm import machine
from func.backends.llvm.call_stubs.native_executable import NativeExecutable
from func.backends.llvm.math.elementary import names
from func.interpreters.compile.inlining import inline
from func.interpreters.compile.native import (
    contraction,
    convolution,
    cumulative,
    diagonals,
    elementwise,
    reductions,
    sorting,
    special,
    structural,
)
from func.interpreters.compile.native import translate as translation
from func.interpreters.compile.native.not_native import NotNative
from func.interpreters.compile.native.translate import all_rules, translate
from func.interpreters.core import PRIMITIVES, PYTHON_SCALARS, aval_of, is_inexact
from func.interpreters.primitives.structural.contraction import spec
from func.interpreters.program.program import Equation, Program, Var
from tests.support.samples import SAMPLES
from tests.support.sampling import Sample

pytestmark = pytest.mark.skipif(not machine.available(), reason="no native code on this machine")

CALLS = {
    name
    for name in SAMPLES
    if name.endswith("_call") or name in ("callback", "pure_callback", "saved_output", "remote_map")
}
HERE = (contraction, convolution, diagonals, elementwise, reductions, cumulative, sorting, special, structural)
RULES = all_rules()
CALLS |= {name for name in SAMPLES if name in RULES and RULES[name].__module__ not in [one.__name__ for one in HERE]}
"""Rows whose parameters are functions, and those of LAPACK: other tests look at them."""
ROUNDED = {
    *("sum", "prod", "mean", "variance", "sum_with", "prod_with", "segment_sum", "logaddexp_reduce", "softmax"),
    *("log_softmax", "logsumexp", "contract", "correlate", "overlap_add", "scatter_add", "deg2rad", "rad2deg"),
}
"""Rows whose additions NumPy does in another order."""
OF_FUNCTIONS = {
    *("float_power", "i0", "sinc", "root_power", "modulus_power", "signed_power", "power_slope", "log_part"),
    *("log2_part", "over_square_sum", "exponential_share", "secant_square", "sinh_of_arccosh"),
}
"""Rows that compute with functions whose last places differ from NumPy's."""
Flat = Callable[..., tuple[Any, ...]]


def refused(*given: Any) -> Any:
    """In place of NumPy: native code has to do it."""
    raise AssertionError("native code refused the arguments")


def program_of(name: str, args: Sequence[Any], params: dict[str, Any]) -> Program:
    """A primitive on arguments like these, alone, as compiled code sees it."""
    primitive = PRIMITIVES[name]
    variables = [None if type(x) in PYTHON_SCALARS else Var(aval_of(x)) for x in args]
    out = primitive.aval(*[aval_of(x) for x in args], **params)
    outs = tuple([Var(aval) for aval in (out if primitive.multiple else (out,))])
    inputs = tuple([x if var is None else var for x, var in zip(args, variables, strict=True)])
    given = [var for var in variables if var is not None]
    return inline(Program(given, [Equation(primitive, inputs, params, outs)], list(outs), {}))


def is_native(name: str, args: Sequence[Any], params: dict[str, Any]) -> bool:
    """Whether a primitive has a native form."""
    try:
        translate(program_of(name, args, params))
    except NotNative:
        return False
    return True


def compiled(name: str, args: Sequence[Any], params: dict[str, Any]) -> Flat | None:
    """A primitive on arguments like these as native code; None where it has none."""
    if not is_native(name, args, params):
        return None
    return NativeExecutable(translate(program_of(name, args, params)), refused).flat_stub()


ALL = [
    pytest.param(name, sample, id=f"{name}-{i}")
    for name, own in SAMPLES.items()
    if name not in CALLS
    for i, sample in enumerate(own)
    if is_native(name, sample.args, sample.params)
]
"""Samples of the primitives that have a native form."""


def eager_outputs(name: str, args: Sequence[Any], params: dict[str, Any]) -> tuple[Any, ...]:
    """The outputs of the primitive, computed eagerly."""
    with np.errstate(all="ignore"):
        out = PRIMITIVES[name](*args, **params)
    return tuple(out) if PRIMITIVES[name].multiple else (out,)


def distance(x: Any, y: Any) -> Any:
    """How many floating point numbers lie between."""
    bits = np.dtype(f"i{x.dtype.itemsize}")
    low = np.iinfo(bits).min
    p, q = [np.asarray(one).view(bits).astype(object) for one in (x, y)]
    p, q = np.where(p < 0, low - p, p), np.where(q < 0, low - q, q)
    return np.abs(p - q)


def assert_close(name: str, got: Any, want: Any) -> None:
    """Equal bit for bit; functions up to four units in the last place; sums and complex numbers up to rounding."""
    got, want = np.asarray(got), np.asarray(want)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    if not is_inexact(got.dtype):
        np.testing.assert_array_equal(got, want)
        return
    epsilon = float(ml_dtypes.finfo(got.dtype).eps)
    if name in ROUNDED or got.dtype.kind == "c":
        np.testing.assert_allclose(got, want, rtol=16 * epsilon, atol=16 * epsilon)
        return
    numbers = ~np.isnan(want)
    np.testing.assert_array_equal(np.isnan(got), ~numbers)
    if name not in names() and name not in OF_FUNCTIONS:
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(want)[numbers])
        return
    finite = np.isfinite(want)
    np.testing.assert_array_equal(got[numbers & ~finite], want[numbers & ~finite])
    apart = distance(np.array(got[finite], order="C"), np.array(want[finite], order="C"))
    most = 256 if PRIMITIVES[name].scipy else 4  # SciPy's own error is larger
    assert np.max(apart, initial=0) <= most, (got, want)


def layouts(x: Any) -> list[Any]:
    """An array in memory that lies otherwise."""
    x = np.asarray(x)
    if not x.ndim:
        return [x]
    wide = np.repeat(x, 2, axis=-1)
    held = np.zeros(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
    held[...] = x
    fixed = np.array(x)
    fixed.flags.writeable = False
    backwards = np.array(x[..., ::-1])[..., ::-1]
    return [np.array(x), wide[..., ::2], backwards, np.asfortranarray(x), held, fixed]


def check(name: str, args: Sequence[Any], params: dict[str, Any]) -> bool:
    """Native code of a primitive against the primitive, in every layout; whether there is some."""
    run = compiled(name, args, params)
    if run is None:
        return False
    want = eager_outputs(name, args, params)
    arrays = [layouts(x) for x in args if type(x) not in PYTHON_SCALARS]
    for turn in range(max([len(one) for one in arrays], default=1)):
        given = [one[turn % len(one)] for one in arrays]
        before = [np.array(x) for x in given]
        for got, other in zip(run(*given), want, strict=True):
            assert_close(name, got, other)
        for x, kept in zip(given, before, strict=True):
            np.testing.assert_array_equal(x, kept)
    return True


@pytest.mark.parametrize(("name", "sample"), ALL)
def test_native_code_computes_what_the_primitive_computes(name: str, sample: Sample) -> None:
    assert check(name, sample.args, sample.params)


def test_most_primitives_of_arrays_are_native() -> None:
    """These primitives have native code at all."""
    primitives = (
        "argmax",
        "cumsum",
        "cummax",
        "correlate",
        "windows",
        "overlap_add",
        "search",
        "reorder",
        "sum_with",
        "complex",
    )
    assert len(ALL) > 250
    assert not [name for name in primitives if compiled(name, SAMPLES[name][0].args, SAMPLES[name][0].params) is None]


DTYPES = ["float32", "float16", "bfloat16", "complex64", "complex128", "int64", "int8", "uint32", "bool"]
VARIED = [
    (name, own[0]) for name, own in SAMPLES.items() if name not in CALLS and own and not name.startswith("random")
]


def in_dtype(x: Any, dtype: Any) -> Any:
    """Floating point arrays in another dtype, with numbers that it tells apart; indices and masks stay."""
    if not isinstance(x, np.ndarray) or x.dtype.kind not in "fc":
        return x
    if dtype.kind in "iu":
        return (x.real * 20 - 8 * (dtype.kind == "i")).astype(dtype)
    return x > 0.5 if dtype.kind == "b" else x.real.astype(dtype) * (1 + 0.5j if dtype.kind == "c" else 1)


@pytest.mark.parametrize(("name", "sample"), VARIED, ids=[name for name, _ in VARIED])
@pytest.mark.filterwarnings("ignore")
def test_native_code_of_other_dtypes(name: str, sample: Sample) -> None:
    for dtype in [np.dtype(one) for one in DTYPES]:
        args = [np.asarray(in_dtype(x, dtype)).astype(dtype) if in_dtype(x, dtype) is not x else x for x in sample.args]
        if compiled_quietly(name, args, sample.params):
            check(name, args, sample.params)


def compiled_quietly(name: str, args: Sequence[Any], params: dict[str, Any]) -> bool:
    """Whether the primitive takes arguments like these, and native code is there."""
    try:
        found = [np.asarray(out).dtype for out in eager_outputs(name, args, params)]
        out = PRIMITIVES[name].aval(*[aval_of(x) for x in args], **params)
        agrees = found == [one.dtype for one in (out if PRIMITIVES[name].multiple else (out,))]
        return agrees and compiled(name, args, params) is not None
    except (TypeError, ValueError, KeyError):
        return False


NOTHING: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("sin", (np.zeros((0, 3)),), {}),
    ("add", (np.zeros((0, 3)), np.zeros(3)), {}),
    ("equal", (np.zeros((3, 0)), np.zeros((3, 1))), {}),
    ("sum", (np.zeros((3, 0)),), {"axes": (1,)}),
    ("sum", (np.zeros((0, 3)),), {"axes": (1,)}),
    ("sum", (np.zeros((0, 3)),), {"axes": (0, 1)}),
    ("prod", (np.zeros((2, 0, 3)),), {"axes": (1,)}),
    ("all", (np.zeros((0, 3), bool),), {"axes": (0,)}),
    ("any", (np.zeros((0, 3), bool),), {"axes": (0,)}),
    ("cumsum", (np.zeros((0, 3)),), {"axis": 0, "reverse": False}),
    ("concatenate", (np.zeros((0, 3)), np.ones((2, 3)), np.zeros((0, 3))), {"axis": 0}),
    ("embed", (np.zeros(0),), {"index": ((1, 1, 1),), "shape": (4,)}),
    ("update", (np.ones((2, 3)), np.zeros((0, 3))), {"index": ((1, 1, 1), (0, 3, 1))}),
    ("getitem", (np.ones((4, 5)),), {"index": ((2, 2, 1), (0, 5, 2))}),
    ("reshape", (np.zeros((0, 4)),), {"shape": (2, 0)}),
    ("permute", (np.zeros((0, 4)),), {"order": (1, 0)}),
    ("gather", (np.ones((4, 2)), np.zeros(0, int)), {"axis": 0}),
    ("scatter_add", (np.ones((4, 2)), np.zeros((0, 2)), np.zeros(0, int)), {"axis": 0}),
    ("contract", (np.zeros((2, 0)), np.zeros((0, 3))), {"spec": spec((0, 1), (1, 2), (0, 2))}),
    ("contract", (np.zeros((0, 2)), np.ones((2, 3))), {"spec": spec((0, 1), (1, 2), (0, 2))}),
    ("contract", (np.zeros((0, 2), complex), np.ones((2, 3))), {"spec": spec((0, 1), (1, 2), (0, 2))}),
    ("where", (np.zeros((0, 2), bool), np.ones(2), 0.0), {}),
    ("search", (np.ones(0), np.ones(3)), {"side": "left", "batch_rank": 0}),
]


@pytest.mark.parametrize(("name", "args", "params"), NOTHING, ids=[f"{one[0]}-{i}" for i, one in enumerate(NOTHING)])
def test_native_code_of_arrays_without_elements(name: str, args: Any, params: Any) -> None:
    assert check(name, args, params)


ODD = np.array([[3.0, np.nan, 3.0, -0.0], [0.0, 7.0, 7.0, np.inf], [np.nan, np.nan, -np.inf, 2.0]])


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.filterwarnings("ignore")
def test_places_of_extrema_are_the_first(name: str, axis: int) -> None:
    for x in (ODD, ODD.astype(np.float32), ODD[1:2], np.nan_to_num(ODD).astype(np.int8), ODD > 2):
        assert check(name, (x,), {"axis": axis})
    large = np.random.default_rng(0).integers(0, 9, (70, 33))
    assert check(name, (large,), {"axis": axis})


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_running_values_along_every_axis(name: str, axis: int) -> None:
    rng = np.random.default_rng(0)
    params: dict[str, Any] = {"axis": axis, **({"reverse": False} if name == "cumsum" else {})}
    for shape in ((9, 17, 5), (1, 3, 1), (4, 1, 33), (3, 2, 1)):
        x = rng.normal(size=shape)
        assert check(name, (x,), params)
        if name in ("cummax", "cummin"):
            x[1:2, :, :3] = np.nan
        assert check(name, (x.astype(np.float32),), params)
        assert check(name, ((x * 4).astype(np.complex64),), params)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("sizes", [(5, 3), (3, 5), (40, 7), (1, 4), (9, 1)])
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "int32"])
def test_correlations(mode: str, sizes: tuple[int, int], dtype: str) -> None:
    rng = np.random.default_rng(0)
    x, y = [(rng.normal(size=(2, n)) * 5).astype(dtype) for n in sizes]
    assert check("correlate", (x[0], y[0]), {"mode": mode})
    assert check("correlate", (x, y), {"mode": mode})


@pytest.mark.parametrize("side", ["left", "right"])
def test_searches(side: str) -> None:
    rng = np.random.default_rng(0)
    for size in (1, 2, 3, 8, 100):
        table = np.sort(rng.integers(0, 20, size)).astype(float)
        values = np.array([-1.0, 0.0, 5.0, 5.5, 19.0, 25.0, np.nan, np.inf])
        assert check("search", (table, values), {"side": side, "batch_rank": 0})
        table[-1] = np.nan
        assert check("search", (table, values), {"side": side, "batch_rank": 0})
        assert check(
            "search", (np.stack([table, table / 2]), np.stack([values, values])), {"side": side, "batch_rank": 1}
        )


ENDS = [0.0, -0.0, 1.0, -1.5, 2.0, np.inf, -np.inf, np.nan, 1e-40, 6e-8, 7e4, 1e300, -3e-320, 0.3]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
@pytest.mark.filterwarnings("ignore")
def test_numbers_at_the_ends(dtype: str) -> None:
    kind = np.dtype(dtype)
    part = np.array(ENDS, np.dtype(f"f{kind.itemsize // 2}") if kind.kind == "c" else kind)
    x = (part[:, None] + 1j * part).ravel().astype(kind) if kind.kind == "c" else part
    if kind.kind == "c":
        x.real, x.imag = np.repeat(part, part.size), np.tile(part, part.size)
    for name in ("absolute", "negative", "sign", "conjugate", "isnan", "isinf", "isfinite", "logical_not", "spacing"):
        if name != "spacing" or dtype in ("float32", "float64"):
            check_exactly(name, (x,), kind)
    for name in ("nextafter", "heaviside", "copysign") if kind.kind == "f" else ():
        check_exactly(name, (x[:, None], x), kind)
    for name in ("add", "subtract", "divide", "maximum", "minimum", "fmax", "fmin", "less", "greater_equal", "equal"):
        check_exactly(name, (x[:, None], x), kind)
    for other in ("float16", "float32", "float64"):
        if kind.kind == "f":
            check_exactly("convert", (x,), kind, {"dtype": np.dtype(other)})


def check_exactly(name: str, args: Sequence[Any], kind: Any, params: dict[str, Any] | None = None) -> None:
    """Equal bit for bit, but for the sign of NaN; the size of a complex number up to rounding."""
    run = compiled(name, args, params or {})
    assert run is not None
    (got,), (want,) = run(*args), eager_outputs(name, args, params or {})
    assert got.dtype == want.dtype
    if name in ("absolute", "sign") and kind.kind == "c":
        np.testing.assert_allclose(got, want, rtol=4 * np.finfo(kind).eps)
        return
    np.testing.assert_array_equal(got, want)
    for a, b in ((got.real, want.real), (got.imag, want.imag)):
        told = ~np.isnan(b) if b.dtype.kind == "f" else np.zeros(b.shape, bool)
        np.testing.assert_array_equal(np.signbit(a)[told], np.signbit(b)[told])


LONG = [name for name, own in SAMPLES.items() if name not in CALLS and not own[0].params]
LONG = [name for name in LONG if name in names() or hasattr(PRIMITIVES[name].numpy, "nin")]


@pytest.mark.parametrize("name", LONG)
@pytest.mark.filterwarnings("ignore")
def test_long_vectors(name: str) -> None:
    """Whole vectors and what is left over of them, backwards and with gaps too."""
    for dtype in [
        np.dtype(one) for one in ("float64", "float32", "float16", "bfloat16", "complex128", "complex64", "int16")
    ]:
        args = []
        for x in SAMPLES[name][0].args:
            own = np.asarray(in_dtype(np.resize(np.asarray(x), (3, 77)), dtype))
            args.append(own.astype(dtype) if np.asarray(x).dtype.kind in "fc" else own)
        if compiled_quietly(name, args, {}):
            check(name, args, {})


@pytest.mark.parametrize("dtype", ["float64", "complex128", "complex64", "float16", "bool", "int8"])
@pytest.mark.parametrize("length", [1, 7, 64, 77])
def test_views_of_long_vectors(dtype: str, length: int) -> None:
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(length, 2 * length)) * 3).astype(dtype)

    def parts(x: Any) -> Any:
        return x[:, ::-2] + x[::-1, :length], np.where(x[:, length:] == x[0, 0], x.T[:length], x[:, ::2])

    def sums(x: Any) -> Any:
        return np.sum(x.T, axis=0), np.sum(x * x, axis=0), np.sum(x[:, ::-1])

    for got, want in zip(func.jit(parts, compiler="llvm")(x), parts(x), strict=True):
        np.testing.assert_array_equal(got, want)
    rtol = 1e-12 if dtype in ("float64", "complex128") else 1e-2 if dtype == "float16" else 1e-4
    for got, want in zip(func.jit(sums, compiler="llvm")(x), sums(x), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol * 100)


def test_modules_that_are_imported_late_are_found_by_all_their_primitives() -> None:
    modules = {f"{translation.PACKAGE}.{name}": names for name, names in translation.OTHERS.items()}
    for module in modules:
        importlib.import_module(module)
    found: dict[str, set[str]] = {}
    for name, rule in RULES.items():
        found.setdefault(rule.__module__, set()).add(name)
    assert {module: set(names) for module, names in modules.items()} == {module: found[module] for module in modules}
    assert set(found) - set(modules) <= {module.__name__ for module in translation.USUAL}


SCRIPT = """
import sys, numpy as np, func
x = np.linspace(0.1, 1, 12)
assert func.jit(lambda x: np.sum(np.exp(x)))(x) > 0
assert 'func.interpreters.compile.native.linalg' not in sys.modules
functions = [
    np.cumsum, np.sort, np.argmax, np.sinc, np.diag,
    lambda x: np.linalg.inv(np.diag(x)), lambda x: np.linalg.eigh(np.outer(x, x))[0], lambda x: np.convolve(x, x),
    lambda x: func.scan(lambda c, r: (c + r, c), 0.0, x)[0],
]
for f in functions:
    lowered = func.jit(f).lower(x)
    assert lowered.kernels is not None and lowered.source is None, f
"""


def test_a_program_finds_rules_that_no_other_has_needed() -> None:
    for others in translation.OTHERS.values():
        assert all([name in PRIMITIVES for name in others])
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[4], timeout=120)
    assert done.returncode == 0, done.stderr
