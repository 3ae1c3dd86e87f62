"""The method Radau: the implicit Runge-Kutta formula of order 5, with its controller in traced code and its derivative.

A step of length h from (t, y) has the stages Z with Zᵢ = h Σⱼ Aᵢⱼ f(t + cⱼ h, y + Zⱼ), and ends at y + Z₃. The stages
are an implicit function of t, h, y and the parameters of f. So the derivative of a step takes one linear system and
ignores the iteration that found the stages. Step lengths are numbers, as for the explicit methods.

In compiled code the controller is a loop with SciPy's formulas: its simplified Newton iteration, its reuse of factors,
its prediction of lengths.

Source: E. Hairer, G. Wanner, Solving Ordinary Differential Equations II, sections IV.8 and IV.3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.integrate._ivp import radau as formulas

from func.control.branches_and_loops import cond, while_loop
from func.interpreters.core import Array, shape_of
from func.interpreters.primitives.linalg.inverses import factored_solve, lu_factors
from func.scipy.integrate.runge_kutta import LEAST, MOST, SAFETY, Lengths, RightSide, TakenStep, first_length
from func.transforms.implicit import Problem, solution
from func.transforms.jacobians import jacfwd

C, E, T, TI = formulas.C, formulas.E, formulas.T, formulas.TI
MU_REAL, MU_COMPLEX = formulas.MU_REAL, formulas.MU_COMPLEX
ITERATIONS: int = formulas.NEWTON_MAXITER
ROOT = 6**0.5
A = np.array(
    [
        [(88 - 7 * ROOT) / 360, (296 - 169 * ROOT) / 1800, (-2 + 3 * ROOT) / 225],
        [(296 + 169 * ROOT) / 1800, (88 + 7 * ROOT) / 360, (-2 - 3 * ROOT) / 225],
        [(16 - ROOT) / 36, (16 + ROOT) / 36, 1 / 9],
    ]
)


class Jacobian(NamedTuple):
    """The source of ∂f/∂y for the controller."""

    at: Callable[[Any, Array], Array]
    is_constant: bool


class State(NamedTuple):
    """The state of the controller between attempts."""

    t: Any
    y: Array
    f: Array
    length: Any
    """For the next attempt."""
    before: Any
    """The initial length of the previous step; 0 if unknown."""
    error_before: Any
    start_length: Any
    """The initial length of this step."""
    is_new: Any
    is_rejected: Any
    failed: Any
    jacobian: Array
    is_current: Any
    """Whether the Jacobian is that of this step's start."""
    wants_jacobian: Any
    wants_factors: Any
    factors: tuple[Array, Array, Array, Array]
    last: tuple[Any, Any, Array, Array]
    """The last accepted step (start, length, state, coefficients), which predicts the stages."""
    counts: Any
    """The counts of accepted steps, attempts, evaluations of f, Jacobians and factorizations."""
    lengths: Array
    stages: Array


class Stages(NamedTuple):
    """The result of the Newton iteration of an attempt."""

    w: Array
    z: Array
    size: Any
    rate: Any
    converged: Any
    goes_on: Any
    count: Any


def _size(x: Array) -> Array:
    """SciPy's norm: the root of the mean square."""
    return np.sqrt(np.sum(x * x) / max(int(np.prod(shape_of(x))), 1))


def _solve(factors: tuple[Array, Array], side: Array) -> Array:
    packed, pivots = factors
    return factored_solve(packed, packed, pivots, np.expand_dims(side, 1), adjoint=False)[:, 0]


class Collocation:
    """The formulas of Radau, as `Method` has those of the explicit methods."""

    exponent = -1 / 4
    rows = 3
    stages = 3

    def jacobian(self, fun: RightSide, given: Any) -> Jacobian:
        """∂f/∂y: the caller's function or matrix, or func's derivative."""
        if given is None:
            return Jacobian(lambda t, y: jacfwd(lambda y: fun(t, y))(y), False)
        if callable(given):
            return Jacobian(lambda t, y: np.asarray(given(t, y)) * 1.0, False)
        dense = given.toarray() if hasattr(given, "toarray") else given
        return Jacobian(lambda t, y: np.asarray(dense) * 1.0, True)

    def start(self, fun: RightSide, t: Any, y: Array) -> tuple[Array, ...]:
        """The values that a path carries from step to step, besides the state."""
        return ()

    def advance(
        self, fun: RightSide, t: Any, y: Array, carried: Any, h: Any, stages: Array, with_interpolant: bool
    ) -> tuple[Array, tuple[Array, ...], Array | None]:
        """The end of a step whose stages are known as numbers, and the coefficients of its interpolant."""
        problem = Problem(_collocation, _as_known, None, (stages,), (fun, t, h, y), jacobian=_matrix)
        z, _ = solution(problem)
        return y + z[2], (), formulas.P.T @ z if with_interpolant else None

    def at(self, step: TakenStep, t: Array) -> Array:
        """The interpolant of steps at times: like the times, all fields may have leading axes."""
        x = (t - step.t) / np.where(step.h == 0, 1.0, step.h)
        x, rows = x[..., None], np.moveaxis(step.coefficients, -2, 0)
        total = np.zeros_like(step.y)
        for row in rows[::-1]:
            total = (total + row) * x
        return step.y + total

    def chosen(
        self,
        fun: RightSide,
        t0: Any,
        bound: Any,
        y0: Array,
        rtol: Any,
        atol: Any,
        options: dict[str, Any],
        max_steps: int,
    ) -> Lengths:
        """SciPy's controller in traced code."""
        if y0.dtype.kind == "c":
            raise ValueError("Radau solves real problems; BDF and the explicit methods take complex states")
        controller = _Controller(self, fun, t0, bound, rtol, atol, options, max_steps)
        final = State(*while_loop(controller.goes_on, controller.attempt, tuple(controller.initial(t0, y0))))
        count, attempts, nfev, njev, nlu = [final.counts[i] for i in range(5)]
        failed = final.failed | (controller.direction * (final.t - bound) < 0)
        return Lengths(final.lengths, count, attempts, failed, (final.stages,), (nfev, njev, nlu))


def _collocation(z: Array, aux: Any, fun: RightSide, t: Any, h: Any, y: Array) -> Array:
    """The equation of the stages."""
    slopes = np.stack([fun(t + h * c, y + z[i]) for i, c in enumerate(C)])
    return z - h * (A @ slopes)


def _matrix(z: Array, aux: Any, fun: RightSide, t: Any, h: Any, y: Array) -> Array:
    """The derivative of the equation: I - h A ⊗ ∂f/∂y at the stages."""
    size = shape_of(y)[0]
    columns = [jacfwd(lambda y, i=i: fun(t + h * C[i], y))(y + z[i]) for i in range(3)]
    blocks = [np.concatenate([columns[j] * (-A[i, j] * h) for j in range(3)], axis=1) for i in range(3)]
    return np.eye(3 * size) + np.concatenate(blocks, axis=0)


def _as_known(stages: Array, *params: Any) -> tuple[Array, tuple[()]]:
    return stages, ()


class _Controller:
    """The choice of lengths: the methods are the parts of one loop in traced code."""

    def __init__(
        self,
        method: Collocation,
        fun: RightSide,
        t0: Any,
        bound: Any,
        rtol: Any,
        atol: Any,
        options: dict[str, Any],
        max_steps: int,
    ) -> None:
        self.method, self.fun, self.bound, self.rtol, self.atol = method, fun, bound, rtol, atol
        self.direction = np.where(bound >= t0, 1.0, -1.0)
        self.max_step, self.first = options.get("max_step", np.inf), options.get("first_step")
        self.jacobian = method.jacobian(fun, options.get("jac"))
        self.max_steps = max_steps
        self.tolerance = np.maximum(10 * np.finfo(float).eps / rtol, np.minimum(0.03, rtol**0.5))

    def initial(self, t0: Any, y0: Array) -> State:
        """The state before the first step."""
        size, false = shape_of(y0)[0], np.zeros((), bool)
        f0 = self.fun(t0, y0)
        length = self.first
        if length is None:
            given = (self.method, self.fun, t0, self.bound, y0, f0, self.direction, self.rtol, self.atol, self.max_step)
            length = first_length(*given)
        empty = (np.zeros((size, size)), np.zeros(size, np.int32))
        factors = (*empty, empty[0].astype(complex), empty[1])
        zero, known = np.zeros(()), [0, 0, 2 if self.first is None else 1, int(not self.jacobian.is_constant), 0]
        return State(
            t=t0 * 1.0, y=y0, f=f0, length=length * 1.0, before=zero, error_before=zero, start_length=zero,
            is_new=~false, is_rejected=false, failed=false, jacobian=self.jacobian.at(t0, y0), is_current=~false,
            wants_jacobian=false, wants_factors=~false, factors=factors,
            last=(zero, zero, y0, np.zeros((3, size))), counts=np.array(known),
            lengths=np.zeros(self.max_steps), stages=np.zeros((self.max_steps, 3, size)),
        )  # fmt: skip

    def goes_on(self, state: Any) -> Array:
        state = State(*state)
        is_before = self.direction * (state.t - self.bound) < 0
        return is_before & (state.counts[0] < self.max_steps) & ~state.failed

    def attempt(self, state: Any) -> tuple[Any, ...]:
        """One attempt of a step: accepted, rejected, or without stages."""
        state = State(*state)
        direction = self.direction
        least = 10 * np.abs(np.nextafter(state.t, direction * np.inf) - state.t)
        length, before = self._begun(state, least)
        start_length = np.where(state.is_new, state.length, state.start_length)
        failed = ~(length >= least)
        ahead = state.t + length * direction
        ahead = np.where(direction * (ahead - self.bound) > 0, self.bound, ahead)
        h = ahead - state.t
        length = np.abs(h)
        jacobian, factors = self._matrices(state, h)
        found = self._stages(state, h, factors)
        new = state.y + found.z[2]
        error, extra = self._error(state, h, new, found, factors)
        is_done = found.converged & ~(error > 1) & ~failed
        safety = SAFETY * (2 * ITERATIONS + 1) / (2 * ITERATIONS + found.count)
        factor = safety * _predicted(length, before, error, state.error_before)
        # After a failure to find stages, the step is tried with a new Jacobian, and then with half the length.
        again = ~found.converged & ~state.is_current
        shrunk = np.where(
            found.converged, length * np.where(factor > LEAST, factor, LEAST), length * np.where(again, 1.0, 0.5)
        )
        is_bad = np.bool_(not self.jacobian.is_constant) & (found.count > 2) & (found.rate > 1e-3)
        growth = np.where(factor < MOST, factor, MOST)
        keeps = is_done & ~is_bad & (growth < 1.2)
        f = cond(is_done, self.fun, lambda t, y: state.f, ahead, new)
        place = state.counts[0]
        lengths, stages = state.lengths, state.stages
        lengths[place] = np.where(is_done, h, 0.0)
        stages[place] = np.where(is_done, found.z, 0.0)
        wants_jacobian = np.where(is_done, is_bad, again)
        counted = np.stack([is_done * 1, 1, 3 * found.count + is_done + extra, wants_jacobian * 1, 0])
        counted = counted + np.array([0, 0, 0, 0, 2]) * state.wants_factors
        last = (state.t, h, state.y, formulas.P.T @ found.z)
        return tuple(
            State(
                t=np.where(is_done, ahead, state.t),
                y=np.where(is_done, new, state.y),
                f=f,
                length=np.where(is_done, length * np.where(keeps, 1.0, growth), shrunk),
                before=np.where(is_done, start_length, before),
                error_before=np.where(is_done, error, state.error_before),
                start_length=start_length,
                is_new=is_done,
                is_rejected=~is_done & (state.is_rejected | found.converged),
                failed=failed,
                jacobian=jacobian,
                is_current=np.where(is_done, is_bad | self.jacobian.is_constant, state.is_current | again),
                wants_jacobian=wants_jacobian,
                wants_factors=~keeps,
                factors=factors,
                last=tuple([np.where(is_done, a, b) for a, b in zip(last, state.last, strict=True)]),
                counts=state.counts + counted,
                lengths=lengths,
                stages=stages,
            )
        )

    def _begun(self, state: State, least: Any) -> tuple[Any, Any]:
        """The length of an attempt within its bounds, and the previous length, unless the bounds change it."""
        is_long, is_short = state.length > self.max_step, state.length < least
        bounded = np.where(is_long, self.max_step, np.where(is_short, least, state.length))
        before = np.where(state.is_new & (is_long | is_short), 0.0, state.before)
        return np.where(state.is_new, bounded, state.length), before

    def _matrices(self, state: State, h: Any) -> tuple[Array, Any]:
        """The Jacobian and the factors of this attempt: new ones if needed."""
        jacobian = state.jacobian
        if not self.jacobian.is_constant:
            jacobian = cond(
                state.wants_jacobian, lambda t, y, old: self.jacobian.at(t, y), lambda t, y, old: old,
                state.t, state.y, jacobian,
            )  # fmt: skip
        unit = np.eye(shape_of(state.y)[0])

        def new(h: Any, jacobian: Array, old: Any) -> Any:
            return (*lu_factors(MU_REAL / h * unit - jacobian), *lu_factors(MU_COMPLEX / h * unit - jacobian))

        return jacobian, cond(state.wants_factors, new, lambda h, jacobian, old: old, h, jacobian, state.factors)

    def _stages(self, state: State, h: Any, factors: Any) -> Stages:
        """SciPy's simplified Newton iteration, from the stages that the last step predicts."""
        start, step, origin, rows = state.last
        times = state.t + C * h
        predicted = self.method.at(TakenStep(start, step, origin, rows), times) - state.y
        z = np.where(step == 0, 0.0, predicted)
        scale = self.atol + np.abs(state.y) * self.rtol
        real, imaginary = MU_REAL / h, MU_COMPLEX / h

        def goes_on(found: Any) -> Array:
            found = Stages(*found)
            return found.goes_on & (found.count < ITERATIONS)

        def improve(found: Any) -> tuple[Any, ...]:
            w, z, before, rate, _, _, count = found
            slopes = np.stack([self.fun(times[i], state.y + z[i]) for i in range(3)])
            first = _solve(factors[:2], TI[0] @ slopes - real * w[0])
            second = _solve(factors[2:], (TI[1] + 1j * TI[2]) @ slopes - imaginary * (w[1] + 1j * w[2]))
            move = np.stack([first, np.real(second), np.imag(second)])
            size, is_first = _size(move / scale), count == 0
            rate = np.where(is_first, 0.0, size / np.where(is_first, 1.0, before))
            left = np.where(rate < 1, 1 - rate, 1.0)
            is_lost = ~is_first & ((rate >= 1) | (rate ** (ITERATIONS - count) / left * size > self.tolerance))
            good = np.all(np.isfinite(slopes)) & ~is_lost
            w = np.where(good, w + move, w)
            z = np.where(good, T @ w, z)
            done = good & ((size == 0) | (~is_first & (rate / left * size < self.tolerance)))
            return w, z, size, rate, done, good & ~done, count + 1

        zero, false = np.zeros(()), np.zeros((), bool)
        begun = Stages(TI @ z, z, zero, zero, false, ~false, np.zeros((), int))
        return Stages(*while_loop(goes_on, improve, tuple(begun)))

    def _error(self, state: State, h: Any, new: Array, found: Stages, factors: Any) -> tuple[Any, Any]:
        """(estimated error relative to the tolerance, number of evaluations)."""
        change = E @ found.z / h
        scale = self.atol + np.maximum(np.abs(state.y), np.abs(new)) * self.rtol
        error = _solve(factors[:2], state.f + change)
        size = _size(error / scale)
        is_second = state.is_rejected & (size > 1) & found.converged

        def better(error: Array) -> Array:
            return _size(_solve(factors[:2], self.fun(state.t, state.y + error) + change) / scale)

        return cond(is_second, better, lambda error: size, error), is_second * 1


def _predicted(length: Any, before: Any, error: Any, error_before: Any) -> Array:
    """The factor by which the length may change, from the errors of two steps (K. Gustafsson's controller)."""
    is_known = (before > 0) & (error != 0)
    ratio = np.where(is_known, error_before / np.where(error == 0, 1.0, error), 1.0) ** 0.25
    multiplier = np.where(is_known, length / np.where(is_known, before, 1.0) * ratio, 1.0)
    is_exact = error == 0
    return np.where(is_exact, np.inf, np.minimum(1.0, multiplier) * np.where(is_exact, 1.0, error) ** -0.25)
