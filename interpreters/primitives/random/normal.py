"""The normal distribution function and its inverse, Mills' ratio, and variates that are derived with it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from func.backends.array_helpers import gamma
from func.interpreters.core import ZERO, Array, Primitive, general, materialize
from func.interpreters.primitives import costs
from func.interpreters.primitives.elementwise.builder import add, multiply
from func.interpreters.primitives.elementwise.table import divide, exp, sqrt, subtract
from func.interpreters.primitives.random.bits import are_drawn_by
from func.interpreters.primitives.structural.shapes import same_dtype


def _mills_jvp(primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[Array, Any]:
    (z,), (dz,) = primals, tangents
    out = mills(z)
    return out, multiply(subtract(multiply(z, out), 1), dz)


mills: Primitive = general(
    "random_mills",
    gamma.random_mills,
    aval=lambda z: z,
    batch=lambda size, batched, args, params: mills(*args),
    jvp=_mills_jvp,
    cost=costs.SPECIAL,
)
"""Mills' ratio of the normal distribution: (1 - Φ(z)) / φ(z)."""


def _wald_jvp(primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[Array, Any]:
    """The derivative at a fixed quantile of F(x) = Φ((x - m) / (m √x)) + e^(2/m) Φ(-(x + m) / (m √x)):
    dx/dm = 2 x^(3/2) Mills((x + m) / (m √x)) / m².
    """
    (key, mean), (_, dm) = primals, tangents
    out = wald(key, mean)
    if dm is ZERO:
        return out, ZERO
    root = sqrt(out)
    ratio = mills(divide(add(divide(out, mean), 1), root))
    return out, multiply(divide(multiply(multiply(multiply(out, root), ratio), 2), multiply(mean, mean)), dm)


wald: Primitive = general(
    "random_wald",
    gamma.random_wald,
    aval=lambda key, mean: mean,
    fits=are_drawn_by,
    batch=lambda size, batched, args, params: wald(*materialize(size, batched, args)),
    jvp=_wald_jvp,
    cost=costs.SPECIAL,
)
"""Inverse Gaussian variates of unit scale: keys (…, 2) and means (…, *shape).

For a given key a variate jumps, as its mean moves, between the two roots of the method. Its derivative is that at a
fixed quantile, which the distribution of the variates follows.
"""


def normal_density(x: Array) -> Array:
    """The density of the standard normal distribution."""
    return multiply(exp(multiply(multiply(x, x), -0.5)), 1 / math.sqrt(2 * math.pi))


def _ndtr_jvp(primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[Array, Any]:
    (x,), (dx,) = primals, tangents
    return ndtr(x), same_dtype(multiply(normal_density(x), dx), x)


ndtr: Primitive = general(
    "random_ndtr",
    gamma.random_ndtr,
    aval=lambda x: x,
    batch=lambda size, batched, args, params: ndtr(*args),
    jvp=_ndtr_jvp,
    cost=costs.SPECIAL,
)


def _ndtri_jvp(primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[Array, Any]:
    (p,), (dp,) = primals, tangents
    out = ndtri(p)
    return out, same_dtype(multiply(divide(1, normal_density(out)), dp), p)


ndtri: Primitive = general(
    "random_ndtri",
    gamma.random_ndtri,
    aval=lambda p: p,
    batch=lambda size, batched, args, params: ndtri(*args),
    jvp=_ndtri_jvp,
    cost=costs.SPECIAL,
)
