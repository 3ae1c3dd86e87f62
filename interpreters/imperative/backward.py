"""The backward pass of tensors: from roots to leaves, with hooks, and of graphs that are to be differentiated again."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from contextvars import ContextVar, copy_context
from heapq import heappop
from typing import Any

from func.backends.array_memory import enter, enter_after_interrupt, leave
from func.backends.quiet import errors_ignored
from func.interpreters import nan_safe
from func.interpreters.compiled_backward import BACKWARD, BY_NODES
from func.interpreters.core import ZERO, Array, Tracer, dtype_of, is_inexact, shape_of, snapshot, zeros_like
from func.interpreters.core.errors import BackwardError, FreedGraphError
from func.interpreters.core.modes import Setting, anomaly, holding, value_in_force
from func.interpreters.core.scopes import live_entry, restore_error_state
from func.interpreters.core.wiring import WIRING
from func.interpreters.grad import AVAL, LEAF, OUTPUT, PARENTS, PULLING, RULE, SERIAL, contribute, walk
from func.interpreters.imperative.anomalies import check_pullback
from func.interpreters.imperative.interpreter import Imperative, as_tensor
from func.interpreters.imperative.node_state import (
    CALL,
    FREED,
    HOOKS,
    LINE,
    PUT_AWAY,
    SAVED,
    STATE,
    fitted,
    free,
    leading_to,
    needs_general_pass,
    node_name,
    output_node,
    reachable,
    unpacked,
)
from func.interpreters.processes import LEDGER, agreed
from func.interpreters.structural_zeros import StructuralZeros, replaced_by, without_mask


class _NeedsGeneralPass(Exception):
    """A node has hooks, or values that are packed or freed."""


class BackwardPass:
    """One backward pass from seeds, pairs of a root and its cotangent.

    `targets` are the serials of the nodes whose cotangents are requested; None means all leaves. `retain` keeps the
    graph, `create` records the pullbacks.
    """

    def __init__(
        self,
        interpreter: Imperative,
        seeds: Iterable[tuple[Any, Array]],
        targets: set[int] | None,
        *,
        retain: bool,
        create: bool,
    ) -> None:
        self.interpreter = interpreter
        self.seeds = list(seeds)
        self.targets = targets
        self.retain = retain
        self.create = create
        self.captured: dict[int, Any] = {}
        """The cotangents of the targets, by serial."""
        self.retained: list[tuple[Any, Any]] = []
        """(tensor state, cotangent) of tensors that retain their gradient."""
        self.leaves: list[tuple[Any, Any]] = []
        """(leaf node, cotangent) of the leaves whose gradient is accumulated."""
        self.notes: dict[Any, Any] = {}
        """The memory of hooks on several tensors during this pass."""
        self._needed: set[int] | None = None
        self._is_general: bool | None = None
        self.attempt: nan_safe.Attempt | None = None
        """Where rules of users are not to be called again."""

    @property
    def needed(self) -> set[int]:
        """The serials of the nodes that the pass visits."""
        if self._needed is None:
            roots = [node for node, _ in self.seeds]
            self._needed = reachable(roots) if self.targets is None else leading_to(self.targets, roots)
        return self._needed

    def run(self, accumulating: bool) -> None:
        """Pull the seeds back. Nothing outside of this object changes if it fails, except what hooks do."""
        mark = enter()
        if mark is None and live_entry() is None:
            mark = enter_after_interrupt()
        try:
            self._run_safely(accumulating)
        finally:
            leave(mark)

    def _run_safely(self, accumulating: bool) -> None:
        if self.create or not nan_safe.Attempt.ever or nan_safe.are_zeros_structural():
            self._run(accumulating)
            return
        self.attempt = nan_safe.Attempt(self._check_tentative)
        try:
            with nan_safe.in_attempt(self.attempt):
                self._run(accumulating)
        finally:
            self.attempt = None  # the two refer to each other, and would wait for the garbage collector

    def _run(self, accumulating: bool) -> None:
        can_be_fast = self.targets is None and not self.create and anomaly() is None
        if can_be_fast and not nan_safe.are_zeros_structural() and self._run_fast():
            return
        before = copy_context()
        with holding(_CURRENT_PASS, weakref.ref(self)):
            try:
                is_plain = not self.create and not nan_safe.are_zeros_structural()
                if not (is_plain and self._run_without_hooks(accumulating)):
                    self._start_again(is_tentative=False)
                    self._run_general(accumulating, StructuralZeros())
            except BaseException as error:
                restore_error_state(error, before)
                raise

    def _check_tentative(self) -> None:
        """Before a tentative pass calls a rule of a user: with hooks or packed values it would start again."""
        if self._is_general is None:
            self._is_general = needs_general_pass([node for node, _ in self.seeds])
        if self._is_general:
            raise nan_safe.StartAgain

    def _start_again(self, is_tentative: bool) -> None:
        if self.attempt is not None:
            self.attempt.start_again(is_tentative)

    def _run_without_hooks(self, accumulating: bool) -> bool:
        """The pass by plain rules; False, before any change, for a hook or a NaN gradient."""
        self._start_again(is_tentative=True)
        moment = LEDGER.moment
        try:
            visited = self._run_general(accumulating, None)
        except (_NeedsGeneralPass, nan_safe.StartAgain):
            visited = None
        cotangents = [*self.captured.values(), *[ct for _, ct in self.leaves]]
        nan_safe.note_pullback(cotangents)
        if visited is None or agreed(nan_safe.any_nan(cotangents), moment):
            self.captured, self.leaves = {}, []
            return False
        self._free(visited)
        return True

    def _run_fast(self) -> bool:
        """The pass without hooks; False, before any change, for a hook or a NaN gradient."""
        if self._run_compiled():
            return True
        visited: list[Any] = []
        leaves: list[Any] = []

        def opened(node: Any, ct: Any) -> Any:
            state = node[STATE]
            if state[HOOKS] is not None:
                raise _NeedsGeneralPass
            if node[RULE] is LEAF:
                leaves.append((node, ct))
                return None
            saved = state[SAVED]
            if type(saved) in PUT_AWAY:
                raise _NeedsGeneralPass
            visited.append(node)
            return saved

        moment = LEDGER.moment
        try:
            walk(self.seeds, (), None, opened)
        except (_NeedsGeneralPass, nan_safe.StartAgain):
            return False
        cotangents = [ct for _, ct in leaves]
        nan_safe.note_pullback(cotangents)
        if agreed(nan_safe.any_nan(cotangents), moment):
            return False
        self.leaves = leaves
        self._free(visited)
        return True

    def _run_compiled(self) -> bool:
        """The pass by code, where there is some for the graph; False, before any change, elsewhere."""
        if not (BACKWARD.is_on and (BACKWARD.on_host or BACKWARD.on_device)) or BY_NODES.get() or PULLING.get():
            return False
        signature = _signature(self.seeds)
        history = BACKWARD.histories.get(signature)
        if history is None:
            history = BACKWARD.new_history(signature)
        for read in history.matchers:
            found = read(self.seeds)
            if found is not None:
                cotangents, leaves, pulled = found
                self.leaves = sorted(zip(leaves, cotangents, strict=True), key=_serial_of_leaf)
                self._free(pulled)
                return True
        if history.waits:
            history.waits -= 1
        else:
            WIRING.note_backward(self.seeds, history)
        return False

    def _run_general(self, accumulating: bool, structural: StructuralZeros | None) -> list[Any]:
        """The pass with `structural` and hooks, or without both. The nodes that were pulled back."""
        targets = self.targets
        needed = None if targets is None else self.needed
        cotangents: dict[int, Any] = {}
        queue: list[Any] = []
        for node, seed in self.seeds:
            if needed is None or node[SERIAL] in needed:
                contribute(cotangents, queue, node, seed if structural is None else structural.seed_where_zero(seed))
        visited: list[Any] = []
        with errors_ignored():
            while queue:
                node = heappop(queue)
                serial, parents = node[SERIAL], node[PARENTS]
                ct = cotangents.pop(serial)
                if node[STATE][HOOKS] is not None:
                    if structural is None:
                        raise _NeedsGeneralPass
                    ct = self._after_tensor_hooks(node, ct)
                if targets is not None and serial in targets:
                    self.captured[serial] = without_mask(ct)
                if node[RULE] is LEAF:
                    if accumulating and (targets is None or serial in targets) and is_accumulated(node):
                        self.leaves.append((node, without_mask(_after_prehooks(node, ct))))
                    continue
                if needed is not None and not any([p is not None and p[SERIAL] in needed for p in parents]):
                    continue
                visited.append(node)
                if structural is not None and not node[RULE].covers:
                    ct = structural.lifted(ct)
                for place, contribution in enumerate(self._pull(node, ct)):
                    parent = parents[place]
                    if contribution is not ZERO and parent is not None and (needed is None or parent[SERIAL] in needed):
                        contribute(cotangents, queue, parent, contribution)
        if structural is not None:
            self._free(visited)
        return visited

    def _free(self, visited: Sequence[Any]) -> None:
        if not self.retain:
            for node in visited:
                free(node)

    def _after_tensor_hooks(self, node: Any, ct: Any) -> Any:
        """The cotangent after the hooks of the node's tensor."""
        hooks = node[STATE][HOOKS]
        if type(ct) is dict:
            return ct
        for hook in list(hooks.tensor.values()):
            gradient = snapshot(as_tensor(without_mask(ct)))
            before = gradient._value
            result = hook(gradient)
            if result is None and gradient._value is not before:  # the hook wrote to it
                result = gradient
            ct = replaced_by(ct, replaced(result, ct, "a tensor hook"))
        if hooks.retain is not None and hooks.retain() is not None:
            self.retained.append((hooks.retain(), without_mask(ct)))
        return ct

    def _pull(self, node: Any, ct: Any) -> Sequence[Any]:
        """The cotangents of a node's parents, after the hooks of the node."""
        _, rule, parents, needs_cotangent, state, _, _ = node
        hooks = state[HOOKS]
        ct = _after_prehooks(node, ct)
        if rule is OUTPUT:
            return ({state[SAVED]: ct},)
        if state[SAVED] is FREED:
            raise FreedGraphError(
                f"the graph was freed by an earlier backward (at {node_name(node)}). Pass retain_graph=True to the "
                "first backward or grad call to use it again."
            )
        if self.targets is not None:
            needs_cotangent = [
                aval if parent is not None and parent[SERIAL] in self.needed else None
                for aval, parent in zip(needs_cotangent, parents, strict=True)
            ]
        try:
            contributions = self._contributions(node, ct, needs_cotangent)
        except Exception as error:
            if state[LINE] is not None:
                error.add_note(f"while pulling back {node_name(node)}, whose forward operation was at {state[LINE][0]}")
            raise
        if anomaly():
            check_pullback(node, without_masks(ct), [without_mask(c) for c in contributions])
        if hooks is not None and hooks.post:
            for hook in list(hooks.post.values()):
                gradients = tuple([None if c is ZERO else as_tensor(without_mask(c)) for c in contributions])
                contributions = _all_replaced(hook(gradients, _as_tuple(ct)), contributions, "a hook")
        return contributions

    def _contributions(self, node: Any, ct: Any, needs_cotangent: Sequence[Any]) -> Sequence[Any]:
        """The cotangents of the parents by the node's rule; on traced values if they are to be differentiated again."""
        _, rule, parents, _, state, params, _ = node
        if self.create and state[CALL] is not None:
            primitive, args, options = state[CALL]
            _, recorded_rule, saved = primitive.record(unpacked(args), needs_cotangent, options or {})
            if recorded_rule is None:  # no output depends on the targets
                return [ZERO] * len(parents)
            return recorded_rule.pull(ct, needs_cotangent, saved, options)  # type: ignore[no-any-return]
        saved = unpacked(state[SAVED])
        if self.create:
            if saved is None:
                return rule.pull(ct, needs_cotangent, saved, params)  # type: ignore[no-any-return]

            def lift(place: int | None, value: Any, output: int | None = None) -> Any:
                if value is None:
                    source = None
                elif output is not None:
                    source = output_node(node, output, value) if is_inexact(dtype_of(value)) else None
                elif place is None:
                    source = node
                else:
                    source = parents[place] if place < len(parents) else None
                return value if source is None else Tracer(self.interpreter, value, source)

            saved = rule.retraced(saved, lift)

        return rule.pull(ct, needs_cotangent, saved, params)  # type: ignore[no-any-return]


def _serial_of_leaf(pair: tuple[Any, Any]) -> int:
    serial: int = pair[0][SERIAL]
    return serial


DEPTH = 6
"""Nodes that distinguish passes from outside."""


def _signature(seeds: Sequence[tuple[Any, Array]]) -> Any:
    """The quickly found constant of passes over one graph: some of its last nodes."""
    signature: list[Any] = [len(seeds)]
    node = seeds[0][0] if seeds else None
    while node is not None and len(signature) < 2 * DEPTH:
        aval, parents = node[AVAL], node[PARENTS]
        signature += node[RULE], aval and aval.shape
        node = parents[0] if parents else None
    return tuple(signature)


_CURRENT_PASS: ContextVar[Setting | None] = ContextVar("func_backward_pass", default=None)
"""A weak reference to the pass that runs."""


def current_pass() -> BackwardPass:
    """The backward pass that calls the running hook."""
    reference = value_in_force(_CURRENT_PASS)
    current = None if reference is None else reference()
    assert isinstance(current, BackwardPass)
    return current


def is_accumulated(leaf: Any) -> bool:
    """Whether the tensor of a leaf node is alive and requires a gradient."""
    state = leaf[STATE][SAVED]()
    tensor = None if state is None else state.owner()
    return tensor is not None and tensor._attached is leaf


def _after_prehooks(node: Any, ct: Any) -> Any:
    """The cotangent of a node after the hooks that run before its pullback, or before its accumulation."""
    hooks = node[STATE][HOOKS]
    if hooks is not None:
        for hook in list(hooks.pre.values()):
            result = hook(_as_tuple(ct))
            if result is not None:
                is_one = type(ct) is not dict
                cts = [ct] if is_one else [ct.get(i, ZERO) for i in range(max(ct) + 1)]
                outs = {
                    i: zeros_like(cts[i]) if new is ZERO else new
                    for i, new in enumerate(_all_replaced(result, cts, "a prehook"))
                    if cts[i] is not ZERO
                }
                ct = outs[0] if is_one else outs
    return ct


def run_posthooks(leaf: Any, ct: Any) -> None:
    """Call the hooks of a leaf's node that run after the accumulation of its gradient."""
    hooks = leaf[STATE][HOOKS]
    if hooks is not None:
        for hook in list(hooks.post.values()):
            hook((), _as_tuple(ct))


def _as_tuple(ct: Any) -> tuple[Any, ...]:
    ct = without_masks(ct)
    if type(ct) is dict:
        return tuple([as_tensor(ct[i]) if i in ct else None for i in range(max(ct) + 1)])
    return (as_tensor(ct),)


def without_masks(ct: Any) -> Any:
    """A cotangent, or {position: cotangent}, alone."""
    return {i: without_mask(x) for i, x in ct.items()} if type(ct) is dict else without_mask(ct)


def replaced(result: Any, ct: Any, hook: str) -> Any:
    """The result of a hook in the shape and dtype of a cotangent, or the cotangent if the hook returned None."""
    return ct if result is None else fitted(result, shape_of(ct), dtype_of(ct), hook)


def _all_replaced(result: Any, cts: Sequence[Any], hook: str) -> Sequence[Any]:
    """The gradients that a hook of a node returned in a tuple, ZERO for None; the old ones if it returned None."""
    if result is None:
        return cts
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    while len(results) < len(cts) and all([ct is ZERO for ct in cts[len(results) :]]):
        results.append(None)  # of arguments without a gradient
    if len(results) != len(cts):
        raise BackwardError(
            f"{hook} of a node returned {len(results)} gradients in place of {len(cts)}; return a tuple with a "
            "gradient or None for each, or None to keep them"
        )
    if any([new is not None and old is ZERO for new, old in zip(results, cts, strict=True)]):
        raise BackwardError(f"{hook} of a node returned a gradient in place of None; return None there")
    return [ZERO if new is None else replaced(new, old, hook) for new, old in zip(results, cts, strict=True)]
