"""Sums of Chebyshev polynomials, and functions of which `special_tables.py` has the coefficients."""

from __future__ import annotations

import numpy as np

from func.backends.routines.language import Floats
from func.backends.routines.special_tables import EXPANSIONS


def chebyshev(n: int, c: Floats, t: float) -> float:
    """A sum of Chebyshev polynomials at t."""
    b0, b1 = 0.0, 0.0
    for i in range(n - 1, 0, -1):
        b2 = b1
        b1 = b0
        b0 = 2 * t * b1 - b2 + c[i]
    return t * b0 - b1 + c[0]


def expansion(name: str, u: float) -> float:
    """The function of a name between the bounds of its expansion."""
    low, high, coefficients = EXPANSIONS[name]
    return chebyshev(len(coefficients), np.array(coefficients), (u - (low + high) / 2) * (2 / (high - low)))
