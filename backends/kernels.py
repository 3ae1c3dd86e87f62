"""Kernel descriptions: loop nests with a scalar body, what happens between them, and the memory that they work on.

Plain data that printers take: LLVM IR today, CUDA C next. Nothing here knows of primitives, programs or tracers.
A native program is a list of items that run one after the other. Most are `Nest`s: loops over a domain whose leading
`outer` dimensions enclose several stages, each a loop over the remaining ones; what a stage reduces is a scalar of the
rows (of the outer dimensions) for the stages that follow.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

Shape: TypeAlias = tuple[int, ...]
DType: TypeAlias = np.dtype[Any]


# --- memory -----------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Buffer:
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


@dataclass(eq=False, slots=True)
class Spot:
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


@dataclass(eq=False, slots=True)
class Reg:
    """A scalar value of the body, assigned once."""

    dtype: DType


@dataclass(eq=False, slots=True)
class Literal:
    """A number in the body."""

    value: Any
    dtype: DType


Operand: TypeAlias = Reg | Literal


@dataclass(eq=False, slots=True)
class Load:
    """out = the element of `spot` at the present index."""

    out: Reg
    spot: Spot


@dataclass(eq=False, slots=True)
class Pick:
    """One dynamic index: position `index` of an axis with `length` elements, `stride` apart; negative ones count from
    the end, and one out of range is an error."""

    index: Operand
    length: int
    stride: int


@dataclass(eq=False, slots=True)
class Position:
    """out = the present index along a dimension of the domain."""

    out: Reg
    axis: int


@dataclass(eq=False, slots=True)
class LoadAt:
    """out = the element of `spot` at the present index and at the picks."""

    out: Reg
    spot: Spot
    picks: tuple[Pick, ...]


@dataclass(eq=False, slots=True)
class Apply:
    """out = op(*args); op is the name of a NumPy ufunc, "select" or "convert"."""

    out: Reg
    op: str
    args: tuple[Operand, ...]


@dataclass(eq=False, slots=True)
class Store:
    """The element of `spot` at the present index becomes `value`."""

    spot: Spot
    value: Operand


@dataclass(eq=False, slots=True)
class StoreAt:
    """The element at the present index and the picks becomes `value`, or is added to; in order of the index."""

    spot: Spot
    picks: tuple[Pick, ...]
    value: Operand
    adds: bool


@dataclass(eq=False, slots=True)
class Reduce:
    """out = op over the stage's loop of `value`, a scalar of the rows once the stage is over."""

    out: Reg
    op: str
    value: Operand


@dataclass(eq=False, slots=True)
class Running:
    """out = op over the stage's loop of `value` so far, in order; the stage is one loop."""

    out: Reg
    op: str
    value: Operand


@dataclass(eq=False, slots=True)
class Accumulate:
    """The element of `spot` at the present index becomes op(itself, value): a reduction over other dimensions."""

    spot: Spot
    op: str
    value: Operand


Instruction: TypeAlias = Load | Position | LoadAt | Apply | Store | StoreAt | Reduce | Running | Accumulate


# --- what happens in order ----------------------------------------------------------------------------------------


@dataclass(eq=False)
class Stage:
    """Code for every index of the domain (inner) or once for every row."""

    inner: bool
    code: list[Instruction] = field(default_factory=list)


@dataclass(eq=False)
class Division:
    """A loop of a nest in chunks that may run at the same time: the loop whose last dimension is `axis`, of one stage
    (for one row after the other) or of the rows of all stages."""

    axis: int
    chunks: int
    stage: Stage | None = None
    owned: list[tuple[Buffer, Buffer | None]] = field(default_factory=list)
    """Scratch of which every chunk needs its own; with memory for all of them where it is large."""
    partial: list[tuple[Accumulate, Buffer]] = field(default_factory=list)
    """What chunks accumulate apart, and memory for all of them."""


@dataclass(eq=False)
class Nest:
    """Loops over `domain`. `outer`: how many dimensions enclose the stages; None while all may become inner."""

    domain: Shape
    outer: int | None = None
    stages: list[Stage] = field(default_factory=list)
    starts: list[tuple[Buffer, Any]] = field(default_factory=list)
    """Buffers that are filled before the loops begin, with what."""
    divisions: list[Division] = field(default_factory=list)


@dataclass(eq=False)
class Dot:
    """out[b…, i, j] = Σ_k x[b…, i, k] y[b…, k, j]; the strides of every spot are those of its batch axes and its two
    others (0 where it has none). i, j, k are the lengths of the three kinds of axes, each one axis."""

    out: Spot
    x: Spot
    y: Spot
    batch: Shape
    sizes: tuple[int, int, int]
    grid: tuple[int, int, int] = (1, 1, 1)
    """Into how many chunks, which may run at the same time, the first batch axis, i and j are cut."""


@dataclass(eq=False)
class Fill:
    """All elements of a buffer become a number."""

    buffer: Buffer
    value: Any


@dataclass(eq=False)
class Move:
    """A buffer becomes a copy of another."""

    target: Buffer
    source: Buffer


@dataclass(eq=False)
class Check:
    """Where the boolean at `flag` is true, the caller is told that something is wrong, once all has run."""

    flag: Spot


@dataclass(eq=False)
class Library:
    """A routine of a library on whole buffers. The printer knows the routine by its name."""

    routine: str
    outs: tuple[Spot, ...]
    args: tuple[Spot, ...]
    params: dict[str, Any]


@dataclass(eq=False)
class Loop:
    """The items of `body`, `length` times; `slices` move with the steps."""

    length: int
    reverse: bool
    body: list[Item]
    slices: list[Buffer]


@dataclass(eq=False)
class While:
    """`test` and, while `flag` holds then, `body`."""

    test: list[Item]
    flag: Spot
    body: list[Item]


@dataclass(eq=False)
class Branch:
    """The items of the branch with the number in `index`, which is moved into range."""

    index: Spot
    branches: list[list[Item]]


Item: TypeAlias = Nest | Dot | Fill | Move | Check | Library | Loop | While | Branch


@dataclass(eq=False)
class Result:
    """What the caller gets in one place: shape, dtype and whether as a Python number."""

    shape: Shape
    dtype: DType
    weak: bool


@dataclass(eq=False)
class NativeProgram:
    """Items over numbered inputs, constants and outputs, with `arena` bytes of scratch."""

    inputs: list[Result]
    constants: list[Any]
    outputs: list[Result]
    items: list[Item]
    arena: int = 0
    flag: Spot | None = None
    """A boolean that the program sets where an output has a NaN."""
    fast: bool = False
    """Whether arithmetic of floats may be fused and reordered."""
