"""Array creation: from nested sequences, from other arrays, and writable constants."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func.backends import namespace_of
from func.backends.array_helpers.strides import joined_order, order_letter
from func.host import patching
from func.interpreters import core
from func.interpreters.core import CARRIERS, Array, Tracer
from func.interpreters.core.errors import TracerConversionError
from func.interpreters.core.wiring import WIRING
from func.interpreters.host.source import at_line
from func.interpreters.primitives.structural import shapes, slicing
from func.numpy import argument_checks as checks
from func.numpy import memory
from func.numpy.inplace import getitem, view_reshape
from func.numpy.protocol import F, implements, implements_creation, member


def _check_device(device: Any) -> None:
    if device not in (None, "cpu"):
        raise ValueError(f'Device not understood. Only "cpu" is allowed, but received: {device}')


def _copy_mode(copy: Any) -> Any:
    """copy= as True, False or None (if needed); NumPy's functions may pass members of its private _CopyMode."""
    return _COPY_MODES.get(copy, copy) if isinstance(copy, np._CopyMode) else copy


_COPY_MODES: dict[Any, Any] = {np._CopyMode.ALWAYS: True, np._CopyMode.NEVER: False, np._CopyMode.IF_NEEDED: None}


def stack_nested(value: Any) -> Array:
    """A nested list or tuple, with traced or plain values, as one array."""
    if type(value) is Tracer:
        return value
    if type(value) in CARRIERS:
        return CARRIERS[type(value)](value)
    if isinstance(value, (list, tuple)) and patching.holds_tracer(value):
        return stacked([stack_nested(item) for item in value])
    return patching.original("asarray")(value)


def array_from_sequence(value: Any) -> Array:
    """A nested list or tuple as an operand: an array of numbers, which may be traced."""
    out = stack_nested(value)
    return array_of_objects(out) if type(out) is np.ndarray and out.dtype.kind == "O" else out


def stacked(arrays: Sequence[Any], axis: int = 0, dtype: Any = None) -> Array:
    """Arrays of one shape joined along a new axis; Python numbers become arrays of their default dtype."""
    adapts = all([checks.weak_kind(x) for x in arrays])
    parts = checks.common(arrays if adapts else [checks.arrayed(x) if checks.weak_kind(x) else x for x in arrays])
    if not parts:
        raise ValueError("need at least one array to stack")
    (shape, *others) = {core.shape_of(part) for part in parts}
    if others:
        raise ValueError("all input arrays must have the same shape")
    place = checks.normalize_axis(axis, len(shape) + 1)
    longer = (*shape[:place], 1, *shape[place:])
    return join([checks.to_dtype(shapes.reshape(part, shape=longer), dtype) for part in parts], place)


def join(parts: Sequence[Array], axis: int) -> Array:
    """Arrays of one dtype joined along an axis."""
    joined = slicing.concatenate(*parts, axis=axis)
    if checks.rank_of(joined) < 2 or memory.is_abstract(joined) or memory.is_plain(joined):
        return joined
    return memory.with_order_of(joined, functools.partial(joined_order, axis=axis), parts)  # each element by itself


def array(
    object: Any,
    dtype: Any = None,
    *,
    copy: bool | None = True,
    order: str | None = "K",
    subok: bool = False,
    ndmin: int = 0,
    ndmax: int | None = None,
    like: Any = None,
) -> Array:
    """An array from a nested sequence, as numpy.array; traced values inside stay traced."""
    order = order_letter(order)
    out, copy = stack_nested(object), _copy_mode(copy)
    if ndmax is not None and isinstance(object, (list, tuple)) and checks.rank_of(out) > ndmax:
        raise ValueError(
            f"setting an array element with a sequence: ndmax={ndmax}, and the sequences make an array of "
            f"{checks.rank_of(out)} axes; one of fewer axes would hold objects"
        )
    if dtype is not None and core.dtype_of(out).kind == "c":
        _check_real(object, np.dtype(dtype))
    if type(out) is Tracer:
        if isinstance(object, (list, tuple)):
            if copy is False:
                raise ValueError("Unable to avoid copy while creating an array as requested.")
            out = memory.with_memory(memory.in_order(checks.to_dtype(out, dtype), "F" if order == "F" else "C"))
        else:
            out = _as_array(out, dtype, copy, order)
    elif hasattr(out, "get") and type(out) is not np.ndarray:
        out = checks.to_dtype(namespace_of((out,)).array(out, dtype, copy=bool(copy)), dtype)
    else:
        has_array = out is object or type(object) in CARRIERS
        out = checks.to_dtype(
            patching.original("array")(out, dtype, copy=copy if has_array else None, order=order), dtype
        )
    if checks.rank_of(out) < ndmin:
        out = view_reshape(out, (*[1] * (ndmin - checks.rank_of(out)), *core.shape_of(out)))
    return like_array(out, like)


def _check_real(object: Any, dtype: np.dtype[Any]) -> None:
    """Raise, as NumPy, if a Python complex number would become real; NumPy's own numbers lose a part."""
    if dtype.kind not in "iuf":
        return
    if isinstance(object, (list, tuple)):
        for item in object:
            _check_real(item, dtype)
    elif checks.weak_kind(object) is complex:
        raise TypeError(f"a complex number cannot become one of {dtype}; take its real part first (.real)")


def _as_array(x: Tracer, dtype: Any, copy: bool | None, order: str) -> Array:
    """np.array of a traced array: a copy where NumPy makes one."""
    out: Array = checks.to_dtype(checks.as_array(checks.arrayed(x)), dtype)
    must_copy = out is not x or memory.is_scalar(x) or not memory.has_memory_order(x, order)
    if copy is False and must_copy:
        raise ValueError("Unable to avoid copy while creating an array as requested.")
    if type(out) is not Tracer or not (copy or must_copy):
        return out
    return memory.copied(out, order) if out is x else memory.with_memory(memory.in_order(out, order))


def _is_array(a: Any) -> bool:
    """Whether a value is an array that may become a traced one, and not an iterator over its elements."""
    return type(a) in CARRIERS and issubclass(type(a), np.ndarray)


def asarray(
    a: Any,
    dtype: Any = None,
    order: str | None = None,
    *,
    device: Any = None,
    copy: bool | None = None,
    like: Any = None,
) -> Array:
    """An array from a nested sequence, as numpy.asarray; an array is returned unchanged."""
    _check_device(device)
    copy = _copy_mode(copy)
    keeps_dtype = _is_array(a) and not copy and (dtype is None or np.dtype(dtype) == a.dtype)
    if keeps_dtype and memory.has_memory_order(a, order_letter(order)):
        return a
    return array(a, dtype, copy=copy, order=order, like=like)


def asanyarray(
    a: Any,
    dtype: Any = None,
    order: str | None = None,
    *,
    device: Any = None,
    copy: bool | None = None,
    like: Any = None,
) -> Array:
    """The same as `asarray`, as numpy.asanyarray: there are no traced subclasses of ndarray."""
    return asarray(a, dtype, order, device=device, copy=copy, like=like)


def ascontiguousarray(a: Any, dtype: Any = None, *, like: Any = None) -> Array:
    """An array in C order with at least one axis, as numpy.ascontiguousarray: the array itself if it is one."""
    return array(a, dtype, copy=None, order="C", ndmin=1, like=like)


def asfortranarray(a: Any, dtype: Any = None, *, like: Any = None) -> Array:
    """An array in Fortran order with at least one axis, as numpy.asfortranarray: the array itself if it is one."""
    return array(a, dtype, copy=None, order="F", ndmin=1, like=like)


def convert_traced(name: str, *args: Any, **kwargs: Any) -> Array:
    """Calls the function of this name in this module: the traced version of np.array, np.asarray and the like."""
    convert: Callable[..., Array] = globals()[name]
    return convert(*args, **kwargs)


def _check_numbers(items: list[Any]) -> None:
    """Raise for objects that NumPy's loops compute one by one, each in its own precision."""
    dtypes = [item.dtype for item in items if type(item) is Tracer]
    objects = [item for item in items if type(item) is not Tracer]
    is_narrow = any([dtype.kind in "fiu" and dtype not in (np.float64, np.int64) for dtype in dtypes])
    is_real = all([dtype.kind != "c" for dtype in dtypes])
    if objects and (is_narrow or any([_is_otherwise(item, is_real) for item in objects])):
        raise TracerConversionError(
            "an array of Python objects mixes traced values and numbers of another precision, which NumPy computes in "
            f"another way than arrays{at_line()}\nWrite np.array([...]) around the list."
        )


def _is_otherwise(number: Any, is_real: bool) -> bool:
    """Whether a number among objects computed in another precision, or became complex, unlike an array of reals."""
    kind = getattr(getattr(number, "dtype", None), "kind", "")
    return (kind in "fc" and kind != "" and number.dtype.itemsize < 8) or (is_real and isinstance(number, complex))


def array_of_objects(value: Any) -> Array:
    """NumPy's object array of traced numbers from a list, as one array of numbers."""
    items = value.ravel().tolist()
    if any([type(item) is Tracer for item in items]):
        if not value.shape:
            return checks.as_array(checks.arrayed(items[0]))
        _check_numbers(items)
        return shapes.reshape(stacked([core.operand(item) for item in items]), shape=value.shape)
    if not all([core.is_machine_number(item) for item in items]):
        core.raise_unsupported_array(value)
    if items and all([isinstance(item, np.inexact) for item in items]):
        return value.astype(np.result_type(*items))
    kind = complex if any([isinstance(item, (complex, np.complexfloating)) for item in items]) else float
    return value.astype(kind)


@implements(np.full_like)
def full_like(
    a: Array,
    fill_value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Array:
    """A constant like a, as numpy.full_like; takes traced writes if a is traced."""
    order = order_letter(order)
    _check_device(device)
    a, fill_value = core.operand(a), core.operand(fill_value)
    target_shape = core.shape_of(a) if shape is None else checks.as_shape(shape)
    dtype = core.dtype_of(a) if dtype is None else np.dtype(dtype)
    if type(fill_value) is Tracer:
        filled = shapes.broadcast(checks.to_dtype(fill_value, dtype), shape=target_shape)
        return memory.with_memory(_placed_like(filled, a, order))
    bottom = core.innermost(a)
    if type(fill_value) in (float, complex):
        fill_value = np.asarray(fill_value).astype(dtype)[()]
    if core.shape_of(fill_value) == ():
        filled = shapes.full_like(0.0 if bottom is None else bottom, fill_value, target_shape, dtype)
    else:
        filled = namespace_of((bottom,)).full(target_shape, fill_value, dtype)
    if type(a) is not Tracer:
        return filled
    tracer = WIRING.mark_tensor(filled)
    return memory.with_memory(_placed_like(tracer, a, order))


def _placed_like(x: Array, a: Array, order: str) -> Array:
    """A new array in a NumPy order; A and K are those of another array."""
    if order in ("A", "K") and checks.rank_of(x) == checks.rank_of(a):
        return memory.in_order_of(x, a) if order == "K" else memory.in_order(x, memory.fortran_or_c(a))
    return memory.in_order(x, "F" if order == "F" else "C")


def _constant_like(original: F, value: int, what: str) -> F:
    written = "they take traced writes if a is traced"

    @member(original, f"{what} of a's shape and dtype, as numpy.{original.__name__}; {written}.")
    def constant_like(
        a: Array, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
    ) -> Array:
        return full_like(a, value, dtype, order, subok, shape, device=device)

    return constant_like


zeros_like = _constant_like(np.zeros_like, 0, "Zeros")
ones_like = _constant_like(np.ones_like, 1, "Ones")


@implements(np.empty_like)
def empty_like(
    prototype: Array, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> Array:
    """Zeros of a's shape and dtype, as numpy.empty_like; takes traced writes if a is traced."""
    return full_like(prototype, 0, dtype, order, subok, shape, device=device)


def like_array(array: Array, like: Any) -> Array:
    """An array on the backend of `like`; takes traced writes if `like` is traced."""
    if like is None or type(array) is Tracer:
        return array
    bottom = core.innermost(like) if type(like) is Tracer else like
    array = namespace_of((bottom,)).asarray(array)
    return memory.with_memory(WIRING.mark_tensor(array)) if type(like) is Tracer else array


@implements_creation(np.zeros)
def zeros(shape: Any, dtype: Any = float, order: Any = "C", *, device: Any = None, like: Any = None) -> Array:
    """Zeros, as numpy.zeros; takes traced writes if `like` is traced."""
    return like_array(np.zeros(shape, dtype, order, device=device), like)


@implements_creation(np.ones)
def ones(shape: Any, dtype: Any = None, order: Any = "C", *, device: Any = None, like: Any = None) -> Array:
    """Ones, as numpy.ones; takes traced writes if `like` is traced."""
    return like_array(np.ones(shape, dtype, order, device=device), like)


@implements_creation(np.empty)
def empty(shape: Any, dtype: Any = float, order: Any = "C", *, device: Any = None, like: Any = None) -> Array:
    """A writable array of zeros, as numpy.empty."""
    return zeros(shape, dtype, order, device=device, like=like)


@implements_creation(np.full)
def full(
    shape: Any, fill_value: Any, dtype: Any = None, order: Any = "C", *, device: Any = None, like: Any = None
) -> Array:
    """A constant array, as numpy.full; the constant may be traced, and its cotangent is the sum."""
    fill_value = core.operand(fill_value)
    if type(fill_value) is not Tracer:
        return like_array(np.full(shape, fill_value, dtype, order, device=device), like)
    order = order_letter(order, "C")
    if order in ("A", "K"):
        raise ValueError("only 'C' or 'F' order is permitted")
    filled, shape = checks.to_dtype(fill_value, dtype), checks.as_shape(shape)
    while checks.rank_of(filled) > len(shape) and core.shape_of(filled)[0] == 1:
        filled = shapes.reshape(filled, shape=core.shape_of(filled)[1:])
    return memory.with_memory(memory.in_order(shapes.broadcast(filled, shape=shape), order))


@implements_creation(np.eye)
def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: Any = float,
    order: Any = "C",
    *,
    device: Any = None,
    like: Any = None,
) -> Array:
    """Ones on diagonal k, zeros elsewhere, as numpy.eye."""
    return like_array(np.eye(N, M, k, dtype, order, device=device), like)


@implements_creation(np.identity)
def identity(n: int, dtype: Any = None, *, like: Any = None) -> Array:
    """The identity matrix, as numpy.identity."""
    return like_array(np.identity(n, dtype), like)


@implements_creation(np.arange)
def arange(
    start: Any, /, stop: Any = None, step: Any = 1, dtype: Any = None, *, device: Any = None, like: Any = None
) -> Array:
    """Evenly spaced numbers, as numpy.arange; uses the values of traced bounds, without a derivative."""
    first, last, gap = [_known_integer(x) for x in ((0, start, step) if stop is None else (start, stop, step))]
    numpy_arange: Any = np.arange
    return like_array(numpy_arange(first, last, gap, dtype, device=device), like)


def _known_integer(x: Any) -> Any:
    number: Any = int
    return number(x) if type(x) is Tracer else x


def as_type(
    x: Array, dtype: Any, order: str = "K", casting: Any = "unsafe", subok: bool = True, copy: bool = True
) -> Array:
    """x.astype(dtype); conversion from complex to real keeps the real part."""
    order = order_letter(order)
    x, dtype = core.operand(x), np.dtype(dtype)
    if not np.can_cast(core.dtype_of(x), dtype, casting):
        raise TypeError(
            f"Cannot cast array data from {core.dtype_of(x)!r} to {dtype!r} according to the rule '{casting}'"
        )
    if core.dtype_of(x) == dtype:
        return memory.copied(x, order) if _copy_mode(copy) or not memory.has_memory_order(x, order) else x
    converted = checks.to_dtype(x, dtype)
    converted = memory.in_order_of(converted, x) if order == "K" else memory.in_order(converted, order)
    return converted if type(x) is Tracer and memory.is_scalar(x) else memory.with_memory(converted)


@implements(np.astype)
def astype(x: Array, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Array:
    """x in another dtype, as numpy.astype; conversion from complex to real keeps the real part."""
    _check_device(device)
    return as_type(x, dtype, copy=bool(_copy_mode(copy)))


@implements(np.copy)
def copy(a: Array, order: str = "K", subok: bool = False) -> Array:
    """A copy, as numpy.copy; writing it does not change the original."""
    return memory.copied(checks.as_array(checks.arrayed(core.operand(a))), order_letter(order))


def cast_operand(x: Array, dtype: Any) -> Array:
    """An operand or a result of a ufunc in the dtype of its loop."""
    if hasattr(x, "dtype"):
        return checks.to_dtype(x, dtype)
    return np.asarray(x, dtype)[()] if type(x) is int else np.asarray(x).astype(dtype)[()]


def sequence(values: Any) -> Sequence[Any]:
    """The items of a sequence argument; a traced array is split along its first axis."""
    if type(values) is not Tracer:
        return values  # type: ignore[no-any-return]
    return [getitem(values, i) for i in range(core.shape_of(values)[0])]


def copy_method(self: Tracer, order: str = "C") -> Array:
    """x.copy."""
    return memory.copied_as_it_is(self, order_letter(order, "C"))
