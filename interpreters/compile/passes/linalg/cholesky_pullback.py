"""Closed forms for the pullback of a Cholesky factorization A = L Lᴴ.

With the cotangent L̄ of the factor, the pullback is

    Ā = ½ L⁻ᴴ (Φ(M) + Φ(M)ᴴ) L⁻¹,    M = Lᴴ L̄,

where Φ keeps the lower triangle and halves its diagonal. Source: I. Murray (2016), arXiv:1602.07527, equation 10.

Hermitian case. If M has the lower triangle of a Hermitian matrix H, then Φ(M) + Φ(M)ᴴ = H and Ā = ½ L⁻ᴴ H L⁻¹. This
holds for the sums of

    z = L⁻¹ b:       L̄ = −L⁻ᴴ z̄ zᴴ,       M = −z̄ zᴴ,
    w = L⁻ᴴ z:       L̄ = −w (L⁻¹ w̄)ᴴ,     M = −z z̄ᴴ  with z̄ = L⁻¹ w̄,
    Σ log Lᵢᵢ:       L̄ = diag(1 / Lᵢᵢ),    M = 1 in the lower triangle,

if each −z̄ zᴴ comes with −z z̄ᴴ, as in a quadratic form bᴴ A⁻¹ b, or z̄ = s z for a real scalar s. A term u vᴴ of H
becomes ½ (L⁻ᴴ u) (L⁻ᴴ v)ᴴ, and the term 1 becomes ½ A⁻¹, which is computed from the factor.

General case. Only the lower triangle of M is used, and Lᴴ is upper triangular, so Mᵢⱼ = Σₖ conj(Lₖᵢ) L̄ₖⱼ with k ≥ i ≥ j
reads only the lower triangle of L̄. For real factors, therefore, in the lower triangle

    L̄ = tril(u vᵀ):  M = (Lᵀ u) vᵀ,
    L̄ = diag(d):     M = diag(Lᵢᵢ dᵢ).
"""

from __future__ import annotations

import cmath
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from func.backends.array_helpers.linalg import real_dtype
from func.interpreters.compile.passes.equation_builder import Definitions, EquationBuilder
from func.interpreters.compile.passes.linalg.scalar_multiples import (
    Multiple,
    ScalarFactor,
    adjoint_operand,
    is_matrix_transpose,
    multiple,
    quotient,
)
from func.interpreters.core import PYTHON_SCALARS
from func.interpreters.primitives.elementwise.builder import add, conjugate, multiply, negative
from func.interpreters.primitives.elementwise.table import make_complex, real, subtract
from func.interpreters.primitives.linalg.inverses import cholesky_inverse
from func.interpreters.primitives.linalg.solving import FACTORS, triangular_solve
from func.interpreters.primitives.structural.contraction import contract, spec
from func.interpreters.primitives.structural.diagonals import Placement, place, strides_of, take
from func.interpreters.primitives.structural.indexing import gather, scatter_add
from func.interpreters.primitives.structural.shapes import convert, permute, where
from func.interpreters.program.program import Equation, Program, Var

NARROW = 4
"""A product u vᴴ counts as low rank where u and v are smaller than it by this factor."""
MIN_ROWS = 32
"""Products of smaller matrices are faster than the general closed form."""


def simplify_hermitian_cholesky_pullbacks(program: Program) -> Program:
    """Replace Ā by Σ ½ (L⁻ᴴ u) (L⁻ᴴ v)ᴴ + ½ s A⁻¹ where M is Hermitian in closed form."""
    if not _has_factor(program):
        return program
    source = Definitions(program.constants, program.equations)
    builder = EquationBuilder(program)

    def closed_form(equation: Equation) -> Any:
        pullback = _match_pullback(source, equation)
        return None if pullback is None else _hermitian_form(source, pullback, builder)

    return builder.replace_equations(closed_form)


def simplify_cholesky_pullbacks(program: Program) -> Program:
    """Replace M = Lᵀ L̄ by Σ (Lᵀ u) vᵀ + diag(Lᵢᵢ dᵢ) where only its lower triangle is used."""
    if not _has_factor(program):
        return program
    matcher = _ProductMatcher(program)
    builder = EquationBuilder(program)

    def closed_form(equation: Equation) -> Any:
        product = matcher.match(equation)
        terms = None if product is None else matcher.terms(product[1], False)
        return _product_form(builder, product[0], terms, equation.outputs[0]) if product is not None and terms else None

    return builder.replace_equations(closed_form)


def _has_factor(program: Program) -> bool:
    return any([equation.primitive in FACTORS for equation in program.equations])


def _keeps_triangle(program: Definitions, mask: Any, upper: bool = False) -> bool:
    """True for a constant mask that is true in the whole lower (or upper) triangle."""
    value = program.constant_value(mask)
    if value is None or np.ndim(value) < 2:
        return False
    triangle = np.tri(np.shape(value)[-1], dtype=bool)
    return np.shape(value)[-2:] == triangle.shape and bool(np.all(value[..., triangle.T if upper else triangle]))


Column: TypeAlias = tuple[Any, bool]
"""A value of shape (…, n) or (…, n, k), and whether it is conjugated."""


class OuterTerm(NamedTuple):
    """A term factor · u vᴴ of H."""

    factor: ScalarFactor
    left: Column
    right: Column


class CholeskyPullback(NamedTuple):
    """op(T)⁻¹ H op(T)⁻ᴴ with H = ½ (Φ(M) + Φ(M)ᴴ), M = op(T) T̄: op(T) = Tᴴ for lower factors T, T for upper ones.

    `cotangent` is T̄, or its transpose if `transposed`.
    """

    triangle: Var
    lower: bool
    cotangent: Any
    transposed: bool


def _match_pullback(program: Definitions, equation: Equation) -> CholeskyPullback | None:
    """The pullback that ends in an equation, its second solve with the factor."""
    if equation.primitive is not triangular_solve or equation.params["unit"]:
        return None
    triangle, right = equation.inputs
    lower, adjoint = equation.params["lower"], equation.params["adjoint"]
    factor, inner = program.definition(triangle), program.definition(adjoint_operand(program, right))
    if factor is None or factor.primitive not in FACTORS or factor.params.get("upper", False) is lower:
        return None
    if lower is not adjoint or inner is None:
        return None
    if inner.primitive is not triangular_solve or inner.params != equation.params or inner.inputs[0] is not triangle:
        return None
    product = program.definition(_match_hermitian_part(program, inner.inputs[1]), contract)
    cotangent = None if product is None else _match_product(program, product, triangle, lower)
    return None if cotangent is None else CholeskyPullback(triangle, lower, *cotangent)


def _match_hermitian_part(program: Definitions, x: Any) -> Any:
    """M where x = ½ (Φ(M) + Φ(M)ᴴ), half of the Hermitian matrix with the lower triangle of M; or None."""
    whole = _match_half(program, x)
    equation = program.definition(whole, where)
    if equation is not None and whole.dtype.kind == "c":  # the diagonal is the real part of M's
        whole = equation.inputs[2] if _is_mask(program, equation.inputs[0], _diagonal(whole)) else None
        equation = program.definition(whole, where)
    if equation is None:
        return None
    mask, below, above = equation.inputs
    is_hermitian = _is_mask(program, mask, _lower(whole)) and adjoint_operand(program, above) is below
    return below if is_hermitian else None


def _lower(x: Any) -> Any:
    return np.tri(x.shape[-1], dtype=bool)


def _diagonal(x: Any) -> Any:
    return np.eye(x.shape[-1], dtype=bool)


def _is_mask(program: Definitions, mask: Any, expected: Any) -> bool:
    """True for a constant mask that is the expected one for each matrix of a stack."""
    value = program.constant_value(mask)
    return value is not None and np.shape(value)[-2:] == expected.shape and bool(np.all(value == expected))


def _match_half(program: Definitions, x: Any) -> Any:
    """y where x = y / 2, or None."""
    equation = program.definition(x, multiply)
    if equation is None:
        return None
    left, right = equation.inputs
    return left if type(right) is float and right == 0.5 else right if type(left) is float and left == 0.5 else None


def _match_product(program: Definitions, product: Equation, triangle: Var, lower: bool) -> tuple[Any, bool] | None:
    """(X, False) where a contraction is op(T) X, (X, True) where it is op(T) Xᵀ, or None."""
    labels = product.params["spec"]
    if len(labels.out) < 2:
        return None
    *stack, row, column = labels.out
    sides = [(product.inputs[0], labels.x), (product.inputs[1], labels.y)]
    for (factor, own), (other, others) in (sides, sides[::-1]):
        if lower and factor.dtype.kind == "c":
            factor = program.operand(factor, conjugate)
        if factor is not triangle:
            continue
        summed = own[-2] if lower else own[-1]
        if own != ((*stack, summed, row) if lower else (*stack, row, summed)):
            continue
        if others in ((*stack, summed, column), (*stack, column, summed)):
            return other, others[-1] == summed
    return None


def _hermitian_form(program: Definitions, pullback: CholeskyPullback, builder: EquationBuilder) -> Any:
    """Emit the closed form of a pullback, or return None where H is not known to be Hermitian."""
    matrix = _HermitianMatrix(program, pullback)
    if (
        not matrix.add_cotangent(pullback.cotangent, ScalarFactor(1), pullback.transposed, False)
        or not matrix.is_hermitian()
    ):
        return None
    return _HermitianForm(builder, pullback.triangle, pullback.lower).emit(list(matrix.terms.values()), matrix.identity)


class _HermitianMatrix:
    """M as Σ factor · u vᴴ + Σ factor · 1, collected from the definition of the cotangent of the factor T."""

    def __init__(self, program: Definitions, pullback: CholeskyPullback) -> None:
        self.program = program
        self.triangle = pullback.triangle
        self.lower = pullback.lower
        shape = pullback.triangle.shape
        self.stack = len(shape) - 2
        self.diagonal: Placement = (0, shape[:-1], (*strides_of(shape)[:-2], shape[-1] + 1))
        self.terms: dict[Any, OuterTerm] = {}
        self.identity: list[ScalarFactor] = []

    def add_cotangent(self, x: Any, factor: ScalarFactor, transposed: bool, conjugated: bool) -> bool:
        """Add op(T) · factor · x, with x transposed or conjugated; False where x is not of a known form."""
        scaled = multiple(self.program, x, self.stack)
        equation = self.program.definition(scaled.base)
        if equation is None or scaled.base.shape != self.triangle.shape:
            return False
        number = np.conj(scaled.factor.number).item() if conjugated else scaled.factor.number
        factor = factor.times(scaled.factor._replace(number=number))
        conjugated = conjugated is not scaled.conjugate
        primitive, inputs = equation.primitive, equation.inputs
        if primitive is add or primitive is subtract:
            signed = factor if primitive is add else factor.times(ScalarFactor(-1))
            return self.add_cotangent(inputs[0], factor, transposed, conjugated) and self.add_cotangent(
                inputs[1], signed, transposed, conjugated
            )
        if is_matrix_transpose(equation):
            return self.add_cotangent(inputs[0], factor, not transposed, conjugated)
        if primitive is where:
            is_triangle = _keeps_triangle(self.program, inputs[0], transposed) and self.program.is_zero(inputs[2])
            return is_triangle and self.add_cotangent(inputs[1], factor, transposed, conjugated)
        if primitive is scatter_add:
            target, values, *indices = inputs
            is_diagonal = self.program.is_zero(target) and self._are_diagonal_indices(equation, indices)
            return is_diagonal and self._add_diagonal(values, factor)
        if primitive is place:
            whole: Placement = (0, self.triangle.shape, strides_of(self.triangle.shape))
            return all(
                [
                    self._add_diagonal(value, factor)
                    if placement == self.diagonal
                    else placement == whole and self.add_cotangent(value, factor, transposed, conjugated)
                    for value, placement in zip(inputs, equation.params["placements"], strict=True)
                ]
            )
        return primitive is contract and self._add_product(equation, factor, transposed, conjugated)

    def _add_diagonal(self, values: Any, factor: ScalarFactor) -> bool:
        """Add op(T) diag(s / Tᵢᵢ) = s · 1 (in the triangle that is read)."""
        inner = self.program.definition(values)
        if inner is not None and inner.primitive in (convert, make_complex):
            if inner.primitive is make_complex and not self.program.is_zero(inner.inputs[1]):
                return False
            values = inner.inputs[0]
        scale = quotient(self.program, values, self.stack, self._is_diagonal)
        if scale is None:
            return False
        self.identity.append(factor.times(scale))
        return True

    def _is_diagonal(self, x: Any) -> bool:
        """True for the diagonal of T."""
        equation = self.program.definition(x)
        if equation is not None and equation.primitive is real:
            equation = self.program.definition(equation.inputs[0])
        if equation is None or equation.inputs[0] is not self.triangle:
            return False
        if equation.primitive is take:
            return bool(equation.params["placement"] == self.diagonal)
        return equation.primitive is gather and self._are_diagonal_indices(equation, equation.inputs[1:])

    def _are_diagonal_indices(self, equation: Equation, indices: Sequence[Any]) -> bool:
        """True where the indices of a gather or scatter are (0, 1, …, n - 1) for both matrix axes."""
        values = [self.program.constant_value(index) for index in indices]
        positions = np.arange(self.triangle.shape[-1])
        along = [value is not None and np.array_equal(value, positions) for value in values]
        return equation.params["axis"] == self.stack and len(along) == 2 and all(along)

    def _add_product(self, equation: Equation, factor: ScalarFactor, transposed: bool, conjugated: bool) -> bool:
        """Add op(T) u vᴴ for u = op(T)⁻¹ w and few columns."""
        labels = equation.params["spec"]
        sides = [(labels.x, equation.inputs[0]), (labels.y, equation.inputs[1])]
        columns = []
        for label in labels.out[:-3:-1] if transposed else labels.out[-2:]:
            candidates = [(own, x) for own, x in sides if label in own]
            if len(candidates) != 1 or candidates[0][0][: self.stack + 1] != (*labels.out[:-2], label):
                return False
            own, x = candidates[0]
            if len(own) > self.stack + 2 or NARROW * x.size > self.triangle.size:
                return False
            value = multiple(self.program, x, self.stack)
            columns.append(_conjugate(value) if conjugated else value)
        u, v = columns
        w = self._match_solve(u)
        if w is None:
            return False
        self._add(factor, w, _conjugate(v) if self.triangle.dtype.kind == "c" else v)
        return True

    def _match_solve(self, u: Multiple) -> Multiple | None:
        """w where u = op(T)⁻¹ w."""
        equation = self.program.definition(u.base, triangular_solve)
        if equation is None or equation.inputs[0] is not self.triangle or u.conjugate:
            return None
        if equation.params != {"lower": self.lower, "adjoint": self.lower, "unit": False}:
            return None
        factor, base, conjugated = multiple(self.program, equation.inputs[1], self.stack)
        return Multiple(u.factor.times(factor), base, conjugated)

    def _add(self, factor: ScalarFactor, u: Multiple, v: Multiple) -> None:
        """Add factor · u vᴴ; terms with the same bases are one."""
        right = _conjugate(v).factor if self.triangle.dtype.kind == "c" else v.factor
        number, scalars = factor.times(u.factor).times(right)
        key = (u[1:], v[1:], scalars)
        before = self.terms[key].factor.number if key in self.terms else 0
        self.terms[key] = OuterTerm(ScalarFactor(before + number, scalars), u[1:], v[1:])

    def is_hermitian(self) -> bool:
        """True where each term s · u vᴴ has its adjoint conj(s) · v uᴴ among the terms."""
        for (u, v, scalars), term in self.terms.items():
            adjoint = self.terms.get((v, u, scalars))
            if adjoint is None or not cmath.isclose(term.factor.number, np.conj(adjoint.factor.number), rel_tol=1e-14):
                return False
        return all([type(factor.number) is not complex for factor in self.identity])


def _conjugate(value: Multiple) -> Multiple:
    """The conjugate of a multiple."""
    number = value.factor.number
    factor = value.factor._replace(number=np.conj(number).item() if type(number) is complex else number)
    return Multiple(factor, value.base, not value.conjugate)


class _HermitianForm:
    """Emits ½ op(T)⁻¹ (Σ terms + Σ identity · 1) op(T)⁻ᴴ."""

    def __init__(self, builder: EquationBuilder, triangle: Var, lower: bool) -> None:
        self.builder = builder
        self.triangle = triangle
        self.lower = lower
        self.columns: dict[Column, Any] = {}

    def emit(self, terms: Sequence[OuterTerm], identity: Sequence[ScalarFactor]) -> Any:
        """The output of the last equation; None where a scalar has another dtype than the real factor."""
        scales: dict[tuple[Var, ...], Any] = {}
        for number, scalars in identity:
            scales[scalars] = scales.get(scalars, 0) + number
        all_scalars = [*scales, *[term.factor.scalars for term in terms]]
        dtype = real_dtype(self.triangle.dtype)
        if not all_scalars or any([var.dtype != dtype for scalars in all_scalars for var in scalars]):
            return None
        sides = [self._sides(term) for term in terms]  # first, so that the inverse can overwrite the factor
        total = self._inverse(scales) if scales else None
        for left, right in sides:
            product = self._product(left, right)
            total = product if total is None else self.builder.emit(add, total, product)
        return total

    def _inverse(self, scales: dict[tuple[Var, ...], Any]) -> Any:
        """½ Σ scales · A⁻¹."""
        factor = self.triangle if self.lower else self._adjoint(self.triangle)
        total: Any = None
        for scalars, number in scales.items():
            scale = self._scale(number / 2, scalars)
            total = scale if total is None else self.builder.emit(add, total, scale)
        return self.builder.emit(multiply, self.builder.emit(cholesky_inverse, factor), total)

    def _scale(self, x: Any, scalars: Sequence[Var]) -> Any:
        """x · Π scalars."""
        for scalar in scalars:
            shape = scalar.shape
            if shape:
                shape = (*shape[: len(self.triangle.shape) - 2], 1, 1)
            x = self.builder.emit(multiply, self.builder.reshape(scalar, shape), x)
        return x

    def _sides(self, term: OuterTerm) -> tuple[Any, Any]:
        """½ factor · op(T)⁻¹ u and conj(op(T)⁻¹ v)."""
        left, right = self._solve(term.left), self._solve(term.right)
        number, scalars = term.factor
        left = self._scale(self.builder.emit(multiply, left, number / 2), scalars)
        if right.dtype.kind == "c":
            right = self.builder.emit(conjugate, right)
        return left, right

    def _product(self, left: Any, right: Any) -> Any:
        """left · rightᵀ."""
        rank = len(left.shape)
        stack = tuple(range(rank - 2))
        labels = spec((*stack, rank - 2, rank), (*stack, rank - 1, rank), (*stack, rank - 2, rank - 1))
        return self.builder.emit(contract, left, right, spec=labels)

    def _solve(self, column: Column) -> Any:
        """op(T)⁻¹ u as (…, n, k)."""
        solution = self.columns.get(column)
        if solution is None:
            u, conjugated = column
            if len(u.shape) < len(self.triangle.shape):
                u = self.builder.reshape(u, (*u.shape, 1))
            if conjugated:
                u = self.builder.emit(conjugate, u)
            params = {"lower": self.lower, "adjoint": self.lower, "unit": False}
            solution = self.columns[column] = self.builder.emit(triangular_solve, self.triangle, u, **params)
        return solution

    def _adjoint(self, x: Var) -> Any:
        rank = len(x.shape)
        if x.dtype.kind == "c":
            x = self.builder.emit(conjugate, x)
        return self.builder.emit(permute, x, order=(*range(rank - 2), rank - 1, rank - 2))


class ProductTerm(NamedTuple):
    """A term of L̄: the equation of an outer product u vᵀ, or else the values d of a diagonal; minus if negated."""

    product: Equation | None
    diagonal: Any
    minus: bool


class _ProductMatcher(Definitions):
    """Matches products Lᵀ L̄ in a program, and L̄ as a sum of outer products and diagonals."""

    __slots__ = ("outputs", "users")

    def __init__(self, program: Program) -> None:
        super().__init__(program.constants, program.equations)
        self.outputs = {x for x in program.outputs if type(x) is Var}
        self.users: dict[Var, list[Equation]] = {}
        for equation in program.equations:
            for x in equation.inputs:
                if type(x) is Var:
                    self.users.setdefault(x, []).append(equation)

    def match(self, equation: Equation) -> tuple[Var, Any] | None:
        """(L, L̄) where an equation is the real product Lᵀ L̄, of which only the lower triangle is used."""
        if equation.primitive is not contract:
            return None
        out, labels = equation.outputs[0], equation.params["spec"]
        if len(out.shape) != 2 or out.shape[0] != out.shape[1] or out.dtype.kind != "f" or out.shape[0] < MIN_ROWS:
            return None
        summed = [label for label in labels.x if label in labels.y and label not in labels.out]
        if len(summed) != 1 or not self._only_lower(out):
            return None
        sides = [(equation.inputs[0], labels.x), (equation.inputs[1], labels.y)]
        for (factor, own), (other, others) in (sides, sides[::-1]):
            transposed = self.operand(factor, permute)
            if transposed is not None:
                factor, own = transposed, own[::-1]
            definition = self.definition(factor)
            if definition is None or definition.primitive not in FACTORS or definition.params.get("upper"):
                continue
            if own == (summed[0], labels.out[0]) and others == (summed[0], labels.out[1]):
                return factor, other
        return None

    def _only_lower(self, x: Var) -> bool:
        """True where all users of x ignore the elements above its diagonal."""
        if x in self.outputs or x not in self.users:
            return False
        for user in self.users[x]:
            if user.primitive is multiply and any([type(other) in PYTHON_SCALARS for other in user.inputs]):
                if not self._only_lower(user.outputs[0]):
                    return False
                continue
            if user.primitive is permute:
                if not self._only_above(user.outputs[0]):
                    return False
                continue
            if user.primitive is not where or user.inputs[1] is not x or user.inputs[2] is x:
                return False
            mask = self.constant_value(user.inputs[0])
            if mask is None or np.ndim(mask) != 2 or np.any(np.triu(mask, 1)):
                return False
        return True

    def _only_above(self, x: Var) -> bool:
        """True where all users of x take only the elements above its diagonal."""
        users = self.users.get(x, [])
        return x not in self.outputs and all(
            [
                user.primitive is where
                and user.inputs[1] is not x
                and user.inputs[2] is x
                and _keeps_triangle(self, user.inputs[0])
                for user in users
            ]
        )

    def terms(self, x: Any, minus: bool) -> list[ProductTerm] | None:
        """The terms of the lower triangle of x, or of −x; None where x is not of a known form."""
        equation = self.definition(x)
        if equation is None:
            return None
        primitive, inputs = equation.primitive, equation.inputs
        if primitive is negative:
            return self.terms(inputs[0], not minus)
        if primitive is add or primitive is subtract:
            left = self.terms(inputs[0], minus)
            right = None if left is None else self.terms(inputs[1], minus is not (primitive is subtract))
            return None if left is None or right is None else left + right
        if primitive is where:
            is_triangle = _keeps_triangle(self, inputs[0]) and self.is_zero(inputs[2])
            return self.terms(inputs[1], minus) if is_triangle else None
        if primitive is place:
            return self._placed_terms(equation, minus)
        return [ProductTerm(equation, None, minus)] if _is_narrow(equation) else None

    def _placed_terms(self, equation: Equation, minus: bool) -> list[ProductTerm] | None:
        """The terms of a sum of whole matrices and diagonals."""
        n = equation.params["shape"][0]
        terms: list[ProductTerm] = []
        for value, placement in zip(equation.inputs, equation.params["placements"], strict=True):
            if placement == (0, (n,), (n + 1,)):
                terms.append(ProductTerm(None, value, minus))
                continue
            inner = self.terms(value, minus) if placement == (0, (n, n), (n, 1)) else None
            if inner is None:
                return None
            terms += inner
        return terms


def _is_narrow(equation: Equation) -> bool:
    """True for u vᵀ with far fewer columns than rows."""
    if equation.primitive is not contract or len(equation.outputs[0].shape) != 2:
        return False
    labels = equation.params["spec"]
    x, y = equation.inputs
    free = [set(labels.x) & set(labels.out), set(labels.y) & set(labels.out)]
    return all([len(own) == 1 for own in free]) and NARROW * max(x.size, y.size) <= equation.outputs[0].size


def _product_form(builder: EquationBuilder, factor: Var, terms: Sequence[ProductTerm], out: Var) -> Any:
    """Emit Σ ± (Lᵀ u) vᵀ + diag(Lᵢᵢ dᵢ) in place of the product Lᵀ L̄."""
    n = out.shape[0]
    total: Any = None
    diagonal: Any = None
    for term in terms:
        if term.product is not None:
            product = _outer_product(builder, factor, term.product)
            if total is None:
                total = builder.emit(negative, product) if term.minus else product
            else:
                total = builder.emit(subtract if term.minus else add, total, product)
    for term in terms:
        if term.product is None:
            value = builder.emit(negative, term.diagonal) if term.minus else term.diagonal
            diagonal = value if diagonal is None else builder.emit(add, diagonal, value)
    values: list[Any] = []
    placements: list[Placement] = []
    if total is not None:
        values.append(total)
        placements.append((0, (n, n), (n, 1)))
    if diagonal is not None:
        along: Placement = (0, (n,), (n + 1,))
        values.append(builder.emit(multiply, builder.emit(take, factor, placement=along), diagonal))
        placements.append(along)
    return builder.emit(place, *values, shape=out.shape, dtype=out.dtype, placements=tuple(placements))


def _outer_product(builder: EquationBuilder, factor: Var, equation: Equation) -> Any:
    """(Lᵀ u) vᵀ for the equation of u vᵀ."""
    labels = equation.params["spec"]
    x, y = equation.inputs
    row, column = labels.out
    new = 1 + max((*labels.x, *labels.y))
    u, lu, v, lv = (x, labels.x, y, labels.y) if row in labels.x else (y, labels.y, x, labels.x)
    renamed = tuple([new if label == row else label for label in lu])
    left = builder.emit(contract, factor, u, spec=spec((row, new), lu, renamed))
    return builder.emit(contract, left, v, spec=spec(renamed, lv, (new, column)))
