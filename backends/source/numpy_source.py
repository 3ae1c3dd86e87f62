"""NumPy source of plans: straight-line Python without dispatch, and the function that it compiles to."""

from __future__ import annotations

import functools
import importlib
import math
import re
from collections.abc import Callable, Iterator
from sys import getrefcount
from typing import Any

import numpy as np

from func.backends.array_helpers.arrays import scipy_of
from func.backends.quiet import quietly
from func.backends.source.plans import COMPILED, LINES, Loop, Plan, PlanStep

_DOTTED = re.compile(r"\b(np|scipy|ml_dtypes)((?:\.[A-Za-z_]\w*)+)")
MOST_KEPT = 1 << 28
"""Scratch memory beyond this many bytes is freed after every call."""
KEPT_RESULTS = 2
"""The number of arrays of an output to watch for reuse."""


def _references_of_a_local() -> int:
    array = np.empty(0)
    return getrefcount(array)


UNSHARED = _references_of_a_local()
"""The reference count, as getrefcount gives it, of an array that only one local variable holds."""
BLOCK = 1 << 14
"""Elements of a block."""
INDENT = "    "


def compile_plan(plan: Plan, xp: Any = np) -> Callable[..., tuple[Any, ...]]:
    """The plan as a function of its inputs that returns the tuple of its outputs."""
    names: dict[str, Any] = {}
    statements = list(_statements(plan, names, xp))
    text = "\n".join([statement for statement, _ in statements])
    names |= plan.calls
    names |= {name: _on_backend(value, xp) for name, value in plan.constants.items()}
    names |= plan.helpers
    names["np"] = xp
    if plan.buffers or plan.results:
        names["memory"] = RecycledMemory(plan, xp)
    names[LINES] = [line for statement, line in statements for _ in statement.splitlines()]
    exec(compile(text, COMPILED, "exec"), names)
    run: Any = names["run"] if xp is not np else functools.partial(quietly, names["run"])  # CuPy never warns
    run.text = text
    return run  # type: ignore[no-any-return]


def _on_backend(value: Any, xp: Any) -> Any:
    """A constant on the backend of the other arrays."""
    return xp.asarray(value) if xp is not np and type(value) is np.ndarray else value


class _Scipy:
    """scipy's sub-modules for a namespace."""

    def __init__(self, xp: Any) -> None:
        self._xp = xp

    def __getattr__(self, module: str) -> Any:
        return scipy_of(self._xp, module)


def _bound(text: str, names: dict[str, Any], roots: dict[str, Any]) -> str:
    """The text with np.add as np_add, which is looked up once."""

    def replace(match: re.Match[str]) -> str:
        name = match[0].replace(".", "_")
        if name not in names:
            value = roots[match[1]]
            for part in match[2][1:].split("."):
                value = getattr(value, part)
            names[name] = value
        return name

    return _DOTTED.sub(replace, text)


def _statements(plan: Plan, names: dict[str, Any], xp: Any) -> Iterator[tuple[str, Any]]:
    """The lines of the function, each with the user's line that it computes, or None."""
    roots: dict[str, Any] = {"np": xp, "scipy": _Scipy(xp)}
    if any(["ml_dtypes." in item.text for item in plan.items if isinstance(item, PlanStep)]):
        roots["ml_dtypes"] = importlib.import_module("ml_dtypes")
    yield f"def run({', '.join(plan.inputs)}):", None
    if plan.buffers:
        yield f"{INDENT}frame = memory.take()", None
        yield f"{INDENT}{', '.join(plan.buffers)}, = frame", None
    for number, name in enumerate(plan.results):
        yield f"{INDENT}{name} = memory.result({number})", None
    for item in plan.items:
        for statement, line in _item_lines(item):
            yield INDENT + _bound(statement, names, roots), line
    if plan.buffers:
        yield f"{INDENT}memory.give(frame)", None
    yield f"{INDENT}return ({''.join([f'{output}, ' for output in plan.outputs])})", None


def _item_lines(item: PlanStep | Loop) -> Iterator[tuple[str, Any]]:
    if isinstance(item, PlanStep):
        yield item.text if item.target is None else f"{item.target} = {item.text}", item.line
        for name in item.drops:
            yield f"{name} = None", None
        return
    for name, whole in item.views:
        yield f"{name}_all = {whole}.reshape(-1)", None
    for name, dtype in item.scratch:
        yield f"{name}_all = np.empty({BLOCK}, np.{np.dtype(dtype).name})", None
    yield f"for start in range(0, {item.length}, {BLOCK}):", None
    yield f"{INDENT}stop = start + {BLOCK}", None
    for name, _ in item.views:
        yield f"{INDENT}{name} = {name}_all[start:stop]", None
    if item.scratch:
        is_exact = item.length % BLOCK == 0
        for name, _ in item.scratch:
            part = f"{name}_all" if is_exact else f"{name}_all[:{item.length} - start]"
            yield f"{INDENT}{name} = {part}", None
    for step in item.steps:
        yield INDENT + step.text, step.line
    ends = [*[name for name, _ in item.views], *[name for name, _ in item.scratch]]
    yield " = ".join([*[f"{name}_all" for name in ends], *ends, *item.drops, "None"]), None


class RecycledMemory:
    """The scratch memory of a plan: a frame of buffers for each running call, and results that no caller holds."""

    def __init__(self, plan: Plan, xp: Any) -> None:
        self._plan = plan
        self._xp = xp
        self._frames: list[Any] = []
        self._keeps = plan.scratch_bytes <= MOST_KEPT
        self._results: list[list[Any]] = [[] for _ in plan.results]
        self._shapes = list(plan.results.values())

    def take(self) -> Any:
        """A frame for one call: an array for every buffer."""
        try:
            return self._frames.pop()
        except IndexError:
            pass
        xp = self._xp
        slots = [xp.empty(size, np.uint8) for size in self._plan.slots]
        frame = []
        for buffer in self._plan.buffers.values():
            size = math.prod(buffer.shape) * buffer.dtype.itemsize
            frame.append(slots[buffer.slot][:size].view(buffer.dtype).reshape(buffer.shape))
        return tuple(frame)

    def give(self, frame: Any) -> None:
        """Return a frame at the end of its call."""
        if self._keeps:
            self._frames.append(frame)

    def result(self, number: int) -> Any:
        """Memory for an output: that of an earlier output that the caller has dropped, or fresh memory."""
        watched = self._results[number]
        for position in range(len(watched)):
            try:
                array = watched.pop(0)
            except IndexError:
                break
            if getrefcount(array) == UNSHARED:
                watched.append(array)
                return array
            if position + 1 < KEPT_RESULTS:
                watched.append(array)
        shape, dtype = self._shapes[number]
        array = self._xp.empty(shape, dtype)
        watched.append(array)
        return array
