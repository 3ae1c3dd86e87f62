"""A sweep of hyper-parameters on processes: the validation loss of ridge regression, and its slope, for many penalties.

`python examples/workers/hyper_parameters.py` starts a pool of two processes. Each maps a chunk of the penalties; the
gradient of the validation loss with respect to a penalty goes through the solution of the normal equations.
"""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import numpy as np

import func

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 20))
Y = X @ RNG.normal(size=20) * (RNG.random(20) > 0.6).sum() ** -0.5 + RNG.normal(size=300) * 3
TRAIN, VALID = slice(0, 100), slice(100, 300)


def validation(log_penalty):
    """The mean squared error on the validation data, of weights that are fitted with this penalty."""
    gram = X[TRAIN].T @ X[TRAIN] + np.exp(log_penalty) * np.eye(20)
    weights = np.linalg.solve(gram, X[TRAIN].T @ Y[TRAIN])
    return np.mean((X[VALID] @ weights - Y[VALID]) ** 2)


def main():
    penalties = np.linspace(-3.0, 9.0, 240)
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as executor:
        losses, slopes = func.vmap(func.value_and_grad(validation), executor=executor, chunk_size=40)(penalties)
    best = np.argmin(losses)
    print(f"best log-penalty {penalties[best]:.2f}, loss {losses[best]:.3f}, slope there {slopes[best]:+.4f}")
    assert slopes[0] < 0 < slopes[-1] or losses[best] <= losses.min()
    np.testing.assert_allclose(np.diff(losses), (slopes[1:] + slopes[:-1]) / 2 * np.diff(penalties), atol=1e-3)


if __name__ == "__main__":
    main()
