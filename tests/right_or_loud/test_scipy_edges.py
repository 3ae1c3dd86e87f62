"""Edges of SciPy's functions: ends of supports, NaN, opposite vectors, and what their refusals say."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy
import scipy.integrate
import scipy.linalg
import scipy.ndimage
import scipy.optimize
import scipy.signal
import scipy.special
import scipy.stats
from scipy.interpolate import SmoothSphereBivariateSpline
from scipy.spatial.transform import Rotation

import func
from func.errors import FuncError
from func.scipy.spatial.transform import rotations

_first = scipy.optimize.linear_sum_assignment  # other tests may have made the hook before this file was imported
bound_early = getattr(_first, "__wrapped__", _first)

X = np.random.default_rng(0).standard_normal(12) + 0.1
M = X.reshape(3, 4)

REFUSED: dict[str, tuple[Callable[[], Any], tuple[str, ...]]] = {
    "sigmaclip": (
        lambda: func.jit(guards=False)(lambda x: scipy.stats.sigmaclip(x)[0])(X),
        ("scipy.stats.sigmaclip", "outside of"),
    ),
    "subspace_angles": (
        lambda: func.jit(guards=False)(lambda x: scipy.linalg.subspace_angles(x.T, np.eye(4)[:, :2]))(M),
        ("scipy.linalg.subspace_angles", "outside of"),
    ),
    "gaussian_laplace": (
        lambda: func.jit(guards=False)(lambda width: scipy.ndimage.gaussian_laplace(X, width))(1.0),
        ("scipy.ndimage.gaussian_laplace", "static arguments"),
    ),
    "find_peaks": (
        lambda: func.jit(guards=False)(lambda x: scipy.signal.find_peaks(x)[0])(X),
        ("scipy.signal.find_peaks", "outside"),
    ),
    "find_peaks of signals": (
        lambda: func.vmap(lambda x: scipy.signal.find_peaks(x)[0])(M),
        ("scipy.signal.find_peaks", "before"),
    ),
    "find_objects": (
        lambda: func.jit(guards=False)(lambda x: scipy.ndimage.find_objects(x))(np.ones(3, int)),
        ("scipy.ndimage.find_objects", "func.pure_callback"),
    ),
    "compiled function bound early": (
        lambda: func.grad(lambda c: c[bound_early(c)].sum())(M),
        ("func.scipy.optimize.linear_sum_assignment takes traced ones",),
    ),
    "qr_update": (
        lambda: func.grad(lambda u: scipy.linalg.qr_update(np.eye(4), np.eye(4), u, u)[1].sum())(X[:4]),
        ("scipy.linalg.qr_update", "np.linalg.qr"),
    ),
    "sphere": (
        lambda: func.grad(lambda z: SmoothSphereBivariateSpline(X[:9] ** 2, X[:9] ** 2, z).get_residual())(X[:9]),
        ("scipy.interpolate.SmoothSphereBivariateSpline", "RBFInterpolator"),
    ),
    "mstats": (
        lambda: func.grad(lambda x: scipy.stats.mstats.tmean(x))(X),
        ("scipy.stats.mstats.tmean", "nan_policy='omit'"),
    ),
    "eig of a pencil": (
        lambda: func.grad(lambda a: np.abs(scipy.linalg.eig(a, np.eye(3))[0]).sum())(np.eye(3)),
        ("b=, left=", "eig(solve(b, a))"),
    ),
}
if rotations.HAS_HOOKS:
    REFUSED["RigidTransform"] = (
        lambda: func.grad(lambda t: scipy.spatial.transform.RigidTransform.from_translation(t).as_matrix().sum())(
            X[:3]
        ),
        ("scipy.spatial.transform.RigidTransform.from_translation", "r.apply(x) + t"),
    )
if hasattr(scipy.stats, "Normal"):
    REFUSED["Normal"] = (
        lambda: func.jit(guards=False)(lambda m: scipy.stats.Normal(mu=m).logpdf(0.3))(1.0),
        ("scipy.stats.Normal", "func.pure_callback"),
    )


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_names_the_function_and_what_to_write(name: str) -> None:
    call, words = REFUSED[name]
    with pytest.raises((FuncError, TypeError)) as caught:
        call()
    for word in (*words, __file__):
        assert word in str(caught.value)


ENDS: dict[str, tuple[tuple[float, ...], float, float, float]] = {
    "gamma": ((2.0,), 0.0, 1.0, -2.0),
    "erlang": ((3,), 0.0, 0.0, 1.0),
    "chi2": ((4.0,), 0.0, 0.25, -0.25),
    "chi": ((2.0,), 0.0, 1.0, 0.0),
    "f": ((4.0, 5.0), 0.0, 5.6, -40.32),
    "nakagami": ((1.0,), 0.0, 2.0, 0.0),
    "gengamma": ((2.0, 1.0), 0.0, 1.0, -2.0),
    "beta": ((2.0, 3.0), 0.0, 12.0, -48.0),
    "genpareto": ((-0.5,), 2.0, -0.5, 0.0),
    "fisk": ((1.0,), 0.0, -2.0, 6.0),
    "expon": ((), 0.0, -1.0, 1.0),
}
"""Shapes, an end of the support, and the first two derivatives of the density from inside."""


@pytest.mark.parametrize("name", ENDS)
def test_densities_differentiate_at_the_end_of_the_support(name: str) -> None:
    shapes, end, first, second = ENDS[name]

    def pdf(x: Any) -> Any:
        return getattr(scipy.stats, name).pdf(x, *shapes)

    np.testing.assert_allclose(func.grad(pdf)(end), first, atol=1e-12)
    np.testing.assert_allclose(func.jit(func.grad(func.grad(pdf)))(end), second, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(func.jit(pdf)(np.array([end, 0.3, 7.0])), pdf(np.array([end, 0.3, 7.0])), rtol=1e-12)


@pytest.mark.parametrize("method", ["pdf", "logpdf", "cdf", "logsf", "ppf"])
@pytest.mark.parametrize("argument", range(4))
def test_a_nan_argument_of_a_distribution_has_the_derivative_nan(method: str, argument: int) -> None:
    point = np.array([0.3, 2.0, 0.1, 1.5])
    point[argument] = np.nan
    assert np.isnan(func.grad(lambda p: getattr(scipy.stats.gamma, method)(*p))(point)[argument])


def test_probabilities_of_randint_differentiate_by_both_bounds() -> None:
    slopes = func.grad(lambda b: scipy.stats.randint.pmf(3, b[0], b[1]))(np.array([0.0, 8.0]))
    np.testing.assert_allclose(slopes, [1 / 64, -1 / 64])


@pytest.mark.parametrize("x", [8.4, 8.6, 30.0, 37.0, 50.0, 1e5])
def test_log_ndtr_has_every_derivative_far_to_the_right(x: float) -> None:
    density = np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
    f: Any = scipy.special.log_ndtr
    for order, factor in enumerate((1.0, -x, x * x - 1)):
        f = func.grad(f)
        np.testing.assert_allclose(f(x), factor * density, rtol=1e-10, err_msg=str(order + 1))


def test_opposite_vectors_have_no_derivative_of_their_rotation() -> None:
    a = np.array([1.0, 0.0, 0.0])

    def turned(b: Any) -> Any:
        return Rotation.align_vectors(a, b)[0].as_matrix()[0, 1]

    assert np.isnan(func.grad(turned)(-a)).all()
    np.testing.assert_allclose(func.grad(turned)(a), [0.0, 1.0, 0.0], atol=1e-15)
    np.testing.assert_array_equal(np.isnan(func.vmap(func.grad(turned))(np.stack([-a, a])))[:, 0], [True, False])


def test_compiled_functions_that_return_integers_work_under_every_transform() -> None:
    def cost(c: Any) -> Any:
        return c[scipy.optimize.linear_sum_assignment(c)].sum()

    rows, columns = scipy.optimize.linear_sum_assignment(M)
    chosen = np.zeros_like(M)
    chosen[rows, columns] = 1
    np.testing.assert_array_equal(func.jit(func.grad(cost))(M), chosen)
    np.testing.assert_array_equal(func.vmap(func.grad(cost))(np.stack([M, M]))[1], chosen)
    assert pickle.loads(pickle.dumps(scipy.optimize.linear_sum_assignment)) is scipy.optimize.linear_sum_assignment

    def regions(x: Any) -> Any:
        return scipy.ndimage.label(x > 0)[0]

    np.testing.assert_array_equal(func.jit(regions)(M), regions(M))
    np.testing.assert_array_equal(func.vmap(regions)(np.stack([M, -M])), [regions(M), regions(-M)])
    assert type(func.grad(lambda x: scipy.ndimage.label(x)[1] * x[0, 0])(M)[0, 0]) is np.float64


@pytest.mark.skipif(not hasattr(scipy.stats, "Binomial"), reason="a distribution of SciPy 1.16")
def test_new_distributions_need_no_import_of_funcs_stats() -> None:
    program = "import func, scipy.stats as st\nprint(func.grad(lambda p: st.Binomial(n=4, p=p).pmf(2))(0.5))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    np.testing.assert_allclose(float(result.stdout), 0.0, atol=1e-12)


def test_infinite_limits_have_no_part_in_the_derivative_of_an_integral() -> None:
    def second_moment(scale: Any) -> Any:
        return scipy.stats.norm(0.1, scale).expect(lambda t: t**2)

    np.testing.assert_allclose(func.grad(second_moment)(0.8), 1.6, rtol=1e-7)
    np.testing.assert_allclose(func.jvp(second_moment, (0.8,), (1.0,))[1], 1.6, rtol=1e-7)


def test_the_derivative_of_an_unfinished_solution_gives_a_warning() -> None:
    def last(rate: Any) -> Any:
        return scipy.integrate.solve_ivp(lambda t, y: rate * y * y, (0, 5.0), [1.0]).y[0, -1]

    with pytest.warns(func.errors.SolverWarning, match="ended before the end of its interval"):
        func.grad(last)(2.0)


def test_weights_are_ordered_by_traced_values() -> None:
    x, weights = X.reshape(2, 6), np.arange(1.0, 7.0)

    def distance(x: Any) -> Any:
        return scipy.stats.energy_distance(x, x[::-1] + 1, weights, weights[::-1])

    np.testing.assert_allclose(func.vmap(distance)(x), [distance(x[0]), distance(x[1])])


def test_a_block_without_nan_keeps_its_value_beside_one_with_it() -> None:
    y = np.array([0.1, 0.4, 0.3, np.nan])
    fitted = func.jvp(lambda y: scipy.optimize.isotonic_regression(y).x, (y,), (np.ones(4),))[0]
    np.testing.assert_array_equal(fitted, scipy.optimize.isotonic_regression(y).x)
    with pytest.raises(ValueError, match="dimensions"):
        func.grad(lambda y: scipy.optimize.isotonic_regression(y).x.sum())(M)
