"""Partial derivatives at all magnitudes against mpmath: grids, truths, errors, and the part of a machine made of rows.

A row names a function of func, the same function for mpmath numbers, its domain and its bounds. `part(name, rows)` is
the part of a machine that compares first and second partials, in each mode and precision, on blocks of points.

    Row("tanh", np.tanh, mpmath.tanh, domains=(Domain(near=(0.0, 19.0)),))
    Row("beta", special.beta, mpmath.beta, domains=(Domain(0.0), Domain(0.0)), bounds=relative_bounds(1e-10, 1e-8))
"""

from __future__ import annotations

import cmath
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
    points: tuple[complex, ...] = ()
    """All points instead of a grid; those that overflow in a narrower dtype are left out."""


@dataclass(frozen=True)
class Bound:
    """The error that a partial of one order may have: some ulp of its dtype, or a relative error, whichever is
    larger.
    """

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
    condition: Callable[..., Any] = lambda *point: 1
    """The condition number at a point, by which bounds are multiplied."""
    inherits: str = ""
    """The reason for an error of NumPy's value. Partials may have the same error, or none if it has another size than
    the true value.
    """

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
    if domain.points:
        with np.errstate(over="ignore", under="ignore"):
            exact = np.array(domain.points, dtype)
        return exact[np.isfinite(exact) & ~_is_subnormal(exact.real) & ~_is_subnormal(exact.imag)]
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


def _is_subnormal(x: np.ndarray[Any, Any]) -> Any:
    return (x != 0) & (np.abs(x) < np.finfo(x.dtype).tiny)


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


def exactly(x: complex) -> Any:
    """A number of mpmath; a zero part of a complex one is tiny instead, on the side that its sign tells."""
    if not isinstance(x, complex):
        return mpmath.mpf(x)
    parts = [mpmath.mpf(part) if part else math.copysign(1.0, part) * SIDE for part in (x.real, x.imag)]
    return mpmath.mpc(*parts)


SIDE = mpmath.ldexp(1, -6000)


@functools.lru_cache(maxsize=200_000)
def _truth(row: Row, orders: Orders, point: tuple[str, ...]) -> Any:
    closed = row.closed.get(orders)
    numbers = [exactly(complex(x) if "j" in x else float(x)) for x in point]
    if closed is not None:
        return settled(lambda: closed(*numbers))
    return settled(lambda: difference(row.exact, numbers, orders))


def truth(row: Row, orders: Orders, point: Sequence[complex]) -> Any:
    """The true partial at a point as an mpmath number, or None where it is not known."""
    return _truth(row, orders, tuple([repr(x) for x in point]))


@functools.lru_cache(maxsize=20_000)
def _true_value(row: Row, point: tuple[float, ...]) -> Any:
    numbers = [exactly(x) for x in point]
    return settled(lambda: row.exact(*numbers))


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


def fault(
    found: complex,
    true: Any,
    dtype: str,
    bound: Bound = Bound(),
    terms: Any = 0,
    inherited: Any = 0,
    condition: Any = 1,
) -> str | None:
    """The fault of a computed partial, in a few words, or None.

    Only true values that are normal numbers of the dtype have digits to lose; beyond them the found one must be too.
    Complex numbers are measured by their modulus. `inherited` is the relative error of the value.
    """
    info = np.finfo(dtype)
    size = abs(true)
    scale = max(size, terms)
    allowed = max(bound.ulps * _ulp(scale, dtype), bound.relative * scale) * condition if scale else 0
    allowed += 4 * inherited * scale
    if scale > 2 * size and cmath.isfinite(found):
        return "digits lost" if abs(_number(found) - true) > max(allowed, 2 * float(info.tiny)) else None
    if size < float(info.tiny):
        return None if abs(found) <= 2 * float(info.tiny) else "not small where the true value is below all numbers"
    if size > float(info.max):
        return None if not abs(found) <= 0.99 * float(info.max) else "small where the true value is beyond all numbers"
    if cmath.isnan(found):
        return "NaN for a number"
    if cmath.isinf(found):
        return "infinite for a number"
    if found == 0:
        return "zero for a number"
    off = abs(_number(found) - true)
    if (found > 0) != (true > 0) if isinstance(found, float) else off > size:
        return "wrong sign"
    return "digits lost" if off > allowed else None


def _number(x: complex) -> Any:
    return mpmath.mpc(x.real, x.imag) if isinstance(x, complex) else mpmath.mpf(x)


def _ulp(true: Any, dtype: str) -> Any:
    """The distance of the numbers of a dtype around a normal number."""
    _, exponent = mpmath.frexp(abs(true))
    return mpmath.ldexp(1, int(exponent) - 1 - np.finfo(dtype).nmant)


def ulps_off(found: complex, true: Any, dtype: str) -> float:
    """The error of a computed number in ulp of its dtype."""
    return float(abs(_number(found) - true) / _ulp(true, dtype)) if true else math.inf


@dataclass(frozen=True)
class Points:
    """A program: one partial of one row in one mode at a block of points."""

    row: Row
    dtype: str
    orders: Orders
    mode: str
    points: tuple[tuple[complex, ...], ...]

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

    def faults(self) -> Iterator[tuple[str, tuple[complex, ...], complex, Any]]:
        """(the fault, the point, the computed partial, the true one) of each point that differs.

        Points at which the value itself overflows are left out: the partial is that of infinity.
        """
        bound = self.row.bounds[sum(self.orders) - 1]
        for point, value, found in zip(self.points, *self.found(), strict=True):
            true = truth(self.row, self.orders, point)
            if true is None or not np.isfinite(value):
                continue
            inherited = self.error_of_value(point, value)
            if inherited > 0.5:
                continue
            terms = self.row.terms.get(self.orders, lambda *point: 0)(*map(exactly, point))
            number = complex(found) if np.iscomplexobj(found) else float(found)
            if self.mode != "forward":
                number = number.conjugate()  # pullbacks are adjoint
            condition = self.row.condition(*map(exactly, point))
            word = fault(number, true, self.dtype, bound, terms, inherited, condition)
            if word is not None:
                yield word, point, number, true

    def error_of_value(self, point: tuple[complex, ...], value: Any) -> Any:
        """The relative error of NumPy's value where the row says that partials inherit it."""
        if not self.row.inherits:
            return 0
        true = _true_value(self.row, point)
        return abs(_number(value.item()) - true) / abs(true) if true else 0


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
def _grid(dtype: str, domain: Domain, step: int | None) -> tuple[complex, ...]:
    return tuple(grid(dtype, domain, step).tolist())


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
