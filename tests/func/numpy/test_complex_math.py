"""cmath.sqrt(z) and the others on traced numbers: values, derivatives and errors of `cmath`."""

from __future__ import annotations

import cmath
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func

OF_ONE = "acos acosh asin asinh atan atanh cos cosh exp log log10 phase polar sin sinh sqrt tan tanh"
TRANSFORMS: dict[str, Callable[..., Any]] = {
    "grad": func.grad,
    "jit of grad": lambda f: func.jit(func.grad(f)),
    "grad of jit": lambda f: func.grad(func.jit(f)),
    "vmap of grad": lambda f: lambda x: func.vmap(func.grad(f))(np.stack([x, x]))[1],
    "forward": lambda f: lambda x: func.jvp(f, (x,), (1.0,))[1],
}


def total(out: Any) -> Any:
    """A real number of the results of a function of `cmath`."""
    return sum([np.real(part) + 2.0 * np.imag(part) for part in (out if isinstance(out, tuple) else (out,))])


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("factor", [1.0, -1.0, 1.0 + 0.5j, -1.0 - 2.0j])
@pytest.mark.parametrize("name", OF_ONE.split())
def test_derivatives(name: str, factor: complex, transform: str) -> None:
    def f(x: Any) -> Any:
        return total(getattr(cmath, name)(x * factor)) + 0.0 * x

    slope = (f(0.6 + 1e-6) - f(0.6 - 1e-6)) / 2e-6
    np.testing.assert_allclose(TRANSFORMS[transform](f)(0.6), slope, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(func.jit(f)(0.6), f(0.6), rtol=1e-12)


def test_functions_of_two_numbers() -> None:
    def f(r: Any) -> Any:
        return total(cmath.rect(r, 2 * r)) * (1.0 if cmath.isclose(r, r + 0j) else 0.0) + total(cmath.log(r, 3j))

    slope = (f(0.6 + 1e-6) - f(0.6 - 1e-6)) / 2e-6
    for transform in TRANSFORMS.values():
        np.testing.assert_allclose(transform(f)(0.6), slope, rtol=1e-7)


def test_answers_are_booleans_of_python() -> None:
    def f(x: Any) -> Any:
        assert cmath.isfinite(x) is True and cmath.isnan(x) is False and cmath.isinf(x * 1j) is False
        return x

    assert func.grad(f)(1.0) == 1.0 and func.jit(f)(1.0) == 1.0


@pytest.mark.parametrize(
    ("f", "error"),
    [
        (lambda x: cmath.log(x - 1), ValueError),
        (lambda x: cmath.atanh(x), ValueError),
        (lambda x: cmath.exp(x * 1e4), OverflowError),
    ],
)
@pytest.mark.parametrize("transform", [func.grad, func.jit])
def test_errors_are_those_of_cmath(f: Callable[..., Any], error: type[Exception], transform: Any) -> None:
    with pytest.raises(error):
        f(1.0)
    with pytest.raises(error):
        transform(lambda x: abs(f(x)))(1.0)


def test_the_module_stays_pythons() -> None:
    before = cmath.sqrt
    assert func.grad(lambda x: cmath.sqrt(x).real)(4.0) == 0.25
    assert cmath.sqrt is before and type(cmath) is type(func) and cmath.sqrt(-1.0) == 1j


def test_arrays_are_refused_as_by_cmath() -> None:
    with pytest.raises(TypeError, match="length-1"):
        func.grad(lambda x: abs(cmath.sqrt(x)))(np.ones(2))
