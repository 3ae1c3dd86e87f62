"""Random words from keys: a counter-based generator, whose element i is a function of (key, i) alone.

Keys are uint32 arrays whose last axis has length two. All axes before it are a batch, so that a map of a draw over keys
is the same computation on more keys. The counter is 64 bits wide. Its two highest bits distinguish the uses of a key:
00 draws, 01 folding in a number, 10 splitting.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func.backends.array_helpers import random
from func.interpreters.core import Array, Aval, NonDifferentiable, Params, Shape, materialize, nondifferentiable
from func.interpreters.core.parameters import FLAG, SHAPE, Kinds, are_integers, dtype_of_kind, integer
from func.interpreters.primitives import costs

FLOATS = dtype_of_kind("fV")
INTEGERS = dtype_of_kind("iu")


def is_key(key: Aval) -> bool:
    """Whether an operand is made of keys."""
    return key.shape[-1:] == (2,) and key.dtype == np.uint32


def are_drawn_by(key: Aval, *variates: Aval, **params: Any) -> bool:
    """Whether there are a key for each entry of the batch, and parameters of one shape behind that batch."""
    batch = key.shape[:-1]
    return is_key(key) and all([x.shape[: len(batch)] == batch and x.shape == variates[0].shape for x in variates])


random_key: NonDifferentiable = nondifferentiable(
    "random_key",
    random.random_key,
    aval=lambda seed: Aval((*seed.shape, 2), np.uint32),
    fits=lambda seed: are_integers(seed),
    batch=lambda size, batched, args, params: random_key(*args),
    cost=100,
)
"""The key of an integer seed: its 64 bits."""


random_split: NonDifferentiable = nondifferentiable(
    "random_split",
    random.random_split,
    aval=lambda key, *, num: Aval((*key.shape[:-1], num, 2), np.uint32),
    parameters={"num": integer(0)},
    fits=lambda key, **params: is_key(key),
    batch=lambda size, batched, args, params: random_split(*args, **params),
    cost=100,
)
"""Keys (…, num, 2) made of keys (…, 2)."""


random_fold_in: NonDifferentiable = nondifferentiable(
    "random_fold_in",
    random.random_fold_in,
    aval=lambda key, data: Aval(key.shape, np.uint32),
    fits=lambda key, data: is_key(key) and are_integers(data) and key.shape[:-1] == data.shape,
    batch=lambda size, batched, args, params: random_fold_in(*materialize(size, batched, args)),
    cost=100,
)
"""Keys (…, 2) made of keys (…, 2) and integers (…), which count modulo 2^62."""


def _drawn(name: str, impl: Callable[..., Any], cost: float, parameters: Kinds) -> NonDifferentiable:
    """A primitive (key, *, shape, dtype, …) that maps keys (…, 2) to an output (…, *shape)."""

    def aval(key: Aval, *, shape: Shape, dtype: Any, **params: Any) -> Aval:
        return Aval((*key.shape[:-1], *shape), dtype)

    def batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
        return primitive(args[0], **params)

    primitive = nondifferentiable(
        name, impl, aval=aval, parameters=parameters, fits=lambda key, **params: is_key(key), batch=batch, cost=cost
    )
    return primitive


random_bits = _drawn("random_bits", random.random_bits, 100, {"shape": SHAPE, "dtype": dtype_of_kind("u")})
"""Uniform unsigned integers of 8, 16, 32 or 64 bits."""
random_unit = _drawn("random_unit", random.random_unit, 100, {"shape": SHAPE, "dtype": FLOATS, "inside": FLAG})
"""Uniform numbers in [0, 1), or in (0, 1) where `inside`."""
random_normal = _drawn("random_normal", random.random_normal, costs.SPECIAL, {"shape": SHAPE, "dtype": FLOATS})
"""Standard normal numbers, by the inverse distribution function."""


def _integers_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
    return random_integers(*materialize(size, batched, args), **params)


random_integers: NonDifferentiable = nondifferentiable(
    "random_integers",
    random.random_integers,
    aval=lambda key, low, last, *, dtype: Aval(low.shape, dtype),
    parameters={"dtype": INTEGERS},
    fits=lambda key, low, last, **params: are_drawn_by(key, low, last),
    batch=_integers_batch,
    cost=costs.SPECIAL,
)
"""Integers from low to last, both included: keys (…, 2) and bounds (…, *shape) of one shape."""
