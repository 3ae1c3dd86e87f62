"""func.linalg against scipy.linalg: values, derivatives of both modes and second order, mapping, refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.linalg

import func
import func.linalg
from tests.support import numpy_properties as properties
from tests.support.sampling import complex_, hermitian, real, spd

A = np.diag([1.0, 2.5, 4.0]) + 0.3 * real(3, 3)
C = A + 0.3j * real(3, 3)
H, S = hermitian(3), spd(3)
B, BC = real(3, 2), complex_(3, 2)
BAND = real(4, 5) + np.array([[0.0], [4.0], [0.0], [0.0]])
HBAND = real(3, 5) * 0.3 + np.array([[3.0], [0.0], [0.0]])
TALL = real(4, 3) + 2 * np.eye(4, 3)[:, ::-1]
V = real(4)
LA = func.linalg
FOUR = np.array([4.0, 0, 0, 0])
TWIST = np.array([[0.0, 1, 0], [-3, 0, 0], [0, 0, 0]])


def symmetric(x: Any) -> Any:
    """The Hermitian part, the argument of functions of Hermitian matrices."""
    return (x + np.conj(np.swapaxes(x, -1, -2))) / 2


def through(name: str, *more: Any, pick: int | None = None, first: bool = True, **keywords: Any) -> Callable[..., Any]:
    """A function of one array by its name, in either library."""

    def call(library: Any, x: Any) -> Any:
        out = getattr(library, name)(*((x, *more) if first else (*more, x)), **keywords)
        return out if pick is None else out[pick]

    return call


def on_symmetric(call: Callable[..., Any]) -> Callable[..., Any]:
    """The same of the Hermitian part of its argument."""
    return lambda library, x: call(library, symmetric(x))


def cho_both(library: Any, x: Any) -> Any:
    """A solve by Cholesky factors."""
    return library.cho_solve(library.cho_factor(symmetric(x)), B)


def lu_both(trans: int) -> Callable[..., Any]:
    """A solve by LU factors."""
    return lambda library, x: library.lu_solve(library.lu_factor(x), B, trans=trans)


def phaseless(name: str, pick: int, **keywords: Any) -> Callable[..., Any]:
    """Squared moduli, where signs are LAPACK's business."""

    def call(library: Any, x: Any) -> Any:
        out = getattr(library, name)(x, **keywords)[pick]
        return np.real(out * np.conj(out))

    return call


def square_of(call: Callable[..., Any]) -> Callable[..., Any]:
    """The product of an orthonormal basis with its adjoint."""

    def project(library: Any, x: Any) -> Any:
        q = call(library, x)
        return q @ np.conj(np.swapaxes(q, -1, -2))

    return project


CASES: dict[str, tuple[Callable[..., Any], Any]] = {
    "solve": (through("solve", B), A),
    "solve-complex": (through("solve", BC), C),
    "solve-vector": (through("solve", A, first=False), real(3)),
    "solve-pos": (on_symmetric(through("solve", B, assume_a="pos")), S),
    "solve-her": (on_symmetric(through("solve", BC, assume_a="her", lower=True)), H),
    "solve-sym": (on_symmetric(through("solve", B, assume_a="sym", transposed=True)), S),
    "solve-upper": (through("solve", B, assume_a="upper triangular"), np.triu(A)),
    "solve-transposed": (through("solve", B, assume_a="gen", transposed=True), A),
    "solve-banded-assumed": (through("solve", B, assume_a="banded"), A),
    **{
        f"solve_triangular-{trans}-{kind}": (through("solve_triangular", BC, trans=trans, lower=True), x)
        for trans in (0, "T", "C")
        for kind, x in (("real", A), ("complex", C))
    },
    "solve_triangular-unit": (through("solve_triangular", B, unit_diagonal=True), A),
    "cho_solve": (cho_both, S),
    **{f"lu_solve-{t}-{k}": (lu_both(t), x) for t in (0, 1, 2) for k, x in (("real", A), ("complex", C))},
    "cholesky": (on_symmetric(through("cholesky")), S),
    "cholesky-lower": (on_symmetric(through("cholesky", lower=True)), H),
    **{f"lu-{i}": (through("lu", pick=i), TALL) for i in (1, 2)},
    **{f"lu-wide-{i}": (through("lu", pick=i), TALL.T) for i in (1, 2)},
    "lu-permuted": (through("lu", pick=0, permute_l=True), C[::-1]),
    "lu_factor": (through("lu_factor", pick=0), A[::-1]),
    "expm": (through("expm"), A),
    "expm-complex": (through("expm"), C),
    "expm_frechet": (through("expm_frechet", A, pick=1), A.T),
    "logm": (through("logm"), A),
    "logm-complex": (through("logm"), C),
    "logm-of-rotation": (through("logm"), np.array([[0.1, -1.0], [1.0, 0.2]])),
    "sqrtm": (through("sqrtm"), A),
    "sqrtm-complex": (through("sqrtm"), C),
    "sqrtm-of-negative": (through("sqrtm"), -A),
    "power": (through("fractional_matrix_power", 0.3), A),
    "power-complex": (through("fractional_matrix_power", -1.3), C),
    "power-integer": (through("fractional_matrix_power", 3), A),
    "signm": (through("signm"), A - 2 * np.eye(3)),
    **{name: (through(name), A / 3) for name in ("sinm", "cosm", "tanm", "sinhm", "coshm", "tanhm")},
    **{f"{n}-complex": (through(n), C / 3) for n in ("sinm", "cosm", "tanm", "sinhm", "coshm", "tanhm")},
    "polar": (through("polar", pick=0), A),
    "polar-left": (through("polar", side="left", pick=1), C),
    "sylvester-a": (through("solve_sylvester", S, A.T), A),
    "sylvester-q": (through("solve_sylvester", A, S, first=False), C),
    "lyapunov": (through("solve_continuous_lyapunov", S), A),
    "lyapunov-complex": (through("solve_continuous_lyapunov", S), C),
    "discrete": (through("solve_discrete_lyapunov", S), C / 5),
    "discrete-bilinear": (through("solve_discrete_lyapunov", S, "bilinear"), A / 5),
    "solve_toeplitz": (through("solve_toeplitz", V[:, None]), V + FOUR),
    "solve_toeplitz-b": (lambda library, x: library.solve_toeplitz((V + FOUR, V), x), V),
    "solve_circulant": (through("solve_circulant", V), V + FOUR),
    "matmul_toeplitz": (through("matmul_toeplitz", V), V),
    "toeplitz": (through("toeplitz", V[:3]), V),
    "toeplitz-complex": (through("toeplitz"), complex_(3)),
    "circulant": (through("circulant"), V),
    "hankel": (through("hankel", V), V),
    "companion": (through("companion"), V),
    "block_diag": (through("block_diag", B, V), A),
    "khatri_rao": (through("khatri_rao", A), A),
    "diagsvd": (through("diagsvd", 4, 6), V),
    "diagsvd-tall": (through("diagsvd", 6, 4), V),
    "leslie": (through("leslie", V[:3]), V),
    "fiedler": (through("fiedler"), np.array([1.0, 3.0, 2.0])),
    **{f"convolution_matrix-{m}": (through("convolution_matrix", 3, m), V) for m in ("full", "same", "valid")},
    "eigh-values": (on_symmetric(through("eigh", eigvals_only=True)), S),
    "eigvalsh-subset": (on_symmetric(through("eigvalsh", subset_by_index=[1, 2])), H),
    "eigvalsh-by-value": (on_symmetric(through("eigvalsh", subset_by_value=[1.5, 2.5])), S),
    "eigh-vectors": (on_symmetric(phaseless("eigh", 1)), H),
    **{
        f"pencil-{t}-{i}": (on_symmetric(phaseless("eigh", i, b=spd(3) + np.eye(3), type=t)), S)
        for t in (1, 2, 3)
        for i in (0, 1)
    },
    "pencil-b": (on_symmetric(through("eigvalsh", S + np.diag([0, 1, 5]), first=False)), spd(3)),
    "eigh_tridiagonal": (through("eigh_tridiagonal", V[:2], pick=0), np.array([1.0, 2.5, 4.5])),
    "eigvalsh_tridiagonal": (through("eigvalsh_tridiagonal", np.array([1.0, 2.5, 4.5]), first=False), V[:2]),
    "eig": (phaseless("eig", 1), A),
    "eigvals": (through("eigvals"), C),
    "svdvals": (through("svdvals"), TALL),
    "svd": (through("svd", pick=1), C),
    "qr": (through("qr", mode="economic", pick=0), TALL),
    "qr-full": (through("qr", pick=1), C),
    "qr-pivoting": (through("qr", mode="economic", pivoting=True, pick=0), C),
    "rq": (phaseless("rq", 0), C),
    "rq-economic": (phaseless("rq", 1, mode="economic"), TALL.T),
    "schur-moduli": (phaseless("schur", 0, output="complex"), C),
    "schur-vectors": (phaseless("schur", 1, output="complex"), A + TWIST),
    "pinv": (through("pinv"), TALL),
    "pinvh": (on_symmetric(through("pinvh")), H),
    "inv": (through("inv"), C),
    "det": (through("det"), A),
    "norm": (through("norm"), A),
    "lstsq": (through("lstsq", real(4), pick=0), TALL),
    "lstsq-residuals": (through("lstsq", real(4, 2), pick=1), TALL),
    "null_space": (square_of(through("null_space")), TALL.T),
    "orth": (square_of(through("orth")), TALL),
    "procrustes": (through("orthogonal_procrustes", TALL[::-1], pick=0), TALL),
    "subspace_angles": (through("subspace_angles", TALL[:, :2]), real(4, 2)),
    "solve_banded": (lambda library, x: library.solve_banded((2, 1), x, real_b), BAND),
    "solve_banded-complex": (lambda library, x: library.solve_banded((2, 1), x, complex_b), BAND + 0.2j),
    "solveh_banded": (lambda library, x: library.solveh_banded(x, real_b, lower=True), HBAND),
    "solveh_banded-complex": (lambda library, x: library.solveh_banded(x, complex_b), HBAND[::-1] + 0.1j),
}
real_b, complex_b = real(5), complex_(5, 2)
TABLE = [pytest.param(*case, id=name) for name, case in CASES.items()]


def func_case(call: Callable[..., Any], x: Any) -> properties.Case:
    """The case of func.linalg."""
    return lambda y: call(LA, y), x


@pytest.mark.parametrize(("call", "x"), TABLE)
def test_value_is_that_of_scipy(call: Callable[..., Any], x: Any) -> None:
    expected = np.asarray(call(scipy.linalg, x))
    got = np.asarray(call(LA, x))
    assert got.shape == expected.shape and got.dtype == expected.dtype
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(("call", "x"), TABLE)
def test_both_modes(call: Callable[..., Any], x: Any) -> None:
    properties.check_modes(func_case(call, x))


@pytest.mark.parametrize(("call", "x"), TABLE)
def test_second_order(call: Callable[..., Any], x: Any) -> None:
    properties.check_second_order(func_case(call, x))


MAPPED = [case for case in TABLE if case.id not in ("eigvalsh-by-value", "companion")]


@pytest.mark.parametrize(("call", "x"), MAPPED)
def test_mapping(call: Callable[..., Any], x: Any) -> None:
    properties.check_mapped(func_case(call, x))


@pytest.mark.parametrize(("call", "x"), TABLE)
def test_single_precision(call: Callable[..., Any], x: Any) -> None:
    narrow = x.astype(np.complex64 if np.iscomplexobj(x) else np.float32)
    tangent = properties.direction(narrow, 1).astype(narrow.dtype)
    _, got = func.jvp(lambda y: call(LA, y), (narrow,), (tangent,))
    _, expected = func.jvp(lambda y: call(LA, y), (x,), (tangent.astype(x.dtype),))
    scale = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(got, expected, rtol=2e-3, atol=2e-3 * scale)


ENTIRE = ("expm", "logm", "sqrtm", "sinm", "cosm")


@pytest.mark.parametrize("name", ENTIRE)
@pytest.mark.parametrize("a", [A / 2, C / 2], ids=["real", "complex"])
def test_accuracy_of_matrix_functions(name: str, a: Any) -> None:
    """The derivative is a block of the same function, by mpmath in 40 digits, of a matrix of twice the size."""
    e = properties.direction(a, 5)
    zero = np.zeros_like(a)
    with mpmath.workdps(40):
        exact = getattr(mpmath, name)(mpmath.matrix(np.block([[a, e], [zero, a]]).tolist()))
        expected = np.array(exact.tolist(), complex)[: len(a), len(a) :]
    _, got = func.jvp(getattr(LA, name), (a,), (e,))
    assert np.linalg.norm(got - expected) <= 1e-12 * np.linalg.norm(expected)


COMPLEX_STEP = [
    pytest.param(*CASES[name], id=name)
    for name in ("solve", "lu-1", "lu-wide-2", "sylvester-a", "lu_solve-0-real", "solve_triangular-unit", "toeplitz")
]


@pytest.mark.parametrize(("call", "x"), COMPLEX_STEP)
def test_accuracy_by_complex_step(call: Callable[..., Any], x: Any) -> None:
    tangent = properties.direction(x, 6)
    _, got = func.jvp(lambda y: call(LA, y), (x,), (tangent,))
    expected = np.imag(call(scipy.linalg, x + 1e-30j * tangent)) / 1e-30
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", ["expm", "sqrtm", "logm", "inv", "det", "cholesky", "svdvals", "eigvalsh"])
def test_stacks(name: str) -> None:
    stack = np.stack([S, 2 * S, S + np.eye(3)])
    np.testing.assert_allclose(getattr(LA, name)(stack), [getattr(scipy.linalg, name)(x) for x in stack], rtol=1e-12)


@pytest.mark.parametrize("a", [S, H], ids=["real", "complex"])
@pytest.mark.parametrize("name", ["cholesky", "eigvalsh", "eigh", "cholesky and inverse"])
def test_gradients_by_symmetric_matrices(name: str, a: Any) -> None:
    """These read the lower triangle: the gradient is that by this triangle."""

    def loss(x: Any) -> Any:
        if name == "eigvalsh":
            return np.sum(np.linalg.eigvalsh(x) ** 3)
        if name == "eigh":
            values, vectors = np.linalg.eigh(x)
            return np.sum(np.abs(vectors) ** 4 * values)
        factor = np.linalg.cholesky(x)
        return np.sum(np.abs(factor if name == "cholesky" else np.linalg.inv(factor)) ** 3)

    gradient = func.grad(loss)(a)
    np.testing.assert_array_equal(gradient, np.tril(gradient))
    along = S @ S + np.conj(a) + np.triu(S)
    slope = (loss(a + 1e-5 * along) - loss(a - 1e-5 * along)) / 2e-5
    np.testing.assert_allclose(np.sum(np.real(np.conj(gradient) * along)), slope, rtol=1e-6)


def test_singular_square_root_drops_what_is_undetermined() -> None:
    a = np.diag([4.0, 0.0])
    with pytest.warns(scipy.linalg.LinAlgWarning, match="singular"):
        gradient = func.grad(lambda x: LA.sqrtm(x)[0, 0])(a)
    np.testing.assert_allclose(gradient, np.diag([0.25, 0.0]), atol=1e-14)


@pytest.mark.parametrize("mode", ["full", "economic", "r"])
@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (4, 2), (2, 5), (6, 7)])
@pytest.mark.parametrize("is_complex", [False, True], ids=["real", "complex"])
def test_rq_has_the_signs_of_scipy(shape: tuple[int, int], mode: str, is_complex: bool) -> None:
    a = complex_(*shape) if is_complex else real(*shape) - 0.5
    got, expected = (library.rq(a, mode=mode) for library in (LA, scipy.linalg))
    for ours, theirs in [(got, expected)] if mode == "r" else zip(got, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-14)


def test_lu_gives_permutations_as_scipy_does() -> None:
    for got, expected in zip(LA.lu(TALL[::-1]), scipy.linalg.lu(TALL[::-1]), strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-15)
    np.testing.assert_array_equal(LA.lu(TALL, p_indices=True)[0], scipy.linalg.lu(TALL, p_indices=True)[0])
    np.testing.assert_array_equal(LA.lu_factor(TALL)[1], scipy.linalg.lu_factor(TALL)[1])


def test_same_bits_where_scipy_computes() -> None:
    for got, expected in (
        (LA.solve(A, B), scipy.linalg.solve(A, B)),
        (LA.expm(C), scipy.linalg.expm(C)),
        (LA.sqrtm(A), scipy.linalg.sqrtm(A)),
        (LA.logm(A), scipy.linalg.logm(A)),
        (LA.eigh(S, spd(3) + S)[0] * 0, np.zeros(3)),
        (LA.eigh(H)[1], scipy.linalg.eigh(H)[1]),
        (LA.solve_banded((2, 1), BAND, real_b), scipy.linalg.solve_banded((2, 1), BAND, real_b)),
        (LA.lu_factor(A)[0], scipy.linalg.lu_factor(A)[0]),
    ):
        properties.assert_same(got, expected)


def test_real_schur_with_blocks_is_refused() -> None:
    rotation = np.array([[0.0, -1.0], [1.0, 0.0]])
    with pytest.raises(func.errors.NotDifferentiableError, match="output='complex'"):
        func.jvp(lambda x: LA.schur(x)[0], (rotation,), (rotation,))


def test_left_vectors_of_traced_matrices_are_refused() -> None:
    assert len(LA.eig(A, left=True)) == 3
    with pytest.raises(func.errors.UnsupportedFunctionError, match="left="):
        func.grad(lambda x: np.sum(np.abs(LA.eig(x, left=True)[0])))(A)


REFUSED: list[tuple[str, tuple[Any, ...], dict[str, Any], str]] = [
    ("solve", (TALL, B), {}, "a must be a square matrix"),
    ("solve", (A, real(4)), {}, "b of shape"),
    ("solve", (A, B), {"assume_a": "odd"}, "assume_a"),
    ("solve", (np.zeros((2, 2)), np.ones(2)), {}, "singular"),
    ("solve", (C, BC), {"transposed": True}, "transposed"),
    ("solve_triangular", (TALL, B), {}, "a must be a square matrix"),
    ("solve_triangular", (np.zeros((2, 2)), np.ones(2)), {}, "singular"),
    ("cholesky", (TALL,), {}, "a must be a square matrix"),
    ("cholesky", (-S,), {}, "ositive definite"),
    ("cholesky", (S * np.nan,), {}, "infs or NaNs: a"),
    ("expm", (TALL,), {}, "A must be a square matrix"),
    ("expm", (V,), {}, "A must be at least"),
    ("logm", (TALL,), {}, "A must be a square matrix"),
    ("inv", (np.zeros((2, 2)),), {}, "ingular"),
    ("solve_sylvester", (A, A, B), {}, "q: expected"),
    ("solve_discrete_lyapunov", (A, A, "odd"), {}, "method"),
    ("polar", (A, "up"), {}, "side"),
    ("eigh", (A, S), {"type": 4}, "type"),
    ("eigh", (A,), {"driver": "odd"}, "driver"),
    ("eigh", (S,), {"subset_by_index": [2, 5]}, "subset_by_index"),
    ("svd", (A,), {"lapack_driver": "odd"}, "lapack_driver"),
    ("qr", (A,), {"mode": "odd"}, "mode"),
    ("schur", (A,), {"output": "odd"}, "output"),
    ("solve_banded", ((1, 1), BAND, np.ones(5)), {}, "l_and_u"),
    ("companion", (np.array([0.0, 1.0]),), {}, "first coefficient"),
    ("diagsvd", (V, 2, 2), {}, "Length of s"),
    ("khatri_rao", (A, B), {}, "number of columns"),
    ("pinv", (A,), {"atol": -1.0}, "atol"),
]


@pytest.mark.parametrize(("name", "args", "keywords", "words"), REFUSED)
def test_refusals(name: str, args: tuple[Any, ...], keywords: dict[str, Any], words: str) -> None:
    with pytest.raises(Exception) as theirs:
        getattr(scipy.linalg, name)(*args, **keywords)
    with pytest.raises(theirs.type, match=words):
        getattr(LA, name)(*args, **keywords)


@pytest.mark.parametrize("trans", [3, "X"])
def test_unknown_trans(trans: Any) -> None:
    with pytest.raises(ValueError, match="trans"):
        LA.solve_triangular(A, B, trans=trans)
    with pytest.raises(ValueError, match="trans"):
        LA.lu_solve(LA.lu_factor(A), B, trans=trans)


def test_constants_are_those_of_scipy() -> None:
    for name, n in (("dft", 3), ("hadamard", 4), ("hilbert", 3), ("helmert", 3), ("pascal", 3), ("invhilbert", 3)):
        properties.assert_same(getattr(LA, name)(n), getattr(scipy.linalg, name)(n))
    properties.assert_same(LA.invpascal(3), scipy.linalg.invpascal(3))


def test_every_name_is_one_of_scipy() -> None:
    assert all(hasattr(scipy.linalg, name) for name in LA.__all__ if name != "solve_lyapunov")


def test_lstsq_of_unknown_rank_has_residuals_that_are_nan_where_it_is_deficient() -> None:
    a, b = np.vander(np.arange(5.0), 3), np.array([1.0, 2.0, 0.0, 1.0, 3.0])
    x, residuals, *_ = func.jit(func.linalg.lstsq)(a, b)
    np.testing.assert_allclose(x, scipy.linalg.lstsq(a, b)[0])
    np.testing.assert_allclose(residuals, scipy.linalg.lstsq(a, b)[1])
    assert np.isnan(func.jit(lambda a: func.linalg.lstsq(a, b)[1])(np.ones((5, 3))))


CIRCULANT: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "axes": (np.array([4.0, 1.0, 0.5]), np.arange(6.0).reshape(2, 3), {"baxis": 1, "outaxis": -1}),
    "several matrices": (np.array([[4.0, 1.0, 0.5], [1.0, 5.0, 2.0j]]), np.array([1.0, 2.0, 3.0]), {"outaxis": 1}),
    "least squares": (np.ones(3), np.arange(3.0), {"singular": "lstsq"}),
    "a large tolerance": (np.array([4.0, 1.0, 0.5]), np.arange(3.0), {"singular": "lstsq", "tol": 3.5}),
    "infinite sides": (np.array([4.0, 1.0, 0.5]), np.array([1.0, np.inf, 3.0]), {}),
    "nothing known": (np.array([4.0, np.nan, 0.5]), np.arange(3.0), {}),
    "no sides": (np.ones(3), np.ones((3, 0)), {}),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", CIRCULANT)
def test_circulant_systems_as_scipy(name: str) -> None:
    c, b, options = CIRCULANT[name]
    expected = scipy.linalg.solve_circulant(c, b, **options)
    for run in (func.linalg.solve_circulant, func.jit(lambda c, b: scipy.linalg.solve_circulant(c, b, **options))):
        got = run(c, b, **options) if run is func.linalg.solve_circulant else run(c, b)
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("c", [np.ones(3), np.array([1.0, -1.0, 0.0]), np.array([1.0, np.inf, 2.0])], ids=repr)
def test_singular_circulant_systems(c: Any) -> None:
    for run in (func.linalg.solve_circulant, func.vmap(scipy.linalg.solve_circulant, in_axes=(None, 1), axis_size=1)):
        with pytest.raises(np.linalg.LinAlgError, match="near singular circulant matrix"):
            run(c, np.ones((3, 1)))
    compiled = func.jit(scipy.linalg.solve_circulant)
    assert np.isnan(compiled(c, np.ones(3))).all()
    assert np.isnan(func.jit(func.grad(lambda c: np.sum(scipy.linalg.solve_circulant(c, np.ones(3)))))(c)).all()


@pytest.mark.parametrize("exponent", [0.3, 0.5, -1.4])
def test_power_has_the_derivative_of_divided_differences(exponent: float) -> None:
    """Of a symmetric matrix: V (D ∘ Vᵀ E V) Vᵀ with D of the divided differences of the power at the eigenvalues.

    Source: N. J. Higham (2008), Functions of Matrices, theorem 3.11.
    """
    values, vectors = np.linalg.eigh(S)
    gaps = values[:, None] - values + np.eye(3)
    differences = (values[:, None] ** exponent - values**exponent) / gaps
    differences = differences + np.diag(exponent * values ** (exponent - 1))
    expected = vectors @ (differences * (vectors.T @ A @ vectors)) @ vectors.T
    got = func.jvp(lambda x: func.linalg.fractional_matrix_power(x, exponent), (S,), (A,))[1]
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-14)
