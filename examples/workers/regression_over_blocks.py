"""
Fit a Dask array larger than memory
===================================

A cluster of two processes has 300 MB each, less than the data takes. Workers make blocks where they use them, and
forget them. Parameters go out, and values, gradients and Hessians come back. A step of Newton's method is two passes
over the data.
"""

import dask.array as da
import numpy as np
from dask.distributed import Client, LocalCluster

import func

# %%
# The loss of one sample, and Newton's method
# -------------------------------------------

TRUTH = np.array([0.5, -1.0, 0.25, 1.5])


def loss(w, x, u):
    """The loss of one sample; its label is drawn by the number u."""
    z = x @ w
    label = u < 1 / (1 + np.exp(-x @ TRUTH))
    return np.logaddexp(0, z) - label * z


def main(rows=8_000_000, block=100_000):
    random = da.random.default_rng(0)
    x = random.normal(size=(rows, 4), chunks=(block, 4))
    u = random.random(size=rows, chunks=block)
    print(f"{(x.nbytes + u.nbytes) / 1e6:.0f} MB in {x.numblocks[0]} blocks")
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, memory_limit="300MB", dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        objective = func.sum_over(loss, (x, u), executor=client.get_executor())
        w = np.zeros(4)
        path = [w]
        for step in range(3):
            value, gradient = func.value_and_grad(objective)(w)
            w = w - np.linalg.solve(func.hessian(objective)(w), gradient)
            path.append(w)
            print(f"step {step}: loss {value:.6f}, |gradient| {np.linalg.norm(gradient):.1e}")
    print("weights", np.round(w, 3))
    np.testing.assert_allclose(w, TRUTH, atol=0.05)
    draw(np.stack(path))


def draw(path):
    """The weights after each step."""
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
    axes.plot(path, "o-")
    for weight in TRUTH:
        axes.axhline(weight, color="gray", linestyle=":", linewidth=1)
    axes.set(title="weights; dotted: those that made the data", xlabel="steps of Newton's method", xticks=range(4))
    plt.show()


# %%
# The picture
# -----------

if __name__ == "__main__":
    main()
