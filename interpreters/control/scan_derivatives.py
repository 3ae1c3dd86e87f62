"""The derivatives of a scan: two scans, of the known and of the linear program of its body.

The first scan stacks the residuals of all steps, except those that do not change. In forward mode the second scan
carries the tangents of the carry. In reverse mode it runs in the other direction and carries the cotangents of the
carry. It also adds up the cotangents of the consts that are not summed behind the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from func.interpreters.calls.compiled_call import CompiledCall, PartitionedCall
from func.interpreters.calls.partition import expand, select
from func.interpreters.control.compiled_bodies import compiled_function, dependents, split, strong, zeros
from func.interpreters.control.scan_sums import SumsBehindLoop, unchanging_variables
from func.interpreters.core import PRIMITIVES, ZERO, Array, Aval, Shaped, is_inexact
from func.interpreters.primitives.elementwise.builder import add
from func.interpreters.primitives.structural.shapes import full_like
from func.interpreters.program.program import Equation, Program, Var
from func.interpreters.structural_zeros import absent_like


class ScanLoop(NamedTuple):
    """A scan without its body: the numbers of consts and carries, the length and the direction.

    With `recompute` the backward pass keeps only the arguments and computes everything else again.
    """

    consts: int
    carries: int
    length: int
    reverse: bool
    recompute: bool = False


def stacked(aval: Shaped, length: int) -> Aval:
    """An abstract value with the steps as leading axis."""
    return Aval((length, *aval.shape), aval.dtype)


class PartitionedScan:
    """The known program of a body as the body of a scan, and the places of its residuals.

    A residual is a const ("const"), a row of xs ("row"), computed from consts before the loop ("hoisted"), or stacked
    by the loop ("stacked"). `sources` names the kind of each residual and its place among those of the kind. Consts and
    hoisted residuals are fixed, the others have a row for each step.
    """

    def __init__(self, derivative: PartitionedCall, loop: ScanLoop) -> None:
        self.derivative = derivative
        self.loop = loop
        self.outputs = derivative.outputs
        program = derivative.known.program
        position = {var: i for i, var in enumerate(program.inputs)}
        unchanging = unchanging_variables(program, loop.consts)
        first_row = loop.consts + loop.carries
        self.sources: list[tuple[str, int]] = []
        hoisted: list[Var] = []
        per_step: list[Var] = []
        for x in program.outputs[self.outputs :]:
            place = position.get(x)
            if place is not None and place < loop.consts:
                self.sources.append(("const", place))
            elif place is not None and place >= first_row:
                self.sources.append(("row", place))
            elif x in unchanging:
                self.sources.append(("hoisted", len(hoisted)))
                hoisted.append(x)
            else:
                self.sources.append(("stacked", len(per_step)))
                per_step.append(x)
        self.stacked_avals = strong(per_step)
        outputs = (*program.outputs[: self.outputs], *per_step)
        self.body = CompiledCall(Program(program.inputs, program.equations, outputs, program.constants).pruned())
        equations = [equation for equation in program.equations if not equation.has_effect]  # effects stay in steps
        before_loop = Program(program.inputs[: loop.consts], equations, hoisted, program.constants).pruned()
        used = {x for equation in before_loop.equations for x in equation.inputs if type(x) is Var}
        self.hoisted_consts = [i for i, var in enumerate(before_loop.inputs) if var in used]
        inputs = [before_loop.inputs[i] for i in self.hoisted_consts]
        self.hoisted = CompiledCall(Program(inputs, before_loop.equations, hoisted, before_loop.constants))
        self.used_operands = {*self.hoisted_consts, *[i for kind, i in self.sources if kind in ("const", "row")]}
        """The operands of the scan that provide residuals."""

    def run(self, operands: Sequence[Array]) -> tuple[list[Array], list[Array], list[Array]]:
        """(outputs, fixed residuals, stacked residuals)."""
        outs = PRIMITIVES["scan_call"](*operands, body=self.body, loop=self.loop)
        return list(outs[: self.outputs]), *self.residuals(operands, outs[self.outputs :])

    def residuals(self, operands: Sequence[Array], stacks: Sequence[Array]) -> tuple[list[Array], list[Array]]:
        """(fixed residuals, stacked residuals)."""
        hoisted = self.hoisted(*[operands[i] for i in self.hoisted_consts]) if self.hoisted.program.outputs else ()
        return self._by_kind(operands, hoisted, stacks)

    def residual_avals(self) -> tuple[list[Aval], list[Aval]]:
        """(avals of the fixed residuals, avals of a row of each stacked residual)."""
        return self._by_kind(self.body.in_avals, strong(self.hoisted.out_avals), self.stacked_avals)

    def _by_kind(self, operands: Sequence[Any], hoisted: Sequence[Any], stacks: Sequence[Any]) -> tuple[Any, Any]:
        values = {"const": operands, "row": operands, "hoisted": hoisted, "stacked": stacks}
        is_fixed = [kind in ("const", "hoisted") for kind, _ in self.sources]
        residuals = [values[kind][i] for kind, i in self.sources]
        return select(residuals, is_fixed), select(residuals, [not fixed for fixed in is_fixed])

    def merged(self, fixed: Sequence[Array], rows: Sequence[Array]) -> list[Array]:
        """The residuals of a step in the order in which the linear program takes them."""
        next_fixed, next_row = iter(fixed), iter(rows)
        return [next(next_fixed if kind in ("const", "hoisted") else next_row) for kind, _ in self.sources]

    def active_avals(self, active: Sequence[bool]) -> list[list[Aval]]:
        """The abstract values of the active consts, carries and rows."""
        groups = split(self.body.in_avals, self.loop.consts, self.loop.carries)
        flags = split(active, self.loop.consts, self.loop.carries)
        return [strong(select(avals, are_active)) for avals, are_active in zip(groups, flags, strict=True)]


class ScanTangents:
    """The second scan of forward mode. It carries the tangents of the carry."""

    def __init__(self, body: CompiledCall, loop: ScanLoop, active: tuple[bool, ...]) -> None:
        self.known = known = PartitionedScan(body.jvp_partition(active), loop)
        carries = split(active, loop.consts, loop.carries)[1]
        c, s, x = known.active_avals(active)
        fixed, rows = known.residual_avals()
        self.has_tangent = [*carries, *dependents(body.program, active)[loop.carries :]]

        def step(*values: Array) -> list[Array]:
            fixed_residuals, dc, ds, row_residuals, dx = split(values, len(fixed), len(c), len(s), len(rows))
            residuals = known.merged(fixed_residuals, row_residuals)
            douts = known.derivative.inline_linear(residuals, [*dc, *ds, *dx])
            return _with_zeros(select(douts, self.has_tangent), select(body.out_avals, self.has_tangent))

        self.loop = ScanLoop(len(fixed) + len(c), len(s), loop.length, loop.reverse)
        self.body = compiled_function(step, [*fixed, *c, *s, *rows, *x])


class ScanCotangents:
    """The second scan of reverse mode.

    It runs in the other direction. It carries the cotangents of the carry, and sums of cotangents of consts unless they
    are taken behind the loop. `has_ct` tells which ys have cotangents.
    """

    def __init__(
        self, known: PartitionedScan, body: CompiledCall, active: tuple[bool, ...], has_ct: tuple[bool, ...]
    ) -> None:
        loop = known.loop
        outs = body.out_avals
        self.known, self.active = known, active
        self.active_carries = split(active, loop.consts, loop.carries)[1]
        c, s, x = known.active_avals(active)
        fixed, rows = known.residual_avals()
        has_seed = [*self.active_carries, *has_ct]
        y = select(outs[loop.carries :], has_ct)
        reached: list[bool] = []

        def step(*values: Array) -> list[Array]:
            fixed_residuals, ds, row_residuals, dy = split(values, len(fixed), len(s), len(rows))
            seeds = expand([*ds, *dy], has_seed)
            like = next(ct for ct in seeds if ct is not ZERO)
            cts = [
                absent_like(like, out.shape, out.dtype) if ct is ZERO else ct
                for ct, out in zip(seeds, outs, strict=True)
                if is_inexact(out.dtype)
            ]
            residuals = known.merged(fixed_residuals, row_residuals)
            gc, gs, gx = split(known.derivative.inline_linear(residuals, cts), len(c), len(s))
            reached[:] = [g is not ZERO for g in gc]
            return [*_with_zeros(gs, s), *select(gc, reached), *_with_zeros(gx, x)]

        whole = compiled_function(step, [*fixed, *s, *rows, *y]).program
        self.carry_avals, self.const_avals, self.reached = s, c, reached
        gs, gc, gx = split(whole.outputs, len(s), sum(reached))
        self.sums = sums = SumsBehindLoop(whole, len(fixed), len(s), gc, loop.length)
        self.is_carried = [not is_moved for is_moved in sums.is_moved]
        totals = [(Var(Aval(g.shape, g.dtype)), g) for g in select(gc, self.is_carried)]
        additions = [Equation(add, (total, g), {}, (Var(total.aval),)) for total, g in totals]
        outputs = [*gs, *[addition.outputs[0] for addition in additions], *gx, *sums.stacked]
        pruned = Program((), [*whole.equations, *additions], outputs, whole.constants).pruned()
        needed = {x for equation in pruned.equations for x in equation.inputs} | set(outputs)
        whole_fixed, carried, whole_rows = split(whole.inputs, len(fixed), len(s))
        self.needs_fixed = [var in needed for var in whole_fixed]
        self.needs_row = [var in needed for var in whole_rows]
        self.loop = ScanLoop(sum(self.needs_fixed), len(s) + len(totals), loop.length, not loop.reverse)
        carried += [total for total, _ in totals]
        inputs = [*select(whole_fixed, self.needs_fixed), *carried, *select(whole_rows, self.needs_row)]
        self.body = CompiledCall(Program(inputs, pruned.equations, outputs, pruned.constants))

    def pull(self, fixed: Sequence[Array], rows: Sequence[Array], ct: dict[int, Any]) -> list[Any]:
        """Cotangents of all inputs of the scan, ZERO for inactive ones."""
        like = next(iter(ct.values()))
        carries = [i for i, is_active in enumerate(self.active_carries) if is_active]
        start = [
            ct[i] if i in ct else absent_like(like, aval.shape, aval.dtype)
            for i, aval in zip(carries, self.carry_avals, strict=True)
        ]
        dy = [ct[i] for i in sorted(ct) if i >= len(self.active_carries)]
        empty = [full_like(like, 0, aval.shape, aval.dtype) for aval in self.const_avals]
        totals = select(select(empty, self.reached), self.is_carried)
        inputs = [*select(fixed, self.needs_fixed), *start, *totals, *select([*rows, *dy], self.needs_row)]
        outs = PRIMITIVES["scan_call"](*inputs, body=self.body, loop=self.loop)
        row_count = len(outs) - self.loop.carries - len(self.sums.stacked)
        gs, carried_sums, gx, stacks = split(outs, len(start), len(totals), row_count)
        moved_sums = iter(self.sums.tail.run([*fixed, *rows, *dy, *stacks]))
        next_carried = iter(carried_sums)
        sums = iter([next(next_carried if is_carried else moved_sums) for is_carried in self.is_carried])
        gc = [next(sums) if is_reached else zero for is_reached, zero in zip(self.reached, empty, strict=True)]
        return expand([*gc, *gs, *gx], self.active)


def _with_zeros(values: Sequence[Any], avals: Sequence[Shaped]) -> list[Array]:
    """The values, zeros for ZERO."""
    return [zeros(aval) if value is ZERO else value for value, aval in zip(values, avals, strict=True)]
