"""SciPy's BLAS and LAPACK in native code: addresses, declarations, calls.

SciPy exports every routine to Cython as a C function pointer in the Fortran convention: all arguments by address,
integers of 32 bits, matrices by columns.
"""

import ctypes
import functools
import importlib
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from func.backends.llvm import ir
from func.backends.llvm.linalg.matrix_copies import DOUBLE, FLOAT, INT, POINTER, element
from func.backends.llvm.machine import lock

PREFIX = "func_"
LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}

_RETURNS = {"void": ir.VoidType(), "int": INT, "s": FLOAT, "d": DOUBLE}


def library_path() -> str:
    """The file of the module that exports BLAS. Raises: ImportError, AttributeError without such a module."""
    return str(_module("cython_blas").__file__)


def _exports(module: str) -> dict[str, Any]:
    """The capsules of `cython_blas` or `cython_lapack`: each holds an address, and has the C signature as its name."""
    exports: dict[str, Any] = _module(module).__dict__["__pyx_capi__"]
    return exports


@functools.cache
def _module(module: str) -> ModuleType:
    name = f"scipy.linalg.{module}"
    loaded = sys.modules.get(name) or (None if sys.platform == "win32" else _loaded_alone(module))
    return loaded if loaded is not None else importlib.import_module(name)


def _loaded_alone(module: str) -> ModuleType | None:
    """The extension module without its package, whose import takes ten times as long; None where that fails.

    A regular import later on makes the same module known under its name.
    """
    name = f"scipy.linalg.{module}"
    package = importlib.util.find_spec("scipy")
    known = set(sys.modules)
    try:
        places = package.submodule_search_locations if package is not None else None
        files = [file for place in places or () for file in sorted(Path(place, "linalg").glob(f"{module}.*"))]
        for file in files:
            spec = importlib.util.spec_from_file_location(name, file)
            if file.suffix in (".so", ".pyd") and spec is not None and spec.loader is not None:
                loaded = importlib.util.module_from_spec(spec)
                spec.loader.exec_module(loaded)
                return loaded
    except ImportError:
        pass
    finally:
        if name not in known:
            sys.modules.pop(name, None)
    return None


def _capsule(name: str) -> Any | None:
    for module in ("cython_blas", "cython_lapack"):
        capsule = _exports(module).get(name)
        if capsule is not None:
            return capsule
    return None


def _capsule_name(capsule: Any) -> bytes:
    get_name = ctypes.pythonapi.PyCapsule_GetName
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    name: bytes = get_name(capsule)
    return name


@functools.cache
def symbol(name: str) -> str:
    """The name under which native code finds the BLAS or LAPACK routine; the address is registered with LLVM.

    Raises: LookupError for a routine which SciPy does not export.

    >>> symbol("dgemm")
    'func_dgemm'
    """
    capsule = _capsule(name)
    if capsule is None:
        raise LookupError(f"SciPy exports no BLAS or LAPACK routine {name!r}")
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    with lock:
        llvm.add_symbol(PREFIX + name, get_pointer(capsule, _capsule_name(capsule)))
    return PREFIX + name


def provide(name: str) -> bool:
    """Register the address of the routine with this symbol; False if there is none.

    >>> provide("func_dpotrf"), provide("func_of_nobody")
    (True, False)
    """
    if not name.startswith(PREFIX):
        return False
    try:
        symbol(name.removeprefix(PREFIX))
    except (LookupError, ImportError):
        return False
    return True


def declare(module: ir.Module, name: str) -> ir.Function:
    """The routine as a function of the module, with the signature that SciPy states.

    >>> len(declare(ir.Module(), "ddot").args)
    5
    """
    key = symbol(name)
    known: ir.Function | None = module.globals.get(key)
    if known is not None:
        return known
    signature = _capsule_name(_capsule(name)).decode()
    match = re.fullmatch(r"(?:\w+_)?(void|int|s|d) \((.*)\)", signature)
    if match is None:
        raise LookupError(f"native code cannot call {name!r}, whose signature is {signature}")
    result, arguments = match.groups()
    kind = ir.FunctionType(_RETURNS[result], [POINTER] * (arguments.count(",") + 1))
    function = ir.Function(module, kind, key)
    function.attributes.add("nounwind")
    return function


def fits(*sizes: int) -> bool:
    """Whether sizes and strides fit the 32-bit integers of BLAS."""
    return all(size < 2**31 for size in sizes)


def constant(builder: ir.IRBuilder, value: Any, kind: Any = INT) -> ir.Value:
    """The address of a constant: an integer, a letter, or a number of the dtype `kind`."""
    module = builder.module
    if isinstance(value, str):
        data = ir.Constant(ir.IntType(8), ord(value))
        name = f"func.letter.{value}"
    elif kind is INT:
        data = ir.Constant(INT, value)
        name = f"func.int.{value}"
    else:
        data = _number(value, np.dtype(kind))
        name = f"func.{np.dtype(kind).name}.{np.asarray(value, kind).tobytes().hex()}"
    known = module.globals.get(name)
    if known is None:
        known = ir.GlobalVariable(module, data.type, name)
        known.linkage, known.global_constant, known.initializer = "private", True, data
        known.unnamed_addr = True
    return known


def _number(value: Any, dtype: np.dtype[Any]) -> ir.Constant:
    rounded: complex = np.asarray(value, dtype).item()
    parts = [rounded.real, rounded.imag]
    return ir.Constant(element(dtype), parts if dtype.kind == "c" else parts[0])


def call(builder: ir.IRBuilder, name: str, *arguments: Any) -> ir.Value:
    """Call a routine, with Python's ints and letters as constants and addresses unchanged.

    Raises: OverflowError for an integer beyond 32 bits.
    """
    numbers = [value for value in arguments if isinstance(value, int)]
    if not fits(*numbers):
        raise OverflowError(f"{name}: sizes and strides must be below 2**31, got {max(numbers)}")
    pointers = [constant(builder, value) if isinstance(value, int | str) else value for value in arguments]
    return builder.call(declare(builder.module, name), pointers)


def routine(dtype: Any, name: str, complex_name: str | None = None) -> str:
    """The routine's name for a dtype: `routine("float64", "gemm")` is "dgemm"."""
    letter = LETTERS[np.dtype(dtype).name]
    return letter + (complex_name if complex_name is not None and letter in "cz" else name)


def leading(stride: int, needed: int | ir.Value) -> int:
    """The stride between rows as BLAS accepts it, also for a single row or none."""
    return max(stride, needed if isinstance(needed, int) else 1, 1)


def triangle(lower: bool) -> str:
    """BLAS's letter for a triangle, which seen by columns is the other one."""
    return "U" if lower else "L"
