"""From a Program to a plan: names, buffer assignment and statements.

Liveness decides the buffer assignment. Every value has a storage, which views share with their operand. A statement
that can write into given memory takes over the memory of an operand that dies there, or gets a slot of scratch memory.
The slot is free again once its last value is dead. Runs of elementwise statements over large arrays become loops over
blocks.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from func.backends.source.literals import literal
from func.backends.source.plans import Item, Loop, Plan, PlanBuffer, PlanStep
from func.interpreters.compile.inlining import prepare_program
from func.interpreters.compile.lowering.code import Code
from func.interpreters.compile.lowering.control_flow import NESTED
from func.interpreters.compile.lowering.rules import lower
from func.interpreters.core.errors import NoSourceError
from func.interpreters.primitives.elementwise.builder import Elementwise
from func.interpreters.program.program import Equation, Program, Var

LARGE = 1 << 18
"""Results of at least this many bytes go into recycled memory: fresh pages cost more than arithmetic."""
WORTH_DROPPING = 1 << 15
"""From this many bytes on, a dead array of fresh memory is dropped before the function returns."""
BLOCKED = 1 << 17
"""Elements from which on elementwise statements run in blocks."""
ALIGNED = 64
FLOATS = (np.dtype(np.float64), np.dtype(np.float32))

Storage: TypeAlias = Any
"""Memory of values, with the name of the variable that was written into it first."""


def plan_program(
    program: Program,
    xp: Any,
    device: bool,
    scratch: bool = True,
    donated: frozenset[int] = frozenset(),
    prefix: str = "",
) -> Plan:
    """The plan of an optimised program for the arrays of a backend, which may write to the inputs in `donated`.

    Without `scratch` every statement makes its own memory, as in source that people read.
    """
    planner = _Planner(program, xp, device, scratch, prefix)
    for position in donated:
        var = program.inputs[position]
        planner.writable[var] = (var.shape, var.dtype)
    return planner.plan()


def _bytes(var: Var) -> int:
    return math.prod(var.shape) * var.dtype.itemsize


def storages_of(program: Program, codes: Sequence[Code | None]) -> dict[Var, frozenset[Storage]]:
    """The storages that each value occupies, or may occupy."""
    storages: dict[Var, frozenset[Storage]] = {var: frozenset([var]) for var in (*program.inputs, *program.constants)}
    for equation, code in zip(program.equations, codes, strict=True):
        operands = [x for x in equation.inputs if type(x) is Var]
        for out in equation.outputs:
            if code is None or equation.primitive.name in NESTED:  # unknown code may return an operand
                storages[out] = frozenset([out]).union(*[storages[x] for x in operands])
            elif code.view and operands and type(equation.inputs[0]) is Var:
                storages[out] = storages[equation.inputs[0]]
            else:
                storages[out] = frozenset([out])
    return storages


def last_uses(program: Program, storages: dict[Var, frozenset[Storage]]) -> dict[Storage, int]:
    """For each storage the last equation that touches a value in it; for outputs the number of equations."""
    last: dict[Storage, int] = {}
    touched = [(*equation.inputs, *equation.outputs) for equation in program.equations]
    for index, values in enumerate([*touched, program.outputs]):
        last.update([(storage, index) for x in values if type(x) is Var for storage in storages[x]])
    return last


class _Planner:
    """One pass over the equations, with the names and the memory assigned so far."""

    def __init__(self, program: Program, xp: Any, device: bool, scratch: bool, prefix: str = "") -> None:
        self.prefix = prefix
        self.program = program
        self.xp = xp
        self.device = device
        self.scratch = scratch
        self.plan_ = Plan()
        self.names: dict[Var, str] = {}
        self.codes = [self._code(equation) for equation in program.equations]
        self.storages = storages_of(program, self.codes)
        self.last = last_uses(program, self.storages)
        self.dying: dict[int, list[Storage]] = {}
        for storage, index in self.last.items():
            self.dying.setdefault(index, []).append(storage)
        self.free_slots: list[int] = []
        self.slots: dict[Storage, int] = {}
        self.writable: dict[Storage, tuple[Any, ...]] = {}
        """The shape and dtype of storages that may be overwritten once they are dead."""
        self.transferred: set[Storage] = set()
        """Storages whose memory has become that of another storage."""
        self.buffer_names: dict[Any, str] = {}
        self.number_names: dict[Any, str] = {}

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

    def plan(self) -> Plan:
        program, plan = self.program, self.plan_
        for i, var in enumerate(program.inputs):
            self.names[var] = f"x{i}"
            plan.inputs.append(f"x{i}")
        for i, (var, value) in enumerate(program.constants.items()):
            self.names[var] = f"{self.prefix}c{i}"
            plan.constants[self.names[var]] = value
        index = 0
        while index < len(program.equations):
            length = self._blocked_run(index)
            if length > 1:
                plan.items.append(self._loop(index, index + length))
                index += length
            else:
                plan.items.append(self._step(index))
                index += 1
        self._name_outputs()
        return plan

    def _name_outputs(self) -> None:
        """The returned expressions: no two outputs share memory with each other or with an input."""
        program, plan = self.program, self.plan_
        inputs = set(program.inputs)
        returned: set[Storage] = {*inputs, *program.constants}
        for x in program.outputs:
            name = self._name(x)
            if type(x) is Var and x.shape != () and x not in program.inputs:
                if self.storages[x] & returned:
                    name = f"{name}.copy()"
                elif name in plan.inputs:  # donated memory: the result is a new array over it
                    name = f"{name}.view()"
                returned |= self.storages[x]
            elif type(x) is Var and x.shape == () and not x.weak and not self.device:
                # A view of one number and a number are both NumPy scalars; an input may be a number of Python.
                name = f"np.asarray({name})[()]" if self.storages[x] & inputs else f"{name}[()]"
            plan.outputs.append(name)

    def _name(self, x: Any) -> str:
        """The name of a variable, or the literal of a Python scalar."""
        if type(x) is Var:
            return self.names[x]
        text = literal(x)
        return f"({text})" if text.startswith("-") else text

    def _operands(self, equation: Equation) -> list[str]:
        """The operands of a statement.

        A number among arrays of one floating dtype becomes a 0-d array of that dtype, which NumPy's ufuncs take in half
        the time.
        """
        names = [self._name(x) for x in equation.inputs]
        dtypes = {x.dtype for x in equation.inputs if type(x) is Var}
        if not self.scratch or not isinstance(equation.primitive, Elementwise) or len(dtypes) != 1:
            return names
        (dtype,) = dtypes
        if dtype not in FLOATS or any([type(x) is Var and x.weak for x in equation.inputs]):
            return names
        out = equation.outputs[0].dtype
        if out.kind in "fc" and out != dtype:  # NumPy chooses another loop for a Python number (gammainc of SciPy's)
            return names
        inner_loop = dtype.char * len(names) + "->"
        if not any([types.startswith(inner_loop) for types in getattr(equation.primitive.ufunc, "types", ())]):
            return names
        return [
            self._number(x, dtype) if type(x) in (int, float) else name
            for x, name in zip(equation.inputs, names, strict=True)
        ]

    def _number(self, value: float, dtype: np.dtype[Any]) -> str:
        key = (repr(value), dtype)
        name = self.number_names.get(key)
        if name is None:
            name = self.number_names[key] = f"k{len(self.number_names)}"
            self.plan_.constants[name] = np.array(value, dtype)
        return name

    def _step(self, index: int) -> PlanStep:
        """The statement of one equation."""
        equation, code = self.program.equations[index], self.codes[index]
        operands = self._operands(equation)
        if code is None:
            step = PlanStep(f"{self._call(index, equation)}({', '.join(operands)})", self._targets(equation, index))
        else:
            self.plan_.helpers.update([(function.__name__, function) for function in code.helpers])
            step = self._written(index, equation, code, operands)
        drops = self._release(index)
        return PlanStep(step.text, step.target, drops, equation.line)

    def _written(self, index: int, equation: Equation, code: Code, operands: list[str]) -> PlanStep:
        """The statement of a code, which writes into given memory if that pays."""
        out = equation.outputs[0]
        if code.out and out.shape != () and 0 not in out.shape:
            target = self._memory(index, equation, code)
            if target is not None:
                self.names[out] = target
                return PlanStep(code.text.format(*operands, out=target))
        return PlanStep(code.fresh.format(*operands), self._targets(equation, index))

    def _targets(self, equation: Equation, index: int) -> str | None:
        """The left side of an assignment."""
        if not equation.outputs:
            return None
        if not equation.primitive.multiple:
            self.names[equation.outputs[0]] = f"t{index}"
            return f"t{index}"
        targets = [f"t{index}_{j}" for j in range(len(equation.outputs))]
        self.names.update(zip(equation.outputs, targets, strict=True))
        return f"{', '.join(targets)},"

    def _call(self, index: int, equation: Equation) -> str:
        self.plan_.calls[f"call{index}"] = functools.partial(equation.primitive.impl, self.xp, **equation.params)
        return f"call{index}"

    def _memory(self, index: int, equation: Equation, code: Code) -> str | None:
        """The memory to write into: that of an operand that dies here, a slot, or None for fresh memory."""
        out = equation.outputs[0]
        (storage,) = self.storages[out]
        for position in code.inplace:
            x = equation.inputs[position]
            if type(x) is Var and self._is_free_for(out, x, index, equation):
                return self._take_over(x, out, storage)
        if not self.scratch:
            return None
        if self.last[storage] == len(self.program.equations):
            if _bytes(out) < LARGE or self.device:
                return None
            self.plan_.results[f"r{index}"] = (out.shape, out.dtype)
            return f"r{index}"
        self.slots[storage] = self._slot(_bytes(out))
        return self._buffer(self.slots[storage], out)

    def _is_free_for(self, out: Var, x: Var, index: int, equation: Equation) -> bool:
        """Whether the output may overwrite operand x: no other value is in its memory, and no later one reads it."""
        if self.storages[x] != {x} or self.last[x] != index or self.writable.get(x) != (out.shape, out.dtype):
            return False
        (storage,) = self.storages[out]
        if self.scratch and self.last[storage] == len(self.program.equations):
            return x not in self.slots
        return not any([type(y) is Var and y is not x and x in self.storages[y] for y in equation.inputs])

    def _take_over(self, x: Var, out: Var, storage: Storage) -> str:
        """Make the memory of operand x that of the output."""
        self.writable[storage] = (out.shape, out.dtype)
        self.transferred.add(x)
        slot = self.slots.pop(x, None)
        if slot is not None:
            self.slots[storage] = slot
        return self.names[x]

    def _slot(self, size: int) -> int:
        """A free slot of at least this size (not much larger), or a new one."""
        sizes = self.plan_.slots
        size = -(-size // ALIGNED) * ALIGNED
        fitting = [slot for slot in self.free_slots if size <= sizes[slot] <= max(4 * size, 1 << 14)]
        if fitting:
            best = min(fitting, key=lambda slot: sizes[slot])
            self.free_slots.remove(best)
            return best
        if self.free_slots and size > 1 << 14:  # the largest free slot grows
            best = max(self.free_slots, key=lambda slot: sizes[slot])
            if sizes[best] < size:
                self.free_slots.remove(best)
                sizes[best] = size
                return best
        sizes.append(size)
        return len(sizes) - 1

    def _buffer(self, slot: int, out: Var) -> str:
        """The name of the array of an output's shape and dtype over a slot."""
        key = (slot, out.shape, out.dtype)
        name = self.buffer_names.get(key)
        if name is None:
            name = self.buffer_names[key] = f"b{len(self.buffer_names)}"
            self.plan_.buffers[name] = PlanBuffer(slot, out.shape, out.dtype)
        return name

    def _release(self, index: int) -> tuple[str, ...]:
        """Free the slots of storages that die here; the names of large arrays of fresh memory that die."""
        if self.codes[index] is not None and self.program.equations[index].primitive.name not in NESTED:
            for var in self.program.equations[index].outputs:
                if self.storages[var] == {var}:
                    self.writable.setdefault(var, (var.shape, var.dtype))
        drops = []
        for storage in self.dying.get(index, ()):
            slot = self.slots.pop(storage, None)
            if slot is not None:
                self.free_slots.append(slot)
            elif self._is_fresh(storage) and _bytes(storage) >= WORTH_DROPPING:
                drops.append(self.names[storage])
        return tuple(drops)

    def _is_fresh(self, storage: Storage) -> bool:
        """Whether a statement made the memory of a storage for it alone."""
        return storage not in self.transferred and self.names[storage].startswith("t")

    def _blocked_run(self, start: int) -> int:
        """The number of elementwise equations from here on that work on arrays of one large shape."""
        equations = self.program.equations
        if self.device or not self.scratch or not equations[start].outputs:
            return 0
        shape = equations[start].outputs[0].shape
        if math.prod(shape) < BLOCKED:
            return 0
        stop = start
        while stop < len(equations) and self._is_blockable(stop, shape):
            stop += 1
        return stop - start

    def _is_blockable(self, index: int, shape: tuple[int, ...]) -> bool:
        equation, code = self.program.equations[index], self.codes[index]
        if code is None or not code.out or equation.primitive.numpy is None or equation.params or code.helpers:
            return False
        if equation.outputs[0].shape != shape:
            return False
        return all([type(x) is not Var or x.shape in ((), shape) for x in equation.inputs])

    def _loop(self, start: int, stop: int) -> Item:
        """One loop over blocks for the equations from start to stop."""
        equations = self.program.equations[start:stop]
        last_reads = {equation.outputs[0]: self._last_read(equation.outputs[0], stop) for equation in equations}
        wholes: dict[str, str] = {}
        scratch: dict[str, Any] = {}
        spare: dict[Any, list[str]] = {}
        blocks: dict[Var, str] = {}
        steps = []

        def block_of(whole: str) -> str:
            name = f"v{start}_{len(wholes)}"
            wholes[name] = whole
            return name

        for index, equation in enumerate(equations, start):
            code, out = self.codes[index], equation.outputs[0]
            assert code is not None
            variables = dict.fromkeys([x for x in equation.inputs if type(x) is Var])
            blocks.update([(x, block_of(self.names[x])) for x in variables if x not in blocks and x.shape != ()])
            operands = [
                blocks.get(x, name) if type(x) is Var else name
                for x, name in zip(equation.inputs, self._operands(equation), strict=True)
            ]
            for x in variables:
                if last_reads.get(x) == index:
                    spare.setdefault(x.dtype, []).append(blocks[x])
            if last_reads[out] is None:
                self.names[out] = self._whole(index, out)
                blocks[out] = block_of(self.names[out])
            else:
                reusable = [name for name in spare.get(out.dtype, ()) if code.inplace or name not in operands]
                if reusable:
                    name = reusable[-1]
                    spare[out.dtype].remove(name)
                else:
                    name = f"s{start}_{len(scratch)}"
                    scratch[name] = out.dtype
                self.names[out] = blocks[out] = name
                (storage,) = self.storages[out]
                self.writable[storage] = ()
            steps.append(PlanStep(code.text.format(*operands, out=blocks[out]), line=equation.line))
        drops = [name for index in range(start, stop) for name in self._release(index)]
        length = math.prod(equations[0].outputs[0].shape)
        return Loop(length, tuple(wholes.items()), tuple(scratch.items()), tuple(steps), tuple(drops))

    def _last_read(self, var: Var, stop: int) -> int | None:
        """The last equation that reads a value of a loop; None if an equation from `stop` on, or an output, does."""
        (storage,) = self.storages[var]
        return self.last[storage] if self.last[storage] < stop else None

    def _whole(self, index: int, out: Var) -> str:
        """Memory for an array that outlives its loop."""
        (storage,) = self.storages[out]
        if self.last[storage] == len(self.program.equations):
            self.plan_.results[f"r{index}"] = (out.shape, out.dtype)
            return f"r{index}"
        self.slots[storage] = self._slot(_bytes(out))
        return self._buffer(self.slots[storage], out)
