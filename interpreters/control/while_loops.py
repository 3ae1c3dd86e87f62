"""Loops of unknown length as one primitive: `while_call(*cond_consts, *body_consts, *carry, cond=..., body=...)`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from func.interpreters.calls.call_primitives import CallPrimitive
from func.interpreters.calls.compiled_call import (
    CompiledCall,
    agree,
    batched_avals,
    outputs_and_tangents,
    snapshots,
    takes,
)
from func.interpreters.calls.partition import active_arguments, expand, select
from func.interpreters.calls.series_calls import SeriesForm, active_series, call_with_series, carried_series
from func.interpreters.control.compiled_bodies import (
    active_inputs,
    batched_body,
    choose,
    compiled_function,
    dependents,
    on_backend,
    representative,
    split,
    strong,
    unshared,
    without_effects,
    zeros,
)
from func.interpreters.control.masked_bodies import BOOL, masked_body, operands_with_masks, outputs_with_masks
from func.interpreters.core import ZERO, Array, Aval, Params, Shaped, dtype_of, materialize, shape_of
from func.interpreters.core.errors import NotDifferentiableError
from func.interpreters.core.parameters import COMPILED, Kind, is_length
from func.interpreters.host.source import at_line
from func.interpreters.nan_safe import with_fallback
from func.interpreters.primitives.elementwise.table import logical_and
from func.interpreters.primitives.structural.indexing import gather
from func.interpreters.primitives.structural.reductions import reduce_any
from func.interpreters.primitives.structural.slicing import getitem
from func.interpreters.structural_zeros import StructuralZeros, absent_like, has_mask, without_mask


class WhileLoop(NamedTuple):
    """The numbers of consts of the condition and the body."""

    conditions: int
    consts: int


class WhilePrimitive(CallPrimitive):
    """A loop that runs while its condition holds."""

    __slots__ = ()

    def forward(self, primals: tuple[Array, ...], tangents: tuple[Any, ...], params: Params) -> Any:
        cond, loop = params["cond"], params["loop"]

        def push(body: CompiledCall) -> Any:
            outs = self(*primals, cond=cond, body=body, loop=loop)
            return outs, self._tangents(primals, outs, tangents, cond, body, loop)

        return with_fallback(push, (params["body"],), outputs_and_tangents)

    def _tangents(
        self,
        primals: tuple[Array, ...],
        outs: Sequence[Array],
        tangents: tuple[Any, ...],
        cond: CompiledCall,
        body: CompiledCall,
        loop: WhileLoop,
    ) -> Any:
        """The tangents of the carry at the end."""
        active = _active(body, loop, active_arguments(primals, tangents)[loop.conditions :])
        if not any(active[loop.consts :]):
            return ZERO
        conditions, operands = split(primals, loop.conditions)
        like = next(tangent for tangent in tangents if tangent is not ZERO)
        active_tangents = [
            absent_like(like, shape_of(x), dtype_of(x)) if tangent is ZERO else tangent
            for x, tangent in zip(select(operands, active), select(tangents[loop.conditions :], active), strict=True)
        ]
        const_tangents, carry_tangents = split(active_tangents, sum(active[: loop.consts]))
        step = body.memoized(("while jvp", loop, active), lambda: _with_tangents(body, loop, active))
        ignored = tuple([Aval(shape_of(tangent), dtype_of(tangent)) for tangent in carry_tangents])
        test = cond.memoized(("while jvp", ignored), lambda: _ignoring(cond, ignored))
        consts, carry = split(operands, loop.consts)
        inputs = [*conditions, *consts, *const_tangents, *carry, *carry_tangents]
        inner = WhileLoop(loop.conditions, len(consts) + len(const_tangents))
        tangents_after = while_call(*inputs, cond=test, body=step, loop=inner)[len(carry) :]
        return tuple(expand(tangents_after, active[loop.consts :]))

    def apply_masked(self, structural: StructuralZeros, args: tuple[Array, ...], params: Params) -> Any:
        """A loop that carries the masks of its carry too; its condition ignores them."""
        cond, body, loop = params["cond"], params["body"], params["loop"]
        conditions, operands = split(
            [without_mask(x) for x in args[: loop.conditions]] + list(args[loop.conditions :]), loop.conditions
        )
        carries = len(operands) - loop.consts
        masked = masked_body(body, loop.consts, carries, [has_mask(x) for x in operands])
        consts, carried = split(masked.inputs, loop.consts)
        ignored = tuple([Aval(aval.shape, BOOL) for aval in select(body.in_avals[loop.consts :], carried)])
        test = cond.memoized(("while masked", ignored), lambda: _ignoring(cond, ignored))
        inner = WhileLoop(loop.conditions, loop.consts + sum(consts))
        inputs = operands_with_masks(operands, masked.inputs, (loop.consts,))
        outs = while_call(*conditions, *inputs, cond=test, body=masked.body, loop=inner)
        return outputs_with_masks(structural, outs, masked.outputs, ())

    def apply_series(
        self, order: int, values: tuple[Array, ...], coefficients: Sequence[Any], params: Params
    ) -> Sequence[Any]:
        """A loop that carries the coefficients of its carry too; its condition ignores them."""
        cond, body, loop = params["cond"], params["body"], params["loop"]
        conditions, operands = split(values, loop.conditions)
        own = coefficients[loop.conditions :]
        active = _active(body, loop, active_series(operands, own))
        if not any(active[loop.consts :]):
            return [(out, None) for out in self(*values, **params)]
        carries = len(operands) - loop.consts
        form = SeriesForm(
            order,
            carried_series(order, own, active, loop.consts, carries),
            active[loop.consts :],
            (loop.consts, carries),
            (carries,),
        )
        ignored = tuple(form.avals(body.in_avals)[form.counts()[0] + carries :])
        test = cond.memoized(("while series", ignored), lambda: _ignoring(cond, ignored))
        inner = WhileLoop(loop.conditions, form.counts()[0])

        def call(bodies: tuple[CompiledCall, ...], series: list[Array]) -> Sequence[Array]:
            return while_call(*conditions, *series, cond=test, body=bodies[0], loop=inner)  # type: ignore[no-any-return]

        return call_with_series(form, (body,), operands, own, call)

    def record(self, values: tuple[Array, ...], parents: Sequence[Shaped | None], params: Params) -> Any:
        loop = params["loop"]
        active = active_arguments(values, parents)[loop.conditions :]
        if any(_active(params["body"], loop, active)[loop.consts :]):
            _raise()
        return self(*snapshots(values, (False,) * len(values)), **params), None, None


def _raise() -> NoReturn:
    raise NotDifferentiableError(
        "a traced func.while_loop has no reverse-mode derivative: how many steps it takes is not known, and so how "
        f"many residuals the backward pass needs{at_line()}\n"
        "Give a bound, func.while_loop(..., max_steps=n); or use func.fori_loop with bounds that are numbers, or "
        "func.scan; or forward mode (func.jvp, func.jacfwd); or leave func.jit out: outside it the loop is Python."
    )


def _active(body: CompiledCall, loop: WhileLoop, active: Sequence[bool], derivatives: bool = True) -> tuple[bool, ...]:
    """The active inputs of the body."""
    return active_inputs(body, loop.consts, len(body.program.outputs), active, derivatives)


def _with_tangents(body: CompiledCall, loop: WhileLoop, active: tuple[bool, ...]) -> CompiledCall:
    """(consts, their tangents, carry, its tangents) -> (carry, its tangents)."""
    derivative = body.jvp_partition(active)
    known = without_effects(derivative.known)  # effects happened when the values were computed
    consts, carry = split(body.in_avals, loop.consts)
    const_flags, carry_flags = split(active, loop.consts)
    const_tangents, carry_tangents = strong(select(consts, const_flags)), strong(select(carry, carry_flags))

    def step(*values: Array) -> list[Array]:
        c, dc, s, ds = split(values, len(consts), len(const_tangents), len(carry))
        outs, residuals = split(known.run_on(*c, *s), len(carry))
        douts = select(derivative.inline_linear(residuals, [*dc, *ds]), carry_flags)
        return [
            *outs,
            *[zeros(aval) if dout is ZERO else dout for dout, aval in zip(douts, carry_tangents, strict=True)],
        ]

    return compiled_function(step, [*consts, *const_tangents, *carry, *carry_tangents])


def _ignoring(cond: CompiledCall, ignored: Sequence[Aval]) -> CompiledCall:
    """A condition with inputs behind its own, which it ignores."""
    count = len(cond.program.inputs)
    return compiled_function(lambda *values: cond.run_on(*values[:count]), [*cond.in_avals, *ignored])


def _while_impl(xp: Any, *args: Array, cond: CompiledCall, body: CompiledCall, loop: WhileLoop) -> tuple[Any, ...]:
    conditions, consts, start = split(on_backend(xp, args), loop.conditions, loop.consts)
    test, step = cond.executable(xp).call, body.executable(xp).call
    carry: Sequence[Array] = start
    while test(*conditions, *carry)[0]:
        carry = step(*consts, *carry)
    return tuple(start) if carry is start else unshared(body, carry)


def _while_aval(*avals: Aval, cond: CompiledCall, body: CompiledCall, loop: WhileLoop) -> tuple[Aval, ...]:
    return tuple(strong(body.out_avals))


def _while_transpose(ct: Any, *operands: Any, **params: Any) -> NoReturn:
    _raise()


def _while_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Any:
    cond, body, loop = params["cond"], params["body"], params["loop"]
    conditions, consts, carry = split(args, loop.conditions, loop.consts)
    on_conditions, on_consts, on_carry = split(batched, loop.conditions, loop.consts)
    which = _active(body, loop, (*on_consts, *on_carry), False)
    carried = which[loop.consts :]
    if not any(dependents(cond.program, (*on_conditions, *carried), False)):
        test = _of_first_element(cond, size, (*on_conditions, *carried))
        step = batched_body(body, size, which, carried)
        start = [
            materialize(size, (is_batched,), (x,))[0] if needs_axis else x
            for x, is_batched, needs_axis in zip(carry, on_carry, carried, strict=True)
        ]
        outs = while_call(*conditions, *consts, *start, cond=test, body=step, loop=loop)
        return tuple(materialize(size, carried, outs))
    everywhere = (True,) * len(carry)
    start = materialize(size, on_carry, carry)
    test_all = cond.batched(size, (*on_conditions, *everywhere))
    step_all = batched_body(body, size, (*on_consts, *everywhere), everywhere)
    (is_running,) = test_all(*conditions, *start)
    key = "while batch", test_all, size, tuple(on_consts)
    step = body.memoized(key, lambda: _masked(test_all, step_all, size, on_consts, loop))
    test = body.memoized((*key, "any"), lambda: _any_running(test_all, loop))
    inner = WhileLoop(0, loop.conditions + loop.consts)
    outs = while_call(*conditions, *consts, is_running, *start, cond=test, body=step, loop=inner)
    return tuple(outs[1:])


def _of_first_element(cond: CompiledCall, size: int, which: tuple[bool, ...]) -> CompiledCall:
    """A condition that is the same for all batch elements, with a batch axis of the inputs in `which`."""
    if not any(which):
        return cond

    def test(*values: Array) -> Sequence[Array]:
        return cond.run_on(*[_first_element(x) if on else x for x, on in zip(values, which, strict=True)])

    avals = batched_avals(cond.in_avals, size, which)
    return cond.memoized(("while first element", size, which), lambda: compiled_function(test, avals))


def _first_element(x: Array) -> Array:
    return getitem(x, index=(0, *[(0, length, 1) for length in shape_of(x)[1:]]))


def _any_running(test_all: CompiledCall, loop: WhileLoop) -> CompiledCall:
    """(is_running, carry) -> whether some batch element is running."""
    carry = split(test_all.in_avals, loop.conditions)[1]
    avals = [test_all.out_avals[0], *carry]
    return compiled_function(lambda is_running, *_: [reduce_any(is_running, axes=(0,))], avals)


def _masked(
    test_all: CompiledCall, step_all: CompiledCall, size: int, on_consts: Sequence[bool], loop: WhileLoop
) -> CompiledCall:
    """A step of all batch elements; finished elements keep their carry."""
    conditions = split(test_all.in_avals, loop.conditions)[0]
    consts, carry = split(step_all.in_avals, loop.consts)

    def step(*values: Array) -> list[Array]:
        tested, fixed, (is_running,), before = split(values, len(conditions), len(consts), 1)
        elements = representative(size, is_running)
        fixed = [gather(x, elements, axis=0) if on else x for x, on in zip(fixed, on_consts, strict=True)]
        outs = step_all.run_on(*fixed, *[gather(x, elements, axis=0) for x in before])
        after = [choose(is_running, new, old) for new, old in zip(outs, before, strict=True)]
        (goes_on,) = test_all.run_on(*tested, *after)
        return [logical_and(is_running, goes_on), *after]

    return compiled_function(step, [*conditions, *consts, test_all.out_avals[0], *carry])


def _are_sizes(value: Any, avals: Sequence[Aval], params: Params) -> bool:
    return type(value) is WhileLoop and all([is_length(entry) for entry in value])


def _keeps_its_carry(*avals: Aval, cond: CompiledCall, body: CompiledCall, loop: WhileLoop) -> bool:
    """Whether the body takes and returns the carry, and the condition returns a bool."""
    conditions, consts, carry = split(avals, loop.conditions, loop.consts)
    tests = [(aval.shape, aval.dtype) for aval in cond.out_avals]
    return (
        tests == [((), np.dtype(bool))]
        and takes(cond, [*conditions, *carry])
        and takes(body, [*consts, *carry])
        and agree(body.out_avals, carry)
    )


while_call = WhilePrimitive(
    "while_call",
    _while_impl,
    aval=_while_aval,
    parameters={"cond": COMPILED, "body": COMPILED, "loop": Kind("the sizes of a loop", _are_sizes)},
    fits=_keeps_its_carry,
    batch=_while_batch,
    transpose=_while_transpose,
    multiple=True,
)
"""The carry when the condition no longer holds."""
