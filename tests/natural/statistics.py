"""Statistics as packages write them: value checks, masks, weights, loops that converge, tables."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.support.natural_code import Row


def weighted_mean(x: Any, weights: Any = None, axis: int | None = None) -> Any:
    x = np.asarray(x, dtype=float)
    if weights is None:
        return x.mean(axis=axis)
    weights = np.asarray(weights, dtype=float)
    if np.any(weights < 0):
        raise ValueError("weights must not be negative")
    if weights.sum() == 0:
        raise ZeroDivisionError("weights sum to zero")
    return (x * weights).sum(axis=axis) / weights.sum(axis=axis)


def geometric_mean(a: Any) -> Any:
    a = np.atleast_1d(a)
    if not np.all(a > 0):
        raise ValueError(f"geometric mean of non-positive data, minimum {a.min():.3g}")
    return math.exp(np.log(a).mean())


def trimmed_variance(x: Any, cut: float = 0.2) -> Any:
    ordered = np.sort(x)
    n = len(ordered)
    k = int(cut * n)
    inner = ordered[k : n - k] if k else ordered
    return inner.var(ddof=1)


def huber_location(x: Any, k: float = 1.345, tol: float = 1e-12, maxiter: int = 100) -> Any:
    mu = np.median(x)
    scale = np.median(np.abs(x - mu)) / 0.6745
    for _ in range(maxiter):
        r = (x - mu) / scale
        w = np.where(np.abs(r) <= k, 1.0, k / np.abs(r))
        new = np.sum(w * x) / np.sum(w)
        if abs(new - mu) < tol:
            break
        mu = new
    else:
        warnings.warn("no convergence", RuntimeWarning, stacklevel=2)
    return mu


def autocovariance(x: Any, nlags: int = 3, demean: bool = True) -> Any:
    x = np.asarray(x)
    if demean:
        x = x - x.mean()
    n = x.shape[0]
    acov = np.empty(nlags + 1)
    for lag in range(nlags + 1):
        acov[lag] = np.dot(x[: n - lag], x[lag:]) / n
    return acov


def durbin_levinson(acov: Any) -> Any:
    p = len(acov) - 1
    phi = np.zeros((p + 1, p + 1))
    v = np.zeros(p + 1)
    v[0] = acov[0]
    for k in range(1, p + 1):
        s = sum(phi[k - 1, j] * acov[k - j] for j in range(1, k))
        phi[k, k] = (acov[k] - s) / v[k - 1]
        for j in range(1, k):
            phi[k, j] = phi[k - 1, j] - phi[k, k] * phi[k - 1, k - j]
        v[k] = v[k - 1] * (1 - phi[k, k] ** 2)
    return phi[p, 1:], v[p]


def exponential_smoothing(y: Any, alpha: Any) -> Any:
    level = y[0]
    levels = [level]
    for value in y[1:]:
        level = alpha * value + (1 - alpha) * level
        levels.append(level)
    return np.array(levels)


def positive_part_moment(x: Any, threshold: float = 0.4) -> Any:
    mask = x > threshold
    if not mask.any():
        return 0.0
    excess = x[mask] - threshold
    return np.mean(excess**2) * mask.sum() / x.size


def winsorised(x: Any, limits: tuple[float, float] = (0.1, 0.1)) -> Any:
    low, high = np.quantile(x, [limits[0], 1 - limits[1]])
    y = x.copy()
    y[y < low] = low
    y[y > high] = high
    return y


def logistic_loglike(params: Any, exog: Any, endog: Any) -> Any:
    eta = exog @ params
    with np.errstate(over="ignore"):
        p = 1.0 / (1.0 + np.exp(-eta))
    eps = np.finfo(p.dtype).eps
    p = np.clip(p, eps, 1 - eps)
    return np.sum(endog * np.log(p) + (1 - endog) * np.log(1 - p))


def wls_fit(x: Any, y: Any, w: Any) -> dict[str, Any]:
    design = np.column_stack([np.ones_like(x), x])
    sw = np.sqrt(w)[:, None]
    try:
        beta, *_ = np.linalg.lstsq(design * sw, y * sw[:, 0], rcond=None)
    except np.linalg.LinAlgError:
        beta = np.full(2, np.nan)
    resid = y - design @ beta
    return {"params": beta, "ssr": float_or_array(np.sum(w * resid**2))}


def float_or_array(value: Any) -> Any:
    return value if np.ndim(value) else np.float64(value)


def gaussian_kde_at(points: Any, data: Any, bw: Any = None) -> Any:
    n = data.size
    if bw is None or bw == "scott":
        bw = np.std(data, ddof=1) * n ** (-1.0 / 5)
    elif isinstance(bw, str):
        raise ValueError(f"unknown bandwidth {bw!r}")
    u = np.subtract.outer(points, data) / bw
    return np.exp(-0.5 * u**2).sum(axis=1) / (n * bw * math.sqrt(2 * math.pi))


class RunningMoments:
    """Mean and variance by Welford's recursion."""

    def __init__(self) -> None:
        self.n = 0
        self.mean = 0.0
        self.m2 = 0.0

    def push(self, value: Any) -> None:
        self.n += 1
        delta = value - self.mean
        self.mean += delta / self.n
        self.m2 += delta * (value - self.mean)

    @property
    def variance(self) -> Any:
        return self.m2 / (self.n - 1) if self.n > 1 else 0.0


def running_moments(x: Any) -> Any:
    moments = RunningMoments()
    for value in x:
        moments.push(value)
    return moments.mean, moments.variance


def ecdf_interpolated(data: Any, at: float = 0.6) -> Any:
    xs = np.sort(data)
    return np.interp(at, xs, np.linspace(0, 1, len(xs)))


def partial_sums(terms: Sequence[Any]) -> Any:
    total, out = 0.0, []
    for term in (t**2 for t in terms):
        total = total + term
        out.append(total)
    return np.asarray(out)


X = np.array([0.31, 1.27, 0.64, 2.05, 0.88, 1.61])
ROWS = [
    Row(weighted_mean, X, np.array([1.0, 2.0, 0.5, 1.0, 3.0, 0.7])),
    Row(weighted_mean, X),
    Row(geometric_mean, X),
    Row(trimmed_variance, X),
    Row(huber_location, X),
    Row(autocovariance, X, intercept=True),
    Row(durbin_levinson, np.array([2.0, 0.9, 0.4, 0.3]), intercept=True),
    Row(exponential_smoothing, X, 0.35),
    Row(positive_part_moment, X),
    Row(winsorised, X),
    Row(logistic_loglike, np.array([0.4, -0.3]), X.reshape(3, 2), np.array([1.0, 0.0, 1.0])),
    Row(wls_fit, X, X[::-1] + 0.1, np.linspace(1.0, 2.0, 6)),
    Row(gaussian_kde_at, np.array([0.5, 1.0]), X),
    Row(running_moments, X),
    Row(ecdf_interpolated, X),
    Row(partial_sums, X[:3]),
]
