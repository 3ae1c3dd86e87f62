"""Signatures of call stubs: trees of arguments and results with structure, shapes and dtypes, but no values."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np

PYTHON_TYPES: Final[dict[np.dtype[Any], type]] = {
    np.dtype(np.bool_): bool,
    np.dtype(np.int64): int,
    np.dtype(np.float64): float,
    np.dtype(np.complex128): complex,
}
LARGEST_INT: Final = 2**63 - 1


OVERLAP: Final = 4
"""The status of a call whose arguments overlap and must not."""
ANOTHER_PATH: Final = 8
"""The status of a call whose last output is not the expected number."""


class Mismatch(Exception):
    """Arguments differ from a signature."""


class Leaf:
    """An array or a Python scalar in a tree.

    A leaf of kind `"array"` is an `np.ndarray`, not a subclass, or for shape () also a NumPy scalar of exactly this
    dtype. A result of shape () is a NumPy scalar. A leaf of kind `"python"` is a bool, int, float or complex.

    >>> Leaf("array", (3,), np.dtype(np.float32))
    Leaf(kind='array', shape=(3,), dtype=dtype('float32'))
    """

    __slots__ = ("dtype", "kind", "shape")

    def __init__(self, kind: Literal["array", "python"], shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        native = np.dtype(dtype.type)
        if native != dtype or not (native.kind in "biufc" or native.isbuiltin == 2):
            raise ValueError(f"a leaf has a number type in native byte order, and {dtype!r} is none")
        if kind == "python" and (shape or native not in PYTHON_TYPES):
            raise ValueError(
                f"a Python scalar has shape () and dtype bool, int64, float64 or complex128, not {shape} and {native}"
            )
        self.kind = kind
        self.shape = shape
        self.dtype = native

    def __repr__(self) -> str:
        return f"Leaf(kind={self.kind!r}, shape={self.shape!r}, dtype={self.dtype!r})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not Leaf:
            return NotImplemented
        return (self.kind, self.shape, self.dtype) == (other.kind, other.shape, other.dtype)

    def __hash__(self) -> int:
        return hash((self.kind, self.shape, self.dtype))

    @property
    def nbytes(self) -> int:
        """The size of the data in bytes."""
        size = self.dtype.itemsize
        for length in self.shape:
            size *= length
        return size


Tree: TypeAlias = "Leaf | tuple[Tree, ...] | list[Tree] | dict[Any, Tree] | None"


class StubSignature(NamedTuple):
    """The trees of a stub's positional arguments, and the tree of its result.

    `arena` is the size in bytes of the scratch memory that a call needs. With `releases_gil` other Python threads run
    during the computation. The leaves of the arguments at the places in a pair of `separate` must not overlap in
    memory. Nor must one overlap memory of `fixed`: a place, an address and a number of bytes. With `keeps_outputs` the
    stub keeps references to large arrays that it has returned, and reuses them once nothing else refers to them. With
    `expected`, the program has a last output that is not a part of the result: an int64, which must be this number.
    """

    args: tuple[Tree, ...]
    result: Tree
    arena: int = 0
    releases_gil: bool = False
    separate: tuple[tuple[int, int], ...] = ()
    fixed: tuple[tuple[int, int, int], ...] = ()
    keeps_outputs: bool = True
    expected: int | None = None


def items(tree: dict[Any, Tree]) -> list[tuple[Any, Tree]]:
    """The children of a dict in optree's order."""
    import optree  # start-up time: few programs take dicts

    keys = list(tree)
    places: Any = {key: place for place, key in enumerate(keys)}
    order: list[int] = optree.tree_leaves(places)
    return [(_interned(keys[place]), tree[keys[place]]) for place in order]


def _interned(key: Any) -> Any:
    """The key, interned like Python's constants, so that a look-up compares pointers."""
    return sys.intern(key) if type(key) is str else key


def leaves(tree: Tree) -> Iterator[Leaf]:
    """The leaves in the order of inputs and outputs.

    >>> scalar, vector = Leaf("python", (), np.dtype(float)), Leaf("array", (2,), np.dtype(float))
    >>> [leaf.kind for leaf in leaves({"b": scalar, "a": (vector, None)})]
    ['array', 'python']
    """
    if isinstance(tree, Leaf):
        yield tree
    elif isinstance(tree, dict):
        for _, child in items(tree):
            yield from leaves(child)
    elif tree is not None:
        for child in tree:
            yield from leaves(child)


def dicts(tree: Tree) -> Iterator[dict[Any, Tree]]:
    """The dicts in a tree."""
    if isinstance(tree, dict):
        yield tree
        for child in tree.values():
            yield from dicts(child)
    elif isinstance(tree, (tuple, list)):
        for child in tree:
            yield from dicts(child)


def count_containers(tree: Tree) -> int:
    """The number of tuples, lists and dicts in a tree."""
    if tree is None or isinstance(tree, Leaf):
        return 0
    children = tree.values() if isinstance(tree, dict) else tree
    return 1 + sum([count_containers(child) for child in children])


def tree_of(value: Any) -> Tree:
    """The tree of an argument. Raises Mismatch for a value that a stub cannot take.

    >>> tree_of([1.5, np.zeros(3)])
    [Leaf(kind='python', shape=(), dtype=dtype('float64')), Leaf(kind='array', shape=(3,), dtype=dtype('float64'))]
    """
    if value is None:
        return None
    if type(value) is tuple:
        return tuple([tree_of(child) for child in value])
    if type(value) is list:
        return [tree_of(child) for child in value]
    if type(value) is dict:
        return {key: tree_of(child) for key, child in value.items()}
    if type(value) in (bool, int, float, complex):
        return Leaf("python", (), next(dtype for dtype, kind in PYTHON_TYPES.items() if kind is type(value)))
    if type(value) is np.ndarray or isinstance(value, np.generic):
        try:
            return Leaf("array", value.shape, value.dtype)
        except ValueError as error:
            raise Mismatch(str(error)) from None
    raise Mismatch(f"a value of type {type(value).__name__} is not an array, a number or a plain container")


def flatten(tree: Tree, value: Any) -> Iterator[Any]:
    """The leaves of a value that has the structure of a tree. Raises Mismatch for another structure."""
    if isinstance(tree, Leaf):
        yield value
    elif tree is None:
        if value is not None:
            raise Mismatch(f"None was expected, not {type(value).__name__}")
    elif type(value) is not type(tree) or len(value) != len(tree):
        raise Mismatch(f"a {type(tree).__name__} of {len(tree)} items was expected, not {type(value).__name__}")
    elif isinstance(tree, dict):
        for key, child in items(tree):
            if key not in value:
                raise Mismatch(f"the key {key!r} is missing")
            yield from flatten(child, value[key])
    else:
        for child, part in zip(tree, value, strict=True):
            yield from flatten(child, part)


def unflatten(tree: Tree, values: Iterator[Any]) -> Any:
    """The tree with these leaves."""
    if isinstance(tree, Leaf):
        return next(values)
    if tree is None:
        return None
    if isinstance(tree, dict):
        children = {key: unflatten(child, values) for key, child in items(tree)}
        return {key: children[key] for key in tree}
    return type(tree)([unflatten(child, values) for child in tree])
