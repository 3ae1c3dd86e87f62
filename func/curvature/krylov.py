"""Spectra of symmetric operators from few products: Lanczos' method, and quadrature by it."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh_tridiagonal
from scipy.sparse import issparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from func import random
from func.curvature.curvature_operators import CurvatureOperator
from func.errors import ArgumentError, UnsupportedFunctionError
from func.interpreters.core import Tracer
from func.interpreters.host.public_functions import without_engine_frames
from func.transforms.closures import Closure


class LanczosResult(NamedTuple):
    """A V = V T + a remainder in the last column, with orthonormal columns of V and tridiagonal T."""

    diagonal: Any
    """The diagonal of T, of length k."""
    off_diagonal: Any
    """The off-diagonal of T, of length k - 1."""
    vectors: Any
    """V, of shape (n, k)."""
    remainder: float
    """The norm of the remainder; 0 where the columns of V span an invariant subspace."""

    @property
    def ritz_values(self) -> Any:
        """The eigenvalues of T in ascending order: the outermost are close to eigenvalues of A."""
        return self._decomposed()[0]

    @property
    def ritz_vectors(self) -> Any:
        """The approximate eigenvectors for them, columns of shape (n, k)."""
        return self.vectors @ self._decomposed()[1].astype(self.vectors.dtype)

    @property
    def error_bounds(self) -> Any:
        """For each Ritz value a bound of the distance to the nearest eigenvalue of A."""
        return abs(self.remainder * self._decomposed()[1][-1])

    def _decomposed(self) -> tuple[Any, Any]:
        return _eigenpairs(self.diagonal, self.off_diagonal)


@without_engine_frames
def lanczos(operator: Any, start: Any, steps: int) -> LanczosResult:
    """Lanczos' method for a symmetric operator: a tridiagonal matrix T = Vᵀ A V of few steps, and V.

    It orthogonalizes the columns of V against all earlier ones, so Ritz values do not repeat. There are fewer than
    `steps` columns if they span an invariant subspace.

    Args:
        operator: A symmetric `func.linear_operator`, any linear operator of SciPy, or a matrix.
        start: The first vector, or a key of `func.random` for a normal one.
        steps: The number of products, at most n.

    Raises:
        ArgumentError: The operator is not square, known not to be symmetric, or returns NaN (a ValueError).

    Source: C. Lanczos (1950); Y. Saad (2011), "Numerical methods for large eigenvalue problems", section 6.6.

    Example:
        >>> import numpy as np, func
        >>> found = func.lanczos(np.diag([1.0, 2.0, 4.0]), np.ones(3), 3)
        >>> found.ritz_values.round(12)
        array([1., 2., 4.])
    """
    matrix = _symmetric(operator, "lanczos")
    n = matrix.shape[0]
    count = _count(steps, "lanczos", "steps")
    if _is_traced(start):
        raise _traced("lanczos")
    vector = np.asarray(start)
    if vector.dtype == np.uint32 and vector.shape == (2,):
        vector = random.normal(vector, (n,), dtype_of_draws(matrix.dtype))
    if vector.shape != (n,) or vector.dtype.kind not in "fiu":
        raise ArgumentError(
            f"func.lanczos: start must be a real vector of shape ({n},) or a key of func.random, not an array of shape "
            f"{vector.shape} and dtype {vector.dtype}"
        )
    if not np.isfinite(vector).all() or (n and not vector.any()):
        raise ArgumentError("func.lanczos: start must be finite and other than zero")
    recurrence = _tridiagonal(matrix, vector[:, None], min(count, n), "lanczos")
    size = int(recurrence.sizes[0])
    remainder = float(recurrence.beta[size - 1, 0]) if size else 0.0
    return LanczosResult(
        recurrence.alpha[:size, 0], recurrence.beta[: max(size - 1, 0), 0], recurrence.vectors[:size, :, 0].T, remainder
    )


class LanczosQuadrature:
    """The result of `func.lanczos_quadrature`: the spectrum of an operator as nodes with weights.

    For each random vector v, the sum of weights times g(nodes) is close to vᵀ g(A) v, whose expectation is the trace of
    g(A).
    """

    def __init__(self, nodes: Any, weights: Any, size: int) -> None:
        self.nodes = nodes
        """Of shape (samples, steps)."""
        self.weights = weights
        """Of the same shape; the sum over a row is n."""
        self.size = size
        """The number n of rows of the operator."""

    def trace(self, function: Callable[[Any], Any], with_error: bool = False) -> Any:
        """An estimate of the trace of g(A), for a function g of arrays of eigenvalues; `lambda x: x` for that of A.

        With `with_error` it is (estimate, standard error of the mean over the random vectors).
        """
        values = np.where(self.weights > 0, function(self.nodes), 0)
        traces = np.sum(self.weights * values, axis=1)
        estimate = np.mean(traces)
        if not with_error:
            return estimate
        if len(traces) < 2:
            raise ArgumentError("func.lanczos_quadrature: an error needs at least two samples")
        return estimate, np.std(traces, ddof=1) / math.sqrt(len(traces))

    def log_determinant(self, damping: float = 0.0, with_error: bool = False) -> Any:
        """An estimate of log det(A + damping I), which must be positive definite."""
        least = np.min(self.nodes, initial=np.inf) + damping
        if least <= 0:
            raise ArgumentError(
                f"func.lanczos_quadrature: the operator plus {damping:g} times the identity is not positive definite, "
                f"an eigenvalue is at most {least:.4g}; take a larger damping, or the ggn in place of the hessian"
            )
        return self.trace(lambda x: np.log(x + damping), with_error)

    def density(self, points: Any, width: float) -> Any:
        """The density of eigenvalues at some points, with integral 1: the nodes smoothed by normal densities.

        Args:
            points: An array of eigenvalues.
            width: The standard deviation of the normal densities.
        """
        if not width > 0:
            raise ArgumentError(f"density: width must be positive, not {width!r}")
        points = np.asarray(points, float)
        total = np.zeros(points.shape)
        for node, weight in zip(self.nodes.ravel(), self.weights.ravel(), strict=True):
            total += weight * np.exp(-0.5 * ((points - node) / width) ** 2)
        return total / (math.sqrt(2 * math.pi) * width * max(self.size * len(self.nodes), 1))

    def __repr__(self) -> str:
        samples, steps = self.nodes.shape
        return f"<func.LanczosQuadrature of {self.size} eigenvalues by {samples} samples of {steps} steps>"


@without_engine_frames
def lanczos_quadrature(operator: Any, key: Any, *, steps: int, samples: int) -> LanczosQuadrature:
    """Traces of functions of a symmetric operator, its log-determinant and the density of its eigenvalues.

    Stochastic Lanczos quadrature: `samples` random vectors of signs, and `steps` steps of Lanczos' method from each,
    all at once. It takes `steps` products with matrices of `samples` columns. For an operator of n ≤ steps rows the
    result is exact for each vector.

    Args:
        operator: A symmetric `func.linear_operator`, any linear operator of SciPy, or a matrix.
        key: A key of `func.random`; the same key gives the same estimate.
        steps: Steps of Lanczos' method: exact for functions of the eigenvalues of degree 2 steps - 1.
        samples: The number of random vectors; the standard error falls as 1/√samples.

    Source: S. Ubaru, J. Chen and Y. Saad (2017), SIAM Journal on Matrix Analysis and Applications 38, 1075-1099.

    Example:
        >>> import numpy as np, func
        >>> A = np.diag(np.arange(1.0, 6.0))
        >>> spectrum = func.lanczos_quadrature(A, func.random.key(0), steps=5, samples=2)
        >>> spectrum.log_determinant().round(8) == np.log(120.0).round(8)
        np.True_
    """
    matrix = _symmetric(operator, "lanczos_quadrature")
    n = matrix.shape[0]
    count = min(_count(steps, "lanczos_quadrature", "steps"), n)
    width = _count(samples, "lanczos_quadrature", "samples")
    if _is_traced(key):
        raise _traced("lanczos_quadrature")
    nodes, weights = np.zeros((width, count)), np.zeros((width, count))
    if n:
        starts = random.rademacher(key, (n, width), dtype_of_draws(matrix.dtype))
        recurrences = _tridiagonal(matrix, starts, count, "lanczos_quadrature")
        for i, size in enumerate(recurrences.sizes):
            values, vectors = _eigenpairs(recurrences.alpha[:size, i], recurrences.beta[: size - 1, i])
            nodes[i] = values[-1]  # the nodes without weight
            nodes[i, :size] = values
            weights[i, :size] = n * vectors[0] ** 2
    return LanczosQuadrature(nodes, weights, n)


def _eigenpairs(diagonal: Any, off_diagonal: Any) -> tuple[Any, Any]:
    if not len(diagonal):
        return np.zeros(0), np.zeros((0, 0))
    return eigh_tridiagonal(diagonal, off_diagonal)  # type: ignore[no-any-return]


class _Tridiagonals(NamedTuple):
    """The recurrences from several vectors, one in each column."""

    alpha: Any
    beta: Any
    """With the norm of the remainder last."""
    vectors: Any
    """Of shape (steps, n, columns)."""
    sizes: Any
    """The number of steps from each vector until its invariant subspace."""


def _tridiagonal(matrix: Any, starts: Any, steps: int, name: str) -> _Tridiagonals:
    """Lanczos' method with full reorthogonalization from each column."""
    n, width = starts.shape
    dtype = np.result_type(matrix.dtype, np.float32)
    alpha, beta = np.zeros((steps, width)), np.zeros((steps, width))
    vectors = np.zeros((steps, n, width), dtype)
    sizes = np.full(width, steps)
    w = (starts / np.max(abs(starts), axis=0, initial=0)).astype(dtype)
    norms = _norms(w)
    is_going = norms > 0
    scale = np.zeros(width)
    for j in range(steps):
        vectors[j] = np.where(is_going, w / np.where(is_going, norms, 1).astype(dtype), 0)
        product = matrix.matmat(vectors[j])
        if not np.isfinite(product).all():
            raise ArgumentError(f"func.{name}: a product with the operator is NaN or infinite")
        alpha[j] = np.sum(vectors[j] * product, axis=0)
        w = product
        for _ in range(2):  # once leaves an error of the size of the cancellation
            overlaps = np.einsum("jnk,nk->jk", vectors[: j + 1], w)
            w = w - np.einsum("jnk,jk->nk", vectors[: j + 1], overlaps)
        norms = _norms(w)
        scale = np.maximum(scale, abs(alpha[j]) + norms)
        is_invariant = norms <= 10 * np.finfo(dtype).eps * math.sqrt(n) * scale
        sizes = np.where(is_going & is_invariant, j + 1, sizes)
        is_going &= ~is_invariant
        beta[j] = np.where(is_going, norms, 0)
        if not is_going.any():
            break
    return _Tridiagonals(alpha, beta, vectors, sizes)


def dtype_of_draws(dtype: Any) -> np.dtype[Any]:
    """The dtype of random numbers for an operator: at most double precision."""
    return np.dtype(dtype) if np.dtype(dtype).itemsize <= 8 else np.dtype(np.float64)


def _norms(columns: Any) -> Any:
    """The norms of columns, also where squares would overflow or vanish."""
    largest = np.max(abs(columns), axis=0, initial=0)
    return largest * np.linalg.norm(columns / np.where(largest > 0, largest, 1), axis=0)


def _symmetric(operator: Any, name: str) -> Any:
    """A symmetric operator of SciPy, with a dtype."""
    if _is_traced(operator):
        raise _traced(name)
    if not isinstance(operator, LinearOperator):
        operator = operator if issparse(operator) else np.asarray(operator)
        if operator.ndim != 2 or operator.dtype.kind not in "fiub":
            raise ArgumentError(
                f"func.{name} takes a linear operator or a real matrix, not an array of shape {operator.shape} and "
                f"dtype {operator.dtype}"
            )
        operator = operator if operator.dtype.kind == "f" else operator.astype(float)
        if operator.shape[0] == operator.shape[1] and operator.shape[0]:
            difference = abs(operator - operator.T).max()
            if difference > 1e3 * np.finfo(operator.dtype).eps * abs(operator).max():
                raise ArgumentError(f"func.{name} needs a symmetric matrix, but A and A.T differ by {difference:.3g}")
        operator = aslinearoperator(operator)
    if operator.shape[0] != operator.shape[1]:
        raise ArgumentError(
            f"func.{name} needs a square operator, not one of shape {operator.shape}; A.T @ A is square and symmetric"
        )
    if isinstance(operator, CurvatureOperator) and not operator.is_symmetric:
        raise ArgumentError(f"func.{name} needs a symmetric operator, not a Jacobian; A.T @ A is symmetric")
    if np.dtype(operator.dtype).kind == "c":
        raise ArgumentError(f"func.{name} takes real operators only, not {operator.dtype}")
    return operator


def _is_traced(value: Any) -> bool:
    return type(value) is Tracer or (
        isinstance(value, LinearOperator) and bool(Closure(functools.partial(_nothing, value)).values)
    )


def _nothing(value: Any) -> None:
    """A function for its argument."""


def _traced(name: str) -> UnsupportedFunctionError:
    return UnsupportedFunctionError(
        f"func.{name} takes no traced values: its result has no derivative\n"
        "Make the operator at func.stop_gradient(...) of the point outside of func.jit and func.vmap, or take "
        "np.linalg.eigh of func.hessian(f)(x)."
    )


def _count(value: Any, name: str, what: str) -> int:
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
        raise ArgumentError(f"func.{name}: {what} must be a positive int, not {value!r}")
    return int(value)
