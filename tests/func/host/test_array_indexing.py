"""Plain arrays indexed by traced values, against NumPy."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import func
from func.backends.llvm.call_stubs import capi

pytestmark = pytest.mark.skipif(not capi.available(), reason="native code cannot read the objects of this interpreter")

FORMS: dict[str, Callable[[Any, Any], Any]] = {
    "i": lambda a, i: a[i],
    "i, i": lambda a, i: a[i, i],
    "i, 0": lambda a, i: a[i, 0],
    "0, i": lambda a, i: a[0, i],
    "i, :": lambda a, i: a[i, :],
    ":, i": lambda a, i: a[:, i],
    "..., i": lambda a, i: a[..., i],
    "i, None": lambda a, i: a[i, None],
    "i, i, i": lambda a, i: a[i, i, i],
    "i, [0]": lambda a, i: a[i, [0]],
    "i, 0:1": lambda a, i: a[i, 0:1],
    "-i": lambda a, i: a[-i],
    "i > 0": lambda a, i: a[i > 0],
    ":, i > 0": lambda a, i: a[:, i > 0],
    "i > 0, 0": lambda a, i: a[i > 0, 0],
}
ARRAYS = [
    np.arange(1.0, 1 + np.prod(shape)).reshape(shape).astype(dtype)
    for shape, dtypes in {
        (1,): ["f8"], (2,): ["f4", "c16"], (3,): ["f8", "?"], (2, 2): ["i8"], (3, 2): ["f8"], (2, 3): ["f8"],
        (2, 2, 2): ["f8"],
    }.items()
    for dtype in dtypes
]  # fmt: skip
INDICES: list[Any] = [0, 1, -1, 2, -3, [0], [1, 0], [-1, 1], [[0, 1]], [0, 1, 2], []]


def outcome(call: Callable[[], Any]) -> Any:
    """The result of a call as an array, or the class of its error."""
    try:
        return np.asarray(call())
    except (IndexError, TypeError, ValueError) as error:
        return type(error)


def assert_same(found: Any, right: Any, what: Any) -> None:
    if isinstance(right, type) or (found is IndexError and what[-1] == [] and 0 not in what[0]):
        assert isinstance(found, type), (what, found, right)  # NumPy takes a mask of no elements, func refuses it
        return
    assert not isinstance(found, type), (what, found, right)
    assert found.dtype == right.dtype, (what, found.dtype, right.dtype)
    np.testing.assert_array_equal(found, right, err_msg=str(what))


@pytest.mark.parametrize("form", FORMS)
def test_jit_reads_what_numpy_reads(form: str) -> None:
    for array, index in itertools.product(ARRAYS, INDICES):
        i = np.asarray(index, np.intp)
        right = outcome(lambda array=array, i=i: FORMS[form](array, i))
        found = outcome(lambda array=array, i=i: func.jit(lambda i: FORMS[form](array, i), compiler="numpy")(i))
        assert_same(found, right, (array.shape, array.dtype, index))


@pytest.mark.parametrize("form", ["i", "i, i", "i, 0", "0, i", "i, :", ":, i", "..., i", "i, None", "-i", "i, [0]"])
def test_vmap_reads_what_numpy_reads_for_each_element(form: str) -> None:
    for array, index in itertools.product(ARRAYS, [[0, 1], [1, 1], [-1, 0], [[0, 1], [1, 0]]]):
        i = np.asarray(index)
        right = outcome(lambda array=array, i=i: np.stack([FORMS[form](array, n) for n in i]))
        if isinstance(right, type):
            continue
        found = outcome(lambda array=array, i=i: func.vmap(lambda i: FORMS[form](array, i))(i))
        assert_same(found, right, (array.shape, array.dtype, index))
        if form == "i, [0]":  # never a view
            compiled = func.jit(func.vmap(lambda i, array=array: FORMS[form](array, i)), compiler="numpy")
            assert_same(compiled(i), right, (array.shape, array.dtype, index))


def slopes(f: Callable[[Any], Any], x: Any) -> Iterator[Any]:
    yield func.grad(f)(x)
    yield func.jit(func.grad(f))(x)
    yield func.grad(func.jit(f))(x)
    yield func.jacfwd(f)(x)
    yield func.vmap(func.grad(f))(x[None])[0]
    yield func.jit(func.vmap(func.grad(f)))(x[None])[0]


def test_derivatives_of_code_with_tables() -> None:
    table = np.array([[1.0, 2.0], [3.0, 5.0], [7.0, 11.0]])

    def by_order(x: Any) -> Any:
        return np.sum(x[:, None] ** 2 * table[np.argsort(x)])

    def by_mask(x: Any) -> Any:
        return np.sum(x) * np.sum(np.where(x > 0.5, table[:, 1][np.argmax(x)], table[0][np.argmin(x) * 0]))

    def by_place(x: Any) -> Any:
        place = np.searchsorted(table[:, 0], x[0] * 6)
        return x[0] * table[place, 1] + x[1] * table[place - 1, 0]

    for f in (by_order, by_mask, by_place):
        x = np.array([0.9, 0.2, 0.6])
        step = 1e-6 * np.eye(3)
        right = [(f(x + d) - f(x - d)) / 2e-6 for d in step]
        for found in slopes(f, x):
            np.testing.assert_allclose(found, right, rtol=1e-6)


def test_bodies_of_loops_read_tables() -> None:
    table = np.array([1.0, 10.0, 100.0])
    _, read = func.scan(lambda carry, i: (carry, table[i]), 0.0, np.array([2, 0, 1]))
    np.testing.assert_array_equal(read, [100.0, 1.0, 10.0])
    assert func.fori_loop(0, 3, lambda i, total: total + table[i] * i, 0.0) == 210.0
    assert func.cond(True, lambda i: table[i], lambda i: table[i] * 0, np.array(1)) == 10.0


def test_one_program_serves_all_indices() -> None:
    table = np.arange(100.0)
    read = func.jit(lambda i: table[i])
    assert [read(i) for i in range(100)] == list(range(100))
    assert read.cache_info().currsize == 1


def test_take_of_a_plain_array() -> None:
    table = np.array([[1.0, 2.0], [3.0, 5.0]])
    for index in (np.array(1), np.array([1, 0, -1]), np.array([[0]])):
        for axis in (None, 0, 1):
            found = func.jit(lambda i, axis=axis: np.take(table, i, axis=axis))(index)
            np.testing.assert_array_equal(found, np.take(table, index, axis=axis))


def test_what_is_read_stays_when_the_array_changes() -> None:
    def f(i: Any) -> Any:
        array = np.ones(3)
        before = array[i]
        array[:] = 5
        return before, array[i]

    for found in (func.jit(f)(np.array([1, 2])), func.vmap(f)(np.array([1, 2]))):
        np.testing.assert_array_equal(found, [[1, 1], [5, 5]])


def test_rows_stay_views() -> None:
    """A row of a plain array shares its memory: the guard decides which row, and writes reach the array."""

    def f(i: Any) -> Any:
        array = np.zeros((3, 2))
        row = array[i]
        row[0] = 5
        return array * 1.0

    jitted = func.jit(f)
    for i in (0, 2, -1):
        np.testing.assert_array_equal(jitted(i), f(i))


def test_writes_with_traced_indices_are_refused() -> None:
    def f(i: Any) -> Any:
        array = np.zeros(3)
        array[i] = 1.0
        return array.sum()

    with pytest.raises(TypeError, match="plain array"):
        func.jit(f)(np.array([0, 1]))


def test_subclasses_and_objects_keep_their_own() -> None:
    texts = np.array(["a", "b"], object)
    assert func.jit(lambda i, x: x * len(texts[i]))(0, 2.0) == 2.0
    matrix = np.ma.masked_array([1.0, 2.0], mask=[False, True])
    assert func.jit(lambda i, x: x * matrix[i])(0, 2.0) == 2.0
    for refused in (1, np.array([0, 1])):
        with pytest.raises(TypeError):
            func.jit(lambda i, x: x * matrix[i])(refused, 2.0)


def test_tensors_index_plain_arrays() -> None:
    table = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(np.asarray(table[func.tensor([2, 0])]), table[[2, 0]])
    assert table[func.tensor(1), 0] == 2.0


def test_threads_and_references() -> None:
    table = np.arange(4.0)
    jitted = func.jit(lambda x: np.sum(table[np.argsort(x)] * x))
    index = (1, 2)
    plain = np.ones((2, 3))
    before = sys.getrefcount(plain), sys.getrefcount(index)
    for _ in range(1000):
        plain[index]
    assert (sys.getrefcount(plain), sys.getrefcount(index)) == before
    wrong: list[Any] = []

    def work(seed: int) -> None:
        for _ in range(20):
            x = np.random.default_rng(seed).random(4)
            if not np.isclose(func.jit(lambda x: np.sum(table[np.argsort(x)] * x))(x), jitted(x)):
                wrong.append(x)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_arrays_outlive_the_modules() -> None:
    """While the process ends, objects with arrays are indexed after func's modules are gone."""
    program = """
import sys
import numpy as np, func
class Late:
    def __init__(self): self.array = np.arange(3.0)
    def __del__(self): print(float(self.array[1]), float(self.array[(2,)]))
func.vmap(lambda x: x)(np.ones(2))
sys.modules["late"] = Late()
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 0 and run.stdout == "1.0 2.0\n", run
