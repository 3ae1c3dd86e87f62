"""Index sets: the elements of the input on which each element of an array depends.

Inputs are numbered from 0. Where each element depends on few of them, the sets are a stack of integer arrays in the
shape of the array ("columns"). An entry is the number of an input plus one, or 0 for none. Slices, shifts and gathers
act on columns as on the array itself, so a stencil of n points costs a few operations on arrays of n integers. Larger
sets are the rows of a sparse Boolean matrix, (elements of the array) × (inputs).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from func.errors import ArgumentError
from func.interpreters.core import Shape

MAX_COLUMNS = 24
"""Sets of more columns become rows of a matrix."""
MAX_ENTRIES = 500_000_000
"""A matrix of more entries would not fit in memory."""


class IndexSets:
    """A set of input numbers for each element of an array of a shape: as columns or as rows of a matrix."""

    __slots__ = ("_rows", "columns", "count", "shape")

    def __init__(self, shape: Shape, count: int, columns: Any = None, rows: Any = None) -> None:
        self.shape = shape
        self.count = count
        """The number of inputs."""
        self.columns = columns
        self._rows = rows

    @staticmethod
    def identity(shape: Shape, start: int, count: int) -> IndexSets:
        """Element i depends on input start + i alone."""
        numbers = np.arange(start + 1, start + 1 + math.prod(shape), dtype=np.int32 if count < 2**31 - 1 else np.int64)
        return IndexSets(shape, count, numbers.reshape((1, *shape)))

    @property
    def size(self) -> int:
        """The number of elements of the array."""
        return math.prod(self.shape)

    @property
    def rows(self) -> Any:
        """The sets as a sparse Boolean matrix with sorted indices and no entry twice."""
        if self._rows is None:
            flat = self.columns.reshape(len(self.columns), -1)
            position, element = np.nonzero(flat.T)[::-1]
            self._rows = _matrix(element, flat[position, element] - 1, (self.size, self.count))
        return self._rows

    def after_move(self, move: Callable[[Any], Any], shape: Shape) -> IndexSets:
        """The sets of an array of elements of this one and zeros; `move` makes it from integers."""
        if self.columns is not None:
            return IndexSets(shape, self.count, np.stack([np.asarray(move(column)) for column in self.columns]))
        sources = np.asarray(move(np.arange(1, self.size + 1).reshape(self.shape))).reshape(-1)
        return IndexSets(shape, self.count, rows=_selected_rows(self.rows, sources))

    def broadcast(self, shape: Shape) -> IndexSets:
        """As NumPy's broadcast_to."""
        return self if shape == self.shape else self.after_move(lambda x: np.broadcast_to(x, shape), shape)

    def reshaped(self, shape: Shape) -> IndexSets:
        """The same elements in another shape, in C order."""
        if self.columns is None:
            return IndexSets(shape, self.count, rows=self._rows)
        return IndexSets(shape, self.count, self.columns.reshape((len(self.columns), *shape)))

    def where(self, mask: Any) -> IndexSets:
        """The sets where a mask of the array's shape is true, empty sets elsewhere."""
        return self.after_move(lambda x: np.where(mask, x, 0), self.shape)

    def merged(self, axes: Sequence[int]) -> IndexSets:
        """The union over axes, which disappear."""
        remaining = [axis for axis in range(len(self.shape)) if axis not in axes]
        shape = tuple([self.shape[axis] for axis in remaining])
        length = math.prod([self.shape[axis] for axis in axes])
        if length == 0:
            return IndexSets(shape, self.count, np.zeros((1, *shape), np.int32))
        if self.columns is not None and len(self.columns) * length <= MAX_COLUMNS:
            order = (0, *[axis + 1 for axis in axes], *[axis + 1 for axis in remaining])
            columns = np.transpose(self.columns, order).reshape((len(self.columns) * length, *shape))
            return _from_columns(shape, self.count, list(columns))
        targets = np.broadcast_to(
            np.arange(math.prod(shape)).reshape([1 if a in axes else n for a, n in enumerate(self.shape)]), self.shape
        )
        return self.sent(targets, shape)

    def sent(self, targets: Any, shape: Shape) -> IndexSets:
        """The sets of an array of a shape after adding element i to element targets[i], a flat number."""
        targets = np.asarray(targets).reshape(-1)
        if self.columns is not None:
            flat = self.columns.reshape(len(self.columns), -1)
            position, element = np.nonzero(flat)
            numbers = flat[position, element] - 1
            element = targets[element]
        else:
            entries = self.rows.tocoo()
            element, numbers = targets[entries.row], entries.col
        return IndexSets(shape, self.count, rows=_matrix(element, numbers, (math.prod(shape), self.count)))._compact()

    def times(self, outs: Any, ins: Any, shape: Shape) -> IndexSets:
        """The sets of an array of a shape whose element outs[e] combines elements ins[e] of this one."""
        matrix = _matrix(np.asarray(outs).reshape(-1), np.asarray(ins).reshape(-1), (math.prod(shape), self.size))
        lengths = np.diff(self.rows.indptr)
        check_entries(int(lengths[matrix.indices].sum()), shape, self.count)
        return IndexSets(shape, self.count, rows=matrix @ self.rows)._compact()

    def spread(self, axes: Sequence[int], shape: Shape) -> IndexSets:
        """Each element of the output depends on all along axes, which may have other lengths in its shape."""
        merged = self.merged(axes)
        check_entries(_entries(merged) * (math.prod(shape) // max(merged.size, 1)), shape, self.count)
        ones = tuple([1 if axis in axes else n for axis, n in enumerate(shape)])
        return merged.reshaped(ones).broadcast(shape)

    def everything(self, shape: Shape) -> IndexSets:
        """Each element of the output depends on all elements."""
        merged = self.merged(range(len(self.shape)))
        check_entries(_entries(merged) * math.prod(shape), shape, self.count)
        return merged.broadcast(shape)

    def _compact(self) -> IndexSets:
        """Rows of few entries each as columns."""
        rows = self._rows
        lengths = np.diff(rows.indptr)
        width = int(lengths.max(initial=0))
        if width > MAX_COLUMNS or width * len(lengths) > 4 * rows.nnz + 64:
            return self
        columns = np.zeros((max(width, 1), len(lengths)), np.int32 if self.count < 2**31 - 1 else np.int64)
        element = np.repeat(np.arange(len(lengths)), lengths)
        columns[np.arange(rows.nnz) - rows.indptr[element], element] = rows.indices + 1
        return IndexSets(self.shape, self.count, columns.reshape((-1, *self.shape)), rows)

    def contains(self, other: IndexSets) -> bool:
        """Whether every set of the other is a part of the set here."""
        return bool(self.rows.nnz == union(self.shape, [self, other]).rows.nnz)


def check_entries(entries: int, shape: Shape, count: int) -> None:
    """Raise ArgumentError for a pattern that would not fit in memory."""
    if entries > MAX_ENTRIES:
        raise ArgumentError(
            f"func.sparsity: a value of shape {shape} depends on too many of the {count} inputs that its pattern has "
            f"{entries:.1e} entries; the derivative is not sparse: use func.jvp, func.vjp or func.hvp for its products"
        )


def union(shape: Shape, sets: Sequence[IndexSets]) -> IndexSets:
    """The union of sets that broadcast to a shape, element by element."""
    first, *others = sets
    if not others:
        return first.broadcast(shape)
    sets = [x.broadcast(shape) for x in sets]
    if all([x.columns is not None for x in sets]) and sum([len(x.columns) for x in sets]) <= 2 * MAX_COLUMNS:
        return _from_columns(shape, first.count, [column for x in sets for column in x.columns])
    total = sets[0].rows
    for x in sets[1:]:
        total = total + x.rows
        check_entries(int(total.nnz), shape, first.count)
    return IndexSets(shape, first.count, rows=total)


def _entries(sets: IndexSets) -> int:
    return int(np.count_nonzero(sets.columns)) if sets.columns is not None else int(sets.rows.nnz)


def _from_columns(shape: Shape, count: int, columns: Sequence[Any]) -> IndexSets:
    """The sets of columns, without entries that an earlier column has."""
    different: list[Any] = []
    for column in columns:
        repeated = np.zeros(shape, bool)
        for earlier in different:
            repeated |= column == earlier
        if not repeated.any():
            if column.any() or not different:
                different.append(column)
        elif (rest := np.where(repeated, 0, column)).any():
            different.append(rest)
    if len(different) > 6:
        stacked = -np.sort(-np.stack(different), axis=0)
        width = max(int(np.count_nonzero(stacked.reshape(len(different), -1).any(axis=1))), 1)
        different = list(stacked[:width])
    sets = IndexSets(shape, count, np.stack(different))
    return sets if len(different) <= MAX_COLUMNS else IndexSets(shape, count, rows=sets.rows)


def _matrix(rows: Any, columns: Any, shape: tuple[int, int]) -> Any:
    """The sparse Boolean matrix with entries at these places."""
    check_entries(len(rows), (shape[0],), shape[1])
    matrix = scipy.sparse.coo_array((np.ones(len(rows), bool), (rows, columns)), shape=shape).tocsr()
    matrix.sum_duplicates()
    return matrix


def _selected_rows(matrix: Any, sources: Any) -> Any:
    """Rows by their numbers plus one; 0 is an empty row."""
    lengths = np.append(0, np.diff(matrix.indptr))[sources]
    check_entries(int(lengths.sum()), sources.shape, matrix.shape[1])
    indptr = np.append(0, np.cumsum(lengths))
    starts = np.append(0, matrix.indptr[:-1])[sources]
    indices = matrix.indices[np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], lengths)]
    return scipy.sparse.csr_array((np.ones(len(indices), bool), indices, indptr), shape=(len(sources), matrix.shape[1]))
