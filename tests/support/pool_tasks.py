"""Native tasks for the thread pool, and its trampoline as a Python function."""

from __future__ import annotations

import ctypes
import functools
import platform
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("llvmlite")

from func.backends import ir
from func.backends.llvm.machine import MachineCode, compile_ir
from func.backends.llvm.threads import pool
from func.backends.llvm.threads.pool_code import POINTER, VOID, WORD, PoolBuilder

IS_X86 = platform.machine().lower() in ("x86_64", "amd64")
DOUBLE = ir.DoubleType()


def tasks_module() -> ir.Module:
    """`mark` counts at its chunk's place, `meet` waits until the first number of chunks run, `halve` halves a float,
    `nest` calls the pool. `repeat` is a caller that calls it many times.
    """
    module = ir.Module("pool_tasks")
    ir.Function(module, ir.FunctionType(VOID, [POINTER, POINTER, WORD]), pool.SYMBOL)

    b = PoolBuilder(module, "mark", VOID, POINTER, WORD, is_public=True)
    b.atomic_rmw("add", place(b, WORD, b.args[1]), WORD(1), "seq_cst")
    b.ret_void()

    b = PoolBuilder(module, "meet", VOID, POINTER, WORD, is_public=True)
    missing = place(b, WORD, WORD(0))
    b.atomic_rmw("sub", missing, WORD(1), "seq_cst")
    with b.repeat(), b.if_then(b.compare(b.load_atomic(missing, "seq_cst", 8, typ=WORD), "<=", 0)):
        b.ret_void()

    b = PoolBuilder(module, "halve", VOID, POINTER, WORD, is_public=True)
    here = place(b, DOUBLE, b.args[1])
    b.store(b.fmul(b.load(here, typ=DOUBLE), DOUBLE(0.5)), here)
    b.ret_void()

    b = PoolBuilder(module, "nest", VOID, POINTER, WORD, is_public=True)
    inner = place(b, WORD, b.mul(b.args[1], WORD(16)))
    b.call_name(pool.SYMBOL, module.get_global("mark"), inner, WORD(16))
    b.ret_void()

    b = PoolBuilder(module, "repeat", VOID, POINTER, POINTER, WORD, WORD, is_public=True)
    with b.loop(b.args[3]):
        b.call_name(pool.SYMBOL, *b.args[:3])
    b.ret_void()

    if IS_X86:
        b = PoolBuilder(module, "set_mode", VOID, WORD, is_public=True)
        register = b.scratch(8)
        b.store(b.args[0], register)
        b.call_name("llvm.x86.sse.ldmxcsr", register)
        b.ret_void()
    return module


def place(b: PoolBuilder, kind: ir.Type, index: Any) -> Any:
    """The element of the task's data with that index."""
    return b.gep(b.args[0], [index], source_etype=kind)


@functools.cache
def tasks() -> MachineCode:
    pool.install()
    return compile_ir(str(tasks_module()))


def parallel(task: str, data: Any, chunks: int, times: int = 1) -> None:
    """Run the task on the ctypes array this number of times; Python runs meanwhile."""
    native("repeat", 4)(tasks().address(task), ctypes.addressof(data), chunks, times)


@functools.cache
def native(name: str, arguments: int) -> Callable[..., None]:
    return ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * arguments)(tasks().address(name))


def words(count: int, first: int = 0) -> Any:
    """That many numbers of 64 bits, all 0 but the first."""
    data = (ctypes.c_int64 * count)()
    data[0] = first
    return data
