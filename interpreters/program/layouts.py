"""The memory layouts that the arrays of a Program would have in NumPy, found from its equations in their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from func.backends.array_helpers.strides import Strides, dense_strides, stand_in
from func.interpreters.core import Array
from func.interpreters.program.program import Equation, Var


class Layouts:
    """The strides of variables: the first question about one follows all equations up to it."""

    def __init__(self, equations: Sequence[Equation], constants: dict[Var, Array]) -> None:
        self.inputs: dict[Var, Any] = {}
        """Variables with the strides of inputs; others are in C order."""
        self.rules: dict[Var, tuple[Callable[..., Sequence[int]], Sequence[Any]]] = {}
        """Variables whose order of axes a function finds from the layouts of other variables and arrays."""
        self.depend_on_inputs = False
        """Whether some answer depends on the layout of the inputs."""
        self._strides: dict[Var, Strides] = {}
        self._dependent: set[Var] = set()
        self._equations = equations
        self._constants = constants
        self._count = 0

    def of(self, var: Var) -> Strides:
        """The strides of a variable."""
        while self._count < len(self._equations):
            equation = self._equations[self._count]
            self._count += 1
            self._infer(equation)
        strides = self._known(var)
        self.depend_on_inputs |= var in self._dependent
        return strides

    def set(self, var: Var, strides: Strides) -> None:
        """State the strides of a variable whose equation does not tell them."""
        self._strides[var] = strides

    def _known(self, var: Var) -> Strides:
        strides = self._strides.get(var)
        if strides is None:
            strides = dense_strides(var.shape, var.dtype.itemsize)
            if var in self._constants:
                constant = getattr(self._constants[var], "strides", ())
                strides = constant if len(constant) == len(var.shape) else strides
            elif var.shape:
                self._dependent.add(var)
                strides = self.inputs[var].strides if var in self.inputs else strides
            self._strides[var] = strides
        return strides

    def _infer(self, equation: Equation) -> None:
        layout = equation.primitive.layout
        for place, output in enumerate(equation.outputs):
            shape, itemsize = output.shape, output.dtype.itemsize
            if output in self._strides:
                continue
            find, arrays = self.rules.get(output) or (layout and partial(layout, **equation.params), equation.inputs)
            lies: Any = find(*map(self._stand_in, arrays)) if find else None
            lies = lies[place] if isinstance(lies, list) else lies
            is_view = isinstance(lies, np.ndarray)
            self._strides[output] = lies.strides if is_view else dense_strides(shape, itemsize, lies)
            if (is_view or (find and len(shape) > 1)) and any([x in self._dependent for x in arrays if type(x) is Var]):
                self._dependent.add(output)

    def _stand_in(self, x: Any) -> Any:
        if type(x) is Var:
            return stand_in(x.shape, self._known(x), x.dtype)
        return x if isinstance(x, np.ndarray) else np.empty((), bool)
