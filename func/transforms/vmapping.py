"""vmap: a function of one example becomes a function of a batch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from func import tree
from func.interpreters.core import Array, dtype_of, shape_of
from func.interpreters.core.errors import ArgumentError, MappedAxisError
from func.interpreters.drivers import map_flat
from func.interpreters.primitives.structural.shapes import broadcast, move_axis
from func.interpreters.primitives.structural.slicing import concatenate, getitem
from func.interpreters.vmap import MappedCall, Vmap
from func.transforms.boundary import array_leaf, check_callable, name_of, output_leaf, own, traced, unbox

AUTO_CHUNK_BYTES = 1 << 26
"""What chunk_size="auto" lets one chunk's mapped inputs and outputs take together."""


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | str | None = None,
    axis_name: str | None = None,
    axis_size: int | None = None,
    in_axes: Any = None,
    out_axes: Any = None,
    progress: bool = False,
) -> Callable[..., Any]:
    """Map a function over an axis of its arguments, computing all lanes at once.

    Python control flow on mapped values works: where lanes disagree on an `if`, `while`, `int(x)` or `.item()` of an
    integer, they are parted and the function runs once for each part (side effects repeat).

    Args:
        func: The function of one example; plain NumPy code.
        in_dims: For each positional argument the axis to map: an int, None for an argument used whole, or a tree
            of these that is a prefix of the argument. One int stands for all. A dict may give keyword arguments
            their axes as its last entry: `in_dims=(0, {"scale": None})`; keyword arguments map axis 0 otherwise.
        out_dims: Where the mapped axis goes in each output; None for an output that does not depend on the lane.
        randomness: What func.random.Generator does inside: "error", "same" or "different" draws per lane.
        chunk_size: Map this many lanes at a time, to bound memory; "auto" chooses from the size of the lanes.
        axis_name: A name for the axis (for func.collectives).
        axis_size: The number of lanes, needed only where no argument is mapped.
        in_axes, out_axes: Synonyms of in_dims and out_dims.
        progress: Show a progress bar over the chunks.

    Raises:
        MappedAxisError: Axes do not fit the arguments, or mapped sizes differ (a ValueError).
        RaggedLanesError: Lanes that took different paths returned different shapes (a ValueError).

    Example:
        >>> import numpy as np, func
        >>> func.vmap(np.dot, in_dims=(0, None))(np.eye(3), np.array([1.0, 2.0, 3.0]))
        array([1., 2., 3.])
    """
    check_callable(func, "vmap")
    if in_axes is not None:
        in_dims = in_axes
    if out_axes is not None:
        out_dims = out_axes
    if randomness not in ("error", "same", "different"):
        raise ArgumentError(f"func.vmap: randomness must be 'error', 'same' or 'different', not {randomness!r}")
    if chunk_size is not None and chunk_size != "auto" and (not isinstance(chunk_size, int) or chunk_size < 1):
        raise ArgumentError(f"func.vmap: chunk_size must be a positive int or 'auto', not {chunk_size!r}")

    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        lanes = Lanes(func, in_dims, axis_size, args, kwargs)
        options = (axis_name, randomness)
        if chunk_size is None:
            outs, flags, spec = lanes.run(slice(None), options)
        else:
            size = lanes.auto_chunk(options) if chunk_size == "auto" else chunk_size
            outs, flags, spec = run_chunks(lanes, int(size), options, progress)
        dims = broadcast_prefix(out_dims, spec, "out_dims", "output")
        results = [
            place_out(out, flag, dim, lanes.size, path)
            for out, flag, dim, path in zip(outs, flags, dims, out_paths(spec), strict=True)
        ]
        del outs
        return tree.unflatten(spec, own(results))

    return mapped


class Lanes:
    """The arguments of one mapped call: leaves, which are mapped, and how many lanes there are."""

    def __init__(
        self,
        function: Callable[..., Any],
        in_dims: Any,
        axis_size: int | None,
        args: Any,
        kwargs: dict[str, Any],
    ) -> None:
        self.function = function
        keyword_dims: Any = 0
        if isinstance(in_dims, (tuple, list)) and len(in_dims) == len(args) + 1 and isinstance(in_dims[-1], dict):
            keyword_dims = {key: in_dims[-1].get(key, 0) for key in kwargs}
            unknown = set(in_dims[-1]) - set(kwargs)
            if unknown:
                raise MappedAxisError(
                    f"func.vmap: in_dims names keyword arguments {sorted(unknown)} that {name_of(function)} was not "
                    "called with"
                )
            in_dims = tuple(in_dims[:-1])
        if isinstance(in_dims, list):
            in_dims = tuple(in_dims)
        if isinstance(in_dims, tuple) and len(in_dims) != len(args):
            raise MappedAxisError(
                f"func.vmap: in_dims has {len(in_dims)} entries for the {len(args)} positional arguments of "
                f"{name_of(function)}"
            )
        if isinstance(keyword_dims, int):
            keyword_dims = dict.fromkeys(kwargs, 0)
        whole = (tuple(args), kwargs)
        leaves, self.spec = tree.flatten(whole)
        arg_spec = tree.structure(tuple(args))
        dims = [
            *broadcast_prefix(in_dims, arg_spec, "in_dims", "arguments"),
            *broadcast_prefix(keyword_dims, tree.structure(kwargs), "in_dims", "keyword arguments"),
        ]
        paths = [*tree.path_names(tuple(args), "args"), *[p[1:] for p in tree.path_names(kwargs, "_")]]
        self.which: list[bool] = []
        self.leaves: list[Any] = []
        sizes: dict[str, int] = {}
        for leaf, dim, path in zip(leaves, dims, paths, strict=True):
            if dim is None:
                self.which.append(False)
                self.leaves.append(leaf)
                continue
            leaf = array_leaf(leaf, path, "vmap")
            shape = shape_of(leaf)
            if not isinstance(dim, (int, np.integer)) or isinstance(dim, bool):
                raise MappedAxisError(f"func.vmap: in_dims must hold ints and None, got {dim!r} for {path}")
            if not shape:
                raise MappedAxisError(
                    f"func.vmap: {path} is a scalar and has no axis to map; use None in in_dims for it"
                )
            if not -len(shape) <= dim < len(shape):
                raise MappedAxisError(f"func.vmap: in_dims={dim} is out of range for {path} of shape {shape}")
            axis = int(dim) % len(shape)
            sizes[path] = shape[axis]
            self.which.append(True)
            self.leaves.append(move_axis(leaf, axis, 0))
        self.size = self._common(sizes, axis_size)
        self.call = MappedCall(self.size)

    def _common(self, sizes: dict[str, int], axis_size: int | None) -> int:
        distinct = set(sizes.values())
        if not distinct:
            if axis_size is None:
                raise MappedAxisError(
                    f"func.vmap: no argument of {name_of(self.function)} is mapped, so the number of lanes is "
                    "unknown; map an argument (an int in in_dims), or pass axis_size="
                )
            return axis_size
        if len(distinct) > 1:
            listed = ", ".join([f"{path} has {size}" for path, size in sizes.items()])
            raise MappedAxisError(f"func.vmap: mapped axes differ in size: {listed}")
        (size,) = distinct
        if axis_size is not None and axis_size != size:
            raise MappedAxisError(f"func.vmap: axis_size={axis_size}, but the mapped arguments have {size} lanes")
        return size

    def run(self, part: slice, options: tuple[Any, Any]) -> tuple[list[Array], list[bool], Any]:
        """Outputs of some lanes, with the lanes leading where an output is mapped; and the output's tree."""
        start, stop, _ = part.indices(self.size)
        whole = stop - start == self.size
        chosen = [
            _rows(leaf, start, stop) if mapped and not whole else leaf
            for leaf, mapped in zip(self.leaves, self.which, strict=True)
        ]
        specs: list[Any] = []

        def flat(*leaves: Array) -> list[Array]:
            args, kwargs = tree.unflatten(self.spec, leaves)
            outs, spec = tree.flatten(self.function(*args, **kwargs))
            if specs and specs[0] != spec:
                raise MappedAxisError(
                    f"func.vmap: lanes of {name_of(self.function)} that took different paths returned different "
                    f"trees, {specs[0]} and {spec}"
                )
            specs.append(spec)
            paths = out_paths(spec)
            return [unbox(output_leaf(out, path, "vmap")) for out, path in zip(outs, paths, strict=True)]

        interpreter = Vmap("vmap", np.arange(start, stop), self.call, *options)
        with traced(interpreter):
            outs, flags = map_flat(flat, stop - start, self.which, chosen, interpreter)
        return outs, flags, specs[-1]

    def auto_chunk(self, options: tuple[Any, Any]) -> int:
        """Lanes per chunk so that inputs and outputs of a chunk stay within AUTO_CHUNK_BYTES: measured on one lane."""
        if self.size <= 1:
            return 1
        outs, flags, _ = self.run(slice(0, 1), options)
        lane = sum([_bytes(leaf) // self.size for leaf, mapped in zip(self.leaves, self.which, strict=True) if mapped])
        lane += sum([_bytes(out) for out, mapped in zip(outs, flags, strict=True) if mapped])
        return max(1, min(self.size, AUTO_CHUNK_BYTES // max(1, 4 * lane)))


def _bytes(value: Array) -> int:
    return int(np.prod(shape_of(value), dtype=np.int64)) * dtype_of(value).itemsize


def _rows(x: Array, start: int, stop: int) -> Array:
    return getitem(x, index=((start, stop, 1), *[(0, n, 1) for n in shape_of(x)[1:]]))


def chunks(size: int, chunk: int, progress: bool, label: str) -> Iterator[slice]:
    """Slices of at most `chunk` lanes, with a progress bar if wanted."""
    starts: Iterable[int] = range(0, size, chunk)
    if progress:
        from tqdm import tqdm  # 20 ms of import that only progress bars need

        starts = tqdm(starts, desc=label, unit="chunk")
    for start in starts:
        yield slice(start, min(start + chunk, size))


def run_chunks(lanes: Lanes, size: int, options: Any, progress: bool) -> tuple[list[Array], list[bool], Any]:
    """Chunk after chunk, outputs concatenated."""
    parts = [
        lanes.run(part, options)
        for part in chunks(max(lanes.size, 1), size, progress, f"vmap {name_of(lanes.function)}")
    ]
    spec = parts[0][2]
    if len(parts) == 1:
        return parts[0]
    flags = [any([part[1][i] for part in parts]) for i in range(len(parts[0][0]))]
    outs = []
    for i, mapped in enumerate(flags):
        if not mapped:
            outs.append(parts[-1][0][i])
            continue
        pieces = []
        for part, start in zip(parts, range(0, lanes.size, size), strict=True):
            piece = part[0][i]
            count = min(size, lanes.size - start)
            pieces.append(piece if part[1][i] else broadcast(piece, shape=(count, *shape_of(piece))))
            part[0][i] = None
        outs.append(concatenate(*pieces, axis=0))
    return outs, flags, spec


def broadcast_prefix(dims: Any, spec: Any, word: str, what: str) -> list[Any]:
    """One axis per leaf, from a tree of axes that is a prefix of the tree."""
    if dims is None or isinstance(dims, (int, np.integer)):
        return [dims] * spec.num_leaves
    return list(_prefix(dims, spec, word, what, dims))


def _prefix(dims: Any, spec: Any, word: str, what: str, whole: Any) -> Iterator[Any]:
    if dims is None or isinstance(dims, (int, np.integer)):
        yield from [dims] * spec.num_leaves
        return
    children = spec.children()
    if isinstance(dims, dict):
        keys = spec.entries()
        if set(keys) != set(dims) or spec.is_leaf():
            raise MappedAxisError(f"func.vmap: {word}={whole!r} is not a prefix of the tree of the {what}, {spec}")
        entries = [dims[key] for key in keys]
    elif isinstance(dims, (tuple, list)):
        if len(dims) != len(children) or spec.is_leaf():
            raise MappedAxisError(f"func.vmap: {word}={whole!r} is not a prefix of the tree of the {what}, {spec}")
        entries = list(dims)
    elif (own := tree.one_level(dims)) is not None:
        if spec.is_leaf() or type(dims) is not spec.type or len(own) != len(children):
            raise MappedAxisError(f"func.vmap: {word}={whole!r} is not a prefix of the tree of the {what}, {spec}")
        entries = own
    else:
        raise MappedAxisError(f"func.vmap: {word} must be ints, None, or a tree of these, got {dims!r}")
    for entry, child in zip(entries, children, strict=True):
        yield from _prefix(entry, child, word, what, whole)


def out_paths(spec: Any) -> Sequence[str]:
    """How messages name the leaves of an output."""
    return [accessor.codify("output") for accessor in spec.accessors()]


def place_out(out: Array, mapped: bool, dim: Any, size: int, path: str) -> Array:
    """An output with its lanes at the wanted axis."""
    if dim is None:
        if mapped:
            raise MappedAxisError(f"func.vmap: out_dims is None for {path}, but it differs from lane to lane")
        return out
    if not isinstance(dim, (int, np.integer)) or isinstance(dim, bool):
        raise MappedAxisError(f"func.vmap: out_dims must hold ints and None, got {dim!r} for {path}")
    if not mapped:
        out = broadcast(out, shape=(size, *shape_of(out)))
    rank = len(shape_of(out))
    if not -rank <= dim < rank:
        raise MappedAxisError(f"func.vmap: out_dims={dim} is out of range for {path} of shape {shape_of(out)[1:]}")
    return move_axis(out, 0, int(dim) % rank)
