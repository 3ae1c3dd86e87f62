"""Functions with custom rules: a user's tangent rule, forward and backward rules, or batching rule, as parameters."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from func.backends.records import ValueRecord
from func.interpreters import drivers, nan_safe
from func.interpreters.calls.call_primitives import (
    BatchedFunction,
    CallPrimitive,
    avals_of,
    function_call,
    inexact_tangents,
    linear_call,
    sum_over_batch,
    without_integer_tangents,
)
from func.interpreters.calls.checkpoint import checkpoint_call
from func.interpreters.calls.partition import expand, select
from func.interpreters.calls.primal_run import PrimalRun, is_traced_number, mapping_level
from func.interpreters.calls.series_calls import active_series, present
from func.interpreters.core import (
    EVALUATE,
    ZERO,
    Array,
    Aval,
    Params,
    Shaped,
    Tracer,
    add_tangents,
    aval_of,
    bind,
    dtype_of,
    is_inexact,
    known_value,
    materialize,
    raise_if_captured,
    shape_of,
    unboxed,
    zeros_like,
)
from func.interpreters.core.errors import CustomRuleError, NotDifferentiableError
from func.interpreters.core.parameters import FUNCTION, Kind
from func.interpreters.core.scopes import Entry, Scope, live_entries, live_entry
from func.interpreters.core.wiring import WIRING
from func.interpreters.drivers import Flat
from func.interpreters.host.source import at_line
from func.interpreters.primitives.structural.identity import is_abstract_value, stop_gradient
from func.interpreters.primitives.structural.shapes import convert, full_like
from func.interpreters.stage import DerivedStage, LinearStage, Stage
from func.interpreters.structural_zeros import absent_like, has_mask, without_mask
from func.interpreters.transpose import transpose_program

T = TypeVar("T")
ROUNDING = 4096
"""The largest difference of two runs that count as equal, in units of the last place of the largest number."""
Info: TypeAlias = tuple[tuple[int, ...], Any]
"""The shape and dtype of an argument or output."""


def _infos(values: Sequence[Any]) -> tuple[Info, ...]:
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


class BatchedJvpRule(ValueRecord):
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

    @property
    def series(self) -> Any:
        """The rule's own rule for series, on the batch axis."""
        own = getattr(self.rule, "series", None)
        return own and functools.partial(self._batched_series, own)

    def _batched_series(
        self, rule: Any, order: int, values: Sequence[Array], coefficients: Sequence[Any]
    ) -> Sequence[tuple[Array, Any]]:
        numbers = present(coefficients)
        count = len(values)

        def flat(*args: Array) -> list[Any]:
            passed = iter(args[count:])
            inner = [
                [next(passed) if k in own else ZERO for k in range(1, order + 1)] if own else None for own in numbers
            ]
            return [x for out, own in rule(order, args[:count], inner) for x in (out, *(own or [None] * order))]

        terms = [own[k - 1] for own, ks in zip(coefficients, numbers, strict=True) for k in ks]
        which = (*self.which, *[is_batched for is_batched, ks in zip(self.which, numbers, strict=True) for _ in ks])
        flattened = _batched_optional(flat, self.size, which, [*values, *terms])
        step = order + 1
        rows = [flattened[i : i + step] for i in range(0, len(flattened), step)]
        return [(out, None if own[0] is None else own) for out, *own in rows]


class _CustomJvp(CallPrimitive):
    """A function with a tangent rule."""

    __slots__ = ()

    def apply_series(
        self, order: int, values: tuple[Array, ...], coefficients: Sequence[Any], params: Params
    ) -> Sequence[tuple[Array, Any]]:
        """By the rule's own rule for series, or by its tangents."""
        own_rule = getattr(params["rule"], "series", None)
        if own_rule is None or not any(active_series(values, coefficients)):
            return super().apply_series(order, values, coefficients, params)
        return own_rule(order, values, coefficients)  # type: ignore[no-any-return]


def _custom_jvp_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, fun: Flat, rule: Any) -> Any:
    return rule(primals, inexact_tangents(primals, tangents))


def _custom_jvp_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Any:
    which = tuple(batched)
    return custom_jvp_call(
        *args, fun=BatchedFunction(params["fun"], size, which), rule=BatchedJvpRule(params["rule"], size, which)
    )


custom_jvp_call = function_call(
    "custom_jvp_call", "rule", batch=_custom_jvp_batch, jvp=_custom_jvp_jvp, kind=_CustomJvp
)
"""fun(*args), differentiated by rule(primals, tangents) -> (outs, tangents of outs)."""


def _needing(rule: Any, needed: tuple[bool, ...]) -> Any:
    """A rule that knows the differentiated arguments, if it has a method `needing`."""
    needing = getattr(rule, "needing", None)
    return rule if needing is None else needing(needed)


class CustomBackward(ValueRecord):
    """The user's bwd as the transpose of a linear call: cotangents of the active arguments."""

    bwd: Any
    active: tuple[bool, ...]
    args: tuple[Info, ...]
    outs: tuple[Info, ...]

    def __call__(self, residuals: Sequence[Array], ct: dict[int, Any]) -> list[Array]:
        like = next(iter(ct.values()))
        infos = select(self.args, self.active)
        cts = self.of_active(residuals, ct)
        return [absent_like(like, *info) if ct is ZERO else ct for ct, info in zip(cts, infos, strict=True)]

    def of_active(self, residuals: Sequence[Array], ct: dict[int, Any]) -> list[Any]:
        """The cotangents, ZERO where the rule returns none."""
        like = next(iter(ct.values()))
        if getattr(self.bwd, "takes_missing", False):
            cts = [ct.get(i) for i in range(len(self.outs))]
        else:
            cts = [ct[i] if i in ct else absent_like(like, *info) for i, info in enumerate(self.outs)]
        arg_cts = self._pulled(residuals, cts)
        if len(arg_cts) != len(self.args):
            raise CustomRuleError(
                f"the backward rule returned {len(arg_cts)} cotangents for {len(self.args)} arguments{at_line()}"
            )
        return [self._checked(arg_cts[i], i) for i, is_active in enumerate(self.active) if is_active]

    def _pulled(self, residuals: Sequence[Array], cts: Sequence[Any]) -> Sequence[Any]:
        """The result of bwd, in a pass that may start again."""
        attempt = nan_safe.present_attempt()
        if attempt is None:
            return self._called(residuals, cts)
        with nan_safe.in_attempt(None):
            return attempt.pulled(self.bwd, functools.partial(self._called, residuals), cts)

    def _called(self, residuals: Sequence[Array], cts: Sequence[Any]) -> Sequence[Any]:
        """The result of bwd. If it cannot compute on traced cotangents, it gets arrays, and all elements count as
        reached."""
        bwd = _needing(self.bwd, self.active)
        try:
            return bwd(residuals, cts)  # type: ignore[no-any-return]
        except Exception:
            if not any([has_mask(ct) for ct in cts]):
                raise
        return bwd(residuals, [without_mask(ct) for ct in cts])  # type: ignore[no-any-return]

    def _checked(self, ct: Any, i: int) -> Any:
        shape, dtype = self.args[i]
        if ct is None or ct is ZERO:
            return ZERO
        if shape_of(ct) != shape:
            raise CustomRuleError(
                f"the backward rule returned a cotangent of shape {shape_of(ct)} for argument {i} of shape {shape}"
            )
        return ct if dtype_of(ct) == dtype else convert(ct, dtype=dtype)


class CustomForward(ValueRecord):
    """The user's tangent rule as the forward function of a linear call: push(residuals, tangents), None for zero."""

    push: Any
    residuals: int
    active: tuple[bool, ...]
    args: tuple[Info, ...]
    outs: tuple[Info, ...]

    def __call__(self, *operands: Array) -> list[Any]:
        residuals, active_tangents = operands[: self.residuals], iter(operands[self.residuals :])
        like = operands[self.residuals]
        tangents = [
            next(active_tangents) if is_active else absent_like(like, *info) if is_inexact(info[1]) else None
            for is_active, info in zip(self.active, self.args, strict=True)
        ]
        douts = _needing(self.push, self.active)(residuals, tangents)
        return [absent_like(like, *info) if dout is None else dout for dout, info in zip(douts, self.outs, strict=True)]


class TransposedBackward(ValueRecord):
    """The forward function of a linear call that has a backward function only."""

    backward: CustomBackward
    residuals: int

    def __call__(self, *operands: Array) -> list[Any]:
        residuals, tangents = operands[: self.residuals], operands[self.residuals :]
        outs = self.backward.outs
        inexact = [i for i, (_, dtype) in enumerate(outs) if is_inexact(dtype)]

        def backward(*cts: Array) -> Sequence[Array]:
            return self.backward(residuals, dict(zip(inexact, cts, strict=True)))

        avals = [Aval(*outs[i]) for i in inexact]
        program = drivers.stage_flat(backward, avals, LinearStage("custom_vjp"), tangents[0])
        douts = [absent_like(tangents[0], *info) for info in outs]
        for i, dout in zip(inexact, transpose_program(program, tangents), strict=True):
            if dout is not ZERO:
                douts[i] = dout
        return douts


class BatchedBwd(ValueRecord):
    """A custom_vjp bwd on a leading batch axis; cotangents of unbatched arguments are summed over it."""

    bwd: Any
    size: int
    which: tuple[bool, ...]
    residuals: tuple[bool, ...]

    @property
    def takes_missing(self) -> bool:
        """Whether the pullback accepts None for zero cotangents."""
        return getattr(self.bwd, "takes_missing", False)

    def needing(self, needed: tuple[bool, ...]) -> BatchedBwd:
        """The rule for these arguments."""
        return BatchedBwd(_needing(self.bwd, needed), self.size, self.which, self.residuals)

    def __call__(self, residuals: Sequence[Array], cts: Sequence[Any]) -> list[Any]:
        count = len(residuals)
        has_ct = [ct is not None for ct in cts]

        def pull(*args: Array) -> Sequence[Any]:
            rest = iter(args[count:])
            return self.bwd(args[:count], [next(rest) if has else None for has in has_ct])  # type: ignore[no-any-return]

        given = select(cts, has_ct)
        arg_cts = _batched_optional(pull, self.size, (*self.residuals, *[True] * len(given)), [*residuals, *given])
        return sum_over_batch(arg_cts, self.which)


class BatchedPush(ValueRecord):
    """The tangent rule of a custom_vjp on a leading batch axis."""

    push: Any
    size: int
    which: tuple[bool, ...]
    residuals: tuple[bool, ...]

    def needing(self, needed: tuple[bool, ...]) -> BatchedPush:
        """The rule for these arguments."""
        return BatchedPush(_needing(self.push, needed), self.size, self.which, self.residuals)

    def __call__(self, residuals: Sequence[Array], tangents: Sequence[Any]) -> list[Any]:
        count = len(residuals)
        has_tangent = [tangent is not None for tangent in tangents]

        def push(*args: Array) -> Sequence[Any]:
            rest = iter(args[count:])
            return self.push(args[:count], [next(rest) if has else None for has in has_tangent])  # type: ignore[no-any-return]

        which = (*self.residuals, *select(self.which, has_tangent))
        return _batched_optional(push, self.size, which, [*residuals, *select(tangents, has_tangent)])


class KnownOutputs(NamedTuple):
    """The operands of a custom_vjp besides its rule, and their layout (*arguments, *outputs, *others).

    The rule's residuals are operands; an output among them has the rule's derivative. Residuals in `known` are
    intermediate values: `fun` computes them from the operands in `inputs`.
    """

    args: int
    outs: int
    residuals: tuple[int, ...]
    known: tuple[int, ...]
    inputs: tuple[int, ...]
    fun: Any

    def split(self, operands: Sequence[T]) -> tuple[Sequence[T], Sequence[T], Sequence[T]]:
        """The operands that are arguments, outputs, others."""
        end = self.args + self.outs
        return operands[: self.args], operands[self.args : end], operands[end:]

    def needed(self) -> set[int]:
        """The operands that the rule and its derivatives need."""
        return {*self.residuals, *(self.inputs if self.known else ())}

    def residual_values(self, operands: Sequence[Array]) -> list[Array]:
        """The rule's residuals, with the derivatives of intermediate values if something differentiates."""
        values = dict(enumerate(operands))
        if self.known and any([type(operands[i]) is Tracer for i in self.inputs]):
            known = [operands[i] for i in self.known]
            inputs = [operands[i] for i in self.inputs]
            values.update(zip(self.known, checkpoint_call(*inputs, *known, fun=self.fun, outs=len(known)), strict=True))
        return [values[i] for i in self.residuals]


class _CustomVjp(CallPrimitive):
    """Known outputs with a rule for their derivative: a forward function has computed them in its one run."""

    __slots__ = ()

    def forward(self, primals: tuple[Array, ...], tangents: tuple[Any, ...], params: Params) -> Any:
        layout: KnownOutputs = params["layout"]
        outs = bind(self, primals, params)
        args, _, others = layout.split(primals)
        dargs, douts, _ = layout.split(tangents)  # an output has a tangent if the forward function captured a value
        if all([tangent is ZERO for tangent in dargs]):
            return outs, tuple(douts)
        residuals = layout.residual_values((*args, *outs, *others))
        if "bwd" not in params:
            dense = inexact_tangents(args, dargs)
            pushed = params["push"](residuals, [None if tangent is ZERO else tangent for tangent in dense])
            return outs, without_integer_tangents(outs, pushed)
        active = tuple([t is not ZERO and is_inexact(dtype_of(x)) for x, t in zip(args, dargs, strict=True)])
        if not any(active):
            return outs, tuple(douts)
        backward = CustomBackward(params["bwd"], active, _infos(args), _infos(outs))
        forward: Any
        if params.get("push") is None:
            forward = TransposedBackward(backward, len(residuals))
        else:
            forward = CustomForward(params["push"], len(residuals), active, backward.args, backward.outs)
        by_rule = linear_call(
            *residuals,
            *select(dargs, active),
            forward=forward,
            backward=backward,
            residuals=len(residuals),
            outs=avals_of(outs),
        )
        total = [add_tangents(x, y) for x, y in zip(douts, by_rule, strict=True)]
        return outs, without_integer_tangents(outs, total)

    def record(self, values: tuple[Array, ...], parents: Sequence[Shaped | None], params: Params) -> Any:
        layout: KnownOutputs = params["layout"]
        if "bwd" not in params:
            return super().record(values, parents, params)
        outs = bind(self, values, params)
        needed = layout.needed()
        args, _, others = layout.split(values)
        operands = [x if i in needed else None for i, x in enumerate((*args, *outs, *others))]
        return outs, self, (operands, _infos(args), _infos(outs))

    def retraced(self, saved: Any, lift: Callable[..., Any]) -> Any:
        """The saved values, traced: outputs by the rule, arguments unchanged."""
        operands, args, outs = saved
        start, end = len(args), len(args) + len(outs)
        traced = [lift(None, x, i - start) if start <= i < end else lift(i, x) for i, x in enumerate(operands)]
        return traced, args, outs

    def pull(self, ct: Any, parents: Sequence[Any], saved: Any, params: Params) -> Sequence[Any]:
        layout: KnownOutputs = params["layout"]
        operands, args, outs = saved
        active = tuple([i < len(parents) and parents[i] is not None for i in range(layout.args)])
        cts = [ZERO] * layout.args
        if any(active):
            backward = CustomBackward(params["bwd"], active, args, outs)
            cts = expand(backward.of_active(layout.residual_values(operands), ct), active)
        captured = [ct.get(i, ZERO) for i in range(layout.outs)]
        return [*cts, *captured, *[ZERO] * len(operands)][: len(parents)]

    def pull_linear(self, ct: Any, parents: Sequence[Any], known: Sequence[Any], params: Params) -> Sequence[Any]:
        """For an equation of a linear program: the rule, if its residuals do not depend on the unknowns."""
        layout: KnownOutputs = params["layout"]
        needed = layout.needed()
        if any([known[i] is None for i in needed]):
            raise NotDifferentiableError(f"{self.name} is not linear and cannot be transposed")
        operands = [x if i in needed else None for i, x in enumerate(known)]
        avals = [parent or aval_of(x) for parent, x in zip(parents, known, strict=True)]
        args, outs, others = layout.split(avals)
        cts = self.pull(ct, parents, (operands, _infos(args), _infos(outs)), params)
        return [*cts[: layout.args], *[ZERO] * (layout.outs + len(others))]


def _custom_vjp_batch(size: int, batched: Sequence[bool], operands: Sequence[Array], params: Params) -> Any:
    layout: KnownOutputs = params["layout"]
    push = params.get("push")
    start, end = layout.args, layout.args + layout.outs
    is_known = [start <= i < end or i in layout.known for i in range(len(operands))]
    values = [
        materialize(size, [is_batched], [x])[0] if known else x
        for x, is_batched, known in zip(operands, batched, is_known, strict=True)
    ]
    which = tuple([is_batched or known for is_batched, known in zip(batched, is_known, strict=True)])
    args = which[:start]
    residuals = tuple([which[i] for i in layout.residuals])
    fun = BatchedFunction(layout.fun, size, tuple([which[i] for i in layout.inputs])) if layout.known else None
    return custom_vjp_call(
        *values,
        layout=layout._replace(fun=fun),
        **({"bwd": BatchedBwd(params["bwd"], size, args, residuals)} if "bwd" in params else {}),
        **({} if push is None else {"push": BatchedPush(push, size, args, residuals)}),
    )


custom_vjp_call = _CustomVjp(
    "custom_vjp_call",
    lambda xp, *operands, layout, **params: tuple(layout.split(operands)[1]),
    aval=lambda *avals, layout, **params: layout.split(avals)[1],
    parameters={
        "bwd": FUNCTION.or_absent(),
        "push": FUNCTION.or_absent(),
        "layout": Kind("a layout of operands", lambda value, avals, params: isinstance(value, KnownOutputs)),
    },
    batch=_custom_vjp_batch,
    multiple=True,
    cost=0,
    body=lambda params: lambda *operands: params["layout"].split(operands)[1],
    passes_on=lambda *operands, layout, **params: layout.split(operands)[1],
    layout=lambda *operands, layout, **params: list(layout.split(operands)[1]),
)
"""(*arguments, *outputs, *others): the outputs, with a custom derivative. The pullback is bwd(residuals, cts) ->
cotangents of the arguments. A tangent rule adds push(residuals, tangents) -> tangents of the outputs, which suffices
alone if its primitives can be transposed."""


_RULES: ContextVar[RuleEntry | None] = ContextVar("func_rules", default=None)
"""The innermost rule whose forward function runs; it may have ended."""


class RuleEntry(Entry):
    """The forward function of a rule runs."""

    __slots__ = ("rule",)

    rule: Any


class RuleScope(Scope):
    """The scope in which the forward function of a rule runs."""

    __slots__ = ()

    def __init__(self, rule: Any) -> None:
        entry = RuleEntry(self, live_entry(_RULES))
        entry.rule = rule
        _RULES.set(entry)


def is_own_call(rule: Any) -> bool:
    """Whether the forward function of this rule calls the function of a rule."""
    return any([entry.rule is rule for entry in live_entries(_RULES)])


def call_with_rule(
    args: Sequence[Array],
    forward: Callable[..., tuple[Sequence[Array], Sequence[Any]]],
    bwd: Any,
    push: Any = None,
    rule: Any = None,
) -> tuple[Array, ...]:
    """The outputs of forward(run, *args) -> (outputs, residuals), which runs once, differentiated by a rule."""
    nan_safe.Attempt.ever = True
    run = PrimalRun()
    inputs = [run.lift(stop_gradient(arg), i) if is_traced_number(arg) else unboxed(arg) for i, arg in enumerate(args)]
    WIRING.link_arguments(run, forward, inputs, args)
    places = [(_key(run, x), x) for x in inputs]  # a copy, as the function may write to its arguments
    try:
        with RuleScope(rule):
            outs, residuals = [drivers.without_tensors(values, run) for values in forward(run, *inputs)]
        values = [run.value(out) for out in outs]
        _check_no_captured(args, values)
        positions = {key: i for i, (key, _) in reversed(list(enumerate(places)))}
        for i, out in enumerate(outs, len(args)):
            positions.setdefault(_key(run, out), i)
        operands = [*args, *values]
        layout = _with_residuals(run, len(args), len(outs), residuals, positions, operands)
    finally:
        run.close()
    options = {} if push is None else {"push": push}
    return custom_vjp_call(*operands, bwd=bwd, layout=layout, **options)  # type: ignore[no-any-return]


def call_within_rule(args: Sequence[Array], function: Flat, rule: Flat) -> tuple[Array, ...]:
    """The outputs of function(*args), differentiated as rule(*args): a forward function calls its own function."""
    inputs = [unboxed(stop_gradient(arg) if is_traced_number(arg) else arg) for arg in args]
    outs = function(*inputs)
    return checkpoint_call(*args, *outs, fun=rule, outs=len(outs))  # type: ignore[no-any-return]


def known_outputs(outs: Sequence[Array], args: Sequence[Array], bwd: Any) -> tuple[Array, ...]:
    """Known outputs; a rule of the arguments without residuals differentiates them."""
    layout = KnownOutputs(len(args), len(outs), (), (), (), None)
    return custom_vjp_call(*args, *outs, bwd=bwd, layout=layout, push=bwd)  # type: ignore[no-any-return]


def with_tangents(outs: Sequence[Array], args: Sequence[Array], tangents: Any) -> tuple[Array, ...]:
    """Known outputs with the derivative tangents(args, outs, tangents of the args)."""
    count = len(args)
    layout = KnownOutputs(count, len(outs), tuple(range(count + len(outs))), (), (), None)
    known = [stop_gradient(out) if type(out) is Tracer else out for out in outs]
    return custom_vjp_call(*args, *known, layout=layout, push=TangentRule(tangents, count))  # type: ignore[no-any-return]


class TangentRule(ValueRecord):
    """A tangent rule that is linear by itself: primitives that it applies define its transpose."""

    rule: Any
    args: int

    def __call__(self, residuals: Sequence[Array], tangents: Sequence[Any]) -> Any:
        return self.rule(residuals[: self.args], residuals[self.args :], tangents)


def _key(run: PrimalRun, value: Any) -> int:
    """A key for a value of a run: tracers of one value have one key."""
    return id(value._attached) if run.owns(value) else id(value)


def _check_no_captured(args: Sequence[Array], outs: Sequence[Array]) -> None:
    """Raise if an output depends on the arguments' level otherwise than by the arguments."""
    top = max([arg._interpreter for arg in args if type(arg) is Tracer], key=lambda x: x.level, default=EVALUATE)
    if top.differentiates:
        raise_if_captured(top, outs)


def _with_residuals(
    run: PrimalRun, args: int, outs: int, residuals: Sequence[Any], positions: dict[int, int], operands: list[Array]
) -> KnownOutputs:
    """The layout of the operands; adds residuals that are neither arguments nor outputs to them."""
    chosen: list[int] = []
    known: list[int] = []
    origins: list[Any] = []
    for residual in residuals:
        key = _key(run, residual)
        if key not in positions:
            positions[key] = len(operands)
            if run.owns(residual) or (run.was_read and is_inexact(dtype_of(residual))):
                known.append(len(operands))
                origins.append(residual._attached if run.owns(residual) else None)
            operands.append(run.value(residual))
        chosen.append(positions[key])
    inputs: list[int] = []
    fun = None
    if known:
        fun, arguments, captured = run.replay(origins, range(args))
        inputs = arguments + [len(operands) + i for i in range(len(captured))]
        operands += captured
    return KnownOutputs(args, outs, tuple(chosen), tuple(known), tuple(inputs), fun)


class DualOf(ValueRecord):
    """(*primals, *active tangents) -> outputs and their tangents."""

    fun: Flat
    active: tuple[bool, ...]

    def __call__(self, *args: Array) -> list[Array]:
        count = len(self.active)
        tangents = args[count:]
        outs, douts = drivers.jvp_flat(self.fun, args[:count], expand(tangents, self.active))
        dense = [
            absent_like(tangents[0], shape_of(out), dtype_of(out)) if dout is ZERO else dout
            for out, dout in zip(outs, douts, strict=True)
        ]
        return [*outs, *dense]


class DualOfRule(ValueRecord):
    """The custom_vmap rule of DualOf: the derivative of the rule."""

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

        return DualOf(flat, self.active)(*primals, *tangents), out_batched * 2


class TangentOf(ValueRecord):
    """(*primals, *outputs, *active tangents) -> tangents of the outputs, which `fun` must reproduce."""

    fun: Flat
    active: tuple[bool, ...]
    out_avals: tuple[Aval, ...]

    def split(self, args: Sequence[T]) -> tuple[Sequence[T], Sequence[T]]:
        """(the arguments of DualOf, the outputs)."""
        start, end = len(self.active), len(self.active) + len(self.out_avals)
        return [*args[:start], *args[end:]], args[start:end]

    def __call__(self, *args: Array) -> list[Array]:
        inputs, known = self.split(args)
        duals = DualOf(self.fun, self.active)(*inputs)
        _check_same(duals, known)
        return duals[len(known) :]


class TangentOfRule(ValueRecord):
    """The custom_vmap rule of TangentOf."""

    rule: Any
    tangent: TangentOf

    def __call__(self, size: int, which: tuple[bool, ...], args: Sequence[Array]) -> tuple[list[Array], list[bool]]:
        inputs, known = self.tangent.split(args)
        flags, known_flags = self.tangent.split(which)
        duals, batched = DualOfRule(self.rule, self.tangent.active)(size, tuple(flags), inputs)
        count = len(known)
        _check_same(materialize(size, batched[:count], duals[:count]), materialize(size, known_flags, known))
        return duals[count:], batched[count:]


def are_same(x: Array, y: Array) -> bool:
    """Whether two runs computed the same numbers up to rounding, which depends on the memory layout of batches.

    One of them may lack the batch axes of an outer vmap on which its values do not depend.
    """
    shorter, longer = sorted([shape_of(x), shape_of(y)], key=len)
    if longer[len(longer) - len(shorter) :] != shorter:
        return len(shorter) != len(longer)  # other batch axes: nothing to compare
    if not is_inexact(dtype_of(x)):
        return bool(np.all(x == y))
    largest = np.max(np.abs(x), initial=0.0, where=np.isfinite(x))
    return np.allclose(x, y, rtol=0.0, atol=float(largest) * ROUNDING * np.finfo(dtype_of(x)).eps, equal_nan=True)


def _check_same(outs: Sequence[Array], known: Sequence[Array]) -> None:
    """Whether a function or rule that runs for a derivative reproduces the outputs of its first run."""
    for out, first in zip(outs, known, strict=False):
        x, y = known_value(out), known_value(first)
        if x is None or y is None or not is_inexact(dtype_of(x)):
            continue
        if not are_same(x, y):
            raise CustomRuleError(
                "a function with a custom vmap rule, or the rule, gave other outputs when it ran for its derivative; "
                "that would be the derivative of another function. Draw random numbers outside and pass them as "
                "arguments, or give it a derivative rule as well: a Function with setup_context and vmap runs once."
            )


class TransposeOf(ValueRecord):
    """(*known operands, *cotangents of some outputs) -> cotangents of the other operands, in which fun is linear."""

    fun: Flat
    operands: tuple[Aval | None, ...]
    """None for the operands that are known."""
    outs: tuple[int, ...]

    @property
    def out_avals(self) -> tuple[Aval, ...]:
        """The abstract values of the cotangents."""
        return tuple([aval for aval in self.operands if aval is not None])

    def __call__(self, *args: Array) -> list[Array]:
        count = self.operands.count(None)
        known = iter(args[:count])
        operands = [next(known) if aval is None else aval for aval in self.operands]
        cts = drivers.transpose_flat(self.fun, operands, dict(zip(self.outs, args[count:], strict=True)))
        return [
            full_like(args[-1], 0, aval.shape, aval.dtype) if ct is ZERO else ct
            for ct, aval in zip(cts, self.operands, strict=True)
            if aval is not None
        ]


class TransposeOfRule(ValueRecord):
    """The custom_vmap rule of TransposeOf: the transpose of the rule."""

    rule: Any
    transpose: TransposeOf

    def __call__(self, size: int, which: tuple[bool, ...], args: Sequence[Array]) -> tuple[list[Array], list[bool]]:
        count = self.transpose.operands.count(None)
        flags = iter(which[:count])
        batched = tuple([next(flags) if aval is None else True for aval in self.transpose.operands])

        def flat(*inner: Array) -> Sequence[Array]:
            outs, out_batched = self.rule(size, batched, inner)
            return materialize(size, out_batched, outs)

        operands = tuple([aval and Aval((size, *aval.shape), aval.dtype) for aval in self.transpose.operands])
        cts = materialize(size, which[count:], args[count:])
        outs = TransposeOf(flat, operands, self.transpose.outs)(*args[:count], *cts)
        return outs, [True] * len(outs)


class SeriesOf(ValueRecord):
    """(*values, *coefficients of values) -> outputs, and all coefficients of each output."""

    fun: Flat
    order: int
    present: tuple[tuple[int, ...], ...]
    """For each value the numbers of its coefficients among the operands."""

    def __call__(self, *args: Array) -> list[Array]:
        count = len(self.present)
        passed = iter(args[count:])
        coefficients: list[Any] = []
        for numbers in self.present:
            own = dict(zip(numbers, passed, strict=False))
            coefficients.append([own.get(k, ZERO) for k in range(1, self.order + 1)] if numbers else None)
        series = drivers.taylor_flat(self.fun, self.order, args[:count], coefficients)
        outs = [own[0] for own in series]
        dense = [
            absent_like(args[count], shape_of(out), dtype_of(out)) if x is ZERO else x
            for out, own in zip(outs, series, strict=True)
            for x in own[1:]
        ]
        return [*outs, *dense]


class SeriesOfRule(ValueRecord):
    """The custom_vmap rule of SeriesOf: the rule at series."""

    rule: Any
    series: SeriesOf

    def __call__(self, size: int, which: tuple[bool, ...], args: Sequence[Array]) -> tuple[list[Array], list[bool]]:
        present = self.series.present
        groups = [[i] for i in range(len(present))]  # the operands of each value and its coefficients
        for place, i in enumerate([i for i, numbers in enumerate(present) for _ in numbers], len(present)):
            groups[i].append(place)
        operands = list(args)
        batched = [any([which[place] for place in group]) for group in groups]
        for group in select(groups, batched):
            for place in group:
                (operands[place],) = materialize(size, [which[place]], [operands[place]])
        out_batched: list[bool] = []

        def flat(*inner: Array) -> Sequence[Array]:
            outs: Sequence[Array]
            outs, out_batched[:] = self.rule(size, tuple(batched), inner)
            return outs

        results = SeriesOf(flat, self.series.order, present)(*operands)
        terms = [flag for flag in out_batched for _ in range(self.series.order)]
        return results, [*out_batched, *terms]


class _CustomVmap(CallPrimitive):
    """A function with a batching rule."""

    __slots__ = ()

    def apply_series(
        self, order: int, values: tuple[Array, ...], coefficients: Sequence[Any], params: Params
    ) -> Sequence[tuple[Array, Any]]:
        """The function at series, whose batching rule is the rule at series."""
        active = active_series(values, coefficients)
        numbers = tuple([own if moves else () for own, moves in zip(present(coefficients), active, strict=True)])
        if not any(active):
            return [(out, None) for out in bind(self, values, params)]
        terms = [own[k - 1] for own, ks in zip(coefficients, numbers, strict=True) for k in ks]
        series = SeriesOf(params["fun"], order, numbers)
        results = bind(self, (*values, *terms), {"fun": series, "rule": SeriesOfRule(params["rule"], series)})
        count = len(results) // (order + 1)
        outs = [without_mask(out) for out in results[:count]]
        by_output = [results[count + i * order : count + (i + 1) * order] for i in range(count)]
        return [(out, own if is_inexact(dtype_of(out)) else None) for out, own in zip(outs, by_output, strict=True)]


def _custom_vmap_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, fun: Flat, rule: Any) -> Any:
    dense = inexact_tangents(primals, tangents)
    active = tuple([tangent is not ZERO for tangent in dense])
    if not any(active):
        return bind(custom_vmap_call, tuple(primals), {"fun": fun, "rule": rule}), ZERO
    moving = select(dense, active)
    if not any([is_abstract_value(x) for x in (*primals, *moving)]):
        duals = custom_vmap_call(*primals, *moving, fun=DualOf(fun, active), rule=DualOfRule(rule, active))
        outs, douts = [without_mask(out) for out in duals[: len(duals) // 2]], duals[len(duals) // 2 :]
    else:  # the outputs may be needed before the tangents
        outs = bind(custom_vmap_call, tuple(primals), {"fun": fun, "rule": rule})
        tangent = TangentOf(fun, active, avals_of(outs))
        douts = custom_vmap_call(*primals, *outs, *moving, fun=tangent, rule=TangentOfRule(rule, tangent))
    return outs, without_integer_tangents(outs, douts)


def _custom_vmap_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Any:
    outs, out_batched = params["rule"](size, tuple(batched), args)
    return tuple(materialize(size, out_batched, outs))


def _custom_vmap_transpose(ct: dict[int, Any], *operands: Any, fun: Flat, rule: Any) -> tuple[Any, ...]:
    """In a linear program: the transposes of the function and of the rule."""
    avals = tuple([Aval(x.shape, x.dtype) if isinstance(x, Shaped) else None for x in operands])
    transpose = TransposeOf(fun, avals, tuple(ct))
    known = [x for x in operands if not isinstance(x, Shaped)]
    cts = iter(custom_vmap_call(*known, *ct.values(), fun=transpose, rule=TransposeOfRule(rule, transpose)))
    return tuple([ZERO if aval is None else next(cts) for aval in avals])


custom_vmap_call = function_call(
    "custom_vmap_call",
    "rule",
    batch=_custom_vmap_batch,
    jvp=_custom_vmap_jvp,
    transpose=_custom_vmap_transpose,
    kind=_CustomVmap,
)
"""fun(*args), batched by rule(size, batched, args) -> (outs, out_batched)."""


def _example(args: Sequence[Array]) -> Array:
    """A value on the backend of the arguments."""
    return next((arg for arg in args if type(arg) is Tracer), None)


def call_with_batch_rule(args: Sequence[Array], fun: Flat, rule: Any) -> tuple[Array, ...]:
    """fun(*args) with a rule for batches. Under trace the function runs once: its program replaces it."""
    if isinstance(mapping_level(args), Stage):
        fun = drivers.stage_flat(fun, avals_of(args), DerivedStage("custom_vmap"), _example(args))
    return custom_vmap_call(*args, fun=fun, rule=rule)  # type: ignore[no-any-return]
