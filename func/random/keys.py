"""Keys, which are uint32 arrays of shape (2,), and the argument checks of all distributions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from func.backends import HOST_TYPES
from func.interpreters.core import Array, Tracer, dtype_of, is_inexact, operand, shape_of
from func.interpreters.host.public_functions import without_engine_frames
from func.interpreters.host.source import at_line
from func.interpreters.primitives.random import bits as ops
from func.interpreters.primitives.structural.shapes import broadcast
from func.interpreters.primitives.structural.slicing import getitem
from func.numpy.argument_checks import as_shape, to_dtype

_KEY_DTYPE = np.dtype(np.uint32)
_WORDS = (np.dtype(np.uint8), np.dtype(np.uint16), np.dtype(np.uint32), np.dtype(np.uint64))


@without_engine_frames
def key(seed: Any) -> Array:
    """The key of an integer seed: an array (2,) of uint32 with the lowest 64 bits of the seed.

    A key is data: you can map it by func.vmap, store it and pass it around. Each use of a key returns the same samples;
    `split` and `fold_in` make new keys.

    Raises:
        TypeError: The seed is not one integer.

    Example:
        >>> import func.random
        >>> func.random.key(7)
        array([0, 7], dtype=uint32)
    """
    if type(seed) is not Tracer and isinstance(seed, (int, np.integer)) and not isinstance(seed, bool):
        number = int(seed)
        return np.array([number >> 32 & 0xFFFFFFFF, number & 0xFFFFFFFF], np.uint32)
    value = operand(seed)
    if shape_of(value) != () or dtype_of(value).kind not in "iu":
        raise TypeError(
            f"func.random.key: the seed must be one integer, got {_described(value)}{at_line()}\n"
            "Map func.random.key over an array of seeds with func.vmap."
        )
    return ops.random_key(value)


def check_key(value: Any, function: str) -> Array:
    """A key as primitives take it, or a TypeError that says how to make one."""
    if type(value) is not np.ndarray:
        value = operand(value)
    if shape_of(value) == (2,) and dtype_of(value) == _KEY_DTYPE:
        return value
    hint = "Make a key with func.random.key(seed)."
    if len(shape_of(value)) > 1 and shape_of(value)[-1] == 2 and dtype_of(value) == _KEY_DTYPE:
        hint = f"For many keys, map the function: func.vmap(lambda key: func.random.{function}(key, ...))(keys)."
    raise TypeError(
        f"func.random.{function} takes a key first, an array of shape (2,) and dtype uint32, but got "
        f"{_described(value)}{at_line()}\n{hint}"
    )


def _described(value: Array) -> str:
    shape = shape_of(value)
    return f"{'an array' if shape else 'a number'} of dtype {dtype_of(value)}" + (
        f" and shape {shape}" if shape else ""
    )


@without_engine_frames
def split(key: Any, num: Any = 2) -> Array:
    """New keys of a key, an array (num, 2), or (*num, 2) for a shape.

    They are independent of each other and of the samples of `key` itself.

    Example:
        >>> import func.random
        >>> first, second = func.random.split(func.random.key(0))
        >>> first.shape, func.random.split(func.random.key(0), (3, 4)).shape
        ((2,), (3, 4, 2))
    """
    key = check_key(key, "split")
    shape = sample_shape("split", num)
    total = int(np.prod(shape, dtype=np.int64))
    keys = ops.random_split(key, num=total)
    return keys if len(shape) == 1 else keys.reshape(*shape, 2)


def keys_of(key: Array, num: int) -> list[Array]:
    """A list of new keys of a key."""
    keys = ops.random_split(key, num=num)
    return [getitem(keys, index=(i, (0, 2, 1))) for i in range(num)]


@without_engine_frames
def fold_in(key: Any, data: Any) -> Array:
    """The key of a key and an integer (taken modulo 2^62), such as the number of a step or of a batch element.

    Raises:
        TypeError: `data` is not one integer.
    """
    key = check_key(key, "fold_in")
    if type(data) is not Tracer and isinstance(data, int) and not isinstance(data, bool):
        data = np.asarray(data % (1 << 62))
    data = operand(data)
    if shape_of(data) != () or dtype_of(data).kind not in "iu":
        raise TypeError(f"func.random.fold_in: data must be one integer, got {_described(data)}{at_line()}")
    return ops.random_fold_in(key, data)


@without_engine_frames
def bits(key: Any, shape: Any = (), dtype: Any = np.uint32) -> Array:
    """Random bits: uniform unsigned integers of 8, 16, 32 or 64 bits.

    The bits are the output of Threefry-2x32 (20 rounds) for the counters 0, 1, ... under the key.

    Source: J. Salmon, M. Moraes, R. Dror, D. Shaw (2011), Parallel random numbers: as easy as 1, 2, 3.
    """
    key = check_key(key, "bits")
    kind = np.dtype(dtype)
    if kind not in _WORDS:
        raise TypeError(f"func.random.bits: dtype must be uint8, uint16, uint32 or uint64, not {kind}")
    return ops.random_bits(key, shape=sample_shape("bits", shape), dtype=kind)


def float_dtype(function: str, dtype: Any) -> np.dtype[Any]:
    """The floating point dtype of samples: double, single, half or bfloat16."""
    kind: np.dtype[Any] = np.dtype(dtype)
    if is_inexact(kind) and kind.kind != "c" and kind.itemsize <= 8:
        return kind
    raise TypeError(f"func.random.{function}: dtype must be float64, float32 or float16, not {kind}")


def integer_dtype(function: str, dtype: Any) -> np.dtype[Any]:
    """The integer dtype of samples."""
    kind: np.dtype[Any] = np.dtype(dtype)
    if kind.kind not in "iu":
        raise TypeError(f"func.random.{function}: dtype must be an integer type, not {kind}")
    return kind


def parameter(function: str, name: str, value: Any, dtype: Any) -> Array:
    """A parameter in the dtype of the samples."""
    value = operand(value)
    if (dtype_of(value).kind not in "fiub" and not is_inexact(dtype_of(value))) or dtype_of(value).kind == "c":
        raise TypeError(f"func.random.{function}: {name} must be real, not {dtype_of(value)}")
    return to_dtype(value, dtype)


def known(value: Array) -> np.ndarray[Any, Any] | None:
    """The value of a parameter (the whole batch of a mapped one) if it is in host memory, else None."""
    while type(value) is Tracer:
        value = value._value
    return np.asarray(value) if type(value) in HOST_TYPES else None


def require(function: str, condition: Callable[..., Any], message: str, *values: Array) -> None:
    """Raise ValueError, as NumPy does, if known parameters are out of range; NaN passes."""
    known_values = [known(value) for value in values]
    numbers = [number for number in known_values if number is not None]
    if len(numbers) < len(values):
        return
    is_mapped = any([number.ndim != len(shape_of(value)) for number, value in zip(numbers, values, strict=True)])
    if (
        is_mapped and len({number.ndim for number in numbers}) > 1
    ):  # batch axes would be aligned with the parameters' axes
        return
    try:
        is_violated = np.any(condition(*numbers))
    except ValueError:
        return
    if is_violated:
        raise ValueError(f"func.random.{function}: {message}{at_line()}")


def sample_shape(function: str, shape: Any) -> tuple[int, ...]:
    """A shape argument with non-negative lengths."""
    lengths = as_shape(shape)
    if any([length < 0 for length in lengths]):
        raise ValueError(f"func.random.{function}: shape must not be negative, got {shape!r}")
    return lengths


def full_shape(function: str, shape: Any, *parameters: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of the samples: the requested one, to which the parameters must broadcast, or that of the latter."""
    if shape is None:
        return np.broadcast_shapes(*parameters)
    requested = sample_shape(function, shape)
    if any(parameters):
        try:
            fits = np.broadcast_shapes(requested, *parameters) == requested
        except ValueError:
            fits = False
        if not fits:
            raise ValueError(
                f"func.random.{function}: shape={requested} must be the full shape of the result, to which the shapes "
                f"of the parameters broadcast: {', '.join(map(str, parameters))}"
            )
    return requested


def broadcast_parameter(value: Array, shape: tuple[int, ...]) -> Array:
    """A parameter broadcast to the shape of the samples."""
    return value if shape_of(value) == shape else broadcast(value, shape=shape)
