"""scipy.special; `func.special` is its short name."""

from __future__ import annotations

from typing import Any

import scipy.special as _scipy

from func import special as _own
from func.interpreters.host.public_functions import without_engine_frames as _without_engine_frames
from func.interpreters.host.display import public_names as _public_names
from func.interpreters.host.public_functions import put_at_boundary as _put_at_boundary

__all__ = list(_own.__all__)


@_without_engine_frames
def __getattr__(name: str) -> Any:
    return getattr(_own if name in __all__ else _scipy, name)


_put_at_boundary(globals())


def __dir__() -> list[str]:
    return _public_names(globals(), _scipy.__all__)
