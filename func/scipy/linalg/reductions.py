"""Hessenberg, LDL, cosine-sine and QZ decompositions, and balancing."""

from __future__ import annotations

from typing import Any

import numpy as np

from func.backends.array_helpers.linalg import real_dtype
from func.host.scipy_hooks import holds_traced
from func.interpreters.core import Array, Aval, dtype_of, shape_of
from func.interpreters.primitives.linalg.matrices import from_triangle
from func.linalg import block_diag, checks
from func.scipy.linalg.scipy_values import adjoint, by_equation, over_batch, refuse_derivative, scipy_function
from func.transforms.forward import jvp


def hessenberg(a: Array, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """H, or (H, Q) with `calc_q`, with a = Q H Qᴴ, H zero below the first subdiagonal, Q unitary; a is (…, n, n).

    The derivative exists if no element of the subdiagonal of H is zero; for real matrices the last one may be.
    Otherwise it is NaN or infinite. It keeps the first column of Q and the real subdiagonal, as LAPACK does.
    """
    function = scipy_function("hessenberg")
    if not holds_traced(a):
        return function(a, calc_q, check_finite=check_finite)
    a = checks.squares(a, "a", check_finite)
    n = shape_of(a)[-1]

    def of_one(a: Array) -> Any:
        if n <= 2:
            return (a, np.eye(n)) if calc_q else a
        out = Aval((n, n), dtype_of(a))
        h, q = by_equation(lambda a: function(a, True), [out, out], _hessenberg_tangent, [a])
        return (h, q) if calc_q else h

    return over_batch(of_one, [a], [2], "hessenberg")


def _hessenberg_tangent(primals: Any, tangents: Any, values: Any) -> Any:
    """dQ = Q Ω, dH = Qᴴ dA Q + H Ω - Ω H with the antihermitian Ω that keeps dH zero below the subdiagonal of H.

    Column j of that equation gives column j + 1 of Ω below its diagonal, from the columns before. Source: the implicit
    Q theorem, G. Golub and C. Van Loan (2013), "Matrix Computations", theorem 7.4.2, differentiated.
    """
    (da,), (h, q) = tangents, values
    n = shape_of(h)[0]
    inner = adjoint(q) @ da @ q
    is_complex = dtype_of(h).kind == "c"
    turn = np.zeros_like(inner)
    rows = np.arange(n)
    for j in range(n - 2 + is_complex):
        k = j + 1
        column = inner[:, j] + h @ turn[:, j] - turn @ h[:, j]
        below = np.where(rows > k, column, 0)
        if is_complex:
            below = below + np.where(rows == k, 1j * np.imag(column), 0).astype(dtype_of(h))
        below = below / h[k, j]
        one = np.where(rows == k, 1, 0).astype(dtype_of(h))
        strict = np.where(rows > k, below, 0)
        turn = turn + below[:, None] * one - one[:, None] * np.conjugate(strict)
    change = inner + h @ turn - turn @ h
    return np.where(rows[:, None] <= rows + 1, change, 0), q @ turn


def ldl(
    A: Array, lower: bool = True, hermitian: bool = True, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, Array, Array]:
    """(lu, d, perm) with A = lu d luᴴ (without `hermitian` lu d luᵀ), lu[perm] unit triangular; A is (…, n, n).

    It reads one triangle of A, and the derivative is with respect to it, at constant pivots. The permutation and the
    places of the 2 × 2 blocks of d have no derivative.
    """
    function = scipy_function("ldl")
    if not holds_traced(A):
        found: tuple[Array, Array, Array] = function(A, lower, hermitian, check_finite=check_finite)
        return found
    A = checks.squares(np.atleast_2d(A), "A", check_finite)
    is_hermitian = hermitian or dtype_of(A).kind != "c"

    def derivative(primals: Any, tangents: Any, values: Any) -> Any:
        return _ldl_tangent(from_triangle(tangents[0], lower, hermitian=is_hermitian), values, lower, is_hermitian)

    def of_one(a: Array) -> Any:
        n = shape_of(a)[0]
        if n == 0:
            return a, a, np.array([], int)
        outs = [Aval((n, n), dtype_of(a)), Aval((n, n), dtype_of(a)), Aval((n,), np.dtype(np.int64))]
        return tuple(by_equation(lambda a: function(a, lower, hermitian), outs, derivative, [a]))

    out: tuple[Array, Array, Array] = over_batch(of_one, [A], [2], "ldl")
    return out


def _ldl_tangent(change: Array, values: Any, lower: bool, is_hermitian: bool) -> Any:
    """dD and dL from F = L⁻¹ dA L⁻ᴴ with L = lu[perm]: dD has the blocks of F at those of D, and dL = L S D⁻¹.

    S is the rest of F on the side of L. After a zero pivot dL is NaN.

    Source: the product rule, as for LU: F. de Hoog, R. Anderssen, M. Lukas (2011), Math. Comp. 80, section 3.
    """
    lu, d, perm = values
    n = shape_of(d)[0]

    def star(x: Array) -> Array:
        return adjoint(x) if is_hermitian else np.swapaxes(x, -1, -2)

    factor = lu[perm]
    ordered = change[perm][:, perm]
    half = np.linalg.solve(factor, ordered)
    inner = star(np.linalg.solve(factor, star(half)))
    i, j = np.arange(n)[:, None], np.arange(n)
    is_block = (i == j) | (d != 0)
    is_side = ~is_block & ((i > j) if lower else (i < j))
    rest = np.where(is_side, inner, 0)
    is_zero = np.all(d == 0, axis=0)
    safe = d + np.where((i == j) & is_zero, 1, 0).astype(dtype_of(d))
    steps = np.swapaxes(np.linalg.solve(np.swapaxes(safe, 0, 1), np.swapaxes(rest, 0, 1)), 0, 1)
    steps = np.where(is_side, steps * np.where(is_zero, np.nan, 1).astype(real_dtype(dtype_of(d))), 0)
    turned = factor @ steps
    return turned[np.argsort(perm)], np.where(is_block, inner, 0), perm


def matrix_balance(
    A: Array, permute: bool = True, scale: bool = True, separate: bool = False, overwrite_a: bool = False
) -> Any:
    """(B, T) with B = T⁻¹ A T, or (B, (scaling, permutation)) with `separate`; A is (…, n, n).

    T has powers of two, which are constant around almost every A: B has the derivative at constant T.
    """
    function = scipy_function("matrix_balance")
    if not holds_traced(A):
        return function(A, permute, scale, separate)
    A = checks.squares(np.atleast_2d(A), "A")
    n = shape_of(A)[-1]
    real, whole = real_dtype(dtype_of(A)), np.dtype(np.int64)

    def balanced(a: Any) -> Any:
        b, (scaling, permutation) = function(a, permute, scale, True)
        t = np.zeros((n, n))
        t[permutation, np.arange(n)] = scaling
        return b, t, scaling, permutation

    def derivative(primals: Any, tangents: Any, values: Any) -> Any:
        _, t, scaling, permutation = values
        moved = tangents[0][permutation][:, permutation]
        same = np.zeros_like(t), np.zeros_like(scaling), permutation
        return (moved * (scaling / scaling[:, None]).astype(real), *same)

    def of_one(a: Array) -> Any:
        double = np.dtype(np.float64)
        outs = [Aval((n, n), dtype_of(a)), Aval((n, n), double), Aval((n,), double), Aval((n,), whole)]
        return tuple(by_equation(balanced, outs, derivative, [a]))

    b, t, scaling, permutation = over_batch(of_one, [A], [2], "matrix_balance")
    if not separate:
        return b, t
    if len(shape_of(b)) == 2:
        return b, (scaling, permutation)
    return b, np.stack([scaling, permutation.astype(np.float64)], -2)  # as SciPy stacks the pairs of a batch


def cossin(
    X: Any,
    p: int | None = None,
    q: int | None = None,
    separate: bool = False,
    swap_sign: bool = False,
    compute_u: bool = True,
    compute_vh: bool = True,
) -> Any:
    """(U, CS, Vh) with X = U CS Vh for a unitary X (…, m, m), or with `separate` ((u1, u2), theta, (v1h, v2h)).

    theta and CS have a derivative, for directions in which X stays unitary. U and Vh have none, as some of their blocks
    turn freely: differentiate with compute_u=False and compute_vh=False.

    Source of the derivative: that of the singular values cos(theta) and sin(theta) of the blocks of X.
    """
    function = scipy_function("cossin")
    options = {"compute_u": bool(compute_u), "compute_vh": bool(compute_vh)}
    if not holds_traced(X):
        return function(X, p, q, separate, swap_sign, **options)
    blocks = _blocks_of(X, p, q)
    rows = shape_of(blocks[0])[-2], shape_of(blocks[3])[-2]
    columns = shape_of(blocks[0])[-1], shape_of(blocks[3])[-1]
    count, m = min(*rows, *columns), sum(rows)
    dtype = dtype_of(blocks[0])
    outs = [
        Aval((count,), real_dtype(dtype)),
        Aval((m, m), real_dtype(dtype)),
        *[Aval((size, size) if compute_u else (0, 0), dtype) for size in rows],
        *[Aval((size, size) if compute_vh else (0, 0), dtype) for size in columns],
    ]

    def decomposed(*parts: Any) -> Any:
        us, theta, vs = function(parts, separate=True, swap_sign=swap_sign, **options)
        cs = function(parts, swap_sign=swap_sign, compute_u=False, compute_vh=False)[1]
        return theta, cs, *[x[: out.shape[0], : out.shape[1]] for x, out in zip((*us, *vs), outs[2:], strict=True)]

    def derivative(primals: Any, tangents: Any, values: Any) -> Any:
        if compute_u or compute_vh:
            refuse_derivative(
                "cossin",
                "of the unitary factors blocks of columns may turn freely, so that they have no derivative",
                "For theta and CS pass compute_u=False and compute_vh=False; for the factors take the singular value "
                "decompositions of the blocks.",
            )
        theta, _, *vectors = values
        places = np.argsort(np.argsort(theta))
        change = jvp(lambda *parts: _angles(*parts)[places], tuple(primals[::2]), tuple(tangents[::2]))[1]
        return change, _middle_tangent(theta, change, rows, columns, swap_sign), *vectors

    def of_one(*parts: Array) -> Any:
        return tuple(by_equation(decomposed, outs, derivative, parts))

    theta, cs, u1, u2, v1h, v2h = over_batch(of_one, blocks, [2] * 4, "cossin")
    if separate:
        return (u1, u2), theta, (v1h, v2h)
    return block_diag(u1, u2), cs, block_diag(v1h, v2h)


def _blocks_of(X: Any, p: int | None, q: int | None) -> list[Array]:
    """The blocks X11, X12, X21 and X22."""
    if not (p or q):
        if not isinstance(X, (tuple, list)) and (shape_of(X) == () or shape_of(X)[0] != 4):
            raise ValueError("When p and q are None, exactly four arrays should be in X")
        blocks = [checks.matrices(np.atleast_2d(x), name) for x, name in zip(X, _BLOCKS, strict=True)]
        return checks.promoted(*blocks, cores=(2, 2, 2, 2))
    X = checks.validated(X, "X")
    m, n = shape_of(X)[-2:]
    if m != n:
        raise ValueError(f"Cosine Sine decomposition only supports square matrices, got {(m, n)}")
    p, q = 1 if p is None else int(p), 1 if q is None else int(q)
    for name, size in (("p", p), ("q", q)):
        if not 0 < size < m:
            raise ValueError(f"invalid {name}={size}, 0<{name}<{m} must hold")
    return [X[..., :p, :q], X[..., :p, q:], X[..., p:, :q], X[..., p:, q:]]


_BLOCKS = ("x11", "x12", "x21", "x22")


def _angles(x11: Array, x21: Array) -> Array:
    """The angles in ascending order: the smallest singular values of X11 are their cosines, those of X21 the sines.

    The other singular values are one.
    """
    (p, q), below = shape_of(x11), shape_of(x21)[0]
    count = min(p, q, below, p + below - q)
    cosines = np.linalg.svd(x11, compute_uv=False)[min(p, q) - count :]
    sines = np.linalg.svd(x21, compute_uv=False)[min(below, q) - count :]
    return np.arctan2(np.flip(sines), cosines)


def _middle_tangent(
    theta: Array, change: Array, rows: tuple[int, int], columns: tuple[int, int], swap_sign: bool
) -> Array:
    """The tangent of CS, which has cosines and sines of the angles on four diagonals."""
    count, m = shape_of(theta)[0], sum(rows)
    first, last = min(rows[0], columns[0]) - count, min(rows[1], columns[1]) - count
    low, right = rows[0] + last, first + min(rows[1], columns[0]) - count + last + count
    sign = 1 if swap_sign else -1
    out = np.zeros((m, m), dtype_of(theta))
    place = np.arange(count)
    for row, column, rate in (
        (first, first, -np.sin(theta)),
        (low, right, -np.sin(theta)),
        (first, right, sign * np.cos(theta)),
        (low, first, -sign * np.cos(theta)),
    ):
        chosen = np.zeros((count, m, m), dtype_of(theta))
        chosen[place, row + place, column + place] = 1
        out = out + np.tensordot(rate * change, chosen, 1)
    return out


def qz(A: Array, B: Array, *args: Any, **options: Any) -> Any:
    """scipy.linalg.qz of plain arrays; traced ones raise an error, as the phases of Q and Z are not determined."""
    return _of_plain_arrays("qz", (A, B, *args), options)


def ordqz(A: Array, B: Array, *args: Any, **options: Any) -> Any:
    """scipy.linalg.ordqz of plain arrays; traced ones raise an error, as the phases of Q and Z are not determined."""
    return _of_plain_arrays("ordqz", (A, B, *args), options)


def _of_plain_arrays(name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    if not holds_traced((args, options)):
        return scipy_function(name)(*args, **options)
    refuse_derivative(
        name,
        "the factors of a pencil are determined up to phases and to the order of the eigenvalues, so that they have no "
        "derivative, and traced arrays are refused",
        "Of func.stop_gradient(A) they are those of the numbers; generalized eigenvalues differentiate as "
        "func.linalg.eigvals(np.linalg.solve(B, A)), or func.linalg.eigh(A, B) for Hermitian A and definite B.",
    )
