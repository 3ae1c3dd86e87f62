"""Rewriting of a program by rules: each equation is copied, or replaced by what a rule returns for its output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from func.interpreters.compile.passes.equation_builder import (
    EquationBuilder,
    count_uses,
    implements,
    output_aval,
)
from func.interpreters.core import Array, Primitive, dtype_of
from func.interpreters.primitives.elementwise.builder import negative
from func.interpreters.primitives.structural.shapes import broadcast
from func.interpreters.program.program import Equation, Program, Var

Rule: TypeAlias = Callable[..., Any]
"""rule(rewriter, out, *inputs, **params) returns the variable or scalar that replaces `out`, or None."""
RulesOf: TypeAlias = Callable[[Primitive], Sequence[Rule]]
LooksFor: TypeAlias = Callable[[Primitive], frozenset[Primitive] | None]
"""The primitives of operands without which, and without constants, no rule for a primitive applies; None if unknown."""

MAX_DEPTH = 30
"""Rules apply to what rules emit, up to this depth."""
MAX_SCANNED = 1 << 20
"""Constants of more elements are not searched for a common value."""
_UNKNOWN: Any = object()


class Rewriter(EquationBuilder):
    """The builder that rules work on. A replacement must have the shape, dtype and weakness of the output."""

    __slots__ = ("_depth", "_scalars", "looks_for", "memo", "rules_of", "uses")

    def __init__(self, program: Program, rules_of: RulesOf, looks_for: LooksFor) -> None:
        super().__init__(program)
        self.rules_of = rules_of
        self.looks_for = looks_for
        self.uses = count_uses(program)
        self.memo: dict[Any, Any] = {}
        """Results that rules store under keys of their choice."""
        self._depth = 0
        self._scalars: dict[Var, Any] = {}

    def used_once(self, x: Any) -> bool:
        """True where a single equation or output needs x."""
        return self.uses.get(x, 2) <= 1

    def scalar(self, x: Any) -> Any:
        """The Python scalar that all elements of x are known to equal, or None."""
        if type(x) is not Var:
            return x
        value = self._scalars.get(x, _UNKNOWN)
        if value is _UNKNOWN:
            inner = self.operand(x, broadcast)
            value = self._scalars[x] = (
                _common_element(self.constant_value(x)) if inner is None else self._fill(x, inner)
            )
        return value

    def negated(self, x: Any) -> Any:
        """y where x = −y for inexact numbers: −y of an unsigned integer is another number."""
        return self.operand(x, negative) if type(x) is Var and x.dtype.kind in "fc" else None

    def _fill(self, x: Var, inner: Any) -> Any:
        """The scalar that is broadcast, if the broadcast keeps its dtype."""
        return self.scalar(inner) if dtype_of(inner) == x.dtype else None

    def emit(self, primitive: Primitive, *inputs: Any, **params: Any) -> Any:
        """The output of a new equation, or its replacement by a rule."""
        equation = Equation(primitive, inputs, params, (Var(output_aval(primitive, inputs, params)),), self.line)
        replacement = self.apply_rules(equation)
        if replacement is not None:
            return replacement
        self.append(equation)
        return equation.outputs[0]

    def broadcast_like(self, x: Any, out: Var) -> Any:
        """x broadcast to the shape of an output; None where that does not give the output's aval."""
        if type(x) is not Var or x.dtype != out.dtype or x.weak != out.weak:
            return None
        return x if x.shape == out.shape else self.emit(broadcast, x, shape=out.shape)

    def apply_rules(self, equation: Equation) -> Any:
        """The replacement of an equation's output; None where no rule applies."""
        rules = () if self._depth > MAX_DEPTH else self.rules_of(equation.primitive)
        if not rules or self._is_plain(equation):
            return None
        (out,) = equation.outputs
        mark = len(self.equations)
        self._depth += 1
        try:
            for rule in rules:
                replacement = rule(self, out, *equation.inputs, **equation.params)
                if replacement is not None and replacement is not out and implements(replacement, out):
                    if type(replacement) is Var:
                        self.uses[replacement] = self.uses.get(replacement, 0) + self.uses.get(out, 1)
                    return replacement
                if len(self.equations) > mark:
                    del self.equations[mark:]
        finally:
            self._depth -= 1
        return None

    def _is_plain(self, equation: Equation) -> bool:
        """True where no operand is one that a rule looks for."""
        primitives = self.looks_for(equation.primitive)
        if primitives is None:
            return False
        for x in equation.inputs:
            definition = self.definitions.get(x)
            if definition is None:
                if type(x) is not Var or x in self.constants:
                    return False
            elif definition.primitive in primitives:
                return False
        return True


def rewrite(program: Program, rules_of: RulesOf, looks_for: LooksFor = lambda primitive: None) -> Program:
    """Apply rules to every equation once; returns the program itself where no rule applies."""
    rewriter = Rewriter(program, rules_of, looks_for)
    return rewriter.replace_equations(rewriter.apply_rules)


def _common_element(value: Any) -> Any:
    """The value of all elements of a constant, with the signs of zeros; None where they differ."""
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        return value.item() if value.dtype.kind in "fciub" else None
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fciub" or not 0 < value.size <= MAX_SCANNED:
        return None
    first: Any = value[(0,) * value.ndim]
    if value[(-1,) * value.ndim] != first or not (value == first).all():
        return None
    has_zeros = value.dtype.kind in "fc" and 0 in (first.real, first.imag)
    if has_zeros and not _same_signs(value, first):
        return None
    return value.flat[0].item()


def _same_signs(value: Array, first: Any) -> bool:
    parts = ((value.real, first.real), (value.imag, first.imag)) if value.dtype.kind == "c" else ((value, first),)
    return all([bool((np.signbit(part) == np.signbit(sign)).all()) for part, sign in parts])
