"""What the nodes of tensors own: a cell that can change, with saved values, hooks, the call and its line.

A cell can be freed, packed by a pair of hooks, and named; graphs of such nodes can be searched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func.interpreters import grad
from func.interpreters.core import EVALUATE, Tracer, unboxed
from func.interpreters.core.modes import SAVING
from func.interpreters.grad import LEAF, OUTPUT, PARENTS, RULE, SERIAL

CELL = grad.SAVED
"""The field of a tensor's node that holds its cell."""
SAVED, HOOKS, CALL, LINE = range(4)
"""The fields of a cell."""


class Cell(list[Any]):
    """The changing part of a node."""

    __slots__ = ()


class Freed:
    """Stands for saved values that an earlier backward has released."""


FREED = Freed()


class Packed:
    """A saved value in the keeping of a pair of hooks."""

    __slots__ = ("held", "unpack")

    def __init__(self, held: Any, unpack: Callable[[Any], Any]) -> None:
        self.held = held
        self.unpack = unpack


class PackedValues(list[Any]):
    """Several saved values, some of them packed."""

    __slots__ = ()


class Hooks:
    """What runs when a node's cotangent is known, in this order; `retain` keeps the cotangent for a tensor."""

    __slots__ = ("post", "pre", "retain", "tensor")

    def __init__(self) -> None:
        self.tensor: dict[int, Callable[..., Any]] = {}
        self.pre: dict[int, Callable[..., Any]] = {}
        self.post: dict[int, Callable[..., Any]] = {}
        self.retain: Any = None


def pack(cell: list[Any]) -> None:
    """Hand what a new node saves to the innermost pair of hooks."""
    pair = SAVING.get()[-1]
    if isinstance(pair, str):
        raise RuntimeError(pair)
    pack, unpack = pair

    def packed(value: Any) -> Any:
        if isinstance(value, np.ndarray) or (hasattr(value, "dtype") and hasattr(value, "get")):
            return Packed(pack(Tracer(EVALUATE, value, None)), unpack)
        if type(value) is Tracer:
            return Packed(pack(value), unpack)
        return value

    token = SAVING.set(())
    try:
        if isinstance(cell[SAVED], (tuple, list)) and cell[CALL] is None:
            cell[SAVED] = PackedValues([packed(value) for value in cell[SAVED]])
        elif isinstance(cell[SAVED], np.ndarray):
            cell[SAVED] = packed(cell[SAVED])
    finally:
        SAVING.reset(token)


def unpacked(saved: Any) -> Any:
    """What a node saved, as it was before it was packed."""
    if type(saved) is Packed:
        return unboxed(saved.unpack(saved.held))
    if type(saved) is PackedValues:
        return [unpacked(value) for value in saved]
    return saved


def free(node: Any) -> None:
    """Release what a node has saved."""
    cell = node[CELL]
    saved = cell[SAVED]
    if isinstance(saved, (tuple, list)) and all([value is None for value in saved]):
        saved = None
    if node[RULE] is not LEAF and node[RULE] is not OUTPUT and saved is not None:
        cell[CALL] = None if cell[CALL] is None else node_name(node)
        cell[SAVED] = FREED


# --- nodes and graphs -------------------------------------------------------------------------------------------


def is_leaf_node(node: Any) -> bool:
    """Whether a node is a leaf's."""
    return node[RULE] is LEAF


def reachable(seeds: Sequence[tuple[Any, Any]]) -> set[int]:
    """The indices of all nodes that some roots depend on, the roots among them."""
    seen: set[int] = set()
    stack = [node for node, _ in seeds]
    while stack:
        node = stack.pop()
        if node[SERIAL] not in seen:
            seen.add(node[SERIAL])
            stack.extend([parent for parent in node[PARENTS] if parent is not None])
    return seen


def leading_to(targets: set[int], roots: Sequence[Any]) -> set[int]:
    """The nodes from which some target can be reached, the targets among them."""
    children: dict[int, list[int]] = {}
    seen: set[int] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node[SERIAL] in seen:
            continue
        seen.add(node[SERIAL])
        for parent in node[PARENTS]:
            if parent is not None:
                children.setdefault(parent[SERIAL], []).append(node[SERIAL])
                stack.append(parent)
    needed: set[int] = set()
    grow = [index for index in targets if index in seen]
    while grow:
        index = grow.pop()
        if index not in needed:
            needed.add(index)
            grow.extend(children.get(index, ()))
    return needed


def node_name(node: Any) -> str:
    """The name of a node's operation: SinBackward; the class's for a Function; AccumulateGrad for leaves."""
    primitive, call = node[RULE], node[CELL][CALL]
    if primitive is LEAF:
        return "AccumulateGrad"
    if isinstance(call, str):
        return call
    if call is None:
        return name_of(primitive)
    fun = (call[2] or {}).get("fun")
    named = getattr(getattr(fun, "__self__", fun), "cls", None)
    return name_of(call[0]) if named is None else f"{named.__name__}Backward"


def name_of(primitive: Any) -> str:
    """A row's name as node names are written: SinBackward."""
    name = getattr(primitive, "name", type(primitive).__name__)
    return "".join([part.capitalize() for part in str(name).split("_")]) + "Backward"
