"""From a Program to a plan: names, memory and statements.

Memory is planned by liveness. Every value lives in a storage; views share that of their operand. Statements that can
write into given memory get a slot of scratch memory, which is used again as soon as nothing alive lies in it, or the
memory of an operand that dies there. Long runs of elementwise statements over large arrays become loops over blocks.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from func.backends.source.plans import Buffer, Item, Loop, Plan, Step
from func.interpreters.compile.inlining import prepare_program
from func.interpreters.compile.lowering.code import Code
from func.interpreters.compile.lowering.control_flow import NESTED
from func.interpreters.compile.lowering.literals import literal
from func.interpreters.compile.lowering.rules import lower
from func.interpreters.core.errors import NoSourceError
from func.interpreters.primitives.elementwise.builder import Elementwise
from func.interpreters.program.program import Equation, Program, Var

LARGE = 1 << 18
"""Results of at least this many bytes are written into recycled memory: fresh pages cost more than arithmetic."""
WORTH_DROPPING = 1 << 15
BLOCKED = 1 << 17
"""Elements from which on elementwise statements run in blocks."""
ALIGNED = 64


def plan_program(
    program: Program,
    xp: Any,
    device: bool,
    scratch: bool = True,
    donated: frozenset[int] = frozenset(),
    prefix: str = "",
) -> Plan:
    """The plan of an optimised program for the arrays of a backend; without `scratch` all memory is made on the way,
    as in source that people read. Inputs in `donated` may be written to."""
    planner = _Planner(program, xp, device, scratch, prefix)
    for place in donated:
        var = program.inputs[place]
        planner.holding[var] = (var.shape, var.dtype)
    return planner.plan()


def _bytes(var: Var) -> int:
    return math.prod(var.shape) * var.dtype.itemsize


_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))


class _Planner:
    """One pass over the equations, with what is known of names and memory so far."""

    def __init__(self, program: Program, xp: Any, device: bool, scratch: bool, prefix: str = "") -> None:
        self.prefix = prefix
        self.program = program
        self.xp = xp
        self.device = device
        self.scratch = scratch
        self.plan_ = Plan()
        self.words: dict[Var, str] = {}
        self.roots: dict[Var, frozenset[Any]] = {}
        self.codes = [self._code(equation) for equation in program.equations]
        self.last = self._last_uses()
        self.free: list[int] = []
        self.slot_of: dict[Any, int] = {}
        self.holding: dict[Any, tuple[Any, ...]] = {}
        """For storages of scratch memory: the shape and dtype they were made with."""
        self.known_buffers: dict[Any, str] = {}
        self.numbers: dict[Any, str] = {}
        self.taken: set[Any] = set()
        """Storages whose memory has gone to another."""

    # --- what is known before ---------------------------------------------------------------------------------

    def _code(self, equation: Equation) -> Code | None:
        try:
            return lower(equation, self.device)
        except NoSourceError:
            if self.scratch:
                return None
            nested = NESTED.get(equation.primitive.name)
            if nested is None:
                raise
            return nested(self.function, equation)

    def function(self, program: Program) -> str:
        """The name of a function with the plan of a nested program."""
        name = f"{self.prefix}body{len(self.plan_.functions)}"
        nested = _Planner(prepare_program(program), self.xp, self.device, False, f"{name}_")
        self.plan_.functions[name] = nested.plan()
        return name

    def _last_uses(self) -> dict[Any, int]:
        """For each storage the last equation that touches a value in it; outputs live for ever."""
        program = self.program
        for var in (*program.inputs, *program.constants):
            self.roots[var] = frozenset([var])
        for equation, code in zip(program.equations, self.codes, strict=True):
            operands = [x for x in equation.inputs if type(x) is Var]
            for out in equation.outputs:
                if code is None or equation.primitive.name in NESTED:  # unknown code may return what it was given
                    roots = frozenset([out]).union(*[self.roots[x] for x in operands])
                elif code.view and operands and type(equation.inputs[0]) is Var:
                    roots = self.roots[equation.inputs[0]]
                else:
                    roots = frozenset([out])
                self.roots[out] = roots
        last: dict[Any, int] = {}
        for i, equation in enumerate(program.equations):
            for x in (*equation.inputs, *equation.outputs):
                if type(x) is Var:
                    for root in self.roots[x]:
                        last[root] = i
        for x in program.outputs:
            if type(x) is Var:
                for root in self.roots[x]:
                    last[root] = len(program.equations)
        return last

    # --- the plan -----------------------------------------------------------------------------------------------

    def plan(self) -> Plan:
        program, plan = self.program, self.plan_
        for i, var in enumerate(program.inputs):
            self.words[var] = f"x{i}"
            plan.inputs.append(f"x{i}")
        for i, (var, value) in enumerate(program.constants.items()):
            self.words[var] = f"{self.prefix}c{i}"
            plan.constants[self.words[var]] = value
        self.dying: dict[int, list[Any]] = {}
        for root, place in self.last.items():
            self.dying.setdefault(place, []).append(root)
        place = 0
        while place < len(program.equations):
            run = self._blocked_run(place)
            if run > 1:
                plan.items.append(self._loop(place, place + run))
                place += run
            else:
                plan.items.append(self._step(place))
                place += 1
        given = {*program.inputs, *program.constants}
        taken: set[Any] = set()
        for x in program.outputs:
            word = self._word(x)
            if type(x) is Var and x.shape != () and x not in program.inputs:
                roots = self.roots[x]
                if roots & given or roots & taken:
                    word = f"{word}.copy()"
                elif word in plan.inputs:  # donated memory: the result is an array of its own over it
                    word = f"{word}.view()"
                taken |= roots
            elif type(x) is Var and x.shape == () and not x.weak and x not in program.inputs and not self.device:
                word = f"{word}[()]"  # a view of one number and a number are both NumPy scalars
            plan.outputs.append(word)
        return plan

    def _word(self, x: Any) -> str:
        if type(x) is Var:
            return self.words[x]
        word = literal(x)
        return f"({word})" if word.startswith("-") else word

    def _operands(self, equation: Equation) -> list[str]:
        """The operands' words. A number beside arrays of one floating dtype becomes a 0-d array of that dtype, which
        NumPy's ufuncs take in half the time."""
        words = [self._word(x) for x in equation.inputs]
        dtypes = {x.dtype for x in equation.inputs if type(x) is Var}
        if not self.scratch or not isinstance(equation.primitive, Elementwise) or len(dtypes) != 1:
            return words
        (dtype,) = dtypes
        if dtype not in _FLOATS or any([type(x) is Var and x.weak for x in equation.inputs]):
            return words
        loop = dtype.char * len(words) + "->"
        if not any([one.startswith(loop) for one in getattr(equation.primitive.ufunc, "types", ())]):
            return words
        return [
            self._number(x, dtype) if type(x) in (int, float) else word
            for x, word in zip(equation.inputs, words, strict=True)
        ]

    def _number(self, value: float, dtype: np.dtype[Any]) -> str:
        key = (repr(value), dtype)
        name = self.numbers.get(key)
        if name is None:
            name = self.numbers[key] = f"k{len(self.numbers)}"
            self.plan_.constants[name] = np.array(value, dtype)
        return name

    def _step(self, place: int) -> Step:
        equation, code = self.program.equations[place], self.codes[place]
        operands = self._operands(equation)
        if code is None:
            step = Step(f"{self._call(place, equation)}({', '.join(operands)})", self._targets(equation, place))
        else:
            for one in code.support:
                self.plan_.support[one.__name__] = one
            step = self._written(place, equation, code, operands)
        drops = self._release(place)
        return Step(step.text, step.target, drops) if drops else step

    def _written(self, place: int, equation: Equation, code: Code, operands: list[str]) -> Step:
        out = equation.outputs[0]
        if code.out and out.shape != () and 0 not in out.shape:
            target = self._memory(place, equation, code)
            if target is not None:
                self.words[out] = target
                return Step(code.text.format(*operands, out=target))
        return Step(code.fresh.format(*operands), self._targets(equation, place))

    def _targets(self, equation: Equation, place: int) -> str | None:
        if not equation.outputs:
            return None
        if equation.primitive.multiple:
            for j, var in enumerate(equation.outputs):
                self.words[var] = f"t{place}_{j}"
            return "".join([f"t{place}_{j}, " for j in range(len(equation.outputs))]).rstrip(" ")
        self.words[equation.outputs[0]] = f"t{place}"
        return f"t{place}"

    def _call(self, place: int, equation: Equation) -> str:
        self.plan_.calls[f"call{place}"] = functools.partial(equation.primitive.impl, self.xp, **equation.params)
        return f"call{place}"

    # --- memory -------------------------------------------------------------------------------------------------

    def _memory(self, place: int, equation: Equation, code: Code) -> str | None:
        """The name of memory to write into: an operand's that dies here, a slot, or None for fresh memory."""
        out = equation.outputs[0]
        (root,) = self.roots[out]
        for position in code.inplace:
            x = equation.inputs[position]
            if type(x) is Var and self._dies_into(x, place, out, equation):
                return self._taken_over(x, out, root)
        if not self.scratch:
            return None
        if self.last[root] == len(self.program.equations):
            if _bytes(out) < LARGE or self.device:
                return None
            self.plan_.results[f"r{place}"] = (out.shape, out.dtype)
            return f"r{place}"
        slot = self._slot(_bytes(out))
        self.slot_of[root] = slot
        return self._buffer(slot, out)

    def _dies_into(self, x: Var, place: int, out: Var, equation: Equation) -> bool:
        """Whether the memory of operand x is free for the output: nothing else lives in it or is read from it."""
        root = x
        if self.roots[x] != {x} or self.last[x] != place or self.holding.get(x) != (out.shape, out.dtype):
            return False
        (own,) = self.roots[out]
        if self.scratch and self.last[own] == len(self.program.equations):
            return root not in self.slot_of
        others = [y for y in equation.inputs if type(y) is Var and y is not x and root in self.roots[y]]
        return not others

    def _taken_over(self, x: Var, out: Var, root: Any) -> str:
        self.holding[root] = (out.shape, out.dtype)
        self.taken.add(x)
        slot = self.slot_of.pop(x, None)
        if slot is not None:
            self.slot_of[root] = slot
        return self.words[x]

    def _slot(self, size: int) -> int:
        """A free slot of at least this size (not much larger), or a new one."""
        slots = self.plan_.slots
        size = -(-size // ALIGNED) * ALIGNED
        fitting = [slot for slot in self.free if size <= slots[slot] <= max(4 * size, 1 << 14)]
        if fitting:
            best = min(fitting, key=lambda slot: slots[slot])
            self.free.remove(best)
            return best
        if self.free and size > 1 << 14:  # let the largest free slot grow
            best = max(self.free, key=lambda slot: slots[slot])
            if slots[best] < size:
                self.free.remove(best)
                slots[best] = size
                return best
        slots.append(size)
        return len(slots) - 1

    def _buffer(self, slot: int, out: Var) -> str:
        key = (slot, out.shape, out.dtype)
        name = self.known_buffers.get(key)
        if name is None:
            name = self.known_buffers[key] = f"b{len(self.known_buffers)}"
            self.plan_.buffers[name] = Buffer(slot, out.shape, out.dtype)
        return name

    def _release(self, place: int) -> tuple[str, ...]:
        """Storages that die here: their slots are free again, large fresh arrays are to be dropped."""
        if self.codes[place] is not None and self.program.equations[place].primitive.name not in NESTED:
            for var in self.program.equations[place].outputs:
                if self.roots[var] == {var}:
                    self.holding.setdefault(var, (var.shape, var.dtype))
        drops = []
        for root in self.dying.get(place, ()):
            slot = self.slot_of.pop(root, None)
            if slot is not None:
                self.free.append(slot)
            elif root not in self.taken and self.words[root].startswith("t") and _bytes(root) >= WORTH_DROPPING:
                drops.append(self.words[root])
        return tuple(drops)

    # --- blocks -------------------------------------------------------------------------------------------------

    def _blocked_run(self, place: int) -> int:
        """How many elementwise equations from here on work on arrays of one large shape."""
        if self.device or not self.scratch or not self.program.equations[place].outputs:
            return 0
        shape = self.program.equations[place].outputs[0].shape
        if math.prod(shape) < BLOCKED:
            return 0
        count = 0
        while place + count < len(self.program.equations) and self._is_blockable(place + count, shape):
            count += 1
        return count

    def _is_blockable(self, place: int, shape: tuple[int, ...]) -> bool:
        equation, code = self.program.equations[place], self.codes[place]
        if code is None or not code.out or equation.primitive.numpy is None or equation.params or code.support:
            return False
        if equation.outputs[0].shape != shape:
            return False
        return all([type(x) is not Var or x.shape in ((), shape) for x in equation.inputs])

    def _loop(self, start: int, stop: int) -> Item:
        """One loop over blocks for the equations from start to stop."""
        equations = self.program.equations[start:stop]
        inside = {equation.outputs[0]: i for i, equation in enumerate(equations)}
        end = {var: self._last_inside(var, start, stop) for var in inside}
        views: dict[str, str] = {}
        scratch: dict[str, Any] = {}
        spare: dict[Any, list[str]] = {}
        names: dict[Var, str] = {}
        steps = []
        for i, (equation, code) in enumerate(zip(equations, self.codes[start:stop], strict=True)):
            assert code is not None
            out = equation.outputs[0]
            for x in equation.inputs:
                if type(x) is Var and x not in names and x.shape != ():
                    views[f"v{start}_{len(views)}"] = self.words[x]
                    names[x] = f"v{start}_{len(views) - 1}"
            words = self._operands(equation)
            for j, x in enumerate(equation.inputs):
                if type(x) is Var and x.shape != ():
                    words[j] = names[x]
            for x in dict.fromkeys([x for x in equation.inputs if type(x) is Var]):
                if x in inside and end[x] == i:
                    spare.setdefault(x.dtype, []).append(names[x])
            if end[out] is None:
                self.words[out] = self._whole(start + i, out)
                views[f"v{start}_{len(views)}"] = self.words[out]
                names[out] = f"v{start}_{len(views) - 1}"
            else:
                have = spare.get(out.dtype)
                if have and not code.inplace:
                    have = [name for name in have if name not in words]
                if have:
                    name = have[-1]
                    spare[out.dtype].remove(name)
                else:
                    name = f"s{start}_{len(scratch)}"
                    scratch[name] = out.dtype
                names[out] = name
                self.words[out] = name
                (root,) = self.roots[out]
                self.holding[root] = ()
            steps.append(Step(code.text.format(*words, out=names[out])))
        drops: list[str] = []
        for place in range(start, stop):
            drops.extend([word for word in self._release(place) if not word.startswith("s")])
        length = math.prod(equations[0].outputs[0].shape)
        return Loop(length, tuple(views.items()), tuple(scratch.items()), tuple(steps), tuple(drops))

    def _last_inside(self, var: Var, start: int, stop: int) -> int | None:
        """The last equation of the loop that reads a value; None if something after the loop does."""
        (root,) = self.roots[var]
        return self.last[root] - start if self.last[root] < stop else None

    def _whole(self, place: int, out: Var) -> str:
        """Memory for an array that outlives its loop."""
        (root,) = self.roots[out]
        if self.last[root] == len(self.program.equations):
            self.plan_.results[f"r{place}"] = (out.shape, out.dtype)
            return f"r{place}"
        self.slot_of[root] = self._slot(_bytes(out))
        return self._buffer(self.slot_of[root], out)
