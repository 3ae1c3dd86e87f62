"""
Differentiate through training: MAML
====================================

Each task is a sine curve with its own amplitude and phase, observed at ten points. Model-agnostic meta-learning (Finn
et al., 2017) searches for weights from which *one gradient step* fits a new curve well. Its gradient goes through that
step: a ``grad`` inside a ``vmap`` inside a ``grad``.
"""

import matplotlib.pyplot as plt
import numpy as np

import func

RATE, WIDTH, TASKS = 0.05, 24, 25
rng = np.random.default_rng(0)


def network(weights, x):
    """Maps x (n,) to y (n,) through two hidden layers."""
    hidden = np.tanh(np.outer(x, weights["in"]) + weights["bias"])
    return np.tanh(hidden @ weights["inner"] + weights["inner_bias"]) @ weights["out"]


def loss(weights, x, y):
    """Returns the mean squared error."""
    return np.mean((network(weights, x) - y) ** 2)


def adapt(weights, x, y):
    """Returns the weights after one gradient step on the points of one task."""
    return {name: weights[name] - RATE * g for name, g in func.grad(loss)(weights, x, y).items()}


def meta_loss(weights, x, y, new_x, new_y):
    """Returns the mean error at new points of all tasks, each after its one step."""
    return np.mean(func.vmap(lambda x, y, new_x, new_y: loss(adapt(weights, x, y), new_x, new_y))(x, y, new_x, new_y))


def tasks():
    """Draws tasks: ten points to adapt to and ten to be judged by, each (tasks, 10)."""
    amplitude, phase = rng.uniform(0.5, 2, (TASKS, 1)), rng.uniform(0, np.pi, (TASKS, 1))
    x = rng.uniform(-3, 3, (2, TASKS, 10))
    return x[0], amplitude * np.sin(x[0] + phase), x[1], amplitude * np.sin(x[1] + phase)


# %%
# ``jit`` compiles the second-order gradient; Adam descends.

shapes = {"in": WIDTH, "bias": WIDTH, "inner": (WIDTH, WIDTH), "inner_bias": WIDTH, "out": WIDTH}
weights = {name: rng.normal(size=shape) / (5 if name in ("inner", "out") else 1) for name, shape in shapes.items()}
step = func.jit(func.grad(meta_loss))
mean = square = {name: 0.0 for name in weights}
for count in range(1, 2001):
    gradient = step(weights, *tasks())
    mean = {name: 0.9 * mean[name] + 0.1 * g for name, g in gradient.items()}
    square = {name: 0.99 * square[name] + 0.01 * g**2 for name, g in gradient.items()}
    for name in weights:
        scale = np.sqrt(square[name] / (1 - 0.99**count)) + 1e-8
        weights[name] = weights[name] - 0.005 * mean[name] / (1 - 0.9**count) / scale
x, y, new_x, new_y = tasks()
before = np.mean([loss(weights, *task) for task in zip(new_x, new_y, strict=True)])
after = meta_loss(weights, x, y, new_x, new_y)
print(f"new tasks: error {before:.3f} before, {after:.3f} after one gradient step")
assert after < 0.5 * before

figure, axes = plt.subplots(1, 3, figsize=(7, 3), layout="constrained", sharey=True)
grid = np.linspace(-3, 3, 100)
for panel, ten_x, ten_y in zip(axes, x, y, strict=False):
    panel.plot(grid, network(weights, grid), ":", color="0.5", label="before the step")
    panel.plot(grid, network(adapt(weights, ten_x, ten_y), grid), label="after it")
    panel.plot(ten_x, ten_y, "k.", label="ten points")
    panel.set(xticks=[-3, 0, 3])
figure.suptitle("Three new tasks, and one gradient step on each")
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
plt.show()
