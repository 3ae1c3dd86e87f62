"""Random numbers that are functions of keys, and a Generator with NumPy's methods.

Every draw takes a key; the same key gives the same numbers, on every array backend, mapped or not. Samples
differentiate in the parameters of their distribution where they move with them.

>>> import numpy as np, func
>>> keys = func.random.split(func.random.key(0), 3)
>>> func.vmap(lambda key: func.random.normal(key, (2,)))(keys).shape
(3, 2)
>>> func.grad(lambda rate: func.random.gamma(keys[0], 3.0) / rate)(2.0) < 0
np.True_
"""

# fmt: off
from func.random.continuous import (
    beta, chisquare, dirichlet, double_sided_maxwell, f, gamma, generalized_normal, loggamma, maxwell, t, wald,
)
from func.random.discrete import (
    bernoulli, binomial, categorical, choice, geometric, multinomial, permutation, poisson, rademacher, randint,
)
from func.random.generator import Generator, RandomnessError, default_rng
from func.random.keys import bits, fold_in, key, split
from func.random.multivariate import ball, multivariate_normal, orthogonal
from func.random.transformed import (
    cauchy, exponential, gumbel, laplace, logistic, lognormal, normal, pareto, rayleigh, triangular, truncated_normal,
    uniform, weibull_min,
)

__all__ = [
    "Generator", "RandomnessError", "ball", "bernoulli", "beta", "binomial", "bits", "categorical", "cauchy",
    "chisquare", "choice", "default_rng", "dirichlet", "double_sided_maxwell", "exponential", "f", "fold_in", "gamma",
    "generalized_normal", "geometric", "gumbel", "key", "laplace", "loggamma", "logistic", "lognormal", "maxwell",
    "multinomial", "multivariate_normal", "normal", "orthogonal", "pareto", "permutation", "poisson", "rademacher",
    "randint", "rayleigh", "split", "t", "triangular", "truncated_normal", "uniform", "wald", "weibull_min",
]
# fmt: on
