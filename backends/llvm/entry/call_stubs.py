"""Entries in plain Python, where native ones cannot be made, and arguments brought into the form that both read.

Python-callable entries of compiled programs: they check arguments, run the program, and make results.

An entry is a C function made by LLVM. Its code is the same for all signatures, compiled once and kept on disk; it
follows a table made from the signature, so a new entry costs no compilation. Arguments that are not as the signature
says go, as they are, to a slow function.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import numpy as np

from func.backends.llvm import machine
from func.backends.llvm.entry import capi
from func.backends.llvm.entry.layout import ALIGNMENT, LARGEST_FRAME, MOST_KEPT, Head
from func.backends.llvm.entry.tables import Table, empty
from func.backends.llvm.entry.trees import (
    LARGEST_INT,
    PYTHON_TYPES,
    Leaf,
    Mismatch,
    Signature,
    flatten,
    leaves,
    unflatten,
)
from func.backends.llvm.threads import background

_READABLE: Final = capi.C_CONTIGUOUS | capi.ALIGNED


def python_entry(
    run: int,
    signature: Signature,
    slow: Callable[..., Any],
    failed: Callable[..., Any],
    owner: object = None,
) -> Callable[..., Any]:
    """What bind_entry returns, in Python: it checks arguments, calls `run` at this address, and makes the result.

    `owner` is kept alive as long as the function.
    """
    kind = ctypes.CFUNCTYPE if signature.releases_gil else ctypes.PYFUNCTYPE
    call = kind(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(run)
    expected = list(leaves(signature.args))
    results = list(leaves(signature.result))
    arenas: list[Any] = []

    def entry(*args: Any, **keywords: Any) -> Any:
        try:
            if keywords:
                raise Mismatch("arguments by name")
            inputs = [
                _matched(leaf, value) for leaf, value in zip(expected, flatten(signature.args, args), strict=True)
            ]
        except Mismatch:
            inputs = None
        if inputs is None:
            return slow(*args, **keywords)
        outputs = [np.empty(leaf.shape, leaf.dtype) for leaf in results]
        arena = arenas.pop() if arenas else np.empty(signature.arena + ALIGNMENT, np.uint8)
        scratch = -(-arena.ctypes.data // ALIGNMENT) * ALIGNMENT
        status = call(_pointers(inputs), _pointers(outputs), scratch)
        if signature.arena <= MOST_KEPT:
            arenas.append(arena)
        if status:
            return failed(status, *args)
        return unflatten(signature.result, _handed_out(results, outputs))

    entry.owner, entry.release = owner, arenas.clear  # type: ignore[attr-defined]
    return entry


def _pointers(arrays: list[Any]) -> Any:
    return (ctypes.c_void_p * len(arrays))(*[array.ctypes.data for array in arrays])


def _handed_out(results: Iterable[Leaf], outputs: Iterable[Any]) -> Iterator[Any]:
    for leaf, array in zip(results, outputs, strict=True):
        yield array.item() if leaf.kind == "python" else array if leaf.shape else array[()]


def _matched(leaf: Leaf, value: Any) -> Any:
    """The array whose memory is read for a leaf. Raises Mismatch where native code would not take the value."""
    if leaf.kind == "python":
        if type(value) is not PYTHON_TYPES[leaf.dtype] or (
            type(value) is int and not -LARGEST_INT - 1 <= value <= LARGEST_INT
        ):
            raise Mismatch(f"{value!r} is no {leaf.dtype} scalar")
        return np.array(value, leaf.dtype)
    if not leaf.shape and type(value) is leaf.dtype.type:
        return np.array(value)
    if type(value) is not np.ndarray or value.shape != leaf.shape or not same_dtype(leaf.dtype, value.dtype):
        raise Mismatch(f"an array of shape {leaf.shape} and dtype {leaf.dtype} was expected")
    if value.flags.num & _READABLE != _READABLE:
        raise Mismatch("the array is not contiguous or not aligned")
    return value


def same_dtype(own: np.dtype[Any], other: np.dtype[Any]) -> bool:
    """Whether a dtype is this one, or a copy of this builtin one."""
    return own is other or (own.isbuiltin == 1 and (own.num, own.byteorder) == (other.num, other.byteorder))


def normalised(signature: Signature, values: Iterable[Any]) -> list[Any]:
    """Leaves as C-contiguous aligned arrays in native byte order, copied where they are not.

    Raises TypeError or ValueError where a dtype or a shape differs.

    >>> signature = Signature((Leaf("array", (2,), np.dtype(float)),), None)
    >>> normalised(signature, [np.arange(4.0)[::-2]])
    [array([3., 1.])]
    """
    return [_normalised(leaf, value) for leaf, value in zip(leaves(signature.args), values, strict=True)]


def _normalised(leaf: Leaf, value: Any) -> Any:
    if leaf.kind == "python" and type(value) is not PYTHON_TYPES[leaf.dtype]:
        raise TypeError(f"a {PYTHON_TYPES[leaf.dtype].__name__} was expected, not {type(value).__name__}")
    array = np.asarray(value, leaf.dtype) if leaf.kind == "python" else np.asarray(value)
    if array.dtype.newbyteorder("=") != leaf.dtype:
        raise TypeError(f"an array of dtype {leaf.dtype} was expected, not {array.dtype}")
    if array.shape != leaf.shape:
        raise ValueError(f"an array of shape {leaf.shape} was expected, not {array.shape}")
    return np.require(array, leaf.dtype, ("C", "A"))


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
    >>> from func.backends.llvm.entry.trees import tree_of
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
            background.request("code of entries", entry_code)
            if left == 0:
                background.finish()
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
        return background.is_done()
    if not _is_looked_for:
        _is_looked_for = True
        _code = _code or machine.existing_code(_entry_module, _key())
    return _code is not None and background.is_done()


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
    from func.backends.llvm.entry.stub_code import entry_module

    return entry_module()
