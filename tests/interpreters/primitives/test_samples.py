"""Properties that every primitive has, tested at the samples of the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import func
from func.interpreters import grad_fast
from func.interpreters.core import PRIMITIVES, aval_of, dtype_of, shape_of
from tests.support.samples import SAMPLES
from tests.support.sampling import Sample

ALL = [pytest.param(name, sample, id=f"{name}-{i}") for name, own in SAMPLES.items() for i, sample in enumerate(own)]
SMOOTH = [case for case in ALL if case.values[1].differentiable]  # type: ignore[union-attr]


def outputs(name: str, args: Sequence[Any], params: dict[str, Any]) -> tuple[Any, ...]:
    """The outputs of a primitive as a tuple."""
    out = PRIMITIVES[name](*args, **params)
    return tuple(out) if PRIMITIVES[name].multiple else (out,)


def of_active(name: str, sample: Sample) -> Any:
    """The primitive as a function of its differentiable arguments, with floating point outputs only."""

    def f(*active: Any) -> list[Any]:
        args = list(sample.args)
        for position, value in zip(sample.differentiable, active, strict=True):
            args[position] = value
        return [out for out in outputs(name, args, sample.params) if dtype_of(out).kind in "fc"]

    return f


def direction(x: Any, seed: int) -> Any:
    """A random tangent of a value; not symmetric where the value is a symmetric matrix."""
    rng = np.random.default_rng(seed)
    t = rng.normal(size=np.shape(x))
    if np.iscomplexobj(x):
        t = t + 1j * rng.normal(size=np.shape(x))
    return t


def dot(x: Any, y: Any) -> float:
    """The real inner product that adjoints refer to."""
    return float(np.sum(np.real(np.conj(x) * y)))


@pytest.fixture(params=["fast", "general"])
def reverse_mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Reverse mode with and without its fast path."""
    monkeypatch.setattr(grad_fast, "ENABLED", request.param == "fast")
    return str(request.param)


def test_every_primitive_has_samples() -> None:
    assert set(SAMPLES) >= set(PRIMITIVES), f"primitives without samples: {sorted(set(PRIMITIVES) - set(SAMPLES))}"
    assert all(SAMPLES[name] for name in PRIMITIVES)


@pytest.mark.parametrize(("name", "sample"), ALL)
def test_aval_predicts_shape_and_dtype(name: str, sample: Sample) -> None:
    avals = [aval_of(arg) for arg in sample.args]
    predicted = PRIMITIVES[name].aval(*avals, **sample.params)
    predicted = tuple(predicted) if PRIMITIVES[name].multiple else (predicted,)
    for aval, out in zip(predicted, outputs(name, sample.args, sample.params), strict=True):
        assert (aval.shape, aval.dtype) == (shape_of(out), dtype_of(out))


@pytest.mark.parametrize(("name", "sample"), SMOOTH)
def test_tangent_agrees_with_differences(name: str, sample: Sample) -> None:
    f = of_active(name, sample)
    points = [sample.args[i] for i in sample.differentiable]
    tangents = [direction(x, 1) for x in points]
    out, dots = func.jvp(f, tuple(points), tuple(tangents))
    step = 1e-3

    def at(t: float) -> list[Any]:
        return f(*[x + t * step * v for x, v in zip(points, tangents, strict=True)])

    parts = [at(t) for t in (-2, -1, 1, 2)]
    for k, got in enumerate(dots):
        m2, m1, p1, p2 = [part[k] for part in parts]
        expected = (8 * (p1 - m1) - (p2 - m2)) / (12 * step)
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=sample.tolerance * 10)
    for value, plain in zip(out, f(*points), strict=True):
        np.testing.assert_array_equal(value, plain)


@pytest.mark.parametrize(("name", "sample"), SMOOTH)
def test_pullback_is_the_adjoint_of_the_tangent_map(name: str, sample: Sample, reverse_mode: str) -> None:
    f = of_active(name, sample)
    points = tuple([sample.args[i] for i in sample.differentiable])
    tangents = tuple([direction(x, 2) for x in points])
    outs, dots = func.jvp(f, points, tangents)
    cts = [np.asarray(direction(np.asarray(o), 3), np.asarray(o).dtype) for o in outs]
    pulled = func.vjp(f, *points)[1](cts)
    left = sum([dot(ct, d) for ct, d in zip(cts, dots, strict=True)])
    right = sum([dot(p, t) for p, t in zip(pulled, tangents, strict=True)])
    np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-10)
    for p, x in zip(pulled, points, strict=True):
        assert np.shape(p) == np.shape(x) and np.asarray(p).dtype == np.asarray(x).dtype


@pytest.mark.parametrize(("name", "sample"), SMOOTH)
def test_the_general_pullback_is_the_fast_one(name: str, sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    f = of_active(name, sample)
    points = tuple([sample.args[i] for i in sample.differentiable])
    pulled = []
    for is_fast in (True, False):
        monkeypatch.setattr(grad_fast, "ENABLED", is_fast)
        outs, pullback = func.vjp(f, *points)
        pulled.append(pullback([np.asarray(direction(np.asarray(out), 5), np.asarray(out).dtype) for out in outs]))
    for fast, general in zip(*pulled, strict=True):
        np.testing.assert_allclose(general, fast, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize(("name", "sample"), SMOOTH)
def test_second_order(name: str, sample: Sample, reverse_mode: str) -> None:
    f = of_active(name, sample)
    points = tuple([sample.args[i] for i in sample.differentiable])
    tangents = tuple([direction(x, 4) for x in points])

    def loss(*active: Any) -> Any:
        return sum([np.sum(np.real(out * np.conj(out))) for out in f(*active)])

    gradient = func.grad(loss, argnums=tuple(range(len(points))))
    _, forward = func.jvp(gradient, points, tangents)
    backward = func.vjp(gradient, *points)[1](tangents)
    left = sum([dot(a, t) for a, t in zip(forward, tangents, strict=True)])
    right = sum([dot(a, t) for a, t in zip(backward, tangents, strict=True)])
    np.testing.assert_allclose(left, right, rtol=1e-6, atol=1e-7)
    step = 1e-5
    above = gradient(*[x + step * t for x, t in zip(points, tangents, strict=True)])
    below = gradient(*[x - step * t for x, t in zip(points, tangents, strict=True)])
    for got, a, b in zip(forward, above, below, strict=True):
        expected = (np.asarray(a) - np.asarray(b)) / (2 * step)
        scale = max(1.0, float(np.abs(expected).max()))
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4 * scale)


@pytest.mark.parametrize(("name", "sample"), ALL)
def test_batch_is_the_stack_of_singles(name: str, sample: Sample) -> None:
    if not sample.batched:
        mapped = func.vmap(lambda *args: outputs(name, args, sample.params))(*[np.stack([a, a]) for a in sample.args])
        assert np.shape(mapped[0])[0] == 2
        return
    count = len(sample.args)
    masks = [tuple([bool(bits >> i & 1) for i in range(count)]) for bits in range(1, 1 << min(count, 3))]
    for mask in masks:
        mask = (*mask, *[False] * (count - len(mask)))
        args = [
            np.stack([a, a if np.asarray(a).dtype.kind in "biu" else a * 1.001]) if m else a
            for a, m in zip(sample.args, mask, strict=True)
        ]
        in_dims = tuple([0 if m else None for m in mask])
        mapped = func.vmap(lambda *inner: outputs(name, inner, sample.params), in_dims=in_dims)(*args)
        for element in range(2):
            single = outputs(name, [a[element] if m else a for a, m in zip(args, mask, strict=True)], sample.params)
            for batch, expected in zip(mapped, single, strict=True):
                np.testing.assert_allclose(batch[element], expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(("name", "sample"), ALL)
def test_program_round_trip(name: str, sample: Sample) -> None:
    program = func.make_program(lambda *args: outputs(name, args, sample.params))(*sample.args)
    program.check()
    assert name in repr(program) or name.endswith("_call")
    for got, expected in zip(program(*sample.args), outputs(name, sample.args, sample.params), strict=True):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(("name", "sample"), SMOOTH)
def test_single_precision_stays_single(name: str, sample: Sample) -> None:
    def narrow(x: Any) -> Any:
        kinds = {"f": np.float32, "c": np.complex64}
        return np.asarray(x).astype(kinds[np.asarray(x).dtype.kind]) if np.asarray(x).dtype.kind in kinds else x

    if name in ("convert", "linear_call", "cond_call", "scan_call", "program_call"):
        return  # their parameters fix the dtype
    small = Sample(tuple([narrow(a) for a in sample.args]), sample.params, sample.differentiable)
    points = tuple([small.args[i] for i in small.differentiable])
    outs, pullback = func.vjp(of_active(name, small), *points)
    for p, x in zip(pullback([np.ones_like(o) for o in outs]), points, strict=True):
        assert np.asarray(p).dtype == x.dtype


SMALL_INTEGERS = [
    ("log_cosh", (np.int8(3),), 2.3093285045777852),
    ("log_cosh", (np.int8(-128),), 127.30685281944005),
    ("log_cosh", (np.uint32(3),), 2.3093285045777852),
    ("log_gammainc", (np.int8(127), np.int8(100)), -5.253452095656224),
    ("log_gammaincc", (np.int8(3), np.int8(100)), -91.46280812207708),
]


@pytest.mark.parametrize(("name", "args", "expected"), SMALL_INTEGERS)
def test_integers_are_numbers_of_their_value(name: str, args: tuple[Any, ...], expected: float) -> None:
    """Nothing is computed in a type whose largest number is small."""
    np.testing.assert_allclose(PRIMITIVES[name](*args), expected, rtol=1e-6)


def test_shape_of_a_single_order_counts() -> None:
    gap = PRIMITIVES["polygamma_gap"]
    assert gap(np.array([[1]]), np.array([2.0, 3.0]), 0.5).shape == (1, 2)


@pytest.mark.parametrize("name", ["one_minus_square", "arctan_slope", "over_square_sum", "modulus_power"])
def test_formulas_of_numbers_have_the_dtype_that_they_state(name: str) -> None:
    primitive = PRIMITIVES[name]
    for number in (0.5, 2):
        args = (number,) * len(SAMPLES[name][0].args)
        assert aval_of(primitive(*args)) == primitive.aval(*[aval_of(x) for x in args])
