"""Random samples as functions of keys, and a Generator with NumPy's methods.

Every function takes a key; the same key gives the same samples on every array backend, under vmap or not. Samples
from continuous distributions are differentiable in the parameters.

>>> import numpy as np, func
>>> keys = func.random.split(func.random.key(0), 3)
>>> func.vmap(lambda key: func.random.normal(key, (2,)))(keys).shape
(3, 2)
>>> func.grad(lambda rate: func.random.gamma(keys[0], 3.0) / rate)(2.0) < 0
np.True_
"""

# fmt: off
from func.random.continuous import (
    beta, cauchy, chisquare, dirichlet, double_sided_maxwell, exponential, f, gamma, generalized_normal, gumbel,
    laplace, loggamma, logistic, lognormal, maxwell, normal, pareto, rayleigh, t, triangular, truncated_normal, uniform,
    wald, weibull_min,
)
from func.random.discrete import (
    bernoulli, binomial, categorical, choice, geometric, multinomial, permutation, poisson, rademacher, randint,
)
from func.random.generator import Generator, RandomnessError, default_rng
from func.random.keys import bits, fold_in, key, split
from func.random.multivariate import ball, multivariate_normal, orthogonal
from func.interpreters.host.display import public_names as _public_names
from func.interpreters.host.public_functions import without_engine_frames as _without_engine_frames
import importlib as _importlib

__all__ = [
    "Generator", "RandomnessError", "ball", "bernoulli", "beta", "binomial", "bits", "categorical", "cauchy",
    "chisquare", "choice", "default_rng", "dirichlet", "double_sided_maxwell", "exponential", "f", "fold_in", "gamma",
    "generalized_normal", "geometric", "gumbel", "key", "laplace", "loggamma", "logistic", "lognormal", "maxwell",
    "multinomial", "multivariate_normal", "normal", "orthogonal", "pareto", "permutation", "poisson", "rademacher",
    "randint", "rayleigh", "split", "t", "triangular", "truncated_normal", "uniform", "wald", "weibull_min",
]
# fmt: on


@_without_engine_frames
def __getattr__(name: str) -> object:
    """Suggest a name for a missing one."""
    if name.startswith("_"):
        raise AttributeError(f"module 'func.random' has no attribute {name!r}")
    other_names = _importlib.import_module("func.other_names")
    raise other_names.no_name("func.random", name, __all__, other_names.IN_RANDOM)


def __dir__() -> list[str]:
    return _public_names(globals())
