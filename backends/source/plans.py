"""Plans: what is to be computed in which order into which memory, as plain data for the code generators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from func.backends.records import Record, field


class Step(Record):
    """One statement: `target = text`, or `text` alone where it writes into memory that already has a name."""

    text: str
    target: str | None = None
    drops: tuple[str, ...] = ()
    """Names that nothing after this statement needs, whose memory is worth giving back."""


class Loop(Record):
    """Elementwise steps over arrays of one length, run in blocks that stay in the cache.

    `views` names the flat arrays that are cut into blocks, each with what it is a flat view of; inside the steps a
    name stands for the present block. `scratch` are blocks that live only inside: name and dtype.
    """

    length: int
    views: tuple[tuple[str, str], ...]
    scratch: tuple[tuple[str, Any], ...]
    steps: tuple[Step, ...]
    drops: tuple[str, ...] = ()


Item: TypeAlias = Step | Loop


class Buffer(Record):
    """An array over scratch memory: the slot that it lies in, its shape and dtype."""

    slot: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class Plan(Record):
    """A whole program. `calls` are Python callables for what has no text; `support` functions that texts call."""

    inputs: list[str] = field(default_factory=list)
    constants: dict[str, Any] = field(default_factory=dict)
    calls: dict[str, Callable[..., Any]] = field(default_factory=dict)
    support: dict[str, Callable[..., Any]] = field(default_factory=dict)
    functions: dict[str, Plan] = field(default_factory=dict)
    """Plans of bodies that texts call by name."""
    slots: list[int] = field(default_factory=list)
    buffers: dict[str, Buffer] = field(default_factory=dict)
    results: dict[str, tuple[tuple[int, ...], Any]] = field(default_factory=dict)
    """Outputs that are written into memory that is recycled once the caller has dropped them."""
    items: list[Item] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)

    @property
    def scratch_bytes(self) -> int:
        """The memory that the plan's buffers take."""
        return sum(self.slots)
