"""The imperative interface: a training step of a small MLP, and backward over a chain of small operations."""

from typing import Any

import numpy as np

from benchmarks.contestants import FUNC, TORCH
from benchmarks.workload import Bar, Call, Workload

STEPS = 50


def mlp_data() -> dict[str, Any]:
    """Parameters of 64-32-10, a batch of 16 and its one-hot labels."""
    rng = np.random.default_rng(0)
    return {
        "w1": rng.normal(size=(64, 32)) / 8,
        "b1": np.zeros(32),
        "w2": rng.normal(size=(32, 10)) / 6,
        "b2": np.zeros(10),
        "x": rng.normal(size=(16, 64)),
        "y": np.eye(10)[rng.integers(0, 10, 16)],
    }


def func_step(func: Any) -> Call:
    """Forward, backward, update, zero."""
    data = mlp_data()
    parameters = [func.tensor(data[name], requires_grad=True) for name in ("w1", "b1", "w2", "b2")]
    w1, b1, w2, b2 = parameters
    x, y = data["x"], data["y"]

    def step() -> Any:
        hidden = np.tanh(x @ w1 + b1)
        loss = np.mean((hidden @ w2 + b2 - y) ** 2)
        loss.backward()
        with func.no_grad():
            for p in parameters:
                p -= 0.0 * p.grad
        gradient = w1.grad
        for p in parameters:
            p.grad = None
        return gradient.numpy()

    return step


def torch_step(torch: Any) -> Call:
    """The same in torch."""
    data = {name: torch.from_numpy(value) for name, value in mlp_data().items()}
    parameters = [data[name].requires_grad_(True) for name in ("w1", "b1", "w2", "b2")]
    w1, b1, w2, b2 = parameters
    x, y = data["x"], data["y"]

    def step() -> Any:
        hidden = torch.tanh(x @ w1 + b1)
        loss = torch.mean((hidden @ w2 + b2 - y) ** 2)
        loss.backward()
        with torch.no_grad():
            for p in parameters:
                p -= 0.0 * p.grad
        gradient = w1.grad
        for p in parameters:
            p.grad = None
        return gradient

    return step


def func_chain(func: Any) -> Call:
    """backward alone, over a retained graph."""
    x = func.tensor(np.linspace(1.6, 2.4, 10), requires_grad=True)
    y = x
    for _ in range(STEPS):
        y = np.sin(y) * y
    total = np.sum(y)

    def backward() -> Any:
        x.grad = None
        total.backward(retain_graph=True)
        return x.grad.numpy()

    return backward


def torch_chain(torch: Any) -> Call:
    """The same in torch."""
    x = torch.linspace(1.6, 2.4, 10, dtype=torch.float64, requires_grad=True)
    y = x
    for _ in range(STEPS):
        y = torch.sin(y) * y
    total = torch.sum(y)

    def backward() -> Any:
        x.grad = None
        total.backward(retain_graph=True)
        return x.grad

    return backward


TRAINING_STEP = Workload(
    "training step",
    "imperative training step of an MLP 64-32-10, batch 16, float64",
    {FUNC: func_step, TORCH: torch_step},
    bars=(Bar(TORCH, 1.0),),
)
BACKWARD = Workload(
    "backward",
    "backward over a graph of 100 operations on 10 elements, float64",
    {FUNC: func_chain, TORCH: torch_chain},
    bars=(Bar(TORCH, 0.6),),
)
