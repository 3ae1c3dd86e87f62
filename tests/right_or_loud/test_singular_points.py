"""Conventions at singular points: the first derivative follows them, further ones are right or NaN.

The machine of the same name enumerates composites; here is one row for each mechanism.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.spatial.distance as distances

import func

NAN = np.nan
ZERO, EQUAL = np.zeros(2), np.ones(2)
BOTH = np.array([[1.0, 2.0], [0.5, -1.0]])
HESSIANS: dict[str, Callable[[Callable[..., Any]], Callable[[Any], Any]]] = {
    "hessian": func.hessian,
    "reverse of reverse": lambda f: func.jacrev(func.grad(f)),
    "forward of forward": lambda f: func.jacfwd(func.jacfwd(f)),
    "reverse of forward": lambda f: func.jacrev(func.jacfwd(f)),
    "compiled": lambda f: func.jit(func.hessian(f)),
    "of a compiled function": lambda f: func.hessian(func.jit(f)),
    "of a checkpoint": lambda f: func.jacrev(func.grad(func.checkpoint(f))),
}


def written(x: Any) -> Any:
    size = np.abs(x)
    size[0] = 3 * size[0]
    return np.sum(size**2)


SQUARES: dict[str, tuple[Callable[[Any], Any], Any, Any]] = {
    "norm": (lambda x: np.linalg.norm(x) ** 2, ZERO, 2 * np.eye(2)),
    "np.square of a norm": (lambda x: np.square(np.linalg.norm(x)), ZERO, 2 * np.eye(2)),
    "norms of rows": (lambda x: np.sum(np.linalg.norm(np.stack([x, 2 * x]), axis=1) ** 2), ZERO, 10 * np.eye(2)),
    "scipy.linalg.norm": (lambda x: scipy.linalg.norm(x) ** 2, ZERO, 2 * np.eye(2)),
    "fourth power": (lambda x: np.linalg.norm(x) ** 4, ZERO, np.zeros((2, 2))),
    "Gaussian": (lambda x: np.exp(-(np.linalg.norm(x) ** 2)), ZERO, -2 * np.eye(2)),
    "hypot": (lambda x: np.hypot(x[0], x[1]) ** 2, ZERO, 2 * np.eye(2)),
    "abs": (lambda x: np.sum(np.abs(x) ** 2), ZERO, 2 * np.eye(2)),
    "complex modulus": (lambda x: np.abs(x[0] + 1j * x[1]) ** 2, ZERO, 2 * np.eye(2)),
    "std": (lambda x: np.std(x) ** 2, EQUAL, np.array([[0.5, -0.5], [-0.5, 0.5]])),
    "euclidean": (lambda x: distances.euclidean(x, np.ones(2)) ** 2, EQUAL, 2 * np.eye(2)),
    "cdist": (lambda x: np.trace(distances.cdist(BOTH + x, BOTH) ** 2), ZERO, 4 * np.eye(2)),
    "cubes of moduli": (lambda x: np.linalg.norm(np.concatenate([x, [1.0]]), 3), ZERO, np.zeros((2, 2))),
    "a write into a modulus": (written, np.array([2.0, 1.0]), np.diag([18.0, 2.0])),
}


@pytest.mark.parametrize("name", SQUARES)
def test_squares_of_norms_and_moduli_have_right_second_derivatives(name: str) -> None:
    f, x, expected = SQUARES[name]
    for mode, hessian in HESSIANS.items():
        np.testing.assert_allclose(hessian(f)(x), expected, atol=1e-12, err_msg=mode)
    np.testing.assert_allclose(func.laplacian(f)(x), np.trace(expected), atol=1e-12)


def test_a_norm_that_was_written_to_is_no_root() -> None:
    def f(t: Any) -> Any:
        length = np.linalg.norm(np.stack([3 * t, 4 * t])[None], axis=1)
        length += t
        return np.sum(length**2)

    assert func.grad(f)(1.0) == 72.0 and func.grad(func.grad(f))(1.0) == 72.0


NOT_MOVED: dict[str, tuple[Callable[[Any], Any], Any, Any]] = {
    "correlations of one variable": (lambda x: np.sum(np.corrcoef(x)), BOTH[0], np.zeros((2, 2))),
    "the diagonal of distances": (
        lambda x: np.sum(func.linalg.fiedler(x * x)),
        np.array([1.0, 2.0]),
        [[-4, 0], [0, 4]],
    ),
    "x to an array of zeros": (lambda x: np.sum(x ** np.zeros(2)), ZERO, np.zeros((2, 2))),
    "x to an array of ones": (lambda x: np.sum(x ** np.ones(2)), ZERO, np.zeros((2, 2))),
    "x to an array of twos": (lambda x: np.sum(x ** np.full(2, 2.0)), ZERO, 2 * np.eye(2)),
    "a partition of nothing": (lambda x: np.sum(x) + np.sum(np.partition(x[:0], 0)), ZERO, np.zeros((2, 2))),
}


@pytest.mark.parametrize("name", NOT_MOVED)
def test_what_does_not_move_is_no_singular_place(name: str) -> None:
    f, x, expected = NOT_MOVED[name]
    for mode, hessian in HESSIANS.items():
        np.testing.assert_allclose(hessian(f)(x), expected, atol=1e-12, err_msg=mode)


UNDETERMINED: dict[str, tuple[Callable[[Any], Any], Any, Any]] = {
    "cos of a norm": (lambda x: np.cos(np.linalg.norm(x)), ZERO, [[NAN, NAN], [NAN, NAN]]),
    "a modulus": (lambda x: np.sum(np.abs(x)), np.array([0.0, 3.0]), [[NAN, 0], [0, 0]]),
    "its product": (lambda x: np.sum(np.abs(x) * np.abs(x)), np.array([0.0, 3.0]), [[NAN, 0], [0, 2]]),
    "maximum": (lambda x: np.sum(np.maximum(x, -x) ** 2), np.array([0.0, 3.0]), [[NAN, 0], [0, 2]]),
    "a clipped square": (lambda x: np.sum(np.maximum(x * x, 0)), np.array([0.0, 3.0]), [[NAN, 0], [0, 2]]),
    "fmin": (lambda x: np.sum(np.fmin(x, -x) ** 2), np.array([0.0, 3.0]), [[NAN, 0], [0, 2]]),
    "max": (lambda x: np.sum(np.max(np.stack([x, -x]), axis=0) ** 2), np.array([0.0, 3.0]), [[NAN, 0], [0, 2]]),
    "running maximum": (
        lambda x: np.sum(np.maximum.accumulate(np.stack([x, -x]))[1] ** 2),
        np.array([0.0, 3.0]),
        [[NAN, 0], [0, 2]],
    ),
    "sort": (lambda x: np.sum(np.sort(np.stack([x * x, 0 * x]), axis=0)[0]), np.array([0.0, 3.0]), [[NAN, 0], [0, 0]]),
    "partition": (lambda x: np.partition(np.stack([x[0] ** 2, 0 * x[0], 9.0 + x[1]]), 1)[0], ZERO, [[NAN, 0], [0, 0]]),
    "sign": (lambda x: np.sum((x * np.sign(x)) ** 2), np.array([0.0, 3.0]), [[NAN, 0], [0, 2]]),
    "heaviside": (lambda x: np.sum(x * x * np.heaviside(x, 0.5)), np.array([0.0, 3.0]), [[NAN, 0], [0, 2]]),
    "singular values": (
        lambda x: np.sum(np.linalg.svd(np.diag(x), compute_uv=False) ** 2),
        np.array([0.0, 3.0]),
        [[NAN, NAN], [NAN, NAN]],
    ),
    "a modulus to the power 3/2": (lambda x: np.linalg.norm(np.append(x, 1.0), 1.5), ZERO, [[np.inf, 0], [0, np.inf]]),
    "power by both": (lambda x: x[0] ** x[1], np.array([0.0, 0.5]), None),
    "power by both, one": (lambda x: x[0] ** x[1], np.array([0.0, 1.0]), None),
}


@pytest.mark.parametrize("name", UNDETERMINED)
def test_a_convention_has_no_further_derivative(name: str) -> None:
    """NaN at the place of the convention, numbers elsewhere; None: elements off the diagonal are not finite."""
    f, x, expected = UNDETERMINED[name]
    for mode, hessian in HESSIANS.items():
        with np.errstate(all="ignore"):
            got = hessian(f)(x)
        if expected is None:
            assert not np.isfinite(got[0, 1]) and not np.isfinite(got[1, 0]), mode
        else:
            np.testing.assert_allclose(got, expected, atol=1e-12, err_msg=mode)
    assert not np.isnan(func.grad(f)(x)).any()


def test_two_singular_values_of_zero_have_no_second_derivative() -> None:
    def f(t: Any) -> Any:
        return np.sum(np.linalg.svd(t * BOTH, compute_uv=False) ** 2)

    assert func.grad(f)(0.0) == 0 and np.isnan(func.grad(func.grad(f))(0.0)) and np.isnan(func.laplacian(f)(0.0))


def test_laplacians_and_taylor_mode_follow_conventions_once() -> None:
    def f(t: Any) -> Any:
        return (t * np.sign(t)) ** 2

    assert np.isnan(func.laplacian(f)(0.0)) and np.isnan(func.derivatives(f, 2)(0.0)[2])
    ordered = func.derivatives(lambda t: np.sort(np.stack([t * t, 0 * t]))[0], 2)(0.0)
    assert ordered[1] == 0 and np.isnan(ordered[2])


def test_a_mask_keeps_undetermined_elements_out() -> None:
    x = np.array([0.0, 2.0])
    for f in (lambda x: np.sum(np.where(x > 0, np.abs(x) ** 3, 0.0)), lambda x: np.maximum(x, 0)[1] ** 3):
        np.testing.assert_array_equal(func.hessian(f)(x), [[0, 0], [0, 12]])
        np.testing.assert_array_equal(func.jit(func.hessian(f))(x), [[0, 0], [0, 12]])


def test_moduli_at_infinity() -> None:
    with np.errstate(all="ignore"):
        for gradient in (func.grad(np.abs), func.jit(func.grad(np.abs))):
            assert gradient(np.inf + 0j) == 1 and gradient(complex(-np.inf, 3)) == -1
            assert np.isnan(gradient(complex(np.inf, np.inf)))
        assert func.jvp(np.hypot, (np.inf, 2.0), (1.0, 1.0))[1] == 1


SLOPE = np.array([[1.0, 0.4, 0.3, -0.2], [0.4, 0.5, 0.7, 0.1], [0.3, 0.7, -0.6, 0.9], [-0.2, 0.1, 0.9, 0.2]])
TURN = np.triu(np.ones((4, 4)), 1) - np.tril(np.ones((4, 4)), -1)
SPECTRUM = np.diag([0.5, 3.0, 5.0, 5.0 + 1e-15])


def by_perturbation(slope: Any) -> list[float]:
    """The derivatives of the smallest eigenvalue by perturbation theory, of orders one to three."""
    a, rest = slope, np.diag(1 / (0.5 - np.diag(SPECTRUM)[1:]))
    side, inner = a[1:, 0], a[1:, 1:]
    second = side.conj() @ rest @ side
    third = side.conj() @ rest @ (inner - a[0, 0] * np.eye(3)) @ rest @ side
    return [float(np.real(x)) for x in (a[0, 0], 2 * second, 6 * third)]


@pytest.mark.parametrize("is_complex", [False, True], ids=["real", "complex"])
def test_simple_eigenvalues_beside_equal_ones_have_derivatives_of_every_order(is_complex: bool) -> None:
    slope = SLOPE + 1j * TURN if is_complex else SLOPE
    expected = by_perturbation(slope)
    for values in (np.linalg.eigvalsh, lambda a: np.linalg.eigh(a)[0], lambda a: scipy.linalg.eigh(a, driver="ev")[0]):

        def f(t: Any, values: Callable[[Any], Any] = values) -> Any:
            return values(SPECTRUM + t * slope)[0]

        third = func.grad(func.grad(func.grad(f)))
        np.testing.assert_allclose(func.derivatives(f, 3)(0.0)[1:], expected, rtol=1e-10)
        np.testing.assert_allclose([third(0.0), func.jit(third)(0.0)], expected[2], rtol=1e-10)
        assert np.isnan(func.derivatives(lambda t, values=values: values(SPECTRUM + t * slope)[3], 2)(0.0)[2])


def test_a_few_simple_eigenvalues_of_a_tridiagonal_matrix() -> None:
    """Of a chain of two parts, the first of which has the eigenvalues 1 and 4, and two equal ones besides."""

    def f(t: Any) -> Any:
        diagonal = np.array([2.0, 3.0, 6.0, 6.0]) + t * np.array([1.0, 0.0, 0.5, 0.5])
        return scipy.linalg.eigh_tridiagonal(diagonal, [np.sqrt(2), 0, 0], select="i", select_range=(0, 1))[0][0]

    expected = func.derivatives(lambda t: (5 + t) / 2 - np.sqrt((1 - t) ** 2 / 4 + 2), 4)(0.0)
    np.testing.assert_allclose(func.derivatives(f, 4)(0.0), expected, rtol=1e-10)


@pytest.mark.parametrize("triangle", ["L", "U"])
def test_phases_of_vectors_of_either_triangle(triangle: Any) -> None:
    """LAPACK keeps the first row real for the lower triangle, and the last one for the upper."""
    start = np.diag([1.0, 2.0, 4.0]) + 0.3 * (SLOPE + 1j * TURN)[:3, :3]

    def f(t: Any) -> Any:
        vectors = np.linalg.eigh(start + t * (SLOPE + 2j * TURN)[1:, 1:], UPLO=triangle)[1]
        return np.real(vectors[1, 1] * (1 + 2j) + vectors[0, 2] + vectors[2, 2])

    expected = (8 * (f(1e-3) - f(-1e-3)) - (f(2e-3) - f(-2e-3))) / 12e-3
    np.testing.assert_allclose([func.grad(f)(0.0), func.jvp(f, (0.0,), (1.0,))[1]], expected, rtol=1e-6)


def test_powers_of_norms_keep_their_derivatives() -> None:
    """At points that are not singular, and the third derivative of |x|³ at zero, which jumps."""

    def f(t: Any) -> Any:
        return np.linalg.norm(np.stack([3 * t, 4 * t])) ** 4

    np.testing.assert_allclose([func.grad(f)(1.0), func.jit(func.grad(func.grad(f)))(1.0)], [2500.0, 7500.0])
    cube = func.derivatives(lambda t: np.linalg.norm(np.stack([t, 1 + 0 * t]), 3), 3)(0.0)
    assert cube[1] == cube[2] == 0 and np.isnan(cube[3])


def test_a_product_with_a_sign_has_no_second_derivative_in_compiled_gradients() -> None:
    """A compiled gradient that is differentiated again runs with structural zeros, which a sign of zero is not."""
    for piece in (np.sign, lambda t: 2 * np.heaviside(t, 0.5) - 1):

        def f(t: Any, piece: Callable[[Any], Any] = piece) -> Any:
            return (t * piece(t)) * np.sin(t * piece(t))

        assert np.isnan(func.grad(func.jit(func.grad(f)))(0.0))


@pytest.mark.parametrize("write", [lambda n: n * n, lambda n: np.power(n, 2), lambda n: np.float_power(n, 2.0)])
def test_squares_of_norms_however_written(write: Callable[[Any], Any]) -> None:
    for norm in (np.linalg.norm, lambda x: np.hypot(x[0], x[1]), np.abs):

        def f(x: Any, norm: Callable[[Any], Any] = norm) -> Any:
            return np.sum(write(norm(x)))

        for mode, hessian in HESSIANS.items():
            np.testing.assert_allclose(hessian(f)(ZERO), 2 * np.eye(2), err_msg=mode)


def test_ties_over_a_batch_have_no_second_derivative() -> None:
    def second(sign: Any) -> Any:
        return func.grad(func.grad(lambda t: func.collectives.pmax(sign * t, "i") ** 2))(0.0)

    assert np.isnan(func.vmap(second, axis_name="i")(np.array([1.0, -1.0]))).all()


@pytest.mark.parametrize("order", ["xxy", "xyx", "yxx", "yyx", "xyy"])
def test_mixed_derivatives_of_powers_of_zero(order: str) -> None:
    """Zero where the limit is zero, and never a number where it is infinite."""
    derivative: Any = lambda x, y: x**y  # noqa: E731
    for variable in order:
        derivative = func.grad(derivative, "xy".index(variable))
    with np.errstate(all="ignore"):
        for y in (0.5, 1.0, 1.5, 2.0, 3.0):
            is_smooth = y > order.count("x")
            assert derivative(0.0, y) == 0 if is_smooth else not np.isfinite(derivative(0.0, y)), y


TURNED = np.eye(4) + 0.2 * TURN @ SLOPE
SIMPLE: dict[str, Callable[[Any], Any]] = {
    "eigvals": lambda a: np.real(np.linalg.eigvals(TURNED @ a @ np.linalg.inv(TURNED))),
    "eig": lambda a: np.real(np.linalg.eig(TURNED @ a @ np.linalg.inv(TURNED))[0]),
    "pencil": lambda a: scipy.linalg.eigh(TURNED.T @ a @ TURNED, TURNED.T @ TURNED)[0],
    "product": lambda a: scipy.linalg.eigh(TURNED.T @ a @ TURNED, np.linalg.inv(TURNED.T @ TURNED), type=2)[0],
}


@pytest.mark.parametrize("name", SIMPLE)
def test_simple_eigenvalues_of_other_problems_have_derivatives_of_every_order(name: str) -> None:
    def f(t: Any) -> Any:
        w = SIMPLE[name](SPECTRUM + t * SLOPE)
        return w[int(np.argmin(np.abs(SIMPLE[name](SPECTRUM) - 0.5)))]

    third = func.grad(func.grad(func.grad(f)))
    np.testing.assert_allclose(func.derivatives(f, 3)(0.0)[1:], by_perturbation(SLOPE), rtol=1e-8)
    np.testing.assert_allclose([third(0.0), func.jit(third)(0.0)], by_perturbation(SLOPE)[2], rtol=1e-8)


def test_a_simple_eigenvalue_of_a_band() -> None:
    def f(t: Any) -> Any:
        band = np.stack([np.array([0.5, 3.0, 5.0, 5.0]) + t, np.array([t, t, t, 0 * t])])
        return scipy.linalg.eig_banded(band, lower=True, eigvals_only=True)[0]

    change = np.eye(4) + np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1)
    np.testing.assert_allclose(func.derivatives(f, 3)(0.0)[1:], by_perturbation(change), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("kind", [1, 2, 3])
def test_a_simple_vector_of_a_pencil_stays_of_length_one(kind: int) -> None:
    metric = TURNED.T @ TURNED
    start = TURNED.T @ SPECTRUM @ TURNED if kind == 1 else np.linalg.inv(TURNED) @ SPECTRUM @ np.linalg.inv(TURNED).T

    def f(t: Any) -> Any:
        vectors = scipy.linalg.eigh(start + t * SLOPE, metric + t * (SLOPE @ SLOPE), type=kind)[1]
        return vectors[1, 0] ** 2 + vectors[0, 0] * vectors[2, 0]

    h = 1e-3
    steps = [f(k * h) for k in (-2, -1, 0, 1, 2)]
    first = np.dot([1, -8, 0, 8, -1], steps) / (12 * h)
    second = np.dot([-1, 16, -30, 16, -1], steps) / (12 * h * h)
    np.testing.assert_allclose(func.derivatives(f, 2)(0.0)[1:], [first, second], rtol=1e-4, atol=1e-4)
