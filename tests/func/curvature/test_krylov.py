"""Lanczos' method and its quadrature against eigenvalues of dense matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.linalg import aslinearoperator

import func
from func.errors import ArgumentError, UnsupportedFunctionError

RNG = np.random.default_rng(0)
FACTOR = RNG.normal(size=(40, 40))
A = FACTOR @ FACTOR.T / 40 + 0.1 * np.eye(40)
EIGENVALUES = np.linalg.eigvalsh(A)
KEY = func.random.key(0)


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array, aslinearoperator], ids=lambda f: f.__name__)
def test_few_steps_find_the_ends_of_the_spectrum(form: Callable[[Any], Any]) -> None:
    found = func.lanczos(form(A), KEY, 25)
    np.testing.assert_allclose(found.ritz_values[-2:], EIGENVALUES[-2:], rtol=1e-4)
    nearest = np.min(abs(found.ritz_values[:, None] - EIGENVALUES), axis=1)
    assert np.all(nearest <= found.error_bounds + 1e-12)
    tridiagonal = np.diag(found.diagonal) + np.diag(found.off_diagonal, 1) + np.diag(found.off_diagonal, -1)
    np.testing.assert_allclose(found.vectors.T @ A @ found.vectors, tridiagonal, atol=1e-12)
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(25), atol=1e-13)
    np.testing.assert_allclose(A @ found.ritz_vectors[:, -1], EIGENVALUES[-1] * found.ritz_vectors[:, -1], atol=1e-2)


def test_all_steps_find_the_spectrum_once() -> None:
    np.testing.assert_allclose(func.lanczos(A, KEY, 100).ritz_values, EIGENVALUES)
    repeated = func.lanczos(np.diag(np.repeat([1.0, 2.0], 5)), np.arange(1, 11), 10)
    np.testing.assert_allclose(repeated.ritz_values, [1, 2])
    assert repeated.remainder == 0 and repeated.vectors.shape == (10, 2)
    assert func.lanczos(np.zeros((0, 0)), np.zeros(0), 2).ritz_values.shape == (0,)


def test_quadrature() -> None:
    spectrum = func.lanczos_quadrature(A, func.random.key(1), steps=20, samples=40)
    for estimate, exact in (
        (spectrum.log_determinant(with_error=True), np.sum(np.log(EIGENVALUES))),
        (spectrum.log_determinant(1.0, with_error=True), np.sum(np.log(EIGENVALUES + 1))),
        (spectrum.trace(lambda x: x, with_error=True), np.trace(A)),
        (spectrum.trace(np.exp, with_error=True), np.sum(np.exp(EIGENVALUES))),
    ):
        assert abs(estimate[0] - exact) < 4 * estimate[1]
    np.testing.assert_allclose(spectrum.weights.sum(axis=1), 40)
    points = np.linspace(-1, 8, 1001)
    np.testing.assert_allclose(np.trapezoid(spectrum.density(points, 0.1), points), 1)
    diagonal = func.lanczos_quadrature(np.diag(np.repeat([0.0, 2.0], 3)), KEY, steps=9, samples=3)
    np.testing.assert_allclose(diagonal.trace(np.exp), 3 + 3 * np.exp(2))
    assert func.lanczos_quadrature(np.zeros((0, 0)), KEY, steps=2, samples=2).log_determinant() == 0


def test_of_a_hessian() -> None:
    x = np.linspace(0.5, 2, 6)
    hessian = func.linear_operator("hessian", lambda x: np.sum(x**3), x)
    np.testing.assert_allclose(func.lanczos(hessian, np.ones(6), 6).ritz_values, 6 * x)
    spectrum = func.lanczos_quadrature(hessian, KEY, steps=6, samples=2)
    np.testing.assert_allclose(spectrum.log_determinant(), np.sum(np.log(6 * x)))
    single = func.linear_operator("hessian", lambda x: np.sum(x**3), x.astype(np.float32))
    np.testing.assert_allclose(func.lanczos(single, np.ones(6), 6).ritz_values, 6 * x, rtol=1e-5)


@pytest.mark.parametrize("size", [1e-310, 1e-200, 1e200], ids=str)
def test_sizes_whose_squares_are_no_numbers(size: float) -> None:
    matrix = np.diag([1.0, 2.0, 4.0])
    np.testing.assert_allclose(func.lanczos(matrix, np.full(3, size), 3).ritz_values, [1, 2, 4])
    np.testing.assert_allclose(func.lanczos(matrix * size, np.ones(3), 3).ritz_values / size, [1, 2, 4], rtol=1e-9)
    spectrum = func.lanczos_quadrature(matrix * size, KEY, steps=3, samples=2)
    np.testing.assert_allclose(spectrum.trace(lambda x: x) / size, 7, rtol=1e-9)


def test_longdouble() -> None:
    hessian = func.linear_operator("hessian", lambda x: np.sum(x**3), np.arange(1, 4, dtype=np.longdouble))
    np.testing.assert_allclose(func.lanczos(hessian, KEY, 3).ritz_values, [6, 12, 18])
    np.testing.assert_allclose(func.lanczos_quadrature(hessian, KEY, steps=3, samples=1).trace(lambda x: x), 36)


JACOBIAN = func.linear_operator("jacobian", np.sin, np.ones(2))
REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "not symmetric": (lambda: func.lanczos(FACTOR, KEY, 2), ArgumentError, "needs a symmetric matrix"),
    "not square": (lambda: func.lanczos(FACTOR[:2], KEY, 2), ArgumentError, "needs a square operator"),
    "jacobian": (lambda: func.lanczos(JACOBIAN, KEY, 2), ArgumentError, "not a Jacobian"),
    "complex": (lambda: func.lanczos(A + 0j, KEY, 2), ArgumentError, "real matrix"),
    "start": (lambda: func.lanczos(A, np.ones(3), 2), ArgumentError, r"start must be a real vector of shape \(40,\)"),
    "zero": (lambda: func.lanczos(A, np.zeros(40), 2), ArgumentError, "other than zero"),
    "NaN": (lambda: func.lanczos(np.full((2, 2), np.nan), np.ones(2), 2), ArgumentError, "is NaN or infinite"),
    "steps": (lambda: func.lanczos(A, KEY, 0), ArgumentError, "steps must be a positive int"),
    "samples": (
        lambda: func.lanczos_quadrature(A, KEY, steps=2, samples=1.5),  # type: ignore[arg-type]
        ArgumentError,
        "samples must be",
    ),
    "indefinite": (
        lambda: func.lanczos_quadrature(A, KEY, steps=9, samples=1).log_determinant(-9.0),
        ArgumentError,
        "is not positive definite",
    ),
    "one sample": (
        lambda: func.lanczos_quadrature(A, KEY, steps=9, samples=1).log_determinant(with_error=True),
        ArgumentError,
        "at least two samples",
    ),
    "traced start": (
        lambda: func.jit(lambda v: func.lanczos(A, v, 2).diagonal)(np.ones(40)),
        UnsupportedFunctionError,
        "takes no traced values",
    ),
    "traced point": (
        lambda: func.grad(
            lambda x: func.lanczos(func.linear_operator("hessian", lambda y: np.sum(y**3), x), KEY, 2).diagonal[0]
        )(np.ones(3)),
        UnsupportedFunctionError,
        "takes no traced values",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_calls_are_named(name: str) -> None:
    call, error, words = REFUSED[name]
    with pytest.raises(error, match=words):
        call()
