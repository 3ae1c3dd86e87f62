"""Partial derivatives at all magnitudes against mpmath: grids, truths, errors, and the part of a machine made of rows.

A row names a function of func, the same function for mpmath numbers, its domain and its bounds. `part(name, rows)` is
the part of a machine that compares first and second partials, in each mode and precision, on blocks of points.

    Row("tanh", np.tanh, mpmath.tanh, domains=(Domain(near=(0.0, 19.0)),))
    Row("beta", special.beta, mpmath.beta, domains=(Domain(0.0), Domain(0.0)), bounds=relative_bounds(1e-10, 1e-8))
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import mpmath
import numpy as np

import func
from tools.enumerate import scope

Orders = tuple[int, ...]
"""How often a partial derives by each operand, such as (1, 1) for the mixed second one."""

DTYPES = ("float64", "float32")
MODES = ("forward", "reverse", "nested", "compiled")
"""Forward is jvp (of jvp), reverse is vjp (of jvp), nested is vjp (of vjp), compiled is reverse under jit."""

BLOCK = 16
"""Points of one program: one call of func computes them together."""


@dataclass(frozen=True)
class Domain:
    """The numbers of one operand: an open interval, and points whose neighbourhoods the grid visits closely."""

    low: float = -math.inf
    high: float = math.inf
    near: tuple[float, ...] = ()
    """Switches between formulas, edges, zeros of the derivative: approached from both sides down to the last digit."""
    extra: tuple[float, ...] = ()
    """Further points, taken as they are."""


@dataclass(frozen=True)
class Bound:
    """What a partial of one order may be off: some ulp of its dtype, or a relative error, whichever is larger."""

    ulps: float = 16
    relative: float = 0.0


def relative_bounds(first: float, second: float) -> tuple[Bound, Bound]:
    """The bounds of first and second partials as relative errors, with 16 ulp for narrow dtypes."""
    return Bound(relative=first), Bound(relative=second)


@dataclass(frozen=True, eq=False)
class Row:
    """A function of func and its truth.

    `closed` holds closed forms of partials by their orders; the others are mpmath's differences at rising precision.
    """

    name: str
    function: Callable[..., Any]
    exact: Callable[..., Any]
    domains: tuple[Domain, ...] = (Domain(),)
    bounds: tuple[Bound, Bound] = (Bound(), Bound())
    closed: Mapping[Orders, Callable[..., Any]] = field(default_factory=dict)
    by: tuple[int, ...] | None = None
    """The operands by which it is derived; all of them by default."""
    dtypes: tuple[str, ...] = DTYPES
    where: Callable[..., bool] = lambda *point: True
    """Whether the function has derivatives at a point; the grid leaves out the others."""
    modes: tuple[str, ...] = MODES
    second: bool = True
    """Whether second partials exist."""
    terms: Mapping[Orders, Callable[..., Any]] = field(default_factory=dict)
    """The sizes of the terms of which a partial is the sum, where they cancel: errors are measured by them."""

    def orders(self) -> list[Orders]:
        """First partials, then second ones."""
        arity = len(self.domains)
        places = range(arity) if self.by is None else self.by
        units = [tuple(int(i == place) for i in range(arity)) for place in places]
        pairs = itertools.combinations_with_replacement(units, 2) if self.second else ()
        return [*units, *[tuple(a + b for a, b in zip(*pair, strict=True)) for pair in pairs]]


def grid(dtype: str, domain: Domain = Domain(), step: int | None = None) -> np.ndarray[Any, Any]:
    """Numbers of a domain over the whole range of exponents, both signs, simple ones first.

    Every `step`-th binade has two, near one each; points of `domain.near` have neighbours at all distances.
    """
    info = np.finfo(dtype)
    step = step or {"float64": 37, "float32": 7}[dtype]
    exponents = [*range(-12, 13), *range(13, info.maxexp, step), *range(-13, info.minexp - 1, -step)]
    ends = [info.maxexp - 1, info.minexp, info.minexp + 1]
    values = [sign * 2.0**e * (1 + k * 0.381966) for e in [*exponents, *ends] for k in (0, 1) for sign in (1, -1)]
    values += [sign * float(info.max) for sign in (1, -1)] + [float(x) for x in domain.extra]
    digits = info.nmant
    for point in domain.near:
        scale = abs(point) or 1.0
        offsets = [scale * 2.0**-j * 1.25 for j in range(2, digits + 1, 3)] + [0.5 * scale, scale * 2.0**-digits]
        values += [point + sign * offset for offset in offsets for sign in (1, -1)]
    with np.errstate(over="ignore"):
        rounded = np.array(values, dtype)
    inside = np.isfinite(rounded) & (rounded > domain.low) & (rounded < domain.high)
    rounded = rounded[inside & ((rounded == 0) | (np.abs(rounded) >= info.tiny))]
    _, first = np.unique(rounded, return_index=True)
    return rounded[np.sort(first)]


SETTLED = 2.0**-70
"""Two precisions agree when they differ by less, relatively."""
LEAST_BITS, MOST_BITS = 128, 5000


def settled(function: Callable[[], Any]) -> Any:
    """The value of a computation at the precision from which on it does not change; zero where it underflows all.

    None where mpmath finds no value or no precision suffices.
    """
    bits, before = LEAST_BITS, None
    while bits <= MOST_BITS:
        with mpmath.workprec(bits):
            try:
                value = function()
            except (ValueError, ZeroDivisionError, OverflowError, mpmath.libmp.NoConvergence):
                return None
            if isinstance(value, mpmath.mpc) and value.imag == 0:
                value = value.real
            if before is not None and value != 0 and abs(value - before) <= SETTLED * abs(value):
                return value
        before, bits = value, bits * 2
    return value if value == 0 and before == 0 else None


@functools.lru_cache(maxsize=200_000)
def _truth(row: Row, orders: Orders, point: tuple[float, ...]) -> Any:
    closed = row.closed.get(orders)
    numbers = [mpmath.mpf(x) for x in point]
    if closed is not None:
        return settled(lambda: closed(*numbers))
    return settled(lambda: difference(row.exact, numbers, orders))


def truth(row: Row, orders: Orders, point: Sequence[float]) -> Any:
    """The true partial at a point as an mpmath number, or None where it is not known."""
    return _truth(row, orders, tuple(float(x) for x in point))


def difference(exact: Callable[..., Any], numbers: Sequence[Any], orders: Orders) -> Any:
    """A derivative by differences, each operand in units of its own size so that no step leaves its scale."""
    scales = [abs(x) if x else mpmath.mpf(1) for x in numbers]

    def scaled(*units: Any) -> Any:
        return exact(*[unit * scale for unit, scale in zip(units, scales, strict=True)])

    units = [x / scale for x, scale in zip(numbers, scales, strict=True)]
    total = mpmath.diff(scaled, tuple(units), tuple(orders)) if len(units) > 1 else mpmath.diff(scaled, *units, *orders)
    for scale, order in zip(scales, orders, strict=True):
        total /= scale**order
    return total


def partial_of(function: Callable[..., Any], orders: Orders, mode: str) -> Callable[..., Any]:
    """A function that computes the partials at arrays of points, elementwise."""
    places = [place for place, order in enumerate(orders) for _ in range(order)]
    derived = function
    for number, place in enumerate(places):
        pulls = mode == "nested" or (mode != "forward" and number + 1 == len(places))
        derived = (_by_pullback if pulls else _by_tangent)(derived, place)
    return func.jit(derived) if mode == "compiled" else derived


def _by_tangent(function: Callable[..., Any], place: int) -> Callable[..., Any]:
    def derived(*args: Any) -> Any:
        def of_one(x: Any) -> Any:
            return function(*args[:place], x, *args[place + 1 :])

        return func.jvp(of_one, (args[place],), (np.ones_like(args[place]),))[1]

    return derived


def _by_pullback(function: Callable[..., Any], place: int) -> Callable[..., Any]:
    def derived(*args: Any) -> Any:
        def of_one(x: Any) -> Any:
            return function(*args[:place], x, *args[place + 1 :])

        out, pull = func.vjp(of_one, args[place])
        return pull(np.ones_like(out))[0]

    return derived


@functools.lru_cache(maxsize=2000)
def _derived(row: Row, orders: Orders, mode: str) -> Callable[..., Any]:
    return partial_of(row.function, orders, mode)


def fault(found: float, true: Any, dtype: str, bound: Bound = Bound(), terms: Any = 0) -> str | None:
    """What is wrong with a computed partial, in a few words, or None.

    Only true values that are normal numbers of the dtype have digits to lose; beyond them the found one must be too.
    """
    info = np.finfo(dtype)
    size = abs(true)
    scale = max(size, terms)
    allowed = max(bound.ulps * _ulp(scale, dtype), bound.relative * scale) if scale else 0
    if scale > 2 * size and math.isfinite(found):
        return "digits lost" if abs(mpmath.mpf(float(found)) - true) > allowed else None
    if size < float(info.tiny):
        return None if abs(found) <= 2 * float(info.tiny) else "not small where the true value is below all numbers"
    if size > float(info.max):
        return None if not abs(found) <= 0.99 * float(info.max) else "small where the true value is beyond all numbers"
    if math.isnan(found):
        return "NaN for a number"
    if math.isinf(found):
        return "infinite for a number"
    if found == 0:
        return "zero for a number"
    if (found > 0) != (true > 0):
        return "wrong sign"
    return "digits lost" if abs(mpmath.mpf(float(found)) - true) > allowed else None


def _ulp(true: Any, dtype: str) -> Any:
    """The distance of the numbers of a dtype around a normal number."""
    _, exponent = mpmath.frexp(abs(true))
    return mpmath.ldexp(1, int(exponent) - 1 - np.finfo(dtype).nmant)


def ulps_off(found: float, true: Any, dtype: str) -> float:
    """The error of a computed number in ulp of its dtype."""
    return float(abs(mpmath.mpf(float(found)) - true) / _ulp(true, dtype)) if true else math.inf


@dataclass(frozen=True)
class Points:
    """A program: one partial of one row in one mode at a block of points."""

    row: Row
    dtype: str
    orders: Orders
    mode: str
    points: tuple[tuple[float, ...], ...]

    def __str__(self) -> str:
        return f"{self.row.name} {self.dtype}, partial {self.orders}, {self.mode}, at {self.points[0]} and so on"

    def found(self) -> tuple[Any, Any]:
        """The function's values at the points, and the partials that func computes."""
        padded = [*self.points, *[self.points[-1]] * (BLOCK - len(self.points))]
        operands = [np.array(column, self.dtype) for column in zip(*padded, strict=True)]
        with np.errstate(all="ignore"):
            values = self.row.function(*operands)
            partials = _derived(self.row, self.orders, self.mode)(*operands)
        return np.broadcast_to(values, BLOCK)[: len(self.points)], np.broadcast_to(partials, BLOCK)[: len(self.points)]

    def faults(self) -> Iterator[tuple[str, tuple[float, ...], float, Any]]:
        """(what is wrong, the point, the computed partial, the true one) of each point that differs.

        Points at which the value itself overflows are left out: the partial is that of infinity.
        """
        bound = self.row.bounds[sum(self.orders) - 1]
        for point, value, found in zip(self.points, *self.found(), strict=True):
            true = truth(self.row, self.orders, point)
            if true is None or not np.isfinite(value):
                continue
            terms = self.row.terms.get(self.orders, lambda *point: 0)(*map(mpmath.mpf, point))
            word = fault(float(found), true, self.dtype, bound, terms)
            if word is not None:
                yield word, point, float(found), true


def check(program: Points) -> str | None:
    """The first point of a program at which the partial differs from the truth."""
    for word, point, found, true in program.faults():
        with mpmath.workprec(120):
            error = f"{ulps_off(found, true, program.dtype):.3g} ulp"
            number = mpmath.nstr(true, 17)
        name = f"{program.row.name} {program.orders} {program.dtype}"
        return f"{name}: {word}\nat {point} in {program.mode} mode: {found!r}, right {number} ({error} off)"
    return None


@functools.lru_cache(maxsize=2000)
def _grid(dtype: str, domain: Domain, step: int | None) -> tuple[float, ...]:
    return tuple(float(x) for x in grid(dtype, domain, step))


def part(name: str, rows: Sequence[Row], *, step: int | None = None) -> scope.Part:
    """The part of a machine over rows; `step` is the distance of exponents in the grids."""

    def build(choices: scope.Choices) -> Points:
        row = choices.pick(rows)
        dtype = choices.pick(row.dtypes)
        orders = choices.pick(row.orders())
        mode = choices.pick(row.modes)
        *outer, last = [_grid(dtype, domain, step) for domain in row.domains]
        head = tuple(choices.pick(values) for values in outer)
        points = [(*head, x) for x in last if row.where(*head, x)]
        blocks = [tuple(points[i : i + BLOCK]) for i in range(0, len(points), BLOCK)]
        return Points(row, dtype, orders, mode, choices.pick(blocks))

    return scope.Part(name, build, check)
