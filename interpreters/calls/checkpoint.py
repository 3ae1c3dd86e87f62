"""Checkpoints: a function that runs again for its derivative, and what a policy saves of the first run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from func.interpreters.calls.call_primitives import (
    BatchedFunction,
    avals_of,
    function_call,
    inexact_tangents,
    jvp_with_zeros,
    linear_call,
    without_integer_tangents,
)
from func.interpreters.calls.partition import select
from func.interpreters.core import (
    ZERO,
    Array,
    Aval,
    Params,
    Primitive,
    Tracer,
    bind,
    dtype_of,
    materialize,
    shape_of,
)
from func.interpreters.core.parameters import FUNCTION, NOTHING, Kind, either, integer, refusal_of
from func.interpreters.core.scopes import TransformScope
from func.interpreters.drivers import Flat, pull_flat, running
from func.interpreters.live import absent_like
from func.interpreters.primitives.structural.identity import shielded
from func.interpreters.program.program import Program
from func.interpreters.stage import Recorder


@dataclass(frozen=True)
class RerunFunction:
    """Runs a checkpointed function again, of which nothing was saved."""

    fun: Flat

    def __call__(self, primals: Sequence[Array], saved: Sequence[Array]) -> Sequence[Array]:
        return self.fun(*primals)


@dataclass(frozen=True, eq=False)
class RerunProgram:
    """Runs the recorded equations again, except those whose outputs were saved: their places are `saved_equations`."""

    program: Program
    saved_equations: tuple[int, ...]

    def __call__(self, primals: Sequence[Array], saved: Sequence[Array]) -> Sequence[Array]:
        outputs = dict(zip(self.saved_equations, saved, strict=True))

        def override(i: int, operands: tuple[Array, ...]) -> Any:
            if i not in outputs:
                return None
            equation = self.program.equations[i]
            options = tuple(equation.params.items())
            return (saved_output(outputs[i], *operands, primitive=equation.primitive, options=options),)

        return self.program.run(primals, override)


def _run_first(fun: Flat, primals: Sequence[Array], policy: Any) -> tuple[list[Array], Any, list[Array]]:
    """(outputs, what runs again, saved values); policy(primitive, params) tells whether an output is saved."""
    if policy is None:
        return list(fun(*primals)), RerunFunction(fun), []
    recorder = Recorder("checkpoint", policy)
    with TransformScope(recorder), running(recorder):
        inputs = [recorder.lift(p) for p in primals]
        variables = [tracer._attached for tracer in inputs]
        outs = fun(*inputs)
        program = recorder.program(variables, outs)
        places = {id(equation): i for i, equation in enumerate(program.equations)}
        saved = [(places[id(equation)], value) for equation, value in recorder.saved if id(equation) in places]
        values = [out._value if type(out) is Tracer and out._interpreter is recorder else out for out in outs]
    return values, RerunProgram(program, tuple([place for place, _ in saved])), [value for _, value in saved]


@dataclass(frozen=True)
class RecomputedForward:
    """(*primals, *saved, *active tangents) -> tangents of the outputs, by running the function again."""

    rerun: Any
    active: tuple[bool, ...]
    saved: int

    def __call__(self, *operands: Array) -> list[Array]:
        count = len(self.active)
        primals = shielded(operands[:count])
        saved, tangents = operands[count : count + self.saved], operands[count + self.saved :]
        return jvp_with_zeros(lambda *args: self.rerun(args, saved), primals, tangents, self.active)


@dataclass(frozen=True)
class RecomputedBackward:
    """(residuals, cotangents) -> cotangents of the active arguments, by running the function again."""

    rerun: Any
    active: tuple[bool, ...]

    def __call__(self, residuals: Sequence[Array], ct: dict[int, Any]) -> list[Array]:
        count = len(self.active)
        primals, saved = shielded(residuals[:count]), residuals[count:]
        active = [i for i, is_active in enumerate(self.active) if is_active]
        cts = pull_flat(lambda *args: self.rerun(args, saved), primals, active, ct)
        like = next(iter(ct.values()))
        return [
            absent_like(like, shape_of(primals[i]), dtype_of(primals[i])) if x_ct is ZERO else x_ct
            for i, x_ct in zip(active, cts, strict=True)
        ]


def _checkpoint_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, fun: Flat, policy: Any) -> Any:
    dense = inexact_tangents(primals, tangents)
    active = tuple([tangent is not ZERO for tangent in dense])
    outs, rerun, saved = _run_first(fun, primals, policy)
    if not any(active):
        return tuple(outs), ZERO
    douts = linear_call(
        *primals,
        *saved,
        *select(dense, active),
        forward=RecomputedForward(rerun, active, len(saved)),
        backward=RecomputedBackward(rerun, active),
        residuals=len(primals) + len(saved),
        outs=avals_of(outs),
    )
    return tuple(outs), without_integer_tangents(outs, douts)


def _checkpoint_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Any:
    fun = BatchedFunction(params["fun"], size, tuple(batched))
    return checkpoint_call(*args, fun=fun, policy=params["policy"])


checkpoint_call = function_call(
    "checkpoint_call",
    batch=_checkpoint_batch,
    jvp=_checkpoint_jvp,
    parameters={"policy": either(NOTHING, FUNCTION)},
    mask="body",
)
"""fun(*args). The pullback keeps the arguments and what the policy saves, and computes everything else again."""


def _known_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, fun: Flat, outs: int) -> Any:
    """The values are the first operands, their derivative by the others that of the function."""
    inputs = primals[outs:]
    results = bind(known_call, tuple(primals), {"fun": fun, "outs": outs})
    dense = inexact_tangents(inputs, tangents[outs:])
    active = tuple([tangent is not ZERO for tangent in dense])
    if all([tangent is ZERO for tangent in tangents[outs:]]):
        return results, ZERO
    douts = linear_call(
        *inputs,
        *select(dense, active),
        forward=RecomputedForward(RerunFunction(fun), active, 0),
        backward=RecomputedBackward(RerunFunction(fun), active),
        residuals=len(inputs),
        outs=avals_of(results),
    )
    return results, without_integer_tangents(results, douts)


def _known_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Any:
    outs = params["outs"]
    values = materialize(size, batched[:outs], args[:outs])
    fun = BatchedFunction(params["fun"], size, tuple(batched[outs:]))
    return known_call(*values, *args[outs:], fun=fun, outs=outs)


known_call = Primitive(
    "known_call",
    lambda xp, *operands, fun, outs: tuple(operands[:outs]),
    aval=lambda *avals, fun, outs: avals[:outs],
    parameters={"fun": FUNCTION, "outs": integer(0)},
    batch=_known_batch,
    jvp=_known_jvp,
    multiple=True,
    cost=0,
    calls_python=True,
    body=lambda params: lambda *operands: operands[: params["outs"]],
)
"""(*outputs, *inputs): the outputs of fun(*inputs), which are known; fun runs where their derivative is asked for."""


def _saved_output_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, primitive: Primitive, options: Any) -> Any:
    """The value is the first argument, its derivative by the others that of the primitive."""
    out, *operands = primals
    return out, primitive.tangent_of(tuple(operands), out, tuple(tangents[1:]), dict(options))


def _saved_output_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Any:
    return materialize(size, batched[:1], args[:1])[0]


def _is_primitive(value: Any, avals: Sequence[Aval], params: Params) -> bool:
    return isinstance(value, Primitive)


def _are_options(value: Any, avals: Sequence[Aval], params: Params) -> bool:
    """Whether the primitive takes these parameters and the operands behind the first, and gives the first."""
    if type(value) is not tuple:
        return False
    primitive, options = params["primitive"], dict(value)
    refusal = refusal_of(primitive, avals[1:], options)
    out = None if refusal else primitive.aval(*avals[1:], **options)
    return isinstance(out, Aval) and (out.shape, out.dtype) == (avals[0].shape, avals[0].dtype)


saved_output = Primitive(
    "saved_output",
    lambda xp, out, *operands, primitive, options: out,
    aval=lambda out, *operands, primitive, options: out,
    parameters={"primitive": Kind("a primitive", _is_primitive), "options": Kind("its parameters", _are_options)},
    batch=_saved_output_batch,
    jvp=_saved_output_jvp,
    cost=0,
    calls_python=True,
    body=lambda params: lambda out, *operands: (out,),
    mask="body",
)
"""primitive(*operands, **options), whose output was saved: it stands for an equation that does not run again."""
