"""Functions of square matrices and Sylvester equations.

The Fréchet derivative L(A, E) of a matrix function f at A in the direction E is a block of f at a matrix of twice the
size: f([[A, E], [0, A]]) = [[f(A), L(A, E)], [0, f(A)]]. Source: R. Mathias (1996), "A chain rule for matrix
functions and applications", SIAM J. Matrix Anal. Appl. 17, theorem 2.1.

L is a separate linear primitive of E with derivatives of every order: differentiating the identity by A gives the next
one. This is L at the matrix of twice the size, in the direction diag(dA, dA). Since f(Aᴴ) = f(A)ᴴ, the adjoint of
L(A, ·) is L(Aᴴ, ·).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func.backends.array_helpers import spectra
from func.backends.array_helpers.linalg import complex_dtype, float_dtype
from func.interpreters import core
from func.interpreters.core import ZERO, Array, Aval, Params, Primitive, Shaped
from func.interpreters.core.parameters import FINITE, FLAG, NO_PARAMETERS, Kinds
from func.interpreters.primitives import costs
from func.interpreters.primitives.elementwise.builder import negative
from func.interpreters.primitives.linalg.matrices import are_square, block, mH, mm
from func.interpreters.primitives.scipy_functions import reporting_missing
from func.interpreters.primitives.structural.shapes import convert, fit_cotangent
from func.interpreters.primitives.structural.slicing import concatenate


def two_by_two(a: Array, e: Array, d: Array) -> Array:
    """[[a, e], [0, d]]."""
    rank = len(core.shape_of(a))
    above = concatenate(a, e, axis=rank - 1)
    below = concatenate(core.zeros_like(a), d, axis=rank - 1)
    return concatenate(above, below, axis=rank - 2)


def upper_right(x: Array) -> Array:
    """The upper right quarter."""
    n = core.shape_of(x)[-1] // 2
    return block(x, (0, n), (n, 2 * n))


def _shape_dtype(dtype: Callable[[np.dtype[Any]], np.dtype[Any]]) -> Callable[..., Aval]:
    def aval(*arrays: Aval, **params: Any) -> Aval:
        return Aval(arrays[0].shape, dtype(np.result_type(*[float_dtype(a.dtype) for a in arrays])))

    return aval


def matrix_function(
    name: str,
    impl: Callable[..., Array],
    frechet_impl: Callable[..., Array],
    factor: float,
    dtype: Callable[[np.dtype[Any]], np.dtype[Any]] = float_dtype,
    parameters: Kinds = NO_PARAMETERS,
) -> tuple[Primitive, Primitive]:
    """The primitives of f, which takes factor · n³ operations, and of its derivative L."""
    aval = _shape_dtype(dtype)

    def jvp(primals: Sequence[Array], tangents: Sequence[Any], **params: Any) -> tuple[Array, Array]:
        """df = L(A, dA)."""
        (a,), (da,) = primals, tangents
        return function(a, **params), frechet(a, da, **params)

    def frechet_jvp(primals: Sequence[Array], tangents: Sequence[Any], **params: Any) -> tuple[Array, Any]:
        """dL(A, E) = L(A, dE) + the upper right quarter of L([[A, E], [0, A]], diag(dA, dA))."""
        (a, e), (da, de) = primals, tangents
        first: Any = ZERO if de is ZERO else frechet(a, de, **params)
        if da is not ZERO:
            kind = np.result_type(*[x.dtype for x in (a, e, da)])
            a, e, da = [x if x.dtype == kind else convert(x, dtype=kind) for x in (a, e, da)]
            second = frechet(two_by_two(a, e, a), two_by_two(da, core.zeros_like(da), da), **params)
            first = core.add_tangents(first, upper_right(second))
        return frechet(primals[0], primals[1], **params), first

    def transpose(ct: Array, a: Array, e: Shaped, **params: Any) -> tuple[Any, Array]:
        return ZERO, fit_cotangent(frechet(mH(a), ct, **params), e)

    function = core.general(
        name,
        reporting_missing(impl),
        aval=aval,
        parameters=parameters,
        fits=are_square,
        batch=core.leading_axes(name),
        jvp=jvp,
        cost=costs.cubic(factor),
    )
    frechet = core.general(
        f"{name}_frechet",
        reporting_missing(frechet_impl),
        aval=aval,
        parameters=parameters,
        fits=are_square,
        batch=core.leading_axes(f"{name}_frechet"),
        jvp=frechet_jvp,
        transpose=transpose,
        cost=costs.cubic(3 * factor),
    )
    return function, frechet


expm, expm_frechet = matrix_function("expm", spectra.expm, spectra.expm_frechet, 16)
"""exp(A) and its derivative L(A, E)."""
logm, logm_frechet = matrix_function("logm", spectra.logm, spectra.logm_frechet, 50, complex_dtype)
"""The principal logarithm, always complex, and its derivative."""
matrix_power, matrix_power_frechet = matrix_function(
    "fractional_matrix_power",
    spectra.fractional_matrix_power,
    spectra.fractional_matrix_power_frechet,
    60,
    complex_dtype,
    {"exponent": FINITE},
)
"""The principal power A^exponent, always complex, and its derivative."""


def _sylvester_aval(a: Aval, b: Aval, q: Aval, **params: Any) -> Aval:
    return Aval(q.shape, np.result_type(float_dtype(a.dtype), b.dtype, q.dtype))


def _is_sylvester(a: Aval, b: Aval, q: Aval, **params: Any) -> bool:
    """Whether A and B are square, and Q has as many rows as A and as many columns as B."""
    return are_square(a) and are_square(b) and (*a.shape[:-1], b.shape[-1]) == q.shape and a.shape[:-2] == b.shape[:-2]


def _sylvester_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, drop: bool) -> tuple[Array, Any]:
    """A dX + dX B = dQ - dA X - X dB. Source: the product rule; M. Giles (2008), section 2.2, for B = 0."""
    (a, b, q), (da, db, dq) = primals, tangents
    x = sylvester(a, b, q, drop=drop)
    right = dq
    if da is not ZERO:
        right = core.add_tangents(right, negative(mm(da, x)))
    if db is not ZERO:
        right = core.add_tangents(right, negative(mm(x, db)))
    return x, sylvester(a, b, right, drop=drop)


def _sylvester_transpose(ct: Array, a: Array, b: Array, q: Shaped, *, drop: bool) -> tuple[Any, Any, Array]:
    return ZERO, ZERO, fit_cotangent(sylvester(mH(a), mH(b), ct, drop=drop), q)


def _sylvester_cost(ins: Sequence[Aval], outs: Sequence[Aval], params: Params) -> float:
    """Two Schur decompositions and the back substitution."""
    m, n = outs[0].shape[-2:]
    return 25 * (m**3 + n**3) + 2.5 * (m * n * n + m * m * n)


sylvester: Primitive = core.general(
    "sylvester",
    reporting_missing(spectra.sylvester),
    aval=_sylvester_aval,
    parameters={"drop": FLAG},
    fits=_is_sylvester,
    batch=core.leading_axes("sylvester"),
    jvp=_sylvester_jvp,
    transpose=_sylvester_transpose,
    cost=_sylvester_cost,
)
"""X with A X + X B = Q; with `drop` what a singular equation leaves undetermined is zero."""


def _sqrtm_aval(a: Aval) -> Aval:
    return Aval(a.shape, complex_dtype(a.dtype))


def _sqrtm_jvp(primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[Array, Array]:
    """X dX + dX X = dA; for a singular A the undetermined part is dropped.

    Source: N. Higham (2008), "Functions of Matrices", section 6.1, equation 6.2.
    """
    (a,), (da,) = primals, tangents
    x = sqrtm(a)
    return x, sylvester(x, x, convert(da, dtype=complex_dtype(da.dtype)), drop=True)


sqrtm: Primitive = core.general(
    "sqrtm",
    reporting_missing(spectra.sqrtm),
    aval=_sqrtm_aval,
    fits=are_square,
    batch=core.leading_axes("sqrtm"),
    jvp=_sqrtm_jvp,
    cost=costs.cubic(28),
)
"""The principal square root, always complex."""
