"""LAPACK in native code, on matrices whose rows lie in memory: triangular and positive definite matrices, LU.

`emit_…` writes the code into the builder's block and returns the status as an i32 value: 0, or LAPACK's positive number
that says where a matrix turned out singular or not positive definite. Shapes and strides are numbers known while the
code is made. A routine that needs scratch memory takes the address of as many bytes as its `…_scratch` says, aligned to
64.

What NumPy computes from the columns of a matrix is computed from them here as well, on a transposed copy: the pivots,
signs and singular matrices are the same.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func.backends.llvm import ir
from func.backends.llvm.linalg.blas import emit_trsm
from func.backends.llvm.linalg.matrices import (
    BYTE,
    INDEX,
    INT,
    alignment,
    element,
    emit_mirror,
    emit_transpose,
    emit_triangle,
    loop,
    moved,
    number,
    slot,
)
from func.backends.llvm.linalg.routines import call, leading, routine, triangle

FINE = ir.Constant(INT, 0)

# Columns that LAPACK's blocked algorithms take at once: workspace for as many is never too little for the best speed.
WIDTH = 64
# Order up to which LAPACK inverts a triangle; larger ones are halved.
TRIANGLE = 64


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
    return [builder.gep(scratch, [number(start)], source_etype=BYTE) for start in starts]


def over_batch(builder: ir.IRBuilder, count: int, emit: Callable[[ir.Value], ir.Value]) -> ir.Value:
    """Run the code of `emit(index)` for every index, and return the first status that is not 0."""
    first = slot(builder)
    builder.store(FINE, first)
    with loop(builder, count) as index:
        status = emit(index)
        before = builder.load(first, typ=INT)
        builder.store(builder.select(builder.icmp_signed("==", before, FINE), status, before), first)
    return builder.load(first, typ=INT)


def _size(dtype: Any) -> int:
    return int(np.dtype(dtype).itemsize)


def emit_potrf(builder: ir.IRBuilder, dtype: Any, n: int, a: ir.Value, lda: int, *, lower: bool = True) -> ir.Value:
    """Overwrite a triangle of A with L of A = L Lᴴ, or with U of A = Uᴴ U; the other triangle is not touched."""
    if n == 0:
        return FINE
    return run(builder, routine(dtype, "potrf"), triangle(lower), n, a, leading(lda, n))


def emit_cholesky(
    builder: ir.IRBuilder,
    dtype: Any,
    n: int,
    a: ir.Value,
    lda: int,
    out: ir.Value,
    ldo: int,
    *,
    lower: bool = True,
) -> ir.Value:
    """Write the Cholesky factor of A, zeros beside it; only one triangle of A is read. `out` may be `a`."""
    emit_triangle(builder, dtype, n, n, a, lda, out, ldo, lower=lower)
    return emit_potrf(builder, dtype, n, out, ldo, lower=lower)


def emit_potri(
    builder: ir.IRBuilder, dtype: Any, n: int, a: ir.Value, lda: int, *, lower: bool = True, mirror: bool = True
) -> ir.Value:
    """Overwrite the factor that `emit_potrf` left by the inverse of its matrix, by one triangle of it without
    `mirror`."""
    if n == 0:
        return FINE
    status = emit_first_zero(builder, dtype, n, a, lda)
    with builder.if_then(builder.icmp_signed("==", status, FINE), likely=True):
        emit_trtri(builder, dtype, n, a, lda, lower=lower)
        run(builder, routine(dtype, "lauum"), triangle(lower), n, a, leading(lda, n))
        if mirror:
            emit_mirror(builder, dtype, n, a, lda, lower=lower)
    return status


def emit_trtri(builder: ir.IRBuilder, dtype: Any, n: int, a: ir.Value, lda: int, *, lower: bool = True) -> None:
    """Overwrite a triangle by its inverse; no number on the diagonal is 0.

    [[A, 0], [B, C]] has the inverse [[A⁻¹, 0], [-C⁻¹ B A⁻¹, C⁻¹]]: nearly all of the work are large solves, which
    LAPACK's own routine does in narrow blocks.
    """
    if n <= TRIANGLE:
        run(builder, routine(dtype, "trtri"), triangle(lower), "N", n, a, leading(lda, n))
        return
    half = -(-n // 32) * 16
    first, rest = a, moved(builder, dtype, a, half * (lda + 1))
    beside = moved(builder, dtype, a, half * lda if lower else half)
    m, k = (n - half, half) if lower else (half, n - half)
    over, under = (rest, first) if lower else (first, rest)
    emit_trsm(builder, dtype, m, k, over, lda, beside, lda, lower=lower, alpha=-1)
    emit_trsm(builder, dtype, m, k, under, lda, beside, lda, left=False, lower=lower)
    emit_trtri(builder, dtype, half, first, lda, lower=lower)
    emit_trtri(builder, dtype, n - half, rest, lda, lower=lower)


def emit_potrs(
    builder: ir.IRBuilder,
    dtype: Any,
    n: int,
    k: int,
    factor: ir.Value,
    ldf: int,
    b: ir.Value,
    ldb: int,
    *,
    lower: bool = True,
) -> ir.Value:
    """Overwrite B, of shape (n, k), with the solution of A X = B for the factor of A."""
    for trans in ("N", "C") if lower else ("C", "N"):
        emit_trsm(builder, dtype, n, k, factor, ldf, b, ldb, lower=lower, trans=trans)
    return FINE


def emit_trtrs(
    builder: ir.IRBuilder,
    dtype: Any,
    n: int,
    k: int,
    a: ir.Value,
    lda: int,
    b: ir.Value,
    ldb: int,
    *,
    lower: bool = True,
    trans: str = "N",
    unit: bool = False,
) -> ir.Value:
    """Overwrite B, of shape (n, k), with the solution of op(A) X = B for a triangle of A.

    The status is one more than the place of the first zero on the diagonal; then B is not touched.
    """
    if unit or n == 0 or k == 0:
        emit_trsm(builder, dtype, n, k, a, lda, b, ldb, lower=lower, trans=trans, unit=unit)
        return FINE
    status = emit_first_zero(builder, dtype, n, a, lda)
    with builder.if_then(builder.icmp_signed("==", status, FINE), likely=True):
        emit_trsm(builder, dtype, n, k, a, lda, b, ldb, lower=lower, trans=trans)
    return status


def emit_first_zero(builder: ir.IRBuilder, dtype: Any, n: int, a: ir.Value, lda: int) -> ir.Value:
    """The value of one more than the place of the first zero on the diagonal, 0 where there is none."""
    found = slot(builder)
    builder.store(FINE, found)
    with loop(builder, n) as reversed_place:
        place = builder.sub(number(n - 1), reversed_place)
        value = builder.load(
            moved(builder, dtype, a, builder.mul(place, number(lda + 1))), typ=element(dtype), align=alignment(dtype)
        )
        zero = builder.fcmp_ordered("==", value, ir.Constant(element(dtype), None))
        if np.dtype(dtype).kind == "c":
            zero = builder.and_(*(builder.extract_element(zero, ir.Constant(INT, part)) for part in (0, 1)))
        number_of_place = builder.trunc(builder.add(place, number(1)), INT)
        builder.store(builder.select(zero, number_of_place, builder.load(found, typ=INT)), found)
    return builder.load(found, typ=INT)


def lu_scratch(dtype: Any, m: int, n: int) -> int:
    """The bytes that `emit_lu` needs."""
    return scratch_size([m * n * _size(dtype)])


def emit_lu(
    builder: ir.IRBuilder,
    dtype: Any,
    m: int,
    n: int,
    a: ir.Value,
    lda: int,
    lu: ir.Value,
    ldlu: int,
    pivots: ir.Value,
    scratch: ir.Value,
) -> ir.Value:
    """Write L (its diagonal of ones left out) and U of P A = L U in one matrix, and LAPACK's exchanges of rows as int32
    from 0. `lu` may be `a`. A positive status is the place of a zero on U's diagonal: the factors are good all the
    same."""
    if m == 0 or n == 0:
        return FINE
    emit_transpose(builder, dtype, m, n, a, lda, scratch, m)
    status = run(builder, routine(dtype, "getrf"), m, n, scratch, m, pivots)
    emit_transpose(builder, dtype, n, m, scratch, m, lu, ldlu)
    with loop(builder, min(m, n)) as i:
        place = moved(builder, "int32", pivots, i)
        builder.store(builder.sub(builder.load(place, typ=INT), ir.Constant(INT, 1)), place)
    return status


def emit_getrs(
    builder: ir.IRBuilder,
    dtype: Any,
    n: int,
    k: int,
    lu: ir.Value,
    ldlu: int,
    pivots: ir.Value,
    b: ir.Value,
    ldb: int,
    *,
    trans: str = "N",
    turned: bool = False,
) -> ir.Value:
    """Overwrite B, of shape (n, k), with the solution of op(A) X = B for the factors that `emit_lu` wrote.

    With `turned`, the factors have their columns in memory; then op is no adjoint of complex matrices.
    """
    if n == 0 or k == 0:
        return FINE
    if trans == "N":
        _exchange_rows(builder, dtype, n, k, pivots, b, ldb, backwards=False)
    # L is the factor with ones on the diagonal.
    for lower in (True, False) if trans == "N" else (False, True):
        flipped = ("T" if trans == "N" else "N") if turned else trans
        emit_trsm(builder, dtype, n, k, lu, ldlu, b, ldb, lower=lower != turned, trans=flipped, unit=lower)
    if trans != "N":
        _exchange_rows(builder, dtype, n, k, pivots, b, ldb, backwards=True)
    return FINE


def _exchange_rows(
    builder: ir.IRBuilder, dtype: Any, n: int, k: int, pivots: ir.Value, b: ir.Value, ldb: int, *, backwards: bool
) -> None:
    with loop(builder, n) as step:
        i = builder.sub(number(n - 1), step) if backwards else step
        j = builder.sext(builder.load(moved(builder, "int32", pivots, i), typ=INT), INDEX)
        with builder.if_then(builder.icmp_signed("!=", i, j)):
            rows = [moved(builder, dtype, b, builder.mul(place, number(ldb))) for place in (i, j)]
            call(builder, routine(dtype, "swap"), k, rows[0], 1, rows[1], 1)


def _solve_areas(dtype: Any, n: int, k: int) -> list[int]:
    return [n * n * _size(dtype), n * k * _size(dtype), n * 4]


def solve_scratch(dtype: Any, n: int, k: int) -> int:
    """The bytes that `emit_solve` needs."""
    return scratch_size(_solve_areas(dtype, n, k))


def emit_solve(
    builder: ir.IRBuilder,
    dtype: Any,
    n: int,
    k: int,
    a: ir.Value,
    lda: int,
    b: ir.Value,
    ldb: int,
    x: ir.Value,
    ldx: int,
    scratch: ir.Value,
) -> ir.Value:
    """Write the solution X of A X = B, both of shape (n, k); `x` may be `b`. A is not touched."""
    if n == 0 or k == 0:
        return FINE
    matrix, right, pivots = areas(builder, scratch, _solve_areas(dtype, n, k))
    emit_transpose(builder, dtype, n, n, a, lda, matrix, n)
    emit_transpose(builder, dtype, n, k, b, ldb, right, n)
    status = run(builder, routine(dtype, "gesv"), n, k, matrix, n, pivots, right, n)
    emit_transpose(builder, dtype, k, n, right, n, x, ldx)
    return status


def _inverse_areas(dtype: Any, n: int) -> list[int]:
    return [n * n * _size(dtype), n * 4, WIDTH * n * _size(dtype)]


def inverse_scratch(dtype: Any, n: int) -> int:
    """The bytes that `emit_inverse` needs."""
    return scratch_size(_inverse_areas(dtype, n))


def emit_inverse(
    builder: ir.IRBuilder, dtype: Any, n: int, a: ir.Value, lda: int, out: ir.Value, ldo: int, scratch: ir.Value
) -> ir.Value:
    """Write the inverse of A; `out` may be `a`. Where the status is not 0, what is written is no inverse."""
    if n == 0:
        return FINE
    matrix, pivots, work = areas(builder, scratch, _inverse_areas(dtype, n))
    emit_transpose(builder, dtype, n, n, a, lda, matrix, n)
    status = run(builder, routine(dtype, "getrf"), n, n, matrix, n, pivots)
    with builder.if_then(builder.icmp_signed("==", status, FINE), likely=True):
        run(builder, routine(dtype, "getri"), n, matrix, n, pivots, work, WIDTH * n)
    emit_transpose(builder, dtype, n, n, matrix, n, out, ldo)
    return status
