"""LAPACK called from native code, against NumPy and SciPy."""

from itertools import product

import numpy as np
import pytest

pytest.importorskip("llvmlite")
pytest.importorskip("scipy")

from scipy import linalg as scipy_linalg

from func.backends.llvm.linalg import lapack, lu, matrix_copies, spectra
from tests.support.native_matrices import DTYPES, Calls, assert_close, padded, random, run

SIZES = (0, 1, 3, 50)
# NumPy computes in double precision whatever it is given: a vector's sign in single precision is another matter.
WIDE = ("float64", "complex128")
SHAPES = ((1, 1), (3, 3), (5, 2), (2, 5), (50, 20), (20, 50), (70, 3))


@pytest.fixture(autouse=True)
def separate_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("FUNC_CACHE_DIR", str(tmp_path))


def positive(rng, dtype, n):
    a = random(rng, dtype, n, n)
    return a @ a.conj().T + n * np.eye(n, dtype=dtype)


def hermitian(rng, dtype, n):
    a = random(rng, dtype, n, n)
    return (a + a.conj().T) / 2


def one_triangle(a, lower):
    """The matrix with NaN where nothing must look."""
    out = np.array(a)
    out[np.triu_indices(len(a), 1) if lower else np.tril_indices(len(a), -1)] = np.nan
    return out


def scratch(size):
    """Memory at a multiple of 64 bytes, with a mark behind it that must stay."""
    memory = np.zeros(size + 128, np.uint8)
    start = -memory.ctypes.data % 64
    memory[start + size :] = 77
    return memory[start : start + size + 32]


def assert_within(memory):
    assert (memory[-32:] == 77).all(), "the routine wrote behind its scratch memory"


def real(dtype):
    return np.empty(0, dtype).real.dtype


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_cholesky_and_inverse(dtype, n):
    rng = np.random.default_rng(n)
    for lower in (True, False):
        whole = positive(rng, dtype, n)
        factor = padded(one_triangle(whole, lower), 2)
        inverse = padded(np.full((n, n), np.nan, dtype), 3)
        calls = Calls()

        def emit_factor(b, factor, lower=lower):
            status = lapack.emit_potrf(b, n, factor, lower=lower)
            matrix_copies.emit_clear(b, n, factor, lower=not lower)
            return status

        def emit_inverse(b, factor, inverse, lower=lower):
            matrix_copies.emit_copy(b, n, n, factor, inverse)
            return lapack.emit_potri(b, n, inverse, lower=lower)

        calls.add(emit_factor, factor)
        calls.add(emit_inverse, factor, inverse)
        assert calls.run() == [0, 0]
        assert_close(factor, np.linalg.cholesky(whole) if lower else np.linalg.cholesky(whole).conj().T)
        assert_close(inverse, np.linalg.inv(whole))


@pytest.mark.parametrize("dtype", DTYPES)
def test_matrix_that_is_not_positive_definite(dtype):
    a = np.diag([2, 1, -1, 3]).astype(dtype)
    assert run(lambda b, a: lapack.emit_potrf(b, 4, a), a) == 3


@pytest.mark.parametrize("dtype", DTYPES)
def test_zero_on_the_diagonal(dtype):
    a = np.eye(5, dtype=dtype)
    a[2, 2] = a[4, 4] = 0
    assert run(lambda b, a: lapack.emit_first_zero(b, 5, a), a) == 3
    assert run(lambda b, a: lapack.emit_first_zero(b, 2, a), a) == 0


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_imaginary_diagonal_is_not_zero(dtype):
    assert run(lambda b, a: lapack.emit_first_zero(b, 3, a), 2j * np.eye(3, dtype=dtype)) == 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_singular_factor_has_no_inverse(dtype):
    factor = np.diag([1, 2, 0, 3]).astype(dtype)
    expected = factor.copy()
    assert run(lambda b, a: lapack.emit_potri(b, 4, a), factor) == 3
    np.testing.assert_array_equal(factor, expected)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), *SHAPES])
@pytest.mark.parametrize("dtype", DTYPES)
def test_lu(dtype, shape):
    m, n = shape
    a = padded(random(np.random.default_rng(0), dtype, m, n), 2)
    factors = padded(np.full((m, n), np.nan, dtype), 1)
    pivots = np.full(min(m, n), -1, np.int32)
    memory = scratch(lu.lu_scratch(dtype, m, n))
    assert run(lambda b, *p: lu.emit_lu(b, m, n, *p[:2], p[2].at, p[3].at), a, factors, pivots, memory) == 0
    assert_within(memory)
    if 0 not in shape:
        expected, exchanges = scipy_linalg.lu_factor(a)
        assert_close(factors, expected)
        np.testing.assert_array_equal(pivots, exchanges)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_solve_inverse_and_solve_by_factors(dtype, n):
    rng = np.random.default_rng(n)
    a = padded(random(rng, dtype, n, n) + 2 * np.eye(n, dtype=dtype), 2)
    inverse = np.full((n, n), np.nan, dtype)
    memory = scratch(lu.inverse_scratch(dtype, n))
    calls, results = Calls(), [(inverse, np.linalg.inv(a))]
    calls.add(lambda b, a, out, memory: lu.emit_inverse(b, n, a, out, memory.at), a, inverse, memory)
    memories = [memory]
    for k in (0, 1, 4):
        b, x = padded(random(rng, dtype, n, k), 1), padded(np.full((n, k), np.nan, dtype), 3)
        memory = scratch(lu.solve_scratch(dtype, n, k))

        def emit(builder, a, b, x, memory, k=k):
            return lu.emit_solve(builder, n, k, a, b, x, memory.at)

        calls.add(emit, a, b, x, memory)
        memories.append(memory)
        results.append((x, np.linalg.solve(a, b)))
        for trans in "NTC":
            x, pivots, factors = padded(b, 2), np.empty(n, np.int32), np.empty((n, n), dtype)
            memory = scratch(lu.lu_scratch(dtype, n, n))

            def emit_by_factors(builder, a, factors, pivots, x, memory, k=k, trans=trans):
                lu.emit_lu(builder, n, n, a, factors, pivots.at, memory.at)
                return lu.emit_getrs(builder, n, k, factors, pivots.at, x, trans=trans)

            calls.add(emit_by_factors, a, factors, pivots, x, memory)
            results.append((x, np.linalg.solve({"N": a, "T": a.T, "C": a.conj().T}[trans], b)))
    assert not any(calls.run())
    for actual, expected in results:
        assert_close(actual, expected)
    for memory in memories:
        assert_within(memory)


@pytest.mark.parametrize("dtype", DTYPES)
def test_singular_matrices(dtype):
    a = np.array([[1, 2, 3], [2, 4, 6], [1, 0, 1]], dtype)
    out, b, pivots = np.empty_like(a), np.ones((3, 1), dtype), np.empty(3, np.int32)
    memory = scratch(lu.inverse_scratch(dtype, 3))
    calls = Calls()
    calls.add(lambda x, a, out, m: lu.emit_inverse(x, 3, a, out, m.at), a, out, memory)
    calls.add(lambda x, a, b, m: lu.emit_solve(x, 3, 1, a, b, b, m.at), a, b, memory)
    calls.add(lambda x, a, out, p, m: lu.emit_lu(x, 3, 3, a, out, p.at, m.at), a, out, pivots, memory)
    assert calls.run() == [3, 3, 3]


@pytest.mark.parametrize("dtype", DTYPES)
def test_determinants(dtype):
    rng = np.random.default_rng(0)
    matrices_of_sizes = [random(rng, dtype, n, n) / np.sqrt(max(1, n), dtype=real(dtype)) for n in SIZES]
    singular = np.array([[1, 2, 3], [2, 4, 6], [1, 0, 1]], dtype)
    calls, results = Calls(), []
    for matrix in (*matrices_of_sizes, singular, -singular[::-1, :2][:2].copy()):
        n = len(matrix)
        det, sign, logarithm = np.empty(1, dtype), np.empty(1, dtype), np.empty(1, real(dtype))
        memory = scratch(lu.det_scratch(dtype, n))

        def emit(b, a, det, sign, logarithm, memory, n=n):
            lu.emit_det(b, n, a, det.at, memory.at)
            lu.emit_slogdet(b, n, a, sign.at, logarithm.at, memory.at)

        calls.add(emit, padded(matrix, 2), det, sign, logarithm, memory)
        results.append((matrix, det, sign, logarithm))
    calls.run()
    for matrix, det, sign, logarithm in results:
        expected = np.linalg.slogdet(matrix)
        np.testing.assert_allclose(sign, expected.sign, rtol=1e-4)
        np.testing.assert_allclose(logarithm, expected.logabsdet, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(det, np.linalg.det(matrix), rtol=1e-3 if dtype not in WIDE else 1e-10)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_eigh(dtype, n):
    rng = np.random.default_rng(n)
    calls, results, memories = Calls(), [], []
    for lower, vectors in product((True, False), (True, False)):
        whole = hermitian(rng, dtype, n)
        a = padded(one_triangle(whole, lower), 2)
        w, v = np.empty(n, real(dtype)), padded(np.zeros((n, n), dtype), 1)
        memory = scratch(spectra.eigh_scratch(dtype, n, vectors=vectors))

        def emit(b, a, w, v, memory, lower=lower, vectors=vectors):
            return spectra.emit_eigh(b, n, a, w.at, v if vectors else None, memory.at, lower=lower)

        calls.add(emit, a, w, v, memory)
        results.append((whole, lower, w, v if vectors else None))
        memories.append(memory)
    assert not any(calls.run())
    for whole, lower, w, v in results:
        values, expected = np.linalg.eigh(whole, "L" if lower else "U")
        assert_close(w, values)
        if v is not None:
            assert_close(v * w @ v.conj().T, whole)
            if dtype in WIDE:
                assert_close(v, expected)
    for memory in memories:
        assert_within(memory)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_svd(dtype, shape):
    m, n = shape
    rng = np.random.default_rng(0)
    calls, results, memories = Calls(), [], []
    for vectors, full in ((False, False), (True, False), (True, True)):
        a = padded(random(rng, dtype, m, n), 2)
        rows, columns = (m, n) if full else (min(m, n),) * 2
        s = np.empty(min(m, n), real(dtype))
        u, vh = padded(np.zeros((m, rows), dtype), 1), padded(np.zeros((columns, n), dtype), 3)
        memory = scratch(spectra.svd_scratch(dtype, m, n, vectors=vectors, full=full))

        def emit(b, a, s, u, vh, memory, vectors=vectors, full=full):
            u, vh = (u, vh) if vectors else (None, None)
            return spectra.emit_svd(b, m, n, a, s.at, u, vh, memory.at, full=full)

        calls.add(emit, a, s, u, vh, memory)
        results.append((np.array(a), s, (u, vh) if vectors else None, full))
        memories.append(memory)
    assert not any(calls.run())
    for a, s, factors, full in results:
        u, values, vh = np.linalg.svd(a, full_matrices=full)
        assert_close(s, values)
        if factors:
            k = len(s)
            assert_close(factors[0][:, :k] * s @ factors[1][:k], a)
            assert_close(factors[0].conj().T @ factors[0], np.eye(factors[0].shape[1], dtype=dtype))
            if dtype in WIDE:
                assert_close(factors[0], u)
                assert_close(factors[1], vh)
    for memory in memories:
        assert_within(memory)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_qr(dtype, shape):
    m, n = shape
    rng = np.random.default_rng(0)
    a = padded(random(rng, dtype, m, n), 2)
    calls, results, memories = Calls(), [], []
    for mode in ("reduced", "complete", "r"):
        k = m if mode == "complete" else min(m, n)
        q, r = padded(np.zeros((m, k), dtype), 1), padded(np.zeros((k, n), dtype), 3)
        memory = scratch(spectra.qr_scratch(dtype, m, n, complete=mode == "complete"))

        def emit(b, a, q, r, memory, mode=mode):
            q = None if mode == "r" else q
            return spectra.emit_qr(b, m, n, a, q, r, memory.at, complete=mode == "complete")

        calls.add(emit, a, q, r, memory)
        results.extend(zip((r,) if mode == "r" else (q, r), _tuple(np.linalg.qr(a, mode)), strict=True))
        memories.append(memory)
    h, tau = np.zeros((n, m), dtype), np.zeros(min(m, n), dtype)
    work = scratch(64 * n * np.dtype(dtype).itemsize)
    calls.add(lambda b, a, *p: spectra.emit_qr_raw(b, m, n, a, *(place.at for place in p)), a, h, tau, work)
    results.extend(zip((h, tau), np.linalg.qr(a, "raw"), strict=True))
    assert not any(calls.run())
    for actual, expected in results:
        assert_close(actual, expected)
    for memory in (*memories, work):
        assert_within(memory)


def _tuple(value):
    return value if isinstance(value, tuple) else (value,)


@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (200, 10), (10, 200), (120, 100)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_workspace_is_what_lapack_asks_for(dtype, shape):
    m, n = shape
    letter = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}[dtype]
    routines = scipy_linalg.lapack
    for job, vectors, full in (("N", 0, 0), ("S", 1, 0), ("A", 1, 1)):
        query = getattr(routines, f"{letter}gesdd_lwork")(m, n, vectors, full)
        assert spectra._svd_work(dtype, m, n, job)[0] >= query[0].real
    query = getattr(routines, letter + ("syevd" if letter in "sd" else "heevd") + "_lwork")(n)
    work, _, integers = spectra._eigh_work(dtype, n, True)
    assert work >= query[0].real
    assert integers >= query[1].real
    query = getattr(routines, f"{letter}getri_lwork")(n)
    assert lapack.WIDTH * n >= query[0].real
    query = getattr(routines, f"{letter}geqrf_lwork")(m, n)
    assert lapack.WIDTH * n >= query[0].real
