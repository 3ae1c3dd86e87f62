"""NaN-safe pullbacks: the policy for gradients in which a zero cotangent meets an infinite or NaN partial.

A value that was not selected, as in the branch that `np.where` does not take, has a zero cotangent. Its partial may be
infinite or NaN there: the plain product is NaN, the derivative is zero. A NaN-safe rule gives zero, at the cost of a
slower product. So plain rules run first, and NaN decides:

1. A primitive whose partial can be infinite (`sqrt`, `log`, `power`, `divide`, …) says `nan_safe` in its definition.
   Both of its rules are NaN-safe.
2. Every other pullback runs by the plain rules. Where a gradient has a NaN, the whole pullback runs again by the
   NaN-safe rules: `pull`.
3. While a pullback is traced, its gradients are not known. The stage is told that the pullback is inside
   (`note_pullback`), so that its program has a NaN-safe variant, the same function traced with NaN-safe rules from the
   start (`nan_safe_rules`). The variant runs where an output of the program has a NaN: `with_fallback` under
   transforms, `checked` where code is executed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

import numpy as np

from func.interpreters.core import Tracer

_ARRAY = np.ndarray
_NAN_SAFE: ContextVar[bool] = ContextVar("func_nan_safe", default=False)


class WithVariant(Protocol):
    """A program that may have pullbacks inside, and then has a NaN-safe variant."""

    @property
    def has_pullbacks(self) -> bool: ...

    def nan_safe_variant(self) -> Any: ...


C = TypeVar("C", bound=WithVariant)
S = TypeVar("S", bound=Sequence[Any])
T = TypeVar("T")


def has_nan(value: Any) -> bool:
    """Whether the numbers of a value have a NaN; False where they are not known.

    Arrays are read once: a sum of squares is NaN where an element is.
    """
    while type(value) is Tracer:
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
def nan_safe_rules() -> Iterator[None]:
    """Inside, every pullback runs by the NaN-safe rules from the start."""
    token = _NAN_SAFE.set(True)
    try:
        yield
    finally:
        _NAN_SAFE.reset(token)


def are_rules_nan_safe() -> bool:
    """Whether pullbacks run by the NaN-safe rules from the start."""
    return _NAN_SAFE.get()


def pull(pullback: Callable[[bool], S]) -> S:
    """The cotangents by plain rules, `pullback(False)`; where one is NaN, by NaN-safe rules, `pullback(True)`."""
    if _NAN_SAFE.get():
        return pullback(True)
    cotangents = pullback(False)
    note_pullback(cotangents)
    return pullback(True) if any_nan(cotangents) else cotangents


def with_fallback(run: Callable[..., T], programs: Sequence[WithVariant], outputs: Callable[[T], Sequence[Any]]) -> T:
    """`run(*programs)`; where its outputs have a NaN and pullbacks are inside, `run` of the NaN-safe variants."""
    result = run(*programs)
    if any([program.has_pullbacks for program in programs]):
        values = outputs(result)
        note_pullback(values)
        if any_nan(values):
            return run(*[program.nan_safe_variant() or program for program in programs])
    return result


def form_for(program: C, args: Sequence[Any]) -> C:
    """The form of a program that is called on traced arguments, whose stages learn which pullbacks are inside."""
    if program.has_pullbacks:
        note_pullback(args)
        if _NAN_SAFE.get():
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
