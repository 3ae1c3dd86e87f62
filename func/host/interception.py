"""`func.intercept()`: arrays from np.zeros, np.empty and other functions of NumPy that can take traced values later.

NumPy's protocols do not reach creation functions. Inside the context the attributes of `numpy` are functions that
return `Intercepted` arrays; with modules, so are the names that these modules imported.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from func.host import patching
from func.host.intercepted_arrays import (
    INTERCEPTING,
    Intercepted,
    adopted,
    is_intercepting,
    plain,
    present,
    untraced,
)
from func.interpreters.core import Tracer
from func.interpreters.core.errors import ArgumentError
from func.interpreters.core.scopes import Entry, Scope, live_entry
from func.interpreters.host.source import is_engine_file

__all__ = [
    "intercept",
]

F = TypeVar("F", bound=Callable[..., Any])
Modules = str | ModuleType | Iterable[str | ModuleType]
"""Modules, by name or themselves: one or several."""


def _creator(name: str) -> Callable[..., Any]:
    original = vars(np)[name]
    substitute = patching.SUBSTITUTES.get(id(original))

    def create(bound: Any, *args: Any, **kwargs: Any) -> Any:
        out = (original if substitute is None else substitute.choice())(*args, **kwargs)
        if type(out) not in _ADOPTED or is_engine_file(patching.calling_frame(1).f_code.co_filename):
            return out
        return adopted(out, (args, kwargs))

    return patching.substitute(create, name)  # type: ignore[no-any-return]


_ADOPTED = (np.ndarray, list, tuple)


def _read_buffer(bound: Any, buffer: Any, *args: Any, **kwargs: Any) -> Any:
    """np.frombuffer, which reads memory past the protocols: raises for an array with traced values."""
    source = buffer.obj if type(buffer) is memoryview else buffer
    if type(source) is Intercepted:
        untraced(source, "frombuffer")
    return _FROMBUFFER(buffer, *args, **kwargs)


_FROMBUFFER = np.frombuffer
patching.replace(frombuffer=patching.substitute(_read_buffer, "frombuffer"))


class InterceptScope(Scope):
    """A block of `func.intercept()` that is open, and the modules whose names it has rebound."""

    __slots__ = ("modules",)

    def __init__(self, modules: tuple[ModuleType, ...]) -> None:
        self.modules = modules
        INTERCEPTING.set(Entry(self, live_entry(INTERCEPTING)))


class OwnScope(InterceptScope):
    """A block that func opens for SciPy's code, not the user."""

    __slots__ = ()


class intercept:
    """Let arrays that NumPy's creation functions make inside a transform hold traced values.

    Here NumPy's functions that return new arrays, such as np.zeros and np.array, return an ndarray that takes traced
    values. The first write of one makes it and its views traced arrays. (Operators and methods of
    plain arrays from elsewhere make plain arrays: write np.copy(a) for a.copy().) So unmodified pure-Python
    code of other libraries differentiates; SciPy's functions do not need it. Compiled code raises an error for such an
    array. Works as a context manager and as a decorator, around a transform or inside the transformed function, for the
    thread or task that enters it. Every transform takes `intercept=True`, or the modules, as its short form.

    Args:
        modules: A module, its name, or a list of these; a name stands for its submodules too, and may contain `*`.
            List modules that import functions of `math`, or creation functions and converters of NumPy, by name
            (`from numpy import zeros`). While the block is open these names take traced values.
            Blocks of all threads share the names of a module. Outside of transforms they do what they always do; the
            originals return when the last block ends. Modules that are imported later keep the originals.

    Raises:
        ArgumentError: No module has this name, or it belongs to NumPy, SciPy, `math` or func (a ValueError).

    Example:
        >>> import numpy as np, func
        >>> def f(x):
        ...     a = np.zeros(3)
        ...     a[1] = x ** 2
        ...     return np.sum(a * np.arange(3.0))
        >>> with func.intercept():
        ...     print(float(func.grad(f)(3.0)))
        6.0
        >>> import statistics  # which has `from math import fabs`
        >>> with func.intercept(modules="statistics"):
        ...     print(float(func.grad(statistics.fabs)(-2.0)))
        -1.0
    """

    _scope_class = InterceptScope

    def __init__(self, *, modules: Modules = ()) -> None:
        if not isinstance(modules, (str, ModuleType, Iterable)):
            raise ArgumentError(
                f"func.intercept: modules={modules!r} is neither a module, its name, nor a list of these"
            )
        self._modules = modules if isinstance(modules, (str, ModuleType)) else tuple(modules)
        self._scopes: list[InterceptScope] = []

    def __repr__(self) -> str:
        return f"func.intercept({f'modules={self._modules!r}' if self._modules else ''})"

    def __enter__(self) -> None:
        patching.adopt_results(_creator, is_intercepting)
        self._scopes.append(self._scope_class(_rebound(self._modules) if self._modules else ()))

    def __exit__(self, *error: object) -> None:
        entry = INTERCEPTING.get()
        place = -1  # entered in another context, by a generator that closes in this one
        if entry is not None and (innermost := entry.scope()) in self._scopes:
            place = self._scopes.index(innermost)
            INTERCEPTING.set(entry.outer)
        modules = self._scopes.pop(place).modules
        if modules:
            _restore(modules)

    def __call__(self, function: F) -> F:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with intercept(modules=self._modules):
                return function(*args, **kwargs)

        return wrapped  # type: ignore[return-value]


def _rebound(modules: Modules) -> tuple[ModuleType, ...]:
    from func.host.rebinding import listed_modules, rebind  # few programs need it

    listed = listed_modules(modules)
    try:
        rebind(listed)
    except BaseException:
        _restore(listed)
        raise
    return listed


def _restore(modules: tuple[ModuleType, ...]) -> None:
    from func.host.rebinding import restore  # few programs need it

    restore(modules)


def intercepted_call(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, run with `func.intercept()`; its results are traced values or plain arrays."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return patching.called_inside(intercepted, args, kwargs)

    def intercepted(*args: Any, **kwargs: Any) -> Any:
        was_intercepting = is_intercepting()
        with _intercept_inside():
            out = function(*args, **kwargs)
        return out if was_intercepting else _without_memory(out)

    return call


class _intercept_inside(intercept):
    _scope_class = OwnScope


def not_intercepted(function: F) -> F:
    """SciPy's function of plain numbers: it runs outside of the blocks that func has opened for SciPy's code."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        entry = live_entry(INTERCEPTING)
        if entry is None or type(entry.scope()) is not OwnScope:
            return function(*args, **kwargs)
        while entry is not None and type(entry.scope()) is OwnScope:
            entry = entry.outer
        token = INTERCEPTING.set(entry)
        try:
            return function(*args, **kwargs)
        finally:
            INTERCEPTING.reset(token)

    return call  # type: ignore[return-value]


def without_intercepted(function: Callable[..., Any], args: Any, kwargs: Any, keep: bool = False) -> tuple[bool, Any]:
    """(whether interception is on, the result of a call without traced values on plain memory if it is).

    Compiled code may reject subclasses of ndarray, and its Python part makes arrays for it by NumPy's functions. With
    `keep` the arguments stay unchanged, for objects that share their memory.
    """
    if not is_intercepting():
        return False, None
    token = INTERCEPTING.set(None)
    try:
        out = function(*args, **kwargs) if keep else function(*_memory_of(args), **_memory_of(kwargs))
    finally:
        INTERCEPTING.reset(token)
    return True, adopted(out)


def _memory_of(value: Any) -> Any:
    """Arguments with plain arrays in place of intercepted ones; containers without any stay the same objects."""
    kind = type(value)
    if kind is Intercepted:
        return present(value)
    if kind is list or kind is tuple:
        items = [_memory_of(item) for item in value]
        return value if all([a is b for a, b in zip(items, value, strict=True)]) else kind(items)
    if kind is dict:
        items = [_memory_of(item) for item in value.values()]
        return (
            value
            if all([a is b for a, b in zip(items, value.values(), strict=True)])
            else dict(zip(value, items, strict=True))
        )
    return value


def _without_memory(value: Any) -> Any:
    """Results without intercepted arrays, also in lists, tuples, named tuples and dicts."""
    if type(value) is Intercepted:
        out = present(value)
        return out if type(out) is Tracer else np.array(plain(out))
    if type(value) in (list, tuple):
        return type(value)([_without_memory(item) for item in value])
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        more = {name: _without_memory(getattr(value, name)) for name in getattr(value, "_extra_fields", ())}
        return type(value)(*[_without_memory(item) for item in value], **more)
    if isinstance(value, dict):
        for key in list(value):
            value[key] = _without_memory(value[key])
    return value
