"""The compiled forms of a jitted function: the Program, its kernels, LLVM IR, assembly, generated source."""

from __future__ import annotations

import functools
import importlib
import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from func.backends import namespace_of
from func.interpreters.calls.compiled_call import CompiledCall
from func.interpreters.program.program import Program

if TYPE_CHECKING:
    from func.interpreters.compile.execution import Executable


class Lowered:
    """The result of `jitted.lower(*args)`: its text names the code that runs, its attributes are the forms of the code.

    Each attribute is computed at its first use. For a program in parts it contains the texts of all parts in order.

    Example:
        >>> import numpy as np, func
        >>> lowered = func.jit(lambda x: np.sin(x) * x, compiler="numpy").lower(np.ones(3))
        >>> "np_sin(x0" in lowered
        True
        >>> lowered.program
        program(a:f64[3]) {
          b:f64[3] = sin a
          c:f64[3] = multiply b a
          return c
        }
    """

    def __init__(self, compiled: CompiledCall, executable: Executable, guards: Sequence[str] = ()) -> None:
        self._compiled = compiled
        self._executable = executable
        self.guards = tuple(guards)
        """The values that Python asked for, each with its answer: the program is the path of these answers."""

    @functools.cached_property
    def program(self) -> Program:
        """The Program as executed: calls inlined, optimised."""
        from func.interpreters.compile.inlining import prepare_call  # here, for the start-up time

        return prepare_call(self._compiled)

    @functools.cached_property
    def source(self) -> str | None:
        """The generated source around native parts, or of everything if nothing is native; None if everything is."""
        if self._executable.native is not None:
            return None
        return str(getattr(self._executable.call, "text", "")) or None

    @functools.cached_property
    def kernels(self) -> str | None:
        """The kernels with their loops and scalar code, before compilation."""
        return self._joined(lambda native: _text("listing")(native.program), "")

    @functools.cached_property
    def llvm_ir(self) -> str | None:
        """LLVM IR before LLVM's passes."""
        return self._joined(lambda native: str(native.module()), ";")

    @functools.cached_property
    def optimized_ir(self) -> str | None:
        """LLVM IR after LLVM's passes."""
        return self._joined(lambda native: native.code.ir(), ";")

    @functools.cached_property
    def assembly(self) -> str | None:
        """The machine's assembly."""
        return self._joined(lambda native: native.code.assembly(), "#")

    def _joined(self, text: Callable[[Any], str], mark: str) -> str | None:
        """A text of all native parts, with the number of each if there are several; None if there is none."""
        parts = parts_of(self._executable)
        texts = [
            text(native) if len(parts) == 1 else f"{mark} part {number}".strip() + "\n" + text(native)
            for number, (_, native) in enumerate(parts)
            if native is not None
        ]
        return "\n".join(texts) if texts else None

    def __str__(self) -> str:
        words = [*self.guards, str(self.program)]
        parts = parts_of(self._executable)
        for number, (program, native) in enumerate(parts):
            place = f", part {number}" if len(parts) > 1 else ""
            if native is not None:
                text = textwrap.indent(_text("summary")(native.program), "  ")
                words.append(f"native code{place}:\n{text}")
            elif len(parts) > 1:
                words.append(f"NumPy{place}:\n  {rows_of(program)}")
        if self.source is not None:
            words.append(f"generated source:\n{textwrap.indent(self.source, '  ')}")
        return "\n".join(words)

    def __repr__(self) -> str:
        return str(self)

    def __contains__(self, text: str) -> bool:
        return text in str(self)


def executable_of(compiled: CompiledCall, leaves: Sequence[Any], donated: frozenset[int] = frozenset()) -> Executable:
    """The executable of a program on arrays like these."""
    xp = namespace_of(tuple(leaves))
    executable: Executable = compiled.executable(xp, donated if xp is np else frozenset())
    return executable


def parts_of(executable: Executable) -> list[tuple[Program | None, Any]]:
    """The parts of a program in order: (program, its native executable or None); only the latter for a program without
    cuts.
    """
    if executable.parts is None:
        return [(None, executable.native)]
    native_parts = importlib.import_module("func.interpreters.compile.native.native_parts")
    return [(piece.program, piece.native) for piece in native_parts.pieces(executable.parts)]


def rows_of(program: Program | None) -> str:
    """The rows of a program's equations, in order, each once."""
    equations = () if program is None else program.equations
    return ", ".join(dict.fromkeys([equation.primitive.name for equation in equations]))


def _text(name: str) -> Callable[[Any], str]:
    """A function of the listing of native programs, imported at its first use."""
    function: Callable[[Any], str] = getattr(importlib.import_module("func.backends.llvm.report.listing"), name)
    return function
