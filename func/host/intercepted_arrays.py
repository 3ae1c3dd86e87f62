"""Arrays that can hold traced values: results of NumPy's functions inside `func.intercept()`.

An `Intercepted` is a plain array until the first write of a traced value. From then on its owner has a traced array,
which every view of the memory reads and writes. The memory itself is concealed: compiled code sees a dtype that it
cannot compute with. Arrays without traced values become plain arrays when the transform ends.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from types import ModuleType
from typing import Any, NoReturn

import numpy as np

from func.backends.array_helpers.strides import axes_by_stride
from func.host import patching
from func.interpreters.core import CARRIERS, EVALUATE, Array, Tracer
from func.interpreters.core.errors import UnsupportedFunctionError
from func.interpreters.core.scopes import Entry, live_entries, live_entry
from func.interpreters.host.source import at_line, is_engine_file
from func.numpy import creation
from func.numpy.flat import Flat
from func.numpy.inplace import getitem, setitem, view_memory
from func.numpy.memory import with_memory

Modules = str | ModuleType | Iterable[str | ModuleType]
"""Modules, by name or themselves: one or several."""

_WRITERS = frozenset({np.copyto, np.put, np.place, np.putmask, np.put_along_axis, np.fill_diagonal})
"""Functions that write their first argument."""
_STRIDED = frozenset({np.lib.stride_tricks.sliding_window_view})
"""Functions that make views of bare addresses."""


class Intercepted(np.ndarray):
    """An array whose memory may turn into a traced value."""

    traced: Tracer | None = None
    """The memory of an owner, an array in C order with its axes from the slowest to the fastest."""
    concealed: np.dtype[Any] | None = None
    """The dtype of the values, once the memory has another one."""
    views: Views | None = None
    """The live views of an owner's memory."""

    def __array_finalize__(self, source: Any) -> None:
        if self.base is None:
            return
        owner = owner_of(self)
        if type(owner) is not Intercepted:
            return
        if owner.traced is not None:
            self.concealed = owner.concealed if type(source) is not Intercepted else source.concealed
        else:
            if owner.views is None:
                owner.views = Views()
            owner.views.add(self)

    def __func_holds_traced__(self) -> bool:
        return owner_of(self).traced is not None

    @property
    def dtype(self) -> Any:
        """The dtype of the values."""
        return self.concealed or _dtype_of(self)

    @dtype.setter
    def dtype(self, dtype: Any) -> None:
        if self.concealed is not None:
            _raise_concealed(self, "dtype")
        _set_dtype(self, np.dtype(dtype))

    def __getitem__(self, index: Any) -> Any:
        index = resolved(index)
        if not holds_traced(index):
            part = super().__getitem__(index)
            if _shares(part, self):
                return part
            if owner_of(self).traced is None:
                return adopted(plain(part))
        value = present(self)
        return creation.asarray(value)[index] if type(value) is not Tracer else getitem(value, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        resolved_index, resolved_value = resolved(index), resolved(value)
        if owner_of(self).traced is None and not holds_traced(resolved_value) and not holds_traced(resolved_index):
            super().__setitem__(resolved_index, resolved_value)
            return
        promote(self)
        change(self, lambda traced: setitem(traced, resolved(index), resolved(value)))

    def __iter__(self) -> Iterator[Any]:
        if self.ndim == 0:
            raise TypeError("iteration over a 0-d array")
        return iter([self[i] for i in range(len(self))])

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method == "at":
            return _written(self, inputs[0], lambda target, *rest: ufunc.at(target, *rest), inputs[1:], {})
        call = ufunc if method == "__call__" else getattr(ufunc, method)
        outs = kwargs.pop("out", (None,))
        if len(outs) == 1 and outs[0] is not None:
            return _written(
                self, outs[0], lambda target, *rest, **options: call(*rest, out=target, **options), inputs, kwargs
            )
        if any([out is not None for out in outs]):
            raise UnsupportedFunctionError(f"np.{ufunc.__name__} into several arrays of func.intercept(){at_line()}")
        return adopted(call(*resolved(inputs), **resolved(kwargs)))

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function in _WRITERS:
            return _written(
                self, args[0], lambda target, *rest, **options: function(target, *rest, **options), args[1:], kwargs
            )
        if function in _STRIDED and args and type(args[0]) is Intercepted:
            promote(args[0])  # later writes must be visible
        if kwargs.get("out") is not None:
            options = dict(kwargs)
            target = options.pop("out")
            return _written(self, target, lambda out, *rest, **more: function(*rest, out=out, **more), args, options)
        return adopted(function(*resolved(args), **resolved(kwargs)), (args, kwargs))

    @property
    def flat(self) -> Any:
        """The elements in C order, readable and writable."""
        return Flat(self)

    @flat.setter
    def flat(self, value: Any) -> None:
        Flat(self)[...] = value

    def __repr__(self) -> str:
        value = present(self)
        return repr(value) if type(value) is Tracer else super().__repr__()

    __str__ = __repr__

    def __reduce__(self) -> Any:
        return np.array(untraced(self, "pickle")).__reduce__()

    def __bytes__(self) -> bytes:
        return np.array(untraced(self, "bytes")).tobytes()

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy()

    @property
    def real(self) -> Any:
        """The real part: a view."""
        return _real_part(self) if self.concealed is None else creation.asarray(present(self)).real

    @real.setter
    def real(self, value: Any) -> None:
        self[...] = resolved(value) + 1j * self.imag if self.dtype.kind == "c" else value

    @property
    def imag(self) -> Any:
        """The imaginary part: a view."""
        return _imaginary_part(self) if self.concealed is None else creation.asarray(present(self)).imag

    @imag.setter
    def imag(self, value: Any) -> None:
        self[...] = self.real + 1j * resolved(value)


_dtype_of: Any = np.ndarray.dtype.__get__
_set_dtype: Any = getattr(np.ndarray, "_set_dtype", None) or np.ndarray.dtype.__set__  # type: ignore[attr-defined]
_real_part: Any = np.ndarray.real.__get__
_imaginary_part: Any = np.ndarray.imag.__get__
_interface_of: Any = np.ndarray.__array_interface__.__get__


class Views:
    """The live arrays of a list."""

    __slots__ = ("_limit", "_references", "concealed")

    def __init__(self) -> None:
        self.concealed = False
        """Whether one of them has contained a traced value."""
        self._references: list[weakref.ref[Any]] = []
        self._limit = 64

    def add(self, array: Any) -> None:
        self._references.append(weakref.ref(array))
        if len(self._references) > self._limit:
            self._references = [reference for reference in self._references if reference() is not None]
            self._limit = 64 + 2 * len(self._references)

    def __iter__(self) -> Iterator[Any]:
        for reference in self._references:
            array = reference()
            if array is not None:
                yield array


class RetiredArray(np.ndarray):
    """An array of func.intercept() after the transform: a plain array except for its type, which cannot change."""

    def __func_holds_traced__(self) -> bool:
        return False

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return array[()] if return_scalar else np.ndarray.view(array, np.ndarray)

    def __getitem__(self, index: Any) -> Any:
        return np.ndarray.view(self, np.ndarray)[index]

    def __reduce__(self) -> Any:
        return np.array(self).__reduce__()

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # pyright: ignore[reportIncompatibleMethodOverride]
        return np.ndarray


def retire_arrays(arrays: Iterable[Any]) -> None:
    """End the transform: arrays that outlive it without traced values become plain arrays."""
    for array in arrays:
        if type(array) is RetiredArray or array.concealed is not None:
            continue
        for view in (array, *(array.views or ())):
            if type(view) is not RetiredArray:  # an array may be listed with several others
                view.__dict__.clear()
                object.__setattr__(view, "__class__", RetiredArray)


def owner_of(array: np.ndarray[Any, Any]) -> Any:
    """The array that owns the memory of a view."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _shares(part: Any, whole: Intercepted) -> bool:
    return isinstance(part, np.ndarray) and owner_of(part) is owner_of(whole)


def plain(value: Any) -> Any:
    """The raw memory as an ndarray."""
    return np.ndarray.view(value, np.ndarray) if type(value) is Intercepted else value


def present(array: Any) -> Array:
    """The current value of an array: its memory, or NumPy's view of its owner's traced memory."""
    owner = owner_of(array)
    traced = getattr(owner, "traced", None)
    if traced is None:
        return plain(array)
    if array is owner and array.flags.c_contiguous:
        return traced
    if array.dtype != owner.dtype:
        raise UnsupportedFunctionError(
            f"an array of func.intercept() that holds traced values is viewed as {array.dtype}{at_line()}\n"
            "Use .astype, or np.real and np.imag, instead of a view of other dtype."
        )
    itemsize = owner.itemsize
    start = (_interface_of(array)["data"][0] - _interface_of(owner)["data"][0]) // itemsize if array.size else 0
    return view_memory(traced, start, array.shape, tuple([stride // itemsize for stride in array.strides]))


def promote(array: Intercepted) -> None:
    """Give the owner of the memory a traced array. (Resolve arguments after this.)"""
    owner = owner_of(array)
    if owner.traced is None:
        memory = plain(owner).transpose(axes_by_stride(owner.strides))
        owner.traced = with_memory(Tracer(EVALUATE, patching.original("array")(memory, order="C"), None))
        _conceal(owner)


def _conceal(owner: Any) -> None:
    """Keep compiled code from computing with memory without the values: it raises for an unknown dtype.

    Earlier plain ndarrays on this memory read NaN or the least integer.
    """
    kind = owner.dtype.kind
    if kind in "fciu":
        plain(owner)[...] = np.nan if kind in "fc" else np.iinfo(owner.dtype).min
    for array in (owner, *(owner.views or ())):
        array.concealed = array.dtype
        _set_dtype(array, np.dtype((np.void, array.itemsize)))
    owner.views = None
    if (new_arrays := _transform_views()) is not None:
        new_arrays.concealed = True


def _transform_views() -> Views | None:
    """The arrays made inside the outermost running transform."""
    entries = live_entries()
    if not entries:
        return None
    if entries[-1].new_arrays is None:
        entries[-1].new_arrays = Views()
    new_arrays: Views = entries[-1].new_arrays
    return new_arrays


def untraced(array: Any, what: str) -> Any:
    """The numbers of an array without traced values, for a use that would lose their derivative."""
    value = present(array)
    if type(value) is Tracer:
        _raise_concealed(array, what)
    return value


def _raise_concealed(array: Any, name: str) -> NoReturn:
    """Raise for a request of the memory of an array with traced values."""
    raise UnsupportedFunctionError(
        f"`{name}` is about the memory of an array, and one of func.intercept() that holds traced values has none"
        f"{at_line()}\nUse NumPy functions on it, which make new arrays; func.stop_gradient(x) gives its numbers alone."
    )


def change(array: Intercepted, write: Callable[[Tracer], Any]) -> None:
    """Let `write` write to the traced value of a promoted array."""
    if not array.flags.writeable:
        raise ValueError("assignment destination is read-only")
    write(present(array))


def resolved(value: Any) -> Any:
    """Arguments with the values of intercepted arrays in their place, in lists, tuples and dicts too."""
    kind = type(value)
    if kind is Intercepted:
        return present(value)
    if kind is list or kind is tuple:
        return kind([resolved(item) for item in value])
    if kind is dict:
        return {key: resolved(item) for key, item in value.items()}
    return value


def holds_traced(value: Any) -> bool:
    """True for traced values and nested lists with one inside."""
    if type(value) in (list, tuple):
        return any([holds_traced(item) for item in value])
    return type(value) is Tracer


def adopted(value: Any, arguments: Any = ()) -> Any:
    """Results of intercepted arrays as intercepted arrays; views stay views, those of plain arguments plain."""
    if type(value) is np.ndarray and value.dtype.kind in "fciub":
        if not is_intercepting():
            return value
        owner = owner_of(value)
        if type(owner) is Intercepted:
            return value.view(Intercepted)
        if _is_owner_of_some(owner, arguments):
            return value
        out = np.ndarray.__new__(Intercepted, value.shape, value.dtype, strides=np.empty_like(value).strides)
        np.copyto(plain(out), value)
        if (new_arrays := _transform_views()) is not None:
            new_arrays.add(out)
        return out
    if type(value) in (list, tuple):
        return type(value)([adopted(item, arguments) for item in value])
    return value


def _is_owner_of_some(owner: Any, arguments: Any) -> bool:
    """Whether an array owns the memory of an argument, possibly in lists, tuples and dicts."""
    if isinstance(arguments, np.ndarray):
        return owner_of(arguments) is owner
    items = arguments.values() if type(arguments) is dict else arguments
    return type(arguments) in (list, tuple, dict) and any([_is_owner_of_some(owner, item) for item in items])


def _written(self: Intercepted, target: Any, call: Callable[..., Any], args: Any, options: Any) -> Any:
    """A call that writes into an array, which becomes traced if another argument is."""
    known, named = resolved(args), resolved(options)
    if type(target) is not Intercepted:
        return call(target, *known, **named)
    if owner_of(target).traced is None and not holds_traced(list(known)) and not holds_traced(list(named.values())):
        out = call(plain(target), *known, **named)
        return target if out is not None else None
    promote(target)
    seen: list[Any] = []
    change(target, lambda traced: seen.append(call(traced, *resolved(args), **resolved(options))))
    return target if seen[0] is not None else None


_READING = (
    "all any argmax argmin argpartition argsort astype choose clip compress conj conjugate copy cumprod cumsum "
    "diagonal dot flatten item max mean min nonzero prod repeat round searchsorted std sum take tolist trace var "
    "__bool__ __complex__ __contains__ __float__ __format__ __index__ __int__"
)
_WRITING = "fill partition put sort"
_VIEWING = "ravel reshape squeeze swapaxes transpose view"


def _reading(name: str) -> Callable[..., Any]:
    def method(self: Intercepted, *args: Any, **kwargs: Any) -> Any:
        value, args, kwargs = present(self), resolved(args), resolved(kwargs)
        if type(value) is not Tracer and holds_traced(list(args)):
            return getattr(np, name)(value, *args, **kwargs)
        return adopted(getattr(value, name)(*args, **kwargs))

    return method


def _writing(name: str) -> Callable[..., Any]:
    def method(self: Intercepted, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = resolved(args), resolved(kwargs)
        if owner_of(self).traced is None and not holds_traced(list(args)):
            return getattr(plain(self), name)(*args, **kwargs)
        promote(self)
        return change(self, lambda traced: getattr(traced, name)(*args, **kwargs))

    return method


def _viewing(name: str) -> Callable[..., Any]:
    def method(self: Intercepted, *args: Any, **kwargs: Any) -> Any:
        out = getattr(np.ndarray, name)(self, *args, **kwargs)
        if _shares(out, self) or owner_of(self).traced is None:
            return out
        return getattr(present(self), name)(*args, **kwargs)

    return method


_UNSUPPORTED = (
    "__array__ __dlpack__ __setstate__ byteswap dump dumps getfield resize setfield tobytes tofile to_device "
    "__buffer__ newbyteorder tostring"
)
_UNSUPPORTED_PROPERTIES = "__array_interface__ __array_struct__ ctypes data"


def _unsupported(name: str) -> Callable[..., Any]:
    def method(self: Intercepted, *args: Any, **kwargs: Any) -> Any:
        if self.concealed is not None:
            _raise_concealed(self, name)
        return getattr(np.ndarray, name)(self, *args, **kwargs)

    return method


def _unsupported_property(name: str) -> property:
    inherited = vars(np.ndarray)[name]

    def read(self: Intercepted) -> Any:
        if self.concealed is not None:
            _raise_concealed(self, name)
        return inherited.__get__(self)

    return property(read)


for _names, _kind in (
    (_READING, _reading),
    (_WRITING, _writing),
    (_VIEWING, _viewing),
    (_UNSUPPORTED, _unsupported),
    (_UNSUPPORTED_PROPERTIES, _unsupported_property),
):
    for _name in _names.split():
        if hasattr(np.ndarray, _name):
            setattr(Intercepted, _name, _kind(_name))
CARRIERS[Intercepted] = present
CARRIERS[RetiredArray] = lambda array: np.ndarray.view(array, np.ndarray)


INTERCEPTING: ContextVar[Entry | None] = ContextVar("func_intercept", default=None)
"""The block of `func.intercept()` that is open."""


def is_intercepting() -> bool:
    """Whether NumPy's creation functions make arrays that take traced values here."""
    return patching.is_tracing() and live_entry(INTERCEPTING) is not None


def adopt_array(array: Any, source: Any) -> Any:
    """np.array of a plain value; a view of other memory stays one, as in np.asarray."""
    if array is source or type(array) is not np.ndarray or is_engine_file(patching.calling_frame(3).f_code.co_filename):
        return array
    if type(owner_of(array)) is Intercepted:
        return source if _is_same(array, source) else array.view(Intercepted)
    return array if _is_borrowed(array, source) else adopted(array)


def _is_same(array: np.ndarray[Any, Any], source: Any) -> bool:
    """Whether NumPy would return the array itself if it were a plain one."""
    if type(source) is not Intercepted:
        return False
    return (array.shape, array.dtype, array.strides) == (source.shape, source.dtype, source.strides)


def _is_borrowed(array: np.ndarray[Any, Any], source: Any) -> bool:
    """Whether an array shares the memory of its source, so that a write to it must be visible there."""
    owner = owner_of(array)
    if isinstance(source, np.ndarray):
        return owner is owner_of(source)
    return not owner.flags.owndata or (hasattr(source, "__array__") and not isinstance(source, np.generic))
