"""Sums over the steps of a loop that are taken behind it.

A loop that runs backwards adds up, step by step, the cotangents of what all steps share: of a matrix W in h @ W the
outer products of h and a cotangent d. It costs less to keep the d of every step and to contract them with the h of
every step at the end: one product of matrices instead of a sum of many.

What moves is what only the sum needs: sums of values, linear functions of one value, products with something that does
not change, and products of two values that change, which become contractions over the steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from func.interpreters.core import Aval, Primitive, aval_of
from func.interpreters.primitives.contraction import contract, spec
from func.interpreters.primitives.elementwise import add, multiply, negative, subtract
from func.interpreters.primitives.kinds import Linear
from func.interpreters.primitives.structural import reduce_sum
from func.interpreters.program import Equation, Program, Var

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
        row, inputs, params = equation.row, equation.inputs, equation.params
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
                return None if total is None else self._emit(equation.row, *pair, **equation.params)
        if equation.row is multiply:
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
