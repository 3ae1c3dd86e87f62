"""Reading and building programs in passes: definitions, substitution, and the equations of a new program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from func.interpreters.core import PYTHON_SCALARS, Array, Aval, Primitive, Shape, aval_of, dtype_of
from func.interpreters.primitives.structural.shapes import broadcast, permute, reshape
from func.interpreters.primitives.structural.slicing import Index, getitem
from func.interpreters.program.program import Equation, Program, Var


class Definitions:
    """The equation that defines each variable, and the constants."""

    __slots__ = ("constants", "definitions")

    def __init__(self, constants: Mapping[Var, Array], equations: Sequence[Equation]) -> None:
        self.constants = dict(constants)
        self.definitions = {out: equation for equation in equations for out in equation.outputs}

    def definition(self, x: Any, primitive: Primitive | None = None) -> Equation | None:
        """The equation that defines x, if it is one of the primitive; None for inputs, constants and scalars."""
        equation = self.definitions.get(x)
        return equation if primitive is None or (equation is not None and equation.primitive is primitive) else None

    def operand(self, x: Any, primitive: Primitive) -> Any:
        """y where x = primitive(y, …), else None."""
        equation = self.definitions.get(x)
        return equation.inputs[0] if equation is not None and equation.primitive is primitive else None

    def constant_value(self, x: Any) -> Array | None:
        """The known host array or scalar for x."""
        value = self.constants.get(x) if type(x) is Var else x
        return value if isinstance(value, (np.ndarray, np.generic)) or type(value) in PYTHON_SCALARS else None

    def is_zero(self, x: Any) -> bool:
        """True for zero scalars and constants of zeros."""
        value = self.constant_value(x)
        return value is not None and not np.any(value)


class EquationBuilder(Definitions):
    """The equations and constants of a program that replaces `source`.

    New equations are attributed to `line`, the source line of the equation that is being replaced.
    """

    __slots__ = ("equations", "line", "source")

    def __init__(self, source: Program) -> None:
        super().__init__(source.constants, ())
        self.source = source
        self.equations: list[Equation] = []
        self.line: Any = None

    def constant(self, value: Array) -> Any:
        """Add a constant."""
        var = Var(Aval(value.shape, value.dtype))
        self.constants[var] = value
        return var

    def emit(self, primitive: Any, *inputs: Any, **params: Any) -> Any:
        """Append an equation and return its output; no-ops and arithmetic on scalars append nothing."""
        x = inputs[0]
        if (primitive is broadcast or primitive is reshape) and type(x) is Var and x.shape == params["shape"]:
            return x
        out = Var(output_aval(primitive, inputs, params))
        if out.shape == () and not any([type(x) is Var for x in inputs]):
            return primitive.impl(np, *[np.asarray(x) for x in inputs], **params).item()
        self.equations.append(Equation(primitive, inputs, params, (out,), self.line))
        return out

    def reshape(self, x: Any, shape: Shape) -> Any:
        """x in another shape."""
        return self.emit(reshape, x, shape=shape)

    def permute(self, x: Any, order: Sequence[int]) -> Any:
        """x with its axes in another order."""
        return x if list(order) == sorted(order) else self.emit(permute, x, order=tuple(order))

    def slice(self, x: Var, index: Index) -> Any:
        """x[index] for a basic index, which may select everything."""
        if all([entry == (0, n, 1) for entry, n in zip(index, x.shape, strict=True)]):
            return x
        return self.emit(getitem, x, index=index)

    def append(self, equation: Equation) -> None:
        """Append an equation and record it as the definition of its outputs."""
        self.equations.append(equation)
        for var in equation.outputs:
            self.definitions[var] = equation

    def build(self, outputs: Sequence[Any]) -> Program:
        """The new program, without dead code."""
        return Program(self.source.inputs, self.equations, outputs, self.constants).pruned()

    def replace_equations(self, replace: Callable[[Equation], Any]) -> Program:
        """The source with outputs replaced by what `replace` returns; equations for which that is None are copied."""
        replacements: dict[Any, Any] = {}
        for equation in self.source.equations:
            self.line = equation.line
            equation = substitute(equation, replacements)
            replacement = replace(equation)
            if replacement is None:
                self.append(equation)
            else:
                replacements[equation.outputs[0]] = replacement
        return self.build(substitute_atoms(self.source.outputs, replacements)) if replacements else self.source

    def interpret(
        self, values: dict[Any, Any], apply_rule: Callable[[Equation, tuple[Any, ...]], Any], lower: Callable[..., Any]
    ) -> Program:
        """The source evaluated on structured values in place of variables; the source itself without structured values.

        `values` has the structured constants. An equation's structured value is apply_rule(equation, operands), or
        None. Where no rule applies, lower(value, var) returns a variable with the value, to replace `var`.
        """
        changed = False
        for equation in self.source.equations:
            self.line = equation.line
            mark = len(self.equations)
            result = apply_rule(equation, substitute_atoms(equation.inputs, values))
            if result is None:
                del self.equations[mark:]
                self.append(substitute(equation, {x: lower(values[x], x) for x in equation.inputs if x in values}))
            else:
                values[equation.outputs[0]] = result
                changed = True
        if not changed:
            return self.source
        return self.build([lower(values[x], x) if x in values else x for x in self.source.outputs])


def output_aval(primitive: Any, inputs: Sequence[Any], params: Mapping[str, Any]) -> Aval:
    """The abstract value of the output of primitive(*inputs, **params)."""
    avals = [x.aval if type(x) is Var else aval_of(x) for x in inputs]
    return primitive.aval(*avals, **params)  # type: ignore[no-any-return]


def substitute(equation: Equation, replacements: Mapping[Any, Any]) -> Equation:
    """The equation with some of its inputs replaced; the same object where none is."""
    if replacements.keys().isdisjoint(equation.inputs):
        return equation
    inputs = substitute_atoms(equation.inputs, replacements)
    return Equation(equation.primitive, inputs, equation.params, equation.outputs, equation.line)


def substitute_atoms(atoms: Sequence[Any], replacements: Mapping[Any, Any]) -> tuple[Any, ...]:
    """Variables and scalars, some of the variables replaced."""
    return tuple([replacements.get(x, x) if type(x) is Var else x for x in atoms])


def implements(replacement: Any, out: Var) -> bool:
    """True where a variable or scalar has the aval of an output, and may replace it."""
    if type(replacement) is Var:
        return replacement.shape == out.shape and replacement.dtype == out.dtype and replacement.weak == out.weak
    return out.weak and out.shape == () and dtype_of(replacement) == out.dtype


def count_uses(program: Program) -> dict[Any, int]:
    """For each variable the number of its uses as an operand or output."""
    uses: dict[Any, int] = {}
    for equation in program.equations:
        for x in equation.inputs:
            if type(x) is Var:
                uses[x] = uses.get(x, 0) + 1
    for x in program.outputs:
        if type(x) is Var:
            uses[x] = uses.get(x, 0) + 1
    return uses
