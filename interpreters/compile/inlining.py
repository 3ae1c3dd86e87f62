"""Prepare a Program for execution: replace calls by the equations that they call, and run the passes.

Calls are inlined once no transform will see them any more.
"""

from __future__ import annotations

from typing import Any

from func.interpreters import drivers
from func.interpreters.calls.compiled_call import CompiledCall
from func.interpreters.core import Array
from func.interpreters.primitives.structural.identity import as_seed, seed
from func.interpreters.program.program import Equation, Program
from func.interpreters.program.translations import keeps_bits, validated
from func.interpreters.rank_axis import with_plain_numbers
from func.interpreters.stage import DerivedStage

LARGE = 1000
"""The most equations of a compiled call for inlining: longer ones stay calls of separate code."""


def prepare_program(program: Program, is_for_device: bool = False) -> Program:
    """The program for execution: with calls inlined, optimized."""
    return optimized(inline(program), is_for_device)


def optimized(program: Program, is_for_device: bool = False) -> Program:
    """An inlined program optimised, for arrays of a device or of the host."""
    from func.interpreters.compile.passes import cleanup, optimize  # start-up time: programs on disk need no passes

    return optimize(cleanup.with_small_constants_on_host(program) if is_for_device else program)


def prepare_call(compiled: CompiledCall) -> Program:
    """The program of a call for execution, with its NaN-safe variant if the two differ."""
    program = prepare_program(compiled.program)
    variant = compiled.nan_safe_variant()
    if variant is not None:
        nan_safe = prepare_program(variant.program)
        if nan_safe != program:
            return Program(program.inputs, program.equations, program.outputs, program.constants, nan_safe)
    return program


def inline(program: Program) -> Program:
    """The program with the calls of custom rules, checkpoints and small programs inlined."""
    return validated(inline_calls)(program)


@keeps_bits
def inline_calls(program: Program) -> Program:
    """`inline` as a pass."""
    while any([_body(equation) is not None for equation in program.equations]):
        equations = program.equations

        def flat(*args: Array, program: Program = program, equations: Any = equations) -> Any:
            def override(place: int, operands: tuple[Array, ...]) -> Any:
                if equations[place].primitive is seed and args:
                    return (as_seed(operands[0], args[0]),)
                body = _body(equations[place])
                return None if body is None else tuple(body(*operands))

            return program.run(args, override)

        program = drivers.stage_flat(flat, [var.aval for var in program.inputs], DerivedStage("jit"))
    return with_plain_numbers(program)


def _body(equation: Equation) -> Any:
    if equation.primitive.name == "program_call":
        compiled = equation.params["compiled"]
        if len(compiled.program.equations) <= LARGE:
            return compiled.run_on
        return compiled.unchecked() if compiled.has_pullbacks else None
    body = equation.primitive.body
    return None if body is None else body(equation.params)
