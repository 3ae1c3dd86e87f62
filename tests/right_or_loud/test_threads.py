"""Threads, contexts and forks: shared objects lose nothing, and every feature works in many threads at once."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import func
from func.compilation import jit as jit_module
from tests.support import threads
from tests.support.threads import quick_turns

THREADS = 16


@pytest.fixture(autouse=True)
def quick_switches() -> Iterator[None]:
    with quick_turns():
        yield


def in_threads(work: Callable[[int], Any], count: int = THREADS) -> list[Any]:
    return threads.in_threads(work, count)


def _mapped(rng: func.random.Generator) -> list[float]:
    drawn = func.vmap(lambda x: x + rng.random() + 10 * rng.random(), randomness="different")(np.zeros(3))
    return list(drawn.tolist())


def _split(rng: func.random.Generator) -> list[float]:
    """Both parts of the batch draw, the second one more often."""
    drawn = func.vmap(lambda x: rng.random() if x > 1 else rng.random() + 10 * rng.random(), randomness="different")(
        np.arange(4.0)
    )
    return list(drawn.tolist())


DRAWS: dict[str, Callable[[func.random.Generator], list[float]]] = {
    "numbers": lambda rng: [float(rng.random()) for _ in range(5)],
    "arrays": lambda rng: list(rng.random(5).tolist()),
    "mapped": _mapped,
    "split batches": _split,
    "children": lambda rng: [float(child.random()) for child in rng.spawn(3)],
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_a_generator_draws_no_number_twice(draw: Callable[[func.random.Generator], list[float]]) -> None:
    rng = func.random.Generator(0)
    drawn = [number for part in in_threads(lambda _: draw(rng) + draw(rng)) for number in part]
    assert len(set(drawn)) == len(drawn)


def test_draws_of_one_thread_are_those_of_the_state() -> None:
    """Mapped and split draws take the numbers that follow, and the state goes on behind the longest run."""
    mapped, plain = func.random.Generator(3), func.random.Generator(3)

    def f(x: Any) -> Any:
        return mapped.random() if x > 1 else mapped.random() + mapped.random()

    same = func.vmap(f, randomness="same")(np.arange(4.0))
    first, second = plain.random(), plain.random()
    np.testing.assert_allclose(same, [first + second, first + second, first, first])
    assert mapped.random() == plain.random()
    assert repr(mapped) == repr(plain)


def test_the_cache_of_jit_may_lose_entries_to_other_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit_module, "CACHE_SIZE", 2)
    f = func.jit(lambda x: np.sum(x * x), compiler="numpy")

    def work(number: int) -> None:
        for size in range(60):
            x = np.ones((number + size) % 6 + 1)
            assert f(x) == x.size
            if size % 20 == number % 20:
                f.clear_cache()

    in_threads(work, 8)


def test_transforms_of_threads_do_not_meet() -> None:
    def work(number: int) -> Any:
        x = np.array([1.0, 2.0]) + number
        results = []
        for _ in range(5):
            with func.intercept():
                results.append(func.grad(_filled)(x))
            results.append(func.grad(lambda y: np.sum(np.array([y, y * y]) * y))(x))
            results.append(func.vmap(func.grad(lambda y: y**3 if y > 4 else y))(x))
            assert type(np.zeros(2)) is np.ndarray
        return results

    alone = [work(number) for number in range(THREADS)]
    for got, right in zip(in_threads(work), alone, strict=True):
        for one, other in zip(got, right, strict=True):
            np.testing.assert_array_equal(one, other)


def _filled(x: Any) -> Any:
    a = np.zeros(3)
    a[1:] = x * x
    return np.sum(a)


def test_threads_that_a_transformed_function_starts_convert() -> None:
    def f(x: Any) -> Any:
        parts: list[Any] = []
        thread = threading.Thread(target=lambda: parts.append(np.array([x, 2 * x])))
        thread.start()
        thread.join()
        return np.sum(parts[0])

    assert func.grad(f)(1.0) == 3.0


def test_other_threads_take_part_in_a_context() -> None:
    """A thread that ran before belongs to the transform in a copy of its context."""
    requests: list[Callable[[], None]] = []
    ready, done = threading.Event(), threading.Event()

    def serve() -> None:
        ready.wait()
        requests[0]()
        done.set()

    thread = threading.Thread(target=serve)
    thread.start()

    def f(x: Any) -> Any:
        parts: list[Any] = []
        context = contextvars.copy_context()
        requests.append(lambda: context.run(lambda: parts.append(np.array([x, 2 * x]))))
        ready.set()
        done.wait(20)
        return np.sum(parts[0])

    assert func.grad(f)(1.0) == 3.0
    thread.join()


def test_modes_end_with_the_block_that_is_dropped() -> None:
    """A block that never comes to its end, as by an interrupt, leaves nothing in force."""

    def dropped(context: Any) -> None:
        context.__enter__()  # the manager goes with this frame

    for make in (
        func.no_grad,
        func.inference_mode,
        lambda: func.set_grad_enabled(False).clone(),
        lambda: func.autograd.graph.saved_tensors_hooks(abs, abs),
        func.autograd.detect_anomaly,
        func.disable_jit,
        func.intercept,
        func.autograd.forward_ad.dual_level,
    ):
        contextvars.copy_context().run(_check_after, lambda make=make: dropped(make()))  # type: ignore[misc]


def _check_after(leave_early: Callable[[], None]) -> None:
    leave_early()
    func.set_grad_enabled(True)
    w = func.tensor([1.0, 2.0], requires_grad=True)
    np.sum(w * w).backward()
    np.testing.assert_array_equal(w.grad.numpy(), [2.0, 4.0])
    assert func.jit(lambda x: type(x).__name__ == "TracedArray")(1.0)
    func.grad(lambda x: x * (type(np.zeros(3)) is np.ndarray))(1.0)
    with pytest.raises(func.autograd.forward_ad.DualLevelError):
        func.autograd.forward_ad.make_dual(w, w)


def test_one_context_of_a_function_in_many_backward_passes() -> None:
    """Each pass has its own residuals: recorded ones where it records, plain ones where it does not."""

    class Cube(func.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            ctx.square = x * x
            return x * ctx.square

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * (ctx.square + 2 * ctx.saved_tensors[0] ** 2)

    x = np.array([1.0, 2.0])
    w = func.tensor(x, requires_grad=True)
    out = np.sum(Cube.apply(w))

    def work(number: int) -> None:
        for _ in range(20):
            (slope,) = func.autograd.grad(out, w, retain_graph=True, create_graph=number % 2 == 0)
            np.testing.assert_array_equal(slope.detach().numpy(), 3 * x**2)
            if number % 2 == 0:
                (second,) = func.autograd.grad(slope.sum(), w)
                np.testing.assert_array_equal(second.numpy(), 6 * x)

    in_threads(work)


def test_turns_and_holds_know_who_comes_next_before_others_look():
    """A dict that is made at its first use may be made by two threads at once: then both have the same turn."""
    from func.host import patching
    from func.interpreters.core.scopes import Turns

    assert "__dict__" not in dir(type(Turns()._last)) and Turns()._last.after == {}
    hold = patching.hold_converters()
    assert "after" in vars(patching._reference) and threading.get_ident() in patching._reference.threads
    del hold
