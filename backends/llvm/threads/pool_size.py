"""The number of threads that native code may use: one number for the process, settled when it is first asked for."""

from __future__ import annotations

import os
from collections.abc import Callable

VARIABLE = "FUNC_NUM_THREADS"
MAX_THREADS = 1024

_number: int | None = None
_followers: list[Callable[[int], None]] = []


def usable_cores() -> int:
    """The cores on which this process may run."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def num_threads() -> int:
    """The number in force: what was set, or else FUNC_NUM_THREADS, or else the usable cores."""
    global _number
    if _number is None:
        _number = _initial()
    return _number


def set_num_threads(number: int) -> None:
    """Let later calls use that many threads, the caller's own included."""
    global _number
    if not 1 <= number <= MAX_THREADS:
        raise ValueError(f"the number of threads must be from 1 to {MAX_THREADS}, not {number}")
    _number = number
    for follower in _followers:
        follower(number)


def follow(follower: Callable[[int], None]) -> None:
    """Call the follower with the number now, and again whenever it is set."""
    follower(num_threads())
    _followers.append(follower)


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
