"""Identity of leaves, copies and nodes: the tensor of a gradient, a hook or a key."""

from __future__ import annotations

import copy
import io
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func
from func.autograd import grad, graph
from func.interpreters.imperative.interpreter import Imperative
from tests.support.functions import FUNCTIONS


def leaf(*data: float) -> Any:
    """A vector that requires a gradient."""
    return func.tensor(list(data), requires_grad=True)


JOINS: dict[str, Callable[[Any, Any], Any]] = {
    "concatenate": lambda x, t: np.concatenate([x, t], 1),
    "stack": lambda x, t: np.stack([x, t]),
    "block": lambda x, t: np.block([[x], [t]]),
    "append": lambda x, t: np.append(x, t),
    "insert": lambda x, t: np.insert(x, 1, t[0, 0]),
    "setitem": lambda x, t: _written(x, lambda z: z.__setitem__((0, 0), t[0, 0])),
    "mask": lambda x, t: _written(x, lambda z: z.__setitem__(np.array([[True, False]]), t[0, 1])),
    "add.at": lambda x, t: _written(x, lambda z: np.add.at(z, (0, [1, 1]), t[0])),
    "put_along_axis": lambda x, t: _written(x, lambda z: np.put_along_axis(z, np.array([[1]]), t[:, :1], 1)),
    "copyto": lambda x, t: _written(x, lambda z: np.copyto(z, t, where=np.array([[True, False]]))),
    "diff": lambda x, t: np.diff(x, prepend=t),
    "cov": lambda x, t: np.cov(x, t),
    "linspace": lambda x, t: np.linspace(x, t, 4),
    "choose": lambda x, t: np.choose(np.array([[0, 1]]), [x, t]),
    "where": lambda x, t: np.where(np.array([[True, False]]), x, t),
    "einsum": lambda x, t: np.einsum("ij,kj->ik", x, t),
}


def _written(x: Any, write: Callable[[Any], Any]) -> Any:
    z = x * 1
    write(z)
    return z


@pytest.mark.parametrize("name", JOINS)
def test_gradients_of_some_of_the_joined(name: str) -> None:
    def loss(x: Any, t: Any) -> Any:
        return (JOINS[name](x, t) ** 2).sum()

    points = np.array([[1.0, 2.0]]), np.array([[0.5, -1.5]])
    expected = func.grad(loss, argnums=(0, 1))(*points)
    for i in range(2):
        for create_graph in (False, True):
            leaves = [func.tensor(point, requires_grad=True) for point in points]
            (gradient,) = grad(loss(*leaves), leaves[i], create_graph=create_graph)
            np.testing.assert_allclose(gradient.numpy(force=True), expected[i])
        leaves = [func.tensor(point, requires_grad=True) for point in points]
        loss(*leaves).backward(inputs=[leaves[i]])
        np.testing.assert_allclose(leaves[i].grad.numpy(), expected[i])
        assert leaves[1 - i].grad is None


def test_a_network_of_two_coordinates_has_both_derivatives() -> None:
    x, t = func.tensor([[1.0]], requires_grad=True), func.tensor([[2.0]], requires_grad=True)
    u = (np.concatenate([x, t], 1) ** 3).sum()
    (u_x,) = grad(u, x, create_graph=True)
    (u_t,) = grad(u, t, create_graph=True)
    assert (u_x.item(), u_t.item()) == (3.0, 12.0)
    assert grad(u_x.sum(), x)[0].item() == 6.0


def test_joins_that_save_no_array_can_be_pulled_back_twice() -> None:
    x, t = leaf(1.0), leaf(2.0)
    u = np.concatenate([x, t]).sum()
    u.backward()
    u.backward()
    assert x.grad.tolist() == [2.0]


@pytest.mark.parametrize("shape", [(), (1,), (2,), (2, 0)])
def test_requires_grad_is_assignable(shape: tuple[int, ...]) -> None:
    x = func.tensor(np.ones(shape))
    x.requires_grad = True
    assert x.requires_grad and x.is_leaf
    x.requires_grad = False
    assert not x.requires_grad


def test_tensors_are_hashed_by_identity() -> None:
    p, q = leaf(1.0, 2.0), leaf(1.0, 2.0)
    buffer = func.tensor([1.0, 2.0])
    state = {p: "p", q: "q", buffer: "buffer", p * 1: "computed"}
    assert state[p] == "p" and state[q] == "q" and state[buffer] == "buffer" and len(state) == 4
    assert len({p, q, p}) == 2
    with func.no_grad():
        p += 1.0
    buffer.requires_grad_()
    assert state[p] == "p" and state[buffer] == "buffer"
    attached: Any = weakref.WeakKeyDictionary()
    attached[p] = 1
    del state, p
    assert len(attached) == 0


def test_other_traced_values_have_no_hash() -> None:
    with pytest.raises(TypeError, match=r"(?s)unhashable.*func\.grad traces.*name or an index"):
        func.grad(lambda z: {z: z}[z])(1.0)
    with pytest.raises(TypeError, match=r"func\.vmap traces"):
        func.vmap(lambda z: len({z}) * z)(np.ones(2))

    def own_tensors(z: Any) -> Any:
        weights = {func.tensor(z, requires_grad=True): 2.0, func.tensor(z): 3.0}
        return sum([key * weight for key, weight in weights.items()])

    np.testing.assert_array_equal(func.vmap(own_tensors)(np.ones(2)), [5.0, 5.0])


def test_a_tensor_is_no_static_argument() -> None:
    f = func.jit(lambda z, w: z, static_argnums=1)
    for static in (leaf(1.0), (1, func.tensor([1.0]))):
        with pytest.raises(func.errors.StaticArgumentError, match="hashable"):
            f(1.0, static)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint8, np.bool_, np.complex128])
@pytest.mark.parametrize("source", [7, 7.5, True, 300, 1j, -1, np.float64(3)])
def test_copyto_takes_numbers_as_numpy_does(dtype: Any, source: Any) -> None:
    def copied_to(target: Any) -> Any:
        try:
            np.copyto(target, source)
        except (TypeError, OverflowError) as error:
            return type(error)
        return target.tolist()

    assert copied_to(func.tensor(np.zeros(2, dtype))) == copied_to(np.zeros(2, dtype))


def test_numpy_functions_without_traced_versions_take_tensors_without_history() -> None:
    t, file, text = func.tensor([1.0, 2.0]), io.BytesIO(), io.StringIO()
    np.savez(file, t=t)
    file.seek(0)
    np.testing.assert_array_equal(np.load(file)["t"], [1.0, 2.0])
    np.savetxt(text, t)
    assert text.getvalue().split() == ["1.000000000000000000e+00", "2.000000000000000000e+00"]
    file = io.BytesIO()
    np.save(file, t)
    file.seek(0)
    np.testing.assert_array_equal(np.load(file), [1.0, 2.0])
    with pytest.raises(func.errors.UnsupportedFunctionError, match=r"x\.detach\(\)"):
        np.save(io.BytesIO(), leaf(1.0))


def test_plain_buffers_take_tensors_without_history() -> None:
    t = func.tensor([1.0, 2.0])
    buffer = np.zeros(2)
    buffer += t
    buffer[0] = t[1]
    assert type(buffer) is np.ndarray and buffer.tolist() == [2.0, 2.0]
    assert np.multiply(t, 2, out=buffer) is buffer and buffer.tolist() == [2.0, 4.0]
    whole = np.zeros(2, int)
    with pytest.raises(TypeError, match="same_kind"):
        whole += t
    with pytest.raises(func.errors.TracerConversionError):
        buffer += leaf(1.0, 2.0)
    assert buffer.tolist() == [2.0, 4.0]


def test_inference_mode_marks_whatever_is_computed() -> None:
    t, x = func.tensor([1.0, 2.0]), leaf(1.0, 2.0)
    with func.inference_mode():
        made = [t * 2, x * 2, t[0], np.sin(t), t.reshape(2, 1), np.zeros_like(t), np.linalg.norm(t), func.tensor([1.0])]
        with func.enable_grad():
            assert not (x * 2).requires_grad
        with func.inference_mode(False):
            assert (x * 2).requires_grad and not (t * 2).is_inference()
    assert [m.is_inference() for m in made] == [True] * len(made)
    assert not (t * 2).is_inference()


COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": lambda x: x.copy(),
    "np.copy": np.copy,
    "astype": lambda x: x.astype(float),
    "np.astype": lambda x: np.astype(x, float),
    "flatten": lambda x: x.flatten(),
    "reshape": lambda x: np.reshape(x, (2,), copy=True),
    "clone": lambda x: x.clone(),
    "meshgrid": lambda x: np.meshgrid(x)[0],
    "vmap": lambda x: func.vmap(lambda z: z)(x),
    "vmap of copy": lambda x: func.vmap(np.copy)(x),
    "vjp": lambda x: func.vjp(lambda z: z, x)[0],
    "pullback": lambda x: func.vjp(lambda z: z, np.ones(2))[1](x)[0],
    "jvp": lambda x: func.jvp(lambda z: z, (x,), (np.ones(2),))[0],
    "tangent": lambda x: func.jvp(lambda z: z, (np.ones(2),), (x,))[1],
    "linearize": lambda x: func.linearize(lambda z: z, x)[0],
    "jit": lambda x: func.jit(lambda z: z)(x),
    "scan": lambda x: func.scan(lambda c, _: (c, None), x, None, length=1)[0],
    "while_loop": lambda x: func.while_loop(lambda c: False, lambda c: c, x),
    "associative_scan": lambda x: func.associative_scan(np.add, x[None])[0],
    "checkpoint": lambda x: func.checkpoint(lambda z: z)(x),
    "aux": lambda x: func.grad(lambda z: (z, x), has_aux=True)(1.0)[1],
}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("of_a_leaf", [True, False])
def test_copies_have_nodes_of_their_own(copied: Callable[[Any], Any], of_a_leaf: bool) -> None:
    x = leaf(1.0, 2.0)
    y = x if of_a_leaf else x * 1
    c = copied(y)
    loss = (c * 2 + y * 3).sum()
    assert grad(loss, c, retain_graph=True)[0].tolist() == [2.0, 2.0]
    assert grad(loss, y, retain_graph=True)[0].tolist() == [5.0, 5.0]
    assert not c.is_leaf
    c.retain_grad()
    y.retain_grad()
    c.register_hook(lambda g: g * 10)
    loss.backward()
    assert y.grad.tolist() == [23.0, 23.0] and c.grad.tolist() == [20.0, 20.0] and x.grad.tolist() == [23.0, 23.0]
    c[0] = 7.0
    assert y.tolist() == [1.0, 2.0] and c.tolist() == [7.0, 2.0]


@pytest.mark.parametrize(
    "copied", [lambda x: x.copy(), np.copy, lambda x: x.astype(float), lambda x: x.clone(), copy.copy]
)
def test_copies_under_no_grad_have_no_history(copied: Callable[[Any], Any]) -> None:
    def f(z: Any) -> Any:
        y = z * 1
        with func.no_grad():
            c = copied(y)
        return (z * c).sum()

    x = leaf(1.0, 2.0)
    assert grad(f(x), x)[0].tolist() == [1.0, 2.0]
    for derivative in (func.grad(f), func.grad(func.jit(f)), func.jit(func.grad(f)), func.jacrev(f)):
        assert derivative(np.array([1.0, 2.0])).tolist() == [1.0, 2.0]
    with func.inference_mode():
        assert copied(func.tensor([1.0])).is_inference()


def test_no_result_is_an_argument_or_has_its_node() -> None:
    for name, call in FUNCTIONS.items():
        if np.asarray(call.x).dtype.kind not in "fc":
            continue
        x = func.tensor(call.x, requires_grad=True) * 1
        try:
            out = call.function(x)
        except (TypeError, ValueError, func.errors.FuncError):
            continue
        for part in func.tree.leaves(out):
            if part is not x and isinstance(part, func.Tensor) and type(part._interpreter) is Imperative:
                assert part._attached is not x._attached, name


def test_copies_of_leaves_are_leaves() -> None:
    params = {"w": leaf(1.0, 2.0), "frozen": func.tensor([3.0])}
    params["tied"] = params["w"]
    params["w"].grad = np.array([5.0, 6.0])
    for target in (copy.deepcopy(params), pickle.loads(pickle.dumps(params))):
        assert target["w"].is_leaf and target["w"].requires_grad and not target["frozen"].requires_grad
        assert target["tied"] is target["w"] and target["w"].grad is not params["w"].grad
        (target["w"] ** 2).sum().backward()
        assert target["w"].grad.tolist() == [7.0, 10.0] and params["w"].grad.tolist() == [5.0, 6.0]
        with func.no_grad():
            target["w"] += 1
        assert params["w"].tolist() == [1.0, 2.0]
    shallow = copy.copy(params["w"])
    assert shallow.is_leaf and shallow.requires_grad and shallow.grad is None
    computed = params["w"] * 2
    assert grad(copy.deepcopy(computed).sum(), params["w"])[0].tolist() == [2.0, 2.0]
    assert func.grad(lambda z: (copy.deepcopy({"z": z})["z"] ** 2).sum())(np.ones(2)).tolist() == [2.0, 2.0]


def test_freezing_and_unfreezing_keeps_the_leaf_and_its_hooks() -> None:
    for freeze in (lambda t: t.requires_grad_(False), lambda t: t.detach_()):
        x, seen = leaf(1.0, 2.0), []
        y = (x * x).sum()
        x.register_hook(lambda g, seen=seen: seen.append(g.tolist()))
        x.register_post_accumulate_grad_hook(lambda t, seen=seen: seen.append("accumulated"))
        freeze(x)
        assert not x.requires_grad
        x.requires_grad_()
        (y + (x * 3).sum()).backward()
        assert x.grad.tolist() == [5.0, 7.0] and seen == [[5.0, 7.0], "accumulated"]


def test_a_frozen_leaf_gets_no_gradient() -> None:
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y = (x * w).sum()
    x.requires_grad_(False)
    y.backward()
    assert x.grad is None and w.grad.tolist() == [1.0, 2.0]
    x.data = np.ones(3)
    x.requires_grad_()
    x.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 1.0]


def test_hooks_of_leaf_nodes_run_around_the_accumulation() -> None:
    x, seen = leaf(1.0, 2.0), []
    node = (x * 2).grad_fn.next_functions[0][0]
    x.register_hook(lambda g: seen.append("tensor"))
    node.register_prehook(lambda g: (seen.append(("pre", x.grad)), (g[0] * 10,))[1])
    node.register_hook(lambda gi, go: seen.append(("post", gi, go[0].tolist(), x.grad.tolist())))
    x.register_post_accumulate_grad_hook(lambda t: seen.append("accumulated"))
    (x * 2).sum().backward()
    assert seen == ["tensor", ("pre", None), "accumulated", ("post", (), [20.0, 20.0], [20.0, 20.0])]
    seen.clear()
    grad((x * 2).sum(), x)
    assert seen == ["tensor"]
    (x * 2).sum().backward(inputs=[x])
    assert x.grad.tolist() == [40.0, 40.0] and len(seen) == 5
    node.register_hook(lambda gi, go: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        x.sum().backward()
    assert x.grad.tolist() == [40.0, 40.0]


def test_retained_gradients_are_filled_by_grad_too() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    side = x * 5
    y.retain_grad()
    side.retain_grad()
    out = (y * y).sum() + side.sum()
    grad(out, y, retain_graph=True)
    assert y.grad.tolist() == [4.0, 8.0] and side.grad is None
    grad(out, x, retain_graph=True)
    assert y.grad.tolist() == [8.0, 16.0] and side.grad.tolist() == [1.0, 1.0]
    out.backward(inputs=[y])
    assert y.grad.tolist() == [12.0, 24.0]


INSIDE: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "jit": lambda f: func.jit(f)(2.0),
    "grad": lambda f: func.grad(f)(2.0),
    "vmap": lambda f: func.vmap(f)(np.ones(2)),
    "jvp": lambda f: func.jvp(f, (2.0,), (1.0,)),
    "jacfwd": lambda f: func.jacfwd(f)(2.0),
    "linearize": lambda f: func.linearize(f, 2.0),
    "make_program": lambda f: func.make_program(f)(2.0),
}


@pytest.mark.parametrize("run", INSIDE.values(), ids=INSIDE)
def test_backward_to_outer_leaves_is_refused_inside_a_transform(run: Callable[[Callable[[Any], Any]], Any]) -> None:
    w = leaf(3.0)
    y = w * 1
    y.retain_grad()

    def f(a: Any) -> Any:
        (w * 2).sum().backward()
        return a * a

    def by_inputs(a: Any) -> Any:
        func.backward((y * 2).sum(), inputs=[y])
        return a * a

    def by_grad(a: Any) -> Any:
        grad((y * 2).sum(), w)
        return a * a

    for function in (f, by_inputs, by_grad):
        with pytest.raises(
            func.errors.BackwardError, match=r"(?s)inside func\.\w+ would fill the grad.*Return the value"
        ):
            run(function)
    assert w.grad is None and y.grad is None

    def pure(a: Any) -> Any:
        t = func.tensor(a, requires_grad=True)
        (t * 2).sum().backward()
        return a * grad((w * 2).sum(), w)[0].sum() * t.grad

    run(pure)
    assert w.grad is None


class SavedInput(func.autograd.Function):
    """x³, whose input is saved."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        return ct * 3 * ctx.saved_tensors[0] ** 2


class SavedOutput(func.autograd.Function):
    """exp(x), whose output is saved."""

    @staticmethod
    def forward(x: Any) -> Any:
        return np.exp(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        return ct * ctx.saved_tensors[0]


def _cube() -> Any:
    cube = func.custom_vjp(lambda x: x**3)
    cube.defvjp(lambda x: (x**3, x), lambda x, ct: (3 * x**2 * ct,))
    return cube


SAVING: dict[str, Callable[[Any], Any]] = {
    "inv": np.linalg.inv,
    "cholesky": np.linalg.cholesky,
    "cumprod": np.cumprod,
    "softmax": func.special.softmax,
    "jit": func.jit(np.sin),
    "Function": SavedInput.apply,
    "Function with setup_context": SavedOutput.apply,
    "custom_vjp": _cube(),
    "checkpoint": lambda x: func.autograd.checkpoint(lambda z: np.sin(z) ** 2, x),
    "func.checkpoint": func.checkpoint(lambda z: np.sin(z) ** 2),
    "scan": lambda x: func.scan(lambda c, z: (c * z, None), 1.0, x.ravel())[0],
    "scan in jit": func.jit(lambda x: func.scan(lambda c, z: (c * z, None), 1.0, x.ravel())[0]),
    "svd": lambda x: np.linalg.svd(x)[1],
    "slogdet": lambda x: np.linalg.slogdet(x)[1],
    "qr": lambda x: np.linalg.qr(x)[1],
    "expm": func.linalg.expm,
    "gradient": func.grad(lambda z: (z**3).sum()),
    "0-d": lambda x: np.sin(x[0, 0]),
    "vmap": func.vmap(np.sin),
}


@pytest.mark.parametrize("f", SAVING.values(), ids=SAVING)
@pytest.mark.parametrize("create_graph", [False, True])
def test_saved_tensor_hooks_see_everything(f: Callable[[Any], Any], create_graph: bool) -> None:
    point = np.array([[2.0, 0.3], [0.3, 1.0]])
    counts = {"packed": 0, "unpacked": 0}

    def pack(value: Any) -> Any:
        counts["packed"] += 1
        return value.numpy().copy()

    def unpack(array: Any) -> Any:
        counts["unpacked"] += 1
        return func.tensor(array)

    x = func.tensor(point, requires_grad=True)
    with graph.saved_tensors_hooks(pack, unpack):
        y = f(x)
    assert graph.saved_bytes(y) == 0
    (gradient,) = grad(np.sum(y), x, create_graph=create_graph)
    assert counts["packed"] and counts["unpacked"]
    np.testing.assert_allclose(gradient.numpy(force=True), func.grad(lambda z: np.sum(f(z)))(point))
