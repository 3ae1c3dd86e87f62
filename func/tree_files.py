"""Trees of arrays in files, such as the parameters of a model. Public as `func.tree.save` and `func.tree.load`.

The file is an uncompressed .npz archive: `np.load` reads its arrays. A JSON document in it describes the containers.
"""

from __future__ import annotations

import importlib
import os
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np

from func import tree
from func.backends import is_device_array
from func.interpreters.archives import as_path, check_sizes, excerpt, read_array, read_json, write_archive
from func.interpreters.core import PYTHON_SCALARS, Tracer, shape_of
from func.interpreters.core.errors import ArgumentError, ProgramFileError, UnsupportedArrayError
from func.interpreters.host.public_functions import without_engine_frames

DOCUMENT = "tree.json"
FORMAT = "func tree"
VERSION = 1
_CONTAINERS = {"list": list, "tuple": tuple, "dict": dict}
_SCALARS = {kind.__name__: kind for kind in (bool, int, float, complex)}


@without_engine_frames
def save(a: tree.Tree, path: str | os.PathLike[str]) -> None:
    """Write a tree of arrays and numbers into a file, from which `func.tree.load` makes an equal one.

    The file is an .npz archive without pickles: `np.load(path)` reads the arrays, whose names are those of
    `func.tree.path_names`. Saving replaces a file or link in one step. Device arrays and tensors become NumPy arrays.

    Args:
        a: The tree. `load` rebuilds lists, tuples, dicts with keys of text and None; for other classes of nodes it
            needs an example of the tree.
        path: The file, by convention with the suffix .npz.

    Raises:
        ArgumentError: Two leaves have one name: the reprs of their keys are equal (a ValueError).
        UnsupportedArrayError: A leaf is not an array of numbers (a TypeError).
        TracerConversionError: A leaf has no value yet, as inside `jit` and `vmap` (a TypeError).

    Example:
        >>> import os, tempfile, numpy as np, func
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "model.npz")
        ...     func.tree.save({"w": np.ones((2, 2)), "steps": 3}, path)
        ...     func.tree.load(path)["steps"], np.load(path)["['w']"].shape
        (3, (2, 2))
    """
    leaves, structure = tree.flatten(a)
    names = tree.path_names(a)
    entries, arrays = [], {}
    for leaf, name in zip(leaves, names, strict=True):
        array = _host_array(leaf, name)
        if name in arrays:
            raise ArgumentError(
                f"func.tree.save: two leaves have the name {name}; give the keys of the tree other reprs"
            )
        kind = type(leaf).__name__ if type(leaf) in PYTHON_SCALARS else "scalar" if isinstance(leaf, np.generic) else ""
        entries.append({"name": name, "kind": kind, "dtype": array.dtype.name})
        bits = array.view(np.uint16) if array.dtype.name == "bfloat16" else array
        arrays[name or "value"] = np.array(bits, order="C")
    document = {
        "format": FORMAT,
        "version": VERSION,
        "leaves": entries,
        "tree": _nodes(tree.unflatten(structure, list(range(len(leaves))))),
    }
    write_archive(as_path(path, "tree.save"), (DOCUMENT, document), arrays)


@without_engine_frames
def load(path: str | os.PathLike[str], like: tree.Tree = None) -> tree.Tree:
    """The tree in a file that `func.tree.save` wrote. Loading runs no code from the file.

    Args:
        path: The file.
        like: A tree of the same paths and shapes, whose classes the result takes: needed for namedtuples, dataclasses
            and other registered classes. Its leaves may be anything with a shape.

    Raises:
        ProgramFileError: The file is of another kind, damaged, or of a newer version (a ValueError).
        ArgumentError: The file needs `like`, or differs from it in a path or shape (a ValueError).

    Example:
        >>> import os, tempfile, numpy as np, func
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "model.npz")
        ...     func.tree.save([np.zeros(2), (1.5, None)], path)
        ...     func.tree.load(path)
        [array([0., 0.]), (1.5, None)]
    """
    file = as_path(path, "tree.load")
    try:
        with zipfile.ZipFile(file) as archive:
            check_sizes(archive, os.path.getsize(file))
            document = read_json(archive, DOCUMENT)
            if document["format"] != FORMAT or document["version"] != VERSION:
                raise ValueError(f"format {document['format']!r}, version {document['version']!r}")
            names = [entry["name"] for entry in document["leaves"]]
            leaves = [_leaf(archive, entry) for entry in document["leaves"]]
            built = None if like is not None or document["tree"] is None else _built(document["tree"], leaves)
    except FileNotFoundError:
        raise
    except Exception as error:  # a file that fails in an unforeseen way has no tree
        raise ProgramFileError(
            f"func.tree.load: {file!r} is not a file written by func.tree.save, or it is damaged or newer "
            f"({type(error).__name__}: {excerpt(error)})"
        ) from None
    if like is None:
        if document["tree"] is None:
            raise ArgumentError(
                f"func.tree.load: {file!r} holds a tree with nodes of other classes than list, tuple and dict; pass "
                "like=, a tree of the same classes and shapes"
            )
        return built
    _check_like(like, names, leaves)
    return tree.unflatten(tree.structure(like), leaves)


def _host_array(leaf: Any, name: str) -> np.ndarray[Any, Any]:
    """A leaf as a NumPy array of numbers."""
    if type(leaf) is Tracer:
        leaf = leaf.detach().numpy()  # type: ignore[attr-defined]
    elif is_device_array(leaf):
        leaf = leaf.get()
    array = np.asarray(leaf) if isinstance(leaf, (np.ndarray, np.generic, *PYTHON_SCALARS)) else None
    if array is None or (array.dtype.kind not in "biufc" and array.dtype.name != "bfloat16"):
        raise UnsupportedArrayError(
            f"func.tree.save: the leaf {name or '(the only one)'} is not an array of numbers: a {type(leaf).__name__}"
            + (f" of dtype {array.dtype}" if array is not None else "")
        )
    return array.astype(array.dtype.newbyteorder("="), copy=False) if array.dtype.kind in "iufc" else array


def _nodes(node: Any) -> Any:
    """A tree of builtin containers as JSON: numbers are leaves; None where a node has another class."""
    kind = type(node)
    if node is None or kind is int:
        return node if kind is int else {"none": []}
    if kind is dict:
        if any([type(key) is not str for key in node]):
            return None
        children = {key: _nodes(child) for key, child in node.items()}
        return None if any([child is None for child in children.values()]) else {"dict": list(children.items())}
    if kind in (list, tuple):
        below = [_nodes(child) for child in node]
        return None if any([child is None for child in below]) else {kind.__name__: below}
    return None


def _built(written: Any, leaves: list[Any]) -> Any:
    """The tree of a JSON document."""
    if type(written) is int:
        return leaves[written if written >= 0 else len(leaves)]
    ((kind, children),) = written.items()
    if kind == "none":
        return None
    if kind == "dict":
        return {str(key): _built(child, leaves) for key, child in children}
    return _CONTAINERS[kind]([_built(child, leaves) for child in children])


def _leaf(archive: zipfile.ZipFile, entry: dict[str, Any]) -> Any:
    """A leaf of a file, of the type that was saved."""
    array = read_array(archive.read(f"{entry['name'] or 'value'}.npy"))
    if entry["dtype"] == "bfloat16":
        array = array.view(importlib.import_module("ml_dtypes").bfloat16)
    if entry["kind"] in _SCALARS:
        return _SCALARS[entry["kind"]](array[()])
    return array[()] if entry["kind"] == "scalar" else array.copy()


def _check_like(like: tree.Tree, names: list[str], leaves: list[Any]) -> None:
    """Raise if the leaves of a file do not fit into a tree."""
    wanted = tree.path_names(like)
    if names != wanted:
        missing = [name for name in wanted if name not in names]
        more = [name for name in names if name not in wanted]
        differences = [f"{word} {', '.join(own[:5])}" for word, own in (("lacks", missing), ("has", more)) if own]
        told = " and ".join(differences) or "has another order"
        raise ArgumentError(f"func.tree.load: the file differs from the tree `like`: it {told}")
    for name, leaf, other in zip(names, leaves, _shapes(like), strict=True):
        if other is not None and shape_of(leaf) != other:
            raise ArgumentError(
                f"func.tree.load: {name or 'the leaf'} has shape {shape_of(leaf)} in the file, but {other} in `like`"
            )


def _shapes(like: tree.Tree) -> Iterator[tuple[int, ...] | None]:
    for leaf in tree.leaves(like):
        yield getattr(leaf, "shape", () if type(leaf) in PYTHON_SCALARS else None)
