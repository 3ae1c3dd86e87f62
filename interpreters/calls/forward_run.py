"""The one run of a user's forward function: it computes, and notes how every value came about.

A function with a derivative rule runs once for a call, on values from which all derivatives have been taken away: the
rule, not the code, is their derivative. What the function hands to its rule besides arguments and outputs, an
intermediate value, has no rule. Its derivative is that of the code that computed it, which `ForwardRun.replay` repeats
without calling the user's function again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from func.interpreters.core import (
    EVALUATE,
    Array,
    Interpreter,
    Params,
    Primitive,
    Tracer,
    bind,
    dtype_of,
    is_inexact,
    next_level,
    snapshot,
    unboxed,
)
from func.interpreters.core.errors import NotDifferentiableError
from func.interpreters.vmap import Vmap


class Origin(NamedTuple):
    """Where a value of a run comes from: output `place` of a step, or, without a step, argument `place`."""

    step: Any
    place: int


class Step(NamedTuple):
    """An application of a primitive. An operand is an Origin, or a value that does not depend on the arguments."""

    primitive: Primitive
    operands: tuple[Any, ...]
    params: Params


class ForwardRun(Interpreter):
    """Computes at once, and attaches the Origin to each value. What cannot carry a derivative leaves as a plain box.

    `was_read` tells that the code read numbers, as by float(x): what it computed from them has no known derivative.
    After the run its values are plain ones.
    """

    was_read = False

    def __init__(self) -> None:
        self.level = next_level()
        self.transform = "custom rule"
        self.line = None

    def lift(self, value: Array, place: int) -> Tracer:
        """An argument."""
        return Tracer(self, value, Origin(None, place))

    def apply(self, primitive: Primitive, args: tuple[Array, ...], params: Params) -> Any:
        values = []
        operands = []
        for arg in args:
            if type(arg) is Tracer and arg._interpreter is self:
                values.append(arg._value)
                operands.append(arg._attached)
            else:
                value = snapshot(unboxed(arg))
                values.append(value)
                operands.append(value)
        out = bind(primitive, tuple(values), params)
        step = Step(primitive, tuple(operands), params) if primitive.differentiable else None
        if primitive.multiple:
            return tuple([self._output(value, step, place) for place, value in enumerate(out)])
        return self._output(out, step, 0)

    def _output(self, value: Array, step: Step | None, place: int) -> Tracer:
        if step is not None and is_inexact(dtype_of(value)):
            return Tracer(self, value, Origin(step, place))
        return value if type(value) is Tracer else Tracer(EVALUATE, value, None)

    def concrete(self, tracer: Tracer) -> Any:
        self.was_read = True
        return super().concrete(tracer)

    def owns(self, value: Any) -> bool:
        """Whether a value was computed in this run from its arguments."""
        return type(value) is Tracer and value._interpreter is self

    def value(self, value: Array) -> Array:
        """A value of the run without its origin."""
        return value._value if self.owns(value) else unboxed(value)

    def close(self) -> None:
        self.__class__ = FinishedRun  # pyright: ignore[reportAttributeAccessIssue]

    def replay(self, origins: Sequence[Origin], places: Sequence[int]) -> tuple[Any, list[int], list[Array]]:
        """What computes some values again: (function of arrays, which of the arguments at these places it takes, the
        further values that it takes)."""
        if self.was_read:
            return unknown_derivative, list(places), []
        steps = _ordered(origins)
        arguments: dict[int, None] = {}
        captured: dict[int, Array] = {}
        for operand in [*origins, *[operand for step in steps for operand in step.operands]]:
            if type(operand) is not Origin:
                if type(operand) is Tracer:
                    captured[id(operand)] = operand
            elif operand.step is None:
                arguments[operand.place] = None
        return Replay(steps, list(origins), list(arguments), list(captured)), list(arguments), list(captured.values())


class FinishedRun(ForwardRun):
    """What a ForwardRun becomes: a value that was kept elsewhere is a constant."""

    def apply(self, primitive: Primitive, args: tuple[Array, ...], params: Params) -> Any:
        out = bind(primitive, tuple([self.value(arg) for arg in args]), params)
        outs = [self._output(value, None, 0) for value in (out if primitive.multiple else (out,))]
        return tuple(outs) if primitive.multiple else outs[0]

    def concrete(self, tracer: Tracer) -> Any:
        return Interpreter.concrete(self, tracer)


class Replay:
    """Applies the primitives of a run again: (*arguments, *captured values) -> the chosen values."""

    def __init__(
        self, steps: Sequence[Step], outputs: Sequence[Origin], arguments: Sequence[int], captured: Sequence[int]
    ) -> None:
        self.steps = steps
        self.outputs = outputs
        self.arguments = arguments
        self.captured = captured

    def __call__(self, *inputs: Array) -> list[Array]:
        arguments = dict(zip(self.arguments, inputs, strict=False))
        captured = dict(zip(self.captured, inputs[len(self.arguments) :], strict=True))
        results: dict[int, Any] = {}

        def value_of(operand: Any) -> Array:
            if type(operand) is Origin:
                return arguments[operand.place] if operand.step is None else results[id(operand.step)][operand.place]
            return captured[id(operand)] if type(operand) is Tracer else operand

        for step in self.steps:
            out = bind(step.primitive, tuple([value_of(operand) for operand in step.operands]), step.params)
            results[id(step)] = out if step.primitive.multiple else (out,)
        return [value_of(origin) for origin in self.outputs]


def _ordered(origins: Iterable[Origin]) -> list[Step]:
    """The steps behind some values, each after those that it needs."""
    ordered: list[Step] = []
    is_done: dict[int, bool] = {}
    stack = [origin.step for origin in origins if origin.step is not None]
    while stack:
        step = stack[-1]
        if id(step) not in is_done:
            is_done[id(step)] = False
            stack.extend([x.step for x in step.operands if type(x) is Origin and id(x.step) not in is_done and x.step])
            continue
        stack.pop()
        if not is_done[id(step)]:
            is_done[id(step)] = True
            ordered.append(step)
    return ordered


def unknown_derivative(*inputs: Array) -> list[Array]:
    """Raises: what a forward function computes from numbers that it has read cannot be computed again."""
    raise NotDifferentiableError(
        "the forward function of a rule read the numbers of its arguments (by float(x), x.item(), np.asarray(x) or "
        "x.numpy()) and handed what it computed to its backward function, whose derivative is now asked for: it is not "
        "known. Compute with NumPy functions instead, return the value as an output too, or say by x.detach() that it "
        "is a constant."
    )


def needs_rule(values: Iterable[Any]) -> bool:
    """Whether some value is traced by a level that differentiates, now or later as a Program; vmap alone does not."""
    for value in values:
        while type(value) is Tracer:
            interpreter = value._interpreter
            if interpreter is not EVALUATE and not isinstance(interpreter, (Vmap, FinishedRun)):
                return True
            value = value._value
    return False
