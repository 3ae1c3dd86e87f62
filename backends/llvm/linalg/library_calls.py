"""Routines of libraries on whole buffers: the LAPACK emitter of a `LibraryCall`, run for every matrix of a batch.

`params["batch"]` of an item holds the lengths of the leading axes of all its references; the strides after them are
those of one operand. Matrices have their rows in memory (a stride of one along the last axis), or with the parameter
`turned` their columns. The last output is scratch memory in bytes for all routines but those in place.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, NamedTuple, TypeAlias

from func.backends import ir
from func.backends.llvm.linalg import lapack, least_squares, lu, matrix_copies, sorts, spectra, structured_solves
from func.backends.llvm.linalg.blas import emit_trsm, emit_trsv
from func.backends.llvm.linalg.lapack import FINE
from func.backends.llvm.linalg.matrix_copies import INT, Matrix, loop, number
from func.backends.loops.kernels import DType, LibraryCall, StridedRef


class RoutineCall(NamedTuple):
    """The operands of a routine at one index of the batch."""

    builder: ir.IRBuilder
    outs: list[Matrix]
    args: list[Matrix]

    @property
    def scratch(self) -> ir.Value:
        """The address of scratch memory."""
        return self.outs[-1].at


Emit: TypeAlias = Callable[..., ir.Value | None]
ROUTINES: dict[str, Emit] = {}
SCRATCH: dict[str, Callable[..., int]] = {}
WITHOUT_BLAS: set[str] = set()
"""The routines during which BLAS's threads do not matter."""


def library_routine(
    name: str, scratch: Callable[..., int] | None = None, uses_blas: bool = True
) -> Callable[[Emit], Emit]:
    """Register an emitter, which returns a status or None, and the bytes of scratch it needs."""

    def register(emit: Emit) -> Emit:
        ROUTINES[name] = emit
        if scratch is not None:
            SCRATCH[name] = scratch
        if not uses_blas:
            WITHOUT_BLAS.add(name)
        return emit

    return register


def scratch_of(name: str, dtype: DType, **params: Any) -> int | None:
    """The bytes of scratch memory that a routine needs; None for a routine without scratch memory.

    >>> scratch_of("potrf", "float64", n=3, lower=True) is None, scratch_of("solve", "float64", n=8, k=1)
    (True, 640)
    """
    size = SCRATCH.get(name)
    return None if size is None else size(dtype, **params)


def emit_library(printer: Any, item: LibraryCall) -> None:
    """The calls of a routine; a failure sets the error bit of the program's status."""
    params = dict(item.params)
    batch = params.pop("batch")
    if 0 in batch:
        return
    builder = printer.builder
    with ExitStack() as loops:
        indices = [loops.enter_context(loop(builder, length)) for length in batch]
        outs, args = ([_matrix(printer, ref, indices) for ref in refs] for refs in (item.outs, item.args))
        status = ROUTINES[item.routine](RoutineCall(builder, outs, args), **params)
        if status is not None:
            flags = printer.memory.status
            failed = builder.zext(builder.icmp_signed("!=", status, FINE), INT)
            bits = builder.shl(failed, ir.Constant(INT, 1))
            builder.store(builder.or_(builder.load(flags, typ=INT), bits), flags)


def _matrix(printer: Any, ref: StridedRef, indices: list[ir.Value]) -> Matrix:
    builder, dtype = printer.builder, ref.buffer.dtype
    total: Any = number(ref.offset)
    for stride, i in zip(ref.strides, indices, strict=False):
        if stride:
            total = builder.add(total, builder.mul(i, number(stride)))
    kind = ir.ArrayType(matrix_copies.BYTE, dtype.itemsize)
    start = builder.gep(printer.memory.pointer(ref.buffer), [total], source_etype=kind)
    strides = ref.strides[len(indices) :]
    return Matrix(start, strides[0] if len(strides) > 1 else 1, dtype)


@library_routine("potrf")
def _potrf(call: RoutineCall, *, n: int, lower: bool) -> ir.Value:
    """The Cholesky factor in place of the matrix."""
    (a,) = call.outs
    status = lapack.emit_potrf(call.builder, n, a, lower=lower)
    matrix_copies.emit_clear(call.builder, n, a, lower=not lower)
    return status


@library_routine("potri")
def _potri(call: RoutineCall, *, n: int) -> ir.Value:
    """The inverse in place of the lower Cholesky factor."""
    return lapack.emit_potri(call.builder, n, call.outs[0])


@library_routine("trtrs")
def _trtrs(call: RoutineCall, *, n: int, k: int, lower: bool, trans: str, unit: bool, left: bool) -> ir.Value:
    """The solution in place of the right-hand side: of op(A) X = B, or of X op(A) = B."""
    b, (x,), (a,) = call.builder, call.outs, call.args
    flags: dict[str, Any] = {"lower": lower, "trans": trans, "unit": unit}
    status = FINE if unit else lapack.emit_first_zero(b, n, a)
    if k == 1 and not (trans == "C" and a.dtype.kind == "c") and left:
        emit_trsv(b, n, a, x, **flags)
    else:
        emit_trsm(b, *((n, k) if left else (k, n)), a, x, left=left, **flags)
    return status


@library_routine("solve", lu.solve_scratch)
def _solve(call: RoutineCall, *, n: int, k: int) -> ir.Value:
    a, b = call.args
    return lu.emit_solve(call.builder, n, k, a, b, call.outs[0], call.scratch)


@library_routine("inverse", lambda dtype, *, n, strict: lu.inverse_scratch(dtype, n))
def _inverse(call: RoutineCall, *, n: int, strict: bool) -> ir.Value | None:
    """The inverse; NaN for a singular matrix if that is not an error."""
    b, out = call.builder, call.outs[0]
    status = lu.emit_inverse(b, n, call.args[0], out, call.scratch)
    if strict:
        return status
    with b.if_then(b.icmp_signed("!=", status, FINE), likely=False):
        matrix_copies.emit_fill(b, n, n, out, math.nan)
    return None


@library_routine("factors")
def _factors(call: RoutineCall, *, n: int, turned: bool) -> None:
    """LU factors with their columns in memory, and the exchanges of rows from 0; allows singular matrices."""
    factors, pivots = call.outs
    (matrix_copies.emit_copy if turned else matrix_copies.emit_transpose)(call.builder, n, n, call.args[0], factors)
    lu.emit_getrf(call.builder, n, factors, pivots.at)


@library_routine("lu", lambda dtype, *, m, n: lu.lu_scratch(dtype, m, n))
def _lu(call: RoutineCall, *, m: int, n: int) -> ir.Value:
    """LU factors, exchanges and the order of rows."""
    factors, pivots, order, _ = call.outs
    status = lu.emit_lu(call.builder, m, n, call.args[0], factors, pivots.at, call.scratch)
    lu.emit_order(call.builder, m, min(m, n), pivots.at, order.at)
    return status


@library_routine("order")
def _order(call: RoutineCall, *, n: int) -> ir.Value:
    """The order of rows after their exchanges."""
    return lu.emit_order(call.builder, n, n, call.args[0].at, call.outs[0].at)


@library_routine("getrs")
def _getrs(call: RoutineCall, *, n: int, k: int, trans: str, turned: bool) -> ir.Value:
    """The solution in place of the right-hand side, by LU factors."""
    factors, pivots = call.args
    lu.emit_getrs(call.builder, n, k, factors, pivots.at, call.outs[0], trans=trans, turned=turned)
    return lapack.emit_first_zero(call.builder, n, factors)


@library_routine("exchanges", uses_blas=False)
def _exchanges(call: RoutineCall, *, n: int, k: int, back: bool) -> ir.Value:
    """The rows of a right-hand side exchanged as in LU factors; an error if these have a zero."""
    factors, pivots = call.args
    lu.exchange_rows(call.builder, n, k, pivots.at, call.outs[0], backwards=back)
    return lapack.emit_first_zero(call.builder, n, factors)


@library_routine("getri", lambda dtype, *, n, turned, safe: lu.factored_inverse_scratch(dtype, n))
def _getri(call: RoutineCall, *, n: int, turned: bool, safe: bool) -> ir.Value | None:
    """The inverse by LU factors, its columns in memory; with `safe` the identity for a singular matrix."""
    b, out, (factors, pivots) = call.builder, call.outs[0], call.args
    (matrix_copies.emit_copy if turned else matrix_copies.emit_transpose)(b, n, n, factors, out)
    status = lu.emit_factored_inverse(b, n, out, pivots.at, call.scratch)
    if not safe:
        return status
    with b.if_then(b.icmp_signed("!=", status, FINE), likely=False):
        matrix_copies.emit_fill(b, n, n, out, 0)
        matrix_copies.emit_fill(b, n, 1, out._replace(ld=out.ld + 1), 1)
    return None


@library_routine("det", lambda dtype, *, n: lu.det_scratch(dtype, n))
def _det(call: RoutineCall, *, n: int) -> None:
    lu.emit_det(call.builder, n, call.args[0], call.outs[0].at, call.scratch)


@library_routine("slogdet", lambda dtype, *, n: lu.det_scratch(dtype, n))
def _slogdet(call: RoutineCall, *, n: int) -> None:
    sign, size, _ = call.outs
    lu.emit_slogdet(call.builder, n, call.args[0], sign.at, size.at, call.scratch)


@library_routine("factored_slogdet")
def _factored_slogdet(call: RoutineCall, *, n: int) -> None:
    """The determinant's sign and the logarithm of its modulus by LU factors."""
    (sign, size), (factors, pivots) = call.outs, call.args
    lu.emit_factored_slogdet(call.builder, n, factors, pivots.at, sign.at, size.at)


@library_routine("eigh", lambda dtype, *, n, lower, vectors: spectra.eigh_scratch(dtype, n, vectors=vectors))
def _eigh(call: RoutineCall, *, n: int, lower: bool, vectors: bool) -> ir.Value:
    v = call.outs[1] if vectors else None
    return spectra.emit_eigh(call.builder, n, call.args[0], call.outs[0].at, v, call.scratch, lower=lower)


def _svd_scratch(dtype: DType, *, m: int, n: int, vectors: bool, full: bool) -> int:
    return spectra.svd_scratch(dtype, m, n, vectors=vectors, full=full)


@library_routine("svd", _svd_scratch)
def _svd(call: RoutineCall, *, m: int, n: int, vectors: bool, full: bool) -> ir.Value:
    u, vh = call.outs[1:3] if vectors else (None, None)
    return spectra.emit_svd(call.builder, m, n, call.args[0], call.outs[0].at, u, vh, call.scratch, full=full)


@library_routine("qr", lambda dtype, *, m, n, complete: spectra.qr_scratch(dtype, m, n, complete=complete))
def _qr(call: RoutineCall, *, m: int, n: int, complete: bool) -> ir.Value:
    q, r, _ = call.outs
    return spectra.emit_qr(call.builder, m, n, call.args[0], q, r, call.scratch, complete=complete)


@library_routine("qr_raw", lambda dtype, *, m, n: spectra.qr_scratch(dtype, m, n))
def _qr_raw(call: RoutineCall, *, m: int, n: int) -> ir.Value:
    h, tau, _ = call.outs
    return spectra.emit_qr_raw(call.builder, m, n, call.args[0], h.at, tau.at, call.scratch)


@library_routine("lstsq", lambda dtype, *, m, n, k, limit: least_squares.lstsq_scratch(dtype, m, n, k))
def _lstsq(call: RoutineCall, *, m: int, n: int, k: int, limit: float) -> ir.Value:
    x, residuals, s, _ = call.outs
    a, b = call.args
    return least_squares.emit_lstsq(call.builder, m, n, k, a, b, x, residuals.at, s.at, call.scratch, limit=limit)


@library_routine("solve_known", lambda dtype, *, n, k, kind, lower: structured_solves.solve_known_scratch(dtype, n, k))
def _solve_known(call: RoutineCall, *, n: int, k: int, kind: str, lower: bool) -> ir.Value:
    a, b = call.args
    return structured_solves.emit_solve_known(
        call.builder, n, k, a, b, call.outs[0], call.scratch, kind=kind, lower=lower
    )


@library_routine("sort", uses_blas=False)
def _sort(call: RoutineCall, *, length: int, kind: str) -> ir.Value:
    """The elements in ascending order, in place."""
    return sorts.emit_sort(call.builder, length, call.outs[0], kind)


@library_routine("argsort", uses_blas=False)
def _argsort(call: RoutineCall, *, length: int, kind: str) -> ir.Value:
    """The order that sorts the elements."""
    return sorts.emit_argsort(call.builder, length, call.args[0], call.outs[0], kind)


@library_routine("inverse_order", uses_blas=False)
def _inverse_order(call: RoutineCall, *, length: int) -> ir.Value:
    """The inverse of a permutation."""
    return sorts.emit_inverse_order(call.builder, length, call.args[0], call.outs[0])
