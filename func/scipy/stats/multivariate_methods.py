"""Densities, entropies and moments of SciPy's multivariate distributions on traced values.

Covariances are factored by Cholesky's method, of which SciPy's spectral factors are another form; a singular one with
traced values is refused by the factorisation. They are symmetric: derivatives are those of the lower triangle's
symmetric matrix. Distribution functions of several variables, which SciPy integrates by random points, are SciPy's.
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
from func.host.scipy_hooks import holds_traced, original
from func.interpreters.core import Array, known_value
from func.interpreters.core.errors import NotDifferentiableError, UnsupportedFunctionError
from func.interpreters.host.source import at_line
from func.interpreters.primitives.structural.identity import is_abstract_value

OWN: dict[str, Callable[..., Any]] = {}
"""By the names of the hooks."""


def method(kind: str, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a method of one of SciPy's classes of distributions."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        OWN[f"_multivariate_{kind}_gen_{name}"] = function
        return function

    return register


def _floats(x: Any) -> Any:
    return np.asarray(x, dtype=float)


def _squeezed(x: Any) -> Any:
    x = np.squeeze(x)
    return x[()] if x.ndim == 0 else x


def _require(condition: Any, message: str) -> None:
    """Raise where a condition is known not to hold."""
    if not is_abstract_value(condition) and not np.all(func.stop_gradient(condition)):
        raise ValueError(message)


def _log_det(factor: Array) -> Array:
    return 2 * np.sum(np.log(np.diagonal(factor, axis1=-2, axis2=-1)), axis=-1)


def _maha(dev: Array, factor: Array) -> Array:
    """The squares of L⁻¹ dev, summed: dev is (…, n)."""
    flat = np.reshape(dev, (-1, dev.shape[-1]))
    return np.reshape(np.sum(np.square(np.linalg.solve(factor, flat.T)), axis=0), dev.shape[:-1])


def _location_and_matrix(mean: Any, matrix: Any, words: tuple[str, str]) -> tuple[int, Any, Any]:
    """Dimension, location (n,) and matrix (n, n), as SciPy completes them."""
    matrix = _floats(1.0 if matrix is None else matrix)
    if mean is None:
        mean = np.zeros(matrix.shape[0] if matrix.ndim else 1)
    mean = np.reshape(_floats(mean), (-1,))
    n = mean.shape[0] if mean.shape[0] > 1 or matrix.ndim == 0 else matrix.shape[0]
    mean = np.broadcast_to(mean, (n,)) if mean.shape[0] == 1 else mean
    if matrix.ndim == 0:
        matrix = matrix * np.eye(n)
    elif matrix.ndim == 1:
        matrix = matrix * np.eye(matrix.shape[0])
    if matrix.ndim != 2 or matrix.shape != (n, n):
        raise ValueError(
            f"Array '{words[0]}' must be square and fit '{words[1]}' of length {n}, but its shape is {matrix.shape}."
        )
    return n, mean, matrix


def _factor(matrix: Any, allow_singular: bool = False) -> Array:
    """The Cholesky factor; that of a singular matrix, by SciPy's measure, raises, or is NaN where that is not known."""
    if allow_singular and holds_traced(matrix):
        raise UnsupportedFunctionError(
            f"allow_singular=True with a traced matrix: its rank decides the density, and has no derivative{at_line()}"
        )
    symmetric = (matrix + matrix.T) / 2
    values = np.linalg.eigvalsh(func.stop_gradient(symmetric))
    is_definite = np.all(values > 1e6 * np.finfo(np.float64).eps * np.max(np.abs(values)))
    known = known_value(is_definite)
    if known is None:
        return np.where(is_definite, np.linalg.cholesky(symmetric), np.nan)
    if not np.all(known):
        raise np.linalg.LinAlgError(f"the matrix of a multivariate distribution is not positive definite{at_line()}")
    return np.linalg.cholesky(symmetric)


def _points(x: Any, n: int) -> Any:
    """Points (…, n); one of a scalar distribution may be a number."""
    x = _floats(x)
    if x.ndim == 0:
        return x[None]
    if x.ndim == 1:
        return x[:, None] if n == 1 else x[None, :]
    return x


def _normal(x: Any, mean: Any, cov: Any, allow_singular: bool) -> Any:
    if isinstance(cov, Covariance):
        n = cov.shape[-1]
        mean = np.zeros(n) if mean is None else np.reshape(_floats(mean), (-1,))
        maha = np.sum(np.square(cov.whiten(_points(x, n) - mean)), axis=-1)
        return _squeezed(-0.5 * (cov.rank * np.log(2 * np.pi) + cov.log_pdet + maha))
    n, mean, cov = _location_and_matrix(mean, cov, ("cov", "mean"))
    factor = _factor(cov, allow_singular)
    dev = _points(x, n) - mean
    return _squeezed(-0.5 * (n * np.log(2 * np.pi) + _log_det(factor) + _maha(dev, factor)))


@method("multivariate_normal", "logpdf")
def _normal_logpdf(self: Any, x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
    return _normal(x, mean, cov, allow_singular)


@method("multivariate_normal", "pdf")
def _normal_pdf(self: Any, x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
    return np.exp(_normal(x, mean, cov, allow_singular))


@method("multivariate_normal", "entropy")
def _normal_entropy(self: Any, mean: Any = None, cov: Any = 1) -> Any:
    n, _, cov = _location_and_matrix(mean, cov, ("cov", "mean"))
    return 0.5 * (n * (np.log(2 * np.pi) + 1) + _log_det(_factor(cov)))


@method("multivariate_t", "logpdf")
def _t_logpdf(self: Any, x: Any, loc: Any = None, shape: Any = 1, df: Any = 1) -> Any:
    n, loc, shape = _location_and_matrix(loc, shape, ("shape", "loc"))
    df = _floats(df)
    _require(df > 0, "'df' must be greater than zero.")
    _require(np.isfinite(df), "an infinite 'df' with traced values: write multivariate_normal")
    factor = _factor(shape)
    maha = _maha(_points(x, n) - loc, factor)
    constant = sc.gammaln(0.5 * (df + n)) - sc.gammaln(0.5 * df) - n / 2 * np.log(df * np.pi)
    return _squeezed(constant - 0.5 * _log_det(factor) - 0.5 * (df + n) * np.log1p(maha / df))


@method("multivariate_t", "pdf")
def _t_pdf(self: Any, x: Any, loc: Any = None, shape: Any = 1, df: Any = 1, allow_singular: bool = False) -> Any:
    return np.exp(_t_logpdf(self, x, loc, shape, df))


@method("multivariate_t", "entropy")
def _t_entropy(self: Any, loc: Any = None, shape: Any = 1, df: Any = 1) -> Any:
    n, loc, shape = _location_and_matrix(loc, shape, ("shape", "loc"))
    df = _floats(df)
    half, whole = 0.5 * df, 0.5 * (n + df)
    constant = sc.gammaln(half) - sc.gammaln(whole) + 0.5 * n * np.log(df * np.pi)
    return constant + whole * (sc.psi(whole) - sc.psi(half)) + 0.5 * _log_det(_factor(shape))


def _df_and_scale(df: Any, scale: Any) -> tuple[int, Any, Any]:
    scale = _floats(1.0 if scale is None else scale)
    if scale.ndim == 0:
        scale = scale[None, None]
    elif scale.ndim == 1:
        scale = scale * np.eye(scale.shape[0])
    elif scale.ndim != 2 or scale.shape[0] != scale.shape[1]:
        raise ValueError(f"Array 'scale' must be square if it is two dimensional, but scale.shape = {scale.shape}.")
    n = scale.shape[0]
    df = _floats(n if df is None else df)
    _require(df > n - 1, "Degrees of freedom must be greater than the dimension of scale matrix minus 1.")
    return n, df, scale


def _matrices(x: Any, n: int) -> Any:
    """Matrices (n, n, …), as SciPy takes them, as (…, n, n)."""
    x = _floats(x)
    if x.ndim == 0:
        x = x * np.eye(n)
    if x.ndim == 1:
        x = x[None, None, :] if n == 1 else x * np.eye(n)
    elif x.ndim == 2 and x.shape[0] != x.shape[1]:
        raise ValueError(f"Quantiles must be square if they are two dimensional, but x.shape = {x.shape}.")
    if x.shape[:2] != (n, n):
        raise ValueError(f"Quantiles have incompatible dimensions: should be {(n, n)}, got {x.shape[:2]}.")
    return x if x.ndim == 2 else np.moveaxis(x, -1, 0)


def _multigammaln(a: Any, n: int) -> Any:
    return n * (n - 1) / 4 * np.log(np.pi) + np.sum(sc.gammaln(a - np.arange(n) / 2), axis=-1)


@method("wishart", "logpdf")
def _wishart_logpdf(self: Any, x: Any, df: Any, scale: Any) -> Any:
    n, df, scale = _df_and_scale(df, scale)
    x = _matrices(x, n)
    factor = np.linalg.cholesky(scale)
    trace = np.trace(np.linalg.solve(scale, x), axis1=-2, axis2=-1)
    constant = 0.5 * n * df * np.log(2.0) + 0.5 * df * _log_det(factor) + _multigammaln(0.5 * df, n)
    return _squeezed(0.5 * (df - n - 1) * _log_det(np.linalg.cholesky(x)) - 0.5 * trace - constant)


@method("wishart", "pdf")
def _wishart_pdf(self: Any, x: Any, df: Any, scale: Any) -> Any:
    return np.exp(_wishart_logpdf(self, x, df, scale))


@method("wishart", "entropy")
def _wishart_entropy(self: Any, df: Any, scale: Any) -> Any:
    n, df, scale = _df_and_scale(df, scale)
    log_det = _log_det(np.linalg.cholesky(scale))
    digammas = np.sum(sc.psi(0.5 * (df - np.arange(n))), axis=-1)
    value = 0.5 * (n + 1) * log_det + 0.5 * n * (n + 1) * np.log(2.0) + _multigammaln(0.5 * df, n)
    return _squeezed(value - 0.5 * (df - n - 1) * digammas + 0.5 * df * n)


@method("wishart", "mean")
def _wishart_mean(self: Any, df: Any, scale: Any) -> Any:
    _, df, scale = _df_and_scale(df, scale)
    return _squeezed(df * scale)


@method("wishart", "var")
def _wishart_var(self: Any, df: Any, scale: Any) -> Any:
    _, df, scale = _df_and_scale(df, scale)
    diagonal = np.diagonal(scale)
    return _squeezed(df * (scale**2 + np.outer(diagonal, diagonal)))


@method("invwishart", "logpdf")
def _invwishart_logpdf(self: Any, x: Any, df: Any, scale: Any) -> Any:
    n, df, scale = _df_and_scale(df, scale)
    x = _matrices(x, n)
    trace = np.trace(np.linalg.solve(x, np.broadcast_to(scale, x.shape)), axis1=-2, axis2=-1)
    constant = 0.5 * df * _log_det(np.linalg.cholesky(scale)) - 0.5 * df * n * np.log(2.0)
    determinant = 0.5 * (df + n + 1) * _log_det(np.linalg.cholesky(x))
    return _squeezed(constant - 0.5 * trace - determinant - _multigammaln(0.5 * df, n))


@method("invwishart", "pdf")
def _invwishart_pdf(self: Any, x: Any, df: Any, scale: Any) -> Any:
    return np.exp(_invwishart_logpdf(self, x, df, scale))


@method("invwishart", "entropy")
def _invwishart_entropy(self: Any, df: Any, scale: Any) -> Any:
    n, df, scale = _df_and_scale(df, scale)
    log_det = _log_det(np.linalg.cholesky(scale))
    digammas = np.sum(sc.psi(0.5 * (df - n + np.arange(1.0, n + 1))), axis=-1)
    value = 0.5 * (n + 1) * (log_det - np.log(2.0)) + _multigammaln(0.5 * df, n) + 0.5 * n * df
    return _squeezed(value - 0.5 * (n + df + 1) * digammas)


@method("invwishart", "mode")
def _invwishart_mode(self: Any, df: Any, scale: Any) -> Any:
    n, df, scale = _df_and_scale(df, scale)
    return _squeezed(scale / (df + n + 1))


def _matrix_parameters(mean: Any, rowcov: Any, colcov: Any) -> tuple[int, int, Any, Any, Any]:
    rowcov, colcov = _floats(rowcov), _floats(colcov)
    if mean is not None:
        mean = _floats(mean)
        rows, columns = mean.shape
    else:
        rows, columns = [1 if c.ndim == 0 else c.shape[0] for c in (rowcov, colcov)]
        mean = np.zeros((rows, columns))
    wide = [c * np.eye(n) if c.ndim < 2 else c for c, n in ((rowcov, rows), (colcov, columns))]
    if wide[0].shape != (rows, rows) or wide[1].shape != (columns, columns):
        raise ValueError(f"`rowcov` and `colcov` must fit a mean of shape {mean.shape}.")
    return rows, columns, mean, wide[0], wide[1]


@method("matrix_normal", "logpdf")
def _matrix_logpdf(self: Any, X: Any, mean: Any = None, rowcov: Any = 1, colcov: Any = 1) -> Any:
    rows, columns, mean, rowcov, colcov = _matrix_parameters(mean, rowcov, colcov)
    x = _floats(X)
    if x.shape[-2:] != (rows, columns):
        raise ValueError(f"The shape of array `X` is not conformal with the distribution parameters: {x.shape}.")
    row, column = _factor(rowcov), _factor(colcov)
    half = np.linalg.solve(row, x - mean)
    whitened = np.linalg.solve(column, np.swapaxes(half, -1, -2))
    maha = np.sum(np.square(whitened), axis=(-2, -1))
    determinants = columns * _log_det(row) + rows * _log_det(column)
    return _squeezed(-0.5 * (rows * columns * np.log(2 * np.pi) + determinants + maha))


@method("matrix_normal", "pdf")
def _matrix_pdf(self: Any, X: Any, mean: Any = None, rowcov: Any = 1, colcov: Any = 1) -> Any:
    return np.exp(_matrix_logpdf(self, X, mean, rowcov, colcov))


@method("matrix_normal", "entropy")
def _matrix_entropy(self: Any, rowcov: Any = 1, colcov: Any = 1) -> Any:
    rows, columns, _, rowcov, colcov = _matrix_parameters(None, rowcov, colcov)
    determinants = columns * _log_det(_factor(rowcov)) + rows * _log_det(_factor(colcov))
    return 0.5 * (rows * columns * (np.log(2 * np.pi) + 1) + determinants)


def _counts(x: Any) -> Any:
    """Numbers of outcomes, by which nothing is differentiated."""
    if holds_traced(x) and np.asarray(x).dtype.kind == "f":
        return _outcomes(np.asarray(x))
    return np.asarray(x, dtype=float)


def _refuse(primals: Any, tangents: Any) -> Any:
    raise NotDifferentiableError(
        f"probabilities of a discrete distribution have no derivative by the outcome{at_line()}"
    )


@func.custom_jvp
def _outcomes(x: Any) -> Any:
    """The outcomes themselves."""
    return x + 0.0


_outcomes.defjvp(_refuse)


def _trials(n: Any, p: Any) -> tuple[Any, Any, Any]:
    """n, p whose last element completes the sum to 1 where that is off, and where both are valid."""
    n, p = np.asarray(n), _floats(p)
    rest = 1.0 - np.sum(p[..., :-1], axis=-1)
    off = np.abs(1 - np.sum(p, axis=-1)) > 10 * np.finfo(float).eps
    p = np.concatenate([p[..., :-1], np.where(off, rest, p[..., -1])[..., None]], axis=-1)
    valid = ~(np.any(p < 0, axis=-1) | np.any(p > 1, axis=-1)) & (n >= 0)
    return n, p, valid


@method("multinomial", "logpmf")
def _multinomial_logpmf(self: Any, x: Any, n: Any, p: Any) -> Any:
    n, p, valid = _trials(n, p)
    x = _counts(x)
    if x.ndim == 0:
        raise ValueError("x must be an array.")
    if x.shape[-1] != p.shape[-1]:
        raise ValueError(
            f"Size of each quantile should be size of p: received {x.shape[-1]}, but expected {p.shape[-1]}."
        )
    inside = np.all((np.floor(x) == x) & (x >= 0), axis=-1) & (np.sum(x, axis=-1) == n)
    safe = np.where(inside[..., None], x, 0.0)
    value = sc.gammaln(n + 1) + np.sum(sc.xlogy(safe, p) - sc.gammaln(safe + 1), axis=-1)
    return np.where(valid, np.where(inside, value, -np.inf), np.nan)[()]


@method("multinomial", "pmf")
def _multinomial_pmf(self: Any, x: Any, n: Any, p: Any) -> Any:
    return np.exp(_multinomial_logpmf(self, x, n, p))


@method("multinomial", "mean")
def _multinomial_mean(self: Any, n: Any, p: Any) -> Any:
    n, p, valid = _trials(n, p)
    return np.where(valid[..., None], n[..., None] * p, np.nan)


@method("multinomial", "cov")
def _multinomial_cov(self: Any, n: Any, p: Any) -> Any:
    n, p, valid = _trials(n, p)
    matrix = p[..., None] * np.eye(p.shape[-1]) - p[..., :, None] * p[..., None, :]
    return np.where(valid[..., None, None], n[..., None, None] * matrix, np.nan)


def _dirichlet_counts(alpha: Any, n: Any) -> tuple[Any, Any, Any]:
    alpha, n = _floats(alpha), _floats(n)
    _require(alpha > 0, "`alpha` must contain only positive values.")
    _require((n > 0) & (np.floor(n) == n), "`n` must be a positive integer.")
    return alpha, np.sum(alpha, axis=-1), n


@method("dirichlet_multinomial", "logpmf")
def _dirichlet_multinomial_logpmf(self: Any, x: Any, alpha: Any, n: Any) -> Any:
    alpha, total, n = _dirichlet_counts(alpha, n)
    x = _counts(x)
    _require((x >= 0) & (np.floor(x) == x), "`x` must contain only non-negative integers.")
    ways = sc.gammaln(total) + sc.gammaln(n + 1) - sc.gammaln(n + total)
    value = ways + np.sum(sc.gammaln(x + alpha) - sc.gammaln(alpha) - sc.gammaln(x + 1), axis=-1)
    return np.where(np.sum(x, axis=-1) == n, value, -np.inf)[()]


@method("dirichlet_multinomial", "pmf")
def _dirichlet_multinomial_pmf(self: Any, x: Any, alpha: Any, n: Any) -> Any:
    return np.exp(_dirichlet_multinomial_logpmf(self, x, alpha, n))


def _direction(mu: Any, kappa: Any) -> tuple[int, Any, Any]:
    mu, kappa = _floats(mu), _floats(kappa)
    if mu.ndim != 1 or mu.shape[0] < 2:
        raise ValueError("'mu' must have one-dimensional shape, with at least two elements.")
    _require(np.abs(np.sqrt(np.sum(mu * mu)) - 1.0) < 1e-5, "'mu' must be a unit vector of norm 1.")
    _require(kappa > 0, "'kappa' must be a positive scalar.")
    return mu.shape[0], mu, kappa


def _log_norm(n: int, kappa: Any) -> Any:
    bessel = np.log(sc.ive(0.5 * n - 1, kappa))
    return 0.5 * (n - 2) * np.log(kappa) - 0.5 * n * np.log(2 * np.pi) - bessel - kappa


@method("vonmises_fisher", "logpdf")
def _fisher_logpdf(self: Any, x: Any, mu: Any = None, kappa: Any = 1) -> Any:
    n, mu, kappa = _direction(mu, kappa)
    x = _floats(x)
    if x.shape[-1] != n:
        raise ValueError("The dimensionality of the last axis of 'x' must match that of the distribution.")
    _require(np.abs(np.sum(x * x, axis=-1) - 1.0) < 2e-5, "'x' must be unit vectors of norm 1 along last dimension.")
    return _log_norm(n, kappa) + kappa * np.sum(x * mu, axis=-1)


@method("vonmises_fisher", "pdf")
def _fisher_pdf(self: Any, x: Any, mu: Any = None, kappa: Any = 1) -> Any:
    return np.exp(_fisher_logpdf(self, x, mu, kappa))


@method("vonmises_fisher", "entropy")
def _fisher_entropy(self: Any, mu: Any = None, kappa: Any = 1) -> Any:
    n, _, kappa = _direction(mu, kappa)
    return -_log_norm(n, kappa) - kappa * sc.ive(0.5 * n, kappa) / sc.ive(0.5 * n - 1, kappa)


def _frozen(kind: str) -> Callable[..., Any]:
    """What calling a distribution with traced parameters gives: its methods at these parameters."""
    frozen_class: type = getattr(_scipy, f"{kind}_frozen")
    generator: type = getattr(_scipy, f"{kind}_gen")
    signature = inspect.signature(original(vars(generator)["__call__"]))
    drawn = inspect.signature(getattr(frozen_class, "rvs", original)).parameters
    size = drawn["size"].default if "size" in drawn else None

    def init(self: Any, dist: Any, parameters: dict[str, Any], seed: Any) -> None:
        self._dist, self._parameters, self._state = dist, parameters, seed

    def bound(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        wanted = list(inspect.signature(function).parameters)

        def call(self: Any, *points: Any, **options: Any) -> Any:
            given = {key: value for key, value in self._parameters.items() if key in wanted}
            return getattr(self._dist, name)(*points, **given, **options)

        return call

    def rvs(self: Any, size: Any = size, random_state: Any = None) -> Any:
        state = self._state if random_state is None else random_state
        return self._dist.rvs(**self._parameters, size=size, random_state=state)

    prefix = f"_multivariate_{kind}_gen_"
    methods = {
        name.removeprefix(prefix): bound(name.removeprefix(prefix), function)
        for name, function in OWN.items()
        if name.startswith(prefix)
    }
    if "rvs" in methods:
        methods["rvs"] = rvs
    own = type(frozen_class.__name__, (frozen_class,), {"__init__": init, **methods})

    def freeze(self: Any, *args: Any, **kwds: Any) -> Any:
        parameters = dict(signature.bind(self, *args, **kwds).arguments)
        parameters.pop("self", None)
        return own(self, parameters, parameters.pop("seed", None))

    return freeze


KINDS: Sequence[str] = (
    "multivariate_normal", "multivariate_t", "wishart", "invwishart", "matrix_normal", "matrix_t",
    "multinomial", "dirichlet_multinomial", "normal_inverse_gamma", "vonmises_fisher",
)  # fmt: skip


def freeze_all() -> None:
    """Register what makes frozen distributions, once all methods are."""
    for kind in KINDS:
        if hasattr(_scipy, f"{kind}_gen"):  # not in every version
            OWN[f"_multivariate_{kind}_gen___call__"] = _frozen(kind)
