"""A Program as text: one line per equation, nested programs indented below their equation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from func.interpreters.core import short_dtype
from func.interpreters.host.display import escaped
from func.interpreters.program.program import Equation, Program, Var

Paint: TypeAlias = Callable[[str, str], str]
"""Formats a piece of text: paint(kind, text), with a kind of COLOURS or "plain"."""

COLOURS = {
    "word": "#8250df",
    "variable": "#0550ae",
    "type": "#57606a",
    "primitive": "#953800",
    "params": "#116329",
    "line": "#6e7781",
}
"""The kinds of text and their colours in a notebook."""


def plain(kind: str, text: str) -> str:
    """The text as it is."""
    return text


def coloured(kind: str, text: str) -> str:
    """The text as HTML."""
    colour = COLOURS.get(kind)
    shown = escaped(text)
    return f'<span style="color:{colour}">{shown}</span>' if colour else shown


def program_text(program: Program, lines: bool = False, paint: Paint = plain) -> str:
    """The program as text; with `lines` each equation names its source line."""
    return "\n".join(_lines(program, lines, paint, ""))


def equation_text(program: Program, equation: Equation) -> str:
    """One equation of a program on one line, as in the printed program."""
    return _equation(equation, names_of(program), plain)[0]


def _lines(program: Program, lines: bool, paint: Paint, indent: str, label: str = "") -> Iterator[str]:
    names = names_of(program)
    head = ", ".join([_typed(var, names, paint) for var in program.inputs])
    yield f"{indent}{label}{paint('word', 'program')}({head}) {{"
    for var, value in program.constants.items():
        constant = f"{paint('primitive', 'constant')} {paint('params', brief(value))}"
        yield f"{indent}  {_typed(var, names, paint)} = {constant}"
    for equation in program.equations:
        text, width = _equation(equation, names, paint)
        line = f"{indent}  {text}"
        if lines and equation.line is not None:
            space = " " * max(1, 70 - len(indent) - width)
            line = f"{line}{space}{paint('line', f'# {equation.line}')}"
        yield line
        for key, nested in equation.nested():
            yield from _lines(nested, lines, paint, f"{indent}    ", f"{paint('params', key)} = ")
    outs = ", ".join([_atom(x, names, paint) for x in program.outputs])
    yield f"{indent}  {paint('word', 'return')} {outs}"
    yield f"{indent}}}"


def _equation(equation: Equation, names: dict[Var, str], paint: Paint) -> tuple[str, int]:
    """The line of an equation, and its width without markup."""

    def line(paint: Paint) -> str:
        left = ", ".join([_typed(var, names, paint) for var in equation.outputs])
        params = params_text(equation)
        right = "".join([f" {_atom(x, names, paint)}" for x in equation.inputs])
        middle = paint("plain", "[") + paint("params", params) + paint("plain", "]") if params else ""
        return f"{left}{' = ' if left else ''}{paint('primitive', equation.primitive.name)}{middle}{right}"

    text = line(paint)
    return text, len(text) if paint is plain else len(line(plain))


def _typed(var: Var, names: dict[Var, str], paint: Paint) -> str:
    return f"{paint('variable', names.get(var, '?'))}:{paint('type', repr(var.aval))}"


def _atom(x: Any, names: dict[Var, str], paint: Paint) -> str:
    return paint("variable", names.get(x, "?")) if type(x) is Var else paint("plain", repr(x))


def params_text(equation: Equation) -> str:
    """The parameters of an equation, without brackets."""
    return ", ".join([f"{key}={brief(value)}" for key, value in equation.params.items()])


def names_of(program: Program) -> dict[Var, str]:
    """Short names a, b, ..., z, aa, ... in order of definition."""
    order = [*program.inputs, *program.constants, *[out for eq in program.equations for out in eq.outputs]]
    names: dict[Var, str] = {}
    for i, var in enumerate(order):
        letters = ""
        i += 1
        while i:
            i, digit = divmod(i - 1, 26)
            letters = chr(97 + digit) + letters
        names.setdefault(var, letters)
    return names


def brief(value: Any) -> str:
    """A constant or parameter in a few letters."""
    if isinstance(value, np.ndarray) and value.size > 4:
        return f"{short_dtype(value.dtype)}[{','.join(map(str, value.shape))}]"
    if isinstance(value, np.dtype):
        return short_dtype(value)
    if isinstance(value, Program) or isinstance(getattr(value, "program", None), Program):
        return "program"
    if type(value) is tuple and any([callable(entry) or hasattr(entry, "program") for entry in value]):
        return f"({', '.join([brief(entry) for entry in value])}{',' if len(value) == 1 else ''})"
    if callable(value):
        return getattr(value, "__name__", type(value).__name__)
    return " ".join(repr(value).split())


def program_html(program: Program) -> str:
    """The program for a notebook: highlighted text, source lines that unfold, and the cost."""
    style = 'style="font-family:monospace;white-space:pre;overflow-x:auto;line-height:1.35"'
    names = names_of(program)
    lines = [
        f"{', '.join([coloured('variable', names[out]) for out in equation.outputs]):<4}"
        f" {coloured('primitive', equation.primitive.name)} {coloured('line', f'# {equation.line}')}"
        for equation in program.equations
        if equation.line is not None
    ]
    parts = [f"<div><pre {style}>{program_text(program, paint=coloured)}</pre>"]
    if lines:
        listing = "\n".join(lines)
        parts.append(f"<details><summary>source lines</summary><pre {style}>{listing}</pre></details>")
    cost = program.cost()
    table = escaped(str(cost))
    parts.append(f"<details><summary>{escaped(cost.summary)}</summary><pre {style}>{table}</pre></details></div>")
    return "".join(parts)
