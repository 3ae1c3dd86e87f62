"""Partials as straight NumPy expressions: `1 - out * out` becomes np.subtract(1, np.multiply(out, out)).

A partial is written with rows, so that it can be traced and differentiated. On plain arrays the rows' dispatch is
pure overhead; here the rule is staged once, and its equations are printed as one NumPy expression.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from func.interpreters.core import Aval
from func.interpreters.core.wiring import WIRING
from func.interpreters.primitives.elementwise.builder import (
    Elementwise,
    ElementwiseConstant,
    Partial,
)
from func.interpreters.program.program import Program, Var
from func.interpreters.stage import DerivedStage


def compile_partial(partial: Partial) -> Callable[[Any], Any]:
    """The partial as a function of the saved values, by NumPy functions alone where its rows are ufuncs."""
    stage = DerivedStage("partial")
    try:
        inputs = [stage.variable(Aval((), np.float64)) for _ in partial.needs]
        program = stage.program([tracer.attached for tracer in inputs], [partial.rule(*inputs)])
    finally:
        stage.close()
    if program.constants or not all([_is_ufunc(equation.primitive) for equation in program.equations]):
        return partial.evaluate
    names: dict[str, Any] = {}
    exec(compile(_source(program, partial.needs, names), __file__, "exec"), names)  # an engine frame like others
    return names["partial"]  # type: ignore[no-any-return]


def _is_ufunc(primitive: Any) -> bool:
    return isinstance(primitive, (Elementwise, ElementwiseConstant)) and primitive.ufunc is not None


def _source(program: Program, needs: tuple[int, ...], names: dict[str, Any]) -> str:
    words: dict[Var, str] = {var: f"saved[{place}]" for var, place in zip(program.inputs, needs, strict=True)}
    uses = [x for equation in program.equations for x in equation.inputs]
    lines = ["def partial(saved):"]
    for number, equation in enumerate(program.equations):
        names[equation.primitive.name] = equation.primitive.ufunc
        operands = [words[x] if type(x) is Var else repr(x) for x in equation.inputs]
        word = f"{equation.primitive.name}({', '.join(operands)})"
        (out,) = equation.outputs
        if uses.count(out) > 1:
            lines.append(f"    t{number} = {word}")
            word = f"t{number}"
        words[out] = word
    (result,) = program.outputs
    return "\n".join([*lines, f"    return {words[result] if type(result) is Var else repr(result)}"])


WIRING.compile_partial = compile_partial
