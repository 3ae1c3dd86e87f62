"""The Program: inputs, equations, outputs and constants of a traced function."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from func.interpreters.core import Array, Aval, Params, Primitive, Shaped, bind, short_dtype, snapshot
from func.interpreters.source import Line

_serials: Iterator[int] = itertools.count()


class Var(Shaped):
    """A variable of a Program: the value of an input, a constant or an equation's output."""

    __slots__ = ("serial", "weak")

    def __init__(self, aval: Aval) -> None:
        self.shape = aval.shape
        self.dtype = aval.dtype
        self.weak = aval.weak
        self.serial = next(_serials)

    @property
    def aval(self) -> Aval:
        return Aval(self.shape, self.dtype, self.weak)

    def __repr__(self) -> str:
        return f"v{self.serial}"

    def __getstate__(self) -> tuple[Any, ...]:
        return self.shape, self.dtype, self.weak

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.shape, self.dtype, self.weak = state
        self.serial = next(_serials)


class Equation:
    """One applied primitive: outputs = row(inputs, **params). An input is a Var or a Python scalar."""

    __slots__ = ("inputs", "line", "outputs", "params", "row")

    def __init__(
        self,
        row: Primitive,
        inputs: tuple[Any, ...],
        params: Params,
        outputs: tuple[Var, ...],
        line: Line | None = None,
    ) -> None:
        self.row = row
        self.inputs = inputs
        self.params = params
        self.outputs = outputs
        self.line = line

    def __getstate__(self) -> tuple[Any, ...]:
        return self.row, self.inputs, self.params, self.outputs, self.line

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.row, self.inputs, self.params, self.outputs, self.line = state


class Program:
    """A traced function: straight-line equations from inputs and constants to outputs.

    Outputs are Vars, Python scalars, or (for outputs that do not depend on the inputs) constants' Vars.
    Call it with arrays, one per input, to get the tuple of outputs, which are the caller's own.
    """

    __slots__ = ("constants", "equations", "inputs", "outputs")

    def __init__(
        self,
        inputs: Sequence[Var],
        equations: Sequence[Equation],
        outputs: Sequence[Any],
        constants: dict[Var, Array],
    ) -> None:
        self.inputs = tuple(inputs)
        self.equations = tuple(equations)
        self.outputs = tuple(outputs)
        self.constants = constants

    def __call__(self, *args: Array) -> tuple[Any, ...]:
        return tuple([out.copy() if type(out) is np.ndarray else snapshot(out) for out in self.run(args)])

    def run(
        self, args: Sequence[Array], override: Callable[[int, tuple[Array, ...]], Any] | None = None
    ) -> tuple[Any, ...]:
        """Evaluate on arrays or tracers. `override(i, operands)` may supply the outputs of equation i instead."""
        values: dict[Var, Any] = dict(self.constants)
        values.update(zip(self.inputs, args, strict=True))
        last_use = self._last_uses()
        for i, equation in enumerate(self.equations):
            operands = tuple([values[x] if type(x) is Var else x for x in equation.inputs])
            given = override(i, operands) if override is not None else None
            if given is None:
                out = bind(equation.row, operands, equation.params)
                given = out if equation.row.multiple else (out,)
            values.update(zip(equation.outputs, given, strict=True))
            for var in last_use[i]:
                values.pop(var, None)
        return tuple([values[x] if type(x) is Var else x for x in self.outputs])

    def _last_uses(self) -> list[list[Var]]:
        """For each equation the variables that nothing after it needs."""
        kept = {x for x in self.outputs if type(x) is Var}
        seen: set[Var] = set(kept)
        result: list[list[Var]] = []
        for equation in reversed(self.equations):
            dead = [x for x in (*equation.inputs, *equation.outputs) if type(x) is Var and x not in seen]
            seen.update(dead)
            result.append(dead)
        result.reverse()
        return result

    def pruned(self) -> Program:
        """The same program without equations whose outputs nothing needs."""
        needed = {x for x in self.outputs if type(x) is Var}
        kept: list[Equation] = []
        for equation in reversed(self.equations):
            if any([out in needed for out in equation.outputs]):
                kept.append(equation)
                needed.update([x for x in equation.inputs if type(x) is Var])
        kept.reverse()
        constants = {var: value for var, value in self.constants.items() if var in needed}
        return Program(self.inputs, kept, self.outputs, constants)

    @property
    def constant_bytes(self) -> int:
        """The size of the arrays that the program holds."""
        return sum(getattr(value, "nbytes", 0) for value in self.constants.values())

    def check(self) -> None:
        """Raise AssertionError unless every variable is defined once, before its use, with the row's avals."""
        defined = {*self.inputs, *self.constants}
        assert len(defined) == len(self.inputs) + len(self.constants), "a variable is defined twice"
        for equation in self.equations:
            avals = []
            for x in equation.inputs:
                assert type(x) is not Var or x in defined, f"{x} is used before it is defined"
                avals.append(x.aval if type(x) is Var else Aval((), np.asarray(x).dtype, True))
            out = equation.row.aval(*avals, **equation.params)
            outs = out if equation.row.multiple else (out,)
            for var, aval in zip(equation.outputs, outs, strict=True):
                assert var not in defined, f"{var} is defined twice"
                assert (var.shape, var.dtype) == (aval.shape, aval.dtype), f"{equation.row}: {var.aval} is not {aval}"
                defined.add(var)
        for x in self.outputs:
            assert type(x) is not Var or x in defined, f"output {x} is not defined"

    def text(self, lines: bool = False) -> str:
        """The program as text; with `lines` each equation says which source line it came from."""
        names = _names(self)
        head = ", ".join(f"{names[var]}:{var.aval}" for var in self.inputs)
        rows = [f"program({head}) {{"]
        for var, value in self.constants.items():
            rows.append(f"  {names[var]}:{var.aval} = constant {_brief(value)}")
        for equation in self.equations:
            left = ", ".join(f"{names[var]}:{var.aval}" for var in equation.outputs)
            params = ", ".join(f"{key}={_brief(value)}" for key, value in equation.params.items())
            right = " ".join(names[x] if type(x) is Var else repr(x) for x in equation.inputs)
            row = f"  {left} = {equation.row.name}{f'[{params}]' if params else ''} {right}"
            rows.append(f"{row:<72}# {equation.line}" if lines and equation.line else row)
        outs = ", ".join(names[x] if type(x) is Var else repr(x) for x in self.outputs)
        return "\n".join([*rows, f"  return {outs}", "}"])

    def __repr__(self) -> str:
        return self.text()


def _names(program: Program) -> dict[Var, str]:
    """Short names a, b, ..., z, aa, ... in order of definition."""
    order = [*program.inputs, *program.constants, *[out for eq in program.equations for out in eq.outputs]]
    names: dict[Var, str] = {}
    for i, var in enumerate(order):
        letters = ""
        i += 1
        while i:
            i, digit = divmod(i - 1, 26)
            letters = chr(97 + digit) + letters
        names[var] = letters
    return names


def _brief(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.size > 4:
        return f"{short_dtype(value.dtype)}[{','.join(map(str, value.shape))}]"
    if isinstance(value, np.dtype):
        return short_dtype(value)
    if callable(value):
        return getattr(value, "__name__", type(value).__name__)
    return " ".join(repr(value).split())
