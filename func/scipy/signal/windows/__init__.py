"""scipy.signal.windows: SciPy's own code, which differentiates in the real parameters of windows."""

from __future__ import annotations

import scipy.signal.windows as _scipy

from func.scipy.kinds.public_modules import public_module as _public_module

__all__: list[str] = []

__getattr__, __dir__ = _public_module(globals(), _scipy)
