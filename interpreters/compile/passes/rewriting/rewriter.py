"""Making the equations of a rewritten program.

Rewriting a program by rules: each equation is copied, or replaced by what a rule says stands for its output.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from func.interpreters.compile.passes.cleanup import dead
from func.interpreters.core import PYTHON_SCALARS, Array, Aval, Primitive, Shape, aval_of, dtype_of
from func.interpreters.primitives.structural.shapes import broadcast, permute, reshape
from func.interpreters.primitives.structural.slicing import Index, getitem
from func.interpreters.program.program import Equation, Program, Var


class Emitter:
    """New equations and constants, in order; `line` is where they are said to come from."""

    def __init__(self, source: Program) -> None:
        self.constants = dict(source.constants)
        self.equations: list[Equation] = []
        self.line: Any = None

    def constant(self, value: Array) -> Any:
        """A new constant."""
        var = Var(Aval(value.shape, value.dtype))
        self.constants[var] = value
        return var

    def emit(self, primitive: Any, *inputs: Any, **params: Any) -> Any:
        """A new equation; rows that would do nothing, and arithmetic on scalars alone, make none."""
        x = inputs[0]
        if (primitive is broadcast or primitive is reshape) and type(x) is Var and x.shape == params["shape"]:
            return x
        avals = [x.aval if type(x) is Var else Aval((), np.asarray(x).dtype, True) for x in inputs]
        out = Var(primitive.aval(*avals, **params))
        if out.shape == () and not any([type(x) is Var for x in inputs]):
            return primitive.impl(np, *[np.asarray(x) for x in inputs], **params).item()
        self.equations.append(Equation(primitive, inputs, params, (out,), self.line))
        return out

    def reshaped(self, x: Any, shape: Shape) -> Any:
        """x in another shape."""
        return self.emit(reshape, x, shape=shape)

    def permuted(self, x: Var, order: Sequence[int]) -> Any:
        """x with its axes in another order."""
        return x if list(order) == sorted(order) else self.emit(permute, x, order=tuple(order))

    def sliced(self, x: Var, index: Index) -> Any:
        """A basic index, which may be trivial."""
        if all([entry == (0, n, 1) for entry, n in zip(index, x.shape, strict=True)]):
            return x
        return self.emit(getitem, x, index=index)


Rule: TypeAlias = Callable[..., Any]
"""rule(rewriter, out, *inputs, **params) gives the variable or scalar that stands for `out`, or None."""
RulesOf: TypeAlias = Callable[[Primitive], Sequence[Rule]]
LooksFor: TypeAlias = Callable[[Primitive], frozenset[Primitive] | None]
"""The rows of operands without which, and without constants, no rule for a row applies; None where that is not so."""

DEPTH = 30
"""Rules are applied to what rules emit, up to so many levels."""
LARGE = 1 << 20
"""Constants of more elements are not searched for a value that they all share."""
_UNKNOWN: Any = object()


class Rewriter:
    """The equations of a new program, and what is known of its variables.

    A rule's answer is taken only where shape, dtype and weakness are those of the output it replaces.
    """

    __slots__ = (
        "_depth",
        "_scalars",
        "constants",
        "equations",
        "fired",
        "line",
        "looks_for",
        "made",
        "memo",
        "rules_of",
        "uses",
    )

    def __init__(self, program: Program, rules_of: RulesOf, looks_for: LooksFor) -> None:
        self.rules_of = rules_of
        self.looks_for = looks_for
        self.constants = dict(program.constants)
        self.equations: list[Equation] = []
        self.made: dict[Var, Equation] = {}
        self.uses = count_uses(program)
        self.line: Any = None
        self.memo: dict[Any, Any] = {}
        """What rules have found out, by keys of their own."""
        self.fired = False
        self._depth = 0
        self._scalars: dict[Var, Any] = {}

    # --- what rules ask -----------------------------------------------------------------------------------------

    def maker(self, x: Any, primitive: Primitive) -> Equation | None:
        """The equation of that row that x is the output of."""
        equation = self.made.get(x)
        return equation if equation is not None and equation.primitive is primitive else None

    def inside(self, x: Any, primitive: Primitive) -> Any:
        """y where x is row(y), else None."""
        equation = self.made.get(x)
        return equation.inputs[0] if equation is not None and equation.primitive is primitive else None

    def used_once(self, x: Any) -> bool:
        """True where a single equation or output needs x."""
        return self.uses.get(x, 2) <= 1

    def value(self, x: Any) -> Array | None:
        """The host array or scalar that x is known to be."""
        found = self.constants.get(x) if type(x) is Var else x
        return found if isinstance(found, (np.ndarray, np.generic)) or type(found) in PYTHON_SCALARS else None

    def scalar(self, x: Any) -> Any:
        """The Python scalar that all elements of x are known to equal, or None."""
        if type(x) is not Var:
            return x
        found = self._scalars.get(x, _UNKNOWN)
        if found is _UNKNOWN:
            inner = self.inside(x, broadcast)
            found = self._scalars[x] = _shared(self.value(x)) if inner is None else self._stretched(x, inner)
        return found

    def _stretched(self, x: Var, inner: Any) -> Any:
        """The scalar behind a broadcast, which must not have another dtype."""
        return self.scalar(inner) if dtype_of(inner) == x.dtype else None

    # --- what rules make ----------------------------------------------------------------------------------------

    def constant(self, value: Array) -> Var:
        """A new constant."""
        var = Var(Aval(value.shape, value.dtype))
        self.constants[var] = value
        return var

    def emit(self, primitive: Primitive, *inputs: Any, **params: Any) -> Any:
        """The output of a row: of a new equation, or what the rules say stands for it."""
        avals = [x.aval if type(x) is Var else aval_of(x) for x in inputs]
        equation = Equation(primitive, inputs, params, (Var(primitive.aval(*avals, **params)),), self.line)
        found = self.replacement(equation)
        return equation.outputs[0] if found is None else found

    def reshaped(self, x: Any, shape: Shape) -> Any:
        """x in another shape."""
        return self.emit(reshape, x, shape=shape)

    def permuted(self, x: Any, order: Sequence[int]) -> Any:
        """x with its axes in another order."""
        return self.emit(permute, x, order=tuple(order))

    def fitted(self, x: Any, out: Var) -> Any:
        """x broadcast to the shape of an output; None where that is not enough."""
        if type(x) is not Var or x.dtype != out.dtype or x.weak != out.weak:
            return None
        return x if x.shape == out.shape else self.emit(broadcast, x, shape=out.shape)

    # --- the walk -----------------------------------------------------------------------------------------------

    def replacement(self, equation: Equation) -> Any:
        """What stands for the output of an equation; where nothing does, the equation is appended."""
        rules = () if self._depth > DEPTH else self.rules_of(equation.primitive)
        if rules and not self._is_plain(equation):
            (out,) = equation.outputs
            mark = len(self.equations)
            self._depth += 1
            try:
                for rule in rules:
                    found = rule(self, out, *equation.inputs, **equation.params)
                    if found is not None and found is not out and stands_for(found, out):
                        self._take(found, out)
                        return found
                    if len(self.equations) > mark:
                        del self.equations[mark:]
            finally:
                self._depth -= 1
        self.equations.append(equation)
        for var in equation.outputs:
            self.made[var] = equation
        return None

    def _is_plain(self, equation: Equation) -> bool:
        """True where no operand is one that a rule looks for."""
        rows = self.looks_for(equation.primitive)
        if rows is None:
            return False
        for x in equation.inputs:
            maker = self.made.get(x)
            if (type(x) is not Var or x in self.constants) if maker is None else maker.primitive in rows:
                return False
        return True

    def _take(self, found: Any, out: Var) -> None:
        self.fired = True
        if type(found) is Var:
            self.uses[found] = self.uses.get(found, 0) + self.uses.get(out, 1)

    def run(self, program: Program) -> Program:
        """The rewritten program; the given one where no rule applied."""
        renamed: dict[Var, Any] = {}
        for equation in program.equations:
            self.line = equation.line
            if not renamed.keys().isdisjoint(equation.inputs):
                inputs = tuple([renamed.get(x, x) if type(x) is Var else x for x in equation.inputs])
                equation = Equation(equation.primitive, inputs, equation.params, equation.outputs, equation.line)
            found = self.replacement(equation)
            if found is not None:
                renamed[equation.outputs[0]] = found
        if not self.fired:
            return program
        outputs = [renamed.get(x, x) if type(x) is Var else x for x in program.outputs]
        return dead(Program(program.inputs, self.equations, outputs, self.constants))


def rewritten(program: Program, rules_of: RulesOf, looks_for: LooksFor = lambda primitive: None) -> Program:
    """The program with rules applied in one walk; the given one where none applies."""
    return Rewriter(program, rules_of, looks_for).run(program)


def stands_for(found: Any, out: Var) -> bool:
    """True where an atom has the aval of an output."""
    if type(found) is Var:
        return found.shape == out.shape and found.dtype == out.dtype and found.weak == out.weak
    return out.weak and out.shape == () and dtype_of(found) == out.dtype


def count_uses(program: Program) -> dict[Any, int]:
    """How many operands and outputs each variable is."""
    uses: dict[Any, int] = {}
    for equation in program.equations:
        for x in equation.inputs:
            if type(x) is Var:
                uses[x] = uses.get(x, 0) + 1
    for x in program.outputs:
        if type(x) is Var:
            uses[x] = uses.get(x, 0) + 1
    return uses


def _shared(value: Any) -> Any:
    """The value of all elements of a constant, also to the sign of zero; None where they differ."""
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        return value.item() if value.dtype.kind in "fciub" else None
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fciub" or not 0 < value.size <= LARGE:
        return None
    first: Any = value[(0,) * value.ndim]
    if value[(-1,) * value.ndim] != first or not (value == first).all():
        return None
    if first == 0 and value.dtype.kind in "fc" and not _same_signs(value, first):
        return None
    return value.flat[0].item()


def _same_signs(value: Array, first: Any) -> bool:
    parts = ((value.real, first.real), (value.imag, first.imag)) if value.dtype.kind == "c" else ((value, first),)
    return all([bool((np.signbit(part) == np.signbit(one)).all()) for part, one in parts])
