"""Functions of square matrices and Sylvester equations.

A function f of matrices has the Fréchet derivative L(A, E) at A in the direction E, which f itself shows of a matrix of
twice the size: f([[A, E], [0, A]]) = [[f(A), L(A, E)], [0, f(A)]]. Source: R. Mathias (1996), "A chain rule for matrix
functions and applications", SIAM J. Matrix Anal. Appl. 17, theorem 2.1.

Here L is a row of its own, linear in E. Differentiating the identity by A gives the next order as L at the matrix of
twice the size in the direction diag(dA, dA), so that every order is available; as f(Aᴴ) = f(A)ᴴ, the adjoint of
L(A, ·) is L(Aᴴ, ·).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func.interpreters.core import ZERO, Array, Aval, Shaped, shape_of
from func.interpreters.primitives.elementwise import negative
from func.interpreters.primitives.kinds import Row, add_tangents, general, leading_axes, zeros_like
from func.interpreters.primitives.matrices import block, complex_dtype, float_dtype, mH, mm
from func.interpreters.primitives.routines import aval_from, has_routine, over_stack, routine
from func.interpreters.primitives.structural import concatenate, convert, fit_cotangent


def two_by_two(a: Array, e: Array, d: Array) -> Array:
    """[[a, e], [0, d]]."""
    rank = len(shape_of(a))
    above = concatenate(a, e, axis=rank - 1)
    below = concatenate(zeros_like(a), d, axis=rank - 1)
    return concatenate(above, below, axis=rank - 2)


def upper_right(x: Array) -> Array:
    """The upper right quarter."""
    n = shape_of(x)[-1] // 2
    return block(x, (0, n), (n, 2 * n))


def _shape_dtype(dtype: Callable[[np.dtype[Any]], np.dtype[Any]]) -> Callable[..., Aval]:
    def aval(*arrays: Aval, **params: Any) -> Aval:
        return Aval(arrays[0].shape, dtype(np.result_type(*[float_dtype(a.dtype) for a in arrays])))

    return aval


def matrix_function(
    name: str,
    one: Callable[..., Array],
    *,
    dtype: Callable[[np.dtype[Any]], np.dtype[Any]] = float_dtype,
    direction: Callable[..., Array] | None = None,
    stacked: bool = False,
) -> tuple[Row, Row]:
    """The rows of f and of its derivative L. `one(xp, a, **params)` is f of one matrix (of a stack, if `stacked`),
    `direction(xp, a, e, **params)` L where the backend has a better way, scipy.linalg.<name>_frechet."""
    aval = _shape_dtype(dtype)

    def impl(xp: Any, a: Array, **params: Any) -> Array:
        out = aval(aval_from(a))
        if a.size == 0:
            return xp.empty(out.shape, out.dtype)
        if stacked:
            return one(xp, a, **params).astype(out.dtype, copy=False)
        return over_stack(xp, lambda matrix: (one(xp, matrix, **params),), (a,), (out,), (2,))[0]

    def frechet_impl(xp: Any, a: Array, e: Array, **params: Any) -> Array:
        out = aval(aval_from(a), aval_from(e))
        if a.size == 0:
            return xp.empty(out.shape, out.dtype)
        if direction is not None and has_routine(xp, f"{name}_frechet"):
            known = direction
            return over_stack(xp, lambda *pair: (known(xp, *pair, **params),), (a, e), (out,), (2, 2))[0]
        return over_stack(xp, lambda *pair: (_doubled(xp, one, *pair, **params),), (a, e), (out,), (2, 2))[0]

    def jvp(primals: Sequence[Array], tangents: Sequence[Any], **params: Any) -> tuple[Array, Array]:
        """df = L(A, dA)."""
        (a,), (da,) = primals, tangents
        return row(a, **params), frechet(a, da, **params)

    def frechet_jvp(primals: Sequence[Array], tangents: Sequence[Any], **params: Any) -> tuple[Array, Any]:
        """dL(A, E) = L(A, dE) + the upper right quarter of L([[A, E], [0, A]], diag(dA, dA))."""
        (a, e), (da, de) = primals, tangents
        first: Any = ZERO if de is ZERO else frechet(a, de, **params)
        if da is not ZERO:
            kind = np.result_type(*[x.dtype for x in (a, e, da)])
            a, e, da = [x if x.dtype == kind else convert(x, dtype=kind) for x in (a, e, da)]
            second = frechet(two_by_two(a, e, a), two_by_two(da, zeros_like(da), da), **params)
            first = add_tangents(first, upper_right(second))
        return frechet(primals[0], primals[1], **params), first

    def transpose(ct: Array, a: Array, e: Shaped, **params: Any) -> tuple[Any, Array]:
        return ZERO, fit_cotangent(frechet(mH(a), ct, **params), e)

    row = general(name, impl, aval=aval, batch=leading_axes(name), jvp=jvp)
    frechet = general(
        f"{name}_frechet",
        frechet_impl,
        aval=aval,
        batch=leading_axes(f"{name}_frechet"),
        jvp=frechet_jvp,
        transpose=transpose,
    )
    return row, frechet


def _doubled(xp: Any, one: Callable[..., Array], a: Array, e: Array, **params: Any) -> Array:
    """L(A, E) by the matrix of twice the size, E scaled to A's size so that neither drowns the other."""
    size, length = xp.linalg.norm(a).item(), xp.linalg.norm(e).item()
    scale = size / length if size and length else 1.0
    n = a.shape[-1]
    dtype = np.result_type(a.dtype, e.dtype)
    both = xp.zeros((2 * n, 2 * n), dtype)
    both[:n, :n] = a
    both[n:, n:] = a
    both[:n, n:] = e * dtype.type(scale)
    return one(xp, both, **params)[:n, n:] / scale


# --- the exponential --------------------------------------------------------------------------------------------


def _expm(xp: Any, a: Array) -> Array:
    return routine(xp, "expm")(a)


def _expm_direction(xp: Any, a: Array, e: Array) -> Array:
    """The scaling, Padé approximation and squaring of both at once.

    Source: A. Al-Mohy and N. Higham (2009), "Computing the Fréchet derivative of the matrix exponential, with an
    application to condition number estimation", SIAM J. Matrix Anal. Appl. 30, algorithm 6.4.
    """
    return routine(xp, "expm_frechet")(a, e, compute_expm=False, check_finite=False)


expm, expm_frechet = matrix_function("expm", _expm, direction=_expm_direction, stacked=True)
"""exp(A) and its derivative L(A, E)."""


# --- logarithm and powers ---------------------------------------------------------------------------------------


def _logm(xp: Any, a: Array) -> Array:
    """Single precision is computed in double: SciPy measures the error of every logarithm in double precision."""
    return routine(xp, "logm")(a.astype(np.result_type(a.dtype, np.float64), copy=False))


logm, logm_frechet = matrix_function("logm", _logm, dtype=complex_dtype)
"""The principal logarithm, always complex, and its derivative."""


def _power(xp: Any, a: Array, *, exponent: float) -> Array:
    return routine(xp, "fractional_matrix_power")(a, exponent)


matrix_power, matrix_power_frechet = matrix_function("fractional_matrix_power", _power, dtype=complex_dtype)
"""The principal power A^exponent, always complex, and its derivative."""


# --- Sylvester equations ----------------------------------------------------------------------------------------


def _sylvester_aval(a: Aval, b: Aval, q: Aval, **params: Any) -> Aval:
    return Aval(q.shape, np.result_type(float_dtype(a.dtype), b.dtype, q.dtype))


def _sylvester_impl(xp: Any, a: Array, b: Array, q: Array, *, drop: bool) -> Array:
    out = _sylvester_aval(aval_from(a), aval_from(b), aval_from(q))
    if q.size == 0:
        return xp.empty(out.shape, out.dtype)
    if not has_routine(xp, "solve_sylvester"):
        return over_stack(xp, lambda *three: (_by_kronecker(xp, *three),), (a, b, q), (out,), (2, 2, 2))[0]
    solver = routine(xp, "solve_sylvester")

    def one(a: Array, b: Array, q: Array) -> tuple[Array]:
        if drop and _meets_zero(xp, a, b):
            return (_by_pseudo_inverse(xp, a, b, q),)
        return (solver(a, b, q),)

    return over_stack(xp, one, (a, b, q), (out,), (2, 2, 2))[0]


def _kronecker(xp: Any, a: Array, b: Array) -> Array:
    return xp.kron(a, xp.eye(b.shape[0], dtype=b.dtype)) + xp.kron(xp.eye(a.shape[0], dtype=a.dtype), xp.transpose(b))


def _by_kronecker(xp: Any, a: Array, b: Array, q: Array) -> Array:
    return xp.linalg.solve(_kronecker(xp, a, b), q.reshape(-1, 1)).reshape(q.shape)


def _by_pseudo_inverse(xp: Any, a: Array, b: Array, q: Array) -> Array:
    system = _kronecker(xp, a, b)
    limit = float(np.finfo(system.dtype).eps) * 16 * system.shape[0]
    return (xp.linalg.pinv(system, limit) @ q.reshape(-1, 1)).reshape(q.shape)


def _meets_zero(xp: Any, a: Array, b: Array) -> bool:
    """Whether an eigenvalue of A and one of -B agree up to rounding: the solution is not determined then."""
    sums = xp.linalg.eigvals(a)[:, None] + xp.linalg.eigvals(b)
    largest: float = xp.max(xp.abs(sums)).item()
    smallest: float = xp.min(xp.abs(sums)).item()
    return bool(smallest <= float(np.finfo(a.dtype).eps) * 16 * a.shape[0] * largest)


def _sylvester_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, drop: bool) -> tuple[Array, Any]:
    """A dX + dX B = dQ - dA X - X dB. Source: the product rule; M. Giles (2008), section 2.2, for B = 0."""
    (a, b, q), (da, db, dq) = primals, tangents
    x = sylvester(a, b, q, drop=drop)
    right = dq
    if da is not ZERO:
        right = add_tangents(right, negative(mm(da, x)))
    if db is not ZERO:
        right = add_tangents(right, negative(mm(x, db)))
    return x, sylvester(a, b, right, drop=drop)


def _sylvester_transpose(ct: Array, a: Array, b: Array, q: Shaped, *, drop: bool) -> tuple[Any, Any, Array]:
    return ZERO, ZERO, fit_cotangent(sylvester(mH(a), mH(b), ct, drop=drop), q)


sylvester: Row = general(
    "sylvester",
    _sylvester_impl,
    aval=_sylvester_aval,
    batch=leading_axes("sylvester"),
    jvp=_sylvester_jvp,
    transpose=_sylvester_transpose,
)
"""X with A X + X B = Q; with `drop` what a singular equation leaves undetermined is zero."""


# --- square root ------------------------------------------------------------------------------------------------


def _sqrtm_aval(a: Aval) -> Aval:
    return Aval(a.shape, complex_dtype(a.dtype))


def _sqrtm_impl(xp: Any, a: Array) -> Array:
    out = _sqrtm_aval(aval_from(a))
    if a.size == 0:
        return xp.empty(out.shape, out.dtype)
    root = routine(xp, "sqrtm")
    return over_stack(xp, lambda matrix: (root(matrix),), (a,), (out,), (2,))[0]


def _sqrtm_jvp(primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[Array, Array]:
    """X dX + dX X = dA; of a singular A the undetermined part is dropped.

    Source: N. Higham (2008), "Functions of Matrices", section 6.1, equation 6.2.
    """
    (a,), (da,) = primals, tangents
    x = sqrtm(a)
    return x, sylvester(x, x, convert(da, dtype=complex_dtype(da.dtype)), drop=True)


sqrtm: Row = general("sqrtm", _sqrtm_impl, aval=_sqrtm_aval, batch=leading_axes("sqrtm"), jvp=_sqrtm_jvp)
"""The principal square root, always complex."""

__all__ = [
    "expm",
    "expm_frechet",
    "logm",
    "logm_frechet",
    "matrix_power",
    "matrix_power_frechet",
    "sqrtm",
    "sylvester",
]
