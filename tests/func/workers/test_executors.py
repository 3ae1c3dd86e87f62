"""Maps, Jacobians and their derivatives on executors: equal to those without, on every kind of executor."""

from __future__ import annotations

import concurrent.futures as cf
import functools
import multiprocessing
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import func
from func.errors import ArgumentError
from tests.support.executors import Serial

RNG = np.random.default_rng(1)
X = RNG.normal(size=(23, 3))
W = np.arange(1.0, 4.0)


def fit(x: Any, w: Any) -> Any:
    """Python that depends on values, and a tree as output."""
    y = np.sin(x) * w
    if np.sum(y) > 0.5:
        y = y * 2
    return {"y": y, "s": np.sum(y**2)}


def energy(x: Any) -> Any:
    return np.sum(np.tanh(x["a"] * x["b"][:, None]))


def roots(x: Any, w: Any) -> Any:
    return np.where(x > 0, np.sqrt(x) * w, 0.0)


def field(x: Any) -> Any:
    return np.outer(np.sin(x), x * W).ravel()[:7]


TREE = {"a": X[:2], "b": W[:2]}
HOLES = np.array([[0.0, 1.0, 2.0], [0.0, 0.0, 1.0]])


def fits(x: Any, w: Any, ex: Any, **options: Any) -> Any:
    return func.vmap(fit, (0, None), executor=ex, **options)(x, w)


class Model:
    weight = 3.0

    def scaled(self, x: Any) -> Any:
        return x * self.weight


JITTED = func.jit(lambda x, w: np.sum(np.sin(x) * w))
KEYS = func.random.split(func.random.key(0), 12)


def tensor_gradient(ex: Any) -> Any:
    w = func.tensor(W, requires_grad=True)
    np.sum(func.vmap(lambda x: np.sin(x) * w, executor=ex)(X)).backward()
    return w.grad.numpy()


def writing(x: Any) -> Any:
    y = np.zeros_like(x)
    y[0] = x[1]
    x += 1
    return y + x


CASES: dict[str, Callable[[Any], Any]] = {
    "vmap": lambda ex: fits(X, W, ex),
    "chunks": lambda ex: fits(X, W, ex, chunk_size=4),
    "axes": lambda ex: func.vmap(lambda x, w: x @ w, (1, None), 0, executor=ex)(X, np.ones((23, 2))),
    "out_dims": lambda ex: func.vmap(lambda x: (np.outer(x, W), W), out_dims=(2, None), executor=ex)(X),
    "keywords": lambda ex: func.vmap(lambda x, *, n, s: x * s + len(n), (0, {"n": None}), executor=ex)(X, n="ab", s=X),
    "closure": lambda ex: func.grad(lambda w: np.sum(func.vmap(lambda x: fit(x, w)["s"], executor=ex)(X)))(W),
    "grad": lambda ex: func.grad(lambda x, w: np.sum(fits(x, w, ex)["y"] ** 2), (0, 1))(X, W),
    "hessian of a sum": lambda ex: func.hessian(lambda w: np.sum(fits(X, w, ex, chunk_size=9)["s"]))(W),
    "jvp": lambda ex: func.jvp(lambda w: fits(X, w, ex), (W,), (W + 1,)),
    "linearize": lambda ex: func.linearize(lambda w: fits(X, w, ex)["y"], W)[1](W),
    "nested vmap": lambda ex: func.vmap(lambda w: fits(X, w, ex)["s"])(np.stack([W, -W])),
    "jit": lambda ex: func.jit(lambda w: func.vmap(lambda x: np.sin(x) * w, executor=ex)(X) * 2)(W),
    "jit grad": lambda ex: func.jit(
        func.grad(lambda w: np.sum(func.vmap(lambda x: np.sin(x @ w), executor=ex, chunk_size=5)(X)))
    )(W),
    "mapped derivatives": lambda ex: func.vmap(func.grad(lambda x: np.sum(np.sin(x) ** 2)), executor=ex)(X),
    "NaN elsewhere": lambda ex: func.grad(lambda x: np.sum(func.vmap(roots, (0, None), executor=ex)(x, W)))(HOLES),
    "float32": lambda ex: func.vmap(lambda x: x * np.float32(2), executor=ex)(X.astype(np.float32)),
    "complex": lambda ex: func.grad(lambda z: np.sum(np.abs(func.vmap(np.exp, executor=ex)(z)) ** 2))(X[0] + 1j),
    "one row": lambda ex: fits(X[:1], W, ex),
    "no row": lambda ex: func.vmap(np.sin, executor=ex)(X[:0]),
    "map": lambda ex: func.map(lambda x: fit(x, W)["y"], X, executor=ex),
    "map grad": lambda ex: func.grad(lambda w: np.sum(func.map(lambda x: fit(x, w)["s"], X, executor=ex)))(W),
    "jacfwd": lambda ex: func.jacfwd(field, executor=ex)(W),
    "jacrev": lambda ex: func.jacrev(field, executor=ex, chunk_size=2)(W),
    "jacobian": lambda ex: func.jacobian(lambda x, y: {"a": x * y, "b": np.sum(y)}, (0, 1), executor=ex)(W, W + 1),
    "aux": lambda ex: func.jacrev(lambda x: (field(x), {"n": 3}), has_aux=True, executor=ex)(W),
    "holomorphic": lambda ex: func.jacrev(np.exp, holomorphic=True, executor=ex)(W + 1j),
    "hessian": lambda ex: func.hessian(energy, executor=ex)(TREE),
    "hessian, rev-rev": lambda ex: func.hessian(energy, mode="rev-rev", executor=ex, chunk_size=3)(TREE),
    "methods": lambda ex: func.vmap(Model().scaled, executor=ex)(X),
    "partials": lambda ex: func.vmap(functools.partial(np.dot, W), executor=ex)(X),
    "jitted": lambda ex: func.grad(lambda w: np.sum(func.vmap(JITTED, (0, None), executor=ex)(X, w)))(W),
    "other outputs": lambda ex: func.vmap(lambda x: (x > 0, None, np.argmax(x), {"i": x.astype(int)}), executor=ex)(X),
    "tensors": lambda ex: tensor_gradient(ex),
    "keys": lambda ex: func.vmap(lambda key: func.random.normal(key, (3,)), executor=ex)(KEYS),
    "writes": lambda ex: func.vmap(writing, executor=ex)(X),
    "third": lambda ex: func.derivatives(lambda a: np.sum(func.vmap(lambda x: np.sin(x * a), executor=ex)(X)), 3)(0.3),
    "scan": lambda ex: func.scan(
        lambda c, _: (c + np.sum(func.vmap(lambda x: np.sin(x @ c), executor=ex)(X)), None), W, None, 3
    )[0],
    "checkpoint": lambda ex: func.grad(
        func.checkpoint(lambda w: np.sum(func.vmap(lambda x: np.sin(x @ w), executor=ex)(X)))
    )(W),
    "grad of a Jacobian": lambda ex: func.grad(lambda x: np.sum(func.jacrev(field, executor=ex)(x) ** 2))(W),
}
FEW = ["vmap", "closure", "grad", "map", "jacobian"]


@contextmanager
def processes(method: str) -> Iterator[Any]:
    with cf.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method)) as executor:
        yield executor


@contextmanager
def loky() -> Iterator[Any]:
    externals = pytest.importorskip("joblib.externals.loky")
    executor = externals.ProcessPoolExecutor(2)
    try:
        yield executor
    finally:
        executor.shutdown(wait=True, kill_workers=True)


EXECUTORS: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "threads": (lambda: cf.ThreadPoolExecutor(3), list(CASES)),
    "any object with submit": (Serial, list(CASES)),
    "fork": (lambda: processes("fork"), FEW),
    "spawn": (lambda: processes("spawn"), FEW),
    "joblib's loky": (loky, FEW),
}


@pytest.mark.parametrize("kind", EXECUTORS)
def test_results_are_those_without_an_executor(kind: str) -> None:
    make, cases = EXECUTORS[kind]
    before = {child.pid for child in multiprocessing.active_children()}
    with make() as executor:
        for case in cases:
            expected, found = CASES[case](None), CASES[case](executor)
            assert func.tree.structure(found) == func.tree.structure(expected), case
            for x, y in zip(func.tree.leaves(found), func.tree.leaves(expected), strict=True):
                assert type(x) is type(y) and np.shape(x) == np.shape(y), case
                np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-13, err_msg=case)
    assert {child.pid for child in multiprocessing.active_children()} <= before


@pytest.mark.parametrize("workers", [1, 2, 3, 4])
def test_results_do_not_depend_on_the_number_of_workers(workers: int) -> None:
    def total(w: Any, executor: Any) -> Any:
        return np.sum(func.vmap(lambda x: np.tanh(x @ w), executor=executor, chunk_size=3)(X.astype(np.float32)))

    w = W.astype(np.float32)
    alone = func.value_and_grad(total)(w, Serial())
    with cf.ThreadPoolExecutor(workers) as executor:
        value, gradient = func.value_and_grad(total)(w, executor)
    assert value == alone[0] and gradient.tobytes() == alone[1].tobytes()


def test_a_function_is_sent_to_each_worker_once() -> None:
    big = np.ones(100_000)
    executor = Serial(2)
    found = func.vmap(lambda x: np.sum(big) * x, executor=executor, chunk_size=1)(np.arange(40.0))
    np.testing.assert_array_equal(found, 1e5 * np.arange(40.0))
    assert 2 * big.nbytes < executor.sent < 2.1 * big.nbytes + 40 * 4000
    with processes("fork") as pool:
        counting = Serial(2, pool)
        func.vmap(lambda x, y: np.sum(y) * x, (0, None), executor=counting, chunk_size=1)(np.arange(40.0), big)
    assert counting.sent < 8 * big.nbytes  # workers that had no part of the first tasks asked for it


def test_few_chunks_are_under_way_at_once() -> None:
    with Serial(2, late=True) as executor:
        found = func.vmap(np.sin, executor=executor, chunk_size=1)(np.arange(100.0))
    np.testing.assert_array_equal(found, np.sin(np.arange(100.0)))
    assert 2 <= executor.most <= 5


def test_a_pullback_that_is_pickled_computes_where_it_arrives() -> None:
    with cf.ThreadPoolExecutor(2) as executor:
        for own in (executor, Serial()):
            out, pullback = func.vjp(lambda w, own=own: fits(X, w, own, chunk_size=5), W)
            expected = pullback(out)[0]
            np.testing.assert_array_equal(pullback(out)[0], expected)
            np.testing.assert_array_equal(pickle.loads(pickle.dumps(pullback))(out)[0], expected)


def test_threads_may_share_an_executor() -> None:
    with cf.ThreadPoolExecutor(2) as executor, cf.ThreadPoolExecutor(4) as callers:
        found = list(callers.map(lambda k: func.vmap(lambda x: x * k, executor=executor, chunk_size=2)(X), range(8)))
    np.testing.assert_array_equal(found, [X * k for k in range(8)])


def test_threads_may_map_inside_of_their_own_tasks() -> None:
    with cf.ThreadPoolExecutor(2) as executor:

        def outer(x: Any) -> Any:
            return np.sum(func.vmap(lambda w: w * x, executor=executor)(W))

        found = func.map(outer, X[:8, 0], executor=executor, chunk_size=1)
    np.testing.assert_allclose(found, X[:8, 0] * 6)


def test_chunks_follow_from_the_cost() -> None:
    executor = Serial()
    func.vmap(np.sin, executor=executor)(np.arange(1000.0))
    assert executor.tasks == 1
    executor = Serial()
    func.vmap(lambda x: np.linalg.eigvalsh(np.eye(100) * x), executor=executor)(np.arange(1.0, 101.0))
    assert executor.tasks >= 10


def test_a_progress_bar_counts_chunks(capsys: pytest.CaptureFixture[str]) -> None:
    func.vmap(np.sin, executor=Serial(), chunk_size=4, progress=True)(np.arange(10.0))
    assert "func.vmap(sin): 3chunk" in capsys.readouterr().err


OPTIONS: dict[str, tuple[Callable[[], Any], str]] = {
    "no executor": (
        lambda: func.vmap(np.sin, executor=3),
        "func.vmap: executor must have a method submit() that returns futures, as those of concurrent.futures have, "
        "not int\nWrite executor=concurrent.futures.ProcessPoolExecutor(), joblib's get_reusable_executor(), or "
        "client.get_executor() of Dask.",
    ),
    "memory_limit": (
        lambda: func.jacrev(np.sin, executor=Serial(), memory_limit=1000),
        "func.jacrev: memory_limit does not go with executor\nPass chunk_size: each worker has the memory of one "
        "chunk.",
    ),
    "randomness": (
        lambda: func.vmap(np.sin, randomness="same", executor=Serial()),
        "func.vmap: randomness does not go with executor\nDraw random numbers from keys that are mapped "
        "(func.random.split).",
    ),
    "axis_name": (
        lambda: func.vmap(np.sin, axis_name="i", executor=Serial()),
        "func.vmap: axis_name does not go with executor\nLeave one of them out.",
    ),
    "sparse": (
        lambda: func.jacobian(np.sin, sparse=True, executor=Serial()),
        "func.jacobian: executor is for dense Jacobians; leave out one of sparse and executor",
    ),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_options_that_do_not_go_together(case: str) -> None:
    call, message = OPTIONS[case]
    with pytest.raises(ArgumentError) as caught:
        call()
    assert str(caught.value) == message


def test_a_later_chunk_may_have_a_wider_dtype() -> None:
    def f(x: Any) -> Any:
        return np.int64(1) if x < 2 else x * 0.75

    found = func.vmap(f, executor=Serial(), chunk_size=2)(np.arange(4.0))
    assert found.tolist() == [1.0, 1.0, 1.5, 2.25]
