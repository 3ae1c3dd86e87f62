"""memory: the memory of a call of a function, step by step, before it runs."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

import numpy as np

from func import tree
from func.backends import namespace_of
from func.compilation.jit import Jitted
from func.interpreters.compile.call_memory import planned_liveness
from func.interpreters.host.display import axes_for
from func.interpreters.program.liveness import ARGUMENT, CONSTANT, INTERMEDIATE, RESULT, Alive, Liveness, Moment
from func.transforms.boundary import name_of
from func.transforms.memory_limits import PLANNING, Planning, call_liveness, described, planning, shown_bytes
from func.transforms.transformed import keeps_parameters, transform

MOST_ROWS = 24
"""Rows of a printed timeline; a longer one shows the peak of several steps in each row."""
MOST_ALIVE = 12
BAR = 24
COLORS = {ARGUMENT: "#9db4c0", CONSTANT: "#c2b280", RESULT: "#5c946e", INTERMEDIATE: "#c8553d"}


@keeps_parameters
@transform
def memory(f: Callable[..., Any]) -> Callable[[tuple[Any, ...], dict[str, Any]], MemoryTimeline]:
    """The memory that a call of a function needs: called with arguments (or avals), it gives a timeline.

    It computes nothing. For a jitted function it is the plan of the compiled program. For any other function it is
    NumPy's allocations, by a trace on abstract arrays, which shows when Python drops each array. The function gets ints
    and other objects unchanged. Transforms with a `memory_limit` add their choices.

    The timeline prints as text, shows as HTML in notebooks, and `plot()` draws it. It does not count arrays of code
    outside of func, and Python's own objects.

    Raises:
        StagingError: Python depends on values or on shapes that depend on data (a TypeError).
        MemoryLimitError: No plan meets a memory limit inside (a MemoryError).

    Example:
        >>> import numpy as np, func
        >>> timeline = func.memory(lambda x: np.sum(np.sin(x) * 2))(np.ones(1000))
        >>> timeline.peak, timeline.arguments, timeline.results
        (24000, 8000, 8)
    """

    def timeline_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> MemoryTimeline:
        with planning(Planning()) as plan:
            assert plan is not None
            liveness, source = _measured(f, args, kwargs)
        return MemoryTimeline(liveness, name_of(f), source, tuple(plan.notes))

    return timeline_of


def _measured(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Liveness, str]:
    """The memory of a call, and the source of this information."""
    if isinstance(function, Jitted):
        positional, keyword, _, cached = function.cached_call(args, kwargs, takes_path=True)
        plan = PLANNING.get()
        if plan is not None:
            plan.notes += [f"func.jit of {name_of(function)}: {text}" for text in cached.memory_plan]
        return planned_liveness(
            cached.compiled, namespace_of(tuple(tree.leaves((positional, keyword)))), cached.donated
        )
    return call_liveness(function, args, kwargs, "memory"), "NumPy's arrays, operation by operation"


class MemoryTimeline:
    """The result of `func.memory(f)(*args)`: it prints as a timeline, with its numbers, in bytes, as attributes."""

    def __init__(self, liveness: Liveness, name: str, source: str, plans: tuple[str, ...] = ()) -> None:
        self.name = name
        self.source = source
        """The source of the timeline."""
        self.plans = plans
        """The choices of transforms with a memory limit: chunk sizes, recomputation."""
        self.peak: int = liveness.peak
        """The most bytes in use at one time, arguments, constants and results included."""
        self.arguments: int = liveness.arguments
        self.results: int = liveness.results
        self.constants: int = liveness.constants
        self.moments: tuple[Moment, ...] = liveness.moments
        """The steps in order, each with a label, the user's line, and the bytes in use during it."""
        self.place: int = liveness.place
        """The number of the step at which the peak is reached."""
        self.alive: tuple[Alive, ...] = liveness.alive
        """The arrays that are in memory at the peak, the largest first."""

    @property
    def intermediates(self) -> int:
        """The bytes at the peak, without arguments, constants and results."""
        return self.peak - sum([entry.bytes for entry in self.alive if entry.kind != INTERMEDIATE])

    def __str__(self) -> str:
        head = f"memory of {self.name}: {shown_bytes(self.peak)} at the peak"
        if self.moments:
            head += f", in step {self.place} of {len(self.moments)} ({self.moments[self.place].label})"
        lines = [
            head,
            f"  arguments {shown_bytes(self.arguments)}, constants {shown_bytes(self.constants)}, results "
            f"{shown_bytes(self.results)}, intermediate values at the peak {shown_bytes(self.intermediates)}",
            f"  read from: {self.source}",
            *[f"  plan: {text}" for text in self.plans],
        ]
        rows = self._rows()
        width = max([len(shown_bytes(moment.bytes)) for _, moment in rows], default=0)
        numbers = max([len(number) for number, _ in rows], default=0)
        for number, moment in rows:
            bar = "█" * max(1, round(BAR * moment.bytes / max(self.peak, 1)))
            lines.append(f"  {number:>{numbers}}  {shown_bytes(moment.bytes):>{width}}  {bar:<{BAR}}  {moment.label}")
        lines.append("alive at the peak:")
        lines += [f"  {described(entry)}" for entry in self.alive[:MOST_ALIVE]]
        if len(self.alive) > MOST_ALIVE:
            left = sum([entry.bytes for entry in self.alive[MOST_ALIVE:]])
            lines.append(f"  {shown_bytes(left)}  in {len(self.alive) - MOST_ALIVE} more")
        return "\n".join(lines)

    __repr__ = __str__

    def _rows(self) -> list[tuple[str, Moment]]:
        """The rows of the printed timeline: steps, or the largest of several steps, with their numbers."""
        if len(self.moments) <= MOST_ROWS:
            return [(str(number), moment) for number, moment in enumerate(self.moments)]
        size = -(-len(self.moments) // MOST_ROWS)
        rows = []
        for start in range(0, len(self.moments), size):
            group = self.moments[start : start + size]
            rows.append((f"{start}-{start + len(group) - 1}", max(group, key=lambda moment: moment.bytes)))
        return rows

    def _repr_html_(self) -> str:
        rows = "".join(
            [
                f"<tr><td>{number}</td><td style='text-align:right'>{shown_bytes(moment.bytes)}</td>"
                f"<td><div style='background:{COLORS[INTERMEDIATE]};height:0.8em;width:"
                f"{round(200 * moment.bytes / max(self.peak, 1))}px'></div></td>"
                f"<td style='text-align:left'>{html.escape(moment.label)}</td></tr>"
                for number, moment in self._rows()
            ]
        )
        alive = "".join([f"<li>{html.escape(described(entry))}</li>" for entry in self.alive[:MOST_ALIVE]])
        plans = "".join([f"<p>plan: {html.escape(text)}</p>" for text in self.plans])
        title = f"<b>memory of {html.escape(self.name)}</b>: {shown_bytes(self.peak)} at the peak"
        return f"<div><p>{title}</p>{plans}<table>{rows}</table><p>alive at the peak:</p><ul>{alive}</ul></div>"

    def plot(self, ax: Any = None) -> Any:
        """Draw the bytes in use over the steps on axes of matplotlib, new ones without `ax`, and return the axes.

        Raises ArgumentError without matplotlib.
        """
        ax = axes_for(ax, "func.memory", (8, 3.5))
        scale, unit = next((size, word) for size, word in _SCALES if max(self.peak, 1) >= size)
        steps = np.arange(len(self.moments) + 1)
        used = np.array([moment.bytes for moment in self.moments]) / scale
        fixed = (self.arguments + self.constants) / scale
        ax.stairs(used, steps, fill=True, color=COLORS[INTERMEDIATE], label="intermediate values and results")
        ax.stairs(np.minimum(used, fixed), steps, fill=True, color=COLORS[ARGUMENT], label="arguments and constants")
        if self.moments:
            line = self.moments[self.place].line
            ax.annotate(
                f"{shown_bytes(self.peak)}\n{line.text if line is not None else self.moments[self.place].label}",
                (self.place + 0.5, self.peak / scale),
                textcoords="offset points",
                xytext=(0, 4),
                ha="center",
                fontsize="small",
            )
        ax.set_ylim(0, 1.4 * max(self.peak, 1) / scale)
        ax.set_xlabel("step")
        ax.set_ylabel(unit)
        ax.set_title(f"memory of {self.name}")
        ax.legend(loc="upper right", fontsize="small")
        return ax


_SCALES = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "bytes"))
