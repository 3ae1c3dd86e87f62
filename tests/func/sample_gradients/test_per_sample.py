"""Statistics of per-sample gradients, against gradients that are computed sample by sample."""

import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import func
from func import tree
from func.sample_gradients import per_sample as module
from tests.support.device_double import to_device

RNG = np.random.default_rng(0)


class Model(NamedTuple):
    """A loss of one sample, its parameters and a batch."""

    loss: Callable[..., Any]
    params: Any
    batch: tuple[Any, ...]


def normal(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).normal(size=shape)


def dense(w: Any, x: Any, y: Any) -> Any:
    return np.sum((np.tanh(x @ w) - y) ** 2)


def deep(params: Any, x: Any, label: Any) -> Any:
    for layer in params:
        x = np.tanh(x @ layer["w"] + layer["b"])
    return np.log(np.sum(np.exp(x))) - x[label]


def decayed(params: Any, x: Any) -> Any:
    return np.sum(np.tanh(x @ params["w"]) ** 2) + 0.3 * np.sum(params["w"] ** 2) + np.sum(params["unused"] ** 2)


def convolution(params: Any, image: Any) -> Any:
    windows = sliding_window_view(np.pad(image, 1), (3, 3))
    x = np.maximum(np.tensordot(windows, params["first"], 2) + params["bias"], 0)
    windows = sliding_window_view(x, (2, 2), axis=(0, 1))
    x = np.tanh(np.einsum("hwcij,cijo->hwo", windows, params["second"]))
    return np.sum((x.reshape(-1, 4) @ params["last"]) ** 2)


def unfolded(params: Any, image: Any) -> Any:
    """A kernel (h, w, out) that is used as a matrix."""
    windows = sliding_window_view(image, (3, 3)).reshape(-1, 9)
    return np.sum(np.tanh(windows @ params["kernel"].reshape(9, 4)) ** 2)


def attention(params: Any, x: Any) -> Any:
    q, k, v = (x @ params[name] for name in "qkv")
    scores = q @ k.T
    weights = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    return np.sum((weights / np.sum(weights, axis=-1, keepdims=True) @ v + params["position"]) ** 3)


def embedding(params: Any, tokens: Any) -> Any:
    return np.sum(np.tanh(params["table"][tokens] @ params["w"]) ** 2)


def tied(params: Any, tokens: Any) -> Any:
    """One table embeds the tokens and scores the next ones."""
    x = np.tanh(params["table"][tokens[:-1]])
    logits = x @ params["table"].T
    return -np.sum(
        (logits - np.log(np.sum(np.exp(logits), axis=-1, keepdims=True)))[np.arange(len(tokens) - 1), tokens[1:]]
    )


def shared(params: Any, x: Any) -> Any:
    """One matrix, used three times, once transposed."""
    return np.sum(np.tanh(np.tanh(np.tanh(x @ params) @ params) @ params.T) ** 2)


def recurrent(params: Any, xs: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        h = np.tanh(h @ params["w"] + x @ params["u"] + params["b"])
        return h, None

    return np.sum(func.scan(step, np.zeros(4), xs)[0] ** 2)


def unrolled(params: Any, xs: Any) -> Any:
    h = np.zeros(4)
    for x in xs:
        h = np.tanh(h @ params["w"] + x @ params["u"])
    return np.sum(h**2) / 3 - 0.1 * np.sum(params["w"] ** 2)


def flat(theta: Any, x: Any) -> Any:
    return np.sum(np.tanh(x @ theta[:15].reshape(5, 3)) @ theta[15:])


def products(w: Any, x: Any) -> Any:
    return np.sum(np.cumprod(1 + 0.1 * np.outer(x, w), axis=0)) + np.prod(w)


def solved(a: Any, x: Any) -> Any:
    return np.sum(np.linalg.solve(a, x) ** 2)


def grouped(params: Any, x: Any) -> Any:
    """A matrix for each channel."""
    return np.sum(np.tanh(np.einsum("tgp,gpq->tgq", x, params)) ** 2)


def branching(w: Any, x: Any) -> Any:
    return np.sum(np.sin(x @ w)) if np.sum(x) > 0 else np.sum((x @ w) ** 2)


def in_place(w: Any, x: Any) -> Any:
    x *= 2
    out = x @ w
    out[0] = 0
    return np.sum(np.tanh(out) ** 2)


def complex_inside(w: Any, x: Any) -> Any:
    return np.sum(np.abs(np.fft.fft(x @ w)) ** 2) + np.real((1 + 2j) * np.sum(w))


def alone(w: Any, x: Any) -> Any:
    return np.sum(w**2) + 0 * np.sum(x)


def scalar(w: Any, x: Any) -> Any:
    return np.sin(w * x)


def scaled(w: Any, x: Any, factor: Any) -> Any:
    return np.sum(np.tanh(x @ (-w.T.reshape(3, 5).T / 2)) ** 2) * factor


MODELS = {
    "dense": Model(dense, normal(5, 3), (normal(6, 5), normal(6, 3))),
    "deep": Model(
        deep,
        [{"w": normal(5, 4), "b": normal(4)}, {"w": normal(4, 4), "b": normal(4)}, {"w": normal(4, 3), "b": normal(3)}],
        (normal(6, 5), RNG.integers(3, size=6)),
    ),
    "decay": Model(decayed, {"w": normal(5, 3), "unused": normal(2)}, (normal(6, 5),)),
    "convolution": Model(
        convolution,
        {"first": normal(3, 3, 2), "bias": normal(2), "second": normal(2, 2, 2, 4), "last": normal(4, 3)},
        (normal(5, 5, 5),),
    ),
    "unfolded": Model(unfolded, {"kernel": normal(3, 3, 4)}, (normal(6, 4, 4),)),
    "attention": Model(attention, {**{k: normal(5, 4) for k in "qkv"}, "position": normal(6, 4)}, (normal(3, 6, 5),)),
    "embedding": Model(embedding, {"table": normal(9, 5), "w": normal(5, 3)}, (RNG.integers(-9, 9, size=(4, 7)),)),
    "tied": Model(tied, {"table": normal(6, 4) / 2}, (RNG.integers(6, size=(4, 5)),)),
    "shared": Model(shared, normal(4, 4), (normal(6, 4),)),
    "scan": Model(recurrent, {"w": normal(4, 4), "u": normal(5, 4), "b": normal(4)}, (normal(4, 3, 5),)),
    "loop": Model(unrolled, {"w": normal(4, 4), "u": normal(5, 4)}, (normal(4, 3, 5),)),
    "flat": Model(flat, normal(18), (normal(4, 5),)),
    "cumprod": Model(products, normal(4), (normal(5, 3),)),
    "solve": Model(solved, normal(4, 4), (normal(5, 4),)),
    "groups": Model(grouped, normal(3, 4, 2), (normal(5, 2, 3, 4),)),
    "branches": Model(branching, normal(4, 3), (normal(6, 4),)),
    "in place": Model(in_place, normal(4, 3), (normal(6, 4),)),
    "complex": Model(complex_inside, normal(4, 3), (normal(6, 4),)),
    "regularizer": Model(alone, normal(4), (normal(6, 2),)),
    "scalar": Model(scalar, np.float64(0.3), (normal(5),)),
    "transposed": Model(scaled, normal(5, 3), (normal(6, 5), normal(6))),
}


def gradients_of(model: Model) -> list[list[Any]]:
    """The leaves of the gradient of each sample, by a loop."""
    count = len(tree.leaves(model.batch)[0])
    rows = [tree.map(lambda x, i=i: np.array(x[i]), model.batch) for i in range(count)]
    return [[np.asarray(x) for x in tree.leaves(func.grad(model.loss)(model.params, *row))] for row in rows]


def expected(model: Model) -> dict[str, Any]:
    """The statistics of the gradients."""
    gradients = gradients_of(model)
    count = len(gradients)
    rows = np.array([np.concatenate([x.ravel() for x in sample]) for sample in gradients])
    norms = np.linalg.norm(rows, axis=1)
    limit = np.median(norms)
    scales = np.minimum(1, limit / norms)
    leaves = list(zip(*gradients, strict=True))
    mean = np.mean(rows, axis=0)
    trace = np.sum((rows - mean) ** 2) / (count - 1)
    return {
        "norms": norms,
        "limit": limit,
        "clipped": [sum(s * x for s, x in zip(scales, leaf, strict=True)) for leaf in leaves],
        "gram": rows @ rows.T,
        "variance": [np.var(leaf, axis=0, ddof=1) for leaf in leaves],
        "noise": trace / (np.sum(mean**2) - trace / count),
    }


def check(model: Model, run: Callable[[Any], Any], tolerance: float = 1e-9) -> None:
    wanted = expected(model)
    stats = func.per_sample(model.loss)
    args = model.params, *model.batch
    close = {"rtol": tolerance, "atol": tolerance * np.max(wanted["norms"])}
    np.testing.assert_allclose(run(stats.norms)(*args), wanted["norms"], **close)
    clipped = run(stats.clipped_sum(wanted["limit"]))(*args)
    assert tree.structure(clipped) == tree.structure(model.params)
    for got, want in zip(tree.leaves(clipped), wanted["clipped"], strict=True):
        np.testing.assert_allclose(got, want, **close)
    close["atol"] *= np.max(wanted["norms"])
    np.testing.assert_allclose(run(stats.gram)(*args), wanted["gram"], **close)
    variance = run(stats.variance)(*args)
    assert tree.structure(variance) == tree.structure(model.params)
    for got, want in zip(tree.leaves(variance), wanted["variance"], strict=True):
        np.testing.assert_allclose(got, want, **close)
    np.testing.assert_allclose(
        run(stats.noise_scale)(*args), wanted["noise"], rtol=1e3 * tolerance, atol=1e3 * tolerance
    )


@pytest.mark.parametrize("name", MODELS)
def test_statistics_are_those_of_the_gradients_of_each_sample(name: str) -> None:
    check(MODELS[name], lambda statistic: statistic)


@pytest.mark.parametrize("name", [name for name in MODELS if name != "branches"])
def test_statistics_under_jit(name: str) -> None:
    check(MODELS[name], func.jit)


@pytest.mark.parametrize("name", MODELS)
def test_statistics_by_chunks_of_samples(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = MODELS[name]
    size = sum(np.asarray(x).nbytes for x in tree.leaves(model.params))
    monkeypatch.setattr(module, "CHUNK_BYTES", 2 * size)
    check(model, lambda statistic: statistic)


@pytest.mark.parametrize("name", ["deep", "cumprod", "flat", "decay"])
def test_statistics_by_chunks_under_jit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = MODELS[name]
    size = sum(np.asarray(x).nbytes for x in tree.leaves(model.params))
    monkeypatch.setattr(module, "CHUNK_BYTES", 2 * size)
    check(model, func.jit)


@pytest.mark.parametrize("name", MODELS)
def test_statistics_by_factors_wherever_there_are_some(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def has_none(x: Any, others: int | None = None) -> bool:
        return x.dense is not None or (bool(x.terms) and x.factors() is None)

    monkeypatch.setattr(module, "_norms_need_array", has_none)
    monkeypatch.setattr(module, "_pairs_need_array", has_none)
    check(MODELS[name], lambda statistic: statistic, 1e-8)


STRUCTURE = {
    "dense": [(1, 1, 5, 3)],
    "decay": [None, (1, 1, 5, 3)],
    "convolution": [None, (1, 25, 9, 2), (1, 16, 4, 3), (1, 16, 8, 4)],
    "unfolded": [(1, 4, 9, 4)],
    "attention": [(1, 6, 5, 4), None, (1, 6, 5, 4), (1, 6, 5, 4)],
    "embedding": [(1, 7, 9, 5), (1, 7, 5, 3)],
    "tied": [(1, 4, 6, 4)],
    "shared": [(1, 3, 4, 4)],
    "scan": [None, (1, 3, 5, 4), (1, 3, 4, 4)],
    "loop": [(1, 3, 5, 4), (1, 3, 4, 4)],
    "solve": [(1, 1, 4, 4)],
    "groups": [(3, 2, 4, 2)],
    "transposed": [(1, 1, 5, 3)],
    "cumprod": [None],
}
"""Groups, positions and sizes of the factors of each parameter."""


@pytest.mark.parametrize("name", STRUCTURE)
@pytest.mark.parametrize("wrap", [lambda f: f, func.jit], ids=["plain", "jitted"])
def test_structure_is_found(name: str, wrap: Callable[[Any], Any]) -> None:
    model = MODELS[name]
    batch = module.SampleBatch(func.per_sample(wrap(model.loss)), model.params, model.batch, {})
    found = [x.factors() if x.dense is None else None for x in batch.of_rows(batch.rows)]
    assert [factors[0].counts if factors else None for factors in found] == STRUCTURE[name]


def test_gradients_are_no_array_under_jit() -> None:
    params, batch = normal(40, 30), (normal(50, 40), normal(50, 30))
    stats = func.per_sample(dense)
    for statistic in (stats.norms, stats.clipped_sum(1.0), stats.gram, stats.variance, stats.noise_scale):
        equations = func.jit(statistic).trace(params, *batch).equations
        assert max(out.size for equation in equations for out in equation.outputs) <= 50 * 50


def clipped_by_arrays(params: Any, limit: Any) -> Any:
    gradients = func.vmap(func.grad(dense), (None, 0, 0))(params, *MODELS["dense"].batch)
    norms = np.sqrt(np.sum(gradients**2, axis=(1, 2)))
    return np.einsum("b,bij->ij", np.minimum(1, limit / norms), gradients)


def clipped(params: Any, limit: Any) -> Any:
    return func.per_sample(dense).clipped_sum(limit)(params, *MODELS["dense"].batch)


TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "grad": lambda f: func.grad(lambda w: np.sum(np.sin(f(w, 20.0)))),
    "grad by the limit": lambda f: lambda w: func.grad(lambda limit: np.sum(np.sin(f(w, limit))))(20.0),
    "jit of grad": lambda f: func.jit(func.grad(lambda w: np.sum(np.sin(f(w, 20.0))))),
    "grad of jit": lambda f: func.grad(func.jit(lambda w: np.sum(np.sin(f(w, 20.0))))),
    "jvp": lambda f: lambda w: func.jvp(lambda w: f(w, 20.0), (w,), (w,)),
    "hvp": lambda f: lambda w: func.hvp(lambda w: np.sum(np.sin(f(w, 20.0))), (w,), (w,)),
    "vmap": lambda f: lambda w: func.vmap(lambda c: f(c * w, 20.0))(np.array([0.5, 2.0])),
    "checkpoint": lambda f: func.grad(lambda w: np.sum(np.sin(func.checkpoint(f)(w, 20.0)))),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_of_a_clipped_sum(name: str) -> None:
    params = MODELS["dense"].params
    got, wanted = [TRANSFORMS[name](f)(params) for f in (clipped, clipped_by_arrays)]
    for a, b in zip(tree.leaves(got), tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def test_loss_closes_over_a_traced_value() -> None:
    model = MODELS["dense"]

    def total(c: Any) -> Any:
        scaled_loss = func.per_sample(lambda w, x, y: c * dense(w, x, y))
        return np.sum(scaled_loss.norms(model.params, *model.batch))

    norms = func.per_sample(dense).norms(model.params, *model.batch)
    np.testing.assert_allclose(func.grad(total)(2.0), np.sum(norms))
    np.testing.assert_allclose(func.jit(func.grad(total))(2.0), np.sum(norms))


def linear(w: Any, x: Any) -> Any:
    return w @ x


def test_zero_gradients_count_as_they_are() -> None:
    w, x = np.ones(2), np.array([[3.0, 4.0], [0.0, 0.0]])
    stats = func.per_sample(linear)
    np.testing.assert_array_equal(stats.clipped_sum(0.0)(w, x), [0, 0])
    np.testing.assert_allclose(stats.clipped_sum(1.0)(w, x), [0.6, 0.8])
    np.testing.assert_array_equal(stats.clipped_sum(np.inf)(w, x), [3, 4])
    np.testing.assert_allclose(func.jacrev(stats.norms, argnums=1)(w, x)[1], np.zeros((2, 2)))


@pytest.mark.parametrize("run", [lambda f: f, func.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_gradients_that_are_not_finite_make_the_sum_nan(bad: float, run: Callable[[Any], Any]) -> None:
    model = MODELS["deep"]
    x, labels = model.batch
    x = x.copy()
    x[2, 0] = np.nan
    stats = func.per_sample(model.loss)
    norms = run(stats.norms)(model.params, x, labels)
    assert np.array_equal(np.isnan(norms), np.arange(6) == 2)
    assert all(np.isnan(leaf).all() for leaf in tree.leaves(run(stats.clipped_sum(1.0))(model.params, x, labels)))
    total = run(func.per_sample(lambda p, x: np.sum(p["a"] * x) + p["b"]).clipped_sum(1.0))
    params = {"a": np.ones(2), "b": np.float64(1)}
    assert all(np.isnan(leaf).all() for leaf in tree.leaves(total(params, np.array([[1, 2], [bad, 0]]))))


def test_squares_that_overflow_make_the_sum_nan() -> None:
    x = np.array([[1e30, 0], [1, 1]], np.float32)
    with np.errstate(over="ignore"):
        assert np.isnan(func.per_sample(linear).clipped_sum(1.0)(np.ones(2, np.float32), x)).all()


def test_unselected_branches_give_zero_gradients() -> None:
    def safe_log(w: Any, x: Any) -> Any:
        return np.sum(np.where(x > 0, np.log(x * w), w))

    w, x = np.array([1.0, 2.0]), np.array([[1.0, 0.0], [2.0, 3.0]])
    with np.errstate(all="ignore"):
        rows = np.array([func.grad(safe_log)(w, row) for row in x])
        assert np.isfinite(rows).all()
        for run in (lambda f: f, func.jit):
            np.testing.assert_allclose(run(func.per_sample(safe_log).norms)(w, x), np.linalg.norm(rows, axis=1))


def test_dtypes() -> None:
    params = {"w": np.ones((3, 2), np.float32), "b": np.ones(2)}
    stats = func.per_sample(lambda p, x: np.sum(np.tanh(x @ p["w"] + p["b"])))
    x = normal(4, 3).astype(np.float32)
    assert stats.norms(params, x).dtype == np.float64
    assert {name: value.dtype for name, value in stats.clipped_sum(1.0)(params, x).items()} == {
        "w": np.float32,
        "b": np.float64,
    }
    small = {name: value.astype(np.float32) for name, value in params.items()}
    for statistic in (stats.norms, stats.gram, stats.noise_scale):
        assert statistic(small, x).dtype == func.jit(statistic)(small, x).dtype == np.float32
    assert stats.variance(small, x)["w"].dtype == np.float32


def test_batches_of_none_and_one() -> None:
    model = MODELS["dense"]
    x, y = model.batch
    stats = func.per_sample(dense)
    assert stats.norms(model.params, x[:0], y[:0]).shape == (0,)
    assert stats.gram(model.params, x[:0], y[:0]).shape == (0, 0)
    np.testing.assert_array_equal(stats.clipped_sum(1.0)(model.params, x[:0], y[:0]), np.zeros((5, 3)))
    gradient = func.grad(dense)(model.params, x[0], y[0])
    np.testing.assert_allclose(stats.norms(model.params, x[:1], y[:1]), [np.linalg.norm(gradient)])
    np.testing.assert_allclose(stats.gram(model.params, x[:1], y[:1]), [[np.sum(gradient**2)]])


def test_arguments_by_axis_and_keyword() -> None:
    model = MODELS["dense"]
    x, y = model.batch
    wanted = func.per_sample(dense).norms(model.params, x, y)
    np.testing.assert_allclose(func.per_sample(dense, (None, 1, 0)).norms(model.params, x.T, y), wanted)
    np.testing.assert_allclose(func.per_sample(dense).norms(model.params, x, y=y), wanted)
    by_keyword = func.per_sample(lambda w, x, *, y, scale: scale * dense(w, x, y), (None, 0, {"scale": None}))
    np.testing.assert_allclose(by_keyword.norms(model.params, x, y=y, scale=2.0), 2 * wanted)
    named = func.per_sample(lambda w, x, y, mode: dense(w, x, y) if mode == "plain" else 0.0, (None, 0, 0, None))
    np.testing.assert_allclose(named.norms(model.params, x, y, "plain"), wanted)


def test_each_array_of_the_parameters_has_a_norm() -> None:
    model = MODELS["deep"]
    limits = tree.map(lambda leaf: 0.1 * leaf.ndim, model.params)
    got = func.per_sample(model.loss).clipped_sum(limits)(model.params, *model.batch)
    columns = zip(*gradients_of(model), strict=True)
    for value, limit, leaves in zip(tree.leaves(got), tree.leaves(limits), columns, strict=True):
        wanted = sum(leaf * min(1, limit / np.linalg.norm(leaf)) for leaf in leaves)
        np.testing.assert_allclose(value, wanted, rtol=1e-10)


def test_arguments_are_not_written() -> None:
    model = MODELS["in place"]
    x = model.batch[0].copy()
    for statistic in (func.per_sample(model.loss).norms, func.per_sample(model.loss).clipped_sum(1.0)):
        statistic(model.params, x)
        np.testing.assert_array_equal(x, model.batch[0])

    def branching_writes(w: Any, x: Any) -> Any:
        return in_place(w, x) if np.sum(x) > 0 else np.sum(x @ w)

    func.per_sample(branching_writes).norms(model.params, x)
    np.testing.assert_array_equal(x, model.batch[0])


@pytest.mark.parametrize("run", [lambda f: f, func.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("rest", [1e-2, 1e-3, 1e-4, 1e-5])
def test_positions_that_cancel_are_clipped(rest: float, run: Callable[[Any], Any]) -> None:
    rows, cotangents = normal(1, 1, 24), normal(1, 1, 24)
    x = np.concatenate([rows, rows + rest * normal(1, 1, 24)], axis=1).astype(np.float32) * 100
    d = np.concatenate([cotangents, -cotangents], axis=1).astype(np.float32)
    w = np.zeros((24, 24), np.float32)
    limit = np.linalg.norm(np.einsum("btp,btq->pq", x.astype(float), d.astype(float))) / 10
    clipped = run(func.per_sample(lambda w, x, d: np.sum((x @ w) * d)).clipped_sum(limit))(w, x, d)
    assert np.linalg.norm(clipped) <= limit * (1 + 1e-4)


HALF: dict[str, tuple[Callable[..., Any], Any, Any]] = {
    "small elements": (lambda w, x: np.sum(w * x), np.ones(3000), np.full((2, 3000), 2e-4)),
    "large elements": (lambda w, x: np.sum(w * x), np.ones(3), np.full((2, 3), 200.0)),
    "matrix": (lambda w, x: np.sum(w @ x), np.ones((40, 30)), np.full((2, 30), 2e-4)),
    "rows": (lambda w, i: np.sum(w[i]) * 300, np.ones((40, 3)), np.arange(4).reshape(2, 2)),
}


@pytest.mark.parametrize("name", HALF)
def test_squares_of_half_precision_neither_vanish_nor_overflow(name: str) -> None:
    loss, w, x = HALF[name]
    w, x = w.astype(np.float16), x if x.dtype.kind == "i" else x.astype(np.float16)
    stats = func.per_sample(loss)
    rows = func.vmap(func.grad(loss), (None, 0))(w, x).astype(float)
    norms = np.sqrt(np.sum(rows.reshape(2, -1) ** 2, axis=1))
    np.testing.assert_allclose(stats.norms(w, x), norms, rtol=2e-3)
    half = stats.clipped_sum(norms[0] / 2)(w, x)
    np.testing.assert_allclose(half, rows.sum(axis=0) / 2, rtol=5e-3, atol=1e-7)
    assert {stats.norms(w, x).dtype, half.dtype, stats.variance(w, x).dtype} == {w.dtype}


W, X = np.ones((5, 3)), np.ones((6, 5))
NUMBER: Any = 3
WRONG = {
    "params mapped": (lambda: func.per_sample(dense, (0, 0, 0)).norms(W, X, X), ValueError, "begins with None"),
    "one axis": (lambda: func.per_sample(dense, 0).norms(W, X, X), ValueError, "begins with None"),
    "too few axes": (lambda: func.per_sample(dense, (None, 0)).norms(W, X, X), ValueError, "2 entries for the 3"),
    "nothing mapped": (lambda: func.per_sample(linear, (None, None)).norms(W, X), ValueError, "no argument"),
    "no batch": (lambda: func.per_sample(linear).norms(W), ValueError, "pass the batch"),
    "sizes": (lambda: func.per_sample(dense).norms(W, X, X[:2]), ValueError, "differ in size"),
    "no scalar": (lambda: func.per_sample(lambda w, x: x @ w).norms(W, X), TypeError, "scalar output"),
    "integers": (lambda: func.per_sample(linear).norms(np.arange(5), X), TypeError, "integer|int64"),
    "nothing": (lambda: func.per_sample(lambda p, x: np.sum(x)).norms({}, X), ValueError, "no floating point array"),
    "complex": (lambda: func.per_sample(linear).norms(W + 0j, X), ValueError, "real and imaginary"),
    "negative": (lambda: func.per_sample(linear).clipped_sum(-1.0), ValueError, "non-negative number, not -1"),
    "nan": (lambda: func.per_sample(linear).clipped_sum(np.nan), ValueError, "non-negative number, not nan"),
    "array": (lambda: func.per_sample(linear).clipped_sum(np.ones(2)), ValueError, r"shape \(2,\)"),
    "none": (lambda: func.per_sample(linear).clipped_sum(None), ValueError, "a tree of numbers like the parameters"),
    "empty": (lambda: func.per_sample(linear).clipped_sum({}), ValueError, "a tree of numbers like the parameters"),
    "vanishing": (
        lambda: func.per_sample(linear).clipped_sum(1e-30)(W[:, 0].astype(np.float32), X.astype(np.float32)),
        ValueError,
        "too small for gradients of float32",
    ),
    "tree": (lambda: func.per_sample(dense).clipped_sum([1.0, 2.0])(W, X, X), ValueError, "like the parameters"),
    "one sample": (lambda: func.per_sample(linear).noise_scale(W[:, 0], X[:1]), ValueError, "at least two samples"),
    "no function": (lambda: func.per_sample(NUMBER), TypeError, "takes a function"),
    "branch in jit": (
        lambda: func.jit(func.per_sample(branching).norms)(normal(4, 3), normal(6, 4)),
        TypeError,
        "not known",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_calls_say_what_to_write(name: str) -> None:
    call, kind, words = WRONG[name]
    with pytest.raises(kind, match=words):
        call()


def test_embedding_tables_are_not_repeated_for_each_sample() -> None:
    table = np.zeros((1 << 14, 1 << 8), np.float32)
    tokens = np.zeros((1 << 14, 2), np.int64)  # 275 GB for all gradients
    stats = func.per_sample(lambda table, tokens: np.sum(table[tokens]))
    np.testing.assert_allclose(stats.norms(table, tokens)[:3], np.full(3, 32.0))


def test_pickle_and_repr() -> None:
    stats = pickle.loads(pickle.dumps(func.per_sample(dense, (None, 0, 0))))
    model = MODELS["dense"]
    assert repr(stats) == "func.per_sample(dense, in_dims=(None, 0, 0))"
    assert stats.norms(model.params, *model.batch).shape == (6,)
    assert func.per_sample(in_dims=(None, 0, 0))(dense).norms(model.params, *model.batch).shape == (6,)


def test_arrays_of_a_device_stay_there() -> None:
    model = MODELS["deep"]
    params, batch = tree.map(to_device, (model.params, model.batch))
    stats, wanted = func.per_sample(model.loss), expected(model)
    norms = stats.norms(params, *batch)
    np.testing.assert_allclose(norms.get(), wanted["norms"], rtol=1e-9)
    np.testing.assert_allclose(stats.gram(params, *batch).get(), wanted["gram"], rtol=1e-9)
    for got, want in zip(
        tree.leaves(stats.clipped_sum(wanted["limit"])(params, *batch)), wanted["clipped"], strict=True
    ):
        np.testing.assert_allclose(got.get(), want, rtol=1e-9, atol=1e-9)
    for got, want in zip(tree.leaves(stats.variance(params, *batch)), wanted["variance"], strict=True):
        np.testing.assert_allclose(got.get(), want, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(stats.noise_scale(params, *batch).get(), wanted["noise"], rtol=1e-6)
