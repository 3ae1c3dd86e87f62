"""Functions of samples: those of scipy.stats that ask for the values of what they are given, on traced values.

Most descriptive functions and tests of SciPy are NumPy code that runs on traced values as it is; the others are here.
p-values differentiate by the statistic. Tests that draw random numbers (`method=`) are refused.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.special as sc
import scipy.stats as _scipy
from scipy.stats import _stats_py

import func
from func.host.patching import with_converters
from func.host.scipy_hooks import holds_traced, original
from func.interpreters.core.errors import UnsupportedFunctionError
from func.interpreters.host.source import at_line
from func.interpreters.primitives.structural.identity import is_abstract_value
from func.scipy.stats.estimates import KEEPS_PRECISION
from func.scipy.stats.policies import in_wrapper

__all__ = [
    "_stats_py__SimpleStudentT_cdf",
    "_stats_py__SimpleStudentT_sf",
    "boxcox_llf",
    "gaussian_kde",
    "gaussian_kde_evaluate",
    "gaussian_kde_logpdf",
    "hmean",
    "linregress",
    "pmean",
    "power_divergence",
    "yeojohnson_llf",
]  # fmt: skip


def _known(condition: Any) -> bool:
    """Whether a condition holds somewhere, as far as that is known."""
    return not is_abstract_value(condition) and bool(np.any(func.stop_gradient(condition)))


def _samples(name: str, arrays: Sequence[Any], axis: int | None, nan_policy: str) -> tuple[list[Any], int]:
    """The samples as arrays of floating point and their axis; NaN is propagated or refused."""
    if nan_policy not in ("propagate", "raise", "omit"):
        raise ValueError("nan_policy must be one of {'propagate', 'raise', 'omit'}.")
    arrays = [np.asarray(x) for x in arrays]
    arrays = [x if x.dtype.kind in "fc" else x.astype(float) for x in arrays]
    if nan_policy != "propagate":
        for x in arrays:
            if is_abstract_value(x):
                raise UnsupportedFunctionError(
                    f"scipy.stats.{name}: nan_policy={nan_policy!r} asks for the values, which are not known while the "
                    f"code is staged{at_line()}"
                )
            if _known(np.isnan(x)):
                if nan_policy == "raise":
                    raise ValueError("The input contains nan values")
                raise UnsupportedFunctionError(
                    f"scipy.stats.{name}: nan_policy='omit' with traced values that hold NaN{at_line()}\n"
                    "Select the values before, or write np.nanmean and the like."
                )
    if axis is None:
        return [np.reshape(x, (-1,)) for x in arrays], 0
    return arrays, axis


def _kept(x: Any, ndim: int, axis: int | None, keepdims: bool) -> Any:
    """A result without an axis, or with it of length 1."""
    if keepdims:
        x = np.reshape(x, (1,) * ndim) if axis is None else np.expand_dims(x, axis)
    return x[()] if isinstance(x, np.ndarray) else x


def _average(a: Any, axis: int, weights: Any) -> Any:
    if weights is None:
        return np.mean(a, axis=axis)
    weights = np.asarray(weights)
    weights = np.broadcast_to(weights, a.shape)
    return np.sum(a * weights, axis=axis) / np.sum(weights, axis=axis)


@in_wrapper("hmean")
def hmean(a: Any, axis: int = 0, dtype: Any = None, *, weights: Any = None) -> Any:
    """The harmonic mean: NaN where an element is negative, 0 where one is 0."""
    a = _nonnegative("harmonic", np.asarray(a, dtype))
    with np.errstate(all="ignore"):
        return 1.0 / _average(1.0 / a, axis, weights)


@in_wrapper("pmean")
def pmean(a: Any, p: Any, *, axis: int = 0, dtype: Any = None, weights: Any = None) -> Any:
    """The power mean, differentiable by its power p too, at p = 0 the geometric mean: (mean of Box-Cox of a)⁻¹."""
    if np.ndim(p) != 0:
        raise ValueError("Power mean only defined for exponent of type int or float.")
    if _known(np.isinf(p)):
        raise NotImplementedError("Power mean only implemented for finite `p`")
    a = _nonnegative("power", np.asarray(a, dtype))
    p = np.asarray(p, a.dtype) if not holds_traced(p) else p
    with np.errstate(all="ignore"):
        log = np.log(a)
        top = func.stop_gradient(np.max(log, axis=axis, keepdims=True))
        top = np.where(np.isfinite(top), top, 0.0)
        mean = _average(sc.boxcox(np.exp(log - top), p), axis, weights)
        return sc.inv_boxcox(mean, p) * np.exp(np.squeeze(top, axis=axis))


def _nonnegative(mean: str, a: Any) -> Any:
    """A sample with NaN for what is negative."""
    if _known(a < 0):
        warnings.warn(
            f"The {mean} mean is only defined if all elements are non-negative; otherwise, the result is NaN.",
            RuntimeWarning,
            stacklevel=4,
        )
    return np.where(a < 0, np.nan, a)


@functools.cache
def _of_constants(dtype: Any) -> Any:
    """The correlation with equal numbers, which is 0 or NaN by SciPy's version."""
    return original(_scipy.linregress)([0.0, 1.0, 2.0], [0.0, 0.0, 0.0]).rvalue.astype(dtype)


@in_wrapper("linregress")
def linregress(x: Any, y: Any, alternative: str = "two-sided") -> Any:
    """The line through points, with standard errors and the p-value of a slope of 0."""
    x, y = [v if v.dtype.kind == "f" else v.astype(float) for v in (np.asarray(x), np.asarray(y))]
    if x.size == 0 or y.size == 0:
        raise ValueError("Inputs must not be empty.")
    if x.shape != y.shape:
        raise ValueError("x and y must have the same length.")
    if _known(np.max(x) == np.min(x)) and x.size > 1:
        raise ValueError("Cannot calculate a linear regression if all x values are identical")
    n = x.size
    x, y = [v.astype(np.result_type(x, y) if KEEPS_PRECISION else float) for v in (x, y)]
    xmean, ymean = np.mean(x), np.mean(y)
    xm, ym = x - xmean, y - ymean
    ssx, ssy, sxy = np.mean(xm * xm), np.mean(ym * ym), np.mean(xm * ym)
    flat = (ssx == 0) | (ssy == 0)
    r = np.where(flat, _of_constants(x.dtype), np.clip(sxy / np.sqrt(np.where(flat, 1.0, ssx * ssy)), -1.0, 1.0))
    slope = sxy / ssx
    intercept = ymean - slope * xmean
    if n == 2 and not KEEPS_PRECISION:
        pvalue = np.where(y[0] == y[1], 1.0, 0.0)[()]
        stderr = intercept_stderr = 0.0 * slope
    else:
        df = x.dtype.type(n - 2)
        t = r * np.sqrt(df / ((1.0 - r + 1.0e-20) * (1.0 + r + 1.0e-20)))
        two_sided = {"two-sided": lambda: 2 * sc.stdtr(df, -np.abs(t))}
        two_sided |= {"less": lambda: sc.stdtr(df, t), "greater": lambda: sc.stdtr(df, -t)}
        if alternative not in two_sided:
            raise ValueError("`alternative` must be 'less', 'greater', or 'two-sided'.")
        pvalue = two_sided[alternative]()
        stderr = np.sqrt((1 - r**2) * ssy / ssx / df)
        intercept_stderr = stderr * np.sqrt(ssx + xmean**2)
    return _stats_py.LinregressResult(
        slope=slope, intercept=intercept, rvalue=r, pvalue=pvalue, stderr=stderr, intercept_stderr=intercept_stderr
    )


@in_wrapper("power_divergence")
def power_divergence(f_obs: Any, f_exp: Any = None, ddof: Any = 0, axis: Any = 0, lambda_: Any = None) -> Any:
    """The Cressie-Read divergence of observed from expected frequencies, by SciPy's code but for a traced power.

    By a power its terms are Box-Cox transforms of the ratio, whose limit at 0 is the logarithm. At -1 the terms have
    their parts of Σ (expected - observed) = 0 left out.
    """
    plain = original(_scipy.power_divergence)(f_obs, f_exp, ddof, axis, None if holds_traced(lambda_) else lambda_)
    if not holds_traced(lambda_):
        return plain
    observed = np.asarray(f_obs)
    expected = np.mean(observed, axis=axis, keepdims=True) if f_exp is None else np.asarray(f_exp)
    ratio, last = observed / expected, lambda_ == -1
    at_last = 2.0 * expected * sc.boxcox(ratio, lambda_ + 1) / np.where(last, lambda_, -1.0)
    other = 2.0 * observed * sc.boxcox(ratio, lambda_) / np.where(last, 1.0, lambda_ + 1)
    statistic = np.sum(np.where(last, at_last, other), axis=axis)
    degrees = observed.shape[axis] - 1.0 - np.asarray(ddof)
    return _stats_py.Power_divergenceResult(statistic, sc.chdtrc(degrees, statistic))


def boxcox_llf(
    lmb: Any, data: Any, *, axis: int | None = 0, keepdims: bool = False, nan_policy: str = "propagate"
) -> Any:
    """The logarithmic likelihood of the Box-Cox transform, differentiable by λ, also at 0."""
    ndim = np.ndim(data)
    (data,), along = _samples("boxcox_llf", [data], axis, nan_policy)
    n = data.shape[along]
    if n == 0:
        return np.nan
    log = np.log(data)
    middle = np.mean(log, axis=along, keepdims=True)
    scaled = sc.boxcox(np.exp(log - middle), lmb)
    log_variance = np.log(np.var(scaled, axis=along)) + 2 * lmb * np.squeeze(middle, axis=along)
    out = (lmb - 1) * np.sum(log, axis=along) - n / 2 * log_variance
    return _kept(out, ndim, axis, keepdims)


def yeojohnson_of(x: Any, lmbda: Any) -> Any:
    """The Yeo-Johnson transform, differentiable by λ."""
    positive = x >= 0
    right = sc.boxcox1p(np.where(positive, x, 0.0), lmbda)
    left = -sc.boxcox1p(np.where(positive, 0.0, -x), 2 - lmbda)
    return np.where(positive, right, left)


def yeojohnson_llf(
    lmb: Any, data: Any, *, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False
) -> Any:
    """The logarithmic likelihood of the Yeo-Johnson transform."""
    ndim = np.ndim(data)
    (data,), along = _samples("yeojohnson_llf", [data], axis, nan_policy)
    n = data.shape[along]
    if n == 0:
        return np.nan
    variance = np.var(yeojohnson_of(data, lmb), axis=along)
    out = -n / 2 * np.log(variance) + (lmb - 1) * np.sum(np.sign(data) * np.log1p(np.abs(data)), axis=along)
    return _kept(out, ndim, axis, keepdims)


def _stats_py__SimpleStudentT_cdf(self: Any, t: Any) -> Any:
    """Student's distribution function of tests, differentiable by the degrees of freedom."""
    return _scipy.t.cdf(t, self.df).astype(_precision(self.df, t))


def _stats_py__SimpleStudentT_sf(self: Any, t: Any) -> Any:
    return _scipy.t.cdf(-t, self.df).astype(_precision(self.df, t))


def _precision(*values: Any) -> Any:
    """The dtype of the results of SciPy's compiled functions."""
    return np.result_type(*[v if isinstance(v, (int, float)) else np.asarray(v).dtype for v in values], np.float32)


class gaussian_kde(_scipy.gaussian_kde):  # type: ignore[misc]
    """SciPy's class for traced samples, weights or bandwidths."""

    @with_converters
    def __init__(self, dataset: Any, bw_method: Any = None, weights: Any = None) -> None:
        self.dataset = np.atleast_2d(np.asarray(dataset))
        if self.dataset.dtype.kind != "f":
            self.dataset = self.dataset.astype(float)
        if not self.dataset.size > 1:
            raise ValueError("`dataset` input should have multiple elements.")
        self.d, self.n = self.dataset.shape
        if weights is None:
            weights = np.ones(self.n)
        weights = np.asarray(weights) * 1.0
        if weights.ndim != 1:
            raise ValueError("`weights` input should be one-dimensional.")
        if weights.shape[0] != self.n:
            raise ValueError("`weights` input should be of length n")
        self._weights = weights / np.sum(weights)
        self._neff = 1 / np.sum(self._weights**2)
        if self.d > self.n:
            raise ValueError("Number of dimensions is greater than number of samples.")
        self.set_bandwidth(bw_method=bw_method)

    @with_converters
    def set_bandwidth(self, bw_method: Any = None) -> None:
        """Scott's rule, Silverman's, a number, or a function of this object."""
        if bw_method is None or isinstance(bw_method, str):
            rules = {None: self.scotts_factor, "scott": self.scotts_factor, "silverman": self.silverman_factor}
            if bw_method not in rules:
                raise ValueError("`bw_method` should be 'scott', 'silverman', a scalar or a callable.")
            self.covariance_factor = rules[bw_method]
        elif callable(bw_method):
            self.covariance_factor = lambda: bw_method(self)
        else:
            self.covariance_factor = lambda: bw_method
        self._compute_covariance()

    def _compute_covariance(self) -> None:
        self.factor: Any = self.covariance_factor()
        centred = self.dataset - np.sum(self._weights * self.dataset, axis=1, keepdims=True)
        self._data_covariance = (centred * self._weights) @ centred.T / (1 - np.sum(self._weights**2))
        self.covariance = self._data_covariance * self.factor**2
        self.cho_cov = np.linalg.cholesky(self.covariance)
        self.log_det = 2 * np.sum(np.log(np.diagonal(self.cho_cov) * np.sqrt(2 * np.pi)))

    def evaluate(self, points: Any) -> Any:
        """The estimated density at points (d, m)."""
        return np.exp(_log_kernel_density(self, points))

    __call__ = evaluate

    def pdf(self, x: Any) -> Any:
        """The estimated density at points (d, m)."""
        return self.evaluate(x)

    def logpdf(self, x: Any) -> Any:
        """The logarithm of the estimated density at points (d, m)."""
        return _log_kernel_density(self, x)

    @with_converters
    def integrate_box_1d(self, low: Any, high: Any) -> Any:
        """The probability of an interval."""
        if self.d != 1:
            raise ValueError("integrate_box_1d() only handles 1D pdfs")
        width = np.ravel(np.sqrt(self.covariance))[0]
        ends = [sc.ndtr((end - np.ravel(self.dataset)) / width) for end in (low, high)]
        return np.sum(self._weights * (ends[1] - ends[0]))


@with_converters
def _log_kernel_density(kde: Any, points: Any) -> Any:
    points = np.atleast_2d(np.asarray(points))
    d, m = points.shape
    if d != kde.d:
        if d == 1 and m == kde.d:
            points = np.reshape(points, (kde.d, 1))
        else:
            raise ValueError(f"points have dimension {d}, dataset has dimension {kde.d}")
    factor = np.linalg.cholesky(kde.covariance)
    whitened = np.linalg.solve(factor, points)
    kernels = np.linalg.solve(factor, kde.dataset)
    squares = np.sum((whitened[:, :, None] - kernels[:, None, :]) ** 2, axis=0)
    exponents = -0.5 * squares
    top = func.stop_gradient(np.max(exponents, axis=1, keepdims=True))
    log_sum = np.log(np.sum(np.exp(exponents - top) * kde.weights, axis=1)) + top[:, 0]
    log_det = 2 * np.sum(np.log(np.diagonal(factor))) + kde.d * np.log(2 * np.pi)
    return log_sum - 0.5 * log_det


def gaussian_kde_evaluate(self: Any, points: Any) -> Any:
    """The estimated density at traced points."""
    return np.exp(_log_kernel_density(self, points))


def gaussian_kde_logpdf(self: Any, x: Any) -> Any:
    """The logarithm of the estimated density at traced points."""
    return _log_kernel_density(self, x)
