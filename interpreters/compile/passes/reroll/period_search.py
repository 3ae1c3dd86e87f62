"""Where the signs of equations repeat: stretches of a sequence that are equal to themselves moved by a period."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

LONGEST = 4096
"""Periods of more equations are not looked for."""
CLOSE = 0.75
"""Of stretches that cover nearly as much as the longest one, the one with the shortest period is tried first."""


class Stretch(NamedTuple):
    """signs[i] == signs[i + period] for all i from start on for which i + period is less than stop."""

    start: int
    stop: int
    period: int

    @property
    def steps(self) -> int:
        """How many whole periods there are."""
        return (self.stop - self.start) // self.period


def stretches(signs: np.ndarray[Any, Any], start: int, stop: int, least: int, many: int) -> list[Stretch]:
    """Repetitions between two places, at least so many times and equations, the most promising first."""
    part = signs[start:stop]
    found = []
    for period in range(1, min((stop - start) // least, LONGEST) + 1):
        differ = part[period:] != part[:-period]
        needs_cotangent = max((least - 1) * period, many - period)
        if len(differ) - int(np.count_nonzero(differ)) < needs_cotangent:
            continue
        ends = np.flatnonzero(differ)
        starts = np.concatenate([[0], ends + 1])
        lengths = np.concatenate([ends, [len(differ)]]) - starts
        for i in np.flatnonzero(lengths >= needs_cotangent):
            first = start + int(starts[i])
            found.append(Stretch(first, first + int(lengths[i]) + period, period))
    if not found:
        return found
    found.sort(key=lambda one: (-one.steps * one.period, one.period))
    enough = CLOSE * found[0].steps * found[0].period
    return sorted(found, key=lambda one: one.period if one.steps * one.period >= enough else LONGEST + 1)
