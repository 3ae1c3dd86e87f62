"""How products of matrices are cut into chunks that may run at the same time.

As for loops, the chunks follow from the product alone, so that the results do not depend on the number of threads.
"""

from __future__ import annotations

import math

from func.backends.loops.kernels import Dot

LEAST = 1 << 20
"""Multiplications from which on two chunks are worth their start: some 20 microseconds."""
GROWTH = 16
"""The factor of work that doubles the number of chunks. Every chunk copies its operands into the order that the
processor likes best, which for half a product is more than half of the copying."""
MOST = 16
SHORTEST = 48
"""Rows or columns of a chunk."""
STEP = 16
"""The number of rows or columns of all chunks but the last is a multiple of this: whole registers."""


def grid_of(dot: Dot) -> tuple[int, int, int]:
    """The numbers of chunks into which the first batch axis, the rows and the columns of a product are cut.

    >>> from func.backends.loops.kernels import StridedRef, Buffer
    >>> import numpy as np
    >>> ref = StridedRef(Buffer(1, np.dtype(np.float64)), 0, ())
    >>> grid_of(Dot(ref, ref, ref, (), (512, 512, 512))), grid_of(Dot(ref, ref, ref, (8,), (64, 64, 64)))
    ((1, 2, 2), (2, 1, 1))
    """
    rows, _, columns = dot.sizes
    chunks, work = 1, math.prod(dot.batch) * math.prod(dot.sizes)
    while chunks < MOST and work >= LEAST * GROWTH ** int(math.log2(chunks)):
        chunks *= 2
    batch = min(chunks, dot.batch[0]) if dot.batch else 1
    by_rows = by_columns = 1
    while batch * by_rows * by_columns * 2 <= chunks:
        if max(rows // by_rows, columns // by_columns) < 2 * SHORTEST:
            break
        if rows // by_rows > columns // by_columns:
            by_rows *= 2
        else:
            by_columns *= 2
    return batch, -(-rows // step_of(rows, by_rows)), -(-columns // step_of(columns, by_columns))


def step_of(length: int, chunks: int) -> int:
    """The rows or columns of every chunk but the last, which may have fewer."""
    return length if chunks == 1 else -(-length // chunks // STEP) * STEP


def is_cut(dot: Dot) -> bool:
    """Whether a product is cut at all."""
    return dot.grid != (1, 1, 1)
