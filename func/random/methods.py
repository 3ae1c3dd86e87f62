"""The distributions as methods with NumPy's signatures, over the functions of keys."""

from __future__ import annotations

from typing import Any

import numpy as np

from func.interpreters.core import Array, operand, shape_of
from func.interpreters.primitives.elementwise import table as e
from func.random import continuous, discrete, multivariate, transformed

_DOUBLE = np.dtype(np.float64)


class Methods:
    """Draws of a class that gives keys. `size` is the shape of the result; None for that of the parameters."""

    def next_key(self) -> Array:
        """The key of the next draw."""
        raise NotImplementedError

    # --- uniform numbers and integers

    def random(self, size: Any = None, dtype: Any = np.float64) -> Array:
        """Uniform numbers in [0, 1)."""
        return transformed.uniform(self.next_key(), size, dtype)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Array:
        """Uniform numbers in [low, high)."""
        return transformed.uniform(self.next_key(), size, minval=low, maxval=high)

    def integers(
        self, low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64, endpoint: bool = False
    ) -> Array:
        """Integers from low to high - 1 (to high: endpoint=True); from 0 where high is not given."""
        if high is None:
            low, high = 0, low
        return discrete.randint(self.next_key(), size, low, high + 1 if endpoint else high, dtype)

    # --- location and scale

    def standard_normal(self, size: Any = None, dtype: Any = np.float64) -> Array:
        """Normal numbers of mean 0 and variance 1."""
        return transformed.normal(self.next_key(), size, dtype)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Array:
        """Normal numbers."""
        return transformed.normal(self.next_key(), size, loc=loc, scale=scale)

    def lognormal(self, mean: Any = 0.0, sigma: Any = 1.0, size: Any = None) -> Array:
        """Exponentials of normal numbers."""
        return e.exp(transformed.normal(self.next_key(), size, loc=mean, scale=sigma))

    def standard_exponential(self, size: Any = None, dtype: Any = np.float64, method: str = "zig") -> Array:
        """Exponential numbers of mean 1, by the inverse distribution function (`method` is not used)."""
        return transformed.exponential(self.next_key(), size, dtype)

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Array:
        """Exponential numbers of mean `scale`."""
        return transformed.exponential(self.next_key(), size, scale=scale)

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Array:
        """Laplace numbers."""
        return transformed.laplace(self.next_key(), size, loc=loc, scale=scale)

    def logistic(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Array:
        """Logistic numbers."""
        return transformed.logistic(self.next_key(), size, loc=loc, scale=scale)

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Array:
        """Gumbel numbers."""
        return transformed.gumbel(self.next_key(), size, loc=loc, scale=scale)

    def standard_cauchy(self, size: Any = None) -> Array:
        """Cauchy numbers."""
        return transformed.cauchy(self.next_key(), size)

    def rayleigh(self, scale: Any = 1.0, size: Any = None) -> Array:
        """Rayleigh numbers."""
        return transformed.rayleigh(self.next_key(), scale, size)

    def triangular(self, left: Any, mode: Any, right: Any, size: Any = None) -> Array:
        """Numbers of a triangular density."""
        return transformed.triangular(self.next_key(), left, mode, right, size)

    # --- shape parameters

    def weibull(self, a: Any, size: Any = None) -> Array:
        """Weibull numbers of shape a."""
        return transformed.weibull_min(self.next_key(), 1.0, a, size)

    def pareto(self, a: Any, size: Any = None) -> Array:
        """Pareto II (Lomax) numbers: Pareto numbers less one."""
        return e.subtract(transformed.pareto(self.next_key(), a, size), 1.0)

    def power(self, a: Any, size: Any = None) -> Array:
        """Numbers of density a x^(a - 1) on [0, 1]."""
        return e.reciprocal(transformed.pareto(self.next_key(), a, size))

    def standard_gamma(self, shape: Any, size: Any = None, dtype: Any = np.float64) -> Array:
        """Gamma numbers of scale 1."""
        return continuous.gamma(self.next_key(), shape, size, dtype)

    def gamma(self, shape: Any, scale: Any = 1.0, size: Any = None) -> Array:
        """Gamma numbers."""
        return continuous.gamma(self.next_key(), shape, size, scale=scale)

    def beta(self, a: Any, b: Any, size: Any = None) -> Array:
        """Beta numbers."""
        return continuous.beta(self.next_key(), a, b, size)

    def chisquare(self, df: Any, size: Any = None) -> Array:
        """Chi-square numbers."""
        return continuous.chisquare(self.next_key(), df, size)

    def f(self, dfnum: Any, dfden: Any, size: Any = None) -> Array:
        """Numbers of the F distribution."""
        return continuous.f(self.next_key(), dfnum, dfden, size)

    def standard_t(self, df: Any, size: Any = None) -> Array:
        """Numbers of Student's t distribution."""
        return continuous.t(self.next_key(), df, size)

    def wald(self, mean: Any, scale: Any, size: Any = None) -> Array:
        """Wald (inverse Gaussian) numbers."""
        mean = continuous.positive("wald", "mean", mean, _DOUBLE)
        scale = continuous.positive("wald", "scale", scale, _DOUBLE)
        return e.multiply(scale, continuous.wald(self.next_key(), e.divide(mean, scale), size))

    # --- vectors

    def dirichlet(self, alpha: Any, size: Any = None) -> Array:
        """Points of the simplex."""
        return continuous.dirichlet(self.next_key(), alpha, size)

    def multivariate_normal(
        self,
        mean: Any,
        cov: Any,
        size: Any = None,
        check_valid: str = "warn",
        tol: float = 1e-8,
        *,
        method: str = "svd",
    ) -> Array:
        """Normal vectors; `size` is the shape without the last axis. The covariance is not checked."""
        return multivariate.multivariate_normal(self.next_key(), mean, cov, size, method=method)

    def multinomial(self, n: Any, pvals: Any, size: Any = None) -> Array:
        """Counts of outcomes; `size` is the shape without the last axis."""
        if size is not None:
            size = (*((size,) if isinstance(size, (int, np.integer)) else size), shape_of(operand(pvals))[-1])
        return discrete.multinomial(self.next_key(), n, pvals, size)

    # --- counts

    def poisson(self, lam: Any = 1.0, size: Any = None) -> Array:
        """Poisson counts."""
        return discrete.poisson(self.next_key(), lam, size)

    def binomial(self, n: Any, p: Any, size: Any = None) -> Array:
        """Numbers of successes."""
        return discrete.binomial(self.next_key(), n, p, size)

    def geometric(self, p: Any, size: Any = None) -> Array:
        """Numbers of trials up to the first success."""
        return discrete.geometric(self.next_key(), p, size)

    # --- choices and orders

    def choice(
        self, a: Any, size: Any = None, replace: bool = True, p: Any = None, axis: int = 0, shuffle: bool = True
    ) -> Array:
        """Elements of an array along an axis, or of range(a). The order is always random."""
        return discrete.choice(self.next_key(), a, () if size is None else size, replace, p, axis)

    def permutation(self, x: Any, axis: int = 0) -> Array:
        """x in random order along an axis, or range(x) for an integer."""
        return discrete.permutation(self.next_key(), x, axis)

    def permuted(self, x: Any, *, axis: int | None = None) -> Array:
        """x with every vector along an axis in an order of its own; in one random order of all elements for None."""
        x = operand(x)
        if axis is not None:
            return discrete.permutation(self.next_key(), x, axis, independent=True)
        shape = shape_of(x)
        return discrete.permutation(self.next_key(), x.reshape(-1)).reshape(shape)
