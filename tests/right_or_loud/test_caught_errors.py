"""Functions that catch the errors of traced values: right where they test for numbers, loud where they catch all."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func
from func.errors import StagingError, TracerConversionError

TRANSFORMS: dict[str, Callable[..., Any]] = {
    "grad": func.grad,
    "jacfwd": func.jacfwd,
    "jacrev": func.jacrev,
    "hessian": func.hessian,
    "jit": func.jit,
    "jit of grad": lambda f: func.jit(func.grad(f)),
    "grad of vmap": lambda f: func.grad(lambda x: np.sum(func.vmap(func.grad(f))(np.stack([x, x])))),
}


def bare(x: Any) -> Any:
    try:
        return float(x) ** 2
    except:  # noqa: E722
        return 1.0


def every_exception(x: Any) -> Any:
    try:
        return float(x) ** 2
    except (Exception, KeyboardInterrupt):
        return 1.0


def in_a_callee(x: Any) -> Any:
    def number() -> float:
        return float(x)

    try:
        value = number()
    except ArithmeticError:
        value = 2.0
    except Exception:
        value = 1.0
    return value**2


def nested(x: Any) -> Any:
    try:
        try:
            return float(x) ** 2
        except ZeroDivisionError:
            return 2.0
    except BaseException:
        return 1.0


def early_and_tested_later(x: Any) -> Any:
    value = bare(x)
    try:
        return value + float(x)
    except TypeError:
        return value + x


LOUD = [bare, every_exception, in_a_callee, nested, early_and_tested_later]


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("function", LOUD)
def test_catching_all_is_loud(function: Callable[..., Any], transform: str) -> None:
    with pytest.raises((TracerConversionError, StagingError), match=r"`except` caught this error at .*test_caught"):
        TRANSFORMS[transform](function)(1.5)


def number_or_array(x: Any) -> Any:
    try:
        return float(x) ** 2
    except TypeError:
        return x**2


def of_several_kinds(x: Any) -> Any:
    try:
        return math.pow(float(x), 2)
    except (ValueError, TypeError):
        return x**2


def suppressing(x: Any) -> Any:
    with contextlib.suppress(Exception):
        float(x)
    return x**2


def outer_catches_all(x: Any) -> Any:
    try:
        return number_or_array(x)
    except Exception:
        return 1.0


@pytest.mark.parametrize("function", [number_or_array, of_several_kinds, suppressing, outer_catches_all])
def test_tests_for_numbers_are_right(function: Callable[..., Any]) -> None:
    assert func.grad(function)(1.5) == 3.0
    assert func.jit(function)(1.5) == 2.25
    assert func.jit(func.grad(function))(1.5) == 3.0
    np.testing.assert_allclose(func.vmap(func.grad(function))(np.array([1.0, 2.0])), [2.0, 4.0])


def test_arrays_of_several_elements_are_no_numbers_in_numpy_either() -> None:
    def total(x: Any) -> Any:
        try:
            return float(x)
        except Exception:
            return np.sum(x**2)

    np.testing.assert_allclose(func.grad(total)(np.array([1.0, 2.0])), [2.0, 4.0])


def test_errors_of_an_inner_transform_caught_outside_of_it() -> None:
    def outer(x: Any) -> Any:
        try:
            return func.grad(lambda y: float(y) * y)(x)
        except Exception:
            return 1.0

    with pytest.raises(TracerConversionError, match="`except` caught this error"):
        func.grad(outer)(1.5)


def test_raising_another_error_is_left_alone() -> None:
    def refusing(x: Any) -> Any:
        try:
            return float(x)
        except Exception:
            raise LookupError("no number") from None

    with pytest.raises(LookupError, match="no number"):
        func.grad(refusing)(1.5)


def test_errors_caught_end_with_their_transform() -> None:
    with pytest.raises(TracerConversionError):
        func.grad(bare)(1.5)
    assert func.grad(lambda x: x**2)(1.5) == 3.0


@pytest.mark.parametrize("number", [1.5, np.float64(1.5)])
def test_numbers_have_no_length(number: Any) -> None:
    def shape(x: Any) -> Any:
        if np.any(x > 1e9):
            raise ValueError("too large")
        if not hasattr(x, "__len__"):
            x = np.asarray([x])
        return np.sum(x) * (3.0 if hasattr(x, "__iter__") else 1.0) + (0.0 if x.shape == (1,) else 100.0)

    def is_iterable(x: Any) -> Any:
        return x * (2.0 if getattr(x, "__iter__", None) else 1.0)

    assert func.grad(shape)(number) == 3.0 and func.jit(shape)(number) == 4.5
    assert func.grad(is_iterable)(number) == 1.0
    np.testing.assert_allclose(func.vmap(shape)(np.array([1.0, 2.0])), [3.0, 6.0])
    np.testing.assert_allclose(func.grad(lambda x: is_iterable(x[0]))(np.array([1.0, 2.0])), [1.0, 0.0])
    for ask in (len, iter, list):
        with pytest.raises(TypeError):
            func.grad(lambda x, ask=ask: ask(x))(number)


def test_arrays_have_a_length() -> None:
    def f(x: Any) -> Any:
        assert hasattr(x, "__len__") and hasattr(x, "__iter__") and x.__len__() == len(x) == len(list(x))
        return np.sum(x)

    np.testing.assert_allclose(func.grad(f)(np.ones(3)), np.ones(3))
    assert func.grad(lambda x: x * hasattr(x, "__len__"))(np.array(2.0)) == 1.0
