"""Variates of distributions with parameters: gamma, Poisson and binomial, each of keys (…, 2) and parameters.

Gamma variates are on a logarithmic scale and have a derivative by the shape parameter, to any order. A sample moves
with its parameter so that its distribution function keeps its value (implicit reparameterisation), which gives
dy/da = -(∂F/∂a) / (∂F/∂y).
Source: M. Figurnov, S. Mohamed, A. Mnih (2018), Implicit reparameterization gradients.
Poisson and binomial variates are integers and have no derivative.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from func.backends.array_helpers import gamma, random
from func.interpreters import core
from func.interpreters.core import ZERO, Array, Aval, NonDifferentiable, Primitive
from func.interpreters.core.parameters import ORDER
from func.interpreters.primitives import costs
from func.interpreters.primitives.elementwise.builder import multiply
from func.interpreters.primitives.elementwise.table import exp, subtract
from func.interpreters.primitives.random.bits import INTEGERS, are_drawn_by
from func.interpreters.primitives.structural.shapes import align_ranks


def _polygamma_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, order: int) -> tuple[Array, Any]:
    (a,), (da,) = primals, tangents
    return polygamma(a, order=order), multiply(polygamma(a, order=order + 1), da)


polygamma: Primitive = core.general(
    "random_polygamma",
    gamma.random_polygamma,
    aval=lambda a, *, order: a,
    parameters={"order": ORDER},
    batch=lambda size, batched, args, params: polygamma(*args, **params),
    jvp=_polygamma_jvp,
    cost=costs.SPECIAL,
)


def _slope_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, order: int) -> tuple[Array, Any]:
    """By a it is the slope of the next order; by y it follows from the density log q = a y - e^y - ln Γ(a):
    ∂D_k/∂y = ψ^(k)(a) - [k = 0] y - (a - e^y) D_k - k D_(k-1).
    """
    (a, y), (da, dy) = primals, tangents
    out = slope(a, y, order=order)
    tangent: Any = ZERO
    if da is not ZERO:
        tangent = multiply(slope(a, y, order=order + 1), da)
    if dy is not ZERO:
        partial = subtract(polygamma(a, order=order), multiply(subtract(a, exp(y)), out))
        if order == 0:
            partial = subtract(partial, y)
        else:
            partial = subtract(partial, multiply(slope(a, y, order=order - 1), order))
        tangent = core.add_tangents(tangent, multiply(partial, dy))
    return out, tangent


slope: Primitive = core.general(
    "random_gamma_slope",
    gamma.random_gamma_slope,
    aval=lambda a, y, *, order: Aval(np.broadcast_shapes(a.shape, y.shape), np.result_type(a.dtype, y.dtype)),
    parameters={"order": ORDER},
    batch=lambda size, batched, args, params: slope(*align_ranks(size, batched, args), **params),
    jvp=_slope_jvp,
    cost=costs.SPECIAL,
)
"""The derivative of order k + 1 by a at a fixed quantile of the logarithm y of a gamma variate; k-th by a alone."""


def _loggamma_jvp(primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[Array, Any]:
    (key, a), (_, da) = primals, tangents
    out = loggamma(key, a)
    return out, ZERO if da is ZERO else multiply(slope(a, out, order=0), da)


loggamma: Primitive = core.general(
    "random_loggamma",
    gamma.random_loggamma,
    aval=lambda key, a: a,
    fits=are_drawn_by,
    batch=lambda size, batched, args, params: loggamma(*core.materialize(size, batched, args)),
    jvp=_loggamma_jvp,
    cost=costs.SPECIAL,
)
"""Logarithms of gamma variates of unit scale: keys (…, 2) and shape parameters (…, *shape); NaN where a <= 0."""


random_poisson: NonDifferentiable = core.nondifferentiable(
    "random_poisson",
    random.random_poisson,
    aval=lambda key, lam, *, dtype: Aval(lam.shape, dtype),
    parameters={"dtype": INTEGERS},
    fits=lambda key, lam, **params: are_drawn_by(key, lam),
    batch=lambda size, batched, args, params: random_poisson(*core.materialize(size, batched, args), **params),
    cost=costs.SPECIAL,
)
"""Poisson variates: keys (…, 2) and means (…, *shape)."""


random_binomial: NonDifferentiable = core.nondifferentiable(
    "random_binomial",
    random.random_binomial,
    aval=lambda key, n, p, *, dtype: Aval(n.shape, dtype),
    parameters={"dtype": INTEGERS},
    fits=lambda key, n, p, **params: are_drawn_by(key, n, p),
    batch=lambda size, batched, args, params: random_binomial(*core.materialize(size, batched, args), **params),
    cost=costs.SPECIAL,
)
"""Binomial variates: keys (…, 2), numbers of trials and probabilities (…, *shape)."""
