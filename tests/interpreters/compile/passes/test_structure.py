"""Diagonal sparsity, outer products and Cholesky pullbacks in derivatives."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import func
from func.interpreters.compile.passes import optimize
from func.interpreters.compile.passes.linalg.cholesky_pullback import simplify_cholesky_pullbacks
from func.interpreters.compile.passes.low_rank import exploit_outer_products
from func.interpreters.compile.passes.sparsity import diagonal_sparsity
from func.interpreters.compile.passes.sparsity.diagonal_sparsity import exploit_diagonal_sparsity
from func.interpreters.compile.passes.sparsity.diagonal_terms import Axis, GiveUp, cut_axis, is_injective, terms_of
from func.interpreters.program.program import Program

RNG = np.random.default_rng(7)
W = RNG.normal(size=(5, 5))
TALL = RNG.normal(size=(7, 5))
V = RNG.normal(size=5)


Pass = Callable[[Program], Program]


def rewritten(rewrite: Pass, function: Callable[..., Any], *args: Any) -> tuple[Program, Program]:
    """Check that a pass keeps what a program computes; return the program of a function before and after it."""
    program = func.make_program(function)(*args)
    after = rewrite(program)
    after.check()
    leaves = func.tree.leaves(args)
    assert after.inputs == program.inputs
    single = any([np.asarray(leaf).dtype.itemsize == 4 for leaf in leaves])
    for before, now in zip(program.run(leaves), after.run(leaves), strict=True):
        assert np.shape(before) == np.shape(now)
        assert np.asarray(before).dtype == np.asarray(now).dtype
        tolerance = 3e-5 if single or before.dtype.itemsize == 4 else 1e-12
        absolute = tolerance * max(1, np.max(np.abs(before), initial=0))
        np.testing.assert_allclose(now, before, rtol=tolerance, atol=absolute)
    return program, after


def largest(program: Program) -> int:
    """The size of the largest value that is computed."""
    return max([out.size for equation in program.equations for out in equation.outputs], default=0)


@pytest.fixture(autouse=True)
def many_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small values stay sums of many terms, so that small examples meet all rules."""
    monkeypatch.setattr(diagonal_sparsity, "FEW_TERMS", 12)


def names(program: Program) -> list[str]:
    """The names of the primitives in order."""
    return [equation.primitive.name for equation in program.equations]


def summed_labels(program: Program) -> list[int]:
    """The multiply-add counts of the contractions that sum."""
    counts = []
    for equation in program.equations:
        if equation.primitive.name == "contract":
            labels = equation.params["spec"]
            lengths = dict(zip(labels.x, equation.inputs[0].shape, strict=True))
            lengths |= dict(zip(labels.y, equation.inputs[1].shape, strict=True))
            if set(lengths) != set(labels.out):
                counts.append(int(np.prod(list(lengths.values()))))
    return counts


def rosenbrock(x: Any) -> Any:
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def written(x: Any) -> Any:
    y = np.zeros_like(x)
    y[1:-1] = x[2:] - 2 * x[1:-1] + x[:-2]
    y[0] = x[0] * 3
    return y


def layers(x: Any) -> Any:
    return W @ np.tanh(TALL.T @ np.tanh(TALL @ x))


MAPS: dict[str, Callable[[Any], Any]] = {
    "identity": lambda x: x,
    "elementwise": lambda x: np.sin(x) * x + 2,
    "divided": lambda x: np.exp(x) / (1 + x * x),
    "matmul": lambda x: W @ x,
    "matmul then tanh": lambda x: np.tanh(W @ x),
    "tanh then matmul": lambda x: TALL @ np.tanh(x),
    "vector times matrix": lambda x: np.cos(x) @ TALL.T,
    "layers": layers,
    "residual": lambda x: x + np.tanh(W @ x),
    "difference": lambda x: x[1:] - x[:-1],
    "laplacian": lambda x: x[2:] - 2 * x[1:-1] + x[:-2],
    "written": written,
    "every second": lambda x: x[::2] * x[1::2][:3].sum(),
    "reversed": lambda x: x[::-1] * x,
    "strided backwards": lambda x: x[4::-2],
    "rolled": lambda x: np.roll(x, 2) * x,
    "padded": lambda x: np.pad(x, (2, 1)) ** 2,
    "repeated": lambda x: np.concatenate([x, x**2, np.ones(3)]),
    "stacked": lambda x: np.stack([x, np.sin(x)]),
    "stacked last": lambda x: np.stack([x, np.sin(x)], axis=-1),
    "with sum": lambda x: x / np.sum(x),
    "mean": lambda x: np.mean(x**2) + x[:2],
    "softmax": lambda x: np.exp(x) / np.sum(np.exp(x)),
    "cumulative": lambda x: np.cumsum(np.sin(x)),
    "gathered": lambda x: x[np.array([3, 0, 3, 1])],
    "evenly gathered": lambda x: np.sin(x[np.arange(1, 5, 2)]),
    "outer": lambda x: np.outer(x, x[1:]),
    "diagonal matrix": lambda x: np.diag(x) @ TALL.T,
    "off-diagonal matrix": lambda x: np.diag(x, 1)[:5, :5] + np.diag(x**2),
    "from diagonal": lambda x: np.diag(np.outer(x, x)),
    "masked": lambda x: np.where(np.arange(5) > 2, x, x * x),
    "masked by value": lambda x: np.where(x > 0, x, 0.0) + np.maximum(x, 0),
    "first": lambda x: x[0] * x[3],
    "column": lambda x: x[:, None] * V,
    "square root": lambda x: np.sqrt(np.abs(x)) + np.abs(x),
    "to single": lambda x: x.astype(np.float32) * 3,
    "finite": lambda x: (x[1:] - x[:-1]) @ (x[1:] - x[:-1]) * x,
    "cubed": lambda x: x**3 - np.linalg.norm(x),
    "sorted": lambda x: np.sort(x)[:3],
    "solved": lambda x: np.linalg.solve(np.diag(x) + 4 * np.eye(5), V),
    "constant part": lambda x: np.array([x[0], 1.0, x[1], 0.0]),
    "nothing": lambda x: x[:0],
}


@pytest.mark.parametrize("mode", ["jacrev", "jacfwd"])
@pytest.mark.parametrize("name", MAPS)
def test_jacobians_of_maps(name: str, mode: str) -> None:
    for dtype in (np.float64, np.float32):
        x = np.linspace(-1.0, 1.3, 5).astype(dtype)
        transform = func.jacrev if mode == "jacrev" else func.jacfwd
        after = rewritten(exploit_diagonal_sparsity, transform(MAPS[name]), x)[1]
        assert exploit_diagonal_sparsity(after) is after


@pytest.mark.parametrize("name", [name for name in MAPS if name not in ("square root", "nothing", "to single")])
def test_hessians_of_maps(name: str) -> None:
    x = np.linspace(-1.0, 1.3, 5)
    rewritten(exploit_diagonal_sparsity, func.hessian(lambda x: np.sum(MAPS[name](x) ** 2)), x)
    rewritten(exploit_diagonal_sparsity, func.jacrev(func.jacrev(MAPS[name])), x)


MATRIX_MAPS: dict[str, Callable[[Any], Any]] = {
    "product": lambda x: x @ TALL[:4],
    "product from the left": lambda x: TALL[:, :3] @ x,
    "elementwise": lambda x: np.sin(x) * x,
    "transposed": lambda x: np.tanh(x).T,
    "row sums": lambda x: np.sum(x * x, axis=1),
    "column sums": lambda x: np.sum(np.exp(x), axis=0),
    "row softmax": lambda x: np.exp(x) / np.sum(np.exp(x), axis=1, keepdims=True),
    "flat": lambda x: np.sin(x).reshape(-1)[2:9],
    "reshaped": lambda x: (x * 2).reshape(4, 3) ** 2,
    "part": lambda x: x[1:, ::2],
    "row": lambda x: np.cos(x[1]),
    "stencil": lambda x: x[1:, :] - x[:-1, :] + np.sum(x[:, 1:] * x[:, :-1]),
    "gram": lambda x: x @ x.T,
    "batched": lambda x: np.stack([x, x * 2]) @ TALL[:4],
    "einsum": lambda x: np.einsum("ij,jk->ki", x, TALL[:4]),
    "trace": lambda x: np.trace(x @ x.T),
    "moved": lambda x: np.moveaxis(np.stack([x, x**2]), 0, 1),
}


@pytest.mark.parametrize("mode", ["jacrev", "jacfwd", "hessian"])
@pytest.mark.parametrize("name", MATRIX_MAPS)
def test_jacobians_of_matrix_maps(name: str, mode: str) -> None:
    x = RNG.normal(size=(3, 4))
    if mode == "hessian":
        rewritten(exploit_diagonal_sparsity, func.hessian(lambda x: np.sum(MATRIX_MAPS[name](x) ** 2)), x)
    else:
        rewritten(exploit_diagonal_sparsity, getattr(func, mode)(MATRIX_MAPS[name]), x)


def test_chunks_trees_and_complex_numbers() -> None:
    x, y = RNG.normal(size=5), RNG.normal(size=(2, 5))

    def tree_map(p: Any) -> Any:
        return {"a": np.tanh(W @ p["x"]), "b": p["y"] * p["x"][None], "c": p["s"] * p["x"]}

    params = {"x": x, "y": y, "s": np.float64(2.0)}
    for transform in (func.jacrev, func.jacfwd, func.hessian):
        rewritten(exploit_diagonal_sparsity, transform(tree_map), params)
    rewritten(exploit_diagonal_sparsity, func.jacrev(lambda x: np.sin(W @ x), chunk_size=2), x)
    rewritten(exploit_diagonal_sparsity, func.jacfwd(lambda x: np.sin(W @ x), chunk_size=3), x)
    rewritten(exploit_diagonal_sparsity, func.jacrev(lambda x, y: (y @ np.sin(x), y * 2), argnums=(0, 1)), x, y)
    z = RNG.normal(size=5) + 1j * RNG.normal(size=5)
    for transform in (func.jacrev, func.jacfwd):
        rewritten(exploit_diagonal_sparsity, transform(lambda z: np.sin((W + 1j * W.T) @ z) * z, holomorphic=True), z)
        rewritten(exploit_diagonal_sparsity, transform(lambda x: np.abs(np.exp(1j * x)[1:] + x[:-1])), x)
        rewritten(exploit_diagonal_sparsity, transform(lambda x: np.sin(x) * 2), x[:1])
        rewritten(exploit_diagonal_sparsity, transform(lambda x: np.sin(x) * 2), x[:2])
        rewritten(exploit_diagonal_sparsity, func.vmap(transform(lambda x: np.sin(x) * x[::-1])), y)


@pytest.mark.parametrize("mode", ["jacrev", "jacfwd"])
def test_jacobian_of_a_matrix_product_is_the_matrix(mode: str) -> None:
    w, x = RNG.normal(size=(40, 30)), RNG.normal(size=30)
    transform = func.jacrev if mode == "jacrev" else func.jacfwd
    _, linear = rewritten(exploit_diagonal_sparsity, transform(lambda w, x: w @ x, argnums=1), w, x)
    assert set(names(linear)) <= {"reshape"}
    before, after = rewritten(exploit_diagonal_sparsity, transform(lambda w, x: np.tanh(w @ x), argnums=1), w, x)
    assert summed_labels(after) == [40 * 30] < summed_labels(before)
    assert not after.constants
    assert "permute" not in names(after)


def _rows_of_pullback(f, x):
    _, pull = func.vjp(f, x)
    return func.vmap(pull)(np.eye(x.size))[0]


def _columns_of_jvp(f, x):
    return func.vmap(lambda dx: func.jvp(f, (x,), (dx,))[1])(np.eye(x.size))


def _columns_of_linearized(f, x):
    _, push = func.linearize(f, x)
    return func.vmap(push)(np.eye(x.size))


@pytest.mark.parametrize("jacobian", [_rows_of_pullback, _columns_of_jvp, _columns_of_linearized])
def test_unit_vectors_that_a_caller_gives_for_directions_are_seeds(jacobian):
    weights = np.random.default_rng(0).normal(size=(5, 5))
    x = np.linspace(-1.0, 1.0, 5)

    def whole(x):
        return jacobian(lambda x: np.tanh(weights @ x), x)

    _, after = rewritten(exploit_diagonal_sparsity, whole, x)
    ranks = [[len(value.aval.shape) for value in e.inputs] for e in after.equations if e.primitive.name == "contract"]
    assert [2, 2] not in ranks
    np.testing.assert_allclose(func.jit(whole)(x), whole(x), rtol=1e-12)


INLINED: dict[str, Callable[[Any], Any]] = {
    "formulas": np.arctan,
    "formulas of two operands": lambda y: np.logaddexp(y, 0.5),
    "compiled calls": func.jit(np.tanh),
    "checkpoints": func.checkpoint(np.tanh),
    "rules of users": func.custom_jvp(np.tanh),
}
INLINED["rules of users"].defjvp(
    lambda primals, tangents: (np.tanh(primals[0]), tangents[0] / np.cosh(primals[0]) ** 2)
)  # type: ignore[attr-defined]


@pytest.mark.parametrize("is_nested", [False, True])
@pytest.mark.parametrize("mode", ["jacrev", "jacfwd"])
@pytest.mark.parametrize("name", INLINED)
def test_seeds_stay_seeds_where_calls_are_inlined(name: str, mode: str, is_nested: bool) -> None:
    transform = func.jacrev if mode == "jacrev" else func.jacfwd
    whole = transform(lambda x: 2 * INLINED[name](W @ x))
    program = func.jit(func.jit(whole) if is_nested else whole).trace(V)
    products = [e for e in program.equations if e.primitive.name == "contract"]
    assert [out.shape for product in products for out in product.outputs] == [V.shape]
    np.testing.assert_allclose(program(V)[0], whole(V), rtol=1e-12)


def test_a_program_that_is_evaluated_on_numbers_has_no_seed_left() -> None:
    program = func.make_program(func.jacrev(lambda x: np.sin(W @ x)))(V)
    outer = func.make_program(lambda x: x * np.sum(program(V)[0]))(V)
    assert "seed" not in names(outer)


def test_jacobian_of_an_elementwise_map_is_diagonal() -> None:
    x = RNG.normal(size=200)
    _, after = rewritten(exploit_diagonal_sparsity, func.jacfwd(lambda x: np.sin(x) * np.exp(-x)), x)
    assert [out.size for equation in after.equations for out in equation.outputs].count(200 * 200) <= 2
    assert names(after).count("place") == 1
    assert not after.constants


def test_jacobian_of_a_layer_keeps_its_blocks() -> None:
    x, w = RNG.normal(size=(12, 20)), RNG.normal(size=(20, 8))
    _, after = rewritten(exploit_diagonal_sparsity, func.jacrev(lambda x, w: np.maximum(x @ w, 0)), x, w)
    sizes = sorted([out.size for equation in after.equations for out in equation.outputs])
    full = 12 * 8 * 12 * 20
    assert [size for size in sizes if size > 12 * 8 * 20] == [full] * sizes.count(full)
    assert sizes.count(full) <= 2


@pytest.mark.parametrize("n", [2, 3, 100])
def test_hessian_of_rosenbrock_is_three_diagonals(n: int) -> None:
    _, after = rewritten(exploit_diagonal_sparsity, func.hessian(rosenbrock), RNG.normal(size=n))
    if n == 100:
        sizes = [out.size for equation in after.equations for out in equation.outputs]
        assert sizes.count(n * n) <= 3
        assert max([size for size in sizes if size != n * n]) <= n
        assert sum([value.size for value in after.constants.values()]) <= 4 * n


def test_noise_on_the_diagonal_is_added_there() -> None:
    x = RNG.normal(size=(30, 30))
    noise = RNG.normal(size=30)
    _, after = rewritten(exploit_diagonal_sparsity, lambda x, s: x @ x.T + np.diag(s), x, noise)
    assert names(after)[-1] == "place"
    rewritten(exploit_diagonal_sparsity, lambda x, s: np.diag(s) - x, x, noise)
    rewritten(exploit_diagonal_sparsity, lambda x, s: x - np.diag(s), x, noise)


def test_zeros_of_seeds_stay_zero_under_infinite_factors() -> None:
    x = np.array([0.0, 1.0, 2.0, 3.0])
    with np.errstate(all="ignore"):
        program = func.make_program(func.jacfwd(np.log))(x)
        (value,) = exploit_diagonal_sparsity(program).run([x])
        np.testing.assert_array_equal(value, np.diag([np.inf, 1.0, 1 / 2, 1 / 3]))


def test_derivatives_and_batches_of_rewritten_programs() -> None:
    x = RNG.normal(size=5)
    _, after = rewritten(exploit_diagonal_sparsity, func.jacfwd(lambda x: np.sin(x[1:]) * x[:-1]), x)
    plain = func.jacfwd(lambda x: np.sin(x[1:]) * x[:-1])

    def run(x: Any) -> Any:
        return after.run([x])[0]

    np.testing.assert_allclose(func.jacrev(run)(x), func.jacrev(plain)(x), atol=1e-12)
    np.testing.assert_allclose(func.jacfwd(run)(x), func.jacfwd(plain)(x), atol=1e-12)
    many = RNG.normal(size=(3, 5))
    np.testing.assert_allclose(func.vmap(run)(many), func.vmap(plain)(many), atol=1e-12)


def test_programs_without_structure_are_returned_as_they_are() -> None:
    program = func.make_program(func.grad(lambda x: np.sum(np.tanh(W @ x) * V)))(V)
    assert exploit_diagonal_sparsity(program) is program
    assert exploit_outer_products(program) is program
    constants = func.make_program(
        lambda x: np.eye(5) + 1,
    )(V)
    assert exploit_diagonal_sparsity(constants) is constants


def calls_made(run: Callable[[], Any]) -> int:
    """How many calls of Python functions a call makes."""
    count = 0

    def profile(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("optimise", [exploit_diagonal_sparsity, exploit_outer_products])
def test_cost_is_linear_in_the_number_of_equations(optimise: Callable[[Any], Any]) -> None:
    def chain(steps: int) -> Any:
        def function(x: Any) -> Any:
            for _ in range(steps):
                x = np.sin(x) * 2 + x
            return x

        return func.make_program(function)(V)

    short, long = chain(400), chain(1600)
    assert optimise(long) is long
    assert calls_made(lambda: optimise(long)) <= 4.2 * calls_made(lambda: optimise(short)) + 100


STEPS: dict[str, Callable[[Any, int], Any]] = {
    "sin": lambda x, k: np.sin(x),
    "scale": lambda x, k: x * np.cos(np.arange(x.size) + k),
    "divide": lambda x, k: x / (2 + np.sin(np.arange(x.size) * k)),
    "negative": lambda x, k: -x,
    "number": lambda x, k: x * (k + 0.5),
    "head": lambda x, k: x[: max(2, x.size - k)],
    "tail": lambda x, k: x[min(k, x.size - 2) :],
    "step": lambda x, k: x[:: 1 + k % 2] if x.size > 4 else x,
    "flip": lambda x, k: x[::-1],
    "pad": lambda x, k: np.pad(x, (k % 3, 1)),
    "roll": lambda x, k: np.roll(x, k),
    "shifted sum": lambda x, k: x[1:] + k * x[:-1] if x.size > 2 else x,
    "with itself": lambda x, k: np.concatenate([x, np.sin(x)])[:12],
    "matrix": lambda x, k: np.cos(np.arange(4 * x.size)).reshape(4, x.size) @ x,
    "pairs": lambda x, k: x[: x.size // 2 * 2].reshape(-1, 2).T.reshape(-1),
    "pair sums": lambda x, k: np.sum(x[: x.size // 2 * 2].reshape(-1, 2), axis=k % 2) if x.size > 4 else x,
    "grid": lambda x, k: (x[:4].reshape(2, 2) @ np.ones((2, 2)) * 0.3).reshape(-1) if x.size > 3 else x,
    "total": lambda x, k: x - np.sum(x),
    "cumulative": lambda x, k: np.cumsum(x) * 0.5,
    "mask": lambda x, k: np.where(np.arange(x.size) % 3 == k % 3, 0.0, x),
    "write": lambda x, k: _write(x, k),
    "choose": lambda x, k: x[np.array([k % x.size, 0, 1])],
    "column": lambda x, k: (x[:, None] * np.ones((1, 2))).reshape(-1)[: x.size + 1],
}


def _write(x: Any, k: int) -> Any:
    y = x * 1.0
    y[k % y.size : k % y.size + 2] = 3 * x[0]
    return y


compositions = st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.integers(1, 4)), min_size=1, max_size=6)


@settings(max_examples=150)
@given(steps=compositions, n=st.integers(2, 7), forward=st.booleans())
def test_random_compositions(steps: list[tuple[str, int]], n: int, forward: bool) -> None:
    def f(x: Any) -> Any:
        for name, k in steps:
            x = STEPS[name](x, k)
        return x

    transform = func.jacfwd if forward else func.jacrev
    rewritten(exploit_diagonal_sparsity, transform(f), np.linspace(-1.0, 1.0, n))


def _waves(rows: int, columns: int, k: int) -> Any:
    return np.cos(np.arange(rows * columns) + k).reshape(rows, columns)


MATRIX_STEPS: dict[str, Callable[[Any, int], Any]] = {
    "sin": lambda x, k: np.sin(x),
    "transpose": lambda x, k: np.swapaxes(x, k % x.ndim, (k + 1) % x.ndim),
    "from the right": lambda x, k: x @ _waves(x.shape[-1], 1 + k % 3, k),
    "from the left": lambda x, k: _waves(2, x.shape[-2], k) @ x if x.ndim > 1 else x,
    "einsum": lambda x, k: np.einsum("i...,ij->j...", x, _waves(x.shape[0], 2, k)),
    "rows": lambda x, k: x[k % 2 :] if x.shape[0] > 2 else x,
    "columns": lambda x, k: x[..., :: 1 + k % 2],
    "flip": lambda x, k: x[::-1, ..., ::-1] if x.ndim > 1 else x[::-1],
    "flat": lambda x, k: x.reshape(-1),
    "halves": lambda x, k: x.reshape(2, -1) if x.size % 2 == 0 else x,
    "sum": lambda x, k: np.sum(x, axis=k % x.ndim) if x.ndim > 1 else x,
    "centred": lambda x, k: x - np.mean(x, axis=0),
    "scale": lambda x, k: x * np.cos(np.arange(x.shape[-1]) + k),
    "stack": lambda x, k: np.stack([x, np.cos(x)], axis=k % (x.ndim + 1)) if x.size < 12 else x,
    "join": lambda x, k: np.concatenate([x, x * 2], axis=k % x.ndim) if x.size < 12 else x,
    "difference": lambda x, k: x[1:] - x[:-1] if x.shape[0] > 2 else x,
    "mask": lambda x, k: np.where(np.arange(x.shape[-1]) % 2 == k % 2, x, 0),
    "row": lambda x, k: x[k % x.shape[0]] if x.ndim > 1 else x,
    "leaky": lambda x, k: np.where(x > 0, x, 0.2 * x),
}


@settings(max_examples=150)
@given(
    steps=st.lists(st.tuples(st.sampled_from(sorted(MATRIX_STEPS)), st.integers(1, 4)), min_size=1, max_size=6),
    shape=st.sampled_from([(2, 3), (3, 2), (2, 2, 2), (1, 4), (3, 1), (3, 4)]),
    mode=st.sampled_from(["jacrev", "jacfwd", "hessian"]),
)
def test_random_compositions_of_matrix_maps(steps: list[tuple[str, int]], shape: tuple[int, ...], mode: str) -> None:
    def f(x: Any) -> Any:
        for name, k in steps:
            x = MATRIX_STEPS[name](x, k)
        return np.sum(np.sin(x) * x) if mode == "hessian" else x

    rewritten(
        exploit_diagonal_sparsity, getattr(func, mode)(f), np.linspace(-1.0, 1.1, int(np.prod(shape))).reshape(shape)
    )


@settings(max_examples=40)
@given(steps=compositions, n=st.integers(2, 6))
def test_random_hessians(steps: list[tuple[str, int]], n: int) -> None:
    def f(x: Any) -> Any:
        for name, k in steps:
            x = STEPS[name](x, k)
        return np.sum(np.sin(x) * x)

    rewritten(exploit_diagonal_sparsity, func.hessian(f), np.linspace(-1.0, 1.0, n))


BATCH, INPUTS, HIDDEN, OUTPUTS = 32, 20, 15, 10


def loss(p: Any, x: Any, y: Any) -> Any:
    hidden = np.tanh(x @ p["w1"] + p["b1"])
    scores = hidden @ p["w2"] + p["b2"]
    return np.sum((func.special.logsumexp(scores, axis=-1, keepdims=True) - scores) * y)


def sample(dtype: Any) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(3)
    params = {
        "w1": rng.normal(size=(INPUTS, HIDDEN)) * 0.2,
        "b1": rng.normal(size=HIDDEN),
        "w2": rng.normal(size=(HIDDEN, OUTPUTS)) * 0.2,
        "b2": rng.normal(size=OUTPUTS),
    }
    labels = np.eye(OUTPUTS)[rng.integers(0, OUTPUTS, BATCH)]
    return func.tree.map(lambda a: a.astype(dtype), (params, rng.normal(size=(BATCH, INPUTS)), labels))


def gradients(p: Any, x: Any, y: Any) -> list[Any]:
    return func.tree.leaves(func.grad(loss)(p, x, y))


NORMS: dict[str, Callable[..., Any]] = {
    "sum of squares": lambda *a: np.sqrt(sum([np.sum(g**2) for g in gradients(*a)])),
    "square": lambda *a: sum([np.square(g).sum() for g in gradients(*a)]),
    "products": lambda *a: sum([np.sum(g * g) for g in gradients(*a)]),
    "vdot": lambda *a: np.sqrt(sum([np.vdot(g, g) for g in gradients(*a)])),
    "norm of each": lambda *a: np.sqrt(sum([np.linalg.norm(g) ** 2 for g in gradients(*a)])),
    "flat dot": lambda *a: sum([g.ravel() @ g.ravel() for g in gradients(*a)]),
    "one vector": lambda *a: np.linalg.norm(np.concatenate([g.ravel() for g in gradients(*a)])),
    "squares of one vector": lambda *a: np.sum(np.concatenate([g.reshape(-1) for g in gradients(*a)]) ** 2),
    "norm of norms": lambda *a: np.linalg.norm(np.array([np.linalg.norm(g) for g in gradients(*a)])),
    "absolute": lambda *a: sum([np.sum(np.abs(g) ** 2) for g in gradients(*a)]),
    "first norm": lambda *a: sum([np.sum(np.abs(g)) for g in gradients(*a)]),
    "einsum": lambda *a: sum([np.einsum("...,...->", g, g) for g in gradients(*a)]),
    "scaled": lambda *a: sum([np.sum((-0.5 * g / 3) ** 2) for g in gradients(*a)]),
    "mean": lambda *a: sum([np.mean(g**2) for g in gradients(*a)]),
    "double": lambda *a: sum([np.sum(g.astype(np.float64) ** 2) for g in gradients(*a)]),
    "transposed": lambda *a: sum([np.sum(g.T**2) for g in gradients(*a)]),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", NORMS)
def test_norms_of_the_gradient_of_every_sample(name: str, dtype: Any) -> None:
    before, after = rewritten(exploit_outer_products, func.vmap(NORMS[name], in_axes=(None, 0, 0)), *sample(dtype))
    assert largest(before) >= BATCH * INPUTS * HIDDEN
    assert largest(after) <= BATCH * (INPUTS + HIDDEN + 1)
    assert exploit_outer_products(after) is after


OUTSIDE: dict[str, Callable[[Any], Any]] = {
    "sums": lambda g: np.sum(g**2, axis=(1, 2)),
    "norm": lambda g: np.linalg.norm(g, axis=(1, 2)),
    "flat norm": lambda g: np.linalg.norm(g.reshape(g.shape[0], -1), axis=1),
    "einsum": lambda g: np.einsum("bij,bij->b", g, g),
    "einsum of flat": lambda g: np.einsum("bi,bi->b", g.reshape(len(g), -1), g.reshape(len(g), -1)),
    "row norms": lambda g: np.sum(g * g, axis=1),
    "column sums": lambda g: np.sum(g, axis=2),
    "batch sum": lambda g: np.sum(g, axis=0),
    "everything": lambda g: np.sum(g**2),
    "moved": lambda g: np.sum(np.moveaxis(g, 0, -1) ** 2, axis=(0, 1)),
    "clipped": lambda g: np.sum(g / np.maximum(1, np.sqrt(np.sum(g**2, (1, 2))))[:, None, None], axis=0),
    "weighted": lambda g: np.sum(np.arange(g.shape[2]) * g**2, axis=(1, 2)),
    "kept axes": lambda g: np.sum(g**2, axis=(1, 2), keepdims=True),
    "fourth powers": lambda g: np.sum((g**2) ** 2, axis=(1, 2)) + np.mean(g**3, axis=(1, 2)),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_norms_of_mapped_gradients(name: str) -> None:
    p, x, y = sample(np.float64)

    def outside(p: Any, x: Any, y: Any) -> Any:
        g = func.vmap(func.grad(loss), in_axes=(None, 0, 0))(p, x, y)
        return OUTSIDE[name](g["w1"]), OUTSIDE[name](g["w2"])

    before, after = rewritten(exploit_outer_products, outside, p, x, y)
    assert largest(before) >= BATCH * INPUTS * HIDDEN
    assert largest(after) <= BATCH * (INPUTS + HIDDEN + 1)


def test_complex_and_broadcast_products() -> None:
    u = RNG.normal(size=(40, 30)) + 1j * RNG.normal(size=(40, 30))
    v = RNG.normal(size=(40, 20)) - 1j * RNG.normal(size=(40, 20))
    for f in (
        lambda u, v: np.sum((u[:, :, None] * v[:, None, :]) ** 2, axis=(1, 2)),
        lambda u, v: np.einsum("bi,bj->bij", u, v).conj().sum((1, 2)),
        lambda u, v: np.sum(u.real[:, :, None] * v[:, None, :].imag, axis=(0, 2)),
        lambda u, v: np.sum(np.outer(u[:, 0], v[:, 0]) ** 2),
        lambda u, v: np.linalg.norm(np.outer(u.real[:, 0], v.real[:, 1])),
        lambda u, v: np.sum(u.real[:, None, :20] * v.real[None, :, :], axis=2),
    ):
        before, after = rewritten(exploit_outer_products, f, u, v)
        assert largest(after) < largest(before)
        assert largest(after) <= 40 * 40


def test_products_that_are_needed_stay() -> None:
    u, v = RNG.normal(size=(40, 30)), RNG.normal(size=(40, 20))

    def needed(u: Any, v: Any) -> Any:
        g = np.einsum("bi,bj->bij", u, v)
        return np.sum(g**2, axis=(1, 2)), g

    def used(u: Any, v: Any) -> Any:
        g = np.einsum("bi,bj->bij", u, v)
        return np.sum(g**2, axis=(1, 2)), np.sum(np.sin(g)), np.sum(np.einsum("bi,bj->bij", u, v) ** 2)

    def never_summed(u: Any, v: Any) -> Any:
        return np.einsum("bi,bj->bij", u, v) ** 2 * 3

    def with_sums(u: Any, v: Any) -> Any:
        return np.sum((u.T @ v) ** 2)

    for f in (needed, never_summed, with_sums):
        program, after = rewritten(exploit_outer_products, f, u, v)
        assert after is program
    before, after = rewritten(exploit_outer_products, used, u, v)
    assert largest(after) == 40 * 30 * 20
    sizes = [out.size for equation in after.equations for out in equation.outputs]
    assert sizes.count(40 * 30 * 20) < [out.size for e in before.equations for out in e.outputs].count(40 * 30 * 20)


def test_small_products_are_left_alone() -> None:
    program = func.make_program(lambda u, v: np.sum(np.outer(u, v) ** 2))(V, V)
    assert exploit_outer_products(program) is program


POINTS = 40


def kernel(t: Any, x: Any) -> Any:
    distances = np.sum((x[:, None] - x[None]) ** 2, axis=-1)
    return np.exp(t[0] - distances / np.exp(t[1])) + np.exp(t[2]) * np.eye(len(x))


def by_solves(t: Any, x: Any, y: Any) -> Any:
    factor = np.linalg.cholesky(kernel(t, x))
    return 0.5 * y @ func.linalg.cho_solve((factor, True), y) + np.sum(np.log(np.diag(factor)))


def by_one_solve(t: Any, x: Any, y: Any) -> Any:
    factor = np.linalg.cholesky(kernel(t, x))
    white = func.linalg.solve_triangular(factor, y, lower=True)
    return 0.5 * np.sum(white**2) + np.sum(np.log(np.diagonal(factor)))


def by_determinant(t: Any, x: Any, y: Any) -> Any:
    return np.sum(np.log(np.diag(np.linalg.cholesky(kernel(t, x)))))


LIKELIHOODS = [(by_solves, ()), (by_one_solve, ()), (by_one_solve, (3,)), (by_determinant, ())]


@pytest.mark.parametrize(("likelihood", "columns"), LIKELIHOODS)
def test_likelihoods_use_the_closed_form(likelihood: Callable[..., Any], columns: tuple[int, ...]) -> None:
    args = np.zeros(3), RNG.normal(size=(POINTS, 2)), RNG.normal(size=(POINTS, *columns))
    program = func.make_program(func.grad(likelihood))(*args)
    after = optimize(program)
    after.check()
    assert simplify_cholesky_pullbacks(after) is after
    np.testing.assert_allclose(after.run(args)[0], program.run(args)[0], rtol=1e-9)
    assert POINTS**3 in summed_labels(program)
    assert POINTS**3 not in summed_labels(after)


def test_other_uses_of_a_factor_keep_the_product() -> None:
    x = RNG.normal(size=(POINTS, POINTS))
    a = x @ x.T + np.eye(POINTS)
    for f in (
        lambda a: np.sum(np.sin(np.linalg.cholesky(a))),
        lambda a: np.sum(np.linalg.cholesky(a) ** 2) + np.sum(np.log(np.diag(np.linalg.cholesky(a)))),
        lambda a: np.linalg.cholesky(a).T @ a,
    ):
        program = func.make_program(func.grad(lambda a, f=f: np.sum(f(a))))(a)
        ready = exploit_diagonal_sparsity(program)
        after = simplify_cholesky_pullbacks(ready)
        assert after is ready
        np.testing.assert_allclose(optimize(program).run([a])[0], program.run([a])[0], rtol=1e-8, atol=1e-8)


def test_structure_of_constants() -> None:
    for array in (
        np.eye(6)[:, 1:4],
        np.eye(6).reshape(6, 2, 3)[:, :, 1:],
        np.moveaxis(np.eye(6).reshape(6, 2, 3), 0, 1),
        np.eye(6)[::2],
        np.eye(6)[::-1],
        np.eye(12).reshape(12, 3, 4)[:, ::2, ::-1],
        np.diag(np.arange(5.0)) + np.diag(np.ones(4), 1) * (1 + 2j),
        np.eye(4, 9, 3),
    ):
        terms = terms_of(array)
        assert terms is not None
        built = np.zeros_like(array)
        for values, sizes, axes in terms:
            for label in np.ndindex(*sizes):
                place = [axis.offset + int(np.dot(axis.steps, label)) for axis in axes]
                built[tuple(place)] += np.broadcast_to(values, sizes)[label]
        np.testing.assert_array_equal(built, array)
    for array in (np.ones((3, 3)), np.zeros((3, 3)), RNG.normal(size=(9, 9)), np.eye(3, dtype=int), np.eye(2)[0]):
        assert terms_of(array) is None
    scattered = np.zeros((9, 9))
    scattered[[0, 1, 4, 8, 5], [3, 7, 1, 1, 7]] = 1
    assert terms_of(scattered) is None


@given(
    offset=st.integers(0, 9),
    c=st.integers(-4, 4).filter(bool),
    size=st.integers(2, 8),
    start=st.integers(0, 20),
    step=st.integers(-4, 4).filter(bool),
    count=st.integers(1, 8),
)
def test_slices_of_a_term(offset: int, c: int, size: int, start: int, step: int, count: int) -> None:
    expected = {}
    for label in range(size):
        for m in range(count):
            if offset + c * label == start + step * m:
                expected[label] = m
    cut = cut_axis(Axis(offset, (c,)), (size,), start, step, count)
    if cut is None:
        assert not expected
        return
    labels = [cut.start + cut.step * k for k in range(cut.length)]
    assert expected == {label: cut.axis.offset + cut.axis.steps[0] * k for k, label in enumerate(labels)}


def test_positions_that_may_coincide_are_not_injective() -> None:
    assert is_injective((3, 4), (Axis(0, (4, 1)),))
    assert is_injective((3, 4), (Axis(0, (1, 1)), Axis(0, (0, 1))))
    assert not is_injective((3, 4), (Axis(0, (3, 1)),))
    assert not is_injective((3, 4), (Axis(0, (1, 0)),))
    with pytest.raises(GiveUp):
        cut_axis(Axis(0, (4, 1)), (3, 4), 0, 1, 5)


def test_outer_products_of_outer_products_read_arrays() -> None:
    def nested(x: Any) -> Any:
        b = np.einsum("a,b->ab", x, x)
        c = np.einsum("ab,ac->abc", b, b)
        return np.einsum("abc,abc->c", c, c)

    def of_a_sum(x: Any) -> Any:
        return np.sum(np.multiply.outer(np.sum(np.multiply.outer(x, x) ** 2, axis=1), x) ** 2)

    x = RNG.normal(size=36)
    for function in (nested, of_a_sum):
        rewritten(exploit_outer_products, function, x)
        np.testing.assert_allclose(func.jit(function)(x), function(x))
