"""The array interface of traced arrays: operators, protocols, methods and attributes, set on the Tracer class."""

from __future__ import annotations

import builtins
import importlib
import os
import sys
from collections.abc import Iterator
from types import MethodType
from typing import Any

import numpy as np

from func.host import conversions
from func.host.bytecode import looks_up_by_name
from func.host.conversions import NoAttributeError
from func.interpreters.core import Array, Tracer, innermost, known_value, operand, shape_of
from func.interpreters.core.errors import LeakedTracerError, TracerConversionError, UnsupportedFunctionError
from func.interpreters.core.wiring import WIRING
from func.interpreters.host.public_functions import at_boundary, put_methods_at_boundary
from func.interpreters.host.source import at_line, is_library_file
from func.interpreters.host.swallowed_errors import hide_outside
from func.interpreters.primitives.elementwise import table as ops
from func.numpy import memory, protocol
from func.numpy.argument_checks import check_unsupported, count, to_host
from func.numpy.indexing import element_value
from func.numpy.inplace import base_of, getitem, setitem, view_pairs
from func.numpy.memory import is_scalar
from func.numpy.operators import operator_table


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


class _OfArrays:
    """`__len__` or `__iter__`, which numbers lack: by `hasattr(x, "__len__")` code tells them from arrays."""

    __slots__ = ("method",)

    def __init__(self, method: Any) -> None:
        self.method = at_boundary(method)

    def __get__(self, tracer: Tracer | None, owner: type | None = None) -> Any:
        if tracer is None:
            return self.method
        try:
            if not shape_of(tracer) and is_scalar(tracer) and looks_up_by_name(sys._getframe(1)):
                raise AttributeError(f"traced numbers have no {self.method.__name__.strip('_')}")
        except Exception as error:
            hide_outside(error)
            raise
        return MethodType(self.method, tracer)


def _contains(self: Tracer, value: Any) -> bool:
    return bool(np.any(ops.equal(self, operand(value))))


def _repr(self: Tracer) -> str:
    text: str = WIRING.tensor_repr(self, _traced_repr)
    return text


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


def _fill(self: Tracer, value: Any) -> None:
    if is_scalar(self):
        return  # as in NumPy, where a scalar fills a copy of itself
    setitem(self, Ellipsis, element_value(value, self.dtype))


def _view(self: Tracer, dtype: Any = None, type: Any = None, *sizes: Any) -> Array:
    for kind in (dtype, type):
        if isinstance(kind, builtins.type) and issubclass(kind, np.ndarray):
            raise TracerConversionError(
                f"a traced value was to become a {kind.__name__}, which stores plain numbers{at_line()}\n"
                "Compute with plain arrays, which func traces: np.where for masks, factors for units, @ for matrices."
            )
    if builtins.isinstance(dtype, (int, tuple)):
        shape = ", ".join([str(size) for size in (dtype, type, *sizes) if size is not None])
        raise TypeError(f"x.view takes a dtype, as NumPy's does; for a shape write x.reshape({shape})")
    if dtype is not None and type is None and (target := np.dtype(dtype)) != self.dtype:
        if {target.kind, self.dtype.kind} == {"c", "f"} and np.finfo(target).dtype == np.finfo(self.dtype).dtype:
            return view_pairs(self, target)
        raise UnsupportedFunctionError(
            f"x.view({target}) of a traced {self.dtype} array would read its bits as other numbers{at_line()}\n"
            f"x.astype({target}) converts the numbers; complex arrays and pairs of real numbers can view each other."
        )
    check_unsupported("ndarray.view", type=(type, None))
    return self if is_scalar(self) else getitem(self, Ellipsis)


def _array_namespace(self: Tracer, *, api_version: str | None = None) -> Any:
    return sys.modules["func.numpy"]


class Flags:
    """The read-only memory order of NumPy's array: `x.flags.c_contiguous`, `x.flags["C_CONTIGUOUS"]`."""

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
        return Flags(memory.flags_of(self))
    except Exception as error:
        hide_outside(error)
        raise


_READ_FLAGS = tuple([f"{os.sep}{name}{os.sep}" for name in ("func", "interpreters", "numpy", "scipy")])
"""The modules, besides users' code, that may ask for the layout of a traced array."""


def _device(self: Tracer) -> Any:
    return getattr(innermost(self), "device", "cpu")


def _to_device(self: Tracer, device: Any, /, *, stream: Any = None) -> Array:
    if stream is not None or device != _device(self):
        raise ValueError(f"a traced array is on the device {_device(self)!r} and cannot move to {device!r}{at_line()}")
    return self


def _public_attributes(self: Tracer) -> list[str]:
    """The names for completion: attributes that exist, without those that only suggest another."""
    table = {name: value for kind in reversed(Tracer.__mro__) for name, value in vars(kind).items()}
    return [
        name
        for name, value in table.items()
        if type(value) is not conversions.MissingAttribute and (name[0] != "_" or name.startswith("__"))
    ]


class LateAttribute:
    """An attribute of traced arrays: the first use imports its module and sets it on the class."""

    __slots__ = ("name", "own", "place")

    def __init__(self, name: str, place: str, own: str = "") -> None:
        self.name, self.place, self.own = name, place, own

    def _set(self) -> Any:
        """The attribute, from now on set on the class. A module without `own` sets it itself at import."""
        module = importlib.import_module(self.place)
        if self.own and vars(Tracer)[self.name] is self:
            extend({self.name: getattr(module, self.own)})
        return vars(Tracer)[self.name]

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        try:
            return self._set().__get__(instance, owner)
        except Exception as error:
            hide_outside(error)
            raise

    def __set__(self, instance: Any, value: Any) -> None:
        self._set()
        setattr(instance, self.name, value)


_BY_NAME = {
    "creation": "astype=as_type copy=copy_method",
    "cumulative": "cumprod cumsum",
    "elementary": "clip=clip_method imag=imaginary_part real=real_part round",
    "flat": "at=at_index flat",
    "joining": "repeat",
    "products": "dot trace",
    "reductions": "all=all_method any=any_method argmax argmin max min prod ptp sum",
    "selection": "choose compress=compress_method diagonal put=put_method take",
    "shaping": (
        "T=transposed flatten=flatten_method mT=matrix_transposed ravel reshape=reshape_method squeeze swapaxes "
        "transpose=transpose_method"
    ),
    "sizes": "nonzero",
    "sorting": "argpartition argsort partition=partition_method searchsorted sort=sort_method",
    "statistics": "mean std var",
    "ufuncs": "conj=conjugated conjugate=conjugated",
}
"""Attributes by the module that has them; `name=own` where they have another name there."""

OF_TENSORS = (
    "__copy__", "__deepcopy__", "__dlpack__", "__dlpack_device__", "__hash__", "__reduce_ex__", "_repr_html_",
    "_version", "backward", "clone", "data", "detach", "detach_", "grad", "grad_fn", "is_inference", "is_leaf",
    "numpy", "output_nr", "register_hook", "register_post_accumulate_grad_hook", "requires_grad", "requires_grad_",
    "retain_grad", "retains_grad",
)  # fmt: skip
"""The attributes that `func.autograd` sets."""


def _late_attributes() -> dict[str, LateAttribute]:
    """The attributes whose modules are imported at their first use."""
    table = {name: LateAttribute(name, "func.autograd") for name in OF_TENSORS}
    for module, names in _BY_NAME.items():
        for name, _, own in [entry.partition("=") for entry in names.split()]:
            table[name] = LateAttribute(name, f"func.numpy.{module}", own or name)
    return table


def install() -> None:
    """Set the interface on the Tracer class; called once, when func is imported."""
    table: dict[str, Any] = {
        **conversions.missing_attributes(),
        **operator_table(),
        **_late_attributes(),
        "__dir__": _public_attributes,
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
        "base": property(base_of),
        "__len__": _OfArrays(_len),
        "__iter__": _OfArrays(_iter),
        "__contains__": _contains,
        "__repr__": _repr,
        "__format__": _format,
        "fill": _fill,
        "view": _view,
    }
    extend(table)


_WITHOUT_WRAPPER = frozenset({
    "__array_ufunc__", "__array_function__", "__array__", "__jax_array__", "__float__", "__iter__", "__len__",
    "__pandas_priority__", "any", "all", "data", "dtype", "flags", "shape", *operator_table(),
})  # fmt: skip
"""Attributes that inspect the frame of their caller, or are frequent in small programs: they hide frames themselves."""


def extend(attributes: dict[str, Any]) -> None:
    """Give traced arrays attributes whose errors show no engine frame; the imperative interface adds its own."""
    for name, value in attributes.items():
        guarded = value if name in _WITHOUT_WRAPPER else at_boundary(value)
        if type(value) is property:
            read = value.fget if name in _WITHOUT_WRAPPER else value.fget and at_boundary(value.fget)
            guarded = property(read, value.fset and at_boundary(value.fset), value.fdel)
        setattr(Tracer, name, guarded)


put_methods_at_boundary(Flags)
