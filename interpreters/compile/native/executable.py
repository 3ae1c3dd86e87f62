"""Native programs as functions of host arrays: compiled as a whole, or in native parts between calls of NumPy.

Native code does not return an output that it writes into the memory of a donated input: `with_aliased` puts it back
among the outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from func.backends.llvm import machine
from func.backends.llvm.call_stubs.native_executable import NativeExecutable
from func.backends.loops.interface import Interface
from func.interpreters.compile.execution import LONG, Prepared, compile_source
from func.interpreters.compile.native import stored_programs
from func.interpreters.compile.native.not_native import NotNative, warn_of_failure
from func.interpreters.core.errors import ValidationError
from func.interpreters.nan_safe import checked
from func.interpreters.program.program import Program
from func.interpreters.program.translations import validated

if TYPE_CHECKING:
    from func.backends.loops.kernels import NativeProgram

Run: TypeAlias = Callable[..., tuple[Any, ...]]

REROLLED = 64
"""Equations of the shortest loop to re-roll: `reroll.MANY`."""


class AllOutputs(tuple[Any, ...]):
    """All outputs of a program, also those that native code writes into inputs."""

    __slots__ = ()


def returning_all(run: Run) -> Run:
    """A function of NumPy, marked: it returns all outputs."""
    return lambda *args: AllOutputs(run(*args))


def with_aliased(run: Run, interface: Interface) -> Run:
    """All outputs of a program; its code `run` does not return those that it writes into inputs."""
    if not interface.aliased:
        return run
    total = len(interface.outputs) + len(interface.aliased)
    aliases = [interface.aliased.get(place) for place in range(total)]

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
    prepared: Prepared,
    fast: bool = False,
    donated: frozenset[int] = frozenset(),
    nan_safe: Run | None = None,
    eager: bool = False,
) -> tuple[Run | None, NativeExecutable | None, Program | None]:
    """(a program as a function of host arrays, its code if native as a whole, the program of its parts if cut).

    All are None without a compiler, or if NumPy alone is as fast. The code writes outputs into the memory of inputs in
    `donated` if possible: `NativeExecutable.overwrites`. A pass of `eager` code is native as a whole, except for large
    products of NumPy, or not at all."""
    if not is_available():
        return None, None, None
    if eager:
        from func.interpreters.compile.native.numpy_products import in_turns, large_products  # start-up time

        products = large_products(prepared.optimized)
        turns = in_turns(prepared.optimized, products, _Compiler(fast).part) if products else None
        if turns is not None:
            return turns, None, turns.program
    key = stored_programs.key_of(prepared.inlined, fast, donated, nan_safe is not None)
    stored = None if key is None else stored_programs.load(key, prepared.inlined)
    if stored is not None:
        executable = _loaded(stored, prepared, fast, donated, nan_safe)
        if executable is not None:
            return with_aliased(executable.flat_stub(), executable.interface), executable, None
    if key is not None and not stored_programs.is_cut(key):
        from func.backends.llvm import preload  # start-up time: a program on disk needs no LLVM

        preload.begin()
    compiler = _Compiler(fast)
    program = with_loops(prepared)
    try:
        run, native = compiler.whole(program, donated, nan_safe)
    except NotNative:
        if eager:
            return None, None, None
        if key is not None:
            stored_programs.store_cut(key)
        parts = _in_parts(program, compiler)
    else:
        if native is not None and key is not None:
            stored_programs.store(key, native.interface, native.code.digest, prepared.inlined)
        return run, native, None
    if parts is None or all([piece.native is None for piece in _pieces(parts)]):
        return None, None, None
    return compile_source(parts, np), None, parts


def _loaded(
    stored: tuple[Interface, str],
    prepared: Prepared,
    fast: bool,
    donated: frozenset[int],
    nan_safe: Run | None,
) -> NativeExecutable | None:
    """The native code of an entry on disk; None without its object code. Kernels and NumPy's code are made at their
    first use."""
    interface, code = stored

    def program() -> NativeProgram:
        return _translated(with_loops(prepared), fast, donated, nan_safe is not None)

    run = checked(_Fallback(lambda: with_loops(prepared)), nan_safe)
    executable = _executable(program, run, nan_safe, interface)
    return executable if executable.load(code) else None


def _executable(
    program: NativeProgram | Callable[[], NativeProgram], run: Run, nan_safe: Run | None, interface: Interface
) -> NativeExecutable:
    """The compiler and the caller of a native program, whose results `run` computes with NumPy."""
    if interface.aliased:
        return NativeExecutable(program, returning_all(run), nan_safe and returning_all(nan_safe), interface)
    return NativeExecutable(program, run, nan_safe, interface)


def _translated(program: Program, fast: bool, donated: frozenset[int], is_checked: bool) -> NativeProgram:
    """An optimized program as kernels. Raises NotNative."""
    # start-up time: a program on disk needs no rules
    from func.interpreters.compile.native.translate import translate

    native = translate(program, is_checked, donated)
    native.fast = fast
    return native


def _pieces(parts: Program) -> list[Any]:
    from func.interpreters.compile.native.native_parts import pieces  # start-up time

    return pieces(parts)


def with_loops(prepared: Prepared) -> Program:
    """The optimized program with unrolled loops as loops again.

    A long program is searched for loops before most passes too, which then run on one step in the place of all.
    """
    program = prepared.inlined
    if len(program.equations) < LONG or program.communicates:
        return rerolled(prepared.optimized)
    from func.interpreters.compile.passes import clean, optimize  # start-up time

    return rerolled(optimize(rerolled(clean(program))))


def rerolled(program: Program) -> Program:
    """The program with unrolled loops as loops again.

    The program itself if it was arranged to need less memory, or exchanges messages, whose order loops would change.
    """
    if len(program.equations) < REROLLED or program.communicates:
        return program
    # imported only for programs with room for a loop, since a first call waits for it
    from func.interpreters.compile.recomputation import is_arranged

    if is_arranged(program):
        return program
    from func.interpreters.compile.passes.reroll.reroll import reroll  # start-up time

    return validated(reroll)(program)


def _in_parts(program: Program, compiler: _Compiler) -> Program | None:
    """The program of native parts and others, None where its rules fail."""
    from func.interpreters.compile.native.native_parts import foreign_equations, with_native_parts  # start-up time

    try:
        foreign = foreign_equations(program)
    except ValidationError:
        raise
    except Exception as error:
        compiler.warn(program, error)
        return None
    return with_native_parts(program, foreign, compiler.part)


class _Compiler:
    """Compiles one program or its parts. It warns of the first failure; NumPy runs parts that fail."""

    def __init__(self, fast: bool) -> None:
        self._fast = fast
        self._has_warned = False

    def whole(
        self, program: Program, donated: frozenset[int] = frozenset(), nan_safe: Run | None = None
    ) -> tuple[Run, NativeExecutable | None]:
        """(function, its compiled code). Raises NotNative."""
        fallback = _Fallback(lambda: program)
        try:
            native = _translated(program, self._fast, donated, nan_safe is not None)
            executable = _executable(native, checked(fallback, nan_safe), nan_safe, native.interface)
            executable.code  # noqa: B018  (compiled now, so that an error appears here)
            return with_aliased(executable.flat_stub(), native.interface), executable
        except (NotNative, ValidationError):
            raise
        except Exception as error:
            self.warn(program, error)
            return fallback, None

    def part(self, program: Program) -> tuple[Run, NativeExecutable | None]:
        """(function, its compiled code) for a part, which NumPy runs if it is not native after all."""
        try:
            return self.whole(program)
        except NotNative:
            return _Fallback(lambda: program), None

    def warn(self, program: Program, error: Exception) -> None:
        """Warn once that there is no native code: the reason, and the equation."""
        if self._has_warned:
            return
        self._has_warned = True
        warn_of_failure(program, error, "native code could not be made, so NumPy runs instead")


class _Fallback:
    """The program by NumPy, planned at its first use: it raises NumPy's errors, and takes all arguments that native
    code rejects."""

    def __init__(self, program: Callable[[], Program]) -> None:
        self._program = program
        self._run: Run | None = None

    @property
    def run(self) -> Run:
        """The planned function."""
        if self._run is None:
            self._run = compile_source(self._program(), np)
        return self._run

    @property
    def text(self) -> str:
        """The source that runs."""
        return str(getattr(self.run, "text", ""))

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        return self.run(*args)
