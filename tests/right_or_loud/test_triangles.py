"""Routines that read one triangle: the derivative is that of what NumPy and SciPy compute from it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import func

Routine = Callable[..., Any]
SCALE = np.array([[1.0, 0.9, 0.8], [0.7, 1.0, 0.9], [1.1, 0.8, 1.0]])
RIGHT = np.array([[1.0, -2.0], [0.5, 3.0], [2.0, 1.0]])


def _generalized(module: Any, kind: int, lower: bool) -> Routine:
    return lambda a: module.eigh(a, a @ a * SCALE + 3 * np.eye(3), type=kind, lower=lower)


ROUTINES: dict[str, tuple[Routine, Routine]] = {
    "cholesky": (np.linalg.cholesky, np.linalg.cholesky),
    "cholesky upper": (lambda a: np.linalg.cholesky(a, upper=True),) * 2,
    "eigh L": (lambda a: tuple(np.linalg.eigh(a)),) * 2,
    "eigh U": (lambda a: tuple(np.linalg.eigh(a, "U")),) * 2,
    "eigvalsh L": (np.linalg.eigvalsh,) * 2,
    "eigvalsh U": (lambda a: np.linalg.eigvalsh(a, "U"),) * 2,
    "pinv": (lambda a: np.linalg.pinv(a, hermitian=True),) * 2,
    "svd": (lambda a: tuple(np.linalg.svd(a[:, :2], full_matrices=False))[:2][::-1],) * 2,
    "svdvals": (lambda a: np.linalg.svd(a, compute_uv=False, hermitian=True),) * 2,
    "scipy pinvh": (scipy.linalg.pinvh, func.linalg.pinvh),
    "scipy pinvh upper": (lambda a: scipy.linalg.pinvh(a, lower=False), lambda a: func.linalg.pinvh(a, lower=False)),
    "svd of a wide matrix": (lambda a: tuple(np.linalg.svd(a[:2], full_matrices=False))[:2][::-1],) * 2,
    "scipy eigvalsh of a pencil": (
        lambda a: scipy.linalg.eigvalsh(np.eye(3) * a, a),
        lambda a: func.linalg.eigvalsh(np.eye(3) * a, a),
    ),
}
for _lower in (False, True):
    _name = "lower" if _lower else "upper"
    for _routine in ("cholesky", "eigh", "eigvalsh"):
        ROUTINES[f"scipy {_routine} {_name}"] = (
            lambda a, name=_routine, lower=_lower: getattr(scipy.linalg, name)(a, lower=lower),
            lambda a, name=_routine, lower=_lower: getattr(func.linalg, name)(a, lower=lower),
        )
    ROUTINES[f"scipy cho_solve {_name}"] = (
        lambda a, lower=_lower: scipy.linalg.cho_solve(scipy.linalg.cho_factor(a, lower=lower), RIGHT),
        lambda a, lower=_lower: func.linalg.cho_solve(func.linalg.cho_factor(a, lower=lower), RIGHT),
    )
    for _kind in (1, 2, 3):
        ROUTINES[f"scipy eigh of a pencil, type {_kind} {_name}"] = (
            _generalized(scipy.linalg, _kind, _lower),
            _generalized(func.linalg, _kind, _lower),
        )
    for _assume in ("sym", "her", "pos"):
        ROUTINES[f"scipy solve {_assume} {_name}"] = (
            lambda a, assume=_assume, lower=_lower: scipy.linalg.solve(a, RIGHT, assume_a=assume, lower=lower),
            lambda a, assume=_assume, lower=_lower: func.linalg.solve(a, RIGHT, assume_a=assume, lower=lower),
        )
        ROUTINES[f"scipy inv {_assume} {_name}"] = (
            lambda a, assume=_assume, lower=_lower: scipy.linalg.inv(a, assume_a=assume, lower=lower),
            lambda a, assume=_assume, lower=_lower: func.linalg.inv(a, assume_a=assume, lower=lower),
        )

COMPLEX = [False, True]


def _matrix(is_complex: bool, rng: np.random.Generator) -> Any:
    """A matrix that is positive definite by either triangle, the two being unlike."""
    a = rng.standard_normal((3, 3)) * 0.4 + np.diag([3.0, 5.0, 8.0])
    return a + 0.3j * rng.standard_normal((3, 3)) * (1 - np.eye(3)) if is_complex else a


def _flat(outputs: Any) -> Any:
    parts = outputs if isinstance(outputs, tuple) else (outputs,)
    return np.concatenate([np.ravel(part) for part in parts])


def _aligned(outputs: Any, like: Any) -> Any:
    """Eigenvectors (the second output) with the signs that they have elsewhere, as a difference needs."""
    if not isinstance(outputs, tuple):
        return outputs
    w, v = outputs
    return w, v * np.sign(np.real(np.sum(np.conj(like[1]) * v, axis=-2, keepdims=True)))


@pytest.mark.parametrize("is_complex", COMPLEX, ids=["real", "complex"])
@pytest.mark.parametrize("name", ROUTINES)
def test_derivative_of_what_is_computed(name: str, is_complex: bool) -> None:
    rng = np.random.default_rng(3)
    reference, routine = ROUTINES[name]
    a = _matrix(is_complex, rng)
    direction = rng.standard_normal((3, 3)) + (1j * rng.standard_normal((3, 3)) if is_complex else 0)
    np.testing.assert_allclose(_flat(routine(a)), _flat(reference(a)), rtol=1e-12, atol=1e-12)
    step = 1e-6
    ends = [_flat(_aligned(reference(a + sign * step * direction), reference(a))) for sign in (1, -1)]
    expected = (ends[0] - ends[1]) / (2 * step)
    value, tangent = func.jvp(lambda a: _flat(routine(a)), (a,), (direction,))
    np.testing.assert_allclose(value, _flat(reference(a)), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(tangent, expected, rtol=1e-6, atol=1e-7)

    weights = rng.standard_normal(value.shape) + (1j * rng.standard_normal(value.shape) if is_complex else 0)

    def loss(x: Any) -> Any:
        return np.sum(np.real(np.conj(weights) * _flat(_aligned(routine(x), reference(a)))))

    slope = np.sum(np.real(np.conj(weights) * expected))
    for gradient in (func.grad(loss)(a), func.jit(func.grad(loss))(a), func.grad(func.jit(loss))(a)):
        np.testing.assert_allclose(np.sum(np.real(np.conj(gradient) * direction)), slope, rtol=1e-5, atol=1e-6)
    second = func.jvp(func.grad(loss), (a,), (direction,))[1]
    ends = [func.grad(loss)(a + sign * step * direction) for sign in (1, -1)]
    np.testing.assert_allclose(second, (ends[0] - ends[1]) / (2 * step), rtol=1e-5, atol=1e-6)


def test_unread_triangle_has_no_gradient() -> None:
    a = _matrix(False, np.random.default_rng(1))
    gradient = func.grad(lambda a: np.sum(np.linalg.cholesky(a)))(a)
    assert np.all(gradient[np.triu_indices(3, 1)] == 0) and np.all(gradient[np.tril_indices(3)] != 0)
    a[np.triu_indices(3, 1)] = np.nan
    np.testing.assert_array_equal(func.grad(lambda a: np.sum(np.linalg.cholesky(a)))(a), gradient)


def test_symmetrized_input_has_the_symmetric_gradient() -> None:
    a = _matrix(False, np.random.default_rng(2))
    gradient = func.grad(lambda a: np.sum(np.linalg.eigh((a + a.T) / 2)[0] ** 2))(a)
    np.testing.assert_allclose(gradient, a + a.T, rtol=1e-12)


@pytest.mark.parametrize("assume", ["gen", "sym", "her", "pos", "diagonal"])
@pytest.mark.parametrize("shape", [(), (1, 1)])
def test_one_number_is_divided_by_whatever_it_is_assumed_to_be(shape: tuple[int, ...], assume: str) -> None:
    """SciPy does not look at the structure of a matrix of one number, which may be complex."""
    a, direction, b = np.full(shape, 1.07 - 0.94j), np.full(shape, 0.3 + 0.7j), np.array([-0.38])

    def f(a: Any) -> Any:
        return func.linalg.solve(a, b, assume_a=assume)

    value, slope = func.jvp(f, (a,), (direction,))
    np.testing.assert_allclose(value, b / a.item(), rtol=1e-12)
    np.testing.assert_allclose(slope, -b / a.item() ** 2 * direction.item(), rtol=1e-12)
    ct = np.array([0.5 - 0.2j])
    (pulled,) = func.vjp(f, a)[1](ct)
    np.testing.assert_allclose(np.vdot(pulled, direction).real, np.vdot(ct, slope).real, rtol=1e-12)


@pytest.mark.parametrize("assume", ["sym", "her", "pos"])
@pytest.mark.parametrize("size", [1, 2])
def test_stacks_of_complex_matrices_are_read_as_assumed(size: int, assume: str) -> None:
    """Of a Hermitian matrix in a stack LAPACK reads the real part of the diagonal, also where it is one number."""
    rng = np.random.default_rng(3)
    a, b = (rng.normal(size=(2, 1, size, size)) + 1j * rng.normal(size=(2, 1, size, size)) for _ in range(2))
    a = a + 9 * np.eye(size)
    expected = scipy.linalg.solve(a, b, assume_a=assume)

    def f(a: Any) -> Any:
        return func.linalg.solve(a, b, assume_a=assume)

    for got in (f(a), func.jvp(f, (a,), (a,))[0], func.jit(f)(a), func.vjp(f, a)[0]):
        np.testing.assert_allclose(got, expected, rtol=1e-10)
