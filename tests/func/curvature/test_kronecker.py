"""Kronecker factors equal the exact blocks where they are exact, and their definition elsewhere; kernels are J Jᵀ."""

from __future__ import annotations

import copy
import itertools
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func
from func.errors import ArgumentError, UnsupportedFunctionError

RNG = np.random.default_rng(0)
PARAMS = {"w": RNG.normal(size=(3, 4)), "b": RNG.normal(size=4), "v": RNG.normal(size=(4, 2))}
INPUTS, TARGETS = RNG.normal(size=(5, 3)), RNG.normal(size=(5, 2))
LABELS = np.array([0, 1, 1, 0, 1])
SEQUENCES = RNG.normal(size=(5, 6, 3))
SQUARE = RNG.normal(size=(3, 3))
TOKENS = RNG.integers(0, 7, (5, 6))


def network(params: Any, x: Any) -> Any:
    return np.tanh(x @ params["w"] + params["b"]) @ params["v"]


def squares(params: Any, x: Any, y: Any) -> Any:
    return np.sum((network(params, x) - y) ** 2)


def cross_entropy(params: Any, x: Any, label: Any) -> Any:
    logits = network(params, x)
    return func.special.logsumexp(logits) - logits[label]


def blocks_of(matrix: Any, params: Any) -> list[Any]:
    ends = np.cumsum([0, *[leaf.size for leaf in func.tree.leaves(params)]])
    return [matrix[a:b, a:b] for a, b in itertools.pairwise(ends)]


def empirical(loss: Any, params: Any, *batch: Any) -> Any:
    return func.linear_operator("empirical_fisher", loss, params, *batch).toarray()


LIKELIHOODS: dict[str, Any] = {
    "gaussian": "gaussian",
    "categorical": "categorical",
    "bernoulli": "bernoulli",
    "poisson": "poisson",
    "other": lambda o: np.sum(o**4) + o[0] ** 2 * o[1] ** 2,
}


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_one_sample_has_exact_blocks(name: str) -> None:
    likelihood = LIKELIHOODS[name]
    factors = func.kronecker_factors(network, likelihood=likelihood)(PARAMS, INPUTS[:1])
    exact = func.linear_operator("fisher", lambda p: network(p, INPUTS[0]), PARAMS, likelihood=likelihood).toarray()
    for block, expected in zip(blocks_of(factors.toarray(), PARAMS), blocks_of(exact, PARAMS), strict=True):
        np.testing.assert_allclose(block, expected, atol=1e-12)


@pytest.mark.parametrize("loss", [squares, cross_entropy], ids=lambda f: f.__name__)
def test_one_sample_of_the_empirical_matrix(loss: Any) -> None:
    targets = TARGETS if loss is squares else LABELS
    factors = func.kronecker_factors(loss)(PARAMS, INPUTS[:1], targets[:1])
    assert [block is not None and block.is_exact for block in factors.blocks] == [True, False, False]
    exact = empirical(loss, PARAMS, INPUTS[:1], targets[:1])
    for block, expected in zip(blocks_of(factors.toarray(), PARAMS), blocks_of(exact, PARAMS), strict=True):
        np.testing.assert_allclose(block, expected, atol=1e-12)


def test_a_linear_model_is_exact() -> None:
    weights = {"w": PARAMS["w"]}
    factors = func.kronecker_factors(lambda p, x: x @ p["w"], likelihood="gaussian")(weights, INPUTS)
    exact = func.linear_operator("fisher", lambda p: INPUTS @ p["w"], weights, likelihood="gaussian").toarray()
    np.testing.assert_allclose(factors.toarray(), exact, atol=1e-12)
    damped = exact + 0.3 * np.eye(12)
    right = np.arange(24.0).reshape(12, 2)
    np.testing.assert_allclose(factors.log_determinant(0.3), np.linalg.slogdet(damped)[1])
    np.testing.assert_allclose(factors.solve(right, 0.3), np.linalg.solve(damped, right))
    np.testing.assert_allclose(factors.solve(right[:, 0], 0.3), np.linalg.solve(damped, right[:, 0]))
    np.testing.assert_allclose(factors @ right, exact @ right, atol=1e-12)
    np.testing.assert_allclose(factors.T @ right[:, 1], exact @ right[:, 1], atol=1e-12)
    np.testing.assert_allclose(np.sort(factors.eigenvalues()), np.linalg.eigvalsh(exact), atol=1e-12)
    np.testing.assert_allclose(factors.scaled(2.0).toarray(), 2 * exact, atol=1e-12)
    np.testing.assert_allclose(
        func.grad(lambda v: v @ factors.solve(v, 0.3))(right[:, 1]), factors.solve(2 * right[:, 1], 0.3)
    )
    drawn = factors.sample(func.random.key(0), 0.3, 20_000)
    np.testing.assert_allclose(drawn @ drawn.T / 20_000, np.linalg.inv(damped), atol=0.1)


def token_sum(p: Any, x: Any) -> Any:
    return np.sum(np.tanh(np.tanh(x @ p["w"] + p["b"])))


def test_positions_count_as_samples() -> None:
    params = {"b": PARAMS["b"], "w": PARAMS["w"]}
    factors = func.kronecker_factors(token_sum)(params, SEQUENCES)

    def shifted(shift: Any, x: Any) -> Any:
        return np.sum(np.tanh(np.tanh(x @ params["w"] + params["b"] + shift)))

    deltas = np.array([func.grad(shifted)(np.zeros((6, 4)), x) for x in SEQUENCES])
    block = factors.blocks[1]
    assert block is not None and block.weight == 30
    np.testing.assert_allclose(block.left[0], np.einsum("bti,btj->ij", SEQUENCES, SEQUENCES) / 30)
    np.testing.assert_allclose(block.right[0], np.einsum("bti,btj->ij", deltas, deltas) / 30)
    np.testing.assert_allclose(
        blocks_of(factors.toarray(), params)[0], blocks_of(empirical(token_sum, params, SEQUENCES), params)[0]
    )


def recurrent(p: Any, x: Any) -> Any:
    return np.sum(func.scan(lambda h, a: (np.tanh(h @ p["u"] + a @ p["w"]), None), np.zeros(4), x)[0])


FORMS: dict[str, tuple[Callable[..., Any], Any, Any, list[str]]] = {
    "recurrent": (
        recurrent,
        {"u": RNG.normal(size=(4, 4)), "w": PARAMS["w"]},
        SEQUENCES,
        ["A 4x4, G 4x4", "A 3x3, G 4x4"],
    ),
    "embedding": (lambda p, i: np.sum(np.tanh(p[i])), RNG.normal(size=(7, 4)), TOKENS, ["A 7x7, G 4x4"]),
    "tied": (lambda p, x: np.sum(np.tanh(np.tanh(x @ p) @ p)), SQUARE, INPUTS, ["A 3x3, G 3x3"]),
    "groups": (
        lambda p, x: np.sum(np.tanh(np.einsum("gi,gio->go", x, p))),
        RNG.normal(size=(6, 3, 2)),
        SEQUENCES,
        ["6 groups of A 3x3, G 2x2"],
    ),
    "heads": (
        lambda p, x: np.sum(np.tanh(np.einsum("ti,iho->tho", x, p))),
        RNG.normal(size=(3, 2, 5)),
        SEQUENCES,
        ["A 3x3, G 10x10"],
    ),
    "transposed": (lambda p, x: np.sum(np.tanh(p @ x) ** 2), RNG.normal(size=(4, 3)), INPUTS, ["A 4x4, G 3x3"]),
    "regularised": (lambda p, x: np.sum(np.tanh(x @ p)) + np.sum(p**2), PARAMS["w"], INPUTS, ["exact 12x12"]),
    "decided": (
        lambda p, x: np.sum(np.tanh(x @ p)) if p[0, 0] > 0 else np.sum(np.tanh(p)),
        abs(PARAMS["w"]),
        INPUTS,
        ["exact 12x12"],
    ),
    "elementwise": (lambda p, x: np.sum(np.tanh(p * x)), np.ones((3, 40)), RNG.normal(size=(2, 3, 40)), ["exact"]),
    "large": (lambda p, x: np.sum(np.tanh(p * x)), np.ones((30, 40)), np.ones((2, 30, 40)), ["no factors"]),
}


@pytest.mark.parametrize("name", FORMS)
def test_forms_are_found_and_reported(name: str) -> None:
    loss, params, batch, texts = FORMS[name]
    factors = func.kronecker_factors(loss)(params, batch)
    lines = repr(factors).splitlines()[1:]
    assert all(text in line for text, line in zip(texts, lines, strict=True)), lines
    if name == "large":
        assert factors.unstructured == ["params"]
        with pytest.raises(ArgumentError, match="params of <lambda> do not enter by matrix"):
            factors.solve(np.ones(1200), 1.0)
        return
    traces = [np.trace(block) for block in blocks_of(factors.toarray(), params)]
    if "exact" in texts[0] or name in ("groups", "transposed"):
        exact = empirical(loss, params, batch[:1])
        if name == "groups":  # a block for each
            exact *= np.kron(np.eye(6), np.ones((6, 6)))
        one = func.kronecker_factors(loss)(params, batch[:1])
        np.testing.assert_allclose(one.toarray(), exact, atol=1e-12)
    for block, trace in zip(factors.blocks, traces, strict=True):
        assert block is not None
        sides = np.einsum("gpp->g", block.left) @ np.einsum("gqq->g", block.right)
        np.testing.assert_allclose(trace, sides * block.weight)


def test_nan_behind_a_choice_changes_the_form_of_one_call_only() -> None:
    def loss(p: Any, x: Any) -> Any:
        return np.sum(np.where(x @ p > 0, np.sqrt(np.abs(x @ p)), 0))

    factors_of = func.kronecker_factors(loss)
    at_zero = np.array([[0.0, 1.0], [1.0, 1.0]])
    for params in (np.array([[1.0, 2.0], [3.0, 1.0]]), at_zero, np.array([[2.0, 2.0], [3.0, 1.0]])):
        x = np.array([[1.0, 0.0]])
        gradient = func.grad(loss)(params, x[0]).ravel()
        np.testing.assert_allclose(factors_of(params, x).toarray(), np.outer(gradient, gradient), atol=1e-14)


def test_parameters_keywords_and_types() -> None:
    params: dict[str, Any] = {"w": PARAMS["w"].astype(np.float32), "n": 2}

    def loss(p: Any, x: Any, *, scale: Any) -> Any:
        return scale * np.sum(np.tanh(x @ p["w"])) ** p["n"]

    factors = func.kronecker_factors(loss, in_dims=(None, 1))(params, INPUTS.T, scale=np.ones(5))
    assert factors.dtype == np.float32 and factors.shape == (12, 12) and factors.samples == 5
    assert factors.unravel(np.ones(12))["n"] is None
    np.testing.assert_array_equal(factors.ravel(params), params["w"].ravel())


@pytest.mark.parametrize("shape", [(), (2,), (2, 3)], ids=str)
def test_ntk(shape: tuple[int, ...]) -> None:
    weights = {"w": RNG.normal(size=(3, 4)), "b": RNG.normal(size=4), "v": RNG.normal(size=(4, *shape))}

    def model(p: Any, x: Any) -> Any:
        return np.tensordot(np.tanh(x @ p["w"] + p["b"]), p["v"], 1)

    kernel = func.ntk(model)(weights, INPUTS)
    assert kernel.shape == (5, *shape, 5, *shape)
    operator = func.linear_operator("ntk", lambda p: func.vmap(model, in_dims=(None, 0))(p, INPUTS), weights)
    np.testing.assert_allclose(kernel.reshape(operator.shape), operator.toarray(), atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.longdouble])
def test_precisions_that_lapack_does_not_have(dtype: Any) -> None:
    weights = np.linspace(-1, 1, 6).reshape(3, 2)
    rows = np.linspace(0.5, 1, 12).reshape(4, 3)
    make = func.kronecker_factors(lambda w, x: np.tanh(x @ w), likelihood="gaussian")
    exact, factors = make(weights, rows), make(weights.astype(dtype), rows.astype(dtype))
    np.testing.assert_allclose(factors.toarray(), exact.toarray(), rtol=1e-2, atol=1e-2)
    np.testing.assert_allclose(factors.log_determinant(1.0), exact.log_determinant(1.0), rtol=1e-2)
    assert factors.solve(np.ones(6), 1.0).dtype == factors.sample(func.random.key(0), 1.0, 2).dtype == dtype


def test_pickles_and_static_leaves() -> None:
    factors = func.kronecker_factors(squares)(PARAMS, INPUTS, TARGETS)
    for other in (pickle.loads(pickle.dumps(factors)), copy.copy(factors)):
        np.testing.assert_array_equal(other.toarray(), factors.toarray())
        assert repr(other) == repr(factors)
    signs = func.kronecker_factors(lambda p, x, sign: np.sum(x * p) * (1 + np.copysign(1, sign)), (None, 0, None))
    assert [signs(np.ones(1), np.ones(3), sign).toarray()[0, 0] for sign in (0.0, -0.0)] == [12, 0]
    marked = func.kronecker_factors(lambda p, x, marks: np.sum(x * p) * len(marks), (None, 0, None))
    assert marked(np.ones(1), np.ones(3), {"a", "b"}).toarray() == 12  # a set has no hash


def test_ntk_under_transforms() -> None:
    def trace(scale: Any) -> Any:
        return np.trace(func.ntk(lambda p, x: np.sum(np.tanh(x @ p)))(scale * PARAMS["w"], INPUTS))

    slope = (trace(1.0 + 1e-6) - trace(1.0 - 1e-6)) / 2e-6
    np.testing.assert_allclose(func.grad(trace)(1.0), slope, rtol=1e-6)
    np.testing.assert_allclose(func.jit(trace)(1.0), trace(1.0))


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no batch": (
        lambda: func.kronecker_factors(squares)(PARAMS),
        ArgumentError,
        "was called with the parameters alone",
    ),
    "nothing": (lambda: func.kronecker_factors(squares)(), ArgumentError, "call it with parameters and a batch"),
    "no parameters": (lambda: func.kronecker_factors(squares)({}, INPUTS), ArgumentError, "hold no arrays"),
    "no samples": (lambda: func.kronecker_factors(token_sum)(PARAMS, SEQUENCES[:0]), ArgumentError, "has no samples"),
    "likelihood": (lambda: func.kronecker_factors(network, likelihood="normal"), ArgumentError, "must be one of"),
    "integers": (
        lambda: func.kronecker_factors(lambda p, x: 1, likelihood="gaussian")(PARAMS, INPUTS),
        TypeError,
        "needs real floating point outputs",
    ),
    "one axis": (lambda: func.ntk(network, in_dims=0)(PARAMS, INPUTS), ArgumentError, "func.ntk: in_dims must be"),
    "one axis of factors": (
        lambda: func.kronecker_factors(network, 0, likelihood="gaussian")(PARAMS, INPUTS),
        ArgumentError,
        "func.kronecker_factors: in_dims must be",
    ),
    "one logit": (
        lambda: func.kronecker_factors(lambda p, x: np.sum(x @ p["w"]), likelihood="categorical")(PARAMS, INPUTS),
        ArgumentError,
        'write likelihood="bernoulli"',
    ),
    "not finite": (
        lambda: func.kronecker_factors(token_sum)(PARAMS, SEQUENCES * np.nan).log_determinant(1.0),
        ArgumentError,
        r"the factors of params\['b'\] of token_sum are NaN or infinite",
    ),
    "array damping": (
        lambda: func.kronecker_factors(squares)(PARAMS, INPUTS, TARGETS).log_determinant(np.ones(24)),  # type: ignore[arg-type]
        ArgumentError,
        "damping must be a real number",
    ),
    "mapped parameters": (
        lambda: func.ntk(network, in_dims=(0, 0))(PARAMS, INPUTS),
        ArgumentError,
        "begins with None",
    ),
    "two outputs": (
        lambda: func.ntk(lambda p, x: (x @ p, x))(PARAMS["w"], INPUTS),
        ArgumentError,
        "must return one array, not 2",
    ),
    "traced": (
        lambda: func.grad(lambda p: func.kronecker_factors(token_sum)(p, SEQUENCES).log_determinant(1.0))(PARAMS),
        UnsupportedFunctionError,
        "takes no traced values",
    ),
    "traced outside": (
        lambda: func.grad(lambda s: func.kronecker_factors(lambda p, x: s * token_sum(p, x))(PARAMS, SEQUENCES))(1.0),
        UnsupportedFunctionError,
        "also not from outside",
    ),
    "damping": (
        lambda: func.kronecker_factors(squares)(PARAMS, INPUTS, TARGETS).solve(np.ones(24), 0.0),
        ArgumentError,
        "damping must be positive",
    ),
    "length": (
        lambda: func.kronecker_factors(squares)(PARAMS, INPUTS, TARGETS).solve(np.ones(3), 1.0),
        ArgumentError,
        r"take real vectors \(24,\)",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_calls_are_named(name: str) -> None:
    call, error, words = REFUSED[name]
    with pytest.raises(error, match=words):
        call()
