"""Compiled programs on disk: they spare processes the passes, rules and printers for programs compiled before.

An entry of the cache has the interface of the native program and the key of its object code. The key of an entry is the
fingerprint of the traced program, with calls inlined, and of everything else on which the code depends. These are the
sources of func, the versions of NumPy and SciPy, the processor and the options.
"""

from __future__ import annotations

import functools
import importlib.util
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from func.backends.llvm import cache
from func.backends.llvm.host import host
from func.backends.llvm.math.own_functions import uses_libmvec
from func.backends.loops.interface import AliasedOutput, ArraySpec, Interface
from func.backends.number_types import is_number, of_text, text_of
from func.interpreters.program.fingerprint import fingerprint
from func.interpreters.program.program import Program

LARGEST_CONSTANTS = 1 << 20
"""The most bytes of constants in an entry. Constants that are arrays of the traced program are not stored."""

enabled = True
"""Whether the cache is in use. Tests that change how programs are compiled switch it off."""


def key_of(program: Program, fast: bool, donated: frozenset[int], is_checked: bool) -> str | None:
    """The key of a program's entry; None for a program that each process compiles."""
    if not enabled or cache.folder() is None:
        return None
    options = fast, is_checked, sorted(donated)
    mark = fingerprint(program, repr(options))
    return None if mark is None else cache.digest("program", mark, _surroundings(), str(uses_libmvec()))


@functools.cache
def _surroundings() -> str:
    """Everything but the program on which compiled code depends."""
    return "\n".join((host().fingerprint, cache.compiler_fingerprint(), np.__version__, _scipy_stamp()))


def _scipy_stamp() -> str:
    """The version of SciPy, without its import."""
    spec = importlib.util.find_spec("scipy")
    places = spec.submodule_search_locations if spec is not None else None
    return cache.file_stamp(Path(places[0], "version.py")) if places else ""


def load(key: str, program: Program) -> tuple[Interface, str] | None:
    """The interface of the compiled program and the key of its code; None without a usable entry."""
    stored = cache.load(key)
    if stored is None:
        return None
    try:
        return _unpacked(stored.image, program)
    except (ValueError, TypeError, IndexError, KeyError, UnicodeDecodeError):
        return None


def store(key: str, interface: Interface, code: str, program: Program) -> None:
    """Write an entry, unless the passes have made too large constants."""
    content = _packed(interface, code, program)
    if content is not None:
        cache.store(key, cache.ObjectCode(content, ()))


def store_cut(key: str) -> None:
    """Note that a program is not native as a whole: the texts of its parts are the keys of their code."""
    cache.store(key, cache.ObjectCode(_CUT, ()))


def is_cut(key: str) -> bool:
    """Whether a program has such a note."""
    stored = cache.load(key)
    return stored is not None and stored.image == _CUT


_CUT = b"in parts"


def _constants(program: Program) -> Iterator[Any]:
    """The constants of a program and of those inside, each inner program once, in the order of the fingerprint."""
    seen: set[int] = set()

    def walk(inner: Program) -> Iterator[Any]:
        if id(inner) in seen:
            return
        seen.add(id(inner))
        yield from inner.constants.values()
        for equation in inner.equations:
            if equation.params:
                for _, nested in equation.nested():
                    yield from walk(nested)

    return walk(program)


def _packed(interface: Interface, code: str, program: Program) -> bytes | None:
    lines = [f"code {code}", f"arena {interface.arena}"]
    lines += [f"input {_spec_text(spec)}" for spec in interface.inputs]
    lines += [f"output {_spec_text(spec)}" for spec in interface.outputs]
    lines += [f"alias {place} {alias.input} {_shape_text(alias.shape)}" for place, alias in interface.aliased.items()]
    arrays: list[bytes] = []
    if interface.constants:
        places = {_identity(value): place for place, value in enumerate(_constants(program))}
        for array in interface.constants:
            head = f"{text_of(array.dtype)} {_shape_text(array.shape)}"
            place = places.get(_identity(array))
            if place is not None:
                lines.append(f"traced {place} {head}")
            else:
                lines.append(f"array {array.nbytes} {head}")
                arrays.append(array.tobytes())
    if sum(map(len, arrays)) > LARGEST_CONSTANTS or any([_is_odd(array.dtype) for array in interface.constants]):
        return None
    return "\n".join(lines).encode() + b"\0" + b"".join(arrays)


def _is_odd(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype cannot be written as text."""
    return not is_number(dtype)


def _identity(value: Any) -> Any:
    """Equal for two arrays of the same numbers in the same memory."""
    if type(value) is not np.ndarray or not value.flags.c_contiguous or not value.size:
        return id(value)
    return value.ctypes.data, value.size, value.dtype


def _unpacked(content: bytes, program: Program) -> tuple[Interface, str]:
    text, _, rest = content.partition(b"\0")
    interface, code, start = Interface([], [], []), "", 0
    traced: list[Any] | None = None
    for line in text.decode().split("\n"):
        kind, *words = line.split(" ")
        if kind == "code":
            (code,) = words
        elif kind == "arena":
            interface.arena = int(words[0])
        elif kind == "input":
            interface.inputs.append(_spec(words))
        elif kind == "output":
            interface.outputs.append(_spec(words))
        elif kind == "alias":
            place, source, shape = words
            interface.aliased[int(place)] = AliasedOutput(int(source), _shape(shape))
        elif kind == "traced":
            place, dtype, shape = words
            traced = list(_constants(program)) if traced is None else traced
            array = np.ascontiguousarray(traced[int(place)])
            if array.dtype != of_text(dtype):
                raise ValueError(f"a constant has the dtype {array.dtype}")
            interface.constants.append(array.reshape(_shape(shape)))
        elif kind == "array":
            size, dtype, shape = words
            count = math.prod(_shape(shape))
            array = np.frombuffer(rest, of_text(dtype), count, start).reshape(_shape(shape)).copy()
            interface.constants.append(array)
            start += int(size)
        else:
            raise ValueError(f"{kind!r} is not a part of an entry")
    return interface, code


def _spec_text(spec: ArraySpec) -> str:
    return f"{text_of(spec.dtype)} {int(spec.weak)} {_shape_text(spec.shape)}"


def _spec(words: Sequence[str]) -> ArraySpec:
    dtype, weak, shape = words
    return ArraySpec(_shape(shape), of_text(dtype), weak == "1")


def _shape_text(shape: Sequence[int]) -> str:
    return ",".join(map(str, shape)) or "-"


def _shape(text: str) -> tuple[int, ...]:
    return () if text == "-" else tuple(map(int, text.split(",")))
