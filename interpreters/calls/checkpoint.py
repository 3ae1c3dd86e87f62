"""Checkpoints: outputs that func computes again for derivatives, and the values of the first run that a policy
saves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from func.backends.records import ValueRecord
from func.interpreters import core, nan_safe
from func.interpreters.calls.call_primitives import (
    BatchedFunction,
    CallPrimitive,
    avals_of,
    jvp_with_zeros,
    linear_call,
    without_integer_tangents,
)
from func.interpreters.calls.partition import expand, select
from func.interpreters.calls.primal_run import PrimalRun, is_traced_number
from func.interpreters.core import ZERO, Array, Aval, Params, Primitive, Shaped
from func.interpreters.core.parameters import FUNCTION, Kind, integer, parameter_error
from func.interpreters.core.wiring import WIRING
from func.interpreters.drivers import Flat, pull_flat, without_tensors
from func.interpreters.primitives.structural.identity import shielded, stop_gradient
from func.interpreters.structural_zeros import absent_like


class RecomputedForward(ValueRecord):
    """(*inputs, *active tangents) -> tangents of the outputs, which it computes again."""

    fun: Flat
    active: tuple[bool, ...]

    def __call__(self, *operands: Array) -> list[Array]:
        count = len(self.active)
        return jvp_with_zeros(self.fun, shielded(operands[:count]), operands[count:], self.active)


class RecomputedBackward(ValueRecord):
    """(inputs, cotangents) -> cotangents of the active inputs; it computes the outputs again."""

    fun: Flat
    active: tuple[bool, ...]

    def __call__(self, inputs: Sequence[Array], ct: dict[int, Any]) -> list[Array]:
        attempt = nan_safe.present_attempt()
        if attempt is not None and _calls_user(self.fun):
            attempt.check(ct.values())
        inputs = shielded(inputs)
        active = [i for i, is_active in enumerate(self.active) if is_active]
        cts = pull_flat(self.fun, inputs, active, ct)
        like = next(iter(ct.values()))
        return [
            absent_like(like, core.shape_of(inputs[i]), core.dtype_of(inputs[i])) if x_ct is ZERO else x_ct
            for i, x_ct in zip(active, cts, strict=True)
        ]


def _calls_user(fun: Any) -> bool:
    """Whether a function calls that of the user again, instead of repeating its recorded primitives."""
    while isinstance(fun, BatchedFunction):
        fun = fun.fun
    return isinstance(fun, SelectedOutputs)


class _Checkpoint(CallPrimitive):
    """Known outputs; for their derivatives a function computes them again from its inputs."""

    __slots__ = ()

    def series_body(self, params: Params) -> Flat:
        """The replacement in Taylor mode: the outputs, computed again."""
        return lambda *operands: params["fun"](*operands[: len(operands) - params["outs"]])

    def forward(self, primals: tuple[Array, ...], tangents: tuple[Any, ...], params: Params) -> Any:
        fun, count = params["fun"], len(primals) - params["outs"]
        results = core.bind(self, primals, params)
        inputs = primals[:count]
        active = tuple([tangent is not ZERO for tangent in tangents[:count]])
        if not any(active):
            return results, ZERO
        douts = linear_call(
            *inputs,
            *select(tangents[:count], active),
            forward=RecomputedForward(fun, active),
            backward=RecomputedBackward(fun, active),
            residuals=count,
            outs=avals_of(results),
        )
        return results, without_integer_tangents(results, douts)

    def record(self, values: tuple[Array, ...], parents: Sequence[Shaped | None], params: Params) -> Any:
        outs = core.bind(self, values, params)
        return outs, self, values[: len(values) - params["outs"]]

    def retraced(self, saved: Any, lift: Callable[..., Any]) -> Any:
        """The saved values, traced."""
        return [lift(place, x) for place, x in enumerate(saved)]

    def pull(self, ct: Any, parents: Sequence[Any], saved: Any, params: Params) -> Sequence[Any]:
        active = tuple([i < len(parents) and parents[i] is not None for i in range(len(saved))])
        cts = expand(RecomputedBackward(params["fun"], active)(saved, ct), active)
        return [*cts, *[ZERO] * params["outs"]][: len(parents)]


def _checkpoint_batch(size: int, batched: Sequence[bool], operands: Sequence[Array], params: Params) -> Any:
    outs = params["outs"]
    count = len(operands) - outs
    values = core.materialize(size, batched[count:], operands[count:])
    fun = BatchedFunction(params["fun"], size, tuple(batched[:count]))
    return checkpoint_call(*operands[:count], *values, fun=fun, outs=outs)


checkpoint_call = _Checkpoint(
    "checkpoint_call",
    lambda xp, *operands, fun, outs: operands[len(operands) - outs :],
    aval=lambda *avals, fun, outs: avals[len(avals) - outs :],
    parameters={"fun": FUNCTION, "outs": integer(0)},
    batch=_checkpoint_batch,
    multiple=True,
    cost=0,
    body=lambda params: lambda *operands: operands[len(operands) - params["outs"] :],
    passes_on=lambda *operands, fun, outs: operands[len(operands) - outs :],
    layout=lambda *operands, fun, outs: list(operands[len(operands) - outs :]),
    mask="body",
)
"""(*inputs, *outputs): the outputs of fun(*inputs), which are known. For their derivatives fun computes them again; a
checkpoint saves the inputs in place of the intermediate values."""


class SelectedOutputs(ValueRecord):
    """The outputs of a function at some places."""

    fun: Flat
    places: tuple[int, ...]

    def __call__(self, *args: Array) -> list[Array]:
        outs = self.fun(*args)
        return [outs[place] for place in self.places]


def checkpointed(fun: Flat, args: Sequence[Array], policy: Any = None, rerun: Flat | None = None) -> list[Array]:
    """The outputs of a function, of which func saves `args` and the values that policy(primitive, params) chooses.

    Derivatives apply the recorded primitives again, or call `rerun(*args)`, unless the function has reached traced
    values that are not among the arguments. So do derivatives of values that live on elsewhere.
    """
    nan_safe.Attempt.ever = True
    given, args = args, [core.snapshot(arg) for arg in args]
    run = PrimalRun(args, policy)
    inputs = [
        run.lift(stop_gradient(arg), i) if is_traced_number(arg) else core.unboxed(arg) for i, arg in enumerate(args)
    ]
    WIRING.link_arguments(run, fun, inputs, given)
    try:
        outs = without_tensors(fun(*inputs), run)
    finally:
        run.close()
    places = tuple([i for i, out in enumerate(outs) if run.owns(out)])
    if places:
        again = None if rerun is None else SelectedOutputs(rerun, places)
        known = run.with_derivative([outs[i] for i in places], again)
        for i, value in zip(places, known, strict=True):
            outs[i] = value
    return outs


def _saved_output_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, primitive: Primitive, options: Any) -> Any:
    """The value of the first argument, with the derivative of the primitive by the others."""
    out = core.bind(saved_output, tuple(primals), {"primitive": primitive, "options": options})
    return out, primitive.tangent_of(tuple(primals[1:]), out, tuple(tangents[1:]), dict(options))


class AppliedPrimitive(ValueRecord):
    """A primitive with its parameters, as a flat function."""

    primitive: Primitive
    options: Any

    def __call__(self, *operands: Array) -> list[Array]:
        return [core.bind(self.primitive, operands, dict(self.options))]


def _saved_output_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Any:
    """The saved batch, with the derivative of the batched primitive."""
    fun = BatchedFunction(AppliedPrimitive(params["primitive"], params["options"]), size, tuple(batched[1:]))
    return checkpoint_call(*args[1:], *core.materialize(size, batched[:1], args[:1]), fun=fun, outs=1)[0]


def _is_primitive(value: Any, avals: Sequence[Aval], params: Params) -> bool:
    return isinstance(value, Primitive)


def _are_options(value: Any, avals: Sequence[Aval], params: Params) -> bool:
    """Whether the primitive accepts these parameters and the operands behind the first, and returns the first."""
    if type(value) is not tuple:
        return False
    primitive, options = params["primitive"], dict(value)
    reason = parameter_error(primitive, avals[1:], options)
    out = None if reason else primitive.aval(*avals[1:], **options)
    return isinstance(out, Aval) and (out.shape, out.dtype) == (avals[0].shape, avals[0].dtype)


saved_output = Primitive(
    "saved_output",
    lambda xp, out, *operands, primitive, options: out,
    aval=lambda out, *operands, primitive, options: out,
    parameters={"primitive": Kind("a primitive", _is_primitive), "options": Kind("its parameters", _are_options)},
    batch=_saved_output_batch,
    jvp=_saved_output_jvp,
    cost=0,
    body=lambda params: lambda out, *operands: (out,),
    mask="body",
)
"""primitive(*operands, **options), whose output is saved: it represents an equation that does not run again."""
