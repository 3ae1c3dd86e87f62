"""The table of rules: each primitive in terms of a fuser's array operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from func.backends.loops.fusion import Fuser
from func.backends.loops.kernels import Buffer, DType, FlagCheck
from func.backends.loops.schedule import Schedule
from func.backends.loops.value_storage import ValueStorage
from func.backends.loops.values import ArrayValue, uniform
from func.interpreters.compile.native.not_native import NotNative
from func.interpreters.core import Aval, aval_of
from func.interpreters.program.program import Equation, Var


class TranslationContext:
    """The context of a rule: an equation (operands as values, avals, parameters), the fuser, its storage and
    schedule."""

    def __init__(self, translator: Any, equation: Equation, args: Sequence[ArrayValue]) -> None:
        self.translator = translator
        self.fuser: Fuser = translator.fuser
        self.storage: ValueStorage = self.fuser.storage
        self.schedule: Schedule = self.fuser.schedule
        self.equation = equation
        self.args = list(args)
        self.params = equation.params
        self.avals: list[Aval] = [x.aval if type(x) is Var else aval_of(x) for x in equation.inputs]
        self.outs: list[Aval] = [var.aval for var in equation.outputs]

    @property
    def out(self) -> Aval:
        """The aval of the only output."""
        (out,) = self.outs
        return out

    @property
    def reduction(self) -> str:
        """The operation by which the primitive reduces."""
        op = self.equation.primitive.reduces
        assert op is not None
        return op

    def map(self, op: str, *args: ArrayValue, dtype: DType | None = None) -> ArrayValue:
        """An operation element by element; the dtype is the last operand's unless given."""
        return self.fuser.map(op, args, args[-1].dtype if dtype is None else dtype)

    def number(self, value: Any, dtype: DType) -> ArrayValue:
        """A number."""
        return uniform(value, dtype)

    def constant(self, value: Any) -> ArrayValue:
        """An array of the program."""
        array = np.ascontiguousarray(value)
        self.translator.constants.append(array)
        buffer = Buffer(array.size, array.dtype, "constant", len(self.translator.constants) - 1)
        return self.storage.located(buffer, array.shape)

    def convert(self, x: ArrayValue, dtype: DType) -> ArrayValue:
        """x as another dtype."""
        if x.dtype == dtype:
            return x
        if x.root is None:
            return uniform(np.asarray(x.number).astype(dtype)[()], dtype, x.shape)
        return self.fuser.map("convert", [x], dtype)

    def fitted(self, place: int, dtype: DType) -> ArrayValue:
        """An operand as another dtype. A Python integer beyond it is an error, as in NumPy."""
        x = self.args[place]
        if dtype.kind in "iu" and x.dtype.kind in "iu" and self.avals[place].weak:
            bounds = np.iinfo(dtype)
            if x.root is None:
                if not bounds.min <= int(x.number) <= bounds.max:
                    raise NotNative(f"{x.number} as {dtype}, which NumPy rejects")
            elif not np.can_cast(x.dtype, dtype):
                self._check_bounds(x, int(bounds.min), int(bounds.max))
        return self.convert(x, dtype)

    def _check_bounds(self, x: ArrayValue, low: int, high: int) -> None:
        """Let the program report an error if an integer is out of bounds."""
        bit = np.dtype(bool)
        is_out = self.map("less", x, self.number(low, x.dtype), dtype=bit)
        if high < np.iinfo(x.dtype).max:
            is_out = self.map("logical_or", is_out, self.map("greater", x, self.number(high, x.dtype), dtype=bit))
        is_out = self.fuser.reduce("logical_or", is_out, range(len(is_out.shape)), False) if is_out.shape else is_out
        self.schedule.add(FlagCheck(self.storage.ref(self.storage.copied(is_out))))

    def keep(self, x: ArrayValue, shape: Sequence[int], axes: Sequence[int]) -> ArrayValue:
        """A reduced array with its axes back, at length one."""
        return self.fuser.reshape(x, tuple([1 if i in axes else n for i, n in enumerate(shape)]))


Rule: TypeAlias = Callable[[TranslationContext], Any]
RULES: dict[str, Rule] = {}


PRINTED: dict[str, Rule] = {}
"""Rules for printed code, for primitives without a form in `RULES`."""


def printed(*names: str) -> Callable[[Rule], Rule]:
    """Register a rule for printed code."""

    def register(rule: Rule) -> Rule:
        PRINTED.update(dict.fromkeys(names, rule))
        return rule

    return register


def native(*names: str) -> Callable[[Rule], Rule]:
    """Register a rule for primitives, by their names."""

    def register(rule: Rule) -> Rule:
        for name in names:
            if name in RULES:
                raise ValueError(f"two native rules for {name!r}")
            RULES[name] = rule
        return rule

    return register
