"""What `func.jit` keeps of one traced call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func import tree
from func.donation import overwritable
from func.interpreters.staged import Staged

__all__ = ["Entry"]


class Entry:
    """One traced call: the Staged, the traced values that it closes over, and the tree of the output."""

    __slots__ = ("_donating", "_native", "captured", "donated", "out_spec", "passes_on", "single", "staged")

    def __init__(self, staged: Staged, out_spec: Any, captured: list[Any], donated: frozenset[int]) -> None:
        self.donated = donated
        self._donating: Any = None
        self._native: Any = None
        self.staged = staged
        self.out_spec = out_spec
        self.captured = captured
        self.passes_on = _may_pass_on(staged)
        """Whether an output may be an argument itself, which callers get a copy of."""
        self.single = len(staged.program.outputs) == 1 and out_spec.num_nodes == 1

    def native(self, args: tuple[Any, ...], slow: Callable[..., Any], failed: Callable[..., Any]) -> Any:
        """Native code that takes arguments like these as they are and makes the whole result; None if there is none."""
        if self._native is None:
            executor = self.staged.executable(np).native
            if executor is not None and not executor.is_ready:
                return None
            self._native = (executor and executor.for_trees(args, self.unflattened, slow, failed)) or False
            if executor is not None and self._native:
                executor.release()
        return self._native or None

    def unflattened(self, leaves: Sequence[Any]) -> Any:
        """The output tree with these leaves."""
        return tree.unflatten(self.out_spec, leaves)

    def run_donating(self, leaves: Sequence[Any]) -> Sequence[Any]:
        """Run on host arrays, those in `donated` being overwritten where that is safe."""
        if self._donating is None:
            self._donating = self.staged.donating(np, self.donated)
        outs: Sequence[Any] = self._donating.call(*overwritable(leaves, self._donating.overwrites))
        return outs


def _may_pass_on(staged: Staged) -> bool:
    """Whether an output has the shape and dtype of an argument, as it must to be the same array."""
    given = {(var.aval.shape, var.aval.dtype) for var in staged.program.inputs}
    return any([(aval.shape, aval.dtype) in given for aval in staged.out_avals])
