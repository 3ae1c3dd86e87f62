"""Programs in native parts and others: as few parts as the order of the data allows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from func.interpreters.native.rules import NotNative
from func.interpreters.native.translate import Translator, rule_of, translate
from func.interpreters.primitives.kinds import NonDifferentiable
from func.interpreters.program import Equation, Program, Var

VIEWS = frozenset({"broadcast", "reshape", "permute", "getitem", "named", "stop_gradient", "barrier"})
"""Rows that are not worth a native part by themselves."""
ALONE = frozenset({"contract", "concatenate", "update", "embed", "gather"})
"""Rows of which one is as fast in NumPy."""

Run: TypeAlias = Callable[..., tuple[Any, ...]]
Compile: TypeAlias = Callable[[Program], tuple[Run, Any]]


class SegmentRow(NonDifferentiable):
    """A call of compiled code in a program that is not native as a whole."""

    __slots__ = ()


native_call = SegmentRow(
    "native_call",
    lambda xp, *args, run, avals, native: run(*args),
    aval=lambda *given, run, avals, native: avals,
    batch=lambda size, batched, args, params: None,
    multiple=True,
    differentiable=False,
    register=False,
)
"""The outputs of compiled code; `native` is what compiled it, None where NumPy took over."""


def foreign_equations(program: Program) -> set[int]:
    """The places of the equations without a native form."""
    return Translator(program).foreign()


def segmented(program: Program, foreign: set[int], compiled: Compile) -> Program:
    """The program with its native parts as calls of compiled code."""
    parts = _parts(program, foreign)
    if not any([is_native for is_native, _ in parts]):
        return program
    equations: list[Equation] = []
    used_later = _last_uses(program, parts)
    for number, (is_native, part) in enumerate(parts):
        if not is_native:
            equations.extend(part)
            continue
        equations.append(_call(program, part, used_later, number, compiled))
    return Program(program.inputs, equations, program.outputs, program.constants)


def _call(
    program: Program, part: list[Equation], used_later: dict[Var, int], number: int, compiled: Compile
) -> Equation:
    made = {var for equation in part for var in equation.outputs}
    read = dict.fromkeys([x for equation in part for x in equation.inputs if type(x) is Var and x not in made])
    constants = {var: program.constants[var] for var in read if var in program.constants}
    inputs = [var for var in read if var not in constants]
    outputs = [var for equation in part for var in equation.outputs if used_later.get(var, -1) > number]
    body = Program(inputs, part, outputs, constants)
    avals = tuple([var.aval for var in outputs])
    run, native = compiled(body)
    return Equation(native_call, tuple(inputs), {"run": run, "avals": avals, "native": native}, tuple(outputs))


def _last_uses(program: Program, parts: Sequence[tuple[bool, list[Equation]]]) -> dict[Var, int]:
    last: dict[Var, int] = {}
    for number, (_, part) in enumerate(parts):
        for equation in part:
            for x in equation.inputs:
                if type(x) is Var:
                    last[x] = number
    for x in program.outputs:
        if type(x) is Var:
            last[x] = len(parts)
    return last


def _parts(program: Program, foreign: set[int]) -> list[tuple[bool, list[Equation]]]:
    """Equations by turns: all foreign ones that are ready, then all native ones that are, and so on."""
    depth: dict[Var, int] = {}
    turns: dict[int, list[int]] = {}
    for place, equation in enumerate(program.equations):
        is_foreign = place in foreign
        turn = 0 if is_foreign else 1
        for x in equation.inputs:
            have = depth.get(x, 0) if type(x) is Var else 0
            turn = max(turn, have if (have % 2 == 0) == is_foreign else have + 1)
        depth.update(dict.fromkeys(equation.outputs, turn))
        turns.setdefault(turn, []).append(place)
    found = []
    for turn in sorted(turns):
        part = [program.equations[place] for place in turns[turn]]
        found.append((turn % 2 == 1 and _is_worth_it(part), part))
    return found


def _is_worth_it(part: list[Equation]) -> bool:
    names = [equation.row.name for equation in part if equation.row.name not in VIEWS]
    return bool(names) and not (len(names) == 1 and names[0] in ALONE)


__all__ = ["NotNative", "foreign_equations", "native_call", "rule_of", "segmented", "translate"]
