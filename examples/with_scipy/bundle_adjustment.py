"""
Adjust cameras and points by sparse least squares
=================================================

A hundred cameras look at points in space. Each picture gives the two coordinates of a point in a camera. From all of
them, the program computes the poses of the cameras and the positions of the points. The residual of one sighting only
depends on the 6 numbers of its camera and the 3 of its point. A row of the Jacobian therefore has 9 entries among
thousands. ``func.sparsity`` detects them in the NumPy code, integer indices included. ``func.sparse_jacobian`` computes
only these, and ``least_squares`` accepts the result.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import least_squares

import func

CAMERAS, POINTS, VIEWS = 100, 400, 8
rng = np.random.default_rng(0)

# Which camera (of each sighting) sees which point.
cameras = rng.permuted(np.tile(np.arange(CAMERAS), (POINTS, 1)), axis=1)[:, :VIEWS].ravel()
points = np.repeat(np.arange(POINTS), VIEWS)


def turned(vectors, rotations):
    """Returns vectors (n, 3) turned about the rotation vectors (n, 3), by Rodrigues' formula."""
    angle = np.sqrt(np.sum(rotations**2, axis=1) + 1e-12)[:, None]
    axis = rotations / angle
    along = np.sum(axis * vectors, axis=1)[:, None] * axis
    return np.cos(angle) * vectors + np.sin(angle) * np.cross(axis, vectors) + (1 - np.cos(angle)) * along


def project(parameters, cameras, points):
    """Returns where the cameras see the points, (n, 2)."""
    poses = parameters[: 6 * CAMERAS].reshape(CAMERAS, 6)[cameras]
    positions = parameters[6 * CAMERAS :].reshape(POINTS, 3)[points]
    seen = turned(positions, poses[:, :3]) + poses[:, 3:]
    return seen[:, :2] / seen[:, 2:]


# %%
# Pictures with a little noise, and a start that is wrong by some degrees and some centimetres.

poses = np.concatenate([rng.normal(0, 0.3, (CAMERAS, 5)), rng.normal(6, 0.3, (CAMERAS, 1))], axis=1)
truth = np.concatenate([poses.ravel(), rng.uniform(-1, 1, 3 * POINTS)])
noise = 1e-4
observed = project(truth, cameras, points) + rng.normal(0, noise, (len(points), 2))
start = truth + rng.normal(0, 0.02, truth.size)


def residuals(parameters):
    """Returns projected minus observed coordinates."""
    return (project(parameters, cameras, points) - observed).ravel()


# %%
# The pattern: the block of the cameras on the left, that of the points on the right.

pattern = func.sparsity(residuals)(start)
print(func.spy(pattern, width=60).splitlines()[0])
assert np.all(np.diff(pattern.indptr) <= 9)

jacobian = func.sparse_jacobian(residuals, check=True)
found = least_squares(residuals, start, jac=jacobian, tr_solver="lsmr", x_scale="jac", ftol=1e-10, max_nfev=60)
deviation = np.sqrt(np.mean(found.fun**2))
print(f"{found.njev} Jacobians; the residuals are {deviation:.2e}, the noise was {noise:.0e}")
assert deviation < noise, "the parameters take up some of the noise"

# %%
# The structure of a Jacobian, and the residuals before and after.

figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3.6), layout="constrained")
left.spy(pattern[:400], markersize=0.5, aspect="auto")
left.set(title="400 rows of the Jacobian", xlabel="cameras, then points")
left.xaxis.tick_bottom()
left.set_xticks([0, 6 * CAMERAS, truth.size])
for label, parameters in (("start", start), ("found", found.x)):
    values = np.log10(np.abs(residuals(parameters)) + 1e-12)
    right.hist(values, bins=60, alpha=0.6, label=label)
right.set(title="sizes of residuals", xlabel="$\\log_{10}$", yticks=[])
right.legend()
plt.show()
