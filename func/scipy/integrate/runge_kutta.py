"""Explicit Runge-Kutta methods: the choice of steps, and the steps themselves on traced values.

SciPy's controller chooses the steps by numbers. The differentiable pass takes the accepted steps again, with constant
lengths. Its derivative is that of SciPy's result at this choice of steps: it ignores the error estimate. Only the last
step, which ends at the end of the span, has a length that depends on the span.

In compiled code the controller is a loop in traced code, with SciPy's formulas. It writes the lengths of the accepted
steps into an array of `max_steps` places; a scan over the places takes the steps again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.integrate import DOP853
from scipy.integrate._ivp.rk import RungeKutta

from func.backends.records import Record
from func.control.branches_and_loops import cond, while_loop
from func.control.scanning import scan
from func.interpreters.core import Array, shape_of
from func.numpy import take
from func.transforms.checkpointing import checkpoint
from func.transforms.custom import stop_gradient

RightSide = Callable[[Any, Array], Array]
SAFETY, LEAST, MOST = 0.9, 0.2, 10.0
BLOCK = 64
"""In compiled code: the number of empty places for steps to skip at once."""
LARGE = 2**25
"""The number of saved values from which on the pullback recomputes the stages of its steps."""


class TakenStep(Record):
    """The results of a step: its start, its length, and the coefficients of its interpolant."""

    t: Any
    h: Any
    y: Array
    coefficients: Array


class Method:
    """The formulas of one of SciPy's methods, a subclass of its RungeKutta."""

    def __init__(self, solver: type[RungeKutta]) -> None:
        self.solver = solver
        self.is_dop853 = issubclass(solver, DOP853)
        self.stages = int(solver.n_stages)
        self.exponent = -1 / (solver.error_estimator_order + 1)
        self.rows = len(solver.D) + 3 if self.is_dop853 else solver.P.shape[1]

    def step(self, fun: RightSide, t: Any, y: Array, f: Array, h: Any) -> tuple[Array, Array, list[Array]]:
        """The next state, its derivative, and the derivatives at all stages."""
        slopes = [f]
        for row, c in zip(self.solver.A[1:], self.solver.C[1:], strict=True):
            slopes.append(fun(t + c * h, y + combined(row, slopes) * h))
        new = y + h * combined(self.solver.B, slopes)
        f_new = fun(t + h, new)
        return new, f_new, [*slopes, f_new]

    def chosen(self, *problem: Any) -> Lengths:
        """SciPy's controller in traced code."""
        return chosen_lengths(self, *problem)

    def error_norm(self, slopes: Sequence[Array], h: Any, scale: Array) -> Array:
        """The estimated error relative to the tolerance."""
        count = shape_of(scale)[0]
        if not self.is_dop853:
            return np.sqrt(_squares(combined(self.solver.E, slopes) * h / scale) / count)
        fifth = _squares(combined(self.solver.E5, slopes) / scale)
        third = _squares(combined(self.solver.E3, slopes) / scale)
        both = (fifth + 0.01 * third) * count
        is_zero = both == 0
        return np.where(is_zero, 0.0, np.abs(h) * fifth / np.sqrt(np.where(is_zero, 1.0, both)))

    def interpolant(self, fun: RightSide, t: Any, y: Array, h: Any, new: Array, slopes: Sequence[Array]) -> Array:
        """The coefficients of the polynomial through a step, one row each."""
        if not self.is_dop853:
            return np.stack([combined(column, slopes) for column in self.solver.P.T])
        extended = list(slopes)
        for row, c in zip(self.solver.A_EXTRA, self.solver.C_EXTRA, strict=True):
            extended.append(fun(t + c * h, y + combined(row, extended) * h))
        change = new - y
        first, last = slopes[0], slopes[-1]
        rows = [change, h * first - change, 2 * change - h * (last + first)]
        return np.stack([*rows, *[h * combined(row, extended) for row in self.solver.D]])

    def start(self, fun: RightSide, t: Any, y: Array) -> tuple[Array, ...]:
        """The values that a path carries from step to step, besides the state."""
        return (fun(t, y),)

    def advance(
        self, fun: RightSide, t: Any, y: Array, carried: Any, h: Any, stages: Any, with_interpolant: bool
    ) -> tuple[Array, tuple[Array, ...], Array | None]:
        """The end of a step, its carried values, and the coefficients of its interpolant."""
        new, f_new, slopes = self.step(fun, t, y, carried[0], h)
        return new, (f_new,), self.interpolant(fun, t, y, h, new, slopes) if with_interpolant else None

    def at(self, step: TakenStep, t: Array) -> Array:
        """The interpolant of steps at times: like the times, all fields may have leading axes."""
        x = (t - step.t) / np.where(step.h == 0, 1.0, step.h)
        x, rows = x[..., None], np.moveaxis(step.coefficients, -2, 0)
        total = np.zeros_like(step.y)
        if self.is_dop853:
            for i, row in enumerate(rows[::-1]):
                total = (total + row) * (x if i % 2 == 0 else 1 - x)
            return total + step.y
        for row in rows[::-1]:
            total = (total + row) * x
        return step.y + step.h[..., None] * total


def combined(weights: Any, values: Sequence[Array]) -> Array:
    """The sum of values with these weights, without those of weight zero."""
    total: Any = None
    for weight, value in zip(weights, values, strict=False):
        if weight != 0:
            total = value * float(weight) if total is None else total + value * float(weight)
    return np.zeros_like(values[0]) if total is None else total


def _squares(x: Array) -> Array:
    return np.sum(np.real(x) ** 2 + np.imag(x) ** 2) if x.dtype.kind == "c" else np.sum(x * x)


class Lengths(Record):
    """The accepted steps of a solution."""

    h: Array
    """Their lengths, as numbers; in compiled code zeros follow."""
    count: Any
    """The number of steps; in compiled code a traced integer."""
    attempts: Any
    failed: Any = False
    """Whether the step became too small, or there were more steps than places."""
    stages: Any = ()
    """For an implicit method: (the stages of each step,)."""
    counts: Any = (0, 0, 0)
    """The numbers of evaluations, Jacobians and factorizations."""


def chosen_lengths(
    method: Method,
    fun: RightSide,
    t0: Any,
    bound: Any,
    y0: Array,
    rtol: Any,
    atol: Any,
    options: dict[str, Any],
    max_steps: int,
) -> Lengths:
    """SciPy's controller for explicit methods in traced code.

    Source: E. Hairer, S. P. Nørsett, G. Wanner, Solving Ordinary Differential Equations I, section II.4.
    """
    max_step, start = options.get("max_step", np.inf), options.get("first_step")
    direction = np.where(bound >= t0, 1.0, -1.0)
    f0 = fun(t0, y0)
    if start is None:
        start = first_length(method, fun, t0, bound, y0, f0, direction, rtol, atol, max_step)

    def goes_on(state: Any) -> Array:
        t, count, failed = state[0], state[4], state[6]
        return (direction * (t - bound) < 0) & (count < max_steps) & ~failed

    def attempt(state: Any) -> Any:
        t, y, f, length, count, is_new, failed, attempts, lengths = state
        least = 10 * np.abs(np.nextafter(t, direction * np.inf) - t)
        length = np.where(is_new, np.where(length > max_step, max_step, np.maximum(length, least)), length)
        failed = ~(length >= least)
        ahead = t + length * direction
        ahead = np.where(direction * (ahead - bound) > 0, bound, ahead)
        h = ahead - t
        length = np.abs(h)
        new, f_new, slopes = method.step(fun, t, y, f, h)
        scale = atol + np.maximum(np.abs(y), np.abs(new)) * rtol
        error = method.error_norm(slopes, h, scale)
        accepted = (error < 1) & ~failed
        factor = SAFETY * np.where(error == 0, 1.0, error) ** method.exponent
        growth = np.where(error == 0, MOST, np.minimum(MOST, factor))
        growth = np.where(is_new, growth, np.minimum(1.0, growth))
        # An error that is NaN shrinks the step, too, until it is too small.
        shrink = np.where(factor > LEAST, factor, LEAST)
        lengths[count] = np.where(accepted, h, 0.0)
        return (
            np.where(accepted, ahead, t),
            np.where(accepted, new, y),
            np.where(accepted, f_new, f),
            length * np.where(accepted, growth, shrink),
            count + accepted,
            accepted,
            failed,
            attempts + 1,
            lengths,
        )

    zero, none = np.zeros((), int), np.zeros((), bool)
    state = (t0 * 1.0, y0, f0, start * 1.0, zero, ~none, none, zero, np.zeros(max_steps))
    t, _, _, _, count, _, failed, attempts, lengths = while_loop(goes_on, attempt, state)
    failed = failed | (direction * (t - bound) < 0)
    return Lengths(lengths, count, attempts, failed, (), (2 + attempts * method.stages, zero, zero))


def first_length(
    method: Any,
    fun: RightSide,
    t0: Any,
    bound: Any,
    y0: Array,
    f0: Array,
    direction: Array,
    rtol: Any,
    atol: Any,
    max_step: float,
) -> Array:
    """SciPy's guess of the first step."""
    span, count = np.abs(bound - t0), max(shape_of(y0)[0], 1)

    def size(x: Array) -> Array:
        return np.sqrt(_squares(x / scale) / count)

    scale = atol + np.abs(y0) * rtol
    d0, d1 = size(y0), size(f0)
    is_small = (d0 < 1e-5) | (d1 < 1e-5)
    h0 = np.minimum(np.where(is_small, 1e-6, 0.01 * d0 / np.where(is_small, 1.0, d1)), span)
    f1 = fun(t0 + h0 * direction, y0 + h0 * direction * f0)
    d2 = size(f1 - f0) / np.where(h0 == 0, 1.0, h0)
    is_flat = (d1 <= 1e-15) & (d2 <= 1e-15)
    steepest = np.where(is_flat, 1.0, np.maximum(d1, d2))
    h1 = np.where(is_flat, np.maximum(1e-6, h0 * 1e-3), (0.01 / steepest) ** -method.exponent)
    return np.minimum(np.minimum(100 * h0, h1), np.minimum(span, max_step))


class Path(Record):
    """The steps of a solution, taken on traced values: arrays with an axis for the steps."""

    method: Any
    steps: TakenStep | None
    """None without an interpolant."""
    states: Array
    """The states at the ends of the steps, of shape (steps, n)."""
    last: Array

    def at(self, segments: Array, t: Array) -> Array:
        """The solution at times, each within a segment: of shape (..., n)."""
        assert self.steps is not None
        fields = [self.steps.t, self.steps.h, self.steps.y, self.steps.coefficients]
        return self.method.at(TakenStep(*[take(field, segments, axis=0) for field in fields]), t)


def taken(
    method: Any,
    fun: RightSide,
    t: Array,
    h: Array,
    y0: Array,
    with_interpolant: bool,
    with_states: bool,
    may_be_empty: bool,
    stages: tuple[Array, ...] = (),
) -> Path:
    """Take steps that start at times t and have lengths h; a length of zero means no step."""

    def step(state: tuple[Array, Any], place: tuple[Array, ...]) -> tuple[tuple[Array, Any], Any]:
        (y, carried), (t, h, *known) = state, place
        given = known[0] if known else None
        new, carried, coefficients = method.advance(fun, t, y, carried, h, given, with_interpolant)
        out: list[Any] = [y, new] if with_states or with_interpolant else []
        if with_interpolant:
            out.append(coefficients)
        return (new, carried), out

    def none(state: tuple[Array, Any], place: tuple[Array, ...]) -> tuple[tuple[Array, Any], Any]:
        y, _ = state
        out = [y, y] if with_states or with_interpolant else []
        if with_interpolant:
            out.append(np.zeros((method.rows, *shape_of(y)), y.dtype))
        return state, out

    def one(state: tuple[Array, Any], place: tuple[Array, ...]) -> tuple[tuple[Array, Any], Any]:
        if may_be_empty:
            return cond(place[1] != 0, step, none, state, place)  # type: ignore[no-any-return]
        return step(state, place)

    count, size = shape_of(h)[0], shape_of(y0)[0]
    state, places = (y0, method.start(fun, t[0], y0)), (t, h, *stages)
    if may_be_empty and count > BLOCK:
        (last, _), out = _in_blocks(one, none, state, places)
    elif count * size * (method.stages + 1) * 3 > LARGE:
        (last, _), out = _in_segments(one, state, places)
    else:
        (last, _), out = scan(one, state, places)
    if not out:
        return Path(method, None, last[None], last)
    steps = TakenStep(t, h, out[0], out[2]) if with_interpolant else None
    return Path(method, steps, out[1], last)


def _in_blocks(one: Any, none: Any, state: Any, places: tuple[Array, ...]) -> Any:
    """A scan over places, mostly empty, in blocks; it skips empty blocks.

    The pullback computes the steps of a block again.
    """
    count = shape_of(places[0])[0]
    total = -(-count // BLOCK) * BLOCK
    filled = [np.concatenate([part, np.zeros((total - count, *shape_of(part)[1:]))]) for part in places]

    def idle(state: Any, places: Any) -> Any:
        outs = [np.broadcast_to(part, (BLOCK, *shape_of(part))) for part in none(state, places)[1]]
        return state, outs

    def block(state: Any, places: Any) -> Any:
        return cond(places[1][0] != 0, checkpoint(lambda s, p: scan(one, s, p)), idle, state, places)

    state, outs = scan(block, state, tuple([np.reshape(part, (-1, BLOCK, *shape_of(part)[1:])) for part in filled]))
    return state, [np.reshape(part, (total, *shape_of(part)[2:]))[:count] for part in outs]


def _in_segments(one: Any, state: Any, places: tuple[Array, ...]) -> Any:
    """A scan whose pullback saves the states between segments, and computes each segment again."""
    count = shape_of(places[0])[0]
    length = int(np.ceil(np.sqrt(count)))
    outs: list[Any] = []
    whole = count // length * length

    @checkpoint
    def segment(state: Any, places: Any) -> Any:
        return scan(one, state, places)

    if whole:
        grouped = [np.reshape(part[:whole], (count // length, length, *shape_of(part)[1:])) for part in places]
        state, out = scan(segment, state, tuple(grouped))
        outs.append([np.reshape(part, (whole, *shape_of(part)[2:])) for part in out])
    if whole < count:
        state, out = segment(state, tuple([part[whole:] for part in places]))
        outs.append(out)
    return state, [np.concatenate(parts) for parts in zip(*outs, strict=True)]


def held(value: Any) -> Any:
    """Values as numbers: no derivative passes."""
    return stop_gradient(value)
