"""Public functions without individual wrappers: errors leave them without the engine's frames.

A wrapper with `*args, **kwargs` would cost a quarter of a microsecond for keywords, as much as a small function of
NumPy. So a wrapper has the parameters of its function and passes them on one by one, at the price of a call of Python.
Its code is compiled once for each shape of parameters; the names and defaults are put in.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Mapping
from types import CodeType, FunctionType
from typing import Any, TypeVar, cast

from func.interpreters.core.wiring import WIRING
from func.interpreters.host.source import hide_engine_frames
from func.interpreters.host.swallowed_errors import hide_outside

Function = TypeVar("Function", bound=Callable[..., Any])

_TEMPLATE = """
def wrapper_of(_function, _hide):
    def wrapper({parameters}):
        try:
            return _function({passed})
        except Exception as _error:
            _hide(_error)
            raise
    return wrapper
"""


@functools.lru_cache(None)
def _factory(positional: int, positional_only: int, keywords: int, flags: int) -> Callable[..., FunctionType]:
    """A function that makes the wrapper of a function with parameters of this shape, named p0, p1, ..."""
    names = [f"p{i}" for i in range(positional + keywords)]
    rest = "*more" if flags & inspect.CO_VARARGS else ""
    parameters, passed = names[:positional], [*names[:positional]]
    if positional_only:
        parameters.insert(positional_only, "/")
    if rest or keywords:
        parameters.append(rest or "*")
    passed += [rest] if rest else []
    parameters += names[positional:]
    passed += [f"{name}={name}" for name in names[positional:]]
    if flags & inspect.CO_VARKEYWORDS:
        parameters.append("**options")
        passed.append("**options")
    text = _TEMPLATE.format(parameters=", ".join(parameters), passed=", ".join(passed))
    variables: dict[str, Any] = {}
    exec(compile(text, "<func.wrapper>", "exec"), variables)
    made: Callable[..., FunctionType] = variables["wrapper_of"]
    return made


def _named(code: CodeType, names: dict[str, str], like: CodeType) -> CodeType:
    """The code of a wrapper with the names of a function's parameters, and its place in the source."""

    def renamed(constant: Any) -> Any:
        return tuple([names.get(n, n) for n in constant]) if type(constant) is tuple else names.get(constant, constant)

    return code.replace(
        co_varnames=tuple([names.get(name, name) for name in code.co_varnames]),
        co_consts=tuple([renamed(c) if type(c) in (tuple, str) else c for c in code.co_consts]),
        co_name=like.co_name,
        co_qualname=like.co_qualname,
        co_filename=like.co_filename,
        co_firstlineno=like.co_firstlineno,
    )


_WRAPPERS: set[Callable[..., Any]] = set()


def at_boundary(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with its parameters, from which errors come without the engine's frames when no transform runs."""
    if type(function) is not FunctionType or function in _WRAPPERS:
        return function
    code = function.__code__
    positional, keywords = code.co_argcount, code.co_kwonlyargcount
    flags = code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    template = _factory(positional, code.co_posonlyargcount, keywords, flags)(function, hide_outside)
    own = code.co_varnames[: positional + keywords + flags.bit_count()]
    names = dict(zip(template.__code__.co_varnames, own, strict=False))  # behind them the wrapper has a variable more
    wrapper = FunctionType(
        _named(template.__code__, names, code),
        function.__globals__,
        function.__name__,
        function.__defaults__,
        template.__closure__,
    )
    wrapper.__kwdefaults__ = function.__kwdefaults__
    functools.update_wrapper(wrapper, function)
    _WRAPPERS.add(wrapper)
    return wrapper


def behind(function: Any) -> Any:
    """The function that a wrapper of `at_boundary` calls; other objects unchanged."""
    return vars(function)["__wrapped__"] if type(function) is FunctionType and function in _WRAPPERS else function


def put_at_boundary(namespace: dict[str, Any]) -> None:
    """Let errors leave the functions and classes of a public module's `__all__` without the engine's frames.

    Other modules of func call the functions themselves. The wrappers say that they are of the public module, so that
    they are pickled by the name that users know.
    """
    own = {name: namespace[name] for name in namespace["__all__"] if name in namespace}
    for name, value in own.items():
        own_name = value.__name__ if type(value) is FunctionType else name
        is_public = own_name in own and own[own_name] is value
        namespace[name] = _public(value, namespace["__name__"], own_name if is_public else name)


def late_value(namespace: dict[str, Any], name: str, places: Mapping[str, str]) -> Any:
    """A value of a public module, imported now, as `put_at_boundary` would have put it there.

    `places` has the module and the name of each such value, as `module:name`.
    """
    place, _, own = places[name].partition(":")
    value = getattr(importlib.import_module(place), own)
    public = own if places.get(own) == places[name] else name
    return namespace.setdefault(name, _public(value, namespace["__name__"], public))


_PUBLIC: dict[tuple[str, Callable[..., Any]], Callable[..., Any]] = {}
"""The wrappers in public modules: those of two names for one function are the same."""


def _public(value: Any, module: str, name: str) -> Any:
    """A value for a public module: a function of func behind a wrapper that belongs to that module."""
    if isinstance(value, type):
        for kind in value.__mro__:
            put_methods_at_boundary(kind)
    if type(value) is not FunctionType or not _is_of_func(value) or value in _WRAPPERS:
        return value
    wrapper = _PUBLIC.get((module, value))
    if wrapper is None:
        wrapper = at_boundary(value)
        wrapper.__module__, wrapper.__qualname__ = module, name
        wrapper = _PUBLIC.setdefault((module, value), wrapper)
    return wrapper


def _is_of_func(function: FunctionType) -> bool:
    return str(function.__globals__.get("__name__")).startswith("func.")


def put_methods_at_boundary(kind: type) -> None:
    """The same for the methods and properties that a class of func defines."""
    if not kind.__module__.startswith("func."):
        return
    for name, value in list(vars(kind).items()):
        if name[0] == "_" and not name.startswith("__"):
            continue
        if isinstance(value, (classmethod, staticmethod)):
            setattr(kind, name, type(value)(at_boundary(value.__func__)))
        elif isinstance(value, property):
            read, write, delete = [f and at_boundary(f) for f in (value.fget, value.fset, value.fdel)]
            setattr(kind, name, property(read, write, delete, value.__doc__))
        elif type(value) is FunctionType:
            setattr(kind, name, at_boundary(value))


def without_engine_frames(function: Function) -> Function:
    """Decorate a public function: errors leave it without the engine's frames, and peers' names of options are known.

    Transforms hide the frames of code inside them, so this serves calls outside of them.
    """

    @functools.wraps(function)
    def function_at_boundary(*args: Any, **kwargs: Any) -> Any:
        while True:
            try:
                return function(*args, **kwargs)
            except Exception as error:
                hide_engine_frames(error)
                if not kwargs or type(error) is not TypeError:
                    raise
                renamed = WIRING.renamed_options(function, args, kwargs, error)
                if renamed is None:
                    raise
            kwargs = renamed

    return cast(Function, function_at_boundary)
