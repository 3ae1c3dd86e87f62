"""Traced values that a function reaches without arguments, and the function rebuilt with others in their place."""

from __future__ import annotations

import copy
import dataclasses
import functools
import types
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from func.interpreters.core import EVALUATE, Tracer
from func.transforms.transformed import Transformed

_Own: TypeAlias = Callable[[Any], Any]
"""From a value of a rebuilt function to the caller's value for which it stands."""


@dataclasses.dataclass(slots=True)
class _Build:
    """One rebuilding of a function."""

    values: Sequence[Any]
    """The replacements of the traced values."""
    replacements: dict[int, Any] = dataclasses.field(default_factory=dict)
    """The replacement of each object, container or cell, by its id; all references share it."""
    places: list[_CopiedNames] = dataclasses.field(default_factory=list)


class _CopiedNames(NamedTuple):
    """Names or positions with values: of an object, a namespace, a cell, a list or a dict."""

    original: Any
    twin: Any
    before: Any
    """The first content of the replacement."""
    read: Callable[[Any], Any]
    write: Callable[[Any, Any, Any, _Own], None]
    """Copies the content of the twin to the original: (the original, the twin's first content, the present one)."""


Maker: TypeAlias = Callable[[_Build], Any]
"""From values for the traced parts of an object to the object with these in their place."""


def is_traced(value: Any) -> bool:
    """Whether a value belongs to a transform or is a tensor."""
    return type(value) is Tracer and value._interpreter is not EVALUATE


class Closure:
    """The traced values that a function reaches by itself, and the function with others in their place.

    Searches closures, defaults, the globals of the function's module, partials, methods, lists, tuples, dicts, and the
    attributes of objects of the user's classes.
    """

    def __init__(
        self, function: Callable[..., Any], is_captured: Callable[[Any], bool] = is_traced, stores: bool = False
    ) -> None:
        """`stores`: whether the caller will call `write_back`; otherwise nothing refers to the replacements."""
        self.values: list[Tracer] = []
        self._is_captured = is_captured
        self._function = function
        self._known: dict[int, tuple[Any, Maker | None]] = {}
        self._first: _Build | None = None
        self._arguments: tuple[list[_CopiedNames], dict[int, Any]] = [], {}
        """The copies of containers that the first run gets as arguments; the caller's containers, by ids of copies."""
        self._is_written_back = not stores
        self._make = self._maker(function)

    def rebuilt(self, values: Sequence[Any]) -> Callable[..., Any]:
        """The function with these values instead of the traced ones."""
        if self._make is None:
            return self._function
        build = _Build(values)
        if self._first is None and not self._is_written_back:
            self._first = build
        return self._make(build)  # type: ignore[no-any-return]

    def write_back(self) -> None:
        """Copy values that the first run stored in copies of attributes, variables, globals, lists and dicts to the
        originals.
        """
        build, self._first, self._is_written_back = self._first, None, True
        (places, own), self._arguments = self._arguments, ([], {})
        if build is not None:
            places = [*places, *build.places]
            own |= {id(replacement): value for replacement, value in zip(build.values, self.values, strict=True)}
        own |= {id(place.twin): place.original for place in places}
        for place in places:
            now = place.read(place.twin)
            if not _is_same(now, place.before):
                place.write(place.original, place.before, now, lambda value: own.get(id(value), value))

    def note_arguments(self, trees: Any, copied: Any) -> None:
        """Note the caller's argument trees, and the copies of them that the first run gets."""
        if not self._is_written_back:
            _note_copies(trees, copied, *self._arguments)

    def _maker(self, value: Any) -> Maker | None:
        """The way to rebuild a value; None if it has no traced parts."""
        if self._is_captured(value):
            position = len(self.values)
            self.values.append(value)
            return lambda build: build.values[position]
        if id(value) in self._known:
            return self._known[id(value)][1]
        self._known[id(value)] = (value, None)  # a value that contains itself stays unchanged there
        maker: Maker | None = None
        if isinstance(value, Transformed):
            maker = self._maker_of_parts([value.__wrapped__], lambda build, parts: value.of(parts[0]))
        elif isinstance(value, functools.partial):
            maker = self._maker_of_parts(
                [value.func, value.args, value.keywords],
                lambda build, parts: functools.partial(parts[0], *parts[1], **parts[2]),
            )
        elif isinstance(value, types.MethodType):
            maker = self._maker_of_parts(
                [value.__self__, value.__func__], lambda build, parts: types.MethodType(parts[1], parts[0])
            )
        elif isinstance(value, types.FunctionType):
            maker = self._maker_of_function(value)
        elif isinstance(value, (list, dict)):
            maker = self._maker_of_container(value)
        elif isinstance(value, tuple):
            maker = self._maker_of_parts(list(value), lambda build, parts: _tuple_of(value, parts))
        elif _is_object(value):
            maker = self._maker_of_object(value)
        if maker is not None:
            maker = _once(id(value), maker)
        self._known[id(value)] = (value, maker)
        return maker

    def _maker_of_parts(self, parts: Sequence[Any], construct: Callable[[_Build, list[Any]], Any]) -> Maker | None:
        makers = [self._maker(part) for part in parts]
        if all([make is None for make in makers]):
            return None
        return lambda build: construct(
            build, [part if make is None else make(build) for part, make in zip(parts, makers, strict=True)]
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

        def construct(build: _Build, parts: list[Any]) -> Any:
            contents, rest = parts[: len(cells)], parts[len(cells) :]
            defaults, keyword_defaults, *globals_now = rest
            closure = tuple(
                [
                    cell if new is old else _twin_of_cell(build, cell, new)
                    for cell, new, old in zip(function.__closure__ or (), contents, cells, strict=True)
                ]
            )
            changed = {name: new for (name, old), new in zip(used.items(), globals_now, strict=True) if new is not old}
            around = _twin_of_namespace(build, namespace, changed) if changed else namespace
            twin = types.FunctionType(function.__code__, around, function.__name__, defaults, closure or None)
            twin.__kwdefaults__ = keyword_defaults
            return twin

        return self._maker_of_parts([*cells, function.__defaults__, function.__kwdefaults__, *used.values()], construct)

    def _maker_of_container(self, value: list[Any] | dict[Any, Any]) -> Maker | None:
        """A copy of a list or a dict, of the same type, with other values."""
        keys = list(value) if isinstance(value, dict) else None

        def construct(build: _Build, parts: list[Any]) -> Any:
            twin = copy.copy(value)
            _refill(twin, None, parts if keys is None else dict(zip(keys, parts, strict=True)), _as_it_is)
            build.places.append(_CopiedNames(value, twin, _content(twin), _content, _refill))
            return twin

        return self._maker_of_parts(list(value.values() if isinstance(value, dict) else value), construct)

    def _maker_of_object(self, value: Any) -> Maker | None:
        """A copy of an object with other attributes."""
        attributes = dict(vars(value))

        def construct(build: _Build, parts: list[Any]) -> Any:
            twin = copy.copy(value)
            _refill(vars(twin), None, dict(zip(attributes, parts, strict=True)), _as_it_is)
            build.places.append(_CopiedNames(value, twin, dict(vars(twin)), _attributes, _set_attributes))
            return twin

        return self._maker_of_parts(list(attributes.values()), construct)


def _once(key: int, make: Maker) -> Maker:
    """A maker with one result per rebuilding."""

    def make_once(build: _Build) -> Any:
        if key not in build.replacements:
            build.replacements[key] = make(build)
        return build.replacements[key]

    return make_once


def _twin_of_cell(build: _Build, cell: types.CellType, content: Any) -> types.CellType:
    """The replacement of a cell with a traced value, shared by all functions that share the cell."""
    if id(cell) not in build.replacements:
        twin = build.replacements[id(cell)] = types.CellType(content)
        build.places.append(_CopiedNames(cell, twin, [content], lambda cell: [_contents(cell)], _set_cell))
    return build.replacements[id(cell)]  # type: ignore[no-any-return]


def _twin_of_namespace(build: _Build, namespace: dict[str, Any], changed: dict[str, Any]) -> dict[str, Any]:
    """The replacement of a module's globals, with other values for some names."""
    if id(namespace) not in build.replacements:
        twin = build.replacements[id(namespace)] = dict(namespace)
        build.places.append(_CopiedNames(namespace, twin, dict(twin), dict, _update_changed))
    around: dict[str, Any] = build.replacements[id(namespace)]
    before = next(place.before for place in build.places if place.twin is around)
    around.update(changed)
    before.update(changed)
    return around


def _note_copies(original: Any, twin: Any, places: list[_CopiedNames], own: dict[int, Any]) -> None:
    """Note the containers and nodes of a copied tree, and its leaves."""
    if original is twin:
        return
    if isinstance(original, (list, dict)):
        places.append(_CopiedNames(original, twin, _content(twin), _content, _refill))
        for key in range(len(original)) if isinstance(original, list) else original:
            _note_copies(original[key], twin[key], places, own)
    elif isinstance(original, tuple):
        for part, twin_part in zip(original, twin, strict=True):
            _note_copies(part, twin_part, places, own)
    elif type(original) is type(twin) and hasattr(original, "__dict__") and not isinstance(original, np.ndarray):
        places.append(_CopiedNames(original, twin, _attributes(twin), _attributes, _set_attributes))
        for name in vars(original).keys() & vars(twin).keys():
            _note_copies(vars(original)[name], vars(twin)[name], places, own)
    else:
        own[id(twin)] = original


def _content(container: Any) -> Any:
    """The values of a list or a dict, apart from it."""
    return dict(container) if isinstance(container, dict) else list(container)


def _as_it_is(value: Any) -> Any:
    return value


def _refill(container: Any, before: Any, now: Any, own: _Own) -> None:
    """Give a list or a dict other values."""
    container.clear()
    if isinstance(container, dict):
        container.update({key: own(value) for key, value in now.items()})
    else:
        container.extend([own(value) for value in now])


def _attributes(value: Any) -> dict[str, Any]:
    return dict(vars(value))


def _set_attributes(value: Any, before: dict[str, Any], now: dict[str, Any], own: _Own) -> None:
    _update_changed(vars(value), before, now, own)


def _update_changed(names: dict[str, Any], before: dict[str, Any], now: dict[str, Any], own: _Own) -> None:
    """Set and delete only the names that differ now: the rest may have changed meanwhile."""
    for name in before.keys() - now.keys():
        names.pop(name, None)
    for name, value in now.items():
        if name not in before or before[name] is not value:
            names[name] = own(value)


def _set_cell(cell: types.CellType, before: list[Any], now: list[Any], own: _Own) -> None:
    cell.cell_contents = own(now[0])


def _is_same(now: Any, before: Any) -> bool:
    """Whether two lists or dicts contain the same objects in the same order."""
    if len(now) != len(before):
        return False
    if isinstance(now, dict):
        pairs = zip(now.items(), before.items(), strict=True)
        return all([key is old_key and value is old for (key, value), (old_key, old) in pairs])
    return all([value is old for value, old in zip(now, before, strict=True)])


def _tuple_of(value: tuple[Any, ...], parts: list[Any]) -> Any:
    """A tuple of the same type, without a call of its class."""
    twin = tuple.__new__(type(value), parts)
    if hasattr(value, "__dict__"):
        vars(twin).update(vars(value))
    return twin


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a name that is not yet bound
        return None


def _global_names(code: types.CodeType) -> set[str]:
    """The names that a function's code, and that of functions inside it, may look up in the globals."""
    nested = [_global_names(part) for part in code.co_consts if isinstance(part, types.CodeType)]
    return set(code.co_names).union(*nested)


def _may_hold_traced(value: Any, namespace: dict[str, Any]) -> bool:
    """Whether a global may contain traced values: anything but modules, classes and functions of other modules."""
    if isinstance(value, types.FunctionType):
        return value.__globals__ is namespace
    return is_traced(value) or isinstance(value, (list, tuple, dict, functools.partial)) or _is_object(value)


def _is_object(value: Any) -> bool:
    """Whether a value is an object of one of the user's classes, whose attributes may be traced.

    Linear operators contain users' functions and residuals, sparse matrices may contain traced entries.
    """
    kind = type(value)
    return (
        hasattr(value, "__dict__")
        and not isinstance(value, (type, types.ModuleType, types.FunctionType, np.ndarray))
        and (
            kind.__module__.partition(".")[0] not in ("builtins", "numpy", "scipy", "cupy", "func")
            or kind.__module__.removeprefix("func.").startswith(("curvature", "scipy.sparse"))
        )
    )
