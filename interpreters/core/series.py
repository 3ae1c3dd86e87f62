"""Power series: what Taylor mode attaches to a value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Series:
    """The coefficients of a power series, ZERO or an array each. Those that are not there yet are computed, in their
    order, by `extend(k)`; without it the series is complete."""

    __slots__ = ("coefficients", "extend")

    def __init__(self, coefficients: list[Any], extend: Callable[[int], Any] | None = None) -> None:
        self.coefficients = coefficients
        self.extend = extend

    def __getitem__(self, k: int) -> Any:
        coefficients = self.coefficients
        while len(coefficients) <= k:
            assert self.extend is not None
            coefficients.append(self.extend(len(coefficients)))
        return coefficients[k]


def derivatives_in(attached: Any) -> list[Any]:
    """The derivatives in what a level of differentiation attaches: a tangent, or the coefficients of a series."""
    return attached.coefficients[1:] if type(attached) is Series else [attached]
