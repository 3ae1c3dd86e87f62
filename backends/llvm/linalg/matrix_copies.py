"""Moving matrices in native code: loops, transposed copies, triangles.

Rows lie in memory. A complex number is a vector of two floats.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from func.backends import ir
from func.backends.loops.kernels import DType

INT = ir.IntType(32)
INDEX = ir.IntType(64)
BYTE = ir.IntType(8)
FLAG = ir.IntType(1)
FLOAT = ir.FloatType()
DOUBLE = ir.DoubleType()
POINTER = ir.PointerType()

_ELEMENTS = {
    "int32": INT,
    "int64": INDEX,
    "float32": FLOAT,
    "float64": DOUBLE,
    "complex64": ir.VectorType(FLOAT, 2),
    "complex128": ir.VectorType(DOUBLE, 2),
}

BLOCK = 16
"""Rows and columns of the blocks that are transposed one after the other, so that their cache lines stay near."""


class Matrix(NamedTuple):
    """A matrix or a vector in memory: its address, the elements from one row to the next, and its dtype."""

    at: ir.Value
    ld: int
    dtype: DType

    def shifted(self, builder: ir.IRBuilder, steps: ir.Value | int) -> "Matrix":
        """The matrix that begins `steps` elements further on."""
        return self._replace(at=address_at(builder, self.dtype, self.at, steps))


def element(dtype: Any) -> ir.Type:
    """LLVM's type of a number in memory.

    >>> print(element("complex64"))
    <2 x float>
    """
    return _ELEMENTS[np.dtype(dtype).name]


def alignment(dtype: Any) -> int:
    """The alignment of a number in bytes: that of its real part."""
    size: int = np.dtype(dtype).itemsize
    return size // 2 if np.dtype(dtype).kind == "c" else size


def real_element(dtype: Any) -> ir.Type:
    """LLVM's type of the real part of a number."""
    return FLOAT if alignment(dtype) == 4 else DOUBLE


def number(value: int) -> ir.Constant:
    return ir.Constant(INDEX, value)


def address_at(builder: ir.IRBuilder, dtype: Any, start: ir.Value, steps: ir.Value | int) -> ir.Value:
    """The address `steps` elements after the start."""
    steps = number(steps) if isinstance(steps, int) else steps
    return builder.gep(start, [steps], source_etype=element(dtype))


def slot(builder: ir.IRBuilder, kind: ir.Type = INT) -> ir.Value:
    """Room for a value on the function's stack, allocated once however often the code runs."""
    with builder.goto_entry_block():
        return builder.alloca(kind)


@contextmanager
def loop(builder: ir.IRBuilder, stop: ir.Value | int, start: ir.Value | int = 0, step: int = 1) -> Iterator[ir.Value]:
    """The code written inside runs for every index from `start` up to `stop`."""
    stop = number(stop) if isinstance(stop, int) else stop
    start = number(start) if isinstance(start, int) else start
    before = builder.block
    head, body, after = (builder.append_basic_block(name) for name in ("loop.head", "loop.body", "loop.after"))
    builder.branch(head)
    builder.position_at_end(head)
    index = builder.phi(INDEX)
    index.add_incoming(start, before)
    builder.cbranch(builder.icmp_signed("<", index, stop), body, after)
    builder.position_at_end(body)
    yield index
    index.add_incoming(builder.add(index, number(step)), builder.block)
    builder.branch(head)
    builder.position_at_end(after)


def _least(builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    return builder.select(builder.icmp_signed("<", x, y), x, y)


class _Elements:
    """Reads and writes elements of a matrix."""

    def __init__(self, builder: ir.IRBuilder, dtype: DType, start: ir.Value, ld: ir.Value) -> None:
        self.builder, self.dtype, self.start, self.ld = builder, dtype, start, ld

    def address(self, row: ir.Value, column: ir.Value) -> ir.Value:
        place = self.builder.add(self.builder.mul(row, self.ld), column)
        return address_at(self.builder, self.dtype, self.start, place)

    def load(self, row: ir.Value, column: ir.Value) -> ir.Value:
        return self.builder.load(self.address(row, column), align=alignment(self.dtype), typ=element(self.dtype))

    def store(self, value: ir.Value, row: ir.Value, column: ir.Value) -> None:
        self.builder.store(value, self.address(row, column), align=alignment(self.dtype))


def _conjugate(builder: ir.IRBuilder, dtype: DType, value: ir.Value) -> ir.Value:
    if dtype.kind != "c":
        return value
    imaginary = ir.Constant(INT, 1)
    return builder.insert_element(value, builder.fneg(builder.extract_element(value, imaginary)), imaginary)


Write: TypeAlias = Callable[[ir.IRBuilder, list[_Elements], Sequence[ir.Value]], None]


def _call_helper(
    builder: ir.IRBuilder, name: str, matrices: Sequence[Matrix], rows: int, columns: int, write: Write
) -> None:
    """Call a function of the module over matrices (address, ld)… and the numbers of rows and columns.

    `write` emits its body when the module does not have it yet.
    """
    dtype = matrices[0].dtype
    full = f"func.{name}.{dtype.name}"
    function: ir.Function | None = builder.module.globals.get(full)
    if function is None:
        kind = ir.FunctionType(ir.VoidType(), [POINTER, INDEX] * len(matrices) + [INDEX, INDEX])
        function = ir.Function(builder.module, kind, full)
        function.linkage = "internal"
        function.attributes.add("nounwind")
        inner = ir.IRBuilder(function.append_basic_block("entry"))
        *places, height, width = function.args
        cells = [_Elements(inner, dtype, *places[i : i + 2]) for i in range(0, len(places), 2)]
        write(inner, cells, (height, width))
        inner.ret_void()
    arguments = [value for matrix in matrices for value in (matrix.at, number(matrix.ld))]
    builder.call(function, [*arguments, number(rows), number(columns)])


def emit_transpose(builder: ir.IRBuilder, rows: int, columns: int, source: Matrix, target: Matrix) -> None:
    """Write the transpose of a matrix of (rows, columns) to other memory."""
    if rows == 0 or columns == 0:
        return

    def write(b: ir.IRBuilder, cells: list[_Elements], shape: Sequence[ir.Value]) -> None:
        here, there = cells
        with (
            loop(b, shape[0], step=BLOCK) as top,
            loop(b, shape[1], step=BLOCK) as left,
            loop(b, _least(b, b.add(left, number(BLOCK)), shape[1]), left) as j,
            loop(b, _least(b, b.add(top, number(BLOCK)), shape[0]), top) as i,
        ):
            there.store(here.load(i, j), j, i)

    _call_helper(builder, "transpose", [source, target], rows, columns, write)


def emit_copy(builder: ir.IRBuilder, rows: int, columns: int, source: Matrix, target: Matrix) -> None:
    """Copy a matrix to other memory."""
    if source.ld == target.ld == columns:
        rows, columns = 1, rows * columns
    if rows == 0 or columns == 0:
        return
    name = "llvm.memcpy.p0.p0.i64"
    kind = ir.FunctionType(ir.VoidType(), [POINTER, POINTER, INDEX, FLAG])
    copy = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    size = number(columns * source.dtype.itemsize)
    with loop(builder, rows) as i:
        here, there = [matrix.shifted(builder, builder.mul(i, number(matrix.ld))) for matrix in (source, target)]
        builder.call(copy, [there.at, here.at, size, ir.Constant(FLAG, 0)])


def emit_upper(builder: ir.IRBuilder, rows: int, columns: int, source: Matrix, target: Matrix) -> None:
    """Write the upper triangle of a matrix of (rows, columns) whose columns lie in memory, with zeros below it."""
    if rows == 0 or columns == 0:
        return

    def write(b: ir.IRBuilder, cells: list[_Elements], shape: Sequence[ir.Value]) -> None:
        here, there = cells
        with loop(b, shape[0]) as i:
            diagonal = _least(b, i, shape[1])
            with loop(b, shape[1], diagonal) as j:
                there.store(here.load(j, i), i, j)
            with loop(b, diagonal, number(0)) as j:
                there.store(ir.Constant(element(there.dtype), None), i, j)

    _call_helper(builder, "upper_transposed", [source, target], rows, columns, write)


def emit_mirror(builder: ir.IRBuilder, n: int, a: Matrix, *, lower: bool) -> None:
    """Make a matrix Hermitian: the given triangle, conjugated, is written over the other one."""
    if n < 2:
        return

    def write(b: ir.IRBuilder, cells: list[_Elements], shape: Sequence[ir.Value]) -> None:
        (matrix,) = cells
        with (
            loop(b, shape[0], step=BLOCK) as top,
            loop(b, b.add(top, number(BLOCK)), step=BLOCK) as left,
            loop(b, _least(b, b.add(top, number(BLOCK)), shape[0]), top) as i,
            loop(b, _least(b, b.add(left, number(BLOCK)), i), left) as j,
        ):
            row, column = (i, j) if lower else (j, i)
            matrix.store(_conjugate(b, matrix.dtype, matrix.load(row, column)), column, row)

    _call_helper(builder, "mirror_lower" if lower else "mirror_upper", [a], n, n, write)


def emit_clear(builder: ir.IRBuilder, n: int, a: Matrix, *, lower: bool) -> None:
    """Write zeros below the diagonal of a square matrix, or above it."""
    if n < 2:
        return

    def write(b: ir.IRBuilder, cells: list[_Elements], shape: Sequence[ir.Value]) -> None:
        (matrix,) = cells
        with loop(b, shape[0]) as i:
            start, stop = (number(0), i) if lower else (b.add(i, number(1)), shape[1])
            with loop(b, stop, start) as j:
                matrix.store(ir.Constant(element(matrix.dtype), None), i, j)

    _call_helper(builder, "clear_lower" if lower else "clear_upper", [a], n, n, write)


def emit_fill(builder: ir.IRBuilder, rows: int, columns: int, a: Matrix, value: float) -> None:
    """Write a number everywhere into a matrix."""
    data = ir.Constant(element(a.dtype), [value, 0.0] if a.dtype.kind == "c" else float(value))
    cells = _Elements(builder, a.dtype, a.at, number(a.ld))
    with loop(builder, rows) as i, loop(builder, columns) as j:
        cells.store(data, i, j)
