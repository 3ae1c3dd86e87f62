"""The loops of libraries without vmap."""

from typing import Any

from benchmarks.libraries.base import Function, Library
from benchmarks.trees import leaves, rebuild


def looped_per_sample(library: Library, f: Function, mapped: int) -> Function:
    """f(parameters, *rows) for all rows of this number of arrays, one after the other."""

    def rows(parameters: Any, *arrays: Any) -> Any:
        results = [f(parameters, *row) for row in zip(*arrays, strict=True)]
        return rebuild(results[0], map(library.np.stack, zip(*map(leaves, results), strict=True)))

    return rows
