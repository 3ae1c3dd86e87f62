"""The memory of a Program's values over time: the bytes in use at each equation, and the values alive at the peak."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from func.interpreters.core import Aval
from func.interpreters.host.source import Line
from func.interpreters.program.printing import names_of
from func.interpreters.program.program import Equation, Program, Var
from func.interpreters.program.storage import bytes_of, held_bytes, last_uses, memory_roots

ARGUMENT, CONSTANT, RESULT, INTERMEDIATE = "argument", "constant", "result", "intermediate"


class Alive(NamedTuple):
    """An array in memory: its name, its origin, and the user's line that made it."""

    name: str
    kind: str
    """"argument", "constant", "result" or "intermediate"."""
    aval: Aval | None
    bytes: int
    row: str
    """The primitive that made it, or the compiler's word for it."""
    line: Line | None


class Moment(NamedTuple):
    """One step of the timeline: an equation, or an item of native code. `bytes` are in use while it runs."""

    label: str
    line: Line | None
    bytes: int


class Liveness(NamedTuple):
    """The moments of a call, and the values alive at the peak."""

    moments: tuple[Moment, ...]
    place: int
    """The moment of the peak; -1 for a call without moments."""
    alive: tuple[Alive, ...]
    peak: int
    arguments: int
    results: int
    constants: int


def liveness(
    program: Program,
    deaths: Mapping[Var, int] | None = None,
    plan_of: Callable[[Any], tuple[Liveness, int]] | None = None,
) -> Liveness:
    """The memory that a program needs, equation after equation in its present order.

    A value is freed after its last use, or with `deaths` after the number of equations at which Python lets go of it.
    Compiled calls need what their programs need, or with `plan_of` (what their code needs, what it keeps).
    """
    roots = memory_roots(program)
    last = last_uses(program, roots)
    if deaths is not None:
        last = {root: _last_death(root, place, roots, deaths) for root, place in last.items()}
    held = {var: bytes_of(var) for var in (*program.inputs, *program.constants)}
    dying: dict[int, list[Var]] = {}
    for root, place in last.items():
        dying.setdefault(place, []).append(root)
    live = peak = sum(held.values())
    place, moments, insides = -1, [], []
    kept: dict[Any, int] = {}
    for number, equation in enumerate(program.equations):
        held.update([(out, held_bytes(out, equation)) for out in equation.outputs if roots[out] is out])
        before, live = live, live + sum([held[out] for out in equation.outputs if roots[out] is out])
        inside, keeps = _inside(equation), 0
        compiled = equation.params.get("compiled")
        if plan_of is not None and compiled is not None:
            found, keeps = plan_of(compiled)
            inside = "compiled", found
            live -= kept.get(compiled, 0)
            before -= kept.get(compiled, 0)
        at_once = live if inside is None else max(live, (before if _is_straight(equation) else live) + _extra(inside))
        if at_once > peak or place < 0:
            place, peak = number, max(at_once, peak)
        moments.append(Moment(_label(equation), equation.line, at_once))
        insides.append(inside)
        if keeps:
            kept[compiled] = keeps
            live += keeps
        live -= sum([held[root] for root in dying.get(number, ())])
    alive = _alive_at(program, place, roots, last, held)
    if place >= 0 and insides[place] is not None:
        name, inner = insides[place]
        alive += [
            entry._replace(name=f"{name}.{entry.name}", kind=INTERMEDIATE)
            for entry in inner.alive
            if entry.kind != ARGUMENT
        ]
    outputs = {roots[x] for x in program.outputs if type(x) is Var}
    results = [var for var in outputs if var not in program.inputs and var not in program.constants]
    return Liveness(
        tuple(moments),
        place,
        tuple(alive),
        peak,
        sum([bytes_of(var) for var in program.inputs]),
        sum([held[var] for var in results]),
        sum([bytes_of(var) for var in program.constants]),
    )


def _last_death(root: Var, place: int, roots: Mapping[Var, Var], deaths: Mapping[Var, int]) -> int:
    """The last equation at which Python refers to the memory of a value, directly or through a view."""
    return max([place, *[deaths.get(var, place) for var, own in roots.items() if own is root]])


def _is_straight(equation: Equation) -> bool:
    return equation.params.get("loop") is None


def _inside(equation: Equation) -> Any:
    """(name, liveness) of the program inside an equation that needs the most memory; None without one."""
    found = [(name, liveness(program)) for name, program in equation.nested()]
    return max(found, key=_extra, default=None)


def _extra(inside: Any) -> int:
    """The memory that a nested program needs beyond its inputs."""
    found = inside[1]
    return int(found.peak - found.arguments)


def _label(equation: Equation) -> str:
    outs = ", ".join([str(var.aval) for var in equation.outputs])
    return f"{equation.primitive.name} → {outs}" if outs else equation.primitive.name


def _alive_at(
    program: Program, place: int, roots: Mapping[Var, Var], last: Mapping[Var, int], held: Mapping[Var, int]
) -> list[Alive]:
    """The values alive while an equation runs, the largest first."""
    names = names_of(program)
    outputs = {roots[x] for x in program.outputs if type(x) is Var}
    alive = [Alive(names[var], ARGUMENT, var.aval, bytes_of(var), "", None) for var in program.inputs]
    alive += [Alive(names[var], CONSTANT, var.aval, bytes_of(var), "", None) for var in program.constants]
    for equation in program.equations[: place + 1]:
        for out in equation.outputs:
            if roots[out] is out and (out not in last or last[out] >= place):
                kind = RESULT if out in outputs else INTERMEDIATE
                row = equation.primitive.name
                alive.append(Alive(names[out], kind, out.aval, held[out], row, equation.line))
    return sorted(alive, key=lambda entry: -entry.bytes)


def largest_lines(alive: Sequence[Alive], count: int) -> list[Alive]:
    """The arrays that take the most memory."""
    return sorted(alive, key=lambda entry: -entry.bytes)[:count]
