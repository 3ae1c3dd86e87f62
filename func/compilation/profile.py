"""Profiles of jitted functions: the time of every kernel, in one row each."""

from __future__ import annotations

import importlib
import operator
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from func.compilation.inspection import parts_of, rows_of
from func.interpreters.core import Tracer
from func.interpreters.core.errors import ArgumentError, ProfileError
from func.interpreters.host.display import axes_for, escaped, html_table
from func.interpreters.program.program import Program, Var

if TYPE_CHECKING:
    from func.interpreters.compile.execution import Executable


UNITS = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))
HEAD = ("item", "", "time", "share", "runs", "read", "written", "GB/s", "of copy", "Gflop/s")


class ProfileRow(NamedTuple):
    """One kernel, library call, loop or branch, or one part that NumPy runs.

    Bytes are the necessary traffic: each element that a run reads or writes counts once, even if the kernel touches it
    more often. They are unknown for parts that NumPy runs.
    """

    number: str
    """Its place: "2" in the program, "2.0" inside of item 2, "1/2" in part 1 of a program that was cut."""
    title: str
    seconds: float
    runs: int
    """The number of runs in one call."""
    bytes_read: int
    bytes_written: int
    operations: int
    """Floating-point operations of products; those of other kernels are not counted."""
    is_inside: bool
    """Whether it is part of a loop or branch whose time includes this row's."""

    @property
    def bandwidth(self) -> float | None:
        """Bytes read and written a second."""
        count = self.bytes_read + self.bytes_written
        return count / self.seconds if count and self.seconds else None


class Profile:
    """The result of `jitted.profile(*args)`: a table as text or HTML, `plot()` as a picture, and its numbers."""

    def __init__(self, rows: Sequence[ProfileRow], seconds: float, bandwidth: float, repeat: int, note: str) -> None:
        self.rows = tuple(rows)
        self.seconds = seconds
        """The time of one call of the compiled program, without any clock in it."""
        self.copy_bandwidth = bandwidth
        """Bytes that a copy of large arrays reads and writes in a second, on this machine."""
        self.repeat = repeat
        self.note = note
        """Further remarks, if any."""

    def __str__(self) -> str:
        whole = sum([row.seconds for row in self.rows if not row.is_inside])
        lines = [HEAD, *[self._cells(row, whole) for row in self.rows]]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        table = ["  ".join(_aligned(line, widths)).rstrip() for line in lines]
        return "\n".join([*table, *self._summary(whole)])

    __repr__ = __str__

    def _summary(self, whole: float) -> list[str]:
        runs = f"the least of {self.repeat} runs" if self.repeat > 1 else "one run"
        return [
            f"together {_time(whole)}; one call takes {_time(self.seconds)}; {runs}",
            f"a copy of large arrays reads and writes {self.copy_bandwidth / 1e9:.1f} GB/s",
            *([self.note] if self.note else []),
        ]

    def _repr_html_(self) -> str:
        whole = sum([row.seconds for row in self.rows if not row.is_inside])
        table = html_table([self._cells(row, whole) for row in self.rows], HEAD, left=2)
        return f"<div>{table}{''.join([f'<p>{escaped(line)}</p>' for line in self._summary(whole)])}</div>"

    def plot(self, ax: Any = None) -> Any:
        """Draw the time of every item as a bar on axes of matplotlib, new ones without `ax`, and return the axes.

        Items inside a loop or branch are lighter, as the loop's time includes them. Raises ArgumentError without
        matplotlib.
        """
        ax = axes_for(ax, "func.jit: profile", (8, 0.35 * len(self.rows) + 1.2))
        unit, size = next((pair for pair in UNITS if self.seconds >= pair[1]), UNITS[-1])
        whole = sum([row.seconds for row in self.rows if not row.is_inside])
        places = range(len(self.rows))
        colors = ["#e5b3a6" if row.is_inside else "#c8553d" for row in self.rows]
        bars = ax.barh(places, [row.seconds / size for row in self.rows], color=colors)
        shares = [f"{row.seconds / whole:.0%}" if whole else "" for row in self.rows]
        ax.bar_label(bars, shares, padding=3, fontsize="small")
        labels = [f"{row.number}  {row.title if len(row.title) <= 48 else f'{row.title[:47]}…'}" for row in self.rows]
        ax.set_yticks(places, [label.replace("$", r"\$") for label in labels], fontsize="small")
        ax.invert_yaxis()
        ax.margins(x=0.12)
        ax.set_xlabel(unit)
        ax.set_title(f"one call takes {_time(self.seconds)}")
        ax.figure.tight_layout()
        return ax

    def _cells(self, row: ProfileRow, whole: float) -> tuple[str, ...]:
        speed = row.bandwidth
        rate = row.operations / row.seconds / 1e9 if row.operations and row.seconds else None
        return (
            row.number,
            "  " * row.number.count(".") + row.title,
            _time(row.seconds),
            f"{row.seconds / whole:.0%}" if whole else "",
            str(row.runs),
            _bytes(row.bytes_read),
            _bytes(row.bytes_written),
            "" if speed is None else f"{speed / 1e9:.1f}",
            "" if speed is None else f"{speed / self.copy_bandwidth:.0%}",
            "" if rate is None else f"{rate:.1f}",
        )


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Numbers of rows and titles to the left, the rest to the right."""
    pairs = zip(cells, widths, strict=True)
    return [cell.ljust(width) if place < 2 else cell.rjust(width) for place, (cell, width) in enumerate(pairs)]


def _time(seconds: float) -> str:
    for unit, size in UNITS[:-1]:
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}" if seconds < 1000 * size else f"{seconds / size:.0f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def _bytes(count: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.3g} {unit}" if count < 1000 * size else f"{count / size:.0f} {unit}"
    return f"{count} B" if count else ""


def profile_of(executable: Executable, args: Sequence[Any], repeat: int, name: str) -> Profile:
    """The profile of a program that is native as a whole or in part. Raises ProfileError for others."""
    repeat = _checked_repeat(repeat)
    if any([type(x) is Tracer for x in args]):
        raise ProfileError(
            f"func.jit: profile of {name}: it has traced arguments, or uses values of an outer transform; "
            "profile the jitted transform on arrays: func.jit(func.grad(f)).profile(x)"
        )
    parts = parts_of(executable)
    if all([native is None for _, native in parts]):
        raise ProfileError(
            f"func.jit: profile of {name}: none of it is native code (compiler='numpy', a backend other than NumPy, or "
            "primitives that have no native form), so there are no kernels; `lower` shows what runs"
        )
    profiling = importlib.import_module("func.backends.llvm.report.profiling")
    bandwidth = profiling.copy_bandwidth()
    seconds, expected = least_time(lambda: executable.call(*args), repeat)
    measured = _Measured(profiling, repeat)
    if executable.parts is None:
        outputs = measured.native("", executable.native, args)
    else:
        outputs = measured.parts(executable.parts, parts, args)
    if measured.is_whole and not all(map(_is_same, outputs, expected)):
        raise ProfileError(
            f"func.jit: profile of {name}: the results of two runs differ, so the times would be those of another "
            "computation; profile a function that returns the same results for the same arguments"
        )
    note = "" if measured.is_whole else "native code met NaN or an error, and the results were computed another way"
    return Profile(measured.rows, seconds, bandwidth, repeat, note)


def _checked_repeat(repeat: Any) -> int:
    try:
        number = operator.index(repeat)
    except TypeError:
        number = 0
    if number < 1:
        raise ArgumentError(f"func.jit: profile: repeat must be a positive whole number, not {repeat!r}")
    return number


def _is_same(x: Any, y: Any) -> bool:
    """Whether two outputs are equal, NaN included."""
    x, y = np.asarray(x), np.asarray(y)
    return bool(x.dtype == y.dtype and np.array_equal(x, y, equal_nan=x.dtype.kind in "fc"))


class _Measured:
    """The rows so far."""

    def __init__(self, profiling: Any, repeat: int) -> None:
        self.profiling = profiling
        self.repeat = repeat
        self.rows: list[ProfileRow] = []
        self.is_whole = True

    def native(self, prefix: str, native: Any, args: Sequence[Any]) -> Sequence[Any]:
        """Add the rows of a native program; its outputs."""
        measured = self.profiling.measure(native, args, self.repeat)
        self.is_whole = self.is_whole and measured.is_whole
        for number, title, seconds, runs, traffic in measured.timings:
            read, written, operations = traffic
            row = ProfileRow(prefix + number, title, seconds, runs, read, written, operations, "." in number)
            self.rows.append(row)
        outputs: Sequence[Any] = measured.outputs
        return outputs

    def numpy(self, number: str, program: Program, args: Sequence[Any]) -> Sequence[Any]:
        """Add the row of a part that NumPy runs; its outputs."""
        from func.backends.source.numpy_source import compile_plan  # here, for the start-up time
        from func.interpreters.compile.planning import plan_program  # here, for the start-up time

        run = compile_plan(plan_program(program, np, False), np)
        seconds, outs = least_time(lambda: run(*args), self.repeat)
        self.rows.append(ProfileRow(number, f"NumPy: {rows_of(program)}", seconds, 1, 0, 0, 0, False))
        outputs: Sequence[Any] = outs
        return outputs

    def parts(self, program: Program, parts: Sequence[tuple[Any, Any]], args: Sequence[Any]) -> Sequence[Any]:
        """Add the rows of all parts; the outputs of the whole."""
        values: dict[Var, Any] = dict(program.constants)
        values.update(zip(program.inputs, args, strict=True))
        for place, (part, native) in enumerate(parts):
            inputs = [values[var] for var in part.inputs]
            outputs = (
                self.numpy(str(place), part, inputs) if native is None else self.native(f"{place}/", native, inputs)
            )
            values.update(zip(part.outputs, outputs, strict=True))
        return [values[x] if type(x) is Var else x for x in program.outputs]


def least_time(call: Callable[[], Any], repeat: int) -> tuple[float, Any]:
    """The least time of some calls, in seconds, and the last result; one more call comes first."""
    out = call()
    least = float("inf")
    for _ in range(repeat):
        start = time.perf_counter()
        out = call()
        least = min(least, time.perf_counter() - start)
    return least, out
