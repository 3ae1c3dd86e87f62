"""BLAS in native code, on matrices whose rows lie in memory.

A buffer with rows in memory is the transposed matrix by columns, so each product here is asked for as the transposed
product: no data is moved.

Shapes and strides are numbers known while the code is made; `lda` and its like count the elements from one row to the
next. Flags `ta`, `trans` are "N", "T" or "C" for a matrix, its transpose, its adjoint.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from func.backends.llvm import ir
from func.backends.llvm.linalg.matrices import INDEX, loop, moved
from func.backends.llvm.linalg.routines import (
    call,
    constant,
    leading,
    routine,
    triangle,
)


def emit_gemm(
    builder: ir.IRBuilder,
    dtype: Any,
    m: int | ir.Value,
    n: int | ir.Value,
    k: int,
    a: ir.Value,
    ta: str,
    lda: int,
    b: ir.Value,
    tb: str,
    ldb: int,
    c: ir.Value,
    ldc: int,
    *,
    alpha: complex = 1,
    beta: complex = 0,
) -> None:
    """C = α op(A) op(B) + β C with op(A) of shape (m, k), op(B) of (k, n). With β = 0, C need not be initialised.

    m and n may be addresses of numbers, not zero, which only the running code knows; the strides must be long enough.
    """
    if m == 0 or n == 0:
        return
    scales = [constant(builder, value, dtype) for value in (alpha, beta)]
    lda = leading(lda, k if ta == "N" else m)
    ldb = leading(ldb, n if tb == "N" else k)
    place = (c, leading(ldc, n))
    call(builder, routine(dtype, "gemm"), tb, ta, n, m, k, scales[0], b, ldb, a, lda, scales[1], *place)


def emit_batched_gemm(
    builder: ir.IRBuilder,
    dtype: Any,
    batch: Sequence[int],
    strides: Sequence[Sequence[int]],
    m: int,
    n: int,
    k: int,
    a: ir.Value,
    ta: str,
    lda: int,
    b: ir.Value,
    tb: str,
    ldb: int,
    c: ir.Value,
    ldc: int,
    *,
    alpha: complex = 1,
    beta: complex = 0,
) -> None:
    """`emit_gemm` at every place of a batch; `strides` has for A, B and C the elements from one place to the next along
    each axis of the batch, 0 where an operand is broadcast."""
    if 0 in batch:
        return
    if not batch:
        emit_gemm(builder, dtype, m, n, k, a, ta, lda, b, tb, ldb, c, ldc, alpha=alpha, beta=beta)
        return
    with loop(builder, batch[0]) as i:
        a, b, c = (
            moved(builder, dtype, start, builder.mul(i, ir.Constant(INDEX, steps[0])))
            for start, steps in zip((a, b, c), strides, strict=True)
        )
        rest = [steps[1:] for steps in strides]
        emit_batched_gemm(
            builder, dtype, batch[1:], rest, m, n, k, a, ta, lda, b, tb, ldb, c, ldc, alpha=alpha, beta=beta
        )


def emit_gemv(
    builder: ir.IRBuilder,
    dtype: Any,
    m: int,
    n: int,
    a: ir.Value,
    trans: str,
    lda: int,
    x: ir.Value,
    incx: int,
    y: ir.Value,
    incy: int,
    *,
    alpha: complex = 1,
    beta: complex = 0,
) -> None:
    """y = α op(A) x + β y for A of shape (m, n); `incx`, `incy` count the elements from one entry to the next."""
    length, depth = (m, n) if trans == "N" else (n, m)
    # BLAS has no product with a conjugated matrix that is not transposed; and returns early, with y as it was, where
    # nothing is summed up.
    if depth == 0 or (trans == "C" and np.dtype(dtype).kind == "c"):
        emit_gemm(builder, dtype, length, 1, depth, a, trans, lda, x, "N", incx, y, incy, alpha=alpha, beta=beta)
        return
    if length == 0:
        return
    scales = [constant(builder, value, dtype) for value in (alpha, beta)]
    turned = "T" if trans == "N" else "N"
    matrix = (a, leading(lda, n))
    call(builder, routine(dtype, "gemv"), turned, n, m, scales[0], *matrix, x, incx, scales[1], y, incy)


def emit_ger(
    builder: ir.IRBuilder,
    dtype: Any,
    m: int,
    n: int,
    x: ir.Value,
    incx: int,
    y: ir.Value,
    incy: int,
    a: ir.Value,
    lda: int,
    *,
    alpha: complex = 1,
) -> None:
    """A += α x yᵀ for A of shape (m, n)."""
    name = routine(dtype, "ger", "geru")
    call(builder, name, n, m, constant(builder, alpha, dtype), y, incy, x, incx, a, leading(lda, n))


def emit_dot(builder: ir.IRBuilder, dtype: Any, n: int, x: ir.Value, incx: int, y: ir.Value, incy: int) -> ir.Value:
    """The value Σ xᵢ yᵢ of real vectors."""
    return call(builder, routine(dtype, "dot"), n, x, incx, y, incy)


def emit_syrk(
    builder: ir.IRBuilder,
    dtype: Any,
    n: int,
    k: int,
    a: ir.Value,
    trans: str,
    lda: int,
    c: ir.Value,
    ldc: int,
    *,
    lower: bool = True,
    alpha: float = 1,
    beta: float = 0,
) -> None:
    """One triangle of C = α A Aᵀ + β C ("N", A of shape (n, k)) or α Aᵀ A + β C ("T", A of shape (k, n)).

    Half the work of the product; `matrices.emit_mirror` fills the other triangle in.
    """
    if n == 0:
        return
    scales = [constant(builder, value, dtype) for value in (alpha, beta)]
    turned = "T" if trans == "N" else "N"
    matrix = (a, leading(lda, k if trans == "N" else n))
    call(
        builder,
        routine(dtype, "syrk"),
        triangle(lower),
        turned,
        n,
        k,
        scales[0],
        *matrix,
        scales[1],
        c,
        leading(ldc, n),
    )


def emit_trsm(
    builder: ir.IRBuilder,
    dtype: Any,
    m: int,
    n: int,
    a: ir.Value,
    lda: int,
    b: ir.Value,
    ldb: int,
    *,
    left: bool = True,
    lower: bool = True,
    trans: str = "N",
    unit: bool = False,
    alpha: complex = 1,
) -> None:
    """Overwrite B, of shape (m, n), with the solution X of op(A) X = α B, or of X op(A) = α B with `left` off.

    Only the triangle of A is read, with `unit` without its diagonal. A zero on the diagonal divides by zero.
    """
    if m == 0 or n == 0:
        return
    order = m if left else n
    flags = ("R" if left else "L", triangle(lower), trans, "U" if unit else "N")
    scale = constant(builder, alpha, dtype)
    call(builder, routine(dtype, "trsm"), *flags, n, m, scale, a, leading(lda, order), b, leading(ldb, n))


def emit_trsv(
    builder: ir.IRBuilder,
    dtype: Any,
    n: int,
    a: ir.Value,
    lda: int,
    x: ir.Value,
    incx: int,
    *,
    lower: bool = True,
    trans: str = "N",
    unit: bool = False,
) -> None:
    """Overwrite a vector with the solution of op(A) x = b; op is no adjoint of complex matrices."""
    if n == 0:
        return
    flags = (triangle(lower), "T" if trans == "N" else "N", "U" if unit else "N")
    call(builder, routine(dtype, "trsv"), *flags, n, a, leading(lda, n), x, incx)
