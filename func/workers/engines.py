"""The common interface of executors, and the peculiarities of those of the standard library, joblib and Dask."""

from __future__ import annotations

import concurrent.futures as cf
import contextlib
import functools
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from func.errors import ArgumentError, ExecutorError, WorkerLostError
from func.workers.shipping import SMALL, Parcel, Sent
from func.workers.tasks import ChunkTask, answer_of, compute, compute_here, resident_cotangents

_BUSY = threading.local()
"""The executors for which a thread computes a chunk."""


class ChunkEngine:
    """An executor: how chunks get to workers, and what happens when workers are lost.

    Works with any object whose `submit(function, *args)` returns futures with `add_done_callback` and `result`.
    """

    keeps = False
    """Whether a result can stay on its worker and be an argument of a later task."""

    name: str = ""
    """The name in messages."""

    def __init__(self, executor: Any) -> None:
        self.executor = executor
        self.name = self.name or type(executor).__name__
        self._sent: dict[str, int] = {}

    def workers(self) -> int:
        """The number of chunks computed at once, as far as known."""
        count = getattr(self.executor, "_max_workers", None)
        return count if isinstance(count, int) and count > 0 else os.cpu_count() or 1

    def submit(self, call: Parcel, constants: Parcel, active: Any, task: ChunkTask, again: bool) -> Any:
        """A future of the chunk's answer. `again`: a worker has asked for the parcels."""
        return self._submit(compute, self._sealed(call, again), self._sealed(constants, again), active, task)

    def _sealed(self, parcel: Parcel, again: bool) -> Sent:
        """A parcel for a task: with its content for the first tasks, as many as there are workers."""
        content, token = parcel.bytes(), parcel.token()
        if len(content) > SMALL and not again:
            count = self._sent.get(token, 0)
            if count >= self.workers():
                return Sent(token, None)
            self._sent[token] = count + 1
        return Sent(token, content)

    def _submit(self, function: Callable[..., Any], *args: Any) -> Any:
        try:
            return self.executor.submit(function, *args)
        except cf.BrokenExecutor:
            raise
        except RuntimeError as error:
            if "shutdown" in str(error) or "closed" in str(error):
                raise closed(self.name) from None
            raise

    def keep(self, call: Parcel, constants: Parcel, active: Any, task: ChunkTask) -> Any:
        """A future of the answer of a forward run that stores its pullback, if `keeps`."""
        raise NotImplementedError

    def pull_back(self, resident: Any, positions: tuple[int, ...], task: ChunkTask) -> Any:
        """A future of the cotangents of a chunk with a stored pullback, if `keeps`."""
        raise NotImplementedError

    def is_shut(self) -> bool:
        """Whether someone has shut down the executor; a broken one is not shut down."""
        flags = [getattr(self.executor, name, False) is True for name in ("_shutdown", "_shutdown_thread")]
        return any(flags) and not getattr(self.executor, "_broken", False)

    def result(self, future: Any) -> Any:
        """The result of a future that is done."""
        return future.result()

    def is_own(self, error: BaseException) -> bool:
        """Whether the executor itself raised the error of a future, rather than its task."""
        return False

    def cancel(self, futures: Sequence[Any]) -> None:
        """Cancel the tasks that have not begun."""
        for future in futures:
            with contextlib.suppress(Exception):  # from an executor that is gone; each has its own kind
                future.cancel()

    def replacement(self) -> ChunkEngine | None:
        """An engine like this one with fresh workers, after some have died; None if that is impossible."""
        return None

    def check(self) -> None:
        """Check a silent engine: raises WorkerLostError if nothing can arrive any more."""

    def close(self) -> None:
        """Called at the end of the call for which `replacement` made it."""


class HereEngine(ChunkEngine):
    """No executor: the caller computes chunks one after the other."""

    keeps = True
    name = "the calling thread"

    def workers(self) -> int:
        return 1

    def submit(self, call: Parcel, constants: Parcel, active: Any, task: ChunkTask, again: bool) -> Any:
        return self._done(compute_here, call.value, constants.value, active, task)

    def keep(self, call: Parcel, constants: Parcel, active: Any, task: ChunkTask) -> Any:
        """A future of a chunk's ResidentAnswer."""
        return self.submit(call, constants, active, task, False)

    def pull_back(self, resident: Any, positions: tuple[int, ...], task: ChunkTask) -> Any:
        """A future of the cotangents of a chunk with a stored pullback."""
        return self._done(resident_cotangents, resident, positions, task)

    def _done(self, function: Callable[..., Any], *args: Any) -> cf.Future[Any]:
        future: cf.Future[Any] = cf.Future()
        try:
            future.set_result(function(*args))
        except Exception as error:
            future.set_exception(error)
        return future


class ThreadEngine(HereEngine):
    """Threads of this process, without pickling. Inside one of its tasks a chunk runs at once."""

    name = "ThreadPoolExecutor"

    def workers(self) -> int:
        return ChunkEngine.workers(self)

    def _done(self, function: Callable[..., Any], *args: Any) -> cf.Future[Any]:
        if self.executor in getattr(_BUSY, "executors", ()):  # a task that waits for itself could take forever
            return super()._done(function, *args)
        future: cf.Future[Any] = self._submit(_busy_with, self.executor, function, *args)
        return future


def _busy_with(executor: Any, function: Callable[..., Any], *args: Any) -> Any:
    before = getattr(_BUSY, "executors", ())
    _BUSY.executors = (*before, executor)
    try:
        return function(*args)
    finally:
        _BUSY.executors = before


class ProcessEngine(ChunkEngine):
    """A pool of processes, which is useless after one of them has died."""

    def replacement(self) -> ChunkEngine | None:
        pool = self.executor
        kind = type(pool)
        if kind is cf.ProcessPoolExecutor:
            fresh = cf.ProcessPoolExecutor(
                pool._max_workers,
                mp_context=pool._mp_context,
                initializer=pool._initializer,
                initargs=pool._initargs,
                max_tasks_per_child=getattr(pool, "_max_tasks_per_child", None),
            )
            return ProcessEngine(fresh)
        loky = sys.modules.get(kind.__module__)
        if hasattr(loky, "get_reusable_executor"):
            return ProcessEngine(loky.get_reusable_executor(max_workers=pool._max_workers))  # type: ignore[union-attr]
        return None

    def close(self) -> None:
        if type(self.executor) is cf.ProcessPoolExecutor:
            self.executor.shutdown(wait=True, cancel_futures=True)


class DaskEngine(ChunkEngine):
    """Workers of a Dask cluster. Results stay there; the scheduler runs tasks where their arguments are."""

    keeps = True
    GRACE = 30.0
    """Seconds that a cluster may be without workers."""
    PATIENCE = 5.0
    """Seconds in which tasks are cancelled."""

    def __init__(self, executor: Any) -> None:
        super().__init__(executor)
        self.client = getattr(executor, "_client", executor)
        self._options = dict(getattr(executor, "_kwargs", {}))
        if (retries := getattr(executor, "_retries", None)) is not None:
            self._options["retries"] = retries
        self._shared: dict[str, Any] = {}
        self._alone = 0.0

    name = "Dask"

    def workers(self) -> int:
        self._open()
        try:
            counts = self.client.nthreads().values()
        except Exception:
            raise closed(self.name) from None  # it is closing
        return max(1, sum([int(count) for count in counts]))

    def submit(self, call: Parcel, constants: Parcel, active: Any, task: ChunkTask, again: bool) -> Any:
        futures = task.data.futures(self.client) if hasattr(task.data, "futures") else None
        without_futures = task if futures is None else task._replace(data=task.data.without_futures())
        parcels = (*self._parcel(call), *self._parcel(constants))
        return self._task(task, on_dask, *parcels, active, without_futures, *(futures or ()))

    def keep(self, call: Parcel, constants: Parcel, active: Any, task: ChunkTask) -> Any:
        """A future of the answer; its attribute `resident` is that of the ResidentAnswer, which stays on the worker."""
        resident = self.submit(call, constants, active, task, False)
        answer = self._task(task, answer_of, resident)
        answer.resident = resident
        return answer

    def pull_back(self, resident: Any, positions: tuple[int, ...], task: ChunkTask) -> Any:
        """A future of the cotangents of a chunk with a stored pullback."""
        return self._task(task, resident_cotangents, resident, positions, task)

    def _parcel(self, parcel: Parcel) -> tuple[str, Any]:
        """Name and content; large content becomes data of the cluster."""
        content, token = parcel.bytes(), parcel.token()
        if len(content) <= SMALL:
            return token, content
        if token not in self._shared:
            self._open()
            self._shared[token] = self.client.scatter(content, hash=False)
        return token, self._shared[token]

    def _open(self) -> None:
        if self.is_shut():
            raise closed(self.name)

    def is_shut(self) -> bool:
        """Whether someone has closed the client or shut down its executor."""
        return getattr(self.executor, "_shutdown", None) is True or self.client.status not in (
            "running",
            "connecting",
            "newly-created",
        )

    def result(self, future: Any) -> Any:
        """The result, which the client gathers; one that is being closed may never answer."""
        while True:
            start = time.monotonic()
            try:
                return future.result(timeout=self.PATIENCE)
            except TimeoutError:
                if time.monotonic() - start < self.PATIENCE:  # the task's own error
                    raise
                self.check()

    def is_own(self, error: BaseException) -> bool:
        """Whether the client raised the error, as during its close, rather than a task.

        Its code may fail then with any error of Python's.
        """
        place = error.__traceback__
        while place is not None and place.tb_next is not None:
            place = place.tb_next
        module = "" if place is None else place.tb_frame.f_globals.get("__name__", "")
        return "distributed" in [name.partition(".")[0] for name in (type(error).__module__, module)]

    def cancel(self, futures: Sequence[Any]) -> None:
        """A closing client may never answer; the scheduler forgets its tasks in any case."""
        if futures and not self.is_shut():
            cancelled = functools.partial(self.client.cancel, list(futures), asynchronous=True)
            with contextlib.suppress(Exception):
                self.client.sync(cancelled, callback_timeout=self.PATIENCE)

    def _task(self, task: ChunkTask, function: Callable[..., Any], *args: Any) -> Any:
        self._open()
        key = f"{task.label.partition(':')[0].replace(' ', '-')}-{os.urandom(8).hex()}"
        return self.client.submit(function, *args, key=key, pure=False, **self._options)

    def check(self) -> None:
        if self.client.status not in ("running", "connecting"):
            raise closed(self.name)
        now = time.monotonic()
        try:
            has_workers = bool(self.client.nthreads())
        except Exception:
            raise closed(self.name) from None  # it is being closed
        if has_workers:
            self._alone = now
        elif self._alone and now - self._alone > self.GRACE:
            raise WorkerLostError(
                f"the Dask cluster has been without workers for {self.GRACE:.0f} seconds\n"
                "Start workers, or make a new cluster."
            )
        else:
            self._alone = self._alone or now


def on_dask(
    call_token: str, call: Any, constants_token: str, constants: Any, active: Any, task: ChunkTask, *blocks: Any
) -> Any:
    """`compute` on a worker of Dask, with the blocks of data there."""
    if blocks:
        task = task._replace(data=task.data.with_blocks(blocks))
    return compute(Sent(call_token, call), Sent(constants_token, constants), active, task)


def closed(name: str) -> ExecutorError:
    """The error for an executor that takes no more tasks."""
    return ExecutorError(f"the executor {name} has been shut down\nMake a new one, and use it inside its `with` block.")


def engine_of(executor: Any, transform: str) -> ChunkEngine:
    """The engine of an executor.

    Raises:
        ArgumentError: It is not an executor.
    """
    if executor is None:
        return HereEngine(None)
    if isinstance(executor, ChunkEngine):
        return executor
    module = (type(executor).__module__ or "").partition(".")[0]
    if module == "distributed" and (hasattr(executor, "_client") or hasattr(executor, "get_executor")):
        return DaskEngine(executor)
    if isinstance(executor, cf.ThreadPoolExecutor):
        return ThreadEngine(executor)
    if not callable(getattr(executor, "submit", None)):
        raise ArgumentError(
            f"func.{transform}: executor must have a method submit() that returns futures, as those of "
            f"concurrent.futures have, not {type(executor).__name__}\n"
            "Write executor=concurrent.futures.ProcessPoolExecutor(), joblib's get_reusable_executor(), or "
            "client.get_executor() of Dask."
        )
    if hasattr(executor, "_max_workers"):
        return ProcessEngine(executor)
    return ChunkEngine(executor)
