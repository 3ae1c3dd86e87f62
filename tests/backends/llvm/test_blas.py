"""BLAS called from native code."""

import subprocess
import sys
from itertools import product

import numpy as np
import pytest

pytest.importorskip("llvmlite")
pytest.importorskip("scipy")

from func.backends import ir
from func.backends.llvm import machine
from func.backends.llvm.linalg import blas, matrix_copies, routines, scipy_library
from tests.support.native_matrices import DTYPES, Calls, assert_close, padded, random, run, triangular

SIZES = (0, 1, 3, 50)
SHAPES = ((0, 3), (1, 1), (3, 3), (4, 7), (7, 4), (5, 40), (33, 17))


@pytest.fixture(autouse=True)
def separate_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("FUNC_CACHE_DIR", str(tmp_path))


def op(a, trans):
    return {"N": a, "T": a.T, "C": a.conj().T}[trans]


def operand(rng, dtype, rows, columns, trans, extra):
    """A matrix that is (rows, columns) after op."""
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


@pytest.mark.parametrize("name", sorted(routines.ARGUMENTS))
def test_known_declarations_are_those_that_scipy_states(name):
    for letter in routines.LETTERS.values():
        signature = scipy_library.capsule_name(scipy_library.capsule(letter + name)).decode()
        assert signature.startswith("void (")
        assert signature.count(",") + 1 == routines.ARGUMENTS[name]


@pytest.mark.parametrize("name", ["dgemm", "sgetrf", "zheevd", "dlange", "idamax"])
def test_routines_of_the_wheel_and_those_that_scipy_exports_are_alike(name, monkeypatch):
    """SciPy's pointers are functions that call the routines: both exist, whichever is taken."""
    assert scipy_library.address_of(scipy_library.PREFIX + name)
    monkeypatch.setattr(scipy_library, "_library", lambda: None)
    assert scipy_library.address_of(scipy_library.PREFIX + name)
    assert scipy_library.address_of(scipy_library.PREFIX + "nothing") is None


def test_sizes_beyond_32_bits():
    assert routines.fits(2**31 - 1)
    assert not routines.fits(1, 2**31)
    with pytest.raises(OverflowError, match="dgemm"):
        run(lambda b, a: blas.emit_gemm(b, 2**31, 1, 1, a, "N", a, "N", a), np.ones(1))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_gemm(dtype, n):
    rng = np.random.default_rng(n)
    m, k = n + 2, n + 1
    calls, results = Calls(), []
    for ta, tb, extra in product("NTC", "NTC", (0, 3)):
        a, b = operand(rng, dtype, m, k, ta, extra), operand(rng, dtype, k, n, tb, extra)
        c = padded(np.full((m, n), np.nan, dtype), extra)
        calls.add(lambda x, a, b, c, ta=ta, tb=tb: blas.emit_gemm(x, m, n, k, a, ta, b, tb, c), a, b, c)
        results.append((c, op(a, ta) @ op(b, tb)))
    calls.run()
    for c, expected in results:
        assert_close(c, expected)
        assert (c.base[:, n:] == 99).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_gemm_scaled(dtype):
    rng = np.random.default_rng(0)
    a, b, c = random(rng, dtype, 4, 5), random(rng, dtype, 5, 3), random(rng, dtype, 4, 3)
    scales = {"alpha": 2.5, "beta": -0.5} if np.dtype(dtype).kind == "f" else {"alpha": 2.5 - 1j, "beta": 3j}
    expected = scales["alpha"] * (a @ b) + scales["beta"] * c
    run(lambda x, a, b, c: blas.emit_gemm(x, 4, 3, 5, a, "N", b, "N", c, **scales), a, b, c)
    assert_close(c, expected)


def test_gemm_over_nothing_is_zero():
    c = np.full((2, 3), np.nan)
    run(lambda x, a, b, c: blas.emit_gemm(x, 2, 3, 0, a._replace(ld=0), "N", b, "N", c), c, c, c)
    assert (c == 0).all()


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_trsm(dtype, n):
    rng = np.random.default_rng(n)
    calls, results = Calls(), []
    for left, lower, unit, trans in product((True, False), (True, False), (True, False), "NTC"):
        matrix = padded(triangular(rng, dtype, n, lower, unit), 2)
        triangle = op(np.where(np.isnan(matrix), np.eye(n, dtype=dtype), matrix), trans)
        b = padded(random(rng, dtype, *((n, 4) if left else (4, n))), 1)
        flags = {"left": left, "lower": lower, "trans": trans, "unit": unit}

        def emit(x, a, b, shape=b.shape, flags=flags):
            blas.emit_trsm(x, *shape, a, b, **flags)

        calls.add(emit, matrix, b)
        results.append((b, np.linalg.solve(triangle, b) if left else np.linalg.solve(triangle.T, b.T).T))
    calls.run()
    for b, expected in results:
        assert_close(b, expected)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_trsv(dtype, n):
    rng = np.random.default_rng(n)
    calls, results = Calls(), []
    transposes = "NT" if np.dtype(dtype).kind == "c" else "NTC"
    for lower, unit, trans in product((True, False), (True, False), transposes):
        matrix = padded(triangular(rng, dtype, n, lower, unit), 2)
        triangle = op(np.where(np.isnan(matrix), np.eye(n, dtype=dtype), matrix), trans)
        x = padded(random(rng, dtype, n, 1), 2)
        flags = {"lower": lower, "trans": trans, "unit": unit}
        calls.add(lambda b, a, x, flags=flags: blas.emit_trsv(b, n, a, x, **flags), matrix, x)
        results.append((x, np.linalg.solve(triangle, x)))
    calls.run()
    for x, expected in results:
        assert_close(x, expected)
        assert (x.base[:, 1:] == 99).all()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "complex128", "int32"])
def test_transpose_and_copy(dtype, shape):
    rng = np.random.default_rng(0)
    a = padded((10 * random(rng, dtype if dtype != "int32" else "float64", *shape)).astype(dtype), 2)
    turned, copied = padded(np.zeros(shape[::-1], dtype), 1), padded(np.zeros(shape, dtype), 3)

    def emit(b, a, turned, copied):
        matrix_copies.emit_transpose(b, *shape, a, turned)
        matrix_copies.emit_copy(b, *shape, a, copied)

    run(emit, a, turned, copied)
    np.testing.assert_array_equal(turned, a.T)
    np.testing.assert_array_equal(copied, a)
    assert (turned.base[:, shape[0] :] == 99).all()
    assert (copied.base[:, shape[1] :] == 99).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_upper_triangle_of_a_matrix_by_columns(dtype):
    calls, results = Calls(), []
    for shape in SHAPES:
        a = random(np.random.default_rng(0), dtype, *shape)
        source = padded(np.ascontiguousarray(a.T), 1)
        out = padded(np.full(shape, np.nan, dtype), 2)
        calls.add(lambda b, source, out, shape=shape: matrix_copies.emit_upper(b, *shape, source, out), source, out)
        results.append((out, np.triu(a)))
    calls.run()
    for out, expected in results:
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_mirror_and_clear(dtype):
    calls, results = Calls(), []
    for n, lower in product((0, 1, 3, 16, 50), (True, False)):
        a = padded(random(np.random.default_rng(0), dtype, n, n), 2)
        strict = np.tril(a, -1) if lower else np.triu(a, 1)
        cleared = padded(a, 1)
        results.append((a, strict + strict.conj().T + np.diag(np.diag(a))))
        results.append((cleared, a - strict))
        calls.add(lambda b, a, n=n, lower=lower: matrix_copies.emit_mirror(b, n, a, lower=lower), a)
        calls.add(lambda b, a, n=n, lower=lower: matrix_copies.emit_clear(b, n, a, lower=lower), cleared)
    calls.run()
    for a, expected in results:
        np.testing.assert_array_equal(a, expected)


def test_a_process_that_only_links(tmp_path):
    """Cached code finds BLAS in a process that has not asked for it; scipy.linalg is not imported for that."""
    program = f"""
import sys
sys.path.insert(0, {str(machine.__file__).partition("func")[0]!r})
import ctypes
from func.backends import ir
from func.backends.llvm import machine

def make():
    import numpy as np
    from func.backends.llvm.linalg.blas import emit_gemm
    from func.backends.llvm.linalg.matrix_copies import Matrix
    module = ir.Module()
    pointer = ir.PointerType()
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [pointer, pointer]), "square")
    builder = ir.IRBuilder(function.append_basic_block())
    x, y = [Matrix(address, 1, np.dtype(float)) for address in function.args]
    emit_gemm(builder, 1, 1, 1, x, "N", x, "N", y)
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
