"""SciPy's ufuncs on traced arrays: a primitive or a function of func.special implements each.

SciPy's module takes several times as long to import as func.special, and traced and compiled code may never need it. So
registrations for its ufuncs wait for the first ufunc without a traced version after the import of that module.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from func.interpreters.core import PRIMITIVES, Array, dtype_of, operand
from func.interpreters.primitives.elementwise.builder import Elementwise
from func.interpreters.primitives.elementwise.pointwise import ElementwiseConstant
from func.interpreters.primitives.structural.shapes import convert
from func.numpy.protocol import DIRECT, LATE, F, implements_ufunc

_REGISTRATIONS: list[Callable[[Any], None]] = []
"""The registrations for the ufuncs of scipy.special, given the module, in order."""
_done = 0
"""The number of them that have run."""


def implements_scipy(*names: str) -> Callable[[F], F]:
    """Register a function as the traced version of ufuncs of scipy.special, by name.

    Names with an underscore are private ufuncs of SciPy, which not every version has; missing ones are skipped.
    """

    def implements(function: F) -> F:
        def register(special: Any) -> None:
            modules = [special._ufuncs if name.startswith("_") else special for name in names]
            ufuncs = [getattr(module, name, None) for module, name in zip(modules, names, strict=True)]
            implements_ufunc(*[ufunc for ufunc in ufuncs if ufunc is not None])(function)

        _REGISTRATIONS.append(register)
        return function

    return implements


def register_late() -> None:
    """Run the registrations for scipy.special, after its import. Two threads may both do it."""
    global _done
    special, count = sys.modules.get("scipy.special"), len(_REGISTRATIONS)
    if count == _done or special is None or getattr(special.__spec__, "_initializing", False):
        return
    for register in _REGISTRATIONS[_done:count]:
        register(special)
    _done = count


LATE.append(register_late)


def in_first_loop(x: Array) -> Array:
    """An operand of a ufunc with doubles as its first loop, in which SciPy also computes half precision."""
    x = operand(x)
    is_half = hasattr(x, "dtype") and dtype_of(x).char == "e"
    return convert(x, dtype=np.dtype(np.float64)) if is_half else x


def _register_primitives(special: Any) -> None:
    """Register every elementwise primitive with a ufunc of scipy.special as the traced version of it."""
    for primitive in PRIMITIVES.values():
        if primitive.scipy is not None and isinstance(primitive, (Elementwise, ElementwiseConstant)):
            ufunc: Any = getattr(special, primitive.scipy)
            if isinstance(ufunc, np.ufunc):
                DIRECT[ufunc] = primitive


def register_primitives() -> None:
    """Register the current elementwise primitives; called after the import of all modules."""
    _REGISTRATIONS.append(_register_primitives)
