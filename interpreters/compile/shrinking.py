"""The smallest program that still shows a fault."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from func.interpreters import drivers
from func.interpreters.core import Aval
from func.interpreters.program.program import Program, Var
from func.interpreters.stage import DerivedStage

T = TypeVar("T")

SHRINK_TIME = 20.0
"""The most seconds for making a program small."""


def smallest(program: Program, found: T, fault: Callable[[Program], T | None]) -> tuple[Program, T]:
    """(a smaller program, its fault): leave parts out as long as `fault` finds one."""
    end = time.monotonic() + SHRINK_TIME
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for candidate in _smaller(program):
            if time.monotonic() > end:
                return program, found
            if _measure(candidate) >= _measure(program):
                continue
            try:
                other = fault(candidate)
            except Exception:  # a translation need not support such a program
                continue
            if other is not None:
                program, found, is_smaller = candidate, other, True
                break
    return program, found


def _measure(program: Program) -> tuple[int, ...]:
    elements = sum([var.size for var in (*program.inputs, *program.constants)])
    return len(program.equations), len(program.outputs), len(program.inputs), elements


def _smaller(program: Program) -> Iterator[Program]:
    """Programs with fewer outputs, equations, inputs or elements, the smallest first."""
    if len(program.outputs) > 1:
        for out in program.outputs:
            yield _reduced(program, program.equations, [out])
    size = len(program.equations) // 2 or len(program.equations)
    while size:
        for start in range(0, len(program.equations), size):
            block = program.equations[start : start + size]
            made = [out for equation in block for out in equation.outputs]
            yield _reduced(program, program.equations[: start + size], made)
            rest = [*program.equations[:start], *program.equations[start + size :]]
            yield _reduced(program, rest, program.outputs, made)
        size //= 2
    yield _reduced(program, program.equations, program.outputs)
    lengths = {length for var in (*program.inputs, *program.constants) for length in var.shape}
    for before in sorted(lengths, reverse=True):
        for after in (1, 2, 3):
            if after < before and (resized := _resized(program, before, after)) is not None:
                yield resized


def _reduced(
    program: Program, equations: Sequence[Any], outputs: Sequence[Any], further: Sequence[Var] = ()
) -> Program:
    """Some of the equations, with some variables as further inputs, and without unused ones."""
    pruned = Program([*program.inputs, *further], equations, outputs, program.constants).pruned()
    used = {x for equation in pruned.equations for x in equation.inputs} | set(pruned.outputs)
    return Program([var for var in pruned.inputs if var in used], pruned.equations, pruned.outputs, pruned.constants)


def _resized(program: Program, before: int, after: int) -> Program | None:
    """The program on axes of another length, if its parameters allow it."""

    def cut(value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return value
        return value[tuple([slice(after) if length == before else slice(None) for length in value.shape])]

    constants = {var: cut(value) for var, value in program.constants.items()}
    changed = Program(program.inputs, program.equations, program.outputs, constants)
    avals = [
        Aval(tuple([after if length == before else length for length in var.shape]), var.dtype, var.weak)
        for var in program.inputs
    ]
    try:
        resized = drivers.stage_flat(lambda *args: changed.run(args), avals, DerivedStage("jit"))
        resized.check()
    except Exception:  # a parameter has the length
        return None
    return resized
