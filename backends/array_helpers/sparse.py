"""Sparse linear algebra that generated source calls by name: products and solves of matrices given by their entries.

A matrix is its entries, with their rows and columns; entries at the same place add up.
"""

from __future__ import annotations

from typing import Any

import numpy

from func.backends.array_helpers.arrays import on_host, scatter_add
from func.backends.array_helpers.linalg import float_dtype


def sparse_product(xp: Any, data: Any, rows: Any, cols: Any, x: Any, *, length: int) -> Any:
    """A x for entries `data` of A at (rows, cols), which has this many rows; x is (n, k)."""
    dtype = numpy.result_type(data.dtype, x.dtype)
    if xp is numpy and data.size:  # SciPy's product reads and writes the memory that they lead to
        for name, places, bound in (("row", rows, length), ("column", cols, x.shape[0])):
            if places.min() < 0 or places.max() >= bound:
                raise IndexError(f"an entry of a sparse matrix is in a {name} out of bounds for {bound}")
    out = xp.zeros((length, x.shape[1]), dtype)
    if xp is not numpy or dtype.char not in "fdFD" or rows.dtype != cols.dtype or rows.dtype.char not in "ilq":
        scatter_add(xp, out, (rows,), data[:, None] * x[cols])
        return out
    from scipy.sparse import _sparsetools

    if data.dtype != dtype:
        data = data.astype(dtype)
    if x.dtype != dtype or not x.flags.c_contiguous:
        x = numpy.ascontiguousarray(x, dtype)
    if x.shape[1] == 1:
        _sparsetools.coo_matvec(len(data), rows, cols, data, x.ravel(), out.ravel())
    elif hasattr(_sparsetools, "coo_matmat_dense"):
        _sparsetools.coo_matmat_dense(len(data), x.shape[1], rows, cols, data, x.ravel(), out)
    else:
        for k in range(x.shape[1]):
            out[:, k] = sparse_product(xp, data, rows, cols, x[:, k : k + 1], length=length)[:, 0]
    return out


def is_factoring() -> bool:
    """Whether `factorization` calls SciPy's `splu`, in this thread."""
    state = vars(factorization).get("state")
    return state is not None and getattr(state, "running", False)


def factorization(data: Any, rows: Any, cols: Any, n: int, options: tuple[tuple[str, Any], ...]) -> Any:
    """SciPy's LU factorization; it raises RuntimeError for a singular matrix.

    A solve and its derivatives have the same matrix. So each thread keeps the last ones, for as long as the arrays of
    their matrices live, and finds them by the numbers in these.
    """
    import hashlib
    import threading
    import weakref

    from scipy.sparse import coo_array
    from scipy.sparse.linalg import splu

    state = vars(factorization).setdefault("state", threading.local())
    known = vars(state).setdefault("known", {})
    digest = hashlib.blake2b(repr((n, data.dtype.char, options)).encode())
    for array in (data, rows, cols):
        digest.update(numpy.ascontiguousarray(array).tobytes())
    key = digest.digest()
    if key in known:
        known[key] = known.pop(key)
        return known[key]
    state.running = True
    try:
        factor = splu(coo_array((data, (rows, cols)), shape=(n, n)).tocsc(), **_as_arguments(options))
    finally:
        state.running = False
    known[key] = factor
    weakref.finalize(data if data.base is None else data.base, known.pop, key, None).atexit = False
    while len(known) > 4:
        known.pop(next(iter(known)), None)
    return factor


def _as_arguments(options: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    """The arguments of `splu`; the nested ones are those of SuperLU."""
    return {name: dict(value) if type(value) is tuple else value for name, value in options}


def sparse_solve(
    xp: Any, data: Any, rows: Any, cols: Any, b: Any, *, adjoint: bool, strict: bool, options: tuple[Any, ...]
) -> Any:
    """A⁻¹ b or A⁻ᴴ b for entries `data` (…, entries) and right-hand sides (…, n, k).

    A singular matrix raises LinAlgError where `strict` is on, and gives NaN elsewhere, with SciPy's warning.
    """
    dtype = numpy.result_type(float_dtype(data.dtype), float_dtype(b.dtype))
    if xp is not numpy:
        path = "scipy.sparse.linalg.splu"
        return on_host(xp, path, sparse_solve, data, rows, cols, b, adjoint=adjoint, strict=strict, options=options)
    out = numpy.empty(b.shape, dtype)
    for place in numpy.ndindex(*b.shape[:-2]):
        out[place] = _solve_one(data[place], rows, cols, b[place], dtype, adjoint, strict, options)
    return out


def _solve_one(
    data: Any, rows: Any, cols: Any, b: Any, dtype: Any, adjoint: bool, strict: bool, options: tuple[Any, ...]
) -> Any:
    n = b.shape[0]
    if b.size == 0:
        return numpy.zeros(b.shape, dtype)
    kind = numpy.result_type(float_dtype(data.dtype), dtype if data.dtype.kind == "c" else _real(dtype))
    own = data if data.dtype == kind else data.astype(kind)
    try:
        factor = factorization(own, rows, cols, n, options)
    except RuntimeError as error:
        if strict or "singular" not in str(error):  # SuperLU gives up on some matrices for other reasons
            raise numpy.linalg.LinAlgError(str(error)) from None
        import warnings

        from scipy.sparse.linalg import MatrixRankWarning

        warnings.warn("Matrix is exactly singular", MatrixRankWarning, stacklevel=2)
        return numpy.full(b.shape, numpy.nan, dtype)
    trans = "H" if adjoint else "N"
    if dtype.kind == "c" and kind.kind != "c":
        real, imag = [factor.solve(numpy.ascontiguousarray(part, kind), trans) for part in (b.real, b.imag)]
        return real + 1j * imag
    return factor.solve(numpy.ascontiguousarray(b, dtype), trans)


def _real(dtype: Any) -> Any:
    return numpy.empty(0, dtype).real.dtype
