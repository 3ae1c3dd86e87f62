"""Least squares in native code, by singular values as in NumPy.

The conventions are those of `lapack`.

Source: E. Anderson et al., LAPACK Users' Guide, third edition (1999), and the routines' own documentation (3.12).
"""

import math
from typing import Any

import numpy as np

from func.backends import ir
from func.backends.llvm.linalg import matrix_copies
from func.backends.llvm.linalg.blas import emit_gemm
from func.backends.llvm.linalg.lapack import FINE, WIDTH, areas, run, scratch_size, sizes_of
from func.backends.llvm.linalg.matrix_copies import INT, Matrix, emit_copy, emit_transpose, loop, number, slot
from func.backends.llvm.linalg.routines import constant, routine

SMALL = 25
"""The size up to which LAPACK's divide and conquer does not divide subproblems."""


def _work(dtype: Any, m: int, n: int, k: int) -> tuple[int, int, int]:
    """The lengths of work, rwork (0 for real matrices) and iwork of gelsd."""
    short, long = sorted((m, n))
    levels = max(0, int(math.log2(short / (SMALL + 1))) + 1) if short > SMALL else 0
    blocks = WIDTH * (m + n + k + long)
    integers = max(1, 3 * short * levels + 11 * short)
    small_problem = 2 * SMALL + 8 * levels
    if np.dtype(dtype).kind == "c":
        square = max((SMALL + 1) ** 2, n * (1 + k) + 2 * k)
        real = 10 * long + short * small_problem + 3 * SMALL * k + square
        return 2 * short + short * max(1, k) + long + long * k + blocks + short * short, real, integers
    least = 12 * long + short * small_problem + long * k + (SMALL + 1) ** 2
    return least + blocks + 4 * short * short, 0, integers


def _areas(dtype: Any, m: int, n: int, k: int) -> list[int]:
    size, real = sizes_of(dtype)
    work, rwork, iwork = _work(dtype, m, n, k)
    return [m * n * size, max(m, n) * k * size, m * k * size, work * size, rwork * real, iwork * 4]


def lstsq_scratch(dtype: Any, m: int, n: int, k: int) -> int:
    """The bytes that `emit_lstsq` needs."""
    return scratch_size(_areas(dtype, m, n, k))


def emit_lstsq(
    builder: ir.IRBuilder,
    m: int,
    n: int,
    k: int,
    a: Matrix,
    b: Matrix,
    x: Matrix,
    residuals: ir.Value,
    s: ir.Value,
    scratch: ir.Value,
    *,
    limit: float,
) -> ir.Value:
    """Write the least-squares solution X of A X = B, the k sums of squared residuals, and the singular values.

    Singular values up to `limit` times the largest count as zero.

    The caller handles sizes of 0.
    """
    if 0 in (m, n, k):
        return FINE
    dtype = a.dtype
    *starts, work, rwork, iwork = areas(builder, scratch, _areas(dtype, m, n, k))
    tall = max(m, n)
    matrix, right, rest = [Matrix(start, ld, dtype) for start, ld in zip(starts, (m, tall, k), strict=True)]
    length, real, _ = _work(dtype, m, n, k)
    emit_transpose(builder, m, n, a, matrix)
    emit_transpose(builder, m, k, b, right)
    rank = slot(builder)
    bound = constant(builder, limit, "float32" if matrix_copies.alignment(dtype) == 4 else "float64")
    spaces = (work, length, rwork, iwork) if real else (work, length, iwork)
    status = run(builder, routine(dtype, "gelsd"), m, n, k, matrix.at, m, right.at, tall, s, bound, rank, *spaces)
    emit_transpose(builder, k, n, right, x)

    def write_squares_of_residuals() -> None:
        """Write the sums of squares of B - A X."""
        emit_copy(builder, m, k, b, rest)
        emit_gemm(builder, m, k, n, a, "N", x, "N", rest, alpha=-1, beta=1)
        _emit_squares(builder, m, k, rest, k, 1, residuals)

    if m > n:
        is_regular = builder.icmp_signed("==", builder.load(rank, typ=INT), ir.Constant(INT, n))
        with builder.if_else(is_regular) as (regular, deficient):
            with regular:
                _emit_squares(builder, m - n, k, right.shifted(builder, n), 1, tall, residuals)
            with deficient:
                write_squares_of_residuals()
    else:
        write_squares_of_residuals()
    return status


def _emit_squares(
    builder: ir.IRBuilder, rows: int, columns: int, matrix: Matrix, down: int, across: int, out: ir.Value
) -> None:
    """Write the sums of squared moduli of columns; the strides are those along a column and to the next one."""
    dtype, kind = matrix.dtype, matrix_copies.real_element(matrix.dtype)
    total = slot(builder, kind)
    with loop(builder, columns) as j:
        builder.store(ir.Constant(kind, 0.0), total)
        column = matrix.shifted(builder, builder.mul(j, number(across)))
        with loop(builder, rows) as i:
            place = column.shifted(builder, builder.mul(i, number(down)))
            value = builder.load(place.at, typ=matrix_copies.element(dtype), align=matrix_copies.alignment(dtype))
            square = builder.fmul(value, value)
            if dtype.kind == "c":
                square = builder.fadd(*(builder.extract_element(square, ir.Constant(INT, part)) for part in (0, 1)))
            builder.store(builder.fadd(builder.load(total, typ=kind), square), total)
        target = builder.gep(out, [j], source_etype=kind)
        builder.store(builder.load(total, typ=kind), target)
