"""Plans: statements in order, with names and memory, as plain data for the code generators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from func.backends.records import Record, field

COMPILED = "<func.jit>"
"""The file that tracebacks name for compiled source."""
LINES = "lines_of_user"
"""The global variable of compiled source with the user's line of each of its lines, or None."""


class PlanStep(Record):
    """One statement: `target = text`, or `text` alone where it writes into memory that already has a name."""

    text: str
    target: str | None = None
    drops: tuple[str, ...] = ()
    """Names of large arrays that nothing after this statement reads."""
    line: Any = None
    """The user's line that it computes, by its text; None if unknown."""


class Loop(Record):
    """Elementwise steps over arrays of one length, run in blocks that stay in the cache.

    `views` names the blocks of flat arrays, each with the array that it is cut from. `scratch` names the blocks that
    are dead after their iteration, each with its dtype.
    """

    length: int
    views: tuple[tuple[str, str], ...]
    scratch: tuple[tuple[str, Any], ...]
    steps: tuple[PlanStep, ...]
    drops: tuple[str, ...] = ()


Item: TypeAlias = PlanStep | Loop


class PlanBuffer(Record):
    """An array over scratch memory: its slot, shape and dtype."""

    slot: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class Plan(Record):
    """A whole program. `calls` are the callables of equations without text, `helpers` functions that texts call."""

    inputs: list[str] = field(default_factory=list)
    constants: dict[str, Any] = field(default_factory=dict)
    calls: dict[str, Callable[..., Any]] = field(default_factory=dict)
    helpers: dict[str, Callable[..., Any]] = field(default_factory=dict)
    functions: dict[str, Plan] = field(default_factory=dict)
    """Plans of bodies that texts call by name."""
    slots: list[int] = field(default_factory=list)
    buffers: dict[str, PlanBuffer] = field(default_factory=dict)
    results: dict[str, tuple[tuple[int, ...], Any]] = field(default_factory=dict)
    """Outputs in memory that is recycled once the caller has dropped them: their shapes and dtypes."""
    items: list[Item] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)

    @property
    def scratch_bytes(self) -> int:
        """The size of the slots."""
        return sum(self.slots)
