"""Which backward passes may be compiled: frequent ones, if the settings allow it and nothing has to be bit-equal.

What decides is a function of the calls that were made, never of the time that they took.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from func.backends.blocks import in_one_thread

MOST = 1024
MOST_READERS = 4
"""Structures that are told apart by readers, where passes look the same."""


class Look:
    """What is known of the passes that look the same from outside."""

    __slots__ = ("hits", "misses", "readers", "waits")

    def __init__(self) -> None:
        self.readers: list[Any] = []
        """What recognises graphs whose passes have code, and runs it."""
        self.waits: float = 0
        """How many passes run node by node before the graph of one is looked at again."""
        self.hits = self.misses = 0
        """How many of the graphs that were looked at had been seen before, and how many had not."""

    def add(self, reader: Any) -> None:
        """Ask this reader too, from now on."""
        if reader not in self.readers and len(self.readers) < MOST_READERS:
            self.readers.append(reader)

    def give_up(self) -> None:
        """Look at no graph again."""
        self.waits = math.inf


class BackwardFusion:
    """`is_on` is `func.config.compile_backward`; `on_host` and `on_device` say whether `func.config.compiler` makes
    native code and kernels."""

    __slots__ = ("is_on", "looks", "on_device", "on_host")

    def __init__(self) -> None:
        self.is_on = self.on_host = self.on_device = True
        self.looks: dict[Any, Look] = {}
        """By what passes look like from outside."""

    def new_look(self, sketch: Any) -> Look:
        """What is known of passes that look like this: nothing."""
        if len(self.looks) >= MOST:
            self.looks.clear()
        look = self.looks[sketch] = Look()
        return look


FUSION = BackwardFusion()

BY_NODES: ContextVar[bool] = ContextVar("func_by_nodes", default=False)
"""Whether backward passes run node by node, whatever has run before."""


@contextlib.contextmanager
def by_nodes() -> Iterator[None]:
    """Inside, backward passes run node by node: their memory is the one that is planned, and none is compiled."""
    token = BY_NODES.set(True)
    try:
        yield
    finally:
        BY_NODES.reset(token)


@contextlib.contextmanager
def passes_by_nodes() -> Iterator[None]:
    """`by_nodes` in one thread: chunks and ranks give results that do not depend on which process, or how many,
    computed which of them before."""
    with by_nodes(), in_one_thread():
        yield
