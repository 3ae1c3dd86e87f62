"""A Program as it is executed, by whatever executes it.

From a Program to a callable: calls inlined, passes, a plan, generated code.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from func.interpreters.compile.inlining import inline
from func.interpreters.compile.passes import optimize
from func.interpreters.core.wiring import WIRING
from func.interpreters.grad import has_nan
from func.interpreters.program.program import Program


def prepared(program: Program) -> Program:
    """The program without calls, optimised."""
    return optimize(inline(program))


NATIVE = ("llvm", "best")
"""Names of compilers that make native code where they can; None and "numpy" generate NumPy source."""

LONG = 1000
"""Equations from which a derivative's unrolled loops are rolled up before the derivative is partitioned."""


def reroll_loops(program: Program, compiler: str | None) -> Program:
    """A long program with its unrolled loops as scans, if native code will run it: a scan hands on stacks of
    residuals, straight code thousands of them."""
    if len(program.equations) < LONG or (compiler or "").partition("+")[0] not in NATIVE:
        return program
    from func.interpreters.compile.passes.reroll.reroll import reroll  # start-up time: few programs are long

    return reroll(prepared(program))


class Executable(NamedTuple):
    """A program that can be called. `native` is what compiled it whole to native code, if something did; `parts` is the
    program with a `native_call` for each of its native parts, if it was cut."""

    call: Callable[..., tuple[Any, ...]]
    native: Any = None
    parts: Program | None = None
    overwrites: frozenset[int] = frozenset()
    """The inputs whose memory may have something else in it after a call."""

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        return self.call(*args)


def make_executor(
    program: Program,
    xp: Any,
    compiler: str | None,
    donated: frozenset[int] = frozenset(),
    on_nan: Callable[..., tuple[Any, ...]] | None = None,
) -> Executable:
    """The program as a function of arrays of a backend, which may overwrite the inputs in `donated`. Where an output
    has a NaN, `on_nan` gives the outputs instead; it needs the inputs, which only native code then overwrites."""
    ready = prepared(program)
    name, _, option = (compiler or "").partition("+")
    if xp is np and name in NATIVE:
        made = _native(ready, on_nan, option == "fast", donated)
        if made is not None:
            return made
    if on_nan is not None:
        donated = frozenset()
    return Executable(watched(source_executor(ready, xp, donated), on_nan), overwrites=donated)


def source_executor(program: Program, xp: Any, donated: frozenset[int] = frozenset()) -> Callable[..., tuple[Any, ...]]:
    """An optimised program as generated source. What makes it is imported when first needed."""
    from func.backends.source.numpy_source import compile_plan
    from func.interpreters.compile.planning import plan_program

    return compile_plan(plan_program(program, xp, xp is not np, donated=donated), xp)


def watched(
    run: Callable[..., tuple[Any, ...]], on_nan: Callable[..., tuple[Any, ...]] | None
) -> Callable[..., tuple[Any, ...]]:
    """A function whose outputs are looked through for NaN."""
    if on_nan is None:
        return run

    def look(*args: Any) -> tuple[Any, ...]:
        outs = run(*args)
        return on_nan(*args) if any([has_nan(out) for out in outs]) else outs

    look.text = getattr(run, "text", "")  # type: ignore[attr-defined]
    return look


def _native(program: Program, on_nan: Any, fast: bool, donated: frozenset[int]) -> Executable | None:
    """Native code for host arrays, where there is a compiler for it."""
    if importlib.util.find_spec("llvmlite") is None:
        return None
    native = importlib.import_module("func.interpreters.compile.native.executable")
    if not native.is_available():
        return None
    call, executor, parts = native.native_executor(program, on_nan, fast, donated)
    if executor is None and call is not None:
        call = watched(call, on_nan)
    if call is None:
        return None
    return Executable(call, executor, parts, frozenset() if executor is None else executor.overwrites)


WIRING.make_executor = make_executor
WIRING.reroll_loops = reroll_loops
