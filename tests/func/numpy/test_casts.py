"""np.float64(x), np.require and np.vectorize of traced values; the names stay NumPy's everywhere else."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func

X = np.array([0.5, 1.5, 2.5])
TRANSFORMS: dict[str, Callable[..., Any]] = {
    "grad": func.grad,
    "jit of grad": lambda f: func.jit(func.grad(f)),
    "grad of jit": lambda f: func.grad(func.jit(f)),
    "vmap of grad": lambda f: lambda x: func.vmap(func.grad(f))(np.stack([x, x]))[1],
    "diagonal": lambda f: lambda x: func.jvp(func.grad(f), (x,), (np.ones(3),))[0],
}


@np.vectorize
def bent(a: Any, b: Any = 1.0) -> Any:
    """A function of numbers that was vectorized before any transform."""
    return a * b if a > 1 else a + b


pair = np.vectorize(lambda a: (a, a * a), otypes=[float, float])
inner = np.vectorize(lambda a, b: np.sum(a) * b, signature="(n),()->()")


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize(
    ("f", "slope"),
    [
        (lambda x: np.sum(np.float64(x) * x), 2 * X),
        (lambda x: np.sum(np.float64([x, x * x])), 1 + 2 * X),
        (lambda x: np.sum(np.complex128(x).real * x), 2 * X),
        (lambda x: np.sum(np.double(x[1]) * np.int64(x)), [0, 3, 0]),
        (lambda x: np.sum(np.float64(np.float64(2.0)) * x), [2, 2, 2]),
        (lambda x: np.sum(np.require(x, float, ["C", "W"]) * x), 2 * X),
        (lambda x: np.sum(np.require(np.outer(x, x), requirements="F")), 2 * np.sum(X) * np.ones(3)),
        (lambda x: np.sum(bent(x, 2.0)), [1, 2, 2]),
        (lambda x: np.sum(bent(x, b=x)), [2, 3, 5]),
        (lambda x: np.sum(pair(x)[1]) + bent(x[0]), [2, 3, 5]),
        (lambda x: np.sum(np.vectorize(lambda a, b: a * b)(x[:, None], x)), 2 * np.sum(X) * np.ones(3)),
        (lambda x: np.sum(inner(np.outer(x, x), x)), None),
    ],
)
def test_derivatives(f: Callable[..., Any], slope: Any, transform: str) -> None:
    if slope is None:
        step = 1e-6 * np.eye(3)
        slope = [(f(X + e) - f(X - e)) / 2e-6 for e in step]
    np.testing.assert_allclose(TRANSFORMS[transform](f)(X), slope, rtol=1e-6)


def test_the_classes_stay_numpys() -> None:
    def f(x: Any) -> Any:
        assert np.zeros(2, dtype=np.float64).dtype == np.float64 and np.dtype(np.int32).type is np.int32
        assert isinstance(np.ones(1)[0], np.float64) and type(np.float32(2)) is np.float32
        assert np.float64([1, 2]).shape == (2,) and np.float64.__name__ == "float64"
        assert pickle.loads(pickle.dumps(np.float64)) is np.float64
        return np.sum(np.float32(x))

    assert func.jit(f)(X).dtype == np.float32 and func.grad(f)(X).dtype == X.dtype
    assert type(np.float64(1.0)) is np.float64


def test_the_first_element_decides_the_dtype_as_in_numpy() -> None:
    cut = np.vectorize(lambda a: 0 if a < 1 else a)
    np.testing.assert_array_equal(cut(X), [0, 1, 2])
    assert func.jit(lambda x: cut(x))(X).tolist() == [0, 1, 2]
    np.testing.assert_array_equal(func.grad(lambda x: np.sum(cut(x)) * x[0])(X), [3, 0, 0])
    with pytest.raises(ValueError, match="size 0"):
        func.grad(lambda x: np.sum(cut(x[:0])))(X)


def test_numpy_checks_requirements() -> None:
    with pytest.raises(ValueError, match="both"):
        func.grad(lambda x: np.sum(np.require(x, requirements=["C", "F"])))(X)
    with pytest.raises(KeyError):
        func.grad(lambda x: np.sum(np.require(x, requirements=["Z"])))(X)
