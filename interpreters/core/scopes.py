"""Scopes: objects that live while a `with` statement runs, and end with it in every case.

A scope ends with the last reference to it, and the only lasting reference is on the stack of the frame with the `with`
statement. C functions enter and leave. So the scope also ends with an interrupt between any two bytecodes, a generator
that closes in another context, or a dropped frame. Context variables refer to scopes weakly: if nobody resets a
variable, its scope is gone, and the scope around it is in force.
"""

from __future__ import annotations

import threading
import time
import weakref
from contextvars import Context, ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np

from func.interpreters.core.wiring import WIRING

if TYPE_CHECKING:
    from func.interpreters.core.types import Interpreter

# A lock whose `__enter__` and `__exit__` need no bytecode; nothing else of it is used.
_Statement: Any = type(threading.RLock())


class Scope(_Statement):  # type: ignore[misc]
    """Lives while a `with` statement runs. Make it in the statement, so that nothing else refers to it."""

    __slots__ = ("hold",)


class _TurnReference(weakref.ref[Scope]):
    """A weak reference to a turn, and the next turn: `next` in a dict that exists before another thread looks.

    Attributes do not suffice: two threads may each create the `__dict__` at its first use.
    """

    __slots__ = ("after", "thread")

    after: dict[str, _TurnReference]
    thread: int

    def __init__(self, turn: Scope) -> None:
        super().__init__(turn)  # type: ignore[call-arg]
        self.after = {}
        self.thread = threading.get_ident()


class Turns:
    """Let one thread at a time run `with turns.take():`. In the same thread, an inner block does not wait.

    A turn is a scope, so it ends with its block in every case. A lock of `threading` stays locked forever after an
    interrupt between the end of the block and the call that unlocks it.
    """

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last = _TurnReference(Scope())  # it ends here

    def take(self) -> Scope:
        """Wait until no other thread has a turn, and take one. Call it in the `with` statement, its only owner."""
        turn = Scope()
        own, last = _TurnReference(turn), self._last
        while last is not own:
            while last() is not None:
                if last.thread == own.thread:
                    return turn
                time.sleep(_PAUSE)
            last = last.after.setdefault("next", own)  # simultaneous threads agree on one
        self._last = own
        return turn


_PAUSE = 2e-5
"""Seconds between two looks at a turn of another thread."""


class Entry:
    """The value of a context variable, which refers weakly to its scope."""

    __slots__ = ("outer", "scope")

    def __init__(self, scope: Scope, outer: Entry | None) -> None:
        self.scope = weakref.ref(scope)
        self.outer = outer
        """The entry around it; its scope may have ended."""


class TransformEntry(Entry):
    """The function of a transform is running."""

    __slots__ = ("interpreter", "mapped", "new_arrays", "staging")
    outer: TransformEntry | None
    interpreter: Interpreter
    staging: str | None
    """The name of the transform that traces a program for later runs, or None."""
    mapped: Any
    """The interpreters of the vmaps whose functions are running, innermost last."""
    new_arrays: Any
    """The arrays that `func.intercept` has made in an outermost transform."""

    def __init__(self, scope: Scope, outer: TransformEntry | None, interpreter: Interpreter) -> None:
        self.scope = weakref.ref(scope)
        self.outer = outer
        self.interpreter = interpreter
        self.new_arrays = None
        if outer is None:
            self.staging, self.mapped = None, ()
        else:
            self.staging, self.mapped = outer.staging, outer.mapped


class TracedValues:
    """Whether traced values may be among the arguments of NumPy's and SciPy's functions."""

    __slots__ = ("install_indexing", "pending", "run", "stay")

    def __init__(self) -> None:
        self.run = False
        """Whether a transform runs."""
        self.stay = False
        """Whether a tensor exists or existed: tensors exist as long as the user likes."""
        self.pending: list[str] = []
        """Imported modules of NumPy and SciPy with functions that do not look for traced values yet."""
        self.install_indexing: Any = None
        """Called before the first level whose numbers code cannot read: plain arrays take traced indices from then."""


TRACED = TracedValues()


class TransformScope(Scope):
    """The scope in which the function of a transform runs."""

    __slots__ = ()

    def __init__(self, interpreter: Interpreter, staging: bool = False, mapped: Any = None) -> None:
        outer = TRANSFORMS.get()
        if outer is not None and outer.scope() is None:
            outer = live_entry()
        entry = TransformEntry(self, outer, interpreter)
        if staging:
            entry.staging = interpreter.transform
        if mapped is not None:
            entry.mapped = (*entry.mapped, mapped)
        TRANSFORMS.set(entry)
        self.hold = WIRING.hold_converters()


TRANSFORMS: ContextVar[TransformEntry | None] = ContextVar("func_transforms", default=None)
"""The innermost transform whose function runs; it may have ended."""


def live_entry(variable: ContextVar[Any] = TRANSFORMS) -> Any:
    """The innermost entry of a context variable whose scope has not ended, or None."""
    entry = variable.get()
    while entry is not None and entry.scope() is None:
        entry = entry.outer
    return entry


def live_entries(variable: ContextVar[Any] = TRANSFORMS) -> list[Any]:
    """All entries of a context variable whose scopes have not ended, innermost first."""
    entries = []
    entry = variable.get()
    while entry is not None:
        if entry.scope() is not None:
            entries.append(entry)
        entry = entry.outer
    return entries


def current_transform() -> Interpreter | None:
    """The interpreter of the innermost transform whose function runs."""
    entry = live_entry()
    return None if entry is None else entry.interpreter


def present_stage() -> Any:
    """The innermost stage that records now; a linear stage takes no known values."""
    for entry in live_entries():
        stage = entry.interpreter
        if stage.is_stage and not stage.is_linear:
            return stage
    return None


def current_staging() -> str | None:
    """The name of the transform that traces a program for later runs now, or None."""
    entry = live_entry()
    return None if entry is None else entry.staging


def running_vmaps() -> Any:
    """The interpreters of the vmaps whose functions run, innermost last: a tuple."""
    entry = live_entry()
    return () if entry is None else entry.mapped


def restore_error_state(error: BaseException, before: Context) -> None:
    """Restore NumPy's treatment of floating point errors after an interrupt, which may come as np.errstate ends."""
    if not isinstance(error, Exception):
        np.seterr(**before.run(np.geterr))
