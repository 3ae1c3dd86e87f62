"""vmap, map and Jacobians on executors: the chunks, and the function of a chunk."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from func import tree
from func.backends.records import Record, ValueRecord
from func.control.scanning import map as map_rows
from func.errors import ArgumentError
from func.interpreters.calls.remote_map import remote_map
from func.interpreters.core import Array, Tracer, aval_of, dtype_of, shape_of
from func.interpreters.core.scopes import TransformScope
from func.interpreters.core.types import Aval
from func.interpreters.drivers import running
from func.interpreters.jvp import Jvp
from func.interpreters.primitives.elementwise.builder import conjugate
from func.interpreters.primitives.structural.shapes import full_like, move_axis, reshape
from func.interpreters.primitives.structural.slicing import getitem
from func.interpreters.stage import Stage
from func.transforms.boundary import defensive_copies, name_of, output_leaves, output_paths, own, unbox
from func.transforms.closures import Closure
from func.transforms.forward import jvp
from func.transforms.reverse import vjp
from func.transforms.vmapping import BatchedCall, _place_axis, broadcast_prefix, vmap
from func.workers.engines import engine_of
from func.workers.running import ChunkRunner

SECONDS = 0.05
"""The target time of a chunk."""
SECONDS_OF_EQUATION = 3e-6
SECONDS_OF_OPERATION = 1e-9
SHORTEST = 0.01
"""Seconds of work below which a chunk would mostly be on its way."""
FEWEST_CHUNKS = 32
MOST_CHUNKS = 1024
MOST_EQUATIONS = 5000
"""The most equations of a program that is traced to its end to learn its cost."""


class Placeholder(ValueRecord):
    """A captured traced value of a function, in its place during transport."""

    number: int


class Note(NamedTuple):
    """The tree of an output."""

    out_spec: Any


class CalledChunk:
    """A user's function of flat operands: its captured traced values, then the arrays among its arguments.

    It is equal to itself alone. Its first call, here or by a worker, sets `note`.
    """

    note: Any = None

    def __init__(self, function: Callable[..., Any], values: Any) -> None:
        closure = Closure(function)
        self.captured = len(closure.values)
        self.function = closure.rebuilt([Placeholder(i) for i in range(self.captured)])
        leaves, self.spec = tree.flatten(values)
        leaves = [unbox(leaf) for leaf in leaves]
        self.places = [i for i, leaf in enumerate(leaves) if type(leaf) is Tracer or isinstance(leaf, np.ndarray)]
        """The leaves that are operands; others are sent with the function."""
        self.operands = [*closure.values, *[leaves[i] for i in self.places]]
        self.fixed = [None if i in set(self.places) else leaf for i, leaf in enumerate(leaves)]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("note", "operands")}

    def call_at(self, operands: Sequence[Array]) -> tuple[Callable[..., Any], Any]:
        """The function with its captured values, and its arguments."""
        function = self.function
        if self.captured:
            closure = Closure(function, lambda value: type(value) is Placeholder)
            function = closure.rebuilt([operands[place.number] for place in closure.values])  # type: ignore[attr-defined]
        leaves = list(self.fixed)
        for i, value in zip(self.places, operands[self.captured :], strict=True):
            leaves[i] = value
        return function, tree.unflatten(self.spec, leaves)


class MappedChunk(CalledChunk):
    """The function for the rows of a chunk, by `vmap`."""

    def __init__(self, function: Callable[..., Any], values: Any, dims: Sequence[Any], options: dict[str, Any]) -> None:
        super().__init__(function, values)
        self.dims = [None if dim is None else 0 for dim in dims]
        self.options = options
        self.split = (*[False] * self.captured, *[self.dims[i] is not None for i in self.places])
        self.rows_at = self.split.index(True)

    def __call__(self, *operands: Array) -> list[Array]:
        function, (args, kwargs) = self.call_at(operands)
        dims, keyword_dims = tree.unflatten(self.spec, self.dims)
        out = vmap(function, (*dims, keyword_dims), **self.options)(*args, **kwargs)
        leaves, spec = output_leaves(out, "vmap")
        self.note = Note(spec)
        rows = shape_of(operands[self.rows_at])[0]
        is_shared = [dim is None for dim in broadcast_prefix(self.options["out_dims"], spec, "out_dims", "output")]
        return [_repeated(leaf, rows) if shared else leaf for leaf, shared in zip(leaves, is_shared, strict=True)]


def _repeated(leaf: Array, rows: int) -> Array:
    return np.broadcast_to(leaf, (rows, *shape_of(leaf)))


class RowsChunk(CalledChunk):
    """The function for the rows of a chunk, one after the other, by `func.map`."""

    def __init__(self, function: Callable[..., Any], xs: Any, chunk_size: int | None) -> None:
        super().__init__(function, xs)
        self.chunk_size = chunk_size
        self.split = (*[False] * self.captured, *[True] * len(self.places))

    def __call__(self, *operands: Array) -> list[Array]:
        function, xs = self.call_at(operands)
        leaves, spec = output_leaves(map_rows(function, xs, chunk_size=self.chunk_size), "map")
        self.note = Note(spec)
        return leaves


def map_by_executor(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    in_dims: Any,
    out_dims: Any,
    axis_size: int | None,
    chunk_size: int | None,
    progress: bool,
    executor: Any,
) -> Any:
    """`vmap(function, executor=...)(*args, **kwargs)`."""
    call = BatchedCall(function, in_dims, axis_size, args, kwargs)
    leaves = call.arguments.leaves
    dims = [0 if is_mapped else None for is_mapped in call.is_mapped]
    options = {"out_dims": _leading(out_dims)}
    arguments = tree.unflatten(call.in_spec, leaves)
    if not call.size or not any(call.is_mapped):
        return vmap(function, in_dims, out_dims, axis_size=axis_size)(*args, **kwargs)
    chunk = MappedChunk(function, arguments, dims, options)
    rows = chunk_size or rows_of_chunk(traced(chunk, chunk.operands, chunk.split), call.size, False)
    runner = ChunkRunner(engine_of(executor, "vmap"), f"func.vmap({name_of(function)})", rows, progress=progress)
    outs = remote_map(*chunk.operands, fun=chunk, split=chunk.split, joined=True, runner=runner)
    spec = chunk.note.out_spec
    places = broadcast_prefix(out_dims, spec, "out_dims", "output")
    results = [
        getitem(out, index=(0, *[(0, n, 1) for n in shape_of(out)[1:]]))
        if dim is None
        else _place_axis(out, True, dim, call.size, path)
        for out, dim, path in zip(outs, places, output_paths(spec), strict=True)
    ]
    del outs
    return tree.unflatten(spec, own(results))


def _leading(dims: Any) -> Any:
    """out_dims with every axis in front."""
    if isinstance(dims, dict):
        return {key: _leading(dim) for key, dim in dims.items()}
    if type(dims) in (tuple, list):
        return type(dims)([_leading(dim) for dim in dims])
    return 0 if isinstance(dims, int) else dims


def map_rows_by_executor(
    function: Callable[..., Any], xs: Any, chunk_size: int | None, executor: Any, progress: bool
) -> Any:
    """`func.map(function, xs, executor=...)`."""
    chunk = RowsChunk(function, xs, None)
    lengths = {shape_of(x)[0] for x in chunk.operands[chunk.captured :] if shape_of(x)}
    if len(lengths) != 1 or not all([shape_of(x) for x in chunk.operands[chunk.captured :]]) or 0 in lengths:
        return map_rows(function, xs)  # it reports the error, and maps nothing
    (length,) = lengths
    rows = chunk_size or rows_of_chunk(traced(chunk, chunk.operands, chunk.split), length, True)
    runner = ChunkRunner(
        engine_of(executor, "map"), f"func.map({name_of(function)})", rows, progress=progress, unit="rows"
    )
    outs = remote_map(*chunk.operands, fun=chunk, split=chunk.split, joined=True, runner=runner)
    return tree.unflatten(chunk.note.out_spec, own(list(outs)))


class _TooLong(Exception):
    """Raised when a program gets too long for a useful trace."""


class _CountingStage(Stage):
    """A trace that stops when a program gets long."""

    def apply(self, primitive: Any, args: Any, params: Any) -> Any:
        self.applied = getattr(self, "applied", 0) + 1
        if self.applied > MOST_EQUATIONS:
            raise _TooLong
        return super().apply(primitive, args, params)


def traced(fun: Callable[..., Any], operands: Sequence[Array], split: Sequence[bool]) -> Callable[[], Any]:
    """A function that traces a chunk function for one row."""

    def trace() -> Any:
        stage = _CountingStage("eval_shape")
        with TransformScope(stage, staging=True), running(stage):
            inputs = []
            for operand, is_split in zip(operands, split, strict=True):
                aval = aval_of(operand)
                inputs.append(stage.variable(Aval((1, *aval.shape[1:]), aval.dtype) if is_split else aval))
            variables = [tracer._attached for tracer in inputs]
            return stage.program(variables, fun(*inputs))

    return trace


def rows_of_chunk(trace: Callable[[], Any], rows: int, is_sequential: bool) -> int:
    """The number of rows of a chunk, from the cost of one row; it depends on the function and the arguments alone.

    Each chunk pays the overhead of the equations once, or once a row if `is_sequential`. Long computations have at
    least 32 chunks, so that the last ones do not keep all workers waiting.
    """
    fewest, most = -(-rows // MOST_CHUNKS), -(-rows // FEWEST_CHUNKS)
    try:
        program = trace()
        overhead = len(program.equations) * SECONDS_OF_EQUATION
        work = program.cost().operations * SECONDS_OF_OPERATION
    except _TooLong:
        overhead, work = MOST_EQUATIONS * SECONDS_OF_EQUATION, 0.0
    except Exception:  # Python that depends on values cannot be traced; the call will report other errors
        return most
    if is_sequential:
        work, overhead = work + overhead, 0.0
    target_rows = max(SECONDS, 10 * overhead) / max(work, 1e-12)
    total = work * rows + overhead
    most = -(-rows // min(max(math.ceil(total / SHORTEST), 1), FEWEST_CHUNKS))
    return int(min(max(target_rows, fewest, 1), most))


class DerivativeChunk(CalledChunk):
    """Rows (reverse mode) or columns (forward mode) of the Jacobian: operands, then the numbers of unit vectors."""

    def __init__(
        self,
        function: Callable[..., Any],
        values: Any,
        active: Sequence[int],
        mode: str,
        holomorphic: bool,
        has_aux: bool,
    ) -> None:
        super().__init__(function, values)
        self.active = [self.captured + self.places.index(i) for i in active]
        """Whether each operand is differentiated."""
        self.mode = mode
        self.holomorphic = holomorphic
        self.has_aux = has_aux
        self.split = (*[False] * len(self.operands), True)

    def __call__(self, *operands: Array) -> list[Array]:
        *values, numbers = operands
        primals = [values[i] for i in self.active]

        def flat(*leaves: Array) -> list[Array]:
            full = list(values)
            for i, leaf in zip(self.active, leaves, strict=True):
                full[i] = leaf
            function, (args, kwargs) = self.call_at(full)
            out = function(*args, **kwargs)
            return output_leaves(out[0] if self.has_aux else out, "jacobian")[0]

        if self.mode == "fwd":

            def push(*dots: Array) -> Any:
                return jvp(flat, tuple(primals), dots)[1]

            return list(vmap(push)(*unit_vectors(primals, numbers)))
        outs, pullback = vjp(flat, *primals)

        def row(*cts: Array) -> Any:
            return pullback(list(cts))

        rows = vmap(row)(*unit_vectors(outs, numbers))
        return [conjugate(x) if self.holomorphic else x for x in rows]


def unit_vectors(like: Sequence[Array], numbers: Array) -> list[Array]:
    """These unit vectors of the space of all arrays together, stacked in front."""
    start = 0
    vectors = []
    count = shape_of(numbers)[0]
    for x in like:
        size = math.prod(shape_of(x))
        places = np.arange(start, start + size)
        rows = (np.asarray(numbers)[:, None] == places).astype(dtype_of(x))
        vectors.append(rows.reshape(count, *shape_of(x)))
        start += size
    return vectors


def jacobian_by_executor(blocks: Any, args: tuple[Any, ...], kwargs: dict[str, Any], mode: str, executor: Any) -> Any:
    """The Jacobian by chunks of rows or columns; `blocks` has its options, and arranges it."""
    call = blocks.call(args, kwargs)
    leaves = call.arguments.values()
    interpreter = Jvp(blocks.transform)
    with TransformScope(interpreter), running(interpreter):
        outs = call.outputs(interpreter, defensive_copies(leaves), is_repeated=True)
    blocks.check_outputs(outs, leaves)
    if not blocks.holomorphic and any([dtype_of(out).kind == "c" for out in outs]):
        mode = "fwd"  # a row of a complex output would take two pullbacks
    elif not blocks.holomorphic and any([dtype_of(leaf).kind == "c" for leaf in leaves]):
        mode = "rev"  # a column of a complex input would take two tangents
    bound = call.arguments.bound([_Marker(i) for i in range(len(leaves))])
    flat, _ = tree.flatten((tuple(bound[0]), bound[1]))
    active = [i for i, leaf in enumerate(flat) if type(leaf) is _Marker]
    order = [flat[i].number for i in active]
    bound = call.arguments.bound([np.asarray(x) if not hasattr(x, "dtype") else x for x in leaves])
    whole = (tuple(bound[0]), bound[1])
    chunk = DerivativeChunk(blocks.function, whole, active, mode, blocks.holomorphic, blocks.has_aux)
    inputs = [leaves[number] for number in order]
    along, across = (inputs, outs) if mode == "fwd" else (outs, inputs)
    sizes = [math.prod(shape_of(x)) for x in along]
    total = sum(sizes)
    if total:
        rows = blocks.chunk_size or max(1, -(-total // FEWEST_CHUNKS))
        label = f"func.{blocks.transform}({name_of(blocks.function)})"
        unit = "columns" if mode == "fwd" else "rows"
        runner = ChunkRunner(engine_of(executor, blocks.transform), label, rows, progress=blocks.progress, unit=unit)
        stacks = remote_map(*chunk.operands, np.arange(total), fun=chunk, split=chunk.split, joined=True, runner=runner)
    else:
        stacks = [full_like(x, 0, (0, *shape_of(x))) for x in across]
    table = [
        [_block(stack, start, size, x, y, mode) for start, size, x in _parts(along, sizes)]
        for stack, y in zip(stacks, across, strict=True)
    ]
    rows_of_blocks = table if mode == "fwd" else [list(row) for row in zip(*table, strict=True)]
    if not rows_of_blocks:
        rows_of_blocks = [[] for _ in outs]
    placed = [[row[order.index(i)] for i in range(len(order))] for row in rows_of_blocks]
    return blocks.result(call, placed)


class _Marker(Record):
    """The place of a differentiated leaf."""

    number: int


def _parts(along: Sequence[Array], sizes: Sequence[int]) -> list[tuple[int, int, Array]]:
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    return list(zip(starts, sizes, along, strict=True))


def _block(stack: Array, start: int, size: int, x: Array, y: Array, mode: str) -> Array:
    """The block of an output and an input."""
    rows = getitem(stack, index=((start, start + size, 1), *[(0, n, 1) for n in shape_of(stack)[1:]]))
    if mode == "fwd":
        rows = move_axis(rows, 0, len(shape_of(rows)) - 1)
        return reshape(rows, shape=(*shape_of(y), *shape_of(x)))
    return reshape(rows, shape=(*shape_of(x), *shape_of(y)))


def check_executor(transform: str, executor: Any, **options: Any) -> None:
    """Raise for an option that does not work with an executor."""
    engine_of(executor, transform)
    for name, value in options.items():
        if value:
            raise ArgumentError(
                f"func.{transform}: {name} does not go with executor\n"
                + (
                    "Pass chunk_size: each worker has the memory of one chunk."
                    if name == "memory_limit"
                    else "Draw random numbers from keys that are mapped (func.random.split)."
                    if name == "randomness"
                    else "Leave one of them out."
                )
            )
