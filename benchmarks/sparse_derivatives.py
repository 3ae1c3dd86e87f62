"""Sparse Jacobians and Hessians: the first pattern and colouring, and each later call, against peers.

`python -m benchmarks.sparse_derivatives [--rounds N] [--size N] [--quick]` prints a row for each contestant and whether
the bars hold. Pattern and colouring are computed once; later calls are medians and minima of interleaved rounds. The
table omits asdex (JAX) and CasADi where they do not import; SciPy's grouped differences get the pattern.
"""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from scipy.optimize._numdiff import approx_derivative, group_columns

import func
from benchmarks.timing import seconds_per_call
from func.sparse_derivatives.coloring import color_columns, color_star

FIRST_BARS = {
    ("stencil", "asdex"): 0.1,
    ("Hessian", "asdex"): 0.05,
    ("Hessian", "CasADi"): 0.05,
}
"""The pattern and the colouring: at most this share of a peer's time."""
LATER_BARS = {
    ("stencil", "asdex"): 0.5,
    ("Hessian", "asdex"): 0.5,
    ("Hessian", "CasADi, SciPy's arrays"): 0.05,
    ("bundle", "asdex"): 0.3,
    ("bundle", "CasADi"): 0.3,
    ("bundle", "SciPy's differences"): 0.3,
}
"""Each later call."""
Call = Callable[[], Any]


def burgers(u: Any, xp: Any = np) -> Any:
    """u u_x and u_xx by central differences on a periodic grid."""
    left, right = xp.roll(u, 1), xp.roll(u, -1)
    return -u * (right - left) / 2 + 0.01 * (right - 2 * u + left)


def rosenbrock(x: Any, xp: Any = np) -> Any:
    """The chained Rosenbrock function."""
    return xp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


class Scene:
    """Cameras, points, and which camera sees which point."""

    def __init__(self, cameras: int, points: int, views: int) -> None:
        rng = np.random.default_rng(0)
        self.cameras = cameras
        self.seen_by = np.sort(
            rng.permuted(np.tile(np.arange(cameras), (points, 1)), axis=1)[:, :views], axis=1
        ).ravel()
        self.seen = np.repeat(np.arange(points), views)
        poses = np.concatenate([rng.normal(0, 0.1, (cameras, 5)), rng.normal(8, 0.2, (cameras, 1))], axis=1)
        self.start = np.concatenate([poses.ravel(), rng.normal(0, 1, 3 * points)])
        self.observed = np.zeros((len(self.seen), 2))
        self.observed = self.residuals(self.start + rng.normal(0, 0.01, self.start.size)).reshape(-1, 2)

    def residuals(self, parameters: Any, xp: Any = np) -> Any:
        """Projected minus observed positions; a camera is a rotation vector and a translation."""
        poses = parameters[: 6 * self.cameras].reshape(-1, 6)[self.seen_by]
        points = parameters[6 * self.cameras :].reshape(-1, 3)[self.seen]
        angle = xp.sqrt(xp.sum(poses[:, :3] ** 2, axis=1) + 1e-12)[:, None]
        axis = poses[:, :3] / angle
        along = xp.sum(axis * points, axis=1)[:, None] * axis
        turned = xp.cos(angle) * points + xp.sin(angle) * xp.cross(axis, points) + (1 - xp.cos(angle)) * along
        moved = turned + poses[:, 3:]
        return (moved[:, :2] / moved[:, 2:] - self.observed).ravel()


class Contestant:
    """A library on one workload: the seconds for pattern and colouring, and a later call."""

    def __init__(self, name: str, find: Call, ready: Callable[[Any], Call]) -> None:
        self.name = name
        start = time.perf_counter()
        found = find()
        self.first = time.perf_counter() - start
        self.call = ready(found)
        self.seconds: list[float] = []


def ours(function: Callable[..., Any], x: Any, is_hessian: bool = False) -> Contestant:
    """func: `sparsity` and the colouring alone; the later call finds them itself."""
    derivative = (func.sparse_hessian if is_hessian else func.sparse_jacobian)(function)

    def find() -> Any:
        return (
            color_star(func.sparsity(func.grad(function))(x))
            if is_hessian
            else color_columns(func.sparsity(function)(x))
        )

    return Contestant("func", find, lambda _: lambda: derivative(x))


def by_asdex(function: Callable[..., Any], x: Any, is_hessian: bool = False) -> Contestant:
    """asdex under jax.jit, on an array that JAX holds."""
    asdex, jax = import_module("asdex"), import_module("jax")
    jax.config.update("jax_enable_x64", True)

    def traced(u: Any) -> Any:
        return function(u, jax.numpy)

    held = jax.numpy.asarray(x)
    find = asdex.hessian_coloring if is_hessian else asdex.jacobian_coloring
    make = asdex.hessian_from_coloring if is_hessian else asdex.jacobian_from_coloring

    def ready(coloring: Any) -> Call:
        compiled = jax.jit(make(traced, coloring))
        return lambda: jax.block_until_ready(compiled(held))

    return Contestant("asdex", lambda: find(traced, held), ready)


def by_casadi(
    expression: Callable[[Any, Any], Any], x: Any, is_hessian: bool = False, converts: bool = False
) -> Contestant:
    """CasADi: the derivative as a graph of scalars, which its virtual machine evaluates.

    With its own matrices, or from NumPy's array to SciPy's, as the other contestants.
    """
    casadi = import_module("casadi")

    def find() -> Any:
        variables = casadi.SX.sym("x", x.size)
        out = expression(variables, casadi)
        derivative = casadi.hessian(out, variables)[0] if is_hessian else casadi.jacobian(out, variables)
        return casadi.Function("derivative", [variables], [derivative])

    held = casadi.DM(x)
    if converts:
        return Contestant("CasADi, SciPy's arrays", find, lambda derivative: lambda: derivative(x).sparse())
    return Contestant("CasADi", find, lambda derivative: lambda: derivative(held))


def by_differences(function: Callable[..., Any], x: Any) -> Contestant:
    """SciPy's differences of grouped columns, given the pattern."""
    pattern = func.sparsity(function)(x)
    return Contestant(
        "SciPy's differences",
        lambda: group_columns(pattern),
        lambda groups: lambda: approx_derivative(function, x, method="2-point", sparsity=(pattern, groups)),
    )


def burgers_of_scalars(u: Any, casadi: Any) -> Any:
    """`burgers` for CasADi."""
    left, right = casadi.vertcat(u[-1], u[:-1]), casadi.vertcat(u[1:], u[0])
    return -u * (right - left) / 2 + 0.01 * (right - 2 * u + left)


def rosenbrock_of_scalars(x: Any, casadi: Any) -> Any:
    """`rosenbrock` for CasADi."""
    return casadi.sum1(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def residuals_of_scalars(scene: Scene) -> Callable[[Any, Any], Any]:
    """`Scene.residuals` for CasADi: the same formulas, column by column."""

    def residuals(parameters: Any, casadi: Any) -> Any:
        cameras, seen = 6 * scene.seen_by, 6 * scene.cameras + 3 * scene.seen
        r, t = ([parameters[(cameras + k + first).tolist()] for k in range(3)] for first in (0, 3))
        p = [parameters[(seen + k).tolist()] for k in range(3)]
        angle = casadi.sqrt(r[0] ** 2 + r[1] ** 2 + r[2] ** 2 + 1e-12)
        a = [component / angle for component in r]
        cos, sin, dot = casadi.cos(angle), casadi.sin(angle), a[0] * p[0] + a[1] * p[1] + a[2] * p[2]
        crossed = [a[1] * p[2] - a[2] * p[1], a[2] * p[0] - a[0] * p[2], a[0] * p[1] - a[1] * p[0]]
        moved = [cos * p[k] + sin * crossed[k] + (1 - cos) * dot * a[k] + t[k] for k in range(3)]
        return casadi.vertcat(*[moved[k] / moved[2] - scene.observed[:, k] for k in range(2)])

    return residuals


def contestants(size: int, scene: Scene) -> dict[str, list[Contestant]]:
    """The importable ones, by workload."""
    x = np.random.default_rng(0).normal(size=size)
    makers: dict[str, list[Callable[[], Contestant]]] = {
        "stencil": [
            lambda: ours(burgers, x),
            lambda: by_asdex(burgers, x),
            lambda: by_casadi(burgers_of_scalars, x),
            lambda: by_differences(burgers, x),
        ],
        "Hessian": [
            lambda: ours(rosenbrock, x, True),
            lambda: by_asdex(rosenbrock, x, True),
            lambda: by_casadi(rosenbrock_of_scalars, x, True),
            lambda: by_casadi(rosenbrock_of_scalars, x, True, converts=True),
        ],
        "bundle": [
            lambda: ours(scene.residuals, scene.start),
            lambda: by_asdex(scene.residuals, scene.start),
            lambda: by_casadi(residuals_of_scalars(scene), scene.start),
            lambda: by_differences(scene.residuals, scene.start),
        ],
    }
    present: dict[str, list[Contestant]] = {name: [] for name in makers}
    for name, several in makers.items():
        for make in several:
            with contextlib.suppress(ModuleNotFoundError):
                present[name].append(make())
    return present


def main() -> None:
    """Print the table and the bars that are missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    options = parser.parse_args()
    scene = Scene(10, 200, 5) if options.quick else Scene(100, 10_000, 10)
    missed = []
    for workload, several in contestants(1000 if options.quick else options.size, scene).items():
        for contestant in several:
            contestant.call()
        for _ in range(options.rounds):
            for contestant in several:
                contestant.seconds.append(seconds_per_call(contestant.call, 1))
        first, later = several[0].first, float(np.median(several[0].seconds))
        for contestant in several:
            median, least = float(np.median(contestant.seconds)), min(contestant.seconds)
            print(
                f"{workload:8} {contestant.name:22} pattern, colours {contestant.first:9.4f} s   later call "
                f"{median * 1e3:9.3f} ms, least {least * 1e3:9.3f}   func / it {later / median:6.3f}"
            )
            key = workload, contestant.name
            shares = ((FIRST_BARS, first, contestant.first, "found"), (LATER_BARS, later, median, "called"))
            missed += [
                f"{workload} {word}: {mine / other:.2f} of {contestant.name}, bar {bars[key]}"
                for bars, mine, other, word in shares
                if key in bars and mine > bars[key] * other
            ]
    print(f"MISSED: {'; '.join(missed)}" if missed else "all bars against those that are here reached")


if __name__ == "__main__":
    main()
