"""Staging: record applications of primitives to variables as the equations of a Program."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from func.interpreters.core import (
    EVALUATE,
    PYTHON_SCALARS,
    TRACED,
    Array,
    Aval,
    Interpreter,
    Params,
    Primitive,
    Shape,
    Tracer,
    aval_of,
    defensive_copy,
    new_tracer,
    unboxed,
)
from func.interpreters.core.errors import StagingError
from func.interpreters.core.modes import MODE, body_above, is_suspended
from func.interpreters.host.source import at_line, user_line
from func.interpreters.primitives.structural.identity import renumbered, stop_gradient
from func.interpreters.program.evaluation import EVALUATED
from func.interpreters.program.program import Equation, Program, Var

if TYPE_CHECKING:
    from func.interpreters.program.layouts import Layouts


class Stage(Interpreter):
    """Records a program: its tracers are variables."""

    is_stage = True
    plans_eager_code = False
    """Whether it represents eager code, which runs operation by operation."""
    keeps_lines = True
    copies_constants = True
    checks_nan = True

    def __init__(self, transform: str) -> None:
        super().__init__(transform)
        if self.copies_constants and TRACED.install_indexing is not None:  # its code is the user's
            TRACED.install_indexing()
        self.equations: list[Equation] = []
        self.constants: dict[Var, Array] = {}
        self._layouts: Any = None
        self._constant_vars: dict[int, tuple[Array, Var]] = {}
        self._forgotten: set[int] = set()
        """The ids of equations that the program leaves out."""
        self.names_of_arguments: Callable[[], Sequence[str]] = tuple
        """Returns the user's expression of each input."""
        self.arguments: Sequence[Var] = ()
        """The inputs that have names."""
        self.ask: Callable[[Stage, Var, int], Any] | None = None
        """The value of a variable, or that of all elements of leading batch axes; None if there is no answer."""
        self.axes: dict[str, Any] = {}
        """The axes that collectives in the code name, each with its key."""
        self.has_pullbacks = False
        """Whether it traced a pullback, whose cotangents nothing could check for NaN."""

    @property
    def layouts(self) -> Layouts:
        """The layouts of arrays if NumPy ran the program."""
        if self._layouts is None:
            from func.interpreters.program.layouts import Layouts  # start-up time: few programs ask

            self._layouts = Layouts(self.equations, self.constants)
        return self._layouts  # type: ignore[no-any-return]

    def variable(self, aval: Aval) -> Tracer:
        """A new input."""
        return Tracer(self, None, Var(aval))

    def shape(self, tracer: Tracer) -> Shape:
        return tracer._attached.shape  # type: ignore[no-any-return]

    def dtype(self, tracer: Tracer) -> np.dtype[Any]:
        return tracer._attached.dtype  # type: ignore[no-any-return]

    def aval(self, tracer: Tracer) -> Aval:
        return tracer._attached.aval  # type: ignore[no-any-return]

    def concrete(self, tracer: Tracer, axes: int = 0) -> Any:
        var = tracer._attached
        if self.ask is not None and (answer := self.ask(self, var, axes)) is not None:
            return answer
        name = self.names_of_arguments()[self.arguments.index(var)] if var in self.arguments else ""
        kind = str(var.aval).rstrip("~")
        error = StagingError(
            f"func.{self.transform} traces this code with abstract arrays, so the value of "
            f"{f'{name} ({kind})' if name else kind} is not known{at_line()}\n"
            "Instead of `if x > 0:` write np.where(x > 0, a, b) or func.cond; instead of a value-dependent loop "
            "func.while_loop; pass numbers that decide shapes as static arguments."
        )
        error.argument = name
        raise error

    def _note_frozen(self, box: Tracer) -> None:
        """Note on a tensor from outside, or on its base, that its numbers become a constant."""
        while (base := getattr(getattr(box, "_view_of", None), "base", None)) is not None:
            box = base
        state = getattr(box, "_state", None)
        if state is not None and state.born is not None and state.born < self.level:
            state.frozen_in = self.transform

    def atom(self, value: Array) -> Any:
        """The entry of an equation for an argument: a variable or a Python scalar."""
        if self.transform == "jit" and type(value) is Tracer and value._interpreter is EVALUATE:
            self._note_frozen(value)
        value = unboxed(value)
        if type(value) is Tracer and value._interpreter is self:
            return value._attached
        if type(value) in PYTHON_SCALARS:
            return value
        held = defensive_copy(value) if self.copies_constants else value
        constant, var = self._constant_vars.get(id(held), (None, None))
        if var is not None and constant is held:
            return var
        var = Var(aval_of(held))
        self.constants[var] = held
        self._constant_vars[id(held)] = (held, var)
        return var

    def apply(self, primitive: Primitive, args: tuple[Array, ...], params: Params) -> Any:
        if MODE.get() is not None and (body := body_above(self.level)) is not None:
            return body.apply(primitive, args, params)
        inputs = []
        avals = []
        for arg in args:
            # `atom`, written out for the most frequent case
            x = arg._attached if type(arg) is Tracer and arg._interpreter is self else self.atom(arg)
            inputs.append(x)
            avals.append(x.aval if type(x) is Var else aval_of(x))
        out = primitive._aval(*avals, **params)
        line = user_line(2) if self.keeps_lines else EVALUATED.line
        if not primitive.multiple and MODE.get() is None:
            var = Var(out)
            self.equations.append(Equation(primitive, tuple(inputs), params, (var,), line))
            return self.wrap(var)
        variables = tuple([Var(aval) for aval in (out if primitive.multiple else (out,))])
        self.equations.append(Equation(primitive, tuple(inputs), params, variables, line))
        outs = [self.wrap(var) for var in variables]
        if MODE.get() is not None and is_suspended(self.level) and primitive not in _OF_MODES:
            outs = [stop_gradient(out) for out in outs]
        return tuple(outs) if primitive.multiple else outs[0]

    @contextlib.contextmanager
    def lines_of_programs(self) -> Iterator[None]:
        """Inside, equations have the lines of evaluated programs, not that of the call."""
        keeps_lines, self.keeps_lines = self.keeps_lines, False
        try:
            yield
        finally:
            self.keeps_lines = keeps_lines

    def wrap(self, var: Var) -> Tracer:
        """The tracer of a variable."""
        return new_tracer(self, None, var)

    def program(self, inputs: Sequence[Var], outputs: Sequence[Array]) -> Program:
        """The recorded equations that the outputs need. Inputs are variables, since functions may write to tracers."""
        atoms = [self.atom(output) for output in outputs]
        equations: Sequence[Equation] = self.equations
        if self._forgotten:
            equations = [equation for equation in equations if id(equation) not in self._forgotten]
        return Program(inputs, equations, atoms, self.constants).pruned()

    def forget_effects(self, mark: int) -> None:
        """Leave out the effects of the equations since `mark`, whose results are unused."""
        self._forgotten.update([id(equation) for equation in self.equations[mark:] if equation.has_effect])

    def close(self) -> None:
        self.equations, self.constants, self._constant_vars = [], {}, {}
        self._layouts = None
        self.arguments, self.names_of_arguments, self.ask = (), tuple, None
        super().close()


_OF_MODES = (stop_gradient, renumbered)


class DerivedStage(Stage):
    """Stages code of the engine: no code writes to its arrays; lines come from the Program that it evaluates."""

    keeps_lines = False
    copies_constants = False
    checks_nan = False


class LinearStage(DerivedStage):
    """Stages code that is linear in its variables, for transposition: their numbers must not decide anything."""

    is_linear = True
