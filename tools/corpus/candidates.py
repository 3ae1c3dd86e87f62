"""The functions of an installed package."""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import inspect
import pkgutil
import random
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

_NO_MODULES = (
    "test tests testing conftest __main__ setup example examples benchmark benchmarks plot plots plotting graphics gui "
    "vendor _vendor extern externals datasets data io cli docs sandbox"
)
_NO_FUNCTIONS = (
    "plot show save write load read download delete remove open print test main install fetch export import display "
    "draw animate input random rand simulate benchmark"
)


def module_names(package: str) -> list[str]:
    """The package and its modules, without tests, plots, data and the like."""
    names = [package]
    root = importlib.import_module(package)
    for name in _walked(package, getattr(root, "__path__", [])):
        names.append(name)
    return sorted(names)


def intercepted_modules(package: str, corpus: Sequence[str]) -> list[str]:
    """The package, and the corpus packages that it needs: its functions call theirs."""
    found = [package]
    for name in found:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            needed = [re.split(r"[^\w-]", text)[0] for text in importlib.metadata.requires(name) or ()]
            found += [other for other in needed if other in corpus and other not in found]
    return found


def _walked(package: str, path: Any) -> Iterator[str]:
    for info in pkgutil.iter_modules(path, f"{package}."):
        if info.name.rpartition(".")[2] in _NO_MODULES.split():
            continue
        yield info.name
        if info.ispkg and (module := _imported(info.name)) is not None:
            yield from _walked(info.name, module.__path__)


def _imported(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except KeyboardInterrupt:
        raise
    except BaseException:  # modules that need other packages, and scripts that exit
        return None


def candidates(package: str, seed: int) -> list[tuple[str, Callable[..., Any]]]:
    """Public functions under the names of the modules that define them, in an order that the seed chooses."""
    found: dict[str, Callable[..., Any]] = {}
    for name in module_names(package):
        if (module := _imported(name)) is None:
            continue
        for attribute, value in list(vars(module).items()):
            if _is_candidate(attribute, value, name):
                found[f"{name}.{attribute}"] = value
    ordered = sorted(found)
    random.Random(f"{seed}:{package}").shuffle(ordered)
    return [(name, found[name]) for name in ordered]


def _is_candidate(attribute: str, value: Any, module: str) -> bool:
    if attribute.startswith("_") or isinstance(value, type) or not callable(value):
        return False
    if getattr(value, "__module__", None) != module or any(word in attribute.lower() for word in _NO_FUNCTIONS.split()):
        return False
    if not (inspect.isfunction(value) or is_compiled(value) or inspect.isfunction(getattr(value, "__wrapped__", None))):
        return False
    return not (inspect.iscoroutinefunction(value) or inspect.isgeneratorfunction(value))


def is_compiled(value: Any) -> bool:
    """Whether a function is one that Numba has compiled."""
    numba = sys.modules.get("numba")
    return numba is not None and isinstance(value, numba.core.dispatcher.Dispatcher)
