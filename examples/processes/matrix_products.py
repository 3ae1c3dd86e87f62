"""Products of matrices that no process has as a whole: around a ring, and on a grid of processes.

In the ring each process has rows of both matrices, and passes its rows of the second one on: (p - 1) messages of n²/p
numbers. On a grid (SUMMA, van de Geijn and Watts 1997) each has a block of both, and gets in √p steps the blocks of its
row and of its column: less memory in motion for many processes. Both are differentiated as they stand. Run it with
`mpiexec -n 4 python -m examples.processes.matrix_products`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import func
from func.collectives import axis_index, axis_size, broadcast, ppermute

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


def matrices(n: int = 24) -> tuple[Any, Any]:
    """Two matrices of random numbers."""
    return tuple(np.random.default_rng(3).normal(size=(2, n, n)))


def main() -> None:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    a, b = matrices()
    rows = [np.split(matrix, comm.size)[comm.rank] for matrix in (a, b)]
    program = func.spmd(func.jit(ring_product), comm, AXIS)
    error = np.max(np.abs(program(*rows) - np.split(a @ b, comm.size)[comm.rank]))
    print(f"rank {comm.rank}: the ring's rows differ from those of one process by {error:.1e}")
    if comm.rank == 0:
        print(program.traffic)


if __name__ == "__main__":
    main()
