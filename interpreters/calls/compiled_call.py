"""Compiled calls: `program_call(*args, compiled=...)`, one primitive for a traced Program under every transform.

A `CompiledCall` is a Program with its derived forms: executables, partitions for forward and reverse mode, batched
forms, a NaN-safe variant. Each is made once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, TypeVar

from func.interpreters import core, drivers
from func.interpreters.calls.call_primitives import CallPrimitive, CallPullback
from func.interpreters.calls.captured_values import noticing_random_numbers
from func.interpreters.calls.partition import (
    Partition,
    active_arguments,
    dense_cotangents,
    expand,
    output_avals,
    partition_jvp,
    partition_vjp,
    select,
)
from func.interpreters.calls.series_calls import SeriesForm, active_series, call_with_series, present
from func.interpreters.calls.validated_calls import check_batch, validated_partition
from func.interpreters.core import ZERO, Array, Aval, Params, Shaped, Tracer
from func.interpreters.core.modes import tracing_body
from func.interpreters.core.parameters import COMPILED
from func.interpreters.core.wiring import WIRING
from func.interpreters.host.garbage import rare_collections
from func.interpreters.nan_safe import structural_zeros, with_fallback
from func.interpreters.program.program import Equation, Program, Var
from func.interpreters.program.translations import TRANSLATIONS
from func.interpreters.stage import DerivedStage, Stage
from func.interpreters.structural_zeros import StructuralZeros, has_mask

T = TypeVar("T")
SCANS_KEEP: ContextVar[tuple[int, int | None]] = ContextVar("func_scans_keep", default=(1 << 30, None))
"""For the present trace: the residuals in bytes beyond which a scan runs in blocks, and a length of all blocks."""
BEST = "best"
"""The compiler of jitted functions that name none: native code if there is a compiler for it, else NumPy."""


class CompiledCall:
    """A Program and everything derived from it. Compared by identity: it is a parameter of equations.

    `make_variant` traces the NaN-safe variant; None means that no pullbacks are inside.
    """

    __slots__ = ("_derived", "_executables", "_make_variant", "compiler", "program")
    fingerprint_fields = ("program", "compiler", "has_pullbacks")

    def __init__(
        self, program: Program, make_variant: Callable[[], CompiledCall] | None = None, compiler: str | None = None
    ) -> None:
        self.program = program
        self.compiler = compiler
        self._make_variant = None if make_variant is None else _once(make_variant)
        self._derived: dict[Any, Any] = {}
        self._executables: dict[Any, Any] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        variant = self.nan_safe_variant()
        return _restored, (self.program, None if variant is None else variant.program, self.compiler)

    def __repr__(self) -> str:
        return f"CompiledCall({len(self.program.equations)} equations)"

    def __call__(self, *args: Array) -> tuple[Any, ...]:
        return program_call(*args, compiled=self)  # type: ignore[no-any-return]

    @property
    def in_avals(self) -> list[Aval]:
        """The abstract values of the inputs."""
        return [var.aval for var in self.program.inputs]

    @property
    def out_avals(self) -> tuple[Aval, ...]:
        """The abstract values of the outputs."""
        return output_avals(self.program)

    def run_on(self, *args: Array) -> tuple[Any, ...]:
        """Apply the program's equations one by one to arrays or traced values."""
        return self.program.run(args)

    def execute(self, xp: Any, args: Sequence[Array]) -> tuple[Any, ...]:
        """The outputs for concrete arrays of a backend."""
        executable = self._executables.get(xp)
        return (self.executable(xp) if executable is None else executable).call(*args)  # type: ignore[no-any-return]

    def executable(self, xp: Any, donated: frozenset[int] = frozenset()) -> Any:
        """The program compiled for arrays of a backend; it may overwrite the inputs in `donated`."""
        key = (xp, donated) if donated else xp
        executable = self._executables.get(key)
        if executable is None:
            variant = None if self._make_variant is None else NanSafeRun(self._make_variant, xp)
            with rare_collections():
                executable = WIRING.compile_program(self.program, xp, self.compiler, donated, variant)
            self._executables[key] = executable
        return executable

    def memoized(self, key: Any, derive: Callable[[], T]) -> T:
        """The result of `derive`, computed once for each key and for the present limit of scans."""
        key = key, SCANS_KEEP.get()
        result: Any = self._derived.get(key)
        if result is None:
            result = self._derived[key] = derive()
        return result  # type: ignore[no-any-return]

    def with_program(self, program: Program) -> CompiledCall:
        """A call of another program with the same compiler, without pullbacks inside."""
        return CompiledCall(program, None, self.compiler)

    def transformed(self, transform: Callable[[CompiledCall], Program]) -> CompiledCall:
        """A call of the program that `transform` makes of this one, and of its NaN-safe variant if there is one."""

        make = self._make_variant  # this call may keep the other one alive, which must not refer to it
        return CompiledCall(transform(self), make and (lambda: make().transformed(transform)), self.compiler)

    def batched(self, size: int, which: tuple[bool, ...]) -> CompiledCall:
        """The program on a leading batch axis of the arguments in `which`; all outputs have it."""

        def transform(compiled: CompiledCall) -> Program:
            if TRANSLATIONS.are_validated:
                check_batch(compiled.program, size, which, batched_program)
            return batched_program(compiled.program, size, which)

        return self.memoized(("vmap", size, which), lambda: self.transformed(transform))

    def jvp_partition(self, active: tuple[bool, ...]) -> PartitionedCall:
        """The derivative for tangents of the active arguments."""
        return self.memoized(
            ("jvp", active), lambda: PartitionedCall(self, validated_partition(partition_jvp, self.program, active))
        )

    def vjp_partition(self, active: tuple[bool, ...]) -> PartitionedCall:
        """The derivative for cotangents of the inexact outputs."""

        def by_vjp(program: Program, active: Sequence[bool]) -> Partition:
            return partition_vjp(program, active, self.compiler)

        return self.memoized(
            ("vjp", active), lambda: PartitionedCall(self, validated_partition(by_vjp, self.program, active, True))
        )

    @property
    def has_pullbacks(self) -> bool:
        """Whether pullbacks are inside."""
        return self._make_variant is not None

    def nan_safe_variant(self) -> CompiledCall | None:
        """The same function with NaN-safe pullbacks, traced at the first request; None without pullbacks inside."""
        return None if self._make_variant is None else self._make_variant()

    def unchecked(self) -> CompiledCall:
        """The same program without a NaN-safe variant: the code around it checks for NaN."""
        return self.memoized("unchecked", lambda: self.with_program(self.program))


def _once(make: Callable[[], T]) -> Callable[[], T]:
    """A function that returns the result of `make`, which its first call runs."""
    made: list[T] = []
    first: Callable[[], T] | None = make

    def get() -> T:
        nonlocal first
        if first is not None:
            made.append(first())
            first = None  # free what it needed
        return made[0]

    return get


class NanSafeRun:
    """The NaN-safe variant of a program on arrays of a backend, traced at its first use."""

    __slots__ = ("_variant", "xp")

    def __init__(self, variant: Callable[[], CompiledCall], xp: Any) -> None:
        self._variant = variant
        self.xp = xp

    def __call__(self, *args: Array) -> tuple[Any, ...]:
        return self.variant.execute(self.xp, args)

    @property
    def variant(self) -> CompiledCall:
        """The variant."""
        return self._variant()


def batched_program(program: Program, size: int, which: Sequence[bool]) -> Program:
    """A program on a leading batch axis of the inputs in `which`; all outputs have it."""

    def flat(*args: Array) -> Sequence[Array]:
        outs = drivers.map_flat(lambda *elements: program.run(elements), size, which, args)
        return drivers.all_mapped(*outs, size)

    avals = [var.aval for var in program.inputs]
    return drivers.stage_flat(flat, batched_avals(avals, size, which), DerivedStage("vmap"))


def batched_avals(avals: Sequence[Aval], size: int, which: Sequence[bool]) -> list[Aval]:
    """Abstract values, with a leading batch axis at the places in `which`."""
    return [
        Aval((size, *aval.shape), aval.dtype) if is_batched else aval
        for aval, is_batched in zip(avals, which, strict=True)
    ]


def _restored(program: Program, variant: Program | None, compiler: str | None) -> CompiledCall:
    restored = None if variant is None else CompiledCall(variant, None, compiler)
    return CompiledCall(program, None if restored is None else lambda: restored, compiler)


class PartitionedCall:
    """A derivative as two compiled calls.

    `known(*args)` computes the outputs and the residuals. In forward mode, `linear(*residuals, *seeds)` maps tangents
    of the active arguments to tangents of outputs. In reverse mode it maps cotangents of the inexact outputs to
    cotangents of active arguments. `has_result` tells which outputs (active arguments) have one.
    """

    __slots__ = ("_arguments", "_run", "has_result", "known", "linear", "outputs", "seed_avals")

    def __init__(self, compiled: CompiledCall, partition: Partition) -> None:
        self.known = compiled.with_program(partition.known)
        self.linear = compiled.with_program(partition.linear)
        self.has_result = partition.has_result
        self.outputs = len(compiled.program.outputs)
        outputs, residual_vars = partition.known.outputs[: self.outputs], partition.known.outputs[self.outputs :]
        position: dict[Any, int] = {var: i for i, var in enumerate(partition.known.inputs)}
        self._arguments = [position.get(x) for x in residual_vars]
        """For each residual the argument with which it is identical, if any: code would return a copy."""
        made = [x for x in residual_vars if x not in position]
        self._run = self.known
        if len(made) < len(residual_vars):
            self._run = self._with_outputs(compiled, [*outputs, *made])
        residuals = len(residual_vars)
        self.seed_avals = [var.aval for var in partition.linear.inputs[residuals:]]

    def _with_outputs(self, compiled: CompiledCall, outputs: Sequence[Any]) -> CompiledCall:
        """The known program with these outputs."""
        known = self.known.program
        return compiled.with_program(Program(known.inputs, known.equations, outputs, known.constants).pruned())

    def run_known(self, args: Sequence[Array]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """(outputs, residuals)."""
        outs = self._run(*args)
        made = iter(outs[self.outputs :])
        return outs[: self.outputs], tuple([next(made) if i is None else args[i] for i in self._arguments])

    def run_linear(self, residuals: Sequence[Array], seeds: Sequence[Array]) -> list[Any]:
        """The (co)tangents as a call of `linear`, ZERO where there is none."""
        if not any(self.has_result):
            return [ZERO] * len(self.has_result)
        return expand(self.linear(*residuals, *seeds), self.has_result)

    def inline_linear(self, residuals: Sequence[Array], seeds: Sequence[Array]) -> list[Any]:
        """The (co)tangents by the equations of `linear`, ZERO where there is none."""
        return expand(self.linear.run_on(*residuals, *seeds), self.has_result)


def trace_function(
    fun: Callable[..., Sequence[Array]], avals: Sequence[Aval], transform: str, example: Array = None
) -> tuple[CompiledCall, list[Array]]:
    """(compiled call, captured) of a body: traced values of outer levels that it closes over are additional leading
    inputs. Operations on these alone are equations of the body, too.
    """

    def trace(stage: Stage) -> Program:
        with tracing_body(stage):
            return drivers.stage_flat(fun, avals, stage, example)

    return trace_call(trace, transform)


def trace_call(
    trace: Callable[[Stage], Program], transform: str, example: Array = None, compiler: str | None = None
) -> tuple[CompiledCall, list[Array]]:
    """The program that `trace` records on a stage, as (compiled call, captured).

    The NaN-safe variant is traced at its first use, or at once if the program captures traced values, which end before.
    """

    def new_stage() -> Stage:
        stage = Stage(transform)
        stage.example = example
        return stage

    def trace_variant() -> Program:
        with structural_zeros(), rare_collections():
            return trace(new_stage())

    stage = new_stage()
    with noticing_random_numbers(trace, transform), rare_collections():
        program = trace(stage)
    has_variants = not stage.has_pullbacks and _calls_variants(program)
    captured = _captured(program)
    if not captured:
        make_variant = lambda: CompiledCall(  # noqa: E731
            _with_variants(program) if has_variants else trace_variant(), None, compiler
        )
        return CompiledCall(program, make_variant if stage.has_pullbacks or has_variants else None, compiler), []
    if not stage.has_pullbacks and not has_variants:
        return CompiledCall(_with_inputs(program, captured), None, compiler), list(captured.values())
    variant_program = _with_variants(program) if has_variants else trace_variant()
    captured |= _captured(variant_program)
    variant = CompiledCall(_with_inputs(variant_program, captured), None, compiler)
    return CompiledCall(_with_inputs(program, captured), lambda: variant, compiler), list(captured.values())


def _calls_variants(program: Program) -> bool:
    """Whether a program that it calls has a NaN-safe variant."""
    for equation in program.equations:
        for value in equation.params.values():
            calls = value if type(value) is tuple else (value,)
            if any([type(call) is CompiledCall and call.has_pullbacks for call in calls]):
                return True
    return False


def _with_variants(program: Program) -> Program:
    """The program with the NaN-safe variants of the programs that it calls."""

    def variant(value: Any) -> Any:
        if type(value) is tuple:
            return tuple([variant(each) for each in value])
        return (value.nan_safe_variant() or value) if type(value) is CompiledCall else value

    equations = [
        Equation(e.primitive, e.inputs, {name: variant(value) for name, value in e.params.items()}, e.outputs, e.line)
        for e in program.equations
    ]
    return Program(program.inputs, equations, program.outputs, program.constants)


def _captured(program: Program) -> dict[Any, Array]:
    """The traced values among a program's constants."""
    return {_identity(value): value for value in program.constants.values() if type(value) is Tracer}


def _identity(value: Tracer) -> tuple[int, int, int]:
    return id(value._interpreter), id(value._value), id(value._attached)


def _with_inputs(program: Program, captured: dict[Any, Array]) -> Program:
    """The program with leading inputs in the place of its traced constants."""
    leading = {key: Var(core.aval_of(value)) for key, value in captured.items()}
    inputs = {var: leading[_identity(x)] for var, x in program.constants.items() if type(x) is Tracer}

    def renamed(x: Any) -> Any:
        return inputs.get(x, x) if type(x) is Var else x

    equations = [
        Equation(e.primitive, tuple(map(renamed, e.inputs)), e.params, e.outputs, e.line) for e in program.equations
    ]
    constants = {var: value for var, value in program.constants.items() if var not in inputs}
    return Program([*leading.values(), *program.inputs], equations, list(map(renamed, program.outputs)), constants)


class ProgramCallPrimitive(CallPrimitive):
    """A call of a CompiledCall. Its derivatives and batched forms are calls of derived programs."""

    __slots__ = ()

    def forward(self, primals: tuple[Array, ...], tangents: tuple[Any, ...], params: Params) -> Any:
        active = active_arguments(primals, tangents)
        if not any(active):
            return self(*primals, **params), ZERO
        active_tangents = select(tangents, active)

        def push(compiled: CompiledCall) -> Any:
            derivative = compiled.jvp_partition(active)
            outs, residuals = derivative.run_known(primals)
            douts = derivative.run_linear(residuals, active_tangents)
            return list(outs), tuple(douts) if any(derivative.has_result) else ZERO

        return with_fallback(push, (params["compiled"],), outputs_and_tangents)

    def apply_masked(self, structural: StructuralZeros, args: tuple[Array, ...], params: Params) -> Any:
        """The equations one by one."""
        return params["compiled"].run_on(*args)

    def apply_series(
        self, order: int, values: tuple[Array, ...], coefficients: Sequence[Any], params: Params
    ) -> Sequence[Any]:
        """A call of the series program; the equations one by one where coefficients know their structural zeros."""
        compiled = params["compiled"]
        if not any(active_series(values, coefficients)):
            return [(out, None) for out in self(*values, **params)]
        if any([has_mask(x) for own in coefficients for x in own or ()]):
            variant = compiled.nan_safe_variant() or compiled
            outs = drivers.taylor_flat(variant.run_on, order, values, coefficients)
            return [(out[0], out[1:] if core.is_inexact(core.dtype_of(out[0])) else None) for out in outs]
        has_series = tuple([core.is_inexact(aval.dtype) for aval in compiled.out_avals])
        form = SeriesForm(order, tuple(present(coefficients)), has_series, (len(values),), (len(has_series),))
        return call_with_series(form, (compiled,), values, coefficients, lambda bodies, xs: bodies[0](*xs))

    def record(self, values: tuple[Array, ...], parents: Sequence[Shaped | None], params: Params) -> Any:
        active = active_arguments(values, parents)
        values = snapshots(values, active)
        if not any(active):
            return self(*values, **params), None, None

        def run_forward(compiled: CompiledCall) -> Any:
            return compiled, *compiled.vjp_partition(active).run_known(values)

        compiled, outs, residuals = with_fallback(run_forward, (params["compiled"],), lambda result: result[1])
        return outs, PROGRAM_CALL_PULLBACK, (compiled, active, values, residuals)


def outputs_and_tangents(result: tuple[Sequence[Any], Any]) -> list[Any]:
    """The values that forward mode checks for NaN."""
    outs, douts = result
    return [*outs, *([] if douts is ZERO else [dout for dout in douts if dout is not ZERO])]


def snapshots(values: Sequence[Array], active: Sequence[bool]) -> tuple[Array, ...]:
    """Arguments for a node: no tracers, and copies of the arrays that users may write to."""
    return tuple(
        [x if is_active else core.defensive_copy(core.unboxed(x)) for x, is_active in zip(values, active, strict=True)]
    )


def _program_call_pull(saved: Any, ct: dict[int, Any]) -> list[Any]:
    compiled, active, values, residuals = saved
    cts = dense_cotangents(compiled.out_avals, ct)
    variant = compiled.nan_safe_variant() if has_mask(cts[0]) else None
    if variant is not None:
        compiled, residuals = variant, variant.vjp_partition(active).run_known(values)[1]
    return expand(compiled.vjp_partition(active).run_linear(residuals, cts), active)


PROGRAM_CALL_PULLBACK = CallPullback("program_call", _program_call_pull)


def _program_call_impl(xp: Any, *args: Array, compiled: CompiledCall) -> tuple[Any, ...]:
    return compiled.execute(xp, args)


def _program_call_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Any:
    return params["compiled"].batched(size, tuple(batched))(*args)


def _program_call_transpose(ct: Any, *operands: Any, compiled: CompiledCall) -> tuple[Any, ...]:
    return drivers.transpose_flat(compiled.run_on, operands, ct)


def takes(compiled: CompiledCall, avals: Sequence[Aval]) -> bool:
    """Whether values of these shapes and dtypes fit a call."""
    return agree(compiled.in_avals, avals)


def agree(avals: Sequence[Aval], others: Sequence[Aval]) -> bool:
    """Whether shapes and dtypes are equal; types may be weak on one side."""
    return [(aval.shape, aval.dtype) for aval in avals] == [(aval.shape, aval.dtype) for aval in others]


program_call = ProgramCallPrimitive(
    "program_call",
    _program_call_impl,
    aval=lambda *avals, compiled: compiled.out_avals,
    parameters={"compiled": COMPILED},
    fits=lambda *avals, compiled: takes(compiled, avals),
    batch=_program_call_batch,
    transpose=_program_call_transpose,
    multiple=True,
)
"""The outputs of a traced program."""
