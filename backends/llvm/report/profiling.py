"""Times of the items of a native program, from a second program that reads a clock around its items."""

from __future__ import annotations

import ctypes
import functools
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from func.backends import ir
from func.backends.llvm.call_stubs.native_executable import NativeExecutable
from func.backends.llvm.codegen.printer import STATUS, Printer
from func.backends.llvm.host import host
from func.backends.llvm.machine import compile_ir
from func.backends.llvm.math.own_functions import host_features
from func.backends.llvm.report.listing import Names, parts_of, title
from func.backends.llvm.report.traffic import NOTHING, Traffic, traffic
from func.backends.llvm.threads import background
from func.backends.loops.buffer_assignment import assign_buffers
from func.backends.loops.chunking import chunk_loops
from func.backends.loops.fusion import Fuser
from func.backends.loops.interface import ArraySpec
from func.backends.loops.kernels import Buffer, Item, NativeProgram, StridedRef

WORD, POINTER = ir.IntType(64), ir.PointerType()
NAME = "func_times"
CALIBRATION = 0.02
"""Seconds for which the counter is compared with Python's clock."""
SMALLEST_COPY, LARGEST_COPY = 1 << 25, 1 << 28
COPIES = 5
_lock = threading.Lock()
"""Held while a program runs: programs with the same text share the memory of their times."""


class Timing(NamedTuple):
    """One item: its number ("2.0" inside item 2), its title, seconds and runs in one call, and the memory traffic of
    these runs."""

    number: str
    title: str
    seconds: float
    runs: int
    traffic: Traffic


class Measurement(NamedTuple):
    """The items of a program, those inside loops and branches after them, and its outputs."""

    timings: list[Timing]
    outputs: tuple[Any, ...]
    is_whole: bool
    """Whether the outputs are those of native code and not of the fallback."""


def measure(executable: NativeExecutable, args: Sequence[Any], repeat: int) -> Measurement:
    """Times of a program's items: the least of `repeat` runs on the same arguments.

    A second program with clocks inside loops and branches times the items there, so their clocks do not add to the time
    of the loop.
    """
    program = executable.program
    outer = _TimedExecutable(executable, program.items)
    everything = list(_all(program.items))
    with _lock:
        ticks, counts, outputs = outer.run(args, repeat)
        if len(everything) > len(program.items):
            outer_ticks = dict(zip(map(id, program.items), ticks, strict=True))
            inner_ticks, counts, _ = _TimedExecutable(executable, everything).run(args, repeat)
            ticks = [outer_ticks.get(id(item), tick) for item, tick in zip(everything, inner_ticks, strict=True)]
    rate = _clock().rate
    names = Names(program)
    runs = dict(zip(map(id, everything), counts, strict=True))
    timings = [
        Timing(number, title(item, names), tick / rate, runs[id(item)], _total_traffic(item, runs))
        for (number, item), tick in zip(_numbered(program.items, ""), ticks, strict=True)
    ]
    return Measurement(timings, outputs, not outer.has_failed)


def _all(items: Sequence[Item]) -> Iterator[Item]:
    for _, item in _numbered(items, ""):
        yield item


def _numbered(items: Sequence[Item], prefix: str) -> Iterator[tuple[str, Item]]:
    """Items with their numbers in listings."""
    for place, item in enumerate(items):
        number = f"{prefix}{place}"
        yield number, item
        for mark, _, body in parts_of(item):
            yield from _numbered(body, f"{number}.{mark}")


def _total_traffic(item: Item, runs: dict[int, int]) -> Traffic:
    """The memory traffic of all runs of an item."""
    inside = [_total_traffic(child, runs) for _, _, body in parts_of(item) for child in body]
    return functools.reduce(Traffic.plus, inside, NOTHING) if inside else traffic(item).times(runs[id(item)])


class _TimedExecutable(NativeExecutable):
    """A program that accumulates the times and the numbers of runs of some of its items."""

    def __init__(self, executable: NativeExecutable, items: Sequence[Item]) -> None:
        super().__init__(executable.program, executable.fallback, executable.nan_safe)
        self.items = items
        self.has_failed = False

    def module(self) -> ir.Module:
        """The program as IR."""
        module, builder = _function("run")
        _TimedPrinter(module, builder, host_features(), self.program, self.items).emit()
        return module

    def failed(self, status: int, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """The outputs of the fallback after native code has returned a status."""
        self.has_failed = True
        return super().failed(status, inputs)

    def run(self, args: Sequence[Any], repeat: int) -> tuple[list[int], list[int], tuple[Any, ...]]:
        """(least ticks, runs in the last call) of the items, and the outputs."""
        call = self.flat_stub()
        background.finish()
        size = len(self.items)
        table = np.ctypeslib.as_array((ctypes.c_int64 * (2 * size)).from_address(self.code.address(NAME)))
        least = np.full(size, np.iinfo(np.int64).max)
        outputs: tuple[Any, ...] = ()
        for _ in range(repeat):
            table[:] = 0
            outputs = call(*args)
            np.minimum(least, table[:size] - table[size:] * _clock().pause, out=least)
        return np.maximum(least, 0).tolist(), table[size:].tolist(), outputs


class _TimedPrinter(Printer):
    """Emits items with a clock around some of them."""

    def __init__(self, module: ir.Module, builder: ir.IRBuilder, features: Any, program: Any, items: Any) -> None:
        super().__init__(module, builder, features, program)
        self._places = {id(item): place for place, item in enumerate(items)}
        kind = ir.ArrayType(WORD, 2 * len(items))
        self._timed = items
        self._table: Any = module.globals.get(NAME)
        if self._table is None:
            self._table = ir.GlobalVariable(module, kind, NAME)
            self._table.initializer = ir.Constant(kind, None)

    def _sibling(self, builder: ir.IRBuilder) -> Printer:
        return _TimedPrinter(self.module, builder, self.features, self.program, self._timed)

    def _items(self, items: Sequence[Item]) -> None:
        for item in items:
            place = self._places.get(id(item))
            if place is None:
                super()._items([item])
                continue
            before = emit_clock(self.builder)
            super()._items([item])
            self._add(place, self.builder.sub(emit_clock(self.builder), before))
            self._add(len(self._places) + place, WORD(1))

    def _add(self, place: int, value: ir.Value) -> None:
        builder = self.builder
        pointer = builder.gep(self._table, [WORD(0), WORD(place)])
        builder.store(builder.add(builder.load(pointer, typ=WORD), value), pointer)


def _function(name: str) -> tuple[ir.Module, ir.IRBuilder]:
    """A module with a function that takes tables of inputs and outputs, and the arena."""
    module = ir.Module(name)
    module.vector_bytes = host_features().bits // 8
    module.triple = ""
    function = ir.Function(module, ir.FunctionType(STATUS, [POINTER] * 3), name)
    return module, ir.IRBuilder(function.append_basic_block("entry"))


class _Clock(NamedTuple):
    """Ticks per second, and the ticks between two successive readings."""

    rate: float
    pause: int


def emit_clock(builder: ir.IRBuilder) -> ir.Value:
    """The time in ticks: the processor's counter on x86, else nanoseconds."""
    if host().triple.startswith(("x86_64", "i686", "i386")):
        builder.call(_declared(builder.module, "llvm.x86.sse2.lfence", ir.VoidType(), []), [])
        return builder.call(_declared(builder.module, "llvm.readcyclecounter", WORD, []), [])
    with builder.goto_entry_block():
        memory = builder.alloca(WORD, size=2)
    number = ir.Constant(ir.IntType(32), getattr(time, "CLOCK_MONOTONIC", 1))
    kinds = [ir.IntType(32), POINTER]
    builder.call(_declared(builder.module, "clock_gettime", ir.IntType(32), kinds), [number, memory])
    seconds = builder.load(memory, typ=WORD)
    more = builder.load(builder.gep(memory, [WORD(1)], source_etype=WORD), typ=WORD)
    return builder.add(builder.mul(seconds, WORD(10**9)), more)


def _declared(module: ir.Module, name: str, result: ir.Type, arguments: Sequence[ir.Type]) -> ir.Function:
    return module.globals.get(name) or ir.Function(module, ir.FunctionType(result, arguments), name)


@functools.cache
def _clock() -> _Clock:
    """The clock of emit_clock, compared with Python's."""
    module = ir.Module("clock")
    module.triple = ""
    function = ir.Function(module, ir.FunctionType(WORD, [POINTER]), "clock")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    before = emit_clock(builder)
    after = emit_clock(builder)
    builder.store(builder.sub(after, before), function.args[0])
    builder.ret(before)
    code = compile_ir(module)
    read = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(code.address("clock"))
    apart = ctypes.c_int64()

    def both() -> tuple[float, int]:
        return time.perf_counter(), read(ctypes.addressof(apart))

    start, first = both()
    pauses = []
    while True:
        now, last = both()
        pauses.append(apart.value)
        if now - start >= CALIBRATION:
            return _Clock((last - first) / (now - start), min(pauses))


@functools.cache
def copy_bandwidth() -> float:
    """Bytes read and written a second by a native copy of an array larger than the caches; measured once.

    The copy runs on as many threads as kernels get.
    """
    size = _copy_size() // 8
    source = np.ones(size)
    target = np.zeros(size)
    executable = NativeExecutable(copy_program(size), _none)
    code = executable.code
    background.finish()
    run = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3)(code.address("run"))
    tables = [(ctypes.c_void_p * 1)(array.ctypes.data) for array in (source, target)]
    least = min([_seconds(lambda: run(*tables, None)) for _ in range(COPIES)])
    return 2 * source.nbytes / least


def copy_program(size: int) -> NativeProgram:
    """A copy of `size` float64."""
    dtype = np.dtype(np.float64)
    fuser = Fuser()
    source = fuser.storage.located(Buffer(size, dtype, "input", 0), (size,))
    fuser.storage.copied(source, StridedRef(Buffer(size, dtype, "output", 0), 0, (1,)))
    items = fuser.schedule.items
    chunk_loops(items)
    array = ArraySpec((size,), dtype, False)
    return NativeProgram([array], [], [array], items, assign_buffers(items))


def _copy_size() -> int:
    """The size of the largest cache in bytes, within limits."""
    sizes = []
    for file in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        for digits, unit in re.findall(r"^(\d+)([KMG]?)$", file.read_text().strip()):
            sizes.append(int(digits) << {"": 0, "K": 10, "M": 20, "G": 30}[unit])
    return min(max([SMALLEST_COPY, *sizes]), LARGEST_COPY)


def _seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _none(*args: Any) -> Any:
    raise AssertionError("a copy needs nothing else")
