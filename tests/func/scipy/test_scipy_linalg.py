"""The laws of scipy.linalg's rows, and what rows cannot show."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

import func
from tests.support.coverage import direction, inner
from tests.support.numpy_properties import extrapolated
from tests.support.scipy_linalg import ROWS, WITHOUT
from tests.support.scipy_rows import check, modules, with_library


@pytest.mark.parametrize("name", ROWS)
def test_linalg_rows(name):
    row = ROWS[name]
    scipy_module, own = modules("linalg")
    np.testing.assert_allclose(
        with_library(row, own)(row.x), with_library(row, scipy_module)(row.x), rtol=1e-10, atol=1e-12
    )
    check(row, "linalg", "unmodified")  # all laws, which func's own module has by the same functions


def test_every_public_name_has_a_row_or_a_reason():
    names = {name.split()[0] for name in ROWS}
    assert set(scipy.linalg.__all__) <= names | set(WITHOUT)
    assert not names & set(WITHOUT)


@pytest.mark.parametrize("name", ["qz", "ordqz"])
def test_factors_of_pencils_are_refused(name):
    with pytest.raises(TypeError, match=f"scipy.linalg.{name}: the factors"):
        func.grad(lambda a: np.sum(getattr(scipy.linalg, name)(a, np.eye(2))[0]))(np.eye(2))


RNG = np.random.default_rng(3)
A = np.diag([1.0, 2.5, 4.0, 5.5]) + 0.3 * RNG.normal(size=(4, 4))
C = RNG.normal(size=(4, 4))
S = A @ A.T + np.eye(4)
H = C + C.T + 1j * (A - A.T)
LOWER = np.array([[3.0, 4.0, 5.0, 3.5, 4.5], [0.4, 0.2, -0.3, 0.1, 9], [0.2, -0.1, 0.3, 8, 7]])
UPPER = np.array([[8, 9, 0.2, -0.1, 0.3], [7, 0.4, 0.2, -0.3, 0.1], [3.0, 4, 5, 3.5, 4.5]])
W, V = np.linalg.eig(C)
SIDES = RNG.normal(size=(4, 2))
LA = scipy.linalg


def flat(out):
    """The arrays of an output."""
    return [leaf for part in out for leaf in flat(part)] if isinstance(out, (tuple, list)) else [out]


def agrees(call, x, derivative=True):
    """The outputs have SciPy's values, dtypes and shapes, or its error; all derivatives are those of differences."""
    try:
        expected = flat(call(x))
    except Exception as error:
        with pytest.raises(type(error)):
            func.jvp(lambda y: tuple(flat(call(y))), (x,), (np.zeros_like(x),))
        return
    got = func.jvp(lambda y: tuple(flat(call(y))), (x,), (np.zeros_like(x),))[0]
    is_single = any([np.asarray(out).dtype.char in "fF" for out in expected])
    for one, other in zip(got, expected, strict=True):
        one, other = np.asarray(one), np.asarray(other)
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_allclose(one, other, rtol=1e-4 if is_single else 1e-10, atol=1e-4 if is_single else 1e-10)
    if not derivative or is_single or x.dtype.char in "fF" or x.size == 0:
        return
    tangent = direction(x, 1)
    places = [i for i, out in enumerate(expected) if np.asarray(out).dtype.kind in "fc"]

    def floats(y):
        outs = flat(call(y))
        return np.concatenate([np.ravel(outs[i]) for i in places])

    slope = func.jvp(floats, (x,), (tangent,))[1]
    np.testing.assert_allclose(slope, extrapolated(floats, x, tangent), rtol=1e-5, atol=1e-5)
    ct = direction(slope, 2)
    np.testing.assert_allclose(inner(func.vjp(floats, x)[1](ct)[0], tangent), inner(ct, slope), rtol=1e-7, atol=1e-8)


BANDS = {"real": lambda b: b, "complex": lambda b: b * (1 + 0.1j), "single": lambda b: b.astype("f")}
BANDS |= {"one": lambda b: b[:, :1], "empty": lambda b: b[:, :0], "batch": lambda b: np.stack([b, 1.1 * b])}


@pytest.mark.parametrize("kind", BANDS)
@pytest.mark.parametrize("lower", [False, True])
def test_bands(kind, lower):
    band = BANDS[kind](LOWER if lower else UPPER)
    n = band.shape[-1]
    agrees(lambda x: LA.cholesky_banded(x, lower=lower), band)
    agrees(lambda x: LA.cho_solve_banded((x, lower), np.ones((n, 2), complex)), band)
    agrees(lambda x: LA.cho_solve_banded((x, lower), np.ones(n + 1)), band)
    if kind != "one":
        agrees(lambda x: LA.eig_banded(x, lower=lower), band)
        agrees(lambda x: LA.eigvals_banded(x, lower=lower), band)


@pytest.mark.parametrize("select", [("i", (1, 2)), ("v", (3.5, 5)), ("v", (100, 101)), ("x", None), ("i", (3, 9))])
def test_some_eigenvalues_of_bands(select):
    for band in (UPPER, UPPER * (1 + 0.1j)):
        agrees(lambda x: LA.eig_banded(x, select=select[0], select_range=select[1]), band)


MATRICES = {"real": C, "complex": A + 1j * C, "single": C.astype("f"), "small": A[:2, :2], "empty": A[:0, :0]}
MATRICES |= {"batch": np.stack([A, C]), "tall": C[:, :3], "vector": C[0]}


@pytest.mark.parametrize("kind", MATRICES)
def test_hessenberg_forms_and_balancing(kind):
    scales = np.array([1, 100.0, 1e4, 1]).astype("f")
    agrees(lambda x: LA.hessenberg(x, calc_q=True), MATRICES[kind])
    for separate in (True, False):
        agrees(lambda x: LA.matrix_balance(x * scales[: x.shape[-1]], separate=separate), MATRICES[kind])  # noqa: B023


SYMMETRIC = {"real": C + C.T, "one triangle": C, "hermitian": H, "complex": A + 1j * C, "single": H.astype("F")}
SYMMETRIC |= {"batch": np.stack([C, A]), "blocks": C + C.T - 1.95 * np.diag(np.diag(C)), "vector": C[0]}


@pytest.mark.parametrize("kind", SYMMETRIC)
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.filterwarnings("ignore:scipy.linalg.ldl")
def test_ldl(kind, lower):
    for hermitian in (True, False):
        agrees(lambda x: LA.ldl(x, lower, hermitian), SYMMETRIC[kind])  # noqa: B023


@pytest.mark.parametrize("name", ["solve_continuous_are", "solve_discrete_are"])
def test_riccati_options(name):
    solver, a = getattr(LA, name), C / 2 if "discrete" in name else C - 3 * np.eye(4)
    e, s = np.eye(4) + 0.1 * C, 0.1 * C[:, :2]
    agrees(lambda x: solver(x, SIDES, S, np.eye(2), e, s, False), a + 0.1j * A)
    agrees(lambda x: solver(a, SIDES[:, :1], x + x.T, 1.0), S / 2)
    agrees(lambda x: solver(a, x, S.tolist(), np.eye(2), None, s), SIDES)
    agrees(lambda x: solver(x, SIDES, S, np.eye(2)), np.stack([a, a.T]))
    agrees(lambda x: solver(x, SIDES, C, np.eye(2)), a)  # not Hermitian
    agrees(lambda x: solver(x, SIDES, S, np.eye(3)), a)


def test_solution_that_solves_nothing_has_no_derivative():
    b, e = np.random.default_rng(3).normal(size=(16, 4))[14:].reshape(4, 2), np.eye(4) + 0.1 * C
    args = b, S, np.eye(2), e
    is_right = np.allclose(LA.solve_discrete_are(C / 2, *args), LA.solve_discrete_are(C / 2, *args, balanced=False))
    slope = func.grad(lambda a: np.sum(LA.solve_discrete_are(a, *args)))(C / 2)
    assert np.isnan(slope).all() == (not is_right)
    assert np.isfinite(func.grad(lambda a: np.sum(LA.solve_discrete_are(a, *args, balanced=False)))(C / 2)).all()


PAIRS = {"pairs": (W, V), "real": (np.arange(4.0), A), "apart": (np.array([1j, 2, -1j, -2]), V)}
PAIRS |= {"odd": (np.array([1, 1j, 2, 2]), V), "single": (W.astype("F"), V.astype("F")), "shapes": (W[:3], V)}
PAIRS |= {"batch": (np.stack([W, W]), np.stack([V, V])), "integers": (np.arange(4), A)}


@pytest.mark.parametrize("kind", PAIRS)
def test_real_forms_of_complex_pairs(kind):
    w, v = PAIRS[kind]
    agrees(lambda x: LA.cdf2rdf(w, x), v)
    if w.dtype.kind != "i":
        agrees(lambda x: LA.cdf2rdf(np.where(w.imag != 0, x, np.real(x)), v), w)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 6, 7])
def test_companion_matrices_of_fiedler(n):
    agrees(lambda x: LA.fiedler_companion(x), np.arange(1.0, n + 1) ** 2)
    agrees(lambda x: LA.fiedler_companion(x * np.arange(n)), np.ones(n), derivative=False)


@pytest.mark.parametrize("conjugate", [False, True])
@pytest.mark.parametrize("pivoting", [False, True])
def test_products_with_q(conjugate, pivoting):
    tall = np.vstack([A, C[:2]])
    for x in (tall, tall.T, tall + 1j * tall[::-1], np.stack([tall, tall])):
        m, n = x.shape[-2:]
        for mode, shape in (("left", (min(m, n), 2)), ("left", (min(m, n),)), ("right", (2, m)), ("right", (m + 1,))):
            agrees(lambda y: LA.qr_multiply(y, np.ones(shape), mode, pivoting, conjugate), x, m == 6)  # noqa: B023


@pytest.mark.parametrize("f", [np.exp, np.sin, lambda w: w * w, np.ones_like], ids=["exp", "sin", "square", "one"])
def test_functions_of_the_user(f, capsys):
    repeated = np.diag([1.0, 1.0, 2.0])
    for x in (A, C, A + 1j * C, A + A.T, A.astype("f"), np.stack([A, A + C]), 2 * np.eye(3), repeated, C[:, :3]):
        agrees(lambda y: LA.funm(y, f), x)
    agrees(lambda y: LA.funm(A, lambda w: f(y * w)).real, np.array(0.5))


def test_functions_without_a_basis_of_eigenvectors_have_no_derivative(capsys):
    assert np.isnan(func.jacfwd(lambda x: LA.funm(x, np.exp))(np.array([[1.0, 1.0], [0.0, 1.0]]))).all()
    second = func.hessian(lambda x: np.sum(LA.funm(x, np.exp)))
    assert np.isnan(second(np.eye(2))).any()
    expected = func.hessian(lambda x: np.sum(LA.expm(x)))(A)
    np.testing.assert_allclose(second(A), expected, rtol=1e-7, atol=1e-7)


def test_properties_of_the_numbers():
    def scaled(x):
        low, high = LA.bandwidth(x)
        return np.sum(x) * (low + 10 * high + 100 * LA.issymmetric(x) + 1000 * LA.ishermitian(x))

    assert func.grad(scaled)(np.triu(np.ones((3, 3))))[0, 0] == 20
    assert func.grad(scaled)(np.ones((2, 2)))[0, 0] == 1111
    with pytest.raises(TypeError, match=r"func\.jit"):
        func.jit(scaled)(A)
