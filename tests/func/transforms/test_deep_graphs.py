"""Deep graphs, threads, exceptions, memory: laws for every differentiated function."""

from __future__ import annotations

import gc
import pickle
import threading
import tracemalloc
import weakref
from typing import Any

import numpy as np
import pytest

import func
from func.host import patching
from tests.support.traced_memory import tracing

X = np.linspace(0.1, 1.0, 5)


def chain(length: int) -> Any:
    def f(x: Any) -> Any:
        for _ in range(length):
            x = x * 1.0000001
        return np.sum(x)

    return f


def test_a_hundred_thousand_operations() -> None:
    gradient = func.grad(chain(100_000))(X)
    np.testing.assert_allclose(gradient, 1.0000001**100_000)
    _, pullback = func.vjp(chain(100_000), X)
    np.testing.assert_allclose(pullback(1.0)[0], gradient)
    assert "100001 operations" in repr(pullback)
    again = pickle.loads(pickle.dumps(pullback))
    np.testing.assert_array_equal(again(1.0)[0], pullback(1.0)[0])


def test_memory_is_linear_in_the_length() -> None:
    def peak(length: int) -> int:
        with tracing():
            func.grad(chain(length))(X)
            return tracemalloc.get_traced_memory()[1]

    peak(100)
    assert peak(40_000) < 6 * peak(10_000)


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: func.grad(f)(X),
        lambda f: func.hessian(f)(X),
        lambda f: func.jacrev(f)(X),
        lambda f: func.jvp(f, (X,), (X,)),
        lambda f: func.vmap(f)(np.stack([X, X])),
        lambda f: func.linearize(f, X)[1](X),
        lambda f: func.vjp(f, X)[1](1.0),
        lambda f: func.grad(func.checkpoint(f))(X),
    ],
)
def test_graphs_are_freed_by_reference_counting(transform: Any) -> None:
    alive: list[weakref.ref[Any]] = []

    def f(x: Any) -> Any:
        y = np.exp(x)
        alive.append(weakref.ref(y))
        return np.sum(np.linalg.solve(np.eye(5) + np.outer(y, y), y) * np.sin(y))

    transform(f)
    gc.collect()
    gc.disable()
    try:
        alive.clear()
        transform(f)
        assert alive and all([ref() is None for ref in alive])
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_threads() -> None:
    results: list[Any] = [None] * 32

    def work(i: int) -> None:
        def f(x: Any) -> Any:
            return np.sum(np.sin(np.array([x * 1.0, x * 2]))) * i

        results[i] = (func.grad(f)(1.0), func.vmap(func.grad(f))(np.array([1.0, 2.0]))[0])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = np.cos(1.0) + 2 * np.cos(2.0)
    np.testing.assert_allclose(results, [[i * expected] * 2 for i in range(32)])
    assert not patching.is_tracing()


def test_exceptions_leave_nothing_behind() -> None:
    original = np.array

    def failing(x: Any) -> Any:
        func.vmap(lambda t: func.grad(lambda s: 1 / 0)(t))(np.array([x, x]))

    with pytest.raises(ZeroDivisionError):
        func.grad(failing)(1.0)
    assert not patching.is_tracing()
    assert np.array is original
    assert func.grad(lambda x: x * x)(3.0) == 6.0


def test_generators_may_cross_a_transform() -> None:
    def terms(x: Any) -> Any:
        for k in range(4):
            yield x**k

    assert func.grad(lambda x: sum(terms(x)))(2.0) == 1 + 4 + 12


def test_reused_buffers_do_not_corrupt_the_derivative() -> None:
    def f(x: Any) -> Any:
        buffer = np.zeros(5)
        total = 0.0
        for i in range(4):
            buffer[:] = i
            total = total + np.sum(x * buffer) + np.sum(buffer @ (x * buffer))
        return total

    np.testing.assert_allclose(func.grad(f)(X), 0 + 1 + 2 + 3 + 0 + 1 + 4 + 9)
    np.testing.assert_allclose(func.linearize(f, X)[1](np.ones(5)), 5 * 20.0)


def test_saved_maps_are_independent_of_later_writes() -> None:
    a, c = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    out, pullback = func.vjp(lambda x: x * x * c, a)
    _, push = func.linearize(lambda x: x * x * c, a)
    a[:], c[:], out[:] = 100, 0, 5
    np.testing.assert_allclose(pullback(np.ones(2))[0], [6.0, 16.0])
    np.testing.assert_allclose(push(np.ones(2)), [6.0, 16.0])


def test_results_are_the_callers_own() -> None:
    x, y = X.copy(), X.copy()
    gx, gy = func.grad(lambda a, b: np.sum(a + b), argnums=(0, 1))(x, y)
    gx[0] = 7
    assert gy[0] == 1 and gx.flags.writeable
    value, gradient = func.value_and_grad(lambda a: np.sum(a * 3), has_aux=False)(x)
    assert gradient.flags.writeable and value == np.sum(x * 3)
    for result in (
        func.vmap(lambda t: t)(x),
        func.vmap(lambda t: t, out_dims=0)(x.reshape(5, 1)),
        func.jvp(lambda t: t, (x,), (y,))[0],
        func.jvp(lambda t: t, (x,), (y,))[1],
        func.vjp(lambda t: t.reshape(5, 1), x)[0],
        func.jacrev(lambda t: t)(x),
        func.grad(lambda t: np.sum(t * y))(x),
    ):
        assert result.flags.writeable
        assert not np.may_share_memory(result, x) and not np.may_share_memory(result, y)


def test_perturbations_do_not_mix() -> None:
    assert func.grad(lambda x: x * func.grad(lambda y: x * y * y)(x))(3.0) == 54.0
    assert func.jvp(lambda x: x * func.jvp(lambda y: x + y, (1.0,), (1.0,))[1], (2.0,), (1.0,))[1] == 1.0


def test_nan_safe_pullback_at_infinite_partials() -> None:
    def masked(g: Any) -> Any:
        return lambda x: np.where(x > 0, g(np.where(x > 0, x, x)), 0.0)

    with np.errstate(all="ignore"):
        for g in (np.sqrt, np.log, lambda x: x**0.5, lambda x: 1 / x, lambda x: x ** (1 / 3), np.cbrt, np.log1p):
            assert func.grad(masked(g))(0.0) == 0.0
            assert func.jacfwd(masked(g))(0.0) == 0.0
        assert func.grad(lambda x: np.where(x < 1, np.arcsin(x), 0.0))(1.0) == 0.0
        assert func.grad(lambda x: np.where(x < 1, np.arctanh(x), 0.0))(1.0) == 0.0
    assert func.grad(np.linalg.norm)(np.zeros(3)).tolist() == [0.0, 0.0, 0.0]
    assert func.grad(np.abs)(0.0) == 0.0
    assert func.grad(lambda x: np.maximum(x, 0.0))(0.0) == 0.5
    assert func.grad(lambda x: np.max(x))(np.ones(4)).tolist() == [0.25] * 4
    assert func.grad(lambda x: np.hypot(x, 0.0))(0.0) == 0.0
    assert func.grad(lambda x: np.arctan2(x, 0.0))(0.0) == 0.0


def test_degenerate_spectra_have_the_gradient_of_invariant_functions() -> None:
    eye = np.eye(3)
    np.testing.assert_allclose(func.grad(lambda a: np.sum(np.linalg.eigh(a)[0] ** 2))(eye), 2 * eye, atol=1e-12)

    weights = np.arange(9.0).reshape(3, 3)

    def top_projector(a: Any) -> Any:
        vectors = np.linalg.eigh(a)[1]
        return np.sum(np.outer(vectors[:, 2], vectors[:, 2]) * weights)

    point, step = np.diag([1.0, 1.0, 3.0]), 1e-6
    gradient = func.grad(top_projector)(point)
    for i, j in ((0, 2), (1, 2), (0, 1), (2, 2)):
        bump = np.zeros((3, 3))
        bump[i, j] = bump[j, i] = step
        difference = (top_projector(point + bump) - top_projector(point - bump)) / (2 * step)
        np.testing.assert_allclose(np.sum(gradient * bump) / step, difference, atol=1e-8)
    np.testing.assert_allclose(func.grad(lambda a: np.sum(np.linalg.svd(a)[1]))(eye), eye, atol=1e-12)
