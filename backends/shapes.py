"""The shape to which shapes broadcast, without NumPy's detour for those that nearly all are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

Shape: TypeAlias = tuple[int, ...]


def broadcast_shape(shapes: Sequence[Shape]) -> Shape:
    """What NumPy's rules make of shapes; most are equal or empty.

    Raises: ValueError where they do not fit together.

    >>> broadcast_shape([(2, 3), (), (2, 3)]), broadcast_shape([(3, 1), (4,)])
    ((2, 3), (3, 4))
    """
    kinds = {shape for shape in shapes if shape}
    if len(kinds) > 1:
        return np.broadcast_shapes(*shapes)
    return kinds.pop() if kinds else ()
