"""Checkpoints of tensors: gradients as without them, less memory, and what must repeat."""

from __future__ import annotations

import functools
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func
from func.autograd import forward_ad, functional
from func.autograd.checkpointing import checkpoint, checkpoint_sequential
from tests.support.traced_memory import tracing

pytestmark = pytest.mark.filterwarnings("error")

X = np.array([0.3, -0.7])
GLOBAL = func.tensor([0.5, 2.0], requires_grad=True)


def by_global(x: Any) -> Any:
    return np.tanh(np.sin(x * GLOBAL))


def by_global_helper(x: Any) -> Any:
    return by_global(by_global(x))


class Layer:
    """An object with a parameter, as neural networks have them."""

    def __init__(self, weight: Any) -> None:
        self.weight = weight
        self.inner: list[Any] = []
        self.runs = 0

    def __call__(self, x: Any) -> Any:
        self.runs += 1
        for layer in self.inner:
            x = layer(x)
        return np.tanh(np.sin(x * self.weight))

    def twice(self, x: Any) -> Any:
        return self(self(x))


def closure(w: Any) -> Callable[[Any], Any]:
    def inner(x: Any) -> Any:
        return np.sin(x * w)

    return lambda x: np.tanh(inner(x))


def written(x: Any) -> Any:
    y = np.zeros_like(x)
    y[0] = x[1] ** 2
    y += x
    return y * GLOBAL


def without_gradients(function: Any, x: Any) -> Any:
    with func.no_grad():
        return function(x)


def nested_layers(w: Any) -> Layer:
    outer = Layer(w)
    shared = Layer(w * 2)
    outer.inner = [shared, shared]
    return outer


FUNCTIONS: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "argument": lambda w: lambda x: np.sin(np.exp(x)),
    "closure": closure,
    "default": lambda w: lambda x, w=w: np.sin(x * w),
    "keyword default": lambda w: lambda x, *, w=w: np.sin(x * w),
    "partial": lambda w: functools.partial(lambda w, x: np.sin(x * w), w),
    "tree": lambda w: (lambda parameters: lambda x: np.sin(x * parameters["w"][0]))({"w": [w]}),
    "object": Layer,
    "nested objects": nested_layers,
    "method": lambda w: Layer(w).twice,
    "object in closure": lambda w: (lambda layer: lambda x: layer(x))(Layer(w)),
    "global": lambda w: by_global,
    "global through a function": lambda w: by_global_helper,
    "written": lambda w: written,
    "identity": lambda w: lambda x: x,
    "tensor methods": lambda w: lambda x: x.clone().reshape(2) * w,
    "gradients off inside": lambda w: lambda x: without_gradients(np.sin, x * w) * x,
    "checkpoint inside": lambda w: lambda x: checkpoint(lambda y: np.sin(y * w), x) * w,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_those_of_the_plain_function(name: str) -> None:
    results = []
    for checkpointed in (False, True):
        x, w = func.tensor(X, requires_grad=True), func.tensor([1.5, 0.4], requires_grad=True)
        function = FUNCTIONS[name](w)
        y = (checkpoint(function, x) if checkpointed else function(x)).sum()
        targets = (x, w, GLOBAL)
        first = func.autograd.grad(y, targets, create_graph=True, materialize_grads=True)
        total = sum((g**2).sum() for g in first)
        second = func.autograd.grad(total, targets, materialize_grads=True) if total.requires_grad else ()
        results.append([y, *first, *second])
    for plain, recomputed in zip(*results, strict=True):
        np.testing.assert_allclose(recomputed.detach().numpy(), plain.detach().numpy(), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "tensor methods"])
def test_func_checkpoint_finds_the_same_tensors(name: str) -> None:
    """func.checkpoint takes closures, globals and attributes alike; the function gets arrays in place of tensors."""
    gradients = []
    for call in (checkpoint, lambda function, x: func.checkpoint(function)(x)):
        x, w = func.tensor(X, requires_grad=True), func.tensor([1.5, 0.4], requires_grad=True)
        y = call(FUNCTIONS[name](w), x).sum()
        gradients.append(func.autograd.grad(y, (x, w, GLOBAL), materialize_grads=True))
    for expected, gradient in zip(*gradients, strict=True):
        np.testing.assert_allclose(gradient.numpy(), expected.numpy(), rtol=1e-12, atol=1e-14)


TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "grad": lambda f: func.grad(f)(X),
    "hessian": lambda f: func.hessian(f)(X),
    "jacfwd": lambda f: func.jacfwd(f)(X),
    "vmap of grad": lambda f: func.vmap(func.grad(f))(np.stack([X, 2 * X])),
    "grad of vmap": lambda f: func.grad(lambda xs: func.vmap(f)(xs).sum())(np.stack([X, 2 * X])),
    "jvp": lambda f: func.jvp(f, (X,), (np.ones(2),))[1],
    "jvp of grad": lambda f: func.jvp(func.grad(f), (X,), (np.ones(2),))[1],
    "functional.hessian": lambda f: functional.hessian(f, X),
    "functional.hessian forward": lambda f: functional.hessian(
        f, X, vectorize=True, outer_jacobian_strategy="forward-mode"
    ),
    "functional.hvp": lambda f: functional.hvp(f, X, np.ones(2))[1],
    "third derivative": lambda f: func.jacrev(func.hessian(f))(X),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_under_every_transform(name: str) -> None:
    w = func.tensor([1.5, 0.4], requires_grad=True)

    def plain(x: Any) -> Any:
        return (np.tanh(np.sin(x * w)) ** 2).sum()

    expected = TRANSFORMS[name](plain)
    actual = TRANSFORMS[name](lambda x: checkpoint(plain, x))
    np.testing.assert_allclose(actual.detach().numpy(), expected.detach().numpy(), rtol=1e-12)
    if actual.requires_grad:
        (slope,) = func.autograd.grad(actual.sum(), w)
        (slope_expected,) = func.autograd.grad(expected.sum(), w)
        np.testing.assert_allclose(slope.numpy(), slope_expected.numpy(), rtol=1e-10)


def test_under_dual_levels() -> None:
    with forward_ad.dual_level():
        x = forward_ad.make_dual(func.tensor(X), np.ones(2))
        tangent = forward_ad.unpack_dual(checkpoint(np.sin, x)).tangent
    np.testing.assert_allclose(tangent.numpy(), np.cos(X))


def kept(run: Callable[[Any], Any], size: int) -> float:
    """How many arrays of a size are still held after the forward computation."""
    x = func.tensor(np.ones(size), requires_grad=True)
    with tracing():
        before = tracemalloc.get_traced_memory()[0]
        out = run(x)
        used = tracemalloc.get_traced_memory()[0] - before
        out.sum().backward()
    assert x.grad.shape == (size,)
    return used / (8 * size)


def test_intermediate_values_are_not_kept() -> None:
    def layer(x: Any) -> Any:
        return np.tanh(np.sin(np.exp(x * 0.1)))

    def chain(x: Any, count: int = 12) -> Any:
        for _ in range(count):
            x = layer(x)
        return x

    def checkpointed_layers(x: Any) -> Any:
        for _ in range(12):
            x = checkpoint(layer, x)
        return x

    size = 50_000
    plain = kept(chain, size)
    assert kept(checkpointed_layers, size) < 0.6 * plain
    assert kept(lambda x: checkpoint(chain, x), size) < 3
    assert kept(lambda x: checkpoint_sequential([layer] * 12, 4, x), size) < 0.5 * plain


def test_functions_run_again_only_in_backward() -> None:
    runs = []

    def noted(x: Any) -> Any:
        runs.append(1)
        return np.sin(x)

    x = func.tensor(X, requires_grad=True)
    y = checkpoint(noted, x).sum()
    assert len(runs) == 1
    y.backward()
    assert len(runs) == 2
    with func.no_grad():
        assert not checkpoint(noted, x).requires_grad
    checkpoint(noted, func.tensor(X))
    checkpoint(noted, X)
    assert len(runs) == 5


def test_objects_keep_what_the_first_run_sets() -> None:
    layer = Layer(func.tensor([1.0, 2.0], requires_grad=True))
    y = checkpoint(layer, X).sum()
    assert layer.runs == 1
    y.backward()
    assert layer.runs == 1
    assert layer.weight.grad is not None


def test_outputs_of_every_kind() -> None:
    x = func.tensor(X, requires_grad=True)
    doubled, rest = checkpoint(lambda x: (x * 2, {"none": None, "word": "a", "count": 3, "index": np.arange(2)}), x)
    assert doubled.requires_grad
    assert rest["none"] is None and rest["word"] == "a" and rest["count"] == 3
    assert list(rest["index"]) == [0, 1]


def test_keyword_arguments_and_trees() -> None:
    x, w = func.tensor(X, requires_grad=True), func.tensor([1.5, 0.4], requires_grad=True)
    y = checkpoint(lambda p, *, scale, power: (p["x"] * scale) ** power, {"x": x}, scale=w, power=2)
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * X * w.detach().numpy() ** 2)
    np.testing.assert_allclose(w.grad.numpy(), 2 * w.detach().numpy() * X**2)


def test_later_writes_do_not_matter() -> None:
    x, a = func.tensor(X, requires_grad=True), np.ones(2)
    w = func.tensor([1.0, 1.0], requires_grad=True)
    y = checkpoint(lambda x, a: x * a * w * x, x, a).sum()
    a[:] = 7
    with func.no_grad():
        w += 1
    y.backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * X)


@pytest.mark.parametrize("preserve", [True, False])
def test_the_state_of_the_global_generator(preserve: bool) -> None:
    def dropout(x: Any) -> Any:
        return x * np.random.rand(2)

    x = func.tensor([1.0, 1.0], requires_grad=True)
    before = np.random.get_state()
    try:
        np.random.seed(0)
        y = checkpoint(dropout, x, preserve_rng_state=preserve)
        following = np.random.rand()
        y.sum().backward()
        after = np.random.rand()
    finally:
        np.random.set_state(before)
    assert bool(np.all(x.grad.numpy() == y.detach().numpy())) is preserve
    assert following != after


CHANGES: dict[str, tuple[Callable[[Any, int], Any], str]] = {
    "shape": (lambda x, run: x[: 2 - run], r"output 0 .*shape \(2,\) .*float64.*shape \(1,\)"),
    "dtype": (lambda x, run: x.astype(np.float32) if run else x, "dtype float64 the first time.*dtype float32"),
    "number": (lambda x, run: (x, x)[: 2 - run], "returned 2 arrays the first time, but 1"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_function_that_changes_is_refused(name: str) -> None:
    change, words = CHANGES[name]
    runs: list[int] = []

    def function(x: Any) -> Any:
        runs.append(1)
        return change(x, len(runs) - 1)

    out = checkpoint(function, func.tensor(X, requires_grad=True))
    out = out[0] if isinstance(out, tuple) else out
    with pytest.raises(func.errors.CheckpointError, match=words):
        out.sum().backward()


def test_without_the_check() -> None:
    runs: list[int] = []

    def function(x: Any) -> Any:
        runs.append(1)
        return x if len(runs) == 1 else (x * 2)[:, None].reshape(2)

    x = func.tensor(X, requires_grad=True)
    checkpoint(function, x, determinism_check="none", use_reentrant=False).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [2.0, 2.0])


def test_wrong_options() -> None:
    x = func.tensor(X, requires_grad=True)
    with pytest.raises(ValueError, match="determinism_check must be"):
        checkpoint(np.sin, x, determinism_check="some")
    with pytest.raises(TypeError, match="takes a function first"):
        checkpoint(x, np.sin)
    for segments in (0, 3):
        with pytest.raises(ValueError, match="segments must be from 1 to 2"):
            checkpoint_sequential([np.sin, np.cos], segments, x)


@pytest.mark.parametrize("segments", [1, 2, 3, 5])
def test_chains(segments: int) -> None:
    w = func.tensor([1.5, 0.4], requires_grad=True)
    chain = [np.sin, Layer(w), lambda x: x * w, np.tanh, by_global]
    results = []
    for run in (
        lambda x: functools.reduce(lambda value, f: f(value), chain, x),
        lambda x: checkpoint_sequential(chain, segments, x),
    ):
        x = func.tensor(X, requires_grad=True)
        results.append([g.numpy() for g in func.autograd.grad(run(x).sum(), (x, w, GLOBAL))])
    for plain, recomputed in zip(*results, strict=True):
        np.testing.assert_allclose(recomputed, plain, rtol=1e-12)


def test_the_decorator_checkpoints_tensors_too() -> None:
    x, w = func.tensor(X, requires_grad=True), func.tensor([1.5, 0.4], requires_grad=True)
    y = func.checkpoint(lambda x: np.sin(x * w))(x)
    assert y.grad_fn.name() == "CheckpointCallBackward"
    y.sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), X * np.cos(X * w.detach().numpy()))
    assert type(func.checkpoint(np.sin)(X)) is np.ndarray
