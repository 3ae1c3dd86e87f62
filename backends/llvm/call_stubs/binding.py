"""Binding of compiled programs to Python callables.

A native stub is a C function made by LLVM. Its code is the same for all signatures, compiled once and kept on disk. It
follows a table made from the signature, so a new stub costs no compilation. Arguments that do not match the signature
go unchanged to a slow function. A Python stub does the same on interpreters whose objects native code cannot read, and
until the native code is compiled.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from func.backends.llvm import machine
from func.backends.llvm.call_stubs import capi
from func.backends.llvm.call_stubs.signature import (
    ANOTHER_PATH,
    LARGEST_INT,
    OVERLAP,
    PYTHON_TYPES,
    Leaf,
    Mismatch,
    StubSignature,
    flatten,
    leaves,
    unflatten,
)
from func.backends.llvm.call_stubs.stub_table import ALIGNMENT, MAX_FRAME, MAX_SPARE_ARENA, Head, StubTable, empty
from func.backends.llvm.threads import background

MAX_DEFERRED_CALLS = 8
"""Calls of one stub that go without native code; the last of them waits for it."""


def bind(
    run: int,
    signature: StubSignature,
    slow: Callable[..., Any],
    failed: Callable[..., Any],
    owner: object = None,
) -> Callable[..., Any]:
    """A stub around the native function at address `run`, itself native if this interpreter allows it.

    `i32 run(i8** inputs, i8** outputs, i8* arena)` gets the addresses of the arguments' leaves and of memory for the
    result's leaves, both in the order of `signature.leaves`. `arena` is scratch memory aligned to 64 bytes. It returns
    0, or a status.

    `slow` gets arguments that differ from the signature, unchanged. `failed` gets the status and the arguments if `run`
    returned one, unless it set a Python error, which is raised. `owner` owns the code at `run`, and lives as long as
    the stub.

    >>> code = machine.compile_ir('''define i32 @run(ptr %inputs, ptr %outputs, ptr %arena) {
    ...     %source = load ptr, ptr %inputs
    ...     %x = load double, ptr %source
    ...     %y = fadd double %x, %x
    ...     %target = load ptr, ptr %outputs
    ...     store double %y, ptr %target
    ...     ret i32 0
    ... }''')
    >>> from func.backends.llvm.call_stubs.signature import tree_of
    >>> double = bind(code.address("run"), StubSignature((tree_of(1.0),), {"y": tree_of(1.0)}), repr, repr, code)
    >>> double(1.5), double("text")
    ({'y': 3.0}, "'text'")
    """
    make = native_stub if capi.available() else python_stub
    return make(run, signature, slow, failed, owner)


def bind_deferred(
    run: int,
    signature: StubSignature,
    slow: Callable[..., Any],
    failed: Callable[..., Any],
    owner: object = None,
) -> Callable[..., Any]:
    """The result of `bind`, without waiting for the code of native stubs.

    Until that is there a Python stub takes the calls; after MAX_DEFERRED_CALLS of them the caller does wait.
    """
    if can_bind_natively():
        return bind(run, signature, slow, failed, owner)
    stub, calls_left = python_stub(run, signature, slow, failed, owner), MAX_DEFERRED_CALLS

    def deferred_stub(*args: Any) -> Any:
        nonlocal stub, calls_left
        if calls_left:
            calls_left -= 1
            background.request("code of call stubs", stub_code)
            if calls_left == 0:
                background.finish()
            if can_bind_natively():
                stub, calls_left = bind(run, signature, slow, failed, owner), 0
        return stub(*args)

    deferred_stub.release = lambda: release_memory(stub)  # type: ignore[attr-defined]
    return deferred_stub


def release_memory(stub: Callable[..., Any]) -> None:
    """Free the memory that a stub keeps for its next call."""
    state = getattr(stub, "__self__", None)
    if isinstance(state, StubState):
        empty(state.places)
    else:
        stub.release()  # type: ignore[attr-defined]


def can_bind_natively() -> bool:
    """Whether the code of native stubs exists, and no background compilation is left."""
    global _code, _has_searched
    if not capi.available():
        return background.is_done()
    if not _has_searched:
        _has_searched = True
        _code = _code or machine.existing_code(_stub_module, _key())
    return _code is not None and background.is_done()


class StubState(tuple[Any, ...]):
    """The `self` of a native stub: the table and all objects that must live as long as the stub."""

    places: Any


def native_stub(
    run: int,
    signature: StubSignature,
    slow: Callable[..., Any],
    failed: Callable[..., Any],
    owner: object = None,
) -> Callable[..., Any]:
    """The native result of `bind`, for interpreters with `capi.available()`.

    A signature with too many leaves for the stack gets a Python stub.
    """
    table = StubTable(signature, run, slow, failed)
    if table.head[Head.FRAME] > MAX_FRAME:
        return python_stub(run, signature, slow, failed, owner)
    code = stub_code()
    definition = _definition(code.address("call_stub"))
    state = StubState((table.words, *table.objects, owner, code))
    state.places = table.places
    return _new_function()(ctypes.addressof(definition), state, None)  # type: ignore[no-any-return]


_definitions: dict[int, capi.MethodDefinition] = {}


def _definition(address: int) -> capi.MethodDefinition:
    """The definition of functions with the code at an address. It lives forever: CPython reads it while it frees a
    function, perhaps after the collection of everything else. Concurrent requests get the same one, which
    `functools.cache` does not promise.
    """
    definition = capi.MethodDefinition(b"call_stub", address, capi.METH_FASTCALL_KEYWORDS, None)
    return _definitions.setdefault(address, definition)


@functools.cache
def _new_function() -> Any:
    """PyCFunction_NewEx, a function of definition, self and module."""
    kind = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object)
    return kind(("PyCFunction_NewEx", ctypes.pythonapi))


_code: machine.MachineCode | None = None
_has_searched = False
"""Whether this process has looked for the code on disk."""


def stub_code() -> machine.MachineCode:
    """The compiled code of all native stubs."""
    global _code
    if _code is None:
        _code = machine.compile_ir(_stub_module, key=_key())
    return _code


def _key() -> str:
    return f"call stub {capi.abi()}"


def _stub_module() -> Any:
    # The import is needed only if the object code is not on disk.
    from func.backends.llvm.call_stubs.stub_code import stub_module

    return stub_module()


def python_stub(
    run: int,
    signature: StubSignature,
    slow: Callable[..., Any],
    failed: Callable[..., Any],
    owner: object = None,
) -> Callable[..., Any]:
    """The Python result of `bind`: it checks arguments, calls `run` by ctypes, and makes the result."""
    kind = ctypes.CFUNCTYPE if signature.releases_gil else ctypes.PYFUNCTYPE
    call = kind(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(run)
    expected = list(leaves(signature.args))
    results = list(leaves(signature.result))
    arenas: list[Any] = []

    def stub(*args: Any, **keywords: Any) -> Any:
        try:
            if keywords:
                raise Mismatch("arguments by name")
            inputs = [
                _readable(leaf, value) for leaf, value in zip(expected, flatten(signature.args, args), strict=True)
            ]
        except Mismatch:
            inputs = None
        if inputs is None:
            return slow(*args, **keywords)
        if any([np.may_share_memory(inputs[first], inputs[second]) for first, second in signature.separate]):
            return failed(OVERLAP, *args)
        for place, address, size in signature.fixed:
            start = inputs[place].ctypes.data
            if start < address + size and address < start + inputs[place].nbytes:
                return failed(OVERLAP, *args)
        outputs = [np.empty(leaf.shape, leaf.dtype) for leaf in results]
        count = [] if signature.expected is None else [np.empty((), np.int64)]
        arena = arenas.pop() if arenas else np.empty(signature.arena + ALIGNMENT, np.uint8)
        scratch = -(-arena.ctypes.data // ALIGNMENT) * ALIGNMENT
        status = call(_pointers(inputs), _pointers(outputs + count), scratch)
        if signature.arena <= MAX_SPARE_ARENA:
            arenas.append(arena)
        if status or (count and count[0] != signature.expected):
            return failed(status or ANOTHER_PATH, *args)
        return unflatten(signature.result, _result_objects(results, outputs))

    stub.owner, stub.release = owner, arenas.clear  # type: ignore[attr-defined]
    return stub


def _pointers(arrays: list[Any]) -> Any:
    return (ctypes.c_void_p * len(arrays))(*[array.ctypes.data for array in arrays])


def _result_objects(results: Iterable[Leaf], outputs: Iterable[Any]) -> Iterator[Any]:
    for leaf, array in zip(results, outputs, strict=True):
        yield array.item() if leaf.kind == "python" else array if leaf.shape else array[()]


def _readable(leaf: Leaf, value: Any) -> Any:
    """The array with the memory of a leaf. Raises Mismatch for a value that a native stub would reject."""
    if leaf.kind == "python":
        if type(value) is not PYTHON_TYPES[leaf.dtype] or (
            type(value) is int and not -LARGEST_INT - 1 <= value <= LARGEST_INT
        ):
            raise Mismatch(f"{value!r} is not a {leaf.dtype} scalar")
        return np.array(value, leaf.dtype)
    if not leaf.shape and type(value) is leaf.dtype.type:
        return np.array(value)
    if type(value) is not np.ndarray or value.shape != leaf.shape or not _is_same_dtype(leaf.dtype, value.dtype):
        raise Mismatch(f"an array of shape {leaf.shape} and dtype {leaf.dtype} was expected")
    if value.flags.num & capi.READABLE != capi.READABLE:
        raise Mismatch("the array is not contiguous or not aligned")
    return value


def _is_same_dtype(expected: np.dtype[Any], actual: np.dtype[Any]) -> bool:
    """Whether a dtype is the expected one, or a copy of a builtin one."""
    return expected is actual or (
        expected.isbuiltin == 1 and (expected.num, expected.byteorder) == (actual.num, actual.byteorder)
    )


def normalised(signature: StubSignature, values: Iterable[Any]) -> list[Any]:
    """Leaves as C-contiguous aligned arrays in native byte order, copied if necessary.

    Raises TypeError or ValueError if a dtype or a shape differs.

    >>> signature = StubSignature((Leaf("array", (2,), np.dtype(float)),), None)
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
