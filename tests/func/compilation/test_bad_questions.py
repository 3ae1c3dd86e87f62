"""Questions that jit cannot answer, or that change without the arguments: a worded error, and never a stale path."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func
from func.errors import FuncError, StagingError

X = np.array([1.0, -2.0, 3.0])
INSTEAD = (
    r"Instead of `if x > 0:` write np\.where\(x > 0, a, b\) or func\.cond; instead of a value-dependent loop "
    r"func\.while_loop; pass numbers that decide shapes as static arguments"
)


def branch(v: Any) -> Any:
    """A question for a truth value."""
    return v * 2 if v > 0 else v * 3


BODIES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "scan": ("scan", lambda x: func.scan(lambda c, e: (branch(e) + c, None), 0.0, x)[0]),
    "fori_loop": ("scan", lambda x: func.fori_loop(0, 3, lambda i, c: branch(c), x[0])),
    "map": ("scan", lambda x: func.map(branch, x)),
    "while_loop": ("while_loop", lambda x: func.while_loop(lambda c: c[0] < 9, lambda c: (branch(c[0]),), (x[0],))),
    "condition": ("while_loop", lambda x: func.while_loop(lambda c: bool(c[0] < 9), lambda c: c, (x[0],))),
    "cond": ("cond", lambda x: func.cond(x[0] > 0, lambda: branch(x[1]), lambda: x[2])),
    "switch": ("cond", lambda x: func.switch(np.int64(1) * (x[0] > 0), [lambda: branch(x[1]), lambda: x[2]])),
    "checkpoint in scan": (
        "scan",
        lambda x: func.scan(lambda c, e: (func.checkpoint(branch)(e) + c, None), 0.0, x)[0],
    ),
}


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("around", [lambda f: f, lambda f: func.grad(lambda x: np.sum(f(x)))], ids=["value", "grad"])
def test_bodies_of_loops_and_branches_ask_nothing(name: str, around: Any) -> None:
    transform, f = BODIES[name]
    words = rf"^func\.({transform}|switch) traces this code with abstract arrays, so the value of .*\[\] is not known\n"
    jitted = func.jit(around(f))
    for _ in range(2):
        with pytest.raises(StagingError, match=rf"{words}  at .*test_bad_questions\.py:(.|\n)*{INSTEAD}"):
            jitted(X)
    assert jitted.cache_info().currsize == 0


def test_checkpoints_and_rules_ask() -> None:
    marked = func.checkpoint(branch)
    for f in (func.jit(func.grad(marked)), func.grad(func.jit(marked)), func.jit(func.grad(func.jit(marked)))):
        assert [float(f(x)) for x in (1.0, -1.0, 1.0, -2.0)] == [2.0, 3.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (func.vmap(branch), r"so the value of bool\[3\] is not known(.|\n)*Instead of `if x > 0:` write np\.where"),
        (func.vmap(func.grad(branch)), r"so the value of bool\[3\] is not known(.|\n)*func\.cond"),
        (func.vmap(lambda v: v[: np.count_nonzero(v)], in_axes=None, axis_size=3), None),
        (func.vmap(lambda v: sum([v] * int(v))), r"so the value of v \(f64\[3\]\) is not known"),
        (func.vmap(lambda v: np.sum(np.stack([v, -v])[: 1 + (v > 0)])), r"is not known"),
    ],
    ids=["branch", "grad", "not mapped", "integer", "slice"],
)
def test_elements_of_a_batch_inside_of_jit_give_one_answer(f: Any, words: str | None) -> None:
    jitted = func.jit(f)
    agreeing = np.array([1.0, 1.0, 1.0])
    np.testing.assert_allclose(jitted(agreeing), f(agreeing))
    np.testing.assert_allclose(jitted(-2 * agreeing), f(-2 * agreeing))
    if words is None:
        np.testing.assert_allclose(jitted(X), f(X))
        return
    for _ in range(2):
        with pytest.raises(StagingError, match=words):
            jitted(X)
    np.testing.assert_allclose(jitted(agreeing), f(agreeing))


def test_questions_that_change_in_every_call() -> None:
    f = func.jit(lambda x, n: sum([x] * n, 0.0))
    assert [f(1.0, n) for n in range(16)] == [*range(16)]
    for n in range(16, 20):
        with pytest.raises(
            StagingError, match=r"traced 16 paths of one function(.|\n)*had 16 answers\.\nWrite func\.wh"
        ):
            f(1.0, n)
    assert [f(2.0, n) for n in range(15, -1, -1)] == [2.0 * n for n in range(15, -1, -1)]
    assert f.cache_info().currsize == 16


CHANGED = (
    "after equal answers the function asks for another value than before\n  at .*test_bad_questions.py:(.|\n)*depends"
)


def test_globals_and_counters() -> None:
    bounds, runs = [0.25], [0]

    def by_global(x: Any) -> Any:
        return x if x > bounds[0] else -x

    def by_counter(x: Any) -> Any:
        runs[0] += 1
        return x if (x + 1 if runs[0] % 2 else x) > 0 else -x

    jitted = func.jit(by_global)
    assert jitted(0.5) == 0.5
    bounds[0] = 1.0
    with pytest.raises(StagingError, match=CHANGED):
        jitted(0.1)
    jitted.clear_cache()
    assert (jitted(0.5), jitted(1.5)) == (-0.5, 1.5)
    counting = func.jit(by_counter)
    counting(1.0)
    with pytest.raises(StagingError, match=CHANGED):
        counting(-5.0)


def test_random_numbers() -> None:
    generator = func.random.Generator(3)
    with pytest.raises(FuncError, match=r"Generator was used inside func\.jit"):
        func.jit(lambda x: branch(x - generator.random()))(0.5)
    with pytest.warns(UserWarning, match=r"numpy\.random: its program repeats the numbers of this one run"):
        func.jit(lambda x: branch(x - np.random.rand()))(0.5)
    by_key = func.jit(lambda x, key: branch(x - func.random.uniform(key)))
    keys = [func.random.key(seed) for seed in range(8)]
    right = [float(branch(0.5 - func.random.uniform(key))) for key in keys]
    assert [float(by_key(0.5, key)) for key in keys] == right and len({value > 0 for value in right}) == 2


def test_what_a_failed_trace_leaves() -> None:
    stops: list[BaseException] = []

    def f(x: Any) -> Any:
        if x > 1:
            return x * 2
        if stops:
            raise stops.pop()
        return x * 3 if x > 0 else -x

    jitted = func.jit(f)
    for error in (KeyboardInterrupt(), SystemExit(), MemoryError(), ValueError("once"), RecursionError()):
        assert jitted(2.0) == 4.0
        stops.append(error)
        with pytest.raises(type(error)):
            jitted(0.5)
        assert [jitted(x) for x in (2.0, 3.0)] == [4.0, 6.0]
    assert [jitted(x) for x in (0.5, -1.0, 2.0, 0.25)] == [1.5, 1.0, 4.0, 0.75]
    assert jitted.cache_info().currsize == 3


def test_recursion_and_calls_of_itself() -> None:
    factorial: Any = func.jit(lambda n: n if n <= 1 else n * factorial(n - 1))
    assert [factorial(n) for n in (5, 3, 1, 6, 5)] == [120, 6, 1, 720, 120]
    smaller: Any = func.jit(lambda x: x if x.ndim == 0 else smaller(x[0]) if x[0] > 0 else smaller(x[1:]))
    assert [smaller(x) for x in (X, -X, X, X[1:])] == [1.0, 2.0, 1.0, 3.0]
    outside: Any = func.jit(
        lambda x: func.pure_callback(lambda v: float(outside(float(v) - 1)), 0.0, x) + 1 if x > 0 else x
    )
    assert [outside(x) for x in (3.0, 0.0, 2.0)] == [3.0, 0.0, 2.0]
    endless: Any = func.jit(lambda x: endless(x) if x > 0 else x)
    with pytest.raises(RecursionError):
        endless(1.0)
    assert endless(-1.0) == -1.0


def test_generators_of_python() -> None:
    def parts(x: Any) -> Any:
        if x > 0:
            yield x
        yield 2 * x

    assert [func.jit(lambda x: sum(parts(x)))(x) for x in (1.0, -1.0)] == [3.0, -2.0]
    with pytest.raises(FuncError, match="generator is not an array"):
        func.jit(parts)(1.0)


def test_first_calls_of_many_threads() -> None:
    def f(x: Any) -> Any:
        for bound in (0.0, 1.0, 2.0, 3.0):
            if x < bound:
                return x * (bound + 1)
        return -x

    values = [-0.5, 0.5, 1.5, 2.5, 3.5]
    for _ in range(10):
        jitted, slope = func.jit(f, max_paths=5), func.grad(func.jit(f, max_paths=5))
        start, faults = threading.Barrier(8), list[Any]()

        def work(
            first: int, jitted: Any = jitted, slope: Any = slope, start: Any = start, faults: Any = faults
        ) -> None:
            try:
                start.wait()
                for place in range(15):
                    x = values[(first + place) % 5]
                    if jitted(x) != f(x) or slope(x) * x != f(x):
                        faults.append((x, jitted(x), slope(x)))
            except BaseException as error:
                faults.append(error)

        threads = [threading.Thread(target=work, args=(first,)) for first in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not faults
