"""The gradient through 200 Runge-Kutta steps of predators and prey, by scan and as a Python loop."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.contestants import JAX_JIT, JAX_UNROLLED
from benchmarks.libraries import Library
from benchmarks.suite import compiled_bars, entry, workload

STEPS, WIDTH = 200, 0.05


def make_step(np: Any, parameters: Any) -> Callable[[Any], Any]:
    """One step of the classical fourth-order method; x' = a x - b x y, y' = c x y - d y."""

    def field(state: Any) -> Any:
        prey, predators = state[0], state[1]
        meetings = prey * predators
        change = (
            parameters[0] * prey - parameters[1] * meetings,
            parameters[2] * meetings - parameters[3] * predators,
        )
        return np.stack(change)

    def step(state: Any) -> Any:
        k1 = field(state)
        k2 = field(state + 0.5 * WIDTH * k1)
        k3 = field(state + 0.5 * WIDTH * k2)
        k4 = field(state + WIDTH * k3)
        return state + WIDTH / 6 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)

    return step


def make_loop(library: Library) -> Callable[..., Any]:
    """The gradient of the squared distance to the observed states, with a Python loop."""

    def loss(parameters: Any, state: Any, observed: Any) -> Any:
        step, total = make_step(library.np, parameters), 0.0
        for values in observed:
            state = step(state)
            total = total + library.np.sum((state - values) ** 2)
        return total / STEPS

    return library.value_and_grad(loss)


def make_scan(library: Library) -> Callable[..., Any]:
    """The same by the library's scan."""

    def loss(parameters: Any, start: Any, observed: Any) -> Any:
        step = make_step(library.np, parameters)

        def compared(state: Any, values: Any) -> Any:
            state = step(state)
            return state, library.np.sum((state - values) ** 2)

        return library.np.sum(library.scan(compared, start, observed)[1]) / STEPS

    return library.value_and_grad(loss)


def data() -> tuple[Any, ...]:
    """Rates, the first state, and noisy observations of other rates."""
    generator = np.random.default_rng(0)
    step, state, observed = make_step(np, np.array([1.1, 0.4, 0.1, 0.4])), np.array([10.0, 5.0]), []
    for _ in range(STEPS):
        state = step(state)
        observed.append(state + 0.1 * generator.normal(size=2))
    return np.array([1.0, 0.35, 0.12, 0.45]), np.array([10.0, 5.0]), np.array(observed)


def by_hand(parameters: Any, start: Any, observed: Any) -> Any:
    """The states forward; then backward through the four stages of each step, in Python's own numbers."""
    a, b, c, d = parameters.tolist()
    state, states, total = start.tolist(), [], 0.0
    for values in observed.tolist():
        states.append(state)
        state = _stages(a, b, c, d, state)[1]
        total += (state[0] - values[0]) ** 2 + (state[1] - values[1]) ** 2
    ends = [*states[1:], state]
    ct, gradient = [0.0, 0.0], [0.0] * 4
    for begin, end, values in zip(reversed(states), reversed(ends), reversed(observed.tolist()), strict=True):
        ct = [ct[i] + 2 * (end[i] - values[i]) / STEPS for i in (0, 1)]
        ct = _pullback(a, b, c, d, begin, ct, gradient)
    return np.float64(total / STEPS), np.array(gradient)


def _stages(a: float, b: float, c: float, d: float, state: list[float]) -> tuple[list[Any], list[float]]:
    """The points at which a step evaluates the field, and the next state."""
    points, sums, point = [], [0.0, 0.0], state
    for ahead, weight in ((0.5, 1), (0.5, 2), (1.0, 2), (0.0, 1)):
        points.append(point)
        x, y = point
        slope = (a * x - b * x * y, c * x * y - d * y)
        sums = [sums[i] + weight * slope[i] for i in (0, 1)]
        point = [state[i] + ahead * WIDTH * slope[i] for i in (0, 1)]
    return points, [state[i] + WIDTH / 6 * sums[i] for i in (0, 1)]


def _pullback(
    a: float, b: float, c: float, d: float, state: list[float], ct: list[float], gradient: list[float]
) -> list[float]:
    """The cotangent of a step's first state; adds to the gradient by the rates."""
    points, _ = _stages(a, b, c, d, state)
    ct_state, ct_point = list(ct), [0.0, 0.0]
    for (x, y), ahead, weight in zip(reversed(points), (0.0, 1.0, 0.5, 0.5), (1, 2, 2, 1), strict=True):
        u, v = (WIDTH * (weight / 6 * ct[i] + ahead * ct_point[i]) for i in (0, 1))
        for number, part in enumerate((u * x, -u * x * y, v * x * y, -v * y)):
            gradient[number] += part
        ct_point = [u * (a - b * y) + v * c * y, -u * b * x + v * (c * x - d)]
        ct_state = [ct_state[i] + ct_point[i] for i in (0, 1)]
    return ct_state


SCAN = workload(
    "ode scan",
    f"value_and_grad through {STEPS} Runge-Kutta steps of Lotka-Volterra by scan (where a library has one), float64",
    make_scan,
    data,
    compiled_bars(against_jax=2),
    by_hand,
)
LOOP = workload(
    "ode loop",
    f"value_and_grad through {STEPS} Runge-Kutta steps of Lotka-Volterra in a Python loop (jax.jit: by scan), float64",
    make_loop,
    data,
    compiled_bars(against_jax=2),
    by_hand,
    others={JAX_JIT: entry(JAX_JIT, make_scan, data), JAX_UNROLLED: entry(JAX_UNROLLED, make_loop, data)},
    slow=(JAX_UNROLLED,),
)
