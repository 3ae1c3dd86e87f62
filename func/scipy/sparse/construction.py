"""Functions of scipy.sparse that make matrices of matrices and arrays, whose entries may be traced."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as _scipy

from func.host.scipy_hooks import holds_traced, original
from func.interpreters.core import Array, dtype_of, operand, shape_of
from func.scipy.kinds.versions import version_of
from func.scipy.sparse.patterns import (
    canonical,
    entries,
    flat,
    joined,
    lifted,
    numbered,
    ones_like,
    placed,
    selected,
    with_entries,
)


class _Numbering:
    """Matrices and arrays within an argument, and the same argument with numbers for their entries."""

    def __init__(self) -> None:
        self.parts: list[Array] = []
        self.count = 0

    def of(self, value: Any) -> Any:
        """The argument with numbers; searches lists and tuples, and keeps None."""
        if value is None or isinstance(value, str):
            return value
        if _scipy.issparse(value):
            own = canonical(lifted(value))
            out = numbered(own, self.count + 1)
            self.add(own.data)
            return out
        if isinstance(value, (list, tuple)):
            return type(value)([self.of(item) for item in value])
        if type(value) is np.ndarray and value.dtype.hasobject:
            return [self.of(item) for item in value]
        array = operand(value)
        shape = shape_of(array)
        size = int(np.prod(shape))
        numbers = np.arange(self.count + 1, self.count + size + 1, dtype=np.float64).reshape(shape)
        self.add(array)
        return numbers if shape else float(numbers)

    def add(self, data: Array) -> None:
        """Further entries."""
        self.parts.append(flat(data) if shape_of(data) else data)
        self.count += int(np.prod(shape_of(data)))

    def result(self, made: Any, dtype: Any) -> Any:
        """SciPy's result for the numbers, with the entries."""
        data = joined(self.parts) if self.parts else np.zeros(0)
        if dtype is not None and dtype_of(data) != np.dtype(dtype):
            data = data.astype(dtype)
        known = made if made.format not in ("lil", "dok") else made.tocsr()
        numbers = known.data
        picked = selected(data, numbers.reshape(-1))
        return with_entries(known, picked if numbers.ndim == 1 else np.reshape(picked, numbers.shape))


def _placing(name: str) -> Callable[..., Any]:
    """A function that moves the entries of its first argument."""
    scipy_function = getattr(_scipy, name, None)

    def function(first: Any, *args: Any, **kwargs: Any) -> Any:
        if scipy_function is None:
            raise AttributeError(f"this version of SciPy has no scipy.sparse.{name}")
        if not holds_traced(first):
            return original(scipy_function)(first, *args, **kwargs)
        arguments = inspect.signature(scipy_function).bind(first, *args, **kwargs)
        dtype = arguments.arguments.pop("dtype", None)
        numbering = _Numbering()
        arguments.arguments[next(iter(arguments.arguments))] = numbering.of(first)
        return numbering.result(original(scipy_function)(*arguments.args, **arguments.kwargs), dtype)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"scipy.sparse.{name} of plain and traced entries."
    return function


block_array = _placing("block_array")
block_diag = _placing("block_diag")
diags_array = _placing("diags_array")
expand_dims = _placing("expand_dims")
permute_dims = _placing("permute_dims")
swapaxes = _placing("swapaxes")
tril = _placing("tril")
triu = _placing("triu")
bmat, hstack, vstack, diags, spdiags = [_placing(name) for name in ("bmat", "hstack", "vstack", "diags", "spdiags")]


def _as_sparse(value: Any) -> Any:
    """A factor as a sparse matrix; all elements of a dense one are entries."""
    if _scipy.issparse(value):
        return canonical(lifted(value))
    array = np.atleast_2d(operand(value))
    shape = shape_of(array)
    template = _scipy.coo_array(np.ones(shape))
    return lifted(with_entries(template, np.reshape(array, -1)))


@version_of(_scipy.kron)
def kron(A: Any, B: Any, format: Any = None) -> Any:
    """scipy.sparse.kron of plain and traced entries."""
    left, right = _as_sparse(A), _as_sparse(B)
    likes = [ones_like(part) if _scipy.issparse(own) else np.ones(part.shape) for part, own in ((left, A), (right, B))]
    template = original(_scipy.kron)(*likes, format)
    (coords, data), (other_coords, other) = entries(left), entries(right)
    terms = np.reshape(np.reshape(data, (-1, 1)) * other, -1)
    places = [
        (index.astype(np.int64)[:, None] * length + inner).ravel()
        for index, inner, length in zip(coords, other_coords, right.shape, strict=True)
    ]
    return placed(template if template.format not in ("lil", "dok") else template.tocsr(), places, terms)


@version_of(_scipy.find)
def find(A: Any) -> tuple[Any, Any, Any]:
    """scipy.sparse.find: rows, columns and values of all entries, including those that are zero."""
    template = ones_like(canonical(lifted(A))).tocoo()
    template.sum_duplicates()
    coords, data = entries(lifted(A))
    whole = placed(template, coords, data)
    return whole.row, whole.col, whole.data
