"""Compiled code in the process: from LLVM IR to callable addresses, by the cache on disk if possible.

The loader of this package (`loader.py`) links object code if it can, otherwise LLVM does. The library of llvmlite
(`llvm_library.py`) generates it, or llvmlite itself (`compiler.py`) if the library is unknown. The collection of a
`MachineCode` frees the memory of its code.
"""

import contextlib
import functools
import importlib
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol, TypeAlias

from func.backends import messages
from func.backends.llvm import cache, loader, symbols
from func.backends.llvm.host import host

# A module (`ir.Module`), its text, or a function that makes one of them on demand.
Source: TypeAlias = Any | str | Callable[[], Any | str]


class Pipeline(NamedTuple):
    """The level of the code generator, and the passes before it in their order."""

    level: int
    passes: tuple[str, ...]


# Straight-line vector code: the printer unrolls, vectorises and shares values itself, and the code generator simplifies
# the rest. The passes of THOROUGH would take a tenth of a compilation more, and the next level, which schedules once
# more, another tenth; neither makes the benchmarks faster.
QUICK = Pipeline(1, ("always_inliner", "sroa", "simplify_cfg", "global_dead_code_eliminate"))

# Code with branches for all programs, made once for all processes.
THOROUGH = Pipeline(
    2,
    (
        "always_inliner",
        "sroa",
        "simplify_cfg",
        "new_gvn",
        "instruction_combine",
        "dead_store_elimination",
        "aggressive_dce",
        "global_dead_code_eliminate",
    ),
)

lock = threading.RLock()
"""Held while LLVM compiles."""
locks_after: list[Any] = []
"""Locks to take after this one: those of llvmlite, once it is imported."""
_fork_locks: list[Any] = []
_loaded: weakref.WeakValueDictionary[str, "MachineCode"] = weakref.WeakValueDictionary()


def _before_fork() -> None:
    """Take the locks around LLVM, so that a child never starts while another thread is inside LLVM.

    llvmlite has its own lock, which it also takes when the last reference to one of its objects goes.
    """
    for each in (lock, *locks_after):
        _fork_locks.append(each)  # first: an interrupt may end this function anywhere, and Python forks
        each.__enter__()


def _after_fork() -> None:
    while _fork_locks:
        with contextlib.suppress(RuntimeError):  # an interrupt came before it was taken
            _fork_locks.pop().__exit__(None, None, None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


class CompileError(RuntimeError):
    """A module could not be compiled or linked."""


class Linked(Protocol):
    """Object code in the process."""

    def address(self, name: str) -> int:
        """The address of a function or variable; 0 if the object does not define it."""
        ...

    def close(self) -> None:
        """Free the memory."""
        ...


def compiler() -> Any:
    """The module with all of LLVM's functions, by llvmlite, which it imports."""
    with lock:  # a child of another thread's fork never finds the import half done
        return importlib.import_module("func.backends.llvm.compiler")


def generator() -> Any:
    """The module that generates object code: by llvmlite's library alone if possible."""
    with lock:
        library = importlib.import_module("func.backends.llvm.llvm_library")
        return library if library.is_usable() else compiler()


@functools.cache
def available() -> bool:
    """Whether native code can be compiled and run on this host.

    >>> available() in (True, False)
    True
    """
    try:
        host()
    except (CompileError, OSError, RuntimeError) as error:
        messages.debug("no native code: %s", error)
        return False
    return True


def compile_ir(module: Source, key: str | None = None) -> "MachineCode":
    """The compiled module; the same `MachineCode` for the same module as long as it is in use.

    `key` identifies the module in place of its text. With it, `module` may be a function that makes the module. func
    calls it only if neither the process nor the cache on disk has the code. The module then gets the THOROUGH pipeline.

    Names outside the module are those of libc and libm, and those registered by `llvmlite.binding.add_symbol`. The text
    must not contain an address of this process, or no process would find its entry in the cache again.

    Raises: CompileError for a module that LLVM rejects or that calls a function that does not exist.

    >>> code = compile_ir("define i32 @seven() { ret i32 7 }")
    >>> import ctypes
    >>> ctypes.CFUNCTYPE(ctypes.c_int32)(code.address("seven"))()
    7
    """
    source: Source = module
    if key is None:
        source = origin = _text(module)
    else:
        origin = _origin(key)
    pipeline = QUICK if key is None else THOROUGH
    digest = _digest(origin, pipeline)
    with lock:
        code = _existing(digest, source, pipeline)
        if code is None:
            text = _text(source)
            with _references(text if key is None else "") as references:  # they are linked with the code
                stored = generator().emit_object(text, pipeline)
            cache.store(digest, stored)
            code = _loaded[digest] = MachineCode(stored, source, pipeline, digest)
            del references
        return code


@contextlib.contextmanager
def _references(text: str) -> Iterator[list["MachineCode"]]:
    """The code of the modules to which a module's text refers; a thread generates missing ones inside."""
    codes: list[MachineCode] = []
    concurrent_modules = importlib.import_module("func.backends.llvm.concurrent_modules")
    sources = []
    if generator() is sys.modules.get("func.backends.llvm.llvm_library"):  # llvmlite compiles one module at a time
        for key, source in concurrent_modules.missing_in(text):
            code = existing_code(source, key)
            if code is None:
                sources.append((_digest(_origin(key), THOROUGH), source))
            else:
                codes.append(code)
    if not sources:
        yield codes
        return
    with concurrent_modules.generated([_text(source) for _, source in sources]) as done:
        yield codes
    for (digest, source), stored in zip(sources, done, strict=False):
        cache.store(digest, stored)
        codes.append(_loaded.setdefault(digest, MachineCode(stored, source, THOROUGH, digest)))


def existing_code(module: Source, key: str) -> "MachineCode | None":
    """The result of `compile_ir` for this key, if the process or the cache on disk has it."""
    with lock:
        return _existing(_digest(_origin(key), THOROUGH), module, THOROUGH)


def _origin(key: str) -> str:
    return f"{key} of {cache.source_fingerprint()}"


def _digest(origin: str, pipeline: Pipeline) -> str:
    return cache.digest(origin, host().fingerprint, repr(pipeline))


def _existing(digest: str, source: Source, pipeline: Pipeline) -> "MachineCode | None":
    code = _loaded.get(digest)
    stored = cache.load(digest) if code is None else None
    if stored is not None:
        code = _loaded[digest] = MachineCode(stored, source, pipeline, digest)
    return code


def _linked(stored: cache.ObjectCode) -> Linked:
    """Object code in the process, by the loader if possible."""
    if loader.is_supported():
        try:
            return loader.LoadedObject(stored.image, symbols.find)
        except loader.Unloadable as error:
            messages.debug("object code is linked by LLVM: %s", error)
    linked: Linked = compiler().Engine(stored)
    return linked


def load_code(digest: str, source: Source) -> "MachineCode | None":
    """The cached code of a digest, if the process or the cache on disk has it and it links."""
    with lock:
        try:
            return _existing(digest, source, QUICK)
        except CompileError as error:
            messages.debug("object code on disk is not used: %s", error)
            return None


class _Owner:
    """Linked object code, which only one `MachineCode` refers to.

    A finalizer runs before Python clears the weak references to its object. With that of `MachineCode`, another thread
    could take the code out of `_loaded` while it is being freed.
    """

    def __init__(self, stored: cache.ObjectCode) -> None:
        self.linked = _linked(stored)

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        linked = self.__dict__.get("linked")
        if linked is not None and not is_finalizing():  # when `sys` may be gone, and the pool's threads run code
            _free(linked)


class MachineCode:
    """Native code in the process; its memory is freed when the object is collected."""

    def __init__(self, stored: cache.ObjectCode, source: Source, pipeline: Pipeline, digest: str) -> None:
        self.digest = digest
        """The key of the object code in the cache."""
        self._source = source
        self._pipeline = pipeline
        self._owner = _Owner(stored)
        self._addresses: dict[str, int] = {}

    def address(self, name: str) -> int:
        """The address of the function or variable `name`.

        Raises: CompileError if the module does not define it.
        """
        address = self._addresses.get(name)
        if address is None:
            address = self._owner.linked.address(name)
            if not address:
                raise CompileError(f"the compiled module defines no {name!r}")
            self._addresses[name] = address
        return address

    def ir(self) -> str:
        """The optimised IR, made from the source again."""
        with lock:
            return str(compiler().optimise(_text(self._source), self._pipeline))

    def assembly(self) -> str:
        """The host's assembly, made from the source again."""
        assembly: str = compiler().emit_assembly(_text(self._source), self._pipeline)
        return assembly


def _free(linked: Linked) -> None:
    linked.close()


def _text(source: Source) -> str:
    return str(source() if callable(source) else source)
