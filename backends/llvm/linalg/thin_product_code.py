"""The code of `thin_products.py`: a product of matrices by panels of columns, and blocks of rows in registers.

    for terms in steps of DEPTH
        for rows in steps that fit the memory for rows
            copy the rows, where the terms of a row do not lie in memory
            for columns in panels of four vectors, or of one vector at the end
                copy the panel
                for rows in blocks of six
                    the sums of the block, in registers, over all terms of the step

Each result is the sum of the steps in their order, and each step a sum in the order of its terms. So the results do not
depend on how rows and columns are cut into chunks.

Source: K. Goto, R. van de Geijn (2008), Anatomy of high-performance matrix multiplication, ACM TOMS 34, article 12,
sections 4 and 5: which part of which operand lies in which cache.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from func.backends import ir
from func.backends.llvm.linalg.matrix_copies import INDEX, POINTER, address_at, element, loop, number, slot
from func.backends.llvm.linalg.thin_products import VECTORS

ROWS = 6
"""Rows of a block: 24 sums, four vectors and a factor fit 32 registers, 12 sums, two vectors and a factor 16."""
FEW_ROWS = 2
"""Rows of the block at the end, where no more are left."""
DEPTH = {512: 128, 256: 256}
"""Terms of a step: so many rows of a panel take half of a first-level cache or less."""
MOST_TURNED = 8
"""Rows and columns of the squares that are transposed in registers: larger ones are longer code."""
ROW_BYTES = 120 * 1024
"""Memory for copied rows: it stays in the second-level cache."""
MOST_ROWS = 85 * ROWS
"""Rows that are read where they lie, before the next panel: with all terms of a step they stay there too."""
BIT = ir.IntType(1)


def thin_product_module(name: str, match: re.Match[str]) -> ir.Module:
    """The module of void name(m, n, k, x, rows and columns of x, y, rows and columns of y, out, rows of out): out = x y
    for m × k and k × n matrices with strides in elements, of which out has its rows in memory. No length is zero."""
    bits = int(match["bits"])
    module = ir.Module(name)
    module.vector_bytes = bits // 8
    _Product(module, np.dtype(f"f{int(match['width']) // 8}"), bits).emit(name)
    return module


def _function(module: ir.Module, name: str, kinds: Sequence[ir.Type]) -> tuple[ir.IRBuilder, Any]:
    """A builder at the start of a new function without a result, and its arguments."""
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), kinds), name)
    function.attributes.add("nounwind")
    return ir.IRBuilder(function.append_basic_block("entry")), function.args


def _least(b: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    return b.select(b.icmp_signed("<", x, y), x, y)


@contextmanager
def _steps(b: ir.IRBuilder, stop: ir.Value, step: Callable[[ir.Value], ir.Value]) -> Iterator[ir.Value]:
    """The code inside runs for indices from 0 up to `stop`, `step(index)` apart."""
    index = slot(b, INDEX)
    b.store(number(0), index)
    head, body, after = [b.append_basic_block(name) for name in ("steps.head", "steps.body", "steps.after")]
    b.branch(head)
    b.position_at_end(head)
    place = b.load(index, typ=INDEX)
    b.cbranch(b.icmp_signed("<", place, stop), body, after)
    b.position_at_end(body)
    yield place
    b.store(b.add(place, step(place)), index)
    b.branch(head)
    b.position_at_end(after)


def transposed(b: ir.IRBuilder, lines: list[ir.Value]) -> list[ir.Value]:
    """The transpose of a square of vectors: blocks off the diagonal are exchanged, the largest first."""
    count = len(lines)
    lines, step = list(lines), count // 2
    while step:
        low = [lane if not lane & step else count + lane - step for lane in range(count)]
        high = [lane + step if not lane & step else count + lane for lane in range(count)]
        masks = [ir.Constant(ir.VectorType(ir.IntType(32), count), mask) for mask in (low, high)]
        for i in [i for i in range(count) if not i & step]:
            pair = lines[i], lines[i + step]
            lines[i], lines[i + step] = [b.shuffle_vector(*pair, mask) for mask in masks]
        step //= 2
    return lines


class _Product:
    """Writes the functions of one dtype and one length of vectors."""

    def __init__(self, module: ir.Module, dtype: np.dtype[Any], bits: int) -> None:
        self.module, self.dtype = module, dtype
        self.number = element(dtype)
        self.lanes = bits // (8 * dtype.itemsize)
        self.vector = ir.VectorType(self.number, self.lanes)
        self.vectors = VECTORS[bits]
        self.panel = self.lanes * self.vectors
        self.depth = DEPTH[bits]
        self.fused = self.declared(f"llvm.fma.v{self.lanes}f{8 * dtype.itemsize}", self.vector, [self.vector] * 3)

    def emit(self, name: str) -> None:
        """All functions."""
        self.blocks = {
            (rows, vectors): self.block(rows, vectors) for vectors in (1, self.vectors) for rows in (FEW_ROWS, ROWS)
        }
        self.copy_rows = self.row_copies()
        self.copy_panel = self.panel_copies()
        self.copy_corner = self.corner_copies()
        self.product(name)

    def at(self, b: ir.IRBuilder, start: ir.Value, steps: ir.Value | int) -> ir.Value:
        """The address some elements further on."""
        return address_at(b, self.dtype, start, steps)

    def get(self, b: ir.IRBuilder, place: ir.Value, kind: ir.Type | None = None) -> ir.Value:
        return b.load(place, typ=kind or self.number, align=self.dtype.itemsize)

    def put(self, b: ir.IRBuilder, value: ir.Value, place: ir.Value) -> None:
        b.store(value, place, align=self.dtype.itemsize)

    def block(self, rows: int, vectors: int) -> ir.Function:
        """The function (terms, count, x, its rows, its columns, panel, out, its rows, whether out has nothing yet): the
        sums of up to so many rows, and of a panel of so many vectors.

        Where `count` is less, the last row is computed and written again.
        """
        kinds = [INDEX, INDEX, POINTER, INDEX, INDEX, POINTER, POINTER, INDEX, BIT]
        b, args = _function(self.module, f"block_{rows}_{vectors}", kinds)
        b.function.linkage = "internal"
        b.function.attributes.add("noinline")
        terms, count, x, x_row, x_column, panel, out, out_row, is_first = args
        last = b.sub(count, number(1))
        own = [_least(b, number(row), last) if row else number(0) for row in range(rows)]
        starts = [self.at(b, x, b.mul(row, x_row)) for row in own]
        zero = ir.Constant(self.vector, None)
        before, head, after = b.block, b.append_basic_block("term"), b.append_basic_block("sums")
        b.branch(head)
        b.position_at_end(head)
        term, step, there = b.phi(INDEX), b.phi(INDEX), b.phi(POINTER)
        sums = [[b.phi(self.vector) for _ in range(vectors)] for _ in range(rows)]
        columns = [self.get(b, self.at(b, there, place * self.lanes), self.vector) for place in range(vectors)]
        totals = []
        for start, row in zip(starts, sums, strict=True):
            factor = self.everywhere(b, self.get(b, self.at(b, start, step)))
            totals.append(
                [b.call(self.fused, [factor, column, total]) for column, total in zip(columns, row, strict=True)]
            )
        following = b.add(term, number(1))
        pairs = [(term, number(0), following), (step, number(0), b.add(step, x_column))]
        pairs.append((there, panel, self.at(b, there, vectors * self.lanes)))
        pairs += [
            (phi, zero, total)
            for row, sums_of_row in zip(sums, totals, strict=True)
            for phi, total in zip(row, sums_of_row, strict=True)
        ]
        for phi, first, next_one in pairs:
            phi.add_incoming(first, before)
            phi.add_incoming(next_one, head)
        b.cbranch(b.icmp_signed("<", following, terms), head, after)
        b.position_at_end(after)
        places = [self.at(b, out, b.mul(row, out_row)) for row in own]
        cells = [
            (total, self.at(b, place, j * self.lanes))
            for row, place in zip(totals, places, strict=True)
            for j, total in enumerate(row)
        ]
        with b.if_else(is_first) as (fresh, again):
            with fresh:
                for value, place in cells:
                    self.put(b, value, place)
            with again:  # all are read before one is written, since the last row may be there twice
                values = [b.fadd(self.get(b, place, self.vector), value) for value, place in cells]
                for value, (_, place) in zip(values, cells, strict=True):
                    self.put(b, value, place)
        b.ret_void()
        return b.function

    def everywhere(self, b: ir.IRBuilder, value: ir.Value) -> ir.Value:
        """A vector of one value."""
        empty = ir.Constant(ir.VectorType(value.type, self.lanes), ir.Undefined)
        one = b.insert_element(empty, value, ir.Constant(ir.IntType(32), 0))
        return b.shuffle_vector(one, empty, ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), [0] * self.lanes))

    def row_copies(self) -> ir.Function:
        """The function (rows, terms, x, its rows, its columns, target) that copies rows by blocks, term by term."""
        b, args = _function(self.module, "copy_rows", [INDEX, INDEX, POINTER, INDEX, INDEX, POINTER])
        b.function.linkage = "internal"
        rows, terms, x, x_row, x_column, target = args
        half = ir.VectorType(self.number, ROWS - 2)
        lie_together = b.icmp_signed("==", x_row, number(1))
        with loop(b, rows, step=ROWS) as i:
            count = _least(b, number(ROWS), b.sub(rows, i))
            source, place = self.at(b, x, b.mul(i, x_row)), self.at(b, target, b.mul(i, terms))
            is_whole = b.and_(lie_together, b.icmp_signed("==", count, number(ROWS)))
            with b.if_else(is_whole) as (whole, part):
                with whole, loop(b, terms) as q:  # six rows as two overlapping vectors of four
                    here, there = self.at(b, source, b.mul(q, x_column)), self.at(b, place, b.mul(q, number(ROWS)))
                    parts = [self.get(b, self.at(b, here, start), half) for start in (0, 2)]
                    for start, value in zip((0, 2), parts, strict=True):
                        self.put(b, value, self.at(b, there, start))
                with part, loop(b, terms) as q, loop(b, count) as row:
                    here = self.at(b, source, b.add(b.mul(q, x_column), b.mul(row, x_row)))
                    self.put(b, self.get(b, here), self.at(b, place, b.add(b.mul(q, count), row)))
        b.ret_void()
        return b.function

    def panel_copies(self) -> ir.Function:
        """The function (terms, columns, width, y, its rows, its columns, target) that copies a panel and fills it up
        with zeros to its width."""
        b, args = _function(self.module, "copy_panel", [INDEX, INDEX, INDEX, POINTER, INDEX, INDEX, POINTER])
        b.function.linkage = "internal"
        terms, columns, width, y, y_row, y_column, target = args
        is_whole = b.icmp_signed("==", columns, width)
        in_rows = b.and_(is_whole, b.icmp_signed("==", y_column, number(1)))
        in_columns = b.and_(is_whole, b.icmp_signed("==", y_row, number(1)))
        with b.if_else(in_rows) as (straight, other):
            with straight, loop(b, terms) as q:
                here, there = self.at(b, y, b.mul(q, y_row)), self.at(b, target, b.mul(q, width))
                with loop(b, width, step=self.lanes) as j:
                    self.put(b, self.get(b, self.at(b, here, j), self.vector), self.at(b, there, j))
            with other, b.if_else(in_columns) as (turned, single):
                with turned:
                    self.turned_panel(b, terms, width, y, y_column, target)
                with single, loop(b, terms) as q:
                    here, there = self.at(b, y, b.mul(q, y_row)), self.at(b, target, b.mul(q, width))
                    with loop(b, columns) as j:
                        self.put(b, self.get(b, self.at(b, here, b.mul(j, y_column))), self.at(b, there, j))
                    with loop(b, width, columns) as j:
                        self.put(b, ir.Constant(self.number, 0.0), self.at(b, there, j))
        b.ret_void()
        return b.function

    def turned_panel(
        self, b: ir.IRBuilder, terms: ir.Value, width: ir.Value, y: ir.Value, y_column: ir.Value, target: ir.Value
    ) -> None:
        """Copy a panel whose columns lie in memory, by square blocks, and the last terms one by one."""
        side = min(self.lanes, MOST_TURNED)
        whole, kind = b.sub(terms, b.urem(terms, number(side))), ir.VectorType(self.number, side)
        with loop(b, width, step=side) as j:
            source = self.at(b, y, b.mul(j, y_column))
            lines = [self.at(b, source, b.mul(y_column, number(line))) for line in range(side)]
            with loop(b, whole, step=side) as q:
                square = transposed(b, [self.get(b, self.at(b, line, q), kind) for line in lines])
                for place, value in enumerate(square):
                    row = b.mul(b.add(q, number(place)), width)
                    self.put(b, value, self.at(b, target, b.add(row, j)))
            with loop(b, terms, whole) as q, loop(b, number(side)) as line:
                value = self.get(b, self.at(b, source, b.add(b.mul(line, y_column), q)))
                self.put(b, value, self.at(b, target, b.add(b.mul(q, width), b.add(j, line))))

    def product(self, name: str) -> None:
        """The function of the module."""
        kinds = [INDEX, INDEX, INDEX, POINTER, INDEX, INDEX, POINTER, INDEX, INDEX, POINTER, INDEX]
        b, args = _function(self.module, name, kinds)
        m, n, k, x, x_row, x_column, y, y_row, y_column, out, out_row = args
        size = self.dtype.itemsize
        panel = b.alloca(ir.ArrayType(self.number, self.depth * self.panel), align=64)
        copied = b.alloca(ir.ArrayType(self.number, ROW_BYTES // size), align=64)
        corner = b.alloca(ir.ArrayType(self.number, ROWS * self.panel), align=64)
        is_copied = b.icmp_signed("!=", x_column, number(1))
        with loop(b, k, step=self.depth) as term:
            terms = _least(b, number(self.depth), b.sub(k, term))
            is_first = b.icmp_signed("==", term, number(0))
            blocks = b.udiv(number(ROW_BYTES // size // ROWS), terms)
            most = b.select(is_copied, b.mul(blocks, number(ROWS)), number(MOST_ROWS))
            with _steps(b, m, lambda _: most) as top:
                rows = _least(b, most, b.sub(m, top))
                source = self.at(b, x, b.add(b.mul(top, x_row), b.mul(term, x_column)))
                with b.if_then(is_copied):
                    b.call(self.copy_rows, [rows, terms, source, x_row, x_column, copied])
                with _steps(b, n, lambda column: self.width(b, b.sub(n, column))) as column:
                    width = self.width(b, b.sub(n, column))
                    columns = _least(b, width, b.sub(n, column))
                    start = self.at(b, y, b.add(b.mul(term, y_row), b.mul(column, y_column)))
                    b.call(self.copy_panel, [terms, columns, width, start, y_row, y_column, panel])
                    is_partial = b.icmp_signed("<", columns, width)
                    with loop(b, rows, step=ROWS) as i:
                        count = _least(b, number(ROWS), b.sub(rows, i))
                        target = self.at(b, out, b.add(b.mul(b.add(top, i), out_row), column))
                        arguments = [
                            terms,
                            count,
                            b.select(
                                is_copied,
                                self.at(b, copied, b.mul(i, terms)),
                                self.at(b, source, b.mul(i, x_row)),
                            ),
                            b.select(is_copied, number(1), x_row),
                            b.select(is_copied, count, number(1)),
                            panel,
                            b.select(is_partial, corner, target),
                            b.select(is_partial, width, out_row),
                            is_first,
                        ]
                        sizes = [count, columns, width]
                        with b.if_then(b.and_(is_partial, b.not_(is_first)), likely=False):
                            b.call(self.copy_corner, [*sizes, target, out_row, corner, width])
                        self.choose(b, count, width, arguments)
                        with b.if_then(is_partial, likely=False):
                            b.call(self.copy_corner, [*sizes, corner, width, target, out_row])
        b.ret_void()

    def width(self, b: ir.IRBuilder, left: ir.Value) -> ir.Value:
        """The width of the next panel where so many columns are left: one vector where no more than two are left."""
        is_wide = b.icmp_signed(">", left, number(self.panel // 2))
        return b.select(is_wide, number(self.panel), number(self.lanes))

    def choose(self, b: ir.IRBuilder, count: ir.Value, width: ir.Value, arguments: Sequence[ir.Value]) -> None:
        """Call the function of a block."""
        is_wide = b.icmp_signed("==", width, number(self.panel))
        are_few = b.icmp_signed("<=", count, number(FEW_ROWS))
        with b.if_else(is_wide) as (wide, narrow):
            for panel, vectors in ((wide, self.vectors), (narrow, 1)):
                with panel, b.if_else(are_few, likely=False) as (few, many):
                    for block, rows in ((few, FEW_ROWS), (many, ROWS)):
                        with block:
                            b.call(self.blocks[rows, vectors], arguments)

    def corner_copies(self) -> ir.Function:
        """The function (rows, columns, width, source, its rows, target, its rows) that copies the first columns of
        rows, by vectors without the lanes behind them."""
        kinds = [INDEX, INDEX, INDEX, POINTER, INDEX, POINTER, INDEX]
        b, args = _function(self.module, "copy_corner", kinds)
        b.function.linkage = "internal"
        b.function.attributes.add("noinline")
        rows, columns, width, source, source_row, target, target_row = args
        places = ir.VectorType(INDEX, self.lanes)
        truth, alignment = ir.VectorType(BIT, self.lanes), ir.Constant(ir.IntType(32), self.dtype.itemsize)
        suffix = f"v{self.lanes}f{8 * self.dtype.itemsize}.p0"
        load = self.declared(f"llvm.masked.load.{suffix}", self.vector, [POINTER, alignment.type, truth, self.vector])
        kinds = [self.vector, POINTER, alignment.type, truth]
        store = self.declared(f"llvm.masked.store.{suffix}", ir.VoidType(), kinds)
        lanes = ir.Constant(places, list(range(self.lanes)))
        with loop(b, width, step=self.lanes) as j:
            mask = b.icmp_signed("<", lanes, self.everywhere(b, b.sub(columns, j)))
            with loop(b, rows) as i:
                here = self.at(b, source, b.add(b.mul(i, source_row), j))
                there = self.at(b, target, b.add(b.mul(i, target_row), j))
                value = b.call(load, [here, alignment, mask, ir.Constant(self.vector, None)])
                b.call(store, [value, there, alignment, mask])
        b.ret_void()
        return b.function

    def declared(self, name: str, result: ir.Type, kinds: Sequence[ir.Type]) -> ir.Function:
        """An intrinsic function."""
        return ir.Function(self.module, ir.FunctionType(result, kinds), name)
