"""The state of graph nodes: saved values, hooks, the recorded call and its line. Searches in graphs of such nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from func.interpreters import grad
from func.interpreters.core import EVALUATE, Aval, Shaped, Tracer, dtype_of, is_plain_array, shape_of, unboxed
from func.interpreters.core.modes import SAVING, saving
from func.interpreters.grad import LEAF, OUTPUT, PARAMS, PARENTS, RULE, SERIAL, SERIALS

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


class Packed:
    """A saved value that a pair of hooks has packed."""

    __slots__ = ("packed", "unpack")

    def __init__(self, packed: Any, unpack: Callable[[Any], Any]) -> None:
        self.packed = packed
        self.unpack = unpack


class PackedValues(list[Any]):
    """Several saved values, some of them packed."""

    __slots__ = ()


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
    """Pack what a new node saves by the innermost pair of hooks."""
    hooks = saving()
    if isinstance(hooks, str):
        raise RuntimeError(hooks)
    pack, unpack = hooks

    def packed(value: Any) -> Any:
        if is_plain_array(value) or (hasattr(value, "dtype") and hasattr(value, "get")):
            return Packed(pack(Tracer(EVALUATE, value, None)), unpack)
        if type(value) is Tracer:
            return Packed(pack(value), unpack)
        return value

    token = SAVING.set(None)
    try:
        if isinstance(state[SAVED], (tuple, list)) and state[CALL] is None:
            state[SAVED] = PackedValues([packed(value) for value in state[SAVED]])
        elif is_plain_array(state[SAVED]):
            state[SAVED] = packed(state[SAVED])
    finally:
        SAVING.reset(token)


def unpacked(saved: Any) -> Any:
    """Saved values as they were before they were packed."""
    if type(saved) is Packed:
        return unboxed(saved.unpack(saved.packed))
    if type(saved) is PackedValues:
        return [unpacked(value) for value in saved]
    return saved


def free(node: Any) -> None:
    """Release the saved values of a node."""
    rule, state = node[RULE], node[STATE]
    saved = state[SAVED]
    if isinstance(saved, (tuple, list)) and all([value is None or isinstance(value, Shaped) for value in saved]):
        saved = None
    if rule is not LEAF and rule is not OUTPUT and saved is not None:
        state[CALL] = None if state[CALL] is None else node_name(node)
        state[SAVED] = FREED


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
