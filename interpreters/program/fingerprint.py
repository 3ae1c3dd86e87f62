"""The fingerprint of a Program: a hash of everything that compiled code depends on, the same in every process.

Compiled programs are kept on disk under it. So it is written for what it knows and for nothing else: numbers, strings,
dtypes, arrays, tuples and dicts of them, programs, and the primitives that func itself defines. A program with anything
else among its parameters (a function, an object of a user's class) has no fingerprint, and is compiled in each process.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Any, cast

import numpy as np

from func.backends.hashing import new_hash
from func.interpreters.core.parameters import TAG, Kinds
from func.interpreters.core.primitive import PRIMITIVES, Primitive
from func.interpreters.core.types import PYTHON_SCALARS, Params
from func.interpreters.program.program import Program, Var

PACKAGE = "func."


class _Unknown(Exception):
    """A value has no fingerprint."""


def fingerprint(program: Program, *options: str) -> str | None:
    """A hash of a program and of some options; None for a program that has no fingerprint.

    Variables count by their order of definition. Source lines and NaN-safe variants do not count: code does not depend
    on them.

    >>> from func.interpreters.core import Aval
    >>> x, y = Var(Aval((2,), float)), Var(Aval((3,), float))
    >>> fingerprint(Program([x], [], [x], {})) == fingerprint(Program([y], [], [y], {}))
    False
    """
    writer = _Writer()
    try:
        writer.value(options)
        writer.program(program)
    except _Unknown:
        return None
    return str(writer.hash.hexdigest())


class _Writer:
    """Feeds the values of programs to a hash. Every value begins with a word for its kind and ends where its kind
    says, so no two sequences of values give the same bytes."""

    def __init__(self) -> None:
        self.hash = new_hash()
        self._programs: dict[int, tuple[Program, int]] = {}
        """The programs that were written, by their ids: the same one again is its number."""
        self._tags: dict[int, int] = {}
        self._words: dict[Any, bytes] = {}
        """The bytes of avals and primitives, which occur often."""

    def program(self, program: Program) -> None:
        """Write a program."""
        known = self._programs.get(id(program))
        if known is not None:
            self.hash.update(b"again %d;" % known[1])
            return
        self._programs[id(program)] = program, len(self._programs)
        numbers: dict[Any, int] = {}
        parts: list[bytes] = [b"program %d %d;" % (len(program.inputs), len(program.constants))]
        self._define(program.inputs, numbers, parts)
        self._define(program.constants, numbers, parts)
        self.hash.update(b"".join(parts))
        for value in program.constants.values():
            self.value(value)
        for equation in program.equations:
            parts = [self._primitive(equation.primitive), b"%d %d;" % (len(equation.inputs), len(equation.outputs))]
            self._atoms(equation.inputs, numbers, parts)
            self._define(equation.outputs, numbers, parts)
            self.hash.update(b"".join(parts))
            if equation.params:
                self._params(equation.params, equation.primitive.parameters)
            else:
                self.hash.update(b"none;")
        parts = [b"outputs %d;" % len(program.outputs)]
        self._atoms(program.outputs, numbers, parts)
        self.hash.update(b"".join(parts))

    def _params(self, params: Params, kinds: Kinds) -> None:
        """Write parameters, tags as the numbers of their first occurrences."""
        if TAG in kinds.values():
            params = {
                name: (value < 0, self._tags.setdefault(value, len(self._tags))) if kinds.get(name) is TAG else value
                for name, value in params.items()
            }
        self.value(params)

    def _define(self, variables: Iterable[Var], numbers: dict[Any, int], parts: list[bytes]) -> None:
        for var in variables:
            numbers[var] = len(numbers)
            parts.append(self._aval(var))

    def _atoms(self, atoms: Iterable[Any], numbers: dict[Any, int], parts: list[bytes]) -> None:
        for atom in atoms:
            if type(atom) is Var:
                number = numbers.get(atom)
                if number is None:
                    raise _Unknown
                parts.append(b"v%d;" % number)
            elif type(atom) in PYTHON_SCALARS:
                parts.append(_WRITERS[type(atom)](atom))
            else:
                raise _Unknown

    def _aval(self, aval: Any) -> bytes:
        key = aval.shape, aval.dtype, aval.weak
        word = self._words.get(key)
        if word is None:
            word = self._words[key] = b"aval %s %s %d;" % (repr(aval.shape).encode(), _dtype(aval.dtype), aval.weak)
        return word

    def _primitive(self, primitive: Primitive) -> bytes:
        word = self._words.get(primitive)
        if word is None:
            is_own = PRIMITIVES.get(primitive.name) is primitive and primitive.defined_in.startswith(PACKAGE)
            if not is_own:
                raise _Unknown
            word = self._words[primitive] = b"primitive %s;" % primitive.name.encode()
        return word

    def value(self, value: Any) -> None:
        """Write a parameter or a constant."""
        kind = type(value)
        write = _WRITERS.get(kind)
        if write is not None:
            self.hash.update(write(value))
        elif kind is tuple or kind is list:
            self.hash.update(b"%s %d;" % (kind.__name__.encode(), len(value)))
            for entry in value:
                self.value(entry)
        elif kind is slice:
            self.value((slice.__name__, value.start, value.stop, value.step))
        elif kind is dict:
            self.hash.update(b"dict %d;" % len(value))
            for key, entry in value.items():
                self.value(key)
                self.value(entry)
        elif kind is Program:
            self.program(value)
        elif isinstance(value, np.ndarray | np.generic):
            self._array(value)
        elif isinstance(value, np.dtype):
            self.hash.update(b"dtype %s;" % _dtype(value))
        elif isinstance(value, Primitive):
            self.hash.update(self._primitive(value))
        elif kind.__module__.startswith(PACKAGE):
            self._own(value)
        else:
            raise _Unknown

    def _array(self, value: Any) -> None:
        if type(value) is not np.ndarray and not isinstance(value, np.generic):
            raise _Unknown
        # The layout counts: a pass may keep it.
        head = f"{type(value).__name__} {value.shape} {np.asarray(value).strides} "
        self.hash.update(head.encode() + _dtype(value.dtype) + b";")
        if value.size:
            self.hash.update(np.ascontiguousarray(value).reshape(-1).view(np.uint8).data)

    def _own(self, value: Any) -> None:
        """Write an object of one of func's own classes, which says itself what it consists of."""
        fields = getattr(type(value), "fingerprint_fields", None)
        if fields is None and isinstance(value, tuple) and hasattr(value, "_fields"):
            fields = cast(Any, value)._fields
        if fields is None:
            raise _Unknown
        self.hash.update(b"%s %d;" % (f"{type(value).__module__}.{type(value).__qualname__}".encode(), len(fields)))
        for name in fields:
            self.value(getattr(value, name))


def _dtype(dtype: np.dtype[Any]) -> bytes:
    if dtype.kind in "biufc":
        return dtype.str.encode()
    if dtype.name == "bfloat16":
        return b"bfloat16"
    raise _Unknown


def _text(value: str) -> bytes:
    encoded = value.encode("utf-8", "surrogatepass")
    return b"text %d %s;" % (len(encoded), encoded)


_WRITERS: dict[type, Callable[[Any], bytes]] = {
    type(None): lambda value: b"None;",
    type(Ellipsis): lambda value: b"...;",
    bool: lambda value: b"bool %d;" % value,
    int: lambda value: b"int %d;" % value,
    float: lambda value: b"float " + struct.pack("<d", value),
    complex: lambda value: b"complex " + struct.pack("<dd", value.real, value.imag),
    str: _text,
    bytes: lambda value: b"bytes %d %s;" % (len(value), value),
}
