"""Functions with custom rules: they run once for a call, and every mode, level and order sees the rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.optimize

import func
from func.autograd import Function, forward_ad, functional, once_differentiable
from func.errors import CustomRuleError, NotDifferentiableError

Call = Callable[[Any], Any]


def function(forward: Callable[..., Any], backward: Callable[..., Any], **methods: Any) -> Any:
    """A Function of these methods."""
    methods |= {"forward": forward, "backward": backward}
    return type("Made", (Function,), {name: staticmethod(method) for name, method in methods.items()})


class Runs:
    """Counts the runs of a forward function."""

    def __init__(self) -> None:
        self.count = 0


def cubes(runs: Runs) -> dict[str, Call]:
    """x ** 3 with a right rule, in every way to write it; each run is counted."""

    def counted() -> None:
        runs.count += 1

    def saves_input(ctx: Any, x: Any) -> Any:
        counted()
        ctx.save_for_backward(x)
        return x * x * x

    def saves_output(ctx: Any, x: Any) -> Any:
        counted()
        y = x * x * x
        ctx.save_for_backward(x, y)
        return y

    def saves_intermediate(ctx: Any, x: Any) -> Any:
        counted()
        square = x * x
        ctx.save_for_backward(square)
        return square * x

    def keeps_attribute(ctx: Any, x: Any) -> Any:
        counted()
        ctx.square = x * x
        return ctx.square * x

    def plain(x: Any) -> Any:
        counted()
        return x * x * x

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[0], output)

    def by_input(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x * x * g

    def by_output(ctx: Any, g: Any) -> Any:
        x, y = ctx.saved_tensors
        return 3 * y / x * g

    def by_intermediate(ctx: Any, g: Any) -> Any:
        return 3 * ctx.saved_tensors[0] * g

    def with_rule(forward: Callable[..., Any], backward: Callable[..., Any]) -> Any:
        rule = func.custom_vjp(plain)
        rule.defvjp(forward, backward)
        return rule

    def forward_of_input(x: Any) -> Any:
        counted()
        return x * x * x, x

    def forward_of_output(x: Any) -> Any:
        counted()
        y = x * x * x
        return y, {"x": x, "y": y}

    def forward_of_intermediate(x: Any) -> Any:
        counted()
        square = x * x
        return square * x, [square, 3]

    def calling_itself() -> Any:
        rule = func.custom_vjp(plain)
        rule.defvjp(lambda x: (rule(x), x), lambda x, ct: (3 * x * x * ct,))
        return rule

    @func.custom_gradient
    def by_closure(x: Any) -> Any:
        counted()
        square = x * x
        return square * x, lambda ct: 3 * ct * square

    class Slope:
        def __init__(self, x: Any) -> None:
            self.x = x

        def __call__(self, ct: Any) -> Any:
            return (3 * ct * self.x**2,)

    @func.custom_gradient
    def by_object(x: Any) -> Any:
        counted()
        return x * x * x, Slope(x)

    @func.custom_jvp
    def tangent(x: Any) -> Any:
        counted()
        return x * x * x

    tangent.defjvp(lambda primals, tangents: (tangent(*primals), 3 * primals[0] ** 2 * tangents[0]))
    return {
        "Function of its input": function(saves_input, by_input).apply,
        "Function of its output": function(saves_output, by_output).apply,
        "Function of an intermediate": function(saves_intermediate, by_intermediate).apply,
        "Function with an attribute": function(keeps_attribute, lambda ctx, g: 3 * ctx.square * g).apply,
        "Function with setup_context": function(plain, by_output, setup_context=setup).apply,
        "Function with jvp": function(
            saves_input, by_input, jvp=lambda ctx, dx: 3 * ctx.saved_tensors[0] ** 2 * dx
        ).apply,
        "custom_vjp of its input": with_rule(forward_of_input, lambda x, ct: (3 * x * x * ct,)),
        "custom_vjp of its output": with_rule(forward_of_output, lambda r, ct: (3 * r["y"] / r["x"] * ct,)),
        "custom_vjp of an intermediate": with_rule(forward_of_intermediate, lambda r, ct: (r[1] * r[0] * ct,)),
        "custom_vjp that calls itself": calling_itself(),
        "custom_gradient": by_closure,
        "custom_gradient by an object": by_object,
        "custom_jvp": tangent,
    }


def tensor_grad(f: Call, x: Any) -> Any:
    t = func.tensor(x, requires_grad=True)
    f(t).backward()
    return t.grad


def graph_grad(f: Call) -> Call:
    """The derivative, as a function of tensors that require a gradient."""
    return lambda t: func.autograd.grad(f(t), t, create_graph=True)[0]


def inner_grad(f: Call) -> Call:
    """The derivative by a tensor made inside."""
    return lambda x: graph_grad(f)(func.tensor(x, requires_grad=True))


def dual(f: Call) -> Call:
    return lambda x: func.jvp(f, (x,), (np.ones_like(x),))[1]


def by_vjp(f: Call) -> Call:
    return lambda x: func.vjp(f, x)[1](np.ones_like(x))[0]


def linearized(f: Call) -> Call:
    return lambda x: func.linearize(f, x)[1](np.ones_like(x))


def scanned(f: Call) -> Call:
    return lambda x: func.scan(lambda c, _: (f(c), None), x, None, length=1)[0]


def one_of_two(f: Call) -> Call:
    return lambda x: func.cond(x > 0, f, lambda z: z, x)


def mapped(f: Call) -> Call:
    return lambda x: func.vmap(f)(np.stack([x, 2 * x]))[0]


LEVELS: dict[str, Callable[[Call], Call]] = {
    "grad": func.grad,
    "jacrev": func.jacrev,
    "jacfwd": func.jacfwd,
    "jvp": dual,
    "vjp": by_vjp,
    "linearize": linearized,
}
AROUND: dict[str, Callable[[Call], Call]] = {
    "": lambda f: f,
    "jit": func.jit,
    "vmap": mapped,
    "scan": scanned,
    "cond": one_of_two,
    "checkpoint": func.checkpoint,
}


@pytest.mark.parametrize("name", cubes(Runs()))
def test_every_nest_of_two_levels(name: str) -> None:
    """f(x) = x**3 * x: f'' = 12 x**2."""
    cube = cubes(Runs())[name]
    for label, around in AROUND.items():
        f = around(lambda x: cube(x) * x)
        levels = [LEVELS[level] for level in (("grad", "jacfwd") if label else LEVELS)]
        for outer in levels:
            for inner in levels:
                np.testing.assert_allclose(outer(inner(f))(2.0), 48.0)


@pytest.mark.parametrize("name", cubes(Runs()))
def test_levels_with_something_between_them(name: str) -> None:
    cube = cubes(Runs())[name]
    for around in AROUND.values():
        for outer in (func.grad, func.jacfwd):
            for inner in (func.grad, dual):
                np.testing.assert_allclose(outer(around(inner(lambda x: cube(x) * x)))(2.0), 48.0)


@pytest.mark.parametrize("name", cubes(Runs()))
def test_three_levels_and_tensors(name: str) -> None:
    cube = cubes(Runs())[name]

    def f(x: Any) -> Any:
        return cube(x) * x

    assert func.grad(func.grad(func.grad(f)))(2.0) == pytest.approx(48.0)
    assert func.jacfwd(func.grad(func.jacfwd(f)))(2.0) == pytest.approx(48.0)
    assert tensor_grad(graph_grad(f), 2.0).item() == pytest.approx(48.0)
    assert tensor_grad(graph_grad(graph_grad(f)), 2.0).item() == pytest.approx(48.0)
    assert func.grad(inner_grad(f))(2.0) == pytest.approx(48.0)
    assert tensor_grad(func.grad(f), 2.0).item() == pytest.approx(48.0)
    assert tensor_grad(dual(f), 2.0).item() == pytest.approx(48.0)
    x = func.tensor(2.0)
    for second in (functional.hessian(f, x), functional.hvp(f, x, func.tensor(1.0))[1]):
        assert second.item() == pytest.approx(48.0)
    batch = func.vmap(func.grad(func.grad(f)))(np.array([1.0, 2.0]))
    np.testing.assert_allclose(batch, [12.0, 48.0])


@pytest.mark.parametrize("name", cubes(Runs()))
def test_one_run_for_a_call(name: str) -> None:
    runs = Runs()
    cube = cubes(runs)[name]
    calls: dict[str, Callable[[], Any]] = {
        "value": lambda: cube(2.0),
        "grad": lambda: func.grad(cube)(2.0),
        "jvp": lambda: dual(cube)(2.0),
        "grad grad": lambda: func.grad(func.grad(cube))(2.0),
        "hessian": lambda: func.hessian(cube)(2.0),
        "vmap grad": lambda: func.vmap(func.grad(cube))(np.ones(3)),
        "grad vmap": lambda: func.grad(lambda x: func.vmap(cube)(x).sum())(np.ones(3)),
        "jit grad": lambda: func.jit(func.grad(cube))(2.0),
        "backward": lambda: tensor_grad(cube, 2.0),
        "create_graph": lambda: tensor_grad(graph_grad(cube), 2.0),
        "grad of backward": lambda: func.grad(inner_grad(cube))(2.0),
    }
    for label, call in calls.items():
        if name == "custom_jvp" and label in ("create_graph", "grad of backward"):
            continue  # a jvp rule is called for each level
        runs.count = 0
        call()
        assert runs.count == 1, label


ROUNDED = np.array([1.2, 2.7])


def straight_through() -> dict[str, Call]:
    """Rounding with the derivative one, in every way to write it."""
    rule = func.custom_vjp(np.round)
    rule.defvjp(lambda x: (np.round(x), None), lambda _, ct: (ct,))
    return {
        "Function": function(lambda ctx, x: np.round(x), lambda ctx, g: g).apply,
        "Function with jvp": function(lambda ctx, x: np.round(x), lambda ctx, g: g, jvp=lambda ctx, dx: dx).apply,
        "custom_vjp": rule,
        "custom_gradient": func.custom_gradient(lambda x: (np.round(x), lambda ct: ct)),
    }


@pytest.mark.parametrize("name", straight_through())
def test_a_rule_that_differs_from_the_code(name: str) -> None:
    rounded = straight_through()[name]

    def loss(x: Any) -> Any:
        return np.sum(rounded(x) ** 2)

    x, v = func.tensor(ROUNDED), func.tensor([1.0, 2.0])
    np.testing.assert_allclose(functional.jvp(rounded, x, v)[1].numpy(), [1, 2])
    for strategy in ("forward-mode", "reverse-mode"):
        jacobian = functional.jacobian(rounded, x, strategy=strategy)
        np.testing.assert_allclose(jacobian.numpy(), np.eye(2))
    for outer in (func.jacrev, func.jacfwd):
        for inner in (func.jacrev, func.jacfwd):
            for around in (lambda f: f, func.jit, func.checkpoint):
                np.testing.assert_allclose(outer(inner(around(loss)))(ROUNDED), 2 * np.eye(2))
    np.testing.assert_allclose(functional.hessian(loss, x).numpy(), 2 * np.eye(2))
    np.testing.assert_allclose(functional.hvp(loss, x, v)[1].numpy(), [2, 4])
    t = func.tensor(ROUNDED, requires_grad=True)
    _, pull = func.vjp(loss, t)
    pull(1.0)[0].sum().backward()
    np.testing.assert_allclose(t.grad.numpy(), [2, 2])


AGAIN: dict[str, Callable[[Call], Call]] = {
    "called": lambda f: f,
    "jitted": func.jit,
    "mapped": mapped,
    "scanned": scanned,
    "checkpointed": func.checkpoint,
}


@pytest.mark.parametrize("name", AGAIN)
def test_a_forward_function_may_call_its_own_function(name: str) -> None:
    """The rule's values from such a call have the derivative of the rule, here the identity for round."""
    straight = func.custom_vjp(np.round)
    straight.defvjp(lambda x: (straight(x), AGAIN[name](straight)(x)), lambda rounded, ct: (ct * rounded,))
    for around in (lambda f: f, func.jit):
        assert around(func.grad(straight))(2.2) == 2.0
        assert around(func.grad(func.grad(straight)))(2.2) == 2.0  # d(round) = round dx
        assert around(func.jacfwd(func.grad(straight)))(2.2) == 2.0
    np.testing.assert_array_equal(func.vmap(func.grad(func.grad(straight)))(np.array([2.2, 3.1])), [2.0, 3.0])
    assert tensor_grad(graph_grad(straight), 2.2).item() == 2.0


def test_a_forward_function_may_call_compiled_code_by_its_own_function() -> None:
    @func.custom_vjp
    def root(k: Any) -> Any:
        return scipy.optimize.brentq(lambda x: x**3 - k, 0.0, 5.0)

    root.defvjp(lambda k: (root(k), k), lambda k, ct: (ct / (3 * root(k) ** 2),))
    np.testing.assert_allclose(func.grad(root)(8.0), 1 / 12)
    np.testing.assert_allclose(func.grad(func.grad(root))(8.0), -1 / 144)
    np.testing.assert_allclose(func.vmap(func.grad(root))(np.array([1.0, 8.0])), [1 / 3, 1 / 12])


def test_reversal_in_every_mode() -> None:
    reverse = function(lambda ctx, x: x * 1, lambda ctx, g: -g).apply
    x, v = func.tensor([1.0, 2.0]), func.tensor([1.0, 2.0])
    np.testing.assert_allclose(functional.jvp(reverse, x, v)[1].numpy(), [-1, -2])
    np.testing.assert_allclose(func.hessian(lambda z: np.sum(reverse(z) ** 2))(ROUNDED), 2 * np.eye(2))
    np.testing.assert_allclose(func.grad(lambda z: np.sum(reverse(z)))(ROUNDED), [-1, -1])


def test_first_order_through_a_transform_of_a_tensor() -> None:
    square = function(
        lambda ctx, x: (ctx.save_for_backward(x), x * x)[1], lambda ctx, g: 2 * g * ctx.saved_tensors[0]
    ).apply

    def f(x: Any) -> Any:
        return square(x) * x

    ways: dict[str, Call] = {
        "vjp": lambda t: func.vjp(f, t)[0],
        "jvp": lambda t: func.jvp(f, (t,), (1.0,))[0],
        "value_and_grad": lambda t: func.value_and_grad(f)(t)[0],
        "linearize": lambda t: func.linearize(f, t)[0],
        "has_aux": lambda t: func.grad(lambda z: (f(z), f(z)), has_aux=True)(t)[1],
        "jit": lambda t: func.jit(f)(t),
        "checkpoint": lambda t: func.autograd.checkpoint(f, t),
    }
    for label, way in ways.items():
        for slope in (tensor_grad(way, 2.0), graph_grad(way)(func.tensor(2.0, requires_grad=True))):
            assert slope.item() == pytest.approx(12.0), label


def random_masks() -> dict[str, Call]:
    def drop(ctx: Any, x: Any) -> Any:
        mask = np.random.rand(*x.shape) > 0.5
        ctx.save_for_backward(mask)
        return x * mask

    def drop_scaled(ctx: Any, x: Any) -> Any:
        ctx.mask = (np.random.rand(*x.shape) > 0.5) * 1.0
        return x * ctx.mask

    @func.custom_gradient
    def drop_gradient(x: Any) -> Any:
        mask = np.random.rand(*x.shape) > 0.5
        return x * mask, lambda ct: ct * mask

    def masked(x: Any) -> Any:
        mask = np.random.rand(*x.shape) > 0.5
        return x * mask, mask

    rule = func.custom_vjp(lambda x: masked(x)[0])
    rule.defvjp(masked, lambda mask, ct: (ct * mask,))
    return {
        "Function": function(drop, lambda ctx, g: g * ctx.saved_tensors[0]).apply,
        "attribute": function(drop_scaled, lambda ctx, g: g * ctx.mask).apply,
        "custom_gradient": drop_gradient,
        "custom_vjp": rule,
    }


@pytest.mark.filterwarnings("ignore::func.errors.FrozenValueWarning")
@pytest.mark.parametrize("name", random_masks())
def test_one_draw_for_value_and_derivatives(name: str) -> None:
    drop = random_masks()[name]
    x = np.ones(16)
    for seed in range(3):
        np.random.seed(seed)
        y, pull = func.vjp(drop, x)
        np.testing.assert_array_equal(pull(np.ones(16))[0], y)
        y, dy = func.jvp(drop, (x,), (x,))
        np.testing.assert_array_equal(dy, y)
        y, pull = func.vjp(func.jit(drop), x)
        np.testing.assert_array_equal(pull(np.ones(16))[0], y)
        t = func.tensor(x, requires_grad=True)
        out = drop(t)
        (gradient,) = func.autograd.grad(out.sum(), t, create_graph=True)
        np.testing.assert_array_equal(gradient.detach().numpy(), out.detach().numpy())
        y, slope = func.value_and_grad(lambda z: np.sum(func.vjp(drop, z)[1](np.ones(16))[0] * drop(z)))(x)
        assert slope.sum() == y
    np.testing.assert_array_equal(*func.vmap(lambda z: func.jvp(drop, (z,), (z,)))(np.ones((3, 16))))


def test_once_differentiable_is_loud_on_every_road() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    @once_differentiable
    def backward(ctx: Any, g: Any) -> Any:
        return 3 * g * ctx.saved_tensors[0] ** 2

    once = function(forward, backward).apply
    for f in (once, func.jit(once), func.checkpoint(once), scanned(once)):
        assert func.grad(f)(2.0) == 12.0
        assert func.jit(func.grad(f))(2.0) == 12.0
    roads: dict[str, Call] = {
        "grad grad": func.grad(func.grad(once)),
        "grad grad jit": func.grad(func.grad(func.jit(once))),
        "grad jit grad": func.grad(func.jit(func.grad(once))),
        "jit grad grad": func.jit(func.grad(func.grad(once))),
        "hessian jit": func.hessian(func.jit(once)),
        "jacfwd grad": func.jacfwd(func.grad(once)),
        "jacfwd jit grad": func.jacfwd(func.jit(func.grad(once))),
        "vmap": lambda x: func.vmap(func.grad(func.grad(once)))(np.array([x, x])),
        "scan": func.grad(func.grad(scanned(once))),
        "tensors": lambda x: tensor_grad(graph_grad(once), x),
        "jvp": dual(once),
    }
    for label, road in roads.items():
        with pytest.raises(NotDifferentiableError, match="once_differentiable"):
            raise AssertionError(f"{label}: {road(2.0)}")


def test_what_backward_leaves_on_its_context_stays() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.n = 0
        return x * 1

    def backward(ctx: Any, g: Any) -> Any:
        ctx.n += 1
        return g * ctx.n

    x = func.tensor(1.0, requires_grad=True)
    y = function(forward, backward).apply(x)
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.item() == 3.0


def test_scalars_of_numpy_are_tensors_of_a_function() -> None:
    def forward(ctx: Any, x: Any, k: Any) -> Any:
        ctx.save_for_backward(x, k)
        return x * k

    def backward(ctx: Any, g: Any) -> Any:
        x, k = ctx.saved_tensors
        return g * k, (g * x).sum()

    product = function(forward, backward).apply
    rows = np.array([1.0, 2.0])
    for f in (
        lambda z: func.scan(lambda c, k: (product(c, k), None), z, rows)[0].sum(),
        lambda z: product(product(z, rows[0]), rows[1]).sum(),
    ):
        np.testing.assert_array_equal(func.grad(f)(np.ones(2)), [2, 2])


def test_outputs_that_are_no_tensors() -> None:
    def backward(ctx: Any, g: Any, info: Any, nothing: Any) -> Any:
        assert info is None and nothing is None
        return g * 2

    mixed = function(lambda ctx, x: (x * 2, "info", None), backward).apply
    x = func.tensor([1.0], requires_grad=True)
    out, info, nothing = mixed(x)
    assert (info, nothing) == ("info", None)
    out.sum().backward()
    assert x.grad.tolist() == [2.0]
    for f in (mixed, func.jit(lambda z: mixed(z)[0])):
        assert func.grad(lambda z, f=f: np.sum(f(z)[0]))(np.ones(1)).tolist() == [2.0]


def test_the_vmap_rule_knows_the_randomness() -> None:
    seen = []

    def rule(info: Any, in_dims: Any, x: Any) -> Any:
        seen.append(info.randomness)
        return x, 0

    f = function(lambda ctx, x: x, lambda ctx, g: g, vmap=rule).apply
    for randomness in ("different", "same", "error"):
        func.vmap(f, randomness=randomness)(np.ones(2))
    assert seen == ["different", "same", "error"]


def test_gradients_that_a_backward_function_returns() -> None:
    none = function(lambda ctx, x, y: x * y, lambda ctx, g: (g, None)).apply
    x, y = func.tensor([1.0], requires_grad=True), func.tensor([1.0], requires_grad=True)
    none(x, y).sum().backward()
    assert x.grad is not None and y.grad is None
    larger = function(lambda ctx, x: x * np.ones((2, 3)), lambda ctx, g: g).apply
    x = func.tensor(np.ones((1, 3)), requires_grad=True)
    larger(x).sum().backward()
    assert x.grad.tolist() == [[2.0, 2.0, 2.0]]
    wrong = function(lambda ctx, x: x * 2, lambda ctx, g: np.ones((4, 5))).apply
    with pytest.raises(CustomRuleError, match="expected shape compatible"):
        wrong(x).sum().backward()


def test_recording_inside_backward_is_that_of_the_pass() -> None:
    seen = []

    def backward(ctx: Any, g: Any) -> Any:
        seen.append(func.is_grad_enabled())
        return g

    f = function(lambda ctx, x: x * 2, backward).apply
    x = func.tensor([1.0], requires_grad=True)
    f(x).sum().backward()
    f(x).sum().backward(create_graph=True)
    assert seen == [False, True]


def test_what_a_custom_gradient_returns_is_checked() -> None:
    for result in ((lambda x: x * 2), (lambda x: (x, x, x)), (lambda x: {"a": x}), (lambda x: (x, 3.0))):
        f = func.custom_gradient(result)
        for call in (f, func.grad(lambda x, f=f: np.sum(f(x)))):
            with pytest.raises(CustomRuleError, match="must return a pair"):
                call(np.array([1.0, 2.0, 3.0]))


def test_numbers_that_forward_reads() -> None:
    """Reading is allowed; computed values have a rule as an output, and none as an intermediate value."""

    def inputs(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * float(x)

    square = function(inputs, lambda ctx, g: 2 * g * ctx.saved_tensors[0]).apply
    assert func.grad(func.grad(lambda x: square(x) * x))(2.0) == 12.0

    def intermediate(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x * float(x))
        return x * float(x) ** 2

    cube = function(intermediate, lambda ctx, g: 3 * g * ctx.saved_tensors[0]).apply
    assert func.grad(cube)(2.0) == 12.0
    for call in (func.grad(func.grad(cube)), func.jacfwd(func.grad(cube)), lambda x: tensor_grad(graph_grad(cube), x)):
        with pytest.raises(NotDifferentiableError, match="read the numbers"):
            call(2.0)


def test_values_that_forward_captures() -> None:
    """Of an outer level they have the derivative of the code, of the same level none is known."""

    def outer(w: Any) -> Any:
        rule = func.custom_vjp(lambda x: x * w)
        rule.defvjp(lambda x: (x * w, w), lambda w, ct: (ct * w,))
        return func.grad(lambda x: rule(x) * x)(3.0)  # 2 w x

    assert func.grad(outer)(2.0) == 6.0
    assert func.jacfwd(outer)(2.0) == 6.0

    def same(w: Any) -> Any:
        rule = func.custom_vjp(lambda x: x * w)
        rule.defvjp(lambda x: (x * w, w), lambda w, ct: (ct * w,))
        return rule(w)

    with pytest.raises(CustomRuleError, match="pass the value as an argument"):
        func.grad(same)(2.0)


def test_a_jvp_rule_that_computes_the_output_itself() -> None:
    rounded = func.custom_jvp(np.round)
    rounded.defjvp(lambda primals, tangents: (np.round(primals[0]), tangents[0]))

    def loss(x: Any) -> Any:
        return np.sum(rounded(x) ** 2)

    for outer in (func.jacrev, func.jacfwd):
        for inner in (func.jacrev, func.jacfwd):
            for around in (lambda f: f, func.jit, func.checkpoint):
                np.testing.assert_allclose(outer(inner(around(loss)))(ROUNDED), 2 * np.eye(2))
    np.testing.assert_allclose(func.grad(lambda x: func.vmap(func.grad(loss))(x[None]).sum())(ROUNDED), [2, 2])
    np.testing.assert_allclose(functional.hessian(loss, func.tensor(ROUNDED)).numpy(), 2 * np.eye(2))


def test_a_jvp_rule_that_draws_numbers_is_loud_at_second_order() -> None:
    drop = func.custom_jvp(lambda x: x)

    def rule(primals: Any, tangents: Any) -> Any:
        mask = np.random.rand(16) > 0.5
        return primals[0] * mask, tangents[0] * mask

    drop.defjvp(rule)
    x = np.ones(16)
    np.testing.assert_array_equal(*func.jvp(drop, (x,), (x,)))
    with pytest.raises(CustomRuleError, match="other outputs the second time"):
        func.hessian(lambda z: np.sum(drop(z) ** 2))(x)


def test_tensors_inside_a_transform_go_through_control_flow() -> None:
    loops: dict[str, Call] = {
        "scan": lambda v: func.scan(lambda c, _: (c * c, None), v, None, length=1)[0],
        "fori_loop": lambda v: func.fori_loop(0, 1, lambda i, c: c * c, v),
        "while_loop": lambda v: func.while_loop(
            lambda c: c[0] < 1, lambda c: (c[0] + 1, c[1] * c[1]), (0, v), max_steps=2
        )[1],
        "cond": lambda v: func.cond(True, lambda z: z * z, lambda z: z, v),
        "map": lambda v: func.map(lambda z: z * z, np.stack([v, v]))[0],
    }
    for label, loop in loops.items():
        for outer in (func.grad, func.jacfwd, lambda f: func.grad(func.jit(f)), lambda f: func.jit(func.grad(f))):
            value = outer(lambda x, loop=loop: inner_grad(lambda v: loop(v) * v)(x))(2.0)
            assert value == pytest.approx(12.0), label


def test_forward_mode_of_torch_functions_follows_no_grad() -> None:
    def f(x: Any) -> Any:
        with func.no_grad():
            c = x * 3
        return (c * x).sum()

    x, v = func.tensor([1.0, 2.0]), func.tensor([1.0, 1.0])
    np.testing.assert_array_equal(functional.hvp(f, x, v)[1].numpy(), [0, 0])
    np.testing.assert_array_equal(functional.vhp(f, x, v)[1].numpy(), [0, 0])
    assert functional.jvp(f, x, v)[1].item() == 9.0


def test_gradients_of_dual_numbers_are_dual() -> None:
    """Forward over reverse, as torch has it: the tangent of the gradient is the Hessian times the tangent."""
    x = func.tensor([1.0, 2.0], requires_grad=True)
    y = func.tensor([3.0, 4.0], requires_grad=True)
    v = np.array([1.0, 0.5])

    def parts(g: Any) -> list[Any]:
        return [None if part is None else part.tolist() for part in forward_ad.unpack_dual(g)]

    with forward_ad.dual_level():
        d = forward_ad.make_dual(x, func.tensor(v))
        for inputs in (d, x, [x], {"x": d}):
            pulled = func.autograd.grad((d**3).sum(), inputs)
            assert parts(pulled["x"] if isinstance(inputs, dict) else pulled[0]) == [[3, 12], [6, 6]]
        by_both = func.autograd.grad((d * d * y).sum(), [d, y])
        assert [parts(g) for g in by_both] == [[[6, 16], [6, 4]], [[1, 4], [2, 2]]]
        seed = forward_ad.make_dual(func.tensor([1.0, 2.0]), func.tensor([0.5, 0.25]))
        assert parts(func.autograd.grad(d**3, d, seed)[0]) == [[3, 24], [7.5, 15]]
        assert parts(func.autograd.grad((3 * d).sum(), d)[0]) == [[3, 3], None]
        (g,) = func.autograd.grad((d**3).sum(), d, create_graph=True)
        assert func.autograd.grad(forward_ad.unpack_dual(g).tangent.sum(), x)[0].tolist() == [6, 3]
        assert func.autograd.grad((d**3).sum(), [d, y], allow_unused=True)[1] is None
        with pytest.raises(func.errors.BackwardError, match=r"autograd\.grad\(out, x\)"):
            (d**3).sum().backward()
        z = d * 2
        handle = x.register_hook(lambda g: 2 * g)
        with pytest.raises(func.errors.BackwardError, match="has hooks"):
            func.autograd.grad(z.sum(), x)
        handle.remove()
    with forward_ad.dual_level():
        d = forward_ad.make_dual(x.detach(), func.tensor(v)).requires_grad_()
        (g,) = func.autograd.grad((d**3).sum(), d)
        assert parts(g) == [[3, 12], [6, 6]]
        d = forward_ad.make_dual(x, y * 1)
        with pytest.raises(func.errors.BackwardError, match=r"tangent\.detach\(\)"):
            func.autograd.grad((d**3).sum(), d)


class Scaled(Function):
    """x² y, whose rules compute the results that needs_input_grad requests; `seen` has the flags of them and
    forward.
    """

    seen: ClassVar[list[tuple[bool, ...]]] = []
    in_forward: ClassVar[list[tuple[bool, ...]]] = []

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        Scaled.in_forward.append(ctx.needs_input_grad)
        ctx.save_for_backward(x, y)
        return x * x * y

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        x, y = ctx.saved_tensors
        Scaled.seen.append(ctx.needs_input_grad)
        return (
            2 * x * y * ct if ctx.needs_input_grad[0] else None,
            x * x * ct if ctx.needs_input_grad[1] else None,
        )


class ScaledForward(Scaled):
    """The same with a separate rule for forward mode."""

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        Scaled.in_forward.append(ctx.needs_input_grad)
        ctx.save_for_backward(x, y)
        ctx.save_for_forward(x, y)
        return x * x * y

    @staticmethod
    def jvp(ctx: Any, dx: Any, dy: Any) -> Any:
        x, y = ctx.saved_tensors
        Scaled.seen.append(ctx.needs_input_grad)
        by_x = 2 * x * y * dx if ctx.needs_input_grad[0] else 0.0
        return by_x + (x * x * dy if ctx.needs_input_grad[1] else 0.0)


def by_dual(f: Call) -> Call:
    def derivative(x: Any) -> Any:
        with forward_ad.dual_level():
            return forward_ad.unpack_dual(f(forward_ad.make_dual(func.tensor(x), 1.0))).tangent.item()

    return derivative


def by_backward(f: Call) -> Call:
    def derivative(x: Any) -> Any:
        t = func.tensor(x, requires_grad=True)
        f(t).backward()
        return t.grad.item()

    return derivative


DERIVATIVES: dict[str, Callable[[Call], Call]] = {
    "grad": func.grad,
    "jvp": lambda f: lambda x: func.jvp(f, (x,), (1.0,))[1],
    "jacfwd": func.jacfwd,
    "jacrev": func.jacrev,
    "linearize": lambda f: lambda x: func.linearize(f, x)[1](1.0),
    "dual": by_dual,
    "backward": by_backward,
    "grad of jit": lambda f: func.grad(func.jit(f)),
    "jit of grad": lambda f: func.jit(func.grad(f)),
    "jvp of jit": lambda f: lambda x: func.jvp(func.jit(f), (x,), (1.0,))[1],
    "grad of checkpoint": lambda f: func.grad(func.checkpoint(f)),
    "backward of checkpoint": lambda f: by_backward(lambda t: func.autograd.checkpoint(f, t)),
    "grad of vmap": lambda f: func.grad(lambda x: np.sum(func.vmap(f)(np.ones(1) * x))),
    "vmap of grad": lambda f: lambda x: func.vmap(func.grad(f))(np.ones(1) * x)[0],
    "sparse_jacobian": lambda f: lambda x: func.sparse_jacobian(f)(np.ones(1) * x).toarray()[0, 0],
}


@pytest.mark.parametrize("name", DERIVATIVES)
@pytest.mark.parametrize("rule", [Scaled, ScaledForward])
def test_needs_input_grad_tells_which_arguments_move(name: str, rule: Any) -> None:
    derivative = DERIVATIVES[name]
    for f, right, needs in [
        (lambda x: rule.apply(x, 5.0 * np.ones(np.shape(x))), 30.0, (True, False)),
        (lambda y: rule.apply(3.0 * np.ones(np.shape(y)), y), 9.0, (False, True)),
        (lambda x: rule.apply(x, x), 27.0, (True, True)),
    ]:
        Scaled.seen.clear()
        Scaled.in_forward.clear()
        assert derivative(f)(3.0) == right
        assert Scaled.seen and set(Scaled.seen) == {needs}
        assert needs in Scaled.in_forward and not any(flags > needs for flags in Scaled.in_forward)


def test_needs_input_grad_under_a_laplacian_and_without_derivatives() -> None:
    x = np.array([3.0, 2.0])
    assert func.laplacian(lambda z: np.sum(Scaled.apply(z, 5.0 * np.ones(2))))(x) == 20.0
    assert func.laplacian(lambda z: np.sum(Scaled.apply(z, z)))(x) == 30.0
    Scaled.in_forward.clear()
    Scaled.apply(x, x)
    func.vmap(Scaled.apply)(x, x)
    Scaled.apply(func.tensor(x), np.array([1, 2]))
    assert set(Scaled.in_forward) == {(False, False)}


@pytest.mark.parametrize("product", ["jacobian", "hessian", "vjp", "jvp", "vhp", "hvp"])
def test_functional_products_inside_checkpoints_and_duals(product: str) -> None:
    """They differ by the same number, with and without a checkpoint: each is a polynomial of x."""

    def loss(x: Any) -> Any:
        v = np.ones(2)
        if product in ("jacobian", "vjp", "jvp"):
            options: Any = {"create_graph": True} | ({} if product == "jacobian" else {"v": v})
            out = getattr(functional, product)(lambda z: z**4, x, **options)
        else:
            options = {"create_graph": True} | ({} if product == "hessian" else {"v": v})
            out = getattr(functional, product)(lambda z: (z**4).sum(), x, **options)
        return (out[1] if isinstance(out, tuple) else out).sum()

    x = np.array([1.0, 2.0])
    right = 12 * x**2 if product in ("jacobian", "vjp", "jvp") else 24 * x
    np.testing.assert_array_equal(func.grad(loss)(x), right)
    np.testing.assert_array_equal(func.grad(func.checkpoint(loss))(x), right)
    np.testing.assert_array_equal(func.jacfwd(func.checkpoint(loss))(x), right)
    t = func.tensor(x, requires_grad=True)
    func.autograd.checkpoint(loss, t).backward()
    np.testing.assert_array_equal(t.grad.numpy(), right)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(func.tensor(x), func.tensor([1.0, 0.0]))
        assert forward_ad.unpack_dual(loss(dual)).tangent.item() == right[0]


@pytest.mark.parametrize(
    "transform", [lambda f: func.jvp(f, (np.ones(2),), (np.ones(2),)), lambda f: func.jacrev(f)(np.ones(2))]
)
def test_complex_tangents_of_real_outputs_are_refused(transform: Any) -> None:
    double = func.custom_jvp(lambda x: x * 2)
    double.defjvp(lambda primals, tangents: (primals[0] * 2, tangents[0] * 1j))
    with pytest.raises(CustomRuleError, match="complex tangent"):
        transform(double)
