"""Pullbacks of elementwise rows that were recorded on real arrays alone, without the checks that others need."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from func.interpreters.core import Array, Params

if TYPE_CHECKING:
    from func.interpreters.primitives.elementwise.builder import Binary, Unary

_ARRAY = np.ndarray


class Plain:
    """The pullback of a row where nothing has to be checked; for all else it turns to the row."""

    __slots__ = ("name", "row")

    def __init__(self, row: Unary | Binary) -> None:
        self.row = row
        self.name = row.name

    def retraced(self, saved: Any, lift: Callable[[int | None, Any], Any]) -> Any:
        return self.row.retraced(saved, lift)

    def pull_guarded(self, ct: Any, wanted: Sequence[Any], saved: Any, params: Params) -> Sequence[Any]:
        return self.row.pull_guarded(ct, wanted, saved, params)

    def __reduce__(self) -> tuple[Any, ...]:
        return operator.attrgetter("plain"), (self.row,)


class PlainUnary(Plain):
    """The pullback of a unary row recorded on a real array: factor times cotangent, without a check."""

    __slots__ = ("partial",)

    def __init__(self, row: Unary) -> None:
        super().__init__(row)
        self.partial: Any = row.partials[0]

    def pull(self, ct: Any, wanted: Sequence[Any], saved: Any, params: Params) -> Sequence[Any]:
        if type(ct) is _ARRAY and self.partial.constant is None:
            return (self.partial.fast(saved) * ct,)
        return self.row.pull(ct, wanted, saved, params)


class PlainBinary(Plain):
    """The pullback of a binary row recorded on two active real arrays of one shape and dtype."""

    __slots__ = ("to_x", "to_y")

    def __init__(self, row: Binary) -> None:
        super().__init__(row)
        self.to_x, self.to_y = [_plain_factor(partial) for partial in row.partials]

    def pull(self, ct: Any, wanted: Sequence[Any], saved: Any, params: Params) -> Sequence[Any]:
        if type(ct) is _ARRAY:
            return self.to_x(saved, ct), self.to_y(saved, ct)
        return self.row.pull(ct, wanted, saved, params)


def _plain_factor(partial: Any) -> Callable[[Any, Array], Array]:
    if partial.constant == 1:
        return lambda saved, ct: ct
    if partial.constant is not None:
        return lambda saved, ct: -ct
    if partial.fast is partial.evaluate:  # a saved value itself
        (place,) = partial.needs
        return lambda saved, ct: saved[place] * ct
    return lambda saved, ct: partial.fast(saved) * ct
