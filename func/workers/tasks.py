"""The work of a worker: one chunk."""

from __future__ import annotations

import os
import pickle
import socket
import traceback
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from func.errors import ChunkError, TravelError
from func.interpreters import drivers
from func.interpreters.calls.partition import select
from func.interpreters.calls.remote_map import bind_data, innermost_function
from func.interpreters.compiled_backward import passes_by_nodes
from func.interpreters.core import ZERO, Tracer, zeros_like
from func.interpreters.host.source import hide_engine_frames
from func.transforms.pullback import graph_of, graph_table, rebuild_graph
from func.workers.shipping import Missing, Sent, opened


class ChunkTask(NamedTuple):
    """One chunk of a call, without the common parcels."""

    number: int
    label: str
    """The name of the chunk in messages."""
    parts: tuple[Any, ...]
    """The chunk's rows of the operands that are split."""
    data: Any
    """The chunk's part of the runner's data: an object with `load()`, or None."""


class Answer(NamedTuple):
    """The result of a worker."""

    outs: list[Any]
    note: Any
    """A message of the innermost function in addition to its outputs, such as their tree."""


class ResidentAnswer(NamedTuple):
    """The answer of a forward run, and its pullback, which stay on its worker."""

    answer: Answer
    pullback: ResidentPullback


class ResidentPullback(drivers.PullbackFlat):
    """The pullback of a chunk; it pickles in case an engine moves it."""

    def __init__(self, fun: Any, primals: Sequence[Any], active: Sequence[int]) -> None:
        super().__init__(fun, primals, active)
        self._primals = [primals[i] for i in active]

    def pulled(self, cts: dict[int, Any]) -> list[Any]:
        """The cotangents of the active arguments."""
        return [zeros_like(x) if ct is ZERO else ct for x, ct in zip(self._primals, self(cts), strict=True)]

    def __getstate__(self) -> Any:
        nodes = graph_of([*self._nodes, *self._leaves])
        table, numbers = graph_table(nodes)
        places = [None if node is None else numbers[node[0]] for node in self._nodes]
        return table, places, [numbers[leaf[0]] for leaf in self._leaves], self._primals

    def __setstate__(self, state: Any) -> None:
        table, places, leaves, self._primals = state
        nodes = rebuild_graph(table)
        self._nodes = [None if place is None else nodes[place] for place in places]
        self._leaves = [nodes[place] for place in leaves]
        self.outs = []


def compute(function: Sent, constants: Sent, active: tuple[bool, ...] | None, task: ChunkTask) -> Any:
    """One chunk in another process: an Answer, with `active` a ResidentAnswer, or a Missing."""
    fun = opened(function)
    values = fun if isinstance(fun, Missing) else opened(constants)
    if isinstance(values, Missing):
        return values
    for value in values:
        if isinstance(value, np.ndarray):
            value.setflags(write=False)  # other chunks use it too
    return compute_here(fun, values, active, task)


def compute_here(call: Any, values: Sequence[Any], active: tuple[bool, ...] | None, task: ChunkTask) -> Any:
    """One chunk in this process."""
    try:
        fun, split = call
        parts, rest = iter(task.parts), iter(values)
        args = [next(parts) if is_split else next(rest) for is_split in split]
        if task.data is not None:
            fun = bind_data(fun, task.data.load())
        with passes_by_nodes():
            if active is None:
                outs = list(fun(*args))
                return Answer(checked(outs), note_of(fun))
            resident_pullback = ResidentPullback(fun, args, select(range(len(active)), active))
        outs, resident_pullback.outs = resident_pullback.outs, []
        return ResidentAnswer(Answer(checked(outs), note_of(fun)), resident_pullback)
    except Exception as error:
        failed = travelling(error, task)
    raise failed  # outside of the handler, so that no pickle of it includes the other error


def checked(outs: list[Any]) -> list[Any]:
    """Outputs as plain arrays; traced values of another transform do not reach a worker."""
    for i, out in enumerate(outs):
        if type(out) is Tracer:
            raise TravelError(
                "the mapped function uses a value that an outer transform traces and that func did not find in it\n"
                "Pass it as an argument."
            )
        outs[i] = np.asarray(out) if not hasattr(out, "dtype") else out
    return outs


def note_of(fun: Any) -> Any:
    """The message of the innermost function in addition to its outputs."""
    return getattr(innermost_function(fun), "note", None)


def answer_of(resident: ResidentAnswer) -> Answer:
    """The part of an answer for the caller."""
    return resident.answer


def resident_cotangents(resident: ResidentAnswer, positions: tuple[int, ...], task: ChunkTask) -> Any:
    """The cotangents of a chunk whose forward run was here."""
    try:
        with passes_by_nodes():
            cotangents = resident.pullback.pulled(dict(zip(positions, task.parts, strict=True)))
        return Answer(checked(cotangents), None)
    except Exception as error:
        failed = travelling(error, task)
    raise failed


def travelling(error: Exception, task: ChunkTask) -> Exception:
    """An error with a note of its origin, in a picklable form."""
    hide_engine_frames(error)
    text = "".join(traceback.format_exception(error)).rstrip()
    here = f"process {os.getpid()} of {socket.gethostname()}"
    note = f"{task.label} failed, in {here}:\n{text}"
    error.__traceback__ = error.__cause__ = error.__context__ = None
    error.add_note(note)
    try:
        pickle.dumps(error)
        reduced: Any = error.__reduce_ex__(4)
        make, arguments = reduced[:2]  # like engines without their own reducers
        again = make(*arguments)
        if type(again) is type(error) and str(again) == str(error):
            return error
    except Exception:
        pass  # its class does not pickle, or cannot be rebuilt from its arguments
    return ChunkError(note)
