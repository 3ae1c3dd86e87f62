"""Functions that reach across the batch of a vmap, which they find by its axis_name.

They take and return trees. Inside `func.vmap(f, axis_name="batch")` they see all elements of the
batch, so that all must run together: they raise AxisNameError in a vmap with chunks, or whose batch has been split.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from func import tree
from func.interpreters.core import Array, shape_of
from func.interpreters.core.completion import public_names as _public_names
from func.interpreters.core.errors import ArgumentError, AxisNameError
from func.interpreters.core.scopes import running_vmaps
from func.interpreters.core.source import at_line, without_engine_frames
from func.interpreters.primitives.elementwise.table import divide
from func.interpreters.primitives.structural import collectives as ops
from func.interpreters.primitives.structural.shapes import move_axis, reshape
from func.interpreters.vmap import Vmap
from func.transforms.boundary import array_leaf, unbox

__all__ = ["all_gather", "axis_index", "pmax", "pmean", "pmin", "psum"]

Names: TypeAlias = str | Sequence[str]


@without_engine_frames
def axis_index(axis_name: Names) -> Any:
    """The position of the element along the axis; for several axes, the position in C order.

    Raises:
        AxisNameError: No running vmap has that axis_name (a NameError).

    Example:
        >>> import numpy as np, func
        >>> func.vmap(lambda x: x * func.collectives.axis_index("i"), axis_name="i")(np.ones(3))
        array([0., 1., 2.])
    """
    index: Any = 0
    for level in _levels(axis_name, "axis_index"):
        index = _number(level) if type(index) is int else index * level.call.size + _number(level)
    return index


@without_engine_frames
def psum(x: Any, axis_name: Names) -> Any:
    """The sum over the batch, for every element. A value that all elements share is multiplied by their number.

    Raises:
        AxisNameError: No running vmap has that axis_name, or its batch is split (a NameError).

    Example:
        >>> import numpy as np, func
        >>> func.vmap(lambda x: x / func.collectives.psum(x, "i"), axis_name="i")(np.array([1.0, 1.0, 2.0]))
        array([0.25, 0.25, 0.5 ])
    """
    return _collected(ops.psum, x, axis_name, "psum")


@without_engine_frames
def pmean(x: Any, axis_name: Names) -> Any:
    """The mean over the batch, for every element.

    Raises:
        AxisNameError: No running vmap has that axis_name, or its batch is split (a NameError).

    Example:
        >>> import numpy as np, func
        >>> func.vmap(lambda x: x - func.collectives.pmean(x, "i"), axis_name="i")(np.array([1.0, 2.0, 6.0]))
        array([-2., -1.,  3.])
    """
    count = math.prod([level.call.size for level in _levels(axis_name, "pmean")])
    return tree.map(lambda total: divide(total, count), psum(x, axis_name))


@without_engine_frames
def pmax(x: Any, axis_name: Names) -> Any:
    """The largest value of the batch, for every element; ties share the derivative evenly.

    Raises:
        AxisNameError: No running vmap has that axis_name, or its batch is split (a NameError).

    Example:
        >>> import numpy as np, func
        >>> func.vmap(lambda x: x == func.collectives.pmax(x, "i"), axis_name="i")(np.array([1.0, 7.0]))
        array([False,  True])
    """
    return _collected(ops.pmax, x, axis_name, "pmax")


@without_engine_frames
def pmin(x: Any, axis_name: Names) -> Any:
    """The smallest value of the batch, for every element; ties share the derivative evenly.

    Raises:
        AxisNameError: No running vmap has that axis_name, or its batch is split (a NameError).

    Example:
        >>> import numpy as np, func
        >>> func.vmap(lambda x: x - func.collectives.pmin(x, "i"), axis_name="i")(np.array([3.0, 7.0]))
        array([0., 4.])
    """
    return _collected(ops.pmin, x, axis_name, "pmin")


@without_engine_frames
def all_gather(x: Any, axis_name: Names, *, axis: int = 0, tiled: bool = False) -> Any:
    """The values of the batch, for every element: stacked along a new axis, or `tiled` along an existing one.

    Args:
        x: A tree of arrays.
        axis_name: The name of a vmap's axis, or several, whose elements are stacked in C order.
        axis: The place of the new axis; tiled: the axis along which the values are concatenated.
        tiled: Concatenate instead of stacking.

    Raises:
        AxisNameError: No running vmap has that axis_name, or its batch is split (a NameError).

    Example:
        >>> import numpy as np, func
        >>> func.vmap(lambda x: func.collectives.all_gather(x, "i") @ np.ones(2), axis_name="i")(np.array([1.0, 2.0]))
        array([3., 3.])
    """
    levels = _levels(axis_name, "all_gather")
    count = math.prod([level.call.size for level in levels])

    def gathered(leaf: Array) -> Array:
        own = shape_of(leaf)
        rank = len(own) if tiled else len(own) + 1
        if not -rank <= axis < rank:
            raise ArgumentError(f"func.collectives.all_gather: axis={axis} is out of range for a value of shape {own}")
        for level in reversed(levels):
            leaf = ops.all_gather(leaf, _number(level), size=level.call.size)
        stacked = move_axis(reshape(leaf, shape=(count, *own)), 0, axis % rank)
        if not tiled:
            return stacked
        shape = list(own)
        shape[axis] *= count
        return reshape(stacked, shape=tuple(shape))

    return _mapped(gathered, x, "all_gather")


def _levels(names: Names, function: str) -> list[Vmap]:
    """The running vmaps of these names, whose batches are whole."""
    axes = tuple(names) if isinstance(names, (tuple, list)) else (names,)
    if not axes or not all([isinstance(name, str) for name in axes]):
        raise TypeError(f"func.collectives.{function}: axis_name must be a string or several, got {names!r}")
    if len(set(axes)) < len(axes):
        raise ArgumentError(f"func.collectives.{function}: axis_name={names!r} names an axis twice")
    return [_level(str(name), function) for name in axes]


def _level(name: str, function: str) -> Vmap:
    running: tuple[Vmap, ...] = running_vmaps()
    depths = [depth for depth, level in enumerate(running) if level.axis_name == name]
    if not depths:
        known = ", ".join([repr(level.axis_name) for level in running if level.axis_name is not None]) or "none"
        raise AxisNameError(
            f"func.collectives.{function}: no running vmap has the axis_name {name!r}; names in scope: {known}"
            f"{at_line()}"
        )
    level = running[depths[-1]]
    if any([inner.randomness is None for inner in running[depths[-1] + 1 :]]):
        raise AxisNameError(
            f"func.collectives.{function}: the axis {name!r} cannot be reached from inside a custom rule"
            f"{at_line()}\nApply the collective outside, and pass its result as an argument."
        )
    whole = level.call.size
    if level.size != whole and function != "axis_index":
        raise AxisNameError(
            f"func.collectives.{function}: only {level.size} of the {whole} elements of the axis {name!r} are together "
            f"here{at_line()}\nThe vmap has a chunk_size, or its batch was split at an `if` or a loop: "
            "leave chunk_size out, and write the choice with np.where."
        )
    return level


def _number(level: Vmap) -> Any:
    """The positions of the elements, one for each."""
    return level.lift(level.elements)


def _collected(primitive: Callable[..., Array], x: Any, names: Names, function: str) -> Any:
    levels = _levels(names, function)

    def collect(leaf: Array) -> Array:
        for level in levels:
            leaf = primitive(leaf, _number(level), size=level.size)
        return leaf

    return _mapped(collect, x, function)


def _mapped(collect: Callable[[Array], Array], x: Any, function: str) -> Any:
    """A function of arrays on the leaves of a tree."""
    leaves, spec = tree.flatten(x)
    names = tree.path_names(x, "x")
    word = f"collectives.{function}"
    arrays = [unbox(array_leaf(leaf, name, word)) for leaf, name in zip(leaves, names, strict=True)]
    return tree.unflatten(spec, [collect(leaf) for leaf in arrays])


def __dir__() -> list[str]:
    return _public_names(globals())
