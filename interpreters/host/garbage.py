"""Fewer garbage collections while programs are traced and compiled.

A trace makes millions of objects that stay. The collector looks through all of them again and again, which takes longer
than to make them. During traces and compilations, young objects are collected less often, and old ones not at all.
"""

from __future__ import annotations

import gc
import os

RARE = (100_003, 100, 1_000_000)
"""The thresholds meanwhile: a generation is collected after this number of allocations, or of collections of the
younger one. The first number tells that they are in force: newer Pythons do not keep the others.
"""

_usual = gc.get_threshold()
"""The thresholds that were in force before."""


class rare_collections:
    """Context in which the collector runs rarely. It may be entered inside another one, and in several threads: the
    first one that ends restores the thresholds, unless other code has changed them.
    """

    __slots__ = ("before",)

    def __enter__(self) -> None:
        global _usual
        self.before = before = gc.get_threshold()
        if before[0] not in (0, RARE[0]):  # neither switched off nor inside another context
            _usual = before
            gc.set_threshold(*RARE)

    def __exit__(self, *exception: object) -> None:
        if self.before[0] != RARE[0] and gc.get_threshold()[0] == RARE[0]:
            gc.set_threshold(*self.before)


def _restore() -> None:
    """In a child another thread's context never ends."""
    if gc.get_threshold()[0] == RARE[0]:
        gc.set_threshold(*_usual)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_restore)
