"""The interface of a native program: everything that a call needs from compiled code."""

from __future__ import annotations

from typing import Any, TypeAlias

from func.backends.number_types import DType as DType
from func.backends.records import Record, field

Shape: TypeAlias = tuple[int, ...]

HAS_NAN, HAS_ERROR = 1, 2
"""The bits of the status that a program returns."""


class ArraySpec(Record):
    """Shape and dtype of an input or output, and whether it is a Python number."""

    shape: Shape
    dtype: DType
    weak: bool


class AliasedOutput(Record):
    """An output of this shape in the memory of the input with this number."""

    input: int
    shape: Shape


class Interface(Record):
    """Numbered inputs, constants and outputs, and `arena` bytes of scratch."""

    inputs: list[ArraySpec]
    constants: list[Any]
    outputs: list[ArraySpec]
    arena: int = 0
    aliased: dict[int, AliasedOutput] = field(default_factory=dict)
    """Outputs, by their numbers, in the memory of inputs. `outputs` lacks them, and numbers the others without them."""
