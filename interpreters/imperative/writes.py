"""In-place writes: the history of a traced array after a write to it, or to an array that shares its memory.

A write that is recorded gives the array a new history. A write that is not recorded, under `no_grad` or through a
detached alias, changes its numbers and nothing else.
"""

from __future__ import annotations

import warnings
import weakref
from typing import Any, NamedTuple

from numpy import ndarray

from func.interpreters.core import EVALUATE, Array, Interpreter, Primitive, Tracer, unboxed
from func.interpreters.core.errors import FrozenValueWarning, LeafError
from func.interpreters.core.modes import MODE, is_suspended
from func.interpreters.grad import Grad
from func.interpreters.host.source import user_line
from func.interpreters.imperative.interpreter import Imperative, TensorState, state_of
from func.interpreters.imperative.node_state import hooks_of, is_leaf_node
from func.interpreters.jvp import Jvp
from func.interpreters.primitives.structural.identity import renumbered
from func.interpreters.stage import Stage


class History(NamedTuple):
    """The state of a traced value at each level while only its numbers change."""

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
        return renumbered(new, history.variable)
    if level == owner.level and type(new) is Tracer:
        attached = new._attached
        if isinstance(owner, Jvp):
            attached = history.attached if detached else with_history(history_of(history.attached), attached, False)
        elif owner.carries_series and detached:
            attached = history.attached
        return Tracer(owner, with_history(inner, new._value, detached), attached)
    is_kept = isinstance(owner, Grad) and (detached or is_suspended(owner.level))
    if is_kept or (detached and (isinstance(owner, Jvp) or owner.carries_series)):
        return Tracer(owner, with_history(inner, unboxed(new), detached), history.attached)
    return with_history(inner, new, detached) if owner.differentiates else new


def outlives(history: History | None, base_level: float, new: Array) -> bool:
    """Whether a view of a tensor keeps its history because its base, of this level before the write, never had one."""
    if history is None or type(history.owner) is not Imperative or base_level >= history.owner.level:
        return False
    return type(new) is not Tracer or new._interpreter.level < history.owner.level


def check_leaf_write(box: Tracer) -> None:
    """Raise for a leaf that requires a gradient, if writes to it are recorded."""
    owner = box._interpreter
    if type(owner) is Imperative and is_leaf_node(box._attached) and not is_suspended(owner.level):
        raise LeafError(
            "a leaf tensor that requires a gradient was written in place while operations are recorded. Write to it "
            "under func.no_grad(), to x.data, or to a copy (x.copy())."
        )


def assign(box: Tracer, new: Array) -> None:
    """Rebind a tracer to a new value."""
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


def count_write(state: TensorState) -> None:
    """Count a write to a tensor. It warns if something that should see the write does not."""
    state.version += 1
    if state.exported is not None:
        if state.exported() is not None:
            _warn(
                "a tensor was written whose x.numpy() is still in use\n"
                "The array keeps the old numbers, as a graph may need them: write x.numpy().copy() to keep them on "
                "purpose, or call x.numpy() again to see the new ones."
            )
        state.exported = None
    if state.frozen_in is not None:
        warn_of_constant(state, "was written")


def warn_of_constant(state: TensorState, what: str) -> None:
    """Warn, once, that a traced function does not see what happened to a tensor."""
    transform, state.frozen_in = state.frozen_in, None
    _warn(
        f"a tensor {what} that a function under func.{transform} took for a constant when it was traced\n"
        "The function computes with the old numbers, and no gradient flows from it to the tensor. Pass the tensor as "
        "an argument, or let it require a gradient before the first call."
    )


def _warn(message: str) -> None:
    line = user_line(2)
    if line is None:
        warnings.warn(message, FrozenValueWarning, stacklevel=4)
    else:
        warnings.warn_explicit(message, FrozenValueWarning, line.file, line.number)


def retain(box: Tracer, state: TensorState) -> None:
    """Let the node of a tensor fill its `grad`."""
    state.retains = True
    if type(box._interpreter) is Imperative:
        hooks_of(box._attached).retain = weakref.ref(state)


def update(primitive: Primitive | None, box: Tracer, other: Any) -> bool:
    """`x += v` and the like on a tensor that is not recorded and shares no memory: the fast case of a write."""
    if primitive is None or MODE.get() is None or not is_suspended(box._interpreter.level):
        return False
    if getattr(box, "_views", None) or getattr(box, "_view_of", None):
        return False
    value, other = box._value, unboxed(other)
    if type(value) is not ndarray or type(other) is Tracer:
        return False
    new = primitive(value, other)
    if type(new) is not ndarray or new.dtype != value.dtype or new.shape != value.shape:
        return False
    box._value = new
    count_write(state_of(box))
    return True
