"""Keys of Python values that no code can tell apart: static arguments and static fields are compared by them."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Hashable
from typing import Any

import numpy as np


def exact_key(value: Any) -> Any:
    """A hashable value that is equal for values of the same type and content, those of their members, too.

    An object whose class defines equality is taken apart as for a copy of it; others are themselves alone.
    """
    kind: Any = type(value)
    if kind in _EXACT:
        return kind, value
    if isinstance(value, np.generic):
        return kind, value.dtype.str, value.tobytes()
    if isinstance(value, float):
        return kind, struct.pack("d", value)
    if isinstance(value, complex):
        return kind, struct.pack("dd", value.real, value.imag)
    if isinstance(value, tuple):
        return kind, tuple([exact_key(member) for member in value])
    if isinstance(value, frozenset):
        return kind, frozenset([exact_key(member) for member in value])
    if kind.__eq__ is object.__eq__:
        return kind, value
    if dataclasses.is_dataclass(value):
        return kind, value, tuple([_part_key(getattr(value, field.name, None)) for field in dataclasses.fields(value)])
    try:
        return kind, value, _part_key(value.__reduce_ex__(4)[1:3])
    except Exception:  # it cannot be copied; what it raises is its own
        return kind, value


_EXACT = frozenset({bool, int, str, bytes, type(None), type})


def _part_key(part: Any) -> Any:
    """The exact key of what an object is made of, as far as that can be compared."""
    if isinstance(part, dict):
        return tuple([(_part_key(key), _part_key(member)) for key, member in part.items()])
    if type(part) in (tuple, list):
        return type(part), tuple([_part_key(member) for member in part])
    return exact_key(part) if isinstance(part, Hashable) else type(part)
