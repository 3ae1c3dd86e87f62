"""The pullback of a Cholesky factor in closed form, where the cotangent of the factor has one.

The pullback is Ā = ½ L⁻ᴴ (Φ(M) + Φ(M)ᴴ) L⁻¹ with M = Lᴴ L̄, where Φ keeps the lower triangle and halves its diagonal.
If the lower triangle of M is that of a Hermitian matrix, Φ(M) + Φ(M)ᴴ is this matrix. Solves with L leave
L̄ = -L⁻ᴴ z̄ zᴴ, so M = -z̄ zᴴ, and those with Lᴴ leave -z z̄ᴴ: a quadratic form of A⁻¹ makes both, or z̄ = z. The logarithms
of the diagonal leave M = diag(Lᵢᵢ / Lᵢᵢ) = 1. Then Ā is made of a few vectors L⁻ᴴ z and of A⁻¹, for which the factor is
at hand. Source: I. Murray (2016), arXiv:1602.07527, equation 10, for the pullback.
"""

from __future__ import annotations

import cmath
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from func.backends.support.linalg import real_dtype
from func.interpreters.compile.passes.linalg.scalar_multiples import (
    Factor,
    Multiple,
    constant,
    maker,
    multiple,
    quotient,
)
from func.interpreters.compile.passes.rewriting.rewriter import Emitter
from func.interpreters.primitives.elementwise.builder import add, conjugate, multiply
from func.interpreters.primitives.elementwise.table import make_complex, real, subtract
from func.interpreters.primitives.linalg.inverses import cholesky_inverse
from func.interpreters.primitives.linalg.solving import cholesky, triangular_solve
from func.interpreters.primitives.structural.contraction import contract, spec
from func.interpreters.primitives.structural.indexing import gather, scatter_add
from func.interpreters.primitives.structural.shapes import convert, permute, where
from func.interpreters.program.program import Equation, Program, Var

NARROW = 4
"""Products of so many times fewer columns than rows are kept apart."""


Column: TypeAlias = tuple[Any, bool]
"""A value as (…, n) or (…, n, k), and whether it is conjugated."""


class Term(NamedTuple):
    """A summand factor · u vᴴ of a Hermitian matrix."""

    factor: Factor
    left: Column
    right: Column


class Pullback(NamedTuple):
    """What a pullback is made of: op(T)⁻¹ H op(T)⁻ᴴ with H the Hermitian part of Φ(op(T) L̄); op(T) is Tᴴ for lower
    factors T and T for upper ones. Flipped: the cotangent that was found is the transpose of L̄."""

    triangle: Var
    lower: bool
    cotangent: Any
    flipped: bool


def congruences(program: Program) -> Program:
    """The program with pullbacks of Cholesky factors in closed form; the program itself where there are none."""
    if not any([equation.primitive is cholesky for equation in program.equations]):
        return program
    finder = _Finder(program)
    state = Emitter(program)
    renamed: dict[Var, Any] = {}
    for equation in program.equations:
        state.line = equation.line
        if not renamed.keys().isdisjoint(equation.inputs):
            inputs = tuple([renamed.get(x, x) if type(x) is Var else x for x in equation.inputs])
            equation = Equation(equation.primitive, inputs, equation.params, equation.outputs, equation.line)
        made = finder.closed_form(equation, state)
        if made is None:
            state.equations.append(equation)
        else:
            renamed[equation.outputs[0]] = made
    if not renamed:
        return program
    outputs = [renamed.get(x, x) if type(x) is Var else x for x in program.outputs]
    return Program(program.inputs, state.equations, outputs, state.constants).pruned()


def _is_transpose(equation: Equation) -> bool:
    rank = len(equation.params["order"])
    return rank > 1 and equation.params["order"] == (*range(rank - 2), rank - 1, rank - 2)


class _Finder:
    """What the equations of a program make, read backwards from the end of a pullback."""

    def __init__(self, program: Program) -> None:
        self.constants = program.constants
        self.made = {out: equation for equation in program.equations for out in equation.outputs}

    # --- the equations of a pullback ----------------------------------------------------------------------------

    def closed_form(self, equation: Equation, state: Emitter) -> Any:
        """What stands for the output of the last equation of a pullback, or None."""
        found = self._pullback(equation)
        if found is None:
            return None
        self.triangle, self.lower = found.triangle, found.lower
        self.stack = len(found.triangle.shape) - 2
        self.terms: dict[Any, Term] = {}
        self.identity: list[Factor] = []
        if not self._collect(found.cotangent, Factor(1), found.flipped, False) or not self._is_hermitian():
            return None
        return _Writer(state, found.triangle, found.lower).matrix(list(self.terms.values()), self.identity)

    def _pullback(self, equation: Equation) -> Pullback | None:
        if equation.primitive is not triangular_solve or equation.params["unit"]:
            return None
        triangle, right = equation.inputs
        lower, adjoint = equation.params["lower"], equation.params["adjoint"]
        inner = maker(self, self.adjoint_of(right))
        if lower is not adjoint or not self._is_factor(triangle, lower) or inner is None:
            return None
        same = inner.primitive is triangular_solve and inner.params == equation.params and inner.inputs[0] is triangle
        middle = self._lower_half(inner.inputs[1]) if same else None
        product = maker(self, middle)
        if product is None or product.primitive is not contract:
            return None
        cotangent = self._multiplied(product, triangle, lower)
        return None if cotangent is None else Pullback(triangle, lower, *cotangent)

    def _is_factor(self, x: Any, lower: bool) -> bool:
        equation = maker(self, x)
        return (
            equation is not None and equation.primitive is cholesky and equation.params.get("upper", False) is not lower
        )

    def adjoint_of(self, x: Any) -> Any:
        """y where x = yᴴ, or None."""
        equation = maker(self, x)
        if equation is None or x.dtype.kind not in "fc":
            return None
        rows: list[Any] = [permute] if x.dtype.kind == "f" else [permute, conjugate]
        while rows:
            if equation is None or equation.primitive not in rows:
                return None
            if equation.primitive is permute and not _is_transpose(equation):
                return None
            rows.remove(equation.primitive)
            x = equation.inputs[0]
            equation = maker(self, x)
        return x

    def _lower_half(self, x: Any) -> Any:
        """M where x is the Hermitian part of Φ(M), or None."""
        halved = self._halved(x)
        whole = maker(self, halved)
        if whole is None or whole.primitive is not add:
            return None
        for one, other in (whole.inputs, whole.inputs[::-1]):
            parts = maker(self, one)
            if self.adjoint_of(other) is one and one is not None and parts is not None and parts.primitive is add:
                for strict, diagonal in (parts.inputs, parts.inputs[::-1]):
                    below, within = self._masked(strict, -1), self._masked(diagonal, 0)
                    if below is not None and self._halved(within) is below:
                        return below
        return None

    def _halved(self, x: Any) -> Any:
        """y where x = y / 2, or None."""
        equation = maker(self, x)
        if equation is None or equation.primitive is not multiply:
            return None
        left, right = equation.inputs
        return left if type(right) is float and right == 0.5 else right if type(left) is float and left == 0.5 else None

    def _masked(self, x: Any, diagonal: int) -> Any:
        """y where x is what lies below the diagonal of y (-1), or on it (0), with zeros elsewhere; or None."""
        equation = maker(self, x)
        if equation is None or equation.primitive is not where:
            return None
        mask, inside, outside = equation.inputs
        mask = constant(self, mask)
        n = x.shape[-1]
        needs_cotangent = np.eye(n, dtype=bool) if diagonal == 0 else np.tri(n, k=-1, dtype=bool)
        fits = mask is not None and np.shape(mask)[-2:] == (n, n) and bool(np.all(mask == needs_cotangent))
        return inside if fits and self._is_zero(outside) else None

    def _is_zero(self, x: Any) -> bool:
        value = constant(self, x)
        return value is not None and not np.any(value)

    def _multiplied(self, product: Equation, triangle: Var, lower: bool) -> tuple[Any, bool] | None:
        """(X, False) where an equation is op(T) X, (X, True) where it is op(T) Xᵀ, or None."""
        labels = product.params["spec"]
        if len(labels.out) < 2:
            return None
        *stack, primitive, column = labels.out
        sides = [(product.inputs[0], labels.x), (product.inputs[1], labels.y)]
        for (first, own), (other, its) in (sides, sides[::-1]):
            if lower and first.dtype.kind == "c":
                equation = maker(self, first)
                first = equation.inputs[0] if equation is not None and equation.primitive is conjugate else None
            if first is not triangle:
                continue
            summed = own[-2] if lower else own[-1]
            if own != ((*stack, summed, primitive) if lower else (*stack, primitive, summed)):
                continue
            if its in ((*stack, summed, column), (*stack, column, summed)):
                return other, its[-1] == summed
        return None

    # --- the cotangent of the factor ----------------------------------------------------------------------------

    def _collect(self, x: Any, factor: Factor, flipped: bool, conjugated: bool) -> bool:
        """Add a cotangent, its transpose or its conjugate to the terms; False where it is none that is known."""
        found = multiple(self, x, self.stack)
        equation = maker(self, found.base)
        if equation is None or found.base.shape != self.triangle.shape:
            return False
        number = np.conj(found.factor.number).item() if conjugated else found.factor.number
        factor = factor.times(found.factor._replace(number=number))
        conjugated = conjugated is not found.conjugate
        primitive, inputs = equation.primitive, equation.inputs
        if primitive is add or primitive is subtract:
            signed = factor if primitive is add else factor.times(Factor(-1))
            return self._collect(inputs[0], factor, flipped, conjugated) and self._collect(
                inputs[1], signed, flipped, conjugated
            )
        if primitive is permute and _is_transpose(equation):
            return self._collect(inputs[0], factor, not flipped, conjugated)
        if primitive is where:
            kept = self._covers(inputs[0], flipped) and self._is_zero(inputs[2])
            return kept and self._collect(inputs[1], factor, flipped, conjugated)
        if primitive is scatter_add:
            return self._diagonal(equation, factor)
        return primitive is contract and self._outer(equation, factor, flipped, conjugated)

    def _covers(self, mask: Any, flipped: bool) -> bool:
        """True where a mask keeps the lower triangle, which is the one that is read, or the upper one if flipped."""
        value = constant(self, mask)
        if value is None or np.ndim(value) < 2:
            return False
        triangle = np.tri(np.shape(value)[-1], dtype=bool)
        return np.shape(value)[-2:] == triangle.shape and bool(np.all(value[..., triangle.T if flipped else triangle]))

    def _diagonal(self, equation: Equation, factor: Factor) -> bool:
        """Something over the diagonal of the factor itself, written there: op(T) makes it a multiple of one."""
        target, values, *indices = equation.inputs
        if not self._is_zero(target) or not self._are_places(equation, indices):
            return False
        inner = maker(self, values)
        if inner is not None and inner.primitive in (convert, make_complex):
            if inner.primitive is make_complex and not self._is_zero(inner.inputs[1]):
                return False
            values = inner.inputs[0]
        found = quotient(self, values, self.stack, self._is_own_diagonal)
        if found is None:
            return False
        self.identity.append(factor.times(found))
        return True

    def _is_own_diagonal(self, x: Any) -> bool:
        equation = maker(self, x)
        if equation is not None and equation.primitive is real:
            equation = maker(self, equation.inputs[0])
        if equation is None or equation.primitive is not gather or equation.inputs[0] is not self.triangle:
            return False
        return self._are_places(equation, equation.inputs[1:])

    def _are_places(self, equation: Equation, indices: Any) -> bool:
        """True where indices go along the diagonals of matrices."""
        values = [constant(self, index) for index in indices]
        counted = np.arange(self.triangle.shape[-1])
        along = [value is not None and np.array_equal(value, counted) for value in values]
        return equation.params["axis"] == self.stack and len(along) == 2 and all(along)

    def _outer(self, equation: Equation, factor: Factor, flipped: bool, conjugated: bool) -> bool:
        """u vᴴ of few columns, where op(T) u is known without a product."""
        labels = equation.params["spec"]
        sides = [(labels.x, equation.inputs[0]), (labels.y, equation.inputs[1])]
        found = []
        for label in labels.out[:-3:-1] if flipped else labels.out[-2:]:
            own = [(names, x) for names, x in sides if label in names]
            if len(own) != 1 or own[0][0][: self.stack + 1] != (*labels.out[:-2], label):
                return False
            names, x = own[0]
            if len(names) > self.stack + 2 or NARROW * x.size > self.triangle.size:
                return False
            value = multiple(self, x, self.stack)
            found.append(value if not conjugated else conjugate_of(value))
        u = self._solved(found[0])
        if u is None:
            return False
        self._add(factor, u, conjugate_of(found[1]) if self.triangle.dtype.kind == "c" else found[1])
        return True

    def _solved(self, u: Multiple) -> Multiple | None:
        """w where u = op(T)⁻¹ w."""
        equation = maker(self, u.base)
        if equation is None or equation.primitive is not triangular_solve or equation.inputs[0] is not self.triangle:
            return None
        if equation.params != {"lower": self.lower, "adjoint": self.lower, "unit": False} or u.conjugate:
            return None
        factor, base, conjugated = multiple(self, equation.inputs[1], self.stack)
        return Multiple(u.factor.times(factor), base, conjugated)

    def _add(self, factor: Factor, u: Multiple, v: Multiple) -> None:
        right = conjugate_of(v).factor if self.triangle.dtype.kind == "c" else v.factor
        number, scalars = factor.times(u.factor).times(right)
        key = (u[1:], v[1:], scalars)
        before = self.terms[key].factor.number if key in self.terms else 0
        self.terms[key] = Term(Factor(before + number, scalars), u[1:], v[1:])

    def _is_hermitian(self) -> bool:
        """True where the sum of all terms is Hermitian, as it is written."""
        for (u, v, scalars), term in self.terms.items():
            other = self.terms.get((v, u, scalars))
            if other is None or not cmath.isclose(term.factor.number, np.conj(other.factor.number), rel_tol=1e-14):
                return False
        return all([type(factor.number) is not complex for factor in self.identity])


def conjugate_of(value: Multiple) -> Multiple:
    """The conjugate of a multiple."""
    number = value.factor.number
    factor = value.factor._replace(number=np.conj(number).item() if type(number) is complex else number)
    return Multiple(factor, value.base, not value.conjugate)


class _Writer:
    """The equations of the closed form."""

    def __init__(self, state: Emitter, triangle: Var, lower: bool) -> None:
        self.state = state
        self.triangle = triangle
        self.lower = lower
        self.columns: dict[Column, Any] = {}

    def matrix(self, terms: Sequence[Term], identity: Sequence[Factor]) -> Any:
        """½ op(T)⁻¹ (Σ terms + Σ identity · 1) op(T)⁻ᴴ, or None where it would have another dtype."""
        scales: dict[tuple[Var, ...], Any] = {}
        for number, scalars in identity:
            scales[scalars] = scales.get(scalars, 0) + number
        scalars_used = [*scales, *[term.factor.scalars for term in terms]]
        own = real_dtype(self.triangle.dtype)
        if not scalars_used or any([var.dtype != own for scalars in scalars_used for var in scalars]):
            return None
        sides = [self._sides(term) for term in terms]  # first, so that the inverse may be made in the factor's place
        total = self._inverse(scales) if scales else None
        for left, right in sides:
            product = self._product(left, right)
            total = product if total is None else self.state.emit(add, total, product)
        return total

    def _inverse(self, scales: dict[tuple[Var, ...], Any]) -> Any:
        factor = self.triangle if self.lower else self._adjoint(self.triangle)
        scale: Any = None
        for scalars, number in scales.items():
            one = self._scaled(number / 2, scalars)
            scale = one if scale is None else self.state.emit(add, scale, one)
        return self.state.emit(multiply, self.state.emit(cholesky_inverse, factor), scale)

    def _scaled(self, x: Any, scalars: Sequence[Var]) -> Any:
        for scalar in scalars:
            wide = scalar.shape
            if wide:
                stack = self.triangle.shape[:-2]
                wide = (*scalar.shape[: len(stack)], 1, 1)
            x = self.state.emit(multiply, self.state.reshaped(scalar, wide), x)
        return x

    def _sides(self, term: Term) -> tuple[Any, Any]:
        """The columns of a term, its factor multiplied into the left ones."""
        left, right = self._column(term.left), self._column(term.right)
        number, scalars = term.factor
        left = self._scaled(self.state.emit(multiply, left, number / 2), scalars)
        if right.dtype.kind == "c":
            right = self.state.emit(conjugate, right)
        return left, right

    def _product(self, left: Any, right: Any) -> Any:
        rank = len(left.shape)
        stack = tuple(range(rank - 2))
        labels = spec((*stack, rank - 2, rank), (*stack, rank - 1, rank), (*stack, rank - 2, rank - 1))
        return self.state.emit(contract, left, right, spec=labels)

    def _column(self, column: Column) -> Any:
        """op(T)⁻¹ u as (…, n, k)."""
        found = self.columns.get(column)
        if found is None:
            base, conjugated = column
            if len(base.shape) < len(self.triangle.shape):
                base = self.state.reshaped(base, (*base.shape, 1))
            if conjugated:
                base = self.state.emit(conjugate, base)
            params = {"lower": self.lower, "adjoint": self.lower, "unit": False}
            found = self.columns[column] = self.state.emit(triangular_solve, self.triangle, base, **params)
        return found

    def _adjoint(self, x: Var) -> Any:
        rank = len(x.shape)
        if x.dtype.kind == "c":
            x = self.state.emit(conjugate, x)
        return self.state.emit(permute, x, order=(*range(rank - 2), rank - 1, rank - 2))
