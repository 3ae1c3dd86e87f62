"""Answers to SciPy's checks of unknown values: the checks pass.

SciPy's functions check their arguments in statements such as `if np.any(scale <= 0): raise ValueError(...)`. During a
trace there are no values to check. A statement that only raises or warns does not affect the result, so its check
passes, and SciPy's own code compiles. Any other question about an unknown value is an error.
"""

from __future__ import annotations

import ast
import dis
import functools
import inspect
import linecache
import sys
import textwrap
from collections.abc import Sequence
from types import CodeType, FrameType

from func.backends.parsing import parsed
from func.interpreters.host.source import is_engine_file


def passing_answer() -> bool | None:
    """The truth value with which a check of SciPy passes; None if the question is not a check."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_engine_file(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None or not str(frame.f_globals.get("__name__")).startswith("scipy."):
        return None
    return _answer(frame.f_code, frame.f_lasti)


@functools.lru_cache(512)
def _answer(code: CodeType, place: int) -> bool | None:
    """The same for the instruction at a place in the bytecode: the next jump must not lead to the error."""
    instructions = list(dis.get_instructions(code))
    here = next((i for i, instruction in enumerate(instructions) if instruction.offset == place), 0)
    lines = linecache.getlines(code.co_filename)[code.co_firstlineno - 1 :]
    passed_over = {"TO_BOOL"} | ({"CALL"} if _is_builtin_call(instructions[here], code, lines) else set())
    jump = next((i for i in instructions[here : here + 3] if i.opname not in passed_over), None)
    if jump is None or not jump.opname.startswith("POP_JUMP") or not jump.opname.endswith(("_TRUE", "_FALSE")):
        return None
    target = _landing(instructions, jump.argval)
    jump_range, target_range = _range_of(jump), _range_of(target)
    if not lines or jump_range is None or target_range is None:
        return None
    indent = len(lines[0]) - len(lines[0].lstrip())
    try:
        tree = parsed(textwrap.dedent("".join(inspect.getblock(lines))))
    except SyntaxError:  # a text whose lines begin further left than the function
        return None
    shift = (code.co_firstlineno - 1, indent)
    jump_range, target_range = _shifted(jump_range, shift), _shifted(target_range, shift)
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and _only_refuses(node.body):
            raising = (_ends(node.body[0])[0], _ends(node.body[-1])[1])
        elif isinstance(node, ast.Assert):
            raising = None
        else:
            continue
        if jump_range == _ends(node) or _is_within(jump_range, _ends(node.test)):
            raises = target.opname == "LOAD_ASSERTION_ERROR" if raising is None else _is_within(target_range, raising)
            return jump.opname.endswith("_TRUE") != raises
    return None


def _landing(instructions: Sequence[dis.Instruction], offset: int) -> dis.Instruction:
    """The target of a jump, past the instructions that clear the operands of a chain of comparisons."""
    place = next(i for i, instruction in enumerate(instructions) if instruction.offset == offset)
    while instructions[place].opname == "POP_TOP":
        place += 1
    landed = instructions[place]
    return _landing(instructions, landed.argval) if landed.opname == "JUMP_FORWARD" else landed


def _is_builtin_call(instruction: dis.Instruction, code: CodeType, lines: Sequence[str]) -> bool:
    """Whether an instruction calls a function that asks for the truth of its argument."""
    ends = _range_of(instruction)
    if ends is None or instruction.opname != "CALL" or not lines:
        return False
    text = lines[ends[0][0] - code.co_firstlineno][ends[0][1] :]
    return text.startswith(("any(", "all(", "bool(", "np.allclose("))


Place = tuple[int, int]
"""A line and a column."""


def _range_of(instruction: dis.Instruction) -> tuple[Place, Place] | None:
    """The start and the end of an instruction in the source."""
    numbers = instruction.positions
    if numbers is None or None in numbers:
        return None
    first, last, start, end = [int(number or 0) for number in numbers]
    return (first, start), (last, end)


def _shifted(ends: tuple[Place, Place], by: Place) -> tuple[Place, Place]:
    (first, start), (last, end) = ends
    return (first - by[0], start - by[1]), (last - by[0], end - by[1])


def _ends(node: ast.stmt | ast.expr) -> tuple[Place, Place]:
    return (node.lineno, node.col_offset), (int(node.end_lineno or 0), int(node.end_col_offset or 0))


def _is_within(part: tuple[Place, Place], whole: tuple[Place, Place]) -> bool:
    return whole[0] <= part[0] and part[1] <= whole[1]


def _only_refuses(body: Sequence[ast.stmt]) -> bool:
    """Whether statements only raise or warn."""
    if isinstance(body[-1], ast.Raise):
        return all([isinstance(statement, (ast.Assign, ast.Raise)) for statement in body])
    return all([_is_text(statement) for statement in body[:-1]]) and _is_warning(body[-1])


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign) and isinstance(statement.value, (ast.Constant, ast.JoinedStr))


def _is_warning(statement: ast.stmt) -> bool:
    called = statement.value.func if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr == "warn"
