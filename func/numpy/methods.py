"""The array interface of traced arrays: operators, protocols, methods and attributes, set on the Tracer class."""

from __future__ import annotations

import builtins
import os
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from func.interpreters.core import Array, Tracer, innermost, known_value, operand
from func.interpreters.core.errors import LeakedTracerError, TracerConversionError, UnsupportedFunctionError
from func.interpreters.core.public_functions import at_boundary, put_methods_at_boundary
from func.interpreters.core.refusals import hide_outside
from func.interpreters.core.source import at_line, is_library_file
from func.interpreters.core.wiring import WIRING
from func.interpreters.primitives.elementwise import table as ops
from func.numpy import (
    conversions,
    creation,
    cumulative,
    elementary,
    flat,
    joining,
    memory,
    products,
    protocol,
    reductions,
    selection,
    shaping,
    sizes,
    sorting,
    statistics,
)
from func.numpy.argument_checks import arrayed, count, refuse, to_host
from func.numpy.conversions import NoAttributeError
from func.numpy.indexing import one_number
from func.numpy.inplace import base_of, getitem, rebind, setitem, view_pairs
from func.numpy.memory import copied, copied_as_it_is, fresh, is_scalar
from func.numpy.operators import operator_table
from func.numpy.solvers import seen_in_solvers


def _shape(self: Tracer) -> tuple[int, ...]:
    try:
        return self._interpreter.shape(self)
    except Exception as error:
        hide_outside(error)
        raise


def _dtype(self: Tracer) -> np.dtype[Any]:
    try:
        return self._interpreter.dtype(self)
    except Exception as error:
        hide_outside(error)
        raise


def _set_shape(self: Tracer, value: Any) -> None:
    raise NoAttributeError(
        f"the shape of a traced array cannot be set{at_line()}\nWrite y = y.reshape(...), which makes a view."
    )


def _ndim(self: Tracer) -> int:
    return len(self.shape)


def _size(self: Tracer) -> int:
    return count(self.shape)


def _itemsize(self: Tracer) -> int:
    return self.dtype.itemsize


def _nbytes(self: Tracer) -> int:
    return count(self.shape) * self.dtype.itemsize


def _len(self: Tracer) -> int:
    if not self.shape:
        raise TypeError("len() of unsized object")
    return self.shape[0]


def _iter(self: Tracer) -> Iterator[Array]:
    if not self.shape:
        raise TypeError("iteration over a 0-d array")
    return iter([getitem(self, i) for i in range(self.shape[0])])


def _contains(self: Tracer, value: Any) -> bool:
    return bool(reductions.any(ops.equal(self, operand(value))))


def _repr(self: Tracer) -> str:
    return WIRING.tensor_repr(self, _traced_repr)


def _traced_repr(self: Tracer) -> str:
    interpreter = self._interpreter
    try:
        aval = interpreter.aval(self)
    except LeakedTracerError:
        return f"Traced(leaked from func.{interpreter.transform})"
    bottom = known_value(self)
    shown = "" if bottom is None else f", value={np.array2string(to_host(bottom), threshold=6, precision=4)}"
    return f"Traced({aval!r}, {interpreter.transform}, level={interpreter.level}{shown})"


def _format(self: Tracer, spec: str) -> str:
    bottom = known_value(self)
    if not spec or bottom is None or self.shape:
        return repr(self)
    array = to_host(bottom)
    if array.ndim:  # the batch of a vmap
        return np.array2string(array, threshold=6, formatter={"all": lambda number: format(number, spec)})
    return format(array[()], spec)


def _copy(self: Tracer, order: str = "C") -> Array:
    if order != "C":
        creation.check_order(order)
    return copied_as_it_is(self, order)


def _reshape(self: Tracer, *shape: Any, order: str = "C", copy: bool | None = None) -> Array:
    return shaping.reshape(self, shape[0] if len(shape) == 1 else shape, order, copy=copy)


def _transpose(self: Tracer, *axes: Any) -> Array:
    if not axes or axes[0] is None:
        return shaping.transpose(self)
    return shaping.transpose(self, axes[0] if len(axes) == 1 and not isinstance(axes[0], (int, np.integer)) else axes)


def _flatten(self: Tracer, order: str = "C") -> Array:
    return copied(shaping.ravel(self, order))


def _set_real(self: Tracer, value: Any) -> None:
    setitem(elementary.real(self), Ellipsis, arrayed(operand(value)))  # of a number NumPy makes an array, too


def _set_imag(self: Tracer, value: Any) -> None:
    if self.dtype.kind != "c":
        raise TypeError("array does not have imaginary part to set")
    setitem(elementary.imag(self), Ellipsis, arrayed(operand(value)))


def _sort(self: Tracer, axis: int = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> None:
    rebind(self, sorting.sort(fresh(self), axis, kind, order, stable=stable))


def _partition(self: Tracer, kth: Any, axis: int = -1, kind: str = "introselect", order: Any = None) -> None:
    rebind(self, sorting.partition(fresh(self), kth, axis, kind, order))


def _fill(self: Tracer, value: Any) -> None:
    if is_scalar(self):
        return  # as in NumPy, where a scalar fills a copy of itself
    setitem(self, Ellipsis, one_number(value, self.dtype))


def _put(self: Tracer, indices: Any, values: Any, mode: str = "raise") -> None:
    selection.put(self, indices, values, mode)


def _clip(self: Tracer, min: Any = None, max: Any = None, out: Any = None, **options: Any) -> Array:
    return elementary.clip(self, min, max, out)


def _compress(self: Tracer, condition: Any, axis: int | None = None, out: Any = None) -> Array:
    return selection.compress(condition, self, axis, out)


def _view(self: Tracer, dtype: Any = None, type: Any = None) -> Array:
    for kind in (dtype, type):
        if isinstance(kind, builtins.type) and issubclass(kind, np.ndarray):
            raise TracerConversionError(
                f"a traced value was to become a {kind.__name__}, which holds plain numbers{at_line()}\n"
                "Compute with plain arrays, which func traces: np.where for masks, factors for units, @ for matrices."
            )
    if builtins.isinstance(dtype, (int, tuple)):
        raise TypeError(f"x.view takes a dtype, as NumPy's does; for a shape write x.reshape({dtype})")
    if dtype is not None and type is None and (target := np.dtype(dtype)) != self.dtype:
        if {target.kind, self.dtype.kind} == {"c", "f"} and np.finfo(target).dtype == np.finfo(self.dtype).dtype:
            return view_pairs(self, target)
        raise UnsupportedFunctionError(
            f"x.view({target}) of a traced {self.dtype} array would read its bits as other numbers{at_line()}\n"
            f"x.astype({target}) converts the numbers; complex arrays and pairs of real numbers can view each other."
        )
    refuse("ndarray.view", type=(type, None))
    return self if is_scalar(self) else getitem(self, Ellipsis)


def _array_namespace(self: Tracer, *, api_version: str | None = None) -> Any:
    return sys.modules["func.numpy"]


class Flags:
    """How NumPy's array lies in memory, to read: `x.flags.c_contiguous`, `x.flags["C_CONTIGUOUS"]`."""

    __slots__ = ("_flags",)

    def __init__(self, flags: Any) -> None:
        object.__setattr__(self, "_flags", flags)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._flags, name)

    def __getitem__(self, name: str) -> Any:
        return self._flags[name]

    def __setattr__(self, name: str, value: Any) -> None:
        raise UnsupportedFunctionError(
            f"flags of a traced array cannot be set{at_line()}\nnp.broadcast_to(x, x.shape) is a read-only view of x."
        )

    __setitem__ = __setattr__

    def __repr__(self) -> str:
        return repr(self._flags)


def _flags(self: Tracer) -> Flags:
    try:
        caller = sys._getframe(1)
        file = caller.f_code.co_filename
        if is_library_file(file) and not any([part in file for part in _READ_FLAGS]):
            conversions.no_attribute("flags", self, caller)  # compilers of array code ask before they read the memory
        return Flags(memory.layout_of(self).flags)
    except Exception as error:
        hide_outside(error)
        raise


_READ_FLAGS = tuple([f"{os.sep}{name}{os.sep}" for name in ("func", "interpreters", "numpy", "scipy")])
"""Whose code may ask how a traced array lies in memory, beside the user's."""


def _device(self: Tracer) -> Any:
    return getattr(innermost(self), "device", "cpu")


def _to_device(self: Tracer, device: Any, /, *, stream: Any = None) -> Array:
    if stream is not None or device != _device(self):
        raise ValueError(f"a traced array is on the device {_device(self)!r} and cannot move to {device!r}{at_line()}")
    return self


def _public_attributes(self: Tracer) -> list[str]:
    """What completion shows: the attributes that there are, without those that only say what to write instead."""
    table = {name: value for kind in reversed(Tracer.__mro__) for name, value in vars(kind).items()}
    return [
        name
        for name, value in table.items()
        if type(value) is not conversions.MissingAttribute and (name[0] != "_" or name.startswith("__"))
    ]


_BY_NAME: dict[Any, str] = {
    reductions: "argmax argmin max min prod ptp sum",
    cumulative: "cumprod cumsum",
    statistics: "mean std var",
    shaping: "ravel squeeze swapaxes",
    selection: "choose diagonal take",
    sizes: "nonzero",
    sorting: "argpartition argsort searchsorted",
    joining: "repeat",
    elementary: "round",
    products: "dot trace",
}
"""Functions that are methods as they stand, by module."""


def install() -> None:
    """Set the interface on the Tracer class; called once, when func is imported."""
    table: dict[str, Any] = {
        **conversions.missing_attributes(),
        **operator_table(),
        **{name: getattr(module, name) for module, names in _BY_NAME.items() for name in names.split()},
        "__dir__": _public_attributes,
        "any": seen_in_solvers(reductions.any),
        "all": seen_in_solvers(reductions.all),
        "__array_ufunc__": protocol.ufunc_protocol,
        "__array_function__": protocol.function_protocol,
        "__array__": conversions.no_array,
        "__array_priority__": 1000,
        "__pandas_priority__": property(conversions.pandas_priority),
        "__jax_array__": conversions.jax_array,
        "__array_namespace__": _array_namespace,
        "device": property(_device),
        "flags": property(_flags),
        "to_device": _to_device,
        "__bool__": conversions.to_bool,
        "__int__": conversions.to_int,
        "__index__": conversions.to_index,
        "__float__": conversions.to_float,
        "__complex__": conversions.to_complex,
        "item": conversions.item,
        "tolist": conversions.tolist,
        "shape": property(_shape, _set_shape),
        "dtype": property(_dtype),
        "ndim": property(_ndim),
        "size": property(_size),
        "itemsize": property(_itemsize),
        "nbytes": property(_nbytes),
        "T": property(shaping.transpose),
        "mT": property(shaping.matrix_transpose),
        "flat": property(flat.Flat, flat.set_flat),
        "at": property(flat.At),
        "base": property(base_of),
        "real": property(elementary.real, _set_real),
        "imag": property(elementary.imag, _set_imag),
        "__len__": _len,
        "__iter__": _iter,
        "__contains__": _contains,
        "__repr__": _repr,
        "__format__": _format,
        "copy": _copy,
        "astype": creation.as_type,
        "reshape": _reshape,
        "transpose": _transpose,
        "flatten": _flatten,
        "sort": _sort,
        "partition": _partition,
        "fill": _fill,
        "put": _put,
        "clip": _clip,
        "compress": _compress,
        "conj": elementary.conjugated,
        "conjugate": elementary.conjugated,
        "view": _view,
    }
    extend(table)


_WITHOUT_WRAPPER = frozenset({
    "__array_ufunc__", "__array_function__", "__array__", "__jax_array__", "__float__", "__pandas_priority__", "any",
    "all", "data", "dtype", "flags", "shape", *operator_table(),
})  # fmt: skip
"""Attributes that look at the frame of their caller, or are frequent in small programs: they hide frames themselves."""


def extend(attributes: dict[str, Any]) -> None:
    """Give traced arrays attributes whose errors show no engine frame; the imperative interface adds its own."""
    for name, value in attributes.items():
        guarded = value if name in _WITHOUT_WRAPPER else at_boundary(value)
        if type(value) is property:
            read = value.fget if name in _WITHOUT_WRAPPER else value.fget and at_boundary(value.fget)
            guarded = property(read, value.fset and at_boundary(value.fset))
        setattr(Tracer, name, guarded)


put_methods_at_boundary(Flags)
