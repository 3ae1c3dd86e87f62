"""Where eigenvalues are equal, derivatives of the second order are right, or NaN or infinite, never another number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import func

RNG = np.random.default_rng(7)
SLOPE = RNG.normal(size=(4, 4))
SLOPE = SLOPE + SLOPE.T


def banded(a: Any) -> Any:
    rows = [np.concatenate([np.diag(a, -k), np.zeros(k)]) for k in range(4)]
    return scipy.linalg.eig_banded(np.stack(rows), lower=True, select="i", select_range=(0, 2))[0]


def cubed(values: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A number that eigenvalues determine, however they are ordered."""
    return lambda a: np.real(np.sum(values(a) ** 3))


SPECTRA: dict[str, Callable[[Any], Any]] = {
    "eigvalsh": cubed(np.linalg.eigvalsh),
    "eigh": cubed(lambda a: np.linalg.eigh(a)[0]),
    "eigh of the upper triangle": cubed(lambda a: np.linalg.eigh(a, UPLO="U")[0]),
    "eigh by another driver": cubed(lambda a: scipy.linalg.eigh(a, driver="ev")[0]),
    "eigh of a pencil": cubed(lambda a: scipy.linalg.eigh(a, np.diag([1.0, 1.0, 1.0, 2.0]))[0]),
    "eigh_tridiagonal": cubed(lambda a: scipy.linalg.eigh_tridiagonal(np.diag(a), np.diag(a, 1))[0]),
    "eigvalsh_tridiagonal": cubed(lambda a: scipy.linalg.eigvalsh_tridiagonal(np.diag(a), np.diag(a, 1))),
    "eigvals": cubed(np.linalg.eigvals),
    "eig": cubed(lambda a: np.linalg.eig(a)[0]),
    "schur": cubed(lambda a: np.diag(scipy.linalg.schur(a, output="complex")[0])),
    "singular values": cubed(lambda a: np.linalg.svd(a, compute_uv=False)),
    "singular values with vectors": cubed(lambda a: np.linalg.svd(a)[1]),
    "singular values of a wide matrix": cubed(lambda a: np.linalg.svd(a[:3])[1]),
    "nuclear norm": lambda a: np.linalg.norm(a, "nuc"),
    "polar": lambda a: np.sum(scipy.linalg.polar(a)[1] ** 3 * SLOPE),
    "banded": cubed(banded),
    "projector": lambda a: np.sum((np.linalg.eigh(a)[1][:, :3] @ np.linalg.eigh(a)[1][:, :3].T) * SLOPE**2),
}
SPECTRA_AT = {
    "all equal": np.eye(4),
    "two equal": np.diag([1.0, 1.0, 2.0, 4.0]),
    "all different": np.diag([1.0, 2.0, 5.0, 3.5]),
}
ORDERS: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "reverse of reverse": lambda g: func.grad(func.grad(g))(0.0),
    "forward of forward": lambda g: func.jvp(lambda t: func.jvp(g, (t,), (1.0,))[1], (0.0,), (1.0,))[1],
    "forward of reverse": lambda g: func.jvp(func.grad(g), (0.0,), (1.0,))[1],
    "reverse of forward": lambda g: func.grad(lambda t: func.jvp(g, (t,), (1.0,))[1])(0.0),
    "compiled": lambda g: func.jit(func.grad(func.grad(g)))(0.0),
    "batched": lambda g: func.vmap(func.grad(func.grad(g)))(np.zeros(2))[1],
    "Taylor mode": lambda g: func.derivatives(g, 2)(0.0)[2],
}


def second_difference(g: Callable[[float], Any], h: float = 2e-3) -> float:
    """Of the sixth order."""
    weights = {0: -49 / 18, 1: 1.5, 2: -0.15, 3: 1 / 90}
    return float(sum([w * (g(k * h) + g(-k * h)) / (1 if k else 2) for k, w in weights.items()]) / h**2)


@pytest.mark.parametrize("place", SPECTRA_AT)
@pytest.mark.parametrize("name", SPECTRA)
def test_second_derivatives_of_spectra_are_right_or_not_finite(name: str, place: str) -> None:
    def g(t: Any) -> Any:
        return SPECTRA[name](SPECTRA_AT[place] + t * SLOPE)

    expected = second_difference(g)
    for order, derivative in ORDERS.items():
        with np.errstate(all="ignore"):
            got = float(derivative(g))
        is_right = np.isclose(got, expected, rtol=1e-4, atol=1e-4)
        must_be_right = place == "all different" and name != "eigh of a pencil"
        assert is_right if must_be_right else is_right or not np.isfinite(got), (order, got, expected)


def test_simple_values_beside_equal_ones_keep_their_second_derivatives() -> None:
    point = SPECTRA_AT["two equal"]
    for largest in (lambda a: np.linalg.eigvalsh(a)[-1], lambda a: np.linalg.norm(a, 2) ** 2):

        def g(t: Any, largest: Callable[[Any], Any] = largest) -> Any:
            return largest(point + t * SLOPE)

        for order, derivative in ORDERS.items():
            np.testing.assert_allclose(derivative(g), second_difference(g), rtol=1e-6, err_msg=order)


def test_hessians_of_sums_of_squares_of_equal_eigenvalues_are_not_finite() -> None:
    """The entry of two places off the diagonal, 4, is not seen by the eigenvalues at the point."""
    hessian = func.hessian(lambda a: np.sum(np.linalg.eigvalsh(a) ** 2))(np.eye(3))
    assert not np.isfinite(hessian[1, 0, 1, 0])


@pytest.mark.parametrize("place", [np.zeros((4, 4)), np.diag([3.0, 2.0, 0.0, 0.0])])
def test_vectors_of_several_zero_singular_values_have_no_second_derivative(place: Any) -> None:
    """Such values themselves do not move, by convention; their vectors turn."""

    def g(t: Any) -> Any:
        return np.sum(np.linalg.svd(place + t * SLOPE)[2][3] ** 4)

    for order, derivative in ORDERS.items():
        with np.errstate(all="ignore"):
            assert not np.isfinite(derivative(g)), order
