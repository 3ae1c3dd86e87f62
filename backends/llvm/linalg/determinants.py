"""What native code does with LU factors that lie with their columns in memory, as LAPACK makes them.

The conventions are those of `lapack`; exchanges of rows are counted from 0.

Determinants in native code, by LU as NumPy does it: the sign and the logarithm are added up along U's diagonal.
"""

import math
from typing import Any

import numpy as np

from func.backends.llvm import ir
from func.backends.llvm.linalg.lapack import FINE, WIDTH, areas, emit_first_zero, run, scratch_size
from func.backends.llvm.linalg.matrices import (
    DOUBLE,
    FLOAT,
    INDEX,
    INT,
    alignment,
    element,
    emit_transpose,
    loop,
    moved,
    number,
    slot,
)
from func.backends.llvm.linalg.routines import routine


def emit_getrf(builder: ir.IRBuilder, dtype: Any, n: int, a: ir.Value, lda: int, pivots: ir.Value) -> ir.Value:
    """Overwrite a square matrix, column by column in memory, with its LU factors, and write the exchanges of rows."""
    if n == 0:
        return FINE
    status = run(builder, routine(dtype, "getrf"), n, n, a, max(lda, n), pivots)
    _shifted(builder, n, pivots, pivots, -1)
    return status


def _shifted(builder: ir.IRBuilder, count: int, source: ir.Value, target: ir.Value, by: int) -> None:
    with loop(builder, count) as i:
        value = builder.load(moved(builder, "int32", source, i), typ=INT)
        builder.store(builder.add(value, ir.Constant(INT, by)), moved(builder, "int32", target, i))


def emit_order(builder: ir.IRBuilder, m: int, count: int, pivots: ir.Value, order: ir.Value) -> None:
    """Write the order (int64) of m rows that exchanges make."""
    with loop(builder, m) as i:
        builder.store(i, moved(builder, "int64", order, i))
    with loop(builder, count) as i:
        j = builder.sext(builder.load(moved(builder, "int32", pivots, i), typ=INT), INDEX)
        places = [moved(builder, "int64", order, place) for place in (i, j)]
        values = [builder.load(place, typ=INDEX) for place in places]
        for value, place in zip(values, reversed(places), strict=True):
            builder.store(value, place)


def _inverse_areas(dtype: Any, n: int) -> list[int]:
    return [n * 4, WIDTH * n * np.dtype(dtype).itemsize]


def factored_inverse_scratch(dtype: Any, n: int) -> int:
    """The bytes that `emit_factored_inverse` needs."""
    return scratch_size(_inverse_areas(dtype, n))


def emit_factored_inverse(
    builder: ir.IRBuilder, dtype: Any, n: int, lu: ir.Value, ld: int, pivots: ir.Value, scratch: ir.Value
) -> ir.Value:
    """Overwrite LU factors with the inverse, its columns in memory. Where the status is not 0, it is none."""
    if n == 0:
        return FINE
    exchanges, work = areas(builder, scratch, _inverse_areas(dtype, n))
    _shifted(builder, n, pivots, exchanges, 1)
    return run(builder, routine(dtype, "getri"), n, lu, max(ld, n), exchanges, work, WIDTH * n)


REAL, IMAGINARY = ir.Constant(INT, 0), ir.Constant(INT, 1)


def _areas(dtype: Any, n: int) -> list[int]:
    return [n * n * np.dtype(dtype).itemsize, n * 4]


def det_scratch(dtype: Any, n: int) -> int:
    """The bytes that `emit_det` and `emit_slogdet` need."""
    return scratch_size(_areas(dtype, n))


def emit_det(
    builder: ir.IRBuilder, dtype: Any, n: int, a: ir.Value, lda: int, out: ir.Value, scratch: ir.Value
) -> None:
    """Write the determinant, 0 for a singular matrix."""
    sign, logarithm = _slogdet(builder, dtype, n, a, lda, scratch)
    size = _libm(builder, "exp", logarithm)
    if np.dtype(dtype).kind == "c":
        zero = ir.Constant(size.type, 0.0)
        value = _times(builder, sign, _complex(builder, size, zero))
    else:
        value = builder.fmul(sign, size)
    builder.store(value, out, align=alignment(dtype))


def emit_slogdet(
    builder: ir.IRBuilder,
    dtype: Any,
    n: int,
    a: ir.Value,
    lda: int,
    sign: ir.Value,
    logarithm: ir.Value,
    scratch: ir.Value,
) -> None:
    """Write the determinant's sign, for complex matrices a number of modulus 1, and the logarithm of its modulus; 0 and
    -inf for a singular matrix."""
    values = _slogdet(builder, dtype, n, a, lda, scratch)
    for value, place in zip(values, (sign, logarithm), strict=True):
        builder.store(value, place, align=alignment(dtype))


def emit_factored_slogdet(
    builder: ir.IRBuilder,
    dtype: Any,
    n: int,
    lu: ir.Value,
    ld: int,
    pivots: ir.Value,
    sign: ir.Value,
    logarithm: ir.Value,
) -> None:
    """The same by LU factors and exchanges of rows from 0."""
    status = emit_first_zero(builder, dtype, n, lu, ld)
    values = _along_diagonal(builder, dtype, n, lu, ld, pivots, 0, status)
    for value, place in zip(values, (sign, logarithm), strict=True):
        builder.store(value, place, align=alignment(dtype))


def _slogdet(
    builder: ir.IRBuilder, dtype: Any, n: int, a: ir.Value, lda: int, scratch: ir.Value
) -> tuple[ir.Value, ir.Value]:
    matrix, pivots = areas(builder, scratch, _areas(dtype, n))
    status: ir.Value = FINE
    if n:
        emit_transpose(builder, dtype, n, n, a, lda, matrix, n)
        status = run(builder, routine(dtype, "getrf"), n, n, matrix, n, pivots)
    return _along_diagonal(builder, dtype, n, matrix, n, pivots, 1, status)


def _along_diagonal(
    builder: ir.IRBuilder, dtype: Any, n: int, lu: ir.Value, ld: int, pivots: ir.Value, first: int, status: ir.Value
) -> tuple[ir.Value, ir.Value]:
    """The sign and the logarithm by factors, and by exchanges that count rows from `first`."""
    kind = element(dtype)
    modulus = FLOAT if alignment(dtype) == 4 else DOUBLE
    one = ir.Constant(kind, [1.0, 0.0] if np.dtype(dtype).kind == "c" else 1.0)
    sign, logarithm = slot(builder, kind), slot(builder, modulus)
    builder.store(one, sign)
    builder.store(ir.Constant(modulus, 0.0), logarithm)
    with builder.if_else(builder.icmp_signed("==", status, FINE)) as (regular, singular):
        with regular, loop(builder, n) as i:
            place = moved(builder, dtype, lu, builder.mul(i, number(ld + 1)))
            value = builder.load(place, typ=kind, align=alignment(dtype))
            turned, size = _factor(builder, dtype, builder.load(sign, typ=kind), value)
            row = builder.trunc(builder.add(i, number(first)), INT)
            pivot = builder.load(moved(builder, "int32", pivots, i), typ=INT)
            stays = builder.icmp_signed("==", pivot, row)
            builder.store(builder.select(stays, turned, builder.fneg(turned)), sign)
            total = builder.fadd(builder.load(logarithm, typ=modulus), _libm(builder, "log", size))
            builder.store(total, logarithm)
        with singular:
            builder.store(ir.Constant(kind, None), sign)
            builder.store(ir.Constant(modulus, -math.inf), logarithm)
    return builder.load(sign, typ=kind), builder.load(logarithm, typ=modulus)


def _factor(builder: ir.IRBuilder, dtype: Any, sign: ir.Value, value: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The sign with the value's own taken in, and the value's modulus."""
    if np.dtype(dtype).kind == "c":
        parts = [builder.extract_element(value, part) for part in (REAL, IMAGINARY)]
        size = _libm(builder, "hypot", *parts)
        unit = _complex(builder, *(builder.fdiv(part, size) for part in parts))
        return _times(builder, sign, unit), size
    negative = builder.fcmp_ordered("<", value, ir.Constant(value.type, 0.0))
    return (
        builder.select(negative, builder.fneg(sign), sign),
        builder.select(negative, builder.fneg(value), value),
    )


def _complex(builder: ir.IRBuilder, real: ir.Value, imaginary: ir.Value) -> ir.Value:
    pair = builder.insert_element(ir.Constant(ir.VectorType(real.type, 2), ir.Undefined), real, REAL)
    return builder.insert_element(pair, imaginary, IMAGINARY)


def _times(builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    a, b, c, d = (builder.extract_element(value, part) for value in (x, y) for part in (REAL, IMAGINARY))
    real = builder.fsub(builder.fmul(a, c), builder.fmul(b, d))
    return _complex(builder, real, builder.fadd(builder.fmul(a, d), builder.fmul(b, c)))


def _libm(builder: ir.IRBuilder, name: str, *arguments: ir.Value) -> ir.Value:
    kind = arguments[0].type
    full = name + ("f" if kind == FLOAT else "")
    function = builder.module.globals.get(full)
    if function is None:
        function = ir.Function(builder.module, ir.FunctionType(kind, [kind] * len(arguments)), full)
    return builder.call(function, arguments)
