"""Collectives over an MPI communicator: messages, checks that all ranks send the same ones, and the end after errors.

func uses a private duplicate of the user's communicator, so that its messages never meet those of the user. Each
communicator has one duplicate, as an attribute of MPI that is freed with it. Before each message the ranks *meet*: one
reduction of four integers compares their next actions, reports failed ranks, and carries one flag. So all ranks notice
a rank that failed, returned early or took another branch before a message waits for it.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from func.errors import CollectiveError, CommunicatorError, RankError
from func.interpreters.host.source import at_line, hide_engine_frames
from func.interpreters.processes import Ranks
from func.message_passing.message_counts import MessageCounts
from func.transforms.boundary import is_value

PATIENCE = 10.0
"""Seconds that a rank which has failed waits for the others to come to their next meeting; then it ends them."""
_EAGER_TESTS = 20
"""The number of checks for a message before a rank lets other processes run in between."""
_EAGER_SECONDS = 0.005
"""How long a rank waits before it sleeps between looks."""
_NAP = 1e-4
_TIME_SLICE = 1e-3
"""A yield longer than this means that another program computes on the processor."""
_CROWDED = 0.2
"""The sleep of a rank, instead of yields, after it has noticed such a program."""


class Channel:
    """The private duplicate of a communicator, and its state."""

    def __init__(self, comm: Any) -> None:
        self.comm = comm
        self.is_freed = False
        self.has_announced = False
        """Whether all ranks know the current error."""
        self.unfinished: list[Any] = []
        """An abandoned message, with the buffers into which MPI may still write; no other one can follow it."""
        self.communicators: dict[Any, Communicator] = {}


class _TooLate(Exception):
    """Other ranks did not come to a meeting in time."""


def mpi() -> Any:
    """mpi4py's module MPI, which the owner of a communicator has imported."""
    return sys.modules.get("mpi4py.MPI")


@functools.cache
def _keyval() -> Any:
    """The key of the duplicate among a communicator's attributes."""

    def freed(comm: Any, keyval: Any, channel: Channel) -> None:
        channel.is_freed = True
        channel.comm.Free()

    return mpi().Comm.Create_keyval(delete_fn=freed)


def communicator_of(comm: Any, check: bool, timeout: float | None) -> Communicator:
    """The collectives over a communicator; all ranks make them together at the first call.

    Raises:
        CommunicatorError: This is not a communicator of mpi4py, or was freed.
    """
    check_communicator(comm)
    channel: Channel | None = comm.Get_attr(_keyval())
    if channel is None:
        channel = Channel(comm.Dup())
        comm.Set_attr(_keyval(), channel)
    key = check, timeout
    if key not in channel.communicators:
        channel.communicators[key] = Communicator(channel, check, timeout)
    return channel.communicators[key]


def check_communicator(comm: Any) -> None:
    """Raise CommunicatorError for anything but a live communicator."""
    module = mpi()
    if module is None or not isinstance(comm, module.Comm):
        kind = "None" if comm is None else f"a {type(comm).__name__}"
        hint = "; did you mean func.spmd(f, comm)(x)?" if is_value(comm) else ""
        raise CommunicatorError(
            f"func.spmd: comm must be a communicator of mpi4py, got {kind}{hint}\n"
            'Write `from mpi4py import MPI` and func.spmd(f, MPI.COMM_WORLD); `pip install "func[mpi]"` installs it.'
        )
    if module.Is_finalized():
        raise CommunicatorError("func.spmd: MPI has been finalized; call MPI.Finalize() after the last collective")
    if comm == module.COMM_NULL:
        raise CommunicatorError(
            "func.spmd: comm is MPI.COMM_NULL: the communicator was freed, or this process is not a member of it\n"
            "Free a communicator after its last use, and call func.spmd on its members alone."
        )
    if comm.Is_inter():
        raise CommunicatorError(
            "func.spmd: comm connects two groups of processes; collectives need one group: comm.Merge() makes one"
        )


class Communicator(Ranks):
    """The ranks of an MPI communicator."""

    def __init__(self, channel: Channel, check: bool, timeout: float | None) -> None:
        super().__init__(channel.comm.Get_size(), channel.comm.Get_rank())
        self.channel = channel
        self.check = check
        self.timeout = timeout
        self.meters: tuple[MessageCounts, ...] = ()
        """Counts the messages of the running calls."""
        self.crowded_until = 0.0

    def __reduce__(self) -> NoReturn:
        raise CommunicatorError(
            "a program that communicates cannot be pickled or saved: its communicator lives in this process\n"
            "Save the function, and call func.spmd on it in the processes that shall run it."
        )

    # Collectives

    def psum(self, x: Any, label: str) -> Any:
        return self._reduced("psum", x, np.add, label)

    def pmax(self, x: Any, label: str) -> Any:
        return self._reduced("pmax", x, np.maximum, label)

    def pmin(self, x: Any, label: str) -> Any:
        return self._reduced("pmin", x, np.minimum, label)

    def _reduced(self, name: str, x: Any, ufunc: Any, label: str) -> Any:
        x, out = _contiguous(x), np.empty(x.shape, x.dtype)
        kind, operation = _reduction(x.dtype, ufunc)
        send = [x, x.size, kind]
        self._exchange(
            name, label, x, x.nbytes, x.nbytes, lambda comm: comm.Iallreduce(send, [out, out.size, kind], operation)
        )
        return out

    def all_gather(self, x: Any, label: str) -> Any:
        x, out = _contiguous(x), np.empty((self.size, *x.shape), x.dtype)
        others = (self.size - 1) * x.nbytes
        self._exchange("all_gather", label, x, x.nbytes, others, lambda comm: comm.Iallgather(_bytes(x), _bytes(out)))
        return out

    def psum_scatter(self, x: Any, label: str) -> Any:
        x, out = _contiguous(x), np.empty(x.shape[1:], x.dtype)
        kind, operation = _reduction(x.dtype, np.add)
        self._exchange(
            *("psum_scatter", label, x, x.nbytes - out.nbytes, out.nbytes),
            lambda comm: comm.Ireduce_scatter_block([x, out.size, kind], [out, out.size, kind], operation),
        )
        return out

    def all_to_all(self, x: Any, label: str) -> Any:
        x, out = _contiguous(x), np.empty(x.shape, x.dtype)
        others = x.nbytes - x.nbytes // self.size
        self._exchange("all_to_all", label, x, others, others, lambda comm: comm.Ialltoall(_bytes(x), _bytes(out)))
        return out

    def ppermute(self, x: Any, pairs: tuple[tuple[int, int], ...], label: str) -> Any:
        x = _contiguous(x)
        sources = [source for source, destination in pairs if destination == self.index]
        destinations = [destination for source, destination in pairs if source == self.index]
        if sources == [self.index]:
            out, sources, destinations = x.copy(), [], []
        else:
            out = np.empty(x.shape, x.dtype) if sources else np.zeros(x.shape, x.dtype)

        def start(comm: Any) -> Any:
            requests = [comm.Irecv(_bytes(out), source) for source in sources]
            return [*requests, *[comm.Isend(_bytes(x), destination) for destination in destinations]]

        is_needed = bool(sources or destinations)
        sent, received = x.nbytes * len(destinations), x.nbytes * len(sources)
        self._exchange("ppermute", label, x, sent, received, start, is_needed, (pairs,))
        return out

    def broadcast(self, x: Any, root: int, label: str) -> Any:
        x = _contiguous(x)
        out = x.copy()
        sent, received = (x.nbytes, 0) if root == self.index else (0, x.nbytes)
        self._exchange(
            *("broadcast", label, x, sent, received, lambda comm: comm.Ibcast(_bytes(out), root)), details=(root,)
        )
        return out

    def reduce(self, x: Any, root: int, label: str) -> Any:
        x, out = _contiguous(x), np.zeros(x.shape, x.dtype)
        kind, operation = _reduction(x.dtype, np.add)
        sent, received = (0, x.nbytes) if root == self.index else (x.nbytes, 0)
        target = [out, out.size, kind] if root == self.index else None
        self._exchange(
            *("reduce", label, x, sent, received),
            lambda comm: comm.Ireduce([x, x.size, kind], target, operation, root),
            details=(root,),
        )
        return out

    def agree(self, flag: bool) -> bool:
        self.note()
        if self.size == 1:
            return flag
        what = ("the decision whether a derivative is NaN",)
        if self.check:
            return self._meet(what, flag)
        decision = np.array(flag, np.int64)
        self._wait([self._comm(what).Iallreduce(mpi().IN_PLACE, decision, mpi().MAX)], what, decision)
        return bool(decision)

    def _exchange(
        self,
        name: str,
        label: str,
        x: Any,
        sent: int,
        received: int,
        start: Callable[[Any], Any],
        is_needed: bool = True,
        details: tuple[Any, ...] = (),
    ) -> None:
        """One collective: `start(comm)` begins it and returns its requests."""
        what = name, label, x.dtype.str if x.dtype.kind != "V" else x.dtype.name, x.shape, *details
        comm = self._comm(what)
        self.note()
        if self.check and self.size > 1:
            self._meet(what)
        if not is_needed or not x.size:
            return
        requests = start(comm)
        self._wait(requests if isinstance(requests, list) else [requests], what, start)
        if self.size > 1:
            for meter in self.meters:
                meter.note(name, sent, received)

    def _comm(self, what: tuple[Any, ...]) -> Any:
        if self.channel.is_freed:
            raise CommunicatorError(
                f"the communicator of {_described(what)} was freed{at_line()}\n"
                "Free a communicator after the last collective and the last derivative of one."
            )
        if self.channel.unfinished:
            raise CollectiveError(
                f"{_described(what)} is not possible: on this communicator a message was abandoned{at_line()}\n"
                "Let the error that gave it up leave func.spmd, which ends all ranks; or free the communicator."
            )
        return self.channel.comm

    def _wait(
        self, requests: Sequence[Any], what: tuple[Any, ...], buffers: Any, patience: float | None = None
    ) -> None:
        """Wait until messages are complete, and let other processes run meanwhile."""
        patience = self.timeout if patience is None else patience
        begin = time.perf_counter()
        looks = 0
        try:
            for request in requests:
                while not request.Test():
                    looks += 1
                    if looks < _EAGER_TESTS:
                        continue
                    elapsed = time.perf_counter() - begin
                    if patience is not None and elapsed > patience:
                        raise _TooLate
                    if elapsed < _EAGER_SECONDS:
                        self._give_way()
                    else:
                        time.sleep(_NAP)
        except BaseException as error:
            self.channel.unfinished.append((requests, buffers))
            if isinstance(error, _TooLate) and patience == self.timeout:
                raise CollectiveError(
                    f"rank {self.index} of {self.size} has waited {patience:g} s for the others in "
                    f"{_described(what)}{at_line()}\n"
                    "They compute longer than `timeout`, or take another branch that has no such collective."
                ) from None
            raise

    def _give_way(self) -> None:
        """Let another process run, if one waits for this processor.

        The shortest sleep takes some 60 µs on Linux. A yielding rank returns at once, unless a computing program takes
        the processor for its time slice. The scheduler prefers a sleeping rank to such a program.
        """
        now = time.perf_counter()
        if not hasattr(os, "sched_yield") or now < self.crowded_until:
            time.sleep(0)
            return
        os.sched_yield()
        if time.perf_counter() - now > _TIME_SLICE:
            self.crowded_until = now + _CROWDED

    # Meetings

    def _meet(
        self,
        what: tuple[Any, ...],
        flag: bool = False,
        failure: BaseException | None = None,
        patience: float | None = None,
    ) -> bool:
        """Compare the next action with all ranks; whether one of them has set the flag.

        Raises:
            RankError: Another rank has failed, and this one has not.
            CollectiveError: Ranks are about to do different things.
        """
        self.channel.has_announced = False
        comm = self._comm(what)
        digest = _digest(what)
        largest = np.array([digest, -digest, failure is not None, flag], np.int64)
        request = comm.Iallreduce(mpi().IN_PLACE, largest, mpi().MAX)
        self._wait([request], what, largest, patience)
        for meter in self.meters:
            meter.checks += 1
        highest, lowest, has_failed, is_set = largest.tolist()
        if has_failed:
            self._report(what, failure)
        elif highest != -lowest:
            self.channel.has_announced = True
            plans: list[str] = comm.allgather(f"{_described(what)}{at_line()}")
            raise CollectiveError(_difference(plans))
        return bool(is_set)

    def _report(self, what: tuple[Any, ...], failure: BaseException | None) -> None:
        """Exchange the errors of the ranks that have failed; the others raise RankError."""
        if isinstance(failure, Exception):
            hide_engine_frames(failure)
        text = None if failure is None else "".join(traceback.format_exception(failure)).rstrip()
        self.channel.has_announced = True
        texts: list[str | None] = self.channel.comm.allgather(text)
        failed = [rank for rank, text in enumerate(texts) if text is not None]
        if failure is None:
            others = f" (and ranks {', '.join(map(str, failed[1:]))})" if len(failed) > 1 else ""
            raise RankError(
                f"rank {failed[0]} of {self.size}{others} failed while rank {self.index} was in {_described(what)}"
                f"{at_line()}\nThe error of rank {failed[0]}:\n{texts[failed[0]]}"
            )

    def finish(self) -> None:
        """The return of the function on this rank: meet those that have returned too, or detect one that has not."""
        if self.check and self.size > 1:
            self._meet(("the end of the function",))

    def fail(self, error: BaseException) -> None:
        """An error of the function on this rank: tell the others, or end them if they do not listen."""
        if self.size == 1 or self.channel.has_announced:
            return
        reason = "the other ranks do not listen, with check=False or after an abandoned message"
        if self.check and not self.channel.is_freed and not self.channel.unfinished:
            try:
                self._meet(("an error",), failure=error, patience=PATIENCE)
                return
            except _TooLate:
                reason = f"the other ranks did not come to their next collective within {PATIENCE:g} s"
        sys.stdout.flush()
        if isinstance(error, Exception):
            hide_engine_frames(error)
        lines = "".join(traceback.format_exception(error)).rstrip()
        print(f"func.spmd: rank {self.index} of {self.size} failed\n{lines}", file=sys.stderr)
        print(f"func.spmd: {reason}; all ranks are ended by MPI_Abort", file=sys.stderr, flush=True)
        self.channel.comm.Abort(1)
        os._exit(1)


def _contiguous(x: Any) -> np.ndarray[Any, Any]:
    """An array in C order, of rank 0 too."""
    return np.asarray(x, order="C")


def _bytes(x: np.ndarray[Any, Any]) -> list[Any]:
    """An array as MPI takes data that it only moves, of any dtype."""
    return [x.reshape(-1).view(np.uint8), mpi().BYTE]


def _described(what: tuple[Any, ...]) -> str:
    """An action for messages."""
    if len(what) == 1:
        return str(what[0])
    name, label, dtype, shape, *details = what
    more = f" {details[0]}" if details else ""
    return f"{name}{more} of {np.dtype(dtype).name}{list(shape)} for {label}"


@functools.lru_cache(4096)
def _digest(what: tuple[Any, ...]) -> int:
    """A number below 2^62 that represents an action: the same in all processes."""
    return int.from_bytes(hashlib.blake2b(repr(what).encode(), digest_size=8).digest(), "big") >> 2


def _difference(plans: Sequence[str]) -> str:
    """The message for ranks with different actions."""
    groups: dict[str, list[int]] = {}
    for rank, plan in enumerate(plans):
        groups.setdefault(plan, []).append(rank)
    lines = [
        f"  {'ranks' if len(ranks) > 1 else 'rank'} {', '.join(map(str, ranks))}: {plan}"
        for plan, ranks in groups.items()
    ]
    return (
        "ranks are about to do different things:\n"
        + "\n".join(lines)
        + "\nAll ranks call the same collectives in the same order, on trees and shapes that agree.\nWhere a branch or "
        "the length of a loop depends on the rank, compute the collective on all ranks, and choose with np.where; "
        "decide by values that are the same on all ranks, such as a psum."
    )


_MPI_SUMS = frozenset("bhilqBHILQfdgFDG")
"""The dtypes whose sums MPI computes."""
_MPI_ORDERS = frozenset("bhilqBHILQ")
"""The dtypes whose extrema MPI computes; for floating point numbers it does not define the result for NaN."""


@functools.cache
def _reduction(dtype: np.dtype[Any], ufunc: Any) -> tuple[Any, Any]:
    """(datatype, operation) of MPI for a ufunc on numbers of a dtype; None if NumPy must compute."""
    module = mpi()
    if dtype.char in (_MPI_SUMS if ufunc is np.add else _MPI_ORDERS) and dtype.isnative:
        operation = {np.add: module.SUM, np.maximum: module.MAX, np.minimum: module.MIN}[ufunc]
        return module._typedict[dtype.char], operation

    def combine(x: Any, y: Any, datatype: Any) -> None:
        out = np.frombuffer(y, dtype)
        ufunc(np.frombuffer(x, dtype), out, out=out)

    return module.BYTE.Create_contiguous(dtype.itemsize).Commit(), module.Op.Create(combine, commute=True)
