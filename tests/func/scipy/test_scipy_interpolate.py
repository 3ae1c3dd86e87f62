"""The laws of scipy.interpolate's rows, and its options, methods, errors and classes on traced values."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import scipy.interpolate
from scipy.interpolate import BSpline, CubicSpline, PPoly, make_interp_spline
from scipy.sparse.linalg import spsolve

import func
from func.errors import StagingError, UnsupportedFunctionError
from tests.support.scipy_interpolate import (
    AT,
    INSIDE,
    KNOTS,
    NODES,
    ON_GRID,
    PERIODIC,
    PLACES,
    RNG,
    ROWS,
    WHERE,
    WITHOUT,
    Y2,
    Y,
    Z,
)  # fmt: skip
from tests.support.scipy_rows import DEPRECATED, Row, check, parameters

COMPLEX = Y + 1j * np.cos(Y)
FALLING = NODES[::-1].copy()
SMALL = np.arange(4.0) ** 1.3
P3 = np.reshape(np.arange(36.0) ** 0.7, (3, 4, 3))


def skip_faults(name):
    """Skip what SciPy 1.18 itself does wrong: FITPACK reads the knots given beyond their end, or crashes."""
    if name in ("bisplrep", "UnivariateSpline set_smoothing_factor") and scipy.__version__.startswith("1.18."):
        pytest.skip(f"{name} is at fault in SciPy {scipy.__version__}")


@pytest.mark.parametrize(("name", "column"), parameters(ROWS))
@pytest.mark.filterwarnings(DEPRECATED)
def test_interpolate_rows(name, column):
    skip_faults(name)
    check(ROWS[name], "interpolate", column)


def test_every_public_name_has_a_row_or_a_reason():
    named = {name.split(" ")[0] for name in ROWS}
    assert named | set(WITHOUT) == set(scipy.interpolate.__all__)
    assert not named & set(WITHOUT)


def _ppoly(m, c, **options):
    return m.PPoly(np.reshape(c, (3, 4, 3)), NODES[:5], **options)


OPTIONS = {
    "CubicSpline clamped": Row(lambda m, y: m.CubicSpline(NODES, y, bc_type="clamped")(AT), Y),
    "CubicSpline natural and not-a-knot": Row(
        lambda m, y: m.CubicSpline(NODES, y, bc_type=("natural", "not-a-knot"))(AT), Y2
    ),
    "CubicSpline boundary values": Row(
        lambda m, v: m.CubicSpline(NODES, Y, bc_type=((1, v[0]), (2, v[1])))(AT), np.array([0.3, -0.2])
    ),
    "CubicSpline axis": Row(lambda m, y: m.CubicSpline(NODES, y, axis=1)(INSIDE[:4].reshape(2, 2)), Y2.T),
    "CubicSpline complex": Row(lambda m, y: m.CubicSpline(NODES, y * (1 + 2j))(AT), Y),
    "CubicSpline outside": Row(lambda m, y: m.CubicSpline(NODES, y, extrapolate=False)(INSIDE), Y),
    "CubicSpline periodic extrapolation": Row(lambda m, y: m.CubicSpline(NODES, y, extrapolate="periodic")(AT), Y),
    "CubicSpline of two": Row(lambda m, y: m.CubicSpline(NODES[:2], y)(INSIDE), Y[:2]),
    "CubicSpline of three": Row(lambda m, y: m.CubicSpline(NODES[:3], y)(INSIDE), Y[:3]),
    "CubicSpline of three nodes": Row(lambda m, x: m.CubicSpline(x, Y[:3])(INSIDE), NODES[:3]),
    "CubicSpline three periodic": Row(
        lambda m, x: m.CubicSpline(x, [1.0, 2.0, 1.0], bc_type="periodic")(INSIDE), NODES[:3]
    ),
    "CubicSpline four periodic": Row(
        lambda m, x: m.CubicSpline(x, [1.0, 2.0, 0.5, 1.0], bc_type="periodic")(INSIDE), NODES[:4]
    ),
    "CubicSpline scalar": Row(lambda m, x: m.CubicSpline(NODES, Y2)(x), np.array(1.3)),
    "CubicSpline derivative": Row(lambda m, y: m.CubicSpline(NODES, y).derivative(2)(AT), Y),
    "CubicSpline antiderivative": Row(lambda m, x: m.CubicSpline(x, Y2).antiderivative(2)(AT), NODES),
    "CubicSpline integrate": Row(lambda m, a: m.CubicSpline(NODES, Y2).integrate(a[0], a[1]), np.array([3.1, 0.3])),
    "CubicSpline integrate periodic": Row(
        lambda m, a: m.CubicSpline(NODES, PERIODIC, bc_type="periodic").integrate(a[0], a[1]), np.array([-1.2, 9.3])
    ),
    "CubicSpline float32": Row(lambda m, y: m.CubicSpline(NODES.astype("f4"), y)(INSIDE.astype("f4")), Y),
    "Akima": Row(lambda m, y: m.Akima1DInterpolator(NODES, y)(INSIDE), Y2),
    "Akima of two": Row(lambda m, y: m.Akima1DInterpolator(NODES[:2], y, extrapolate=True)(INSIDE), Y[:2]),
    "Akima of three": Row(lambda m, y: m.Akima1DInterpolator(NODES[:3], y, extrapolate=True)(INSIDE), Y[:3]),
    "Pchip nodes": Row(lambda m, x: m.PchipInterpolator(x, Y2, axis=0)(AT), NODES),
    "Pchip of two": Row(lambda m, y: m.PchipInterpolator(NODES[:2], y)(AT), Y[:2]),
    "PPoly axis": Row(lambda m, c: m.PPoly(np.reshape(c, (3, 3, 4)), NODES[:5], axis=1)(AT), P3.ravel()),
    "PPoly integrate": Row(lambda m, c: _ppoly(m, c).integrate(0.3, 2.9), P3.ravel()),
    "PPoly integrate outside": Row(lambda m, c: _ppoly(m, c).integrate(-0.3, 2.1, extrapolate=True), P3.ravel()),
    "PPoly antiderivative": Row(lambda m, c: _ppoly(m, c).antiderivative(3)(AT, 1), P3.ravel()),
    "PPoly derivative of high order": Row(lambda m, c: _ppoly(m, c).derivative(4)(AT), P3.ravel()),
    "PPoly falling": Row(lambda m, x: m.PPoly(P3, x)(AT), NODES[4::-1].copy()),
    "PPoly falling antiderivative": Row(lambda m, x: m.PPoly(P3, x).antiderivative()(INSIDE), NODES[4::-1].copy()),
    "PPoly extend": Row(
        lambda m, c: _extended(m.PPoly(np.reshape(c, (3, 4, 3)), NODES[:5]), P3[:2, :2], NODES[5:])(AT), P3.ravel()
    ),
    "PPoly roots": Row(lambda m, y: m.CubicSpline(NODES, y).roots(), np.array([1.0, -1.0, 2.0, 1.0, -2.0, 1.0, 2.0])),
    "PPoly solve": Row(lambda m, y: m.CubicSpline(NODES, NODES**2 / 3).solve(y[0], extrapolate=False), np.array([1.3])),
    "PPoly from_spline": Row(lambda m, c: m.PPoly.from_spline(m.BSpline(KNOTS, c, 3))(INSIDE), RNG.normal(size=6)),
    "PPoly from_spline tck": Row(lambda m, c: m.PPoly.from_spline((KNOTS, c, 3))(INSIDE), RNG.normal(size=6)),
    "PPoly from_bernstein": Row(
        lambda m, c: m.PPoly.from_bernstein_basis(m.BPoly(np.reshape(c, (3, 4, 3)), NODES[:5]))(AT), P3.ravel()
    ),
    "BPoly derivative": Row(lambda m, c: m.BPoly(np.reshape(c, (3, 4, 3)), NODES[:5]).derivative(2)(AT), P3.ravel()),
    "BPoly nu": Row(lambda m, x: m.BPoly(P3, x)(AT, 1), NODES[:5]),
    "BPoly antiderivative": Row(lambda m, x: m.BPoly(P3, x).antiderivative(2)(AT), NODES[:5]),
    "BPoly integrate": Row(lambda m, x: m.BPoly(P3, x).integrate(0.2, 2.2), NODES[:5]),
    "BPoly extend": Row(
        lambda m, c: _extended(m.BPoly(np.reshape(c, (3, 4, 3)), NODES[:5]), P3[:2, :2], NODES[5:])(AT), P3.ravel()
    ),
    "BPoly from_power_basis": Row(lambda m, y: m.BPoly.from_power_basis(m.CubicSpline(NODES, y))(AT), Y),
    "BPoly from_derivatives": Row(
        lambda m, y: m.BPoly.from_derivatives(NODES[:3], [[y[0], y[1]], [y[2]], [y[3], y[4], y[5]]])(AT), Y[:6]
    ),
    "BPoly from_derivatives orders": Row(
        lambda m, x: m.BPoly.from_derivatives(x, [[1.0, 2.0], [2.0, 0.3], [0.5, 1.0]], orders=[3, 2])(AT), NODES[:3]
    ),
    "NdPPoly derivative": Row(
        lambda m, c: m.NdPPoly(np.reshape(c, (3, 2, 2, 3)), (NODES[:3], NODES[:4])).derivative((1, 0))(WHERE),
        P3.ravel(),
    ),
    "NdPPoly antiderivative": Row(
        lambda m, c: m.NdPPoly(np.reshape(c, (3, 2, 2, 3)), (NODES[:3], NODES[:4])).antiderivative((1, 2))(WHERE),
        P3.ravel(),
    ),
    "NdPPoly integrate": Row(
        lambda m, c: m.NdPPoly(np.reshape(c, (3, 2, 2, 3)), (NODES[:3], NODES[:4])).integrate(((0.1, 0.9), (0.2, 1.4))),
        P3.ravel(),
    ),
    "NdPPoly integrate_1d": Row(
        lambda m, c: m.NdPPoly(np.reshape(c, (3, 2, 2, 3)), (NODES[:3], NODES[:4])).integrate_1d(0.1, 0.9, 1)(
            WHERE[:, 0]
        ),
        P3.ravel(),
    ),
    "NdPPoly points": Row(
        lambda m, x: m.NdPPoly(np.reshape(P3, (3, 2, 2, 3)), (NODES[:3], NODES[:4]))(x, (1, 1)), WHERE
    ),
    "BSpline outside": Row(lambda m, c: m.BSpline(KNOTS, c, 3, extrapolate=False)(INSIDE), Y2),
    "BSpline periodic": Row(lambda m, c: m.BSpline(KNOTS, c, 3, extrapolate="periodic")(AT, 1), Y2),
    "BSpline axis": Row(lambda m, c: m.BSpline(KNOTS, c, 3, axis=1)(INSIDE.reshape(2, 3)), Y2.T),
    "BSpline complex": Row(lambda m, c: m.BSpline(KNOTS, c * (1 - 1j), 3)(AT), Y2),
    "BSpline nu beyond": Row(lambda m, c: m.BSpline(KNOTS, c, 3)(AT, 4), Y2),
    "BSpline k=0": Row(lambda m, c: m.BSpline(NODES, c, 0)(INSIDE), Y[:6]),
    "BSpline k=5": Row(lambda m, t: m.BSpline(t, Y, 5)(INSIDE, 2), np.linspace(-3, 7, 13) ** 3 / 40),
    "BSpline derivative": Row(lambda m, c: m.BSpline(KNOTS, c, 3).derivative(2)(AT), Y2),
    "BSpline antiderivative": Row(
        lambda m, t: m.BSpline(t, Y2[:6], 3).antiderivative(2)(INSIDE), np.linspace(-3, 7, 10)
    ),
    "BSpline integrate": Row(lambda m, a: m.BSpline(KNOTS, Y2, 3).integrate(a[0], a[1]), np.array([-0.4, 3.0])),
    "BSpline integrate inside": Row(lambda m, c: m.BSpline(KNOTS, c, 3).integrate(-0.4, 3.0, extrapolate=False), Y),
    "BSpline integrate periodic": Row(
        lambda m, a: m.BSpline(KNOTS, Y, 3).integrate(a[0], a[1], extrapolate="periodic"), np.array([-1.4, 9.1])
    ),
    "BSpline basis_element": Row(lambda m, t: m.BSpline.basis_element(t)(INSIDE[:3]), NODES[:5]),
    "BSpline insert_knot": Row(lambda m, c: m.BSpline(KNOTS, c, 3).insert_knot(1.4, 2).c, Y2[:6]),
    "BSpline from_power_basis": Row(lambda m, y: m.BSpline.from_power_basis(m.CubicSpline(NODES, y))(AT), Y),
    "NdBSpline derivative": Row(
        lambda m, c: m.NdBSpline((KNOTS, KNOTS), np.reshape(c, (6, 6)), 3).derivative((1, 2))(ON_GRID), P3.ravel()
    ),
    "NdBSpline points": Row(
        lambda m, x: m.NdBSpline((KNOTS, KNOTS), np.reshape(P3, (6, 6)), 3)(x, nu=(0, 1), extrapolate=False), ON_GRID
    ),
    **{
        f"make_interp_spline k={k}": Row(lambda m, x, k=k: m.make_interp_spline(x, Y2, k=k)(INSIDE + 0.03), NODES)
        for k in range(6)
    },
    **{
        f"make_interp_spline periodic k={k}": Row(
            lambda m, y, k=k: m.make_interp_spline(np.arange(13.0), y, k=k, bc_type="periodic")(AT * 4),
            np.append(np.cos(np.arange(12.0) ** 2), 1.0),
            without={"jvp": "a period is broken"},
        )
        for k in (2, 3, 4, 5)
    },
    "make_interp_spline clamped": Row(lambda m, y: m.make_interp_spline(NODES, y, bc_type="clamped")(AT), Y2),
    "make_interp_spline values": Row(
        lambda m, v: m.make_interp_spline(NODES, Y, k=5, bc_type=([(1, v[0]), (2, v[1])], [(1, 0.3), (3, v[2])]))(AT),
        SMALL,
    ),
    "make_interp_spline knots": Row(
        lambda m, t: m.make_interp_spline(NODES[:5], Y[:5], t=np.concatenate([[0.0] * 4, t, [1.9 + 0.4] * 4]))(INSIDE),
        np.array([1.2]),
    ),
    "make_interp_spline complex": Row(lambda m, y: m.make_interp_spline(NODES, y * (1 + 1j))(AT), Y),
    "make_lsq_spline weights": Row(
        lambda m, w: m.make_lsq_spline(np.linspace(0, 3.4, 12), np.cos(np.arange(12.0)), KNOTS, w=w)(AT),
        np.linspace(1, 2, 12),
    ),
    "make_lsq_spline knots": Row(
        lambda m, t: m.make_lsq_spline(
            np.linspace(0, 3.4, 12),
            np.cos(np.arange(24.0)).reshape(12, 2),
            np.concatenate([[0.0] * 3, t, [3.4] * 3]),
            k=2,
            method="norm-eq",
        )(AT),
        np.array([0.8, 2.1]),
    ),
    "make_smoothing_spline nodes": Row(lambda m, x: m.make_smoothing_spline(x, Y2, lam=0.2)(AT), NODES),
    "make_smoothing_spline lam": Row(
        lambda m, v: m.make_smoothing_spline(NODES, Y, w=1.0 + NODES, lam=v[0])(AT), np.array([0.3])
    ),
    **{
        f"interp1d {kind}": Row(lambda m, y, kind=kind: m.interp1d(NODES, y, kind=kind)(INSIDE), Y2.T)
        for kind in ("linear", "nearest", "nearest-up", "previous", "next", "zero", "slinear", "quadratic", "cubic", 5)
    },
    "interp1d points": Row(lambda m, x: m.interp1d(NODES, Y, kind="quadratic", fill_value="extrapolate")(x), AT + 0.03),
    "interp1d next extrapolated": Row(
        lambda m, y: m.interp1d(NODES, y, kind="next", fill_value="extrapolate")(AT[:-1]), Y
    ),
    "interp1d fill": Row(
        lambda m, y: m.interp1d(NODES, y, axis=0, bounds_error=False, fill_value=(y[0], y[6]))(AT), Y2
    ),
    "interp1d unsorted": Row(lambda m, x: m.interp1d(x, Y)(INSIDE), NODES[[3, 1, 0, 2, 6, 5, 4]]),
    "Krogh derivatives": Row(lambda m, x: m.KroghInterpolator(NODES[:4], Y2[:4]).derivatives(x, 5), INSIDE),
    "Krogh axis": Row(lambda m, y: m.KroghInterpolator(NODES, y, axis=1).derivative(INSIDE, 2), Y2.T),
    "Barycentric derivatives": Row(lambda m, x: m.BarycentricInterpolator(NODES[:4], Y2[:4]).derivatives(x, 3), NODES),
    "Barycentric set_yi": Row(lambda m, y: _with(m.BarycentricInterpolator(NODES), "set_yi", y)(INSIDE), Y),
    "Barycentric add_xi": Row(
        lambda m, y: _with(m.BarycentricInterpolator(NODES[:3], Y[:3]), "add_xi", NODES[3:], y)(INSIDE),
        Y[3:],
        exact=1e-10,
    ),
    "Floater-Hormann": Row(lambda m, x: m.FloaterHormannInterpolator(NODES, Y2.T, d=1, axis=1)(x), NODES),
    "splev zeros": Row(lambda m, c: m.splev(AT, (KNOTS, c, 3), ext=1), RNG.normal(size=10)),
    "splev list": Row(lambda m, c: m.splev(AT, [KNOTS, [c, c**2], 3])[1], RNG.normal(size=10)),
    "splrep k=5": Row(lambda m, x: m.splrep(x, Y, k=5)[1], NODES),
    "splrep bounds": Row(lambda m, v: m.splrep(NODES, Y, xb=v[0], xe=v[1])[1], np.array([-0.3, 3.9])),
    "splrep weights": Row(lambda m, w: m.splrep(NODES, Y, w=w, t=[1.3])[1], np.linspace(1, 2, 7)),
    "splrep large s": Row(lambda m, y: m.splrep(NODES, y, s=1e3)[1], Y, without={"jit": "chooses knots"}),
    "splprep weights": Row(
        lambda m, y: m.splprep([NODES, y], u=NODES, task=-1, t=np.array([0.0] * 4 + [1.7] + [3.4] * 4), s=0)[0][1][0], Y
    ),
    "splprep u": Row(lambda m, y: m.splprep([y, NODES, y**2], s=0, k=2)[1], Y),
    "splint outside": Row(lambda m, a: m.splint(a[0], a[1], (KNOTS, Y, 3)), np.array([-2.0, 1.3])),
    "UnivariateSpline integral": Row(lambda m, y: m.InterpolatedUnivariateSpline(NODES, y).integral(0.2, 2.2), Y),
    "UnivariateSpline derivatives": Row(lambda m, y: m.InterpolatedUnivariateSpline(NODES, y).derivatives(1.2), Y),
    "UnivariateSpline roots": Row(
        lambda m, y: m.InterpolatedUnivariateSpline(NODES, y).roots(), np.array([1.0, -1.0, 2.0, 1.0, -2.0, 1.0, 2.0])
    ),
    "UnivariateSpline set_smoothing_factor": Row(
        lambda m, y: _with(m.UnivariateSpline(NODES, y, s=1e3), "set_smoothing_factor", 0)(AT), Y
    ),
    "UnivariateSpline large s": Row(lambda m, x: m.UnivariateSpline(x, Y, s=1e3)(AT), NODES),
    "UnivariateSpline const": Row(lambda m, y: m.UnivariateSpline(NODES, y, s=0, ext="const", k=1)(AT), Y),
    "UnivariateSpline residual": Row(lambda m, y: m.LSQUnivariateSpline(NODES, y, [1.3]).get_residual() + 0 * y[0], Y),
    **{
        f"RegularGridInterpolator {method}": Row(
            lambda m, z, method=method: m.RegularGridInterpolator((NODES, KNOTS[3:7]), z, method=method)(ON_GRID),
            Z,
            exact=1e-10,
        )
        for method in ("linear", "nearest", "pchip", "slinear_legacy", "cubic_legacy")
    },
    "RegularGridInterpolator falling": Row(
        lambda m, z: m.RegularGridInterpolator((FALLING, KNOTS[3:7]), z, bounds_error=False, fill_value=None)(
            ON_GRID + np.array([1.0, 0.0])
        ),
        Z,
    ),
    "RegularGridInterpolator nu": Row(
        lambda m, x: m.RegularGridInterpolator((NODES, KNOTS[3:7]), Z, method="cubic", solver=spsolve)(x, nu=(1, 0)),
        ON_GRID,
        exact=1e-10,
    ),
    "RegularGridInterpolator vectors": Row(
        lambda m, x: m.RegularGridInterpolator((NODES[:3], NODES[:4]), P3, bounds_error=False)((x[:, 0], x[:, 1])),
        WHERE,
    ),
    "interpn fill": Row(
        lambda m, z: m.interpn((NODES, KNOTS[3:7]), z, ON_GRID * 1.3, bounds_error=False, fill_value=2.0), Z
    ),
    "RBF neighbors": Row(
        lambda m, d: m.RBFInterpolator(PLACES, d, neighbors=5, kernel="linear")(WHERE), Y2, exact=1e-9
    ),
    **{
        f"RBF {kernel}": Row(
            lambda m, p, kernel=kernel: m.RBFInterpolator(p, Y, kernel=kernel, epsilon=1.5, degree=2)(WHERE),
            PLACES,
            exact=1e-9,
            rtol=1e-5,
        )
        for kernel in ("linear", "quintic", "multiquadric", "inverse_multiquadric", "inverse_quadratic")
    },
    "RBF complex": Row(lambda m, d: m.RBFInterpolator(PLACES, d * (1 + 1j))(WHERE), Y, exact=1e-10),
    **{
        f"Rbf {name}": Row(
            lambda m, d, name=name: m.Rbf(PLACES[:, 0], PLACES[:, 1], d, function=name, smooth=0.1)(*WHERE.T),
            Y,
            exact=1e-9,
        )
        for name in ("inverse", "linear", "cubic", "quintic", "thin_plate")
    },
    "Rbf N-D": Row(lambda m, d: m.Rbf(PLACES[:, 0], d, mode="N-D")(WHERE[:, 0]), Y2, exact=1e-8, rtol=1e-5),
    "griddata nearest": Row(lambda m, d: m.griddata(PLACES, d, WHERE, method="nearest"), Y2),
    "griddata fill": Row(lambda m, x: m.griddata(PLACES, Y, x, fill_value=0.0), WHERE * 2),
    "griddata 1-D": Row(lambda m, x: m.griddata(NODES, Y, x, method="cubic"), INSIDE),
    "RectBivariateSpline integral": Row(
        lambda m, z: m.RectBivariateSpline(NODES, KNOTS[3:7], z, kx=2, ky=1).integral(0.2, 9.0, 0.1, 2.0), Z
    ),
    "RectBivariateSpline partial": Row(
        lambda m, z: m.RectBivariateSpline(NODES, KNOTS[3:7], z).partial_derivative(1, 2)(
            INSIDE, INSIDE / 2, grid=False
        ),
        Z,
    ),
    "RectBivariateSpline outside": Row(
        lambda m, z: m.RectBivariateSpline(NODES, KNOTS[3:7], z, bbox=[-1, 4, 0, None])([-2.0, 5.0], [1.0]), Z
    ),
}


def _extended(poly, c, x):
    poly.extend(c, x)
    return poly


def _with(made, method, *args):
    getattr(made, method)(*args)
    return made


@pytest.mark.parametrize("name", list(OPTIONS))
@pytest.mark.parametrize("column", ["value", "jvp", "vmap"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_options(name, column):
    skip_faults(name)
    if column not in OPTIONS[name].without:
        check(OPTIONS[name], "interpolate", column)


def test_plain_objects_take_traced_points():
    spline, basis = CubicSpline(NODES, Y), make_interp_spline(NODES, Y)
    for made in (spline, basis, PPoly(spline.c, spline.x), BSpline(*basis.tck)):
        expected = made(1.3, 1)
        np.testing.assert_allclose(func.grad(made)(1.3), expected)
        np.testing.assert_allclose(func.jit(func.grad(made))(1.3), expected)
        np.testing.assert_allclose(func.grad(lambda b, made=made: made.integrate(0.1, b))(1.3), made(1.3))
        assert type(made(1.3)) is np.ndarray


def test_classes():
    def loss(y):
        made = CubicSpline(NODES, y)
        assert isinstance(made, CubicSpline)
        assert isinstance(made, PPoly)
        assert isinstance(made, func.scipy.interpolate.PPoly)
        assert type(made) is CubicSpline
        assert isinstance(made.derivative(), PPoly)
        assert isinstance(make_interp_spline(NODES, y), BSpline)
        again = copy.copy(made)
        return again(1.2)

    assert func.grad(loss)(Y).shape == Y.shape
    assert type(CubicSpline(NODES, Y)) is CubicSpline
    own = func.scipy.interpolate.CubicSpline(NODES, Y)
    assert isinstance(own, CubicSpline)
    np.testing.assert_array_equal(own(AT), CubicSpline(NODES, Y)(AT))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(own))(AT), own(AT))


PIECES = {
    "PPoly": lambda m, y: m.PPoly(y[:6].reshape(2, 3), NODES[:4]),
    "BPoly": lambda m, y: m.BPoly(y[:6].reshape(2, 3), NODES[:4]),
    "CubicSpline": lambda m, y: m.CubicSpline(NODES, y),
    "BSpline": lambda m, y: m.BSpline(KNOTS[: len(y) + 4], y, 3),
}


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
@pytest.mark.parametrize("library", [scipy.interpolate, func.scipy.interpolate])
@pytest.mark.parametrize("name", PIECES)
def test_copies_and_pieces_that_are_set(name, library, copied):
    y = np.resize(Y, len(NODES))
    made = PIECES[name](library, y)

    def loss(y):
        return np.sum(copied(PIECES[name](library, y))(AT))

    def scaled(t):
        again = copied(made)
        again.c = t * made.c
        return np.sum(again(AT))

    np.testing.assert_array_equal(func.grad(loss)(y), func.grad(lambda y: np.sum(PIECES[name](library, y)(AT)))(y))
    for one in (made, made.derivative(), made.antiderivative()):
        again = pickle.loads(pickle.dumps(one))
        assert type(again) is type(one)
        np.testing.assert_array_equal(again(AT), one(AT))
        again.c = 2 * again.c
        np.testing.assert_allclose(again(AT), 2 * one(AT))
    if library is func.scipy.interpolate:
        np.testing.assert_allclose(func.grad(scaled)(1.5), np.sum(made(AT)))


class Shifted(CubicSpline):
    """A user's subclass with a new method."""

    def __init__(self, x, y):
        super().__init__(x, y)
        self.shift = 0.1

    def __call__(self, x, nu=0, extrapolate=None):
        return super().__call__(x + self.shift, nu, extrapolate)


def test_users_subclasses():
    expected = func.grad(lambda y: CubicSpline(NODES, y)(1.3))(Y)
    np.testing.assert_allclose(func.grad(lambda y: Shifted(NODES, y)(1.2))(Y), expected)
    np.testing.assert_allclose(func.grad(lambda x: Shifted(NODES, Y)(x))(1.2), CubicSpline(NODES, Y)(1.3, 1))
    assert func.grad(lambda y: np.sum(Shifted(NODES, y).c) * isinstance(Shifted(NODES, y), Shifted))(Y).any()


def test_tensors():
    y = func.tensor(Y, requires_grad=True)
    CubicSpline(NODES, y)(1.2).backward()
    np.testing.assert_allclose(y.grad, func.grad(lambda y: CubicSpline(NODES, y)(1.2))(Y))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda y: CubicSpline(NODES[::-1], y), ValueError, "strictly increasing"),
        (lambda y: CubicSpline(NODES[1:], y), ValueError, "doesn't match the length"),
        (lambda y: CubicSpline(NODES, y, bc_type="other"), ValueError, "is not allowed"),
        (lambda y: CubicSpline(NODES, y, bc_type="periodic"), ValueError, "must be identical"),
        (lambda y: make_interp_spline(NODES[[0, 0, 1, 2, 3, 4, 5]], y), ValueError, "duplicates"),
        (lambda y: BSpline(KNOTS, y[:3], 3), ValueError, "inconsistent"),
        (lambda y: BSpline(0 * y, Y[:3], 3), ValueError, "Need at least"),
        (lambda y: BSpline(0 * y, Y[:3], 1), ValueError, "two internal knots"),
        (lambda y: scipy.interpolate.PchipInterpolator(NODES, y * 1j), ValueError, "real values"),
        (lambda y: scipy.interpolate.interp1d(NODES, y)(9.0), ValueError, "above the interpolation range"),
        (lambda y: scipy.interpolate.interp1d(NODES, y, kind="strange"), NotImplementedError, "unsupported"),
        (lambda y: scipy.interpolate.splev(9.0, (KNOTS, y, 3), ext=2), ValueError, "not in the domain"),
        (lambda y: scipy.interpolate.splrep(NODES, y, s=0.1, per=1), UnsupportedFunctionError, "s > 0"),
        (lambda y: scipy.interpolate.make_smoothing_spline(NODES, 0 * y + NODES), UnsupportedFunctionError, "lam"),
        (lambda y: scipy.interpolate.AAA(NODES, y), UnsupportedFunctionError, "AAA"),
        (lambda y: BSpline.design_matrix(y, KNOTS, 3), UnsupportedFunctionError, "design_matrix"),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        func.grad(lambda y: np.sum(call(y)))(Y)


SMOOTHED = {
    "splrep": lambda x, y, s: scipy.interpolate.splev(AT_DATA, scipy.interpolate.splrep(x, y, s=s)),
    "UnivariateSpline": lambda x, y, s: scipy.interpolate.UnivariateSpline(x, y, s=s / 6, k=4)(AT_DATA, 1),
    "polynomial": lambda x, y, s: scipy.interpolate.UnivariateSpline(x, y, s=1e3 * s)(AT_DATA),
    "splprep": lambda x, y, s: scipy.interpolate.splev(AT_DATA, scipy.interpolate.splprep([y, x * y], u=x, s=s)[0])[1],
    "make_splrep": lambda x, y, s: scipy.interpolate.make_splrep(x, y, s=s, k=2)(AT_DATA),
    "make_splprep": lambda x, y, s: scipy.interpolate.make_splprep([y, x], u=x, s=s)[0](AT_DATA)[0],
    "RectBivariateSpline": lambda x, y, s: scipy.interpolate.RectBivariateSpline(
        x, x[:9], np.outer(y, np.cos(x[:9])), s=s
    )(AT_DATA, AT_DATA[:2], grid=True)[:, 1],
}
DATA_X = np.sort(np.random.default_rng(0).uniform(0, 4, 20))
DATA_Y = np.sin(2 * DATA_X) + 0.2 * np.random.default_rng(1).normal(size=20)
AT_DATA = np.array([0.7, 1.1, 1.6])


@pytest.mark.parametrize("name", SMOOTHED)
def test_smoothing(name):
    """Values are SciPy's. With y scaled by a and s by a², the spline scales by a, at every x scaled too."""
    call = SMOOTHED[name]
    value, by_s = func.jvp(lambda s: call(DATA_X, DATA_Y, s), (0.6,), (1.0,))
    np.testing.assert_allclose(value, call(DATA_X, DATA_Y, 0.6), rtol=1e-9, atol=1e-10)
    _, scaled = func.jvp(lambda y: call(DATA_X, y, 0.6), (DATA_Y,), (DATA_Y,))
    if name not in ("make_splprep",):  # whose other coordinate is x
        np.testing.assert_allclose(scaled + 2 * 0.6 * by_s, value, rtol=1e-6, atol=1e-7)
    (pulled,) = func.vjp(lambda y: call(DATA_X, y, 0.6), DATA_Y)[1](np.ones(3))
    np.testing.assert_allclose(pulled @ DATA_Y, np.sum(scaled), rtol=1e-8)


def test_cross_validation():
    """SciPy finds the parameter to five digits, which differences with a large step and the derivative share."""

    def f(y):
        return scipy.interpolate.make_smoothing_spline(DATA_X, y)(AT_DATA)

    tangent = np.cos(7 * DATA_X)
    value, slope = func.jvp(f, (DATA_Y,), (tangent,))
    np.testing.assert_allclose(value, f(DATA_Y), rtol=1e-9)
    h = 3e-3
    differences = (f(DATA_Y + h * tangent) - f(DATA_Y - h * tangent)) / (2 * h)
    np.testing.assert_allclose(slope, differences, rtol=2e-2, atol=1e-3)
    (pulled,) = func.vjp(f, DATA_Y)[1](np.ones(3))
    np.testing.assert_allclose(pulled @ tangent, np.sum(slope), rtol=1e-8)


def test_thin_plates_have_no_second_derivative_at_a_node():
    def f(x):
        return scipy.interpolate.RBFInterpolator(PLACES, Y)(x[None])[0]

    step = np.eye(2)[0] * 1e-6
    slope = (f(PLACES[0] + step) - f(PLACES[0] - step)) / 2e-6
    np.testing.assert_allclose(func.grad(f)(PLACES[0])[0], slope, rtol=1e-4)
    assert np.all(np.abs(np.diag(func.hessian(f)(PLACES[0]))) > 1e100)


def test_what_depends_on_numbers_is_refused_in_staged_code():
    with pytest.raises(StagingError, match="number of roots"):
        func.jit(lambda y: CubicSpline(NODES, y).roots())(Y)
    with pytest.raises(StagingError, match="triangulation"):
        func.jit(lambda p: scipy.interpolate.griddata(p, Y, WHERE))(PLACES)


def test_values_outside_are_nan_where_no_error_can_be_raised():
    inside = func.jit(lambda x: scipy.interpolate.RegularGridInterpolator((NODES,), Y)(x))
    assert np.isnan(inside(np.array([[9.0], [1.0]]))).tolist() == [True, False]
