"""Arguments that share memory: `f(a, a)`, or overlapping views of one array.

A transform traces each argument as a separate array, so a write to one would not reach the others, as it does in NumPy.
After a write to one, later uses of the others are errors. Calls without shared memory only compare the owners of their
arguments' memory.
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
"""The effort of NumPy's search for a common element of two strided arrays; beyond it, they count as sharing."""
FOREIGN = object()
"""The owner of memory that does not belong to NumPy: a buffer may have many such arrays."""


class SharedArgument(Record):
    """An argument that may share memory with others: its tracer, if any, and the caller's array."""

    tracer: weakref.ref[Tracer] | None
    array: Array


class SeparateMemory(NamedTuple):
    """The pairs of arguments, and of arguments and the function's scope, that must not share memory in a call."""

    pairs: tuple[tuple[int, int], ...] = ()
    in_scope: tuple[tuple[int, np.ndarray[Any, Any]], ...] = ()


class SharedArguments:
    """The arguments of a call in groups that share memory."""

    def __init__(self, groups: Sequence[Sequence[SharedArgument]] = ()) -> None:
        self.groups = groups

    def group_of(self, tracer: Tracer) -> Sequence[SharedArgument]:
        """The group of a traced argument; nothing for other tracers."""
        for group in self.groups:
            if any([argument.tracer is not None and argument.tracer() is tracer for argument in group]):
                return group
        return ()

    def partners(self, tracer: Tracer) -> list[SharedArgument]:
        """The other arguments that have an element of memory in common with a traced one."""
        group = self.group_of(tracer)
        arrays = [argument.array for argument in group if argument.tracer is not None and argument.tracer() is tracer]
        others = [argument for argument in group if argument.tracer is None or argument.tracer() is not tracer]
        return [argument for argument in others if overlap(arrays[0], argument.array)]


class TracedArguments(SharedArguments):
    """The arguments of a traced Program, whose later calls may have arguments that share memory."""

    def __init__(self, stage: Stage, tracers: Sequence[Tracer], groups: Sequence[Sequence[SharedArgument]]) -> None:
        super().__init__(groups)
        self._tracers = [weakref.ref(tracer) for tracer in tracers]
        self._stage = stage
        self._written: dict[int, int] = {}
        """The written arguments, and the number of equations after the first write."""
        self.in_scope: dict[tuple[int, int], tuple[int, np.ndarray[Any, Any]]] = {}
        """The written arguments, each with an array that the writing function reads from its scope."""

    def note_write(self, tracer: Tracer, writer: Interpreter) -> None:
        """Note a write to a traced array, if it is an argument, by the function that an interpreter runs."""
        for i, ref in enumerate(self._tracers):
            if ref() is tracer:
                self._written.setdefault(i, len(self._stage.equations))
                functions = [] if writer.called is None else [writer.called[0]]
                functions += [function for ref, function, _ in writer.inner_calls if ref() is not None]
                for function in functions:
                    arrays = [array for _, array in _arrays_in_scope(function) if type(array) is ndarray]
                    self.in_scope |= {(i, id(array)): (i, array) for array in arrays}

    @property
    def written(self) -> set[int]:
        """The places of the written arguments."""
        return set(self._written)

    def separate(self, program: Program) -> tuple[tuple[int, int], ...]:
        """The pairs of arguments that must not share memory: the function writes one and uses the other afterwards."""
        if not self._written:
            return ()
        remaining = set(map(id, program.equations))
        pairs = set()
        for written, start in self._written.items():
            used = _read_after(self._stage, start, remaining) | {id(out) for out in program.outputs}
            for i, var in enumerate(program.inputs):
                if i != written and (i in self._written or not used.isdisjoint(_views_of(self._stage, var))):
                    pairs.add((min(i, written), max(i, written)))
        return tuple(sorted(pairs))


def _read_after(stage: Stage, start: int, remaining: set[int]) -> set[int]:
    """The ids of the variables that the equations of a program read from one of them on."""
    return {id(x) for equation in stage.equations[start:] if id(equation) in remaining for x in equation.inputs}


def _views_of(stage: Stage, var: Var) -> set[int]:
    """The ids of a variable and of its possible views."""
    views = {id(var)}
    for equation in stage.equations:
        if equation.primitive.view and any([id(x) in views for x in equation.inputs]):
            views.update(map(id, equation.outputs))
    return views


class StaleArgument(ClosedInterpreter):
    """Owns an argument after a write to its memory through another one."""

    def __init__(self, transform: str, line: Line | None) -> None:
        self.transform = transform
        self.line = line
        self.level = float("inf")

    def _raise(self, tracer: Tracer | None = None) -> NoReturn:
        place = f"\n  written at {self.line}" if self.line is not None else ""
        raise SharedMemoryError(
            f"an argument of a function under func.{self.transform} is used after another argument was written that "
            "shares memory with it. In NumPy it would have the new numbers; here each argument is an array by itself"
            f"{place}\n  used{at_line()}\n{COPY_HINT}"
        )


class Loss(Record):
    """The reason why a function's writes to its arguments do not reach the caller."""

    is_what: str
    reason: str


BY_RULE = Loss("which has a custom rule,", "the rule says nothing of their derivative")
BY_FUNCTION = Loss("which belongs to a Function,", "forward must mark what it writes by ctx.mark_dirty and return it")
BY_ERROR = Loss("which is checkpointed and raised an error,", "those of a run without an end are lost")


class LostWrite(StaleArgument):
    """Owns a value that a function has written without effect, and all values that share its memory."""

    def __init__(self, interpreter: Interpreter, function: Callable[..., Any], loss: Loss) -> None:
        super().__init__(interpreter.transform, user_line(2))
        self.function = _name_of(function)
        self.loss = loss

    def _raise(self, tracer: Tracer | None = None) -> NoReturn:
        place = f"\n  called at {self.line}" if self.line is not None else ""
        raise SharedMemoryError(
            f"an array is used after {self.function}, {self.loss.is_what} wrote to it. In NumPy it "
            f"would have the new numbers; {self.loss.reason}{place}\n  used{at_line()}\n{LOST_HINT}"
        )


def lose_writes(
    function: Callable[..., Any], leaves: Sequence[Array], written: Iterable[int], loss: Loss = BY_RULE
) -> None:
    """Make later uses of the written arguments of a function with a custom rule, or one that raised, errors.

    The function wrote to copies, so the caller does not see the new numbers. Raises: SharedMemoryError for arrays and
    tensors that outlive the transform.
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
    interpreter: Interpreter, function: Callable[..., Any], tracers: Sequence[Array], arrays: Sequence[Array]
) -> None:
    """Note the arguments of a call that share memory: the tracers of an interpreter, and the caller's arrays.

    Untraced arguments appear in place of their tracer.
    """
    interpreter.called = function, [*map(id, tracers)], arrays
    _note_shared(interpreter, tracers, arrays)


def note_nested_arguments(
    interpreter: Interpreter, function: Callable[..., Any], tracers: Sequence[Array], arrays: Sequence[Array]
) -> None:
    """The same for a function that runs under the interpreter of another one, whose notes remain."""
    set_argument_layouts(tracers, arrays)
    calls = [
        (weakref.ref(tracer), function, weakref.ref(leaf))
        for tracer, leaf in zip(tracers, arrays, strict=True)
        if type(tracer) is Tracer and type(leaf) is Tracer
    ]
    interpreter.inner_calls = [*[call for call in interpreter.inner_calls if call[0]() is not None], *calls]
    _note_shared(interpreter, tracers, arrays)


def _note_shared(interpreter: Interpreter, tracers: Sequence[Array], arrays: Sequence[Array]) -> None:
    if Tracer in map(type, arrays):
        for tracer, leaf in zip(tracers, arrays, strict=True):
            if type(leaf) is Tracer:
                _follow(tracer, leaf)
    if len(arrays) > 1 and (groups := shared_groups(arrays)):
        known = [] if interpreter.shared is None else interpreter.shared.groups
        interpreter.shared = SharedArguments([*known, *_arguments(groups, tracers, arrays)])


def link_arguments(
    interpreter: Interpreter, function: Callable[..., Any], tracers: Sequence[Array], arrays: Sequence[Array]
) -> None:
    """Give the tracers of a call's arguments the layouts of the caller's arrays; note which share memory."""
    set_argument_layouts(tracers, arrays)
    note_arguments(interpreter, function, tracers, arrays)


def _follow(tracer: Array, leaf: Tracer) -> None:
    """Notify an argument's tracer of writes to the traced value behind it."""
    if type(tracer) is Tracer:
        if tracer._value is leaf:
            tracer._value = snapshot(leaf)
        root = _root_of(leaf)
        views = getattr(root, "_views", None)
        if views is None:
            root._views = views = []
        views.append(weakref.ref(tracer))


def note_traced_arguments(
    stage: Stage, function: Callable[..., Any], tracers: Sequence[Tracer], arrays: Sequence[Array]
) -> None:
    """The same for the inputs of a Program."""
    stage.called = function, [*map(id, tracers)], arrays
    if tracers:
        stage.shared = TracedArguments(stage, tracers, _arguments(shared_groups(arrays), tracers, arrays))


def _arguments(
    groups: Sequence[Sequence[int]], tracers: Sequence[Array], arrays: Sequence[Array]
) -> list[list[SharedArgument]]:
    return [
        [SharedArgument(weakref.ref(tracers[i]) if type(tracers[i]) is Tracer else None, arrays[i]) for i in group]
        for group in groups
    ]


def separate_arguments(stage: Stage, program: Program) -> SeparateMemory:
    """The pairs of inputs of a traced Program, or of inputs and the scope, that must not share memory."""
    shared = stage.shared
    if not isinstance(shared, TracedArguments):
        return SeparateMemory()
    return SeparateMemory(shared.separate(program), tuple(shared.in_scope.values()))


def check_overlap(
    separate: SeparateMemory, leaves: Sequence[Array], function: Callable[..., Any], transform: str
) -> None:
    """Raise for arguments that share memory if the function writes to one and then uses the other."""
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
    """The arguments that share memory with one before a write to it.

    Plain arrays that share it cannot follow: untraced arguments, and arrays in the function's scope.
    """
    interpreter = root._interpreter
    call = _call_of(root)
    if call is None:
        return []
    function, leaf = call
    partners: list[SharedArgument] = [] if interpreter.shared is None else interpreter.shared.partners(root)
    other = "another argument, which is not traced" if any([argument.tracer is None for argument in partners]) else None
    if other is not None or (other := _shared_in_scope(function, leaf)):
        raise SharedMemoryError(
            f"{_name_of(function)} writes to an argument under func.{interpreter.transform} that shares memory with "
            f"{other}. In NumPy that would have the new numbers too{at_line()}\n{COPY_HINT}"
        )
    return partners


def _name_of(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", None) or type(function).__name__


def _memory_of(leaf: Array) -> Array:
    """The outermost caller's value for an argument of an inner transform: at best a plain array."""
    while type(leaf) is Tracer and (outer_value := _caller_value(_root_of(leaf))) is not None:
        leaf = outer_value
    return leaf


def _shared_in_scope(function: Callable[..., Any], leaf: Array) -> str | None:
    """The name of the array in the function's scope that shares memory with an argument."""
    leaf = _memory_of(leaf)
    return next((f"{path!r} of its scope" for path, array in _arrays_in_scope(function) if overlap(leaf, array)), None)


def _arrays_in_scope(function: Callable[..., Any]) -> Iterator[tuple[str, Array]]:
    """The arrays that the function reads from its scope, with members of lists and dicts, each with its name."""
    from func.interpreters.calls.captured_values import read_by  # start-up time

    for path, value in read_by(function).items():
        for array in tree.leaves(value) if type(value) in (list, tuple, dict) else (value,):
            yield path, array


def after_write(interpreter: Interpreter, tracer: Tracer, root: Tracer, partners: Sequence[SharedArgument]) -> None:
    """Make the later uses of arguments errors that share memory with the written tracer."""
    written: Array = root
    while type(written) is Tracer:  # an argument of an inner transform is one of the outer ones, too
        written = _root_of(written)
        if isinstance(written._interpreter.shared, TracedArguments):
            written._interpreter.shared.note_write(written, interpreter)
        written = _caller_value(written)
    followers = [argument.tracer() for argument in partners if argument.tracer is not None]
    followers += [inner for inner in _dependent_arguments(root) if overlap(tracer, _caller_value(inner))]
    for follower in followers:
        if follower is not None:
            _retire(follower, StaleArgument(follower._interpreter.transform, user_line(2)))


def _dependent_arguments(root: Tracer) -> list[Tracer]:
    """The tracers of arguments of inner calls that took this tracer or a view of it."""
    tracers = [ref() for ref in getattr(root, "_views", None) or ()]
    return [tracer for tracer in tracers if tracer is not None and _caller_value(tracer) is not None]


def _caller_value(tracer: Tracer) -> Array:
    call = _call_of(tracer)
    return None if call is None else call[1]


def _call_of(tracer: Tracer) -> tuple[Callable[..., Any], Array] | None:
    """The function whose argument a tracer is, and the caller's value for it."""
    interpreter = tracer._interpreter
    for ref, function, reference in interpreter.inner_calls:
        if ref() is tracer:
            return None if (leaf := reference()) is None else (function, leaf)
    if interpreter.called is None:
        return None
    function, tracers, leaves = interpreter.called
    return (function, leaves[tracers.index(id(tracer))]) if id(tracer) in tracers else None


def _retire(tracer: Tracer, stale: StaleArgument) -> None:
    for inner in _dependent_arguments(tracer):
        _retire(inner, stale)
    tracer._interpreter = stale
    for ref in getattr(tracer, "_views", None) or ():
        view = ref()
        if view is not None and getattr(getattr(view, "_view_of", None), "base", None) is tracer:
            _retire(view, stale)


def shared_groups(leaves: Sequence[Array]) -> list[list[int]]:
    """The places of leaves that may share memory, grouped by owner."""
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
    """The identity of the memory of an argument; None for numbers and empty arrays."""
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


def _shared_now(tracer: Tracer) -> list[SharedArguments]:
    """The arguments that share memory, of all running transforms, and of the owner of a tracer."""
    interpreters = [tracer._interpreter, *[entry.interpreter for entry in live_entries()]]
    return [interpreter.shared for interpreter in interpreters if interpreter.shared is not None]


def read_only(array: Array) -> Array:
    """A read-only view of a plain array whose memory a traced value uses."""
    if type(array) is ndarray:
        array = array.view()
        array.flags.writeable = False
    return array


def _root_of(tracer: Tracer) -> Tracer:
    """The traced array at the root of certain and undecided views."""
    while (base := getattr(getattr(tracer, "_view_of", None), "base", None)) is not None:
        tracer = base
    return tracer


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
        return any([argument.tracer is not None and argument.tracer() is second for argument in partners])
    if type(a) is not ndarray or type(b) is not ndarray or not np.may_share_memory(a, b):
        return False
    try:
        return bool(np.shares_memory(a, b, max_work=MAX_WORK))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    except np.exceptions.TooHardError:
        return True
