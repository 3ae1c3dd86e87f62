"""NumPy's converters, replaced while a transform runs, so that `np.array([v, -np.sin(t)])` may hold traced values.

NumPy's protocols do not dispatch np.array, np.asarray and the other converters. While at least one transform runs, in
any thread, wrappers replace them. A wrapper looks for a traced value in the argument, else calls the original.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from func.interpreters.core import CARRIERS, Tracer
from func.interpreters.core.wiring import WIRING

_NAMES = ("array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray")
_originals: dict[str, Any] = {name: getattr(np, name) for name in _NAMES}
_namespace: Any = vars(np)
_lock = threading.Lock()
_running = 0


def original(name: str) -> Callable[..., Any]:
    """NumPy's original function of this name."""
    function: Callable[..., Any] = _originals[name]
    return function


def holds_tracer(value: Any) -> bool:
    """True for traced values and for nested lists and tuples that hold one."""
    kind = type(value)
    if kind is Tracer or kind in CARRIERS:
        return True
    if kind is list or kind is tuple:
        return any([holds_tracer(item) for item in value])
    return False


def _wrapper(name: str) -> Callable[..., Any]:
    original = _originals[name]

    def converter(*args: Any, **kwargs: Any) -> Any:
        traced = args and (holds_tracer(args[0]) or type(kwargs.get("like")) is Tracer)
        array = WIRING.convert_traced(name, *args, **kwargs) if traced else original(*args, **kwargs)
        return WIRING.adopt_array(array, args[0]) if args else array

    converter.__name__ = converter.__qualname__ = name
    converter.__doc__ = original.__doc__
    return converter


_wrappers: dict[str, Any] = {name: _wrapper(name) for name in _NAMES}


def replace(**objects: Any) -> None:
    """Register further objects that replace NumPy's while a transform runs."""
    for name, value in objects.items():
        _originals[name] = getattr(np, name)
        _wrappers[name] = value


def enter() -> None:
    """Start a transform: the first one installs the wrappers."""
    global _running
    with _lock:
        _running += 1
        if _running == 1:
            _namespace.update(_wrappers)


def leave() -> None:
    """End a transform, after a value or an exception: the last one restores NumPy's functions."""
    global _running
    with _lock:
        _running -= 1
        if _running == 0:
            _namespace.update(_originals)


def is_tracing() -> bool:
    """True while any transform runs, in any thread."""
    return _running > 0


WIRING.enter_transform = enter
WIRING.leave_transform = leave
