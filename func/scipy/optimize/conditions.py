"""The conditions of Karush, Kuhn and Tucker, as equations of a solution and its multipliers.

A minimum x of f under xl ≤ x ≤ xu and cl ≤ c(x) ≤ cu has multipliers λ with, for L(x) = f(x) - λ·c(x):

- dL/dx_i = 0 where x_i is free, and x_i equal to its bound where that is active;
- c_j(x) equal to its bound where that is active, and λ_j = 0 elsewhere.

The numbers of the solution decide once which bounds are active; from then on this is part of the equation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize as scipy_optimize

from func import numpy as func_numpy
from func.interpreters.core import Array, Aval, Tracer, shape_of
from func.interpreters.drivers import output_avals
from func.scipy.optimize import solving
from func.scipy.optimize.solving import FLOAT, INFO, Run, as_array, scalar, vector_of
from func.transforms.implicit import Problem
from func.transforms.jacobians import jacobian
from func.transforms.reverse import grad

CODE = np.dtype(np.int8)


class Constraint(NamedTuple):
    """lower ≤ function(x) ≤ upper; bounds are one number, or one for each value of the function."""

    function: Callable[..., Any]
    args: Any
    lower: Any
    upper: Any

    def value(self, x: Array) -> Array:
        """The values of the constraint as a vector."""
        return vector_of(self.function(x, *self.args))


class Model(NamedTuple):
    """The objective with its bounds and constraints; traced values may be anywhere in it."""

    objective: Callable[..., Any]
    """(x, *args): one number."""
    args: Any
    lower: Any = None
    """A vector, or None; infinite without a bound."""
    upper: Any = None
    constraints: tuple[Constraint, ...] = ()

    def value(self, x: Array) -> Array:
        """The objective."""
        return scalar(self.objective(x, *self.args))

    def bounds(self, size: int) -> tuple[Array, Array]:
        """The bounds of each variable."""
        return _filled(self.lower, -np.inf, size), _filled(self.upper, np.inf, size)

    def constrained(self, x: Array) -> tuple[Array, Array, Array]:
        """The values and bounds of all constraints."""
        values = [constraint.value(x) for constraint in self.constraints]
        if not values:
            return np.zeros(0), np.zeros(0), np.zeros(0)
        sizes = [shape_of(value)[0] for value in values]
        lower = [_filled(c.lower, -np.inf, n) for c, n in zip(self.constraints, sizes, strict=True)]
        upper = [_filled(c.upper, np.inf, n) for c, n in zip(self.constraints, sizes, strict=True)]
        return _joined(values), _joined(lower), _joined(upper)


def _filled(bound: Any, default: float, size: int) -> Array:
    """A bound for each of some numbers."""
    if bound is None:
        return np.full(size, default)
    bound = vector_of(bound)
    return bound if shape_of(bound) == (size,) else np.broadcast_to(bound, (size,))


def _joined(parts: list[Any]) -> Array:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def residual(z: Any, aux: Any, model: Model) -> Any:
    """The equations of (x, multipliers)."""
    x, multipliers = z
    x_codes, c_codes, _ = aux

    def lagrangian(x: Array) -> Array:
        value = model.value(x)
        if model.constraints:
            value = value - np.sum(multipliers * model.constrained(x)[0])
        return value

    slope = grad(lagrangian)(x)
    if model.lower is not None or model.upper is not None:
        lower, upper = model.bounds(shape_of(x)[0])
        slope = np.where(x_codes == 0, slope, x - _chosen(x_codes, lower, upper))
    if not model.constraints:
        return slope, multipliers
    values, lower, upper = model.constrained(x)
    return slope, np.where(c_codes == 0, multipliers, values - _chosen(c_codes, lower, upper))


def _chosen(codes: Array, lower: Array, upper: Array) -> Array:
    """The active bounds; zero elsewhere."""
    return np.where(codes < 0, np.where(codes < 0, lower, 0.0), np.where(codes > 0, upper, 0.0))


class Active(NamedTuple):
    """The active set at a solution, as numbers."""

    x_codes: Array
    c_codes: Array
    multipliers: Array
    is_degenerate: bool


def active_set(model: Model, x: Array, tolerance: float) -> Active:
    """The bounds and constraints that are active at the solution, and their multipliers.

    Those near x are candidates. If the gradient is a combination of the normals of candidates, with multipliers of the
    right sign, those with positive multipliers are active.
    """
    size = x.size
    lower, upper = [np.asarray(bound, float) for bound in model.bounds(size)]
    values, c_lower, c_upper = [np.asarray(part, float) for part in model.constrained(x)]
    slope = np.asarray(grad(model.value)(x), float)
    scale = max(1.0, float(np.max(np.abs(slope), initial=0.0)))
    normals = np.asarray(jacobian(lambda x: model.constrained(x)[0])(x), float) if values.size else np.zeros((0, size))
    rows: list[tuple[int, int, Any]] = []  # its number, its side, its normal that points inside
    for number, side in _near(x, lower, upper, tolerance):
        rows.append((number, side, -side * np.eye(size)[number] if side else np.eye(size)[number]))
    count = len(rows)
    for number, side in _near(values, c_lower, c_upper, tolerance):
        rows.append((number, side, -side * normals[number] if side else normals[number]))
    x_codes, c_codes = np.zeros(size, CODE), np.zeros(values.size, CODE)
    multipliers = np.zeros(values.size)
    if not rows:
        return Active(x_codes, c_codes, multipliers, False)
    matrix = np.array([row for *_, row in rows]).T
    signed = np.array([side != 0 for _, side, _ in rows])
    weights = _weights(matrix, slope, signed)
    threshold = 1e-7 * scale
    degenerate = False
    for place, (number, side, row) in enumerate(rows):
        is_fixed = side == 0
        if is_fixed or weights[place] > threshold * max(1e-8, 1.0 / max(float(np.linalg.norm(row)), 1e-300)):
            if place < count:
                x_codes[number] = -1 if side == 0 else side
            else:
                c_codes[number] = -1 if side == 0 else side
                multipliers[number] = weights[place] if side == 0 else -side * weights[place]
        elif _is_tight(place < count, number, side, (x, lower, upper), (values, c_lower, c_upper)):
            degenerate = True
    return Active(x_codes, c_codes, multipliers, degenerate)


def _near(values: Array, lower: Array, upper: Array, tolerance: float) -> list[tuple[int, int]]:
    """The numbers near a bound, with its side; 0 where both bounds are one."""
    found = []
    for i in range(values.size):
        if lower[i] == upper[i]:
            found.append((i, 0))
            continue
        for side, bound in ((-1, lower[i]), (1, upper[i])):
            if np.isfinite(bound) and abs(values[i] - bound) <= tolerance * max(1.0, abs(bound)):
                found.append((i, side))
                break
    return found


def _is_tight(of_x: bool, number: int, side: int, x: Any, c: Any) -> bool:
    values, lower, upper = x if of_x else c
    bound = lower[number] if side < 0 else upper[number]
    return bool(abs(values[number] - bound) <= 1e-9 * max(1.0, abs(bound)))


def _weights(matrix: Array, slope: Array, signed: Array) -> Array:
    """The multipliers that explain the gradient best, not negative for inequalities."""
    lower = np.where(signed, 0.0, -np.inf)
    if not signed.any():
        return np.linalg.lstsq(matrix, slope, rcond=None)[0]
    free = matrix[:, ~signed]
    split = np.concatenate([matrix, -free], axis=1)
    norms = np.maximum(np.linalg.norm(split, axis=0), 1e-300)
    weights = solving.original("nnls")(split / norms, slope)[0] / norms
    out = weights[: lower.size].copy()
    out[~signed] -= weights[lower.size :]
    return out


def minimum(
    run: Run,
    model: Model,
    starts: tuple[Any, ...],
    extra: tuple[Any, ...],
    minimise: Callable[..., Any],
    size: int,
    tolerance: float = 1e-6,
) -> tuple[Array, Any, Array]:
    """(x, info, multipliers) of a minimum that SciPy finds.

    `minimise(model, *starts, *extra)` returns SciPy's result for a model of plain numbers and its parameters.
    """

    def solve(*parts: Any) -> Any:
        starts_given, (plain, *rest) = parts[: len(starts)], parts[len(starts) :]
        result = run.note(minimise(plain, *starts_given, *rest))
        x = np.array(result["x"], float).reshape(-1)
        if not np.all(np.isfinite(x)):
            active = Active(np.zeros(size, CODE), np.zeros(count, CODE), np.full(count, np.nan), False)
        else:
            active = active_set(plain, x, tolerance)
        residuals = np.asarray(result.get("fun", 0.0))
        is_short = residuals.ndim == 1 and residuals.size < np.sum(active.x_codes == 0)  # more unknowns than equations
        info = np.concatenate([solving.info_of(result), [int(active.is_degenerate), int(is_short)]])
        return (x, active.multipliers), (active.x_codes, active.c_codes, info)

    def equations(z: Any, aux: Any, model: Model, *rest: Any) -> Any:
        return residual(z, aux, model)

    count = sum([_count(constraint, size) for constraint in model.constraints])
    flags = [lambda aux, place=place: aux[2][place] != 0 for place in (0, 4, 5)]
    check = solving.check_of(run.name, *flags)
    problem = Problem(equations, solve, None, starts, (model, *extra), check)
    like = (Aval((size,), FLOAT), Aval((count,), FLOAT))
    aux = (Aval((size,), CODE), Aval((count,), CODE), Aval((6,), INFO.dtype))
    (x, multipliers), (_, _, info) = solving.solve(problem, (like, aux))
    return x, info, multipliers


def _count(constraint: Constraint, size: int) -> int:
    """The number of values of a constraint."""
    (aval,) = output_avals(lambda x: [constraint.value(x)], [Aval((size,), FLOAT)])
    return int(aval.shape[0])


def limits(bounds: Any, size: int) -> tuple[Any, Any]:
    """The lower and upper bounds of variables, as vectors that may be traced; None without bounds.

    `bounds` is an argument of SciPy: pairs with None for infinity, or an object with `lb` and `ub`.
    """
    if bounds is None:
        return None, None
    if isinstance(bounds, scipy_optimize.Bounds):
        return _limit(bounds.lb, size), _limit(bounds.ub, size)
    if type(bounds) is Tracer or isinstance(bounds, np.ndarray):
        pairs = as_array(bounds)
        return pairs[:, 0], pairs[:, 1]
    pairs = list(bounds)
    if not pairs:
        return None, None
    return (
        func_numpy.asarray([-np.inf if low is None else low for low, _ in pairs], float),
        func_numpy.asarray([np.inf if high is None else high for _, high in pairs], float),
    )


def _limit(bound: Any, size: int) -> Any:
    bound = bound if type(bound) is Tracer else np.asarray(bound)
    if type(bound) is np.ndarray and bound.dtype.hasobject:
        bound = func_numpy.asarray(list(bound), float)
    return _filled(bound, 0.0, size)
