"""Least squares in native code, by singular values as NumPy does it.

The conventions are those of `lapack`.

Source: E. Anderson et al., LAPACK Users' Guide, third edition (1999), and the routines' own documentation (3.12).
"""

import math
from typing import Any

import numpy as np

from func.backends.llvm import ir
from func.backends.llvm.linalg.blas import emit_gemm
from func.backends.llvm.linalg.lapack import FINE, WIDTH, areas, run, scratch_size
from func.backends.llvm.linalg.matrices import (
    DOUBLE,
    FLOAT,
    INT,
    alignment,
    element,
    emit_copy,
    emit_transpose,
    loop,
    moved,
    number,
    slot,
)
from func.backends.llvm.linalg.routines import constant, routine

SMALL = 25
"""The size of the subproblems that LAPACK's divide and conquer does not divide."""


def _work(dtype: Any, m: int, n: int, k: int) -> tuple[int, int, int]:
    """The lengths of work, rwork (0 for real matrices) and iwork of gelsd."""
    short, long = sorted((m, n))
    levels = max(0, int(math.log2(short / (SMALL + 1))) + 1) if short > SMALL else 0
    blocks = WIDTH * (m + n + k + long)
    integers = max(1, 3 * short * levels + 11 * short)
    inner = 2 * SMALL + 8 * levels
    if np.dtype(dtype).kind == "c":
        square = max((SMALL + 1) ** 2, n * (1 + k) + 2 * k)
        real = 10 * long + short * inner + 3 * SMALL * k + square
        return 2 * short + short * max(1, k) + long + long * k + blocks + short * short, real, integers
    least = 12 * long + short * inner + long * k + (SMALL + 1) ** 2
    return least + blocks + 4 * short * short, 0, integers


def _areas(dtype: Any, m: int, n: int, k: int) -> list[int]:
    size = np.dtype(dtype).itemsize
    real = size // (2 if np.dtype(dtype).kind == "c" else 1)
    work, rwork, iwork = _work(dtype, m, n, k)
    return [m * n * size, max(m, n) * k * size, m * k * size, work * size, rwork * real, iwork * 4]


def lstsq_scratch(dtype: Any, m: int, n: int, k: int) -> int:
    """The bytes that `emit_lstsq` needs."""
    return scratch_size(_areas(dtype, m, n, k))


def emit_lstsq(
    builder: ir.IRBuilder,
    dtype: Any,
    m: int,
    n: int,
    k: int,
    a: ir.Value,
    lda: int,
    b: ir.Value,
    ldb: int,
    x: ir.Value,
    ldx: int,
    residuals: ir.Value,
    s: ir.Value,
    scratch: ir.Value,
    *,
    limit: float,
) -> ir.Value:
    """Write the least-squares solution X of A X = B, the k sums of squared residuals, and the singular values; those
    up to `limit` times the largest count as zero.

    Sizes of 0 are the caller's.
    """
    if 0 in (m, n, k):
        return FINE
    matrix, right, rest, work, rwork, iwork = areas(builder, scratch, _areas(dtype, m, n, k))
    length, real, _ = _work(dtype, m, n, k)
    tall = max(m, n)
    emit_transpose(builder, dtype, m, n, a, lda, matrix, m)
    emit_transpose(builder, dtype, m, k, b, ldb, right, tall)
    rank = slot(builder)
    modulus = "float32" if alignment(dtype) == 4 else "float64"
    bound = constant(builder, limit, modulus)
    spaces = (work, length, rwork, iwork) if real else (work, length, iwork)
    status = run(builder, routine(dtype, "gelsd"), m, n, k, matrix, m, right, tall, s, bound, rank, *spaces)
    emit_transpose(builder, dtype, k, n, right, tall, x, ldx)
    if m > n:
        regular = builder.icmp_signed("==", builder.load(rank, typ=INT), ir.Constant(INT, n))
        with builder.if_else(regular) as (full, less):
            with full:
                below = moved(builder, dtype, right, n)
                _squares(builder, dtype, m - n, k, below, 1, tall, residuals)
            with less:
                _apart(builder, dtype, m, n, k, a, lda, b, ldb, x, ldx, rest, residuals)
    else:
        _apart(builder, dtype, m, n, k, a, lda, b, ldb, x, ldx, rest, residuals)
    return status


def _apart(builder: ir.IRBuilder, dtype: Any, m: int, n: int, k: int, *given: Any) -> None:
    """The squares of B - A X."""
    a, lda, b, ldb, x, ldx, rest, residuals = given
    emit_copy(builder, dtype, m, k, b, ldb, rest, k)
    emit_gemm(builder, dtype, m, k, n, a, "N", lda, x, "N", ldx, rest, k, alpha=-1, beta=1)
    _squares(builder, dtype, m, k, rest, k, 1, residuals)


def _squares(
    builder: ir.IRBuilder, dtype: Any, rows: int, columns: int, start: ir.Value, down: int, across: int, out: ir.Value
) -> None:
    """Write the sums of squared moduli of columns; the strides are those along a column and to the next one."""
    kind = FLOAT if alignment(dtype) == 4 else DOUBLE
    total = slot(builder, kind)
    with loop(builder, columns) as j:
        builder.store(ir.Constant(kind, 0.0), total)
        first = moved(builder, dtype, start, builder.mul(j, number(across)))
        with loop(builder, rows) as i:
            place = moved(builder, dtype, first, builder.mul(i, number(down)))
            value = builder.load(place, typ=element(dtype), align=alignment(dtype))
            square = builder.fmul(value, value)
            if np.dtype(dtype).kind == "c":
                square = builder.fadd(*(builder.extract_element(square, ir.Constant(INT, part)) for part in (0, 1)))
            builder.store(builder.fadd(builder.load(total, typ=kind), square), total)
        where = builder.gep(out, [j], source_etype=kind)
        builder.store(builder.load(total, typ=kind), where)
