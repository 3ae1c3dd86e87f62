"""Backward passes by compiled code: frequent ones, if the settings allow it and nothing has to be bit-equal.

What decides is a function of the calls that were made, never of the time that they took.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Iterable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

from func.backends.blocks import in_one_thread
from func.interpreters import grad, nan_safe
from func.interpreters.core import Array
from func.interpreters.core.wiring import WIRING
from func.interpreters.grad import AVAL, PARENTS, PULLING, RULE, SERIAL
from func.interpreters.live import Live

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
    native code and kernels. `has_begun`: a pass has run, or what compiles passes is imported."""

    __slots__ = ("has_begun", "is_on", "looks", "on_device", "on_host")

    def __init__(self) -> None:
        self.has_begun = False
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


def pull_back(seeds: Iterable[tuple[Any, Array]], leaves: Sequence[Any], values: Sequence[Array] = ()) -> list[Any]:
    """Cotangents of the leaves, given those of some outputs, whose `values` tell which outer levels take part.

    ZERO where a leaf is not reached.
    """
    return nan_safe.pull(functools.partial(walk, list(seeds), leaves), values)


def walk(seeds: Iterable[tuple[Any, Array]], leaves: Sequence[Any], live: Live | None = None) -> list[Any]:
    """`grad.walk`, by compiled code for passes that are frequent."""
    if live is not None or not leaves or PULLING.get() is not None:
        return grad.walk(seeds, leaves, live)
    seeds = list(seeds)
    if not seeds or not (FUSION.is_on and (FUSION.on_host or FUSION.on_device)) or BY_NODES.get():
        return grad.walk(seeds, leaves)
    sketch = _sketch(seeds, leaves)
    look = FUSION.looks.get(sketch)
    if look is None:
        look = FUSION.new_look(sketch)
        if not FUSION.has_begun:  # a process with one pass does without the modules that compile passes
            FUSION.has_begun = True
            return grad.walk(seeds, leaves)
    for read in look.readers:
        cotangents: list[Any] | None = read(seeds, leaves)
        if cotangents is not None:
            return cotangents
    if look.waits:
        look.waits -= 1
        return grad.walk(seeds, leaves)
    fused: list[Any] = WIRING.fused_walk(seeds, leaves, look)
    return fused


def _sketch(seeds: Sequence[tuple[Any, Array]], leaves: Sequence[Any]) -> Any:
    """What is alike in passes over one graph, and soon found: how many nodes were made, and the kind of the ends."""
    root, leaf = seeds[0][0], leaves[0]
    last = root[PARENTS][0] if root[PARENTS] else None
    return root[SERIAL] - leaf[SERIAL], root[RULE], last and last[RULE], leaf[AVAL].shape, len(leaves)
