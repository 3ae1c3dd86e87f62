"""numpy.emath: functions of real numbers whose result is complex where there is no real one.

The dtype of the result depends on the values: vmap splits the batch where it differs, and jit traces once for each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from func.interpreters.core import Array, dtype_of, operand
from func.numpy.argument_checks import to_dtype
from func.numpy.protocol import implements

__all__ = ["arccos", "arcsin", "arctanh", "log", "log2", "log10", "logn", "power", "sqrt"]


def _extended(x: Any, has_no_real_result: Callable[[Array], Array]) -> Array:
    """The argument, as complex numbers if a real one among its elements has no real result."""
    x = operand(x)
    if dtype_of(x).kind == "c" or not np.any(has_no_real_result(x)):
        return x
    is_single = dtype_of(x).char in "efbBhH"
    return to_dtype(x, np.dtype(np.complex64 if is_single else np.complex128))


def _is_negative(x: Array) -> Array:
    return x < 0


def _is_outside_unit_interval(x: Array) -> Array:
    return np.abs(x) > 1


def _of_one(original: Any, ufunc: Any, has_no_real_result: Callable[[Array], Array]) -> Callable[[Any], Array]:
    def function(x: Any) -> Any:
        return ufunc(_extended(x, has_no_real_result))

    function.__name__ = function.__qualname__ = original.__name__
    function.__doc__ = f"numpy.emath.{original.__name__}, complex where the real function is not defined."
    return implements(original)(function)


sqrt = _of_one(np.emath.sqrt, np.sqrt, _is_negative)
log = _of_one(np.emath.log, np.log, _is_negative)
log10 = _of_one(np.emath.log10, np.log10, _is_negative)
log2 = _of_one(np.emath.log2, np.log2, _is_negative)
arccos = _of_one(np.emath.arccos, np.arccos, _is_outside_unit_interval)
arcsin = _of_one(np.emath.arcsin, np.arcsin, _is_outside_unit_interval)
arctanh = _of_one(np.emath.arctanh, np.arctanh, _is_outside_unit_interval)


@implements(np.emath.logn)
def logn(n: Any, x: Any) -> Array:
    """The logarithm to base n, as numpy.emath.logn."""
    return log(x) / log(n)


@implements(np.emath.power)
def power(x: Any, p: Any) -> Array:
    """x to the power of p, as numpy.emath.power; negative integer powers are powers of real numbers."""
    x, p = _extended(x, _is_negative), operand(p)
    if dtype_of(p).kind in "iu" and np.any(p < 0):
        p = p * 1.0
    return np.power(x, p)
