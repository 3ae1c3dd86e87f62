"""Sparse matrices: the gradient of a sparse solve against the solve, and products under jit against SciPy's.

`python -m benchmarks.scipy_sparse [--rounds N] [--side N]` prints medians of interleaved rounds, the memory of the
gradient, and whether the bars hold. Every call gets new entries, so that no factorization is reused.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

import func
from benchmarks.timing import medians

BAR = 2.2
"""How many solves the gradient of one may cost."""


def poisson(side: int) -> Any:
    """The five-point Laplacian on a square."""
    line = scipy.sparse.diags_array(
        [-np.ones(side - 1), 2 * np.ones(side), -np.ones(side - 1)], offsets=[-1, 0, 1], format="csc"
    )
    eye = scipy.sparse.eye_array(side, format="csc")
    return (scipy.sparse.kron(eye, line) + scipy.sparse.kron(line, eye)).tocsc()


def solves(side: int) -> dict[str, Callable[[], Any]]:
    """A solve, and the gradient of the sum of squares of its result in all entries and the right-hand side."""
    matrix, b = poisson(side), np.ones(side**2)
    generator = np.random.default_rng(0)

    def solution(data: Any, b: Any) -> Any:
        made = scipy.sparse.csc_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)
        return scipy.sparse.linalg.spsolve(made, b)

    def fresh() -> Any:
        return matrix.data * (1 + 1e-9 * generator.random())

    gradient = func.grad(lambda data, b: np.sum(solution(data, b) ** 2), argnums=(0, 1))
    return {"spsolve": lambda: solution(fresh(), b), "gradient": lambda: gradient(fresh(), b)}


def products(side: int) -> dict[str, Callable[[], Any]]:
    """A @ x by SciPy, and its loop in native code."""
    matrix, x = poisson(side).tocsr(), np.ones(side**2)
    compiled = func.jit(lambda x: matrix @ x)
    return {"A @ x": lambda: matrix @ x, "func.jit, A @ x": lambda: compiled(x)}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--side", type=int, default=300)
    options = parser.parse_args()
    for name, seconds in medians(products(options.side), 10 * options.rounds).items():
        print(f"{name:20} {seconds * 1e3:10.3f} ms")
    results = medians(solves(options.side), options.rounds)
    for name, seconds in results.items():
        print(f"{name:20} {seconds * 1e3:10.1f} ms")
    ratio = results["gradient"] / results["spsolve"]
    print(f"gradient / solve: {ratio:.2f}, bar {BAR}: {'holds' if ratio <= BAR else 'missed'}")
    if sys.platform != "win32":
        import resource

        unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
        print(f"largest memory of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit:.0f} MiB")


if __name__ == "__main__":
    main()
