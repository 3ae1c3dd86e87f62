"""Values that the program of a jitted function keeps: globals, attributes, variables of outer scopes."""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from typing import Any

import numpy as np

from func.interpreters.calls.captured_values import DEPTH, PLAIN, read_by, warn_of_frozen
from func.interpreters.core import Tracer, concrete
from func.interpreters.program.content_keys import typed_key


def _content(value: Any, depth: int = DEPTH) -> Any:
    """A key that stays equal as long as a program traced with a value is right."""
    if type(value) is Tracer:
        if getattr(value, "requires_grad", False):
            return id(value)  # an input of the program, not a constant
        value = concrete(value)
    if isinstance(value, PLAIN):
        return typed_key(value)
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype.str, hash(value.tobytes()) if value.dtype.kind != "O" else id(value)
    if depth and isinstance(value, (tuple, list)):
        return type(value), tuple([_content(member, depth - 1) for member in value])
    if depth and isinstance(value, dict):
        return type(value), tuple([(typed_key(key), _content(member, depth - 1)) for key, member in value.items()])
    if isinstance(value, (set, frozenset)):
        return type(value), frozenset(map(typed_key, value))
    return id(value)


class FrozenValues:
    """The values that a function read during its trace."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._contents = self._now()

    def _now(self) -> dict[str, tuple[Any, str]]:
        return {path: (_content(value), reprlib.repr(value)) for path, value in read_by(self._function).items()}

    def warn_of_changes(self) -> None:
        """Warn of every value that has changed."""
        now = self._now()
        for path, (content, text) in self._contents.items():
            if path in now and now[path][0] != content:
                warn_of_frozen(
                    f"func.jit: {path} was {text} when the function was traced and is {now[path][1]} now; the program "
                    "uses the first\nPass it as an argument, or as a static one if it is no array."
                )
        self._contents = now
