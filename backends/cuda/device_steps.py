"""The steps of a plan: launches, products, copies, sorting, and loops and branches of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from func.backends.cuda.nest_kernels import Launch
from func.backends.loops.kernels import Buffer, Dot, StridedRef
from func.backends.loops.traversal import buffers_of
from func.backends.records import Record


class MatrixProduct(Record):
    """A batch of matrix products by the device's library, of operands with 10 digits where `tf32`."""

    dot: Dot
    tf32: bool = False


class Move(Record):
    """A copy of all elements of a buffer."""

    target: Buffer
    source: Buffer


class Order(Record):
    """The order of keys by a stable argsort: equal ones keep their order."""

    keys: Buffer
    order: Buffer


class Repeat(Record):
    """Steps that the host repeats; `slices` move with them."""

    length: int
    reverse: bool
    body: list[Step]
    slices: list[Buffer]


class While(Record):
    """`test` and, while `flag` is true after it, `body`; the host reads the flag."""

    test: list[Step]
    flag: StridedRef
    body: list[Step]


class Choose(Record):
    """The steps of the branch whose number the host reads."""

    index: StridedRef
    branches: list[list[Step]]


Step: TypeAlias = Launch | MatrixProduct | Move | Order | Repeat | While | Choose


def steps_in(steps: Sequence[Step]) -> Iterator[Step]:
    """All steps, with those of loops and branches."""
    for step in steps:
        yield step
        for inner in bodies_of_step(step):
            yield from steps_in(inner)


def bodies_of_step(step: Step) -> Sequence[list[Step]]:
    """The lists of steps inside a step."""
    if isinstance(step, Repeat):
        return (step.body,)
    if isinstance(step, While):
        return step.test, step.body
    return step.branches if isinstance(step, Choose) else ()


def buffers_of_step(step: Step) -> Iterator[Buffer]:
    """The memory that a step touches."""
    if isinstance(step, Launch):
        yield from step.buffers
    elif isinstance(step, MatrixProduct):
        yield from buffers_of(step.dot)
    elif isinstance(step, Move):
        yield from (step.target, step.source)
    elif isinstance(step, Order):
        yield from (step.keys, step.order)
    elif isinstance(step, Repeat):
        yield from step.slices
    elif isinstance(step, While):
        yield step.flag.buffer
    else:
        yield step.index.buffer
    for body in bodies_of_step(step):
        for inner in body:
            yield from buffers_of_step(inner)
