"""Names that modules import from NumPy and `math`: `from math import log` reaches func while a block is open.

`TracedModule` substitutes for attributes of `numpy` or `math` that code reads. A name that a module imported is in the
globals of that module instead. `func.intercept(modules=...)` puts a *chooser* there: an object that calls the
substitute in code that a transform runs, and the original everywhere else. It finds names by identity with the
originals. When the last block that lists a module ends, its choosers give way to the originals. Until then other
threads see choosers too, which do for them what the originals do.
"""

from __future__ import annotations

import importlib
import sys
from fnmatch import fnmatchcase
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from func.host.patching import SUBSTITUTES, Substitute, forwards_calls
from func.interpreters.core.errors import ArgumentError

if TYPE_CHECKING:
    from func.host.interception import Modules

_OWN = ("numpy", "scipy", "math", "func", "interpreters", "backends", "builtins")
"""Packages whose names stay."""


class Chooser:
    """Stands in for a function of NumPy or `math`, or for an object such as np.r_, among the globals of a module."""

    def __init__(self, substitute: Substitute) -> None:
        self._substitute = substitute
        self.__wrapped__ = substitute.original
        self.__doc__ = substitute.original.__doc__

    @forwards_calls
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._substitute.choice()(*args, **kwargs)

    def __getitem__(self, index: Any) -> Any:
        return self._substitute.choice()[index]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_substitute"].original, name)

    def __eq__(self, other: object) -> bool:
        return other is self or other is self.__wrapped__

    def __hash__(self) -> int:
        return hash(self.__wrapped__)

    def __repr__(self) -> str:
        return repr(self.__wrapped__)

    def __reduce__(self) -> Any:
        return _attribute, (self._substitute.module, self._substitute.name)


def _attribute(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)


class NumberChooser(type):
    """The type of classes that stand in for one of NumPy's numbers: np.float64 as a cast, and as a dtype."""

    __wrapped__: Any
    _substitute: Substitute

    @forwards_calls
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls._substitute.choice()(*args, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.__wrapped__)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.__wrapped__)

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is cls.__wrapped__

    def __hash__(cls) -> int:
        return hash(cls.__wrapped__)

    def __repr__(cls) -> str:
        return repr(cls.__wrapped__)


_CHOOSERS: dict[str, Any] = {}
"""The choosers, by the module and name of the original."""
_open: list[tuple[ModuleType, ...]] = []
"""The modules of each open block."""


def _chooser(substitute: Substitute) -> Any:
    key = f"{substitute.module}.{substitute.name}"
    known = _CHOOSERS.get(key)
    if known is None:
        original = substitute.original
        if isinstance(original, type):
            known = NumberChooser(original.__name__, (original,), {"__wrapped__": original, "_substitute": substitute})
        else:
            known = Chooser(substitute)
        known = _CHOOSERS.setdefault(key, known)
    return known


def listed_modules(modules: Modules) -> tuple[ModuleType, ...]:
    """The loaded modules that names, patterns and modules stand for, with their submodules.

    A name without a pattern is imported if it is not loaded.
    """
    listed = [modules] if isinstance(modules, (str, ModuleType)) else list(modules)
    found: dict[str, ModuleType] = {}
    for entry in listed:
        name = entry.__name__ if isinstance(entry, ModuleType) else entry
        if not isinstance(name, str) or not name:
            raise ArgumentError(f"func.intercept: modules holds {entry!r}, which is neither a module nor its name")
        if name.partition(".")[0] in _OWN:
            raise ArgumentError(
                f"func.intercept: modules holds {name!r}, but func has versions of the functions of NumPy, SciPy and "
                "math; list the modules that import these functions by name"
            )
        if not any([sign in name for sign in "*?["]) and name not in sys.modules:
            try:
                importlib.import_module(name)
            except ModuleNotFoundError as error:
                raise ArgumentError(f"func.intercept: modules holds {name!r}: {error}") from None
        matching = {
            other: module
            for other, module in list(sys.modules.items())
            if (other == name or other.startswith(f"{name}.") or fnmatchcase(other, name))
            and type(getattr(module, "__dict__", None)) is dict
            and other.partition(".")[0] not in _OWN
        }
        if not matching:
            raise ArgumentError(f"func.intercept: no loaded module has a name like {name!r}; import it first")
        found.update(matching)
    return tuple(found.values())


def rebind(modules: tuple[ModuleType, ...]) -> None:
    """Put choosers in place of the originals among the globals of modules, for a block that opens."""
    _open.append(modules)
    for names in map(vars, modules):
        for name, value in list(names.items()):
            substitute = SUBSTITUTES.get(id(value))
            if substitute is not None and substitute.original is value and value is not np.bool_:  # a final class
                names[name] = _chooser(substitute)


def restore(modules: tuple[ModuleType, ...]) -> None:
    """Put the originals back in modules of a block that ends, unless another open block lists them."""
    if modules in _open:
        _open.remove(modules)
    kept = {id(module) for others in _open for module in others}
    for names in [vars(module) for module in modules if id(module) not in kept]:
        for name, value in list(names.items()):
            if type(value) is Chooser or type(value) is NumberChooser:
                names[name] = value.__wrapped__
