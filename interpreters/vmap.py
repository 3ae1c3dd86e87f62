"""Vectorisation: values with a leading batch axis, and the signal that splits a batch whose elements disagree."""

from __future__ import annotations

from typing import Any

import numpy as np

from func.interpreters.core import (
    TRACED,
    Array,
    Aval,
    ClosedInterpreter,
    Interpreter,
    Params,
    Primitive,
    Shape,
    Tracer,
    concrete,
    dtype_of,
    shape_of,
    unboxed,
)
from func.interpreters.core.errors import StagingError
from func.interpreters.core.modes import MODE, body_above
from func.interpreters.host.source import at_line


class MappedCall:
    """One call of a mapped function with `size` batch elements; its parts and chunks share this object."""

    def __init__(self, size: int) -> None:
        self.size = size


class SplitBatch(BaseException):
    """Python asked for one value where batch elements differ; the driver runs groups of equal elements again.

    It is not an Exception, so `except Exception` in user code does not catch it.
    """

    def __init__(self, interpreter: Vmap, groups: list[np.ndarray[Any, Any]]) -> None:
        super().__init__("batch elements of a vmap differ; this signal is handled by func.vmap")
        self.interpreter = interpreter
        self.groups = groups


class Vmap(Interpreter):
    """Carries arrays whose batch axis leads.

    `size` is the length of the batch axis; `elements` are the numbers of its elements within the whole `call`.
    `axis_name` and `randomness` are options of func.vmap; both are None if the engine maps a function itself (a custom
    rule, a checkpoint). `is_stand_in`: it carries the batch of another vmap through such a function.
    """

    def __init__(
        self,
        transform: str,
        elements: np.ndarray[Any, Any],
        call: MappedCall,
        axis_name: str | None = None,
        randomness: str | None = None,
        is_stand_in: bool = False,
    ) -> None:
        super().__init__(transform)
        if TRACED.install_indexing is not None:
            TRACED.install_indexing()
        self.is_stand_in = is_stand_in
        self.size = len(elements)
        self.elements = elements
        self.call = call
        self.axis_name = axis_name
        self.randomness = randomness
        self.wish: list[np.ndarray[Any, Any]] | None = None
        """The groups of the signal that it raised."""

    def part(self, group: np.ndarray[Any, Any]) -> Vmap:
        """The interpreter of some of the batch elements."""
        part = Vmap(self.transform, self.elements[group], self.call, self.axis_name, self.randomness, self.is_stand_in)
        part.line = self.line
        return part

    def lift(self, value: Array) -> Tracer:
        """A traced value whose leading axis is the batch."""
        return Tracer(self, value, None)

    def shape(self, tracer: Tracer) -> Shape:
        return shape_of(tracer._value)[1:]

    def aval(self, tracer: Tracer) -> Aval:
        return Aval(self.shape(tracer), dtype_of(tracer._value))

    def apply1(self, primitive: Primitive, x: Tracer) -> Any:
        if MODE.get() is not None and (body := body_above(self.level)) is not None:
            return body.apply(primitive, (x,), {})
        return Tracer(self, primitive.batch(self.size, (True,), (x._value,), {}), None)

    def apply(self, primitive: Primitive, args: tuple[Array, ...], params: Params) -> Any:
        if MODE.get() is not None and (body := body_above(self.level)) is not None:
            return body.apply(primitive, args, params)
        values = []
        batched = []
        for arg in args:
            own = type(arg) is Tracer and arg._interpreter is self
            values.append(arg._value if own else unboxed(arg))
            batched.append(own)
        out = primitive.batch(self.size, batched, tuple(values), params)
        if primitive.multiple:
            return tuple([Tracer(self, value, None) for value in out])
        return Tracer(self, out, None)

    def is_mapped(self, value: Array) -> bool:
        """True for values that have a batch axis of this vmap."""
        return type(value) is Tracer and value._interpreter is self

    def concrete(self, tracer: Tracer) -> Any:
        """The value that all batch elements share; where they differ, this or an outer vmap splits its batch."""
        levels, stacked = _whole_batch(tracer)
        if not all([level.size for level in levels]):
            raise StagingError(
                f"func.vmap: the mapped axis is empty, so there is no value for the function to ask for{at_line()}\n"
                "Return early where there is nothing to map; instead of `if x > 0:` write np.where(x > 0, a, b) or "
                "func.cond."
            )
        flat = np.reshape(stacked, (int(np.prod([level.size for level in levels])), -1))
        if len(flat) and (_bits(flat) == _bits(flat[:1])).all():
            return stacked[(0,) * len(levels)]
        for depth, level in enumerate(levels):  # outermost first: its elements contain all inner ones
            elements = np.reshape(stacked, (*[outer.size for outer in levels[: depth + 1]], -1))
            groups = _equal_rows(np.moveaxis(elements, depth, 0).reshape(level.size, -1))
            if len(groups) > 1:
                level.wish = groups
                raise SplitBatch(level, groups)
        raise AssertionError("batch elements differ but no batch can be split")


def _whole_batch(tracer: Tracer) -> tuple[list[Vmap], Any]:
    """The vmaps around a value, outermost first, and its plain array with their axes leading in that order."""
    levels: list[Vmap] = []
    value: Any = tracer
    while type(value) is Tracer:
        if isinstance(value._interpreter, ClosedInterpreter):
            return levels, concrete(value)  # raises
        if value._value is None:
            stage: Any = value._interpreter
            return [], stage.concrete(value, len(levels))  # what all batch elements share, or raises
        if isinstance(value._interpreter, Vmap):
            levels.append(value._interpreter)
        value = value._value
    host = value.get() if hasattr(value, "get") else value
    levels.reverse()
    return levels, np.asarray(host)


def _bits(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The bytes of an array: bytes of equal NaN are equal."""
    return np.ascontiguousarray(array).view(np.uint8)


def _equal_rows(matrix: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    """Groups of row numbers with equal rows, in order of their first row."""
    groups: dict[bytes, list[int]] = {}
    for number, row in enumerate(np.ascontiguousarray(matrix)):
        groups.setdefault(row.tobytes(), []).append(number)
    return [np.asarray(members) for members in groups.values()]
