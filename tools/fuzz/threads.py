"""Many threads at once: every feature has the result that it has alone, and shared objects lose nothing.

Up to 32 threads run programs of the kinds of the campaign `interrupts`, in random order. Other threads draw from one
generator, add to one gradient, call one jitted function with many kinds of arguments, and use plain NumPy.
"""

from __future__ import annotations

import pickle
import random
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import func
from func.autograd import forward_ad
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
    """Threads without a transform see NumPy's own functions, while one thread runs transforms."""
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


class _Scaled(func.autograd.Function):
    """A Function whose context is used by several backward passes at once."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        ctx.square = x * x
        return x * ctx.square

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * (ctx.square + 2 * ctx.saved_tensors[0] ** 2)


def _one_graph(choices: random.Random) -> Callable[[int], None]:
    """Backward passes of several threads through one graph, with Functions, checkpoints, hooks and pullbacks."""
    w = func.tensor(X, requires_grad=True)
    graphs = {
        "Function": np.sum(_Scaled.apply(w)),
        "checkpoint": np.sum(func.autograd.checkpoint(lambda v: v * v * v, w)),
        "jit": func.jit(lambda v: np.sum(v * v * v))(w),
        "hook": np.sum(w * w * w),
    }
    w.register_hook(lambda g: g * 1)
    _, pull = func.vjp(lambda x: np.sum(_Scaled.apply(x)), X)
    linear = func.linearize(lambda x: np.sum(_Scaled.apply(x)), X)[1]
    orders = [[choices.choice([*graphs, "vjp", "linearize"]) for _ in range(6)] for _ in range(32)]
    creates = [choices.random() < 0.3 for _ in range(32)]

    def work(number: int) -> None:
        for name in orders[number]:
            if name == "vjp":
                gradient = pull(1.0)[0]
            elif name == "linearize":
                gradient = np.array([linear(row) for row in np.eye(3)])
            else:
                (slope,) = func.autograd.grad(graphs[name], w, retain_graph=True, create_graph=creates[number])
                if creates[number]:
                    (second,) = func.autograd.grad(np.sum(slope), w, retain_graph=True)
                    np.testing.assert_allclose(second.numpy(), 6 * X, err_msg=name)
                gradient = slope.detach().numpy()
            np.testing.assert_allclose(gradient, 3 * X**2, err_msg=name)

    return work


def _modes(choices: random.Random) -> Callable[[int], None]:
    """Modes and saved-tensor hooks hold in their thread alone."""
    kinds = [choices.randrange(4) for _ in range(32)]

    def work(number: int) -> None:
        for _ in range(10):
            w = func.tensor(X, requires_grad=True)
            if kinds[number] == 0:
                with func.no_grad():
                    assert not np.sin(w).requires_grad
            elif kinds[number] == 1:
                packed: list[int] = []
                with func.autograd.graph.saved_tensors_hooks(lambda x: packed.append(1) or x, lambda x: x):  # noqa: B023
                    y = np.sum(np.sin(w))
                y.backward()
                assert len(packed) == 1, packed
            elif kinds[number] == 2:
                with func.intercept():
                    assert func.grad(lambda x: np.sum(np.full(2, 1.0) * x))(1.0) == 2.0
            else:
                assert func.is_grad_enabled() and np.sin(w).requires_grad
                with forward_ad.dual_level():
                    d = forward_ad.make_dual(w.detach(), func.tensor(X))
                    assert forward_ad.unpack_dual(d * d).tangent is not None

    return work


FEATURES = (_one_graph, _modes, _programs, _draws, _one_gradient, _one_jitted_function, _plain_numpy)


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
