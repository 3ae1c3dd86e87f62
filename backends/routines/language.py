"""The language of routines: typed Python functions, and the few functions with a counterpart in each language.

Statements are assignments, `if`, `while`, `for` over ranges, `break`, `continue` and `return`; an array has one
dimension, and `a[k:]` is the rest of it, in C a pointer. `Number` is the type of elements, real or complex, and `Real`
that of their moduli. Names of the module are constants.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Number: TypeAlias = Any
Real: TypeAlias = float
Fixed: TypeAlias = int
Int32: TypeAlias = int
Long: TypeAlias = int
Numbers: TypeAlias = Array
Matrix: TypeAlias = Array
Rows: TypeAlias = Array
Vector: TypeAlias = Array
Reals: TypeAlias = Array
Floats: TypeAlias = Array
Int32s: TypeAlias = Array
Longs: TypeAlias = Array

TYPES = {
    **{"bool": "bool", "int": "int", "float": "double", "Fixed": "int", "Number": "number", "Real": "real"},
    **{"Int32": "int32", "Long": "long", "None": "void", "Matrix": "matrix", "Rows": "rows", "Vector": "vector"},
    **{"Numbers": "number[]", "Reals": "real[]", "Floats": "double[]", "Int32s": "int32[]", "Longs": "long[]"},
}
"""The types that annotations name: `int` has the width of an address. `Numbers` are contiguous, a `Vector` has a
stride, a `Matrix` two, and `Rows` are a row-major matrix. A `Fixed` integer is a constant in code for one value of it.
"""

IS_COMPLEX = False
HAS_LAPACK = False
HAS_CBLAS = False
SHORT_INTEGERS = False
"""Whether the code has LAPACK, or BLAS, and the former has integers of 32 bits: known to the C compiler alone."""
TINY, LEAST, MOST, EPSILON, SIZE = 2.3e-308, 1e-280, 1e280, 1.1102230246251565e-16, 8
"""Constants of the type of numbers: about the smallest normal number, bounds of safe squares, half a unit in the last
place, an element's bytes."""


exp, log, sqrt, floor, ceil, trunc, rint, cbrt = (
    *(np.exp, np.log, np.sqrt, np.floor, np.ceil, np.trunc, np.rint, np.cbrt),
)
sin, cos, tan, sinh, cosh, asin, acos, atan = (
    *(np.sin, np.cos, np.tan, np.sinh, np.cosh, np.arcsin, np.arccos, np.arctan),
)
exp2, expm1, log1p, fabs, fmin, fmax, fmod, hypot = (
    *(np.exp2, np.expm1, np.log1p, np.fabs, np.fmin, np.fmax, np.fmod, np.hypot),
)
copysign, ldexp, pow = np.copysign, np.ldexp, np.float_power
modulus = np.abs


def apart(function: Callable[..., Any]) -> Callable[..., Any]:
    """Declare that no two arrays of a routine overlap."""
    function.apart = True  # type: ignore[attr-defined]
    return function


def zeros(*shape: int) -> Array:
    """A local array."""
    return np.zeros(shape, object)


def external(function: Callable[..., Any]) -> Callable[..., Any]:
    """Declare that each language has a separate text for a function."""
    function.external = True  # type: ignore[attr-defined]
    return function


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Declare that a routine becomes part of its callers."""
    function.inlined = True  # type: ignore[attr-defined]
    return function


def empty(*shape: int) -> Array:
    """A local array of any values."""
    return np.zeros(shape, object)


def turned_square(side: int, source: Numbers, source_step: int, target: Numbers, target_step: int) -> None:
    """Copy the transpose of a square, by exchanges of lanes."""
    for i in range(side):
        target[i * target_step : i * target_step + side] = source[i : side * source_step : source_step][:side]


def lanes(count: int) -> range:
    """Indices of elements that lie next to each other, for one instruction."""
    return range(count)


def unrolled(*bounds: int) -> range:
    """Indices of an unrolled loop."""
    return range(*bounds)


def horner(coefficients: Sequence[float], x: float) -> float:
    """A polynomial, the constant term first."""
    total = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        total = total * x + c
    return total


def is_rows(a: Matrix) -> bool:
    """Whether a matrix is row-major."""
    return a.strides[1] == a.itemsize


def is_columns(a: Matrix) -> bool:
    """Whether a matrix is column-major, or a vector contiguous along columns."""
    return a.strides[0] == a.itemsize


def is_dense(x: Vector) -> bool:
    """Whether a vector is contiguous."""
    return x.strides[0] == x.itemsize


def bits(x: Real) -> Any:
    """The bits of a number, as an integer."""
    return np.asarray(x).view(f"u{np.asarray(x).itemsize}")


def fma(x: Number, y: Number, z: Number) -> Number:
    """x y + z, rounded once where the processor does so."""
    return x * y + z


def conj(x: Number) -> Number:
    """The conjugate."""
    return np.conj(x)


def real_part(x: Number) -> Real:
    """The real part."""
    return np.real(x)


def pivot_size(x: Number) -> Real:
    """The modulus by which LAPACK chooses pivots."""
    return abs(np.real(x)) + abs(np.imag(x))


def ilogb(x: Real) -> int:
    """The n of 2^n <= |x| < 2^(n + 1)."""
    return int(np.frexp(x)[1]) - 1


def rows_of(x: Numbers, stride: int) -> Rows:
    """Numbers as rows with a stride in elements."""
    return x[: x.size // stride * stride].reshape(-1, stride)


def reals_of(x: Numbers) -> Reals:
    """The memory of numbers for real ones."""
    return x.view(np.real(x).dtype)


def lgamma(x: float) -> float:
    """The logarithm of the modulus of the gamma function."""
    return _scipy("gammaln", x)


def tgamma(x: float) -> float:
    """The gamma function."""
    return _scipy("gamma", x)


def erf(x: float) -> float:
    """The error function."""
    return _scipy("erf", x)


def erfc(x: float) -> float:
    """The complement of the error function."""
    return _scipy("erfc", x)


def _scipy(name: str, x: float) -> float:
    """A function of SciPy, which nothing but a routine that runs in Python imports."""
    return getattr(importlib.import_module("scipy.special"), name)(x)
