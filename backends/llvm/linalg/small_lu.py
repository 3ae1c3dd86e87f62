"""LU factors of matrices of some dozen rows, written out: LAPACK's calls for panels cost more than their arithmetic.

The columns lie in memory. Panels of `WIDTH` columns are factored from left to right, each with exchanges of whole rows,
and then taken from the columns behind them. The first panel has the columns that are left over, so that the rows below
a panel are whole vectors. Pivots and factors are those of LAPACK's getrf up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from func.backends import ir
from func.backends.llvm.linalg.matrix_copies import (
    INDEX,
    INT,
    Matrix,
    address_at,
    alignment,
    element,
    loop,
    number,
    slot,
)

WIDTH = 8
"""The columns of a panel, and the rows of a vector."""
LEAST_ROWS = 24
"""Smaller matrices gain less than it takes to compile this."""
MOST_ROWS = 192
"""Larger matrices leave the inner caches, and LAPACK's blocks are faster."""
COLUMNS = 2
"""So many columns behind a panel are computed at once, with each part of the panel in a register."""
_FUSED = ("contract",)


def is_small(n: int, a: Matrix) -> bool:
    """Whether a square matrix is for `emit_small_lu`."""
    return a.dtype.kind == "f" and LEAST_ROWS <= n <= MOST_ROWS and a.ld <= n


def emit_small_lu(builder: ir.IRBuilder, n: int, a: Matrix, pivots: ir.Value) -> None:
    """Overwrite a square matrix with its LU factors, and write the exchanges of rows as int32 from 0."""
    name = f"func.lu.{a.dtype.name}.{n}"
    builder.call(_function(builder, name, n, a, [pivots.type], lambda code, b, args: code.emit()), [a.at, pivots])


Write: TypeAlias = Callable[["_Factors", ir.IRBuilder, Sequence[ir.Value]], None]


def _function(
    builder: ir.IRBuilder, name: str, n: int, a: Matrix, types: Sequence[ir.Type], write: Write
) -> ir.Function:
    """A function of the module, of the matrix and arguments of some types, which `write` writes once."""
    function: ir.Function | None = builder.module.globals.get(name)
    if function is None:
        function = ir.Function(builder.module, ir.FunctionType(ir.VoidType(), [a.at.type, *types]), name)
        function.linkage = "internal"
        function.attributes |= {"nounwind", "noinline", "optsize"}  # what is worth writing out is written out
        inner = ir.IRBuilder(function.append_basic_block("entry"))
        place, *args = function.args
        write(_Factors(inner, n, Matrix(place, n, a.dtype), args), inner, args)
        inner.ret_void()
    return function


class _Factors:
    """Writes the function for one number of rows."""

    def __init__(self, builder: ir.IRBuilder, n: int, a: Matrix, args: Sequence[ir.Value]) -> None:
        self.builder, self.n, self.a, self.args = builder, n, a, args
        self.number = element(a.dtype)
        self.vector = ir.VectorType(self.number, WIDTH)

    def emit(self) -> None:
        """All panels, one after the other."""
        rest = self.n % WIDTH
        if rest:
            self.panel(number(0), rest)
        with loop(self.builder, self.n, rest, WIDTH) as first:
            self.panel(first, WIDTH)

    def at(self, row: ir.Value, column: ir.Value) -> ir.Value:
        """The address of an element."""
        return address_at(self.builder, self.a.dtype, self.a.at, self.builder.add(row, self.scaled(column)))

    def scaled(self, column: ir.Value) -> ir.Value:
        """Where a column begins."""
        return self.builder.mul(column, number(self.n))

    def get(self, place: ir.Value) -> ir.Value:
        return self.builder.load(place, typ=self.number, align=alignment(self.a.dtype))

    def put(self, value: ir.Value, place: ir.Value) -> None:
        self.builder.store(value, place, align=alignment(self.a.dtype))

    def get_vector(self, place: ir.Value) -> ir.Value:
        return self.builder.load(place, typ=self.vector, align=alignment(self.a.dtype))

    def everywhere(self, value: ir.Value) -> ir.Value:
        """A vector of one value."""
        empty = ir.Constant(self.vector, ir.Undefined)
        one = self.builder.insert_element(empty, value, ir.Constant(INT, 0))
        return self.builder.shuffle_vector(one, empty, ir.Constant(ir.VectorType(INT, WIDTH), [0] * WIDTH))

    def less(self, x: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
        """x - a b."""
        return self.builder.fsub(x, self.builder.fmul(a, b, flags=_FUSED), flags=_FUSED)

    def size(self, x: ir.Value) -> ir.Value:
        """|x|."""
        zero = ir.Constant(self.number, 0.0)
        return self.builder.select(self.builder.fcmp_ordered("<", x, zero), self.builder.fneg(x), x)

    def panel(self, first: ir.Value, width: int) -> None:
        """Factor some columns, and take them from the columns behind."""
        b = self.builder
        below = b.add(first, number(width))
        with loop(b, below, first) as c:
            b.call(self.column(), [self.a.at, *self.args, c, below])
        columns = [b.add(first, number(t)) for t in range(width)]
        with loop(b, self.n, below, COLUMNS) as j:
            self.behind(columns, [b.add(j, number(s)) for s in range(COLUMNS)], below)

    def column(self) -> ir.Function:
        """The function (matrix, pivots, column, what is below the panel) that factors one column of a panel."""

        def write(code: _Factors, b: ir.IRBuilder, args: Sequence[ir.Value]) -> None:
            pivots, c, below = args
            code.exchange(pivots, c)
            code.eliminate(c, below)

        name, types = f"func.lu.column.{self.a.dtype.name}.{self.n}", [self.args[0].type, INDEX, INDEX]
        return _function(self.builder, name, self.n, self.a, types, write)

    def exchange(self, pivots: ir.Value, c: ir.Value) -> None:
        """Bring the largest element of a column to its diagonal."""
        b = self.builder
        best, found = slot(b, self.number), slot(b, INDEX)
        b.store(c, found)
        b.store(self.size(self.get(self.at(c, c))), best)
        with loop(b, self.n, b.add(c, number(1))) as i:
            here, before = self.size(self.get(self.at(i, c))), b.load(best, typ=self.number)
            is_larger = b.fcmp_ordered(">", here, before)
            b.store(b.select(is_larger, here, before), best)
            b.store(b.select(is_larger, i, b.load(found, typ=INDEX)), found)
        row = b.load(found, typ=INDEX)
        b.store(b.trunc(row, INT), address_at(b, "int32", pivots, c))
        with b.if_then(b.icmp_signed("!=", row, c)), loop(b, self.n) as j:
            places = self.at(row, j), self.at(c, j)
            x, y = (self.get(place) for place in places)
            self.put(y, places[0])
            self.put(x, places[1])

    def eliminate(self, c: ir.Value, below: ir.Value) -> None:
        """Divide a column by its pivot, and take it from the columns of the panel behind it."""
        b, after = self.builder, self.builder.add(c, number(1))
        pivot, one = self.get(self.at(c, c)), ir.Constant(self.number, 1.0)
        pivot = b.select(b.fcmp_ordered("==", pivot, ir.Constant(self.number, 0.0)), one, pivot)
        tiny = float(np.finfo(self.a.dtype.name).tiny)
        is_tiny = b.fcmp_ordered("<", self.size(pivot), ir.Constant(self.number, tiny))  # whose inverse may overflow
        with b.if_then(is_tiny, likely=False), loop(b, self.n, after) as i:
            place = self.at(i, c)
            self.put(b.fdiv(self.get(place), pivot), place)
        factor = b.select(is_tiny, one, b.fdiv(one, pivot))
        factors = self.everywhere(factor)
        with loop(b, below, after) as i:
            place = self.at(i, c)
            self.put(b.fmul(self.get(place), factor), place)
        with loop(b, self.n, below, WIDTH) as i:
            place = self.at(i, c)
            self.put(b.fmul(self.get_vector(place), factors), place)
        with loop(b, below, after) as j:
            top = self.get(self.at(c, j))
            tops = self.everywhere(top)
            with loop(b, below, after) as i:
                place = self.at(i, j)
                self.put(self.less(self.get(place), self.get(self.at(i, c)), top), place)
            with loop(b, self.n, below, WIDTH) as i:
                place = self.at(i, j)
                self.put(self.less(self.get_vector(place), self.get_vector(self.at(i, c)), tops), place)

    def behind(self, columns: list[ir.Value], own: list[ir.Value], below: ir.Value) -> None:
        """Take a panel from some columns behind it."""
        b = self.builder
        wide: list[list[ir.Value]] = []
        for j in own:
            tops: list[ir.Value] = []
            for t, row in enumerate(columns):
                place = self.at(row, j)
                value = self.get(place)
                for s in range(t):
                    value = self.less(value, self.get(self.at(row, columns[s])), tops[s])
                self.put(value, place)
                tops.append(value)
            wide.append([self.everywhere(top) for top in tops])
        with loop(b, self.n, below, WIDTH) as i:
            cells = [self.at(i, j) for j in own]
            values = [self.get_vector(cell) for cell in cells]
            for t, column in enumerate(columns):
                part = self.get_vector(self.at(i, column))
                values = [self.less(value, part, tops[t]) for value, tops in zip(values, wide, strict=True)]
            for value, cell in zip(values, cells, strict=True):
                self.put(value, cell)
