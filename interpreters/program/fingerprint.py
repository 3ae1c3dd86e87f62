"""The fingerprint of a Program: a hash of everything on which compiled code depends, the same in every process.

It is the key of compiled programs on disk. So it covers known types alone: numbers, strings, dtypes, arrays, tuples and
dicts of them, programs, and the primitives that func itself defines. A program with anything else among its parameters
(a function, an object of a user's class) has no fingerprint, and each process compiles it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Any, cast

import numpy as np

from func.backends.hashing import new_hash
from func.interpreters.core.parameters import PLACES, TAG
from func.interpreters.core.primitive import Primitive
from func.interpreters.core.types import PYTHON_SCALARS, Params
from func.interpreters.core.wiring import PRIMITIVES
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
    return writer.digest()


class _Writer:
    """Feeds the values of programs to a hash. Every value begins with a word for its kind, which also tells its end, so
    no two sequences of values give the same bytes."""

    def __init__(self) -> None:
        self._hash = new_hash()
        self._parts: list[bytes] = []
        """Words that the hash has not read yet: one call feeds many."""
        self._programs: dict[int, tuple[Program, int]] = {}
        """The programs that were written, by their ids; a second occurrence is a number."""
        self._tags: dict[int, int] = {}
        self._words: dict[Any, bytes] = {}
        """The bytes of avals and primitives, which occur often, and of parameters that are places in arrays."""
        self._ways: dict[Primitive, str] = {}
        """For each primitive, how to write its parameters."""
        self._records: dict[int, tuple[Any, bytes]] = {}
        """The bytes of records without programs and arrays, by their ids: equations share them."""

    def digest(self) -> str:
        """The hash of all values."""
        self._flush()
        return str(self._hash.hexdigest())

    def _flush(self) -> None:
        self._hash.update(b"".join(self._parts))
        self._parts.clear()

    def program(self, program: Program) -> None:
        """Write a program."""
        known = self._programs.get(id(program))
        parts = self._parts
        if known is not None:
            parts.append(b"again %d;" % known[1])
            return
        self._programs[id(program)] = program, len(self._programs)
        numbers: dict[Any, bytes] = {}
        parts.append(b"program %d %d;" % (len(program.inputs), len(program.constants)))
        self._define(program.inputs, numbers)
        self._define(program.constants, numbers)
        for value in program.constants.values():
            self.value(value)
        words = self._words
        for equation in program.equations:
            if len(parts) > _MOST_PARTS:
                self._flush()
            primitive, inputs, outputs, params = equation.primitive, equation.inputs, equation.outputs, equation.params
            parts.append(words.get(primitive) or self._primitive(primitive))
            parts.append(_COUNTS.get((len(inputs), len(outputs))) or _counts(len(inputs), len(outputs)))
            for x in inputs:
                parts.append(numbers.get(x) or self._atom(x))
            for var in outputs:
                numbers[var] = b"v%d;" % len(numbers)
                parts.append(words.get((var.shape, var.dtype, var.weak)) or self._aval(var))
            if params:
                self._params(params, primitive)
            else:
                parts.append(b"none;")
        parts.append(b"outputs %d;" % len(program.outputs))
        parts += [numbers.get(x) or self._atom(x) for x in program.outputs]

    def _params(self, params: Params, primitive: Primitive) -> None:
        """Write parameters, tags as the numbers of their first occurrences, places in arrays as they were before."""
        kinds = primitive.parameters
        way = self._ways.get(primitive)
        if way is None:
            tagged, placed = TAG in kinds.values(), all([kind in PLACES for kind in kinds.values()])
            way = self._ways[primitive] = "tags" if tagged else "places" if placed else "values"
        if way == "places" and params.keys() <= kinds.keys():
            key = primitive, *params, *params.values()
            try:
                word = self._words.get(key)
            except TypeError:  # they have the wrong types
                raise _Unknown from None
            if word is None:
                first = len(self._parts)
                self.value(params)
                self._words[key] = b"".join(self._parts[first:])
            else:
                self._parts.append(word)
            return
        if way == "tags":
            params = {
                name: (value < 0, self._tags.setdefault(value, len(self._tags))) if kinds.get(name) is TAG else value
                for name, value in params.items()
            }
        self.value(params)

    def _define(self, variables: Iterable[Var], numbers: dict[Any, bytes]) -> None:
        for var in variables:
            numbers[var] = b"v%d;" % len(numbers)
            self._parts.append(self._words.get((var.shape, var.dtype, var.weak)) or self._aval(var))

    def _atom(self, atom: Any) -> bytes:
        """The bytes of a Python scalar; variables are numbered when they are defined."""
        if type(atom) not in PYTHON_SCALARS:
            raise _Unknown
        return _WRITERS[type(atom)](atom)

    def _aval(self, aval: Any) -> bytes:
        key = aval.shape, aval.dtype, aval.weak
        word = self._words[key] = b"aval %s %s %d;" % (repr(aval.shape).encode(), _dtype(aval.dtype), aval.weak)
        return word

    def _primitive(self, primitive: Primitive) -> bytes:
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
            self._parts.append(write(value))
        elif kind is tuple or kind is list:
            self._parts.append(b"%s %d;" % (kind.__name__.encode(), len(value)))
            for entry in value:
                self.value(entry)
        elif kind is slice:
            self.value((slice.__name__, value.start, value.stop, value.step))
        elif kind is dict:
            self._parts.append(b"dict %d;" % len(value))
            for key, entry in value.items():
                self.value(key)
                self.value(entry)
        elif kind is Program:
            self.program(value)
        elif isinstance(value, np.ndarray | np.generic):
            self._array(value)
        elif isinstance(value, np.dtype):
            self._parts.append(b"dtype %s;" % _dtype(value))
        elif isinstance(value, Primitive):
            self._parts.append(self._words.get(value) or self._primitive(value))
        elif kind.__module__.startswith(PACKAGE):
            self._own(value)
        else:
            raise _Unknown

    def _array(self, value: Any) -> None:
        if type(value) is not np.ndarray and not isinstance(value, np.generic):
            raise _Unknown
        # The layout counts: a pass may keep it.
        head = f"{type(value).__name__} {value.shape} {np.asarray(value).strides} "
        self._parts.append(head.encode() + _dtype(value.dtype) + b";")
        if value.size:
            self._flush()
            self._hash.update(np.ascontiguousarray(value).reshape(-1).view(np.uint8).data)

    def _own(self, value: Any) -> None:
        """Write an object of one of func's own classes, which names its parts itself."""
        known = self._records.get(id(value))
        if known is not None:
            self._parts.append(known[1])
            return
        fields = getattr(type(value), "fingerprint_fields", None)
        is_record = fields is None and isinstance(value, tuple) and hasattr(value, "_fields")
        if is_record:
            fields = cast(Any, value)._fields
        if fields is None:
            raise _Unknown
        first = len(self._parts)
        self._parts.append(b"%s %d;" % (f"{type(value).__module__}.{type(value).__qualname__}".encode(), len(fields)))
        for name in fields:
            self.value(getattr(value, name))
        if is_record and _is_plain(value):
            self._records[id(value)] = value, b"".join(self._parts[first:])


_COUNTS: dict[tuple[int, int], bytes] = {}


def _counts(inputs: int, outputs: int) -> bytes:
    """The number of inputs and outputs of an equation."""
    return _COUNTS.setdefault((inputs, outputs), b"%d %d;" % (inputs, outputs))


_MOST_PARTS = 4096
"""Words that wait for the hash."""


def _is_plain(value: Any) -> bool:
    """Whether a value consists of tuples, numbers, strings and dtypes, so that its bytes are always the same."""
    if isinstance(value, tuple):
        return all([_is_plain(entry) for entry in value])
    return type(value) in _WRITERS or isinstance(value, np.dtype)


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
