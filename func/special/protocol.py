"""SciPy's ufuncs on traced arrays: the primitive, or the function of func.special, that implements each of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special

from func.interpreters.core import PRIMITIVES
from func.interpreters.primitives.elementwise.builder import Elementwise, ElementwiseConstant
from func.numpy.protocol import DIRECT, F, implements_ufunc


def implements_scipy(*names: str) -> Callable[[F], F]:
    """Register a function as the traced version of ufuncs of scipy.special, by name.

    Names with an underscore are the ufuncs behind SciPy's Python functions, which not every version of SciPy has.
    """
    places = [scipy.special._ufuncs if name.startswith("_") else scipy.special for name in names]
    ufuncs = [getattr(place, name, None) for place, name in zip(places, names, strict=True)]
    return implements_ufunc(*[ufunc for ufunc in ufuncs if ufunc is not None])


def register_primitives() -> None:
    """Register every elementwise primitive that is a ufunc of scipy.special as the traced version of it."""
    for primitive in PRIMITIVES.values():
        if primitive.scipy is not None and isinstance(primitive, (Elementwise, ElementwiseConstant)):
            ufunc: Any = getattr(scipy.special, primitive.scipy)
            if isinstance(ufunc, np.ufunc):
                DIRECT[ufunc] = primitive
