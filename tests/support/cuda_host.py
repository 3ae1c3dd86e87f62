"""A device that a processor stands for: kernels in CUDA C run behind a header, memory is NumPy's.

The text of the kernels is the one that NVRTC compiles. So plans, kernels and executables are tested by their numbers
where there is no GPU.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from func.backends.cuda.device import KernelError, ProductOperand
from func.backends.cuda.dialect import PRELUDE
from tests.support import host_functions

HEADER = Path(__file__).parent / "cuda_host.h"
COMPILER = shutil.which("g++") or shutil.which("c++")
FLAGS = ("-std=c++17", "-O0", "-ffp-contract=off", "-fno-math-errno", "-w", "-shared", "-fPIC")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler here")
KERNEL = re.compile(r'extern "C" __global__ void __launch_bounds__\((\d+)\) (\w+)\((.*?)\) \{\n(.*?)\n\}\n', re.S)


def launchers(source: str) -> str:
    """Functions that start the kernels of a text."""
    texts = []
    for _, name, parameters, body in KERNEL.findall(source):
        kinds = [re.sub(r"\s*(__restrict__)?\s*\w+$", "", parameter) for parameter in parameters.split(", ")]
        passed = ", ".join([f"({kind})a[{place}]" for place, kind in enumerate(kinds)])
        has_barriers = "true" if re.search(r"__sync|func_(down|first|up|last)", body) else "false"
        texts.append(
            f'extern "C" void run_{name}(int blocks, int threads, void **a) {{\n'
            f"    func_host_run(blocks, threads, {has_barriers}, [](void **a) {{ {name}({passed}); }}, a);\n}}"
        )
    return "\n".join(texts)


def built(source: str, folder: Path | None = None) -> ctypes.CDLL:
    """A text compiled and loaded."""
    assert COMPILER is not None
    text = f'#include "{HEADER}"\n{host_functions.declarations()}\n{PRELUDE}\n{source}\n'
    place = folder or Path(tempfile.mkdtemp(prefix="func-cuda-"))
    stem = hashlib.sha256(text.encode()).hexdigest()[:16]
    (place / f"{stem}.cpp").write_text(text)
    library = place / f"{stem}.so"
    command = [COMPILER, *FLAGS, "-o", str(library), str(place / f"{stem}.cpp"), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise KernelError(f"{done.stderr[:3000]}\n{place / stem}.cpp")
    loaded = ctypes.CDLL(str(library))
    host_functions.connect(loaded)
    if folder is None:
        shutil.rmtree(place)
    return loaded


class HostDevice:
    """Runs its work at once; a capture is a list of calls."""

    def __init__(self, wrap: Callable[[Any], Any] = lambda array: array) -> None:
        self.wrap = wrap
        """Makes an array of the device of one of NumPy."""
        self.libraries: list[ctypes.CDLL] = []
        self.functions: dict[str, Any] = {}
        self.known: set[str] = set()
        self.waiting: list[str] = []
        self.sources: list[str] = []
        """The texts that were compiled, without kernels that were there before."""
        self.is_dry = False
        """Whether kernels are collected, to be compiled together, and nothing is computed."""
        self.calls = 0
        self.reads = 0
        self.recorded: list[Callable[[], None]] | None = None
        self.captures = 0
        self.lock = threading.RLock()

    def current(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def compiled(self, source: str, fast: bool) -> Callable[[str], Any]:
        """The kernels of a text by their names, which are in place when this returns, as on a device."""
        with self.lock:
            self._compile(source)
        return lambda name: name

    def _compile(self, source: str) -> None:
        definitions, _, kernels = source.partition('extern "C" __global__')
        new = [match for match in KERNEL.finditer(f'extern "C" __global__{kernels}') if match[2] not in self.known]
        self.known.update([match[2] for match in new])
        if new:
            body = "".join([match[0] for match in new])
            self.sources.append(f"{definitions}\n{body}")
            self.waiting.append(f"namespace n{len(self.known)} {{\n{definitions}\n{body}\n{launchers(body)}\n}}")
        if not self.is_dry:
            self.build()

    def build(self) -> None:
        """Compile what has been asked for."""
        if self.waiting:
            text, self.waiting = "\n".join(self.waiting), []
            self.libraries.append(built(text))

    def _function(self, name: str) -> Any:
        function = self.functions.get(name)
        if function is None:
            library = next(library for library in self.libraries if hasattr(library, f"run_{name}"))
            function = self.functions[name] = getattr(library, f"run_{name}")
        return function

    def memory(self, size: int) -> tuple[Any, int]:
        array = np.full(size + 64, 0xA5, np.uint8)
        start = array.ctypes.data
        return array, start + -start % 64

    def uploaded(self, array: Any) -> tuple[Any, int]:
        kept = self.taken(array, array.shape, array.dtype)
        return kept, self.address(kept)

    def empty(self, shape: Any, dtype: Any) -> Any:
        size = int(np.prod(shape, dtype=int)) * dtype.itemsize
        memory, start = self.memory(size)
        offset = start - memory.ctypes.data
        return self.wrap(memory[offset : offset + size].view(dtype).reshape(shape))

    def taken(self, value: Any, shape: Any, dtype: Any) -> Any:
        host = value.get() if hasattr(value, "get") else np.asarray(value)
        if host.dtype == dtype and host.shape == tuple(shape) and host.flags.c_contiguous and not host.ctypes.data % 16:
            return self.wrap(host)
        made = self.empty(shape, dtype)
        _host(made)[...] = host
        return made

    def owned(self, value: Any, shape: Any, dtype: Any) -> Any:
        made = self.taken(value, shape, dtype)
        if _host(made) is not getattr(value, "_host", value) or _host(made).base is None:
            return made
        copy = self.empty(shape, dtype)
        _host(copy)[...] = _host(made)
        return copy

    def address(self, array: Any) -> int:
        return int(_host(array).ctypes.data)

    def _do(self, call: Callable[[], None]) -> None:
        self.calls += 1
        if self.is_dry:
            return
        if self.recorded is not None:
            self.recorded.append(call)
        else:
            call()

    def launch(self, kernel: Any, blocks: int, threads: int, addresses: Sequence[int]) -> None:
        assert blocks >= 1 and 1 <= threads <= 1024
        passed = (ctypes.c_void_p * max(1, len(addresses)))(*addresses)

        def call() -> None:
            with self.lock:
                self._function(kernel)(blocks, threads, passed)

        self._do(call)

    def product(
        self,
        dtype: Any,
        out: ProductOperand,
        x: ProductOperand,
        y: ProductOperand,
        batch: int,
        sizes: tuple[int, int, int],
        tf32: bool,
    ) -> None:
        m, k, n = sizes

        def view(matrix: ProductOperand, shape: tuple[int, int]) -> Any:
            steps = [stride * dtype.itemsize for stride in matrix.strides]
            span = (
                sum([abs(step) * (length - 1) for step, length in zip(steps, (batch, *shape), strict=True)])
                + dtype.itemsize
            )
            memory = (ctypes.c_uint8 * span).from_address(matrix.address)
            return np.ndarray((batch, *shape), dtype, memory, strides=steps)

        def call() -> None:
            view(out, (m, n))[...] = np.matmul(view(x, (m, k)), view(y, (k, n)))

        self._do(call)

    def argsort(self, keys: int, order: int, size: int) -> None:
        def array(address: int) -> Any:
            return np.ndarray(size, np.int64, (ctypes.c_uint8 * (8 * size)).from_address(address))

        def call() -> None:
            array(order)[:] = np.argsort(array(keys), kind="stable")

        assert self.recorded is None
        self._do(call)

    def copy(self, target: int, source: int, size: int) -> None:
        self._do(lambda: ctypes.memmove(target, source, size) and None)

    def clear(self, target: int, size: int) -> None:
        self._do(lambda: ctypes.memset(target, 0, size) and None)

    def read(self, address: int, dtype: Any) -> Any:
        assert self.recorded is None
        self.reads += 1
        if self.is_dry:
            return 0
        return np.frombuffer((ctypes.c_uint8 * dtype.itemsize).from_address(address), dtype)[0].item()

    def read_later(self, address: int) -> Callable[[], int | None]:
        value = 0 if self.is_dry else ctypes.c_int32.from_address(address).value
        return lambda: value

    def in_order(self) -> None:
        assert self.recorded is None

    def captured(self, run: Callable[[], None]) -> Callable[[], None] | None:
        self.recorded = recorded = []
        try:
            run()
        finally:
            self.recorded = None
        self.captures += 1

        def replay() -> None:
            for call in recorded:
                call()

        return replay


def _host(array: Any) -> Any:
    return array if isinstance(array, np.ndarray) else array._host
