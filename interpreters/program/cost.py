"""The cost report of a Program: operations, bytes moved and live bytes, per equation and in total."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from func.interpreters.core import Shaped
from func.interpreters.program.flops import PYTHON_CALLS, operations
from func.interpreters.program.printing import names_of
from func.interpreters.program.program import Equation, Program, Var

# fmt: off
VIEWS = frozenset([
    "all_gather", "barrier", "broadcast", "getitem", "named", "permute", "pmax", "pmin", "real", "reshape",
    "stop_gradient", "windows",
])
"""Rows whose output always lies in the memory of the first input."""
# fmt: on


@dataclass(frozen=True)
class Nested:
    """The cost of one run of a program inside an equation, and how often it runs."""

    label: str
    times: int
    cost: Cost


@dataclass(frozen=True)
class EquationCost:
    """What one equation costs. `live_bytes` are in use while it runs, its inputs and outputs among them."""

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
    """What running a Program costs, equation after equation as it stands.

    operations: arithmetic operations. bytes_moved: inputs read and outputs written, views being free.
    peak_bytes: the most bytes of arrays in use at one time, the program's inputs and constants included.
    A branch counts as its dearest case, a `while_loop` as one step.
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
        rows = [("equation", "operations", "bytes moved", "live bytes", ""), *_rows(self, "")]
        rows.append(("total", f"{self.operations:,}", f"{self.bytes_moved:,}", f"{self.peak_bytes:,}", "at the peak"))
        widths = [max([len(row[column]) for row in rows]) for column in range(4)]
        lines = []
        for row in rows:
            numbers = "  ".join([f"{row[column]:>{widths[column]}}" for column in (1, 2, 3)])
            lines.append(f"{row[0]:<{widths[0]}}  {numbers}  {row[4]}".rstrip())
        return "\n".join(lines)


def _rows(cost: Cost, indent: str) -> Iterator[tuple[str, ...]]:
    for one in cost.equations:
        yield (f"{indent}{one.text}", f"{one.operations:,}", f"{one.bytes_moved:,}", f"{one.live_bytes:,}", one.note)
        for nested in one.nested:
            times = f" × {nested.times:,}" if nested.times != 1 else ""
            inner = nested.cost
            yield (
                f"{indent}  {nested.label}{times}",
                f"{inner.operations:,}",
                f"{inner.bytes_moved:,}",
                f"{inner.peak_bytes:,}",
                "once" if times else "",
            )
            yield from _rows(inner, f"{indent}    ")


def is_view(equation: Equation) -> bool:
    """Whether an equation makes a view of its first input, which moves nothing."""
    name, inputs = equation.primitive.name, equation.inputs
    if not inputs or type(inputs[0]) is not Var:
        return name == "broadcast"
    if name == "gather":
        return all([type(x) is not Var or x.shape == () for x in inputs[1:]])
    return name in VIEWS or (name == "imag" and inputs[0].dtype.kind == "c")


def bytes_of(value: Shaped) -> int:
    """The size of an array of this shape and dtype."""
    return value.size * value.dtype.itemsize


def _held(out: Var, equation: Equation) -> int:
    """The memory that an output takes; a scalar that is broadcast takes that of one element."""
    return out.dtype.itemsize if is_view(equation) else bytes_of(out)


def program_cost(program: Program) -> Cost:
    """The cost of a program."""
    names = names_of(program)
    roots = _roots(program)
    last = _last_uses(program, roots)
    held = {var: bytes_of(var) for var in (*program.inputs, *program.constants)}
    live = peak = sum(held.values())
    rows = []
    dying: dict[int, list[Var]] = {}
    for root, place in last.items():
        dying.setdefault(place, []).append(root)
    for place, equation in enumerate(program.equations):
        held.update([(out, _held(out, equation)) for out in equation.outputs if roots[out] is out])
        before, live = live, live + sum([held[out] for out in equation.outputs if roots[out] is out])
        row = _equation_cost(equation, names, {x: held[root] for x, root in _operands(equation, roots)}, before, live)
        peak = max(peak, row.live_bytes)
        rows.append(row)
        live -= sum([held[root] for root in dying.get(place, ())])
    return Cost(tuple(rows), sum([row.operations for row in rows]), sum([row.bytes_moved for row in rows]), peak)


def _roots(program: Program) -> dict[Var, Var]:
    """For each variable the one whose memory it lies in."""
    roots: dict[Var, Var] = {var: var for var in (*program.inputs, *program.constants)}
    for equation in program.equations:
        for out in equation.outputs:
            source = equation.inputs[0] if is_view(equation) else out
            roots[out] = roots[source] if type(source) is Var and source is not out else out
    return roots


def _operands(equation: Equation, roots: dict[Var, Var]) -> list[tuple[Var, Var]]:
    """The variables that an equation reads, with those whose memory they lie in."""
    return [(x, roots[x]) for x in dict.fromkeys(equation.inputs) if type(x) is Var]


def _last_uses(program: Program, roots: dict[Var, Var]) -> dict[Var, int]:
    """For each memory that is made on the way and does not outlive the program, the last equation that uses it."""
    last: dict[Var, int] = {}
    for place, equation in enumerate(program.equations):
        for x in (*equation.inputs, *equation.outputs):
            if type(x) is Var:
                last[roots[x]] = place
    for x in (*program.inputs, *program.constants, *program.outputs):
        if type(x) is Var:
            last.pop(roots[x], None)
    return last


def _equation_cost(
    equation: Equation, names: dict[Var, str], held: dict[Var, int], before: int, live: int
) -> EquationCost:
    """The row of an equation whose operands lie in memory of `held` bytes; `live` bytes are in use with its outputs."""
    name = equation.primitive.name
    left = ", ".join([f"{names[var]}:{var.aval}" for var in equation.outputs])
    text = f"{left} = {name}" if left else name
    note = "" if name not in PYTHON_CALLS else "calls Python, which is not counted"
    if name == "while_call":
        note = "one step"
    nested = _nested(equation)
    if nested:
        combine = max if name == "cond_call" else sum
        count = combine([one.times * one.cost.operations for one in nested])
        moved = combine([one.times * one.cost.bytes_moved for one in nested])
        known = [sum([bytes_of(var) for var in program.inputs]) for _, program in equation.nested()]
        inside = max([one.cost.peak_bytes - outside for one, outside in zip(nested, known, strict=True)])
        base = live if "loop" in equation.params else before
        return EquationCost(text, name, equation.line, count, moved, max(live, base + inside), nested, note)
    moved = _bytes_moved(equation, held)
    return EquationCost(text, name, equation.line, math.ceil(operations(equation)), moved, live, (), note)


def _bytes_moved(equation: Equation, held: dict[Var, int]) -> int:
    """The inputs once each and the outputs; a broadcast input is no more than what it was made of."""
    name = equation.primitive.name
    if is_view(equation):
        return 0
    written = sum([bytes_of(out) for out in equation.outputs])
    read = [min(bytes_of(x), size) for x, size in held.items()]
    if name == "gather" and read:
        read[0] = min(read[0], written)
    return sum(read) + written


def _nested(equation: Equation) -> tuple[Nested, ...]:
    times = getattr(equation.params.get("loop"), "length", 1)
    return tuple([Nested(key, times, program.cost()) for key, program in equation.nested()])
