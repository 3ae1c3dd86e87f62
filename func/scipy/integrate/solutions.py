"""Solutions between the steps of solve_ivp, as functions of the time with derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.integrate import OdeSolution
from scipy.integrate._ivp.base import DenseOutput

from func.host.scipy_hooks import holds_traced
from func.interpreters.core import Array
from func.numpy import asarray
from func.scipy.integrate.numbers import FLOAT
from func.scipy.integrate.runge_kutta import Lengths, Path, held


class Solution(OdeSolution):  # type: ignore[misc]
    """The solution between steps, as a function of the time with derivatives."""

    def __init__(self, at: Callable[[Any, Any], Array], numbers: OdeSolution) -> None:
        self.__dict__.update(vars(numbers))
        self._at = at
        self.interpolants = [_Interpolant(self, i) for i in range(numbers.n_segments)]

    def __call__(self, t: Any) -> Array:
        """The states at times, of shape (n,) for a number and (n, times) for an array."""
        t = asarray(t)
        if t.ndim > 1:
            raise ValueError("`t` must be a float or a 1-D array.")
        t = t if t.dtype == FLOAT else t.astype(float)
        return np.moveaxis(self._at(t, segments_of(self.ts, held(t), self.side)), -1, 0)


class _Interpolant(DenseOutput):  # type: ignore[misc]
    """One step of a solution."""

    def __init__(self, solution: Solution, place: int) -> None:
        super().__init__(solution.ts[place], solution.ts[place + 1])
        self._solution, self._place = solution, place

    def _call_impl(self, t: Any) -> Array:
        return np.moveaxis(self._solution._at(t, np.full(t.shape, self._place)), -1, 0)


def segments_of(ts: Any, t: Any, side: Any = None) -> Any:
    """The steps that contain times, by the rule of SciPy's OdeSolution."""
    if ts[-1] >= ts[0]:
        return np.clip(np.searchsorted(ts, t, side=side or "left") - 1, 0, len(ts) - 2)
    place = np.clip(np.searchsorted(ts[::-1], t, side=side or "right") - 1, 0, len(ts) - 2)
    return len(ts) - 2 - place


class CompiledSolution:
    """The solution between steps, in compiled code."""

    def __init__(self, path: Path, ts: Array, direction: Array, lengths: Lengths) -> None:
        self.path, self.ts, self.direction, self.lengths = path, ts, direction, lengths

    def __call__(self, t: Any) -> Array:
        t = asarray(t).astype(float)
        sign, ts = held(self.direction), held(self.ts)
        segments = np.searchsorted(ts * sign, held(t) * sign, side="left") - 1
        segments = np.clip(segments, 0, np.maximum(self.lengths.count - 1, 0))
        y = self.path.at(segments, t)
        last = ts[self.lengths.count]
        is_missing = self.lengths.failed & ((held(t) - last) * sign > 0)
        return np.moveaxis(np.where(is_missing[..., None], np.nan, y), -1, 0)


def within_span(y: Array, t_eval: Any, t0: Any, bound: Any) -> Array:
    """States at the times of compiled code: NaN for times outside of the span."""
    if not holds_traced((t_eval, t0, bound)):
        return y
    times, ends = held(asarray(t_eval)), np.stack([held(t0) * 1.0, held(bound) * 1.0])
    is_inside = (times >= np.min(ends)) & (times <= np.max(ends))
    return np.where(is_inside, y, np.nan)
