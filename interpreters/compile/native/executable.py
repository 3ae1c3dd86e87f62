"""Native programs that write some of their outputs into the memory of arguments.

Programs compiled by LLVM: as a whole where every equation is native, else part by part between calls of NumPy.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from func.backends.llvm import machine
from func.backends.llvm.call_stubs.executor import Executor
from func.backends.loops.kernels import NativeProgram
from func.interpreters.compile.execution import compile_source
from func.interpreters.compile.native.native_parts import foreign_equations, pieces, segmented
from func.interpreters.compile.native.rules import NotNative, RuleError
from func.interpreters.compile.native.translate import translate
from func.interpreters.core.source import Line, user_line
from func.interpreters.nan_safe import checked
from func.interpreters.program.program import Equation, Program


class Whole(tuple[Any, ...]):
    """All outputs, in memory of their own."""

    __slots__ = ()


def with_all(run: Run) -> Run:
    """A function whose outputs are all of those of a program, as those of native code are not."""
    return lambda *args: Whole(run(*args))


def completed(run: Run, program: NativeProgram) -> Run:
    """All outputs of a program whose code, `run`, makes only those that are not written into arguments."""
    total = len(program.outputs) + len(program.written)
    written = [program.written.get(place) for place in range(total)]

    def call(*args: Any) -> tuple[Any, ...]:
        outs = run(*args)
        if type(outs) is Whole:
            return outs
        fresh = iter(outs)
        return tuple([next(fresh) if one is None else args[one.input].reshape(one.shape) for one in written])

    return call


Run = Callable[..., tuple[Any, ...]]
ROLLED = 64
"""Equations of the shortest loop that is rolled up: `rolling.MANY`."""
FIRST, MOST_TOLD = 3, 300
"""So many equations and letters of an error stand in a warning."""


def is_available() -> bool:
    """Whether LLVM compiles for this machine."""
    return machine.available()


def compile_native(
    program: Program, fast: bool = False, donated: frozenset[int] = frozenset(), nan_safe: Run | None = None
) -> tuple[Run | None, Executor | None, Program | None]:
    """An optimised program as a function of host arrays; what compiled it, if it is native as a whole; the program of
    its parts, if it was cut. All None where NumPy alone does as well. Outputs are written into the memory of inputs in
    `donated` where that is possible: `Executor.overwrites`."""
    compiled = _Compiler(fast)
    program = _rolled(program)
    try:
        return *compiled.whole(program, donated, nan_safe), None
    except NotNative:
        parts = _cut(program, compiled)
    if parts is None or all([piece.native is None for piece in pieces(parts)]):
        return None, None, None
    return compile_source(parts, np), None, parts


def _rolled(program: Program) -> Program:
    """The program with unrolled loops rolled up again; what does so is imported for programs with room for one."""
    if len(program.equations) < ROLLED:
        return program
    from func.interpreters.compile.passes.reroll.reroll import reroll

    return reroll(program)


def _cut(program: Program, compiled: _Compiler) -> Program | None:
    """The program of native parts and others, None where its rules fail."""
    try:
        foreign = foreign_equations(program)
    except Exception as error:
        compiled.warn(program, error)
        return None
    return segmented(program, foreign, compiled.part)


class _Compiler:
    """Compiles one program or its parts. The first failure is told; NumPy runs what fails."""

    def __init__(self, fast: bool) -> None:
        self._fast = fast
        self._has_warned = False

    def whole(
        self, program: Program, donated: frozenset[int] = frozenset(), nan_safe: Run | None = None
    ) -> tuple[Run, Executor | None]:
        """(function, what compiled it). Raises NotNative."""
        fallback = _Fallback(program)
        run_fallback = checked(fallback, nan_safe)
        try:
            made = translate(program, nan_safe is not None, donated)
            made.fast = self._fast
            if made.written:
                executor = Executor(made, with_all(run_fallback), nan_safe and with_all(nan_safe))
                return completed(executor.flat_stub(), made), executor
            executor = Executor(made, run_fallback, nan_safe)
            executor.code  # noqa: B018  (compiled now, so that an error is met here)
            return executor.flat_stub(), executor
        except NotNative:
            raise
        except Exception as error:
            self.warn(program, error)
            return fallback, None

    def part(self, program: Program) -> tuple[Run, Executor | None]:
        """The same for a part, which NumPy runs where it is not native after all."""
        try:
            return self.whole(program)
        except NotNative:
            return _Fallback(program), None

    def warn(self, program: Program, error: Exception) -> None:
        """Say once that there is no native code, why, and for what."""
        if self._has_warned:
            return
        self._has_warned = True
        cause = error.__cause__ or error
        reason = f"{type(cause).__name__}: {str(cause).strip()[:MOST_TOLD]}".rstrip(": ")
        if isinstance(error, RuleError):
            where = f"at {_described(error.equation)}"
        else:
            first = [_described(equation) for equation in program.equations[:FIRST]]
            where = "in a program that begins with " + "; ".join(first)
        message = f"func.jit: native code could not be made, so NumPy runs instead ({reason})\n  {where}"
        line = user_line() or Line(__file__, 1, "")
        warnings.warn_explicit(message, RuntimeWarning, line.file, line.number)


def _described(equation: Equation) -> str:
    """The row of an equation, and the user's line that it comes from."""
    return equation.primitive.name if equation.line is None else f"{equation.primitive.name}, {equation.line}"


class _Fallback:
    """The same by NumPy, planned when it is first needed: it raises NumPy's errors, and takes all that native code
    refuses."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._run: Run | None = None

    @property
    def run(self) -> Run:
        """The planned function."""
        if self._run is None:
            self._run = compile_source(self._program, np)
        return self._run

    @property
    def text(self) -> str:
        """The source that runs."""
        return str(getattr(self.run, "text", ""))

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        return self.run(*args)
