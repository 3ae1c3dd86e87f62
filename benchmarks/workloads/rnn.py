"""A recurrent network over 200 steps, by scan and as a Python loop: a long chain of small matrix products."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.contestants import FUNC_JIT, HIPS, JAX_JIT, JAX_UNROLLED
from benchmarks.libraries import Library
from benchmarks.suite import compiled_bars, entry, workload
from benchmarks.workload import Bar

STEPS, INPUTS, HIDDEN = 200, 8, 32


def make_gradient(library: Library, run: Callable[..., Any]) -> Callable[..., Any]:
    """The gradient of the squared error of the last state's output; `run(step, state, sequence)` is the loop."""
    np = library.np

    def loss(parameters: Any, sequence: Any, start: Any, target: Any) -> Any:
        def step(state: Any, value: Any) -> Any:
            activation = value @ parameters["input"] + state @ parameters["recurrent"] + parameters["bias"]
            return np.tanh(activation)

        return np.mean((run(step, start, sequence) @ parameters["output"] - target) ** 2)

    return library.grad(loss)


def make_loop(library: Library) -> Callable[..., Any]:
    """As a Python loop."""

    def run(step: Callable[..., Any], state: Any, sequence: Any) -> Any:
        for value in sequence:
            state = step(state, value)
        return state

    return make_gradient(library, run)


def make_scan(library: Library) -> Callable[..., Any]:
    """By the library's scan, which wants an output of every step as well."""

    def run(step: Callable[..., Any], state: Any, sequence: Any) -> Any:
        def both(state: Any, value: Any) -> Any:
            state = step(state, value)
            return state, library.np.sum(value)

        return library.scan(both, state, sequence)[0]

    return make_gradient(library, run)


def data() -> tuple[Any, ...]:
    """Parameters of a network that remembers, one sequence, a zero state, a target."""
    generator = np.random.default_rng(0)
    orthogonal, _ = np.linalg.qr(generator.normal(size=(HIDDEN, HIDDEN)))
    parameters = {
        "input": 0.1 * generator.normal(size=(INPUTS, HIDDEN)),
        "recurrent": orthogonal,
        "bias": 0.1 * generator.normal(size=HIDDEN),
        "output": generator.normal(size=(HIDDEN, INPUTS)) / HIDDEN**0.5,
    }
    return parameters, generator.normal(size=(STEPS, INPUTS)), np.zeros(HIDDEN), generator.normal(size=INPUTS)


def by_hand(parameters: Any, sequence: Any, start: Any, target: Any) -> Any:
    """Backpropagation through time; the products that sum over the steps are done once, at the end."""
    states = np.empty((STEPS + 1, HIDDEN))
    states[0] = start
    driven = sequence @ parameters["input"] + parameters["bias"]
    for step in range(STEPS):
        states[step + 1] = np.tanh(driven[step] + states[step] @ parameters["recurrent"])
    ct_error = (states[-1] @ parameters["output"] - target) * (2 / INPUTS)
    slopes = 1 - states[1:] * states[1:]
    ct_sums = np.empty((STEPS, HIDDEN))
    ct_state = parameters["output"] @ ct_error
    for step in reversed(range(STEPS)):
        ct_sums[step] = ct_state * slopes[step]
        ct_state = parameters["recurrent"] @ ct_sums[step]
    return {
        "input": sequence.T @ ct_sums,
        "recurrent": states[:-1].T @ ct_sums,
        "bias": ct_sums.sum(axis=0),
        "output": states[-1][:, None] * ct_error,
    }


SIZES = f"{STEPS} steps, {INPUTS} inputs, {HIDDEN} hidden, float64"
SCAN = workload(
    "rnn scan",
    f"gradient of all parameters of an RNN by scan (where a library has one), {SIZES}",
    make_scan,
    data,
    compiled_bars(against_jax=1.5),
    by_hand,
)
LOOP = workload(
    "rnn loop",
    f"gradient of all parameters of an RNN written as a Python loop (jax.jit: by scan), {SIZES}",
    make_loop,
    data,
    (*compiled_bars(against_jax=1.5), Bar(HIPS, 0.4), Bar(JAX_UNROLLED, 0.05, FUNC_JIT, "first call")),
    by_hand,
    others={JAX_JIT: entry(JAX_JIT, make_scan, data), JAX_UNROLLED: entry(JAX_UNROLLED, make_loop, data)},
    slow=(JAX_UNROLLED,),
)
