"""Poisson and binomial variates."""

from __future__ import annotations

from func.backends import support_random
from func.interpreters.core import Aval
from func.interpreters.primitives.kinds import NonDifferentiable, materialize, nondifferentiable

random_poisson: NonDifferentiable = nondifferentiable(
    "random_poisson",
    support_random.random_poisson,
    aval=lambda key, lam, *, dtype: Aval(lam.shape, dtype),
    batch=lambda size, batched, args, params: random_poisson(*materialize(size, batched, args), **params),
)
"""Poisson variates: keys (…, 2) and means (…, *shape)."""


random_binomial: NonDifferentiable = nondifferentiable(
    "random_binomial",
    support_random.random_binomial,
    aval=lambda key, n, p, *, dtype: Aval(n.shape, dtype),
    batch=lambda size, batched, args, params: random_binomial(*materialize(size, batched, args), **params),
)
"""Binomial variates: keys (…, 2), numbers of trials and probabilities (…, *shape)."""
