"""An executor for tests, which pickles its tasks, counts, and runs them in this process or in a pool."""

from __future__ import annotations

import concurrent.futures as cf
import pickle
import threading
from typing import Any, Self


class Serial:
    """Runs every task at once (or `late`, in a thread), after a round through pickle."""

    def __init__(self, workers: int = 1, pool: Any = None, late: bool = False) -> None:
        self._max_workers = workers
        self._pool = pool
        self._late = cf.ThreadPoolExecutor(1) if late else None
        self._lock = threading.Lock()
        self.sent = self.tasks = self.open = self.most = 0

    def submit(self, function: Any, *args: Any) -> cf.Future[Any]:
        given = pickle.dumps((function, args))
        with self._lock:
            self.sent += len(given)
            self.tasks += 1
            self.open += 1
            self.most = max(self.most, self.open)
        if self._pool is not None:
            return self._pool.submit(function, *args)  # type: ignore[no-any-return]
        if self._late is not None:
            return self._late.submit(self._run, given)
        future: cf.Future[Any] = cf.Future()
        try:
            future.set_result(self._run(given))
        except Exception as error:
            future.set_exception(error)
        return future

    def _run(self, given: bytes) -> Any:
        try:
            function, args = pickle.loads(given)
            return pickle.loads(pickle.dumps(function(*args)))
        finally:
            with self._lock:
                self.open -= 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._late is not None:
            self._late.shutdown()
