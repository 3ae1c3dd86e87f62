"""Functions with custom rules: a user's tangent rule, forward and backward rules, or batching rule, as parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from func.interpreters import drivers
from func.interpreters.calls.call_primitives import (
    BatchedFunction,
    avals_of,
    function_call,
    inexact_tangents,
    jvp_with_zeros,
    linear_call,
    sum_over_batch,
    without_integer_tangents,
)
from func.interpreters.calls.partition import expand, select
from func.interpreters.core import (
    ZERO,
    Array,
    Aval,
    Params,
    bind,
    dtype_of,
    is_inexact,
    materialize,
    shape_of,
    zeros_like,
)
from func.interpreters.core.errors import CustomRuleError
from func.interpreters.core.source import at_line
from func.interpreters.drivers import Flat
from func.interpreters.primitives.structural.shapes import convert, full_like
from func.interpreters.stage import DerivedStage
from func.interpreters.transpose import transpose_program

Info: TypeAlias = tuple[tuple[int, ...], Any]
"""The shape and dtype of an argument or output."""


def _infos(values: Sequence[Array]) -> tuple[Info, ...]:
    return tuple([(shape_of(value), dtype_of(value)) for value in values])


def _batched_optional(
    fun: Callable[..., Sequence[Any]], size: int, which: tuple[bool, ...], args: Sequence[Array]
) -> list[Any]:
    """The outputs of a batched function, None where it returns None or ZERO."""
    is_missing: list[bool] = []

    def flat(*inner: Array) -> list[Array]:
        outs = fun(*inner)
        is_missing[:] = [out is None or out is ZERO for out in outs]
        return [out for out in outs if not (out is None or out is ZERO)]

    outs = iter(BatchedFunction(flat, size, which)(*args))
    return [None if missing else next(outs) for missing in is_missing]


@dataclass(frozen=True)
class BatchedJvpRule:
    """A custom_jvp rule on a leading batch axis. A tangent has the axis where its primal has it."""

    rule: Any
    size: int
    which: tuple[bool, ...]

    def __call__(self, primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[list[Array], list[Any]]:
        count = len(primals)
        active = [tangent is not ZERO for tangent in tangents]

        def flat(*args: Array) -> list[Array]:
            outs, douts = self.rule(list(args[:count]), expand(args[count:], active))
            return [*outs, *[zeros_like(o) if d is ZERO else d for o, d in zip(outs, douts, strict=True)]]

        which = (*self.which, *select(self.which, active))
        values = BatchedFunction(flat, self.size, which)(*primals, *select(tangents, active))
        outs, douts = values[: len(values) // 2], values[len(values) // 2 :]
        return outs, list(without_integer_tangents(outs, douts))


def _custom_jvp_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, fun: Flat, rule: Any) -> Any:
    return rule(primals, inexact_tangents(primals, tangents))


def _custom_jvp_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Any:
    which = tuple(batched)
    return custom_jvp_call(
        *args, fun=BatchedFunction(params["fun"], size, which), rule=BatchedJvpRule(params["rule"], size, which)
    )


custom_jvp_call = function_call("custom_jvp_call", "rule", batch=_custom_jvp_batch, jvp=_custom_jvp_jvp)
"""fun(*args), differentiated by rule(primals, tangents) -> (outs, tangents of outs)."""


@dataclass(frozen=True)
class CustomBackward:
    """The user's bwd as the transpose of a linear call: cotangents of the active arguments."""

    bwd: Any
    active: tuple[bool, ...]
    args: tuple[Info, ...]
    outs: tuple[Info, ...]

    def __call__(self, residuals: Sequence[Array], ct: dict[int, Any]) -> list[Array]:
        like = next(iter(ct.values()))
        if getattr(self.bwd, "takes_missing", False):
            cts = [ct.get(i) for i in range(len(self.outs))]
        else:
            cts = [ct[i] if i in ct else full_like(like, 0, *info) for i, info in enumerate(self.outs)]
        arg_cts = self.bwd(residuals, cts)
        if len(arg_cts) != len(self.args):
            raise CustomRuleError(
                f"the backward rule returned {len(arg_cts)} cotangents for {len(self.args)} arguments{at_line()}"
            )
        return [self._checked(arg_cts[i], i, like) for i, is_active in enumerate(self.active) if is_active]

    def _checked(self, ct: Any, i: int, like: Array) -> Array:
        shape, dtype = self.args[i]
        if ct is None or ct is ZERO:
            return full_like(like, 0, shape, dtype)
        if shape_of(ct) != shape:
            raise CustomRuleError(
                f"the backward rule returned a cotangent of shape {shape_of(ct)} for argument {i} of shape {shape}"
            )
        return ct if dtype_of(ct) == dtype else convert(ct, dtype=dtype)


@dataclass(frozen=True)
class CustomForward:
    """The user's tangent rule as the forward function of a linear call: push(residuals, tangents), None for zero."""

    push: Any
    residuals: int
    active: tuple[bool, ...]
    outs: tuple[Info, ...]

    def __call__(self, *operands: Array) -> list[Any]:
        residuals, active_tangents = operands[: self.residuals], iter(operands[self.residuals :])
        like = operands[self.residuals]
        douts = self.push(residuals, [next(active_tangents) if is_active else None for is_active in self.active])
        return [
            full_like(like, 0, *info) if dout is None else dout for dout, info in zip(douts, self.outs, strict=True)
        ]


@dataclass(frozen=True)
class TransposedBackward:
    """The forward function of a linear call of which only the backward function is given."""

    backward: CustomBackward
    residuals: int

    def __call__(self, *operands: Array) -> list[Any]:
        residuals, tangents = operands[: self.residuals], operands[self.residuals :]
        outs = self.backward.outs
        inexact = [i for i, (_, dtype) in enumerate(outs) if is_inexact(dtype)]

        def backward(*cts: Array) -> Sequence[Array]:
            return self.backward(residuals, dict(zip(inexact, cts, strict=True)))

        avals = [Aval(*outs[i]) for i in inexact]
        program = drivers.stage_flat(backward, avals, DerivedStage("custom_vjp"), tangents[0])
        douts = [full_like(tangents[0], 0, *info) for info in outs]
        for i, dout in zip(inexact, transpose_program(program, tangents), strict=True):
            if dout is not ZERO:
                douts[i] = dout
        return douts


@dataclass(frozen=True)
class BatchedFwd:
    """A custom_vjp fwd on a leading batch axis, which all outputs and residuals have."""

    fwd: Any
    size: int
    which: tuple[bool, ...]

    def __call__(self, *args: Array) -> tuple[list[Array], list[Array]]:
        output_count = 0

        def flat(*inner: Array) -> list[Array]:
            nonlocal output_count
            outs, residuals = self.fwd(*inner)
            output_count = len(outs)
            return [*outs, *residuals]

        values = BatchedFunction(flat, self.size, self.which)(*args)
        return values[:output_count], values[output_count:]


@dataclass(frozen=True)
class BatchedBwd:
    """A custom_vjp bwd on a leading batch axis; cotangents of unbatched arguments are summed over it."""

    bwd: Any
    size: int
    which: tuple[bool, ...]

    def __call__(self, residuals: Sequence[Array], cts: Sequence[Array]) -> list[Any]:
        count = len(residuals)
        arg_cts = _batched_optional(
            lambda *args: self.bwd(args[:count], args[count:]),
            self.size,
            (True,) * (count + len(cts)),
            [*residuals, *cts],
        )
        return sum_over_batch(arg_cts, self.which)


@dataclass(frozen=True)
class BatchedPush:
    """The tangent rule of a custom_vjp on a leading batch axis."""

    push: Any
    size: int
    which: tuple[bool, ...]

    def __call__(self, residuals: Sequence[Array], tangents: Sequence[Any]) -> list[Any]:
        count = len(residuals)
        has_tangent = [tangent is not None for tangent in tangents]

        def push(*args: Array) -> Sequence[Any]:
            rest = iter(args[count:])
            return self.push(args[:count], [next(rest) if has else None for has in has_tangent])  # type: ignore[no-any-return]

        which = (True,) * count + tuple(select(self.which, has_tangent))
        return _batched_optional(push, self.size, which, [*residuals, *select(tangents, has_tangent)])


def _custom_vjp_jvp(
    primals: Sequence[Array], tangents: Sequence[Any], *, fun: Flat, fwd: Any, bwd: Any, push: Any = None
) -> Any:
    outs, residuals = fwd(*primals)
    dense = inexact_tangents(primals, tangents)
    active = tuple([tangent is not ZERO for tangent in dense])
    if not any(active):
        return tuple(outs), ZERO
    backward = CustomBackward(bwd, active, _infos(primals), _infos(outs))
    forward: Any
    if push is None:
        forward = TransposedBackward(backward, len(residuals))
    else:
        forward = CustomForward(push, len(residuals), active, backward.outs)
    douts = linear_call(
        *residuals,
        *select(dense, active),
        forward=forward,
        backward=backward,
        residuals=len(residuals),
        outs=avals_of(outs),
    )
    return tuple(outs), without_integer_tangents(outs, douts)


def _custom_vjp_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Any:
    which = tuple(batched)
    push = params.get("push")
    return custom_vjp_call(
        *args,
        fun=BatchedFunction(params["fun"], size, which),
        fwd=BatchedFwd(params["fwd"], size, which),
        bwd=BatchedBwd(params["bwd"], size, which),
        **({} if push is None else {"push": BatchedPush(push, size, which)}),
    )


custom_vjp_call = function_call("custom_vjp_call", "fwd", "bwd", batch=_custom_vjp_batch, jvp=_custom_vjp_jvp)
"""fun(*args); fwd(*args) -> (outs, residuals); bwd(residuals, cts) -> cotangents of the args. With a tangent rule also
push(residuals, tangents) -> tangents of the outs."""


@dataclass(frozen=True)
class TangentOf:
    """(*primals, *active tangents) -> tangents of the outputs."""

    fun: Flat
    active: tuple[bool, ...]

    def __call__(self, *args: Array) -> list[Array]:
        count = len(self.active)
        return jvp_with_zeros(self.fun, args[:count], args[count:], self.active)


@dataclass(frozen=True)
class TangentOfRule:
    """The custom_vmap rule of TangentOf: the derivative of the rule."""

    rule: Any
    active: tuple[bool, ...]

    def __call__(self, size: int, which: tuple[bool, ...], args: Sequence[Array]) -> tuple[list[Array], list[bool]]:
        count = len(self.active)
        primals, tangents = list(args[:count]), list(args[count:])
        primals_batched, tangents_batched = list(which[:count]), list(which[count:])
        for k, i in enumerate([i for i, is_active in enumerate(self.active) if is_active]):
            if primals_batched[i] or tangents_batched[k]:  # then both get the batch axis
                (primals[i],) = materialize(size, [primals_batched[i]], [primals[i]])
                (tangents[k],) = materialize(size, [tangents_batched[k]], [tangents[k]])
                primals_batched[i] = True
        out_batched: list[bool] = []

        def flat(*inner: Array) -> Sequence[Array]:
            outs: Sequence[Array]
            outs, out_batched[:] = self.rule(size, tuple(primals_batched), inner)
            return outs

        return jvp_with_zeros(flat, primals, tangents, self.active), out_batched


def _custom_vmap_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, fun: Flat, rule: Any) -> Any:
    dense = inexact_tangents(primals, tangents)
    active = tuple([tangent is not ZERO for tangent in dense])
    outs = bind(custom_vmap_call, tuple(primals), {"fun": fun, "rule": rule})
    if not any(active):
        return outs, ZERO
    tangent_fun, tangent_rule = TangentOf(fun, active), TangentOfRule(rule, active)
    douts = custom_vmap_call(*primals, *select(dense, active), fun=tangent_fun, rule=tangent_rule)
    return outs, without_integer_tangents(outs, douts)


def _custom_vmap_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Any:
    outs, out_batched = params["rule"](size, tuple(batched), args)
    return tuple(materialize(size, out_batched, outs))


def _custom_vmap_transpose(ct: dict[int, Any], *operands: Any, fun: Flat, rule: Any) -> tuple[Any, ...]:
    """In a linear program: the transpose of the function itself."""
    return drivers.transpose_flat(fun, operands, ct)


custom_vmap_call = function_call(
    "custom_vmap_call", "rule", batch=_custom_vmap_batch, jvp=_custom_vmap_jvp, transpose=_custom_vmap_transpose
)
"""fun(*args), batched by rule(size, batched, args) -> (outs, out_batched)."""
