"""Identities with a meaning for transforms: a label for checkpoint policies, no derivative, a barrier for passes.

No simplification looks through a barrier: the recomputation of a checkpoint behind it stays one.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from func.interpreters import core
from func.interpreters.core import EVALUATE, Array, Aval, Linear, NonDifferentiable, Primitive, Shaped, Tracer
from func.interpreters.core.parameters import TAG, TEXT


def _identity_transpose(ct: Array, x: Shaped, **params: Any) -> tuple[Array]:
    return (ct,)


named: Linear = core.linear(
    "named",
    lambda xp, x, *, label: x,
    aval=lambda x, *, label: x,
    parameters={"label": TEXT},
    transpose=_identity_transpose,
    batch=lambda x, *, label: named(x, label=label),
    cost=0,
    view=True,
    mask="elementwise",
    covers=True,
)
"""The identity, carrying the label that checkpoint policies look for."""

stop_gradient: NonDifferentiable = core.nondifferentiable(
    "stop_gradient",
    lambda xp, x: x,
    aval=lambda x: x,
    batch=lambda size, batched, args, params: stop_gradient(args[0]),
    cost=0,
    view=True,
    mask="elementwise",
)
"""The identity without a derivative."""


def _renumbered_jvp(primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[Array, Any]:
    return renumbered(*primals), tangents[1]


renumbered: Primitive = core.general(
    "renumbered",
    lambda xp, numbers, x: xp.asarray(numbers),
    aval=lambda numbers, x: Aval(x.shape, x.dtype),
    batch=lambda size, batched, args, params: renumbered(*core.materialize(size, batched, args)),
    jvp=_renumbered_jvp,
    cost=0,
    layout=lambda numbers, x: numbers,
    view=True,
)
"""The first argument, with the derivative of the second: an array that was written without recording it."""


_tags = itertools.count()

barrier: Linear = core.linear(
    "barrier",
    lambda xp, x, *, tag: x,
    aval=lambda x, *, tag: x,
    parameters={"tag": TAG},
    transpose=lambda ct, x, *, tag: (ct,),
    batch=lambda x, *, tag: barrier(x, tag=tag),
    cost=0,
    view=True,
    mask="elementwise",
    covers=True,
)
"""The identity; barriers of different tags are different equations. Behind one of a negative tag native code computes
nothing before what stands before it."""


def late_tag() -> int:
    """The tag of barriers behind which native code computes late."""
    return -1 - next(_tags)


def shielded(values: Sequence[Array]) -> list[Array]:
    """Traced values of a program behind one barrier; other values unchanged."""
    tag = next(_tags)
    return [barrier(value, tag=tag) if is_abstract_value(value) else value for value in values]


seed: Linear = core.linear(
    "seed",
    lambda xp, x: x,
    aval=lambda x: x,
    transpose=_identity_transpose,
    batch=lambda x: seed(x),
    cost=0,
    view=True,
    mask="elementwise",
    covers=True,
    tells_passes=True,
)
"""The identity; the zeros of its operand, a constant, are structural, and passes need not multiply by them."""


def as_seed(value: Array, like: Array) -> Array:
    """A constant, or a batch of one, whose zeros are structural in the program in which another value is traced."""
    if type(value) is Tracer:
        inner = value._value
        if inner is None or value._interpreter is EVALUATE:
            return value
        marked = as_seed(inner, like)
        return value if marked is inner else Tracer(value._interpreter, marked, value._attached)
    while type(like) is Tracer:
        if like._value is None:
            out: Array = like._interpreter.apply(seed, (value,), {})
            return out
        like = like._value
    return value


def as_seeds(values: Sequence[Any], likes: Sequence[Any]) -> list[Any]:
    """The caller's cotangents or tangents of some values: `as_seed` for arrays."""
    like = next((value for value in likes if is_abstract_value(value)), None)
    if like is None:
        return list(values)
    return [as_seed(value, like) if hasattr(value, "shape") and value.shape else value for value in values]


def is_abstract_value(value: Any) -> bool:
    """Whether a value is a variable of a Program that is being traced, under any number of interpreters."""
    while type(value) is Tracer:
        if value._value is None:
            return True
        value = value._value
    return False
