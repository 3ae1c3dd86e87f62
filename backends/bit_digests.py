"""Digests of large arrays: one reading shows whether an array still has the bits of a copy.

The code is native: it comes from the cache on disk, or from a background compilation, once slow comparisons show that
it is worth it.
"""

from __future__ import annotations

import ctypes
from time import perf_counter
from typing import Any

import numpy as np

from func.backends import blocks, messages

SEVERAL = 1 << 25
"""Bytes from which on several threads take part: a read from the cache is faster than the wake-up of a thread."""
CHUNK = 1 << 22
"""Bytes that one thread takes at once. Each chunk has a digest, so the whole does not depend on how many threads there
are."""
WORTH_LOADING, WORTH_COMPILING = 0.003, 0.03
"""Seconds in comparisons after which to load the code from disk, and after which to compile it."""


class Digests:
    """The digests of a process, once there is code for them."""

    __slots__ = ("_function", "_is_hopeless", "_spent")

    def __init__(self) -> None:
        self._function: Any = None
        self._spent = 0.0
        self._is_hopeless = False

    @property
    def is_there(self) -> bool:
        """Whether the code is available."""
        return self._function is not None

    def of(self, x: Any) -> bytes:
        """The digest of a contiguous array of at least `LEAST_DIGEST` bytes; the layout does not count."""
        from func.backends.llvm.memory.digests import STRIPE  # start-up time

        address, stripes = x.__array_interface__["data"][0], x.nbytes // STRIPE
        of_chunk = CHUNK // STRIPE
        starts = range(0, stripes, of_chunk)
        out = np.empty((len(starts), STRIPE), np.uint8)
        target = out.__array_interface__["data"][0]

        def block(number: int) -> None:
            start = starts[number]
            place = address + start * STRIPE
            self._function(place, min(of_chunk, stripes - start), target + number * STRIPE)

        if x.nbytes < SEVERAL or not blocks.by_several(x, block, len(starts)):
            for number in range(len(starts)):
                block(number)
        return out.tobytes() + ctypes.string_at(address + stripes * STRIPE, x.nbytes - stripes * STRIPE)

    def same_bits(self, x: Any, y: Any) -> bool:
        """Whether two arrays agree, bit by bit; the time of comparisons determines when to get the code."""
        begin = perf_counter()
        result = blocks.same_bits(x, y)
        self._note(perf_counter() - begin)
        return result

    def provide(self) -> None:
        """Provide the code now."""
        from func.backends.llvm.memory import digests  # start-up time

        if self._function is None:
            try:
                self._function = digests.provided()
            except Exception as error:
                self._is_hopeless = True
                messages.debug("arrays are compared byte by byte: %s", error)

    def _note(self, seconds: float) -> None:
        self._spent += seconds
        if self._is_hopeless or self._spent < WORTH_LOADING:
            return
        from func.backends.llvm.memory import digests  # start-up time

        try:
            if digests.is_on_disk():
                self.provide()
            elif self._spent >= WORTH_COMPILING:
                digests.provide_soon(self.provide)
        except Exception as error:  # no compiler
            self._is_hopeless = True
            messages.debug("arrays are compared byte by byte: %s", error)


DIGESTS = Digests()
