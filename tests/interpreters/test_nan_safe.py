"""NaN-safe pullbacks: the check for NaN, the facts that a stage gets, and when the NaN-safe form runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import func
from func.interpreters import drivers
from func.interpreters.calls.compiled_call import CompiledCall, trace_call, trace_function
from func.interpreters.core import Aval, Tracer
from func.interpreters.grad_fast import grad_interpreter
from func.interpreters.nan_safe import any_nan, checked, has_nan, note_pullback, pull, with_fallback
from func.interpreters.stage import Stage
from func.interpreters.structural_zeros import StructuralZeros

SCALAR = [Aval((), np.dtype(np.float64))]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.array([1.0, np.nan]), True),
        (np.array([1.0, np.inf, -np.inf]), False),
        (np.array([[1e300, 2.0], [3.0, 4.0]]).T, False),
        (np.array([1.0, complex(0.0, np.nan)]), True),
        (np.array([], np.float64), False),
        (np.array([1, 2]), False),
        (np.float32(np.nan), True),
        (float("nan"), True),
        (complex(0.0, np.nan), True),
        (1.0, False),
        (None, False),
    ],
)
def test_has_nan(value: Any, expected: bool) -> None:
    assert has_nan(value) is expected
    assert any_nan([0.0, value]) is expected


def test_a_check_for_nan_leaves_the_stage_alone() -> None:
    stage = Stage("jit")
    variable = stage.variable(SCALAR[0])
    assert not has_nan(variable)
    assert not stage.has_pullbacks


def test_the_innermost_stage_is_told_of_a_pullback() -> None:
    outer, inner = Stage("jit"), Stage("jit")
    traced = grad_interpreter("grad").lift(inner.variable(SCALAR[0]))
    assert type(traced) is Tracer
    note_pullback([1.0, traced])
    assert inner.has_pullbacks and not outer.has_pullbacks


def test_a_pullback_runs_again_only_where_it_gives_nan() -> None:
    runs: list[bool] = []

    def pullback(results: tuple[float, float]) -> Any:
        def walk(structural: StructuralZeros | None) -> list[Any]:
            runs.append(structural is not None)
            return [np.array(results[structural is not None])]

        return walk

    assert pull(pullback((1.0, 2.0))) == [1.0]
    assert pull(pullback((np.nan, 2.0))) == [2.0]
    assert runs == [False, False, True]


def test_a_function_that_gives_other_outputs_when_it_runs_again_keeps_its_nan() -> None:
    calls = []

    def changing(x: Any) -> Any:
        calls.append(x)
        return func.numpy.sqrt(x) * len(calls)

    x, dx = np.array([0.0, 4.0]), np.array([0.0, 1.0])
    with np.errstate(all="ignore"):
        out, tangent = func.jvp(changing, (x,), (dx,))
    assert len(calls) == 2 and np.array_equal(out, [0.0, 2.0]) and np.isnan(tangent[0]) and tangent[1] == 0.25


def sqrt_or_zero(x: Any) -> Any:
    """A function whose gradient at zero needs the NaN-safe rules."""
    return func.numpy.where(x > 0, func.numpy.sqrt(x) / x * x, 0.0)


def test_only_programs_with_pullbacks_have_a_variant() -> None:
    compiled, _ = trace_function(lambda x: [func.grad(sqrt_or_zero)(x)], SCALAR, "compiled")
    assert compiled.has_pullbacks
    variant = compiled.nan_safe_variant()
    assert variant is not None and variant is compiled.nan_safe_variant() and not variant.has_pullbacks
    zero = np.array(0.0)
    with np.errstate(all="ignore"):
        assert np.isnan(compiled.program(zero)[0]) and variant.program(zero)[0] == 0.0
    assert compiled.execute(np, (zero,))[0] == 0.0
    plain, _ = trace_function(lambda x: [sqrt_or_zero(x)], SCALAR, "compiled")
    assert not plain.has_pullbacks and plain.nan_safe_variant() is None


def test_with_fallback_runs_the_variants_of_all_programs() -> None:
    (compiled, _), (plain, _) = [
        trace_function(f, SCALAR, "compiled") for f in (lambda x: [func.grad(sqrt_or_zero)(x)], lambda x: [x / x])
    ]
    runs: list[tuple[CompiledCall, ...]] = []

    def run(*programs: CompiledCall) -> Any:
        runs.append(programs)
        return [program.program(np.array(0.0))[0] for program in programs]

    with np.errstate(all="ignore"):
        with_fallback(run, (plain,), lambda outs: outs)
        assert runs == [(plain,)]
        assert with_fallback(run, (compiled, plain), lambda outs: outs)[0] == 0.0
    assert runs[1:] == [(compiled, plain), (compiled.nan_safe_variant(), plain)]


def test_checked_functions() -> None:
    def run(x: Any) -> tuple[Any, ...]:
        return (x,)

    assert checked(run, None) is run
    both = checked(run, lambda x: (np.array(7.0),))
    assert both(np.array(1.0)) == (1.0,) and both(np.array(np.nan)) == (7.0,)


def test_a_function_over_traced_values_is_traced_both_ways_at_once() -> None:
    traces: list[bool] = []

    def outer(y: Any) -> Any:
        def trace(stage: Stage) -> Any:
            traces.append(True)
            return drivers.stage_flat(lambda x: [func.grad(sqrt_or_zero)(x) * y], SCALAR, stage)

        compiled, captured = trace_call(trace, "compiled")
        assert len(captured) == 1 and compiled.has_pullbacks
        return compiled(*captured, np.array(0.0))[0]

    with np.errstate(all="ignore"):
        assert func.grad(outer)(3.0) == 0.0
    assert len(traces) == 2
