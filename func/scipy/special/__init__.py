"""scipy.special; `func.special` is its short name."""

from __future__ import annotations

import scipy.special as _scipy

from func import special as _own
from func.scipy.kinds.public_modules import public_module as _public_module

__all__ = list(_own.__all__)

__getattr__, __dir__ = _public_module(
    globals(), _scipy, lambda name: getattr(_own, name) if name in _own.__all__ else None
)
