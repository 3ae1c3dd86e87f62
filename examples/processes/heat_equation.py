"""
Recover the initial temperature of a plate on many processes
============================================================

The adjoint of the heat equation recovers the initial temperature of a plate that has cooled down. Each process has some
rows of the plate. A step needs one row of each neighbour, and the adjoint sends one row back.

Run it on four processes, ``mpiexec -n 4 python -m examples.processes.heat_equation``, or on one. The program is the
same, because ``func.vmap`` gives it the same axis. This page used one process.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import func
from func.collectives import axis_size, pmean, ppermute, psum

# %%
# The program of a process
# ------------------------

AXIS = "ranks"
STEPS = 40
COURANT = 0.2
"""Time step times conductivity over the square of the mesh width; explicit steps are stable up to 1/4."""


def step(u: Any) -> Any:
    """One explicit step on this process's rows; outside of the plate the temperature is zero."""
    size = axis_size(AXIS)
    above = ppermute(u[-1], AXIS, [(i, i + 1) for i in range(size - 1)])
    below = ppermute(u[0], AXIS, [(i + 1, i) for i in range(size - 1)])
    tall = np.concatenate([above[None], u, below[None]])
    wide = np.pad(u, ((0, 0), (1, 1)))
    return u + COURANT * (tall[2:] + tall[:-2] + wide[:, 2:] + wide[:, :-2] - 4 * u)


def diffused(u: Any, steps: int = STEPS) -> Any:
    """The temperature after some steps."""
    return func.scan(lambda u, _: (step(u), None), u, None, length=steps)[0]


def misfit(u: Any, measured: Any) -> Any:
    """This process's part of the misfit. Derivatives are those of the sum over all processes, so no psum is needed."""
    return 0.5 * np.sum((diffused(u) - measured) ** 2)


misfit_and_gradient = func.jit(func.value_and_grad(misfit))


def recovered(measured: Any, iterations: int = 30) -> tuple[Any, Any]:
    """(initial temperature, misfit before each iteration) by gradient descent with momentum."""
    u = velocity = np.zeros_like(measured)
    history = []
    for _ in range(iterations):
        value, gradient = misfit_and_gradient(u, measured)
        history.append(psum(value, AXIS))
        velocity = 0.8 * velocity - gradient
        u = u + velocity
    return u, np.stack(history)


def bytes_of_gradient(rank: int, size: int, columns: int, steps: int = STEPS) -> int:
    """The bytes that a process sends for one gradient: a row to each neighbour per step, forth and back."""
    neighbours = (rank > 0) + (rank < size - 1)
    return 2 * steps * neighbours * columns * 8


# %%
# The data, and the same program in one process
# ---------------------------------------------


def plate(rows: int = 32, columns: int = 24) -> Any:
    """A warm spot and a cold one."""
    y, x = np.meshgrid(np.linspace(0, 1, rows), np.linspace(0, 1, columns), indexing="ij")
    return np.exp(-60 * ((x - 0.3) ** 2 + (y - 0.6) ** 2)) - 0.7 * np.exp(-90 * ((x - 0.7) ** 2 + (y - 0.3) ** 2))


def on_one_process(parts: int = 4) -> tuple[Any, Any]:
    """The same program on parts of the plate in one process."""
    rows = plate().reshape(parts, -1, plate().shape[1])
    return func.vmap(lambda u: recovered(diffused(u)), axis_name=AXIS)(rows)


def draw(u: Any, history: Any) -> None:
    """The plate at the start, after the steps, and as it is recovered; the misfit."""
    import matplotlib.pyplot as plt

    cooled = func.vmap(diffused, axis_name=AXIS)(plate()[None])[0]
    _, axes = plt.subplots(2, 2, figsize=(6, 5), layout="constrained")
    for place, (title, values) in zip(
        axes.flat, [("at the start", plate()), (f"after {STEPS} steps", cooled), ("recovered", u)], strict=False
    ):
        place.imshow(values, vmin=-0.7, vmax=0.7, cmap="RdBu_r")
        place.set(title=title, xticks=[], yticks=[])
    axes[1, 1].semilogy(history)
    axes[1, 1].set(title="misfit", xlabel="iteration")
    plt.show()


def main() -> None:
    try:
        from mpi4py import MPI
    except ImportError:
        comm = None
    else:
        comm = MPI.COMM_WORLD
    if comm is None or comm.size == 1:
        parts, histories = on_one_process()
        print(f"one process: the misfit falls from {histories[0, 0]:.4f} to {histories[0, -1]:.2e}")
        assert histories[0, -1] < 0.01 * histories[0, 0]
        draw(parts.reshape(plate().shape), histories[0])
        return
    own = np.array_split(plate(), comm.size)[comm.rank]
    program = func.spmd(lambda u: recovered(diffused(u)), comm, AXIS)
    u, history = program(own)
    error = func.spmd(lambda u: pmean(np.mean((u - own) ** 2), AXIS), comm, AXIS)(u)
    if comm.rank == 0:
        print(f"{comm.size} processes: the misfit falls from {history[0]:.4f} to {history[-1]:.2e}")
        print(f"mean square error of the temperature {error:.2e}; of a guess of zero {np.mean(plate() ** 2):.2e}")
        print(program.traffic)
    rows = comm.gather(u)
    if rows is not None:
        draw(np.concatenate(rows), history)


# %%
# The picture
# -----------
# Diffusion loses fine details: the recovered plate is smoother than the one at the start, and cools down to the same.

if __name__ == "__main__":
    main()
