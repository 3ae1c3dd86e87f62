"""Lowering: the NumPy (SciPy, CuPy) source text of every equation."""

from func.interpreters.compile.lowering import (
    collectives,
    contraction,
    diagonals,
    elementwise,
    fft,
    indexing,
    linalg,
    reductions,
    special,
    structural,
)
from func.interpreters.compile.lowering.code import Code, LoweringContext, lower, lowering
from func.interpreters.compile.lowering.literals import dtype_text, literal

__all__ = [
    "Code",
    "LoweringContext",
    "collectives",
    "contraction",
    "diagonals",
    "dtype_text",
    "elementwise",
    "fft",
    "indexing",
    "linalg",
    "literal",
    "lower",
    "lowering",
    "reductions",
    "special",
    "structural",
]
