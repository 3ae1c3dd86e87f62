"""The associative scan: the running results of an associative function, in logarithmically many rounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from func import tree
from func.control.loop_carry import owned, without_writes
from func.control.scanning import part_of
from func.interpreters.core import Array, shape_of
from func.interpreters.core.errors import CarryError, LengthError
from func.interpreters.host.public_functions import without_engine_frames
from func.interpreters.host.source import at_line
from func.interpreters.primitives.structural.shapes import expand, reshape
from func.interpreters.primitives.structural.slicing import concatenate
from func.transforms.boundary import array_leaf, check_callable, describe, name_of, unbox


@without_engine_frames
def associative_scan(f: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """The running results of an associative function: e0, f(e0, e1), f(f(e0, e1), e2), ..., in log2(n) rounds.

    Args:
        f: An associative function of two trees of elements. It takes many elements at a time, along `axis`, and must
            not write to them.
        elems: A tree of arrays of one length along `axis`.
        reverse: Scan from the last element instead: f(f(e2, e1), e0) comes first, e2 last.
        axis: The axis of the elements.

    Raises:
        LengthError: Lengths differ (a ValueError).
        CarryError: f returns a tree or shapes other than those of its arguments (a TypeError).
        SharedMemoryError: f writes to its arguments, which are parts of the arrays that the next rounds read.

    Example:
        >>> import numpy as np, func
        >>> func.associative_scan(np.maximum, np.array([1.0, 3.0, 2.0, 5.0]))
        array([1., 3., 3., 5.])
    """
    check_callable(f, "associative_scan")
    leaves, spec = tree.flatten(elems)
    names = tree.path_names(elems, "elems")
    leaves = [unbox(array_leaf(leaf, name, "associative_scan")) for leaf, name in zip(leaves, names, strict=True)]
    lengths = {}
    axes = []
    for leaf, name in zip(leaves, names, strict=True):
        rank = len(shape_of(leaf))
        if not -rank <= axis < rank:
            shape = shape_of(leaf)
            raise LengthError(f"func.associative_scan: axis={axis} is out of range for {name} of shape {shape}")
        axes.append(axis % rank)
        lengths[name] = shape_of(leaf)[axes[-1]]
    if len(set(lengths.values())) > 1:
        listed = ", ".join([f"{name} has {n}" for name, n in lengths.items()])
        raise LengthError(f"func.associative_scan: lengths along axis {axis} differ: {listed}{at_line()}")

    guarded = without_writes(f, range(2 * len(leaves)), "associative_scan")

    def combine(left: Sequence[Array], right: Sequence[Array]) -> list[Array]:
        outs, out_spec = tree.flatten(guarded(tree.unflatten(spec, list(left)), tree.unflatten(spec, list(right))))
        if out_spec != spec:
            raise CarryError(
                f"func.associative_scan: {name_of(f)} returned another tree than its argument's{at_line()}\n"
                f"  argument {tree.shown(spec)}\n  returned {tree.shown(out_spec)}"
            )
        for out, operand, name in zip(outs, left, names, strict=True):
            if shape_of(out) != shape_of(operand):
                raise CarryError(
                    f"func.associative_scan: {name_of(f)} got {describe(operand)} for {name} and returned "
                    f"{describe(out)}{at_line()}\nIt takes many elements at once, along the axis."
                )
        return outs

    flipped = [_flipped(x, a) for x, a in zip(leaves, axes, strict=True)] if reverse else leaves
    outs = _scan_halving(combine, flipped, axes) if leaves and min(lengths.values()) > 0 else flipped
    outs = [_flipped(x, a) for x, a in zip(outs, axes, strict=True)] if reverse else outs
    return tree.unflatten(spec, owned(list(outs)))


def _flipped(x: Array, axis: int) -> Array:
    n = shape_of(x)[axis]
    return part_of(x, n - 1, -1, axis, -1) if n else x


def _scan_halving(
    combine: Callable[[Sequence[Array], Sequence[Array]], list[Array]], xs: Sequence[Array], axes: Sequence[int]
) -> list[Array]:
    """Scanning pairs of neighbours yields the results at odd places; one more element each yields the others."""
    n = shape_of(xs[0])[axes[0]]
    if n < 2:
        return list(xs)

    def cut(ys: Sequence[Array], start: int, stop: int, step: int = 1) -> list[Array]:
        return [part_of(y, start, stop, axis, step) for y, axis in zip(ys, axes, strict=True)]

    even = n - n % 2
    odd_results = _scan_halving(combine, combine(cut(xs, 0, even, 2), cut(xs, 1, even, 2)), axes)
    first = cut(xs, 0, 1)
    if n == 2:
        return [concatenate(a, b, axis=axis) for a, b, axis in zip(first, odd_results, axes, strict=True)]
    even_results = combine(cut(odd_results, 0, (n - 1) // 2), cut(xs, 2, n, 2))
    evens = [concatenate(a, b, axis=axis) for a, b, axis in zip(first, even_results, axes, strict=True)]
    return [_interleaved(a, b, axis) for a, b, axis in zip(evens, odd_results, axes, strict=True)]


def _interleaved(evens: Array, odds: Array, axis: int) -> Array:
    """even[0], odd[0], even[1], odd[1], ... along an axis; even may have one element more."""
    count = shape_of(odds)[axis]
    pairs = concatenate(expand(part_of(evens, 0, count, axis), (axis + 1,)), expand(odds, (axis + 1,)), axis=axis + 1)
    shape = list(shape_of(odds))
    shape[axis] = 2 * count
    interleaved = reshape(pairs, shape=tuple(shape))
    if shape_of(evens)[axis] == count:
        return interleaved
    return concatenate(interleaved, part_of(evens, count, count + 1, axis), axis=axis)
