"""Solves by factorization: SuperLU computes, and derivatives solve with the same factors, transposed in reverse mode.

The cotangent of the entries of A is -(A⁻ᴴ x̄) xᴴ at their places, without a dense matrix.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as _scipy
import scipy.sparse.linalg as _linalg

from func.backends.array_helpers.sparse import factorization, is_factoring
from func.host.scipy_hooks import holds_traced, original
from func.interpreters.core import TRACED, Array, concrete, dtype_of, known_value, shape_of
from func.interpreters.core.errors import FuncError, UnsupportedFunctionError
from func.interpreters.host.source import at_line
from func.interpreters.primitives.linalg.sparse import sparse_solve
from func.interpreters.primitives.structural.shapes import reshape
from func.scipy.kinds.versions import version_of
from func.scipy.sparse.entry_arithmetic import as_dense
from func.scipy.sparse.patterns import canonical, entries, lifted, scipy_class
from func.scipy.sparse.traced_matrices import CLASSES

TRIANGULAR = (("diag_pivot_thresh", 0.0), ("permc_spec", "NATURAL"))
"""The options that make SuperLU's solve a substitution."""


def compressed(A: Any, name: str) -> Any:
    """The matrix of an argument: sparse, square, with one entry at a place."""
    if not (_scipy.issparse(A) and A.format in ("csc", "csr")):
        warnings.warn(f"{name} requires A be CSC or CSR matrix format", _scipy.SparseEfficiencyWarning, stacklevel=3)
        A = lifted(A).tocsc() if _scipy.issparse(A) else CLASSES["csc_array"](A)
    own = canonical(lifted(A))
    if own.shape[0] != own.shape[1]:
        raise ValueError(f"matrix must be square (has shape {own.shape})")
    return own


def solved(own: Any, b: Array, *, adjoint: bool = False, strict: bool = False, options: Any = ()) -> Array:
    """A⁻¹ b or A⁻ᴴ b for b of shape (n,) or (n, k)."""
    coords, data = entries(own)
    shape = shape_of(b)
    columns = b if len(shape) == 2 else reshape(b, shape=(*shape, 1))
    out = sparse_solve(data, *coords, columns, adjoint=adjoint, strict=strict, options=options)
    return out if len(shape) == 2 else reshape(out, shape=shape)


def _matching(own: Any, b: Array) -> None:
    if shape_of(b)[:1] != (own.shape[0],):
        raise ValueError(f"matrix - rhs dimension mismatch ({own.shape} - {(shape_of(b) or ('scalar',))[0]})")


@version_of(_linalg.spsolve)
def spsolve(A: Any, b: Any, permc_spec: str | None = None, use_umfpack: bool = True) -> Any:
    """scipy.sparse.linalg.spsolve of plain and traced matrices and right-hand sides.

    SuperLU solves, even where SciPy would call UMFPACK. A sparse b gives a sparse x all of whose elements are entries.

    >>> import numpy as np, func, scipy.sparse
    >>> A = scipy.sparse.csc_array([[2.0, 0.0], [1.0, 4.0]])
    >>> func.grad(lambda b: np.sum(scipy.sparse.linalg.spsolve(A, b)))(np.ones(2))
    array([0.375, 0.25 ])
    """
    own = compressed(A, "spsolve")
    is_sparse = _scipy.issparse(b)
    side = b.toarray() if is_sparse else as_dense(b)
    _matching(own, side)
    shape: Any = shape_of(side)
    if len(shape) > 2:
        raise ValueError(f"b must have one or two dimensions, and has shape {shape}")
    x = solved(own, side, options=(("permc_spec", permc_spec or "COLAMD"),))
    if len(shape) == 1 or shape[1] == 1:
        return reshape(x, shape=(shape[0],))
    return CLASSES[scipy_class(A).__name__](x) if is_sparse else x


@version_of(_linalg.spsolve_triangular)
def spsolve_triangular(
    A: Any,
    b: Any,
    lower: bool = True,
    overwrite_A: bool = False,
    overwrite_b: bool = False,
    unit_diagonal: bool = False,
) -> Array:
    """scipy.sparse.linalg.spsolve_triangular of plain and traced matrices and right-hand sides."""
    own = compressed(A, "spsolve_triangular")
    side = as_dense(b)
    if len(shape_of(side)) not in (1, 2):
        raise ValueError(f"b must have 1 or 2 dims but its shape is {shape_of(side)}.")
    _matching(own, side)
    from func.scipy.sparse.construction import tril, triu

    triangle = lifted((tril if lower else triu)(own, format="csc"))
    if unit_diagonal:
        triangle = triangle.copy()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", _scipy.SparseEfficiencyWarning)
            triangle = lifted(triangle)
            triangle.setdiag(np.ones(1, dtype_of(own.data))[0])
    else:
        numbers = known_value(triangle.diagonal())
        if numbers is not None and np.any(np.asarray(numbers) == 0):
            raise np.linalg.LinAlgError("A is singular: zero entry on diagonal.")
    x = solved(lifted(triangle), side, strict=True, options=TRIANGULAR)
    dtype = np.promote_types(np.promote_types(own.dtype, np.float32), dtype_of(side))
    return x if dtype_of(x) == dtype else x.astype(dtype)


class TracedLU:
    """The result of `splu` while traced values exist: `solve` takes traced right-hand sides.

    Everything else of SciPy's object is that of the numbers.
    """

    def __init__(self, matrix: Any, options: Any) -> None:
        self._matrix = matrix
        self._options = options
        self.shape = matrix.shape
        try:
            numbers = np.asarray(concrete(matrix.data))
        except FuncError:
            return  # known when the compiled code runs
        if numbers.ndim == 1:
            rows, cols = entries(matrix)[0]
            factorization(numbers, rows, cols, matrix.shape[0], options)

    def __func_holds_traced__(self) -> bool:
        return holds_traced(self._matrix)

    def solve(self, rhs: Any, trans: str = "N") -> Array:
        """A⁻¹ rhs, or with `trans` "T" or "H" that of the transposed or adjoint matrix."""
        side = as_dense(rhs)
        if len(shape_of(side)) not in (1, 2) or shape_of(side)[0] != self.shape[0]:
            raise ValueError("b is of incompatible size")
        if trans not in ("N", "T", "H"):
            raise ValueError("trans must be N, T, or H")
        if trans == "T":
            return np.conjugate(
                solved(self._matrix, np.conjugate(side), adjoint=True, strict=True, options=self._options)
            )
        return solved(self._matrix, side, adjoint=trans == "H", strict=True, options=self._options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        matrix = self.__dict__["_matrix"]
        if name in ("L", "U") and holds_traced(matrix.data):
            raise UnsupportedFunctionError(
                f"the factor {name} of splu has no version for traced matrices{at_line()}\n"
                "Use solve, or scipy.linalg.lu of x.toarray()."
            )
        numbers = np.asarray(concrete(matrix.data))
        rows, cols = entries(matrix)[0]
        return getattr(factorization(numbers, rows, cols, matrix.shape[0], self._options), name)


def splu(
    A: Any,
    permc_spec: str | None = None,
    diag_pivot_thresh: float | None = None,
    relax: int | None = None,
    panel_size: int | None = None,
    options: Any = None,
) -> Any:
    """scipy.sparse.linalg.splu; while traced values exist its `solve` takes and differentiates them.

    Raises:
        RuntimeError: The matrix is singular.
    """
    if is_factoring() or not (TRACED.run or TRACED.stay or holds_traced(A)):
        return original(_linalg.splu)(A, permc_spec, diag_pivot_thresh, relax, panel_size, options)
    given = {
        "permc_spec": permc_spec,
        "diag_pivot_thresh": diag_pivot_thresh,
        "relax": relax,
        "panel_size": panel_size,
        "options": None if options is None else tuple(sorted(options.items())),
    }
    settings = tuple(sorted([(name, value) for name, value in given.items() if value is not None]))
    if not (_scipy.issparse(A) and A.format == "csc"):
        warnings.warn("splu converted its input to CSC format", _scipy.SparseEfficiencyWarning, stacklevel=2)
        A = lifted(A).tocsc() if _scipy.issparse(A) else CLASSES["csc_array"](A)
    own = canonical(lifted(A))
    if own.shape[0] != own.shape[1]:
        raise ValueError("can only factor square matrices")
    return TracedLU(own, settings)


def factorized(A: Any) -> Callable[[Any], Array]:
    """scipy.sparse.linalg.factorized: the function b ↦ A⁻¹ b, of plain and traced b."""
    solve: Callable[[Any], Array] = splu(A).solve
    return solve


@version_of(_linalg.spilu)
def spilu(A: Any, *args: Any, **kwargs: Any) -> Any:
    """scipy.sparse.linalg.spilu of the numbers; an incomplete factorization has no derivative."""
    raise UnsupportedFunctionError(
        f"spilu has no derivative: its choice of entries to drop depends on their values{at_line()}\n"
        "Make the preconditioner of a plain matrix, or use splu."
    )


@version_of(_linalg.inv)
def inv(A: Any) -> Any:
    """scipy.sparse.linalg.inv of a traced matrix; all elements of the inverse are entries."""
    if not _scipy.issparse(A):
        raise TypeError("Input must be a sparse array")
    own = compressed(A, "inv")
    x = solved(own, np.eye(own.shape[0], dtype=own.dtype), options=(("permc_spec", "COLAMD"),))
    return CLASSES[scipy_class(A).__name__](x)
