"""Companion matrices in Fiedler's form, and random sketches."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
import scipy.sparse as _sparse

from func.host.scipy_hooks import holds_traced
from func.interpreters.core import Array, is_plain_array, known_value, operand, shape_of
from func.scipy.linalg.scipy_values import scipy_function


def fiedler_companion(a: Array) -> Array:
    """The matrix (…, n - 1, n - 1) of five diagonals with the roots of the polynomial a (…, n) as eigenvalues.

    Source: M. Fiedler (2003), "A note on companion matrices", Linear Algebra Appl. 372, 325.
    """
    if not holds_traced(a):
        out: Array = scipy_function("fiedler_companion")(a)
        return out
    a = np.atleast_1d(operand(a))
    n = shape_of(a)[-1] - 1
    if n == 0 and np.lib.NumpyVersion(scipy.__version__) >= "1.18.0":
        return np.zeros_like(a, shape=(*shape_of(a)[:-1], 0, 0))
    if n < 1:
        return a[..., :0]
    value = known_value(a)
    if n > 1 and is_plain_array(value) and np.any(value[..., 0] == 0):
        raise ValueError("Leading coefficient is zero.")
    scaled = a / a[..., :1]
    values = np.concatenate([np.zeros_like(scaled[..., :1]), np.ones_like(scaled[..., :1]), -scaled[..., 1:]], -1)
    return np.take(values, _fiedler_places(n), axis=-1)


def _fiedler_places(n: int) -> Any:
    """Which of zero, one and the n coefficients stands where."""
    places = np.zeros((n, n), int)
    places[0, 0] = 2
    if n == 1:
        return places
    places[range(3, n, 2), range(1, n - 2, 2)] = 1
    places[range(2, n, 2), range(1, n - 1, 2)] = np.arange(3, n + 1, 2) + 1
    places[range(0, n - 2, 2), range(2, n, 2)] = 1
    places[range(0, n - 1, 2), range(1, n, 2)] = np.arange(2, n + 1, 2) + 1
    places[1, 0] = 1
    return places


def clarkson_woodruff_transform(input_matrix: Any, sketch_size: int, *seed: Any, **options: Any) -> Any:
    """The random sketch S A (…, sketch_size, m) of A (…, n, m), which is linear in A."""
    function = scipy_function("clarkson_woodruff_transform")
    if not holds_traced(input_matrix):
        return function(input_matrix, sketch_size, *seed, **options)
    sketch = function(np.eye(input_matrix.shape[-2]), sketch_size, *seed, **options)
    return (_sparse.csr_array(sketch) if _sparse.issparse(input_matrix) else sketch) @ input_matrix
