"""Poisson and binomial variates: by inversion where few are expected, by transformed rejection elsewhere.

Source: W. Hörmann (1993), The transformed rejection method for generating Poisson random variables (PTRS);
W. Hörmann (1993), The generation of binomial random variates (BTRS).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from func.backends import scipy_of
from func.interpreters.core import Array, Aval, shape_of
from func.interpreters.primitives.kinds import NonDifferentiable, materialize, nondifferentiable
from func.interpreters.primitives.random_bits import Trials, shaped

_FEW = 10.0
"""Below this mean variates are found by adding up probabilities."""
_LIMIT = 400
"""Counts that a mean below _FEW never reaches."""


def _flat(xp: Any, x: Array) -> Array:
    return xp.reshape(xp.asarray(x), (-1,)).astype(np.float64)


def _inverted(xp: Any, unit: Array, first: Array, ratio: Any) -> Array:
    """The smallest k whose probabilities 0 … k add up to more than `unit`; those of k follow by `ratio(k, active)`."""
    count = xp.zeros(unit.shape)
    places = xp.arange(unit.shape[0])
    probability, total = first, first
    for k in range(1, _LIMIT):
        beyond = xp.flatnonzero(unit[places] >= total)
        if not beyond.shape[0]:
            break
        places = places[beyond]
        probability = probability[beyond] * ratio(k, places)
        total = total[beyond] + probability
        count[places[probability > 0]] = k
    return count


def _poisson_impl(xp: Any, key: Array, lam: Array, *, dtype: Any) -> Array:
    trials = Trials(xp, key, shape_of(lam))
    mean = _flat(xp, lam)
    out = xp.zeros(trials.size)
    few = xp.flatnonzero(mean < _FEW)
    small = mean[few]
    out[few] = _inverted(xp, trials.units(0, few), xp.exp(-small), lambda k, places: small[places] / k)
    gammaln = scipy_of(xp, "special").gammaln

    def attempt(trial: int, places: Array) -> tuple[Array, Array]:
        m = mean[places]
        b = 0.931 + 2.53 * xp.sqrt(m)
        a = -0.059 + 0.02483 * b
        u = trials.units(2 * trial, places) - 0.5
        v = trials.units(2 * trial + 1, places)
        edge = 0.5 - xp.absolute(u)
        k = xp.floor((2 * a / edge + b) * u + m + 0.43)
        safe = xp.maximum(k, 0.0)
        scale = xp.log(v * (1.1239 + 1.1328 / (b - 3.4)) / (a / (edge * edge) + b))
        exact = scale <= safe * xp.log(m) - m - gammaln(safe + 1)
        inner = (edge >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2))
        return k, inner | (exact & (k >= 0) & ((edge >= 0.013) | (v <= edge)))

    trials.until_accepted(attempt, xp.flatnonzero(mean >= _FEW), out)
    return shaped(xp, out.astype(dtype), shape_of(lam))


random_poisson: NonDifferentiable = nondifferentiable(
    "random_poisson",
    _poisson_impl,
    aval=lambda key, lam, *, dtype: Aval(lam.shape, dtype),
    batch=lambda size, batched, args, params: random_poisson(*materialize(size, batched, args), **params),
)
"""Poisson variates: keys (…, 2) and means (…, *shape)."""


def _binomial_impl(xp: Any, key: Array, n: Array, p: Array, *, dtype: Any) -> Array:
    """The rarer of success and failure is counted."""
    trials = Trials(xp, key, shape_of(n))
    total, chance = _flat(xp, n), _flat(xp, p)
    rare = xp.minimum(chance, 1 - chance)
    mean = total * rare
    out = xp.zeros(trials.size)
    few = xp.flatnonzero(mean < _FEW)
    odds, all_few = rare[few] / (1 - rare[few]), total[few]
    first = xp.exp(all_few * xp.log1p(-rare[few]))
    out[few] = _inverted(
        xp, trials.units(0, few), first, lambda k, places: xp.maximum(all_few[places] - k + 1, 0.0) / k * odds[places]
    )
    gammaln = scipy_of(xp, "special").gammaln

    def attempt(trial: int, places: Array) -> tuple[Array, Array]:
        count, q = total[places], rare[places]
        deviation = xp.sqrt(count * q * (1 - q))
        b = 1.15 + 2.53 * deviation
        a = -0.0873 + 0.0248 * b + 0.01 * q
        u = trials.units(2 * trial, places) - 0.5
        v = trials.units(2 * trial + 1, places)
        edge = 0.5 - xp.absolute(u)
        k = xp.floor((2 * a / edge + b) * u + count * q + 0.5)
        inside = (k >= 0) & (k <= count)
        safe = xp.minimum(xp.maximum(k, 0.0), count)
        mode = xp.floor((count + 1) * q)
        bound = gammaln(mode + 1) + gammaln(count - mode + 1) - gammaln(safe + 1) - gammaln(count - safe + 1)
        bound = bound + (safe - mode) * xp.log(q / (1 - q))
        scale = xp.log(v * (2.83 + 5.1 / b) * deviation / (a / (edge * edge) + b))
        return k, inside & (((edge >= 0.07) & (v <= 0.92 - 4.2 / b)) | (scale <= bound))

    trials.until_accepted(attempt, xp.flatnonzero(mean >= _FEW), out)
    return shaped(xp, xp.where(chance > 0.5, total - out, out).astype(dtype), shape_of(n))


random_binomial: NonDifferentiable = nondifferentiable(
    "random_binomial",
    _binomial_impl,
    aval=lambda key, n, p, *, dtype: Aval(n.shape, dtype),
    batch=lambda size, batched, args, params: random_binomial(*materialize(size, batched, args), **params),
)
"""Binomial variates: keys (…, 2), numbers of trials and probabilities (…, *shape)."""
