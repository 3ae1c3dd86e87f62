"""Peaks: places, which have no derivative, and measures that depend on places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import scipy.signal as _scipy

from func.host.scipy_hooks import holds_traced, original
from func.interpreters.core.errors import NotDifferentiableError, StagingError
from func.interpreters.host.source import at_line
from func.interpreters.primitives.structural.identity import is_abstract_value

__all__ = ["find_peaks", "peak_prominences", "peak_widths"]


def _of_numbers(name: str, instead: str) -> Callable[..., Any]:
    """A function of SciPy that takes only plain numbers, and raises an error for others."""

    def function(x: Any, *args: Any, **kwargs: Any) -> Any:
        if not holds_traced((x, args, kwargs)):
            return original(getattr(_scipy, name))(x, *args, **kwargs)
        if is_abstract_value(x):
            raise StagingError(
                f"scipy.signal.{name} decides by values, which compiled code does not have{at_line()}\n"
                "Find the peaks outside of compiled code, and pass their places to it."
            )
        raise NotDifferentiableError(
            f"scipy.signal.{name} of traced values: the places of peaks have no derivative{at_line()}\n{instead} "
            "Under func.vmap find the peaks of every signal before."
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"scipy.signal.{name} of plain arrays; traced ones are refused with what to write."
    return function


find_peaks = _of_numbers(
    "find_peaks",
    "Write peaks, _ = scipy.signal.find_peaks(func.stop_gradient(x), ...); x[peaks] differentiates.",
)
_BASES = "Call it on func.stop_gradient(x) for the places, and compute with x at these: x[peaks], x[bases]."
peak_prominences = _of_numbers("peak_prominences", _BASES)
peak_widths = _of_numbers("peak_widths", _BASES)
