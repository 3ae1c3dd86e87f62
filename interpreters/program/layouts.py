"""How the arrays of a Program would lie in memory if NumPy ran it, found from its equations in their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func.interpreters.core import Array
from func.interpreters.core.strides import Strides, dense_strides, stand_in
from func.interpreters.program.program import Equation, Var


class Layouts:
    """The strides of variables, found when they are first asked for, and for all equations so far."""

    def __init__(self, equations: Sequence[Equation], constants: dict[Var, Array]) -> None:
        self.inputs: dict[Var, Any] = {}
        """What has the strides of inputs; those that are not listed are in C order."""
        self.rules: dict[Var, tuple[Callable[..., Sequence[int]], Sequence[Any]]] = {}
        """Variables whose axes lie in an order that a function finds from how other variables and arrays lie."""
        self.depend_on_inputs = False
        """Whether an answer was given that is another one for inputs that lie differently."""
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
        outputs, layout = equation.outputs, equation.primitive.layout
        if self.rules:
            for output in outputs:
                if output in self.rules and output not in self._strides:
                    self._place_by_rule(output, *self.rules[output])
        if layout is None:
            for output in outputs:
                self._strides.setdefault(output, dense_strides(output.shape, output.dtype.itemsize))
            return
        if all([output in self._strides for output in outputs]):
            return
        operands = [self._stand_in(x) if type(x) is Var else np.empty((), bool) for x in equation.inputs]
        lies = layout(*operands, **equation.params)
        is_dependent = any([x in self._dependent for x in equation.inputs if type(x) is Var])
        for place, output in enumerate(outputs):
            if output not in self._strides:
                self._place(output, lies[place] if isinstance(lies, list) else lies, is_dependent)

    def _stand_in(self, var: Var) -> Any:
        return stand_in(var.shape, self._known(var), var.dtype)

    def _place_by_rule(self, output: Var, find: Callable[..., Sequence[int]], arrays: Sequence[Any]) -> None:
        order = find(*[self._stand_in(x) if type(x) is Var else x for x in arrays])
        self._place(output, tuple(order), any([x in self._dependent for x in arrays if type(x) is Var]))

    def _place(self, output: Var, lies: Any, is_dependent: bool) -> None:
        is_new = isinstance(lies, tuple)
        shape, itemsize = output.shape, output.dtype.itemsize
        self._strides[output] = dense_strides(shape, itemsize, lies) if is_new else lies.strides
        if is_dependent and not (is_new and len(shape) < 2):
            self._dependent.add(output)
