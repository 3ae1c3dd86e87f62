"""Structural zeros: tangents and cotangents that know which of their elements are reached.

An element of a derivative is *reached* by a seed, or it is a structural zero. Structural zeros arise where the caller's
tangent or cotangent has a zero. They also arise where a value was not selected: by `where`, a maximum, an index,
padding, an overwritten element, a branch. They stay exactly zero under every product. A computed zero (1/inf, an
underflow, 2·x at 0) is reached: times infinity it is NaN, as in IEEE arithmetic.

The interpreter `StructuralZeros` runs the ordinary rules on tracers with a (co)tangent and the mask of its reached
elements; rules ignore masks. The primitive determines how masks pass:

    elementwise primitives    by their partials: where one is linear in the (co)tangents, structural zeros stay
    linear primitives         by `mask` of their definition; without it one reached element makes all reached
    products                  a sum of products is reached where one of its terms is
    loops, and functions      by their bodies; functions with a custom rule stay calls, for the levels below
    all others                one reached element makes all reached

So a primitive without such facts returns NaN where another one returns zero, and never the reverse. `nan_safe` decides
when derivatives are computed in this way.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from func.backends.quiet import quietly
from func.interpreters.core import (
    PYTHON_SCALARS,
    ZERO,
    Array,
    Bilinear,
    Interpreter,
    Linear,
    NonDifferentiable,
    Params,
    Primitive,
    Shape,
    Tracer,
    bind,
    derivatives_in,
    dtype_of,
    is_inexact,
    next_level,
    shape_of,
    unboxed,
)
from func.interpreters.primitives.elementwise.builder import Elementwise, multiply, nan_safe_multiply
from func.interpreters.primitives.elementwise.pointwise import Pointwise
from func.interpreters.primitives.elementwise.table import isfinite, logical_and, logical_not, logical_or, not_equal
from func.interpreters.primitives.structural.filling import absent
from func.interpreters.primitives.structural.identity import is_abstract_value
from func.interpreters.primitives.structural.reductions import reduce_any
from func.interpreters.primitives.structural.shapes import Where, broadcast, convert, full_like, where


class StructuralZeros(Interpreter):
    """Carries a (co)tangent that is zero where it is not reached, and the mask of its reached elements; None means
    all."""

    transform = "structural"
    checks_nan = False
    is_readable = True
    line = None

    def __init__(self) -> None:
        self.level = next_level()

    def lift(self, value: Array, mask: Array = None) -> Tracer:
        """A traced (co)tangent with this mask."""
        return Tracer(self, value, mask)

    def seed(self, value: Array) -> Tracer:
        """A traced (co)tangent of the caller, whose zeros are structural."""
        return value if has_mask(value) else Tracer(self, value, seed_mask(value))

    def seed_series(self, coefficients: Sequence[Any]) -> list[Any]:
        """The coefficients of a caller, ZERO or an array each: an element is a structural zero where all of them are
        zero."""
        masks = [seed_mask(x) for x in coefficients if x is not ZERO and not has_mask(x)]
        mask = None if any([mask is None for mask in masks]) or not masks else functools.reduce(logical_or, masks)
        return [x if x is ZERO or has_mask(x) else Tracer(self, x, mask) for x in coefficients]

    def seed_where_zero(self, value: Array) -> Array:
        """`seed`, but a (co)tangent without structural zeros stays unchanged."""
        mask = None if has_mask(value) else seed_mask(value)
        return value if mask is None else Tracer(self, value, mask)

    def lifted(self, ct: Any) -> Any:
        """A cotangent, or {position: cotangent}, traced here; if it was not, all its elements are reached."""
        if type(ct) is dict:
            return {position: self.lifted(each) for position, each in ct.items()}
        return ct if has_mask(ct) else Tracer(self, ct, None)

    def apply(self, primitive: Primitive, args: tuple[Array, ...], params: Params) -> Any:
        own_rule = getattr(primitive, "apply_masked", None)  # for calls of programs
        if own_rule is not None:
            return own_rule(self, args, params)
        if primitive.mask == "body" and primitive.body is not None:
            outs = primitive.body(params)(*args)
            return tuple(outs) if primitive.multiple else outs[0]
        return quietly(self._apply, primitive, args, params)

    def _apply(self, primitive: Primitive, args: tuple[Array, ...], params: Params) -> Any:
        """Apply a primitive without warnings: the ordinary run has given NumPy's."""
        values, masks = self.unpacked(args)
        if isinstance(primitive, Where):
            return self._where(primitive, values, masks)
        if isinstance(primitive, Pointwise):
            return self._pointwise(primitive, values, masks)
        if isinstance(primitive, NonDifferentiable) and primitive.mask is None:
            return bind(primitive, values, params)
        if isinstance(primitive, Bilinear) and any([mask is UNTRACED for mask in masks]):
            return self._product(primitive, values, masks, params)
        if primitive.mask == "elementwise":
            out = bind(primitive, values, params)
            return self._cleaned(out, _union(masks, shape_of(out)))
        if primitive.mask is not None:
            return self._moved(primitive, values, masks, params)
        return self._mixed(primitive, values, masks, params)

    def unpacked(self, args: Sequence[Array]) -> tuple[tuple[Array, ...], tuple[Any, ...]]:
        """The values and the masks of arguments, UNTRACED for arguments without a mask."""
        values, masks = [], []
        for arg in args:
            if type(arg) is Tracer and arg._interpreter is self:
                values.append(arg._value)
                masks.append(arg._attached)
            else:
                values.append(unboxed(arg))
                masks.append(UNTRACED)
        return tuple(values), tuple(masks)

    def product(self, x: Tracer, y: Tracer) -> Array:
        """x · y of two traced values: a structural zero where one of them is one."""
        out = multiply(x._value, y._value)
        masks = [mask for mask in (x._attached, y._attached) if mask is not None]
        return self._cleaned(out, _spread(functools.reduce(logical_and, masks), shape_of(out)) if masks else None)

    def _cleaned(self, out: Array, mask: Array) -> Array:
        """A result that may be NaN at structural zeros."""
        return Tracer(self, out if mask is None else where(mask, out, full_like(out, 0, ())), mask)

    def _pointwise(self, primitive: Pointwise, values: Sequence[Array], masks: Sequence[Any]) -> Array:
        out = primitive(*values)
        if not is_inexact(dtype_of(out)):
            return out
        shape = shape_of(out)
        mask = _union(masks, shape)
        if primitive is nan_safe_multiply and masks[1] is UNTRACED and not is_differentiated(values[1]):
            return self._cleaned(out, _both(mask, not_equal(values[1], 0), shape))
        if not isinstance(primitive, Elementwise):
            return Tracer(self, out, mask if mask is None else logical_or(mask, nonzero(out)))
        linear, affine = _linearity(primitive, tuple([m is not UNTRACED for m in masks]))
        if not linear:
            return Tracer(self, out, mask if mask is None else logical_or(mask, nonzero(out)))
        if mask is not None:
            for place in affine:
                mask = _spread(logical_or(mask, nonzero(values[place])), shape)
        return self._cleaned(out, mask)

    def _where(self, primitive: Primitive, values: Sequence[Array], masks: Sequence[Any]) -> Array:
        out = bind(primitive, tuple(values), {})
        if masks[1] is UNTRACED and masks[2] is UNTRACED:
            return out
        x, y = [linear_mask(value, mask) for value, mask in zip(values[1:], masks[1:], strict=True)]
        if x is None and y is None:
            return Tracer(self, out, None)
        mask = where(values[0], True if x is None else x, True if y is None else y)
        return Tracer(self, out, _spread(mask, shape_of(out)))

    def _moved(self, primitive: Primitive, values: tuple[Array, ...], masks: Sequence[Any], params: Params) -> Array:
        """An output element is a sum of input elements, or zero: the primitive itself moves the mask."""
        out = bind(primitive, values, params)
        linear = [is_linear_in(primitive, place) for place in range(len(values))]
        known = [
            linear_mask(value, mask) if flag else UNTRACED
            for value, mask, flag in zip(values, masks, linear, strict=True)
        ]
        has_elements = all([0 not in shape_of(value) for value in values])  # a sum of no terms is a structural zero
        if primitive.mask == "covered" and has_elements and all([mask is None or mask is UNTRACED for mask in known]):
            return Tracer(self, out, None)
        numbers = [
            value if mask is UNTRACED else _as_numbers(mask, value) for value, mask in zip(values, known, strict=True)
        ]
        return Tracer(self, out, not_equal(bind(primitive, tuple(numbers), params), 0))

    def _product(self, primitive: Primitive, values: tuple[Array, ...], masks: Sequence[Any], params: Params) -> Array:
        """A product that is linear in one traced operand. Structural zeros meet finite elements of the other one
        alone."""
        place = 1 if masks[0] is UNTRACED else 0
        mask, value, other = masks[place], values[place], values[1 - place]

        def product(x: Array, y: Array) -> Array:
            return bind(primitive, (x, y) if place == 0 else (y, x), params)

        if mask is None:
            return Tracer(self, product(value, other), None)
        structural = _as_numbers(mask, value)
        reached = not_equal(product(structural, full_like(other, 1)), 0)
        if _is_finite(other):
            return Tracer(self, product(value, other), reached)
        finite = isfinite(other)
        dtype = dtype_of(structural)
        unbounded = not_equal(product(structural, convert(logical_not(finite), dtype=dtype)), 0)
        bounded = product(value, where(finite, other, full_like(other, 0, ())))
        return Tracer(self, where(unbounded, product(value, other), bounded), reached)

    def _mixed(self, primitive: Primitive, values: tuple[Array, ...], masks: Sequence[Any], params: Params) -> Any:
        """One reached element makes all elements reached."""
        out = bind(primitive, values, params)
        traced = [mask for mask in masks if mask is not UNTRACED]
        outs = out if primitive.multiple else (out,)
        if any([mask is None for mask in traced]):
            results = [Tracer(self, x, None) if is_inexact(dtype_of(x)) else x for x in outs]
        else:
            flags = [reduce_any(mask, axes=tuple(range(len(shape_of(mask))))) for mask in traced]
            is_reached = functools.reduce(logical_or, flags)
            results = [
                self._cleaned(x, broadcast(is_reached, shape=shape_of(x))) if is_inexact(dtype_of(x)) else x
                for x in outs
            ]
        return tuple(results) if primitive.multiple else results[0]


class Untraced:
    """Replaces a mask: the argument is not traced."""

    def __repr__(self) -> str:
        return "UNTRACED"


UNTRACED = Untraced()


def has_mask(value: Any) -> bool:
    """Whether a value is a (co)tangent with a mask."""
    return type(value) is Tracer and type(value._interpreter) is StructuralZeros


def without_mask(value: Any) -> Any:
    """A (co)tangent without its mask."""
    return value._value if has_mask(value) else value


def replaced_by(ct: Any, value: Array) -> Array:
    """A cotangent that a hook has replaced: structural zeros that are still zero stay structural."""
    if not has_mask(ct) or has_mask(value) or ct._attached is None:
        return value
    return ct._interpreter.lift(value, logical_or(ct._attached, nonzero(value)))


def with_mask_of(like: Any, value: Any) -> Any:
    """A (co)tangent with the mask of another one, if that has one."""
    return like._interpreter.lift(value, like._attached) if has_mask(like) else value


def absent_like(like: Array, shape: Shape, dtype: Any) -> Array:
    """Structural zeros in place of an absent (co)tangent, next to another one."""
    if has_mask(like) or is_abstract_value(like):
        return absent(like, shape=shape, dtype=dtype)
    return full_like(like, 0, shape, dtype)


def seed_mask(value: Array) -> Any:
    """The elements of a seed that are not zero; None for all. A seed that is differentiated itself is reached
    everywhere."""
    if type(value) is not Tracer and shape_of(value) == () and value != 0:
        return None
    if is_differentiated(value):
        return None
    mask = not_equal(value, 0)
    return None if type(mask) in (np.ndarray, np.bool_) and mask.all() else mask


def is_differentiated(value: Any) -> bool:
    """Whether a level of forward or reverse mode traces the value, or a program that is linear in it."""
    while type(value) is Tracer:
        if value._interpreter.differentiates or value._interpreter.is_linear:
            return True
        value = value._value
    return False


def nonzero(value: Array) -> Array:
    """The elements that are not zero; all of an unknown of a linear program, where nothing may depend on numbers."""
    inner = value
    while type(inner) is Tracer:
        if inner._interpreter.is_linear:
            return np.ones(shape_of(value), bool)
        inner = inner._value
    return not_equal(value, 0)


def is_recorded(value: Any) -> bool:
    """Whether a level of reverse mode, or a linear program under trace, records a known value.

    A record cannot be computed again where its derivative has a NaN.
    """
    found = False
    while type(value) is Tracer:
        if value._interpreter.differentiates and not found:
            attached = value._attached  # a node of reverse mode, a tangent or a series
            found = type(attached) is tuple or any(
                [is_abstract_value(dx) or is_recorded(dx) for dx in derivatives_in(attached)]
            )
        value = value._value
    return found and value is not None


def linear_mask(value: Array, mask: Any) -> Any:
    """The mask of an operand of a linear primitive; an untraced operand is a zero of the engine."""
    if mask is not UNTRACED:
        return mask
    return value != 0 if type(value) in PYTHON_SCALARS else nonzero(value)


def is_linear_in(primitive: Primitive, place: int) -> bool:
    """Whether a primitive that moves elements moves those of an argument."""
    return primitive.is_linear_in(place) if isinstance(primitive, Linear) else place == 0


def _as_numbers(mask: Any, like: Array) -> Array:
    """A mask as zeros and ones, in the real dtype of a value."""
    dtype = np.real(np.zeros((), dtype_of(like))).dtype if dtype_of(like).kind == "c" else dtype_of(like)
    if mask is None:
        return full_like(like, 1, None, dtype)
    return convert(mask, dtype=dtype) if shape_of(mask) == shape_of(like) else full_like(like, int(mask), None, dtype)


def _union(masks: Sequence[Any], shape: Shape) -> Any:
    """The elements that are reached in some operand."""
    traced = [mask for mask in masks if mask is not UNTRACED]
    if any([mask is None for mask in traced]):
        return None
    return _spread(functools.reduce(logical_or, traced), shape)


def _both(mask: Any, other: Array, shape: Shape) -> Array:
    return _spread(other if mask is None else logical_and(mask, other), shape)


def _spread(mask: Array, shape: Shape) -> Array:
    return mask if shape_of(mask) == shape else broadcast(mask, shape=shape)


@functools.cache
def _linearity(primitive: Elementwise, traced: tuple[bool, ...]) -> tuple[bool, tuple[int, ...]]:
    """Whether a primitive is linear in its traced operands together, and the operands that it adds to them."""
    affine = []
    for place, partial in enumerate(primitive.partials):
        depends = partial is None or primitive.arity in partial.needs or any([traced[need] for need in partial.needs])
        if traced[place] and depends:
            return False, ()
        if not traced[place] and partial is not None and partial.constant is not None:
            affine.append(place)
    return True, tuple(affine)


def _is_finite(value: Array) -> bool:
    """Whether a value certainly has neither infinities nor NaN."""
    if not is_inexact(dtype_of(value)):
        return True
    return type(value) is ndarray and math.isfinite(abs(np.vdot(value, value)))
