"""Number types of generated code. bfloat16 is one of them where the package ml_dtypes is installed.

NumPy does not treat bfloat16 as a number (its kind is V). It is the upper half of a number of single precision: eight
bits of exponent and seven of fraction.
"""

from __future__ import annotations

import importlib
from typing import Any, TypeAlias

import numpy as np

DType: TypeAlias = np.dtype[Any]


KNOWN = frozenset([np.dtype(name) for name in "?bBhHiIlLqQefdFD"])
"""The number types that NumPy has by itself."""


def is_bfloat16(dtype: DType) -> bool:
    """Whether a dtype is ml_dtypes.bfloat16."""
    return dtype.kind == "V" and dtype.name == "bfloat16"


def is_number(dtype: DType) -> bool:
    """Whether generated code computes with a dtype."""
    return dtype in KNOWN or is_bfloat16(dtype)


def kind_of(dtype: DType) -> str:
    """The kind of a number type: b, i, u, f or c.

    >>> kind_of(np.dtype(np.float16))
    'f'
    """
    return "f" if dtype.kind == "V" else dtype.kind


def is_narrow(dtype: DType) -> bool:
    """Whether a number type is half precision or bfloat16: operations on them compute in single precision and round
    the result.

    >>> is_narrow(np.dtype(np.float16)), is_narrow(np.dtype(np.int16))
    (True, False)
    """
    return dtype.itemsize == 2 and dtype.kind in "fV"


def text_of(dtype: DType) -> str:
    """A number type as a word, from which `of_text` makes it again.

    >>> text_of(np.dtype(np.float32))
    '<f4'
    """
    return dtype.name if dtype.kind == "V" else dtype.str


def of_text(text: str) -> DType:
    """The number type of a word. Raises ImportError for bfloat16 where ml_dtypes is not installed."""
    if text == "bfloat16":
        narrow: DType = np.dtype(importlib.import_module("ml_dtypes").bfloat16)
        return narrow
    return np.dtype(text)
