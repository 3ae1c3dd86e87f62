"""Multivariate distributions: normal vectors, points of balls, orthogonal matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from func.interpreters.core import Array, operand, shape_of
from func.interpreters.host.public_functions import without_engine_frames
from func.interpreters.primitives.elementwise import table as e
from func.interpreters.primitives.random import bits as ops
from func.interpreters.primitives.structural.shapes import expand, reduce_sum, where
from func.numpy import linalg
from func.numpy.products import matmul
from func.numpy.selection import diagonal
from func.random.continuous import exponential, generalized_normal
from func.random.keys import broadcast_parameter, check_key, float_dtype, full_shape, keys_of, parameter, sample_shape


@without_engine_frames
def multivariate_normal(
    key: Any, mean: Any, cov: Any, shape: Any = None, dtype: Any = np.float64, method: str = "cholesky"
) -> Array:
    """Normal vectors with a given mean and covariance; the sample is differentiable in both.

    Args:
        key: A key, (2,) of uint32.
        mean: Means (…, n).
        cov: Symmetric positive definite covariances (…, n, n); semidefinite ones need method "eigh" or "svd".
        shape: The batch shape of the result (…), without its last axis of length n; by default that of mean and cov.
        dtype: float64 or float32.
        method: The factorization of the covariance: "cholesky", "eigh" or "svd".

    Raises:
        ValueError: The shapes do not fit, or the method is unknown.
        LinAlgError: The covariance has no Cholesky factor.

    Example:
        >>> import numpy as np, func
        >>> key = func.random.key(0)
        >>> draw = lambda cov: func.random.multivariate_normal(key, np.zeros(2), cov)
        >>> func.jacobian(draw)(np.eye(2)).shape
        (2, 2, 2)
    """
    dtype = float_dtype("multivariate_normal", dtype)
    if method not in ("cholesky", "eigh", "svd"):
        raise ValueError(f"func.random.multivariate_normal: method must be 'cholesky', 'eigh' or 'svd', not {method!r}")
    mean = parameter("multivariate_normal", "mean", mean, dtype)
    cov = parameter("multivariate_normal", "cov", cov, dtype)
    if not shape_of(mean) or shape_of(cov)[-2:] != (n := shape_of(mean)[-1], n):
        raise ValueError(
            "func.random.multivariate_normal: mean (…, n) and cov (…, n, n) do not fit together, got shapes "
            f"{shape_of(mean)} and {shape_of(cov)}"
        )
    full = full_shape("multivariate_normal", shape, shape_of(mean)[:-1], shape_of(cov)[:-2])
    z = ops.random_normal(check_key(key, "multivariate_normal"), shape=(*full, n), dtype=dtype)
    factor = _factor(cov, method)
    if len(shape_of(factor)) == 2 and full:
        centered = matmul(z, linalg.matrix_transpose(factor))
    else:
        centered = matmul(factor, expand(z, (len(full) + 1,)))[..., 0]
    return e.add(centered, mean)


def _factor(cov: Array, method: str) -> Array:
    """A matrix A with A Aᵀ = cov."""
    if method == "cholesky":
        return linalg.cholesky(cov)
    if method == "eigh":
        values, vectors = linalg.eigh(cov)
        is_positive = e.greater(values, 0.0)
        roots = e.sqrt(where(is_positive, values, e.multiply(values, 0.0)))
    else:
        vectors, values, _ = linalg.svd(cov)
        roots = e.sqrt(values)
    return e.multiply(vectors, expand(roots, (len(shape_of(roots)) - 1,)))


@without_engine_frames
def ball(key: Any, d: int, p: Any = 2.0, shape: Any = (), dtype: Any = np.float64) -> Array:
    """Points (*shape, d) with a uniform distribution in the unit ball of the p-norm of R^d.

    Source: F. Barthe, O. Guédon, S. Mendelson, A. Naor (2005), A probabilistic approach to the geometry of the ℓ_p^n
    ball, theorem 1.
    """
    dtype = float_dtype("ball", dtype)
    first, second = keys_of(check_key(key, "ball"), 2)
    p = parameter("ball", "p", p, dtype)
    full = full_shape("ball", shape, shape_of(p))
    exponents = expand(broadcast_parameter(p, full), (len(full),))
    g = generalized_normal(first, exponents, (*full, d), dtype)
    total = reduce_sum(e.power(e.absolute(g), exponents), axes=(len(full),))
    length = e.power(e.add(total, exponential(second, full, dtype)), e.divide(1.0, p))
    return e.divide(g, expand(length, (len(full),)))


@without_engine_frames
def orthogonal(key: Any, n: int, shape: Any = (), dtype: Any = np.float64) -> Array:
    """Orthogonal matrices (*shape, n, n), distributed uniformly (by Haar measure).

    Source: F. Mezzadri (2007), How to generate random matrices from the classical compact groups.
    """
    dtype = float_dtype("orthogonal", dtype)
    batch = sample_shape("orthogonal", shape)
    z = ops.random_normal(check_key(key, "orthogonal"), shape=(*batch, n, n), dtype=dtype)
    q, r = linalg.qr(z)
    signs = e.sign(diagonal(operand(r), 0, -2, -1))
    return e.multiply(q, expand(signs, (len(batch),)))
