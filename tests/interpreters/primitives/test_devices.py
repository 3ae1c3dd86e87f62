"""The sample table on arrays that refuse implicit conversion: a double without a GPU, CuPy with one."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import func
from tests.interpreters.primitives import test_samples
from tests.support.device_double import DeviceArray, to_device
from tests.support.samples import SAMPLES
from tests.support.sampling import Sample

pytestmark = pytest.mark.filterwarnings("ignore::func.errors.HostComputationWarning")

ROUNDED = {
    "adjugate",
    "cholesky_inverse",
    "factored_inverse",
    "factored_solve",
    "sum_with",
    "prod_with",
    "logaddexp_reduce",
    "segment_sum",
    "sparse_product",
    "eigh_by_driver",
    "eigh_pencil",
    "expm_frechet",
    "solve_assumed",
    "sylvester",
}
"""Rows that sum in another order than NumPy on a device, or by another method, as CuPy has no routine for them."""
OF_ANY_PHASE = {"eig", "eigh", "eigh_by_driver", "eigh_pencil", "eigh_tridiagonal", "qr", "svd"}
"""Rows whose vectors another routine may turn by a sign or phase: absolute values are compared."""
ON_THE_HOST_ALONE = {"scipy_distribution"}
"""The results of SciPy's own classes, whose derivatives are NumPy code; arrays of a device raise an error."""

ALL = [pytest.param(name, sample, id=f"{name}-{i}") for name, own in SAMPLES.items() for i, sample in enumerate(own)]


def outputs(name: str, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """The outputs of a primitive, as far as they are determined."""
    outs = test_samples.outputs(name, args, params)
    return [np.abs(out) for out in outs] if name in OF_ANY_PHASE else outs


def of_active(name: str, sample: Sample) -> Callable[..., Any]:
    """The inexact outputs as a function of the differentiable arguments."""
    f = test_samples.of_active(name, sample)
    return (lambda *args: [np.abs(out) for out in f(*args)]) if name in OF_ANY_PHASE else f


def moved(sample: Sample, move: Callable[[Any], Any]) -> Sample:
    """A sample with its arrays on the device."""
    args = tuple([move(np.asarray(a)) if isinstance(a, np.generic) else move(a) for a in sample.args])
    return Sample(args, sample.params, sample.differentiable, sample.tolerance, sample.batched)


def host(value: Any) -> Any:
    """A result on the host."""
    return value.get() if hasattr(value, "get") else value


def check_on_device(name: str, sample: Sample, move: Callable[[Any], Any], kind: type, exact: bool) -> None:
    """Value, pullback, tangent and batch of a primitive agree with NumPy's, and stay on the device."""
    there = moved(sample, move)
    same = np.testing.assert_array_equal if exact else np.testing.assert_allclose
    close = {} if exact else {"rtol": 1e-6, "atol": 1e-8}
    for got, expected in zip(
        outputs(name, there.args, sample.params), outputs(name, sample.args, sample.params), strict=True
    ):
        assert isinstance(got, kind)
        same(host(got), expected, **close)
    if sample.batched:
        lanes = Sample(tuple([np.stack([a, a]) for a in sample.args]), sample.params)
        lane = func.vmap(lambda *args: outputs(name, args, sample.params))(*moved(lanes, move).args)
        for got, expected in zip(lane, outputs(name, sample.args, sample.params), strict=True):
            assert isinstance(got, kind)
            np.testing.assert_allclose(host(got)[1], expected, rtol=1e-6, atol=1e-8)
    if not sample.differentiable:
        return
    points = [sample.args[i] for i in sample.differentiable]
    points_there = [there.args[i] for i in sample.differentiable]
    outs, pullback = func.vjp(of_active(name, sample), *points)
    _, pullback_there = func.vjp(of_active(name, there), *points_there)
    cts = [np.ones_like(o) for o in outs]
    pulled_there = pullback_there([move(np.asarray(ct)) for ct in cts])
    for got, expected in zip(pulled_there, pullback(cts), strict=True):
        assert isinstance(got, kind)
        np.testing.assert_allclose(host(got), expected, rtol=1e-6, atol=1e-8)
    tangents = [np.ones_like(p) for p in points]
    _, dots = func.jvp(of_active(name, sample), tuple(points), tuple(tangents))
    _, dots_there = func.jvp(
        of_active(name, there), tuple(points_there), tuple([move(np.asarray(t)) for t in tangents])
    )
    for got, expected in zip(dots_there, dots, strict=True):
        assert isinstance(got, kind)
        np.testing.assert_allclose(host(got), expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(("name", "sample"), ALL)
def test_rows_on_the_double(name: str, sample: Sample) -> None:
    if name in ON_THE_HOST_ALONE:
        with pytest.raises(TypeError, match="on the host"):
            outputs(name, moved(sample, to_device).args, sample.params)
        return
    check_on_device(name, sample, to_device, DeviceArray, exact=name not in ROUNDED)


@pytest.mark.gpu
@pytest.mark.parametrize(("name", "sample"), ALL)
def test_rows_on_cupy(name: str, sample: Sample) -> None:
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    if name in ON_THE_HOST_ALONE:
        return
    check_on_device(name, sample, lambda a: cupy.asarray(a) if isinstance(a, np.ndarray) else a, cupy.ndarray, False)


RNG = np.random.default_rng(5)
LOWER = np.tril(RNG.normal(size=(2, 3, 3)))
KEYS = RNG.integers(0, 2, (3, 2, 4, 3)).astype(float)
DIFFERENT = {
    **{
        f"scatter_add of {np.dtype(dtype)}": (
            "scatter_add",
            (np.ones((4, 2), dtype), np.ones((5, 2), dtype), np.array([0, 3, 3, 0, 3])),
            {"axis": 0},
        )
        for dtype in "?bBhHiIlLefdFD"
    },
    "lexsort along an axis in the middle": ("lexsort", tuple(KEYS), {"axis": 1}),
    "a kind of sorting": ("argsort", (KEYS[0],), {"axis": 1, "kind": "mergesort"}),
    "lexsort of one key": ("lexsort", (KEYS[0],), {"axis": 0}),
    "running maxima of nothing": ("cummax", (np.ones((3, 0)),), {"axis": 1}),
    "running maxima after a NaN": ("cummax", (np.array([1.0, 3.0, 2.0, np.nan, 5.0, 4.0, 1.0]),), {"axis": 0}),
    "running minima": ("cummin", (RNG.normal(size=(2, 9, 3)),), {"axis": 1}),
    "a lower triangle for a Hermitian matrix": (
        "pinv",
        (LOWER + 9 * np.triu(LOWER.swapaxes(-1, -2), 1), np.full(2, 1e-15)),
        {"hermitian": True, "cut": True},
    ),
    **{
        f"{name} with a real matrix and complex numbers": (name, (LOWER[0], np.ones((3, 1)) * 1j, *others), params)
        for name, others, params in (
            ("triangular_solve", (), {"lower": True, "adjoint": False, "unit": False}),
            ("solve", (), {}),
        )
    },
    "exponentials of a stack": ("expm", (LOWER,), {}),
    "Riemann's zeta left of one": ("riemann_zeta", (np.array([-3.5, 0.5, 2.0]),), {}),
    "Sylvester's equation without one solution": (
        "sylvester",
        (np.diag([1.0, 2.0]), np.diag([-1.0, 3.0]), np.ones((2, 2))),
        {"drop": True},
    ),
    "finite integers": ("isfinite", (np.arange(3),), {}),
    "complex truth": ("logical_not", (np.array([0, 1j]),), {}),
    "no eigenvalues to match": ("match_values", (np.ones((2, 0), complex), np.ones((2, 0), complex)), {}),
}
"""Calls that CuPy has not, or takes in another way, as (primitive, arguments, parameters)."""


@pytest.mark.parametrize("case", DIFFERENT)
def test_what_differs_on_a_device(case: str) -> None:
    name, args, params = DIFFERENT[case]
    there = tuple([to_device(x) for x in args])
    program = func.jit(lambda *args: outputs(name, args, params))
    for got in (outputs(name, there, params), program(*there)):
        for one, want in zip(got, outputs(name, args, params), strict=True):
            assert isinstance(one, DeviceArray) and one.dtype == want.dtype and one.shape == want.shape
            np.testing.assert_allclose(host(one), want, rtol=1e-12, atol=1e-14)


def test_the_double_refuses_conversion() -> None:
    with pytest.raises(TypeError, match="Implicit conversion"):
        np.asarray(DeviceArray([1.0]))
    with pytest.raises(TypeError, match="met a device array"):
        DeviceArray([1.0]) + np.ones(1)


def test_a_program_on_the_double() -> None:
    def loss(x: Any) -> Any:
        y = np.tanh(x @ x) + x[1:].sum() * np.where(x > 0.5, x, 0.0)
        return np.mean(np.concatenate([y, y[::-1]]) ** 2)

    x = np.linspace(0.1, 0.9, 4)
    gradient = func.grad(loss)(DeviceArray(x))
    assert isinstance(gradient, DeviceArray)
    np.testing.assert_allclose(gradient.get(), func.grad(loss)(x))
    hessian = func.hessian(loss)(DeviceArray(x))
    np.testing.assert_allclose(hessian.get(), func.hessian(loss)(x))


def test_the_double_leaves_operators_to_a_traced_operand() -> None:
    x, factor = np.arange(3.0), np.array([2.0, 3.0, 5.0])
    (pulled,) = func.vjp(lambda t: DeviceArray(factor) * t, DeviceArray(x))[1](DeviceArray(np.ones(3)))
    np.testing.assert_array_equal(pulled.get(), factor)
    mapped = func.vmap(lambda t: DeviceArray(factor) - t)(DeviceArray(np.stack([x, -x])))
    np.testing.assert_array_equal(mapped.get(), np.stack([factor - x, factor + x]))


def _written(x: Any, constant: Any) -> Any:
    y = x * 1.0
    y += constant
    y[0] = constant[1]
    y[:, 1] -= constant[0]
    return y


BESIDE = {
    **{
        f"{operation.__name__}{' reflected' if is_reflected else ''}": (
            lambda x, c, f=operation, r=is_reflected: f(c, x) if r else f(x, c)
        )
        for operation in (
            *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod),
            *(operator.pow, operator.matmul, operator.lt, operator.ge, operator.eq, divmod),
            *(np.subtract, np.hypot, np.dot, np.maximum, np.linalg.solve, np.kron),
        )
        for is_reflected in (False, True)
    },
    "writes": _written,
    "where": lambda x, c: np.where(c > 1, x, c),
    "joined": lambda x, c: np.concatenate([x, c]),
    "einsum": lambda x, c: np.einsum("ij,kj->ik", c, x),
    "indices": lambda x, c: x[(c > 1).astype(int)],
    "elements": lambda x, c: x * c[0, 0] + c[0, 1] * x,
}
TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "vjp": lambda f: lambda x: func.vjp(f, x)[0],
    "jvp": lambda f: lambda x: func.jvp(f, (x,), (x,)),
    "vmap": lambda f: lambda x: func.vmap(f)(x[None]),
    "jit": lambda f: func.jit(f),
    "jit of grad": lambda f: func.jit(func.grad(lambda x: np.sum(f(x)[0] * x[0, 0]))),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", BESIDE)
def test_constants_on_the_device_beside_traced_values(name: str, transform: str) -> None:
    x, constant = np.array([[0.3, 0.7], [0.2, 0.9]]), np.array([[1.5, 2.0], [3.0, 0.5]])
    operation = BESIDE[name]
    want = TRANSFORMS[transform](lambda x: operation(x, constant))(x)
    got = TRANSFORMS[transform](lambda x: operation(x, DeviceArray(constant)))(DeviceArray(x))
    for one, other in zip(func.tree.leaves(got), func.tree.leaves(want), strict=True):
        np.testing.assert_allclose(host(one), other, rtol=1e-12)


@pytest.mark.parametrize("shape", [(2,), (2, 3)])
def test_traced_values_have_the_class_of_the_device(shape: tuple[int, ...]) -> None:
    seen = []

    def note(x: Any) -> Any:
        seen.append(x.__class__)
        return x * 2.0

    func.vmap(note)(DeviceArray(np.ones(shape)))
    func.jit(func.vmap(note))(DeviceArray(np.ones(shape)))
    func.jit(note)(DeviceArray(np.ones(shape)))
    assert set(seen) == {DeviceArray}


def residuals(x: Any) -> Any:
    return np.linalg.lstsq(np.vstack([x, x[:1] + 1.0]), np.arange(3.0), rcond=None)[1]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.abs(np.linalg.eigvals(x).imag).sum(),
        lambda x: np.linalg.pinv(x, rcond=1e-15),
        residuals,
    ],
)
def test_a_staged_device_array_is_not_taken_for_its_example(function: Callable[[Any], Any]) -> None:
    x = np.array([[1.0, -2.0], [3.0, 1.0]])
    np.testing.assert_allclose(host(func.jit(function)(DeviceArray(x))), func.jit(function)(x), atol=1e-12)


def test_places_on_the_device_are_read() -> None:
    x, places = np.arange(6.0).reshape(2, 3) ** 2, np.array([1, 0, 2])
    for function in (
        lambda x, places: np.repeat(x, places, axis=1),
        lambda x, places: np.roll(x, places[0], axis=1),
        lambda x, places: np.delete(x, places[:2], axis=1),
        lambda x, places: np.insert(x, places[:2], 7.0, axis=1),
        lambda x, places: np.take(x, places, axis=1),
    ):
        for transform in (lambda f, x: func.vjp(f, x)[0], lambda f, x: func.jvp(f, (x,), (x,))[1]):
            got = transform(lambda x, f=function: f(x, DeviceArray(places)), DeviceArray(x))
            np.testing.assert_array_equal(host(got), transform(lambda x, f=function: f(x, places), x))


def test_a_traced_device_array_shows_its_values() -> None:
    texts = []
    func.vjp(lambda x: (texts.append(repr(x)), x)[1], DeviceArray([1.5]))
    assert "value=[1.5]" in texts[0]
