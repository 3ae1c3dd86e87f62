"""Gradients, hooks and modes in several threads, tasks and contexts."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from typing import Any

import numpy as np
import pytest

import func
from func.autograd import forward_ad, graph
from tests.support.threads import in_threads, quick_turns


@pytest.fixture
def _rapid_switches() -> Iterator[None]:
    with quick_turns():
        yield


@pytest.mark.usefixtures("_rapid_switches")
@pytest.mark.parametrize("size", [4, 20_000])
def test_gradients_accumulated_by_several_threads_are_complete(size: int) -> None:
    x = func.tensor(np.zeros(size), requires_grad=True)
    rounds = 60

    def work(i: int) -> None:
        for k in range(rounds):
            (x * 1.0).sum().backward(create_graph=k % 20 == 7)

    in_threads(work, 6)
    assert np.all(x.grad.detach().numpy() == 6 * rounds)


@pytest.mark.usefixtures("_rapid_switches")
def test_a_failed_backward_takes_back_its_own_gradient_only() -> None:
    x = func.tensor(np.zeros(3), requires_grad=True)
    failing = threading.local()

    def fail(tensor: Any) -> None:
        if getattr(failing, "now", False):
            raise ValueError("hook")

    x.register_post_accumulate_grad_hook(fail)

    def work(i: int) -> None:
        for k in range(40):
            failing.now = k % 2 == 1
            try:
                (x * 1.0).sum().backward()
            except ValueError:
                assert failing.now

    in_threads(work, 4)
    assert x.grad.tolist() == [80.0] * 3


@pytest.mark.usefixtures("_rapid_switches")
def test_hooks_of_several_tensors_belong_to_one_backward_pass() -> None:
    counts = [0] * 6

    def work(i: int) -> None:
        a, b = func.tensor(1.0, requires_grad=True), func.tensor(2.0, requires_grad=True)

        def count(gradients: Any) -> None:
            assert [g.item() for g in gradients] == [2.0 + i, 1.0 + i]
            counts[i] += 1

        graph.register_multi_grad_hook([a, b], count)
        for _ in range(50):
            (a * b + i * (a + b)).backward()

    in_threads(work, 6)
    assert counts == [50] * 6


MODES: dict[str, tuple[Callable[[], Any], Callable[[], bool]]] = {
    "no_grad": (func.no_grad, lambda: not func.is_grad_enabled()),
    "inference_mode": (func.inference_mode, func.autograd.is_inference_mode_enabled),
    "set_grad_enabled": (lambda: func.set_grad_enabled(False), lambda: not func.is_grad_enabled()),
    "detect_anomaly": (func.autograd.detect_anomaly, func.autograd.is_anomaly_enabled),
    "saved_tensors_hooks": (lambda: graph.saved_tensors_hooks(lambda t: 1 / 0, id), lambda: _packs()),
    "disable_jit": (func.disable_jit, lambda: _is_plain()),
}


def _packs() -> bool:
    x = func.tensor([1.0], requires_grad=True)
    try:
        np.exp(x)
    except ZeroDivisionError:
        return True
    return False


def _is_plain() -> bool:
    seen: list[Any] = []
    func.jit(lambda z: seen.append(type(z)) or z)(np.ones(1))
    return seen[0] is np.ndarray


@pytest.mark.parametrize("name", MODES)
def test_a_mode_may_be_left_in_another_context(name: str) -> None:
    make, is_on = MODES[name]

    def block() -> Generator[None, None, None]:
        with make():
            yield
        yield

    assert not is_on()
    generator = block()
    next(generator)
    assert is_on()
    in_threads(lambda i: next(generator) if not is_on() else pytest.fail("the mode is on in another thread"), 1)
    assert not is_on()
    inside = contextvars.copy_context()
    generator = block()
    next(generator)
    contextvars.copy_context().run(next, generator)  # a copy of the context, in which the mode is on as well
    assert not is_on() and not inside.run(is_on)


@pytest.mark.parametrize("name", MODES)
def test_modes_of_interleaved_generators_do_not_disturb_each_other(name: str) -> None:
    make, is_on = MODES[name]

    def block() -> Generator[None, None, None]:
        with make():
            yield

    first, second = block(), block()
    next(first)
    next(second)
    first.close()
    assert is_on()
    second.close()
    assert not is_on()


def test_a_block_ends_the_switches_that_were_set_in_it() -> None:
    with func.no_grad():
        func.set_grad_enabled(True)
        assert func.is_grad_enabled()
        func.set_grad_enabled(False)
    assert func.is_grad_enabled()


def test_one_context_object_in_several_threads() -> None:
    context = func.no_grad()
    barrier = threading.Barrier(4)

    def work(i: int) -> None:
        for _ in range(5):
            barrier.wait(10)
            with context:
                barrier.wait(10)
                assert not func.is_grad_enabled()
            assert func.is_grad_enabled()

    in_threads(work, 4)
    assert func.is_grad_enabled()


def test_async_generators_and_tasks_have_modes_of_their_own() -> None:
    async def fixture() -> AsyncGenerator[bool, None]:
        with func.no_grad():
            yield func.is_grad_enabled()

    async def other() -> bool:
        await asyncio.sleep(0)
        return func.is_grad_enabled()

    async def main() -> None:
        generator = fixture()
        assert await generator.__anext__() is False
        await asyncio.create_task(generator.aclose())
        assert func.is_grad_enabled()
        assert await asyncio.gather(other(), other()) == [True, True]

    asyncio.run(main())


def test_a_dual_level_may_be_left_in_another_thread() -> None:
    def block() -> Iterator[Any]:
        with forward_ad.dual_level():
            yield forward_ad.make_dual(func.tensor(3.0), 1.0)
        yield None

    generator = block()
    dual = next(generator)
    assert forward_ad.unpack_dual(dual * dual).tangent.item() == 6.0
    in_threads(lambda i: next(generator), 1)
    with pytest.raises(RuntimeError, match="no dual level is open"):
        forward_ad.make_dual(func.tensor(3.0), 1.0)
    with forward_ad.dual_level() as level:
        assert level == 0


def partly_constant(x: Any) -> Any:
    """x² is constant: the Jacobian is diag(x²), the second derivatives are zero."""
    with func.no_grad():
        factor = x**2
    return factor * x


def columns(transform: Any, f: Any = partly_constant) -> Any:
    return lambda x: np.stack([transform(f, x, v) for v in np.eye(2)], axis=1)


JACOBIANS: dict[str, Any] = {
    "jacfwd": func.jacfwd(partly_constant),
    "jacrev": func.jacrev(partly_constant),
    "jacobian": func.jacobian(partly_constant),
    "jacobian fwd": func.jacobian(partly_constant, mode="fwd"),
    "sparse_jacobian": lambda x: func.sparse_jacobian(partly_constant)(x).toarray(),
    "jvp": columns(lambda f, x, v: func.jvp(f, (x,), (v,))[1]),
    "linearize": columns(lambda f, x, v: func.linearize(f, x)[1](v)),
    "jet": columns(lambda f, x, v: func.jet(f, (x,), ([v],))[1][0]),
    "jvp of jit": columns(lambda f, x, v: func.jvp(func.jit(f), (x,), (v,))[1]),
    "jit of jacfwd": func.jit(func.jacfwd(partly_constant)),
    "jacfwd of checkpoint": func.jacfwd(func.checkpoint(partly_constant)),
    "linear_transpose": lambda x: np.stack(
        [func.linear_transpose(func.linearize(partly_constant, x)[1], x)(v)[0] for v in np.eye(2)]
    ),
    "functional": lambda x: func.autograd.functional.jacobian(partly_constant, x).numpy(),
    "functional fwd": lambda x: func.autograd.functional.jacobian(partly_constant, x, strategy="forward-mode").numpy(),
}


@pytest.mark.parametrize("name", JACOBIANS)
def test_every_jacobian_follows_no_grad(name: str) -> None:
    np.testing.assert_array_equal(JACOBIANS[name](np.array([3.0, 2.0])), np.diag([9.0, 4.0]))


@pytest.mark.parametrize("mode", ["auto", "fwd-rev", "rev-rev", "fwd-fwd", "rev-fwd"])
def test_second_derivatives_follow_no_grad(mode: str) -> None:
    x = np.array([3.0, 2.0])
    np.testing.assert_array_equal(func.hessian(lambda x: np.sum(partly_constant(x)), mode=mode)(x), np.zeros((2, 2)))
    assert func.laplacian(lambda x: np.sum(partly_constant(x)))(x) == 0.0


@pytest.mark.parametrize("shape", ["wide", "tall", "square"])
def test_jacobian_gives_one_answer_whichever_mode_it_chooses(shape: str) -> None:
    rows = {"wide": 1, "tall": 3, "square": 2}[shape]

    def f(x: Any) -> Any:
        return np.ones((rows, 2)) @ partly_constant(x)

    x = np.array([3.0, 2.0])
    for mode in ("auto", "fwd", "rev"):
        np.testing.assert_array_equal(func.jacobian(f, mode=mode)(x), np.tile([9.0, 4.0], (rows, 1)))


def test_dual_numbers_keep_their_tangents_under_no_grad() -> None:
    with func.autograd.forward_ad.dual_level():
        dual = func.autograd.forward_ad.make_dual(func.tensor(3.0), 1.0)
        assert func.autograd.forward_ad.unpack_dual(partly_constant(dual)).tangent.item() == 27.0


@pytest.mark.parametrize("before", [None, 1.0])
def test_a_failed_backward_leaves_what_another_thread_has_added_meanwhile(before: float | None) -> None:
    x = func.tensor(np.zeros(3), requires_grad=True)
    if before is not None:
        (before * x).sum().backward()
    works = threading.Event()

    def fail(tensor: Any) -> None:
        if not works.is_set():
            works.set()
            other = threading.Thread(target=lambda: (10.0 * x).sum().backward())
            other.start()
            other.join()
            raise ValueError("hook")

    x.register_post_accumulate_grad_hook(fail)
    with pytest.raises(ValueError, match="hook"):
        (100.0 * x).sum().backward()
    assert x.grad.tolist() == [10.0 + (before or 0.0)] * 3
