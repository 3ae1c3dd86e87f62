"""SciPy's searches, when traced values steer them: their steps are no derivative, and it is said so by name.

The solvers that func knows (`func.scipy.optimize`) differentiate by the equation of their solution, and never get
here. A search of SciPy's that returns points of its way, such as a bracket, compares traced values to choose its next
step. What it returns would carry the derivatives of the steps that were taken, which are those of no solution.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from types import FrameType
from typing import Any

from func.interpreters.core import Tracer
from func.interpreters.core.errors import NotDifferentiableError
from func.interpreters.host.refusals import hide_outside
from func.interpreters.host.source import Line


@functools.cache
def solver_files() -> frozenset[str]:
    """The files in which a comparison of traced values is a solver's: scipy.optimize, found without importing SciPy."""
    spec = find_spec("scipy")
    places = (spec and spec.submodule_search_locations) or ()
    folders = [os.path.join(place, "optimize") for place in places]
    return frozenset([os.path.join(folder, name) for folder in folders for name in os.listdir(folder)])


def _is_differentiated(value: Any) -> bool:
    while type(value) is Tracer:
        if value._interpreter.differentiates:
            return True
        value = value._value
    return False


def seen_in_solvers(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method by which a solver may be steered."""

    @functools.wraps(method)
    def operate(self: Tracer, *args: Any, **kwargs: Any) -> Any:
        try:
            frame = sys._getframe(1)
            if frame.f_code.co_filename in solver_files():
                steers_solver(frame, self, *args)
            return method(self, *args, **kwargs)
        except Exception as error:
            hide_outside(error)
            raise

    return operate


def steers_solver(frame: FrameType, *values: Any) -> None:
    """Refuse, or warn of, the derivatives of a solver that compares traced values."""
    if not any(map(_is_differentiated, values)):
        return
    inner: FrameType | None = frame
    names = []
    while inner is not None and inner.f_code.co_filename in solver_files():
        names.append(inner.f_code.co_name)
        inner = inner.f_back
    name = names[-1]
    place = (
        "" if inner is None else f"\n  at {Line(inner.f_code.co_filename, inner.f_lineno, inner.f_code.co_qualname)}"
    )
    raise NotDifferentiableError(
        f"scipy.optimize.{name} compares traced values to find its steps, and comparisons have no derivative: "
        f"that of its result would be wrong{place}\n"
        "Call it on plain numbers (func.stop_gradient), and where its result solves an equation, give that to "
        "func.custom_root; the solvers of func.scipy.optimize differentiate."
    )
