"""Scans: functions applied to one row after the other, with or without a carry."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from func import tree
from func.backends import namespace_of
from func.control import loop_carry
from func.control.loop_carry import Carry, Widened
from func.interpreters.control.compiled_bodies import is_abstract
from func.interpreters.control.scan import scan_call
from func.interpreters.control.scan_blocks import run_in_blocks
from func.interpreters.control.scan_derivatives import ScanLoop
from func.interpreters.control.scan_sums import without_invariants
from func.interpreters.core import Array, Tracer, dtype_of, innermost, shape_of, snapshot
from func.interpreters.core.errors import ArgumentError, CarryError, LengthError
from func.interpreters.core.scopes import present_stage
from func.interpreters.core.wiring import WIRING
from func.interpreters.host.public_functions import without_engine_frames
from func.interpreters.host.source import at_line
from func.interpreters.primitives.structural.shapes import expand, reshape
from func.interpreters.primitives.structural.slicing import concatenate, getitem
from func.numpy.guarding import guard, shared_places
from func.transforms.boundary import array_leaf, check_callable, describe, name_of, unbox
from func.transforms.checkpointing import call_checkpointed
from func.transforms.vmapping import vmap

MOST_PLANNED = 64
"""Steps of a loop whose memory is planned step by step."""


@without_engine_frames
def scan(
    f: Callable[[Any, Any], Any],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    *,
    checkpoint: int | bool = False,
) -> Any:
    """carry = init; for x in xs: carry, y = f(carry, x); then (carry, the ys stacked).

    The carry is a tree of arrays that keeps its tree, shapes and dtypes; numbers in it become arrays. The rows of xs, a
    tree of arrays of one length, are trees. With known numbers scan runs as a plain Python loop; traced code contains
    one trace of f.

    Args:
        f: One step, f(carry, x) -> (carry, y).
        init: The first carry.
        xs: The rows; None for `length` steps with x = None.
        length: The number of steps.
        reverse: Run from the last row to the first; the ys keep the order of the xs.
        unroll: The number of steps in one iteration of traced code; all of them for True.
        checkpoint: In reverse mode save the carry only once in this number of steps, and recompute the steps between;
            True saves that of every √n-th step. False lets traced code decide: it does so if it would save more than 1
            GiB, or more than a `memory_limit` of jit allows.

    Raises:
        CarryError: f changes the tree, a shape or a dtype of the carry (a TypeError).
        LengthError: Lengths differ, or there is nothing to run over (a ValueError).

    Example:
        >>> import numpy as np, func
        >>> func.scan(lambda total, x: (total + x, total), 0.0, np.array([1.0, 2.0, 3.0]))
        (np.float64(6.0), array([0., 1., 3.]))
    """
    check_callable(f, "scan")
    check_count("scan", "unroll", unroll, "True or an int of at least 1", 1)
    check_count("scan", "checkpoint", checkpoint, "True, False or an int of at least 1", 0)
    return scanned("scan", f, name_of(f), init, Rows(xs, length, "scan"), reverse, unroll, checkpoint)


def scanned(
    transform: str,
    f: Callable[[Any, Any], Any],
    name: str,
    init: Any,
    rows: Rows,
    reverse: bool,
    unroll: int | bool,
    checkpoint: int | bool = False,
) -> Any:
    """`scan` of a function with a name for messages."""
    size = rows.length
    block = size if unroll is True else int(unroll)
    if checkpoint:
        block = math.isqrt(max(size - 1, 0)) + 1 if checkpoint is True else int(checkpoint)
    carry = Carry(init, transform, "init")
    carry.rows = rows.arrays
    while True:
        step = ScanStep(f, name, carry, rows)
        try:
            if checkpoint and block < size:
                values, ys = _in_blocks(step, carry.values(), rows.leaves, size, reverse, block)
            else:
                values, ys = _run(step, carry.values(), rows.leaves, size, reverse, 1 if checkpoint else block)
            return carry.tree(loop_carry.owned(list(values))), tree.unflatten(step.y_spec, loop_carry.owned(ys))
        except Widened as widened:
            if widened.args[0] is not carry:
                raise


def check_count(transform: str, word: str, value: Any, expected: str, least: int) -> None:
    """Raise unless an option is a count."""
    if not isinstance(value, (int, np.integer)) or value < least:
        raise ArgumentError(f"func.{transform}: {word} must be {expected}, got {value!r}")


class Rows:
    """The arrays that a scan runs over, and their length."""

    def __init__(self, xs: Any, length: Any, transform: str) -> None:
        leaves, self.spec = tree.flatten(xs)
        names = tree.path_names(xs, "xs")
        self.arrays = [unbox(array_leaf(leaf, name, transform)) for leaf, name in zip(leaves, names, strict=True)]
        self.leaves = [loop_carry.in_c_order(leaf) for leaf in self.arrays]
        lengths = {}
        for leaf, name in zip(self.leaves, names, strict=True):
            if not shape_of(leaf):
                raise LengthError(f"func.{transform}: {name} is a scalar and has no axis to run over{at_line()}")
            lengths[name] = shape_of(leaf)[0]
        if length is not None:
            if not isinstance(length, (int, np.integer)) or length < 0:
                raise LengthError(f"func.{transform}: length must be an int of at least 0, got {length!r}")
            lengths["length"] = int(length)
        distinct = set(lengths.values())
        if not distinct:
            advice = "so length= is needed" if transform == "scan" else "and so no axis to run over"
            raise LengthError(f"func.{transform}: xs has no array, {advice}{at_line()}")
        if len(distinct) > 1:
            listed = ", ".join([f"{name} is {n}" for name, n in lengths.items()])
            raise LengthError(f"func.{transform}: lengths differ: {listed}{at_line()}")
        (self.length,) = distinct

    def tree(self, row: Sequence[Array]) -> Any:
        """One row as the user's function sees it."""
        return tree.unflatten(self.spec, list(row))


class ScanStep:
    """The user's function on flat carries and rows; it notes the structure of the ys."""

    def __init__(self, function: Callable[[Any, Any], Any], name: str, carry: Carry, rows: Rows) -> None:
        self.function = function
        self.name = name
        self.carry = carry
        self.rows = rows
        self.y_spec: Any = None
        self.arrays = [*rows.arrays, *carry.initial]
        self.has_shared_rows = bool(guard(list(rows.arrays), self.arrays))

    def noting_writes(self, tracers: Sequence[Array]) -> Callable[[], None]:
        """`Carry.noting_writes` for the carry and the rows of a step that is traced."""
        return self.carry.noting_writes(self.function, self.name, tracers, [*self.carry.initial, *self.rows.arrays])

    def __call__(self, values: Sequence[Array], row: Sequence[Array]) -> tuple[list[Array], list[Array]]:
        if self.has_shared_rows:
            row = list(row)
            guard(row, self.arrays)
        out = self.carry.step(self.function, self.name, values, self.rows.tree(row))
        if not isinstance(out, (tuple, list)) or len(out) != 2:
            shown = f"{len(out)} values" if isinstance(out, (tuple, list)) else f"a {type(out).__name__}"
            raise CarryError(f"func.{self.carry.transform}: {self.name} must return (carry, y), got {shown}{at_line()}")
        fitted, _ = self.carry.fit(out[0], self.name)
        leaves, spec = tree.flatten(out[1])
        if self.y_spec is not None and spec != self.y_spec:
            raise CarryError(
                f"func.{self.carry.transform}: {self.name} returned a y of another tree than in the first step"
                f"{at_line()}\n"
                f"  before {tree.shown(self.y_spec)}\n  after  {tree.shown(spec)}"
            )
        self.y_spec = spec
        names = [accessor.codify("y") for accessor in spec.accessors()]
        return fitted, [
            snapshot(unbox(array_leaf(leaf, name, self.carry.transform)))
            for leaf, name in zip(leaves, names, strict=True)
        ]


Result: TypeAlias = tuple[list[Array], list[Array]]
Stepping: TypeAlias = Callable[[Sequence[Array], Sequence[Array]], Result]


def _run(
    step: Stepping,
    values: Sequence[Array],
    xs: Sequence[Array],
    length: int,
    reverse: bool,
    unroll: int,
    inner: ScanStep | None = None,
) -> Result:
    """(carry, ys) of a scan over flat lists, with a step made of `inner` steps."""
    is_planned = _plans_python(length)
    if length > 0 and (is_planned or not any([is_abstract(x) for x in (*values, *xs)])):
        result = _in_python(step, values, xs, length, reverse, is_planned or unroll >= length)
        if result is not None:
            return result
    return _compiled(step, values, xs, length, reverse, unroll, inner)


def _plans_python(length: int) -> bool:
    """Whether a plan of eager memory runs this loop in Python; long ones count as compiled."""
    stage = present_stage()
    return stage is not None and stage.plans_eager_code and length <= MOST_PLANNED


def _in_python(
    step: Stepping, values: Sequence[Array], xs: Sequence[Array], length: int, reverse: bool, may_be_abstract: bool
) -> Result | None:
    """The loop in Python; None, with the first step undone, if that returns abstract values."""
    now = list(values)
    outs: list[list[Array]] = []
    stage = present_stage()
    mark = 0 if stage is None else len(stage.equations)
    for place, row in enumerate(_rows(xs, length, reverse)):
        now, y = step(now, row)
        if place == 0 and not may_be_abstract and any([is_abstract(x) for x in (*now, *y)]):
            if stage is not None:
                stage.forget_effects(mark)
            return None
        outs.append(y)
    if reverse:
        outs.reverse()
    return now, [_stack(column, place) for place, column in enumerate(zip(*outs, strict=True))]


def _rows(xs: Sequence[Array], length: int, reverse: bool) -> Iterator[list[Array]]:
    """The rows of some arrays, in the order of the scan."""
    columns = [_rows_of(x, length, reverse) for x in xs]
    for _ in range(length):
        yield [next(column) for column in columns]


def _rows_of(x: Array, length: int, reverse: bool) -> Iterator[Array]:
    """The rows of an array. Halves a traced one repeatedly: the pullback of a slice is as large as its operand."""
    if type(x) is not Tracer:
        for i in reversed(range(length)) if reverse else range(length):
            yield snapshot(x[i])
    elif length == 1:
        yield getitem(x, index=(0, *[(0, n, 1) for n in shape_of(x)[1:]]))
    else:
        half = length // 2
        pieces = [(part_of(x, 0, half), half), (part_of(x, half, length), length - half)]
        for piece, count in reversed(pieces) if reverse else pieces:
            yield from _rows_of(piece, count, reverse)


def part_of(x: Array, start: int, stop: int, axis: int = 0, step: int = 1) -> Array:
    """A slice along an axis."""
    shape = shape_of(x)
    cut = (start, stop, step)
    return getitem(x, index=tuple([cut if i == axis else (0, n, 1) for i, n in enumerate(shape)]))


def _stack(column: Sequence[Array], place: int) -> Array:
    """The ys of all steps as one array."""
    first = column[0]
    for i, y in enumerate(column):
        if shape_of(y) != shape_of(first) or dtype_of(y) != dtype_of(first):
            raise CarryError(
                f"func.scan: output {place} of y is {describe(first)} in one step and {describe(y)} in step {i}"
                f"{at_line()}\nThe ys of all steps must have the same shape and dtype."
            )
    if any([type(y) is Tracer for y in column]):
        return concatenate(*[expand(y, (0,)) for y in column], axis=0)
    return namespace_of(tuple(column)).stack(column)


def _compiled(
    step: Stepping,
    values: Sequence[Array],
    xs: Sequence[Array],
    length: int,
    reverse: bool,
    unroll: int = 1,
    inner: ScanStep | None = None,
    block: int | None = None,
) -> Result:
    """The primitive of a scan with an abstractly traced step, in blocks that the backward pass repeats."""
    if unroll > 1 and unroll < length:

        def steps(size: int, now: Sequence[Array], rows: Sequence[Array]) -> Result:
            return _unrolled(step, now, rows, size, reverse)

        noted = step if isinstance(step, ScanStep) else None
        result = _blocks(functools.partial(_run, inner=noted, unroll=1), steps, values, xs, length, reverse, unroll)
        assert result is not None
        return result
    if unroll > 1 and length > 0:
        return _unrolled(step, values, xs, length, reverse)
    count = len(values)
    noted = step if isinstance(step, ScanStep) else inner
    avals = [*loop_carry.avals_of(values), *[_row_aval(x) for x in xs]]

    def flat(*flat_values: Array) -> list[Array]:
        check = noted.noting_writes(flat_values) if noted is not None else None
        carry, ys = step(flat_values[:count], flat_values[count:])
        if check is not None:
            check()
        return [*carry, *ys]

    example = next((x for x in (*values, *xs) if innermost(x) is not None), None)
    body, consts = loop_carry.compiled(flat, avals, "scan", example)
    if length == 0:
        empty = [np.zeros((0, *aval.shape), aval.dtype) for aval in body.out_avals[count:]]
        return list(values), empty
    body, consts = without_invariants(body, consts)
    body = loop_carry.with_strong_outputs(body)
    loop = ScanLoop(len(consts), count, length, reverse)
    operands = [*consts, *values, *xs]
    outs = (
        scan_call(*operands, body=body, loop=loop) if block is None else run_in_blocks(body, loop, operands, (block,))
    )
    return list(outs[:count]), list(outs[count:])


def _row_aval(x: Array) -> Any:
    (aval,) = loop_carry.avals_of([x])
    return type(aval)(aval.shape[1:], aval.dtype)


def _unrolled(step: Any, values: Sequence[Array], xs: Sequence[Array], length: int, reverse: bool) -> Result:
    """An unrolled scan."""
    now = list(values)
    outs = []
    for i in reversed(range(length)) if reverse else range(length):
        now, y = step(now, [getitem(x, index=(i, *[(0, n, 1) for n in shape_of(x)[1:]])) for x in xs])
        outs.append(y)
    if reverse:
        outs.reverse()
    return now, [_stack(column, place) for place, column in enumerate(zip(*outs, strict=True))]


def _blocks(
    run: Callable[..., Result | None],
    steps: Callable[[int, Sequence[Array], Sequence[Array]], Result],
    values: Sequence[Array],
    xs: Sequence[Array],
    length: int,
    reverse: bool,
    block: int,
) -> Result | None:
    """A scan of blocks, by run(one block, values, rows, count, reverse), and the rest, by steps(size, values, rows)."""
    count, rest = divmod(length, block)
    first = rest if reverse else 0
    whole = [reshape(part_of(x, first, first + count * block), shape=(count, block, *shape_of(x)[1:])) for x in xs]
    left = [part_of(x, 0, rest) if reverse else part_of(x, count * block, length) for x in xs]
    result = run(functools.partial(steps, block), values, whole, count, reverse)
    if result is None:
        return None
    now, ys = result
    ys = [reshape(y, shape=(count * block, *shape_of(y)[2:])) for y in ys]
    if rest:
        now, more = steps(rest, now, left)
        pairs = zip(more, ys, strict=True) if reverse else zip(ys, more, strict=True)
        ys = [concatenate(*pair, axis=0) for pair in pairs]
    return now, ys


def _in_blocks(
    step: ScanStep, values: Sequence[Array], xs: Sequence[Array], length: int, reverse: bool, block: int
) -> Result:
    """A scan in blocks of steps that the backward pass repeats."""
    is_planned = _plans_python(length)
    if is_planned or not any([is_abstract(x) for x in (*values, *xs)]):

        def steps(size: int, now: Sequence[Array], rows: Sequence[Array]) -> Result:
            return _checkpointed(step, now, rows, size, reverse)

        run = functools.partial(_in_python, may_be_abstract=is_planned)
        result = _blocks(run, steps, values, xs, length, reverse, block)
        if result is not None:
            return result
    return _compiled(step, values, xs, length, reverse, block=block)


def _checkpointed(step: Any, now: Sequence[Array], rows: Sequence[Array], size: int, reverse: bool) -> Result:
    """A block of an eager scan, which the backward pass repeats."""
    function = step.function  # in the closure of `block`, where checkpoint finds its captured traced values

    def block(c: list[Array], x: list[Array]) -> Result:
        inner = ScanStep(function, step.name, step.carry, step.rows)
        inner.y_spec = step.y_spec
        result = _run(inner, c, x, size, reverse, 1)
        step.y_spec = inner.y_spec
        return result

    result: Result = call_checkpointed(block, (list(now), list(rows)), {}, calls_again=True)
    return result


@without_engine_frames
def map(
    f: Callable[[Any], Any],
    xs: Any,
    *,
    chunk_size: int | None = None,
    batch_size: int | None = None,
    executor: Any = None,
    progress: bool = False,
) -> Any:
    """f of every row of xs, one after the other, stacked; with `chunk_size` rows at a time by vmap.

    Args:
        f: A function of one row.
        xs: A tree of arrays of one length.
        chunk_size: The number of rows to compute at once.
        batch_size: A synonym of chunk_size.
        executor: Computes chunks of rows, as in `vmap`. A worker computes the chunk_size rows of a chunk one after the
            other; by default the number follows from the cost of a row.
        progress: Show a progress bar over the chunks. A compiled loop shows none: use it outside of `jit`.

    Raises:
        LengthError: Lengths differ (a ValueError).
        ArgumentError: A call with both chunk_size and batch_size (a ValueError).

    Example:
        >>> import numpy as np, func
        >>> func.map(lambda x: x ** 2, np.arange(4.0), chunk_size=3)
        array([0., 1., 4., 9.])
    """
    check_callable(f, "map")
    if batch_size is not None:
        if chunk_size is not None:
            raise ArgumentError("func.map: batch_size is a synonym of chunk_size; give one of them")
        check_count("map", "batch_size", batch_size, "None or an int of at least 1", 1)
        chunk_size = batch_size
    if executor is not None:
        if chunk_size is not None:
            check_count("map", "chunk_size", chunk_size, "None or an int of at least 1", 1)
        return WIRING.map_rows_by_executor(f, xs, chunk_size, executor, progress)
    rows = Rows(xs, None, "map")
    if chunk_size is not None:
        if isinstance(chunk_size, bool):
            raise ArgumentError(f"func.map: chunk_size must be None or an int of at least 1, got {chunk_size!r}")
        check_count("map", "chunk_size", chunk_size, "None or an int of at least 1", 1)
    if not progress or any([is_abstract(x) for x in rows.leaves]):
        return _mapped(f, rows, chunk_size, lambda step: step)
    from tqdm.auto import tqdm  # only progress bars need it

    with tqdm(total=-(-rows.length // (chunk_size or 1)), desc=f"map {name_of(f)}", unit="chunk") as bar:
        return _mapped(f, rows, chunk_size, functools.partial(_counted, bar))


def _counted(bar: Any, step: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A step of a loop, counted by a progress bar."""

    @functools.wraps(step)
    def counted(x: Any) -> Any:
        y = step(x)
        bar.update()
        return y

    return counted


def _mapped(
    f: Callable[[Any], Any], rows: Rows, chunk_size: int | None, counted: Callable[[Callable[[Any], Any]], Any]
) -> Any:
    """The result of `map`; `counted` decorates the function of a chunk."""
    if chunk_size is None:
        step = counted(f)
        return scanned("map", lambda _, x: (None, step(x)), name_of(f), None, rows, False, 1)[1]
    count, rest = divmod(rows.length, chunk_size)
    shared = [place for places in shared_places(rows.arrays) for place in places]
    mapped = counted(vmap(loop_carry.without_writes(f, shared, "map") if shared else f))
    pieces = []
    if count:
        pieces_of = {
            id(x): reshape(part_of(x, 0, count * chunk_size), shape=(count, chunk_size, *shape_of(x)[1:]))
            for x in rows.leaves
        }
        whole = [pieces_of[id(x)] for x in rows.leaves]  # one array in two places stays one
        ys = scan(lambda _, x: (None, mapped(x)), None, rows.tree(whole))[1]
        pieces.append(tree.map(lambda y: reshape(y, shape=(count * chunk_size, *shape_of(y)[2:])), ys))
    if rest or not count:
        left = {id(x): part_of(x, count * chunk_size, rows.length) for x in rows.leaves}
        pieces.append(mapped(rows.tree([left[id(x)] for x in rows.leaves])))
    return pieces[0] if len(pieces) == 1 else tree.map(lambda a, b: concatenate(a, b, axis=0), *pieces)
