"""Python-callable entries of compiled programs: they check arguments, run the program, and make results.

An entry is a C function made by LLVM. Its code is the same for all signatures, compiled once and kept on disk; it
follows a table made from the signature, so a new entry costs no compilation. Arguments that are not as the signature
says go, as they are, to a slow function.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

from func.backends.llvm import capi, later, machine
from func.backends.llvm.entry_layout import LARGEST_FRAME, Head
from func.backends.llvm.entry_python import normalised, python_entry
from func.backends.llvm.entry_table import Table, empty
from func.backends.llvm.entry_trees import Leaf, Mismatch, Signature, Tree, tree_of

__all__ = [
    "Leaf",
    "Mismatch",
    "Signature",
    "Tree",
    "bind_entry",
    "is_ready",
    "native_entry",
    "normalised",
    "patient_entry",
    "python_entry",
    "tree_of",
]


def bind_entry(
    run: int,
    signature: Signature,
    slow: Callable[..., Any],
    failed: Callable[..., Any],
    owner: object = None,
) -> Callable[..., Any]:
    """A Python function around the native function at address `run`, native itself where this interpreter allows it.

    `i32 run(i8** inputs, i8** outputs, i8* arena)` gets the addresses of the data of the leaves of the arguments, of
    memory for the leaves of the result, both in the order of `entry_trees.leaves`, and of scratch memory aligned to 64
    bytes. It returns 0, or a status.

    `slow` gets the arguments where they differ from the signature, as they are. `failed` gets the status and the
    arguments where `run` returned one, unless it set a Python error, which is raised. `owner` is kept alive as long as
    the function: whatever owns the code at `run`.

    >>> code = machine.compile_ir('''define i32 @run(ptr %inputs, ptr %outputs, ptr %arena) {
    ...     %source = load ptr, ptr %inputs
    ...     %x = load double, ptr %source
    ...     %y = fadd double %x, %x
    ...     %target = load ptr, ptr %outputs
    ...     store double %y, ptr %target
    ...     ret i32 0
    ... }''')
    >>> double = bind_entry(code.address("run"), Signature((tree_of(1.0),), {"y": tree_of(1.0)}), repr, repr, code)
    >>> double(1.5), double("text")
    ({'y': 3.0}, "'text'")
    """
    make = native_entry if capi.available() else python_entry
    return make(run, signature, slow, failed, owner)


PATIENCE = 8
"""The call of one entry that waits for native code if there is none yet."""


def patient_entry(
    run: int,
    signature: Signature,
    slow: Callable[..., Any],
    failed: Callable[..., Any],
    owner: object = None,
) -> Callable[..., Any]:
    """What bind_entry returns, without waiting for the code of native entries: until it is there calls go by ctypes.
    Who calls again and again does wait."""
    if is_ready():
        return bind_entry(run, signature, slow, failed, owner)
    entry, left = python_entry(run, signature, slow, failed, owner), PATIENCE

    def call(*args: Any) -> Any:
        nonlocal entry, left
        if left:
            left -= 1
            later.ask("code of entries", entry_code)
            if left == 0:
                later.finish()
            if is_ready():
                entry, left = bind_entry(run, signature, slow, failed, owner), 0
        return entry(*args)

    call.release = lambda: release(entry)  # type: ignore[attr-defined]
    return call


def release(entry: Callable[..., Any]) -> None:
    """Let an entry give back the memory that it keeps for its next call."""
    state = getattr(entry, "__self__", None)
    if isinstance(state, State):
        empty(state.places)
    else:
        entry.release()  # type: ignore[attr-defined]


def is_ready() -> bool:
    """Whether the code of native entries is there, and whatever else was left for later."""
    global _code, _is_looked_for
    if not capi.available():
        return later.is_done()
    if not _is_looked_for:
        _is_looked_for = True
        _code = _code or machine.existing_code(_entry_module, _key())
    return _code is not None and later.is_done()


class State(tuple[Any, ...]):
    """All that a native entry needs to live."""

    places: Any


def native_entry(
    run: int,
    signature: Signature,
    slow: Callable[..., Any],
    failed: Callable[..., Any],
    owner: object = None,
) -> Callable[..., Any]:
    """What bind_entry returns, as native code; for interpreters for which `capi.available()` holds.

    A signature of so many leaves that a call would need too much of the stack gets an entry in Python.
    """
    table = Table(signature, run, slow, failed)
    if table.head[Head.FRAME] > LARGEST_FRAME:
        return python_entry(run, signature, slow, failed, owner)
    code = entry_code()
    definition = capi.MethodDefinition(b"entry", code.address("entry"), capi.METH_FASTCALL_KEYWORDS, None)
    state = State((table.words, *table.objects, owner, code, definition))
    state.places = table.places
    return _new_function()(ctypes.addressof(definition), state, None)  # type: ignore[no-any-return]


@functools.cache
def _new_function() -> Any:
    """PyCFunction_NewEx, a function of definition, self and module."""
    kind = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object)
    return kind(("PyCFunction_NewEx", ctypes.pythonapi))


_code: machine.Code | None = None
_is_looked_for = False


def entry_code() -> machine.Code:
    """The compiled code of all entries."""
    global _code
    if _code is None:
        _code = machine.compile_ir(_entry_module, key=_key())
    return _code


def _key() -> str:
    return f"entry {capi.abi()}"


def _entry_module() -> Any:
    """The code of all entries; what writes it is imported only if it is not on disk."""
    from func.backends.llvm.entry_native import entry_module

    return entry_module()
