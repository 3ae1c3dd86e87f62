"""Laplacians, divergences and diagonals against traces of Hessians, and estimates against what they estimate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import integrate, interpolate, optimize

import func
from func.errors import ArgumentError, DifferentiatedInputError, LeakedTracerError, ScalarOutputError
from func.interpreters.core import PRIMITIVES
from tests.support.samples import SAMPLES
from tests.support.sampling import Sample

RNG = np.random.default_rng(0)
x, X, W = RNG.normal(size=3), RNG.normal(size=(4, 3)), RNG.normal(size=(3, 5))
KEY = func.random.key(0)
ANYTHING: Any = x
HALF: Any = 0.5


def trace(f: Callable[..., Any], point: Any) -> Any:
    """The trace of the Hessian, of each output element."""
    hessian = func.jacfwd(func.jacrev(f))(point)
    size = np.size(point)
    shape = np.shape(hessian)[: np.ndim(hessian) - 2 * np.ndim(point)]
    return np.trace(np.reshape(hessian, (*shape, size, size)), axis1=-2, axis2=-1)


def writes(a: Any) -> Any:
    out = np.zeros_like(a)
    out[0] = a[1] ** 2
    out[1:] += np.sin(a[1:])
    out *= a
    return np.sum(out**2)


@func.custom_jvp
def with_tangent_rule(a: Any) -> Any:
    return np.sin(a)


with_tangent_rule.defjvp(lambda primals, tangents: (np.sin(primals[0]), np.cos(primals[0]) * tangents[0]))


@func.custom_vmap
def with_batching(a: Any) -> Any:
    return np.sin(a)


with_batching.def_vmap(lambda size, batched, a: (np.sin(a), batched[0]))


def linear_solve(a: Any) -> Any:
    matrix = 3 * np.eye(3) + np.outer(a, a)
    return func.custom_linear_solve(
        lambda y: matrix @ y, np.sin(a), lambda matvec, b: np.linalg.solve(matrix, b), symmetric=True
    )


def wave(a: Any) -> Any:
    return np.exp(1j * a) * (1 + a)


# fmt: off
FUNCTIONS: dict[str, tuple[Callable[..., Any], Any]] = {
    "a scalar": (lambda a: np.sin(a) * a, 0.3),
    "an elementwise prefix": (lambda a: np.sum(np.tanh(a**2) * np.exp(a)), X),
    "a sum over particles": (lambda a: np.exp(np.sum(np.sum(np.sin(a) * a, axis=1) ** 2)), X),
    "a sum beside elements": (lambda a: np.sum(np.sum(np.sin(a) * a, axis=1) ** 2) * a[1, 2] ** 2 * a[3, 0], X),
    "a network": (lambda a: np.tanh(np.tanh(a @ W) @ W.T), X),
    "pairs": (lambda a: np.sum(1 / (1 + np.sum((a[:, None] - a[None]) ** 2, axis=-1))), X),
    "a quotient": (lambda a: np.sum(a / (1 + np.sum(a**2))), X),
    "a Gram matrix": (lambda a: np.sin(a @ a.T), X),
    "mixed axes": (lambda a: np.einsum("ij,kj,k->i", a, a**2, np.sin(a[:, 0])), X),
    "other shapes": (lambda a: np.sum(np.sin(a.T.reshape(2, 6)) ** 2 * a.reshape(2, 6)), X),
    "a stretched axis": (lambda a: np.sum((np.sin(a[:, :1]) * a) ** 2) + np.sum(np.sin(a[None]) * a[:, None]), X),
    "an axis of length one": (lambda a: np.sum(np.exp(a * np.arange(5.0))), X[:, :1]),
    "indices": (lambda a: a[1] * a[0, 2] + a[3, 1] ** 3, X),
    "concatenation": (lambda a: np.sum(np.concatenate([a, a**2]) ** 3), X),
    "a choice": (lambda a: np.max(a**2) + np.where(a > 0, a**3, np.sin(a)), X),
    "writes": (writes, X),
    "a Slater determinant": (lambda a: np.linalg.slogdet(np.exp(a @ W[:, :4]))[1], X),
    "a solve": (lambda a: np.linalg.solve(a[:3] @ a[:3].T + np.eye(3), a[3]), X),
    "an eigenvalue": (lambda a: np.linalg.eigvalsh(a + a.T)[0], X[:3]),
    "a scan": (lambda a: func.scan(lambda c, b: (np.sin(c * b) + b, c * b), 1.0, a)[0], x),
    "a loop": (lambda a: func.fori_loop(0, 3, lambda i, c: np.sin(c) * a, a), x),
    "a branch": (lambda a: func.cond(a[0] > 0, lambda b: np.sum(b**3), np.prod, a), x),
    "a compiled call": (lambda a: func.jit(lambda b: np.sum(np.sin(b @ W) ** 2))(a), x),
    "a checkpoint": (lambda a: func.checkpoint(lambda b: np.sum(np.sin(b @ W) ** 2))(a), x),
    "a rule": (lambda a: np.sum(with_tangent_rule(a @ W) ** 2), x),
    "complex values": (lambda a: np.sum(np.abs(np.exp(1j * a) + a) ** 2 * np.angle(a + 1j * a**2)), X),
    "complex values beside real ones": (lambda a: np.sum(np.imag(np.conj(wave(a)) ** a * (a ** wave(a)) / wave(a))), x),
    "collectives": (lambda a: func.vmap(lambda b: func.collectives.psum(b**2, "i") * b, axis_name="i")(a), x),
    "a rule for batches": (lambda a: with_batching(a) * a, x),
    "a linear solve": (linear_solve, x),
    "a spline": (lambda a: interpolate.CubicSpline(np.arange(3.0), a**2)(np.sin(a)), x),
    "an integral": (lambda a: integrate.quad(lambda t: np.sin(t * a[0]) * a[1], 0, a[2])[0], x),
    "a Fourier transform": (lambda a: np.sum(np.abs(np.fft.fft(a)) ** 3), x),
    "a difference with its transpose": (lambda a: np.sum((a - a.T) ** 4 * a), X[:, :1]),
    "batched products": (lambda a: np.sin((a[:, None, :] * np.ones((3, 1))) @ (a[:, :, None] + np.eye(3))), X),
    "a root of SciPy": (lambda p: optimize.root(lambda a: a**3 + a - p, np.zeros(3), tol=1e-13).x, x),
    "a mapped branch": (lambda a: func.vmap(lambda b: func.cond(b[0] > 0, np.sum, np.prod, b))(a), X),
    "a gradient inside": (lambda a: np.sum(func.grad(lambda b: np.sum(np.sin(b @ W)))(a) ** 2), x),
}
# fmt: on


@pytest.mark.parametrize("name", FUNCTIONS)
def test_laplacian_is_the_trace_of_the_hessian(name: str) -> None:
    f, point = FUNCTIONS[name]
    expected = trace(f, point)
    np.testing.assert_allclose(func.laplacian(f)(point), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(func.jit(func.laplacian(f))(point), expected, rtol=1e-9, atol=1e-9)


def is_small_and_real(sample: Sample) -> bool:
    active = [np.asarray(sample.args[i]) for i in sample.differentiable]
    return bool(active) and all(a.dtype == np.float64 for a in active) and sum(a.size for a in active) <= 8


SMALL = {name: next(filter(is_small_and_real, samples), None) for name, samples in SAMPLES.items()}
CASES = [name for name, sample in SMALL.items() if sample is not None and PRIMITIVES[name].differentiable]


@pytest.mark.parametrize("name", CASES)
def test_every_primitive(name: str) -> None:
    """Each primitive behind a product and before a sine, so that all terms of the chain rule occur."""
    sample, primitive = SMALL[name], PRIMITIVES[name]
    assert sample is not None

    def f(*active: Any) -> tuple[Any, ...]:
        args = list(sample.args)
        for place, value in zip(sample.differentiable, active, strict=True):
            args[place] = value * (1.0 + 0.0 * value)
        out = primitive(*args, **sample.params)
        return tuple([np.sin(each) for each in (out if primitive.multiple else [out]) if each.dtype.kind in "fc"])

    points = [sample.args[place] for place in sample.differentiable]
    places = tuple(range(len(points)))
    seconds = func.hessian_diagonal(f, places)(*points)
    for got, blocks in zip(func.laplacian(f, places)(*points), seconds, strict=True):
        expected = sum([np.sum(block, axis=tuple(range(np.ndim(got), np.ndim(block)))) for block in blocks])
        np.testing.assert_allclose(got, expected, rtol=1e-7, atol=1e-9)


def test_harmonic_functions_and_known_laplacians() -> None:
    r = np.array([0.3, -0.8, 1.1])
    assert abs(func.laplacian(lambda a: 1 / np.linalg.norm(a))(r)) < 1e-13
    assert abs(func.laplacian(lambda a: np.exp(a[0]) * np.sin(a[1]))(r)) < 1e-13
    assert abs(func.laplacian(lambda a: np.log(a[0] ** 2 + a[1] ** 2))(r)) < 1e-13
    assert func.laplacian(lambda a: np.sum(a**2))(r) == 6
    np.testing.assert_allclose(func.biharmonic(lambda a: np.linalg.norm(a))(r), 0, atol=1e-12)
    np.testing.assert_allclose(func.biharmonic(lambda a: np.sum(a**2) ** 2)(r), 120)

    def local_energy(a: Any) -> Any:
        """Of the hydrogen atom in its ground state exp(-r), in atomic units."""
        psi = lambda b: np.exp(-np.linalg.norm(b))  # noqa: E731
        return -0.5 * func.laplacian(psi)(a) / psi(a) - 1 / np.linalg.norm(a)

    np.testing.assert_allclose(func.vmap(local_energy)(RNG.normal(size=(20, 3))), -0.5, rtol=1e-12)


def test_composition() -> None:
    def f(w: Any, a: Any) -> Any:
        return np.sum(np.tanh(a @ w) ** 2)

    def of_parameters(w: Any) -> Any:
        return func.laplacian(f, argnums=1)(w, x)

    expected = func.grad(lambda w: trace(lambda a: f(w, a), x))(W)
    np.testing.assert_allclose(func.grad(of_parameters)(W), expected, rtol=1e-10)
    np.testing.assert_allclose(func.jit(func.grad(of_parameters))(W), expected, rtol=1e-10)
    tangent = func.jvp(of_parameters, (W,), (W,))[1]
    np.testing.assert_allclose(tangent, np.sum(expected * W), rtol=1e-10)
    batch = func.vmap(func.laplacian(f, argnums=1), in_dims=(None, 0))(W, X)
    np.testing.assert_allclose(batch, [func.laplacian(f, argnums=1)(W, row) for row in X], rtol=1e-12)
    np.testing.assert_allclose(
        func.laplacian(lambda a: func.vmap(lambda b: f(W, b))(a))(X), func.vmap(lambda b: of_both(f, b))(X), rtol=1e-10
    )
    np.testing.assert_allclose(
        func.laplacian(lambda a: func.laplacian(lambda b: f(W, a * b))(x))(x),
        trace(lambda a: trace(lambda b: f(W, a * b), x), x),
        rtol=1e-9,
    )


def of_both(f: Callable[..., Any], a: Any) -> Any:
    return func.laplacian(lambda b: f(W, b))(a)


def test_trees_outputs_and_aux() -> None:
    point = {"a": x, "n": 3, "s": 2.0}

    def f(p: Any, y: Any) -> Any:
        return {"u": np.sum(p["a"] ** 3) * p["s"] ** 2 * y, "v": (p["a"] * y, 1.0)}, p["n"]

    found, aux = func.laplacian(f, has_aux=True)(point, 2.0)
    assert aux == 3 and found["v"][1] == 0 and found["v"][0].shape == (3,)
    np.testing.assert_allclose(found["u"], 2 * (6 * x.sum() * 4 + 2 * np.sum(x**3)))
    both = func.laplacian(lambda a, b: np.sum(a * b * b), argnums=(0, 1))
    np.testing.assert_allclose(both(x, x), 2 * x.sum())
    np.testing.assert_allclose(func.laplacian(lambda a, *, b: np.sum(a * b * b), argnames="b")(x, b=x), 2 * x.sum())
    diagonal = func.hessian_diagonal(lambda p: f(p, 1.0)[0]["u"])(point)
    np.testing.assert_allclose(diagonal["a"], 24 * x)
    np.testing.assert_allclose(diagonal["s"], 2 * np.sum(x**3))
    assert diagonal["n"] is None
    wave = func.laplacian(lambda a: np.exp(1j * np.sum(2 * a)))(x)
    np.testing.assert_allclose(wave, -12 * np.exp(2j * np.sum(x)))
    assert func.laplacian(np.sum)(np.ones(0)) == 0
    assert func.laplacian(lambda a: np.sum(a**2))(np.ones(3, np.float32)).dtype == np.float32


def test_diagonals_divergences_and_directions() -> None:
    np.testing.assert_allclose(
        func.hessian_diagonal(lambda a: np.tanh(a @ W))(x),
        np.diagonal(func.jacfwd(func.jacfwd(lambda a: np.tanh(a @ W)))(x), axis1=1, axis2=2),
    )
    field = lambda a: np.sin(a) * a[0, 1] + np.exp(a @ (W @ W.T))  # noqa: E731
    jacobian = func.jacfwd(field)(X).reshape(12, 12)
    np.testing.assert_allclose(func.divergence(field)(X), np.trace(jacobian))
    np.testing.assert_allclose(func.jit(func.divergence(field))(X), np.trace(jacobian))
    np.testing.assert_allclose(func.vmap(func.divergence(np.sin))(X), np.sum(np.cos(X), axis=1))
    assert func.divergence(lambda p: (p[1] * 3, p[1] * 2))((1.0, 2.0)) == 2
    v = np.array([1.0, -2.0, 0.5])
    found = func.directional_derivatives(lambda a: np.exp(a @ v), 4)(x, v)
    np.testing.assert_allclose(found, [np.exp(x @ v) * (v @ v) ** k for k in range(5)])
    assert len(func.directional_derivatives(np.sum, 1)(x, v, x)) == 2
    assert func.directional_derivatives(np.sum, 0)(x, v) == (np.sum(x),)


def test_values_that_were_not_selected_have_no_derivative() -> None:
    f = lambda a: np.sum(np.sqrt(np.where(a > 0, a, 0.0)))  # noqa: E731
    point = np.array([0.0, 4.0])
    assert func.laplacian(f)(point) == -1 / 32
    assert func.jit(func.laplacian(f))(point) == -1 / 32
    np.testing.assert_array_equal(func.jit(func.vmap(func.laplacian(f)))(np.stack([point, point + 1])).shape, (2,))
    assert np.isneginf(func.laplacian(np.sqrt)(0.0))


NOT_SELECTED: list[Callable[..., Any]] = [
    lambda a: np.sum(np.sqrt(a)[1:]),
    lambda a: np.sum(np.sort(np.sqrt(a))[1:]),
    lambda a: np.sum(np.sqrt(a[:, None] * a)[1:, 1:]),
    lambda a: np.max(np.where(a > 0, np.log(a), -1.0)),
    lambda a: np.sum(func.vmap(lambda b: func.cond(b > 0, np.sqrt, np.sin, b))(a)),
    lambda a: func.jit(lambda b: np.sum(np.sqrt(np.where(b > 0, b, 0.0))))(a),
    lambda a: np.sum(func.jit(func.grad(lambda b: np.sum(np.where(b > 0, b, 0.0) ** 1.5)))(a) ** 4),
    lambda a: np.sum(np.sqrt(np.maximum(a, 0.0)) * 0.0),
]


@pytest.mark.filterwarnings("ignore:(divide|invalid)")
@pytest.mark.parametrize("f", NOT_SELECTED)
def test_nan_is_where_nested_derivatives_have_it(f: Callable[..., Any]) -> None:
    point = np.array([0.0, 1.0, 2.0])
    expected = np.trace(func.hessian(f)(point))
    np.testing.assert_allclose(func.laplacian(f)(point), expected)
    np.testing.assert_allclose(func.jit(func.laplacian(f))(point), expected)
    np.testing.assert_allclose(np.sum(func.hessian_diagonal(f)(point)), expected)


def test_hessian_is_not_made() -> None:
    """A separable function of many variables needs memory for a few arrays of its size only."""
    n = 20_000
    found = func.laplacian(lambda a: np.sum(np.sin(a) * np.exp(a)))(np.zeros(n))
    np.testing.assert_allclose(found, 2 * n)
    program = func.make_program(func.laplacian(lambda a: np.sum(np.tanh(a) ** 2)))(np.zeros(50))
    assert all(out.shape in ((50,), (1, 50), (50, 1), ()) for eqn in program.equations for out in eqn.outputs)


# fmt: off
ERRORS: dict[str, tuple[type[Exception], str, Callable[[], Any]]] = {
    "integers": (DifferentiatedInputError, "derivatives need floating", lambda: func.laplacian(np.sum)(np.arange(3))),
    "complex input": (ArgumentError, "needs real input", lambda: func.laplacian(np.sum)(np.ones(3) + 1j)),
    "integer output": (TypeError, "floating point outputs", lambda: func.laplacian(lambda a: 3)(x)),
    "no function": (TypeError, "takes a function first", lambda: func.laplacian(ANYTHING)),
    "scalar field": (ArgumentError, "must return the shapes", lambda: func.divergence(np.sum)(x)),
    "negative order": (ArgumentError, "order must be", lambda: func.directional_derivatives(np.sum, -1)),
    "no direction": (ArgumentError, "directions", lambda: func.directional_derivatives(np.sum, 1)(x)),
    "no sample": (ArgumentError, "samples must be", lambda: func.hutchinson_trace(np.sum, KEY, 0)),
    "half a sample": (ArgumentError, "samples must be", lambda: func.hutchinson_diagonal(np.sum, KEY, HALF)),
    "one sample": (ArgumentError, "at least 2", lambda: func.hutchinson_trace(np.sum, KEY, 1, with_error=True)),
    "two samples": (ArgumentError, "at least 3", lambda: func.hutch_plus_plus(np.sum, KEY, 2)),
    "unknown matrix": (ArgumentError, "of must be", lambda: func.hutchinson_trace(np.sum, KEY, 2, of="fisher")),
    "unknown probes": (ArgumentError, "probes must be", lambda: func.hutchinson_trace(np.sum, KEY, 2, probes="x")),
    "complex point": (ArgumentError, "needs real input", lambda: func.hutchinson_trace(np.sum, KEY, 2)(x + 1j)),
    "other tree": (ArgumentError, "the tree of its argument",
                   lambda: func.divergence(lambda p: [p["b"], p["a"]])({"a": 1.0, "b": 2.0})),
    "other tree of an estimate": (ArgumentError, "the tree of its argument",
        lambda: func.hutchinson_trace(lambda p: [p[1], p[0]], KEY, 2, of="jacobian")((1.0, 2.0))),
    "no scalar": (ScalarOutputError, "func.hutchinson_trace needs a scalar output, but sin",
                  lambda: func.hutchinson_trace(np.sin, KEY, 2)(x)),
    "no square": (ArgumentError, "return the shapes",
                  lambda: func.hutchinson_trace(lambda a: a[:2], KEY, 2, of="jacobian")(x)),
}
# fmt: on


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    kind, words, call = ERRORS[name]
    with pytest.raises(kind, match=words):
        call()


def test_leaked_values_are_refused() -> None:
    kept: list[Any] = []
    func.laplacian(lambda a: (kept.append(a), np.sum(a))[1])(x)
    with pytest.raises(LeakedTracerError):
        np.sin(kept[0])


def quartic(a: Any) -> Any:
    return np.sum(np.sin(a @ a.T)) + np.sum(a**4)


def flat_hessian() -> Any:
    return func.hessian(quartic)(X).reshape(12, 12)


def test_estimates_are_unbiased_with_the_variance_that_is_stated() -> None:
    h = flat_hessian()
    off = h - np.diag(np.diag(h))
    keys = func.random.split(KEY, 4000)

    def estimates(make: Callable[[Any], Any]) -> Any:
        return func.jit(func.vmap(lambda key: make(key)(X)))(keys)

    signs = estimates(lambda key: func.hutchinson_trace(quartic, key, 2))
    normal = estimates(lambda key: func.hutchinson_trace(quartic, key, 2, probes="normal"))
    diagonal = estimates(lambda key: func.hutchinson_diagonal(quartic, key, 2)).reshape(-1, 12)
    for found, exact, variance in (
        (signs, np.trace(h), np.sum(off**2)),
        (normal, np.trace(h), np.sum(h**2)),
        (diagonal, np.diag(h), np.sum(off**2, axis=1) / 2),
    ):
        assert (np.abs(np.mean(found, axis=0) - exact) < 4 * np.sqrt(variance / len(keys))).all()
        np.testing.assert_allclose(np.var(found, axis=0), variance, rtol=0.12)


def test_standard_errors_and_low_rank() -> None:
    h = flat_hessian()
    estimate, error = func.hutchinson_trace(quartic, KEY, 500, with_error=True)(X)
    np.testing.assert_allclose(error, np.sqrt(2 * np.sum((h - np.diag(np.diag(h))) ** 2) / 500), rtol=0.15)
    assert abs(estimate - np.trace(h)) < 4 * error
    assert func.jit(func.hutchinson_trace(quartic, KEY, 500))(X) == pytest.approx(estimate)
    better, smaller = func.hutch_plus_plus(quartic, KEY, 30, with_error=True)(X)
    assert abs(better - np.trace(h)) < 5 * smaller
    assert func.hutch_plus_plus(quartic, KEY, 36)(X) == pytest.approx(np.trace(h))
    low = lambda a: np.sum(np.sin(np.arange(40.0).reshape(2, 20) @ a))  # noqa: E731
    point = np.linspace(0, 1, 20)
    assert func.hutch_plus_plus(low, KEY, 9)(point) == pytest.approx(func.laplacian(low)(point))
    jacobian = func.hutchinson_trace(np.sin, KEY, 1, of="jacobian")
    assert jacobian(x) == pytest.approx(np.sum(np.cos(x)))
    tree = func.hutchinson_diagonal(lambda p: np.sum(p["a"] ** 3) + p["b"] ** 2, KEY, 1)({"a": x, "b": 2.0})
    np.testing.assert_allclose(tree["a"], 6 * x)
    assert type(tree["b"]) is np.float64 and tree["b"] == 2
