"""The transforms' signatures and what each promises."""

from __future__ import annotations

import functools
import inspect
import operator
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import func

X = np.array([0.3, 0.7, 1.1])
A = np.arange(9.0).reshape(3, 3) / 10

GRADIENT = "f=None, argnums=0, has_aux=False, *, argnames=None, holomorphic=False, allow_int=False, intercept=False"
SIGNATURES = {
    "grad": GRADIENT,
    "value_and_grad": GRADIENT,
    "grad_and_value": GRADIENT,
    "vjp": "f, /, *primals, argnums=None, argnames=None, has_aux=False, intercept=False, **kwargs",
    "jvp": (
        "f, primals, tangents, *, argnums=None, argnames=None, strict=False, has_aux=False, intercept=False, **kwargs"
    ),
    "linearize": "f, /, *primals, argnums=None, argnames=None, has_aux=False, intercept=False, **kwargs",
    "linear_transpose": "f, /, *primals, argnums=None, argnames=None, intercept=False, **kwargs",
    "jacrev": (
        "f=None, argnums=0, has_aux=False, *, argnames=None, chunk_size=None, holomorphic=False, progress=False, "
        "memory_limit=None, executor=None, intercept=False"
    ),
    "jacfwd": (
        "f=None, argnums=0, has_aux=False, *, argnames=None, randomness='error', chunk_size=None, "
        "holomorphic=False, progress=False, memory_limit=None, executor=None, intercept=False"
    ),
    "jacobian": (
        "f=None, argnums=0, has_aux=False, *, argnames=None, mode='auto', chunk_size=None, "
        "holomorphic=False, progress=False, sparse=False, memory_limit=None, executor=None, intercept=False"
    ),
    "hessian": (
        "f=None, argnums=0, has_aux=False, *, argnames=None, mode='auto', chunk_size=None, "
        "holomorphic=False, progress=False, memory_limit=None, executor=None, intercept=False"
    ),
    "hvp": "f, primals, tangents, *, argnums=None, argnames=None, holomorphic=False, intercept=False, **kwargs",
    "vhp": "f, primals, cotangents, *, argnums=None, argnames=None, intercept=False, **kwargs",
    "ggnvp": "model, loss, primals, tangents, *, argnums=None, argnames=None, intercept=False, **kwargs",
    "vmap": (
        "f=None, in_dims=0, out_dims=0, randomness='error', *, chunk_size=None, axis_name=None, axis_size=None, "
        "in_axes=UNSET, out_axes=UNSET, progress=False, memory_limit=None, executor=None, intercept=False"
    ),
    "stop_gradient": "x",
    "checkpoint": "f=None, *, policy=None, memory_limit=None, intercept=False",
    "remat": "f=None, *, policy=None, memory_limit=None, intercept=False",
    "checkpoint_name": "x, name",
    "custom_jvp": "f=None, nondiff_argnums=(), nondiff_argnames=()",
    "custom_vjp": "f=None, nondiff_argnums=(), nondiff_argnames=()",
    "custom_gradient": "f=None",
    "custom_vmap": "f",
    "eval_shape": "f, /, *args, **kwargs",
    "make_program": "f=None, static_argnums=(), *, static_argnames=None",
    "cond": "pred, true_fun, false_fun, *operands",
    "switch": "index, branches, *operands",
    "while_loop": "cond_fun, body_fun, init, *, max_steps=None",
    "fori_loop": "lower, upper, body_fun, init, *, unroll=1",
    "scan": "f, init, xs=None, length=None, reverse=False, unroll=1, *, checkpoint=False",
    "map": "f, xs, *, chunk_size=None, batch_size=None, executor=None, progress=False",
    "associative_scan": "f, elems, reverse=False, axis=0",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_signature(name: str) -> None:
    parameters = inspect.signature(getattr(func, name)).parameters.values()
    plain = inspect.Signature([p.replace(annotation=inspect.Parameter.empty) for p in parameters])
    assert str(plain) == f"({SIGNATURES[name]})"
    assert name in dir(func)


def quadratic(x: Any) -> Any:
    return x @ A @ x


def test_grad_forms() -> None:
    expected = (A + A.T) @ X
    np.testing.assert_allclose(func.grad(quadratic)(X), expected)
    value, gradient = func.value_and_grad(quadratic)(X)
    assert value == quadratic(X)
    np.testing.assert_allclose(gradient, expected)
    gradient, value = func.grad_and_value(quadratic)(X)
    np.testing.assert_allclose(gradient, expected)

    def two(x: Any, w: Any, scale: Any = 1.0) -> Any:
        return np.sum(x * w) * scale, {"product": x * w}

    gx, aux = func.grad(two, has_aux=True)(X, 2 * X)
    np.testing.assert_allclose(gx, 2 * X)
    np.testing.assert_allclose(aux["product"], 2 * X * X)
    (gx, gw), _ = func.grad(two, argnums=(0, -1), has_aux=True)(X, 2 * X)
    np.testing.assert_allclose(gw, X)
    by_name, _ = func.grad(two, argnames="scale", has_aux=True)(X, X, scale=3.0)
    np.testing.assert_allclose(by_name, np.sum(X * X))
    (positional, named), _ = func.grad(two, argnums=(1,), argnames=("scale",), has_aux=True)(X, X, scale=3.0)
    np.testing.assert_allclose(positional[0], 3 * X)
    np.testing.assert_allclose(named["scale"], np.sum(X * X))


def test_negative_argnums_count_from_the_end() -> None:
    def f(x: Any, y: Any, z: Any) -> Any:
        return x * y**2 * z**3

    whole = func.grad(f, argnums=(0, 1, 2))(2.0, 3.0, 5.0)
    assert whole == (1125.0, 1500.0, 1350.0)
    assert func.grad(f, argnums=(-3, -2, -1))(2.0, 3.0, 5.0) == whole
    assert func.grad(f, argnums=-1)(2.0, 3.0, 5.0) == whole[2]
    assert func.jacfwd(f, argnums=(-1, 0))(2.0, 3.0, 5.0) == (whole[2], whole[0])


def test_trees_and_integer_leaves() -> None:
    params = {"w": X, "layers": [X * 2, (1.5, None)], "count": 3}

    def f(p: Any) -> Any:
        return np.sum(p["w"] * p["layers"][0]) * p["layers"][1][0] * p["count"]

    gradient = func.grad(f)(params)
    np.testing.assert_allclose(gradient["w"], X * 2 * 4.5)
    assert gradient["count"] is None and gradient["layers"][1][1] is None
    assert func.grad(f, allow_int=True)(params)["count"] == 0
    assert func.grad(lambda n: n * 2.0, allow_int=True)(3) == 0


def test_registered_classes_are_trees() -> None:
    class Line:
        def __init__(self, slope: Any, offset: Any) -> None:
            self.slope, self.offset = slope, offset

    func.tree.register_node(Line, lambda line: ((line.slope, line.offset), None), lambda _, parts: Line(*parts))
    gradient = func.grad(lambda line: np.sum(line.slope * X + line.offset))(Line(2.0, 1.0))
    assert isinstance(gradient, Line) and gradient.offset == 3


def test_complex_convention() -> None:
    assert func.grad(lambda z: np.abs(z) ** 2)(1 + 2j) == 2 + 4j
    assert func.grad(lambda z: np.real(z * z))(1 + 2j) == 2 - 4j
    assert func.grad(lambda z: z**2, holomorphic=True)(1 + 2j) == 2 + 4j
    _, pullback = func.vjp(lambda z: z**2, 1 + 2j)
    assert pullback(1 + 0j)[0] == 2 - 4j
    z = X + 1j * X[::-1]
    np.testing.assert_allclose(func.jacrev(np.exp, holomorphic=True)(z), np.diag(np.exp(z)))
    np.testing.assert_allclose(func.jacfwd(np.exp, holomorphic=True)(z), np.diag(np.exp(z)))


def test_vjp_is_reusable_printable_and_picklable() -> None:
    out, pullback = func.vjp(lambda x, y: {"p": x * y, "s": np.sum(np.exp(x))}, X, 2 * X)
    ct = {"p": np.ones(3), "s": 2.0}
    first, second = pullback(ct), pullback(ct)
    np.testing.assert_array_equal(first[0], second[0])
    np.testing.assert_allclose(first[0], 2 * X + 2 * np.exp(X))
    assert "bytes saved" in repr(pullback) and "exp" in repr(pullback)
    again = pickle.loads(pickle.dumps(pullback))
    np.testing.assert_array_equal(again(ct)[1], first[1])
    assert set(out) == {"p", "s"}


def test_forward_forms() -> None:
    _, dot = func.jvp(quadratic, (X,), (X,))
    np.testing.assert_allclose(dot, 2 * quadratic(X))
    _, dot, aux = func.jvp(lambda x: (x**2, "kept"), (X,), (np.ones(3),), has_aux=True)
    assert aux == "kept"
    with pytest.raises(func.errors.NotDifferentiableError, match="does not depend"):
        func.jvp(lambda x: 1.0, (X,), (X,), strict=True)
    _, push = func.linearize(quadratic, X)
    np.testing.assert_allclose(push(X), 2 * quadratic(X))
    assert "linearized quadratic" in repr(push)
    transposed = func.linear_transpose(lambda x: A @ x, X)
    np.testing.assert_allclose(transposed(np.ones(3))[0], A.T @ np.ones(3))


def test_jacobians_agree_in_every_mode_and_chunk() -> None:
    def f(p: Any) -> Any:
        return {"a": np.outer(p["x"], p["y"]), "b": np.sum(p["x"])}

    p = {"x": X, "y": X[:2]}
    reference = func.jacrev(f)(p)
    assert reference["a"]["x"].shape == (3, 2, 3) and reference["b"]["y"].shape == (2,)
    for other in (
        func.jacfwd(f)(p),
        func.jacobian(f)(p),
        func.jacobian(f, mode="fwd")(p),
        func.jacrev(f, chunk_size=2)(p),
        func.jacfwd(f, chunk_size=2)(p),
    ):
        for one, two in zip(func.tree.leaves(other), func.tree.leaves(reference), strict=True):
            np.testing.assert_allclose(one, two)
    pair = func.jacrev(lambda x, y: x * y, argnums=(0, 1))(X, 2 * X)
    np.testing.assert_allclose(pair[1], np.diag(X))


@pytest.mark.parametrize("mode", ["auto", "fwd-rev", "rev-rev", "fwd-fwd", "rev-fwd"])
def test_hessians(mode: str) -> None:
    np.testing.assert_allclose(func.hessian(quadratic, mode=mode)(X), A + A.T, atol=1e-12)
    np.testing.assert_allclose(func.hessian(quadratic, mode=mode, chunk_size=2)(X), A + A.T, atol=1e-12)
    nested = func.hessian(lambda x, y: np.sum(x * y * y), argnums=(0, 1), mode=mode)(X, X)
    np.testing.assert_allclose(nested[0][1], np.diag(2 * X))


def test_hessian_products() -> None:
    matrix = func.hessian(lambda x: np.sum(np.sin(x) * x[::-1]))(X)
    v = np.array([1.0, -2.0, 0.5])

    def f(x: Any) -> Any:
        return np.sum(np.sin(x) * x[::-1])

    np.testing.assert_allclose(func.hvp(f, (X,), (v,)), matrix @ v)
    np.testing.assert_allclose(func.vhp(f, (X,), (v,)), v @ matrix)
    jacobian = func.jacrev(lambda x: np.sin(A @ x))(X)
    product = func.ggnvp(lambda x: np.sin(A @ x), lambda y: np.sum(y**2), (X,), (v,))
    np.testing.assert_allclose(product, jacobian.T @ (2 * jacobian @ v))


@pytest.mark.parametrize(("chunk_size", "steps"), [(1, 3), (2, 2), (3, 1), (None, 1)])
@pytest.mark.parametrize(
    ("transform", "function", "label"),
    [
        (func.vmap, np.sin, "vmap sin"),
        (func.jacrev, np.sin, "jacrev sin"),
        (func.jacfwd, np.sin, "jacfwd sin"),
        (func.hessian, quadratic, "quadratic"),
    ],
)
def test_progress_bars(
    transform: Any, function: Any, label: str, chunk_size: int | None, steps: int, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = transform(function, chunk_size=chunk_size, progress=True)(X)
    printed = capsys.readouterr().err
    assert label in printed and f"{steps}/{steps}" in printed
    np.testing.assert_array_equal(shown, transform(function, chunk_size=chunk_size)(X))
    assert not capsys.readouterr().err


def test_vmap_axes() -> None:
    batch = np.stack([X, 2 * X])
    np.testing.assert_allclose(func.vmap(np.sum, in_dims=1)(batch), batch.sum(axis=0))
    np.testing.assert_allclose(func.vmap(np.sum, in_axes=-1)(batch), batch.sum(axis=0))
    np.testing.assert_allclose(func.vmap(np.sin, out_dims=1)(batch), np.sin(batch).T)
    np.testing.assert_allclose(func.vmap(lambda x: x, out_axes=-1)(batch), batch.T)
    tree = func.vmap(lambda p, s: {"o": p["a"] * s + p["b"]}, in_dims=({"a": 0, "b": None}, None))(
        {"a": batch, "b": X}, 2.0
    )
    np.testing.assert_allclose(tree["o"], 2 * batch + X)
    named = func.vmap(lambda x, *, w, b: x * w + b, in_dims=(0, {"b": None}))(batch, w=batch, b=X)
    np.testing.assert_allclose(named, batch * batch + X)
    assert func.vmap(lambda: 3.0, in_dims=(), axis_size=4)().tolist() == [3.0] * 4
    constant = func.vmap(lambda x: (x, X), out_dims=(0, None))(batch)
    assert constant[1].shape == (3,)
    nested = func.vmap(func.vmap(lambda x, y: x * y, in_dims=(None, 0)), in_dims=(0, None))(X, X)
    np.testing.assert_allclose(nested, np.outer(X, X))


@pytest.mark.parametrize("chunk", [1, 2, 5, "auto"])
def test_vmap_chunks(chunk: Any) -> None:
    batch = np.arange(12.0).reshape(4, 3)
    got = func.vmap(lambda x, s: (x * s, np.sum(x)), in_dims=(0, None), chunk_size=chunk)(batch, 2.0)
    np.testing.assert_allclose(got[0], batch * 2)
    np.testing.assert_allclose(got[1], batch.sum(axis=1))


def test_eval_shape_and_program() -> None:
    shapes = func.eval_shape(lambda x: {"o": np.outer(x, x), "m": np.max(x)}, X)
    assert shapes["o"].shape == (3, 3) and shapes["m"].dtype == np.float64
    program = func.make_program(lambda x, n: np.sum(x**n), static_argnums=1)(X, 3)
    np.testing.assert_allclose(program(X)[0], np.sum(X**3))
    assert "power" in repr(program) and "test_transforms.py" in program.text(lines=True)


def test_custom_jvp_in_every_mode() -> None:
    calls: list[str] = []

    @func.custom_jvp
    def f(x: Any, y: Any) -> Any:
        return np.sin(x) * y

    @f.defjvp
    def f_jvp(primals: Any, tangents: Any) -> Any:
        calls.append("rule")
        (x, y), (dx, dy) = primals, tangents
        return f(x, y), np.cos(x) * y * dx + np.sin(x) * dy

    plain = f.function
    for transform in (
        lambda g: func.grad(lambda x: np.sum(g(x, X)))(X),
        lambda g: func.jvp(g, (X, X), (X, X))[1],
        lambda g: func.hessian(lambda x: np.sum(g(x, X)))(X),
        lambda g: func.vmap(func.grad(g), in_dims=(0, None))(X, 2.0),
        lambda g: func.vmap(g)(X, X),
        lambda g: func.linearize(g, X, X)[1](X, X),
    ):
        np.testing.assert_allclose(transform(f), transform(plain), atol=1e-12)
    assert calls

    @func.custom_jvp
    def by_parts(x: Any, y: Any) -> Any:
        return x * y

    by_parts.defjvps(lambda t, out, x, y: t * y, None)
    assert func.grad(by_parts, argnums=(0, 1))(2.0, 3.0) == (3.0, 0.0)


def test_custom_vjp_in_every_mode() -> None:
    @func.custom_vjp
    def f(x: Any, y: Any) -> Any:
        return np.sin(x) * y

    f.defvjp(lambda x, y: (np.sin(x) * y, (x, y)), lambda r, ct: (ct * np.cos(r[0]) * r[1], ct * np.sin(r[0])))
    plain = f.function
    for transform in (
        lambda g: func.grad(lambda x: np.sum(g(x, X)))(X),
        lambda g: func.jvp(g, (X, X), (X, X))[1],
        lambda g: func.hessian(lambda x: np.sum(g(x, X)))(X),
        lambda g: func.vmap(func.grad(g), in_dims=(0, None))(X, 2.0),
        lambda g: func.grad(lambda x: np.sum(func.vmap(g, in_dims=(0, None))(x, 2.0)))(X),
        lambda g: func.grad(lambda y: np.sum(func.vmap(g, in_dims=(0, None))(X, y)))(2.0),
        lambda g: func.grad(lambda y: np.sum(g(X, y)))(2 * X),
        lambda g: func.linearize(g, X, X)[1](X, X),
    ):
        np.testing.assert_allclose(transform(f), transform(plain), atol=1e-12)


def test_custom_vjp_with_static_arguments_and_none() -> None:
    def power(n: int, x: Any, unused: Any) -> Any:
        return x**n

    f = func.custom_vjp(power, nondiff_argnums=(0,))
    f.defvjp(lambda n, x, unused: (x**n, x), lambda n, x, ct: (ct * n * x ** (n - 1) * 10, None))
    assert func.grad(f, argnums=(1, 2))(3, 2.0, 1.0) == (120.0, 0.0)

    @func.custom_vjp
    def scaled(count: Any, x: Any) -> Any:
        return count * x

    scaled.defvjp(lambda count, x: (count * x, count), lambda count, ct: (None, 10 * count * ct))
    np.testing.assert_array_equal(func.grad(lambda x: np.sum(scaled(np.arange(3), x)))(X), [0, 10, 20])


def test_custom_gradient_and_stop_gradient() -> None:
    @func.custom_gradient
    def f(x: Any, y: Any) -> Any:
        return x * y, lambda ct: (ct * y * 2, ct * x * 2)

    assert func.grad(f, argnums=(0, 1))(2.0, 3.0) == (6.0, 4.0)
    assert func.grad(lambda x: x * func.stop_gradient({"a": x})["a"])(3.0) == 3.0


def test_custom_vmap() -> None:
    seen: list[Any] = []

    @func.custom_vmap
    def f(x: Any, y: Any) -> Any:
        return x * y

    @f.def_vmap
    def f_rule(axis_size: int, in_batched: Any, x: Any, y: Any) -> Any:
        seen.append((axis_size, in_batched))
        return x * y, True

    np.testing.assert_allclose(func.vmap(f, in_dims=(0, None))(X, 2.0), 2 * X)
    assert seen == [(3, (True, False))]
    np.testing.assert_allclose(func.vmap(func.grad(f))(X, X), X)
    np.testing.assert_allclose(func.grad(lambda x: np.sum(func.vmap(f)(x, X)))(X), X)
    np.testing.assert_allclose(func.jvp(f, (X, X), (X, X))[1], 2 * X * X)


POLICIES = {
    "none": None,
    "everything": func.checkpoint_policies.everything_saveable,
    "nothing": func.checkpoint_policies.nothing_saveable,
    "dots": func.checkpoint_policies.dots_saveable,
    "dots without batch": func.checkpoint_policies.dots_with_no_batch_dims_saveable,
    "names": func.checkpoint_policies.save_only_these_names("hidden"),
    "other names": func.checkpoint_policies.save_any_names_but_these("hidden"),
    "except names": func.checkpoint_policies.save_anything_except_these_names("hidden"),
    "both": func.checkpoint_policies.save_from_both_policies(
        func.checkpoint_policies.dots_saveable, func.checkpoint_policies.save_only_these_names("hidden")
    ),
}


@pytest.mark.parametrize("name", POLICIES)
def test_checkpoint_policies(name: str) -> None:
    def f(x: Any) -> Any:
        for _ in range(3):
            x = func.checkpoint_name(np.tanh(A @ x), "hidden") * x + (x if np.sum(x) > 0 else 0.0)
        return np.sum(x**2)

    light = func.checkpoint(f, policy=POLICIES[name])
    np.testing.assert_allclose(func.grad(light)(X), func.grad(f)(X))
    np.testing.assert_allclose(func.hessian(light)(X), func.hessian(f)(X))
    np.testing.assert_allclose(func.jvp(light, (X,), (X,))[1], func.jvp(f, (X,), (X,))[1])
    batch = np.stack([X, 2 * X])
    np.testing.assert_allclose(func.vmap(func.grad(light))(batch), func.vmap(func.grad(f))(batch))


@pytest.mark.parametrize(("name", "arrays"), [("none", 1), ("nothing", 1), ("names", 2), ("everything", 5)])
def test_checkpoints_keep_what_their_policy_names(name: str, arrays: int) -> None:
    """Arrays other than the argument: one array that has the name, or the four of all steps."""

    def f(x: Any) -> Any:
        hidden = func.checkpoint_name(np.cos(x), "hidden")
        return np.sin(hidden) * np.exp(x)

    x = func.tensor(X, requires_grad=True)
    out = func.checkpoint(f, policy=POLICIES[name])(x)
    assert func.autograd.graph.saved_bytes(out) == arrays * X.nbytes


def test_checkpoint_saves_memory_and_follows_closures() -> None:
    def f(x: Any) -> Any:
        for _ in range(20):
            x = np.sin(x) * x
        return x

    x = np.ones(1000)
    full = repr(func.vjp(f, x)[1])
    light = repr(func.vjp(func.checkpoint(f), x)[1])
    size = [int(text.split(" bytes")[0].split()[-1]) for text in (full, light)]
    assert size[1] < size[0] / 10

    def outer(w: Any) -> Any:
        weights = {"w": w}
        return np.sum(func.checkpoint(lambda t: np.sin(weights["w"] * t))(X))

    np.testing.assert_allclose(func.grad(outer)(2.0), np.sum(np.cos(2.0 * X) * X))


def newton(a: Any) -> Any:
    guess = a
    while abs(guess * guess - a) > 1e-12:
        guess = 0.5 * (guess + a / guess)
    return guess


def test_batches_are_split() -> None:
    values = np.array([3.0, 9.0, 2.0, 100.0])
    np.testing.assert_allclose(func.vmap(newton)(values), np.sqrt(values))
    np.testing.assert_allclose(func.vmap(func.grad(newton))(values), 0.5 / np.sqrt(values))
    np.testing.assert_allclose(func.grad(lambda v: np.sum(func.vmap(newton)(v)))(values), 0.5 / np.sqrt(values))
    early = func.vmap(lambda x: x * 2 if x > 3 else -x)
    np.testing.assert_allclose(early(np.arange(6.0)), [0, -1, -2, -3, 8, 10])
    nested = func.vmap(func.vmap(lambda x, y: x if x > y else y * 10, in_dims=(0, None)), in_dims=(None, 0))
    np.testing.assert_allclose(nested(np.arange(3.0), np.arange(2.0)), [[0, 1, 2], [10, 10, 2]])
    masked = func.vmap(lambda x: np.sum(x[x > 0.5]))(np.array([[0.1, 0.9, 0.8], [0.6, 0.2, 0.3]]))
    np.testing.assert_allclose(masked, [1.7, 0.6])
    counted = func.vmap(lambda n: sum([i for i in range(int(n))]))(np.array([3, 0, 4]))
    assert counted.tolist() == [3, 0, 6]
    items = func.vmap(lambda n, x: x ** n.item())(np.array([1, 2, 1]), X)
    np.testing.assert_allclose(items, X ** np.array([1, 2, 1]))
    agreed = func.vmap(lambda x, n: x * n.item() if n > 1 else x, in_dims=(0, None))(X, np.array(2))
    np.testing.assert_allclose(agreed, 2 * X)


def test_user_code_that_catches_exceptions_does_not_hide_the_split() -> None:
    def f(x: Any) -> Any:
        try:
            return x * 2 if x > 0.5 else x
        except Exception:
            return x * 0

    np.testing.assert_allclose(func.vmap(f)(X), [0.3, 1.4, 2.2])


WAVE = np.array([0.3, 0.4])
COMPLEX_JACOBIANS: dict[str, Any] = {
    "jacfwd": func.jacfwd,
    "jacrev": func.jacrev,
    "jacobian": func.jacobian,
    "jacrev in chunks": lambda f: func.jacrev(f, chunk_size=1),
    "jacrev on an executor": lambda f: lambda x: _on_two_threads(func.jacrev, f, x),
    "jit of jacrev": lambda f: func.jit(func.jacrev(f)),
    "jit of jacfwd": lambda f: func.jit(func.jacfwd(f)),
    "jacrev of jit": lambda f: func.jacrev(func.jit(f)),
    "vmap of jacrev": lambda f: lambda x: func.tree.map(lambda block: block[0], func.vmap(func.jacrev(f))(x[None])),
}


def _on_two_threads(transform: Any, f: Any, x: Any) -> Any:
    with ThreadPoolExecutor(2) as executor:
        return transform(f, executor=executor)(x)


@pytest.mark.parametrize("name", COMPLEX_JACOBIANS)
def test_jacobians_of_complex_outputs_of_real_arguments(name: str) -> None:
    transform = COMPLEX_JACOBIANS[name]
    out = transform(lambda x: np.exp(1j * x))(WAVE)
    np.testing.assert_allclose(out, np.diag(1j * np.exp(1j * WAVE)), rtol=1e-15)
    single = transform(lambda x: np.exp(1j * x))(WAVE.astype(np.float32))
    assert single.dtype == np.complex64
    sums = transform(lambda x: (np.sum(x * 1j), x**2, np.ones(1) * 1j))(WAVE)
    assert [np.asarray(part).dtype.kind for part in sums] == ["c", "f", "c"]
    np.testing.assert_array_equal(sums[0], [1j, 1j])
    np.testing.assert_array_equal(sums[2], np.zeros((1, 2)))


@pytest.mark.parametrize("mode", ["fwd-rev", "rev-rev", "fwd-fwd", "rev-fwd"])
def test_hessians_of_complex_outputs_of_real_arguments(mode: str) -> None:
    x, y = WAVE
    right = np.exp(1j * x) * np.array([[-(y**3), 3j * y**2], [3j * y**2, 6 * y]])
    np.testing.assert_allclose(func.hessian(lambda v: np.exp(1j * v[0]) * v[1] ** 3, mode=mode)(WAVE), right)


ACCUMULATORS: dict[str, Any] = {
    "a number": lambda x: 0.0 + 2 * x,
    "sum": lambda x: sum([2 * x, 3 * x]),
    "zeros_like": lambda x: np.zeros_like(x) + x,
    "zeros": lambda x: x + np.zeros(3),
    "a difference": lambda x: np.zeros(3) - x,
    "in place": lambda x: functools.reduce(operator.iadd, [x, 2 * x], np.zeros_like(x)),
}


@pytest.mark.parametrize("name", ACCUMULATORS)
def test_linear_transpose_takes_sums_that_begin_with_zero(name: str) -> None:
    f = ACCUMULATORS[name]
    ct = np.array([1.0, 10.0, 100.0])
    right = f(np.ones(3)) * ct
    np.testing.assert_array_equal(func.linear_transpose(f, np.ones(3))(ct)[0], right)
    np.testing.assert_array_equal(func.jit(lambda ct: func.linear_transpose(f, np.ones(3))(ct)[0])(ct), right)
    with pytest.raises(func.errors.NotDifferentiableError, match="adds a constant"):
        func.linear_transpose(lambda x: f(x) + np.array([0.0, 0.0, 1.0]), np.ones(3))
