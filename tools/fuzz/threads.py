"""Many threads at once: every feature has the result that it has alone, and shared objects lose nothing.

Up to 32 threads run programs of the kinds of the campaign `interrupts`, in random order, beside threads that draw from
one generator, add to one gradient, call one jitted function with many kinds of arguments, and use plain NumPy.
"""

from __future__ import annotations

import pickle
import random
import sys
import threading
import warnings
from collections.abc import Callable

import numpy as np

import func
from tools.fuzz.cases import Tally
from tools.fuzz.interrupts import PROGRAMS, _leaves, check_process

QUICK = 3
X = np.array([0.5, 1.5, 2.5])


def _programs(choices: random.Random) -> Callable[[int], None]:
    """Each thread runs programs and compares their results."""
    names = [name for name in PROGRAMS if name != "jit, llvm" or choices.random() < 0.2]
    expected = {name: _leaves(PROGRAMS[name]()) for name in names}
    orders = [[choices.choice(names) for _ in range(3)] for _ in range(32)]

    def work(number: int) -> None:
        for name in orders[number]:
            for got, right in zip(_leaves(PROGRAMS[name]()), expected[name], strict=True):
                np.testing.assert_allclose(got, right, rtol=1e-12, err_msg=name)

    return work


def _draws(choices: random.Random) -> Callable[[int], None]:
    """One generator draws no number twice, mapped or not, and spawns no child twice."""
    rng = func.random.Generator(choices.randrange(1000))
    mapped = [choices.random() < 0.5 for _ in range(32)]
    lock, seen = threading.Lock(), set()

    def work(number: int) -> None:
        for _ in range(10):
            if mapped[number]:
                drawn = func.vmap(lambda x: rng.random() + x * rng.random(), randomness="different")(np.zeros(3))
            else:
                drawn = rng.random(3)
            (child,) = rng.spawn(1)
            numbers = [*drawn.tolist(), float(child.random())]
            with lock:
                repeated = seen.intersection(numbers)
                seen.update(numbers)
            assert not repeated, f"drawn twice: {repeated}"

    return work


def _one_gradient(choices: random.Random) -> Callable[[int], None]:
    """Gradients that threads add to one tensor are complete."""
    size = choices.choice([1, 4, 3000])
    w = func.tensor(np.ones(size), requires_grad=True)
    threads: list[int] = []
    done: list[int] = []

    def work(number: int) -> None:
        threads.append(number)
        for _ in range(10):
            np.sum(w * 2).backward()
        done.append(number)
        if len(done) == len(threads) == work.total:  # type: ignore[attr-defined]
            np.testing.assert_array_equal(w.grad.numpy(), np.full(size, 20.0 * len(done)))

    return work


def _one_jitted_function(choices: random.Random) -> Callable[[int], None]:
    """The cache of one jitted function is read, filled, thinned out and cleared at once."""
    compiler = choices.choice(["numpy", "numpy", "llvm"])
    f = func.jit(lambda x: np.sum(x * x) + x.shape[0], compiler=compiler)
    clears = choices.random() < 0.5
    shapes = [[choices.randrange(1, 12) for _ in range(12)] for _ in range(32)]

    def work(number: int) -> None:
        for size in shapes[number]:
            x = np.arange(float(size)) + number
            np.testing.assert_allclose(f(x), np.sum(x * x) + size)
            if clears and size == 5:
                f.clear_cache()

    return work


def _plain_numpy(choices: random.Random) -> Callable[[int], None]:
    """Threads without a transform see NumPy's own functions, beside one thread with transforms."""
    own = {name: vars(np)[name] for name in ("array", "asarray", "ascontiguousarray", "zeros", "r_")}

    def work(number: int) -> None:
        if number == 0:
            for _ in range(20):
                assert func.grad(lambda x: np.sum(np.array([x, x])))(1.0) == 2.0
            return
        for _ in range(100):
            for name, function in own.items():
                found = getattr(np, name)
                assert found is function, f"np.{name} is {found}"
            assert pickle.loads(pickle.dumps(np.array)) is own["array"]
            assert type(np.zeros(2)) is np.ndarray

    return work


FEATURES = (_programs, _draws, _one_gradient, _one_jitted_function, _plain_numpy)


def case(choices: random.Random, tally: Tally) -> None:
    """Some features at once, each in several threads."""
    chosen = [feature for feature in FEATURES if choices.random() < 0.5] or [_programs]
    total = choices.choice([2, 4, 8, 16, 32])
    interval = choices.choice([1e-6, 1e-5, 5e-3])
    tally.show(f"{total} threads, switching after {interval} s: {', '.join(f.__name__[1:] for f in chosen)}")
    works = [feature(choices) for feature in chosen]
    groups = [works[number % len(works)] for number in range(total)]
    for work in works:
        work.total = groups.count(work)  # type: ignore[attr-defined]
    barrier = threading.Barrier(total)
    failures: list[BaseException] = []

    def run(work: Callable[[int], None], number: int) -> None:
        try:
            barrier.wait()
            work(number)
        except BaseException as error:
            failures.append(error)

    before = sys.getswitchinterval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            sys.setswitchinterval(interval)
            threads = [
                threading.Thread(target=run, args=(work, groups[:place].count(work)))
                for place, work in enumerate(groups)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            sys.setswitchinterval(before)
        if failures:
            raise failures[0]
        check_process()
    tally.checked(total)
