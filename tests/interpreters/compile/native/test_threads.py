"""Large kernels in chunks: the same bits on any number of threads, nothing written that is shared, long sums."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("llvmlite")

import func
from func.backends.loops import chunking
from func.backends.loops.chunking import MOST_CHUNKS, chunk_loops
from func.backends.loops.kernels import (
    Branch,
    Buffer,
    Chunking,
    ConditionalLoop,
    CountedLoop,
    Item,
    Load,
    LoopNest,
    NestStage,
    Register,
    Store,
    StridedRef,
)
from func.backends.loops.memory_dependence import may_alias
from tests.interpreters.compile.native.test_native import ROW_FUNCTIONS, SHAPES, check, compiled, same

rng = np.random.default_rng(11)
Case = tuple[Callable[..., Any], tuple[Any, ...]]


@pytest.fixture(autouse=True)
def number_restored() -> Iterator[None]:
    with func.config.override(num_threads=func.config.num_threads):
        yield


def nests(items: list[Item]) -> Iterator[LoopNest]:
    """All nests of a program."""
    for item in items:
        if isinstance(item, LoopNest):
            yield item
        elif isinstance(item, CountedLoop):
            yield from nests(item.body)
        elif isinstance(item, ConditionalLoop):
            yield from nests([*item.test, *item.body])
        elif isinstance(item, Branch):
            yield from nests([one for branch in item.branches for one in branch])


def chunkings(jitted: Any, *args: Any) -> list[Chunking]:
    """How the kernels of a compiled function are cut."""
    program = jitted.cached_call(args, {})[3].compiled.executable(np).native.program
    return [one for nest in nests(program.items) for one in nest.chunkings]


def bits(tree: Any) -> list[bytes]:
    """The part that must be the same, bit for bit."""
    return [np.asarray(leaf).tobytes() for leaf in func.tree.leaves(tree)]


def numbers(*shape: int, dtype: Any = np.float64) -> Any:
    return rng.normal(size=shape).astype(dtype)


def softmax(x: Any, axis: Any) -> Any:
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


def layer_norm(x: Any, scale: Any) -> Any:
    center = x - np.mean(x, axis=-1, keepdims=True)
    return scale * center / np.sqrt(np.mean(center * center, axis=-1, keepdims=True) + 1e-5)


def normed_loss(x: Any, scale: Any) -> Any:
    return np.sum(np.tanh(layer_norm(x, scale)))


def extremes(x: Any) -> Any:
    return np.max(x), np.min(x, axis=0), np.any(x > 3), np.all(x > -9, axis=1), np.argmax(x), np.prod(1 + x * 1e-6)


def scanned(x: Any, steps: Any) -> Any:
    return func.scan(lambda c, s: (np.sin(c) * s + c, np.sum(c * c)), x, steps)


def looped(x: Any) -> Any:
    return func.while_loop(lambda c: np.max(c) > 0.5, lambda c: np.tanh(c) * 0.9, x)


def chosen(x: Any) -> Any:
    return func.cond(np.sum(x) > 0, lambda t: np.exp(t) / np.sum(np.exp(t)), lambda t: np.sin(t), x)


def nested(x: Any) -> Any:
    inner = func.jit(lambda t: np.sum(np.cos(t) * t))
    return func.grad(inner)(x), func.jit(np.tanh)(x)


def blocks(x: Any) -> Any:
    out = np.concatenate([np.sin(x), np.cos(x)])
    padded = np.pad(np.exp(x), ((2, 1), (3, 0)))
    return out, padded, np.stack([x, x * 2], axis=2)


def columns(x: Any) -> Any:
    return np.sum(np.sin(x), axis=0), np.mean(x, axis=0), np.max(np.exp(x), axis=0)


def three_axes(x: Any, y: Any) -> Any:
    z = y[:, None, :]
    return np.sin(x) + z, np.sum(x * z, (0, 2))


CASES: dict[str, Case] = {
    "elements": (lambda x: (np.sin(x) * 2, np.exp(x).astype(np.float32), x > 0), (numbers(50_003),)),
    "a gap in vectors": (lambda x, y: np.sin(x[::3]) * y[::-1][:20_001], (numbers(60_003), numbers(20_002))),
    "sum": (lambda x: np.sum(np.sin(x)), (numbers(70_001),)),
    "many sums": (lambda x: (np.sum(x), np.sum(x * x), np.max(x), np.mean(np.abs(x))), (numbers(500, 301),)),
    "softmax of all": (lambda x: softmax(x, None), (numbers(350_001),)),
    "softmax of rows": (lambda x: softmax(x, -1), (numbers(200, 257),)),
    "softmax of columns": (lambda x: softmax(x, 0), (numbers(257, 200),)),
    "softmax of few rows": (lambda x: softmax(x, -1), (numbers(3, 30_001),)),
    "layer norm": (func.grad(normed_loss, (0, 1)), (numbers(300, 129, dtype="f4"), numbers(129, dtype="f4"))),
    "layer norm of long rows": (func.grad(normed_loss, (0, 1)), (numbers(24, 20_003), numbers(20_003))),
    "columns": (columns, (numbers(3000, 37),)),
    "wide columns": (columns, (numbers(37, 3000),)),
    "columns of few": (columns, (numbers(30_001, 3),)),
    "extremes": (extremes, (numbers(500, 301),)),
    "transposes": (lambda x: (x.T + np.exp(x[:, ::-1].T), x.T * 2), (numbers(401, 203),)),
    "broadcasts": (lambda x, y: np.exp(x[:, None] * y), (numbers(301), numbers(203))),
    "weighted": (lambda x, w: (np.sum(np.sin(x) * w), np.sum(np.sin(x) * w, axis=1)), (numbers(20_001, 3), numbers(3))),
    "three axes": (three_axes, (numbers(40, 30, 50), numbers(40, 50))),
    "parts of one array": (blocks, (numbers(150, 201),)),
    "complex": (lambda z: (np.exp(z), np.sum(z * z.conj())), (numbers(20_001) + 1j * numbers(20_001),)),
    "halves": (lambda x: (np.sin(x), np.sum(x), np.max(x)), (numbers(140_001, dtype=np.float16),)),
    "integers": (lambda x: (np.sum(x), x // 3, np.max(x), np.cumsum(x)), (rng.integers(-9, 9, 100_001),)),
    "picked": (lambda x, i: np.sin(x)[i] * 2, (numbers(3001), rng.integers(-3001, 3001, 60_001))),
    "running": (lambda x: np.cumsum(np.sin(x), axis=1), (numbers(100, 501),)),
    "added at places": (func.grad(lambda x, i: np.sum(np.sin(x[i]))), (numbers(500), rng.integers(0, 500, 60_001))),
    "scan": (scanned, (numbers(20_001), numbers(5))),
    "while": (looped, (numbers(30_001),)),
    "cond": (chosen, (numbers(30_001),)),
    "nested": (nested, (numbers(40_001),)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_same_bits_on_any_number_of_threads(name: str) -> None:
    function, args = CASES[name]
    jitted = compiled(function)
    func.config.num_threads = 1
    alone = jitted(*args)
    same(alone, function(*args), 2e-3 if name == "halves" else None)
    assert chunkings(jitted, *args)
    for threads in (2, 3, 7):
        func.config.num_threads = threads
        for _ in range(2):
            assert bits(jitted(*args)) == bits(alone)
    with func.config.override(num_threads=2):
        assert bits(jitted(*args)) == bits(alone)


@pytest.mark.parametrize("name", ["sum", "softmax of rows", "layer norm of long rows", "columns", "picked", "scan"])
def test_two_threads_of_python_at_once(name: str) -> None:
    function, args = CASES[name]
    func.config.num_threads = 3
    jitted = compiled(function)
    expected = bits(jitted(*args))
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(10):
            if bits(jitted(*args)) != expected:
                wrong.append(number)

    threads = [threading.Thread(target=work, args=[number]) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_small_kernels_are_not_divided() -> None:
    def small(x: Any) -> Any:
        return softmax(x, -1), np.sum(np.sin(x)), np.sum(x, axis=0)

    x = numbers(20, 30)
    jitted = compiled(small)
    jitted(x)
    assert not chunkings(jitted, x)


def test_the_number_of_chunks_follows_from_the_size_alone() -> None:
    found = []
    for threads in (1, 5):
        func.config.num_threads = threads
        jitted = compiled(lambda x: np.sin(x) * 2)
        for size in (40_000, 400_000, 4_000_000):
            x = np.zeros(size)
            jitted(x)
            found.append([one.chunks for one in chunkings(jitted, x)])
    assert found[:3] == found[3:]
    assert found[0] < found[1] <= found[2] == [MOST_CHUNKS]


def test_a_position_out_of_range_in_one_chunk_is_an_error() -> None:
    x, places = numbers(1000), rng.integers(0, 1000, 200_000)
    jitted = compiled(lambda x, i: np.exp(x[i]))
    jitted(x, places)
    assert chunkings(jitted, x, places)
    for at in (0, 77_777, 199_999):
        broken = places.copy()
        broken[at] = 1000
        with pytest.raises(IndexError):
            jitted(x, broken)
    same(jitted(x, places), np.exp(x[places]))


def test_nan_in_one_chunk_is_noticed() -> None:
    def loss(x: Any) -> Any:
        return np.sum(np.where(x > 0, np.sqrt(np.where(x > 0, x, 1)), 0) * np.max(x))

    x = numbers(100_000)
    x[70_001] = np.nan
    same(compiled(func.grad(loss))(x), func.grad(loss)(x))


def test_chunks_have_scratch_and_accumulators_of_their_own() -> None:
    function, args = CASES["layer norm of long rows"]
    jitted = compiled(function)
    jitted(*args)
    (found,) = chunkings(jitted, *args)
    assert found.stage is None and found.accumulators and all([pieces is not None for _, pieces in found.private])
    function, args = CASES["layer norm"]
    jitted = compiled(function)
    jitted(*args)
    (found,) = chunkings(jitted, *args)
    assert found.private and all([pieces is None for _, pieces in found.private])


def test_every_stage_over_everything_is_a_job() -> None:
    function, args = CASES["softmax of all"]
    jitted = compiled(function)
    jitted(*args)
    found = chunkings(jitted, *args)
    assert len(found) >= 2 and all([one.stage is not None for one in found])


def copied(target: StridedRef, source: StridedRef, domain: tuple[int, ...]) -> LoopNest:
    """A large nest that copies from buffer to buffer."""
    value = Register(source.buffer.dtype)
    return LoopNest(domain, None, [NestStage(True, [Load(value, source), Store(target, value)])])


@pytest.mark.parametrize(
    ("target", "source", "divided"),
    [
        ((0, (1,)), (0, (1,)), True),
        ((0, (2,)), (1, (2,)), True),
        ((0, (1,)), (400_000, (1,)), True),
        ((0, (1,)), (1, (1,)), False),
        ((0, (1,)), (0, (2,)), False),
        ((0, (0,)), (400_000, (1,)), False),
        ((399_999, (-1,)), (0, (1,)), False),
    ],
)
def test_nests_whose_chunks_would_meet_are_not_divided(target: Any, source: Any, divided: bool) -> None:
    buffer = Buffer(1_000_000, np.dtype(float), "output", 0)
    nest = copied(StridedRef(buffer, *target), StridedRef(buffer, *source), (400_000,))
    chunk_loops([nest])
    assert bool(nest.chunkings) is divided


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_spots_that_meet_are_found(data: st.DataObject) -> None:
    """Against all pairs of indices: a claim of separation is right, and equal strides are exact."""
    domain = tuple(data.draw(st.lists(st.integers(2, 4), min_size=1, max_size=3)))
    steps = st.tuples(*[st.integers(-6, 6) for _ in domain])
    one = data.draw(steps)
    other = one if data.draw(st.booleans()) else data.draw(steps)
    buffer = Buffer(1000, np.dtype(float))
    refs = StridedRef(buffer, 500, one), StridedRef(buffer, 500 + data.draw(st.integers(-12, 12)), other)
    group = data.draw(st.sets(st.integers(0, len(domain) - 1), min_size=1))
    meets = False
    indices = list(itertools.product(*[range(length) for length in domain]))
    for i, j in itertools.product(indices, indices):
        if any([i[axis] != j[axis] for axis in group]):
            places = [
                ref.offset + sum([step * k for step, k in zip(ref.strides, at, strict=True)])
                for ref, at in zip(refs, (i, j), strict=True)
            ]
            meets = meets or places[0] == places[1]
    found = may_alias(domain, *refs, sorted(group))
    assert found or not meets
    if one == other:
        assert found == meets


@pytest.fixture
def everything_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of any size run in chunks."""
    for name, value in {"LEAST_WORK": 0.0, "CHUNK_WORK": 1e-3, "SHORTEST": 4}.items():
        monkeypatch.setattr(chunking, name, value)
    monkeypatch.setattr(chunking, "_affordable", lambda needs, total: MOST_CHUNKS)
    func.config.num_threads = 3


@pytest.mark.usefixtures("everything_divided")
@pytest.mark.parametrize("row", ROW_FUNCTIONS, ids=lambda row: row.__name__)
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_small_rows_in_chunks(row: Callable[..., Any], shape: tuple[int, ...], axis: Any) -> None:
    check(lambda x: row(x, axis), numbers(*shape))


@pytest.mark.usefixtures("everything_divided")
@pytest.mark.parametrize("name", CASES)
def test_large_kernels_in_as_many_chunks_as_there_can_be(name: str) -> None:
    function, args = CASES[name]
    same(compiled(function)(*args), function(*args), 2e-3 if name == "halves" else None)


LONG = {
    "tenths": np.full(10_000_000, 0.1, np.float32),
    "random": rng.random(10_000_000, dtype=np.float32),
    "around three": rng.normal(size=3_000_017).astype(np.float32) + 3,
    "rows": rng.random((3, 1_000_003), dtype=np.float32),
    "columns": rng.random((1_000_003, 3), dtype=np.float32),
}
SUMS: dict[str, Callable[[Any], Any]] = {
    "sum": np.sum,
    "mean": np.mean,
    "variance": np.var,
    "rows": lambda x: np.sum(x, axis=-1),
    "columns": lambda x: np.sum(x, axis=0),
    "doubled": lambda x: np.sum(x * np.float32(2), axis=tuple(range(x.ndim))),
}
NO_VARIANCE = ("variance", "tenths")


@pytest.mark.parametrize(("name", "values"), [pair for pair in itertools.product(SUMS, LONG) if pair != NO_VARIANCE])
def test_long_sums_are_as_accurate_as_those_of_numpy(name: str, values: str) -> None:
    x = LONG[values]
    exact = SUMS[name](x.astype(np.float64))

    def error(got: Any) -> float:
        return float(np.max(np.abs(got - exact) / np.abs(exact))) / float(np.finfo(np.float32).eps)

    assert error(compiled(SUMS[name])(x)) <= max(2 * error(SUMS[name](x)), 3)
