"""The validator of Programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from func.interpreters.core import Aval, Tracer, aval_of, dtype_of, shape_of
from func.interpreters.core.errors import ProgramError
from func.interpreters.core.parameters import could_exist, parameter_error
from func.interpreters.program.printing import equation_text, names_of
from func.interpreters.program.program import Equation, Program, Var


def check_program(program: Program, checked: dict[int, Program] | None = None) -> None:
    """Raise ProgramError unless every variable is defined once, before its use, with the aval of its primitive.

    Programs in `checked`, by their ids, are not checked again, and every nested program is checked once.
    """
    checked = {} if checked is None else checked
    names = names_of(program)
    defined: set[Var] = set()
    for var in (*program.inputs, *program.constants):
        if var in defined:
            raise ProgramError(f"the program is not valid: its input or constant {names[var]} is defined twice")
        if not could_exist(var.aval):
            raise ProgramError(f"the program is not valid: no array is like its input or constant {names[var]}")
        defined.add(var)
    for var, value in program.constants.items():
        if type(value) is not Tracer and (shape_of(value), dtype_of(value)) != (var.shape, var.dtype):
            raise ProgramError(
                f"the program is not valid: its constant {names[var]} is declared as {var.aval} and is "
                f"{Aval(shape_of(value), dtype_of(value))}"
            )
    for number, equation in enumerate(program.equations):
        _check_equation(program, number, equation, names, defined, checked)
    for x in program.outputs:
        if type(x) is Var and x not in defined:
            raise ProgramError(f"the program is not valid: its output {names.get(x, x)}, {x.aval}, is never defined")
    checked[id(program)] = program


def _check_equation(
    program: Program,
    number: int,
    equation: Equation,
    names: dict[Var, str],
    defined: set[Var],
    checked: dict[int, Program],
) -> None:
    def fail(what: str, cause: BaseException | None = None) -> NoReturn:
        at = f"\n  from {equation.line}" if equation.line is not None else ""
        text = equation_text(program, equation)
        raise ProgramError(f"equation {number} of the program, `{text}`, is not valid: {what}{at}") from cause

    for x in equation.inputs:
        if type(x) is Var and x not in defined:
            fail(f"{names.get(x, 'one of its inputs')}, {x.aval}, is used before it is defined")
    for key, nested in equation.nested():
        if id(nested) in checked:
            continue
        try:
            check_program(nested, checked)
        except ProgramError as error:
            fail(f"in {key}, {error}", error)
    for var, aval in zip(equation.outputs, _expected(equation, fail), strict=True):
        if var in defined:
            fail(f"{names[var]} is defined twice")
        if not could_exist(var.aval):
            fail(f"no array is like its output {names[var]}")
        if (var.shape, var.dtype) != (aval.shape, aval.dtype):
            fail(f"its output {names[var]} is declared as {var.aval}, but {equation.primitive} gives {aval}")
        defined.add(var)


def _expected(equation: Equation, fail: Callable[..., NoReturn]) -> tuple[Aval, ...]:
    """The avals of the primitive's outputs."""
    avals = [x.aval if type(x) is Var else aval_of(x) for x in equation.inputs]
    reason = parameter_error(equation.primitive, avals, equation.params)
    if reason is not None:
        operands = ", ".join([repr(aval) for aval in avals])
        fail(f"{equation.primitive} does not take ({operands}) with these parameters: {reason}")
    try:
        out = equation.primitive.aval(*avals, **equation.params)
    except Exception as error:
        operands = ", ".join([repr(aval) for aval in avals])
        fail(f"{equation.primitive} does not take ({operands}) with these parameters: {error}", error)
    outs = tuple(out) if equation.primitive.multiple else (out,)
    if len(outs) != len(equation.outputs):
        fail(f"it has {len(equation.outputs)} outputs, but {equation.primitive} gives {len(outs)}")
    return outs
