"""Backward passes through Cholesky factors: closed forms find the factor, and its parts, in what nodes have saved."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import func
from func.backends.llvm import machine
from func.interpreters.calls.backward_plans import Structure
from tests.interpreters.test_compiled_backward import compiled_at_once, runs

__all__ = ["compiled_at_once", "runs"]

RNG = np.random.default_rng(20261129)
Array = np.ndarray[Any, Any]

pytestmark = pytest.mark.skipif(not machine.available(), reason="no LLVM")

N = 40
B, C = RNG.normal(size=N), RNG.normal(size=(N, 3))
D = np.abs(RNG.normal(size=(N, N))) + 1
D = D + D.T


def kernel(x: Any) -> Any:
    return np.exp(x[0]) * np.exp(-D / np.exp(x[1])) + (1 + np.exp(x[2])) * np.eye(N)


def whitened(factor: Any, b: Any, **options: Any) -> Any:
    return scipy.linalg.solve_triangular(factor, b, lower=True, **options)


def likelihood(x: Any) -> Any:
    factor = np.linalg.cholesky(kernel(x))
    z = whitened(factor, B)
    return 0.5 * np.sum(z * z) + np.sum(np.log(np.diag(factor)))


def by_diagonal_of_any(x: Any) -> Any:
    factor = np.linalg.cholesky(kernel(x))
    return np.sum(np.log(factor.diagonal())) + np.sum(np.sin(np.diag(factor, -1))) + np.trace(factor)


def twice_used(x: Any) -> Any:
    """The parts of the factor are used in other ways too, and one is written to."""
    factor = np.linalg.cholesky(kernel(x))
    diagonal = np.diag(factor).copy()
    value = np.sum(np.log(diagonal))
    diagonal[::2] *= x[1]
    z = whitened(factor, C)
    return value + np.sum(np.cos(diagonal)) + np.sum(np.tanh(z[:, 1]) * z[:, 0]) + np.sum(factor[3:, 1] ** 3)


def with_cho_solve(x: Any) -> Any:
    factor = scipy.linalg.cho_factor(kernel(x), lower=True)
    return B @ scipy.linalg.cho_solve(factor, B) + 2 * np.sum(np.log(np.diag(factor[0])))


def upper(x: Any) -> Any:
    factor = scipy.linalg.cholesky(kernel(x))
    z = scipy.linalg.solve_triangular(factor, B, trans=1)
    return z @ z + np.sum(np.log(np.diagonal(factor)))


def hermitian(x: Any) -> Any:
    k = kernel(x) * np.exp(0.1j * (np.arange(N)[:, None] - np.arange(N)) * x[0])
    factor = np.linalg.cholesky(k)
    z = whitened(factor, B + 1j * C[:, 0])
    return np.sum(np.abs(z) ** 2) + np.sum(np.log(np.real(np.diag(factor))))


def two_factors(x: Any) -> Any:
    first, second = np.linalg.cholesky(kernel(x)), np.linalg.cholesky(kernel(x * 0.5))
    return np.sum(whitened(first, B) * whitened(second, C[:, 0])) + np.sum(np.log(np.diag(first) * np.diag(second)))


def of_a_stack(x: Any) -> Any:
    factors = np.linalg.cholesky(np.stack([kernel(x), kernel(2 * x)]))
    diagonals = np.diagonal(factors, axis1=-2, axis2=-1)
    return np.sum(np.log(diagonals)) + np.sum(np.linalg.solve(factors, C) ** 2)


def transposed(x: Any) -> Any:
    factor = np.linalg.cholesky(kernel(x))
    w = scipy.linalg.solve_triangular(factor.T, B)
    return w @ w + np.sum(np.log(np.diag(factor.T)))


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    f.__name__: f
    for f in (
        *(likelihood, by_diagonal_of_any, twice_used, with_cho_solve, upper, hermitian, two_factors, of_a_stack),
        transposed,
    )
}
X = np.array([0.1, 0.3, -0.2])
TRANSFORMS: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "grad": lambda f: func.grad(f)(X),
    "jacrev": lambda f: func.jacrev(lambda x: np.stack([f(x), f(x) ** 2]))(X),
    "of samples": lambda f: func.vmap(func.grad(f))(np.stack([X, X / 2])),
    "hvp": lambda f: func.jvp(func.grad(f), (X,), (X[::-1].copy(),)),
    "hessian": lambda f: func.hessian(f)(X),
}


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The programs of passes that were traced."""
    traced: list[Any] = []
    trace = Structure.trace

    def watched(structure: Structure) -> Any:
        result = trace(structure)
        traced.append(result.program)
        return result

    monkeypatch.setattr(Structure, "trace", watched)
    return traced  # type: ignore[return-value]


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_are_those_of_the_operations(name: str, transform: str, runs: list[bool]) -> None:
    derivative = TRANSFORMS[transform]
    with func.config.override(compile_backward=False):
        expected = derivative(FUNCTIONS[name])
    for _ in range(3):
        actual = derivative(FUNCTIONS[name])
        for a, b in zip(func.tree.leaves(actual), func.tree.leaves(expected), strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8)
    assert runs[-1]


@pytest.mark.parametrize("name", ["likelihood", "upper"])
def test_closed_forms_need_no_solve_with_a_matrix(name: str, programs: list[Any]) -> None:
    from func.interpreters.compile.passes import optimize

    for _ in range(3):
        func.grad(FUNCTIONS[name])(X)
    (program,) = programs
    solves = [e for e in optimize(program).equations if e.primitive.name == "triangular_solve"]
    assert all([e.inputs[1].shape[-1] < N for e in solves])
    assert any([e.primitive.name == "triangular_solve" and e.inputs[1].shape[-1] == N for e in program.equations])


def test_tensors(runs: list[bool]) -> None:
    expected = func.grad(likelihood)(X)
    for _ in range(4):
        x = func.tensor(X, requires_grad=True)
        likelihood(x).backward()
        np.testing.assert_allclose(x.grad, expected, rtol=1e-9)


def test_a_matrix_without_a_factor() -> None:
    gradient = func.grad(likelihood)
    for _ in range(3):
        gradient(X)
    with pytest.raises((np.linalg.LinAlgError, ValueError)), np.errstate(all="ignore"):
        gradient(np.array([800.0, 0.3, -0.2]))  # the amplitude is infinite


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3), (0, 4), (2, 3, 4, 4), (2, 1, 3)])
def test_diagonals(shape: tuple[int, ...], order: Any) -> None:
    x = np.asarray(RNG.integers(-9, 10, size=shape), float, order=order)  # whose sums are exact in any order
    for axes in ((0, 1), (-1, -2), (-2, 0)):
        if len({axis % x.ndim for axis in axes}) < 2:
            continue
        for offset in (-7, -1, 0, 2, 5):

            def f(x: Any, offset: int = offset, axes: Any = axes) -> Any:
                return np.diagonal(x, offset, *axes) * 2.0 + np.diagonal(np.transpose(x) * 3, offset, *axes).sum()

            expected = f(x)
            np.testing.assert_allclose(func.jit(f)(x), expected, rtol=1e-14)
            np.testing.assert_allclose(func.vmap(f)(np.stack([x, 2 * x]))[0], expected, rtol=1e-14)
            out, tangent = func.jvp(f, (x,), (x,))
            np.testing.assert_allclose(out, expected, rtol=1e-14)
            np.testing.assert_allclose(tangent, expected, rtol=1e-14)
            ct = RNG.normal(size=expected.shape)
            (pulled,) = func.vjp(f, x)[1](ct)
            np.testing.assert_allclose(np.sum(pulled * x), np.sum(ct * expected), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("place", ["factor", "diagonal", "solution"])
def test_writes_that_are_not_recorded(place: str) -> None:
    """They change numbers and no node: the saved value does not belong to the factor any more, in some calls."""

    def f(x: Any, number: float) -> Any:
        factor = np.linalg.cholesky(kernel(x))
        z = whitened(factor, B).copy()
        diagonal = np.diag(factor).copy()
        with func.no_grad():
            if number and place == "factor":
                factor[0, 0] = number
            elif number and place == "diagonal":
                diagonal[0] = number
            elif number:
                z[0] = number
        return z @ z + np.sum(np.log(diagonal)) + np.sum(np.diag(factor) ** 3)

    numbers = (0.0, 0.0, 0.0, 50.0, 50.0, 7.0, 50.0, 0.0)
    with func.config.override(compile_backward=False):
        expected = [func.grad(f)(X, number) for number in numbers]
    for number, wanted in zip(numbers, expected, strict=True):
        np.testing.assert_allclose(func.grad(f)(X, number), wanted, rtol=1e-9)
        x = func.tensor(X, requires_grad=True)
        f(x, number).backward()
        np.testing.assert_allclose(x.grad, wanted, rtol=1e-9)
