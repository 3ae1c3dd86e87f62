"""Samples of SciPy's multivariate distributions, `rvs`, that differentiate by the parameters.

Each distribution is a map of noise that does not depend on the parameters: normal vectors times Cholesky factors,
Bartlett's triangular matrices, breaks of a stick. With a key of func.random the noise is func's. With a seed or a
generator of NumPy's the sample is SciPy's own, whose noise is found by the inverse of the map; so the values are
SciPy's, and the derivatives are those of the map at this noise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.stats
from scipy.stats import Covariance
from scipy.stats import _multivariate as _scipy

import func
from func import random
from func.host.scipy_hooks import holds_traced, original
from func.interpreters.core import Array
from func.interpreters.core.errors import UnsupportedFunctionError
from func.interpreters.host.source import at_line
from func.scipy.stats import multivariate_methods as methods
from func.scipy.stats import multivariate_more, normal_boxes
from func.scipy.stats.sampling import draw, key_of, moved, uniform

OWN: dict[str, Callable[..., Any]] = {}
"""By the names of the hooks."""


def _rvs(kind: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register `rvs` of one of SciPy's classes of distributions."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        OWN[f"_multivariate_{kind}_gen_rvs"] = methods.OWN[f"_multivariate_{kind}_gen_rvs"] = function
        return function

    return register


def _batch(size: Any) -> tuple[int, ...]:
    return () if size is None else tuple([int(n) for n in np.atleast_1d(size)])


def _scipys(kind: str, dist: Any, size: Any, state: Any, shape: tuple[int, ...], *parameters: Any) -> Any:
    """SciPy's sample of this shape at constant parameters."""
    run = original(vars(getattr(_scipy, f"{kind}_gen"))["rvs"])

    def sampler(*values: Any) -> Any:
        values = tuple([x[()] if isinstance(x, np.ndarray) else x for x in values])  # SciPy asks for scalars
        return np.reshape(run(dist, *values, size=size, random_state=state), shape)

    return draw(sampler, shape, state, parameters)


def _fixed(x: Any) -> Any:
    return func.stop_gradient(x)


def _times(matrix: Any, vectors: Any) -> Any:
    """A matrix times vectors (…, n)."""
    return vectors @ np.swapaxes(matrix, -1, -2)


def _solved(factor: Any, vectors: Any) -> Any:
    """L⁻¹ of vectors (…, n)."""
    flat = np.reshape(vectors, (-1, vectors.shape[-1]))
    return np.reshape(np.linalg.solve(factor, flat.T).T, vectors.shape)


def _is_plain(cov: Any) -> bool:
    """Whether it is what SciPy's frozen distributions make of a matrix."""
    return type(cov).__name__ == "CovViaPSD"


@_rvs("multivariate_normal")
def _normal_rvs(self: Any, mean: Any = None, cov: Any = 1, size: Any = 1, random_state: Any = None) -> Any:
    key, batch = key_of(random_state), _batch(size)
    if isinstance(cov, Covariance):
        n = cov.shape[-1]
        mean = np.zeros(n) if mean is None else methods._floats(mean)
        if key is not None:
            noise = random.normal(key, (*batch, n))
            colored = _times(methods._factor(cov.covariance), noise) if _is_plain(cov) else cov.colorize(noise)
            return methods._squeezed(colored + mean)
        drawn = _scipys("multivariate_normal", self, size, random_state, (*batch, n), np.zeros(n), cov)
        return methods._squeezed(drawn + mean)
    n, mean, cov = methods._location_and_matrix(mean, cov, ("cov", "mean"))
    shape = (*batch, n)
    if key is not None:
        return methods._squeezed(mean + _times(methods._factor(cov), random.normal(key, shape)))
    if not holds_traced(cov):
        drawn = _scipys("multivariate_normal", self, size, random_state, shape, np.zeros(n), cov)
        return methods._squeezed(drawn + mean)
    drawn = _scipys("multivariate_normal", self, size, random_state, shape, mean, cov)
    factor = methods._factor(cov)
    noise = _solved(_fixed(factor), drawn - _fixed(mean))
    return methods._squeezed(mean + _times(factor, noise))


@_rvs("multivariate_t")
def _t_rvs(self: Any, loc: Any = None, shape: Any = 1, df: Any = 1, size: Any = 1, random_state: Any = None) -> Any:
    key, batch = key_of(random_state), _batch(size)
    n, loc, shape = methods._location_and_matrix(loc, shape, ("shape", "loc"))
    df = methods._floats(df)
    methods._require(df > 0, "'df' must be greater than zero.")
    factor = methods._factor(shape)
    if key is not None:
        first, second = random.split(key)
        mixed = np.exp(0.5 * (random.loggamma(second, df / 2, batch) + np.log(2.0) - np.log(df)))
        return methods._squeezed(loc + _times(factor, random.normal(first, (*batch, n))) / mixed[..., None])
    drawn = _scipys("multivariate_t", self, size, random_state, (*batch, n), loc, shape, df)
    noise = _solved(_fixed(factor), drawn - _fixed(loc))
    if holds_traced(df):
        square = np.sum(noise * noise, axis=-1) / n
        now = moved(scipy.stats.f, square, [np.full(batch, float(n)), np.broadcast_to(df, batch)])
        noise = noise * np.sqrt(now / square)[..., None]
    return methods._squeezed(loc + _times(factor, noise))


@_rvs("dirichlet")
def _dirichlet_rvs(self: Any, alpha: Any, size: Any = 1, random_state: Any = None) -> Any:
    key, batch = key_of(random_state), _batch(size)
    alpha = np.asarray(_scipy._dirichlet_check_parameters(alpha), float)
    k = alpha.shape[0]
    if key is not None:
        return random.dirichlet(key, alpha, batch)
    drawn = _scipys("dirichlet", self, size, random_state, (*batch, k), alpha)
    left = np.flip(np.cumsum(np.flip(drawn, -1), -1), -1)
    others = np.flip(np.cumsum(np.flip(alpha, -1)), -1)
    shapes = [np.broadcast_to(x, (*batch, k - 1)) for x in (alpha[:-1], others[1:])]
    broken = moved(scipy.stats.beta, drawn[..., :-1] / left[..., :-1], shapes)
    ones = np.ones((*batch, 1))
    rest = np.concatenate([ones, np.cumprod(1 - broken, axis=-1)], axis=-1)
    return np.concatenate([broken, ones], axis=-1) * rest


def _bartlett(key: Array, batch: tuple[int, ...], n: int, df: Any) -> Any:
    """Triangular matrices A with A Aᵀ of Wishart's distribution of scale one. Source: M. Bartlett (1933)."""
    first, second = random.split(key)
    logs = random.loggamma(first, (df - np.arange(n)) / 2, (*batch, n))
    diagonal = np.exp(0.5 * (logs + np.log(2.0)))
    return np.tril(random.normal(second, (*batch, n, n)), -1) + diagonal[..., None] * np.eye(n)


def _moved_bartlett(matrix: Any, df: Any) -> Any:
    """The triangular factor of a sample at the numbers of df, as a function of df."""
    factor = _fixed(np.linalg.cholesky(matrix))
    if not holds_traced(df):
        return factor
    n = factor.shape[-1]
    diagonal = np.diagonal(factor, axis1=-2, axis2=-1)
    degrees = np.broadcast_to(df - np.arange(n), diagonal.shape)
    now = np.sqrt(moved(scipy.stats.chi2, diagonal**2, [degrees]))
    return np.tril(factor, -1) + now[..., None] * np.eye(n)


def _squared(factor: Any) -> Any:
    return factor @ np.swapaxes(factor, -1, -2)


@_rvs("wishart")
def _wishart_rvs(self: Any, df: Any, scale: Any, size: Any = 1, random_state: Any = None) -> Any:
    key, batch = key_of(random_state), _batch(size)
    n, df, scale = methods._df_and_scale(df, scale)
    factor = np.linalg.cholesky(scale)
    if key is not None:
        return methods._squeezed(_squared(factor @ _bartlett(key, batch, n, df)))
    drawn = _scipys("wishart", self, size, random_state, (*batch, n, n), df, scale)
    inverse = np.linalg.inv(_fixed(factor))
    return methods._squeezed(_squared(factor @ _moved_bartlett(inverse @ drawn @ inverse.T, df)))


@_rvs("invwishart")
def _invwishart_rvs(self: Any, df: Any, scale: Any, size: Any = 1, random_state: Any = None) -> Any:
    key, batch = key_of(random_state), _batch(size)
    n, df, scale = methods._df_and_scale(df, scale)
    factor = np.linalg.cholesky(scale)
    if key is not None:
        noise = _bartlett(key, batch, n, df)
    else:
        drawn = _scipys("invwishart", self, size, random_state, (*batch, n, n), df, scale)
        fixed = _fixed(factor)
        noise = _moved_bartlett(fixed.T @ np.linalg.solve(drawn, np.broadcast_to(fixed, drawn.shape)), df)
    inverse = np.swapaxes(np.linalg.inv(noise), -1, -2)
    return methods._squeezed(_squared(factor @ inverse))


@_rvs("matrix_normal")
def _matrix_rvs(
    self: Any, mean: Any = None, rowcov: Any = 1, colcov: Any = 1, size: Any = 1, random_state: Any = None
) -> Any:
    key = key_of(random_state)
    rows, columns, mean, rowcov, colcov = methods._matrix_parameters(mean, rowcov, colcov)
    shape = (int(size), rows, columns)
    row, column = methods._factor(rowcov), methods._factor(colcov)
    if key is not None:
        noise = random.normal(key, shape)
    else:
        drawn = _scipys("matrix_normal", self, size, random_state, shape, mean, rowcov, colcov)
        half = np.linalg.solve(_fixed(row), drawn - _fixed(mean))
        noise = np.swapaxes(np.linalg.solve(_fixed(column), np.swapaxes(half, -1, -2)), -1, -2)
    out = mean + row @ noise @ column.T
    return out[0] if shape[0] == 1 else out


@_rvs("matrix_t")
def _matrix_t_rvs(
    self: Any, mean: Any = None, row_spread: Any = 1, col_spread: Any = 1, df: Any = 1, size: Any = 1,
    random_state: Any = None,
) -> Any:  # fmt: skip
    key = key_of(random_state)
    m, n, mean, row_spread, col_spread, df = multivariate_more.spreads(mean, row_spread, col_spread, df)
    shape = (int(size), m, n)
    row, column = methods._factor(row_spread), methods._factor(col_spread)
    if key is not None:
        first, second = random.split(key)
        factor = _bartlett(first, shape[:1], m, df + m - 1)
        noise = np.linalg.solve(np.swapaxes(factor, -1, -2), random.normal(second, shape))
    else:
        if holds_traced(df):
            raise UnsupportedFunctionError(
                f"matrix_t.rvs with traced degrees of freedom and a random state of NumPy's{at_line()}\n"
                "Pass a key of func.random as random_state: its samples have a derivative by df."
            )
        drawn = _scipys("matrix_t", self, size, random_state, shape, mean, row_spread, col_spread, df[()])
        half = np.linalg.solve(_fixed(row), drawn - _fixed(mean))
        noise = np.swapaxes(np.linalg.solve(_fixed(column), np.swapaxes(half, -1, -2)), -1, -2)
    out = mean + row @ noise @ column.T
    return out[0] if shape[0] == 1 else out


@_rvs("multinomial")
def _multinomial_rvs(self: Any, n: Any, p: Any, size: Any = None, random_state: Any = None) -> Any:
    """Counts, which are constants."""
    key, p = key_of(random_state), _fixed(methods._floats(p))
    shape = (*(np.broadcast_shapes(np.shape(n), p.shape[:-1]) if size is None else _batch(size)), p.shape[-1])
    if key is not None:
        return random.multinomial(key, n, p, shape)
    return np.asarray(_scipys("multinomial", self, size, random_state, shape, n, p), np.int64)


def _rotated(points: Any, start: Any, end: Any) -> Any:
    """Points turned by the rotation in the plane of two unit vectors that takes the first to the second."""
    middle = start + end
    along = np.sum(points * middle, axis=-1, keepdims=True) / (1 + np.sum(start * end))
    return points - along * middle + 2 * np.sum(points * start, axis=-1, keepdims=True) * end


@_rvs("vonmises_fisher")
def _fisher_rvs(self: Any, mu: Any = None, kappa: Any = 1, size: Any = 1, random_state: Any = None) -> Any:
    key, batch = key_of(random_state), _batch(size)
    n, mu, kappa = methods._direction(mu, kappa)
    if n > 3 and (key is not None or holds_traced(kappa)):
        raise UnsupportedFunctionError(
            f"vonmises_fisher.rvs in {n} dimensions, by a key or with a traced kappa{at_line()}\nSciPy draws by "
            "rejection there: in 2 and 3 dimensions samples have a derivative by kappa; by mu they have it everywhere."
        )
    if key is None:
        drawn = _scipys("vonmises_fisher", self, size, random_state, (*batch, n), mu, kappa)
        drawn = _fisher_moved(drawn, _fixed(mu), kappa) if holds_traced(kappa) else drawn
        return _rotated(drawn, _fixed(mu), mu) if holds_traced(mu) else drawn
    first, second = random.split(key)
    aside = random.normal(second, (*batch, n))
    aside = aside - np.sum(aside * mu, axis=-1, keepdims=True) * mu
    aside = aside / np.sqrt(np.sum(aside * aside, axis=-1, keepdims=True))
    if n == 2:
        cosine = np.cos(scipy.stats.vonmises.rvs(kappa, size=batch, random_state=first))
    else:
        cosine = _height(uniform(first, batch), kappa)
    return cosine[..., None] * mu + np.sqrt((1 - cosine) * (1 + cosine))[..., None] * aside


def _height(u: Any, kappa: Any) -> Any:
    """The quantile of the cosine in three dimensions, which has the density κ exp(κ w) / (2 sinh κ)."""
    return 1 + np.log(u + (1 - u) * np.exp(-2 * kappa)) / kappa


def _fisher_moved(drawn: Any, mu: Any, kappa: Any) -> Any:
    """Samples at the numbers of kappa, as functions of kappa: the angle to the mean moves."""
    cosine = np.clip(np.sum(drawn * mu, axis=-1), -1.0, 1.0)
    if drawn.shape[-1] == 2:
        angle = np.arccos(cosine)
        now = np.cos(moved(scipy.stats.vonmises, angle, [np.broadcast_to(kappa, angle.shape)]))
    else:
        fixed = _fixed(kappa)
        now = _height(np.expm1(fixed * (cosine + 1)) / np.expm1(2 * fixed), kappa)
    aside = drawn - cosine[..., None] * mu
    size = np.sqrt((1 - cosine) * (1 + cosine))
    return now[..., None] * mu + (np.sqrt((1 - now) * (1 + now)) / size)[..., None] * aside


@_rvs("normal_inverse_gamma")
def _normal_inverse_gamma_rvs(
    self: Any, mu: Any = 0, lmbda: Any = 1, a: Any = 1, b: Any = 1, size: Any = None, random_state: Any = None
) -> Any:
    key = key_of(random_state)
    mu, lmbda, a, b = [methods._floats(x) for x in (mu, lmbda, a, b)]
    batch = np.broadcast_shapes(*[x.shape for x in (mu, lmbda, a, b)]) if size is None else _batch(size)
    if key is not None:
        first, second = random.split(key)
        s2 = b * np.exp(-random.loggamma(first, a, batch))
        noise = random.normal(second, batch)
    else:
        fixed = [_fixed(x) for x in (mu, lmbda, a, b)]
        drawn = _scipys("normal_inverse_gamma", self, size, random_state, (2, *batch), mu, lmbda, a, b)
        s2 = moved(scipy.stats.invgamma, drawn[1] / fixed[3], [np.broadcast_to(a, batch)]) * b
        noise = (drawn[0] - fixed[0]) / np.sqrt(drawn[1] / fixed[1])
    return (mu + noise * np.sqrt(s2 / lmbda))[()], s2[()]


@_rvs("random_correlation")
def _correlation_rvs(self: Any, eigs: Any, random_state: Any = None, tol: float = 1e-13, diag_tol: float = 1e-7) -> Any:
    raise UnsupportedFunctionError(
        f"random_correlation.rvs of traced eigenvalues{at_line()}\nIts rotations are chosen by comparisons of the "
        "matrix's elements: draw with func.stop_gradient(eigs)."
    )


def _delegated(name: str, *parameters: str) -> Callable[..., Any]:
    """A method of a frozen distribution that SciPy made, which calls private methods there."""

    def call(self: Any, *points: Any, **options: Any) -> Any:
        given = {parameter: getattr(self, parameter) for parameter in parameters}
        return getattr(self._dist, name)(*points, **given, **options)

    def rvs(self: Any, size: Any = 1, random_state: Any = None) -> Any:
        return call(self, size=size, random_state=random_state)

    return rvs if name == "rvs" else call


_FROZEN = {
    "invwishart": (("df", "scale"), ("logpdf", "pdf", "rvs")),
    "multivariate_normal": (("mean", "cov", "allow_singular", "maxpts", "abseps", "releps"), ("cdf", "logcdf")),
    "multivariate_t": (("loc", "shape", "df"), ("cdf",)),
    "vonmises_fisher": (("mu", "kappa"), ("logpdf", "pdf", "rvs")),
    "wishart": (("df", "scale"), ("logpdf", "pdf", "rvs")),
}
for _kind, (_parameters, _names) in _FROZEN.items():
    OWN.update({f"_multivariate_{_kind}_frozen_{name}": _delegated(name, *_parameters) for name in _names})
OF_FROZEN = (multivariate_more, normal_boxes)
"""Modules whose methods frozen distributions have as well."""
methods.freeze_all()
__all__ = list(OWN)
globals().update(OWN)
