"""Patterns of sparse matrices: the places of entries, and their sources.

A matrix with traced entries has its pattern, the arrays of integers, as plain data. So SciPy moves entries, on a matrix
with the same pattern and the entries 1, 2, 3, ... The result shows the number of the entry for each place (zero: none),
and func gathers the entries by it. An operation that combines entries runs on ones for the pattern of its result; func
adds the entries at their places there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as _scipy

from func.interpreters.core import Array, Tracer, dtype_of, operand, shape_of
from func.interpreters.primitives.structural.indexing import gather, scatter_add
from func.interpreters.primitives.structural.shapes import convert, full_like, reshape, where
from func.interpreters.primitives.structural.slicing import concatenate

FORMATS = ("bsr", "coo", "csc", "csr", "dia")
OWN: dict[type, type] = {}
"""func's class for each class of SciPy, and for itself."""
SCIPY: dict[type, type] = {}
"""SciPy's class for each class of func, and for itself."""


def scipy_class(matrix: Any) -> type:
    """SciPy's class of a sparse matrix, also for subclasses of users."""
    kind = type(matrix)
    if kind in SCIPY:
        return SCIPY[kind]
    return next((base for base in kind.__mro__ if base in SCIPY and SCIPY[base] is base), kind)


def is_scalar(value: Any) -> bool:
    """Whether a value is a number or an array of shape ()."""
    return (
        (type(value) is Tracer and shape_of(value) == ())
        or (not _scipy.issparse(value) and np.isscalar(value))
        or (isinstance(value, np.ndarray) and value.ndim == 0)
    )


def with_entries(template: Any, data: Array, kind: type | None = None) -> Any:
    """The pattern of a matrix with other data, in SciPy's class if these are numbers, else in func's."""
    scipy_kind = scipy_class(template)
    is_plain = type(data) is np.ndarray and data.shape == template.data.shape
    out: Any = object.__new__(kind or (scipy_kind if is_plain else OWN[scipy_kind]))
    out.__dict__.update(template.__dict__)
    out.__dict__["data"] = data
    return out


def lifted(matrix: Any) -> Any:
    """A matrix of SciPy as one of func's class, which computes with traced values."""
    if type(matrix) in OWN and OWN[type(matrix)] is type(matrix):
        return matrix
    known = matrix if scipy_class(matrix) in OWN else matrix.tocsr()
    return with_entries(known, known.data, OWN[scipy_class(known)])


def flat(data: Array) -> Array:
    """All entries in one row."""
    return data if len(shape_of(data)) == 1 else reshape(data, shape=(int(np.prod(shape_of(data))),))


def numbered(matrix: Any, start: int = 1) -> Any:
    """The matrix of SciPy with the same pattern whose entries are start, start + 1, ..."""
    numbers = np.arange(start, start + int(np.prod(shape_of(matrix.data))), dtype=np.float64)
    return with_entries(matrix, numbers.reshape(shape_of(matrix.data)), scipy_class(matrix)).copy()


def ones_like(matrix: Any) -> Any:
    """The matrix of SciPy with the same pattern whose entries are one."""
    if not _scipy.issparse(matrix):
        return np.ones(shape_of(matrix))
    if scipy_class(matrix) not in OWN:
        matrix = matrix.tocsr()
    return with_entries(matrix, np.ones(shape_of(matrix.data)), scipy_class(matrix)).copy()


def selected(data: Array, numbers: Any) -> Array:
    """The entries with these numbers, zero for the number zero; `data` is one row."""
    places = np.asarray(numbers).astype(np.intp) - 1
    count = shape_of(data)[0]
    if places.shape == (count,) and np.array_equal(places, np.arange(count)):
        return data
    missing = places < 0
    if not missing.any():
        return gather(data, places, axis=0)
    if count == 0:
        return full_like(data, 0, places.shape)
    return where(~missing, gather(data, np.where(missing, 0, places), axis=0), full_like(data, 0, places.shape))


def by_number(matrix: Any, result: Any) -> Any:
    """A result of SciPy's code on the numbered matrix, with the actual entries: a sparse matrix or an array."""
    data = flat(matrix.data)
    if _scipy.issparse(result):
        known = result if scipy_class(result) in OWN else result.tocsr()
        return with_entries(known, selected(data, known.data))
    numbers = np.asarray(result)
    out = selected(data, numbers.reshape(-1))
    return reshape(out, shape=numbers.shape)


def coordinates(matrix: Any) -> tuple[tuple[Any, ...], Any]:
    """The coordinates of the entries, and their places in the data (None: in this order)."""
    if matrix.format == "csr" and matrix.ndim == 2:
        rows = np.repeat(np.arange(matrix.shape[0], dtype=matrix.indices.dtype), np.diff(matrix.indptr))
        return (rows, matrix.indices[: len(rows)]), slice(0, len(rows)) if len(rows) != len(matrix.indices) else None
    if matrix.format == "csc":
        cols = np.repeat(np.arange(matrix.shape[1], dtype=matrix.indices.dtype), np.diff(matrix.indptr))
        return (matrix.indices[: len(cols)], cols), slice(0, len(cols)) if len(cols) != len(matrix.indices) else None
    if matrix.format == "coo":
        return tuple(matrix.coords), None
    whole = numbered(matrix).tocoo()
    return tuple(whole.coords), whole.data.astype(np.intp) - 1


def entries(matrix: Any) -> tuple[tuple[Any, ...], Array]:
    """The coordinates of the entries, and the entries in one row; some may be at the same place."""
    coords, places = coordinates(matrix)
    data = flat(matrix.data)
    if isinstance(places, slice):
        places = np.arange(places.stop)
    return coords, data if places is None else selected(data, places + 1)


def keys(coords: Sequence[Any], shape: Sequence[int]) -> Any:
    """One integer for every place."""
    total = np.zeros(len(coords[0]), np.int64)
    for index, length in zip(coords, shape, strict=True):
        total = total * length + index
    return total


def has_duplicates(matrix: Any) -> bool:
    """Whether several entries are at the same place."""
    if matrix.format == "dia" or matrix.has_canonical_format:
        return False
    coords, _ = coordinates(matrix)
    places = keys(coords, matrix.shape)
    return len(np.unique(places)) != len(places)


def canonical(matrix: Any) -> Any:
    """The matrix with one entry at each place that has any."""
    return summed(matrix) if has_duplicates(matrix) else matrix


def summed(matrix: Any) -> Any:
    """The matrix after SciPy's `sum_duplicates`."""
    template = ones_like(matrix)
    template.sum_duplicates()
    coords, data = entries(matrix)
    return placed(template, coords, data)


class Places:
    """The places of a matrix's entries in its data."""

    def __init__(self, template: Any) -> None:
        coords, numbers = coordinates(template)
        places = keys(coords, template.shape)
        self.order = np.argsort(places, kind="stable")
        self.sorted = places[self.order]
        self.numbers = numbers
        self.shape = template.shape

    def of(self, coords: Sequence[Any]) -> Any:
        """The places in the data of entries with these coordinates, -1 where there is none."""
        wanted = keys(coords, self.shape)
        if len(self.sorted) == 0:
            return np.full(len(wanted), -1)
        at = np.minimum(np.searchsorted(self.sorted, wanted), len(self.sorted) - 1)
        found = self.order[at]
        if isinstance(self.numbers, np.ndarray):
            found = self.numbers[found]
        return np.where(self.sorted[at] == wanted, found, -1)


def placed(template: Any, coords: Sequence[Any], data: Array) -> Any:
    """The pattern of a matrix with these entries at their places; entries at the same place add up."""
    places = Places(template).of(coords)
    return with_entries(template, accumulated(data, places, template.data.shape))


def accumulated(data: Array, places: Any, shape: Sequence[int]) -> Array:
    """Entries added at their places in an array of zeros."""
    size = int(np.prod(shape))
    if len(places) == size and np.array_equal(places, np.arange(size)):
        out = data
    else:
        zeros = full_like(data, 0, (size,), dtype_of(data))
        out = zeros if len(places) == 0 else scatter_add(zeros, data, np.asarray(places, np.intp), axis=0)
    return out if len(shape) == 1 else reshape(out, shape=tuple(shape))


def values_at(matrix: Any, coords: Sequence[Any]) -> Array:
    """The values of a matrix at coordinates, zero where it has no entry."""
    own = canonical(matrix)
    return selected(flat(own.data), Places(own).of(coords) + 1)


def joined(parts: Sequence[Array]) -> Array:
    """Rows of entries one after the other, in their common dtype."""
    parts = [flat(operand(part)) if shape_of(part) else reshape(operand(part), shape=(1,)) for part in parts]
    dtype = np.result_type(*[dtype_of(part) for part in parts])
    same = [part if dtype_of(part) == dtype else convert(part, dtype=dtype) for part in parts]
    return same[0] if len(same) == 1 else concatenate(*same, axis=0)


class Pattern:
    """The static part of a sparse matrix as a tree: a matrix without its entries, which can be compared."""

    __slots__ = ("digest", "kind", "template")

    def __init__(self, matrix: Any) -> None:
        self.kind = scipy_class(matrix)
        self.template = {name: value for name, value in matrix.__dict__.items() if name != "data"}
        shape = getattr(matrix.data, "shape", ())
        digest = hashlib.blake2b(repr((self.kind.__qualname__, matrix.shape, shape[1:])).encode())
        for name in ("indices", "indptr", "offsets"):
            if name in self.template:
                digest.update(np.ascontiguousarray(self.template[name], np.int64).tobytes())
        for index in self.template.get("coords", ()):
            digest.update(np.ascontiguousarray(index, np.int64).tobytes() + b"-")
        self.digest = digest.digest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"{self.kind.__name__} of shape {self.template['_shape']}"

    def filled(self, data: Any) -> Any:
        """The matrix with this pattern; it stores data of another shape (a batch of matrices) unchanged."""
        is_plain = type(data) is np.ndarray and data.ndim == (
            3 if "bsr" in self.kind.__name__ else 1 + ("dia" in self.kind.__name__)
        )
        out: Any = object.__new__(self.kind if is_plain else OWN[self.kind])
        out.__dict__.update(self.template)
        out.__dict__["data"] = data
        return out
