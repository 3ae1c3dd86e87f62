"""A device's library under NumPy's and SciPy's names. The host computes missing functions, with one warning.

Implementations and generated code get functions from a `DeviceNamespace`: the device's own, unchanged. If the device
lacks one for the dtype, NumPy's or SciPy's own runs between two copies. Linear algebra raises LinAlgError like NumPy's.
CuPy by itself returns meaningless numbers for a matrix without a factor, since a check costs a synchronisation.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any

import numpy as np

from func.backends.array_helpers.arrays import scipy_of
from func.backends.quiet import quietly
from func.backends.records import Record

PUBLIC = "func.errors"
"""The module of the errors for users, from the start: tracebacks and pickles name it."""


class FuncError(Exception):
    """Base of every error that func words itself."""

    __module__ = PUBLIC


class DeviceError(FuncError, RuntimeError):
    """A device rejects a request, or there is none: the message suggests what to do."""

    __module__ = PUBLIC


LACKING = "which the device's library does not have"
"""Why most functions are computed on the host."""


class HostComputationWarning(UserWarning):
    """A function that a device lacks is computed on the host: its arrays are copied there and back at every call.

    One warning for each function. `warnings.filterwarnings("error", category=func.errors.HostComputationWarning)` makes
    an error of every such call, "ignore" accepts them.
    """

    __module__ = PUBLIC


def _kind_of(dtype: np.dtype[Any]) -> str:
    from func.backends.number_types import kind_of  # start-up time: for arrays of devices alone

    return kind_of(dtype)


class DeviceNamespace:
    """NumPy's functions on arrays of a device, found by name; `lacks` tells which are computed on the host."""

    def __init__(
        self,
        device: Any,
        host: ModuleType | Any,
        array_type: type,
        checked: Callable[[], AbstractContextManager[Any]] | None = None,
        device_of: Callable[[Sequence[Any]], Any] | None = None,
    ) -> None:
        """The library `device` under the names of `host`; linear algebra runs inside of `checked()`. `device_of` finds
        the device that runs kernels on some arguments."""
        self._device = device
        self._host = host
        self._array_type = array_type
        self._checked = checked
        self.device_of = device_of
        self._is_checked = False
        self._told: dict[str, str] = {}
        self._to_device = getattr(device, "asarray", None)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            return getattr(self._device, name)
        value = self._scipy(name[6:]) if name.startswith("scipy_") else self._lookup(name)
        self.__dict__[name] = value
        return value

    def __repr__(self) -> str:
        return (
            f"<{getattr(self._device, '__name__', self._device)} with {self._host.__name__} where it lacks a function>"
        )

    def _scipy(self, name: str) -> DeviceNamespace:
        return self._inner(scipy_of(self._device, name), scipy_of(np, name))

    @property
    def told(self) -> dict[str, str]:
        """The functions that have been computed on the host, and why."""
        return self._told

    def lacks(self, name: str) -> bool:
        """Whether the device has no function of this name."""
        return getattr(self._device, name, None) is None

    def on_host(self, function: Callable[..., Any], path: str) -> HostFunction:
        """A function that only the host computes, for arrays of the device."""
        return HostFunction(function, path, self._array_type, self._to_device, self._told)

    def _inner(self, device: Any, host: ModuleType) -> DeviceNamespace:
        inner = DeviceNamespace(device, host, self._array_type, self._checked)
        inner._to_device = self._to_device
        inner._told = self._told
        inner._is_checked = host.__name__.endswith(".linalg")
        return inner

    def _lookup(self, name: str) -> Any:
        device = getattr(self._device, name, None)
        host: Any = getattr(self._host, name) if device is None else getattr(self._host, name, None)
        if device is None and (isinstance(host, type) or not callable(host)):
            return host
        if isinstance(host, ModuleType):
            return self._inner(device, host)
        on_host = self.on_host(host, f"{self._host.__name__}.{name}")
        if device is None:
            return on_host
        if isinstance(host, np.ufunc):
            completed = CompletedUfunc(device, on_host)
            return device if host.signature is not None or completed.is_complete() else completed
        if hasattr(device, "nin"):  # a ufunc there, and a function with optional arguments on the host
            return functools.partial(_with_all_operands, device, on_host)
        is_function = callable(device) and not isinstance(device, type)
        return (
            functools.partial(_inside, self._checked, device)
            if self._is_checked and self._checked and is_function
            else device
        )


class HostFunction:
    """A function that a device lacks, between copies to the host and back."""

    def __init__(self, function: Any, path: str, array_type: type, to_device: Any, told: dict[str, str]) -> None:
        self.function = function
        self.path = path
        self._array_type = array_type
        self._to_device = to_device
        self._told = told

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.warn(LACKING)
        return self.computed(args, kwargs)

    def computed(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """The result, on the device; written into a ufunc's `out` if there is one."""
        out: Any = kwargs.pop("out", None)
        if isinstance(self.function, np.ufunc) and len(args) > self.function.nin:
            args, out = args[: self.function.nin], args[self.function.nin :]
        call = functools.partial(self.function, **{name: self._to_host(value) for name, value in kwargs.items()})
        result = self._returned(quietly(call, *[self._to_host(arg) for arg in args]))
        if out is None:
            return result
        targets: tuple[Any, ...] = out if isinstance(out, tuple) else (out,)
        for target, value in zip(targets, result if isinstance(result, tuple) else (result,), strict=True):
            target[...] = value
        return targets if isinstance(result, tuple) else targets[0]

    def warn(self, why: str) -> None:
        """Say once that this function runs on the host."""
        if self.path in self._told:
            return
        warnings.warn(
            f"{self.path} is computed on the host, {why}: its arrays are copied there and back at every call\n"
            "Write it with functions that the device has, or compute this part on the host: x.get() brings an array "
            "there. warnings.filterwarnings accepts or rejects such calls by func.errors.HostComputationWarning.",
            HostComputationWarning,
            stacklevel=_frames_inside(),
        )
        self._told[self.path] = why  # not where a filter makes an error of it: the next call raises it as well

    def _to_host(self, value: Any) -> Any:
        if isinstance(value, self._array_type):
            return value.get()  # type: ignore[attr-defined]
        if isinstance(value, (tuple, list)):
            return type(value)([self._to_host(item) for item in value])
        return value

    def _returned(self, value: Any) -> Any:
        if isinstance(value, (np.ndarray, np.generic)):
            return self._to_device(value)
        return tuple([self._returned(item) for item in value]) if isinstance(value, tuple) else value


class UfuncLoop(Record):
    """The dtypes of operands and results for NumPy's results by a device's ufunc, None for unchanged."""

    operands: tuple[np.dtype[Any], ...] | None
    results: tuple[np.dtype[Any], ...] | None


class CompletedUfunc:
    """A ufunc that a device has for other dtypes than NumPy or SciPy.

    Operands and results are converted where the device would compute in a narrower precision. The host computes on
    dtypes that the device lacks."""

    def __init__(self, device: Any, on_host: HostFunction) -> None:
        self._device = device
        self._on_host = on_host
        self.nin = on_host.function.nin
        self._loops_of_device = _loops_of(device)
        self._loops: dict[tuple[Any, ...], UfuncLoop | None] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        nin = self.nin
        key = tuple([_dtype_or_weak(arg) for arg in args[:nin]])
        if key not in self._loops:
            self._loops[key] = self.loop_for(key)
        loop = self._loops[key]
        if loop is None:
            dtypes = ", ".join([str(dtype) if isinstance(dtype, np.dtype) else dtype.__name__ for dtype in key])
            self._on_host.warn(f"which the device's library does not have for {dtypes}")
            return self._on_host.computed(args, kwargs)
        if loop.operands is not None:
            converted = [_converted(arg, dtype) for arg, dtype in zip(args, loop.operands, strict=False)]
            args = (*converted, *args[nin:])
        out = self._device(*args, **kwargs)
        if loop.results is None or len(args) > nin or "out" in kwargs:
            return out
        if isinstance(out, tuple):
            return tuple([_converted(value, dtype) for value, dtype in zip(out, loop.results, strict=True)])
        return _converted(out, loop.results[0])

    def loop_for(self, key: tuple[Any, ...]) -> UfuncLoop | None:
        """The device's loop for operands of these dtypes, None where it has none of their kind."""
        host = self._on_host.function
        try:
            resolved = host.resolve_dtypes((*key, *[None] * host.nout))
        except TypeError:
            return UfuncLoop(operands=None, results=None)  # the device words its own error
        operands, results = resolved[: host.nin], resolved[host.nin :]
        loops = self._loops_of_device
        if any([dtype.kind == "V" for dtype in resolved]):  # ml_dtypes may be younger than this object
            loops = _loops_of(self._device)
        is_question = host.nin == 1 and results == (np.dtype(bool),)
        holds = functools.partial(_holds, into_floats=is_question or _kind_of(results[0]) in "fc")
        by_itself = next((own for own in loops if _goes_into(key, own)), None)
        if by_itself is not None and loops[by_itself] == results:
            targets = key if is_question else operands
            if all([_kind_of(own) in "biu" or holds(want, own) for want, own in zip(targets, by_itself, strict=True)]):
                return UfuncLoop(operands=None, results=None)
        fitting = [own for own in loops if own == operands] or [own for own in loops if all(map(holds, operands, own))]
        if not fitting:
            return None
        return UfuncLoop(operands=fitting[0], results=None if loops[fitting[0]] == results else results)

    def is_complete(self) -> bool:
        """Whether the device itself computes the same as the host, for all pairs of dtypes."""
        if not self._loops_of_device:
            return True
        dtypes = [np.dtype(letter) for letter in "?bBhHiIlLefdFD"]
        keys = {(one, *[other] * (self.nin - 1)) for one in dtypes for other in dtypes}
        return all([_computes_itself(self.loop_for(key)) for key in keys])


def _inside(checked: Callable[[], AbstractContextManager[Any]], function: Any, *args: Any, **kwargs: Any) -> Any:
    with checked():
        return function(*args, **kwargs)


def _with_all_operands(ufunc: Any, on_host: HostFunction, *args: Any, **kwargs: Any) -> Any:
    """A ufunc of the device for calls that give all of its operands."""
    return ufunc(*args, **kwargs) if len(args) >= ufunc.nin else on_host(*args, **kwargs)


DEVICE_DTYPES = {letter: np.dtype(letter) for letter in "?bBhHiIlLqQefdFD"}
"""The dtypes that devices compute with, by NumPy's letters."""
BFLOAT16 = "E"
"""CuPy's letter for bfloat16 in the types of ufuncs."""


def _loops_of(ufunc: Any) -> dict[tuple[np.dtype[Any], ...], tuple[np.dtype[Any], ...]]:
    """The dtypes of the results for those of the operands, including bfloat16 once ml_dtypes is imported. Of letters
    for the same dtype the first loop counts."""
    known, narrow = dict(DEVICE_DTYPES), getattr(sys.modules.get("ml_dtypes"), "bfloat16", None)
    if narrow is not None:
        known[BFLOAT16] = np.dtype(narrow)
    loops: dict[tuple[np.dtype[Any], ...], tuple[np.dtype[Any], ...]] = {}
    types = getattr(ufunc, "types", None)
    for text in types if isinstance(types, list) else ():
        operands, results = text.split("->")
        if known.keys() >= set(operands + results):
            loops.setdefault(
                tuple([known[letter] for letter in operands]), tuple([known[letter] for letter in results])
            )
    return loops


_ORDER = "biufc"
_KINDS: dict[type, str] = {int: "i", float: "f", complex: "c"}


def _goes_into(key: tuple[Any, ...], loop: tuple[np.dtype[Any], ...]) -> bool:
    """Whether CuPy takes a loop for operands of these dtypes; Python scalars adapt to arrays of their kind or above."""
    highest = max([_ORDER.index(_kind_of(own)) for own in key if isinstance(own, np.dtype)], default=-1)
    for own, dtype in zip(key, loop, strict=True):
        if isinstance(own, np.dtype):
            fits = np.can_cast(own, dtype)
        elif _ORDER.index(_KINDS[own]) > highest:
            fits = np.can_cast(np.dtype(own), dtype)
        else:
            fits = np.result_type(own(0), dtype) == dtype
        if not fits:
            return False
    return True


def _computes_itself(loop: UfuncLoop | None) -> bool:
    return loop is not None and loop.operands is None and loop.results is None


def _holds(narrow: np.dtype[Any], wide: np.dtype[Any], into_floats: bool) -> bool:
    """Whether every number of a dtype is one of another."""
    if not np.can_cast(narrow, wide):
        return False
    return _kind_of(narrow) == _kind_of(wide) or (narrow.kind in "biu" and (wide.kind in "biu" or into_floats))


def _dtype_or_weak(value: Any) -> Any:
    """The dtype of an operand, or the type of a Python scalar, which adapts to the others."""
    return type(value) if type(value) in (int, float, complex) else np.dtype(getattr(value, "dtype", type(value)))


def _converted(value: Any, dtype: np.dtype[Any]) -> Any:
    """A value in a dtype, copied only where it has to be."""
    if isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic):
        return dtype.type(value)
    return value if value.dtype == dtype else value.astype(dtype)


def _frames_inside() -> int:
    """The number of frames above its caller that belong to func and its generated code."""
    level = 1
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "func").partition(".")[0] == "func":
        frame = frame.f_back
        level += 1
    return level
