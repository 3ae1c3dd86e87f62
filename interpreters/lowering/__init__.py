"""Lowering: the NumPy (SciPy, CuPy) source text of every equation."""

from func.interpreters.lowering import (
    collectives,
    contraction,
    fft,
    indexing,
    linalg,
    placement,
    pointwise,
    reductions,
    special,
    structural,
)
from func.interpreters.lowering.code import Code, Site, lower, lowering
from func.interpreters.lowering.text import dtype_text, literal

__all__ = [
    "Code",
    "Site",
    "collectives",
    "contraction",
    "dtype_text",
    "fft",
    "indexing",
    "linalg",
    "literal",
    "lower",
    "lowering",
    "placement",
    "pointwise",
    "reductions",
    "special",
    "structural",
]
