"""Code generation by llvmlite's shared library, without llvmlite's Python code.

The import of llvmlite takes three times as long as loading its library, a third of a first call. So this module calls
the few functions that a first call needs, with llvmlite's signatures. For an unknown library, or if llvmlite is
imported already, `func.backends.llvm.compiler` does the same with llvmlite; the object code is the same to the byte.
LLVM needs no lock for modules in separate contexts, so this module does not take llvmlite's; the callers hold
`machine.lock`.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from func.backends.llvm import cache
from func.backends.llvm.host import Host, host
from func.backends.llvm.loader import elf_undefined
from func.backends.llvm.machine import QUICK, CompileError, Pipeline, lock

VERSIONS = range(45, 51)
"""The versions 0.n of llvmlite whose library has these functions with these arguments: the tests compare them with
those of the installed llvmlite."""

POINTER, TEXT, INT, OUT = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.POINTER(ctypes.c_void_p)
FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "ContextCreate": (POINTER, []),
    "ContextDispose": (None, [POINTER]),
    "CopyStringRepOfTargetData": (None, [POINTER, OUT]),
    "CreateNewModulePassManager": (POINTER, []),
    "CreatePassBuilder": (POINTER, [POINTER, POINTER]),
    "CreatePipelineTuningOptions": (POINTER, []),
    "CreateTargetMachine": (POINTER, [POINTER, TEXT, TEXT, TEXT, INT, TEXT, TEXT, INT, INT, TEXT]),
    "CreateTargetMachineData": (POINTER, [POINTER]),
    "DisposeMemoryBuffer": (None, [POINTER]),
    "DisposeModule": (None, [POINTER]),
    "DisposeNewModulePassManger": (None, [POINTER]),
    "DisposePassBuilder": (None, [POINTER]),
    "DisposePipelineTuningOptions": (None, [POINTER]),
    "DisposeString": (None, [POINTER]),
    "DisposeTargetData": (None, [POINTER]),
    "GetBufferSize": (ctypes.c_size_t, [POINTER]),
    "GetBufferStart": (POINTER, [POINTER]),
    "GetHostCPUFeatures": (INT, [OUT]),
    "GetHostCPUName": (None, [OUT]),
    "GetProcessTriple": (None, [OUT]),
    "GetTargetFromTriple": (POINTER, [TEXT, OUT]),
    "GetVersionInfo": (ctypes.c_uint, []),
    "InitializeNativeAsmPrinter": (None, []),
    "InitializeNativeTarget": (None, []),
    "ParseAssembly": (POINTER, [POINTER, TEXT, OUT]),
    "RunNewModulePassManager": (None, [POINTER, POINTER, POINTER]),
    "SetDataLayout": (None, [POINTER, TEXT]),
    "SetTarget": (None, [POINTER, TEXT]),
    "TargetMachineEmitToMemory": (POINTER, [POINTER, POINTER, INT, OUT]),
    "VerifyModule": (ctypes.c_bool, [POINTER, OUT]),
}
"""Results and arguments of the functions, whose names begin with PREFIX."""
PREFIX = "LLVMPY_"
PASSES = {
    "aggressive_dce": "ADCE",
    "always_inliner": "AlwaysInliner",
    "dead_store_elimination": "DSE",
    "global_dead_code_eliminate": "GlobalDCE",
    "instruction_combine": "InstCombine",
    "new_gvn": "NewGVN",
    "simplify_cfg": "SimplifyCFG",
    "sroa": "SROA",
}
"""The library's names for the passes of a pipeline."""
FUNCTIONS |= {f"module_Add{name}Pass": (None, [POINTER]) for name in PASSES.values()}


def is_usable() -> bool:
    """Whether the library is a known one, and llvmlite is not imported."""
    return "llvmlite.binding" not in sys.modules and _library() is not None


@functools.cache
def _folder() -> Path | None:
    spec = importlib.util.find_spec("llvmlite")
    places = spec.submodule_search_locations if spec is not None else None
    return Path(places[0]) if places else None


@functools.cache
def _version() -> str:
    """The version of llvmlite; "" if it is not in the known place."""
    folder = _folder()
    with contextlib.suppress(OSError):
        text = (folder / "_version.py").read_text() if folder is not None else ""
        match = re.search(r"^version_version = '([0-9.]+)'$", text, re.MULTILINE)
        return match[1] if match is not None else ""
    return ""


def path() -> Path | None:
    """The library's file; None if it is unknown, or not for Linux."""
    major, _, rest = _version().partition(".")
    minor = rest.partition(".")[0]
    folder = _folder()
    if sys.platform != "linux" or folder is None or major != "0" or not minor or int(minor) not in VERSIONS:
        return None
    return folder / "binding" / "libllvmlite.so"


@functools.cache
def _library() -> Any | None:
    """The library with its signatures; None if it is unknown, or lacks functions."""
    file = path()
    if file is None:
        return None
    try:
        library = ctypes.CDLL(os.fspath(file))
        for name, (result, arguments) in FUNCTIONS.items():
            function = getattr(library, PREFIX + name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError):
        return None
    return library


def _call(name: str, *arguments: Any) -> Any:
    return getattr(_library(), PREFIX + name)(*arguments)


def _text_of(name: str, *arguments: Any) -> tuple[Any, str]:
    """The result of a function that also returns a text by its last argument."""
    out = ctypes.c_void_p()
    result = _call(name, *arguments, ctypes.byref(out))
    if not out.value:
        return result, ""
    try:
        return result, ctypes.string_at(out.value).decode()
    finally:
        _call("DisposeString", out)


@contextlib.contextmanager
def _disposed(value: int | None, dispose: str) -> Iterator[int]:
    """An object of LLVM, freed afterwards."""
    if not value:
        raise CompileError("LLVM is out of memory")
    try:
        yield value
    finally:
        _call(dispose, value)


@functools.cache
def _start() -> None:
    _call("InitializeNativeTarget")
    _call("InitializeNativeAsmPrinter")


def ask_host() -> Host:
    """The host as LLVM describes it."""
    with lock:
        return _described()


def _described() -> Host:
    _start()
    number, parts = _call("GetVersionInfo"), []
    while number:
        parts.append(str(number & 0xFF))
        number >>= 8
    is_known, features = _text_of("GetHostCPUFeatures")
    names = [name for name in features.split(",") if name] if is_known else []
    return Host(
        _text_of("GetProcessTriple")[1],
        _text_of("GetHostCPUName")[1],
        ",".join(sorted(names, key=lambda name: name[1:])),
        f"llvmlite {_version()}, LLVM {'.'.join(reversed(parts))}",
    )


@functools.cache
def machine_of(level: int) -> int:
    """The target machine that emits code for those who hold `machine.lock`."""
    return new_machine(level)


def new_machine(level: int = QUICK.level) -> int:
    """A target machine, for one thread at a time."""
    _start()
    triple = host().triple.encode()
    target, error = _text_of("GetTargetFromTriple", triple)
    if not target:
        raise CompileError(f"LLVM does not start: {error}")
    options = host().cpu.encode(), host().features.encode(), level, b"default", b"jitdefault", 0, 1, b""
    machine: int | None = _call("CreateTargetMachine", target, triple, *options)
    if not machine:
        raise CompileError("LLVM does not start: it has no target machine for this processor")
    return machine


def emit_object(text: str, pipeline: Pipeline = QUICK) -> cache.ObjectCode:
    """Object code of the module's text, with the names that the process must define.

    Raises: CompileError for a module that LLVM rejects.
    """
    image = emit(text, machine_of(pipeline.level), pipeline)
    needed = elf_undefined(image)
    if needed is None:
        raise CompileError("LLVM emits another format than ELF")
    return cache.ObjectCode(image, tuple(needed))


def emit(text: str, machine: int, pipeline: Pipeline = QUICK) -> bytes:
    """The object file of the module's text."""
    with _disposed(_call("ContextCreate"), "ContextDispose") as context:
        module, error = _text_of("ParseAssembly", context, text.encode())
        if error or not module:
            raise CompileError(f"LLVM rejects the module: {error}")
        with _disposed(module, "DisposeModule"):
            is_wrong, error = _text_of("VerifyModule", module)
            if is_wrong:
                raise CompileError(f"LLVM rejects the module: {error}")
            _call("SetTarget", module, host().triple.encode())
            with _disposed(_call("CreateTargetMachineData", machine), "DisposeTargetData") as data:
                _call("SetDataLayout", module, _text_of("CopyStringRepOfTargetData", data)[1].encode())
            _optimise(module, machine, pipeline)
            return _emitted(module, machine)


def _optimise(module: int, machine: int, pipeline: Pipeline) -> None:
    """Run the passes of a pipeline."""
    with contextlib.ExitStack() as stack:

        def owned(value: int | None, dispose: str) -> int:
            return stack.enter_context(_disposed(value, dispose))

        options = owned(_call("CreatePipelineTuningOptions"), "DisposePipelineTuningOptions")
        builder = owned(_call("CreatePassBuilder", machine, options), "DisposePassBuilder")
        passes = owned(_call("CreateNewModulePassManager"), "DisposeNewModulePassManger")
        for name in pipeline.passes:
            _call(f"module_Add{PASSES[name]}Pass", passes)
        _call("RunNewModulePassManager", passes, module, builder)


def _emitted(module: int, machine: int) -> bytes:
    """The object file of a module."""
    buffer, error = _text_of("TargetMachineEmitToMemory", machine, module, 1)
    if not buffer:
        raise CompileError(f"LLVM emits no object code: {error}")
    with _disposed(buffer, "DisposeMemoryBuffer"):
        return ctypes.string_at(_call("GetBufferStart", buffer), _call("GetBufferSize", buffer))
