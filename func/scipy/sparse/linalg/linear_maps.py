"""Linear maps of vectors: matrices and linear operators, with the traced values in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as _scipy
import scipy.sparse.linalg as _linalg

from func.interpreters.core import Array, dtype_of, shape_of
from func.interpreters.core.errors import UnsupportedFunctionError
from func.interpreters.host.source import at_line
from func.interpreters.primitives.linalg.sparse import sparse_product
from func.interpreters.primitives.structural.shapes import reshape
from func.scipy.sparse.entry_arithmetic import as_dense
from func.scipy.sparse.patterns import canonical, entries, lifted, with_entries
from func.transforms.closures import Closure


def matrix_numbers(A: Any) -> tuple[Callable[[Any], Any], Array]:
    """A sparse or dense matrix as a function of its numbers, and these numbers."""
    if not _scipy.issparse(A):
        return lambda numbers: numbers, as_dense(A)
    own = canonical(lifted(A))
    pattern = with_entries(own, np.zeros(shape_of(own.data), dtype_of(own.data)))
    return lambda numbers: with_entries(pattern, numbers), own.data


def product_with(A: Any) -> Callable[[Array], Array]:
    """x ↦ A x for vectors, with the entries in its closure."""
    if not _scipy.issparse(A):
        array = as_dense(A)
        return lambda x: array @ x
    coords, data = entries(lifted(A))
    rows, cols = coords
    m, n = A.shape

    def matvec(x: Array) -> Array:
        return reshape(sparse_product(data, rows, cols, reshape(x, shape=(n, 1)), length=m), shape=(m,))

    return matvec


def unwrapped(A: Any) -> Any:
    """The matrix in a linear operator that `aslinearoperator` made; other values unchanged."""
    return getattr(A, "A") if _is_made_of_matrix(A) else A  # noqa: B009


def _is_made_of_matrix(A: Any) -> bool:
    return isinstance(A, _linalg.LinearOperator) and any(
        [kind.__name__ == "MatrixLinearOperator" for kind in type(A).__mro__]
    )


def matrix_product(self: Any, X: Array) -> Array:
    """A X of the linear operator of a matrix, where A or X is traced."""
    product: Array = self.A @ X
    return product


def map_of(operator: Any, adjoint: bool = False) -> Callable[[Array], Array]:
    """x ↦ A x (or Aᴴ x) of a linear operator, with the traced values of its parts in the closure."""
    if _is_made_of_matrix(operator):
        matrix = unwrapped(operator)
        return product_with(_adjoint_matrix(matrix) if adjoint else matrix)
    combine = _COMBINED.get(type(operator).__name__) if type(operator).__module__.startswith("scipy.") else None
    if combine is not None:
        return combine(adjoint, *operator.args)
    name = "rmatvec" if adjoint else "matvec"
    found: Callable[[Array], Array] = getattr(operator, name)
    return found


def _adjoint_matrix(matrix: Any) -> Any:
    return matrix.conj().T if _scipy.issparse(matrix) else np.conjugate(np.transpose(as_dense(matrix)))


def _sum(adjoint: bool, A: Any, B: Any) -> Callable[[Array], Array]:
    first, second = map_of(A, adjoint), map_of(B, adjoint)
    return lambda x: first(x) + second(x)


def _product(adjoint: bool, A: Any, B: Any) -> Callable[[Array], Array]:
    outer, inner = (map_of(B, True), map_of(A, True)) if adjoint else (map_of(A), map_of(B))
    return lambda x: outer(inner(x))


def _scaled(adjoint: bool, A: Any, alpha: Any) -> Callable[[Array], Array]:
    whole, factor = map_of(A, adjoint), np.conjugate(alpha) if adjoint else alpha
    return lambda x: factor * whole(x)


def _power(adjoint: bool, A: Any, p: int) -> Callable[[Array], Array]:
    once = map_of(A, adjoint)

    def repeated(x: Array) -> Array:
        for _ in range(p):
            x = once(x)
        return x

    return repeated


def _adjoint(adjoint: bool, A: Any) -> Callable[[Array], Array]:
    return map_of(A, not adjoint)


def _transposed(adjoint: bool, A: Any) -> Callable[[Array], Array]:
    whole = map_of(A, not adjoint)
    return lambda x: np.conjugate(whole(np.conjugate(x)))


_COMBINED: dict[str, Callable[..., Callable[[Array], Array]]] = {
    "_SumLinearOperator": _sum,
    "_ProductLinearOperator": _product,
    "_ScaledLinearOperator": _scaled,
    "_PowerLinearOperator": _power,
    "_AdjointLinearOperator": _adjoint,
    "_TransposedLinearOperator": _transposed,
}
"""SciPy's results for linear operators of +, @, *, **, .H and .T, by the names of their classes."""


def operator_holds_traced(operator: Any) -> bool:
    """Whether a linear operator contains traced values."""
    return bool(Closure(map_of(operator)).values)


def refuse_operators(name: str, *operators: Any, even_plain: bool = False) -> None:
    """Raise for linear operators that contain traced values, or for all linear operators."""
    for operator in operators:
        if isinstance(operator, _linalg.LinearOperator) and (even_plain or operator_holds_traced(operator)):
            raise UnsupportedFunctionError(
                f"{name} of a linear operator has no version for traced values{at_line()}\n"
                "Give the sparse matrix itself."
            )
