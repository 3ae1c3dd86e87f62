"""Coefficients that are zero, or one, have derivatives where NumPy's and SciPy's code drops them or skips a division.

Also functions of eigenvalues together with their vectors where eigenvalues are equal: right, or not finite.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.signal
from numpy.polynomial import Chebyshev, Hermite, Laguerre, Legendre, Polynomial, chebyshev, laguerre, polynomial

import func

ANALOG = np.array([1.0, 0.2, 0.2])
PAST = np.array([7.0, 5.0, 4.0, 2.0])
OF_ONE: dict[str, tuple[Callable[[Any], Any], float]] = {
    "std of one number": (np.std, 3.5),
    "std along an axis of one": (lambda x: np.sum(np.std(np.reshape(x * np.ones(3), (3, 1)), axis=1)), 3.5),
    **{
        f"sum of {kind.__name__}": (lambda c, kind=kind: (kind([1.0, c]) + kind([0.0, 1.0]))(2.0), -1.0)
        for kind in (Polynomial, Chebyshev, Hermite, Laguerre, Legendre)
    },
    "difference": (lambda c: (Chebyshev([1.0, c]) - Chebyshev([0.0, 1.0]))(2.0), 1.0),
    "product": (lambda c: (Polynomial([1.0, c]) * Polynomial([1.0, 1.0]))(2.0), 0.0),
    "power": (lambda c: (Polynomial([1.0, 1.0, c]) ** 2)(3.0), 0.0),
    "converted": (lambda c: Polynomial([1.0, 1.0, c]).convert(kind=Chebyshev)(3.0), 0.0),
    "composed": (lambda c: Polynomial([1.0, 1.0, c])(Polynomial([1.0, 2.0]))(3.0), 0.0),
    "polyadd": (lambda c: polynomial.polyval(2.0, polynomial.polyadd([1.0, c], [0.0, 1.0])), -1.0),
    "remainder": (lambda c: polynomial.polyval(3.0, polynomial.polydiv([c, 1.0, 1.0], [0.5, 1.0])[1]), 0.0),
    "quotient": (lambda c: polynomial.polyval(3.0, polynomial.polydiv([1.0, 1.0, c], [0.5, 1.0])[0]), 0.0),
    "polyint": (lambda c: np.sum(polynomial.polyint([c])), 0.0),
    "chebmulx": (lambda c: np.sum(chebyshev.chebmulx([c])), 0.0),
    "lagline": (lambda c: polynomial.polyval(3.0, laguerre.lagline(1.0, c)), 0.0),
    "poly1d": (lambda c: (np.poly1d([c, 1.0]) + np.poly1d([1.0, 0.0]))(2.0), -1.0),
    "polymul": (lambda c: np.polyval(np.polymul([c, 1.0], [1.0, 1.0]), 2.0), 0.0),
    "polydiv": (lambda c: np.polyval(np.polydiv([1.0, 1.0, c], [1.0, 1.0])[1], 3.0), 0.0),
    "lfiltic": (lambda c: np.sum(scipy.signal.lfiltic([0.5, 1.0], np.stack([c, 0.3]), PAST, PAST)), 1.0),
    "bilinear": (lambda c: np.sum(scipy.signal.bilinear(np.stack([1.0, c, 0.2]), ANALOG, 0.5)[0] ** 2), 0.0),
    "bilinear, leading": (lambda c: np.sum(scipy.signal.bilinear(np.stack([c, 0.2]), ANALOG, 0.5)[0] ** 2), 0.0),
}
MODES: dict[str, Callable[[Callable[[Any], Any], float], Any]] = {
    "grad": lambda f, x: func.grad(f)(x),
    "jvp": lambda f, x: func.jvp(f, (x,), (1.0,))[1],
    "grad of jit": lambda f, x: func.grad(func.jit(f))(x),
    "jit of grad": lambda f, x: func.jit(func.grad(f))(x),
    "vmap of grad": lambda f, x: func.vmap(func.grad(f))(np.array([x, x]))[1],
}


@pytest.mark.filterwarnings("ignore::scipy.signal.BadCoefficients")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", OF_ONE)
def test_derivatives_by_a_coefficient_that_vanishes(name: str, mode: str) -> None:
    f, x = OF_ONE[name]
    step = 1e-4
    truth = (float(f(x + step)) - float(f(x - step))) / (2 * step)
    np.testing.assert_allclose(MODES[mode](f, x), truth, rtol=1e-6, atol=1e-9)


def test_a_standard_deviation_of_one_number_is_constant_to_every_order() -> None:
    for order in range(4):
        assert func.derivatives(np.std, 3)(2.0)[order] == 0.0
    with np.errstate(invalid="ignore"):
        assert np.isnan(func.value_and_grad(np.std)(np.inf)[0])


@pytest.mark.parametrize("coefficients", [*itertools.product([0.0, 1.0, -2.0, 0.5], repeat=4)])
def test_roots_have_their_slopes_by_all_coefficients(coefficients: tuple[float, ...]) -> None:
    p = np.array(coefficients)
    expected = np.roots(p)
    gaps = [abs(a - b) for a, b in itertools.combinations(expected, 2)]
    if min(gaps, default=1.0) < 1e-6 or not len(expected):
        pytest.skip("equal roots, or none")
    powers = expected[:, None] ** np.arange(3, -1, -1)
    slopes = -powers / np.polyval(np.polyder(p), expected)[:, None]
    for roots in (np.roots, func.jit(np.roots)):
        for place, direction in enumerate(np.eye(4)):
            value, tangent = func.jvp(roots, (p,), (direction,))
            np.testing.assert_allclose(value, expected, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(tangent, slopes[:, place], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("p", [[1.0, 0.0, 0.0], [2.0, 0.0, 0.0, 0.0], [1.0, -2.0, 1.0, 0.0]])
def test_equal_roots_have_no_finite_slope(p: list[float]) -> None:
    try:
        slopes = func.jacobian(lambda p: np.real(np.roots(p)))(np.array(p))
    except np.linalg.LinAlgError:
        return
    assert not np.any(np.isfinite(slopes[-1]) & (slopes[-1] != 0))


RNG = np.random.default_rng(0)
WEIGHTS = RNG.normal(size=(3, 3))
TURN = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
EQUAL = {
    "identity": np.eye(3),
    "two equal": np.diag([2.0, 2.0, 3.0]),
    "two equal, turned": TURN @ np.diag([2.0, 2.0, 3.0]) @ TURN.T,
}


def of_eigh(g: Callable[[Any], Any], decomposed: Callable[[Any], Any] = np.linalg.eigh) -> Callable[[Any], Any]:
    def f(a: Any) -> Any:
        w, v = decomposed((a + a.T) / 2)
        return np.sum(WEIGHTS * np.real((v * g(w)) @ np.conj(v).T))

    return f


def of_band(a: Any) -> Any:
    return scipy.linalg.eig_banded(np.stack([np.append(np.diag(a, -k), np.zeros(k)) for k in range(3)]), lower=True)


def of_schur(a: Any) -> Any:
    t, z = scipy.linalg.schur(a)
    return np.diag(t), z


def of_eig(a: Any) -> Any:
    w, v = np.linalg.eig(a)
    return np.sum(WEIGHTS * np.real((v * np.exp(w)) @ np.linalg.inv(v)))


def of_svd(a: Any) -> Any:
    u, s, vh = np.linalg.svd(a)
    return np.sum(WEIGHTS * ((u * np.sqrt(s)) @ vh))


DECOMPOSED: dict[str, Callable[[Any], Any]] = {
    "phases": lambda a: np.linalg.eigh(a + 0j),
    "scipy": scipy.linalg.eigh,
    "driver": lambda a: scipy.linalg.eigh(a, driver="evr"),
    "pencil": lambda a: scipy.linalg.eigh(a, np.eye(3)),
    "kind 2": lambda a: scipy.linalg.eigh(a, np.eye(3), type=2),
    "pencil that moves": lambda a: scipy.linalg.eigh(np.eye(3), a),
    "band": of_band,
}
OF_BOTH = {
    **{name: of_eigh(np.exp, decomposed) for name, decomposed in DECOMPOSED.items()},
    "eigh": of_eigh(lambda w: w), "sqrt": of_eigh(np.sqrt), "eig": of_eig, "svd": of_svd,
}  # fmt: skip
BY_SCHUR = of_eigh(np.exp, of_schur)
DETERMINED: dict[str, Callable[[Any], Any]] = {
    "polar": lambda a: np.sum(WEIGHTS * scipy.linalg.polar(a)[1] ** 2),
    "polar from the left": lambda a: np.sum(WEIGHTS * scipy.linalg.polar(a, side="left")[1] ** 2),
    "U Vh": lambda a: np.sum(WEIGHTS * (np.linalg.svd(a)[0] @ np.linalg.svd(a)[2])),
    "sqrtm": lambda a: np.sum(WEIGHTS * np.real(scipy.linalg.sqrtm(a))),
    "trace of exp": lambda a: np.sum(np.exp(np.linalg.eigh((a + a.T) / 2)[0])),
}


def slopes_of(f: Callable[[Any], Any], a: np.ndarray[Any, Any], step: float = 1e-5) -> np.ndarray[Any, Any]:
    moves = [step * np.reshape(row, a.shape) for row in np.eye(a.size)]
    return np.reshape([(f(a + move) - f(a - move)) / (2 * step) for move in moves], a.shape)


@pytest.mark.parametrize("at", EQUAL)
@pytest.mark.parametrize("name", OF_BOTH)
def test_gradients_of_eigenvalues_with_their_vectors_are_right_or_not_finite(name: str, at: str) -> None:
    f, a = OF_BOTH[name], EQUAL[at]
    for gradient in (func.grad(f), func.jit(func.grad(f))):
        assert np.all(np.isnan(gradient(a)))
    apart = a + np.diag([0.0, 0.3, 0.7])
    np.testing.assert_allclose(func.grad(f)(apart), slopes_of(f, apart), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("at", EQUAL)
@pytest.mark.parametrize("name", OF_BOTH)
def test_forward_mode_marks_eigenvalues_with_their_vectors(name: str, at: str) -> None:
    """Each direction that equal eigenvalues see as multiples of 1 alone is right; others are NaN."""
    f, a = OF_BOTH[name], EQUAL[at]
    expected = slopes_of(f, a)
    for slopes in (func.jacfwd(f)(a), func.jit(func.jacfwd(f))(a)):
        is_lost = np.isnan(slopes)
        assert np.any(is_lost)
        assert np.any(~is_lost) or "turned" in at
        np.testing.assert_allclose(slopes[~is_lost], expected[~is_lost], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("at", EQUAL)
def test_real_schur_forms_with_their_vectors_are_right_or_not_finite(at: str) -> None:
    """Compiled code does not know that they have no blocks."""
    a = EQUAL[at]
    assert np.all(np.isnan(func.grad(BY_SCHUR)(a)))
    slopes = func.jacfwd(BY_SCHUR)(a)
    np.testing.assert_allclose(slopes[~np.isnan(slopes)], slopes_of(BY_SCHUR, a)[~np.isnan(slopes)], 1e-5, 1e-6)


def test_tridiagonal_eigenvalues_with_their_vectors_are_right_or_not_finite() -> None:
    def f(side: Any) -> Any:
        w, v = scipy.linalg.eigh_tridiagonal(np.array([2.0, 2.0, 3.0]), side)
        return ((v * np.exp(w)) @ v.T)[0, 1]

    assert np.isnan(func.grad(f)(np.zeros(2))[0])
    assert np.isnan(func.jacfwd(f)(np.zeros(2))[0])


@pytest.mark.parametrize("a", [np.diag([3.0, 2.0, 0.0]), np.diag([3.0, 0.0, 0.0]), np.zeros((3, 3))], ids=str)
def test_singular_matrices_of_their_own_vectors(a: np.ndarray[Any, Any]) -> None:
    """U S Vh is the matrix, whose derivative singular values of zero leave out."""

    def f(a: Any) -> Any:
        u, s, vh = np.linalg.svd(a)
        return np.sum(WEIGHTS * ((u * s) @ vh))

    assert np.all(np.isnan(func.grad(f)(a)))
    slopes = func.jacfwd(f)(a)
    np.testing.assert_allclose(slopes[~np.isnan(slopes)], WEIGHTS[~np.isnan(slopes)])
    truncated = func.grad(lambda a: np.sum(np.linalg.svd(a)[0][:, :1] ** 2 * np.linalg.svd(a)[1][:1]))
    assert np.all(np.isfinite(truncated(a))) or not a.any()


def test_vectors_of_one_eigenspace_by_another_batch_element() -> None:
    """Elements of a batch without equal eigenvalues keep their derivatives."""
    f = OF_BOTH["eigh"]
    batch = np.stack([np.eye(3), np.diag([1.0, 2.0, 4.0])])
    first, second = func.vmap(func.grad(f))(batch)
    assert np.all(np.isnan(first))
    np.testing.assert_allclose(second, slopes_of(f, batch[1]), rtol=1e-5, atol=1e-6)
    hessians = func.vmap(func.hessian(f))(batch)
    assert np.all(np.isfinite(hessians[1]))
    np.testing.assert_allclose(hessians[1], func.hessian(f)(batch[1]))


@pytest.mark.parametrize("at", EQUAL)
@pytest.mark.parametrize("name", ["polar", "polar from the left", "sqrtm", "trace of exp"])
def test_forward_mode_of_what_equal_eigenvalues_determine(name: str, at: str) -> None:
    f, a = DETERMINED[name], EQUAL[at]
    np.testing.assert_allclose(func.jacfwd(f)(a), slopes_of(f, a), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("at", EQUAL)
@pytest.mark.parametrize("name", DETERMINED)
def test_gradients_that_equal_eigenvalues_determine(name: str, at: str) -> None:
    f, a = DETERMINED[name], EQUAL[at]
    for gradient in (func.grad(f), func.jit(func.grad(f))):
        np.testing.assert_allclose(gradient(a), slopes_of(f, a), rtol=1e-5, atol=1e-6)


def test_eigenvalues_beside_a_defective_pair() -> None:
    a, change = np.array([[2.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]), np.outer([1.0, 0.0, 0.0], [0, 0, 1.0])
    for values in (np.linalg.eigvals, lambda a: np.linalg.eig(a)[0]):
        assert np.isnan(func.jvp(lambda t, values=values: values(a + t * change), (0.0,), (1.0,))[1][0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("x", [np.array([1.5 + 1.75j, 0.3 - 1j]), np.array([0.1, 0.7])], ids=["complex", "real"])
def test_deviations_of_one_number_from_its_mean_in_another_dtype(x: np.ndarray[Any, Any], dtype: Any) -> None:
    def f(x: Any) -> Any:
        return np.std(x, axis=(), dtype=dtype)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for got in (func.jvp(f, (x,), (x,))[0], func.jit(f)(x), func.vmap(f)(x)):
            np.testing.assert_allclose(got, f(x), rtol=1e-6)
