"""The interface of a device for executables: memory, launches, products, copies, a number, and the capture of a
sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from func.backends.devices import PUBLIC, DeviceError

if TYPE_CHECKING:  # `import func` reads the errors of this module
    from func.backends.loops.kernels import DType, Shape


class DeviceMemoryError(MemoryError, DeviceError):
    """A device has too little memory, even after its pool freed its blocks."""

    __module__ = PUBLIC


class DeviceIndexError(DeviceError, IndexError):
    """An index was out of range in a call that has ended on a device; a later call reports it."""

    __module__ = PUBLIC


class KernelError(DeviceError):
    """The text of kernels does not compile."""


class ProductOperand(Protocol):
    """An operand of a product: an address, and strides in elements of the batch, of rows and of columns."""

    @property
    def address(self) -> int: ...
    @property
    def strides(self) -> tuple[int, int, int]: ...


class Device(Protocol):
    """A device, or a stand-in for one."""

    def current(self) -> AbstractContextManager[Any]:
        """Inside, operations start on this device."""
        ...

    def compiled(self, source: str, fast: bool) -> Callable[[str], Any]:
        """Compiles kernels, whose products and sums may be fused if `fast`; the kernels by name. Raises KernelError."""
        ...

    def memory(self, size: int) -> tuple[Any, int]:
        """Memory of this size that lives as long as the first item, and its address."""
        ...

    def uploaded(self, array: Any) -> tuple[Any, int]:
        """A constant, an array of the host or of the device, where kernels read it, and its address."""
        ...

    def empty(self, shape: Shape, dtype: DType) -> Any:
        """An array for a result."""
        ...

    def taken(self, value: Any, shape: Shape, dtype: DType) -> Any:
        """An argument as an array on the device that kernels can read: contiguous, aligned to 16 bytes."""
        ...

    def owned(self, value: Any, shape: Shape, dtype: DType) -> Any:
        """A donated argument as an array whose memory nothing else uses: a copy, unless it owns its memory."""
        ...

    def address(self, array: Any) -> int:
        """The address of an array's first element."""
        ...

    def launch(self, kernel: Any, blocks: int, threads: int, addresses: Sequence[int]) -> None:
        """Start a kernel."""
        ...

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
        """Start a batch of matrix products."""
        ...

    def argsort(self, keys: int, order: int, size: int) -> None:
        """Start a stable argsort of this number of int64."""
        ...

    def copy(self, target: int, source: int, size: int) -> None:
        """Start a copy of this number of bytes."""
        ...

    def clear(self, target: int, size: int) -> None:
        """Start to set this number of bytes to zero."""
        ...

    def read(self, address: int, dtype: DType) -> Any:
        """The number at an address, once everything before has ended."""
        ...

    def read_later(self, address: int) -> Callable[[], int | None]:
        """Start to bring an int32 to the host; the function returns it once it is there, None before."""
        ...

    def in_order(self) -> None:
        """Order later work after earlier work, on any stream."""
        ...

    def captured(self, run: Callable[[], None]) -> Callable[[], None] | None:
        """A replay of everything that `run` starts, at the same addresses; None if the device cannot."""
        ...
