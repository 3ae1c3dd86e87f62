"""Forms of matrices: real and complex Schur forms, blocks of eigenvalues, bands and symmetry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg as _scipy

from func.backends.array_helpers.linalg import complex_dtype
from func.interpreters.core import Array, concrete, dtype_of, is_plain_array, known_value, operand, shape_of
from func.linalg import checks
from func.scipy.kinds.versions import version_of
from func.scipy.linalg.scipy_values import adjoint, over_batch, scipy_function


@version_of(_scipy.rsf2csf)
def rsf2csf(T: Array, Z: Array, check_finite: bool = True) -> Any:
    """The complex Schur form (T, Z) of a real one (…, n, n), by a rotation for each block of two rows.

    The derivative is that of the rotations for these numbers.
    """
    T, Z = checks.squares(T, "T", check_finite), checks.squares(Z, "Z", check_finite)
    if shape_of(T)[-1] != shape_of(Z)[-1]:
        raise ValueError(f"Input array shapes must match: Z: {shape_of(Z)} vs. T: {shape_of(T)}")
    dtype = complex_dtype(np.result_type(dtype_of(T), dtype_of(Z)))
    return over_batch(_complex_form, [checks.as_dtype(T, dtype), checks.as_dtype(Z, dtype)], [2, 2], "rsf2csf")


def _complex_form(t: Array, z: Array) -> tuple[Array, Array]:
    n = shape_of(t)[0]
    index = np.arange(n)
    for m in range(n - 1, 0, -1):
        last = t[m, m - 1]
        limit = np.finfo(np.float64).eps * (np.abs(t[m - 1, m - 1]) + np.abs(t[m, m]))
        is_block = np.abs(last) > limit
        block = np.where(is_block, t[m - 1 : m + 1, m - 1 : m + 1], np.array([[0, 1], [-1, 0]], dtype_of(t)))
        shift = np.linalg.eigvals(block)[0] - block[1, 1]
        lower = block[1, 0]
        length = np.sqrt(np.real(shift) ** 2 + np.imag(shift) ** 2 + np.real(lower) ** 2 + np.imag(lower) ** 2)
        c, s = shift / length, lower / length
        rotation = np.stack([np.stack([np.conjugate(c), s]), np.stack([-s, c])])
        rows = np.concatenate([t[: m - 1], rotation @ t[m - 1 : m + 1], t[m + 1 :]])
        turned = np.where(is_block & (index >= m - 1), rows, t)
        turned = np.where(is_block & (index <= m)[:, None], _columns_turned(turned, rotation, m), turned)
        z = np.where(is_block, _columns_turned(z, rotation, m), z)
        t = np.where((index[:, None] == m) & (index == m - 1), 0, turned)
    return t, z


def _columns_turned(a: Array, rotation: Array, m: int) -> Array:
    """The matrix with its columns m - 1 and m multiplied by the adjoint of a rotation."""
    return np.concatenate([a[:, : m - 1], a[:, m - 1 : m + 1] @ adjoint(rotation), a[:, m + 1 :]], 1)


@version_of(_scipy.cdf2rdf)
def cdf2rdf(w: Array, v: Array) -> tuple[Array, Array]:
    """(wr, vr): the real block diagonal form (…, n, n) of eigenvalues w (…, n), and the vectors (…, n, n) for it.

    Complex pairs are not interleaved. The numbers decide which eigenvalues are complex, without a derivative.
    """
    checks.validated(w, "w")
    w, v = operand(w), checks.validated(v, "v")
    if len(shape_of(w)) < 1:
        raise ValueError("expected w to be at least 1D")
    if len(shape_of(v)) < 2:
        raise ValueError("expected v to be at least 2D")
    if len(shape_of(v)) != len(shape_of(w)) + 1:
        raise ValueError("expected eigenvectors array to have exactly one dimension more than eigenvalues array")
    if shape_of(v)[-2] != shape_of(v)[-1]:
        raise ValueError("expected v to be a square matrix or stacked square matrices: v.shape[-2] = v.shape[-1]")
    n = shape_of(w)[-1]
    if shape_of(v)[-1] != n:
        raise ValueError("expected the same number of eigenvalues as eigenvectors")
    is_complex = np.imag(w) != 0
    known = known_value(is_complex)
    if is_plain_array(known) and np.any(np.sum(known, axis=-1) % 2):
        raise ValueError("expected complex-conjugate pairs of eigenvalues")
    place = np.cumsum(is_complex, axis=-1)
    is_first = is_complex & (place % 2 == 1)
    is_second = is_complex & (place % 2 == 0)
    is_pair = is_first[..., :, None] & is_second[..., None, :] & (place[..., :, None] + 1 == place[..., None, :])
    is_off = is_pair | np.swapaxes(is_pair, -1, -2)
    own = np.eye(n, dtype=bool)
    parts = np.where(is_off, np.imag(w)[..., :, None], 0)
    wr = np.where(own, np.real(w)[..., :, None], parts).astype(dtype_of(np.real(w)))
    diagonal = np.where(is_first, 0.5j, np.where(is_second, 0.5, 1.0))
    beside = np.where(is_pair, 0.5, np.where(is_off, -0.5j, 0))
    return wr, np.real(v @ np.where(own, diagonal[..., :, None], beside))


def _of_numbers(name: str) -> Callable[..., Any]:
    """A function of the numbers of a matrix, without a derivative."""

    def look(a: Array, *args: Any, **options: Any) -> Any:
        return scipy_function(name)(concrete(a), *args, **options)

    look.__name__ = look.__qualname__ = name
    look.__doc__ = f"scipy.linalg.{name} of the numbers of a traced or plain matrix."
    return look


bandwidth, ishermitian, issymmetric = [_of_numbers(name) for name in ("bandwidth", "ishermitian", "issymmetric")]
