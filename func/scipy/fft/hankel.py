"""The fast Hankel transform of logarithmically spaced values, differentiable in all of its arguments.

Its coefficients are quotients of gamma functions. A. J. S. Hamilton (2000), MNRAS 312, 257.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import scipy.fft as _scipy

from func import numpy as fnp
from func import special
from func.interpreters.core import Array, known_value
from func.scipy.kinds.versions import version_of

__all__ = ["fht", "ifht"]

_LOG_2 = math.log(2)


@version_of(_scipy.fht)
def fht(a: Array, dln: Array, mu: Array, offset: Array = 0.0, bias: Array = 0.0) -> Array:
    """The fast Hankel transform of the last axis, as scipy.fft.fht.

    >>> import numpy as np, func
    >>> a = np.array([1.0, 2.0, 4.0, 1.0])
    >>> gradient = func.grad(lambda a: np.sum(func.scipy.fft.fht(a, 0.1, 0.5)))(a)
    >>> bool(np.allclose(gradient, gradient[0]))
    True
    """
    a = fnp.asarray(a)
    j = _places(a.shape[-1])
    biased = a * fnp.exp(-bias * (j * dln))
    transformed = _transformed(biased, _coefficients(a.shape[-1], dln, mu, offset, bias, False))
    return transformed * fnp.exp(-bias * (j * dln + offset))


@version_of(_scipy.ifht)
def ifht(A: Array, dln: Array, mu: Array, offset: Array = 0.0, bias: Array = 0.0) -> Array:
    """The inverse of `fht`."""
    A = fnp.asarray(A)
    j = _places(A.shape[-1])
    biased = A * fnp.exp(bias * (j * dln + offset))
    factors = 1 / fnp.conj(_coefficients(A.shape[-1], dln, mu, offset, bias, True))
    return _transformed(biased, factors) * fnp.exp(bias * (j * dln))


def _places(n: int) -> Any:
    return np.arange(n) - (n - 1) / 2


def _coefficients(n: int, dln: Any, mu: Any, offset: Any, bias: Any, inverse: bool) -> Array:
    """The factors (n // 2 + 1,) of the spectrum; the last of an even number is real.

    The first, 2^q Γ((μ + 1 + q)/2) / Γ((μ + 1 - q)/2) with q the bias, is singular where the transform is.
    """
    above, below = (mu + 1 + bias) / 2, (mu + 1 - bias) / 2
    first = fnp.exp2(bias * 1.0) * special.poch(below, above - below)
    singular = fnp.equal(first, 0.0) if inverse else fnp.isinf(first)
    value = known_value(singular)
    if value is not None and np.any(value):
        what = "inverse transform" if inverse else "transform"
        warnings.warn(f"singular {what}; consider changing the bias", stacklevel=3)
    first = fnp.where(singular, math.inf if inverse else 0.0, first)
    y = np.arange(1, n // 2 + 1) * (math.pi / (n * dln))
    upper, lower = special.loggamma(above + 1j * y), special.loggamma(below + 1j * y)
    size = fnp.exp(fnp.real(upper) - fnp.real(lower) + _LOG_2 * bias)
    phase = fnp.imag(upper) + fnp.imag(lower) + y * (2 * (_LOG_2 - offset))
    sines = fnp.sin(phase)
    if n % 2 == 0:
        sines = sines * (np.arange(1, n // 2 + 1) < n // 2)
    rest = size * (fnp.cos(phase) + 1j * sines)
    return fnp.concatenate([fnp.reshape(fnp.asarray(first) + 0j, (1,)), rest])


def _transformed(a: Array, factors: Array) -> Array:
    return fnp.fft.irfft(fnp.fft.rfft(a) * factors, a.shape[-1])[..., ::-1]
