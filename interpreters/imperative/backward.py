"""The walk that `backward` makes from roots to leaves, with hooks, and for graphs that are to be differentiated."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappop
from typing import Any

import numpy as np

from func.interpreters.core import ZERO, Array, Tracer, shape_of, unboxed
from func.interpreters.core.errors import FreedGraphError
from func.interpreters.core.modes import ANOMALY, NAN_SAFE
from func.interpreters.grad import LEAF, OUTPUT, PARENTS, RULE, SERIAL, contribute, has_nan, walk
from func.interpreters.imperative.anomalies import check_pulled
from func.interpreters.imperative.interpreter import Imperative, as_tensor
from func.interpreters.imperative.node_state import (
    CALL,
    CELL,
    FREED,
    HOOKS,
    LINE,
    SAVED,
    Freed,
    Packed,
    PackedValues,
    free,
    leading_to,
    node_name,
    unpacked,
)


class _NotPlain(Exception):
    """A node on the way has hooks, or values that are not simply there."""


class Walk:
    """One backward: from roots to leaves, all or nothing."""

    def __init__(self, interpreter: Imperative, retain: bool, create: bool) -> None:
        self.interpreter = interpreter
        self.retain = retain
        self.create = create
        self.captured: dict[int, Any] = {}
        self.retained: list[tuple[Any, Any]] = []
        self.leaves: list[tuple[Any, Any]] = []

    def run(self, seeds: Iterable[tuple[Any, Array]], targets: set[int] | None, accumulating: bool) -> None:
        """Pull the seeds back. `targets`: the nodes whose cotangents are wanted; None: all leaves."""
        seeds = list(seeds)
        plain = targets is None and not self.create and ANOMALY.get() is None and not NAN_SAFE.get()
        if plain and self._run_plainly(seeds):
            return
        needed = None if targets is None else leading_to(targets, [node for node, _ in seeds])
        cotangents: dict[int, Any] = {}
        queue: list[Any] = []
        for node, seed in seeds:
            if needed is None or node[SERIAL] in needed:
                contribute(cotangents, queue, node, seed)
        visited: list[Any] = []
        with np.errstate(all="ignore"):
            while queue:
                node = heappop(queue)
                ct = cotangents.pop(node[SERIAL])
                ct = self._hooked(node, ct)
                if targets is not None and node[SERIAL] in targets:
                    self.captured[node[SERIAL]] = ct
                if node[RULE] is LEAF:
                    if targets is None or (accumulating and node[SERIAL] in targets):
                        self.leaves.append((node, ct))
                    continue
                if needed is not None and not any([p is not None and p[SERIAL] in needed for p in node[PARENTS]]):
                    continue
                visited.append(node)
                parents = node[PARENTS]
                for place, contribution in enumerate(self._pull(node, ct, needed)):
                    parent = parents[place]
                    if contribution is not ZERO and parent is not None and (needed is None or parent[SERIAL] in needed):
                        contribute(cotangents, queue, parent, contribution)
        if not self.retain:
            for node in visited:
                free(node)

    def _run_plainly(self, seeds: Sequence[tuple[Any, Array]]) -> bool:
        """The walk where nothing but rows takes part. False, before anything has happened, where a hook is met or a
        gradient is NaN: then the careful walk is to be made."""
        visited: list[Any] = []
        leaves: list[Any] = []

        def opened(node: Any, ct: Any) -> Any:
            cell = node[CELL]
            if cell[HOOKS] is not None:
                raise _NotPlain
            if node[RULE] is LEAF:
                leaves.append((node, ct))
                return None
            saved = cell[SAVED]
            if type(saved) in (Freed, PackedValues, Packed):
                raise _NotPlain
            visited.append(node)
            return saved

        try:
            walk(seeds, (), False, opened)
        except _NotPlain:
            return False
        if any([has_nan(ct) for _, ct in leaves]):
            return False
        self.leaves = leaves
        if not self.retain:
            for node in visited:
                free(node)
        return True

    def _hooked(self, node: Any, ct: Any) -> Any:
        """The cotangent after the hooks of the tensor that the node stands for."""
        hooks = node[CELL][HOOKS]
        if hooks is None or type(ct) is dict:
            return ct
        for hook in list(hooks.tensor.values()):
            ct = replaced(hook(as_tensor(ct)), ct, "a tensor hook")
        if hooks.retain is not None and hooks.retain() is not None:
            self.retained.append((hooks.retain(), ct))
        return ct

    def _pull(self, node: Any, ct: Any, needed: set[int] | None) -> Sequence[Any]:
        _, primitive, parents, needs_cotangent, cell, _, _ = node
        hooks = cell[HOOKS]
        if hooks is not None and hooks.pre:
            for hook in list(hooks.pre.values()):
                ct = _replaced_all(hook(_as_tuple(ct)), ct)
        if primitive is OUTPUT:
            return ({cell[SAVED]: ct},)
        if cell[SAVED] is FREED:
            raise FreedGraphError(
                f"the graph was freed by an earlier backward (at {node_name(node)}). Pass retain_graph=True to the "
                "first backward or grad call if it is to be walked again."
            )
        if needed is not None:
            needs_cotangent = [
                w if p is not None and p[SERIAL] in needed else None
                for w, p in zip(needs_cotangent, parents, strict=True)
            ]
        try:
            contribution = self._contribution(node, ct, needs_cotangent)
        except Exception as error:
            if cell[LINE] is not None:
                error.add_note(f"while pulling back {node_name(node)}, whose forward operation was at {cell[LINE][0]}")
            raise
        if ANOMALY.get():
            check_pulled(node, ct, contribution)
        if hooks is not None and hooks.post:
            given = tuple([None if g is ZERO else as_tensor(g) for g in contribution])
            for hook in list(hooks.post.values()):
                result = hook(given, _as_tuple(ct))
                if result is not None:
                    given = tuple(result) if isinstance(result, (tuple, list)) else (result,)
                    contribution = [ZERO if g is None else unboxed(g) for g in given]
        return contribution

    def _contribution(self, node: Any, ct: Any, needs_cotangent: Sequence[Any]) -> Sequence[Any]:
        """The cotangents of the parents; to be differentiated again, they are computed from traced values."""
        _, primitive, parents, _, cell, params, _ = node
        saved = unpacked(cell[SAVED])
        if not self.create:
            contribution: Sequence[Any] = primitive.pull(ct, needs_cotangent, saved, params)
            if NAN_SAFE.get() or any([has_nan(g) for g in contribution]):
                contribution = primitive.pull_nan_safe(ct, needs_cotangent, saved, params)
            return contribution
        if cell[CALL] is not None:
            called, args, options = cell[CALL]
            args = tuple([unpacked(arg) for arg in args])
            _, pulling, saved = called.record(args, needs_cotangent, options or {})
            return pulling.pull(ct, needs_cotangent, saved, options)  # type: ignore[no-any-return]
        if saved is None:
            return primitive.pull(ct, needs_cotangent, saved, params)  # type: ignore[no-any-return]

        def lift(place: int | None, value: Any) -> Any:
            source = node if place is None else parents[place]
            return value if value is None or source is None else Tracer(self.interpreter, value, source)

        lifted = primitive.retraced(saved, lift)
        contribution = primitive.pull(ct, needs_cotangent, lifted, params)
        if NAN_SAFE.get() or any([has_nan(g) for g in contribution]):
            contribution = primitive.pull_nan_safe(ct, needs_cotangent, lifted, params)
        return contribution


def _as_tuple(ct: Any) -> tuple[Any, ...]:
    if type(ct) is dict:
        return tuple([as_tensor(ct[i]) if i in ct else None for i in range(max(ct) + 1)])
    return (as_tensor(ct),)


def replaced(result: Any, ct: Any, what: str) -> Any:
    """What a hook makes of a cotangent: its result, or the cotangent as it was."""
    if result is None:
        return ct
    result = unboxed(result)
    if shape_of(result) != shape_of(ct):
        raise RuntimeError(f"{what} changed the shape of the gradient from {shape_of(ct)} to {shape_of(result)}")
    return result


def _replaced_all(result: Any, ct: Any) -> Any:
    if result is None:
        return ct
    results = tuple(result) if isinstance(result, (tuple, list)) else (result,)
    if type(ct) is dict:
        return {i: unboxed(one) for i, one in enumerate(results) if one is not None}
    return unboxed(results[0])
