"""The Program: inputs, equations, outputs and constants of a traced function."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from func.interpreters.core import Array, Aval, Params, Primitive, Shaped, snapshot
from func.interpreters.core.errors import ArgumentError
from func.interpreters.core.wiring import WIRING
from func.interpreters.host.source import Line, hide_engine_frames, note_line
from func.interpreters.program.evaluation import EVALUATED, bound

if TYPE_CHECKING:
    from func.interpreters.program.cost import Cost

_serials: Iterator[int] = itertools.count()


class Var(Shaped):
    """A variable of a Program: the value of an input, a constant or an equation's output."""

    __slots__ = ("aval", "serial", "weak")

    def __init__(self, aval: Aval) -> None:
        self.aval = aval
        self.shape = aval.shape
        self.dtype = aval.dtype
        self.weak = aval.weak
        self.serial = next(_serials)

    def __repr__(self) -> str:
        return f"v{self.serial}"

    def __getstate__(self) -> tuple[Any, ...]:
        return self.shape, self.dtype, self.weak

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.__init__(Aval(*state))  # type: ignore[misc]


_PLAIN = frozenset({type(None), bool, int, float, complex, str})
"""The most frequent types of parameters; they contain no program."""


class Equation:
    """One applied primitive: outputs = primitive(inputs, **params). An input is a Var or a Python scalar."""

    __slots__ = ("inputs", "line", "outputs", "params", "primitive")

    def __init__(
        self,
        primitive: Primitive,
        inputs: tuple[Any, ...],
        params: Params,
        outputs: tuple[Var, ...],
        line: Line | None = None,
    ) -> None:
        self.primitive = primitive
        self.inputs = inputs
        self.params = params
        self.outputs = outputs
        self.line = line

    @property
    def row(self) -> Primitive:
        """The primitive, by the first name of this attribute."""
        return self.primitive

    def __getstate__(self) -> tuple[Any, ...]:
        return self.primitive, self.inputs, self.params, self.outputs, self.line

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.primitive, self.inputs, self.params, self.outputs, self.line = state

    def nested(self) -> list[tuple[str, Program]]:
        """The programs among the parameters, with their names: `body`, `branches[0]`."""
        programs: list[tuple[str, Program]] = []
        if self.primitive.holds_no_program:
            return programs
        for key, value in self.params.items():
            if type(value) in _PLAIN:
                continue
            is_sequence = isinstance(value, (tuple, list))
            for i, entry in enumerate(value if is_sequence else (value,)):
                program = entry if isinstance(entry, Program) else getattr(entry, "program", None)
                if isinstance(program, Program):
                    programs.append((f"{key}[{i}]" if is_sequence else key, program))
        return programs

    @property
    def communicates(self) -> bool:
        """Whether it, or a program among its parameters, exchanges messages with other processes."""
        if not self.params or self.primitive.communicates or self.primitive.holds_no_program:
            return self.primitive.communicates
        return any([program.communicates for _, program in self.nested()])

    @property
    def has_effect(self) -> bool:
        """Whether it, or an equation of a program among its parameters, has no outputs, and so an effect."""
        if not self.outputs or not self.params or self.primitive.holds_no_program:
            return not self.outputs
        return any([program.has_effects for _, program in self.nested()])


class Program:
    """A traced function: straight-line equations from inputs and constants to outputs.

    Outputs are Vars, Python scalars, or (for outputs that do not depend on the inputs) constants' Vars.
    Calling it with one array per input gives the tuple of outputs, which the caller owns. Where an output has a NaN,
    the outputs are those of the NaN-safe variant `nan_safe`, which exists if a traced derivative needs one.
    """

    __slots__ = ("_communicates", "_has_effects", "_hash", "constants", "equations", "inputs", "nan_safe", "outputs")

    def __init__(
        self,
        inputs: Sequence[Var],
        equations: Sequence[Equation],
        outputs: Sequence[Any],
        constants: dict[Var, Array],
        nan_safe: Program | None = None,
    ) -> None:
        self.inputs = tuple(inputs)
        self.equations = tuple(equations)
        self.outputs = tuple(outputs)
        self.constants = constants
        self.nan_safe = nan_safe
        self._communicates: bool | None = None
        self._has_effects: bool | None = None
        self._hash: int | None = None

    def __call__(self, *args: Array) -> tuple[Any, ...]:
        try:
            if len(args) != len(self.inputs):
                raise ArgumentError(
                    f"this program takes {len(self.inputs)} arrays ({', '.join([str(x.aval) for x in self.inputs])}), "
                    f"but was called with {len(args)}; trees are passed leaf by leaf"
                )
            outs = self.run(args) if self.nan_safe is None else WIRING.run_nan_safe(self, args)
            return tuple([out.copy() if type(out) is np.ndarray else snapshot(out) for out in outs])
        except Exception as error:
            hide_engine_frames(error)
            raise

    def run(
        self, args: Sequence[Array], override: Callable[[int, tuple[Array, ...]], Any] | None = None
    ) -> tuple[Any, ...]:
        """Evaluate these equations on arrays or tracers.

        Where `override(i, operands)` is not None, it gives equation i's outputs.
        """
        values: dict[Var, Any] = dict(self.constants)
        values.update(zip(self.inputs, args, strict=True))
        last_use = self._last_uses()
        outer = EVALUATED.line
        try:
            for i, equation in enumerate(self.equations):
                EVALUATED.line = equation.line or outer
                operands = tuple([values[x] if type(x) is Var else x for x in equation.inputs])
                outs = override(i, operands) if override is not None else None
                if outs is None:
                    try:
                        out = bound(equation.primitive, operands, equation.params, args)
                    except Exception as error:
                        note_line(error, equation.line, "in a program")
                        raise
                    outs = out if equation.primitive.multiple else (out,)
                values.update(zip(equation.outputs, outs, strict=True))
                for var in last_use[i]:
                    values.pop(var, None)
        finally:
            EVALUATED.line = outer
        return tuple([values[x] if type(x) is Var else x for x in self.outputs])

    def _last_uses(self) -> list[list[Var]]:
        """For each equation the variables that no later equation reads."""
        live = {x for x in self.outputs if type(x) is Var}
        last_uses: list[list[Var]] = []
        for equation in reversed(self.equations):
            dead = [x for x in (*equation.inputs, *equation.outputs) if type(x) is Var and x not in live]
            live.update(dead)
            last_uses.append(dead)
        last_uses.reverse()
        return last_uses

    def pruned(self) -> Program:
        """The program without equations and constants that no output needs; itself where all are needed.

        Equations with an effect stay.
        """
        needed: set[Any] = set(self.outputs)
        equations: list[Equation] = []
        for equation in reversed(self.equations):
            if not needed.isdisjoint(equation.outputs) or equation.has_effect:
                equations.append(equation)
                needed.update(equation.inputs)
        constants = {var: value for var, value in self.constants.items() if var in needed}
        if len(equations) == len(self.equations) and len(constants) == len(self.constants):
            return self
        equations.reverse()
        variant = None if self.nan_safe is None else self.nan_safe.pruned()
        return Program(self.inputs, equations, self.outputs, constants, variant)

    @property
    def constant_bytes(self) -> int:
        """The size of the arrays that the program holds."""
        return sum(getattr(value, "nbytes", 0) for value in self.constants.values())

    @property
    def communicates(self) -> bool:
        """Whether some equation exchanges messages with other processes."""
        if self._communicates is None:
            self._communicates = any([equation.communicates for equation in self.equations])
        return self._communicates

    @property
    def has_effects(self) -> bool:
        """Whether some equation has an effect."""
        if self._has_effects is None:
            self._has_effects = any([equation.has_effect for equation in self.equations])
        return self._has_effects

    def check(self) -> None:
        """Raise ProgramError unless every variable is defined once, before its use, with the aval of its primitive."""
        WIRING.check_program(self)
        if self.nan_safe is not None:
            self.nan_safe.check()

    def cost(self) -> Cost:
        """The cost of running the program: operations, bytes moved, peak of live bytes, per equation and in total."""
        cost: Cost = WIRING.program_cost(self)
        return cost

    def draw(self, path: str | os.PathLike[str] | None = None) -> str:
        """A picture of the dataflow, which notebooks show; with a path, write it as an SVG file and return the path.

        The picture is a string: the text of the program, with the SVG in its attribute `svg`.

        Raises ArgumentError where the path does not end in .svg.
        """
        text: str = WIRING.draw_program(self, path)
        return text

    def text(self, lines: bool = False) -> str:
        """The program as text; with `lines` each equation names its source line."""
        text: str = WIRING.program_text(self, lines)
        return text

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        text: str = WIRING.program_html(self)
        return text

    def __eq__(self, other: object) -> bool:
        """Equal: the same primitives, parameters, wiring, avals and, bit by bit, constants."""
        if self is other:
            return True
        if not isinstance(other, Program):
            return NotImplemented
        is_same: bool = WIRING.same_program(self, other)
        return is_same

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = int(WIRING.program_hash(self))
        return self._hash

    def __dask_tokenize__(self) -> Any:
        return "func.Program", WIRING.program_token(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return Program, (self.inputs, self.equations, self.outputs, self.constants, self.nan_safe)
