"""Eigenvalue problems of Hermitian matrices by LAPACK's drivers: one matrix, a pencil of two, a tridiagonal matrix.

Undetermined parts of degenerate spectra are dropped, as in `spectral`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from func.backends.array_helpers import spectra
from func.backends.array_helpers.linalg import float_dtype, real_dtype
from func.interpreters.core import ZERO, Array, Aval, Primitive, add_tangents, dtype_of, general, leading_axes, shape_of
from func.interpreters.core.parameters import FLAG, Kind, is_shape, one_of
from func.interpreters.primitives import costs
from func.interpreters.primitives.elementwise.builder import add, conjugate, multiply, negative
from func.interpreters.primitives.elementwise.table import divide, subtract
from func.interpreters.primitives.linalg.entangled import entangle
from func.interpreters.primitives.linalg.invariant_subspaces import basis_of, turn_within
from func.interpreters.primitives.linalg.matrices import (
    Cusps,
    along_columns,
    along_rows,
    are_square,
    block,
    cusps,
    diagonal_of,
    differences,
    from_triangle,
    identity_like,
    mH,
    mm,
    part_of_cusps,
    real_part,
    row_of,
    scale_columns,
    turn_to_real,
    with_cusps,
)
from func.interpreters.primitives.linalg.solving import solve
from func.interpreters.primitives.linalg.spectral import projection, reduce_columns, turned, with_real_row
from func.interpreters.primitives.scipy_functions import reporting_missing
from func.interpreters.primitives.structural.identity import stop_gradient
from func.interpreters.primitives.structural.shapes import full_like
from func.interpreters.primitives.structural.slicing import concatenate

Subset: TypeAlias = tuple[int, int, float | None, float | None] | None
"""The first index of the eigenvalues and the one behind the last, then values that bound them. With these LAPACK
searches between values, which gives vectors of other signs. None: all eigenvalues."""


def _is_subset(value: Any, avals: Sequence[Aval], params: Any) -> bool:
    if value is None:
        return True
    if type(value) is not tuple or len(value) != 4 or not is_shape(value[:2]):
        return False
    (first, last), bounds = value[:2], value[2:]
    if bounds != (None, None) and not all([type(bound) is float for bound in bounds]):
        return False
    return bool(first <= last <= avals[0].shape[-1])


SUBSET = Kind("None or the range of the eigenvalues and their bounds", _is_subset)


def _some(shape: Sequence[int], subset: Subset) -> tuple[int, ...]:
    """A shape of all eigenvalues as one of the subset's."""
    return tuple(shape) if subset is None else (*shape[:-1], subset[1] - subset[0])


def _driver_aval(a: Aval, *, subset: Subset = None, **params: Any) -> tuple[Aval, Aval]:
    return Aval(_some(a.shape[:-1], subset), real_dtype(a.dtype)), Aval(_some(a.shape, subset), float_dtype(a.dtype))


def _own(inner: Array, subset: Subset = None) -> Array:
    """The rows of the subset, whose columns `inner` has."""
    first, last, *_ = subset or (0, shape_of(inner)[-1])
    return block(inner, (first, last), (0, last - first))


def _completed(problem: Callable[[Subset], tuple[Array, Array]], subset: Subset) -> Sequence[Array]:
    """w and v of a subset, and all of them with these among them: where all are sought, signs may be others."""
    w, v = problem(subset)
    if subset is None:
        return w, v, w, v
    first, last, *_ = subset
    w_all, v_all = problem(None)
    n = shape_of(w_all)[-1]
    rows = shape_of(v)[-2]
    parts = (block(v_all, (0, rows), (0, first)), v, block(v_all, (0, rows), (last, n)))
    return w, v, w_all, concatenate(*parts, axis=len(shape_of(v)) - 1)


def _driver_jvp(
    primals: Sequence[Array], tangents: Sequence[Any], *, lower: bool, driver: str | None, subset: Subset
) -> tuple[Any, Any]:
    """dw = diag(Vᴴ dA V), dV = V (F ∘ Vᴴ dA V) with dA of the Hermitian matrix of which one
    triangle is read. Of a subset, the V on the left has all vectors.

    Source: M. Giles (2008), "An extended collection of matrix derivative results", section 3.1.
    """
    (a,), (da,) = primals, tangents
    w, v, w_all, v_all = _completed(lambda some: eigh_by_driver(a, lower=lower, driver=driver, subset=some), subset)
    dw, dv = turned(
        lambda: from_triangle(a, lower),
        projection(da, lower),
        w_all,
        v_all,
        cusps(w_all),
        None if subset is None else subset[:2],
    )
    return (w, v), (dw, with_real_row(v, dv, lower))


eigh_by_driver: Primitive = general(
    "eigh_by_driver",
    reporting_missing(spectra.eigh_by_driver),
    aval=_driver_aval,
    parameters={"lower": FLAG, "driver": one_of(None, "ev", "evd", "evr", "evx"), "subset": SUBSET},
    fits=are_square,
    batch=leading_axes("eigh_by_driver"),
    jvp=_driver_jvp,
    multiple=True,
    cost=costs.cubic(9),
)
"""Eigenvalues and eigenvectors of Hermitian matrices by one of LAPACK's drivers (None: SciPy's choice)."""


def _pencil_aval(a: Aval, b: Aval, **params: Any) -> tuple[Aval, Aval]:
    return _driver_aval(Aval(a.shape, np.result_type(float_dtype(a.dtype), float_dtype(b.dtype))), **params)


def _pencil_jvp(
    primals: Sequence[Array], tangents: Sequence[Any], *, kind: int, lower: bool, driver: str | None, subset: Subset
) -> tuple[Any, Any]:
    """In the basis of eigenvectors dA is Ã and dB is S; with s = -1, 1, 1 and r = -½, -½, ½ for the kinds 1, 2, 3
    dw = diag(Ã + s w S) and dV = V (F ∘ (Ã + s ½ (w_i + w_j) S) + r S), where F_ij = 1 / (w_j - w_i).

    Kind 1: A V = B V W, Vᴴ B V = 1, Ã = Vᴴ dA V, S = Vᴴ dB V. Kind 2: A B V = V W, Vᴴ B V = 1, Ã = (B V)ᴴ dA B V, S as
    before. Kind 3: B A V = V W, Vᴴ B⁻¹ V = 1, Ã as in 1, S = (B⁻¹ V)ᴴ dB B⁻¹ V. The r S keeps V normalised.
    Source: the derivation for kind 1 is C. Boeddeker et al. (2017), arXiv:1701.00392, section 4.4; 2 and 3 likewise.
    """
    a, b = primals

    def problem(some: Subset) -> tuple[Array, Array]:
        out: tuple[Array, Array] = eigh_pencil(a, b, kind=kind, lower=lower, driver=driver, subset=some)
        return out

    w, v, w_all, v_all = _completed(problem, subset)
    cusp = cusps(w_all)
    if cusp is None:
        inner, dv = _pencil_moved(primals, tangents, w, v, w_all, v_all, kind, lower, subset)
    else:
        inner, dv = _pencil_with_cusps(primals, tangents, v, w_all, v_all, cusp, kind, lower, subset)
    own = _own(inner, subset)
    marks = part_of_cusps(cusp, *(subset or (0, None))[:2])
    dw = with_cusps(real_part(diagonal_of(own)), marks)
    return (w, v), entangle(dw, with_cusps(dv, marks), own, w, v)


def _pencil_moved(
    primals: Sequence[Array],
    tangents: Sequence[Any],
    w: Array,
    v: Array,
    w_all: Array,
    v_all: Array,
    kind: int,
    lower: bool,
    subset: Subset,
) -> tuple[Array, Array]:
    """Ã + s ½ (w_i + w_j) S and dV where no further derivative is taken."""
    (_, b), (da, db) = primals, tangents
    hermitian_b = from_triangle(b, lower)
    inner: Any = ZERO
    if da is not ZERO:
        basis = mm(hermitian_b, v_all) if kind == 2 else v_all
        right = mm(hermitian_b, v) if kind == 2 else v
        inner = mm(mm(mH(basis), from_triangle(da, lower)), right)
    factor = differences(w_all, None, *(subset or (0, None))[:2])
    if db is ZERO:
        dv = mm(v_all, multiply(factor, inner))
        return inner, _with_real_row(v, dv, hermitian_b, ZERO, kind, lower)
    d_hermitian_b = from_triangle(db, lower)
    dual, right = [solve(hermitian_b, x) if kind == 3 else x for x in (v_all, v)]
    db_rotated = mm(mm(mH(dual), d_hermitian_b), right)
    middle = multiply(add(along_rows(w_all), along_columns(w)), -0.5 if kind == 1 else 0.5)
    inner = add_tangents(inner, multiply(middle, db_rotated))
    dv = mm(v_all, add(multiply(factor, inner), multiply(db_rotated, 0.5 if kind == 3 else -0.5)))
    return inner, _with_real_row(v, dv, hermitian_b, d_hermitian_b, kind, lower)


def _pencil_with_cusps(
    primals: Sequence[Array],
    tangents: Sequence[Any],
    v: Array,
    w_all: Array,
    v_all: Array,
    cusp: Cusps,
    kind: int,
    lower: bool,
    subset: Subset,
) -> tuple[Array, Array]:
    """V⁻¹ dM V and dV by the invariant subspaces of M = B⁻¹ A, A B or B A, of which V are the vectors.

    Columns of V are those of the basis U, of length one by N: Vᴴ N V = 1, where N is B, or B⁻¹ for kind 3.
    """
    (a, b), (da, db) = [[x if x is ZERO else from_triangle(x, lower) for x in pair] for pair in (primals, tangents)]
    first, last, *_ = subset or (0, shape_of(w_all)[-1])
    left, right, d_left, d_right = (a, b, da, db) if kind == 2 else (b, a, db, da)
    matrix = solve(b, a) if kind == 1 else mm(left, right)
    if kind == 1:
        change = add_tangents(da, ZERO if db is ZERO else negative(mm(db, matrix)))
        change = solve(b, change)
    else:
        change = add_tangents(
            ZERO if d_left is ZERO else mm(d_left, right), ZERO if d_right is ZERO else mm(left, d_right)
        )
    u = basis_of(matrix, w_all, v_all, hermitian=False)
    chosen = block(u, (0, shape_of(u)[-2]), (first, last))
    inner = solve(u, mm(change, chosen))
    measured = solve(b, v) if kind == 3 else mm(b, v)
    dv = mm(u, turn_within(matrix, w_all, u, inner, first, last, hermitian=False))
    dv = scale_columns(dv, divide(reduce_columns(conjugate(chosen), measured), _length(chosen, b, kind)))
    stretch = multiply(real_part(reduce_columns(conjugate(measured), dv)), -1)
    if db is not ZERO:
        side = measured if kind == 3 else v
        own = real_part(reduce_columns(conjugate(side), mm(db, side)))
        stretch = add(stretch, multiply(own, 0.5 if kind == 3 else -0.5))
    dv = add(dv, scale_columns(v, stretch))
    return inner, _with_real_row(v, dv, b, db, kind, lower)


def _length(columns: Array, b: Array, kind: int) -> Array:
    """uᴴ N u of columns u."""
    return reduce_columns(conjugate(columns), solve(b, columns) if kind == 3 else mm(b, columns))


def _with_real_row(v: Array, dv: Array, b: Array, db: Any, kind: int, lower: bool) -> Array:
    """The tangent of the vectors V, whose phases are those of the vectors Y of the matrix that LAPACK reduces.

    For the lower triangle B = L Lᴴ, Y = Lᴴ V (kind 3: L⁻¹ V) has a real first row, that of B V (kind 3: of V).
    For the upper one B = Uᴴ U, Y = U V (kind 3: U⁻ᴴ V) has a real last row, that of V (kind 3: of B⁻¹ V).
    """
    if dtype_of(v).kind != "c" or shape_of(v)[-1] == 0 or lower is (kind == 3):
        return with_real_row(v, dv, lower)
    row = 0 if lower else -1
    if lower:
        seen, d_seen = mm(b, v), mm(b, dv) if db is ZERO else add(mm(b, dv), mm(db, v))
    else:
        seen = solve(b, v)
        d_seen = solve(b, dv if db is ZERO else subtract(dv, mm(db, seen)))
    return add(dv, scale_columns(v, turn_to_real(row_of(seen, row), row_of(d_seen, row))))


eigh_pencil: Primitive = general(
    "eigh_pencil",
    reporting_missing(spectra.eigh_pencil),
    aval=_pencil_aval,
    parameters={"kind": one_of(1, 2, 3), "lower": FLAG, "driver": one_of(None, "gv", "gvd", "gvx"), "subset": SUBSET},
    fits=are_square,
    batch=leading_axes("eigh_pencil"),
    jvp=_pencil_jvp,
    multiple=True,
    cost=costs.cubic(14),
)
"""Eigenvalues and vectors of A V = B V W (kind 1), A B V = V W (2), B A V = V W (3) for positive-definite B."""


TRIDIAGONAL_DRIVER = one_of("auto", "stemr", "stev", "stevd", "sterf", "stebz")


def _are_diagonals(d: Aval, e: Aval, **params: Any) -> bool:
    """Whether the second operand is by one shorter than the first."""
    return len(d.shape) > 0 and (*e.shape[:-1], e.shape[-1] + 1) == d.shape


def _tridiagonal_aval(d: Aval, e: Aval, *, driver: str, subset: Subset = None) -> tuple[Aval, Aval]:
    dtype = np.result_type(float_dtype(d.dtype), float_dtype(e.dtype))
    return Aval(_some(d.shape, subset), dtype), Aval(_some((*d.shape, d.shape[-1]), subset), dtype)


def _times_tridiagonal(d: Any, e: Any, v: Array) -> Any:
    """The product of a symmetric tridiagonal matrix, one of its diagonals perhaps absent, with v."""
    product: Any = ZERO
    n, k = shape_of(v)[-2:]
    if d is not ZERO:
        product = multiply(along_rows(d), v)
    if e is not ZERO and n > 1:
        axis = len(shape_of(v)) - 2
        nothing = full_like(v, 0, (*shape_of(v)[:-2], 1, k))
        side = along_rows(e)
        above = concatenate(multiply(side, block(v, (1, n), (0, k))), nothing, axis=axis)
        below = concatenate(nothing, multiply(side, block(v, (0, n - 1), (0, k))), axis=axis)
        product = add_tangents(product, add(above, below))
    return full_like(v, 0) if product is ZERO else product


def _dense(d: Array, e: Array, like: Array) -> Array:
    """The tridiagonal matrix with all its elements, in the shape of a stack of matrices."""
    return _times_tridiagonal(d, e, add(full_like(like, 0), identity_like(like, shape_of(like)[-1])))


def _tridiagonal_jvp(
    primals: Sequence[Array], tangents: Sequence[Any], *, driver: str, subset: Subset
) -> tuple[Any, Any]:
    """dw = diag(Vᵀ dT V), dV = V (F ∘ Vᵀ dT V). Source: Giles (2008), section 3.1."""
    (d, e), (dd, de) = primals, tangents
    w, v, w_all, v_all = _completed(lambda some: eigh_tridiagonal(d, e, driver=driver, subset=some), subset)
    dw, dv = turned(
        lambda: _dense(d, e, v_all),
        lambda u, columns: mm(mH(u), _times_tridiagonal(dd, de, columns)),
        w_all,
        v_all,
        cusps(w_all),
        None if subset is None else subset[:2],
    )
    return (w, v), (dw, dv)


eigh_tridiagonal: Primitive = general(
    "eigh_tridiagonal",
    reporting_missing(spectra.eigh_tridiagonal),
    aval=_tridiagonal_aval,
    parameters={"driver": TRIDIAGONAL_DRIVER, "subset": SUBSET},
    fits=_are_diagonals,
    batch=leading_axes("eigh_tridiagonal"),
    jvp=_tridiagonal_jvp,
    multiple=True,
    cost=costs.tridiagonal(4, 3),
)
"""Eigenvalues and vectors of real symmetric tridiagonal matrices: diagonal (…, n), off-diagonal (…, n - 1)."""


def _tridiagonal_values_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, driver: str) -> tuple[Any, Any]:
    """dw = diag(Vᵀ dT V). Source: Giles (2008), section 3.1."""
    (d, e), (dd, de) = primals, tangents
    w = eigvalsh_tridiagonal(d, e, driver=driver)
    cusp = cusps(w)
    diagonals = (d, e) if cusp is None else (stop_gradient(d), stop_gradient(e))
    _, v = eigh_tridiagonal(*diagonals, driver="auto", subset=None)
    if cusp is not None:
        v = basis_of(_dense(d, e, v), w, v)
    return w, with_cusps(reduce_columns(v, _times_tridiagonal(dd, de, v)), cusp)


eigvalsh_tridiagonal: Primitive = general(
    "eigvalsh_tridiagonal",
    reporting_missing(spectra.eigvalsh_tridiagonal),
    aval=lambda d, e, *, driver: _tridiagonal_aval(d, e, driver=driver)[0],
    parameters={"driver": TRIDIAGONAL_DRIVER},
    fits=_are_diagonals,
    batch=leading_axes("eigvalsh_tridiagonal"),
    jvp=_tridiagonal_values_jvp,
    cost=costs.tridiagonal(20, 2),
)
"""Eigenvalues of real symmetric tridiagonal matrices."""
