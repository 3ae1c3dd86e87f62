"""Programs compiled by LLVM: as a whole where every equation is native, else part by part between calls of NumPy."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from func.backends.llvm import machine
from func.backends.llvm.executor import Executor
from func.backends.numpy_source import compile_plan
from func.interpreters.native.rules import NotNative
from func.interpreters.native.segments import foreign_equations, segmented, translate
from func.interpreters.planning import plan_program
from func.interpreters.program import Program

Run = Callable[..., tuple[Any, ...]]


def is_available() -> bool:
    """Whether LLVM compiles for this machine."""
    return machine.available()


def native_executor(program: Program, on_nan: Run | None = None) -> tuple[Run | None, Executor | None]:
    """An optimised program as a function of host arrays, and what compiled it if it is native as a whole. None, None
    where NumPy alone does as well."""
    fallback = _Fallback(program)
    try:
        executor = _compiled(program, fallback, on_nan)
    except NotNative:
        parts = segmented(program, foreign_equations(program), compiled)
    else:
        return (fallback, None) if executor is None else (executor.flat(), executor)
    return (None if parts is program else compile_plan(plan_program(parts, np, False), np)), None


def compiled(program: Program) -> Run:
    """A program of native equations as a function of host arrays."""
    fallback = _Fallback(program)
    executor = _compiled(program, fallback, None)
    return fallback if executor is None else executor.flat()


def _compiled(program: Program, fallback: Run, on_nan: Run | None) -> Executor | None:
    try:
        executor = Executor(translate(program, on_nan is not None), fallback, on_nan)
        executor.code  # noqa: B018  (compiled now, so that an error is met here)
    except machine.CompileError as error:
        warnings.warn(f"func.jit: native code could not be made, NumPy runs instead ({error})", stacklevel=2)
        return None
    return executor


class _Fallback:
    """The same by NumPy, planned when it is first needed: it raises NumPy's errors, and takes all that native code
    refuses."""

    def __init__(self, program: Program) -> None:
        self._program = program

    @functools.cached_property
    def run(self) -> Run:
        return compile_plan(plan_program(self._program, np, False), np)

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        return self.run(*args)
