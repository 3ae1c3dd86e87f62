"""Dual levels: tangents against jvp, together with backward and with transforms, and the rules of levels."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func
from func.autograd import forward_ad, functional
from func.autograd.forward_ad import dual_level, make_dual, unpack_dual

pytestmark = pytest.mark.filterwarnings("error")

X = np.array([0.3, -0.7, 1.1])
V = np.array([1.0, 0.5, -2.0])
A = np.arange(9.0).reshape(3, 3) / 5


def written(x: Any) -> Any:
    y = np.zeros_like(x)
    y[0] = x[1] ** 2
    y[1:] += x[:-1] * 3
    return y


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "elementwise": lambda x: np.sin(np.exp(x)) * x,
    "matrix product": lambda x: np.tanh(A @ x),
    "solve": lambda x: np.linalg.solve(A + 3 * np.eye(3), x),
    "reduction": lambda x: np.log(np.sum(np.exp(x))),
    "stacked": lambda x: np.array([x[0], x[1] * x[2], 1.0]),
    "written": written,
    "branch": lambda x: x**2 if x[0] > 0 else x,
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("requires_grad", [False, True])
def test_tangents_are_those_of_jvp(name: str, requires_grad: bool) -> None:
    function = FUNCTIONS[name]
    expected = func.jvp(function, (X,), (V,))
    with dual_level():
        out = function(make_dual(func.tensor(X, requires_grad=requires_grad), V))
        primal, tangent = unpack_dual(out)
    np.testing.assert_allclose(primal.detach().numpy(), expected[0])
    np.testing.assert_allclose(tangent.detach().numpy(), expected[1])
    assert primal.requires_grad is requires_grad


@pytest.mark.parametrize("name", FUNCTIONS)
def test_backward_of_a_tangent_is_a_hessian_product(name: str) -> None:
    def scalar(x: Any) -> Any:
        return (FUNCTIONS[name](x) ** 2).sum()

    x = func.tensor(X, requires_grad=True)
    with dual_level():
        tangent = unpack_dual(scalar(make_dual(x, func.tensor(V)))).tangent
        tangent.backward()
    np.testing.assert_allclose(x.grad.numpy(), func.hessian(scalar)(X) @ V, atol=1e-12)


def test_backward_after_the_level() -> None:
    x, v = func.tensor(X, requires_grad=True), func.tensor(V, requires_grad=True)
    with dual_level():
        primal, tangent = unpack_dual((make_dual(x, v) ** 3).sum())
    (primal + tangent).backward()
    np.testing.assert_allclose(x.grad.numpy(), 3 * X**2 + 6 * X * V)
    np.testing.assert_allclose(v.grad.numpy(), 3 * X**2)


def test_leaves_made_inside_a_level() -> None:
    with dual_level():
        w = func.tensor(X, requires_grad=True)
        (w**2).sum().backward()
        np.testing.assert_allclose(w.grad.numpy(), 2 * X)
        tangent = unpack_dual((make_dual(func.tensor(X), V) * w).sum()).tangent
        w.grad = None
        tangent.backward()
    np.testing.assert_allclose(w.grad.numpy(), V)


def test_levels_nest() -> None:
    with dual_level() as outer:
        x = make_dual(func.tensor(X), V)
        with dual_level() as inner:
            assert (outer, inner) == (0, 1)
            y = make_dual(x, np.ones(3)) ** 3
            with pytest.raises(forward_ad.DualLevelError, match="carries a tangent inside level 0; unpack that"):
                unpack_dual(y, level=0)
            first = unpack_dual(y, level=1).tangent
        mixed = unpack_dual(first)
        np.testing.assert_allclose(mixed.primal.numpy(), 3 * X**2)
        np.testing.assert_allclose(mixed.tangent.numpy(), 6 * X * V)


def test_when_the_level_has_been_left() -> None:
    w = func.tensor(V, requires_grad=True)
    with dual_level():
        dual = make_dual(func.tensor(X), V)
    assert unpack_dual(dual).tangent is None
    np.testing.assert_allclose(unpack_dual(dual).primal.numpy(), X)
    np.testing.assert_allclose((dual * 2 + X).numpy(), 3 * X)
    (dual * w).sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), X)
    with dual_level():
        again = unpack_dual(make_dual(dual, np.ones(3)) * dual)
        assert unpack_dual(dual).tangent is None
    np.testing.assert_allclose(again.tangent.numpy(), X)
    np.testing.assert_allclose(unpack_dual(np.linalg.eigh(A + np.diag(dual))[0]).primal.numpy().shape, (3,))


def test_tensors_without_a_tangent() -> None:
    x = func.tensor(X)
    assert unpack_dual(x).primal is x
    with dual_level():
        assert unpack_dual(x) == (x, None)
        assert unpack_dual(make_dual(x, V) > 0).tangent is None
        assert unpack_dual(X).tangent is None
    assert forward_ad.UnpackedDualTensor._fields == ("primal", "tangent")


def test_gradients_off_do_not_concern_tangents() -> None:
    x = func.tensor(X, requires_grad=True)
    with func.no_grad(), dual_level():
        primal, tangent = unpack_dual(make_dual(x, V) ** 2)
    assert not primal.requires_grad and not tangent.requires_grad
    np.testing.assert_allclose(tangent.numpy(), 2 * X * V)


def test_writes() -> None:
    x = func.tensor(X)
    with dual_level():
        dual = make_dual(x, V)
        x[0] = 100.0
        dual[1] = 5.0
        dual *= 2
        primal, tangent = unpack_dual(dual)
    np.testing.assert_allclose(primal.numpy(), [0.6, 10.0, 2.2])
    np.testing.assert_allclose(tangent.numpy(), [2.0, 0.0, -4.0])


def directional(x: Any) -> Any:
    with dual_level():
        return unpack_dual(make_dual(x, np.ones(3)) ** 3).tangent.sum()


TRANSFORMS: dict[str, tuple[Callable[[], Any], Any]] = {
    "grad": (lambda: func.grad(directional)(X), 6 * X),
    "hessian": (lambda: func.hessian(directional)(X), 6 * np.eye(3)),
    "vmap": (lambda: func.vmap(directional)(np.stack([X, 2 * X])), [np.sum(3 * X**2), np.sum(12 * X**2)]),
    "jvp": (lambda: func.jvp(directional, (X,), (V,))[1], np.sum(6 * X * V)),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_levels_inside_transforms(name: str) -> None:
    run, expected = TRANSFORMS[name]
    np.testing.assert_allclose(run(), expected)


def test_transforms_inside_levels() -> None:
    with dual_level():
        x = make_dual(func.tensor(X), V)
        slope = unpack_dual(func.grad(lambda y: (y**3).sum())(x))
        matrix = unpack_dual(functional.jacobian(lambda y: y**3, x))
        mapped = unpack_dual(func.vmap(lambda y: y**3)(x))
    np.testing.assert_allclose(slope.tangent.numpy(), 6 * X * V)
    np.testing.assert_allclose(matrix.tangent.numpy(), np.diag(6 * X * V))
    np.testing.assert_allclose(mapped.tangent.numpy(), 3 * X**2 * V)


def test_threads_have_their_own_levels() -> None:
    failures: list[BaseException] = []

    def other() -> None:
        try:
            make_dual(func.tensor(X), V)
        except forward_ad.DualLevelError as error:
            failures.append(error)

    with dual_level():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert len(failures) == 1


def inside(run: Callable[[], Any]) -> Callable[[], Any]:
    def entered() -> Any:
        with dual_level():
            return run()

    return entered


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no level": (lambda: make_dual(X, V), RuntimeError, "no dual level is open; write `with"),
    "exit without a level": (forward_ad.exit_dual_level, RuntimeError, "no dual level is open"),
    "level is not innermost": (
        inside(inside(lambda: forward_ad.exit_dual_level(level=0))),
        RuntimeError,
        "level 0 is not the innermost, which is 1",
    ),
    "unknown level": (inside(lambda: make_dual(X, V, level=3)), RuntimeError, "level 3 is not open"),
    "unpack at an unknown level": (inside(lambda: unpack_dual(X, level=1)), RuntimeError, "level 1 is not open"),
    "shape": (inside(lambda: make_dual(X, V[:2])), ValueError, r"shape \(3,\).*tangent has shape \(2,\)"),
    "dtype": (inside(lambda: make_dual(X, V.astype(np.float32))), ValueError, "dtype float64.*dtype float32"),
    "complex tangent": (inside(lambda: make_dual(X, V * 1j)), ValueError, "float64, but its tangent is complex"),
    "integers": (inside(lambda: make_dual(np.arange(3), V)), TypeError, "floating point and complex dtype"),
    "not an array": (inside(lambda: make_dual("a", V)), TypeError, "tensor cannot be traced"),
    "twice": (inside(lambda: make_dual(make_dual(X, V), V)), RuntimeError, "carries a tangent of this level"),
    "inner into outer": (
        inside(inside(lambda: make_dual(make_dual(X, V), V, level=0))),
        RuntimeError,
        "entered inside this level",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    run, kind, words = REFUSED[name]
    with pytest.raises(kind, match=words):
        run()
    with pytest.raises(RuntimeError, match="no dual level"):
        forward_ad.exit_dual_level()


def test_enter_and_exit() -> None:
    assert forward_ad.enter_dual_level() == 0
    assert forward_ad.enter_dual_level() == 1
    forward_ad.exit_dual_level(level=1)
    forward_ad.exit_dual_level()
