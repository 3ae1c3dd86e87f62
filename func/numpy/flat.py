"""`x.flat` and `x.at[i]`: the elements in C order, and indexed updates that return a new array."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from func.host.patching import holds_tracer
from func.interpreters.core import CARRIERS, EVALUATE, Array, Tracer, operand, shape_of
from func.interpreters.core.errors import UnsupportedFunctionError
from func.interpreters.host.public_functions import put_methods_at_boundary
from func.interpreters.host.source import at_line
from func.numpy.argument_checks import count
from func.numpy.creation import copy
from func.numpy.indexing import element_value, fit_value, is_integer, write
from func.numpy.memory import is_scalar
from func.numpy.shaping import ravel, reshape
from func.numpy.ufunc_methods import at as ufunc_at


class Flat:
    """The value of `x.flat`: an iterator over the elements; reads return copies, writes change x."""

    __slots__ = ("base", "index")

    def __init__(self, base: Any) -> None:
        self.base = base
        self.index = 0
        """The number of elements that the iterator has yielded."""

    @property
    def coords(self) -> tuple[int, ...]:
        """The index in x of the next element."""
        places = []
        rest = self.index
        for length in self.base.shape[:0:-1]:
            rest, place = divmod(rest, length)
            places.append(place)
        return (rest, *reversed(places)) if self.base.shape else ()

    def __next__(self) -> Any:
        if self.index >= len(self):
            raise StopIteration
        element = self.base[self.coords]
        self.index += 1
        return element

    def __len__(self) -> int:
        return int(self.base.size)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __getitem__(self, index: Any) -> Any:
        elements = ravel(self.base)[_single_index(index)]
        return copy(elements) if shape_of(elements) else elements

    def __setitem__(self, index: Any, value: Any) -> None:
        if type(index) is tuple and not index:
            raise IndexError("x.flat[()] is read-only; write x.flat = value")
        flat: Any = copy(ravel(self.base))
        index = _single_index(index)
        is_element = is_integer(index)
        if is_element:
            flat[index]  # like NumPy, report a missing place first
            try:
                value = fit_value(element_value(value, flat.dtype), (), flat)
            except UnsupportedFunctionError:
                raise
            except (TypeError, ValueError, OverflowError) as error:
                raise ValueError(f"Error setting single item of array: {error}") from None
        if type(self.base) is Tracer and is_scalar(self.base):
            return  # as in NumPy, where a scalar has a copy behind its `flat`
        value = operand(value)
        if not is_element and count(shape_of(value)) == 0:
            return
        region = flat[index]
        writable: Any = Tracer(EVALUATE, flat, None) if type(value) is Tracer and type(flat) is not Tracer else flat
        writable[index] = _cycled(value, count(shape_of(region)), shape_of(region))
        base: Any = self.base
        base[...] = reshape(writable, base.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(ravel(self.base), dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return getattr(ufunc, method)(*_elements(inputs), **kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return function(*_elements(args), **kwargs)

    def copy(self) -> Array:
        """The elements as a new one-dimensional array."""
        return copy(ravel(self.base))


def _elements(args: Any) -> Any:
    """Arguments of a NumPy function, in which an array of the elements stands for `x.flat`."""
    if type(args) in (list, tuple):
        return type(args)([_elements(item) for item in args])
    return args.copy() if type(args) is Flat else args


def _single_index(index: Any) -> Any:
    """A single index of `x.flat`: an integer, a slice, an ellipsis, integers or a mask of its length."""
    if isinstance(index, tuple):
        if len(index) > 1:
            raise IndexError(
                f"too many indices for flat iterator: flat iterator is 1-dimensional, but {len(index)} were indexed"
            )
        index = index[0] if index else Ellipsis
    if index is None or isinstance(index, (bool, np.bool_)):
        raise IndexError(f"x.flat takes integers, slices, `...` and arrays of these, not {index}; index x.ravel()")
    return index


def _cycled(value: Array, size: int, shape: tuple[int, ...]) -> Array:
    """A value repeated or truncated to the number of elements to write, as NumPy does."""
    if shape_of(value) == ():
        return value
    value = ravel(value)
    length = shape_of(value)[0]
    return reshape(value if length == size else value[np.arange(size) % length], shape)


CARRIERS[Flat] = Flat.copy
"""np.array(x.flat) and the other functions take the elements, as a new array."""


def _comparison(name: str) -> Callable[[Flat, Any], Array]:
    return lambda self, other: getattr(self.copy(), name)(other)


for _name in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"):
    setattr(Flat, _name, _comparison(_name))


def set_flat(x: Tracer, value: Any) -> None:
    """x.flat = value."""
    Flat(x)[...] = value


class At:
    """The value of `x.at`; indexing it gives an `AtIndex`."""

    __slots__ = ("base",)

    def __init__(self, base: Array) -> None:
        self.base = base

    def __getitem__(self, index: Any) -> AtIndex:
        return AtIndex(self.base, index)

    def __repr__(self) -> str:
        return f"At({self.base!r})"


def _update(ufunc: Any, doc: str) -> Callable[..., Array]:
    def update(self: AtIndex, values: Any, **options: Any) -> Array:
        _check_mode_options(options)
        values = operand(values)
        traced = type(self.base) is Tracer or type(values) is Tracer or holds_tracer(_as_tuple(self.index))
        if not traced:
            out = np.array(self.base)
            ufunc.at(out, self.index, np.asarray(values).astype(out.dtype))
            return out
        updated = copy(self.base) if type(self.base) is Tracer else Tracer(EVALUATE, self.base, None)
        ufunc_at(ufunc, updated, self.index, fit_value(values, shape_of(values), updated))
        return updated

    update.__doc__ = doc
    return update


class AtIndex:
    """`x.at[i]`: updates at an index that return a new array and do not change x.

    `add`, `multiply`, `min` and `max` apply each occurrence of a repeated index; `set` keeps the last value. An index
    out of range raises IndexError, as in NumPy; the other modes of JAX raise UnsupportedFunctionError.
    """

    __slots__ = ("base", "index")

    def __init__(self, base: Array, index: Any) -> None:
        self.base = base
        self.index = index

    def set(self, values: Any, **options: Any) -> Array:
        """x with values at the index."""
        _check_mode_options(options)
        return write(self.base, self.index, operand(values))

    def get(self, **options: Any) -> Array:
        """x[index]."""
        _check_mode_options(options)
        return copy(self.base)[self.index]

    def apply(self, function: Callable[[Array], Array], **options: Any) -> Array:
        """x with function(x[index]) at the index."""
        _check_mode_options(options)
        return write(self.base, self.index, function(self.get()))

    add = _update(np.add, "x with values added at the index.")
    subtract = _update(np.subtract, "x with values subtracted at the index.")
    multiply = mul = _update(np.multiply, "x multiplied by values at the index.")
    divide = _update(np.divide, "x divided by values at the index.")
    power = _update(np.power, "x raised to powers at the index.")
    min = _update(np.minimum, "x with the smaller of x and values at the index.")
    max = _update(np.maximum, "x with the larger of x and values at the index.")


def _as_tuple(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)


_DEFAULTS = {
    "mode": (None, "promise_in_bounds"),
    "indices_are_sorted": (False, True),
    "unique_indices": (False, True),
    "fill_value": (None,),
    "wrap_negative_indices": (True,),
    "out_sharding": (None,),
}


def _check_mode_options(options: dict[str, Any]) -> None:
    for name, value in options.items():
        if name not in _DEFAULTS:
            raise TypeError(f"x.at[...] got an unexpected keyword argument {name!r}")
        if value not in _DEFAULTS[name]:
            raise UnsupportedFunctionError(
                f"x.at[...] does not support {name}={value!r}{at_line()}\n"
                "An index out of range raises IndexError; np.clip the index, or select with np.where."
            )


def at(x: Array) -> At:
    """`x.at` for any array, traced or plain: `func.numpy.at(x)[i].set(v)` is x with v at i.

    Example:
        >>> import numpy as np, func
        >>> func.numpy.at(np.zeros(3))[[0, 0, 2]].add(1.0)
        array([2., 0., 1.])
    """
    return At(operand(x))


for _kind in (Flat, At, AtIndex):
    put_methods_at_boundary(_kind)


flat, at_index = property(Flat, set_flat), property(At)
"""x.flat and x.at."""
