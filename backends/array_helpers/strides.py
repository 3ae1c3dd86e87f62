"""Memory layouts: the strides of NumPy's arrays, which determine views and copies.

A traced array has no memory. The array behind it may have another layout than NumPy's: it has batch axes, or does not
exist yet. So NumPy answers on a stand-in, an array with the right shape and strides but without memory. You can slice,
transpose and reshape it like any other; only its elements do not exist.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

Strides: TypeAlias = tuple[int, ...]
"""Bytes from one element to the next along each axis."""


class _Memory:
    """The source of a NumPy array: an address, and the layout of elements behind it."""

    def __init__(self, shape: tuple[int, ...], strides: Strides, dtype: np.dtype[Any]) -> None:
        self.__array_interface__ = {
            "data": (_ADDRESS, False),
            "shape": shape,
            "strides": strides,
            "typestr": dtype.str,
            "version": 3,
        }


_ELEMENT = np.zeros(2)
_ADDRESS = _ELEMENT.ctypes.data
_array_of = np.asarray
"""NumPy's own function: while a transform runs, `np.asarray` is a wrapper, which may copy."""


@functools.lru_cache(maxsize=4096)
def stand_in(shape: tuple[int, ...], strides: Strides, dtype: np.dtype[Any]) -> Any:
    """An array of this layout without readable elements, shared by all uses of the layout."""
    array = _array_of(_Memory(shape, strides, dtype))
    return array.view(dtype) if dtype.kind == "V" else array  # the interface has no word for bfloat16


def dense_strides(shape: Sequence[int], itemsize: int, order: Sequence[int] | None = None) -> Strides:
    """The strides of memory without gaps; `order` lists the axes from the slowest to the fastest (None: C order)."""
    strides = [0] * len(shape)
    step = itemsize
    for axis in reversed(range(len(shape)) if order is None else order):
        strides[axis] = step
        step *= max(shape[axis], 1)
    return tuple(strides)


def order_letter(order: Any, default: str = "K") -> str:
    """A memory order as one of the letters C, F, A and K: NumPy takes them in lower case as well, and None.

    Raises: ValueError and TypeError, as NumPy.
    """
    if order is None:
        return default
    if not isinstance(order, str):
        raise TypeError(f"order must be str, not {type(order).__name__}")
    letter = order.upper()
    if letter not in ("C", "F", "A", "K"):
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
    return letter


def axes_by_stride(strides: Strides) -> tuple[int, ...]:
    """The axes from the slowest to the fastest in memory, which is NumPy's order "K" for copies of one array."""
    return tuple(sorted(range(len(strides)), key=lambda axis: -abs(strides[axis])))


def copy_with_strides(array: Any, strides: Strides | None = None) -> Any:
    """A copy whose memory has the order, the directions and the joints of axes that these strides have: the array's.

    NumPy views and copies it as it would the original; the gaps in its memory are as narrow as they can be.
    """
    if strides is None and array.flags.forc:
        return array.copy("K")
    out = _memory_like(array, array.strides if strides is None else strides, array.shape, array.dtype)
    out[...] = array
    return out


def _memory_like(array: Any, strides: Strides, shape: Sequence[int], dtype: np.dtype[Any]) -> Any:
    """New memory of a shape, with the layout of an array with these strides, except that repeated elements are
    separate.
    """
    own, step, dense = [0] * array.ndim, dtype.itemsize, array.itemsize
    for axis in reversed(axes_by_stride(strides)):
        if array.shape[axis] > 1:
            step *= 2 if abs(strides[axis]) > dense else 1
            dense = abs(strides[axis]) * array.shape[axis]
        own[axis] = step
        step *= max(shape[axis], 1)
    out = np.ndarray(shape, dtype, np.empty(step // dtype.itemsize, dtype), 0, own)
    index: Any = (*[slice(None, None, -1 if stride < 0 else 1) for stride in strides], ...)
    return out[index]


def iterated_order(*arrays: Any, **params: Any) -> tuple[int, ...]:
    """The axes of a ufunc's new result from the slowest to the fastest, by NumPy's iterator over the operands."""
    shape = np.broadcast_shapes(*[array.shape for array in arrays])
    operands = [array for array in arrays if array.ndim]
    if len(shape) < 2 or 0 in shape:
        return tuple(range(len(shape)))
    flags: Any = [*[["readonly"]] * len(operands), ["writeonly", "allocate"]]
    return axes_by_stride(np.nditer((*operands, None), ["multi_index", "refs_ok"], flags).operands[-1].strides)


def memory_order_of(compute: Callable[..., Any], *arrays: Any, whole: Sequence[int] = ()) -> Any:
    """The axes of the result of a NumPy function from the slowest to the fastest, for arrays with these layouts.

    The function runs on ones, two along each axis except those that are to be `whole`. Several outputs give a list.
    """
    out = compute(*[_ones_like(array, whole) for array in arrays])
    return [axes_by_stride(part.strides) for part in out] if isinstance(out, tuple) else axes_by_stride(out.strides)


def _ones_like(array: Any, whole: Sequence[int]) -> Any:
    shape = tuple([n if axis in whole or n == 1 else 2 for axis, n in enumerate(array.shape)])
    ones = _memory_like(array, array.strides, shape, np.dtype(float))
    ones[...] = 1
    return np.broadcast_to(ones[tuple([slice(1 if stride == 0 else None) for stride in array.strides])], shape)


def reduced_order(array: Any, *, axes: Sequence[int], **params: Any) -> Any:
    """The axes of a reduction's result from the slowest to the fastest."""
    return memory_order_of(functools.partial(np.add.reduce, axis=tuple(axes)), array)


def joined_order(*arrays: Any, axis: int) -> Any:
    """The axes of joined arrays from the slowest to the fastest."""
    return memory_order_of(lambda *parts: np.concatenate(parts, axis), *arrays)


def copied_order(array: Any, order: str = "K") -> tuple[int, ...]:
    """The axes of a copy from the slowest to the fastest, in one of NumPy's orders C, F, A and K.

    They are also those of an array like this one of another shape, where axes of length one are longer.
    """
    if order in ("A", "K"):
        if order == "K" and not array.flags.forc:
            return axes_by_stride(array.strides)
        order = "F" if array.flags.fnc else "C"
    return tuple(range(array.ndim))[:: -1 if order == "F" else 1]


def without_copy(array: Any, shape: Sequence[int]) -> Any:
    """A reshape of a stand-in that is a view, or None where NumPy copies."""
    try:
        if _CAN_REFUSE:
            return array.reshape(shape, copy=False)
        view = array.view()
        view.shape = tuple(shape)
        return view
    except (ValueError, AttributeError):
        return None


_CAN_REFUSE = np.lib.NumpyVersion(np.__version__) >= "2.1.0"
"""Whether reshape takes copy=False."""


def same_layout(shape: Sequence[int], first: Strides, second: Strides) -> bool:
    """Whether two strides are equivalent for arrays of this shape."""
    return 0 in shape or all([n == 1 or s == t for n, s, t in zip(shape, first, second, strict=True)])
