"""Norms, powers and exponentials of sparse matrices, and least squares."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as _scipy
import scipy.sparse.linalg as _linalg

from func import linalg as _dense
from func.host.scipy_hooks import holds_traced, original
from func.interpreters.core import Array, Aval, dtype_of, known_value, shape_of
from func.interpreters.core.errors import UnsupportedFunctionError
from func.interpreters.host.source import at_line
from func.interpreters.primitives.elementwise.table import root_power
from func.interpreters.primitives.linalg.sparse import sparse_solve
from func.numpy.facts import root
from func.scipy.kinds.traces import numpy_with, traces
from func.scipy.kinds.versions import version_of
from func.scipy.sparse.entry_arithmetic import as_dense
from func.scipy.sparse.linalg.eigen import Entries, product_at
from func.scipy.sparse.linalg.linear_maps import matrix_numbers, operator_holds_traced, refuse_operators, unwrapped
from func.scipy.sparse.patterns import canonical, lifted, ones_like, scipy_class
from func.scipy.sparse.traced_matrices import CLASSES
from func.transforms.custom import custom_jvp, stop_gradient
from func.transforms.forward import jvp
from func.transforms.outside import pure_callback

norm = traces(_linalg.norm, sqrt=root, np=numpy_with(power=root_power))
"""Norms of zeros have derivative zero."""


def onenormest(A: Any, t: int = 2, itmax: int = 5, compute_v: bool = False, compute_w: bool = False) -> Any:
    """scipy.sparse.linalg.onenormest of a traced matrix: the norm of A v for the v that SciPy finds."""
    function = original(_linalg.onenormest)
    A = unwrapped(A)
    refuse_operators("onenormest", A)
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


@version_of(_linalg.expm)
def expm(A: Any) -> Any:
    """scipy.sparse.linalg.expm of a traced matrix; all elements of the exponential of a sparse one are entries."""
    if not _scipy.issparse(A):
        return _dense.expm(as_dense(A))
    return CLASSES[scipy_class(A).__name__](_dense.expm(A.toarray()))


THETA = {
    5: 2.4e-3, 10: 1.44e-1, 15: 6.41e-1, 20: 1.44, 25: 2.43, 30: 3.54, 35: 4.7, 40: 6.0, 45: 7.2, 50: 8.5, 55: 9.9,
}  # fmt: skip
"""The norms for which a Taylor polynomial of a degree is exact in double precision.

Source: A. Al-Mohy and N. Higham (2011), SIAM J. Sci. Comput. 33(2), table 3.1."""


def _exponential_action(A: Any, B: Array, t: float) -> Array:
    """exp(t A) B by scaling and Taylor polynomials; the norm of the known numbers determines the degree."""
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
    A = unwrapped(A)
    refuse_operators("expm_multiply", A)
    if not (holds_traced(A) or holds_traced(B)):
        return original(_linalg.expm_multiply)(A, B, start, stop, num, endpoint, traceA)
    refuse_operators("expm_multiply", A, even_plain=True)
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


def _least_squares(A: Any, numbers: Array, b: Array, damp: Array, is_damped: bool) -> Array:
    """The x that minimises |A x - b|² + damp² |x|², the one with the least norm, by a sparse symmetric system."""
    place = Entries(A)
    m, n = place.shape
    data = place.of(numbers)
    dtype = np.result_type(dtype_of(data), dtype_of(b), np.float32)
    is_tall = m >= n or is_damped
    lead, tail = (m, n) if is_tall else (n, m)
    i, j = (place.rows, place.cols) if is_tall else (place.cols, place.rows)
    here = data if is_tall else np.conjugate(data)
    rows = np.concatenate([np.arange(lead), i, lead + j, lead + np.arange(tail)]).astype(np.int64)
    cols = np.concatenate([np.arange(lead), lead + j, i, lead + np.arange(tail)]).astype(np.int64)
    shift = np.full(tail, -1.0) * damp**2 if is_tall else np.zeros(tail)
    values = np.concatenate([np.ones(lead, dtype), here, np.conjugate(here), shift]).astype(dtype)
    zeros = np.zeros(n, dtype)
    right = np.concatenate([b, zeros] if is_tall else [zeros, b])
    x = sparse_solve(values, rows, cols, right[:, None], adjoint=False, strict=False, options=())[:, 0]
    return x[m:] if is_tall else x[:n]


SETTINGS = {
    "lsqr": ("atol", "btol", "conlim", "iter_lim", "show", "calc_var", "x0"),
    "lsmr": ("atol", "btol", "conlim", "maxiter", "show", "x0"),
}
"""The parameters after damp."""


def _least_squares_solver(name: str) -> Callable[..., Any]:
    is_lsqr = name == "lsqr"

    def solver(A: Any, b: Any, damp: float = 0.0, *args: Any, **options: Any) -> Any:
        function = original(getattr(_linalg, name))
        settings = dict(zip(SETTINGS[name], args, strict=False)) | options
        start = settings.pop("x0", None)
        A = unwrapped(A)
        is_operator = isinstance(A, _linalg.LinearOperator)
        is_plain = not (is_operator and operator_holds_traced(A)) and not holds_traced((A, b, start, damp))
        if is_plain:
            return function(A, b, damp, x0=start, **settings)
        refuse_operators(name, A, even_plain=True)
        A = A if _scipy.issparse(A) else as_dense(A)
        make, numbers = matrix_numbers(A)
        m, n = A.shape
        side = np.reshape(as_dense(b), -1)
        if shape_of(side) != (m,):
            raise ValueError(f"shapes of A {A.shape} and b {shape_of(b)} are incompatible")
        kind = np.result_type(dtype_of(numbers), dtype_of(side), np.float64 if is_lsqr else np.float32)
        first = np.zeros(n) if start is None else as_dense(start)
        damping = as_dense(damp)
        is_damped = holds_traced(damp) or bool(damp)
        real, whole = np.dtype(np.float64), np.dtype(np.int64)
        outs = (Aval((n,), kind), Aval((2,), whole), *[Aval((), real) for _ in range(6 if is_lsqr else 5)])
        outs += (Aval((n,), real),) if is_lsqr else ()

        def on_numbers(a: Any, b: Any, x0: Any, damp: Any) -> Any:
            guess = {} if start is None else {"x0": x0}
            x, istop, itn, *rest = function(make(a), b, float(damp), **settings, **guess)
            return (x.astype(kind), np.array([istop, itn]), *[np.asarray(value, real) for value in rest])

        @custom_jvp
        def solution(a: Array, b: Array, x0: Array, damp: Array) -> Any:
            return pure_callback(on_numbers, outs, a, b, x0, damp, vmap_method="sequential")[0]

        @solution.defjvp
        def solution_jvp(primals: Any, tangents: Any) -> Any:
            def exact(a: Array, b: Array, x0: Array, damp: Array) -> Array:
                place = Entries(A)
                rest = b - product_at(place, place.of(a), x0[:, None])[:, 0]
                return (x0 + _least_squares(A, a, rest, damp, is_damped)).astype(kind)

            return solution(*primals), jvp(exact, primals, tangents)[1]

        x = solution(numbers, side, first, damping)
        plain = [stop_gradient(value) for value in (numbers, side, first, damping)]
        _, counts, *rest = pure_callback(on_numbers, outs, *plain, vmap_method="sequential")
        moving, way = side - A @ x, x - first
        adjoint = A.conj().T if _scipy.issparse(A) else np.conjugate(A.T)
        gradient = adjoint @ moving - damping**2 * way
        length = np.linalg.norm(moving)
        damped = np.sqrt(length**2 + damping**2 * np.linalg.norm(way) ** 2) if is_damped else length
        size = np.linalg.norm(Entries(A).of(numbers))
        frobenius = np.sqrt(size**2 + counts[1] * damping**2) if is_lsqr and is_damped else size
        steepness = np.linalg.norm(gradient)
        if is_lsqr:
            exact = [length, damped, frobenius, None, steepness, np.linalg.norm(way)]
            variances = _variances(A, damping) if settings.get("calc_var") else np.zeros(n)
            exact.append(variances)
        else:
            exact = [damped, steepness, frobenius, None, np.linalg.norm(x)]
        of = (numbers, side, damping, first)
        return (x, counts[0], counts[1], *[_with_slope(v, e, size, of) for v, e in zip(rest, exact, strict=True)])

    solver.__name__ = solver.__qualname__ = name
    solver.__doc__ = (
        f"scipy.sparse.linalg.{name} of plain and traced A, b, damp and x0.\n\n"
        "The derivative is that of the exact solution of a matrix of full rank, also of the norms and variances. The\n"
        "estimate of the condition has NaN as its derivative; so have the norm of A and the variances where the\n"
        "iteration stopped before its estimates were exact."
    )
    return solver


def _variances(A: Any, damp: Array) -> Array:
    """The diagonal of (Aᴴ A + damp² 1)⁻¹."""
    dense = A.toarray() if _scipy.issparse(A) else A
    return np.real(np.diagonal(np.linalg.inv(np.conjugate(dense.T) @ dense + damp**2 * np.eye(A.shape[1]))))


def _with_slope(value: Array, exact: Any, size: Array, of: Any) -> Array:
    """A number of SciPy with the derivative of the exact one; NaN without one, or where the numbers differ."""
    if exact is None:
        return _estimate(value, *of)
    known = stop_gradient(exact)
    is_same = np.abs(value - known) <= 1e-6 * (np.abs(known) + stop_gradient(size))
    return value + (exact - known) * np.where(is_same, 1, np.nan)


@custom_jvp
def _estimate(value: Array, *arguments: Array) -> Array:
    """A number whose dependence on the arguments is unknown: its derivative is NaN."""
    return value


@_estimate.defjvp
def _estimate_jvp(primals: Any, tangents: Any) -> Any:
    return _estimate(*primals), np.nan * sum([np.sum(np.real(rate)) for rate in tangents])


lsqr, lsmr = _least_squares_solver("lsqr"), _least_squares_solver("lsmr")


def is_sptriangular(A: Any) -> Any:
    """scipy.sparse.linalg.is_sptriangular of the pattern."""
    return original(_linalg.is_sptriangular)(ones_like(lifted(A)) if holds_traced(A) else A)


def spbandwidth(A: Any) -> Any:
    """scipy.sparse.linalg.spbandwidth of the pattern."""
    return original(_linalg.spbandwidth)(ones_like(lifted(A)) if holds_traced(A) else A)
