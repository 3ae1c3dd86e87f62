"""A strict stand-in for a device array: like CuPy's, it refuses to become a NumPy array behind one's back.

Its namespace has the names that CuPy has, and binds every call to CuPy's own parameters and dtypes.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import scipy.ndimage
import scipy.signal
import scipy.special

from func.backends import register_namespace
from func.backends.devices import DeviceNamespace
from tests.support import cupy_surface


class DeviceArray:
    """An array that only its own namespace computes on; `get()` brings it to the host, as CuPy's does."""

    def __init__(self, host: Any) -> None:
        self._host = np.asarray(host)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed; use .get()")

    def get(self) -> Any:
        """The array on the host."""
        return self._host

    @property
    def shape(self) -> Any:
        return self._host.shape

    @property
    def dtype(self) -> Any:
        return self._host.dtype

    @property
    def ndim(self) -> int:
        return self._host.ndim

    @property
    def T(self) -> DeviceArray:
        return DeviceArray(self._host.T)

    @property
    def size(self) -> int:
        return self._host.size

    @property
    def nbytes(self) -> int:
        return self._host.nbytes

    @property
    def real(self) -> DeviceArray:
        return DeviceArray(self._host.real)

    @real.setter
    def real(self, value: Any) -> None:
        self._host.real = host_of(value)

    @property
    def imag(self) -> DeviceArray:
        return DeviceArray(self._host.imag)

    @imag.setter
    def imag(self, value: Any) -> None:
        self._host.imag = host_of(value)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._host, name)
        if not callable(method) or not cupy_surface.has(cupy_surface.ARRAY, name):
            raise AttributeError(name)
        return DeviceFunction(method, f"{cupy_surface.ARRAY}.{name}")

    def __getitem__(self, index: Any) -> Any:
        return wrapped(self._host[host_of(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        self._host[host_of(index)] = host_of(value)

    def __len__(self) -> int:
        return len(self._host)

    def __bool__(self) -> bool:
        return bool(self._host)

    def __int__(self) -> int:
        return int(self._host)

    def __float__(self) -> float:
        return float(self._host)

    def __complex__(self) -> complex:
        return complex(self._host)

    def __index__(self) -> int:
        return operator.index(self._host)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """NumPy's ufuncs reach the device, as they reach CuPy, which leaves operands of other classes to these."""
        if method != "__call__" or any([_is_foreign(x) for x in (*inputs, *kwargs.get("out", ()))]):
            return NotImplemented
        host = {key: host_of(value) for key, value in kwargs.items()}
        return wrapped(ufunc(*[host_of(x) for x in inputs], **host))

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """NumPy's functions reach the device, as they reach CuPy."""
        if any([not issubclass(kind, DeviceArray) for kind in types]):
            return NotImplemented
        host = {key: host_of(value) for key, value in kwargs.items()}
        return wrapped(function(*[host_of(x) for x in args], **host))


def is_on_device(value: Any) -> bool:
    """Whether a value is an array of the device: CuPy is compiled code, which asks for the type, not `__class__`."""
    return issubclass(type(value), DeviceArray)


def _is_foreign(value: Any) -> bool:
    """Whether a value is an array to NumPy's protocols, and neither the device's nor NumPy's own."""
    if is_on_device(value) or isinstance(value, np.ndarray) or issubclass(type(value), np.generic):
        return False
    return hasattr(type(value), "__array_ufunc__")


def host_of(value: Any) -> Any:
    """An argument on the host; plain NumPy arrays are refused, as a device refuses them."""
    if is_on_device(value):
        return value._host
    if isinstance(value, np.ndarray) or _is_foreign(value):
        raise TypeError(f"Unsupported type {type(value)}: a NumPy array met a device array")
    if isinstance(value, (list, tuple)):
        return type(value)([host_of(item) for item in value])
    return value


def wrapped(value: Any) -> Any:
    """Results on the device; tuples (of decompositions) item by item."""
    if isinstance(value, (np.ndarray, np.generic)):
        return DeviceArray(value)
    if isinstance(value, (tuple, list)):
        return tuple([wrapped(item) for item in value])
    return value


def _operator(function: Callable[..., Any], reflected: bool = False) -> Callable[..., Any]:
    """An operator, which leaves operands of other classes to NumPy's protocol and so to these, as CuPy's do."""

    def apply(self: DeviceArray, *others: Any) -> Any:
        if any([_is_foreign(other) for other in others]):
            return NotImplemented
        operands = [host_of(self), *[host_of(other) for other in others]]
        return wrapped(function(*(operands[::-1] if reflected else operands)))

    return apply


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor"):
    _plain = _name.rstrip("_")
    setattr(DeviceArray, f"__{_plain}__", _operator(getattr(operator, _name)))
    setattr(DeviceArray, f"__r{_plain}__", _operator(getattr(operator, _name), reflected=True))
for _name in ("neg", "pos", "invert", "abs", "eq", "ne", "lt", "le", "gt", "ge"):
    setattr(DeviceArray, f"__{_name}__", _operator(getattr(operator, _name)))
DeviceArray.__hash__ = None  # type: ignore[assignment]


class Namespace:
    """A module's functions for device arrays, as far as CuPy has them."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self.__name__ = cupy_surface.MODULES.get(module.__name__, module.__name__)

    def __getattr__(self, name: str) -> Any:
        module = self._module.__name__
        found = getattr(self._module, name)
        if inspect.ismodule(found):
            return Namespace(found)
        if not cupy_surface.has(module, name):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name, obj=self)
        if isinstance(found, type) or not callable(found):
            return found
        return DeviceFunction(found, f"{module}.{name}")


class DeviceFunction:
    """A function of the namespace, with its methods (`add.reduce`, `add.at`)."""

    def __init__(self, function: Any, path: str) -> None:
        self._function = function
        self._path = path

    @property
    def nin(self) -> int:
        return self._loops[0]

    @property
    def types(self) -> list[str]:
        return self._loops[2]

    @property
    def _loops(self) -> tuple[int, int, list[str]]:
        loops = cupy_surface.loops_of(self._path)
        if loops is None:
            raise AttributeError(f"{self._path} is no ufunc")
        return loops

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        loop = cupy_surface.check_call(self._path, lambda x: x.dtype if is_on_device(x) else None, args, kwargs)
        if loop is not None:
            return wrapped(_by_loop(self._function, loop, [host_of(a) for a in args], kwargs))
        host = {key: host_of(value) for key, value in kwargs.items()}
        if self._path.endswith((".argsort", ".sort")):
            host["kind"] = "stable"  # as CuPy sorts
        if self._path in ("numpy.asarray", "numpy.array"):  # the explicit way to the device
            given = args[0]._host if isinstance(args[0], DeviceArray) else args[0]
            return wrapped(self._function(given, *args[1:], **host))
        return wrapped(self._function(*[host_of(a) for a in args], **host))

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._function, name)

        def call(target: Any, *args: Any, **kwargs: Any) -> Any:
            cupy_surface.check_method(self._path, name, target.dtype)
            host = {key: host_of(value) for key, value in kwargs.items()}
            return wrapped(method(host_of(target), *[host_of(arg) for arg in args], **host))

        return call


def _by_loop(ufunc: Any, loop: tuple[str, str], operands: list[Any], kwargs: dict[str, Any]) -> Any:
    """A ufunc in the dtypes of a loop of CuPy's, which may be others than NumPy takes."""
    letters, results = loop
    cast = [
        x.astype(cupy_surface.dtype_of_letter(letter), copy=False) if isinstance(x, (np.ndarray, np.generic)) else x
        for x, letter in zip(operands, letters, strict=False)
    ]
    outs = [*operands[len(letters) :], *[host_of(x) for x in _as_tuple(kwargs.get("out", ()))]]
    values = [
        np.asarray(x, cupy_surface.dtype_of_letter(letter))
        for x, letter in zip(_as_tuple(ufunc(*cast)), results, strict=True)
    ]
    for out, value in zip(outs, values, strict=False):
        np.copyto(out, value, casting=kwargs.get("casting", "same_kind"))
    return (outs or values)[0] if len(results) == 1 else tuple(outs or values)


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


library = Namespace(np)
"""CuPy's role for its arrays."""
library.scipy_linalg = Namespace(scipy.linalg)  # type: ignore[attr-defined]
library.scipy_ndimage = Namespace(scipy.ndimage)  # type: ignore[attr-defined]
library.scipy_signal = Namespace(scipy.signal)  # type: ignore[attr-defined]
library.scipy_special = Namespace(scipy.special)  # type: ignore[attr-defined]
namespace = DeviceNamespace(library, np, DeviceArray)
register_namespace(DeviceArray, namespace)


def to_device(value: Any) -> Any:
    """Arrays moved to the device; everything else as it is."""
    return DeviceArray(value.copy()) if isinstance(value, np.ndarray) else value
