"""Garbage collection is rare while programs are traced and compiled, and as it was before and after."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import func
from func.interpreters.host import garbage
from func.interpreters.host.garbage import rare_collections

USUAL = (701, 11, 12)


@pytest.fixture(autouse=True)
def usual_thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(*USUAL)
    yield
    gc.set_threshold(*before)


def test_thresholds_inside_and_after() -> None:
    with rare_collections():
        inside = gc.get_threshold()
        with rare_collections():
            assert gc.get_threshold() == inside
        assert gc.get_threshold() == inside
    assert inside[0] == garbage.RARE[0]
    assert gc.get_threshold() == USUAL
    with pytest.raises(ValueError, match="an error"), rare_collections():
        raise ValueError("an error")
    assert gc.get_threshold() == USUAL


def test_what_somebody_else_sets_stays() -> None:
    with rare_collections():
        gc.set_threshold(500, 5, 5)
    assert gc.get_threshold() == (500, 5, 5)
    gc.set_threshold(0)
    switched_off = gc.get_threshold()
    with rare_collections():
        assert gc.get_threshold() == switched_off
    assert gc.get_threshold() == switched_off


def test_tracing_and_compiling() -> None:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        seen.append(gc.get_threshold())
        return np.sin(x) * 2.0

    func.jit(func.grad(f))(1.0)
    assert seen[0][0] == garbage.RARE[0]
    assert gc.get_threshold() == USUAL

    def fails(x: Any) -> Any:
        raise ValueError("an error")

    with pytest.raises(ValueError, match="an error"):
        func.jit(fails)(1.0)
    assert gc.get_threshold() == USUAL


def test_threads_end_with_the_usual_thresholds() -> None:
    gate = threading.Barrier(4)

    def work() -> None:
        gate.wait()
        for _ in range(2000):
            with rare_collections():
                pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert gc.get_threshold() == USUAL


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_has_the_usual_thresholds() -> None:
    with rare_collections():
        process = os.fork()
        if process == 0:
            os._exit(0 if gc.get_threshold() == USUAL else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
