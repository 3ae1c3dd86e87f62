"""The forms of every primitive: `python -m tests.support.primitive_forms [NAME ...]` prints the table.

value: the kind of the primitive. jvp, pullback: the source of each derivative. batch: a rule, or the driver of vmap.
NumPy text, native: how many of its samples have the form. The cost is operations per element, or a formula. The
samples are those of the generic tests.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import func
from func.interpreters.compile.inlining import inline
from func.interpreters.compile.lowering.rules import lower
from func.interpreters.core import PRIMITIVES, Bilinear, Linear, NonDifferentiable, Primitive
from func.interpreters.core.errors import NoSourceError
from func.interpreters.primitives.elementwise.builder import Elementwise
from func.interpreters.program.program import Equation, Program, Var
from tests.support.samples import SAMPLES
from tests.support.sampling import Sample

NONE = "–"


class Forms(NamedTuple):
    """One line of the table; NONE stands for a form that is missing."""

    name: str
    value: str
    jvp: str
    pullback: str
    batch: str
    numpy_text: str
    native: str
    cost: str
    samples: str


def equation_of(name: str, sample: Sample) -> Equation:
    """The equation of a primitive at a sample."""

    def call(*args: Any) -> Any:
        out = PRIMITIVES[name](*args, **sample.params)
        return tuple(out) if PRIMITIVES[name].multiple else (out,)

    equations = func.make_program(call)(*sample.args).equations
    return next(equation for equation in equations if equation.primitive.name == name)


def program_of(equation: Equation) -> Program:
    """The equation as compiled code sees it: a formula is the expression that it stands for."""
    inputs = list(dict.fromkeys([x for x in equation.inputs if type(x) is Var]))
    program = Program(inputs, [equation], equation.outputs, {})
    return inline(program) if isinstance(equation.primitive, Elementwise) else program


def has_text(equation: Equation) -> bool:
    """Whether the equation has a NumPy source text."""
    try:
        for each in program_of(equation).equations:
            lower(each)
    except NoSourceError:
        return False
    return True


def has_native_form(equation: Equation) -> bool:
    """Whether the equation is translated to native code."""
    from func.interpreters.compile.native.not_native import NotNative
    from func.interpreters.compile.native.translate import translate

    try:
        translate(program_of(equation))
    except NotNative:
        return False
    return True


def derivatives(primitive: Primitive) -> tuple[str, str]:
    """How its tangent and its pullback come about."""
    kind = type(primitive)
    if isinstance(primitive, Elementwise):
        return ("partials", "partials") if any(primitive.partials) else (NONE, NONE)
    if isinstance(primitive, (Linear, Bilinear)):
        return "linear", "transpose"
    if isinstance(primitive, NonDifferentiable):
        return NONE, NONE
    jvp = primitive.jvp is not None or kind.forward is not Primitive.forward
    if kind.pull is not Primitive.pull:
        return "rule" if jvp else NONE, "rule"
    return ("rule", "of the jvp") if jvp else (NONE, NONE if primitive.transpose is None else "transpose")


def share(samples: list[Sample], name: str, has_form: Callable[[Equation], bool]) -> str:
    """For how many samples a form is there, where that is not all of them or none."""
    count = sum([has_form(equation_of(name, sample)) for sample in samples])
    return NONE if not count else "yes" if count == len(samples) else f"{count} of {len(samples)}"


def forms_of(name: str) -> Forms:
    """The line of a primitive."""
    primitive, samples = PRIMITIVES[name], SAMPLES.get(name, [])
    jvp, pullback = derivatives(primitive)
    cost = primitive.cost
    return Forms(
        name,
        type(primitive).__name__,
        jvp,
        pullback,
        "driver" if primitive.batch is None else "rule",
        share(samples, name, has_text),
        share(samples, name, has_native_form),
        NONE if cost is None else "formula" if callable(cost) else f"{cost:g}",
        str(len(samples)) if samples else NONE,
    )


def table(names: list[str]) -> list[Forms]:
    """The lines of some primitives, all of them in alphabetical order where none is named."""
    return [forms_of(name) for name in names or sorted(PRIMITIVES)]


if __name__ == "__main__":
    if unknown := [name for name in sys.argv[1:] if name not in PRIMITIVES]:
        sys.exit(f"no primitive is named {', '.join(unknown)}")
    lines = [Forms(*[word.replace("_", " ") for word in Forms._fields]), *table(sys.argv[1:])]
    widths = [max([len(cell) for cell in column]) for column in zip(*lines, strict=True)]
    for line in lines:
        print("  ".join([cell.ljust(width) for cell, width in zip(line, widths, strict=True)]).rstrip())
