"""The cost report of a Program: operations, bytes moved and live bytes, per equation and in total."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from func.interpreters.core import COMPLEX
from func.interpreters.program import storage
from func.interpreters.program.printing import names_of
from func.interpreters.program.program import Equation, Program, Var


@dataclass(frozen=True)
class Nested:
    """The cost of one run of a program inside an equation, and the number of its runs."""

    label: str
    times: int
    cost: Cost


@dataclass(frozen=True)
class EquationCost:
    """The cost of one equation. `row` is the name of its primitive; `live_bytes` are in use while it runs, its inputs
    and outputs included."""

    text: str
    row: str
    line: Any
    operations: int
    bytes_moved: int
    live_bytes: int
    nested: tuple[Nested, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Cost:
    """The cost of running a Program, equation after equation, unoptimized.

    Operations are arithmetic operations. `bytes_moved` are inputs read and outputs written, with free views.
    `peak_bytes` are the most bytes of arrays in use at one time, with the program's inputs and constants.
    A branch counts as its most expensive case, a `while_loop` as one step.
    """

    equations: tuple[EquationCost, ...]
    operations: int
    bytes_moved: int
    peak_bytes: int

    @property
    def summary(self) -> str:
        """The totals in one line."""
        return (
            f"{len(self.equations)} equations, {self.operations:,} operations, {self.bytes_moved:,} bytes moved, "
            f"{self.peak_bytes:,} bytes at the peak"
        )

    def __str__(self) -> str:
        cells = [("equation", "operations", "bytes moved", "live bytes", ""), *_table_lines(self, "")]
        cells.append(("total", f"{self.operations:,}", f"{self.bytes_moved:,}", f"{self.peak_bytes:,}", "at the peak"))
        widths = [max([len(line[column]) for line in cells]) for column in range(4)]
        lines = []
        for line in cells:
            numbers = "  ".join([f"{line[column]:>{widths[column]}}" for column in (1, 2, 3)])
            lines.append(f"{line[0]:<{widths[0]}}  {numbers}  {line[4]}".rstrip())
        return "\n".join(lines)


def _table_lines(cost: Cost, indent: str) -> Iterator[tuple[str, ...]]:
    """The cells of the table, line by line."""
    for line in cost.equations:
        numbers = [f"{number:,}" for number in (line.operations, line.bytes_moved, line.live_bytes)]
        yield (f"{indent}{line.text}", *numbers, line.note)
        for nested in line.nested:
            times = f" × {nested.times:,}" if nested.times != 1 else ""
            inner = nested.cost
            yield (
                f"{indent}  {nested.label}{times}",
                f"{inner.operations:,}",
                f"{inner.bytes_moved:,}",
                f"{inner.peak_bytes:,}",
                "once" if times else "",
            )
            yield from _table_lines(inner, f"{indent}    ")


def operations(equation: Equation) -> float:
    """The arithmetic operations of an equation without the programs nested in it."""
    cost = equation.primitive.cost
    if cost is None or equation.nested():
        return 0
    ins, outs = storage.avals_of(equation), [var.aval for var in equation.outputs]
    elements = sum([aval.size for aval in outs])
    count = cost * elements if isinstance(cost, (int, float)) else cost(ins, outs, equation.params)
    return count * (COMPLEX if any([aval.dtype.kind == "c" for aval in (*ins, *outs)]) else 1)


def program_cost(program: Program) -> Cost:
    """The cost of a program."""
    names = names_of(program)
    roots = storage.memory_roots(program)
    last = storage.last_uses(program, roots)
    held = {var: storage.bytes_of(var) for var in (*program.inputs, *program.constants)}
    live = peak = sum(held.values())
    equations = []
    dying: dict[int, list[Var]] = {}
    for root, place in last.items():
        dying.setdefault(place, []).append(root)
    for place, equation in enumerate(program.equations):
        held.update([(out, storage.held_bytes(out, equation)) for out in equation.outputs if roots[out] is out])
        before, live = live, live + sum([held[out] for out in equation.outputs if roots[out] is out])
        operands = {x: held[root] for x, root in storage.operand_roots(equation, roots)}
        cost = _equation_cost(equation, names, operands, before, live)
        peak = max(peak, cost.live_bytes)
        equations.append(cost)
        live -= sum([held[root] for root in dying.get(place, ())])
    total = sum([cost.operations for cost in equations])
    return Cost(tuple(equations), total, sum([cost.bytes_moved for cost in equations]), peak)


def _equation_cost(
    equation: Equation, names: dict[Var, str], held: dict[Var, int], before: int, live: int
) -> EquationCost:
    """The cost of an equation whose operands occupy `held` bytes; `live` bytes include its outputs."""
    name, loop = equation.primitive.name, equation.params.get("loop")
    left = ", ".join([f"{names[var]}:{var.aval}" for var in equation.outputs])
    text = f"{left} = {name}" if left else name
    note = "calls Python, which is not counted" if equation.primitive.calls_python else ""
    if loop is not None and not hasattr(loop, "length"):
        note = "one step"
    nested = _nested(equation)
    if nested:
        combine = max if "branches" in equation.params else sum
        count = combine([program.times * program.cost.operations for program in nested])
        moved = combine([program.times * program.cost.bytes_moved for program in nested])
        known = [sum([storage.bytes_of(var) for var in program.inputs]) for _, program in equation.nested()]
        inside = max([program.cost.peak_bytes - outside for program, outside in zip(nested, known, strict=True)])
        base = before if loop is None else live
        return EquationCost(text, name, equation.line, count, moved, max(live, base + inside), nested, note)
    moved = _bytes_moved(equation, held)
    return EquationCost(text, name, equation.line, math.ceil(operations(equation)), moved, live, (), note)


def _bytes_moved(equation: Equation, held: dict[Var, int]) -> int:
    """The inputs once each, and the outputs; a broadcast input counts as the memory behind it."""
    if storage.is_view(equation):
        return 0
    written = sum([storage.bytes_of(out) for out in equation.outputs])
    read = [min(storage.bytes_of(x), size) for x, size in held.items()]
    if equation.primitive.reads_selected and read:
        read[0] = min(read[0], written)
    return sum(read) + written


def _nested(equation: Equation) -> tuple[Nested, ...]:
    times = getattr(equation.params.get("loop"), "length", 1)
    return tuple([Nested(key, times, program.cost()) for key, program in equation.nested()])
