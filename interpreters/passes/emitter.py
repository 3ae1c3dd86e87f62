"""Making the equations of a rewritten program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from func.interpreters.core import Array, Aval, Shape
from func.interpreters.primitives.structural import Index, broadcast, getitem, permute, reshape
from func.interpreters.program import Equation, Program, Var


class Emitter:
    """New equations and constants, in order; `line` is where they are said to come from."""

    def __init__(self, source: Program) -> None:
        self.constants = dict(source.constants)
        self.equations: list[Equation] = []
        self.line: Any = None

    def constant(self, value: Array) -> Any:
        """A new constant."""
        var = Var(Aval(value.shape, value.dtype))
        self.constants[var] = value
        return var

    def emit(self, row: Any, *inputs: Any, **params: Any) -> Any:
        """A new equation; rows that would do nothing, and arithmetic on scalars alone, make none."""
        x = inputs[0]
        if (row is broadcast or row is reshape) and type(x) is Var and x.shape == params["shape"]:
            return x
        avals = [x.aval if type(x) is Var else Aval((), np.asarray(x).dtype, True) for x in inputs]
        out = Var(row.aval(*avals, **params))
        if out.shape == () and not any([type(x) is Var for x in inputs]):
            return row.impl(np, *[np.asarray(x) for x in inputs], **params).item()
        self.equations.append(Equation(row, inputs, params, (out,), self.line))
        return out

    def reshaped(self, x: Any, shape: Shape) -> Any:
        """x in another shape."""
        return self.emit(reshape, x, shape=shape)

    def permuted(self, x: Var, order: Sequence[int]) -> Any:
        """x with its axes in another order."""
        return x if list(order) == sorted(order) else self.emit(permute, x, order=tuple(order))

    def sliced(self, x: Var, index: Index) -> Any:
        """A basic index, which may be trivial."""
        if all([entry == (0, n, 1) for entry, n in zip(index, x.shape, strict=True)]):
            return x
        return self.emit(getitem, x, index=index)
