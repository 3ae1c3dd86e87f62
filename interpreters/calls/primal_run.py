"""The one run of a user's forward function: it computes, and notes the origin of every value.

A function with a derivative rule runs once for a call, on values without derivatives: the rule, not the code, defines
the derivative. Intermediate values that the function passes to its rule have no rule. Their derivative is that of the
code that computed them, which `PrimalRun.replay` repeats without calling the user's function again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from func.interpreters.core import (
    EVALUATE,
    PRIMITIVES,
    Array,
    Interpreter,
    Params,
    Primitive,
    Tracer,
    bind,
    defensive_copy,
    dtype_of,
    is_inexact,
    next_level,
    unboxed,
)
from func.interpreters.core.errors import NotDifferentiableError
from func.interpreters.core.modes import MODE, body_above, is_suspended
from func.interpreters.primitives.structural.identity import stop_gradient
from func.interpreters.stage import Stage
from func.interpreters.vmap import Vmap


class Origin(NamedTuple):
    """The origin of a value of a run: output `place` of a step, or, without a step, argument `place`."""

    step: Any
    place: int


class Step(NamedTuple):
    """An application of a primitive. An operand is an Origin, or a value that does not depend on the arguments."""

    primitive: Primitive
    operands: tuple[Any, ...]
    params: Params


class PrimalRun(Interpreter):
    """Computes at once, and attaches the Origin to each value. Values that cannot have a derivative leave as plain
    tracers.

    `was_read`: the code read numbers, as by float(x), and results from them have no known derivative. With `args` it is
    the run of a checkpoint. Traced values that the function reaches otherwise count as further arguments, and values
    that live on elsewhere have a derivative also after the run. Without `args` they are then constants. `saved` has the
    values of the steps that policy(primitive, params) chooses.
    """

    takes_further = True
    was_read = False
    is_readable = True

    def __init__(self, args: Sequence[Array] | None = None, policy: Any = None) -> None:
        self.level = next_level()
        self.transform = "custom rule" if args is None else "checkpoint"
        self.line = None
        self.args = args
        self.policy = policy
        self.saved: dict[int, tuple[Step, Array]] = {}

    def lift(self, value: Array, place: int) -> Tracer:
        """An argument."""
        return Tracer(self, value, Origin(None, place))

    def apply(self, primitive: Primitive, args: tuple[Array, ...], params: Params) -> Any:
        if MODE.get() is not None and (body := body_above(self.level)) is not None:
            return body.apply(primitive, args, params)
        values = []
        operands = []
        for arg in args:
            if type(arg) is Tracer and arg._interpreter is self:
                values.append(arg._value)
                operands.append(arg._attached)
            else:
                value = defensive_copy(unboxed(arg))
                values.append(stop_gradient(value) if type(value) is Tracer and self.args is not None else value)
                operands.append(value)
        out = bind(primitive, tuple(values), params)
        is_constant = not primitive.differentiable or (MODE.get() is not None and is_suspended(self.level))
        step = None if is_constant else Step(primitive, tuple(operands), params)
        if primitive.multiple:
            return tuple([self._output(value, step, place) for place, value in enumerate(out)])
        if step is not None and self.policy is not None and self.policy(primitive, params):
            self.saved[id(step)] = step, out
        return self._output(out, step, 0)

    def _output(self, value: Array, step: Step | None, place: int) -> Tracer:
        if step is not None and is_inexact(dtype_of(value)):
            return Tracer(self, value, Origin(step, place))
        return value if type(value) is Tracer else Tracer(EVALUATE, value, None)

    def concrete(self, tracer: Tracer) -> Any:
        self.was_read = True
        return super().concrete(tracer)

    def owns(self, value: Any) -> bool:
        """Whether this run computed a value from its arguments."""
        return type(value) is Tracer and value._interpreter is self

    def value(self, value: Array) -> Array:
        """A value of the run without its origin."""
        return value._value if self.owns(value) else unboxed(value)

    def close(self) -> None:
        self.called = self.shared = None
        self.inner_calls = ()
        self.__class__ = FinishedRun if self.args is None else FinishedCheckpoint  # pyright: ignore[reportAttributeAccessIssue]

    def replay(self, origins: Sequence[Origin], places: Sequence[int]) -> tuple[Any, list[int], list[Array]]:
        """The parts of a repetition of values: (function of arrays, flags of its arguments at these places, more
        values).
        """
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
        saved = [step for step in steps if id(step) in self.saved]
        replay = Replay(steps, list(origins), list(arguments), list(captured), saved)
        return replay, list(arguments), [*captured.values(), *[self.saved[id(step)][1] for step in saved]]

    def with_derivative(self, values: Sequence[Tracer], rerun: Any = None) -> Sequence[Array]:
        """Values of a checkpoint's run as calls that compute them again for derivatives."""
        assert self.args is not None
        fun, places, further = self.replay([value._attached for value in values], range(len(self.args)))
        inputs = [self.args[place] for place in places] + further
        if rerun is not None and not needs_rule(further):
            fun, inputs = rerun, list(self.args)
        outs: Sequence[Array] = PRIMITIVES["checkpoint_call"](
            *inputs, *[value._value for value in values], fun=fun, outs=len(values)
        )
        return outs


class FinishedRun(PrimalRun):
    """A PrimalRun after its end: values that live on elsewhere are constants."""

    def apply(self, primitive: Primitive, args: tuple[Array, ...], params: Params) -> Any:
        if MODE.get() is not None and (body := body_above(self.level)) is not None:
            return body.apply(primitive, args, params)
        out = bind(primitive, tuple([self.value(arg) for arg in args]), params)
        outs = [self._output(value, None, 0) for value in (out if primitive.multiple else (out,))]
        return tuple(outs) if primitive.multiple else outs[0]

    def concrete(self, tracer: Tracer) -> Any:
        return Interpreter.concrete(self, tracer)


class FinishedCheckpoint(FinishedRun):
    """The run of a checkpoint after its end: values that live on elsewhere have derivatives by the arguments."""

    def apply(self, primitive: Primitive, args: tuple[Array, ...], params: Params) -> Any:
        if MODE.get() is not None and (body := body_above(self.level)) is not None:
            return body.apply(primitive, args, params)
        values = [self.with_derivative([arg])[0] if self.owns(arg) else arg for arg in args]
        return bind(primitive, tuple(values), params)


class Replay:
    """Applies the primitives of a run again: (*arguments, *captured values, *saved values) -> the chosen values."""

    def __init__(
        self,
        steps: Sequence[Step],
        outputs: Sequence[Origin],
        arguments: Sequence[int],
        captured: Sequence[int],
        saved: Sequence[Step],
    ) -> None:
        self.steps = steps
        self.outputs = outputs
        self.arguments = arguments
        self.captured = captured
        self.saved = [id(step) for step in saved]

    def __call__(self, *inputs: Array) -> list[Array]:
        remaining = iter(inputs)
        arguments = {place: next(remaining) for place in self.arguments}
        captured = {key: next(remaining) for key in self.captured}
        saved = {key: next(remaining) for key in self.saved}
        results: dict[int, Any] = {}

        def value_of(operand: Any) -> Array:
            if type(operand) is Origin:
                return arguments[operand.place] if operand.step is None else results[id(operand.step)][operand.place]
            return captured[id(operand)] if type(operand) is Tracer else operand

        for step in self.steps:
            operands = tuple([value_of(operand) for operand in step.operands])
            if id(step) in saved:
                options = {"primitive": step.primitive, "options": tuple(step.params.items())}
                results[id(step)] = (bind(PRIMITIVES["saved_output"], (saved[id(step)], *operands), options),)
                continue
            out = bind(step.primitive, operands, step.params)
            results[id(step)] = out if step.primitive.multiple else (out,)
        return [value_of(origin) for origin in self.outputs]


def _ordered(origins: Iterable[Origin]) -> list[Step]:
    """The steps behind some values, each after the steps that it needs."""
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
    """Raise: the run cannot repeat what a forward function computes from numbers that it read."""
    raise NotDifferentiableError(
        "the forward function of a rule, or a checkpointed function, read the numbers of traced values (by float(x), "
        "x.item(), np.asarray(x) or x.numpy()), and the derivative of what it computed is asked for: it is not known. "
        "Compute with NumPy functions instead, or read x.detach(), which is a constant; a Function may also return the "
        "value as an output."
    )


def is_traced_number(value: Any) -> bool:
    """Whether a value may have a derivative: it is traced, and of a dtype that carries derivatives."""
    return type(value) is Tracer and value._interpreter is not EVALUATE and is_inexact(dtype_of(value))


def needs_rule(values: Iterable[Any]) -> bool:
    """Whether a level that differentiates traces some value, now or later as a Program; vmap alone does not."""
    for value in values:
        while type(value) is Tracer:
            interpreter = value._interpreter
            if interpreter is not EVALUATE and not isinstance(interpreter, (Vmap, FinishedRun)):
                return True
            value = value._value
    return False


def mapping_level(values: Iterable[Any]) -> Interpreter | None:
    """The topmost level that maps some of the values: a vmap, or a stage, whose program may be mapped later."""
    top: Interpreter | None = None
    for value in values:
        while type(value) is Tracer:
            level = value._interpreter
            if isinstance(level, (Vmap, Stage)) and (top is None or level.level > top.level):
                top = level
            value = value._value
    return top
