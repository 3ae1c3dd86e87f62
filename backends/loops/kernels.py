"""Kernel descriptions: loop nests with a scalar body, the items between them, and their memory.

This is plain data for printers of LLVM IR, C and CUDA. It does not depend on primitives, programs or tracers. A
`NativeProgram` is a list of items that run one after the other. Most items are loop nests.

- A **loop nest** has a domain, the lengths of its loops. The leading `outer` dimensions are its *rows*: they enclose
  all of its stages.
- A **stage** is a piece of code in a nest. An *inner* stage is a loop over the remaining dimensions; another stage runs
  once for every row. The stages of a row run in order.
- A **register** is a scalar of the code, assigned once. The result of a reduction in a stage is a register of the row,
  which the stages after it read.

So the softmax of the rows of x (64 × 10), without the shift, is one nest of domain (64, 10), `outer` 1 and two stages:

    for i < 64:
      for j < 10:                    inner stage
        r0 = in0[10*i + j]             Load
        r1 = exp(r0)                   Apply
        r2 = sum of r1 over j          Reduce
        m0[j] = r1                     Store
      for j < 10:                    inner stage
        r3 = m0[j]
        r4 = divide(r3, r2)
        out0[10*i + j] = r4

Rules of primitives do not write nests: they call the array operations of a `Fuser`, whose arrays (`values.py`) are
views of *roots*. A root is the result of an operation over a domain: a register in a stage of a nest, elements in
memory, or both.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from func.backends.loops.interface import AliasedOutput, ArraySpec, Interface
from func.backends.records import Record, field

Shape: TypeAlias = tuple[int, ...]
DType: TypeAlias = np.dtype[Any]
CALLED = "scipy.special."
"""The beginning of the names of operations that are functions of SciPy, called for every element."""


class Buffer(Record):
    """Memory for `size` elements. kind: "input", "output" and "constant" are numbered by `place`; "arena" memory is
    scratch at the byte offset `place`. A "slice" moves over `base` with the steps of a loop. It is cyclic over `ring`
    places if that is not 0 but a power of two.
    """

    size: int
    dtype: DType
    kind: str = "arena"
    place: int = -1
    base: Buffer | None = None
    start: int = 0
    step: int = 0
    ring: int = 0

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


class Register(Record):
    """A scalar value of the body, assigned once."""

    dtype: DType


class Literal(Record):
    """A number in the body."""

    value: Any
    dtype: DType


Operand: TypeAlias = Register | Literal


class DynamicIndex(Record):
    """A dynamic position along an axis of `length` elements, `stride` apart."""

    value: Operand
    length: int
    stride: int


class Load(Record):
    """out = the element of `ref` at the loop indices."""

    out: Register
    ref: StridedRef


class Position(Record):
    """out = the loop index along a dimension of the domain."""

    out: Register
    axis: int


class LoadAt(Record):
    """out = the element of `ref` at the loop indices and at dynamic ones."""

    out: Register
    ref: StridedRef
    indices: tuple[DynamicIndex, ...]


class Apply(Record):
    """out = op(*args); op is the name of a NumPy ufunc, "select", "convert", or `CALLED` and the name of a function."""

    out: Register
    op: str
    args: tuple[Operand, ...]


class Store(Record):
    """The element of `ref` at the loop indices becomes `value`."""

    ref: StridedRef
    value: Operand


class StoreAt(Record):
    """The element at the loop indices and at dynamic ones becomes `value`, or is added to; in order of the loops."""

    ref: StridedRef
    indices: tuple[DynamicIndex, ...]
    value: Operand
    adds: bool


class Reduce(Record):
    """out = op over the stage's loop of `value`: a register of the row, which later stages read."""

    out: Register
    op: str
    value: Operand


class Running(Record):
    """out = op over the stage's loop of `value` so far, in order; the stage is one loop."""

    out: Register
    op: str
    value: Operand


class Accumulate(Record):
    """The element of `ref` at the loop indices becomes op(itself, value): a reduction over other dimensions."""

    ref: StridedRef
    op: str
    value: Operand


Instruction: TypeAlias = Load | Position | LoadAt | Apply | Store | StoreAt | Reduce | Running | Accumulate
Write: TypeAlias = Store | StoreAt | Accumulate
Access: TypeAlias = Load | LoadAt | Write
WRITES = (Store, StoreAt, Accumulate)
ACCESSES = (Load, LoadAt, *WRITES)
"""The instructions with a `ref`, for `isinstance`."""


class NestStage(Record):
    """Code for every index of the inner loops, or once for every row."""

    inner: bool
    code: list[Instruction] = field(default_factory=list)


class Chunking(Record):
    """The chunks of a loop of a nest, which may run at the same time. The last dimension of the loop is `axis`. It
    belongs to one stage (for one row after another) or to the rows of all stages.
    """

    axis: int
    chunks: int
    stage: NestStage | None = None
    private: list[tuple[Buffer, Buffer | None]] = field(default_factory=list)
    """Scratch that every chunk needs for itself; with memory for all chunks where it is large."""
    accumulators: list[tuple[Accumulate, Buffer]] = field(default_factory=list)
    """The accumulators of every chunk, and memory for all chunks."""


class LoopNest(Record):
    """Loops over `domain`. `outer` is the number of dimensions that enclose the stages; None while all may become inner
    ones.
    """

    domain: Shape
    outer: int | None = None
    stages: list[NestStage] = field(default_factory=list)
    fills: list[tuple[Buffer, Any]] = field(default_factory=list)
    """Buffers that are filled with a number before the loops begin."""
    chunkings: list[Chunking] = field(default_factory=list)
    row_scratch: list[Buffer] | None = None
    """Private scratch of each row if the stages of several rows are interleaved. The first stage of eight rows is
    followed by the second one of these rows. None if they must not be.
    """

    @property
    def code(self) -> list[Instruction]:
        """The instructions of all stages."""
        return [instruction for stage in self.stages for instruction in stage.code]

    def padded(self, ref: StridedRef) -> StridedRef:
        """A reference of a row stage with strides for all dimensions of the domain."""
        return StridedRef(ref.buffer, ref.offset, (*ref.strides, *[0] * (len(self.domain) - len(ref.strides))))


class Dot(Record):
    """out[b…, i, j] = Σ_k x[b…, i, k] y[b…, k, j]. The strides of a reference are those of the batch axes and of its
    two other axes (0 where it has none). `sizes` are the lengths of i, k and j, each one axis."""

    out: StridedRef
    x: StridedRef
    y: StridedRef
    batch: Shape
    sizes: tuple[int, int, int]
    grid: tuple[int, int, int] = (1, 1, 1)
    """The numbers of chunks, which may run at the same time, of the first batch axis, of i and of j."""


class Fill(Record):
    """All elements of a buffer become a number."""

    buffer: Buffer
    value: Any


class Copy(Record):
    """`target` becomes a copy of `source`."""

    target: Buffer
    source: Buffer


class FlagCheck(Record):
    """If the boolean at `flag` is true, the program reports an error at its end."""

    flag: StridedRef


class EarlyExit(Record):
    """The program ends here if there is an error so far, or if the boolean at `flag` is true. The items after it
    overwrite donated inputs."""

    flag: StridedRef | None


class LibraryCall(Record):
    """A routine of a library on whole buffers. The printer knows the routine by its name."""

    routine: str
    outs: tuple[StridedRef, ...]
    args: tuple[StridedRef, ...]
    params: dict[str, Any]


class CountedLoop(Record):
    """The items of `body`, `length` times; `slices` move with the steps. Those of `ahead` come before them in a step,
    and may run concurrently with `body` in the step before: see `pipelining.py`.
    """

    length: int
    reverse: bool
    body: list[Item]
    slices: list[Buffer]
    ahead: list[Item] = field(default_factory=list)


class ConditionalLoop(Record):
    """`test` and, while `flag` is true after it, `body`."""

    test: list[Item]
    flag: StridedRef
    body: list[Item]


class Branch(Record):
    """The items of the branch whose number is `index`, clamped to the range."""

    index: StridedRef
    branches: list[list[Item]]


Item: TypeAlias = (
    LoopNest | Dot | Fill | Copy | FlagCheck | EarlyExit | LibraryCall | CountedLoop | ConditionalLoop | Branch
)


class NativeProgram(Record):
    """Items over numbered inputs, constants and outputs, with `arena` bytes of scratch."""

    inputs: list[ArraySpec]
    constants: list[Any]
    outputs: list[ArraySpec]
    items: list[Item]
    arena: int = 0
    flag: StridedRef | None = None
    """A boolean that the program sets where an output has a NaN."""
    fast: bool = False
    """Whether arithmetic of floats may be fused and reordered."""
    aliased: dict[int, AliasedOutput] = field(default_factory=dict)
    """Outputs, by their numbers, in the memory of inputs. `outputs` lacks them, and numbers the others without them."""

    @property
    def interface(self) -> Interface:
        """The interface for calls."""
        return Interface(self.inputs, self.constants, self.outputs, self.arena, self.aliased)
