"""Unit quaternions (…, 4), scalar last, as arrays: conversions from and to representations, and arithmetic.

Even functions of the angle θ are functions of θ², smooth at the identity. Near it they are power series, so that
derivatives of every order exist there. Where SciPy decides by the numbers (the sign of a quaternion, the largest
component, a gimbal lock), the derivative is that of the branch taken.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import func.numpy as fnp
from func.interpreters.core import Array, dtype_of, known_value, operand, shape_of
from func.numpy.argument_checks import arrayed, to_dtype
from func.transforms.custom import custom_jvp, stop_gradient

SINE = [(-1) ** k / (2 ** (2 * k + 1) * math.factorial(2 * k + 1)) for k in range(9)]
"""sin(θ/2) / θ, by powers of θ²."""
COSINE = [(-1) ** k / (4**k * math.factorial(2 * k)) for k in range(10)]
"""cos(θ/2)."""
ARCSINE = [2 * math.comb(2 * k, k) / (4**k * (2 * k + 1)) for k in range(14)]
"""2 asin(y) / y, by powers of y²."""
GIMBAL = 1e-7
"""The distance of the second angle from its limits where the first and the third turn about one axis."""


def floats(x: Any) -> Array:
    """An argument as an array of double precision."""
    x = arrayed(operand(x))
    if dtype_of(x).kind == "c":
        raise TypeError("rotations are made of real numbers, got complex ones")
    return to_dtype(x, np.float64)


def holds(condition: Any) -> bool:
    """Whether a condition holds in all elements and batch elements; true if its values are unknown."""
    value = known_value(operand(condition))
    return value is None or bool(np.all(value))


def polynomial(coefficients: Sequence[float], x: Array) -> Array:
    """Σ c_k x^k by Horner's scheme."""
    out: Any = coefficients[-1]
    for c in coefficients[-2::-1]:
        out = out * x + c
    return out


def even(square: Array, series: Sequence[float], otherwise: Callable[[Array], Array], limit: float = 1.0) -> Array:
    """An even function of the root of `square`: by its power series below the limit, otherwise(root) above."""
    is_small = square < limit
    near = polynomial(series, fnp.where(is_small, square, 0.0))
    return fnp.where(is_small, near, otherwise(fnp.sqrt(fnp.where(is_small, limit, square))))


def dot(a: Array, b: Array) -> Array:
    """Products of vectors along the last axis, which remains with length 1."""
    return fnp.sum(a * b, axis=-1, keepdims=True)


def length(x: Array) -> Array:
    """Lengths along the last axis, which remains; the derivative of the length of a zero vector is zero."""
    square = dot(x, x)
    is_zero = fnp.equal(square, 0)
    return fnp.where(is_zero, 0.0, fnp.sqrt(fnp.where(is_zero, 1.0, square)))


def normalized(quat: Array) -> Array:
    """Quaternions of length 1."""
    norm = fnp.sqrt(dot(quat, quat))
    if not holds(fnp.not_equal(norm, 0)):
        raise ValueError("Found zero norm quaternions in `quat`.")
    return quat / norm


def canonical(quat: Array) -> Array:
    """The one of q and -q whose last nonzero component, in the order w, x, y, z, is positive."""
    x, y, z, w = [quat[..., i] for i in range(4)]
    is_negative = z < 0
    for component in (y, x, w):
        is_negative = (component < 0) | (fnp.equal(component, 0) & is_negative)
    return fnp.where(fnp.expand_dims(is_negative, -1), -quat, quat)


def composed(p: Array, q: Array) -> Array:
    """The quaternion of the rotation q, followed by the rotation p."""
    u, v, s, t = p[..., :3], q[..., :3], p[..., 3:], q[..., 3:]
    return fnp.concatenate([s * v + t * u + cross(u, v), s * t - dot(u, v)], axis=-1)


def cross(u: Array, v: Array) -> Array:
    """Cross products (…, 3), broadcast."""
    a, b, c = [u[..., i] for i in range(3)]
    x, y, z = [v[..., i] for i in range(3)]
    return fnp.stack([b * z - c * y, c * x - a * z, a * y - b * x], axis=-1)


def inverse(quat: Array) -> Array:
    """The conjugate."""
    return quat * np.array([-1.0, -1.0, -1.0, 1.0])


def of_rotvec(rotvec: Array) -> Array:
    """exp of half the vector: (v sin(θ/2) / θ, cos(θ/2)) with θ = |v|."""
    square = dot(rotvec, rotvec)
    scale = even(square, SINE, lambda angle: fnp.sin(angle / 2) / angle)
    return fnp.concatenate([rotvec * scale, even(square, COSINE, lambda angle: fnp.cos(angle / 2))], axis=-1)


def to_rotvec(quat: Array) -> Array:
    """v θ / sin(θ/2) with θ in [0, π]; for quaternions of any length as in SciPy, by θ = 2 atan2(|v|, w)."""
    quat = canonical(quat)
    v, w = quat[..., :3], quat[..., 3:]
    square = dot(v, v)
    total = square + w * w
    is_zero = fnp.equal(total, 0)
    y = fnp.where(is_zero, 0.0, square / fnp.where(is_zero, 1.0, total))
    return v * even(y, ARCSINE, lambda sine: _wide_angle(v, w) / sine, limit=0.04)


def _wide_angle(v: Array, w: Array) -> Array:
    """2 atan2(|v|, w) where that is not small."""
    square = dot(v, v)
    is_wide = square >= 0.03 * (square + w * w)
    return 2 * fnp.arctan2(fnp.sqrt(fnp.where(is_wide, square, 1.0)), w)


def magnitude(quat: Array) -> Array:
    """The angle in [0, π]; its derivative at the identity, where it has a kink, is zero."""
    return 2 * fnp.arctan2(length(quat[..., :3])[..., 0], fnp.abs(quat[..., 3]))


def of_mrp(mrp: Array) -> Array:
    """From modified Rodrigues parameters p = e tan(θ/4)."""
    square = dot(mrp, mrp)
    return fnp.concatenate([2 * mrp, 1 - square], axis=-1) / (1 + square)


def to_mrp(quat: Array) -> Array:
    """Modified Rodrigues parameters of length ≤ 1."""
    w = quat[..., 3:]
    sign = fnp.where(w < 0, -1.0, 1.0)
    return sign * quat[..., :3] / (1 + sign * w)


def to_matrix(quat: Array) -> Array:
    """Matrices (…, 3, 3)."""
    x, y, z, w = [quat[..., i] for i in range(4)]
    rows = [
        [x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), -x * x + y * y - z * z + w * w, 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), -x * x - y * y + z * z + w * w],
    ]
    return fnp.stack([fnp.stack(row, axis=-1) for row in rows], axis=-2)


def symmetric_form(matrix: Array) -> Array:
    """Davenport's matrix K (…, 4, 4): qᵀ K q = tr(R(q)ᵀ M) for unit quaternions q.

    Source: Davenport (1968); Markley and Crassidis, Fundamentals of spacecraft attitude determination, 5.3.
    """
    trace = matrix[..., 0, 0] + matrix[..., 1, 1] + matrix[..., 2, 2]
    z = [matrix[..., i, j] - matrix[..., j, i] for i, j in ((2, 1), (0, 2), (1, 0))]
    rows = [
        [matrix[..., i, j] + matrix[..., j, i] - (trace if i == j else 0.0) for j in range(3)] + [z[i]]
        for i in range(3)
    ]
    return fnp.stack([fnp.stack(row, axis=-1) for row in [*rows, [*z, trace]]], axis=-2)


@custom_jvp
def top_eigenpair(k: Array) -> tuple[Array, Array]:
    """The largest eigenvalue (…) of symmetric matrices (…, n, n), and its eigenvector of length 1, of either sign."""
    values, vectors = fnp.linalg.eigh(k)
    return values[..., -1], vectors[..., :, -1]


@top_eigenpair.defjvp
def top_eigenpair_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Any, Any]:
    """(K - λ) dv - v dλ = -dK v and vᵀ dv = 0; the other eigenvalues may be equal."""
    (k,), (dk,) = primals, tangents
    value, v = top_eigenpair(k)
    n = shape_of(k)[-1]
    column = v[..., None]
    shifted = k - value[..., None, None] * np.eye(n)
    row = fnp.concatenate([fnp.swapaxes(column, -1, -2), 0 * column[..., :1, :]], axis=-1)
    system = fnp.concatenate([fnp.concatenate([shifted, -column], axis=-1), row], axis=-2)
    right = -dk @ column
    right = fnp.concatenate([right, 0 * right[..., :1, :]], axis=-2)
    solution = fnp.linalg.solve(system, right)[..., 0]
    return (value, v), (solution[..., n], solution[..., :n])


def with_positive_largest(quat: Array) -> Array:
    """The one of q and -q whose largest component is positive."""
    largest = fnp.argmax(fnp.abs(quat), axis=-1)
    return quat * fnp.sign(fnp.take_along_axis(quat, fnp.expand_dims(largest, -1), axis=-1))


def of_nearest(matrix: Array) -> Array:
    """The rotation nearest to matrices of positive determinant, which is their orthogonal polar factor."""
    return with_positive_largest(top_eigenpair(symmetric_form(matrix))[1])


def of_orthogonal(matrix: Array) -> Array:
    """From orthogonal matrices, by the formula that divides by the largest component.

    Source: Markley (2008), J. Guidance, Control, and Dynamics 31.2, 440-442.
    """
    form = symmetric_form(matrix)
    trace = form[..., 3, 3]
    decision = fnp.stack([matrix[..., i, i] for i in range(3)] + [trace], axis=-1)
    choice = fnp.argmax(decision, axis=-1)
    row = fnp.take_along_axis(form, fnp.expand_dims(choice, (-1, -2)), axis=-2)[..., 0, :]
    # The row of K + I that belongs to the largest component is 4 q_i q.
    return normalized(row + fnp.astype(fnp.expand_dims(choice, -1) == np.arange(4), np.float64))


def about_axis(axis: int, angle: Array) -> Array:
    """The rotation about x, y or z."""
    sine, zero = fnp.sin(angle / 2), 0.0 * angle
    return fnp.stack([sine if i == axis else zero for i in range(3)] + [fnp.cos(angle / 2)], axis=-1)


def of_angles(rotations: Sequence[Array], extrinsic: bool) -> Array:
    """Rotations one after another, about fixed axes or about axes that turn with them."""
    out = rotations[0]
    for q in rotations[1:]:
        out = composed(q, out) if extrinsic else composed(out, q)
    return out


def to_euler(quat: Array, seq: str, suppress_warnings: bool) -> Array:
    """Angles (…, 3) about three of x, y, z in turn.

    Source: Bernardes and Viollet (2022), PLoS ONE 17(11).
    """
    extrinsic = seq.islower()
    i, j, k = ["xyz".index(c) for c in (seq.lower() if extrinsic else seq.lower()[::-1])]
    symmetric = i == k
    k = 3 - i - j if symmetric else k
    sign = (i - j) * (j - k) * (k - i) // 2
    qi, qj, qk, w = quat[..., i], quat[..., j], quat[..., k] * sign, quat[..., 3]
    terms = (w, qi, qj, qk) if symmetric else (w - qj, qi + qk, qj + w, qk - qi)
    return angles_of(extrinsic, symmetric, sign, math.pi / 2, *terms, suppress_warnings)


def to_davenport(quat: Array, axes: Array, extrinsic: bool, suppress_warnings: bool) -> Array:
    """Angles (…, 3) about three axes (…, 3, 3) of length 1; neighbouring axes are orthogonal."""
    n1, n2, n3 = [axes[..., i, :] for i in ((0, 1, 2) if extrinsic else (2, 1, 0))]
    n4 = cross(n1, n2)
    angle = fnp.arctan2(dot(n3, n4), dot(n3, n1))
    sign = fnp.where(angle < 0, -1.0, 1.0)
    angle, n2, n4 = sign * angle, sign * n2, sign * n4
    turned = composed(fnp.concatenate([fnp.sin(angle / 2) * n2, fnp.cos(angle / 2)], axis=-1), quat)
    b, c, d = [dot(turned[..., :3], n)[..., 0] for n in (n1, n2, n4)]
    out = angles_of(extrinsic, False, 1, angle[..., 0], turned[..., 3], b, c, d, suppress_warnings)
    second = sign[..., 0] * out[..., 1]
    return fnp.stack([out[..., 0], second, out[..., 2]], axis=-1)


def angles_of(
    extrinsic: bool, symmetric: bool, sign: int, shift: Any, a: Array, b: Array, c: Array, d: Array, silent: bool
) -> Array:
    """Three angles from a quaternion's components.

    In a gimbal lock the third is zero and the first contains both; the second is at its limit, with derivative zero.
    """
    middle = 2 * fnp.arctan2(_hypotenuse(c, d), _hypotenuse(a, b))
    at_start, at_end = fnp.abs(middle) <= GIMBAL, fnp.abs(middle - math.pi) <= GIMBAL
    is_locked = at_start | at_end
    if not silent and not holds(fnp.logical_not(is_locked)):
        warnings.warn(
            "Gimbal lock detected. Setting third angle to zero since it is not possible to uniquely determine all "
            "angles.",
            stacklevel=4,
        )
    middle = fnp.where(is_locked, stop_gradient(middle), middle)
    half_sum = fnp.arctan2(fnp.where(at_end, 0.0, b), fnp.where(at_end, 1.0, a))
    half_difference = fnp.arctan2(fnp.where(at_start, 0.0, d), fnp.where(at_start, 1.0, c))
    both = fnp.where(at_start, 2 * half_sum, (-2 if extrinsic else 2) * half_difference)
    one, other = half_sum - half_difference, half_sum + half_difference
    first, third = (one, other) if extrinsic else (other, one)
    first, third = fnp.where(is_locked, both, first), fnp.where(is_locked, 0.0, third)
    if not symmetric:
        first, third = (first, third * sign) if extrinsic else (first * sign, third)
        middle = middle - shift
    out = fnp.stack([first, middle, third], axis=-1)
    return fnp.where(out < -math.pi, out + 2 * math.pi, fnp.where(out > math.pi, out - 2 * math.pi, out))


def _hypotenuse(a: Array, b: Array) -> Array:
    return length(fnp.stack([a, b], axis=-1))[..., 0]
