"""The bodies of the scans that are the derivatives of a scan.

Forwards: a scan of the known half, whose residuals are stacked, then a linear scan of the tangents. Backwards: a scan
in the other direction, which carries the cotangents of the carry and adds up those of the consts, where that is not
done behind the loop. Residuals that do not
change from step to step are not stacked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from func.interpreters.control import (
    Half,
    dependents,
    derived,
    forward_half,
    parts,
    spread,
    strong,
    zeros,
)
from func.interpreters.control_sums import Sums
from func.interpreters.core import ROWS, ZERO, Array, Aval, Shaped, is_inexact
from func.interpreters.primitives.elementwise import add
from func.interpreters.primitives.structural import full_like
from func.interpreters.program import Equation, Program, Var
from func.interpreters.staged import Staged


class Loop(NamedTuple):
    """What describes a scan besides its body: how many consts and carries there are, the length and the direction.
    With `again` the backward pass keeps nothing but the arguments and computes the rest once more."""

    consts: int
    carries: int
    length: int
    reverse: bool
    again: bool = False


def stacked(aval: Shaped, length: int) -> Aval:
    """An aval with the steps as leading axis."""
    return Aval((length, *aval.shape), aval.dtype)


def active_carries(body: Staged, loop: Loop, active: Sequence[bool], derivatives: bool = True) -> tuple[bool, ...]:
    """The active inputs of the body: those given, and each carry that comes to depend on them."""
    flags = list(active)
    while True:
        outs = dependents(body.program, flags, derivatives)
        grown = [
            on or (loop.consts <= i < loop.consts + loop.carries and outs[i - loop.consts])
            for i, on in enumerate(flags)
        ]
        if grown == flags:
            return tuple(flags)
        flags = grown


# --- the halves of a body ---------------------------------------------------------------------------------------


class Steps:
    """The halves of a body as bodies of two scans, and where the second finds its residuals."""

    def __init__(self, half: Half, loop: Loop, outputs: int) -> None:
        self.half = half
        self.loop = loop
        self.outputs = outputs
        program = half.first
        position = {var: i for i, var in enumerate(program.inputs)}
        fixed = self._unchanging(program)
        first_row = loop.consts + loop.carries
        self.places: list[tuple[str, int]] = []
        hoisted: list[Var] = []
        kept: list[Var] = []
        for x in program.outputs[outputs:]:
            place = position.get(x)
            if place is not None and place < loop.consts:
                self.places.append(("const", place))
            elif place is not None and place >= first_row:
                self.places.append(("row", place))
            elif x in fixed:
                self.places.append(("hoisted", len(hoisted)))
                hoisted.append(x)
            else:
                self.places.append(("kept", len(kept)))
                kept.append(x)
        self.kept = [Aval(x.shape, x.dtype) for x in kept]
        self.first = Staged(
            Program(program.inputs, program.equations, (*program.outputs[:outputs], *kept), program.constants).pruned()
        )
        apart = Program(program.inputs[: loop.consts], program.equations, hoisted, program.constants).pruned()
        used = {x for equation in apart.equations for x in equation.inputs if type(x) is Var}
        self.from_consts = [i for i, var in enumerate(apart.inputs) if var in used]
        inputs = [apart.inputs[i] for i in self.from_consts]
        self.hoisted = Staged(Program(inputs, apart.equations, apart.outputs, apart.constants))
        self.used = {*self.from_consts, *[i for word, i in self.places if word in ("const", "row")]}
        """The operands of the scan that residuals are made of."""
        self.inputs = [var.aval for var in program.inputs]

    def _unchanging(self, program: Program) -> set[Var]:
        """Variables that depend on consts alone."""
        moving = set(program.inputs[self.loop.consts :])
        fixed: set[Var] = set()
        for equation in program.equations:
            into = moving if any([type(x) is Var and x in moving for x in equation.inputs]) else fixed
            into.update(equation.outputs)
        return fixed

    def run(self, operands: Sequence[Array]) -> tuple[list[Array], list[Array], list[Array]]:
        """(outputs, residuals that are the same in every step, residuals with a row per step)."""
        loop = self.loop
        outs = ROWS["scan_call"](*operands, body=self.first, loop=loop)
        fixed, rows = self.residuals(operands, outs[self.outputs :])
        return list(outs[: self.outputs]), fixed, rows

    def residuals(self, operands: Sequence[Array], kept: Sequence[Array]) -> tuple[list[Array], list[Array]]:
        """Residuals without and with a row per step."""
        hoisted = self.hoisted(*[operands[i] for i in self.from_consts]) if self.hoisted.program.outputs else ()
        source = {"const": operands, "row": operands, "hoisted": hoisted, "kept": kept}
        found = [(source[word][i], word) for word, i in self.places]
        fixed = [x for x, word in found if word in ("const", "hoisted")]
        return fixed, [x for x, word in found if word in ("row", "kept")]

    def avals(self) -> tuple[list[Aval], list[Aval]]:
        """What one step of the second half sees of the residuals."""
        hoisted = [Aval(x.shape, x.dtype) for x in self.hoisted.out_avals]
        source = {"const": self.inputs, "row": self.inputs, "hoisted": hoisted, "kept": self.kept}
        found = [(source[word][i], word) for word, i in self.places]
        fixed = [aval for aval, word in found if word in ("const", "hoisted")]
        return fixed, [aval for aval, word in found if word in ("row", "kept")]

    def picked_inputs(self, active: Sequence[bool]) -> list[list[Aval]]:
        """The active ones of the consts, of the carries and of the rows."""
        groups = parts(self.inputs, self.loop.consts, self.loop.carries)
        flags = parts(active, self.loop.consts, self.loop.carries)
        return [strong(picked(avals, on)) for avals, on in zip(groups, flags, strict=True)]

    def merged(self, fixed: Sequence[Array], rows: Sequence[Array]) -> list[Array]:
        """The residuals in the order in which the second half takes them."""
        one, many = iter(fixed), iter(rows)
        return [next(one) if word in ("const", "hoisted") else next(many) for word, _ in self.places]


class Tangents:
    """The second scan of forward mode: it carries the tangents of the carry."""

    def __init__(self, body: Staged, loop: Loop, active: tuple[bool, ...]) -> None:
        self.steps = steps = Steps(forward_half(body, active), loop, len(body.out_avals))
        carries = parts(active, loop.consts, loop.carries)[1]
        c, s, x = steps.picked_inputs(active)
        fixed, moving = steps.avals()
        self.has_tangent = [*carries, *dependents(body.program, active)[loop.carries :]]

        def step(*values: Array) -> list[Array]:
            residuals, dc, ds, others, dx = parts(values, len(fixed), len(c), len(s), len(moving))
            dots = steps.half.second(steps.merged(residuals, others), [*dc, *ds, *dx])
            return _or_zero(dots, self.has_tangent, body.out_avals)

        self.loop = Loop(len(fixed) + len(c), len(s), loop.length, loop.reverse)
        self.second = derived(step, [*fixed, *c, *s, *moving, *x])


class Cotangents:
    """The second scan of reverse mode: it runs the other way and carries the cotangents of the carry and the sums of
    those of the consts, but for the sums that are taken behind it. `given` are the ys that have cotangents."""

    def __init__(self, steps: Steps, body: Staged, active: tuple[bool, ...], given: tuple[bool, ...]) -> None:
        loop = steps.loop
        outs = body.out_avals
        self.carries = parts(active, loop.consts, loop.carries)[1]
        self.steps, self.active = steps, active
        c, s, x = steps.picked_inputs(active)
        fixed, moving = steps.avals()
        has = [*self.carries, *given]
        y = [aval for aval, on in zip(outs[loop.carries :], given, strict=True) if on]

        reached: list[bool] = []

        def step(*values: Array) -> list[Array]:
            residuals, ds, others, dy = parts(values, len(fixed), len(s), len(moving))
            cts = iter([*ds, *dy])
            full = [next(cts) if on else zeros(out) for out, on in zip(outs, has, strict=True) if is_inexact(out.dtype)]
            gc, gs, gx = parts(steps.half.second(steps.merged(residuals, others), full), len(c), len(s))
            reached[:] = [g is not ZERO for g in gc]
            return [*_or_zero(gs, [True] * len(s), s), *picked(gc, reached), *_or_zero(gx, [True] * len(x), x)]

        self.start, self.totals, self.reached = s, c, reached
        one = derived(step, [*fixed, *s, *moving, *y]).program
        gs, gc, gx = parts(one.outputs, len(s), sum(reached))
        self.sums = sums = Sums(one, len(fixed), len(s), gc, loop.length)
        added = [(g, Var(Aval(g.shape, g.dtype))) for g in picked(gc, [not moved for moved in sums.moved])]
        grown = [Equation(add, (total, g), {}, (Var(total.aval),)) for g, total in added]
        outputs = [*gs, *[equation.outputs[0] for equation in grown], *gx, *sums.stacked]
        pruned = Program((), [*one.equations, *grown], outputs, one.constants).pruned()
        needed = {x for equation in pruned.equations for x in equation.inputs} | set(outputs)
        same, carried, rows = parts(one.inputs, len(fixed), len(s))
        self.needs = [var in needed for var in same], [var in needed for var in rows]
        inputs = [*picked(same, self.needs[0]), *carried, *[total for _, total in added], *picked(rows, self.needs[1])]
        self.second = Staged(Program(inputs, pruned.equations, outputs, pruned.constants))
        self.loop = Loop(sum(self.needs[0]), len(s) + len(added), loop.length, not loop.reverse)

    def pull(self, fixed: Sequence[Array], rows: Sequence[Array], ct: dict[int, Any]) -> list[Any]:
        """Cotangents of all inputs of the scan, ZERO where none is wanted."""
        like = next(iter(ct.values()))
        places = [i for i, on in enumerate(self.carries) if on]
        start = [
            ct[i] if i in ct else full_like(like, 0, aval.shape, aval.dtype)
            for i, aval in zip(places, self.start, strict=True)
        ]
        dy = [ct[i] for i in sorted(ct) if i >= len(self.carries)]
        zero = [full_like(like, 0, aval.shape, aval.dtype) for aval in self.totals]
        inside = picked(picked(zero, self.reached), [not moved for moved in self.sums.moved])
        same, changing = picked(fixed, self.needs[0]), picked([*rows, *dy], self.needs[1])
        grown = ROWS["scan_call"](*same, *start, *inside, *changing, body=self.second, loop=self.loop)
        gs, kept, gx, stacked = parts(
            grown, len(start), len(inside), len(grown) - self.loop.carries - len(self.sums.stacked)
        )
        behind = iter(self.sums.tail.run([*fixed, *rows, *dy, *stacked]))
        within = iter(kept)
        summed = iter([next(behind) if moved else next(within) for moved in self.sums.moved])
        gc = [next(summed) if on else empty for on, empty in zip(self.reached, zero, strict=True)]
        return spread([*gc, *gs, *gx], self.active)


def _or_zero(values: Sequence[Any], flags: Sequence[bool], avals: Sequence[Shaped]) -> list[Array]:
    """The values in `flags`, with zeros for ZERO."""
    return [zeros(a) if v is ZERO else v for v, on, a in zip(values, flags, avals, strict=True) if on]


def picked(values: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    return [value for value, on in zip(values, flags, strict=True) if on]
