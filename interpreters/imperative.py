"""Reverse mode without a transform around it: an interpreter that stays open, and the walk that `backward` makes.

The graph is that of the grad interpreter. Its nodes own a cell, a list that can change: what the partials name (until
the graph is freed), hooks, the row with its arguments where only these can be differentiated again, and the line.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush
from typing import Any

import numpy as np

from func.interpreters.core import (
    CURRENT,
    EVALUATE,
    ZERO,
    Array,
    Aval,
    Interpreter,
    Params,
    Primitive,
    Tracer,
    dtype_of,
    innermost,
    shape_of,
    unboxed,
)
from func.interpreters.errors import AnomalyError, FreedGraphError, InferenceTensorError, LeafError
from func.interpreters.grad import INDEX, LEAF, OUTPUT, Grad, accumulate, has_nan, leaf_node
from func.interpreters.modes import ANOMALY, GUARDED, MODE, SAVING, WATCHED, is_suspended
from func.interpreters.source import Line, user_line

SAVED, HOOKS, CALL, LINE = 0, 1, 2, 3
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


class Imperative(Grad):
    """The grad interpreter of one place in the nest of transforms; it never has a driver that closes it on return."""

    __slots__ = ()

    def leaf(self, value: Array, state: State) -> Any:
        """A new leaf node, which knows its tensor's state but does not own it."""
        index, row, parents, wanted, _, params, aval = leaf_node(Aval(shape_of(value), dtype_of(value)))
        return (index, row, parents, wanted, Cell((weakref.ref(state), None, None, None)), params, aval)

    def apply1(self, row: Primitive, x: Tracer) -> Any:
        out = super().apply1(row, x)
        return self._celled(out, row, (x,)) if type(out) is Tracer and out.interpreter is self else out

    def apply2(self, row: Primitive, x: Array, y: Array) -> Any:
        if _SEEN_INFERENCE[0]:
            self._refuse_inference((x, y))
        out = super().apply2(row, x, y)
        return self._celled(out, row, (x, y)) if type(out) is Tracer and out.interpreter is self else out

    def apply(self, row: Primitive, args: tuple[Array, ...], params: Params) -> Any:
        if _SEEN_INFERENCE[0]:
            self._refuse_inference(args)
        out = super().apply(row, args, params)
        if row.multiple and type(out) is tuple:
            return self._celled_several(out, row, args)
        return self._celled(out, row, args) if type(out) is Tracer and out.interpreter is self else out

    def unrecorded(self, row: Primitive, args: tuple[Array, ...], params: Params) -> Any:
        """The row on the values alone; arrays stay tensors."""
        out = super().unrecorded(row, args, params)
        if row.multiple:
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

    def _celled(self, out: Tracer, row: Primitive, args: tuple[Array, ...]) -> Tracer:
        index, pulling, parents, wanted, saved, params, aval = out.attached
        if type(saved) is Cell:  # apply2 has handed on to apply
            return out
        cell = Cell((saved, None, None, None))
        if saved is not None and not hasattr(pulling, "retraced"):
            cell[CALL] = (row, tuple([fresh(arg) for arg in args]), params)
        if WATCHED[0]:
            if SAVING.get():
                _pack(cell)
            if ANOMALY.get() is not None:
                cell[LINE] = _watched_line(row, args, (out.value,))
        out.attached = (index, pulling, parents, wanted, cell, params, aval)
        return out

    def _celled_several(self, outs: tuple[Any, ...], row: Primitive, args: tuple[Array, ...]) -> tuple[Any, ...]:
        """One cell for the node that several outputs have in common."""
        common: Any = None
        for out in outs:
            if type(out) is Tracer and out.interpreter is self:
                index, pulling, parents, _, place, params, aval = out.attached
                if type(place) is Cell:
                    return outs
                if common is None:
                    (old,) = parents
                    cell = Cell((old[4], None, (row, tuple([fresh(arg) for arg in args]), old[5]), None))
                    if ANOMALY.get() is not None:
                        cell[LINE] = _watched_line(
                            row, args, tuple([o.value if type(o) is Tracer else o for o in outs])
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
    found: Imperative | None = getattr(transform, "ambient", None)
    if found is None:
        found = transform.ambient = Imperative("backward")
        found.level = transform.level + 0.5
    return found


# --- writing ----------------------------------------------------------------------------------------------------


class Detached:
    """Marks a value that was written through a detached view: history is kept, as the writing is not recorded."""


DETACHED = Detached()


def is_leaf_node(node: Any) -> bool:
    """Whether a node is a leaf's."""
    return node[1] is LEAF


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


def update(row: Primitive | None, box: Tracer, other: Any) -> bool:
    """x += v and its kin on a tensor that is not recorded and shares no memory: the plain case of `rewrite`."""
    if row is None or MODE.get() is None or not is_suspended(box.interpreter.level):
        return False
    if getattr(box, "views", None) or getattr(box, "view_of", None) is not None:
        return False
    value, other = box.value, unboxed(other)
    if type(value) is not np.ndarray or type(other) is Tracer:
        return False
    new = row(value, other)
    if type(new) is not np.ndarray or new.dtype != value.dtype or new.shape != value.shape:
        return False
    box.value = new
    state_of(box).version += 1
    return True


# --- saved values in other hands --------------------------------------------------------------------------------


def _pack(cell: list[Any]) -> None:
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


def _unpacked(saved: Any) -> Any:
    if type(saved) is Packed:
        return unboxed(saved.unpack(saved.held))
    if type(saved) is PackedValues:
        return [_unpacked(value) for value in saved]
    return saved


# --- the walk ---------------------------------------------------------------------------------------------------


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
        plain = targets is None and not self.create and ANOMALY.get() is None and not GUARDED.get()
        if plain and self._run_plainly(seeds):
            return
        needed = None if targets is None else leading_to(targets, [node for node, _ in seeds])
        cotangents: dict[int, Any] = {}
        queue: list[Any] = []
        for node, seed in seeds:
            if needed is None or node[INDEX] in needed:
                _give(cotangents, queue, node, seed)
        visited: list[Any] = []
        with np.errstate(all="ignore"):
            while queue:
                node = heappop(queue)
                ct = cotangents.pop(node[INDEX])
                ct = self._hooked(node, ct)
                if targets is not None and node[INDEX] in targets:
                    self.captured[node[INDEX]] = ct
                if node[1] is LEAF:
                    if targets is None or (accumulating and node[INDEX] in targets):
                        self.leaves.append((node, ct))
                    continue
                if needed is not None and not any([p is not None and p[INDEX] in needed for p in node[2]]):
                    continue
                visited.append(node)
                parents = node[2]
                for place, grown in enumerate(self._pull(node, ct, needed)):
                    parent = parents[place]
                    if grown is not ZERO and parent is not None and (needed is None or parent[INDEX] in needed):
                        _give(cotangents, queue, parent, grown)
        if not self.retain:
            for node in visited:
                free(node)

    def _run_plainly(self, seeds: Sequence[tuple[Any, Array]]) -> bool:
        """The walk where nothing but rows takes part. False, before anything has happened, where a hook is met or a
        gradient is NaN: then the careful walk is to be made."""
        cotangents: dict[int, Any] = {}
        queue: list[Any] = []
        for node, seed in seeds:
            _give(cotangents, queue, node, seed)
        visited: list[Any] = []
        leaves: list[Any] = []
        with np.errstate(all="ignore"):
            while queue:
                node = heappop(queue)
                index, row, parents, wanted, cell, params, _ = node
                ct = cotangents.pop(index)
                if cell[HOOKS] is not None:
                    return False
                saved = cell[SAVED]
                if row is LEAF:
                    leaves.append((node, ct))
                    continue
                if type(saved) in (Freed, PackedValues, Packed):
                    return False
                visited.append(node)
                place = 0
                for grown in ({saved: ct},) if row is OUTPUT else row.pull(ct, wanted, saved, params):
                    parent = parents[place]
                    place += 1
                    if grown is ZERO or parent is None:
                        continue
                    index = parent[0]
                    before = cotangents.get(index)
                    if before is None:
                        cotangents[index] = grown
                        heappush(queue, parent)
                    else:
                        cotangents[index] = accumulate(before, grown)
        if any([has_nan(ct) for _, ct in leaves]):
            return False
        self.leaves = leaves
        if not self.retain:
            for node in visited:
                free(node)
        return True

    def _hooked(self, node: Any, ct: Any) -> Any:
        """The cotangent after the hooks of the tensor that the node stands for."""
        hooks = node[4][HOOKS]
        if hooks is None or type(ct) is dict:
            return ct
        for hook in list(hooks.tensor.values()):
            ct = replaced(hook(as_tensor(ct)), ct, "a tensor hook")
        if hooks.retain is not None and hooks.retain() is not None:
            self.retained.append((hooks.retain(), ct))
        return ct

    def _pull(self, node: Any, ct: Any, needed: set[int] | None) -> Sequence[Any]:
        _, row, parents, wanted, cell, _, _ = node
        hooks = cell[HOOKS]
        if hooks is not None and hooks.pre:
            for hook in list(hooks.pre.values()):
                ct = _replaced_all(hook(_as_tuple(ct)), ct)
        if row is OUTPUT:
            return ({cell[SAVED]: ct},)
        if cell[SAVED] is FREED:
            raise FreedGraphError(
                f"the graph was freed by an earlier backward (at {node_name(node)}). Pass retain_graph=True to the "
                "first backward or grad call if it is to be walked again."
            )
        if needed is not None:
            wanted = [w if p is not None and p[INDEX] in needed else None for w, p in zip(wanted, parents, strict=True)]
        try:
            grown = self._grown(node, ct, wanted)
        except Exception as error:
            if cell[LINE] is not None:
                error.add_note(f"while pulling back {node_name(node)}, whose forward operation was at {cell[LINE][0]}")
            raise
        if ANOMALY.get():
            _check_pulled(node, ct, grown)
        if hooks is not None and hooks.post:
            given = tuple([None if g is ZERO else as_tensor(g) for g in grown])
            for hook in list(hooks.post.values()):
                result = hook(given, _as_tuple(ct))
                if result is not None:
                    given = tuple(result) if isinstance(result, (tuple, list)) else (result,)
                    grown = [ZERO if g is None else unboxed(g) for g in given]
        return grown

    def _grown(self, node: Any, ct: Any, wanted: Sequence[Any]) -> Sequence[Any]:
        """The cotangents of the parents; to be differentiated again, they are computed from traced values."""
        _, row, parents, _, cell, params, _ = node
        saved = _unpacked(cell[SAVED])
        if not self.create:
            grown: Sequence[Any] = row.pull(ct, wanted, saved, params)
            if GUARDED.get() or any([has_nan(g) for g in grown]):
                grown = row.pull_guarded(ct, wanted, saved, params)
            return grown
        if cell[CALL] is not None:
            called, args, options = cell[CALL]
            args = tuple([_unpacked(arg) for arg in args])
            _, pulling, saved = called.record(args, wanted, options or {})
            return pulling.pull(ct, wanted, saved, options)  # type: ignore[no-any-return]
        if saved is None:
            return row.pull(ct, wanted, saved, params)  # type: ignore[no-any-return]

        def lift(place: int | None, value: Any) -> Any:
            source = node if place is None else parents[place]
            return value if value is None or source is None else Tracer(self.interpreter, value, source)

        lifted = row.retraced(saved, lift)
        grown = row.pull(ct, wanted, lifted, params)
        if GUARDED.get() or any([has_nan(g) for g in grown]):
            grown = row.pull_guarded(ct, wanted, lifted, params)
        return grown


def _give(cotangents: dict[int, Any], queue: list[Any], node: Any, ct: Any) -> None:
    before = cotangents.get(node[INDEX])
    if before is None:
        cotangents[node[INDEX]] = ct
        heappush(queue, node)
    else:
        cotangents[node[INDEX]] = accumulate(before, ct)


def reachable(seeds: Sequence[tuple[Any, Any]]) -> set[int]:
    """The indices of all nodes that some roots depend on, the roots among them."""
    seen: set[int] = set()
    stack = [node for node, _ in seeds]
    while stack:
        node = stack.pop()
        if node[INDEX] not in seen:
            seen.add(node[INDEX])
            stack.extend([parent for parent in node[2] if parent is not None])
    return seen


def leading_to(targets: set[int], roots: Sequence[Any]) -> set[int]:
    """The nodes from which some target can be reached, the targets among them."""
    children: dict[int, list[int]] = {}
    seen: set[int] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node[INDEX] in seen:
            continue
        seen.add(node[INDEX])
        for parent in node[2]:
            if parent is not None:
                children.setdefault(parent[INDEX], []).append(node[INDEX])
                stack.append(parent)
    needed: set[int] = set()
    grow = [index for index in targets if index in seen]
    while grow:
        index = grow.pop()
        if index not in needed:
            needed.add(index)
            grow.extend(children.get(index, ()))
    return needed


def free(node: Any) -> None:
    """Release what a node has saved."""
    cell = node[4]
    saved = cell[SAVED]
    if isinstance(saved, (tuple, list)) and all([value is None for value in saved]):
        saved = None
    if node[1] is not LEAF and node[1] is not OUTPUT and saved is not None:
        cell[CALL] = None if cell[CALL] is None else node_name(node)
        cell[SAVED] = FREED


def as_tensor(value: Any) -> Any:
    """A cotangent as hooks and users see it: a tensor."""
    return value if type(value) is Tracer else Tracer(EVALUATE, value, None)


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


def node_name(node: Any) -> str:
    """The name of a node's operation: SinBackward; the class's for a Function; AccumulateGrad for leaves."""
    row, call = node[1], node[4][CALL]
    if row is LEAF:
        return "AccumulateGrad"
    if isinstance(call, str):
        return call
    if call is None:
        return name_of(row)
    fun = (call[2] or {}).get("fun")
    named = getattr(getattr(fun, "__self__", fun), "cls", None)
    return name_of(call[0]) if named is None else f"{named.__name__}Backward"


def name_of(row: Any) -> str:
    """A row's name as node names are written: SinBackward."""
    name = getattr(row, "name", type(row).__name__)
    return "".join([part.capitalize() for part in str(name).split("_")]) + "Backward"


# --- anomalies --------------------------------------------------------------------------------------------------


def _summary(value: Any) -> str:
    bottom = innermost(value)
    array = np.asarray(bottom.get() if hasattr(bottom, "get") else bottom)
    if array.size == 0 or array.dtype.kind not in "fc":
        return f"{array.dtype}{list(array.shape)}"
    finite = np.abs(array[np.isfinite(array)])
    span = f"|x| from {finite.min():.3g} to {finite.max():.3g}" if finite.size else "nothing finite"
    return f"{array.dtype}{list(array.shape)}, {span}, {array.size - finite.size} not finite"


def first_bad(value: Any) -> tuple[int, ...] | None:
    """The first index at which a value is NaN or infinite."""
    bottom = innermost(value)
    if bottom is None or not hasattr(bottom, "dtype") or bottom.dtype.kind not in "fc":
        return None
    array = np.asarray(bottom.get() if hasattr(bottom, "get") else bottom)
    if array.ndim == 0:
        return None if np.isfinite(array) else ()
    places = np.argwhere(~np.isfinite(array))
    return tuple(places[0].tolist()) if len(places) else None


def describe_anomaly(what: str, line: Line | None, operands: Sequence[Any], out: Any) -> str:
    """An error's words: what happened, at which line, from which operands, and where."""
    bottom = innermost(out)
    array = np.asarray(bottom.get() if hasattr(bottom, "get") else bottom)
    index = first_bad(out)
    shown = "" if index is None else f" at index {index}" if index else ""
    listed = "".join([f"\n  operand {i}: {_summary(x)}" for i, x in enumerate(operands)])
    value = array[index] if index is not None else array
    return f"{what} is {value}{shown}\n  computed at {line}{listed}"


def _watched_line(row: Any, args: Sequence[Any], outs: Sequence[Any]) -> tuple[Any, ...]:
    line = user_line(3)
    if ANOMALY.get():
        for out in outs:
            if first_bad(out) is not None and all([first_bad(arg) is None for arg in args]):
                raise AnomalyError(describe_anomaly(f"the result of {row.name}", line, args, out))
    return (line, tuple([_summary(arg) for arg in args]))


def _check_pulled(node: Any, ct: Any, grown: Sequence[Any]) -> None:
    for place, one in enumerate(grown):
        if one is ZERO or type(one) is dict:
            continue
        index = first_bad(one)
        if index is not None and (type(ct) is dict or first_bad(ct) is None):
            line, operands = node[4][LINE] or (None, ())
            listed = "".join([f"\n  operand {i}: {x}" for i, x in enumerate(operands)])
            raise AnomalyError(
                f"{node_name(node)} returned {'nan' if has_nan(one) else 'a value that is not finite'} in its "
                f"{place}th output{f', at index {index}' if index else ''}\n"
                f"  the forward operation was at {line or 'an unrecorded line: enter detect_anomaly before it'}{listed}"
            )
