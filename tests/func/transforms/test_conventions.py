"""The conventions as laws: dtypes, Python scalars, ties, the complex sign, and right derivatives at NaN traps."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.linalg

import func
from func.errors import ArgumentError, ScalarOutputError
from tests.support.coverage import FUNCTIONS, carries, direction, has_derivative, smooth
from tests.support.functions import FUNCTIONS as NUMPY_FUNCTIONS

INF = np.inf

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
DTYPES = [np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.complex64), np.dtype(np.complex128), BFLOAT16]
_ACCIDENTS = (
    "degrees radians around round nanmedian nanquantile nanpercentile percentile linspace logspace fft.irfft fft.hfft"
)
BY_ACCIDENT = {f"np.{name}" for name in _ACCIDENTS.split()}
"""Functions for which NumPy's own result dtype for bfloat16 follows from which of its loops exist."""


def cast(x: Any, dtype: Any) -> Any:
    """A sample in another dtype, complex where that is."""
    return (x + 0.3j * x).astype(dtype) if dtype.kind == "c" else x.astype(dtype)


def numpy_result(name: str, dtype: Any) -> Any:
    """NumPy's result for a sample in a dtype, or None if it does not take the dtype."""
    call = FUNCTIONS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return np.asarray(smooth(call.plain or call.function)(cast(call.x, dtype)))
        except (TypeError, ValueError, np.exceptions.ComplexWarning, RuntimeWarning, np.linalg.LinAlgError):
            return None


@pytest.mark.parametrize(
    ("name", "dtype"),
    [(name, dtype) for name in NUMPY_FUNCTIONS for dtype in DTYPES if numpy_result(name, dtype) is not None],
    ids=str,
)
def test_dtype_in_is_dtype_out(name: str, dtype: Any) -> None:
    call = FUNCTIONS[name]
    f, x, expected = smooth(call.function), cast(call.x, dtype), numpy_result(name, dtype)
    out, pullback = func.vjp(f, x)
    accident = dtype == BFLOAT16 and name in BY_ACCIDENT
    assert accident or np.asarray(out).dtype == expected.dtype
    kind = np.asarray(out).dtype
    if kind.kind in "fc" or kind == BFLOAT16:
        assert np.asarray(pullback(np.ones(expected.shape, kind)[()])[0]).dtype == dtype
        assert np.asarray(func.jvp(f, (x,), (x,))[1]).dtype == kind


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.complex64])
def test_python_scalars_are_weak(dtype: Any) -> None:
    def f(x: Any) -> Any:
        return 2 * x + 1.5 - x / 3 + np.maximum(np.real(x), 0.25) ** 2 + np.where(np.real(x) > 0, x, 1.0)

    x = np.ones(3, dtype)
    assert func.vjp(f, x)[0].dtype == f(x).dtype == dtype
    assert func.jvp(f, (x,), (x,))[1].dtype == dtype
    assert func.grad(lambda x: np.sum(np.real(f(x))))(x).dtype == dtype
    assert func.vmap(f)(np.stack([x, x])).dtype == dtype


_CONJUGATING = """
    np.conj np.conjugate np.sign np.corrcoef np.cov np.correlate np.vdot np.vecdot np.vecmat np.linalg.cholesky
    np.linalg.lstsq np.linalg.pinv np.linalg.vecdot linalg.cho_factor linalg.cho_solve linalg.cholesky linalg.lstsq
    linalg.null_space linalg.orth linalg.pinv linalg.polar linalg.qr linalg.solveh_banded
    linalg.solve_continuous_lyapunov linalg.solve_discrete_lyapunov linalg.solve_lyapunov linalg.matmul_toeplitz
    linalg.solve_toeplitz linalg.solve_circulant
"""
_INEXACT_STEPS = """
    special.expi special.ive special.jn special.jv special.jve special.yv special.yve special.spherical_jn
    special.spherical_yn linalg.cosm linalg.fractional_matrix_power
    linalg.sinm linalg.tanm
"""
"""Whose complex version has another branch, or loses a step of 1e-30.

They are compared with mpmath or a formula elsewhere.
"""


def complex_step(plain: Callable[[Any], Any], x: Any, tangent: Any) -> Any:
    """Im f(x + i h t) / h, without cancellation; None where f does not take complex numbers."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("error")
            out = np.asarray(plain(x + 1e-30j * tangent))
    except (TypeError, ValueError, np.exceptions.ComplexWarning, NotImplementedError, scipy.linalg.LinAlgError):
        return None
    return out.imag / 1e-30 if out.dtype.kind == "c" and not np.iscomplexobj(plain(x)) else None


def is_complex_steppable(name: str) -> bool:
    """Whether the sample is real, has a derivative, and its function is analytic as NumPy computes it."""
    call = FUNCTIONS[name]
    plain, x = smooth(call.plain or call.function), call.x
    if np.iscomplexobj(x) or not carries(plain(x)) or not has_derivative(smooth(call.function), x):
        return False
    return complex_step(plain, x, direction(x, 1)) is not None


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    STEPPABLE = [
        name for name in sorted(set(FUNCTIONS) - {*_CONJUGATING.split(), *_INEXACT_STEPS.split()})
        if is_complex_steppable(name)
    ]  # fmt: skip


@pytest.mark.parametrize("name", STEPPABLE)
def test_derivatives_agree_with_complex_steps(name: str) -> None:
    call = FUNCTIONS[name]
    f, plain, x = smooth(call.function), smooth(call.plain or call.function), call.x
    tangent = direction(x, 1)
    expected = complex_step(plain, x, tangent)
    if name in ("np.linalg.eig", "np.linalg.eigvals"):  # LAPACK's complex routine may find them in another order
        values, stepped = [plain(matrix) for matrix in (x, x.astype(complex))]
        expected = expected[np.argmin(np.abs(values[:, None] - stepped), axis=1)]
    scale = np.abs(expected) + 1e-3 * np.max(np.abs(expected), initial=1e-300)
    assert np.max(np.abs(func.jvp(f, (x,), (tangent,))[1] - expected) / scale, initial=0) < 1e-9


def test_power_zero_of_zero_is_flat() -> None:
    base, exponent = np.zeros(2), np.zeros(2)
    for gradient in func.grad(lambda x, y: np.sum(x**y), (0, 1))(base, exponent):
        np.testing.assert_array_equal(gradient, 0.0)
    np.testing.assert_array_equal(func.jvp(lambda x: x**exponent, (base,), (np.ones(2),))[1], 0.0)


def test_complex_sign_is_steepest_ascent() -> None:
    assert func.grad(lambda z: np.abs(z) ** 2)(1 + 2j) == pytest.approx(2 + 4j)
    assert func.grad(lambda z: np.imag(z))(1 + 2j) == 1j
    assert func.grad(lambda z: z**2, holomorphic=True)(1 + 2j) == pytest.approx(2 + 4j)
    z, step = np.array([1 + 2j, -0.3j]), 1e-4

    def loss(z: Any) -> Any:
        return np.sum(np.real(np.exp(z) * np.conj(z) ** 2))

    assert loss(z + step * func.grad(loss)(z)) > loss(z)


TIES: list[tuple[Callable[[Any], Any], Any, Any]] = [
    (np.max, [1.0, 3.0, 3.0], [0, 0.5, 0.5]),
    (np.min, [1.0, 1.0, 1.0], [1 / 3] * 3),
    (np.ptp, [2.0, 2.0], [0, 0]),
    (lambda x: np.maximum(x[0], x[1]), [2.0, 2.0], [0.5, 0.5]),
    (lambda x: np.minimum(x[0], x[1]), [2.0, 2.0], [0.5, 0.5]),
    (lambda x: np.fmax(x[0], x[1]), [2.0, 2.0], [0.5, 0.5]),
    (lambda x: np.maximum(x[0], 0.0), [0.0], [0.5]),
    (lambda x: np.sum(np.abs(x)), [0.0, -1.0], [0, -1]),
    (lambda x: np.sum(np.sign(x)), [0.0, 2.0], [0, 0]),
    (np.linalg.norm, [0.0, 0.0], [0, 0]),
    (lambda x: np.median(x), [1.0, 2.0, 4.0, 8.0], [0, 0.5, 0.5, 0]),
    (lambda x: np.linalg.norm(x, np.inf), [2.0, -2.0], [0.5, -0.5]),
    (lambda x: np.linalg.norm(x, 1), [0.0, -2.0], [0, -1]),
    (np.max, [1.0, np.nan, 2.0, np.nan], [0, 0.5, 0, 0.5]),
    (np.min, [1.0, np.nan, 2.0], [0, 1, 0]),
    (lambda x: np.maximum.accumulate(x)[-1], [3.0, 1.0, 3.0, 2.0], [0.5, 0, 0.5, 0]),
    (lambda x: np.minimum.accumulate(x)[2], [1.0, 1.0, 1.0, 0.0], [1 / 3, 1 / 3, 1 / 3, 0]),
]


@pytest.mark.parametrize("case", range(len(TIES)))
def test_ties_split_evenly(case: int) -> None:
    f, x, expected = TIES[case]
    point = np.array(x)
    np.testing.assert_allclose(func.grad(f)(point), expected)
    np.testing.assert_allclose(func.jacfwd(f)(point), expected)


def masked(f: Callable[[Any], Any], test: Callable[[Any], Any] = lambda x: x > 0) -> Callable[[Any], Any]:
    """f where a test holds, zero elsewhere; its derivative at the point must be zero."""
    return lambda x: np.where(test(x), f(x), 0.0)


never = lambda x: x != x  # noqa: E731
TRAPS: dict[str, tuple[Callable[[Any], Any], Any, Any]] = {
    # a branch that is not taken must not leak
    "where sqrt 0": (masked(np.sqrt), 0.0, 0.0),
    "where sqrt negative": (masked(np.sqrt), -1.0, 0.0),
    "where log 0": (masked(np.log), 0.0, 0.0),
    "where log negative": (masked(np.log), -1.0, 0.0),
    "where log2 0": (masked(np.log2), 0.0, 0.0),
    "where log10 0": (masked(np.log10), 0.0, 0.0),
    "where log1p -1": (masked(np.log1p, lambda x: x > -1), -1.0, 0.0),
    "where reciprocal 0": (masked(np.reciprocal), 0.0, 0.0),
    "where 1/x": (masked(lambda x: 1 / x), 0.0, 0.0),
    "where x/x": (masked(lambda x: x / x), 0.0, 0.0),
    "where sin(x)/x": (lambda x: np.where(x == 0, 1.0, np.sin(x) / x), 0.0, 0.0),
    "where (exp(x)-1)/x": (lambda x: np.where(x == 0, 1.0, np.expm1(x) / x), 0.0, 0.0),
    "where power": (masked(lambda x: x**-1.5), 0.0, 0.0),
    "where x**y": (masked(lambda x: x**x), 0.0, 0.0),
    "where cbrt": (masked(np.cbrt), 0.0, 0.0),
    "where arcsin 1": (masked(np.arcsin, lambda x: x < 1), 1.0, 0.0),
    "where arcsin 2": (masked(np.arcsin, lambda x: x < 1), 2.0, 0.0),
    "where arccos 1": (masked(np.arccos, lambda x: x < 1), 1.0, 0.0),
    "where arccosh 1": (masked(np.arccosh, lambda x: x > 1), 1.0, 0.0),
    "where arctanh 1": (masked(np.arctanh, lambda x: x < 1), 1.0, 0.0),
    "where arctan2 00": (masked(lambda x: np.arctan2(x, x)), 0.0, 0.0),
    "where hypot 00": (masked(lambda x: np.hypot(x, x)), 0.0, 0.0),
    "where norm": (masked(lambda x: np.linalg.norm(np.stack([x, x]))), 0.0, 0.0),
    "where exp overflow": (masked(np.exp, lambda x: x < 700), 1000.0, 0.0),
    "where tan": (masked(np.tan, never), math.pi / 2, 0.0),
    "where entropy": (masked(lambda x: x * np.log(x)), 0.0, 0.0),
    "where square root of a sum": (masked(lambda x: np.sqrt(x * x + x)), 0.0, 0.0),
    "where std": (lambda x: np.where(x > 9, np.std(np.stack([x, x])), 0.0), 1.0, 0.0),
    "masked write": (lambda x: _written(x), 0.0, 0.0),
    "boolean mask": (lambda x: np.sum(np.sqrt(np.stack([x, x + 4])[np.stack([x, x + 4]) > 0])), 0.0, 0.25),
    # points at which the formula of the derivative is 0/0 or inf times 0
    "norm 0": (lambda x: np.linalg.norm(np.stack([x, 2 * x])), 0.0, 0.0),
    "hypot 0": (lambda x: np.hypot(x, 0.0 * x), 0.0, 0.0),
    "abs complex 0": (lambda x: np.abs(x + 0j * x), 0.0, 0.0),
    "x**0": (lambda x: x**0, 0.0, 0.0),
    "x**1": (lambda x: x**1, 0.0, 1.0),
    "x**2": (lambda x: x**2, 0.0, 0.0),
    "x**2.0 at 0": (lambda x: np.power(x, 2.0), 0.0, 0.0),
    "0**x": (lambda x: np.power(0.0, x), 2.0, 0.0),
    "0**x at 0": (lambda x: np.power(0.0, x) * 0.0, 0.0, 0.0),
    "negative base": (lambda x: np.power(x, 3), -2.0, 12.0),
    "negative base, float exponent": (lambda x: np.power(x, 2.0), -2.0, -4.0),
    "float_power": (lambda x: np.float_power(x, 2), 0.0, 0.0),
    "sinc 0": (np.sinc, 0.0, 0.0),
    "sinc near 0": (np.sinc, 1e-9, -(math.pi**2) * 1e-9 / 3),
    "i0 0": (np.i0, 0.0, 0.0),
    "logaddexp -inf -inf": (lambda x: np.logaddexp(x - INF, -INF), 0.0, 0.5),
    "logaddexp one -inf": (lambda x: np.logaddexp(x, -INF), 2.0, 1.0),
    "logaddexp far": (lambda x: np.logaddexp(x, 0.0), 1000.0, 1.0),
    "logaddexp far below": (lambda x: np.logaddexp(x, 0.0), -1000.0, 0.0),
    "logaddexp.reduce -inf": (lambda x: np.logaddexp.reduce(np.stack([x - INF, x])), 1.0, 1.0),
    "softplus": (lambda x: np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0), 0.0, 0.5),
    "tanh far": (np.tanh, 1000.0, 0.0),
    "clip at the edge": (lambda x: np.clip(x, 0.0, 1.0), 0.5, 1.0),
    "clip outside": (lambda x: np.clip(x, 0.0, 1.0), 2.0, 0.0),
    "x/x": (lambda x: x / x, 3.0, 0.0),
    "arctan2 on the axis": (lambda x: np.arctan2(x, 1.0), 0.0, 1.0),
    "arctan2 at 0 0": (lambda x: np.arctan2(x, x) * 0.0, 0.0, 0.0),
    "prod with a zero": (lambda x: np.prod(np.stack([x, 2 + 0 * x, 3 + 0 * x])), 0.0, 6.0),
    "cumprod with a zero": (lambda x: np.sum(np.cumprod(np.stack([2 + 0 * x, x, 3 + 0 * x]))), 0.0, 8.0),
    "prod with two zeros": (lambda x: np.prod(np.stack([x, x, 3 + 0 * x])), 0.0, 0.0),
    "std of equal numbers": (lambda x: np.std(np.stack([x, 1.0 + 0 * x])), 1.0, 0.0),
    "var of one number": (lambda x: np.var(x[None]), 2.0, 0.0),
    "nanmean": (lambda x: np.nanmean(np.stack([x, np.nan + 0 * x])), 2.0, 1.0),
    "nanstd": (lambda x: np.nanstd(np.stack([x, x + 2, np.nan + 0 * x])), 2.0, 0.0),
    "nan_to_num": (lambda x: np.nan_to_num(x * np.nan), 1.0, 0.0),
    "max with nan beside": (lambda x: np.nanmax(np.stack([x, np.nan + 0 * x])), 2.0, 1.0),
    "det of a singular matrix": (lambda x: np.linalg.det(np.diag(np.stack([x, 2 + 0 * x]))), 0.0, 2.0),
    "log of an underflow": (lambda x: np.where(x > 0, np.log(np.exp(x - 800)), x), -1.0, 1.0),
    "sqrt at infinity": (lambda x: np.sqrt(x), INF, 0.0),
    "exp at minus infinity": (lambda x: np.exp(x), -INF, 0.0),
    "angle of a real": (lambda x: np.angle(x + 0j), 2.0, 0.0),
    "interp at a knot": (lambda x: np.interp(x, np.array([0.0, 1.0]), np.array([0.0, 2.0])), 0.5, 2.0),
    "unwrap": (lambda x: np.sum(np.unwrap(np.stack([x, x + 7]))), 1.0, 2.0),
}


def _written(x: Any) -> Any:
    out = np.sqrt(np.stack([x, x]))
    out[np.stack([x, x]) <= 0] = 0.0
    return np.sum(out)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", TRAPS)
def test_nan_traps(name: str) -> None:
    f, x, expected = TRAPS[name]
    point = np.float64(x)
    np.testing.assert_allclose(func.grad(f)(point), expected, rtol=1e-12, atol=1e-300, err_msg="reverse")
    np.testing.assert_allclose(func.jvp(f, (point,), (1.0,))[1], expected, rtol=1e-12, atol=1e-300, err_msg="forward")
    np.testing.assert_allclose(func.vmap(func.grad(f))(np.stack([point, point])), [expected] * 2, rtol=1e-12)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", [name for name in TRAPS if name.startswith("where")])
def test_branches_not_taken_have_zero_second_derivatives(name: str) -> None:
    f, x, _ = TRAPS[name]
    assert func.grad(func.grad(f))(np.float64(x)) == 0.0
    assert func.jvp(func.grad(f), (np.float64(x),), (1.0,))[1] == 0.0


REVERSE = {
    "entropy": (lambda p: np.where(p > 0, p * np.log(p), 0.0), -1.0, 0.0),
    "product with nan": (lambda x: np.where(np.isnan(x), 0.0, x * x), np.nan, 0.0),
    "masked product": (lambda x: np.sum((x * np.log(np.stack([x, x + 1])))[1:]), 0.0, 0.0),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", REVERSE)
def test_an_element_that_was_not_selected_has_a_derivative_of_zero_in_any_product(name: str) -> None:
    f, x, expected = REVERSE[name]
    point = np.float64(x)
    assert func.grad(f)(point) == expected
    assert func.vmap(func.grad(f))(np.array([point, 0.5]))[0] == expected
    if name in ("entropy", "product with nan"):
        assert func.grad(func.grad(f))(point) == 0.0


def test_infinite_slopes_stay_infinite() -> None:
    with np.errstate(divide="ignore"):
        assert func.grad(np.sqrt)(0.0) == INF
        assert func.grad(np.log)(0.0) == INF
        assert func.grad(np.cbrt)(0.0) == INF


EQUAL = np.diag([2.0, 2.0, 1.0])
SPECTRAL: dict[str, tuple[Callable[[Any], Any], Any, Any]] = {
    "sum of eigenvalues": (lambda a: np.sum(np.linalg.eigvalsh(a)), EQUAL, np.eye(3)),
    "sum of squares": (lambda a: np.sum(np.linalg.eigh(a)[0] ** 2), EQUAL, 2 * EQUAL),
    "projector": (lambda a: np.sum(np.linalg.eigh(a)[1] @ np.linalg.eigh(a)[1].T), EQUAL, np.zeros((3, 3))),
    "nuclear norm": (lambda a: np.sum(np.linalg.svd(a)[1]), EQUAL, np.eye(3)),
    "nuclear norm with a zero": (lambda a: np.linalg.norm(a, "nuc"), np.diag([2.0, 2.0, 0.0]), np.diag([1.0, 1, 0])),
    "frobenius by svd": (lambda a: np.sum(np.linalg.svdvals(a) ** 2), EQUAL, 2 * EQUAL),
    "reconstruction": (lambda a: np.trace(_rebuilt(a)), EQUAL, np.eye(3)),
    "|det| by qr": (lambda a: np.sum(np.log(np.abs(np.diag(np.linalg.qr(a)[1])))), EQUAL, np.linalg.inv(EQUAL)),
}


READ_VECTORS = ("projector", "reconstruction")
"""Forward mode marks the vectors of equal eigenvalues in directions that mix them (`entangled`)."""


def _rebuilt(a: Any) -> Any:
    u, s, vh = np.linalg.svd(a)
    return (u * s) @ vh


@pytest.mark.parametrize("name", SPECTRAL)
def test_degenerate_spectra(name: str) -> None:
    f, a, expected = SPECTRAL[name]
    np.testing.assert_allclose(func.grad(f)(a), expected, atol=1e-12)
    forward = func.jacfwd(f)(a)
    mixes = np.isnan(forward)
    assert np.any(mixes) == (name in READ_VECTORS)
    np.testing.assert_allclose(forward[~mixes], expected[~mixes], atol=1e-12)


OF_A_NUMBER: dict[str, Callable[[Callable[..., Any]], Callable[[Any], Any]]] = {
    "grad": func.grad,
    "jacrev": func.jacrev,
    "jacfwd": func.jacfwd,
    "hessian": func.hessian,
    "laplacian": func.laplacian,
    "hessian_diagonal": func.hessian_diagonal,
    "divergence": func.divergence,
    "jvp": lambda f: lambda x: func.jvp(f, (x,), (x,))[1],
    "vjp": lambda f: lambda x: func.vjp(f, x)[1](1.0)[0],
    "hvp": lambda f: lambda x: func.hvp(f, (x,), (x,)),
    "linearize": lambda f: lambda x: func.linearize(f, x)[1](x),
    "jit of jacobian": lambda f: func.jit(func.jacobian(f)),
    "jit of hessian": lambda f: func.jit(func.hessian(f)),
}


@pytest.mark.parametrize("transform", OF_A_NUMBER)
@pytest.mark.parametrize(
    "function", [lambda x: x**3, lambda x: 3.0 * x, lambda x: 3.0], ids=["cube", "line", "constant"]
)
def test_derivatives_by_a_number_are_numbers(transform: str, function: Callable[..., Any]) -> None:
    assert type(OF_A_NUMBER[transform](function)(2.0)) is np.float64


COMPLEX_TO_REAL: dict[str, Any] = {
    "abs": lambda z: np.abs(z) ** 2,
    "product": lambda z: np.real(z) * np.imag(np.roll(z, 1)),
    "a sum": lambda z: np.sum(np.real(z**3)),
    "a tree": lambda z: {"a": np.imag(z) ** 2, "b": np.real(np.conj(z) * z[::-1])},
    "no elements": lambda z: np.real(z[:0]),
    "constant": lambda z: np.ones(2),
}


@pytest.mark.parametrize("dtype", ["c16", "c8"])
@pytest.mark.parametrize("size", [0, 1, 2, 3])
@pytest.mark.parametrize("name", COMPLEX_TO_REAL)
def test_jacobians_of_complex_arguments_and_real_results_are_rows_of_gradients(
    name: str, size: int, dtype: str
) -> None:
    f = COMPLEX_TO_REAL[name]
    z = (np.arange(1.0, size + 1) * (0.5 - 0.25j) + 0.125j).astype(dtype)
    found = [t(f)(z) for t in (func.jacobian, func.jacfwd, func.jacrev)]
    if size == 2:
        with ThreadPoolExecutor(2) as executor:
            found += [t(f, executor=executor)(z) for t in (func.jacfwd, func.jacrev)]
    outs = func.tree.leaves(f(z))
    for jacobian in found:
        for block, out in zip(func.tree.leaves(jacobian), outs, strict=True):
            assert block.dtype == z.dtype and block.shape == (*np.shape(out), size)
    if size:
        for place, out in enumerate(outs):
            for index in np.ndindex(np.shape(out)):
                row = func.grad(lambda z, place=place, index=index: func.tree.leaves(f(z))[place][index])(z)
                for jacobian in found:
                    np.testing.assert_allclose(func.tree.leaves(jacobian)[place][index], row, rtol=1e-6)


def test_complex_results_of_complex_arguments_ask_for_holomorphic() -> None:
    z = np.array([1.0 + 2.0j])
    for transform in (func.jacobian, func.jacfwd, func.jacrev):
        with pytest.raises(ArgumentError, match="is complex, and so is an output; pass holomorphic=True"):
            transform(lambda z: z**2)(z)
        mixed = transform(lambda z, x: np.real(z) * x, (0, 1))(z, np.array([3.0]))
        np.testing.assert_allclose(mixed[0], [[3.0 + 0.0j]])
        np.testing.assert_allclose(mixed[1], [[1.0]])
    with pytest.raises(ArgumentError, match="an argument of <lambda> is complex"):
        func.hessian(lambda z: np.sum(np.abs(z) ** 2))(z)


ONE_ELEMENT: dict[str, Any] = {
    "a quadratic form": lambda x: x.reshape(1, -1) @ x.reshape(-1, 1),
    "a slice": lambda x: x[:1] ** 2,
    "no dependence": lambda x: np.ones((1, 1)),
    "kept dimensions": lambda x: np.sum(np.sin(x), keepdims=True),
}


@pytest.mark.parametrize("name", ONE_ELEMENT)
def test_arrays_of_one_element_are_differentiated_as_that_element(name: str) -> None:
    def scalar(x: Any) -> Any:
        return f(x).reshape(())

    f, x = ONE_ELEMENT[name], np.array([0.5, 2.0])
    right = func.grad(scalar)(x)
    value, gradient = func.value_and_grad(f)(x)
    assert value.shape == f(x).shape and type(value) is np.ndarray
    np.testing.assert_array_equal(value, f(x))
    jitted = func.jit(func.value_and_grad(f))(x)
    assert jitted[0].shape == f(x).shape
    aux = func.grad_and_value(lambda x: (f(x), 3), has_aux=True)(x)
    assert aux[1][1] == 3
    for found in (gradient, func.grad(f)(x), jitted[1], func.grad(func.jit(f))(x), aux[0]):
        np.testing.assert_allclose(found, right)
    np.testing.assert_allclose(func.vmap(func.grad(f))(np.stack([x, x]))[1], right)
    np.testing.assert_allclose(func.hvp(f, (x,), (x,)), func.hvp(scalar, (x,), (x,)))
    np.testing.assert_allclose(func.grad(lambda x: func.grad(f)(x)[:1])(x), func.hessian(scalar)(x)[0])
    for count in (0, 2):
        with pytest.raises(ScalarOutputError, match=rf"an array of shape \({count},\)"):
            func.grad(lambda x, count=count: np.repeat(f(x).ravel(), count))(x)
