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

    __slots__ = ("name", "primitive")

    def __init__(self, primitive: Unary | Binary) -> None:
        self.primitive = primitive
        self.name = primitive.name

    def retraced(self, saved: Any, lift: Callable[[int | None, Any], Any]) -> Any:
        return self.primitive.retraced(saved, lift)

    def pull_nan_safe(self, ct: Any, needs_cotangent: Sequence[Any], saved: Any, params: Params) -> Sequence[Any]:
        return self.primitive.pull_nan_safe(ct, needs_cotangent, saved, params)

    def __reduce__(self) -> tuple[Any, ...]:
        return operator.attrgetter("plain"), (self.primitive,)


class PlainUnary(Plain):
    """The pullback of a unary row recorded on a real array: factor times cotangent, without a check."""

    __slots__ = ("partial",)

    def __init__(self, primitive: Unary) -> None:
        super().__init__(primitive)
        self.partial: Any = primitive.partials[0]

    def pull(self, ct: Any, needs_cotangent: Sequence[Any], saved: Any, params: Params) -> Sequence[Any]:
        if type(ct) is _ARRAY and self.partial.constant is None:
            return (self.partial.fast(saved) * ct,)
        return self.primitive.pull(ct, needs_cotangent, saved, params)


class PlainBinary(Plain):
    """The pullback of a binary row recorded on two active real arrays of one shape and dtype."""

    __slots__ = ("to_x", "to_y")

    def __init__(self, primitive: Binary) -> None:
        super().__init__(primitive)
        self.to_x, self.to_y = [_plain_factor(partial) for partial in primitive.partials]

    def pull(self, ct: Any, needs_cotangent: Sequence[Any], saved: Any, params: Params) -> Sequence[Any]:
        if type(ct) is _ARRAY:
            return self.to_x(saved, ct), self.to_y(saved, ct)
        return self.primitive.pull(ct, needs_cotangent, saved, params)


def _plain_factor(partial: Any) -> Callable[[Any, Array], Array]:
    if partial.constant == 1:
        return lambda saved, ct: ct
    if partial.constant is not None:
        return lambda saved, ct: -ct
    if partial.fast is partial.evaluate:  # a saved value itself
        (place,) = partial.needs
        return lambda saved, ct: saved[place] * ct
    return lambda saved, ct: partial.fast(saved) * ct
