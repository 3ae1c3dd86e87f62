"""The levels around a backward pass: its values may be batches of a vmap and dual numbers of a jvp.

A Hessian is the derivative of a gradient along many directions at once, so its inner backward pass reads dual numbers
whose tangents are batches. Compiled code takes the arrays inside. A Form describes where they are in a value.
`DerivativeLevels` are the interpreters around them: the class takes values apart, assembles new ones, and traces a
function below new levels.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from func.interpreters.core import Array, Interpreter, Tracer
from func.interpreters.core.scopes import TransformScope
from func.interpreters.drivers import running
from func.interpreters.jvp import Jvp
from func.interpreters.vmap import MappedCall, Vmap

DUAL = -1
"""The kind of a level of dual numbers."""


class Form(NamedTuple):
    """A traced value of the level `number`: its parts, each a form, or None for an array.

    A batch has one part, a dual number two.
    """

    number: int
    parts: tuple[Form | None, ...]


class Unknown(Exception):
    """Another interpreter traces a value, or the value has another form than expected."""


class DerivativeLevels:
    """The interpreters around the arrays of one pass, outermost first, as far as they are known.

    `kinds` has for each level the size of its batch, or DUAL for a jvp.
    """

    __slots__ = ("interpreters", "kinds")

    def __init__(self, interpreters: Sequence[Interpreter]) -> None:
        self.interpreters = sorted(interpreters, key=lambda interpreter: interpreter.level)
        self.kinds = tuple([_kind(interpreter) for interpreter in self.interpreters])

    def form(self, value: Any, arrays: list[Any]) -> Form | None:
        """The form of a value; appends its arrays."""
        if type(value) is not Tracer or value._interpreter not in self.interpreters:
            arrays.append(value)
            return None
        inside = [self.form(part, arrays) for part in _parts(value)]
        return Form(self.interpreters.index(value._interpreter), tuple(inside))

    @property
    def copies(self) -> int:
        """The number of elements for one element of the innermost function."""
        return prod([2 if kind == DUAL else kind for kind in self.kinds])

    def traced(self, function: Callable[..., Sequence[Array]], forms: Sequence[Form | None]) -> Any:
        """(a function of arrays, a list): it applies `function` to values of these forms, on levels like these.

        The function returns the arrays in the outputs, whose forms it puts into the list."""
        out_forms: list[Form | None] = []

        def flat(*arrays: Array) -> list[Array]:
            with contextlib.ExitStack() as scopes:
                inside = DerivativeLevels([_enter(kind, scopes) for kind in self.kinds])
                remaining = iter(arrays)
                values = [inside.value(form, remaining) for form in forms]
                found: list[Array] = []
                out_forms[:] = [inside.form(out, found) for out in function(*values)]
            return found

        return flat, out_forms

    def value(self, form: Form | None, arrays: Iterator[Array]) -> Any:
        """The value of a form with these arrays."""
        if form is None:
            return next(arrays)
        parts = [self.value(part, arrays) for part in form.parts]
        return Tracer(self.interpreters[form.number], parts[0], parts[1] if len(parts) > 1 else None)


class Opener:
    """Takes values of known forms apart; their levels must be those of the forms."""

    __slots__ = ("_forms", "_kinds")

    def __init__(self, levels: DerivativeLevels, forms: Sequence[Form | None]) -> None:
        self._kinds = levels.kinds
        self._forms = forms

    def open(self, values: Sequence[Any]) -> tuple[DerivativeLevels, list[Array]]:
        """(the levels, the arrays).

        Raises:
            Unknown: Values are of other forms, or traced by other interpreters.
        """
        found: dict[int, Interpreter] = {}
        arrays: list[Array] = []
        for form, value in zip(self._forms, values, strict=True):
            self._open(form, value, found, arrays)
        levels = DerivativeLevels(list(found.values()))
        if levels.kinds != self._kinds or [found[number] for number in sorted(found)] != levels.interpreters:
            raise Unknown
        return levels, arrays

    def _open(self, form: Form | None, value: Any, found: dict[int, Interpreter], arrays: list[Array]) -> None:
        if form is None:
            if type(value) is Tracer:
                raise Unknown
            arrays.append(value)
            return
        if type(value) is not Tracer or found.setdefault(form.number, value._interpreter) is not value._interpreter:
            raise Unknown
        inside = _parts(value)
        if len(inside) != len(form.parts):
            raise Unknown
        for part, own in zip(form.parts, inside, strict=True):
            self._open(part, own, found, arrays)


def levels_of(values: Sequence[Any]) -> DerivativeLevels:
    """The levels of some values.

    Raises:
        Unknown: One is traced by an interpreter that is neither a vmap nor a plain jvp.
    """
    found: dict[int, Interpreter] = {}
    stack = list(values)
    while stack:
        value = stack.pop()
        if type(value) is Tracer:
            found[id(value._interpreter)] = value._interpreter
            stack += _parts(value)
    return DerivativeLevels(list(found.values()))


def _parts(value: Tracer) -> Sequence[Any]:
    """The values inside a traced one."""
    kind = type(value._interpreter)
    if kind is Vmap:
        return (value._value,)
    if kind is Jvp and value._interpreter.structural is None and not value._interpreter.copies_operands:  # type: ignore[attr-defined]
        return value._value, value._attached
    raise Unknown


def _kind(interpreter: Any) -> int:
    return interpreter.size if type(interpreter) is Vmap else DUAL


def _enter(kind: int, scopes: contextlib.ExitStack) -> Interpreter:
    """A new level, which ends with the scopes."""
    level: Interpreter = Jvp("jvp") if kind == DUAL else Vmap("vmap", np.arange(kind), MappedCall(kind))
    scopes.enter_context(TransformScope(level, mapped=None if kind == DUAL else level))
    scopes.enter_context(running(level))
    return level
