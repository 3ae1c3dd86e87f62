"""Collectives: functions across the batch of a vmap, or across processes, by an `axis_name`.

They take and return trees. Inside `func.vmap(f, axis_name="ranks")` they see all elements of the batch, inside
`func.spmd(f, comm, axis_name="ranks")` the values of all processes of an MPI communicator. The meaning is the same:
code tested in one process runs on many. In a vmap all elements must run together: with chunks, or after a split of the
batch, they raise AxisNameError. Among processes all must call the same functions in the same order: see `func.spmd`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from func import tree
from func.interpreters.core import Array, Primitive, shape_of
from func.interpreters.core.errors import ArgumentError, AxisNameError
from func.interpreters.core.scopes import live_entries, present_stage, running_vmaps
from func.interpreters.host.display import public_names as _public_names
from func.interpreters.host.public_functions import without_engine_frames
from func.interpreters.host.source import at_line
from func.interpreters.primitives.elementwise.table import divide
from func.interpreters.primitives.structural import collectives as ops
from func.interpreters.primitives.structural import rank_collectives as rank_ops
from func.interpreters.primitives.structural.shapes import move_axis, reshape
from func.interpreters.rank_axis import RankAxis, plain_number, running_axes
from func.interpreters.stage import Stage
from func.interpreters.vmap import Vmap
from func.transforms.boundary import array_leaf, unbox

__all__ = [
    "all_gather",
    "all_to_all",
    "axis_index",
    "axis_size",
    "broadcast",
    "pmax",
    "pmean",
    "pmin",
    "ppermute",
    "psum",
    "psum_scatter",
    "reduce_scatter",
    "send_recv",
]

Names: TypeAlias = str | Sequence[str]
Axis: TypeAlias = Vmap | RankAxis

_OVER_RANKS: dict[Primitive, Primitive] = {
    ops.psum: rank_ops.rank_psum,
    ops.pmax: rank_ops.rank_pmax,
    ops.pmin: rank_ops.rank_pmin,
    ops.all_gather: rank_ops.rank_all_gather,
    ops.psum_scatter: rank_ops.rank_psum_scatter,
    ops.all_to_all: rank_ops.rank_all_to_all,
    ops.ppermute: rank_ops.rank_ppermute,
    ops.broadcast_from: rank_ops.rank_broadcast,
}
"""The collective over a batch, and the same over processes."""


@without_engine_frames
def axis_index(axis_name: Names) -> Any:
    """The position of the element along the axis; for several axes, the position in C order.

    Among processes it is the rank: a number for Python decisions, but an abstract one under `jit`, so that all
    processes compile the same program.

    Raises:
        AxisNameError: No axis of that name is in scope (a NameError).

    Example:
        >>> import numpy as np, func
        >>> func.vmap(lambda x: x * func.collectives.axis_index("i"), axis_name="i")(np.ones(3))
        array([0., 1., 2.])
    """
    index: Any = 0
    for axis in _axes(axis_name, "axis_index"):
        number = plain_number(_number(axis))
        index = number if type(index) is int else index * _size(axis) + number
    return index


@without_engine_frames
def axis_size(axis_name: Names) -> int:
    """The number of elements along the axis, or of several axes together: an int, under `jit` too.

    Raises:
        AxisNameError: No axis of that name is in scope (a NameError).

    Example:
        >>> import numpy as np, func
        >>> func.vmap(lambda x: x / func.collectives.axis_size("i"), axis_name="i")(np.ones(4))
        array([0.25, 0.25, 0.25, 0.25])
    """
    return math.prod([_size(axis) for axis in _axes(axis_name, "axis_size")])


@without_engine_frames
def psum(x: Any, axis_name: Names) -> Any:
    """The sum over the axis, for every element. A shared value is multiplied by the number of elements.

    Raises:
        AxisNameError: No axis of that name is in scope, or its batch is split (a NameError).

    Example:
        >>> import numpy as np, func
        >>> func.vmap(lambda x: x / func.collectives.psum(x, "i"), axis_name="i")(np.array([1.0, 1.0, 2.0]))
        array([0.25, 0.25, 0.5 ])
    """
    return _collected(ops.psum, x, axis_name, "psum")


@without_engine_frames
def pmean(x: Any, axis_name: Names) -> Any:
    """The mean over the axis, for every element.

    Raises:
        AxisNameError: No axis of that name is in scope, or its batch is split (a NameError).

    Example:
        >>> import numpy as np, func
        >>> func.vmap(lambda x: x - func.collectives.pmean(x, "i"), axis_name="i")(np.array([1.0, 2.0, 6.0]))
        array([-2., -1.,  3.])
    """
    count = math.prod([_size(axis) for axis in _axes(axis_name, "pmean")])
    return tree.map(lambda total: divide(total, count), _collected(ops.psum, x, axis_name, "pmean"))


@without_engine_frames
def pmax(x: Any, axis_name: Names) -> Any:
    """The largest value along the axis, for every element; ties share the derivative evenly.

    Raises:
        AxisNameError: No axis of that name is in scope, or its batch is split (a NameError).

    Example:
        >>> import numpy as np, func
        >>> func.vmap(lambda x: x == func.collectives.pmax(x, "i"), axis_name="i")(np.array([1.0, 7.0]))
        array([False,  True])
    """
    return _collected(ops.pmax, x, axis_name, "pmax")


@without_engine_frames
def pmin(x: Any, axis_name: Names) -> Any:
    """The smallest value along the axis, for every element; ties share the derivative evenly.

    Raises:
        AxisNameError: No axis of that name is in scope, or its batch is split (a NameError).

    Example:
        >>> import numpy as np, func
        >>> func.vmap(lambda x: x - func.collectives.pmin(x, "i"), axis_name="i")(np.array([3.0, 7.0]))
        array([0., 4.])
    """
    return _collected(ops.pmin, x, axis_name, "pmin")


@without_engine_frames
def all_gather(x: Any, axis_name: Names, *, axis: int = 0, tiled: bool = False) -> Any:
    """The values along the axis, for every element: stacked along a new axis, or `tiled` along an existing one.

    Args:
        x: A tree of arrays.
        axis_name: The name of an axis, or several, with elements in C order.
        axis: The place of the new axis; with `tiled` the axis of concatenation.
        tiled: Concatenate instead of stacking.

    Raises:
        AxisNameError: No axis of that name is in scope, or its batch is split (a NameError).

    Example:
        >>> import numpy as np, func
        >>> func.vmap(lambda x: func.collectives.all_gather(x, "i") @ np.ones(2), axis_name="i")(np.array([1.0, 2.0]))
        array([3., 3.])
    """
    axes = _axes(axis_name, "all_gather")
    count = math.prod([_size(own) for own in axes])

    def gathered(leaf: Array, label: str) -> Array:
        own = tuple(shape_of(leaf))
        place = _checked_place(axis, len(own) if tiled else len(own) + 1, own, "all_gather", "axis")
        for each in reversed(axes):
            leaf = _apply(ops.all_gather, leaf, each, label)
        return _concatenated(reshape(leaf, shape=(count, *own)), place) if tiled else _placed(leaf, own, count, place)

    return _mapped(gathered, x, "all_gather")


@without_engine_frames
def reduce_scatter(x: Any, axis_name: Names, *, axis: int = 0, tiled: bool = False) -> Any:
    """The sum over the axis, of which each element gets its part: `psum`, then the row of the element.

    It costs half of a `psum`; `all_gather` of its result completes one. `psum_scatter` is the same function.

    Args:
        x: A tree of arrays.
        axis_name: The name of an axis, or several, whose elements take the parts in C order.
        axis: The axis to distribute. It has one row for each element, and the result lacks it; with `tiled` several
            rows for each, which the result has.
        tiled: Whether elements take several rows.

    Raises:
        ArgumentError: The rows do not divide among the elements (a ValueError).
        AxisNameError: No axis of that name is in scope, or its batch is split (a NameError).

    Example:
        >>> import numpy as np, func
        >>> func.vmap(lambda x: func.collectives.reduce_scatter(x, "i"), axis_name="i")(np.array([[1, 2], [3, 4]]))
        array([4, 6])
    """
    axes = _axes(axis_name, "reduce_scatter")
    sizes = [_size(own) for own in axes]

    def scattered(leaf: Array, label: str) -> Array:
        leaf, place = _dealt(leaf, math.prod(sizes), axis, tiled, "reduce_scatter", "axis")
        leaf = reshape(leaf, shape=(*sizes, *shape_of(leaf)[1:]))
        for each in axes:
            leaf = _apply(ops.psum_scatter, leaf, each, label)
        return move_axis(leaf, 0, place) if tiled else leaf

    return _mapped(scattered, x, "reduce_scatter")


psum_scatter = reduce_scatter


@without_engine_frames
def all_to_all(x: Any, axis_name: Names, split_axis: int, concat_axis: int, *, tiled: bool = False) -> Any:
    """Element i gets the part i of each element's value: a transposition of parts and elements.

    Args:
        x: A tree of arrays.
        axis_name: The name of an axis, or several, with elements in C order.
        split_axis: The axis to distribute. It has one row for each element, and the result lacks it; with `tiled`
            several rows for each.
        concat_axis: The place of the new axis of source elements; with `tiled` the axis of concatenation.
        tiled: Whether parts have several rows.

    Raises:
        ArgumentError: The rows do not divide among the elements (a ValueError).
        AxisNameError: No axis of that name is in scope, or its batch is split (a NameError).

    Example:
        >>> import numpy as np, func
        >>> func.vmap(lambda x: func.collectives.all_to_all(x, "i", 0, 0), axis_name="i")(np.array([[1, 2], [3, 4]]))
        array([[1, 3],
               [2, 4]])
    """
    axes = _axes(axis_name, "all_to_all")
    sizes = [_size(own) for own in axes]
    count = math.prod(sizes)

    def exchanged(leaf: Array, label: str) -> Array:
        leaf, split = _dealt(leaf, count, split_axis, tiled, "all_to_all", "split_axis")
        own = shape_of(leaf)[1:]
        leaf = reshape(leaf, shape=(*sizes, *own))
        for place, each in enumerate(axes):
            leaf = move_axis(_apply(ops.all_to_all, move_axis(leaf, place, 0), each, label), 0, place)
        leaf = reshape(leaf, shape=(count, *own))
        if tiled:
            leaf = move_axis(leaf, 1, split + 1)
            own = shape_of(leaf)[1:]
            return _concatenated(leaf, _checked_place(concat_axis, len(own), own, "all_to_all", "concat_axis"))
        return move_axis(leaf, 0, _checked_place(concat_axis, len(own) + 1, own, "all_to_all", "concat_axis"))

    return _mapped(exchanged, x, "all_to_all")


@without_engine_frames
def ppermute(x: Any, axis_name: str, perm: Sequence[tuple[int, int]]) -> Any:
    """Values move along the axis: for each pair (source, destination) the destination gets the value of the source.

    Elements without a source get zeros. The derivative moves back.

    Args:
        x: A tree of arrays.
        axis_name: The name of one axis.
        perm: Pairs of numbers, each number at most once as a source and once as a destination.

    Raises:
        ArgumentError: The pairs have another form (a ValueError).
        AxisNameError: No axis of that name is in scope, or its batch is split (a NameError).

    Example:
        >>> import numpy as np, func
        >>> shift = [(0, 1), (1, 2)]
        >>> func.vmap(lambda x: func.collectives.ppermute(x, "i", shift), axis_name="i")(np.array([5.0, 6.0, 7.0]))
        array([0., 5., 6.])
    """
    return _permuted(x, axis_name, perm, "ppermute")


@without_engine_frames
def send_recv(x: Any, axis_name: str, *, source: int, dest: int) -> Any:
    """One message: the element `dest` gets the value of `source`, all others zeros.

    All elements call it, even those that neither send nor receive. There are no separate functions to send and to
    receive: the derivative of a receive is a send, so both elements take part in both.

    Example:
        >>> import numpy as np, func
        >>> send = lambda x: func.collectives.send_recv(x, "i", source=2, dest=0)
        >>> func.vmap(send, axis_name="i")(np.array([5.0, 6.0, 7.0]))
        array([7., 0., 0.])
    """
    return _permuted(x, axis_name, [(source, dest)], "send_recv")


@without_engine_frames
def broadcast(x: Any, axis_name: Names, *, root: int = 0) -> Any:
    """The value of the element `root`, for every element. Its derivative is the sum of all cotangents, at `root`.

    Raises:
        ArgumentError: There is no such element (a ValueError).
        AxisNameError: No axis of that name is in scope, or its batch is split (a NameError).

    Example:
        >>> import numpy as np, func
        >>> func.vmap(lambda x: func.collectives.broadcast(x, "i", root=1), axis_name="i")(np.array([5.0, 6.0]))
        array([6., 6.])
    """
    axes = _axes(axis_name, "broadcast")
    sizes = [_size(own) for own in axes]
    number = _element(root, math.prod(sizes), "broadcast", "root")

    def spread(leaf: Array, label: str) -> Array:
        for each, place in zip(axes, np.unravel_index(number, sizes), strict=True):
            leaf = _apply(ops.broadcast_from, leaf, each, label, root=int(place))
        return leaf

    return _mapped(spread, x, "broadcast")


def _permuted(x: Any, axis_name: str, perm: Sequence[tuple[int, int]], function: str) -> Any:
    """`ppermute`, for the function that messages name."""
    axes = _axes(axis_name, function)
    if len(axes) > 1:
        raise ArgumentError(f"func.collectives.{function}: values move along one axis, got axis_name={axis_name!r}")
    size = _size(axes[0])
    entries: Sequence[Any] = perm
    tuples: list[tuple[Any, ...]] = [tuple(p) if isinstance(p, (tuple, list)) else (p,) for p in entries]
    if any([len(pair) != 2 for pair in tuples]):
        raise ArgumentError(f"func.collectives.{function}: perm must hold pairs (source, destination), got {perm!r}")
    pairs = tuple([(_element(a, size, function, "source"), _element(b, size, function, "dest")) for a, b in tuples])
    if not ops.are_pairs(pairs, size):
        raise ArgumentError(
            f"func.collectives.{function}: perm={perm!r} names a source or a destination twice\n"
            "An element gets one value; write one ppermute for each, or a psum of several values."
        )
    return _mapped(lambda leaf, label: _apply(ops.ppermute, leaf, axes[0], label, pairs=pairs), x, function)


def _element(number: Any, size: int, function: str, word: str) -> int:
    """The number of an element; negative ones count from the end."""
    try:
        place = operator.index(number)
    except TypeError:
        raise TypeError(
            f"func.collectives.{function}: {word} must be an int that all elements share, got {number!r}"
        ) from None
    if not -size <= place < size:
        raise ArgumentError(f"func.collectives.{function}: {word}={place} is out of range for an axis of {size}")
    return place % size


def _checked_place(axis: int, rank: int, shape: tuple[int, ...], function: str, word: str) -> int:
    if not -rank <= axis < rank:
        raise ArgumentError(
            f"func.collectives.{function}: {word}={axis} is out of range for a value of shape {shape}{at_line()}"
        )
    return axis % rank


def _placed(stacked: Array, own: tuple[int, ...], count: int, place: int) -> Array:
    """Values stacked along leading axes, merged into one axis at a place."""
    return move_axis(reshape(stacked, shape=(count, *own)), 0, place)


def _concatenated(stacked: Array, place: int) -> Array:
    """The rows of a leading axis, concatenated along another axis."""
    count, *own = shape_of(stacked)
    own[place] *= count
    return reshape(move_axis(stacked, 0, place), shape=tuple(own))


def _dealt(leaf: Array, count: int, axis: int, tiled: bool, function: str, word: str) -> tuple[Array, int]:
    """(a value with a leading axis of `count` parts, the place of the cut axis).

    With `tiled` the rows of a part are the axis behind it.
    """
    own = shape_of(leaf)
    place = _checked_place(axis, len(own), own, function, word)
    length = own[place]
    if length % count if tiled else length != count:
        raise ArgumentError(
            f"func.collectives.{function}: {word}={axis} of a value of shape {own} has {length} rows, which must be "
            f"{'a multiple of' if tiled else ''} {count}, the size of the axis{at_line()}".replace("  ", " ")
        )
    leaf = move_axis(leaf, place, 0)
    return (reshape(leaf, shape=(count, length // count, *shape_of(leaf)[1:])) if tiled else leaf), place


def _axes(names: Names, function: str) -> list[Axis]:
    """The axes of these names: running vmaps with whole batches, and processes."""
    axes = tuple(names) if isinstance(names, (tuple, list)) else (names,)
    if not axes or not all([isinstance(name, str) for name in axes]):
        raise TypeError(f"func.collectives.{function}: axis_name must be a string or several, got {names!r}")
    if len(set(axes)) < len(axes):
        raise ArgumentError(f"func.collectives.{function}: axis_name={names!r} names an axis twice")
    running = [_axis(str(name), function) for name in axes]
    for name, axis in zip(axes, running, strict=True):
        _note(str(name), axis)
    return running


def _axis(name: str, function: str) -> Axis:
    running: tuple[Vmap, ...] = running_vmaps()
    depth = max([depth for depth, level in enumerate(running) if level.axis_name == name], default=-1)
    of_processes = [axis for axis in running_axes() if axis.name == name and axis.vmaps > depth]
    if of_processes:
        return of_processes[-1]
    if depth < 0:
        known = [repr(axis.name) for axis in running_axes()]
        known += [repr(level.axis_name) for level in running if level.axis_name is not None]
        raise AxisNameError(
            f"func.collectives.{function}: no running vmap has the axis_name {name!r}; names in scope: "
            f"{', '.join(known) or 'none'}{at_line()}"
        )
    level = running[depth]
    if any([inner.is_stand_in for inner in running[depth + 1 :]]):
        raise AxisNameError(
            f"func.collectives.{function}: the axis {name!r} cannot be reached from inside a custom rule"
            f"{at_line()}\nApply the collective outside, and pass its result as an argument."
        )
    whole = level.call.size
    if level.size != whole and function not in ("axis_index", "axis_size"):
        raise AxisNameError(
            f"func.collectives.{function}: only {level.size} of the {whole} elements of the axis {name!r} are together "
            f"here{at_line()}\nThe vmap has a chunk_size, or its batch was split at an `if` or a loop: "
            "leave chunk_size out, and write the choice with np.where."
        )
    return level


def axis_key(name: str) -> Any:
    """The dependence of a program that names an axis: the processes, or the batch size; None without the axis."""
    try:
        axis = _axis(name, "axis_size")
    except AxisNameError:
        return None
    return axis.ranks if isinstance(axis, RankAxis) else _size(axis)


def note_axes(names: Sequence[str]) -> None:
    """Tell the traces in the scope of some axes that their programs depend on them."""
    for name in names:
        _note(name, _axis(name, "axis_size"))


def number_on(name: str) -> Any:
    """The number of this process on an axis of processes, abstract in a trace."""
    return plain_number(_number(_axis(name, "axis_size")))


def _note(name: str, axis: Axis) -> None:
    """Tell the traces in the scope of an axis that their programs depend on it."""
    for entry in live_entries():
        if entry.interpreter is axis:
            break
        if isinstance(entry.interpreter, Stage):
            entry.interpreter.axes[name] = axis.ranks if isinstance(axis, RankAxis) else _size(axis)


def _size(axis: Axis) -> int:
    return axis.ranks.size if isinstance(axis, RankAxis) else axis.call.size


def _number(axis: Axis) -> Any:
    """The positions of the elements, one for each; or the number of the process, abstract in a trace."""
    if isinstance(axis, Vmap):
        return axis.lift(axis.elements)
    stage = present_stage()
    return axis.number if stage is None else stage.wrap(stage.atom(axis.number))


def _apply(primitive: Primitive, x: Array, axis: Axis, label: str, **params: Any) -> Array:
    """A collective over one axis."""
    if isinstance(axis, RankAxis):
        primitive, where = _OVER_RANKS[primitive], {"ranks": axis.ranks, "label": label}
    else:
        where = {"size": axis.call.size}
    out: Array = primitive(x, _number(axis), **where, **params)
    return out


def _collected(primitive: Primitive, x: Any, names: Names, function: str) -> Any:
    axes = _axes(names, function)

    def collect(leaf: Array, label: str) -> Array:
        for axis in axes:
            leaf = _apply(primitive, leaf, axis, label)
        return leaf

    return _mapped(collect, x, function)


def _mapped(collect: Callable[[Array, str], Array], x: Any, function: str) -> Any:
    """A function of an array and its name on the leaves of a tree."""
    leaves, spec = tree.flatten(x)
    names = tree.path_names(x, "x")
    word = f"collectives.{function}"
    arrays = [unbox(array_leaf(leaf, name, word)) for leaf, name in zip(leaves, names, strict=True)]
    outs = [collect(leaf, f"{function}({name})") for leaf, name in zip(arrays, names, strict=True)]
    return tree.unflatten(spec, outs)


def __dir__() -> list[str]:
    return _public_names(globals())
