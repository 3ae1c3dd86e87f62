"""Errors for SciPy's searches on traced values: their steps have no derivative.

The solvers in `func.scipy.optimize` differentiate by the equation of their solution. A search that returns intermediate
points, such as a bracket, compares traced values to choose its next step. Its result would have the derivatives of the
steps, not those of a solution.
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
from func.interpreters.host.source import Line
from func.interpreters.host.swallowed_errors import hide_outside


@functools.cache
def solver_files() -> frozenset[str]:
    """The files of scipy.optimize, where a comparison of traced values is a solver's; does not import SciPy."""
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
    """A method by which traced values may steer a solver."""

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
    """Raise for, or warn of, the derivatives of a solver that compares traced values."""
    if not any(map(_is_differentiated, values)):
        return
    caller: FrameType | None = frame
    names = []
    while caller is not None and caller.f_code.co_filename in solver_files():
        names.append(caller.f_code.co_name)
        caller = caller.f_back
    name = names[-1]
    place = (
        ""
        if caller is None
        else f"\n  at {Line(caller.f_code.co_filename, caller.f_lineno, caller.f_code.co_qualname)}"
    )
    raise NotDifferentiableError(
        f"scipy.optimize.{name} compares traced values to find its steps, and comparisons have no derivative: "
        f"that of its result would be wrong{place}\n"
        "Call it on plain numbers (func.stop_gradient), and where its result solves an equation, give that to "
        "func.custom_root; the solvers of func.scipy.optimize differentiate."
    )
