"""Derivatives at points where a formula has a vanishing term, or a special case, and the function is analytic.

Values there do not tell whether a derivative is lost, and nor do rules that are compared with themselves. So the truth
is the polynomial through values of the function around the point.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special as sp
import scipy.stats as st
from numpy.polynomial import chebyshev

import func
from func.errors import ArgumentError

Function = Callable[[Any], Any]
RADIUS, NODES, DEGREE = 0.15, 33, 20
RNG = np.random.default_rng(0)
U, _, V = np.linalg.svd(RNG.normal(size=(4, 4)))
W = RNG.normal(size=(4, 4))


def derivatives_by_values(f: Function, order: int) -> tuple[list[float], float]:
    """The derivatives at zero of an analytic function, and the size of its values."""
    cosines = np.cos(np.pi / (2 * NODES) * np.arange(4 * NODES))
    places = np.arange(NODES)[:, None] * (2 * np.arange(NODES) + 1) % (4 * NODES)
    values = np.array([float(f(RADIUS * node)) for node in cosines[places[1]]])
    terms = np.array([math.fsum(row) for row in cosines[places] * values]) * 2 / NODES
    terms[0] /= 2
    size = float(np.max(np.abs(terms)))
    assert np.max(np.abs(terms[DEGREE:])) < 1e-13 * size, "the function is not analytic here"
    terms = terms[:DEGREE]
    return [float(chebyshev.chebval(0.0, chebyshev.chebder(terms, k))) / RADIUS**k for k in range(order + 1)], size


def determinant(values: list[float]) -> Function:
    return lambda t: np.linalg.det(U @ np.diag(values) @ V + t * W)


def interpolated(t: Any) -> Any:
    return np.interp(1.0 + t, np.array([0.0, 1.0, 2.0]), t * np.array([0.0, 1.0, 2.0]))


# fmt: off
FUNCTIONS: dict[str, tuple[Function, int]] = {
    "a power with exponent zero": (lambda t: (1 + t) ** t, 4),
    "a power with exponent one": (lambda t: (2 + t) ** (1 + t), 4),
    "an array to such powers": (lambda t: np.sum(np.stack([1 + t, 2 + t]) ** np.stack([t, 1 - t])), 4),
    "float_power": (lambda t: np.float_power(2 + t, 0 * t - t), 4),
    "xlogy": (lambda t: sp.xlogy(t, 3 + t), 4),
    "xlog1py": (lambda t: sp.xlog1py(t, t), 4),
    "poch": (lambda t: sp.poch(1 + t, t), 4),
    "binom": (lambda t: sp.binom(3 + t, t), 4),
    "gammainc": (lambda t: sp.gammainc(1 + t, 1 + t), 4),
    "chdtr": (lambda t: sp.chdtr(2 + t, 2 + t), 4),
    "ber": (sp.ber, 5),
    "bei": (sp.bei, 6),
    "kelvin": (lambda t: np.imag(sp.kelvin(t)[2]), 5),
    "it2i0k0": (lambda t: sp.it2i0k0(t)[0], 4),
    "it2j0y0": (lambda t: sp.it2j0y0(t)[0], 4),
    "it2struve0": (sp.it2struve0, 4),
    "tklmbda": (lambda t: sp.tklmbda(0.3 + t, t), 3),
    "logsumexp": (lambda t: sp.logsumexp(np.stack([t, 0 * t]), b=np.stack([t, 1 + 0 * t])), 4),
    "interp": (interpolated, 3),
    "a norm": (lambda t: np.linalg.norm(np.stack([t, 1 + t]), 4), 6),
    "a complex norm": (lambda t: np.linalg.norm(np.stack([t + 1j * t, 1 + t]), 4), 6),
    "a determinant of rank 3": (determinant([3.0, 2.0, 1.0, 0.0]), 4),
    "a determinant of rank 3, almost": (determinant([3.0, 2.0, 1.0, 1e-9]), 4),
    "a determinant of rank 2": (determinant([3.0, 2.0, 0.0, 0.0]), 4),
    "a determinant of rank 1": (determinant([1.0, 0.0, 0.0, 0.0]), 4),
    "a determinant of equal values": (determinant([1.0, 1.0, 1.0, 0.0]), 4),
    "a determinant of nothing but zeros": (determinant([0.0] * 4), 4),
    "a large power": (lambda t: (1 + t / 10) ** 70, 4),
}
# fmt: on
DENSITIES: dict[str, tuple[float, ...]] = {
    "gamma": (0.7, 1.0),
    "beta": (0.5, 1.0, 1.0),
    "chi2": (0.7, 2.0),
    "weibull_min": (0.7, 1.0),
    "f": (0.5, 2.0, 2.0),
    "nakagami": (0.5, 0.5),
    "powerlaw": (0.5, 1.0),
    "gengamma": (0.5, 1.0, 1.0),
    "skewnorm": (0.3, 0.0),
    "genextreme": (0.3, 0.0),
    "genpareto": (0.3, 0.0),
}


def check(f: Function, order: int) -> None:
    """The derivatives by Taylor mode, nested reverse and forward mode, the Laplacian, and one compiled program."""
    expected, size = derivatives_by_values(f, order)
    found: list[tuple[str, int, Any]] = []
    found += [("taylor", k, c * math.factorial(k)) for k, c in enumerate(func.taylor(f, 0.0, 1.0, order))]
    reverse, forward = f, f
    for k in range(1, min(order, 3) + 1):
        reverse, forward = func.grad(reverse), slope_of(forward)
        found += [("grad", k, reverse(0.0)), ("jvp", k, forward(0.0))]
        if k == 2:
            found += [("jit of grad", k, func.jit(reverse)(0.0)), ("vmap", k, func.vmap(reverse)(np.zeros(2))[1])]
    found.append(("laplacian", 2, func.laplacian(f)(0.0)))
    for how, k, value in found:
        tolerance = 1e-8 * abs(expected[k]) + 1e-14 * size * math.factorial(k) * (4 / RADIUS) ** k
        assert abs(value - expected[k]) < tolerance, (how, k)


def slope_of(f: Function) -> Function:
    return lambda t: func.jvp(f, (t,), (1.0,))[1]


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    check(*FUNCTIONS[name])


@pytest.mark.parametrize(("name", "method"), list(itertools.product(DENSITIES, ["logpdf", "pdf"])))
def test_densities_by_argument_and_shapes(name: str, method: str) -> None:
    point = DENSITIES[name]
    check(lambda t: getattr(getattr(st, name), method)(*[x + t * (1 - k / 2) for k, x in enumerate(point)]), 3)


def test_hessians_of_powers_are_symmetric() -> None:
    for y in (0.0, 1.0, 2.0):
        hessian = func.hessian(lambda a: a[0] ** a[1])(np.array([2.0, y]))
        np.testing.assert_allclose(hessian, hessian.T, rtol=1e-14)
    assert func.grad(lambda x: x**0.0)(0.0) == 0
    np.testing.assert_array_equal(func.grad(lambda x: np.sum(x ** np.array([0.0, 0.0])))(np.array([0.0, np.inf])), 0)
    np.testing.assert_array_equal(func.jvp(lambda y: sp.xlogy(0.0, y), (0.0,), (1.0,))[1], 0)


def student(df: Any, t: float) -> Any:
    peak = mpmath.gamma((df + 1) / 2) / (mpmath.sqrt(df * mpmath.pi) * mpmath.gamma(df / 2))
    return peak * t * mpmath.hyp2f1(0.5, (df + 1) / 2, 1.5, -(mpmath.mpf(t) ** 2) / df)


@pytest.mark.parametrize("df", [0.5, 3.0, 300.0])
def test_student_distribution_by_its_degrees_of_freedom(df: float) -> None:
    for t in (0.0, 1e-9, -1e-7, 0.05, 0.5):
        with mpmath.workdps(40):
            expected = float(mpmath.diff(lambda n, t=t: student(n, t), mpmath.mpf(df)))
        slope = func.grad(lambda n, t=t: sp.stdtr(n, t))(df)
        assert slope == pytest.approx(expected, rel=1e-8, abs=1e-300)


def test_powers_beyond_those_made_of_products() -> None:
    """(t + t²)ⁿ begins with tⁿ + n tⁿ⁺¹."""
    _, terms = func.jet(lambda x: x**70, (0.0,), ([1.0, 2.0, *[0.0] * 69],))
    coefficients = np.array(terms) / [float(math.factorial(k)) for k in range(1, 72)]
    np.testing.assert_allclose(coefficients, [*[0.0] * 69, 1.0, 70.0], atol=1e-300)
    assert func.taylor(lambda x: x**-70, 1.0, 1.0, 2)[2] == pytest.approx(70 * 71 / 2)


def test_derivatives_of_an_order_whose_factorial_overflows_are_refused() -> None:
    assert func.taylor(np.exp, 0.0, 1.0, 171)[171] == pytest.approx(0.0)
    for call in (
        lambda: func.derivatives(np.exp, 171),
        lambda: func.directional_derivatives(np.exp, 171),
        lambda: func.jet(np.exp, (0.0,), ([1.0] * 171,)),
    ):
        with pytest.raises(ArgumentError, match="up to order 170, not 171"):
            call()


def test_sums_over_nothing_are_zero() -> None:
    key = func.random.key(0)
    assert func.divergence(lambda p: p)(()) == 0
    assert func.laplacian(lambda p: 1.0)(()) == 0
    assert func.hutchinson_trace(lambda p: 1.0, key, 3)(()) == 0
    assert func.hutch_plus_plus(lambda p: 1.0, key, 3)(()) == 0
    assert func.hutchinson_diagonal(lambda p: 1.0, key, 3)(()) == ()
