"""Functions that Numba has compiled, called with traced values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func

numba: Any = pytest.importorskip("numba")
X = np.array([0.4, 0.9, 1.3])
TRANSFORMS: dict[str, Callable[..., Any]] = {
    "grad": func.grad,
    "jit of grad": lambda f: func.jit(func.grad(f)),
    "grad of jit": lambda f: func.grad(func.jit(f)),
    "vmap of grad": lambda f: lambda x: func.vmap(func.grad(f))(np.stack([x, x]))[1],
}


@numba.njit
def loop(x: Any, y: Any = 2.0) -> Any:
    total = 0.0
    for i in range(x.shape[0]):
        total += math.sin(x[i]) * y
    return total


@numba.njit("float64(float64[:], float64)")
def with_signature(x: Any, y: Any) -> Any:
    return x[0] * y


@numba.njit
def starred(x: Any, *more: Any) -> Any:
    return x * more[0] + more[1]


@numba.njit
def calling(x: Any) -> Any:
    return loop(x) * x[0]


@numba.vectorize
def bent(x: Any) -> Any:
    return math.exp(x) if x > 0.5 else x


@numba.vectorize(["float64(float64, float64)"])
def product(x: Any, y: Any) -> Any:
    return x * y


@numba.guvectorize(["(float64[:],float64[:])"], "(n)->()")
def row_sum(x: Any, out: Any) -> None:
    out[0] = x.sum()


CALLS: dict[str, Callable[..., Any]] = {
    "default": lambda x: loop(x),
    "positional": lambda x: loop(x, x[0]),
    "keywords": lambda x: loop(y=x[1], x=x),
    "signature": lambda x: with_signature(x, 3.0),
    "starred": lambda x: starred(x[0], x[1], x[2]),
    "calling": lambda x: calling(x),
    "ufunc": lambda x: np.sum(bent(x)),
    "ufunc of numbers": lambda x: bent(x[2]) + bent(x[0]),
    "ufunc with signature": lambda x: np.sum(product(x, x)),
    "plain beside": lambda x: np.sum(x) * loop(np.ones(2)),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("call", CALLS)
def test_derivatives(call: str, transform: str) -> None:
    f = CALLS[call]
    slope = [(f(X + e) - f(X - e)) / 2e-6 for e in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(TRANSFORMS[transform](f)(X), slope, rtol=1e-7)
    np.testing.assert_allclose(func.jit(f)(X), f(X), rtol=1e-12)


def test_other_calls_stay_compiled() -> None:
    func.grad(lambda x: loop(x) + with_signature(x, 1.0))(X)
    assert len(with_signature.signatures) == 1 and not with_signature._can_compile
    assert not any([numba.types.pyobject in signature for signature in loop.signatures])
    with pytest.raises(TypeError, match="No matching definition"):
        with_signature("text", 1.0)


def test_generalized_ufuncs_are_refused_by_name() -> None:
    with pytest.raises(func.errors.UnsupportedFunctionError, match="row_sum has no traced version"):
        func.grad(lambda x: row_sum(x))(X)
