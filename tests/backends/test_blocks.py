"""NumPy's functions on blocks of large arrays: the bits, warnings and errors of one call, by several threads."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import func
from func.backends import blocks

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(20261128)
FLOATS = (np.float32, np.float64)


@pytest.fixture(autouse=True)
def cut_at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two threads, and many small blocks."""
    monkeypatch.setattr(blocks, "LEAST", 0.0)
    monkeypatch.setattr(blocks, "LEAST_BLOCK", 1e-9)
    with func.config.override(num_threads=2):
        yield


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many blocks each call was cut into."""
    seen: list[int] = []
    run = blocks._run

    def watched(block: Any, count: int, *args: Any) -> bool:
        seen.append(count)
        return run(block, count, *args)

    monkeypatch.setattr(blocks, "_run", watched)
    return seen


def assert_same(got: Any, want: Any) -> None:
    """The same bits in the same order of memory."""
    assert type(got) is type(want) and got.dtype == want.dtype and got.shape == want.shape
    assert got.flags.c_contiguous == want.flags.c_contiguous
    assert got.tobytes() == want.tobytes()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("size", [65536, 99991])
@pytest.mark.parametrize(
    "name", ["exp", "log", "sin", "cos", "tanh", "sqrt", "log1p", "expm1", "arctan", "sinh", "cbrt", "isnan"]
)
def test_functions_of_one_array_have_the_bits_of_one_call(name: str, size: int, dtype: Any, jobs: list[int]) -> None:
    ufunc = getattr(np, name)
    for start in (0, 1, 3):  # whatever the alignment is
        x = np.empty(size + 4, dtype)[start : start + size]
        for scale in (1.0, 1e3, 1e7):  # sines of large angles are computed in another way
            x[...] = RNG.normal(size=size) * scale
            with np.errstate(all="ignore"):
                assert_same(blocks.elementwise(ufunc, (x,)), ufunc(x))
    assert min(jobs) > 1


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("cost", [1, 20])
@pytest.mark.parametrize("name", ["add", "divide", "power", "maximum", "arctan2", "less"])
def test_functions_of_two_operands_have_the_bits_of_one_call(name: str, cost: int, dtype: Any, jobs: list[int]) -> None:
    ufunc = getattr(np, name)
    if name in ("power", "arctan2") and cost == 1:
        cost = blocks.EXACT + 1  # what these cost at least
    for shape in ((100_003,), (300, 700), (65_536, 3), (3, 65_536), (64, 33, 50), (700, 300, 1), (1, 90_000)):
        x = RNG.normal(size=shape).astype(dtype)
        rank = len(shape)
        for other in (
            RNG.normal(size=shape).astype(dtype),
            RNG.normal(size=shape),
            RNG.integers(1, 5, size=shape),
            RNG.normal(size=(shape[0],) + (1,) * (rank - 1)).astype(dtype),
            RNG.normal(size=(*shape[:-1], 1)).astype(dtype),
            RNG.normal(size=shape[1:]).astype(dtype),
            RNG.normal(size=(1,) * (rank - 1) + shape[-1:]),
            2.0,
            3,
            dtype(0.5),
            np.array(1.5),
        ):
            with np.errstate(all="ignore"):
                assert_same(blocks.elementwise(ufunc, (x, other), cost), ufunc(x, other))
                assert_same(blocks.elementwise(ufunc, (other, x), cost), ufunc(other, x))
    assert max(jobs) > 1


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["add", "maximum", "minimum", "multiply"])
def test_reductions_have_the_bits_of_one_call(name: str, dtype: Any, jobs: list[int]) -> None:
    ufunc = getattr(np, name)
    for shape in ((300, 700), (65_536, 3), (3, 65_536), (64, 33, 50), (700, 300, 1)):
        x = RNG.normal(size=shape).astype(dtype)
        axes = range(len(shape))
        for some in [tuple(axes[:k]) for k in axes[1:]] + [tuple(axes[k:]) for k in axes] + [()]:
            assert_same(blocks.reduce(ufunc, x, some), ufunc.reduce(x, some))
            if name == "add":
                assert_same(blocks.reduce(ufunc, x, some, np.dtype("f8")), ufunc.reduce(x, some, "f8"))
    assert max(jobs) > 1


@pytest.mark.parametrize("dtype", FLOATS)
def test_sums_of_everything_are_cut_where_numpys_is(dtype: Any, jobs: list[int]) -> None:
    for size in (*range(65_536, 65_553), 999_999, 1_000_000, 1_000_001):
        x = RNG.normal(size=size).astype(dtype)
        assert_same(blocks.reduce(np.add, x, (0,)), np.add.reduce(x))
    assert min(jobs) > 1
    assert_same(blocks.reduce(np.add, np.full(70_000, -0.0, dtype), (0,)), np.add.reduce(np.full(70_000, -0.0, dtype)))


def test_another_way_to_sum_is_noticed(monkeypatch: pytest.MonkeyPatch, jobs: list[int]) -> None:
    monkeypatch.setattr(blocks, "_checked", [])
    monkeypatch.setattr(blocks, "_half", lambda length: length // 2 - 3)
    x = RNG.normal(size=100_000)
    assert blocks.reduce(np.add, x, (0,)) == np.add.reduce(x)
    assert not jobs


def test_copies(jobs: list[int]) -> None:
    for x in (RNG.normal(size=(400, 300)), RNG.normal(size=(400, 300)).T, RNG.normal(size=(400, 600))[:, ::2]):
        copy = blocks.copy(x)
        assert copy.strides == x.copy("K").strides and (copy == x).all() and not np.shares_memory(copy, x)
    assert len(jobs) == 2


def test_other_layouts_types_and_numbers_of_threads_are_numpys(jobs: list[int]) -> None:
    x = RNG.normal(size=(300, 400))
    swapped = x.astype(x.dtype.newbyteorder())
    objects = np.array([1, 2.5] * 40_000, dtype=object)
    misaligned = np.zeros(8 * x.size + 1, np.int8)[1:].view(float)
    for operand in (x.T, x[::2], x[:, ::2], swapped, objects, misaligned):
        assert_same_array(blocks.elementwise(np.add, (operand, operand)), operand + operand)
    with blocks.in_one_thread():
        assert_same(blocks.elementwise(np.sin, (x,)), np.sin(x))
    with func.config.override(num_threads=1):
        assert_same(blocks.elementwise(np.subtract, (x, x[:, :1])), x - x[:, :1])
        assert_same(blocks.reduce(np.add, x, (1,)), np.add.reduce(x, 1))
    assert not jobs


def assert_same_array(got: Any, want: Any) -> None:
    assert got.strides == want.strides and got.dtype == want.dtype and (got == want).all()


@pytest.mark.parametrize("threads", [1, 2])
def test_errors_are_those_of_one_call(threads: int) -> None:
    x = np.ones((300, 400))
    with func.config.override(num_threads=threads):
        with pytest.raises(ValueError, match="could not be broadcast"):
            blocks.elementwise(np.add, (x, np.ones((3, 400))))
        with pytest.raises(TypeError, match="not supported"):
            blocks.elementwise(np.left_shift, (x, x))
        with pytest.raises(OverflowError):
            blocks.elementwise(np.add, (np.ones(x.shape, np.int8), 1000))


@pytest.mark.parametrize("threads", [1, 2])
def test_floating_point_errors_are_told_once(threads: int, jobs: list[int]) -> None:
    x = np.ones(200_000)
    apart, together = x.copy(), x.copy()
    told: list[str] = []
    apart[5], apart[-5] = 0.0, -1.0
    together[5:7] = 0.0, -1.0
    with func.config.override(num_threads=threads):
        for array in (apart, together):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                assert_same(blocks.elementwise(np.log, (array,)), np.log(array))
            kinds = ("divide by zero", "invalid value")
            assert [str(w.message) for w in caught] == 2 * [f"{kind} encountered in log" for kind in kinds]
            for state in ("divide", "invalid"):
                settings: dict[str, Any] = {"all": "ignore", state: "raise"}
                with np.errstate(**settings), pytest.raises(FloatingPointError, match=state):
                    blocks.elementwise(np.log, (array,))
            with np.errstate(all="call", call=lambda kind, flags: told.append(kind)):
                blocks.elementwise(np.log, (array,))
            assert tuple(told) == kinds
            told.clear()
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("error")
                assert_same(blocks.elementwise(np.log, (array,)), np.log(array))
        with pytest.warns(RuntimeWarning, match="overflow encountered in reduce"):
            assert blocks.reduce(np.add, np.full(200_000, 1e308), (0,)) == np.inf


def test_the_state_of_errors_and_buffers_stays() -> None:
    before = np.geterr(), np.getbufsize()
    x = np.ones((300, 400))
    for threads in (1, 2):
        with func.config.override(num_threads=threads):
            blocks.elementwise(np.subtract, (x, x[:, :1]))
            assert (np.geterr(), np.getbufsize()) == before


def test_blocks_of_many_threads_of_the_user_do_not_mix() -> None:
    arrays = [np.full(70_000 + i, float(i)) for i in range(6)]
    failures: list[int] = []

    def work(i: int) -> None:
        for _ in range(30):
            if not (blocks.elementwise(np.add, (arrays[i], 1.0)) == i + 1.0).all():
                failures.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(arrays))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_an_interrupt_ends_the_call_and_nothing_else() -> None:
    x = np.ones(100_000)
    calls = []

    def interrupted(*args: Any, out: Any = None) -> Any:
        if out is not None and threading.current_thread() is threading.main_thread():
            calls.append(1)
            raise KeyboardInterrupt
        return np.add(*args, out=out)

    with pytest.raises(KeyboardInterrupt):
        for _ in range(1000):  # until the main thread takes a block
            blocks.elementwise(interrupted, (x, x))
    assert calls
    assert_same(blocks.elementwise(np.add, (x, x)), x + x)


def test_without_new_threads_the_caller_does_it_all(monkeypatch: pytest.MonkeyPatch, jobs: list[int]) -> None:
    def refuse(self: Any) -> None:
        raise RuntimeError("can't start new thread")

    helpers = blocks._Helpers()
    monkeypatch.setattr(blocks, "_helpers", helpers)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    x = RNG.normal(size=100_000)
    assert_same(blocks.elementwise(np.sin, (x,)), np.sin(x))
    assert helpers._calls.empty()
    assert jobs


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own() -> None:
    x = RNG.normal(size=100_000)
    want = blocks.elementwise(np.sin, (x,)).tobytes()
    child = os.fork()
    if child == 0:
        assert blocks._helpers is None
        same = blocks.elementwise(np.sin, (x,)).tobytes() == want
        os._exit(0 if same and getattr(blocks._helpers, "_size", 0) == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def softmax(x: Array) -> Any:
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


TRANSFORMED: dict[str, Callable[[Array], Any]] = {
    "softmax": lambda x: np.sum(softmax(x) * x),
    "layer norm": lambda x: np.sum((x - np.mean(x, 1, keepdims=True)) / np.std(x, 1, keepdims=True) * x[0]),
    "columns": lambda x: np.sum(np.max(x, 0) * np.sum(x * x, 0) + np.mean(x, 0)),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", TRANSFORMED)
def test_values_and_gradients_do_not_depend_on_the_number_of_threads(name: str, dtype: Any, jobs: list[int]) -> None:
    x = RNG.normal(size=(257, 300)).astype(dtype)
    function = TRANSFORMED[name]
    transforms: list[Callable[[], Any]] = [
        lambda: func.value_and_grad(function)(x),
        lambda: func.jvp(function, (x,), (x,)),
        lambda: func.vmap(func.grad(function), chunk_size=None)(np.stack([x, 2 * x])),
    ]
    for transform in transforms:
        with func.config.override(compile_backward=False):
            results = []
            for threads in (1, 2):
                with func.config.override(num_threads=threads):
                    results.append([np.asarray(leaf).tobytes() for leaf in func.tree.leaves(transform())])
            assert results[0] == results[1]
    assert jobs
    assert func.value_and_grad(function)(x)[0] == function(x)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8, np.bool_, np.complex128, "datetime64[s]"])
@pytest.mark.parametrize("size", [1, 7, 1000, 5_000_000])
def test_bits_of_two_arrays(dtype: Any, size: int) -> None:
    x = (np.arange(size) % 251).astype(dtype)
    y = x.copy()
    assert blocks.same_bits(x, y)
    for place in {0, size // 2, size - 1, size - size // 9 - 1}:
        word = y.view(np.uint8).reshape(size, -1)
        word[place, -1] ^= 1
        assert not blocks.same_bits(x, y)
        word[place, -1] ^= 1
    assert blocks.same_bits(x, y)


def test_bits_are_not_values() -> None:
    for size in (3, 1 << 20):
        zeros, nans = np.zeros(size), np.full(size, np.nan)
        assert not blocks.same_bits(zeros, -zeros)
        assert blocks.same_bits(nans, nans.copy())
        assert blocks.same_bits(zeros.reshape(1, -1).T, zeros.copy().reshape(1, -1).T)
    assert blocks.same_bits(np.zeros(0), np.zeros(0))
