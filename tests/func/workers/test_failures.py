"""Failures on workers: errors of chunks, functions that cannot travel, shut executors, dead workers."""

from __future__ import annotations

import concurrent.futures as cf
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import func
from func.errors import (
    ChunkError,
    ExecutorError,
    RaggedChunksError,
    TravelError,
    WorkerLostError,
    WorkerLostWarning,
)
from func.workers.running import _Flow
from tests.support.executors import Serial

X = np.arange(12.0)
FORK = multiprocessing.get_context("fork")


class OddError(Exception):
    """An error that cannot be made again from its arguments."""

    def __init__(self, code: int, where: str) -> None:
        super().__init__(f"code {code} at {where}")


def slowly(x: Any) -> Any:
    time.sleep(0.02)
    return x * x


def failing(x: Any) -> Any:
    if x == 7.0:
        raise KeyError("seven")
    return x


def odd(x: Any) -> Any:
    raise OddError(3, "here")


@pytest.mark.parametrize("make", [Serial, lambda: cf.ThreadPoolExecutor(2), lambda: cf.ProcessPoolExecutor(2, FORK)])
def test_a_failing_chunk_is_named_with_its_traceback(make: Callable[[], Any]) -> None:
    with make() as executor:
        with pytest.raises(KeyError, match="seven") as caught:
            func.map(failing, X, executor=executor, chunk_size=2)
        (note,) = caught.value.__notes__
        assert note.startswith("func.map(failing): chunk 3 (rows 6 to 7) failed, in process ")
        assert 'raise KeyError("seven")' in note and "tasks.py" not in note
        with pytest.raises(ChunkError, match=r"(?s)func.map\(odd\): chunk [01] .*OddError: code 3 at here"):
            func.map(odd, X, executor=executor, chunk_size=2)
        np.testing.assert_array_equal(func.map(np.sin, X, executor=executor), np.sin(X))


class Model:
    def __init__(self, file: Any) -> None:
        self.file = file

    def loss(self, x: Any) -> Any:
        return x * len(self.file.name)


def test_what_cannot_travel_is_named(tmp_path: Path) -> None:
    executor = Serial()
    with open(tmp_path / "log", "w") as log, cf.ThreadPoolExecutor(1) as pool:

        def logging(x: Any) -> Any:
            log.write("x")
            return x

        def nested(x: Any) -> Any:
            return func.vmap(np.sin, executor=pool)(x)

        local_lock = threading.Lock()
        cases: list[tuple[Any, str]] = [
            (
                logging,
                "func.vmap(logging): what it maps cannot go to another process: it holds 'log' of the scope around "
                "logging, a TextIOWrapper\nPass the file's name and open it inside the function.",
            ),
            (
                Model(log).loss,
                "func.vmap(loss): what it maps cannot go to another process: it holds the attribute 'file' of Model, a "
                "TextIOWrapper\nPass the file's name and open it inside the function.",
            ),
            (
                lambda x: (x, local_lock)[0],
                "func.vmap(<lambda>): what it maps cannot go to another process: it holds 'local_lock' of the scope "
                "around <lambda>, a lock\nMake the lock inside the function: a lock of this process locks nothing in "
                "another one.",
            ),
            (
                nested,
                "func.vmap(nested): what it maps cannot go to another process: it holds 'pool' of the scope around "
                "nested, a ThreadPoolExecutor\nAn executor belongs to the process that made it; map the outer function "
                "alone, or make one inside.",
            ),
            (
                func.grad(lambda x, g=(i for i in ()): x),
                "func.vmap(<lambda>): what it maps cannot go to another process: it holds a default of <lambda>, a "
                "generator\nMake it inside the function, or pass the arrays and names to make it from.",
            ),
        ]
        outer = func.sum_over(lambda w, x: w * x, X, executor=pool)

        def storing(x: Any, store: Any = []) -> Any:  # noqa: B006
            store.append(x)
            return x

        with pytest.raises(TravelError, match="it holds an executor, a ThreadPoolExecutor\nAn executor belongs to"):
            func.vmap(outer, executor=executor)(X)
        with pytest.raises(TravelError, match="a TracedArray\nIt was stored there while a function was traced; return"):
            func.map(storing, X, executor=executor)
        for function, message in cases:
            with pytest.raises(TravelError) as caught:
                func.vmap(function, executor=executor)(X)
            assert str(caught.value) == message
            with cf.ThreadPoolExecutor(1) as threads:  # nothing travels
                if function is not nested:
                    func.vmap(function, executor=threads)(X)


def test_an_executor_that_is_shut_is_named() -> None:
    message = "the executor {} has been shut down\nMake a new one, and use it inside its `with` block."
    for executor in (cf.ThreadPoolExecutor(1), cf.ProcessPoolExecutor(1, FORK)):
        executor.shutdown()
        with pytest.raises(ExecutorError) as caught:
            func.vmap(np.sin, executor=executor)(X)
        assert str(caught.value) == message.format(type(executor).__name__)


@pytest.mark.parametrize("make", [lambda: cf.ThreadPoolExecutor(1), lambda: cf.ProcessPoolExecutor(1, FORK)])
def test_an_executor_that_is_shut_while_it_runs_is_named(make: Callable[[], Any]) -> None:
    executor = make()
    func.map(np.sin, X, executor=executor)
    threading.Timer(0.1, lambda: executor.shutdown(wait=False, cancel_futures=True)).start()
    with pytest.raises(ExecutorError, match="has been shut down\nMake a new one"):
        func.map(slowly, np.arange(60.0), executor=executor, chunk_size=1)
    executor.shutdown()


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            lambda x: np.ones(int(x[0])) if x[0] < 4 else np.ones(9),
            "func.vmap(<lambda>): output 0 of chunk 1 has shape (1, 3), where (1, 2) fits the others\n"
            "Pad to one shape, or return something independent of the chunk.",
        ),
        (
            lambda x: [x] if x[0] < 3 else [x, x],
            "func.vmap(<lambda>): chunk 1 returned 2 arrays, and chunk 0 1\nReturn one tree for all arguments.",
        ),
    ],
)
def test_ragged_chunks_are_named(function: Any, message: str) -> None:
    with pytest.raises(RaggedChunksError) as caught:
        func.vmap(function, executor=Serial(), chunk_size=1)(np.array([[2.0], [3.0]]))
    assert str(caught.value) == message


def test_trees_that_differ_are_named() -> None:
    with pytest.raises(RaggedChunksError, match="chunk 1 returned the tree"):
        func.vmap(lambda x: {"a": x} if x[0] < 3 else {"b": x}, executor=Serial(), chunk_size=1)(
            np.array([[2.0], [3.0]])
        )


@pytest.mark.filterwarnings("ignore::func.errors.WorkerLostWarning")
def test_workers_that_are_killed_from_outside_leave_a_right_result() -> None:
    start = time.monotonic()
    with cf.ProcessPoolExecutor(2, FORK, max_tasks_per_child=None) as executor:
        func.map(np.sin, X, executor=executor)
        kill = threading.Timer(0.1, lambda: [os.kill(pid, signal.SIGKILL) for pid in list(executor._processes)])
        kill.start()
        found = func.map(slowly, np.arange(30.0), executor=executor, chunk_size=1)
    np.testing.assert_array_equal(found, np.arange(30.0) ** 2)
    assert time.monotonic() - start < 60 and not multiprocessing.active_children()


def dying_once(x: Any, flag: str) -> Any:
    if x == 5.0 and not os.path.exists(flag):
        Path(flag).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return x * x


def dying(x: Any) -> Any:
    if x == 5.0:
        os.kill(os.getpid(), signal.SIGKILL)
    return x * x


def test_a_worker_that_dies_is_reported_and_its_chunks_are_done_again(tmp_path: Path) -> None:
    flag = str(tmp_path / "died")
    with (
        cf.ProcessPoolExecutor(2, FORK) as executor,
        pytest.warns(WorkerLostWarning, match=r"a worker of ProcessPoolExecutor died while chunks? .* ran; they are"),
    ):
        found = func.map(lambda x: dying_once(x, flag), X, executor=executor, chunk_size=1)
    np.testing.assert_array_equal(found, X * X)
    with pytest.raises(ExecutorError) as caught:
        func.map(np.sin, X, executor=executor, chunk_size=1)
    assert "been shut down" in str(caught.value) or "is broken, as a worker of it died" in str(caught.value)
    assert not multiprocessing.active_children()


@pytest.mark.filterwarnings("ignore::func.errors.WorkerLostWarning")
def test_a_chunk_that_kills_its_worker_again_and_again_is_named() -> None:
    start = time.monotonic()
    with cf.ProcessPoolExecutor(2, FORK) as executor, pytest.raises(WorkerLostError) as caught:
        func.map(dying, X, executor=executor, chunk_size=1)
    text = str(caught.value)
    assert text.startswith("func.map(dying): workers of ProcessPoolExecutor died while chunk 5 ran: ")
    assert text.endswith("too little memory, or compiled code that crashes.")
    assert time.monotonic() - start < 60 and not multiprocessing.active_children()


def test_an_engine_of_unknown_kind_that_breaks_is_named() -> None:
    class Broken(Serial):
        def submit(self, function: Any, *args: Any) -> cf.Future[Any]:
            future: cf.Future[Any] = cf.Future()
            future.set_exception(cf.BrokenExecutor("the link is down"))
            return future

        _max_workers = None

    executor: Any = Broken()
    del executor._max_workers
    with pytest.raises(WorkerLostError, match="the link is down"):
        func.map(np.sin, X, executor=executor, chunk_size=1)


def test_chunks_that_were_lost_run_alone() -> None:
    runner: Any = SimpleNamespace(label="map", progress=False, data=None)
    engine: Any = SimpleNamespace(workers=lambda: 3)
    flow = _Flow(runner, engine, 10, lambda engine, i, again: cf.Future(), [])
    flow.lost, flow.next = {0: 1, 1: 1}, 2
    flow.waiting.extend([0, 1])
    flow.fill()
    assert list(flow.pending.values()) == [0]
    flow.pending.clear()
    flow.lost.clear()
    flow.fill()
    assert list(flow.pending.values()) == [1, *range(2, 8)]
