"""The axis of processes, which collectives find under its name in `func.spmd`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from func.interpreters.core import Array, Interpreter, Params, Primitive, Tracer, bind
from func.interpreters.core.scopes import Entry, Scope, live_entries, live_entry, present_stage
from func.interpreters.processes import Ranks
from func.interpreters.program.program import Program


class RankAxis(Interpreter):
    """Gives collectives the number of this process as a traced value, of a level below all others.

    Without a trace, primitives compute with the plain number. In a traced program the number is a captured value, and
    so an input. So programs are equal on all ranks, no trace depends on the number, and a collective of constants is an
    equation.
    """

    def __init__(self, name: str, ranks: Ranks, vmaps: int) -> None:
        super().__init__("spmd")
        self.name = name
        self.ranks = ranks
        self.vmaps = vmaps
        """The number of vmaps around it."""
        self.number = Tracer(self, np.int64(ranks.index), None)

    def apply(self, primitive: Primitive, args: tuple[Array, ...], params: Params) -> Any:
        if primitive.communicates:
            stage = present_stage()
            if stage is not None:
                return stage.apply(primitive, args, params)
        return bind(primitive, tuple([plain_number(arg) for arg in args]), params)


class AxisEntry(Entry):
    """The processes of an axis run a function."""

    __slots__ = ("axis",)

    def __init__(self, scope: Scope, outer: AxisEntry | None, axis: RankAxis) -> None:
        super().__init__(scope, outer)
        self.axis = axis


_AXES: ContextVar[AxisEntry | None] = ContextVar("func_rank_axes", default=None)


@contextmanager
def running_on(axis: RankAxis) -> Iterator[None]:
    """Inside, collectives find the axis by its name."""
    scope = Scope()
    entry = AxisEntry(scope, live_entry(_AXES), axis)
    token = _AXES.set(entry)
    try:
        yield
    finally:
        _AXES.reset(token)
        del scope


def running_axes() -> list[RankAxis]:
    """The axes of processes that run here, outermost first."""
    return [entry.axis for entry in reversed(live_entries(_AXES))]


def is_rank_number(value: Any) -> bool:
    """Whether this is the traced number of a process."""
    return type(value) is Tracer and type(value._interpreter) is RankAxis


def plain_number(value: Any) -> Any:
    """The plain number for the traced number of a process; any other value itself."""
    return value._value if type(value) is Tracer and type(value._interpreter) is RankAxis else value


def with_plain_numbers(program: Program) -> Program:
    """A program for execution, with plain numbers for the traced ones among its constants."""
    if not any([is_rank_number(value) for value in program.constants.values()]):
        return program
    constants = {var: plain_number(value) for var, value in program.constants.items()}
    return Program(program.inputs, program.equations, program.outputs, constants)
