"""From a Program to a callable: calls inlined, passes, a plan, generated code."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np

from func.backends.numpy_source import compile_plan
from func.interpreters.planning import plan_program, prepared
from func.interpreters.program import Program


COMPILERS = (None, "numpy", "llvm")
"""What `jit(compiler=...)` takes; None is the best that is available."""


def make_executor(
    program: Program, xp: Any, compiler: str | None, donated: frozenset[int] = frozenset()
) -> Callable[..., tuple[Any, ...]]:
    """The program as a function of arrays of a backend, which may overwrite the inputs in `donated`."""
    ready = prepared(program)
    if xp is np and compiler == "llvm" and not donated:
        run = _native(ready)
        if run is not None:
            return run
    return compile_plan(plan_program(ready, xp, xp is not np, donated=donated), xp)


def _native(program: Program) -> Callable[..., tuple[Any, ...]] | None:
    """Native code for host arrays, where there is a compiler for it."""
    if importlib.util.find_spec("llvmlite") is None:
        return None
    native = importlib.import_module("func.interpreters.native.execution")
    return native.native_executor(program) if native.is_available() else None  # type: ignore[no-any-return]
