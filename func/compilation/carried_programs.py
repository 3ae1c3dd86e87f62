"""The programs of a jitted function in its pickle, so that another process neither traces nor compiles again.

The other process uses a program only if the function is the same there. Its code, the code of the functions it calls,
and the values it reads from modules, closures and objects must be equal.
"""

from __future__ import annotations

import importlib
import pickle
import sys
import types
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from func.backends import messages
from func.backends.hashing import new_hash
from func.interpreters.calls.captured_values import DEPTH, PLAIN, code_and_values
from func.interpreters.core import concrete

LIMIT = 1 << 24
"""The most bytes of constants in a carried program: larger ones would travel twice, with the closure."""


def carried_programs(function: Callable[..., Any], cache: OrderedDict[Any, Any]) -> bytes | None:
    """The cached calls of a jitted function as bytes; None if another process can use none of them."""
    entries = [(key, entry) for key, entry in list(cache.items()) if all(map(_can_travel, entry.leaves()))]
    if not entries:
        return None
    try:
        return _pickled((_fingerprint(function), entries))
    except Exception as error:  # users' code may raise anything here
        messages.debug("func.jit: the programs of %r are not pickled with it: %s", function, error)
        return None


def _can_travel(cached: Any) -> bool:
    if cached.separate.in_scope or cached.axes:
        return False
    return sum([getattr(value, "nbytes", 0) for value in cached.guarded.program.constants.values()]) <= LIMIT


def _pickled(value: Any) -> bytes:
    try:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    except Exception:
        # A rule that is a local function; users of such functions have cloudpickle.
        return importlib.import_module("cloudpickle").dumps(value)  # type: ignore[no-any-return]


def take_over(function: Callable[..., Any], cache: OrderedDict[Any, Any], programs: bytes) -> None:
    """Add programs from a pickle to the cache of a jitted function, if they belong to this function here."""
    try:
        fingerprint, entries = pickle.loads(programs)
        if fingerprint != _fingerprint(function):
            messages.debug("func.jit: %r is another function here; its pickled programs are not used", function)
            return
        for key, cached in entries:
            cache.setdefault(key, cached)
    except Exception as error:  # of another version, or of modules that are missing here
        messages.debug("func.jit: the pickled programs of %r are not used: %s", function, error)


def _fingerprint(function: Callable[..., Any]) -> bytes:
    """A hash of the code of a function and of the values that it reads from outside its arguments."""
    version = sys.modules["func"].__version__
    codes, values = code_and_values(function)
    total = new_hash(repr((version, sys.version_info[:2], np.__version__)).encode())
    for code in codes:
        _add_code(total, code)
    for path, value in sorted(values.items()):
        total.update(path.encode())
        _add_value(total, value, DEPTH)
    return bytes(total.digest())


def _add_code(total: Any, code: types.CodeType) -> None:
    total.update(code.co_code)
    total.update(repr((code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)).encode())
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            _add_code(total, constant)
        else:
            text = repr(sorted(map(repr, constant))) if isinstance(constant, frozenset) else repr(constant)
            total.update(text.encode())


def _add_value(total: Any, value: Any, depth: int) -> None:
    value = concrete(value)
    total.update(type(value).__qualname__.encode())
    if isinstance(value, np.ndarray):
        total.update(repr((value.shape, value.dtype.str)).encode())
        if value.dtype.kind != "O" and value.nbytes <= LIMIT:
            total.update(value.tobytes())
    elif isinstance(value, PLAIN):
        total.update(repr(value).encode())
    elif depth and isinstance(value, dict):
        for key, member in value.items():
            _add_value(total, key, depth - 1)
            _add_value(total, member, depth - 1)
    elif depth and isinstance(value, (tuple, list)):
        for member in value:
            _add_value(total, member, depth - 1)
    elif isinstance(value, (set, frozenset)):
        total.update(repr(sorted(map(repr, value))).encode())
