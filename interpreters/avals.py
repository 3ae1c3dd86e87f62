"""What is known of an array without its data: shape, dtype and weakness; and the zero that is never stored."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = Any
"""Whatever a primitive takes: an array of some backend, a Python or NumPy scalar, or a Tracer."""
Params: TypeAlias = dict[str, Any]
Shape: TypeAlias = tuple[int, ...]

PYTHON_SCALARS = frozenset({bool, int, float, complex})


class Zero:
    """The symbolic zero: a tangent or cotangent that is known to vanish and is never stored."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "ZERO"

    def __reduce__(self) -> str:
        return "ZERO"


ZERO = Zero()


class Shaped:
    """Anything with a shape and a dtype that is not the array itself: an Aval, a graph node, a variable."""

    __slots__ = ("dtype", "shape")
    shape: Shape
    dtype: np.dtype[Any]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        total = 1
        for length in self.shape:
            total *= length
        return total


class Aval(Shaped):
    """Abstract value: shape, dtype, and whether the dtype is weak (it came from a Python scalar)."""

    __slots__ = ("is_real_array", "weak")

    def __init__(self, shape: Shape, dtype: Any, weak: bool = False) -> None:
        self.shape = shape
        self.dtype = np.dtype(dtype)
        self.weak = weak
        self.is_real_array = shape != () and self.dtype.char in "df" and self.dtype.isnative

    def __repr__(self) -> str:
        return f"{short_dtype(self.dtype)}[{','.join(map(str, self.shape))}]{'~' if self.weak else ''}"

    def _key(self) -> tuple[Any, ...]:
        return self.shape, self.dtype, self.weak

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Aval) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> tuple[Any, ...]:
        return Aval, (self.shape, self.dtype, self.weak)


def short_dtype(dtype: np.dtype[Any]) -> str:
    """A dtype in two to four letters: f64, i32, bool."""
    if dtype.kind in "fiuc":
        return f"{dtype.kind}{dtype.itemsize * 8}"
    return str(dtype)


def shape_of(value: Array) -> Shape:
    """The shape of an array, a tracer or a scalar."""
    try:
        return value.shape  # type: ignore[no-any-return]
    except AttributeError:
        return ()


_SCALAR_DTYPES = {
    bool: np.dtype(np.bool_),
    int: np.dtype(np.int64),
    float: np.dtype(np.float64),
    complex: np.dtype(np.complex128),
}


def dtype_of(value: Array) -> np.dtype[Any]:
    """The dtype of an array, a tracer or a scalar (Python scalars: NumPy's default for them)."""
    try:
        return value.dtype  # type: ignore[no-any-return]
    except AttributeError:
        return _SCALAR_DTYPES[type(value)]


def is_inexact(dtype: np.dtype[Any]) -> bool:
    """True for the dtypes that carry derivatives: real and complex floating point."""
    return dtype.kind in "fc" or dtype.name == "bfloat16"
