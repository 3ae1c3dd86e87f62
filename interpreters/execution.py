"""From a Program to a callable: calls inlined, passes, a plan, generated code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from func.backends.numpy_source import compile_plan
from func.interpreters.planning import plan_program, prepared
from func.interpreters.program import Program


def make_executor(
    program: Program, xp: Any, compiler: str | None, donated: frozenset[int] = frozenset()
) -> Callable[..., tuple[Any, ...]]:
    """The program as a function of arrays of a backend, which may overwrite the inputs in `donated`."""
    return compile_plan(plan_program(prepared(program), xp, xp is not np, donated=donated), xp)
