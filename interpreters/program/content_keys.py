"""Keys of Python values that no code can tell apart; jit compares static arguments and fields by them."""

from __future__ import annotations

import functools
import struct
from collections.abc import Hashable
from typing import Any

import numpy as np


def typed_key(value: Any) -> Any:
    """A hashable value that is equal for values of the same type and content, recursively.

    The key of an object whose class defines equality consists of the parts of a copy; others equal themselves alone.
    """
    kind: Any = type(value)
    if kind in _EXACT:
        return kind, value
    if (own := getattr(kind, "_content_key", None)) is not None:
        return kind, own(value)
    if isinstance(value, np.generic):
        return kind, value.dtype.str, value.tobytes()
    if isinstance(value, float):
        return kind, struct.pack("d", value)
    if isinstance(value, complex):
        return kind, struct.pack("dd", value.real, value.imag)
    if isinstance(value, tuple):
        return kind, tuple([typed_key(member) for member in value])
    if isinstance(value, frozenset):
        return kind, frozenset([typed_key(member) for member in value])
    if kind.__eq__ is object.__eq__:
        return kind, value
    if hasattr(kind, "__dataclass_fields__"):  # `import func` does without the module
        import dataclasses

        return kind, value, tuple([_part_key(getattr(value, field.name, None)) for field in dataclasses.fields(value)])
    try:
        return kind, value, _part_key(value.__reduce_ex__(4)[1:3])
    except Exception:  # it has no copy; errors of its class are its own affair
        return kind, value


_EXACT = frozenset({bool, int, str, bytes, type(None), type})


def _part_key(part: Any) -> Any:
    """The exact key of an object's parts, as far as they can be compared."""
    if isinstance(part, dict):
        return tuple([(_part_key(key), _part_key(member)) for key, member in part.items()])
    if type(part) in (tuple, list):
        return type(part), tuple([_part_key(member) for member in part])
    return typed_key(part) if isinstance(part, Hashable) else type(part)


class _Itself:
    """A key of an object without content to compare: it equals itself alone."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return type(other) is _Itself and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def content_key(value: Any) -> Any:
    """A key like `typed_key` for values that may be unhashable: arrays, lists, dicts, partials.

    A partial is its function and its arguments, a method its function and its object.
    """
    kind = type(value)
    if kind is np.ndarray and value.dtype.kind != "O":
        return kind, value.shape, value.dtype.str, value.tobytes()
    if kind is dict:
        return kind, frozenset([(content_key(key), content_key(member)) for key, member in value.items()])
    if kind is list or kind is tuple:
        return kind, tuple([content_key(member) for member in value])
    if kind is set:
        return kind, frozenset(map(content_key, value))
    if kind is functools.partial:
        return kind, content_key(value.func), content_key(value.args), content_key(value.keywords)
    if isinstance(value, Hashable):
        key = typed_key(value)
        try:
            hash(key)
        except TypeError:
            return _Itself(value)
        return key
    return _Itself(value)
