"""Rows whose parameters are functions: custom rules, checkpoint, and the linear calls that they are made of.

A function here takes and returns flat lists of arrays. Interpreters need nothing special: the rows' rules re-bind
them with transformed functions, which come from `mapped_functions`, `custom_rules` and `recomputation`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from func.interpreters import drivers
from func.interpreters.calls.batched_calls import (
    Mapped,
    MappedBackward,
    MappedCustomBackward,
    MappedForward,
    MappedPush,
    MappedRule,
)
from func.interpreters.calls.custom_rules import (
    CustomBackward,
    CustomForward,
    TangentOf,
    TangentOfRule,
    TransposedBackward,
)
from func.interpreters.calls.recomputation import RecomputedBackward, RecomputedForward, run_with_policy
from func.interpreters.core import (
    ZERO,
    Array,
    Aval,
    Params,
    Primitive,
    Shaped,
    bind,
    dtype_of,
    is_inexact,
    materialize,
    shape_of,
    unboxed,
    zeros_like,
)
from func.interpreters.core.wiring import WIRING


def _call_impl(xp: Any, *args: Array, fun: Any, **params: Any) -> tuple[Array, ...]:
    return tuple([unboxed(out) for out in fun(*args)])


def _call_aval(*avals: Any, fun: Any, **params: Any) -> tuple[Any, ...]:
    return drivers.output_avals(fun, avals)


class CallPrimitive(Primitive):
    """A row that calls its `fun`. Concrete arguments may meet tracers inside, so it runs the function itself."""

    __slots__ = ()


def _materialized(primals: Sequence[Array], tangents: Sequence[Any]) -> list[Any]:
    return [
        (zeros_like(p) if is_inexact(dtype_of(p)) else ZERO) if t is ZERO else t
        for p, t in zip(primals, tangents, strict=True)
    ]


def _avals(values: Sequence[Array]) -> tuple[Aval, ...]:
    return tuple([Aval(shape_of(value), dtype_of(value)) for value in values])


# --- custom_jvp -------------------------------------------------------------------------------------------------


def _custom_jvp_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, fun: Any, rule: Any) -> Any:
    return rule(primals, _materialized(primals, tangents))


def _custom_jvp_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Any:
    which = tuple(batched)
    return custom_jvp_call(
        *args,
        fun=Mapped(params["fun"], size, which),
        rule=MappedRule(params["rule"], size, which),
    )


custom_jvp_call = CallPrimitive(
    "custom_jvp_call",
    _call_impl,
    aval=_call_aval,
    batch=_custom_jvp_batch,
    jvp=_custom_jvp_jvp,
    multiple=True,
    cost=0,
    calls_python=True,
    body=lambda params: params["fun"],
)
"""fun(*args), differentiated by rule(primals, tangents) -> (outs, tangents of outs)."""


# --- linear_call: a linear map known in both directions ---------------------------------------------------------


def _linear_call_impl(
    xp: Any, *args: Array, forward: Any, backward: Any, residuals: int, outs: Any
) -> tuple[Array, ...]:
    return tuple(forward(*args))


def _linear_call_jvp(
    primals: Sequence[Array],
    tangents: Sequence[Any],
    *,
    forward: Any,
    backward: Any,
    residuals: int,
    outs: Any,
) -> Any:
    out, dout = drivers.jvp_flat(forward, primals, tangents)
    return out, dout


def _linear_call_transpose(
    ct: Any, *operands: Any, forward: Any, backward: Any, residuals: int, outs: Any
) -> tuple[Any, ...]:
    known = operands[:residuals]
    linear = operands[residuals:]
    if any([isinstance(x, Shaped) for x in known]):
        raise AssertionError("a linear call was transposed with respect to its residuals")
    cts = backward(known, ct)
    return (
        *[ZERO] * residuals,
        *[c if isinstance(x, Shaped) else ZERO for x, c in zip(linear, cts, strict=True)],
    )


def _linear_call_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Any:
    which = tuple(batched)
    residuals = params["residuals"]
    return linear_call(
        *args,
        forward=Mapped(params["forward"], size, which),
        backward=MappedBackward(params["backward"], size, which, residuals),
        residuals=residuals,
        outs=tuple([Aval((size, *out.shape), out.dtype) for out in params["outs"]]),
    )


linear_call = CallPrimitive(
    "linear_call",
    _linear_call_impl,
    aval=lambda *avals, outs, **params: outs,
    batch=_linear_call_batch,
    jvp=_linear_call_jvp,
    transpose=_linear_call_transpose,
    multiple=True,
    cost=0,
    calls_python=True,
    body=lambda params: params["forward"],
)
"""forward(*residuals, *tangents), linear in the tangents; backward(residuals, cts) is its transpose."""


# --- custom_vjp and checkpoint ----------------------------------------------------------------------------------


def _custom_vjp_jvp(
    primals: Sequence[Array], tangents: Sequence[Any], *, fun: Any, fwd: Any, bwd: Any, push: Any = None
) -> Any:
    outs, residuals = fwd(*primals)
    given = _materialized(primals, tangents)
    active = [i for i, t in enumerate(given) if t is not ZERO]
    if not active:
        return tuple(outs), ZERO
    avals = tuple([(shape_of(p), dtype_of(p)) for p in primals])
    outs_info = tuple([(shape_of(o), dtype_of(o)) for o in outs])
    backward = CustomBackward(bwd, tuple(active), avals, outs_info)
    forward: Any
    if push is None:
        forward = TransposedBackward(backward, len(residuals), tuple([avals[i] for i in active]))
    else:
        forward = CustomForward(push, len(residuals), tuple(active), len(primals), outs_info)
    dout = linear_call(
        *residuals,
        *[given[i] for i in active],
        forward=forward,
        backward=backward,
        residuals=len(residuals),
        outs=_avals(outs),
    )
    return tuple(outs), tuple([t if is_inexact(dtype_of(o)) else ZERO for o, t in zip(outs, dout, strict=True)])


def _custom_vjp_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Any:
    which = tuple(batched)
    fwd = MappedForward(params["fwd"], size, which)
    return custom_vjp_call(
        *args,
        fun=Mapped(params["fun"], size, which),
        fwd=fwd,
        bwd=MappedCustomBackward(params["bwd"], size, which),
        **({} if params.get("push") is None else {"push": MappedPush(params["push"], size, which)}),
    )


custom_vjp_call = CallPrimitive(
    "custom_vjp_call",
    _call_impl,
    aval=_call_aval,
    batch=_custom_vjp_batch,
    jvp=_custom_vjp_jvp,
    multiple=True,
    cost=0,
    calls_python=True,
    body=lambda params: params["fun"],
)
"""fun(*args); fwd(*args) -> (outs, residuals); bwd(residuals, cts) -> cotangents of the args; and, where a tangent rule
is given too, push(residuals, tangents) -> tangents of the outs."""


def _checkpoint_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, fun: Any, policy: Any) -> Any:
    given = _materialized(primals, tangents)
    active = tuple([i for i, t in enumerate(given) if t is not ZERO])
    outs, saved = run_with_policy(fun, primals, policy)
    if not active:
        return tuple(outs), ZERO
    again = saved.again
    dout = linear_call(
        *primals,
        *saved.values,
        *[given[i] for i in active],
        forward=RecomputedForward(again, active, len(primals), len(saved.values)),
        backward=RecomputedBackward(again, active, len(primals)),
        residuals=len(primals) + len(saved.values),
        outs=_avals(outs),
    )
    return tuple(outs), tuple([t if is_inexact(dtype_of(o)) else ZERO for o, t in zip(outs, dout, strict=True)])


def _checkpoint_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Any:
    return checkpoint_call(*args, fun=Mapped(params["fun"], size, tuple(batched)), policy=params["policy"])


checkpoint_call = CallPrimitive(
    "checkpoint_call",
    _call_impl,
    aval=_call_aval,
    batch=_checkpoint_batch,
    jvp=_checkpoint_jvp,
    multiple=True,
    cost=0,
    calls_python=True,
    body=lambda params: params["fun"],
)
"""fun(*args), keeping for the pullback only the arguments and what the policy names; the rest is computed again."""


# --- custom_vmap ------------------------------------------------------------------------------------------------


def _custom_vmap_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, fun: Any, rule: Any) -> Any:
    given = _materialized(primals, tangents)
    active = tuple([i for i, t in enumerate(given) if t is not ZERO])
    if not active:
        return bind(custom_vmap_call, tuple(primals), {"fun": fun, "rule": rule}), ZERO
    outs = bind(custom_vmap_call, tuple(primals), {"fun": fun, "rule": rule})
    douts = custom_vmap_call(
        *primals,
        *[given[i] for i in active],
        fun=TangentOf(fun, active, len(primals)),
        rule=TangentOfRule(rule, active, len(primals)),
    )
    return outs, tuple([t if is_inexact(dtype_of(o)) else ZERO for o, t in zip(outs, douts, strict=True)])


def _custom_vmap_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Any:
    outs, out_batched = params["rule"](size, tuple(batched), args)
    return tuple(materialize(size, out_batched, outs))


def _custom_vmap_transpose(ct: Any, *operands: Any, fun: Any, rule: Any) -> tuple[Any, ...]:
    """A custom_vmap inside a linear program: transpose the function it calls."""
    return drivers.transpose_flat(fun, operands, ct)


custom_vmap_call = CallPrimitive(
    "custom_vmap_call",
    _call_impl,
    aval=_call_aval,
    batch=_custom_vmap_batch,
    jvp=_custom_vmap_jvp,
    transpose=_custom_vmap_transpose,
    multiple=True,
    cost=0,
    calls_python=True,
    body=lambda params: params["fun"],
)
"""fun(*args), batched by rule(size, batched, args) -> (outs, out_batched)."""


# --- a value that is already known ------------------------------------------------------------------------------


def _given_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, primitive: Any, options: Any) -> Any:
    """The value comes from the first argument, its dependence on the others from the row."""
    out, *operands = primals
    return out, primitive.tangent_of(tuple(operands), out, tuple(tangents[1:]), dict(options))


def _given_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Any:
    return materialize(size, batched[:1], args[:1])[0]


given = Primitive(
    "given",
    lambda xp, out, *operands, primitive, options: out,
    aval=lambda out, *operands, primitive, options: out,
    batch=_given_batch,
    jvp=_given_jvp,
    cost=0,
    calls_python=True,
    body=lambda params: lambda out, *operands: (out,),
)
"""row(*operands), whose value was saved: what a checkpoint policy puts in the place of an equation."""

WIRING.saved_output = given
