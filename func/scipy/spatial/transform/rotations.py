"""Rotations made of traced values, and methods of SciPy's rotations for traced values."""

from __future__ import annotations

import functools
import math
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.spatial.transform as _scipy

import func.numpy as fnp
from func import tree
from func.host import scipy_hooks
from func.host.scipy_hooks import holds_traced
from func.interpreters.core import Array, dtype_of, known_value, operand, shape_of
from func.numpy.argument_checks import arrayed
from func.scipy.spatial.transform import quaternions
from func.scipy.spatial.transform.quaternions import composed, dot, floats, holds, length
from func.transforms.custom import custom_jvp, stop_gradient

HAS_HOOKS = isinstance(vars(_scipy.Rotation).get("__init__"), types.FunctionType)
"""Whether SciPy's class is written in Python (from 1.17 on), so that its objects take traced values."""
DEGREE = math.pi / 180
IDENTITY = np.array([0.0, 0.0, 0.0, 1.0])
_OPPOSITE = 1e-30
"""The bound on the square of the sum of unit vectors that count as opposite."""
ANY = np.array([0.1, 0.2, 0.3, 0.9])
"""A rotation whose angles are not in a gimbal lock."""


def made(quat: Any) -> Any:
    """A rotation of these quaternions, unchanged: SciPy's if they are plain and SciPy's class has hooks."""
    if HAS_HOOKS and not holds_traced(quat) and isinstance(quat, np.ndarray) and quat.dtype != object:
        return _scipy.Rotation(quat, normalize=False)
    rotation = _scipy.Rotation.__new__(Rotation)
    rotation._quat, rotation._single = quat, False
    return rotation


def quaternions_of(rotation: Any) -> Array:
    """The quaternions of any rotation, of a single one (4,)."""
    quat: Array = rotation._quat if isinstance(rotation, Rotation) else rotation.as_quat()
    return quat


def own(rotation: Any) -> Rotation:
    """A rotation as an object of func's class."""
    if isinstance(rotation, Rotation):
        return rotation
    lifted: Rotation = _scipy.Rotation.__new__(Rotation)
    lifted._quat, lifted._single = rotation.as_quat(), False
    return lifted


def plain_like(quat: Array) -> Any:
    """SciPy's rotation of the shape of quaternions: it raises SciPy's errors."""
    return _scipy.Rotation.from_quat(np.broadcast_to(ANY, shape_of(quat)).copy())


def shape_given_by(rotation: Any) -> tuple[int, ...]:
    """The shape of a rotation's quaternions."""
    return tuple(np.shape(rotation.as_quat()))


def like(x: Any, value: Any = 0) -> Any:
    """A plain array of the shape and dtype of an argument."""
    x = arrayed(operand(x))
    return np.full(shape_of(x), value, dtype_of(x))


def constructor(function: Callable[..., Any]) -> Callable[..., Any]:
    """A static method that leaves calls without traced values to SciPy's, if SciPy's class has hooks."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if HAS_HOOKS and not holds_traced(args) and not holds_traced(kwargs):
            return scipy_hooks.original(getattr(_scipy.Rotation, function.__name__))(*args, **kwargs)
        return function(*args, **kwargs)

    return call


@constructor
def from_quat(quat: Any, *, scalar_first: bool = False) -> Any:
    """From quaternions (…, 4) of any length but zero."""
    return Rotation(quat, scalar_first=scalar_first)


@functools.cache
def projects_matrices() -> bool:
    """Whether this version of SciPy takes the nearest orthogonal matrix; early ones take the formula's quaternion."""
    sheared = np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    nearest = quaternions.of_nearest(sheared)
    return np.allclose(np.abs(_scipy.Rotation.from_matrix(sheared).as_quat()), np.abs(nearest))


@constructor
def from_matrix(matrix: Any, *, assume_valid: bool = False) -> Any:
    """From matrices (…, 3, 3); if one is not orthogonal, the derivative is that of the nearest orthogonal one."""
    matrix = floats(matrix)
    shape = shape_of(matrix)
    if shape[-2:] != (3, 3):
        _scipy.Rotation.from_matrix(np.zeros(shape))
        raise ValueError(f"Expected `matrix` to have shape (3, 3) or (N, 3, 3), got {shape}")
    if assume_valid or not projects_matrices():
        return made(quaternions.of_orthogonal(matrix))
    if not holds(fnp.linalg.det(stop_gradient(matrix)) > 0):
        raise ValueError("Non-positive determinant (left-handed or null coordinate frame) in rotation matrix")
    return made(quaternions.of_nearest(matrix))


@constructor
def from_rotvec(rotvec: Any, degrees: bool = False) -> Any:
    """From vectors (…, 3) along the axis, as long as the angle; smooth at zero."""
    _scipy.Rotation.from_rotvec(like(rotvec))
    rotvec = floats(rotvec)
    return made(quaternions.of_rotvec(rotvec * DEGREE if degrees else rotvec))


@constructor
def from_mrp(mrp: Any) -> Any:
    """From modified Rodrigues parameters (…, 3)."""
    _scipy.Rotation.from_mrp(like(mrp))
    return made(quaternions.of_mrp(floats(mrp)))


@constructor
def from_euler(seq: str, angles: Any, degrees: bool = False) -> Any:
    """From angles about up to three of x, y, z (fixed axes) or X, Y, Z (axes that turn along)."""
    shape = shape_given_by(_scipy.Rotation.from_euler(seq, like(angles)))
    angles = fnp.reshape(floats(angles), (*shape[:-1], len(seq)))
    angles = angles * DEGREE if degrees else angles
    turns = [quaternions.about_axis("xyz".index(c), angles[..., i]) for i, c in enumerate(seq.lower())]
    return made(quaternions.of_angles(turns, extrinsic=seq.islower()))


@constructor
def from_davenport(axes: Any, order: str, angles: Any, degrees: bool = False) -> Any:
    """From angles about up to three axes; neighbouring axes are orthogonal."""
    axes, angles = floats(axes), floats(angles)
    rows = np.eye(3)[0 if axes.ndim == 1 else slice(shape_of(axes)[-2])]
    plain_axes = np.broadcast_to(rows, shape_of(axes)).copy()
    shape = shape_given_by(_scipy.Rotation.from_davenport(plain_axes, order, np.zeros(shape_of(angles))))
    axes = _unit_axes(axes)
    if axes.ndim == 1:
        axes = axes[None]
    count = shape_of(axes)[-2]
    angles = fnp.reshape(angles, (*shape[:-1], count)) if angles.ndim < 2 else angles
    angles = angles * DEGREE if degrees else angles
    turns = [quaternions.of_rotvec(angles[..., i, None] * axes[..., i, :]) for i in range(count)]
    return made(quaternions.of_angles(turns, extrinsic=order in ("e", "extrinsic")))


def _unit_axes(axes: Array) -> Array:
    """Axes of length 1; neighbours must be orthogonal."""
    axes = axes / length(axes)
    if axes.ndim > 1 and not holds(fnp.abs(fnp.sum(axes[..., 1:, :] * axes[..., :-1, :], axis=-1)) < 1e-7):
        raise ValueError("Consecutive axes must be orthogonal.")
    return axes


@constructor
def concatenate(rotations: Any) -> Any:
    """One stack of rotations and stacks."""
    if isinstance(rotations, _scipy.Rotation):
        return made(quaternions_of(rotations))
    rotations = list(rotations)
    if not all([isinstance(x, _scipy.Rotation) for x in rotations]):
        raise TypeError("input must contain Rotation objects only")
    parts = [quaternions_of(x) for x in rotations]
    return made(fnp.concatenate([part[None] if part.ndim == 1 else part for part in parts]))


@constructor
def align_vectors(a: Any, b: Any, weights: Any = None, return_sensitivity: bool = False) -> tuple[Any, ...]:
    """The rotation that minimises Σ wᵢ |aᵢ - R bᵢ|², the root of that sum, and the sensitivity matrix on request.

    It is the eigenvector of the largest eigenvalue of Davenport's matrix, whose derivative needs only a unique
    rotation. The derivative of the root of a zero sum is zero.
    """
    a, b = floats(a), floats(b)
    a, b = [x[None] if x.ndim == 1 else x for x in (a, b)]
    for name, x in (("a", a), ("b", b)):
        if x.ndim != 2 or shape_of(x)[-1] != 3:
            raise ValueError(f"Expected input `{name}` to have shape (3,) or (N, 3), got {shape_of(x)}")
    if shape_of(a) != shape_of(b):
        raise ValueError(
            f"Expected inputs `a` and `b` to have same shapes, got {shape_of(a)} and {shape_of(b)} respectively."
        )
    count = shape_of(a)[0]
    weights = np.ones(count) if weights is None else floats(weights)
    if weights.ndim != 1:
        raise ValueError(f"Expected `weights` to be 1 dimensional, got shape {shape_of(weights)}.")
    if shape_of(weights)[0] != count:
        raise ValueError(
            "Expected `weights` to have number of values equal to number of input vectors, got "
            f"{shape_of(weights)[0]} values and {count} vectors."
        )
    if not holds(weights >= 0):
        raise ValueError("`weights` may not contain negative values")
    known = known_value(weights)
    is_infinite = np.isinf(known) if known is not None and np.ndim(known) == 1 else np.zeros(count, bool)
    infinite = np.flatnonzero(is_infinite)
    if len(infinite) > 1:
        raise ValueError("Only one infinite weight is allowed")
    if count == 1 or len(infinite) == 1:
        if return_sensitivity:
            raise ValueError("Cannot return sensitivity matrix with an infinite weight or one vector pair")
        first = 0 if count == 1 else int(infinite[0])
        return _aligned_first(a, b, weights, first, is_infinite=len(infinite) == 1)
    return _aligned(a, b, weights, return_sensitivity)


def _aligned(a: Array, b: Array, weights: Array, return_sensitivity: bool) -> tuple[Any, ...]:
    """The solution of Wahba's problem."""
    products = fnp.swapaxes(weights[:, None] * a, 0, 1) @ b
    total, quat = quaternions.top_eigenpair(quaternions.symmetric_form(products))
    rest = fnp.sum(weights * fnp.sum(a * a + b * b, axis=-1)) - 2 * total
    is_positive = rest > 0
    distance = fnp.where(is_positive, fnp.sqrt(fnp.where(is_positive, rest, 1.0)), 0.0)
    rotation = made(quaternions.with_positive_largest(quat))
    if not return_sensitivity:
        return rotation, distance
    # total = s₁ + s₂ ± s₃ of the singular values of the products.
    kappa = (total * total - fnp.sum(products * products)) / 2
    zeta = total * kappa - fnp.linalg.det(products)
    spread = kappa * np.eye(3) + products @ fnp.swapaxes(products, 0, 1)
    return rotation, distance, fnp.mean(weights) / zeta * spread


def _aligned_first(a: Array, b: Array, weights: Array, first: int, is_infinite: bool) -> tuple[Any, ...]:
    """One pair exactly, by the least rotation; then the others by a turn about it."""
    norms = length(a[first]), length(b[first])
    if not all([holds(norm > 0) for norm in norms]):
        raise ValueError("Cannot align zero length primary vectors")
    axis, start = a[first] / norms[0], b[first] / norms[1]
    quat = _least_rotation(start, axis)
    count = shape_of(a)[0]
    if count > 1:
        others = [i for i in range(count) if i != first]
        target, rest = a[others], weights[others]
        turned = fnp.einsum("ij,nj->ni", quaternions.to_matrix(quat), b[others])
        sines = dot(quaternions.cross(turned, target), axis)[:, 0]
        cosines = (dot(turned, target) - dot(turned, axis) * dot(target, axis))[:, 0]
        angle = fnp.arctan2(fnp.sum(rest * sines), fnp.sum(rest * cosines))
        quat = composed(quaternions.of_rotvec(angle * axis), quat)
    if is_infinite:
        weights = fnp.where(np.arange(count) == first, 0.0, weights)
    gap = a - fnp.einsum("ij,nj->ni", quaternions.to_matrix(quat), b)
    return made(quat), length(fnp.reshape(fnp.sqrt(weights)[:, None] * gap, (-1,)))[0]


@custom_jvp
def _half_turn(across: Array, square: Array) -> Array:
    """A half turn about a unit vector, one of many if the square of the sum of the two vectors is zero."""
    return fnp.concatenate([across, 0 * square], axis=-1)


@_half_turn.defjvp
def _half_turn_jvp(primals: Any, tangents: Any) -> Any:
    _, square = primals
    slope = fnp.where(square < _OPPOSITE, np.nan, 0.0)
    return _half_turn(*primals), slope * (fnp.sum(tangents[0]) + fnp.sum(tangents[1]) + fnp.zeros(4))


def _least_rotation(start: Array, end: Array) -> Array:
    """(b × a, 1 + a · b) of unit vectors, normalized; for opposite vectors a half turn about an axis across.

    For opposite vectors every such axis would do, and nearby vectors turn about another one: the derivative is NaN.
    """
    both = start + end
    square = dot(both, both)
    is_opposite = square < _OPPOSITE
    quat = fnp.concatenate([quaternions.cross(start, end), square / 2], axis=-1)
    quat = quat / fnp.sqrt(fnp.where(is_opposite, 1.0, dot(quat, quat)))
    smallest = fnp.argmin(fnp.abs(end), axis=-1)
    across = fnp.take(fnp.stack([quaternions.cross(e, end) for e in np.eye(3)]), smallest, axis=0)
    return fnp.where(is_opposite, _half_turn(across / length(across), square), quat)


class Rotation(_scipy.Rotation):  # type: ignore[misc]
    """SciPy's Rotation of traced quaternions."""

    _quat: Any
    _single: Any

    def __new__(cls, quat: Any = None, *args: Any, **kwargs: Any) -> Any:
        """SciPy's object if nothing is traced."""
        if HAS_HOOKS and not holds_traced(quat):
            return _scipy.Rotation(quat, *args, **kwargs)
        return super().__new__(cls)

    def __init__(self, quat: Any, normalize: bool = True, copy: bool = True, scalar_first: bool = False) -> None:
        _scipy.Rotation.from_quat(like(quat, 1))
        quat = floats(quat)
        if scalar_first:
            quat = fnp.roll(quat, -1, axis=-1)
        self._quat = quaternions.normalized(quat) if normalize else quat
        self._single = False

    def __func_holds_traced__(self) -> bool:
        return holds_traced(self._quat)

    def __reduce__(self) -> tuple[Any, ...]:
        return made, (self._quat,)

    def __copy__(self) -> Any:
        return made(self._quat)

    from_quat = staticmethod(from_quat)
    from_matrix = staticmethod(from_matrix)
    from_rotvec = staticmethod(from_rotvec)
    from_mrp = staticmethod(from_mrp)
    from_euler = staticmethod(from_euler)
    from_davenport = staticmethod(from_davenport)
    concatenate = staticmethod(concatenate)
    align_vectors = staticmethod(align_vectors)

    @property
    def single(self) -> bool:
        """Whether this is one rotation, not a stack."""
        return len(shape_of(self._quat)) == 1

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the stack."""
        return shape_of(self._quat)[:-1]

    def _refuse_single(self, what: str) -> None:
        if self.single:
            raise TypeError(f"Single rotation {what}.")

    def __len__(self) -> int:
        self._refuse_single("has no len()")
        return self.shape[0]

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Any]:
        self._refuse_single("is not iterable")
        return iter([made(self._quat[i]) for i in range(self.shape[0])])

    def __getitem__(self, indexer: Any) -> Any:
        self._refuse_single("is not subscriptable")
        is_mask = getattr(indexer, "dtype", None) == np.bool_
        return made(self._quat[indexer] if is_mask else self._quat[indexer, ...])

    def __setitem__(self, indexer: Any, value: Any) -> None:
        self._refuse_single("is not subscriptable")
        if not isinstance(value, _scipy.Rotation):
            raise TypeError("value must be a Rotation object")
        quat = fnp.array(self._quat)
        if holds_traced(value) and not holds_traced(quat):
            quat = quat + 0 * fnp.sum(quaternions_of(value))
        quat[indexer, ...] = quaternions_of(value)
        self._quat = quat

    def __repr__(self) -> str:
        lines = repr(self.as_matrix()).splitlines()
        return "Rotation.from_matrix(" + ("\n" + " " * 21).join(lines) + ")"

    def as_quat(self, canonical: bool = False, *, scalar_first: bool = False) -> Array:
        """Quaternions (…, 4)."""
        quat = quaternions.canonical(self._quat) if canonical else +self._quat
        return fnp.roll(quat, 1, axis=-1) if scalar_first else quat

    def as_matrix(self) -> Array:
        """Matrices (…, 3, 3)."""
        return quaternions.to_matrix(self._quat)

    def as_rotvec(self, degrees: bool = False) -> Array:
        """Vectors (…, 3) along the axis, as long as the angle in [0, π]; smooth at the identity."""
        rotvec = quaternions.to_rotvec(self._quat)
        return rotvec / DEGREE if degrees else rotvec

    def as_mrp(self) -> Array:
        """Modified Rodrigues parameters (…, 3)."""
        return quaternions.to_mrp(self._quat)

    def as_euler(self, seq: str, degrees: bool = False, *, suppress_warnings: bool = False) -> Array:
        """Angles (…, 3); in a gimbal lock the third is zero, and the derivative is that of the first two alone."""
        _scipy.Rotation.from_quat(ANY).as_euler(seq)
        angles = quaternions.to_euler(self._quat, seq, suppress_warnings)
        return angles / DEGREE if degrees else angles

    def as_davenport(self, axes: Any, order: str, degrees: bool = False, *, suppress_warnings: bool = False) -> Array:
        """Angles (…, 3) about three axes."""
        axes = floats(axes)
        plain_axes = np.broadcast_to(np.eye(3)[: shape_of(axes)[-2]], shape_of(axes)).copy()
        plain_like(self._quat).as_davenport(plain_axes, order)
        extrinsic = order in ("e", "extrinsic")
        angles = quaternions.to_davenport(self._quat, _unit_axes(axes), extrinsic, suppress_warnings)
        return angles / DEGREE if degrees else angles

    def apply(self, vectors: Any, inverse: bool = False) -> Array:
        """The vectors (…, 3) turned, broadcast with the rotations."""
        vectors = floats(vectors)
        shape = np.shape(plain_like(self._quat).apply(np.zeros(shape_of(vectors))))
        matrix = self.as_matrix()
        if inverse:
            matrix = fnp.swapaxes(matrix, -1, -2)
        return fnp.reshape((matrix @ vectors[..., None])[..., 0], shape)

    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, _scipy.Rotation):
            return NotImplemented
        return _product(self, other)

    def __rmul__(self, other: Any) -> Any:
        if not isinstance(other, _scipy.Rotation):
            return NotImplemented
        return _product(other, self)

    def __pow__(self, n: Any, modulus: Any = None) -> Any:
        """The n-th power, of any real n."""
        if modulus is not None:
            raise NotImplementedError("modulus not supported")
        n = floats(n)
        if shape_of(n) == (1,):
            n = n[0]
        elif shape_of(n) != ():
            raise ValueError("Array exponent must be a scalar")
        known = None if holds_traced(n) else float(n)
        if known == 0:
            return made(self._quat * 0 + IDENTITY)
        if known == -1:
            return self.inv()
        if known == 1:
            return made(+self._quat)
        power = quaternions.of_rotvec(n * self.as_rotvec())
        # SciPy's powers 1 and -1 keep the sign of the quaternion.
        is_same = fnp.equal(fnp.abs(n), 1) & (power[..., 3:] * self._quat[..., 3:] < 0)
        return made(fnp.where(is_same, -power, power))

    def inv(self) -> Any:
        """The inverse."""
        return made(quaternions.inverse(self._quat))

    def magnitude(self) -> Array:
        """Angles (…) in [0, π]; the derivative at the identity is zero."""
        return quaternions.magnitude(self._quat)

    def approx_equal(self, other: Any, atol: Any = None, degrees: bool = False) -> Array:
        """Whether the angle from one to the other is below `atol`."""
        if atol is None:
            if degrees:
                warnings.warn("atol must be set to use the degrees flag, defaulting to 1e-8 radians.", stacklevel=2)
            atol = 1e-8
        elif degrees:
            atol = atol * DEGREE
        q, p = self._quat, quaternions_of(other)
        plain_like(q).approx_equal(plain_like(p))
        return quaternions.magnitude(composed(p, quaternions.inverse(q))) < atol

    def mean(self, weights: Any = None, axis: Any = None) -> Any:
        """The mean rotation; it differentiates where it is unique."""
        options = {} if axis is None else {"axis": axis}
        plain = None if weights is None else like(weights, 1)
        shape = shape_given_by(plain_like(self._quat).mean(plain, **options))
        quat = self._quat if len(shape_of(self._quat)) > 1 else self._quat[None]
        column = quat[..., None]
        if weights is not None:
            weights = floats(weights)
            if not holds(weights >= 0):
                raise ValueError("`weights` must be non-negative.")
            column = column * weights[..., None, None]
        products = column * quat[..., None, :]
        stack = tuple(range(len(shape_of(products)) - 2))
        axes = stack if axis is None else tuple([i % len(stack) for i in np.atleast_1d(axis).astype(int).tolist()])
        _, mean = quaternions.top_eigenpair(fnp.mean(products, axis=axes))
        return made(fnp.reshape(mean, shape))

    def reduce(self, left: Any = None, right: Any = None, return_indices: bool = False) -> Any:
        """l p r with the l and r of two groups that minimise the angle; the choice has no derivative."""
        if left is None and right is None:
            return (self, None, None) if return_indices else self
        groups = [IDENTITY[None] if group is None else quaternions_of(group) for group in (left, right)]
        lefts, rights = [group[None] if group.ndim == 1 else group for group in groups]
        quat = self._quat if len(shape_of(self._quat)) > 1 else self._quat[None]
        product = composed(lefts[:, None, :], composed(quat[:, None, None, :], rights))
        # (rotations, lefts, rights)
        scores = fnp.reshape(fnp.abs(stop_gradient(product)[..., 3]), (shape_of(quat)[0], -1))
        best = fnp.argmax(scores, axis=1)
        chosen = fnp.reshape(product, (shape_of(quat)[0], -1, 4))
        chosen = fnp.take_along_axis(chosen, fnp.expand_dims(best, (-1, -2)), axis=1)[:, 0]
        rotation = made(fnp.reshape(chosen, shape_of(self._quat)))
        if not return_indices:
            return rotation
        count = shape_of(rights)[0]
        return rotation, None if left is None else best // count, None if right is None else best % count


def _product(p: Any, q: Any) -> Any:
    """The rotation q followed by p."""
    p, q = quaternions_of(p), quaternions_of(q)
    shape = shape_given_by(plain_like(p) * plain_like(q))
    return made(fnp.reshape(quaternions.normalized(composed(p, q)), shape))


def method(name: str) -> Callable[..., Any]:
    """A method of SciPy's objects with traced arguments: that of func's class."""

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(own(self), name)(*args, **kwargs)

    return call


def set_item(self: Any, indexer: Any, value: Any) -> None:
    """Makes SciPy's object, given a traced rotation, one of func's class."""
    changed = own(self)
    changed[indexer] = value
    self.__class__ = Rotation
    self._quat, self._single = changed._quat, False


HOOKS: dict[str, Any] = {
    f"Rotation_{function.__name__}": function
    for function in (
        from_quat, from_matrix, from_rotvec, from_mrp, from_euler, from_davenport, concatenate, align_vectors
    )
}  # fmt: skip
"""The targets of the hooks of SciPy's class."""
HOOKS |= {
    f"Rotation_{name}": method(name)
    for name in ("apply", "as_davenport", "__mul__", "__pow__", "approx_equal", "mean", "reduce")
}
HOOKS["Rotation___setitem__"] = set_item


HOOKS |= {"Rotation_leaf": quaternions_of, "Rotation_of_leaf": made}
tree.register_node(Rotation, lambda rotation: ((quaternions_of(rotation),), None), lambda _, leaves: made(leaves[0]))
