"""Rows of scipy.spatial.transform: each chains methods, so that a row covers several of them."""

from __future__ import annotations

import numpy as np

from tests.support.scipy_rows import Row, main

RNG = np.random.default_rng(3)
V = RNG.normal(size=(3, 3)) * 0.7
Q = np.array([0.3, -0.4, 0.1, 0.9])
AXES = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
NEAR = np.array([[0.9, -0.5, 0.1], [0.4, 0.8, -0.3], [0.2, 0.3, 1.1]])
T = np.array([0.0, 0.7, 2.0])
AT = np.array([0.3, 1.5])


def _plain(m):
    return m.Rotation.from_quat(Q)


ROWS: dict[str, Row] = {
    "Rotation": Row(lambda m, x: m.Rotation(x, scalar_first=True).as_rotvec(degrees=True), V[:, [0, 1, 2, 0]] + 0.2),
    "Rotation-from_rotvec": Row(lambda m, x: m.Rotation.from_rotvec(x).as_matrix(), V[0]),
    "Rotation-from_rotvec at zero": Row(lambda m, x: m.Rotation.from_rotvec(x).as_rotvec(), np.zeros(3)),
    "Rotation-from_quat": Row(lambda m, x: m.Rotation.from_quat(x).as_mrp(), Q),
    "Rotation-from_mrp": Row(lambda m, x: m.Rotation.from_mrp(x).inv().as_quat(canonical=True), V[0]),
    "Rotation-from_matrix": Row(lambda m, x: m.Rotation.from_matrix(x).as_quat(), NEAR),
    "Rotation-from_euler": Row(lambda m, x: m.Rotation.from_euler("ZXZ", x).as_euler("xyz"), V[:2] + 0.3),
    "Rotation-from_davenport": Row(
        lambda m, x: m.Rotation.from_davenport(AXES, "e", x).as_davenport(AXES[::-1], "i"), V[1]
    ),
    "Rotation-apply": Row(lambda m, x: _plain(m).apply(x, inverse=True), V[0]),
    "Rotation-mul": Row(lambda m, x: (_plain(m) * m.Rotation.from_rotvec(x) * _plain(m)).magnitude(), V[:2]),
    "Rotation-pow": Row(lambda m, x: (_plain(m) ** x).as_matrix(), np.array(0.375)),
    "Rotation-mean": Row(lambda m, x: m.Rotation.from_rotvec(x).mean([1.0, 2.0]).as_rotvec(), V[:2]),
    "Rotation-reduce": Row(
        lambda m, x: m.Rotation.from_rotvec(x).reduce(m.Rotation.create_group("O")).as_matrix(), V[:2]
    ),
    "Rotation-align_vectors": Row(lambda m, x: m.Rotation.align_vectors(x, V, [1, 2, 0.5])[0].as_matrix(), V @ NEAR),
    "Slerp": Row(lambda m, x: m.Slerp(T, m.Rotation.from_rotvec(x))(AT).as_matrix(), V),
    "RotationSpline": Row(lambda m, x: m.RotationSpline(T, m.Rotation.from_rotvec(x))(AT, 1), V, exact=1e-8, rtol=1e-5),
}
"""One or more calls of each public name."""

WITHOUT: dict[str, str] = {"RigidTransform": "traced values are refused: keep a Rotation r and a translation t"}
"""Public names that have no row, with the reason."""
NOTES = {
    "Rotation": "in a gimbal lock the first of the angles stands for two, the others have derivative 0",
}

if __name__ == "__main__":
    main("spatial.transform", ROWS)
