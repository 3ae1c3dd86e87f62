"""Loops of known length as one primitive: `scan_call(*consts, *carry, *xs, body=..., loop=...)`.

The body is a compiled call (consts, carry, one row of each xs) -> (carry, one row of each ys).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from func.interpreters.calls.call_primitives import CallPrimitive, CallPullback
from func.interpreters.calls.compiled_call import (
    SCANS_KEEP,
    CompiledCall,
    agree,
    outputs_and_tangents,
    program_call,
    snapshots,
)
from func.interpreters.calls.partition import active_arguments, expand, select
from func.interpreters.calls.series_calls import SeriesForm, active_series, call_with_series, carried_series
from func.interpreters.control import compiled_bodies
from func.interpreters.control.masked_bodies import masked_body, operands_with_masks, outputs_with_masks
from func.interpreters.control.scan_blocks import block_lengths, in_blocks
from func.interpreters.control.scan_derivatives import (
    PartitionedScan,
    ScanCotangents,
    ScanLoop,
    ScanTangents,
    stacked,
)
from func.interpreters.core import ZERO, Array, Aval, Params, Shaped, dtype_of, materialize, shape_of
from func.interpreters.core.parameters import COMPILED, Kind, is_length
from func.interpreters.nan_safe import with_fallback
from func.interpreters.primitives.structural.shapes import full_like, move_axis
from func.interpreters.program.program import Program
from func.interpreters.structural_zeros import StructuralZeros, absent_like, has_mask


class ScanPrimitive(CallPrimitive):
    """A loop of known length."""

    __slots__ = ()

    def forward(self, primals: tuple[Array, ...], tangents: tuple[Any, ...], params: Params) -> Any:
        loop: ScanLoop = params["loop"]
        directions = active_arguments(primals, tangents)
        if not any(directions):
            return self(*primals, **params), ZERO

        def push(body: CompiledCall) -> Any:
            active = _active(body, loop, directions)
            derivative = body.memoized(("scan jvp", loop, active), lambda: ScanTangents(body, loop, active))
            outs, fixed, rows = derivative.known.run(primals)
            like = next(tangent for tangent in tangents if tangent is not ZERO)
            active_tangents = [
                absent_like(like, shape_of(x), dtype_of(x)) if tangent is ZERO else tangent
                for x, tangent in zip(select(primals, active), select(tangents, active), strict=True)
            ]
            consts, carries, _ = compiled_bodies.split(active, loop.consts, loop.carries)
            dc, ds, dx = compiled_bodies.split(active_tangents, sum(consts), sum(carries))
            douts = scan_call(*fixed, *dc, *ds, *rows, *dx, body=derivative.body, loop=derivative.loop)
            return outs, tuple(expand(douts, derivative.has_tangent))

        return with_fallback(push, (params["body"],), outputs_and_tangents)

    def apply_masked(self, structural: StructuralZeros, args: tuple[Array, ...], params: Params) -> Any:
        """A scan that carries the masks of its carry too."""
        body, loop = params["body"], params["loop"]
        groups = loop.consts, loop.carries
        masked = masked_body(body, *groups, [has_mask(x) for x in args])
        consts, carries, _ = compiled_bodies.split(masked.inputs, *groups)
        inner = ScanLoop(loop.consts + sum(consts), loop.carries + sum(carries), loop.length, loop.reverse)
        outs = scan_call(*operands_with_masks(args, masked.inputs, groups), body=masked.body, loop=inner)
        return outputs_with_masks(structural, outs, masked.outputs, groups[1:])

    def reached(self, inputs: Sequence[bool], params: Params) -> Sequence[bool]:
        """By the body, over all steps."""
        active = _active(params["body"], params["loop"], inputs, derivatives=False)
        return compiled_bodies.dependents(params["body"].program, active, derivatives=False)

    def apply_series(
        self, order: int, values: tuple[Array, ...], coefficients: Sequence[Any], params: Params
    ) -> Sequence[Any]:
        """A scan that carries the coefficients of its carry too."""
        body, loop = params["body"], params["loop"]
        active = _active(body, loop, active_series(values, coefficients))
        if not any(active):
            return [(out, None) for out in self(*values, **params)]
        rows = compiled_bodies.dependents(body.program, active)[loop.carries :]
        has_series = tuple([*compiled_bodies.split(active, loop.consts, loop.carries)[1], *rows])
        form = SeriesForm(
            order,
            carried_series(order, coefficients, active, loop.consts, loop.carries),
            has_series,
            (loop.consts, loop.carries, len(values) - loop.consts - loop.carries),
            (loop.carries, len(has_series) - loop.carries),
        )
        consts, carries, _ = form.counts()
        inner = loop._replace(consts=consts, carries=carries)

        def call(bodies: tuple[CompiledCall, ...], operands: list[Array]) -> Sequence[Array]:
            return scan_call(*operands, body=bodies[0], loop=inner)  # type: ignore[no-any-return]

        return call_with_series(form, (body,), values, coefficients, call)

    def record(self, values: tuple[Array, ...], parents: Sequence[Shaped | None], params: Params) -> Any:
        loop: ScanLoop = params["loop"]
        directions = active_arguments(values, parents)
        values = snapshots(values, directions)
        if not any(compiled_bodies.dependents(params["body"].program, _active(params["body"], loop, directions))):
            return self(*values, **params), None, None
        blocks = _blocks(params["body"], loop, _active(params["body"], loop, directions))
        if blocks:
            body: CompiledCall = params["body"]
            compiled = body.memoized(("scan in blocks", loop, blocks), lambda: in_blocks(body, loop, blocks))
            return program_call.record(values, parents, {"compiled": compiled})

        def run_forward(body: CompiledCall) -> Any:
            active = _active(body, loop, directions)
            if loop.recompute:
                return self(*values, body=body, loop=loop), (body, loop, active, values, [], [])
            outs, fixed, rows = _known(body, loop, active).run(values)
            return outs, (body, loop, active, values, fixed, rows)

        outs, saved = with_fallback(run_forward, (params["body"],), lambda result: result[0])
        return outs, SCAN_PULLBACK, saved


def _active(body: CompiledCall, loop: ScanLoop, active: Sequence[bool], derivatives: bool = True) -> tuple[bool, ...]:
    """The active inputs of the body."""
    return compiled_bodies.active_inputs(body, loop.consts, loop.carries, active, derivatives)


def _known(body: CompiledCall, loop: ScanLoop, active: tuple[bool, ...]) -> PartitionedScan:
    return body.memoized(("scan vjp known", loop, active), lambda: PartitionedScan(body.vjp_partition(active), loop))


def _blocks(body: CompiledCall, loop: ScanLoop, active: tuple[bool, ...]) -> tuple[int, ...]:
    """The lengths of blocks of a scan whose residuals take too much memory."""
    most, interval = SCANS_KEEP.get()
    if loop.recompute or loop.length < 2:
        return ()
    if interval is not None:
        return (interval,) if interval < loop.length and not _is_in_blocks(body) else ()
    carries = compiled_bodies.split(body.in_avals, loop.consts, loop.carries)[1]
    return block_lengths(loop.length, carries, _known(body, loop, active).stacked_avals, most)


def _is_in_blocks(body: CompiledCall) -> bool:
    """Whether a step is a block of steps that the backward pass runs again."""
    calls = [equation.params["loop"] for equation in body.program.equations if equation.primitive is scan_call]
    return any([loop.recompute for loop in calls])


def _cotangents(body: CompiledCall, loop: ScanLoop, active: tuple[bool, ...], ct: dict[int, Any]) -> ScanCotangents:
    """The second scan for cotangents of these outputs."""
    has_ct = tuple([loop.carries + i in ct for i in range(len(body.program.outputs) - loop.carries)])
    return body.memoized(
        ("scan vjp", loop, active, has_ct),
        lambda: ScanCotangents(_known(body, loop, active), body, active, has_ct),
    )


def _scan_pull(saved: Any, ct: dict[int, Any]) -> list[Any]:
    """A scan in the other direction."""
    body, loop, active, values, fixed, rows = saved
    variant = body.nan_safe_variant() if any([has_mask(x) for x in ct.values()]) else None
    if variant is not None:
        body = variant
        active = _active(body, loop, active)
    if variant is not None or loop.recompute:
        return _pull_from_arguments(body, loop, active, values, ct)
    if not any([i >= loop.carries or active[loop.consts + i] for i in ct]):
        return [ZERO] * len(active)  # of carries without active inputs
    return _cotangents(body, loop, active, ct).pull(fixed, rows, ct)


SCAN_PULLBACK = CallPullback("scan_call", _scan_pull)


def _pull_from_arguments(
    body: CompiledCall,
    loop: ScanLoop,
    active: tuple[bool, ...],
    values: Sequence[Array],
    ct: dict[int, Any],
) -> list[Any]:
    """The pullback from the arguments alone, as one call: no part of it can run before the cotangents arrive."""
    seeds = tuple(sorted(ct))

    def derive() -> CompiledCall:
        derivative = _cotangents(body, loop, active, ct)
        inputs = _operand_avals(body, loop)
        outs = _scan_aval(*inputs, body=body, loop=loop)

        def pull(*operands: Array) -> list[Any]:
            known, cts = compiled_bodies.split(operands, len(active))
            _, fixed, rows = derivative.known.run(known)
            return select(derivative.pull(fixed, rows, dict(zip(seeds, cts, strict=True))), active)

        return compiled_bodies.compiled_function(pull, [*inputs, *[outs[i] for i in seeds]])

    pullback = body.memoized(("scan vjp from arguments", loop, active, seeds), derive)
    return expand(pullback(*values, *[ct[i] for i in seeds]), active)


def _operand_avals(body: CompiledCall, loop: ScanLoop) -> list[Aval]:
    """The abstract values of a scan's operands."""
    unstacked, rows = compiled_bodies.split(body.in_avals, loop.consts + loop.carries)
    return [*unstacked, *[stacked(aval, loop.length) for aval in rows]]


def _scan_impl(xp: Any, *args: Array, body: CompiledCall, loop: ScanLoop) -> tuple[Any, ...]:
    consts, start, xs = compiled_bodies.split(compiled_bodies.on_backend(xp, args), loop.consts, loop.carries)
    carry: Sequence[Array] = start
    count = loop.carries
    ys = [xp.empty((loop.length, *aval.shape), aval.dtype) for aval in body.out_avals[count:]]
    step = body.executable(xp).call
    for i in reversed(range(loop.length)) if loop.reverse else range(loop.length):
        outs = step(*consts, *carry, *[x[i] for x in xs])
        carry = outs[:count]
        for y, row in zip(ys, outs[count:], strict=True):
            y[i] = row
    return *(compiled_bodies.unshared(body, carry) if loop.length else carry), *ys


def _scan_aval(*avals: Aval, body: CompiledCall, loop: ScanLoop) -> tuple[Aval, ...]:
    carry, ys = compiled_bodies.split(body.out_avals, loop.carries)
    return *compiled_bodies.strong(carry), *[stacked(aval, loop.length) for aval in ys]


def _are_sizes(value: Any, avals: Sequence[Aval], params: Params) -> bool:
    if type(value) is not ScanLoop:
        return False
    *sizes, reverse, recompute = tuple(value)
    return all([is_length(entry) for entry in sizes]) and isinstance(reverse, bool) and isinstance(recompute, bool)


def _fits_its_body(*avals: Aval, body: CompiledCall, loop: ScanLoop) -> bool:
    """Whether the operands fit the body, the last ones stacked, and the carry keeps its shapes."""
    carry = avals[loop.consts : loop.consts + loop.carries]
    return agree(avals, _operand_avals(body, loop)) and agree(body.out_avals[: loop.carries], carry)


def _scan_transpose(ct: dict[int, Any], *operands: Any, body: CompiledCall, loop: ScanLoop) -> tuple[Any, ...]:
    """The transpose of a scan that is linear in the unknown operands.

    The residuals do not depend on these operands: the first scan runs with zeros in their place.
    """
    is_unknown = [isinstance(x, Shaped) for x in operands]
    unknown = _active(body, loop, is_unknown)
    derivative = _cotangents(body, loop, unknown, ct)
    known = derivative.known
    stacks: Sequence[Array] = ()
    if known.stacked_avals:
        first, inner = known.body.memoized(("scan known", unknown), lambda: _without_unknown(known, unknown))
        known_operands = select(operands, [not flag for flag in unknown])
        stacks = scan_call(*known_operands, body=first, loop=inner)[inner.carries :]
    like = next(iter(ct.values()))
    operands_or_zeros = [
        full_like(like, 0, x.shape, x.dtype) if isinstance(x, Shaped) and i in known.used_operands else x
        for i, x in enumerate(operands)
    ]
    cotangents = derivative.pull(*known.residuals(operands_or_zeros, stacks), ct)
    return tuple([g if flag else ZERO for g, flag in zip(cotangents, is_unknown, strict=True)])


def _without_unknown(known: PartitionedScan, unknown: Sequence[bool]) -> tuple[CompiledCall, ScanLoop]:
    """The first scan without the unknown inputs, giving the residuals only."""
    loop, program = known.loop, known.body.program
    is_known = [not is_unknown for is_unknown in unknown]
    consts, carries, _ = compiled_bodies.split(is_known, loop.consts, loop.carries)
    carry, _, stacks = compiled_bodies.split(program.outputs, loop.carries, known.outputs - loop.carries)
    absent = {var: np.zeros(var.shape, var.dtype) for var in select(program.inputs, unknown)}
    outputs = [*select(carry, carries), *stacks]
    inputs = select(program.inputs, is_known)
    reduced = Program(inputs, program.equations, outputs, program.constants | absent).pruned()
    return CompiledCall(reduced), ScanLoop(sum(consts), sum(carries), loop.length, loop.reverse)


def _scan_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Any:
    body, loop = params["body"], params["loop"]
    which = _active(body, loop, batched, derivatives=False)
    carried = which[loop.consts : loop.consts + loop.carries]
    operands = []
    for i, (x, is_batched, needs_axis) in enumerate(zip(args, batched, which, strict=True)):
        if needs_axis and not is_batched:
            (x,) = materialize(size, (False,), (x,))
        operands.append(move_axis(x, 0, 1) if needs_axis and i >= loop.consts + loop.carries else x)
    outs = scan_call(*operands, body=compiled_bodies.batched_body(body, size, which, carried), loop=loop)
    carry, ys = compiled_bodies.split(outs, loop.carries)
    return *materialize(size, carried, carry), *[move_axis(y, 1, 0) for y in ys]


scan_call = ScanPrimitive(
    "scan_call",
    _scan_impl,
    aval=_scan_aval,
    parameters={"body": COMPILED, "loop": Kind("the sizes of a scan", _are_sizes)},
    fits=_fits_its_body,
    batch=_scan_batch,
    transpose=_scan_transpose,
    multiple=True,
)
"""The carry after all steps, and the stacked ys."""
