"""
Differentiate conjugate gradients on many processes
===================================================

Many processes solve a rod on an elastic ground by conjugate gradients. Its energy has a derivative by the stiffness of
the ground at every place. The derivative of a solution is another solution: with ``func.custom_linear_solve``, the same
processes solve the transposed system.

Run it with ``mpiexec -n 4 python -m examples.processes.conjugate_gradients``. Without ``mpiexec``, as here, it runs on
one process.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import func
from func.collectives import axis_size, ppermute, psum

# %%
# The program of a process
# ------------------------

AXIS = "ranks"


def dot(x: Any, y: Any) -> Any:
    """The inner product of vectors whose entries lie on all processes."""
    return psum(np.sum(x * y), AXIS)


def operator(stiffness: Any, u: Any) -> Any:
    """-u'' + k u on a line, with zero at its ends, in units of the mesh; a process has neighbouring entries."""
    size = axis_size(AXIS)
    left = ppermute(u[-1:], AXIS, [(i, i + 1) for i in range(size - 1)])
    right = ppermute(u[:1], AXIS, [(i + 1, i) for i in range(size - 1)])
    whole = np.concatenate([left, u, right])
    return (2 + stiffness) * u - whole[2:] - whole[:-2]


def conjugate_gradients(product: Any, b: Any, tolerance: float = 1e-13, most: int = 400) -> Any:
    """The solution x of product(x) = b for a symmetric positive definite matrix. Hestenes and Stiefel (1952)."""
    target = tolerance**2 * dot(b, b)

    def unfinished(state: Any) -> Any:
        _, _, _, residual, count = state
        return np.logical_and(residual > target, count < most)

    def iterate(state: Any) -> Any:
        x, r, p, residual, count = state
        q = product(p)
        length = residual / dot(p, q)
        x, r = x + length * p, r - length * q
        after = dot(r, r)
        return x, r, r + after / residual * p, after, count + 1

    return func.while_loop(unfinished, iterate, (np.zeros_like(b), b, b, dot(b, b), 0))[0]


def solved(stiffness: Any, b: Any) -> Any:
    """The solution, whose derivatives solve the same system."""
    return func.custom_linear_solve(
        lambda u: operator(stiffness, u), b, lambda product, b: conjugate_gradients(product, b), symmetric=True
    )


def energy(stiffness: Any, b: Any) -> Any:
    """This process's part of the energy of the solution."""
    return 0.5 * np.sum(b * solved(stiffness, b))


# %%
# The data, and the energy in one process
# ---------------------------------------


def problem(size: int = 64) -> tuple[Any, Any]:
    """A stiffness and a load."""
    x = np.linspace(0, 1, size)
    return 0.05 + 0.1 * x, np.sin(5 * x)


def dense(stiffness: Any, b: Any) -> Any:
    """The energy in one process, by a dense matrix."""
    n = len(b)
    matrix = np.diag(2 + stiffness) - np.eye(n, k=1) - np.eye(n, k=-1)
    return 0.5 * b @ np.linalg.solve(matrix, b)


def draw(gradients: Any) -> None:
    """The load, and the slopes of the energy by the load and by the stiffness, with those of a dense matrix."""
    import matplotlib.pyplot as plt

    names = ["slope by the stiffness, -u²/2", "slope by the load, u"]
    _, axes = plt.subplots(2, 1, figsize=(6, 5), layout="constrained", sharex=True)
    truth = func.grad(dense, argnums=(0, 1))(*problem())
    for place, name, gradient, expected in zip(axes, names, gradients, truth, strict=True):
        place.plot(expected, color="C1", label="dense matrix")
        place.plot(gradient, ".", color="C0", label="conjugate gradients")
        place.set(title=name)
    axes[0].legend()
    axes[1].set(xlabel="place")
    plt.show()


def main() -> None:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    own = [np.array_split(values, comm.size)[comm.rank] for values in problem()]
    program = func.spmd(func.jit(func.value_and_grad(energy, argnums=(0, 1))), comm, AXIS)
    value, gradients = program(*own)
    truth = func.grad(dense, argnums=(0, 1))(*problem())
    parts = [np.array_split(values, comm.size)[comm.rank] for values in truth]
    error = max(np.max(np.abs(x - y)) for x, y in zip(gradients, parts, strict=True))
    print(f"rank {comm.rank}: energy {value:.6f}, gradients differ from those of one process by {error:.1e}")
    assert error < 1e-10
    whole = comm.gather(gradients)
    if whole is not None:
        draw([np.concatenate(x) for x in zip(*whole, strict=True)])


# %%
# The picture
# -----------

if __name__ == "__main__":
    main()
