"""Work that a first call does not wait for: the code of entries and of the thread pool, which make later calls faster.

A thread does it, a moment after it was asked for, so that the call which is about to be made comes first. Each piece of
work holds `machine.lock`, which a fork waits for: a child finds it done, or not begun. No thread of the parent lives
in a child, so whoever waits for the work says so again with every call.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable

from func.backends.llvm.machine import lock

DELAY = 0.02
"""Seconds before the thread begins: what it does in Python would hold up the call that has asked for it."""
PIECES = 10
"""The thread looks so often meanwhile whether the process ends."""

_log = logging.getLogger("func")
_asked: dict[str, Callable[[], object]] = {}
"""What has not been done, in the order in which it was asked for."""
_given_up: set[str] = set()
_thread: threading.Thread | None = None
_starting = threading.Lock()


def ask(name: str, work: Callable[[], object]) -> None:
    """Let a piece of work be done soon, unless it has failed; to be repeated as long as its result is missing."""
    if name not in _given_up:
        _asked.setdefault(name, work)
    if _asked and not (_thread is not None and _thread.is_alive()):
        _start()


def is_done() -> bool:
    """Whether there is nothing left to be done."""
    return not _asked


def _start() -> None:
    """Start the thread; where that cannot be, do the work here."""
    global _thread
    if not _starting.acquire(blocking=False):  # another thread does so
        return
    try:
        if not _is_ending():
            _thread = threading.Thread(target=_wait_and_work, name="func.backends.llvm.threads.background")
            _thread.start()
    except RuntimeError as error:
        _log.debug("native code is completed without a thread: %s", error)
        finish()
    finally:
        _starting.release()


def _is_ending() -> bool:
    """Whether the interpreter waits for its threads, or has done so."""
    return not threading.main_thread().is_alive()


def _wait_and_work() -> None:
    for _ in range(PIECES):
        if _is_ending():
            return
        time.sleep(DELAY / PIECES)
    finish()


def finish() -> None:
    """Do what is left now, as those want who measure."""
    for name, work in list(_asked.items()):
        if _is_ending():
            return
        with lock:
            try:
                work()
            except Exception as error:
                _given_up.add(name)
                _log.debug("native code does without the %s: %s", name, error, exc_info=True)
            _asked.pop(name, None)


def _forget_thread() -> None:
    global _thread, _starting
    _thread, _starting = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_thread)
