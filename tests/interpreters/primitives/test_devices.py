"""The sample table on arrays that refuse implicit conversion: a double without a GPU, CuPy with one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import func
from tests.interpreters.primitives.test_samples import of_active, outputs
from tests.support.device_double import DeviceArray, to_device
from tests.support.samples import SAMPLES
from tests.support.samples_special import DERIVATIVE_ON_THE_HOST, ON_THE_HOST
from tests.support.sampling import Sample

ROUNDED = {
    "adjugate",
    "cholesky_inverse",
    "factored_inverse",
    "factored_solve",
    "sum_with",
    "prod_with",
    "logaddexp_reduce",
    "segment_sum",
    "sparse_product",
}
"""Rows that sum in another order than NumPy on a device."""

ALL = [pytest.param(name, sample, id=f"{name}-{i}") for name, own in SAMPLES.items() for i, sample in enumerate(own)]


def moved(sample: Sample, move: Callable[[Any], Any]) -> Sample:
    """A sample with its arrays on the device."""
    args = tuple([move(np.asarray(a)) if isinstance(a, np.generic) else move(a) for a in sample.args])
    return Sample(args, sample.params, sample.differentiable, sample.tolerance, sample.batched)


def host(value: Any) -> Any:
    """A result on the host."""
    return value.get() if hasattr(value, "get") else value


def check_on_device(name: str, sample: Sample, move: Callable[[Any], Any], kind: type, exact: bool) -> None:
    """Value, pullback, tangent and batch of a primitive agree with NumPy's, and stay on the device."""
    if name in DERIVATIVE_ON_THE_HOST:
        sample = replace(sample, differentiable=())
    there = moved(sample, move)
    same = np.testing.assert_array_equal if exact else np.testing.assert_allclose
    close = {} if exact else {"rtol": 1e-6, "atol": 1e-8}
    for got, expected in zip(
        outputs(name, there.args, sample.params), outputs(name, sample.args, sample.params), strict=True
    ):
        assert isinstance(got, kind)
        same(host(got), expected, **close)
    if sample.batched:
        lanes = Sample(tuple([np.stack([a, a]) for a in sample.args]), sample.params)
        lane = func.vmap(lambda *args: outputs(name, args, sample.params))(*moved(lanes, move).args)
        for got, expected in zip(lane, outputs(name, sample.args, sample.params), strict=True):
            assert isinstance(got, kind)
            np.testing.assert_allclose(host(got)[1], expected, rtol=1e-6, atol=1e-8)
    if not sample.differentiable:
        return
    points = [sample.args[i] for i in sample.differentiable]
    points_there = [there.args[i] for i in sample.differentiable]
    outs, pullback = func.vjp(of_active(name, sample), *points)
    _, pullback_there = func.vjp(of_active(name, there), *points_there)
    cts = [np.ones_like(o) for o in outs]
    pulled_there = pullback_there([move(np.asarray(ct)) for ct in cts])
    for got, expected in zip(pulled_there, pullback(cts), strict=True):
        assert isinstance(got, kind)
        np.testing.assert_allclose(host(got), expected, rtol=1e-6, atol=1e-8)
    tangents = [np.ones_like(p) for p in points]
    _, dots = func.jvp(of_active(name, sample), tuple(points), tuple(tangents))
    _, dots_there = func.jvp(
        of_active(name, there), tuple(points_there), tuple([move(np.asarray(t)) for t in tangents])
    )
    for got, expected in zip(dots_there, dots, strict=True):
        assert isinstance(got, kind)
        np.testing.assert_allclose(host(got), expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(("name", "sample"), ALL)
def test_rows_on_the_double(name: str, sample: Sample) -> None:
    if name in ON_THE_HOST:
        with pytest.raises(TypeError, match="on the host"):
            outputs(name, moved(sample, to_device).args, sample.params)
        return
    check_on_device(name, sample, to_device, DeviceArray, exact=name not in ROUNDED)


@pytest.mark.gpu
@pytest.mark.parametrize(("name", "sample"), ALL)
def test_rows_on_cupy(name: str, sample: Sample) -> None:
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    if name in ON_THE_HOST:
        return
    check_on_device(name, sample, lambda a: cupy.asarray(a) if isinstance(a, np.ndarray) else a, cupy.ndarray, False)


def test_the_double_refuses_conversion() -> None:
    with pytest.raises(TypeError, match="Implicit conversion"):
        np.asarray(DeviceArray([1.0]))
    with pytest.raises(TypeError, match="met a device array"):
        DeviceArray([1.0]) + np.ones(1)


def test_a_program_on_the_double() -> None:
    def loss(x: Any) -> Any:
        y = np.tanh(x @ x) + x[1:].sum() * np.where(x > 0.5, x, 0.0)
        return np.mean(np.concatenate([y, y[::-1]]) ** 2)

    x = np.linspace(0.1, 0.9, 4)
    gradient = func.grad(loss)(DeviceArray(x))
    assert isinstance(gradient, DeviceArray)
    np.testing.assert_allclose(gradient.get(), func.grad(loss)(x))
    hessian = func.hessian(loss)(DeviceArray(x))
    np.testing.assert_allclose(hessian.get(), func.hessian(loss)(x))


def test_the_double_leaves_operators_to_a_traced_operand() -> None:
    x, factor = np.arange(3.0), np.array([2.0, 3.0, 5.0])
    (pulled,) = func.vjp(lambda t: DeviceArray(factor) * t, DeviceArray(x))[1](DeviceArray(np.ones(3)))
    np.testing.assert_array_equal(pulled.get(), factor)
    mapped = func.vmap(lambda t: DeviceArray(factor) - t)(DeviceArray(np.stack([x, -x])))
    np.testing.assert_array_equal(mapped.get(), np.stack([factor - x, factor + x]))


@pytest.mark.parametrize("shape", [(2,), (2, 3)])
def test_traced_values_have_the_class_of_the_device(shape: tuple[int, ...]) -> None:
    seen = []

    def note(x: Any) -> Any:
        seen.append(x.__class__)
        return x * 2.0

    func.vmap(note)(DeviceArray(np.ones(shape)))
    func.jit(func.vmap(note))(DeviceArray(np.ones(shape)))
    func.jit(note)(DeviceArray(np.ones(shape)))
    assert set(seen) == {DeviceArray}


def residuals(x: Any) -> Any:
    return np.linalg.lstsq(np.vstack([x, x[:1] + 1.0]), np.arange(3.0), rcond=None)[1]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.abs(np.linalg.eigvals(x).imag).sum(),
        lambda x: np.linalg.pinv(x, rcond=1e-15),
        residuals,
    ],
)
def test_a_staged_device_array_is_not_taken_for_its_example(function: Callable[[Any], Any]) -> None:
    x = np.array([[1.0, -2.0], [3.0, 1.0]])
    np.testing.assert_allclose(host(func.jit(function)(DeviceArray(x))), func.jit(function)(x), atol=1e-12)


def test_places_on_the_device_are_read() -> None:
    x, places = np.arange(6.0).reshape(2, 3) ** 2, np.array([1, 0, 2])
    for function in (
        lambda x, places: np.repeat(x, places, axis=1),
        lambda x, places: np.roll(x, places[0], axis=1),
        lambda x, places: np.delete(x, places[:2], axis=1),
        lambda x, places: np.insert(x, places[:2], 7.0, axis=1),
        lambda x, places: np.take(x, places, axis=1),
    ):
        for transform in (lambda f, x: func.vjp(f, x)[0], lambda f, x: func.jvp(f, (x,), (x,))[1]):
            got = transform(lambda x, f=function: f(x, DeviceArray(places)), DeviceArray(x))
            np.testing.assert_array_equal(host(got), transform(lambda x, f=function: f(x, places), x))


def test_a_traced_device_array_shows_its_values() -> None:
    texts = []
    func.vjp(lambda x: (texts.append(repr(x)), x)[1], DeviceArray([1.5]))
    assert "value=[1.5]" in texts[0]
