"""Statistics of per-sample gradients, against gradients that are computed sample by sample."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import func
from func import tree
from func.sample_gradients import per_sample as module

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
