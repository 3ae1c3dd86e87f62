"""Products with the factor Q of a QR decomposition, and decompositions of matrices with rows or columns changed.

The derivative is that of the QR decomposition of the changed real matrix, at constant signs of the diagonal of R. The
further columns of a complete Q turn so that it stays orthogonal, as with `func.linalg.qr`: SciPy turns them in another
way among themselves. Q is taken as orthogonal.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.exceptions import ComplexWarning

from func import linalg as _dense
from func.interpreters.core import Array, Aval, dtype_of, shape_of
from func.linalg import checks
from func.scipy.doors import holds_traced
from func.scipy.linalg.scipy_values import adjoint, by_equation, refuse_derivative, scipy_function
from func.transforms.custom import stop_gradient
from func.transforms.forward import jvp


def qr_multiply(
    a: Array,
    c: Array,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> Any:
    """(c Q, R) in mode "right", (Q c, R) in mode "left", of the QR decomposition of a (…, m, n), without making Q.

    With `pivoting` also the permutation; `conjugate` takes the complex conjugate of Q. c is (…, k, m) or (m,) for
    "right", (…, min(m, n), k) or (min(m, n),) for "left".
    """
    if not holds_traced((a, c)):
        return scipy_function("qr_multiply")(a, c, mode, pivoting, conjugate)
    if mode not in ("left", "right"):
        raise ValueError(f"Mode argument can only be 'left' or 'right' but not '{mode}'")
    a, c = checks.matrices(np.atleast_2d(a), "a"), checks.vectors(c, "c")
    is_vector = len(shape_of(c)) == 1
    if is_vector:
        c = c[:, None] if mode == "left" else c[None, :]
    m, n = shape_of(a)[-2:]
    if shape_of(c)[-2 if mode == "left" else -1] != (min(m, n) if mode == "left" else m):
        kind = "Q @ c" if mode == "left" else "c @ Q"
        raise ValueError(f"Array shapes are not compatible for {kind} operation: {shape_of(a)} and {shape_of(c)}")
    if dtype_of(c).kind == "c" and dtype_of(a).kind != "c":
        warnings.warn("The imaginary part of c is discarded, as a is real", ComplexWarning, stacklevel=2)
        c = np.real(c)
    a, c = checks.promoted(a, checks.as_dtype(c, dtype_of(a)))
    q, *rest = _dense.qr(a, mode="economic", pivoting=pivoting)
    q = np.conjugate(q) if conjugate and dtype_of(q).kind == "c" else q
    product = q @ c if mode == "left" else c @ q
    return (np.reshape(product, (*shape_of(product)[:-2], -1)) if is_vector else product, *rest)


def qr_delete(
    Q: Array, R: Array, k: int, p: int = 1, which: str = "row", overwrite_qr: bool = False, check_finite: bool = True
) -> tuple[Array, Array]:
    """(Q1, R1) of the matrix Q R without the p rows (or columns) from k on; Q is (…, m, m) or (…, m, n)."""
    if which not in ("row", "col"):
        raise ValueError("'which' must be either 'row' or 'col'")
    axis = 0 if which == "row" else 1

    def change(a: Array) -> Array:
        first = k + shape_of(a)[axis] if k < 0 else k
        kept = np.delete(np.arange(shape_of(a)[axis]), np.arange(first, first + p))
        return np.take(a, kept, axis=axis)

    return _changed("qr_delete", [Q, R], change, (k, p, which), check_finite)


def qr_insert(
    Q: Array,
    R: Array,
    u: Array,
    k: int,
    which: str = "row",
    rcond: float | None = None,
    overwrite_qru: bool = False,
    check_finite: bool = True,
) -> tuple[Array, Array]:
    """(Q1, R1) of the matrix Q R with rows (or columns) u inserted before k; u is one of them or several."""
    if which not in ("row", "col"):
        raise ValueError("'which' must be either 'row' or 'col'")
    axis = 0 if which == "row" else 1

    def change(a: Array, u: Array) -> Array:
        first = k + shape_of(a)[axis] if k < 0 else k
        u = np.expand_dims(u, axis) if len(shape_of(u)) == 1 else u
        head, tail = (a[:first], a[first:]) if which == "row" else (a[:, :first], a[:, first:])
        return np.concatenate([head, u, tail], axis)

    return _changed("qr_insert", [Q, R, u], change, (k, which, rcond), check_finite)


def qr_update(
    Q: Array, R: Array, u: Array, v: Array, overwrite_qruv: bool = False, check_finite: bool = True
) -> tuple[Array, Array]:
    """(Q1, R1) of the matrix Q R + u vᴴ; u is (m,) or (m, k), v is (n,) or (n, k)."""

    def change(a: Array, u: Array, v: Array) -> Array:
        u, v = (u[:, None], v[:, None]) if len(shape_of(u)) == 1 else (u, v)
        return a + u @ adjoint(v)

    return _changed("qr_update", [Q, R, u, v], change, (), check_finite)


def _changed(
    name: str, arrays: list[Any], change: Callable[..., Array], places: tuple[Any, ...], check_finite: bool
) -> tuple[Array, Array]:
    """SciPy's factors, with the derivative of those of the changed matrix."""
    function = scipy_function(name)

    def on_plain(*arrays: Any) -> Any:
        return function(*arrays, *places, check_finite=check_finite)

    if not holds_traced(arrays):
        found: tuple[Array, Array] = on_plain(*arrays)
        return found
    arrays = [checks.validated(x, key, check_finite) for x, key in zip(arrays, ("Q", "R", "u", "v"), strict=False)]
    dtype = np.result_type(*[dtype_of(x) for x in arrays])
    arrays = [checks.as_dtype(x, dtype) for x in arrays]
    rng = np.random.default_rng(0)  # of any numbers: what SciPy says about the shapes, and what it returns
    shapes = [np.shape(x) for x in on_plain(*[rng.normal(size=shape_of(x)).astype(dtype) for x in arrays])]

    def factors(q: Array, r: Array, *rest: Array) -> Any:
        return np.linalg.qr(change(q @ r, *rest), "reduced")

    def derivative(primals: Any, tangents: Any, values: Any) -> Any:
        if dtype.kind == "c":
            refuse_derivative(
                name,
                "the phases of complex factors follow from the order of its rotations, and have no derivative here",
                "Take np.linalg.qr of the changed matrix, whose R has a real diagonal.",
            )
        q1, r1 = values
        (own_q, _), (d_own_q, d_own_r) = jvp(factors, tuple(primals), tuple(tangents))
        k = shape_of(own_q)[1]
        lead = q1[:, :k]
        signs = stop_gradient(np.sign(np.sum(own_q * lead, axis=0)))
        d_lead = d_own_q * signs
        d_upper = signs[:, None] * d_own_r
        rest = q1[:, k:]
        d_rest = -lead @ (adjoint(d_lead) @ rest)
        below = np.zeros_like(r1[k:])
        return np.concatenate([d_lead, d_rest], 1), np.concatenate([d_upper, below])

    q1, r1 = by_equation(on_plain, [Aval(shape, dtype) for shape in shapes], derivative, arrays)
    return q1, r1
