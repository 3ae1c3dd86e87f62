"""The handler with which NumPy allocates memory while a transform runs.

`set_in` sets it in a context, as NumPy's `PyDataMem_SetHandler` does: NumPy reads it from a context variable. Arrays
keep their handler, so it frees those that leave the context, too.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import Any, NamedTuple

from func.backends.llvm import machine
from func.backends.llvm.call_stubs import capi
from func.backends.llvm.memory import allocator_names as names
from func.backends.llvm.threads import background

KEY = "caching allocator"
HANDLER_NAME, HANDLER_VERSION = b"func", 1
DEFAULT_NAME = b"default_allocator"
SET_HANDLER, DEFAULT_HANDLER = 304, 306
"""Indices in NumPy's table. Source: numpy/_core/include/numpy/__multiarray_api.h."""


class _AllocatorFunctions(ctypes.Structure):
    """A PyDataMemAllocator of NumPy's, version 1. Source: numpy/_core/include/numpy/ndarraytypes.h."""

    _fields_ = tuple([(name, ctypes.c_void_p) for name in ("context", "malloc", "calloc", "realloc", "free")])


class _Handler(ctypes.Structure):
    """A PyDataMem_Handler of NumPy's."""

    _fields_ = (("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), ("functions", _AllocatorFunctions))


class Allocator(NamedTuple):
    """The allocator of this process."""

    handler: Any
    """The capsule that NumPy takes."""
    default: Any
    """NumPy's own handler."""
    variable: ContextVar[Any]
    """NumPy's context variable, which holds the handler."""
    addresses: dict[str, int]

    def set_limit(self, most: int) -> None:
        """Let at most this number of bytes wait for the next array."""
        self._word(names.LIMIT).value = most
        self.release(most)

    def waiting(self) -> int:
        """The bytes that wait."""
        return int(self._word(names.WAITING).value)

    def release(self, most: int = 0) -> None:
        """Free blocks until no more than `most` bytes wait."""
        ctypes.PYFUNCTYPE(None, ctypes.c_int64)(self.addresses[names.RELEASE])(most)

    def _word(self, name: str) -> ctypes.c_int64:
        return ctypes.c_int64.from_address(self.addresses[name])


def why_unavailable() -> str | None:
    """The reason why there is no such handler here, or None."""
    if sys.platform != "linux":
        return "blocks are measured by glibc's malloc_usable_size"
    return capi.why_unavailable()


def install() -> Allocator:
    """The allocator, with its code compiled or from the cache on disk.

    Raises: OSError if NumPy's own handler is an unknown one.
    """
    table = capi.numpy_table()
    original = _Handler.from_address(_pointer_of(ctypes.c_void_p.from_address(table[DEFAULT_HANDLER]).value))
    if original.name != DEFAULT_NAME or original.version != HANDLER_VERSION:
        raise OSError(f"NumPy's memory handler is {original.name!r}, version {original.version}")
    compiled = machine.compile_ir(_module, KEY)
    symbols = (*names.NAMES, names.BASE, names.LIMIT, names.WAITING, names.RELEASE)
    addresses = {name: compiled.address(name) for name in symbols}
    own = _Handler(HANDLER_NAME, HANDLER_VERSION, _AllocatorFunctions(None, *[addresses[name] for name in names.NAMES]))
    ctypes.c_void_p.from_address(addresses[names.BASE]).value = ctypes.addressof(original.functions)
    capsule = _new_capsule(ctypes.addressof(own), b"mem_handler", None)
    for lasting in (compiled, own, capsule):  # arrays are freed as late as at the end of the process
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(lasting))
    default = ctypes.cast(table[DEFAULT_HANDLER], ctypes.POINTER(ctypes.py_object)).contents.value
    return Allocator(capsule, default, _context_variable(table, capsule), addresses)


def _module() -> Any:
    # The import is needed only if the object code is not on disk.
    from func.backends.llvm.memory.allocator_code import allocator_module

    return allocator_module()


def is_on_disk() -> bool:
    """Whether `install` needs no compiler."""
    return machine.existing_code(_module, KEY) is not None


def install_soon(install: Callable[[], object]) -> None:
    """Run `install` in the background."""
    background.request(KEY, install)


def _context_variable(table: Any, capsule: Any) -> ContextVar[Any]:
    """NumPy's context variable: the one that a call of PyDataMem_SetHandler sets."""
    set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[SET_HANDLER])
    context = copy_context()
    context.run(set_handler, capsule)
    (variable,) = [variable for variable, value in context.items() if value is capsule]
    return variable


_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)


def _pointer_of(capsule: int | None) -> int:
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    return get(capsule, b"mem_handler") or 0


__all__ = ["Allocator", "install", "why_unavailable"]
