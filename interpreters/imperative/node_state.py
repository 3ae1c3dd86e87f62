"""The state of graph nodes: saved values, hooks, the recorded call and its line. Searches in graphs of such nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from func.backends import is_device_array
from func.interpreters import grad
from func.interpreters.core import EVALUATE, Aval, Shaped, Tracer, dtype_of, is_inexact, operand, shape_of, unboxed
from func.interpreters.core.errors import BackwardError
from func.interpreters.core.modes import SAVING, Setting, enter, leave, saving
from func.interpreters.grad import LEAF, OUTPUT, PARAMS, PARENTS, RULE, SERIAL, SERIALS
from func.interpreters.primitives.structural.shapes import convert
from func.interpreters.program.program import Program

STATE = grad.SAVED
"""The field of a tensor's node that holds its NodeState."""
SAVED, HOOKS, CALL, LINE = 0, 1, 2, 3
"""The fields of a NodeState."""


class NodeState(list[Any]):
    """The mutable part of a node. A list, since Python makes lists faster than objects with attributes."""

    __slots__ = ()


class Freed:
    """Marks saved values that an earlier backward has released."""


FREED = Freed()


def fitted(value: Any, shape: tuple[int, ...], dtype: Any, hook: str) -> Any:
    """The result of a hook, with the shape and dtype of the array that it stands for."""
    value = unboxed(operand(value))
    have = dtype_of(value)
    if shape_of(value) != shape:
        raise BackwardError(f"{hook} changed the shape of an array from {shape} to {shape_of(value)}")
    if (have.kind == "c" and dtype.kind != "c") or (is_inexact(have) and not is_inexact(dtype)):
        raise BackwardError(f"{hook} returned an array of dtype {have} in place of {dtype}; convert it, or take .real")
    return value if have == dtype and hasattr(value, "dtype") else convert(value, dtype=dtype)


class Packed:
    """A saved array that a pair of hooks has packed."""

    __slots__ = ("dtype", "packed", "restore", "shape", "unpack")

    def __init__(self, value: Any, pack: Callable[[Any], Any], unpack: Callable[[Any], Any]) -> None:
        if type(value) is Tracer:
            owner, node = value._interpreter, value._attached
            is_recorded = isinstance(owner, grad.Grad) and not isinstance(value._value, Tracer)
            numbers = Tracer(EVALUATE, value._value, None) if is_recorded else value
            self.restore: Any = (lambda array: Tracer(owner, array, node)) if is_recorded else None
        else:
            numbers = Tracer(EVALUATE, value, None)
            self.restore = (lambda array: np.asarray(array)[()]) if isinstance(value, np.generic) else None
        self.shape, self.dtype = shape_of(value), dtype_of(value)
        self.packed = pack(numbers)
        self.unpack = unpack

    def unpacked(self) -> Any:
        """The original array."""
        value = fitted(self.unpack(self.packed), self.shape, self.dtype, "an unpack hook")
        return value if self.restore is None else self.restore(value)


class PackedValues:
    """The saved values of a node, with packed arrays."""

    __slots__ = ("structure",)

    def __init__(self, structure: Any) -> None:
        self.structure = structure


PUT_AWAY = (Freed, PackedValues)
"""The placeholder in a node for values that it no longer has, or not in their original form."""


class Hooks:
    """The hooks of a node: on the cotangent of its tensor, then before and after its pullback.

    `retain` refers to the state of a tensor that retains its gradient.
    """

    __slots__ = ("post", "pre", "retain", "tensor")

    def __init__(self) -> None:
        self.tensor: dict[int, Callable[..., Any]] = {}
        self.pre: dict[int, Callable[..., Any]] = {}
        self.post: dict[int, Callable[..., Any]] = {}
        self.retain: Any = None


def hooks_of(node: Any) -> Hooks:
    """The hooks of a node, created on first use."""
    state = node[STATE]
    if state[HOOKS] is None:
        state[HOOKS] = Hooks()
    hooks: Hooks = state[HOOKS]
    return hooks


def pack(state: NodeState) -> None:
    """Pack the arrays that a new node saves by the innermost pair of hooks, each array once."""
    hooks = saving()
    if isinstance(hooks, str):
        raise RuntimeError(hooks)
    pack, unpack = hooks
    arrays: dict[int, tuple[Any, Packed]] = {}

    def packed(value: Any) -> Any:
        key = id(value) if type(value) is not Tracer else id(value._value)
        if type(value) is Tracer or key not in arrays:
            arrays[key] = value, Packed(value, pack, unpack)
        return arrays[key][1]

    setting = Setting(None, SAVING.get())
    entered = enter(SAVING, setting)
    try:
        structure = _with_arrays(state[SAVED], packed)
        if arrays:
            state[SAVED] = PackedValues(structure)
        if state[CALL] is not None:
            primitive, args, params = state[CALL]
            state[CALL] = (primitive, PackedValues(_with_arrays(args, packed)), params)
    finally:
        leave(SAVING, setting, entered)


def unpacked(saved: Any) -> Any:
    """Saved values as they were before the hooks packed them."""
    if type(saved) is not PackedValues:
        return saved
    return _with_arrays(saved.structure, lambda array: array.unpacked() if type(array) is Packed else array)


def _with_arrays(value: Any, change: Callable[[Any], Any]) -> Any:
    """A nested structure of saved values with changed arrays."""
    kind = type(value)
    if kind is tuple or kind is list:
        return kind([_with_arrays(item, change) for item in value])
    if kind is dict:
        return {key: _with_arrays(item, change) for key, item in value.items()}
    if kind is Program:
        constants = {var: _with_arrays(constant, change) for var, constant in value.constants.items()}
        return Program(value.inputs, value.equations, value.outputs, constants)
    is_array = kind in (np.ndarray, Tracer, Packed) or isinstance(value, np.generic) or is_device_array(value)
    return change(value) if is_array else value


def free(node: Any) -> None:
    """Release the saved values of a node."""
    rule, state = node[RULE], node[STATE]
    saved = state[SAVED]
    if saved is None or rule is LEAF or rule is OUTPUT:
        return
    if not isinstance(saved, (tuple, list)) or _has_arrays(saved):
        state[CALL] = None if state[CALL] is None else node_name(node)
        state[SAVED] = FREED


def _has_arrays(saved: Sequence[Any]) -> bool:
    """Whether saved values are more than shapes and dtypes."""
    for value in saved:  # noqa: SIM110  (a generator takes longer)
        if value is not None and (type(value) is ndarray or not isinstance(value, Shaped)):
            return True
    return False


def output_node(node: Any, place: int, value: Any) -> Any:
    """A further node of an output, with this value, of a node with several."""
    aval = Aval(shape_of(value), dtype_of(value))
    return (next(SERIALS), OUTPUT, (node,), (node,), NodeState((place, None, None, None)), None, aval)


def is_leaf_node(node: Any) -> bool:
    """Whether a node is a leaf's."""
    return node[RULE] is LEAF


def reachable(roots: Sequence[Any]) -> set[int]:
    """The serials of all nodes that some roots depend on, the roots among them."""
    serials: set[int] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node[SERIAL] not in serials:
            serials.add(node[SERIAL])
            stack.extend([parent for parent in node[PARENTS] if parent is not None])
    return serials


def has_hooks(roots: Sequence[Any]) -> bool:
    """Whether some node that some roots depend on has hooks."""
    return _any_node(roots, lambda node: node[STATE][HOOKS] is not None)


def needs_general_pass(roots: Sequence[Any]) -> bool:
    """Whether some node that some roots depend on has hooks, or values that are packed or freed."""
    return _any_node(roots, lambda node: node[STATE][HOOKS] is not None or type(node[STATE][SAVED]) in PUT_AWAY)


def _any_node(roots: Sequence[Any], test: Callable[[Any], bool]) -> bool:
    """Whether the test holds of some node that some roots depend on."""
    serials: set[int] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node[SERIAL] not in serials:
            if test(node):
                return True
            serials.add(node[SERIAL])
            stack.extend([parent for parent in node[PARENTS] if parent is not None])
    return False


def leading_to(targets: set[int], roots: Sequence[Any]) -> set[int]:
    """The serials of the nodes behind some roots that depend on a target, the targets among them."""
    children: dict[int, list[int]] = {}
    visited: set[int] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node[SERIAL] in visited:
            continue
        visited.add(node[SERIAL])
        for parent in node[PARENTS]:
            if parent is not None:
                children.setdefault(parent[SERIAL], []).append(node[SERIAL])
                stack.append(parent)
    needed: set[int] = set()
    pending = [serial for serial in targets if serial in visited]
    while pending:
        serial = pending.pop()
        if serial not in needed:
            needed.add(serial)
            pending.extend(children.get(serial, ()))
    return needed


def node_name(node: Any) -> str:
    """The name of a node's operation: SinBackward; the class's for a Function; AccumulateGrad for leaves."""
    rule, call = node[RULE], node[STATE][CALL]
    if rule is LEAF:
        return "AccumulateGrad"
    if isinstance(call, str):
        return call
    primitive, params = (rule, node[PARAMS]) if call is None else (call[0], call[2])
    rules = [(params or {}).get(key) for key in ("fun", "bwd")]
    classes = [getattr(getattr(function, "__self__", function), "cls", None) for function in rules]
    name = next((kind.__name__ for kind in classes if kind is not None), None)
    return backward_name(primitive) if name is None else f"{name}Backward"


def backward_name(primitive: Any) -> str:
    """The name of a primitive as nodes show it: SinBackward."""
    name = getattr(primitive, "name", type(primitive).__name__)
    return "".join([part.capitalize() for part in str(name).split("_")]) + "Backward"
