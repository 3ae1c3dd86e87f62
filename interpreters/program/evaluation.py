"""The evaluation of equations: the line of the present one, and equations that a stage records instead.

A Program that derives another one evaluates its equations on tracers of a stage.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from func.interpreters.core import Array, Params, Primitive, Tracer, bind
from func.interpreters.core.scopes import present_stage
from func.interpreters.host.source import Line


class _Evaluated(threading.local):
    """The user's line of the equation that `Program.run` evaluates in this thread."""

    line: Line | None = None


EVALUATED = _Evaluated()
"""Stages that evaluate a Program on tracers take the lines of its equations."""


def bound(primitive: Primitive, operands: tuple[Any, ...], params: Params, args: Sequence[Array]) -> Any:
    """Evaluate an equation on operands.

    With plain operands two kinds of primitives do not run but become equations of a stage. Those that call Python go to
    the present stage; those that inform passes go to the stage that traces `args`.
    """
    if (primitive.calls_python or primitive.tells_passes) and not any([type(x) is Tracer for x in operands]):
        stage = present_stage() if primitive.calls_python else stage_of(args)
        if stage is not None:
            return stage.apply(primitive, operands, params)
    return bind(primitive, operands, params)


def stage_of(args: Sequence[Array]) -> Any:
    """The stage of which some argument is a variable, below any number of interpreters; None without one."""
    for arg in args:
        while type(arg) is Tracer:
            if arg._value is None and arg._interpreter.is_stage and not arg._interpreter.is_linear:
                return arg._interpreter
            arg = arg._value
    return None
