"""A robot arm's Jacobian and mass matrix, exported as plain NumPy source that runs where func is not installed."""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import func

Array = np.ndarray[Any, Any]

LENGTHS = np.array([0.6, 0.5, 0.3])
"""Lengths of the links, in metres."""
MASSES = np.array([3.0, 2.0, 1.0])
"""Masses at the ends of the links, in kilograms."""
TARGET = np.array([0.3, 0.9])


def joints(angles: Array) -> Array:
    """Returns the positions of the ends of the links (3, 2), for angles (3,) relative to the link before."""
    heading = np.cumsum(angles)
    steps = LENGTHS[:, None] * np.stack([np.cos(heading), np.sin(heading)], axis=1)
    return np.cumsum(steps, axis=0)


def hand(angles: Array) -> Array:
    """Returns the position of the hand (2,)."""
    return joints(angles)[-1]


def kinetic_energy(speeds: Array, angles: Array) -> Array:
    """Returns the energy of the moving masses."""
    _, velocities = func.jvp(joints, (angles,), (speeds,))
    return 0.5 * np.sum(MASSES * np.sum(velocities**2, axis=1))


def mass_matrix(angles: Array) -> Array:
    """Returns the mass matrix (3, 3): the second derivative of the kinetic energy by the speeds."""
    return func.hessian(kinetic_energy)(np.zeros(3), angles)


CONTROLLER = """
import sys
sys.modules["func"] = None  # whatever imports func fails
import numpy as np
from hand import hand
from mass import mass_matrix

angles = np.array([0.1, 0.2, 0.3])
for _ in range(50):
    position, jacobian = hand(angles)
    inverse = np.linalg.solve(mass_matrix(angles), jacobian.T)  # weighted by inertia: heavy joints move less
    angles = angles + inverse @ np.linalg.solve(jacobian @ inverse, {target} - position)
print(*hand(angles)[0])
"""


def main() -> None:
    """Writes two modules, then steers the arm with them in an interpreter that cannot import func."""
    angles = np.array([0.1, 0.2, 0.3])

    def hand_and_jacobian(angles: Array) -> tuple[Array, Array]:
        return hand(angles), func.jacobian(hand)(angles)

    hand_and_jacobian.__name__ = "hand"
    with tempfile.TemporaryDirectory() as folder:
        for name, function in (("hand", hand_and_jacobian), ("mass", mass_matrix)):
            text = func.to_source(function)(angles)
            Path(folder, f"{name}.py").write_text(text)
            print(f"{name}.py: {len(text.splitlines())} lines")
        code = CONTROLLER.format(target=f"np.array({TARGET.tolist()})")
        done = subprocess.run([sys.executable, "-c", code], cwd=folder, check=True, capture_output=True, text=True)
    reached = np.array([float(word) for word in done.stdout.split()])
    print(f"the hand is at {reached[0]:.6f}, {reached[1]:.6f}")
    assert np.allclose(reached, TARGET, atol=1e-9)


if __name__ == "__main__":
    main()
