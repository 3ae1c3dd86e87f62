"""LAPACK in native code: eigenvalues of Hermitian matrices, singular values, QR.

The conventions are those of `lapack`. Workspace is LAPACK's documented minimum and room for blocks, without a query, so
that code and memory plans agree for every LAPACK.

Source: E. Anderson et al., LAPACK Users' Guide, third edition (1999), and the routines' own documentation (3.12).
"""

from typing import Any

import numpy as np

from func.backends import ir
from func.backends.llvm.linalg.lapack import FINE, WIDTH, areas, run, scratch_size, sizes_of
from func.backends.llvm.linalg.matrix_copies import Matrix, emit_transpose, emit_upper
from func.backends.llvm.linalg.routines import routine


def _eigh_work(dtype: Any, n: int, vectors: bool) -> tuple[int, int, int]:
    """The lengths of work, rwork (0 for real matrices) and iwork of syevd and heevd."""
    integers = 3 + 5 * n if vectors else 1
    if np.dtype(dtype).kind == "c":
        least = 2 * n + n * n if vectors else n + 1
        return max(least, n * (WIDTH + 1)), 1 + 5 * n + 2 * n * n if vectors else n, integers
    least = 1 + 6 * n + 2 * n * n if vectors else 2 * n + 1
    return max(least, n * (WIDTH + 2)), 0, integers


def _eigh_areas(dtype: Any, n: int, vectors: bool) -> list[int]:
    size, real = sizes_of(dtype)
    work, rwork, iwork = _eigh_work(dtype, n, vectors)
    return [n * n * size, work * size, rwork * real, iwork * 4]


def eigh_scratch(dtype: Any, n: int, *, vectors: bool = True) -> int:
    """The bytes that `emit_eigh` needs."""
    return scratch_size(_eigh_areas(dtype, n, vectors))


def emit_eigh(
    builder: ir.IRBuilder, n: int, a: Matrix, w: ir.Value, v: Matrix | None, scratch: ir.Value, *, lower: bool = True
) -> ir.Value:
    """Write the eigenvalues, ascending, and the eigenvectors as columns, from one triangle of A.

    Without `v`, the eigenvalues only.
    """
    if n == 0:
        return FINE
    vectors = v is not None
    start, *works = areas(builder, scratch, _eigh_areas(a.dtype, n, vectors))
    matrix = Matrix(start, n, a.dtype)
    lengths = _eigh_work(a.dtype, n, vectors)
    emit_transpose(builder, n, n, a, matrix)
    spaces = [value for place, length in zip(works, lengths, strict=True) if length for value in (place, length)]
    name = routine(a.dtype, "syevd", "heevd")
    status = run(builder, name, "V" if vectors else "N", "L" if lower else "U", n, start, n, w, *spaces)
    if v is not None:
        emit_transpose(builder, n, n, matrix, v)
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
    size, real = sizes_of(dtype)
    work, rwork = _svd_work(dtype, m, n, job)
    short = min(m, n)
    columns, rows = {"N": (0, 0), "S": (short, short), "A": (m, n)}[job]
    return [m * n * size, m * columns * size, rows * n * size, work * size, rwork * real, 8 * short * 4]


def svd_scratch(dtype: Any, m: int, n: int, *, vectors: bool = True, full: bool = False) -> int:
    """The bytes that `emit_svd` needs."""
    return scratch_size(_svd_areas(dtype, m, n, _svd_job(vectors, full)))


def emit_svd(
    builder: ir.IRBuilder,
    m: int,
    n: int,
    a: Matrix,
    s: ir.Value,
    u: Matrix | None,
    vh: Matrix | None,
    scratch: ir.Value,
    *,
    full: bool = False,
) -> ir.Value:
    """Write the singular values, descending, U of shape (m, k) and Vᴴ of shape (k, n) for k = min(m, n); (m, m) and
    (n, n) if `full`. Without `u` and `vh`, the singular values only.

    The caller handles sizes of 0: there are no singular values, and full factors are identities.
    """
    if m == 0 or n == 0:
        return FINE
    job = _svd_job(u is not None, full)
    matrix, left, right, work, rwork, iwork = areas(builder, scratch, _svd_areas(a.dtype, m, n, job))
    columns, rows = {"N": (1, 1), "S": (min(m, n),) * 2, "A": (m, n)}[job]
    emit_transpose(builder, m, n, a, Matrix(matrix, m, a.dtype))
    length, real = _svd_work(a.dtype, m, n, job)
    spaces = (work, length, rwork, iwork) if real else (work, length, iwork)
    places = (left, m, right, rows)
    status = run(builder, routine(a.dtype, "gesdd"), job, m, n, matrix, m, s, *places, *spaces)
    if u is not None and vh is not None:
        emit_transpose(builder, columns, m, Matrix(left, m, a.dtype), u)
        emit_transpose(builder, n, rows, Matrix(right, rows, a.dtype), vh)
    return status


def emit_qr_raw(
    builder: ir.IRBuilder, m: int, n: int, a: Matrix, h: ir.Value, tau: ir.Value, work: ir.Value
) -> ir.Value:
    """Write the reflectors and R as in NumPy's mode "raw": `h` of shape (n, m), `tau` of min(m, n) numbers.

    `work` is scratch memory for 64 · max(1, n) numbers.
    """
    if m == 0 or n == 0:
        return FINE
    emit_transpose(builder, m, n, a, Matrix(h, m, a.dtype))
    return run(builder, routine(a.dtype, "geqrf"), m, n, h, m, tau, work, WIDTH * n)


def _qr_areas(dtype: Any, m: int, n: int, columns: int) -> list[int]:
    size, _ = sizes_of(dtype)
    widest = max(n, columns)
    return [m * widest * size, min(m, n) * size, WIDTH * max(1, widest) * size]


def qr_scratch(dtype: Any, m: int, n: int, *, complete: bool = False) -> int:
    """The bytes that `emit_qr` needs."""
    return scratch_size(_qr_areas(dtype, m, n, m if complete else min(m, n)))


def emit_qr(
    builder: ir.IRBuilder,
    m: int,
    n: int,
    a: Matrix,
    q: Matrix | None,
    r: Matrix,
    scratch: ir.Value,
    *,
    complete: bool = False,
) -> ir.Value:
    """Write Q of shape (m, k) and R of shape (k, n) for k = min(m, n), or k = m if `complete`; without `q`, R only.

    The caller handles sizes of 0.
    """
    if m == 0 or n == 0:
        return FINE
    columns = m if complete else min(m, n)
    start, tau, work = areas(builder, scratch, _qr_areas(a.dtype, m, n, columns))
    matrix = Matrix(start, m, a.dtype)
    status = emit_qr_raw(builder, m, n, a, start, tau, work)
    emit_upper(builder, columns, n, matrix, r)
    if q is None:
        return status
    name = routine(a.dtype, "orgqr", "ungqr")
    run(builder, name, m, columns, min(m, n), start, m, tau, work, WIDTH * columns)
    emit_transpose(builder, columns, m, matrix, q)
    return status
