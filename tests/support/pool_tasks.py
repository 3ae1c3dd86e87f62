"""Native tasks for the thread pool, and the pool's door as a Python function."""

from __future__ import annotations

import ctypes
import functools
import platform
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("llvmlite")

from llvmlite import ir

from func.backends.llvm.machine import Code, compile_ir
from func.backends.llvm.threads import pool
from func.backends.llvm.threads.pool_writer import BYTES, TASK, VOID, WORD, Body

IS_X86 = platform.machine().lower() in ("x86_64", "amd64")
DOUBLE = ir.DoubleType()


def tasks_module() -> ir.Module:
    """`mark` counts at its chunk's place, `meet` waits until as many chunks run as the first number says, `halve`
    halves a float, `nest` calls the pool; `repeat` is a caller that calls it many times."""
    module = ir.Module("pool_tasks")
    ir.Function(module, ir.FunctionType(VOID, [TASK, BYTES, WORD]), pool.SYMBOL)

    body = Body(module, "mark", VOID, BYTES, WORD, public=True)
    body.builder.atomic_rmw("add", place(body, WORD, body.args[1]), WORD(1), "seq_cst")
    body.give()

    body = Body(module, "meet", VOID, BYTES, WORD, public=True)
    missing = place(body, WORD, WORD(0))
    body.builder.atomic_rmw("sub", missing, WORD(1), "seq_cst")
    with body.repeat(), body.when(body.is_(body.builder.load_atomic(missing, "seq_cst", 8), "<=", 0)):
        body.give()

    body = Body(module, "halve", VOID, BYTES, WORD, public=True)
    here = place(body, DOUBLE, body.args[1])
    body.builder.store(body.builder.fmul(body.builder.load(here, typ=DOUBLE), DOUBLE(0.5)), here)
    body.give()

    body = Body(module, "nest", VOID, BYTES, WORD, public=True)
    inner = body.builder.bitcast(place(body, WORD, body.builder.mul(body.args[1], WORD(16))), BYTES)
    body.call(pool.SYMBOL, module.get_global("mark"), inner, WORD(16))
    body.give()

    body = Body(module, "repeat", VOID, TASK, BYTES, WORD, WORD, public=True)
    with body.count(body.args[3]):
        body.call(pool.SYMBOL, *body.args[:3])
    body.give()

    if IS_X86:
        body = Body(module, "set_mode", VOID, WORD, public=True)
        register = body.scratch(8)
        body.builder.store(body.args[0], body.builder.bitcast(register, WORD.as_pointer()))
        body.call("llvm.x86.sse.ldmxcsr", register)
        body.give()
    return module


def place(body: Body, type_: ir.Type, index: Any) -> Any:
    """The element of the task's data with that index."""
    numbers = body.builder.bitcast(body.args[0], type_.as_pointer())
    return body.builder.gep(numbers, [index], source_etype=type_)


@functools.cache
def tasks() -> Code:
    pool.install()
    return compile_ir(str(tasks_module()))


def parallel(task: str, data: Any, chunks: int, times: int = 1) -> None:
    """Run the task on the ctypes array so many times; Python runs meanwhile."""
    native("repeat", 4)(tasks().address(task), ctypes.addressof(data), chunks, times)


@functools.cache
def native(name: str, arguments: int) -> Callable[..., None]:
    return ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * arguments)(tasks().address(name))


def words(count: int, first: int = 0) -> Any:
    """That many numbers of 64 bits, all 0 but the first."""
    data = (ctypes.c_int64 * count)()
    data[0] = first
    return data
