"""Native programs as functions of host arrays: compiled as a whole, or in native parts between calls of NumPy.

Where an output is written into the memory of a donated input, native code does not return it: `with_aliased` puts it
back among the outputs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from func.backends.llvm import machine
from func.backends.llvm.call_stubs.native_executable import NativeExecutable
from func.backends.loops.kernels import NativeProgram
from func.interpreters.compile.execution import compile_source
from func.interpreters.compile.native.failures import warn_of_failure
from func.interpreters.compile.native.native_parts import Run, foreign_equations, pieces, with_native_parts
from func.interpreters.compile.native.rules import NotNative
from func.interpreters.compile.native.translate import translate
from func.interpreters.compile.recomputation import is_arranged
from func.interpreters.nan_safe import checked
from func.interpreters.program.program import Program

REROLLED = 64
"""Equations of the shortest loop that is re-rolled: `reroll.MANY`."""


class AllOutputs(tuple[Any, ...]):
    """All outputs of a program, also those that native code writes into inputs."""

    __slots__ = ()


def returning_all(run: Run) -> Run:
    """A function of NumPy that marks its outputs as all of them."""
    return lambda *args: AllOutputs(run(*args))


def with_aliased(run: Run, program: NativeProgram) -> Run:
    """All outputs of a program, whose code `run` returns only those that are not written into inputs."""
    total = len(program.outputs) + len(program.aliased)
    aliases = [program.aliased.get(place) for place in range(total)]

    def call(*args: Any) -> tuple[Any, ...]:
        outs = run(*args)
        if type(outs) is AllOutputs:
            return outs
        fresh = iter(outs)
        return tuple([next(fresh) if alias is None else args[alias.input].reshape(alias.shape) for alias in aliases])

    return call


def is_available() -> bool:
    """Whether LLVM compiles for this machine."""
    return machine.available()


def compile_native(
    program: Program, fast: bool = False, donated: frozenset[int] = frozenset(), nan_safe: Run | None = None
) -> tuple[Run | None, NativeExecutable | None, Program | None]:
    """An optimised program as a function of host arrays; what compiled it, if it is native as a whole; the program of
    its parts, if it was cut. All None where NumPy alone does as well. Outputs are written into the memory of inputs in
    `donated` where that is possible: `NativeExecutable.overwrites`."""
    compiler = _Compiler(fast)
    program = rerolled(program)
    try:
        return *compiler.whole(program, donated, nan_safe), None
    except NotNative:
        parts = _in_parts(program, compiler)
    if parts is None or all([piece.native is None for piece in pieces(parts)]):
        return None, None, None
    return compile_source(parts, np), None, parts


def rerolled(program: Program) -> Program:
    """The program with unrolled loops as loops again; itself where it was arranged to need less memory."""
    if len(program.equations) < REROLLED or is_arranged(program):
        return program
    # imported for programs with room for a loop only, since a first call waits for it
    from func.interpreters.compile.passes.reroll.reroll import reroll

    return reroll(program)


def _in_parts(program: Program, compiler: _Compiler) -> Program | None:
    """The program of native parts and others, None where its rules fail."""
    try:
        foreign = foreign_equations(program)
    except Exception as error:
        compiler.warn(program, error)
        return None
    return with_native_parts(program, foreign, compiler.part)


class _Compiler:
    """Compiles one program or its parts. It warns of the first failure; NumPy runs what fails."""

    def __init__(self, fast: bool) -> None:
        self._fast = fast
        self._has_warned = False

    def whole(
        self, program: Program, donated: frozenset[int] = frozenset(), nan_safe: Run | None = None
    ) -> tuple[Run, NativeExecutable | None]:
        """(function, what compiled it). Raises NotNative."""
        fallback = _Fallback(program)
        run_fallback = checked(fallback, nan_safe)
        try:
            native = translate(program, nan_safe is not None, donated)
            native.fast = self._fast
            if native.aliased:
                executable = NativeExecutable(native, returning_all(run_fallback), nan_safe and returning_all(nan_safe))
                return with_aliased(executable.flat_stub(), native), executable
            executable = NativeExecutable(native, run_fallback, nan_safe)
            executable.code  # noqa: B018  (compiled now, so that an error is met here)
            return executable.flat_stub(), executable
        except NotNative:
            raise
        except Exception as error:
            self.warn(program, error)
            return fallback, None

    def part(self, program: Program) -> tuple[Run, NativeExecutable | None]:
        """(function, what compiled it) for a part, which NumPy runs where it is not native after all."""
        try:
            return self.whole(program)
        except NotNative:
            return _Fallback(program), None

    def warn(self, program: Program, error: Exception) -> None:
        """Warn once that there is no native code: the reason, and the equation."""
        if self._has_warned:
            return
        self._has_warned = True
        warn_of_failure(program, error, "native code could not be made, so NumPy runs instead")


class _Fallback:
    """The program by NumPy, planned when it is first needed: it raises NumPy's errors, and takes all arguments that
    native code refuses."""

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
