"""Plain arrays indexed by traced values: `table[i]` is a gather where code cannot read the index.

For `a[i]` Python calls a C function of the type ndarray, the slot `mp_subscript`, past all protocols. This module puts
a function of machine code into the slot before the first level whose numbers code cannot read, such as that of `jit`.
It compares the type of the index, or of each item of a tuple, with that of traced values: about a
nanosecond. A traced index goes to `read`, any other to NumPy's function. Subclasses keep their own slots.

Where native code cannot read the objects of an interpreter, the slot stays: such an index is a question or an error.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from func.backends.hashing import new_hash
from func.backends.llvm import machine
from func.backends.llvm.call_stubs import capi
from func.interpreters.core import EVALUATE, Tracer, dtype_of, is_readable, shape_of
from func.interpreters.host.swallowed_errors import hide_outside
from func.numpy.inplace import getitem

AS_MAPPING = 112
"""Offset of the table of mapping functions in a type. Source: CPython's Include/cpython/object.h."""
SUBSCRIPT = 8
"""Offset of the function for a[i] in that table."""
WRAPPED = 48
"""Offset of the slot's function in the descriptor of `ndarray.__getitem__`.

Source: CPython's Include/cpython/descrobject.h.
"""
_CODE = f"""
@hooks = global [5 x ptr] zeroinitializer

define ptr @subscript(ptr %array, ptr %index) {{
start:
  %tracer = load ptr, ptr @hooks
  %tuple.at = getelementptr ptr, ptr @hooks, i64 1
  %tuple = load ptr, ptr %tuple.at
  %type.at = getelementptr i8, ptr %index, i64 {capi.TYPE}
  %type = load ptr, ptr %type.at
  %is.traced = icmp eq ptr %type, %tracer
  br i1 %is.traced, label %traced, label %other
other:
  %is.tuple = icmp eq ptr %type, %tuple
  br i1 %is.tuple, label %items, label %plain
items:
  %count.at = getelementptr i8, ptr %index, i64 {capi.COUNT}
  %count = load i64, ptr %count.at
  %first = getelementptr i8, ptr %index, i64 {capi.TUPLE_ITEMS}
  br label %next
next:
  %place = phi i64 [ 0, %items ], [ %following, %item ]
  %is.left = icmp ult i64 %place, %count
  br i1 %is.left, label %item, label %plain
item:
  %item.at = getelementptr ptr, ptr %first, i64 %place
  %value = load ptr, ptr %item.at
  %item.type.at = getelementptr i8, ptr %value, i64 {capi.TYPE}
  %item.type = load ptr, ptr %item.type.at
  %is.traced.item = icmp eq ptr %item.type, %tracer
  %following = add i64 %place, 1
  br i1 %is.traced.item, label %traced, label %next
plain:
  %original.at = getelementptr ptr, ptr @hooks, i64 2
  %original = load ptr, ptr %original.at
  %out = tail call ptr %original(ptr %array, ptr %index)
  ret ptr %out
traced:
  %call.at = getelementptr ptr, ptr @hooks, i64 3
  %call = load ptr, ptr %call.at
  %read.at = getelementptr ptr, ptr @hooks, i64 4
  %read = load ptr, ptr %read.at
  %arguments = alloca [2 x ptr]
  store ptr %array, ptr %arguments
  %second = getelementptr ptr, ptr %arguments, i64 1
  store ptr %index, ptr %second
  %gathered = call ptr %call(ptr %read, ptr %arguments, i64 2, ptr null)
  ret ptr %gathered
}}
"""
_kept: list[Any] = []
"""Objects to which machine code refers."""


def read(array: np.ndarray[Any, Any], index: Any) -> Any:
    """`array[index]` for an index with traced values: NumPy's own where code can read them, a gather elsewhere.

    NumPy handles a row, which would be a view of the array: writes reach the array.
    """
    items = index if type(index) is tuple else (index,)
    traced = [item for item in items if type(item) is Tracer]
    try:
        is_known = all([is_readable(item) for item in traced])
        if is_known or array.dtype.kind not in "fciub" or not _is_copied(array, items):
            return _kept[1](array, index)
        return getitem(Tracer(EVALUATE, np.ndarray.view(array, np.ndarray), None), index)
    except Exception as error:
        hide_outside(error)
        raise


def _is_copied(array: np.ndarray[Any, Any], items: tuple[Any, ...]) -> bool:
    """Whether NumPy makes a new array, or a number, for an index."""
    kinds = [dtype_of(item).kind if type(item) is Tracer else "" for item in items]
    if any([kind not in ("", "b", "i", "u") for kind in kinds]):
        return False  # an error of NumPy's
    is_advanced = [kind == "b" or (kind and shape_of(item) != ()) for kind, item in zip(kinds, items, strict=True)]
    if any(is_advanced) or any([isinstance(item, (list, np.ndarray)) for item in items]):
        return True
    numbers = [item for item in items if type(item) is Tracer or isinstance(item, (int, np.integer))]
    return len(numbers) == len(items) == array.ndim


def install() -> None:
    """Put the machine code into the slot, if this interpreter is as expected."""
    if _kept or not capi.available():
        return
    slot = _slot()
    original = slot.contents.value
    if original is None or _word(id(np.ndarray.__getitem__) + WRAPPED) != original:
        return
    try:
        code = machine.compile_ir(lambda: _CODE, key=f"subscripts {capi.abi()} {new_hash(_CODE.encode()).hexdigest()}")
    except machine.CompileError:
        return
    kind = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.py_object)
    hooks = (ctypes.c_void_p * 5).from_address(code.address("hooks"))
    vectorcall = ctypes.cast(ctypes.pythonapi.PyObject_Vectorcall, ctypes.c_void_p).value
    hooks[:] = [id(Tracer), id(tuple), original, vectorcall, id(read)]
    _kept.extend([code, kind(original), read])
    for value in _kept:  # while the process ends, arrays outlive this module
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))
    slot.contents.value = code.address("subscript")


def _slot() -> Any:
    """The slot of the type ndarray."""
    return ctypes.pointer(ctypes.c_void_p.from_address(_word(id(np.ndarray) + AS_MAPPING) + SUBSCRIPT))


def _word(address: int) -> int:
    return ctypes.c_void_p.from_address(address).value or 0
