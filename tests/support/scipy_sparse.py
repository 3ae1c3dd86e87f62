"""Rows of scipy.sparse: constructors, functions, and methods and operators of its matrices."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse

from tests.support.scipy_rows import Row, main

RNG = np.random.default_rng(11)
ROWS_AT, COLS_AT = np.array([0, 0, 1, 2, 2, 3, 3]), np.array([0, 2, 1, 0, 3, 3, 1])
IJ = (ROWS_AT, COLS_AT)
DOUBLE = (np.array([0, 0, 1, 1, 2, 0]), np.array([1, 1, 0, 2, 2, 0]))
"""Places of which one comes twice."""
X = RNG.uniform(0.3, 0.9, 7)
Y = RNG.uniform(0.3, 0.9, 7)
V = RNG.normal(size=4)
M = RNG.normal(size=(4, 3))
SQUARE = scipy.sparse.random_array((4, 4), density=0.5, rng=RNG, format="csr")
OTHER = scipy.sparse.random_array((4, 4), density=0.4, rng=RNG, format="csc")
WIDE = scipy.sparse.random_array((4, 6), density=0.5, rng=RNG, format="csr")
MATRIX = scipy.sparse.csr_matrix(SQUARE)
INDPTR = np.array([0, 2, 3, 5, 7])


def a(m: Any, x: Any, form: str = "csr", kind: str = "array") -> Any:
    """A 4 × 4 matrix with the entries x."""
    made = getattr(m, f"coo_{kind}")((x, IJ), shape=(4, 4))
    return made if form == "coo" else getattr(made, f"to{form}")()


def dense(value: Any) -> Any:
    """A result as an ndarray."""
    out = value.toarray() if scipy.sparse.issparse(value) else value
    return np.asarray(out) if isinstance(out, np.matrix) else out


def row(call: Any, x: Any = X, **options: Any) -> Row:
    """A row whose result becomes dense."""

    def quiet(m: Any, x: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", scipy.sparse.SparseEfficiencyWarning)
            return dense(call(m, x))

    return Row(quiet, x, **options)


def with_item(matrix: Any, key: Any, value: Any) -> Any:
    """The matrix after an assignment."""
    matrix[key] = value
    return matrix


def with_diagonal(matrix: Any, values: Any, k: int) -> Any:
    """The matrix after `setdiag`."""
    matrix.setdiag(values, k)
    return matrix


def after(matrix: Any, name: str, *args: Any) -> Any:
    """The matrix after a method that works in place."""
    getattr(matrix, name)(*args)
    return matrix


def in_place(matrix: Any, x: Any) -> Any:
    """The matrix after operators in place."""
    matrix *= x[0]
    matrix /= x[1]
    return matrix


CONSTRUCTORS: dict[str, Row] = {
    "coo_array": row(lambda m, x: m.coo_array((x, IJ), shape=(4, 5)) @ np.arange(5.0)),
    "coo_matrix": row(lambda m, x: m.coo_matrix((x, IJ)) @ V),
    "csr_array": row(lambda m, x: m.csr_array((x, COLS_AT, INDPTR)) @ V),
    "csr_matrix": row(lambda m, x: m.csr_matrix((x, IJ), shape=(4, 4)) * M),
    "csc_array": row(lambda m, x: m.csc_array((x, COLS_AT, INDPTR), shape=(4, 4))),
    "csc_matrix": row(lambda m, x: m.csc_matrix((x[:6], DOUBLE), shape=(3, 3))),
    "bsr_array": row(lambda m, x: m.bsr_array((x[:8].reshape(2, 2, 2), [0, 1], [0, 1, 2])) @ V, RNG.normal(size=8)),
    "bsr_matrix": row(lambda m, x: m.bsr_matrix((x, IJ), shape=(4, 4), blocksize=(2, 2)) @ V),
    "dia_array": row(lambda m, x: m.dia_array((x.reshape(2, 4), [0, 1]), shape=(4, 4)) @ V, RNG.normal(size=8)),
    "dia_matrix": row(lambda m, x: m.dia_matrix((x.reshape(2, 4), [-1, 0]), shape=(5, 4)) @ M, RNG.normal(size=8)),
    "csr_array of dense": row(lambda m, x: m.csr_array(x) @ V, RNG.normal(size=(3, 4))),
    "coo_array of one axis": row(lambda m, x: m.coo_array((x, (ROWS_AT + 4 * COLS_AT,)), shape=(16,))),
    "csr_array of sparse": row(lambda m, x: m.csr_array(m.coo_array((x[:6], DOUBLE), shape=(3, 3)))),
    "csr_matrix of array": row(lambda m, x: m.csr_matrix(m.csc_array((x, IJ))) * V),
    "csr_array with dtype": row(lambda m, x: m.csr_array((x, IJ), dtype=complex).toarray().real),
}
FUNCTIONS: dict[str, Row] = {
    "block_array": row(lambda m, x: m.block_array([[a(m, x), None], [SQUARE, a(m, x**2, "csc")]])),
    "block_diag": row(lambda m, x: m.block_diag([a(m, x), M, a(m, x, "coo")], format="csr")),
    "bmat": row(lambda m, x: m.bmat([[a(m, x), SQUARE], [None, a(m, 2 * x)]], format="csc")),
    "hstack": row(lambda m, x: m.hstack([a(m, x), WIDE])),
    "vstack": row(lambda m, x: m.vstack((SQUARE, a(m, x), a(m, x, "dia")))),
    "diags": row(lambda m, x: m.diags([x[:3], x[3:]], [1, 0], shape=(4, 4)), exact=1e-11),
    "diags_array": row(lambda m, x: m.diags_array([x[:3], x[3:6], x[6]], offsets=[1, -1, 0], shape=(4, 4))),
    "spdiags": row(lambda m, x: m.spdiags(x.reshape(2, 4), [0, 2], 4, 4), RNG.normal(size=8)),
    "expand_dims": row(lambda m, x: m.expand_dims(a(m, x, "coo"), axis=0).toarray()),
    "permute_dims": row(lambda m, x: m.permute_dims(a(m, x, "coo"), (1, 0))),
    "swapaxes": row(lambda m, x: m.swapaxes(a(m, x, "coo"), 0, 1)),
    "tril": row(lambda m, x: m.tril(a(m, x), k=-1)),
    "triu": row(lambda m, x: m.triu(a(m, x), format="csc")),
    "kron": row(lambda m, x: m.kron(a(m, x), a(m, x**2))),
    "kron with dense": row(lambda m, x: m.kron(SQUARE, x.reshape(1, 7))),
    "kronsum": row(lambda m, x: m.kronsum(a(m, x), SQUARE)),
    "find": row(lambda m, x: m.find(a(m, x, "csc"))[2]),
}
OPERATORS: dict[str, Row] = {
    "A @ x": row(lambda m, x: SQUARE @ x, V),
    "A @ X": row(lambda m, x: OTHER @ x, M),
    "A @ column": row(lambda m, x: SQUARE @ x, V.reshape(4, 1)),
    "x @ A": row(lambda m, x: x @ WIDE, V),
    "X @ A": row(lambda m, x: x @ OTHER, M.T),
    "A.dot(x)": row(lambda m, x: SQUARE.dot(x), V),
    "matrix * x": row(lambda m, x: MATRIX * x, V),
    "x * matrix": row(lambda m, x: x * MATRIX, V),
    "A * x": row(lambda m, x: SQUARE * x, V),
    "A.multiply(X)": row(lambda m, x: OTHER.multiply(x), RNG.normal(size=(4, 4))),
    "A - x B": row(lambda m, x: SQUARE - x[0] * OTHER, V),
    "x B + A": row(lambda m, x: OTHER * x[1] + SQUARE, V),
    "A + X": row(lambda m, x: SQUARE + x, RNG.normal(size=(4, 4))),
    "X - A": row(lambda m, x: x - SQUARE, RNG.normal(size=(4, 4))),
    "A / x": row(lambda m, x: SQUARE / x[0], V),
    "A / X": row(lambda m, x: SQUARE / x, RNG.uniform(1, 2, (4, 4))),
    "traced @ x": row(lambda m, x: a(m, x) @ x[:4]),
    "X @ traced": row(lambda m, x: M.T @ a(m, x, "csc")),
    "traced @ traced": row(lambda m, x: a(m, x) @ a(m, x**2, "csc")),
    "traced @ plain": row(lambda m, x: a(m, x, "coo") @ WIDE),
    "plain @ traced": row(lambda m, x: SQUARE @ a(m, x, "dia")),
    "traced + traced": row(lambda m, x: a(m, x) + 2 * a(m, x, "csc").T),
    "plain - traced": row(lambda m, x: OTHER - a(m, x)),
    "traced - plain": row(lambda m, x: a(m, x, "dia") - OTHER),
    "traced * traced": row(lambda m, x: a(m, x) * a(m, x).T),
    "traced * row": row(lambda m, x: a(m, x).multiply(V)),
    "traced * column": row(lambda m, x: a(m, x, "csc") * V[:, None]),
    "traced sparse row": row(lambda m, x: a(m, x).multiply(m.csr_array(x[None, :4]))),
    "traced / dense": row(lambda m, x: a(m, x) / (1 + M[:, :1] ** 2)),
    "matrix * matrix": row(lambda m, x: a(m, x, kind="matrix") * MATRIX),
    "matrix ** 2": row(lambda m, x: a(m, x, kind="matrix") ** 2),
    "traced ** 3": row(lambda m, x: a(m, x) ** 3),
    "abs and neg": row(lambda m, x: abs(-a(m, x - 1.5))),
    "*= and /=": row(lambda m, x: in_place(a(m, x), x)),
    "maximum": row(lambda m, x: a(m, x).maximum(SQUARE)),
    "minimum of scalar": row(lambda m, x: a(m, x).minimum(0.25)),
    "maximum of dense": row(lambda m, x: a(m, x).maximum(np.full((4, 4), 0.5))),
}
METHODS: dict[str, Row] = {
    "T": row(lambda m, x: a(m, x).T @ V),
    "sum": row(lambda m, x: a(m, x).sum()),
    "sum rows": row(lambda m, x: a(m, x, "csc").sum(axis=1)),
    "sum columns": row(lambda m, x: a(m, x, "dia").sum(axis=0)),
    "sum of matrix": row(lambda m, x: np.asarray(a(m, x, kind="matrix").sum(axis=0)), converts=True),
    "mean": row(lambda m, x: a(m, x, "coo").mean(axis=-1)),
    "max": row(lambda m, x: a(m, x).max() + a(m, x).min()),
    "diagonal": row(lambda m, x: a(m, x).diagonal(1)),
    "trace": row(lambda m, x: a(m, x, "csc").trace()),
    "real and conj": row(lambda m, x: (a(m, x) * (1 + 2j)).conj().imag),
    "item": row(lambda m, x: a(m, x)[2, 3] * a(m, x)[0, 2]),
    "row": row(lambda m, x: a(m, x)[2]),
    "rows": row(lambda m, x: a(m, x)[1:4:2]),
    "columns": row(lambda m, x: a(m, x, "csc")[:, [3, 0, 0]]),
    "fancy": row(lambda m, x: a(m, x)[[0, 2, 3], [2, 3, 0]]),
    "mask": row(lambda m, x: a(m, x)[np.array([True, False, True, True])]),
    "rows of matrix": row(lambda m, x: a(m, x, kind="matrix").getrow(2)),
    "columns of matrix": row(lambda m, x: a(m, x, kind="matrix").getcol(3)),
    "assigned": row(lambda m, x: with_item(a(m, x), (1, slice(0, 3)), x[:3] ** 2)),
    "setdiag": row(lambda m, x: with_diagonal(a(m, x), x[:3], -1)),
    "reshape": row(lambda m, x: a(m, x).reshape(2, 8)),
    "resize": row(lambda m, x: after(a(m, x), "resize", 3, 5)),
    "sum_duplicates": row(lambda m, x: after(m.coo_array((x[:6], DOUBLE), shape=(3, 3)), "sum_duplicates").data),
    "sqrt": row(lambda m, x: a(m, x).sqrt().expm1()),
    "power": row(lambda m, x: a(m, x).power(1.5)),
    "astype": row(lambda m, x: a(m, x).astype(complex).toarray().real),
    "tobsr": row(lambda m, x: a(m, x).tobsr((2, 2)) @ V),
    "todia": row(lambda m, x: a(m, x).todia() @ V),
    "tocsc": row(lambda m, x: a(m, x).tocsc().tocoo().tocsr().data),
    "asformat": row(lambda m, x: a(m, x).asformat("csc").data),
    "todense": row(lambda m, x: a(m, x).todense()),
    "matrix of complex": row(lambda m, x: np.abs(a(m, x * np.exp(1j * x)) @ V)),
    "data": row(lambda m, x: np.sin(a(m, x).data) * 2),
}
if hasattr(scipy.sparse, "matrix_transpose"):  # since SciPy 1.18
    FUNCTIONS["matrix_transpose"] = row(lambda m, x: m.matrix_transpose(a(m, x)))
ROWS: dict[str, Row] = {**CONSTRUCTORS, **FUNCTIONS, **OPERATORS, **METHODS}

REASONS = {
    "a module": """
        base bsr compressed construct coo csc csgraph csr data dia dok extract lil linalg sparsetools sputils
    """,
    "makes or asks for patterns": """
        eye eye_array get_index_dtype identity issparse isspmatrix isspmatrix_bsr isspmatrix_coo isspmatrix_csc
        isspmatrix_csr isspmatrix_dia isspmatrix_dok isspmatrix_lil safely_cast_index_arrays
    """,
    "draws numbers, which depend on no argument": "rand random random_array",
    "a class of warnings": "SparseEfficiencyWarning SparseWarning",
    "a base class": "sparray spmatrix",
    "reads and writes files": "load_npz save_npz",
    "built by assignments; takes no traced values": "dok_array dok_matrix lil_array lil_matrix",
}
WITHOUT: dict[str, str] = {name: reason for reason, names in REASONS.items() for name in names.split()}
"""The other public names, each with its reason."""

if __name__ == "__main__":
    main("sparse", ROWS)
