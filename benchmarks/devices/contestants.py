"""The libraries on a device: the classes of the benchmark for processors, with arrays on the device."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from benchmarks.libraries.base import Function, Library
from benchmarks.libraries.compiling import FuncJit, JaxJit
from benchmarks.libraries.pytorch import Torch, TorchCompile
from benchmarks.workload import Call

FUNC_JIT, JAX_JIT, TORCH, TORCH_COMPILE, BY_HAND = "func.jit", "jax.jit", "torch eager", "torch.compile", "CuPy by hand"


class DeviceFunc(FuncJit):
    """func.jit on CuPy's arrays."""

    def array(self, value: Any) -> Any:
        return import_module("cupy").asarray(value)

    def call(self, job: Function, data: tuple[Any, ...]) -> Call:
        jitted = self.module.jit(job)
        return lambda: jitted(*data)


class DeviceTorch(Torch):
    """torch eager on a device."""

    def array(self, value: Any) -> Any:
        return self.module.from_numpy(value.copy()).cuda()


class DeviceTorchCompile(TorchCompile):
    """torch.compile on a device."""

    def array(self, value: Any) -> Any:
        return self.module.from_numpy(value.copy()).cuda()


class DeviceJax(JaxJit):
    """jax.jit on a device: calls return before they end."""

    def call(self, job: Function, data: tuple[Any, ...]) -> Call:
        jitted = self.module.jit(job)
        return lambda: jitted(*data)


def _func() -> Any:
    return import_module("func")


def _torch() -> Any:
    torch = import_module("torch")
    if not torch.cuda.is_available():
        raise ModuleNotFoundError("this torch finds no CUDA device")
    torch.backends.cuda.matmul.allow_tf32 = False
    return torch


def _jax() -> Any:
    jax = import_module("jax")
    if jax.default_backend() != "gpu":
        raise ModuleNotFoundError("this JAX finds no CUDA device")
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_default_matmul_precision", "highest")
    return jax


LIBRARIES: dict[str, tuple[Callable[[], Any], Callable[[Any], Library]]] = {
    FUNC_JIT: (_func, DeviceFunc),
    JAX_JIT: (_jax, DeviceJax),
    TORCH_COMPILE: (_torch, DeviceTorchCompile),
    TORCH: (_torch, DeviceTorch),
}


def synchronize() -> None:
    """Wait for all work on the device, by any library."""
    import_module("cupy").cuda.runtime.deviceSynchronize()


def to_host(value: Any) -> Any:
    """A result on the host."""
    if hasattr(value, "get") and not isinstance(value, dict):
        return value.get()
    if hasattr(value, "detach"):
        return value.detach().cpu().numpy()
    return import_module("numpy").asarray(value)
