"""Checkpoints: they run once, find every traced value, and values kept from inside them have their derivative."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func
from func.autograd import checkpoint
from func.errors import NotDifferentiableError

X = np.array([0.3, 0.8])


def both(function: Callable[..., Any], x: Any) -> list[Any]:
    return [checkpoint(function, x), func.checkpoint(function)(x)]


def test_a_tensor_kept_from_inside() -> None:
    for way in (lambda f, x: checkpoint(f, x), lambda f, x: func.checkpoint(f)(x)):
        kept = []

        class Holder:
            value: Any = None

        def function(a: Any, kept: Any = kept, holder: Any = Holder) -> Any:
            b = np.sin(a)
            kept.append(b)
            holder.value = b * a
            return b * b

        x = func.tensor(X, requires_grad=True)
        (way(function, x).sum() + 3 * kept[0].sum() + Holder.value.sum()).backward()
        expected = 2 * np.sin(X) * np.cos(X) + 3 * np.cos(X) + np.cos(X) * X + np.sin(X)
        np.testing.assert_allclose(x.grad.numpy(), expected)

        def loss(z: Any, way: Any = way, kept: Any = kept, function: Any = function) -> Any:
            kept.clear()
            return way(function, z).sum() + 3 * kept[0].sum()

        for derivative in (func.grad(loss), func.jacfwd(loss), func.grad(func.jit(loss)), func.jit(func.grad(loss))):
            np.testing.assert_allclose(derivative(X), 2 * np.sin(X) * np.cos(X) + 3 * np.cos(X))
        np.testing.assert_allclose(func.hessian(loss)(X), np.diag(2 * np.cos(2 * X) - 3 * np.sin(X)), atol=1e-12)


@dataclasses.dataclass(slots=True)
class Slots:
    w: Any


class ClassAttribute:
    w: Any = None


class OwnDict(dict[str, Any]):
    pass


class OwnList(list[Any]):
    pass


def by_class_attribute(w: Any) -> Any:
    kind = type("Kind", (), {"w": w})
    return lambda a: a * kind.w


def by_slots(w: Any) -> Any:
    layer = Slots(w)
    return lambda a: a * layer.w


def by_generator(w: Any) -> Any:
    values = collections.deque([w])
    return lambda a: a * values[0]


def by_own_dict(w: Any) -> Any:
    values = OwnDict(w=w)
    return lambda a: a * values["w"]


def by_own_list(w: Any) -> Any:
    values = OwnList([w])
    return lambda a: a * values[0]


def by_module(w: Any) -> Any:
    import types

    module = types.ModuleType("elsewhere")
    module.w = w  # type: ignore[attr-defined]
    exec("def f(a):\n    return a * w", vars(module))
    return lambda a: module.f(a)


def by_array_of_objects(w: Any) -> Any:
    box = {frozenset([1]): {"deep": (Slots([w]),)}}
    return lambda a: a * box[frozenset([1])]["deep"][0].w[0]


WAYS = [
    by_class_attribute,
    by_slots,
    by_generator,
    by_own_dict,
    by_own_list,
    by_module,
    by_array_of_objects,
]


@pytest.mark.parametrize("way", WAYS)
def test_tensors_are_found_wherever_they_are(way: Any) -> None:
    for i in range(2):
        w = func.tensor([3.0, 2.0], requires_grad=True)
        x = func.tensor([1.0, 5.0], requires_grad=True)
        both(way(w), x)[i].sum().backward()
        np.testing.assert_array_equal(w.grad.numpy(), [1, 5])
        np.testing.assert_array_equal(x.grad.numpy(), [3, 2])
        (slope,) = func.autograd.grad(both(way(w * w), x)[i].sum(), w, create_graph=True)
        np.testing.assert_array_equal(func.autograd.grad(slope.sum(), w)[0].numpy(), [2, 10])
        np.testing.assert_array_equal(func.grad(lambda v, i=i: both(way(v), X)[i].sum())(X), X)
        np.testing.assert_array_equal(func.grad(lambda v, i=i: both(way(v), v)[i].sum())(X), 2 * X)
        np.testing.assert_array_equal(func.jvp(lambda v, i=i: both(way(v), v)[i].sum(), (X,), (X,))[1], 2 * X @ X)


def test_gradients_inside() -> None:
    def inner(a: Any) -> Any:
        b = func.tensor(a, requires_grad=True)
        (g,) = func.autograd.grad((b**3).sum(), b, create_graph=True)
        return g

    for i in range(2):
        x = func.tensor(X, requires_grad=True)
        both(inner, x)[i].sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), 6 * X)
        np.testing.assert_allclose(func.grad(lambda z, i=i: both(inner, z)[i].sum())(X), 6 * X)


@pytest.mark.filterwarnings("ignore::func.errors.FrozenValueWarning")
def test_one_run_and_one_draw() -> None:
    runs = []

    def drop(x: Any) -> Any:
        runs.append(1)
        return x * (np.random.rand(16) > 0.5) * x

    light = func.checkpoint(drop)
    x = np.ones(16)
    for transform in (lambda f: f, func.jit):
        y, pull = func.vjp(transform(light), x)
        np.testing.assert_array_equal(pull(x)[0], 2 * y)
    runs.clear()
    y, slope = func.value_and_grad(lambda z: func.grad(lambda v: light(v).sum())(z).sum())(x)
    assert y == slope.sum()
    assert len(runs) == 1
    t = func.tensor(x, requires_grad=True)
    out = light(t)
    (gradient,) = func.autograd.grad(out.sum(), t, create_graph=True)
    np.testing.assert_array_equal(gradient.detach().numpy(), 2 * out.detach().numpy())
    np.testing.assert_array_equal(func.autograd.grad(gradient.sum(), t)[0].numpy(), 2 * out.detach().numpy())
    assert len(runs) == 2
    y, pull = func.vjp(lambda z: func.scan(lambda c, _: (drop(c), None), z, None, length=4, checkpoint=2)[0], x)
    np.testing.assert_array_equal(pull(x)[0], 16 * y)


def test_numbers_read_inside_have_no_derivative_in_silence() -> None:
    for policy in (None, func.checkpoint_policies.everything_saveable):
        light = func.checkpoint(lambda x: x * float(x), policy=policy)
        assert light(2.0) == 4.0
        for derivative in (func.grad(light), func.jacfwd(light)):
            with pytest.raises((NotDifferentiableError, TypeError), match=r"read the numbers|silently lose"):
                derivative(2.0)


def test_gradients_that_are_switched_off_inside() -> None:
    def half(x: Any) -> Any:
        with func.no_grad():
            y = x * x
        return x * y

    for f in (half, func.checkpoint(half), func.checkpoint(half, policy=func.checkpoint_policies.everything_saveable)):
        assert func.grad(f)(3.0) == 9.0
    constant = func.checkpoint(lambda x: x * func.stop_gradient(x))
    assert func.grad(constant)(3.0) == 3.0
    assert func.grad(func.grad(lambda x: constant(x) * x))(3.0) == 6.0


def test_saved_values_have_derivatives_of_every_order() -> None:
    for policy in (func.checkpoint_policies.everything_saveable, func.checkpoint_policies.dots_saveable):
        f = func.checkpoint(lambda x: np.tanh(np.exp(x) * x) @ x, policy=policy)
        plain = lambda x: np.tanh(np.exp(x) * x) @ x  # noqa: E731
        for nest in (
            lambda g: func.hessian(g),
            lambda g: func.jacrev(func.jacrev(func.jacrev(g))),
            lambda g: func.jacfwd(func.jacrev(func.jit(g))),
        ):
            np.testing.assert_allclose(nest(f)(X), nest(plain)(X))


def test_saved_values_in_a_batch_between_two_levels() -> None:
    square = func.checkpoint(lambda v: (v * v) ** 2, policy=func.checkpoint_policies.everything_saveable)
    slope = func.grad(lambda x: func.vmap(func.grad(square))(np.stack([x, 2 * x]))[0])
    assert slope(0.7) == pytest.approx(12 * 0.7**2)
