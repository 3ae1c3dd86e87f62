"""Gradient modes: which open grad interpreters record, and the switches that hold for a thread or task.

A mode remembers the level at which it was entered. It governs the interpreters that were open then; a transform that
starts later has a higher level and records. So an inner `no_grad` is respected by `func.grad`, an outer one is not.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any, NamedTuple


class Mode(NamedTuple):
    """A switch: interpreters from `floor` to below `level` record if `records`, for others the mode `outer` holds;
    `inference` marks what is made meanwhile. With `tensors` it concerns the interpreters of tensors alone, which lie
    half a level above their transform."""

    level: float
    records: bool
    inference: bool = False
    outer: Mode | None = None
    floor: float = 0.0
    tensors: bool = False


MODE: ContextVar[Mode | None] = ContextVar("func_mode", default=None)
"""The switch in force; None: everything records."""

SAVING: ContextVar[tuple[Any, ...]] = ContextVar("func_saving", default=())
"""The pairs (pack, unpack) for saved values, innermost last; a string forbids them, being the reason."""

ANOMALY: ContextVar[Any] = ContextVar("func_anomaly", default=None)
"""None, or whether NaN are looked for: then the lines of operations are recorded."""


STAGING: ContextVar[str | None] = ContextVar("func_staging", default=None)
"""The name of the transform that stages a program to be run later, while it does."""


class Watched:
    """Whether SAVING or ANOMALY has ever been set in this process; until then no operation looks them up."""

    __slots__ = ("ever",)

    def __init__(self) -> None:
        self.ever = False


WATCHED = Watched()


def is_suspended(level: float) -> bool:
    """Whether an interpreter of that level does not record."""
    mode = MODE.get()
    while mode is not None:
        if mode.floor <= level < mode.level and not (mode.tensors and level % 1 == 0):
            return not mode.records
        mode = mode.outer
    return False


@contextlib.contextmanager
def nothing_recorded() -> Iterator[None]:
    """No interpreter records inside the block."""
    outer = MODE.get()
    token = MODE.set(Mode(math.inf, False, outer is not None and outer.inference, outer))
    try:
        yield
    finally:
        MODE.reset(token)
