"""What the decorators of custom rules share: functions of flat leaves, arguments that a rule does not see."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from func import conversion, tree
from func.door import array_leaf, check_callable, name_of
from func.interpreters.core import Array, Tracer, snapshot
from func.interpreters.errors import ArgumentError

__all__ = ["CustomRule", "FlatFunction", "bound_arguments", "fixed_places", "lent", "nothing_traced"]


def lent(values: Sequence[Array]) -> list[Array]:
    """The engine's values as a user's function may have them: writing to one changes neither graph nor argument."""
    return [value.copy() if type(value) is np.ndarray else snapshot(value) for value in values]


@dataclass(eq=False)
class FlatFunction:
    """A user's function on flat leaves; remembers the tree of its latest output."""

    function: Callable[..., Any]
    in_spec: Any
    out_spec: Any = None

    def __call__(self, *leaves: Array) -> list[Array]:
        args = tree.unflatten(self.in_spec, lent(leaves))
        outs, self.out_spec = tree.flatten(self.function(*args))
        return [array_leaf(out, "output", "custom rule") for out in outs]


def nothing_traced(args: Any) -> bool:
    """Whether a function with a rule can just be called: no transform runs, and no tensor is among the arguments."""
    return not conversion.is_tracing() and not any([type(leaf) is Tracer for leaf in tree.leaves(args)])


def bound_arguments(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Positional arguments, with keywords and defaults put in their places."""
    if not kwargs:
        return args
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except ValueError:
        raise TypeError(f"{name_of(function)} has a custom rule and takes positional arguments only") from None
    bound.apply_defaults()
    if bound.kwargs:
        raise TypeError(f"{name_of(function)} has a custom rule and cannot take keyword-only arguments")
    return bound.args


def fixed_places(nondiff: Sequence[int], args: tuple[Any, ...], name: str) -> tuple[int, ...]:
    """The places of the arguments that a rule does not see, from 0. Raises: ArgumentError for one out of range."""
    for number in nondiff:
        if not -len(args) <= number < len(args):
            raise ArgumentError(
                f"nondiff_argnums={tuple(nondiff)} is out of range for {name}, called with {len(args)} arguments"
            )
    return tuple(sorted({number % len(args) for number in nondiff}))


class CustomRule:
    """What the decorators share: splitting arguments, and attributes of the wrapped function."""

    def __init__(self, function: Callable[..., Any], nondiff_argnums: int | Sequence[int] = ()) -> None:
        check_callable(function, type(self).__name__)
        self.function = function
        self.nondiff = (nondiff_argnums,) if isinstance(nondiff_argnums, int) else tuple(nondiff_argnums)
        functools.update_wrapper(self, function)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self.__call__, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def _split(self, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...], list[Any], Any, Callable[..., Any]]:
        """(fixed arguments, moving arguments, their leaves, their tree, the function of the moving ones)."""
        fixed = fixed_places(self.nondiff, args, name_of(self.function))
        held = [args[i] for i in fixed]
        moving = tuple([arg for i, arg in enumerate(args) if i not in fixed])

        def of_moving(*inner: Any) -> Any:
            rest = iter(inner)
            full = [args[i] if i in fixed else next(rest) for i in range(len(args))]
            return self.function(*full)

        leaves, spec = tree.flatten(moving)
        names = tree.path_names(moving, "args")
        leaves = [array_leaf(x, path, type(self).__name__) for x, path in zip(leaves, names, strict=True)]
        return held, moving, leaves, spec, of_moving
