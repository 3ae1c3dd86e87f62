"""`sum_over`: values, derivatives and statistics over data in memory, in files, in stores and in batches."""

from __future__ import annotations

import concurrent.futures as cf
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import func
from func.errors import ArgumentError, RaggedChunksError, ScalarOutputError
from func.workers.running import Results
from func.workers.sources import _memory
from tests.support.executors import Serial

RNG = np.random.default_rng(0)
X = RNG.normal(size=(1000, 5))
Y = (X @ np.arange(5.0) + RNG.normal(size=1000) > 0) * 1.0
P = {"w": RNG.normal(size=5) * 0.1, "b": np.array(0.3)}
V = {"w": RNG.normal(size=5), "b": np.array(-1.0)}


def loss(p: Any, x: Any, y: Any) -> Any:
    z = x @ p["w"] + p["b"]
    return np.logaddexp(0, z) - y * z


def whole(p: Any) -> Any:
    z = X @ p["w"] + p["b"]
    return np.mean(np.logaddexp(0, z) - Y * z)


def batches() -> Any:
    return ((X[i : i + 90], Y[i : i + 90]) for i in range(0, 1000, 90))


def files(folder: Path) -> Any:
    np.save(folder / "x.npy", X)
    np.save(folder / "y.npy", Y)
    return str(folder / "x.npy"), folder / "y.npy"


def memory_maps(folder: Path) -> Any:
    padded = np.zeros((1003, 5))
    padded[2:1002] = X
    np.save(folder / "x.npy", padded)
    return np.load(folder / "x.npy", mmap_mode="r")[1:][1:1001], Y


def zarr_arrays(folder: Path) -> Any:
    zarr = pytest.importorskip("zarr")
    store = zarr.create_array(store=str(folder / "x.zarr"), shape=X.shape, chunks=(100, 5), dtype="f8")
    store[:] = X
    return store, Y


SOURCES: dict[str, Callable[[Path], Any]] = {
    "arrays": lambda folder: (X, Y),
    "files": files,
    "memory maps": memory_maps,
    "zarr": zarr_arrays,
    "batches": lambda folder: batches,
    "batches of which some are empty": lambda folder: lambda: iter([(X[:0], Y[:0]), *batches(), (X[:0], Y[:0])]),
    "an object that can be iterated again": lambda folder: Batches(),
}


class Batches:
    def __iter__(self) -> Any:
        return batches()


def stacked(function: Callable[[Any], Any]) -> Any:
    return func.vmap(function)(func.tree.map(lambda x, y: np.stack([x, y]), P, V))


FORMS: dict[str, Callable[[Any], Any]] = {
    "value": lambda f: f(P),
    "grad": lambda f: func.grad(f)(P),
    "value_and_grad": lambda f: func.value_and_grad(f)(P),
    "jvp": lambda f: func.jvp(f, (P,), (V,)),
    "hvp": lambda f: func.hvp(f, P, V),
    "hessian": lambda f: func.hessian(f)(P),
    "vmap": stacked,
    "vmap of grad": lambda f: stacked(func.grad(f)),
    "vmap of hessian": lambda f: stacked(func.hessian(f)),
    "jit": lambda f: func.jit(f)(P),
    "jit of value_and_grad": lambda f: func.jit(func.value_and_grad(f))(P),
    "jit of hvp": lambda f: func.jit(lambda p, v: func.hvp(f, p, v))(P, V),
    "grad of jit": lambda f: func.grad(func.jit(f))(P),
    "grad of grad": lambda f: func.grad(lambda p: sum([np.sum(g**2) for g in func.grad(f)(p).values()]))(P),
}


@pytest.mark.parametrize("source", SOURCES)
def test_derivatives_are_those_of_the_whole(source: str, tmp_path: Path) -> None:
    data = SOURCES[source](tmp_path)
    chunks = {} if "atches" in source or "iterated" in source else {"chunk_size": 130}
    forms = FORMS if source in ("arrays", "batches") else {"value_and_grad": FORMS["value_and_grad"]}
    with cf.ThreadPoolExecutor(2) as executor:
        for objective in (
            func.sum_over(loss, data, **chunks),
            func.sum_over(loss, data, executor=executor, **chunks),
            func.sum_over(loss, data, executor=Serial(), **chunks),
            func.sum_over(loss, data, batched=True, **chunks),
        ):
            for name, form in forms.items():
                for x, y in zip(func.tree.leaves(form(objective)), func.tree.leaves(form(whole)), strict=True):
                    np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-12, err_msg=name)
            forms = {"value_and_grad": FORMS["value_and_grad"]}


def test_results_are_the_same_bit_by_bit_for_any_number_of_workers(tmp_path: Path) -> None:
    objective = func.sum_over(loss, (X, Y), chunk_size=70, reduce="sum")
    value, gradient = func.value_and_grad(objective)(P)
    hessian = func.hessian(objective)(P)
    for workers in (1, 2, 3, 4):
        with cf.ThreadPoolExecutor(workers) as executor:
            spread = func.sum_over(loss, files(tmp_path), chunk_size=70, reduce="sum", executor=executor)
            found = func.value_and_grad(spread)(P)
            assert found[0] == value and found[1]["w"].tobytes() == gradient["w"].tobytes()
            assert func.hessian(spread)(P)["w"]["w"].tobytes() == hessian["w"]["w"].tobytes()


def test_rows_of_files_share_memory_only_with_rows_that_are_gone(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    kept: list[Any] = []

    def keeping(w: Any, x: Any) -> Any:
        kept.append(x)
        return x @ w

    objective = func.sum_over(keeping, str(tmp_path / "x.npy"), batched=True, chunk_size=300)
    np.testing.assert_allclose(func.grad(objective)(np.ones(5)), np.mean(X, 0))
    rows = [np.asarray(x) for x in kept if np.shape(x) == (300, 5)]
    assert len(rows) == 3
    np.testing.assert_array_equal(np.concatenate(rows), X[:900])
    del kept[:], rows
    bytes_before = _memory(100).ctypes.data
    assert _memory(100).ctypes.data == bytes_before
    held = _memory(100)
    assert _memory(100).ctypes.data != held.ctypes.data


def test_a_file_that_has_become_shorter_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, X)
    objective = func.sum_over(lambda w, x: x @ w, str(path), batched=True, chunk_size=300)
    os.truncate(path, 20_000)
    with pytest.raises(OSError, match="ends before row 600 of the 1000 that it had"):
        objective(np.ones(5))


def test_a_frame_is_a_dict_of_columns() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": X[:, 0], "y": Y})

    def of_row(w: Any, row: Any) -> Any:
        return (row["a"] * w - row["y"]) ** 2

    expected = np.mean((X[:, 0] * 0.5 - Y) ** 2)
    for data in (frame, lambda: iter([frame[:300], frame[300:]])):
        np.testing.assert_allclose(func.sum_over(of_row, data)(0.5), expected)


def test_other_batches_in_a_later_pass_are_an_error() -> None:
    sizes = iter([1, 2, 2, 3])
    objective = func.sum_over(lambda w, x: x @ w, lambda: iter([X[: next(sizes)]]))
    assert objective(np.ones(5)) == np.mean(X[:2] @ np.ones(5))
    with pytest.raises(RaggedChunksError, match="have 3 samples in this pass over the data, and had 2 before"):
        objective(np.ones(5))


STATISTICS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "norms": (lambda f: f.norms(P), lambda stats: stats.norms(P, X, Y)),
    "clipped_sum": (lambda f: f.clipped_sum(0.5, P), lambda stats: stats.clipped_sum(0.5)(P, X, Y)),
    "variance": (lambda f: f.variance(P), lambda stats: stats.variance(P, X, Y)),
    "noise_scale": (lambda f: f.noise_scale(P), lambda stats: stats.noise_scale(P, X, Y)),
}


@pytest.mark.parametrize("name", STATISTICS)
@pytest.mark.parametrize("reduce", ["mean", "sum"])
def test_statistics_are_those_of_per_sample(name: str, reduce: str) -> None:
    of_sum, of_stats = STATISTICS[name]
    for data, options in (((X, Y), {"chunk_size": 111}), (batches, {})):
        found = of_sum(func.sum_over(loss, data, reduce=reduce, executor=Serial(), **options))
        for x, y in zip(func.tree.leaves(found), func.tree.leaves(of_stats(func.per_sample(loss))), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-9)


def test_one_pass_gives_value_and_gradient_and_parameters_alone_go_out() -> None:
    executor = Serial()
    objective = func.sum_over(loss, (X, Y), chunk_size=500, executor=executor)
    func.value_and_grad(objective)(P)
    assert executor.tasks == 2
    func.hvp(objective, P, V)
    assert executor.tasks == 4
    before = executor.sent
    func.grad(objective)(P)
    assert executor.sent - before < X.nbytes + Y.nbytes + 2 * 9000


def test_a_sum_travels_and_prints() -> None:
    objective = func.sum_over(loss, (X, Y), reduce="sum")
    assert repr(objective) == "func.sum_over(loss, ndarray(1000, 5), ndarray(1000,), reduce='sum')"
    assert pickle.loads(pickle.dumps(objective))(P) == objective(P)
    captured = 2.0

    def outer(scale: Any) -> Any:
        return func.sum_over(lambda p, x: np.sum(p * x * scale), X[:, 0], chunk_size=300)(captured)

    np.testing.assert_allclose(func.grad(outer)(3.0), 2 * np.mean(X[:, 0]))


PEAK = """
import sys
import numpy as np, func
path = sys.argv[1]
def peak():
    (line,) = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024
def loss(w, x):
    z = x @ w
    return np.logaddexp(0, z) - x[0] * z
w = np.zeros(64)
objective = func.sum_over(loss, path)
func.grad(func.sum_over(loss, np.zeros((100, 64))))(w)
before = peak()
func.value_and_grad(objective)(w)
print(peak() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from /proc, which Linux has")
def test_data_larger_than_memory_passes_through_it(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    data = np.lib.format.open_memmap(path, "w+", np.float64, (500_000, 64))
    data[::1000] = 1.0
    data.flush()
    size = data.nbytes
    del data
    done = subprocess.run([sys.executable, "-c", PEAK, str(path)], capture_output=True, text=True, check=True)
    assert size > 250e6 and int(done.stdout) < 100e6


BAD: dict[str, tuple[Callable[[Path], Any], type[Exception], str]] = {
    "an iterator": (
        lambda folder: func.sum_over(loss, batches()),
        ArgumentError,
        "func.sum_over: the data is a generator, which can be read only once, and every evaluation reads it\n"
        "Pass the function that makes it: data=lambda: batches(...).",
    ),
    "a function of no batches": (
        lambda folder: func.sum_over(loss, lambda: 3),
        ArgumentError,
        "func.sum_over: the function of the data returns a int, where batches are needed\nWrite a function that yields "
        "batches: each a tree of arrays with the samples along their first axes.",
    ),
    "traced data": (
        lambda folder: func.grad(lambda y: func.sum_over(loss, (X, y))(P))(Y),
        ArgumentError,
        "func.sum_over: data[1] is a value that an outer transform traces; the data are constants, and derivatives "
        "those by the parameters\nPass it among the parameters, or write np.sum(func.vmap(loss)(...)).",
    ),
    "lengths": (
        lambda folder: func.sum_over(loss, (X, Y[1:])),
        ArgumentError,
        "func.sum_over: the arrays of the data have different numbers of samples: data[0] has 1000, data[1] has 999",
    ),
    "numbers": (
        lambda folder: func.sum_over(loss, (X, 3.0)),
        ArgumentError,
        "func.sum_over: data[1] is a number and has no axis of samples",
    ),
    "other files": (
        lambda folder: func.sum_over(loss, "x.csv"),
        ArgumentError,
        "func.sum_over: data is the path 'x.csv', but sum_over reads only files of np.save (.npy)\n"
        "Open others and pass an object with a shape, a dtype and rows: np.memmap, zarr.open_array.",
    ),
    "no samples": (
        lambda folder: func.sum_over(loss, (X[:0], Y[:0]))(P),
        ArgumentError,
        "func.sum_over: the data has no samples",
    ),
    "reduce": (
        lambda folder: func.sum_over(loss, (X, Y), reduce="max"),
        ArgumentError,
        "func.sum_over: reduce must be 'mean' or 'sum', not 'max'",
    ),
    "a vector": (
        lambda folder: func.sum_over(lambda p, x, y: x * p["b"], (X, Y), chunk_size=500)(P),
        ScalarOutputError,
        "func.sum_over: <lambda> must return one real number, but returned float64[500, 5] for the 500 samples of a "
        "chunk",
    ),
    "a batched loss that sums": (
        lambda folder: func.sum_over(lambda p, x, y: np.sum(x), (X, Y), chunk_size=500, batched=True)(P),
        ScalarOutputError,
        "func.sum_over: <lambda> must return an array of 500 real numbers for a batch of 500, but returned float64[]",
    ),
    "ragged batches": (
        lambda folder: func.sum_over(loss, lambda: iter([(X, Y), (X, Y[1:])]))(P),
        RaggedChunksError,
        "func.sum_over: the arrays of batch 1 have 999, 1000 samples\nGive every array of a batch the same first axis.",
    ),
    "batches of other trees": (
        lambda folder: func.sum_over(loss, lambda: iter([(X, Y), (X,)]))(P),
        RaggedChunksError,
        "func.sum_over: batch 1 has the tree PyTreeSpec((*,), namespace='func'), and the first one "
        "PyTreeSpec((*, *), namespace='func')\nMake batches of one tree.",
    ),
    "samples of batched losses": (
        lambda folder: func.sum_over(loss, (X, Y), batched=True).norms(P),
        ArgumentError,
        "func.sum_over: gradients of single samples need the loss of one sample\nWrite it for one sample, and leave "
        "batched=True out.",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_said(case: str, tmp_path: Path) -> None:
    call, kind, message = BAD[case]
    with pytest.raises(kind) as caught:
        call(tmp_path)
    assert str(caught.value).replace(", namespace='func'", "") == message.replace(", namespace='func'", "")


def test_chunks_may_arrive_in_any_order() -> None:
    numbers = np.random.default_rng(0).standard_normal(7)

    def total(order: Any) -> Any:
        results = Results(False, [(i, i + 1, None) for i in range(7)], "sum")
        for i in order:
            results.add(int(i), [numbers[i]])
        return results.finished()[0]

    assert {total(order).tobytes() for order in (range(7), range(6, -1, -1), [3, 0, 6, 1, 5, 2, 4])} == {
        total(range(7)).tobytes()
    }
    assert total(range(7)) == ((numbers[0] + numbers[1]) + (numbers[2] + numbers[3])) + (
        (numbers[4] + numbers[5]) + numbers[6]
    )
