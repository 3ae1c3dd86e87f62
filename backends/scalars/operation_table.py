"""The table of operations on elements and the decorator that fills it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from func.backends.loops.kernels import DType
from func.backends.number_types import kind_of
from func.backends.scalars.ir_values import Value

if TYPE_CHECKING:
    from func.backends.scalars.operations import Scalars

Emit: TypeAlias = Callable[["Scalars", DType, list[Value]], Value]

TABLE: dict[tuple[str, str], Emit] = {}
"""By operation and kind of dtype; "*" is all kinds but complex."""


def emits(name: str, kinds: str) -> Callable[[Emit], Emit]:
    """Register an operation for kinds of dtypes."""

    def register(emit: Emit) -> Emit:
        TABLE.update({(name, kind): emit for kind in kinds})
        return emit

    return register


def operation(op: str, dtype: DType) -> Emit | None:
    """The emitter of an operation on elements of a dtype, None if the table has none."""
    kind = kind_of(dtype)
    return TABLE.get((op, kind)) or (None if kind == "c" else TABLE.get((op, "*")))
