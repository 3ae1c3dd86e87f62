"""Background compilation of code that first calls do without: call stubs and the thread pool.

A thread does the work shortly after the request, so that the requesting call goes first. Each task holds
`machine.lock`, which a fork waits for: a child finds the task done or not begun. No thread of the parent lives in a
child, so a caller that needs the result repeats its request with every call.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

from func.backends import messages
from func.backends.llvm.machine import lock

DELAY = 0.02
"""Seconds before the thread begins: its work in Python would hold up the call that has requested it."""
CHECKS = 10
"""The number of checks during the delay whether the process ends."""

_pending: dict[str, Callable[[], object]] = {}
"""Tasks that are not done, in the order of their requests."""
_failed: set[str] = set()
_thread: threading.Thread | None = None
_starting = threading.Lock()


def request(name: str, task: Callable[[], object]) -> None:
    """Run a task soon, unless it has failed before; a caller repeats this as long as the result is missing."""
    if name not in _failed:
        _pending.setdefault(name, task)
    if _pending and not (_thread is not None and _thread.is_alive()):
        _start()


def is_done() -> bool:
    """Whether no task remains."""
    return not _pending


def _start() -> None:
    """Start the thread; if no thread can start, run the tasks here."""
    global _thread
    if _starting.locked():  # another thread is in this function
        return
    with _starting:  # after `acquire` and before `try` an interrupt would leave it locked
        if _is_ending() or (_thread is not None and _thread.is_alive()):
            return
        try:
            _thread = threading.Thread(target=_wait_and_work, name="func.backends.llvm.threads.background")
            _thread.start()
        except RuntimeError as error:
            messages.debug("native code is completed without a thread: %s", error)
            finish()


def _is_ending() -> bool:
    """Whether the interpreter waits for its threads to end, or has done so."""
    return not threading.main_thread().is_alive()


def _wait_and_work() -> None:
    for _ in range(CHECKS):
        if _is_ending():
            return
        time.sleep(DELAY / CHECKS)
    finish()


def finish() -> None:
    """Run all pending tasks now."""
    for name, task in list(_pending.items()):
        if _is_ending():
            return
        with lock:
            try:
                task()
            except Exception as error:
                _failed.add(name)
                messages.debug("native code does without the %s: %s", name, error, exc_info=True)
            _pending.pop(name, None)


def _forget_thread() -> None:
    global _thread, _starting
    _thread, _starting = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_thread)
