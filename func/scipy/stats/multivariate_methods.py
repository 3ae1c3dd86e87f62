"""Methods of SciPy's multivariate distributions whose own code does not run on traced values.

SciPy's own code runs on traced parameters and points, also of frozen distributions. This module has the parts that are
compiled, decide by values, or lose digits. Covariances are factored by Cholesky's method instead of eigenvectors, whose
derivatives are undetermined for equal eigenvalues. Derivatives are those of the symmetric part of a matrix.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.special as sc
from scipy.stats import Covariance
from scipy.stats import _multivariate as _scipy

import func
from func.host.interception import intercepted_call
from func.host.scipy_hooks import holds_traced
from func.interpreters.core import Array, known_value
from func.interpreters.core.errors import UnsupportedFunctionError
from func.interpreters.host.source import at_line
from func.random.keys import known
from func.scipy.kinds.plain_values import without_derivative
from func.scipy.kinds.traces import as_float, in_original, part

OWN: dict[str, Callable[..., Any]] = {}
"""By the names of the hooks."""


def method(*kinds: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a method, by the names of SciPy's classes with that of the method: "wishart_gen._logpdf"."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        OWN.update({f"_multivariate_{kind.replace('.', '_')}": function for kind in kinds})
        return function

    return register


def log_det(factor: Array) -> Array:
    """The logarithm of the determinant of a matrix by its Cholesky factor."""
    return 2 * np.sum(np.log(np.diagonal(factor, axis1=-2, axis2=-1)), axis=-1)


def factor_of(matrix: Any) -> Array:
    """The Cholesky factor; for a singular matrix, by SciPy's measure, it raises, or is NaN if that is unknown."""
    symmetric = (matrix + matrix.T) / 2
    values = np.linalg.eigvalsh(func.stop_gradient(symmetric))
    is_definite = np.all(values > 1e6 * np.finfo(np.float64).eps * np.max(np.abs(values)))
    known = known_value(is_definite)
    if known is None:
        return np.where(is_definite, np.linalg.cholesky(symmetric), np.nan)
    if not np.all(known):
        raise np.linalg.LinAlgError(
            f"the matrix of a multivariate distribution is not positive definite{at_line()}\n"
            "The rank of a traced matrix decides the density, and has no derivative."
        )
    return np.linalg.cholesky(symmetric)


class _multivariate__PSD(_scipy._PSD):  # type: ignore[misc]
    """SciPy's class of a covariance for densities, with L⁻ᵀ of the Cholesky factor L instead of eigenvectors."""

    def __init__(self, M: Any, *args: Any, **kwargs: Any) -> None:
        self._M = np.asarray(M)
        factor = factor_of(self._M)
        self.U = np.linalg.inv(factor).T
        self.rank, self.log_pdet, self._pinv = factor.shape[-1], log_det(factor), None


OWN["_multivariate__PSD"] = _multivariate__PSD


@method("multivariate_normal_gen.logpdf")
def _normal_logpdf(self: Any, x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
    if isinstance(cov, Covariance) or (allow_singular and not holds_traced(cov)):
        return _scipy.multivariate_normal_frozen(mean, cov, allow_singular).logpdf(x)
    n, mean, cov = self._process_parameters_psd(None, mean, cov)
    factor = factor_of(cov)
    dev = self._process_quantiles(x, n) - mean
    squares = np.sum(np.square(np.linalg.solve(factor, np.reshape(dev, (-1, n)).T)), axis=0)
    return _scipy._squeeze_output(
        -0.5 * (n * np.log(2 * np.pi) + log_det(factor) + np.reshape(squares, dev.shape[:-1]))
    )


@method("multivariate_normal_frozen.logpdf")
def _normal_frozen_logpdf(self: Any, x: Any) -> Any:
    if not holds_traced(self.cov_object):  # SciPy looks at its rank
        return in_original(_scipy.multivariate_normal_frozen.logpdf, self, x)
    dist = self._dist
    return _scipy._squeeze_output(dist._logpdf(dist._process_quantiles(x, self.dim), self.mean, self.cov_object))


@method("multivariate_normal_gen.pdf", "normal_inverse_gamma_gen.pdf")
def _exponential(self: Any, *args: Any, **kwargs: Any) -> Any:
    return np.exp(self.logpdf(*args, **kwargs))


@method("multivariate_t_gen._logpdf")
def _t_logpdf(self: Any, x: Any, loc: Any, prec_U: Any, log_pdet: Any, df: Any, dim: int, rank: int, *args: Any) -> Any:
    if not holds_traced(df) and df == np.inf:
        return in_original(_scipy.multivariate_t_gen._logpdf, self, x, loc, prec_U, log_pdet, df, dim, rank, *args)
    half = 0.5 * (df + dim)
    maha = np.sum(np.square((x - loc) @ prec_U), axis=-1)
    constant = sc.gammaln(half) - sc.gammaln(0.5 * df) - dim / 2 * np.log(df * np.pi) - 0.5 * log_pdet
    return _scipy._squeeze_output(constant - half * np.log1p(maha / df))


@method("multivariate_t_gen._entropy")
def _t_entropy(self: Any, dim: int, df: Any = 1, shape: Any = 1) -> Any:
    half, whole = 0.5 * df, 0.5 * (dim + df)
    constant = sc.gammaln(half) - sc.gammaln(whole) + 0.5 * dim * np.log(df * np.pi)
    return constant + whole * (sc.psi(whole) - sc.psi(half)) + 0.5 * log_det(factor_of(shape))


@method("multivariate_t_gen._cdf")
def _t_cdf(self: Any, *args: Any, **options: Any) -> Any:
    raise UnsupportedFunctionError(
        f"multivariate_t.cdf of traced values: SciPy integrates by random points{at_line()}\n"
        "In one dimension write scipy.stats.t.cdf; multivariate_normal.cdf has derivatives."
    )


@method("wishart_gen._logpdf")
def _wishart_logpdf(self: Any, x: Any, dim: int, df: Any, scale: Any, log_det_scale: Any, C: Any) -> Any:
    x = np.moveaxis(x, -1, 0)
    trace = np.trace(np.linalg.solve(scale, x), axis1=-2, axis2=-1)
    constant = 0.5 * df * (dim * np.log(2.0) + log_det_scale) + sc.multigammaln(0.5 * df, dim)
    return 0.5 * (df - dim - 1) * log_det(np.linalg.cholesky(x)) - 0.5 * trace - constant


@method("invwishart_gen._logpdf")
def _invwishart_logpdf(self: Any, x: Any, dim: int, df: Any, log_det_scale: Any, C: Any) -> Any:
    factor = np.linalg.cholesky(np.moveaxis(x, -1, 0))
    trace = np.sum(np.square(np.linalg.solve(factor, C)), axis=(-2, -1))
    constant = 0.5 * df * (log_det_scale - dim * np.log(2.0)) - sc.multigammaln(0.5 * df, dim)
    return constant - 0.5 * trace - 0.5 * (df + dim + 1) * log_det(factor)


def _where_finite(exists: Any, value: Any) -> Any:
    """A moment; None if it is known not to exist, as in SciPy, and NaN if that is unknown."""
    is_known = known(np.asarray(func.stop_gradient(exists)))
    if is_known is None or is_known.ndim:
        return np.where(exists, value, np.nan)
    return value if is_known else None


@method("wishart_gen._mode")
def _wishart_mode(self: Any, dim: int, df: Any, scale: Any) -> Any:
    return _where_finite(df >= dim + 1, (df - dim - 1) * scale)


@method("invwishart_gen._mean")
def _invwishart_mean(self: Any, dim: int, df: Any, scale: Any) -> Any:
    exists = df > dim + 1
    return _where_finite(exists, scale / np.where(exists, df - dim - 1, 1.0))


@method("invwishart_gen._var")
def _invwishart_var(self: Any, dim: int, df: Any, scale: Any) -> Any:
    exists = df > dim + 3
    df = np.where(exists, df, dim + 4.0)
    diagonal = np.diagonal(scale)
    above = (df - dim + 1) * scale**2 + (df - dim - 1) * np.outer(diagonal, diagonal)
    return _where_finite(exists, above / ((df - dim) * (df - dim - 1) ** 2 * (df - dim - 3)))


_outcomes = without_derivative("probabilities of a discrete distribution have no derivative by the outcome")


def _counts(x: Any) -> Any:
    return _outcomes(np.asarray(x)) if holds_traced(x) and np.asarray(x).dtype.kind == "f" else x


@method("multinomial_gen._process_parameters")
def _trials(self: Any, n: Any, p: Any, eps: float = 10 * np.finfo(float).eps) -> tuple[Any, Any, Any]:
    """n, p with its last element corrected for the sum 1, and where one of them is invalid."""
    n, p = np.asarray(n), np.asarray(p, dtype=float)
    rest = 1.0 - np.sum(p[..., :-1], axis=-1)
    off = np.abs(1 - np.sum(p, axis=-1)) > 10 * np.finfo(float).eps
    p = np.concatenate([p[..., :-1], np.where(off, rest, p[..., -1])[..., None]], axis=-1)
    return n, p, np.any(p < 0, axis=-1) | np.any(p > 1, axis=-1) | (n < 0)


@method("multinomial_gen._process_quantiles")
def _multinomial_outcomes(self: Any, x: Any, n: Any, p: Any) -> Any:
    return in_original(_scipy.multinomial_gen._process_quantiles, self, _counts(x), n, p)


@method("multinomial_gen._checkresult")
def _with_bad_values(self: Any, result: Any, cond: Any, bad_value: float) -> Any:
    cond = np.reshape(cond, cond.shape + (1,) * (np.ndim(result) - cond.ndim))
    return np.where(cond, bad_value, result)[()]


@method("_dirichlet_multinomial_check_parameters")
def _dirichlet_counts(alpha: Any, n: Any, x: Any = None) -> Any:
    alpha, total, _, *counts = in_original(
        _scipy._dirichlet_multinomial_check_parameters, alpha, n, None if x is None else _counts(x)
    )
    return alpha, total, np.asarray(n), *counts


@method("normal_inverse_gamma_gen.mean")
def _normal_inverse_gamma_mean(self: Any, mu: Any = 0, lmbda: Any = 1, a: Any = 1, b: Any = 1) -> Any:
    invalid, (mu, lmbda, a, b) = self._process_shapes(mu, lmbda, a, b)
    invalid = invalid | ~(a > 1)
    return tuple([np.where(invalid, np.nan, mean)[()] for mean in (mu, b / np.where(invalid, 1.0, a - 1))])


@method("normal_inverse_gamma_gen.var")
def _normal_inverse_gamma_var(self: Any, mu: Any = 0, lmbda: Any = 1, a: Any = 1, b: Any = 1) -> Any:
    invalid, (mu, lmbda, a, b) = self._process_shapes(mu, lmbda, a, b)
    first, second = invalid | ~(a > 1), invalid | ~(a > 2)
    of_x = b / np.where(first, 1.0, (a - 1) * lmbda)
    of_s2 = b**2 / np.where(second, 1.0, (a - 1) ** 2 * (a - 2))
    return np.where(first, np.nan, of_x)[()], np.where(second, np.nan, of_s2)[()]


OWN["_multivariate_vonmises_fisher_gen__process_parameters"] = part(
    _scipy.vonmises_fisher_gen._process_parameters, float=as_float
)


def _frozen(kind: str) -> Callable[..., Any]:
    """SciPy's frozen distribution of traced parameters; its samples need the seed, which may be a key."""
    frozen_class = getattr(_scipy, f"{kind}_frozen")
    call = vars(getattr(_scipy, f"{kind}_gen"))["__call__"]
    signature = inspect.signature(call)

    def freeze(self: Any, *args: Any, **kwds: Any) -> Any:
        bound = signature.bind(self, *args, **kwds)
        if not holds_traced(bound.arguments.get("df")):
            seed = bound.arguments.pop("seed", None)
            frozen = in_original(call, *bound.args, **bound.kwargs)
        else:  # comparison with infinity is impossible
            bound.apply_defaults()
            _, *parameters, seed = bound.arguments.values()
            frozen = intercepted_call(frozen_class)(*parameters)
        frozen._dist.seed = seed
        return frozen

    return freeze


KINDS: Sequence[str] = (
    "multivariate_normal", "multivariate_t", "wishart", "invwishart", "matrix_normal", "matrix_t",
    "multinomial", "dirichlet_multinomial", "normal_inverse_gamma", "vonmises_fisher",
)  # fmt: skip
OWN.update({f"_multivariate_{kind}_gen___call__": _frozen(kind) for kind in KINDS if hasattr(_scipy, f"{kind}_gen")})
