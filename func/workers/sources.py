"""The sources of a sum's data: arrays, files, stores, blocks of Dask, or batches of an iterator."""

from __future__ import annotations

import importlib
import math
import operator
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from func import tree
from func.backends.records import Record
from func.errors import ArgumentError, RaggedChunksError
from func.interpreters.core import Tracer

CHUNK_BYTES = 1 << 24
"""The default size of a chunk of data in bytes."""

Chunk = tuple[int, int, Any]
"""First row, row after the last, and something with `load()`, which gives the leaves of the batch."""


class Loaded(Record):
    """Rows that travel with the task."""

    leaves: Sequence[Any]

    def load(self) -> list[Any]:
        return list(self.leaves)


class FileRows:
    """Rows of a C-ordered array in a file, read at their use.

    Reading takes half as long as mapping, with a fault for every page. It reuses the memory of the last chunk, unless
    something still refers to it.
    """

    def __init__(self, path: str, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.path = path
        self.offset = offset
        self.shape = shape
        self.dtype = dtype

    def __getitem__(self, rows: slice) -> Any:
        start, stop, _ = rows.indices(self.shape[0])
        row_bytes = _bytes(self.shape[1:], self.dtype)
        shape = (stop - start, *self.shape[1:])
        if not row_bytes or stop <= start:
            return np.empty(shape, self.dtype)
        memory = _memory((stop - start) * row_bytes)
        with open(self.path, "rb", buffering=0) as file:
            file.seek(self.offset + start * row_bytes)
            done = 0
            while done < len(memory):
                count = file.readinto(memory[done:].data)
                if not count:
                    raise OSError(f"{self.path} ends before row {stop} of the {self.shape[0]} that it had")
                done += count
        return memory.view(self.dtype).reshape(shape)


_READ = threading.local()
"""The buffers of a thread in `memories`."""
_MOST_MEMORIES = 4
_OURS = 3
"""References to unused memory: of the list, of the variable, and of the call that counts them."""


def _memory(size: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Memory of this size: that of an earlier call if nothing else refers to it."""
    memories: list[Any] = _READ.__dict__.setdefault("memories", [])
    for known in memories:
        if size <= len(known) <= 2 * size and sys.getrefcount(known) <= _OURS:
            return known[:size]  # type: ignore[no-any-return]
    known = np.empty(size, np.uint8)
    memories.append(known)
    del memories[:-_MOST_MEMORIES]
    return known[:size]


def rows_of_memmap(array: np.memmap[Any, Any]) -> FileRows | None:
    """The rows of a memory-mapped array, to be opened again; None if they are not contiguous."""
    if array.filename is None or not array.flags.c_contiguous:
        return None
    first: Any = array
    while isinstance(first.base, np.memmap):
        first = first.base
    delta = array.__array_interface__["data"][0] - first.__array_interface__["data"][0]
    return FileRows(os.fspath(array.filename), first.offset + delta, array.shape, array.dtype)


class RowsAt(Record):
    """Rows of some stores."""

    stores: Sequence[Any]
    start: int
    stop: int

    def load(self) -> list[Any]:
        return [np.asarray(store[self.start : self.stop]) for store in self.stores]


class StoredRows:
    """Data with rows that any process can read: files, Zarr arrays; arrays in memory go as slices."""

    def __init__(self, data: Any) -> None:
        leaves, self.spec = tree.flatten(data)
        names = tree.path_names(data, "data")
        self.stores = [_store(leaf, name) for leaf, name in zip(leaves, names, strict=True)]
        lengths = {store.shape[0] for store in self.stores}
        if len(lengths) > 1:
            listed = ", ".join([f"{name} has {store.shape[0]}" for name, store in zip(names, self.stores, strict=True)])
            raise ArgumentError(f"func.sum_over: the arrays of the data have different numbers of samples: {listed}")
        self.rows = lengths.pop()
        self.chunk_rows: int = 0

    def total(self) -> int:
        return int(self.rows)

    def plan(self, chunk_rows: int | None, by_cost: Callable[[int], int]) -> None:
        """Set the number of rows of a chunk, once; whole chunks of a store with chunks."""
        if chunk_rows is None:
            row_bytes = sum([_bytes(store.shape[1:], store.dtype) for store in self.stores])
            chunk_rows = min(max(1, CHUNK_BYTES // max(row_bytes, 1)), by_cost(self.rows))
            for store in self.stores:
                own = getattr(store, "chunks", None)
                if own:
                    chunk_rows = max(1, chunk_rows // own[0]) * own[0]
        self.chunk_rows = operator.index(cast(Any, chunk_rows))

    def count(self) -> int:
        return -(-int(self.rows) // max(self.chunk_rows, 1))

    def chunks(self) -> Iterator[Chunk]:
        in_memory = all([type(store) is np.ndarray for store in self.stores])
        for start in range(0, self.rows, self.chunk_rows):
            stop = min(start + self.chunk_rows, self.rows)
            if in_memory:
                yield start, stop, Loaded([store[start:stop] for store in self.stores])
            else:
                parts = [
                    CutRows(store[start:stop], start) if type(store) is np.ndarray else store for store in self.stores
                ]
                yield start, stop, RowsAt(parts, start, stop)

    def example(self) -> list[Any]:
        return [np.zeros((1, *store.shape[1:]), store.dtype) for store in self.stores]


class CutRows:
    """Rows of an array in memory, read by their numbers in the whole."""

    def __init__(self, rows: Any, first: int) -> None:
        self.rows = rows
        self.first = first

    def __getitem__(self, rows: slice) -> Any:
        return self.rows[rows.start - self.first : rows.stop - self.first]


def _bytes(shape: tuple[int, ...], dtype: Any) -> int:
    return math.prod(shape) * int(np.dtype(dtype).itemsize)


def _store(leaf: Any, name: str) -> Any:
    """An object with a shape, a dtype and rows."""
    if isinstance(leaf, (str, Path)):
        path = os.fspath(leaf)
        if not path.endswith(".npy"):
            raise ArgumentError(
                f"func.sum_over: {name} is the path {path!r}, but sum_over reads only files of np.save (.npy)\n"
                "Open others and pass an object with a shape, a dtype and rows: np.memmap, zarr.open_array."
            )
        leaf = np.load(path, mmap_mode="r")
    if isinstance(leaf, np.memmap):
        mapped_rows = rows_of_memmap(leaf)
        leaf = np.asarray(leaf) if mapped_rows is None else mapped_rows
    elif not hasattr(leaf, "__getitem__") or not hasattr(leaf, "dtype") or not hasattr(leaf, "shape"):
        leaf = np.asarray(leaf)
    if not len(leaf.shape):
        raise ArgumentError(f"func.sum_over: {name} is a number and has no axis of samples")
    return leaf if type(leaf) is not np.memmap else np.asarray(leaf)


class Batches:
    """Batches that a function, or an iterable object, makes again for every pass."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        batches = make()
        if not hasattr(batches, "__iter__"):
            raise ArgumentError(
                f"func.sum_over: the function of the data returns a {type(batches).__name__}, where batches are "
                "needed\nWrite a function that yields batches: each a tree of arrays with the samples along their "
                "first axes."
            )
        first = next(iter(batches), None)
        if first is None:
            raise ArgumentError("func.sum_over: the data has no samples")
        leaves, self.spec = tree.flatten(_columns(first))
        self._example = [_example_row(np.asarray(leaf)) for leaf in leaves]
        self._total: int | None = None

    def total(self) -> int:
        if self._total is None:
            self._total = sum([stop - start for start, stop, _ in self.chunks()])
        return self._total

    def plan(self, chunk_rows: int | None, by_cost: Callable[[int], int]) -> None:
        if chunk_rows is not None:
            raise ArgumentError(
                "func.sum_over: the chunks are the batches that the data consists of; leave chunk_size out"
            )

    def count(self) -> None:
        return None

    def chunks(self) -> Iterator[Chunk]:
        start = i = 0
        for batch in self._make():
            leaves, spec = tree.flatten(_columns(batch))
            if spec != self.spec:
                raise RaggedChunksError(
                    f"func.sum_over: batch {i} has the tree {spec}, and the first one {self.spec}\n"
                    "Make batches of one tree."
                )
            arrays = [np.asarray(leaf) for leaf in leaves]
            rows = {x.shape[0] if x.ndim else -1 for x in arrays}
            if len(rows) != 1 or -1 in rows:
                raise RaggedChunksError(
                    f"func.sum_over: the arrays of batch {i} have {', '.join(map(str, sorted(rows)))} samples\n"
                    "Give every array of a batch the same first axis."
                )
            stop = start + rows.pop()
            if stop > start:
                yield start, stop, Loaded(arrays)
            start, i = stop, i + 1
        if self._total is not None and start != self._total:
            raise RaggedChunksError(
                f"func.sum_over: the batches have {start} samples in this pass over the data, and had {self._total} "
                "before\nMake the same batches in every pass: values and derivatives take separate passes."
            )
        self._total = start

    def example(self) -> list[Any]:
        return self._example


class DaskBlock:
    """A batch of Dask blocks, computed or not."""

    def __init__(self, blocks: Sequence[Any]) -> None:
        self.blocks = blocks

    def load(self) -> list[Any]:
        dask: Any = importlib.import_module("dask")  # the blocks are its objects
        return leaves_of_blocks(dask.compute(*self.blocks, scheduler="synchronous"))

    def futures(self, client: Any) -> list[Any]:
        """The blocks as data of the cluster: the task runs where they are."""
        return [block if _is_dask(block, "Future") else client.compute(block) for block in self.blocks]

    def without_futures(self) -> DaskBlock:
        return DaskBlock(())

    def with_blocks(self, blocks: Sequence[Any]) -> ComputedBlocks:
        return ComputedBlocks(blocks)


class ComputedBlocks(Record):
    """A batch with its blocks in this process."""

    blocks: Sequence[Any]

    def load(self) -> list[Any]:
        return leaves_of_blocks(self.blocks)


def leaves_of_blocks(blocks: Sequence[Any]) -> list[Any]:
    """The arrays of blocks; a data frame has one for each column."""
    return [np.asarray(leaf) for block in blocks for leaf in tree.leaves(tree_of_block(block))]


def tree_of_block(block: Any) -> Any:
    """A partition of a data frame as {column: array}; other values unchanged."""
    if hasattr(block, "columns") and hasattr(block, "to_numpy"):
        return {str(name): block[name].to_numpy() for name in block.columns}
    return block


class DaskBlocks:
    """Blocks of Dask arrays, partitions of Dask data frames, or futures of batches."""

    def __init__(self, blocks: Sequence[Sequence[Any]], lengths: Sequence[int], example: Any) -> None:
        self._blocks = blocks
        self._lengths = lengths
        leaves, self.spec = tree.flatten(example)
        self._example = [np.asarray(leaf) for leaf in leaves]

    def total(self) -> int:
        return int(sum(self._lengths))

    def plan(self, chunk_rows: int | None, by_cost: Callable[[int], int]) -> None:
        if chunk_rows is not None:
            raise ArgumentError(
                "func.sum_over: the chunks are those of Dask; leave chunk_size out, or rechunk the data"
            )

    def count(self) -> int:
        return len(self._blocks)

    def chunks(self) -> Iterator[Chunk]:
        start = 0
        for blocks, length in zip(self._blocks, self._lengths, strict=True):
            if length:
                yield start, start + int(length), DaskBlock(blocks)
                start += int(length)

    def example(self) -> list[Any]:
        return self._example


def _is_dask(value: Any, *kinds: str) -> bool:
    module = (type(value).__module__ or "").partition(".")[0]
    return module in ("dask", "dask_expr", "distributed") and type(value).__name__ in kinds


def _columns(data: Any) -> Any:
    """Data whose frames are {column: array}."""
    return tree.map(tree_of_block, data)


def _example_row(array: Any) -> Any:
    """An example of a sample: the first one, or zeros without one."""
    return array[:1].copy() if array.shape[:1] != (0,) else np.zeros((1, *array.shape[1:]), array.dtype)


def _rows_of(batch: Any) -> int:
    leaves = tree.leaves(tree_of_block(batch))
    return int(np.shape(leaves[0])[0])


def _first_row(batch: Any) -> Any:
    return tree.map(lambda leaf: np.asarray(leaf)[:1], tree_of_block(batch))


def source_of(data: Any) -> Any:
    """The source that reads some data."""
    leaves, names = tree.leaves(data), tree.path_names(data, "data")
    for leaf, name in zip(leaves, names, strict=True):
        if type(leaf) is Tracer:
            raise ArgumentError(
                f"func.sum_over: {name} is a value that an outer transform traces; the data are constants, and "
                "derivatives those by the parameters\nPass it among the parameters, or write "
                "np.sum(func.vmap(loss)(...))."
            )
    if leaves and all([_is_dask(leaf, "Future") for leaf in leaves]) and isinstance(data, (list, tuple)):
        client = leaves[0].client
        counts = [client.submit(_rows_of, future, pure=False) for future in leaves]
        example = client.submit(_first_row, leaves[0], pure=False).result()
        return DaskBlocks([[future] for future in leaves], [count.result() for count in counts], example)
    if any([_is_dask(leaf, "Array", "DataFrame", "Series") for leaf in leaves]):
        return _of_dask(data)
    if callable(data) and not hasattr(data, "shape"):
        return Batches(data)
    if len(leaves) == 1 and leaves[0] is data and hasattr(data, "__iter__") and not hasattr(data, "shape"):
        if isinstance(data, (str, bytes)):
            return StoredRows(data)
        again: Any = data
        if iter(again) is again:
            raise ArgumentError(
                f"func.sum_over: the data is a {type(data).__name__}, which can be read only once, and every "
                "evaluation reads it\nPass the function that makes it: data=lambda: batches(...)."
            )
        return Batches(lambda: data)
    if not leaves:
        raise ArgumentError("func.sum_over: the data has no arrays")
    return StoredRows(_columns(data))


def _of_dask(data: Any) -> DaskBlocks:
    """A tree of Dask arrays or frames, with equal chunks along their first axis."""
    leaves, spec = tree.flatten(data)
    names = tree.path_names(data, "data")
    columns = []
    lengths: list[tuple[int, ...]] = []
    examples = []
    for leaf, name in zip(leaves, names, strict=True):
        if _is_dask(leaf, "DataFrame", "Series"):
            sizes = tuple(int(size) for size in leaf.map_partitions(len).compute())
            blocks = leaf.to_delayed()
            examples.append(_first_row(leaf._meta_nonempty) if hasattr(leaf, "_meta_nonempty") else leaf.head(1))
        elif _is_dask(leaf, "Array"):
            if any([len(sizes) > 1 for sizes in leaf.chunks[1:]]):
                leaf = leaf.rechunk({axis: -1 for axis in range(1, leaf.ndim)})
            if any([size != size for size in leaf.chunks[0]]):
                leaf = leaf.compute_chunk_sizes()
            sizes = tuple(int(size) for size in leaf.chunks[0])
            blocks = leaf.to_delayed().ravel()
            examples.append(np.zeros((1, *leaf.shape[1:]), leaf.dtype))
        else:
            raise ArgumentError(
                f"func.sum_over: {name} is a {type(leaf).__name__} among Dask arrays\n"
                "Make it one with the same chunks: dask.array.from_array(x, chunks=...)."
            )
        columns.append(list(blocks))
        lengths.append(sizes)
    if len(set(lengths)) > 1:
        listed = ", ".join([f"{name} {sizes}" for name, sizes in zip(names, lengths, strict=True)])
        raise RaggedChunksError(
            f"func.sum_over: the Dask arrays of the data have different chunks of samples: {listed}\n"
            "Rechunk them alike: y.rechunk({0: x.chunks[0]})."
        )
    example = tree.unflatten(spec, examples)
    return DaskBlocks([list(row) for row in zip(*columns, strict=True)], lengths[0], example)
