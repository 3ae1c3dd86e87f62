"""Sums and products over the leaves of trees, for optimisers and Krylov methods. Public as `func.tree.vdot` and so on.

Written as NumPy code: traced leaves work in every transform, CuPy's too.
"""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from func import tree
from func.interpreters.core import Array, operand, shape_of
from func.interpreters.core.errors import ArgumentError
from func.interpreters.host.public_functions import without_engine_frames


@without_engine_frames
def vdot(a: tree.Tree, b: tree.Tree) -> Array:
    """The inner product of two trees: the sum of `np.vdot` over their leaves. It conjugates the leaves of `a`.

    Args:
        a: A tree of arrays.
        b: A tree of the same structure and shapes.

    Raises:
        ArgumentError: The trees differ in structure or in a shape.

    Example:
        >>> import numpy as np, func
        >>> func.tree.vdot({"w": np.ones(3), "b": 2.0}, {"w": np.arange(3.0), "b": 4.0})
        np.float64(11.0)
    """
    products = [np.vdot(x, y) for x, y in _pairs("vdot", a, b)]
    return functools.reduce(operator.add, products) if products else np.float64(0.0)


@without_engine_frames
def norm(a: tree.Tree, ord: Any = None) -> Array:
    """The norm of all elements of a tree as one vector: `np.linalg.norm(func.tree.ravel(a)[0], ord)`.

    Args:
        a: A tree of arrays.
        ord: The order of the norm, as in `np.linalg.norm`; None is the Euclidean norm.

    Example:
        >>> import func
        >>> func.tree.norm({"w": [3.0], "b": 4.0})
        np.float64(5.0)
    """
    return np.linalg.norm(tree.ravel(a)[0], ord)


@without_engine_frames
def axpy(alpha: Array, x: tree.Tree, y: tree.Tree) -> tree.Tree:
    """The tree alpha x + y, with one number `alpha` for all leaves; dtypes as NumPy computes `alpha * x + y`.

    Args:
        alpha: A number.
        x: A tree of arrays.
        y: A tree of the same structure and shapes.

    Raises:
        ArgumentError: The trees differ in structure or in a shape, or `alpha` is not a number.

    Example:
        >>> import func
        >>> func.tree.axpy(-0.5, {"w": 2.0}, {"w": 3.0})  # one step of gradient descent
        {'w': 2.0}
    """
    if shape_of(operand(alpha)) != ():
        raise ArgumentError(f"func.tree.axpy: alpha must be a number, not an array of shape {shape_of(alpha)}")
    sums = [alpha * left + right for left, right in _pairs("axpy", x, y)]
    return tree.unflatten(tree.structure(y), sums)


@without_engine_frames
def zeros_like(a: tree.Tree) -> tree.Tree:
    """A tree of zeros, each like its leaf: `np.zeros_like`.

    Example:
        >>> import numpy as np, func
        >>> func.tree.zeros_like({"w": np.ones(2), "b": np.float32(1)})
        {'w': array([0., 0.]), 'b': array(0., dtype=float32)}
    """
    return tree.map(np.zeros_like, a)


def _pairs(function: str, a: tree.Tree, b: tree.Tree) -> list[tuple[Any, Any]]:
    """The leaves of two trees, of equal structures and shapes."""
    tree.check_same(function, a, [b])
    pairs = list(zip(tree.leaves(a), tree.leaves(b), strict=True))
    for (x, y), name in zip(pairs, tree.path_names(a), strict=True):
        if shape_of(operand(x)) != shape_of(operand(y)):
            raise ArgumentError(
                f"func.tree.{function} takes trees of equal shapes, but the leaf {name or '(the only one)'} has "
                f"{shape_of(x)} and {shape_of(y)}"
            )
    return pairs
