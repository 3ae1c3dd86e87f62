"""Multivariate distributions' moments, modes and margins, the matrix t and the normal-inverse-gamma distribution.

Where SciPy returns None for a moment that does not exist, this does for degrees of freedom that are known, and gives
NaN under `vmap` and `jit`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special as sc

import func
from func.interpreters.core.errors import UnsupportedFunctionError
from func.interpreters.host.source import at_line
from func.random.keys import known
from func.scipy.stats import multivariate_methods as methods
from func.scipy.stats.multivariate_methods import method


def _where_finite(exists: Any, value: Any) -> Any:
    is_known = known(np.asarray(func.stop_gradient(exists)))
    if is_known is None or is_known.ndim:
        return methods._squeezed(np.where(exists, value, np.nan))
    return methods._squeezed(value) if is_known else None


@method("wishart", "mode")
def _wishart_mode(self: Any, df: Any, scale: Any) -> Any:
    n, df, scale = methods._df_and_scale(df, scale)
    return _where_finite(df >= n + 1, (df - n - 1) * scale)


@method("invwishart", "mean")
def _invwishart_mean(self: Any, df: Any, scale: Any) -> Any:
    n, df, scale = methods._df_and_scale(df, scale)
    exists = df > n + 1
    return _where_finite(exists, scale / np.where(exists, df - n - 1, 1.0))


@method("invwishart", "var")
def _invwishart_var(self: Any, df: Any, scale: Any) -> Any:
    n, df, scale = methods._df_and_scale(df, scale)
    exists = df > n + 3
    df = np.where(exists, df, n + 4.0)
    diagonal = np.diagonal(scale)
    above = (df - n + 1) * scale**2 + (df - n - 1) * np.outer(diagonal, diagonal)
    return _where_finite(exists, above / ((df - n) * (df - n - 1) ** 2 * (df - n - 3)))


@method("multinomial", "entropy")
def _multinomial_entropy(self: Any, n: Any, p: Any) -> Any:
    n, p, valid = methods._trials(n, p)
    counts = known(n)
    if counts is None:
        raise UnsupportedFunctionError(f"multinomial.entropy of a traced number of trials{at_line()}")
    x = np.reshape(np.arange(1.0, np.max(counts, initial=1) + 1), (-1,) + (1,) * max(n.ndim, p.ndim - 1) + (1,))
    trials, p = np.asarray(n, float)[..., None], np.where(valid[..., None], p, func.stop_gradient(p))
    with np.errstate(all="ignore"):
        inside = x <= trials
        ways = sc.gammaln(trials + 1) - sc.gammaln(x + 1) - sc.gammaln(np.where(inside, trials - x, 0.0) + 1)
        logs = ways + sc.xlogy(x, p) + sc.xlog1py(np.where(inside, trials - x, 0.0), -p)
        repeated = np.sum(np.where(inside, np.exp(logs) * sc.gammaln(x + 1), 0.0), axis=(0, -1))
    value = n * np.sum(sc.entr(p), axis=-1) - sc.gammaln(n + 1) + repeated
    return np.where(valid, value, np.nan)[()]


@method("multivariate_normal", "marginal")
def _normal_marginal(self: Any, dimensions: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
    mean, cov = _marginal(dimensions, mean, cov, ("cov", "mean"))
    return self(mean, cov, allow_singular=allow_singular)


@method("multivariate_t", "marginal")
def _t_marginal(self: Any, dimensions: Any, loc: Any = None, shape: Any = 1, df: Any = 1) -> Any:
    loc, shape = _marginal(dimensions, loc, shape, ("shape", "loc"))
    return self(loc, shape, df)


def _marginal(dimensions: Any, mean: Any, matrix: Any, words: tuple[str, str]) -> tuple[Any, Any]:
    n, mean, matrix = methods._location_and_matrix(mean, matrix, words)
    kept = np.atleast_1d(np.asarray(dimensions))
    if kept.dtype.kind not in "iu" or kept.ndim != 1:
        raise ValueError("`dimensions` must be an integer or a one-dimensional array of integers.")
    if np.any((kept < -n) | (kept >= n)):
        raise ValueError(f"Dimensions {kept} are invalid for a distribution of {n} dimensions.")
    if len(np.unique(kept % n)) < len(kept):
        raise ValueError("All elements of `dimensions` must be unique.")
    return mean[kept], matrix[kept[:, None], kept]


@method("multivariate_t", "cdf")
def _t_cdf(self: Any, x: Any, loc: Any = None, shape: Any = 1, df: Any = 1, **options: Any) -> Any:
    raise UnsupportedFunctionError(
        f"multivariate_t.cdf of traced values: SciPy integrates by random points{at_line()}\n"
        "In one dimension write scipy.stats.t.cdf; multivariate_normal.cdf has derivatives."
    )


def spreads(mean: Any, row: Any, column: Any, df: Any) -> tuple[int, int, Any, Any, Any, Any]:
    """Rows, columns and the completed parameters of a matrix t distribution."""
    wide = [np.diag(c) if c.ndim == 1 else c for c in (methods._floats(row), methods._floats(column))]
    df = methods._floats(1 if df is None else df)
    if df.ndim:
        raise ValueError("Degrees of freedom must be a scalar.")
    methods._require(df > 0, "Degrees of freedom must be positive.")
    rows, columns, mean, row, column = methods._matrix_parameters(mean, *wide)
    return rows, columns, mean, row, column, df


@method("matrix_t", "logpdf")
def _matrix_t_logpdf(self: Any, X: Any, mean: Any = None, row_spread: Any = 1, col_spread: Any = 1, df: Any = 1) -> Any:
    m, n, mean, row_spread, col_spread, df = spreads(mean, row_spread, col_spread, df)
    x = methods._floats(X)
    if x.shape[-2:] != (m, n):
        raise ValueError("The shape of array `X` is not conformal with the distribution parameters.")
    row, column = methods._factor(row_spread), methods._factor(col_spread)
    half = np.linalg.solve(row, x - mean)
    whitened = np.linalg.solve(column, np.swapaxes(half, -1, -2))
    inner = np.linalg.cholesky(np.eye(n) + whitened @ np.swapaxes(whitened, -1, -2))
    constant = methods._multigammaln((df + m + n - 1) / 2, n) - methods._multigammaln((df + n - 1) / 2, n)
    constant = constant - m * n / 2 * np.log(np.pi)
    spread = n / 2 * methods._log_det(row) + m / 2 * methods._log_det(column)
    return methods._squeezed(constant - spread - (df + m + n - 1) / 2 * methods._log_det(inner))


@method("matrix_t", "pdf")
def _matrix_t_pdf(self: Any, X: Any, mean: Any = None, row_spread: Any = 1, col_spread: Any = 1, df: Any = 1) -> Any:
    return np.exp(_matrix_t_logpdf(self, X, mean, row_spread, col_spread, df))


def _gamma_parameters(*args: Any) -> tuple[Any, list[Any]]:
    """Where the last three parameters are valid, and all as floats that broadcast."""
    kind = np.result_type(1.0, *[np.asarray(x).dtype for x in args])
    args = tuple([np.asarray(x, dtype=kind) for x in np.broadcast_arrays(*args)])
    lmbda, a, b = args[-3:]
    return (lmbda > 0) & (a > 0) & (b > 0), list(args)


@method("normal_inverse_gamma", "logpdf")
def _gamma_logpdf(self: Any, x: Any, s2: Any, mu: Any = 0, lmbda: Any = 1, a: Any = 1, b: Any = 1) -> Any:
    valid, args = _gamma_parameters(x, s2, mu, lmbda, a, b)
    inside = valid & (args[1] > 0)
    x, s2, mu, lmbda, a, b = [
        np.where(inside, p, safe) for p, safe in zip(args, (0.0, 1.0, 0.0, 1.0, 1.0, 1.0), strict=True)
    ]
    constant = 0.5 * (np.log(lmbda) - np.log(2 * np.pi * s2)) + a * np.log(b) - sc.gammaln(a)
    value = constant - (a + 1) * np.log(s2) - (2 * b + lmbda * (x - mu) ** 2) / (2 * s2)
    return np.where(inside, value, np.where(valid, -np.inf, np.nan))[()]


@method("normal_inverse_gamma", "pdf")
def _gamma_pdf(self: Any, x: Any, s2: Any, mu: Any = 0, lmbda: Any = 1, a: Any = 1, b: Any = 1) -> Any:
    return np.exp(_gamma_logpdf(self, x, s2, mu, lmbda, a, b))


@method("normal_inverse_gamma", "mean")
def _gamma_mean(self: Any, mu: Any = 0, lmbda: Any = 1, a: Any = 1, b: Any = 1) -> Any:
    valid, (mu, lmbda, a, b) = _gamma_parameters(mu, lmbda, a, b)
    valid = valid & (a > 1)
    return tuple([np.where(valid, m, np.nan)[()] for m in (mu, b / np.where(valid, a - 1, 1.0))])


@method("normal_inverse_gamma", "var")
def _gamma_var(self: Any, mu: Any = 0, lmbda: Any = 1, a: Any = 1, b: Any = 1) -> Any:
    valid, (mu, lmbda, a, b) = _gamma_parameters(mu, lmbda, a, b)
    first, second = valid & (a > 1), valid & (a > 2)
    of_x = b / (np.where(first, a - 1, 1.0) * np.where(first, lmbda, 1.0))
    of_s2 = b * b / np.where(second, (a - 1) ** 2 * (a - 2), 1.0)
    return np.where(first, of_x, np.nan)[()], np.where(second, of_s2, np.nan)[()]
