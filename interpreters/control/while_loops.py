"""Loops of unknown length as one row: `while_call(*condition consts, *body consts, *carry, cond=..., body=...)`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

from func.interpreters.calls.call_primitives import CallPrimitive
from func.interpreters.calls.compiled_call import CompiledCall
from func.interpreters.control.bodies import (
    any_nan,
    borrowed,
    dependents,
    derived,
    forward_half,
    input_avals,
    is_moving,
    on_backend,
    parts,
    remembered,
    select,
    settled,
    spread,
    stepper,
    strong,
    unshared,
    zeros,
)
from func.interpreters.control.scan import over_lanes
from func.interpreters.control.scan_derivatives import Loop, active_carries
from func.interpreters.core import ZERO, Array, Aval, Params, Shaped, dtype_of, materialize, shape_of, zeros_like
from func.interpreters.core.errors import NotDifferentiableError
from func.interpreters.core.source import at_line
from func.interpreters.primitives.elementwise.table import logical_and
from func.interpreters.primitives.structural.indexing import gather
from func.interpreters.primitives.structural.reductions import reduce_any
from func.interpreters.primitives.structural.slicing import getitem


class While(NamedTuple):
    """How many consts the condition and the body have."""

    conditions: int
    consts: int


class WhilePrimitive(CallPrimitive):
    """A loop that goes on while its condition holds."""

    __slots__ = ()

    def forward(self, primals: tuple[Array, ...], tangents: tuple[Any, ...], params: Params) -> Any:
        cond, body, loop = params["cond"], params["body"], params["loop"]
        outs = self(*primals, **params)
        if body.pulls and any_nan(outs):
            return self.forward(primals, tangents, params | {"body": body.nan_safe_variant()})
        moving = is_moving(primals, tangents)[loop.conditions :]
        active = _active(body, loop, moving)
        if not any(active[loop.consts :]):
            return outs, ZERO
        conditions, operands = parts(primals, loop.conditions)
        full = [
            zeros_like(x) if on and t is ZERO else t
            for x, t, on in zip(operands, tangents[loop.conditions :], active, strict=True)
        ]
        dots = [t for t, on in zip(full, active, strict=True) if on]
        dc, ds = parts(dots, sum(active[: loop.consts]))
        both = remembered(body, ("while jvp", loop, active), lambda: _with_tangents(body, loop, active))
        extra = tuple([Aval(shape_of(t), dtype_of(t)) for t in ds])
        test = remembered(cond, ("while jvp", extra), lambda: _ignoring(cond, extra))
        consts, carry = parts(operands, loop.consts)
        inner = While(loop.conditions, len(consts) + len(dc))
        moved = while_call(*conditions, *consts, *dc, *carry, *ds, cond=test, body=both, loop=inner)
        return outs, tuple(spread(moved[len(carry) :], active[loop.consts :]))

    def record(self, values: tuple[Array, ...], parents: Sequence[Shaped | None], params: Params) -> Any:
        loop = params["loop"]
        moving = is_moving(values, parents)[loop.conditions :]
        if any(_active(params["body"], loop, moving)[loop.consts :]):
            _refuse()
        return self(*[settled(x) for x in values], **params), None, None


def _refuse() -> NoReturn:
    raise NotDifferentiableError(
        "a staged func.while_loop has no reverse-mode derivative: how many steps it takes, and so how much must be "
        f"kept for the way back, is not known{at_line()}\n"
        "Give a bound, func.while_loop(..., max_steps=n); or use func.fori_loop with bounds that are numbers, or "
        "func.scan; or forward mode (func.jvp, func.jacfwd); or leave func.jit out: outside it the loop is Python."
    )


def _active(body: CompiledCall, loop: While, moving: Sequence[bool], derivatives: bool = True) -> tuple[bool, ...]:
    """The active consts of the body and carries."""
    carries = len(body.out_avals)
    return active_carries(body, Loop(loop.consts, carries, 0, False), moving, derivatives)


def _with_tangents(body: CompiledCall, loop: While, active: tuple[bool, ...]) -> CompiledCall:
    """(consts, their tangents, carry, its tangents) -> (carry, its tangents)."""
    half = forward_half(body, active)
    inputs = input_avals(body)
    consts, carry = parts(inputs, loop.consts)
    c, s = [
        strong([aval for aval, on in zip(avals, flags, strict=True) if on])
        for avals, flags in zip((consts, carry), parts(active, loop.consts), strict=True)
    ]

    def step(*values: Array) -> list[Array]:
        known, dc, now, ds = parts(values, len(consts), len(c), len(carry))
        outs = half.first.run([*known, *now])
        new, residuals = parts(outs, len(carry))
        dots = half.second(residuals, [*dc, *ds])
        flags = active[loop.consts :]
        return [
            *new,
            *[zeros(aval) if d is ZERO else d for d, on, aval in zip(dots, flags, carry, strict=True) if on],
        ]

    return derived(step, [*consts, *c, *carry, *s])


def _ignoring(cond: CompiledCall, more: Sequence[Aval]) -> CompiledCall:
    """A condition that is given more than it looks at."""
    inputs = input_avals(cond)
    return derived(lambda *values: cond.run_on(*values[: len(inputs)]), [*inputs, *more])


def _while_impl(xp: Any, *args: Array, cond: CompiledCall, body: CompiledCall, loop: While) -> tuple[Any, ...]:
    conditions, consts, start = parts(on_backend(xp, args), loop.conditions, loop.consts)
    test, step = stepper(cond, xp), stepper(body, xp)
    carry: Sequence[Array] = start
    while test(*conditions, *carry)[0]:
        carry = step(*consts, *carry)
    return tuple(start) if carry is start else unshared(body, carry)


def _while_aval(*avals: Aval, cond: CompiledCall, body: CompiledCall, loop: While) -> tuple[Aval, ...]:
    return tuple([Aval(aval.shape, aval.dtype) for aval in body.out_avals])


def _while_transpose(ct: Any, *operands: Any, **params: Any) -> NoReturn:
    _refuse()


def _while_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Any:
    cond, body, loop = params["cond"], params["body"], params["loop"]
    conditions, consts, carry = parts(args, loop.conditions, loop.consts)
    on_conditions, on_consts, on_carry = [tuple(group) for group in parts(batched, loop.conditions, loop.consts)]
    which = _active(body, loop, (*on_consts, *on_carry), False)
    carried = which[loop.consts :]
    if not any(dependents(cond.program, (*on_conditions, *carried), False)):
        mapped = over_lanes(body, size, which, carried)
        test = cond if not any((*on_conditions, *carried)) else _first_lane(cond, size, (*on_conditions, *carried))
        carry = [_with_lanes(x, size, given, on) for x, given, on in zip(carry, on_carry, carried, strict=True)]
        outs = while_call(*conditions, *consts, *carry, cond=test, body=mapped, loop=loop)
        return tuple(materialize(size, carried, outs))
    everywhere = (True,) * len(carry)
    carry = materialize(size, on_carry, carry)
    over = cond.mapped(size, (*on_conditions, *everywhere))
    mapped = over_lanes(body, size, (*on_consts, *everywhere), everywhere)
    (going,) = over(*conditions, *carry)
    key = "while batch", over, size, on_consts
    masked = remembered(body, key, lambda: _masked(over, mapped, size, on_consts, loop))
    test = remembered(body, (*key, "any"), lambda: _any_lane(over, loop))
    inner = While(0, loop.conditions + loop.consts)
    outs = while_call(*conditions, *consts, going, *carry, cond=test, body=masked, loop=inner)
    return tuple(outs[1:])


def _with_lanes(x: Array, size: int, given: bool, needs_cotangent: bool) -> Array:
    return materialize(size, (given,), (x,))[0] if needs_cotangent else x


def _first_lane(cond: CompiledCall, size: int, which: tuple[bool, ...]) -> CompiledCall:
    """A condition that no lane changes, of arguments with lanes."""

    def test(*values: Array) -> Sequence[Array]:
        plain = [_lane(x) if on else x for x, on in zip(values, which, strict=True)]
        return cond.run_on(*plain)

    avals = [Aval((size, *a.shape), a.dtype) if on else a for a, on in zip(input_avals(cond), which, strict=True)]
    return remembered(cond, ("while lane", size, which), lambda: derived(test, avals))


def _lane(x: Array) -> Array:
    return getitem(x, index=(0, *[(0, length, 1) for length in shape_of(x)[1:]]))


def _any_lane(over: CompiledCall, loop: While) -> CompiledCall:
    """(going, carry) -> whether some lane goes on."""
    carry = parts(input_avals(over), loop.conditions)[1]
    return derived(lambda going, *_: [reduce_any(going, axes=(0,))], [over.out_avals[0], *carry])


def _masked(over: CompiledCall, body: CompiledCall, size: int, on_consts: Sequence[bool], loop: While) -> CompiledCall:
    """A step of all lanes in which those that have finished keep what they have."""
    conditions = parts(input_avals(over), loop.conditions)[0]
    consts, carry = parts(input_avals(body), loop.consts)

    def step(*values: Array) -> list[Array]:
        tests, fixed, (going,), now = parts(values, len(conditions), len(consts), 1)
        lanes = borrowed(size, going)
        fixed = [gather(x, lanes, axis=0) if on else x for x, on in zip(fixed, on_consts, strict=True)]
        outs = body.run_on(*fixed, *[gather(x, lanes, axis=0) for x in now])
        new = [select(going, one, old) for one, old in zip(outs, now, strict=True)]
        (more,) = over.run_on(*tests, *new)
        return [logical_and(going, more), *new]

    return derived(step, [*conditions, *consts, over.out_avals[0], *carry])


while_call = WhilePrimitive(
    "while_call",
    _while_impl,
    aval=_while_aval,
    batch=_while_batch,
    transpose=_while_transpose,
    multiple=True,
)
"""The carry when the condition no longer holds."""
