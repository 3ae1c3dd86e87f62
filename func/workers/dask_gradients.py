"""Gradients with respect to whole Dask arrays, of losses that are functions of sums over blocks.

The function gets a `BlockwiseArray` in the place of each Dask array. Its results are functions of one block up to a
sum: a pass over the blocks in their places, and a number for transforms. The slope of the loss by each sum, times the
gradient of the function of a block, is a lazy block of the result.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from func import tree
from func.errors import (
    ArgumentError,
    RaggedChunksError,
    ScalarOutputError,
    UnsupportedArrayError,
    UnsupportedFunctionError,
)
from func.interpreters.calls.remote_map import remote_map
from func.interpreters.core import Array, Tracer, dtype_of
from func.interpreters.host.source import at_line
from func.transforms.boundary import is_dask_array, name_of
from func.transforms.closures import Closure
from func.transforms.reverse import grad, value_and_grad
from func.workers.data_sums import AtData, read_only
from func.workers.engines import DaskEngine, HereEngine
from func.workers.mapping import CalledChunk
from func.workers.running import ChunkRunner
from func.workers.sources import DaskBlocks

MOST_SUMS = 64
"""The most sums of a loss."""
_ELEMENTWISE = frozenset([np.where, np.clip, np.real, np.imag, np.nan_to_num])
_ARRAY_FACTS = frozenset(["shape", "dtype", "ndim", "size", "chunks", "numblocks"])


class BlockSum(CalledChunk):
    """The sum over the elements of a function of one block of each array."""

    is_objective = True

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function, ())
        self.split = tuple([False] * len(self.operands))

    def with_data(self, data: Sequence[Any]) -> AtData:
        """The function with the blocks of its chunk."""
        return AtData(self, [read_only(x) for x in data])

    def at(self, operands: Sequence[Array], data: Sequence[Any]) -> list[Array]:
        """The outputs."""
        function, _ = self.call_at(operands)
        return [np.sum(function(*data))]


class BlockwiseArray(NDArrayOperatorsMixin):
    """The substitute for a Dask array in the function: it maps blocks, and sums."""

    def __init__(self, sums: BlockSums, function: Callable[..., Any], like: Any = None, chunks: Any = None) -> None:
        self._sums = sums
        self._function = function
        """The function of one block of each Dask array."""
        self._like = like
        """The Dask array with its shape and chunks; None if these are unknown."""
        self._cut = _cut(like) if chunks is None else chunks

    def map_blocks(
        self, function: Callable[..., Any], *others: Any, dtype: Any = None, meta: Any = None
    ) -> BlockwiseArray:
        """A function of each block, and of the same block of others; other arguments go whole to every block.

        `dtype` and `meta` exist only for compatibility with Dask's method.
        """
        operands = [self, *others]
        for other in operands:
            if is_dask_array(other):
                raise self._sums.error("Dask arrays that are not arguments", "Pass them as arguments.")
            if isinstance(other, BlockwiseArray) and other._cut != self._cut:
                raise RaggedChunksError(
                    f"func.{self._sums.transform}: map_blocks of arrays with the chunks {self._cut} and {other._cut}"
                    f"{at_line()}\nRechunk them alike: y.rechunk({{0: x.chunks[0]}})."
                )
        return BlockwiseArray(self._sums, _composed(function, operands), None, self._cut)

    def sum(self) -> Any:
        """The sum of all elements."""
        return self._sums.total(self._function)

    def mean(self) -> Any:
        """The mean of all elements."""
        if self._like is None:
            raise self._sums.error("means of what map_blocks returns", "Divide its sum by the number of elements.")
        return self.sum() / self._like.size

    def __getattr__(self, name: str) -> Any:
        if name in _ARRAY_FACTS and self._like is not None:
            return getattr(self._like, name)
        if name.startswith("__"):
            raise AttributeError(name)
        raise self._sums.error(f"an attribute {name}")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if ufunc is np.matmul and method == "__call__" and not kwargs:
            return self._times(*inputs)
        if method != "__call__" or ufunc.signature is not None or ufunc.nout != 1 or kwargs.get("out") is not None:
            raise self._sums.error(f"numpy.{ufunc.__name__}{'' if method == '__call__' else f'.{method}'}")
        return self._elementwise(ufunc, inputs, kwargs)

    def _elementwise(self, function: Any, inputs: Sequence[Any], kwargs: dict[str, Any]) -> BlockwiseArray:
        """A function of each element of blocks, and of numbers."""
        name = f"numpy.{function.__name__}"
        blockwise = [x for x in inputs if isinstance(x, BlockwiseArray)]
        for x in inputs:
            if not isinstance(x, BlockwiseArray) and np.ndim(x):
                raise self._sums.error(f"{name} of it and an array of shape {np.shape(x)}")
        likes = {(x._like.chunks if x._like is not None else None) for x in blockwise}
        if len(blockwise) > 1 and (len(likes) > 1 or None in likes):
            raise self._sums.error(f"{name} of arrays with other chunks", "Rechunk them alike, or use map_blocks.")
        mapped = blockwise[0].map_blocks(_composed(function, _places(inputs), kwargs), *blockwise[1:])
        return BlockwiseArray(self._sums, mapped._function, blockwise[0]._like, self._cut)

    def _times(self, left: Any, right: Any) -> BlockwiseArray:
        """Blocks of rows times a whole matrix or vector."""
        is_rows = isinstance(left, BlockwiseArray) and not isinstance(right, BlockwiseArray) and left._like is not None
        if not is_rows or left.ndim != 2 or left.numblocks[1] != 1 or np.ndim(right) not in (1, 2):
            raise self._sums.error("products but those of blocks of whole rows with a matrix or vector")
        mapped = left.map_blocks(np.matmul, right)
        rows = left.chunks[0]
        shape = (left.shape[0], *np.shape(right)[1:])
        like = importlib.import_module("dask.array").empty(shape, chunks=(rows, *shape[1:]), dtype=left.dtype)
        return BlockwiseArray(self._sums, mapped._function, like)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function in (np.sum, np.mean) and len(args) == 1 and args[0] is self and not kwargs:
            return self.sum() if function is np.sum else self.mean()
        if function in _ELEMENTWISE and not kwargs:
            return self._elementwise(function, args, {})
        more = " with other arguments" if function in (np.sum, np.mean) else ""
        raise self._sums.error(f"numpy.{function.__name__}{more}")

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise self._sums.error("conversion to an array")

    def __getitem__(self, index: Any) -> Any:
        raise self._sums.error("indexing")

    def __bool__(self) -> bool:
        raise self._sums.error("decisions by its values")

    def __iter__(self) -> Any:
        raise self._sums.error("iteration")

    def __len__(self) -> int:
        return int(self.shape[0])


def _cut(array: Any) -> tuple[tuple[int, ...], ...]:
    """The chunks along the axes up to the last one that is cut; those of associated arrays agree."""
    axes = [axis for axis, count in enumerate(array.numblocks) if count > 1]
    return tuple(array.chunks[: max(axes, default=-1) + 1])


class _BlockNumber:
    """The position of an operand, in its place."""

    def __init__(self, number: int) -> None:
        self.number = number


def _places(inputs: Sequence[Any]) -> list[Any]:
    """The blockwise operands as positions, the first of which is that of the first one."""
    numbers = iter(range(len(inputs)))
    return [_BlockNumber(next(numbers)) if isinstance(x, BlockwiseArray) else x for x in inputs]


def _composed(
    function: Callable[..., Any], operands: Sequence[Any], kwargs: dict[str, Any] | None = None
) -> Callable[..., Any]:
    """A function of blocks, or of positions, that calls another one; it captures traced values among the operands."""
    options = kwargs or {}
    parts = [x._function if isinstance(x, BlockwiseArray) else None for x in operands]
    numbers = [x.number if isinstance(x, _BlockNumber) else None for x in operands]
    wholes = [None if isinstance(x, (BlockwiseArray, _BlockNumber)) else x for x in operands]

    def call(*blocks: Any) -> Any:
        values = [
            part(*blocks) if part is not None else blocks[number] if number is not None else whole
            for part, number, whole in zip(parts, numbers, wholes, strict=True)
        ]
        return function(*values, **options)

    return call


def _block_at(number: int) -> Callable[..., Any]:
    def block(*blocks: Any) -> Any:
        return blocks[number]

    return block


class BlockSums:
    """The sums of one run of the function: each by a pass over the blocks, or known from an earlier run."""

    def __init__(self, transform: str, name: str, arrays: Sequence[Any], known: Sequence[Any] | None = None) -> None:
        self.transform = transform
        self.name = name
        self.arrays = arrays
        self.known = known
        self.functions: list[Callable[..., Any]] = []
        self.totals: list[Any] = []
        self.slopes: Any = None
        """Zeros that are added to the sums; derivatives by them are derivatives by the sums."""

    def array(self, number: int) -> BlockwiseArray:
        """The substitute for one of the Dask arrays in the function."""
        return BlockwiseArray(self, _block_at(number), self.arrays[number])

    def total(self, function: Callable[..., Any]) -> Any:
        """The sum of a function of blocks."""
        number = len(self.functions)
        if number == MOST_SUMS:
            raise ArgumentError(
                f"func.{self.transform}: {self.name} takes more than {MOST_SUMS} sums over Dask arrays\n"
                "Stack the summands in one function of map_blocks, or compute the sums in a loop outside."
            )
        self.functions.append(function)
        if self.known is not None:
            return self.known[number]
        chunk = BlockSum(function)
        runner = ChunkRunner(_engine(), f"func.{self.transform}({self.name})", data=_source(self.arrays), unit="blocks")
        (value,) = remote_map(*chunk.operands, fun=chunk, split=chunk.split, joined=False, runner=runner)
        self.totals.append(value)
        return value + self.slopes[number].astype(dtype_of(value))

    def error(self, what: str, advice: str = "") -> UnsupportedFunctionError:
        """The error for an operation that does not work block by block."""
        return UnsupportedFunctionError(
            f"func.{self.transform}: a Dask array with a gradient is computed block by block, without "
            f"{what}{at_line()}\n"
            + (
                advice
                or "Sum functions of single blocks, x.map_blocks(g, y).sum(), or of elements, np.sum(np.sin(x) * y); "
                "or pass x.compute()."
            )
        )


def _engine() -> Any:
    """The workers of the Dask client of this process, if there is one."""
    distributed = sys.modules.get("distributed")
    if distributed is not None:
        try:
            return DaskEngine(distributed.get_client())
        except ValueError:
            pass  # there is no client
    return HereEngine(None)


def _source(arrays: Sequence[Any]) -> DaskBlocks:
    """The corresponding blocks of some arrays."""
    columns = [x.to_delayed().ravel() for x in arrays]
    rows = [list(row) for row in zip(*columns, strict=True)]
    example = [np.broadcast_to(np.zeros((), x.dtype), tuple([sizes[0] for sizes in x.chunks])) for x in arrays]
    return DaskBlocks(rows, [1] * len(rows), example)


class _GradientOfBlock:
    """The gradients of the loss by one block of each array."""

    def __init__(self, functions: Sequence[Any], slopes: Sequence[Any], active: Sequence[int]) -> None:
        self.functions = functions
        self.slopes = slopes
        self.active = tuple(active)

    def __call__(self, *blocks: Any) -> list[Any]:
        def weighted(*blocks: Any) -> Any:
            return sum(
                [slope * np.sum(function(*blocks)) for function, slope in zip(self.functions, self.slopes, strict=True)]
            )

        blocks = tuple([np.asarray(block) for block in blocks])
        if not self.functions:
            return [np.zeros_like(blocks[i]) for i in self.active]
        return [np.asarray(x) for x in grad(weighted, self.active)(*blocks)]


def gradient_by_blocks(transformed: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`grad(f)(*args)`, or `value_and_grad`, with respect to Dask arrays: gradients with their chunks."""
    transform, options, function = transformed._transform.__name__, transformed._options, transformed.__wrapped__
    if kwargs or options.get("argnames") is not None or options.get("has_aux") or options.get("holomorphic"):
        raise ArgumentError(
            f"func.{transform}: of Dask arrays it takes positional arguments and argnums, and none of argnames, "
            "has_aux and holomorphic\nLeave them out, or pass x.compute()."
        )
    argnums: Any = options["argnums"]
    chosen = [n % len(args) for n in (argnums if isinstance(argnums, (tuple, list)) else (argnums,))]
    leaves, spec = tree.flatten(args)
    places = [i for i, leaf in enumerate(leaves) if is_dask_array(leaf)]
    arrays = [_with_known_chunks(leaves[i]) for i in places]
    owners = [number for number, arg in enumerate(args) for _ in tree.leaves(arg)]
    active = [k for k, i in enumerate(places) if owners[i] in chosen]
    _check(transform, [arrays[k] for k in active], arrays)
    plain_places = [i for i, leaf in enumerate(leaves) if owners[i] in chosen and not is_dask_array(leaf)]
    name = name_of(function)

    def run(sums: BlockSums, values: Sequence[Any]) -> Any:
        full = list(leaves)
        for k, i in enumerate(places):
            full[i] = sums.array(k)
        for i, value in zip(plain_places, values, strict=True):
            full[i] = value
        return function(*tree.unflatten(spec, full))

    def loss(values: Sequence[Any], slopes: Any) -> Any:
        sums = BlockSums(transform, name, arrays)
        sums.slopes = slopes
        out = run(sums, values)
        if isinstance(out, BlockwiseArray):
            raise ScalarOutputError(
                f"func.{transform} needs a scalar output, but {name} returned an array in blocks\n"
                "Sum it: np.sum(x), x.map_blocks(g).sum()."
            )
        return out, sums.totals

    loss.__name__ = name
    plain_leaves = [leaves[i] for i in plain_places]
    (value, totals), (gradients, slopes) = value_and_grad(loss, (0, 1), has_aux=True)(plain_leaves, np.zeros(MOST_SUMS))
    again = BlockSums(transform, name, arrays, known=[np.asarray(total)[()] for total in totals])
    run(again, plain_leaves)
    traced = [type(x) is Tracer for x in (slopes, *totals)]
    if any(traced) or any([Closure(block_function).values for block_function in again.functions]):
        raise UnsupportedFunctionError(
            f"func.{transform}: gradients with respect to Dask arrays are not differentiated or batched again by a "
            f"transform around them{at_line()}\nPass x.compute(), or differentiate by another kind of array."
        )
    task = _GradientOfBlock(again.functions, [x.item() for x in slopes[: len(totals)]], active)
    of_arrays = dict(zip([places[k] for k in active], _blocks_of(task, arrays, active, transform, name), strict=True))
    of_arrays |= dict(zip(plain_places, gradients, strict=True))
    results = [tree.unflatten(tree.structure(args[n]), [of_arrays[i] for i in _owned(owners, n)]) for n in chosen]
    shaped = tuple(results) if isinstance(argnums, (tuple, list)) else results[0]
    return {
        "grad": shaped,
        "value_and_grad": (value, shaped),
        "grad_and_value": (shaped, value),
    }[transform]


def _owned(owners: Sequence[int], number: int) -> list[int]:
    return [i for i, owner in enumerate(owners) if owner == number]


def _with_known_chunks(array: Any) -> Any:
    is_unknown = any([size != size for sizes in array.chunks for size in sizes])
    return array.compute_chunk_sizes() if is_unknown else array


def _check(transform: str, active: Sequence[Any], arrays: Sequence[Any]) -> None:
    for array in active:
        if array.dtype.kind not in "fc":
            raise UnsupportedArrayError(
                f"func.{transform}: a Dask array of dtype {array.dtype} has no gradient; convert it: x.astype(float)"
            )
    if len({_cut(array) for array in arrays}) > 1:
        listed = ", ".join([str(array.chunks) for array in arrays])
        raise RaggedChunksError(
            f"func.{transform}: the Dask arrays among the arguments have different chunks: {listed}\n"
            "Rechunk them alike: y.rechunk({0: x.chunks[0]})."
        )


def _blocks_of(task: Any, arrays: Sequence[Any], active: Sequence[int], transform: str, name: str) -> list[Any]:
    """The gradients as Dask arrays."""
    dask: Any = importlib.import_module("dask")
    da: Any = importlib.import_module("dask.array")
    label = f"func.{transform}({name})-{os.urandom(8).hex()}"
    columns = [x.to_delayed().ravel() for x in arrays]
    blocks = [
        dask.delayed(task, pure=False)(*row, dask_key_name=f"{label}-{i}")
        for i, row in enumerate(zip(*columns, strict=True))
    ]
    results = []
    for place, k in enumerate(active):
        array = arrays[k]
        grid = np.empty(array.numblocks, object)
        for i, index in enumerate(np.ndindex(*array.numblocks)):
            shape = tuple([sizes[j] for sizes, j in zip(array.chunks, index, strict=True)])
            grid[index] = da.from_delayed(blocks[i][place], shape, array.dtype)
        results.append(da.block(grid.tolist()))
    return results
