"""The quasi-Monte Carlo rule, as a sum over traced values of the integrand."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.integrate as _scipy

from func.host.patching import with_converters
from func.host.scipy_hooks import holds_traced, original
from func.interpreters.core import Array
from func.interpreters.core.errors import UnsupportedFunctionError
from func.interpreters.host.source import at_line
from func.numpy import asarray
from func.scipy.integrate.numbers import known, numbers_of
from func.special import logsumexp
from func.transforms.closures import Closure
from func.transforms.custom import stop_gradient


@with_converters
def qmc_quad(
    func: Callable[..., Any],
    a: Any,
    b: Any,
    *,
    n_estimates: int = 8,
    n_points: int = 1024,
    qrng: Any = None,
    log: bool = False,
) -> Any:
    """Integral by quasi-Monte Carlo: SciPy draws the points, at which estimate and error differentiate.

    Compiled code draws the points once, during the trace.
    """
    if not holds_traced((a, b)) and not Closure(func).values:
        return original(_scipy.qmc_quad)(func, a, b, n_estimates=n_estimates, n_points=n_points, qrng=qrng, log=log)
    points: list[Any] = []

    def recorded(x: Any) -> Any:
        points.append(x)
        return np.ones(np.shape(x)[1:])

    a, b = [np.atleast_1d(asarray(limit, float)) for limit in (a, b)]
    a, b = np.broadcast_arrays(a, b)
    dimension = a.shape[0]
    original(_scipy.qmc_quad)(
        recorded,
        np.zeros(dimension),
        np.ones(dimension),
        n_estimates=n_estimates,
        n_points=n_points,
        qrng=qrng,
    )
    if known(a) is not None and known(b) is not None and np.any(known(a) == known(b)):
        warnings.warn(
            "A lower limit was equal to an upper limit, so the value of the integral is zero by definition.",
            stacklevel=2,
        )
    evaluate = _vectorized(func, a, b)
    low, high = np.minimum(a, b), np.maximum(a, b)
    # np.minimum halves the derivative where limits are equal; the limits themselves have all of it.
    low, high = np.where(a <= b, a, low), np.where(a <= b, b, high)
    sign = np.prod(stop_gradient(np.where(a <= b, 1.0, -1.0)))
    volume = np.prod(high - low) / int(n_points)
    values = [evaluate((sample.T * (high - low) + low).T) for sample in points[-int(n_estimates) :]]
    if not log:
        estimates = np.stack([np.sum(value * volume) for value in values])
        error = np.std(estimates, ddof=1) / np.sqrt(n_estimates)
        return _scipy._quadrature.QMCQuadResult(np.mean(estimates) * sign, error)
    estimates = np.stack([logsumexp(value) for value in values]) + np.log(volume)
    mean = logsumexp(estimates) - np.log(n_estimates)
    spread = logsumexp(np.stack([estimates + 0j, np.broadcast_to(mean + np.pi * 1j, estimates.shape)]), axis=0)
    error = np.real(0.5 * (logsumexp(2 * spread) - np.log(n_estimates - 1))) - 0.5 * np.log(n_estimates)
    if numbers_of(sign) is None:
        raise UnsupportedFunctionError(
            f"qmc_quad with log=True in compiled code, where the order of the limits is not known{at_line()}\n"
            "Whether the result is complex depends on it: give limits that are not traced."
        )
    return _scipy._quadrature.QMCQuadResult(mean + np.pi * 1j if numbers_of(sign) < 0 else mean, error)


def _vectorized(func: Callable[..., Any], a: Array, b: Array) -> Callable[[Array], Array]:
    """The integrand on points in columns."""
    try:
        func(np.stack([a, b]).T)
    except Exception as error:
        warnings.warn(
            f"Exception encountered when attempting vectorized call to `func`: {error}. For better performance, "
            "`func` should accept two-dimensional array `x` with shape `(len(a), n_points)` and return an array of the "
            "integrand value at each of the `n_points`.",
            stacklevel=4,
        )
        return lambda x: np.stack([func(column) for column in x.T])
    return func
