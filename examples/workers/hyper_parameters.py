"""
Sweep hyper-parameters on processes
===================================

The program computes the validation loss of ridge regression, and its slope, for many penalties. A pool of two processes
maps chunks of the penalties. The gradient of the validation loss by a penalty goes through the solution of the normal
equations.
"""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import numpy as np

import func

# %%
# The loss as a function of the penalty
# -------------------------------------

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 20))
Y = X @ RNG.normal(size=20) * (RNG.random(20) > 0.6).sum() ** -0.5 + RNG.normal(size=300) * 3
TRAIN, VALID = slice(0, 100), slice(100, 300)


def validation(log_penalty):
    """The mean squared error on the validation data, of weights that are fitted with this penalty."""
    gram = X[TRAIN].T @ X[TRAIN] + np.exp(log_penalty) * np.eye(20)
    weights = np.linalg.solve(gram, X[TRAIN].T @ Y[TRAIN])
    return np.mean((X[VALID] @ weights - Y[VALID]) ** 2)


# %%
# The sweep
# ---------
# With ``spawn``, each process imports this script. The script therefore starts them only under its last line.


def draw(penalties, losses, slopes):
    """The losses, and every twentieth slope."""
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(figsize=(6, 3.8), layout="constrained")
    axes.plot(penalties, losses, label="validation loss")
    for x, y, slope in list(zip(penalties, losses, slopes, strict=True))[10::20]:
        axes.plot([x - 0.5, x + 0.5], [y - slope / 2, y + slope / 2], color="C1")
    axes.plot(penalties[np.argmin(losses)], losses.min(), "o", color="C2", label="best penalty")
    axes.plot([], color="C1", label="slopes")
    axes.set(xlabel="logarithm of the penalty")
    axes.legend()
    plt.show()


def main():
    penalties = np.linspace(-3.0, 9.0, 240)
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as executor:
        losses, slopes = func.vmap(func.value_and_grad(validation), executor=executor, chunk_size=40)(penalties)
    best = np.argmin(losses)
    print(f"best log-penalty {penalties[best]:.2f}, loss {losses[best]:.3f}, slope there {slopes[best]:+.4f}")
    assert slopes[0] < 0 < slopes[-1] or losses[best] <= losses.min()
    np.testing.assert_allclose(np.diff(losses), (slopes[1:] + slopes[:-1]) / 2 * np.diff(penalties), atol=1e-3)
    draw(penalties, losses, slopes)


# %%
# The picture
# -----------

if __name__ == "__main__":
    main()
