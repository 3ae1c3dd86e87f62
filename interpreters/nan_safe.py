"""NaN-safe derivatives: when func computes derivatives with their structural zeros.

A value that was not selected, as in the branch that `np.where` does not take, has a (co)tangent of exact zero. The
partials there may be infinite or NaN: the plain product is NaN, the derivative is zero. `structural` computes with such
zeros, at the cost of a mask for each (co)tangent. So plain rules run first, and NaN decides:

1. If a gradient has a NaN, `pull` runs the pullback again with structural zeros. If a tangent has one, `push` runs the
   function again.
2. A derivative under trace has no numbers. `note_pullback` tells the stage, and its program gets a NaN-safe variant,
   the same function traced with `structural_zeros` from the start. The variant runs if an output of the program is NaN:
   `with_fallback` under transforms, `checked` in executed code.
3. When an outer level of reverse mode finds the NaN, it can no longer repeat its record. There the inner derivative has
   structural zeros from the start.

If the pass or the function exchanges messages with other processes, all of them repeat it, or none: `agreed`.

Rules of users may have side effects and draw random numbers, so a pass that starts again avoids calling them again: see
`Attempt`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy import ndarray

from func.backends.array_helpers.arrays import plain_vdot
from func.backends.quiet import quietly
from func.interpreters.core import ZERO, Tracer, derivatives_in, is_inexact, known_value
from func.interpreters.core.errors import CustomRuleError
from func.interpreters.core.modes import STRUCTURAL, Setting, holding, value_in_force
from func.interpreters.core.modes import are_zeros_structural as are_zeros_structural
from func.interpreters.primitives.structural.identity import is_abstract_value
from func.interpreters.processes import LEDGER, agreed, has_company
from func.interpreters.program.program import Program
from func.interpreters.structural_zeros import StructuralZeros, has_mask, is_recorded, without_mask

_ATTEMPT: ContextVar[Setting | None] = ContextVar("func_attempt", default=None)


class WithVariant(Protocol):
    """A program that may have pullbacks inside; with one it has a NaN-safe variant."""

    @property
    def has_pullbacks(self) -> bool: ...

    def nan_safe_variant(self) -> Any: ...


C = TypeVar("C", bound=WithVariant)
T = TypeVar("T")


def has_nan(value: Any) -> bool:
    """Whether the numbers of a value, or of its tangents, have a NaN; False if they are unknown.

    Arrays are read once: a sum of squares is NaN where an element is.
    """
    while type(value) is Tracer:
        attached = value._attached
        if value._interpreter.differentiates and type(attached) is not tuple and any_nan(derivatives_in(attached)):
            return True
        value = value._value
    if type(value) is not ndarray:
        if hasattr(value, "dtype"):
            return is_inexact(value.dtype) and bool((value != value).any())
        return isinstance(value, (float, complex)) and value != value
    if not is_inexact(value.dtype):
        return False
    flat = value.ravel("K")
    total = plain_vdot(flat, flat)
    return bool(total != total)


class FreshCotangents(list[Any]):
    """Cotangents of compiled code: none is NaN, and nothing else refers to the arrays."""


def any_nan(values: Sequence[Any]) -> bool:
    """Whether some value has a NaN."""
    return type(values) is not FreshCotangents and any([has_nan(value) for value in values])


def note_pullback(values: Sequence[Any]) -> None:
    """Tell the stages that trace some of the values that a pullback is inside."""
    for value in values:
        while type(value) is Tracer:
            stage: Any = value._interpreter
            value = value._value
            if value is None:
                stage.has_pullbacks = True


@contextlib.contextmanager
def structural_zeros() -> Iterator[None]:
    """Inside, every derivative has its structural zeros from the start."""
    with holding(STRUCTURAL, True):
        yield


def pull(walk: Callable[[StructuralZeros | None], list[Any]], values: Sequence[Any] = ()) -> list[Any]:
    """The cotangents that `walk(None)` returns; if one is NaN, those of `walk(structural)`.

    The walk has structural zeros at once if an outer level records the pullback of these output values.
    """
    if are_zeros_structural():
        return walk(StructuralZeros())
    for value in values:
        if type(value) is Tracer and is_recorded(value):
            return walk(StructuralZeros())
    if Attempt.ever:
        return _pull_in_attempt(walk)
    moment = LEDGER.moment
    cotangents = walk(None)
    if type(cotangents) is FreshCotangents and LEDGER.moment == moment:
        return cotangents
    note_pullback(cotangents)
    return walk(StructuralZeros()) if agreed(any_nan(cotangents), moment) else cotangents


def _pull_in_attempt(walk: Callable[[StructuralZeros | None], list[Any]]) -> list[Any]:
    """`pull` in a process that has rules of users."""
    attempt = Attempt(_begin)
    moment = LEDGER.moment
    with in_attempt(attempt):
        try:
            cotangents = walk(None)
            note_pullback(cotangents)
            if not agreed(any_nan(cotangents), moment):
                return cotangents
        except StartAgain:
            pass
        attempt.start_again(is_tentative=False)
        return walk(StructuralZeros())


def _begin() -> None:
    """For a pass without hooks, before the first rule of a user: there is nothing to check."""


class StartAgain(Exception):
    """Raised before a rule of a user, if a tentative pass would have to repeat it."""


class Attempt:
    """A backward pass that may start again, and the results of users' rules in it.

    With a NaN in its cotangents, or if `begin` raises StartAgain, a tentative pass starts again. It does so before it
    calls a user's rule or repeats a checkpoint. Among several processes no pass is tentative, as the others would
    not start again with it. A pass that starts again reuses the results of a rule for equal cotangents. It calls the
    rule again only if the cotangents have structural zeros now; the rule must then return the same numbers.
    """

    __slots__ = ("begin", "counts", "is_tentative", "results")

    ever = False
    """Whether a rule of a user was ever recorded: passes without rules make no attempt."""

    def __init__(self, begin: Callable[[], None]) -> None:
        self.begin = begin
        self.is_tentative = not has_company()
        self.results: dict[tuple[int, int], tuple[Any, Sequence[Any], Sequence[Any]]] = {}
        """By rule and the number of its call: the rule, its cotangents, and its results."""
        self.counts: dict[int, int] = {}

    def start_again(self, is_tentative: bool) -> None:
        """The pass starts again."""
        self.counts.clear()
        self.is_tentative = is_tentative and not has_company()

    def check(self, cts: Iterable[Any]) -> None:
        """Called before a user's function gets cotangents: raises StartAgain if the call would be useless."""
        if self.is_tentative:
            self.begin()
            if any_nan([ct for ct in cts if ct is not None and not is_abstract_value(ct)]):
                raise StartAgain

    def pulled(self, rule: Any, call: Callable[[Sequence[Any]], Sequence[Any]], cts: Sequence[Any]) -> Sequence[Any]:
        """The results of a user's rule, by `call(cts)`."""
        if any([is_abstract_value(ct) for ct in cts if ct is not None]):
            return call(cts)
        count = self.counts[id(rule)] = self.counts.get(id(rule), 0) + 1
        key = id(rule), count
        if self.is_tentative:
            if key in self.results:
                return self.results[key][2]
            self.check(cts)
        before = self.results.get(key)
        if before is not None and not any([_has_dead_elements(ct) for ct in cts]):
            return before[2]
        returned = call(cts)
        if before is None:
            self.results[key] = rule, cts, returned
        elif not all([_agree(x, y) for x, y in zip(before[2], returned, strict=True)]):
            raise CustomRuleError(
                "a backward rule was called twice in one backward pass, since a gradient behind it is NaN at a place "
                "that was not selected, and returned other numbers the second time. Draw random numbers and count in "
                "the forward function, or keep those places out of the operation whose derivative is NaN by np.where."
            )
        return returned


def present_attempt() -> Attempt | None:
    """The pass that calls a rule of a user, if it may start again."""
    return None if _ATTEMPT.get() is None else value_in_force(_ATTEMPT)


@contextlib.contextmanager
def in_attempt(attempt: Attempt | None) -> Iterator[None]:
    """Inside, rules of users belong to this pass; None means the code of such a rule."""
    with holding(_ATTEMPT, attempt):
        yield


def _has_dead_elements(ct: Any) -> bool:
    return has_mask(ct) and ct._attached is not None


def _agree(x: Any, y: Any) -> bool:
    """Whether two cotangents are equal up to rounding, where the first is not NaN and as far as they are known."""
    if x is None or y is None or x is ZERO or y is ZERO:
        return x is y
    x, y = known_value(without_mask(x)), known_value(without_mask(y))
    if not isinstance(x, (np.ndarray, np.inexact)) or not isinstance(y, (np.ndarray, np.inexact)):
        return True
    known = x == x
    scale = np.max(np.abs(np.where(known, x, 0)), initial=0.0)
    tolerance = 0.5 ** (3 * x.real.dtype.itemsize)  # half of the digits
    return bool(np.allclose(np.where(known, x, 0), np.where(known, y, 0), rtol=tolerance, atol=tolerance * scale))


def push(
    run: Callable[[StructuralZeros | None], tuple[list[Any], list[Any]]],
    primals: Sequence[Any],
    tangents: Sequence[Any],
) -> tuple[list[Any], list[Any]]:
    """The outputs and their tangents that `run(None)` returns; if a tangent is NaN, those of `run(structural)`.

    A function that returns other outputs when it runs again keeps the first ones, and its NaN.
    """
    if are_zeros_structural():
        return run(StructuralZeros())
    for value in (*primals, *tangents):
        if type(value) is Tracer and is_recorded(value):
            return run(StructuralZeros())
    moment = LEDGER.moment
    outs, out_tangents = run(None)
    note_pullback(out_tangents)
    if not agreed(any_nan(out_tangents), moment):
        return outs, out_tangents
    again, tangents_again = run(StructuralZeros())
    return (again, tangents_again) if _are_equal(outs, again) else (outs, out_tangents)


def push_linear(run: Callable[[Sequence[Any]], Sequence[Any]], seeds: Sequence[Any]) -> list[Any]:
    """The outputs of a linear program for these (co)tangents; if they have a NaN, its outputs with structural zeros."""
    if not are_zeros_structural():
        moment = LEDGER.moment
        outs = list(quietly(run, seeds))
        note_pullback(outs)
        if not agreed(any_nan(outs), moment):
            return outs
    structural = StructuralZeros()
    return [without_mask(out) for out in quietly(run, [structural.seed(seed) for seed in seeds])]


def _are_equal(outs: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether the numbers of outputs are equal, as far as they are known."""
    if len(outs) != len(others):
        return False
    for out, other in zip(outs, others, strict=True):
        x, y = known_value(out), known_value(other)
        if type(x) is type(y) is ndarray and not np.array_equal(x, y, equal_nan=is_inexact(x.dtype)):
            return False
    return True


def with_fallback(run: Callable[..., T], programs: Sequence[WithVariant], outputs: Callable[[T], Sequence[Any]]) -> T:
    """`run(*programs)`; if its outputs have a NaN and pullbacks are inside, `run` of the NaN-safe variants."""
    has_variants = any([program.has_pullbacks for program in programs])
    if has_variants and are_zeros_structural():
        return run(*[program.nan_safe_variant() or program for program in programs])
    moment = LEDGER.moment
    result = run(*programs)
    if has_variants:
        values = outputs(result)
        note_pullback(values)
        if agreed(any_nan(values), moment):
            return run(*[program.nan_safe_variant() or program for program in programs])
    return result


def form_for(program: C, args: Sequence[Any]) -> C:
    """The form of a program for traced arguments, whose stages learn which pullbacks are inside."""
    if program.has_pullbacks:
        note_pullback(args)
        if are_zeros_structural():
            return program.nan_safe_variant() or program
    return program


def run_nan_safe(program: Program, args: Sequence[Any]) -> tuple[Any, ...]:
    """The outputs of a program, or of its NaN-safe variant if one of them has a NaN.

    The variant runs at once if an outer level records the arguments.
    """
    assert program.nan_safe is not None
    if are_zeros_structural() or any([type(value) is Tracer and is_recorded(value) for value in args]):
        return program.nan_safe.run(args)
    moment = LEDGER.moment
    outs = program.run(args)
    note_pullback(outs)
    return program.nan_safe.run(args) if agreed(any_nan(outs), moment) else outs


class CheckedRun:
    """A function that runs its NaN-safe variant if an output has a NaN."""

    __slots__ = ("run", "variant")

    def __init__(self, run: Callable[..., Any], variant: Callable[..., Any]) -> None:
        self.run = run
        self.variant = variant

    def __call__(self, *args: Any) -> Any:
        moment = LEDGER.moment
        outs = self.run(*args)
        return self.variant(*args) if agreed(any_nan(outs), moment) else outs

    @property
    def text(self) -> str:
        """The source that runs first."""
        return str(getattr(self.run, "text", ""))


def checked(run: Callable[..., Any], variant: Callable[..., Any] | None) -> Callable[..., Any]:
    """A function, with a check for NaN if it has a NaN-safe variant."""
    return run if variant is None else CheckedRun(run, variant)
