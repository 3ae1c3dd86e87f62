"""Transforming flat functions: callables that take and return lists of arrays.

The public transforms and the rows that call functions are both made of these few drivers. Functions that end up
as parameters of rows are small classes with fields, so that they can be compared, printed and pickled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from func.interpreters.core import (
    CURRENT,
    ZERO,
    Array,
    Aval,
    Interpreter,
    Shaped,
    Tracer,
    dtype_of,
    example_of,
    is_inexact,
    shape_of,
)
from func.interpreters.errors import CustomRuleError, RaggedLanesError
from func.interpreters.grad import Grad, pull_back
from func.interpreters.jvp import Jvp
from func.interpreters.primitives.barriers import shielded
from func.interpreters.primitives.indexing import gather
from func.interpreters.primitives.kinds import zeros_like
from func.interpreters.primitives.structural import broadcast, concatenate, full_like, reduce_sum
from func.interpreters.program import Program
from func.interpreters.source import at_line
from func.interpreters.stage import Recorder, Stage, TangentStage
from func.interpreters.transpose import transpose_program
from func.interpreters.vmap import RUNNING, Call, SplitLanes, Vmap

Flat: TypeAlias = Callable[..., Sequence[Array]]


_hooks: list[Callable[[], None]] = [lambda: None, lambda: None]


def set_running_hooks(enter: Callable[[], None], leave: Callable[[], None]) -> None:
    """Registration from above: what is to be in force while user code may meet traced values."""
    _hooks[:] = [enter, leave]


class running:
    """An interpreter at work: the hooks hold meanwhile, and at the end it is closed."""

    __slots__ = ("interpreter", "token")

    def __init__(self, interpreter: Interpreter) -> None:
        self.interpreter = interpreter

    def __enter__(self) -> None:
        self.token = CURRENT.set(self.interpreter)
        _hooks[0]()

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        _hooks[1]()
        CURRENT.reset(self.token)
        self.interpreter.close()


# --- drivers ----------------------------------------------------------------------------------------------------


def jvp_flat(fun: Flat, primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[list[Array], list[Any]]:
    """Outputs and their tangents (ZERO where there is none)."""
    interpreter = Jvp("jvp")
    with running(interpreter):
        outs = fun(*[interpreter.lift(p, t) for p, t in zip(primals, tangents, strict=True)])
        pairs = [interpreter.unpack(out) for out in outs]
    return [p for p, _ in pairs], [t for _, t in pairs]


def pull_flat(fun: Flat, primals: Sequence[Array], active: Sequence[int], cts: dict[int, Any]) -> list[Any]:
    """Cotangents of the active arguments, given {output position: cotangent}."""
    interpreter = Grad("vjp")
    with running(interpreter):
        args = list(primals)
        leaves = []
        for i in active:
            args[i] = interpreter.lift(args[i])
            leaves.append(args[i].attached)
        outs = fun(*args)
        seeds = [
            (outs[i].attached, ct)
            for i, ct in cts.items()
            if type(outs[i]) is Tracer and outs[i].interpreter is interpreter
        ]
        del args, outs
    return pull_back(seeds, leaves)


def map_flat(
    fun: Flat,
    size: int,
    which: Sequence[bool],
    args: Sequence[Array],
    interpreter: Vmap | None = None,
) -> tuple[list[Array], list[bool]]:
    """Run on lanes: arguments in `which` lead with the batch axis. Gives outputs and which of them are mapped.

    Where Python asks lanes that differ for one value, the lanes are parted and the function runs on each part.
    """
    if interpreter is None:
        interpreter = Vmap("vmap", (size, None, "call", Call(), np.arange(size)))
    level = interpreter
    options = level.extra
    token = RUNNING.set((*RUNNING.get(), level))
    current = CURRENT.set(level)
    try:
        _hooks[0]()
        outs = fun(*[level.lift(arg) if mapped else arg for arg, mapped in zip(args, which, strict=True)])
        mapped_outs = [level.is_mapped(out) for out in outs]
        return [out.value if mapped else out for out, mapped in zip(outs, mapped_outs, strict=True)], mapped_outs
    except (SplitLanes, ValueError) as error:
        split = error if isinstance(error, SplitLanes) else error.__cause__  # NumPy wraps what float() raises
        if not isinstance(split, SplitLanes):
            raise
        if split.interpreter is not level:
            raise split from None
        groups = split.groups
        del error, split
    finally:
        CURRENT.reset(current)
        RUNNING.reset(token)
        _hooks[1]()
        level.close()
    parts = []
    for group in groups:
        chosen = [gather(arg, group, axis=0) if mapped else arg for arg, mapped in zip(args, which, strict=True)]
        inner = Vmap(level.transform, (len(group), *options[1:4], options[4][group]))
        inner.line = level.line
        parts.append((len(group), *map_flat(fun, len(group), which, chosen, inner)))
    return _merge_lanes(groups, parts)


def _merge_lanes(groups: Sequence[Any], parts: Sequence[Any]) -> tuple[list[Array], list[bool]]:
    """Outputs of the parts, concatenated and put back in lane order."""
    counts = {len(outs) for _, outs, _ in parts}
    if len(counts) != 1:
        raise RaggedLanesError(f"lanes of a vmap returned different numbers of outputs: {sorted(counts)}")
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
                f"lanes of a vmap took different paths and output {position} has different shapes: "
                f"{', '.join(map(str, dict.fromkeys(shapes)))}. Pad to one shape, or mask with np.where."
            )
        merged.append(gather(concatenate(*pieces, axis=0), order, axis=0))
    return merged, [True] * len(merged)


def all_mapped(outs: Sequence[Array], mapped: Sequence[bool], size: int) -> list[Array]:
    """Every output with the leading batch axis."""
    return [o if m else broadcast(o, shape=(size, *shape_of(o))) for o, m in zip(outs, mapped, strict=True)]


def stage_flat(fun: Flat, avals: Sequence[Aval], stage: Stage, example: Array = None) -> Program:
    """The Program of a function on abstract arguments, on the backend of `example`."""
    stage.example = example_of(example)
    with running(stage):
        inputs = [stage.variable(aval) for aval in avals]
        variables = [tracer.attached for tracer in inputs]
        return stage.program(variables, fun(*inputs))


def output_avals(fun: Flat, avals: Sequence[Aval]) -> tuple[Aval, ...]:
    """Abstract values of the outputs."""
    stage = TangentStage("eval_shape")
    with running(stage):
        outs = fun(*[stage.variable(aval) for aval in avals])
        return tuple([Aval(shape_of(out), dtype_of(out)) for out in outs])


def transpose_flat(fun: Flat, operands: Sequence[Any], cts: dict[int, Any]) -> tuple[Any, ...]:
    """Cotangents of the Shaped operands of a function that is linear in them."""
    unknown = [i for i, x in enumerate(operands) if isinstance(x, Shaped)]

    def of_unknowns(*values: Array) -> Sequence[Array]:
        full = list(operands)
        for i, value in zip(unknown, values, strict=True):
            full[i] = value
        return fun(*full)

    avals = [Aval(operands[i].shape, operands[i].dtype) for i in unknown]
    program = stage_flat(of_unknowns, avals, TangentStage("linear_transpose"), next(iter(cts.values()), None))
    grown = transpose_program(program, [cts.get(i, ZERO) for i in range(len(program.outputs))])
    result: list[Any] = [ZERO] * len(operands)
    for i, ct in zip(unknown, grown, strict=True):
        result[i] = ct
    return tuple(result)


# --- mapped functions: what batching a call row re-binds it with ------------------------------------------------


@dataclass(frozen=True)
class Mapped:
    """fun over lanes, every output mapped."""

    fun: Flat
    size: int
    which: tuple[bool, ...]

    def __call__(self, *args: Array) -> list[Array]:
        outs, mapped = map_flat(self.fun, self.size, self.which, args)
        return all_mapped(outs, mapped, self.size)


@dataclass(frozen=True)
class MappedRule:
    """A custom_jvp rule over lanes; a tangent is mapped where its primal is."""

    rule: Any
    size: int
    which: tuple[bool, ...]

    def __call__(self, primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[list[Array], list[Any]]:
        given = [i for i, t in enumerate(tangents) if t is not ZERO]

        def flat(*args: Array) -> list[Array]:
            ts: list[Any] = [ZERO] * len(primals)
            for i, t in zip(given, args[len(primals) :], strict=True):
                ts[i] = t
            outs, douts = self.rule(list(args[: len(primals)]), ts)
            return [*outs, *[zeros_like(o) if d is ZERO else d for o, d in zip(outs, douts, strict=True)]]

        which = (*self.which, *[self.which[i] for i in given])
        both = Mapped(flat, self.size, which)(*primals, *[tangents[i] for i in given])
        half = len(both) // 2
        return both[:half], [
            d if is_inexact(dtype_of(o)) else ZERO for o, d in zip(both[:half], both[half:], strict=True)
        ]


@dataclass(frozen=True)
class MappedForward:
    """A custom_vjp fwd over lanes: outputs and residuals are all mapped."""

    fwd: Any
    size: int
    which: tuple[bool, ...]

    def __call__(self, *args: Array) -> tuple[list[Array], list[Array]]:
        counts: list[int] = []

        def flat(*inner: Array) -> list[Array]:
            outs, residuals = self.fwd(*inner)
            counts[:] = [len(outs)]
            return [*outs, *residuals]

        both = Mapped(flat, self.size, self.which)(*args)
        return both[: counts[0]], both[counts[0] :]


@dataclass(frozen=True)
class MappedCustomBackward:
    """A custom_vjp bwd over lanes; cotangents of unmapped arguments are summed over the lanes."""

    bwd: Any
    size: int
    which: tuple[bool, ...]

    def __call__(self, residuals: Sequence[Array], cts: Sequence[Array]) -> list[Any]:
        count = len(residuals)

        def flat(*inner: Array) -> list[Array]:
            grown = self.bwd(inner[:count], inner[count:])
            missing[:] = [ct is None or ct is ZERO for ct in grown]
            return [ct for ct in grown if not (ct is None or ct is ZERO)]

        missing: list[bool] = []
        outs = iter(Mapped(flat, self.size, (True,) * (count + len(cts)))(*residuals, *cts))
        full = [None if absent else next(outs) for absent in missing]
        return [
            ct if ct is None or mapped else reduce_sum(ct, axes=(0,))
            for ct, mapped in zip(full, self.which, strict=True)
        ]


@dataclass(frozen=True)
class MappedBackward:
    """The backward of a linear call over lanes; cotangents of unmapped arguments are summed over the lanes."""

    backward: Any
    size: int
    which: tuple[bool, ...]
    residuals: int

    def __call__(self, known: Sequence[Array], ct: dict[int, Any]) -> list[Any]:
        positions = list(ct)
        count = len(known)

        def flat(*inner: Array) -> list[Array]:
            return self.backward(inner[:count], dict(zip(positions, inner[count:], strict=True)))  # type: ignore[no-any-return]

        which = (*self.which[: self.residuals], *[True] * len(positions))
        outs = Mapped(flat, self.size, which)(*known, *ct.values())
        return [
            out if mapped else reduce_sum(out, axes=(0,))
            for out, mapped in zip(outs, self.which[self.residuals :], strict=True)
        ]


# --- custom_vjp as a linear call --------------------------------------------------------------------------------

Info: TypeAlias = tuple[tuple[int, ...], Any]


@dataclass(frozen=True)
class CustomBackward:
    """The user's bwd as the transpose of a linear call: cotangents of the active arguments."""

    bwd: Any
    active: tuple[int, ...]
    args: tuple[Info, ...]
    outs: tuple[Info, ...]

    def __call__(self, residuals: Sequence[Array], ct: dict[int, Any]) -> list[Array]:
        like = next(iter(ct.values()))
        if getattr(self.bwd, "takes_missing", False):
            cts = [ct.get(i) for i in range(len(self.outs))]
        else:
            cts = [ct[i] if i in ct else full_like(like, 0, *info) for i, info in enumerate(self.outs)]
        grown = self.bwd(residuals, cts)
        if len(grown) != len(self.args):
            raise CustomRuleError(
                f"the backward rule returned {len(grown)} cotangents for {len(self.args)} arguments{at_line()}"
            )
        return [self._checked(grown[i], i, like) for i in self.active]

    def _checked(self, ct: Any, i: int, like: Array) -> Array:
        shape, dtype = self.args[i]
        if ct is None or ct is ZERO:
            return full_like(like, 0, shape, dtype)
        if shape_of(ct) != shape:
            raise CustomRuleError(
                f"the backward rule returned a cotangent of shape {shape_of(ct)} for argument {i} of shape {shape}"
            )
        from func.interpreters.primitives.structural import convert

        return ct if dtype_of(ct) == dtype else convert(ct, dtype=dtype)


@dataclass(frozen=True)
class CustomForward:
    """The user's tangent rule as the forward direction of a linear call: push(residuals, tangents), None for zero."""

    push: Any
    residuals: int
    active: tuple[int, ...]
    args: int
    outs: tuple[Info, ...]

    def __call__(self, *operands: Array) -> list[Any]:
        known, given = operands[: self.residuals], operands[self.residuals :]
        tangents: list[Any] = [None] * self.args
        for i, tangent in zip(self.active, given, strict=True):
            tangents[i] = tangent
        douts = self.push(known, tangents)
        return [
            full_like(given[0], 0, *info) if dout is None else dout for dout, info in zip(douts, self.outs, strict=True)
        ]


@dataclass(frozen=True)
class MappedPush:
    """A tangent rule over lanes."""

    push: Any
    size: int
    which: tuple[bool, ...]

    def __call__(self, known: Sequence[Array], tangents: Sequence[Any]) -> list[Any]:
        places = [i for i, tangent in enumerate(tangents) if tangent is not None]
        missing: list[bool] = []

        def flat(*inner: Array) -> list[Array]:
            full: list[Any] = [None] * len(tangents)
            for i, tangent in zip(places, inner[len(known) :], strict=True):
                full[i] = tangent
            douts = self.push(inner[: len(known)], full)
            missing[:] = [dout is None for dout in douts]
            return [dout for dout in douts if dout is not None]

        mapped = (True,) * len(known) + tuple([self.which[i] for i in places])
        outs = iter(Mapped(flat, self.size, mapped)(*known, *[tangents[i] for i in places]))
        return [None if absent else next(outs) for absent in missing]


@dataclass(frozen=True)
class TransposedBackward:
    """The forward direction of a linear call that is only known backwards."""

    backward: CustomBackward
    residuals: int
    args: tuple[Info, ...]

    def __call__(self, *operands: Array) -> list[Any]:
        known, tangents = operands[: self.residuals], operands[self.residuals :]
        inexact = [i for i, (_, dtype) in enumerate(self.backward.outs) if is_inexact(dtype)]
        avals = [Aval(*self.backward.outs[i]) for i in inexact]

        def of_cotangents(*cts: Array) -> Sequence[Array]:
            return self.backward(known, dict(zip(inexact, cts, strict=True)))

        program = stage_flat(of_cotangents, avals, TangentStage("custom_vjp"), tangents[0])
        grown = transpose_program(program, tangents)
        full = [full_like(tangents[0], 0, *info) for info in self.backward.outs]
        for i, dout in zip(inexact, grown, strict=True):
            if dout is not ZERO:
                full[i] = dout
        return full


# --- checkpoint -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Again:
    """Runs the checkpointed function a second time; without a policy that is the function itself."""

    fun: Flat

    def __call__(self, primals: Sequence[Array], saved: Sequence[Array]) -> Sequence[Array]:
        return self.fun(*primals)


@dataclass(frozen=True, eq=False)
class AgainFromProgram:
    """Runs the recorded equations a second time, with the outputs that the policy saved given."""

    program: Program
    kept: tuple[int, ...]

    def __call__(self, primals: Sequence[Array], saved: Sequence[Array]) -> Sequence[Array]:
        given = dict(zip(self.kept, saved, strict=True))

        def override(i: int, operands: tuple[Array, ...]) -> Any:
            if i not in given:
                return None
            equation = self.program.equations[i]
            options = tuple(equation.params.items())
            return (_given[0](given[i], *operands, row=equation.row, options=options),)

        return self.program.run(primals, override)


_given: list[Any] = []


def set_given(row: Any) -> None:
    """Registration of the row that stands for an equation whose value was saved."""
    _given[:] = [row]


@dataclass(frozen=True)
class Saved:
    """What a policy keeps: the arrays, and how to run again with them."""

    again: Any
    values: list[Array]


def run_with_policy(fun: Flat, primals: Sequence[Array], policy: Any) -> tuple[list[Array], Saved]:
    """Run forwards; policy(row, params) says which equations' outputs to keep."""
    if policy is None:
        return list(fun(*primals)), Saved(Again(fun), [])
    recorder = Recorder("checkpoint", policy)
    with running(recorder):
        inputs = [recorder.lift(p) for p in primals]
        variables = [tracer.attached for tracer in inputs]
        outs = fun(*inputs)
        program = recorder.program(variables, outs)
        positions = {id(equation): i for i, equation in enumerate(program.equations)}
        kept = [(positions[id(e)], value) for e, value in recorder.kept() if id(e) in positions]
        values = [out.value if type(out) is Tracer and out.interpreter is recorder else out for out in outs]
    return values, Saved(AgainFromProgram(program, tuple([i for i, _ in kept])), [value for _, value in kept])


@dataclass(frozen=True)
class RecomputedForward:
    """The tangent map of a checkpointed function, computed by running it again."""

    again: Any
    active: tuple[int, ...]
    primals: int
    saved: int

    def __call__(self, *operands: Array) -> list[Array]:
        primals = shielded(operands[: self.primals])
        saved = operands[self.primals : self.primals + self.saved]
        tangents: list[Any] = [ZERO] * self.primals
        for i, t in zip(self.active, operands[self.primals + self.saved :], strict=True):
            tangents[i] = t
        outs, douts = jvp_flat(lambda *args: self.again(args, saved), primals, tangents)
        return [zeros_like(o) if d is ZERO else d for o, d in zip(outs, douts, strict=True)]


@dataclass(frozen=True)
class RecomputedBackward:
    """The pullback of a checkpointed function, computed by running it again."""

    again: Any
    active: tuple[int, ...]
    primals: int

    def __call__(self, known: Sequence[Array], ct: dict[int, Any]) -> list[Array]:
        primals, saved = shielded(known[: self.primals]), known[self.primals :]
        cts = pull_flat(lambda *args: self.again(args, saved), primals, self.active, ct)
        return [zeros_like(primals[i]) if c is ZERO else c for i, c in zip(self.active, cts, strict=True)]


# --- custom_vmap under forward mode -----------------------------------------------------------------------------


@dataclass(frozen=True)
class TangentOf:
    """(*primals, *tangents of the active ones) -> tangents of the outputs."""

    fun: Flat
    active: tuple[int, ...]
    primals: int

    def __call__(self, *args: Array) -> list[Array]:
        primals = args[: self.primals]
        tangents: list[Any] = [ZERO] * self.primals
        for i, t in zip(self.active, args[self.primals :], strict=True):
            tangents[i] = t
        outs, douts = jvp_flat(self.fun, primals, tangents)
        return [zeros_like(o) if d is ZERO else d for o, d in zip(outs, douts, strict=True)]


@dataclass(frozen=True)
class TangentOfRule:
    """A custom_vmap rule carried along with TangentOf: the rule itself is differentiated forwards."""

    rule: Any
    active: tuple[int, ...]
    primals: int

    def __call__(self, size: int, which: tuple[bool, ...], args: Sequence[Array]) -> tuple[list[Array], list[bool]]:
        from func.interpreters.primitives.kinds import materialize

        primals, tangents = list(args[: self.primals]), list(args[self.primals :])
        flags = list(which[: self.primals])
        for k, i in enumerate(self.active):
            both = which[i] or which[self.primals + k]
            (primals[i],) = materialize(size, [flags[i]], [primals[i]]) if both else (primals[i],)
            (tangents[k],) = materialize(size, [which[self.primals + k]], [tangents[k]]) if both else (tangents[k],)
            flags[i] = both
        out_flags: list[bool] = []

        def flat(*inner: Array) -> Sequence[Array]:
            outs: Sequence[Array]
            outs, batched = self.rule(size, tuple(flags), inner)
            out_flags[:] = batched
            return outs

        full: list[Any] = [ZERO] * self.primals
        for i, t in zip(self.active, tangents, strict=True):
            full[i] = t
        outs, douts = jvp_flat(flat, primals, full)
        douts = [zeros_like(o) if d is ZERO else d for o, d in zip(outs, douts, strict=True)]
        return douts, out_flags
