"""Which backward passes may be compiled: long ones, if the settings allow it and nothing has to be bit-equal.

What decides is a function of the calls that were made, never of the time that they took.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

MOST = 1024


class BackwardFusion:
    """`is_on` is `func.config.compile_backward`; `has_compiler` says that `func.config.compiler` is native code."""

    __slots__ = ("has_compiler", "is_on", "looks")

    def __init__(self) -> None:
        self.is_on = True
        self.has_compiler = True
        self.looks: dict[Any, bool] = {}
        """By what passes look like from outside: whether there may be a program for them."""

    def note(self, sketch: Any, may_have_program: bool) -> None:
        """Whether there may be a program for passes that look like this."""
        if len(self.looks) >= MOST:
            self.looks.clear()
        self.looks[sketch] = may_have_program


FUSION = BackwardFusion()

BY_NODES: ContextVar[bool] = ContextVar("func_by_nodes", default=False)
"""Whether backward passes run node by node, whatever has run before."""


@contextlib.contextmanager
def passes_by_nodes() -> Iterator[None]:
    """Inside, backward passes run node by node: chunks and ranks give results that do not depend on which process, or
    how many, computed which of them before."""
    token = BY_NODES.set(True)
    try:
        yield
    finally:
        BY_NODES.reset(token)
