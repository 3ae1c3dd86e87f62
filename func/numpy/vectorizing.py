"""`vectorize`: a function of core arrays that broadcasts by nested vmap."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from func.interpreters.core import operand, shape_of
from func.interpreters.core.errors import ArgumentError
from func.interpreters.core.wiring import WIRING
from func.numpy.shaping import broadcast_to

_CORE = r"\((?:\s*\w+\s*(?:,\s*\w+\s*)*)?\)"
_SIGNATURE = re.compile(rf"^\s*(?:{_CORE}\s*(?:,\s*{_CORE}\s*)*)?->\s*{_CORE}\s*(?:,\s*{_CORE}\s*)*$")


def vectorize(
    pyfunc: Callable[..., Any], *, excluded: Collection[int] = (), signature: str | None = None
) -> Callable[..., Any]:
    """A function that broadcasts over the leading axes of its arguments, as numpy.vectorize, but by `vmap`.

    Args:
        pyfunc: The function of the core arrays; without `signature` of scalars.
        excluded: Positions of arguments to pass whole.
        signature: The core axes as in np.vectorize, for example "(n,k),(k)->(n)".

    Raises:
        ArgumentError: The signature is malformed, or an argument has fewer axes than its core (a ValueError).

    Example:
        >>> import numpy as np, func
        >>> func.numpy.vectorize(np.dot, signature="(n),(n)->()")(np.ones((2, 3)), np.arange(3.0))
        array([3., 3.])
    """
    ranks = None if signature is None else _core_ranks(signature)

    @functools.wraps(pyfunc)
    def vectorized(*args: Any) -> Any:
        mapped_places = [i for i in range(len(args)) if i not in excluded]
        cores = [0] * len(mapped_places) if ranks is None else ranks
        if len(cores) != len(mapped_places):
            raise ArgumentError(
                f"vectorize: signature {signature!r} is of {len(cores)} arguments, given {len(mapped_places)}"
            )
        arrays = [operand(args[i]) for i in mapped_places]
        for i, x, core in zip(mapped_places, arrays, cores, strict=True):
            if len(shape_of(x)) < core:
                raise ArgumentError(f"vectorize: argument {i} of shape {shape_of(x)} has fewer than {core} core axes")
        batches = [shape_of(x)[: len(shape_of(x)) - core] for x, core in zip(arrays, cores, strict=True)]
        batch = np.broadcast_shapes(*batches)
        arrays = [
            broadcast_to(x, (*batch, *shape_of(x)[len(leading) :])) if leading != batch else x
            for x, leading in zip(arrays, batches, strict=True)
        ]

        def core_function(*mapped_args: Any) -> Any:
            full = list(args)
            for i, x in zip(mapped_places, mapped_args, strict=True):
                full[i] = x
            return pyfunc(*full)

        mapped: Callable[..., Any] = core_function
        for _ in batch:
            mapped = WIRING.vmap(mapped)
        return mapped(*arrays)

    return vectorized


def _core_ranks(signature: str) -> list[int]:
    if not _SIGNATURE.match(signature):
        raise ArgumentError(f"vectorize: not a valid gufunc signature: {signature!r}")
    inputs = signature.split("->")[0]
    return [len([name for name in core.split(",") if name.strip()]) for core in re.findall(r"\(([^)]*)\)", inputs)]
