"""Kernel descriptions: loop nests with a scalar body, what happens between them, and the memory that they work on.

Plain data that printers take: LLVM IR today, CUDA C next. Nothing here knows of primitives, programs or tracers.
A native program is a list of items that run one after the other. Most are `Nest`s: loops over a domain whose leading
`outer` dimensions enclose several stages, each a loop over the remaining ones; what a stage reduces is a scalar of the
rows (of the outer dimensions) for the stages that follow.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from func.backends.records import Record, made

Shape: TypeAlias = tuple[int, ...]
DType: TypeAlias = np.dtype[Any]


# --- memory -----------------------------------------------------------------------------------------------------


class Buffer(Record):
    """Memory for `size` elements. kind: "input", "output" and "constant" are numbered by `place`; "arena" memory is
    scratch at the byte offset `place`; a "slice" moves over `base` with the steps of a loop."""

    size: int
    dtype: DType
    kind: str = "arena"
    place: int = -1
    base: Buffer | None = None
    start: int = 0
    step: int = 0

    @property
    def bytes(self) -> int:
        """The size in bytes."""
        return self.size * self.dtype.itemsize

    @property
    def storage(self) -> Buffer:
        """The buffer that the memory belongs to."""
        return self if self.base is None else self.base.storage


class StridedRef(Record):
    """Elements in memory: buffer[offset + Σ strides[d] * index[d]], all in elements."""

    buffer: Buffer
    offset: int
    strides: tuple[int, ...]


def row_major(shape: Shape) -> tuple[int, ...]:
    """The strides of C-contiguous elements."""
    strides = []
    size = 1
    for length in reversed(shape):
        strides.append(size)
        size *= length
    return tuple(reversed(strides))


# --- the scalar body ----------------------------------------------------------------------------------------------


class Reg(Record):
    """A scalar value of the body, assigned once."""

    dtype: DType


class Literal(Record):
    """A number in the body."""

    value: Any
    dtype: DType


Operand: TypeAlias = Reg | Literal


class Load(Record):
    """out = the element of `ref` at the present index."""

    out: Reg
    ref: StridedRef


class DynamicIndex(Record):
    """One dynamic index: position `index` of an axis with `length` elements, `stride` apart; negative ones count from
    the end, and one out of range is an error."""

    index: Operand
    length: int
    stride: int


class Position(Record):
    """out = the present index along a dimension of the domain."""

    out: Reg
    axis: int


class LoadAt(Record):
    """out = the element of `ref` at the present index and at the picks."""

    out: Reg
    ref: StridedRef
    picks: tuple[DynamicIndex, ...]


class Apply(Record):
    """out = op(*args); op is the name of a NumPy ufunc, "select" or "convert"."""

    out: Reg
    op: str
    args: tuple[Operand, ...]


class Store(Record):
    """The element of `ref` at the present index becomes `value`."""

    ref: StridedRef
    value: Operand


class StoreAt(Record):
    """The element at the present index and the picks becomes `value`, or is added to; in order of the index."""

    ref: StridedRef
    picks: tuple[DynamicIndex, ...]
    value: Operand
    adds: bool


class Reduce(Record):
    """out = op over the stage's loop of `value`, a scalar of the rows once the stage is over."""

    out: Reg
    op: str
    value: Operand


class Running(Record):
    """out = op over the stage's loop of `value` so far, in order; the stage is one loop."""

    out: Reg
    op: str
    value: Operand


class Accumulate(Record):
    """The element of `ref` at the present index becomes op(itself, value): a reduction over other dimensions."""

    ref: StridedRef
    op: str
    value: Operand


Instruction: TypeAlias = Load | Position | LoadAt | Apply | Store | StoreAt | Reduce | Running | Accumulate


# --- what happens in order ----------------------------------------------------------------------------------------


class Stage(Record):
    """Code for every index of the domain (inner) or once for every row."""

    inner: bool
    code: list[Instruction] = made(default_factory=list)


class Division(Record):
    """A loop of a nest in chunks that may run at the same time: the loop whose last dimension is `axis`, of one stage
    (for one row after the other) or of the rows of all stages."""

    axis: int
    chunks: int
    stage: Stage | None = None
    owned: list[tuple[Buffer, Buffer | None]] = made(default_factory=list)
    """Scratch of which every chunk needs its own; with memory for all of them where it is large."""
    partial: list[tuple[Accumulate, Buffer]] = made(default_factory=list)
    """What chunks accumulate apart, and memory for all of them."""


class Nest(Record):
    """Loops over `domain`. `outer`: how many dimensions enclose the stages; None while all may become inner."""

    domain: Shape
    outer: int | None = None
    stages: list[Stage] = made(default_factory=list)
    starts: list[tuple[Buffer, Any]] = made(default_factory=list)
    """Buffers that are filled before the loops begin, with what."""
    divisions: list[Division] = made(default_factory=list)


class Dot(Record):
    """out[b…, i, j] = Σ_k x[b…, i, k] y[b…, k, j]; the strides of every spot are those of its batch axes and its two
    others (0 where it has none). i, j, k are the lengths of the three kinds of axes, each one axis."""

    out: StridedRef
    x: StridedRef
    y: StridedRef
    batch: Shape
    sizes: tuple[int, int, int]
    grid: tuple[int, int, int] = (1, 1, 1)
    """Into how many chunks, which may run at the same time, the first batch axis, i and j are cut."""


class Fill(Record):
    """All elements of a buffer become a number."""

    buffer: Buffer
    value: Any


class Move(Record):
    """A buffer becomes a copy of another."""

    target: Buffer
    source: Buffer


class Check(Record):
    """Where the boolean at `flag` is true, the caller is told that something is wrong, once all has run."""

    flag: StridedRef


class EarlyExit(Record):
    """The program ends here where something is wrong so far, or the boolean at `flag` is true: afterwards it overwrites
    what it was given."""

    flag: StridedRef | None


class Library(Record):
    """A routine of a library on whole buffers. The printer knows the routine by its name."""

    routine: str
    outs: tuple[StridedRef, ...]
    args: tuple[StridedRef, ...]
    params: dict[str, Any]


class Loop(Record):
    """The items of `body`, `length` times; `slices` move with the steps."""

    length: int
    reverse: bool
    body: list[Item]
    slices: list[Buffer]


class While(Record):
    """`test` and, while `flag` holds then, `body`."""

    test: list[Item]
    flag: StridedRef
    body: list[Item]


class Branch(Record):
    """The items of the branch with the number in `index`, which is moved into range."""

    index: StridedRef
    branches: list[list[Item]]


Item: TypeAlias = Nest | Dot | Fill | Move | Check | EarlyExit | Library | Loop | While | Branch


class Result(Record):
    """What the caller gets in one place: shape, dtype and whether as a Python number."""

    shape: Shape
    dtype: DType
    weak: bool


class Written(Record):
    """A result of this shape that takes the memory of the input with this number."""

    input: int
    shape: Shape


class NativeProgram(Record):
    """Items over numbered inputs, constants and outputs, with `arena` bytes of scratch."""

    inputs: list[Result]
    constants: list[Any]
    outputs: list[Result]
    items: list[Item]
    arena: int = 0
    flag: StridedRef | None = None
    """A boolean that the program sets where an output has a NaN."""
    fast: bool = False
    """Whether arithmetic of floats may be fused and reordered."""
    written: dict[int, Written] = made(default_factory=dict)
    """Results, by their numbers, that are written into the memory of inputs. They are none of `outputs`, which are
    numbered without them."""
