"""Partition of a program into native parts and others: as few parts as the order of the data allows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from func.backends.records import Record
from func.interpreters.compile.native.translate import Translator
from func.interpreters.core import NonDifferentiable
from func.interpreters.program.program import Equation, Program, Var
from func.interpreters.program.storage import is_view

Run: TypeAlias = Callable[..., tuple[Any, ...]]
Compile: TypeAlias = Callable[[Program], tuple[Run, Any]]


class NativeCallPrimitive(NonDifferentiable):
    """A call of compiled code in a program that is not native as a whole."""

    __slots__ = ()


native_call = NativeCallPrimitive(
    "native_call",
    lambda xp, *args, run, body, native: run(*args),
    aval=lambda *avals, run, body, native: tuple([var.aval for var in body.outputs]),
    batch=lambda size, batched, args, params: None,
    multiple=True,
    differentiable=False,
    register=False,
)
"""The outputs of the program `body` by compiled code, which `native` made; None if NumPy took over."""


def foreign_equations(program: Program, libraries: bool = True) -> set[int]:
    """The places of the equations without a native form."""
    return Translator(program, libraries=libraries).foreign()


def with_native_parts(program: Program, foreign: set[int], compile_part: Compile) -> Program:
    """The program with its native parts, as few as possible, as calls of compiled code."""
    return with_compiled_parts(program, _parts(program, foreign), compile_part)


def with_compiled_parts(
    program: Program, parts: Sequence[tuple[bool, list[Equation]]], compile_part: Compile
) -> Program:
    """The program of some parts in order, each native or not, the native ones as calls of compiled code."""
    if not any([is_native for is_native, _ in parts]):
        return program
    equations: list[Equation] = []
    last_uses = _last_uses(program, parts)
    for number, (is_native, part) in enumerate(parts):
        if not is_native:
            equations.extend(part)
            continue
        body = _body(program, part, last_uses, number)
        run, native = compile_part(body)
        params = {"run": run, "body": body, "native": native}
        equations.append(Equation(native_call, body.inputs, params, body.outputs))
    return Program(program.inputs, equations, program.outputs, program.constants)


def _body(program: Program, part: Sequence[Equation], last_uses: dict[Var, int], number: int) -> Program:
    """The program of a part."""
    defined = {var for equation in part for var in equation.outputs}
    read = dict.fromkeys([x for equation in part for x in equation.inputs if type(x) is Var and x not in defined])
    constants = {var: program.constants[var] for var in read if var in program.constants}
    inputs = [var for var in read if var not in constants]
    outputs = [var for equation in part for var in equation.outputs if last_uses.get(var, -1) > number]
    return Program(inputs, part, outputs, constants)


class Piece(Record):
    """A native part with its compiler, or a part that NumPy runs."""

    program: Program
    native: Any = None


def pieces(program: Program) -> list[Piece]:
    """The parts of a program that `with_native_parts` has cut, in order."""
    parts: list[tuple[bool, list[Equation]]] = []
    for equation in program.equations:
        is_native = equation.primitive is native_call
        if is_native or not parts or parts[-1][0]:
            parts.append((is_native, [equation]))
        else:
            parts[-1][1].append(equation)
    last_uses = _last_uses(program, parts)
    return [
        Piece(part[0].params["body"], part[0].params["native"])
        if is_native
        else Piece(_body(program, part, last_uses, number))
        for number, (is_native, part) in enumerate(parts)
    ]


def _last_uses(program: Program, parts: Sequence[tuple[bool, list[Equation]]]) -> dict[Var, int]:
    """The last part that reads each variable."""
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
    """(is native, equations) in turn: all foreign equations that are ready, then all native ones, and so on.

    Equations that communicate keep their order, since other processes, with other shapes, may have other parts.
    """
    depth: dict[Var, int] = {}
    last_message = 0
    turns: dict[int, list[int]] = {}
    for place, equation in enumerate(program.equations):
        is_foreign = place in foreign
        turn = 0 if is_foreign else 1
        for x in equation.inputs:
            ready = depth.get(x, 0) if type(x) is Var else 0
            turn = max(turn, ready if (ready % 2 == 0) == is_foreign else ready + 1)
        if is_foreign and equation.communicates:
            turn = last_message = max(turn, last_message)
        depth.update(dict.fromkeys(equation.outputs, turn))
        turns.setdefault(turn, []).append(place)
    parts = []
    for turn in sorted(turns):
        part = [program.equations[place] for place in turns[turn]]
        parts.append((turn % 2 == 1 and _is_worth_it(part), part))
    return parts


def _is_worth_it(part: list[Equation]) -> bool:
    """Whether compiled code is faster than NumPy: views cost nothing there."""
    equations = [equation for equation in part if not is_view(equation)]
    return len(equations) > 1 or any([not equation.primitive.numpy_suffices for equation in equations])
