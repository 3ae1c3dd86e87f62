"""Rotations with translations, made of traced values, and what SciPy's own ones do with traced values."""

from __future__ import annotations

import functools
import math
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.spatial.transform as _scipy

import func.numpy as fnp
from func import tree
from func.interpreters.core import Array, shape_of
from func.scipy import doors
from func.scipy.doors import holds_traced
from func.scipy.spatial.transform import quaternions, rotations
from func.scipy.spatial.transform.quaternions import composed, dot, even, floats, holds
from func.scipy.spatial.transform.rotations import like, quaternions_of

_Base: Any = getattr(_scipy, "RigidTransform", object)
HAS_DOORS = isinstance(vars(_Base).get("__init__"), types.FunctionType)
"""Whether SciPy has the class, and wrote it in Python."""
VERSINE = [(-1) ** k / math.factorial(2 * k + 2) for k in range(10)]
"""(1 - cos θ) / θ², by powers of θ²."""
SINE_GAP = [(-1) ** k / math.factorial(2 * k + 3) for k in range(10)]
"""(θ - sin θ) / θ³."""
BERNOULLI = (1 / 6, 1 / 30, 1 / 42, 1 / 30, 5 / 66, 691 / 2730, 7 / 6, 3617 / 510, 43867 / 798, 174611 / 330)
"""|B₂|, |B₄|, …"""
COTANGENT = [b / math.factorial(2 * k + 2) for k, b in enumerate(BERNOULLI)]
"""(1 - θ/2 cot(θ/2)) / θ²."""


def skew(v: Array) -> Array:
    """The matrices (…, 3, 3) of the maps x → v × x."""
    x, y, z = [v[..., i] for i in range(3)]
    zero = 0.0 * x
    rows = ([zero, -z, y], [z, zero, -x], [-y, x, zero])
    return fnp.stack([fnp.stack(row, axis=-1) for row in rows], axis=-2)


def times(matrix: Array, vector: Array) -> Array:
    """Matrices (…, m, n) times vectors (…, n)."""
    return (matrix @ vector[..., None])[..., 0]


def left_jacobian(rotvec: Array) -> Array:
    """I + S (1 - cos θ)/θ² + S² (θ - sin θ)/θ³, the translation of the exponential map over its coordinates."""
    square, s = dot(rotvec, rotvec)[..., None], skew(rotvec)
    first = even(square, VERSINE, lambda angle: (1 - fnp.cos(angle)) / angle**2)
    second = even(square, SINE_GAP, lambda angle: (angle - fnp.sin(angle)) / angle**3)
    return np.eye(3) + first * s + second * (s @ s)


def inverse_left_jacobian(rotvec: Array) -> Array:
    """I - S/2 + S² (1 - θ/2 cot(θ/2))/θ²."""
    square, s = dot(rotvec, rotvec)[..., None], skew(rotvec)
    factor = even(square, COTANGENT, lambda angle: (1 - 0.5 * angle / fnp.tan(0.5 * angle)) / angle**2)
    return np.eye(3) - 0.5 * s + factor * (s @ s)


def assembled(rotation: Array, translation: Array) -> Array:
    """Matrices (…, 4, 4) of rotations (…, 3, 3) and translations (…, 3)."""
    shape = np.broadcast_shapes(shape_of(rotation)[:-2], shape_of(translation)[:-1])
    rotation = fnp.broadcast_to(rotation, (*shape, 3, 3))
    translation = fnp.broadcast_to(translation, (*shape, 3))[..., None]
    bottom = np.broadcast_to(np.array([[0.0, 0.0, 0.0, 1.0]]), (*shape, 1, 4))
    return fnp.concatenate([fnp.concatenate([rotation, translation], axis=-1), bottom], axis=-2)


def made(matrix: Any) -> Any:
    """A transform of these matrices, which stay as they are: SciPy's where they are plain and SciPy's have doors."""
    if HAS_DOORS and not holds_traced(matrix) and isinstance(matrix, np.ndarray) and matrix.dtype != object:
        return _Base(matrix, normalize=False)
    return _lifted(matrix)


def _lifted(matrix: Any) -> RigidTransform:
    transform: RigidTransform = _Base.__new__(RigidTransform)
    transform._matrix, transform._single = matrix, False
    return transform


def own(transform: Any) -> RigidTransform:
    """A transform as one of func's class."""
    return transform if isinstance(transform, RigidTransform) else _lifted(transform.as_matrix())


def matrices_of(transform: Any) -> Array:
    """The matrices of any transform, of a single one (4, 4)."""
    matrix: Array = transform._matrix if isinstance(transform, RigidTransform) else transform.as_matrix()
    return matrix


def constructor(function: Callable[..., Any]) -> Callable[..., Any]:
    """A static method, which leaves calls without traced values to SciPy's where SciPy's objects have doors."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if HAS_DOORS and not holds_traced(args) and not holds_traced(kwargs):
            return doors.original(getattr(_Base, function.__name__.removeprefix("transform_")))(*args, **kwargs)
        return function(*args, **kwargs)

    return call


def checked(name: str, *args: Any) -> None:
    """SciPy's own constructor refuses plain arrays of the wrong shape."""
    if _Base is not object:
        getattr(_Base, name)(*args)


@constructor
def transform_from_matrix(matrix: Any) -> Any:
    """From matrices (…, 4, 4), whose rotations become orthogonal."""
    return RigidTransform(matrix)


@constructor
def transform_from_rotation(rotation: Any) -> Any:
    """From rotations alone."""
    if not isinstance(rotation, _scipy.Rotation):
        raise TypeError(f"Expected `rotation` to be a `Rotation` instance, got {type(rotation)}.")
    return made(assembled(quaternions.to_matrix(quaternions_of(rotation)), np.zeros(3)))


@constructor
def transform_from_translation(translation: Any) -> Any:
    """From translations (…, 3) alone."""
    checked("from_translation", like(translation))
    return made(assembled(np.eye(3), floats(translation)))


@constructor
def transform_from_components(translation: Any, rotation: Any) -> Any:
    """Rotations followed by translations (…, 3)."""
    return transform_from_translation(translation) * transform_from_rotation(rotation)


@constructor
def transform_from_exp_coords(exp_coords: Any) -> Any:
    """From exponential coordinates (…, 6), a rotation vector and what belongs to the translation; smooth at zero."""
    checked("from_exp_coords", like(exp_coords))
    exp_coords = floats(exp_coords)
    rotvec = exp_coords[..., :3]
    matrix = quaternions.to_matrix(quaternions.of_rotvec(rotvec))
    return made(assembled(matrix, times(left_jacobian(rotvec), exp_coords[..., 3:])))


@constructor
def transform_from_dual_quat(dual_quat: Any, *, scalar_first: bool = False) -> Any:
    """From dual quaternions (…, 8), which become unit ones."""
    checked("from_dual_quat", like(dual_quat))
    dual_quat = floats(dual_quat)
    real, dual = dual_quat[..., :4], dual_quat[..., 4:]
    if scalar_first:
        real, dual = fnp.roll(real, -1, axis=-1), fnp.roll(dual, -1, axis=-1)
    square = dot(real, real)
    is_zero = fnp.equal(square, 0)
    real = fnp.where(is_zero, rotations.IDENTITY, real)
    norm = fnp.sqrt(fnp.where(is_zero, 1.0, square))
    real, dual = real / norm, dual / norm
    dual = dual - dot(real, dual) * real
    translation = 2.0 * composed(dual, quaternions.inverse(real))[..., :3]
    return made(assembled(quaternions.to_matrix(real), translation))


@constructor
def transform_concatenate(transforms: Any) -> Any:
    """One stack of transforms and stacks."""
    if isinstance(transforms, (_Base, RigidTransform)) and _Base is not object:
        return made(matrices_of(transforms))
    transforms = list(transforms)
    if not all([hasattr(x, "as_exp_coords") for x in transforms]):
        raise TypeError("input must contain RigidTransform objects only")
    parts = [matrices_of(x) for x in transforms]
    return made(fnp.concatenate([part[None] if part.ndim == 2 else part for part in parts]))


class RigidTransform(_Base):  # type: ignore[misc]
    """SciPy's RigidTransform of traced matrices."""

    _matrix: Any
    _single: Any

    def __new__(cls, matrix: Any = None, *args: Any, **kwargs: Any) -> Any:
        """SciPy's object where nothing is traced."""
        if HAS_DOORS and not holds_traced(matrix):
            return _Base(matrix, *args, **kwargs)
        return super().__new__(cls)

    def __init__(self, matrix: Any, normalize: bool = True, copy: bool = True) -> None:
        matrix = floats(matrix)
        shape = shape_of(matrix)
        if shape[-2:] != (4, 4):
            raise ValueError(f"Expected `matrix` to have shape (..., 4, 4), got {shape}.")
        if not holds(fnp.equal(matrix[..., 3, :], rotations.IDENTITY)):
            raise ValueError("Expected last row of transformation matrix to be exactly [0, 0, 0, 1]")
        if normalize:
            matrix = _with_rotation(matrix, rotations.from_matrix(matrix[..., :3, :3]).as_matrix())
        self._matrix, self._single = matrix, False

    def __func_holds_traced__(self) -> bool:
        return holds_traced(self._matrix)

    def __reduce__(self) -> tuple[Any, ...]:
        return made, (self._matrix,)

    from_matrix = staticmethod(transform_from_matrix)
    from_rotation = staticmethod(transform_from_rotation)
    from_translation = staticmethod(transform_from_translation)
    from_components = staticmethod(transform_from_components)
    from_exp_coords = staticmethod(transform_from_exp_coords)
    from_dual_quat = staticmethod(transform_from_dual_quat)
    concatenate = staticmethod(transform_concatenate)

    @property
    def single(self) -> bool:
        """Whether this is one transform and no stack."""
        return len(shape_of(self._matrix)) == 2

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the stack."""
        return shape_of(self._matrix)[:-2]

    @property
    def rotation(self) -> Any:
        """The rotations."""
        return rotations.from_matrix(self._matrix[..., :3, :3])

    @property
    def translation(self) -> Array:
        """The translations (…, 3)."""
        out: Array = +self._matrix[..., :3, 3]
        return out

    def _refuse_single(self, what: str) -> None:
        if self.single:
            raise TypeError(f"Single transform {what}")

    def __len__(self) -> int:
        self._refuse_single("has no len")
        return self.shape[0]

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Any]:
        self._refuse_single("is not iterable.")
        return iter([made(self._matrix[i]) for i in range(self.shape[0])])

    def __getitem__(self, indexer: Any) -> Any:
        self._refuse_single("is not subscriptable.")
        is_mask = getattr(indexer, "dtype", None) == np.bool_
        return made(self._matrix[indexer] if is_mask else self._matrix[indexer, ...])

    def __setitem__(self, indexer: Any, value: Any) -> None:
        self._refuse_single("is not subscriptable.")
        if not isinstance(value, _Base):
            raise TypeError("value must be a RigidTransform object")
        matrix = fnp.array(self._matrix)
        if holds_traced(value) and not holds_traced(matrix):
            matrix = matrix + 0 * fnp.sum(matrices_of(value))
        matrix[indexer, ...] = matrices_of(value)
        self._matrix = matrix

    def __repr__(self) -> str:
        lines = repr(self.as_matrix()).splitlines()
        return "RigidTransform.from_matrix(" + ("\n" + " " * 27).join(lines) + ")"

    def as_matrix(self) -> Array:
        """Matrices (…, 4, 4)."""
        out: Array = +self._matrix
        return out

    def as_components(self) -> tuple[Array, Any]:
        """Translations and rotations."""
        return self.translation, self.rotation

    def as_exp_coords(self) -> Array:
        """Exponential coordinates (…, 6); smooth at the identity."""
        rotvec = quaternions.to_rotvec(self._quaternions())
        translation = times(inverse_left_jacobian(rotvec), self._matrix[..., :3, 3])
        return fnp.concatenate([rotvec, translation], axis=-1)

    def _quaternions(self) -> Array:
        return quaternions.of_orthogonal(self._matrix[..., :3, :3])

    def as_dual_quat(self, *, scalar_first: bool = False) -> Array:
        """Dual quaternions (…, 8)."""
        real, translation = self._quaternions(), self._matrix[..., :3, 3]
        pure = fnp.concatenate([translation, 0 * translation[..., :1]], axis=-1)
        dual = 0.5 * composed(pure, real)
        if scalar_first:
            real, dual = fnp.roll(real, 1, axis=-1), fnp.roll(dual, 1, axis=-1)
        return fnp.concatenate([real, dual], axis=-1)

    def apply(self, vector: Any, inverse: bool = False) -> Array:
        """The vectors (…, 3) turned and moved, broadcast with the transforms."""
        vector = floats(vector)
        if shape_of(vector)[-1:] != (3,):
            raise ValueError(f"Expected vector to have shape (..., 3), got {shape_of(vector)}.")
        rotation, translation = self._matrix[..., :3, :3], self._matrix[..., :3, 3]
        if inverse:
            return times(fnp.swapaxes(rotation, -1, -2), vector - translation)
        return times(rotation, vector) + translation

    def __mul__(self, other: Any) -> Any:
        return _product(self, other) if hasattr(other, "as_exp_coords") else NotImplemented

    def __rmul__(self, other: Any) -> Any:
        return _product(other, self) if hasattr(other, "as_exp_coords") else NotImplemented

    def __pow__(self, n: Any) -> Any:
        """The n-th power, of any real n."""
        n = floats(n)
        if shape_of(n) == (1,):
            n = n[0]
        elif shape_of(n) != ():
            raise ValueError("Array exponent must be a scalar")
        known = None if holds_traced(n) else float(n)
        if known == 0:
            return made(0 * self._matrix + np.eye(4))
        if known == -1:
            return self.inv()
        if known == 1:
            return made(+self._matrix)
        return transform_from_exp_coords(self.as_exp_coords() * n)

    def inv(self) -> Any:
        """The inverse."""
        turned = fnp.swapaxes(self._matrix[..., :3, :3], -1, -2)
        return made(assembled(turned, -times(turned, self._matrix[..., :3, 3])))

    def mean(self, weights: Any = None, axis: Any = None) -> Any:
        """The mean rotation with the mean translation; it differentiates where the rotation is unique."""
        quat = self._quaternions()
        rotation = rotations.own(rotations.made(quat)).mean(weights, axis)
        translation = self._matrix[..., :3, 3]
        if self.single:
            translation = translation[None]
        axes = axis if axis is not None else tuple(range(len(shape_of(translation)) - 1))
        if weights is None:
            mean = fnp.mean(translation, axis=axes)
        else:
            weights = fnp.broadcast_to(floats(weights), shape_of(translation)[:-1])[..., None]
            mean = fnp.sum(translation * weights, axis=axes) / fnp.sum(weights, axis=axes)
        return made(assembled(rotation.as_matrix(), mean))


def _with_rotation(matrix: Array, rotation: Array) -> Array:
    """Matrices (…, 4, 4) with other rotations (…, 3, 3)."""
    upper = fnp.concatenate([rotation, matrix[..., :3, 3:]], axis=-1)
    return fnp.concatenate([upper, matrix[..., 3:, :]], axis=-2)


def _product(first: Any, second: Any) -> Any:
    """The second transform, followed by the first."""
    p, q = matrices_of(first), matrices_of(second)
    shapes = shape_of(p)[:-2], shape_of(q)[:-2]
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(
            f"Cannot broadcast {shapes[0]} transforms in first to {shapes[1]} transforms in second object."
        ) from None
    product = p @ q
    return made(_with_rotation(product, rotations.from_matrix(product[..., :3, :3]).as_matrix()))


def method(name: str) -> Callable[..., Any]:
    """A method of SciPy's objects with traced arguments: that of func's class."""

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(own(self), name)(*args, **kwargs)

    return call


def set_item(self: Any, indexer: Any, value: Any) -> None:
    """SciPy's object that takes a traced transform becomes one of func's class."""
    changed = own(self)
    changed[indexer] = value
    self.__class__ = RigidTransform
    self._matrix, self._single = changed._matrix, False


DOORS: dict[str, Any] = {
    f"RigidTransform_{function.__name__.removeprefix('transform_')}": function
    for function in (
        transform_from_matrix, transform_from_rotation, transform_from_translation, transform_from_components,
        transform_from_exp_coords, transform_from_dual_quat, transform_concatenate,
    )
}  # fmt: skip
"""What the doors of SciPy's class lead to."""
DOORS |= {f"RigidTransform_{name}": method(name) for name in ("apply", "__mul__", "__pow__", "mean")}
DOORS["RigidTransform___setitem__"] = set_item


DOORS |= {"RigidTransform_leaf": matrices_of, "RigidTransform_of_leaf": made}
tree.register_node(RigidTransform, lambda one: ((matrices_of(one),), None), lambda _, leaves: made(leaves[0]))
