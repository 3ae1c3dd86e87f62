"""Moving row-major matrices in native code: loops, transposed copies, triangles.

A complex number is a vector of two floats.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

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
    """Memory for a value on the function's stack, allocated once for all runs of the code."""
    with builder.goto_entry_block():
        return builder.alloca(kind)


@contextmanager
def loop(builder: ir.IRBuilder, stop: ir.Value | int, start: ir.Value | int = 0, step: int = 1) -> Iterator[ir.Value]:
    """Run the code written inside for every index from `start` up to `stop`."""
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


def _emit(builder: ir.IRBuilder, name: str, dtype: DType, *arguments: Any) -> None:
    """Call a routine of `matrix_parts`."""
    from func.backends.llvm.routine_code import call_routine  # start-up time: few programs copy matrices
    from func.backends.routines import matrix_parts  # the same

    call_routine(builder, getattr(matrix_parts, name), dtype, *arguments)


def emit_transpose(builder: ir.IRBuilder, rows: int, columns: int, source: Matrix, target: Matrix) -> None:
    """Write the transpose of a matrix of (rows, columns) to other memory."""
    if rows and columns:
        places = source.at, source.ld, 1, target.at, 1, target.ld
        _emit(builder, "copy", source.dtype, rows, columns, *places)


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
    """Write the upper triangle of a column-major matrix of (rows, columns), with zeros below it."""
    if rows and columns:
        places = source.at, 1, source.ld, target.at, target.ld, 1
        _emit(builder, "upper", source.dtype, rows, columns, *places)


def emit_mirror(builder: ir.IRBuilder, n: int, a: Matrix, *, lower: bool) -> None:
    """Make a matrix Hermitian: write this triangle, conjugated, over the other one."""
    if n > 1:
        _emit(builder, "mirror_triangle", a.dtype, n, a.at, a.ld, lower)


def emit_clear(builder: ir.IRBuilder, n: int, a: Matrix, *, lower: bool) -> None:
    """Write zeros below the diagonal of a square matrix, or above it."""
    if n > 1:
        _emit(builder, "clear", a.dtype, n, a.at, a.ld, lower)


def emit_fill(builder: ir.IRBuilder, rows: int, columns: int, a: Matrix, value: float) -> None:
    """Write a number everywhere into a matrix."""
    data = ir.Constant(element(a.dtype), [value, 0.0] if a.dtype.kind == "c" else float(value))
    with loop(builder, rows) as i, loop(builder, columns) as j:
        place = a.shifted(builder, builder.add(builder.mul(i, number(a.ld)), j))
        builder.store(data, place.at, align=alignment(a.dtype))
