"""Memory that transforms keep for the next array: fresh pages take longer than most arithmetic on them.

The system clears each page that it hands out, and the C library returns large blocks as soon as an array dies. A
gradient of arrays of 256 × 256 spends three quarters of its time there. So NumPy allocates by a caching allocator
(`backends/llvm/memory/`) while a transform runs. Its code is native: it comes from the cache on disk, or from a
background compilation, once slow calls show that it is worth it. `enter` and `leave` surround every call of a
transform.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

SLOW = 5e-4
"""Seconds from which a call is slow: it may work on arrays whose memory the system provides."""
WORTH_LOADING, WORTH_COMPILING = 0.005, 0.5
"""Seconds in slow calls after which to load the code from disk, and after which to compile it."""
DEFAULT_LIMIT = 1 << 28
"""Bytes that wait for the next array, at most."""


class ArrayMemory:
    """The caching allocator of the process, once there is one."""

    __slots__ = ("_is_first", "_is_hopeless", "_limit", "_spent", "allocator")

    def __init__(self) -> None:
        self.allocator: Any = None
        self._limit = DEFAULT_LIMIT
        self._spent = 0.0
        self._is_hopeless = False
        self._is_first = True

    @property
    def limit(self) -> int:
        """The bytes that wait for the next array, at most; with 0 NumPy allocates as it always does."""
        return self._limit

    @limit.setter
    def limit(self, most: int) -> None:
        self._limit = most
        if self.allocator is not None:
            self.allocator.set_limit(most)

    def waiting(self) -> int:
        """The bytes that wait."""
        return 0 if self.allocator is None else self.allocator.waiting()

    def release(self) -> None:
        """Give the memory that waits back to the system."""
        if self.allocator is not None:
            self.allocator.release()

    def note(self, seconds: float) -> None:
        """A slow call has taken this long: provide the allocator if it is worth it. The first one imports modules."""
        if self._is_first:
            self._is_first = False
            return
        self._spent += seconds
        if self._is_hopeless or not self._limit or self._spent < WORTH_LOADING:
            return
        from func.backends.llvm.memory import allocator  # start-up time: LLVM makes its code

        reason = allocator.why_unavailable()
        if reason is not None:
            self._give_up(reason)
        elif allocator.is_on_disk():
            self.install()
        elif self._spent >= WORTH_COMPILING:
            allocator.install_soon(self.install)

    def install(self) -> None:
        """Provide the allocator now."""
        from func.backends.llvm.memory import allocator  # start-up time: LLVM makes its code

        if self.allocator is None:
            try:
                provided = allocator.install()
                provided.set_limit(self._limit)
            except Exception as error:
                self._give_up(str(error))
            else:
                self.allocator = provided

    def _give_up(self, reason: str) -> None:
        from func.backends import messages  # start-up time

        self._is_hopeless = True
        messages.debug("arrays are allocated as always: %s", reason)


MEMORY = ArrayMemory()


def enter() -> Any:
    """A transform begins; the result is the argument of `leave`."""
    allocator = MEMORY.allocator
    if allocator is None:
        return perf_counter()
    variable = allocator.variable
    before = variable.get()
    if before is not allocator.default or not MEMORY._limit:  # inside another one, or the user's own handler
        return None
    variable.set(allocator.handler)
    return before


def enter_after_interrupt() -> Any:
    """The argument of `leave` if an outermost transform finds the allocator set, after an interrupt.

    An interrupt between two bytecodes of `enter` or `leave` leaves it set; the next transform ends it.
    """
    allocator = MEMORY.allocator
    if allocator is None or allocator.variable.get() is not allocator.handler:
        return None
    return allocator.default


def leave(mark: Any) -> None:
    """The transform that `mark` belongs to ends."""
    if mark is None:
        return
    if type(mark) is not float:
        MEMORY.allocator.variable.set(mark)
    elif (seconds := perf_counter() - mark) > SLOW:
        MEMORY.note(seconds)
