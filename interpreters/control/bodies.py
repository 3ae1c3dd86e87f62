"""What the rows of branches and loops share: staged bodies, their halves, lanes that stand in for others."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from func.interpreters import drivers
from func.interpreters.calls.compiled_call import CompiledCall
from func.interpreters.core import (
    ZERO,
    Array,
    Aval,
    Shaped,
    Tracer,
    dtype_of,
    is_inexact,
    shape_of,
    snapshot,
    unboxed,
)
from func.interpreters.grad import has_nan
from func.interpreters.primitives.structural.reductions import argmax
from func.interpreters.primitives.structural.shapes import full_like, iota, reshape, where
from func.interpreters.program.program import Program, Var
from func.interpreters.stage import DerivedStage, Recorder, Stage

T = TypeVar("T")


# --- helpers ----------------------------------------------------------------------------------------------------


def is_abstract(value: Any) -> bool:
    """Whether no numbers are known of a value: at the bottom of its tracers is a variable of a stage."""
    while type(value) is Tracer:
        owner = value.interpreter
        if isinstance(owner, Stage) and not isinstance(owner, Recorder):
            return True
        value = value.value
    return False


def parts(values: Sequence[T], *counts: int) -> list[list[T]]:
    """A flat list cut into groups of these lengths, and the rest."""
    groups = []
    start = 0
    for count in counts:
        groups.append(list(values[start : start + count]))
        start += count
    return [*groups, list(values[start:])]


def derived(fun: Callable[..., Sequence[Array]], avals: Sequence[Aval]) -> CompiledCall:
    """A function of the engine's own, staged."""
    return CompiledCall(drivers.stage_flat(fun, avals, DerivedStage("compiled")))


def remembered(compiled: CompiledCall, key: Any, make: Callable[[], T]) -> T:
    """What was derived from a staged program under this key; made when first asked for."""
    found: Any = compiled._halves.get(key)
    if found is None:
        found = compiled._halves[key] = make()
    return found  # type: ignore[no-any-return]


def input_avals(compiled: CompiledCall) -> list[Aval]:
    """What the inputs of a staged program are."""
    return [var.aval for var in compiled.program.inputs]


def strong(avals: Sequence[Shaped]) -> list[Aval]:
    """Avals of arrays, as tangents and cotangents are."""
    return [Aval(aval.shape, aval.dtype) for aval in avals]


def stepper(compiled: CompiledCall, xp: Any) -> Callable[..., tuple[Any, ...]]:
    """A staged program as a function of concrete arrays that may be called many times."""
    return functools.partial(_executed, compiled, xp) if compiled.pulls else compiled.runner(xp)


def _executed(compiled: CompiledCall, xp: Any, *args: Array) -> tuple[Any, ...]:
    return compiled.execute(xp, args)


def on_backend(xp: Any, args: Sequence[Array]) -> Sequence[Array]:
    """Arguments with host arrays moved to where the others are."""
    return args if xp is np else [xp.asarray(x) if type(x) is np.ndarray else x for x in args]


def unshared(compiled: CompiledCall, outs: Sequence[Array]) -> tuple[Array, ...]:
    """Outputs of which none is an array that the program holds."""
    constants = compiled.program.constants
    return tuple(
        [
            out.copy() if type(x) is not Var or x in constants else out
            for out, x in zip(outs, compiled.program.outputs, strict=False)
        ]
    )


def dependents(program: Program, active: Sequence[bool], derivatives: bool = True) -> list[bool]:
    """Which outputs depend on the active inputs; with `derivatives` in a way that a derivative may pass."""
    seen = {var for var, on in zip(program.inputs, active, strict=True) if on}
    for equation in program.equations:
        if derivatives and not equation.primitive.differentiable:
            continue
        if any([type(x) is Var and x in seen for x in equation.inputs]):
            seen.update([out for out in equation.outputs if not derivatives or is_inexact(out.dtype)])
    return [type(out) is Var and out in seen for out in program.outputs]


def zeros(aval: Shaped) -> Array:
    """Zeros of an abstract value's shape and dtype."""
    return np.zeros(aval.shape, aval.dtype)


def settled(value: Array) -> Array:
    """A value as a row may keep it."""
    return snapshot(unboxed(value))


def any_nan(outs: Sequence[Any]) -> bool:
    """Whether some output has a NaN."""
    return any([has_nan(out) for out in outs])


def is_moving(values: Sequence[Array], given: Sequence[Any]) -> tuple[bool, ...]:
    """Which arguments have a tangent, or want a cotangent."""
    return tuple(
        [one is not ZERO and one is not None and is_inexact(dtype_of(x)) for x, one in zip(values, given, strict=True)]
    )


def filled(avals: Sequence[Aval], places: Sequence[int], ct: dict[int, Any]) -> list[Any]:
    """The cotangents of the outputs at these places, zeros where there is none."""
    like = next(iter(ct.values()))
    return [ct[i] if i in ct else full_like(like, 0, avals[i].shape, avals[i].dtype) for i in places]


def spread(contribution: Sequence[Any], active: Sequence[bool]) -> list[Any]:
    """Values of the active arguments, with ZERO for the others."""
    rest = iter(contribution)
    return [next(rest) if on else ZERO for on in active]


def borrowed(size: int, hit: Array) -> Array:
    """For each lane its own number if it is hit, and otherwise that of the first lane that is: code that masks lanes
    never runs on numbers that no lane would have given it."""
    return where(hit, iota(size, hit), argmax(hit, axis=0))


def select(hit: Array, new: Array, old: Array) -> Array:
    """Lane by lane one of two arrays."""
    rank = len(shape_of(new))
    return where(reshape(hit, shape=(*shape_of(hit), *[1] * (rank - 1))), new, old)


# --- halves of a staged program ----------------------------------------------------------------------------------


class Half:
    """A staged program cut in two: `first` leaves residuals behind its outputs; `second(residuals, moving)` takes
    tangents of the active inputs to those of the outputs (forwards), or cotangents of the inexact outputs to those of
    the active inputs (backwards), ZERO where there is none."""

    __slots__ = ("first", "moved", "second")
    first: Program
    moved: list[Aval]
    second: Callable[[Sequence[Array], Sequence[Array]], list[Any]]


def forward_half(compiled: CompiledCall, active: tuple[bool, ...]) -> Half:
    """The halves of forward mode."""
    made = compiled.linearized(active)
    half = Half()
    half.first = made.known.program
    half.moved = strong([aval for aval, on in zip(input_avals(compiled), active, strict=True) if on])

    def second(residuals: Sequence[Array], moving: Sequence[Array]) -> list[Any]:
        return spread(made.tangent.run_on(*residuals, *moving), made.has_tangent)

    half.second = second
    return half


def backward_half(compiled: CompiledCall, active: tuple[bool, ...], nan_safe: bool = False) -> Half:
    """The halves of reverse mode. Guarded: the residuals are the arguments, and zero cotangents win."""
    made = compiled.pulled(active)
    half = Half()
    half.moved = strong([compiled.out_avals[i] for i in made.inexact])
    if nan_safe:
        program = compiled.program
        half.first = Program(program.inputs, program.equations, (*program.outputs, *program.inputs), program.constants)
        half.second = made.nan_safe
        return half
    half.first = made.forward.program

    def second(residuals: Sequence[Array], moving: Sequence[Array]) -> list[Any]:
        return spread(made.backward.run_on(*residuals, *moving), made.reached)

    half.second = second
    return half
