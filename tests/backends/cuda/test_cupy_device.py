"""The required names of CuPy exist, and each failure of a device has a named error."""

from __future__ import annotations

import importlib
import operator
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func
from func.backends.cuda import cupy_device
from func.backends.cuda.device import KernelError
from func.errors import DeviceError, DeviceMemoryError

ASKED = """
cuda.Device cuda.Event.record cuda.Event.done cuda.Graph.launch cuda.Stream.begin_capture cuda.Stream.end_capture
cuda.Stream.wait_event cuda.Stream.record cuda.Stream.synchronize cuda.MemoryPointer cuda.UnownedMemory cuda.alloc
cuda.alloc_pinned_memory cuda.compiler.CompileException cuda.driver.launchKernel cuda.driver.CUDADriverError
cuda.get_current_stream cuda.memory.OutOfMemoryError cuda.runtime.CUDARuntimeError cuda.runtime.driverGetVersion
cuda.runtime.getDevice cuda.runtime.getDeviceCount cuda.runtime.memGetInfo cuda.runtime.memcpyAsync
cuda.runtime.memsetAsync cuda.runtime.runtimeGetVersion cuda.runtime.streamCaptureModeThreadLocal
cuda.runtime.deviceSynchronize cuda.runtime.getDeviceProperties RawModule.compile RawModule.get_function
RawKernel.kernel cuda.function.Function.ptr get_default_memory_pool ndarray.argsort ndarray.device asarray array empty
ndarray.base
"""
"""The names that the device and the benchmark use."""


def test_cupy_has_what_is_asked_of_it() -> None:
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed (extra 'cuda')")
    try:
        importlib.import_module("cupy.cuda.function")
    except ImportError as error:
        pytest.skip(f"CuPy finds no CUDA library: {error}")
    lacking = []
    for name in ASKED.split():
        try:
            operator.attrgetter(name)(cupy)
        except AttributeError:
            lacking.append(name)
    assert not lacking


class RuntimeFault(RuntimeError):
    """CuPy's CUDARuntimeError."""


class DriverFault(RuntimeError):
    """CuPy's CUDADriverError."""


class Full(MemoryError):
    """CuPy's OutOfMemoryError."""


class Pool:
    """A pool that has one free block to give back."""

    def __init__(self) -> None:
        self.freed = 0

    def free_all_blocks(self) -> None:
        self.freed += 1

    def used_bytes(self) -> int:
        return 3 << 30


class Here:
    """A device that is current inside a block."""

    def __init__(self, number: int) -> None:
        self.id = number

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def fake(
    count: int = 1,
    driver: int = 13000,
    library: int = 13000,
    empty: Callable[..., Any] | None = None,
    fault: Exception | None = None,
) -> Any:
    """As much of CuPy as the errors need."""

    def devices() -> int:
        if count < 0:
            raise RuntimeFault("cudaErrorNoDevice: no CUDA-capable device is detected")
        return count

    runtime = types.SimpleNamespace(
        CUDARuntimeError=RuntimeFault,
        getDevice=lambda: devices() - 1,
        getDeviceCount=devices,
        driverGetVersion=lambda: driver,
        runtimeGetVersion=lambda: library,
        memGetInfo=lambda: (1 << 30, 80 << 30),
    )
    pool = Pool()

    class Module:
        def __init__(self, code: str, options: tuple[str, ...]) -> None: ...

        def compile(self) -> None:
            raise fault or RuntimeFault("error: identifier is undefined")

    cuda = types.SimpleNamespace(
        runtime=runtime,
        driver=types.SimpleNamespace(CUDADriverError=DriverFault),
        Device=Here,
        memory=types.SimpleNamespace(OutOfMemoryError=Full),
        compiler=types.SimpleNamespace(CompileException=RuntimeFault),
    )
    return types.SimpleNamespace(
        cuda=cuda, pool=pool, get_default_memory_pool=lambda: pool, empty=empty, RawModule=Module
    )


class There:
    """An array on a device."""

    def __init__(self, number: int) -> None:
        self.device = Here(number)

    shape, dtype = (1,), np.dtype(float)

    def get(self) -> Any:
        return np.zeros(1)


def test_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(importlib.import_module("sys").modules, "cupy", fake(count=-1))
    with pytest.raises(DeviceError, match=r"finds no CUDA device .*no CUDA-capable device"):
        cupy_device.device_of([])
    with pytest.raises(DeviceError, match="none is visible"):
        cupy_device.CupyDevice(fake(count=0), 0)


def test_a_driver_that_is_too_old() -> None:
    with pytest.raises(
        DeviceError, match=r"driver is for CUDA 12\.2, and CuPy was built for CUDA 13\.0\n.*cupy-cuda12x"
    ):
        cupy_device.CupyDevice(fake(driver=12020), 0)


def test_arrays_of_two_devices() -> None:
    with pytest.raises(DeviceError, match=r"several devices \(device 0, device 1\)\n.*cupy\.asarray"):
        cupy_device.device_of([There(0), There(1), 2.0])


def test_an_enclosed_array_of_another_device() -> None:
    device = cupy_device.CupyDevice(fake(), 0)
    with pytest.raises(DeviceError, match=r"enclosed arrays are of several devices \(device 0, device 1\)\n"):
        device.uploaded(There(1))


def test_the_device_of_the_arguments_is_made_current() -> None:
    cupy = fake(count=2)  # the second of which is current
    assert isinstance(cupy_device.CupyDevice(cupy, 0).current(), Here)
    assert not isinstance(cupy_device.CupyDevice(cupy, 1).current(), Here)


def test_memory_is_asked_for_twice() -> None:
    calls: list[Any] = []

    def empty(shape: Any, dtype: Any) -> Any:
        calls.append(shape)
        if len(calls) < 2:
            raise Full("Out of memory allocating 8,000 bytes")
        return np.empty(shape, dtype)

    cupy = fake(empty=empty)
    assert cupy_device.CupyDevice(cupy, 0).empty((1000,), np.dtype(float)).shape == (1000,)
    assert (len(calls), cupy.pool.freed) == (2, 1)


def test_memory_that_is_not_there() -> None:
    def empty(shape: Any, dtype: Any) -> Any:
        raise Full("Out of memory")

    device = cupy_device.CupyDevice(fake(empty=empty), 0)
    words = r"149\.01 GiB do not fit on device 0: 1\.00 GiB of 80\.00 GiB are free, CuPy's pool holds 3\.00 GiB"
    with pytest.raises(DeviceMemoryError, match=words) as caught:
        device.empty((20_000_000_000,), np.dtype(float))
    assert isinstance(caught.value, MemoryError) and "memory_limit" in str(caught.value)


def test_kernels_that_nvrtc_refuses() -> None:
    with pytest.raises(KernelError, match="identifier is undefined"):
        cupy_device.CupyDevice(fake(), 0).compiled("text", False)
    with pytest.raises(KernelError, match="does not load the kernels: no binary for this device"):
        cupy_device.CupyDevice(fake(fault=DriverFault("no binary for this device")), 0).compiled("text", False)


def test_cuda_is_not_for_arrays_of_the_host() -> None:
    with pytest.raises(DeviceError, match=r"compiler='cuda' is for arrays of a device.*\n.*cupy\.asarray"):
        func.jit(lambda x: x + 1, compiler="cuda")(np.ones(3))


def test_tf32_is_asked_for() -> None:
    assert func.config.matmul_precision == "highest"
    with func.config.override(matmul_precision="tf32"):
        assert func.config.matmul_precision == "tf32"
    with pytest.raises(func.errors.ArgumentError, match="'highest' or 'tf32'"):
        func.config.matmul_precision = "low"
