"""NaN-safe derivatives: when derivatives are computed with their structural zeros.

A value that was not selected, as in the branch that `np.where` does not take, has a (co)tangent of exact zero. The
partials there may be infinite or NaN: the plain product is NaN, the derivative is zero. `live` computes with such
zeros, at the cost of a mask beside each (co)tangent. So plain rules run first, and NaN decides:

1. Where a gradient has a NaN, the pullback runs again with live cotangents: `pull`. Where a tangent has one, the
   function runs again with live tangents: `push`.
2. While a derivative is traced, its numbers are not known. The stage is told (`note_pullback`), so that its program has
   a NaN-safe variant, the same function traced with `structural_zeros` from the start. The variant runs where an output
   of the program has a NaN: `with_fallback` under transforms, `checked` where code is executed.
3. What an outer level of reverse mode records cannot be computed again when that level finds the NaN: there the inner
   derivative is live from the start.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

import numpy as np

from func.interpreters.core import Tracer, known_value
from func.interpreters.core.modes import Setting, enter, in_force, leave
from func.interpreters.live import Live, is_recorded, without_mask

_ARRAY = np.ndarray
_LIVE: ContextVar[Setting | None] = ContextVar("func_live", default=None)


class WithVariant(Protocol):
    """A program that may have pullbacks inside, and then has a NaN-safe variant."""

    @property
    def has_pullbacks(self) -> bool: ...

    def nan_safe_variant(self) -> Any: ...


C = TypeVar("C", bound=WithVariant)
T = TypeVar("T")


def has_nan(value: Any) -> bool:
    """Whether the numbers of a value, or of its tangents, have a NaN; False where they are not known.

    Arrays are read once: a sum of squares is NaN where an element is.
    """
    while type(value) is Tracer:
        if value._interpreter.differentiates and type(value._attached) is not tuple and has_nan(value._attached):
            return True
        value = value._value
    if type(value) is not _ARRAY:
        if hasattr(value, "dtype"):
            return value.dtype.kind in "fc" and bool((value != value).any())
        return isinstance(value, (float, complex)) and value != value
    if value.dtype.kind not in "fc":
        return False
    flat = value.ravel("K")
    total = np.vdot(flat, flat)
    return bool(total != total)


def any_nan(values: Sequence[Any]) -> bool:
    """Whether some value has a NaN."""
    return any([has_nan(value) for value in values])


def note_pullback(values: Sequence[Any]) -> None:
    """Tell the stages in which some values are traced that a pullback is inside."""
    for value in values:
        while type(value) is Tracer:
            stage: Any = value._interpreter
            value = value._value
            if value is None:
                stage.has_pullbacks = True


@contextlib.contextmanager
def structural_zeros() -> Iterator[None]:
    """Inside, every derivative is computed with its structural zeros from the start."""
    setting = Setting(True, _LIVE.get())
    entered = enter(_LIVE, setting)
    try:
        yield
    finally:
        leave(_LIVE, setting, entered)


def are_zeros_structural() -> bool:
    """Whether derivatives are computed with their structural zeros from the start."""
    return _LIVE.get() is not None and in_force(_LIVE) is not None


def pull(walk: Callable[[Live | None], list[Any]], values: Sequence[Any] = ()) -> list[Any]:
    """The cotangents that `walk(None)` gives; where one is NaN, those of `walk(live)`.

    So are they at once where an outer level records the pullback of these output values.
    """
    if are_zeros_structural() or any([type(value) is Tracer and is_recorded(value) for value in values]):
        return walk(Live())
    cotangents = walk(None)
    note_pullback(cotangents)
    return walk(Live()) if any_nan(cotangents) else cotangents


def push(
    run: Callable[[Live | None], tuple[list[Any], list[Any]]], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """The outputs and their tangents that `run(None)` gives; where a tangent is NaN, those of `run(live)`.

    A function that returns other outputs when it runs again keeps the first ones, and its NaN.
    """
    if are_zeros_structural():
        return run(Live())
    for value in (*primals, *tangents):
        if type(value) is Tracer and is_recorded(value):
            return run(Live())
    outs, out_tangents = run(None)
    note_pullback(out_tangents)
    if not any_nan(out_tangents):
        return outs, out_tangents
    again, tangents_again = run(Live())
    return (again, tangents_again) if _are_equal(outs, again) else (outs, out_tangents)


def push_linear(run: Callable[[Sequence[Any]], Sequence[Any]], seeds: Sequence[Any]) -> list[Any]:
    """What a linear program gives for these (co)tangents; where that has a NaN, what it gives for live ones."""
    if not are_zeros_structural():
        outs = list(run(seeds))
        note_pullback(outs)
        if not any_nan(outs):
            return outs
    live = Live()
    return [without_mask(out) for out in run([live.seed(seed) for seed in seeds])]


def _are_equal(outs: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether the numbers of outputs are equal, as far as they are known."""
    if len(outs) != len(others):
        return False
    for out, other in zip(outs, others, strict=True):
        x, y = known_value(out), known_value(other)
        if type(x) is type(y) is _ARRAY and not np.array_equal(x, y, equal_nan=x.dtype.kind in "fc"):
            return False
    return True


def with_fallback(run: Callable[..., T], programs: Sequence[WithVariant], outputs: Callable[[T], Sequence[Any]]) -> T:
    """`run(*programs)`; where its outputs have a NaN and pullbacks are inside, `run` of the NaN-safe variants."""
    has_variants = any([program.has_pullbacks for program in programs])
    if has_variants and are_zeros_structural():
        return run(*[program.nan_safe_variant() or program for program in programs])
    result = run(*programs)
    if has_variants:
        values = outputs(result)
        note_pullback(values)
        if any_nan(values):
            return run(*[program.nan_safe_variant() or program for program in programs])
    return result


def form_for(program: C, args: Sequence[Any]) -> C:
    """The form of a program that is called on traced arguments, whose stages learn which pullbacks are inside."""
    if program.has_pullbacks:
        note_pullback(args)
        if are_zeros_structural():
            return program.nan_safe_variant() or program
    return program


class CheckedRun:
    """A function that runs its NaN-safe variant where an output has a NaN."""

    __slots__ = ("run", "variant")

    def __init__(self, run: Callable[..., Any], variant: Callable[..., Any]) -> None:
        self.run = run
        self.variant = variant

    def __call__(self, *args: Any) -> Any:
        outs = self.run(*args)
        return self.variant(*args) if any_nan(outs) else outs

    @property
    def text(self) -> str:
        """The source that runs first."""
        return str(getattr(self.run, "text", ""))


def checked(run: Callable[..., Any], variant: Callable[..., Any] | None) -> Callable[..., Any]:
    """A function, checked for NaN if it has a NaN-safe variant."""
    return run if variant is None else CheckedRun(run, variant)
