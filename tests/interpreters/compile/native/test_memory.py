"""Memory of native code: results that stay, scratch that may hold anything, calls that raise, threads."""

from __future__ import annotations

import copy
import gc
import importlib
import sys
import threading
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func

pytest.importorskip("llvmlite")

from tests.interpreters.compile.native.test_native import A, V, compiled, is_native, numbers, same


@pytest.fixture
def poisoned(monkeypatch: pytest.MonkeyPatch) -> None:
    """All memory is NaN when it is first used in a call: nothing may be read before it is written."""
    from func.backends.loops.kernels import Fill, Item
    from func.backends.loops.traversal import buffers_of

    printer = importlib.import_module("func.backends.llvm.codegen.printer")
    printed = printer.print_program

    def poison(program: Any, *rest: Any) -> Any:
        seen = set()
        items: list[Item] = []
        for item in program.items:
            for storage in [buffer.storage for buffer in buffers_of(item)]:
                if storage.kind in ("arena", "output") and id(storage) not in seen:
                    seen.add(id(storage))
                    items.append(Fill(storage, {"f": np.nan, "b": True}.get(storage.dtype.kind, 99)))
            items.append(item)
        filled = copy.copy(program)
        filled.items = items
        return printed(filled, *rest)

    monkeypatch.setattr(printer, "print_program", poison)


def mixed(a: Any, v: Any) -> Any:
    """Many values in memory with lives that overlap, and loops among them."""
    y = np.tanh(a) @ a.T
    z = y * 1.5 + v
    z[1:3] = y[::2].T[:2, :1] * v
    total = v * a[0]
    np.add.at(total, np.array([1, 1, -1]), z[:3, 0])
    scanned = func.scan(lambda c, r: (np.sin(c + r), c @ a), v, z)
    fixed = func.fori_loop(0, 3, lambda i, c: c * 0.5 + scanned[1].sum(0), total)
    chosen = func.cond(np.sum(a) > 0, lambda t: t @ y, lambda t: t - y.sum(1), fixed)
    wide = np.pad(z, 1)[:, ::-1]
    low = (y.max(1) - y.min(0)).astype(np.float32)
    soft = np.exp(wide - wide.max(1, keepdims=True))
    return y.T, scanned, chosen, wide, low, soft / soft.sum(1, keepdims=True), np.concatenate([total, fixed, low])


def loss(a: Any, v: Any) -> Any:
    """The outputs as one number."""
    return sum([np.sum(np.sin(out)) for out in func.tree.leaves(mixed(a, v)) if out.dtype == np.float64])


COMPOSED: dict[str, Callable[..., Any]] = {
    "values": mixed,
    "gradient": func.grad(loss, (0, 1)),
    "tangent": lambda a, v: func.jvp(mixed, (a, v), (a, v)),
    "mapped": lambda a, v: func.vmap(mixed)(np.stack([a, a * 0.5, a.T]), np.stack([v, v, v * 2])),
    "hessian": lambda a, v: func.jacfwd(func.grad(loss, 1), 1)(a, v),
}


@pytest.mark.usefixtures("poisoned")
@pytest.mark.parametrize("name", COMPOSED)
def test_scratch_memory_may_hold_anything(name: str) -> None:
    expected = COMPOSED[name](A, V)
    jitted = compiled(COMPOSED[name])
    for _ in range(3):
        same(jitted(A, V), expected, 1e-9)
    assert is_native(jitted, A, V) or name == "hessian"


@pytest.mark.parametrize("size", [3, 40_000, 300_000])
def test_results_stay_as_they_are(size: int) -> None:
    """Memory is used again only where nobody has a view of it."""
    jitted = compiled(lambda x, k: (x * k, (x[::-1] + k, x)))
    x = numbers(size)
    kept: list[Any] = []
    for k in range(9):
        out = jitted(x, float(k))
        kept.append((k, out[0], out[1][0][1::2], out[1][1][-2:], memoryview(out[0])))
        if k % 3 == 0:
            kept = kept[-4:]
        del out
        for place, first, second, last, view in kept:
            np.testing.assert_array_equal(first, x * place)
            np.testing.assert_array_equal(second, (x[::-1] + place)[1::2])
            np.testing.assert_array_equal(last, x[-2:])
            np.testing.assert_array_equal(np.asarray(view), x * place)


@pytest.mark.parametrize("size", [5, 100_000])
def test_results_belong_to_the_caller(size: int) -> None:
    """They own no memory of arguments, constants or one another, and may be written to."""
    fixed = numbers(size)
    jitted = compiled(lambda x: (x, x, x[::-1], fixed, np.sin(x), np.sin(x), x.reshape(-1, 1)))
    x = numbers(size)
    x.flags.writeable = False
    before = fixed.copy()
    for _ in range(3):
        outs = jitted(x)
        arrays = [x, fixed, *outs]
        for place, one in enumerate(outs):
            assert one.flags.writeable
            assert not any([np.shares_memory(one, other) for k, other in enumerate(arrays) if k != place + 2])
        for one in outs:
            one[...] = np.nan
    np.testing.assert_array_equal(fixed, before)
    np.testing.assert_array_equal(jitted(x)[3], before)


def test_arguments_that_are_results() -> None:
    """A result given back as an argument is not overwritten by the call that reads it."""
    for size in (4, 100_000):
        step = compiled(lambda x, y: (y, x + y[::-1]))
        x = y = np.arange(float(size))
        a, b = x, y
        for _ in range(8):
            x, y = step(x, y)
            a, b = b, a + b[::-1]
            np.testing.assert_array_equal(x, a)
            np.testing.assert_array_equal(y, b)


def test_errors_of_indices_are_those_of_numpy() -> None:
    x = numbers(4, 5)

    def picked(x: Any, places: Any) -> Any:
        return np.sin(x)[places] * 2

    def written(x: Any, places: Any) -> Any:
        y = x * 1.5
        y[places] = 2 * x[0]
        return y, y.sum()

    def looped(x: Any, places: Any) -> Any:
        return func.scan(lambda c, place: (c + x[place], c), x[0], places)

    for f in (picked, written, looped):
        jitted = compiled(f)
        good = np.array([0, -4, 3])
        for _ in range(2):
            same(jitted(x, good), f(x, good))
            for bad in (4, -5, 2**40, -(2**62)):
                with pytest.raises(IndexError, match=f"{bad} is out of bounds"):
                    jitted(x, np.array([0, bad, 1]))
        assert is_native(jitted, x, good)


def test_a_loop_ends_where_an_index_is_out_of_range() -> None:
    """NumPy's errors in a step are raised, also where the steps would go on for ever without them."""

    def first(x: Any) -> Any:
        return func.while_loop(lambda i: x[i] > 0, lambda i: i + 1, 0)

    x = np.array([1.0, 2.0, -1.0, 1.0])
    jitted = compiled(first)
    assert jitted(x) == first(x) == 2
    for _ in range(2):
        with pytest.raises(IndexError, match="4 is out of bounds"):
            jitted(np.abs(x))
    assert is_native(jitted, x)


def test_calls_that_raise_leave_nothing_behind() -> None:
    x, good, bad = numbers(300, 200), np.array([1, 2]), np.array([1, 900])
    jitted = compiled(lambda x, places: (np.cos(x), x[places] + 1, x.sum(0)))

    def call(places: Any) -> None:
        try:
            jitted(x, places)
        except IndexError:
            return

    for _ in range(5):
        call(good)
        call(bad)
    gc.collect()
    references = [sys.getrefcount(one) for one in (x, good, bad, jitted)]
    tracemalloc.start()
    try:
        first = tracemalloc.get_traced_memory()[0]
        for _ in range(30):
            call(bad)
            call(good)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - first
    finally:
        tracemalloc.stop()
    assert [sys.getrefcount(one) for one in (x, good, bad, jitted)] == references
    assert grown < 100_000  # one result has 480 000 bytes


def in_threads(work: Callable[[int], None], count: int = 4) -> None:
    """work(0), work(1), … at once; raises what they raise."""
    errors: list[BaseException] = []
    gate = threading.Barrier(count)

    def run(number: int) -> None:
        try:
            gate.wait()
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    if errors:
        raise errors[0]


@pytest.mark.parametrize("size", [7, 400])
def test_threads_share_compiled_functions(size: int) -> None:
    """Also with calls that raise, first calls at once, and memory in between of more than a cache."""

    def f(x: Any, places: Any) -> Any:
        y = np.sin(x) @ x.T
        total = func.scan(lambda c, r: (np.tanh(c + r), c), x[0], x)[1]
        return y / np.sum(np.abs(y), axis=1, keepdims=True), total[places], x[::-1].T + total

    jitted = compiled(f)
    given = [numbers(size, size) for _ in range(4)]
    places = np.array([1, -1, 0])
    expected = [f(x, places) for x in given]

    def work(number: int) -> None:
        kept = []
        for turn in range(30 if size < 100 else 5):
            kept.append(jitted(given[number], places))
            if turn % 4 == 3:
                with pytest.raises(IndexError):
                    jitted(given[number], np.array([0, size, 0]))
        for out in kept:
            same(out, expected[number], 1e-9)

    in_threads(work)


def test_threads_compile_at_once() -> None:
    jitted = compiled(func.grad(loss, (0, 1)))
    expected = [func.grad(loss, (0, 1))(A * k, V) for k in range(4)]
    in_threads(lambda number: same(jitted(A * number, V), expected[number], 1e-9))


def test_kept_memory_can_be_given_back() -> None:
    """A native stub keeps dead arrays and its arena, releases both on request, and goes on."""
    from func.backends.llvm.call_stubs import binding
    from func.backends.llvm.call_stubs.stub_table import empty
    from func.backends.llvm.threads import background

    jitted = compiled(lambda x: np.sum(np.tanh(x @ x) @ x) + np.cumsum(x, axis=0))
    x = numbers(200, 200)
    jitted(x)
    jitted(x)
    background.finish()
    expected = [jitted(x) for _ in range(4)][-1]
    native = next(one for one in gc.get_objects() if _is_stub_of(one, binding.StubState))
    places = native.__self__.places
    kept = np.frombuffer(places.tobytes(), np.uintp)
    assert np.any(kept)
    for _ in range(3):
        binding.release_memory(native)
        assert not np.any(np.frombuffer(places.tobytes(), np.uintp))
        np.testing.assert_array_equal(jitted(x), expected)
    empty(places)
    np.testing.assert_array_equal(jitted(x), expected)


def _is_stub_of(one: Any, state: type) -> bool:
    if type(one) is not type(len) or not isinstance(one.__self__, state):
        return False
    return len(one.__self__.places) > 0 and bool(np.any(np.frombuffer(one.__self__.places.tobytes(), np.uintp)))


@pytest.mark.parametrize("ready", [True, False])
def test_only_one_way_keeps_memory(ready: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once calls come with whole trees, the first stub's memory is released."""
    native_executable = importlib.import_module("func.backends.llvm.call_stubs.native_executable")
    binding = importlib.import_module("func.backends.llvm.call_stubs.binding")
    released: list[Any] = []
    monkeypatch.setattr(
        native_executable, "release_memory", lambda stub: (released.append(stub), binding.release_memory(stub))
    )
    if not ready:
        monkeypatch.setattr(native_executable, "bind_deferred", binding.python_stub)
    jitted = compiled(lambda x: np.tanh(x @ x) @ x)
    x = numbers(90, 90)
    for _ in range(3):
        same(jitted(x), np.tanh(x @ x) @ x, 1e-9)
    assert len(released) == 1


def test_programs_of_thousands_of_operations() -> None:
    def f(x: Any, v: Any, steps: int = 600) -> Any:
        early = np.sin(x)
        y = x
        for k in range(steps):
            y = y * 0.9 + np.abs(x - 0.001 * k) if k % 3 else np.maximum(y - v, early * 0.01 * k)
            if k % 100 == 99:
                y = y - np.mean(y, axis=1, keepdims=True) * early
        return y, y.sum(0) * v, early

    x, v = numbers(5, 7), numbers(7)
    for g in (f, func.grad(lambda x, v: np.sum(f(x, v, 150)[0]), (0, 1))):
        jitted = compiled(g)
        expected = g(x, v)
        for _ in range(2):
            same(jitted(x, v), expected, 1e-9)
        assert is_native(jitted, x, v)


def test_nan_safe_pullback_where_a_derivative_is_infinite() -> None:
    """Where an output has a NaN the function is traced again with structural zeros."""

    def safe(x: Any) -> Any:
        return np.sum(np.where(x > 0, np.sqrt(x) + np.log(x), 0.0))

    def rows(x: Any) -> Any:
        norms = np.sqrt(np.sum(x * x, axis=1))
        return np.sum(np.where(norms > 0, norms, 0.0))

    for f, x in ((safe, np.array([1.0, 0.0, 4.0])), (rows, np.array([[3.0, 4.0], [0.0, 0.0]]))):
        zeros = np.zeros_like(x)
        gradient = func.grad(f)
        jitted = compiled(gradient)
        for one in (np.abs(x) + 1, x, zeros, np.abs(x) + 1, x):
            with np.errstate(all="ignore"):
                expected = gradient(one)
            assert np.isfinite(expected).all()
            same(jitted(one), expected)
        both = np.stack([x, np.abs(x) + 1, zeros])
        with np.errstate(all="ignore"):
            same(compiled(func.vmap(gradient))(both), func.vmap(gradient)(both))
