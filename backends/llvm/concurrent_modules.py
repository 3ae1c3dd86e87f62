"""Concurrent modules: generates the modules that a program refers to in a thread.

A program calls elementary functions, products of matrices and the thread pool's trampoline, which are separate modules,
made once for each machine. The first program to need them would wait for each in turn. So a thread generates the
missing ones, while the caller generates the program: LLVM needs no lock for modules in separate contexts. The caller
holds `machine.lock` for both, and prints all texts, so that the thread runs no Python that could wait for a lock.
"""

from __future__ import annotations

import contextlib
import importlib
import re
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from func.backends import messages
from func.backends.llvm import cache, symbols
from func.backends.llvm.machine import THOROUGH

_DECLARED = re.compile(rf'^declare [^@\n]*@"({symbols.OWN_PREFIX}\w+)"', re.MULTILINE)


def missing_in(text: str) -> list[tuple[str, symbols.Text]]:
    """(key, printer) of the modules to which a module's text refers."""
    modules = [symbols.module_of(name) for name in dict.fromkeys(_DECLARED.findall(text))]
    return [module for module in modules if module is not None]


@contextlib.contextmanager
def generated(texts: Sequence[str]) -> Iterator[list[cache.ObjectCode]]:
    """Inside, a thread generates modules of these texts; afterwards the list has the object code of the finished ones,
    in order.
    """
    library = importlib.import_module("func.backends.llvm.llvm_library")
    library.machine_of(THOROUGH.level)  # so that one thread alone prepares LLVM
    done: list[cache.ObjectCode] = []
    thread = threading.Thread(target=_generate, args=(library, texts, done), name=__name__)
    try:
        thread.start()
    except RuntimeError as error:  # no thread can start
        messages.debug("modules are generated one after the other: %s", error)
        yield done
        return
    try:
        yield done
    finally:
        thread.join()


def _generate(library: Any, texts: Sequence[str], done: list[cache.ObjectCode]) -> None:
    try:
        for text in texts:
            done.append(library.emit_object(text, THOROUGH))
    except Exception as error:  # the caller raises it again
        messages.debug("no concurrent generation of a module: %s", error)
