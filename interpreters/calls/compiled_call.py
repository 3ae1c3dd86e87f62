"""Compiled calls: `program_call(*args, compiled=...)`, one primitive for a traced Program under every transform.

A `CompiledCall` is a Program and what is derived from it, each once: how to execute it, its forward and backward
programs for reverse mode, its primal and tangent programs for forward mode, its batched forms. A derivative is one
joint program, partitioned by what depends on the cotangents (or tangents).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from func.interpreters import drivers
from func.interpreters.calls.call_primitives import CallPrimitive
from func.interpreters.calls.partition import Linearized, Pulled
from func.interpreters.core import (
    ZERO,
    Array,
    Aval,
    Params,
    Shaped,
    Tracer,
    aval_of,
    is_inexact,
    snapshot,
    unboxed,
)
from func.interpreters.core.modes import NAN_SAFE
from func.interpreters.core.wiring import WIRING
from func.interpreters.grad import has_nan
from func.interpreters.primitives.structural.shapes import full_like
from func.interpreters.program.program import Equation, Program, Var
from func.interpreters.stage import DerivedStage, Stage

T = TypeVar("T")
BEST = "best"
"""The compiler of jitted functions that name none: native code where there is a compiler for it, else NumPy."""


class CompiledCall:
    """A Program and everything made of it. Compared by identity: it is a parameter of rows."""

    __slots__ = ("_halves", "_mapped", "_nan_safe_variant_of", "_runs", "compiler", "program")

    def __init__(
        self, program: Program, nan_safe_variant: Callable[[], CompiledCall] | None = None, compiler: Any = None
    ) -> None:
        self.program = program
        self.compiler = compiler
        self._nan_safe_variant_of = nan_safe_variant
        self._halves: dict[Any, Any] = {}
        self._mapped: dict[Any, CompiledCall] = {}
        self._runs: dict[Any, Any] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        other = self.nan_safe_variant()
        return _restored, (self.program, None if other is None else other.program, self.compiler)

    def plain(self) -> CompiledCall:
        """The same without the second look at NaN, which the code around it has."""
        found = self._halves.get("plain")
        if found is None:
            found = self._halves["plain"] = CompiledCall(self.program, None, self.compiler)
        return found

    def __repr__(self) -> str:
        return f"Staged({len(self.program.equations)} equations)"

    def __call__(self, *args: Array) -> tuple[Any, ...]:
        return program_call(*args, compiled=self)  # type: ignore[no-any-return]

    def run_on(self, *args: Array) -> tuple[Any, ...]:
        """The program's equations applied one by one, to arrays or traced values."""
        return self.program.run(args)

    @property
    def out_avals(self) -> tuple[Aval, ...]:
        """What the outputs will be."""
        return tuple([x.aval if type(x) is Var else aval_of(x) for x in self.program.outputs])

    @property
    def pulls(self) -> bool:
        """Whether pullbacks were staged inside."""
        return self._nan_safe_variant_of is not None

    def nan_safe_variant(self) -> CompiledCall | None:
        """The same function with pullbacks in which zero cotangents win, if it has any; made when first needed."""
        if self._nan_safe_variant_of is None:
            return None
        made = self._nan_safe_variant_of()
        self._nan_safe_variant_of = lambda: made
        return made

    def execute(self, xp: Any, args: Sequence[Array]) -> tuple[Any, ...]:
        """The outputs on concrete arrays. Where a gradient inside comes out as NaN, zeros are made to win."""
        run = self._runs.get(xp)
        return (self.executable(xp) if run is None else run).call(*args)  # type: ignore[no-any-return]

    def executable(self, xp: Any) -> Any:
        """The program for arrays of a backend, with what compiled it."""
        run = self._runs.get(xp)
        if run is None:
            run = self._runs[xp] = self._executor(xp)
        return run

    def donating(self, xp: Any, donated: frozenset[int]) -> Any:
        """The program for arrays of a backend, some of which it may overwrite; not kept here."""
        return self._executor(xp, donated)

    def _executor(self, xp: Any, donated: frozenset[int] = frozenset()) -> Any:
        on_nan = None if self._nan_safe_variant_of is None else functools.partial(self._nan_safe_variant, xp)
        return WIRING.make_executor(self.program, xp, self.compiler, donated, on_nan)

    def _nan_safe_variant(self, xp: Any, *args: Array) -> tuple[Any, ...]:
        other = self.nan_safe_variant()
        assert other is not None
        return other.execute(xp, args)

    def runner(self, xp: Any) -> Callable[..., tuple[Any, ...]]:
        """The program as a function of arrays of a backend."""
        return self.executable(xp).call  # type: ignore[no-any-return]

    def derived(self, program: Program, nan_safe_variant: Callable[[], CompiledCall] | None = None) -> CompiledCall:
        """A Staged of a program made from this one."""
        return CompiledCall(program, nan_safe_variant, self.compiler)

    def mapped(self, size: int, which: tuple[bool, ...]) -> CompiledCall:
        """The program on a leading batch axis of the arguments in `which`; all outputs have it."""
        key = size, which
        found = self._mapped.get(key)
        if found is None:

            def over_lanes(*args: Array) -> Sequence[Array]:
                outs, are_mapped = drivers.map_flat(self.run_on, size, which, args)
                return drivers.all_mapped(outs, are_mapped, size)

            avals = [
                Aval((size, *var.shape), var.dtype) if is_mapped else var.aval
                for var, is_mapped in zip(self.program.inputs, which, strict=True)
            ]
            program = drivers.stage_flat(over_lanes, avals, DerivedStage("vmap"))
            other = (
                None
                if self._nan_safe_variant_of is None
                else lambda: (self.nan_safe_variant() or self).mapped(size, which)
            )
            found = self._mapped[key] = self.derived(program, other)
        return found

    def linearized(self, active: tuple[bool, ...]) -> Linearized:
        """The known half and the tangent half, for tangents of the arguments in `active`."""
        found = self._halves.get(("jvp", active))
        if found is None:
            found = self._halves["jvp", active] = Linearized(self, active)
        return found

    def pulled(self, active: tuple[bool, ...]) -> Pulled:
        """The forward half and the backward half, for cotangents of the arguments in `active`."""
        found = self._halves.get(("vjp", active))
        if found is None:
            found = self._halves["vjp", active] = Pulled(self, active)
        return found


def _restored(program: Program, other: Program | None, compiler: Any) -> CompiledCall:
    return CompiledCall(program, None if other is None else (lambda: CompiledCall(other, None, compiler)), compiler)


def stage_closed(
    fun: Callable[..., Sequence[Array]], avals: Sequence[Aval], transform: str, example: Array = None
) -> tuple[CompiledCall, list[Array]]:
    """(Staged, captured): traced values of outer levels that `fun` closes over are additional leading inputs."""

    def trace() -> tuple[Program, bool]:
        stage = Stage(transform)
        program = drivers.stage_flat(fun, avals, stage, example)
        return program, stage.pulled

    return closed(trace)


def closed(trace: Callable[[], tuple[Program, bool]], compiler: Any = None) -> tuple[CompiledCall, list[Array]]:
    """What `trace` stages, a program and whether pullbacks are in it, as (Staged, captured).

    The form in which zero cotangents win is traced when it is needed, or at once where traced values are captured,
    which are out of use later.
    """
    program, pulled = trace()
    captured = _captured(program)

    def later() -> CompiledCall:
        return CompiledCall(under_guard(trace)[0], None, compiler)

    if not captured:
        return CompiledCall(program, later if pulled else None, compiler), []
    other = under_guard(trace)[0] if pulled else program
    captured |= _captured(other)
    made = CompiledCall(_with_inputs(other, captured), None, compiler)
    compiled = CompiledCall(_with_inputs(program, captured), (lambda: made) if pulled else None, compiler)
    return compiled, list(captured.values())


def _captured(program: Program) -> dict[Any, Array]:
    """The traced values among a program's constants."""
    return {_identity(value): value for value in program.constants.values() if type(value) is Tracer}


def _identity(value: Tracer) -> tuple[int, int, int]:
    return id(value.interpreter), id(value.value), id(value.attached)


def _with_inputs(program: Program, captured: dict[Any, Array]) -> Program:
    """The program with leading inputs in the place of its traced constants."""
    leading = {key: Var(aval_of(value)) for key, value in captured.items()}
    same = {var: leading[_identity(x)] for var, x in program.constants.items() if type(x) is Tracer}

    def renamed(x: Any) -> Any:
        return same.get(x, x) if type(x) is Var else x

    equations = [
        Equation(e.primitive, tuple(map(renamed, e.inputs)), e.params, e.outputs, e.line) for e in program.equations
    ]
    constants = {var: value for var, value in program.constants.items() if var not in same}
    return Program([*leading.values(), *program.inputs], equations, list(map(renamed, program.outputs)), constants)


def under_guard(trace: Callable[[], T]) -> T:
    """Trace with pullbacks in which zero cotangents win from the start."""
    token = NAN_SAFE.set(True)
    try:
        return trace()
    finally:
        NAN_SAFE.reset(token)


# --- the row ----------------------------------------------------------------------------------------------------


class ProgramCallPrimitive(CallPrimitive):
    """A call of a Staged. Its derived programs stand for its derivatives and its mapped forms."""

    __slots__ = ()

    def forward(self, primals: tuple[Array, ...], tangents: tuple[Any, ...], params: Params) -> Any:
        compiled = params["compiled"]
        active = _active(primals, tangents)
        if not any(active):
            return self(*primals, **params), ZERO
        given = [t for t, on in zip(tangents, active, strict=True) if on]
        outs, moved = compiled.linearized(active).run(primals, given)
        if compiled.pulls and _any_nan(outs):
            return compiled.nan_safe_variant().linearized(active).run(primals, given)
        return outs, moved

    def record(self, values: tuple[Array, ...], parents: Sequence[Shaped | None], params: Params) -> Any:
        compiled = params["compiled"]
        needs_cotangent = [ZERO if parent is None else parent for parent in parents]
        active = _active(values, needs_cotangent)
        values = tuple([x if on else snapshot(unboxed(x)) for x, on in zip(values, active, strict=True)])
        if not any(active):
            return self(*values, **params), None, None
        pulled = compiled.pulled(active)
        outs = pulled.forward(*values)
        if compiled.pulls and _any_nan(outs[: pulled.outputs]):
            pulled = compiled.nan_safe_variant().pulled(active)
            outs = pulled.forward(*values)
        count = pulled.outputs
        return outs[:count], PULLED, (pulled, values, outs[count:])


def _active(values: Sequence[Array], given: Sequence[Any]) -> tuple[bool, ...]:
    return tuple([one is not ZERO and is_inexact(aval_of(x).dtype) for x, one in zip(values, given, strict=True)])


def _any_nan(outs: Sequence[Any]) -> bool:
    return any([has_nan(out) for out in outs])


class PulledProgramRule:
    """The pullback of a program_call."""

    name = "program_call"

    def pull(self, ct: Any, parents: Sequence[Any], saved: Any, params: Params) -> Sequence[Any]:
        pulled, _, residuals = saved
        return _spread(pulled, pulled.not_nan_safe(residuals, _all_cotangents(pulled, ct)))

    def pull_nan_safe(self, ct: Any, parents: Sequence[Any], saved: Any, params: Params) -> Sequence[Any]:
        pulled, values, _ = saved
        return _spread(pulled, pulled.nan_safe(values, _all_cotangents(pulled, ct)))

    def __reduce__(self) -> str:
        return "PULLED"


PULLED = PulledProgramRule()


def _all_cotangents(pulled: Pulled, ct: dict[int, Any]) -> list[Any]:
    example = next(iter(ct.values()))
    avals = pulled.compiled.out_avals
    return [ct[i] if i in ct else full_like(example, 0, avals[i].shape, avals[i].dtype) for i in pulled.inexact]


def _spread(pulled: Pulled, contribution: Sequence[Any]) -> list[Any]:
    rest = iter(contribution)
    return [next(rest) if on else ZERO for on in pulled.active]


def _call_impl(xp: Any, *args: Array, compiled: CompiledCall) -> tuple[Any, ...]:
    return compiled.execute(xp, args)


def _call_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Any:
    return params["compiled"].mapped(size, tuple(batched))(*args)


def _call_transpose(ct: Any, *operands: Any, compiled: CompiledCall) -> tuple[Any, ...]:
    return drivers.transpose_flat(compiled.run_on, operands, ct)


program_call = ProgramCallPrimitive(
    "program_call",
    _call_impl,
    aval=lambda *avals, compiled: compiled.out_avals,
    batch=_call_batch,
    transpose=_call_transpose,
    multiple=True,
)
"""The outputs of a staged program."""
