"""Trees of arrays (pytrees): nested tuples, lists, dicts, namedtuples and registered classes. None is empty.

Built on optree. Leaves keep the order of insertion-sorted dict keys, as everywhere in JAX and PyTorch.
"""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from func.interpreters.core import Array, dtype_of, operand, shape_of
from func.interpreters.core.errors import ArgumentError, StaticArgumentError, UnsupportedArrayError
from func.interpreters.host.public_functions import without_engine_frames
from func.interpreters.host.source import hide_engine_frames
from func.interpreters.primitives.structural.shapes import convert, reshape
from func.interpreters.primitives.structural.slicing import concatenate, getitem

if TYPE_CHECKING:
    import optree

    from func.tree_arithmetic import axpy, norm, vdot, zeros_like
    from func.tree_files import load, save

    Structure: TypeAlias = optree.PyTreeSpec
else:

    class _LateModule:
        """optree, imported at its first use; then the name `optree` is the module itself. Arrays alone skip it."""

        def __getattr__(self, name: str) -> Any:
            module = globals()["optree"] = importlib.import_module("optree")
            return getattr(module, name)

    optree = _LateModule()

# fmt: off
__all__ = [
    "axpy", "flatten", "leaves", "load", "map", "map_with_path", "norm", "path_names", "ravel", "register_dataclass",
    "register_node", "save", "structure", "unflatten", "vdot", "zeros_like",
]
# fmt: on

Tree: TypeAlias = Any
_NAMESPACE = "func"
_LATE = {
    **dict.fromkeys(("axpy", "norm", "vdot", "zeros_like"), "func.tree_arithmetic"),
    **dict.fromkeys(("load", "save"), "func.tree_files"),
}
"""The modules of public names that few programs use."""


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
    try:
        try:
            return optree.tree_unflatten(structure, leaves)
        except ValueError:
            if structure.num_leaves == len(leaves):
                raise
            raise ArgumentError(
                f"func.tree.unflatten: {shown(structure)} has {structure.num_leaves} leaves, but got {len(leaves)}"
            ) from None
    except Exception as error:
        hide_engine_frames(error)
        raise


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
    """The structure of a tree, without its leaves; equal structures have equal trees around their leaves.

    Example:
        >>> import func
        >>> func.tree.structure({"w": 1.0, "b": [2.0]}) == func.tree.structure({"w": 3, "b": [4]})
        True
    """
    try:
        return optree.tree_structure(tree, namespace=_NAMESPACE)
    except RecursionError:
        raise _too_deep() from None


class _Leaf:
    """The sign for an array where a message shows a tree."""

    def __repr__(self) -> str:
        return "*"


def shown(structure: Structure) -> str:
    """A structure as messages show it: the containers as Python prints them, with a star for every array.

    >>> shown(structure({"w": 1.0, "b": [2.0, None]}))
    "{'w': *, 'b': [*, None]}"
    """
    if structure.is_leaf():
        return "one array"
    star: Any = _Leaf()
    try:
        return repr(optree.tree_unflatten(structure, [star] * structure.num_leaves))
    except Exception:  # users' classes that reject everything but arrays, or do not print
        return re.sub(
            r"^PyTreeSpec\((NoneIsLeaf, )?(.*?)(, namespace='func')?\)$", r"\2", str(structure), flags=re.DOTALL
        )


@without_engine_frames
def map(f: Callable[..., Any], tree: Tree, *rest: Tree) -> Tree:
    """Apply a function to the leaves of one or more trees of the same structure.

    >>> map(lambda p, g: p - g, {"w": 3, "b": 1}, {"w": 1, "b": 1})
    {'w': 2, 'b': 0}
    """
    try:
        return optree.tree_map(f, tree, *rest, namespace=_NAMESPACE)
    except (ValueError, RecursionError):
        check_same("map", tree, rest)
        raise


def check_same(function: str, tree: Tree, rest: Sequence[Tree]) -> None:
    """Raise if trees differ or are too deep for a walk over them together."""
    spec, *others = [structure(each) for each in (tree, *rest)]
    for other, other_spec in zip(rest, others, strict=True):
        try:
            spec.flatten_up_to(other)
        except ValueError:
            first, second = path_names(tree), path_names(other)
            differing = [
                f"; only the {word} has {next(name for name in names if name not in others)}"
                for word, names, others in (("first", first, second), ("second", second, first))
                if {*names} - {*others}
            ]
            raise ArgumentError(
                f"func.tree.{function} takes trees of one structure, but got {shown(spec)} and {shown(other_spec)}"
                + "".join(differing)
            ) from None


@without_engine_frames
def map_with_path(f: Callable[..., Any], tree: Tree, *rest: Tree) -> Tree:
    """Apply function(path, leaf, ...) to the leaves; a path is a tuple of keys and indices.

    >>> map_with_path(lambda path, leaf: (path, leaf), {"w": [1, 2]})
    {'w': [(('w', 0), 1), (('w', 1), 2)]}
    """
    try:
        return optree.tree_map_with_path(f, tree, *rest, namespace=_NAMESPACE)
    except (ValueError, RecursionError):
        check_same("map_with_path", tree, rest)
        raise


def path_names(tree: Tree, root: str = "") -> list[str]:
    """The expression of each leaf in user code: `params['w'][0]`.

    >>> path_names({"w": [1, 2]}, "params")
    ["params['w'][0]", "params['w'][1]"]
    """
    spec = structure(tree)
    try:
        return list(_names_of(spec, root))
    except TypeError:  # a key or a static field that is not hashable
        return [accessor.codify(root) for accessor in spec.accessors()]


@functools.lru_cache(256)
def _names_of(spec: Any, root: str) -> tuple[str, ...]:
    """`path_names` of a structure, cached: transforms need them at every call, and they cost more than a small
    function.
    """
    return tuple([accessor.codify(root) for accessor in spec.accessors()])


class PathEntry(NamedTuple):
    """One step from a node of a tree to a child: an item (`[key]`), an attribute (`.key`), or of a registered class."""

    kind: str
    key: Any
    text: str
    """The user's expression of it, if there is one: ['w']."""


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
    """Let instances of a class be trees: flatten(x) returns (children, static data), unflatten(data, children) undoes
    it.

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


def register_dataclass(cls: type | None = None, static: str | Sequence[str] = ()) -> Any:
    """Let instances of a dataclass or of an attrs class be trees: their fields are children, except those in `static`.

    Static fields stay unchanged and must be hashable; `jit` traces again for each of their values. A field with
    `metadata={"static": True}` is static, too. Transforms make instances without calling `__init__` or `__post_init__`,
    and with the fields alone: they lose other attributes.

    Args:
        cls: The class. Without it, this is a decorator with options.
        static: Name or names of static fields.

    Returns:
        The class, so that this works as a decorator above `@dataclass`.

    Raises:
        TypeError: The class is not a dataclass.
        ArgumentError: It has no field of a name in `static`, or is registered already (a ValueError).
        StaticArgumentError: A static field of an instance is not hashable (a TypeError).

    >>> from dataclasses import dataclass
    >>> import numpy as np, func
    >>> @register_dataclass(static="power")
    ... @dataclass
    ... class Model:
    ...     weight: float
    ...     power: int
    ...     def __call__(self, x): return self.weight * x**self.power
    >>> func.grad(lambda model: model(2.0))(Model(3.0, 2))
    Model(weight=np.float64(4.0), power=2)
    """
    if cls is None:
        return functools.partial(register_dataclass, static=static)
    import dataclasses  # which takes as long as three modules of `import func`

    of_attrs = getattr(cls, "__attrs_attrs__", None)
    if not (isinstance(cls, type) and (of_attrs or dataclasses.is_dataclass(cls))):  # type: ignore[redundant-expr]
        raise TypeError(f"func.tree.register_dataclass takes a dataclass, not {cls!r}; write it above @dataclass")
    fields = {field.name: field for field in of_attrs or dataclasses.fields(cls)}
    names = {static} if isinstance(static, str) else set(static)
    if unknown := sorted(names - set(fields)):
        raise ArgumentError(
            f"func.tree.register_dataclass: static names {', '.join([repr(name) for name in unknown])}, but the fields "
            f"of {cls.__name__} are {', '.join(fields)}"
        )
    fixed = tuple([name for name, field in fields.items() if name in names or field.metadata.get("static")])
    children = tuple([name for name in fields if name not in fixed])

    def flatten_fields(node: Any) -> Any:
        data = _StaticFields(cls, tuple([(name, getattr(node, name)) for name in fixed]))
        return [getattr(node, name) for name in children], data, children

    def unflatten_fields(data: _StaticFields, values: Sequence[Any]) -> Any:
        node: Any = object.__new__(cls)
        for name, value in (*data.values, *zip(children, values, strict=True)):
            object.__setattr__(node, name, value)
        return node

    of_any_class: Any = cls
    try:
        optree.register_pytree_node(
            of_any_class,
            flatten_fields,
            unflatten_fields,  # type: ignore[arg-type]
            path_entry_type=optree.GetAttrEntry,
            namespace=_NAMESPACE,
        )
    except ValueError:
        raise ArgumentError(f"func.tree.register_dataclass: {cls.__name__} is registered already") from None
    return cls


class _StaticFields:
    """The static fields of an instance; equal to others if no code can tell their values apart."""

    __slots__ = ("values",)

    def __init__(self, cls: type, values: tuple[tuple[str, Any], ...]) -> None:
        self.values = values
        for name, value in values:
            try:
                hash(value)
            except TypeError:
                raise StaticArgumentError(
                    f"the static field {name!r} of {cls.__name__} is a {type(value).__name__}, which is not hashable; "
                    "make it a tuple or a frozen dataclass, or leave it out of static"
                ) from None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _StaticFields) and self._content_key() == other._content_key()

    def __hash__(self) -> int:
        return hash(self._content_key())

    def _content_key(self) -> Any:
        from func.interpreters.program.content_keys import typed_key  # start-up time: few trees have static fields

        return typed_key(self.values)

    def __repr__(self) -> str:
        return ", ".join([f"{name}={value!r}" for name, value in self.values])


@without_engine_frames
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
    for part, name in zip(parts, path_names(tree, "tree"), strict=True):
        try:
            operand(part)
        except UnsupportedArrayError as error:
            raise UnsupportedArrayError(f"func.tree.ravel: {name} is not an array of numbers: {error}") from None
    shapes = [shape_of(part) for part in parts]
    dtypes = [dtype_of(part) for part in parts]
    sizes = [int(np.prod(shape, dtype=np.int64)) for shape in shapes]
    dtype = np.result_type(*dtypes) if dtypes else np.dtype(np.float64)
    if parts:
        pieces = [convert(reshape(p, shape=(n,)), dtype=dtype) for p, n in zip(parts, sizes, strict=True)]
        vector = concatenate(*pieces, axis=0)
    else:
        vector = np.zeros(0)

    @without_engine_frames
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


@without_engine_frames
def __getattr__(name: str) -> Any:
    """Import at first use what few programs use; suggest a name for a missing one."""
    if name == "Structure":
        return optree.PyTreeSpec
    if name in _LATE:
        return getattr(importlib.import_module(_LATE[name]), name)
    if name.startswith("_"):
        raise AttributeError(f"module 'func.tree' has no attribute {name!r}")
    other_names = importlib.import_module("func.other_names")
    raise other_names.no_name("func.tree", name, __all__, other_names.IN_TREE)


def __dir__() -> list[str]:
    from func.interpreters.host.display import public_names  # start-up time

    return public_names(globals())
