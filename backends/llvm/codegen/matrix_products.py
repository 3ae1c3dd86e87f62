"""Products of matrices: small ones as loops over registers, large ones by BLAS.

Small products loop over blocks of rows and of vectors of columns, whose sums stay in registers during the summed axis.
If the summed axis is last in both operands, a product sums vectors instead.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from func.backends import ir
from func.backends.llvm.codegen.bodies import CodeContext
from func.backends.llvm.codegen.counted_loops import LoopChunk, loop, number, span
from func.backends.llvm.codegen.parallel import Task
from func.backends.llvm.linalg import blas, routines, thin_products
from func.backends.llvm.linalg.blas_threads import BlasThreads, has_control
from func.backends.llvm.linalg.matrix_copies import Matrix
from func.backends.llvm.math.own_functions import Features
from func.backends.loops.kernels import Chunking, Dot, DType, StridedRef
from func.backends.loops.product_blocks import is_turned, step_of
from func.backends.scalars.ir_values import constant, element, splat, stored, widened

ROWS = 4
"""Columns of a block whose sums run along the summed axis."""
MOST_ROWS, MOST_VECTORS = 6, 8
"""Rows and vectors of columns of a block: more make long code."""
LATENCY = 4
"""Cycles from one addition to a sum to the next one; processors start two in a cycle, and two loads."""
PACKED = 1 << 14
"""Bytes of the largest matrix that is copied to the stack, so that its rows lie in memory: half a first-level cache."""
REPEATED = 16
"""Rows of the other matrix from which on such a copy pays: each of them reads it once more."""
BY_BLAS = 48**3
"""Products of more multiplications than this go to BLAS."""

Grid: TypeAlias = tuple[int, int, int]
Problem: TypeAlias = tuple["StridedMatrix", "StridedMatrix", "StridedMatrix", int, int, int]
"""A product: out, x, y, and the lengths m, k, n."""


class DotPrinter:
    """Emits products, or the chunk `chunk` of each of them."""

    def __init__(
        self, context: CodeContext, features: Features, threads: BlasThreads, chunk: ir.Value | None = None
    ) -> None:
        self.context = context
        self.builder = context.builder
        self.scalars = context.scalars
        self.features = features
        self.threads = threads
        self.chunk = chunk

    def emit(self, dot: Dot) -> None:
        """A product for every index of the batch axes."""
        grid = self._grid(dot)
        if grid == (1, 1, 1):
            self._batched(dot, grid, 0, [])
            return
        task = Task(self.context, Chunking(0, math.prod(grid)))
        DotPrinter(task.context, self.features, self.threads, task.chunk)._batched(dot, grid, 0, [])
        task.run()

    def _grid(self, dot: Dot) -> Grid:
        """The chunks of a product; cuts rows and columns only for BLAS with a controllable number of threads."""
        oriented = _oriented(*_matrices(dot, [None] * 3), *dot.sizes)
        if not self._is_large(dot.out.buffer.dtype, *oriented):
            return dot.grid[0], 1, 1
        if self._is_thin(dot.out.buffer.dtype, *oriented):
            return dot.grid
        self.threads.hold()
        return dot.grid if has_control() else (1, 1, 1)

    def _batched(self, dot: Dot, grid: Grid, depth: int, at: list[ir.Value]) -> None:
        if depth == len(dot.batch):
            starts = [self._start(ref, at) for ref in (dot.out, dot.x, dot.y)]
            self._product(dot.out.buffer.dtype, grid, (*_matrices(dot, starts), *dot.sizes))
            return
        length = dot.batch[depth]

        def body(i: ir.Value) -> None:
            self._batched(dot, grid, depth + 1, [*at, i])

        if depth == 0 and grid[0] > 1:
            chunk = self.builder.udiv(self.chunk, number(grid[1] * grid[2]))
            span(self.builder, *LoopChunk(0, chunk, grid[0]).bounds(self.builder, length, 1), 1, body)
        else:
            loop(self.builder, length, 1, body)

    def _start(self, ref: StridedRef, at: list[ir.Value]) -> ir.Value:
        b = self.builder
        total: Any = number(ref.offset)
        for stride, i in zip(ref.strides, at, strict=False):
            if stride:
                total = b.add(total, b.mul(i, number(stride)))
        return b.gep(self.context.memory.pointer(ref.buffer), [total], source_etype=stored(ref.buffer.dtype))

    def _product(self, dtype: DType, grid: Grid, problem: Problem) -> None:
        oriented = _oriented(*problem)
        out, x, y, _, k, n = oriented
        if self._is_large(dtype, *oriented):
            cuts = grid[1:] if out is problem[0] else grid[:0:-1]
            self._chunked(dtype, cuts, *oriented)
        elif n > 1 and y.second == 1 and out.second == 1:
            self._columns(dtype, *oriented)
        elif x.second == 1 and y.first == 1 and k > 1:
            self._by_rows_of_both(dtype, *oriented)
        else:
            self._element_by_element(dtype, *oriented)

    def _by_rows_of_both(
        self, dtype: DType, out: StridedMatrix, x: StridedMatrix, y: StridedMatrix, m: int, k: int, n: int
    ) -> None:
        """For a summed axis that is last in both operands: sums along it, or a copy of the smaller operand.

        The copy pays if the other operand has many rows: it saves adding up the lanes of every sum.
        """
        if out.second != 1 and out.first == 1:
            out, x, y, m, n = out.turned(), y.turned(), x.turned(), n, m
        if out.second == 1 and m >= REPEATED and n >= ROWS and k * n * dtype.itemsize <= PACKED:
            self._columns(dtype, out, x, self._packed(dtype, y, k, n), m, k, n)
        else:
            self._sums(dtype, out, x, y, m, k, n)

    def _is_large(
        self, dtype: DType, out: StridedMatrix, x: StridedMatrix, y: StridedMatrix, m: int, k: int, n: int
    ) -> bool:
        if dtype.kind != "f" or m * k * n <= BY_BLAS or min(m, n) == 1 or not routines.fits(m, k, n):
            return False
        return out.second == 1 and x.is_matrix(m, k) and y.is_matrix(k, n)

    def _is_thin(
        self, dtype: DType, out: StridedMatrix, x: StridedMatrix, y: StridedMatrix, m: int, k: int, n: int
    ) -> bool:
        return thin_products.is_thin(self.features, dtype, (m, k, n), y.second == 1)

    def _chunked(
        self,
        dtype: DType,
        cuts: tuple[int, ...],
        out: StridedMatrix,
        x: StridedMatrix,
        y: StridedMatrix,
        m: int,
        k: int,
        n: int,
    ) -> None:
        """A large product: the whole of it, or one chunk of its rows and columns."""
        is_thin = self._is_thin(dtype, out, x, y, m, k, n)
        value = number if is_thin else functools.partial(routines.constant, self.builder)
        i, rows = self._chunk_of(m, cuts[0], cuts[1], value)
        j, columns = self._chunk_of(n, cuts[1], 1, value)
        left = self._at(dtype, x.start, (i, x.first))
        right = self._at(dtype, y.start, (j, y.second))
        target = self._at(dtype, out.start, (i, out.first), (j, out.second))
        if is_thin:
            strides = [[number(matrix.first), number(matrix.second)] for matrix in (x, y)]
            places = [left, *strides[0], right, *strides[1], target, number(out.first)]
            lengths = [number(length) if isinstance(length, int) else length for length in (rows, columns, k)]
            self._thin_product(dtype, [*lengths, *places])
            return
        blas.emit_gemm(
            self.builder,
            rows,
            columns,
            k,
            Matrix(left, x.leading(m, k), dtype),
            "T" if x.is_turned(m, k) else "N",
            Matrix(right, y.leading(k, n), dtype),
            "T" if y.is_turned(k, n) else "N",
            Matrix(target, max(out.first, n), dtype),
        )

    def _thin_product(self, dtype: DType, arguments: Sequence[ir.Value]) -> None:
        """Call the function of products with a short side."""
        module, name = self.builder.module, thin_products.name_of(self.features, dtype)
        kind = ir.FunctionType(ir.VoidType(), [argument.type for argument in arguments])
        function = module.globals.get(name) or ir.Function(module, kind, name)
        function.attributes.add("nounwind")
        self.builder.call(function, arguments)

    def _chunk_of(self, length: int, cuts: int, others: int, value: Callable[[int], ir.Value]) -> tuple[ir.Value, Any]:
        """The start of the chunk along an axis, and its length, as values if it depends on the chunk.

        `others` is the number of successive chunks with the same place along the axis.
        """
        if cuts == 1:
            return number(0), length
        b = self.builder
        place = b.urem(b.udiv(self.chunk, number(others)), number(cuts))
        step = step_of(length, cuts)
        is_last = b.icmp_unsigned("==", place, number(cuts - 1))
        rest, whole = value(length - step * (cuts - 1)), value(step)
        return b.mul(place, number(step)), b.select(is_last, rest, whole)

    def _fused(self, dtype: DType, x: ir.Value, y: ir.Value, total: ir.Value) -> ir.Value:
        """x * y + total."""
        if dtype.kind == "f":
            if self.features.fma:
                return self.scalars.intrinsic("fma", x, y, total)
            return self.builder.fadd(self.builder.fmul(x, y), total)
        return self.builder.add(self.builder.mul(x, y), total)

    def _at(self, dtype: DType, start: ir.Value, *terms: tuple[ir.Value, int]) -> ir.Value:
        b = self.builder
        total: Any = None
        for i, stride in terms:
            if stride == 0:
                continue
            term = i if stride == 1 else b.mul(i, number(stride))
            total = term if total is None else b.add(total, term)
        return start if total is None else b.gep(start, [total], source_etype=stored(dtype))

    def _columns(
        self, dtype: DType, out: StridedMatrix, x: StridedMatrix, y: StridedMatrix, m: int, k: int, n: int
    ) -> None:
        """Vectors along the columns of y; if they do not fit, the last one begins early and repeats some columns."""
        b = self.builder
        native = max(1, self.features.bits // (8 * dtype.itemsize))
        width = min(native, 1 << (n.bit_length() - 1))
        vectors = -(-n // width)
        most_rows, group = tile_of(m, vectors, 32 if self.features.bits == 512 else 16)
        whole = (vectors - (n % width != 0)) // group * group
        last = [number(min(place * width, n - width)) for place in range(whole, vectors)]

        def rows(i: ir.Value, count: int) -> None:
            def columns(j: ir.Value) -> None:
                first = b.mul(j, number(width))
                starts = [b.add(first, number(place * width)) if place else first for place in range(group)]
                self._block(dtype, out, x, y, k, i, starts, count, width)

            if whole:
                loop(b, whole, group, columns)
            if last:
                self._block(dtype, out, x, y, k, i, last, count, width)

        self._steps(m, most_rows, rows)

    def _steps(self, length: int, step: int, body: Callable[[ir.Value, int], None]) -> None:
        """body(start, count) over the length in steps, and the rest."""
        whole = length // step * step
        if whole:
            loop(self.builder, whole, step, lambda i: body(i, step))
        if length - whole:
            body(number(whole), length - whole)

    def _block(
        self,
        dtype: DType,
        out: StridedMatrix,
        x: StridedMatrix,
        y: StridedMatrix,
        k: int,
        i: ir.Value,
        starts: Sequence[ir.Value],
        count: int,
        width: int,
    ) -> None:
        """The results of `count` rows from i on and of vectors of columns: sums in registers."""
        b = self.builder
        kind = widened(element(dtype), width)
        with b.goto_entry_block():
            sums = [[b.alloca(kind) for _ in starts] for _ in range(count)]
        for accumulator in [accumulator for row in sums for accumulator in row]:
            b.store(constant(dtype, 0, width), accumulator)
        rows = [b.add(i, number(row)) if row else i for row in range(count)]
        lefts = [self._at(dtype, x.start, (row, x.first)) for row in rows]
        rights = [self._at(dtype, y.start, (j, y.second)) for j in starts]

        def step(place: ir.Value) -> None:
            vectors = [
                b.load(self._at(dtype, right, (place, y.first)), align=dtype.itemsize, typ=kind) for right in rights
            ]
            for row, left in zip(sums, lefts, strict=True):
                factor = b.load(self._at(dtype, left, (place, x.second)), align=dtype.itemsize, typ=element(dtype))
                spread = splat(b, factor, width)
                for accumulator, vector in zip(row, vectors, strict=True):
                    b.store(self._fused(dtype, spread, vector, b.load(accumulator, typ=kind)), accumulator)

        loop(b, k, 1, step)
        for place, accumulators in zip(rows, sums, strict=True):
            for j, accumulator in zip(starts, accumulators, strict=True):
                pointer = self._at(dtype, out.start, (place, out.first), (j, out.second))
                b.store(b.load(accumulator, typ=kind), pointer, align=dtype.itemsize)

    def _packed(self, dtype: DType, y: StridedMatrix, k: int, n: int) -> StridedMatrix:
        """A copy of a matrix on the stack, with its rows in memory."""
        b = self.builder
        with b.goto_entry_block():
            start = b.alloca(ir.ArrayType(element(dtype), k * n))
        packed = StridedMatrix(start, n, 1)

        def copy(j: ir.Value, place: ir.Value) -> None:
            source = self._at(dtype, y.start, (place, y.first), (j, y.second))
            target = self._at(dtype, start, (place, n), (j, 1))
            value = b.load(source, align=dtype.itemsize, typ=element(dtype))
            b.store(value, target, align=dtype.itemsize)

        loop(b, n, 1, lambda j: loop(b, k, 1, lambda place: copy(j, place)))
        return packed

    def _sums(
        self, dtype: DType, out: StridedMatrix, x: StridedMatrix, y: StridedMatrix, m: int, k: int, n: int
    ) -> None:
        """Vectors along the summed axis."""
        b = self.builder
        native = max(1, self.features.bits // (8 * dtype.itemsize))
        width = min(native * 2, k)
        kind = widened(element(dtype), width)

        def columns(j: ir.Value, count: int) -> None:
            starts = [
                self._at(dtype, y.start, (b.add(j, number(place)) if place else j, y.second)) for place in range(count)
            ]
            with b.goto_entry_block():
                sums = [b.alloca(kind) for _ in range(count)]
            loop(b, m, 1, lambda i: row(i, j, starts, sums))

        def row(i: ir.Value, j: ir.Value, starts: list[Any], sums: list[Any]) -> None:
            for accumulator in sums:
                b.store(constant(dtype, 0, width), accumulator)
            first = self._at(dtype, x.start, (i, x.first))
            main = k // width * width

            def step(place: ir.Value) -> None:
                left = b.load(self._at(dtype, first, (place, 1)), align=dtype.itemsize, typ=kind)
                for accumulator, start in zip(sums, starts, strict=True):
                    right = b.load(self._at(dtype, start, (place, 1)), align=dtype.itemsize, typ=kind)
                    b.store(self._fused(dtype, left, right, b.load(accumulator, typ=kind)), accumulator)

            loop(b, main, width, step)
            for column, (accumulator, start) in enumerate(zip(sums, starts, strict=True)):
                total = self._folded(dtype, b.load(accumulator, typ=kind), width)
                if k > main:
                    rest = widened(element(dtype), k - main)
                    left = b.load(self._at(dtype, first, (number(main), 1)), align=dtype.itemsize, typ=rest)
                    right = b.load(self._at(dtype, start, (number(main), 1)), align=dtype.itemsize, typ=rest)
                    product = b.fmul(left, right) if dtype.kind == "f" else b.mul(left, right)
                    total = self._added(dtype, total, self._folded(dtype, product, k - main))
                place = b.add(j, number(column)) if column else j
                b.store(total, self._at(dtype, out.start, (i, out.first), (place, out.second)), align=dtype.itemsize)

        self._steps(n, ROWS, columns)

    def _added(self, dtype: DType, x: ir.Value, y: ir.Value) -> ir.Value:
        return self.builder.fadd(x, y) if dtype.kind == "f" else self.builder.add(x, y)

    def _folded(self, dtype: DType, value: ir.Value, width: int) -> ir.Value:
        """The sum of the lanes."""
        b, place = self.builder, ir.IntType(32)
        if width == 1:
            return value
        lanes = [b.extract_element(value, ir.Constant(place, lane)) for lane in range(width)]
        while len(lanes) > 1:
            half = (len(lanes) + 1) // 2
            lanes = [
                self._added(dtype, lanes[i], lanes[half + i]) if half + i < len(lanes) else lanes[i]
                for i in range(half)
            ]
        return lanes[0]

    def _element_by_element(
        self, dtype: DType, out: StridedMatrix, x: StridedMatrix, y: StridedMatrix, m: int, k: int, n: int
    ) -> None:
        """One element after the other."""
        b = self.builder
        kind = element(dtype)

        def cell(i: ir.Value, j: ir.Value) -> None:
            with b.goto_entry_block():
                total = b.alloca(kind)
            b.store(constant(dtype, 0), total)

            def step(place: ir.Value) -> None:
                here = self._at(dtype, x.start, (i, x.first), (place, x.second))
                there = self._at(dtype, y.start, (place, y.first), (j, y.second))
                left = b.load(here, align=dtype.itemsize, typ=kind)
                right = b.load(there, align=dtype.itemsize, typ=kind)
                b.store(self._fused(dtype, left, right, b.load(total, typ=kind)), total)

            loop(b, k, 1, step)
            pointer = self._at(dtype, out.start, (i, out.first), (j, out.second))
            b.store(b.load(total, typ=kind), pointer, align=dtype.itemsize)

        loop(b, m, 1, lambda i: loop(b, n, 1, lambda j: cell(i, j)))


@functools.cache
def tile_of(rows: int, vectors: int, registers: int) -> tuple[int, int]:
    """The rows and the vectors of columns of blocks that take a product the fewest cycles.

    The sums of a block, its vectors of columns and a factor must fit the registers. A step along the summed axis takes
    half a cycle for every multiplication and every load, and no less than the latency of an addition.

    >>> tile_of(100, 2, 16), tile_of(10, 2, 32), tile_of(10, 3, 16)
    ((4, 2), (5, 2), (4, 3))
    """

    def cycles(r: int, v: int) -> float:
        return max(LATENCY, r * v / 2, (r + v) / 2) if r and v else 0.0

    def total(r: int, v: int) -> float:
        heights, widths = [(rows // r, r), (1, rows % r)], [(vectors // v, v), (1, vectors % v)]
        return sum([times * often * cycles(high, wide) for times, high in heights for often, wide in widths])

    tiles = [
        (r, v)
        for r in range(1, min(rows, MOST_ROWS) + 1)
        for v in range(1, min(vectors, MOST_VECTORS) + 1)
        if r * v + v + 1 <= registers
    ]
    return min(tiles, key=lambda tile: (total(*tile), tile[0] * tile[1]))


class StridedMatrix:
    """A matrix in memory: the address of its first element and its two strides."""

    def __init__(self, start: Any, first: int, second: int) -> None:
        self.start = start
        self.first = first
        self.second = second

    def turned(self) -> StridedMatrix:
        """The transpose."""
        return StridedMatrix(self.start, self.second, self.first)

    def is_matrix(self, rows: int, columns: int) -> bool:
        """Whether BLAS can read it: one of the strides is one, the other long enough."""
        return ((self.second == 1 or columns == 1) and self.first >= columns) or (
            (self.first == 1 or rows == 1) and self.second >= rows
        )

    def is_turned(self, rows: int, columns: int) -> bool:
        """Whether the rows lie next to each other, not the columns."""
        return not (self.second == 1 and self.first >= columns)

    def leading(self, rows: int, columns: int) -> int:
        """The other stride."""
        return self.second if self.is_turned(rows, columns) else self.first


def _matrices(dot: Dot, starts: Sequence[Any]) -> tuple[StridedMatrix, StridedMatrix, StridedMatrix]:
    """The matrices of a product from their start addresses."""
    out, x, y = [
        StridedMatrix(start, *ref.strides[-2:]) for start, ref in zip(starts, (dot.out, dot.x, dot.y), strict=True)
    ]
    return out, x, y


def _oriented(out: StridedMatrix, x: StridedMatrix, y: StridedMatrix, m: int, k: int, n: int) -> Problem:
    """The product, transposed if that makes its results contiguous along rows."""
    if is_turned(m, n, *[(matrix.first, matrix.second) for matrix in (out, x, y)]):
        return out.turned(), y.turned(), x.turned(), n, k, m
    return out, x, y, m, k, n
