"""scipy.spatial.transform on traced and plain arrays: rotations and curves of them.

func's classes are subclasses of SciPy's. Objects made of plain values are SciPy's, and both meet in products, stacks
and interpolation. Rotations contain unit quaternions, and every representation is a smooth function of them, also at
the identity. Since SciPy 1.17 the classes of SciPy itself take traced values. With earlier versions, whose classes are
compiled, write `func.scipy.spatial.transform.Rotation`.

>>> import numpy as np, func
>>> from func.scipy.spatial.transform import Rotation
>>> func.jacobian(lambda v: Rotation.from_rotvec(v).apply(np.array([1.0, 0.0, 0.0])))(np.zeros(3))
array([[ 0.,  0.,  0.],
       [ 0.,  0.,  1.],
       [ 0., -1.,  0.]])
"""

from __future__ import annotations

from typing import Any

import scipy.spatial.transform as _scipy

from func.scipy.kinds.public_modules import public_module as _public_module
from func.scipy.spatial.transform import curves, rotations
from func.scipy.spatial.transform.curves import RotationSpline, Slerp
from func.scipy.spatial.transform.rotations import Rotation

__all__ = ["Rotation", "RotationSpline", "Slerp"]
_OF_HOOKS: dict[str, Any] = rotations.HOOKS | curves.HOOKS

__getattr__, __dir__ = _public_module(globals(), _scipy, _OF_HOOKS.get)
