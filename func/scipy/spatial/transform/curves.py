"""Rotations over time: spherical interpolation and splines, whose times, rotations and query times may be traced."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.spatial.transform as _scipy

import func.numpy as fnp
from func import linalg
from func.control.branches_and_loops import while_loop
from func.host.scipy_hooks import holds_traced
from func.interpreters.core import Array, known_value, shape_of
from func.scipy.kinds.traces import in_original
from func.scipy.spatial.transform import quaternions
from func.scipy.spatial.transform.quaternions import composed, cross, dot, even, floats, holds
from func.scipy.spatial.transform.rotations import HAS_HOOKS, made, quaternions_of
from func.transforms.custom import stop_gradient
from func.transforms.implicit import custom_root

VERSINE = [(-1) ** k / math.factorial(2 * k + 2) for k in range(10)]
"""(1 - cos θ) / θ², by powers of θ²."""
SINE_GAP = [(-1) ** k / math.factorial(2 * k + 3) for k in range(10)]
"""(θ - sin θ) / θ³."""
BERNOULLI = (1 / 6, 1 / 30, 1 / 42, 1 / 30, 5 / 66, 691 / 2730, 7 / 6, 3617 / 510, 43867 / 798, 174611 / 330)
"""|B₂|, |B₄|, …"""
COTANGENT = [b / math.factorial(2 * k + 2) for k, b in enumerate(BERNOULLI)]
"""(1 - θ/2 cot(θ/2)) / θ²."""
VERSINE_RATE = [(-1) ** k * (2 / math.factorial(2 * k + 2) - 1 / math.factorial(2 * k + 1)) for k in range(1, 11)]
"""(-θ sin θ - 2 (cos θ - 1)) / θ⁴, by powers of θ²."""
SINE_GAP_RATE = [(-1) ** k * (3 / math.factorial(2 * k + 1) - 1 / math.factorial(2 * k)) for k in range(2, 12)]
"""(-2θ + 3 sin θ - θ cos θ) / θ⁵."""


def skew(v: Array) -> Array:
    """The matrices (…, 3, 3) of the maps x → v × x."""
    x, y, z = [v[..., i] for i in range(3)]
    zero = 0.0 * x
    rows = ([zero, -z, y], [z, zero, -x], [-y, x, zero])
    return fnp.stack([fnp.stack(row, axis=-1) for row in rows], axis=-2)


def times(matrix: Array, vector: Array) -> Array:
    """Matrices (…, m, n) times vectors (…, n)."""
    return (matrix @ vector[..., None])[..., 0]


def inverse_left_jacobian(rotvec: Array) -> Array:
    """I - S/2 + S² (1 - θ/2 cot(θ/2))/θ²."""
    square, s = dot(rotvec, rotvec)[..., None], skew(rotvec)
    factor = even(square, COTANGENT, lambda angle: (1 - 0.5 * angle / fnp.tan(0.5 * angle)) / angle**2)
    return np.eye(3) - 0.5 * s + factor * (s @ s)


def steps(quat: Array) -> Array:
    """Rotation vectors (n - 1, 3) from each rotation to the next."""
    return quaternions.to_rotvec(composed(quaternions.inverse(quat[:-1]), quat[1:]))


def checked_times(given: Any, rotations: Any) -> Array:
    """The times (n,) of n rotations."""
    given = floats(given)
    if given.ndim != 1:
        raise ValueError(f"Expected times to be specified in a 1 dimensional array, got {given.ndim} dimensions.")
    if shape_of(given)[0] != len(rotations):
        raise ValueError(
            "Expected number of rotations to be equal to number of timestamps given, got "
            f"{len(rotations)} rotations and {shape_of(given)[0]} timestamps."
        )
    if not holds(fnp.diff(given) > 0):
        raise ValueError("Times must be in strictly increasing order.")
    return given


class Slerp(_scipy.Slerp):  # type: ignore[misc]
    """SciPy's Slerp of traced times or rotations: the derivative at one of the times is that of the arc before it."""

    def __new__(cls, times: Any = None, rotations: Any = None) -> Any:
        """SciPy's object if nothing is traced."""
        if HAS_HOOKS and not holds_traced((times, rotations)):
            return _scipy.Slerp(times, rotations)
        return super().__new__(cls)

    def __init__(self, times: Any, rotations: Any) -> None:
        if not isinstance(rotations, _scipy.Rotation):
            raise TypeError("`rotations` must be a `Rotation` instance.")
        if rotations.single or len(rotations) <= 1:
            raise ValueError("`rotations` must be a sequence of at least 2 rotations.")
        quat = quaternions_of(rotations)
        if len(shape_of(quat)) > 2:
            raise ValueError("Rotations with more than 1 leading dimension are not supported.")
        self.times = checked_times(times, rotations)
        self.timedelta = fnp.diff(self.times)
        self.rotations = made(quat[:-1])
        self.rotvecs = steps(quat)

    def __func_holds_traced__(self) -> bool:
        return holds_traced([getattr(self, name, None) for name in ("times", "rotations", "rotvecs")])

    def __call__(self, times: Any) -> Any:
        return between(self, times)


def between(slerp: Any, at: Any) -> Any:
    """The rotations of a Slerp at times within its range."""
    at = floats(at)
    if at.ndim > 1:
        raise ValueError("`times` must be at most 1-dimensional.")
    knots = floats(slerp.times)
    last = shape_of(knots)[0] - 1
    if not holds((at >= knots[0]) & (at <= knots[last])):
        raise ValueError(
            f"Interpolation times must be within the range [{known_value(knots[0])}, {known_value(knots[last])}], "
            "both inclusive."
        )
    i = fnp.clip(fnp.searchsorted(stop_gradient(knots), stop_gradient(at)) - 1, 0, last - 1)
    start = fnp.take(knots, i)
    part = (at - start) / (fnp.take(knots, i + 1) - start)
    # Where the numbers are unknown, the result is NaN outside of the range.
    part = fnp.where((at >= knots[0]) & (at <= knots[last]), part, np.nan)
    turn = quaternions.of_rotvec(fnp.take(slerp.rotvecs, i, axis=0) * fnp.expand_dims(part, -1))
    return made(composed(fnp.take(quaternions_of(slerp.rotations), i, axis=0), turn))


def rates_matrix(rotvec: Array) -> Array:
    """The matrices that turn derivatives of rotation vectors into angular rates."""
    square, s = dot(rotvec, rotvec)[..., None], skew(rotvec)
    first = even(square, VERSINE, lambda angle: (1 - fnp.cos(angle)) / angle**2)
    second = even(square, SINE_GAP, lambda angle: (angle - fnp.sin(angle)) / angle**3)
    return np.eye(3) - first * s + second * (s @ s)


def rotvec_matrix(rotvec: Array) -> Array:
    """The inverse matrices: I + S/2 + S² (1 - θ/2 cot(θ/2))/θ²."""
    return inverse_left_jacobian(-rotvec)


def acceleration_rest(rotvec: Array, rate: Array) -> Array:
    """The angular acceleration of a rotation vector without second derivative."""
    square = dot(rotvec, rotvec)
    once = cross(rotvec, rate)
    twice = cross(rotvec, once)
    first = even(square, VERSINE_RATE, lambda a: (-a * fnp.sin(a) - 2 * (fnp.cos(a) - 1)) / a**4)
    second = even(square, SINE_GAP_RATE, lambda a: (-2 * a + 3 * fnp.sin(a) - a * fnp.cos(a)) / a**5)
    third = even(square, SINE_GAP, lambda a: (a - fnp.sin(a)) / a**3)
    return dot(rotvec, rate) * (first * once + second * twice) + third * cross(rate, once)


class RotationSpline(_scipy.RotationSpline):  # type: ignore[misc]
    """SciPy's RotationSpline of traced times or rotations, whose angular rates differentiate by their equations."""

    def __new__(cls, times: Any = None, rotations: Any = None) -> Any:
        """SciPy's object if nothing is traced."""
        if HAS_HOOKS and not holds_traced((times, rotations)):
            return _scipy.RotationSpline(times, rotations)
        return super().__new__(cls)

    def __init__(self, times: Any, rotations: Any) -> None:
        in_original(_scipy.RotationSpline.__init__, self, times, rotations)

    def _solve_for_angular_rates(self, dt: Array, rates: Array, rotvecs: Array) -> tuple[Array, Array]:
        return matched_rates(dt[:, None], rates, rotvecs)

    def __func_holds_traced__(self) -> bool:
        return holds_traced([getattr(self, name, None) for name in ("times", "rotations", "interpolator")])

    def __call__(self, times: Any, order: int = 0) -> Any:
        return along(self, times, order)


def matched_rates(dt: Array, rates: Array, rotvecs: Array) -> tuple[Array, Array]:
    """Angular rates at the starts of the pieces, and the derivatives of the rotation vectors at their ends.

    The accelerations at the inner times match; the first and the last rate are those of constant turning. The solver is
    SciPy's iteration on the linear part of the equations.
    """
    to_rotvec, to_rate = rotvec_matrix(rotvecs), rates_matrix(rotvecs)
    count = shape_of(rotvecs)[0] - 1
    diagonal = 4 * (1 / dt[:-1] + 1 / dt[1:])
    below, above = [2 * x[1:-1] / dt[1:-1, :, None] for x in (to_rate, to_rotvec)]
    banded = band_matrix(diagonal, below, above)
    right = 6 * (rotvecs[:-1] / dt[:-1] ** 2 + rotvecs[1:] / dt[1:] ** 2)
    first = 2 / dt[0] * times(to_rate[0], rates[0])
    last = 2 / dt[count] * times(to_rotvec[count], rates[count])
    corrections = [fnp.where(np.arange(count)[:, None] == i, x, 0.0) for i, x in ((0, first), (count - 1, last))]
    right = right - corrections[0] - corrections[1]

    def gap(x: Array) -> Array:
        """The equations at rates (count, 3) of the inner times."""
        rest = acceleration_rest(rotvecs[:-1], times(to_rotvec[:-1], x))
        nothing = 0 * x[:1]
        before = fnp.concatenate([nothing, times(below, x[:-1])])
        after = fnp.concatenate([times(above, x[1:]), nothing])
        return diagonal * x + before + after - right + rest

    limit, count_limit = _scipy.RotationSpline.TOL, _scipy.RotationSpline.MAX_ITER

    def improved(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        x, _, n = state
        step = fnp.reshape(linalg.solve_banded((5, 5), banded, fnp.reshape(gap(x), (-1,))), (count, 3))
        return x - step, fnp.any(fnp.abs(step) >= limit * (1 + fnp.abs(x - step))), n + 1

    def solve(residual: Any, x: Array) -> Array:
        state = (x, np.True_, np.int64(0))
        x, _, _ = while_loop(lambda state: state[1] & (state[2] < count_limit), improved, state)
        return x

    inner = custom_root(gap, solve)(rates[:-1])
    ends = times(to_rotvec, fnp.concatenate([inner, rates[-1:]]))
    return fnp.concatenate([rates[:1], inner]), ends


def band_matrix(diagonal: Array, below: Array, above: Array) -> Array:
    """The bands (11, 3 n) of a block matrix: multiples (n, 1) of the identity, next to blocks (n - 1, 3, 3)."""
    count = shape_of(diagonal)[0]
    values = [fnp.reshape(x, (-1,)) for x in (0 * diagonal[0], diagonal, below, above)]
    where = np.zeros((11, 3 * count), int)
    i, j = np.arange(3)[:, None], np.arange(3)
    for n in range(count):
        where[5, 3 * n : 3 * n + 3] = 1 + n
    for n in range(count - 1):
        numbers = 1 + count + 9 * n + 3 * i + j
        where[5 + 3 + i - j, 3 * n + j] = numbers
        where[5 - 3 + i - j, 3 * n + 3 + j] = numbers + 9 * (count - 1)
    return fnp.take(fnp.concatenate(values), where)


def along(spline: Any, at: Any, order: int = 0) -> Any:
    """The rotations of a spline, or their angular rates or accelerations."""
    if order not in (0, 1, 2):
        raise ValueError("`order` must be 0, 1 or 2.")
    at = floats(at)
    if at.ndim > 1:
        raise ValueError("`times` must be at most 1-dimensional.")
    rotvecs, *rates = [spline.interpolator(at, nu) for nu in range(order + 1)]
    if order == 0:
        knots = floats(spline.times)
        i = fnp.searchsorted(stop_gradient(knots), stop_gradient(at), side="right") - 1
        start = fnp.take(quaternions_of(spline.rotations), fnp.clip(i, 0, shape_of(knots)[0] - 2), axis=0)
        return made(composed(start, quaternions.of_rotvec(rotvecs)))
    out = times(rates_matrix(rotvecs), rates[order - 1])
    return out if order == 1 else out + acceleration_rest(rotvecs, rates[0])


HOOKS = {"Slerp___call__": between, "RotationSpline___call__": along}
"""The targets of the methods' hooks."""
