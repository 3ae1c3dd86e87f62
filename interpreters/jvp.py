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
    refuse_captured,
    snapshot,
    unboxed,
)


class Jvp(Interpreter):
    """Carries (primal, tangent). With `copies_operands`, outer arrays are copied as they enter: linearize stages the
    tangents for later calls."""

    def __init__(self, transform: str, copies_operands: bool = False) -> None:
        super().__init__(transform)
        self.copies_operands = copies_operands

    def lift(self, primal: Array, tangent: Any) -> Any:
        """A traced dual number, or the primal itself where the tangent is zero."""
        return primal if tangent is ZERO else Tracer(self, primal, tangent)

    def apply(self, primitive: Primitive, args: tuple[Array, ...], params: Params) -> Any:
        primals = []
        tangents = []
        for arg in args:
            if type(arg) is Tracer and arg._interpreter is self:
                primals.append(arg._value)
                tangents.append(arg._attached)
            else:
                primals.append(snapshot(unboxed(arg)) if self.copies_operands else unboxed(arg))
                tangents.append(ZERO)
        if not primitive.differentiable:
            return bind(primitive, tuple(primals), params)
        out, tangent = primitive.forward(tuple(primals), tuple(tangents), params)
        if not primitive.multiple:
            return out if tangent is ZERO else Tracer(self, out, tangent)
        refuse_captured(self, out)
        if tangent is ZERO:
            return tuple(out)
        return tuple([self.lift(o, t) for o, t in zip(out, tangent, strict=True)])

    def unpack(self, value: Array) -> tuple[Array, Any]:
        """(primal, tangent or ZERO) of an output."""
        if type(value) is Tracer and value._interpreter is self:
            return value._value, value._attached
        return snapshot(value), ZERO
