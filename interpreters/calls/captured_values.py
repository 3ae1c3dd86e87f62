"""The values that a function reads from outside its arguments, and the random numbers that it draws under trace.

A traced function runs once, and its program repeats the values that it read. Comparing the states of all reachable
generators before and after the trace shows whether the function drew numbers.
"""

from __future__ import annotations

import contextlib
import copy
import ctypes
import dis
import functools
import sys
import types
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from func.interpreters.core import Tracer
from func.interpreters.core.errors import FrozenValueWarning
from func.interpreters.host.source import is_engine_file, user_line

DEPTH = 4
"""The depth to which functions that call functions, and containers in containers, are followed."""
PLAIN = (int, float, complex, str, bytes, bool, type(None), np.generic, range)
_DATA = (*PLAIN, np.ndarray, tuple, list, dict, set, frozenset, Tracer)


def warn_of_frozen(message: str) -> None:
    line = user_line(2)
    if line is None:
        warnings.warn(message, FrozenValueWarning, stacklevel=3)
    else:
        warnings.warn_explicit(message, FrozenValueWarning, line.file, line.number)


def _is(value: Any, kinds: Any) -> bool:
    """isinstance by the type alone: `__class__` of an object may be code of the user's."""
    return issubclass(type(value), kinds)


def _own_attributes(value: Any) -> dict[str, Any]:
    """The attributes in an object's dictionary, read past its own `__getattr__` and properties."""
    try:
        attributes = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return attributes if type(attributes) is dict else {}


def _data_of_class(kind: type, names: Iterable[str]) -> dict[str, Any]:
    """Those attributes with these names of a class and its bases that are data."""
    bases = [vars(base) for base in type.__getattribute__(kind, "__mro__")]
    found = {}
    for name in names:
        for attributes in bases:
            if name in attributes and name[:2] != "__" and _is_data(attributes[name]):
                found[name] = attributes[name]
                break
    return found


RANDOM = "numpy.random"
UNUSED = "unused"
"""In place of the state of a generator whose module has not been imported."""


def _generators() -> tuple[type, ...]:
    """The class of NumPy's generators and that of its old ones; none before their module is imported."""
    random = sys.modules.get(RANDOM)
    return () if random is None else (random.Generator, random.RandomState)


class _OutsideReads:
    """Finds the values that a function reads from outside its arguments, {path: value}, without running user code."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.codes: list[types.CodeType] = []
        """The code of all functions."""
        self._seen: set[int] = set()

    def function(self, function: Any, path: str = "", depth: int = DEPTH) -> None:
        """Note the values that a function, a method, a partial or a callable object reads."""
        while _is(function, functools.partial):
            for place, value in [*enumerate(function.args), *function.keywords.items()]:
                self.value(f"{path}argument {place}", value, (), depth)
            wrapped = _own_attributes(function).get("__wrapped__")
            function = function.func if wrapped is None else wrapped
        if id(function) in self._seen or depth == 0:
            return
        self._seen.add(id(function))
        if type(function) is types.MethodType:
            self._method(function.__func__, function.__self__, path, depth)
        elif type(function) is types.FunctionType:
            self._plain_function(function, path, depth)
        elif (wrapped := _own_attributes(function).get("__wrapped__")) is not None:
            self.function(wrapped, path, depth)
        elif isinstance(call := vars(type(function)).get("__call__"), types.FunctionType):
            self._method(call, function, path, depth)

    def _method(self, function: Any, instance: Any, path: str, depth: int) -> None:
        if not isinstance(function, types.FunctionType) or is_engine_file(function.__code__.co_filename):
            return
        self.value(f"{path}self", instance, _names(function.__code__), depth)
        self._plain_function(function, path, depth)

    def _plain_function(self, function: types.FunctionType, path: str, depth: int) -> None:
        if wrapped := getattr(function, "__wrapped__", None):
            self.function(wrapped, path, depth)
        names = _names(function.__code__)
        if is_engine_file(function.__code__.co_filename):
            self._wrapped_by_engine(function, path, depth)
            return
        self.codes.append(function.__code__)
        for place, value in enumerate(function.__defaults__ or ()):
            self.value(f"{path}default {place}", value, names, depth)
        for name, value in (function.__kwdefaults__ or {}).items():
            self.value(f"{path}default {name}", value, names, depth)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            with contextlib.suppress(ValueError):  # an empty cell
                self.value(path + name, cell.cell_contents, names, depth)
        for name in _global_names(function.__code__):
            if name in function.__globals__:
                self.value(path + name, function.__globals__[name], names, depth)

    def _wrapped_by_engine(self, function: types.FunctionType, path: str, depth: int) -> None:
        """The user's functions in the scope of one of the engine's."""
        for cell in function.__closure__ or ():
            with contextlib.suppress(ValueError):
                if callable(cell.cell_contents) and not _is(cell.cell_contents, type):
                    self.function(cell.cell_contents, path, depth)

    def value(self, path: str, value: Any, names: tuple[str, ...], depth: int) -> None:
        """Note a value that a function with these names reads."""
        owner = value.__self__ if type(value) in (types.MethodType, types.BuiltinMethodType) else None
        legacy = sys.modules.get(RANDOM)
        if (
            (legacy is not None and value is legacy)
            or (value is np and "random" in names)
            or _is(owner, _generators()[1:])
        ):
            self.values[RANDOM] = np.random.mtrand._rand
        elif (random := sys.modules.get("random")) is not None and (value is random or _is(owner, random.Random)):
            self.values["random"] = random
        elif _is(value, (types.FunctionType, types.MethodType, functools.partial)):
            self.function(value, f"{path}: ", depth - 1)
        elif _is(value, types.ModuleType):
            if value.__name__.partition(".")[0] not in ("numpy", "func", "scipy", "math"):
                self._attributes(path, vars(value), names, depth)
        elif _is_data(value) or _is(value, _generators()):
            self.values[path] = value
        elif _is(value, type):
            self._attributes(path, _data_of_class(value, names) if depth else {}, names, depth)
        else:
            attributes = {**_data_of_class(type(value), names), **_own_attributes(value)} if depth else {}
            self._attributes(path, attributes, names, depth)

    def _attributes(self, path: str, attributes: dict[str, Any], names: tuple[str, ...], depth: int) -> None:
        if depth:
            for name in names:
                if name in attributes and not _is(attributes[name], types.ModuleType):
                    self.value(f"{path}.{name}", attributes[name], names, depth - 1)


def _names(code: types.CodeType) -> tuple[str, ...]:
    """The names of globals and attributes in a function, and in the functions inside it."""
    inner = [name for part in code.co_consts if isinstance(part, types.CodeType) for name in _names(part)]
    return tuple(dict.fromkeys([*code.co_names, *inner]))


@functools.lru_cache(1024)
def _global_names(code: types.CodeType) -> tuple[str, ...]:
    """The names of globals in a function, and in the functions inside it."""
    inner = [name for part in code.co_consts if isinstance(part, types.CodeType) for name in _global_names(part)]
    own = [step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")]
    return tuple(dict.fromkeys([*own, *inner]))


def _is_data(value: Any) -> bool:
    return issubclass(type(value), _DATA)


def read_by(function: Callable[..., Any]) -> dict[str, Any]:
    """The values that a function reads from outside its arguments, as far as visible."""
    reader = _OutsideReads()
    reader.function(function)
    return reader.values


def code_and_values(function: Callable[..., Any]) -> tuple[list[types.CodeType], dict[str, Any]]:
    """The code of a function and of those that it calls, and the values that they read, as far as visible."""
    reader = _OutsideReads()
    reader.function(function)
    return reader.codes, reader.values


def _comparable(state: Any) -> Any:
    """A generator's state as tuples."""
    if isinstance(state, dict):
        return tuple([(name, _comparable(value)) for name, value in state.items()])
    return state.tobytes() if isinstance(state, np.ndarray) else state


def _shared_state() -> Any:
    """Most of the state of the generator behind numpy.random.random() and its like, at little cost.

    It reads the words of a Mersenne twister and its position in place. This misses a normal number that is stored for
    the next call; functions that name numpy.random get a closer look.
    """
    if RANDOM not in sys.modules:  # its import takes longer than tracing a small function
        return UNUSED
    generator = np.random.mtrand._rand._bit_generator
    if type(generator) is np.random.MT19937:
        return ctypes.string_at(generator.ctypes.state_address, 4 * 625)
    return _comparable(generator.state)


def _is_unused() -> bool:
    """Whether the generator behind numpy.random has drawn nothing since its import."""
    state, fresh = [bits.state["state"] for bits in (np.random.mtrand._rand._bit_generator, np.random.MT19937())]
    return bool(state["pos"] == fresh["pos"] and state["key"][0] == fresh["key"][0])


def _random_states(function: Callable[..., Any]) -> dict[str, Any]:
    """The states of the generators that a function can reach, by their names."""
    states: dict[str, Any] = {RANDOM: _shared_state()}
    for path, value in read_by(function).items():
        if _is(value, types.ModuleType):
            states[path] = value.getstate()
        elif _is(value, _generators()[:1]):
            states[path] = _comparable(value.bit_generator.state)
        elif _is(value, _generators()[1:]):
            states[path] = _comparable(value.get_state(legacy=False))
    return states


class noticing_random_numbers:
    """Warn at the end if the function inside has drawn random numbers, which its program will repeat."""

    __slots__ = ("before", "function", "transform")

    def __init__(self, function: Callable[..., Any], transform: str) -> None:
        self.function = function
        self.transform = transform

    def __enter__(self) -> None:
        self.before = _random_states(self.function)

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is not None:
            return
        after = _random_states(self.function)
        if self.before[RANDOM] is UNUSED and (after[RANDOM] is UNUSED or _is_unused()):
            after[RANDOM] = UNUSED
        drawn = [name for name, state in self.before.items() if state != after.get(name, state)]
        if drawn:
            warn_of_frozen(
                f"func.{self.transform} traced a function that draws random numbers from {', '.join(drawn)}: its "
                "program repeats the numbers of this one run\nDraw them outside and pass them, or pass keys of "
                "func.random."
            )


class restoring_random_numbers:
    """Inside, a function may draw; at the end the generators that it can reach get their former states back."""

    __slots__ = ("function", "restore")

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __enter__(self) -> None:
        generator = np.random.mtrand._rand
        self.restore: list[Callable[[], Any]] = [functools.partial(generator.set_state, generator.get_state())]
        for value in read_by(self.function).values():
            if _is(value, types.ModuleType):
                self.restore.append(functools.partial(value.setstate, value.getstate()))
            elif _is(value, np.random.Generator):
                bits = value.bit_generator
                self.restore.append(functools.partial(setattr, bits, "state", copy.deepcopy(bits.state)))
            elif _is(value, np.random.RandomState):
                self.restore.append(functools.partial(value.set_state, value.get_state()))

    def __exit__(self, *exception: object) -> None:
        for restore in self.restore:
            restore()
