"""Whether backward passes over large arrays are compiled, which the settings of a process say."""

from __future__ import annotations


class BackwardFusion:
    """`is_on` is `func.config.compile_backward`; `has_compiler` says that `func.config.compiler` is native code."""

    __slots__ = ("has_compiler", "is_on")

    def __init__(self) -> None:
        self.is_on = True
        self.has_compiler = True


FUSION = BackwardFusion()
