"""The reference's documented imperative interface, in our own numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import func
from func.autograd import Function, forward_ad, functional, grad, graph


def leaf(data: Any) -> Any:
    """A tensor that requires a gradient."""
    return func.tensor(data, requires_grad=True)


def numbers(value: Any) -> Any:
    """The array of a tensor."""
    return value.detach().numpy()


def test_enable_grad() -> None:
    x = leaf([1.0])
    with func.no_grad(), func.enable_grad():
        y = x * 2
    y.backward()
    assert y.requires_grad and numbers(x.grad).tolist() == [2.0]

    @func.enable_grad()
    def doubler(v: Any) -> Any:
        return v * 2

    @func.enable_grad()
    def tripler(v: Any) -> Any:
        return v * 3

    with func.no_grad():
        assert doubler(x).requires_grad and tripler(x).requires_grad


def test_set_grad_enabled() -> None:
    x = leaf([1.0])
    for is_train in (False, True):
        with func.set_grad_enabled(is_train):
            assert (x * 2).requires_grad is is_train
    switch = func.set_grad_enabled(False)
    try:
        assert not (x * 2).requires_grad
    finally:
        switch.__exit__()


def test_inference_mode() -> None:
    x = leaf(np.ones((1, 2, 3)))
    with func.inference_mode():
        y = x * x
    assert not y.requires_grad
    with pytest.raises(RuntimeError, match="Inference tensors do not track version counter"):
        _ = y._version

    @func.inference_mode()
    def f(v: Any) -> Any:
        return v * v

    assert not f(x).requires_grad


def test_save_for_backward() -> None:
    class Mixed(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any, z: int) -> Any:
            w = x * z
            out = x * y + y * z + w * y
            ctx.save_for_backward(x, y, w, out)
            ctx.z = z
            return out

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            x, y, w, _ = ctx.saved_tensors
            z = ctx.z
            return ct * (y + y * z), ct * (x + z + w), None

    a, b = leaf(1.0), leaf(2.0)
    Mixed.apply(a, b, 4).backward()
    assert (a.grad.item(), b.grad.item()) == (10.0, 9.0)


def test_mark_dirty() -> None:
    class Inplace(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            x += 1
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            return ct

    b = leaf(1.0) * leaf(1.0)
    Inplace.apply(b)
    assert b.item() == 2.0
    with pytest.raises(func.errors.LeafError):
        Inplace.apply(leaf(1.0))


def test_mark_non_differentiable() -> None:
    class Sort(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            index = np.argsort(x)
            ctx.mark_non_differentiable(index)
            ctx.save_for_backward(x, index)
            return np.sort(x), index

        @staticmethod
        def backward(ctx: Any, g1: Any, g2: Any) -> Any:
            x, index = ctx.saved_tensors
            out = np.zeros_like(x)
            np.add.at(out, index, g1)
            return out

    x = leaf([3.0, 1.0, 2.0])
    values, index = Sort.apply(x)
    (values * np.array([1.0, 10.0, 100.0])).sum().backward()
    assert numbers(x.grad).tolist() == [100.0, 1.0, 10.0] and list(np.asarray(index)) == [1, 2, 0]


def test_set_materialize_grads() -> None:
    class Simple(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1, x * 1

        @staticmethod
        def backward(ctx: Any, g1: Any, g2: Any) -> Any:
            return g1 + g2

    class Sparse(Simple):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(False)
            ctx.save_for_backward(x)
            return x * 1, x * 1

        @staticmethod
        def backward(ctx: Any, g1: Any, g2: Any) -> Any:
            assert g2 is None
            return g1

    for kind in (Simple, Sparse):
        a = leaf(1.0)
        kind.apply(a)[0].backward()
        assert a.grad.item() == 1.0


def test_detect_anomaly_names_the_forward_line() -> None:
    class Mine(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            raise RuntimeError("Some error in backward")

    inp = leaf(np.ones((3, 3)))
    with func.autograd.detect_anomaly():
        out = Mine.apply(inp).sum()
        with pytest.raises(RuntimeError, match="Some error in backward") as info:
            out.backward()
    assert "Mine.apply(inp)" in "".join(info.value.__notes__)


def test_register_hook() -> None:
    v = leaf([0.0, 0.0, 0.0])
    handle = v.register_hook(lambda g: g * 2)
    v.backward(np.array([1.0, 2.0, 3.0]))
    assert numbers(v.grad).tolist() == [2.0, 4.0, 6.0]
    handle.remove()


def test_post_accumulate_hook_as_an_optimizer() -> None:
    v = leaf([0.0, 0.0, 0.0])

    def step(p: Any) -> None:
        p -= 0.01 * p.grad

    handle = v.register_post_accumulate_grad_hook(step)
    v.backward(np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(numbers(v), [-0.01, -0.02, -0.03])
    handle.remove()


def test_node_hooks() -> None:
    a = leaf([0.0, 0.0, 0.0])
    b = a * 1.0
    handle = b.grad_fn.register_hook(lambda grad_inputs, grad_outputs: (grad_outputs[0] * 2,))
    b.sum().backward(retain_graph=True)
    assert numbers(a.grad).tolist() == [2.0, 2.0, 2.0]
    handle.remove()
    a.grad = None
    handle = b.grad_fn.register_prehook(lambda grads: (grads[0] * 2,))
    b.sum().backward(retain_graph=True)
    assert numbers(a.grad).tolist() == [2.0, 2.0, 2.0]
    handle.remove()
    a.grad = None
    b.sum().backward()
    assert numbers(a.grad).tolist() == [1.0, 1.0, 1.0]


def test_saved_tensors_hooks_see_each_operand() -> None:
    events: list[str] = []

    def pack(t: Any) -> Any:
        events.append("pack")
        return t

    def unpack(t: Any) -> Any:
        events.append("unpack")
        return t

    a = leaf(np.ones(5))
    b = leaf(np.ones(5) * 2)
    with graph.saved_tensors_hooks(pack, unpack):
        y = a * b
    y.sum().backward()
    assert events == ["pack", "pack", "unpack", "unpack"]
    assert numbers(a.grad).tolist() == [2.0] * 5


def test_register_multi_grad_hook() -> None:
    a, b, c, d = [leaf(np.ones(2)) for _ in range(4)]
    seen: list[Any] = []
    graph.register_multi_grad_hook((a, b, c, d), lambda grads: seen.append([g is not None for g in grads]))
    (a + b).sum().backward(retain_graph=True)
    (a + b).sum().backward(inputs=(a,), retain_graph=True)
    (a + b + c + d).sum().backward()
    assert seen == [[True, True, False, False], [True, False, False, False], [True, True, True, True]]


X2, Y2 = np.array([[0.1, 0.2], [0.3, 0.4]]), np.array([0.5, 0.6])


def test_functional_first_order() -> None:
    def exp_reducer(x: Any) -> Any:
        return np.exp(x).sum(axis=1)

    jacobian = functional.jacobian(exp_reducer, func.tensor(X2))
    expected = np.zeros((2, 2, 2))
    expected[[0, 1], [0, 1]] = np.exp(X2)
    np.testing.assert_allclose(jacobian.numpy(), expected)
    out, pulled = functional.vjp(exp_reducer, func.tensor(X2), func.tensor(Y2))
    np.testing.assert_allclose(pulled.numpy(), np.exp(X2) * Y2[:, None])
    out, pushed = functional.jvp(exp_reducer, func.tensor(X2), func.tensor(X2))
    np.testing.assert_allclose(pushed.numpy(), np.sum(np.exp(X2) * X2, axis=1))
    np.testing.assert_allclose(out.numpy(), np.exp(X2).sum(1))

    def exp_adder(x: Any, y: Any) -> Any:
        return 2 * np.exp(x) + 3 * y

    first, second = functional.jacobian(exp_adder, (func.tensor(Y2), func.tensor(Y2)))
    np.testing.assert_allclose(first.numpy(), np.diag(2 * np.exp(Y2)))
    np.testing.assert_allclose(second.numpy(), 3 * np.eye(2))


def test_functional_second_order() -> None:
    def pow_reducer(x: Any) -> Any:
        return (x**3).sum()

    hessian = functional.hessian(pow_reducer, func.tensor(X2)).numpy()
    np.testing.assert_allclose(hessian.reshape(4, 4), np.diag(6 * X2.ravel()))
    for product in (functional.hvp, functional.vhp):
        np.testing.assert_allclose(product(pow_reducer, func.tensor(X2), func.tensor(X2))[1].numpy(), 6 * X2 * X2)

    def pow_adder_reducer(x: Any, y: Any) -> Any:
        return (2 * x**2 + 3 * y**2).sum()

    blocks = functional.hessian(pow_adder_reducer, (func.tensor(Y2), func.tensor(Y2)))
    np.testing.assert_allclose(blocks[0][0].numpy(), 4 * np.eye(2))
    np.testing.assert_allclose(blocks[1][1].numpy(), 6 * np.eye(2))
    np.testing.assert_allclose(blocks[0][1].numpy(), np.zeros((2, 2)))


def test_forward_ad() -> None:
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(func.tensor([1.0]), func.tensor([2.0]))
        assert forward_ad.unpack_dual(dual).tangent.item() == 2.0
        assert forward_ad.unpack_dual(np.sin(dual)).tangent.item() == pytest.approx(2 * np.cos(1.0))
        assert forward_ad.unpack_dual(func.tensor([1.0])).tangent is None


def test_gradient_edges() -> None:
    x = leaf(2.0)
    y = np.exp(x)
    edge = graph.get_gradient_edge(y)
    z = y * y
    assert grad(z, edge)[0].item() == pytest.approx(2 * np.exp(2.0))


def test_batched_gradients() -> None:
    x = leaf([1.0, 2.0])
    (rows,) = grad(x**2, x, np.eye(2), is_grads_batched=True)
    assert numbers(rows).tolist() == [[2.0, 0.0], [0.0, 4.0]]
