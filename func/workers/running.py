"""Running the chunks of a call: bounded, in order if necessary, and again after the loss of a worker."""

from __future__ import annotations

import concurrent.futures as cf
import queue
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from func.backends import namespace_of
from func.backends.records import Record
from func.errors import ExecutorError, RaggedChunksError, WorkerLostError, WorkerLostWarning
from func.interpreters.calls.partition import select
from func.interpreters.calls.remote_map import Joined, bind_data, innermost_function, is_joined
from func.interpreters.core import shape_of
from func.interpreters.host.source import user_line
from func.workers.engines import ChunkEngine, HereEngine, closed
from func.workers.shipping import Missing, Parcel
from func.workers.tasks import ChunkTask, ResidentAnswer

ATTEMPTS = 3
"""The number of times that a chunk may lose its worker."""
PATIENCE = 5.0
"""Seconds without an answer after which an engine must check whether it still lives."""
MOST_CALLS = 32
"""The number of functions whose bytes a runner stores."""


class ChunkPullbacks(Record):
    """Pullbacks of the chunks of a call, each on the worker of its forward run."""

    handles: Sequence[Any]
    chunks: Sequence[Any]
    joined: Joined
    is_split: tuple[bool, ...]
    """Whether each active operand is split."""

    def __reduce__(self) -> Any:
        return type(None), ()  # elsewhere the forward runs repeat


class ChunkRunner:
    """Computes the chunks of `remote_map` calls on an engine. The number of workers does not affect the chunks.

    Runners are equal if they compute the same chunks of the same data on the same executor.
    """

    def __init__(
        self,
        engine: ChunkEngine,
        label: str,
        chunk_rows: int | None = None,
        data: Any = None,
        progress: bool = False,
        unit: str = "elements",
    ) -> None:
        self.engine = engine
        self.label = label
        self.chunk_rows = chunk_rows
        self.data = data
        """The runner's data: an object with `chunks()`, `example()` and `note_rows`; None for none."""
        self.progress = progress
        self.unit = unit
        self._parcels: dict[Any, Parcel] = {}

    def _key(self) -> Any:
        return type(self.engine), id(self.engine.executor), self.label, self.chunk_rows, id(self.data), self.unit

    def __eq__(self, other: object) -> bool:
        return type(other) is ChunkRunner and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> Any:
        here = HereEngine(None)  # an executor stays; anything sent elsewhere computes there
        return ChunkRunner, (here, self.label, self.chunk_rows, self.data, self.progress, self.unit)

    def __repr__(self) -> str:
        return f"<runner of {self.label} on {self.engine.name}>"

    @property
    def name(self) -> str:
        """The name of the call in messages."""
        return self.label

    @property
    def keeps_results(self) -> bool:
        """Whether pullbacks can stay where forward runs were."""
        return self.engine.keeps and self.data is None

    def example(self, fun: Any) -> Any:
        """A function with an example of the runner's data, for a trace."""
        return fun if self.data is None else bind_data(fun, self.data.example())

    def __call__(self, fun: Any, split: tuple[bool, ...], joined: Joined, args: Sequence[Any]) -> list[Any]:
        return self._run(fun, split, joined, args, None)[0]

    def forward_and_keep(
        self, fun: Any, active: tuple[bool, ...], split: tuple[bool, ...], joined: Joined, args: Sequence[Any]
    ) -> tuple[list[Any], Any]:
        """The outputs, and the argument of `resident_cotangents`: the pullbacks, each where its forward run was."""
        outs, handles, chunks = self._run(fun, split, joined, args, active)
        return outs, ChunkPullbacks(handles, chunks, joined, tuple(select(split, active)))

    def resident_cotangents(self, handle: ChunkPullbacks, ct: dict[int, Any]) -> list[Any]:
        """The cotangents of the active operands."""
        handles, chunks, joined, is_split = handle.handles, handle.chunks, handle.joined, handle.is_split
        positions = tuple(sorted(ct))

        def start(engine: ChunkEngine, i: int, again: bool) -> Any:
            begin, stop, _ = chunks[i]
            parts = [ct[place][begin:stop] if is_joined(joined, place) else ct[place] for place in positions]
            return engine.pull_back(
                handles[i], positions, ChunkTask(i, self._chunk_label(i, chunks[i]), tuple(parts), None)
            )

        results = Results(is_split, chunks, self.label)
        for i, answer in self._answers(len(chunks), start, chunks):
            results.add(i, answer.outs)
        return results.finished()

    def _run(
        self, fun: Any, split: tuple[bool, ...], joined: Joined, args: Sequence[Any], active: Any
    ) -> tuple[list[Any], list[Any], list[Any]]:
        rows = [shape_of(arg)[0] for arg, is_split in zip(args, split, strict=True) if is_split]
        operands = select(args, split)
        whole = tuple(select(args, [not is_split for is_split in split]))
        constants = Parcel(whole, self._what())
        call = self._parcel(fun, split)
        source = self._chunks(rows[0] if rows else None)
        chunks: list[Any] = []
        handles: list[Any] = []
        innermost = innermost_function(fun)

        def start(engine: ChunkEngine, i: int, again: bool) -> Any:
            while len(chunks) <= i:
                chunk = next(source, None)
                if chunk is None:
                    return None
                chunks.append(chunk)
            begin, stop, data = chunks[i]
            parts = tuple([x[begin:stop] for x in operands])
            task = ChunkTask(i, self._chunk_label(i, chunks[i]), parts, data)
            if active is None:
                return engine.submit(call, constants, None, task, again)
            return engine.keep(call, constants, active, task)

        results = Results(joined, chunks, self.label)
        for i, answer in self._answers(None, start, chunks):
            if active is not None:
                handles.extend([None] * (i + 1 - len(handles)))
                handles[i] = answer if isinstance(answer, ResidentAnswer) else answer[1]
                answer = answer.answer if isinstance(answer, ResidentAnswer) else answer[0]
            results.add(i, answer.outs)
            if answer.note is not None:
                self._take_note(innermost, i, answer.note)
            if self.data is not None and i < len(chunks):
                chunks[i] = (*chunks[i][:2], None)  # the runner does not store a sent batch
        return results.finished(), handles, chunks

    def _take_note(self, innermost: Any, i: int, note: Any) -> None:
        before = getattr(innermost, "note", None)
        if before is not None and before != note:
            raise RaggedChunksError(
                f"{self.label}: chunk {i} returned the tree {_tree_of(note)}, and others {_tree_of(before)}\n"
                "Return one tree for all arguments."
            )
        innermost.note = note

    def _what(self) -> str:
        return f"{self.label}: what it maps"

    def _parcel(self, fun: Any, split: tuple[bool, ...]) -> Parcel:
        """The function with the places of its operands; pickles it once."""
        key = fun, split
        if key not in self._parcels:
            while len(self._parcels) >= MOST_CALLS:
                self._parcels.pop(next(iter(self._parcels)))
            self._parcels[key] = Parcel((fun, split), self._what())
        return self._parcels[key]

    def _chunks(self, rows: int | None) -> Iterator[tuple[int, int, Any]]:
        """(first row, row after the last, data) of each chunk."""
        if self.data is not None:
            yield from self.data.chunks()
            return
        assert rows is not None
        size = self.chunk_rows or max(rows, 1)
        for start in range(0, max(rows, 1), size):
            yield start, min(start + size, rows), None

    def _chunk_label(self, i: int, chunk: tuple[int, int, Any]) -> str:
        start, stop, _ = chunk
        return f"{self.label}: chunk {i} ({self.unit} {start} to {stop - 1})"

    def _answers(
        self, count: int | None, start: Callable[[ChunkEngine, int, bool], Any], chunks: Sequence[Any]
    ) -> Iterator[tuple[int, Any]]:
        """(number, answer) of each chunk in order of arrival, with a bounded number of chunks under way.

        `start` returns None for a chunk behind the last one.
        """
        flow = _Flow(self, self.engine, count, start, chunks)
        try:
            yield from flow.answers()
        except RuntimeError:
            flow.engine.check()  # name an error of an engine that is gone
            raise
        except Exception as error:
            if flow.engine.is_own(error) and flow.engine.is_shut():
                raise closed(flow.engine.name) from None
            raise
        finally:
            flow.end()


_OF_DASK = "KilledWorker", "FutureCancelledError", "FuturesCancelledError"
_OF_RAY = "WorkerCrashedError", "OutOfMemoryError", "NodeDiedError", "RaySystemError"
_LOST = frozenset([*_OF_DASK, *_OF_RAY])
"""The errors of engines that repeat tasks themselves, after they have given up."""


def _of_the_task(error: Exception) -> Exception:
    """The task's error; Ray wraps it."""
    cause = getattr(error, "cause", None)
    is_of_ray = type(error).__module__.partition(".")[0] == "ray"
    return cause if is_of_ray and isinstance(cause, Exception) else error


def _tree_of(note: Any) -> Any:
    return getattr(note, "out_spec", note)


class _Flow:
    """The chunks of one call on their way."""

    def __init__(
        self,
        runner: ChunkRunner,
        engine: ChunkEngine,
        count: int | None,
        start: Callable[..., Any],
        chunks: Sequence[Any],
    ) -> None:
        self.label = runner.label
        self.chunks = chunks
        self.engine = engine
        self.count = count
        self.start = start
        self.own: ChunkEngine | None = None
        self.pending: dict[Any, int] = {}
        self.done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.waiting: deque[int] = deque()
        self.next = 0
        self.first_open = 0
        """All chunks before this one have answered."""
        self.answered: set[int] = set()
        self.lost: dict[int, int] = {}
        """The number of workers that died while a chunk was under way; such chunks run alone."""
        self.bar = None
        if runner.progress:
            from tqdm.auto import tqdm  # a widget in notebooks; only progress bars need it

            total = count if count is not None else runner.data.count() if runner.data is not None else None
            self.bar = tqdm(desc=runner.label, unit="chunk", total=total)

    def answers(self) -> Iterator[tuple[int, Any]]:
        while True:
            self.fill()
            if not self.pending:
                return
            try:
                future = self.done.get(timeout=PATIENCE)
            except queue.Empty:
                self.engine.check()
                continue
            i = self.pending.pop(future, None)
            if i is None:
                continue
            try:
                answer = self.engine.result(future)
            except (cf.BrokenExecutor, cf.CancelledError) as error:
                if isinstance(error, cf.CancelledError) and self.engine.is_shut():
                    raise closed(self.engine.name) from None
                self.recover(i, error)
                continue
            except Exception as error:
                if self.engine.is_own(error) and self.engine.is_shut():
                    raise closed(self.engine.name) from None
                if type(error).__name__ in _LOST:
                    raise self.lost_for_good([i], str(error)) from None
                raise _of_the_task(error).with_traceback(None) from None
            if isinstance(answer, Missing):
                self.submit(i, True)
                continue
            self.lost.pop(i, None)
            self.answered.add(i)
            while self.first_open in self.answered:
                self.answered.remove(self.first_open)
                self.first_open += 1
            if self.bar is not None:
                self.bar.update()
            resident = getattr(future, "resident", None)
            yield i, answer if resident is None else (answer, resident)

    def fill(self) -> None:
        """Start at most two chunks for each worker, and not too far ahead of the first one."""
        workers = self.engine.workers()
        room = 1 if self.lost else 2 * workers + 1
        while len(self.pending) < room:
            if self.waiting:
                i = self.waiting.popleft()
            elif self.lost or self.next >= min(self.first_open + 8 * workers + 8, self.count or sys.maxsize):
                return
            else:
                i = self.next
                self.next += 1
            if not self.submit(i, False):
                self.count = i or -1
                self.next = i
                return

    def submit(self, i: int, again: bool) -> bool:
        try:
            future = self.start(self.engine, i, again)
        except cf.BrokenExecutor as error:
            if not self.pending and not self.answered and not self.first_open and not self.lost:
                raise ExecutorError(
                    f"{self.label}: the executor {self.engine.name} is broken, as a worker of it died before\n"
                    "Make a new one."
                ) from None
            self.recover(i, error)
            return True
        if future is None:
            return False
        self.pending[future] = i
        future.add_done_callback(self.done.put)
        return True

    def recover(self, i: int, error: BaseException) -> None:
        """Replace dead workers, and run the chunks that may have killed them one at a time."""
        suspects = sorted({i, *self.pending.values()})
        self.pending.clear()
        for suspect in suspects:
            self.lost[suspect] = self.lost.get(suspect, 0) + 1
        if max([self.lost[suspect] for suspect in suspects]) >= ATTEMPTS:
            raise self.lost_for_good(suspects, str(error)) from None
        fresh = self.engine.replacement()
        if fresh is None:
            raise self.lost_for_good(suspects, str(error) or type(error).__name__) from None
        message = (
            f"{self.label}: a worker of {self.engine.name} died while {_listed(suspects)} ran; they are done again on "
            "fresh workers"
        )
        line = user_line(2)
        if line is None:
            warnings.warn(message, WorkerLostWarning, stacklevel=2)
        else:
            warnings.warn_explicit(message, WorkerLostWarning, line.file, line.number)
        self.close_own()
        self.engine = self.own = fresh
        self.done = queue.SimpleQueue()
        self.waiting.extendleft(reversed(suspects))

    def lost_for_good(self, suspects: Sequence[int], reason: str) -> WorkerLostError:
        return WorkerLostError(
            f"{self.label}: workers of {self.engine.name} died while {_listed(suspects)} ran: {reason}\n"
            "Run such a chunk without an executor to see why: too little memory, or compiled code that crashes."
        )

    def end(self) -> None:
        """Cancel everything of the call."""
        if self.bar is not None:
            self.bar.close()
        self.engine.cancel(list(self.pending))
        self.close_own()

    def close_own(self) -> None:
        if self.own is not None:
            self.own.close()
            self.own = None


def _listed(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:8])) + (", ..." if len(numbers) > 8 else "")
    return f"chunk {shown}" if len(numbers) == 1 else f"chunks {shown}"


class Results:
    """The outputs of the chunks: writes joined ones to their places, and adds sums in a fixed order."""

    def __init__(self, joined: Joined, chunks: Sequence[Any], label: str) -> None:
        self._joined = joined
        self._chunks = chunks
        self._label = label
        self._whole: list[Any] = []
        self._kinds: list[tuple[tuple[int, ...], Any]] = []
        self._early_sums: dict[int, list[Any]] = {}
        self._next = 0
        self._sums: list[tuple[int, list[Any]]] = []
        """Sums of 2ᵏ chunks by their k, so that the order of additions depends on the number of chunks alone."""
        self._rows = 0

    def add(self, i: int, outs: list[Any]) -> None:
        """The outputs of a chunk, in any order of chunks."""
        if not self._kinds:
            self._kinds = [(shape_of(out), out.dtype) for out in outs]
            self._whole = [None] * len(outs)
            self._first = i
        if len(outs) != len(self._kinds):
            raise RaggedChunksError(
                f"{self._label}: chunk {i} returned {len(outs)} arrays, and chunk {self._first} {len(self._kinds)}\n"
                "Return one tree for all arguments."
            )
        start, stop, _ = self._chunks[i]
        summed = []
        for place, out in enumerate(outs):
            if is_joined(self._joined, place):
                self._put(i, place, out, start, stop)
            else:
                if shape_of(out) != self._kinds[place][0]:
                    raise self._ragged(i, place, shape_of(out), self._kinds[place][0])
                summed.append(out)
        if summed:
            self._early_sums[i] = summed
            while self._next in self._early_sums:
                self._push(0, self._early_sums.pop(self._next))
                self._next += 1

    def _put(self, i: int, place: int, out: Any, start: int, stop: int) -> None:
        shape = shape_of(out)
        if not shape or shape[0] != stop - start or shape[1:] != self._kinds[place][0][1:]:
            raise self._ragged(i, place, shape, (stop - start, *self._kinds[place][0][1:]))
        rows = self._chunks[-1][1] if len(self._chunks) else stop
        whole = self._whole[place]
        if whole is None:
            whole = self._whole[place] = namespace_of((out,)).empty((rows, *shape[1:]), out.dtype)
        elif whole.dtype != out.dtype:
            whole = self._whole[place] = whole.astype(np.result_type(whole, out))
        if len(whole) < rows:
            longer = namespace_of((out,)).empty((max(rows, 2 * len(whole)), *shape[1:]), whole.dtype)
            longer[: len(whole)] = whole
            whole = self._whole[place] = longer
        whole[start:stop] = out

    def _ragged(self, i: int, place: int, shape: Any, expected: Any) -> RaggedChunksError:
        return RaggedChunksError(
            f"{self._label}: output {place} of chunk {i} has shape {shape}, where {expected} fits the others\n"
            "Pad to one shape, or return something independent of the chunk."
        )

    def _push(self, level: int, values: list[Any]) -> None:
        while self._sums and self._sums[-1][0] == level:
            before = self._sums.pop()[1]
            values = [_added(x, y) for x, y in zip(before, values, strict=True)]
            level += 1
        self._sums.append((level, values))

    def finished(self) -> list[Any]:
        """The outputs of the whole."""
        total: list[Any] | None = None
        while self._sums:
            values = self._sums.pop()[1]
            total = values if total is None else [_added(x, y) for x, y in zip(values, total, strict=True)]
        sums = iter(total or [])
        rows = self._chunks[-1][1] if len(self._chunks) else 0
        outs = []
        for place, whole in enumerate(self._whole):
            if is_joined(self._joined, place):
                outs.append(whole if len(whole) == rows else whole[:rows].copy())
            else:
                outs.append(next(sums)[()])
        return outs


def _added(x: Any, y: Any) -> Any:
    """x + y, in the memory of x if that is a private array."""
    if isinstance(x, np.ndarray) and x.shape and x.flags.owndata and x.flags.writeable:
        return np.add(x, y, out=x) if x.dtype == np.result_type(x, y) else x + y
    return x + y
