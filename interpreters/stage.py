"""Staging: apply rows to variables and record them as the equations of a Program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from func.interpreters.core import (
    PYTHON_SCALARS,
    Array,
    Aval,
    Interpreter,
    Params,
    Primitive,
    Shape,
    Tracer,
    aval_of,
    bind,
    snapshot,
    unboxed,
)
from func.interpreters.core.errors import StagingError
from func.interpreters.core.modes import MODE, is_suspended
from func.interpreters.core.source import at_line, user_line
from func.interpreters.primitives.structural.identity import stop_gradient
from func.interpreters.program.program import Equation, Program, Var


class Stage(Interpreter):
    """Tracers are variables. `extra` holds the equations so far and the constants met."""

    __slots__ = ()
    keeps_lines = True
    copies_constants = True

    def __init__(self, transform: str) -> None:
        super().__init__(transform, ([], {}, {}))
        self.pulled = False
        """Whether a pullback was staged, whose values could not be looked at for zeros that meet infinities."""

    def variable(self, aval: Aval) -> Tracer:
        """A new input."""
        return Tracer(self, None, Var(aval))

    def shape(self, tracer: Tracer) -> Shape:
        return tracer.attached.shape  # type: ignore[no-any-return]

    def dtype(self, tracer: Tracer) -> np.dtype[Any]:
        return tracer.attached.dtype  # type: ignore[no-any-return]

    def aval(self, tracer: Tracer) -> Aval:
        return tracer.attached.aval  # type: ignore[no-any-return]

    def concrete(self, tracer: Tracer) -> NoReturn:
        raise StagingError(
            f"func.{self.transform} traces this code with abstract arrays, so the value of {tracer.attached.aval} is "
            f"not known{at_line()}\n"
            "Instead of `if x > 0:` write np.where(x > 0, a, b) or func.cond; instead of a value-dependent loop "
            "func.while_loop; pass numbers that decide shapes as static arguments."
        )

    def atom(self, value: Array) -> Any:
        """What an equation holds for an argument: a variable or a Python scalar."""
        value = unboxed(value)
        if type(value) is Tracer and value.interpreter is self:
            return value.attached
        if type(value) in PYTHON_SCALARS:
            return value
        constants, by_identity = self.extra[1:3]
        known = by_identity.get(id(value))
        if known is not None and known[0] is value and not (self.copies_constants and _mutable(value)):
            return known[1]
        var = Var(aval_of(value))
        constants[var] = snapshot(value) if self.copies_constants else value
        by_identity[id(value)] = (value, var)
        return var

    def apply(self, primitive: Primitive, args: tuple[Array, ...], params: Params) -> Any:
        inputs = tuple([self.atom(arg) for arg in args])
        avals = [x.aval if type(x) is Var else aval_of(x) for x in inputs]
        out = primitive.aval(*avals, **params)
        variables = tuple([Var(aval) for aval in (out if primitive.multiple else (out,))])
        self.extra[0].append(Equation(primitive, inputs, params, variables, user_line(2) if self.keeps_lines else None))
        outs = [self.wrap(var) for var in variables]
        if MODE.get() is not None and is_suspended(self.level) and primitive is not stop_gradient:
            outs = [stop_gradient(one) for one in outs]
        return tuple(outs) if primitive.multiple else outs[0]

    def wrap(self, var: Var) -> Tracer:
        """The tracer that stands for a variable."""
        return Tracer(self, None, var)

    def program(self, inputs: Sequence[Var], outputs: Sequence[Array]) -> Program:
        """Everything recorded that the outputs need. Inputs are variables: functions may write to their boxes."""
        equations, constants = self.extra[:2]
        atoms = [self.atom(output) for output in outputs]
        return Program(inputs, equations, atoms, constants).pruned()

    def close(self) -> None:
        self.extra = None
        super().close()


def _mutable(value: Array) -> bool:
    return type(value) is Tracer or (isinstance(value, np.ndarray) and value.flags.writeable)


class TangentStage(Stage):
    """Staging of tangents inside linearize. Users never see it: no lines are kept, and the values that reach it
    are the engine's own, which nobody writes to."""

    __slots__ = ()
    keeps_lines = False
    copies_constants = False


class Recorder(Stage):
    """Stages and computes at once: tracers also carry their values, so value-dependent Python just runs."""

    __slots__ = ()
    keeps_lines = False

    def shape(self, tracer: Tracer) -> Shape:
        return Interpreter.shape(self, tracer)

    def aval(self, tracer: Tracer) -> Aval:
        return aval_of(tracer.value)

    def dtype(self, tracer: Tracer) -> np.dtype[Any]:
        return Interpreter.dtype(self, tracer)

    def concrete(self, tracer: Tracer) -> Any:
        return Interpreter.concrete(self, tracer)

    def __init__(self, transform: str, policy: Any) -> None:
        super().__init__(transform)
        self.extra = (*self.extra, policy, [])

    def kept(self) -> list[tuple[Equation, Array]]:
        """The equations that the policy keeps, with their values."""
        return self.extra[4]  # type: ignore[no-any-return]

    def lift(self, value: Array) -> Tracer:
        """A new input with its value."""
        return Tracer(self, value, Var(aval_of(value)))

    def apply(self, primitive: Primitive, args: tuple[Array, ...], params: Params) -> Any:
        inputs = tuple([self.atom(arg) for arg in args])
        values = tuple([arg.value if type(arg) is Tracer and arg.interpreter is self else unboxed(arg) for arg in args])
        out = bind(primitive, values, params)
        outs = out if primitive.multiple else (out,)
        variables = tuple([Var(aval_of(value)) for value in outs])
        equation = Equation(primitive, inputs, params, variables)
        self.extra[0].append(equation)
        if not primitive.multiple and self.extra[3](primitive, params):
            self.extra[4].append((equation, out))
        traced = tuple([Tracer(self, value, var) for value, var in zip(outs, variables, strict=True)])
        return traced if primitive.multiple else traced[0]
