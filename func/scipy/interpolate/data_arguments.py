"""Common parts of func.scipy.interpolate: conversions, checks that allow tracing, and SciPy's original functions."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

import func.numpy as fnp
from func.host import scipy_hooks
from func.host.intercepted_arrays import resolved
from func.interpreters.core import Array, dtype_of, known_value, operand, shape_of
from func.interpreters.core.errors import StagingError, UnsupportedFunctionError
from func.interpreters.host.source import at_line
from func.numpy.argument_checks import arrayed, host_values, to_dtype

DOUBLE, COMPLEX = np.dtype(np.float64), np.dtype(np.complex128)


def array_of(x: Any) -> Array:
    """An argument as an array of any dtype."""
    return arrayed(operand(x))


def floats(x: Any) -> Array:
    """An argument as an array of double precision, real or complex."""
    x = array_of(x)
    return to_dtype(x, COMPLEX if dtype_of(x).kind == "c" else DOUBLE)


def reals(x: Any, name: str = "x") -> Array:
    """An argument as an array of real numbers of double precision."""
    x = array_of(x)
    if dtype_of(x).kind == "c":
        raise ValueError(f"`{name}` must contain real values.")
    return to_dtype(x, DOUBLE)


def common(*arrays: Array) -> list[Array]:
    """Arrays in their common dtype."""
    dtype = np.result_type(*[dtype_of(a) for a in arrays])
    return [to_dtype(a, dtype) for a in arrays]


def holds(condition: Any) -> bool:
    """Whether a condition holds in all elements and batch elements; true if its values are unknown."""
    value = known_value(condition)
    return value is None or bool(np.all(value))


def is_never(condition: Any) -> bool:
    """Whether a condition is known to hold in no element."""
    value = known_value(condition)
    return value is not None and not np.any(value)


def require(condition: Any, message: str) -> None:
    """Raise ValueError if a condition is known not to hold in all elements."""
    if not holds(condition):
        raise ValueError(message)


def is_traced(*values: Any) -> bool:
    """Whether one of the values is traced, or holds a traced value."""
    return any([scipy_hooks.holds_traced(value) for value in values])


def numbers(x: Any, what: str) -> Any:
    """The plain array behind an argument that determines knots, neighbours or triangles.

    Under vmap the batch is split where its elements differ.
    """
    try:
        return host_values(x)
    except StagingError:
        raise StagingError(
            f"{what} is found from the numbers of the data, which are not known while the code is staged{at_line()}\n"
            "Call it outside func.jit, or pass this argument as a plain array."
        ) from None


def refuse(what: str, instead: str) -> UnsupportedFunctionError:
    """The error for an option that has no traced version."""
    return UnsupportedFunctionError(f"{what} of traced values has no traced version{at_line()}\n{instead}")


def stored(self: Any, name: str) -> Array:
    """An array of an object of SciPy's, which has it as an attribute or, in later versions, in a delegate."""
    inner = getattr(self, "_delegate_to", self)
    value = getattr(inner, f"_{name}", None)
    return resolved(getattr(inner, name) if value is None else value)


def array_attribute(name: str) -> Callable[..., Any]:
    """The getter and setter of an array of SciPy's objects; assignment copies a delegate, which copies share."""

    def access(self: Any, *assigned: Any) -> Any:
        if not assigned:
            return stored(self, name)
        inner = self
        if hasattr(self, "_delegate_to"):
            inner = self._delegate_to = copy.copy(self._delegate_to)
        setattr(inner, f"_{name}" if hasattr(inner, f"_{name}") else name, fnp.asarray(assigned[0]))
        return None

    return access


def queries(x: Any) -> tuple[Array, tuple[int, ...]]:
    """Query points as one vector of real numbers, and their shape."""
    x = reals(x)
    return fnp.reshape(x, (-1,)), shape_of(x)


def shaped(out: Array, x_shape: tuple[int, ...], axis: int) -> Array:
    """Values (queries, …) with the axes of the queries in the place of the interpolation axis."""
    rest = shape_of(out)[1:]
    out = fnp.reshape(out, (*x_shape, *rest))
    if axis == 0 or not x_shape:
        return out
    rank = len(x_shape)
    order = [*range(rank, rank + axis), *range(rank), *range(rank + axis, rank + len(rest))]
    return fnp.transpose(out, order)


def column(x: Array, rank: int) -> Array:
    """A vector that broadcasts along the first of `rank` axes."""
    return fnp.reshape(x, (-1,) + (1,) * (rank - 1))


def nan_where(condition: Array, out: Array) -> Array:
    """Values (n, …) that are NaN where a condition (n,) holds."""
    return fnp.where(column(condition, len(shape_of(out))), np.nan, out)


def first_axis(y: Array, axis: int) -> tuple[Array, int]:
    """The array with the interpolation axis first, and the axis as a non-negative number."""
    rank = len(shape_of(y))
    if not -rank <= axis < rank:
        raise np.exceptions.AxisError(axis, rank)
    axis %= rank
    return fnp.moveaxis(y, axis, 0), axis


def is_finite(*arrays: Array) -> bool:
    """Whether all known numbers are finite."""
    return all([holds(fnp.isfinite(a)) for a in arrays])


def order_of(nu: Any) -> int:
    """The order of a derivative."""
    order = int(nu)
    if order < 0:
        raise ValueError("Order of derivative cannot be negative")
    return order


def picked(c: Array, *places: Array) -> Array:
    """c[places] for (possibly traced) indices of the leading axes, which broadcast."""
    shape = shape_of(c)
    count = len(places)
    flat: Any = 0
    for place, length in zip(places, shape, strict=False):
        flat = flat * length + place
    return fnp.take(fnp.reshape(c, (int(np.prod(shape[:count])), *shape[count:])), flat, axis=0)


def coordinates(points: Any, ndim: int | None = None) -> Array:
    """Points (…, ndim) of an array, or of a tuple of coordinates that broadcast."""
    points = resolved(points)
    if isinstance(points, tuple) and len(points) == 1:
        points = points[0]
    if isinstance(points, tuple):
        return fnp.stack(fnp.broadcast_arrays(*[to_dtype(array_of(p), DOUBLE) for p in points]), axis=-1)
    points = reals(points, "xi")
    if len(shape_of(points)) == 1:
        return fnp.reshape(points, (-1, 1) if ndim is None else (-1, ndim))
    return fnp.reshape(points, (1, 1)) if not shape_of(points) else points


def write(output: Any, result: Array) -> None:
    """Write the result of a compiled function to the array that SciPy's code passes."""
    output[...] = to_dtype(result, output.dtype)
