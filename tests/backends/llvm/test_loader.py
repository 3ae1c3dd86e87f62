"""The loader of object code: LLVM's own results, memory never writable and executable, Unloadable as the only error."""

from __future__ import annotations

import ctypes
import functools
import math
import os
import random
import struct
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("llvmlite")

from func.backends.llvm import compiler, loader, machine, symbols
from func.backends.llvm.loader import LoadedObject, Unloadable

ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.skipif(not loader.is_supported(), reason="the loader is for Linux on x86-64")

TEXT = """
@table = global [3 x ptr] zeroinitializer
@state = global i64 41
@numbers = private constant [4 x double] [double 1.0, double 2.0, double 3.0, double 4.0]
@inner = internal global ptr @add
declare double @cos(double)
define i64 @add(i64 %x) {
  %old = load i64, ptr @state
  %new = add i64 %old, %x
  store i64 %new, ptr @state
  ret i64 %new
}
define i64 @through(i64 %x) {
  %function = load ptr, ptr @inner
  %new = call i64 %function(i64 %x)
  ret i64 %new
}
define double @pick(i64 %i) {
  %place = getelementptr double, ptr @numbers, i64 %i
  %x = load double, ptr %place
  %y = call double @cos(double %x)
  ret double %y
}
"""


@functools.cache
def image() -> bytes:
    return compiler.emit_object(TEXT).image


def call(address: int, result: type, *args: int) -> float | int:
    value: float | int = ctypes.CFUNCTYPE(result, *[ctypes.c_int64] * len(args))(address)(*args)
    return value


def test_code_constants_and_variables() -> None:
    loaded = LoadedObject(image(), symbols.find)
    assert call(loaded.address("add"), ctypes.c_int64, 1) == 42
    assert call(loaded.address("through"), ctypes.c_int64, 3) == 45
    assert ctypes.c_int64.from_address(loaded.address("state")).value == 45
    assert list((ctypes.c_int64 * 3).from_address(loaded.address("table"))) == [0, 0, 0]
    for place in range(4):
        assert call(loaded.address("pick"), ctypes.c_double, place) == math.cos(place + 1)
    assert loaded.address("nothing") == 0
    other = LoadedObject(image(), symbols.find)
    assert call(other.address("add"), ctypes.c_int64, 1) == 42
    loaded.close()
    other.close()


def test_it_links_what_llvm_links() -> None:
    engine, loaded = compiler.Engine(compiler.emit_object(TEXT)), LoadedObject(image(), symbols.find)
    for place in range(4):
        assert call(engine.address("pick"), ctypes.c_double, place) == call(
            loaded.address("pick"), ctypes.c_double, place
        )


def permissions_at(address: int) -> str:
    """The permissions of the pages at an address; an empty string where there are none."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        bounds, permissions = line.split()[:2]
        low, high = [int(bound, 16) for bound in bounds.split("-")]
        if low <= address < high:
            return permissions
    return ""


def test_memory_is_never_writable_and_executable_at_once() -> None:
    loaded = LoadedObject(image(), symbols.find)
    code, state = loaded.address("add"), loaded.address("state")
    assert [permissions_at(address) for address in (code, state)] == ["r-xp", "rw-p"]
    loaded.close()
    assert "x" not in permissions_at(code)
    loaded.close()  # once is enough


def test_memory_of_failed_objects_is_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    freed = []
    functions = loader._functions()
    monkeypatch.setattr(
        loader,
        "_functions",
        lambda: functions._replace(munmap=lambda *memory: freed.append(memory) or functions.munmap(*memory)),
    )
    with pytest.raises(Unloadable, match="no such function in this process: cos"):
        LoadedObject(image(), lambda name: None)
    assert len(freed) == 1


def test_where_memory_cannot_be_executed_llvm_links(monkeypatch: pytest.MonkeyPatch) -> None:
    functions = loader._functions()
    monkeypatch.setattr(loader, "_functions", lambda: functions._replace(mprotect=lambda *_: -1))
    with pytest.raises(Unloadable, match="no memory be executed"):
        LoadedObject(image(), symbols.find)
    code = machine.compile_ir(TEXT + "; linked by LLVM")
    assert type(code._owner.linked) is compiler.Engine
    assert call(code.address("add"), ctypes.c_int64, 1) == 42


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_has_variables_of_its_own() -> None:
    loaded = LoadedObject(image(), symbols.find)
    address = loaded.address("add")
    process = os.fork()
    if process == 0:
        os._exit(int(call(address, ctypes.c_int64, 9)))
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 50
    assert call(address, ctypes.c_int64, 1) == 42


def loads_or_refuses(content: bytes) -> bool:
    """Whether an object loads; it is not run."""
    try:
        LoadedObject(content, symbols.find).close()
    except Unloadable:
        return False
    return True


def test_shortened_objects_are_refused_or_harmless() -> None:
    whole = image()
    assert not any(loads_or_refuses(whole[:length]) for length in range(64))
    for length in range(64, len(whole), 7):
        loads_or_refuses(whole[:length])


def test_objects_with_wrong_bytes_are_refused_or_harmless() -> None:
    whole, generator = image(), random.Random(0)
    refused = 0
    for _ in range(3000):
        content = bytearray(whole)
        for _ in range(generator.choice((1, 1, 2, 8))):
            content[generator.randrange(len(content))] = generator.choice((0, 1, 0x7F, 0x80, 0xFF))
        refused += not loads_or_refuses(bytes(content))
    assert refused > 100


FIELDS = {"offset": 24, "size": 32, "link": 40, "info": 44, "alignment": 48, "width": 56}
EXTREMES = (0, 1, 3, 1 << 31, (1 << 32) - 1, 1 << 40, (1 << 63) - 1, (1 << 64) - 1)


@pytest.mark.parametrize("field", FIELDS)
def test_headers_with_extreme_numbers_are_refused_or_harmless(field: str) -> None:
    whole = image()
    (start,) = struct.unpack_from("<Q", whole, 40)
    width, count = struct.unpack_from("<HH", whole, 58)
    form = "<I" if field in ("link", "info") else "<Q"
    for number in range(count):
        for extreme in EXTREMES:
            content = bytearray(whole)
            struct.pack_into(
                form, content, start + number * width + FIELDS[field], extreme % 2 ** (8 * struct.calcsize(form))
            )
            loads_or_refuses(bytes(content))


def test_objects_of_other_machines_and_formats_are_refused() -> None:
    other = bytearray(image())
    struct.pack_into("<H", other, 18, 183)  # AArch64
    for content in (b"", b"\x7fELF", bytes(other), b"\xcf\xfa\xed\xfe" + image()[4:]):
        assert not loads_or_refuses(content)


WARM = """
import sys
import numpy as np, func

def loss(w, x, y):
    return np.mean((np.tanh(x @ w) - y) ** 2)

rng = np.random.default_rng(0)
w, x, y = rng.normal(size=(40, 3)), rng.normal(size=(1000, 40)), rng.normal(size=(1000, 3))
step = func.jit(func.value_and_grad(loss))
solve = func.jit(lambda a, b: np.linalg.solve(a @ a.T, b) + np.fft.fft(b).real)
for _ in range(10):
    value, slope = step(w, x, y)
out = solve(x[:40], w)
print(value.tobytes().hex(), slope.tobytes().hex()[:64], out.tobytes().hex()[:64])
generators = {"llvmlite", "func.backends.llvm.llvm_library"} & set(sys.modules)
print(bool(generators), step.lower(w, x, y) is not None)
"""


def run_fresh(script: str, **variables: str) -> str:
    """The output of a fresh process."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    command = [sys.executable, "-W", "error", "-c", script]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout.strip()


def test_a_process_with_a_warm_cache_generates_no_code(tmp_path: Path) -> None:
    """Programs with libm, BLAS, LAPACK, the pool, native stubs and native parts, and the same bits from disk."""
    cold, warm = [run_fresh(WARM, FUNC_CACHE_DIR=str(tmp_path), FUNC_NUM_THREADS="2").split("\n") for _ in range(2)]
    assert cold[0] == warm[0]
    assert (cold[1], warm[1]) == ("True True", "False True")
