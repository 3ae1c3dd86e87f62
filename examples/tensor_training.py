"""
Train with tensors, as in PyTorch
=================================

Tensors, ``backward``, ``no_grad`` and hooks work on NumPy arrays: a network learns handwritten digits in PyTorch's
training loop. A hook on each parameter limits the length of its gradient (Pascanu et al., 2013). The loss is a
``Function`` with a hand-written gradient.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import func

rng = np.random.default_rng(0)
digits = load_digits()
images, labels = digits.data / 16, digits.target
test, training = np.split(rng.permutation(len(labels)), [360])


def tensor(*shape):
    """Returns random parameters that require a gradient."""
    return func.tensor(rng.normal(size=shape) * np.sqrt(2 / shape[0]), requires_grad=True)


parameters = hidden, hidden_bias, output, output_bias = tensor(64, 48), tensor(48), tensor(48, 10), tensor(10)
velocities = [np.zeros(parameter.shape) for parameter in parameters]


def logits(x):
    """Returns ten scores for each image."""
    return np.maximum(x @ hidden + hidden_bias, 0) @ output + output_bias


class CrossEntropy(func.autograd.Function):
    """The mean negative logarithm of the probability of the label."""

    @staticmethod
    def forward(ctx, scores, targets):
        ctx.targets = np.eye(10)[targets]
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        probabilities = shares / shares.sum(axis=1, keepdims=True)
        ctx.save_for_backward(probabilities)
        return -np.mean(np.log(np.sum(probabilities * ctx.targets, axis=1)))

    @staticmethod
    def backward(ctx, ct):
        (probabilities,) = ctx.saved_tensors
        return ct * (probabilities - ctx.targets) / len(ctx.targets), None


# %%
# ``backward`` adds the hook's result to the ``grad`` of each parameter; ``no_grad`` lets the step write into them.

lengths, losses = [], []


def limit(gradient):
    """Returns the gradient, shortened to the length 1 if it is longer."""
    lengths.append(np.linalg.norm(gradient))
    return gradient / np.maximum(lengths[-1], 1.0)


for parameter in parameters:
    parameter.register_hook(limit)
for epoch in range(30):
    for batch in np.array_split(rng.permutation(training), 45):
        loss = CrossEntropy.apply(logits(images[batch]), labels[batch])
        loss.backward()
        losses.append(loss.item())
        with func.no_grad():
            for parameter, velocity in zip(parameters, velocities, strict=True):
                velocity[:] = 0.9 * velocity + parameter.grad.numpy()
                parameter -= 0.1 * (1 - epoch / 30) * velocity
                parameter.grad = None
guesses = np.argmax(logits(images[test]).detach().numpy(), axis=1)
accuracy = np.mean(guesses == labels[test])
print(f"test accuracy {accuracy:.1%}; {np.mean(np.array(lengths) > 1):.1%} of the gradients were cut")
assert accuracy > 0.95 and max(lengths) > 1

figure, axes = plt.subplot_mosaic("LLab;LLcd", figsize=(6.4, 3.2), layout="constrained")
axes["L"].semilogy(losses, ".", markersize=2)
axes["L"].set(xlabel="step", title="loss of the batch")
for panel, wrong in zip("abcd", np.flatnonzero(guesses != labels[test])[:4], strict=True):
    axes[panel].imshow(digits.images[test[wrong]], cmap="gray_r")
    axes[panel].axis("off")
    axes[panel].set(title=f"{labels[test[wrong]]}, read as {guesses[wrong]}")
plt.show()
