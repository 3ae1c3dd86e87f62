"""
Multiply matrices that no process has as a whole
================================================

In a ring of p processes, each has rows of both matrices, and passes its rows of the second one on: (p - 1) messages of
n²/p numbers. On a grid (SUMMA, van de Geijn and Watts 1997), each has a block of both. In √p steps it gets the blocks
of its row and of its column, which moves less memory for many processes. func differentiates both programs unchanged.

Run it with ``mpiexec -n 4 python -m examples.processes.matrix_products``, or on one process, where ``func.vmap`` gives
the same axes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import func
from func.collectives import axis_index, axis_size, broadcast, ppermute

# %%
# The programs of a process
# -------------------------

AXIS = "ranks"


def ring_product(a: Any, b: Any) -> Any:
    """This process's rows of A @ B, from its rows of A and its rows of B."""
    size = axis_size(AXIS)
    blocks = np.moveaxis(a.reshape(a.shape[0], size, -1), 1, 0)
    total = np.zeros((a.shape[0], b.shape[1]))
    for turn in range(size):
        total = total + blocks[(axis_index(AXIS) + turn) % size] @ b
        if turn < size - 1:
            b = ppermute(b, AXIS, [(i, (i - 1) % size) for i in range(size)])
    return total


def grid_product(a: Any, b: Any) -> Any:
    """This process's block of A @ B on a square grid, from its blocks of A and B."""
    total = np.zeros((a.shape[0], b.shape[1]))
    for turn in range(axis_size("rows")):
        total = total + broadcast(a, "columns", root=turn) @ broadcast(b, "rows", root=turn)
    return total


# %%
# In one process
# --------------


def matrices(n: int = 24) -> tuple[Any, Any]:
    """Two matrices of random numbers."""
    return tuple(np.random.default_rng(3).normal(size=(2, n, n)))


def numbers_needed(size: int, n: int) -> tuple[float, float]:
    """How many numbers of others a process needs in the ring, and on the grid, for n × n matrices."""
    side = size**0.5
    return (size - 1) * n * n / size, 2 * (side - 1) * n * n / size


def on_one_process() -> None:
    """Both programs on parts in one process, and their derivatives."""
    a, b = matrices()
    rows = [x.reshape(4, 6, 24) for x in (a, b)]
    blocks = [x.reshape(2, 12, 2, 12).transpose(0, 2, 1, 3) for x in (a, b)]
    on_grid = func.vmap(func.vmap(grid_product, axis_name="columns"), axis_name="rows")
    np.testing.assert_allclose(func.vmap(ring_product, axis_name=AXIS)(*rows).reshape(24, 24), a @ b, atol=1e-12)
    np.testing.assert_allclose(on_grid(*blocks).transpose(0, 2, 1, 3).reshape(24, 24), a @ b, atol=1e-12)
    slope = func.vmap(func.grad(lambda a, b: np.sum(ring_product(a, b) ** 2)), axis_name=AXIS)(*rows)
    np.testing.assert_allclose(slope.reshape(24, 24), 2 * (a @ b) @ b.T, atol=1e-11)
    print("one process: the ring, the grid and the derivative of the ring are those of whole matrices")


def draw(n: int = 10_000) -> None:
    """The numbers of others that a process needs."""
    import matplotlib.pyplot as plt

    sizes = [side * side for side in range(2, 33)]
    _, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
    for name, values in zip(("ring", "grid"), zip(*[numbers_needed(p, n) for p in sizes], strict=True), strict=True):
        axes.loglog(sizes, values, label=name)
    axes.set(title="numbers of others that a process needs", xlabel="processes, for matrices of 10,000 × 10,000")
    axes.legend()
    plt.show()


def main() -> None:
    try:
        from mpi4py import MPI
    except ImportError:
        comm = None
    else:
        comm = MPI.COMM_WORLD
    if comm is None or comm.size == 1:
        on_one_process()
        draw()
        return
    a, b = matrices()
    rows = [np.split(matrix, comm.size)[comm.rank] for matrix in (a, b)]
    program = func.spmd(func.jit(ring_product), comm, AXIS)
    error = np.max(np.abs(program(*rows) - np.split(a @ b, comm.size)[comm.rank]))
    print(f"rank {comm.rank}: the ring's rows differ from those of one process by {error:.1e}")
    if comm.rank == 0:
        print(program.traffic)
        assert program.traffic.received == 8 * numbers_needed(comm.size, len(a))[0]
        draw()


# %%
# The picture
# -----------

if __name__ == "__main__":
    main()
