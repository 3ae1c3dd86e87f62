"""Random words from keys: a counter-based generator, whose element i is a function of (key, i) alone.

Keys are uint32 arrays whose last axis has length two; all axes before it are a batch, so that mapping a draw over
keys is the same computation on more keys. The counter is 64 bits wide and its two highest bits tell apart what a key
is used for: 00 draws, 01 folding in a number, 10 splitting.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func.backends.support import random
from func.interpreters.core import Array, Aval, NonDifferentiable, Params, Shape, materialize, nondifferentiable
from func.interpreters.primitives import costs

random_key: NonDifferentiable = nondifferentiable(
    "random_key",
    random.random_key,
    aval=lambda seed: Aval((*seed.shape, 2), np.uint32),
    batch=lambda size, batched, args, params: random_key(*args),
    cost=100,
)
"""The key of an integer seed: its 64 bits."""


random_split: NonDifferentiable = nondifferentiable(
    "random_split",
    random.random_split,
    aval=lambda key, *, num: Aval((*key.shape[:-1], num, 2), np.uint32),
    batch=lambda size, batched, args, params: random_split(*args, **params),
    cost=100,
)
"""Keys (…, num, 2) made of keys (…, 2)."""


random_fold_in: NonDifferentiable = nondifferentiable(
    "random_fold_in",
    random.random_fold_in,
    aval=lambda key, data: Aval(key.shape, np.uint32),
    batch=lambda size, batched, args, params: random_fold_in(*materialize(size, batched, args)),
    cost=100,
)
"""Keys (…, 2) made of keys (…, 2) and integers (…), which count modulo 2^62."""


def _drawn(name: str, impl: Callable[..., Any], cost: float) -> NonDifferentiable:
    """A primitive (key, *, shape, dtype, …) that maps keys (…, 2) to an output (…, *shape)."""

    def aval(key: Aval, *, shape: Shape, dtype: Any, **params: Any) -> Aval:
        return Aval((*key.shape[:-1], *shape), dtype)

    def batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
        return primitive(args[0], **params)

    primitive = nondifferentiable(name, impl, aval=aval, batch=batch, cost=cost)
    return primitive


random_bits = _drawn("random_bits", random.random_bits, 100)
"""Uniform unsigned integers of 8, 16, 32 or 64 bits."""
random_unit = _drawn("random_unit", random.random_unit, 100)
"""Uniform numbers in [0, 1), or in (0, 1) where `inside`."""
random_normal = _drawn("random_normal", random.random_normal, costs.SPECIAL)
"""Standard normal numbers, by the inverse distribution function."""


def _integers_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
    return random_integers(*materialize(size, batched, args), **params)


random_integers: NonDifferentiable = nondifferentiable(
    "random_integers",
    random.random_integers,
    aval=lambda key, low, last, *, dtype: Aval(low.shape, dtype),
    batch=_integers_batch,
    cost=costs.SPECIAL,
)
"""Integers from low to last, both included: keys (…, 2) and bounds (…, *shape) of one shape."""
