"""Which backward passes are compiled: those that are slow, if the settings of a process allow it."""

from __future__ import annotations

from typing import Any

MOST = 1024


class BackwardFusion:
    """`is_on` is `func.config.compile_backward`; `has_compiler` says that `func.config.compiler` is native code."""

    __slots__ = ("has_compiler", "is_on", "slow")

    def __init__(self) -> None:
        self.is_on = True
        self.has_compiler = True
        self.slow: dict[Any, bool] = {}
        """By what slow passes look like from outside: whether there may be a program for them."""

    def note(self, sketch: Any, has_program: bool | None) -> None:
        """Passes that look like this are slow, with a program or without; None: they are not slow after all."""
        if has_program is None:
            self.slow.pop(sketch, None)
            return
        if len(self.slow) >= MOST:
            self.slow.clear()
        self.slow[sketch] = has_program


FUSION = BackwardFusion()
