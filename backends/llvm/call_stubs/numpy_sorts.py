"""NumPy's sorts for native code: the addresses of the functions by which NumPy sorts the elements of a dtype.

Every dtype has a table of C functions, which is part of NumPy's ABI: among them

    int sort(void *elements, npy_intp length, void *array)
    int argsort(void *elements, npy_intp *order, npy_intp length, void *array)

for each kind of sort. Those of numbers use only the elements, neither the array nor Python, so native code may call
them in any thread. They are the loops that `np.sort` and `np.argsort` run, for the processor at hand.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any, Final

import numpy as np

from func.backends.llvm.call_stubs import capi

PREFIX: Final = "func_numpy_"
GET_FUNCTIONS: Final = 365
"""The index of `_PyDataType_GetArrFuncs` in NumPy's table. Source: numpy/_core/include/numpy/__multiarray_api.h."""
FIRST_SORT: Final = 33
"""The place of `sort` in the table of a dtype, after 21 casts and twelve other functions; `argsort` follows. Each has
one function for every kind. Source: PyArray_ArrFuncs in numpy/_core/include/numpy/ndarraytypes.h."""
KINDS: Final = {"quicksort": 0, "stable": 2}
"""The places of the kinds. All other names mean one of the two, except "heapsort", which varies with the version."""
FUNCTIONS: Final = {"sort": 0, "argsort": 3}
CHECKED: Final = (3, 1, 2, 1, 0, 3, 2, 0) * 5
"""The sample that a function must sort as NumPy does: more elements than sorting networks take."""

_SORT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_void_p)
_ARGSORT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_void_p)


def address_of(name: str) -> int | None:
    """The address of a sort, by its name; None for other names, and if NumPy has no such function.

    >>> address_of("func_numpy_sort_float64_stable") is None, address_of("func_dgemm")
    (False, None)
    """
    if not name.startswith(PREFIX):
        return None
    function, dtype, kind = name.removeprefix(PREFIX).split("_")
    return _checked(function, np.dtype(dtype), kind)


@functools.cache
def _checked(function: str, dtype: np.dtype[Any], kind: str) -> int | None:
    """The address of a function that sorts as NumPy does."""
    if not capi.available() or dtype.kind not in "biufc":
        return None
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(capi.numpy_table()[GET_FUNCTIONS])
    place = FIRST_SORT + FUNCTIONS[function] + KINDS[kind]
    address = (ctypes.c_void_p * (place + 1)).from_address(get(dtype))[place]
    if not address:
        return None
    elements = np.array(CHECKED).astype(dtype)
    order = np.arange(elements.size)
    result = elements.copy() if function == "sort" else order
    expected = getattr(np, function)(elements, kind=kind)
    if function == "sort":
        status = _SORT(address)(result.ctypes.data, result.size, None)
    else:
        status = _ARGSORT(address)(elements.ctypes.data, order.ctypes.data, order.size, None)
    return int(address) if status == 0 and result.tobytes() == expected.tobytes() else None
