"""func can read running code under tracers, profilers, and tools of sys.monitoring."""

from __future__ import annotations

import cProfile
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import func


@contextmanager
def tracing(opcodes: bool) -> Iterator[None]:
    def trace(frame: Any, event: str, argument: Any) -> Any:
        frame.f_trace_opcodes = opcodes
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


@contextmanager
def profiling() -> Iterator[None]:
    before = sys.getprofile()
    sys.setprofile(lambda *event: None)
    try:
        yield
    finally:
        sys.setprofile(before)


@contextmanager
def monitoring() -> Iterator[None]:
    monitor: Any = vars(sys)["monitoring"]
    names = ("LINE", "INSTRUCTION", "CALL", "PY_START", "PY_RETURN", "JUMP", "PY_YIELD", "PY_RESUME")
    events = [getattr(monitor.events, name) for name in names]
    monitor.use_tool_id(4, "test_bytecode")
    for event in events:
        monitor.register_callback(4, event, lambda *event: None)
    monitor.set_events(4, sum(events))
    try:
        yield
    finally:
        monitor.set_events(4, 0)
        monitor.free_tool_id(4)


WATCHED: dict[str, Any] = {
    "settrace": lambda: tracing(False),
    "settrace of opcodes": lambda: tracing(True),
    "setprofile": profiling,
    "cProfile": cProfile.Profile,
}
if sys.version_info >= (3, 12):
    WATCHED["monitoring"] = monitoring


def converts(x: Any) -> Any:
    name = "asarray"
    named = getattr(np, name)([x, x])
    by_default = getattr(np, "array", None)([x])

    def imports() -> Any:
        from numpy import array

        return array([x])

    listed = np.array([np.array([x * i]) for i in range(3)])
    shown = "%.3f" % x + f"{x:.2f}"  # noqa: UP031
    assert shown == "1.5001.50"
    return np.sum(named) + np.sum(by_default) + np.sum(imports()) + np.sum(listed)


def leaves(x: Any) -> Any:
    return np.sqrt(float(x))


def writes(x: Any) -> Any:
    plain = np.zeros(2)
    plain[0] = x
    return plain[0]


@pytest.mark.parametrize("watch", WATCHED)
def test_code_is_read_while_it_is_watched(watch: str) -> None:
    with WATCHED[watch]():
        for _ in range(20):  # until the interpreter has specialised its instructions
            assert func.grad(converts)(1.5) == 7.0
            with pytest.raises(func.errors.TracerConversionError, match=r"float\(\) of a traced value"):
                func.grad(leaves)(1.5)
            with pytest.raises(func.errors.TracerConversionError, match=r"np\.zeros_like\(x, shape=\.\.\.\)"):
                func.grad(writes)(1.5)
