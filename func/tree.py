"""Trees of arrays (pytrees): nested tuples, lists, dicts, namedtuples and registered classes. None is empty.

Built on optree. Leaves keep the order of insertion-sorted dict keys, as everywhere in JAX and PyTorch.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import optree

from func.interpreters.core import Array, dtype_of, shape_of
from func.interpreters.core.errors import ArgumentError
from func.interpreters.primitives.structural.shapes import convert, reshape
from func.interpreters.primitives.structural.slicing import concatenate, getitem

# fmt: off
__all__ = [
    "flatten", "leaves", "map", "map_with_path", "path_names", "ravel", "register_node", "structure", "unflatten",
]
# fmt: on

Tree: TypeAlias = Any
Structure: TypeAlias = optree.PyTreeSpec
_NAMESPACE = "func"


def flatten(tree: Tree) -> tuple[list[Any], Structure]:
    """The leaves of a tree and its structure.

    >>> flatten({"b": 2, "a": (1, None)})[0]
    [1, 2]
    """
    try:
        return optree.tree_flatten(tree, namespace=_NAMESPACE)
    except RecursionError:
        raise _too_deep() from None


def _too_deep() -> ArgumentError:
    return ArgumentError("a tree holds itself, or is nested too deeply; put arrays into lists, tuples and dicts")


def unflatten(structure: Structure, leaves: Sequence[Any]) -> Tree:
    """The tree with this structure and these leaves.

    >>> unflatten(structure([0, (0, 0)]), [1, 2, 3])
    [1, (2, 3)]
    """
    return optree.tree_unflatten(structure, leaves)


def leaves(tree: Tree) -> list[Any]:
    """The leaves of a tree.

    >>> leaves([1, {"x": 2}])
    [1, 2]
    """
    try:
        return optree.tree_leaves(tree, namespace=_NAMESPACE)
    except RecursionError:
        raise _too_deep() from None


def structure(tree: Tree) -> Structure:
    """The structure of a tree, without its leaves."""
    try:
        return optree.tree_structure(tree, namespace=_NAMESPACE)
    except RecursionError:
        raise _too_deep() from None


def map(function: Callable[..., Any], tree: Tree, *rest: Tree) -> Tree:
    """Apply a function to the leaves of one or more trees of the same structure.

    >>> map(lambda p, g: p - g, {"w": 3, "b": 1}, {"w": 1, "b": 1})
    {'w': 2, 'b': 0}
    """
    return optree.tree_map(function, tree, *rest, namespace=_NAMESPACE)


def map_with_path(function: Callable[..., Any], tree: Tree, *rest: Tree) -> Tree:
    """Apply function(path, leaf, ...) to the leaves; a path is a tuple of keys and indices.

    >>> map_with_path(lambda path, leaf: (path, leaf), {"w": [1, 2]})
    {'w': [(('w', 0), 1), (('w', 1), 2)]}
    """
    return optree.tree_map_with_path(function, tree, *rest, namespace=_NAMESPACE)


def path_names(tree: Tree, root: str = "") -> list[str]:
    """How a user would write each leaf: `params['w'][0]`.

    >>> path_names({"w": [1, 2]}, "params")
    ["params['w'][0]", "params['w'][1]"]
    """
    return [accessor.codify(root) for accessor in optree.tree_accessors(tree, namespace=_NAMESPACE)]


class PathEntry(NamedTuple):
    """One step from a node of a tree to a child: an item (`[key]`), an attribute (`.key`), or of a registered class."""

    kind: str
    key: Any
    text: str
    """How a user would write it, as far as there is such a way: ['w']."""


def path_entries(tree: Tree) -> list[list[PathEntry]]:
    """The steps from the root to each leaf.

    >>> path_entries({"w": [1]})[0][1]
    PathEntry(kind='item', key=0, text='[0]')
    """
    accessors = optree.tree_accessors(tree, namespace=_NAMESPACE)
    return [[_path_entry(entry) for entry in accessor] for accessor in accessors]


def _path_entry(entry: optree.PyTreeEntry) -> PathEntry:
    text = entry.codify("")
    if isinstance(entry, (optree.NamedTupleEntry, optree.StructSequenceEntry, optree.DataclassEntry)):
        return PathEntry("attribute", text.removeprefix("."), text)
    if isinstance(entry, optree.GetAttrEntry):
        return PathEntry("attribute", entry.entry, text)
    is_item = isinstance(entry, (optree.MappingEntry, optree.SequenceEntry, optree.GetItemEntry))
    return PathEntry("item" if is_item else "child", entry.entry, text)


def one_level(tree: Tree) -> list[Any] | None:
    """The children of a node, or None for a leaf."""
    if optree.tree_is_leaf(tree, namespace=_NAMESPACE):
        return None
    return list(optree.tree_flatten_one_level(tree, namespace=_NAMESPACE)[0])


def register_node(
    cls: type,
    flatten: Callable[[Any], tuple[Sequence[Any], Any]],
    unflatten: Callable[[Any, Sequence[Any]], Any],
) -> None:
    """Let instances of a class be trees: flatten(x) gives (children, static data), unflatten(data, children) undoes it.

    >>> class Pair:
    ...     def __init__(self, a, b): self.a, self.b = a, b
    >>> register_node(Pair, lambda p: ((p.a, p.b), None), lambda _, children: Pair(*children))
    >>> leaves(Pair(1, [2, 3]))
    [1, 2, 3]
    """

    def flatten_three(node: Any) -> Any:
        children, data = flatten(node)
        return tuple(children), data, None

    optree.register_pytree_node(cls, flatten_three, unflatten, namespace=_NAMESPACE)  # type: ignore[arg-type]


def ravel(tree: Tree) -> tuple[Array, Callable[[Array], Tree]]:
    """All leaves as one vector, and the function that turns such a vector back into the tree. Differentiable.

    >>> import numpy as np
    >>> vector, back = ravel({"a": np.ones((2, 2)), "b": np.zeros(1)})
    >>> vector
    array([1., 1., 1., 1., 0.])
    >>> back(vector)["a"].shape
    (2, 2)
    """
    parts, spec = flatten(tree)
    shapes = [shape_of(part) for part in parts]
    dtypes = [dtype_of(part) for part in parts]
    sizes = [int(np.prod(shape, dtype=np.int64)) for shape in shapes]
    dtype = np.result_type(*dtypes) if dtypes else np.dtype(np.float64)
    if parts:
        pieces = [convert(reshape(p, shape=(n,)), dtype=dtype) for p, n in zip(parts, sizes, strict=True)]
        vector = concatenate(*pieces, axis=0)
    else:
        vector = np.zeros(0)

    def back(flat: Array) -> Tree:
        if shape_of(flat) != (sum(sizes),):
            raise ArgumentError(f"the tree has {sum(sizes)} elements, but the vector has shape {shape_of(flat)}")
        start = 0
        out = []
        for shape, size, kind in zip(shapes, sizes, dtypes, strict=True):
            piece = reshape(getitem(flat, index=((start, start + size, 1),)), shape=shape)
            out.append(convert(piece, dtype=kind) if dtype_of(piece) != kind else piece)
            start += size
        return unflatten(spec, out)

    return vector, back


def __getattr__(name: str) -> Any:
    """Say what to write instead of a name that is missing."""
    if name.startswith("_"):
        raise AttributeError(f"module 'func.tree' has no attribute {name!r}")
    other_names = importlib.import_module("func.other_names")
    raise other_names.no_name("func.tree", name, __all__, other_names.IN_TREE)
