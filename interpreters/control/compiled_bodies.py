"""Shared by branches, loops and scans: compiled calls as bodies, and the batch elements for which a body runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from func.interpreters import drivers
from func.interpreters.calls.compiled_call import CompiledCall, batched_avals
from func.interpreters.core import Array, Aval, Shaped, Tracer, is_inexact, materialize, shape_of
from func.interpreters.primitives.structural.filling import iota
from func.interpreters.primitives.structural.reductions import argmax
from func.interpreters.primitives.structural.shapes import reshape, where
from func.interpreters.program.program import Equation, Program, Var
from func.interpreters.stage import DerivedStage, Stage

T = TypeVar("T")


def is_abstract(value: Any) -> bool:
    """Whether a value has no known numbers: the innermost of its tracers is a variable of a stage."""
    while type(value) is Tracer:
        owner = value._interpreter
        if isinstance(owner, Stage):
            return True
        value = value._value
    return False


def split(values: Sequence[T], *counts: int) -> list[list[T]]:
    """Groups of these lengths, and the rest."""
    groups = []
    start = 0
    for count in counts:
        groups.append(list(values[start : start + count]))
        start += count
    return [*groups, list(values[start:])]


def compiled_function(fun: Callable[..., Sequence[Array]], avals: Sequence[Aval]) -> CompiledCall:
    """A function of the engine as a compiled call."""
    return CompiledCall(drivers.stage_flat(fun, avals, DerivedStage("compiled")))


def strong(avals: Sequence[Shaped]) -> list[Aval]:
    """The abstract values without weak types, as tangents and cotangents have them."""
    return [Aval(aval.shape, aval.dtype) for aval in avals]


def zeros(aval: Shaped) -> Array:
    """Zeros of an abstract value's shape and dtype."""
    return np.zeros(aval.shape, aval.dtype)


def on_backend(xp: Any, args: Sequence[Array]) -> Sequence[Array]:
    """Arguments with host arrays moved to the backend of the others."""
    return args if xp is np else [xp.asarray(x) if type(x) is np.ndarray else x for x in args]


def unshared(compiled: CompiledCall, outs: Sequence[Array]) -> tuple[Array, ...]:
    """Outputs, with copies of the program's own arrays."""
    constants = compiled.program.constants
    return tuple(
        [
            out.copy() if type(x) is not Var or x in constants else out
            for out, x in zip(outs, compiled.program.outputs, strict=False)
        ]
    )


def dependents(program: Program, active: Sequence[bool], derivatives: bool = True) -> list[bool]:
    """The outputs that depend on the active inputs; with `derivatives` only by differentiable equations."""
    reached = {var for var, is_active in zip(program.inputs, active, strict=True) if is_active}
    for equation in program.equations:
        if derivatives and not equation.primitive.differentiable:
            continue
        if any([type(x) is Var and x in reached for x in equation.inputs]):
            reached.update([out for out in equation.outputs if not derivatives or is_inexact(out.dtype)])
    return [type(out) is Var and out in reached for out in program.outputs]


def active_inputs(
    body: CompiledCall, consts: int, carries: int, active: Sequence[bool], derivatives: bool = True
) -> tuple[bool, ...]:
    """The active inputs of a loop's body: the given ones, and each carry that depends on them after some step."""
    flags = list(active)
    while True:
        outs = dependents(body.program, flags, derivatives)
        extended = [
            is_active or (consts <= i < consts + carries and outs[i - consts]) for i, is_active in enumerate(flags)
        ]
        if extended == flags:
            return tuple(flags)
        flags = extended


def batched_body(body: CompiledCall, size: int, which: tuple[bool, ...], carried: Sequence[bool]) -> CompiledCall:
    """The body of a loop with a leading batch axis of the inputs in `which`, of the carries in `carried`, and of all
    other outputs."""

    def batched_program(compiled: CompiledCall) -> Program:
        def flat(*args: Array) -> list[Array]:
            outs, are_mapped = drivers.map_flat(compiled.run_on, size, which, args)
            has_axis = [*carried, *[True] * (len(outs) - len(carried))]
            assert all([has or not is_mapped for has, is_mapped in zip(has_axis, are_mapped, strict=True)])
            return [
                materialize(size, (is_mapped,), (out,))[0] if has else out
                for out, has, is_mapped in zip(outs, has_axis, are_mapped, strict=True)
            ]

        return drivers.stage_flat(flat, batched_avals(compiled.in_avals, size, which), DerivedStage("compiled"))

    return body.memoized(("batched body", size, which, tuple(carried)), lambda: body.transformed(batched_program))


def without_effects(compiled: CompiledCall) -> CompiledCall:
    """The same values without effects, for a loop that runs a second time."""
    if not compiled.program.has_effects:
        return compiled

    def quiet(value: Any) -> Any:
        if type(value) is tuple:
            return tuple([quiet(each) for each in value])
        return without_effects(value) if type(value) is CompiledCall else value

    def edited(original: CompiledCall) -> Program:
        program = original.program
        equations = [
            Equation(e.primitive, e.inputs, {k: quiet(v) for k, v in e.params.items()}, e.outputs, e.line)
            for e in program.equations
            if e.outputs
        ]
        return Program(program.inputs, equations, program.outputs, program.constants).pruned()

    return compiled.memoized("quiet", lambda: compiled.transformed(edited))


def representative(size: int, selected: Array) -> Array:
    """For each batch element its index if it is selected, else the index of the first one that is.

    So code that computes all elements and masks some never runs on numbers that no element passes to it.
    """
    return where(selected, iota(size, selected), argmax(selected, axis=0))


def choose(selected: Array, new: Array, old: Array) -> Array:
    """One of two arrays for each batch element."""
    rank = len(shape_of(new))
    return where(reshape(selected, shape=(*shape_of(selected), *[1] * (rank - 1))), new, old)
