"""Rows of scipy.interpolate."""

from __future__ import annotations

import numpy as np
from scipy.sparse.linalg import spsolve

from tests.support.scipy_rows import Row, main

RNG = np.random.default_rng(7)
NODES = np.array([0.0, 0.4, 1.1, 1.5, 2.3, 3.0, 3.4])
Y = RNG.normal(size=7)
Y2 = RNG.normal(size=(7, 2))
AT = np.array([-0.3, 0.2, 0.9, 1.3, 1.9, 2.6, 3.3, 3.6])
INSIDE = np.array([0.2, 0.9, 1.3, 1.9, 2.6, 3.3])
KNOTS = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.4, 3.4, 3.4, 3.4])
PERIODIC = np.append(Y[:-1], Y[0])

WEIGHTS = 1 / np.array([np.prod(np.delete(x - NODES, i)) for i, x in enumerate(NODES)])

PLACES = np.array([[0.0, 0.0], [1.0, 0.1], [0.1, 1.2], [1.1, 0.9], [0.5, 0.4], [0.2, 0.6], [0.8, 0.5]])
WHERE = np.array([[0.3, 0.3], [0.7, 0.7], [0.5, 0.2]])

CLOUD = np.random.default_rng(8).uniform(size=(2, 30))
Z = RNG.normal(size=(7, 4))
ON_GRID = np.array([[0.2, 0.3], [0.9, 1.4], [1.9, 0.7], [3.1, 2.9]])


ROWS: dict[str, Row] = {
    "CubicSpline": Row(lambda m, y: m.CubicSpline(NODES, y)(AT), Y),
    "CubicSpline nodes": Row(lambda m, x: m.CubicSpline(x, Y2, bc_type="natural")(AT), NODES),
    "CubicSpline points": Row(lambda m, x: m.CubicSpline(NODES, Y)(x, 1), AT),
    "CubicSpline periodic": Row(lambda m, x: m.CubicSpline(x, PERIODIC, bc_type="periodic")(AT), NODES),
    "CubicHermiteSpline": Row(lambda m, y: m.CubicHermiteSpline(NODES, y, np.cos(y))(AT), Y),
    "PchipInterpolator": Row(lambda m, y: m.PchipInterpolator(NODES, y)(AT), Y),
    "pchip_interpolate": Row(lambda m, x: m.pchip_interpolate(NODES, Y, x, der=1), AT),
    "Akima1DInterpolator": Row(lambda m, y: m.Akima1DInterpolator(NODES, y, method="makima")(INSIDE), Y),
    "PPoly": Row(lambda m, y: m.PPoly(np.reshape(y, (2, 3)), NODES[:4])(AT), Y[:6]),
    "BPoly": Row(lambda m, y: m.BPoly(np.reshape(y, (2, 3)), NODES[:4])(AT), Y[:6]),
    "NdPPoly": Row(
        lambda m, y: m.NdPPoly(np.reshape(y, (2, 3, 1, 2)), (NODES[:2], NODES[:3]))(np.array([[0.1, 0.2], [0.3, 0.9]])),
        RNG.normal(size=12),
    ),
    "BSpline": Row(lambda m, y: m.BSpline(KNOTS, y[:6], 3)(AT), Y),
    "BSpline knots": Row(lambda m, t: m.BSpline(t, Y[:6], 3)(INSIDE), np.linspace(-3.0, 6.1, 10) ** 3 / 40),
    "BSpline points": Row(lambda m, x: m.BSpline(KNOTS, Y2[:6], 3)(x), AT),
    "NdBSpline": Row(
        lambda m, y: m.NdBSpline((KNOTS, KNOTS), np.reshape(y, (6, 6)), 3)(np.stack([INSIDE, INSIDE**2 / 4], -1)),
        RNG.normal(size=36),
    ),
    "make_interp_spline": Row(lambda m, y: m.make_interp_spline(NODES, y)(AT), Y),
    "make_interp_spline nodes": Row(lambda m, x: m.make_interp_spline(x, Y2, k=2)(AT + 0.04), NODES),
    "make_interp_spline periodic": Row(lambda m, x: m.make_interp_spline(x, PERIODIC, bc_type="periodic")(AT), NODES),
    "make_lsq_spline": Row(lambda m, y: m.make_lsq_spline(np.linspace(0, 3.4, 12), y, KNOTS)(AT), RNG.normal(size=12)),
    "KroghInterpolator": Row(lambda m, y: m.KroghInterpolator(NODES, y)(AT), Y),
    "KroghInterpolator nodes": Row(
        lambda m, x: m.KroghInterpolator(x, Y)(INSIDE), NODES, without={"jit": "looks for repeated nodes by value"}
    ),
    "KroghInterpolator repeated": Row(lambda m, y: m.KroghInterpolator([0.0, 0.0, 0.0, 1.0, 1.0, 2.0], y)(AT), Y[:6]),
    "krogh_interpolate": Row(lambda m, x: m.krogh_interpolate(NODES, Y2, x, der=2), INSIDE),
    "BarycentricInterpolator": Row(lambda m, x: m.BarycentricInterpolator(x, Y2)(INSIDE), NODES),
    "BarycentricInterpolator points": Row(lambda m, x: m.BarycentricInterpolator(NODES, Y, wi=WEIGHTS)(x), NODES),
    "barycentric_interpolate": Row(lambda m, y: m.barycentric_interpolate(NODES, y, INSIDE, der=1), Y),
    "FloaterHormannInterpolator": Row(lambda m, x: m.FloaterHormannInterpolator(x, Y2, d=2)(INSIDE), NODES),
    "AAA": Row(lambda m, x: m.AAA(NODES, np.exp(NODES))(x), AT),
    "lagrange": Row(lambda m, x: m.lagrange(x[:4], Y[:4]).coeffs, NODES),
    "pade": Row(lambda m, a: m.pade(a, 2)[0](0.7) + m.pade(a, 2)[1].coeffs[0], Y[:6]),
    "approximate_taylor_polynomial": Row(
        lambda m, x: m.approximate_taylor_polynomial(lambda t: np.sin(t) * x[1], x[0], 3, 0.5, 8).coeffs,
        np.array([0.3, 1.2]),
    ),
    "interp1d": Row(lambda m, y: m.interp1d(NODES, y, axis=0, fill_value="extrapolate")(AT), Y2),
    "interp1d nodes": Row(lambda m, x: m.interp1d(x, Y)(INSIDE), NODES),
    "interp1d cubic": Row(lambda m, x: m.interp1d(NODES, Y, kind="cubic")(x), INSIDE),
    "interp1d nearest": Row(
        lambda m, y: m.interp1d(NODES, y, kind="nearest", bounds_error=False, fill_value=(-1.0, 2.0))(AT), Y
    ),
    "splrep": Row(lambda m, y: m.splrep(NODES, y)[1], Y),
    "splrep nodes": Row(lambda m, x: m.splev(AT, m.splrep(x, Y, k=4)), NODES),
    "splrep knots": Row(lambda m, t: m.splrep(AT, AT**2 + Y[0] * np.sin(AT), t=t)[1], np.array([0.5, 2.1])),
    "splrep periodic": Row(lambda m, y: m.splev(AT, m.splrep(NODES, y, per=1)), PERIODIC),
    "splprep": Row(lambda m, y: m.splprep([NODES, y], s=0)[0][1][1], Y),
    "make_splrep": Row(lambda m, y: m.make_splrep(NODES, y)(AT), Y),
    "make_splprep": Row(lambda m, y: m.make_splprep([NODES, y])[0](AT / 4), Y),
    "splev": Row(lambda m, x: m.splev(x, (KNOTS, Y[:6], 3), der=1, ext=3), AT),
    "splint": Row(lambda m, a: m.splint(a[0], a[1], (KNOTS, Y[:6], 3)), np.array([0.3, 2.9])),
    "splder": Row(lambda m, c: m.splder((KNOTS, c, 3), 2)[1], RNG.normal(size=10)),
    "splantider": Row(lambda m, c: m.splantider((KNOTS, c, 3), 2)[1], RNG.normal(size=10)),
    "spalde": Row(lambda m, x: m.spalde(x[0], (KNOTS, Y, 3)), np.array([1.3])),
    "sproot": Row(
        lambda m, c: m.sproot((KNOTS, c, 3)),
        np.array([1.0, -1.0, 2.0, -3.0, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0]),
        without={"jit": "the number of roots depends on values"},
    ),
    "insert": Row(lambda m, c: m.insert(1.7, (KNOTS, c, 3))[1][:7], RNG.normal(size=10)),
    "UnivariateSpline": Row(lambda m, y: m.UnivariateSpline(NODES, y, s=0)(AT), Y),
    "InterpolatedUnivariateSpline": Row(lambda m, x: m.InterpolatedUnivariateSpline(x, Y, k=2)(AT + 0.04, 1), NODES),
    "LSQUnivariateSpline": Row(lambda m, y: m.LSQUnivariateSpline(NODES, y, [1.3]).antiderivative()(INSIDE), Y),
    "RBFInterpolator": Row(lambda m, d: m.RBFInterpolator(PLACES, d)(WHERE), Y, exact=1e-10),
    "RBFInterpolator points": Row(
        lambda m, p: m.RBFInterpolator(p, Y2, kernel="gaussian", epsilon=1.3, smoothing=0.1)(WHERE), PLACES, exact=1e-10
    ),
    "RBFInterpolator queries": Row(lambda m, x: m.RBFInterpolator(PLACES, Y, kernel="cubic")(x), WHERE, exact=1e-10),
    "Rbf": Row(lambda m, d: m.Rbf(PLACES[:, 0], PLACES[:, 1], d)(WHERE[:, 0], WHERE[:, 1]), Y, exact=1e-10),
    "Rbf points": Row(
        lambda m, p: m.Rbf(p[:, 0], p[:, 1], Y, function="gaussian")(WHERE[:, 0], WHERE[:, 1]), PLACES, exact=1e-10
    ),
    "NearestNDInterpolator": Row(lambda m, d: m.NearestNDInterpolator(PLACES, d)(WHERE), Y),
    "LinearNDInterpolator": Row(lambda m, d: m.LinearNDInterpolator(PLACES, d)(WHERE), Y2),
    "LinearNDInterpolator queries": Row(lambda m, x: m.LinearNDInterpolator(PLACES, Y)(x), WHERE),
    "griddata": Row(lambda m, d: m.griddata(PLACES, d, WHERE), Y),
    "griddata points": Row(
        lambda m, p: m.griddata(p, Y, WHERE, rescale=True), PLACES, without={"jit": "triangulates numbers"}
    ),
    "CloughTocher2DInterpolator": Row(
        lambda m, d: m.CloughTocher2DInterpolator(PLACES, d, tol=1e-15, maxiter=5000)(WHERE), Y
    ),
    "CloughTocher2DInterpolator points": Row(
        lambda m, p: m.CloughTocher2DInterpolator(p, Y, tol=1e-15, maxiter=5000)(WHERE + np.array([0.013, 0.007])),
        PLACES,
        exact=1e-10,
        without={"jit": "triangulates numbers"},
    ),
    "RegularGridInterpolator": Row(lambda m, z: m.RegularGridInterpolator((NODES, KNOTS[3:7]), z)(ON_GRID), Z),
    "RegularGridInterpolator points": Row(
        lambda m, x: m.RegularGridInterpolator((NODES, KNOTS[3:7]), Z, method="pchip")(x), ON_GRID
    ),
    "RegularGridInterpolator nodes": Row(lambda m, x: m.RegularGridInterpolator((x, KNOTS[3:7]), Z)(ON_GRID), NODES),
    "RegularGridInterpolator cubic": Row(
        lambda m, z: m.RegularGridInterpolator((NODES, KNOTS[3:7]), z, method="cubic", solver=spsolve)(ON_GRID),
        Z,
        exact=1e-10,
    ),
    "interpn": Row(lambda m, z: m.interpn((NODES, KNOTS[3:7]), z, ON_GRID, method="splinef2d"), Z),
    "RectBivariateSpline": Row(lambda m, z: m.RectBivariateSpline(NODES, KNOTS[3:7], z)(INSIDE, [0.3, 1.7]), Z),
    "RectBivariateSpline points": Row(
        lambda m, x: m.RectBivariateSpline(NODES, KNOTS[3:7], Z, kx=2).ev(x[:, 0], x[:, 1], dx=1), ON_GRID + 0.03
    ),
    "LSQBivariateSpline": Row(
        lambda m, z: m.LSQBivariateSpline(CLOUD[0], CLOUD[1], z, [0.5], [0.4], kx=2, ky=2).integral(0.1, 0.7, 0.2, 0.9),
        RNG.normal(size=30),
        exact=1e-9,
    ),
    "BivariateSpline": Row(
        lambda m, x: m.RectBivariateSpline(NODES, KNOTS[3:7], Z)(x[:, 0], np.sort(x[:, 1]), dy=1),
        np.sort(ON_GRID, axis=0),
    ),
    "SmoothBivariateSpline": Row(lambda m, x: m.SmoothBivariateSpline(*CLOUD, CLOUD[0] * CLOUD[1])(x, x), INSIDE / 4),
    "bisplev": Row(lambda m, c: m.bisplev(INSIDE, [0.3, 1.2], (KNOTS, KNOTS, c, 3, 3)), RNG.normal(size=36)),
    "bisplrep": Row(
        lambda m, z: np.stack(
            m.bisplrep(
                *CLOUD,
                z,
                kx=1,
                ky=1,
                task=-1,
                tx=np.array([0, 0, 0.5, 1, 1]),
                ty=np.array([0, 0, 1.0, 1]),
                xb=0,
                xe=1,
                yb=0,
                ye=1,
            )[2]
        ),
        RNG.normal(size=30),
        exact=1e-9,
    ),
    "make_smoothing_spline": Row(lambda m, y: m.make_smoothing_spline(NODES, y, lam=0.1)(AT), Y),
}

WITHOUT: dict[str, str] = {
    "generate_knots": "chooses knots from the numbers of the data",
    "interp2d": "removed from SciPy: an error",
    **dict.fromkeys(
        ["LSQSphereBivariateSpline", "RectSphereBivariateSpline", "SmoothSphereBivariateSpline"],
        "traced values are refused: map the sphere to the plane, or use RBFInterpolator",
    ),
    **{
        name: "a module of older names"
        for name in ("fitpack", "fitpack2", "interpnd", "interpolate", "ndgriddata", "polyint", "rbf")
    },
}
"""The public names that have no row, with the reason."""

NOTES: dict[str, str] = {
    **dict.fromkeys(
        [
            "AAA", "SmoothBivariateSpline",
        ],
        "in query points only; traced data are refused",
    ),
    **dict.fromkeys(
        ["RectBivariateSpline", "UnivariateSpline", "make_splprep", "make_splrep", "splprep", "splrep"],
        "smoothing (s > 0) differentiates at SciPy's knots and attained distance (tolerance of s: 0.001). The data "
        "must be known numbers, so not under jit, and not periodic",
    ),
    "CloughTocher2DInterpolator": "gradients solve their equations exactly, SciPy's to the tolerance `tol`",
    "make_smoothing_spline": "without lam: SciPy's minimum of cross-validation, known to five digits; not under jit",
}  # fmt: skip


if __name__ == "__main__":
    main("interpolate", ROWS)
