"""Messages to workers: a function and its constants once to each, chunks of arguments with every task."""

from __future__ import annotations

import functools
import hashlib
import importlib
import pickle
import threading
import types
from collections import OrderedDict
from typing import Any, NamedTuple

from func.backends.records import Record
from func.errors import TravelError
from func.interpreters.core import Tracer
from func.transforms.boundary import name_of

SMALL = 1 << 14
"""Parcels of at most this many bytes go with every task: asking for one takes longer."""
MOST_PARCELS = 16
"""The number of recent parcels that a worker stores."""


class Sent(NamedTuple):
    """A parcel in a task: its name, and its content unless the worker should have it."""

    token: str
    content: Any


class Missing(NamedTuple):
    """A worker's answer: it does not have a parcel."""

    token: str


class Parcel(Record):
    """A value that all chunks of a call need; pickled at the first request of an engine."""

    value: Any
    what: str
    """The name in messages."""
    _bytes: bytes | None = None
    _token: str = ""

    def bytes(self) -> bytes:
        """The pickled value."""
        if self._bytes is None:
            self._bytes = pickled(self.value, self.what)
            self._token = hashlib.blake2b(self._bytes, digest_size=16).hexdigest()
        return self._bytes

    def token(self) -> str:
        """A name for the content."""
        self.bytes()
        return self._token


def pickled(value: Any, what: str) -> bytes:
    """The bytes of a value, by cloudpickle where it is installed: it takes lambdas, and definitions of notebooks.

    Raises:
        TravelError: A part of it cannot go to another process.
    """
    try:
        cloudpickle: Any = importlib.import_module("cloudpickle")
    except ImportError:
        cloudpickle = None
    try:
        return (pickle if cloudpickle is None else cloudpickle).dumps(value, pickle.HIGHEST_PROTOCOL)  # type: ignore[no-any-return]
    except TravelError:
        raise
    except Exception as error:
        raise _not_travelling(value, what, error, cloudpickle) from error


def _not_travelling(value: Any, what: str, error: Exception, cloudpickle: Any) -> TravelError:
    culprit = _culprit(value, cloudpickle or pickle, set(), "")
    if culprit is None:
        path, part = "", value
    else:
        path, part = culprit
    kind = type(part).__name__
    where = f": it holds {path}, a {kind}" if path else f": {kind} cannot be pickled ({error})"
    if isinstance(part, types.FunctionType) and cloudpickle is None:
        advice = "Install cloudpickle, which takes lambdas and local functions, or define the function in a module."
    elif hasattr(part, "fileno") or hasattr(part, "readline"):
        advice = "Pass the file's name and open it inside the function."
    elif "lock" in kind.lower() or type(part).__module__ in ("_thread", "threading"):
        advice = "Make the lock inside the function: a lock of this process locks nothing in another one."
    elif type(part) is Tracer:
        advice = (
            "It was stored there while a function was traced; return what a function computes instead of storing it."
        )
    elif hasattr(part, "submit"):
        advice = "An executor belongs to the process that made it; map the outer function alone, or make one inside."
    else:
        advice = "Make it inside the function, or pass the arrays and names to make it from."
    return TravelError(f"{what} cannot go to another process{where}\n{advice}")


def _culprit(value: Any, pickler: Any, seen: set[int], path: str) -> tuple[str, Any] | None:
    """The innermost unpicklable part of a value, and the user's expression of it."""
    if id(value) in seen or len(seen) > 1000:
        return None
    seen.add(id(value))
    try:
        pickler.dumps(value)
        return None
    except Exception:
        if hasattr(value, "submit") or (path and hasattr(value, "fileno")):
            return path or "an executor", value
        for name, part in _parts(value):
            if (culprit := _culprit(part, pickler, seen, name if name else path)) is not None:
                return culprit
        return (path, value) if path else None


def _parts(value: Any) -> list[tuple[str, Any]]:
    """The parts of a value, with names; without a name if the value itself has one."""
    if isinstance(value, functools.partial):
        wrapped = getattr(value, "__wrapped__", None)
        if wrapped is not None:
            return [("", wrapped)]
        named = [(f"the argument {name!r}", part) for name, part in value.keywords.items()]
        return [("", value.func), *[(f"argument {i}", part) for i, part in enumerate(value.args)], *named]
    if isinstance(value, types.MethodType):
        return [(f"the object of the method {value.__name__}", value.__self__)]
    if isinstance(value, types.FunctionType):
        cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
        captured = [(f"{name!r} of the scope around {value.__name__}", cell.cell_contents) for name, cell in cells]
        names = [name for name in value.__code__.co_names if name in value.__globals__]
        outer = [(f"the global {name!r}", value.__globals__[name]) for name in names]
        defaults = [(f"a default of {value.__name__}", part) for part in value.__defaults__ or ()]
        return [*captured, *outer, *defaults]
    if isinstance(value, dict):
        return [(f"the entry {key!r}", part) for key, part in value.items()]
    if isinstance(value, (list, tuple, set, frozenset)):
        return [("", part) for part in value]
    attributes = getattr(value, "__dict__", None)
    if isinstance(attributes, dict):
        is_ours = (type(value).__module__ or "").startswith("func.")
        return [("" if is_ours else f"the attribute {name!r} of {name_of(value)}", x) for name, x in attributes.items()]
    return []


_STORED: OrderedDict[str, Any] = OrderedDict()
_KEEPING = threading.Lock()


def opened(sent: Sent) -> Any:
    """The content of a parcel, in a worker: a Missing if it was neither sent nor stored."""
    with _KEEPING:
        if sent.token in _STORED:
            _STORED.move_to_end(sent.token)
            return _STORED[sent.token]
    if sent.content is None:
        return Missing(sent.token)
    value = pickle.loads(sent.content)
    with _KEEPING:
        _STORED[sent.token] = value
        while len(_STORED) > MOST_PARCELS:
            _STORED.popitem(last=False)
    return value
