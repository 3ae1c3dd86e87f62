"""Native code takes and drops references in pairs: calls of every kind leave the counts of shared objects as they were.

Before Python 3.12 None is an object like others: where a call drops one reference too many, the process ends some hours
later.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import func
from func.errors import DonatedBufferError
from tests.support.threads import in_threads, quick_turns

pytest.importorskip("llvmlite")

CALLS = 200
WARM_UP = 20
X = np.array([1.0, 2.0, 3.0])
BIG = np.ones(1 << 16, float)
MATRIX, SINGULAR = np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([[1.0, 1.0], [1.0, 1.0]])
TREE = {"a": X, "b": [1.0, True], "none": None}
SHARED: dict[str, Any] = {
    **{repr(value): value for value in (None, True, False, (), "", 0, 1, 2, ..., NotImplemented)},
    **{f"dtype({code})": np.dtype(code) for code in "?bBhilqefdFDO"},
    **{kind.__name__: kind for kind in (np.ndarray, np.float64, float, int, tuple, dict)},
    "X": X,
    "BIG": BIG,
    "MATRIX": MATRIX,
    "TREE": TREE,
}
"""Objects that calls share. Newer versions of Python and NumPy do not count the references to most, but those to
arrays.
"""


def jit(f: Callable[..., Any], **options: Any) -> Any:
    return func.jit(f, compiler="llvm", **options)


def raising(call: Callable[[], Any], error: type[Exception]) -> Callable[[], None]:
    def run() -> None:
        with pytest.raises(error):
            call()

    return run


def donated_twice(double: Any) -> None:
    a = np.full(3, 1.0)
    double(a)
    double(a)


def kept(f: Any) -> Callable[[], None]:
    """Calls whose last few results are referred to, so that memory of some, but not of all, is used again."""
    results: list[Any] = []

    def run() -> None:
        results.append(f(BIG))
        del results[:-3]

    return run


def broken_argument(f: Any) -> None:
    """An argument of a new class whose conversion raises."""

    class Broken:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            raise ZeroDivisionError

    f(Broken())


f = jit(lambda x: np.sin(x) * 2)
product = jit(lambda a, b: a @ b)
scaled = jit(lambda x, factor=1.0: x * factor)
double = jit(lambda a: a * 2, donate_argnums=0)
solve = jit(np.linalg.solve)
pick = jit(lambda x, i: x[i])
tree = jit(lambda t: {"a": t["a"] * 2, "n": None, "l": [t["b"][0], (t["b"][1],)], "e": ()})
scan = jit(lambda c, xs: func.scan(lambda c, x: (c * x, c + x), c, xs))
loop = jit(lambda x: func.while_loop(lambda c: c < 100, lambda c: c * 2, x))
branch = jit(lambda p, x: func.cond(p, lambda x: x * 2, lambda x: x + 1, x))
counted = jit(lambda x: func.fori_loop(0, 5, lambda i, c: c * x + i, x))
masked = jit(func.grad(lambda x: np.sum(np.where(x > 1, np.sqrt(x - 1), 0.0))))
same = jit(lambda x: (x, x, 1.0, None, True))
constants = jit(lambda: (np.array([1.0, 2.0]), 3, 2.5j, True))
complexes = jit(lambda x: (np.exp(1j * x), x > 1, np.argmax(x)))
mapped = jit(func.vmap(np.linalg.det))

KINDS: dict[str, Callable[[], Any]] = {
    "array": lambda: f(X),
    "scalar of NumPy": lambda: f(np.float64(1)),
    "float": lambda: f(1.0),
    "int": lambda: f(3),
    "large int": lambda: f(2**40),
    "bool": lambda: f(True),
    "complex": lambda: f(1j),
    "large array": lambda: f(BIG),
    "results that are kept": kept(f),
    "strided array": lambda: f(BIG[:6:2]),
    "array of the other byte order": lambda: f(np.array([1.0, 2.0, 3.0], ">f8")),
    "tree": lambda: tree(TREE),
    "argument by name": lambda: scaled(X, factor=2.0),
    "default": lambda: scaled(X),
    "results of all types": lambda: complexes(X),
    "results that are arguments": lambda: same(X),
    "constants": lambda: constants(),
    "donated": lambda: double(np.full(3, 1.0)),
    "donated, large": lambda: double(np.full(1 << 16, 1.0)),
    "donated twice": raising(lambda: donated_twice(double), DonatedBufferError),
    "matrix product": lambda: product(MATRIX, MATRIX),
    "shapes that do not fit": raising(lambda: product(MATRIX, X), ValueError),
    "linear solve": lambda: solve(MATRIX, X[:2]),
    "singular matrix": raising(lambda: solve(SINGULAR, X[:2]), np.linalg.LinAlgError),
    "index": lambda: pick(X, 1),
    "index out of range": raising(lambda: pick(X, 7), IndexError),
    "string": raising(lambda: f("text"), TypeError),
    "unknown name": raising(lambda: scaled(X, power=2.0), TypeError),
    "missing argument": raising(lambda: product(X), TypeError),
    "error of an argument": raising(lambda: broken_argument(f), ZeroDivisionError),
    "scan": lambda: scan(1.0, X),
    "while_loop": lambda: loop(1.0),
    "cond": lambda: (branch(True, X), branch(False, X)),
    "fori_loop": lambda: counted(X),
    "derivative with NaN": lambda: masked(X),
    "vmap": lambda: mapped(np.full((4, 2, 2), 1.0)),
}
THREADED = ("array", "float", "tree", "results that are kept", "donated, large", "singular matrix", "scan", "string")


@pytest.fixture(autouse=True)
def no_collections() -> Iterator[None]:
    gc.freeze()  # collections look at what the test makes
    gc.disable()
    yield
    gc.enable()


def counts() -> list[int]:
    gc.collect()
    # The cache of attributes refers to None in its empty places, one for each attribute that is not there yet.
    if sys.version_info < (3, 13):
        sys._clear_type_cache()
    return [sys.getrefcount(value) for value in SHARED.values()]


def growth(work: Callable[[], Any]) -> dict[str, int]:
    """The changes of the counts, without those of the first time."""
    changed: dict[str, int] = {}
    for _ in range(3):
        before = counts()
        work()
        after = counts()
        changed = {name: now - was for name, was, now in zip(SHARED, before, after, strict=True) if now != was}
        if not changed:
            break
    return changed


@pytest.mark.parametrize("name", KINDS)
def test_calls_leave_the_counts_as_they_were(name: str) -> None:
    call = KINDS[name]

    def work() -> None:
        for _ in range(CALLS):
            call()

    for _ in range(WARM_UP):
        call()
    assert not growth(work)


@pytest.mark.parametrize("name", THREADED)
def test_calls_in_threads_leave_the_counts_as_they_were(name: str) -> None:
    call = KINDS[name]

    def work(number: int) -> None:
        for _ in range(CALLS // 4):
            call()

    for _ in range(WARM_UP):
        call()
    with quick_turns():
        assert not growth(lambda: in_threads(work, 4))


def test_compilation_leaves_the_counts_as_they_were() -> None:
    def work() -> None:
        for _ in range(20):
            jit(lambda x: (x + 1, None))(X)

    work()
    assert not growth(work)


def test_a_reference_too_few_is_noticed() -> None:
    held: list[Any] = []
    assert growth(lambda: held.append(X)) == {"X": 1}
