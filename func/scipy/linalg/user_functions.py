"""Functions of matrices by user functions, and the condition of the exponential."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg as _scipy

from func import linalg as _dense
from func.backends.array_helpers.linalg import complex_dtype
from func.host.scipy_hooks import holds_traced
from func.interpreters.core import Array, Aval, dtype_of, shape_of
from func.interpreters.core.errors import UnsupportedFunctionError
from func.interpreters.host.source import at_line
from func.linalg import checks
from func.scipy.kinds.versions import version_of
from func.scipy.linalg.scipy_values import by_equation, over_batch, scipy_function
from func.transforms.closures import Closure
from func.transforms.custom import custom_jvp
from func.transforms.forward import jvp


@version_of(_scipy.expm_cond)
def expm_cond(A: Array, check_finite: bool = True) -> Array:
    """The relative condition number of the exponential of A (…, n, n) in the Frobenius norm.

    Source: N. Higham (2008), "Functions of Matrices", section 3.1: the 2-norm of the matrix of the derivative.
    """
    A = checks.squares(A, "A", check_finite)
    n = shape_of(A)[-1]
    basis = np.reshape(np.eye(n * n), (n * n, n, n))
    a = np.expand_dims(checks.in_double(A), -3)
    slopes = _dense.expm_frechet(a, basis, compute_expm=False, check_finite=False)
    whole = np.reshape(slopes, (*shape_of(slopes)[:-2], n * n))
    largest = np.max(np.linalg.svd(whole, compute_uv=False), axis=-1)
    return largest * np.linalg.norm(A, axis=(-2, -1)) / np.linalg.norm(_dense.expm(A), axis=(-2, -1))


def funm(A: Array, func: Callable[[Any], Any], disp: bool = True) -> Array:
    """f(A) of A (…, n, n) for a function of arrays of eigenvalues, which func differentiates as often as A requires.

    Value and derivative are accurate for matrices with a basis of eigenvectors. If the eigenvectors are dependent to
    six digits, the derivative is NaN. So are second derivatives if eigenvalues are equal or so close that no digits
    would remain. func also differentiates traced values in the closure of `func`. Real for real A with a real result,
    but complex in traced code.

    Source: N. Higham (2008), "Functions of Matrices", theorem 3.11 and corollary 3.12 (Daleckii and Krein): the
    derivative is V (D ∘ V⁻¹ E V) V⁻¹ with the divided differences D of f.
    """
    closure = Closure(func)
    if not holds_traced(A) and not closure.values:
        out: Array = scipy_function("funm")(A, func, disp)
        return out
    if not disp:
        raise UnsupportedFunctionError(
            f"scipy.linalg.funm of traced values has no error estimate{at_line()}\nCall it without disp=False."
        )
    A = checks.squares(A, "A", False)
    dtype = complex_dtype(dtype_of(A))
    count = len(closure.values)

    def on_plain(a: Any, *values: Any) -> Any:
        return [scipy_function("funm")(a, closure.rebuilt(values), True)]

    def derivative(primals: Any, tangents: Any, values: Any) -> Any:
        (a, *parameters), (da, *changes) = primals, tangents
        w, v, inverse = _basis(a)
        inner = inverse @ da @ v
        f = closure.rebuilt(parameters)
        change = _divided(f, w) * inner
        if parameters:
            rate = jvp(lambda *own: closure.rebuilt(own)(w) + 0 * w, tuple(parameters), tuple(changes))[1]
            change = change + np.where(np.eye(shape_of(w)[0], dtype=bool), rate, 0)
        return [v @ change @ inverse]

    def of_one(a: Array, *values: Array) -> Array:
        return by_equation(on_plain, [Aval(shape_of(a), dtype)], derivative, [a, *values])[0]

    cores = [2, *[len(shape_of(value)) for value in closure.values]]
    found: Array = over_batch(of_one, [A, *closure.values], cores, "funm")
    real = checks.real_if_known(found, A)
    return real if count == 0 or dtype_of(real).kind != "c" else found


def _divided(f: Callable[[Any], Any], w: Array) -> Array:
    """The matrix of (f(w_i) - f(w_j)) / (w_i - w_j); for equal w the derivative, for close ones its mean at nodes.

    The mean of the derivative on the way from one to the other is the divided difference (Hermite and Genocchi).
    """
    n = shape_of(w)[0]
    first, second = np.broadcast_to(w[:, None], (n, n)), np.broadcast_to(w[None, :], (n, n))
    gap = first - second
    size = np.abs(w)
    is_close = np.abs(gap) <= 1e-3 * np.maximum(size[:, None], size[None, :])
    values = f(w) + 0 * w
    apart = (values[:, None] - values[None, :]) / np.where(is_close, 1, gap)
    nodes, weights = np.polynomial.legendre.leggauss(4)
    mean: Any = 0
    for node, weight in zip(nodes, weights, strict=True):
        place = second + gap * (node + 1) / 2
        flat = np.reshape(np.where(is_close, place, first), (n * n,))
        mean = mean + jvp(f, (flat,), (np.ones_like(flat),))[1] * (weight / 2)
    return np.where(is_close, np.reshape(mean, (n, n)), apart)


@custom_jvp
def _once(w: Array, v: Array) -> Any:
    """Eigenvalues and eigenvectors; equal eigenvalues leave their vectors undetermined: the derivative is NaN."""
    return w, v


@_once.defjvp
def _once_jvp(primals: Any, tangents: Any) -> Any:
    w, v = primals
    n = shape_of(w)[0]
    gap = np.abs(w[:, None] - w[None, :]) + np.where(np.eye(n, dtype=bool), np.inf, 0)
    smallest = np.min(np.linalg.svd(v, compute_uv=False), initial=1)
    is_lost = np.min(gap, initial=np.inf) * smallest <= 1e-5 * np.max(np.abs(w), initial=0)
    dw, dv = [np.where(is_lost, np.nan, 1) * tangent for tangent in tangents]
    return _once(w, v), (dw, dv)


def _basis(a: Array) -> tuple[Array, Array, Array]:
    """Eigenvalues, eigenvectors and the inverse matrix of these, NaN where the eigenvectors are dependent."""
    dtype = complex_dtype(dtype_of(a))
    w, v = np.linalg.eig(checks.as_dtype(a, dtype))
    w, v = _once(w, v)
    singular = np.linalg.svd(v, compute_uv=False)
    is_basis = np.min(singular, initial=1) > 1e-6
    safe = np.where(is_basis, v, np.eye(shape_of(v)[0]))
    inverse = np.linalg.inv(safe)
    return w, v, np.where(is_basis, inverse, np.nan)
