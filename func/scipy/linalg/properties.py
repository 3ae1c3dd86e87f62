"""Properties of the numbers of a matrix, which have no derivative: traced arrays are asked for their numbers."""

from __future__ import annotations

from typing import Any

from func.interpreters.core import Array, concrete
from func.scipy.linalg.scipy_values import scipy_function


def bandwidth(a: Array) -> tuple[int, int]:
    """How many lower and upper diagonals of a matrix have elements that are not zero."""
    found: tuple[int, int] = scipy_function("bandwidth")(concrete(a))
    return found


def issymmetric(a: Array, atol: float | None = None, rtol: float | None = None) -> Any:
    """Whether a matrix equals its transpose, exactly or within tolerances."""
    return scipy_function("issymmetric")(concrete(a), atol=atol, rtol=rtol)


def ishermitian(a: Array, atol: float | None = None, rtol: float | None = None) -> Any:
    """Whether a matrix equals its conjugate transpose, exactly or within tolerances."""
    return scipy_function("ishermitian")(concrete(a), atol=atol, rtol=rtol)
