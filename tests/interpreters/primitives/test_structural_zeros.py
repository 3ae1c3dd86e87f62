"""Structural zeros, by laws for every primitive at the samples of the table, in forward and in reverse mode.

A (co)tangent has a random pattern of zeros, which are structural. The rules of a primitive compute the same numbers
with `StructuralZeros` as on plain arrays. The mask of the result covers everything that a reached element reaches.
Without a reached element the result is zero, also at points with infinite partials.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import func
from func.interpreters.core import PRIMITIVES, ZERO, Primitive, dtype_of
from func.interpreters.grad import walk
from func.interpreters.grad_fast import grad_interpreter
from func.interpreters.jvp import Jvp
from func.interpreters.primitives import elementwise, structural
from func.interpreters.structural_zeros import StructuralZeros, has_mask, without_mask
from tests.interpreters.primitives.test_samples import SMOOTH, direction, of_active
from tests.support.sampling import Sample


def thinned(x: Any, seed: int) -> Any:
    """A random direction, about half of whose elements are zero."""
    kept = np.random.default_rng(seed + 100).random(np.shape(x)) < 0.5
    return np.asarray(direction(x, seed) * kept, dtype_of(x))


def pushed(f: Any, points: Sequence[Any], tangents: Sequence[Any], structural: StructuralZeros | None) -> list[Any]:
    """The tangents of the outputs, with their masks if `structural`."""
    interpreter = Jvp("jvp", structural)
    outs = f(*[interpreter.lift(x, dx) for x, dx in zip(points, tangents, strict=True)])
    return [
        getattr(out, "_attached", ZERO) if getattr(out, "_interpreter", None) is interpreter else ZERO for out in outs
    ]


def pulled(f: Any, points: Sequence[Any], cts: Sequence[Any], structural: StructuralZeros | None) -> list[Any]:
    """The cotangents of the arguments."""
    interpreter = grad_interpreter("vjp")
    args = [interpreter.lift(x) for x in points]
    outs = f(*args)
    seeds = [
        (out._attached, ct)
        for out, ct in zip(outs, cts, strict=True)
        if getattr(out, "_interpreter", None) is interpreter
    ]
    return walk(seeds, [arg._attached for arg in args], structural)


def in_numbers(value: Any) -> Any:
    return 0.0 if value is ZERO else np.asarray(without_mask(value))


@pytest.mark.parametrize(("name", "sample"), SMOOTH)
def test_live_tangents_are_the_tangents(name: str, sample: Sample) -> None:
    f = of_active(name, sample)
    points = [sample.args[i] for i in sample.differentiable]
    tangents = [thinned(x, 1) for x in points]
    with np.errstate(all="ignore"):
        plain = pushed(f, points, tangents, None)
        lived = pushed(f, points, tangents, StructuralZeros())
    for expected, got in zip(plain, lived, strict=True):
        np.testing.assert_allclose(in_numbers(got), in_numbers(expected), rtol=1e-12, atol=1e-12)
        if has_mask(got) and got._attached is not None:
            assert np.shape(got._attached) == np.shape(got._value), "a mask has the shape of its tangent"
            reached = np.abs(in_numbers(expected)) > 1e-9
            assert np.all(np.asarray(got._attached) | ~reached), "an element that a structural one reaches is dead"


@pytest.mark.parametrize(("name", "sample"), SMOOTH)
def test_live_cotangents_are_the_cotangents(name: str, sample: Sample) -> None:
    f = of_active(name, sample)
    points = [sample.args[i] for i in sample.differentiable]
    cts = [thinned(np.asarray(out), 2) for out in f(*points)]
    with np.errstate(all="ignore"):
        plain = pulled(f, points, cts, None)
        lived = pulled(f, points, cts, StructuralZeros())
    for expected, got in zip(plain, lived, strict=True):
        np.testing.assert_allclose(in_numbers(got), in_numbers(expected), rtol=1e-12, atol=1e-12)


HOSTILE = [0.0, np.inf, -1.0]
ELEMENTARY = {
    name
    for package in (elementwise, structural)
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
    for name in [
        value.name for value in vars(importlib.import_module(module.name)).values() if isinstance(value, Primitive)
    ]
}
"""The elementwise and structural primitives: those of linear algebra and special functions refuse such points."""
PLAIN = [case for case in SMOOTH if case.values[0] in ELEMENTARY]


def at(points: Sequence[Any], number: float) -> list[Any]:
    """The points, with the number in the place of every element."""
    return [np.full(np.shape(x), number, dtype_of(x))[()] for x in points]


@pytest.mark.parametrize(("name", "sample"), PLAIN)
def test_what_is_not_seeded_is_zero_at_any_point(name: str, sample: Sample) -> None:
    f = of_active(name, sample)
    points = [sample.args[i] for i in sample.differentiable]
    for number in HOSTILE:
        hostile = at(points, number)
        with np.errstate(all="ignore"):
            try:
                outs = f(*hostile)
            except (ValueError, np.linalg.LinAlgError):
                continue
            zeros = [np.zeros(np.shape(x), dtype_of(x)) for x in hostile]
            for dot in pushed(f, hostile, zeros, StructuralZeros()):
                assert np.all(in_numbers(dot) == 0), f"forward at {number}"
            cts = [np.zeros(np.shape(out), dtype_of(out)) for out in outs]
            for ct in pulled(f, hostile, cts, StructuralZeros()):
                assert np.all(in_numbers(ct) == 0), f"reverse at {number}"


@pytest.mark.parametrize(("name", "sample"), PLAIN)
def test_forward_and_reverse_mode_and_compiled_code_agree_on_what_is_nan(name: str, sample: Sample) -> None:
    """⟨ct, J dx⟩ = ⟨Jᵀ ct, dx⟩ of elementwise primitives, element by element, at singular points."""
    primitive = PRIMITIVES[name]
    if not hasattr(primitive, "partials") or len(sample.differentiable) != 1:
        return
    f = of_active(name, sample)
    (point,) = [sample.args[i] for i in sample.differentiable]
    for number in HOSTILE:
        (x,) = at([point], number)
        dx = thinned(x, 3)
        with np.errstate(all="ignore"):
            (out,) = f(x)
            if np.shape(out) != np.shape(x) or dtype_of(out) != dtype_of(x):
                return
            (forward,) = func.jvp(f, (x,), (dx,))[1]
            (reverse,) = func.vjp(f, x)[1]([dx])
            (compiled,) = func.jit(lambda x, dx: func.jvp(f, (x,), (dx,))[1])(x, dx)
            (compiled_reverse,) = func.jit(lambda x, ct: func.vjp(f, x)[1]([ct]))(x, dx)
        if dtype_of(x).kind == "c":
            reverse, compiled_reverse = forward, compiled
        for got in (reverse, compiled, compiled_reverse):
            np.testing.assert_allclose(got, forward, rtol=1e-6, equal_nan=True, err_msg=f"at {number}")
        assert np.all(np.asarray(forward)[np.asarray(dx) == 0] == 0)
