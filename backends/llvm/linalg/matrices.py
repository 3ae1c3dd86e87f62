"""Moving matrices in native code: loops, transposed copies, triangles.

Rows lie in memory; `ld` counts the elements from one row to the next. A complex number is a vector of two floats.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from func.backends.llvm import ir

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

# Rows and columns of the blocks that are transposed one after the other: their lines of cache stay near.
BLOCK = 16


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


def number(value: int) -> ir.Constant:
    return ir.Constant(INDEX, value)


def moved(builder: ir.IRBuilder, dtype: Any, start: ir.Value, steps: ir.Value | int) -> ir.Value:
    """The address so many elements after the start."""
    steps = number(steps) if isinstance(steps, int) else steps
    return builder.gep(start, [steps], source_etype=element(dtype))


def slot(builder: ir.IRBuilder, kind: ir.Type = INT) -> ir.Value:
    """Room for a value on the function's stack, made once however often the code runs."""
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


def _least(builder: ir.IRBuilder, one: ir.Value, other: ir.Value) -> ir.Value:
    return builder.select(builder.icmp_signed("<", one, other), one, other)


class _Cells:
    """Reading and writing the places of a matrix."""

    def __init__(self, builder: ir.IRBuilder, dtype: Any, start: ir.Value, ld: ir.Value) -> None:
        self.builder, self.dtype, self.start, self.ld = builder, dtype, start, ld

    def address(self, row: ir.Value, column: ir.Value) -> ir.Value:
        place = self.builder.add(self.builder.mul(row, self.ld), column)
        return moved(self.builder, self.dtype, self.start, place)

    def load(self, row: ir.Value, column: ir.Value) -> ir.Value:
        return self.builder.load(self.address(row, column), align=alignment(self.dtype), typ=element(self.dtype))

    def store(self, value: ir.Value, row: ir.Value, column: ir.Value) -> None:
        self.builder.store(value, self.address(row, column), align=alignment(self.dtype))


def conjugate(builder: ir.IRBuilder, dtype: Any, value: ir.Value) -> ir.Value:
    if np.dtype(dtype).kind != "c":
        return value
    imaginary = ir.Constant(INT, 1)
    return builder.insert_element(value, builder.fneg(builder.extract_element(value, imaginary)), imaginary)


def _helper(
    builder: ir.IRBuilder, name: str, dtype: Any, matrices: int, write: Callable[[ir.IRBuilder, list[Any], Any], None]
) -> ir.Function:
    """A function of the module over matrices (address, ld)… and the numbers of rows and columns; made when missing."""
    full = f"func.{name}.{np.dtype(dtype).name}"
    known: ir.Function | None = builder.module.globals.get(full)
    if known is not None:
        return known
    kind = ir.FunctionType(ir.VoidType(), [POINTER, INDEX] * matrices + [INDEX, INDEX])
    function = ir.Function(builder.module, kind, full)
    function.linkage = "internal"
    function.attributes.add("nounwind")
    inner = ir.IRBuilder(function.append_basic_block("entry"))
    *places, rows, columns = function.args
    cells = [_Cells(inner, dtype, *places[i : i + 2]) for i in range(0, len(places), 2)]
    write(inner, cells, (rows, columns))
    inner.ret_void()
    return function


def emit_transpose(
    builder: ir.IRBuilder,
    dtype: Any,
    rows: int,
    columns: int,
    source: ir.Value,
    ld_source: int,
    target: ir.Value,
    ld_target: int,
    *,
    conjugated: bool = False,
) -> None:
    """Write the transpose, or the adjoint, of a matrix of (rows, columns) to other memory."""
    if rows == 0 or columns == 0:
        return

    def write(b: ir.IRBuilder, cells: list[Any], shape: Any) -> None:
        here, there = cells
        with (
            loop(b, shape[0], step=BLOCK) as top,
            loop(b, shape[1], step=BLOCK) as left,
            loop(b, _least(b, b.add(left, number(BLOCK)), shape[1]), left) as j,
            loop(b, _least(b, b.add(top, number(BLOCK)), shape[0]), top) as i,
        ):
            value = here.load(i, j)
            there.store(conjugate(b, dtype, value) if conjugated else value, j, i)

    name = "adjoint" if conjugated and np.dtype(dtype).kind == "c" else "transpose"
    arguments = [source, number(ld_source), target, number(ld_target), number(rows), number(columns)]
    builder.call(_helper(builder, name, dtype, 2, write), arguments)


def emit_copy(
    builder: ir.IRBuilder,
    dtype: Any,
    rows: int,
    columns: int,
    source: ir.Value,
    ld_source: int,
    target: ir.Value,
    ld_target: int,
) -> None:
    """Copy a matrix to other memory."""
    if ld_source == ld_target == columns:
        rows, columns = 1, rows * columns
    if rows == 0 or columns == 0:
        return
    kind = ir.FunctionType(ir.VoidType(), [POINTER, POINTER, INDEX, FLAG])
    copy = builder.module.globals.get("llvm.memcpy.p0.p0.i64") or ir.Function(
        builder.module, kind, "llvm.memcpy.p0.p0.i64"
    )
    size = number(columns * np.dtype(dtype).itemsize)
    with loop(builder, rows) as i:
        here = moved(builder, dtype, source, builder.mul(i, number(ld_source)))
        there = moved(builder, dtype, target, builder.mul(i, number(ld_target)))
        builder.call(copy, [there, here, size, ir.Constant(FLAG, 0)])


def emit_convert(
    builder: ir.IRBuilder,
    dtype: Any,
    rows: int,
    columns: int,
    source: ir.Value,
    ld_source: int,
    wanted: Any,
    target: ir.Value,
    ld_target: int,
) -> None:
    """Copy a matrix of floats, or of complex numbers, to other memory in the other precision.

    NumPy's linear algebra computes in double precision whatever it is given; with this, native code can do the same.
    """
    if rows == 0 or columns == 0:
        return
    narrowed = np.dtype(wanted).itemsize < np.dtype(dtype).itemsize

    def write(b: ir.IRBuilder, cells: list[Any], shape: Any) -> None:
        here, there = cells
        there.dtype = wanted
        change = b.fptrunc if narrowed else b.fpext
        with loop(b, shape[0]) as i, loop(b, shape[1]) as j:
            there.store(change(here.load(i, j), element(wanted)), i, j)

    arguments = [source, number(ld_source), target, number(ld_target), number(rows), number(columns)]
    builder.call(_helper(builder, f"to_{np.dtype(wanted).name}", dtype, 2, write), arguments)


def emit_triangle(
    builder: ir.IRBuilder,
    dtype: Any,
    rows: int,
    columns: int,
    source: ir.Value,
    ld_source: int,
    target: ir.Value,
    ld_target: int,
    *,
    lower: bool,
    transposed: bool = False,
) -> None:
    """Write a matrix with one triangle and its diagonal copied, the rest zero; the same memory is allowed.

    With `transposed`, element (i, j) is taken from the source's row j and column i.
    """
    if rows == 0 or columns == 0:
        return

    def write(b: ir.IRBuilder, cells: list[Any], shape: Any) -> None:
        here, there = cells
        zero = ir.Constant(element(dtype), None)
        with loop(b, shape[0]) as i:
            past = b.add(i, number(1)) if lower else i
            bound = _least(b, past, shape[1])
            first, second = ((number(0), bound), (bound, shape[1]))
            kept, cleared = (first, second) if lower else (second, first)
            with loop(b, kept[1], kept[0]) as j:
                there.store(here.load(j, i) if transposed else here.load(i, j), i, j)
            with loop(b, cleared[1], cleared[0]) as j:
                there.store(zero, i, j)

    name = ("lower" if lower else "upper") + ("_transposed" if transposed else "")
    arguments = [source, number(ld_source), target, number(ld_target), number(rows), number(columns)]
    builder.call(_helper(builder, name, dtype, 2, write), arguments)


def emit_mirror(builder: ir.IRBuilder, dtype: Any, n: int, a: ir.Value, lda: int, *, lower: bool) -> None:
    """Make a matrix Hermitian: the given triangle, conjugated, is written over the other one."""
    if n < 2:
        return

    def write(b: ir.IRBuilder, cells: list[Any], shape: Any) -> None:
        (matrix,) = cells
        with (
            loop(b, shape[0], step=BLOCK) as top,
            loop(b, b.add(top, number(BLOCK)), step=BLOCK) as left,
            loop(b, _least(b, b.add(top, number(BLOCK)), shape[0]), top) as i,
            loop(b, _least(b, b.add(left, number(BLOCK)), i), left) as j,
        ):
            row, column = (i, j) if lower else (j, i)
            matrix.store(conjugate(b, dtype, matrix.load(row, column)), column, row)

    name = "mirror_lower" if lower else "mirror_upper"
    builder.call(_helper(builder, name, dtype, 1, write), [a, number(lda), number(n), number(n)])


def emit_clear(builder: ir.IRBuilder, dtype: Any, n: int, a: ir.Value, lda: int, *, lower: bool) -> None:
    """Write zeros below the diagonal of a square matrix, or above it."""
    if n < 2:
        return

    def write(b: ir.IRBuilder, cells: list[Any], shape: Any) -> None:
        (matrix,) = cells
        zero = ir.Constant(element(dtype), None)
        with loop(b, shape[0]) as i:
            start, stop = (number(0), i) if lower else (b.add(i, number(1)), shape[1])
            with loop(b, stop, start) as j:
                matrix.store(zero, i, j)

    name = "clear_lower" if lower else "clear_upper"
    builder.call(_helper(builder, name, dtype, 1, write), [a, number(lda), number(n), number(n)])


def emit_fill(builder: ir.IRBuilder, dtype: Any, rows: int, columns: int, a: ir.Value, lda: int, value: float) -> None:
    """Write a number everywhere into a matrix."""
    data = ir.Constant(element(dtype), [value, 0.0] if np.dtype(dtype).kind == "c" else float(value))
    cells = _Cells(builder, dtype, a, number(lda))
    with loop(builder, rows) as i, loop(builder, columns) as j:
        cells.store(data, i, j)
