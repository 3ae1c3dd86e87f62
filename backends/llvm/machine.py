"""Compilation of LLVM IR to callable addresses: the host's target machine, the passes, object code, the engine.

A module is printed, parsed, optimised and emitted to object code by one target machine. A separate engine links each
module into the process, so the memory of its code is freed when its `MachineCode` is collected. Object code from the
cache (`func.backends.llvm.cache`) only needs the linking.
"""

import contextlib
import functools
import importlib
import logging
import os
import struct
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, ParamSpec, TypeAlias, TypeVar

from func.backends.llvm import cache

llvm: Any = None
with contextlib.suppress(ImportError):
    llvm = importlib.import_module("llvmlite.binding")


P = ParamSpec("P")
T = TypeVar("T")

# A module (`ir.Module`), its text, or a function that makes one of them when it is needed.
Source: TypeAlias = Any | str | Callable[[], Any | str]

# Modules that provide addresses on request: `provide(name)` registers the address of a name that it knows, and returns
# whether it does. Cached object code may need an address that this process has not asked for yet. The last module looks
# into SciPy's BLAS and LAPACK, which take longest to load.
PROVIDERS = tuple(
    [
        f"func.backends.llvm.{name}"
        for name in ("math.elementary", "threads.pool", "linalg.blas_threads", "linalg.routines")
    ]
)


class Pipeline(NamedTuple):
    """The level of the code generator, and the passes before it in their order."""

    level: int
    passes: tuple[str, ...]


# Straight-line vector code: the printer unrolls, vectorises and shares values itself, and the code generator simplifies
# the rest. The passes of THOROUGH would take a tenth of a compilation more, and the next level, which schedules once
# more, another tenth; neither makes the benchmarks faster.
QUICK = Pipeline(1, ("always_inliner", "sroa", "simplify_cfg", "global_dead_code_eliminate"))

# Code with branches that serves every program, and is made once for all processes.
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

_log = logging.getLogger("func")
lock = threading.RLock()
"""Held while LLVM compiles."""
_loaded: weakref.WeakValueDictionary[str, "MachineCode"] = weakref.WeakValueDictionary()


def _before_fork() -> None:
    """Take the locks around LLVM, so that a child never starts while another thread is inside LLVM.

    llvmlite has its own lock, which it also takes when the last reference to one of its objects goes.
    """
    lock.acquire()
    for llvmlite_lock in _llvmlite_locks():
        llvmlite_lock.__enter__()


def _after_fork() -> None:
    for llvmlite_lock in _llvmlite_locks():
        llvmlite_lock.__exit__(None, None, None)
    lock.release()


def _llvmlite_locks() -> list[Any]:
    """The lock of llvmlite, or nothing if this version has none."""
    llvmlite_lock = getattr(getattr(getattr(llvm, "ffi", None), "lib", None), "_lock", None)
    return [llvmlite_lock] if hasattr(llvmlite_lock, "__enter__") else []


def _survives_interrupts(function: Callable[P, T]) -> Callable[P, T]:
    """The function; an interrupt in it leaves llvmlite as if its Python code could not be interrupted."""

    @functools.wraps(function)
    def surviving(*args: P.args, **kwargs: P.kwargs) -> T:
        was_held = _holds_llvmlite()
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            # The handler of a signal may raise any error; these are what LLVM's refusals become.
            if type(error) not in (CompileError, RuntimeError):
                _abandon_objects(error.__traceback__)
            raise
        finally:  # also where the interrupt came while an object was collected, which swallows it
            if not was_held:
                _unlock_llvmlite()

    return surviving


def _abandon_objects(trace: types.TracebackType | None) -> None:
    """Let nobody free what the interrupted functions of llvmlite held.

    They free an object, or hand it over to another, and note that in later bytecodes; after an interrupt between the
    two, the object would be freed once more when it is collected, which ends the process. The traceback still holds it.
    """
    while trace is not None:
        frame, trace = trace.tb_frame, trace.tb_next
        if frame.f_globals.get("__name__", "").startswith("llvmlite."):
            for value in frame.f_locals.values():
                if isinstance(value, llvm.ffi.ObjectRef):
                    value._owned = True  # by another object
                elif isinstance(value, llvm.ffi.OutputString):
                    value._owned = False  # by this one


def _holds_llvmlite() -> bool:
    """Whether this thread holds the lock of llvmlite."""
    inner = [getattr(llvmlite_lock, "_lock", None) for llvmlite_lock in _llvmlite_locks()]
    return any([lock is not None and lock._is_owned() for lock in inner])


def _unlock_llvmlite() -> None:
    """Free the lock of llvmlite, which an interrupt may leave locked as Python code locks it."""
    for llvmlite_lock in _llvmlite_locks():
        inner = getattr(llvmlite_lock, "_lock", None)
        while inner is not None and inner._is_owned():
            inner.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


class CompileError(RuntimeError):
    """A module could not be compiled or linked."""


class Host(NamedTuple):
    """The machine that runs the code.

    >>> host().triple.count("-") >= 2
    True
    """

    triple: str
    cpu: str
    features: str
    llvm_version: str

    @property
    def fingerprint(self) -> str:
        """Everything apart from the source that object code depends on."""
        return "\n".join((self.triple, self.cpu, self.features, self.llvm_version))


@functools.cache
@_survives_interrupts
def host() -> Host:
    """The host's triple, processor and features; the first call starts LLVM."""
    if llvm is None:
        raise CompileError("native code needs llvmlite, which is not installed")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.check_jit_execution()
    version = importlib.import_module("llvmlite").__version__
    number = ".".join(str(part) for part in llvm.llvm_version_info)
    return Host(llvm.get_process_triple(), llvm.get_host_cpu_name(), _features(), f"llvmlite {version}, LLVM {number}")


def _features() -> str:
    try:
        return str(llvm.get_host_cpu_features().flatten())
    except RuntimeError:  # LLVM cannot query this processor
        return ""


@functools.cache
@_survives_interrupts
def available() -> bool:
    """Whether native code can be compiled and run on this host.

    >>> available() in (True, False)
    True
    """
    try:
        _prepare()
    except (CompileError, OSError, RuntimeError) as error:
        _log.debug("no native code: %s", error)
        return False
    return True


def _target_machine(level: int = 0, cpu: str = "", features: str = "") -> Any:
    target = llvm.Target.from_triple(host().triple)
    return target.create_target_machine(cpu=cpu, features=features, opt=level, codemodel="jitdefault", jit=True)


def _empty_engine() -> Any:
    """An engine that links object code and generates none.

    LLVM makes an engine from a module, and would run the whole code generator over even an empty one.
    """
    module = llvm.parse_assembly("")
    engine = llvm.create_mcjit_compiler(module, _target_machine())
    engine.remove_module(module)
    return engine


@functools.cache
def _machine(level: int) -> Any:
    """The target machine that emits code."""
    _prepare()
    return _target_machine(level, host().cpu, host().features)


@functools.cache
def _prepare() -> None:
    """Make the symbols of the process known to LLVM. Raises: CompileError without LLVM."""
    host()
    _empty_engine()  # makes the symbols known
    if llvm.address_of_symbol("exp") is None:
        for library in ("libm.so.6", "libm.so", "libm.dylib", "ucrtbase.dll"):
            try:
                llvm.load_library_permanently(library)
                break
            except RuntimeError:
                continue


@_survives_interrupts
def compile_ir(module: Source, key: str | None = None) -> "MachineCode":
    """The compiled module; the same `MachineCode` for the same module as long as it is in use.

    `key` identifies the module in place of its text. With it, `module` may be a function that makes the module, called
    only if neither the process nor the cache on disk has the code; and the module gets the THOROUGH pipeline.

    Names outside the module are those of libc and libm, and those registered by `llvmlite.binding.add_symbol`. The text
    must not contain an address of this process, or nobody would find its entry in the cache again.

    Raises: CompileError for a module that LLVM refuses or that calls a function that does not exist.

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
            stored = emit_object(_text(source), pipeline)
            cache.store(digest, stored)
            code = _loaded[digest] = MachineCode(stored, source, pipeline)
        return code


@_survives_interrupts
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
        code = _loaded[digest] = MachineCode(stored, source, pipeline)
    return code


class _Linked:
    """An engine with linked object code, which only one `MachineCode` refers to.

    A finalizer runs before the weak references to its object are cleared. Were it that of `MachineCode`, another thread
    could take the code out of `_loaded` while it is being freed.
    """

    def __init__(self, stored: cache.ObjectCode) -> None:
        self.engine = _engine_of(stored)

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        engine = self.__dict__.get("engine")
        if engine is not None and not is_finalizing():  # when `sys` may be gone
            _free(engine)


class MachineCode:
    """Native code in the process; its memory is freed when the object is collected."""

    def __init__(self, stored: cache.ObjectCode, source: Source, pipeline: Pipeline) -> None:
        self._source = source
        self._pipeline = pipeline
        self._linked = _Linked(stored)
        self._addresses: dict[str, int] = {}

    @_survives_interrupts
    def address(self, name: str) -> int:
        """The address of the function or variable `name`.

        Raises: CompileError if the module does not define it.
        """
        address = self._addresses.get(name)
        if address is None:
            with lock:
                engine = self._linked.engine
                address = engine.get_function_address(name) or engine.get_global_value_address(name)
            if not address:
                raise CompileError(f"the compiled module defines no {name!r}")
            self._addresses[name] = address
        return address

    @_survives_interrupts
    def ir(self) -> str:
        """The optimised IR, made from the source again."""
        with lock:
            return str(optimise(_text(self._source), self._pipeline))

    @_survives_interrupts
    def assembly(self) -> str:
        """The host's assembly, made from the source again."""
        with lock:
            module = optimise(_text(self._source), self._pipeline)
            return str(_machine(self._pipeline.level).emit_assembly(module))


@_survives_interrupts
def _free(engine: Any) -> None:
    """Free an engine and its code: llvmlite does this when it is collected, where an interrupt is swallowed."""
    engine.close()


def _text(source: Source) -> str:
    return str(source() if callable(source) else source)


@_survives_interrupts
def optimise(text: str, pipeline: Pipeline = QUICK) -> Any:
    """The module of the text after the passes, as LLVM's object in a new context."""
    machine = _machine(pipeline.level)
    try:
        module = llvm.parse_assembly(text, llvm.create_context())
        module.verify()
    except RuntimeError as error:
        raise CompileError(f"LLVM refuses the module: {error}") from None
    module.triple = host().triple
    module.data_layout = str(machine.target_data)
    passes = llvm.create_new_module_pass_manager()
    for name in pipeline.passes:
        getattr(passes, f"add_{name}_pass")()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(2)))
    return module


@_survives_interrupts
def emit_object(text: str, pipeline: Pipeline = QUICK) -> cache.ObjectCode:
    """Object code of the module's text, with the names that the process must define."""
    with lock:
        module = optimise(text, pipeline)
        image = _machine(pipeline.level).emit_object(module)
        needed = elf_undefined(image)
        if needed is None:
            needed = [value.name for value in _declarations(module) if not value.name.startswith("llvm.")]
        return cache.ObjectCode(image, tuple(needed))


def _declarations(module: Any) -> Iterator[Any]:
    for values in (module.functions, module.global_variables):
        yield from (value for value in values if value.is_declaration)


def _engine_of(stored: cache.ObjectCode) -> Any:
    """An engine with the object code and every address resolved."""
    _prepare()
    missing = [name for name in stored.needed if not _resolvable(name)]
    if missing:
        raise CompileError(f"no such function in this process: {', '.join(sorted(missing))}")
    engine = _empty_engine()
    engine.add_object_file(llvm.ObjectFileRef.from_data(stored.image))
    engine.finalize_object()
    return engine


def _resolvable(name: str) -> bool:
    if llvm.address_of_symbol(name) is not None:
        return True
    return any(importlib.import_module(provider).provide(name) for provider in PROVIDERS)


def elf_undefined(image: bytes) -> list[str] | None:
    """The undefined names of an ELF64 object; None for another format.

    LLVM aborts the process if it cannot find a name, so all are looked up beforehand.

    Source: System V ABI, chapter 4 (sections, symbol table).
    """
    if image[:6] != b"\x7fELF\x02\x01":
        return None
    (offset,) = struct.unpack_from("<Q", image, 40)
    size, count = struct.unpack_from("<HH", image, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", image, offset + index * size) for index in range(count)]
    names: list[str] = []
    for _, kind, _, _, start, length, strings, _, _, width in sections:
        if kind != 2:  # SHT_SYMTAB
            continue
        text = sections[strings][4]
        for symbol in range(start + width, start + length, width):
            name, _, _, section = struct.unpack_from("<IBBH", image, symbol)
            if section == 0 and name:  # SHN_UNDEF
                names.append(image[text + name : image.index(b"\0", text + name)].decode())
    return [name for name in names if name != "_GLOBAL_OFFSET_TABLE_"]
