"""Reductions and statistics on traced arrays: values bit by bit, derivatives to second order, mapping, errors."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func

RNG = np.random.default_rng(7)
V = RNG.normal(size=7)
M = RNG.normal(size=(3, 4))
T = RNG.normal(size=(2, 3, 4))
W = RNG.uniform(0.5, 1.5, (3, 4))
ZEROS = np.array([[1.5, 0.0, 2.0, -1.0], [0.0, 0.0, 3.0, 0.5], [2.0, 1.0, 1.0, 1.0]])
HOLES = np.array([[1.0, np.nan, 3.5, -0.5], [np.nan, 2.0, 0.5, 4.0], [2.5, 1.5, np.nan, np.nan]])
MASK = np.array([[True, False, True, True], [False, True, True, False], [True, True, True, True]])
C = M + 1j * RNG.normal(size=(3, 4))

Function = Callable[[Any], Any]

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
}

TABLE = {**REDUCTIONS}
OTHER_ORDER = {"sum initial traced"}
"""Where elements are added up in another order than NumPy's."""


def assert_same(got: Any, expected: Any) -> None:
    """Equal to the last bit, also inside tuples."""
    if isinstance(expected, tuple | list):
        assert len(got) == len(expected)
        for one, other in zip(got, expected, strict=True):
            assert_same(one, other)
        return
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.dtype == expected.dtype and got.shape == expected.shape
    np.testing.assert_array_equal(got, expected)


def perturbed(f: Function, x: Any, tangent: Any) -> Any:
    """Central differences, or a complex step's accuracy by Richardson extrapolation of them."""

    def central(step: float) -> Any:
        return (np.asarray(f(x + step * tangent)) - np.asarray(f(x - step * tangent))) / (2 * step)

    return (4 * central(1e-4) - central(2e-4)) / 3


def is_single(f: Function, x: Any) -> bool:
    return np.asarray(f(x)).dtype == np.float32


@pytest.mark.parametrize("name", TABLE)
def test_values_are_numpys_to_the_bit(name: str) -> None:
    f, x = TABLE[name]
    expected = f(x)
    for got in (func.vjp(f, x)[0], func.jvp(f, (x,), (x,))[0]):
        if name in OTHER_ORDER:
            np.testing.assert_allclose(got, expected, rtol=1e-13)
        else:
            assert_same(got, expected)


@pytest.mark.parametrize("name", TABLE)
def test_both_modes_agree_with_differences(name: str) -> None:
    f, x = TABLE[name]
    rng = np.random.default_rng(1)
    tangent = rng.normal(size=x.shape)
    out, dot = func.jvp(f, (x,), (tangent,))
    if not is_single(f, x):
        np.testing.assert_allclose(dot, perturbed(f, x, tangent), rtol=1e-7, atol=1e-8)
    ct = np.asarray(rng.normal(size=np.shape(out)), np.asarray(out).dtype)
    (pulled,) = func.vjp(f, x)[1](ct[()] if ct.ndim == 0 else ct)
    rtol = 1e-5 if is_single(f, x) else 1e-10
    np.testing.assert_allclose(np.sum(pulled * tangent), np.sum(ct * dot), rtol=rtol, atol=rtol)


@pytest.mark.parametrize("name", TABLE)
def test_second_order(name: str) -> None:
    f, x = TABLE[name]
    if is_single(f, x):
        pytest.skip("single precision: too coarse for differences of a gradient")
    tangent = np.random.default_rng(2).normal(size=x.shape)

    def loss(y: Any) -> Any:
        return np.sum(np.sin(f(y)))

    forward_over_reverse = func.hvp(loss, (x,), (tangent,))
    np.testing.assert_allclose(forward_over_reverse, func.vhp(loss, (x,), (tangent,)), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(forward_over_reverse, perturbed(func.grad(loss), x, tangent), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", TABLE)
def test_mapped_is_the_stack_of_singles(name: str) -> None:
    f, x = TABLE[name]
    batch = np.stack([x, x[::-1], x * 0.5])
    mapped = func.vmap(f)(batch)
    expected = np.stack([np.asarray(f(one)) for one in batch])
    assert mapped.dtype == expected.dtype
    rtol = 1e-6 if expected.dtype == np.float32 else 1e-12
    np.testing.assert_allclose(mapped, expected, rtol=rtol, atol=rtol)

    def gradient(y: Any) -> Any:
        return func.grad(lambda z: np.sum(f(z) ** 2))(y)

    singles = np.stack([gradient(one) for one in batch])
    np.testing.assert_allclose(func.vmap(gradient)(batch), singles, rtol=100 * rtol, atol=100 * rtol)


