"""Trees of arrays: dicts, tuples and lists, in their order."""

from collections.abc import Callable, Iterator
from typing import Any


def convert(function: Callable[[Any], Any], tree: Any) -> Any:
    """The tree with the function applied to every leaf."""
    if isinstance(tree, dict):
        return {name: convert(function, item) for name, item in tree.items()}
    if isinstance(tree, tuple | list):
        return type(tree)(convert(function, item) for item in tree)
    return function(tree)


def as_type(dtype: type, data: tuple[Any, ...]) -> tuple[Any, ...]:
    """The data with all arrays of this type."""
    return tuple(convert(lambda array: array.astype(dtype), item) for item in data)


def leaves(tree: Any) -> list[Any]:
    """The leaves in order."""
    if isinstance(tree, dict):
        return [leaf for item in tree.values() for leaf in leaves(item)]
    if isinstance(tree, tuple | list):
        return [leaf for item in tree for leaf in leaves(item)]
    return [tree]


def rebuild(tree: Any, values: Iterator[Any]) -> Any:
    """The tree with its leaves replaced by the values, in order."""
    return convert(lambda _: next(values), tree)
