"""The identity that no simplification sees through: what is computed again behind it stays computed again."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from func.interpreters.core import Array, Tracer
from func.interpreters.primitives.kinds import Linear, linear

_tags = itertools.count()

barrier: Linear = linear(
    "barrier",
    lambda xp, x, *, tag: x,
    aval=lambda x, *, tag: x,
    transpose=lambda ct, x, *, tag: (ct,),
    batch=lambda x, *, tag: barrier(x, tag=tag),
)
"""The identity; barriers of different tags are different equations."""


def shielded(values: Sequence[Array]) -> list[Array]:
    """Staged values behind a barrier of their own; all others as they are."""
    tag = next(_tags)
    return [barrier(value, tag=tag) if is_staged(value) else value for value in values]


def is_staged(value: Any) -> bool:
    """Whether a value is abstract: at its bottom is a variable of a Program that is being staged."""
    while type(value) is Tracer:
        if value.value is None:
            return True
        value = value.value
    return False
