"""Reverse mode: record rows and what their partials name, then pull cotangents back through the node graph."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np

from func.backends import HOST_TYPES
from func.interpreters.core import (
    ZERO,
    Array,
    Aval,
    Bilinear,
    Interpreter,
    Linear,
    Params,
    Primitive,
    Tracer,
    add_tangents,
    bind,
    dtype_of,
    is_inexact,
    new_tracer,
    refuse_captured,
    shape_of,
    snapshot,
    unboxed,
)
from func.interpreters.core.modes import MODE, NAN_SAFE, is_suspended
from func.interpreters.primitives.elementwise.builder import HOST_ARRAYS, Binary, Unary

_ARRAY = np.ndarray


class Node(NamedTuple):
    """A recorded row application: where a value came from and what its pullback needs.

    In the engine a node is the plain tuple of these fields, in this order, as Python makes plain tuples ten times
    faster than objects. `serial` falls with creation: it orders a graph and names the node. Nodes hold values, never
    the boxes that users write to. Values of equal shape and dtype share their aval object, so that `is` compares.
    """

    serial: int
    rule: Any
    parents: Sequence[Any]
    needs_cotangent: Sequence[Any]
    saved: Any
    params: Params | None
    aval: Any


_ticks = itertools.count(0, -1)


class Pulling:
    """Tells which node a backward pass is at: `serial` is None outside of backward passes."""

    serial: int | None = None


PULLING: ContextVar[Pulling | None] = ContextVar("func_pulling", default=None)
"""What backward passes of this thread or task report to, if something watches them."""


def tick() -> int:
    """A number between those of the nodes made before and after."""
    return next(_ticks)


SERIAL, RULE, PARENTS, NEEDS_COTANGENT, SAVED, PARAMS, AVAL = range(7)
"""The fields of a node, by which the engine reads the plain tuple."""


class LeafRule:
    """The row of a leaf: nothing to pull back."""

    name = "leaf"

    def pull(self, ct: Any, parents: Any, saved: Any, params: Any) -> Sequence[Any]:
        return ()

    pull_nan_safe = pull

    def __reduce__(self) -> str:
        return "LEAF"


class OutputRule:
    """Picks one output of a node with several; its parent collects {position: cotangent}."""

    name = "output"

    def pull(self, ct: Any, parents: Any, saved: Any, params: Any) -> Sequence[Any]:
        return ({saved: ct},)

    pull_nan_safe = pull

    def __reduce__(self) -> str:
        return "OUTPUT"


LEAF = LeafRule()
OUTPUT = OutputRule()


class Grad(Interpreter):
    """Values with a node each. Outputs that cannot carry a derivative leave as plain values."""

    def lift(self, value: Array) -> Tracer:
        """A traced leaf."""
        return Tracer(self, value, leaf_node(Aval(shape_of(value), dtype_of(value))))

    def unrecorded(self, primitive: Primitive, args: tuple[Array, ...], params: Params) -> Any:
        """The row on the values alone: gradients are off here."""
        values = [a.value if type(a) is Tracer and a.interpreter is self else unboxed(a) for a in args]
        return bind(primitive, tuple(values), params)

    def apply1(self, primitive: Primitive, x: Tracer) -> Any:
        if MODE.get() is not None and is_suspended(self.level):
            return self.unrecorded(primitive, (x,), {})
        if type(primitive) is not Unary:
            return self.apply(primitive, (x,), {})
        value = x.value
        out = primitive.numpy(value) if type(value) in HOST_ARRAYS else primitive(value)  # type: ignore[misc]
        saved = (value if primitive.keeps_x else None, out if primitive.keeps_out else None)
        node = x.attached
        aval = needs_cotangent = node[AVAL]
        if type(out) is not _ARRAY or out.dtype is not aval.dtype:
            aval = _out_aval(out, aval, None)
        elif aval.is_real_array:
            primitive = primitive.plain
        return new_tracer(self, out, (next(_ticks), primitive, (node,), (needs_cotangent,), saved, None, aval))

    def apply2(self, primitive: Primitive, x: Array, y: Array) -> Any:
        if MODE.get() is not None and is_suspended(self.level):
            return self.unrecorded(primitive, (x, y), {})
        if type(primitive) is not Binary:
            return self.apply(primitive, (x, y), {})
        mask = 0
        node_x: Any = None
        node_y: Any = None
        want_x: Any = None
        want_y: Any = None
        if type(x) is Tracer:
            if x.interpreter is self:
                node_x, x, mask = x.attached, x.value, 1
                want_x = node_x[AVAL]
            else:
                x = unboxed(x)
        if type(y) is Tracer:
            if y.interpreter is self:
                node_y, y, mask = y.attached, y.value, mask | 2
                want_y = node_y[AVAL]
            else:
                y = unboxed(y)
        if (type(x) in HOST_ARRAYS and type(y) in HOST_TYPES) or (type(y) in HOST_ARRAYS and type(x) in HOST_TYPES):
            out = primitive.numpy(x, y)  # type: ignore[misc]
        else:
            out = primitive(x, y)
        keeps_x, keeps_y, keeps_out = primitive.keeps[mask]
        saved = (
            (x if mask & 1 else snapshot(x)) if keeps_x else None,
            (y if mask & 2 else snapshot(y)) if keeps_y else None,
            out if keeps_out else None,
        )
        aval = want_x
        if want_x is not want_y or type(out) is not _ARRAY or out.dtype is not want_x.dtype:
            aval = _out_aval(out, want_x, want_y)
        elif aval.is_real_array:
            primitive = primitive.plain
        node = (next(_ticks), primitive, (node_x, node_y), (want_x, want_y), saved, None, aval)
        return new_tracer(self, out, node)

    def apply(self, primitive: Primitive, args: tuple[Array, ...], params: Params) -> Any:
        if MODE.get() is not None and is_suspended(self.level):
            return self.unrecorded(primitive, args, params)
        if type(primitive) is Bilinear:
            return self._bilinear(primitive, args[0], args[1], params)
        if len(args) == 1 and isinstance(primitive, Linear):
            return self._linear(primitive, args[0], params)
        values = []
        parents = []
        for arg in args:
            if type(arg) is Tracer and arg.interpreter is self:
                values.append(arg.value)
                parents.append(arg.attached)
            else:
                values.append(unboxed(arg))
                parents.append(None)
        if not primitive.differentiable:
            return bind(primitive, tuple(values), params)
        needs_cotangent = [None if parent is None else parent[AVAL] for parent in parents]
        out, pulling, saved = primitive.record(tuple(values), needs_cotangent, params)
        if pulling is None:
            return out
        if primitive.multiple:
            return self._several(out, parents, needs_cotangent, pulling, saved, params)
        dtype = dtype_of(out)
        if not is_inexact(dtype):
            return out
        aval = Aval(shape_of(out), dtype)
        return Tracer(self, out, (next(_ticks), pulling, parents, needs_cotangent, saved, params, aval))

    def _linear(self, primitive: Linear, x: Tracer, params: Params) -> Any:
        """A linear row of one array keeps nothing but its parameters."""
        value = x.value
        out = primitive.impl(np, value, **params) if type(value) in HOST_ARRAYS else bind(primitive, (value,), params)
        dtype = dtype_of(out)
        if not is_inexact(dtype):
            return out
        node = (next(_ticks), primitive, (x.attached,), (x.attached[AVAL],), None, params, Aval(shape_of(out), dtype))
        return new_tracer(self, out, node)

    def _bilinear(self, primitive: Bilinear, x: Array, y: Array, params: Params) -> Any:
        """A product keeps each operand where the other one is traced."""
        node_x: Any = None
        node_y: Any = None
        if type(x) is Tracer:
            if x.interpreter is self:
                node_x, x = x.attached, x.value
            else:
                x = unboxed(x)
        if type(y) is Tracer:
            if y.interpreter is self:
                node_y, y = y.attached, y.value
            else:
                y = unboxed(y)
        plain = type(x) in HOST_ARRAYS and type(y) in HOST_ARRAYS
        out = primitive.impl(np, x, y, **params) if plain else bind(primitive, (x, y), params)
        dtype = dtype_of(out)
        if not is_inexact(dtype):
            return out
        saved = (
            None if node_y is None else x if node_x is not None else snapshot(x),
            None if node_x is None else y if node_y is not None else snapshot(y),
        )
        needs_cotangent = (None if node_x is None else node_x[AVAL], None if node_y is None else node_y[AVAL])
        aval = Aval(shape_of(out), dtype)
        return new_tracer(self, out, (next(_ticks), primitive, (node_x, node_y), needs_cotangent, saved, params, aval))

    def _several(
        self, out: Any, parents: Sequence[Any], needs_cotangent: Sequence[Any], pulling: Any, saved: Any, params: Params
    ) -> Any:
        refuse_captured(self, out)
        node = (next(_ticks), pulling, parents, needs_cotangent, saved, params, None)
        outs = []
        for place, value in enumerate(out):
            dtype = dtype_of(value)
            if is_inexact(dtype):
                aval = Aval(shape_of(value), dtype)
                value = Tracer(self, value, (next(_ticks), OUTPUT, (node,), (node,), place, None, aval))
            outs.append(value)
        return tuple(outs)


def leaf_node(aval: Aval) -> Any:
    """A node without parents."""
    return (next(_ticks), LEAF, (), (), None, None, aval)


def _out_aval(out: Array, want_x: Any, want_y: Any) -> Any:
    """The aval of an output, shared with an operand's where they are equal."""
    shape, dtype = shape_of(out), dtype_of(out)
    for aval in (want_x, want_y):
        if aval is not None and aval.shape == shape and aval.dtype is dtype:
            return aval
    return Aval(shape, dtype)


def pull_back(seeds: Iterable[tuple[Any, Array]], leaves: Sequence[Any]) -> list[Any]:
    """Cotangents of the leaves, given those of some outputs. ZERO where a leaf is not reached.

    Where a cotangent comes out as NaN, a zero may have met an infinite or NaN factor, as in a branch that np.where
    did not take: the walk is made again with rows in which zero wins.
    """
    seeds = list(seeds)
    if NAN_SAFE.get():
        return walk(seeds, leaves, True)
    found = walk(seeds, leaves, False)
    return walk(seeds, leaves, True) if any([has_nan(ct) for ct in found]) else found


def has_nan(value: Any) -> bool:
    """Whether the numbers at the bottom of a value have a NaN. One pass: a sum of squares is NaN where some element is.

    Of a staged value that is not known; its stage is told that it may have to be traced again, with zeros that win.
    """
    while type(value) is Tracer:
        inner = value.value
        if inner is None:
            stage: Any = value.interpreter
            stage.pulled = True
            return False
        value = inner
    if type(value) is not _ARRAY:
        inexact = hasattr(value, "dtype") and value.dtype.kind in "fc"
        return inexact and bool((value != value).any())
    if value.dtype.kind not in "fc":
        return False
    flat = value.ravel("K")
    total = np.vdot(flat, flat)
    return bool(total != total)


def walk(
    seeds: Iterable[tuple[Any, Array]],
    leaves: Sequence[Any],
    nan_safe: bool,
    opened: Callable[[Any, Any], Any] | None = None,
) -> list[Any]:
    """Cotangents of the leaves: iterative, in decreasing order of creation.

    Where nodes do not hold what they saved themselves, `opened(node, ct)` gives it just before the node is pulled back.
    """
    cotangents: dict[int, Any] = {}
    queue: list[Any] = []
    for node, seed in seeds:
        give(cotangents, queue, node, seed)
    kept: dict[int, Any] = {leaf[SERIAL]: ZERO for leaf in leaves}
    watch = PULLING.get()
    with np.errstate(all="ignore"):
        while queue:
            node = heappop(queue)
            index, primitive, parents, needs_cotangent, saved, params, _ = node
            ct = cotangents.pop(index)
            if index in kept:
                kept[index] = ct
            if watch is not None:
                watch.serial = index
            if opened is not None:
                saved = opened(node, ct)
            place = 0
            for contribution in (primitive.pull_nan_safe if nan_safe else primitive.pull)(
                ct, needs_cotangent, saved, params
            ):
                parent = parents[place]
                place += 1
                if contribution is ZERO or parent is None:
                    continue
                index = parent[SERIAL]
                if index not in cotangents:
                    cotangents[index] = contribution
                    heappush(queue, parent)
                    continue
                before = cotangents[index]
                if type(before) is _ARRAY and type(contribution) is _ARRAY:
                    cotangents[index] = before + contribution
                else:
                    cotangents[index] = accumulate(before, contribution)
            del node, parents, saved
    if watch is not None:
        watch.serial = None
    return [kept[leaf[SERIAL]] for leaf in leaves]


def give(cotangents: dict[int, Any], queue: list[Any], node: Any, ct: Any) -> None:
    """Add to the cotangent of a node, which joins the queue if it had none."""
    index = node[SERIAL]
    if index in cotangents:
        cotangents[index] = accumulate(cotangents[index], ct)
    else:
        cotangents[index] = ct
        heappush(queue, node)


def accumulate(x: Any, y: Any) -> Any:
    """The sum of two cotangents of one node (for a node with several outputs: of its {position: cotangent})."""
    if type(x) is dict:
        merged = dict(x)
        for position, ct in y.items():
            merged[position] = add_tangents(merged[position], ct) if position in merged else ct
        return merged
    return add_tangents(x, y)
