"""Reverse mode: record rows and what their partials name, then pull cotangents back through the node graph."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from typing import Any

import numpy as np

from func.backends import HOST_TYPES
from func.interpreters.core import (
    ZERO,
    Array,
    Interpreter,
    Params,
    Primitive,
    Shape,
    Shaped,
    Tracer,
    new_tracer,
    bind,
    dtype_of,
    is_inexact,
    shape_of,
    snapshot,
)
from func.interpreters.primitives.kinds import Row, add_tangents, refuse_captured
from func.interpreters.primitives.pointwise import Binary, Unary

_ticks = itertools.count(0, -1)
_ARRAY = np.ndarray


class Node(Shaped):
    """A recorded row application: where its output came from and what its pullback needs.

    Nodes hold values, never the boxes that users write to. `index` falls with creation, so it orders a graph.
    """

    __slots__ = ("index", "params", "parents", "row", "saved")
    index: int
    row: Any
    parents: Sequence[Any]
    saved: Any
    params: Params | None


def new_node(row: Any, parents: Sequence[Any], saved: Any, params: Params | None, shape: Shape, dtype: Any) -> Node:
    """A node. (A function and not `__init__`, because Python calls functions in half the time.)"""
    node = Node()
    node.row = row
    node.parents = parents
    node.saved = saved
    node.params = params
    node.shape = shape
    node.dtype = dtype
    node.index = next(_ticks)
    return node


class LeafRow:
    """The row of a leaf: nothing to pull back."""

    name = "leaf"

    def pull(self, ct: Any, parents: Any, saved: Any, params: Any) -> Sequence[Any]:
        return ()

    def __reduce__(self) -> str:
        return "LEAF"


class OutputRow:
    """Picks one output of a node with several; its parent collects {position: cotangent}."""

    name = "output"

    def pull(self, ct: Any, parents: Any, saved: Any, params: Any) -> Sequence[Any]:
        return ({saved: ct},)

    def __reduce__(self) -> str:
        return "OUTPUT"


LEAF = LeafRow()
OUTPUT = OutputRow()


class Grad(Interpreter):
    """Values with a node each. Outputs that cannot carry a derivative leave as plain values."""

    __slots__ = ()

    def lift(self, value: Array) -> Tracer:
        """A traced leaf."""
        return Tracer(self, value, new_node(LEAF, (), None, None, shape_of(value), dtype_of(value)))

    def apply1(self, row: Primitive, x: Tracer) -> Any:
        if type(row) is not Unary:
            return self.apply(row, (x,), {})
        value = x.value
        out = row.numpy(value) if type(value) is _ARRAY else row(value)  # type: ignore[misc]
        saved = (value if row.keeps_x else None, out if row.keeps_out else None)
        try:
            return new_tracer(self, out, new_node(row, (x.attached,), saved, None, out.shape, out.dtype))
        except AttributeError:  # a Python scalar
            return Tracer(self, out, new_node(row, (x.attached,), saved, None, (), dtype_of(out)))

    def apply2(self, row: Primitive, x: Array, y: Array) -> Any:
        if type(row) is not Binary:
            return self.apply(row, (x, y), {})
        mask = 0
        node_x = node_y = None
        if type(x) is Tracer and x.interpreter is self:
            node_x, x, mask = x.attached, x.value, 1
        if type(y) is Tracer and y.interpreter is self:
            node_y, y, mask = y.attached, y.value, mask | 2
        if (type(x) is _ARRAY and type(y) in HOST_TYPES) or (type(y) is _ARRAY and type(x) in HOST_TYPES):
            out = row.numpy(x, y)  # type: ignore[misc]
        else:
            out = row(x, y)
        keeps_x, keeps_y, keeps_out = row.keeps[mask]
        saved = (
            (x if mask & 1 else snapshot(x)) if keeps_x else None,
            (y if mask & 2 else snapshot(y)) if keeps_y else None,
            out if keeps_out else None,
        )
        try:
            return new_tracer(self, out, new_node(row, (node_x, node_y), saved, None, out.shape, out.dtype))
        except AttributeError:  # a Python scalar
            return Tracer(self, out, new_node(row, (node_x, node_y), saved, None, (), dtype_of(out)))

    def apply(self, row: Primitive, args: tuple[Array, ...], params: Params) -> Any:
        values = []
        parents = []
        for arg in args:
            if type(arg) is Tracer and arg.interpreter is self:
                values.append(arg.value)
                parents.append(arg.attached)
            else:
                values.append(arg)
                parents.append(None)
        assert isinstance(row, Row)
        if not row.differentiable:
            return bind(row, tuple(values), params)
        out, pulling, saved = row.record(tuple(values), parents, params)
        if pulling is None:
            return out
        if row.multiple:
            return self._several(out, parents, pulling, saved, params)
        dtype = dtype_of(out)
        if not is_inexact(dtype):
            return out
        return Tracer(self, out, new_node(pulling, parents, saved, params, shape_of(out), dtype))

    def _several(self, out: Any, parents: Sequence[Any], pulling: Any, saved: Any, params: Params) -> Any:
        refuse_captured(self, out)
        node = new_node(pulling, parents, saved, params, (), None)
        return tuple(
            [
                Tracer(self, value, new_node(OUTPUT, (node,), i, None, shape_of(value), dtype_of(value)))
                if is_inexact(dtype_of(value))
                else value
                for i, value in enumerate(out)
            ]
        )


def pull_back(seeds: Iterable[tuple[Node, Array]], leaves: Sequence[Node]) -> list[Any]:
    """Cotangents of the leaves, given those of some outputs. ZERO where a leaf is not reached.

    Iterative, in decreasing order of creation; what a node saved is released as soon as nobody refers to it.
    """
    cotangents: dict[Node, Any] = {}
    queue: list[tuple[int, Node]] = []
    for node, seed in seeds:
        if node in cotangents:
            cotangents[node] = accumulate(cotangents[node], seed)
        else:
            cotangents[node] = seed
            heappush(queue, (node.index, node))
    kept: dict[Node, Any] = dict.fromkeys(leaves, ZERO)
    del seeds
    with np.errstate(all="ignore"):
        while queue:
            node = heappop(queue)[1]
            ct = cotangents.pop(node)
            if node in kept:
                kept[node] = ct
            parents = node.parents
            place = 0
            for grown in node.row.pull(ct, parents, node.saved, node.params):
                parent = parents[place]
                place += 1
                if grown is ZERO or parent is None:
                    continue
                before = cotangents.get(parent)
                if before is None:
                    cotangents[parent] = grown
                    heappush(queue, (parent.index, parent))
                elif type(before) is _ARRAY and type(grown) is _ARRAY:
                    cotangents[parent] = before + grown
                else:
                    cotangents[parent] = accumulate(before, grown)
    return [kept[leaf] for leaf in leaves]


def accumulate(x: Any, y: Any) -> Any:
    """The sum of two cotangents of one node (for a node with several outputs: of its {position: cotangent})."""
    if type(x) is dict:
        merged = dict(x)
        for position, ct in y.items():
            merged[position] = add_tangents(merged[position], ct) if position in merged else ct
        return merged
    return add_tangents(x, y)
