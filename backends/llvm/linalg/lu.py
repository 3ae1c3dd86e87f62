"""LU factors in native code: solves, inverses, and determinants.

The conventions are those of `lapack`; exchanges of rows are counted from 0. Determinants are those of NumPy: the sign
and the logarithm are accumulated along U's diagonal.
"""

import math
from typing import Any

from func.backends import ir
from func.backends.llvm.linalg import matrix_copies
from func.backends.llvm.linalg.blas import emit_trsm, emit_trsv
from func.backends.llvm.linalg.lapack import FINE, WIDTH, areas, emit_first_zero, run, scratch_size, sizes_of
from func.backends.llvm.linalg.matrix_copies import INDEX, INT, Matrix, address_at, emit_transpose, loop, number
from func.backends.llvm.linalg.routines import call, routine
from func.backends.llvm.linalg.small_lu import emit_small_lu, is_small
from func.backends.loops.kernels import DType

REAL, IMAGINARY = ir.Constant(INT, 0), ir.Constant(INT, 1)


def lu_scratch(dtype: Any, m: int, n: int) -> int:
    """The bytes that `emit_lu` needs."""
    return scratch_size([m * n * sizes_of(dtype)[0]])


def emit_lu(
    builder: ir.IRBuilder, m: int, n: int, a: Matrix, lu: Matrix, pivots: ir.Value, scratch: ir.Value
) -> ir.Value:
    """Write L (its diagonal of ones left out) and U of P A = L U in one matrix, and the exchanges of rows as int32.

    `lu` may be `a`. A positive status is the place of a zero on U's diagonal: the factors are good all the same.
    """
    if m == 0 or n == 0:
        return FINE
    turned = Matrix(scratch, m, a.dtype)
    emit_transpose(builder, m, n, a, turned)
    status = run(builder, routine(a.dtype, "getrf"), m, n, scratch, m, pivots)
    emit_transpose(builder, n, m, turned, lu)
    with loop(builder, min(m, n)) as i:
        place = address_at(builder, "int32", pivots, i)
        builder.store(builder.sub(builder.load(place, typ=INT), ir.Constant(INT, 1)), place)
    return status


def emit_getrf(builder: ir.IRBuilder, n: int, a: Matrix, pivots: ir.Value) -> ir.Value:
    """Overwrite a square matrix, column by column in memory, with its LU factors, and write the exchanges of rows."""
    if n == 0:
        return FINE
    if is_small(n, a):
        emit_small_lu(builder, n, a, pivots)
        return FINE
    status = run(builder, routine(a.dtype, "getrf"), n, n, a.at, max(a.ld, n), pivots)
    _add(builder, n, pivots, pivots, -1)
    return status


def _add(builder: ir.IRBuilder, count: int, source: ir.Value, target: ir.Value, term: int) -> None:
    """Write int32 numbers plus a term."""
    with loop(builder, count) as i:
        value = builder.load(address_at(builder, "int32", source, i), typ=INT)
        builder.store(builder.add(value, ir.Constant(INT, term)), address_at(builder, "int32", target, i))


def emit_order(builder: ir.IRBuilder, m: int, count: int, pivots: ir.Value, order: ir.Value) -> ir.Value:
    """Write the order (int64) of m rows after their exchanges; the status is not 0 where one is with no row."""
    status = matrix_copies.slot(builder, INT)
    builder.store(FINE, status)
    with loop(builder, m) as i:
        builder.store(i, address_at(builder, "int64", order, i))
    with loop(builder, count) as i:
        given = builder.sext(builder.load(address_at(builder, "int32", pivots, i), typ=INT), INDEX)
        is_row = builder.icmp_unsigned("<", given, number(m))
        builder.store(builder.select(is_row, builder.load(status, typ=INT), ir.Constant(INT, 1)), status)
        j = builder.select(is_row, given, i)
        places = [address_at(builder, "int64", order, place) for place in (i, j)]
        values = [builder.load(place, typ=INDEX) for place in places]
        for value, place in zip(values, reversed(places), strict=True):
            builder.store(value, place)
    return builder.load(status, typ=INT)


def emit_getrs(
    builder: ir.IRBuilder,
    n: int,
    k: int,
    lu: Matrix,
    pivots: ir.Value,
    b: Matrix,
    *,
    trans: str = "N",
    turned: bool = False,
) -> ir.Value:
    """Overwrite B, of shape (n, k), with the solution of op(A) X = B for the factors that `emit_lu` wrote.

    With `turned`, the factors have their columns in memory; then op is not the adjoint of a complex matrix.
    """
    if n == 0 or k == 0:
        return FINE
    if trans == "N":
        exchange_rows(builder, n, k, pivots, b, backwards=False)
    # L is the factor with ones on the diagonal.
    for lower in (True, False) if trans == "N" else (False, True):
        flags: dict[str, Any] = {"lower": lower != turned, "unit": lower}
        flags["trans"] = ("T" if trans == "N" else "N") if turned else trans
        if k == 1 and not (flags["trans"] == "C" and lu.dtype.kind == "c"):
            emit_trsv(builder, n, lu, b, **flags)
        else:
            emit_trsm(builder, n, k, lu, b, **flags)
    if trans != "N":
        exchange_rows(builder, n, k, pivots, b, backwards=True)
    return FINE


def exchange_rows(builder: ir.IRBuilder, n: int, k: int, pivots: ir.Value, b: Matrix, *, backwards: bool) -> None:
    """Exchange the rows of B as factors have exchanged those of A, or back."""
    with loop(builder, n) as step:
        i = builder.sub(number(n - 1), step) if backwards else step
        j = builder.sext(builder.load(address_at(builder, "int32", pivots, i), typ=INT), INDEX)
        with builder.if_then(builder.icmp_signed("!=", i, j)):
            rows = [b.shifted(builder, builder.mul(row, number(b.ld))).at for row in (i, j)]
            _exchange(builder, k, b.dtype, *rows)


def _exchange(builder: ir.IRBuilder, k: int, dtype: Any, one: ir.Value, other: ir.Value) -> None:
    """Exchange two rows of k numbers."""
    if k > 1:
        call(builder, routine(dtype, "swap"), k, one, 1, other, 1)
        return
    kind, align = matrix_copies.element(dtype), matrix_copies.alignment(dtype)
    values = [builder.load(row, typ=kind, align=align) for row in (one, other)]
    for value, row in zip(values, (other, one), strict=True):
        builder.store(value, row, align=align)


def _solve_areas(dtype: Any, n: int, k: int) -> list[int]:
    size, _ = sizes_of(dtype)
    return [n * n * size, n * k * size, n * 4]


def solve_scratch(dtype: Any, n: int, k: int) -> int:
    """The bytes that `emit_solve` needs."""
    return scratch_size(_solve_areas(dtype, n, k))


def emit_solve(builder: ir.IRBuilder, n: int, k: int, a: Matrix, b: Matrix, x: Matrix, scratch: ir.Value) -> ir.Value:
    """Write the solution X of A X = B, both of shape (n, k); `x` may be `b`. A is not touched."""
    if n == 0 or k == 0:
        return FINE
    matrix, right, pivots = areas(builder, scratch, _solve_areas(a.dtype, n, k))
    emit_transpose(builder, n, n, a, Matrix(matrix, n, a.dtype))
    emit_transpose(builder, n, k, b, Matrix(right, n, a.dtype))
    status = run(builder, routine(a.dtype, "gesv"), n, k, matrix, n, pivots, right, n)
    emit_transpose(builder, k, n, Matrix(right, n, a.dtype), x)
    return status


def _inverse_areas(dtype: Any, n: int) -> list[int]:
    size, _ = sizes_of(dtype)
    return [n * n * size, n * 4, WIDTH * n * size]


def inverse_scratch(dtype: Any, n: int) -> int:
    """The bytes that `emit_inverse` needs."""
    return scratch_size(_inverse_areas(dtype, n))


def emit_inverse(builder: ir.IRBuilder, n: int, a: Matrix, out: Matrix, scratch: ir.Value) -> ir.Value:
    """Write the inverse of A; `out` may be `a`. Where the status is not 0, the result is not an inverse."""
    if n == 0:
        return FINE
    start, pivots, work = areas(builder, scratch, _inverse_areas(a.dtype, n))
    matrix = Matrix(start, n, a.dtype)
    emit_transpose(builder, n, n, a, matrix)
    status = run(builder, routine(a.dtype, "getrf"), n, n, start, n, pivots)
    with builder.if_then(builder.icmp_signed("==", status, FINE), likely=True):
        run(builder, routine(a.dtype, "getri"), n, start, n, pivots, work, WIDTH * n)
    emit_transpose(builder, n, n, matrix, out)
    return status


def _factored_inverse_areas(dtype: Any, n: int) -> list[int]:
    return [n * 4, WIDTH * n * sizes_of(dtype)[0]]


def factored_inverse_scratch(dtype: Any, n: int) -> int:
    """The bytes that `emit_factored_inverse` needs."""
    return scratch_size(_factored_inverse_areas(dtype, n))


def emit_factored_inverse(builder: ir.IRBuilder, n: int, lu: Matrix, pivots: ir.Value, scratch: ir.Value) -> ir.Value:
    """Overwrite LU factors with the inverse, its columns in memory; where the status is not 0, there is none."""
    if n == 0:
        return FINE
    exchanges, work = areas(builder, scratch, _factored_inverse_areas(lu.dtype, n))
    _add(builder, n, pivots, exchanges, 1)
    return run(builder, routine(lu.dtype, "getri"), n, lu.at, max(lu.ld, n), exchanges, work, WIDTH * n)


def _determinant_areas(dtype: Any, n: int) -> list[int]:
    return [n * n * sizes_of(dtype)[0], n * 4]


def det_scratch(dtype: Any, n: int) -> int:
    """The bytes that `emit_det` and `emit_slogdet` need."""
    return scratch_size(_determinant_areas(dtype, n))


def emit_det(builder: ir.IRBuilder, n: int, a: Matrix, out: ir.Value, scratch: ir.Value) -> None:
    """Write the determinant, 0 for a singular matrix."""
    sign, logarithm = _slogdet(builder, n, a, scratch)
    size = _libm(builder, "exp", logarithm)
    if a.dtype.kind == "c":
        zero = ir.Constant(size.type, 0.0)
        value = _times(builder, sign, _complex(builder, size, zero))
    else:
        value = builder.fmul(sign, size)
    builder.store(value, out, align=matrix_copies.alignment(a.dtype))


def emit_slogdet(
    builder: ir.IRBuilder, n: int, a: Matrix, sign: ir.Value, logarithm: ir.Value, scratch: ir.Value
) -> None:
    """Write the determinant's sign, for complex matrices a number of modulus 1, and the logarithm of its modulus; 0 and
    -inf for a singular matrix."""
    for value, place in zip(_slogdet(builder, n, a, scratch), (sign, logarithm), strict=True):
        builder.store(value, place, align=matrix_copies.alignment(a.dtype))


def emit_factored_slogdet(
    builder: ir.IRBuilder, n: int, lu: Matrix, pivots: ir.Value, sign: ir.Value, logarithm: ir.Value
) -> None:
    """Write what `emit_slogdet` does, from LU factors and exchanges of rows."""
    status = emit_first_zero(builder, n, lu)
    values = _along_diagonal(builder, n, lu, pivots, 0, status)
    for value, place in zip(values, (sign, logarithm), strict=True):
        builder.store(value, place, align=matrix_copies.alignment(lu.dtype))


def _slogdet(builder: ir.IRBuilder, n: int, a: Matrix, scratch: ir.Value) -> tuple[ir.Value, ir.Value]:
    start, pivots = areas(builder, scratch, _determinant_areas(a.dtype, n))
    matrix = Matrix(start, n, a.dtype)
    status: ir.Value = FINE
    if n:
        emit_transpose(builder, n, n, a, matrix)
        status = run(builder, routine(a.dtype, "getrf"), n, n, start, n, pivots)
    return _along_diagonal(builder, n, matrix, pivots, 1, status)


def _along_diagonal(
    builder: ir.IRBuilder, n: int, lu: Matrix, pivots: ir.Value, first: int, status: ir.Value
) -> tuple[ir.Value, ir.Value]:
    """The sign and the logarithm by factors, and by exchanges that count rows from `first`."""
    kind, modulus = matrix_copies.element(lu.dtype), matrix_copies.real_element(lu.dtype)
    one = ir.Constant(kind, [1.0, 0.0] if lu.dtype.kind == "c" else 1.0)
    sign, logarithm = matrix_copies.slot(builder, kind), matrix_copies.slot(builder, modulus)
    builder.store(one, sign)
    builder.store(ir.Constant(modulus, 0.0), logarithm)
    with builder.if_else(builder.icmp_signed("==", status, FINE)) as (regular, singular):
        with regular, loop(builder, n) as i:
            place = lu.shifted(builder, builder.mul(i, number(lu.ld + 1)))
            value = builder.load(place.at, typ=kind, align=matrix_copies.alignment(lu.dtype))
            turned, size = _factor(builder, lu.dtype, builder.load(sign, typ=kind), value)
            row = builder.trunc(builder.add(i, number(first)), INT)
            pivot = builder.load(address_at(builder, "int32", pivots, i), typ=INT)
            stays = builder.icmp_signed("==", pivot, row)
            builder.store(builder.select(stays, turned, builder.fneg(turned)), sign)
            total = builder.fadd(builder.load(logarithm, typ=modulus), _libm(builder, "log", size))
            builder.store(total, logarithm)
        with singular:
            builder.store(ir.Constant(kind, None), sign)
            builder.store(ir.Constant(modulus, -math.inf), logarithm)
    return builder.load(sign, typ=kind), builder.load(logarithm, typ=modulus)


def _factor(builder: ir.IRBuilder, dtype: DType, sign: ir.Value, value: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The product of the sign and the value's own sign, and the value's modulus."""
    if dtype.kind == "c":
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
    full = name + ("f" if kind == matrix_copies.FLOAT else "")
    function = builder.module.globals.get(full)
    if function is None:
        function = ir.Function(builder.module, ir.FunctionType(kind, [kind] * len(arguments)), full)
    return builder.call(function, arguments)
