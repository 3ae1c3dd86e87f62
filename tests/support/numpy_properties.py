"""Checks of a table of functions: values to the bit, both derivative modes, second order, vmap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import func

Function = Callable[[Any], Any]
Case = tuple[Function, Any]


def assert_same(got: Any, expected: Any) -> None:
    """Equal in dtype, shape and every element, also inside tuples and lists."""
    if isinstance(expected, (tuple, list)):
        assert len(got) == len(expected)
        for got_item, expected_item in zip(got, expected, strict=True):
            assert_same(got_item, expected_item)
        return
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.dtype == expected.dtype and got.shape == expected.shape
    np.testing.assert_array_equal(got, expected)


def extrapolated(f: Function, x: Any, tangent: Any) -> Any:
    """Central differences with one step of Richardson extrapolation."""

    def central(step: float) -> Any:
        return (np.asarray(f(x + step * tangent)) - np.asarray(f(x - step * tangent))) / (2 * step)

    return (4 * central(1e-4) - central(2e-4)) / 3


def is_single(value: Any) -> bool:
    """Whether a result is in single precision, too coarse for differences."""
    return np.asarray(value).dtype in (np.float32, np.complex64)


def direction(x: Any, seed: int) -> Any:
    """A random tangent of x, complex where x is."""
    rng = np.random.default_rng(seed)
    t = rng.normal(size=np.shape(x))
    return t + 1j * rng.normal(size=np.shape(x)) if np.iscomplexobj(x) else t


def inner(x: Any, y: Any) -> float:
    """The real inner product, by which adjoints are defined."""
    return float(np.sum(np.real(np.conj(x) * y)))


def check_value(case: Case, exact: bool = True) -> None:
    """The value is NumPy's in both modes."""
    f, x = case
    expected = f(x)
    for got in (func.vjp(f, x)[0], func.jvp(f, (x,), (x,))[0]):
        if exact:
            assert_same(got, expected)
        else:
            np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-14)


def check_modes(case: Case) -> None:
    """Forward mode agrees with differences, reverse mode with forward mode."""
    f, x = case
    tangent = direction(x, 1)
    out, dot = func.jvp(f, (x,), (tangent,))
    if not is_single(out):
        np.testing.assert_allclose(dot, extrapolated(f, x, tangent), rtol=1e-7, atol=1e-8)
    ct = np.asarray(direction(out, 2), np.asarray(out).dtype)
    (pulled,) = func.vjp(f, x)[1](ct[()] if ct.ndim == 0 else ct)
    tolerance = 1e-5 if is_single(out) else 1e-10
    np.testing.assert_allclose(inner(pulled, tangent), inner(ct, dot), rtol=tolerance, atol=tolerance)


def check_second_order(case: Case) -> None:
    """Forward over reverse agrees with reverse over reverse and with differences of gradients."""
    f, x = case
    tangent = direction(x, 3)

    def loss(y: Any) -> Any:
        return np.sum(np.sin(np.real(f(y)))) + np.sum(np.cos(np.imag(f(y))))

    forward_over_reverse = func.hvp(loss, (x,), (tangent,))
    np.testing.assert_allclose(forward_over_reverse, func.vhp(loss, (x,), (tangent,)), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(forward_over_reverse, extrapolated(func.grad(loss), x, tangent), rtol=1e-6, atol=1e-6)


def check_mapped(case: Case) -> None:
    """vmap gives the stack of the results for single elements, of values and of gradients."""
    f, x = case
    batch = np.stack([x, x * 1.01, x * 0.5])
    mapped = func.vmap(f)(batch)
    expected = np.stack([np.asarray(f(element)) for element in batch])
    assert mapped.dtype == expected.dtype
    tolerance = 1e-5 if is_single(expected) else 1e-11
    np.testing.assert_allclose(mapped, expected, rtol=tolerance, atol=tolerance)

    def gradient(y: Any) -> Any:
        return func.grad(lambda z: np.sum(np.real(f(z) * np.conj(f(z)))))(y)

    singles = np.stack([gradient(element) for element in batch])
    np.testing.assert_allclose(func.vmap(gradient)(batch), singles, rtol=100 * tolerance, atol=100 * tolerance)


def check_constant(f: Function, x: Any) -> None:
    """A function without a derivative gives NumPy's value under every transform."""
    seen: list[Any] = []

    def loss(y: Any) -> Any:
        seen.append(f(y))
        return np.sum(y * 0.0)

    func.grad(loss)(x)
    func.jvp(loss, (x,), (x,))
    for got in seen:
        assert_same(got, f(x))
    mapped = func.vmap(f)(np.stack([x, x]))
    for got, expected in zip(mapped if isinstance(mapped, tuple) else (mapped,), _many(f(x)), strict=True):
        np.testing.assert_array_equal(np.asarray(got)[1], expected)


def _many(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def check_refusal(call: Function, x: Any) -> None:
    """Where NumPy raises an exception, func raises one of its type."""
    try:
        call(x)
    except Exception as error:
        expected = type(error)
    else:
        raise AssertionError("NumPy accepts this")
    for transformed in (lambda: func.vjp(call, x), lambda: func.jvp(call, (x,), (x,))):
        try:
            transformed()
        except Exception as error:
            assert isinstance(error, expected), f"{type(error).__name__}: {error} instead of {expected.__name__}"
        else:
            raise AssertionError(f"accepted, where NumPy raises {expected.__name__}")
