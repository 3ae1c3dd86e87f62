"""Reverse mode: record what each primitive saves for its pullback, then pull cotangents back through the graph.

This is the general form, right for every primitive; `grad_fast` does the same faster for frequent primitives.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar, copy_context
from heapq import heappop, heappush
from typing import Any, NamedTuple

from numpy import ndarray

from func.backends.quiet import errors_ignored
from func.interpreters.core import (
    ZERO,
    Array,
    Aval,
    Interpreter,
    Params,
    Primitive,
    Tracer,
    add_tangents,
    array_aval,
    bind,
    dtype_of,
    is_inexact,
    raise_if_captured,
    shape_of,
    unboxed,
)
from func.interpreters.core.modes import MODE, Setting, body_above, is_bypassed, value_in_force
from func.interpreters.core.scopes import restore_error_state
from func.interpreters.structural_zeros import StructuralZeros, has_mask, without_mask


class Node(NamedTuple):
    """A recorded application of a primitive: the origin of a value, and the needs of its pullback.

    In the engine a node is a plain tuple of these fields, in this order: Python makes tuples ten times faster than
    objects. Nodes refer to values, never to tracers, which users write to. Values of equal shape and dtype share their
    aval object, so `is` compares.
    """

    serial: int
    """Falls with each new node; it orders a graph and names the node."""
    rule: Any
    """Pulls cotangents back: rule.pull(ct, needs_cotangent, saved, params)."""
    parents: Sequence[Any]
    """For each argument its node, or None."""
    needs_cotangent: Sequence[Any]
    """For each argument the aval of its cotangent, or None if it needs none."""
    saved: Any
    params: Params | None
    aval: Any


SERIAL, RULE, PARENTS, NEEDS_COTANGENT, SAVED, PARAMS, AVAL = range(7)
"""The places of the fields in the plain tuple."""

SERIALS = itertools.count(0, -1)
"""The serials of new nodes."""


class LeafRule:
    """The rule of a leaf: there is nothing to pull back."""

    name = "leaf"
    pulls_by_primitives = True

    def pull(self, ct: Any, needs_cotangent: Any, saved: Any, params: Any) -> Sequence[Any]:
        return ()

    covers = True

    def __reduce__(self) -> str:
        return "LEAF"


class OutputRule:
    """Selects one output of a node with several. Its parent collects {position: cotangent}."""

    name = "output"
    pulls_by_primitives = True

    def pull(self, ct: Any, needs_cotangent: Any, saved: Any, params: Any) -> Sequence[Any]:
        return ({saved: ct},)

    covers = True

    def __reduce__(self) -> str:
        return "OUTPUT"


LEAF = LeafRule()
OUTPUT = OutputRule()


def leaf_node(aval: Aval) -> Any:
    """A node without parents."""
    return (next(SERIALS), LEAF, (), (), None, None, aval)


class Grad(Interpreter):
    """Carries a value and its node. Outputs that have no derivative leave as plain values."""

    differentiates = True

    def lift(self, value: Array) -> Tracer:
        """A traced leaf."""
        return Tracer(self, value, leaf_node(array_aval(shape_of(value), dtype_of(value))))

    def apply(self, primitive: Primitive, args: tuple[Array, ...], params: Params) -> Any:
        if MODE.get() is not None and is_bypassed(self.level):
            return self.unrecorded(primitive, args, params)
        return self.recorded(primitive, args, params)

    def unrecorded(self, primitive: Primitive, args: tuple[Array, ...], params: Params) -> Any:
        """Apply the primitive to the values alone, as gradients are off here; in a body, as an equation of the body."""
        body = body_above(self.level)
        if body is not None:
            return body.apply(primitive, args, params)
        values = [arg._value if type(arg) is Tracer and arg._interpreter is self else unboxed(arg) for arg in args]
        return bind(primitive, tuple(values), params)

    def recorded(self, primitive: Primitive, args: tuple[Array, ...], params: Params) -> Any:
        """Apply the primitive to the values, and make a node for each output that can have a derivative."""
        values = []
        parents = []
        for arg in args:
            if type(arg) is Tracer and arg._interpreter is self:
                values.append(arg._value)
                parents.append(arg._attached)
            else:
                values.append(unboxed(arg))
                parents.append(None)
        if not primitive.differentiable:
            return bind(primitive, tuple(values), params)
        needs_cotangent = [None if parent is None else parent[AVAL] for parent in parents]
        out, rule, saved = primitive.record(tuple(values), needs_cotangent, params)
        if rule is None:
            return out
        if not primitive.multiple:
            return self._output(out, rule, parents, needs_cotangent, saved, params)
        raise_if_captured(self, out)
        node = (next(SERIALS), rule, parents, needs_cotangent, saved, params, None)
        return tuple([self._output(value, OUTPUT, (node,), (node,), place, None) for place, value in enumerate(out)])

    def _output(self, value: Array, rule: Any, parents: Any, needs_cotangent: Any, saved: Any, params: Any) -> Array:
        dtype = dtype_of(value)
        if not is_inexact(dtype):
            return value
        aval = array_aval(shape_of(value), dtype)
        return Tracer(self, value, (next(SERIALS), rule, parents, needs_cotangent, saved, params, aval))


class Pulling:
    """Tells the present node of a backward pass; `serial` is None outside of backward passes."""

    serial: int | None = None


PULLING: ContextVar[Setting | None] = ContextVar("func_pulling", default=None)
"""The Pulling to which the backward passes of this thread or task report, if something watches them."""


def walk(
    seeds: Iterable[tuple[Any, Array]],
    leaves: Sequence[Any],
    structural: StructuralZeros | None = None,
    opened: Callable[[Any, Any], Any] | None = None,
) -> list[Any]:
    """Cotangents of the leaves. The pass pulls each node back once, the newest first.

    With `structural`, cotangents are traced from where they can have structural zeros. `opened(node, ct)` returns what
    a node saved, just before its pullback, if the node itself does not contain it.
    """
    cotangents: dict[int, Any] = {}
    queue: list[Any] = []
    for node, seed in seeds:
        contribute(cotangents, queue, node, seed if structural is None else structural.seed_where_zero(seed))
    results: dict[int, Any] = {leaf[SERIAL]: ZERO for leaf in leaves}
    watch = None if PULLING.get() is None else value_in_force(PULLING)
    is_plain = watch is None and opened is None and structural is None
    before = copy_context()
    try:
        with errors_ignored():
            while queue:
                node = heappop(queue)
                serial, rule, parents, needs_cotangent, saved, params, _ = node
                ct = cotangents.pop(serial)
                if serial in results:
                    results[serial] = ct
                if not is_plain:
                    if watch is not None:
                        watch.serial = serial
                    if opened is not None:
                        saved = opened(node, ct)
                    if structural is not None and not rule.covers:
                        ct = structural.lifted(ct)
                for parent, contribution in zip(parents, rule.pull(ct, needs_cotangent, saved, params)):  # noqa: B905  (slow)
                    if contribution is not ZERO and parent is not None:  # `contribute`, written out for speed
                        serial = parent[SERIAL]
                        if serial not in cotangents:
                            cotangents[serial] = contribution
                            heappush(queue, parent)
                        else:
                            total = cotangents[serial]
                            are_arrays = type(total) is ndarray and type(contribution) is ndarray
                            cotangents[serial] = total + contribution if are_arrays else accumulate(total, contribution)
                del node, parents, saved
    except BaseException as error:
        restore_error_state(error, before)
        raise
    if watch is not None:
        watch.serial = None
    if structural is not None:
        return [without_mask(results[leaf[SERIAL]]) for leaf in leaves]
    return [results[leaf[SERIAL]] for leaf in leaves]


def contribute(cotangents: dict[int, Any], queue: list[Any], node: Any, ct: Any) -> None:
    """Add to the cotangent of a node, which joins the queue if it has none yet."""
    serial = node[SERIAL]
    if serial in cotangents:
        cotangents[serial] = accumulate(cotangents[serial], ct)
    else:
        cotangents[serial] = ct
        heappush(queue, node)


def accumulate(x: Any, y: Any) -> Any:
    """The sum of two cotangents of one node (for a node with several outputs: of its {position: cotangent})."""
    if type(x) is dict:
        merged = dict(x)
        for position, ct in y.items():
            merged[position] = accumulate(merged[position], ct) if position in merged else ct
        return merged
    if has_mask(x) != has_mask(y):
        x, y = (x, x._interpreter.lift(y)) if has_mask(x) else (y._interpreter.lift(x), y)
    return add_tangents(x, y)
