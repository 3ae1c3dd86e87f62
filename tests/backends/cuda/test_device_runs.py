"""Executables on a device: captured runs, memory, NaN-safe variants, errors."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import func
from func.backends.cuda import device_runs
from func.backends.cuda.device import DeviceIndexError, KernelError
from func.errors import DeviceError
from tests.support import cuda_host
from tests.support.cuda_cases import Case, run_together
from tests.support.cuda_host import HostDevice, needs_compiler
from tests.support.device_double import DeviceArray, namespace, to_device

pytestmark = [needs_compiler, pytest.mark.filterwarnings("ignore:(invalid|divide)")]


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[HostDevice]:
    """A device on which jitted functions of arrays of the double run."""
    own = HostDevice(DeviceArray)
    monkeypatch.setattr(namespace, "device_of", lambda args: own)
    yield own


def test_arguments_choose_the_device(device: HostDevice) -> None:
    step = func.jit(lambda x: np.sum(np.sin(x)))
    x = np.linspace(0, 1, 50)
    out = step(to_device(x))
    assert isinstance(out, DeviceArray) and device.calls
    np.testing.assert_allclose(out.get(), np.sum(np.sin(x)), rtol=1e-15)
    assert "__global__" in (step.lower(to_device(x)).source or "")
    assert isinstance(step(x), np.float64)


def test_the_same_addresses_are_captured_once(device: HostDevice) -> None:
    step = func.jit(lambda x: np.sin(x) * 2)
    x = to_device(np.linspace(0, 1, 2000))
    out = DeviceArray(np.empty(2000))
    device.empty = lambda shape, dtype: out  # type: ignore[method-assign]
    for _ in range(6):
        step(x)
        np.testing.assert_allclose(out.get(), np.sin(x.get()) * 2, rtol=1e-15)
        x.get()[:] += 0.25
    assert device.captures == 1


def test_kernels_are_in_place_before_another_thread_starts_them(
    device: HostDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = cuda_host.built

    def slowly(source: str) -> Any:
        time.sleep(0.3)
        return compiled(source)

    monkeypatch.setattr(cuda_host, "built", slowly)
    x = np.linspace(0, 1, 2000)
    with ThreadPoolExecutor(3) as pool:  # each compiles the same kernel
        found = list(pool.map(lambda _: func.jit(lambda x: np.sin(x) * 2)(to_device(x)).get(), range(3)))
    for one in found:
        np.testing.assert_allclose(one, np.sin(x) * 2, rtol=1e-15)


def test_other_addresses_are_copied_to_one_place(device: HostDevice) -> None:
    step = func.jit(lambda x, y: (x + y, np.sum(x * y)))
    kept = []
    for number in range(device_runs.MISSES + 8):
        x, y = np.arange(7.0) + number, np.arange(7.0)[::-1] * number
        kept.append((to_device(x), to_device(y)))
        total, product = step(*kept[-1])
        kept.append((total, product))
        np.testing.assert_array_equal(total.get(), x + y)
        np.testing.assert_allclose(product.get(), np.sum(x * y), rtol=1e-15)
    assert device.captures == 1


def test_numbers_of_the_host_are_arguments(device: HostDevice) -> None:
    step = func.jit(lambda x, a, b: x * a + b)
    x = to_device(np.arange(5.0))
    for number in range(4):
        out = step(x, number, np.float64(0.5))
        np.testing.assert_array_equal(out.get(), np.arange(5.0) * number + 0.5)


def test_constants_choose_the_device(device: HostDevice) -> None:
    weights = to_device(np.arange(3.0))
    out = func.jit(lambda a: weights * a)(2.0)
    assert isinstance(out, DeviceArray) and device.calls
    np.testing.assert_array_equal(out.get(), [0, 2, 4])
    alone = func.jit(lambda: (weights + 1, np.zeros_like(weights)))()
    assert [type(each) for each in alone] == [DeviceArray] * 2


def test_small_constants_of_the_device_are_folded(device: HostDevice) -> None:
    def text(weights: Any, x: Any) -> Any:
        return func.jit(lambda x: x * (np.sqrt(weights) + 1) * np.ones_like(weights)).lower(x).source

    x, weights = to_device(np.ones(3)), np.arange(3.0)
    assert text(to_device(weights), x) == text(np.asarray(weights), x)
    assert "sqrt" not in text(to_device(weights), x)


def test_results_take_the_memory_of_donated_arguments(device: HostDevice) -> None:
    step = func.jit(lambda w, g: (np.sum(w), w - 0.1 * np.sin(g)), donate_argnums=(0,))
    start, g = np.arange(5000.0), to_device(np.linspace(0, 1, 5000))
    want = np.sum(start), start - 0.1 * np.sin(g.get())

    def check(w: DeviceArray, is_taken: bool) -> None:
        before = w.get().copy()
        total, new = step(w, g)
        np.testing.assert_allclose(total.get(), want[0], rtol=1e-13)
        np.testing.assert_array_equal(new.get(), want[1])
        assert np.shares_memory(new._host, w._host) == is_taken
        if not is_taken:
            np.testing.assert_array_equal(w.get(), before)

    check(to_device(start), True)
    kept = [to_device(start)]
    for _ in range(3):
        kept.append(step(kept[-1], g)[1])
    assert all([np.shares_memory(each._host, kept[0]._host) for each in kept])
    check(DeviceArray(np.stack([start, start])[1]), False)  # a view of what others may see
    check(DeviceArray(np.repeat(start, 2)[::2]), False)
    w = to_device(start)
    np.testing.assert_array_equal(step(w, w)[1].get(), start - 0.1 * np.sin(start))
    np.testing.assert_array_equal(w.get(), start)


def test_what_may_be_computed_again_is_not_overwritten(device: HostDevice) -> None:
    x = to_device(np.array([0.0, 4.0, -1.0, 0.25]))
    slope = func.jit(func.grad(vanishing), donate_argnums=(0,))
    np.testing.assert_array_equal(slope(x).get(), [0, 0.25, 0, 1])
    np.testing.assert_array_equal(x.get(), [0.0, 4.0, -1.0, 0.25])
    pick = func.jit(lambda x, i: x[i] + 1, donate_argnums=(0,))
    np.testing.assert_array_equal(pick(x, to_device(np.array([3, 2, 1, 0]))).get(), [1.25, 0, 5, 1])
    np.testing.assert_array_equal(x.get(), [0.0, 4.0, -1.0, 0.25])
    double = func.jit(lambda x: x * 2, donate_argnums=(0,), compiler="numpy")
    np.testing.assert_array_equal(double(x).get(), [0, 8, -2, 0.5])
    np.testing.assert_array_equal(x.get(), [0.0, 4.0, -1.0, 0.25])


def test_views_of_arrays_are_read(device: HostDevice) -> None:
    x = np.arange(24.0).reshape(4, 6)
    out = func.jit(lambda x: x * 2)(DeviceArray(x.T[1:]))
    np.testing.assert_array_equal(out.get(), x.T[1:] * 2)


def vanishing(x: Any) -> Any:
    return np.sum(np.where(x > 0, np.sqrt(x), 0.0))


def test_the_nan_safe_variant_runs_without_waiting(device: HostDevice) -> None:
    slope = func.jit(func.grad(vanishing))
    x = np.array([0.0, 4.0, -1.0, 0.25])
    for _ in range(4):
        np.testing.assert_array_equal(slope(to_device(x)).get(), [0, 0.25, 0, 1])
    assert device.reads == 0


def test_a_variant_that_calls_a_library_is_waited_for(device: HostDevice) -> None:
    def loss(x: Any) -> Any:
        return vanishing(x) + np.linalg.det(np.outer(x, x) + np.eye(4))

    x = np.array([0.0, 4.0, -1.0, 0.25])
    got = func.jit(func.grad(loss))(to_device(x))
    np.testing.assert_allclose(got.get(), func.grad(loss)(x), rtol=1e-12)


def test_nan_safe_steps_of_a_loop_are_computed_again(device: HostDevice) -> None:
    def steps(x: Any) -> Any:
        return func.scan(lambda c, r: (c + func.grad(vanishing)(r), np.sum(c)), np.zeros(3), x)

    x = np.array([[0.0, 1.0, 4.0], [-1.0, 0.0, 1.0]])
    for got, want in zip(func.jit(steps)(to_device(x)), steps(x), strict=True):
        np.testing.assert_allclose(got.get(), want, rtol=1e-15)


def test_an_index_out_of_range_is_reported_by_the_next_call(device: HostDevice) -> None:
    pick = func.jit(lambda x, i: x[i])
    x = to_device(np.arange(4.0))
    np.testing.assert_array_equal(pick(x, to_device(np.array([3, -1]))).get(), [3, 3])
    pick(x, to_device(np.array([4, 0])))
    with pytest.raises(DeviceIndexError, match=r"out of range in a call of .* on the device"):
        pick(x, to_device(np.array([1, 0])))
    np.testing.assert_array_equal(pick(x, to_device(np.array([1, 0]))).get(), [1, 0])


def test_small_loops_are_one_kernel_and_wait_for_nothing(device: HostDevice) -> None:
    def collatz(n: Any) -> Any:
        step = lambda c: (np.where(c[0] % 2 == 0, c[0] // 2, 3 * c[0] + 1), c[1] + 1)  # noqa: E731
        return func.while_loop(lambda c: c[0] != 1, step, (n, 0))[1]

    before = device.calls
    assert int(func.jit(collatz)(to_device(np.array(27)))) == 111
    assert device.calls == before + 1
    choice = func.jit(lambda i, x: func.cond(i > 0, np.sin, np.cos, x))
    for number in (0, 1):
        got = choice(to_device(np.array(number)), to_device(np.arange(3.0)))
        np.testing.assert_allclose(got.get(), (np.cos, np.sin)[number](np.arange(3.0)), rtol=1e-15)
    assert device.reads == 0
    x = np.linspace(-1, 1, 60).reshape(20, 3)
    steps = func.jit(lambda x: func.scan(lambda c, r: (np.tanh(c + r), np.sum(c) * r), x[0], x, reverse=True))
    before = device.calls
    for own, want in zip(steps(to_device(x)), steps(x), strict=True):
        np.testing.assert_allclose(own.get(), want, rtol=1e-14)
    assert device.calls == before + 1


def test_large_loops_are_run_by_the_host(device: HostDevice) -> None:
    x = np.linspace(0.0, 1.0, 9000)
    grow = func.jit(lambda x: func.while_loop(lambda v: np.sum(v) < 20_000, lambda v: v * 1.5 + 0.1, x))
    np.testing.assert_allclose(grow(to_device(x)).get(), grow(x), rtol=1e-13)
    assert device.reads > 2
    choice = func.jit(lambda i, x: func.cond(i > 0, np.sin, np.cos, x))
    np.testing.assert_allclose(choice(to_device(np.array(1)), to_device(x)).get(), np.sin(x), rtol=1e-14)
    before = device.reads
    np.testing.assert_allclose(choice(to_device(np.array(0)), to_device(x)).get(), np.cos(x), rtol=1e-14)
    assert device.reads == before + 1
    rows = func.jit(lambda x: func.scan(lambda c, r: (c + r, np.sum(c)), x, np.stack([x, -x, x]))[1])
    np.testing.assert_allclose(rows(to_device(x)).get(), rows(x), rtol=1e-12)
    slope = func.jit(func.grad(lambda x: np.sum(func.scan(lambda c, r: (c * r, c), x, np.stack([x, -x, x]))[0])))
    np.testing.assert_allclose(slope(to_device(x)).get(), slope(x), rtol=1e-12)
    counted = func.jit(lambda x: func.fori_loop(0, 7, lambda i, c: c * 0.5 + i, x))
    calls = device.calls
    np.testing.assert_allclose(counted(to_device(x)).get(), counted(x), rtol=1e-13)
    assert device.calls >= calls + 7
    assert device.reads == before + 1  # no scan and no counted loop waits for the device


def test_kernels_that_do_not_compile_leave_the_program_to_the_library(
    device: HostDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: str, fast: bool) -> Any:
        raise KernelError("NVRTC rejects the kernels: no such function")

    monkeypatch.setattr(device, "compiled", refuse)
    step = func.jit(lambda x: np.sinh(x) * 3)
    with pytest.warns(RuntimeWarning, match=r"the device's library runs instead .*no such function.*\n.*sinh"):
        out = step(to_device(np.arange(3.0)))
    np.testing.assert_allclose(out.get(), np.sinh(np.arange(3.0)) * 3, rtol=1e-15)


@pytest.mark.skipif(np.dtype(np.longdouble).itemsize == 8, reason="long double is double precision here")
def test_long_double_precision_is_refused(device: HostDevice) -> None:
    with pytest.raises(DeviceError, match=r"dtype float128, which devices do not compute in\n.*astype\(np\.float64\)"):
        func.jit(lambda x, y: x + y)(to_device(np.ones(3)), np.longdouble(2))


def test_threads_share_a_program(device: HostDevice) -> None:
    step = func.jit(lambda x: np.cumsum(np.sin(x)) + np.sum(x))
    step(to_device(np.arange(50.0)))
    faults = []

    def run(number: int) -> None:
        x = np.arange(50.0) + number
        for _ in range(20):
            got = step(to_device(x)).get()
            if not np.allclose(got, np.cumsum(np.sin(x)) + np.sum(x), rtol=1e-12):
                faults.append(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults


def test_linear_algebra_between_kernels(device: HostDevice) -> None:
    def f(a: Any, b: Any) -> Any:
        return np.tanh(np.linalg.solve(a @ a.T + np.eye(5), np.sin(b)) * 2)

    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(5, 5)), rng.normal(size=5)
    np.testing.assert_allclose(func.jit(f)(to_device(a), to_device(b)).get(), f(a, b), rtol=1e-12)


EDGES: dict[str, tuple[Any, ...]] = {
    "nothing": (lambda x: (x * 2, np.sum(x), np.cumsum(x)), np.zeros((0, 3))),
    "one number": (lambda x: np.sin(x) + 1, np.array(0.5)),
    "the argument itself": (lambda x: (x, x), np.arange(3.0)),
    "a constant": (lambda x: (np.ones(3), 2.0, x), np.arange(3.0)),
    "trees": (
        lambda t: {"a": t["x"] + t["y"][0], "b": [t["y"][1]]},
        {"x": np.arange(3.0), "y": (np.ones(3), np.ones(2))},
    ),
    "small integers": (lambda x: (x * x, x // 3, x % 7, np.sum(x)), np.arange(-9, 9, dtype=np.int8)),
    "booleans": (lambda x: (~x, np.any(x), np.all(x, axis=0), x ^ x.T), np.eye(3, dtype=bool)),
    "half precision": (lambda x: (np.exp(x), np.sum(x), x @ x), np.eye(4, dtype=np.float16)),
    "complex single precision": (
        lambda x: (np.exp(x), np.abs(x), x @ x, x.conj().T),
        (np.eye(3) * (1 + 2j)).astype("F"),
    ),
    "writes": (lambda x: _written(x), np.arange(12.0).reshape(3, 4)),
    "nested jit": (
        lambda x: func.jit(lambda y: np.sin(y) * 2)(x) + func.grad(func.jit(lambda y: np.sum(y**3)))(x),
        np.arange(3.0),
    ),
    "mapped": (lambda x: func.vmap(lambda r: np.cumsum(r) / np.sum(r))(x), np.arange(1.0, 13).reshape(3, 4)),
    "second derivative": (func.hessian(lambda x: np.sum(np.sin(x) * x[::-1])), np.arange(4.0)),
    "a loop in a branch in a loop": (lambda x: _nested(x), np.linspace(-1, 1, 6)),
    "random numbers": (
        lambda x: func.random.normal(func.random.key(3), (50,)) * x[0] + func.random.uniform(func.random.key(1), (50,)),
        np.ones(1),
    ),
    "sorted between kernels": (lambda x: np.sort(np.sin(x)) * 2 + np.tanh(x), np.arange(8.0)),
}


def _written(x: Any) -> Any:
    y = x.copy()
    y[1:] += x[:-1] * 2
    y[:, 0] = np.sum(x, axis=1)
    return y


def _nested(x: Any) -> Any:
    def step(c: Any, r: Any) -> Any:
        grown = func.while_loop(lambda v: np.sum(v * v) < 4, lambda v: v * 1.7 + 0.1, c + r)
        return func.cond(
            r > 0, lambda v: np.sin(v), lambda v: func.scan(lambda a, b: (a + b, a), v[0], v)[1], grown
        ), r * c[0]

    return func.scan(step, x, x)


def test_edges() -> None:
    cases = []
    for name, (function, *args) in EDGES.items():
        wide = all([np.asarray(x).dtype.itemsize >= (16 if np.iscomplexobj(x) else 8) for x in func.tree.leaves(args)])
        cases.append(Case(name, func.jit(function), tuple(args), 1e-12 if wide else 2e-3))
    faults = run_together(HostDevice(DeviceArray), cases)
    assert not faults, faults


def test_random_bits_are_those_of_the_processor(device: HostDevice) -> None:
    draw = func.jit(
        lambda key: (func.random.bits(key, (1000,)), func.random.uniform(key, (1000,)), func.random.split(key, 5))
    )
    key = func.random.key(7)
    for own, want in zip(func.tree.leaves(draw(to_device(np.asarray(key)))), func.tree.leaves(draw(key)), strict=True):
        np.testing.assert_array_equal(own.get(), want)
