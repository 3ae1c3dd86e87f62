"""Partials of elementwise primitives keep their digits at all magnitudes: a law over all rows, and named points."""

import cmath
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special

import func
from func.interpreters.core import PRIMITIVES
from func.interpreters.primitives.elementwise.builder import ULPS, Elementwise
from func.interpreters.primitives.elementwise.pointwise import is_numpy_ufunc

pytest.importorskip("mpmath")
pytest.importorskip("llvmlite")

from tools.enumerate import precision, scope
from tools.enumerate.exact_partials import Row

OTHERS = {"ldexp", "nextafter"}
"""Rows whose derivative is that of a multiplication by a power of two, or one."""
ROWS = [*precision.UNARY, *precision.BINARY]


def test_every_ufunc_with_a_derivative_has_a_row_with_its_bound() -> None:
    primitives = {
        name: primitive
        for name, primitive in PRIMITIVES.items()
        if isinstance(primitive, Elementwise) and is_numpy_ufunc(primitive.numpy) and primitive.ufunc.__name__ == name
    }
    rows = {row.name: row for row in ROWS}
    assert set(primitives) - OTHERS == set(rows)
    assert all(row.bounds[0].ulps == row.bounds[1].ulps == primitives[name].ulps for name, row in rows.items())
    assert {primitive.ulps for primitive in primitives.values()} == {ULPS} == {16}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_partials_are_within_the_bound_of_their_row(row: Row) -> None:
    outcome = scope.run_part(precision.part(row.name, [row]), most=25)
    assert not outcome.differences, "\n\n".join([f"{d.program}\n{d.text}" for d in outcome.differences])


def _grad(f: Callable[..., Any], order: int = 1) -> Callable[..., Any]:
    return f if order == 0 else _grad(func.grad(f), order - 1)


def _holomorphic(f: Callable[..., Any], order: int = 1) -> Callable[..., Any]:
    return f if order == 0 else _holomorphic(func.grad(f, holomorphic=True), order - 1)


SINGLE = np.float32
PAIR = np.array([40.0, 0.0])
_MINUS_ONE = np.array(-1.0)
POINTS: dict[str, tuple[Callable[[], Any], complex]] = {
    "expm1": (lambda: _grad(np.expm1)(-40.0), math.exp(-40)),
    "expm1 single": (lambda: _grad(np.expm1)(SINGLE(-20)), math.exp(-20)),
    "arctan2 of tiny": (lambda: _grad(np.arctan2)(SINGLE(3e-24), SINGLE(4e-24)), 1.6e23),
    "arctan2 of huge": (lambda: _grad(np.arctan2)(3e200, 4e200), 1.6e-201),
    "arctan2 by x": (lambda: func.grad(np.arctan2, argnums=1)(3e-200, 4e-200), -1.2e199),
    "angle": (lambda: _grad(lambda y: np.angle(4e-200 + 1j * y))(3e-200), 1.6e199),
    "reciprocal of huge": (lambda: _grad(lambda y: 1e250 * np.reciprocal(y))(1e200), -1e-150),
    "quotient by huge": (lambda: _grad(lambda y: 1e250 * (1 / y))(1e200), -1e-150),
    "1 / exp forward": (lambda: func.jvp(lambda x: 1 / np.exp(x), (400.0,), (1.0,))[1], -math.exp(-400)),
    "logistic forward": (
        lambda: func.jvp(lambda x: 1 / (1 + np.exp(-x)), (SINGLE(-50),), (SINGLE(1),))[1],
        math.exp(-50),
    ),
    "log1p of a square": (lambda: _grad(lambda x: np.log1p(x * x), 2)(1e100), -2e-200),
    "logaddexp": (lambda: _grad(lambda v: np.logaddexp(v, 0.0), 2)(40.0), math.exp(-40)),
    "logaddexp of large equals": (lambda: _grad(lambda v: np.logaddexp(v, 1e17))(1e17), 0.5),
    "arcsinh single": (lambda: _grad(np.arcsinh)(SINGLE(1e20)), 1e-20),
    "arcsinh": (lambda: _grad(np.arcsinh)(1e200), 1e-200),
    "arctan": (lambda: _grad(np.arctan, 2)(1e90), -2e-270),
    "arcsin": (lambda: _grad(np.arcsin)(1 - 2.0**-50), 1 / math.sqrt(2.0**-49 - 2.0**-100)),
    "arctanh": (lambda: _grad(np.arctanh)(1 - 2.0**-50), 1 / (2.0**-49 - 2.0**-100)),
    "hypot": (lambda: _grad(lambda x: np.hypot(x, 1e-20), 2)(1.0), 1e-40),
    "power": (
        lambda: func.grad(lambda x, y: x**y)(2.0**-1000, 0.1),
        0.1 * 2.0**900 * (1 - 1000 * math.log(2) * 2**-54 * 0.1),
    ),
    "fmod below a multiple": (
        lambda: func.grad(np.fmod, argnums=1)(math.nextafter(3e15, 0) / 1e15, math.nextafter(1.0, 2)),
        -2.0,
    ),
    "tanh": (lambda: _grad(np.tanh)(300.0), 4 * math.exp(-600)),
    "tanh, third": (lambda: _grad(np.tanh, 3)(20.0), 16 * math.exp(-40)),
    "tanh single": (lambda: _grad(np.tanh)(SINGLE(-20)), 4 * math.exp(-40)),
    "tanh complex": (
        lambda: func.jvp(np.tanh, (np.array(30 + 1j),), (np.array(1 + 0j),))[1],
        4 * np.exp(-60 - 2j),
    ),
    "tan far from the real axis": (lambda: _holomorphic(np.tan)(0.5 + 30j), 1 / cmath.cos(0.5 + 30j) ** 2),
    "tan where the cosine overflows": (lambda: 1 + _holomorphic(np.tan)(3 + 1000j), 1.0),
    "arcsin of a tiny complex number": (lambda: _holomorphic(np.arcsin, 2)(1e-30 + 0j), 1e-30),
    "arccosh of a tiny complex number": (lambda: _holomorphic(np.arccosh, 2)(complex(1e-30, 0.0)), -1e-30j),
    "arctan beside i": (lambda: _holomorphic(np.arctan)(2.0**-40 + 1j), 1 / (2.0**-40 * (2j + 2.0**-40))),
    "arcsinh beside i": (
        lambda: _holomorphic(np.arcsinh)(2.0**-40 + 1j),
        1 / cmath.sqrt(2.0**-40 * (2j + 2.0**-40)),
    ),
    "arcsinh of huge complex": (lambda: _holomorphic(np.arcsinh)(1e300 * (3 + 4j)), 1e-300 / (3 + 4j)),
    "arctanh of huge complex": (lambda: 1 + _holomorphic(np.arctanh)(1e10 + 1e300j), 1.0),
    "power of a huge complex number": (lambda: 1 + _holomorphic(lambda z: np.power(z, _MINUS_ONE))(1e200 + 0j), 1.0),
    "sign of a complex number": (lambda: _grad(lambda x: np.sign(x + 1e-10j).real)(1.0), 1e-20),
    "softmax of one large": (lambda: func.grad(lambda x: special.softmax(x)[0])(PAIR)[0], math.exp(-40)),
    "softmax of one large, forward": (lambda: func.jacfwd(special.softmax)(PAIR)[0, 0], math.exp(-40)),
    "softmax, second": (
        lambda: func.hessian(lambda x: special.softmax(x)[0])(PAIR)[0, 0],
        -math.exp(-40),
    ),
    "log_softmax of one large": (lambda: func.grad(lambda x: special.log_softmax(x)[0])(PAIR)[0], math.exp(-40)),
    "log_softmax, forward": (lambda: func.jacfwd(special.log_softmax)(PAIR)[0, 0], math.exp(-40)),
    "logsumexp, second": (lambda: func.hessian(special.logsumexp)(PAIR)[0, 0], math.exp(-40)),
    "logaddexp.reduce, second": (lambda: func.hessian(np.logaddexp.reduce)(PAIR)[0, 0], math.exp(-40)),
    "logaddexp2.reduce, second": (
        lambda: func.hessian(np.logaddexp2.reduce)(np.array([-1.0, 0.0, 20.0]))[0, 1],
        -math.log(2) * 0.5 / (1.5 + 2.0**20) ** 2,
    ),
    "product beside others": (lambda: func.grad(np.prod)(np.array([1e-300, 1.0, 1e200, 1e200]))[1], 1e100),
    "remainder of a tiny number": (lambda: func.grad(np.remainder, argnums=1)(5e-150, -3e250), 1.0),
}
"""Derivatives that are ordinary numbers, where the plain form of the partial gives zero, infinity or few digits."""


@pytest.mark.parametrize("name", POINTS)
def test_derivatives_that_are_ordinary_numbers(name: str) -> None:
    compute, right = POINTS[name]
    found = compute()
    assert abs(found / right - 1) < (2e-6 if np.asarray(found).dtype == SINGLE else 4e-15), (found, right)


@pytest.mark.parametrize("compiler", [None, "numpy", "llvm"])
@pytest.mark.parametrize("kind", ["d", "f", "D", "F"])
def test_the_derivative_of_tanh_beyond_the_range_of_cosh(kind: str, compiler: str | None) -> None:
    x = np.array([400.0, -720.0, 1e4, -1e30, np.inf]).astype(kind)
    if x.dtype.kind == "c":
        x = x[:-1] + np.array(1j, kind)
    slope = lambda x: func.jvp(np.tanh, (x,), (np.ones_like(x),))[1]  # noqa: E731
    found = (slope if compiler is None else func.jit(slope, compiler=compiler))(x)
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found, 0)
    if x.dtype.kind == "f":
        slope = func.grad(lambda x: np.sum(np.tanh(x)))
        np.testing.assert_array_equal((slope if compiler is None else func.jit(slope, compiler=compiler))(x), 0)


def test_a_nan_in_a_running_extremum_carries_its_tangent() -> None:
    x, dx = np.array([1.0, np.nan, 2.0]), np.array([3.0, 5.0, 7.0])
    for ufunc in (np.maximum, np.minimum):
        np.testing.assert_array_equal(func.jvp(ufunc.accumulate, (x,), (dx,))[1], [3.0, 5.0, 5.0])
        first = np.array([np.nan, 1.0])
        np.testing.assert_array_equal(func.jvp(ufunc.accumulate, (first,), (dx[:2],))[1], [3.0, 3.0])


def test_a_product_of_factors_is_one_partial() -> None:
    partial = PRIMITIVES["divide"].partials[1]
    saved = [np.array([3.0, 1j]), np.array([2.0, 4j]), np.array([1.5, 0.25])]
    np.testing.assert_allclose(partial.evaluate(saved), -saved[2] / saved[1])
    direction = np.array([1.0 + 1j, 2.0 - 3j])
    np.testing.assert_allclose(partial.scaled(saved, direction, True, False), direction * np.conj(-saved[2] / saved[1]))
