"""vmap: a function of one example becomes a function of a batch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self

import numpy as np

from func import tree
from func.interpreters.compiled_backward import by_nodes
from func.interpreters.core import Array, dtype_of, shape_of
from func.interpreters.core.errors import ArgumentError, MappedAxisError, UnsupportedArrayError
from func.interpreters.core.wiring import WIRING
from func.interpreters.drivers import all_mapped, map_flat
from func.interpreters.primitives.structural.shapes import broadcast, move_axis
from func.interpreters.primitives.structural.slicing import concatenate, getitem
from func.interpreters.vmap import MappedCall, Vmap
from func.numpy.memory import layout_of_argument, set_layout
from func.numpy.sharing import note_arguments, read_only, shared_groups
from func.transforms.arguments import Arguments
from func.transforms.boundary import (
    Intercepts,
    argument_paths,
    array_leaf,
    is_value,
    name_of,
    output_leaves,
    output_paths,
    own,
)
from func.transforms.memory_limits import PLANNING, ChunkPlan, Planning, planning, whole_results
from func.transforms.transformed import keeps_parameters, transform

AUTO_CHUNK_BYTES = 1 << 26
"""The memory that the elements of one chunk take together with chunk_size="auto"."""


class _Unset:
    """The type of an unset option, where None has a meaning."""

    def __repr__(self) -> str:
        return "UNSET"

    def __reduce__(self) -> str:
        return "UNSET"


UNSET = _Unset()


class _Default(int):
    """The default axis; a user's axis is a plain int."""

    def __reduce__(self) -> str:
        return "FIRST_AXIS"


FIRST_AXIS = _Default(0)


@keeps_parameters
@transform
def vmap(
    f: Callable[..., Any],
    in_dims: Any = FIRST_AXIS,
    out_dims: Any = FIRST_AXIS,
    randomness: str = "error",
    *,
    chunk_size: int | str | None = None,
    axis_name: str | None = None,
    axis_size: int | None = None,
    in_axes: Any = UNSET,
    out_axes: Any = UNSET,
    progress: bool = False,
    memory_limit: int | str | None = None,
    executor: Any = None,
    intercept: Intercepts = False,
) -> Callable[..., Any]:
    """Map a function over an axis of its arguments, computing all elements of the batch at once.

    Python control flow on mapped values works. Where batch elements disagree on an `if`, `while`, `int(x)` or `.item()`
    of an integer, func splits the batch. It runs the function once for each part, so side effects repeat.

    Args:
        f: The function of one example; plain NumPy code. Without it, vmap is a decorator with options.
        in_dims: For each positional argument the axis to map: an int, None for an argument used whole, or a tree of
            these. The tree is a prefix of the argument. One int applies to all. A last entry that is a dict gives
            keyword arguments their axes: `in_dims=(0, {"scale": None})`; otherwise they map axis 0.
        out_dims: Where the mapped axis goes in each output; None for an output that is the same for the whole
            batch.
        randomness: The draws of func.random.Generator inside: "error", "same" for all elements, or "different".
        chunk_size: Map this many elements at a time, to bound memory; "auto" measures the memory that
            few elements take, intermediate values included, and stays within 64 MiB.
        axis_name: A name for the axis (for func.collectives).
        axis_size: The size of the batch, needed only where no argument is mapped.
        in_axes, out_axes: Synonyms of in_dims and out_dims; pass one of the two.
        progress: Show a progress bar over the chunks; a batch that is computed at once is one chunk.
        memory_limit: The most memory that a call may need, arguments and results included: bytes, or a text as "2 GiB".
            func chooses chunks with a planned peak below it; `func.memory` shows the plan.
        executor: Computes the chunks: an executor of concurrent.futures (processes, threads), of joblib, Dask
            (`client.get_executor()`), or MPI. Without chunk_size the chunks follow from the cost of the function, so
            results do not depend on the number of workers. The workers compute pullbacks too.
        intercept: Run the function inside `func.intercept()`; True, or its modules.

    Raises:
        TravelError: Another process cannot unpickle the function or its values (a TypeError).
        WorkerLostError: Workers died, and fresh ones did again (a RuntimeError).
        MappedAxisError: Axes do not fit the arguments, or mapped sizes differ (a ValueError).
        MemoryLimitError: Even chunks of one element need more than memory_limit (a MemoryError).
        RaggedLanesError: Elements that took different paths returned different shapes (a ValueError).

    Example:
        >>> import numpy as np, func
        >>> func.vmap(np.dot, in_dims=(0, None))(np.eye(3), np.array([1.0, 2.0, 3.0]))
        array([1., 2., 3.])
    """
    in_dims = _synonym("in_dims", in_dims, "in_axes", in_axes)
    out_dims = _synonym("out_dims", out_dims, "out_axes", out_axes)
    if randomness not in ("error", "same", "different"):
        raise ArgumentError(f"func.vmap: randomness must be 'error', 'same' or 'different', not {randomness!r}")
    is_count = isinstance(chunk_size, int) and not isinstance(chunk_size, bool) and chunk_size >= 1
    if chunk_size is not None and chunk_size != "auto" and not is_count:
        raise ArgumentError(f"func.vmap: chunk_size must be a positive int or 'auto', not {chunk_size!r}")
    if memory_limit is not None and chunk_size is not None:
        raise ArgumentError("func.vmap: memory_limit chooses the chunks; pass either it or chunk_size")
    plan = None if memory_limit is None else ChunkPlan(memory_limit, "vmap", f)
    if executor is not None:
        is_random = randomness != "error"
        WIRING.check_executor("vmap", executor, memory_limit=memory_limit, randomness=is_random, axis_name=axis_name)
        size = chunk_size if isinstance(chunk_size, int) else None

        def spread(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            return WIRING.map_by_executor(f, args, kwargs, in_dims, out_dims, axis_size, size, progress, executor)

        return spread

    def run(args: tuple[Any, ...], kwargs: dict[str, Any], chunk_size: int | str | None) -> Any:
        call = BatchedCall(f, in_dims, axis_size, args, kwargs, axis_name, randomness)
        if chunk_size is None or chunk_size == call.size:
            outs, is_mapped, spec = call.run_whole() if progress else call.run(slice(None))
        else:
            outs, is_mapped, spec = call.run_chunks(chunk_size, progress)
        dims = broadcast_prefix(out_dims, spec, "out_dims", "output")
        results = [
            _place_axis(out, mapped, dim, call.size, path)
            for out, mapped, dim, path in zip(outs, is_mapped, dims, output_paths(spec), strict=True)
        ]
        del outs
        return tree.unflatten(spec, own(results))

    def planned(*args: Any, **kwargs: Any) -> Any:
        """A call for a plan, with the chunks of the plan."""
        trial = PLANNING.get()
        assert trial is not None
        size = trial.chunk
        with planning(Planning()):
            return run(args, kwargs, size)

    def mapped(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if plan is None:
            return run(args, kwargs, chunk_size)

        def size() -> int:
            return BatchedCall(f, in_dims, axis_size, args, kwargs, axis_name, randomness).size

        with by_nodes():
            return run(args, kwargs, plan.chunk(size, planned, args, kwargs, "elements"))

    return mapped


def _synonym(name: str, value: Any, synonym: str, other: Any) -> Any:
    """The value of an option with two names."""
    if other is not UNSET:
        if value is not FIRST_AXIS:
            raise ArgumentError(f"func.vmap: {synonym} is a synonym of {name}; give one of them")
        value = other
    if is_value(value):
        raise ArgumentError(
            f"func.vmap: {name} must hold ints and None, got a {type(value).__name__}; vmap takes the function "
            "alone: did you mean func.vmap(f)(x)?"
        )
    return value


class BatchedCall:
    """A call of a function on a batch: its arguments, the mapped ones with the batch axis in front, and the size."""

    def __init__(
        self,
        function: Callable[..., Any],
        in_dims: Any,
        axis_size: int | None,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        axis_name: str | None = None,
        randomness: str = "error",
    ) -> None:
        self.function = function
        self.axis_name = axis_name
        self.randomness = randomness
        arg_dims, kwarg_dims = _split_dims(function, in_dims, args, kwargs)
        leaves, spec = tree.flatten((args, kwargs))
        dims = [
            *broadcast_prefix(arg_dims, tree.structure(args), "in_dims", "arguments"),
            *broadcast_prefix(kwarg_dims, tree.structure(kwargs), "in_dims", "keyword arguments"),
        ]
        names = functools.partial(argument_paths, function, args, kwargs)
        active = [i for i, dim in enumerate(dims) if dim is not None]
        sizes: dict[int, int] = {}
        self.mapped_inputs = [(leaves[i], dims[i]) for i in active]
        for i in active:
            try:
                leaves[i], sizes[i] = _with_leading_batch(leaves[i], dims[i], "")
            except (MappedAxisError, UnsupportedArrayError):  # errors alone need names
                path = names()[i]
                keyword = "" if i < spec.num_leaves - len(tree.leaves(kwargs)) else path
                leaves[i], sizes[i] = _with_leading_batch(leaves[i], dims[i], path, keyword)
        self.unsplit_leaves = list(leaves)
        for (leaf, _), i in zip(self.mapped_inputs, active, strict=True):
            self.unsplit_leaves[i] = leaf
        for group in shared_groups(self.unsplit_leaves):
            for i in group:
                if dims[i] is None and not set(group).isdisjoint(active):
                    leaves[i] = read_only(leaves[i])
        self.in_spec = spec
        self.arguments = Arguments([spec], leaves, active)
        self.is_mapped = [dim is not None for dim in dims]
        self.size = self._common_size(sizes, axis_size, names)
        self.call = MappedCall(self.size)

    def _common_size(self, sizes: dict[int, int], axis_size: int | None, names: Callable[[], list[str]]) -> int:
        distinct = set(sizes.values())
        if not distinct:
            if axis_size is None:
                raise MappedAxisError(
                    f"func.vmap: no argument of {name_of(self.function)} is mapped, so the size of the batch is "
                    "unknown; map an argument (an int in in_dims), or pass axis_size="
                )
            return axis_size
        if len(distinct) > 1:
            paths = names()
            listed = ", ".join([f"{paths[i]} has {size}" for i, size in sizes.items()])
            raise MappedAxisError(f"func.vmap: mapped axes differ in size: {listed}")
        (size,) = distinct
        if axis_size is not None and axis_size != size:
            raise MappedAxisError(f"func.vmap: axis_size={axis_size}, but the mapped arguments have {size} elements")
        return size

    def run(self, part: slice) -> tuple[list[Array], list[bool], Any]:
        """Outputs for a part of the batch (mapped ones with the batch axis in front), which are mapped, their tree."""
        start, stop, _ = part.indices(self.size)
        leaves = self.arguments.leaves
        if stop - start < self.size:
            leaves = list(leaves)
            for i in self.arguments.active:
                leaves[i] = _slice_front(leaves[i], start, stop)
        in_spec = self.in_spec
        specs: list[Any] = []

        def flat(*leaves: Array) -> list[Array]:
            for i, (leaf, dim) in zip(self.arguments.active, self.mapped_inputs, strict=True):
                set_layout(leaves[i], layout_of_argument(leaf, int(dim) % len(shape_of(leaf))))
            level = next((leaves[i]._interpreter for i in self.arguments.active), interpreter)
            note_arguments(level, self.function, leaves, self.unsplit_leaves)
            args, kwargs = tree.unflatten(in_spec, leaves)
            outs, spec = output_leaves(self.function(*args, **kwargs), "vmap")
            if specs and specs[0] != spec:
                raise MappedAxisError(
                    f"func.vmap: elements of the batch of {name_of(self.function)} that took different paths returned "
                    f"different trees, {tree.shown(specs[0])} and {tree.shown(spec)}"
                )
            specs.append(spec)
            return outs

        interpreter = Vmap("vmap", np.arange(start, stop), self.call, self.axis_name, self.randomness)
        outs, is_mapped = map_flat(flat, stop - start, self.is_mapped, leaves, interpreter)
        return outs, is_mapped, specs[-1]

    def run_whole(self) -> tuple[list[Array], list[bool], Any]:
        """Outputs of the whole batch at once, as one step of a progress bar."""
        (results,) = [self.run(slice(None)) for _ in chunks(1, 1, True, f"vmap {name_of(self.function)}")]
        return results

    def run_chunks(self, chunk_size: int | str, progress: bool) -> tuple[list[Array], list[bool], Any]:
        """Outputs of one chunk after the other, concatenated."""
        label = f"vmap {name_of(self.function)}"
        if PLANNING.get() is not None and not isinstance(chunk_size, str) and chunk_size < self.size:
            return self._run_for_plan(chunk_size)
        done = Chunks(self.size)
        if isinstance(chunk_size, str):
            chunk_size = self._run_measured(done)
        start = done.stop
        if start < self.size or done.is_empty:
            for part in chunks(max(self.size, 1) - start, chunk_size, progress, label):
                place = slice(start + part.start, start + part.stop)
                done.add(place, *self.run(place))
        return done.joined()

    def _run_for_plan(self, chunk_size: int) -> tuple[list[Array], list[bool], Any]:
        """The memory of the chunks: all results, and the computation of one."""
        outs, is_mapped, spec = self.run(slice(0, chunk_size))
        whole = whole_results(all_mapped(outs, is_mapped, chunk_size), self.size)
        del outs
        self.run(slice(0, chunk_size))
        return whole, [True] * len(whole), spec

    def _run_measured(self, done: Chunks) -> int:
        """The chunk size with a peak within AUTO_CHUNK_BYTES, measured by a chunk of one element and one of a few."""
        size = 1
        for _ in range(2):
            start = done.stop
            if start >= self.size:
                break
            stop = min(start + size, self.size)
            with measured_memory() as memory:
                outs, is_mapped, spec = self.run(slice(start, stop))
            count = stop - start
            visible = sum([_bytes(leaf) * count // self.size for leaf in self.arguments.values()])
            visible += sum([_bytes(out) for out, mapped in zip(outs, is_mapped, strict=True) if mapped])
            done.add(slice(start, stop), outs, is_mapped, spec)
            per_element = max(memory.peak, 4 * visible) // count  # traced or compiled code shows too little
            size = max(1, min(self.size, AUTO_CHUNK_BYTES // max(1, per_element)))
        return size


class Chunks:
    """The outputs of the chunks of a batch. Writes plain arrays to their places at once, so that none exists twice."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.stop = 0
        self.is_empty = True
        self._places: list[slice] = []
        self._parts: list[tuple[list[Array], list[bool]]] = []
        self._whole: list[Array] = []
        """For each output the array of the whole batch, or None until the end."""
        self._spec: Any = None

    def add(self, place: slice, outs: list[Array], is_mapped: list[bool], spec: Any) -> None:
        """Add the outputs of a chunk, which are mapped, and their tree."""
        if self.is_empty:
            self._spec = spec
            is_first = place.stop - place.start < self.size
            self._whole = [
                self._array_like(out) if yes and is_first else None for out, yes in zip(outs, is_mapped, strict=True)
            ]
        for i, out in enumerate(outs):
            whole = self._whole[i]
            if whole is not None and is_mapped[i] and type(out) is np.ndarray and _fits(out, whole):
                whole[place] = out
                outs[i] = None
        self.is_empty, self.stop = False, place.stop
        self._places.append(place)
        self._parts.append((outs, is_mapped))

    def _array_like(self, out: Array) -> Any:
        return np.empty((self.size, *out.shape[1:]), out.dtype) if type(out) is np.ndarray else None

    def joined(self) -> tuple[list[Array], list[bool], Any]:
        """The outputs of the whole batch, which are mapped, and their tree."""
        if len(self._parts) == 1:
            return *self._parts[0], self._spec
        is_mapped = [any(flags) for flags in zip(*[flags for _, flags in self._parts], strict=True)]
        return [self._output(i, mapped) for i, mapped in enumerate(is_mapped)], is_mapped, self._spec

    def _output(self, i: int, is_mapped: bool) -> Array:
        if not is_mapped:
            return self._parts[-1][0][i]
        whole = self._whole[i]
        if whole is not None and all([outs[i] is None for outs, _ in self._parts]):
            return whole
        pieces = []
        for (outs, flags), place in zip(self._parts, self._places, strict=True):
            piece = outs[i]
            if piece is None:
                assert whole is not None
                piece = whole[place]
            pieces += all_mapped([piece], [flags[i]], place.stop - place.start)
            outs[i] = None
        return concatenate(*pieces, axis=0)


def _fits(out: Array, whole: Array) -> bool:
    return bool(out.shape[1:] == whole.shape[1:] and out.dtype == whole.dtype)


class measured_memory:
    """The peak memory of Python and NumPy inside a block beyond what they had before: `peak`, in bytes.

    If tracemalloc runs already, its peak is that of the block afterwards.
    """

    peak = 0

    def __enter__(self) -> Self:
        import tracemalloc  # few programs need it: importing func stays fast

        self._tracemalloc = tracemalloc
        self._was_tracing = tracemalloc.is_tracing()
        if self._was_tracing:
            tracemalloc.reset_peak()
        else:
            tracemalloc.start()
        self._before = tracemalloc.get_traced_memory()[0]
        return self

    def __exit__(self, *exception: object) -> None:
        self.peak = max(0, self._tracemalloc.get_traced_memory()[1] - self._before)
        if not self._was_tracing:
            self._tracemalloc.stop()


def _split_dims(
    function: Callable[..., Any], in_dims: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, Any]:
    """in_dims of the positional and of the keyword arguments."""
    kwarg_dims: Any = dict.fromkeys(kwargs, 0)
    if isinstance(in_dims, (tuple, list)) and len(in_dims) == len(args) + 1 and isinstance(in_dims[-1], dict):
        kwarg_dims |= {name: dim for name, dim in in_dims[-1].items() if name in kwargs}
        if unknown := sorted(set(in_dims[-1]) - set(kwargs)):
            raise MappedAxisError(
                f"func.vmap: in_dims names keyword arguments {unknown} that {name_of(function)} was not called with"
            )
        in_dims = tuple(in_dims[:-1])
    if isinstance(in_dims, list):
        in_dims = tuple(in_dims)
    if isinstance(in_dims, tuple) and len(in_dims) != len(args):
        raise MappedAxisError(
            f"func.vmap: in_dims has {len(in_dims)} entries for the {len(args)} positional arguments of "
            f"{name_of(function)}"
        )
    return in_dims, kwarg_dims


def _with_leading_batch(leaf: Any, dim: Any, path: str, keyword: str = "") -> tuple[Array, int]:
    """A mapped leaf with the batch axis in front, and the size of that axis; `keyword` if it is a keyword argument."""
    leaf = array_leaf(leaf, path, "vmap")
    shape = shape_of(leaf)
    if not isinstance(dim, (int, np.integer)) or isinstance(dim, bool):
        raise MappedAxisError(f"func.vmap: in_dims must hold ints and None, got {dim!r} for {path}")
    if not shape:
        advice = (
            "use None in in_dims for it"
            if not keyword
            else f"put its axis into a dict behind the positional ones, in_dims=(0, {{{keyword!r}: None}})"
        )
        name, whole = f"the keyword argument {keyword}" if keyword else path, path.partition("[")[0]
        if not keyword and whole != path and not isinstance(leaf, np.ndarray):
            advice = f"{whole} is a tree of numbers: pass np.array({whole}), or None in in_dims for it"
        raise MappedAxisError(f"func.vmap: {name} is a scalar and has no axis to map; {advice}")
    if not -len(shape) <= dim < len(shape):
        raise MappedAxisError(f"func.vmap: in_dims={dim} is out of range for {path} of shape {shape}")
    axis = int(dim) % len(shape)
    return move_axis(leaf, axis, 0), shape[axis]


def _bytes(value: Array) -> int:
    return int(np.prod(shape_of(value), dtype=np.int64)) * dtype_of(value).itemsize


def _slice_front(x: Array, start: int, stop: int) -> Array:
    return getitem(x, index=((start, stop, 1), *[(0, n, 1) for n in shape_of(x)[1:]]))


def chunks(size: int, chunk_size: int, progress: bool, label: str) -> Iterator[slice]:
    """Slices of at most `chunk_size` elements, with a progress bar on request."""
    starts: Iterable[int] = range(0, size, chunk_size)
    if progress:
        from tqdm.auto import tqdm  # a widget in notebooks; only progress bars need it

        starts = tqdm(starts, desc=label, unit="chunk")
    for start in starts:
        yield slice(start, min(start + chunk_size, size))


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
        fits = set(keys) == set(dims)
        entries = [dims[key] for key in keys] if fits else []
    elif isinstance(dims, (tuple, list)):
        entries = list(dims)
        fits = len(entries) == len(children)
    elif (level := tree.one_level(dims)) is not None:
        entries = level
        fits = type(dims) is spec.type and len(entries) == len(children)
    else:
        raise MappedAxisError(f"func.vmap: {word} must be ints, None, or a tree of these, got {dims!r}")
    if spec.is_leaf() or not fits:
        is_one_dict = word == "in_dims" and whole is dims and isinstance(dims, dict)
        advice = "; for one argument write a tuple of one entry, in_dims=({...},)" if is_one_dict else ""
        shown = f"the {what}, {tree.shown(spec)}"
        raise MappedAxisError(
            f"func.vmap: {word}={whole!r} does not fit {shown}: give an int or None for all of it, or the same "
            f"containers with an int or None for each part{advice}"
        )
    for entry, child in zip(entries, children, strict=True):
        yield from _prefix(entry, child, word, what, whole)


def _place_axis(out: Array, is_mapped: bool, dim: Any, size: int, path: str) -> Array:
    """An output with the batch axis at the position in out_dims."""
    if dim is None:
        if is_mapped:
            raise MappedAxisError(
                f"func.vmap: out_dims is None for {path}, but it may differ within the batch; if it does not (after a "
                "collective, or from a jitted function), write out_dims=0 and take the first element, [0]"
            )
        return out
    if not isinstance(dim, (int, np.integer)) or isinstance(dim, bool):
        raise MappedAxisError(f"func.vmap: out_dims must hold ints and None, got {dim!r} for {path}")
    if not is_mapped:
        out = broadcast(out, shape=(size, *shape_of(out)))
    rank = len(shape_of(out))
    if not -rank <= dim < rank:
        raise MappedAxisError(f"func.vmap: out_dims={dim} is out of range for {path} of shape {shape_of(out)[1:]}")
    return move_axis(out, 0, int(dim) % rank)
