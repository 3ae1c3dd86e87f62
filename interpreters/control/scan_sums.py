"""Sums over the steps of a loop, computed behind the loop.

A loop that runs backwards adds up, step by step, the cotangents of its consts. For a matrix W in h @ W these are the
outer products of h and a cotangent d. It is cheaper to stack the d of all steps and to contract them with the stacked h
at the end: a single matrix product.

Some sums move behind the loop if nothing else needs them: sums of values, linear functions of one value, products with
an unchanging factor. So do products of two changing values, which become contractions over the steps.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

from func.interpreters.calls.compiled_call import CompiledCall
from func.interpreters.control.compiled_bodies import split
from func.interpreters.core import Array, Aval, Linear, Primitive, aval_of
from func.interpreters.core.scopes import present_stage
from func.interpreters.primitives.elementwise.builder import add, multiply, negative
from func.interpreters.primitives.elementwise.table import subtract
from func.interpreters.primitives.structural.contraction import contract, spec
from func.interpreters.primitives.structural.shapes import reduce_sum
from func.interpreters.program.program import Equation, Program, Var

MOST_BYTES = 1 << 26
"""The most bytes to stack for the sums, unless the inputs of the loop are larger themselves."""


def unchanging_variables(step: Program, fixed: int) -> set[Var]:
    """The variables that depend on constants and the first inputs alone, these included; not those with effects."""
    changing = set(step.inputs[fixed:])
    unchanging = {*step.inputs[:fixed], *step.constants}
    for equation in step.equations:
        depends = any([type(x) is Var and x in changing for x in equation.inputs]) or equation.has_effect
        (changing if depends else unchanging).update(equation.outputs)
    return unchanging


def without_invariants(body: CompiledCall, consts: Sequence[Array]) -> tuple[CompiledCall, list[Array]]:
    """The body of a loop that takes at least one step; equations that are the same in all steps run ahead of it.

    The consts of the loop are the first inputs. Effects and messages stay in the steps.
    """
    program = body.program
    inputs, rest = split(program.inputs, len(consts))
    known: set[Any] = {*inputs, *program.constants}
    ahead: list[Equation] = []
    steps: list[Equation] = []
    for equation in program.equations:
        is_ahead = all([type(x) is not Var or x in known for x in equation.inputs]) and not _has_effects(equation)
        (ahead if is_ahead else steps).append(equation)
        known.update(equation.outputs if is_ahead else ())
    if body.has_pullbacks or not ahead:
        return body, list(consts)
    made = {out for equation in ahead for out in equation.outputs}
    used = dict.fromkeys([x for equation in steps for x in equation.inputs if x in made])
    used |= dict.fromkeys([x for x in program.outputs if x in made])
    first = Program(inputs, ahead, list(used), program.constants).pruned()
    step = Program((), steps, program.outputs, program.constants).pruned()
    needed = {x for equation in step.equations for x in equation.inputs} | set(step.outputs)
    still = [i for i, var in enumerate(inputs) if var in needed]
    step = Program([*[inputs[i] for i in still], *used, *rest], step.equations, step.outputs, step.constants)
    stage = present_stage()
    with contextlib.nullcontext() if stage is None else stage.lines_of_programs():
        values = first.run(consts)
    return body.with_program(step), [*[consts[i] for i in still], *values]


def _has_effects(equation: Equation) -> bool:
    """Whether an equation, or one in its programs, calls Python or exchanges messages."""
    if equation.primitive.calls_python or equation.communicates or equation.has_effect:
        return True
    return any([_has_effects(inner) for _, program in equation.nested() for inner in program.equations])


class SumsBehindLoop:
    """The outputs of a step that the program sums behind the loop, and how.

    The step takes `fixed` unchanging inputs, then carries, then rows. `is_moved` marks the outputs summed behind the
    loop. For these the loop stacks the variables in `stacked`. `tail` is the program behind the loop: it maps the fixed
    inputs, all rows and the stacked values to the sums.
    """

    def __init__(self, step: Program, fixed: int, carries: int, outputs: Sequence[Any], length: int) -> None:
        self.length = length
        self.uses = Counter([x for e in step.equations for x in e.inputs if type(x) is Var])
        self.uses.update([x for x in step.outputs if type(x) is Var])
        self.defining = {out: equation for equation in step.equations for out in equation.outputs}
        self.unchanging = unchanging_variables(step, fixed)
        self.rows = {var: _stack_of(var, length) for var in step.inputs[fixed + carries :]}
        self.stacks: dict[Var, Var] = {}
        self.free_bytes = max(MOST_BYTES, sum([_bytes(var) for var in self.rows.values()]))
        self.equations: list[Equation] = []
        self.products = 0
        self.may_stack = True
        sums: dict[int, Any] = {}
        for may_stack in (True, False):
            for i, out in enumerate(outputs):
                if i not in sums and type(out) is Var and outputs.count(out) == 1:
                    total = self._attempt(out, may_stack)
                    if total is not None:
                        sums[i] = total
        self.is_moved = [i in sums for i in range(len(outputs))]
        self.stacked = list(self.stacks)
        inputs = [*step.inputs[:fixed], *self.rows.values(), *self.stacks.values()]
        hoisted = [e for e in step.equations if e.outputs and e.outputs[0] in self.unchanging]
        totals = [sums[i] for i in sorted(sums)]
        self.tail = Program(inputs, [*hoisted, *self.equations], totals, step.constants).pruned()

    def _attempt(self, out: Var, may_stack: bool) -> Any:
        """The sum of an output, or None if it stays in the loop. Stacking a value must pay by a contraction."""
        stacks, free_bytes, mark = dict(self.stacks), self.free_bytes, len(self.equations)
        self.may_stack = may_stack
        self.products = 0
        total = self._sum(out)
        if total is not None and (self.products or not may_stack) and self.free_bytes >= 0:
            return total
        self.stacks, self.free_bytes = stacks, free_bytes
        del self.equations[mark:]
        return None

    def _sum(self, x: Any) -> Any:
        """The sum of a value over all steps, or None."""
        if self._is_unchanging(x):
            return self._emit(multiply, x, self.length)
        equation = self.defining.get(x)
        if equation is None or self.uses[x] != 1:
            return self._sum_of_stack(x)
        primitive, inputs = equation.primitive, equation.inputs
        is_sum = primitive in (add, subtract) and all([atom_aval(y).shape == x.shape for y in inputs])
        is_linear = isinstance(primitive, Linear) and len(inputs) == 1 and primitive is not reduce_sum
        if is_sum or is_linear or primitive is negative:
            totals = [self._sum(y) for y in inputs]
            if any([total is None for total in totals]):
                return None
            return self._emit(primitive, *totals, **equation.params)
        if primitive is multiply or primitive is contract:
            return self._sum_of_product(x, equation)
        return self._sum_of_stack(x)

    def _sum_of_product(self, x: Var, equation: Equation) -> Any:
        """The sum of a product with an unchanging factor, or of one whose factors contract over the steps."""
        left, right = equation.inputs
        if self._is_unchanging(left):
            total = self._sum(right)
            return None if total is None else self._emit(equation.primitive, left, total, **equation.params)
        if self._is_unchanging(right):
            total = self._sum(left)
            return None if total is None else self._emit(equation.primitive, total, right, **equation.params)
        if equation.primitive is multiply:
            if left.shape != x.shape or right.shape != x.shape:
                return self._sum_of_stack(x)
            axes = tuple(range(len(x.shape)))
            names = spec(axes, axes, axes)
        else:
            names = equation.params["spec"]
        step = 1 + max((*names.x, *names.y), default=-1)
        stacks = [self._stack(y, x) for y in (left, right)]
        if stacks[0] is None or stacks[1] is None or left.dtype != right.dtype:
            return self._sum_of_stack(x)
        self.products += 1
        return self._emit(contract, *stacks, spec=spec((step, *names.x), (step, *names.y), names.out))

    def _is_unchanging(self, x: Any) -> bool:
        return type(x) is not Var or x in self.unchanging

    def _sum_of_stack(self, x: Var) -> Any:
        """The sum of a value that the loop stacks."""
        stack = self._stack(x, x)
        return None if stack is None else self._emit(reduce_sum, stack, axes=(0,))

    def _stack(self, x: Var, instead_of: Var) -> Any:
        """The values of all steps: rows, or a new stack if it is not larger than that of the value it replaces."""
        stack = self.rows.get(x) or self.stacks.get(x)
        if stack is not None:
            return stack
        if not self.may_stack or x not in self.defining or _bytes(x) > _bytes(instead_of):
            return None
        stack = self.stacks[x] = _stack_of(x, self.length)
        self.free_bytes -= _bytes(stack)
        return stack

    def _emit(self, primitive: Primitive, *inputs: Any, **params: Any) -> Var:
        out = Var(primitive.aval(*[atom_aval(x) for x in inputs], **params))
        self.equations.append(Equation(primitive, inputs, params, (out,)))
        return out


def atom_aval(x: Any) -> Aval:
    """The abstract value of an operand of an equation."""
    return x.aval if type(x) is Var else aval_of(x)


def _stack_of(var: Var, length: int) -> Var:
    return Var(Aval((length, *var.shape), var.dtype))


def _bytes(var: Var) -> int:
    return var.size * var.dtype.itemsize
