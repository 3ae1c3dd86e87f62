"""Operators equal the dense matrices, work in SciPy's solvers and under transforms; bad input is named."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
import scipy.sparse.linalg as linalg

import func
from func.curvature.linearized_products import compiled, padded_width
from func.errors import ArgumentError, DifferentiatedInputError, ScalarOutputError, UnsupportedFunctionError

RNG = np.random.default_rng(0)
PARAMS = {"w": RNG.normal(size=(3, 4)), "b": RNG.normal(size=4), "v": RNG.normal(size=(4, 2))}
INPUTS, TARGETS = RNG.normal(size=(5, 3)), RNG.normal(size=(5, 2))
FLAT, BACK = func.tree.ravel(PARAMS)
X = RNG.normal(size=3)


def network(params: Any, x: Any) -> Any:
    return np.tanh(x @ params["w"] + params["b"]) @ params["v"]


def squares(outputs: Any, targets: Any) -> Any:
    return np.mean((outputs - targets) ** 2)


def cost(params: Any, x: Any, y: Any) -> Any:
    return squares(network(params, x), y)


def cubes(x: Any) -> Any:
    return np.sum(x**3)


def jacobian() -> Any:
    return func.jacobian(lambda flat: network(BACK(flat), INPUTS).reshape(-1))(FLAT)


def with_second(second: Callable[[Any], Any]) -> Any:
    """Jᵀ H J with H = second(outputs), a matrix."""
    return jacobian().T @ second(network(PARAMS, INPUTS)) @ jacobian()


def blocks(matrices: Any) -> Any:
    size = len(matrices[0])
    full = np.zeros((len(matrices) * size, len(matrices) * size))
    for i, matrix in enumerate(matrices):
        full[i * size : (i + 1) * size, i * size : (i + 1) * size] = matrix
    return full


def categorical(outputs: Any) -> Any:
    p = np.exp(outputs) / np.exp(outputs).sum(1, keepdims=True)
    return blocks([np.diag(row) - np.outer(row, row) for row in p])


def bernoulli(outputs: Any) -> Any:
    p = 1 / (1 + np.exp(-outputs.ravel()))
    return np.diag(p * (1 - p))


def sample_gradients() -> Any:
    rows = [func.tree.ravel(func.grad(cost)(PARAMS, x, y))[0] for x, y in zip(INPUTS, TARGETS, strict=True)]
    return np.array(rows)


def fisher(likelihood: Any) -> Any:
    return func.linear_operator("fisher", network, PARAMS, INPUTS, likelihood=likelihood)


CASES: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "jacobian": (lambda: func.linear_operator("jacobian", network, PARAMS, INPUTS), jacobian),
    "transposed": (lambda: func.linear_operator("jacobian", network, PARAMS, INPUTS).T, lambda: jacobian().T),
    "hessian": (
        lambda: func.linear_operator("hessian", cost, PARAMS, INPUTS, TARGETS),
        lambda: func.hessian(lambda flat: cost(BACK(flat), INPUTS, TARGETS))(FLAT),
    ),
    "damped": (
        lambda: func.linear_operator("hessian", cost, PARAMS, INPUTS, TARGETS).damped(2.0).damped(1.0),
        lambda: func.hessian(lambda flat: cost(BACK(flat), INPUTS, TARGETS))(FLAT) + 3 * np.eye(FLAT.size),
    ),
    "ggn": (
        lambda: func.linear_operator("ggn", network, PARAMS, INPUTS, loss=squares, targets=TARGETS),
        lambda: with_second(lambda out: np.eye(out.size) * 2 / out.size),
    ),
    "ggn of a closure": (
        lambda: func.linear_operator("ggn", network, PARAMS, INPUTS, loss=lambda out: np.sum(np.exp(out[:, 0]))),
        lambda: with_second(lambda out: np.diag(np.ravel(np.exp(out) * [1, 0]))),
    ),
    "fisher, gaussian": (lambda: fisher("gaussian"), lambda: with_second(lambda out: np.eye(out.size))),
    "fisher, categorical": (lambda: fisher("categorical"), lambda: with_second(categorical)),
    "fisher, bernoulli": (lambda: fisher("bernoulli"), lambda: with_second(bernoulli)),
    "fisher, poisson": (lambda: fisher("poisson"), lambda: with_second(lambda out: np.diag(np.exp(out).ravel()))),
    "fisher, other family": (
        lambda: fisher(lambda out: np.sum(out**4)),
        lambda: with_second(lambda out: np.diag(12 * out.ravel() ** 2)),
    ),
    "empirical_fisher": (
        lambda: func.linear_operator("empirical_fisher", cost, PARAMS, INPUTS, TARGETS),
        lambda: sample_gradients().T @ sample_gradients(),
    ),
    "empirical_fisher, in_dims": (
        lambda: func.linear_operator("empirical_fisher", cost, PARAMS, INPUTS.T, TARGETS, in_dims=(None, 1, 0)),
        lambda: sample_gradients().T @ sample_gradients(),
    ),
    "ntk": (lambda: func.linear_operator("ntk", network, PARAMS, INPUTS), lambda: jacobian() @ jacobian().T),
}


@pytest.mark.parametrize("name", CASES)
def test_equals_the_dense_matrix(name: str) -> None:
    operator, dense = CASES[name][0](), CASES[name][1]()
    assert operator.shape == dense.shape
    rng = np.random.default_rng(1)
    right, left = rng.normal(size=dense.shape[1]), rng.normal(size=dense.shape[0])
    columns = rng.normal(size=(dense.shape[1], 3))
    np.testing.assert_allclose(operator @ right, dense @ right, atol=1e-12)
    np.testing.assert_allclose(operator.rmatvec(left), dense.T @ left, atol=1e-12)
    np.testing.assert_allclose(operator @ columns, dense @ columns, atol=1e-12)
    np.testing.assert_allclose(left @ operator, left @ dense, atol=1e-12)
    np.testing.assert_allclose((operator.T @ operator) @ right, dense.T @ (dense @ right), atol=1e-11)


def test_numbers_shapes_and_types_of_vectors() -> None:
    operator = func.linear_operator("jacobian", lambda x: x[:2] * x[1:], X)
    dense = func.jacobian(lambda x: x[:2] * x[1:])(X)
    np.testing.assert_allclose(operator.toarray(), dense)
    np.testing.assert_allclose(operator.rmatmat(np.eye(2)), dense.T)
    np.testing.assert_allclose(operator @ (X + 1j), dense @ (X + 1j))
    np.testing.assert_allclose(operator @ (X[:, None] * 1j), dense @ (X[:, None] * 1j))
    assert (operator @ [1, 2, 3]).shape == (2,) and (operator @ np.ones((3, 1), int)).shape == (2, 1)
    assert (operator @ np.ones((3, 0))).shape == (2, 0)
    single = func.linear_operator("hessian", lambda x: np.sum(x**3), X.astype(np.float32))
    assert single.dtype == (single @ X).dtype == np.float32
    mixed = func.linear_operator("hessian", lambda x: np.sum(x[0] ** 2 * x[1]), (X, X.astype(np.float32), 3))
    assert mixed.dtype == np.float64 and mixed.shape == (6, 6)
    assert [getattr(x, "dtype", None) for x in mixed.unravel(np.ones(6))] == [np.float64, np.float32, None]
    assert func.linear_operator("hessian", lambda x: x**3, 2.0) @ [1.0] == [12.0]


@pytest.mark.parametrize("shape", [(0,), (3,)], ids=["no inputs", "no outputs"])
def test_empty(shape: tuple[int, ...]) -> None:
    outputs = 2 if shape == (0,) else 0
    operator = func.linear_operator("jacobian", lambda x: np.zeros(outputs) + x.sum(), np.ones(shape))
    assert operator.shape == (outputs, shape[0])
    np.testing.assert_array_equal(operator @ np.ones(shape), np.zeros(outputs))
    np.testing.assert_array_equal(operator.T @ np.ones(outputs), np.zeros(shape))


def test_trees_argnums_and_argnames() -> None:
    def scaled(params: Any, x: Any, *, scale: Any) -> Any:
        return np.sum(scale * network(params, x) ** 2)

    operator = func.linear_operator(
        "hessian", scaled, PARAMS, INPUTS, scale=np.ones(2), argnums=(1, 0), argnames="scale"
    )
    assert operator.shape == (FLAT.size + INPUTS.size + 2,) * 2
    positional, named = operator.unravel(np.arange(float(operator.shape[0])))
    assert positional[0].shape == INPUTS.shape and positional[1]["w"].shape == (3, 4)
    np.testing.assert_array_equal(named["scale"], np.arange(float(operator.shape[0]))[-2:])
    np.testing.assert_array_equal(operator.ravel((positional, named)), np.arange(float(operator.shape[0])))
    dense = func.hessian(lambda x, p: scaled(BACK(p), x.reshape(5, 3), scale=np.ones(2)), (0, 1))(INPUTS.ravel(), FLAT)
    np.testing.assert_allclose(operator.toarray()[:-2, :-2], np.block([list(row) for row in dense]), atol=1e-12)
    jac = func.linear_operator("jacobian", network, PARAMS, INPUTS)
    assert jac.unravel_output(jac @ FLAT).shape == (5, 2) and jac.ravel_output(TARGETS).shape == (10,)
    assert jac.T.unravel(np.ones(10)).shape == (5, 2)


NAMED: dict[str, tuple[dict[str, Any], Callable[..., Any]]] = {
    "names": ({"argnames": ("b", "a")}, lambda a, b: {"a": a, "b": b}),
    "both": ({"argnums": (0,), "argnames": ("b", "a")}, lambda a, b: ((np.full(2, 7.0),), {"a": a, "b": b})),
}


@pytest.mark.parametrize("name", NAMED)
def test_trees_of_names_keep_the_order_of_the_vectors(name: str) -> None:
    options, made = NAMED[name]
    a, b = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    args = (np.full(2, 7.0),) if name == "both" else ()
    operator = func.linear_operator("hessian", lambda *x, a, b: np.sum(a**3 + 7 * b**2), *args, a=a, b=b, **options)
    vector = operator.ravel(made(a, b))
    np.testing.assert_array_equal(vector[-4:], [3, 4, 1, 2])  # of b, then of a
    for left, right in zip(func.tree.leaves(operator.unravel(vector)), func.tree.leaves(made(a, b)), strict=True):
        np.testing.assert_array_equal(left, right)
    product = operator.unravel(operator @ vector)
    found = product if name == "names" else product[1]
    np.testing.assert_allclose(found["a"], 6 * a * a)
    np.testing.assert_allclose(found["b"], 14 * b)


@pytest.mark.parametrize("name", ["jacobian", "hessian", "ggn"])
def test_pickles_and_copies(name: str) -> None:
    operator = CASES[name][0]()
    kept = compiled.cache_info().currsize
    for other in (pickle.loads(pickle.dumps(operator)), copy.copy(operator), copy.deepcopy(operator)):
        np.testing.assert_array_equal(other.toarray(), operator.toarray())
        assert other.is_symmetric == operator.is_symmetric
        point = np.arange(float(operator.shape[1]))
        np.testing.assert_array_equal(other.ravel(other.unravel(point)), point)
    assert compiled.cache_info().currsize <= kept + 1  # they share their code


def test_complex_vectors_of_half_precision() -> None:
    operator = func.linear_operator("jacobian", lambda x: 2 * x, np.ones(2, np.float16))
    np.testing.assert_array_equal(operator @ np.array([1j, 2]), [2j, 4])


def test_solvers_of_scipy() -> None:
    ggn = func.linear_operator("ggn", network, PARAMS, INPUTS, loss=squares, targets=TARGETS)
    hessian = func.linear_operator("hessian", cost, PARAMS, INPUTS, TARGETS)
    jac = func.linear_operator("jacobian", network, PARAMS, INPUTS)
    damped = ggn.damped(0.1)
    dense = damped.toarray()
    for solve in (linalg.cg, linalg.minres, linalg.gmres):
        np.testing.assert_allclose(solve(damped, FLAT, rtol=1e-12)[0], np.linalg.solve(dense, FLAT), atol=1e-8)
    np.testing.assert_allclose(linalg.eigsh(hessian, k=2, which="LA")[0], np.linalg.eigvalsh(hessian.toarray())[-2:])
    np.testing.assert_allclose(linalg.svds(jac, k=1)[1], np.linalg.norm(jac.toarray(), 2))
    best = np.linalg.lstsq(jac.toarray(), TARGETS.ravel())[0]
    np.testing.assert_allclose(
        linalg.lsmr(jac, TARGETS.ravel(), atol=1e-13, btol=1e-13, maxiter=99)[0], best, atol=1e-8
    )


def test_columns_in_chunks() -> None:
    columns = np.random.default_rng(2).normal(size=(FLAT.size, 7))
    whole, few = [func.linear_operator("jacobian", network, PARAMS, INPUTS, chunk_size=size) for size in (None, 3)]
    np.testing.assert_allclose(few @ columns, whole @ columns)
    assert [padded_width(k) for k in (1, 7, 8, 9, 13, 17, 1000)] == [1, 7, 8, 10, 14, 20, 1024]


def test_operators_at_other_points_share_their_code() -> None:
    before = compiled.cache_info().misses
    first, second = [func.linear_operator("hessian", lambda x: np.sum(np.sin(x) * x[0]), X * k) for k in (1.0, 2.0)]
    np.testing.assert_allclose(first @ X, func.hvp(lambda x: np.sum(np.sin(x) * x[0]), (X,), (X,)))
    np.testing.assert_allclose(second @ X, func.hvp(lambda x: np.sum(np.sin(x) * x[0]), (2 * X,), (X,)))
    assert compiled.cache_info().misses == before + 1


def implicit(solve: Any) -> Callable[[Any], Any]:
    """sin(x) · H(x)⁻¹ 1."""

    def run(x: Any) -> Any:
        hessian = func.linear_operator("hessian", lambda y: np.sum(np.cosh(y)) + y @ y, x)
        return solve(hessian, np.ones(3)) @ np.sin(x)

    return run


def by_cg(operator: Any, b: Any) -> Any:
    return linalg.cg(operator, b, rtol=1e-13)[0]


def dense_solve(operator: Any, b: Any) -> Any:
    return np.linalg.solve(operator.toarray(), b)


TRANSFORMS: dict[str, Callable[..., Any]] = {
    "grad": func.grad,
    "jit of grad": lambda f: func.jit(func.grad(f)),
    "grad of jit": lambda f: func.grad(func.jit(f)),
    "grad of checkpoint": lambda f: func.grad(func.checkpoint(f)),
    "vmap of grad": lambda f: lambda x: func.vmap(func.grad(f))(np.stack([x, x]))[1],
    "jacfwd": func.jacfwd,
}


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("solve", [by_cg, dense_solve])
def test_under_transforms(name: str, solve: Any) -> None:
    exact = func.grad(lambda x: np.sum(np.sin(x) / (np.cosh(x) + 2)))(X)
    np.testing.assert_allclose(TRANSFORMS[name](implicit(solve))(X), exact, atol=1e-9)


def test_operators_and_vectors_of_outer_transforms() -> None:
    def captured(scale: Any) -> Any:
        operator = func.linear_operator("hessian", lambda x: scale * np.sum(x**3), X)
        return np.sum(func.fori_loop(0, 2, lambda i, v: operator @ v, X))

    np.testing.assert_allclose(func.grad(captured)(0.5), np.sum(36 * X**3))
    fixed = func.linear_operator("hessian", lambda x: np.sum(x**3), X)
    np.testing.assert_allclose(func.grad(lambda v: v @ (fixed @ v))(X), 12 * X**2)
    np.testing.assert_allclose(func.vmap(lambda v: fixed @ v)(np.eye(3)), np.diag(6 * X))
    np.testing.assert_allclose(func.grad(lambda damping: X @ (fixed.damped(damping) @ X))(1.0), X @ X)
    with pytest.raises(UnsupportedFunctionError, match="eigsh"):
        func.grad(lambda x: linalg.eigsh(func.linear_operator("hessian", cubes, x), k=1)[0][0])(X)


def test_functions_with_state_writes_branches_and_random_numbers() -> None:
    calls: list[int] = []

    def counted(x: Any, scratch: Any) -> Any:
        calls.append(1)
        x[0] = x[1] * scratch[0]
        scratch[0] = np.random.default_rng().normal()
        return np.sum(x**2) if x[1] > 9 else np.sum(x**3)

    x, scratch = X.copy(), np.ones(1)
    operator = func.linear_operator("hessian", counted, x, scratch)
    expected = np.diag([0, 12 * X[1], 6 * X[2]])
    np.testing.assert_allclose(operator.toarray(), expected)
    assert len(calls) == 1 and scratch == 1
    np.testing.assert_array_equal(x, X)
    x[:] = 0
    np.testing.assert_allclose(operator.toarray(), expected)


def test_zeros_that_were_not_selected() -> None:
    x = np.array([0.0, 1.0, -1.0])
    operator = func.linear_operator("jacobian", lambda x: np.where(x > 0, np.sqrt(np.abs(x)), 0), x)
    np.testing.assert_array_equal(operator.toarray(), np.diag([0, 0.5, 0]))
    np.testing.assert_array_equal(operator.T.toarray(), np.diag([0, 0.5, 0]))


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "kind": (lambda: func.linear_operator("hvp", np.sum, X), ArgumentError, "kind must be one of jacobian, hessian"),
    "no function": (
        lambda: func.linear_operator("hessian", cast(Any, X), np.sum),
        TypeError,
        "takes a function first",
    ),
    "vector": (lambda: func.linear_operator("hessian", np.sin, X), ScalarOutputError, "needs a scalar output"),
    "complex": (lambda: func.linear_operator("ntk", np.sin, X + 0j), ArgumentError, "real and imaginary parts"),
    "complex out": (lambda: func.linear_operator("ntk", lambda x: x * 1j, X), TypeError, "returned complex numbers"),
    "integers": (lambda: func.linear_operator("hessian", np.sum, [1]), DifferentiatedInputError, "derivatives need fl"),
    "integers out": (
        lambda: func.linear_operator("jacobian", np.argsort, X),
        TypeError,
        "needs floating point outputs",
    ),
    "no loss": (lambda: func.linear_operator("ggn", np.sin, X), ArgumentError, "needs loss="),
    "loss of arrays": (
        lambda: func.linear_operator("ggn", np.sin, X, loss=np.cos),
        ScalarOutputError,
        r'"ggn", loss=...\) needs a scalar',
    ),
    "loss of others": (
        lambda: func.linear_operator("ntk", np.sin, X, loss=np.sum),
        ArgumentError,
        'takes no loss, which belongs to "ggn"',
    ),
    "no likelihood": (lambda: func.linear_operator("fisher", np.sin, X), ArgumentError, 'is "empirical_fisher"'),
    "likelihood": (
        lambda: func.linear_operator("fisher", np.sin, X, likelihood="normal"),
        ArgumentError,
        "must be one of gaussian",
    ),
    "chunk": (lambda: func.linear_operator("ntk", np.sin, X, chunk_size=0), ArgumentError, "chunk_size must be"),
    "mean loss": (
        lambda: func.linear_operator("empirical_fisher", lambda p, x: p * x, X, INPUTS),
        ArgumentError,
        "needs the loss of one sample",
    ),
    "short vector": (lambda: CASES["hessian"][0]() @ X, ArgumentError, r"takes a vector of shape \(24,\) or \(24, 1\)"),
    "short left": (lambda: CASES["jacobian"][0]().rmatvec(X), ArgumentError, "from the left takes a vector of shape"),
    "short matrix": (lambda: CASES["ntk"][0]() @ np.ones((3, 4)), ArgumentError, r"takes a matrix of shape \(10, k\)"),
    "objects": (lambda: CASES["ntk"][0]() @ np.array([None] * 10), ArgumentError, "not of dtype object"),
    "damped": (lambda: CASES["jacobian"][0]().damped(1.0), ArgumentError, "is not square"),
    "array damping": (
        lambda: CASES["hessian"][0]().damped(np.ones(24)),  # would scale columns, or rows where there are 24
        ArgumentError,
        "must be a real number",
    ),
    "complex damping": (lambda: CASES["hessian"][0]().damped(1j), ArgumentError, "must be a real number, not 1j"),
    "one logit": (
        lambda: func.linear_operator("fisher", np.sum, X, likelihood="categorical"),
        ArgumentError,
        'write likelihood="bernoulli"',
    ),
    "pickle of traced values": (
        lambda: func.jit(lambda x: len(pickle.dumps(func.linear_operator("jacobian", np.sin, x))))(X),
        TypeError,
        "cannot be pickled",
    ),
    "other names": (
        lambda: func.linear_operator("hessian", lambda p: np.sum(p["a"] * p["b"]), {"a": X, "b": X}).ravel(
            {"a": X, "c": X}
        ),
        ArgumentError,
        "of the structure",
    ),
    "ravel": (lambda: CASES["hessian"][0]().ravel(X), ArgumentError, "a tree of arrays of shapes"),
    "unravel": (lambda: CASES["hessian"][0]().unravel(X), ArgumentError, "the tree has 24 elements"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_calls_are_named(name: str) -> None:
    call, error, words = REFUSED[name]
    with pytest.raises(error, match=words):
        call()
