"""Elementary functions that are not ufuncs, interpolation and polynomials on traced arrays."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest

import func
from tests.support import numpy_properties as check
from tests.support.numpy_properties import Function

RNG = np.random.default_rng(5)
V = RNG.uniform(0.2, 0.9, 6)
M = RNG.normal(size=(4, 5))
W = RNG.normal(size=(4, 5))
C = M + 1j * W
X = np.array([0.0, 0.7, 1.1, 2.0, 2.6])
GRID = np.linspace(-0.3, 2.9, 7)

SMOOTH: dict[str, tuple[Function, Any]] = {
    "real": (np.real, C),
    "imag": (np.imag, C),
    "imag of real": (np.imag, M),
    "angle": (np.angle, C),
    "angle deg": (lambda x: np.angle(x, deg=True), C),
    "angle of real": (np.angle, M),
    "conj": (np.conj, C),
    "clip": (lambda x: np.clip(x, -0.5, 0.8), M),
    "clip one side": (lambda x: np.clip(x, None, 0.3), M),
    "clip names": (lambda x: np.clip(x, min=W, max=W + 0.5), M),
    "clip by traced bounds": (lambda x: np.clip(M, x - 0.4, x + 0.2), W),
    "round": (lambda x: np.round(x, 1) + x, M),
    "around": (lambda x: np.around(x * 100, -1) + x, M),
    "round complex": (lambda x: np.round(3 * x) + x, C),
    "fix": (lambda x: np.fix(3 * x) * x, M),
    "sinc": (np.sinc, M),
    "sinc at zero": (np.sinc, np.array([0.0, 1.0, -2.0, 1e-9])),
    "sinc complex": (np.sinc, C),
    "i0": (np.i0, M * 4),
    "i0 at zero": (np.i0, np.array([0.0, 1e-3, -3.0])),
    "nan_to_num": (lambda x: np.nan_to_num(x, nan=2.0, posinf=3.0), np.array([1.0, np.nan, np.inf, -0.5])),
    "nan_to_num complex": (np.nan_to_num, C),
    "real_if_close": (np.real_if_close, C),
    "heaviside": (lambda x: np.heaviside(x, 0.5) * x, M),
    "kaiser": (lambda b: func.numpy.kaiser(7, 8 * b[0]), V),
    # neighbours
    "diff": (np.diff, M),
    "diff ends": (lambda x: np.diff(x, 2, axis=0, prepend=0.5, append=W[:2]), M),
    "diff zero times": (lambda x: np.diff(x, 0) * 2, M),
    "ediff1d": (np.ediff1d, M),
    "ediff1d ends": (lambda x: np.ediff1d(x, to_begin=[1.0, 2.0], to_end=x[0]), V),
    "trapezoid": (np.trapezoid, M),
    "trapezoid x": (lambda x: np.trapezoid(x, X, axis=-1), M),
    "trapezoid of x": (lambda x: np.trapezoid(M, np.cumsum(x), axis=0), V[:4]),
    "trapezoid full x": (lambda x: np.trapezoid(M, x, axis=0), W),
    "gradient": (lambda x: np.gradient(x, axis=0), M),
    "gradient spacing": (lambda x: np.gradient(x, 0.3, axis=-1, edge_order=2), M),
    "gradient uneven": (lambda x: np.gradient(x, X, axis=1), M),
    "gradient uneven edges": (lambda x: np.gradient(x, X, axis=1, edge_order=2), M),
    "gradient of places": (lambda x: np.gradient(M, np.cumsum(x), axis=0, edge_order=2), V[:4]),
    "gradient of spacing": (lambda h: np.gradient(M, h[0], h[1])[1], V),
    "gradient all axes": (lambda x: np.gradient(x, 0.5, X)[0], M),
    "interp": (lambda x: np.interp(x, X, [1.0, 3.0, 2.0, -1.0, 0.5]), GRID),
    "interp values": (lambda f: np.interp(GRID, X, f), V[:5]),
    "interp places": (lambda xp: np.interp(GRID, xp, [1.0, 3.0, 2.0, -1.0, 0.5]), X + 0.01),
    "interp ends": (lambda f: np.interp(GRID, X, f, left=f[0] ** 2, right=-1.0), V[:5]),
    "interp period": (lambda x: np.interp(x, X, [1.0, 3.0, 2.0, -1.0, 0.5], period=2.8), 3 * GRID + 0.01),
    "interp complex": (lambda x: np.interp(x, X, C[0]), GRID),
    "interp one sample": (lambda x: np.interp(x, [1.0], [2.0]) + x, GRID),
    "interp scalar": (lambda x: np.interp(x[0], X, x), V[:5]),
    "unwrap": (lambda x: np.unwrap(7 * x), M),
    "unwrap period": (lambda x: np.unwrap(5 * x, axis=0, period=4, discont=3.0), M),
    # polynomials
    "polyval": (lambda x: np.polyval([1.0, 2.0, 3.0], x), M),
    "polyval coefficients": (lambda p: np.polyval(p, V), M[0]),
    "polyadd": (lambda p: np.polyadd(p, [1.0, 2.0]), V),
    "polysub": (lambda p: np.polysub([1.0, 2.0], p), V),
    "polymul": (lambda p: np.polymul(p, [1.0, 2.0, p[0]]), V),
    "polydiv": (lambda p: np.polydiv(p, [1.0, 2.0, 0.5])[0], V),
    "polydiv rest": (lambda p: np.polydiv([1.0, 2.0, 0.5, 3.0, 2.0], p)[1], V[:3]),
    "polyder": (lambda p: np.polyder(p, 2), V),
    "polyint": (lambda p: np.polyint(p, 2, k=[p[0], 1.0]), V),
    "poly": (np.poly, V),
    "poly complex": (np.poly, C[0]),
}
OTHER_ORDER = {"poly", "poly complex", "polymul", "sinc complex"}


@pytest.mark.parametrize("name", SMOOTH)
def test_values_are_numpys_to_the_bit(name: str) -> None:
    check.check_value(SMOOTH[name], exact=name not in OTHER_ORDER)


@pytest.mark.parametrize("name", SMOOTH)
def test_both_modes_agree_with_differences(name: str) -> None:
    check.check_modes(SMOOTH[name])


@pytest.mark.parametrize("name", SMOOTH)
def test_second_order(name: str) -> None:
    check.check_second_order(SMOOTH[name])


@pytest.mark.parametrize("name", SMOOTH)
def test_mapped_is_the_stack_of_singles(name: str) -> None:
    check.check_mapped(SMOOTH[name])


CONSTANT: dict[str, Function] = {
    "isclose": lambda x: np.isclose(x, M + 1e-9),
    "isclose equal_nan": lambda x: np.isclose(x * np.nan, x * np.nan, equal_nan=True),
    "isreal": lambda x: np.isreal(x + 0j),
    "iscomplex": np.iscomplex,
    "isposinf": lambda x: np.isposinf(x / np.abs(x) * np.inf),
    "isneginf": lambda x: np.isneginf(x),
    "allclose": lambda x: np.asarray(np.allclose(x, M)),
    "array_equal": lambda x: np.asarray([np.array_equal(x, M), np.array_equal(x, M[0])]),
    "array_equiv": lambda x: np.asarray(np.array_equiv(x, x[:1])),
    "iscomplexobj": lambda x: np.asarray([np.iscomplexobj(x), np.isrealobj(x * 1j)]),
    "round": lambda x: np.round(x, 2),
    "fix": np.fix,
    "rint": np.rint,
    "heaviside": lambda x: np.heaviside(x, 0.5),
}


@pytest.mark.parametrize("name", CONSTANT)
def test_functions_without_a_derivative(name: str) -> None:
    check.check_constant(CONSTANT[name], M)


REFUSED: dict[str, Function] = {
    "clip without bounds": lambda x: np.clip(x, 0.0),
    "clip with both": lambda x: np.clip(x, 0.0, 1.0, min=0.0),
    "i0 of complex": lambda x: np.i0(x * 1j),
    "isposinf of complex": lambda x: np.isposinf(x * 1j),
    "diff of a scalar": lambda x: np.diff(x[0, 0]),
    "diff order": lambda x: np.diff(x, -1),
    "diff axis": lambda x: np.diff(x, axis=2),
    "ediff1d end": lambda x: np.ediff1d(x.astype("f4"), to_end=1j),
    "gradient distances": lambda x: np.gradient(x, [1.0, 2.0], axis=0),
    "gradient arguments": lambda x: np.gradient(x, 1.0, 2.0, 3.0),
    "gradient distances of two axes": lambda x: np.gradient(x, x, axis=0),
    "gradient edge": lambda x: np.gradient(x, edge_order=3),
    "gradient of too few": lambda x: np.gradient(x[:1], axis=0),
    "gradient axis": lambda x: np.gradient(x, axis=3),
    "gradient axis twice": lambda x: np.gradient(x, axis=(0, 0)),
    "trapezoid axis": lambda x: np.trapezoid(x, axis=2),
    "trapezoid x": lambda x: np.trapezoid(x, x[0, :3]),
    "interp lengths": lambda x: np.interp(x, [0.0, 1.0], [1.0]),
    "interp of nothing": lambda x: np.interp(x, [], []),
    "interp of complex": lambda x: np.interp(x * 1j, [0.0, 1.0], [1.0, 2.0]),
    "interp of matrices": lambda x: np.interp(x, x, x),
    "interp period": lambda x: np.interp(x, [0.0, 1.0], [1.0, 2.0], period=0),
    "polyder order": lambda x: np.polyder(x[0], -1),
    "polyint order": lambda x: np.polyint(x[0], -1),
    "polyint constants": lambda x: np.polyint(x[0], 3, k=[1.0, 2.0]),
    "poly of a matrix": lambda x: np.poly(x),
    "roots of a matrix": lambda x: np.roots(x),
    "polyfit degree": lambda x: np.polyfit(x[0], x[1], -1),
    "polyfit lengths": lambda x: np.polyfit(x[0], x[1, :2], 1),
    "polyfit of a matrix": lambda x: np.polyfit(x, x[1], 1),
    "polyfit weights": lambda x: np.polyfit(x[0], x[1], 1, w=x),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_numpy_refuses_is_refused(name: str) -> None:
    check.check_refusal(REFUSED[name], M)


@pytest.mark.parametrize("order", range(1, 7))
def test_sinc_has_exact_derivatives_of_every_order(order: int) -> None:
    f: Function = np.sinc
    for _ in range(order):
        f = func.grad(f)
    for x in (0.0, 1e-8, 0.3, 0.95, 0.96, 1.7, -4.2):
        with mpmath.workdps(40):
            expected = float(mpmath.diff(lambda t: mpmath.sinc(mpmath.pi * t), x, order))
        assert abs(f(x) - expected) <= 1e-11 * max(abs(expected), np.pi**order / (order + 1))


@pytest.mark.parametrize("order", range(1, 5))
def test_i0_has_exact_derivatives_of_every_order(order: int) -> None:
    f: Function = np.i0
    for _ in range(order):
        f = func.grad(f)
    for x in (0.0, 0.5, -2.0, 9.0):
        with mpmath.workdps(40):
            expected = float(mpmath.diff(lambda t: mpmath.besseli(0, t), x, order))
        np.testing.assert_allclose(f(x), expected, rtol=1e-11, atol=1e-13)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("decimals", [0, 2, -1, 12])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "c16", "i8", "?"])
def test_rounding_is_numpys(dtype: str, decimals: int) -> None:
    x = (RNG.normal(size=20) * 30).astype(dtype)
    if dtype == "?" and decimals:
        with pytest.raises(TypeError):
            func.numpy.round(x, decimals)
    else:
        check.assert_same(func.numpy.round(x, decimals), np.round(x, decimals))


DTYPED = [
    (name, dtype)
    for name in ("sinc", "i0", "nan_to_num", "angle", "real", "imag", "diff", "trapezoid", "ediff1d")
    for dtype in ("f2", "f4", "f8", "i4", "?")
    if (name, dtype) != ("ediff1d", "?")  # NumPy subtracts no booleans
]


@pytest.mark.parametrize(("name", "dtype"), DTYPED)
def test_dtypes_are_numpys(name: str, dtype: str) -> None:
    x = np.arange(6).astype(dtype)
    check.assert_same(getattr(func.numpy, name)(x), getattr(np, name)(x))


def test_parts_of_a_complex_array_are_views() -> None:
    def f(x: Any) -> Any:
        z = x.copy()
        z.real[1:] = 2 * np.real(x[:1])
        z.imag *= 3.0
        return np.sum(np.abs(z) ** 2)

    z = C[:, 0].copy()
    np.testing.assert_allclose(func.grad(f)(C[:, 0]), extrapolated_gradient(f, z), rtol=1e-7)


def extrapolated_gradient(f: Function, z: Any) -> Any:
    """The steepest ascent of a real function of complex numbers by differences."""
    units = np.eye(len(z))
    return np.array([check.extrapolated(f, z, u) + 1j * check.extrapolated(f, z, 1j * u) for u in units])
