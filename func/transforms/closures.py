"""Traced values that a function reaches without arguments, and the function rebuilt with others in their place."""

from __future__ import annotations

import copy
import functools
import types
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from func import tree
from func.interpreters.core import EVALUATE, Tracer
from func.transforms.transformed import Transformed

Maker: TypeAlias = Callable[[Sequence[Any]], Any]
"""From values for the traced parts of an object to the object with these in their place."""


def is_traced(value: Any) -> bool:
    """Whether a value belongs to a transform or is a tensor."""
    return type(value) is Tracer and value._interpreter is not EVALUATE


class Closure:
    """The traced values that a function finds by itself, and the function with others in their place.

    They are searched in closures, defaults, the globals of the function's module, partials, methods, lists, tuples,
    dicts, and the attributes of objects of the user's classes.
    """

    def __init__(self, function: Callable[..., Any], is_captured: Callable[[Any], bool] = is_traced) -> None:
        self.values: list[Tracer] = []
        self._is_captured = is_captured
        self._function = function
        self._known: dict[int, tuple[Any, Maker | None]] = {}
        self._copies: list[tuple[Any, Any, dict[str, Any]]] | None = []
        """Of each copy of an object that a call has made: the object, the copy, and the attributes of the copy."""
        self._make = self._maker(function)

    def rebuilt(self, values: Sequence[Any]) -> Callable[..., Any]:
        """The function with these values in the place of the traced ones."""
        return self._function if self._make is None else self._make(values)

    def write_back(self) -> None:
        """Give attributes that the first run has set on copies of objects, but for traced values, to the objects."""
        for original, twin, before in self._copies or ():
            for name, value in vars(twin).items():
                if type(value) is not Tracer and (name not in before or before[name] is not value):
                    setattr(original, name, value)
        self._copies = None

    def _maker(self, value: Any) -> Maker | None:
        """How to rebuild a value; None if it has no traced parts."""
        if self._is_captured(value):
            position = len(self.values)
            self.values.append(value)
            return lambda values: values[position]
        if id(value) in self._known:
            return self._known[id(value)][1]
        self._known[id(value)] = (value, None)  # a value that contains itself stays what it is there
        maker: Maker | None = None
        if isinstance(value, Transformed):
            maker = self._maker_of_parts([value.__wrapped__], lambda parts: value.of(parts[0]))
        elif isinstance(value, functools.partial):
            maker = self._maker_of_parts(
                [value.func, value.args, value.keywords],
                lambda parts: functools.partial(parts[0], *parts[1], **parts[2]),
            )
        elif isinstance(value, types.MethodType):
            parts = [value.__self__, value.__func__]
            maker = self._maker_of_parts(parts, lambda parts: types.MethodType(parts[1], parts[0]))
        elif isinstance(value, types.FunctionType):
            maker = self._maker_of_function(value)
        elif isinstance(value, (list, tuple, dict)):
            leaves, spec = tree.flatten(value)
            if not (len(leaves) == 1 and leaves[0] is value):
                maker = self._maker_of_parts(leaves, lambda parts: tree.unflatten(spec, parts))
        elif _is_object(value):
            maker = self._maker_of_object(value)
        self._known[id(value)] = (value, maker)
        return maker

    def _maker_of_parts(self, parts: Sequence[Any], build: Callable[[list[Any]], Any]) -> Maker | None:
        makers = [self._maker(part) for part in parts]
        if all([make is None for make in makers]):
            return None
        return lambda values: build(
            [part if make is None else make(values) for part, make in zip(parts, makers, strict=True)]
        )

    def _maker_of_function(self, function: types.FunctionType) -> Maker | None:
        """A function with other cells, defaults and globals."""
        cells = [_contents(cell) for cell in function.__closure__ or ()]
        namespace = function.__globals__
        used = {
            name: namespace[name]
            for name in sorted(_global_names(function.__code__))
            if name in namespace and _may_hold_traced(namespace[name], namespace)
        }

        def build(parts: list[Any]) -> Any:
            *contents, defaults, keyword_defaults, new_globals = parts
            closure = tuple(
                [
                    cell if new is old else types.CellType(new)
                    for cell, new, old in zip(function.__closure__ or (), contents, cells, strict=True)
                ]
            )
            around = namespace if new_globals is used else {**namespace, **new_globals}
            twin = types.FunctionType(function.__code__, around, function.__name__, defaults, closure or None)
            twin.__kwdefaults__ = keyword_defaults
            return twin

        return self._maker_of_parts([*cells, function.__defaults__, function.__kwdefaults__, used], build)

    def _maker_of_object(self, value: Any) -> Maker | None:
        """A copy of an object with other attributes."""
        attributes = dict(vars(value))

        def build(parts: list[Any]) -> Any:
            twin = copy.copy(value)
            vars(twin).update(zip(attributes, parts, strict=True))
            if self._copies is not None:
                self._copies.append((value, twin, dict(vars(twin))))
            return twin

        return self._maker_of_parts(list(attributes.values()), build)


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a name that is not yet bound
        return None


def _global_names(code: types.CodeType) -> set[str]:
    """The names that a function's code, and that of functions inside it, may look up among the globals."""
    inner = [_global_names(part) for part in code.co_consts if isinstance(part, types.CodeType)]
    return set(code.co_names).union(*inner)


def _may_hold_traced(value: Any, namespace: dict[str, Any]) -> bool:
    """Whether a global may hold traced values: anything but modules, classes and the functions of other modules."""
    if isinstance(value, types.FunctionType):
        return value.__globals__ is namespace
    return is_traced(value) or isinstance(value, (list, tuple, dict, functools.partial)) or _is_object(value)


def _is_object(value: Any) -> bool:
    """Whether a value is an object of one of the user's classes, whose attributes may be traced.

    Linear operators of SciPy hold functions of the user's, its sparse matrices may have traced entries.
    """
    kind = type(value)
    return (
        hasattr(value, "__dict__")
        and not isinstance(value, (type, types.ModuleType, types.FunctionType, np.ndarray))
        and (
            kind.__module__.partition(".")[0] not in ("builtins", "numpy", "scipy", "cupy", "func")
            or kind.__module__.removeprefix("func.").startswith("scipy.sparse")
        )
    )
