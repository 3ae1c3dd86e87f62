"""LAPACK in native code, on row-major matrices: calls, scratch memory, triangular and positive definite matrices.

`emit_…` writes the code into the builder's block and returns the status as an i32 value. It is 0, or LAPACK's positive
number of the place where a matrix is singular or not positive definite. Shapes and strides are known numbers at
emission. A routine with scratch memory takes the address of `…_scratch` bytes, aligned to 64. Where NumPy works on the
columns of a matrix, this code factors a transposed copy: pivots, signs and singular matrices are the same.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from func.backends import ir
from func.backends.llvm.linalg import matrix_copies
from func.backends.llvm.linalg.blas import emit_trsm
from func.backends.llvm.linalg.matrix_copies import INT, Matrix, number, slot
from func.backends.llvm.linalg.routines import call, leading, routine, triangle
from func.backends.llvm.routine_code import call_routine
from func.backends.routines import matrix_parts

FINE = ir.Constant(INT, 0)

WIDTH = 64
"""Columns that LAPACK's blocked algorithms take at once: workspace for as many always allows the best speed."""
TRIANGLE = 64
"""Order up to which LAPACK inverts a triangle; larger ones are halved."""


def run(builder: ir.IRBuilder, name: str, *arguments: Any) -> ir.Value:
    """Call a routine whose last argument is the status, and return that."""
    info = slot(builder)
    builder.store(FINE, info)
    call(builder, name, *arguments, info)
    return builder.load(info, typ=INT)


def scratch_size(sizes: Sequence[int]) -> int:
    """The bytes that areas of these sizes take one after the other, each aligned to 64.

    >>> scratch_size([8, 100])
    192
    """
    return sum(-(-size // 64) * 64 for size in sizes)


def areas(builder: ir.IRBuilder, scratch: ir.Value, sizes: Sequence[int]) -> list[ir.Value]:
    """The addresses of areas of these sizes inside scratch memory."""
    starts = [scratch_size(sizes[:index]) for index in range(len(sizes))]
    return [builder.gep(scratch, [number(start)], source_etype=matrix_copies.BYTE) for start in starts]


def sizes_of(dtype: Any) -> tuple[int, int]:
    """Bytes of a number and of its real part."""
    size = int(np.dtype(dtype).itemsize)
    return size, matrix_copies.alignment(dtype)


def emit_potrf(builder: ir.IRBuilder, n: int, a: Matrix, *, lower: bool = True) -> ir.Value:
    """Overwrite a triangle of A with L of A = L Lᴴ, or with U of A = Uᴴ U; the other triangle stays unchanged."""
    if n == 0:
        return FINE
    return run(builder, routine(a.dtype, "potrf"), triangle(lower), n, a.at, leading(a.ld, n))


def emit_potri(builder: ir.IRBuilder, n: int, a: Matrix, *, lower: bool = True) -> ir.Value:
    """Overwrite the factor that `emit_potrf` left with the inverse of the factored matrix."""
    if n == 0:
        return FINE
    status = emit_first_zero(builder, n, a)
    with builder.if_then(builder.icmp_signed("==", status, FINE), likely=True):
        emit_trtri(builder, n, a, lower=lower)
        run(builder, routine(a.dtype, "lauum"), triangle(lower), n, a.at, leading(a.ld, n))
        matrix_copies.emit_mirror(builder, n, a, lower=lower)
    return status


def emit_trtri(builder: ir.IRBuilder, n: int, a: Matrix, *, lower: bool = True) -> None:
    """Overwrite a triangle with its inverse; no number on the diagonal is 0.

    [[A, 0], [B, C]] has the inverse [[A⁻¹, 0], [-C⁻¹ B A⁻¹, C⁻¹]]: nearly all work is large solves, which LAPACK's
    routine splits into narrow blocks.
    """
    if n <= TRIANGLE:
        run(builder, routine(a.dtype, "trtri"), triangle(lower), "N", n, a.at, leading(a.ld, n))
        return
    half = -(-n // 32) * 16
    rest = a.shifted(builder, half * (a.ld + 1))
    off_diagonal = a.shifted(builder, half * a.ld if lower else half)
    m, k = (n - half, half) if lower else (half, n - half)
    left, right = (rest, a) if lower else (a, rest)
    emit_trsm(builder, m, k, left, off_diagonal, lower=lower, alpha=-1)
    emit_trsm(builder, m, k, right, off_diagonal, left=False, lower=lower)
    emit_trtri(builder, half, a, lower=lower)
    emit_trtri(builder, n - half, rest, lower=lower)


def emit_first_zero(builder: ir.IRBuilder, n: int, a: Matrix) -> ir.Value:
    """The place of the first zero on the diagonal, counted from 1; 0 without one."""
    return call_routine(builder, matrix_parts.first_zero, a.dtype, n, a.at, a.ld + 1)
