"""Python literals: the only way by which a value becomes part of generated text.

Numbers, dtypes, indices, small arrays and strings come in, and text that means exactly that value comes out. The text
of a string has no braces, so that it may stand in a template or in an f-string, and no letters beyond ASCII.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

LONG_REAL: type[Any] = np.longdouble
LONG_COMPLEX: type[Any] = np.clongdouble


def literal(value: Any) -> str:
    """A number, a NumPy scalar, a dtype, a slice, a string, None, an array or a tuple of these as source text.

    Writes a subclass, whose own text may be anything, as the value of its base class.
    """
    if isinstance(value, tuple):
        return tuple_text([literal(entry) for entry in value])
    if isinstance(value, np.dtype):
        return dtype_text(value)
    if isinstance(value, slice):
        return f"slice{literal((value.start, value.stop, value.step))}"
    if isinstance(value, np.ndarray):
        return f"np.array({_nested(value.tolist())}, {dtype_text(value.dtype)})"
    if isinstance(value, LONG_REAL):
        return f"{dtype_text(value.dtype)}('{value!s}')"
    if isinstance(value, LONG_COMPLEX):
        parts = f"[{literal(value.real)}, {literal(value.imag)}]"
        return f"np.array({parts}, {dtype_text(value.real.dtype)}).view({dtype_text(value.dtype)})[0]"
    if isinstance(value, (np.number, np.bool_)):
        return f"{dtype_text(value.dtype)}({literal(value.item())})"
    if isinstance(value, np.generic) and value.dtype.name == "bfloat16":
        return f"{dtype_text(value.dtype)}({literal(float(value))})"
    if isinstance(value, float):
        return _float_text(value)
    if isinstance(value, complex):
        return f"complex({literal(value.real)}, {literal(value.imag)})"
    if isinstance(value, str):
        return f"'{_escaped(value, quote=chr(39))}'"
    if isinstance(value, bytes):
        return bytes.__repr__(value).replace("{", r"\x7b").replace("}", r"\x7d")
    if isinstance(value, int):
        return ("True" if value else "False") if isinstance(value, bool) else int.__repr__(value)
    if value is None or value is Ellipsis:
        return "None" if value is None else "..."
    raise TypeError(f"a value of the type {type(value).__name__} has no literal")


def quoted(text: str) -> str:
    """The letters of a string for a place between double quotes, also of an f-string or of a docstring."""
    return _escaped(text, quote='"')


def _escaped(text: str, quote: str) -> str:
    return "".join([_letter(letter, quote) for letter in str.__str__(text)])


def _letter(letter: str, quote: str) -> str:
    if letter in (quote, "\\"):
        return f"\\{letter}"
    if letter in "{}":
        return rf"\x{ord(letter):x}"
    return letter if letter.isprintable() and letter.isascii() else letter.encode("unicode_escape").decode()


def tuple_text(words: Sequence[str]) -> str:
    """A tuple of texts."""
    return f"({words[0]},)" if len(words) == 1 else f"({', '.join(words)})"


def _float_text(value: float) -> str:
    if math.isfinite(value):
        return float.__repr__(value)
    return "np.nan" if math.isnan(value) else "np.inf" if value > 0 else "-np.inf"


def _nested(value: Any) -> str:
    return f"[{', '.join([_nested(entry) for entry in value])}]" if isinstance(value, list) else literal(value)


def dtype_text(dtype: np.dtype[Any]) -> str:
    """A dtype of numbers as a scalar type: np.float32, np.bool_, ml_dtypes.bfloat16."""
    if dtype.kind not in "biufcV" or dtype.name.startswith("void"):
        raise TypeError(f"the dtype {dtype} has no literal")
    if dtype.kind == "V":
        return f"ml_dtypes.{dtype.name}"
    return "np.bool_" if dtype.kind == "b" else f"np.{dtype.name}"


def parameter_text(value: Any) -> str:
    """A parameter of an array helper, which takes dtypes themselves."""
    return f"np.dtype({dtype_text(value)})" if isinstance(value, np.dtype) else literal(value)


def axes_text(axes: Sequence[int]) -> str:
    """Axes of a reduction: a number where there is one, which NumPy parses faster."""
    return literal(axes[0]) if len(axes) == 1 else literal(tuple(axes))


def slice_text(entry: slice) -> str:
    """A slice in the notation of brackets."""
    start, stop, step = entry.start, entry.stop, 1 if entry.step is None else entry.step
    head = f"{'' if start is None or (start == 0 and step > 0) else literal(start)}:"
    head += "" if stop is None else literal(stop)
    return head if step == 1 else f"{head}:{literal(step)}"
