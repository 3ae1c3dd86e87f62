"""Products with the factor Q of a QR decomposition."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.linalg as _scipy
from numpy.exceptions import ComplexWarning

from func import linalg as _dense
from func.interpreters.core import Array, dtype_of, shape_of
from func.linalg import checks
from func.scipy.kinds.versions import version_of


@version_of(_scipy.qr_multiply)
def qr_multiply(
    a: Array,
    c: Array,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> Any:
    """(c Q, R) in mode "right", (Q c, R) in mode "left", of the QR decomposition of a (…, m, n), without forming Q.

    With `pivoting` also the permutation; `conjugate` takes the complex conjugate of Q. c is (…, k, m) or (m,) for
    "right", (…, min(m, n), k) or (min(m, n),) for "left".
    """
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
