"""A training loop with tensors, `backward` and `no_grad`, written as for PyTorch, on NumPy arrays.

A multilayer perceptron learns scikit-learn's handwritten digits: 1,797 real images of 8 by 8 pixels. A hook on each
parameter limits the length of its gradient; the loss is a `Function` with a custom gradient.
"""

from typing import Any

import numpy as np
from sklearn.datasets import load_digits

import func

TEST_IMAGES, BATCH_SIZE, EPOCHS = 360, 32, 30
LEARNING_RATE, MOMENTUM, LONGEST = 0.1, 0.9, 1.0

rng = np.random.default_rng(0)
digits = load_digits()
order = rng.permutation(len(digits.target))
test, training = order[:TEST_IMAGES], order[TEST_IMAGES:]
images, labels = digits.data / 16.0, digits.target


def weights(inputs: int, outputs: int) -> Any:
    """A random initial weight matrix, which requires a gradient."""
    return func.tensor(rng.normal(size=(inputs, outputs)) * np.sqrt(2 / inputs), requires_grad=True)


hidden, hidden_bias = weights(64, 64), func.tensor(np.zeros(64), requires_grad=True)
output, output_bias = weights(64, 10), func.tensor(np.zeros(10), requires_grad=True)
parameters = [hidden, hidden_bias, output, output_bias]
velocities = [np.zeros(p.shape) for p in parameters]
clipped = 0


def clip(gradient: Any) -> Any:
    """The gradient, shortened to the length LONGEST if it is longer."""
    global clipped
    length = np.sqrt(np.sum(gradient**2))
    if length <= LONGEST:
        return gradient
    clipped += 1
    return gradient * (LONGEST / length)


for parameter in parameters:
    parameter.register_hook(clip)


def logits(x: Any) -> Any:
    """Ten scores for each image."""
    return np.maximum(x @ hidden + hidden_bias, 0) @ output + output_bias


class CrossEntropy(func.autograd.Function):
    """The mean negative logarithm of the probability of the label."""

    @staticmethod
    def forward(ctx: Any, scores: Any, targets: Any) -> Any:
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares = shares / shares.sum(axis=1, keepdims=True)
        ctx.targets = np.eye(10)[targets]
        ctx.save_for_backward(shares)
        return -np.mean(np.log(np.sum(shares * ctx.targets, axis=1)))

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        (shares,) = ctx.saved_tensors
        return ct * (shares - ctx.targets) / len(ctx.targets), None


for epoch in range(EPOCHS):
    losses = []
    for batch in np.array_split(rng.permutation(training), len(training) // BATCH_SIZE):
        loss = CrossEntropy.apply(logits(images[batch]), labels[batch])
        loss.backward()
        losses.append(loss.item())
        with func.no_grad():
            for parameter, velocity in zip(parameters, velocities, strict=True):
                velocity *= MOMENTUM
                velocity += parameter.grad.numpy()
                parameter -= LEARNING_RATE * (1 - epoch / EPOCHS) * velocity
                parameter.grad = None
    with func.no_grad():
        accuracy = np.mean(np.argmax(logits(images[test]), axis=1) == labels[test])
    if epoch == 0 or (epoch + 1) % 10 == 0:
        print(f"epoch {epoch + 1:2d}: loss {np.mean(losses):.4f}, accuracy {accuracy:.1%}, {clipped} gradients cut")


def deep(x: Any) -> Any:
    """Eight layers with the weights of the hidden one."""
    for _ in range(8):
        x = np.maximum(x @ hidden + hidden_bias, 0)
    return x


kept = func.autograd.graph.saved_bytes(deep(images).sum())
less = func.autograd.graph.saved_bytes(func.autograd.checkpoint(deep, images).sum())
print(f"eight layers keep {kept:,} bytes for backward, with checkpointing {less:,}")
assert less < kept / 4
assert clipped > 0, "the hooks cut some gradients"
assert accuracy >= 0.95, f"test accuracy {accuracy:.1%}"
