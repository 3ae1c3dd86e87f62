"""Chunks of matrix products, which may run at the same time.

As for loops, the chunks follow from the product alone, so that the results do not depend on the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from func.backends.loops.kernels import Dot

LEAST = 1 << 20
"""Multiplications from which on two chunks are worth their start: some 20 microseconds."""
GROWTH = 16
"""The factor of work that doubles the largest number of chunks: more of them than that keep no more threads busy."""
MOST = 16
SHORTEST = 48
"""Rows or columns of a chunk."""
STEP = 16
"""The number of rows or columns of all chunks but the last is a multiple of this: whole registers."""
LOSS = 0.045
"""The largest share of its time that a product may lose to its chunks on one thread, by the prices below."""


class CopyPrices(NamedTuple):
    """The prices of BLAS's copies of operands into the order of its inner loop, in multiplications per element.

    Every chunk copies its rows of x and its columns of y. Chunks of rows copy all of y again, chunks of columns all of
    x. The product itself multiplies each element of y once for every row, and each of x once for every column.
    """

    x: float
    y: float


NEAR = {4: CopyPrices(12, 35), 8: CopyPrices(18, 11)}
FAR = {4: CopyPrices(33, 35), 8: CopyPrices(54, 16)}
"""By the bytes of an element, for operands that fit the second-level cache and for larger ones. Measured with OpenBLAS
0.3.30's kernels for AVX-512 on an AMD EPYC, as the time of two chunks beyond that of one. In single precision more than
two chunks take longer than in proportion, so the prices there are a quarter to a half above that."""
SECOND_LEVEL = 1 << 20
"""Bytes of the second-level cache of a core."""


def grid_of(dot: Dot) -> tuple[int, int, int]:
    """The numbers of chunks into which the first batch axis, the rows and the columns of a product are cut.

    Chunks of the batch lose nothing. Rows and columns are cut into the largest number that loses at most LOSS, and of
    those grids into the one that loses least.

    >>> from func.backends.loops.kernels import StridedRef, Buffer
    >>> import numpy as np
    >>> ref = StridedRef(Buffer(1, np.dtype(np.float64)), 0, (1, 1))
    >>> grid_of(Dot(ref, ref, ref, (), (512, 512, 512))), grid_of(Dot(ref, ref, ref, (8,), (64, 64, 64)))
    ((1, 2, 1), (2, 1, 1))
    """
    rows, _, columns = dot.sizes
    chunks, work = 1, math.prod(dot.batch) * math.prod(dot.sizes)
    while chunks < MOST and work >= LEAST * GROWTH ** int(math.log2(chunks)):
        chunks *= 2
    batch = min(chunks, dot.batch[0]) if dot.batch else 1
    powers = [1 << power for power in range(MOST.bit_length())]
    grids = [
        (by_rows, by_columns)
        for by_rows in powers
        for by_columns in powers
        if batch * by_rows * by_columns <= chunks
        and (by_rows == 1 or rows // by_rows >= SHORTEST)
        and (by_columns == 1 or columns // by_columns >= SHORTEST)
        and loss_of(dot, by_rows, by_columns) <= LOSS
    ]
    by_rows, by_columns = max(grids, key=lambda grid: (grid[0] * grid[1], -loss_of(dot, *grid)))
    return batch, -(-rows // step_of(rows, by_rows)), -(-columns // step_of(columns, by_columns))


def loss_of(dot: Dot, by_rows: int, by_columns: int) -> float:
    """The share of a product's time for BLAS's repeated copies of operands in chunks of rows and of columns."""
    rows, summed, columns = dot.sizes
    if by_rows == by_columns == 1 or 0 in dot.sizes:
        return 0.0
    if is_turned(rows, columns, *[ref.strides[-2:] for ref in (dot.out, dot.x, dot.y)]):
        rows, columns, by_rows, by_columns = columns, rows, by_columns, by_rows
    size = dot.out.buffer.dtype.itemsize
    near, far = NEAR.get(size, NEAR[8]), FAR.get(size, FAR[8])
    x = (near if rows * summed * size <= SECOND_LEVEL else far).x
    y = (near if summed * columns * size <= SECOND_LEVEL else far).y
    return (by_rows - 1) * y / rows + (by_columns - 1) * x / columns


def is_turned(rows: int, columns: int, out: Sequence[int], x: Sequence[int], y: Sequence[int]) -> bool:
    """Whether the code computes the transposed product, by the strides of the matrices: it does if that makes its
    results contiguous along rows.
    """
    if rows == 1 or columns == 1:
        return rows != 1
    return out[0] == 1 and (out[1] != 1 or (x[0] == 1 and y[1] != 1))


def step_of(length: int, chunks: int) -> int:
    """The rows or columns of every chunk but the last, which may have fewer."""
    return length if chunks == 1 else -(-length // chunks // STEP) * STEP


def is_cut(dot: Dot) -> bool:
    """Whether a product has chunks."""
    return dot.grid != (1, 1, 1)
