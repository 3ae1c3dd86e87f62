"""
Register two images
===================

Two pictures show one thing from different positions, and the thing has bent in between. Registration finds the map from
one to the other. ``scipy.ndimage.map_coordinates`` resamples an image by splines. Its result is a smooth function of
the *coordinates*, so least squares can determine the map. func also differentiates it by the values of the image: the
second step below uses both.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter, map_coordinates
from scipy.optimize import least_squares, minimize

import func

SIZE, KNOTS = 40, 5
grid = np.stack(np.mgrid[:SIZE, :SIZE]).astype(float)
centre = (SIZE - 1) / 2


def phantom():
    """Draws an image like the slice of a head: an ellipse with a bright rim and five spots."""
    y, x = (grid - centre) / SIZE
    image = 1.0 * (x**2 / 0.16 + y**2 / 0.10 < 1) - 0.5 * (x**2 / 0.12 + y**2 / 0.07 < 1)
    for row, column, height in [
        (-0.1, -0.18, 0.6),
        (0.1, 0.12, -0.5),
        (-0.12, 0.15, 0.4),
        (0.12, -0.14, 0.5),
        (0.0, 0.0, 0.6),
    ]:
        image += height * ((y - row) ** 2 + (x - column) ** 2 < 0.07**2)
    return gaussian_filter(image, 1.2)


def affine(parameters):
    """Returns where each pixel comes from, (2, n, n): a linear map about the centre, and a shift."""
    matrix = np.eye(2) + parameters[:4].reshape(2, 2)
    return np.einsum("ij,jmn->imn", matrix, grid - centre) + centre + parameters[4:, None, None]


def bend(knots):
    """Returns displacements (2, n, n): cubic splines of the values (2, 5, 5) on a coarse grid."""
    where = grid * (KNOTS - 1) / (SIZE - 1)
    return np.stack([map_coordinates(values, where, order=3, mode="mirror") for values in knots])


def resample(image, where):
    """Returns the image at the coordinates (2, n, n), with splines of third order."""
    return map_coordinates(image, where, order=3, mode="nearest")


rng = np.random.default_rng(5)
moving = phantom()
turn = np.deg2rad(12)
true_affine = np.array([np.cos(turn) - 1, np.sin(turn), -np.sin(turn), np.cos(turn) - 1, 2.0, -1.5])
true_where = affine(true_affine) + bend(0.7 * rng.normal(size=(2, KNOTS, KNOTS)))
fixed = resample(moving, true_where) + 0.01 * rng.normal(size=(SIZE, SIZE))

# %%
# First the position
# ------------------
# Gauss-Newton uses the Jacobian of 1,600 pixels by six parameters. The images are smoothed first, so that a wrong start
# still sees where to go. ``gaussian_filter`` and ``map_coordinates`` are one differentiable program.


def mismatch(parameters):
    """Returns the differences of the smoothed images, one a pixel."""
    return np.ravel(gaussian_filter(resample(moving, affine(parameters)) - fixed, 1.5))


position = least_squares(mismatch, np.zeros(6), jac=func.jit(func.jacobian(mismatch)), x_scale=[0.05] * 4 + [1.0] * 2)
print(f"{position.nfev} steps: smoothed difference {np.linalg.norm(mismatch(np.zeros(6))):.2f}", end=" ")
print(f"-> {np.linalg.norm(position.fun):.2f}")

assert position.success

# %%
# Then the bending
# ----------------
# The unknowns are fifty displacements on a coarse grid, and the position again. The objective is a number, so reverse
# mode gives all 56 derivatives at the cost of a few resamplings. A small penalty fixes the undetermined part.


def objective(parameters):
    """Returns the squared differences of the images, and the penalty."""
    knots = parameters[6:].reshape(2, KNOTS, KNOTS)
    difference = resample(moving, affine(parameters[:6]) + bend(knots)) - fixed
    return np.sum(difference**2) + 1e-3 * np.sum(knots**2)


start = np.concatenate([position.x, np.zeros(2 * KNOTS**2)])
direction = rng.normal(size=start.shape) * 0.1
slope = func.grad(objective)(start) @ direction
difference = (objective(start + 1e-5 * direction) - objective(start - 1e-5 * direction)) / 2e-5
print(f"derivative along a direction {slope:.6f}, by differences {difference:.6f}")
assert np.isclose(slope, difference, rtol=1e-6)

result = minimize(func.jit(func.value_and_grad(objective)), start, jac=True, method="L-BFGS-B", options={"maxiter": 80})
where = affine(result.x[:6]) + bend(result.x[6:].reshape(2, KNOTS, KNOTS))

# The map is determined where the thing is; the background says nothing.
inside = gaussian_filter(fixed, 2) > 0.2
errors = [
    np.sqrt(np.mean(np.sum((map_ - true_where) ** 2, axis=0)[inside])) for map_ in (grid, affine(position.x), where)
]
print(
    "mean error of the map in pixels: {:.2f} before, {:.2f} with the position, {:.2f} with the bending".format(*errors)
)

assert errors[2] < errors[1] / 2 < errors[0] / 8

figure, panels = plt.subplots(2, 2, figsize=(5.6, 5.8), layout="constrained")
pictures = {
    "fixed": fixed,
    f"before: {errors[0]:.2f} pixels": moving - fixed,
    f"position: {errors[1]:.2f} pixels": resample(moving, affine(position.x)) - fixed,
    f"bending: {errors[2]:.2f} pixels": resample(moving, where) - fixed,
}
for panel, (title, picture) in zip(panels.flat, pictures.items(), strict=True):
    style = {"cmap": "gray"} if title == "fixed" else {"cmap": "RdBu", "vmin": -0.5, "vmax": 0.5}
    panel.imshow(picture, **style)
    panel.set_title(title)
    panel.axis("off")
plt.show()
