"""Backward passes of eager code whose large products are NumPy's, in turns with native code.

The threads of NumPy's BLAS wait for the next product in a busy loop, for up to tens of milliseconds after one. Eager
code has just multiplied by them. So the threads of native code, which would multiply by SciPy's BLAS, find their cores
taken. The pass of a network with batches of 1,024 took 1.5 times as long as alone. The same threads go on with NumPy's
products at once. The bits are those of eager code, which depend on the number of BLAS's threads anyway.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func.backends import thread_count
from func.backends.quiet import quietly
from func.interpreters.compile.native.native_parts import Compile, with_compiled_parts
from func.interpreters.core import aval_of
from func.interpreters.program.program import Equation, Program, Var
from func.interpreters.program.storage import is_view

LARGE = 3e7
"""From this many multiplications and additions of one matrix product on, turns pay: a fifth of a millisecond. Smaller
products take longer by several threads of BLAS, and native code reads few rows faster."""
LEAST = 64
"""From these numbers of rows, columns and terms on, multiplying takes longer than reading."""
BLAS = frozenset("fdFD")
"""Characters of the dtypes that BLAS multiplies."""


def large_products(program: Program) -> set[int]:
    """The places of the equations for NumPy."""
    if thread_count.num_threads() < 2:
        return set()
    return {place for place, equation in enumerate(program.equations) if _is_large(equation)}


def _is_large(equation: Equation) -> bool:
    if equation.primitive.name != "contract" or not all([type(x) is Var for x in equation.inputs]):
        return False
    spec, (x, y), (out,) = equation.params["spec"], equation.inputs, equation.outputs
    if not x.dtype == y.dtype == out.dtype or out.dtype.char not in BLAS:
        return False
    lengths = dict(zip((*spec.x, *spec.y), (*x.shape, *y.shape), strict=True))
    in_x, in_y, in_out = set(spec.x), set(spec.y), set(spec.out)
    groups = in_x - in_y, in_y - in_x, (in_x & in_y) - in_out
    rows, columns, terms = [int(math.prod([lengths[label] for label in labels])) for labels in groups]
    is_worth_it: bool = min(rows, columns, terms) >= LEAST and 2 * rows * columns * terms >= LARGE
    return is_worth_it


def in_turns(program: Program, products: set[int], compile_part: Compile) -> InTurns | None:
    """The program as a function of host arrays; None if something else in it has no native form."""
    is_native = True

    def compiled(part: Program) -> tuple[Callable[..., Any], Any]:
        nonlocal is_native
        run, native = compile_part(part)
        is_native = is_native and native is not None
        # Outputs of one part are mostly operands of the next: the memory that each one keeps for its next call would
        # add up.
        return (run if native is None else native.strict_stub(run, keeps_outputs=False)), native

    turns = InTurns(with_compiled_parts(program, _late_parts(program, products), compiled))
    return turns if is_native else None


def _late_parts(program: Program, products: set[int]) -> list[tuple[bool, list[Equation]]]:
    """Products and native equations in turns.

    A native equation does not run before its place in the program: the slope of a layer comes just before its use.
    Slopes of all layers at once would be in memory for long."""
    parts: list[tuple[bool, list[Equation]]] = []
    waiting: list[Equation] = []
    made_there: set[Any] = set()
    for place, equation in enumerate(program.equations):
        if place not in products:
            waiting.append(equation)
            made_there.update(equation.outputs)
            continue
        if not made_there.isdisjoint(equation.inputs):
            parts.append((not all(map(is_view, waiting)), waiting))
            waiting, made_there = [], set()
        if not parts or parts[-1][0]:
            parts.append((False, []))
        parts[-1][1].append(equation)
    return [*parts, (True, waiting)] if waiting else parts


class InTurns:
    """A program as a list of functions on numbered arrays, each of which is dropped after its last use."""

    __slots__ = ("_count", "_outputs", "_shared", "_steps", "_values", "program")

    def __init__(self, program: Program) -> None:
        self.program = program
        self._count = len(program.inputs)
        self._values: list[Any] = [*[None] * self._count, *program.constants.values()]
        places: dict[Any, int] = {var: place for place, var in enumerate((*program.inputs, *program.constants))}
        self._shared = set(places.values())
        """The places of arrays that others own too, or that may share the memory of one."""
        last: dict[int, int] = {}

        def place_of(x: Any) -> int:
            if type(x) is Var:
                return places[x]
            self._values.append(np.asarray(x, aval_of(x).dtype)[()])
            return len(self._values) - 1

        steps: list[Any] = []
        for number, equation in enumerate(program.equations):
            inputs = [place_of(x) for x in equation.inputs]
            for out in equation.outputs:
                places[out] = len(self._values)
                self._values.append(None)
            outputs = [places[out] for out in equation.outputs]
            if is_view(equation):
                self._shared.update(outputs)
            last.update(dict.fromkeys([*inputs, *outputs], number))
            steps.append((equation.primitive, equation.params, inputs, outputs))
        self._outputs = [place_of(x) for x in program.outputs]
        dead: list[list[int]] = [[] for _ in steps]
        for place, end in last.items():
            if place not in self._outputs:
                dead[end].append(place)
        self._steps = [(*step, places) for step, places in zip(steps, dead, strict=True)]

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        return quietly(self._run, args)

    def _run(self, args: Sequence[Any]) -> tuple[Any, ...]:
        values = self._values.copy()
        values[: self._count] = args
        for primitive, params, inputs, outputs, dead in self._steps:
            found = primitive.impl(np, *[values[place] for place in inputs], **params)
            for place, value in zip(outputs, found if primitive.multiple else (found,), strict=True):
                values[place] = value
            for place in dead:
                values[place] = None
        outs: list[Any] = []
        taken: set[int] = set()
        for place in self._outputs:
            value = values[place]
            if place in self._shared or id(value) in taken:
                value = np.array(value)[()] if np.ndim(value) == 0 else np.array(value)
            taken.add(id(value))
            outs.append(value)
        return tuple(outs)
