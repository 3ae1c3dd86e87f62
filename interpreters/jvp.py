"""Forward mode: values with their tangents. A value whose tangent is ZERO is not traced."""

from __future__ import annotations

from typing import Any

from func.interpreters.core import (
    ZERO,
    Array,
    Interpreter,
    Params,
    Primitive,
    Tracer,
    bind,
    defensive_copy,
    raise_if_captured,
    snapshot,
    unboxed,
)
from func.interpreters.core.modes import MODE, body_above, is_suspended
from func.interpreters.structural_zeros import StructuralZeros, without_mask


class Jvp(Interpreter):
    """Carries (primal, tangent). With `structural`, tangents know their structural zeros. With `copies_operands` it
    copies outer arrays as they enter: linearize traces the tangents for later calls."""

    differentiates = True
    follows_modes = True
    """Whether it records nothing under `no_grad`, as reverse mode: both compute one derivative."""

    def __init__(
        self, transform: str, structural: StructuralZeros | None = None, copies_operands: bool = False
    ) -> None:
        super().__init__(transform)
        self.structural = structural
        self.copies_operands = copies_operands

    def lift(self, primal: Array, tangent: Any) -> Any:
        """The traced dual number of a primal and the caller's tangent; the primal itself if the tangent is ZERO."""
        if tangent is ZERO:
            return primal
        return Tracer(self, primal, tangent if self.structural is None else self.structural.seed(tangent))

    def apply(self, primitive: Primitive, args: tuple[Array, ...], params: Params) -> Any:
        if MODE.get() is not None and (body := body_above(self.level)) is not None:
            return body.apply(primitive, args, params)
        primals = []
        tangents = []
        for arg in args:
            if type(arg) is Tracer and arg._interpreter is self:
                primals.append(arg._value)
                tangents.append(arg._attached)
            else:
                primals.append(defensive_copy(unboxed(arg)) if self.copies_operands else unboxed(arg))
                tangents.append(ZERO)
        if not primitive.differentiable or (MODE.get() is not None and self.follows_modes and is_suspended(self.level)):
            return bind(primitive, tuple(primals), params)
        out, tangent = primitive.forward(tuple(primals), tuple(tangents), params)
        if not primitive.multiple:
            return out if tangent is ZERO else Tracer(self, out, tangent)
        raise_if_captured(self, out)
        if tangent is ZERO:
            return tuple(out)
        return tuple([o if t is ZERO else Tracer(self, o, t) for o, t in zip(out, tangent, strict=True)])

    def unpack(self, value: Array) -> tuple[Array, Any]:
        """(primal, tangent or ZERO) of an output."""
        if type(value) is Tracer and value._interpreter is self:
            return value._value, value._attached if self.structural is None else without_mask(value._attached)
        return snapshot(value), ZERO
