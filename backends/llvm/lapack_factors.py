"""What native code does with LU factors that lie with their columns in memory, as LAPACK makes them.

The conventions are those of `lapack`; exchanges of rows are counted from 0.
"""

from typing import Any

import numpy as np

from func.backends.llvm import text as ir
from func.backends.llvm.lapack import FINE, WIDTH, areas, run, scratch_size
from func.backends.llvm.matrices import INDEX, INT, loop, moved
from func.backends.llvm.routines import routine

__all__ = ["emit_factored_inverse", "emit_getrf", "emit_order", "factored_inverse_scratch"]


def emit_getrf(builder: ir.IRBuilder, dtype: Any, n: int, a: ir.Value, lda: int, pivots: ir.Value) -> ir.Value:
    """Overwrite a square matrix, column by column in memory, with its LU factors, and write the exchanges of rows."""
    if n == 0:
        return FINE
    status = run(builder, routine(dtype, "getrf"), n, n, a, max(lda, n), pivots)
    _shifted(builder, n, pivots, pivots, -1)
    return status


def _shifted(builder: ir.IRBuilder, count: int, source: ir.Value, target: ir.Value, by: int) -> None:
    with loop(builder, count) as i:
        value = builder.load(moved(builder, "int32", source, i), typ=INT)
        builder.store(builder.add(value, ir.Constant(INT, by)), moved(builder, "int32", target, i))


def emit_order(builder: ir.IRBuilder, m: int, count: int, pivots: ir.Value, order: ir.Value) -> None:
    """Write the order (int64) of m rows that exchanges make."""
    with loop(builder, m) as i:
        builder.store(i, moved(builder, "int64", order, i))
    with loop(builder, count) as i:
        j = builder.sext(builder.load(moved(builder, "int32", pivots, i), typ=INT), INDEX)
        places = [moved(builder, "int64", order, place) for place in (i, j)]
        values = [builder.load(place, typ=INDEX) for place in places]
        for value, place in zip(values, reversed(places), strict=True):
            builder.store(value, place)


def _inverse_areas(dtype: Any, n: int) -> list[int]:
    return [n * 4, WIDTH * n * np.dtype(dtype).itemsize]


def factored_inverse_scratch(dtype: Any, n: int) -> int:
    """The bytes that `emit_factored_inverse` needs."""
    return scratch_size(_inverse_areas(dtype, n))


def emit_factored_inverse(
    builder: ir.IRBuilder, dtype: Any, n: int, lu: ir.Value, ld: int, pivots: ir.Value, scratch: ir.Value
) -> ir.Value:
    """Overwrite LU factors with the inverse, its columns in memory. Where the status is not 0, it is none."""
    if n == 0:
        return FINE
    exchanges, work = areas(builder, scratch, _inverse_areas(dtype, n))
    _shifted(builder, n, pivots, exchanges, 1)
    return run(builder, routine(dtype, "getri"), n, lu, max(ld, n), exchanges, work, WIDTH * n)
