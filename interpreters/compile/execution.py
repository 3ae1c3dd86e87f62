"""From a Program to a callable: inline calls, run the passes, generate native code or NumPy source."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from func.backends import namespace_of
from func.backends.devices import DeviceError
from func.interpreters.compile.inlining import inline, optimized, prepare_program
from func.interpreters.core.wiring import WIRING
from func.interpreters.nan_safe import checked
from func.interpreters.program.program import Program
from func.interpreters.program.translations import PLAIN, TRANSLATIONS, validated

NATIVE = ("llvm", "best")
"""Names of compilers that make native code if they can; None and "numpy" generate NumPy source."""
ON_DEVICE = ("cuda", "best")
"""Names of compilers that make kernels for arrays of a device."""
LONG = 1000
"""From this number of equations on, the unrolled loops of a derivative are re-rolled before partition."""


_is_expected = False


def expect_programs(compiler: str | None) -> None:
    """Begin to load the common parts of all code before a trace, if native code will follow and none exists yet."""
    global _is_expected
    if _is_expected or (compiler or "").partition("+")[0] not in NATIVE or importlib.util.find_spec("llvmlite") is None:
        return
    _is_expected = True
    if importlib.import_module("func.backends.llvm.host").known() is None:
        importlib.import_module("func.backends.llvm.preload").begin()


def reroll_loops(program: Program, compiler: str | None) -> Program:
    """A long program with its unrolled loops as scans, if native code will run it.

    The residuals of a scan are a few stacked arrays, those of straight code are thousands. Messages keep their order.
    """
    is_compiled = (compiler or "").partition("+")[0] in (*NATIVE, *ON_DEVICE)
    if len(program.equations) < LONG or program.communicates or not is_compiled:
        return program
    from func.interpreters.compile.passes.reroll.reroll import reroll  # start-up time: few programs are long

    return validated(reroll)(prepare_program(program))


class Executable(NamedTuple):
    """A compiled program."""

    call: Callable[..., tuple[Any, ...]]
    native: Any = None
    """The native code, where the whole program is native."""
    parts: Program | None = None
    """The program with a `native_call` for each native part, if only parts are native."""
    overwrites: frozenset[int] = frozenset()
    """The inputs whose memory a call may overwrite."""

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        return self.call(*args)


def compile_program(
    program: Program,
    xp: Any,
    compiler: str | None,
    donated: frozenset[int] = frozenset(),
    nan_safe: Callable[..., tuple[Any, ...]] | None = None,
) -> Executable:
    """The program compiled for arrays of a backend; it may overwrite the inputs in `donated`.

    With constants on a device it is for that device, also if all inputs are numbers of the host.
    Where an output has a NaN, `nan_safe` computes the outputs from the inputs. Only native code then overwrites inputs.
    """
    if xp is PLAIN:
        from func.interpreters.program.plain_runs import plain_run  # for validation alone

        return Executable(checked(plain_run(program), nan_safe))
    executable = _compiled(program, xp, compiler, donated, nan_safe)
    if TRANSLATIONS.are_validated and xp is np:
        _check_code(program, compiler, donated, executable, nan_safe)
    return executable


def _compiled(
    program: Program,
    xp: Any,
    compiler: str | None,
    donated: frozenset[int],
    nan_safe: Callable[..., tuple[Any, ...]] | None,
) -> Executable:
    name, *options = (compiler or "").split("+")
    prepared = Prepared(program, xp)
    xp = prepared.xp
    if xp is np and name in NATIVE:
        executable = _compile_native(prepared, frozenset(options), donated, nan_safe)
        if executable is not None:
            return executable
    if xp is np and name == "cuda":
        raise DeviceError(
            "func.jit: compiler='cuda' is for arrays of a device, and the arguments lie on the host\nMove them there "
            "with cupy.asarray, or leave compiler out: arguments on a device are compiled for it, others for the "
            "processor."
        )
    if xp is not np and name in ON_DEVICE and getattr(xp, "device_of", None) is not None:
        return Executable(*WIRING.compile_for_device(prepared.optimized, xp, frozenset(options), nan_safe, donated))
    if nan_safe is not None or xp is not np:
        donated = frozenset()
    return Executable(checked(compile_source(prepared.optimized, xp, donated), nan_safe), overwrites=donated)


def _check_code(
    program: Program,
    compiler: str | None,
    donated: frozenset[int],
    executable: Executable,
    nan_safe: Callable[..., tuple[Any, ...]] | None,
) -> None:
    """Raise ValidationError if code computes something other than its program."""
    from func.interpreters.program.plain_runs import Undefined, plain_run  # for validation alone

    text = "NumPy source" if executable.native is None and executable.parts is None else "native code"

    def translated(other: Program) -> Callable[..., tuple[Any, ...]]:
        return in_order(_compiled(other, np, compiler, donated, None).call)

    def in_order(run: Callable[..., Any]) -> Callable[..., Any]:
        """Pass arrays in C order alone to code that overwrites arguments."""
        return (lambda *args: run(*[x.copy() if type(x) is np.ndarray else x for x in args])) if donated else run

    def reference(other: Program) -> Callable[..., Any]:
        return checked(plain_run(other), None if nan_safe is None else undefined)

    def undefined(*args: Any) -> Any:
        """Inputs that would make the NaN-safe variant run show nothing."""
        raise Undefined

    WIRING.check_translation(
        text, program.pruned(), translated, in_order(executable.call), reference=reference, keeps_overflow=True
    )


class Prepared:
    """A traced program on its way to code: inlined at once, optimized at the first request."""

    def __init__(self, program: Program, xp: Any) -> None:
        self.inlined = inline(program)
        self.xp = namespace_of(tuple(self.inlined.constants.values())) if xp is np else xp
        self._optimized: Program | None = None

    @property
    def optimized(self) -> Program:
        """The program for execution."""
        if self._optimized is None:
            self._optimized = optimized(self.inlined, self.xp is not np)
        return self._optimized


def compile_source(program: Program, xp: Any, donated: frozenset[int] = frozenset()) -> Callable[..., tuple[Any, ...]]:
    """An optimised program as generated source for arrays of a backend."""
    from func.backends.source.numpy_source import compile_plan  # start-up time: native programs need no plan
    from func.interpreters.compile.planning import plan_program

    return compile_plan(plan_program(program, xp, xp is not np, donated=donated), xp)


def _compile_native(
    program: Prepared,
    options: frozenset[str],
    donated: frozenset[int],
    nan_safe: Callable[..., tuple[Any, ...]] | None,
) -> Executable | None:
    """Native code for host arrays; None without a compiler for it, or if NumPy alone is as fast."""
    if importlib.util.find_spec("llvmlite") is None:
        return None
    call, code, parts = WIRING.compile_native(program, "fast" in options, donated, nan_safe, "eager" in options)
    if call is None:
        return None
    if code is None:
        return Executable(checked(call, nan_safe), None, parts)
    return Executable(call, code, parts, code.overwrites)
