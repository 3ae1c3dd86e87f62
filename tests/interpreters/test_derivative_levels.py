"""Compiled backward passes below vmap and jvp: Jacobians, Hessians, gradients of samples, products with directions."""

from __future__ import annotations

import concurrent.futures as cf
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import func
from func.backends.llvm import machine
from func.interpreters.calls import backward_plans
from tests.interpreters.test_compiled_backward import FUNCTIONS, NOT_NATIVE, compiled_at_once, runs

__all__ = ["compiled_at_once", "runs"]

RNG = np.random.default_rng(20261128)
Array = np.ndarray[Any, Any]

pytestmark = pytest.mark.skipif(not machine.available(), reason="no LLVM")

X, W = RNG.normal(size=(6, 8)), RNG.normal(size=(6, 8))
XS = RNG.normal(size=(3, 6, 8))


def scalar(f: Callable[[Array], Any]) -> Callable[[Array], Any]:
    """A number that depends on all of f's output, and not in a linear way."""
    return lambda x: np.sum(np.sin(f(x)) * np.cos(np.arange(np.size(f(X)), dtype=x.dtype)).reshape(np.shape(f(X))))


TRANSFORMS: dict[str, Callable[[Callable[[Array], Any]], Any]] = {
    "jacrev": lambda f: func.jacrev(f)(X),
    "gradients of samples": lambda f: func.vmap(func.grad(scalar(f)))(XS),
    "along an inner axis": lambda f: func.vmap(func.grad(scalar(f)), in_axes=2, out_axes=1)(np.moveaxis(XS, 0, 2)),
    "hvp": lambda f: func.jvp(func.grad(scalar(f)), (X,), (W,)),
    "hessian": lambda f: func.hessian(lambda x: scalar(f)(W + x * X))(0.3) if f is not FUNCTIONS["sorted"] else X,
    "hessian of samples": lambda f: func.vmap(func.hessian(lambda x: scalar(f)(W + np.sum(x) * X)))(XS[:, 0, :2]),
    "hvp of samples": lambda f: func.vmap(lambda x: func.jvp(func.grad(scalar(f)), (x,), (W,))[1])(XS),
    "directions of samples": lambda f: func.jvp(func.vmap(func.grad(scalar(f))), (XS,), (XS * 2,)),
    "vmap of vmap": lambda f: func.vmap(
        lambda x: func.vmap(lambda w: func.grad(lambda x: scalar(f)(x * w))(x))(XS[:2]),
    )(XS),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_are_those_of_the_operations(name: str, transform: str, runs: list[bool]) -> None:
    derivative = TRANSFORMS[transform]
    with func.config.override(compile_backward=False):
        expected = derivative(FUNCTIONS[name])
    for _ in range(3):
        actual = derivative(FUNCTIONS[name])
        for a, b in zip(func.tree.leaves(actual), func.tree.leaves(expected), strict=True):
            assert (a.dtype, a.shape, type(a)) == (b.dtype, b.shape, type(b))
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
    assert name in NOT_NATIVE or not runs or runs[-1]


def test_what_is_compiled(runs: list[bool]) -> None:
    gradients = func.vmap(func.grad(lambda x: np.sum(np.tanh(x) ** 2)))
    for _ in range(3):
        gradients(XS)
    assert runs == [False, True, True]
    hessian = func.hessian(lambda x: np.sum(np.tanh(x) ** 3))
    for _ in range(3):
        hessian(X[0])
    assert runs == [False, True, True] * 2


def test_batches_of_other_lengths_and_forms() -> None:
    f = lambda x, w: np.sum(np.tanh(x * w) * w)  # noqa: E731
    g = func.grad(f)
    for _ in range(3):
        for size in (1, 2, 3, 0):
            xs = XS[:size]
            expected = np.stack([g(x, W) for x in xs]) if size else xs
            np.testing.assert_allclose(func.vmap(g, (0, None))(xs, W), expected, rtol=1e-12)
            np.testing.assert_allclose(func.vmap(g)(xs, np.stack([W] * size) if size else xs), expected, rtol=1e-12)
        with func.config.override(compile_backward=False):
            pushed = func.jvp(lambda x: g(x, W), (X,), (W,))[1]
            turned = func.jvp(lambda w: g(X, w), (W,), (W,))[1]
            both = func.jvp(g, (X, W), (W, X))[1]
        np.testing.assert_allclose(func.jvp(lambda x: g(x, W), (X,), (W,))[1], pushed, rtol=1e-10)
        np.testing.assert_allclose(func.jvp(lambda w: g(X, w), (W,), (W,))[1], turned, rtol=1e-10)
        np.testing.assert_allclose(func.jvp(g, (X, W), (W, X))[1], both, rtol=1e-10)


def test_levels_in_either_order() -> None:
    g = func.grad(lambda x: np.sum(np.exp(np.sin(x)) * x[::-1]))
    directions = RNG.normal(size=(4, 6, 8))
    inside = lambda: func.vmap(lambda d: func.jvp(g, (X,), (d,))[1])(directions)  # noqa: E731
    outside = lambda: func.jvp(func.vmap(g), (np.stack([X] * 4),), (directions,))[1]  # noqa: E731
    with func.config.override(compile_backward=False):
        expected = inside()
    for _ in range(4):
        np.testing.assert_allclose(inside(), expected, rtol=1e-10)
        np.testing.assert_allclose(outside(), expected, rtol=1e-10)


def test_places_not_selected_have_a_zero_in_each_element() -> None:
    f = lambda x: np.sum(np.where(x > 0, np.sqrt(np.abs(x)), x * x))  # noqa: E731
    xs = np.array([[1.0, 2.0], [0.0, 3.0], [4.0, -1.0]])
    expected = np.where(xs > 0, 0.5 / np.sqrt(np.where(xs > 0, xs, 1)), 2 * xs)
    for _ in range(4):
        np.testing.assert_allclose(func.vmap(func.grad(f))(xs), expected, rtol=1e-12)
        np.testing.assert_allclose(func.vmap(func.grad(f))(xs + 10), 0.5 / np.sqrt(xs + 10), rtol=1e-12)
        second = func.vmap(func.hessian(f))(xs)
        assert np.isfinite(second).all()
        assert second[1, 0, 0] == 2.0


def test_values_of_two_vmaps_side_by_side_do_not_mix() -> None:
    """A function that holds a traced value of an outer vmap while the inner one maps another."""

    def outer(a: Any) -> Any:
        inner = func.vmap(func.grad(lambda x: np.sum(np.tanh(x * a))))
        return inner(XS) + func.grad(lambda x: np.sum(np.tanh(x * a)))(X)

    expected = np.stack([outer(a) for a in XS])
    for _ in range(4):
        np.testing.assert_allclose(func.vmap(outer)(XS), expected, rtol=1e-12)


def test_under_jit_and_inside_of_other_gradients() -> None:
    hessian = func.hessian(lambda x: np.sum(np.tanh(x) ** 3 * x[::-1]))
    expected = hessian(X[0])
    third = lambda: func.grad(lambda x: np.sum(hessian(x) ** 2))(X[0])  # noqa: E731
    with func.config.override(compile_backward=False):
        slopes = third()
    for _ in range(4):
        np.testing.assert_allclose(hessian(X[0]), expected, rtol=1e-10)
        np.testing.assert_allclose(func.jit(hessian)(X[0]), expected, rtol=1e-10)
        np.testing.assert_allclose(third(), slopes, rtol=1e-9)


def test_results_do_not_share_memory_and_may_be_written() -> None:
    both = func.vmap(func.grad(lambda x, y: np.sum(np.tanh(x) * y) + np.sum(x), argnums=(0, 1)))
    for _ in range(4):
        x, y = both(XS, XS)
        assert not np.shares_memory(x, y)
        assert not np.shares_memory(x, XS)
        x[:] = 0
        y[:] = 0
    np.testing.assert_allclose(both(XS, XS)[1], np.tanh(XS), rtol=1e-12)


def test_threads_have_their_own_levels() -> None:
    hessian = func.hessian(lambda x: np.sum(np.tanh(x) ** 3 * x[::-1]))
    points = list(RNG.normal(size=(40, 8)))
    with func.config.override(compile_backward=False):
        expected = [hessian(x) for x in points]
    with cf.ThreadPoolExecutor(4) as pool:
        for actual, right in zip(pool.map(hessian, points), expected, strict=True):
            np.testing.assert_allclose(actual, right, rtol=1e-9, atol=1e-12)


@pytest.fixture
def structures(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The structures of passes below levels."""
    found: list[Any] = []
    init = backward_plans.Structure.__init__

    def watched(structure: Any, *args: Any) -> None:
        init(structure, *args)
        found.append(structure)

    monkeypatch.setattr(backward_plans.Structure, "__init__", watched)
    yield found


def test_what_a_pass_counts_for(structures: list[Any]) -> None:
    f = lambda x: np.sum(np.tanh(x) * x)  # noqa: E731
    func.grad(f)(X)
    func.vmap(func.grad(f))(np.stack([X] * 100))
    func.jvp(func.grad(f), (X,), (W,))
    assert [structure.levels.kinds for structure in structures] == [(), (100,), (-1,)]
    keys = {structure.key for structure in structures}
    assert len(keys) == 3


def test_two_vmaps_of_one_length_may_change_places() -> None:
    g = func.grad(lambda x, w: np.sum(np.tanh(x * w) * np.arange(8.0)))
    ws = RNG.normal(size=(3, 6, 8))
    expected = np.stack([np.stack([g(x, w) for w in ws]) for x in XS])
    for _ in range(4):
        by_rows = func.vmap(lambda x: func.vmap(lambda w: g(x, w))(ws))(XS)
        by_columns = func.vmap(lambda w: func.vmap(lambda x: g(x, w))(XS))(ws)
        np.testing.assert_allclose(by_rows, expected, rtol=1e-12)
        np.testing.assert_allclose(np.swapaxes(by_columns, 0, 1), expected, rtol=1e-12)


def test_a_vmap_and_a_jvp_of_two_arguments_may_change_places() -> None:
    g = func.grad(lambda x, w: np.sum(np.tanh(x * w) * np.arange(8.0)))
    with func.config.override(compile_backward=False):
        expected = np.stack([func.jvp(lambda w, x=x: g(x, w), (W,), (X,))[1] for x in XS])
    for _ in range(4):
        outside = func.vmap(lambda x: func.jvp(lambda w: g(x, w), (W,), (X,))[1])(XS)
        inside = func.jvp(lambda w: func.vmap(lambda x: g(x, w))(XS), (W,), (X,))[1]
        np.testing.assert_allclose(outside, expected, rtol=1e-12)
        np.testing.assert_allclose(inside, expected, rtol=1e-12)


def test_cotangents_and_arguments_of_vmaps_that_change_places() -> None:
    """No value that the pass reads has both batches, and its result has."""
    pull = lambda x, ct: func.vjp(lambda x: np.tanh(x) * x, x)[1](ct)[0]  # noqa: E731
    cts = RNG.normal(size=(3, 6, 8))
    with func.config.override(compile_backward=False):
        expected = np.stack([np.stack([pull(x, ct) for ct in cts]) for x in XS])
    for _ in range(4):
        by_rows = func.vmap(lambda x: func.vmap(lambda ct: pull(x, ct))(cts))(XS)
        by_columns = func.vmap(lambda ct: func.vmap(lambda x: pull(x, ct))(XS))(cts)
        np.testing.assert_allclose(by_rows, expected, rtol=1e-12)
        np.testing.assert_allclose(np.swapaxes(by_columns, 0, 1), expected, rtol=1e-12)


ODD: dict[str, Callable[[], Any]] = {
    "strided, single precision": lambda: func.vmap(func.grad(lambda x: np.sum(np.tanh(x) * x)))(
        XS.astype(np.float32)[::2, ::-1].transpose(0, 2, 1)
    ),
    "numbers": lambda: func.vmap(func.grad(lambda x: np.tanh(x) * x))(XS[:, 0, 0]),
    "empty": lambda: func.vmap(func.grad(lambda x: np.sum(np.tanh(x))))(np.zeros((4, 0))),
    "one array twice": lambda: func.vmap(func.grad(lambda a, b: np.sum(np.sin(a * b)), argnums=(0, 1)))(XS, XS),
    "chunks": lambda: func.jacrev(lambda x: np.tanh(x) * x[::-1], chunk_size=2)(X[0]),
    "complex": lambda: func.vmap(func.grad(lambda z: np.sum(np.abs(np.exp(z)) ** 2)))(XS + 1j * XS),
    "infinite and NaN": lambda: func.vmap(func.grad(lambda x: np.sum(np.where(x > 0, np.log(x), x))))(
        np.array([[0.0, np.inf], [-np.inf, np.nan]])
    ),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ODD)
def test_odd_arguments(name: str) -> None:
    with func.config.override(compile_backward=False):
        expected = func.tree.leaves(ODD[name]())
    for _ in range(3):
        for a, b in zip(func.tree.leaves(ODD[name]()), expected, strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            np.testing.assert_allclose(a, b, rtol=3e-5 if a.dtype == np.float32 else 1e-12)


def test_an_error_leaves_later_passes_right() -> None:
    g = func.vmap(func.grad(lambda x: np.sum(np.linalg.solve(x, np.eye(3)))))
    matrices = RNG.normal(size=(2, 3, 3)) + 4 * np.eye(3)
    expected = g(matrices)
    for _ in range(3):
        with pytest.raises(np.linalg.LinAlgError):
            g(np.zeros((2, 3, 3)))
        np.testing.assert_allclose(g(matrices), expected, rtol=1e-10)
