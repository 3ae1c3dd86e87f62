"""Arguments that share memory: `f(a, a)`, or overlapping views of one array.

Each argument of a transformed call is traced as an array by itself, so a write to one of them would not reach the
others, as it does in NumPy. Where arguments share memory, a write to one makes the later uses of the others errors.
Calls whose arguments share nothing pay for comparing the owners of their memory, and nothing else.
"""

from __future__ import annotations

import operator
import types
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy import ndarray

from func import tree
from func.backends.records import Record
from func.interpreters.core import Array, ClosedInterpreter, Interpreter, Tracer, snapshot
from func.interpreters.core.errors import SharedMemoryError
from func.interpreters.core.scopes import live_entries
from func.interpreters.host.source import Line, at_line, user_line
from func.interpreters.program.program import Program, Var
from func.interpreters.stage import Stage
from func.numpy.memory import set_argument_layouts, shares_memory

COPY_HINT = "Pass a copy (x.copy()) where a function writes to an argument that shares memory with another one."
LOST_HINT = "Let the function write to a copy (x = x.copy()) and return it, or pass it a copy."
MAX_WORK = 10_000
"""How long NumPy may look for a common element of two strided arrays; those that take longer count as sharing one."""
FOREIGN = object()
"""The owner of memory that does not belong to NumPy: a buffer may have many such arrays."""


class SharedArgument(Record):
    """An argument that may share memory with others: its box, if it is traced, and what the caller gave."""

    box: weakref.ref[Tracer] | None
    given: Array


class SeparateMemory(NamedTuple):
    """What must not share memory in a call: pairs of arguments, and arguments with arrays of the function's scope."""

    pairs: tuple[tuple[int, int], ...] = ()
    in_scope: tuple[tuple[int, np.ndarray[Any, Any]], ...] = ()


class SharedArguments:
    """The arguments of a call in groups that share memory."""

    def __init__(self, groups: Sequence[Sequence[SharedArgument]] = ()) -> None:
        self.groups = groups

    def group_of(self, box: Tracer) -> Sequence[SharedArgument]:
        """The group of a traced argument; nothing for other boxes."""
        for group in self.groups:
            if any([argument.box is not None and argument.box() is box for argument in group]):
                return group
        return ()

    def partners(self, box: Tracer) -> list[SharedArgument]:
        """The other arguments that have an element of memory in common with a traced one."""
        group = self.group_of(box)
        given = [argument.given for argument in group if argument.box is not None and argument.box() is box]
        others = [argument for argument in group if argument.box is None or argument.box() is not box]
        return [argument for argument in others if overlap(given[0], argument.given)]


class TracedArguments(SharedArguments):
    """The arguments of a function that is traced into a Program, which may be given others that share memory later."""

    def __init__(self, stage: Stage, boxes: Sequence[Tracer], groups: Sequence[Sequence[SharedArgument]]) -> None:
        super().__init__(groups)
        self._boxes = [weakref.ref(box) for box in boxes]
        self._stage = stage
        self._written: dict[int, int] = {}
        """The arguments that were written, and the number of equations after the first write."""
        self.in_scope: dict[tuple[int, int], tuple[int, np.ndarray[Any, Any]]] = {}
        """The arguments that were written, each with an array that the writing function reads from its scope."""

    def note_write(self, box: Tracer, writer: Interpreter) -> None:
        """Note that a box has been written, if it is an argument, by the function that an interpreter runs."""
        for i, ref in enumerate(self._boxes):
            if ref() is box:
                self._written.setdefault(i, len(self._stage.equations))
                functions = [] if writer.called is None else [writer.called[0]]
                functions += [function for ref, function, _ in writer.inner_calls if ref() is not None]
                for function in functions:
                    arrays = [array for _, array in _arrays_in_scope(function) if type(array) is ndarray]
                    self.in_scope |= {(i, id(array)): (i, array) for array in arrays}

    @property
    def written(self) -> set[int]:
        """The places of the arguments that have been written."""
        return set(self._written)

    def separate(self, program: Program) -> tuple[tuple[int, int], ...]:
        """The pairs of arguments that must not share memory: one is written, and the other is used after that."""
        if not self._written:
            return ()
        kept = set(map(id, program.equations))
        pairs = set()
        for written, start in self._written.items():
            used = _read_after(self._stage, start, kept) | {id(out) for out in program.outputs}
            for i, var in enumerate(program.inputs):
                if i != written and (i in self._written or not used.isdisjoint(_views_of(self._stage, var))):
                    pairs.add((min(i, written), max(i, written)))
        return tuple(sorted(pairs))


def _read_after(stage: Stage, start: int, kept: set[int]) -> set[int]:
    """The ids of the variables that the equations of a program read from one of them on."""
    return {id(x) for equation in stage.equations[start:] if id(equation) in kept for x in equation.inputs}


def _views_of(stage: Stage, var: Var) -> set[int]:
    """The ids of a variable and of what may be a view of it."""
    views = {id(var)}
    for equation in stage.equations:
        if equation.primitive.view and any([id(x) in views for x in equation.inputs]):
            views.update(map(id, equation.outputs))
    return views


class StaleArgument(ClosedInterpreter):
    """Owns an argument whose memory was written through another one."""

    def __init__(self, transform: str, line: Line | None) -> None:
        self.transform = transform
        self.line = line
        self.level = float("inf")

    def _refuse(self, tracer: Tracer | None = None) -> NoReturn:
        place = f"\n  written at {self.line}" if self.line is not None else ""
        raise SharedMemoryError(
            f"an argument of a function under func.{self.transform} is used after another argument was written that "
            "shares memory with it. In NumPy it would have the new numbers; here each argument is an array by itself"
            f"{place}\n  used{at_line()}\n{COPY_HINT}"
        )


class Loss(Record):
    """Why what a function has written to its arguments does not reach the caller."""

    is_what: str
    reason: str


BY_RULE = Loss("which has a custom rule,", "the rule says nothing of their derivative")
BY_ERROR = Loss("which is checkpointed and raised an error,", "those of a run without an end are lost")


class LostWrite(StaleArgument):
    """Owns a value that a function was given and has written in vain, and what shares its memory."""

    def __init__(self, interpreter: Interpreter, function: Callable[..., Any], loss: Loss) -> None:
        super().__init__(interpreter.transform, user_line(2))
        self.function = _name_of(function)
        self.loss = loss

    def _refuse(self, tracer: Tracer | None = None) -> NoReturn:
        place = f"\n  called at {self.line}" if self.line is not None else ""
        raise SharedMemoryError(
            f"an array is used after {self.function}, {self.loss.is_what} wrote to it. In NumPy it "
            f"would have the new numbers; {self.loss.reason}{place}\n  used{at_line()}\n{LOST_HINT}"
        )


def lose_writes(
    function: Callable[..., Any], leaves: Sequence[Array], written: Iterable[int], loss: Loss = BY_RULE
) -> None:
    """Make the later uses of arguments errors that a function with a custom rule, or one that raised, has written.

    It got copies, so nobody sees the new numbers. Raises: SharedMemoryError for arrays and tensors, which can be used
    after the transform.
    """
    for i in sorted(written):
        root = _root_of(leaves[i]) if type(leaves[i]) is Tracer else None
        if root is None or root._interpreter.level < 1:
            raise SharedMemoryError(
                f"{_name_of(function)}, {loss.is_what} writes to an argument. In NumPy the caller would "
                f"see the new numbers; {loss.reason}{at_line()}\n{LOST_HINT}"
            )
        interpreter = root._interpreter
        after_write(interpreter, leaves[i], root, before_write(root))
        _retire(root, LostWrite(interpreter, function, loss))


def note_arguments(
    interpreter: Interpreter, function: Callable[..., Any], boxes: Sequence[Array], given: Sequence[Array]
) -> None:
    """Note which arguments of a call share memory: the boxes of an interpreter, and what the caller gave for them.

    A box that is no traced value is an argument that is not traced.
    """
    interpreter.called = function, [*map(id, boxes)], given
    _note_shared(interpreter, boxes, given)


def note_inner_arguments(
    interpreter: Interpreter, function: Callable[..., Any], boxes: Sequence[Array], given: Sequence[Array]
) -> None:
    """The same for a function that runs under the interpreter of another one, whose arguments stay noted."""
    set_argument_layouts(boxes, given)
    calls = [
        (weakref.ref(box), function, weakref.ref(leaf))
        for box, leaf in zip(boxes, given, strict=True)
        if type(box) is Tracer and type(leaf) is Tracer
    ]
    interpreter.inner_calls = [*[call for call in interpreter.inner_calls if call[0]() is not None], *calls]
    _note_shared(interpreter, boxes, given)


def _note_shared(interpreter: Interpreter, boxes: Sequence[Array], given: Sequence[Array]) -> None:
    if Tracer in map(type, given):
        for box, leaf in zip(boxes, given, strict=True):
            if type(leaf) is Tracer:
                _follow(box, leaf)
    if len(given) > 1 and (groups := shared_groups(given)):
        known = [] if interpreter.shared is None else interpreter.shared.groups
        interpreter.shared = SharedArguments([*known, *_arguments(groups, boxes, given)])


def link_arguments(
    interpreter: Interpreter, function: Callable[..., Any], boxes: Sequence[Array], given: Sequence[Array]
) -> None:
    """Let the boxes of a call's arguments lie in memory as what the caller gave for them, and note which share it."""
    set_argument_layouts(boxes, given)
    note_arguments(interpreter, function, boxes, given)


def _follow(box: Array, leaf: Tracer) -> None:
    """Let the box of an argument that is a traced value be told of writes to that value, which it does not see."""
    if type(box) is Tracer:
        if box._value is leaf:
            box._value = snapshot(leaf)
        root = _root_of(leaf)
        views = getattr(root, "_views", None)
        if views is None:
            root._views = views = []
        views.append(weakref.ref(box))


def note_traced_arguments(
    stage: Stage, function: Callable[..., Any], boxes: Sequence[Tracer], given: Sequence[Array]
) -> None:
    """The same for the inputs of a Program."""
    stage.called = function, [*map(id, boxes)], given
    if boxes:
        stage.shared = TracedArguments(stage, boxes, _arguments(shared_groups(given), boxes, given))


def _arguments(
    groups: Sequence[Sequence[int]], boxes: Sequence[Array], given: Sequence[Array]
) -> list[list[SharedArgument]]:
    return [
        [SharedArgument(weakref.ref(boxes[i]) if type(boxes[i]) is Tracer else None, given[i]) for i in group]
        for group in groups
    ]


def separate_arguments(stage: Stage, program: Program) -> SeparateMemory:
    """What must not share memory: pairs of inputs of a traced Program, and inputs with arrays of the scope."""
    shared = stage.shared
    if not isinstance(shared, TracedArguments):
        return SeparateMemory()
    return SeparateMemory(shared.separate(program), tuple(shared.in_scope.values()))


def check_overlap(
    separate: SeparateMemory, leaves: Sequence[Array], function: Callable[..., Any], transform: str
) -> None:
    """Raise for arguments that share memory where the function writes to one and then uses the other."""
    for i, array in separate.in_scope:
        if overlap(leaves[i], array):
            raise SharedMemoryError(
                f"{_name_of(function)} under func.{transform} writes to an argument that shares memory with an array "
                f"of its scope. In NumPy that would have the new numbers too{at_line()}\n{COPY_HINT}"
            )
    for i, k in separate.pairs:
        if overlap(leaves[i], leaves[k]):
            raise SharedMemoryError(
                f"{_name_of(function)} under func.{transform} writes to an argument and then uses another one, and the "
                f"two share memory. In NumPy the other would have the new numbers{at_line()}\n{COPY_HINT}"
            )


def before_write(root: Tracer) -> list[SharedArgument]:
    """The arguments that share memory with one which is about to be written.

    Plain arrays that do so cannot follow: arguments that are not traced, and what the function reads from its scope.
    """
    interpreter = root._interpreter
    call = _call_of(root)
    if call is None:
        return []
    function, leaf = call
    partners: list[SharedArgument] = [] if interpreter.shared is None else interpreter.shared.partners(root)
    other = "another argument, which is not traced" if any([argument.box is None for argument in partners]) else None
    if other is not None or (other := _shared_in_scope(function, leaf)):
        raise SharedMemoryError(
            f"{_name_of(function)} writes to an argument under func.{interpreter.transform} that shares memory with "
            f"{other}. In NumPy that would have the new numbers too{at_line()}\n{COPY_HINT}"
        )
    return partners


def _name_of(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", None) or type(function).__name__


def _memory_of(leaf: Array) -> Array:
    """What the outermost transform was given for an argument of an inner one: at best a plain array."""
    while type(leaf) is Tracer and (given := _caller_value(_root_of(leaf))) is not None:
        leaf = given
    return leaf


def _shared_in_scope(function: Callable[..., Any], leaf: Array) -> str | None:
    """What the function reads from its scope that has memory of an argument."""
    leaf = _memory_of(leaf)
    return next((f"{path!r} of its scope" for path, array in _arrays_in_scope(function) if overlap(leaf, array)), None)


def _arrays_in_scope(function: Callable[..., Any]) -> Iterator[tuple[str, Array]]:
    """What the function reads from its scope, members of lists and dicts one by one, each with its name."""
    from func.interpreters.calls.captured_values import read_by  # start-up time

    for path, value in read_by(function).items():
        for array in tree.leaves(value) if type(value) in (list, tuple, dict) else (value,):
            yield path, array


def after_write(interpreter: Interpreter, box: Tracer, root: Tracer, partners: Sequence[SharedArgument]) -> None:
    """Make the uses of arguments errors that share memory with the written box, which others of their call, or the
    function's scope, know by the same memory."""
    written: Array = root
    while type(written) is Tracer:  # an argument of an inner transform is one of those around it as well
        written = _root_of(written)
        if isinstance(written._interpreter.shared, TracedArguments):
            written._interpreter.shared.note_write(written, interpreter)
        written = _caller_value(written)
    followers = [argument.box() for argument in partners if argument.box is not None]
    followers += [inner for inner in _arguments_made_of(root) if overlap(box, _caller_value(inner))]
    for follower in followers:
        if follower is not None:
            _retire(follower, StaleArgument(follower._interpreter.transform, user_line(2)))


def _arguments_made_of(root: Tracer) -> list[Tracer]:
    """The boxes of arguments of inner calls that were given this box or a view of it."""
    boxes = [ref() for ref in getattr(root, "_views", None) or ()]
    return [box for box in boxes if box is not None and _caller_value(box) is not None]


def _caller_value(box: Tracer) -> Array:
    call = _call_of(box)
    return None if call is None else call[1]


def _call_of(box: Tracer) -> tuple[Callable[..., Any], Array] | None:
    """Of which function a box is an argument, and what was given for it."""
    interpreter = box._interpreter
    for ref, function, given in interpreter.inner_calls:
        if ref() is box:
            return None if (leaf := given()) is None else (function, leaf)
    if interpreter.called is None:
        return None
    function, boxes, leaves = interpreter.called
    return (function, leaves[boxes.index(id(box))]) if id(box) in boxes else None


def _retire(box: Tracer, stale: StaleArgument) -> None:
    for inner in _arguments_made_of(box):
        _retire(inner, stale)
    box._interpreter = stale
    for ref in getattr(box, "_views", None) or ():
        view = ref()
        if view is not None and getattr(getattr(view, "_view_of", None), "base", None) is box:
            _retire(view, stale)


def shared_groups(leaves: Sequence[Array]) -> list[list[int]]:
    """The places of leaves that may share memory, those of one owner together."""
    if len(leaves) < 2:
        return []
    owners: dict[Any, list[int]] = {}
    for i, leaf in enumerate(leaves):
        owner = owner_of(leaf)
        if owner is not None:
            owners.setdefault(owner, []).append(i)
    if FOREIGN in owners:
        arrays = [i for places in owners.values() for i in places if type(_memory_of(leaves[i])) is not Tracer]
        owners = {owner: places for owner, places in owners.items() if places[0] not in arrays} | {FOREIGN: arrays}
    return [places for places in owners.values() if len(places) > 1]


_base_of, _shape_of, _has_c_order = [operator.attrgetter(name) for name in ("base", "shape", "flags.c_contiguous")]
_OWN = {id(None)}
_WITHOUT_MEMORY = frozenset({bool, int, float, complex, str, type(None), types.FunctionType})


def are_separate(values: Sequence[Any]) -> bool:
    """Whether arguments are numbers and different plain arrays that own their memory: the common case."""
    arrays = values
    if {*map(type, values)} != _ARRAYS:
        arrays = [value for value in values if type(value) is ndarray]
        if not _WITHOUT_MEMORY.issuperset([type(value) for value in values if type(value) is not ndarray]):
            return False
    return {*map(id, map(_base_of, arrays))} <= _OWN and len({*map(id, arrays)}) == len(arrays)


def are_in_order(values: Sequence[Any]) -> bool:
    """Whether all are plain arrays with axes, in C order."""
    return {*map(type, values)} == _ARRAYS and all(map(_shape_of, values)) and all(map(_has_c_order, values))


_ARRAYS = {np.ndarray}


def owner_of(leaf: Array) -> Any:
    """What identifies the memory that an argument is part of; None for numbers and empty arrays."""
    if type(leaf) is ndarray:
        base = leaf.base
        if base is None:
            return id(leaf) if leaf.size else None
        if not leaf.size:
            return None
        return id(base) if type(base) is ndarray and base.base is None else FOREIGN
    if type(leaf) is not Tracer:
        return None
    memory = _memory_of(leaf)
    if type(memory) is not Tracer:
        return owner_of(memory)
    root = _root_of(memory)
    group = next((group for shared in _shared_now(root) if (group := shared.group_of(root))), None)
    return id(root) if group is None else id(group)


def _shared_now(box: Tracer) -> list[SharedArguments]:
    """The arguments that share memory of all transforms that are running, and of the owner of a box."""
    interpreters = [box._interpreter, *[entry.interpreter for entry in live_entries()]]
    return [interpreter.shared for interpreter in interpreters if interpreter.shared is not None]


def read_only(array: Array) -> Array:
    """A plain array that must not be written, since a traced value has its memory."""
    if type(array) is ndarray:
        array = array.view()
        array.flags.writeable = False
    return array


def _root_of(box: Tracer) -> Tracer:
    """The box that a box is a view of, or may be: a reshape that is not decided stays so."""
    while (base := getattr(getattr(box, "_view_of", None), "base", None)) is not None:
        box = base
    return box


def overlap(a: Array, b: Array) -> bool:
    """Whether two arguments may have an element of memory in common."""
    if type(a) is Tracer and type(b) is Tracer:
        first, second = _root_of(a), _root_of(b)
        if first is second:
            return a is b or shares_memory(a, b)
    a, b = _memory_of(a), _memory_of(b)
    if type(a) is Tracer and type(b) is Tracer:
        first, second = _root_of(a), _root_of(b)
        if first is second:
            return a is b or shares_memory(a, b)
        partners = [argument for shared in _shared_now(first) for argument in shared.partners(first)]
        return any([argument.box is not None and argument.box() is second for argument in partners])
    if type(a) is not ndarray or type(b) is not ndarray or not np.may_share_memory(a, b):
        return False
    try:
        return bool(np.shares_memory(a, b, max_work=MAX_WORK))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    except np.exceptions.TooHardError:
        return True
