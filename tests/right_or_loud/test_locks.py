"""No lock stays locked after an interrupt, and the memory of calls is dropped during calls of other threads."""

from __future__ import annotations

import ctypes
import functools
import os
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func
from func.backends.llvm import machine
from func.interpreters.core.scopes import Turns
from func.interpreters.primitives.structural import slicing
from tests.support.threads import in_threads, quick_turns


def _gradient() -> None:
    w = func.tensor(np.ones(3), requires_grad=True)
    w.sum().backward()


def _interrupted(run: Callable[[], Any], file: str, name: str, place: int) -> bool:
    """Run with an interrupt before one bytecode of a function; whether there is such a bytecode."""
    count = 0

    def trace(frame: Any, event: str, arg: Any) -> Any:
        nonlocal count
        code = frame.f_code
        if code.co_name == name and code.co_filename.endswith(file):
            frame.f_trace_opcodes = True
            if event == "opcode":
                count += 1
                if count == place:
                    sys.settrace(None)
                    raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return count >= place


def _can_run_elsewhere(work: Callable[[], Any]) -> bool:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(5)
    return not thread.is_alive()


@pytest.mark.parametrize("name", ["_accumulate_all", "take"])
def test_interrupted_backward_leaves_other_threads_free(name: str) -> None:
    _gradient()
    place = 1
    file = "backwards.py" if name == "_accumulate_all" else "scopes.py"
    while _interrupted(_gradient, file, name, place):
        assert _can_run_elsewhere(_gradient), f"interrupted before bytecode {place} of {name}"
        place += 1
    assert place > 20


def _written() -> Any:
    """A write in place to what is recorded, and its gradient."""
    w = func.tensor(np.arange(1.0, 4.0), requires_grad=True)
    v = w * 2
    with func.no_grad():
        w[0] += 1
    v[0] *= w[1]
    np.sum(v * v).backward()
    return w.grad.numpy(), w.detach().numpy()


@pytest.mark.parametrize("name", ["_in_place", "rewrite", "spare_buffers"])
def test_interrupted_writes_leave_no_array_to_be_overwritten(name: str) -> None:
    expected = _written()
    file = "slicing.py" if name == "spare_buffers" else "inplace.py"
    place = 1
    while _interrupted(_written, file, name, place):
        assert not slicing._reusable, f"interrupted before bytecode {place} of {name}"
        for got, right in zip(_written(), expected, strict=True):
            np.testing.assert_array_equal(got, right)
        place += 1
    assert place > 20


def test_interrupted_compilation_leaves_other_threads_free() -> None:
    pytest.importorskip("llvmlite")
    from func.backends.llvm import compiler, machine

    def take() -> None:
        for llvmlite_lock in compiler._llvmlite_locks():
            with llvmlite_lock:
                pass

    def compile_anew() -> None:
        machine.compile_ir(f"define i32 @interrupted() {{ ret i32 {place} }}")

    place = 1
    while place < 30 and _interrupted(compile_anew, "llvmlite/binding/ffi.py", "__enter__", place):
        assert _can_run_elsewhere(take), f"interrupted before bytecode {place} of llvmlite's __enter__"
        place += 1
    assert place > 1


@pytest.mark.parametrize("what", ["code", "module"])
def test_interrupts_while_llvm_objects_are_collected_leave_other_threads_free(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("llvmlite")
    from func.backends.llvm import compiler, machine

    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: None)  # interrupts of destructors
    text = "define i32 @collected() {{ ret i32 {} }}"
    drop_module = compiler._survives_interrupts(lambda held: held.clear())

    def take() -> None:
        for llvmlite_lock in compiler._llvmlite_locks():
            with llvmlite_lock:
                pass

    for name in ("__enter__", "__exit__"):
        for place in range(1, 30):
            held = [machine.compile_ir(text.format(place)) if what == "code" else compiler.optimise(text.format(place))]
            drop = held.clear if what == "code" else functools.partial(drop_module, held)
            _interrupted(drop, "llvmlite/binding/ffi.py", name, place)
            assert _can_run_elsewhere(take), f"interrupted before bytecode {place} of llvmlite's {name}"


@pytest.mark.parametrize("name", ["close", "__exit__", "detach"])
def test_interrupted_compilation_frees_nothing_twice(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("llvmlite")
    from func.backends.llvm import compiler

    compiler.ask_host()
    freed: list[tuple[str, int | None]] = []

    def recorder(kind: str) -> Callable[[Any], None]:
        def dispose(owner: Any) -> None:  # frees nothing, so that no address comes back
            address = ctypes.cast(getattr(owner, "_as_parameter_", owner), ctypes.c_void_p).value
            if address is not None:
                freed.append((kind, address))

        return dispose

    lib = compiler.llvm.ffi.lib
    for kind in ("DisposeString", "DisposeModule", "ContextDispose", "DisposeTargetData", "DisposePassBuilder"):
        assert hasattr(lib, f"LLVMPY_{kind}")
        monkeypatch.setitem(lib._fntab, f"LLVMPY_{kind}", recorder(kind))
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: None)  # interrupts of destructors
    place = 1

    def emit() -> None:
        compiler.emit_object(f"define i32 @freed() {{ ret i32 {place} }}")

    while place < 150 and _interrupted(emit, "llvmlite/binding/ffi.py", name, place):
        place += 1
    assert place > 10
    twice = {entry for entry in freed if freed.count(entry) > 1}
    assert freed
    assert not twice


def test_turns_exclude_other_threads_and_not_their_own() -> None:
    turns = Turns()
    total = 0

    def work(number: int) -> None:
        nonlocal total
        for _ in range(50):
            with turns.take(), turns.take():
                seen = total
                for _ in range(5):
                    pass
                total = seen + 1

    with quick_turns():
        in_threads(work, 8)
    assert total == 400


def test_kept_memory_is_dropped_in_one_step() -> None:
    pytest.importorskip("llvmlite")
    from func.backends.llvm.call_stubs import stub_table

    places = stub_table._empty_places(4)
    words = (ctypes.c_int64 * 4).from_address(places.ctypes.data)
    array = np.zeros(3)
    before = sys.getrefcount(array)

    def run(place: int) -> bool:
        """Empty the places; before one bytecode a native stub takes an array, as another thread may call it there."""
        count, taken = 0, False

        def trace(frame: Any, event: str, arg: Any) -> Any:
            nonlocal count, taken
            frame.f_trace_opcodes = True
            count += event == "opcode"
            if event == "opcode" and count == place and words[2]:
                words[2], taken = 0, True
            return trace

        for kept in (0, 2):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(array))
            words[kept] = id(array)
        previous = sys.gettrace()
        sys.settrace(trace)
        try:
            stub_table.empty(places)
        finally:
            sys.settrace(previous)
        assert not any(words) and sys.getrefcount(array) == before + taken, f"taken before bytecode {place}"
        if taken:
            ctypes.pythonapi.Py_DecRef(ctypes.py_object(array))
        return count >= place

    place = 1
    while run(place):
        place += 1
    assert place > 20


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")
@pytest.mark.parametrize("place", range(1, 40))
def test_interrupts_before_a_fork_leave_the_lock_of_the_compiler_free(
    place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: None)  # what functions before a fork raise

    def fork_and_wait() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)

    def takes_the_lock() -> None:
        with machine.lock:
            pass

    _interrupted(fork_and_wait, "machine.py", "_before_fork", place)
    assert _can_run_elsewhere(takes_the_lock)
