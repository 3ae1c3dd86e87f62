"""BLAS in native code, on row-major matrices.

A row-major buffer is the transposed matrix by columns, so each emitter here asks BLAS for the transposed result,
without moving data. Shapes and strides are known numbers at emission. Flags `ta`, `trans` are "N", "T" or "C" for a
matrix, its transpose, its adjoint.
"""

from typing import Any

from func.backends import ir
from func.backends.llvm.linalg.matrix_copies import Matrix
from func.backends.llvm.linalg.routines import call, constant, leading, routine, triangle


def emit_gemm(
    builder: ir.IRBuilder,
    m: int | ir.Value,
    n: int | ir.Value,
    k: int,
    a: Matrix,
    ta: str,
    b: Matrix,
    tb: str,
    c: Matrix,
    *,
    alpha: complex = 1,
    beta: complex = 0,
) -> None:
    """C = α op(A) op(B) + β C with op(A) of shape (m, k), op(B) of (k, n). With β = 0, C may be uninitialised. m and n
    may be addresses of nonzero numbers for the running code; the strides must be long enough.
    """
    if m == 0 or n == 0:
        return
    scales = [constant(builder, value, c.dtype) for value in (alpha, beta)]
    left = (a.at, leading(a.ld, k if ta == "N" else m))
    right = (b.at, leading(b.ld, n if tb == "N" else k))
    name = routine(c.dtype, "gemm")
    call(builder, name, tb, ta, n, m, k, scales[0], *right, *left, scales[1], c.at, leading(c.ld, n))


def emit_trsm(
    builder: ir.IRBuilder,
    m: int,
    n: int,
    a: Matrix,
    b: Matrix,
    *,
    left: bool = True,
    lower: bool = True,
    trans: str = "N",
    unit: bool = False,
    alpha: complex = 1,
) -> None:
    """Overwrite B, of shape (m, n), with the solution X of op(A) X = α B, or of X op(A) = α B with `left` off.

    It reads only the triangle of A, with `unit` without its diagonal. A zero on the diagonal divides by zero.
    """
    if m == 0 or n == 0:
        return
    order = m if left else n
    flags = ("R" if left else "L", triangle(lower), trans, "U" if unit else "N")
    scale = constant(builder, alpha, a.dtype)
    call(builder, routine(a.dtype, "trsm"), *flags, n, m, scale, a.at, leading(a.ld, order), b.at, leading(b.ld, n))


def emit_trsv(
    builder: ir.IRBuilder, n: int, a: Matrix, x: Matrix, *, lower: bool = True, trans: str = "N", unit: bool = False
) -> None:
    """Overwrite the column x with the solution of op(A) x = b; op is not the adjoint of a complex matrix."""
    if n == 0:
        return
    flags: tuple[Any, ...] = (triangle(lower), "T" if trans == "N" else "N", "U" if unit else "N")
    call(builder, routine(a.dtype, "trsv"), *flags, n, a.at, leading(a.ld, n), x.at, x.ld)
