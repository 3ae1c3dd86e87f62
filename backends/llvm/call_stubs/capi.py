"""The C interface of CPython and NumPy for native code: offsets of fields, and addresses of functions.

docs/native.md lists what native code reads and for which versions the offsets were checked.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import platform
import sys
from typing import Any, Final

import numpy as np

TYPE: Final = 8
"""Offset of the type in an object, after the reference count."""
COUNT: Final = 16
"""Offset of the number of items of a tuple, list or dict."""
VALUE: Final = 16
"""Offset of the number in a float or complex."""
TUPLE_ITEMS: Final[int] = getattr(tuple, "__basicsize__", 24)
LIST_ITEMS: Final = 24
ARRAY_DATA: Final = 16
ARRAY_NDIM: Final = 24
ARRAY_SHAPE: Final = 32
ARRAY_STRIDES: Final = 40
ARRAY_BASE: Final = 48
ARRAY_DTYPE: Final = 56
ARRAY_FLAGS: Final = 64
ARRAY_WEAKREFS: Final = 72
DTYPE_KIND: Final = 24
"""Offset of the eight bytes that identify a builtin dtype: kind, character, byte order, flags, number."""

C_CONTIGUOUS: Final = 0x1
F_CONTIGUOUS: Final = 0x2
OWNDATA: Final = 0x4
ALIGNED: Final = 0x100
WRITEABLE: Final = 0x400
READABLE: Final = C_CONTIGUOUS | ALIGNED
"""The flags of an array that native code reads in place."""

PYTHON_FUNCTIONS: Final = (
    "Py_IncRef",
    "Py_DecRef",
    "PyBool_FromLong",
    "PyComplex_FromDoubles",
    "PyDict_GetItemWithError",
    "PyDict_New",
    "PyDict_SetItem",
    "PyErr_Clear",
    "PyErr_Occurred",
    "PyEval_RestoreThread",
    "PyEval_SaveThread",
    "PyFloat_FromDouble",
    "PyList_New",
    "PyLong_AsLongLongAndOverflow",
    "PyLong_FromLongLong",
    "PyObject_Vectorcall",
    "PyTuple_New",
)
NUMPY_FUNCTIONS: Final = {"PyArray_Scalar": 60, "PyArray_NewFromDescr": 94}
"""Indices in NumPy's table, which are part of its ABI. Source: numpy/_core/include/numpy/__multiarray_api.h."""
FUNCTIONS: Final = (*PYTHON_FUNCTIONS, *NUMPY_FUNCTIONS)

METH_FASTCALL_KEYWORDS: Final = 0x80 | 0x2


class MethodDefinition(ctypes.Structure):
    """A PyMethodDef: name, address, calling convention and docstring of a function."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


@functools.cache
def function_table() -> np.ndarray[Any, np.dtype[np.uintp]]:
    """The addresses of FUNCTIONS in this process, in their order."""
    table = [_address(getattr(ctypes.pythonapi, name)) for name in PYTHON_FUNCTIONS]
    numpys = numpy_table()
    table += [int(numpys[index] or 0) for index in NUMPY_FUNCTIONS.values()]
    addresses = np.array(table, np.uintp)
    addresses.flags.writeable = False
    return addresses


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def numpy_table() -> Any:
    capsule = importlib.import_module("numpy._core._multiarray_umath")._ARRAY_API
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    return ctypes.cast(get(capsule, None), ctypes.POINTER(ctypes.c_void_p))


@functools.cache
def abi() -> str:
    """The versions of Python and NumPy for the cache key of code that reads these fields.

    >>> abi().startswith("cp3")
    True
    """
    version = f"cp{sys.version_info.major}{sys.version_info.minor}"
    return f"{version}-tuple{TUPLE_ITEMS}-numpy{np.__version__.split('.')[0]}-{sys.platform}"


def available() -> bool:
    """Whether native code can read this interpreter's objects."""
    return why_unavailable() is None


@functools.cache
def why_unavailable() -> str | None:
    """The reason why native code cannot read this interpreter's objects, or None if it can."""
    if platform.python_implementation() != "CPython":
        return f"{platform.python_implementation()} has another object layout than CPython"
    if not (3, 11) <= sys.version_info[:2] <= (3, 14):
        return f"the object layout of Python {sys.version_info.major}.{sys.version_info.minor} is unknown"
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return "this Python runs without the global interpreter lock"
    if sys.byteorder != "little" or sys.maxsize < 2**62:
        return "native code reads objects on 64-bit little-endian machines only"
    if int(np.__version__.split(".")[0]) != 2:
        return f"the array layout of NumPy {np.__version__} is unknown"
    sizes = [kind.__basicsize__ for kind in (object, float, complex, list)]
    if sizes != [16, 24, 32, 40]:
        return f"objects, floats, complex numbers and lists have {sizes} bytes"
    try:
        wrong = _wrong_fields()
    except (AttributeError, ImportError) as error:
        return f"a function of the C interface is missing: {error}"
    return f"fields are not where they were expected: {', '.join(wrong)}" if wrong else None


def _wrong_fields() -> list[str]:
    """The fields that are not at their offsets in objects made for this test."""
    if not function_table().all():
        return ["function table"]
    base = np.zeros((4, 6), np.float32)
    array = base[1:3, ::2]
    strings = (array.dtype.kind + array.dtype.char + array.dtype.byteorder).encode()
    checks = {
        "type": _word(array, TYPE) == id(np.ndarray),
        "tuple size": _word((1, 2, 3), COUNT) == 3,
        "tuple items": _word((array, base), TUPLE_ITEMS + 8) == id(base),
        "list size": _word([1, 2, 3], COUNT) == 3,
        "list items": ctypes.c_size_t.from_address(_word([array, base], LIST_ITEMS) + 8).value == id(base),
        "dict size": _word({1: 1, 2: 2, "a": 3}, COUNT) == 3,
        "float": ctypes.c_double.from_address(id(number := -1.25) + VALUE).value == number,
        "complex": ctypes.c_double.from_address(id(pair := complex(1, -2.5)) + VALUE + 8).value == pair.imag,
        "data": _word(array, ARRAY_DATA) == array.ctypes.data,
        "ndim": ctypes.c_int.from_address(id(array) + ARRAY_NDIM).value == 2,
        "shape": tuple((ctypes.c_ssize_t * 2).from_address(_word(array, ARRAY_SHAPE))) == array.shape,
        "strides": tuple((ctypes.c_ssize_t * 2).from_address(_word(array, ARRAY_STRIDES))) == array.strides,
        "base": _word(array, ARRAY_BASE) == id(base) and _word(base, ARRAY_BASE) == 0,
        "dtype": _word(array, ARRAY_DTYPE) == id(array.dtype),
        "flags": ctypes.c_int.from_address(id(array) + ARRAY_FLAGS).value == array.flags.num,
        "dtype kind": ctypes.string_at(id(array.dtype) + DTYPE_KIND, 3) == strings,
        "dtype number": ctypes.c_int.from_address(id(array.dtype) + DTYPE_KIND + 4).value == array.dtype.num,
        "weak references": np.ndarray.__weakrefoffset__ == ARRAY_WEAKREFS,
    }
    return [name for name, is_right in checks.items() if not is_right]


def _word(value: object, offset: int) -> int:
    return ctypes.c_size_t.from_address(id(value) + offset).value


@functools.cache
def scalar_offset(dtype: np.dtype[Any]) -> int | None:
    """The offset of the number in a NumPy scalar of this dtype, or None if it is unknown."""
    if dtype == np.bool_:
        patterns = [b"\x01", b"\x00"]
    else:
        patterns = [bytes(range(start, start + dtype.itemsize)) for start in (1, 33)]
    scalars = [np.frombuffer(pattern, dtype)[0] for pattern in patterns]
    size = type(scalars[0]).__basicsize__
    images = [ctypes.string_at(id(scalar), size) for scalar in scalars]
    for offset in range(COUNT, size - dtype.itemsize + 1):
        if all(image[offset : offset + dtype.itemsize] == part for image, part in zip(images, patterns, strict=True)):
            return offset
    return None
