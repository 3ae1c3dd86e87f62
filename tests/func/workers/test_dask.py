"""Dask: a cluster of two processes that this module starts and ends, as executor, as the place of data, and losing a
worker."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import func
from func.errors import (
    ArgumentError,
    BlockedArrayError,
    ExecutorError,
    RaggedChunksError,
    ScalarOutputError,
    TravelError,
    UnsupportedFunctionError,
)

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
array = pytest.importorskip("dask.array")
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*Sending large graph:UserWarning"),
]

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
Y = (X @ np.arange(3.0) > 0) * 1.0
W = np.array([0.1, -0.2, 0.3])


def loss(w: Any, x: Any, y: Any) -> Any:
    z = x @ w
    return np.logaddexp(0, z) - y * z


def fit(x: Any, w: Any) -> Any:
    return np.sum(np.sin(x) * w)


WHOLE = func.sum_over(loss, (X, Y))


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with (
        dask.config.set({"distributed.worker.daemon": True, "distributed.admin.log-length": 0}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_maps_and_their_derivatives(client: Any) -> None:
    executor = client.get_executor()
    big = np.ones(100_000)  # goes to the cluster once

    def total(w: Any, executor: Any) -> Any:
        return np.sum(func.vmap(lambda x: fit(x, w) + np.sum(big), executor=executor, chunk_size=40)(X))

    for made, plain in [
        (func.vmap(fit, (0, None), executor=executor)(X, W), func.vmap(fit, (0, None))(X, W)),
        (func.grad(total)(W, executor), func.grad(total)(W, None)),
        (func.hessian(total)(W, executor), func.hessian(total)(W, None)),
        (func.jacobian(lambda x: np.outer(x, x), executor=executor)(W), func.jacobian(lambda x: np.outer(x, x))(W)),
        (func.map(lambda x: fit(x, W), X[:9], executor=client), func.map(lambda x: fit(x, W), X[:9])),
    ]:
        np.testing.assert_allclose(made, plain, rtol=1e-12, atol=1e-14)


def test_pullbacks_run_where_their_forward_runs_were(client: Any) -> None:
    def where(x: Any) -> Any:
        @func.custom_vjp
        def marked(x: Any) -> Any:
            return x * 2

        marked.defvjp(lambda x: (x * 2, None), lambda kept, ct: (ct * 0 + float(os.getpid()),))
        return marked(x) + 0 * os.getpid()

    def forward_and_backward(x: Any) -> Any:
        out = func.vmap(lambda x: where(x), executor=client.get_executor(), chunk_size=5)(x)
        return np.sum(out)

    pids = func.grad(forward_and_backward)(np.arange(20.0))
    assert {int(pid) for pid in pids} <= {int(pid) for pid in client.run(os.getpid).values()}


def test_sums_where_the_data_lies(client: Any) -> None:
    x, y = array.from_array(X, chunks=(70, 2)), array.from_array(Y, chunks=70)
    value, gradient = func.value_and_grad(WHOLE)(W)
    persisted = client.persist(x.rechunk((70, 3))), client.persist(y)
    futures = [client.submit(lambda i: (X[i : i + 60], Y[i : i + 60]), i) for i in range(0, 300, 60)]
    for data, executor in [((x, y), None), ((x, y), client.get_executor()), (persisted, client), (futures, client)]:
        objective = func.sum_over(loss, data, executor=executor)
        found = func.value_and_grad(objective)(W)
        np.testing.assert_allclose(found[0], value, rtol=1e-12)
        np.testing.assert_allclose(found[1], gradient, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(func.hessian(objective)(W), func.hessian(WHOLE)(W), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(func.hvp(objective, W, X[0]), func.hvp(WHOLE, W, X[0]), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(objective.norms(W), WHOLE.norms(W), rtol=1e-10)


def test_data_frames(client: Any) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": Y})

    def of_row(w: Any, row: Any) -> Any:
        return loss(w, np.stack([row["a"], row["b"]]), row["y"])

    parts = [client.submit(lambda part: part, frame[i : i + 100]) for i in range(0, 300, 100)]
    expected = func.grad(func.sum_over(loss, (X[:, :2], Y)))(W[:2])
    found = func.grad(func.sum_over(of_row, parts, executor=client))(W[:2])
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    try:
        import dask.dataframe as frames
    except ImportError:
        pytest.skip("dask.dataframe needs pyarrow, which is 170 MB")
    objective = func.sum_over(of_row, frames.from_pandas(frame, npartitions=3), executor=client)
    np.testing.assert_allclose(func.grad(objective)(W[:2]), expected, rtol=1e-12)


def test_tokens_are_equal_for_equal_functions() -> None:
    from dask.base import tokenize

    assert tokenize(func.grad(loss)) == tokenize(func.grad(loss)) != tokenize(func.grad(loss, 1))
    assert tokenize(func.jit(func.vmap(fit))) == tokenize(func.jit(func.vmap(fit))) != tokenize(func.jit(fit))
    assert tokenize(func.per_sample(loss)) == tokenize(func.per_sample(loss))
    programs = [func.make_program(function)(X[0], W) for function in (fit, fit, lambda x, w: fit(x, w) * 2)]
    assert tokenize(programs[0]) == tokenize(programs[1]) != tokenize(programs[2])


def test_dask_arrays_are_mapped_block_by_block() -> None:
    x, y = array.from_array(X, chunks=(70, 2)), array.from_array(Y, chunks=50)
    gradients = func.vmap(func.value_and_grad(loss), (None, 0, 0))
    found, expected = gradients(W, x, y), gradients(W, X, Y)
    assert found[1].chunks == ((70, 70, 70, 70, 20), (3,)) and found[0].dtype == Y.dtype
    for own, plain in zip(found, expected, strict=True):
        np.testing.assert_allclose(own.compute(scheduler="synchronous"), plain)
    mixed = func.vmap(lambda a, b, *, c: {"out": np.outer(a, b) + c}, (1, None), 1)(x.T, X[0], c=y)["out"]
    plain = func.vmap(lambda a, b, *, c: {"out": np.outer(a, b) + c}, (1, None), 1)(X.T, X[0], c=Y)["out"]
    assert mixed.chunks == ((3,), (70, 70, 70, 70, 20), (3,))
    np.testing.assert_allclose(mixed.compute(scheduler="synchronous"), plain)
    slopes = func.elementwise_grad(lambda a: np.sin(a) ** 2)(x)
    assert slopes.chunks == x.chunks
    np.testing.assert_allclose(slopes.compute(scheduler="synchronous"), 2 * np.sin(X) * np.cos(X))


def by_blocks(x: Any, function: Any, *others: Any) -> Any:
    """A function of blocks, of Dask arrays and of plain ones."""
    return x.map_blocks(function, *others) if hasattr(x, "map_blocks") else function(x, *others)


TALL, GRID, LABELS = [(X, (70, 3)), (X, (100, 2)), (Y, 70)]
LOSSES: dict[str, tuple[Any, list[Any], Any]] = {
    "elements": (lambda x: np.sum(np.sin(x) ** 2), [GRID], 0),
    "sums in a function": (lambda x: np.log(np.sum(x**2)) * np.mean(np.cos(x)), [GRID], 0),
    "products": (lambda w, x, y: np.mean(np.logaddexp(0, x @ w) - y * (x @ w)), [W, TALL, LABELS], (0, 1, 2)),
    "blocks": (
        lambda x, w, y: by_blocks(x, lambda x, w, y: np.tanh(x @ w) * y, w, y).sum() + w[0],
        [TALL, W, LABELS],
        (0, 1),
    ),
    "captured": (lambda x, s: by_blocks(x, lambda x: np.sum(np.tanh(x * s))).sum(), [TALL, 0.3], (0, 1)),
    "trees": (lambda p: np.sum(p["x"] * np.exp(p["b"])), [{"x": GRID, "b": np.array(0.3)}], 0),
    "decisions": (lambda x: np.sum(x**2) if np.sum(x) > 0 else np.sum(-(x**3)), [TALL], 0),
    "functions": (
        lambda x: np.sum(np.where(x > 0, np.sqrt(np.abs(x)), 0.0) * np.clip(x, -1, 1)) / len(x) + np.sum(np.real(x)),
        [GRID],
        0,
    ),
    "holes": (lambda x: np.sum(np.sqrt(np.abs(x))), [(X * (X > 0), (70, 3))], 0),
    "float32": (lambda x: np.sum(x**2), [(X.astype("f4"), (70, 3))], 0),
    "complex": (lambda x: np.sum(np.abs(x) ** 2), [(X + 1j, (70, 3))], 0),
    "no sum": (lambda x, w: np.sum(w), [TALL, W], (0, 1)),
}


def with_cut(given: Any, make: Any) -> Any:
    """Arguments, with what `make` makes of values and chunks."""
    if type(given) is tuple:
        return make(*given)
    if type(given) is dict:
        return {name: with_cut(value, make) for name, value in given.items()}
    return [with_cut(value, make) for value in given] if type(given) is list else given


@pytest.mark.parametrize("transform", [func.grad, func.value_and_grad])
def test_gradients_of_sums_over_blocks_have_the_chunks_of_the_arguments(transform: Any) -> None:
    for case, (loss, given, argnums) in LOSSES.items():
        blocked = with_cut(given, lambda values, chunks: array.from_array(values, chunks))
        plain = with_cut(given, lambda values, chunks: values)
        found, expected = transform(loss, argnums)(*blocked), transform(loss, argnums)(*plain)
        assert func.tree.structure(found) == func.tree.structure(expected), case
        by_chunks = {leaf.chunks for leaf in func.tree.leaves(blocked) if hasattr(leaf, "chunks")}
        for own, leaf in zip(func.tree.leaves(found), func.tree.leaves(expected), strict=True):
            if isinstance(own, array.Array):
                assert own.chunks in by_chunks and own.dtype == leaf.dtype, case
                own = own.compute(scheduler="synchronous")
            assert own.dtype == leaf.dtype, case
            np.testing.assert_allclose(own, leaf, rtol=1e-6 if own.dtype == "f4" else 1e-11, err_msg=case)


def test_gradients_of_sums_over_blocks_are_computed_on_the_cluster(client: Any) -> None:
    x, y = client.persist(array.from_array(X, chunks=(70, 3))), array.from_array(Y, chunks=70)
    both = func.value_and_grad(LOSSES["products"][0], (0, 1))
    value, (of_w, of_x) = both(W, x, y)
    expected = both(W, X, Y)
    np.testing.assert_allclose(value, expected[0])
    np.testing.assert_allclose(of_w, expected[1][0])
    np.testing.assert_allclose(client.compute(of_x).result(), expected[1][1])


WITHOUT: dict[str, tuple[Any, str]] = {
    "indexing": (lambda x: x[0].sum(), "indexing"),
    "axes": (lambda x: np.sum(np.sum(x, axis=0)), "numpy.sum with other arguments"),
    "arrays": (lambda x: np.sum(x + np.ones(3)), r"numpy.add of it and an array of shape \(3,\)"),
    "others": (lambda x: np.sum(np.sort(x)), "numpy.sort"),
    "attributes": (lambda x: np.sum(x.T), "an attribute T"),
    "products": (lambda x: np.sum(W[:2] @ x), "products but those of blocks of whole rows with a matrix or vector"),
    "means": (lambda x: x.map_blocks(np.sin).mean(), "means of what map_blocks returns"),
    "values": (lambda x: np.sum(x) if x else x, "decisions by its values"),
    "conversion": (lambda x: np.sum(np.asarray(x)), "conversion to an array"),
    "reduce": (lambda x: np.add.reduce(x), "numpy.add.reduce"),
    "mixed": (lambda x: np.sum(np.sin(x) * x.map_blocks(np.cos)), "numpy.multiply of arrays with other chunks"),
    "outside": (lambda x: x.map_blocks(np.multiply, array.ones(3)).sum(), "Dask arrays that are not arguments"),
}


@pytest.mark.parametrize("case", WITHOUT)
def test_what_is_not_done_block_by_block_is_named(case: str) -> None:
    loss, words = WITHOUT[case]
    message = f"func.grad: a Dask array with a gradient is computed block by block, without {words}\n"
    with pytest.raises(UnsupportedFunctionError, match=message):
        func.grad(loss)(array.from_array(X, chunks=(70, 3)))


def test_gradients_by_blocks_refuse_what_they_cannot_do() -> None:
    x = array.from_array(X, chunks=(70, 3))

    def total(x: Any, w: Any = 1.0) -> Any:
        return np.sum(x**2) * w

    for call, kind, words in [
        (lambda: func.grad(total)(array.ones(4, dtype=int)), TypeError, "dtype int64 has no gradient; convert it"),
        (lambda: func.grad(total, has_aux=True)(x), ArgumentError, "takes positional arguments and argnums"),
        (lambda: func.grad(lambda x, y: np.sum(x))(x, x.rechunk(60)), RaggedChunksError, "have different chunks: "),
        (
            lambda: func.grad(lambda w: func.grad(total)(x, w))(2.0),
            UnsupportedFunctionError,
            "are not differentiated or batched again by a transform around them",
        ),
        (lambda: func.grad(lambda x: sum([np.sum(x) for _ in range(65)]))(x), ArgumentError, "more than 64 sums"),
        (lambda: func.grad(lambda x: x * 2)(x), ScalarOutputError, "but <lambda> returned an array in blocks\nSum it"),
        (lambda: func.hessian(total)(x), BlockedArrayError, "func.hessian takes the whole of one"),
    ]:
        with pytest.raises(kind, match=words):
            call()


def test_names_on_the_dashboard_are_those_of_the_functions(client: Any) -> None:
    from distributed.utils import key_split

    x = array.from_array(X, chunks=(70, 3))
    mapped = func.vmap(fit, (0, None))(x, W)
    assert "func.vmap(fit)" in {key_split(key) for key in mapped.dask.to_dict()}
    np.testing.assert_allclose(client.compute(mapped).result(), func.vmap(fit, (0, None))(X, W))


def test_what_is_wrong_is_said(client: Any) -> None:
    executor = client.get_executor()
    with pytest.raises(ZeroDivisionError) as caught:
        func.map(lambda x: 1 // int(x[0] * 0), X[:4], executor=executor, chunk_size=2)
    assert "func.map(<lambda>): chunk" in caught.value.__notes__[0]
    with pytest.raises(TravelError, match="it holds 'executor' of the scope around <lambda>, a ClientExecutor"):
        func.vmap(lambda x: func.vmap(np.sin, executor=executor)(x), executor=executor)(X)
    x, y = array.from_array(X, chunks=70), array.from_array(Y, chunks=60)
    with pytest.raises(RaggedChunksError) as ragged:
        func.sum_over(loss, (x, y), executor=executor)
    assert str(ragged.value) == (
        "func.sum_over: the Dask arrays of the data have different chunks of samples: data[0] (70, 70, 70, 70, 20), "
        "data[1] (60, 60, 60, 60, 60)\nRechunk them alike: y.rechunk({0: x.chunks[0]})."
    )
    for call, name in [(lambda: func.jacrev(np.sum)(y), "jacrev"), (lambda: func.jit(np.sin)(y), "jit")]:
        with pytest.raises(BlockedArrayError) as blocked:
            call()
        assert f"is a Dask array, and func.{name} takes the whole of one\nMap a function of one row" in str(
            blocked.value
        )
    other = distributed.Client(client.scheduler.address, set_as_default=False)
    mapped = func.vmap(np.sin, executor=other)
    other.close()
    with pytest.raises(ExecutorError, match="the executor Dask has been shut down"):
        mapped(X)
    other = distributed.Client(client.scheduler.address, set_as_default=False)
    threading.Timer(0.3, other.close).start()
    with pytest.raises(ExecutorError, match="the executor Dask has been shut down"):
        func.map(slowly, np.arange(40.0), executor=other, chunk_size=1)
    executor.shutdown()
    with pytest.raises(ExecutorError, match="the executor Dask has been shut down"):
        func.vmap(np.sin, executor=executor)(X)


@pytest.mark.parametrize("moment", ["submit", "result", "cancel"])
def test_errors_of_a_client_that_is_being_closed_are_named(
    client: Any, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chance decides which of the client's own errors comes first: of a call, of a result, of cancelling the rest."""
    other = distributed.Client(client.scheduler.address, set_as_default=False)
    whole = other.submit

    def closing(*args: Any, **kwargs: Any) -> Any:
        other.close()
        raise distributed.client.ClosedClientError("Client is closed. Can't send.")

    def submit(*args: Any, **kwargs: Any) -> Any:
        future = whole(*args, **kwargs)
        future.result = closing
        return future

    monkeypatch.setattr(other, "submit", closing if moment == "submit" else submit)
    if moment == "cancel":
        monkeypatch.setattr(distributed.Future, "cancel", closing)
    with pytest.raises(ExecutorError, match="the executor Dask has been shut down"):
        func.map(np.sin, np.arange(40.0), executor=other, chunk_size=1)


def test_an_error_of_a_task_is_its_own_although_the_client_is_closed(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = distributed.Client(client.scheduler.address, set_as_default=False)
    whole = other.submit

    def submit(*args: Any, **kwargs: Any) -> Any:
        future = whole(*args, **kwargs)
        result = future.result

        def closing(timeout: float | None = None) -> Any:
            try:
                return result()
            finally:
                other.close()

        future.result = closing
        return future

    monkeypatch.setattr(other, "submit", submit)
    with pytest.raises(ZeroDivisionError):
        func.map(lambda x: 1 // int(x * 0), np.arange(4.0), executor=other, chunk_size=1)


def slowly(x: Any) -> Any:
    time.sleep(0.05)
    return x * x


def test_a_killed_worker_is_replaced_and_its_chunks_are_done_again(client: Any) -> None:
    """The last test: it costs the cluster a worker."""
    pids = list(client.run(os.getpid).values())
    executor = client.get_executor()
    start = time.monotonic()
    killed: list[int] = []

    def submit_and_kill(*args: Any, **kwargs: Any) -> Any:
        if len(killed) == 0 and submit_and_kill.calls == 8:  # type: ignore[attr-defined]
            os.kill(pids[0], signal.SIGKILL)
            killed.append(pids[0])
        submit_and_kill.calls += 1  # type: ignore[attr-defined]
        return submit(*args, **kwargs)

    submit_and_kill.calls = 0  # type: ignore[attr-defined]
    submit = client.submit
    client.submit = submit_and_kill
    try:
        found = func.map(slowly, np.arange(30.0), executor=executor, chunk_size=1)
    finally:
        client.submit = submit
    np.testing.assert_array_equal(found, np.arange(30.0) ** 2)
    assert killed and time.monotonic() - start < 60


def test_cancelling_waits_for_no_client_that_does_not_answer(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from func.workers.engines import DaskEngine

    engine = DaskEngine(client)
    monkeypatch.setattr(DaskEngine, "PATIENCE", 0.2)

    async def never(*args: Any, **options: Any) -> None:
        await asyncio.sleep(600)

    monkeypatch.setattr(client, "_cancel", never)
    start = time.monotonic()
    engine.cancel([client.submit(slowly, 1.0, pure=False)])
    assert time.monotonic() - start < 60
