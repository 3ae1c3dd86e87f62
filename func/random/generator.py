"""A stateful random generator with the methods of NumPy's, visible to func.vmap."""

from __future__ import annotations

import bisect
import operator
import secrets
import weakref
from typing import Any

import numpy as np

from func.interpreters.core import Array, Tracer, operand, shape_of
from func.interpreters.core.errors import FuncError
from func.interpreters.core.scopes import current_staging, running_vmaps
from func.interpreters.host.public_functions import without_engine_frames
from func.interpreters.host.source import at_line
from func.interpreters.primitives.elementwise import table as e
from func.interpreters.primitives.random import bits as ops
from func.interpreters.vmap import Vmap
from func.random import continuous, discrete, multivariate
from func.random.keys import check_key, keys_of
from func.random.keys import key as key_of_seed


class RandomnessError(FuncError, RuntimeError):
    """A stateful random generator was used inside func.vmap without a `randomness=` that allows it."""


_STREAM, _CHILD = 0, 1
"""Indices of the two keys of a generator: for its draws, and for the generators that it spawns."""


class Generator:
    """Random samples from a state, with the methods and signatures of NumPy's Generator.

    Inside a function mapped by func.vmap it follows `randomness=`: "error" raises RandomnessError, "same" draws the
    same samples for all batch elements, "different" independent ones. In nested vmaps each one decides
    for its own batch axis. A batch element keeps its samples when vmap runs the function again on a part of the batch,
    or on chunks of it.

    `size` is the shape of the result; None means that of the parameters. func.vmap cannot see a plain NumPy generator,
    which draws once per run of the function for the whole batch. In traced or recomputed code (func.make_program,
    func.checkpoint) use keys: a generator draws when the Python code runs.

    Args:
        seed: An integer, a key of func.random, or None for a seed from the operating system.

    Example:
        >>> import numpy as np, func
        >>> rng = func.random.Generator(0)
        >>> noisy = lambda x: x + rng.normal(size=2)
        >>> out = func.vmap(noisy, randomness="different")(np.zeros(3))
        >>> out.shape, len(np.unique(out))
        ((3, 2), 6)
    """

    @without_engine_frames
    def __init__(self, seed: Any = None) -> None:
        if seed is None:
            seed = secrets.randbits(64)
        is_key = hasattr(seed, "dtype") and shape_of(seed) == (2,)
        self._key = check_key(seed, "Generator") if is_key else key_of_seed(seed)
        self._forget()

    def _forget(self) -> None:
        self._count = 0
        self._spawned = 0
        self._numbers: weakref.WeakKeyDictionary[Any, list[int]] = weakref.WeakKeyDictionary()
        self._places: weakref.WeakKeyDictionary[Vmap, int] = weakref.WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"Generator(key={self._key!r}, draws={self._count})"

    def __getstate__(self) -> dict[str, Any]:
        return {"key": self._key, "count": self._count, "spawned": self._spawned}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._key = state["key"]
        self._forget()
        self._count, self._spawned = state["count"], state["spawned"]

    def _advance(self, levels: tuple[Vmap, ...]) -> int:
        """The unique number of this draw, in all threads.

        All runs of a mapped call use the numbers of its first run, in order, for every part of the batch. A longer run
        takes more.
        """
        if not levels:
            number = self._count  # no call between these two lines: threads change places at calls only
            self._count = number + 1
            return number
        level, outer = levels[-1], levels[:-1]
        numbers = self._numbers.setdefault(level.call, [])
        place = self._places.get(level, 0)
        self._places[level] = place + 1
        if place == len(numbers):
            numbers.append(self._advance(outer))
            return numbers[-1]
        for around in outer:
            behind = bisect.bisect_right(self._numbers[around.call], numbers[place])
            self._places[around] = max(self._places.get(around, 0), behind)
        return numbers[place]

    def next_key(self) -> Array:
        """The key of the next draw: one for its number and, under randomness="different", for the batch element.

        Raises:
            RandomnessError: A running vmap has randomness="error", or a trace of the function runs.
        """
        if (transform := current_staging()) is not None:
            raise RandomnessError(
                f"a func.random.Generator was used inside func.{transform}{at_line()}\n"
                "The program would draw the same numbers each time that it runs: pass a key of func.random as an "
                "argument, and draw by functions of keys such as func.random.normal(key, ...)."
            )
        levels = running_vmaps()
        independent = self._independent_levels(levels) if levels else []
        key = ops.random_fold_in(keys_of(self._key, 2)[_STREAM], np.asarray(self._advance(levels)))
        for level in independent:
            key = ops.random_fold_in(key, level.lift(level.elements))
        return key

    def _independent_levels(self, levels: tuple[Vmap, ...]) -> list[Vmap]:
        """The vmaps that draw independently for each batch element."""
        for level in levels:
            if level.randomness == "error":
                raise RandomnessError(
                    f"a func.random.Generator was used inside func.vmap with randomness='error'{at_line()}\n"
                    "Pass randomness='different' to draw independent numbers for each batch element or "
                    "randomness='same' to draw the same ones for all, or map keys: "
                    "func.vmap(f)(x, func.random.split(key, n))."
                )
        independent = [level for level in levels if level.randomness == "different"]
        if independent and levels[-1].randomness is None:
            raise RandomnessError(
                "a func.random.Generator was used under randomness='different' inside a function with a custom rule "
                f"or checkpoint{at_line()}\nDraw outside of that function, and pass the numbers or a key to it."
            )
        return independent

    def spawn(self, n_children: int) -> list[Generator]:
        """New generators, independent of this one and of each other."""
        parent = keys_of(self._key, 2)[_CHILD]
        count = operator.index(n_children)
        first = self._spawned  # no call between these two lines
        self._spawned = first + count
        return [Generator(ops.random_fold_in(parent, np.asarray(i))) for i in range(first, first + count)]

    def bytes(self, length: int) -> bytes:
        """Random bytes."""
        drawn = ops.random_bits(self.next_key(), shape=(operator.index(length),), dtype=np.dtype(np.uint8))
        if type(drawn) is Tracer:
            raise RandomnessError(
                f"Generator.bytes cannot draw for each batch element inside func.vmap{at_line()}\n"
                "Draw integers: rng.integers(0, 256, size=length, dtype=np.uint8)."
            )
        return np.asarray(drawn).tobytes()

    def shuffle(self, x: Any, axis: int = 0) -> None:
        """Put the elements along an axis in random order, in place."""
        if isinstance(x, list):
            order = self.permutation(len(x))
            x[:] = [x[int(i)] for i in order]
            return
        if not hasattr(x, "dtype") or not shape_of(x):
            raise TypeError(f"Generator.shuffle takes an array or a list, not {type(x).__name__}{at_line()}")
        x[...] = self.permutation(x, axis)

    def random(self, size: Any = None, dtype: Any = np.float64) -> Array:
        """Uniform samples in [0, 1)."""
        return continuous.uniform(self.next_key(), size, dtype)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Array:
        """Uniform samples in [low, high)."""
        return continuous.uniform(self.next_key(), size, minval=low, maxval=high)

    def integers(
        self, low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64, endpoint: bool = False
    ) -> Array:
        """Integers from low to high - 1 (to high with endpoint=True); from 0 to low - 1 if high is None."""
        if high is None:
            low, high = 0, low
        return discrete.randint(self.next_key(), size, low, high + 1 if endpoint else high, dtype)

    def standard_normal(self, size: Any = None, dtype: Any = np.float64) -> Array:
        """Normal samples with mean 0 and variance 1."""
        return continuous.normal(self.next_key(), size, dtype)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Array:
        """Normal samples."""
        return continuous.normal(self.next_key(), size, loc=loc, scale=scale)

    def lognormal(self, mean: Any = 0.0, sigma: Any = 1.0, size: Any = None) -> Array:
        """Log-normal samples: exponentials of normal samples."""
        return e.exp(continuous.normal(self.next_key(), size, loc=mean, scale=sigma))

    def standard_exponential(self, size: Any = None, dtype: Any = np.float64, method: str = "zig") -> Array:
        """Exponential samples with mean 1, by the inverse distribution function (ignores `method`)."""
        return continuous.exponential(self.next_key(), size, dtype)

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Array:
        """Exponential samples with mean `scale`."""
        return continuous.exponential(self.next_key(), size, scale=scale)

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Array:
        """Laplace samples."""
        return continuous.laplace(self.next_key(), size, loc=loc, scale=scale)

    def logistic(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Array:
        """Logistic samples."""
        return continuous.logistic(self.next_key(), size, loc=loc, scale=scale)

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Array:
        """Gumbel samples."""
        return continuous.gumbel(self.next_key(), size, loc=loc, scale=scale)

    def standard_cauchy(self, size: Any = None) -> Array:
        """Cauchy samples."""
        return continuous.cauchy(self.next_key(), size)

    def rayleigh(self, scale: Any = 1.0, size: Any = None) -> Array:
        """Rayleigh samples."""
        return continuous.rayleigh(self.next_key(), scale, size)

    def triangular(self, left: Any, mode: Any, right: Any, size: Any = None) -> Array:
        """Samples of a triangular density."""
        return continuous.triangular(self.next_key(), left, mode, right, size)

    def weibull(self, a: Any, size: Any = None) -> Array:
        """Weibull samples with shape parameter a."""
        return continuous.weibull_min(self.next_key(), 1.0, a, size)

    def pareto(self, a: Any, size: Any = None) -> Array:
        """Pareto II (Lomax) samples: Pareto samples minus one."""
        return e.subtract(continuous.pareto(self.next_key(), a, size), 1.0)

    def power(self, a: Any, size: Any = None) -> Array:
        """Samples of density a x^(a - 1) on [0, 1]."""
        return e.reciprocal(continuous.pareto(self.next_key(), a, size))

    def standard_gamma(self, shape: Any, size: Any = None, dtype: Any = np.float64) -> Array:
        """Gamma samples with scale 1."""
        return continuous.gamma(self.next_key(), shape, size, dtype)

    def gamma(self, shape: Any, scale: Any = 1.0, size: Any = None) -> Array:
        """Gamma samples."""
        return continuous.gamma(self.next_key(), shape, size, scale=scale)

    def beta(self, a: Any, b: Any, size: Any = None) -> Array:
        """Beta samples."""
        return continuous.beta(self.next_key(), a, b, size)

    def chisquare(self, df: Any, size: Any = None) -> Array:
        """Chi-square samples."""
        return continuous.chisquare(self.next_key(), df, size)

    def f(self, dfnum: Any, dfden: Any, size: Any = None) -> Array:
        """Samples of the F distribution."""
        return continuous.f(self.next_key(), dfnum, dfden, size)

    def standard_t(self, df: Any, size: Any = None) -> Array:
        """Samples of Student's t distribution."""
        return continuous.t(self.next_key(), df, size)

    def wald(self, mean: Any, scale: Any, size: Any = None) -> Array:
        """Wald (inverse Gaussian) samples."""
        mean = continuous.positive("wald", "mean", mean, np.dtype(np.float64))
        scale = continuous.positive("wald", "scale", scale, np.dtype(np.float64))
        return e.multiply(scale, continuous.wald(self.next_key(), e.divide(mean, scale), size))

    def dirichlet(self, alpha: Any, size: Any = None) -> Array:
        """Dirichlet samples: points of the simplex."""
        return continuous.dirichlet(self.next_key(), alpha, size)

    def multivariate_normal(
        self,
        mean: Any,
        cov: Any,
        size: Any = None,
        check_valid: str = "warn",
        tol: float = 1e-8,
        *,
        method: str = "svd",
    ) -> Array:
        """Normal vectors; `size` is the shape without the last axis. Does not check the covariance."""
        return multivariate.multivariate_normal(self.next_key(), mean, cov, size, method=method)

    def multinomial(self, n: Any, pvals: Any, size: Any = None) -> Array:
        """Multinomial samples; `size` is the shape without the last axis."""
        if size is not None:
            size = (*((size,) if isinstance(size, (int, np.integer)) else size), shape_of(operand(pvals))[-1])
        return discrete.multinomial(self.next_key(), n, pvals, size)

    def poisson(self, lam: Any = 1.0, size: Any = None) -> Array:
        """Poisson samples."""
        return discrete.poisson(self.next_key(), lam, size)

    def binomial(self, n: Any, p: Any, size: Any = None) -> Array:
        """Binomial samples: the number of successes in n trials."""
        return discrete.binomial(self.next_key(), n, p, size)

    def geometric(self, p: Any, size: Any = None) -> Array:
        """Geometric samples: the number of trials up to the first success."""
        return discrete.geometric(self.next_key(), p, size)

    def choice(
        self, a: Any, size: Any = None, replace: bool = True, p: Any = None, axis: int = 0, shuffle: bool = True
    ) -> Array:
        """Elements of an array along an axis, or of range(a). The order is always random."""
        return discrete.choice(self.next_key(), a, () if size is None else size, replace, p, axis)

    def permutation(self, x: Any, axis: int = 0) -> Array:
        """x in random order along an axis, or range(x) for an integer."""
        return discrete.permutation(self.next_key(), x, axis)

    def permuted(self, x: Any, *, axis: int | None = None) -> Array:
        """x with every vector along an axis permuted independently; None permutes all elements together."""
        x = operand(x)
        if axis is not None:
            return discrete.permutation(self.next_key(), x, axis, independent=True)
        shape = shape_of(x)
        return discrete.permutation(self.next_key(), x.reshape(-1)).reshape(shape)


@without_engine_frames
def default_rng(seed: Any = None) -> Generator:
    """A Generator with this seed; a Generator itself."""
    return seed if isinstance(seed, Generator) else Generator(seed)
