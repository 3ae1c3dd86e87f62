"""Norms, powers and exponentials of sparse matrices, and least squares."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as _scipy
import scipy.sparse.linalg as _linalg

from func import linalg as _dense
from func.interpreters.core import Array, Aval, dtype_of, known_value, shape_of
from func.interpreters.core.errors import UnsupportedFunctionError
from func.interpreters.core.source import at_line
from func.interpreters.primitives.linalg.sparse import sparse_solve
from func.scipy.doors import holds_traced, original
from func.scipy.sparse.linalg.eigen import Entries, product_at, svds
from func.scipy.sparse.linalg.iterative import matrix_numbers
from func.scipy.sparse.patterns import canonical, entries, lifted, ones_like, scipy_class
from func.scipy.sparse.traced_matrices import CLASSES, as_dense, known
from func.transforms.custom import custom_jvp, stop_gradient
from func.transforms.forward import jvp
from func.transforms.outside import pure_callback


def norm(x: Any, ord: Any = None, axis: Any = None) -> Array:
    """scipy.sparse.linalg.norm of plain and traced matrices; the Frobenius norm of zeros has derivative zero."""
    if not holds_traced(x):
        return original(_linalg.norm)(x, ord, axis)
    if not _scipy.issparse(x):
        raise TypeError("input is not sparse. use numpy.linalg.norm")
    own = canonical(lifted(x))
    if axis is None and ord in (None, "fro", "f"):
        return np.linalg.norm(entries(own)[1])
    if axis is not None and not isinstance(axis, tuple):
        if int(axis) != axis:
            raise TypeError("'axis' must be None, an integer or a tuple of integers")
        axis = (int(axis),)
    axes = tuple(range(own.ndim)) if axis is None else axis
    if not all([-own.ndim <= one < own.ndim for one in axes]):
        raise ValueError(f"Invalid axis {axis!r} for an array with shape {own.shape!r}")
    if len(axes) == 1:
        return _vector_norm(own, ord, axes[0])
    if len(axes) != 2:
        raise ValueError("Improper number of dimensions to norm.")
    if axes[0] % own.ndim == axes[1] % own.ndim:
        raise ValueError("Duplicate axes given.")
    return _matrix_norm(own, ord, axes)


def _matrix_norm(own: Any, ord: Any, axes: Any) -> Array:
    if ord in (None, "f", "fro"):
        return np.linalg.norm(entries(own)[1])
    if ord == 2:
        return svds(own, k=1, solver="arpack", return_singular_vectors=False)[0]
    if ord == -2:
        raise NotImplementedError
    if ord in (1, -1, np.inf, -np.inf):
        sums = np.reshape(abs(own).sum(axis=axes[0] if abs(ord) == 1 else axes[1]), -1)
        return np.max(sums) if ord > 0 else np.min(sums)
    raise ValueError("Invalid norm order for matrices.")


def _vector_norm(own: Any, ord: Any, axis: int) -> Array:
    if ord in (np.inf, -np.inf):
        raise UnsupportedFunctionError(
            f"norm with ord={ord} along an axis has no version for traced entries{at_line()}\n"
            f"Write np.linalg.norm(x.toarray(), {ord}, axis={axis})."
        )
    if ord == 0:
        return np.ravel((known(own) != 0).sum(axis=axis))
    if isinstance(ord, str):
        raise ValueError("Invalid norm order for vectors.")
    if ord == 1:
        return np.reshape(abs(own).sum(axis=axis), -1)
    power = 2 if ord is None else ord
    sums = np.reshape(abs(own).power(power).sum(axis=axis), -1)
    is_positive = sums > 0
    safe = np.where(is_positive, sums, 1)
    root = np.sqrt(safe) if power == 2 else np.power(safe, 1 / power)
    return np.where(is_positive, root, 0)


def onenormest(A: Any, t: int = 2, itmax: int = 5, compute_v: bool = False, compute_w: bool = False) -> Any:
    """scipy.sparse.linalg.onenormest of a traced matrix: the norm of A v for the v that SciPy finds."""
    function = original(_linalg.onenormest)
    if not holds_traced(A):
        return function(A, t, itmax, compute_v, compute_w)
    A = A if _scipy.issparse(A) else as_dense(A)
    make, numbers = matrix_numbers(A)
    n = A.shape[0]

    def found(a: Any) -> Any:
        return np.asarray(function(make(a), t, itmax, True, False)[1], np.float64)

    out = Aval((n,), np.dtype(np.float64))
    v = pure_callback(found, out, stop_gradient(numbers), vmap_method="sequential")
    w = A @ v
    estimate = np.sum(np.abs(w))
    if not (compute_v or compute_w):
        return estimate
    return (estimate, *([v] if compute_v else []), *([w] if compute_w else []))


def expm(A: Any) -> Any:
    """scipy.sparse.linalg.expm of a traced matrix; all elements of the exponential of a sparse one are entries."""
    if not holds_traced(A):
        return original(_linalg.expm)(A)
    if not _scipy.issparse(A):
        return _dense.expm(as_dense(A))
    return CLASSES[scipy_class(A).__name__](_dense.expm(A.toarray()))


THETA = {
    5: 2.4e-3, 10: 1.44e-1, 15: 6.41e-1, 20: 1.44, 25: 2.43, 30: 3.54, 35: 4.7, 40: 6.0, 45: 7.2, 50: 8.5, 55: 9.9,
}  # fmt: skip
"""The norms for which a Taylor polynomial of a degree is exact in double precision. Source: A. Al-Mohy and N. Higham
(2011), SIAM J. Sci. Comput. 33(2), table 3.1."""


def _exponential_action(A: Any, B: Array, t: float) -> Array:
    """exp(t A) B by scaling and Taylor polynomials, whose degree follows from the norm of the known numbers."""
    numbers = known_value(A.data if _scipy.issparse(A) else A)
    if numbers is None:
        raise UnsupportedFunctionError(
            f"expm_multiply chooses its steps by the norm of A, which is not known while func.jit traces{at_line()}\n"
            "Let A be known (not an argument of the jitted function), or use scipy.linalg.expm(A) @ B."
        )
    n = A.shape[0]
    diagonal = A.diagonal() if _scipy.issparse(A) else np.diagonal(A)
    shift = np.sum(diagonal) / n
    absolute = np.abs(np.asarray(numbers))
    if _scipy.issparse(A):
        own = canonical(lifted(A))
        sums = [_column_sums(own, row) for row in absolute.reshape(-1, *shape_of(A.data))]
    else:
        sums = [part.sum(axis=0) for part in absolute.reshape(-1, n, n)]
    size = abs(t) * 2 * max([float(np.max(part, initial=0)) for part in sums], default=0.0)
    if not math.isfinite(size):
        raise ValueError("array must not contain infs or NaNs")
    degree, steps = min(
        [(m, max(1, math.ceil(size / theta))) for m, theta in THETA.items()], key=lambda pair: pair[0] * pair[1]
    )
    h = t / steps
    growth = np.exp(h * shift)
    for _ in range(steps):
        term = total = B
        for j in range(1, degree + 1):
            term = (A @ term - shift * term) * (h / j)
            total = total + term
        B = growth * total
    return B


def _column_sums(own: Any, absolute: Any) -> Any:
    place = Entries(own)
    return np.bincount(place.cols, np.ravel(place.of(absolute)), minlength=own.shape[1])


def expm_multiply(
    A: Any, B: Any, start: Any = None, stop: Any = None, num: Any = None, endpoint: Any = None, traceA: Any = None
) -> Array:
    """scipy.sparse.linalg.expm_multiply of plain and traced A and B, at one or several times."""
    if not (holds_traced(A) or holds_traced(B)):
        return original(_linalg.expm_multiply)(A, B, start, stop, num, endpoint, traceA)
    if isinstance(A, _linalg.LinearOperator):
        raise UnsupportedFunctionError(
            f"expm_multiply of a linear operator has no version for traced values{at_line()}\n"
            "Give the sparse matrix itself."
        )
    A, B = A if _scipy.issparse(A) else as_dense(A), B.toarray() if _scipy.issparse(B) else as_dense(B)
    if len(A.shape) != 2 or A.shape[0] != A.shape[1]:
        raise ValueError("expected A to be like a square matrix")
    if A.shape[1] != shape_of(B)[0]:
        raise ValueError(f"shapes of matrices A {A.shape} and B {shape_of(B)} are incompatible")
    if start is None and stop is None and num is None and endpoint is None:
        return _exponential_action(A, B, 1.0)
    if start is None or stop is None:
        raise UnsupportedFunctionError("expm_multiply needs both start and stop for several times")
    times, step = np.linspace(
        start, stop, 50 if num is None else num, endpoint=True if endpoint is None else endpoint, retstep=True
    )
    states = [_exponential_action(A, B, float(times[0]))]
    for _ in times[1:]:
        states.append(_exponential_action(A, states[-1], float(step)))
    return np.stack(states)


def _least_squares(A: Any, numbers: Array, b: Array, damp: float) -> Array:
    """The x that minimizes |A x - b|² + damp² |x|², of those with the least norm, by a sparse symmetric system."""
    place = Entries(A)
    m, n = place.shape
    data = place.of(numbers)
    dtype = np.result_type(dtype_of(data), dtype_of(b), np.float32)
    is_tall = m >= n or damp != 0
    lead, tail = (m, n) if is_tall else (n, m)
    i, j = (place.rows, place.cols) if is_tall else (place.cols, place.rows)
    here = data if is_tall else np.conjugate(data)
    rows = np.concatenate([np.arange(lead), i, lead + j, lead + np.arange(tail)]).astype(np.int64)
    cols = np.concatenate([np.arange(lead), lead + j, i, lead + np.arange(tail)]).astype(np.int64)
    shift = np.full(tail, -(damp**2) if is_tall else 0.0)
    values = np.concatenate([np.ones(lead, dtype), here, np.conjugate(here), shift])
    zeros = np.zeros(n, dtype)
    right = np.concatenate([b, zeros] if is_tall else [zeros, b])
    x = sparse_solve(values, rows, cols, right[:, None], adjoint=False, strict=False, options=())[:, 0]
    return x[m:] if is_tall else x[:n]


def _least_squares_solver(name: str, count: int) -> Callable[..., Any]:
    def solver(A: Any, b: Any, damp: float = 0.0, *args: Any, **options: Any) -> Any:
        function = original(getattr(_linalg, name))
        start = options.get("x0")
        if not (holds_traced(A) or holds_traced(b) or holds_traced(start)):
            return function(A, b, damp, *args, **options)
        if isinstance(A, _linalg.LinearOperator) or holds_traced(damp):
            raise UnsupportedFunctionError(
                f"{name} with traced values takes a matrix, not a linear operator, and a plain damp{at_line()}\n"
                "Give the sparse matrix itself."
            )
        A = A if _scipy.issparse(A) else as_dense(A)
        make, numbers = matrix_numbers(A)
        m, n = A.shape
        side = np.reshape(as_dense(b), -1)
        if shape_of(side) != (m,):
            raise ValueError(f"shapes of A {A.shape} and b {shape_of(b)} are incompatible")
        kind = np.result_type(dtype_of(numbers), dtype_of(side), np.float64 if name == "lsqr" else np.float32)
        first = np.zeros(n) if start is None else as_dense(start)
        real, whole = np.dtype(np.float64), np.dtype(np.int64)
        outs = (Aval((n,), kind), Aval((2,), whole), *[Aval((), real) for _ in range(count)])
        outs += (Aval((n,), real),) if name == "lsqr" else ()
        settings = {key: value for key, value in options.items() if key != "x0"}

        def on_numbers(a: Any, b: Any, x0: Any) -> Any:
            if start is not None:
                settings["x0"] = x0
            x, istop, itn, *rest = function(make(a), b, damp, *args, **settings)
            return (x.astype(kind), np.array([istop, itn]), *[np.asarray(value, real) for value in rest])

        @custom_jvp
        def solution(a: Array, b: Array, x0: Array) -> Any:
            return pure_callback(on_numbers, outs, a, b, x0, vmap_method="sequential")[0]

        @solution.defjvp
        def solution_jvp(primals: Any, tangents: Any) -> Any:
            def exact(a: Array, b: Array, x0: Array) -> Array:
                place = Entries(A)
                return (x0 + _least_squares(A, a, b - product_at(place, place.of(a), x0[:, None])[:, 0], damp)).astype(
                    kind
                )

            return solution(*primals), jvp(exact, primals, tangents)[1]

        x = solution(numbers, side, first)
        plain = [stop_gradient(value) for value in (numbers, side, first)]
        _, counts, *rest = pure_callback(on_numbers, outs, *plain, vmap_method="sequential")
        moving = A @ x - side
        lengths = np.linalg.norm(moving), np.linalg.norm(x)
        if name == "lsqr":
            rest[0] = _replaced(rest[0], lengths[0])
            rest[1] = _replaced(rest[1], np.sqrt(lengths[0] ** 2 + damp**2 * lengths[1] ** 2))
            rest[5] = _replaced(rest[5], lengths[1])
        else:
            rest[0], rest[4] = _replaced(rest[0], lengths[0]), _replaced(rest[4], lengths[1])
        return (x, counts[0], counts[1], *rest)

    solver.__name__ = solver.__qualname__ = name
    solver.__doc__ = (
        f"scipy.sparse.linalg.{name} of plain and traced A and b. The derivative is that of the exact solution of a\n"
        "matrix of full rank; estimates of norms and conditions have none."
    )
    return solver


def _replaced(value: Array, exact: Array) -> Array:
    """A number of SciPy's with the derivative of the exact one."""
    return value + (exact - stop_gradient(exact))


lsqr, lsmr = _least_squares_solver("lsqr", 6), _least_squares_solver("lsmr", 5)


def is_sptriangular(A: Any) -> Any:
    """scipy.sparse.linalg.is_sptriangular of the pattern."""
    return original(_linalg.is_sptriangular)(ones_like(lifted(A)) if holds_traced(A) else A)


def spbandwidth(A: Any) -> Any:
    """scipy.sparse.linalg.spbandwidth of the pattern."""
    return original(_linalg.spbandwidth)(ones_like(lifted(A)) if holds_traced(A) else A)
