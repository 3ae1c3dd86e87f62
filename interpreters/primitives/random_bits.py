"""Random words from keys: a counter-based generator, whose element i is a function of (key, i) alone.

Keys are uint32 arrays whose last axis has length two; all axes before it are a batch, so that mapping a draw over
keys is the same computation on more keys. The counter is 64 bits wide and its two highest bits tell apart what a key
is used for: 00 draws, 01 folding in a number, 10 splitting.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func.backends import scipy_of
from func.interpreters.core import Array, Aval, Params, Shape, shape_of
from func.interpreters.primitives.kinds import NonDifferentiable, materialize, nondifferentiable

FOLD = 1 << 30
SPLIT = 2 << 30
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_BLOCK = 1 << 13
"""How many counters NumPy encrypts at a time: their words stay in the cache for all rounds."""
_MANTISSA = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}


def threefry(xp: Any, k0: Array, k1: Array, x0: Array, x1: Array) -> tuple[Array, Array]:
    """Threefry-2x32 with 20 rounds: uint32 arrays (of at least one axis) of key and counter words, which broadcast.

    Source: J. Salmon, M. Moraes, R. Dror, D. Shaw (2011), Parallel random numbers: as easy as 1, 2, 3, section 4.2.
    """
    keys = (k0, k1, k0 ^ k1 ^ _PARITY)
    x0, x1 = x0 + k0, x1 + k1
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            x0 = x0 + x1
            x1 = (xp.left_shift(x1, rotation) | xp.right_shift(x1, 32 - rotation)) ^ x0
        x0 = x0 + keys[(group + 1) % 3]
        x1 = x1 + (keys[(group + 2) % 3] + (group + 1))
    return x0, x1


def word_pairs(xp: Any, key: Array, count: int, domain: int = 0) -> tuple[Array, Array]:
    """Both words of the counters 0 … count - 1 under keys of shape (lanes, 2), each of shape (lanes, count)."""
    lanes = key.shape[0]
    if xp is not np or lanes * count <= _BLOCK:
        return _encrypted(xp, key, 0, count, domain)
    first, second = np.empty((2, lanes, count), np.uint32)
    many = max(1, _BLOCK // count)
    for lane in range(0, lanes, many):
        part = key[lane : lane + many]
        for start in range(0, count, _BLOCK):
            stop = min(start + _BLOCK, count)
            here = (slice(lane, lane + many), slice(start, stop))
            first[here], second[here] = _encrypted(np, part, start, stop, domain)
    return first, second


def _encrypted(xp: Any, key: Array, start: int, stop: int, domain: int) -> tuple[Array, Array]:
    low = xp.arange(start, stop, dtype=np.uint64)
    high = xp.right_shift(low, 32).astype(np.uint32) | domain
    return threefry(xp, key[:, 0:1], key[:, 1:2], high, low.astype(np.uint32))


def joined(xp: Any, high: Array, low: Array) -> Array:
    """Two uint32 words as one uint64 word."""
    return xp.left_shift(high.astype(np.uint64), 32) | low


def open_unit(xp: Any, words: Array) -> Array:
    """Words of 64 random bits as float64 in (0, 1), at the middles of 2^52 cells."""
    return (xp.right_shift(words, 12).astype(np.float64) + 0.5) * 2.0**-52


def lanes_of(xp: Any, key: Array) -> tuple[Shape, Array]:
    """The batch shape of keys, and the keys as (lanes, 2)."""
    batch = shape_of(key)[:-1]
    return batch, xp.reshape(key, (math.prod(batch), 2))


def shaped(xp: Any, flat: Array, shape: Shape) -> Array:
    """An array in its shape; NumPy's single numbers are scalars, as its functions return them."""
    out = xp.reshape(flat, shape)
    return out[()] if shape == () and xp is np else out


# --- keys -------------------------------------------------------------------------------------------------------


def _key_impl(xp: Any, seed: Array) -> Array:
    words = xp.reshape(xp.asarray(seed).astype(np.uint64), (*shape_of(seed), 1))
    return xp.concatenate([xp.right_shift(words, 32).astype(np.uint32), words.astype(np.uint32)], -1)


random_key: NonDifferentiable = nondifferentiable(
    "random_key",
    _key_impl,
    aval=lambda seed: Aval((*seed.shape, 2), np.uint32),
    batch=lambda size, batched, args, params: random_key(*args),
)
"""The key of an integer seed: its 64 bits."""


def _split_impl(xp: Any, key: Array, *, num: int) -> Array:
    batch, keys = lanes_of(xp, key)
    return xp.reshape(xp.stack(word_pairs(xp, keys, num, SPLIT), -1), (*batch, num, 2))


random_split: NonDifferentiable = nondifferentiable(
    "random_split",
    _split_impl,
    aval=lambda key, *, num: Aval((*key.shape[:-1], num, 2), np.uint32),
    batch=lambda size, batched, args, params: random_split(*args, **params),
)
"""Keys (…, num, 2) made of keys (…, 2)."""


def _fold_in_impl(xp: Any, key: Array, data: Array) -> Array:
    batch, keys = lanes_of(xp, key)
    words = xp.reshape(xp.asarray(data).astype(np.uint64), (len(keys), 1))
    high = (xp.right_shift(words, 32).astype(np.uint32) & (FOLD - 1)) | FOLD
    return xp.reshape(
        xp.concatenate(threefry(xp, keys[:, 0:1], keys[:, 1:2], high, words.astype(np.uint32)), -1), (*batch, 2)
    )


random_fold_in: NonDifferentiable = nondifferentiable(
    "random_fold_in",
    _fold_in_impl,
    aval=lambda key, data: Aval(key.shape, np.uint32),
    batch=lambda size, batched, args, params: random_fold_in(*materialize(size, batched, args)),
)
"""Keys (…, 2) made of keys (…, 2) and integers (…), which count modulo 2^62."""

# --- words and numbers ------------------------------------------------------------------------------------------


def _words(xp: Any, keys: Array, count: int, width: int) -> Array:
    """Words of 32 or 64 bits, (lanes, count); a block of the cipher gives two of the narrow ones."""
    if width == 64:
        return joined(xp, *word_pairs(xp, keys, count))
    pairs = xp.stack(word_pairs(xp, keys, (count + 1) // 2), -1)
    return xp.reshape(pairs, (len(keys), -1 if len(keys) and count else 0))[:, :count]


def _drawn(name: str, impl: Callable[..., Any], dtype: Callable[..., Any] | None = None) -> NonDifferentiable:
    """A row (key, *, shape, dtype, …) that gives keys (…, 2) an output (…, *shape)."""

    def on_lanes(xp: Any, key: Array, *, shape: Shape, **params: Any) -> Array:
        batch, keys = lanes_of(xp, key)
        return shaped(xp, impl(xp, keys, math.prod(shape), **params), (*batch, *shape))

    def aval(key: Aval, *, shape: Shape, dtype: Any, **params: Any) -> Aval:
        return Aval((*key.shape[:-1], *shape), dtype)

    def batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
        return row(args[0], **params)

    row = nondifferentiable(name, on_lanes, aval=aval, batch=batch)
    return row


def _bits_impl(xp: Any, keys: Array, count: int, *, dtype: Any) -> Array:
    return _words(xp, keys, count, 64 if dtype.itemsize == 8 else 32).astype(dtype)


random_bits = _drawn("random_bits", _bits_impl)
"""Uniform unsigned integers of 8, 16, 32 or 64 bits."""


def _unit(xp: Any, keys: Array, count: int, dtype: Any, inside: bool) -> Array:
    """Numbers in [0, 1), or in (0, 1) where `inside`; of a width of which every number is exact."""
    wide = np.dtype(np.float64 if dtype == np.float64 else np.float32)
    width = 8 * wide.itemsize
    kept = _MANTISSA[dtype.name] - inside
    numbers = xp.right_shift(_words(xp, keys, count, width), width - kept).astype(wide)
    if inside:
        numbers = numbers + wide.type(0.5)
    return numbers * wide.type(2.0**-kept)


def _unit_impl(xp: Any, keys: Array, count: int, *, dtype: Any, inside: bool) -> Array:
    return _unit(xp, keys, count, dtype, inside).astype(dtype)


random_unit = _drawn("random_unit", _unit_impl)
"""Uniform numbers in [0, 1), or in (0, 1) where `inside`."""


def _normal_impl(xp: Any, keys: Array, count: int, *, dtype: Any) -> Array:
    return scipy_of(xp, "special").ndtri(_unit(xp, keys, count, dtype, True)).astype(dtype)


random_normal = _drawn("random_normal", _normal_impl)
"""Standard normal numbers, by the inverse distribution function."""

# --- draws element by element, with as many trials as each element needs ----------------------------------------


class Trials:
    """The elements of arrays (…, *shape) under keys (…, 2), drawn again and again until each is accepted.

    Trial r of element i of a lane uses the counters (stride · r + j, i): it depends on the lane's key and i alone.
    """

    def __init__(self, xp: Any, key: Array, shape: Shape) -> None:
        batch, keys = lanes_of(xp, key)
        lanes, count = len(keys), math.prod(shape[len(batch) :])
        self.xp = xp
        self.size = lanes * count
        self.k0 = xp.repeat(keys[:, 0], count)
        self.k1 = xp.repeat(keys[:, 1], count)
        self.number = xp.tile(xp.arange(count).astype(np.uint32), lanes)

    def words(self, draw: int, places: Array) -> Array:
        """64 random bits for each of the elements at these places, other ones for every number `draw`."""
        number = self.number[places]
        high = self.xp.full(number.shape, draw, np.uint32)
        return joined(self.xp, *threefry(self.xp, self.k0[places], self.k1[places], high, number))

    def units(self, draw: int, places: Array) -> Array:
        """Numbers in (0, 1)."""
        return open_unit(self.xp, self.words(draw, places))

    def until_accepted(self, attempt: Callable[[int, Array], tuple[Array, Array]], places: Array, out: Array) -> None:
        """Fill `out` at the places; `attempt(trial, places)` gives values and which of them are accepted."""
        trial = 0
        while places.shape[0]:
            values, accepted = attempt(trial, places)
            out[places[accepted]] = values[accepted]
            places = places[~accepted]
            trial += 1


def _integers_impl(xp: Any, key: Array, low: Array, last: Array, *, dtype: Any) -> Array:
    """Words below the largest multiple of the number of outcomes, reduced by it: every outcome is equally likely."""
    shape = shape_of(low)
    trials = Trials(xp, key, shape)
    start = xp.reshape(xp.asarray(low), (-1,)).astype(np.uint64)
    gap = xp.reshape(xp.asarray(last), (-1,)).astype(np.uint64) - start
    whole = gap == np.uint64(2**64 - 1)
    span = xp.where(whole, np.uint64(1), gap + np.uint64(1))
    surplus = (~span + np.uint64(1)) % span  # 2^64 modulo span
    out = xp.zeros(trials.size, np.uint64)

    def attempt(trial: int, places: Array) -> tuple[Array, Array]:
        words = trials.words(trial, places)
        values = xp.where(whole[places], words, words % span[places])
        return values, whole[places] | (words >= surplus[places])

    trials.until_accepted(attempt, xp.arange(trials.size), out)
    return shaped(xp, (start + out).astype(dtype), shape)


def _integers_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
    return random_integers(*materialize(size, batched, args), **params)


random_integers: NonDifferentiable = nondifferentiable(
    "random_integers",
    _integers_impl,
    aval=lambda key, low, last, *, dtype: Aval(low.shape, dtype),
    batch=_integers_batch,
)
"""Integers from low to last, both included: keys (…, 2) and bounds (…, *shape) of one shape."""
