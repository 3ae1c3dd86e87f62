"""BLAS called from native code."""

import subprocess
import sys
from itertools import product

import numpy as np
import pytest

pytest.importorskip("llvmlite")
pytest.importorskip("scipy")

from func.backends.llvm import ir, machine
from func.backends.llvm.linalg import blas, matrices, routines
from tests.support.native_matrices import DTYPES, Calls, assert_close, padded, random, run, triangular

SIZES = (0, 1, 3, 50)
SHAPES = ((0, 3), (1, 1), (3, 3), (4, 7), (7, 4), (5, 40), (33, 17))
REAL = ("float32", "float64")


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("FUNC_CACHE_DIR", str(tmp_path))


def op(a, trans):
    return {"N": a, "T": a.T, "C": a.conj().T}[trans]


def operand(rng, dtype, rows, columns, trans, extra):
    """A matrix that is (rows, columns) after op, and the elements between its rows."""
    shape = (rows, columns) if trans == "N" else (columns, rows)
    return padded(random(rng, dtype, *shape), extra)


def test_symbols():
    assert routines.symbol("dgemm") == "func_dgemm"
    assert routines.symbol("zheevd") == "func_zheevd"
    with pytest.raises(LookupError, match="no BLAS or LAPACK routine 'dnothing'"):
        routines.symbol("dnothing")


def test_declarations():
    module = ir.Module()
    gemm = routines.declare(module, "dgemm")
    assert routines.declare(module, "dgemm") is gemm
    assert len(gemm.args) == 13
    assert str(gemm.function_type.return_type) == "void"
    assert str(routines.declare(module, "snrm2").function_type.return_type) == "float"
    assert str(routines.declare(module, "idamax").function_type.return_type) == "i32"
    with pytest.raises(LookupError, match="cannot call 'zdotc'"):
        routines.declare(module, "zdotc")


def test_sizes_beyond_32_bits():
    assert routines.fits(2**31 - 1)
    assert not routines.fits(1, 2**31)
    with pytest.raises(OverflowError, match="dgemm"):
        run(lambda b, a: blas.emit_gemm(b, "float64", 2**31, 1, 1, a, "N", 1, a, "N", 1, a, 1), np.ones(1))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_gemm(dtype, n):
    rng = np.random.default_rng(n)
    m, k = n + 2, n + 1
    calls, results = Calls(), []
    for ta, tb, extra in product("NTC", "NTC", (0, 3)):
        (a, lda), (b, ldb) = operand(rng, dtype, m, k, ta, extra), operand(rng, dtype, k, n, tb, extra)
        c, ldc = padded(np.full((m, n), np.nan, dtype), extra)
        rows = (lda, ldb, ldc)
        calls.add(lambda x, *p, ta=ta, tb=tb, ld=rows: emit_gemm(x, dtype, (m, n, k), p, ta, tb, ld), a, b, c)
        results.append((c, op(a, ta) @ op(b, tb)))
    calls.run()
    for c, expected in results:
        assert_close(c, expected)
        assert (c.base[:, n:] == 99).all()


def emit_gemm(builder, dtype, sizes, pointers, ta, tb, rows, **scales):
    (a, b, c), (lda, ldb, ldc) = pointers, rows
    blas.emit_gemm(builder, dtype, *sizes, a, ta, lda, b, tb, ldb, c, ldc, **scales)


@pytest.mark.parametrize("dtype", DTYPES)
def test_gemm_scaled(dtype):
    rng = np.random.default_rng(0)
    a, b, c = random(rng, dtype, 4, 5), random(rng, dtype, 5, 3), random(rng, dtype, 4, 3)
    scales = {"alpha": 2.5, "beta": -0.5} if np.dtype(dtype).kind == "f" else {"alpha": 2.5 - 1j, "beta": 3j}
    expected = scales["alpha"] * (a @ b) + scales["beta"] * c
    run(lambda x, *p: emit_gemm(x, dtype, (4, 3, 5), p, "N", "N", (5, 3, 3), **scales), a, b, c)
    assert_close(c, expected)


def test_gemm_over_nothing_is_zero():
    c = np.full((2, 3), np.nan)
    run(lambda x, *p: blas.emit_gemm(x, "float64", 2, 3, 0, p[0], "N", 0, p[1], "N", 3, p[2], 3), c, c, c)
    assert (c == 0).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_batched_gemm_with_broadcasting(dtype):
    rng = np.random.default_rng(1)
    a, b = random(rng, dtype, 3, 1, 4, 5), random(rng, dtype, 2, 6, 5)
    c = np.full((3, 2, 4, 6), np.nan, dtype)
    strides = [(20, 0), (0, 30), (48, 24)]
    run(
        lambda x, *p: blas.emit_batched_gemm(x, dtype, (3, 2), strides, 4, 6, 5, p[0], "N", 5, p[1], "T", 5, p[2], 6),
        a,
        b,
        c,
    )
    assert_close(c, a @ b.swapaxes(-1, -2))
    run(lambda x, *p: blas.emit_batched_gemm(x, dtype, (3, 0), strides, 4, 6, 5, *(p[0], "N", 5) * 2, p[0], 6), a)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_gemv(dtype, n):
    rng = np.random.default_rng(n)
    m = n + 2
    a, lda = padded(random(rng, dtype, m, n), 2)
    calls, results = Calls(), []
    for trans in "NTC":
        x = random(rng, dtype, n if trans == "N" else m, 3)
        y = np.full((m if trans == "N" else n, 2), np.nan, dtype)
        calls.add(lambda b, *p, t=trans: blas.emit_gemv(b, dtype, m, n, p[0], t, lda, p[1], 3, p[2], 2), a, x, y)
        results.append((y, op(a, trans) @ x[:, 0]))
    calls.run()
    for y, expected in results:
        assert_close(y[:, 0], expected)
        assert np.isnan(y[:, 1]).all()


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_ger(dtype, n):
    rng = np.random.default_rng(n)
    x, y = random(rng, dtype, n + 1, 2), random(rng, dtype, n, 3)
    a, lda = padded(random(rng, dtype, n + 1, n), 2)
    expected = a + 2 * np.outer(x[:, 0], y[:, 0])
    run(lambda b, *p: blas.emit_ger(b, dtype, n + 1, n, p[0], 2, p[1], 3, p[2], lda, alpha=2), x, y, a)
    assert_close(a, expected)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", REAL)
def test_dot(dtype, n):
    rng = np.random.default_rng(n)
    x, y, out = random(rng, dtype, n, 2), random(rng, dtype, n), np.empty(1, dtype)
    run(lambda b, *p: b.store(blas.emit_dot(b, dtype, n, p[0], 2, p[1], 1), p[2]) and None, x, y, out)
    assert_close(out[0], x[:, 0] @ y)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", REAL)
def test_syrk_and_mirror(dtype, n):
    rng = np.random.default_rng(n)
    calls, results = Calls(), []
    for trans, lower in product("NT", (True, False)):
        a, lda = operand(rng, dtype, n, n + 3, trans, 2)
        c, ldc = padded(np.full((n, n), np.nan, dtype), 1)

        def emit(b, a, c, trans=trans, lower=lower, lda=lda, ldc=ldc):
            blas.emit_syrk(b, dtype, n, n + 3, a, trans, lda, c, ldc, lower=lower)
            matrices.emit_mirror(b, dtype, n, c, ldc, lower=lower)

        calls.add(emit, a, c)
        results.append((c, op(a, trans) @ op(a, trans).T))
    calls.run()
    for c, expected in results:
        assert_close(c, expected)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_trsm(dtype, n):
    rng = np.random.default_rng(n)
    calls, results = Calls(), []
    for left, lower, unit, trans in product((True, False), (True, False), (True, False), "NTC"):
        matrix, lda = padded(triangular(rng, dtype, n, lower, unit), 2)
        triangle = op(np.where(np.isnan(matrix), np.eye(n, dtype=dtype), matrix), trans)
        b, ldb = padded(random(rng, dtype, *((n, 4) if left else (4, n))), 1)
        flags = {"left": left, "lower": lower, "trans": trans, "unit": unit}

        def emit(x, a, b, shape=b.shape, lda=lda, ldb=ldb, flags=flags):
            blas.emit_trsm(x, dtype, *shape, a, lda, b, ldb, **flags)

        calls.add(emit, matrix, b)
        results.append((b, np.linalg.solve(triangle, b) if left else np.linalg.solve(triangle.T, b.T).T))
    calls.run()
    for b, expected in results:
        assert_close(b, expected)


@pytest.mark.parametrize("conjugated", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "complex128", "int32"])
def test_transpose_and_copy(dtype, shape, conjugated):
    rng = np.random.default_rng(0)
    a, lda = padded((10 * random(rng, dtype if dtype != "int32" else "float64", *shape)).astype(dtype), 2)
    turned, ldt = padded(np.zeros(shape[::-1], dtype), 1)
    copied, ldc = padded(np.zeros(shape, dtype), 3)

    def emit(b, *p):
        matrices.emit_transpose(b, dtype, *shape, p[0], lda, p[1], ldt, conjugated=conjugated)
        matrices.emit_copy(b, dtype, *shape, p[0], lda, p[2], ldc)

    run(emit, a, turned, copied)
    np.testing.assert_array_equal(turned, a.conj().T if conjugated else a.T)
    np.testing.assert_array_equal(copied, a)
    assert (turned.base[:, shape[0] :] == 99).all()
    assert (copied.base[:, shape[1] :] == 99).all()


@pytest.mark.parametrize("pair", [("float32", "float64"), ("complex64", "complex128")])
def test_conversion(pair):
    a, lda = padded(random(np.random.default_rng(0), pair[0], 5, 7), 2)
    (wide, ldw), (back, ldb) = padded(np.zeros((5, 7), pair[1]), 1), padded(np.zeros((5, 7), pair[0]), 3)

    def emit(b, a, wide, back):
        matrices.emit_convert(b, pair[0], 5, 7, a, lda, pair[1], wide, ldw)
        matrices.emit_convert(b, pair[1], 5, 7, wide, ldw, pair[0], back, ldb)

    run(emit, a, wide, back)
    np.testing.assert_array_equal(wide, a)
    np.testing.assert_array_equal(back, a)


@pytest.mark.parametrize("dtype", DTYPES)
def test_triangles(dtype):
    calls, results = Calls(), []
    for shape, lower, transposed in product(SHAPES, (True, False), (True, False)):
        a = random(np.random.default_rng(0), dtype, *shape)
        source, lds = padded(np.ascontiguousarray(a.T) if transposed else a, 1)
        out, ldo = padded(np.full(shape, np.nan, dtype), 2)
        flags = {"lower": lower, "transposed": transposed}

        def emit(b, source, out, shape=shape, lds=lds, ldo=ldo, flags=flags):
            matrices.emit_triangle(b, dtype, *shape, source, lds, out, ldo, **flags)

        calls.add(emit, source, out)
        results.append((out, np.tril(a) if lower else np.triu(a)))
    calls.run()
    for out, expected in results:
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_mirror(dtype):
    calls, results = Calls(), []
    for n, lower in product((0, 1, 3, 16, 50), (True, False)):
        a, lda = padded(random(np.random.default_rng(0), dtype, n, n), 2)
        strict = np.tril(a, -1) if lower else np.triu(a, 1)
        results.append((a, strict + strict.conj().T + np.diag(np.diag(a))))
        calls.add(lambda b, p, n=n, lda=lda, low=lower: matrices.emit_mirror(b, dtype, n, p, lda, lower=low), a)
    calls.run()
    for a, expected in results:
        np.testing.assert_array_equal(a, expected)


def test_a_process_that_only_links(tmp_path):
    """Cached code finds BLAS in a process that has not asked for it; scipy.linalg is not imported for that."""
    program = f"""
import sys
sys.path.insert(0, {str(machine.__file__).partition("func")[0]!r})
import ctypes
from func.backends.llvm import ir
from func.backends.llvm import machine

def make():
    from func.backends.llvm.linalg import blas
    module = ir.Module()
    pointer = ir.PointerType()
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [pointer, pointer]), "square")
    builder = ir.IRBuilder(function.append_basic_block())
    x, y = function.args
    blas.emit_gemm(builder, "float64", 1, 1, 1, x, "N", 1, x, "N", 1, y, 1)
    builder.ret_void()
    print("made")
    return module

code = machine.compile_ir(make, key="square")
number, square = ctypes.c_double(3), ctypes.c_double()
kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
kind(code.address("square"))(ctypes.addressof(number), ctypes.addressof(square))
print(square.value, "scipy.linalg" in sys.modules)
import scipy.linalg.cython_blas
import scipy.linalg
print(scipy.linalg.cython_blas is sys.modules["scipy.linalg.cython_blas"], scipy.linalg.blas.ddot([3.0], [2.0]))
"""
    command = [sys.executable, "-W", "error", "-c", program]
    outputs = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert outputs == ["made\n9.0 False\nTrue 6.0\n", "9.0 False\nTrue 6.0\n"]
