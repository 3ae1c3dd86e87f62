"""func.autograd.functional against the transforms, and its rules about shapes, strictness and graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func
from func.autograd import functional

pytestmark = pytest.mark.filterwarnings("error")

X = np.array([0.3, -0.7])
Y = np.array([[1.0, 2.0, 0.5], [0.2, -1.0, 0.7]])
V = np.array([1.0, -2.0])
MODES = [(vectorize, strategy) for vectorize in (False, True) for strategy in ("reverse-mode", "forward-mode")]

OUTPUTS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "one to one": (lambda x: np.sin(x) * x[::-1], (X,)),
    "to a scalar": (lambda x: np.exp(x).sum(), (X,)),
    "to a matrix": (lambda x: np.outer(x, x**2), (X,)),
    "two inputs": (lambda x, y: np.tanh(x @ y), (X, Y)),
    "two outputs": (lambda x: (x**3, (x**2).sum()), (X,)),
    "two and two": (lambda x, y: (x @ y, y * x[:, None]), (X, Y)),
    "scalar input": (lambda x: np.sin(x) * np.arange(3.0), (np.array(0.3),)),
    "independent": (lambda x, y: (x * 2, np.ones(2), y.sum()), (X, Y)),
    "no elements": (lambda x: x[:0] * 2, (X,)),
    "single precision": (lambda x: np.sin(x), (X.astype(np.float32),)),
}

SCALARS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "cubic": (lambda x: (x**3).sum() * x[0], (X,)),
    "of two": (lambda x, y: (np.tanh(x @ y) ** 2).sum(), (X, Y)),
    "one element": (lambda x: (x**4).sum(keepdims=True), (X,)),
    "linear": (lambda x: (3 * x).sum(), (X,)),
    "unused input": (lambda x, y: (x**2).sum(), (X, Y)),
    "constant": (lambda x: np.array(2.0), (X,)),
    "matrix input": (lambda y: np.linalg.slogdet(y @ y.T)[1], (Y,)),
}


def tensors(values: Any, **options: Any) -> Any:
    result = tuple([func.tensor(value, **options) for value in values])
    return result if len(result) > 1 else result[0]


def tupled(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def flat(value: Any) -> list[np.ndarray]:
    return [leaf.detach().numpy() if hasattr(leaf, "detach") else np.asarray(leaf) for leaf in func.tree.leaves(value)]


def agree(actual: Any, expected: Any, **options: Any) -> None:
    actual_leaves, expected_leaves = flat(actual), flat(expected)
    assert [a.shape for a in actual_leaves] == [a.shape for a in expected_leaves]
    for a, b in zip(actual_leaves, expected_leaves, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5 if a.dtype == np.float32 else 1e-10, atol=1e-12, **options)


def like(values: Any, seed: int = 0) -> Any:
    """Random arrays of the same shapes and dtypes."""
    rng = np.random.default_rng(seed)
    arrays = tuple([np.asarray(rng.normal(size=v.shape)).astype(v.dtype) for v in tupled(values)])
    return arrays if isinstance(values, tuple) else arrays[0]


def blocks(function: Callable[..., Any], values: Any) -> Any:
    """The expected Jacobian: by jacrev, which agrees with differences elsewhere."""
    jacobian = func.jacrev(lambda *args: tupled(function(*args)), argnums=tuple(range(len(values))))(*values)
    rows = [tuple(row) if len(values) > 1 else row[0] for row in jacobian]
    return tuple(rows) if isinstance(function(*values), tuple) else rows[0]


@pytest.mark.parametrize("name", OUTPUTS)
@pytest.mark.parametrize("create_graph", [False, True])
def test_vjp_and_jvp(name: str, create_graph: bool) -> None:
    function, values = OUTPUTS[name]
    xs = tensors(values, requires_grad=True)
    out = function(*values)
    out = tuple([np.asarray(o) for o in out]) if isinstance(out, tuple) else np.asarray(out)
    vectors = like(out)
    actual, cts = functional.vjp(function, xs, vectors, create_graph=create_graph)
    agree(actual, out)
    expected = func.vjp(function, *values)[1](vectors)
    agree(cts, expected if len(values) > 1 else expected[0])
    directions = like(values)
    actual, tangents = functional.jvp(function, xs, directions, create_graph=create_graph)
    agree((actual, tangents), func.jvp(function, values, directions))
    if not create_graph:
        assert not any([leaf.requires_grad for leaf in func.tree.leaves((actual, cts, tangents))])


@pytest.mark.parametrize(("vectorize", "strategy"), MODES)
@pytest.mark.parametrize("name", OUTPUTS)
def test_jacobian(name: str, vectorize: bool, strategy: str) -> None:
    function, values = OUTPUTS[name]
    xs = tensors(values, requires_grad=True)
    for create_graph in (False, True):
        actual = functional.jacobian(function, xs, create_graph, vectorize=vectorize, strategy=strategy)
        agree(actual, blocks(function, values))
        assert func.tree.structure(actual) == func.tree.structure(blocks(function, values))
        if not create_graph:
            assert not any([leaf.requires_grad for leaf in func.tree.leaves(actual)])


def second(function: Callable[..., Any], values: Any) -> Any:
    places = tuple(range(len(values)))
    hessian = func.hessian(lambda *args: function(*args).sum(), argnums=places)(*values)
    return hessian if len(values) > 1 else hessian[0][0]


@pytest.mark.parametrize(("vectorize", "strategy"), MODES)
@pytest.mark.parametrize("name", SCALARS)
def test_hessian(name: str, vectorize: bool, strategy: str) -> None:
    function, values = SCALARS[name]
    actual = functional.hessian(function, tensors(values), vectorize=vectorize, outer_jacobian_strategy=strategy)
    agree(actual, second(function, values))
    assert not any([leaf.requires_grad for leaf in func.tree.leaves(actual)])


@pytest.mark.parametrize("product", [functional.vhp, functional.hvp])
@pytest.mark.parametrize("name", SCALARS)
def test_hessian_products(name: str, product: Any) -> None:
    function, values = SCALARS[name]
    directions = like(values)
    rows = second(function, values)
    rows = rows if len(values) > 1 else ((rows,),)
    expected = [
        sum(np.tensordot(block, v, axes=v.ndim) for block, v in zip(row, directions, strict=True)) for row in rows
    ]
    for create_graph in (False, True):
        out, actual = product(function, tensors(values, requires_grad=True), directions, create_graph=create_graph)
        agree(out, function(*values))
        agree(actual, tuple(expected) if len(values) > 1 else expected[0])
        assert create_graph or not any([leaf.requires_grad for leaf in func.tree.leaves((out, actual))])


GRAPHS: dict[str, tuple[Callable[[Any, Any, Any], Any], Callable[[Any, Any, Any], Any]]] = {
    "vjp": (
        lambda x, w, v: functional.vjp(lambda x: np.sin(w * x), x, v, create_graph=True)[1],
        lambda x, w, v: w * np.cos(w * x) * v,
    ),
    "vjp output": (
        lambda x, w, v: functional.vjp(lambda x: np.sin(w * x), x, v, create_graph=True)[0] + 0 * v,
        lambda x, w, v: np.sin(w * x) + 0 * v,
    ),
    "jvp": (
        lambda x, w, v: functional.jvp(lambda x: np.sin(w * x), x, v, create_graph=True)[1],
        lambda x, w, v: w * np.cos(w * x) * v,
    ),
    "vhp": (
        lambda x, w, v: functional.vhp(lambda x: np.sin(w * x).sum(), x, v, create_graph=True)[1],
        lambda x, w, v: -(w**2) * np.sin(w * x) * v,
    ),
    "hvp": (
        lambda x, w, v: functional.hvp(lambda x: np.sin(w * x).sum(), x, v, create_graph=True)[1],
        lambda x, w, v: -(w**2) * np.sin(w * x) * v,
    ),
    **{
        f"jacobian {vectorize} {strategy}": (
            lambda x, w, v, vectorize=vectorize, strategy=strategy: (
                functional.jacobian(lambda x: np.sin(w * x), x, True, vectorize=vectorize, strategy=strategy) @ v
            ),
            lambda x, w, v: w * np.cos(w * x) * v,
        )
        for vectorize in (False, True)
        for strategy in ("reverse-mode", "forward-mode")
    },
    **{
        f"hessian {vectorize} {strategy}": (
            lambda x, w, v, vectorize=vectorize, strategy=strategy: (
                functional.hessian(
                    lambda x: np.sin(w * x).sum(), x, True, vectorize=vectorize, outer_jacobian_strategy=strategy
                )
                @ v
            ),
            lambda x, w, v: -(w**2) * np.sin(w * x) * v,
        )
        for vectorize in (False, True)
        for strategy in ("reverse-mode", "forward-mode")
    },
}


@pytest.mark.parametrize("grad_mode", [func.enable_grad, func.no_grad])
@pytest.mark.parametrize("name", GRAPHS)
def test_results_backpropagate(name: str, grad_mode: Any) -> None:
    """To the inputs, to the vectors, and to tensors that the function closes over."""
    run, reference = GRAPHS[name]
    leaves = [func.tensor(value, requires_grad=True) for value in (X, np.array([1.5, 0.4]), V)]
    plain = [func.tensor(value, requires_grad=True) for value in (X, np.array([1.5, 0.4]), V)]
    expected = func.autograd.grad((reference(*plain) ** 2).sum(), plain)
    if grad_mode is func.no_grad:
        with func.no_grad():
            product = functional.vjp(lambda x: x**2, leaves[0], V, create_graph=True)[1]
        assert product.requires_grad
    actual = func.autograd.grad((run(*leaves) ** 2).sum(), leaves)
    agree(list(actual), list(expected))
    assert all([leaf.grad is None for leaf in leaves])


INSIDE: dict[str, Callable[[Any], Any]] = {
    "jacobian": lambda x: functional.jacobian(lambda y: y**3 * x, x).sum(),
    "forward jacobian": lambda x: functional.jacobian(lambda y: y**3 * x, x, strategy="forward-mode").sum(),
    "hessian": lambda x: functional.hessian(lambda y: (y**3 * x).sum() / 2, x).sum() / x.sum() * x.sum(),
    "hvp": lambda x: functional.hvp(lambda y: (y**3 * x).sum(), x, np.ones(2))[1].sum(),
    "vhp": lambda x: functional.vhp(lambda y: (y**3 * x).sum(), x, np.ones(2))[1].sum(),
    "jvp": lambda x: functional.jvp(lambda y: y**3 * x, x, np.ones(2))[1].sum(),
    "vjp": lambda x: functional.vjp(lambda y: y**3 * x, x, np.ones(2))[1].sum(),
}


@pytest.mark.parametrize("name", INSIDE)
def test_inside_transforms(name: str) -> None:
    """Each is a cubic in x: 3 x**3 (first derivatives), 6 x**2 (second)."""
    function = INSIDE[name]
    is_second = name in ("hessian", "hvp", "vhp")
    factor = 3.0 if name == "hessian" else 6.0
    expected = 2 * factor * X if is_second else 9 * X**2
    agree(func.grad(function)(X), expected)
    agree(func.vmap(func.grad(function))(np.stack([X, X])), np.stack([expected, expected]))
    agree(func.jvp(function, (X,), (V,))[1], expected @ V)


def test_functions_may_differentiate_inside() -> None:
    def slope(x: Any) -> Any:
        (actual,) = func.autograd.grad((x**3).sum(), x, create_graph=True)
        return actual

    for actual in (
        functional.jacobian(slope, X),
        functional.jacobian(slope, X, strategy="forward-mode"),
        functional.jacobian(slope, X, vectorize=True),
        functional.jacobian(slope, X, vectorize=True, strategy="forward-mode"),
    ):
        agree(actual, np.diag(6 * X))
    agree(functional.jvp(slope, X, V)[1], 6 * X * V)
    agree(functional.hvp(lambda x: slope(x).sum(), X, V)[1], 6 * V)


def test_a_single_element_needs_no_vector() -> None:
    x = func.tensor([2.0])
    agree(functional.vjp(lambda x: (x**3).sum(), func.tensor(X))[1], 3 * X**2)
    agree(functional.jvp(lambda x: x**3, x)[1], np.array([12.0]))
    agree(functional.vhp(lambda x: x**3, x)[1], np.array([12.0]))
    agree(functional.hvp(lambda x: x**3, x)[1], np.array([12.0]))


def test_plain_values_are_taken() -> None:
    agree(functional.vjp(lambda x: x**2, [1.0, 2.0], [1.0, 10.0]), (np.array([1.0, 4.0]), np.array([2.0, 40.0])))
    agree(functional.jacobian(lambda x: x**2, 3.0), 6.0)
    agree(functional.hvp(lambda x, y: x * y**2, (1.0, 2.0), (1.0, 1.0)), (4.0, (4.0, 6.0)))


def test_the_inputs_are_left_alone() -> None:
    x = func.tensor(X, requires_grad=True)

    def writes(y: Any) -> Any:
        y = y * 1
        y[0] = y[1] ** 2
        return y

    agree(functional.jacobian(writes, x), np.array([[0.0, 2 * X[1]], [0.0, 1.0]]))
    agree(x, X)
    assert x.grad is None


def test_complex_values() -> None:
    z = X + 1j * V

    def square(z: Any) -> Any:
        return (z * z.conj()).real.sum()

    expected, pullback = func.vjp(square, z)
    agree(functional.vjp(square, func.tensor(z)), (expected, *pullback(1.0)))


def strict(name: str, function: Any, inputs: Any, **options: Any) -> Callable[[], Any]:
    return lambda: getattr(functional, name)(function, inputs, strict=True, **options)


TWO = (X, V)
REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "strict vjp": (strict("vjp", lambda x, y: x, TWO, v=X), RuntimeError, "Output 0 .* independent of input 1"),
    "strict jvp": (strict("jvp", lambda x, y: x, TWO, v=TWO), RuntimeError, "Output 0 .* independent of input 1"),
    "strict jacobian": (strict("jacobian", lambda x: (x, np.ones(2)), X), RuntimeError, "Output 1 .* of input 0"),
    "strict vhp": (strict("vhp", lambda x, y: (x**2).sum(), TWO, v=TWO), RuntimeError, "independent of input 1"),
    "strict hvp": (strict("hvp", lambda x, y: (x**2).sum(), TWO, v=TWO), RuntimeError, "independent of input 1"),
    "strict hessian": (strict("hessian", lambda x: x.sum(), X), RuntimeError, "jacobian .* input 0 is independent"),
    "strict linear vhp": (strict("vhp", lambda x: x.sum(), X, v=X), RuntimeError, "jacobian .* is independent"),
    "strict linear hvp": (strict("hvp", lambda x: x.sum(), X, v=X), RuntimeError, "jacobian .* is independent"),
    "strict vectorize": (strict("jacobian", lambda x: x, X, vectorize=True), RuntimeError, "not supported together"),
    "strict forward": (strict("jacobian", lambda x: x, X, strategy="forward-mode"), RuntimeError, "not supported with"),
    "strict hessian vectorize": (strict("hessian", lambda x: x.sum(), X, vectorize=True), RuntimeError, "together"),
    "strict hessian forward": (
        strict("hessian", lambda x: x.sum(), X, outer_jacobian_strategy="forward-mode"),
        RuntimeError,
        "not supported with outer_jacobian_strategy",
    ),
    "strategy": (lambda: functional.jacobian(np.sin, X, strategy="both"), ValueError, "must be .reverse-mode. or"),
    "no vector vjp": (lambda: functional.vjp(np.sin, X), RuntimeError, "can only be None if the output"),
    "no vector jvp": (lambda: functional.jvp(np.sin, X), RuntimeError, "can only be None if the input"),
    "no vector hvp": (lambda: functional.hvp(np.sum, X), RuntimeError, "can only be None if the input"),
    "shape": (lambda: functional.vjp(np.sin, X, np.ones(3)), RuntimeError, r"should be \(2,\) but got \(3,\)"),
    "count": (lambda: functional.jvp(np.sin, X, (X, X)), RuntimeError, "should be a tuple of 1 tensors.* has 2"),
    "complex vector": (lambda: functional.vjp(np.sin, X, X * 1j), RuntimeError, "entry 0 of v is complex"),
    "not a scalar": (lambda: functional.hessian(np.sin, X), RuntimeError, "should contain a single element"),
    "two scalars": (lambda: functional.hvp(lambda x: (x.sum(), x.sum()), X, X), RuntimeError, "not 2 of them"),
    "integers": (lambda: functional.jacobian(np.sin, np.arange(2)), TypeError, "input 0 has dtype int64"),
    "no inputs": (lambda: functional.jacobian(np.sin, ()), RuntimeError, "at least one input"),
    "not a tensor": (
        lambda: functional.vjp(lambda x: {"a": x}, X),
        TypeError,
        "tensor or a tuple of tensors, not dict",
    ),
    "no function": (lambda: functional.vjp(X, X), TypeError, "takes a function first"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    run, kind, words = REFUSED[name]
    with pytest.raises(kind, match=words):
        run()


def test_strict_where_everything_depends() -> None:
    inputs = (func.tensor(X), func.tensor(V))

    def product(x: Any, y: Any) -> Any:
        return (x**2 * y**2).sum()

    for name in ("jacobian", "hessian"):
        agree(getattr(functional, name)(product, inputs, strict=True), getattr(functional, name)(product, inputs))
    for name in ("vhp", "hvp", "jvp"):
        strictly = getattr(functional, name)(product, inputs, inputs, strict=True)
        agree(strictly, getattr(functional, name)(product, inputs, inputs))
