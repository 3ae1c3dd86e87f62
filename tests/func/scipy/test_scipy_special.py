"""The laws of scipy.special's rows, derivatives by every argument, and special points."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

import func
from func.errors import NotDifferentiableError
from tests.support.scipy_rows import check, parameters
from tests.support.scipy_special import ROWS, WITHOUT
from tests.support.special_arguments import ARGUMENTS, WITHOUT_DERIVATIVE

BY_FORMULA = {name: row for name, row in ROWS.items() if name in ARGUMENTS}
OTHERS = {name: row for name, row in ROWS.items() if name not in BY_FORMULA}


@pytest.mark.parametrize(("name", "column"), parameters(BY_FORMULA))
def test_rows_by_formula(name, column):
    check(ROWS[name], "special", column)


@pytest.mark.filterwarnings("ignore:non-integer arg n:DeprecationWarning")
@pytest.mark.parametrize("name", OTHERS)
def test_rows_unmodified(name):
    check(ROWS[name], "special", "unmodified")


def test_every_public_name_has_a_row_or_a_reason():
    assert set(scipy.special.__all__) <= set(ROWS) | set(WITHOUT)
    assert not set(ROWS) & set(WITHOUT)


def quotient(f, x):
    """The derivative by central differences of fourth order."""
    h = 1e-4 * abs(x)
    return (8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * h)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_derivatives_by_every_argument(name):
    function = getattr(scipy.special, name)
    values, places = ARGUMENTS[name]
    for place in places:

        def f(x, place=place):
            out = function(*values[:place], x, *values[place + 1 :])
            return np.stack(out) if isinstance(out, tuple) else out

        def slope(x, f=f):
            return func.jvp(f, (x,), (1.0,))[1]

        tolerance = 1e-4 if name.startswith(("mathieu", "obl", "pro", "ncf")) else 1e-6
        dot, bend = func.jvp(slope, (values[place],), (1.0,))
        np.testing.assert_allclose(dot, quotient(f, values[place]), rtol=tolerance, atol=1e-7)
        np.testing.assert_allclose(bend, quotient(slope, values[place]), rtol=10 * tolerance, atol=1e-6)


@pytest.mark.parametrize("name", WITHOUT_DERIVATIVE)
def test_missing_derivatives_raise_by_name(name):
    values = WITHOUT_DERIVATIVE[name]
    with pytest.raises(NotDifferentiableError, match=f"no derivative of {name} with respect to"):
        func.grad(lambda x: getattr(scipy.special, name)(*values[:-1], x))(values[-1])


def test_polynomials_of_degree_zero_and_at_the_ends():
    for name, rest in {"eval_legendre": (), "eval_jacobi": (0.5, 0.3), "eval_hermite": (), "eval_chebyt": ()}.items():
        f = getattr(scipy.special, name)
        assert func.grad(lambda x, f=f, rest=rest: f(0, *rest, x))(0.3) == 0
        for x in (-1.0, 1.0):
            expected = quotient(lambda x, f=f, rest=rest: f(3, *rest, x), 0.999 * x)
            np.testing.assert_allclose(func.grad(lambda x, f=f, rest=rest: f(3, *rest, x))(x), expected, rtol=0.05)


def test_kelvin_functions_at_zero():
    for name, slope in {"ber": 0.0, "bei": 0.0, "berp": 0.0, "beip": 0.5}.items():
        assert func.grad(getattr(scipy.special, name))(0.0) == slope


def test_carlson_integrals_of_equal_arguments():
    for f in (scipy.special.elliprc, lambda x, y: scipy.special.elliprf(x, y, y)):
        gradient = func.grad(f, argnums=(0, 1))(0.7, 0.7)
        np.testing.assert_allclose(gradient, (-(0.7**-1.5) / 6, -(0.7**-1.5) / 3))


def test_single_precision_stays_single():
    x = np.float32(0.4)
    for call in (lambda x: scipy.special.eval_legendre(2, x), scipy.special.kelvin, scipy.special.voigt_profile):
        rest = (np.float32(0.5), np.float32(0.2)) if call is scipy.special.voigt_profile else ()
        expected = call(x, *rest)
        got = func.jvp(lambda x, call=call, rest=rest: call(x, *rest), (x,), (x,))
        for plain, value, dot in zip(*[o if isinstance(o, tuple) else (o,) for o in (expected, *got)], strict=True):
            assert plain.dtype == value.dtype == np.asarray(dot).dtype
