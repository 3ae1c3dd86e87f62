"""A random generator with state and the methods of NumPy's, which func.vmap can see."""

from __future__ import annotations

import operator
import secrets
import weakref
from typing import Any

import numpy as np

from func.interpreters.core import Array, Tracer, shape_of
from func.interpreters.core.errors import FuncError
from func.interpreters.core.modes import STAGING
from func.interpreters.core.source import at_line
from func.interpreters.primitives.random import bits as ops
from func.interpreters.vmap import RUNNING, Vmap
from func.random.keys import check_key, keys_of
from func.random.keys import key as key_of_seed
from func.random.methods import Methods


class RandomnessError(FuncError, RuntimeError):
    """A random generator with state was used inside func.vmap, which was not told what to do with it."""


_STREAM, _CHILD = 0, 1
"""What the two keys of a generator are for: its draws, and the generators that it spawns."""


class Generator(Methods):
    """Random numbers from a state, with the methods and signatures of NumPy's Generator.

    Inside a function mapped by func.vmap it follows `randomness=`: "error" raises RandomnessError, "same" draws the
    same numbers in all lanes, "different" draws other ones in each. Nested vmaps decide each for its own lanes. A
    lane keeps its numbers where vmap runs the function again on a part of the lanes, or on chunks of them.

    A plain NumPy generator cannot be seen by func.vmap: it draws once per run of the function, for all lanes alike.
    In code that is staged or recomputed (func.make_program, func.checkpoint) use keys: a generator draws when the
    Python code runs.

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

    def __init__(self, seed: Any = None) -> None:
        if seed is None:
            seed = secrets.randbits(64)
        keyed = hasattr(seed, "dtype") and shape_of(seed) == (2,)
        self._key = check_key(seed, "Generator") if keyed else key_of_seed(seed)
        self._forget()

    def _forget(self) -> None:
        self._count = 0
        self._spawned = 0
        self._starts: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._counts: weakref.WeakKeyDictionary[Vmap, int] = weakref.WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"Generator(key={self._key!r}, draws={self._count})"

    def __getstate__(self) -> dict[str, Any]:
        return {"key": self._key, "count": self._count, "spawned": self._spawned}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._key = state["key"]
        self._forget()
        self._count, self._spawned = state["count"], state["spawned"]

    def _advance(self, levels: tuple[Vmap, ...]) -> int:
        """The number of this draw. Each run of a mapped call counts from where the call began.

        So a draw has one number in all runs, whichever lanes they take; afterwards the count is that of the longest.
        """
        number = self._count
        for level in levels:
            if level not in self._counts:
                self._counts[level] = self._starts.setdefault(level.call, number)
            number = self._counts[level]
        for level in levels:
            self._counts[level] = max(self._counts[level], number + 1)
        self._count = max(self._count, number + 1)
        return number

    def next_key(self) -> Array:
        """The key of the next draw: that of its number, and of the lane where a running vmap draws per lane.

        Raises:
            RandomnessError: A running vmap has randomness="error", or the function is being staged.
        """
        if STAGING.get() is not None:
            raise RandomnessError(
                f"a func.random.Generator was used inside func.{STAGING.get()}{at_line()}\n"
                "The program would give the same numbers each time that it runs: pass a key of func.random as an "
                "argument, and draw by func.random.normal(key, ...) and its kin."
            )
        levels = RUNNING.get()
        parted = self._parted(levels) if levels else []
        key = ops.random_fold_in(keys_of(self._key, 2)[_STREAM], np.asarray(self._advance(levels)))
        for level in parted:
            key = ops.random_fold_in(key, level.lift(level.elements))
        return key

    def _parted(self, levels: tuple[Vmap, ...]) -> list[Vmap]:
        """The vmaps that draw per lane."""
        for level in levels:
            if level.randomness == "error":
                raise RandomnessError(
                    f"a func.random.Generator was used inside func.vmap with randomness='error'{at_line()}\n"
                    "Pass randomness='different' to draw other numbers in each lane or randomness='same' to draw the "
                    "same ones in all, or map keys: func.vmap(f)(x, func.random.split(key, n))."
                )
        parted = [level for level in levels if level.randomness == "different"]
        if parted and levels[-1].randomness is None:
            raise RandomnessError(
                "a func.random.Generator was used under randomness='different' inside a function with a custom rule "
                f"or checkpoint{at_line()}\nDraw outside of that function, and pass the numbers or a key to it."
            )
        return parted

    def spawn(self, n_children: int) -> list[Generator]:
        """New generators, independent of this one and of each other."""
        parent = keys_of(self._key, 2)[_CHILD]
        first, self._spawned = self._spawned, self._spawned + operator.index(n_children)
        return [Generator(ops.random_fold_in(parent, np.asarray(i))) for i in range(first, self._spawned)]

    def bytes(self, length: int) -> bytes:
        """Random bytes."""
        drawn = ops.random_bits(self.next_key(), shape=(operator.index(length),), dtype=np.dtype(np.uint8))
        if type(drawn) is Tracer:
            raise RandomnessError(
                f"Generator.bytes cannot draw per lane inside func.vmap{at_line()}\n"
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


def default_rng(seed: Any = None) -> Generator:
    """A Generator of a seed; a Generator as it is."""
    return seed if isinstance(seed, Generator) else Generator(seed)
