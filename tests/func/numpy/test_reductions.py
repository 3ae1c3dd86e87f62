"""Reductions and statistics on traced arrays: values bit by bit, derivatives to second order, mapping, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support import numpy_properties as check
from tests.support.numpy_properties import Function

RNG = np.random.default_rng(7)
V = RNG.normal(size=7)
M = RNG.normal(size=(3, 4))
T = RNG.normal(size=(2, 3, 4))
W = RNG.uniform(0.5, 1.5, (3, 4))
ZEROS = np.array([[1.5, 0.0, 2.0, -1.0], [0.0, 0.0, 3.0, 0.5], [2.0, 1.0, 1.0, 1.0]])
HOLES = np.array([[1.0, np.nan, 3.5, -0.5], [np.nan, 2.0, 0.5, 4.0], [2.5, 1.5, np.nan, np.nan]])
MASK = np.array([[True, False, True, True], [False, True, True, False], [True, True, True, True]])
C = M + 1j * RNG.normal(size=(3, 4))

REDUCTIONS: dict[str, tuple[Function, Any]] = {
    "sum": (np.sum, T),
    "sum axis": (lambda x: np.sum(x, axis=-1), T),
    "sum axes": (lambda x: np.sum(x, axis=(0, -1), keepdims=True), T),
    "sum no axes": (lambda x: np.sum(x, axis=()), M),
    "sum dtype": (lambda x: np.sum(x, axis=0, dtype=np.float32), M),
    "sum initial": (lambda x: np.sum(x, axis=1, initial=2.5), M),
    "sum where": (lambda x: np.sum(x, axis=0, where=MASK), M),
    "sum where row": (lambda x: np.sum(x, where=MASK[0], initial=-1.0), M),
    "sum method": (lambda x: x.sum(1, keepdims=True), M),
    "sum initial traced": (lambda x: np.sum(x, axis=0, initial=x[0, 0]), M),
    "prod": (np.prod, M),
    "prod axis": (lambda x: np.prod(x, axis=-2), T),
    "prod zeros": (lambda x: np.prod(x, axis=1), ZEROS),
    "prod where": (lambda x: np.prod(x, axis=1, where=MASK, initial=0.7), M),
    "prod where zeros": (lambda x: np.prod(x, axis=0, where=MASK, keepdims=True), ZEROS),
    "prod initial": (lambda x: np.prod(x, axis=0, initial=1.3), M),
    "max": (np.max, M),
    "amax axes": (lambda x: np.amax(x, axis=(0, 2)), T),
    "max where": (lambda x: np.max(x, axis=0, where=MASK, initial=-0.1), M),
    "max initial": (lambda x: np.max(x, axis=1, initial=0.3), M),
    "min": (lambda x: np.min(x, axis=1, keepdims=True), M),
    "amin method": (lambda x: x.min((0, 1)), M),
    "min where": (lambda x: np.min(x, where=MASK, initial=9.0), M),
    "ptp": (lambda x: np.ptp(x, axis=0), M),
    "mean": (np.mean, T),
    "mean axis": (lambda x: np.mean(x, axis=(1, -1), keepdims=True), T),
    "mean where": (lambda x: np.mean(x, axis=1, where=MASK), M),
    "mean dtype": (lambda x: np.mean(x, axis=1, dtype=np.float32), M),
    "var": (np.var, M),
    "var axis": (lambda x: np.var(x, axis=-1, ddof=1, keepdims=True), T),
    "var where": (lambda x: np.var(x, axis=1, where=MASK), M),
    "var correction": (lambda x: np.var(x, axis=0, correction=0.5), M),
    "var mean": (lambda x: np.var(x, axis=0, mean=np.mean(x, axis=0, keepdims=True)), M),
    "std": (lambda x: np.std(x, axis=(0, 1)), T),
    "std ddof": (lambda x: np.std(x, axis=0, ddof=1), M),
    "std where": (lambda x: x.std(axis=1, where=MASK, keepdims=True), M),
    "average": (lambda x: np.average(x, axis=1), M),
    "average weights": (lambda x: np.average(x, axis=0, weights=W), M),
    "average of weights": (lambda w: np.average(M, weights=w), W),
    "average row of weights": (lambda w: np.average(M, axis=1, weights=w, keepdims=True), W[0]),
    "average returned": (lambda w: np.average(M, axis=0, weights=w, returned=True)[1], W),
    "average axes": (lambda w: np.average(T, axis=(2, 0), weights=w), T[:, 0].T + 3),
    "cov": (np.cov, M),
    "cov columns": (lambda x: np.cov(x, rowvar=False, bias=True), M),
    "cov two": (lambda x: np.cov(x, x**2, ddof=0), V),
    "cov weights": (lambda x: np.cov(x, fweights=[1, 2, 1, 3], aweights=W[0]), M),
    "cov of weights": (lambda w: np.cov(M, aweights=w), W[0]),
    "corrcoef": (np.corrcoef, M),
    "corrcoef two": (lambda x: np.corrcoef(x, x**2), V),
    "cumsum": (np.cumsum, M),
    "cumsum axis": (lambda x: np.cumsum(x, axis=-1, dtype=np.float32), M),
    "cumprod": (lambda x: np.cumprod(x, axis=0), M),
    "cumprod zeros": (lambda x: x.cumprod(1), ZEROS),
    "cumulative_sum": (lambda x: np.cumulative_sum(x, axis=1, include_initial=True), M),
    "cumulative_prod": (lambda x: np.cumulative_prod(x, include_initial=True), V),
    "nansum": (lambda x: np.nansum(x, axis=0), HOLES),
    "nanprod": (lambda x: np.nanprod(x, axis=1, keepdims=True), HOLES),
    "nanmean": (lambda x: np.nanmean(x, axis=1), HOLES),
    "nanvar": (lambda x: np.nanvar(x, axis=1, ddof=1), HOLES),
    "nanstd": (lambda x: np.nanstd(x, axis=0, keepdims=True), HOLES),
    "nanmax": (lambda x: np.nanmax(x, axis=1), HOLES),
    "nanmin": (lambda x: np.nanmin(x, axis=0, initial=9.0), HOLES),
    "nancumsum": (lambda x: np.nancumsum(x, axis=0), HOLES),
    "nancumprod": (np.nancumprod, HOLES),
    # complex
    "complex sum": (lambda x: np.sum(x, axis=0), C),
    "complex prod": (lambda x: np.prod(x, axis=1), C),
    "complex mean": (np.mean, C),
    "complex var": (lambda x: np.var(x, axis=0), C),
    "complex std": (lambda x: np.std(x, axis=1, ddof=1), C),
    "complex cov": (np.cov, C),
    "complex cumprod": (lambda x: np.cumprod(x, axis=1), C),
    "complex average": (lambda x: np.average(x, axis=0, weights=W), C),
    "complex nanmean": (lambda x: np.nanmean(x, axis=0), C),
    "complex nanvar": (lambda x: np.nanvar(x, axis=1), C),
    # ufunc methods
    "add.reduce": (lambda x: np.add.reduce(x, axis=(0, 1), keepdims=True), T),
    "add.reduce default": (lambda x: np.add.reduce(x, initial=2.0, where=MASK), M),
    "multiply.reduce": (lambda x: np.multiply.reduce(x, axis=1), M),
    "maximum.reduce": (lambda x: np.maximum.reduce(x, axis=None), M),
    "minimum.reduce": (lambda x: np.minimum.reduce(x, axis=1, initial=0.2), M),
    "logaddexp.reduce": (lambda x: np.logaddexp.reduce(x, axis=1, keepdims=True), M),
    "logaddexp.reduce axes": (lambda x: np.logaddexp.reduce(x, axis=(0, 2)), T),
    "logaddexp2.reduce": (lambda x: np.logaddexp2.reduce(x), M),
    "hypot.reduce": (lambda x: np.hypot.reduce(x, axis=1), M),
    "fmax.reduce": (lambda x: np.fmax.reduce(x, axis=1), HOLES),
    "fmin.reduce": (lambda x: np.fmin.reduce(x, axis=0), HOLES),
    "subtract.reduce": (lambda x: np.subtract.reduce(x, axis=1), M),
    "divide.reduce": (lambda x: np.divide.reduce(x, axis=0, initial=2.0), W),
    "power.reduce": (lambda x: np.power.reduce(x, axis=0), W),
    "add.accumulate": (lambda x: np.add.accumulate(x, axis=1), M),
    "multiply.accumulate": (np.multiply.accumulate, M),
    "maximum.accumulate": (lambda x: np.maximum.accumulate(x, axis=1), M),
    "minimum.accumulate": (np.minimum.accumulate, V),
    "logaddexp.accumulate": (np.logaddexp.accumulate, V),
    "subtract.accumulate": (lambda x: np.subtract.accumulate(x, axis=-1), M),
    "multiply.outer": (lambda x: np.multiply.outer(x, V), M),
    "subtract.outer": (lambda x: np.subtract.outer(2.0, x), M),
    "add.reduceat": (lambda x: np.add.reduceat(x, [0, 2, 1, 5]), V),
    "add.reduceat axis": (lambda x: np.add.reduceat(x, [1, 3], axis=1), M),
    "multiply.reduceat": (lambda x: np.multiply.reduceat(x, [0, 3, 2]), V),
    "maximum.reduceat": (lambda x: np.maximum.reduceat(x, [0, 2], axis=-1), M),
    "add.at": (lambda x: written(np.add, x, [0, 2, 0], x[:3] ** 2), V),
    "subtract.at": (lambda x: written(np.subtract, x, ([0, 1, 0], [1, 1, 1]), x[0, 0]), M),
    "multiply.at": (lambda x: written(np.multiply, x, [0, 2, 0, 0], x[:4]), V),
    "maximum.at": (lambda x: written(np.maximum, x, [0, 2, 0], np.array([0.5, 0.1, 0.7])), V),
    "divide.at": (lambda x: written(np.divide, x, slice(1, 3), 3.0), V),
    "exp.at": (lambda x: written(np.exp, x, [1, 1, 2]), V),
}
OTHER_ORDER = {"sum initial traced"}
"""Where elements are added up in another order than NumPy's."""


def written(ufunc: Any, x: Any, *args: Any) -> Any:
    """A copy of x after ufunc.at."""
    y = x.copy()
    ufunc.at(y, *args)
    return y


@pytest.mark.parametrize("name", REDUCTIONS)
def test_values_are_numpys_to_the_bit(name: str) -> None:
    check.check_value(REDUCTIONS[name], exact=name not in OTHER_ORDER)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_both_modes_agree_with_differences(name: str) -> None:
    check.check_modes(REDUCTIONS[name])


@pytest.mark.parametrize("name", [name for name, (f, x) in REDUCTIONS.items() if not check.is_single(f(x))])
def test_second_order(name: str) -> None:
    check.check_second_order(REDUCTIONS[name])


@pytest.mark.parametrize("name", REDUCTIONS)
def test_mapped_is_the_stack_of_singles(name: str) -> None:
    check.check_mapped(REDUCTIONS[name])


CONSTANT: dict[str, Function] = {
    "any": lambda x: np.any(x > 1, axis=0),
    "any where": lambda x: np.any(x, axis=1, where=MASK, keepdims=True),
    "all": lambda x: np.all(x, axis=(0, 1)),
    "all where": lambda x: np.all(x > -1, where=MASK),
    "argmax": lambda x: np.argmax(x, axis=1),
    "argmax keepdims": lambda x: np.argmax(x, keepdims=True),
    "argmin": lambda x: np.argmin(x, axis=0, keepdims=True),
    "count_nonzero": lambda x: np.count_nonzero(x > 0, axis=1, keepdims=True),
    "nanargmax": lambda x: np.nanargmax(x, axis=1),
    "nanargmin": np.nanargmin,
    "sum of comparisons": lambda x: np.sum(x > 0, axis=0),
    "mean of comparisons": lambda x: np.mean(x > 0),
    "logical_xor.reduce": lambda x: np.logical_xor.reduce(x > 0, axis=1),
    "logical_and.reduce": lambda x: np.logical_and.reduce(x > 0),
    "logical_or.accumulate": lambda x: np.logical_or.accumulate(x > 0, axis=1),
    "bitwise_or.reduce": lambda x: np.bitwise_or.reduce((x > 0).astype(np.int8), axis=1),
    "less.outer": lambda x: np.less.outer(x, V),
}


@pytest.mark.parametrize("name", CONSTANT)
def test_functions_without_a_derivative(name: str) -> None:
    check.check_constant(CONSTANT[name], M)


REFUSED: dict[str, Function] = {
    "axis out of range": lambda x: np.sum(x, axis=2),
    "axis twice": lambda x: np.sum(x, axis=(0, 0)),
    "axis twice, once negative": lambda x: np.max(x, axis=(0, -2)),
    "axis of floats": lambda x: np.mean(x, axis=1.0),
    "axis as a list": lambda x: np.sum(x, axis=[0]),
    "mean axis out of range": lambda x: np.mean(x, axis=5),
    "argmax axis": lambda x: np.argmax(x, axis=3),
    "argmax of nothing": lambda x: np.argmax(x[:0]),
    "max of nothing": lambda x: np.max(x[:0]),
    "max of nothing along an axis": lambda x: np.max(x[:0], axis=0),
    "max where without initial": lambda x: np.max(x, where=MASK),
    "where that does not broadcast": lambda x: np.sum(x, where=np.ones((4, 3), bool)),
    "where that is no mask": lambda x: np.sum(x, where=np.ones((3, 4))),
    "ptp of nothing": lambda x: np.ptp(x[:0]),
    "weights of zero": lambda x: np.average(x, weights=np.zeros((3, 4))),
    "weights without axis": lambda x: np.average(x, weights=np.ones(4)),
    "weights of another shape": lambda x: np.average(x, axis=1, weights=np.ones(3)),
    "ddof and correction": lambda x: np.var(x, ddof=1, correction=1),
    "cov of three axes": lambda x: np.cov(x[None]),
    "cov ddof": lambda x: np.cov(x, ddof=1.5),
    "cov weights": lambda x: np.cov(x, aweights=-np.ones(4)),
    "cov frequencies": lambda x: np.cov(x, fweights=[1.5, 1, 1, 1]),
    "cumsum axis": lambda x: np.cumsum(x, axis=2),
    "cumulative_sum without axis": lambda x: np.cumulative_sum(x),
    "nanmean dtype": lambda x: np.nanmean(x, dtype=int),
    "nanargmax of NaN": lambda x: np.nanargmax(x * np.nan),
    "out of another shape": lambda x: np.sum(x, axis=0, out=np.zeros(3)),
    "subtract.reduce axes": lambda x: np.subtract.reduce(x, axis=(0, 1)),
    "sin.reduce": lambda x: np.sin.reduce(x),
    "power.reduce of nothing": lambda x: np.divide.reduce(x[:0]),
    "reduceat out of range": lambda x: np.add.reduceat(x, [0, 7]),
    "accumulate a scalar": lambda x: np.add.accumulate(x[0, 0]),
    "at out of range": lambda x: np.add.at(x.copy(), [7], 1.0),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_numpy_refuses_is_refused(name: str) -> None:
    check.check_refusal(REFUSED[name], M)


DTYPED: dict[str, Function] = {
    name: getattr(np, name)
    for name in [
        "sum",
        "prod",
        "mean",
        "var",
        "std",
        "max",
        "min",
        "cumsum",
        "cumprod",
        "nansum",
        "nanmean",
        "nanmax",
        "average",
        "median",
        "any",
        "argmax",
    ]
} | {
    "sum axis": lambda x: np.sum(x, axis=0),
    "mean axis": lambda x: np.mean(x, axis=1),
    "var axis": lambda x: np.var(x, axis=0, ddof=1),
    "mean half": lambda x: np.mean(x, dtype=np.float16),
    "sum wide": lambda x: np.sum(x, dtype=np.float64),
    "add.accumulate": lambda x: np.add.accumulate(x),
}


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        (name, dtype)
        for name in DTYPED
        for dtype in ("f2", "f4", "f8", "c8", "c16")
        if dtype.startswith("f") or name not in ("median", "mean half", "sum wide")  # not defined for complex numbers
    ],
)
def test_dtypes_are_numpys(name: str, dtype: str) -> None:
    x = RNG.normal(size=(137, 131)).astype(dtype)
    check.assert_same(check.func.vjp(DTYPED[name], x)[0], DTYPED[name](x))


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i8"])
@pytest.mark.parametrize("name", [name for name in DTYPED if hasattr(np, name)])
def test_dtypes_of_integers_are_numpys(name: str, dtype: str) -> None:
    x = np.arange(1, 13).reshape(3, 4).astype(dtype)
    check.assert_same(getattr(check.func.numpy, name)(x), getattr(np, name)(x))


@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 0), (0, 3), (1, 1, 1)])
@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("name", ["sum", "prod", "any", "cumsum", "argmax", "max", "mean", "std", "median", "ptp"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_empty_and_scalar_arrays(name: str, axis: Any, shape: tuple[int, ...]) -> None:
    x = np.ones(shape)
    function = getattr(np, name)
    try:
        expected = function(x, axis=axis)
    except Exception as error:
        with pytest.raises(type(error)):
            check.func.vjp(lambda y: function(y, axis=axis), x)
    else:
        check.assert_same(check.func.vjp(lambda y: function(y, axis=axis), x)[0], expected)


def test_out_is_written_and_carries_the_derivative() -> None:
    def f(x: Any) -> Any:
        out = np.zeros_like(x[0])
        returned = np.sum(x**2, axis=0, out=out)
        assert returned is out
        return np.sum(out**2)

    expected = check.func.grad(lambda x: np.sum(np.sum(x**2, axis=0) ** 2))(M)
    np.testing.assert_allclose(check.func.grad(f)(M), expected)


@pytest.mark.parametrize("name", ["max", "min", "amax"])
def test_ties_split_evenly(name: str) -> None:
    x = np.array([[2.0, 2.0, 2.0, 2.0]])
    np.testing.assert_array_equal(check.func.grad(lambda x: np.sum(getattr(np, name)(x, axis=1)))(x), x / 8)


@pytest.mark.parametrize("function", [np.std, np.nanstd])
def test_the_deviation_of_equal_elements_has_no_slope(function: Any) -> None:
    np.testing.assert_array_equal(check.func.grad(function)(np.full(4, 3.0)), np.zeros(4))


def test_logaddexp_of_infinities() -> None:
    x = np.array([[-np.inf, 0.0, 1.0], [-np.inf, -np.inf, -np.inf], [np.inf, 0.0, np.inf]])
    with np.errstate(invalid="ignore"):
        weights = check.func.grad(lambda x: np.sum(np.logaddexp.reduce(x, axis=1)))(x)
    share = 1 / (1 + np.e)
    np.testing.assert_allclose(weights, [[0, share, 1 - share], [1 / 3] * 3, [0.5, 0, 0.5]])


def test_reductions_of_numbers_of_python() -> None:
    assert (check.func.numpy.sum(3.0), check.func.numpy.sum(3.0, initial=1.0)) == (3.0, 4.0)
    assert (check.func.numpy.prod(3.0), check.func.numpy.prod(3.0, initial=2.0)) == (3.0, 6.0)
    assert check.func.grad(lambda x: check.func.numpy.sum(x, initial=1.0))(2.0) == 1.0
