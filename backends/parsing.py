"""Parsing of Python's source, one thread at a time."""

import ast
import threading

_turn = threading.RLock()


def parsed(text: str) -> ast.Module:
    """The tree of a module's text.

    Python 3.11 has one depth counter for the trees of all threads, and raises a SystemError if another thread has made
    one meanwhile.
    """
    with _turn:
        return ast.parse(text)
