"""
Optimise the shape of a bar with finite elements
================================================

A bar with cross-section :math:`\\Omega` resists being twisted by its *torsional rigidity* :math:`T(\\Omega) =
4\\int_\\Omega u`, where :math:`-\\Delta u = 1` in :math:`\\Omega` and :math:`u = 0` on the boundary. Which shape is
best for its area? We let a solver find out, with linear finite elements, a sparse matrix of SciPy and ``spsolve``.
The mesh moves with the shape, so the *entries* of the sparse matrix depend on it. The gradient of a sparse matrix has
its pattern, and reverse mode costs one more sparse solve, whatever the number of parameters of the shape.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csc_array
from scipy.sparse.linalg import spsolve

import func

RINGS, SECTORS, WAVES = 10, 48, 6

# A mesh of the unit disc: node 0 is the centre, then come rings of nodes; each ring is joined to the next by
# triangles.
angle = 2 * np.pi * np.arange(SECTORS) / SECTORS
fraction = np.repeat(np.arange(1, RINGS + 1) / RINGS, SECTORS)
ring = 1 + np.arange(RINGS * SECTORS).reshape(RINGS, SECTORS)
following = np.roll(ring, -1, axis=1)
corners = [
    (np.zeros(SECTORS, int), ring[0], following[0]),
    (ring[:-1], ring[1:], following[1:]),
    (ring[:-1], following[1:], following[:-1]),
]
triangles = np.concatenate([np.stack([part.ravel() for part in row], axis=1) for row in corners])
inner = np.arange(1 + (RINGS - 1) * SECTORS)  # the others lie on the boundary


def nodes(shape):
    """Returns the coordinates (n, 2) for the boundary r = 1 + a₁ cos θ + … + b₁ sin θ + …"""
    k = np.arange(1, WAVES + 1)[:, None]
    radius = 1 + shape[:WAVES] @ np.cos(k * angle) + shape[WAVES:] @ np.sin(k * angle)
    distance = fraction * np.tile(radius, RINGS)
    around = np.tile(angle, RINGS)
    return np.concatenate([np.zeros((1, 2)), np.stack([distance * np.cos(around), distance * np.sin(around)], axis=1)])


def solve(points):
    """Returns u at the nodes, ∫u, and the area of the mesh with these nodes."""
    p = points[triangles]  # (m, 3, 2)
    edges = np.roll(p, -1, axis=1) - np.roll(p, -2, axis=1)  # each opposite to its corner
    areas = (edges[:, 0, 0] * edges[:, 1, 1] - edges[:, 0, 1] * edges[:, 1, 0]) / 2

    # ∫∇φᵢ·∇φⱼ = eᵢ·eⱼ / (4 area) on one triangle; entries of a node that the triangles share are added up.
    local = np.einsum("mic,mjc->mij", edges, edges) / (4 * areas[:, None, None])
    rows, columns = np.repeat(triangles, 3, axis=1).ravel(), np.tile(triangles, 3).ravel()
    free = (rows < len(inner)) & (columns < len(inner))
    stiffness = csc_array((local.ravel()[free], (rows[free], columns[free])), shape=(len(inner), len(inner)))

    load = np.bincount(triangles.ravel(), np.repeat(areas / 3, 3), minlength=len(points))[inner]  # ∫φᵢ
    u = spsolve(stiffness, load)
    return u, u @ load, np.sum(areas)


def rigidity(shape):
    """Returns T / area², which does not change with the size of the cross-section."""
    _, integral, area = solve(nodes(shape))
    return 4 * integral / area**2


# %%
# The shape derivative
# --------------------
# Hadamard's formula gives the effect of moving the boundary: :math:`dT = 4 \int_{\partial\Omega} (\partial_n u)^2\,
# v_n`, with the speed :math:`v_n` of the boundary along its normal. The gradient with respect to *all* node coordinates
# shows it. It vanishes inside, up to the error of the discretisation. On the boundary it points outwards, most strongly
# where the slope of u is steep. func differentiates the program itself, so differences agree to their last digit.

rng = np.random.default_rng(3)
start = 0.15 * rng.normal(size=2 * WAVES) / np.tile(np.arange(1, WAVES + 1), 2)

forces = func.grad(lambda points: 4 * solve(points)[1])(nodes(start))
sizes = np.linalg.norm(forces, axis=1)
on_boundary = sizes[len(inner) :]
print(
    f"size of the gradient: {np.median(sizes[inner]):.4f} at inner nodes, {np.median(on_boundary):.4f} on the boundary"
)

gradient = func.grad(rigidity)(start)
h = 1e-5 * np.eye(2 * WAVES)
differences = np.array([(rigidity(start + e) - rigidity(start - e)) / 2e-5 for e in h])
print(f"gradient against differences: {np.max(np.abs(gradient - differences)):.0e}")

assert np.median(sizes[inner]) < np.median(on_boundary) / 10
assert np.allclose(gradient, differences, rtol=1e-6, atol=1e-8)

# %%
# The best shape
# --------------
# Saint-Venant conjectured in 1856, and Pólya proved in 1948, that the disc is best: :math:`T \le A^2 / 2\pi`.

path = [start]
best = minimize(
    func.value_and_grad(lambda shape: -rigidity(shape)), start, jac=True, method="BFGS", callback=path.append
)
radii = np.linalg.norm(nodes(best.x) - nodes(best.x)[len(inner) :].mean(axis=0), axis=1)[len(inner) :]
print(f"2π T / area²: {2 * np.pi * rigidity(start):.3f} at the start, {-2 * np.pi * best.fun:.3f} at the end")
print(f"the radius varies by {100 * (radii.max() / radii.min() - 1):.1f} %")

assert abs(-2 * np.pi * best.fun - 1) < 0.02
assert radii.max() / radii.min() < 1.02

figure, panels = plt.subplots(1, 3, figsize=(7.5, 3.4), layout="constrained", sharex=True, sharey=True)
for panel, count in zip(panels, (0, 3, len(path) - 1), strict=True):
    points = nodes(path[count])
    u = np.concatenate([solve(points)[0], np.zeros(SECTORS)])
    panel.tripcolor(*points.T, triangles, u, shading="gouraud", vmin=0, vmax=0.3)
    panel.triplot(*points.T, triangles, color="w", linewidth=0.2)
    panel.set(title=f"step {count}: {2 * np.pi * rigidity(path[count]):.3f}", aspect="equal")
    panel.axis("off")
figure.suptitle("2πT/A², which is 1 for a circle")
edge = nodes(start)[len(inner) :]
panels[0].quiver(*edge.T, *forces[len(inner) :].T, color="C3", width=0.006)
plt.show()
