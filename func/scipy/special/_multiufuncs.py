"""SciPy's functions of several ufuncs (Legendre functions and spherical harmonics), called with traced values."""

from __future__ import annotations

from typing import Any

import scipy.special as _scipy

from func import special as _own
from func.host import scipy_hooks
from func.host.scipy_hooks import holds_traced


def MultiUFunc___call__(function: Any, *args: Any, **kwargs: Any) -> Any:
    """The call of one of them: func's version of its name, which only takes traced arguments."""
    if not holds_traced(args) and not holds_traced(kwargs):
        return scipy_hooks.original(type(function).__call__)(function, *args, **kwargs)
    name = next(name for name in _own.spherical.__all__ if getattr(_scipy, name, None) is function)
    return getattr(_own, name)(*args, **kwargs)
