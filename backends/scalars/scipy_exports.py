"""SciPy's special functions as C functions of numbers: `scipy.special.cython_special` exports their addresses.

Each export is a capsule that has a C signature as its name. The functions are those that SciPy's ufuncs call for every
element, so results are the same to the bit. They may be called in any thread: after an error they do nothing, as long
as `scipy.special.errstate` asks for nothing. Otherwise they would call Python, or not report at all. So a program asks
first (`REPORTS`), and leaves its work to NumPy. Compiled code from the cache needs the addresses alone, so nothing here
imports printers.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import re
from collections.abc import Sequence
from typing import Any

PREFIX = "func_special_"
REPORTS = f"{PREFIX}reports"
"""int reports(): whether SciPy's ufuncs warn or raise for some error now."""
CODES = {"double": "d", "float": "f", "Py_ssize_t": "l"}
"""The letters for types of C in the names of functions."""
_KEY = re.compile(r"(?:__pyx_fuse_\d+(?:_\d+)*)?([a-z]\w*)")
"""A function in the table of exports: those of several types come once for each."""
_SIGNATURE = re.compile(rf"({'|'.join(CODES)}) \(((?:(?:{'|'.join(CODES)}), )+)int __pyx_skip_dispatch\)")
"""Functions of numbers with one result. Their last argument is Cython's own, and has no meaning."""
# fmt: off
CALLING_PYTHON = {
    "ddd_d_bdtr", "ddd_d_bdtrc", "ddd_d_bdtri", "dd_d_expn", "dd_d_hyp0f1", "dd_d_kn", "ddd_d_nbdtr", "ddd_d_nbdtrc",
    "ddd_d_nbdtri", "dd_d_pdtri", "dd_d_smirnov", "dd_d_smirnovi", "dd_d_yn",
}
# fmt: on
"""Functions that warn of fractions instead of integers, or print an error, despite `errstate`."""
IN_SINGLE = {"bei", "beip", "ber", "berp", "it2struve0", "kei", "keip", "ker", "kerp", "obl_cv", "pro_cv"}
"""Functions that SciPy computes in single precision for float32, and exports for doubles alone."""


def symbol(name: str, arguments: Sequence[str], result: str) -> str:
    """The name under which native code finds a function for types, given by their letters.

    >>> symbol("jv", "dd", "d")
    'func_special_dd_d_jv'
    """
    return f"{PREFIX}{''.join(arguments)}_{result}_{name}"


def address_of(name: str) -> int | None:
    """The address of the function with this symbol; None if there is none.

    >>> address_of("func_special_dd_d_jv") is None, address_of("func_special_dd_d_nobody"), address_of("func_dgemm")
    (False, None, None)
    """
    if not name.startswith(PREFIX):
        return None
    return ctypes.cast(_CALLBACK, ctypes.c_void_p).value if name == REPORTS else _addresses().get(name)


@functools.cache
def _addresses() -> dict[str, int]:
    """The addresses of all functions, by their symbols; of none for a SciPy without exports."""
    try:
        module = importlib.import_module("scipy.special.cython_special")
        exports: dict[str, Any] = vars(module)["__pyx_capi__"]
    except (ImportError, KeyError):
        return {}
    get_name, get_pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    addresses = {}
    for key, capsule in exports.items():
        name, signature = _KEY.fullmatch(key), get_name(capsule)
        types = _SIGNATURE.fullmatch(signature.decode())
        if name is not None and types is not None:
            arguments = [CODES[word] for word in types[2].rstrip(", ").split(", ")]
            addresses[symbol(name[1], arguments, CODES[types[1]])] = get_pointer(capsule, signature)
    return {name: address for name, address in addresses.items() if name.removeprefix(PREFIX) not in CALLING_PYTHON}


def _reports() -> int:
    actions: dict[str, str] = importlib.import_module("scipy.special").geterr()
    return any([action != "ignore" for error, action in actions.items() if error != "memory"])


_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int32)(_reports)
