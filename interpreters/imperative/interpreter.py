"""Derivatives without a transform around them: interpreters that stay open, the state of tensors, writes to them.

The graph is that of the grad interpreter, but each node has a NodeState: saved values (until the graph is freed),
hooks, the line. It also has the primitive with its arguments where only these can be differentiated again.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func.interpreters.core import (
    EVALUATE,
    TRACED,
    ZERO,
    Array,
    Interpreter,
    Params,
    Primitive,
    Tracer,
    array_aval,
    dtype_of,
    shape_of,
    unboxed,
)
from func.interpreters.core.errors import InferenceTensorError
from func.interpreters.core.modes import MODE, WATCHED, anomaly, in_force, is_suspended, saving
from func.interpreters.core.scopes import current_transform
from func.interpreters.core.wiring import WIRING
from func.interpreters.grad import AVAL, NEEDS_COTANGENT, PARAMS, PARENTS, RULE, SERIALS, Grad, leaf_node
from func.interpreters.grad_fast import FastGrad
from func.interpreters.imperative.node_state import CALL, LINE, STATE, NodeState, pack
from func.interpreters.jvp import Jvp
from func.interpreters.primitives.structural.identity import stop_gradient
from func.interpreters.stage import Stage


class TensorState:
    """The state of a tensor besides its value: its gradient, and the hooks that run after its accumulation."""

    __slots__ = (
        "__weakref__",
        "born",
        "exported",
        "frozen_in",
        "grad",
        "inference",
        "leaf",
        "owner",
        "post_hooks",
        "retains",
        "version",
    )

    def __init__(self) -> None:
        self.grad: Any = None
        self.born: int | None = None
        """When func.tensor made it, among the levels of interpreters."""
        self.frozen_in: str | None = None
        """The transform that has made its numbers a constant of a program which it keeps."""
        self.exported: Any = None
        """A weak reference to the array that `numpy()` handed out."""
        self.inference = False
        self.leaf: Any = None
        """(interpreter, node) of the leaf that the tensor is or was: it stays the same while gradients are off."""
        self.owner: Any = None
        self.retains = False
        self.post_hooks: dict[int, Callable[..., Any]] = {}
        self.version = 0


def state_of(tensor: Tracer) -> TensorState:
    """The state of a tensor, created when first asked for."""
    state: TensorState | None = getattr(tensor, "_state", None)
    if state is None:
        state = tensor._state = TensorState()
        state.owner = weakref.ref(tensor)
    return state


class Imperative(FastGrad):
    """The grad interpreter of tensors at one level of nested transforms. No driver closes it."""

    def leaf(self, value: Array, state: TensorState) -> Any:
        """The leaf node of a tensor, with a weak reference to its state."""
        aval = array_aval(shape_of(value), dtype_of(value))
        if state.leaf is not None and state.leaf[0] is self and state.leaf[1][AVAL] == aval:
            return state.leaf[1]
        node = leaf_node(aval)
        node = (*node[:STATE], NodeState((weakref.ref(state), None, None, None)), *node[STATE + 1 :])
        state.leaf = (self, node)
        return node

    def apply1(self, primitive: Primitive, x: Tracer) -> Any:
        out = super().apply1(primitive, x)
        return self._with_state(out, primitive, (x,)) if type(out) is Tracer and out._interpreter is self else out

    def apply2(self, primitive: Primitive, x: Array, y: Array) -> Any:
        if _has_inference_tensors:
            self._check_inference((x, y))
        out = super().apply2(primitive, x, y)
        return self._with_state(out, primitive, (x, y)) if type(out) is Tracer and out._interpreter is self else out

    def apply(self, primitive: Primitive, args: tuple[Array, ...], params: Params) -> Any:
        if _has_inference_tensors:
            self._check_inference(args)
        out = super().apply(primitive, args, params)
        if primitive.multiple and type(out) is tuple:
            return self._with_states(out, primitive, args)
        return self._with_state(out, primitive, args) if type(out) is Tracer and out._interpreter is self else out

    def unrecorded(self, primitive: Primitive, args: tuple[Array, ...], params: Params) -> Any:
        """The primitive on the values alone; arrays stay tensors."""
        out = super().unrecorded(primitive, args, params)
        if primitive.multiple:
            return tuple([boxed(value) for value in out])
        return boxed(out)

    def _check_inference(self, args: Sequence[Any]) -> None:
        if is_suspended(self.level):
            return
        for arg in args:
            state = getattr(arg, "_state", None) if type(arg) is Tracer else None
            if state is not None and state.inference:
                raise InferenceTensorError(
                    "a tensor made in inference mode cannot take part in a computation that is recorded for backward. "
                    "Use x.clone() outside inference mode, or func.no_grad() instead of func.inference_mode()."
                )

    def _with_state(self, out: Tracer, primitive: Primitive, args: tuple[Array, ...]) -> Tracer:
        """The output, whose new node gets a state."""
        serial, rule, parents, needs_cotangent, saved, params, aval = out._attached
        if type(saved) is NodeState:  # apply1 and apply2 call apply for other primitives
            return out
        state = NodeState((saved, None, None, None))
        if saved is not None and not hasattr(rule, "retraced"):
            state[CALL] = (primitive, tuple([unboxed_copy(arg) for arg in args]), params)
        if WATCHED.ever:
            if saving():
                pack(state)
            if anomaly() is not None:
                state[LINE] = _line_and_operands(primitive, args, (out._value,))
        out._attached = (serial, rule, parents, needs_cotangent, state, params, aval)
        return out

    def _with_states(self, outs: tuple[Any, ...], primitive: Primitive, args: tuple[Array, ...]) -> tuple[Any, ...]:
        """The outputs, whose nodes and common parent get states."""
        common: Any = None
        for out in outs:
            if type(out) is Tracer and out._interpreter is self:
                serial, rule, (parent,), _, place, params, aval = out._attached
                if type(place) is NodeState:
                    return outs
                if common is None:
                    call = None
                    if not hasattr(parent[RULE], "retraced"):
                        call = (primitive, tuple([unboxed_copy(arg) for arg in args]), parent[PARAMS])
                    elif args and parent[PARENTS][-1] is None:  # users see those that have nodes as next_functions
                        parent = _without_trailing(parent)
                    state = NodeState((parent[STATE], None, call, None))
                    if WATCHED.ever and saving():
                        pack(state)
                    if anomaly() is not None:
                        values = tuple([o._value if type(o) is Tracer else o for o in outs])
                        state[LINE] = _line_and_operands(primitive, args, values)
                    common = (*parent[:STATE], state, *parent[STATE + 1 :])
                place_state = NodeState((place, None, None, None))
                out._attached = (serial, rule, (common,), (common,), place_state, params, aval)
        return outs


def new_leaf(interpreter: Imperative, value: Array) -> Any:
    """A leaf of an interpreter that requires a gradient."""
    leaf = Tracer(interpreter, value, None)
    leaf._attached = interpreter.leaf(value, state_of(leaf))
    return leaf


def _without_trailing(node: Any) -> Any:
    """A node without its last parents as far as they are None."""
    count = max([i + 1 for i, parent in enumerate(node[PARENTS]) if parent is not None], default=0)
    return (*node[:PARENTS], node[PARENTS][:count], node[NEEDS_COTANGENT][:count], *node[STATE:])


def unboxed_copy(value: Array) -> Array:
    """The present value of a tracer, without the tracer."""
    return Tracer(value._interpreter, value._value, value._attached) if type(value) is Tracer else value


class CloneRule:
    """The rule of a copy: the cotangent itself."""

    name = "clone"
    pulls_by_primitives = True

    def pull(self, ct: Any, needs_cotangent: Any, saved: Any, params: Any) -> Sequence[Any]:
        return (ct,)

    covers = True

    def __reduce__(self) -> str:
        return "CLONE"


CLONE = CloneRule()


def _line_and_operands(primitive: Any, args: Sequence[Any], outs: Sequence[Any]) -> tuple[Any, ...]:
    """The information that a node stores during anomaly detection."""
    from func.interpreters.imperative.anomalies import line_and_operands  # start-up time

    return line_and_operands(primitive, args, outs)


def copy_of(value: Array) -> Array:
    """A copy of a traced value: a new tracer and, for a tensor, a new node. Unrecorded, it has no history."""
    if type(value) is not Tracer:
        return value
    owner = value._interpreter
    if MODE.get() is not None:
        if owner is EVALUATE:
            return mark_tensor(value._value)
        if is_suspended(owner.level) and isinstance(owner, (Grad, Stage)):
            return stop_gradient(value) if isinstance(owner, Stage) else boxed(copy_of(value._value))
    if type(owner) is not Imperative:
        return Tracer(owner, value._value, value._attached)
    aval = value._attached[AVAL]
    state = NodeState((None, None, None, None))
    if WATCHED.ever and anomaly() is not None:
        state[LINE] = _line_and_operands(CLONE, (value,), (value._value,))
    return Tracer(owner, value._value, (next(SERIALS), CLONE, (value._attached,), (aval,), state, None, aval))


def boxed(value: Array) -> Array:
    """An array as a tensor that requires no gradient, marked in inference mode."""
    if type(value) is not Tracer and not isinstance(value, (np.ndarray, np.generic)) and not hasattr(value, "dtype"):
        return value
    return mark_tensor(value)


def mark_tensor(value: Array) -> Any:
    """A value in a tracer, marked in inference mode."""
    global _has_inference_tensors
    if type(value) is not Tracer:
        value = Tracer(EVALUATE, value, None)
        TRACED.stay = True
        if TRACED.pending:
            WIRING.install_hooks()
    mode = in_force(MODE)
    if mode is not None and mode.inference and value._interpreter is EVALUATE:
        state_of(value).inference = True
        _has_inference_tensors = True
    return value


def as_tensor(value: Any) -> Any:
    """A cotangent as hooks and users see it: a tensor."""
    return value if type(value) is Tracer else Tracer(EVALUATE, value, None)


_has_inference_tensors = False
"""Whether any tensor has ever been marked by inference mode: it spares every operation a look at its arguments."""


TOP = Imperative("backward")
TOP.level = 0.5


def ambient() -> Imperative:
    """The imperative interpreter of the innermost running transform: above it, below all that start later."""
    return ambient_of(current_transform())


def ambient_of(transform: Interpreter | None) -> Imperative:
    """The imperative interpreter of a transform; None means outside of all."""
    if transform is None:
        return TOP
    interpreter: Imperative | None = transform.ambient
    if interpreter is None:
        interpreter = transform.ambient = Imperative("backward")
        interpreter.level = transform.level + 0.5
    return interpreter


class DualLevel(Jvp):
    """Forward mode without a function: users take its dual numbers apart, also under `no_grad`."""

    follows_modes = False
    has_recorded_tangents = False
    """Whether some tangent requires a gradient."""

    def parts(self, value: Any) -> tuple[Any, Any]:
        """(primal, tangent or ZERO) of a value, for users."""
        if type(value) is not Tracer or value._interpreter is not self:
            return value, ZERO
        primal, tangent = self.unpack(value)
        return WIRING.mark_tensor(primal), tangent if tangent is ZERO else WIRING.mark_tensor(tangent)

    def of(self, primal: Any, tangent: Any) -> Any:
        """The dual number of two parts."""
        return self.lift(unboxed(primal), unboxed(tangent))
