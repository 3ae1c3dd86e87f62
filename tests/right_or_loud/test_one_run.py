"""Custom rules run once: in a backward pass, whatever hooks and NaN are in it, and with a vmap rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func
from func.autograd import Function
from func.errors import CustomRuleError
from tools.enumerate import _features as features

X = np.array([1.0, 2.0])


class Log(list[str]):
    """The runs, in order."""

    def of(self, call: Callable[[], Any]) -> str:
        """The runs in a call."""
        self.clear()
        call()
        return "".join(self)


def doubling(log: Log) -> dict[str, Callable[[Any], Any]]:
    """2 x, with a rule that leaves a mark when it is called."""

    class Double(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return 2 * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            log.append("b")
            return 2 * g

    class Read(Double):
        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            log.append("b")
            return func.tensor(2 * g.numpy())

    by_vjp = func.custom_vjp(lambda x: 2 * x)
    by_vjp.defvjp(lambda x: (2 * x, None), lambda _, ct: (log.append("b"), (2 * ct,))[1])

    @func.custom_gradient
    def by_gradient(x: Any) -> Any:
        return 2 * x, lambda ct: (log.append("b"), 2 * ct)[1]

    return {"Function": Double.apply, "reading": Read.apply, "custom_vjp": by_vjp, "custom_gradient": by_gradient}


RULES = ("Function", "reading", "custom_vjp", "custom_gradient")


@pytest.mark.parametrize("name", RULES)
def test_hooks_call_no_rule_again(name: str) -> None:
    log = Log()
    double = doubling(log)[name]

    def run(first: Callable[[Any], Any], **options: Any) -> str:
        x = func.tensor(X, requires_grad=True)
        out = double(first(x)).sum()
        seen = log.of(lambda: out.backward(**options))
        np.testing.assert_array_equal(x.grad.numpy(), [6, 6])
        return seen

    def hooked(x: Any) -> Any:
        y = 3 * x
        y.register_hook(lambda g: log.append("h"))
        return y

    def retaining(x: Any) -> Any:
        y = 3 * x
        y.retain_grad()
        return y

    def with_node_hook(x: Any) -> Any:
        y = 3 * x
        y.grad_fn.register_hook(lambda *gradients: log.append("h"))
        return y

    def with_leaf_hook(x: Any) -> Any:
        x.register_hook(lambda g: log.append("h"))
        return 3 * x

    def packed(x: Any) -> Any:
        with func.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: (log.append("u"), t)[1]):
            return 3 * np.sqrt(x * x)

    assert run(lambda x: 3 * x) == "b"
    for first in (hooked, with_node_hook, with_leaf_hook):
        assert run(first) == run(first, create_graph=True) == "bh"
    assert run(retaining) == "b"
    assert run(packed).startswith("bu") and log.count("b") == 1


@pytest.mark.parametrize("name", RULES)
def test_nan_call_no_rule_again(name: str) -> None:
    log = Log()
    double = doubling(log)[name]

    def after(x: Any) -> Any:
        return np.sum(double(np.where(x > 1, 0.0 * np.sqrt(x - 1), 3 * x)))  # a NaN behind the rule

    def before(x: Any) -> Any:
        return np.sum(np.where(x > 1, np.sqrt(double(x) - 2), 3 * x))  # a NaN in front of it

    def tensor_backward(f: Callable[[Any], Any]) -> Any:
        x = func.tensor(X, requires_grad=True)
        f(x).backward()
        return x.grad.numpy()

    for f in (after, before):
        for gradient in (lambda f: func.grad(f)(X), tensor_backward, lambda f: func.vjp(f, X)[1](1.0)[0]):
            results: list[Any] = []
            assert log.of(lambda: results.append(gradient(f))) == "b"  # noqa: B023
            assert np.isfinite(results[0][0])
            if f is before:
                np.testing.assert_allclose(results[0], [3, 1 / np.sqrt(2)])


def test_a_rule_that_must_be_called_again_gives_the_same_or_an_error() -> None:
    """Structural zeros reach the rule, and a NaN is behind it: only the rule itself can say what they become."""
    calls = []

    def loss(rule: Callable[..., Any]) -> Callable[[Any], Any]:
        f = func.custom_vjp(lambda x: 2 * x)
        f.defvjp(lambda x: (2 * x, None), rule)
        return lambda x: np.sum(np.where(x > 1, f(np.sqrt(x - 1)), 3 * x))

    def honest(_: Any, ct: Any) -> Any:
        calls.append(ct)
        return (2 * ct,)

    def noisy(_: Any, ct: Any) -> Any:
        return (2 * ct * np.random.rand(),)

    def counting(_: Any, ct: Any) -> Any:
        calls.append(ct)
        return (2 * ct * len(calls),)

    np.testing.assert_allclose(func.grad(loss(honest))(X), [3, 1])
    calls.clear()
    for rule in (noisy, counting):
        with pytest.raises(CustomRuleError, match="called twice in one backward pass"):
            func.grad(loss(rule))(X)
        x = func.tensor(X, requires_grad=True)
        with pytest.raises(CustomRuleError, match="called twice in one backward pass"):
            loss(rule)(x).backward()


def test_a_checkpoint_is_repeated_once_for_a_pass() -> None:
    log = Log()

    def square(x: Any) -> Any:
        log.append("c")
        return x * x

    x = func.tensor(X, requires_grad=True)
    y = 3 * x
    y.register_hook(lambda g: log.append("h"))
    assert log.of(lambda: func.autograd.checkpoint(square, y).sum().backward()) == "cch"


def mapped_functions(log: Log) -> dict[str, Callable[[Any], Any]]:
    """x² with a vmap rule, in both styles."""

    class Square(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            log.append("f")
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            log.append("b")
            return 2 * g * ctx.saved_tensors[0]

        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any) -> Any:
            log.append("v")
            return features.Square.apply(x), 0

    class WithSetup(Square):
        @staticmethod
        def forward(x: Any) -> Any:  # type: ignore[override]
            log.append("f")
            return x * x

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)

    return {"forward with ctx": Square.apply, "setup_context": WithSetup.apply}


@pytest.mark.parametrize("name", ("forward with ctx", "setup_context"))
def test_a_function_with_a_vmap_rule_runs_once(name: str) -> None:
    log = Log()
    square = mapped_functions(log)[name]

    def f(x: Any) -> Any:
        return square(x) * x

    def by_tensor(x: Any) -> Any:
        t = func.tensor(x, requires_grad=True)
        (first,) = func.autograd.grad(f(t), t, create_graph=True)
        return func.autograd.grad(first, t)[0]

    forward = "v" if name == "setup_context" else "f"  # of a batch, where a derivative inside needs the context
    roads: dict[str, tuple[Callable[[], Any], Any, str]] = {
        "grad": (lambda: func.grad(f)(2.0), 12.0, "f"),
        "vmap": (lambda: func.vmap(f)(X), X**3, "v"),
        "vmap grad": (lambda: func.vmap(func.grad(f))(X), 3 * X**2, forward),
        "vmap jacfwd": (lambda: func.vmap(func.jacfwd(f))(X), 3 * X**2, forward),
        "vmap hessian": (lambda: func.vmap(func.hessian(f))(X), 6 * X, forward),
        "vmap linearize": (lambda: func.vmap(lambda z: func.linearize(f, z)[1](1.0))(X), 3 * X**2, forward),
        "vmap checkpoint": (lambda: func.vmap(func.grad(func.checkpoint(f)))(X), 3 * X**2, forward),
        "vmap create_graph": (lambda: func.vmap(by_tensor)(X), 6 * X, forward),
        "jvp vmap grad": (lambda: func.jvp(func.vmap(func.grad(f)), (X,), (X,))[1], 6 * X**2, forward),
        "grad vmap": (lambda: func.grad(lambda x: np.sum(func.vmap(f)(x)))(X), 3 * X**2, "v"),
        "jit": (lambda: func.jit(f)(2.0), 8.0, "f"),
        "grad jit": (lambda: func.grad(func.jit(f))(2.0), 12.0, "f"),
        "jit grad": (lambda: func.jit(func.grad(f))(2.0), 12.0, "f"),
        "jit grad grad": (lambda: func.jit(func.grad(func.grad(f)))(2.0), 12.0, "f"),
        "jit vmap grad": (lambda: func.jit(func.vmap(func.grad(f)))(X), 3 * X**2, forward),
        "vmap jit": (lambda: func.vmap(func.jit(f))(X), X**3, "fv"),
        "vmap grad jit": (lambda: func.vmap(func.grad(func.jit(f)))(X), 3 * X**2, "f"),
    }
    for label, (road, expected, runs) in roads.items():
        log.clear()
        result = road()
        np.testing.assert_allclose(result, expected, err_msg=label)
        seen = "".join(log).replace("b", "")
        assert seen.count("f") <= 1 and seen.startswith(runs), (label, seen)


def test_derivatives_of_a_batch_rule_in_every_mode() -> None:
    """The rule differs from the function on purpose: every mode must differentiate what vmap computes."""
    double = func.custom_vmap(lambda x, y: 2 * x * y)
    double.def_vmap(lambda size, in_batched, x, y: (3 * x * y, True))
    y = 5.0
    for derivative in (func.jacfwd, func.jacrev, func.grad):
        for road in (
            lambda f: func.vmap(f, in_dims=(0, None)),
            lambda f: func.jit(func.vmap(f, in_dims=(0, None))),
            lambda f: func.vmap(func.jit(f), in_dims=(0, None)),
        ):
            dx, dy = road(derivative(double, argnums=(0, 1)))(X, y)
            np.testing.assert_allclose(dx, [15, 15])
            np.testing.assert_allclose(dy, 3 * X)
        np.testing.assert_allclose(func.vmap(derivative(func.jit(double)), in_dims=(0, None))(X, y), [15, 15])
        assert derivative(double)(1.0, y) == 10.0
        mixed = func.vmap(func.grad(derivative(double, argnums=1)), in_dims=(0, None))(X, y)
        np.testing.assert_allclose(mixed, [3, 3])

    def slope(x: Any) -> Any:
        return func.linearize(double, x, y)[1](1.0, 0.0)

    np.testing.assert_allclose(func.vmap(slope)(X), [15, 15])


def test_a_batch_rule_that_draws_numbers_is_loud() -> None:
    noisy = func.custom_vmap(lambda x: 2 * x)

    @noisy.def_vmap
    def rule(size: int, in_batched: Any, x: Any) -> Any:
        return x * np.random.rand(size), True

    value, slope = func.vmap(lambda x: func.jvp(noisy, (x,), (1.0,)))(X)
    np.testing.assert_allclose(value, slope * X)  # one run for both
    with pytest.raises(CustomRuleError, match="other outputs"):
        func.vmap(func.grad(noisy))(X)


def test_a_value_that_was_overwritten_leads_no_graph_back() -> None:
    """The gradient by it is zero whatever the rest is, as in PyTorch, so a second backward pass runs no rule for it."""
    log: list[str] = []

    class Halved(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 0.5

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            log.append("b")
            return ct * 0.5

    x = func.tensor(np.ones(3), requires_grad=True)
    y = x * 1.0
    z = Halved.apply(y)
    z.fill(0.5)
    (first,) = func.autograd.grad(np.sum(z * z), [y], create_graph=True)
    log.clear()
    np.sum(np.sin(first) + y).backward()
    assert log == [] and x.grad is not None
    np.testing.assert_array_equal(x.grad, np.ones(3))
