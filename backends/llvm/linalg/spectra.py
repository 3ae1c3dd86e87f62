"""LAPACK in native code: eigenvalues of Hermitian matrices, singular values, QR.

The conventions are those of `lapack`. Workspace is what LAPACK documents as the least, and room for blocks on top: a
number that no query has to tell, so that code and memory plans agree whichever LAPACK a process has loaded.

Source: E. Anderson et al., LAPACK Users' Guide, third edition (1999), and the routines' own documentation (3.12).
"""

from typing import Any

import numpy as np

from func.backends.llvm import ir
from func.backends.llvm.linalg.lapack import FINE, WIDTH, areas, run, scratch_size
from func.backends.llvm.linalg.matrices import emit_transpose, emit_triangle
from func.backends.llvm.linalg.routines import routine


def _sizes(dtype: Any) -> tuple[int, int]:
    """Bytes of a number and of its real part."""
    dtype = np.dtype(dtype)
    return dtype.itemsize, dtype.itemsize // (2 if dtype.kind == "c" else 1)


def _eigh_work(dtype: Any, n: int, vectors: bool) -> tuple[int, int, int]:
    """The lengths of work, rwork (0 for real matrices) and iwork of syevd and heevd."""
    integers = 3 + 5 * n if vectors else 1
    if np.dtype(dtype).kind == "c":
        least = 2 * n + n * n if vectors else n + 1
        return max(least, n * (WIDTH + 1)), 1 + 5 * n + 2 * n * n if vectors else n, integers
    least = 1 + 6 * n + 2 * n * n if vectors else 2 * n + 1
    return max(least, n * (WIDTH + 2)), 0, integers


def _eigh_areas(dtype: Any, n: int, vectors: bool) -> list[int]:
    size, real = _sizes(dtype)
    work, rwork, iwork = _eigh_work(dtype, n, vectors)
    return [n * n * size, work * size, rwork * real, iwork * 4]


def eigh_scratch(dtype: Any, n: int, *, vectors: bool = True) -> int:
    """The bytes that `emit_eigh` needs."""
    return scratch_size(_eigh_areas(dtype, n, vectors))


def emit_eigh(
    builder: ir.IRBuilder,
    dtype: Any,
    n: int,
    a: ir.Value,
    lda: int,
    w: ir.Value,
    v: ir.Value | None,
    ldv: int,
    scratch: ir.Value,
    *,
    lower: bool = True,
) -> ir.Value:
    """Write the eigenvalues, ascending, and the eigenvectors as columns; only one triangle of A is read.

    Without `v`, the eigenvalues only.
    """
    if n == 0:
        return FINE
    vectors = v is not None
    matrix, *works = areas(builder, scratch, _eigh_areas(dtype, n, vectors))
    lengths = _eigh_work(dtype, n, vectors)
    emit_transpose(builder, dtype, n, n, a, lda, matrix, n)
    spaces = [value for place, length in zip(works, lengths, strict=True) if length for value in (place, length)]
    name = routine(dtype, "syevd", "heevd")
    status = run(builder, name, "V" if vectors else "N", "L" if lower else "U", n, matrix, n, w, *spaces)
    if v is not None:
        emit_transpose(builder, dtype, n, n, matrix, n, v, ldv)
    return status


def _svd_work(dtype: Any, m: int, n: int, job: str) -> tuple[int, int]:
    """The lengths of work and rwork (0 for real matrices) of gesdd."""
    short, long = sorted((m, n))
    blocks = WIDTH * (m + n) + short * short
    if np.dtype(dtype).kind == "c":
        least = {"N": 2 * short + long, "S": short * (short + 3), "A": short * (short + 2) + long}[job]
        square = 5 * short * (short + 1)
        real = 7 * short if job == "N" else max(square, 2 * short * (long + short) + short)
        return least + blocks, real
    least = {
        "N": 3 * short + max(long, 7 * short),
        "S": short * (4 * short + 7),
        "A": short * (4 * short + 6) + long,
    }[job]
    return least + blocks, 0


def _svd_job(vectors: bool, full: bool) -> str:
    return ("A" if full else "S") if vectors else "N"


def _svd_areas(dtype: Any, m: int, n: int, job: str) -> list[int]:
    size, real = _sizes(dtype)
    work, rwork = _svd_work(dtype, m, n, job)
    short = min(m, n)
    columns, rows = {"N": (0, 0), "S": (short, short), "A": (m, n)}[job]
    return [m * n * size, m * columns * size, rows * n * size, work * size, rwork * real, 8 * short * 4]


def svd_scratch(dtype: Any, m: int, n: int, *, vectors: bool = True, full: bool = False) -> int:
    """The bytes that `emit_svd` needs."""
    return scratch_size(_svd_areas(dtype, m, n, _svd_job(vectors, full)))


def emit_svd(
    builder: ir.IRBuilder,
    dtype: Any,
    m: int,
    n: int,
    a: ir.Value,
    lda: int,
    s: ir.Value,
    u: ir.Value | None,
    ldu: int,
    vh: ir.Value | None,
    ldvh: int,
    scratch: ir.Value,
    *,
    full: bool = False,
) -> ir.Value:
    """Write the singular values, descending, U of shape (m, k) and Vᴴ of shape (k, n) for k = min(m, n); (m, m) and
    (n, n) if `full`. Without `u` and `vh`, the singular values only.

    Sizes of 0 are the caller's: there are no singular values, and full factors are identities.
    """
    if m == 0 or n == 0:
        return FINE
    job = _svd_job(u is not None, full)
    matrix, left, right, work, rwork, iwork = areas(builder, scratch, _svd_areas(dtype, m, n, job))
    columns, rows = {"N": (1, 1), "S": (min(m, n),) * 2, "A": (m, n)}[job]
    emit_transpose(builder, dtype, m, n, a, lda, matrix, m)
    length, real = _svd_work(dtype, m, n, job)
    spaces = (work, length, rwork, iwork) if real else (work, length, iwork)
    places = (left, m, right, rows)
    status = run(builder, routine(dtype, "gesdd"), job, m, n, matrix, m, s, *places, *spaces)
    if u is not None and vh is not None:
        emit_transpose(builder, dtype, columns, m, left, m, u, ldu)
        emit_transpose(builder, dtype, n, rows, right, rows, vh, ldvh)
    return status


def emit_qr_raw(
    builder: ir.IRBuilder, dtype: Any, m: int, n: int, a: ir.Value, lda: int, h: ir.Value, tau: ir.Value, work: ir.Value
) -> ir.Value:
    """Write the reflectors and R as NumPy's mode "raw" does: `h` of shape (n, m), `tau` of min(m, n) numbers.

    `work` is scratch memory for 64 · max(1, n) numbers.
    """
    if m == 0 or n == 0:
        return FINE
    emit_transpose(builder, dtype, m, n, a, lda, h, m)
    return run(builder, routine(dtype, "geqrf"), m, n, h, m, tau, work, WIDTH * n)


def _qr_areas(dtype: Any, m: int, n: int, columns: int) -> list[int]:
    size, _ = _sizes(dtype)
    widest = max(n, columns)
    return [m * widest * size, min(m, n) * size, WIDTH * max(1, widest) * size]


def qr_scratch(dtype: Any, m: int, n: int, *, complete: bool = False) -> int:
    """The bytes that `emit_qr` needs."""
    return scratch_size(_qr_areas(dtype, m, n, m if complete else min(m, n)))


def emit_qr(
    builder: ir.IRBuilder,
    dtype: Any,
    m: int,
    n: int,
    a: ir.Value,
    lda: int,
    q: ir.Value | None,
    ldq: int,
    r: ir.Value,
    ldr: int,
    scratch: ir.Value,
    *,
    complete: bool = False,
) -> ir.Value:
    """Write Q of shape (m, k) and R of shape (k, n) for k = min(m, n), or k = m if `complete`; without `q`, R only.

    Sizes of 0 are the caller's.
    """
    if m == 0 or n == 0:
        return FINE
    columns = m if complete else min(m, n)
    matrix, tau, work = areas(builder, scratch, _qr_areas(dtype, m, n, columns))
    status = emit_qr_raw(builder, dtype, m, n, a, lda, matrix, tau, work)
    emit_triangle(builder, dtype, columns, n, matrix, m, r, ldr, lower=False, transposed=True)
    if q is None:
        return status
    name = routine(dtype, "orgqr", "ungqr")
    run(builder, name, m, columns, min(m, n), matrix, m, tau, work, WIDTH * columns)
    emit_transpose(builder, dtype, columns, m, matrix, m, q, ldq)
    return status
