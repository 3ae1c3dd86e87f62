"""Loops of known length as one row: `scan_call(*consts, *carry, *xs, body=..., loop=...)`.

The body is a staged program (consts, carry, one row of each xs) -> (carry, one row of each ys). Derivatives are scans
again, of bodies made of its halves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from func.interpreters import drivers
from func.interpreters.calls.call_primitives import CallPrimitive
from func.interpreters.calls.compiled_call import CompiledCall
from func.interpreters.control.bodies import (
    any_nan,
    backward_half,
    dependents,
    derived,
    input_avals,
    is_moving,
    on_backend,
    parts,
    remembered,
    settled,
    spread,
    stepper,
    unshared,
)
from func.interpreters.control.scan_derivatives import (
    Cotangents,
    Loop,
    Steps,
    Tangents,
    active_carries,
    picked,
    stacked,
)
from func.interpreters.core import ZERO, Array, Aval, Params, Shaped, materialize, zeros_like
from func.interpreters.primitives.structural.shapes import full_like, move_axis
from func.interpreters.program.program import Program

# --- the row ----------------------------------------------------------------------------------------------------


class ScanPrimitive(CallPrimitive):
    """A loop of known length."""

    __slots__ = ()

    def forward(self, primals: tuple[Array, ...], tangents: tuple[Any, ...], params: Params) -> Any:
        body, loop = params["body"], params["loop"]
        moving = is_moving(primals, tangents)
        active = active_carries(body, loop, moving)
        if not any(active):
            return self(*primals, **params), ZERO
        half = remembered(body, ("scan jvp", loop, active), lambda: Tangents(body, loop, active))
        outs, fixed, rows = half.steps.run(primals)
        if body.pulls and any_nan(outs):
            return self.forward(primals, tangents, {"body": body.nan_safe_variant(), "loop": loop})
        full = [zeros_like(x) if on and t is ZERO else t for x, t, on in zip(primals, tangents, active, strict=True)]
        dc, ds, dx = [
            picked(dots, on)
            for dots, on in zip(
                parts(full, loop.consts, loop.carries), parts(active, loop.consts, loop.carries), strict=True
            )
        ]
        dots = scan_call(*fixed, *dc, *ds, *rows, *dx, body=half.second, loop=half.loop)
        return outs, tuple(spread(dots, half.has_tangent))

    def record(self, values: tuple[Array, ...], parents: Sequence[Shaped | None], params: Params) -> Any:
        body, loop = params["body"], params["loop"]
        moving = is_moving(values, parents)
        values = tuple([x if on else settled(x) for x, on in zip(values, moving, strict=True)])
        active = active_carries(body, loop, moving)
        if not any(dependents(body.program, active)):
            return self(*values, **params), None, None
        if loop.again:
            outs = self(*values, **params)
            fixed: list[Array] = []
            rows: list[Array] = []
        else:
            outs, fixed, rows = _steps(body, loop, active, False).run(values)
        if body.pulls and any_nan(outs):
            return self.record(values, parents, {"body": body.nan_safe_variant(), "loop": loop})
        return outs, PULLED_SCAN, (body, loop, active, values, fixed, rows)


def _steps(body: CompiledCall, loop: Loop, active: tuple[bool, ...], nan_safe: bool) -> Steps:
    def make() -> Steps:
        return Steps(backward_half(body, active, nan_safe), loop, len(body.out_avals))

    return remembered(body, ("scan first", loop, active, nan_safe), make)


def _cotangents(
    body: CompiledCall, loop: Loop, active: tuple[bool, ...], given: tuple[bool, ...], nan_safe: bool
) -> Cotangents:
    def make() -> Cotangents:
        return Cotangents(_steps(body, loop, active, nan_safe), body, active, given)

    return remembered(body, ("scan vjp", loop, active, given, nan_safe), make)


class PulledScanRule:
    """The pullback of a scan: a scan in the other direction."""

    name = "scan_call"

    def pull(self, ct: Any, parents: Sequence[Any], saved: Any, params: Params) -> Sequence[Any]:
        body, loop, active, values, fixed, rows = saved
        if loop.again:
            return _pulled_again(body, loop, active, values, ct, False)
        return _cotangents(body, loop, active, _given(body, loop, ct), False).pull(fixed, rows, ct)

    def pull_nan_safe(self, ct: Any, parents: Sequence[Any], saved: Any, params: Params) -> Sequence[Any]:
        body, loop, active, values = saved[:4]
        return _pulled_again(body, loop, active, values, ct, True)

    def __reduce__(self) -> str:
        return "PULLED_SCAN"


PULLED_SCAN = PulledScanRule()


def _given(body: CompiledCall, loop: Loop, ct: dict[int, Any]) -> tuple[bool, ...]:
    """Which ys have a cotangent."""
    return tuple([loop.carries + i in ct for i in range(len(body.out_avals) - loop.carries)])


def _pulled_again(
    body: CompiledCall,
    loop: Loop,
    active: tuple[bool, ...],
    values: Sequence[Array],
    ct: dict[int, Any],
    nan_safe: bool,
) -> list[Any]:
    """The pullback from the arguments alone, as one call: no part of it can run before the cotangents are there."""
    places = tuple(sorted(ct))

    def make() -> CompiledCall:
        half = _cotangents(body, loop, active, _given(body, loop, ct), nan_safe)
        outs = _scan_aval(*_stacked_inputs(body, loop), body=body, loop=loop)

        def both(*operands: Array) -> list[Any]:
            known, cts = parts(operands, len(active))
            _, fixed, rows = half.steps.run(known)
            contribution = half.pull(fixed, rows, dict(zip(places, cts, strict=True)))
            return [g for g in contribution if g is not ZERO]

        return derived(both, [*_stacked_inputs(body, loop), *[outs[i] for i in places]])

    again = remembered(body, ("scan again", loop, active, places, nan_safe), make)
    return spread(again(*values, *[ct[i] for i in places]), active)


def _stacked_inputs(body: CompiledCall, loop: Loop) -> list[Aval]:
    first, rows = parts(input_avals(body), loop.consts + loop.carries)
    return [*first, *[stacked(aval, loop.length) for aval in rows]]


def _scan_impl(xp: Any, *args: Array, body: CompiledCall, loop: Loop) -> tuple[Any, ...]:
    consts, start, xs = parts(on_backend(xp, args), loop.consts, loop.carries)
    carry: Sequence[Array] = start
    count = loop.carries
    ys = [xp.empty((loop.length, *aval.shape), aval.dtype) for aval in body.out_avals[count:]]
    step = stepper(body, xp)
    for i in reversed(range(loop.length)) if loop.reverse else range(loop.length):
        outs = step(*consts, *carry, *[x[i] for x in xs])
        carry = outs[:count]
        for y, primitive in zip(ys, outs[count:], strict=True):
            y[i] = primitive
    return *(unshared(body, carry) if loop.length else carry), *ys


def _scan_aval(*avals: Aval, body: CompiledCall, loop: Loop) -> tuple[Aval, ...]:
    carry, ys = parts(body.out_avals, loop.carries)
    return *[Aval(a.shape, a.dtype) for a in carry], *[stacked(a, loop.length) for a in ys]


def _scan_transpose(ct: dict[int, Any], *operands: Any, body: CompiledCall, loop: Loop) -> tuple[Any, ...]:
    """Of a scan that is linear in the unknown operands: what the second scan does with the residuals does not depend
    on those, so that the first one runs as if they were zero."""
    unknown = active_carries(body, loop, [isinstance(x, Shaped) for x in operands])
    half = _cotangents(body, loop, unknown, _given(body, loop, ct), False)
    steps = half.steps
    kept: Sequence[Array] = ()
    if steps.kept:
        first, inner = remembered(steps.first, ("scan known", unknown), lambda: _known_part(steps, unknown))
        known = [x for x, on in zip(operands, unknown, strict=True) if not on]
        kept = scan_call(*known, body=first, loop=inner)[inner.carries :]
    like = next(iter(ct.values()))
    given = [
        full_like(like, 0, x.shape, x.dtype) if isinstance(x, Shaped) and i in steps.used else x
        for i, x in enumerate(operands)
    ]
    fixed, rows = steps.residuals(given, kept)
    contribution = half.pull(fixed, rows, ct)
    return tuple([g if isinstance(x, Shaped) else ZERO for g, x in zip(contribution, operands, strict=True)])


def _known_part(steps: Steps, unknown: Sequence[bool]) -> tuple[CompiledCall, Loop]:
    """The first scan without the unknown inputs, giving the residuals only."""
    loop, program = steps.loop, steps.first.program
    consts, carries, _ = parts(unknown, loop.consts, loop.carries)
    carry, _, kept = parts(program.outputs, loop.carries, steps.outputs - loop.carries)
    outs = [*picked(carry, [not on for on in carries]), *kept]
    inputs = picked(program.inputs, [not on for on in unknown])
    absent = {var: np.zeros(var.shape, var.dtype) for var in picked(program.inputs, unknown)}
    known = Program(inputs, program.equations, outs, program.constants | absent).pruned()
    return CompiledCall(known), Loop(consts.count(False), carries.count(False), loop.length, loop.reverse)


def _scan_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Any:
    body, loop = params["body"], params["loop"]
    which = active_carries(body, loop, batched, derivatives=False)
    carried = which[loop.consts : loop.consts + loop.carries]
    mapped = over_lanes(body, size, which, carried)
    operands = []
    for i, (x, given, on) in enumerate(zip(args, batched, which, strict=True)):
        if on and not given:
            (x,) = materialize(size, (False,), (x,))
        operands.append(move_axis(x, 0, 1) if on and i >= loop.consts + loop.carries else x)
    outs = scan_call(*operands, body=mapped, loop=loop)
    carry, ys = parts(outs, loop.carries)
    return *materialize(size, carried, carry), *[move_axis(y, 1, 0) for y in ys]


def over_lanes(body: CompiledCall, size: int, which: tuple[bool, ...], carried: Sequence[bool]) -> CompiledCall:
    """A body over lanes: of the carries those that differ from lane to lane have the batch axis, and all ys."""

    def make() -> CompiledCall:
        def mapped(*args: Array) -> list[Array]:
            outs, flags = drivers.map_flat(body.run_on, size, which, args)
            needs_cotangent = [*carried, *[True] * (len(outs) - len(carried))]
            assert all([on or not flag for on, flag in zip(needs_cotangent, flags, strict=True)])
            return [
                materialize(size, (flag,), (out,))[0] if on else out
                for out, on, flag in zip(outs, needs_cotangent, flags, strict=True)
            ]

        avals = [Aval((size, *a.shape), a.dtype) if on else a for a, on in zip(input_avals(body), which, strict=True)]
        made = derived(mapped, avals)
        if not body.pulls:
            return made
        return CompiledCall(made.program, lambda: over_lanes(body.nan_safe_variant() or body, size, which, carried))

    return remembered(body, ("lanes", size, which, tuple(carried)), make)


scan_call = ScanPrimitive(
    "scan_call",
    _scan_impl,
    aval=_scan_aval,
    batch=_scan_batch,
    transpose=_scan_transpose,
    multiple=True,
)
"""The carry after all steps, and the stacked ys."""
