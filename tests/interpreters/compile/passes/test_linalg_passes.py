"""Linear algebra passes: closed forms of the Cholesky pullback, rules for solves, shared LU factorizations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import func
from func.interpreters.compile.passes import optimize
from func.interpreters.program.program import Program

RNG = np.random.default_rng(3)
POINTS = 40
T = np.array([0.1, -0.2, 0.3])
X = RNG.normal(size=(POINTS, 2))
Y = RNG.normal(size=POINTS)
HERMITIAN = RNG.normal(size=(POINTS, POINTS)) + 1j * RNG.normal(size=(POINTS, POINTS))
HERMITIAN = HERMITIAN @ HERMITIAN.conj().T + np.eye(POINTS)


def agree(function: Callable[..., Any], *args: Any, rtol: float = 1e-8) -> Program:
    """Check that the optimised program and jit compute what the function computes, and return the program."""
    program = func.make_program(function)(*args)
    after = optimize(program)
    after.check()
    for before, now in zip(program.run(args), after.run(args), strict=True):
        np.testing.assert_allclose(now, before, rtol=rtol, atol=rtol * np.max(np.abs(before), initial=0))
        assert now.dtype == before.dtype
    expected = function(*args)
    for want, got in zip(func.tree.leaves(expected), func.tree.leaves(func.jit(function)(*args)), strict=True):
        np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol * np.max(np.abs(want), initial=0))
    return after


def count(program: Program, primitive: str, size: int = 0) -> int:
    """How many equations of a primitive have outputs of at least this size."""
    return len([e for e in program.equations if e.primitive.name == primitive and e.outputs[0].size >= size])


def kernel(t: Any, x: Any) -> Any:
    distances = np.sum((x[:, None] - x[None]) ** 2, axis=-1)
    return np.exp(t[0] - distances / np.exp(t[1])) + np.exp(t[2]) * np.eye(len(x))


def by_solve(t: Any, x: Any, y: Any) -> Any:
    factor = np.linalg.cholesky(kernel(t, x))
    white = np.linalg.solve(factor, y)
    return 0.5 * np.sum(white * white) + np.sum(np.log(np.diag(factor)))


def by_triangular_solve(t: Any, x: Any, y: Any) -> Any:
    factor = np.linalg.cholesky(kernel(t, x))
    white = func.linalg.solve_triangular(factor, y, lower=True)
    return 0.5 * white @ white + 0.5 * np.sum(2 * np.log(np.diagonal(factor)))


def by_cho_solve(t: Any, x: Any, y: Any) -> Any:
    factor = func.linalg.cho_factor(kernel(t, x), lower=True)
    return 0.5 * y @ func.linalg.cho_solve(factor, y) + np.log(np.diag(factor[0])).sum() + 0.5 * len(y) * np.log(2.0)


def by_two_solves(t: Any, x: Any, y: Any) -> Any:
    factor = np.linalg.cholesky(kernel(t, x))
    white = func.linalg.solve_triangular(factor, y, lower=True)
    return 0.5 * y @ func.linalg.solve_triangular(factor.T, white) + np.sum(np.log(np.diag(factor)))


def by_general_solves(t: Any, x: Any, y: Any) -> Any:
    factor = np.linalg.cholesky(kernel(t, x))
    return 0.5 * y @ np.linalg.solve(factor.T, np.linalg.solve(factor, y)) + np.sum(np.log(np.diag(factor)))


def by_upper_factor(t: Any, x: Any, y: Any) -> Any:
    factor = np.linalg.cholesky(kernel(t, x), upper=True)
    white = func.linalg.solve_triangular(factor, y, trans="T")
    return 0.5 * np.sum(white**2) + np.sum(np.log(np.diag(factor)))


def scaled_by_parameters(t: Any, x: Any, y: Any) -> Any:
    return np.exp(t[1]) * by_cho_solve(t, x, y) ** 2


LIKELIHOODS = [
    by_solve,
    by_triangular_solve,
    by_cho_solve,
    by_two_solves,
    by_general_solves,
    by_upper_factor,
    scaled_by_parameters,
]


def check_closed(program: Program, stack: int = 1) -> None:
    """The program has one Cholesky factorization, one inverse from it, and no other equation of cubic cost."""
    assert count(program, "cholesky") == 1
    assert count(program, "cholesky_inverse") == 1
    assert count(program, "solve") == 0
    assert count(program, "triangular_solve", stack * POINTS**2) == 0


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("columns", [(), (3,)])
def test_likelihoods_have_a_closed_form(likelihood: Callable[..., Any], columns: tuple[int, ...]) -> None:
    y = RNG.normal(size=(POINTS, *columns))

    def loss(t: Any, x: Any, y: Any) -> Any:
        if not columns:
            return likelihood(t, x, y)
        return sum([likelihood(t, x, y[:, i]) for i in range(columns[0])])

    check_closed(agree(func.grad(loss), T, X, y))
    check_closed(agree(func.value_and_grad(loss, argnums=(0, 1, 2)), T, X, y))


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_stacks_have_a_closed_form(likelihood: Callable[..., Any]) -> None:
    stack = np.stack([T, T + 0.1, T - 0.2])
    program = agree(func.vmap(func.grad(likelihood), in_dims=(0, None, None)), stack, X, Y)
    check_closed(program, 3)


def test_hermitian_matrices() -> None:
    y = RNG.normal(size=POINTS) + 1j * RNG.normal(size=POINTS)

    def loss(a: Any, y: Any) -> Any:
        factor = np.linalg.cholesky(a)
        white = np.linalg.solve(factor, y)
        return np.sum((white * np.conj(white)).real) + np.sum(np.log(np.diag(factor).real))

    check_closed(agree(func.grad(loss), HERMITIAN, y))


def test_single_precision() -> None:
    args = [a.astype(np.float32) for a in (T, X, Y)]
    check_closed(agree(func.grad(by_cho_solve), *args, rtol=2e-3))


@pytest.mark.parametrize(
    "loss",
    [
        lambda a: np.sum(np.sin(np.linalg.cholesky(a))),
        lambda a: np.sum(np.linalg.cholesky(a) ** 2) + np.sum(np.log(np.diag(np.linalg.cholesky(a)))),
        lambda a: np.sum(np.sqrt(np.diag(np.linalg.cholesky(a)))),
        lambda a: np.sum(np.arange(POINTS) * np.log(np.diag(np.linalg.cholesky(a)))),
        lambda a: np.sum(np.sin(func.linalg.solve_triangular(np.linalg.cholesky(a), Y, lower=True))),
        lambda a: np.sum(np.linalg.inv(np.linalg.cholesky(a)) ** 2),
        lambda a: np.sum(np.log(np.diag(np.linalg.cholesky(a))[::-1])),
        lambda a: Y @ np.linalg.cholesky(a) @ Y,
        lambda a: Y @ func.linalg.solve_triangular(np.linalg.cholesky(a), Y, lower=True),
    ],
)
def test_other_cotangents_keep_the_general_form(loss: Callable[..., Any]) -> None:
    matrix = HERMITIAN.real + POINTS * np.eye(POINTS)
    agree(func.grad(loss), matrix)
    agree(func.grad(lambda a: loss(a @ a.T)), matrix / POINTS)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_tiny_matrices(n: int) -> None:
    agree(func.grad(by_cho_solve), T, X[:n], Y[:n])


def test_second_derivatives() -> None:
    agree(func.hessian(by_cho_solve), T, X, Y)
    agree(lambda t, v: func.jvp(func.grad(lambda t: by_solve(t, X, Y)), (t,), (v,))[1], T, np.ones(3))


def test_not_positive_definite() -> None:
    gradient = func.jit(func.grad(lambda a: np.sum(np.log(np.diag(np.linalg.cholesky(a))))))
    with pytest.raises(np.linalg.LinAlgError, match="Matrix is not positive definite"):
        np.linalg.cholesky(-np.eye(POINTS))
    with pytest.raises(np.linalg.LinAlgError, match="Matrix is not positive definite"):
        gradient(-np.eye(POINTS))
    with pytest.raises(np.linalg.LinAlgError, match="Matrix is not positive definite"):
        gradient(-np.ones((2, 2)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("order", ["C", "F"])
def test_compiled_factors(dtype: Any, order: Any) -> None:
    matrix = (HERMITIAN if np.dtype(dtype).kind == "c" else HERMITIAN.real).astype(dtype, order=order)
    np.testing.assert_allclose(
        func.jit(np.linalg.cholesky)(matrix), np.linalg.cholesky(matrix), rtol=1e-4, atol=1e-4 * POINTS
    )


GENERAL = RNG.normal(size=(POINTS, POINTS)) + 3 * np.eye(POINTS)


@pytest.mark.parametrize(
    "loss",
    [
        lambda a, y: 0.5 * y @ np.linalg.solve(a, y) + 0.5 * np.linalg.slogdet(a)[1],
        lambda a, y: 0.5 * y @ np.linalg.inv(a) @ y + 0.5 * np.linalg.slogdet(a)[1],
        lambda a, y: np.sum(np.linalg.solve(a, np.linalg.solve(a, y)) ** 2) + np.linalg.slogdet(a)[0],
        lambda a, y: np.sum(np.linalg.solve(a.T, y)) * np.sum(np.linalg.inv(a)),
    ],
)
@pytest.mark.parametrize("is_complex", [False, True])
def test_a_matrix_is_factored_once(loss: Callable[..., Any], is_complex: bool) -> None:
    a = GENERAL + 0.5j * GENERAL[::-1] if is_complex else GENERAL
    program = agree(func.value_and_grad(lambda a, y: np.real(loss(a, y))), a, Y)
    if not is_complex:
        assert count(program, "lu_factors") == 1
        assert count(program, "factored_inverse") <= 1
    for primitive in ("solve", "inv", "slogdet"):
        assert count(program, primitive) == 0 or is_complex
    agree(func.vmap(lambda a: np.real(loss(a, Y))), np.stack([a, a + 0.1]))


def test_singular_matrices_behave_as_without_shared_factors() -> None:
    singular = np.ones((POINTS, POINTS))
    gradient = func.grad(lambda a: np.linalg.slogdet(a)[1] * 2 + 0 * np.linalg.slogdet(a)[0])
    np.testing.assert_array_equal(func.jit(gradient)(singular), gradient(singular))
    both = func.jit(lambda a: (np.linalg.slogdet(a), np.linalg.solve(a, Y)))
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        both(singular)
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        func.jit(lambda a: (np.linalg.slogdet(a), np.linalg.inv(a)))(singular)


SIGNED_ZEROS: dict[str, Callable[[Any, Any], Any]] = {
    "a constant of two zeros": lambda a, b: np.linalg.solve(a, b * np.array([0.0, -0.0])),
    "a constant zero": lambda a, b: np.linalg.solve(a, b * -0.0),
    "a difference": lambda a, b: np.linalg.solve(a, b + -b),
    "a triangle": lambda a, b: scipy.linalg.solve_triangular(a, b * np.array([0.0, -0.0])),
    "a factored matrix": lambda a, b: scipy.linalg.cho_solve(scipy.linalg.cho_factor(a), b * np.array([0.0, -0.0])),
    "infinite sides": lambda a, b: np.linalg.solve(a, b * np.inf),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("compiler", ["numpy", "llvm"])
@pytest.mark.parametrize("name", SIGNED_ZEROS)
def test_zeros_and_infinities_are_no_factors(name: str, compiler: Any) -> None:
    program = SIGNED_ZEROS[name]
    a, b = np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([1.0, -2.0])
    expected, got = program(a, b), func.jit(program, compiler=compiler)(a, b)
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(expected))
