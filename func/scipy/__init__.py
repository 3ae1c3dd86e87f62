"""SciPy's functions on traced and plain arrays, laid out as SciPy is.

You reach a function that func differentiates as `func.scipy.linalg.solve`, or as `scipy.linalg.solve`, by any name,
while a transform runs. Where neither can work, an error names an alternative. On plain arrays both are SciPy's own.
Names that func does not define are SciPy's.

>>> import numpy as np, func, scipy.linalg
>>> a = np.array([[2.0, 0.0], [0.0, 4.0]])
>>> func.grad(lambda b: np.sum(scipy.linalg.solve(a, b)))(np.ones(2))
array([0.5 , 0.25])
"""

from __future__ import annotations

import importlib
from typing import Any
from func.interpreters.host.public_functions import without_engine_frames as _without_engine_frames
from func.interpreters.host.display import public_names as _public_names

_MODULES = (
    "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse", "spatial", "special",
    "stats",
)  # fmt: skip

__all__ = list(_MODULES)


@_without_engine_frames
def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"func.scipy.{name}")
    raise AttributeError(f"module 'func.scipy' has no attribute {name!r}")


def __dir__() -> list[str]:
    return _public_names(globals())
