"""`np.array([v, -np.sin(t)])` inside a transform: NumPy's converters, replaced while something is being traced.

NumPy's protocols do not reach np.array, np.asarray and their kin. While at least one transform runs, in any thread,
wrappers stand in their place: they look for a traced value in the argument and otherwise call the original.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from func.interpreters.core import CARRIERS, Tracer
from func.interpreters.drivers import set_running_hooks

_NAMES = ("array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray")
_originals: dict[str, Any] = {name: getattr(np, name) for name in _NAMES}
_namespace: Any = vars(np)
_lock = threading.Lock()
_running = 0
_convert: list[Callable[..., Any]] = []


def original(name: str) -> Callable[..., Any]:
    """NumPy's own function of that name."""
    found: Callable[..., Any] = _originals[name]
    return found


def set_converter(convert: Callable[..., Any]) -> None:
    """Registration from func.numpy: what builds a traced array from nested sequences."""
    _convert[:] = [convert]


_adopt: list[Callable[[Any, Any], Any]] = [lambda made, source: made]
"""The last one has its say on every array that a converter made of something plain."""


def set_adoption(adopt: Callable[[Any, Any], Any]) -> None:
    """Registration from func.interception: (array, what it was made of) to the array to hand out."""
    _adopt.append(adopt)


def holds_tracer(value: Any) -> bool:
    """True for traced values and for nested lists and tuples with one inside."""
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
        made = _convert[0](name, *args, **kwargs) if traced else original(*args, **kwargs)
        return _adopt[-1](made, args[0]) if args else made

    converter.__name__ = converter.__qualname__ = name
    converter.__doc__ = original.__doc__
    return converter


_wrappers: dict[str, Any] = {name: _wrapper(name) for name in _NAMES}


def stand_in(**objects: Any) -> None:
    """Registration from above: further objects that stand in NumPy's namespace while a transform runs."""
    for name, value in objects.items():
        _originals[name] = getattr(np, name)
        _wrappers[name] = value


def enter() -> None:
    """A transform starts."""
    global _running
    with _lock:
        _running += 1
        if _running == 1:
            _namespace.update(_wrappers)


def leave() -> None:
    """A transform ends, by a value or an exception."""
    global _running
    with _lock:
        _running -= 1
        if _running == 0:
            _namespace.update(_originals)


def is_tracing() -> bool:
    """True while some transform runs, in any thread."""
    return _running > 0


set_running_hooks(enter, leave)
