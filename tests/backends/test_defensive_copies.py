"""Copies that graphs keep: one of a large array for all uses between two writes, and never one that a user gets."""

import concurrent.futures as cf
import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import func
from func.backends import bit_digests
from func.backends import defensive_copies as copies
from func.backends.bit_digests import Digests
from func.backends.llvm import machine
from func.backends.llvm.threads import background
from func.interpreters.core import defensive_copy

N = 96
STEPS = 20


def matrix() -> Any:
    """A matrix that is large enough to be looked up."""
    a = np.random.default_rng(0).normal(size=(N, N)) / N
    assert a.nbytes >= copies.LARGE
    return a


def by_scan(a: Any, x: Any) -> Any:
    return np.sum(func.scan(lambda c, _: (np.tanh(a @ c), None), x, length=STEPS)[0])


def by_loop(a: Any, x: Any) -> Any:
    for _ in range(STEPS):
        x = np.tanh(a @ x)
    return np.sum(x)


def by_fori_loop(a: Any, x: Any) -> Any:
    return np.sum(func.fori_loop(0, STEPS, lambda _, c: np.tanh(a @ c), x))


def elementwise(a: Any, x: Any) -> Any:
    y = a[0] * x
    for _ in range(STEPS):
        y = np.sin(a * y) / a
    return np.sum(y)


def by_solves(a: Any, x: Any) -> Any:
    for _ in range(STEPS):
        x = np.linalg.solve(a, x)
    return np.sum(x)


def masked(a: Any, x: Any) -> Any:
    large = np.broadcast_to(a > 0, (8, N, N)).copy()
    for _ in range(STEPS):
        x = np.where(large, x, 2 * x).sum(axis=(0, 1)) / N
    return np.sum(x)


@pytest.mark.parametrize("function", [by_scan, by_loop, by_fori_loop, elementwise, by_solves, masked])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_loop_keeps_one_copy(monkeypatch: Any, function: Callable[..., Any], order: Any) -> None:
    taken: list[Any] = []

    def counted(array: Any) -> Any:
        copy = copies.shared_copy(array)
        taken.append(copy)
        return copy

    monkeypatch.setattr("func.interpreters.core.types.shared_copy", counted)
    a = np.asarray(matrix() + 2 * np.eye(N), order=order)
    func.vjp(lambda x: function(a, x), np.ones(N))
    assert len(taken) >= STEPS
    assert len({id(copy) for copy in taken}) == 1


def test_programs_hold_one_constant() -> None:
    a = matrix()
    program = func.jit(lambda x: by_loop(a, x)).lower(np.ones(N)).program
    assert len([value for value in program.constants.values() if np.shape(value) == (N, N)]) == 1


def test_copies_end_with_their_graphs() -> None:
    before = len(copies._COPIES)
    func.grad(lambda x: by_loop(matrix(), x))(np.ones(N))
    gc.collect()
    assert len(copies._COPIES) <= before


PLACES: dict[str, Any] = {
    "the first": (0, 0),
    "one in the middle": (N // 2, 3),
    "the last": (-1, -1),
    "all": ...,
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_writes_between_uses_count(place: Any) -> None:
    def loss(a: Any, x: Any) -> Any:
        for _ in range(3):
            x = np.tanh(a @ x)
            a[place] = a[place] * 3
        return np.sum(x)

    a, x = matrix(), np.ones(N)
    got = func.grad(lambda x: loss(a.copy(), x))(x)
    small = func.jacfwd(lambda x: loss(a.copy(), x))(x)
    np.testing.assert_allclose(got, small, rtol=1e-10)


def test_bits_are_compared_and_not_numbers() -> None:
    a = np.zeros((N, N))
    first = defensive_copy(a)
    a[3, 3] = -0.0
    second = defensive_copy(a)
    a[3, 3] = np.nan
    third = defensive_copy(a)
    assert second is not first and np.signbit(second[3, 3]) and not np.signbit(first[3, 3])
    assert defensive_copy(a) is third and defensive_copy(a.copy()) is not third


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16", "i8", "i2", "u1", "?", "g"])
def test_dtypes_and_layouts(dtype: str) -> None:
    whole = np.ones((2 * N, 4 * N), dtype)
    for a in (whole, whole.T, whole[::2], whole[:, ::-1], whole.reshape(2, N, 4 * N).transpose(1, 0, 2)):
        copy = defensive_copy(a)
        again = defensive_copy(a)
        assert again.strides == copy.strides and again.dtype == a.dtype
        assert not np.shares_memory(copy, a)
        np.testing.assert_array_equal(copy, a)
    assert defensive_copy(whole) is defensive_copy(whole)
    assert defensive_copy(whole.T) is defensive_copy(whole.T)


def test_gradients_are_arrays_of_the_caller() -> None:
    a = matrix()
    _, pull = func.vjp(lambda x, y: np.vdot(a, x) + np.vdot(a, y), a.copy(), a.copy())
    first, second = pull(1.0)
    first += 1.0
    np.testing.assert_array_equal(second, a)
    np.testing.assert_array_equal(pull(1.0)[0], a)


def copies_of(monkeypatch: Any) -> list[Any]:
    """The keys of the copies that are made from now on."""
    made: list[Any] = []
    note = copies._note_source

    def watched(key: Any, *rest: Any) -> None:
        made.append(key)
        note(key, *rest)

    monkeypatch.setattr(copies, "_note_source", watched)
    return made


def product(a: Any, x: Any) -> Any:
    return np.sum(np.tanh(a @ x))


@pytest.fixture
def nothing_kept() -> Iterator[None]:
    func.clear_caches()
    yield
    func.clear_caches()


@pytest.mark.usefixtures("nothing_kept")
@pytest.mark.parametrize("view", [lambda a: a, lambda a: a.T, lambda a: a[: N - 1], lambda a: a.reshape(2, -1, N)[1]])
def test_the_second_copy_is_kept_for_the_next_calls(monkeypatch: Any, view: Callable[[Any], Any]) -> None:
    made = copies_of(monkeypatch)
    a, x = np.tile(matrix(), (2, 2)), np.ones(2 * N)
    for _ in range(5):
        func.grad(lambda x: product(view(a), x[: view(a).shape[1]]))(x)
    assert len(made) == 2


@pytest.mark.usefixtures("nothing_kept")
@pytest.mark.parametrize("place", [(0, 0), (N // 2, 3), (-1, -1)])
def test_writes_between_calls_count(monkeypatch: Any, place: Any) -> None:
    made = copies_of(monkeypatch)
    a, x = matrix(), np.ones(N)
    gradient = func.grad(lambda x: product(a, x))
    for step in range(8):
        expected = a.T @ (1 - np.tanh(a @ x) ** 2)
        np.testing.assert_allclose(gradient(x), expected, rtol=1e-12)
        if step >= 3:
            a[place] -= 0.1
    assert len(made) == 2 + 4
    assert not [source for source in copies._SOURCES.values() if source() is a and source.copy is not None]


@pytest.mark.usefixtures("nothing_kept")
def test_kept_copies_end_with_the_data() -> None:
    data, x = [matrix()], np.ones(N)
    for _ in range(3):
        func.grad(lambda x: product(data[0][1:], x))(x)
    copy = weakref.ref(next(source.copy for source in copies._SOURCES.values() if source.copy is not None))
    assert copy() is not None
    data.clear()
    gc.collect()
    assert copy() is None


@pytest.mark.usefixtures("nothing_kept")
def test_the_bytes_of_kept_copies_have_a_bound() -> None:
    arrays = [matrix() + i for i in range(6)]
    x = np.ones(N)

    def kept_bytes() -> int:
        return sum([source.copy.nbytes for source in copies._SOURCES.values() if source.copy is not None])

    def call() -> None:
        for a in arrays:
            func.grad(lambda x: product(a, x))(x)  # noqa: B023

    with func.config.override(array_cache=3 * arrays[0].nbytes + 10):
        for _ in range(3):
            call()
            assert kept_bytes() <= func.config.array_cache
        assert kept_bytes() == 3 * arrays[0].nbytes
    for _ in range(2):
        call()
    assert kept_bytes() == 6 * arrays[0].nbytes
    func.clear_caches()
    assert kept_bytes() == 0
    with func.config.override(array_cache=0):
        for _ in range(3):
            call()
        assert kept_bytes() == 0
    big = np.ones((1000, N))
    with func.config.override(array_cache=big.nbytes - 1):
        for _ in range(3):
            func.grad(lambda x: product(big, x))(x)
        assert kept_bytes() == 0


@pytest.mark.usefixtures("nothing_kept")
def test_arrays_of_others_are_copied_each_time(tmp_path: Any, monkeypatch: Any) -> None:
    """Memory of a file, or of another library, may change and end without notice."""
    made = copies_of(monkeypatch)
    path = tmp_path / "a.npy"
    np.save(path, matrix())
    a, x = np.load(path, mmap_mode="r+"), np.ones(N)
    b = np.frombuffer(bytearray(matrix().tobytes())).reshape(N, N)
    for other in (np.asarray(a), b):
        for _ in range(4):
            func.grad(lambda x: product(other, x))(x)  # noqa: B023
    assert not [source for source in copies._SOURCES.values() if source.copy is not None]
    assert len(made) == 8


@pytest.mark.usefixtures("nothing_kept")
@pytest.mark.parametrize("has_digests", [False, True])
def test_threads_share_kept_copies(has_digests: bool, monkeypatch: Any) -> None:
    monkeypatch.setattr(bit_digests, "DIGESTS", digests() if has_digests else Digests())
    a, x = np.random.default_rng(1).normal(size=(1200, 200)), np.ones(200)
    expected = a.T @ (1 - np.tanh(a @ x) ** 2)

    def work(_: int) -> bool:
        return all([np.allclose(func.grad(lambda x: product(a, x))(x), expected, rtol=1e-12) for _ in range(10)])

    with cf.ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(8)))


def digests() -> Digests:
    """Digests with code."""
    if not machine.available():
        pytest.skip("no LLVM")
    found = Digests()
    found.provide()
    assert found.is_there
    return found


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("nbytes", [copies.LEAST_DIGEST, copies.LEAST_DIGEST + 257, 3 * bit_digests.CHUNK + 255])
def test_digests_show_every_bit(nbytes: int, threads: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(bit_digests, "SEVERAL", 0)
    found = digests()
    x = np.random.default_rng(2).integers(0, 256, size=nbytes).astype(np.uint8)
    before = found.of(x)
    assert found.of(x.copy()) == before
    with func.config.override(num_threads=threads):
        assert found.of(x) == before
        seen = {before}
        places = [0, 1, 255, 256, 511, nbytes // 2, *range(nbytes - 300, nbytes, 7), nbytes - 1]
        if nbytes > bit_digests.CHUNK:
            places += [bit_digests.CHUNK - 1, bit_digests.CHUNK, 2 * bit_digests.CHUNK]
        for place in places:
            for bit in (1, 64, 128):
                x[place] ^= bit
                seen.add(found.of(x))
                x[place] ^= bit
        assert len(seen) == 1 + 3 * len(places)
    assert found.of(x) == before


def test_digests_show_changes_that_cancel_in_sums() -> None:
    found = digests()
    x = np.random.default_rng(3).normal(size=copies.LEAST_DIGEST // 8)
    seen = {found.of(x)}
    count = 1
    for step in (1, 4, 32, 64, 1000):
        for first in (0, 5, 96):
            for change in (np.negative, np.zeros_like, lambda pair: pair[::-1].copy()):
                y = x.copy()
                y[[first, first + step]] = change(y[[first, first + step]])
                seen.add(found.of(y))
                count += 1
    blocks_swapped = x.reshape(-1, 32)[::-1].copy()
    seen |= {
        found.of(blocks_swapped),
        found.of(np.zeros_like(x)),
        found.of(-np.zeros_like(x)),
        found.of(np.roll(x, 32)),
    }
    assert len(seen) == count + 4


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "i1", "i2", "i4", "i8"])
def test_digests_show_changes_of_sign_that_follow_each_other(dtype: str) -> None:
    found = digests()
    x = np.ones(copies.LEAST_DIGEST // np.dtype(dtype).itemsize, dtype)
    row = 256 // x.itemsize  # what is so far apart is taken in by the same word of the digest
    in_word = 8 // x.itemsize
    seen, count = {found.of(x)}, 1
    for first in range(in_word):
        for mask in range(1, 1 << in_word):
            second = [row + place for place in range(in_word) if mask >> place & 1]
            y = x.copy()
            y[[first, *second]] *= np.array(-1, dtype)
            seen.add(found.of(y))
            count += 1
    assert len(seen) == count


def test_code_for_digests_comes_when_it_is_worth_it(monkeypatch: Any) -> None:
    if not machine.available():
        pytest.skip("no LLVM")
    found = Digests()
    x = np.ones(copies.LEAST_DIGEST // 8)
    assert found.same_bits(x, x.copy())
    assert not found.is_there
    digests()  # now it is on disk, or in the process
    monkeypatch.setattr(bit_digests, "WORTH_LOADING", 0.0)
    monkeypatch.setattr(bit_digests, "WORTH_COMPILING", 0.0)
    assert not found.same_bits(x, x + 1)
    background.finish()
    assert found.is_there


def test_without_a_compiler_bytes_are_compared(monkeypatch: Any) -> None:
    def fail(*_: Any) -> Any:
        raise machine.CompileError("no compiler")

    monkeypatch.setattr(bit_digests, "WORTH_LOADING", 0.0)
    monkeypatch.setattr(machine, "compile_ir", fail)
    monkeypatch.setattr(machine, "existing_code", fail)
    found = Digests()
    x = np.ones(copies.LEAST_DIGEST // 8)
    for _ in range(2):
        assert found.same_bits(x, x.copy()) and not found.same_bits(x, x + 1)
    found.provide()
    assert not found.is_there


@pytest.mark.usefixtures("nothing_kept")
@pytest.mark.parametrize("place", [(0, 0), (700, 3), (-1, -1), ...])
@pytest.mark.parametrize("length", [1400, 1401])
def test_writes_to_large_arrays_show_in_digests(monkeypatch: Any, place: Any, length: int) -> None:
    monkeypatch.setattr(bit_digests, "DIGESTS", digests())
    a = np.random.default_rng(4).normal(size=(length, 99))
    assert a.nbytes > copies.LEAST_DIGEST
    first = defensive_copy(a)
    assert defensive_copy(a) is first
    assert defensive_copy(a) is first
    before = a.copy()
    a[place] = a[place] * 3
    second = defensive_copy(a)
    assert second is not first
    np.testing.assert_array_equal(first, before)
    np.testing.assert_array_equal(second, a)
    assert defensive_copy(a) is second
    np.testing.assert_array_equal(first, before)
