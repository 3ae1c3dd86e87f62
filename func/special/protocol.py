"""SciPy's ufuncs on traced arrays: each is implemented by a primitive or by a function of func.special."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special

from func.interpreters.core import PRIMITIVES, Array, dtype_of, operand
from func.interpreters.primitives.elementwise.builder import Elementwise, ElementwiseConstant
from func.interpreters.primitives.structural.shapes import convert
from func.numpy.protocol import DIRECT, F, implements_ufunc


def implements_scipy(*names: str) -> Callable[[F], F]:
    """Register a function as the traced version of ufuncs of scipy.special, by name.

    Names with an underscore are private ufuncs of SciPy, which not every version has; missing ones are skipped.
    """
    ufuncs = [getattr(scipy.special._ufuncs if name.startswith("_") else scipy.special, name, None) for name in names]
    return implements_ufunc(*[ufunc for ufunc in ufuncs if ufunc is not None])


def in_first_loop(x: Array) -> Array:
    """An operand of a ufunc whose first loop is that of doubles, in which SciPy computes half precision, too."""
    x = operand(x)
    is_half = hasattr(x, "dtype") and dtype_of(x).char == "e"
    return convert(x, dtype=np.dtype(np.float64)) if is_half else x


def register_primitives() -> None:
    """Register every elementwise primitive that is a ufunc of scipy.special as the traced version of it."""
    for primitive in PRIMITIVES.values():
        if primitive.scipy is not None and isinstance(primitive, (Elementwise, ElementwiseConstant)):
            ufunc: Any = getattr(scipy.special, primitive.scipy)
            if isinstance(ufunc, np.ufunc):
                DIRECT[ufunc] = primitive
