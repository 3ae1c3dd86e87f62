"""How rows call the routines of scipy.linalg: found by backend, one matrix at a time, in the dtypes promised."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func.backends import scipy_of
from func.interpreters.core import Array, Aval
from func.interpreters.errors import UnsupportedFunctionError
from func.interpreters.source import at_line


def routine(xp: Any, name: str) -> Callable[..., Any]:
    """The function of scipy.linalg with this name for a backend, or a worded error where there is none."""
    found: Callable[..., Any] | None = getattr(scipy_of(xp, "linalg"), name, None)
    if found is None:
        raise UnsupportedFunctionError(
            f"the backend {getattr(xp, '__name__', xp)!r} has no scipy.linalg.{name}{at_line()}\n"
            "Move the matrix to the host for this call, or write it with functions that the backend has."
        )
    return found


def has_routine(xp: Any, name: str) -> bool:
    """Whether a backend has a function of scipy.linalg."""
    return getattr(scipy_of(xp, "linalg"), name, None) is not None


def over_stack(
    xp: Any, call: Callable[..., Any], arrays: Sequence[Array], outs: Sequence[Aval], cores: Sequence[int]
) -> tuple[Array, ...]:
    """call(*matrices) for every place of equal leading axes; `cores` counts the axes of one call's arguments."""
    batch = arrays[0].shape[: arrays[0].ndim - cores[0]]
    if not batch:
        found = call(*arrays)
        return tuple([as_dtype(xp, one, out.dtype) for one, out in zip(found, outs, strict=True)])
    results = tuple([xp.empty(out.shape, out.dtype) for out in outs])
    for place in np.ndindex(*batch):
        for result, value in zip(results, call(*[array[place] for array in arrays]), strict=True):
            result[place] = value
    return results


def as_dtype(xp: Any, value: Array, dtype: np.dtype[Any]) -> Array:
    """A backend's array in a dtype, copied only where it has to be."""
    array = xp.asarray(value)
    return array if array.dtype == dtype else array.astype(dtype)


def aval_from(array: Array) -> Aval:
    """What is known of a concrete array."""
    return Aval(array.shape, array.dtype)
