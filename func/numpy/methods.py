"""The methods and attributes of ndarray on traced arrays."""

from __future__ import annotations

from typing import Any

from func.interpreters.core import Tracer
from func.numpy import essentials as e
from func.numpy import products


def _ndim(self: Tracer) -> int:
    return len(self.shape)


def _size(self: Tracer) -> int:
    n = 1
    for k in self.shape:
        n *= k
    return n


def _len(self: Tracer) -> int:
    if not self.shape:
        raise TypeError("len() of unsized object")
    return self.shape[0]


def _iter(self: Any) -> Any:
    return (self[i] for i in range(len(self)))


def _reshape(self: Tracer, *shape: Any, order: str = "C", copy: Any = None) -> Any:
    return e.reshape(self, shape[0] if len(shape) == 1 else shape)


def _transpose(self: Tracer, *axes: Any) -> Any:
    return e.transpose(self, None if not axes or axes[0] is None else axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes)


def _repr(self: Tracer) -> str:
    return f"Traced({self.interpreter.aval(self)!r}, {self.interpreter.transform}, level {self.interpreter.level})"


def method_table() -> dict[str, Any]:
    """Everything that an ndarray has as a method or attribute."""
    table: dict[str, Any] = {
        "ndim": property(_ndim),
        "size": property(_size),
        "T": property(e.transpose),
        "mT": property(lambda self: e.swapaxes(self, -1, -2)),
        "__len__": _len,
        "__iter__": _iter,
        "reshape": _reshape,
        "transpose": _transpose,
        "__repr__": _repr,
        "flatten": lambda self, order="C": e.copy(e.ravel(self)),
        "dot": products.dot,
    }
    for name in ("sum", "mean", "max", "min", "any", "all", "argmax", "cumsum", "ravel", "swapaxes", "squeeze", "astype", "copy"):
        table[name] = getattr(e, name)
    return table
