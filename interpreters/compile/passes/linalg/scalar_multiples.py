"""Values in terms of others: scalar multiples x = number · scalars · base, quotients and adjoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from func.interpreters.compile.passes.equation_builder import Definitions
from func.interpreters.core import shape_of
from func.interpreters.primitives.elementwise.builder import add, conjugate, multiply, nan_safe_multiply, negative
from func.interpreters.primitives.elementwise.table import divide, reciprocal
from func.interpreters.primitives.structural.contraction import contract
from func.interpreters.primitives.structural.shapes import broadcast, permute, reshape
from func.interpreters.program.program import Equation, Var


class ScalarFactor(NamedTuple):
    """number · Π scalars. A scalar is a real variable with one element, or one per matrix of a stack: (…, 1, …, 1)."""

    number: Any
    scalars: tuple[Var, ...] = ()

    def times(self, other: ScalarFactor) -> ScalarFactor:
        """The product."""
        scalars = sorted((*self.scalars, *other.scalars), key=lambda var: var.serial)
        return ScalarFactor(self.number * other.number, tuple(scalars))


class Multiple(NamedTuple):
    """factor · base, or factor · conj(base), up to a trailing axis of length one."""

    factor: ScalarFactor
    base: Any
    conjugate: bool = False


def multiple(program: Definitions, x: Any, stack: int) -> Multiple:
    """x as a multiple of the first value in its chain of definitions that is not a multiple of another.

    The first `stack` axes of x count matrices; all values of the chain have one dtype.
    """
    factor = ScalarFactor(1)
    conjugated = False
    while (equation := program.definition(x)) is not None:
        if equation.primitive is conjugate:
            conjugated = not conjugated
            x = equation.inputs[0]
            continue
        step = _multiple_of_operand(program, equation, stack)
        if step is None or step.base.dtype != x.dtype:
            break
        number = step.factor.number
        own = ScalarFactor(np.conj(number) if conjugated and type(number) is complex else number, step.factor.scalars)
        factor = factor.times(own)
        conjugated = conjugated is not step.conjugate
        x = step.base
    return Multiple(factor, x, conjugated)


def _multiple_of_operand(program: Definitions, equation: Equation, stack: int) -> Multiple | None:
    """The output of an equation as a multiple of an operand; None if it is not one."""
    primitive, inputs, out = equation.primitive, equation.inputs, equation.outputs[0]
    if primitive is negative:
        return Multiple(ScalarFactor(-1), inputs[0])
    if primitive is reshape and _same_columns(inputs[0], out, stack):
        return Multiple(ScalarFactor(1), inputs[0])
    if primitive is add and all([_is_whole(x, out) for x in inputs]):
        left, right = [multiple(program, x, stack) for x in inputs]
        number = left.factor.number + right.factor.number
        if left[1:] != right[1:] or left.factor.scalars != right.factor.scalars or not _is_factor(number):
            return None
        return left._replace(factor=ScalarFactor(number, left.factor.scalars))
    if primitive is divide and _is_whole(inputs[0], out):
        divisor = uniform(program, inputs[1], stack)
        is_number = divisor is not None and not divisor.scalars and divisor.number
        return Multiple(ScalarFactor(1 / divisor.number), inputs[0]) if divisor is not None and is_number else None
    if primitive is multiply or (primitive is contract and _keeps_order(equation)):
        for x, other in (inputs, inputs[::-1]):
            is_aligned = not shape_of(x) or (primitive is multiply and len(x.shape) == len(out.shape))
            factor = uniform(program, x, stack) if is_aligned and _is_whole(other, out) else None
            if factor is not None:
                return Multiple(factor, other)
    return None


def _keeps_order(equation: Equation) -> bool:
    """True where a product has the labels of one operand."""
    labels = equation.params["spec"]
    return labels.out in (labels.x, labels.y)


def _is_whole(x: Any, out: Var) -> bool:
    return type(x) is Var and x.shape == out.shape


def _same_columns(x: Any, out: Var, stack: int) -> bool:
    """True where (…, n) becomes (…, n, 1) or the other way round."""
    short, long = sorted((shape_of(x), out.shape), key=len)
    return len(short) == stack + 1 and long == (*short, 1)


def uniform(program: Definitions, x: Any, stack: int) -> ScalarFactor | None:
    """The factor that equals all elements of x, or all elements of each matrix of a stack; None where they differ.

    Zeros and infinities are not factors. A solution for zeros has other signs of zeros than a multiple of a solution;
    one for infinities is NaN where they cancel.
    """
    if type(x) is not Var:
        return ScalarFactor(x) if _is_factor(x) else None
    value = program.constant_value(x)
    if value is not None:
        value = np.asarray(value)
        is_uniform = value.size and value.dtype.kind in "fciu" and (value == value.flat[0]).all()
        return ScalarFactor(value.flat[0].item()) if is_uniform and _is_factor(value.flat[0]) else None
    equation = program.definition(x)
    if equation is not None and equation.primitive in (broadcast, reshape):
        inner = equation.inputs[0]
        rank = len(shape_of(inner))
        is_aligned = _per_matrix(x.shape, stack) if equation.primitive is reshape else rank in (0, len(x.shape))
        if type(inner) is Var and inner.dtype == x.dtype and is_aligned and _per_matrix(inner.shape, stack):
            return uniform(program, inner, stack)
    if x.dtype.kind != "f" or not _per_matrix(x.shape, stack):
        return None
    if x.shape:
        return ScalarFactor(1, (x,))
    factor, base, _ = multiple(program, x, 0)
    return factor.times(ScalarFactor(1, (base,)))


def _is_factor(number: Any) -> bool:
    return bool(number != 0 and np.isfinite(number))


def _per_matrix(shape: tuple[int, ...], stack: int) -> bool:
    return shape == () or (len(shape) >= stack and all([length == 1 for length in shape[stack:]]))


def quotient(program: Definitions, x: Any, stack: int, is_denominator: Callable[[Any], bool]) -> ScalarFactor | None:
    """The factor f where x = f / d and is_denominator(d); None where x is not such a quotient."""
    factor, base, _ = multiple(program, x, stack)
    equation = program.definition(base)
    if equation is None:
        return None
    primitive, inputs = equation.primitive, equation.inputs
    if primitive is reciprocal and is_denominator(inputs[0]):
        return factor
    if any([shape_of(x) and x.shape != base.shape[:stack] + x.shape[stack:] for x in inputs]):
        return None
    if primitive is divide and is_denominator(inputs[1]):
        own = uniform(program, inputs[0], stack)
    elif primitive is nan_safe_multiply and (own := uniform(program, inputs[1], stack)) is not None:
        inner = quotient(program, inputs[0], stack, is_denominator)
        own = None if inner is None else own.times(inner)
    else:
        return None
    return None if own is None else factor.times(own)


def is_matrix_transpose(equation: Equation) -> bool:
    """True for a permutation that swaps the last two axes."""
    if equation.primitive is not permute:
        return False
    order = equation.params["order"]
    rank = len(order)
    return rank > 1 and order == (*range(rank - 2), rank - 1, rank - 2)


def adjoint_operand(program: Definitions, x: Any) -> Any:
    """y where x = yᴴ, or None."""
    equation = program.definition(x)
    if equation is None or x.dtype.kind not in "fc":
        return None
    missing: list[Any] = [permute] if x.dtype.kind == "f" else [permute, conjugate]
    while missing:
        if equation is None or equation.primitive not in missing:
            return None
        if equation.primitive is permute and not is_matrix_transpose(equation):
            return None
        missing.remove(equation.primitive)
        x = equation.inputs[0]
        equation = program.definition(x)
    return x
