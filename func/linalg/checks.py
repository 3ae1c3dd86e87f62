"""Checks and conversions of the arguments of linear algebra functions, with scipy.linalg's errors."""

from __future__ import annotations

from typing import Any

import numpy as np

from func.backends import is_device_array
from func.backends.array_helpers.arrays import scipy_of
from func.interpreters.core import Array, Tracer, dtype_of, known_value, operand, shape_of
from func.interpreters.core.errors import UnsupportedFunctionError
from func.interpreters.host.source import at_line
from func.interpreters.primitives.elementwise.table import real
from func.interpreters.primitives.structural.shapes import broadcast, convert, expand
from func.interpreters.primitives.structural.slicing import getitem

_LAPACK: dict[str, np.dtype[Any]] = {"e": np.dtype(np.float32), "g": np.dtype(np.float64), "G": np.dtype(np.complex128)}


def as_dtype(a: Array, dtype: np.dtype[Any]) -> Array:
    """An array in a dtype."""
    return a if dtype_of(a) == dtype and hasattr(a, "dtype") else convert(a, dtype=dtype)


def validated(a: Any, name: str, check_finite: bool = True) -> Array:
    """An array in a dtype of LAPACK; raises for infinities and NaNs with `check_finite`."""
    a = operand(a)
    dtype = dtype_of(a)
    if dtype.kind in "biu":
        a = as_dtype(a, np.dtype(np.float64))
    elif dtype.char in _LAPACK:
        a = as_dtype(a, _LAPACK[dtype.char])
    elif dtype.kind not in "fc":
        raise TypeError(f"{name}: array type {dtype.name} is unsupported in linalg")
    value = known_value(a) if check_finite else None
    if value is not None and not is_device_array(value) and not np.isfinite(value).all():
        raise ValueError(f"array must not contain infs or NaNs: {name}")
    return a


def matrices(a: Any, name: str, check_finite: bool = True, error: type[ValueError] = ValueError) -> Array:
    """Validated matrices (…, m, n)."""
    a = validated(a, name, check_finite)
    if len(shape_of(a)) < 2:
        raise error(f"{name} must be at least two-dimensional (…, m, n), got shape {shape_of(a)}")
    return a


def squares(a: Any, name: str, check_finite: bool = True, error: type[ValueError] = ValueError) -> Array:
    """Validated square matrices (…, n, n)."""
    a = matrices(a, name, check_finite, error)
    if shape_of(a)[-1] != shape_of(a)[-2]:
        raise error(f"{name} must be a square matrix (…, n, n), got shape {shape_of(a)}")
    return a


def vectors(a: Any, name: str, check_finite: bool = True) -> Array:
    """Validated vectors (…, n)."""
    a = validated(a, name, check_finite)
    return expand(a, (0,)) if shape_of(a) == () else a


def in_double(a: Array) -> Array:
    """An array in double precision, in which SciPy computes for all precisions of the argument."""
    double = {"f": np.dtype(np.float64), "F": np.dtype(np.complex128)}.get(dtype_of(a).char)
    return a if double is None else as_dtype(a, double)


def promoted(*arrays: Array, cores: tuple[int, ...] = (2, 2, 2)) -> list[Array]:
    """Arrays converted to their common dtype and broadcast to their common batch axes.

    `cores` are the numbers of trailing axes of each array that are not batch axes.
    """
    dtype = np.result_type(*[dtype_of(a) for a in arrays])
    batches = [shape_of(a)[: len(shape_of(a)) - core] for a, core in zip(arrays, cores, strict=False)]
    batch = np.broadcast_shapes(*batches)
    out = []
    for a, own_batch, core in zip(arrays, batches, cores, strict=False):
        a = as_dtype(a, dtype)
        out.append(a if own_batch == batch else broadcast(a, shape=(*batch, *shape_of(a)[len(shape_of(a)) - core :])))
    return out


def as_columns(b: Array) -> tuple[Array, bool]:
    """Right-hand sides (…, n, k), and whether b is one vector."""
    if len(shape_of(b)) > 1:
        return b, False
    return expand(b, (len(shape_of(b)),)), True


def from_columns(x: Array, vector: bool) -> Array:
    """The solution as a vector, if the right-hand side was one."""
    return getitem(x, index=(*[(0, n, 1) for n in shape_of(x)[:-1]], 0)) if vector else x


def right_hand_side(a: Array, b: Any, check_finite: bool = True, name: str = "b") -> tuple[Array, bool]:
    """The right-hand side as columns (…, n, k) for matrices with n rows, and whether it is one vector."""
    columns, vector = as_columns(vectors(b, name, check_finite))
    n = shape_of(a)[-2]
    if shape_of(columns)[-2] != n:
        raise ValueError(f"{name} of shape {shape_of(b)} does not have the {n} rows of a of shape {shape_of(a)}")
    return columns, vector


def real_if_known(x: Array, *inputs: Array) -> Array:
    """The real part of a result with real inputs that is known to be real; under jit it stays complex."""
    if any(dtype_of(a).kind == "c" for a in inputs) or dtype_of(x).kind != "c":
        return x
    value = known_value(x)
    return real(x) if value is not None and bool((value.imag == 0).all()) else x


def is_plain(*values: Any) -> bool:
    """Whether all values are untraced and in host memory."""
    return not any(type(value) is Tracer or is_device_array(value) for value in values)


def untraced_call(name: str, why: str, arrays: tuple[Any, ...], instead: str = "", **keywords: Any) -> Any:
    """Call SciPy's function for an option without a traced version; raise for traced arrays."""
    if is_plain(*arrays):
        return getattr(scipy_of(np, "linalg"), name)(*arrays, **keywords)
    hint = f"\n{instead}" if instead else ""
    raise UnsupportedFunctionError(f"func.linalg.{name} of a traced array does not support {why}{at_line()}{hint}")
