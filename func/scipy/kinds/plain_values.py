"""SciPy's functions on plain values: on those of traced arrays, as constants, or on stand-ins of the same shapes.

A function of ranks or counts has no derivative, but has values under every transform that does not differentiate. It
runs on the plain values at the call, or on the host when compiled code runs.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any, NoReturn

import numpy as np

import func
from func.host.scipy_hooks import MAX_DEPTH, holds_traced
from func.interpreters.core import dtype_of, shape_of
from func.interpreters.core.errors import NotDifferentiableError
from func.interpreters.host.source import at_line


class Parts:
    """The traced values among arguments, and the arguments with others in their places."""

    def __init__(self, value: Any) -> None:
        self.traced: list[Any] = []
        self.value = self._marked(value, 0)

    def _marked(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind in (list, tuple) and depth < MAX_DEPTH:
            return kind([self._marked(item, depth + 1) for item in value])
        if kind is dict:
            return {key: self._marked(item, depth + 1) for key, item in value.items()}
        if not holds_traced(value):
            return value
        self.traced.append(np.asarray(value))
        return _Place(len(self.traced) - 1)

    def filled(self, arrays: Any) -> Any:
        """The arguments with arrays instead of traced values; copies other objects."""
        return _filled(self.value, arrays)


class _Place(int):
    """The place of a traced value."""


def _filled(value: Any, arrays: Any) -> Any:
    kind = type(value)
    if kind is _Place:
        return arrays[value]
    if kind in (list, tuple):
        return kind([_filled(item, arrays) for item in value])
    if kind is dict:
        return {key: _filled(item, arrays) for key, item in value.items()}
    draws = isinstance(value, (np.random.Generator, np.random.RandomState)) or hasattr(value, "n_resamples")
    return copy.deepcopy(value) if draws else value


def numbers(result: Any) -> list[Any]:
    """The arrays and numbers of a result, which may be an object."""
    kind = type(result)
    if isinstance(result, tuple):
        extra = [getattr(result, name) for name in getattr(kind, "_extra_fields", ())]
        return [x for item in (*result, *extra) for x in numbers(item)]
    if isinstance(result, (np.ndarray, np.generic, float, int)) and not isinstance(result, bool):
        return [result] if np.asarray(result).dtype.kind in "biufc" else []
    if hasattr(result, "__dict__") and not callable(result) and not isinstance(result, ModuleType):
        return [x for item in vars(result).values() for x in numbers(item)]
    return []


def with_numbers(result: Any, values: Any) -> Any:
    """A result like another one, with other arrays and numbers in order."""
    kind: Any = type(result)
    if isinstance(result, tuple):
        items = [with_numbers(item, values) for item in result]
        extra = {name: with_numbers(getattr(result, name), values) for name in getattr(kind, "_extra_fields", ())}
        return kind(items) if kind is tuple else kind(*items, **extra)
    if not numbers(result):
        return result
    if isinstance(result, (np.ndarray, np.generic, float, int)):
        return next(values)
    other = copy.copy(result)
    vars(other).update({name: with_numbers(item, values) for name, item in vars(result).items()})
    return other


def stand_in(x: Any, with_nan: bool = False) -> Any:
    """An array of plain values with the shape and dtype of a traced one."""
    size = int(np.prod(shape_of(x)))
    order = np.arange(size) if len(shape_of(x)) == 1 else np.random.default_rng(0).permutation(size)
    values: Any = (order + 0.5) / max(size, 1)  # edges of bins increase, points of several dimensions are on no line
    if dtype_of(x).kind not in "fc":
        values = 1 + np.arange(size) % 7
    elif with_nan:
        values[:1] = np.nan
    return np.reshape(values, shape_of(x)).astype(dtype_of(x))


def answer_of(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The result of a function of SciPy for plain stand-ins of traced values.

    So SciPy itself checks arguments and options, and determines the shapes and dtypes of the result.
    """
    parts = Parts((args, kwargs))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        args, kwargs = parts.filled([stand_in(x, kwargs.get("nan_policy") == "omit") for x in parts.traced])
        return function(*args, **kwargs)


def refusal(words: str) -> Callable[[Any, Any], NoReturn]:
    """A derivative that raises this error; the first line names the user's line, the second one an alternative."""
    problem, _, advice = words.partition("\n")

    def refuse(primals: Any, tangents: Any) -> NoReturn:
        raise NotDifferentiableError(f"{problem}{at_line()}" + (f"\n{advice}" if advice else ""))

    return refuse


def without_derivative(words: str) -> Callable[[Any], Any]:
    """The identity; its derivative raises an error with this text."""

    @func.custom_jvp
    def constant(x: Any) -> Any:
        return x + 0.0

    constant.defjvp(refusal(words))
    return constant


def on_the_host(
    function: Callable[..., Any], args: Any, kwargs: Any, example: Any = None, words: str = "constants have tangents"
) -> Any:
    """The result of a function for plain values, in compiled code too; its derivative raises an error.

    `example` is a result of the same shapes, for functions that reject arbitrary values.
    """
    parts = Parts((args, kwargs))
    if not parts.traced:
        return function(*args, **kwargs)

    def call(arrays: Any) -> Any:
        plain_args, plain_kwargs = parts.filled(arrays)
        return function(*plain_args, **plain_kwargs)

    if example is None:
        example = answer_of(function, *args, **kwargs)
    outs = [np.asarray(x) for x in numbers(example)]
    outs = [x.astype(float) if x.dtype == np.int8 else x for x in outs]  # signs, which SciPy makes NaN with the rest

    def outside(*arrays: Any) -> list[Any]:
        return numbers(call(arrays))

    outside.__name__ = getattr(function, "__name__", "function")

    @func.custom_jvp
    def values(*arrays: Any) -> Any:
        return func.pure_callback(outside, outs, *arrays, vmap_method="sequential")

    values.defjvp(refusal(words))
    return with_numbers(example, iter(values(*parts.traced)))
