"""A training loop with tensors, `backward` and `no_grad`, as it is written for PyTorch, on NumPy arrays.

A multilayer perceptron learns scikit-learn's handwritten digits: 1,797 real images of 8 by 8 pixels. A hook on each
parameter limits the length of its gradient.
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
    """A weight matrix to start from, which requires a gradient."""
    return func.tensor(rng.normal(size=(inputs, outputs)) * np.sqrt(2 / inputs), requires_grad=True)


hidden, hidden_bias = weights(64, 64), func.tensor(np.zeros(64), requires_grad=True)
output, output_bias = weights(64, 10), func.tensor(np.zeros(10), requires_grad=True)
parameters = [hidden, hidden_bias, output, output_bias]
velocities = [np.zeros(p.shape) for p in parameters]
clipped = 0


def clip(gradient: Any) -> Any:
    """A gradient that is no longer than LONGEST."""
    global clipped
    length = np.sqrt(np.sum(gradient**2))
    if length <= LONGEST:
        return gradient
    clipped += 1
    return gradient * (LONGEST / length)


handles = [parameter.register_hook(clip) for parameter in parameters]


def logits(x: Any) -> Any:
    """Ten scores for each image."""
    return np.maximum(x @ hidden + hidden_bias, 0) @ output + output_bias


def cross_entropy(scores: Any, wanted: Any) -> Any:
    """The mean negative logarithm of the probability given to the label."""
    shifted = scores - scores.max(axis=1, keepdims=True)
    return np.mean(np.log(np.exp(shifted).sum(axis=1)) - shifted[np.arange(len(wanted)), wanted])


for epoch in range(EPOCHS):
    losses = []
    for batch in np.array_split(rng.permutation(training), len(training) // BATCH_SIZE):
        loss = cross_entropy(logits(images[batch]), labels[batch])
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
        print(f"epoch {epoch + 1:2d}: loss {np.mean(losses):.4f}, test accuracy {accuracy:.1%}, {clipped} hooks cut")

assert clipped > 0, "the hooks cut some gradients"
assert accuracy >= 0.95, f"test accuracy {accuracy:.1%}"
