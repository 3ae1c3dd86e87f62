"""In-place writes: which history a traced array has after a write to it, or to an array that shares its memory.

A write that is recorded gives the array a new history. A write that is not recorded, under `no_grad` or through a
detached alias, changes its numbers and nothing else.
"""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

import numpy as np

from func.interpreters.core import EVALUATE, Array, Interpreter, Primitive, Tracer, unboxed
from func.interpreters.core.errors import LeafError
from func.interpreters.core.modes import MODE, is_suspended
from func.interpreters.core.source import user_line
from func.interpreters.grad import Grad
from func.interpreters.imperative.interpreter import Imperative, TensorState, state_of
from func.interpreters.imperative.node_state import hooks_of, is_leaf_node
from func.interpreters.jvp import Jvp
from func.interpreters.primitives.structural.identity import renumbered
from func.interpreters.stage import Stage


class History(NamedTuple):
    """What a traced value keeps at each level when only its numbers change."""

    owner: Interpreter
    attached: Any
    inner: History | None
    variable: Tracer | None = None
    """In a Program that is being traced, the value itself."""


def history_of(value: Array) -> History | None:
    """The history of a value; None for a plain array."""
    if type(value) is not Tracer:
        return None
    owner = value._interpreter
    variable = Tracer(owner, value._value, value._attached) if isinstance(owner, Stage) else None
    return History(owner, value._attached, history_of(value._value), variable)


def with_history(history: History | None, new: Array, detached: bool) -> Array:
    """A new value with an old history at the levels that do not record the write (`detached`: at all levels)."""
    if history is None:
        return new
    owner, inner = history.owner, history.inner
    level = new._interpreter.level if type(new) is Tracer else 0
    if level > owner.level:
        return new
    if history.variable is not None and (detached or is_suspended(owner.level)):
        return renumbered(history.variable, new)
    if level == owner.level and type(new) is Tracer:
        attached = new._attached
        if isinstance(owner, Jvp):
            attached = history.attached if detached else with_history(history_of(history.attached), attached, False)
        return Tracer(owner, with_history(inner, new._value, detached), attached)
    is_kept = isinstance(owner, Grad) and (detached or is_suspended(owner.level))
    if is_kept or (detached and isinstance(owner, Jvp)):
        return Tracer(owner, with_history(inner, unboxed(new), detached), history.attached)
    return with_history(inner, new, detached) if isinstance(owner, (Grad, Jvp)) else new


def outlives(history: History | None, base_level: float, new: Array) -> bool:
    """Whether a view of a tensor keeps its history because its base, of this level before the write, never had one."""
    if history is None or type(history.owner) is not Imperative or base_level >= history.owner.level:
        return False
    return type(new) is not Tracer or new._interpreter.level < history.owner.level


def refuse_leaf(box: Tracer) -> None:
    """Raise for a leaf that requires a gradient, if writes to it are recorded."""
    owner = box._interpreter
    if type(owner) is Imperative and is_leaf_node(box._attached) and not is_suspended(owner.level):
        raise LeafError(
            "a leaf tensor that requires a gradient was written in place while operations are recorded. Write to it "
            "under func.no_grad(), to x.data, or to a copy (x.copy())."
        )


def assign(box: Tracer, new: Array) -> None:
    """Rebind a box to a new value. A tensor that retains its gradient retains that of its new value."""
    if type(new) is not Tracer:
        new = Tracer(EVALUATE, new, None)
    if new._interpreter.level > box._interpreter.level:
        box._written = user_line(2)
    node = box._attached if type(box._interpreter) is Imperative else None
    box._interpreter, box._value, box._attached = new._interpreter, new._value, new._attached
    state: TensorState | None = getattr(box, "_state", None)
    if state is not None and state.retains and box._attached is not node:
        if node is not None:
            hooks_of(node).retain = None
        retain(box, state)


def retain(box: Tracer, state: TensorState) -> None:
    """Let the node of a tensor fill its `grad`."""
    state.retains = True
    if type(box._interpreter) is Imperative:
        hooks_of(box._attached).retain = weakref.ref(state)


def update(primitive: Primitive | None, box: Tracer, other: Any) -> bool:
    """`x += v` and the like on a tensor that is not recorded and shares no memory: the fast case of a write."""
    if primitive is None or MODE.get() is None or not is_suspended(box._interpreter.level):
        return False
    if getattr(box, "_views", None) or getattr(box, "_view_of", None) is not None:
        return False
    value, other = box._value, unboxed(other)
    if type(value) is not np.ndarray or type(other) is Tracer:
        return False
    new = primitive(value, other)
    if type(new) is not np.ndarray or new.dtype != value.dtype or new.shape != value.shape:
        return False
    box._value = new
    state_of(box).version += 1
    return True
