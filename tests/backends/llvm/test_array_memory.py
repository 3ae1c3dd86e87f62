"""The caching allocator: arrays never share memory, little of it waits, and only transforms see it."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any

import numpy as np
import pytest
from numpy._core.multiarray import get_handler_name

import func
from func.backends.array_memory import MEMORY, enter, leave
from func.backends.llvm.memory import allocator, allocator_code

RNG = np.random.default_rng(20261124)

pytestmark = pytest.mark.skipif(
    allocator.why_unavailable() is not None, reason=f"no caching allocator: {allocator.why_unavailable()}"
)


@pytest.fixture(autouse=True)
def installed() -> Iterator[None]:
    MEMORY.install()
    with func.config.override(array_cache="64 MiB"):
        yield
    func.clear_caches()


def word(name: str) -> int:
    """The value of a variable of the allocator."""
    gc.collect()
    compiled = allocator.machine.existing_code(allocator_code.allocator_module, allocator.KEY)
    assert compiled is not None
    return ctypes.c_int64.from_address(compiled.address(name)).value


@contextmanager
def allocating() -> Iterator[None]:
    """Inside, NumPy allocates as in a transform."""
    mark = enter()
    try:
        yield
    finally:
        leave(mark)


def test_live_arrays_never_share_memory() -> None:
    with allocating():
        live: list[tuple[np.ndarray[Any, Any], int]] = []
        for step in range(2000):
            size, value = int(2 ** RNG.uniform(10, 21)), step % 251
            kind = RNG.integers(0, 4)
            if kind == 0:
                array = np.zeros(size, np.uint8)
                assert not array.any()
            elif kind == 1:
                array = np.empty(size, np.uint8)
            elif kind == 2 and live:
                array, old = live.pop(int(RNG.integers(len(live))))
                common = min(size, array.size)
                array.resize(size, refcheck=False)
                assert (array[:common] == old).all()
            else:
                live = live[-20:]
                continue
            array[...] = value
            live.append((array, value))
        assert all([(array == value).all() for array, value in live])


def test_results_live_on_and_waiting_memory_is_bounded() -> None:
    x = RNG.normal(size=(200, 200))
    gradient = func.grad(lambda x: np.sum(np.sin(x) * np.exp(x)))
    first = gradient(x)
    copies = [gradient(x) for _ in range(300)]
    assert all([np.array_equal(first, other) for other in copies])
    del copies
    assert 0 < MEMORY.waiting() <= 64 << 20
    with func.config.override(array_cache=1 << 20):
        assert MEMORY.waiting() <= 1 << 20
    np.testing.assert_array_equal(first, gradient(x))


def test_in_use_and_waiting_together_stay_below_the_highest_use() -> None:
    with allocating():
        live: list[Any] = []
        for size in (8, 3, 5, 1, 7, 2, 6, 4, 9, 3):
            live = [*live[-2:], np.empty(size << 20, np.uint8)]
            assert word(allocator_code.USED) + MEMORY.waiting() <= word(allocator_code.PEAK)
        del live
    assert word(allocator_code.USED) + MEMORY.waiting() <= word(allocator_code.PEAK)


def test_only_transforms_use_it() -> None:
    seen = []

    def f(x: Any) -> Any:
        seen.append(get_handler_name(np.empty(100_000)))
        return np.sum(x * x)

    def handler_outside() -> str:
        return get_handler_name(np.empty(100_000))

    x = np.ones(3)
    for transform in (func.grad, func.vmap, func.jacrev, func.jacfwd, func.value_and_grad):
        transform(f)(x)
        assert handler_outside() == "default_allocator"
    assert set(seen) == {"func"}
    with pytest.raises(ZeroDivisionError):
        func.grad(lambda x: 1 // 0)(1.0)
    assert handler_outside() == "default_allocator"
    with func.config.override(array_cache=0):
        seen.clear()
        func.grad(f)(x)
        assert seen == ["default_allocator"]
    other = threading.Thread(target=lambda: seen.append(handler_outside()))
    func.grad(lambda x: (other.start(), other.join(), np.sum(x * x))[2])(x)
    assert seen[-1] == "default_allocator"


def test_a_handler_of_the_user_stays() -> None:
    assert MEMORY.allocator is not None
    variable, own = MEMORY.allocator.variable, MEMORY.allocator.handler

    def inside() -> None:
        variable.set(own)  # stands for any handler but NumPy's default
        mark = enter()
        assert mark is None
        leave(mark)
        assert variable.get() is own

    copy_context().run(inside)


@pytest.mark.parametrize("run", ["transform", "two levels", "backward"])
def test_what_an_interrupt_left_in_force_ends_with_the_next_transform(run: str) -> None:
    def square(x: Any) -> Any:
        return np.sum(x * x)

    def backward() -> None:
        square(func.tensor(np.ones(3), requires_grad=True)).backward()

    def interrupted() -> None:
        assert MEMORY.allocator is not None
        enter()  # and no `leave`
        assert get_handler_name(np.empty(3)) == "func"
        if run == "transform":
            func.grad(square)(np.ones(3))
        elif run == "two levels":
            func.hessian(square)(np.ones(3))
        else:
            backward()
        assert get_handler_name(np.empty(3)) == "default_allocator"

    copy_context().run(interrupted)


def test_backward_of_tensors_uses_it() -> None:
    names = []
    x = func.tensor(np.ones(100_000), requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: names.append(get_handler_name(np.empty(100_000))))
    (y * y).sum().backward()
    assert names == ["func"]


def test_threads_share_it() -> None:
    x = RNG.normal(size=(120, 120))
    gradient = func.grad(lambda x: np.sum(np.sin(x) * np.cos(x) ** 2))
    expected = gradient(x)
    wrong = []

    def work() -> None:
        for _ in range(20):
            if not np.array_equal(gradient(x), expected):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("size", [-1, 1.5, "much", "1 parsec", True, None, 1 << 70])
def test_limits_that_are_none(size: Any) -> None:
    before = func.config.array_cache
    with pytest.raises(func.errors.ArgumentError, match=r"func\.config\.array_cache must be a number of bytes"):
        func.config.array_cache = size
    assert func.config.array_cache == before


def test_arrays_outlive_the_modules() -> None:
    """Arrays that the end of the process frees, in the main thread and after a fork."""
    program = """
import os, sys
import numpy as np, func
from func.backends.array_memory import MEMORY
MEMORY.install()
gradient = func.grad(lambda x: np.sum(np.sin(x) ** 2))
kept = sys.modules["kept"] = [gradient(np.ones(100_000)) for _ in range(5)]
child = os.fork()
kept.append(gradient(np.ones(100_000)))
if child:
    assert os.waitpid(child, 0)[1] == 0
print("done", flush=True)
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["done", "done"]


def test_slow_calls_bring_it_and_fast_ones_do_not() -> None:
    program = """
import time
import numpy as np, func
from func.backends import array_memory
gradient = func.grad(lambda x: np.sum(x * x))
array_memory.SLOW, slow = 10.0, array_memory.SLOW  # the machine may be busy
for _ in range(100):
    gradient(np.ones(10))
assert array_memory.MEMORY.allocator is None
array_memory.SLOW = slow
for _ in range(20):
    func.grad(lambda x: (time.sleep(0.002), np.sum(x * x))[1])(np.ones(10))
assert array_memory.MEMORY.allocator is not None
"""
    environment = {**os.environ, "FUNC_VALIDATE": "0"}  # which is slow itself
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
