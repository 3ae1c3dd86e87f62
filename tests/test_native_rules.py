"""Every row with a native rule, compiled alone, against the row itself: on samples, dtypes and layouts of memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from func.backends.llvm import machine
from func.backends.llvm.elementary import names
from func.backends.llvm.executor import Executor
from func.interpreters.core import PYTHON_SCALARS, ROWS, aval_of
from func.interpreters.native.pointwise import SPECIAL
from func.interpreters.native.rules import RULES, NotNative
from func.interpreters.native.translate import translate
from func.interpreters.program import Equation, Program, Var
from tests.samples import SAMPLES
from tests.sampling import Sample

pytestmark = pytest.mark.skipif(not machine.available(), reason="no native code on this machine")

CALLS = {name for name in SAMPLES if name.endswith("_call") or name in ("callback", "given")}
CALLS |= {name for name in SAMPLES if name in RULES and RULES[name].__module__.endswith("linalg")}
"""Rows whose parameters are functions, and those of LAPACK: other tests look at them."""
ALL = [
    pytest.param(name, sample, id=f"{name}-{i}")
    for name, own in SAMPLES.items()
    if name not in CALLS
    for i, sample in enumerate(own)
]
ROUNDED = {
    *("sum", "prod", "mean", "variance", "sum_with", "prod_with", "segment_sum", "logaddexp_reduce", "softmax"),
    *("log_softmax", "logsumexp", "contract", "correlate", "overlap_add", "scatter_add", "deg2rad", "rad2deg"),
}
"""Rows whose additions NumPy does in another order."""
Flat = Callable[..., tuple[Any, ...]]


def refused(*given: Any) -> Any:
    """In place of NumPy: native code has to do it."""
    raise AssertionError("native code refused the arguments")


def compiled(name: str, args: Sequence[Any], params: dict[str, Any]) -> Flat | None:
    """A row on arguments like these as native code; None where it has none."""
    row = ROWS[name]
    variables = [None if type(x) in PYTHON_SCALARS else Var(aval_of(x)) for x in args]
    out = row.aval(*[aval_of(x) for x in args], **params)
    outs = tuple([Var(aval) for aval in (out if row.multiple else (out,))])
    inputs = tuple([x if var is None else var for x, var in zip(args, variables, strict=True)])
    program = Program(
        [var for var in variables if var is not None], [Equation(row, inputs, params, outs)], list(outs), {}
    )
    try:
        return Executor(translate(program), refused).flat()
    except NotNative:
        return None


def wanted(name: str, args: Sequence[Any], params: dict[str, Any]) -> tuple[Any, ...]:
    """What the row gives eagerly."""
    with np.errstate(all="ignore"):
        out = ROWS[name](*args, **params)
    return tuple(out) if ROWS[name].multiple else (out,)


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
    if got.dtype.kind not in "fc":
        np.testing.assert_array_equal(got, want)
        return
    epsilon = np.finfo(got.dtype).eps
    if name in ROUNDED or got.dtype.kind == "c":
        np.testing.assert_allclose(got, want, rtol=16 * epsilon, atol=16 * epsilon)
        return
    numbers = ~np.isnan(want)
    np.testing.assert_array_equal(np.isnan(got), ~numbers)
    if name not in names():
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(want)[numbers])
        return
    finite = np.isfinite(want)
    np.testing.assert_array_equal(got[numbers & ~finite], want[numbers & ~finite])
    apart = distance(np.array(got[finite], order="C"), np.array(want[finite], order="C"))
    assert np.max(apart, initial=0) <= (256 if name in SPECIAL else 4), (got, want)  # SciPy's own error is larger


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
    """Native code of a row against the row, in every layout; whether there is some."""
    run = compiled(name, args, params)
    if run is None:
        return False
    want = wanted(name, args, params)
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
def test_native_code_computes_what_the_row_computes(name: str, sample: Sample) -> None:
    if not check(name, sample.args, sample.params):
        pytest.skip(f"{name} is not native")


def test_most_rows_of_arrays_are_native() -> None:
    """The rows that this is about have native code at all."""
    rows = (
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
    assert not [name for name in rows if compiled(name, SAMPLES[name][0].args, SAMPLES[name][0].params) is None]


# --- other dtypes -------------------------------------------------------------------------------------------------

DTYPES = ["float32", "float16", "complex64", "complex128", "int64", "int8", "uint32", "bool"]
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
    """Whether the row itself takes arguments like these, and native code is there."""
    try:
        found = [np.asarray(out).dtype for out in wanted(name, args, params)]
        out = ROWS[name].aval(*[aval_of(x) for x in args], **params)
        agrees = found == [one.dtype for one in (out if ROWS[name].multiple else (out,))]
        return agrees and compiled(name, args, params) is not None
    except (TypeError, ValueError, KeyError):
        return False
