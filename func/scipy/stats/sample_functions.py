"""Functions of samples in scipy.stats that ask for the values of their arguments, on traced values.

Most descriptive functions and tests of SciPy are NumPy code that runs on traced values unchanged; the others are here.
p-values differentiate by the statistic. Tests that draw random numbers (`method=`) raise an error.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sc
import scipy.stats as _scipy

import func
from func.host.private_names import private_module
from func.host.scipy_hooks import holds_traced, original
from func.scipy.kinds.plain_values import answer_of
from func.scipy.stats.estimates import KEEPS_PRECISION, known
from func.scipy.stats.policies import in_wrapper

_stats_py = private_module("scipy.stats._stats_py")

__all__ = [
    "_stats_py__SimpleStudentT_cdf",
    "_stats_py__SimpleStudentT_sf",
    "boxcox_llf",
    "gaussian_kde_evaluate",
    "gaussian_kde_logpdf",
    "hmean",
    "linregress",
    "pmean",
    "power_divergence",
    "yeojohnson_llf",
]  # fmt: skip


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
    if known(np.isinf(p)):
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
    """A sample with NaN in place of negative values."""
    if known(a < 0):
        warnings.warn(
            f"The {mean} mean is only defined if all elements are non-negative; otherwise, the result is NaN.",
            RuntimeWarning,
            stacklevel=4,
        )
    return np.where(a < 0, np.nan, a)


@functools.cache
def _of_constants(dtype: Any) -> Any:
    """The correlation with equal numbers, which is 0 or NaN depending on SciPy's version."""
    return original(_scipy.linregress)([0.0, 1.0, 2.0], [0.0, 0.0, 0.0]).rvalue.astype(dtype)


@in_wrapper("linregress")
def linregress(x: Any, y: Any, alternative: str = "two-sided") -> Any:
    """The line through points, with standard errors and the p-value of a slope of 0."""
    x, y = [v if v.dtype.kind == "f" else v.astype(float) for v in (np.asarray(x), np.asarray(y))]
    if x.size == 0 or y.size == 0:
        raise ValueError("Inputs must not be empty.")
    if x.shape != y.shape:
        raise ValueError("x and y must have the same length.")
    if known(np.max(x) == np.min(x)) and x.size > 1:
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
    """The Cressie-Read divergence of observed from expected frequencies, by SciPy's code except for a traced power.

    For a traced power its terms are Box-Cox transforms of the ratio, whose limit at 0 is the logarithm. At -1 the terms
    omit their parts of Σ (expected - observed) = 0.
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


def boxcox_likelihood(a: Any, p: Any, *, axis: int = 0, **options: Any) -> Any:
    """The logarithmic likelihood of the Box-Cox transform, differentiable by λ, also at 0."""
    log = np.log(a)
    middle = np.mean(log, axis=axis, keepdims=True)
    scaled = sc.boxcox(np.exp(log - middle), p)
    log_variance = np.log(np.var(scaled, axis=axis)) + 2 * p * np.squeeze(middle, axis=axis)
    return (p - 1) * np.sum(log, axis=axis) - a.shape[axis] / 2 * log_variance


def yeojohnson_of(x: Any, lmbda: Any) -> Any:
    """The Yeo-Johnson transform, differentiable by λ."""
    positive = x >= 0
    right = sc.boxcox1p(np.where(positive, x, 0.0), lmbda)
    left = -sc.boxcox1p(np.where(positive, 0.0, -x), 2 - lmbda)
    return np.where(positive, right, left)


def yeojohnson_likelihood(a: Any, p: Any, *, axis: int = 0, **options: Any) -> Any:
    """The logarithmic likelihood of the Yeo-Johnson transform."""
    variance = np.var(yeojohnson_of(a, p), axis=axis)
    return (p - 1) * np.sum(np.sign(a) * np.log1p(np.abs(a)), axis=axis) - a.shape[axis] / 2 * np.log(variance)


def _of_samples(name: str, likelihood: Callable[..., Any]) -> Callable[..., Any]:
    """A likelihood with the axes and policies of SciPy's power mean, another function of samples and a number."""
    wrapped = in_wrapper("pmean")(likelihood)

    def function(lmb: Any, data: Any, **options: Any) -> Any:
        return wrapped(data, lmb, **options)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = likelihood.__doc__
    return function


boxcox_llf = _of_samples("boxcox_llf", boxcox_likelihood)
yeojohnson_llf = _of_samples("yeojohnson_llf", yeojohnson_likelihood)


def _stats_py__SimpleStudentT_cdf(self: Any, t: Any) -> Any:
    """Student's distribution function of tests, differentiable by the degrees of freedom."""
    return _scipy.t.cdf(t, self.df).astype(_precision(self.df, t))


def _stats_py__SimpleStudentT_sf(self: Any, t: Any) -> Any:
    return _scipy.t.cdf(-t, self.df).astype(_precision(self.df, t))


def _precision(*values: Any) -> Any:
    """The dtype of the results of SciPy's compiled functions."""
    return np.result_type(*[v if isinstance(v, (int, float)) else np.asarray(v).dtype for v in values], np.float32)


def gaussian_kde_logpdf(self: Any, x: Any) -> Any:
    """The logarithm of the estimated density at points (d, m)."""
    answer_of(original(_scipy.gaussian_kde.evaluate), _shaped_like(self), x)
    points = np.reshape(np.asarray(x) * 1.0, (self.d, -1))
    whitened, kernels = [np.linalg.solve(self.cho_cov, y) for y in (points, self.dataset * 1.0)]
    exponents = -0.5 * np.sum((whitened[:, :, None] - kernels[:, None, :]) ** 2, axis=0)
    top = func.stop_gradient(np.max(exponents, axis=1, keepdims=True))
    log_sum = np.log(np.sum(np.exp(exponents - top) * self.weights, axis=1)) + top[:, 0]
    return log_sum - np.sum(np.log(np.diagonal(self.cho_cov))) - self.d / 2 * np.log(2 * np.pi)


def _shaped_like(kde: Any) -> Any:
    """SciPy's estimate from other data of the same shape."""
    return _scipy.gaussian_kde(np.random.default_rng(0).normal(size=(kde.d, kde.n)))


def gaussian_kde_evaluate(self: Any, points: Any) -> Any:
    """The estimated density at points (d, m)."""
    return np.exp(gaussian_kde_logpdf(self, points))
