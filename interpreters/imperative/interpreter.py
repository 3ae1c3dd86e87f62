"""Reverse mode without a transform around it: an interpreter that stays open, what tensors own, and writes to them.

The graph is that of the grad interpreter. Its nodes own a cell, a list that can change: what the partials name (until
the graph is freed), hooks, the row with its arguments where only these can be differentiated again, and the line.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func.interpreters.core import (
    CURRENT,
    EVALUATE,
    Array,
    Aval,
    Interpreter,
    Params,
    Primitive,
    Tracer,
    dtype_of,
    shape_of,
    unboxed,
)
from func.interpreters.core.errors import InferenceTensorError, LeafError
from func.interpreters.core.modes import ANOMALY, MODE, SAVING, WATCHED, is_suspended
from func.interpreters.grad import PARAMS, leaf_node
from func.interpreters.grad_fast import FastGrad
from func.interpreters.imperative.anomalies import watched_line
from func.interpreters.imperative.node_state import CALL, CELL, LINE, Cell, is_leaf_node, pack


class State:
    """What a tensor owns beside its value: its gradient, and hooks for after it has been accumulated."""

    __slots__ = ("__weakref__", "grad", "inference", "owner", "post_hooks", "retains", "version")

    def __init__(self) -> None:
        self.grad: Any = None
        self.inference = False
        self.owner: Any = None
        self.retains = False
        self.post_hooks: dict[int, Callable[..., Any]] = {}
        self.version = 0


def state_of(tensor: Tracer) -> State:
    """The state of a tensor, made on first use."""
    state: State | None = getattr(tensor, "state", None)
    if state is None:
        state = tensor.state = State()
        state.owner = weakref.ref(tensor)
    return state


class Imperative(FastGrad):
    """The grad interpreter of one place in the nest of transforms; it never has a driver that closes it on return."""

    def leaf(self, value: Array, state: State) -> Any:
        """A new leaf node, which knows its tensor's state but does not own it."""
        index, primitive, parents, needs_cotangent, _, params, aval = leaf_node(Aval(shape_of(value), dtype_of(value)))
        return (index, primitive, parents, needs_cotangent, Cell((weakref.ref(state), None, None, None)), params, aval)

    def apply1(self, primitive: Primitive, x: Tracer) -> Any:
        out = super().apply1(primitive, x)
        return self._celled(out, primitive, (x,)) if type(out) is Tracer and out.interpreter is self else out

    def apply2(self, primitive: Primitive, x: Array, y: Array) -> Any:
        if _SEEN_INFERENCE[0]:
            self._refuse_inference((x, y))
        out = super().apply2(primitive, x, y)
        return self._celled(out, primitive, (x, y)) if type(out) is Tracer and out.interpreter is self else out

    def apply(self, primitive: Primitive, args: tuple[Array, ...], params: Params) -> Any:
        if _SEEN_INFERENCE[0]:
            self._refuse_inference(args)
        out = super().apply(primitive, args, params)
        if primitive.multiple and type(out) is tuple:
            return self._celled_several(out, primitive, args)
        return self._celled(out, primitive, args) if type(out) is Tracer and out.interpreter is self else out

    def unrecorded(self, primitive: Primitive, args: tuple[Array, ...], params: Params) -> Any:
        """The row on the values alone; arrays stay tensors."""
        out = super().unrecorded(primitive, args, params)
        if primitive.multiple:
            return tuple([boxed(one) for one in out])
        return boxed(out)

    def _refuse_inference(self, args: Sequence[Any]) -> None:
        if is_suspended(self.level):
            return
        for arg in args:
            state = getattr(arg, "state", None) if type(arg) is Tracer else None
            if state is not None and state.inference:
                raise InferenceTensorError(
                    "a tensor made in inference mode cannot take part in a computation that is recorded for backward. "
                    "Use x.clone() outside inference mode, or func.no_grad() instead of func.inference_mode()."
                )

    def _celled(self, out: Tracer, primitive: Primitive, args: tuple[Array, ...]) -> Tracer:
        index, pulling, parents, needs_cotangent, saved, params, aval = out.attached
        if type(saved) is Cell:  # apply2 has handed on to apply
            return out
        cell = Cell((saved, None, None, None))
        if saved is not None and not hasattr(pulling, "retraced"):
            cell[CALL] = (primitive, tuple([fresh(arg) for arg in args]), params)
        if WATCHED[0]:
            if SAVING.get():
                pack(cell)
            if ANOMALY.get() is not None:
                cell[LINE] = watched_line(primitive, args, (out.value,))
        out.attached = (index, pulling, parents, needs_cotangent, cell, params, aval)
        return out

    def _celled_several(self, outs: tuple[Any, ...], primitive: Primitive, args: tuple[Array, ...]) -> tuple[Any, ...]:
        """One cell for the node that several outputs have in common."""
        common: Any = None
        for out in outs:
            if type(out) is Tracer and out.interpreter is self:
                index, pulling, parents, _, place, params, aval = out.attached
                if type(place) is Cell:
                    return outs
                if common is None:
                    (old,) = parents
                    cell = Cell((old[CELL], None, (primitive, tuple([fresh(arg) for arg in args]), old[PARAMS]), None))
                    if ANOMALY.get() is not None:
                        cell[LINE] = watched_line(
                            primitive, args, tuple([o.value if type(o) is Tracer else o for o in outs])
                        )
                    common = (*old[:4], cell, *old[5:])
                out.attached = (index, pulling, (common,), (common,), Cell((place, None, None, None)), params, aval)
        return outs


def fresh(value: Array) -> Array:
    """The present value of a box, apart from the box."""
    return Tracer(value.interpreter, value.value, value.attached) if type(value) is Tracer else value


def boxed(value: Array) -> Array:
    """An array as a tensor that requires no gradient; marked if inference mode is on."""
    if type(value) is not Tracer:
        if not isinstance(value, (np.ndarray, np.generic)) and not hasattr(value, "dtype"):
            return value
        value = Tracer(EVALUATE, value, None)
    mode = MODE.get()
    if mode is not None and mode.inference and value.interpreter is EVALUATE:
        state_of(value).inference = True
        _SEEN_INFERENCE[0] = True
    return value


def as_tensor(value: Any) -> Any:
    """A cotangent as hooks and users see it: a tensor."""
    return value if type(value) is Tracer else Tracer(EVALUATE, value, None)


_SEEN_INFERENCE = [False]


# --- the interpreter of a place ---------------------------------------------------------------------------------

TOP = Imperative("backward")
TOP.level = 0.5


def ambient() -> Imperative:
    """The imperative interpreter of the innermost running transform: one step above it, below all that starts later."""
    return ambient_of(CURRENT.get())


def ambient_of(transform: Interpreter | None) -> Imperative:
    """The imperative interpreter that goes with a transform (None: outside of all)."""
    if transform is None:
        return TOP
    found: Imperative | None = transform.ambient
    if found is None:
        found = transform.ambient = Imperative("backward")
        found.level = transform.level + 0.5
    return found


# --- writing ----------------------------------------------------------------------------------------------------


class Detached:
    """Marks a value that was written through a detached view: history is kept, as the writing is not recorded."""


DETACHED = Detached()


def assign(box: Tracer, new: Tracer) -> bool:
    """Write a tensor's value. Unrecorded writes keep its history; recorded ones to a leaf are refused.

    Returns False where nothing special holds and the box is to be rebound to the new value as it is.
    """
    state: State | None = getattr(box, "state", None)
    interpreter = box.interpreter
    own = type(interpreter) is Imperative
    unrecorded = new.interpreter.level < interpreter.level and (
        new.attached is DETACHED or is_suspended(interpreter.level)
    )
    if own and not unrecorded and is_leaf_node(box.attached):
        raise LeafError(
            "a leaf tensor that requires a gradient was written in place while operations are recorded. Write to it "
            "under func.no_grad(), to x.data, or to a copy (x * 1)."
        )
    if state is not None:
        state.version += 1
    if own and unrecorded:
        box.value = new.value if new.interpreter is EVALUATE else new
        return True
    return False


def update(primitive: Primitive | None, box: Tracer, other: Any) -> bool:
    """x += v and its kin on a tensor that is not recorded and shares no memory: the plain case of `rewrite`."""
    if primitive is None or MODE.get() is None or not is_suspended(box.interpreter.level):
        return False
    if getattr(box, "views", None) or getattr(box, "view_of", None) is not None:
        return False
    value, other = box.value, unboxed(other)
    if type(value) is not np.ndarray or type(other) is Tracer:
        return False
    new = primitive(value, other)
    if type(new) is not np.ndarray or new.dtype != value.dtype or new.shape != value.shape:
        return False
    box.value = new
    state_of(box).version += 1
    return True
