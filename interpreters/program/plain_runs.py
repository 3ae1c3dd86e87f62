"""Programs as functions that run equation by equation, in loops and branches too, up to a number of steps."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from func.backends.quiet import quietly
from func.interpreters.core import Array, Primitive, bind, dtype_of, is_inexact, shape_of
from func.interpreters.program.program import Equation, Program
from func.interpreters.program.translations import PLAIN

Run: TypeAlias = Callable[..., Sequence[Any]]

MOST_STEPS = 20_000
"""Equations of one run, all steps of loops together: for other inputs a loop may never end."""


MOST_OPERANDS = 3
"""An equation that reads more elements for each that it writes adds them up."""
HUGE = 1e4
"""Beyond this size, SciPy's functions of several arguments are not called with numbers that no user passed."""


class Undefined(Exception):
    """NumPy leaves the outputs undefined for these inputs, or it takes too long to find them."""


class Noise:
    """Random rounding errors of a number of units in the last place."""

    def __init__(self, seed: int, units: float) -> None:
        self.random = np.random.default_rng(seed)
        self.units = units

    def rounded(self, value: Array, terms: float = 0.0, unit: float = 0.0, norm: bool = False) -> Any:
        """The numbers, each moved by itself, and all of them together by a unit for each term of their sums.

        Complex numbers move by a part of their size: products may cancel the digits of one part. `unit` is that of
        less precise results. `norm`: by units of the largest number, as LAPACK's routines round.
        """
        kind = dtype_of(value)
        if not is_inexact(kind):
            return value
        plain, size = np.asarray(value), self.units * max(unit_of(kind), unit)
        moves = 2 * self.random.random(shape_of(value)) - 1 + terms * (self.random.random() - 0.5) / 2
        moved = plain * (1 + size * moves)
        if norm and np.all(np.isfinite(plain)):
            moved = plain + size * moves * np.max(np.abs(plain), initial=0.0)
        if kind.kind == "c":
            turned = size * (2 * self.random.random(shape_of(value)) - 1) * np.abs(plain)
            moved = np.where(np.isfinite(moved), moved + (1 - 1j) * turned, moved)
        return type(value)(moved) if type(value) in (float, complex) else moved.astype(kind)[()]

    def either(self, value: Array, other: Array) -> Any:
        """Each number from one of two results."""
        kind = dtype_of(value)
        if not is_inexact(kind):
            return value
        is_first = self.random.random(shape_of(value)) < 0.5
        return np.where(is_first, np.asarray(value), np.asarray(other)).astype(kind)[()]


class _Running(threading.local):
    """The remaining steps of this thread's run, the steps of the last one, and the source of random rounding."""

    steps = taken = 0
    noise: Noise | None = None


_RUNNING = _Running()


def plain_run(program: Program) -> Run:
    """A program as a function of arrays. Raises Undefined."""

    def override(place: int, operands: tuple[Array, ...]) -> Any:
        _RUNNING.steps -= 1
        if _RUNNING.steps < 0:
            raise Undefined
        equation = program.equations[place]
        primitive = equation.primitive
        if equation.nested():
            out = primitive.impl(PLAIN, *operands, **equation.params)
            if _RUNNING.noise is not None:
                return tuple([_RUNNING.noise.rounded(x) for x in _outputs(equation, out)])
        else:
            _refuse_undefined_cast(equation, operands)
            refuse_extremes(primitive, operands)
            if primitive.undefined is not None and primitive.undefined(*operands, **equation.params):
                raise Undefined
            if _RUNNING.noise is not None:
                return _run_with_noise(equation, operands, _RUNNING.noise)
            out = bind(primitive, operands, equation.params)
        return _outputs(equation, out)

    return lambda *args: program.run(args, override)


def _outputs(equation: Equation, out: Any) -> tuple[Any, ...]:
    pairs = zip(equation.outputs, out if equation.primitive.multiple else (out,), strict=True)
    return tuple([x.item() if var.weak and isinstance(x, np.generic) else x for var, x in pairs])


def _run_with_noise(equation: Equation, operands: tuple[Array, ...], noise: Noise) -> tuple[Any, ...]:
    """The outputs of an equation with rounding errors; with those of long sums, if it reads much and writes little.

    Sums and linear algebra round numbers on their way, in the precision of the result.
    """
    written = max(1, sum([var.size for var in equation.outputs]))
    terms = sum([math.prod(shape_of(x)) for x in operands]) / written
    terms = terms if terms > MOST_OPERANDS else 0.0
    units = [unit_of(var.dtype) for var in equation.outputs if is_inexact(var.dtype)]
    unit = max(units, default=0.0)
    narrows = any([is_inexact(dtype_of(x)) and unit_of(dtype_of(x)) < unit for x in operands])
    by_lapack = is_of_linalg(equation.primitive)

    def run() -> tuple[Any, ...]:
        moved = operands
        if terms or narrows or by_lapack:
            moved = tuple([noise.rounded(x, unit=unit, norm=by_lapack) for x in operands])
        return _outputs(equation, bind(equation.primitive, moved, equation.params))

    outs = run()
    if by_lapack:  # the columns of an inverse are solutions, each with errors of its own
        outs = tuple([noise.either(*pair) for pair in zip(outs, run(), strict=True)])
    return tuple([noise.rounded(x, terms) for x in outs])


def evaluated(run: Run, args: Sequence[Array], noise: Noise | None = None) -> list[Any]:
    """The outputs for copies of arguments; with `noise` each equation rounds at random. Raises Undefined."""
    before = _RUNNING.steps, _RUNNING.noise
    _RUNNING.steps, _RUNNING.noise = MOST_STEPS, noise
    try:
        copies = [x.copy("K") if isinstance(x, np.ndarray) else x for x in args]
        return list(quietly(run, *(copies if noise is None else [noise.rounded(x) for x in copies])))
    finally:
        _RUNNING.taken = MOST_STEPS - _RUNNING.steps
        _RUNNING.steps, _RUNNING.noise = before


def steps_of_last() -> int:
    """The number of equations that the last run of this thread has evaluated."""
    return _RUNNING.taken


def _refuse_undefined_cast(equation: Equation, operands: Sequence[Array]) -> None:
    """Raise Undefined if the processor decides which integer a float becomes."""
    if len(operands) != 1 or len(equation.outputs) != 1 or not is_inexact(dtype_of(operands[0])):
        return
    out = equation.outputs[0]
    if out.dtype.kind in "iu" and out.shape == shape_of(operands[0]):
        limits, real = np.iinfo(out.dtype), np.real(operands[0])
        if not np.all((real > float(limits.min) - 1) & (real < float(limits.max))):
            raise Undefined


def refuse_extremes(primitive: Primitive, operands: Sequence[Array]) -> None:
    """Raise Undefined for NaN and huge numbers on which SciPy's code may crash the process, or never return.

    Functions of one argument and the elementary ones do neither.
    """
    if primitive.scipy is None or len(operands) == 1 or primitive.defined_in.endswith(".logistic"):
        return
    if not all([np.all(np.abs(x) < HUGE) for x in operands]):
        raise Undefined


def is_of_linalg(primitive: Primitive) -> bool:
    """Whether LAPACK computes a primitive."""
    return ".linalg." in primitive.defined_in


def unit_of(dtype: np.dtype[Any]) -> float:
    """The unit in the last place of 1."""
    return 2.0**-7 if dtype.kind == "V" else float(np.finfo(dtype).eps)
