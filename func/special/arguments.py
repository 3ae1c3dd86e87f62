"""Arguments of the functions here, as SciPy takes them."""

from __future__ import annotations

import numpy as np

from func.interpreters.core import Array, dtype_of, operand
from func.interpreters.primitives.structural.shapes import convert


def floating(x: Array) -> Array:
    """An array of floating point numbers; integers become float64."""
    x = operand(x)
    if not hasattr(x, "dtype"):
        return np.asarray(x) if type(x) in (float, complex) else np.asarray(x, np.float64)
    return x if dtype_of(x).kind in "fc" else convert(x, dtype=np.dtype(np.float64))
