"""LU factors in native code: solves, inverses, and determinants.

The conventions are those of `lapack`; exchanges of rows are counted from 0. Determinants are those of NumPy: the sign
and the logarithm are accumulated along U's diagonal.
"""

from typing import Any

from func.backends import ir
from func.backends.llvm.linalg import matrix_copies
from func.backends.llvm.linalg.blas import emit_trsm, emit_trsv
from func.backends.llvm.linalg.lapack import FINE, WIDTH, areas, run, scratch_size, sizes_of
from func.backends.llvm.linalg.matrix_copies import INDEX, INT, Matrix, address_at, emit_transpose, loop, number
from func.backends.llvm.linalg.routines import call, routine
from func.backends.llvm.routine_code import call_routine
from func.backends.routines import matrix_parts
from func.backends.routines.small_lu import LEAST_ROWS, MOST_ROWS, small_lu


def lu_scratch(dtype: Any, m: int, n: int) -> int:
    """The bytes that `emit_lu` needs."""
    return scratch_size([m * n * sizes_of(dtype)[0]])


def emit_lu(
    builder: ir.IRBuilder, m: int, n: int, a: Matrix, lu: Matrix, pivots: ir.Value, scratch: ir.Value
) -> ir.Value:
    """Write L (its diagonal of ones left out) and U of P A = L U in one matrix, and the exchanges of rows as int32.

    `lu` may be `a`. A positive status is the place of a zero on U's diagonal; the factors are still valid.
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
    if a.dtype.kind == "f" and LEAST_ROWS <= n <= MOST_ROWS and a.ld <= n:
        call_routine(builder, small_lu, a.dtype, n, a.at, pivots)
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
    """Write the order (int64) of m rows after their exchanges; the status is not 0 for an exchange with no row."""
    failed = call_routine(builder, matrix_parts.order_of, None, m, count, pivots, order)
    return builder.zext(failed, INT)


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


def _exchange(builder: ir.IRBuilder, k: int, dtype: Any, first: ir.Value, second: ir.Value) -> None:
    """Exchange two rows of k numbers."""
    if k > 1:
        call(builder, routine(dtype, "swap"), k, first, 1, second, 1)
        return
    kind, align = matrix_copies.element(dtype), matrix_copies.alignment(dtype)
    values = [builder.load(row, typ=kind, align=align) for row in (first, second)]
    for value, row in zip(values, (second, first), strict=True):
        builder.store(value, row, align=align)


def _solve_areas(dtype: Any, n: int, k: int) -> list[int]:
    size, _ = sizes_of(dtype)
    return [n * n * size, n * k * size, n * 4]


def solve_scratch(dtype: Any, n: int, k: int) -> int:
    """The bytes that `emit_solve` needs."""
    return scratch_size(_solve_areas(dtype, n, k))


def emit_solve(builder: ir.IRBuilder, n: int, k: int, a: Matrix, b: Matrix, x: Matrix, scratch: ir.Value) -> ir.Value:
    """Write the solution X of A X = B, both of shape (n, k); `x` may be `b`. A stays unchanged."""
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
    """Write the inverse of A; `out` may be `a`. It is not an inverse if the status is not 0."""
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
    """Overwrite LU factors with the inverse, its columns in memory; there is none if the status is not 0."""
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
    kind, modulus = matrix_copies.element(a.dtype), matrix_copies.real_element(a.dtype)
    logarithm = matrix_copies.slot(builder, modulus)
    emit_slogdet(builder, n, a, out, logarithm, scratch)
    name = "exp" if modulus == matrix_copies.DOUBLE else "expf"
    exp = builder.module.globals.get(name) or ir.Function(builder.module, ir.FunctionType(modulus, [modulus]), name)
    size: ir.Value = builder.call(exp, [builder.load(logarithm, typ=modulus)])
    if a.dtype.kind == "c":
        pair: ir.Value = ir.Constant(kind, ir.Undefined)
        for part in (0, 1):
            pair = builder.insert_element(pair, size, ir.Constant(INT, part))
        size = pair
    align = matrix_copies.alignment(a.dtype)
    builder.store(builder.fmul(builder.load(out, typ=kind, align=align), size), out, align=align)


def emit_slogdet(
    builder: ir.IRBuilder, n: int, a: Matrix, sign: ir.Value, logarithm: ir.Value, scratch: ir.Value
) -> None:
    """Write the determinant's sign, for complex matrices a number of modulus 1, and the logarithm of its modulus; 0 and
    -inf for a singular matrix."""
    start, pivots = areas(builder, scratch, _determinant_areas(a.dtype, n))
    if n:
        emit_transpose(builder, n, n, a, Matrix(start, n, a.dtype))
        run(builder, routine(a.dtype, "getrf"), n, n, start, n, pivots)
    call_routine(builder, matrix_parts.determinant, a.dtype, n, start, n + 1, 1, pivots, sign, logarithm)


def emit_factored_slogdet(
    builder: ir.IRBuilder, n: int, lu: Matrix, pivots: ir.Value, sign: ir.Value, logarithm: ir.Value
) -> None:
    """The result of `emit_slogdet` from LU factors and exchanges of rows."""
    call_routine(builder, matrix_parts.determinant, lu.dtype, n, lu.at, lu.ld + 1, 0, pivots, sign, logarithm)
