"""Array backends: the namespace that computes on an array, found by the array's type.

Nothing is imported for the user: CuPy is looked up only once one of its arrays is seen.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

import numpy as np

from func.backends.array_helpers.arrays import scipy_of
from func.backends.devices import DeviceNamespace

__all__ = [
    "is_device_array",
    "is_known_array",
    "namespace_of",
    "namespace_of_type",
    "register_namespace",
    "scipy_of",
]

HOST_TYPES: frozenset[type] = frozenset({np.ndarray, bool, int, float, complex, *np.sctypeDict.values()})
"""Types that NumPy computes on: ndarray, NumPy scalars and Python scalars."""

START_FOLDER: str = vars(sys.modules["func"])["_START_FOLDER"]
"""The working folder of the process when func was imported; relative settings refer to it."""

_device_namespaces: dict[type, ModuleType | Any] = {}


def register_namespace(array_type: type, namespace: ModuleType | Any) -> None:
    """Let `namespace` (a module with NumPy's function names) compute on arrays of `array_type`."""
    _device_namespaces[array_type] = namespace


def namespace_of_type(array_type: type) -> ModuleType | Any | None:
    """The namespace for arrays of this type, or None where no backend knows it."""
    if array_type in HOST_TYPES:
        return np
    namespace = _device_namespaces.get(array_type)
    if namespace is None and array_type.__module__.partition(".")[0] == "cupy":
        cupy = sys.modules["cupy"]
        if not issubclass(array_type, cupy.ndarray):
            return None
        if cupy.ndarray not in _device_namespaces:
            own = DeviceNamespace(cupy, np, cupy.ndarray, _errors_of_linear_algebra, _device_of)
            register_namespace(cupy.ndarray, own)
        namespace = _device_namespaces[array_type] = _device_namespaces[cupy.ndarray]
    return namespace


def _errors_of_linear_algebra() -> Any:
    return importlib.import_module("cupyx").errstate(linalg="raise")


def _device_of(args: Any) -> Any:
    return importlib.import_module("func.backends.cuda.cupy_device").device_of(args)


def is_device_array(value: object) -> bool:
    """True for arrays of a backend other than NumPy."""
    kind = type(value)
    return kind not in HOST_TYPES and namespace_of_type(kind) is not None


def is_known_array(value: object) -> bool:
    """True for arrays and scalars that some backend computes on."""
    return namespace_of_type(type(value)) is not None


def namespace_of(values: tuple[Any, ...]) -> Any:
    """The namespace that computes on these concrete values: a device's if one of them lives there, else NumPy."""
    for value in values:
        kind = type(value)
        if kind not in HOST_TYPES:
            namespace = namespace_of_type(kind)
            if namespace is not None:
                return namespace
    return np
