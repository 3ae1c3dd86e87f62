"""The imperative interface: tensors, backward, grad, modes, hooks, Function, anomaly detection."""

from __future__ import annotations

import asyncio
import copy
import gc
import pickle
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import func
from func.autograd import Function, grad, graph, once_differentiable
from func.errors import (
    AnomalyError,
    ArgumentError,
    BackwardError,
    CustomRuleError,
    FreedGraphError,
    InferenceTensorError,
    LeafError,
    NotDifferentiableError,
    UnsupportedArrayError,
)

A = np.array([1.0, 2.0, 3.0])


def leaf(data: Any = A) -> Any:
    """A tensor that requires a gradient."""
    return func.tensor(data, requires_grad=True)


def test_a_tensor_is_an_array() -> None:
    x = func.tensor([[1, 2], [3, 4]], dtype=np.float32)
    assert x.shape == (2, 2) and x.dtype == np.float32 and not x.requires_grad and x.is_leaf and x.grad_fn is None
    np.testing.assert_array_equal(x.numpy(), [[1, 2], [3, 4]])
    np.testing.assert_array_equal((np.sin(x) @ x.T + 1).numpy(), np.sin(x.numpy()) @ x.numpy().T + 1)
    assert isinstance(x, func.Tensor) and isinstance(np.exp(x), func.Tensor)
    assert float(x.sum()) == 10.0 and x[1, 1].item() == 4.0 and [row.shape for row in x] == [(2,), (2,)]


def test_the_data_are_copied() -> None:
    data = A.copy()
    x = leaf(data)
    data[:] = 0
    np.testing.assert_array_equal(x.detach().numpy(), A)


def test_reprs() -> None:
    x = leaf()
    assert repr(x) == "tensor([1., 2., 3.], requires_grad=True)"
    assert repr(np.sin(x)).endswith("grad_fn=<SinBackward>)")
    assert repr(func.tensor(A)) == "tensor([1., 2., 3.])"
    assert repr(func.tensor(A, dtype=np.float32)) == "tensor([1., 2., 3.], dtype=float32)"


def test_leaf_rules() -> None:
    x = leaf()
    y = x * 2
    assert x.is_leaf and not y.is_leaf and y.requires_grad and y.grad_fn.name() == "MultiplyBackward"
    with pytest.raises(LeafError, match="leaf tensors only"):
        y.requires_grad_(False)
    with pytest.raises(TypeError, match="floating point"):
        func.tensor([1, 2], requires_grad=True)
    z = func.tensor(A).requires_grad_()
    (z * z).sum().backward()
    np.testing.assert_array_equal(z.grad.numpy(), 2 * A)
    assert not z.requires_grad_(False).requires_grad
    with pytest.raises(func.errors.TracerConversionError, match=r"detach\(\)\.numpy\(\)"):
        x.numpy()


def test_grad_accumulates_and_can_be_set() -> None:
    x = leaf()
    for _ in range(2):
        (x * x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 4 * A)
    held = x.grad
    x.sum().backward()
    np.testing.assert_array_equal(held.numpy(), 4 * A + 1)
    x.grad = None
    x.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.ones(3))
    x.grad[...] = 0.0
    x.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.ones(3))
    with pytest.raises(BackwardError, match="shape"):
        x.grad = np.ones(2)
    with pytest.raises(BackwardError, match="dtype"):
        x.grad = np.ones(3, np.float32)


def test_gradients_do_not_share_memory() -> None:
    x, y = leaf(), leaf()
    (x + y).sum().backward()
    x.grad *= 5
    np.testing.assert_array_equal(y.grad.numpy(), np.ones(3))


def test_in_place_writes_never_corrupt_a_gradient() -> None:
    x = leaf()
    y = x * 1
    z = y * y
    y *= 100
    y[0] = 7.0
    (z.sum() + y.sum()).backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2 * A + [0, 100, 100])


def test_leaves_are_written_under_no_grad_only() -> None:
    x = leaf()
    with pytest.raises(LeafError, match="no_grad"):
        x += 1
    with pytest.raises(LeafError, match="no_grad"):
        x[0] = 1.0
    loss = (x * x).sum()
    with func.no_grad():
        x -= 0.5
        x[0] = 9.0
    assert x.is_leaf and x.requires_grad and x._version == 2
    loss.backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2 * A)
    np.testing.assert_array_equal(x.detach().numpy(), [9.0, 1.5, 2.5])
    scalar = leaf(1.0)
    with func.no_grad():
        scalar -= 0.25
    assert scalar.is_leaf and scalar.item() == 0.75


def test_detach_and_data() -> None:
    x = leaf()
    d = x.detach()
    assert not d.requires_grad
    d[0] = 5.0
    assert x[0].item() == 5.0 and x.is_leaf
    x.data *= 2
    np.testing.assert_array_equal(x.detach().numpy(), [10.0, 4.0, 6.0])
    x.data = A
    y = x * 2
    y.detach_()
    assert y.is_leaf and not y.requires_grad
    with pytest.raises(BackwardError, match="dtype"):
        x.data = np.ones(3, np.float32)


def test_detach_holds_under_transforms() -> None:
    assert func.grad(lambda x: np.sum(x.detach() * x))(A).tolist() == A.tolist()
    x = leaf()
    func.autograd.checkpoint(lambda z: z.detach() * z, x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), A)
    with func.autograd.forward_ad.dual_level():
        dual = func.autograd.forward_ad.make_dual(func.tensor(A), func.tensor(np.ones(3)))
        y = func.tensor(dual, requires_grad=True)
        (y**3).sum().backward()
        slope = func.autograd.forward_ad.unpack_dual(y.grad)
        np.testing.assert_array_equal(slope.tangent.numpy(), 6 * A)


def test_backward_against_func_grad() -> None:
    def loss(x: Any) -> Any:
        y = np.tanh(x[:2] * x[1:])
        z = np.linalg.solve(np.diag(x) + 1, np.ones(3))
        return np.sum(y**2) + np.logaddexp.reduce(z) + np.max(x) * np.where(x > 1.5, x, 0.0).mean()

    x = leaf()
    loss(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), func.grad(loss)(A))
    first = grad(loss(x), x, create_graph=True)[0]
    rows = [grad(first[i], x, retain_graph=True)[0].numpy() for i in range(3)]
    np.testing.assert_allclose(rows, func.hessian(loss)(A), atol=1e-12)
    third = grad(grad(loss(x), x, create_graph=True)[0].sum(), x, create_graph=True)[0]
    assert third.requires_grad


def test_seeds() -> None:
    x = leaf()
    with pytest.raises(BackwardError, match="implicitly created only for scalar outputs"):
        (x * 2).backward()
    with pytest.raises(BackwardError, match=r"shape of \(2,\) and output\[0\] has a shape of \(3,\)"):
        (x * 2).backward(np.ones(2))
    with pytest.raises(BackwardError, match="real scalar outputs"):
        (x.sum() * 1j).backward()
    (x * 2).backward(func.tensor([1.0, 10.0, 100.0]))
    np.testing.assert_array_equal(x.grad.numpy(), [2, 20, 200])
    x.grad = None
    func.backward([x * 2, x.sum()], [np.ones(3), None])
    np.testing.assert_array_equal(x.grad.numpy(), [3, 3, 3])
    x.grad = None
    x[:1].backward()
    np.testing.assert_array_equal(x.grad.numpy(), [1, 0, 0])


def test_freed_graphs() -> None:
    x = leaf()
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(FreedGraphError, match="retain_graph=True"):
        y.backward()
    np.testing.assert_array_equal(x.grad.numpy(), 4 * A)
    z = (x + 1).sum()  # nothing is saved, so nothing is missed
    z.backward()
    z.backward()


def test_no_graph() -> None:
    with pytest.raises(BackwardError, match="does not require grad and does not have a grad_fn"):
        func.tensor(A).sum().backward()
    with pytest.raises(TypeError, match=r"func\.tensor"):
        func.backward(np.ones(3))


def test_inputs_of_backward() -> None:
    x, y = leaf(), leaf()
    z = x * y
    z.sum().backward(inputs=[x], retain_graph=True)
    assert y.grad is None
    z.sum().backward(inputs={"y": y}, retain_graph=True)
    np.testing.assert_array_equal(y.grad.numpy(), A)
    w = z * 2
    w.sum().backward(inputs=[z, graph.get_gradient_edge(x)])
    np.testing.assert_array_equal(z.grad.numpy(), [2, 2, 2])
    np.testing.assert_array_equal(x.grad.numpy(), A + 2 * A)
    with pytest.raises(BackwardError, match="cannot be empty"):
        x.sum().backward(inputs=[])


def test_grad_arguments() -> None:
    x, y = leaf(), leaf()
    z = (x * x).sum()
    with pytest.raises(BackwardError, match=r"not have been used in the graph: inputs\[1\]"):
        grad(z, [x, y], retain_graph=True)
    assert grad(z, [x, y], allow_unused=True, retain_graph=True)[1] is None
    np.testing.assert_array_equal(grad(z, [x, y], materialize_grads=True, retain_graph=True)[1].numpy(), np.zeros(3))
    with pytest.raises(ArgumentError, match="materialize_grads"):
        grad(z, x, allow_unused=False, materialize_grads=True)
    with pytest.raises(BackwardError, match="does not require grad"):
        grad(z, func.tensor(A))
    by_name = grad((x * y).sum(), {"a": x, "b": y})
    assert set(by_name) == {"a", "b"} and x.grad is None
    rows = grad(x * x, x, np.eye(3), is_grads_batched=True)[0]
    np.testing.assert_array_equal(rows.numpy(), np.diag(2 * A))


def test_integer_results_leave_the_graph() -> None:
    x = leaf()
    assert bool(x[0] < x[1]) and int(np.argmax(x)) == 2
    np.testing.assert_array_equal(grad(x[np.argsort(-x)][0], x)[0].numpy(), [0, 0, 1])


def test_create_graph_does_not_leak() -> None:
    gc.disable()
    try:
        x = leaf()
        (x**3).sum().backward(create_graph=True)
        assert x.grad.requires_grad
        watched = weakref.ref(x)
        del x
        assert watched() is None
    finally:
        gc.enable()


def test_a_freed_graph_is_freed_at_once() -> None:
    x = leaf(np.ones(1000))
    y = np.sin(x)
    array = weakref.ref(y._value)
    z = (y * y).sum()
    del y
    assert array() is not None
    z.backward()
    assert array() is None


def test_a_long_chain() -> None:
    x = leaf(1.0)
    y = x
    for _ in range(20_000):
        y = y + 0.0001 * x
    y.backward()
    assert x.grad.item() == pytest.approx(3.0)


def test_modes_nest() -> None:
    x = leaf()
    with func.no_grad():
        assert not func.is_grad_enabled() and not (x * 2).requires_grad
        with func.enable_grad():
            assert (x * 2).requires_grad
        with func.set_grad_enabled(True):
            assert (x * 2).requires_grad
        assert not (x * 2).requires_grad and (x * 2).is_leaf
    assert func.is_grad_enabled()
    switch = func.set_grad_enabled(False)
    assert not func.is_grad_enabled()
    switch.__exit__()
    assert func.is_grad_enabled()


def test_modes_decorate() -> None:
    x = leaf()

    @func.no_grad()
    def plain() -> Any:
        return x * 2

    @func.no_grad
    def bare() -> Any:
        return x * 2

    @func.no_grad()
    def generator() -> Iterator[Any]:
        received = yield (x * 2).requires_grad
        yield (received, (x * 2).requires_grad)

    @func.no_grad()
    async def coroutine() -> bool:
        await asyncio.sleep(0)
        return bool((x * 2).requires_grad)

    assert not plain().requires_grad and not bare().requires_grad
    steps = generator()
    assert next(steps) is False and (x * 2).requires_grad
    assert steps.send("hello") == ("hello", False)

    async def both() -> list[Any]:
        async def outside() -> bool:
            await asyncio.sleep(0)
            return bool((x * 2).requires_grad)

        return list(await asyncio.gather(coroutine(), outside()))

    assert asyncio.run(both()) == [False, True]
    with pytest.raises(ZeroDivisionError), func.no_grad():
        _ = 1 / 0
    assert func.is_grad_enabled()


def test_modes_are_of_a_thread() -> None:
    seen: list[bool] = []
    with func.no_grad():
        thread = threading.Thread(target=lambda: seen.append(func.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_no_grad_and_transforms() -> None:
    def inner(x: Any) -> Any:
        with func.no_grad():
            c = x**3
        return x**2 - c

    assert func.grad(inner)(2.0) == 4.0
    with func.no_grad():
        assert func.grad(lambda x: x**2)(2.0) == 4.0


def test_inference_mode() -> None:
    x = leaf()
    with func.inference_mode():
        y = x * 2
        assert func.autograd.is_inference_mode_enabled()
    assert y.is_inference() and not y.requires_grad
    with pytest.raises(InferenceTensorError, match="inference mode"):
        x * y
    with pytest.raises(BackwardError, match="inference mode"):
        y.requires_grad_()
    assert not y.clone().is_inference() and (x * y.clone()).requires_grad
    with func.inference_mode(), func.inference_mode(False):
        assert (x * 2).requires_grad


def test_tensor_hooks() -> None:
    x = leaf()
    y = x * 3
    order: list[str] = []
    z = (y * y).sum()
    y.register_hook(lambda g: order.append("first"))  # type: ignore[func-returns-value]
    handle = y.register_hook(lambda g: (order.append("second"), g * 10)[1])  # type: ignore[func-returns-value]
    x.register_hook(lambda g: (order.append("leaf"), g + 1)[1])  # type: ignore[func-returns-value]
    z.backward(retain_graph=True)
    assert order == ["first", "second", "leaf"]
    np.testing.assert_array_equal(x.grad.numpy(), 18 * 10 * A + 1)
    handle.remove()
    x.grad = None
    z.backward()
    np.testing.assert_array_equal(x.grad.numpy(), 18 * A + 1)
    with pytest.raises(BackwardError, match="does not require a gradient"):
        func.tensor(A).register_hook(print)
    with pytest.raises(RuntimeError, match="changed the shape"):
        w = leaf()
        w.register_hook(lambda g: g[:2])
        w.sum().backward()


def test_retain_grad_and_post_accumulate() -> None:
    x = leaf()
    y = x * 2
    y.retain_grad()
    seen: list[Any] = []
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.numpy().copy()))
    (y * y).sum().backward()
    assert y.retains_grad
    np.testing.assert_array_equal(y.grad.numpy(), 4 * A)
    np.testing.assert_array_equal(seen[0], 8 * A)
    with pytest.raises(LeafError, match="leaf tensors only"):
        y.register_post_accumulate_grad_hook(print)


def test_node_hooks_and_edges() -> None:
    x = leaf()
    y = np.sin(x)
    z = (y * 2).sum()
    node = z.grad_fn
    assert node.name() == "SumBackward" and node.next_functions[0][0].name() == "MultiplyBackward"
    assert y.grad_fn.next_functions[0][0].name() == "AccumulateGrad" and y.grad_fn == y.grad_fn
    seen: list[Any] = []
    y.grad_fn.register_prehook(lambda outs: seen.append("pre"))
    y.grad_fn.register_hook(lambda ins, outs: (seen.append("post"), (ins[0] * 0 + 5.0,))[1])  # type: ignore[func-returns-value]
    z.backward()
    assert seen == ["pre", "post"]
    np.testing.assert_array_equal(x.grad.numpy(), [5, 5, 5])
    w, v = np.linalg.eigh(leaf(np.diag(A)))
    assert v.grad_fn.name() == "EighBackward" and v.output_nr == 1 and w.output_nr == 0


def test_multi_grad_hooks() -> None:
    x, y = leaf(), leaf()
    everything: list[Any] = []
    anything: list[Any] = []
    with graph.register_multi_grad_hook([x, y], lambda grads: everything.append([g is None for g in grads])):
        handle = graph.register_multi_grad_hook([x, y], lambda g: anything.append(1), mode="any")
        (x * y).sum().backward()
        x.sum().backward()
        handle.remove()
    assert everything == [[False, False], [False, True]] and len(anything) == 2
    (x * y).sum().backward()
    assert len(everything) == 2
    with pytest.raises(ValueError, match="'all' or 'any'"):
        graph.register_multi_grad_hook([x], print, mode="some")


def test_multi_grad_hooks_of_two_threads_see_their_own_backward() -> None:
    x, y = leaf(), leaf()  # backward reaches y first
    barrier = threading.Barrier(2, timeout=20)
    calls: dict[int, list[Any]] = {}

    def note(grads: Any) -> None:
        calls.setdefault(threading.get_ident(), []).append([g.numpy() for g in grads])

    def meet(g: Any) -> None:
        barrier.wait()

    def gradients(scale: float) -> tuple[int, Any]:
        return threading.get_ident(), [g.numpy() for g in grad((x * y * scale).sum(), [x, y])]

    y.register_hook(meet)  # both threads are in their backward, neither has noted y
    graph.register_multi_grad_hook([x, y], note)
    y.register_hook(meet)  # both have noted y, neither x
    with ThreadPoolExecutor(2) as pool:
        results = [future.result() for future in [pool.submit(gradients, 2.0), pool.submit(gradients, 3.0)]]
    for scale, (thread, expected) in zip((2.0, 3.0), results, strict=True):
        np.testing.assert_array_equal(expected, [scale * A, scale * A])
        np.testing.assert_array_equal(calls.pop(thread), [expected])
    assert not calls


def test_a_backward_inside_a_hook_has_its_own_multi_grad_hooks() -> None:
    x, y = leaf(), leaf()
    calls: list[Any] = []
    totals = [x.sum()]

    def backward_once(g: Any) -> None:
        if totals:
            grad(totals.pop(), x)

    graph.register_multi_grad_hook([x, y], lambda grads: calls.append([g is not None for g in grads]))
    y.register_hook(backward_once)
    grad((x * y).sum(), [x, y])
    assert calls == [[True, False], [True, True]]


def test_saved_tensors_hooks() -> None:
    packed: list[Any] = []

    def pack(t: Any) -> Any:
        packed.append(t.shape)
        return t.numpy().astype(np.float16)

    x = leaf()
    with graph.saved_tensors_hooks(pack, lambda a: func.tensor(a, dtype=np.float64)):
        y = np.tanh(x) * x
    y.sum().backward()
    assert packed
    np.testing.assert_allclose(x.grad.numpy(), func.grad(lambda z: np.sum(np.tanh(z) * z))(A), rtol=1e-2)
    with (
        graph.disable_saved_tensors_hooks("not here"),
        pytest.raises(RuntimeError, match="not here"),
        graph.saved_tensors_hooks(pack, func.tensor),
    ):
        pass
    with pytest.warns(UserWarning, match="host memory"), graph.save_on_cpu():
        z = x * x
    z.sum().backward()


@pytest.mark.parametrize("where", ["tensor", "post", "function"])
def test_failures_change_nothing(where: str) -> None:
    def fail(*args: Any) -> Any:
        raise ZeroDivisionError

    class Broken(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        backward = staticmethod(fail)

    x, y = leaf(), leaf()
    y.grad = np.ones(3)
    z = (x * y).sum()
    if where == "tensor":
        x.register_hook(fail)
    elif where == "post":
        x.register_post_accumulate_grad_hook(fail)
    else:
        z = z + Broken.apply(x).sum()
    with pytest.raises(ZeroDivisionError):
        z.backward()
    assert x.grad is None and func.is_grad_enabled()
    np.testing.assert_array_equal(y.grad.numpy(), np.ones(3))


class OldCube(Function):
    """forward with a ctx."""

    @staticmethod
    def forward(ctx: Any, x: Any, scale: float) -> Any:
        ctx.scale = scale
        ctx.save_for_backward(x)
        return scale * x**3

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        (x,) = ctx.saved_tensors
        assert ctx.needs_input_grad[1] is False
        return 3 * ctx.scale * x**2 * ct, None


class NewCube(Function):
    """forward without one, with a jvp and a vmap rule."""

    @staticmethod
    def forward(x: Any, scale: float) -> Any:
        return scale * x**3

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.scale = inputs[1]
        ctx.save_for_backward(inputs[0])
        ctx.save_for_forward(inputs[0])

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * ctx.scale * x**2 * ct, None

    @staticmethod
    def jvp(ctx: Any, dx: Any, _: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * ctx.scale * x**2 * dx

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Any, scale: float) -> Any:
        assert info.batch_size == x.shape[in_dims[0]]
        return NewCube.apply(x, scale), in_dims[0]


@pytest.mark.parametrize("cube", [OldCube, NewCube])
def test_function_under_everything(cube: Any) -> None:
    x = leaf()
    y = cube.apply(x, 2.0)
    assert y.grad_fn.name() == f"{cube.__name__}Backward"
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 6 * A**2)
    (first,) = grad(cube.apply(x, 2.0).sum(), x, create_graph=True)
    np.testing.assert_allclose(grad(first.sum(), x)[0].numpy(), 12 * A)

    def f(z: Any) -> Any:
        return np.sum(cube.apply(z, 2.0))

    np.testing.assert_allclose(func.grad(f)(A), 6 * A**2)
    np.testing.assert_allclose(func.jvp(f, (A,), (A,))[1], np.sum(6 * A**3))
    np.testing.assert_allclose(func.hessian(f)(A), np.diag(12 * A))
    np.testing.assert_allclose(func.vmap(lambda z: cube.apply(z, 2.0))(A), 2 * A**3)
    np.testing.assert_allclose(func.vmap(func.grad(f))(np.stack([A, 2 * A])), [6 * A**2, 24 * A**2])
    np.testing.assert_allclose(func.grad(func.checkpoint(f))(A), 6 * A**2)
    np.testing.assert_array_equal(cube.apply(A, 2.0), 2 * A**3)


def test_function_options() -> None:
    class Options(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(False)
            order = np.argsort(x)
            top = x * 2
            fixed = x * 3
            ctx.mark_non_differentiable(fixed)
            return top, fixed, order

        @staticmethod
        def backward(ctx: Any, top: Any, fixed: Any, order: Any) -> Any:
            assert fixed is None and order is None
            return None if top is None else top * 2

    x = leaf()
    top, fixed, order = Options.apply(x)
    assert not fixed.requires_grad and np.asarray(order).dtype.kind == "i"
    top.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2, 2, 2])


def test_function_mark_dirty() -> None:
    class Doubled(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            x *= 2
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            return 2 * ct

    x = leaf()
    y = x * 1
    z = Doubled.apply(y)
    assert z is y
    np.testing.assert_array_equal(y.detach().numpy(), 2 * A)
    (y * y).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 8 * A)


def test_function_refusals() -> None:
    class Short(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return x * y

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            return ct

    class Mute(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

    class Twice(NewCube):
        generate_vmap_rule = True

    class Named(NewCube):
        @staticmethod
        def vjp(ctx: Any, ct: Any) -> Any:
            return ct

    with pytest.raises(CustomRuleError, match="both backward and vjp"):
        Named.apply(leaf(), 1.0)
    with pytest.raises(CustomRuleError, match=r"incorrect number of gradients \(expected 2, got 1\)"):
        Short.apply(leaf(), leaf()).sum().backward()
    with pytest.raises(NotImplementedError, match="backward or vjp"):
        Mute.apply(leaf()).sum().backward()
    with pytest.raises(CustomRuleError, match="both a vmap rule"):
        Twice.apply(leaf(), 1.0)


def test_rules_of_func_hold_for_tensors() -> None:
    @func.custom_vjp
    def odd(x: Any) -> Any:
        return x * 2

    odd.defvjp(lambda x: (x * 2, None), lambda _, ct: (ct * 7,))

    @func.custom_jvp
    def even(x: Any) -> Any:
        return x * 2

    even.defjvp(lambda primals, tangents: (primals[0] * 2, tangents[0] * 5))
    for rule, slope in ((odd, 7), (even, 5)):
        x = leaf()
        rule(x).sum().backward()
        np.testing.assert_array_equal(x.grad.numpy(), [slope] * 3)


def test_once_differentiable() -> None:
    class Square(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, ct: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 2 * ct * x

    x = leaf()
    (first,) = grad(Square.apply(x).sum(), x, create_graph=True)
    np.testing.assert_array_equal(first.detach().numpy(), 2 * A)
    np.testing.assert_array_equal(func.grad(lambda z: np.sum(Square.apply(z)))(A), 2 * A)
    with pytest.raises(NotDifferentiableError, match="once_differentiable"):
        grad(first.sum(), x)
    with pytest.raises(NotDifferentiableError, match="once_differentiable"):
        func.hessian(lambda z: np.sum(Square.apply(z)))(A)


def test_anomalies_forward_and_backward() -> None:
    x = leaf([0.0, 4.0])
    with (
        func.autograd.detect_anomaly(),
        np.errstate(divide="ignore"),
        pytest.raises(AnomalyError, match="the result of log is -inf at index") as info,
    ):
        np.log(x)
    assert "test_autograd.py" in str(info.value) and "operand 0" in str(info.value)
    with func.autograd.detect_anomaly():
        y = np.sqrt(x)
        with pytest.raises(AnomalyError, match="SqrtBackward returned") as info:
            y.sum().backward()
    assert "y = np.sqrt(x)" in str(info.value) and "(0,)" in str(info.value)
    assert not func.autograd.is_anomaly_enabled()
    with func.autograd.set_detect_anomaly(True, check_nan=False):
        z = np.log(leaf([1.0]))
    assert "np.log" in str(z.grad_fn.metadata["line"])
    with pytest.raises(TypeError, match="does not support item assignment"):
        z.grad_fn.metadata["note"] = 1


def cubes(x: Any) -> Any:
    """The reference: the sum of 3 x² · x, whose parts the inner features compute."""
    return np.sum(3 * x**2 * x)


def by_backward(x: Any) -> Any:
    y = func.tensor(x, requires_grad=True)
    (y**3).sum().backward()
    return np.sum(y.grad * x)


def by_grad(x: Any) -> Any:
    y = func.tensor(x, requires_grad=True)
    (slope,) = grad((y**3).sum(), y)
    return np.sum(slope * x)


def by_requires_grad_(x: Any) -> Any:
    y = x * 1
    y.requires_grad_() if isinstance(y, func.Tensor) else None
    y = y if isinstance(y, func.Tensor) else func.tensor(y, requires_grad=True)
    (y**3).sum().backward()
    return np.sum(y.grad * x)


def by_checkpoint(x: Any) -> Any:
    return func.checkpoint(cubes)(x)


def by_saved_hooks(x: Any) -> Any:
    y = func.tensor(x, requires_grad=True)
    with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        z = (y**3).sum()
    z.backward()
    return np.sum(y.grad * x)


def by_hook(x: Any) -> Any:
    y = func.tensor(x, requires_grad=True)
    y.register_hook(lambda g: g * 3)
    (y**3 / 3).sum().backward()
    return np.sum(y.grad * x)


def by_no_grad(x: Any) -> Any:
    with func.no_grad():
        unused = np.sum(x**5)
    return cubes(x) + 0 * np.sum(func.stop_gradient(unused))


def by_old_function(x: Any) -> Any:
    return np.sum(OldCube.apply(x, 3.0))


def by_new_function(x: Any) -> Any:
    return np.sum(NewCube.apply(x, 3.0))


def by_anomaly(x: Any) -> Any:
    with func.autograd.detect_anomaly():
        return by_backward(x)


FEATURES: list[Callable[[Any], Any]] = [
    by_backward,
    by_grad,
    by_requires_grad_,
    by_checkpoint,
    by_saved_hooks,
    by_hook,
    by_no_grad,
    by_old_function,
    by_new_function,
    by_anomaly,
]
TRANSFORMS: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "grad": lambda f: func.grad(f)(A),
    "vjp": lambda f: func.vjp(f, A)[1](2.0)[0],
    "jvp": lambda f: func.jvp(f, (A,), (A[::-1],))[1],
    "vmap": lambda f: func.vmap(f)(np.stack([A, -A])),
    "jacrev": lambda f: func.jacrev(f)(A),
    "jacfwd": lambda f: func.jacfwd(f)(A),
    "hessian": lambda f: func.hessian(f)(A),
    "checkpoint": lambda f: func.grad(func.checkpoint(f))(A),
    "vmap of grad": lambda f: func.vmap(func.grad(f))(np.stack([A, -A])),
    "grad of grad": lambda f: func.grad(lambda x: np.sum(func.grad(f)(x)))(A),
}


@pytest.mark.parametrize("feature", FEATURES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_every_feature_inside_every_transform(transform: str, feature: Callable[[Any], Any]) -> None:
    np.testing.assert_allclose(TRANSFORMS[transform](feature), TRANSFORMS[transform](cubes), rtol=1e-10)


OUTSIDE: dict[str, Callable[[Any], Any]] = {
    "grad": lambda x: func.grad(cubes)(x),
    "vjp": lambda x: func.vjp(cubes, x)[1](1.0)[0],
    "jvp": lambda x: func.jvp(cubes, (x,), (np.ones(3),))[1],
    "vmap": lambda x: func.vmap(lambda z: z**3)(x),
    "jacrev": lambda x: func.jacrev(lambda z: z**3)(x),
    "jacfwd": lambda x: func.jacfwd(lambda z: z**3)(x),
    "hessian": lambda x: func.hessian(cubes)(x),
    "checkpoint": lambda x: func.checkpoint(cubes)(x),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_transforms_of_tensors_backpropagate_further(name: str) -> None:
    x = leaf()
    out = OUTSIDE[name](x)
    assert isinstance(out, func.Tensor) and out.requires_grad
    out.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), func.grad(lambda z: np.sum(OUTSIDE[name](z)))(A))


def test_a_tensor_may_leave_its_transform() -> None:
    def f(x: Any) -> Any:
        return (func.tensor(x, requires_grad=True) ** 3).sum()

    def g(x: Any) -> Any:
        y = func.tensor(x, requires_grad=True)
        (y**3).sum().backward(create_graph=True)
        return y.grad.sum()

    np.testing.assert_allclose(func.grad(f)(A), 3 * A**2)
    np.testing.assert_allclose(func.vjp(f, A)[1](1.0)[0], 3 * A**2)
    np.testing.assert_allclose(func.jvp(f, (A,), (A,))[1], np.sum(3 * A**3))
    np.testing.assert_allclose(func.vmap(f)(np.stack([A, -A])), [36, -36])
    np.testing.assert_allclose(func.hessian(f)(A), np.diag(6 * A))
    np.testing.assert_allclose(func.jacrev(f)(A), 3 * A**2)
    np.testing.assert_allclose(func.grad(g)(A), 6 * A)
    for h, derivative in ((f, 3 * A**2), (g, 6 * A)):
        np.testing.assert_allclose(func.grad(func.checkpoint(h))(A), derivative)
        np.testing.assert_allclose(func.jacfwd(func.checkpoint(h))(A), derivative)


def test_numbers_are_read_on_purpose_only() -> None:
    import copy
    import math
    import pickle

    x = leaf()
    plain = np.zeros(3)
    with pytest.raises(func.errors.TracerConversionError, match=r"write np\.sin"):
        math.sin(x[0])
    with pytest.raises((func.errors.TracerConversionError, ValueError)):
        plain[0] = x[0]
    with pytest.raises(func.errors.TracerConversionError, match=r"x\.item\(\) of a tensor"):
        float(x[0])
    assert float(x[0].detach()) == x[0].item() == 1.0
    np.testing.assert_array_equal(np.asarray(x.detach()), A)
    np.testing.assert_array_equal(np.arange(4.0)[func.tensor([1, 2])], [1, 2])
    for twin in (pickle.loads(pickle.dumps(x)), copy.deepcopy(func.tensor(A))):
        np.testing.assert_array_equal(twin.detach().numpy(), A)
    with pytest.raises(TypeError, match="without history"):
        pickle.dumps(x * 2)
    assert func.grad(lambda v: v * v.detach())(3.0) == 3.0


def test_gradients_of_outer_leaves_are_refused_inside() -> None:
    w = leaf()

    def f(x: Any) -> Any:
        np.sum(w * x).backward()
        return np.sum(w.grad)

    with pytest.raises(BackwardError, match="made inside the running transform"):
        func.grad(f)(A)


def test_prehooks_may_replace_the_gradient() -> None:
    x = func.tensor(2.0, requires_grad=True)
    y = np.sin(x)
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 10,))
    (y * 3).backward()
    np.testing.assert_allclose(x.grad.numpy(), 30 * np.cos(2.0))


def _with_hook(kind: str, hook: Callable[[Any], Any]) -> Any:
    """The gradient of sum(2 x) where a hook of this kind replaces it; hooks of nodes return a tuple."""
    x = leaf()
    y = x * 2
    if kind == "tensor":
        y.register_hook(hook)
    elif kind == "leaf":
        x.register_hook(hook)
    elif kind == "prehook":
        y.grad_fn.register_prehook(lambda grads: (hook(grads[0]),))
    elif kind == "leaf's prehook":
        y.grad_fn.next_functions[0][0].register_prehook(lambda grads: (hook(grads[0]),))
    else:
        y.grad_fn.register_hook(lambda ins, outs: (hook(ins[0]), *ins[1:]))
    y.sum().backward()
    return x.grad


HOOKS = ("tensor", "leaf", "prehook", "leaf's prehook", "hook")


@pytest.mark.parametrize("kind", HOOKS)
def test_what_hooks_return_has_the_shape_and_dtype_of_the_gradient(kind: str) -> None:
    for number in ([1, 2, 3], np.array([1, 2, 3]), np.array([1, 2, 3], dtype=np.float32)):
        gradient = _with_hook(kind, lambda g: number)  # noqa: B023
        assert gradient.dtype == np.float64 and gradient.tolist() in ([1.0, 2.0, 3.0], [2.0, 4.0, 6.0])
    with pytest.raises(BackwardError, match="complex128 in place of float64"):
        _with_hook(kind, lambda g: g * 1j)
    with pytest.raises(BackwardError, match="changed the shape"):
        _with_hook(kind, lambda g: g[:2])


@pytest.mark.parametrize(
    ("kind", "result"),
    [
        ("prehook", ()),
        ("prehook", (A, A)),
        ("hook", ()),
        ("hook", (A,)),
        ("hook", A),
        ("hook", (A, A, A)),
    ],
)
def test_hooks_of_nodes_return_a_gradient_for_each(kind: str, result: Any) -> None:
    y = leaf() * leaf()
    register = y.grad_fn.register_prehook if kind == "prehook" else y.grad_fn.register_hook
    register(lambda *_: result)
    with pytest.raises(BackwardError, match=r"returned . gradients in place of"):
        y.sum().backward()


def test_hooks_of_nodes_and_missing_gradients() -> None:
    x = leaf()
    y = x * 2
    y.grad_fn.register_prehook(lambda grads: (None,))
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 0.0]
    y = x * 2
    y.grad_fn.register_hook(lambda ins, outs: (ins[0], ins[0]))
    with pytest.raises(BackwardError, match="in place of None"):
        y.sum().backward()


@pytest.mark.parametrize("create_graph", [False, True])
def test_hooks_may_write_to_the_gradient(create_graph: bool) -> None:
    def double(g: Any) -> None:
        g *= 2

    x, z = leaf(), leaf()
    x.register_hook(double)
    y = x + z
    y.register_hook(double)
    y.sum().backward(create_graph=create_graph)
    assert x.grad.tolist() == [4.0, 4.0, 4.0] and z.grad.tolist() == [2.0, 2.0, 2.0]


def test_post_accumulate_hooks_return_nothing() -> None:
    x = leaf()
    x.register_post_accumulate_grad_hook(lambda t: t.grad * 2)
    with pytest.raises(BackwardError, match=r"must write to tensor\.grad"):
        x.sum().backward()
    assert x.grad is None


@pytest.mark.parametrize(
    ("unpack", "text"),
    [
        (lambda t: t[:1], "changed the shape"),
        (lambda t: t * 1j, "complex128 in place of float64"),
        (lambda t: None, "NoneType is not an array"),
    ],
)
def test_what_unpack_hooks_return(unpack: Callable[[Any], Any], text: str) -> None:
    x = leaf()
    with graph.saved_tensors_hooks(lambda t: t, unpack):
        y = np.exp(x)
    with pytest.raises((BackwardError, UnsupportedArrayError), match=text):
        y.sum().backward()


def test_unpacked_values_have_their_dtype() -> None:
    x = leaf()
    with graph.saved_tensors_hooks(lambda t: t.astype(np.float16), lambda t: t):
        y = x * x
    y.sum().backward()
    assert x.grad.dtype == np.float64 and x.grad.tolist() == [2.0, 4.0, 6.0]


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (lambda t: t, "1 tangents for 2 outputs"),
        (lambda t: (t, t, t), "3 tangents for 2 outputs"),
        (lambda t: (t[:1], t), r"shape \(1,\)"),
        (lambda t: (t * 1j, t), "complex128"),
        (lambda t: (1.0, t), r"shape \(\)"),
    ],
)
def test_function_whose_jvp_returns_something_else(result: Callable[[Any], Any], text: str) -> None:
    class Two(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2, x * 3

        @staticmethod
        def jvp(ctx: Any, tangent: Any) -> Any:
            return result(tangent)

    with pytest.raises(CustomRuleError, match=text):
        func.jvp(Two.apply, (A,), (A,))


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (lambda x: x, "must return a pair"),
        (lambda x: (x, 1), "out_dims 1 for an output"),
        (lambda x: (x[:2], 0), "the batch of 3"),
        (lambda x: (x, 5), "out_dims 5"),
        (lambda x: (x, "a"), "out_dims 'a'"),
        (lambda x: ((x, x), (0,)), "2 outputs and 1 out_dims"),
    ],
)
def test_function_whose_vmap_returns_something_else(result: Callable[[Any], Any], text: str) -> None:
    class Batched(Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x * 2

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any) -> Any:
            return result(x)

    with pytest.raises(CustomRuleError, match=text):
        func.vmap(Batched.apply)(np.ones((3, 4)))


def test_deleted_and_impossible_gradients() -> None:
    x = leaf()
    x.sum().backward()
    del x.grad
    assert x.grad is None
    with pytest.raises(BackwardError, match="its own gradient"):
        x.grad = x


def test_a_retained_gradient_is_not_changed_later() -> None:
    x = leaf()
    y = x * 2
    y.retain_grad()
    y.sum().backward(retain_graph=True)
    first = y.grad
    y.sum().backward()
    assert first.tolist() == [1.0, 1.0, 1.0] and y.grad.tolist() == [2.0, 2.0, 2.0]


def test_tensors_come_in_any_order_of_values() -> None:
    params = {"w": leaf(), "b": leaf()}
    expected = [2 * A, 3 * A]
    for values in (params.values(), iter([params["w"], params["b"]]), (p for p in params.values())):
        loss = (params["w"] ** 2).sum() * 1 + 1.5 * (params["b"] ** 2).sum()
        for gradient, value in zip(grad(loss, values), expected, strict=True):
            assert gradient.tolist() == value.tolist()
    seen: list[Any] = []
    graph.register_multi_grad_hook(iter([*params.values()]), seen.append)  # type: ignore[arg-type]
    (params["w"] * params["b"]).sum().backward(inputs=params.values())
    assert [len(gradients) for gradients in seen] == [2]
    assert params["w"].grad.tolist() == A.tolist()


@pytest.mark.parametrize("grad_outputs", [None, 1.0])
def test_batched_gradients_need_a_batch(grad_outputs: Any) -> None:
    x = leaf()
    with pytest.raises(BackwardError, match="is_grads_batched=True needs grad_outputs of shape"):
        grad(x.sum(), x, grad_outputs, is_grads_batched=True)


@pytest.mark.parametrize("has_context", [False, True])
def test_function_takes_keywords(has_context: bool) -> None:
    class Scaled(Function):
        if has_context:

            @staticmethod
            def forward(x: Any, y: Any = None, k: float = 2.0) -> Any:
                return x * y * k

            @staticmethod
            def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
                x, y, ctx.k = inputs
                ctx.save_for_backward(x, y)

        else:

            @staticmethod
            def forward(ctx: Any, x: Any, y: Any = None, k: float = 2.0) -> Any:
                ctx.k = k
                ctx.save_for_backward(x, y)
                return x * y * k

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            x, y = ctx.saved_tensors
            return (ct * y * ctx.k, ct * x * ctx.k, None)[: len(ctx.needs_input_grad)]

    for call, k in (
        (lambda x, y: Scaled.apply(x, y), 2.0),
        (lambda x, y: Scaled.apply(x, y=y), 2.0),
        (lambda x, y: Scaled.apply(x, y, k=3.0), 3.0),
        (lambda x, y: Scaled.apply(k=3.0, y=y, x=x), 3.0),
    ):
        x, y = leaf(), leaf(A + 1)
        call(x, y).sum().backward()
        assert x.grad.tolist() == (k * y).tolist() and y.grad.tolist() == (k * x).tolist()
        np.testing.assert_array_equal(func.grad(lambda v: call(v, A).sum())(A), k * A)  # noqa: B023
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        Scaled.apply(leaf(), z=1)


def test_a_multi_gradient_hook_of_a_tensor_that_requires_no_gradient_any_more() -> None:
    x, z = leaf(), leaf()
    seen: list[Any] = []
    func.autograd.graph.register_multi_grad_hook([x, z], seen.append)
    x.requires_grad_(False)
    (x * z).sum().backward()
    assert len(seen) == 1 and seen[0][0] is None
    np.testing.assert_array_equal(seen[0][1].numpy(), x.numpy())


def test_zeros_that_are_made_for_unused_inputs_require_gradients() -> None:
    x, y = func.tensor(2.0, requires_grad=True), func.tensor(3.0, requires_grad=True)
    used, unused = func.autograd.grad(x * x, [x, y], create_graph=True, materialize_grads=True)
    assert used.requires_grad and unused.requires_grad and unused.item() == 0.0
    (used + unused).backward()
    assert x.grad.item() == 2.0 and y.grad is None
    plain = func.autograd.grad(x * x, [x, y], materialize_grads=True)
    assert not any(g.requires_grad for g in plain)


def test_a_gradient_keeps_its_history_through_a_plain_backward() -> None:
    x = func.tensor(2.0, requires_grad=True)
    (x**3).backward(create_graph=True)
    (x**2).backward()
    assert x.grad.item() == 16.0 and x.grad.requires_grad
    (second,) = func.autograd.grad(x.grad, x)
    assert second.item() == 12.0


def test_a_leaf_whose_gradient_has_a_history_pickles() -> None:
    x = func.tensor(2.0, requires_grad=True)
    (x**3).backward(create_graph=True)
    restored = pickle.loads(pickle.dumps(x))
    assert restored.requires_grad and restored.item() == 2.0
    assert restored.grad.item() == 12.0 and not restored.grad.requires_grad
    assert x.grad.requires_grad
    copied = copy.deepcopy(x)
    assert copied.grad.item() == 12.0


@pytest.mark.parametrize("order", ["Function in checkpoint", "Function after checkpoint", "checkpoint alone"])
def test_a_pass_with_packed_values_runs_rules_and_checkpoints_once(order: str) -> None:
    runs: list[str] = []

    class Square(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            runs.append("backward")
            return 2 * ct * ctx.saved_tensors[0]

    def body(x: Any) -> Any:
        runs.append("body")
        return Square.apply(x) if order == "Function in checkpoint" else x * x

    x = leaf()
    value = x.detach().numpy().copy()
    with func.autograd.graph.saved_tensors_hooks(lambda t: t.detach().numpy().copy(), func.tensor):
        y = x * x
    z = func.autograd.checkpoint(body, y)
    if order == "Function after checkpoint":
        z = Square.apply(z)
    z.sum().backward()
    assert runs.count("body") == 2 and runs.count("backward") == (0 if order == "checkpoint alone" else 1)
    power = 8 if order == "Function after checkpoint" else 4
    np.testing.assert_allclose(x.grad.numpy(), power * value ** (power - 1))


def test_loops_whose_results_do_not_depend_on_the_targets() -> None:
    """With create_graph a node is recorded for the targets alone; a scan then may have nothing to pull back."""

    def slope(f: Callable[[Any], Any], u: Any) -> Any:
        shift = func.tensor(0.0, requires_grad=True)
        return func.autograd.grad(f(u + shift), shift, create_graph=True, materialize_grads=True)[0]

    def product(x: Any) -> Any:
        v = func.tensor(1.0 * x, requires_grad=True)
        last = func.scan(lambda c, _: (c, x), v, None, length=3, checkpoint=2)[1][1]
        (last * v).backward(create_graph=True)
        return v.grad

    assert func.jit(lambda x: slope(product, x))(2.0) == 1.0
    assert func.jit(func.grad(lambda x: slope(product, x)))(2.0) == 0.0
