"""Code generation by LLVM: the host's target machine, the passes, object code, and an engine that links it.

This module imports llvmlite, so only a compilation imports it, or object code that `func.backends.llvm.loader` cannot
load. One target machine parses, optimises and emits the text of a module to object code.
"""

import contextlib
import functools
import importlib
import types
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

from func.backends.llvm import cache, symbols
from func.backends.llvm.host import Host, host
from func.backends.llvm.loader import elf_undefined
from func.backends.llvm.machine import QUICK, CompileError, Pipeline, lock, locks_after

llvm: Any = None
with contextlib.suppress(ImportError):
    llvm = importlib.import_module("llvmlite.binding")

P = ParamSpec("P")
T = TypeVar("T")


def _llvmlite_locks() -> list[Any]:
    """The lock of llvmlite, or nothing if this version has none."""
    llvmlite_lock = getattr(getattr(getattr(llvm, "ffi", None), "lib", None), "_lock", None)
    return [llvmlite_lock] if hasattr(llvmlite_lock, "__enter__") else []


locks_after.extend(_llvmlite_locks())


def _survives_interrupts(function: Callable[P, T]) -> Callable[P, T]:
    """The function; an interrupt in it leaves llvmlite as if its Python code were uninterruptible."""

    @functools.wraps(function)
    def surviving(*args: P.args, **kwargs: P.kwargs) -> T:
        was_held = _holds_llvmlite()
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            # A signal handler may raise any error; these are LLVM's errors.
            if type(error) not in (CompileError, RuntimeError):
                _abandon_objects(error.__traceback__)
            raise
        finally:  # also an interrupt during a collection, which swallows it
            if not was_held:
                _unlock_llvmlite()

    return surviving


def _abandon_objects(trace: types.TracebackType | None) -> None:
    """Keep interrupted functions of llvmlite from freeing their objects a second time.

    They free an object, or hand it over to another, and note that in later bytecodes. After an interrupt between the
    two, its collection would free the object once more, which ends the process. The traceback still refers to it.
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
    locks = [getattr(llvmlite_lock, "_lock", None) for llvmlite_lock in _llvmlite_locks()]
    return any([lock is not None and lock._is_owned() for lock in locks])


def _unlock_llvmlite() -> None:
    """Free the lock of llvmlite, which an interrupt may leave locked as Python code locks it."""
    for llvmlite_lock in _llvmlite_locks():
        lock = getattr(llvmlite_lock, "_lock", None)
        while lock is not None and lock._is_owned():
            lock.release()


@_survives_interrupts
def ask_host() -> Host:
    """The host as LLVM describes it. Raises: CompileError without LLVM."""
    _start()
    version = importlib.import_module("llvmlite").__version__
    number = ".".join(str(part) for part in llvm.llvm_version_info)
    return Host(llvm.get_process_triple(), llvm.get_host_cpu_name(), _features(), f"llvmlite {version}, LLVM {number}")


@functools.cache
def _start() -> None:
    if llvm is None:
        raise CompileError("native code needs llvmlite, which is not installed")
    try:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        llvm.check_jit_execution()
    except (OSError, RuntimeError) as error:
        raise CompileError(f"LLVM does not start: {error}") from error


def _features() -> str:
    try:
        return str(llvm.get_host_cpu_features().flatten())
    except RuntimeError:  # LLVM cannot query this processor
        return ""


def _target_machine(level: int = 0, cpu: str = "", features: str = "") -> Any:
    _start()
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
    return _target_machine(level, host().cpu, host().features)


@functools.cache
def _prepare() -> None:
    """Make the symbols of the process known to LLVM. Raises: CompileError without LLVM."""
    _empty_engine()  # makes the symbols known
    if llvm.address_of_symbol("exp") is None:
        for library in ("libm.so.6", "libm.so", "libm.dylib", "ucrtbase.dll"):
            try:
                llvm.load_library_permanently(library)
                break
            except RuntimeError:
                continue


@_survives_interrupts
def optimise(text: str, pipeline: Pipeline = QUICK) -> Any:
    """The module of the text after the passes, as LLVM's object in a new context."""
    machine = _machine(pipeline.level)
    try:
        module = llvm.parse_assembly(text, llvm.create_context())
        module.verify()
    except RuntimeError as error:
        raise CompileError(f"LLVM rejects the module: {error}") from None
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


@_survives_interrupts
def emit_assembly(text: str, pipeline: Pipeline) -> str:
    """The host's assembly of the module's text."""
    with lock:
        return str(_machine(pipeline.level).emit_assembly(optimise(text, pipeline)))


class Engine:
    """Object code that LLVM has linked into the process. Raises: CompileError for a name that nothing provides."""

    @_survives_interrupts
    def __init__(self, stored: cache.ObjectCode) -> None:
        self._engine: Any = None
        self._engine = _engine_of(stored)

    @_survives_interrupts
    def address(self, name: str) -> int:
        """The address of a function or variable; 0 if the object does not define it."""
        with lock:
            engine = self._engine
            return int(engine.get_function_address(name) or engine.get_global_value_address(name))

    @_survives_interrupts
    def close(self) -> None:
        """Free the code: llvmlite does this when an engine is collected, where an interrupt is swallowed."""
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()


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
    """Whether LLVM can link a name, after learning its address from func if necessary."""
    if llvm.address_of_symbol(name) is not None:
        return True
    address = symbols.find(name)
    if address:
        llvm.add_symbol(name, address)
    return bool(address)
