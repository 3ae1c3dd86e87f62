"""Taylor mode of every primitive: the first coefficient is the jvp's, and each other one follows from that before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

import func
from func.interpreters.core import PRIMITIVES, dtype_of
from func.interpreters.core.errors import NotDifferentiableError
from func.interpreters.drivers import taylor_flat
from tests.support.samples import SAMPLES
from tests.support.sampling import Sample

HIGH, LOW = 6, 3
"""The order of most primitives, and that of matrix functions, whose higher derivatives take seconds."""
MATRIX_FUNCTIONS = ("logm", "fractional_matrix_power", "expm_frechet")


def direction(x: Any) -> Any:
    """A tangent of an argument."""
    generator = np.random.default_rng(1)
    dx = generator.normal(size=np.shape(x))
    if np.iscomplexobj(x):
        dx = dx + 1j * generator.normal(size=np.shape(x))
    return np.asarray(dx, np.asarray(x).dtype)[()]


def inexact_outputs(name: str, sample: Sample) -> Callable[..., list[Any]]:
    """The outputs with derivatives, as a function of the differentiable arguments."""
    primitive = PRIMITIVES[name]

    def outputs(*active: Any) -> list[Any]:
        args = list(sample.args)
        for place, x in zip(sample.differentiable, active, strict=True):
            args[place] = x
        out = primitive(*args, **sample.params)
        return [y for y in (out if primitive.multiple else (out,)) if dtype_of(y).kind in "fc"]

    return outputs


def coefficients(f: Callable[..., Any], xs: Sequence[Any], dxs: Sequence[Any], order: int) -> list[list[Any]]:
    """The coefficients of the outputs along a line, zeros included."""
    series = func.jet(f, tuple(xs), tuple([[dx, *[0.0] * (order - 1)] for dx in dxs]))
    return [[out, *terms] for out, terms in zip(*series, strict=True)]


def up_to(order: int, f: Callable[..., Any], xs: Sequence[Any], dxs: Sequence[Any]) -> list[list[Any]]:
    """The coefficients up to this order, or to the last that is not refused."""
    for highest in range(order, 1, -1):
        try:
            return coefficients(f, xs, dxs, highest)
        except NotDifferentiableError as error:
            assert "no derivative of" in str(error)
    return coefficients(f, xs, dxs, 1)


def lower(f: Callable[..., Any], dxs: Sequence[Any], order: int, *xs: Any) -> list[Any]:
    """The coefficients as a function of the point."""
    return coefficients(f, xs, dxs, order)


def close(x: Any, y: Any, steps: int) -> bool:
    """Whether two derivatives are equal up to rounding, which grows with the order."""
    x, y = np.asarray(x), np.asarray(y)
    digits = np.finfo(x.dtype).eps ** 0.55 * 4**steps
    return np.allclose(x, y, rtol=digits, atol=digits * (1 + np.max(np.abs(y), initial=0)), equal_nan=True)


@pytest.mark.parametrize("name", [name for name, samples in SAMPLES.items() if any(s.differentiable for s in samples)])
def test_derivatives_of_coefficients(name: str) -> None:
    order = LOW if name.startswith(MATRIX_FUNCTIONS) else HIGH
    for sample in SAMPLES[name]:
        if not sample.differentiable:
            continue
        f = inexact_outputs(name, sample)
        xs = tuple([sample.args[i] for i in sample.differentiable])
        dxs = tuple([direction(x) for x in xs])
        try:
            outs, firsts = func.jvp(f, xs, dxs)
        except (NotDifferentiableError, TypeError):
            continue

        with np.errstate(all="ignore"):
            whole = up_to(order, f, xs, dxs)
            _, moved = func.jvp(partial(lower, f, dxs, len(whole[0]) - 2), xs, dxs)
        for own, out, first, tangents in zip(whole, outs, firsts, moved, strict=True):
            assert np.array_equal(own[0], out, equal_nan=True), "value"
            assert close(own[1], first, 1), "order 1"
            for k, tangent in enumerate(tangents, 1):
                assert close(own[k], tangent, k), f"order {k}"


def test_no_coefficients_of_constants() -> None:
    (out,) = taylor_flat(lambda x, y: [y * 2.0], 3, [1.0, 3.0], [[1.0, 0.0, 0.0], None])
    assert out[0] == 6.0
    assert len(out) == 4


@pytest.mark.parametrize("x", [0.3, 5.0, 19.0, -40.0])
def test_tanh_takes_one_square_a_coefficient_and_keeps_its_digits(x: float) -> None:
    """Far out the derivative of order k is -(-2)^k 2 exp(-2 |x|) sign(x)^(k+1), up to exp(-4 |x|)."""
    program = func.make_program(func.derivatives(np.tanh, 10))(x)
    assert sum([equation.primitive.name == "multiply" for equation in program.equations]) <= 70
    if abs(x) > 10:
        for k, derivative in enumerate(func.derivatives(np.tanh, 8)(x)[1:], 1):
            expected = -((-2.0) ** k) * 2 * np.exp(-2 * abs(x)) * np.sign(x) ** (k + 1)
            np.testing.assert_allclose(derivative, expected, rtol=1e-11)
