"""Entries in plain Python, where native ones cannot be made, and arguments brought into the form that both read."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import numpy as np

from func.backends.llvm import capi
from func.backends.llvm.entry_layout import ALIGNMENT, MOST_KEPT
from func.backends.llvm.entry_trees import (
    LARGEST_INT,
    PYTHON_TYPES,
    Leaf,
    Mismatch,
    Signature,
    flatten,
    leaves,
    unflatten,
)

_READABLE: Final = capi.C_CONTIGUOUS | capi.ALIGNED


def python_entry(
    run: int,
    signature: Signature,
    slow: Callable[..., Any],
    failed: Callable[..., Any],
    owner: object = None,
) -> Callable[..., Any]:
    """What bind_entry returns, in Python: it checks arguments, calls `run` at this address, and makes the result.

    `owner` is kept alive as long as the function.
    """
    kind = ctypes.CFUNCTYPE if signature.releases_gil else ctypes.PYFUNCTYPE
    call = kind(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(run)
    expected = list(leaves(signature.args))
    results = list(leaves(signature.result))
    arenas: list[Any] = []

    def entry(*args: Any, **keywords: Any) -> Any:
        try:
            if keywords:
                raise Mismatch("arguments by name")
            inputs = [
                _matched(leaf, value) for leaf, value in zip(expected, flatten(signature.args, args), strict=True)
            ]
        except Mismatch:
            inputs = None
        if inputs is None:
            return slow(*args, **keywords)
        outputs = [np.empty(leaf.shape, leaf.dtype) for leaf in results]
        arena = arenas.pop() if arenas else np.empty(signature.arena + ALIGNMENT, np.uint8)
        scratch = -(-arena.ctypes.data // ALIGNMENT) * ALIGNMENT
        status = call(_pointers(inputs), _pointers(outputs), scratch)
        if signature.arena <= MOST_KEPT:
            arenas.append(arena)
        if status:
            return failed(status, *args)
        return unflatten(signature.result, _handed_out(results, outputs))

    entry.owner, entry.release = owner, arenas.clear  # type: ignore[attr-defined]
    return entry


def _pointers(arrays: list[Any]) -> Any:
    return (ctypes.c_void_p * len(arrays))(*[array.ctypes.data for array in arrays])


def _handed_out(results: Iterable[Leaf], outputs: Iterable[Any]) -> Iterator[Any]:
    for leaf, array in zip(results, outputs, strict=True):
        yield array.item() if leaf.kind == "python" else array if leaf.shape else array[()]


def _matched(leaf: Leaf, value: Any) -> Any:
    """The array whose memory is read for a leaf. Raises Mismatch where native code would not take the value."""
    if leaf.kind == "python":
        if type(value) is not PYTHON_TYPES[leaf.dtype] or (
            type(value) is int and not -LARGEST_INT - 1 <= value <= LARGEST_INT
        ):
            raise Mismatch(f"{value!r} is no {leaf.dtype} scalar")
        return np.array(value, leaf.dtype)
    if not leaf.shape and type(value) is leaf.dtype.type:
        return np.array(value)
    if type(value) is not np.ndarray or value.shape != leaf.shape or not same_dtype(leaf.dtype, value.dtype):
        raise Mismatch(f"an array of shape {leaf.shape} and dtype {leaf.dtype} was expected")
    if value.flags.num & _READABLE != _READABLE:
        raise Mismatch("the array is not contiguous or not aligned")
    return value


def same_dtype(own: np.dtype[Any], other: np.dtype[Any]) -> bool:
    """Whether a dtype is this one, or a copy of this builtin one."""
    return own is other or (own.isbuiltin == 1 and (own.num, own.byteorder) == (other.num, other.byteorder))


def normalised(signature: Signature, values: Iterable[Any]) -> list[Any]:
    """Leaves as C-contiguous aligned arrays in native byte order, copied where they are not.

    Raises TypeError or ValueError where a dtype or a shape differs.

    >>> signature = Signature((Leaf("array", (2,), np.dtype(float)),), None)
    >>> normalised(signature, [np.arange(4.0)[::-2]])
    [array([3., 1.])]
    """
    return [_normalised(leaf, value) for leaf, value in zip(leaves(signature.args), values, strict=True)]


def _normalised(leaf: Leaf, value: Any) -> Any:
    if leaf.kind == "python" and type(value) is not PYTHON_TYPES[leaf.dtype]:
        raise TypeError(f"a {PYTHON_TYPES[leaf.dtype].__name__} was expected, not {type(value).__name__}")
    array = np.asarray(value, leaf.dtype) if leaf.kind == "python" else np.asarray(value)
    if array.dtype.newbyteorder("=") != leaf.dtype:
        raise TypeError(f"an array of dtype {leaf.dtype} was expected, not {array.dtype}")
    if array.shape != leaf.shape:
        raise ValueError(f"an array of shape {leaf.shape} was expected, not {array.shape}")
    return np.require(array, leaf.dtype, ("C", "A"))
