"""The gradient of a recurrent network written as a Python loop: 200 steps of small products."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.contestants import BY_HAND, FUNC_JIT, HIPS, JAX_JIT
from benchmarks.workload import Bar, Call, Workload
from benchmarks.workloads.scalar_gradient import gradient_entries

STEPS, INPUTS, HIDDEN = 200, 8, 32


def make_loss(np: Any) -> Callable[..., Any]:
    """The squared error of a linear read-out of the last state."""

    def loss(parameters: Any, sequence: Any, state: Any, target: Any) -> Any:
        for value in sequence:
            activation = value @ parameters["input"] + state @ parameters["recurrent"] + parameters["bias"]
            state = np.tanh(activation)
        return np.mean((state @ parameters["output"] - target) ** 2)

    return loss


def make_data() -> tuple[Any, ...]:
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


def by_hand(_: Any) -> Call:
    """Backpropagation through time; the products that sum over the steps are done once, at the end."""
    parameters, sequence, start, target = make_data()

    def gradient() -> Any:
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

    return gradient


WORKLOAD = Workload(
    "rnn",
    f"gradient of all parameters of an RNN, {STEPS} steps, {INPUTS} inputs, {HIDDEN} hidden, float64",
    {**gradient_entries(make_loss, make_data), BY_HAND: by_hand},
    bars=(Bar(HIPS, 0.4), Bar(JAX_JIT, 0.05, FUNC_JIT, "first call")),
    slow=frozenset({JAX_JIT}),
)
