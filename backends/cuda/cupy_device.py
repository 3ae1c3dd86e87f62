"""The device that CuPy gives access to: kernels by NVRTC, memory of CuPy's pool, cuBLAS, graphs.

Everything runs on CuPy's current stream. CuPy caches compiled kernels on disk, by text and architecture. func calls
cuBLAS through its C interface with a private handle: CuPy's rejects products during a capture.
"""

from __future__ import annotations

import ctypes
import importlib
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from func.backends.cuda.device import DeviceMemoryError, KernelError, ProductOperand
from func.backends.cuda.dialect import PRELUDE
from func.backends.devices import DeviceError
from func.backends.loops.kernels import DType, Shape

OPTIONS = ("--fmad=false", "--std=c++17")
"""Options of NVRTC: no fusion of products and sums, so that results are NumPy's to the last bit."""
FAST_OPTIONS = ("--fmad=true", "--std=c++17")
ALIGNMENT = 16
TO_HOST, ON_DEVICE = 2, 3
"""Directions of copies (cudaMemcpyKind)."""
WORKSPACE = 1 << 25
"""Bytes that cuBLAS may use besides its operands."""
REAL32, REAL64 = 0, 1
"""cudaDataType."""
COMPUTE32, COMPUTE32_PEDANTIC, COMPUTE64, COMPUTE_TF32 = 68, 69, 70, 77
"""cublasComputeType_t."""

_devices: dict[int, CupyDevice] = {}
_lock = threading.Lock()


def device_of(args: Sequence[Any]) -> CupyDevice:
    """The device of some arguments. Raises DeviceError where they are on several, or none can be used."""
    numbers = {arg.device.id for arg in args if hasattr(arg, "device") and hasattr(arg, "get")}
    if len(numbers) > 1:
        raise several_devices("the arguments are arrays", numbers)
    cupy = importlib.import_module("cupy")
    number = next(iter(numbers)) if numbers else _current(cupy)
    with _lock:
        if number not in _devices:
            _devices[number] = CupyDevice(cupy, number)
        return _devices[number]


def several_devices(what: str, numbers: Iterable[int]) -> DeviceError:
    """The error where arrays of one call lie on several devices."""
    places = ", ".join([f"device {number}" for number in sorted(numbers)])
    return DeviceError(
        f"func.jit: {what} of several devices ({places})\nA compiled program runs on one device: "
        "copy the others there, with `with cupy.cuda.Device(0): x = cupy.asarray(x)`."
    )


def _current(cupy: Any) -> int:
    try:
        return int(cupy.cuda.runtime.getDevice())
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise no_device(error) from None


def no_device(error: object) -> DeviceError:
    """The error where CUDA finds no device."""
    return DeviceError(
        f"func.jit: compiler='cuda' finds no CUDA device ({error})\nNVIDIA's driver has to be installed and a "
        "device visible (nvidia-smi, CUDA_VISIBLE_DEVICES). Without one, func.jit compiles for the processor: leave "
        "compiler out."
    )


class CupyDevice:
    """One device of CUDA."""

    def __init__(self, cupy: Any, number: int) -> None:
        self.cupy, self.number = cupy, number
        self.runtime, self.driver = cupy.cuda.runtime, cupy.cuda.driver
        _check_driver(cupy)
        self._handle: _Cublas | None = None
        self._capture_stream: Any = None
        self._last_stream: Any = None

    def current(self) -> AbstractContextManager[Any]:
        """The device made current, where another one is."""
        is_current = int(self.runtime.getDevice()) == self.number
        return nullcontext() if is_current else self.cupy.cuda.Device(self.number)

    # -- kernels ----------------------------------------------------------------------------------------------------
    def compiled(self, source: str, fast: bool) -> Callable[[str], Any]:
        """The kernels of a text, by their names."""
        with self.cupy.cuda.Device(self.number):
            module = self.cupy.RawModule(code=f"{PRELUDE}\n{source}", options=FAST_OPTIONS if fast else OPTIONS)
            try:
                module.compile()
            except self.cupy.cuda.compiler.CompileException as error:
                raise KernelError(f"NVRTC rejects the kernels: {error}") from error
            except self.driver.CUDADriverError as error:
                raise KernelError(f"the driver does not load the kernels: {error}") from error

        def load_kernel(name: str) -> Any:
            with self.cupy.cuda.Device(self.number):
                return module.get_function(name).kernel

        return load_kernel

    def launch(self, kernel: Any, blocks: int, threads: int, addresses: Sequence[int]) -> None:
        """Start a kernel on the current stream."""
        values = (ctypes.c_void_p * max(1, len(addresses)))(*addresses)
        start, size = ctypes.addressof(values), ctypes.sizeof(ctypes.c_void_p)
        places = (ctypes.c_void_p * max(1, len(addresses)))(*[start + size * i for i in range(len(addresses))])
        stream = self.cupy.cuda.get_current_stream().ptr
        self.driver.launchKernel(kernel.ptr, blocks, 1, 1, threads, 1, 1, 0, stream, ctypes.addressof(places), 0)

    # -- memory -----------------------------------------------------------------------------------------------------
    def _allocated(self, make: Callable[[], Any], size: int) -> Any:
        """The result of an allocation by `make`; if memory is short, once more after the pool has freed its blocks."""
        out_of_memory = self.cupy.cuda.memory.OutOfMemoryError
        with self.cupy.cuda.Device(self.number):
            try:
                return make()
            except out_of_memory:
                pool = self.cupy.get_default_memory_pool()
                pool.free_all_blocks()
            try:
                return make()
            except out_of_memory as error:
                free, total = self.runtime.memGetInfo()
                raise DeviceMemoryError(
                    f"func.jit: {_size(size)} do not fit on device {self.number}: {_size(free)} of {_size(total)} are "
                    f"free, CuPy's pool holds {_size(pool.used_bytes())} in arrays ({error})\n"
                    "func.jit(memory_limit=...) recomputes values instead of saving them, func.checkpoint does so "
                    "by hand, and vmap and jacobian take a chunk_size."
                ) from error

    def memory(self, size: int) -> tuple[Any, int]:
        """Memory of CuPy's pool."""
        block = self._allocated(lambda: self.cupy.cuda.alloc(size), size)
        return block, int(block.ptr)

    def uploaded(self, array: Any) -> tuple[Any, int]:
        """A constant on the device."""
        if hasattr(array, "device") and hasattr(array, "get") and array.device.id != self.number:
            raise several_devices("arguments and enclosed arrays are", [self.number, array.device.id])
        uploaded_array = self.taken(array, array.shape, array.dtype)
        return uploaded_array, int(uploaded_array.data.ptr)

    def empty(self, shape: Shape, dtype: DType) -> Any:
        """An array of the pool."""
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        return self._allocated(lambda: self.cupy.empty(shape, dtype), size)

    def taken(self, value: Any, shape: Shape, dtype: DType) -> Any:
        """An argument that kernels can read."""
        cupy = self.cupy
        if not isinstance(value, cupy.ndarray):
            value = np.asarray(value, dtype)
            return self._allocated(lambda: cupy.asarray(value), value.nbytes)
        if value.flags.c_contiguous and value.data.ptr % ALIGNMENT == 0 and value.dtype == dtype:
            return value
        return self._allocated(lambda: cupy.array(value, dtype, order="C"), value.nbytes)

    def owned(self, value: Any, shape: Shape, dtype: DType) -> Any:
        """A donated argument that may be overwritten."""
        argument = self.taken(value, shape, dtype)
        if argument is not value or value.base is None:
            return argument
        return self._allocated(lambda: self.cupy.array(value, dtype, order="C"), value.nbytes)

    def address(self, array: Any) -> int:
        """The first address of an array."""
        return int(array.data.ptr)

    def copy(self, target: int, source: int, size: int) -> None:
        """Start a copy on the current stream."""
        if size:
            self.runtime.memcpyAsync(target, source, size, ON_DEVICE, self.cupy.cuda.get_current_stream().ptr)

    def clear(self, target: int, size: int) -> None:
        """Start to set bytes to zero on the current stream."""
        self.runtime.memsetAsync(target, 0, size, self.cupy.cuda.get_current_stream().ptr)

    def argsort(self, keys: int, order: int, size: int) -> None:
        """Sort by CuPy, which takes CUB's or Thrust's radix sort."""
        places = self._allocated(lambda: self._array(keys, size).argsort(kind="stable"), 8 * size)
        self._array(order, size)[...] = places

    def _array(self, address: int, size: int) -> Any:
        """An array of int64 over memory of the program."""
        memory = self.cupy.cuda.UnownedMemory(address, 8 * size, self, self.number)
        return self.cupy.ndarray((size,), np.int64, self.cupy.cuda.MemoryPointer(memory, 0))

    def read(self, address: int, dtype: DType) -> Any:
        """A number, for which the host waits."""
        out = np.empty((), dtype)
        stream = self.cupy.cuda.get_current_stream()
        self.runtime.memcpyAsync(out.ctypes.data, address, dtype.itemsize, TO_HOST, stream.ptr)
        stream.synchronize()
        return out.item()

    def read_later(self, address: int) -> Callable[[], int | None]:
        """An int32 that the host finds once it is there."""
        cupy = self.cupy
        stream = cupy.cuda.get_current_stream()
        memory = cupy.cuda.alloc_pinned_memory(4)
        self.runtime.memcpyAsync(memory.ptr, address, 4, TO_HOST, stream.ptr)
        event = cupy.cuda.Event(disable_timing=True)
        event.record(stream)
        return lambda: int(np.frombuffer(memory, np.int32, 1)[0]) if event.done else None

    # -- products ---------------------------------------------------------------------------------------------------
    def product(
        self,
        dtype: DType,
        out: ProductOperand,
        x: ProductOperand,
        y: ProductOperand,
        batch: int,
        sizes: tuple[int, int, int],
        tf32: bool,
    ) -> None:
        """Start a product on the current stream."""
        if self._handle is None:
            self._handle = _Cublas(self)
        self._handle.product(dtype, out, x, y, batch, sizes, tf32, self.cupy.cuda.get_current_stream().ptr)

    # -- graphs -----------------------------------------------------------------------------------------------------
    def captured(self, run: Callable[[], None]) -> Callable[[], None] | None:
        """A graph of what `run` starts. Nothing is started meanwhile."""
        cupy = self.cupy
        with cupy.cuda.Device(self.number):
            if self._capture_stream is None:
                self._capture_stream = cupy.cuda.Stream(non_blocking=True)
            stream = self._capture_stream
            with stream:
                stream.begin_capture(self.runtime.streamCaptureModeThreadLocal)
                try:
                    run()
                except BaseException:
                    stream.end_capture()
                    raise
                graph = stream.end_capture()

        def replay() -> None:
            graph.launch(cupy.cuda.get_current_stream())

        return replay

    def in_order(self) -> None:
        """Let the current stream wait for the one of the call before, since calls share scratch memory."""
        stream = self.cupy.cuda.get_current_stream()
        last = self._last_stream
        if last is not None and last.ptr != stream.ptr:
            stream.wait_event(last.record())
        self._last_stream = stream


def _check_driver(cupy: Any) -> None:
    """Raises DeviceError where the driver is older than CuPy's libraries."""
    try:
        count = cupy.cuda.runtime.getDeviceCount()
        driver, library = cupy.cuda.runtime.driverGetVersion(), cupy.cuda.runtime.runtimeGetVersion()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise no_device(error) from None
    if not count:
        raise no_device("none is visible")
    if driver // 1000 < library // 1000:
        raise DeviceError(
            f"func.jit: the driver is for CUDA {_version(driver)}, and CuPy was built for CUDA {_version(library)}\n"
            f"Install a newer driver, or CuPy for the driver: pip install cupy-cuda{driver // 1000}x."
        )


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def _size(size: int) -> str:
    return f"{size / 2**20:.1f} MiB" if size < 2**30 else f"{size / 2**30:.2f} GiB"


class _Cublas:
    """cuBLAS's C interface, with a handle and a workspace of func's own."""

    def __init__(self, device: CupyDevice) -> None:
        importlib.import_module("cupy_backends.cuda.libs.cublas")  # loads the library
        major = device.cupy.cuda.runtime.runtimeGetVersion() // 1000
        self._library = ctypes.CDLL(f"libcublas.so.{major}")
        self._handle = ctypes.c_void_p()
        self._check(self._library.cublasCreate_v2(ctypes.byref(self._handle)), "cublasCreate")
        self._workspace, address = device.memory(WORKSPACE)
        self._address = address
        self._lock = threading.Lock()

    def _check(self, status: int, what: str) -> None:
        if status:
            raise DeviceError(f"func.jit: {what} of cuBLAS fails with status {status}")

    def product(
        self,
        dtype: DType,
        out: ProductOperand,
        x: ProductOperand,
        y: ProductOperand,
        batch: int,
        sizes: tuple[int, int, int],
        tf32: bool,
        stream: int,
    ) -> None:
        """out = x y. cuBLAS has columns in memory, so it computes the transposes."""
        m, k, n = sizes
        is_out_by_rows = _by_rows(out, (m, n))
        if not is_out_by_rows:
            out, x, y, m, n = _turned(out), _turned(y), _turned(x), n, m
        kind, real = (REAL64, ctypes.c_double) if dtype.itemsize == 8 else (REAL32, ctypes.c_float)
        compute = COMPUTE64
        if dtype.itemsize == 4:
            compute = COMPUTE_TF32 if tf32 else COMPUTE32_PEDANTIC
        y_rows, x_rows = _by_rows(y, (k, n)), _by_rows(x, (m, k))
        one, zero = real(1), real(0)
        with self._lock:
            self._check(self._library.cublasSetStream_v2(self._handle, ctypes.c_void_p(stream)), "cublasSetStream")
            self._check(
                self._library.cublasSetWorkspace_v2(
                    self._handle, ctypes.c_void_p(self._address), ctypes.c_size_t(WORKSPACE)
                ),
                "cublasSetWorkspace",
            )
            status = self._library.cublasGemmStridedBatchedEx(
                self._handle,
                *(ctypes.c_int(0 if y_rows else 1), ctypes.c_int(0 if x_rows else 1)),
                *(ctypes.c_int(n), ctypes.c_int(m), ctypes.c_int(k)),
                ctypes.byref(one),
                *(ctypes.c_void_p(y.address), ctypes.c_int(kind), ctypes.c_int(_leading(y, (k, n), y_rows))),
                ctypes.c_longlong(y.strides[0]),
                *(ctypes.c_void_p(x.address), ctypes.c_int(kind), ctypes.c_int(_leading(x, (m, k), x_rows))),
                ctypes.c_longlong(x.strides[0]),
                ctypes.byref(zero),
                *(ctypes.c_void_p(out.address), ctypes.c_int(kind), ctypes.c_int(_leading(out, (m, n), True))),
                ctypes.c_longlong(out.strides[0]),
                *(ctypes.c_int(batch), ctypes.c_int(compute), ctypes.c_int(-1)),
            )
        self._check(status, "cublasGemmStridedBatchedEx")


class _Turned:
    """The transposed operand."""

    def __init__(self, matrix: ProductOperand) -> None:
        batch, down, across = matrix.strides
        self.address = matrix.address
        self.strides = (batch, across, down)


def _turned(matrix: ProductOperand) -> Any:
    return _Turned(matrix)


def _by_rows(matrix: ProductOperand, shape: tuple[int, int]) -> bool:
    """Whether elements of a row are adjacent."""
    _, down, across = matrix.strides
    rows, columns = shape
    return (across == 1 or columns == 1) and (down >= columns or rows == 1)


def _leading(matrix: ProductOperand, shape: tuple[int, int], by_rows: bool) -> int:
    """The elements from one row to the next, or from one column to the next."""
    _, down, across = matrix.strides
    rows, columns = shape
    return max(down if rows > 1 else 0, columns, 1) if by_rows else max(across if columns > 1 else 0, rows, 1)
