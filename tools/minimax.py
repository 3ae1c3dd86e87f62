"""Coefficients of the elementary functions of native code: derived by Remez's exchange, and compared with the source.

    python -m tools.minimax              # the error of every table of the source beside that of derived coefficients
    python -m tools.minimax --print SIN  # the coefficients that the exchange gives

Every entry states the function that a polynomial approximates, its interval, and the weight of the error. The error is
that of the whole function relative to its value. Computed with mpmath in 50 digits and rounded to the precision of the
table. The tables of the source differ from this output in the last digits, because the exchange stops at another point.
Their errors agree, as tests/project/test_tools.py checks.

Source: E. Remez (1934), the exchange algorithm; J.-M. Muller, Elementary Functions (2016), chapter 3.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import mpmath
import numpy as np
from mpmath import mpf

from func.backends.scalars.math import exponential, normal, powers, trigonometric

mpmath.mp.dps = 50
Function: TypeAlias = Callable[[Any], Any]
TINY = mpf(10) ** -20
"""Below it a quotient of differences is replaced by its limit; and the smallest weight."""


class Approximation(NamedTuple):
    """A polynomial for `function` on [low, high]; `weight` multiplies its error; `coefficients` are the source's."""

    function: Function
    low: Any
    high: Any
    weight: Function
    coefficients: tuple[float, ...]
    single: bool = False

    def error(self, coefficients: Any, point: Any) -> Any:
        """The weighted error at a point."""
        value = mpf(0)
        for coefficient in reversed(coefficients):
            value = value * point + mpf(coefficient)
        return (value - self.function(point)) * max(abs(self.weight(point)), TINY)


def with_limit(quotient: Function, limit: Any) -> Function:
    """A quotient of differences that cancel near zero, in twice the digits, and its limit at zero."""

    def value(z: Any) -> Any:
        if abs(z) < TINY:
            return limit
        with mpmath.workdps(100):
            return quotient(mpf(z))

    return value


def nodes(low: Any, high: Any, count: int) -> list[Any]:
    """Chebyshev's points of the second kind."""
    return [(low + high) / 2 - (high - low) / 2 * mpmath.cos(mpmath.pi * i / (count - 1)) for i in range(count)]


def remez(target: Approximation, degree: int, rounds: int = 20) -> tuple[list[Any], Any]:
    """The polynomial with the smallest maximum of the weighted error, and that maximum."""
    points = nodes(target.low, target.high, degree + 2)
    grid = nodes(target.low, target.high, 60 * (degree + 2))
    for _ in range(rounds):
        matrix, right = mpmath.matrix(degree + 2), mpmath.matrix(degree + 2, 1)
        for i, point in enumerate(points):
            for power in range(degree + 1):
                matrix[i, power] = point**power
            matrix[i, degree + 1] = (-1) ** i / max(abs(target.weight(point)), TINY)
            right[i] = target.function(point)
        solution = mpmath.lu_solve(matrix, right)
        coefficients, levelled = [solution[i] for i in range(degree + 1)], abs(solution[degree + 1])
        points = extrema([target.error(coefficients, point) for point in grid], grid, degree + 2)
        largest = max(abs(target.error(coefficients, point)) for point in points)
        if largest - levelled < largest / 1000:
            break
    return coefficients, largest


def extrema(errors: list[Any], grid: list[Any], count: int) -> list[Any]:
    """`count` points where the error alternates in sign and is largest."""
    runs = [[0]]
    for i in range(1, len(grid)):
        if (errors[i] > 0) == (errors[runs[-1][-1]] > 0):
            runs[-1].append(i)
        else:
            runs.append([i])
    peaks = [max(run, key=lambda i: abs(errors[i])) for run in runs]
    if len(peaks) < count:
        raise ArithmeticError(f"the error alternates {len(peaks)} times, not {count}: more digits or another interval")
    while len(peaks) > count:
        peaks.pop(0 if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else -1)
    return [grid[i] for i in peaks]


def largest_error(target: Approximation, coefficients: Sequence[float]) -> Any:
    """The maximum of the weighted error of some coefficients."""
    return max(abs(target.error(coefficients, point)) for point in nodes(target.low, target.high, 400))


def derived(target: Approximation) -> list[float]:
    """The coefficients that the exchange gives, rounded to the precision of the table."""
    kind = np.float32 if target.single else np.float64
    coefficients, _ = remez(target, len(target.coefficients) - 1)
    return [float(kind(float(c))) for c in coefficients]


def in_square(function: Function) -> Function:
    """A function of r as one of z = r²."""
    return lambda z: function(mpmath.sqrt(z))


def over(power: int, function: Function) -> Function:
    """r to a power over a function of r, as a function of z = r²: the weight of a term r to that power."""
    return in_square(
        lambda r: r**power / function(r) if r > TINY else mpf(0) if power > 1 else 1 / mpmath.diff(function, 0)
    )


LN2, QUARTER = mpmath.log(2), mpmath.pi / 4
RATIO = (mpmath.sqrt(2) - 1) / (mpmath.sqrt(2) + 1)


def logarithm(s: Any) -> Any:
    """log((1 + s) / (1 - s))."""
    return 2 * mpmath.atanh(s)


def scaled_erfc(centre: float) -> Function:
    """(1 + 2v) exp(v²) erfc(v) in t = (v - K) / (v + K)."""

    def value(t: Any) -> Any:
        v = centre * (1 + t) / (1 - t)
        return (1 + 2 * v) * mpmath.exp(v * v) * mpmath.erfc(v)

    return value


def tables() -> dict[str, Approximation]:
    """Every table of coefficients in the source that the exchange has given."""
    entries: dict[str, Approximation] = {}

    def add(name: str, function: Function, low: Any, high: Any, weight: Function, table: Any) -> None:
        for suffix, coefficients in (("", table.double), (" single", table.single)):
            entries[name + suffix] = Approximation(function, low, high, weight, coefficients, bool(suffix))

    exp_term = with_limit(lambda r: (mpmath.expm1(r) - r) / r**2, mpf(1) / 2)
    exp_weight = with_limit(lambda r: r**2 / mpmath.expm1(r), mpf(0))
    log_term = with_limit(in_square(lambda s: (logarithm(s) / s - 2) / s**2), mpf(2) / 3)
    add("EXP", exp_term, -LN2 / 2, LN2 / 2, exp_weight, exponential.EXP)
    add("LOG", log_term, mpf(0), RATIO**2, over(3, logarithm), exponential.LOG)
    sin_term = with_limit(in_square(lambda r: (mpmath.sin(r) - r) / r**3), -mpf(1) / 6)
    add("SIN", sin_term, mpf(0), (2 * QUARTER) ** 2, over(3, mpmath.sin), trigonometric.SIN)
    cos_term = with_limit(in_square(lambda r: (mpmath.cos(r) - 1 + r**2 / 2) / r**4), mpf(1) / 24)
    add("COS", cos_term, mpf(0), QUARTER**2, over(4, mpmath.cos), trigonometric.COS)
    atan_term = with_limit(in_square(lambda t: (mpmath.atan(t) - t) / t**3), -mpf(1) / 3)
    add("ARCTAN", atan_term, mpf(0), mpmath.tan(mpmath.pi / 8) ** 2, over(3, mpmath.atan), trigonometric.ARCTAN)
    asin_term = with_limit(in_square(lambda t: (mpmath.asin(t) - t) / t**3), mpf(1) / 6)
    add("ARCSIN", asin_term, mpf(0), mpf(1) / 4, over(3, mpmath.asin), trigonometric.ARCSIN)
    erf_term = with_limit(in_square(lambda v: mpmath.erf(v) / v - 1), 2 / mpmath.sqrt(mpmath.pi) - 1)
    add("ERF", erf_term, mpf(0), mpf(8) ** 2 / 100, over(1, mpmath.erf), normal.ERF)
    for bits, highest, suffix, coefficients in (
        (64, 28, "", normal.ERFCX.double),
        (32, 10, " single", normal.ERFCX.single),
    ):
        function, end = (
            scaled_erfc(normal.CENTRE[bits]),
            (highest - normal.CENTRE[bits]) / (highest + normal.CENTRE[bits]),
        )
        entries["ERFCX" + suffix] = Approximation(
            function, mpf(-1), mpf(end), lambda t, f=function: 1 / f(t), coefficients, bool(suffix)
        )
    tail = with_limit(in_square(lambda s: ((logarithm(s) / s - 2) / s**2 - mpf(2) / 3) / s**2), mpf(2) / 5)
    entries["LOG_TAIL"] = Approximation(tail, mpf(0), RATIO**2, over(5, logarithm), powers.LOG_TAIL)
    entries["LOG_MIDDLE"] = Approximation(log_term, mpf(0), RATIO**2, over(3, logarithm), powers.LOG_MIDDLE)
    entries["EXP_MIDDLE"] = Approximation(exp_term, -LN2 / 2, LN2 / 2, exp_weight, powers.EXP_MIDDLE)
    root = mpmath.sqrt(mpf(1) / 2)
    add("CBRT", mpmath.cbrt, root, 1 / root, lambda x: 1 / mpmath.cbrt(x), powers.CBRT)
    return entries


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Derive the coefficients of elementary functions.")
    parser.add_argument("--print", metavar="TABLE", help="print the coefficients that the exchange gives for a table")
    options = parser.parse_args()
    entries = tables()
    if options.print:
        target = entries[options.print]
        coefficients = derived(target)
        print("\n".join(map(repr, coefficients)))
        print(f"largest weighted error {power_of_two(largest_error(target, coefficients))}")
        return 0
    for name, target in entries.items():
        here, there = largest_error(target, target.coefficients), largest_error(target, derived(target))
        print(f"{name:14} {power_of_two(here)} in the source, {power_of_two(there)} derived here", flush=True)
    return 0


def power_of_two(number: Any) -> str:
    """A number as 2**-54.3."""
    return f"2**{float(mpmath.log(number, 2)):.1f}"


if __name__ == "__main__":
    sys.exit(main())
