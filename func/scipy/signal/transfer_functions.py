"""Functions of filter coefficients that check or shorten them by value, where the values are known.

Under `jit` no leading coefficient counts as zero.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.signal as _scipy

from func import linalg
from func import numpy as fnp
from func.host.intercepted_arrays import resolved
from func.host.scipy_hooks import holds_traced
from func.interpreters.core import Array, Tracer, shape_of
from func.scipy.kinds.traces import is_known, numpy_with, part
from func.scipy.kinds.versions import version_of


def _aligned(b: Any) -> Array:
    """Numerators of several outputs as rows of one length, with zeros in front."""
    if isinstance(b, (list, tuple)) and any([np.ndim(row) > 0 for row in b]):
        rows = [fnp.atleast_1d(fnp.asarray(row)) for row in b]
        width = max([row.shape[-1] for row in rows])
        padded = [
            fnp.concatenate([fnp.zeros(width - row.shape[-1], row.dtype), fnp.reshape(row, (-1,))]) for row in rows
        ]
        return fnp.stack(padded)
    return fnp.asarray(b)


@version_of(_scipy.normalize)
def normalize(b: Any, a: Any) -> tuple[Array, Array]:
    """Numerator and denominator with a leading coefficient of one in the latter, as scipy.signal.normalize."""
    den, num = fnp.atleast_1d(fnp.asarray(a)), fnp.atleast_2d(_aligned(b))
    if den.ndim != 1:
        raise ValueError("Denominator polynomial must be rank-1 array.")
    if num.ndim > 2:
        raise ValueError("Numerator polynomial must be rank-1 or rank-2 array.")
    if is_known(den) and bool(fnp.all(den == 0)):
        raise ValueError("Denominator must have at least on nonzero element.")
    den = trim_zeros(den, "f")
    num, den = num / den[0], den / den[0]
    leading = 0
    while is_known(num) and leading < num.shape[-1] and bool(fnp.all(fnp.abs(num[:, leading]) <= 1e-14)):
        leading += 1
    if leading > 0:
        warnings.warn(
            "Badly conditioned filter coefficients (numerator): the results may be meaningless",
            _scipy.BadCoefficients,
            stacklevel=3,
        )
        num = num[:, leading - 1 if leading == num.shape[1] else leading :]
    return num[0] if num.shape[0] == 1 else num, den


_bilinear = part(_scipy.bilinear, np=numpy_with(trim_zeros=lambda filt, trim: filt))


@version_of(_scipy.bilinear)
def bilinear(b: Any, a: Any, fs: Any = 1.0) -> tuple[Array, Array]:
    """A digital filter from an analog one, as scipy.signal.bilinear.

    Leading coefficients that are zero have derivatives where they do not raise the order.
    """
    b, a = fnp.atleast_1d(fnp.asarray(b)), fnp.atleast_1d(fnp.asarray(a))
    if b.ndim == 1 and a.ndim == 1:
        length = max([trim_zeros(filt, "f").shape[0] for filt in (b, a)]) or 1
        b, a = b[-length:], a[-length:]
    digital: tuple[Array, Array] = _bilinear(b, a, fs)
    return digital


_lfiltic = part(_scipy.lfiltic)


@version_of(_scipy.lfiltic)
def lfiltic(b: Any, a: Any, y: Any, x: Any = None) -> Array:
    """The state of a filter with these outputs and inputs before, as scipy.signal.lfiltic.

    SciPy divides by the leading coefficient unless it is one; one has a derivative too.
    """
    a = fnp.atleast_1d(fnp.asarray(a))
    if a.ndim != 1 or a.shape[0] == 0 or (is_known(a) and bool(a[0] == 0.0)):
        return _lfiltic(b, a, y, x)
    twice = fnp.concatenate([fnp.full_like(a[:1], 2), a[1:]])
    return _lfiltic(b, twice, y, x) * (2 / a[0])


def trim_zeros(filt: Any, trim: str = "fb") -> Any:
    """A polynomial without the leading ("f") and trailing ("b") coefficients that are zero."""
    if not is_known(filt):
        return filt
    first, last = 0, filt.shape[0]
    while "f" in trim.lower() and first < last and bool(filt[first] == 0.0):
        first += 1
    while "b" in trim.lower() and last > first and bool(filt[last - 1] == 0.0):
        last -= 1
    return filt[first:last]


def validate_fs(fs: Any, allow_none: bool = True) -> Any:
    """A sampling frequency."""
    if fs is None and not allow_none:
        raise ValueError("Sampling frequency can not be none.")
    if type(fs) is not Tracer:
        return fs if fs is None else float(fs)
    if len(shape_of(fs)):
        raise ValueError("Sampling frequency fs must be a single scalar.")
    return fnp.multiply(fs, 1.0)


def validate_sos(sos: Any, xp: Any = None) -> tuple[Array, int]:
    """Second-order sections and their number."""
    sos = fnp.atleast_2d(fnp.asarray(sos))
    if sos.ndim != 2:
        raise ValueError("sos array must be 2D")
    if sos.shape[1] != 6:
        raise ValueError("sos array must be shape (n_sections, 6)")
    if is_known(sos) and not bool(fnp.all(sos[:, 3] == 1)):
        raise ValueError("sos[:, 3] should be all ones")
    return sos, sos.shape[0]


def least_squares(a: Any, b: Any, xp: Any = None, rcond: Any = None) -> tuple[Any, Any, Any, Any]:
    """The solution of a least-squares problem; for a plain matrix a product with its pseudoinverse."""
    a = resolved(a)
    if holds_traced(a):
        return linalg.lstsq(a, b)
    matrix = np.asarray(a)
    return fnp.matmul(np.linalg.pinv(matrix), b), None, np.linalg.matrix_rank(matrix), None
