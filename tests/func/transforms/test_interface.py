"""One interface: options that all transforms of a kind take, and the names that completion shows."""

import builtins
import functools
import importlib
import inspect
import pathlib
import pickle
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import func
from func import other_names

X = np.array([0.5, 2.0])
TRANSFORMS = [
    name
    for name in func.__all__
    if inspect.isfunction(made := getattr(func, name)) and next(iter(inspect.signature(made).parameters), "") == "f"
]
BY_ARGNUMS = [name for name in TRANSFORMS if "argnums" in inspect.signature(getattr(func, name)).parameters]
DECORATORS = [
    name
    for name in TRANSFORMS
    if len(parameters := list(inspect.signature(getattr(func, name)).parameters.values())) > 1
    and all([p.default is not p.empty and p.kind is not p.VAR_POSITIONAL for p in parameters[1:]])
    and parameters[-1].kind is not inspect.Parameter.VAR_KEYWORD
]


def by_default(shift: Any = 0.0, x: Any = 0.5) -> Any:
    return np.sin(x) + shift


def of_one(x: Any) -> Any:
    return np.sin(x)


def elementwise(x: Any, *more: Any, scale: Any = 2.0) -> Any:
    return scale * np.sin(x) + sum(more)


@pytest.mark.parametrize("name", BY_ARGNUMS)
def test_argnums_has_argnames_beside_it(name: str) -> None:
    assert "argnames" in inspect.signature(getattr(func, name)).parameters


GIVEN_ARGUMENTS = {"vjp", "jvp", "linearize", "linear_transpose", "hvp", "vhp"}
"""Transforms that take the arguments together with the function."""
NEED_KEYS = {"hutch_plus_plus", "hutchinson_diagonal", "hutchinson_trace"}
OF_NUMBERS = sorted({*BY_ARGNUMS} - GIVEN_ARGUMENTS - NEED_KEYS - {"sparse_hessian", "sparse_jacobian", "sparsity"})


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_argnames_name_defaults_that_were_not_passed(name: str) -> None:
    transform = getattr(func, name)
    got, expected = transform(by_default, argnames="x")(0.0), transform(of_one)(0.5)
    for a, b in zip(func.tree.leaves(got), func.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b)


SPARSE: dict[str, Callable[..., Any]] = {
    "sparse_jacobian": lambda **options: func.sparse_jacobian(by_default_vectors, **options),
    "sparse_hessian": lambda **options: func.sparse_hessian(
        lambda *a, **k: np.sum(by_default_vectors(*a, **k)), **options
    ),
    "sparsity": lambda **options: func.sparsity(by_default_vectors, **options),
}


def by_default_vectors(shift: Any = 1.0, x: Any = X) -> Any:
    return shift * x**3


@pytest.mark.parametrize("name", SPARSE)
def test_argnames_of_sparse_derivatives(name: str) -> None:
    got = SPARSE[name](argnames="x")(2.0, x=X)
    np.testing.assert_array_equal(got.toarray(), SPARSE[name](argnums=1)(2.0, X).toarray())
    if name != "sparse_hessian":
        np.testing.assert_array_equal(SPARSE[name](argnames="x")(2.0).toarray(), got.toarray())


@pytest.mark.parametrize("kind", ["jacobian", "hessian"])
def test_argnames_of_linear_operators(kind: str) -> None:
    def f(shift: Any, x: Any) -> Any:
        values = shift * x**3
        return values if kind == "jacobian" else np.sum(values)

    by_name = func.linear_operator(kind, f, 2.0, X, argnames="x")
    by_number = func.linear_operator(kind, f, 2.0, X, argnums=1)
    np.testing.assert_allclose(by_name @ X, by_number @ X)
    np.testing.assert_allclose(
        by_name @ X, (6.0 if kind == "jacobian" else 12.0) * X ** (3 if kind == "jacobian" else 2)
    )


NOT_CALLED = {"linear_operator"}


@pytest.mark.parametrize("name", sorted({*BY_ARGNUMS} - NOT_CALLED - GIVEN_ARGUMENTS - NEED_KEYS))
def test_errors_name_the_transform_that_was_called(name: str) -> None:
    transform = getattr(func, name)
    for options, error, words in (
        ({"argnames": "c"}, func.errors.ArgumentError, "names 'c'"),
        ({"argnums": 7}, func.errors.ArgumentError, "argnums=7 is out of range"),
        ({"argnames": 3}, TypeError, "argnames .*string"),
    ):
        with pytest.raises(error, match=rf"^func\.{name}\b.*{words}"):
            transform(by_default, **options)(0.0, 0.5)
    with pytest.raises(func.errors.DifferentiatedInputError, match=rf"^func\.{name}\b"):
        transform(by_default)(1, 0.5)


@pytest.mark.parametrize("name", [*DECORATORS, "memory"])
@pytest.mark.parametrize("value", [X, 2.0, np.float64(2.0)])
def test_values_beside_the_function_are_refused_at_once(name: str, value: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=rf"did you mean func\.{name.replace('remat', 'checkpoint')}\("):
        getattr(func, name)(np.sin, value)


@pytest.mark.parametrize("mode", ["auto", "fwd-rev", "rev-rev", "fwd-fwd", "rev-fwd"])
def test_holomorphic_hessians(mode: str) -> None:
    z = np.array([1.0 + 2.0j, 0.5 - 1.0j])
    got = func.hessian(lambda z: z[0] ** 3 * z[1] + np.exp(1j * z[1]), mode=mode, holomorphic=True)(z)
    mixed = 3 * z[0] ** 2
    np.testing.assert_allclose(got, [[6 * z[0] * z[1], mixed], [mixed, -np.exp(1j * z[1])]])


def of_three(x: Any, y: Any = 2.0, *, w: Any = 3.0) -> Any:
    return x**2 * y**3 * w**2


def summed(x: Any, y: Any = 2.0, *, w: Any = 3.0) -> Any:
    return np.sum(of_three(x, y, w=w))


AT_CALL: dict[str, tuple[dict[str, Any], tuple[Any, ...], dict[str, Any]]] = {
    "all": ({}, (X, 5.0), {}),
    "all beside a keyword": ({}, (X, 5.0), {"w": 2.0}),
    "a position": ({"argnums": 1}, (X, 5.0), {"w": 2.0}),
    "the last position": ({"argnums": -1}, (X, 5.0), {}),
    "positions": ({"argnums": (1, 0)}, (X, 5.0), {}),
    "a name": ({"argnames": "w"}, (X,), {"w": 2.0}),
    "a default": ({"argnames": "w"}, (X, 5.0), {}),
    "a positional argument by name": ({"argnames": "x"}, (X, 5.0), {}),
    "names": ({"argnames": ("w", "y")}, (X,), {"y": 1.5}),
    "names alone": ({"argnames": ("w", "x")}, (), {"x": X}),
    "both": ({"argnums": (0,), "argnames": ("y", "w")}, (X,), {}),
    "both, one name": ({"argnums": (0, 1), "argnames": "w"}, (X, 5.0), {}),
}


@pytest.mark.parametrize("case", AT_CALL)
def test_arguments_chosen_at_the_call(case: str) -> None:
    """Products with the derivative take and give the form of what grad returns for the same options."""
    options, args, kwargs = AT_CALL[case]
    chosen = options or {"argnums": tuple(range(len(args)))}
    gradient = func.grad(summed, **chosen)(*args, **kwargs)
    ones = func.tree.map(np.ones_like, gradient)
    leaves, spec = func.tree.flatten(gradient)
    out = of_three(*args, **kwargs)

    got, pullback = func.vjp(of_three, *args, **options, **kwargs)
    np.testing.assert_allclose(got, out)
    cts = pullback(np.ones_like(out))
    again = pickle.loads(pickle.dumps(pullback))(np.ones_like(out))
    assert func.tree.structure(cts) == func.tree.structure(again) == spec
    for a, b, c in zip(leaves, func.tree.leaves(cts), func.tree.leaves(again), strict=True):
        np.testing.assert_allclose([a, a], [b, c])

    _, pushed = func.jvp(of_three, args, ones, **options, **kwargs)
    np.testing.assert_allclose(np.sum(pushed), sum([np.sum(leaf) for leaf in leaves]))
    _, linear = func.linearize(of_three, *args, **options, **kwargs)
    np.testing.assert_allclose(linear(*func.tree.leaves(ones)), pushed)

    expected = func.jvp(func.grad(summed, **chosen), args, ones, **options, **kwargs)[1]
    hessian_product = func.hvp(summed, args, ones, **options, **kwargs)
    for product in (hessian_product, func.vhp(summed, args, ones, **options, **kwargs)):
        assert func.tree.structure(product) == spec
        for a, b in zip(func.tree.leaves(product), func.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(a, b)
    gauss_newton = func.ggnvp(of_three, lambda y: np.sum(y**2) / 2, args, ones, **options, **kwargs)
    by_hand = pullback(pushed)
    assert func.tree.structure(gauss_newton) == spec
    for a, b in zip(func.tree.leaves(gauss_newton), func.tree.leaves(by_hand), strict=True):
        np.testing.assert_allclose(a, b)


def test_tangents_by_name() -> None:
    _, linear = func.linearize(of_three, X, argnums=(0,), argnames=("y", "w"))
    expected = linear(X, 1.0, 2.0)
    for got in (linear(X, y=1.0, w=2.0), linear(X, w=2.0, y=1.0), linear(X, 1.0, w=2.0)):
        np.testing.assert_array_equal(got, expected)
    for wrong in ({"y": 1.0}, {"y": 1.0, "w": 2.0, "z": 3.0}, {"z": 1.0}):
        with pytest.raises(func.errors.TangentError, match="are given by y=, w= after 1 positional ones, not by"):
            linear(X, **wrong)


def test_transposes_of_functions_linear_in_some_arguments() -> None:
    matrix, ct = np.arange(6.0).reshape(2, 3), np.array([1.0, 2.0])

    def product(a: Any, x: Any, *, scale: Any = 1.0) -> Any:
        return scale * (a @ x)

    expected = 2 * matrix.T @ ct
    for got in (
        func.linear_transpose(product, matrix, np.ones(3), argnums=1, scale=2.0)(ct),
        func.linear_transpose(product, matrix, np.ones(3), argnums=(1,), scale=2.0)(ct)[0],
        func.linear_transpose(product, matrix, x=np.ones(3), argnames="x", scale=2.0)(ct),
        func.linear_transpose(product, matrix, x=func.eval_shape(np.sin, np.ones(3)), argnames=("x",), scale=2.0)(ct)[
            "x"
        ],
    ):
        np.testing.assert_allclose(got, expected)


FORMS: dict[str, tuple[Callable[[], Any], str]] = {
    "another name": (
        lambda: func.jvp(of_three, (X,), {"v": 1.0}, argnames=("w",)),
        "func.jvp: tangents must be a dict with the keys 'w', not a dict with the keys 'v'",
    ),
    "no pair": (
        lambda: func.jvp(of_three, (X,), (X, 1.0), argnums=(0,), argnames=("w",)),
        r"must be a pair of a tuple with one entry for each of argnums=\(0,\) and a dict with the keys 'w', not 2",
    ),
    "too few": (
        lambda: func.hvp(summed, (X, 1.0), (X,), argnums=(0, 1)),
        r"tangents must be a tuple with one entry for each of argnums=\(0, 1\), not 1 entries",
    ),
    "a number beside names": (
        lambda: func.vjp(of_three, X, argnums=0, argnames="w"),
        r"func.vjp: argnames='w' takes the place of argnums; for both write argnums=\(0,\)",
    ),
    "a number beside names of grad": (
        lambda: func.grad(of_three, argnums=1, argnames="w"),
        r"func.grad: argnames='w' takes the place of argnums; for both write argnums=\(1,\)",
    ),
    "an option meant for func": (
        lambda: func.vjp(of_three, X, create_graph=True),
        "unexpected keyword argument 'create_graph'; func.vjp has no option 'create_graph', leave it out",
    ),
}


@pytest.mark.parametrize("case", FORMS)
def test_forms_that_the_options_do_not_have(case: str) -> None:
    call, words = FORMS[case]
    with pytest.raises((TypeError, ValueError), match=words):
        call()


@pytest.mark.parametrize("name", ["jvp", "hvp", "vhp", "ggnvp"])
def test_errors_of_products_name_the_product(name: str) -> None:
    product = getattr(func, name)
    functions = (of_three, lambda y: np.sum(y**2)) if name == "ggnvp" else (summed,)
    for args, options, words in (
        (((X, 1.0), (X,)), {"argnums": 0}, "tangents have the tree"),
        (((X, 1.0), (X,)), {"argnums": (0, 1)}, "tangents must be a tuple with one entry for each"),
        (((X, 1.0), 1.0), {"argnums": 0}, "its tangent has shape"),
        (((X, 1.0), {"v": 1.0}), {"argnames": ("w",)}, "tangents must be a dict with the keys 'w'"),
        (((X, 1.0), 1.0), {"argnums": 7}, "argnums=7 is out of range"),
        (((X, 1.0), 1.0), {"argnames": "v"}, "argnames names 'v'"),
    ):
        with pytest.raises((TypeError, ValueError), match=rf"^func\.{name}: .*{words}"):
            product(*functions, *args, **options)


def test_hessian_products_of_holomorphic_functions() -> None:
    z, v = np.array([1.0 + 2.0j, 0.5 - 1.0j]), np.array([1.0j, 2.0])

    def f(z: Any) -> Any:
        return z[0] ** 3 * z[1] + np.exp(1j * z[1])

    np.testing.assert_allclose(func.hvp(f, (z,), (v,), holomorphic=True), func.hessian(f, holomorphic=True)(z) @ v)


@pytest.mark.parametrize("kind", [func.custom_jvp, func.custom_vjp])
def test_rules_take_names_of_arguments_that_are_not_differentiated(kind: Any) -> None:
    def power(x: Any, n: Any) -> Any:
        return x**n

    ruled = kind(power, nondiff_argnames="n")
    if kind is func.custom_jvp:
        ruled.defjvp(lambda n, primals, tangents: (primals[0] ** n, 7.0 * tangents[0]))
    else:
        ruled.defvjp(lambda x, n: (x**n, None), lambda n, _, ct: (7.0 * ct,))
    assert func.grad(ruled)(2.0, 3) == func.grad(lambda x: ruled(x, n=3))(2.0) == 7.0
    assert repr(ruled).startswith(f"func.{kind.__name__}(") and repr(ruled).endswith("power, nondiff_argnums=(1,))")
    with pytest.raises(func.errors.ArgumentError, match=r"nondiff_argnames names 'm', but .* of power are x, n"):
        kind(power, nondiff_argnames=("m",))


def test_arguments_are_donated_by_name() -> None:
    for options in ({"donate_argnames": "w"}, {"donate_argnums": 1}):
        for keyword in (True, False):
            jitted = pickle.loads(pickle.dumps(func.jit(np_add, **options)))
            w = X.copy()
            np.testing.assert_array_equal(jitted(X, w=w) if keyword else jitted(X, w), 2 * X)
            with pytest.raises(func.errors.DonatedBufferError):
                jitted(X, w)
    for wrong, words in (({"donate_argnames": "z"}, "names .'z'."), ({"donate_argnames": 3}, "string or strings")):
        with pytest.raises((TypeError, ValueError), match=words):
            func.jit(np_add, **wrong)
    with pytest.raises(func.errors.ArgumentError, match="both static and donated"):
        func.jit(np_add, donate_argnames="w", static_argnums=1)


def np_add(x: Any, w: Any) -> Any:
    return x + w


def scalar(x: Any) -> Any:
    return np.sum(np.sin(x) * x[0]) + x[-1] ** 3


@pytest.mark.parametrize("name", sorted(NEED_KEYS))
def test_estimates_of_chosen_arguments(name: str) -> None:
    def f(shift: Any, x: Any, *, w: Any = FIVE) -> Any:
        return np.sum(np.sin(x)) * np.sum(w**2) * shift

    estimate: Callable[..., Any] = functools.partial(getattr(func, name), key=KEY, samples=6)
    expected = estimate(lambda x: f(2.0, x))(X)
    for got in (estimate(f, argnums=1)(2.0, X), estimate(f, argnames="x")(2.0, x=X)):
        np.testing.assert_allclose(got, expected)
    of_default = estimate(lambda w: f(2.0, FIVE, w=w))(FIVE)
    np.testing.assert_allclose(estimate(f, argnames="w")(2.0, FIVE), of_default)
    both = estimate(f, argnums=(0, 1))(2.0, X)
    joint = estimate(lambda pair: f(*pair))((2.0, X))
    for a, b in zip(func.tree.leaves(both), func.tree.leaves(joint), strict=True):
        np.testing.assert_allclose(a, b)


def vector_field(x: Any) -> Any:
    return np.sin(x) * x[0]


FIVE = np.linspace(0.5, 1.5, 5)
KEY = func.random.key(0)
CHUNKED: dict[str, tuple[Callable[..., Any], int]] = {
    "vmap": (lambda **options: func.vmap(np.sin, **options)(FIVE), 5),
    "map": (lambda **options: func.map(np.sin, FIVE, **options), 5),
    "jacrev": (lambda **options: func.jacrev(vector_field, **options)(FIVE), 5),
    "jacfwd": (lambda **options: func.jacfwd(vector_field, **options)(FIVE), 5),
    "jacobian": (lambda **options: func.jacobian(vector_field, **options)(FIVE), 5),
    "hessian": (lambda **options: func.hessian(scalar, **options)(FIVE), 5),
    "laplacian": (lambda **options: func.laplacian(scalar, **options)(FIVE), 5),
    "biharmonic": (lambda **options: func.biharmonic(scalar, **options)(FIVE), 5),
    "hessian_diagonal": (lambda **options: func.hessian_diagonal(scalar, **options)(FIVE), 5),
    "divergence": (lambda **options: func.divergence(vector_field, **options)(FIVE), 5),
    "hutchinson_trace": (lambda **options: func.hutchinson_trace(scalar, KEY, 5, **options)(FIVE), 5),
    "hutchinson_diagonal": (lambda **options: func.hutchinson_diagonal(scalar, KEY, 5, **options)(FIVE), 5),
    "hutch_plus_plus": (lambda **options: func.hutch_plus_plus(scalar, KEY, 9, **options)(FIVE), 3),
    "linear_operator": (
        lambda **options: func.linear_operator("hessian", scalar, FIVE, **options) @ np.eye(5),
        0,
    ),
}


def having(option: str) -> set[str]:
    """The public functions with an option."""
    found = set()
    for name in [*func.__all__, "map"]:
        made = getattr(func, name)
        if inspect.isfunction(made) and option in inspect.signature(made).parameters:
            found.add(name)
    return found


def test_tables_of_options_are_complete() -> None:
    assert having("chunk_size") == {*CHUNKED, "sum_over"}
    assert having("progress") == {*CHUNKED, "sum_over"} - {"linear_operator"}
    assert having("holomorphic") == {*HOLOMORPHIC}


def test_the_table_of_options_says_what_signatures_say() -> None:
    page = pathlib.Path(__file__).parents[3] / "docs" / "options.md"
    header, _, *rows = [
        [cell.strip().strip("`") for cell in line.split("|")[1:-1]]
        for line in page.read_text().split("\n## ")[0].splitlines()
        if line.startswith("|")
    ]
    names = [row[0] for row in rows]
    for option, *ticks in zip(*[header[1:], *[row[1:] for row in rows]], strict=True):
        ticked = {name for name, tick in zip(names, ticks, strict=True) if tick}
        assert ticked == having(option) & {*names}
        others = {
            "checkpoint",
            "remat",
            "jit",
            "custom_root",
            "sum_over",
        }  # in which an option of the name has another meaning
        assert having(option) - {*names} <= others, option


def test_the_page_names_the_transforms_that_take_the_point() -> None:
    page = pathlib.Path(__file__).parents[3] / "docs" / "options.md"
    text = page.read_text().split("in one call:")[1].split(".\n")[0]
    named = {*re.findall(r"`(\w+)`", text)}
    with_point = set()
    for name in func.__all__:
        parameters = (
            [*inspect.signature(getattr(func, name)).parameters] if inspect.isfunction(getattr(func, name)) else []
        )
        if {"f", "model"} & {*parameters[:2]} and {"primals", "x", "y0", "args"} & {*parameters[1:3]}:
            with_point.add(name)
    assert named == with_point - {"pure_callback"}  # which is no transform


@pytest.mark.parametrize("name", CHUNKED)
@pytest.mark.parametrize("size", [1, 2, 4, 5, 9])
def test_chunks_change_nothing(name: str, size: int) -> None:
    call, _ = CHUNKED[name]
    for a, b in zip(func.tree.leaves(call()), func.tree.leaves(call(chunk_size=size)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(func.jit(lambda: call(chunk_size=size))(), call(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", sorted({*CHUNKED} - {"linear_operator"}))
@pytest.mark.parametrize("size", [None, 2])
def test_progress_is_shown(name: str, size: int | None, capsys: pytest.CaptureFixture[str]) -> None:
    call, count = CHUNKED[name]
    np.testing.assert_allclose(call(chunk_size=size, progress=True), call(), rtol=1e-12, atol=1e-12)
    shown = capsys.readouterr().err
    total = 5 if (name, size) == ("map", None) else 1 if size is None else -(-count // 2)
    assert name in shown and f"{total}/{total}" in shown
    call(chunk_size=size)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", CHUNKED)
@pytest.mark.parametrize("size", [0, -1, 2.0, True])
def test_chunk_sizes_that_are_none(name: str, size: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="chunk_size"):
        CHUNKED[name][0](chunk_size=size)


HOLOMORPHIC: dict[str, Callable[..., Any]] = {
    "grad": lambda f, x, **options: func.grad(f, **options)(x),
    "value_and_grad": lambda f, x, **options: func.value_and_grad(f, **options)(x)[1],
    "grad_and_value": lambda f, x, **options: func.grad_and_value(f, **options)(x)[0],
    "elementwise_grad": lambda f, x, **options: func.elementwise_grad(polynomial, **options)(x),
    "jacrev": lambda f, x, **options: func.jacrev(polynomial, **options)(x),
    "jacfwd": lambda f, x, **options: func.jacfwd(polynomial, **options)(x),
    "jacobian": lambda f, x, **options: func.jacobian(polynomial, **options)(x),
    "hessian": lambda f, x, **options: func.hessian(f, **options)(x),
    "hvp": lambda f, x, **options: func.hvp(f, (x,), (np.ones_like(x),), **options),
    "laplacian": lambda f, x, **options: func.laplacian(f, **options)(x),
    "biharmonic": lambda f, x, **options: func.biharmonic(f, **options)(x),
    "hessian_diagonal": lambda f, x, **options: func.hessian_diagonal(f, **options)(x),
    "divergence": lambda f, x, **options: func.divergence(polynomial, **options)(x),
}


def polynomial(z: Any) -> Any:
    return z**5 - 2 * z**3 * z[0]


@pytest.mark.parametrize("name", HOLOMORPHIC)
def test_holomorphic_derivatives_continue_the_real_ones(name: str) -> None:
    """A polynomial's derivative at z follows from its derivatives at the real points by interpolation."""
    derivative = HOLOMORPHIC[name]

    def total(z: Any) -> Any:
        return np.sum(polynomial(z))

    base, slope = np.array([0.5, 1.0]), np.array([1.0, -0.5])
    at = np.linspace(-1.0, 1.0, 6)
    real = np.stack([np.reshape(derivative(total, base + t * slope), -1) for t in at])
    t = 0.3 + 0.7j
    expected = [np.polyval(np.polyfit(at, column, 5), t) for column in real.T]
    got = derivative(total, base + t * slope, holomorphic=True)
    np.testing.assert_allclose(np.reshape(got, -1), expected, rtol=1e-9, atol=1e-9)


def test_names_that_star_imports_bring_shadow_no_builtin() -> None:
    names: dict[str, Any] = {}
    exec("from func import *", names)
    assert [name for name in names if hasattr(builtins, name) and name != "__builtins__"] == []
    assert "map" in dir(func) and callable(func.map)


def test_argnames_behind_collected_arguments_are_no_positions() -> None:
    """The place of `scale` in the signature is that of an argument which `more` collects."""
    assert func.grad(elementwise, argnames="scale")(0.5, 1.0, 2.0) == np.sin(0.5)


@pytest.mark.parametrize("name", DECORATORS)
def test_every_transform_is_a_decorator_with_options(name: str) -> None:
    made = getattr(func, name)()(np.sin)
    assert repr(made).partition(", argnums=0")[0].rstrip(")") == f"func.{name.replace('remat', 'checkpoint')}(sin"


@pytest.mark.parametrize("name", sorted({*func.__all__, "map"}))
def test_one_thing_has_one_name(name: str) -> None:
    """No parameter has a name that is another one's elsewhere, but for those that are JAX's main spelling."""
    made = getattr(func, name)
    if inspect.isfunction(made) and made.__module__ != "func.autograd.modes":
        kept = {"vmap": {"in_axes", "out_axes"}, "map": {"batch_size"}}.get(name, set())
        assert {*inspect.signature(made).parameters} & {*other_names.OPTIONS} == kept


@pytest.mark.parametrize("name", [*DECORATORS, "memory", "custom_jvp", "custom_vjp", "custom_vmap"])
def test_the_function_has_the_names_of_peers(name: str) -> None:
    make = getattr(func, name)
    for key in ("f", "fun", "func"):
        assert repr(make(**{key: of_one})) == repr(make(of_one))
        with pytest.raises(TypeError, match=f"multiple values for argument|{name}.* has no option|f appears twice"):
            make(of_one, **{key: of_one})


OTHER_OPTIONS: dict[str, Callable[[], Any]] = {
    "argnum": lambda: func.grad(by_default, argnum=1)(0.0, 0.5) == np.cos(0.5),
    "init_val": lambda: func.fori_loop(0, 3, lambda i, c: c + i, init_val=0) == 3,
    "in_axes": lambda: func.per_sample(by_default, in_axes=(None, 0))._in_dims == (None, 0),
    "a tree's": lambda: func.tree.map(func=np.negative, tree=[1, 2]) == [-1, -2],
    "jvp": lambda: func.jvp(fun=np.sin, primals=(0.0,), tangents=(2.0,)) == (0.0, 2.0),
    "associative_scan": lambda: np.all(func.associative_scan(fn=np.add, elems=X) == np.cumsum(X)),
    "keywords of the function": lambda: func.eval_shape(lambda x, f, fun: x, X, f=1.0, fun=2.0).shape == (2,),
}


@pytest.mark.parametrize("case", OTHER_OPTIONS)
def test_options_of_peers_are_understood(case: str) -> None:
    assert OTHER_OPTIONS[case]()


NO_OPTIONS: dict[str, tuple[Callable[[], Any], str]] = {
    "JAX's": (lambda: func.jit(of_one, inline=True), "func.jit has no option 'inline'; leave it out: compiled calls"),
    "PyTorch's": (lambda: func.vjp(of_one, 1.0, create_graph=True), "no option 'create_graph', leave it out"),
    "elsewhere": (lambda: func.make_program(of_one, return_shape=True), "; write func.eval_shape"),
    "misspelt": (lambda: func.grad(of_one, holomorph=True), "no option 'holomorph'; did you mean holomorphic?"),
    "unknown": (lambda: func.per_sample(of_one, zzz=1), "^func.per_sample has no option 'zzz'; it takes "),
    "of a module": (lambda: func.tree.map(of_one, 1.0, is_leaf=len), "func.tree.map has no option 'is_leaf'; write"),
    "twice": (lambda: func.grad(f=of_one, fun=of_one), "func.grad: f appears twice, also as fun"),
}


@pytest.mark.parametrize("case", NO_OPTIONS)
def test_options_that_func_lacks_are_refused_with_what_to_write(case: str) -> None:
    call, words = NO_OPTIONS[case]
    with pytest.raises(TypeError, match=words):
        call()


def test_errors_of_the_function_stay_its_own() -> None:
    def wrong(x: Any, **options: Any) -> Any:
        raise TypeError("mine")

    for call in (lambda: func.grad(wrong)(1.0, fun=2), lambda: func.eval_shape(wrong, 1.0, fun=2)):
        with pytest.raises(TypeError, match=r"^mine$"):
            call()


ELEMENTWISE: dict[str, tuple[Callable[[], Any], Any]] = {
    "vector": (lambda: func.elementwise_grad(np.tanh)(X), 1 - np.tanh(X) ** 2),
    "number": (lambda: func.elementwise_grad(np.tanh)(0.5), 1 - np.tanh(0.5) ** 2),
    "constant": (lambda: func.elementwise_grad(lambda x: 3.0)(0.5), 0.0),
    "twice": (lambda: func.elementwise_grad(func.elementwise_grad(np.sin))(X), -np.sin(X)),
    "matrix": (lambda: func.elementwise_grad(np.square)(np.ones((2, 3))), np.full((2, 3), 2.0)),
    "second argument": (lambda: func.elementwise_grad(np.multiply, argnums=1)(X, X + 1), X),
    "both": (lambda: np.stack(func.elementwise_grad(np.multiply, argnums=(0, 1))(X, X + 1)), np.stack([X + 1, X])),
    "by name": (lambda: func.elementwise_grad(lambda a, b: a * b, argnames="b")(X, b=X), X),
    "complex": (lambda: func.elementwise_grad(np.sin, holomorphic=True)(X + 1j), np.cos(X + 1j)),
    "jit": (lambda: func.jit(func.elementwise_grad(np.sin))(X), np.cos(X)),
    "vmap": (lambda: func.vmap(func.elementwise_grad(np.sin))(X), np.cos(X)),
}


@pytest.mark.parametrize("case", ELEMENTWISE)
def test_elementwise_grad(case: str) -> None:
    call, expected = ELEMENTWISE[case]
    np.testing.assert_allclose(call(), expected)


@pytest.mark.parametrize("of", [func.make_program, func.to_source])
@pytest.mark.parametrize("n", [2, 3])
def test_static_argnames(of: Callable[..., Any], n: int) -> None:
    def power(x: Any, *, n: int) -> Any:
        return np.sum(x**n) if n > 2 else np.sum(x)

    def fixed(x: Any) -> Any:
        return power(x, n=n)

    fixed.__name__ = "power"
    assert str(of(power, static_argnames="n")(X, n=n)) == str(of(fixed)(X))


def test_clear_caches_forgets_every_program() -> None:
    scale = [2.0]
    first, second = func.jit(lambda x: x * scale[0]), func.jit(lambda x: x - scale[0])
    assert (first(1.0), second(1.0)) == (2.0, -1.0)
    scale[0] = 3.0
    assert (first(1.0), second(1.0)) == (2.0, -1.0)
    func.clear_caches()
    assert (first(1.0), second(1.0)) == (3.0, -2.0)
    assert first.cache_info().misses == 1


@func.tree.register_dataclass(static="power")
@dataclass
class Polynomial:
    weight: Any
    power: Any
    name: str = field(default="p", metadata={"static": True})

    @func.jit
    def jitted(self, x: Any) -> Any:
        return np.sum(self.weight * x) * self.power

    def plain(self, x: Any) -> Any:
        return np.sum(self.weight * x) * self.power


def test_dataclasses_are_trees() -> None:
    model = Polynomial(X, 3)
    assert func.tree.leaves(model)[0] is X and len(func.tree.leaves(model)) == 1
    assert func.tree.path_names(model, "m") == ["m.weight"]
    gradient = func.grad(Polynomial.plain)(model, X)
    np.testing.assert_allclose(gradient.weight, 3 * X)
    assert (type(gradient), gradient.power, gradient.name) == (Polynomial, 3, "p")
    np.testing.assert_allclose(func.grad(Polynomial.jitted)(model, X).weight, 3 * X)


def test_static_fields_are_compared_exactly() -> None:
    for power in (1, 1.0, True, -0.0, 0.0, 0, 2):
        got, expected = Polynomial(X, power).jitted(X), Polynomial(X, power).plain(X)
        assert got == expected and np.signbit(got) == np.signbit(expected)
    with pytest.raises(func.errors.StaticArgumentError, match="the static field 'power' of Polynomial is a list"):
        Polynomial(X, [1]).jitted(X)


def test_what_register_dataclass_refuses() -> None:
    with pytest.raises(func.errors.ArgumentError, match="'height', but the fields of Polynomial are weight"):
        func.tree.register_dataclass(Polynomial, static=("height",))
    with pytest.raises(func.errors.ArgumentError, match="Polynomial is registered already"):
        func.tree.register_dataclass(Polynomial)
    with pytest.raises(TypeError, match="takes a dataclass"):
        func.tree.register_dataclass(int)


MODULES = ["autograd", "collectives", "debug", "errors", "linalg", "numpy", "numpy.fft", "numpy.linalg", "random"]
MODULES += ["scipy", "special", "testing", "tree"]
SCIPY = [f"scipy.{name}" for name in func.scipy.__all__]
SCIPY += ["scipy.signal.windows", "scipy.sparse.linalg", "scipy.spatial.transform"]


@pytest.mark.parametrize("name", ["", *MODULES, *SCIPY])
def test_completion_shows_the_public_names_alone(name: str) -> None:
    module = importlib.import_module(f"func.{name}".rstrip("."))
    public = {
        *module.__all__,
        *(["map"] if not name else []),
        *(importlib.import_module(name).__all__ if name in SCIPY else ()),
    }
    assert {shown for shown in dir(module) if not shown.startswith("__")} == public


def test_completion_of_tensors_shows_what_they_have() -> None:
    x = func.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    names = dir(x)
    assert {"backward", "grad", "requires_grad", "detach", "sum", "at", "__add__"} <= {*names}
    for name in names:
        assert name.startswith("__") or name[0] != "_"
        getattr(x, name)
    assert repr(func.Tensor) == "<class 'func.Tensor'>" and pickle.loads(pickle.dumps(func.Tensor)) is func.Tensor


def of_numbers(x: Any) -> Any:
    return np.sum(np.sin(x))


def equations(x: Any) -> Any:
    return np.array([x[0] ** 2 - 2 * x[1], x[1] - x[0]])


def line(t: Any, slope: Any, shift: Any) -> Any:
    return slope * t + shift


def fitted(p0: list[Any]) -> Any:
    def slopes(t: Any, *p: Any) -> Any:
        return np.stack(func.jacfwd(line, argnums=(1, 2))(t, *p), axis=1)

    return scipy.optimize.curve_fit(line, np.arange(4.0), 2 * np.arange(4.0) + 1, p0=p0, jac=slopes)[0]


INTEGERS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "grad": (func.grad(of_numbers), np.arange(3)),
    "grad of unsigned numbers": (func.grad(of_numbers), np.arange(3, dtype=np.uint8)),
    "grad of an int": (func.grad(of_numbers), 2),
    "vmap": (func.vmap(func.grad(of_numbers)), np.arange(3)),
    "jit": (lambda x: func.jit(func.grad(of_numbers))(x), np.arange(3)),
    "jacobian": (func.jacobian(equations), np.array([1, 2])),
    "jacrev": (func.jacrev(equations), np.array([1, 2])),
    "hessian": (func.hessian(of_numbers), np.arange(3)),
    "laplacian": (func.laplacian(of_numbers), np.arange(3)),
    "vjp": (lambda x: func.vjp(of_numbers, x)[1](1.0), np.arange(3)),
    "elementwise": (func.elementwise_grad(np.sin), np.arange(3)),
    "fsolve": (lambda x: scipy.optimize.fsolve(equations, x, fprime=func.jacobian(equations)), np.array([1, 3])),
    "curve_fit": (lambda p: fitted(list(p)), np.array([1, 1])),
}


@pytest.mark.parametrize("case", INTEGERS)
def test_integers_are_floats_where_the_option_says_so(case: str) -> None:
    call, x = INTEGERS[case]
    expected = call(np.float64(x))
    if case not in ("curve_fit", "fsolve"):  # for SciPy's solvers integers are floats anyway
        with pytest.raises(func.errors.DifferentiatedInputError, match=r"func\.config\.promote_integers = True"):
            call(x)
    with func.config.override(promote_integers=True):
        got = call(x)
    for a, b in zip(func.tree.leaves(got), func.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b)


@pytest.mark.parametrize("x", [True, np.array([True]), [1, 2]])
def test_what_the_option_does_not_promote(x: Any) -> None:
    with func.config.override(promote_integers=True), pytest.raises(func.errors.DifferentiatedInputError) as caught:
        func.grad(lambda x: np.sum(np.asarray(x) * 1.0))(x)
    assert "promote_integers" not in str(caught.value)


def documented(x: Any, w: Any = 1.0) -> Any:
    """Its own documentation."""
    return x * w


DOCUMENTATION: dict[str, tuple[Callable[..., Any], str]] = {
    "grad": (func.grad(documented), "Gradient of documented with respect to x."),
    "argnums": (func.grad(documented, argnums=(1, 0)), "Gradient of documented with respect to w, x."),
    "argnames": (func.hessian(documented, argnames="w"), "Hessian of documented with respect to w."),
    "vmap": (func.vmap(documented), "Vectorised documented."),
    "checkpoint": (func.checkpoint(documented), "func.checkpoint of documented."),
}


@pytest.mark.parametrize("case", DOCUMENTATION)
def test_documentation_begins_with_what_the_transform_computes(case: str) -> None:
    made, begin = DOCUMENTATION[case]
    first, signature, rest = inspect.getdoc(made).split("\n\n")  # type: ignore[union-attr]
    assert (first, rest) == (begin, "Its own documentation.") and signature.startswith("documented(x")
    assert inspect.getdoc(func.grad(func.grad(lambda x: x))).startswith("Gradient of <lambda>")  # type: ignore[union-attr]
    assert func.grad(max).__doc__ and func.grad(lambda *xs: xs[0], argnums=-1).__doc__


def test_documentation_can_be_replaced() -> None:
    made = func.grad(documented)
    made.__doc__ = "Better."
    assert made.__doc__ == "Better."
