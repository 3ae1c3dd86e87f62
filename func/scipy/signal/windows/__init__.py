"""scipy.signal.windows: SciPy's own code, which differentiates in the real parameters of windows."""

from __future__ import annotations

from typing import Any

import scipy.signal.windows as _scipy
from func.interpreters.host.public_functions import without_engine_frames as _without_engine_frames
from func.interpreters.host.display import public_names as _public_names
from func.interpreters.host.public_functions import put_at_boundary as _put_at_boundary

__all__: list[str] = []


@_without_engine_frames
def __getattr__(name: str) -> Any:
    return getattr(_scipy, name)


_put_at_boundary(globals())


def __dir__() -> list[str]:
    return _public_names(globals(), _scipy.__all__)
