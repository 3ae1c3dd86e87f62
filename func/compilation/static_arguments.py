"""Static arguments of jitted functions: passed on unchanged, with one program for each of their values."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from func.host.patching import holds_tracer
from func.interpreters.core.errors import ArgumentError, StaticArgumentError
from func.interpreters.host.source import at_line
from func.interpreters.program.content_keys import typed_key
from func.transforms.boundary import name_of


class Static:
    """A static argument; equal to another one if no code can tell their values apart.

    Python's own equality is coarser: 0.0 == -0.0 and (1,) == (1.0,) == (True,).
    """

    __slots__ = ("key", "name", "value")

    def __init__(self, name: int | str, value: Any) -> None:
        self.name = name
        self.value = value
        self.key = (name, typed_key(value))

    def __reduce__(self) -> Any:
        return Static, (self.name, self.value)

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and self.key == other.key


class StaticArguments:
    """The static arguments of a function, by number and by name."""

    __slots__ = ("function", "names", "numbers")

    def __init__(self, function: Callable[..., Any], argnums: Any, argnames: Any) -> None:
        self.function = function
        self.numbers, self.names = places_of(function, argnums, argnames, "static")

    def __bool__(self) -> bool:
        return bool(self.numbers or self.names)

    def split(
        self, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> tuple[list[Any], dict[str, Any], tuple[Static, ...]]:
        """(traced positional, traced keyword, static) arguments."""
        out_of_range = [number for number in self.numbers if number >= len(args) and not self.names]
        if out_of_range:
            raise ArgumentError(
                f"func.jit: static_argnums={tuple(sorted(self.numbers))} is out of range, "
                f"{name_of(self.function)} was called with {len(args)} positional arguments"
            )
        fixed = [(i, args[i]) for i in sorted(self.numbers) if i < len(args)]
        named = [(name, kwargs[name]) for name in sorted(self.names) if name in kwargs]
        static_values: list[tuple[int | str, Any]] = [*fixed, *named]
        for name, value in static_values:
            self._check_hashable(name, value)
        traced_args = [arg for i, arg in enumerate(args) if i not in self.numbers]
        traced_kwargs = {name: value for name, value in kwargs.items() if name not in self.names}
        return traced_args, traced_kwargs, tuple([Static(name, value) for name, value in static_values])

    def _check_hashable(self, name: int | str, value: Any) -> None:
        try:
            hash(value)
            if holds_tracer(value):  # tensors hash by identity, and their values change
                raise TypeError
        except TypeError:
            what = f"argument {name}" if isinstance(name, int) else f"argument {name!r}"
            raise StaticArgumentError(
                f"func.jit: static {what} of {name_of(self.function)} is a {type(value).__name__}, which is not "
                f"hashable{at_line()}\nPass a tuple instead of a list, a frozen dataclass instead of a dict, or "
                "make the argument a traced one."
            ) from None

    def call(self, args: Sequence[Any], kwargs: dict[str, Any], statics: tuple[Static, ...]) -> Any:
        """The output of the function for arguments in the form of `split`."""
        fixed = {static.name: static.value for static in statics}
        named = {name: value for name, value in fixed.items() if isinstance(name, str)}
        count = len(args) + len(fixed) - len(named)
        remaining = iter(args)
        full = [fixed[i] if i in fixed else next(remaining) for i in range(count)]
        return self.function(*full, **kwargs, **named)


def argument_numbers(option: Any, name: str) -> frozenset[int]:
    """The positions in an option of jit called `name`: none, one or several."""
    if option is None:
        return frozenset()
    numbers = (option,) if isinstance(option, (int, np.integer)) else tuple(option)
    for number in numbers:
        if not isinstance(number, (int, np.integer)) or isinstance(number, bool):
            raise TypeError(f"func.jit: {name} must be an int or a sequence of ints, got {option!r}")
        if number < 0:
            raise ArgumentError(f"func.jit: {name}={option!r}: count positions from 0, negative ones are ambiguous")
    return frozenset([int(number) for number in numbers])


NOWHERE: tuple[frozenset[int], frozenset[str]] = (frozenset(), frozenset())
"""No positions, no names."""


def places_of(
    function: Callable[..., Any], argnums: Any, argnames: Any, option: str
) -> tuple[frozenset[int], frozenset[str]]:
    """The positions and names in two options of jit, each completed from the other by the signature."""
    if argnums is None and argnames is None:
        return NOWHERE
    numbers = set(argument_numbers(argnums, f"{option}_argnums"))
    is_iterable = argnames is None or isinstance(argnames, Iterable)
    names: set[Any] = {argnames} if isinstance(argnames, str) or not is_iterable else set(argnames or ())
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"func.jit: {option}_argnames must be a string or strings, got {argnames!r}")
    if not numbers and not names:
        return NOWHERE
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return frozenset(numbers), frozenset(names)
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    takes_any = any([p.kind == p.VAR_KEYWORD for p in parameters])
    known = {p.name for p in parameters}
    unknown = names - known
    if unknown and not takes_any:
        raise ArgumentError(
            f"func.jit: {option}_argnames names {sorted(unknown)}, but {name_of(function)} takes {sorted(known)}"
        )
    outside = sorted([number for number in numbers if number >= len(positional)])
    if outside and not any([p.kind == p.VAR_POSITIONAL for p in parameters]):
        raise ArgumentError(
            f"func.jit: {option}_argnums={tuple(outside)} is out of range, {name_of(function)} takes "
            f"{len(positional)} positional arguments"
        )
    names |= {positional[number] for number in numbers if number < len(positional)}
    numbers |= {positional.index(name) for name in names if name in positional}
    return frozenset(numbers), frozenset(names)
