"""`r_` and `c_`: arrays joined by indexing. They replace np.r_ and np.c_ while a transform runs."""

from __future__ import annotations

from typing import Any

from func.host import patching
from func.interpreters.core import Array, Tracer, operand
from func.numpy.argument_checks import arrayed, common, rank_of
from func.numpy.creation import arange
from func.numpy.grids import linspace
from func.numpy.joining import concatenate
from func.numpy.shaping import expand_dims, swapaxes


class Concatenator:
    """Joins the entries of an index along an axis, as np.r_: slices are ranges, a leading string is a directive."""

    def __init__(self, fallback: Any, directive: tuple[int, int, int]) -> None:
        self.fallback = fallback
        self.directive = directive

    def __getitem__(self, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        if not any([patching.holds_tracer(part) or _ranges_over_tracers(part) for part in parts]):
            return self.fallback[key]
        axis, least, first = self.directive
        if isinstance(parts[0], str):
            numbers = parts[0].split(",")
            if not all([number.strip().lstrip("-").isdigit() for number in numbers]):
                raise ValueError(f"unknown special directive {parts[0]!r} for traced arrays: give numbers")
            axis, least, first = [
                int(text) if text is not None else default
                for text, default in zip([*numbers, None, None][:3], self.directive, strict=True)
            ]
            parts = parts[1:]
        values = [operand(_range(part) if isinstance(part, slice) else part) for part in parts]
        return concatenate([_raised(value, least, first) for value in common(values)], axis=axis)

    def __len__(self) -> int:
        return 0


def _ranges_over_tracers(part: Any) -> bool:
    return isinstance(part, slice) and any([type(x) is Tracer for x in (part.start, part.stop, part.step)])


def _raised(part: Any, least: int, first: int) -> Array:
    """A part with at least `least` axes; `first` is the place of its original axes among them."""
    value = arrayed(part)
    rank = rank_of(value)
    for _ in range(rank, least):
        value = expand_dims(value, 0)
    if rank and first != -1 and rank < least:
        start = first + (least - rank + 1 if first < 0 else 0)
        for k in range(rank):
            source = least - rank + k
            for place in range(source, start + k, -1):
                value = swapaxes(value, place, place - 1)
    return value


def _range(part: slice) -> Any:
    start = 0 if part.start is None else part.start
    step = 1 if part.step is None else part.step
    if isinstance(step, complex):
        return linspace(start, part.stop, int(abs(step)))
    return arange(start, part.stop, step)


r_ = Concatenator(patching.original("r_"), (0, 1, -1))
c_ = Concatenator(patching.original("c_"), (-1, 2, 0))
