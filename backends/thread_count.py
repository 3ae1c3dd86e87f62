"""The number of threads that native code may use: one number for the process, fixed when it is first needed.

`func.config` reads and sets it without loading LLVM, so it is not in the module of the pool.
"""

from __future__ import annotations

import os
from collections.abc import Callable

VARIABLE = "FUNC_NUM_THREADS"
MAX_THREADS = 1024

_num_threads: int | None = None
_listeners: list[Callable[[int], None]] = []


def usable_cores() -> int:
    """The cores on which this process may run."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def num_threads() -> int:
    """The number in force: the one that was set, or else FUNC_NUM_THREADS, or else the usable cores."""
    global _num_threads
    if _num_threads is None:
        _num_threads = _initial()
    return _num_threads


def set_num_threads(number: int) -> None:
    """Let later calls use that many threads, including the calling one."""
    global _num_threads
    if not 1 <= number <= MAX_THREADS:
        raise ValueError(f"the number of threads must be from 1 to {MAX_THREADS}, not {number}")
    _num_threads = number
    for listener in _listeners:
        listener(number)


def subscribe(listener: Callable[[int], None]) -> None:
    """Call the listener with the number now, and again whenever it is set."""
    listener(num_threads())
    _listeners.append(listener)


def _initial() -> int:
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return min(usable_cores(), MAX_THREADS)
    if not text.isdecimal() or not 1 <= int(text) <= MAX_THREADS:
        raise ValueError(
            f"the environment variable {VARIABLE} must be a whole number from 1 to {MAX_THREADS}, not {text!r}; "
            "correct or unset it, or set func.config.num_threads"
        )
    return int(text)
