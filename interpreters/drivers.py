"""Transforms of flat functions: callables that take and return lists of arrays.

The public transforms and the primitives that call functions are both made of these few drivers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Any, TypeAlias

import numpy as np

from func.backends.array_helpers.strides import stand_in
from func.backends.array_memory import enter, enter_after_interrupt, leave
from func.interpreters.compiled_backward import walk
from func.interpreters.core import (
    ZERO,
    Array,
    Aval,
    Interpreter,
    Shaped,
    Tracer,
    dtype_of,
    example_of,
    shape_of,
)
from func.interpreters.core.errors import FuncError, RaggedLanesError, TracerConversionError
from func.interpreters.core.scopes import TRANSFORMS, TransformScope, restore_error_state
from func.interpreters.core.wiring import WIRING
from func.interpreters.grad_fast import grad_interpreter
from func.interpreters.host.source import hide_engine_frames
from func.interpreters.host.swallowed_errors import add_hint, caught, keep_refusal, worded
from func.interpreters.jvp import Jvp
from func.interpreters.primitives.structural.indexing import gather
from func.interpreters.primitives.structural.shapes import broadcast, full_like
from func.interpreters.primitives.structural.slicing import concatenate
from func.interpreters.program.program import Program, Var
from func.interpreters.stage import DerivedStage, LinearStage, Stage
from func.interpreters.vmap import MappedCall, SplitBatch, Vmap

Flat: TypeAlias = Callable[..., Sequence[Array]]


class running:
    """The context in which an interpreter's function runs, inside its `TransformScope`.

    At the end the interpreter is closed. Errors leave without the engine's frames. NumPy allocates with the caching
    allocator inside.
    """

    __slots__ = ("before", "interpreter", "mark")

    def __init__(self, interpreter: Interpreter) -> None:
        self.interpreter = interpreter
        self.before = copy_context()
        self.mark = enter()
        if self.mark is None and TRANSFORMS.get().outer is None:  # type: ignore[union-attr]
            self.mark = enter_after_interrupt()

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        leave(self.mark)
        entry = TRANSFORMS.get()
        new_arrays = None
        if entry is not None and entry.interpreter is self.interpreter:
            new_arrays = entry.new_arrays
            TRANSFORMS.set(entry.outer)
            if new_arrays is not None:
                WIRING.retire_arrays(new_arrays)
        refusal = self.interpreter.refusal
        if error is None:
            self.interpreter.close()
            if refusal is not None and (swallowed := caught(refusal)) is not None:
                raise swallowed
            return
        if refusal is not None and refusal is error and entry is not None and entry.outer is not None:
            keep_refusal(refusal, entry.outer.interpreter)
        called, has_shared = self.interpreter.called, self.interpreter.shared is not None
        self.interpreter.close()
        restore_error_state(error, self.before)
        if isinstance(error, Exception):
            clearer = worded(error, self.interpreter)
            if clearer is not error:
                raise hide_engine_frames(clearer.with_traceback(trace)) from None
            add_hint(error, () if called is None else called[2])
            if has_shared and type(error) is ValueError and "read-only" in str(error):
                error.add_note(_SHARED)
            if new_arrays is not None and new_arrays.concealed and not isinstance(error, FuncError):
                if is_failed_conversion(error):
                    raise hide_engine_frames(TracerConversionError(_CONCEALED).with_traceback(trace)) from None
                error.add_note(_CONCEALED)
            hide_engine_frames(error)


_CONCEALED = (
    "Arrays of func.intercept() hold traced values here. Compiled code that is given such an array cannot compute with "
    "it: its memory has a dtype of no numbers on purpose. Use NumPy functions on it."
)


_SHARED = (
    "Arguments of this call share memory, and one of them that is not traced was written, which traced values do not "
    "see. Pass a copy of it (x.copy())."
)


def is_failed_conversion(error: BaseException) -> bool:
    """Whether NumPy raised this where an element became a number; the error behind it tells the reason."""
    return type(error) is ValueError and str(error).startswith("setting an array element with a sequence")


def without_tensors(values: Sequence[Array], interpreter: Interpreter) -> list[Array]:
    """Outputs without the graph of tensors that the transform's function made."""
    home = interpreter.ambient
    stripped = list(values)
    if home is not None:
        for i, value in enumerate(stripped):
            while type(value) is Tracer and value._interpreter is home:
                value = value._value
            stripped[i] = value
    return stripped


def jvp_flat(fun: Flat, primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[list[Array], list[Any]]:
    """Outputs and their tangents (ZERO where there is none), by plain rules."""
    interpreter = Jvp("jvp")
    with TransformScope(interpreter), running(interpreter):
        duals = [interpreter.lift(p, t) for p, t in zip(primals, tangents, strict=True)]
        outs = without_tensors(fun(*duals), interpreter)
        pairs = [interpreter.unpack(out) for out in outs]
    return [p for p, _ in pairs], [t for _, t in pairs]


def taylor_flat(
    fun: Flat, order: int, values: Sequence[Array], coefficients: Sequence[Sequence[Any] | None]
) -> list[list[Any]]:
    """The coefficients of each output (ZERO where there is none), from those of the arguments beyond the first."""
    from func.interpreters.taylor import Taylor  # start-up time

    interpreter = Taylor("jet", order)
    with TransformScope(interpreter), running(interpreter):
        args = [interpreter.lift(x, own) for x, own in zip(values, coefficients, strict=True)]
        return [interpreter.unpack(out) for out in without_tensors(fun(*args), interpreter)]


def pull_flat(fun: Flat, primals: Sequence[Array], active: Sequence[int], cts: dict[int, Any]) -> list[Any]:
    """Cotangents of the active arguments, from {output position: cotangent}, by plain rules."""
    interpreter = grad_interpreter("vjp")
    with TransformScope(interpreter), running(interpreter):
        args = list(primals)
        leaves = []
        for i in active:
            args[i] = interpreter.lift(args[i])
            leaves.append(args[i]._attached)
        outs = without_tensors(fun(*args), interpreter)
        seeds = [
            (outs[i]._attached, ct)
            for i, ct in cts.items()
            if type(outs[i]) is Tracer and outs[i]._interpreter is interpreter
        ]
        del args, outs
    return walk(seeds, leaves)


def value_and_pull_flat(fun: Flat, primals: Sequence[Array], active: Sequence[int]) -> tuple[list[Array], list[Any]]:
    """The outputs, of which the first is a real number, and its gradients by the active arguments; by plain rules."""
    pullback = PullbackFlat(fun, primals, active)
    return pullback.outs, pullback({0: full_like(pullback.outs[0], 1)})


class PullbackFlat:
    """A function at some arguments: its outputs, and the map of cotangents, by plain rules."""

    def __init__(self, fun: Flat, primals: Sequence[Array], active: Sequence[int]) -> None:
        interpreter = grad_interpreter("vjp")
        with TransformScope(interpreter), running(interpreter):
            args = list(primals)
            for i in active:
                args[i] = interpreter.lift(args[i])
            self._leaves = [args[i]._attached for i in active]
            outs = without_tensors(fun(*args), interpreter)
            del args
            is_traced = [type(out) is Tracer and out._interpreter is interpreter for out in outs]
            self._nodes = [out._attached if flag else None for out, flag in zip(outs, is_traced, strict=True)]
            self.outs = [out._value if flag else out for out, flag in zip(outs, is_traced, strict=True)]

    def __call__(self, cts: dict[int, Any]) -> list[Any]:
        """The cotangents of the active arguments, from {output position: cotangent}."""
        seeds = [(self._nodes[i], ct) for i, ct in cts.items() if self._nodes[i] is not None]
        return walk(seeds, self._leaves)


def map_flat(
    fun: Flat,
    size: int,
    which: Sequence[bool],
    args: Sequence[Array],
    interpreter: Vmap | None = None,
) -> tuple[list[Array], list[bool]]:
    """Outputs for a batch, and which of them are mapped. Arguments in `which` lead with the batch axis.

    Where Python asks for one value of batch elements that differ, the batch is split and the function runs on parts.
    """
    if interpreter is None:
        interpreter = Vmap("vmap", np.arange(size), MappedCall(size))
    level = interpreter
    with TransformScope(level, mapped=level), running(level):
        try:
            elements = [level.lift(arg) if mapped else arg for arg, mapped in zip(args, which, strict=True)]
            outs = without_tensors(fun(*elements), level)
            mapped_outs = [level.is_mapped(out) for out in outs]
            return [out._value if mapped else out for out, mapped in zip(outs, mapped_outs, strict=True)], mapped_outs
        except (SplitBatch, Exception) as error:
            split = _split_behind(error, level)
            if split is None:
                raise
            if split.interpreter is not level:
                raise split from None
            groups = split.groups
            levels = [level.part(group) for group in groups]
            del error, split
    parts = []
    for group, part in zip(groups, levels, strict=True):
        chosen = [gather(arg, group, axis=0) if mapped else arg for arg, mapped in zip(args, which, strict=True)]
        parts.append((len(group), *map_flat(fun, len(group), which, chosen, part)))
    return _merge_parts(groups, parts)


def _split_behind(error: BaseException, level: Vmap) -> SplitBatch | None:
    """The signal behind an error: C code wraps what float() raises, or raises another error after it."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, SplitBatch):
            return cause
        cause = cause.__cause__
    return None if level.wish is None else SplitBatch(level, level.wish)


def _merge_parts(groups: Sequence[Any], parts: Sequence[Any]) -> tuple[list[Array], list[bool]]:
    """The outputs of the parts of a batch, concatenated in the order of its elements."""
    counts = {len(outs) for _, outs, _ in parts}
    if len(counts) != 1:
        raise RaggedLanesError(f"batch elements of a vmap returned different numbers of outputs: {sorted(counts)}")
    order = np.argsort(np.concatenate(groups), kind="stable")
    merged = []
    for position in range(counts.pop()):
        pieces = []
        for size, outs, mapped in parts:
            out = outs[position]
            pieces.append(out if mapped[position] else broadcast(out, shape=(size, *shape_of(out))))
        shapes = [shape_of(piece)[1:] for piece in pieces]
        if len(set(shapes)) > 1:
            raise RaggedLanesError(
                f"batch elements of a vmap took different paths and output {position} has different shapes: "
                f"{', '.join(map(str, dict.fromkeys(shapes)))}. Pad to one shape, or mask with np.where."
            )
        merged.append(gather(concatenate(*pieces, axis=0), order, axis=0))
    return merged, [True] * len(merged)


def all_mapped(outs: Sequence[Array], mapped: Sequence[bool], size: int) -> list[Array]:
    """Every output with a leading batch axis."""
    return [
        out if is_mapped else broadcast(out, shape=(size, *shape_of(out)))
        for out, is_mapped in zip(outs, mapped, strict=True)
    ]


def stage_flat(fun: Flat, avals: Sequence[Aval], stage: Stage, example: Array = None) -> Program:
    """The Program of a function on abstract arguments, on the backend of `example`."""
    stage.example = example_of(example)
    with TransformScope(stage), running(stage):
        inputs = [stage.variable(aval) for aval in avals]
        variables = [tracer._attached for tracer in inputs]
        return stage.program(variables, without_tensors(fun(*inputs), stage))


def output_avals(fun: Flat, avals: Sequence[Aval]) -> tuple[Aval, ...]:
    """Abstract values of the outputs."""
    stage = DerivedStage("eval_shape")
    with TransformScope(stage), running(stage):
        outs = fun(*[stage.variable(aval) for aval in avals])
        return tuple([Aval(shape_of(out), dtype_of(out)) for out in outs])


def output_strides(fun: Flat, arguments: Sequence[Any]) -> list[Any]:
    """Arrays without memory in the layouts of the outputs, for arguments in these layouts."""
    stage = Stage("eval_shape")
    with TransformScope(stage), running(stage):
        inputs = [stage.variable(Aval(x.shape, x.dtype)) for x in arguments]
        for box, x in zip(inputs, arguments, strict=True):
            stage.layouts.inputs[box._attached] = x
        outs = [stage.atom(out) for out in without_tensors(fun(*inputs), stage)]
        return [
            stand_in(out.shape, stage.layouts.of(out), out.dtype) if type(out) is Var else np.asarray(out)
            for out in outs
        ]


def transpose_flat(fun: Flat, operands: Sequence[Any], cts: dict[int, Any]) -> tuple[Any, ...]:
    """Cotangents of the Shaped operands of a function that is linear in them."""
    from func.interpreters.transpose import transpose_program  # start-up time

    unknown = [i for i, x in enumerate(operands) if isinstance(x, Shaped)]

    def of_unknowns(*values: Array) -> Sequence[Array]:
        full = list(operands)
        for i, value in zip(unknown, values, strict=True):
            full[i] = value
        return fun(*full)

    avals = [Aval(operands[i].shape, operands[i].dtype) for i in unknown]
    program = stage_flat(of_unknowns, avals, LinearStage("linear_transpose"), next(iter(cts.values()), None))
    cts_of_unknowns = transpose_program(program, [cts.get(i, ZERO) for i in range(len(program.outputs))])
    cotangents: list[Any] = [ZERO] * len(operands)
    for i, ct in zip(unknown, cts_of_unknowns, strict=True):
        cotangents[i] = ct
    return tuple(cotangents)
