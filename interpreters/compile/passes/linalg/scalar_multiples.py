"""Values as multiples of others: x = number · scalars · base, and which values have equal elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from func.interpreters.core import PYTHON_SCALARS, shape_of
from func.interpreters.primitives.elementwise.builder import add, conjugate, multiply, nan_safe_multiply, negative
from func.interpreters.primitives.elementwise.table import divide, reciprocal
from func.interpreters.primitives.structural.contraction import contract
from func.interpreters.primitives.structural.shapes import broadcast, reshape
from func.interpreters.program.program import Equation, Var


class Known(Protocol):
    """Who makes the variables of a program, and its constants."""

    @property
    def made(self) -> Mapping[Var, Equation]: ...

    @property
    def constants(self) -> Mapping[Var, Any]: ...


class Factor(NamedTuple):
    """number · scalars: variables of one real element, or of one for each matrix of a stack, as (…, 1, …, 1)."""

    number: Any
    scalars: tuple[Var, ...] = ()

    def times(self, other: Factor) -> Factor:
        """The product."""
        scalars = sorted((*self.scalars, *other.scalars), key=lambda var: var.serial)
        return Factor(self.number * other.number, tuple(scalars))


class Multiple(NamedTuple):
    """factor · base, or · conj(base): an array with the elements of the base, up to a trailing axis of length one."""

    factor: Factor
    base: Any
    conjugate: bool = False


def maker(known: Known, x: Any) -> Equation | None:
    """The equation that makes a variable."""
    return known.made.get(x) if type(x) is Var else None


def constant(known: Known, x: Any) -> Any:
    """The host array or number that a value is known to be."""
    found = known.constants.get(x) if type(x) is Var else x
    return found if isinstance(found, (np.ndarray, np.generic)) or type(found) in PYTHON_SCALARS else None


def multiple(known: Known, x: Any, stack: int) -> Multiple:
    """A value, whose first `stack` axes count matrices, as a multiple of another of its dtype and elements."""
    factor = Factor(1)
    conjugated = False
    while (equation := maker(known, x)) is not None:
        if equation.primitive is conjugate:
            conjugated = not conjugated
            x = equation.inputs[0]
            continue
        step = _step(known, equation, stack)
        if step is None or step.base.dtype != x.dtype:
            break
        number = step.factor.number
        own = Factor(np.conj(number) if conjugated and type(number) is complex else number, step.factor.scalars)
        factor = factor.times(own)
        conjugated = conjugated is not step.conjugate
        x = step.base
    return Multiple(factor, x, conjugated)


def _step(known: Known, equation: Equation, stack: int) -> Multiple | None:
    primitive, inputs, out = equation.primitive, equation.inputs, equation.outputs[0]
    if primitive is negative:
        return Multiple(Factor(-1), inputs[0])
    if primitive is reshape and _same_columns(inputs[0], out, stack):
        return Multiple(Factor(1), inputs[0])
    if primitive is add and all([_is_whole(x, out) for x in inputs]):
        left, right = [multiple(known, x, stack) for x in inputs]
        if left[1:] != right[1:] or left.factor.scalars != right.factor.scalars:
            return None
        return left._replace(factor=Factor(left.factor.number + right.factor.number, left.factor.scalars))
    if primitive is divide and _is_whole(inputs[0], out):
        found = uniform(known, inputs[1], stack)
        return None if found is None or found.scalars or not found.number else Multiple(_inverse(found), inputs[0])
    if primitive is multiply or (primitive is contract and _keeps_order(equation)):
        for x, other in (inputs, inputs[::-1]):
            aligned = not shape_of(x) or (primitive is multiply and len(x.shape) == len(out.shape))
            found = uniform(known, x, stack) if aligned and _is_whole(other, out) else None
            if found is not None:
                return Multiple(found, other)
    return None


def _keeps_order(equation: Equation) -> bool:
    """True where a product has the labels of one operand."""
    labels = equation.params["spec"]
    return labels.out in (labels.x, labels.y)


def _inverse(factor: Factor) -> Factor:
    return Factor(1 / factor.number)


def _is_whole(x: Any, out: Var) -> bool:
    return type(x) is Var and x.shape == out.shape


def _same_columns(x: Any, out: Var, stack: int) -> bool:
    """True where (…, n) becomes (…, n, 1) or the other way round."""
    short, long = sorted((shape_of(x), out.shape), key=len)
    return len(short) == stack + 1 and long == (*short, 1)


def uniform(known: Known, x: Any, stack: int) -> Factor | None:
    """The factor that all elements of x are, or all those of each matrix of a stack; None where they differ."""
    if type(x) is not Var:
        return Factor(x)
    value = constant(known, x)
    if value is not None:
        value = np.asarray(value)
        same = value.size and value.dtype.kind in "fciu" and (value == value.flat[0]).all()
        return Factor(value.flat[0].item()) if same else None
    equation = maker(known, x)
    if equation is not None and equation.primitive in (broadcast, reshape):
        inner = equation.inputs[0]
        rank = len(shape_of(inner))
        aligned = _per_matrix(x.shape, stack) if equation.primitive is reshape else rank in (0, len(x.shape))
        if type(inner) is Var and inner.dtype == x.dtype and aligned and _per_matrix(inner.shape, stack):
            return uniform(known, inner, stack)
    if x.dtype.kind != "f" or not _per_matrix(x.shape, stack):
        return None
    if x.shape:
        return Factor(1, (x,))
    found = multiple(known, x, 0)
    return found.factor.times(Factor(1, (found.base,)))


def _per_matrix(shape: tuple[int, ...], stack: int) -> bool:
    return shape == () or (len(shape) >= stack and all([length == 1 for length in shape[stack:]]))


def quotient(known: Known, x: Any, stack: int, is_denominator: Callable[[Any], bool]) -> Factor | None:
    """f where x = f / d, and `is_denominator` tells whether a value is d; None where x is not so made."""
    factor, base, _ = multiple(known, x, stack)
    equation = maker(known, base)
    if equation is None:
        return None
    primitive, inputs = equation.primitive, equation.inputs
    if primitive is reciprocal and is_denominator(inputs[0]):
        return factor
    if any([shape_of(x) and x.shape != base.shape[:stack] + x.shape[stack:] for x in inputs]):
        return None
    if primitive is divide and is_denominator(inputs[1]):
        own = uniform(known, inputs[0], stack)
    elif primitive is nan_safe_multiply and (own := uniform(known, inputs[1], stack)) is not None:
        inner = quotient(known, inputs[0], stack, is_denominator)
        own = None if inner is None else own.times(inner)
    else:
        return None
    return None if own is None else factor.times(own)
