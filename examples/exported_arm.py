"""
Export a robot arm as NumPy source and as C
===========================================

The controller of an arm needs derivatives. They are the Jacobian of the hand, and the mass matrix, the second
derivative of the kinetic energy by the speeds. It runs without func, or without Python. ``func.to_source`` writes the
code as a module that needs only NumPy, and ``func.export`` writes C, with or without a compiler. The arm has one joint
more than the task needs, and each step moves heavy links as little as possible (Khatib, 1987).
"""

import ctypes
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import func

LENGTHS, MASSES = np.array([0.6, 0.5, 0.4]), np.array([3.0, 2.0, 1.0])  # metres, and kilograms at the ends of the links


def joints(angles):
    """Returns the ends of the links (3, 2), for angles (3,) relative to the link before."""
    heading = np.cumsum(angles)
    return np.cumsum(LENGTHS[:, None] * np.stack([np.cos(heading), np.sin(heading)], axis=1), axis=0)


def energy(speeds, angles):
    """Returns the kinetic energy."""
    _, velocities = func.jvp(joints, (angles,), (speeds,))
    return np.sum(MASSES * np.sum(velocities**2, axis=1)) / 2


def arm(angles):
    """Returns the position of the hand (2,), its Jacobian (2, 3) and the mass matrix (3, 3)."""
    jacobian = func.jacobian(lambda angles: joints(angles)[-1])(angles)
    return joints(angles)[-1], jacobian, func.hessian(energy)(np.zeros(3), angles)


# %%
# The controller is a separate program: it imports the exported function from ``arm.py``, and no func.

CONTROLLER = """
import sys
sys.modules["func"] = None  # whatever imports func fails
import numpy as np
from arm import arm

angles, poses, t = np.array([0.3, 0.9, 0.6]), [], np.linspace(0, 2 * np.pi, 121)
for target in np.stack([0.45 + 0.4 * np.sin(t), 0.6 + 0.3 * np.sin(2 * t)], axis=1):
    for _ in range(5):
        hand, jacobian, mass = arm(angles)
        weighted = np.linalg.solve(mass, jacobian.T)
        angles = angles + weighted @ np.linalg.solve(jacobian @ weighted, target - hand)
    assert np.allclose(arm(angles)[0], target, atol=1e-9)
    poses.append(angles)
np.savetxt("poses.txt", poses)
"""
folder = Path(tempfile.mkdtemp())
(folder / "arm.py").write_text(func.to_source(arm)(np.zeros(3)))
subprocess.run([sys.executable, "-c", CONTROLLER], cwd=folder, check=True)
poses = np.loadtxt(folder / "poses.txt")
print(f"arm.py led the hand to {len(poses)} points")

# %%
# The same function in C. If a compiler is installed, ctypes calls it.

print(func.export(arm, folder / "arm.c")(np.zeros(3)))
if shutil.which("cc"):
    func.export(arm, folder / "arm.so", kind="library")(np.zeros(3))
    of_c = np.zeros(2), np.zeros((2, 3)), np.zeros((3, 3))
    ctypes.CDLL(str(folder / "arm.so")).arm(*[ctypes.c_void_p(a.ctypes.data) for a in (poses[7], *of_c)], None)
    for value, expected in zip(of_c, arm(poses[7]), strict=True):
        np.testing.assert_allclose(value, expected, atol=1e-14)
shutil.rmtree(folder)

figure, axes = plt.subplots(figsize=(6, 4.6), layout="constrained")
for pose, color in zip(poses[:-1:8], plt.cm.viridis(np.linspace(0, 0.95, 15)), strict=True):
    axes.plot(*np.vstack([np.zeros(2), joints(pose)]).T, "o-", color=color, markersize=4, linewidth=1.5)
axes.plot(*np.array([joints(pose)[-1] for pose in poses]).T, "k", linewidth=2.5)
axes.set(aspect="equal", title="The hand draws an eight, dark to light", xlabel="x (m)", ylabel="y (m)")
plt.show()
