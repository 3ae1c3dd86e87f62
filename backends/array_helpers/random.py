"""Random words and variates, and methods of SciPy's distributions, that generated source calls by name.

Keys are uint32 arrays (…, 2). The counter is 64 bits wide, and its two highest bits distinguish the uses of a key: 00
draws, 01 folding in a number, 10 splitting.
"""

from __future__ import annotations

import math
from typing import Any

import numpy

from func.backends.array_helpers.arrays import scipy_of


def threefry(xp: Any, k0: Any, k1: Any, x0: Any, x1: Any) -> tuple[Any, Any]:
    """Threefry-2x32 with 20 rounds: uint32 arrays (of at least one axis) of key and counter words, which broadcast.

    Source: J. Salmon, M. Moraes, R. Dror, D. Shaw (2011), Parallel random numbers: as easy as 1, 2, 3, section 4.2.
    """
    rotations = ((13, 15, 26, 6), (17, 29, 16, 24))
    keys = (k0, k1, k0 ^ k1 ^ 0x1BD11BDA)
    x0, x1 = x0 + k0, x1 + k1
    for group in range(5):
        for rotation in rotations[group % 2]:
            x0 = x0 + x1
            x1 = (xp.left_shift(x1, rotation) | xp.right_shift(x1, 32 - rotation)) ^ x0
        x0 = x0 + keys[(group + 1) % 3]
        x1 = x1 + (keys[(group + 2) % 3] + (group + 1))
    return x0, x1


def word_pairs(xp: Any, key: Any, count: int, domain: int = 0) -> tuple[Any, Any]:
    """Both words of the counters 0 … count - 1 under keys of shape (streams, 2), each of shape (streams, count).

    NumPy encrypts a block of counters at a time, whose words stay in the cache for all rounds.
    """
    block = 1 << 13
    streams = key.shape[0]
    if xp is not numpy or streams * count <= block:
        return encrypted(xp, key, 0, count, domain)
    first, second = numpy.empty((2, streams, count), numpy.uint32)
    many = max(1, block // count)
    for stream in range(0, streams, many):
        part = key[stream : stream + many]
        for start in range(0, count, block):
            stop = min(start + block, count)
            here = (slice(stream, stream + many), slice(start, stop))
            first[here], second[here] = encrypted(numpy, part, start, stop, domain)
    return first, second


def encrypted(xp: Any, key: Any, start: int, stop: int, domain: int) -> tuple[Any, Any]:
    """Both words of a range of counters."""
    low = xp.arange(start, stop, dtype=numpy.uint64)
    high = xp.right_shift(low, 32).astype(numpy.uint32) | domain
    return threefry(xp, key[:, 0:1], key[:, 1:2], high, low.astype(numpy.uint32))


def joined(xp: Any, high: Any, low: Any) -> Any:
    """Two uint32 words as one uint64 word."""
    return xp.left_shift(high.astype(numpy.uint64), 32) | low


def open_unit(xp: Any, words: Any) -> Any:
    """Words of 64 random bits as float64 in (0, 1), at the middles of 2^52 cells."""
    return (xp.right_shift(words, 12).astype(numpy.float64) + 0.5) * 2.0**-52


def streams_of(xp: Any, key: Any) -> tuple[tuple[int, ...], Any]:
    """The batch shape of keys, and the keys as (streams, 2)."""
    batch = key.shape[:-1]
    return batch, xp.reshape(key, (math.prod(batch), 2))


def shaped(xp: Any, flat: Any, shape: tuple[int, ...]) -> Any:
    """An array in its shape; NumPy's single numbers are scalars, as its functions return them."""
    out = xp.reshape(flat, shape)
    return out[()] if shape == () and xp is numpy else out


def random_key(xp: Any, seed: Any) -> Any:
    """The key of an integer seed: its 64 bits."""
    words = xp.asarray(seed).astype(numpy.uint64)[..., None]
    return xp.concatenate([xp.right_shift(words, 32).astype(numpy.uint32), words.astype(numpy.uint32)], -1)


def random_split(xp: Any, key: Any, *, num: int) -> Any:
    """Keys (…, num, 2) split from keys (…, 2)."""
    batch, keys = streams_of(xp, key)
    return xp.reshape(xp.stack(word_pairs(xp, keys, num, 2 << 30), -1), (*batch, num, 2))


def random_fold_in(xp: Any, key: Any, data: Any) -> Any:
    """Keys (…, 2) from keys (…, 2) and integers (…), which count modulo 2^62."""
    batch, keys = streams_of(xp, key)
    fold = 1 << 30
    words = xp.reshape(xp.asarray(data).astype(numpy.uint64), (len(keys), 1))
    high = (xp.right_shift(words, 32).astype(numpy.uint32) & (fold - 1)) | fold
    both = threefry(xp, keys[:, 0:1], keys[:, 1:2], high, words.astype(numpy.uint32))
    return xp.reshape(xp.concatenate(both, -1), (*batch, 2))


def random_words(xp: Any, keys: Any, count: int, width: int) -> Any:
    """Words of 32 or 64 bits, (streams, count); a block of the cipher gives two of the narrow ones."""
    if width == 64:
        return joined(xp, *word_pairs(xp, keys, count))
    pairs = xp.stack(word_pairs(xp, keys, (count + 1) // 2), -1)
    return xp.reshape(pairs, (len(keys), -1 if len(keys) and count else 0))[:, :count]


def unit_words(xp: Any, keys: Any, count: int, dtype: Any, inside: bool) -> Any:
    """Numbers in [0, 1), or in (0, 1) where `inside`; of a width of which every number is exact."""
    mantissa = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}
    wide = numpy.dtype(numpy.float64 if dtype == numpy.float64 else numpy.float32)
    width = 8 * wide.itemsize
    bits = mantissa[dtype.name] - inside
    numbers = xp.right_shift(random_words(xp, keys, count, width), width - bits).astype(wide)
    if inside:
        numbers = numbers + wide.type(0.5)
    return numbers * wide.type(2.0**-bits)


def random_bits(xp: Any, key: Any, *, shape: tuple[int, ...], dtype: Any) -> Any:
    """Uniform unsigned integers of 8, 16, 32 or 64 bits."""
    batch, keys = streams_of(xp, key)
    words = random_words(xp, keys, math.prod(shape), 64 if dtype.itemsize == 8 else 32)
    return shaped(xp, words.astype(dtype), (*batch, *shape))


def random_unit(xp: Any, key: Any, *, shape: tuple[int, ...], dtype: Any, inside: bool) -> Any:
    """Uniform numbers in [0, 1), or in (0, 1) where `inside`."""
    batch, keys = streams_of(xp, key)
    return shaped(xp, unit_words(xp, keys, math.prod(shape), dtype, inside).astype(dtype), (*batch, *shape))


def random_normal(xp: Any, key: Any, *, shape: tuple[int, ...], dtype: Any) -> Any:
    """Standard normal numbers, by the inverse distribution function."""
    batch, keys = streams_of(xp, key)
    unit = unit_words(xp, keys, math.prod(shape), dtype, True)
    return shaped(xp, scipy_of(xp, "special").ndtri(unit).astype(dtype), (*batch, *shape))


class Trials:
    """The elements of arrays (…, *shape) under keys (…, 2), drawn repeatedly until each is accepted.

    Trial r of element i of a stream uses the counters (stride · r + j, i): it depends on the stream's key and i alone.
    """

    def __init__(self, xp: Any, key: Any, shape: tuple[int, ...]) -> None:
        batch, keys = streams_of(xp, key)
        streams, count = len(keys), math.prod(shape[len(batch) :])
        self.xp = xp
        self.size = streams * count
        self.k0 = xp.repeat(keys[:, 0], count)
        self.k1 = xp.repeat(keys[:, 1], count)
        self.number = xp.tile(xp.arange(count).astype(numpy.uint32), streams)

    def words(self, draw: int, places: Any) -> Any:
        """64 random bits for each of the elements at these places, different for every number `draw`."""
        number = self.number[places]
        high = self.xp.full(number.shape, draw, numpy.uint32)
        return joined(self.xp, *threefry(self.xp, self.k0[places], self.k1[places], high, number))

    def units(self, draw: int, places: Any) -> Any:
        """Numbers in (0, 1)."""
        return open_unit(self.xp, self.words(draw, places))

    def until_accepted(self, attempt: Any, places: Any, out: Any) -> None:
        """Fill `out` at the places; `attempt(trial, places)` gives values and which of them are accepted."""
        trial = 0
        while places.shape[0]:
            values, accepted = attempt(trial, places)
            out[places[accepted]] = values[accepted]
            places = places[~accepted]
            trial += 1


def flat_doubles(xp: Any, x: Any) -> Any:
    """An array as a vector in double precision."""
    return xp.reshape(xp.asarray(x), (-1,)).astype(numpy.float64)


def random_integers(xp: Any, key: Any, low: Any, last: Any, *, dtype: Any) -> Any:
    """Words below the largest multiple of the number of outcomes, reduced by it: every outcome is equally likely."""
    low = xp.asarray(low)
    shape = low.shape
    trials = Trials(xp, key, shape)
    start = xp.reshape(low, (-1,)).astype(numpy.uint64)
    gap = xp.reshape(xp.asarray(last), (-1,)).astype(numpy.uint64) - start
    whole = gap == numpy.uint64(2**64 - 1)
    span = xp.where(whole, numpy.uint64(1), gap + numpy.uint64(1))
    surplus = (~span + numpy.uint64(1)) % span  # 2^64 modulo span
    out = xp.zeros(trials.size, numpy.uint64)

    def attempt(trial: int, places: Any) -> tuple[Any, Any]:
        words = trials.words(trial, places)
        values = xp.where(whole[places], words, words % span[places])
        return values, whole[places] | (words >= surplus[places])

    trials.until_accepted(attempt, xp.arange(trials.size), out)
    return shaped(xp, (start + out).astype(dtype), shape)


def counts_by_inversion(xp: Any, unit: Any, first: Any, ratio: Any) -> Any:
    """The smallest k whose probabilities 0 … k add up to more than `unit`; those of k follow by `ratio(k, active)`.

    The mean is below 10, so that k never reaches 400.
    """
    count = xp.zeros(unit.shape)
    places = xp.arange(unit.shape[0])
    probability, total = first, first
    for k in range(1, 400):
        beyond = xp.flatnonzero(unit[places] >= total)
        if not beyond.shape[0]:
            break
        places = places[beyond]
        probability = probability[beyond] * ratio(k, places)
        total = total[beyond] + probability
        count[places[probability > 0]] = k
    return count


def random_poisson(xp: Any, key: Any, lam: Any, *, dtype: Any) -> Any:
    """Poisson variates: by inversion below a mean of 10, by transformed rejection elsewhere.

    Source: W. Hörmann (1993), The transformed rejection method for generating Poisson random variables (PTRS).
    """
    lam = xp.asarray(lam)
    trials = Trials(xp, key, lam.shape)
    mean = flat_doubles(xp, lam)
    out = xp.zeros(trials.size)
    few = xp.flatnonzero(mean < 10.0)
    small = mean[few]
    out[few] = counts_by_inversion(xp, trials.units(0, few), xp.exp(-small), lambda k, places: small[places] / k)
    gammaln = scipy_of(xp, "special").gammaln

    def attempt(trial: int, places: Any) -> tuple[Any, Any]:
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

    trials.until_accepted(attempt, xp.flatnonzero(mean >= 10.0), out)
    return shaped(xp, out.astype(dtype), lam.shape)


def random_binomial(xp: Any, key: Any, n: Any, p: Any, *, dtype: Any) -> Any:
    """Binomial variates, by the rarer of success and failure.

    Source: W. Hörmann (1993), The generation of binomial random variates (BTRS).
    """
    n = xp.asarray(n)
    trials = Trials(xp, key, n.shape)
    total, chance = flat_doubles(xp, n), flat_doubles(xp, p)
    rare = xp.minimum(chance, 1 - chance)
    mean = total * rare
    out = xp.zeros(trials.size)
    few = xp.flatnonzero(mean < 10.0)
    odds, all_few = rare[few] / (1 - rare[few]), total[few]
    first = xp.exp(all_few * xp.log1p(-rare[few]))

    def ratio(k: int, places: Any) -> Any:
        return xp.maximum(all_few[places] - k + 1, 0.0) / k * odds[places]

    out[few] = counts_by_inversion(xp, trials.units(0, few), first, ratio)
    gammaln = scipy_of(xp, "special").gammaln

    def attempt(trial: int, places: Any) -> tuple[Any, Any]:
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

    trials.until_accepted(attempt, xp.flatnonzero(mean >= 10.0), out)
    return shaped(xp, xp.where(chance > 0.5, total - out, out).astype(dtype), n.shape)


CUSTOM: dict[str, Any] = {}
"""Distributions that are not attributes of scipy.stats, by their names in programs."""


def distribution_of(name: str) -> Any:
    """The distribution of a name: SciPy's, or one that this process knows."""
    import scipy.stats

    return CUSTOM[name] if " at " in name else getattr(scipy.stats, name)


def distribution_value(xp: Any, *args: Any, distribution: str, method: str) -> Any:
    """SciPy's value of a method at arrays that broadcast, computed on the host; private methods take one axis."""
    if xp is not numpy:
        raise TypeError(f"scipy.stats.{distribution} computes on the host; bring the arrays there with .get()")
    dist = distribution_of(distribution)
    shape = numpy.broadcast_shapes(*[numpy.shape(x) for x in args])
    flat = [numpy.broadcast_to(x, shape).ravel().astype(float) for x in args]
    if not flat or not flat[0].size:
        return numpy.zeros(shape)
    with numpy.errstate(all="ignore"):
        if type(dist).__name__ == "poisson_binom_gen":  # one parameter, with a separate axis
            flat = [*flat[:1], numpy.stack(flat[1:], axis=-1)]
        if method in ("pdf", "pmf", "cdf", "sf", "ppf", "isf"):
            out = getattr(dist, method)(*flat)
        elif method == "entropy":
            out = dist.vecentropy(*flat)
        elif method.startswith("munp"):
            out = dist._munp(int(method[4:]), *flat)
        else:
            options = {"moments": "mvsk"} if dist._stats_has_moments else {}
            out = dist._stats(*flat, **options)[int(method[5:])]
    return numpy.array(numpy.broadcast_to(numpy.asarray(out, float), flat[0].shape)).reshape(shape)[()]
