"""Linear algebra inside native programs, against NumPy and against what runs without compiling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")
pytest.importorskip("scipy")

import func
import func.linalg
from func.backends.llvm import machine
from func.interpreters.compile.native import diagonals, linalg, spectral
from func.interpreters.compile.native.translate import all_rules
from func.interpreters.primitives.linalg.singular import lstsq
from tests.interpreters.compile.native.test_rules import compiled, eager_outputs, is_native, layouts
from tests.support.samples import SAMPLES
from tests.support.sampling import Sample

pytestmark = pytest.mark.skipif(not machine.available(), reason="no native code on this machine")

SIZES = (0, 1, 2, 5, 33)


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FUNC_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def positive(*shape: int, dtype: Any = float) -> Any:
    rng = np.random.default_rng(shape[-1])
    a = rng.normal(size=shape)
    return (a @ a.swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1])).astype(dtype)


def general(*shape: int, dtype: Any = float) -> Any:
    rng = np.random.default_rng(shape[-1] + 7)
    a = rng.normal(size=shape)
    return (a + 2 * np.eye(shape[-2], shape[-1])).astype(dtype)


def is_whole(jitted: Any) -> bool:
    """Whether the last call of a jitted function has found native code that does all of it."""
    return type(jitted._fast_call) is type(len)


def same(function: Callable[..., Any], *args: Any, rtol: float = 1e-10, atol: float = 1e-12) -> Any:
    """Call a jitted function, which must be native as a whole (nothing of size zero is), and compare it with the
    function itself, twice."""
    jitted = func.jit(function)
    want = function(*args)
    for _ in range(2):
        got = jitted(*args)
        assert type(got) is type(want)
        for one, other in zip(*[x if type(x) in (tuple, list) else (x,) for x in (got, want)], strict=True):
            assert np.asarray(one).dtype == np.asarray(other).dtype
            scale = np.max(np.abs(other), initial=1)
            np.testing.assert_allclose(one, other, rtol=rtol, atol=atol * scale)
    assert is_whole(jitted) or 0 in [np.size(arg) for arg in args], "not native as a whole"
    return got


def same_errors(function: Callable[..., Any], good: tuple[Any, ...], bad: tuple[Any, ...]) -> None:
    """Bad arguments raise from native code what they raise without it, and good ones work afterwards."""
    jitted = func.jit(function)
    want = jitted(*good)
    assert is_whole(jitted)
    with pytest.raises(np.linalg.LinAlgError) as expected:
        function(*bad)
    with pytest.raises(np.linalg.LinAlgError) as found:
        jitted(*bad)
    assert str(found.value) == str(expected.value)
    assert is_whole(jitted)
    np.testing.assert_array_equal(jitted(*good), want)


MODULES = {module.__name__ for module in (linalg, diagonals, spectral)}
PRIMITIVES = [
    pytest.param(name, sample, id=f"{name}-{i}")
    for name, rule in all_rules().items()
    if rule.__module__ in MODULES
    for i, sample in enumerate(SAMPLES[name])
    if is_native(name, sample.args, sample.params)
]


def narrow(x: Any) -> Any:
    kind = np.asarray(x).dtype.kind
    return np.asarray(x).astype({"f": np.float32, "c": np.complex64}[kind]) if kind in "fc" else x


@pytest.mark.parametrize(("name", "sample"), PRIMITIVES)
@pytest.mark.parametrize("narrowed", [False, True])
def test_rows_compute_what_they_compute_without_compiling(name: str, sample: Sample, narrowed: bool) -> None:
    args = [narrow(x) for x in sample.args] if narrowed else list(sample.args)
    run = compiled(name, args, sample.params)
    assert run is not None
    arrays = [layouts(x) for x in args]
    for turn in range(6):
        given = [one[turn % len(one)] for one in arrays]
        for got, want in zip(run(*given), eager_outputs(name, args, sample.params), strict=True):
            assert (got.dtype, np.shape(got)) == (want.dtype, np.shape(want))
            close = 1e-5 if narrowed else 1e-13
            np.testing.assert_allclose(
                got, want, rtol=close, atol=close * np.max(np.abs(want[np.isfinite(want)]), initial=0)
            )


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("batch", [(), (3,), (2, 0)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_cholesky_reads_one_triangle_and_clears_the_other(n: int, batch: tuple[int, ...], dtype: Any) -> None:
    a = positive(*batch, n, n, dtype=dtype)
    rtol = 1e-6 if dtype == np.float32 else 1e-12
    for upper, odd in ((False, np.triu(np.full((n, n), np.nan), 1)), (True, np.tril(np.full((n, n), np.nan), -1))):
        same(lambda a, upper=upper: np.linalg.cholesky(a, upper=upper), (a + odd).astype(dtype), rtol=rtol)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("columns", [None, 0, 1, 3])
@pytest.mark.parametrize("turned", [False, True])
def test_triangular_solves(n: int, columns: int | None, turned: bool) -> None:
    a = general(n, n) + n * np.eye(n)
    b = general(n, 1 if columns is None else columns)
    b = b[:, 0] if columns is None else b

    for lower in (True, False):
        for trans in (0, 1):
            for unit in (False, True):

                def solved(a: Any, b: Any, lower: bool = lower, trans: int = trans, unit: bool = unit) -> Any:
                    a = a.T if turned else a
                    return func.linalg.solve_triangular(a, b, lower=lower, trans=trans, unit_diagonal=unit)

                same(solved, a / n**2 if unit and n else a, b)


def test_right_hand_sides_by_columns() -> None:
    a, b = general(6, 6) + 6 * np.eye(6), general(4, 6)
    same(lambda a, b: func.linalg.solve_triangular(a, b.T, lower=True), a, b)
    same(lambda a, b: func.linalg.solve_triangular(a.T, (2 * b).T, lower=False).T, a, b)


def test_the_gradient_of_a_gaussian_process_is_one_native_program() -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(40, 2))
    distances = np.sum((points[:, None] - points[None]) ** 2, -1)
    values = rng.normal(size=40)

    def loss(logarithms: Any, distances: Any, values: Any) -> Any:
        length, amplitude, noise = np.exp(logarithms[0]), np.exp(logarithms[1]), np.exp(logarithms[2])
        kernel = amplitude**2 * np.exp(-0.5 * distances / length**2) + noise**2 * np.eye(40)
        factor = np.linalg.cholesky(kernel)
        whitened = func.linalg.solve_triangular(factor, values, lower=True)
        return 0.5 * np.sum(whitened * whitened) + np.sum(np.log(np.diag(factor)))

    logarithms = np.array([0.1, 0.2, -0.5])
    same(func.grad(loss), logarithms, distances, values)
    same(func.value_and_grad(loss), logarithms, distances, values)
    same(func.hessian(loss), logarithms, distances, values)
    same(
        func.vmap(func.grad(loss), in_axes=(0, None, None)), np.stack([logarithms, logarithms + 0.1]), distances, values
    )
    same_errors(func.grad(loss), (logarithms, distances, values), (logarithms, -distances, values))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_solves_inverses_and_determinants(n: int, batch: tuple[int, ...], dtype: Any) -> None:
    a, b = general(*batch, n, n, dtype=dtype), general(*batch, n, 3, dtype=dtype)
    close = {"rtol": 1e-4 if dtype == np.float32 else 1e-10, "atol": 1e-5 if dtype == np.float32 else 1e-11}
    same(np.linalg.solve, a, b, **close)
    same(np.linalg.inv, a, **close)
    same(np.linalg.det, a, **close)
    same(lambda a: tuple(np.linalg.slogdet(a)), a, **close)
    same(lambda a, b: np.sum(np.linalg.solve(a, b)) + np.sum(np.linalg.slogdet(a)[1]), a, b, **close)
    same(func.grad(lambda a, b: np.sum(np.linalg.solve(a, b)) + np.sum(np.linalg.slogdet(a)[1])), a, b, **close)


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 4, 4)])
def test_lu(shape: tuple[int, ...]) -> None:
    a = general(*shape)
    for got, want in zip(func.jit(func.linalg.lu)(a), func.linalg.lu(a), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)
    if shape[-1] == shape[-2]:
        same(func.linalg.lu_factor, a)


def test_errors_are_those_of_numpy() -> None:
    good, singular = positive(4, 4), np.ones((4, 4))
    b = general(4, 2)
    same_errors(np.linalg.cholesky, (good,), (-good,))
    same_errors(np.linalg.inv, (good,), (singular,))
    same_errors(np.linalg.solve, (good, b), (singular, b))
    same_errors(func.grad(lambda a: np.sum(np.linalg.inv(a))), (good,), (singular,))
    same_errors(func.vmap(np.linalg.cholesky), (np.stack([good, good]),), (np.stack([good, -good]),))
    zero = np.tril(good)
    zero[2, 2] = 0
    same_errors(lambda a, b: func.linalg.solve_triangular(a, b, lower=True), (good, b), (zero, b))


def test_errors_inside_of_loops() -> None:
    def last(a: Any) -> Any:
        return func.scan(lambda carry, x: (np.linalg.cholesky(carry + x), np.sum(carry)), a, np.ones(3))[0]

    def total(a: Any) -> Any:
        return np.sum(last(a))

    good = positive(3, 3)
    same(last, good)
    same(func.grad(total), good)
    same_errors(last, (good,), (-good,))
    same_errors(func.grad(total), (good,), (-good,))


def test_a_kalman_filter_is_one_native_program() -> None:
    rng = np.random.default_rng(1)
    transition = np.array([[1.0, 0.1, 0.0], [0.0, 1.0, 0.1], [0.0, 0.0, 0.95]])
    observation = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    measured = rng.normal(size=(25, 2))

    def likelihood(logarithms: Any, measured: Any) -> Any:
        drift, noise = np.exp(logarithms[0]) * np.eye(3), np.exp(logarithms[1]) * np.eye(2)

        def step(state: Any, y: Any) -> Any:
            mean, covariance = state
            mean = transition @ mean
            covariance = transition @ covariance @ transition.T + drift
            innovation = y - observation @ mean
            spread = observation @ covariance @ observation.T + noise
            gain = np.linalg.solve(spread, observation @ covariance).T
            logarithm = innovation @ np.linalg.solve(spread, innovation) + np.linalg.slogdet(spread)[1]
            return (mean + gain @ innovation, covariance - gain @ observation @ covariance), logarithm

        return -0.5 * np.sum(func.scan(step, (np.zeros(3), np.eye(3)), measured)[1])

    logarithms = np.array([-1.0, 0.3])
    same(likelihood, logarithms, measured)
    same(func.value_and_grad(likelihood), logarithms, measured)
    same(func.hessian(likelihood), logarithms, measured, rtol=1e-8)


@pytest.mark.parametrize("n", [1, 2, 5, 33])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_eigenvectors_have_the_signs_of_numpy(n: int, dtype: Any) -> None:
    close = {"rtol": 1e-5, "atol": 1e-6} if dtype == np.float32 else {"rtol": 1e-9, "atol": 1e-11}
    a = positive(2, n, n, dtype=dtype)
    odd = (a + np.triu(np.full((n, n), np.nan), 1)).astype(dtype)
    for letter, one in (("L", odd), ("U", odd.swapaxes(1, 2))):
        same(lambda a, letter=letter: tuple(np.linalg.eigh(a, letter)), one, **close)
        same(lambda a, letter=letter: np.linalg.eigvalsh(a, letter), one, **close)
    weights = general(n, n, dtype=dtype)
    same(func.grad(lambda a: np.sum(np.linalg.eigh(a)[1] * weights)), a[0], rtol=1e-4, atol=1e-4 if n > 5 else 1e-5)


@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (3, 5), (4, 4), (2, 5, 3), (40, 20)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_singular_values_and_qr(shape: tuple[int, ...], dtype: Any) -> None:
    close = {"rtol": 1e-5, "atol": 1e-5} if dtype == np.float32 else {"rtol": 1e-9, "atol": 1e-11}
    a = general(*shape, dtype=dtype)
    for full in (True, False):
        same(lambda a, full=full: tuple(np.linalg.svd(a, full)), a, **close)
    same(lambda a: np.linalg.svd(a, compute_uv=False), a, **close)
    for mode in ("reduced", "complete", "raw"):
        same(lambda a, mode=mode: tuple(np.linalg.qr(a, mode)), a, **close)
    same(lambda a: np.linalg.qr(a, "r"), a, **close)
    same(np.linalg.pinv, a, **close)
    same(func.grad(lambda a: np.sum(np.linalg.pinv(a) ** 2)), a, rtol=1e-3, atol=1e-4)
    same(lambda a: np.linalg.pinv(a @ a.swapaxes(-1, -2), rcond=1e-3, hermitian=True), a, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (40, 30)])
@pytest.mark.parametrize("rank", [None, 2])
def test_least_squares(shape: tuple[int, int], rank: int | None) -> None:
    a, b = general(*shape), general(shape[0], 2)
    if rank is not None:
        a = a[:, :rank] @ general(rank, shape[1])

    def solved(a: Any, b: Any) -> Any:
        return lstsq(a, b, limit=1e-10, cut=False)

    same(solved, a, b, rtol=1e-8)
    same(func.vmap(solved), np.stack([a, -a]), np.stack([b, b]), rtol=1e-8)
    if rank is None:
        same(func.grad(lambda a, b: np.sum(solved(a, b)[0])), a, b, rtol=1e-7)


def test_least_squares_of_numpy() -> None:
    """While traced the rank is not known: residuals are NaN, not absent, where it is deficient."""
    a, b = general(6, 3), general(6, 1)[:, 0]
    for found, expected in zip(func.jit(np.linalg.lstsq)(a, b), np.linalg.lstsq(a, b), strict=True):
        assert np.asarray(found).dtype == np.asarray(expected).dtype
        np.testing.assert_allclose(found, expected, rtol=1e-10)
    _, residuals, rank, _ = func.jit(np.linalg.lstsq)(a[:, :1] * np.ones(3), b)
    assert rank == 1 and np.isnan(residuals).all() and residuals.shape == (1,)
    wide = func.jit(np.linalg.lstsq)(a.T, b[:3])
    assert wide[1].shape == (0,)
    func.testing.check_grads(func.jit(lambda x, y: np.polyfit(x, y, 2)), (b, a[:, 0]), order=2)
    same(lambda x, y: np.polyfit(x, y, 2), b, a[:, 0], rtol=1e-10)


@pytest.mark.parametrize("assume", [None, "gen", "sym", "her", "pos", "upper triangular", "lower triangular"])
def test_solves_by_what_is_known(assume: str | None) -> None:
    a, b = positive(20, 20), general(20, 3)
    read = {"upper triangular": np.triu(a), "lower triangular": np.tril(a)}.get(assume or "", a)

    def solved(a: Any, b: Any) -> Any:
        return func.linalg.solve(a, b, assume_a=assume)

    same(solved, read, b)
    same(func.grad(lambda a, b: np.sum(solved(a, b) ** 2)), read, b)
    jitted = func.jit(solved)
    jitted(read, b)
    near = np.array(read)
    near[:, 1] = near[:, 0] * (1 + 1e-16)
    near[1, :] = near[0, :]
    if assume is not None and "triangular" in assume:
        near = np.array(read)
        near[3, 3] = 1e-20
    if assume != "pos":
        linalg = pytest.importorskip("scipy.linalg")
        for run in (jitted, solved):
            with pytest.raises((np.linalg.LinAlgError, linalg.LinAlgWarning)):
                run(near, b)


def test_adjugates_of_singular_matrices() -> None:
    def gradient(a: Any) -> Any:
        return func.grad(np.linalg.det)(a)

    a = general(5, 5)
    same(gradient, a)
    singular = np.array(a)
    singular[4] = singular[0] + singular[1]
    same(gradient, singular, atol=1e-10)
    same(func.vmap(gradient), np.stack([a, singular]), atol=1e-10)
