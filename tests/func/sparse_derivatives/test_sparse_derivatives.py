"""Sparse Jacobians and Hessians equal the dense ones, keep their structure, and feed SciPy; bad input is named."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
import scipy.sparse
import scipy.sparse.linalg

import func
from func.backends.llvm.routine_code import NativeRoutine
from func.errors import ArgumentError
from func.sparse_derivatives import derivatives
from func.sparse_derivatives.coloring import (
    AcyclicColoring,
    bipartite,
    check_coloring,
    color_columns,
    color_star,
    greedy_acyclic,
    greedy_distance_two,
    greedy_star,
    leaves_first,
    substitute,
)

X = np.random.default_rng(0).normal(size=40)


def rosenbrock(x: Any) -> Any:
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def burgers(u: Any, viscosity: float = 0.1) -> Any:
    left, right = np.roll(u, 1), np.roll(u, -1)
    return -u * (right - left) / 2 + viscosity * (right - 2 * u + left)


def residuals(x: Any) -> Any:
    return np.concatenate([10 * (x[1:] - x[:-1] ** 2), 1 - x[:-1]])


JACOBIANS: dict[str, Callable[..., Any]] = {
    "columns": burgers,
    "more outputs than inputs": residuals,
    "rows": lambda x: np.array([np.sum(x**2), np.prod(x[:3])]),
    "rows and columns": lambda x: np.concatenate([np.array([np.sum(x**2)]), x[1:] * x[0]]),
    "dense": lambda x: np.sin(x) / np.sum(x**2),
    "nothing": lambda x: np.floor(x),
    "a constant": lambda x: np.ones(3),
    "several outputs": lambda x: (x[:3] ** 2, {"a": x[5] * x[6]}),
    "single precision": lambda x: np.sin(x.astype(np.float32)),
    "a custom gradient": lambda x: custom(x),
    "a custom tangent": lambda x: pushed(x)[1:] * x[:-1],
}


@func.custom_vjp
def custom(x: Any) -> Any:
    return x**2


custom.defvjp(lambda x: (x**2, x), lambda x, ct: (2 * x * ct,))


@func.custom_jvp
def pushed(x: Any) -> Any:
    return x**2


pushed.defjvp(lambda primals, tangents: (primals[0] ** 2, 2 * primals[0] * tangents[0]))

HESSIANS: dict[str, Callable[..., Any]] = {
    "bands": rosenbrock,
    "a diagonal": lambda x: np.sum(np.exp(x)),
    "an arrow": lambda x: np.sum(x**2) + x[0] * np.sum(np.sin(x)),
    "a block": lambda x: np.prod(x[:4]) + np.sum(x),
    "linear": lambda x: 3 * np.sum(x),
    "constant": lambda x: 2.0,
    "dense": lambda x: np.sum(x) ** 2,
}


@pytest.mark.parametrize("name", JACOBIANS)
def test_jacobians_equal_the_dense_ones(name: str) -> None:
    function = JACOBIANS[name]
    sparse = func.sparse_jacobian(function, check=True)(X)
    dense = func.jacrev(function)(X)
    rows = [np.reshape(block, (-1, X.size)) for block in func.tree.leaves(dense)]
    np.testing.assert_allclose(sparse.toarray(), np.concatenate(rows), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", HESSIANS)
def test_hessians_equal_the_dense_ones(name: str) -> None:
    sparse = func.sparse_hessian(HESSIANS[name], check=True)(X)
    np.testing.assert_allclose(sparse.toarray(), func.hessian(HESSIANS[name])(X), rtol=1e-9, atol=1e-9)


def test_several_arguments_are_blocks_side_by_side() -> None:
    def function(x: Any, y: Any) -> Any:
        return x * y[0] + y[1]

    sparse = func.sparse_jacobian(function, argnums=(0, 1))(X[:3], X[3:5])
    dense = np.concatenate(func.jacobian(function, argnums=(0, 1))(X[:3], X[3:5]), axis=1)
    np.testing.assert_allclose(sparse.toarray(), dense)


def test_integers_are_a_part_of_the_function() -> None:
    def shifted(x: Any, by: int, index: Any) -> Any:
        return x * np.roll(x, by) + x[index]

    jacobian = func.sparse_jacobian(shifted)
    for by, index in ((1, np.arange(40)), (2, np.arange(40)), (1, np.arange(40)[::-1]), (1, np.arange(40))):
        np.testing.assert_allclose(jacobian(X, by, index).toarray(), func.jacobian(shifted)(X, by, index))


class Shift:
    """An argument without a hash."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, by: int) -> None:
        self.by = by

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shift) and self.by == other.by


def test_objects_without_hash_are_a_part_of_the_function() -> None:
    jacobian = func.sparse_jacobian(lambda x, shift: x * np.roll(x, shift.by))
    for by in (1, 2, 1, 3, 2):
        dense = func.jacobian(lambda x, by=by: x * np.roll(x, by))(X)
        np.testing.assert_allclose(jacobian(X, Shift(by)).toarray(), dense)


def test_objects_are_read_at_each_call() -> None:
    jacobian, shift = func.sparse_jacobian(lambda x, shift: x * np.roll(x, shift.by)), Shift(1)
    for by in (1, 2, 1):
        shift.by = by
        dense = func.jacobian(lambda x, by=by: x * np.roll(x, by))(X)
        np.testing.assert_allclose(jacobian(X, shift).toarray(), dense)
        np.testing.assert_allclose(jacobian(X, np.array([shift])[0]).toarray(), dense)
    first, second = jacobian(X, shift), jacobian(X, Shift(1))
    assert np.shares_memory(first.indices, second.indices)  # an equal Program has the same evaluation


def test_many_numbers_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derivatives, "MAX_KINDS", 2)
    jacobian = func.sparse_jacobian(lambda x, by: x[:4] * np.roll(x[:4], by))
    for by in (1, 2, 3, 1, 2):
        expected = func.jacobian(lambda x, by=by: x[:4] * np.roll(x[:4], by))(X)
        np.testing.assert_allclose(jacobian(X, by).toarray(), expected)


def halved(x: Any) -> Any:
    return func.while_loop(lambda v: np.abs(v[0]) > 0.1, lambda v: v * 0.5 * np.tanh(np.roll(v, 1)), x)


FORWARD: dict[str, Callable[..., Any]] = {
    "a row": lambda x: np.sum(halved(x[:4])),
    "rows and columns": lambda x: np.concatenate([np.array([np.sum(x**2)]), x[1:] * x[0]]) * halved(x[:1]),
}


@pytest.mark.parametrize("name", FORWARD)
def test_what_has_no_pullback_is_evaluated_by_columns(name: str) -> None:
    function = FORWARD[name]
    sparse = func.sparse_jacobian(function, check=True)(X)
    np.testing.assert_allclose(sparse.toarray(), func.jacfwd(function)(X).reshape(sparse.shape), atol=1e-12)
    with pytest.raises(ArgumentError, match="too small"):
        func.sparse_jacobian(function, pattern=np.eye(*sparse.shape, k=1), check=True)(X)


def test_half_precision_becomes_single_as_scipy_knows_none() -> None:
    x = X[:6].astype(np.float16)
    for function in (lambda x: x[1:] * x[:-1], lambda x: x / np.sum(x * x), np.floor):
        sparse = func.sparse_jacobian(function)(x)
        assert sparse.dtype == np.float32
        np.testing.assert_allclose(sparse.toarray(), func.jacobian(function)(x), rtol=1e-2)
    assert func.sparse_hessian(lambda x: np.sum(x**3), coloring="acyclic")(x).dtype == np.float32


def test_zeros_that_a_pattern_stores_are_entries() -> None:
    at_zero = func.sparse_jacobian(burgers, check=True)(np.zeros(40))
    sparse = func.sparse_jacobian(burgers, pattern=at_zero, check=True)(X)
    np.testing.assert_allclose(sparse.toarray(), func.jacobian(burgers)(X))
    hessian = func.sparse_hessian(rosenbrock, pattern=func.sparse_hessian(rosenbrock)(np.zeros(40)), check=True)(X)
    np.testing.assert_allclose(hessian.toarray(), func.hessian(rosenbrock)(X))


def test_a_closure_over_a_traced_value_takes_the_dense_jacobian() -> None:
    def total(w: float) -> Any:
        return np.sum(func.jacobian(lambda x: w * x, sparse="auto")(np.ones(64)))

    assert func.grad(total)(2.0) == 64


SINGULAR: dict[str, Callable[..., Any]] = {
    "a branch": lambda x: np.where(x > 0, np.sqrt(x), 0) * np.roll(x, 1),
    "a branch below": lambda x: np.sqrt(np.where(x > 0, x, 0)) + np.roll(x, 1) * x,
    "a gradient inside": func.grad(lambda x: np.sum(np.where(x > 0, np.sqrt(x) * x, 0))),
    "infinite": lambda x: np.sqrt(x) + np.roll(x, 1) ** 2,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SINGULAR)
def test_zeros_are_structural(name: str) -> None:
    function, x = SINGULAR[name], np.array([0.0, 1, 2, 0, 3, 0])
    np.testing.assert_allclose(func.sparse_jacobian(function)(x).toarray(), func.jacfwd(function)(x))

    def squares(x: Any) -> Any:
        return np.sum(function(x) ** 2)

    np.testing.assert_allclose(func.sparse_hessian(squares)(x).toarray(), func.hessian(squares)(x), atol=1e-12)


def test_functions_without_outputs_have_no_rows() -> None:
    assert func.sparse_jacobian(lambda x: ())(X).shape == (0, 40)


def test_colours_need_not_be_consecutive() -> None:
    jacobian = func.sparse_jacobian(burgers, coloring=np.arange(40) % 4 * 10**9)
    np.testing.assert_allclose(jacobian(X).toarray(), func.jacobian(burgers)(X))


def test_many_integer_arrays_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derivatives, "MAX_PLANS", 2)
    jacobian = func.sparse_jacobian(lambda x, index: x[index] * x[:2])
    for first in (5, 6, 7, 5, 7):
        index = np.array([first, 3])
        expected = func.jacobian(lambda x, index=index: x[index] * x[:2])(X)
        np.testing.assert_allclose(jacobian(X, index).toarray(), expected)


def test_later_calls_share_one_structure_that_nobody_writes_to() -> None:
    jacobian = func.sparse_jacobian(burgers)
    first, second = jacobian(X), jacobian(X + 1)
    assert np.shares_memory(first.indices, second.indices)
    assert not np.shares_memory(first.data, second.data)
    with pytest.raises(ValueError, match="read-only"):
        first.indices[0] = 3
    mine = first.copy()
    mine.indices[0] = 3


def test_shapes_and_dtypes_have_their_own_structure() -> None:
    jacobian = func.sparse_jacobian(burgers)
    assert [jacobian(X[:n]).shape for n in (4, 7, 4)] == [(4, 4), (7, 7), (4, 4)]
    assert jacobian(X.astype(np.float32)).dtype == np.float32


def test_given_patterns_and_colorings() -> None:
    pattern = func.sparsity(burgers)(X)
    np.testing.assert_allclose(
        func.sparse_jacobian(burgers, pattern=pattern.toarray(), coloring=np.arange(40) % 4)(X).toarray(),
        func.jacobian(burgers)(X),
    )
    hessian = func.sparse_hessian(rosenbrock, coloring=np.arange(40) % 3, check=True)
    np.testing.assert_allclose(hessian(X).toarray(), func.hessian(rosenbrock)(X))


def test_jacobian_has_a_sparse_form() -> None:
    large = np.linspace(0, 1, 64)
    assert scipy.sparse.issparse(func.jacobian(burgers, sparse="auto")(large))
    assert scipy.sparse.issparse(func.jacobian(burgers, sparse=True)(large[:4]))
    for function in (lambda x: x / np.sum(x), lambda x: x if x[0] == 0 else -x):
        assert isinstance(func.jacobian(function, sparse="auto")(large + 1), np.ndarray)
    assert func.jacobian(rosenbrock, sparse="auto")(large).shape == (64,)


def test_they_feed_scipy() -> None:
    start = np.full(6, 0.5)
    fit = scipy.optimize.least_squares(residuals, start, jac=func.sparse_jacobian(residuals), tr_solver="lsmr")
    assert fit.cost < 1e-12
    found = scipy.optimize.minimize(
        rosenbrock, start, jac=func.grad(rosenbrock), hess=func.sparse_hessian(rosenbrock), method="trust-constr"
    )
    np.testing.assert_allclose(found.x, 1, atol=1e-4)
    solved = scipy.integrate.solve_ivp(
        lambda t, u: burgers(u), (0, 1), X, "BDF", jac=func.sparse_jacobian(lambda t, u: burgers(u), argnums=1)
    )
    assert solved.success
    hessian = func.sparse_hessian(rosenbrock)(start + 1)
    np.testing.assert_allclose(hessian @ scipy.sparse.linalg.spsolve(hessian, start), start)


def test_what_transforms_return_pickles() -> None:
    jacobian = pickle.loads(pickle.dumps(func.sparse_jacobian(burgers)))
    np.testing.assert_allclose(jacobian(X).toarray(), func.jacobian(burgers)(X))


BAD: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "a pattern too small": (
        lambda: func.sparse_jacobian(burgers, pattern=np.eye(40), check=True)(X),
        ArgumentError,
        r"misses the entry \(\d+, \d+\)",
    ),
    "a Hessian's pattern too small": (
        lambda: func.sparse_hessian(rosenbrock, pattern=np.eye(40), check=True)(X),
        ArgumentError,
        "misses the entry",
    ),
    "a pattern of another shape": (
        lambda: func.sparse_jacobian(burgers, pattern=np.eye(3))(X),
        ArgumentError,
        r"shape \(3, 3\)",
    ),
    "a pattern without symmetry": (
        lambda: func.sparse_hessian(rosenbrock, pattern=np.triu(np.ones((40, 40))))(X),
        ArgumentError,
        "not symmetric",
    ),
    "colours that clash": (
        lambda: func.sparse_jacobian(burgers, coloring=np.zeros(40, int))(X),
        ArgumentError,
        "columns 0 and 1 have colour 0",
    ),
    "colours of no sense": (lambda: func.sparse_jacobian(burgers, coloring=[0.5])(X), ArgumentError, "40 colours"),
    "an unknown colouring": (
        lambda: func.sparse_hessian(rosenbrock, coloring="forest")(X),
        ArgumentError,
        '"star" or "acyclic"; got \'forest\'',
    ),
    "a Jacobian's colouring by name": (
        lambda: func.sparse_jacobian(burgers, coloring="star")(X),
        ArgumentError,
        "40 colours; got 'star'",
    ),
    "a Hessian of a vector": (lambda: func.sparse_hessian(burgers)(X), ArgumentError, "returns one number"),
    "complex arguments": (lambda: func.sparse_jacobian(burgers)(X + 0j), ArgumentError, "complex"),
    "complex outputs": (lambda: func.sparse_jacobian(lambda x: x * 1j)(X), TypeError, "complex"),
    "integer arguments": (lambda: func.sparse_jacobian(burgers)(np.arange(4)), TypeError, "no floating point"),
    "integer outputs": (lambda: func.sparse_jacobian(np.argsort)(X), TypeError, "returned int64"),
    "closing over a traced value": (
        lambda: func.grad(lambda w: func.sparse_jacobian(lambda x: w * x)(X).sum())(2.0),
        TypeError,
        "no transform can trace",
    ),
    "inside jit": (lambda: func.jit(func.sparse_jacobian(burgers))(X), TypeError, "no transform can trace"),
    "no function": (lambda: func.sparse_jacobian(3), TypeError, "takes a function"),
    "sparse of another kind": (lambda: func.jacobian(burgers, sparse="yes"), ArgumentError, "'auto'"),
    "sparse with aux": (lambda: func.jacobian(burgers, has_aux=True, sparse=True), ArgumentError, "has_aux"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named(name: str) -> None:
    call, error, words = BAD[name]
    with pytest.raises(error, match=words):
        call()


def random_symmetric(count: int, density: float, rng: Any) -> Any:
    entries = rng.random((count, count)) < density
    return scipy.sparse.csr_array(entries | entries.T | np.eye(count, dtype=bool))


@pytest.mark.parametrize(("count", "density"), [(5, 0.5), (30, 0.1), (60, 0.05), (150, 0.01)])
def test_star_colorings_let_every_entry_be_read(count: int, density: float) -> None:
    rng = np.random.default_rng(count)
    for _ in range(10):
        pattern = random_symmetric(count, density, rng)
        star = color_star(pattern)
        rows = np.repeat(np.arange(count), np.diff(pattern.indptr))
        others = np.where(star.hubs == rows, pattern.indices, rows)
        met = pattern.astype(float) @ np.eye(star.colors.max() + 1)[star.colors]
        assert np.all(met[others, star.colors[star.hubs]] == 1)
        check_coloring(pattern, color_columns(pattern), "sparse_jacobian")


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize(("count", "density"), [(1, 1.0), (5, 0.5), (30, 0.1), (60, 0.05), (40, 0.4)])
def test_acyclic_colorings_let_every_entry_be_found(
    count: int, density: float, native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not native:
        for kernel in (greedy_acyclic, leaves_first, substitute):
            monkeypatch.setattr(kernel, "__class__", PlainLoops)
    rng = np.random.default_rng(count)
    for _ in range(5):
        pattern = random_symmetric(count, density, rng)
        matrix = rng.normal(size=(count, count))
        matrix = (matrix + matrix.T) * pattern.toarray()
        coloring = AcyclicColoring(pattern)
        colors = coloring.colors.max() + 1
        products = np.ascontiguousarray((matrix @ np.eye(colors)[coloring.colors]).T)
        data = coloring.read(products, coloring.colors, pattern.nnz)
        data[coloring.diagonal] = np.diag(matrix)
        found = scipy.sparse.csr_array((data, pattern.indices, pattern.indptr), shape=pattern.shape)
        np.testing.assert_allclose(found.toarray(), matrix, atol=1e-9)
        assert colors <= color_columns(pattern).max() + 1


class PlainLoops(NativeRoutine):
    """The loops without LLVM."""

    def __call__(self, *args: Any) -> int:
        return self.function(*args)


@pytest.mark.parametrize("name", HESSIANS)
def test_hessians_by_substitution_equal_the_dense_ones(name: str) -> None:
    for x in (X, X.astype(np.float32)):
        sparse = func.sparse_hessian(HESSIANS[name], coloring="acyclic", check=True)(x)
        dense = func.hessian(HESSIANS[name])(x)
        assert sparse.dtype == dense.dtype
        scale = 1e-9 if x.dtype == float else 1e-3
        np.testing.assert_allclose(sparse.toarray(), dense, rtol=scale, atol=scale * (1 + abs(dense).max()))


def test_trees_need_fewer_products_than_stars() -> None:
    grid = scipy.sparse.csr_array(np.abs(np.subtract.outer(range(20), range(20))) <= 1)
    pattern = scipy.sparse.csr_array(scipy.sparse.kron(grid, grid))
    pattern.sum_duplicates()
    assert AcyclicColoring(pattern).colors.max() < color_star(pattern).colors.max()
    assert AcyclicColoring(grid).colors.max() == 1


@pytest.mark.parametrize("width", [0, 1, 2, 5])
def test_bands_get_the_least_number_of_colours(width: int) -> None:
    bands = scipy.sparse.csr_array(np.abs(np.subtract.outer(range(50), range(50))) <= width)
    assert color_columns(bands).max() == 2 * width
    assert color_star(bands).colors.max() <= 2 * width
    assert color_star(bipartite(bands)).colors.min() == 0


def test_kernels_give_the_same_as_python() -> None:
    pattern = random_symmetric(30, 0.1, np.random.default_rng(1))
    columns = pattern.tocsc()
    graph = [x.astype(np.int64) for x in (columns.indptr, columns.indices, pattern.indptr, pattern.indices)]
    results = []
    for kernel in (greedy_distance_two, greedy_distance_two.function):
        colors, marks = np.full(30, -1), np.full(31, -1)
        results.append((kernel(np.arange(30), 30, *graph, colors, marks), colors.tolist()))
    assert results[0] == results[1]
    off = scipy.sparse.csr_array(pattern.toarray() & ~np.eye(30, dtype=bool))
    heads = np.repeat(np.arange(30), np.diff(off.indptr))
    edges = np.unique(np.minimum(heads, off.indices) * 30 + np.maximum(heads, off.indices), return_inverse=True)[1]
    results = []
    for kernel in (greedy_star, greedy_star.function):
        state = [np.full(31, -1) for _ in range(6)]
        stars = np.zeros(len(edges) + 1, np.int64), np.full(len(edges) + 1, -1)
        used = kernel(
            np.arange(30), 30, off.indptr.astype(np.int64), off.indices.astype(np.int64), edges, *state, *stars
        )
        results.append((used, state[0].tolist()))
    assert results[0] == results[1]
