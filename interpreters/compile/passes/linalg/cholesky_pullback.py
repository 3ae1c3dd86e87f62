"""The pullback of a Cholesky factor without a product of matrices, where its cotangent has a closed form.

The pullback needs the lower triangle of Lᵀ M, M the cotangent of L. What is strictly above the diagonal of M does not
reach it, for Lᵀ is upper triangular; so for M = tril(u vᵀ), which solves with L leave, it is the lower triangle of
(Lᵀ u) vᵀ, and for M = diag(d), which log det A = 2 Σ log Lᵢᵢ leaves, diag(Lᵢᵢ dᵢ).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from func.interpreters.compile.passes.rewriting.rewriter import Emitter
from func.interpreters.core import PYTHON_SCALARS
from func.interpreters.primitives.elementwise.builder import add, multiply, negative
from func.interpreters.primitives.elementwise.table import subtract
from func.interpreters.primitives.linalg.solving import cholesky
from func.interpreters.primitives.structural.contraction import contract, spec
from func.interpreters.primitives.structural.diagonals import Placement, place, take
from func.interpreters.primitives.structural.shapes import permute, where
from func.interpreters.program.program import Equation, Program, Var

SMALLEST = 32
"""Matrices with fewer rows are multiplied faster than anything else is done."""


class Part(NamedTuple):
    """A summand of a cotangent: an equation that makes an outer product, or the values of the diagonal."""

    outer: Equation | None
    diagonal: Any
    minus: bool


def adjoints(program: Program) -> Program:
    """The program with the pullbacks of Cholesky factors in closed form; the program itself where there are none."""
    if not any([equation.primitive is cholesky for equation in program.equations]):
        return program
    view = _View(program)
    state = Emitter(program)
    fired = False
    for equation in program.equations:
        found = _pulled_back(view, equation)
        parts = None if found is None else view.parts(found[1], False)
        if found is None or not parts:
            state.equations.append(equation)
            continue
        fired = True
        state.line = equation.line
        _closed_form(state, found[0], parts, equation)
    if not fired:
        return program
    return Program(program.inputs, state.equations, program.outputs, state.constants).pruned()


class _View:
    """Who makes and who uses the variables of a program."""

    def __init__(self, program: Program) -> None:
        self.constants = program.constants
        self.outputs = {x for x in program.outputs if type(x) is Var}
        self.made = {out: equation for equation in program.equations for out in equation.outputs}
        self.users: dict[Var, list[Equation]] = {}
        for equation in program.equations:
            for x in equation.inputs:
                if type(x) is Var:
                    self.users.setdefault(x, []).append(equation)

    def is_zero(self, x: Any) -> bool:
        """True for zeros that are known as such."""
        value = self.constants.get(x) if type(x) is Var else x
        return value is not None and not np.any(value)

    def mask(self, x: Any) -> Any:
        """The constant behind a condition, if it is a square matrix."""
        value = self.constants.get(x) if type(x) is Var else None
        return value if type(value) is np.ndarray and value.ndim == 2 and value.shape[0] == value.shape[1] else None

    def only_lower(self, x: Var) -> bool:
        """True where nothing above the diagonal of x is looked at."""
        if x in self.outputs or x not in self.users:
            return False
        for user in self.users[x]:
            if user.primitive is multiply and any([type(other) in PYTHON_SCALARS for other in user.inputs]):
                if not self.only_lower(user.outputs[0]):
                    return False
                continue
            if user.primitive is not where or user.inputs[1] is not x or not self.is_zero(user.inputs[2]):
                return False
            mask = self.mask(user.inputs[0])
            if mask is None or np.any(np.triu(mask, 1)):
                return False
        return True

    def parts(self, x: Any, minus: bool) -> list[Part] | None:
        """The lower triangle of x as a sum of outer products and diagonals, or None."""
        equation = self.made.get(x) if type(x) is Var else None
        if equation is None:
            return None
        primitive, inputs = equation.primitive, equation.inputs
        if primitive is negative:
            return self.parts(inputs[0], not minus)
        if primitive is add or primitive is subtract:
            left = self.parts(inputs[0], minus)
            right = None if left is None else self.parts(inputs[1], minus is not (primitive is subtract))
            return None if left is None or right is None else left + right
        if primitive is where:
            mask = self.mask(inputs[0])
            covers = mask is not None and bool(np.all(mask[np.tri(len(mask), dtype=bool)]))
            return self.parts(inputs[1], minus) if covers and self.is_zero(inputs[2]) else None
        if primitive is place:
            return self._placed(equation, minus)
        return [Part(equation, None, minus)] if _is_narrow(equation) else None

    def _placed(self, equation: Equation, minus: bool) -> list[Part] | None:
        n = equation.params["shape"][0]
        found: list[Part] = []
        for value, placement in zip(equation.inputs, equation.params["placements"], strict=True):
            if placement == (0, (n,), (n + 1,)):
                found.append(Part(None, value, minus))
                continue
            inner = self.parts(value, minus) if placement == (0, (n, n), (n, 1)) else None
            if inner is None:
                return None
            found += inner
        return found


def _is_narrow(equation: Equation) -> bool:
    """True for u vᵀ with far fewer columns than rows."""
    if equation.primitive is not contract or len(equation.outputs[0].shape) != 2:
        return False
    labels = equation.params["spec"]
    x, y = equation.inputs
    separate = [set(labels.x) & set(labels.out), set(labels.y) & set(labels.out)]
    return all([len(own) == 1 for own in separate]) and 4 * max(x.size, y.size) <= equation.outputs[0].size


def _pulled_back(view: _View, equation: Equation) -> tuple[Var, Any] | None:
    """(L, M) for Lᵀ M of a Cholesky factor, of which only the lower triangle is used."""
    out = equation.outputs[0]
    if (
        equation.primitive is not contract
        or len(out.shape) != 2
        or out.shape[0] != out.shape[1]
        or out.dtype.kind != "f"
    ):
        return None
    labels = equation.params["spec"]
    summed = [label for label in labels.x if label in labels.y and label not in labels.out]
    if out.shape[0] < SMALLEST or len(summed) != 1 or not view.only_lower(out):
        return None
    sides = [(equation.inputs[0], labels.x), (equation.inputs[1], labels.y)]
    for (factor, own), (other, its) in (sides, sides[::-1]):
        maker = view.made.get(factor)
        if maker is not None and maker.primitive is permute:
            factor, own = maker.inputs[0], own[::-1]
            maker = view.made.get(factor)
        if maker is None or maker.primitive is not cholesky or maker.params.get("upper"):
            continue
        if own == (summed[0], labels.out[0]) and its == (summed[0], labels.out[1]):
            return factor, other
    return None


def _closed_form(state: Emitter, factor: Var, parts: list[Part], equation: Equation) -> None:
    """Σ ± (Lᵀ u) vᵀ + diag(Lᵢᵢ dᵢ), as the output of the equation."""
    out = equation.outputs[0]
    n = out.shape[0]
    total: Any = None
    for part in parts:
        if part.outer is not None:
            one = _outer(state, factor, part.outer)
            if total is None:
                total = state.emit(negative, one) if part.minus else one
            else:
                total = state.emit(subtract if part.minus else add, total, one)
    diagonal: Any = None
    for part in parts:
        if part.outer is None:
            value = state.emit(negative, part.diagonal) if part.minus else part.diagonal
            diagonal = value if diagonal is None else state.emit(add, diagonal, value)
    values: list[Any] = []
    placements: list[Placement] = []
    if total is not None:
        values.append(total)
        placements.append((0, (n, n), (n, 1)))
    if diagonal is not None:
        own: Placement = (0, (n,), (n + 1,))
        values.append(state.emit(multiply, state.emit(take, factor, placement=own), diagonal))
        placements.append(own)
    params = {"shape": out.shape, "dtype": out.dtype, "placements": tuple(placements)}
    state.equations.append(Equation(place, tuple(values), params, (out,), equation.line))


def _outer(state: Emitter, factor: Var, equation: Equation) -> Any:
    """(Lᵀ u) vᵀ for the equation that makes u vᵀ."""
    labels = equation.params["spec"]
    x, y = equation.inputs
    primitive = labels.out[0]
    new = 1 + max((*labels.x, *labels.y))
    u, own = (x, labels.x) if primitive in labels.x else (y, labels.y)
    v, other = (y, labels.y) if primitive in labels.x else (x, labels.x)
    moved = tuple([new if label == primitive else label for label in own])
    contribution = state.emit(contract, factor, u, spec=spec((primitive, new), own, moved))
    return state.emit(contract, contribution, v, spec=spec(moved, other, (new, labels.out[1])))
