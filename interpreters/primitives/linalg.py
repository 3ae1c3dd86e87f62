"""Cholesky factors, solves and inverses of stacks of matrices. Each row's rules stand together, its source cited."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func.backends import scipy_of
from func.interpreters.core import ZERO, Array, Aval, Params, Shaped, bind, snapshot
from func.interpreters.primitives.elementwise import negative
from func.interpreters.primitives.kinds import Row, add_tangents, leading_axes
from func.interpreters.primitives.matrices import (
    float_dtype,
    hermitian_part,
    keep_where,
    lower_half,
    mH,
    mm,
    same_aval,
    solve_batch,
)
from func.interpreters.primitives.structural import fit_cotangent


class Direct(Row):
    """A general row whose pullback is written out: `adjoint(ct, parents, saved, **params)` gives one cotangent per
    argument from the arguments and the output, which costs less than transposing the staged tangent."""

    __slots__ = ("adjoint",)
    adjoint: Callable[..., tuple[Any, ...]]

    def record(self, values: tuple[Array, ...], parents: Sequence[Shaped | None], params: Params) -> Any:
        out = bind(self, values, params)
        kept = [snapshot(v) if parent is None else v for v, parent in zip(values, parents, strict=True)]
        return out, self, (*kept, out)

    def pull(self, ct: Any, parents: Sequence[Any], saved: Any, params: Params) -> Sequence[Any]:
        cotangents = self.adjoint(ct, parents, saved, **params)
        return [
            ZERO if parent is None else fit_cotangent(cotangent, parent)
            for cotangent, parent in zip(cotangents, parents, strict=True)
        ]

    def pull_linear(self, ct: Any, parents: Sequence[Any], known: Sequence[Any], params: Params) -> Sequence[Any]:
        return Row.pull(self, ct, parents, known, params)


def direct(name: str, impl: Callable[..., Any], adjoint: Callable[..., tuple[Any, ...]], **rules: Any) -> Direct:
    """A general row with its pullback written out."""
    row = Direct(name, impl, **rules)
    row.adjoint = adjoint
    return row


# --- Cholesky ---------------------------------------------------------------------------------------------------


def _cholesky_impl(xp: Any, a: Array, *, upper: bool = False) -> Array:
    if not upper:
        return xp.linalg.cholesky(a)
    if xp is np:
        return np.linalg.cholesky(a, upper=True)
    return xp.conjugate(xp.swapaxes(xp.linalg.cholesky(xp.conjugate(xp.swapaxes(a, -1, -2))), -1, -2))


def _cholesky_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, upper: bool = False) -> tuple[Array, Array]:
    """dL = L Φ(L⁻¹ dA L⁻ᴴ), where Φ keeps the lower triangle and halves the diagonal.

    As only one triangle of A is read, dA is that of the Hermitian matrix it stands for: dA and dAᴴ averaged.
    Source: I. Murray (2016), arXiv:1602.07527, equation 8.
    """
    (a,), (da,) = primals, tangents
    factor = cholesky(a, upper=upper)
    lower = mH(factor) if upper else factor
    left = triangular_solve(lower, hermitian_part(da), lower=True, adjoint=False, unit=False)
    inner = mH(triangular_solve(lower, mH(left), lower=True, adjoint=False, unit=False))
    tangent = mm(lower, lower_half(inner))
    return factor, mH(tangent) if upper else tangent


def _cholesky_adjoint(ct: Array, parents: Any, saved: Any, *, upper: bool = False) -> tuple[Array]:
    """Ā = ½ L⁻ᴴ (P + Pᴴ) L⁻¹ with P = Φ(Lᴴ L̄). Source: I. Murray (2016), arXiv:1602.07527, equation 10."""
    factor = saved[-1]
    lower, grown = (mH(factor), mH(ct)) if upper else (factor, ct)
    middle = hermitian_part(lower_half(mm(mH(lower), grown)))
    left = triangular_solve(lower, middle, lower=True, adjoint=True, unit=False)
    return (mH(triangular_solve(lower, mH(left), lower=True, adjoint=True, unit=False)),)


cholesky: Row = direct(
    "cholesky",
    _cholesky_impl,
    _cholesky_adjoint,
    aval=same_aval,
    batch=leading_axes("cholesky"),
    jvp=_cholesky_jvp,
)
"""L with L Lᴴ = A, or with `upper` U = Lᴴ from the upper triangle."""


# --- triangular solves ------------------------------------------------------------------------------------------


def _triangular_solve_impl(xp: Any, a: Array, b: Array, *, lower: bool, adjoint: bool, unit: bool) -> Array:
    if xp is not np:
        solve = scipy_of(xp, "linalg").solve_triangular
        return _one_by_one(xp, a, b, _device_solver(solve, lower, adjoint, unit))
    dtype = np.result_type(a, b)
    a, b = np.asarray(a, dtype), np.asarray(b, dtype)
    if b.size == 0:
        return np.empty(b.shape, dtype)
    if a.ndim > 2 and a.shape[-1] <= 16 and a.size > 4 * a.shape[-1] ** 2:
        return _solve_masked(a, b, lower, adjoint, unit)
    return _one_by_one(np, a, b, _host_solver(dtype, lower, adjoint, unit))


def _one_by_one(xp: Any, a: Array, b: Array, solve_one: Callable[[Array, Array], Array]) -> Array:
    if a.ndim == 2:
        return solve_one(a, b)
    out = xp.empty(b.shape, xp.result_type(a, b))
    for place in np.ndindex(*a.shape[:-2]):
        out[place] = solve_one(a[place], b[place])
    return out


def _device_solver(solve_triangular: Any, lower: bool, adjoint: bool, unit: bool) -> Callable[[Array, Array], Array]:
    def solve_one(a: Array, b: Array) -> Array:
        trans = ("C" if a.dtype.kind == "c" else "T") if adjoint else "N"
        return solve_triangular(a, b, lower=lower, trans=trans, unit_diagonal=unit, check_finite=False)

    return solve_one


def _host_solver(dtype: Any, lower: bool, adjoint: bool, unit: bool) -> Callable[[Array, Array], Array]:
    """LAPACK's trtrs, which wants columns in memory: an array of rows is handed over as its transpose."""
    from scipy.linalg import lapack

    trtrs = getattr(lapack, {"f": "s", "d": "d", "F": "c", "D": "z"}[dtype.char] + "trtrs")

    def solve_one(a: Array, b: Array) -> Array:
        if a.flags.f_contiguous or (adjoint and dtype.kind == "c"):
            x, info = trtrs(a, b, lower, 2 * adjoint, unit)
        else:
            x, info = trtrs(a.T, b, not lower, 1 - adjoint, unit)
        if info > 0:
            raise np.linalg.LinAlgError(f"singular matrix: the triangular factor is zero at diagonal {info - 1}")
        return x

    return solve_one


def _solve_masked(a: Array, b: Array, lower: bool, adjoint: bool, unit: bool) -> Array:
    """Many small systems: a general solve of the triangle takes one call for all of them."""
    triangle = np.tril(a, -unit) if lower else np.triu(a, unit)
    if unit:
        triangle += np.eye(a.shape[-1], dtype=a.dtype)
    return np.linalg.solve(np.conjugate(np.swapaxes(triangle, -1, -2)) if adjoint else triangle, b)


def _triangular_solve_jvp(
    primals: Sequence[Array], tangents: Sequence[Any], *, lower: bool, adjoint: bool, unit: bool
) -> tuple[Array, Any]:
    """A x = b gives A dx = db - dA x, of dA the triangle that is read.

    Source: M. Giles (2008), "An extended collection of matrix derivative results", section 2.2.2.
    """
    (a, b), (da, db) = primals, tangents
    x = triangular_solve(a, b, lower=lower, adjoint=adjoint, unit=unit)
    right = db
    if da is not ZERO:
        da = _triangle(da, lower, unit)
        right = add_tangents(db, negative(mm(mH(da) if adjoint else da, x)))
    return x, triangular_solve(a, right, lower=lower, adjoint=adjoint, unit=unit)


def _triangular_solve_transpose(
    ct: Array, a: Array, b: Shaped, *, lower: bool, adjoint: bool, unit: bool
) -> tuple[Any, Array]:
    return ZERO, triangular_solve(a, ct, lower=lower, adjoint=not adjoint, unit=unit)


def _triangle(x: Array, lower: bool, unit: bool) -> Array:
    """The triangle of a matrix that is read."""
    if unit:
        return keep_where(x, (lambda i, j: j < i) if lower else (lambda i, j: j > i))
    return keep_where(x, (lambda i, j: j <= i) if lower else (lambda i, j: j >= i))


def _triangular_solve_adjoint(
    ct: Array, parents: Any, saved: Any, *, lower: bool, adjoint: bool, unit: bool
) -> tuple[Any, Array]:
    """b̄ = A⁻ᴴ x̄ and Ā = -b̄ xᴴ, or its adjoint, in the triangle that is read. Source: Giles (2008), section 2.2.2."""
    a, _, x = saved
    right = triangular_solve(a, ct, lower=lower, adjoint=not adjoint, unit=unit)
    if parents[0] is None:
        return ZERO, right
    outer = mm(x, mH(right)) if adjoint else mm(right, mH(x))
    return negative(_triangle(outer, lower, unit)), right


triangular_solve: Row = direct(
    "triangular_solve",
    _triangular_solve_impl,
    _triangular_solve_adjoint,
    aval=lambda a, b, **params: Aval(b.shape, np.result_type(float_dtype(a.dtype), b.dtype)),
    batch=solve_batch(lambda a, b, **params: triangular_solve(a, b, **params)),
    jvp=_triangular_solve_jvp,
    transpose=_triangular_solve_transpose,
)
"""A⁻¹ B or A⁻ᴴ B for triangular A; B is (…, n, k)."""


# --- general solves and inverses --------------------------------------------------------------------------------


def _solve_jvp(primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[Array, Any]:
    """A dx = db - dA x. Source: Giles (2008), section 2.2.2."""
    (a, b), (da, db) = primals, tangents
    x = solve(a, b)
    right = db if da is ZERO else add_tangents(db, negative(mm(da, x)))
    return x, solve(a, right)


def _solve_adjoint(ct: Array, parents: Any, saved: Any) -> tuple[Any, Array]:
    """b̄ = A⁻ᴴ x̄, Ā = -b̄ xᴴ. Source: Giles (2008), section 2.2.2."""
    a, _, x = saved
    right = solve(mH(a), ct)
    return ZERO if parents[0] is None else negative(mm(right, mH(x))), right


solve: Row = direct(
    "solve",
    lambda xp, a, b: xp.linalg.solve(a, b),
    _solve_adjoint,
    aval=lambda a, b: Aval(b.shape, np.result_type(float_dtype(a.dtype), b.dtype)),
    batch=solve_batch(lambda a, b: solve(a, b)),
    jvp=_solve_jvp,
    transpose=lambda ct, a, b: (ZERO, solve(mH(a), ct)),
)
"""A⁻¹ B; B is (…, n, k)."""


def _inv_impl(xp: Any, a: Array, *, strict: bool = True) -> Array:
    if strict or xp is not np:
        return xp.linalg.inv(a)
    try:
        return np.linalg.inv(a)
    except np.linalg.LinAlgError:
        flat = a.reshape(-1, *a.shape[-2:])
        return np.stack([_inverse_or_nan(matrix) for matrix in flat]).reshape(a.shape)


def _inverse_or_nan(a: Array) -> Array:
    try:
        return np.linalg.inv(a)
    except np.linalg.LinAlgError:
        return np.full_like(a, np.nan)


def _inv_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, strict: bool = True) -> tuple[Array, Array]:
    """dA⁻¹ = -A⁻¹ dA A⁻¹. Source: Giles (2008), section 2.2.3."""
    (a,), (da,) = primals, tangents
    out = inv(a, strict=strict)
    return out, negative(mm(mm(out, da), out))


def _inv_adjoint(ct: Array, parents: Any, saved: Any, *, strict: bool = True) -> tuple[Array]:
    """Ā = -A⁻ᴴ X̄ A⁻ᴴ. Source: Giles (2008), section 2.2.3."""
    dual = mH(saved[-1])
    return (negative(mm(mm(dual, ct), dual)),)


inv: Row = direct("inv", _inv_impl, _inv_adjoint, aval=same_aval, batch=leading_axes("inv"), jvp=_inv_jvp)
"""A⁻¹. A singular matrix raises, or becomes NaN where `strict` is off."""
