"""Samples of SciPy's multivariate distributions, `rvs`, that differentiate by the parameters.

Each distribution maps noise that does not depend on the parameters: normal vectors times Cholesky factors, Bartlett's
triangular matrices, breaks of a stick. With a key of func.random the noise is func's. With a seed or a generator of
NumPy the sample is SciPy's own, and the inverse of the map finds its noise. So the values are SciPy's, and the
derivatives are those of the map at this noise.
"""

from __future__ import annotations

import inspect
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
from func.scipy.stats.sampling import draw, key_of, moved, uniform

OWN: dict[str, Callable[..., Any]] = {}
"""By the names of the hooks."""


class _Draw:
    """A call of `rvs`: a key of func.random or None, the shape of the samples, and SciPy's own samples."""

    def __init__(self, kind: str, dist: Any, size: Any, state: Any) -> None:
        self.kind, self.dist, self.size = kind, dist, size
        self.state = getattr(dist, "seed", None) if state is None else state
        self.key = key_of(self.state)
        self.batch = () if size is None else tuple([int(n) for n in np.atleast_1d(size)])

    def scipys(self, shape: tuple[int, ...], *parameters: Any) -> Any:
        """SciPy's sample of this shape at constant parameters."""
        run = original(vars(getattr(_scipy, f"{self.kind}_gen"))["rvs"])

        def sampler(*values: Any) -> Any:
            values = tuple([x[()] if isinstance(x, np.ndarray) else x for x in values])  # SciPy asks for scalars
            return np.reshape(run(self.dist, *values, size=self.size, random_state=self.state), shape)

        return draw(sampler, shape, self.state, parameters)


def _rvs(kind: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function of a `_Draw` and of parameters as `rvs` of one of SciPy's classes of distributions."""
    generator = getattr(_scipy, f"{kind}_gen", None)
    signature = None if generator is None else inspect.signature(original(vars(generator)["rvs"]))

    def register(sample: Callable[..., Any]) -> Callable[..., Any]:
        def rvs(self: Any, *args: Any, **kwds: Any) -> Any:
            assert signature is not None
            bound = signature.bind(self, *args, **kwds)
            bound.apply_defaults()
            given = bound.arguments
            call = _Draw(kind, given.pop("self"), given.pop("size", None), given.pop("random_state"))
            return sample(call, **given)

        OWN[f"_multivariate_{kind}_gen_rvs"] = rvs
        return sample

    return register


def _fixed(x: Any) -> Any:
    return func.stop_gradient(x)


def _times(matrix: Any, vectors: Any) -> Any:
    """A matrix times vectors (…, n)."""
    return vectors @ np.swapaxes(matrix, -1, -2)


def _solved(factor: Any, vectors: Any) -> Any:
    """L⁻¹ of vectors (…, n)."""
    flat = np.reshape(vectors, (-1, vectors.shape[-1]))
    return np.reshape(np.linalg.solve(factor, flat.T).T, vectors.shape)


_squeezed = _scipy._squeeze_output


@_rvs("multivariate_normal")
def _normal(draw: _Draw, mean: Any, cov: Any) -> Any:
    if type(cov).__name__ == "CovViaPSD":  # made of a matrix by SciPy's frozen distributions
        cov = cov.covariance
    if isinstance(cov, Covariance):
        n, mean, cov = draw.dist._process_parameters(mean, cov)
        shape = (*draw.batch, n)
        if draw.key is not None:
            return _squeezed(cov.colorize(random.normal(draw.key, shape)) + mean)
        return _squeezed(draw.scipys(shape, np.zeros(n), cov) + mean)
    n, mean, cov = draw.dist._process_parameters_psd(None, mean, cov)
    shape = (*draw.batch, n)
    if draw.key is not None:
        return _squeezed(mean + _times(methods.factor_of(cov), random.normal(draw.key, shape)))
    if not holds_traced(cov):
        return _squeezed(draw.scipys(shape, np.zeros(n), cov) + mean)
    drawn = draw.scipys(shape, mean, cov)
    factor = methods.factor_of(cov)
    return _squeezed(mean + _times(factor, _solved(_fixed(factor), drawn - _fixed(mean))))


@_rvs("multivariate_t")
def _t(draw: _Draw, loc: Any, shape: Any, df: Any) -> Any:
    n, loc, shape, df = draw.dist._process_parameters(loc, shape, df)
    factor = methods.factor_of(shape)
    if draw.key is not None:
        first, second = random.split(draw.key)
        mixed = np.exp(0.5 * (random.loggamma(second, df / 2, draw.batch) + np.log(2.0) - np.log(df)))
        return _squeezed(loc + _times(factor, random.normal(first, (*draw.batch, n))) / mixed[..., None])
    drawn = draw.scipys((*draw.batch, n), loc, shape, df)
    noise = _solved(_fixed(factor), drawn - _fixed(loc))
    if holds_traced(df):
        square = np.sum(noise * noise, axis=-1) / n
        now = moved(scipy.stats.f, square, [np.full(draw.batch, float(n)), np.broadcast_to(df, draw.batch)])
        noise = noise * np.sqrt(now / square)[..., None]
    return _squeezed(loc + _times(factor, noise))


@_rvs("dirichlet")
def _dirichlet(draw: _Draw, alpha: Any) -> Any:
    batch, alpha = draw.batch, np.asarray(_scipy._dirichlet_check_parameters(alpha), float)
    k = alpha.shape[0]
    if draw.key is not None:
        return random.dirichlet(draw.key, alpha, batch)
    drawn = draw.scipys((*batch, k), alpha)
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
def _wishart(draw: _Draw, df: Any, scale: Any) -> Any:
    n, df, scale = draw.dist._process_parameters(df, scale)
    factor = np.linalg.cholesky(scale)
    if draw.key is not None:
        return _squeezed(_squared(factor @ _bartlett(draw.key, draw.batch, n, df)))
    drawn = draw.scipys((*draw.batch, n, n), df, scale)
    inverse = np.linalg.inv(_fixed(factor))
    return _squeezed(_squared(factor @ _moved_bartlett(inverse @ drawn @ inverse.T, df)))


@_rvs("invwishart")
def _invwishart(draw: _Draw, df: Any, scale: Any) -> Any:
    n, df, scale = draw.dist._process_parameters(df, scale)
    factor = np.linalg.cholesky(scale)
    if draw.key is not None:
        noise = _bartlett(draw.key, draw.batch, n, df)
    else:
        drawn, fixed = draw.scipys((*draw.batch, n, n), df, scale), _fixed(factor)
        noise = _moved_bartlett(fixed.T @ np.linalg.solve(drawn, np.broadcast_to(fixed, drawn.shape)), df)
    return _squeezed(_squared(factor @ np.swapaxes(np.linalg.inv(noise), -1, -2)))


def _between(mean: Any, row: Any, column: Any, noise: Any) -> Any:
    """Matrices of noise between the factors of their rows and columns; one matrix for a single sample."""
    out = mean + row @ noise @ column.T
    return out[0] if out.shape[0] == 1 else out


def _noise_between(drawn: Any, mean: Any, row: Any, column: Any) -> Any:
    """The noise of matrices that SciPy has drawn."""
    half = np.linalg.solve(_fixed(row), drawn - _fixed(mean))
    return np.swapaxes(np.linalg.solve(_fixed(column), np.swapaxes(half, -1, -2)), -1, -2)


@_rvs("matrix_normal")
def _matrix_normal(draw: _Draw, mean: Any, rowcov: Any, colcov: Any) -> Any:
    dims, mean, rowcov, colcov = draw.dist._process_parameters(mean, rowcov, colcov)
    shape = (int(draw.size), *dims)
    row, column = methods.factor_of(rowcov), methods.factor_of(colcov)
    if draw.key is not None:
        return _between(mean, row, column, random.normal(draw.key, shape))
    return _between(mean, row, column, _noise_between(draw.scipys(shape, mean, rowcov, colcov), mean, row, column))


@_rvs("matrix_t")
def _matrix_t(draw: _Draw, mean: Any, row_spread: Any, col_spread: Any, df: Any) -> Any:
    dims, mean, row_spread, col_spread, df = draw.dist._process_parameters(mean, row_spread, col_spread, df)
    shape, m = (int(draw.size), *dims), dims[0]
    row, column = methods.factor_of(row_spread), methods.factor_of(col_spread)
    if draw.key is not None:
        first, second = random.split(draw.key)
        factor = _bartlett(first, shape[:1], m, df + m - 1)
        noise = np.linalg.solve(np.swapaxes(factor, -1, -2), random.normal(second, shape))
    elif holds_traced(df):
        raise UnsupportedFunctionError(
            f"matrix_t.rvs with traced degrees of freedom and a random state of NumPy{at_line()}\n"
            "Pass a key of func.random as random_state: its samples have a derivative by df."
        )
    else:
        noise = _noise_between(draw.scipys(shape, mean, row_spread, col_spread, df), mean, row, column)
    return _between(mean, row, column, noise)


@_rvs("multinomial")
def _multinomial(draw: _Draw, n: Any, p: Any) -> Any:
    """Counts, which are constants."""
    p = _fixed(np.asarray(p, float))
    batch = np.broadcast_shapes(np.shape(n), p.shape[:-1]) if draw.size is None else draw.batch
    shape = (*batch, p.shape[-1])
    if draw.key is not None:
        return random.multinomial(draw.key, n, p, shape)
    return np.asarray(draw.scipys(shape, n, p), np.int64)


def _rotated(points: Any, start: Any, end: Any) -> Any:
    """Points turned by the rotation in the plane of two unit vectors that takes the first to the second."""
    middle = start + end
    along = np.sum(points * middle, axis=-1, keepdims=True) / (1 + np.sum(start * end))
    return points - along * middle + 2 * np.sum(points * start, axis=-1, keepdims=True) * end


@_rvs("vonmises_fisher")
def _vonmises_fisher(draw: _Draw, mu: Any, kappa: Any) -> Any:
    key, batch = draw.key, draw.batch
    n, mu, kappa = draw.dist._process_parameters(mu, kappa)
    if n > 3 and (key is not None or holds_traced(kappa)):
        raise UnsupportedFunctionError(
            f"vonmises_fisher.rvs in {n} dimensions, by a key or with a traced kappa{at_line()}\nSciPy draws by "
            "rejection there: in 2 and 3 dimensions samples have a derivative by kappa; by mu they have it everywhere."
        )
    if key is None:
        drawn = draw.scipys((*batch, n), mu, kappa)
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
def _normal_inverse_gamma(draw: _Draw, mu: Any, lmbda: Any, a: Any, b: Any) -> Any:
    parameters = mu, lmbda, a, b = [np.asarray(x, float) for x in (mu, lmbda, a, b)]
    batch = np.broadcast_shapes(*[x.shape for x in parameters]) if draw.size is None else draw.batch
    if draw.key is not None:
        first, second = random.split(draw.key)
        s2 = b * np.exp(-random.loggamma(first, a, batch))
        noise = random.normal(second, batch)
    else:
        fixed = [_fixed(x) for x in parameters]
        drawn = draw.scipys((2, *batch), *parameters)
        s2 = moved(scipy.stats.invgamma, drawn[1] / fixed[3], [np.broadcast_to(a, batch)]) * b
        noise = (drawn[0] - fixed[0]) / np.sqrt(drawn[1] / fixed[1])
    return (mu + noise * np.sqrt(s2 / lmbda))[()], s2[()]


@_rvs("random_correlation")
def _random_correlation(draw: _Draw, eigs: Any, tol: float, diag_tol: float) -> Any:
    raise UnsupportedFunctionError(
        f"random_correlation.rvs of traced eigenvalues{at_line()}\nIts rotations are chosen by comparisons of the "
        "matrix's elements: draw with func.stop_gradient(eigs)."
    )


def _rvs_of_frozen(*parameters: str) -> Callable[..., Any]:
    """`rvs` of frozen distributions whose own calls a private method."""

    def rvs(self: Any, size: Any = 1, random_state: Any = None) -> Any:
        return self._dist.rvs(*[getattr(self, name) for name in parameters], size=size, random_state=random_state)

    return rvs


OWN.update(
    _multivariate_invwishart_frozen_rvs=_rvs_of_frozen("df", "scale"),
    _multivariate_wishart_frozen_rvs=_rvs_of_frozen("df", "scale"),
    _multivariate_vonmises_fisher_frozen_rvs=_rvs_of_frozen("mu", "kappa"),
)
__all__ = list(OWN)
globals().update(OWN)
