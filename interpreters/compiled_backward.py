"""Backward passes by compiled code: frequent ones, if the settings allow it and nothing has to be bit-equal.

The decision is a function of the earlier calls, never of the time that they took.
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
from func.interpreters.structural_zeros import StructuralZeros

MOST = 1024
MOST_MATCHERS = 4
"""Structures of one signature that matchers tell apart."""


class PassHistory:
    """The passes of one graph signature so far: how many were examined, and the matchers of those that have code."""

    __slots__ = ("hits", "matchers", "misses", "waits")

    def __init__(self) -> None:
        self.matchers: list[Any] = []
        """Each recognises the graphs of one structure and runs its code."""
        self.waits: float = 0
        """The number of passes that run node by node before a graph is examined again."""
        self.hits = self.misses = 0
        """The numbers of examined graphs with a known structure, and with a new one."""

    def add(self, matcher: Any) -> None:
        """From now on the matcher examines every graph of this signature."""
        if matcher not in self.matchers and len(self.matchers) < MOST_MATCHERS:
            self.matchers.append(matcher)

    def give_up(self) -> None:
        """Examine no graph of this signature again."""
        self.waits = math.inf


class CompiledBackward:
    """`is_on` is `func.config.compile_backward`; `on_host` and `on_device` say whether `func.config.compiler` makes
    native code and kernels. `has_begun`: a pass has run, or what compiles passes is imported."""

    __slots__ = ("has_begun", "histories", "is_on", "on_device", "on_host")

    def __init__(self) -> None:
        self.has_begun = False
        self.is_on = self.on_host = self.on_device = True
        self.histories: dict[Any, PassHistory] = {}
        """By graph signature."""

    def new_history(self, signature: Any) -> PassHistory:
        """Make the empty history of a signature."""
        if len(self.histories) >= MOST:
            self.histories.clear()
        history = self.histories[signature] = PassHistory()
        return history


BACKWARD = CompiledBackward()

BY_NODES: ContextVar[bool] = ContextVar("func_by_nodes", default=False)
"""Whether backward passes run node by node, regardless of earlier passes."""


@contextlib.contextmanager
def by_nodes() -> Iterator[None]:
    """Inside, backward passes run node by node: they need the memory that was planned, and none is compiled."""
    token = BY_NODES.set(True)
    try:
        yield
    finally:
        BY_NODES.reset(token)


@contextlib.contextmanager
def passes_by_nodes() -> Iterator[None]:
    """`by_nodes` in one thread: results of chunks and ranks do not depend on which processes computed which of them
    before."""
    with by_nodes(), in_one_thread():
        yield


def pull_back(seeds: Iterable[tuple[Any, Array]], leaves: Sequence[Any], values: Sequence[Array] = ()) -> list[Any]:
    """Cotangents of the leaves from those of some outputs, whose `values` tell the outer levels that take part.

    ZERO where a leaf is not reached.
    """
    return nan_safe.pull(functools.partial(walk, list(seeds), leaves), values)


def walk(
    seeds: Iterable[tuple[Any, Array]], leaves: Sequence[Any], structural: StructuralZeros | None = None
) -> list[Any]:
    """`grad.walk`, by compiled code for frequent passes."""
    if structural is not None or not leaves or PULLING.get() is not None:
        return grad.walk(seeds, leaves, structural)
    seeds = list(seeds)
    if not seeds or not (BACKWARD.is_on and (BACKWARD.on_host or BACKWARD.on_device)) or BY_NODES.get():
        return grad.walk(seeds, leaves)
    signature = _signature(seeds, leaves)
    history = BACKWARD.histories.get(signature)
    if history is None:
        history = BACKWARD.new_history(signature)
        if not BACKWARD.has_begun:  # a process with one pass does without the modules that compile passes
            BACKWARD.has_begun = True
            return grad.walk(seeds, leaves)
    for read in history.matchers:
        cotangents: list[Any] | None = read(seeds, leaves)
        if cotangents is not None:
            return cotangents
    if history.waits:
        history.waits -= 1
        return grad.walk(seeds, leaves)
    pulled: list[Any] = WIRING.compiled_walk(seeds, leaves, history)
    return pulled


def _signature(seeds: Sequence[tuple[Any, Array]], leaves: Sequence[Any]) -> Any:
    """The signature of a graph, in constant time: the number of its nodes, and the rules and shapes at its ends."""
    root, leaf = seeds[0][0], leaves[0]
    last = root[PARENTS][0] if root[PARENTS] else None
    return root[SERIAL] - leaf[SERIAL], root[RULE], last and last[RULE], leaf[AVAL].shape, len(leaves)
