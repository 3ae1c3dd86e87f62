"""Sums over the steps of a loop that are taken behind it.

A loop that runs backwards adds up, step by step, the cotangents of what all steps share: of a matrix W in h @ W the
outer products of h and a cotangent d. It costs less to keep the d of every step and to contract them with the h of
every step at the end: one product of matrices instead of a sum of many.

What moves is what only the sum needs: sums of values, linear functions of one value, products with something that does
not change, and products of two values that change, which become contractions over the steps.

The bodies of the scans that are the derivatives of a scan.

Forwards: a scan of the known half, whose residuals are stacked, then a linear scan of the tangents. Backwards: a scan
in the other direction, which carries the cotangents of the carry and adds up those of the consts, where that is not
done behind the loop. Residuals that do not
change from step to step are not stacked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from func.interpreters.calls.compiled_call import CompiledCall
from func.interpreters.control.bodies import Half, dependents, derived, forward_half, parts, spread, strong, zeros
from func.interpreters.core import PRIMITIVES, ZERO, Array, Aval, Linear, Primitive, Shaped, aval_of, is_inexact
from func.interpreters.primitives.elementwise.builder import add, multiply, negative
from func.interpreters.primitives.elementwise.table import subtract
from func.interpreters.primitives.structural.contraction import contract, spec
from func.interpreters.primitives.structural.shapes import full_like, reduce_sum
from func.interpreters.program.program import Equation, Program, Var

MOST = 1 << 26
"""Bytes that may be kept for the sums, where the loop keeps no more anyway."""


class Sums:
    """Which of some outputs of a step are summed behind the loop, and how.

    The step takes `fixed` inputs that do not change, `carries`, and rows. `moved` tells which outputs are summed behind
    the loop; `stacked` are the variables of which every step's value is kept for that; `tail` is a program that takes
    the fixed inputs, all rows of all steps and the kept values to the sums.
    """

    def __init__(self, step: Program, fixed: int, carries: int, outputs: Sequence[Any], length: int) -> None:
        self.length = length
        self.step = step
        self.uses = Counter([x for e in step.equations for x in e.inputs if type(x) is Var])
        self.uses.update([x for x in step.outputs if type(x) is Var])
        self.made = {out: equation for equation in step.equations for out in equation.outputs}
        self.unchanging = self._unchanging(fixed)
        self.rows = {var: _over_steps(var, length) for var in step.inputs[fixed + carries :]}
        self.kept: dict[Var, Var] = {}
        self.room = max(MOST, sum([_bytes(var) for var in self.rows.values()]))
        self.equations: list[Equation] = []
        self.moved = [False] * len(outputs)
        found: list[Any] = [None] * len(outputs)
        for free in (False, True):
            for i, out in enumerate(outputs):
                if not self.moved[i] and type(out) is Var and outputs.count(out) == 1:
                    found[i] = self._attempt(out, free)
                    self.moved[i] = found[i] is not None
        self.stacked = list(self.kept)
        inputs = [*step.inputs[:fixed], *self.rows.values(), *self.kept.values()]
        apart = [e for e in step.equations if e.outputs and e.outputs[0] in self.unchanging]
        totals = [x for x, moved in zip(found, self.moved, strict=True) if moved]
        self.tail = Program(inputs, [*apart, *self.equations], totals, step.constants).pruned()

    def _unchanging(self, fixed: int) -> set[Var]:
        """Variables that are the same in every step."""
        same = {*self.step.inputs[:fixed], *self.step.constants}
        for equation in self.step.equations:
            if equation.outputs and all([type(x) is not Var or x in same for x in equation.inputs]):
                same.update(equation.outputs)
        return same

    def _attempt(self, out: Var, free: bool) -> Any:
        """The sum of an output, None where it stays in the loop. Free: only what is kept anyway may be used."""
        kept, room, mark = dict(self.kept), self.room, len(self.equations)
        self.free = free
        self.products = 0
        total = self._summed(out)
        if total is not None and (free or self.products) and self.room >= 0:
            return total
        self.kept, self.room = kept, room
        del self.equations[mark:]
        return None

    def _summed(self, x: Any) -> Any:
        """The sum of a value over all steps, or None."""
        if type(x) is not Var or x in self.unchanging:
            return self._emit(multiply, x, self.length)
        equation = self.made.get(x)
        if equation is None or self.uses[x] != 1:
            return self._plain(x)
        row, inputs, params = equation.primitive, equation.inputs, equation.params
        if row in (add, subtract) and all([aval_of_atom(y).shape == x.shape for y in inputs]):
            return self._mapped(row, inputs, params)
        if row is negative or (isinstance(row, Linear) and len(inputs) == 1 and row is not reduce_sum):
            return self._mapped(row, inputs, params)
        if row is multiply or row is contract:
            return self._product(x, equation)
        return self._plain(x)

    def _mapped(self, row: Any, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
        totals = [self._summed(y) for y in inputs]
        return None if any([total is None for total in totals]) else self._emit(row, *totals, **params)

    def _product(self, x: Var, equation: Equation) -> Any:
        """A product, of which one factor does not change, or whose factors are contracted over the steps."""
        left, right = equation.inputs
        for place, (one, other) in enumerate(((left, right), (right, left))):
            if type(one) is not Var or one in self.unchanging:
                total = self._summed(other)
                pair = (one, total) if place == 0 else (total, one)
                return None if total is None else self._emit(equation.primitive, *pair, **equation.params)
        if equation.primitive is multiply:
            if left.shape != x.shape or right.shape != x.shape:
                return self._plain(x)
            labels = tuple(range(len(x.shape)))
            names = spec(labels, labels, labels)
        else:
            names = equation.params["spec"]
        step = 1 + max((*names.x, *names.y), default=-1)
        stacks = [self._stack(y, x) for y in (left, right)]
        if stacks[0] is None or stacks[1] is None or left.dtype != right.dtype:
            return self._plain(x)
        self.products += 1
        return self._emit(contract, *stacks, spec=spec((step, *names.x), (step, *names.y), names.out))

    def _plain(self, x: Var) -> Any:
        """The sum of a value that is kept in every step."""
        stack = self._stack(x, x)
        return None if stack is None else self._emit(reduce_sum, stack, axes=(0,))

    def _stack(self, x: Var, instead_of: Var) -> Any:
        """The values of all steps: rows as they are, others kept where that is not more than what they save."""
        found = self.rows.get(x) or self.kept.get(x)
        if found is not None:
            return found
        if self.free or x not in self.made or _bytes(x) > _bytes(instead_of):
            return None
        found = self.kept[x] = _over_steps(x, self.length)
        self.room -= _bytes(found)
        return found

    def _emit(self, row: Primitive, *inputs: Any, **params: Any) -> Var:
        out = Var(row.aval(*[aval_of_atom(x) for x in inputs], **params))
        self.equations.append(Equation(row, inputs, params, (out,)))
        return out


def aval_of_atom(x: Any) -> Aval:
    """What is known of an operand of an equation."""
    return x.aval if type(x) is Var else aval_of(x)


def _over_steps(var: Var, length: int) -> Var:
    return Var(Aval((length, *var.shape), var.dtype))


def _bytes(var: Var) -> int:
    return var.size * var.dtype.itemsize


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


def active_carries(
    body: CompiledCall, loop: Loop, active: Sequence[bool], derivatives: bool = True
) -> tuple[bool, ...]:
    """The active inputs of the body: those given, and each carry that comes to depend on them."""
    flags = list(active)
    while True:
        outs = dependents(body.program, flags, derivatives)
        contribution = [
            on or (loop.consts <= i < loop.consts + loop.carries and outs[i - loop.consts])
            for i, on in enumerate(flags)
        ]
        if contribution == flags:
            return tuple(flags)
        flags = contribution


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
        self.first = CompiledCall(
            Program(program.inputs, program.equations, (*program.outputs[:outputs], *kept), program.constants).pruned()
        )
        apart = Program(program.inputs[: loop.consts], program.equations, hoisted, program.constants).pruned()
        used = {x for equation in apart.equations for x in equation.inputs if type(x) is Var}
        self.from_consts = [i for i, var in enumerate(apart.inputs) if var in used]
        inputs = [apart.inputs[i] for i in self.from_consts]
        self.hoisted = CompiledCall(Program(inputs, apart.equations, apart.outputs, apart.constants))
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
        outs = PRIMITIVES["scan_call"](*operands, body=self.first, loop=loop)
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

    def __init__(self, body: CompiledCall, loop: Loop, active: tuple[bool, ...]) -> None:
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

    def __init__(self, steps: Steps, body: CompiledCall, active: tuple[bool, ...], given: tuple[bool, ...]) -> None:
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
        contribution = [Equation(add, (total, g), {}, (Var(total.aval),)) for g, total in added]
        outputs = [*gs, *[equation.outputs[0] for equation in contribution], *gx, *sums.stacked]
        pruned = Program((), [*one.equations, *contribution], outputs, one.constants).pruned()
        needed = {x for equation in pruned.equations for x in equation.inputs} | set(outputs)
        same, carried, rows = parts(one.inputs, len(fixed), len(s))
        self.needs = [var in needed for var in same], [var in needed for var in rows]
        inputs = [*picked(same, self.needs[0]), *carried, *[total for _, total in added], *picked(rows, self.needs[1])]
        self.second = CompiledCall(Program(inputs, pruned.equations, outputs, pruned.constants))
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
        contribution = PRIMITIVES["scan_call"](*same, *start, *inside, *changing, body=self.second, loop=self.loop)
        gs, kept, gx, stacked = parts(
            contribution, len(start), len(inside), len(contribution) - self.loop.carries - len(self.sums.stacked)
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
