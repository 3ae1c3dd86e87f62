"""Validation of translations: evaluate a Program before and after a pass or a lowering on the same small inputs.

The inputs have special and coinciding values. If the results differ, `shrinking` makes the program small as long as
they do, and `ValidationError` shows the rest. A translation promises bits or rounding (`keeps_bits`):

- With bits all numbers are equal, the signs of zeros too. A NaN is equal to every other NaN. Products of matrices are
  equal up to rounding: BLAS has another routine for that of an array with itself, which equal ones may become.
- With rounding numbers are equal up to the precision of the least precise value. If they differ, the program runs again
  with rounding errors of random sign behind every equation, and validation accepts the changes that these make.
- Inputs for which the program before raises an error, takes too many steps, or casts beyond a dtype, show nothing.
  Nor do those whose results consist of rounding errors, as after many steps of a chaotic loop.
- A program that calls one with a NaN-safe variant has one too: it runs in the place of a translation with NaN.
- Sums in another order, and factors pulled out of sums, may give NaN in the place of an infinity, and the other way.
- NumPy leaves products of infinite complex numbers undefined, and LAPACK its results for infinities. The zeros of unit
  vectors are structural. Programs with one of these get finite inputs, and results that are not finite show nothing.

Programs with effects (callbacks, messages, functions of Python) do not run twice, so they are not validated.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from func.backends import is_device_array, messages
from func.backends.quiet import quietly
from func.interpreters.compile.shrinking import smallest
from func.interpreters.core import Array, Aval, Tracer, dtype_of, is_inexact, shape_of
from func.interpreters.core.errors import ValidationError
from func.interpreters.primitives.elementwise.pointwise import Pointwise
from func.interpreters.primitives.structural.contraction import contract
from func.interpreters.primitives.structural.identity import seed
from func.interpreters.program.plain_runs import (
    Noise,
    Run,
    Undefined,
    evaluated,
    is_of_linalg,
    plain_run,
    steps_of_last,
    unit_of,
)
from func.interpreters.program.printing import names_of
from func.interpreters.program.program import Program, Var
from func.interpreters.program.special_inputs import special_inputs
from func.interpreters.program.translations import TRANSLATIONS

MOST_ELEMENTS = 1 << 24
"""The most elements of all values of a validated program."""
FEW_ELEMENTS = 1 << 18
"""With more elements of all values, two inputs suffice."""
ENOUGH_STEPS = 30_000
"""The most equations of all runs of one program, loops step by step; then no further inputs follow."""
UNITS = 512
"""The most that rounding may change an output, in units of the last place of its largest element."""
NOISE = 4.0
"""The units in the last place by which they move a number."""
CHAOS = 1e-2
"""The share of an output's largest element that rounding errors change if its digits are not valid."""
NOISY_RUNS = 8
"""Runs with random rounding errors after a difference."""
INF = float("inf")


class Translation(NamedTuple):
    """A step that turns a Program into something else with equal results."""

    name: str
    translated: Callable[[Program], Run]
    """The translation of a program, as a function of arrays."""
    reference: Callable[[Program], Run]
    """The reference for comparisons."""
    avals: Callable[[Program], Sequence[Aval]]
    """The arguments of both."""
    keeps_bits: bool
    keeps_overflow: bool
    """Whether it raises OverflowError for a Python number beyond a dtype, as code does."""


class Difference(NamedTuple):
    """Arguments for which a program and its translation differ."""

    args: Sequence[Array]
    text: str


class _Shrinking(threading.local):
    """Whether this thread makes a program small, which compares its translations."""

    is_on = False


_SHRINKING = _Shrinking()


def _inputs(program: Program) -> Sequence[Aval]:
    return [var.aval for var in program.inputs]


def check_translation(
    name: str,
    program: Program,
    translated: Callable[[Program], Run],
    run: Run | None = None,
    *,
    reference: Callable[[Program], Run] = plain_run,
    avals: Callable[[Program], Sequence[Aval]] = _inputs,
    keeps_bits: bool = False,
    keeps_overflow: bool = False,
    is_fixed: bool = False,
) -> None:
    """Raise ValidationError if a translation of a program computes something else; `run` is the translated program.

    Without `reference` the comparison is with the program, equation by equation. `is_fixed`: translation and reference
    are of this program alone, so the report shows it whole.
    """
    if not TRANSLATIONS.are_validated or _SHRINKING.is_on:
        return
    if reason := _why_not(program):
        messages.debug("%s of a program is not validated: %s", name, reason)
        return
    translation = Translation(name, translated, reference, avals, keeps_bits, keeps_overflow)
    found = quietly(_difference, translation, program, translated(program) if run is None else run)
    if found is None:
        return
    shown = program, found
    if not is_fixed:
        _SHRINKING.is_on = True
        try:
            shown = smallest(program, found, lambda other: quietly(_difference, translation, other, translated(other)))
        finally:
            _SHRINKING.is_on = False
    error = _error(translation, *shown)
    TRANSLATIONS.reports.append(error)
    raise error


def validated_pass(apply_pass: Callable[[Program], Program]) -> Callable[[Program], Program]:
    """A pass with validation wherever it changes something."""
    name, bits = getattr(apply_pass, "__name__", repr(apply_pass)), getattr(apply_pass, "keeps_bits", False)

    def translated(program: Program) -> Run:
        try:
            return plain_run(apply_pass(program))
        except Exception as error:
            return raising(error)

    def apply_and_check(program: Program) -> Program:
        try:
            changed = apply_pass(program)
        except Exception as error:
            check_translation(f"the pass {name}", program, translated, raising(error), keeps_bits=bits)
            raise
        if changed is not program:
            check_translation(f"the pass {name}", program, translated, plain_run(changed), keeps_bits=bits)
        return changed

    return apply_and_check


def raising(error: Exception) -> Run:
    """The result of a translation that fails: a function that raises its error."""

    def run(*args: Array) -> NoReturn:
        raise error

    return run


def _difference(translation: Translation, program: Program, run: Run) -> Difference | None:
    """A difference between a program and its translation; None if no inputs show one."""
    reference, promise = translation.reference(program), _Promise(program, translation.keeps_bits)
    left = ENOUGH_STEPS
    for args in special_inputs(translation.avals(program), promise.is_large, promise.is_for_finite):
        if left < 0:
            break
        try:
            expected: Any = evaluated(reference, args)
        except ValidationError:
            raise
        except Exception as error:  # these inputs show nothing
            if type(error) is not OverflowError or not translation.keeps_overflow:
                continue
            expected = error
        finally:
            left -= steps_of_last()
        try:
            outs = evaluated(run, args)
        except ValidationError:
            raise
        except Undefined:  # so do those of which NumPy does not define the translation
            continue
        except Exception as error:
            if type(error) is ZeroDivisionError and promise.runs_rules:
                continue
            if type(error) is not type(expected):
                return Difference(args, f"it raises {type(error).__name__}: {error}")
            continue
        if isinstance(expected, OverflowError):
            if any([var.size == 0 for var in _values(program)]):
                continue  # NumPy refuses a number where there is nothing to compute
            return Difference(args, f"it gives {', '.join(map(_shown, outs))}, right: OverflowError: {expected}")
        wrong = [
            place
            for place, (right, out) in enumerate(zip(expected, outs, strict=True))
            if not promise.agree(right, out)
        ]
        if wrong and not promise.keeps_bits:
            spread = _spread(reference, args, expected, NOISE)
            wrong = [place for place in wrong if not promise.agree(expected[place], outs[place], spread[place])]
            if wrong and _is_chaotic(expected, spread, _spread(reference, args, expected, 16 * NOISE)):
                continue
        for place in wrong:
            return Difference(args, f"output {place} is {_shown(outs[place])}, right: {_shown(expected[place])}")
    return None


def _programs(program: Program) -> Iterator[Program]:
    """A program and all programs inside it."""
    yield program
    for equation in program.equations:
        for _, nested in equation.nested():
            yield from _programs(nested)


def _values(program: Program) -> Iterator[Var]:
    """All variables of a program and of those inside it."""
    for part in _programs(program):
        yield from (*part.inputs, *part.constants)
        for equation in part.equations:
            yield from equation.outputs


def _why_not(program: Program) -> str | None:
    """The reason why a program is not validated."""
    for part in _programs(program):
        if any([type(value) is Tracer or is_device_array(value) for value in part.constants.values()]):
            return "it holds traced values, or arrays of a device"
        for equation in part.equations:
            if not equation.outputs or equation.primitive.calls_python or equation.primitive.communicates:
                return f"{equation.primitive.name} has effects, or calls Python"
    return "it is large" if sum([var.size for var in _values(program)]) > MOST_ELEMENTS else None


class _Promise:
    """The promise of a translation about the results of a program."""

    def __init__(self, program: Program, keeps_bits: bool) -> None:
        values = list(_values(program))
        primitives = {equation.primitive for part in _programs(program) for equation in part.equations}
        kinds = {var.dtype for var in values}
        self.keeps_bits = keeps_bits and contract not in primitives
        self.unit = max([unit_of(kind) for kind in kinds if is_inexact(kind)], default=0.0)
        """The unit in the last place of the least precise value."""
        self.is_elementwise = all([isinstance(primitive, Pointwise) or primitive.view for primitive in primitives])
        """Whether nothing is added up, so infinities and NaN stay where they were."""
        self.is_for_finite = any([kind.kind == "c" for kind in kinds]) or (
            not keeps_bits and any([p is seed or is_of_linalg(p) for p in primitives])
        )
        """Whether the promise covers finite inputs alone."""
        params = [value for part in _programs(program) for e in part.equations for value in e.params.values()]
        calls = [call for value in params for call in (value if type(value) is tuple else (value,))]
        self.has_variant = any([getattr(call, "has_pullbacks", False) for call in calls])
        """Whether a NaN shows nothing, as it makes a NaN-safe variant run."""
        self.runs_rules = any([primitive.name.startswith("custom_") for primitive in primitives])
        """Whether a translation runs rules of users, where Python's numbers raise errors that arrays do not."""
        self.units = UNITS + sum([len(part.equations) for part in _programs(program)])
        """The tolerance in units of the largest element: each equation rounds."""
        self.is_large = sum([var.size for var in values]) > FEW_ELEMENTS

    def agree(self, right: Any, out: Any, spread: Any = None) -> bool:
        """Whether an output is right, up to changes that rounding errors make."""
        if shape_of(right) != shape_of(out) or dtype_of(right) != dtype_of(out):
            return False
        right, out = np.asarray(right), np.asarray(out)
        if not is_inexact(right.dtype):
            return bool(np.all((right == out) | (False if spread is None else spread > 0)))
        equal = (right == out) | (np.isnan(out) & (np.isnan(right) | self.has_variant))
        if self.keeps_bits:
            for part in ("real", "imag"):
                equal &= np.isnan(out) | (np.signbit(getattr(right, part)) == np.signbit(getattr(out, part)))
            return bool(np.all(equal))
        is_finite = np.isfinite(right)
        largest = np.max(np.where(is_finite, np.abs(right), 0), initial=0.0)
        tolerance = self.units * self.unit * float(largest) + (0.0 if spread is None else 4 * spread)
        equal |= is_finite & (np.abs(out - right) <= tolerance)
        if spread is not None:  # a quotient without a valid digit: its divisor may as well be zero
            equal |= ~np.isfinite(out) & (4 * spread >= np.abs(right)) & (spread > 0)
        if self.is_for_finite:
            equal |= ~is_finite
        elif not self.is_elementwise:
            equal |= ~is_finite & ~np.isfinite(out)
        return bool(np.all(equal | (False if spread is None else spread == INF)))


def _spread(reference: Run, args: Sequence[Array], expected: Sequence[Any], units: float) -> list[Any]:
    """The change of each output element by rounding errors: infinite where they decide about NaN."""
    spread: list[Any] = [np.zeros(shape_of(x)) for x in expected]
    for number in range(NOISY_RUNS):
        try:
            outs = evaluated(reference, args, Noise(number, units))
        except ValidationError:
            raise
        except Exception:
            return [np.full(shape_of(x), INF) for x in expected]
        for place, (right, out) in enumerate(zip(expected, outs, strict=True)):
            is_equal = np.equal(right, out) | (np.isnan(right) & np.isnan(out))
            moved = np.abs(np.subtract(out, right, dtype=complex))
            moved = np.where(np.isnan(moved), INF, moved)
            spread[place] = np.maximum(spread[place], np.where(is_equal, 0.0, moved))
    return spread


def _is_chaotic(expected: Sequence[Any], spread: Sequence[Any], wider: Sequence[Any]) -> bool:
    """Whether large rounding errors change the largest element of an output no more than small ones, but both do.

    Errors that only add up, or cancel digits, are in proportion.
    """
    for right, small, large in zip(expected, spread, wider, strict=True):
        if is_inexact(dtype_of(right)):
            sizes = np.where(np.isfinite(right), np.abs(right), 0.0)
            largest = float(np.max(sizes, initial=0.0))
            if np.any((sizes == largest) & (small > CHAOS * largest) & (large < 4 * small)):
                return True
    return False


def _shown(value: Any) -> str:
    return np.array_repr(value, precision=17) if isinstance(value, np.ndarray) else repr(value)


def _error(translation: Translation, program: Program, found: Difference) -> ValidationError:
    """The report of a difference."""
    names = names_of(program)
    inputs = [names[var] for var in program.inputs]
    given = [
        f"{inputs[place] if place < len(inputs) else f'argument {place}'} = {_shown(value)}"
        for place, value in enumerate(found.args)
    ]
    text = (
        "This is a fault of func: please report it with this text. func.config.validate = False leaves out the check."
    )
    error = ValidationError(
        "\n".join([f"{translation.name} changes what a program computes: {found.text}", str(program), *given, text])
    )
    error.translation, error.program, error.arguments = translation.name, program, tuple(found.args)
    return error
