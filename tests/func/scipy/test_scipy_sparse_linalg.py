"""The laws of scipy.sparse.linalg's rows, and what rows cannot show."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse.linalg

import func
from tests.support.coverage import direction, inner
from tests.support.numpy_properties import extrapolated
from tests.support.scipy_rows import check, modules, with_library
from tests.support.scipy_sparse_linalg import ROWS, WITHOUT


@pytest.mark.parametrize("name", ROWS)
def test_sparse_linalg_rows(name):
    row = ROWS[name]
    scipy_module, own = modules("sparse.linalg")
    np.testing.assert_allclose(
        with_library(row, own)(row.x), with_library(row, scipy_module)(row.x), rtol=1e-10, atol=1e-12
    )
    check(row, "sparse.linalg", "unmodified")  # all laws, which func's own module has by the same functions


def test_every_public_name_has_a_row_or_a_reason():
    assert set(scipy.sparse.linalg.__all__) <= set(ROWS) | set(WITHOUT)


RNG = np.random.default_rng(1)
TALL, LONG, START = RNG.normal(size=(7, 4)), RNG.normal(size=7), RNG.normal(size=4)
FOUR = np.array([2.0, 3.0, 4.0, 5.0])
FAR = RNG.normal(size=(4, 4)) + 6 * np.eye(4)
LA, SP = scipy.sparse.linalg, scipy.sparse
TIGHT = {"rtol": 1e-14, "atol": 0}


def assert_differentiates(f, x, rtol=1e-6):
    """Both modes against differences."""
    tangent = direction(x, 1)
    slope = func.jvp(f, (x,), (tangent,))[1]
    np.testing.assert_allclose(slope, extrapolated(f, x, tangent), rtol=rtol, atol=rtol)
    ct = direction(slope, 2)
    np.testing.assert_allclose(inner(func.vjp(f, x)[1](ct)[0], tangent), inner(ct, slope), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(("name", "without"), [("lsqr", 6), ("lsmr", 6)])
@pytest.mark.parametrize("damp", [0.0, 0.5])
@pytest.mark.parametrize("start", [None, START])
def test_numbers_that_least_squares_returns(name, without, damp, start):
    settings = {"atol": 1e-10, "btol": 1e-10, "x0": start} | ({"calc_var": True} if name == "lsqr" else {})

    def numbers(x):
        out = getattr(LA, name)(x * TALL, LONG + x, x * damp, **settings)
        return np.concatenate([np.ravel(out[i]) for i in range(len(out)) if i not in (1, 2, without)])

    assert_differentiates(numbers, np.array(1.0))
    condition = func.grad(lambda x: getattr(LA, name)(x * TALL, LONG, damp, **settings)[without])
    assert np.isnan(condition(1.0))
    assert np.isfinite(func.grad(lambda x: getattr(LA, name)(x, LONG, damp, **settings)[0][0])(TALL)).all()


def test_estimates_of_an_iteration_that_stops_early_have_no_derivative():
    grad = func.grad(lambda x, i: LA.lsqr(x, LONG, iter_lim=2)[i])
    assert np.isnan(grad(TALL, 5)).all()
    assert np.isfinite(grad(TALL, 3)).all()


def linear(x):
    """A linear operator whose function finds traced values."""
    return LA.LinearOperator((4, 4), matvec=lambda v: x * v, rmatvec=lambda v: x * v, dtype=float)


def made(x):
    """A linear operator of a sparse matrix."""
    return LA.aslinearoperator(SP.csr_array(SP.diags_array(x) @ SP.csr_array(FAR)))


OPERATORS = {
    "sum": lambda x: linear(x) + LA.aslinearoperator(FAR),
    "product": lambda x: made(x) @ linear(x),
    "scaled": lambda x: x[0] * LA.aslinearoperator(FAR),
    "difference": lambda x: 2 * linear(x) - made(x),
    "power": lambda x: made(x) ** 2,
    "adjoint": lambda x: made(x).H @ linear(x).H,
    "transposed": lambda x: (made(x) + linear(x)).T,
    "dense": lambda x: LA.aslinearoperator(FAR * x) + LA.aslinearoperator(FAR),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_compositions_of_linear_operators(name):
    make = OPERATORS[name]
    assert_differentiates(lambda x: make(x) @ x, FOUR)
    assert_differentiates(lambda x: LA.gmres(make(x), START, **TIGHT)[0], FOUR, rtol=1e-5)
    np.testing.assert_allclose(
        func.jit(func.vmap(lambda x: LA.bicgstab(make(x), START, **TIGHT)[0]))(np.stack([FOUR, 2 * FOUR]))[1],
        LA.bicgstab(make(2 * FOUR), START, **TIGHT)[0],
        rtol=1e-8,
    )


def test_operators_of_matrices_are_matrices():
    def of(x):
        return LA.aslinearoperator(SP.csr_array(SP.diags_array(x) @ SP.csr_array(FAR @ FAR.T) @ SP.diags_array(x)))

    assert_differentiates(lambda x: LA.eigsh(of(x), k=1, v0=START)[0], FOUR)
    assert_differentiates(lambda x: LA.svds(of(x), k=1, v0=START)[1], FOUR)
    assert_differentiates(lambda x: LA.lsqr(of(x), START, atol=1e-15, btol=1e-15)[0], FOUR, rtol=1e-5)
    for function in (lambda a: LA.lsqr(a, START), LA.onenormest, lambda a: LA.expm_multiply(a, START)):
        with pytest.raises(TypeError, match="linear operator"):
            func.jvp(lambda x: function(linear(x)), (FOUR,), (FOUR,))  # noqa: B023
    with pytest.raises(TypeError, match="preconditioner"):
        func.jvp(lambda x: LA.cg(np.eye(4), START, M=linear(x))[0], (FOUR,), (FOUR,))
