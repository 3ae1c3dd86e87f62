"""Python's `math` by its attributes: traced numbers, their derivatives, and the errors of `math`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func
from func.host.patching import _MATH
from func.numpy import scalar_math

SAMPLES: dict[str, tuple[Callable[[Any], Any], float]] = {
    **{name: (lambda x, name=name: getattr(math, name)(x), 0.7) for name in scalar_math.FUNCTIONS},
    "acosh": (lambda x: math.acosh(x), 1.7),
    "atan2": (lambda x: math.atan2(x, 0.3) + math.atan2(0.3, x), 0.7),
    "copysign": (lambda x: math.copysign(x, -2.0), 0.7),
    "dist": (lambda x: math.dist([x, 1.0], [2.0, 3.0]), 0.7),
    "fmod": (lambda x: math.fmod(x, 0.3), 0.7),
    "fsum": (lambda x: math.fsum([x, x * x, 1.0]), 0.7),
    "hypot": (lambda x: math.hypot(x, 2.0) + math.hypot(x, 1.0, 2.0) + math.hypot(x), 0.7),
    "log": (lambda x: math.log(x) + math.log(x, 3.0), 0.7),
    "modf": (lambda x: math.modf(x)[0] * math.modf(x)[1], 1.7),
    "pow": (lambda x: math.pow(x, 2.5) + math.pow(2.5, x), 0.7),
    "prod": (lambda x: math.prod([x, x, 3.0], start=2.0), 0.7),
    "sumprod": (lambda x: math.sumprod([x, 2.0], [x, x]), 0.7),
}


@pytest.mark.parametrize("name", sorted(set(scalar_math.FUNCTIONS) & set(vars(math))))
def test_derivatives(name: str) -> None:
    f, x = SAMPLES[name]
    step = 1e-6
    slope = (f(x + step) - f(x - step)) / (2 * step)
    compiled = func.jit(func.grad(f))
    for got in (func.grad(f)(x), compiled(x), func.vmap(func.grad(f))(np.array([x, x]))[1], func.grad(func.jit(f))(x)):
        np.testing.assert_allclose(got, slope, rtol=1e-7, atol=1e-9)
    for value in (func.value_and_grad(f)(x)[0], func.jit(f)(x), func.grad(lambda v: f(v[0]))(np.array([x, 1.0]))[0]):
        assert np.shape(value) == ()
    np.testing.assert_allclose(func.jit(f)(x), f(x), rtol=1e-14)


@pytest.mark.parametrize("x", [-1.5, 0.0, 0.5, 2.5, np.inf, np.nan])
@pytest.mark.parametrize("name", ["isnan", "isinf", "isfinite", "floor", "ceil", "trunc"])
def test_answers(name: str, x: float) -> None:
    def f(x: Any) -> Any:
        answer = getattr(math, name)(x)
        assert type(answer) in (bool, int)
        return x * answer

    assert_same(lambda: func.value_and_grad(f)(x)[0], lambda: f(x))
    assert_same(lambda: func.jit(f)(x), lambda: f(x))


def assert_same(got: Callable[[], Any], right: Callable[[], Any]) -> None:
    """The same number, or an error of the same class."""
    with np.errstate(all="ignore"):
        try:
            expected = right()
        except (ValueError, OverflowError) as error:
            with pytest.raises(type(error)):
                got()
        else:
            np.testing.assert_allclose(got(), expected, rtol=1e-15)


@pytest.mark.parametrize("x", [-1.0, -0.0, 0.0, 1.0, 2.0, 1000.0, -np.inf, np.inf, np.nan])
@pytest.mark.parametrize(
    "name", ["log", "sqrt", "asin", "acosh", "atanh", "exp", "cosh", "sin", "tan", "log1p", "expm1", "lgamma", "gamma"]
)
def test_errors_are_those_of_math(name: str, x: float) -> None:
    def f(x: Any) -> Any:
        return getattr(math, name)(x)

    assert_same(lambda: func.value_and_grad(f)(x)[0], lambda: f(x))
    if not (name in ("gamma", "lgamma") and x <= 0):  # the poles of SciPy's gamma are infinite or NaN
        assert_same(lambda: func.jit(f)(x), lambda: f(x))


def test_arguments_that_math_refuses() -> None:
    for wrong in (np.ones(2), np.ones(2) * 1j):
        with pytest.raises(TypeError, match="only length-1 arrays"):
            func.jvp(lambda x: math.sin(x), (wrong,), (wrong,))
    with pytest.raises(TypeError, match="not complex"):
        func.jvp(lambda x: math.sin(x), (1j,), (1j,))
    with pytest.raises(func.errors.TracerConversionError):
        func.grad(lambda x: float(x))(1.0)


def test_the_module_is_as_before() -> None:
    kind = type(math)
    seen = []

    def f(x: Any) -> Any:
        seen.append((math.sin(1.0), math.floor(2.5), type(math) is kind))
        return math.sin(x)

    func.grad(f)(1.0)
    assert seen == [(math.sin(1.0), 2, False)]
    assert type(math) is kind and "sin" in vars(math)
    assert set(scalar_math.FUNCTIONS) | set(scalar_math.ANSWERS) == set(_MATH.split())
