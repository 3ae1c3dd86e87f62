"""Window functions. Only the Kaiser window has a parameter to differentiate by."""

from __future__ import annotations

from typing import Any

import numpy as np

from func.interpreters.core import Array, operand
from func.interpreters.primitives.elementwise import table as ops
from func.numpy.elementary import i0

bartlett = np.bartlett
blackman = np.blackman
hamming = np.hamming
hanning = np.hanning


def kaiser(M: int, beta: Any) -> Array:
    """The Kaiser window of M points, differentiable in beta."""
    beta = ops.multiply(operand(beta), 1.0)
    if M == 1:
        return ops.add(ops.multiply(beta, 0.0), np.ones(1))
    n = np.arange(0, float(M))
    alpha = (M - 1) / 2.0
    return ops.divide(i0(ops.multiply(beta, np.sqrt(1 - ((n - alpha) / alpha) ** 2.0))), i0(beta))
