"""Routines of libraries on whole buffers: the LAPACK emitter of a `LibraryCall`, run for every matrix of a batch.

An item's `params` has under "batch" the lengths of the leading axes of all its references; the strides after them are
those of one operand. Matrices have their rows in memory (a stride of one along the last axis), or where a parameter
says `turned` their columns. The last of the outs is scratch memory of bytes for all routines but those in place.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, NamedTuple, TypeAlias

from func.backends.llvm import ir
from func.backends.llvm.linalg import determinants, lapack, least_squares, spectra, structured_solves
from func.backends.llvm.linalg.blas import emit_trsm, emit_trsv
from func.backends.llvm.linalg.lapack import FINE
from func.backends.llvm.linalg.matrices import (
    BYTE,
    INT,
    element,
    emit_clear,
    emit_copy,
    emit_fill,
    emit_transpose,
    loop,
    number,
)
from func.backends.loops.kernels import DType, LibraryCall, StridedRef


class Place(NamedTuple):
    """One array at a place of the batch: its address, and the elements from one row to the next."""

    at: ir.Value
    ld: int
    dtype: DType


class Call(NamedTuple):
    """A routine at a place of the batch."""

    builder: ir.IRBuilder
    outs: list[Place]
    args: list[Place]

    @property
    def dtype(self) -> DType:
        """The dtype that is computed in."""
        return self.args[0].dtype if self.args else self.outs[0].dtype

    @property
    def scratch(self) -> ir.Value:
        """The address of scratch memory."""
        return self.outs[-1].at


Emit: TypeAlias = Callable[..., ir.Value | None]
ROUTINES: dict[str, Emit] = {}
SCRATCH: dict[str, Callable[..., int]] = {}


def routine(name: str, scratch: Callable[..., int] | None = None) -> Callable[[Emit], Emit]:
    """Register an emitter, which returns LAPACK's status or None, and how many bytes of scratch it needs."""

    def register(emit: Emit) -> Emit:
        ROUTINES[name] = emit
        if scratch is not None:
            SCRATCH[name] = scratch
        return emit

    return register


def scratch_of(name: str, dtype: DType, **params: Any) -> int | None:
    """The bytes of scratch memory that a routine needs; None for those which take none.

    >>> scratch_of("potrf", "float64", n=3, lower=True) is None, scratch_of("solve", "float64", n=8, k=1)
    (True, 640)
    """
    size = SCRATCH.get(name)
    return None if size is None else size(dtype, **params)


def emit_library(printer: Any, item: LibraryCall) -> None:
    """The calls of a routine; where one fails, the program's error bit is set."""
    params = dict(item.params)
    batch = params.pop("batch")
    if 0 in batch:
        return
    builder = printer.builder
    with ExitStack() as loops:
        at = [loops.enter_context(loop(builder, length)) for length in batch]
        outs, args = ([_place(printer, ref, at) for ref in refs] for refs in (item.outs, item.args))
        status = ROUTINES[item.routine](Call(builder, outs, args), **params)
        if status is not None:
            bad = printer.memory.bad
            failed = builder.zext(builder.icmp_signed("!=", status, FINE), INT)
            bits = builder.shl(failed, ir.Constant(INT, 1))
            builder.store(builder.or_(builder.load(bad, typ=INT), bits), bad)


def _place(printer: Any, ref: StridedRef, at: list[ir.Value]) -> Place:
    builder, dtype = printer.builder, ref.buffer.dtype
    total: Any = number(ref.offset)
    for stride, i in zip(ref.strides, at, strict=False):
        if stride:
            total = builder.add(total, builder.mul(i, number(stride)))
    kind = BYTE if dtype.itemsize == 1 else element(dtype)
    start = builder.gep(printer.memory.pointer(ref.buffer), [total], source_etype=kind)
    own = ref.strides[len(at) :]
    return Place(start, own[0] if len(own) > 1 else 1, dtype)


@routine("potrf")
def _potrf(call: Call, *, n: int, lower: bool) -> ir.Value:
    """The Cholesky factor in place of the matrix."""
    (a,) = call.outs
    status = lapack.emit_potrf(call.builder, a.dtype, n, a.at, a.ld, lower=lower)
    emit_clear(call.builder, a.dtype, n, a.at, a.ld, lower=not lower)
    return status


@routine("potri")
def _potri(call: Call, *, n: int) -> ir.Value:
    """The inverse in place of the lower Cholesky factor."""
    (a,) = call.outs
    return lapack.emit_potri(call.builder, a.dtype, n, a.at, a.ld)


@routine("trtrs")
def _trtrs(call: Call, *, n: int, k: int, lower: bool, trans: str, unit: bool, left: bool) -> ir.Value:
    """The solution in place of the right-hand side: of op(A) X = B, or of X op(A) = B."""
    b, (x,), (a,) = call.builder, call.outs, call.args
    flags: dict[str, Any] = {"lower": lower, "trans": trans, "unit": unit}
    status = FINE if unit else lapack.emit_first_zero(b, a.dtype, n, a.at, a.ld)
    if k == 1 and not (trans == "C" and a.dtype.kind == "c") and left:
        emit_trsv(b, a.dtype, n, a.at, a.ld, x.at, x.ld, **flags)
    elif left:
        emit_trsm(b, a.dtype, n, k, a.at, a.ld, x.at, x.ld, **flags)
    else:
        emit_trsm(b, a.dtype, k, n, a.at, a.ld, x.at, x.ld, left=False, **flags)
    return status


@routine("solve", lapack.solve_scratch)
def _solve(call: Call, *, n: int, k: int) -> ir.Value:
    x, a, b = call.outs[0], *call.args
    return lapack.emit_solve(call.builder, a.dtype, n, k, a.at, a.ld, b.at, b.ld, x.at, x.ld, call.scratch)


@routine("inverse", lambda dtype, *, n, strict: lapack.inverse_scratch(dtype, n))
def _inverse(call: Call, *, n: int, strict: bool) -> ir.Value | None:
    """The inverse; NaN for a singular matrix where that is no error."""
    b, out, (a,) = call.builder, call.outs[0], call.args
    status = lapack.emit_inverse(b, a.dtype, n, a.at, a.ld, out.at, out.ld, call.scratch)
    if strict:
        return status
    with b.if_then(b.icmp_signed("!=", status, FINE), likely=False):
        emit_fill(b, a.dtype, n, n, out.at, out.ld, math.nan)
    return None


@routine("factors")
def _factors(call: Call, *, n: int, turned: bool) -> None:
    """LU factors with their columns in memory, and the exchanges of rows from 0; singular matrices are as good."""
    b, (lu, pivots), (a,) = call.builder, call.outs, call.args
    (emit_copy if turned else emit_transpose)(b, a.dtype, n, n, a.at, a.ld, lu.at, lu.ld)
    determinants.emit_getrf(b, a.dtype, n, lu.at, lu.ld, pivots.at)


@routine("lu", lambda dtype, *, m, n: lapack.lu_scratch(dtype, m, n))
def _lu(call: Call, *, m: int, n: int) -> ir.Value:
    """LU factors, exchanges and the order of rows."""
    b, (lu, pivots, order, _), (a,) = call.builder, call.outs, call.args
    status = lapack.emit_lu(b, a.dtype, m, n, a.at, a.ld, lu.at, lu.ld, pivots.at, call.scratch)
    determinants.emit_order(b, m, min(m, n), pivots.at, order.at)
    return status


@routine("order")
def _order(call: Call, *, n: int) -> None:
    """The order of rows that exchanges make."""
    determinants.emit_order(call.builder, n, n, call.args[0].at, call.outs[0].at)


@routine("getrs")
def _getrs(call: Call, *, n: int, k: int, trans: str, turned: bool) -> ir.Value:
    """The solution in place of the right-hand side, by LU factors."""
    b, (x,), (lu, pivots) = call.builder, call.outs, call.args
    lapack.emit_getrs(b, lu.dtype, n, k, lu.at, lu.ld, pivots.at, x.at, x.ld, trans=trans, turned=turned)
    return lapack.emit_first_zero(b, lu.dtype, n, lu.at, lu.ld)


@routine("getri", lambda dtype, *, n, turned, safe: determinants.factored_inverse_scratch(dtype, n))
def _getri(call: Call, *, n: int, turned: bool, safe: bool) -> ir.Value | None:
    """The inverse by LU factors, its columns in memory; with `safe` the identity for a singular matrix."""
    b, out, (lu, pivots) = call.builder, call.outs[0], call.args
    (emit_copy if turned else emit_transpose)(b, lu.dtype, n, n, lu.at, lu.ld, out.at, out.ld)
    status = determinants.emit_factored_inverse(b, lu.dtype, n, out.at, out.ld, pivots.at, call.scratch)
    if not safe:
        return status
    with b.if_then(b.icmp_signed("!=", status, FINE), likely=False):
        emit_fill(b, lu.dtype, n, n, out.at, out.ld, 0)
        emit_fill(b, lu.dtype, n, 1, out.at, out.ld + 1, 1)
    return None


@routine("det", lambda dtype, *, n: determinants.det_scratch(dtype, n))
def _det(call: Call, *, n: int) -> None:
    out, (a,) = call.outs[0], call.args
    determinants.emit_det(call.builder, a.dtype, n, a.at, a.ld, out.at, call.scratch)


@routine("slogdet", lambda dtype, *, n: determinants.det_scratch(dtype, n))
def _slogdet(call: Call, *, n: int) -> None:
    sign, size, _ = call.outs
    (a,) = call.args
    determinants.emit_slogdet(call.builder, a.dtype, n, a.at, a.ld, sign.at, size.at, call.scratch)


@routine("factored_slogdet")
def _factored_slogdet(call: Call, *, n: int) -> None:
    """The determinant's sign and the logarithm of its modulus by LU factors."""
    (sign, size), (lu, pivots) = call.outs, call.args
    determinants.emit_factored_slogdet(call.builder, lu.dtype, n, lu.at, lu.ld, pivots.at, sign.at, size.at)


@routine("eigh", lambda dtype, *, n, lower, vectors: spectra.eigh_scratch(dtype, n, vectors=vectors))
def _eigh(call: Call, *, n: int, lower: bool, vectors: bool) -> ir.Value:
    w, (a,) = call.outs[0], call.args
    place, ldv = (call.outs[1].at, call.outs[1].ld) if vectors else (None, 1)
    return spectra.emit_eigh(call.builder, a.dtype, n, a.at, a.ld, w.at, place, ldv, call.scratch, lower=lower)


def _svd_scratch(dtype: DType, *, m: int, n: int, vectors: bool, full: bool) -> int:
    return spectra.svd_scratch(dtype, m, n, vectors=vectors, full=full)


@routine("svd", _svd_scratch)
def _svd(call: Call, *, m: int, n: int, vectors: bool, full: bool) -> ir.Value:
    b, s, (a,) = call.builder, call.outs[0], call.args
    (u, ldu), (vh, ldvh) = [(one.at, one.ld) for one in call.outs[1:3]] if vectors else [(None, 1)] * 2
    return spectra.emit_svd(b, a.dtype, m, n, a.at, a.ld, s.at, u, ldu, vh, ldvh, call.scratch, full=full)


@routine("qr", lambda dtype, *, m, n, complete: spectra.qr_scratch(dtype, m, n, complete=complete))
def _qr(call: Call, *, m: int, n: int, complete: bool) -> ir.Value:
    q, r, _ = call.outs
    (a,) = call.args
    return spectra.emit_qr(
        call.builder, a.dtype, m, n, a.at, a.ld, q.at, q.ld, r.at, r.ld, call.scratch, complete=complete
    )


@routine("qr_raw", lambda dtype, *, m, n: spectra.qr_scratch(dtype, m, n))
def _qr_raw(call: Call, *, m: int, n: int) -> ir.Value:
    h, tau, _ = call.outs
    (a,) = call.args
    return spectra.emit_qr_raw(call.builder, a.dtype, m, n, a.at, a.ld, h.at, tau.at, call.scratch)


@routine("lstsq", lambda dtype, *, m, n, k, limit: least_squares.lstsq_scratch(dtype, m, n, k))
def _lstsq(call: Call, *, m: int, n: int, k: int, limit: float) -> ir.Value:
    x, residuals, s, _ = call.outs
    a, b = call.args
    return least_squares.emit_lstsq(
        call.builder,
        a.dtype,
        m,
        n,
        k,
        a.at,
        a.ld,
        b.at,
        b.ld,
        x.at,
        x.ld,
        residuals.at,
        s.at,
        call.scratch,
        limit=limit,
    )


@routine("solve_known", lambda dtype, *, n, k, kind, lower: structured_solves.solve_known_scratch(dtype, n, k))
def _solve_known(call: Call, *, n: int, k: int, kind: str, lower: bool) -> ir.Value:
    x, a, b = call.outs[0], *call.args
    places = (a.at, a.ld, b.at, b.ld, x.at, x.ld)
    return structured_solves.emit_solve_known(
        call.builder, a.dtype, n, k, *places, call.scratch, kind=kind, lower=lower
    )
