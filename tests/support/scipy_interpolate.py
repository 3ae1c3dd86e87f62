"""Rows of scipy.interpolate."""

from __future__ import annotations

import numpy as np

from tests.support.scipy_rows import Row, main

RNG = np.random.default_rng(7)
NODES = np.array([0.0, 0.4, 1.1, 1.5, 2.3, 3.0, 3.4])
Y = RNG.normal(size=7)
Y2 = RNG.normal(size=(7, 2))
AT = np.array([-0.3, 0.2, 0.9, 1.3, 1.9, 2.6, 3.3, 3.6])
INSIDE = np.array([0.2, 0.9, 1.3, 1.9, 2.6, 3.3])
KNOTS = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.4, 3.4, 3.4, 3.4])
PERIODIC = np.append(Y[:-1], Y[0])

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
    "make_smoothing_spline": Row(lambda m, y: m.make_smoothing_spline(NODES, y, lam=0.1)(AT), Y),
}

if __name__ == "__main__":
    main("interpolate", ROWS)
